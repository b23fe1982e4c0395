/*
 * region_lower.c: strided copies on the GPU, through the kernels move and transpose.
 */
#include "kernels/lib/divide.h"
#include "kernels/rows/move.h"
#include "ops/lowering.h"

#include <stddef.h>

bool move_element(braid_type type, uint32_t *bytes, int64_t *parts) {
    size_t size = type == BRAID_STRING ? 0 : element_bytes(type);
    *bytes = size == 16 ? 8 : (uint32_t)size;
    *parts = size == 16 ? 2 : 1;
    return size != 0;
}

move_grid move_grid_for(const device_traits *device, int64_t units) {
    move_grid g = {.group = device->software ? 64 : 256, .items = 16};
    if (g.group > device->max_invocations) g.group = device->max_invocations;
    if (!device->software) g.items = units < 1 << 18 ? 1 : units < 1 << 22 ? 4 : 16;
    uint64_t tile = (uint64_t)g.group * g.items;
    g.tiles = ((uint64_t)units + tile - 1) / tile;
    return g;
}

braid_status lower_ints(lowering *l, int i, int *count, const int64_t **out) {
    *count = -1;
    *out = NULL;
    if (i >= l->node->n_in || l->node->in[i] < 0) return BRAID_OK;
    const value *v = l->g->values[l->node->in[i]];
    if (v->n_known >= 0 && v->known) {
        for (int k = 0; k < v->n_known; k++)
            if (dim_is_symbol(v->known[k])) return BRAID_OK;
        *count = v->n_known;
        *out = v->known;
        return BRAID_OK;
    }
    const tensor *t;
    int64_t n;
    TRY(lower_constant_in(l, i, &t));
    if (!t || !tensor_type_count(&t->type, &n) || n > 4096 || !type_is_integer(t->type.type)) return BRAID_OK;
    int64_t *v64 = arena_array(l->memory, (size_t)n + 1, sizeof *v64);
    if (!v64) return error_memory(l->err);
    for (int64_t k = 0; k < n; k++) v64[k] = element_i64(t->type.type, t->data, k);
    *count = (int)n;
    *out = v64;
    return BRAID_OK;
}

/* Lowest and highest element of one side. */
static bool span_of(int rank, const int64_t *dims, const int64_t *strides, int64_t at, int64_t *low, int64_t *high) {
    *low = *high = at;
    for (int d = 0; d < rank; d++) {
        int64_t reach;
        if (!i64_mul(dims[d] - 1, strides[d], &reach)) return false;
        if (reach < 0) *low += reach;
        else *high += reach;
    }
    return *low >= 0 && *high - *low < MOVE_MAX;
}

/* Elements of 16 bytes become pairs of 8. */
static void split_elements(region *r, int64_t parts) {
    if (parts == 1) return;
    for (int d = 0; d < r->rank; d++) {
        r->in_stride[d] *= parts;
        r->out_stride[d] *= parts;
    }
    r->in_at *= parts;
    r->out_at *= parts;
    region_add(r, parts, 1, 1);
}

/* Elements of a unit: 16 bytes' worth where runs and everything that offsets are made of are multiples of it. */
static uint32_t unit_of(const region *r, uint32_t bytes) {
    int64_t unit = 16 / bytes;
    int last = r->rank - 1;
    if (r->in_stride[last] != 1 || r->out_stride[last] != 1 || r->dims[last] % unit) return 1;
    if (r->in_at % unit || r->out_at % unit) return 1;
    for (int d = 0; d < last; d++)
        if (r->in_stride[d] % unit || r->out_stride[d] % unit) return 1;
    return (uint32_t)unit;
}

/* The axis that runs on in the input where the last one does not, and both are long enough for tiles; -1: none. */
static int transposed_axis(const lowering *l, const region *r) {
    int last = r->rank - 1;
    enum { SHARED = 64 * 65 * 4 };
    if (l->device->software || l->device->max_invocations < 256 || l->device->shared_bytes < SHARED || r->rank < 2)
        return -1;
    if (r->in_stride[last] == 1 || r->in_stride[last] == 0 || r->out_stride[last] != 1 || r->dims[last] < 8) return -1;
    for (int d = 0; d < last; d++)
        if (r->in_stride[d] == 1 && r->dims[d] >= 8) return d;
    return -1;
}

static void move_axis(region *r, int from, int to) {
    region c = *r;
    for (int d = 0, k = 0; d < r->rank; d++) {
        int s = d == to ? from : (k += k == from, k++);
        c.dims[d] = r->dims[s];
        c.in_stride[d] = r->in_stride[s];
        c.out_stride[d] = r->out_stride[s];
    }
    *r = c;
}

typedef struct side {
    int32_t storage;
    uint64_t offset, bytes; /* what the region touches */
} side;

static void fill_row(row_move *row, const region *r, uint32_t unit) {
    for (int d = 0; d < MOVE_RANK; d++) row->dims[d] = 1;
    for (int d = 0; d < r->rank; d++) {
        int at = MOVE_RANK - r->rank + d;
        row->dims[at] = (uint)(d == r->rank - 1 ? r->dims[d] / unit : r->dims[d]);
        divide_prepare(row->dims[at], &row->magic[at], &row->shift[at]);
        row->in_stride[at] = (int)r->in_stride[d];
        row->out_stride[at] = (int)r->out_stride[d];
    }
    row->in_at = (uint)r->in_at;
    row->out_at = (uint)r->out_at;
    row->count = (uint)(region_count(r) / unit);
}

