/*
 * overlap.c: no two lanes of the output buffers may share a byte; inputs and outputs may.
 *
 * Lanes of several outputs may interleave (records of one struct per lane), so that ranges from a buffer's first to its
 * last byte say too little: what is compared is every lane of every output, in order of address.
 *
 * An output that is a view of an input has its content in the caller's memory. Where an output buffer lies there too,
 * that content is taken to safety before the first output is written.
 */
#include <stdlib.h>

#include "api/session.h"

typedef struct span {
    uintptr_t begin, end;
    size_t output;
    uint32_t lane;
} span;

static int by_begin(const void *a, const void *b) {
    const span *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static void add_spans(const braid_session *s, const braid_tensor *t, size_t output, size_t lane_bytes, span *spans,
                      size_t *n) {
    size_t stride = t->lane_stride ? t->lane_stride : lane_bytes;
    for (uint32_t lane = 0; lane < s->lanes; lane++) {
        const void *at = t->flags & BRAID_TENSOR_LANES ? ((const void *const *)t->data)[lane]
                                                       : (const uint8_t *)t->data + lane * stride;
        spans[(*n)++] = (span){(uintptr_t)at, (uintptr_t)at + lane_bytes, output, lane};
    }
}

/* Does [begin, begin + bytes) meet one of the spans, which are sorted and apart. */
static bool meets(const span *spans, size_t n, const void *begin, size_t bytes) {
    uintptr_t from = (uintptr_t)begin;
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (spans[middle].end <= from) low = middle + 1;
        else high = middle;
    }
    return low < n && spans[low].begin < from + bytes;
}

static braid_status take_to_safety(const braid_session *s, const span *spans, size_t n, place *p, size_t bytes,
                                   arena *memory, braid_error *err) {
    uint32_t lanes = p->stride ? s->lanes : 1;
    size_t whole;
    bool hit = false;
    for (uint32_t lane = 0; lane < lanes && !hit; lane++) hit = meets(spans, n, place_lane(p, lane), bytes);
    if (!hit) return BRAID_OK;
    tensor *t = arena_copy(memory, p->host, sizeof *t);
    if (!t || !size_mul(bytes, lanes, &whole) || !(t->data = arena_alloc(memory, whole))) return error_memory(err);
    carry(&(carriage){.to = {.data = t->data, .stride = bytes}, .from = p, .lanes = lanes, .bytes = bytes}, 1);
    *p = (place){.host = t, .stride = p->stride ? bytes : 0};
    return BRAID_OK;
}

braid_status outputs_apart(const braid_session *s, const braid_tensor *out, const size_t *lane_bytes, size_t n_out,
                           place *const *from, arena *memory, braid_error *err) {
    size_t n = 0, most;
    if (!size_mul(n_out, s->lanes, &most)) return error_memory(err);
    span *spans = arena_array(memory, most + 1, sizeof *spans);
    if (!spans) return error_memory(err);
    for (size_t k = 0; k < n_out; k++)
        if (lane_bytes[k]) add_spans(s, &out[k], k, lane_bytes[k], spans, &n);
    qsort(spans, n, sizeof *spans, by_begin);
    for (size_t i = 1; i < n; i++) {
        const span *a = &spans[i - 1], *b = &spans[i];
        if (a->end <= b->begin) continue;
        return error_set(err, BRAID_ARGUMENT,
                         "output '%s': the buffer of lane %u overlaps that of output '%s', lane %u",
                         out[b->output].name, b->lane, out[a->output].name, a->lane);
    }
    for (size_t k = 0; k < n_out; k++)
        if (lane_bytes[k]) TRY(take_to_safety(s, spans, n, from[k], lane_bytes[k], memory, err));
    return BRAID_OK;
}
