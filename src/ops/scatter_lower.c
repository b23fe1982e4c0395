/*
 * scatter_lower.c: ScatterElements, ScatterND and TensorScatter on the GPU. No element is written twice: where updates
 * meet, the output element looks its updates up.
 *
 *   none        winner[slot] = last update (atomic maximum of the update's number), then each element is copied from
 *               the data or from the winner
 *   reductions  slot[update], then each element goes over the updates that may meet it: all of them for ScatterND, its
 *               line along the axis for ScatterElements. Quadratic; beyond a bound the host does it.
 */
#include "ops/scatter.h"
#include "kernels/lib/divide.h"
#include "kernels/rows/scatter.h"
#include "ops/lowering.h"

#include <stddef.h>

static bool small(int64_t n) { return n >= 0 && n < MOVE_MAX; }

static int64_t count_of(const tensor_type *t) {
    int64_t n;
    return tensor_type_count(t, &n) ? n : MOVE_MAX;
}

static braid_status spec_slots(lowering *l, step *s, const scatter_shape *sc, int rank, bool claim, uint32_t items) {
    TRY(lower_spec(l, s, SCATTER_SPEC_ITEMS, items));
    TRY(lower_spec(l, s, SCATTER_SPEC_WIDE, lower_in(l, 1)->type == BRAID_INT64));
    TRY(lower_spec(l, s, SCATTER_SPEC_DEPTH, (uint32_t)sc->depth));
    TRY(lower_spec(l, s, SCATTER_SPEC_RANK, (uint32_t)rank));
    return lower_spec(l, s, SCATTER_SPEC_CLAIM, claim);
}

/* The step that finds slots, into `scratch` of n words. */
static braid_status emit_slots(lowering *l, const scatter_shape *sc, int32_t scratch, int64_t n, bool claim) {
    const tensor_type *data = lower_in(l, 0), *index = lower_in(l, 1);
    row_scatter_slots row = {.updates = (uint)sc->updates};
    int64_t strides[BRAID_MAX_RANK];
    int rank = sc->each ? data->rank : 0;
    region_strides(sc->each ? data->rank : (int)sc->depth, data->dims, strides);
    for (int d = 0; d < rank; d++) {
        row.dims[SCATTER_RANK - rank + d] = (uint)index->dims[d];
        row.strides[SCATTER_RANK - rank + d] = d == sc->axis ? 0 : (uint)strides[d];
    }
    for (int k = 0; k < sc->depth; k++) {
        row.dims[k] = (uint)data->dims[k];
        row.strides[k] = (uint)strides[k];
    }
    if (sc->each) {
        row.axis_dim = (uint)data->dims[sc->axis];
        row.axis_stride = (uint)strides[sc->axis];
    }
    move_grid g = move_grid_for(l->device, sc->updates);
    step *s = lower_step(l, "scatter_slots", &row, sizeof row, g.tiles, g.group);
    if (!s) return error_memory(l->err);
    s->bytes = (uint64_t)sc->updates * 16;
    TRY(spec_slots(l, s, sc, rank, claim, g.items));
    TRY(lower_operand_in(l, s, offsetof(row_scatter_slots, index), 1));
    return lower_operand(l, s, offsetof(row_scatter_slots, slots), scratch, 0, (uint64_t)n * 4,
                         claim ? ACCESS_READ_WRITE : ACCESS_WRITE);
}

static braid_status emit_zeros(lowering *l, int32_t scratch, int64_t n) {
    static const uint32_t zero = 0;
    region fill = {0};
    region_add(&fill, n, 0, 1);
    return region_lower_storage(l, lower_constant(l, &zero, sizeof zero), scratch, BRAID_UINT32, &fill);
}

