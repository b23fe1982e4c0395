/*
 * gather.c: Gather, GatherND and GatherElements on the GPU.
 */
#include "ops/gather.h"
#include "kernels/lib/divide.h"
#include "kernels/rows/gather.h"
#include "ops/lowering.h"

#include <stddef.h>

static bool small(int64_t n) { return n >= 0 && n < MOVE_MAX; }

static int64_t count_of(const tensor_type *t) {
    int64_t n;
    return tensor_type_count(t, &n) ? n : MOVE_MAX;
}

static braid_status add_operands(lowering *l, step *s, size_t data, size_t index, size_t target) {
    TRY(lower_operand_in(l, s, data, 0));
    TRY(lower_operand_in(l, s, index, 1));
    return lower_operand_out(l, s, target, 0);
}

/* Everything in units of `unit` elements; false when a number does not fit. */
static bool gather_row(const gather_shape *g, int64_t count, int64_t unit, row_gather *row) {
    if (!small(g->rows) || !small(g->data_batch) || !small(g->index_batch) || g->depth > GATHER_RANK) return false;
    row->count = (uint)(count / unit);
    row->rows = (uint)g->rows;
    row->slice = (uint)(g->slice / unit);
    divide_prepare(row->rows, &row->rows_magic, &row->rows_shift);
    divide_prepare(row->slice, &row->slice_magic, &row->slice_shift);
    row->data_batch = (uint)(g->data_batch / unit);
    row->index_batch = (uint)g->index_batch;
    for (int64_t k = 0; k < g->depth; k++) {
        if (g->dims[k] == 0) return false; /* any index is out of range: the host says so */
        row->dims[k] = (uint)g->dims[k];
        row->strides[k] = (uint)(g->strides[k] / unit);
    }
    return true;
}

braid_status gather_lower_rows(lowering *l, const gather_shape *shape) {
    gather_shape g = *shape;
    row_gather row = {0};
    uint32_t bytes;
    int64_t parts, count = count_of(lower_out(l, 0));
    if (!move_element(lower_out(l, 0)->type, &bytes, &parts)) return BRAID_UNSUPPORTED;
    if (count == 0) return BRAID_OK;
    if (!small(count * parts) || !small(count_of(lower_in(l, 0)) * parts) || !small(count_of(lower_in(l, 1))))
        return BRAID_UNSUPPORTED;
    g.slice *= parts;
    g.data_batch *= parts;
    for (int64_t k = 0; k < g.depth; k++) g.strides[k] *= parts;
    uint32_t unit = g.slice % (16 / bytes) ? 1 : 16 / bytes;
    if (!gather_row(&g, count * parts, unit, &row)) return BRAID_UNSUPPORTED;
    move_grid grid = move_grid_for(l->device, row.count);
    step *s = lower_step(l, MOVE_KERNEL("gather", bytes), &row, sizeof row, grid.tiles, grid.group);
    if (!s) return error_memory(l->err);
    s->bytes = 2 * (uint64_t)count * (uint64_t)parts * bytes;
    TRY(lower_spec(l, s, GATHER_SPEC_DEPTH, (uint32_t)g.depth));
    TRY(lower_spec(l, s, GATHER_SPEC_UNIT, unit));
    TRY(lower_spec(l, s, GATHER_SPEC_ITEMS, grid.items));
    TRY(lower_spec(l, s, GATHER_SPEC_WIDE, lower_in(l, 1)->type == BRAID_INT64));
    return add_operands(l, s, offsetof(row_gather, data), offsetof(row_gather, index), offsetof(row_gather, target));
}

/* Index dims that run on in the data, too, are joined; the axis stays apart. */
static int gather_each_dims(const tensor_type *data, const tensor_type *index, int axis, row_gather_each *row) {
    int64_t strides[BRAID_MAX_RANK], dims[BRAID_MAX_RANK], steps[BRAID_MAX_RANK];
    int n = 0;
    region_strides(data->rank, data->dims, strides);
    for (int d = 0; d < index->rank; d++) {
        int64_t stride = d == axis ? 0 : strides[d];
        if (n && steps[n - 1] == index->dims[d] * stride) {
            dims[n - 1] *= index->dims[d];
            steps[n - 1] = stride;
        } else {
            dims[n] = index->dims[d];
            steps[n++] = stride;
        }
    }
    for (int d = 0; d < GATHER_RANK; d++) row->dims[d] = 1;
    for (int d = 0; d < n; d++) {
        row->dims[GATHER_RANK - n + d] = (uint)dims[d];
        divide_prepare((uint)dims[d], &row->magic[GATHER_RANK - n + d], &row->shift[GATHER_RANK - n + d]);
        row->strides[GATHER_RANK - n + d] = (uint)steps[d];
    }
    row->axis_dim = (uint)data->dims[axis];
    row->axis_stride = (uint)strides[axis];
    return n;
}

braid_status gather_elements_lower(lowering *l) {
    const tensor_type *data = lower_in(l, 0), *index = lower_in(l, 1);
    row_gather_each row = {0};
    uint32_t bytes;
    int axis;
    int64_t parts, count = count_of(index);
    TRY(axis_normalise(node_int(l->node, "axis", 0), data->rank, &axis, l->err));
    if (!move_element(data->type, &bytes, &parts) || parts != 1) return BRAID_UNSUPPORTED;
    if (count == 0) return BRAID_OK;
    if (!small(count) || !small(count_of(data)) || count_of(data) == 0) return BRAID_UNSUPPORTED;
    int rank = gather_each_dims(data, index, axis, &row);
    row.count = (uint)count;
    move_grid grid = move_grid_for(l->device, count);
    step *s = lower_step(l, MOVE_KERNEL("gather_each", bytes), &row, sizeof row, grid.tiles, grid.group);
    if (!s) return error_memory(l->err);
    s->bytes = 2 * (uint64_t)count * bytes;
    TRY(lower_spec(l, s, GATHER_EACH_SPEC_RANK, (uint32_t)rank));
    TRY(lower_spec(l, s, GATHER_SPEC_ITEMS, grid.items));
    TRY(lower_spec(l, s, GATHER_SPEC_WIDE, lower_in(l, 1)->type == BRAID_INT64));
    return add_operands(l, s, offsetof(row_gather_each, data), offsetof(row_gather_each, index),
                        offsetof(row_gather_each, target));
}
