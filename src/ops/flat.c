/*
 * flat.c: steps for kernels that compute independent outputs.
 */
#include "ops/flat.h"

/* Bytes of all inputs and outputs of the node. */
static uint64_t traffic(const lowering *l) {
    uint64_t total = 0;
    size_t bytes;
    for (int i = 0; i < l->node->n_in; i++)
        if (lower_in(l, i) && tensor_type_bytes(lower_in(l, i), &bytes)) total += bytes;
    for (int i = 0; i < l->node->n_out; i++)
        if (lower_out(l, i) && tensor_type_bytes(lower_out(l, i), &bytes)) total += bytes;
    return total;
}

step *flat_step(lowering *l, const char *kernel, const void *row, size_t row_bytes, int64_t outputs) {
    /* A software device wants few fat groups. A GPU wants enough groups to fill it before work is put in sequence. */
    uint32_t group = l->device->software ? 64 : 256;
    if (group > l->device->max_invocations) group = l->device->max_invocations;
    uint32_t per = l->device->software ? 16 : outputs >= (1 << 20) ? 4 : 1;
    uint64_t tile = (uint64_t)group * per, tiles = ((uint64_t)outputs + tile - 1) / tile;
    step *s = lower_step(l, kernel, row, row_bytes, tiles, group);
    if (!s || lower_spec(l, s, SPEC_FIRST, per) != BRAID_OK) return NULL;
    s->bytes = traffic(l);
    s->flops = (uint64_t)outputs;
    return s;
}

const char *flat_float_kernel(braid_type t, const char *const names[static 5]) {
    switch (t) {
    case BRAID_FLOAT32: return names[0];
    case BRAID_FLOAT16: return names[1];
    case BRAID_BFLOAT16: return names[2];
    case BRAID_INT8: return names[3];
    case BRAID_UINT8: return names[4];
    default: return NULL;
    }
}

int flat_bits_index(braid_type t) {
    switch (type_bits(t)) {
    case 8: return 0;
    case 16: return 1;
    case 32: return 2;
    case 64: return 3;
    default: return -1;
    }
}

bool flat_fits(const tensor_type *t) {
    int64_t n;
    return t && tensor_type_count(t, &n) && n < FLAT_MAX;
}