static braid_status emit_select(lowering *l, const scatter_shape *sc, int32_t winners, uint32_t bytes, int64_t parts) {
    int64_t slice = sc->slice * parts, count = sc->slots * slice;
    uint32_t unit = slice % (16 / bytes) ? 1 : 16 / bytes;
    row_scatter_select row = {.count = (uint)(count / unit), .slice = (uint)(slice / unit)};
    divide_prepare(row.slice, &row.slice_magic, &row.slice_shift);
    move_grid g = move_grid_for(l->device, row.count);
    step *s = lower_step(l, MOVE_KERNEL("scatter_select", bytes), &row, sizeof row, g.tiles, g.group);
    if (!s) return error_memory(l->err);
    s->bytes = 2 * (uint64_t)count * bytes;
    TRY(lower_spec(l, s, SCATTER_SPEC_ITEMS, g.items));
    TRY(lower_spec(l, s, SCATTER_SPEC_UNIT, unit));
    TRY(lower_operand_in(l, s, offsetof(row_scatter_select, data), 0));
    TRY(lower_operand_in(l, s, offsetof(row_scatter_select, updates), 2));
    TRY(lower_operand(l, s, offsetof(row_scatter_select, winners), winners, 0, (uint64_t)sc->slots * 4, ACCESS_READ));
    return lower_operand_out(l, s, offsetof(row_scatter_select, target), 0);
}

static braid_status lower_assign(lowering *l, const scatter_shape *sc) {
    uint32_t bytes;
    int64_t parts;
    if (!move_element(lower_in(l, 0)->type, &bytes, &parts)) return BRAID_UNSUPPORTED;
    if (!small(count_of(lower_in(l, 0)) * parts) || !small(count_of(lower_in(l, 2)) * parts)) return BRAID_UNSUPPORTED;
    int32_t winners = lower_scratch(l, (uint64_t)sc->slots * 4);
    if (winners < 0) return error_memory(l->err);
    TRY(emit_zeros(l, winners, sc->slots));
    TRY(emit_slots(l, sc, winners, sc->slots, true));
    return emit_select(l, sc, winners, bytes, parts);
}

static void reduce_row(const scatter_shape *sc, const tensor_type *data, const tensor_type *index,
                       row_scatter_reduce *row) {
    int64_t strides[BRAID_MAX_RANK];
    *row = (row_scatter_reduce){.count = (uint)(sc->slots * sc->slice), .slice = (uint)sc->slice,
                                .candidates = (uint)sc->updates, .candidate_stride = 1};
    if (!sc->each) return;
    region_strides(index->rank, index->dims, strides);
    row->candidates = (uint)index->dims[sc->axis];
    row->candidate_stride = (uint)strides[sc->axis];
    for (int d = 0; d < data->rank; d++) {
        int at = SCATTER_RANK - data->rank + d;
        row->dims[at] = (uint)data->dims[d];
        row->limits[at] = d == sc->axis ? UINT32_MAX : (uint)index->dims[d];
        row->strides[at] = d == sc->axis ? 0 : (uint)strides[d];
    }
}

static bool reducible(braid_type type) {
    return (type_is_float(type) && type != BRAID_FLOAT64) || type_is_integer(type) || type == BRAID_BOOL;
}

static braid_status lower_reduce(lowering *l, const scatter_shape *sc) {
    row_scatter_reduce row;
    const tensor_type *data = lower_in(l, 0);
    reduce_row(sc, data, lower_in(l, 1), &row);
    int64_t work, bound = (int64_t)1 << (l->device->software ? 28 : 34);
    if (!reducible(data->type) || !i64_mul(row.count, row.candidates, &work) || work > bound) return BRAID_UNSUPPORTED;
    if (l->device->software && row.candidates >= 1 << 16) return BRAID_UNSUPPORTED;
    int32_t slots = lower_scratch(l, (uint64_t)sc->updates * 4);
    if (slots < 0) return error_memory(l->err);
    TRY(emit_slots(l, sc, slots, sc->updates, false));
    move_grid g = move_grid_for(l->device, row.count);
    step *s = lower_step(l, "scatter_reduce", &row, sizeof row, g.tiles, g.group);
    if (!s) return error_memory(l->err);
    s->bytes = (uint64_t)work * 4 / (l->device->software ? 1 : 8);
    s->flops = (uint64_t)work;
    TRY(lower_spec(l, s, SCATTER_SPEC_ITEMS, g.items));
    TRY(lower_spec(l, s, SCATTER_SPEC_RANK, sc->each ? (uint32_t)data->rank : 0));
    TRY(lower_spec(l, s, SCATTER_SPEC_TYPE, (uint32_t)data->type));
    TRY(lower_spec(l, s, SCATTER_SPEC_HOW, (uint32_t)sc->how));
    TRY(lower_operand_in(l, s, offsetof(row_scatter_reduce, data), 0));
    TRY(lower_operand_in(l, s, offsetof(row_scatter_reduce, updates), 2));
    TRY(lower_operand(l, s, offsetof(row_scatter_reduce, slots), slots, 0, (uint64_t)sc->updates * 4, ACCESS_READ));
    return lower_operand_out(l, s, offsetof(row_scatter_reduce, target), 0);
}

