/*
 * region.c: strided copies on the CPU.
 */
#include "ops/region.h"

void region_strides(int rank, const int64_t *dims, int64_t *strides) {
    int64_t s = 1;
    for (int d = rank - 1; d >= 0; d--) {
        strides[d] = s;
        s *= dims[d];
    }
}

void region_add(region *r, int64_t dim, int64_t in_stride, int64_t out_stride) {
    r->dims[r->rank] = dim;
    r->in_stride[r->rank] = in_stride;
    r->out_stride[r->rank++] = out_stride;
}

int64_t region_count(const region *r) {
    int64_t n = 1;
    for (int d = 0; d < r->rank; d++) n *= r->dims[d];
    return n;
}

void region_collapse(region *r) {
    region c = {.in_at = r->in_at, .out_at = r->out_at};
    for (int d = 0; d < r->rank; d++) {
        if (r->dims[d] == 1) continue;
        int last = c.rank - 1;
        if (c.rank && c.in_stride[last] == r->dims[d] * r->in_stride[d] &&
            c.out_stride[last] == r->dims[d] * r->out_stride[d]) {
            c.dims[last] *= r->dims[d];
            c.in_stride[last] = r->in_stride[d];
            c.out_stride[last] = r->out_stride[d];
        } else {
            region_add(&c, r->dims[d], r->in_stride[d], r->out_stride[d]);
        }
    }
    *r = c;
}

size_t element_bytes(braid_type type) {
    return type == BRAID_STRING ? sizeof(char *) : (size_t)type_bits(type) / 8;
}

/* ------------------------------------------------------------------------------------------------- copying */

typedef struct pair64 {
    uint64_t a, b;
} pair64;

#define COPY_RUN(T)                                                                       \
    do {                                                                                  \
        const T *from = in;                                                               \
        T *to = out;                                                                      \
        for (int64_t i = 0; i < n; i++) to[i * out_stride] = from[i * in_stride];         \
    } while (0)

static void copy_run(size_t bytes, int64_t n, const void *in, int64_t in_stride, void *out, int64_t out_stride) {
    if (in_stride == 1 && out_stride == 1) {
        memcpy(out, in, (size_t)n * bytes);
        return;
    }
    switch (bytes) {
    case 1: COPY_RUN(uint8_t); break;
    case 2: COPY_RUN(uint16_t); break;
    case 4: COPY_RUN(uint32_t); break;
    case 8: COPY_RUN(uint64_t); break;
    case 16: COPY_RUN(pair64); break;
    default: break;
    }
}

/* Moves to the next index of all dims but the last; false after the last one. */
static bool next_index(const region *r, int64_t *index, int64_t *in_at, int64_t *out_at) {
    for (int d = r->rank - 2; d >= 0; d--) {
        *in_at += r->in_stride[d];
        *out_at += r->out_stride[d];
        if (++index[d] < r->dims[d]) return true;
        *in_at -= r->dims[d] * r->in_stride[d];
        *out_at -= r->dims[d] * r->out_stride[d];
        index[d] = 0;
    }
    return false;
}

static unsigned get_bits(const uint8_t *data, int bits, int64_t i) {
    int64_t per_byte = 8 / bits;
    return (unsigned)data[i / per_byte] >> (i % per_byte * bits) & ((1u << bits) - 1u);
}

static void set_bits(uint8_t *data, int bits, int64_t i, unsigned v) {
    int64_t per_byte = 8 / bits;
    int shift = (int)(i % per_byte) * bits;
    unsigned mask = ((1u << bits) - 1u) << shift;
    data[i / per_byte] = (uint8_t)((data[i / per_byte] & ~mask) | v << shift);
}

static void copy_bits(const region *r, int bits, const void *in, void *out, int64_t in_at, int64_t out_at) {
    int last = r->rank - 1;
    for (int64_t i = 0; i < r->dims[last]; i++)
        set_bits(out, bits, out_at + i * r->out_stride[last], get_bits(in, bits, in_at + i * r->in_stride[last]));
}

void region_copy(const region *whole, braid_type type, const void *in, void *out) {
    region r = *whole;
    if (region_count(&r) == 0) return;
    region_collapse(&r);
    if (r.rank == 0) region_add(&r, 1, 1, 1);
    size_t bytes = element_bytes(type);
    int last = r.rank - 1;
    int64_t index[REGION_RANK] = {0}, in_at = r.in_at, out_at = r.out_at;
    do {
        if (bytes)
            copy_run(bytes, r.dims[last], (const char *)in + in_at * (int64_t)bytes, r.in_stride[last],
                     (char *)out + out_at * (int64_t)bytes, r.out_stride[last]);
        else
            copy_bits(&r, type_bits(type), in, out, in_at, out_at);
    } while (next_index(&r, index, &in_at, &out_at));
}

braid_status region_eval_one(eval *e, region_fn *describe) {
    tensor *out;
    const tensor *in = eval_in(e, 0);
    region r = {0};
    TRY(eval_output(e, 0, &out));
    describe(e->node, &in->type, &out->type, &r);
    region_copy(&r, in->type.type, in->data, out->data);
    return BRAID_OK;
}
