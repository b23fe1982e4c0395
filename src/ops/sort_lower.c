/*
 * sort_lower.c: steps of TopK. A row that fits shared memory is sorted at once; a longer one is cut into chunks, of
 * which each leaves its first k, until what is left fits. k beyond half of a chunk has no kernel.
 */
#include "ops/sort.h"

#include "kernels/rows/sort.h"
#include "ops/row_lower.h"

#include <stddef.h>

typedef struct sort_plan {
    const char *kernel;
    row_view in, out;
    braid_type type;
    uint32_t flags, capacity; /* capacity: items that shared memory holds */
    int64_t k;
} sort_plan;

/* One round: `items` per row, from candidates in storage `from` (-1: from x), into storage `to` (-1: the outputs). */
typedef struct sort_round {
    uint64_t items, chunk, chunks;
    int32_t from, to;
} sort_round;

static uint64_t item_bytes(const sort_plan *t, uint64_t items) { return (uint64_t)t->in.rows * items * SORT_ITEM; }

static braid_status bind(lowering *l, step *s, const sort_plan *t, const sort_round *r) {
    uint64_t from = item_bytes(t, r->items), to = item_bytes(t, r->chunks * (uint64_t)t->k);
    TRY(row_read(l, s, offsetof(row_sort, x), 0));
    if (r->from >= 0) TRY(lower_operand(l, s, offsetof(row_sort, from), r->from, 0, from, ACCESS_READ));
    if (r->to >= 0) return lower_operand(l, s, offsetof(row_sort, to), r->to, 0, to, ACCESS_WRITE);
    if (lower_out(l, 0)) TRY(row_write(l, s, offsetof(row_sort, values), 0));
    if (lower_out(l, 1)) TRY(row_write(l, s, offsetof(row_sort, indices), 1));
    return BRAID_OK;
}

static braid_status add_round(lowering *l, const sort_plan *t, const sort_round *r) {
    row_sort row = {.items = (uint)r->items, .chunk = (uint)r->chunk, .chunks = (uint)r->chunks, .keep = (uint)t->k};
    if (!row_pack(&t->in, &row.view)) return BRAID_UNSUPPORTED;
    for (int d = 0; d < t->out.n_keep; d++) row.out_keep[d] = (uint)t->out.keep[d].stride;
    row.out_reduce = t->out.n_reduce ? (uint)t->out.reduce[0].stride : 0;
    uint32_t size = row_pow2(r->chunk), rows = 1, group = l->device->software ? 64 : 128;
    while (size * rows < 2 * group && rows < (uint64_t)t->in.rows) rows *= 2;
    while (!l->device->software && group < size * rows / 2 && 2 * group <= l->device->max_invocations) group *= 2;
    uint64_t tiles = ((uint64_t)t->in.rows + rows - 1) / rows * r->chunks;
    if (tiles > INT32_MAX || r->items * (uint64_t)t->in.rows > UINT32_MAX) return BRAID_UNSUPPORTED;
    row_layout layout = {.group = group, .team = 1};
    step *s = lower_step(l, t->kernel, &row, sizeof row, tiles, group);
    if (!s) return BRAID_HOST_MEMORY;
    TRY(row_layout_spec(l, s, &layout, &t->in));
    TRY(lower_spec(l, s, SPEC_TYPE_X, t->type));
    TRY(lower_spec(l, s, SPEC_STAGE, (r->from >= 0 ? SORT_STAGE_FROM : 0) | (r->to >= 0 ? SORT_STAGE_TO : 0)));
    TRY(lower_spec(l, s, SPEC_FLAGS, t->flags));
    TRY(lower_spec(l, s, SPEC_SORT_SIZE, size));
    TRY(lower_spec(l, s, SPEC_SORT_ROWS, rows));
    return bind(l, s, t, r);
}

/* Small sorts are cheaper than few large ones; a round leaves a half of its items at most. */
static braid_status add_rounds(lowering *l, const sort_plan *t) {
    uint64_t items = (uint64_t)t->in.length, k = (uint64_t)t->k, chunk = row_pow2(4 * k);
    int32_t from = -1;
    if (items > t->capacity && k > t->capacity / 2) return BRAID_UNSUPPORTED;
    if (chunk < 1024) chunk = 1024;
    if (chunk > t->capacity) chunk = t->capacity;
    while (items > chunk) {
        uint64_t chunks = (items + chunk - 1) / chunk;
        sort_round r = {items, chunk, chunks, from, lower_scratch(l, item_bytes(t, chunks * k))};
        if (r.to < 0) return error_memory(l->err);
        TRY(add_round(l, t, &r));
        from = r.to;
        items = chunks * k;
    }
    return add_round(l, t, &(sort_round){items, items, 1, from, -1});
}

/* Views of input and output must have the same kept axes, also where the output's sorted axis has size 1. */
static bool views(const tensor_type *x, const tensor_type *y, int axis, sort_plan *t) {
    row_view_make(x->rank, x->dims, 1u << axis, &t->in);
    row_view_make(y->rank, y->dims, 1u << axis, &t->out);
    if (t->out.n_keep == t->in.n_keep) return true;
    int64_t outer = 1, inner = 1, k = y->dims[axis];
    for (int d = 0; d < axis; d++) outer *= x->dims[d];
    for (int d = axis + 1; d < x->rank; d++) inner *= x->dims[d];
    if (t->in.n_keep != 2) return false;
    t->out.n_keep = 2;
    t->out.keep[0] = (row_axis){.size = outer, .stride = k * inner};
    t->out.keep[1] = (row_axis){.size = inner, .stride = 1};
    return true;
}

braid_status top_lower(lowering *l) {
    const tensor_type *x = lower_in(l, 0), *y = lower_out(l, 0) ? lower_out(l, 0) : lower_out(l, 1);
    sort_plan t = {.type = x->type};
    int axis;
    TRY(axis_normalise(node_int(l->node, "axis", -1), x->rank, &axis, l->err));
    if (!y) return BRAID_OK;
    bool wide = type_bits(x->type) == 64;
    t.kernel = wide ? "sort_wide" : "sort_narrow";
    t.capacity = row_pow2(l->device->shared_bytes / (wide ? 12 : 8) / 2 + 1);
    if (t.capacity > 4096) t.capacity = 4096;
    t.k = y->dims[axis];
    if (!type_is_float(x->type)) t.flags |= SORT_FLAG_INTEGER;
    if (type_is_unsigned(x->type)) t.flags |= SORT_FLAG_UNSIGNED;
    if (node_int(l->node, "largest", 1)) t.flags |= SORT_FLAG_LARGEST;
    if (!views(x, y, axis, &t)) return BRAID_UNSUPPORTED;
    if (t.out.rows == 0 || t.k == 0) return BRAID_OK;
    return add_rounds(l, &t);
}