/* Without updates the output is the data. */
static void copy_region(const node *n, const tensor_type *in, const tensor_type *out, region *r) {
    (void)n;
    region_add(r, count_of(in), 1, 1);
    (void)out;
}

/* An indexed axis without elements: any index is out of range, and the host says so. */
static bool has_empty_axis(const scatter_shape *sc, const tensor_type *data) {
    if (sc->each) return data->dims[sc->axis] == 0;
    for (int k = 0; k < sc->depth; k++)
        if (data->dims[k] == 0) return true;
    return false;
}

braid_status scatter_lower(lowering *l) {
    const tensor_type *data = lower_in(l, 0), *index = lower_in(l, 1);
    scatter_shape sc;
    TRY(scatter_describe(l->node, data, index, &sc, l->err));
    if (!small(count_of(data)) || !small(count_of(index)) || !small(count_of(lower_in(l, 2)))) return BRAID_UNSUPPORTED;
    if (sc.updates == 0) return region_lower_one(l, copy_region);
    if (has_empty_axis(&sc, data)) return BRAID_UNSUPPORTED;
    if (count_of(data) == 0) return BRAID_OK;
    return sc.how == SCATTER_NONE ? lower_assign(l, &sc) : lower_reduce(l, &sc);
}

braid_status tensor_scatter_lower(lowering *l) {
    const tensor_type *past = lower_in(l, 0), *update = lower_in(l, 1);
    uint32_t bytes;
    int64_t parts, inner = 1, rows = 1, count = count_of(past);
    int axis;
    if (!move_element(past->type, &bytes, &parts)) return BRAID_UNSUPPORTED;
    if (count == 0) return BRAID_OK;
    if (!small(count * parts) || !small(count_of(update) * parts)) return BRAID_UNSUPPORTED;
    TRY(axis_normalise(node_int(l->node, "axis", -2), past->rank, &axis, l->err));
    for (int d = axis + 1; d < past->rank; d++) inner *= past->dims[d];
    for (int d = 1; d < axis; d++) rows *= past->dims[d];
    inner *= parts;
    uint32_t unit = inner % (16 / bytes) ? 1 : 16 / bytes;
    row_tensor_scatter row = {.count = (uint)(count * parts / unit), .inner = (uint)(inner / unit),
                              .cache = (uint)past->dims[axis], .fresh = (uint)update->dims[axis], .rows = (uint)rows};
    divide_prepare(row.inner, &row.inner_magic, &row.inner_shift);
    divide_prepare(row.cache, &row.cache_magic, &row.cache_shift);
    move_grid g = move_grid_for(l->device, row.count);
    step *s = lower_step(l, MOVE_KERNEL("tensor_scatter", bytes), &row, sizeof row, g.tiles, g.group);
    if (!s) return error_memory(l->err);
    s->bytes = 2 * (uint64_t)(count * parts) * bytes;
    const tensor_type *index = lower_in(l, 2);
    TRY(lower_spec(l, s, SCATTER_SPEC_ITEMS, g.items));
    TRY(lower_spec(l, s, SCATTER_SPEC_WIDE, !index || index->type == BRAID_INT64));
    TRY(lower_spec(l, s, SCATTER_SPEC_UNIT, unit));
    TRY(lower_spec(l, s, SCATTER_SPEC_CIRCULAR, strcmp(node_string(l->node, "mode", "linear"), "circular") == 0));
    TRY(lower_operand_in(l, s, offsetof(row_tensor_scatter, past), 0));
    TRY(lower_operand_in(l, s, offsetof(row_tensor_scatter, update), 1));
    TRY(lower_operand_in(l, s, offsetof(row_tensor_scatter, index), 2));
    return lower_operand_out(l, s, offsetof(row_tensor_scatter, target), 0);
}
