/*
 * bytes.c: widening and packing of types smaller than a byte.
 */
#include "ops/bytes.h"

static int64_t count_of(const tensor *t) {
    int64_t n;
    return tensor_type_count(&t->type, &n) ? n : 0;
}

const uint8_t *bytes_in(arena *memory, const tensor *t, size_t *size) {
    *size = element_bytes(t->type.type);
    if (*size) return t->data;
    *size = 1;
    int bits = type_bits(t->type.type);
    int64_t n = count_of(t), per_byte = bits ? 8 / bits : 1;
    uint8_t *wide = arena_array(memory, (size_t)n + 1, 1);
    for (int64_t i = 0; wide && i < n; i++)
        wide[i] = (uint8_t)((((const uint8_t *)t->data)[i / per_byte] >> (i % per_byte * bits)) & ((1 << bits) - 1));
    return wide;
}

uint8_t *bytes_out(arena *memory, tensor *t, size_t *size) {
    *size = element_bytes(t->type.type);
    if (*size) return t->data;
    *size = 1;
    return arena_array(memory, (size_t)count_of(t) + 1, 1);
}

void bytes_done(tensor *t, const uint8_t *from) {
    if (from == t->data) return;
    int bits = type_bits(t->type.type);
    int64_t n = count_of(t), per_byte = bits ? 8 / bits : 1;
    uint8_t *packed = t->data;
    memset(packed, 0, t->bytes);
    for (int64_t i = 0; i < n; i++)
        packed[i / per_byte] = (uint8_t)(packed[i / per_byte] | (from[i] & ((1 << bits) - 1)) << (i % per_byte * bits));
}