static braid_status add_operands(lowering *l, step *s, const side *in, const side *out) {
    TRY(lower_operand(l, s, offsetof(row_move, source), in->storage, in->offset, in->bytes, ACCESS_READ));
    return lower_operand(l, s, offsetof(row_move, target), out->storage, out->offset, out->bytes, ACCESS_WRITE);
}

static braid_status emit_transpose(lowering *l, region *r, int axis, uint32_t bytes, const side *in, const side *out) {
    row_move row = {0};
    move_axis(r, axis, r->rank - 2);
    fill_row(&row, r, 1);
    int64_t least = r->dims[r->rank - 1] < r->dims[r->rank - 2] ? r->dims[r->rank - 1] : r->dims[r->rank - 2];
    int64_t edge = bytes == 8 || least <= 32 ? 32 : 64;
    int64_t tiles = ((r->dims[r->rank - 1] + edge - 1) / edge) * ((r->dims[r->rank - 2] + edge - 1) / edge);
    for (int d = 0; d < r->rank - 2; d++) tiles *= r->dims[d];
    step *s = lower_step(l, MOVE_KERNEL("transpose", bytes), &row, sizeof row, (uint64_t)tiles, 256);
    if (!s) return error_memory(l->err);
    s->bytes = 2 * (uint64_t)region_count(r) * bytes;
    TRY(lower_spec(l, s, MOVE_SPEC_RANK, (uint32_t)r->rank));
    TRY(lower_spec(l, s, MOVE_SPEC_SIDE, (uint32_t)edge));
    return add_operands(l, s, in, out);
}

static braid_status emit_move(lowering *l, const region *r, uint32_t bytes, const side *in, const side *out) {
    row_move row = {0};
    uint32_t unit = in->offset % 16 || out->offset % 16 ? 1 : unit_of(r, bytes);
    fill_row(&row, r, unit);
    move_grid g = move_grid_for(l->device, row.count);
    step *s = lower_step(l, MOVE_KERNEL("move", bytes), &row, sizeof row, g.tiles, g.group);
    if (!s) return error_memory(l->err);
    s->bytes = 2 * (uint64_t)region_count(r) * bytes;
    TRY(lower_spec(l, s, MOVE_SPEC_RANK, (uint32_t)r->rank));
    TRY(lower_spec(l, s, MOVE_SPEC_UNIT, unit));
    TRY(lower_spec(l, s, MOVE_SPEC_ITEMS, g.items));
    return add_operands(l, s, in, out);
}

/* A region too large for 32-bit indices is cut along its first dim. */
static braid_status lower_halves(lowering *l, int32_t in, int32_t out, uint32_t bytes, const region *r);

static braid_status lower_piece(lowering *l, int32_t in, int32_t out, uint32_t bytes, region r) {
    int64_t in_low, in_high, out_low, out_high;
    if (!span_of(r.rank, r.dims, r.in_stride, r.in_at, &in_low, &in_high) ||
        !span_of(r.rank, r.dims, r.out_stride, r.out_at, &out_low, &out_high))
        return lower_halves(l, in, out, bytes, &r);
    side from = {in, (uint64_t)in_low * bytes, (uint64_t)(in_high - in_low + 1) * bytes};
    side to = {out, (uint64_t)out_low * bytes, (uint64_t)(out_high - out_low + 1) * bytes};
    r.in_at -= in_low;
    r.out_at -= out_low;
    int axis = transposed_axis(l, &r);
    return axis >= 0 ? emit_transpose(l, &r, axis, bytes, &from, &to) : emit_move(l, &r, bytes, &from, &to);
}

static braid_status lower_halves(lowering *l, int32_t in, int32_t out, uint32_t bytes, const region *r) {
    int d = 0;
    while (d < r->rank && r->dims[d] < 2) d++;
    if (d == r->rank) return BRAID_UNSUPPORTED;
    region a = *r, b = *r;
    a.dims[d] = r->dims[d] / 2;
    b.dims[d] = r->dims[d] - a.dims[d];
    b.in_at += a.dims[d] * r->in_stride[d];
    b.out_at += a.dims[d] * r->out_stride[d];
    TRY(lower_piece(l, in, out, bytes, a));
    return lower_piece(l, in, out, bytes, b);
}

braid_status region_lower_storage(lowering *l, int32_t in, int32_t out, braid_type type, const region *whole) {
    region r = *whole;
    uint32_t bytes;
    int64_t parts, count;
    if (!move_element(type, &bytes, &parts)) return BRAID_UNSUPPORTED;
    if (!dims_count(r.rank, r.dims, &count)) return BRAID_UNSUPPORTED;
    if (count == 0) return BRAID_OK;
    if (r.rank < REGION_RANK) split_elements(&r, parts);
    else if (parts != 1) return BRAID_UNSUPPORTED;
    region_collapse(&r);
    if (r.rank == 0) region_add(&r, 1, 1, 1);
    if (r.rank > MOVE_RANK) return BRAID_UNSUPPORTED;
    return lower_piece(l, in, out, bytes, r);
}

braid_status region_lower(lowering *l, int in, int out, const region *r) {
    return region_lower_storage(l, l->node->in[in], l->node->out[out], lower_out(l, out)->type, r);
}

braid_status region_lower_one(lowering *l, region_fn *describe) {
    region r = {0};
    describe(l->node, lower_in(l, 0), lower_out(l, 0), &r);
    return region_lower(l, 0, 0, &r);
}
