/*
 * reduce_lower.c: steps of reductions.
 *
 * One step where the rows are many or short. Few long rows are cut into chunks, whose partial results a second step
 * joins in order:
 *
 *     x [rows, length] ─ stage 1 ─► partials [chunks, rows] ─ stage 2 ─► y [rows]
 *
 * The number of chunks is a function of the view and the device, so sums are taken in one order always.
 */
#include "ops/reduce.h"

#include "kernels/rows/reduce.h"
#include "ops/row_lower.h"

#include <stddef.h>

/* A reduction on its way into steps. */
typedef struct reduce_plan {
    const char *kernel;
    reduce_kind kind;
    double p;
    braid_type type_x, type_y;
    uint32_t flags;
    int64_t total; /* elements of a whole row */
} reduce_plan;

/* Integers have no kernel for kinds that end in a root or logarithm, doubles none for powers. */
static const char *kernel_for(braid_type t, reduce_kind kind, const device_traits *d) {
    bool logarithm = kind == REDUCE_LOG_SUM || kind == REDUCE_LOG_SUM_EXP || kind == REDUCE_LP;
    if (row_is_float(t)) return "reduce_float";
    if (t == BRAID_FLOAT64) return d->float64 && kind != REDUCE_LP ? "reduce_double" : NULL;
    if (!type_is_integer(t) && t != BRAID_BOOL) return NULL;
    return logarithm || kind == REDUCE_L2 ? NULL : "reduce_int";
}

static braid_status add_step(lowering *l, const reduce_plan *r, const row_view *v, const row_layout *layout,
                             uint32_t stage, uint64_t chunk, uint64_t chunks, step **out) {
    row_reduce row = {.chunk = (uint)chunk, .chunks = (uint)chunks, .total = (uint)r->total, .p = (float)r->p};
    if (!row_pack(v, &row.view) || layout->tiles * chunks > INT32_MAX) return BRAID_UNSUPPORTED;
    step *s = lower_step(l, r->kernel, &row, sizeof row, layout->tiles * chunks, layout->group);
    if (!s) return BRAID_HOST_MEMORY;
    s->latency = ROW_LATENCY;
    TRY(row_layout_spec(l, s, layout, v));
    TRY(lower_spec(l, s, SPEC_KIND, r->kind));
    TRY(lower_spec(l, s, SPEC_TYPE_X, r->type_x));
    TRY(lower_spec(l, s, SPEC_TYPE_Y, r->type_y));
    TRY(lower_spec(l, s, SPEC_STAGE, stage));
    TRY(lower_spec(l, s, SPEC_FLAGS, r->flags));
    s->flops = (uint64_t)(v->rows * v->length);
    *out = s;
    return BRAID_OK;
}

/* Chunks of a row: enough workgroups to fill the device, each with enough to do. */
static uint64_t count_chunks(const device_traits *d, const row_view *v, const row_layout *layout, uint64_t *chunk) {
    uint64_t length = (uint64_t)v->length, least = layout->adjacent ? 4096 : 256;
    uint64_t wanted = 2 * (uint64_t)d->cores, unit = (uint64_t)layout->team * (layout->vector ? 4 : 1);
    if (least < 16 * unit) least = 16 * unit;
    uint64_t chunks = layout->tiles ? (wanted + layout->tiles - 1) / layout->tiles : 1;
    if (chunks > length / least) chunks = length / least;
    if (chunks < 2) {
        *chunk = length;
        return 1;
    }
    *chunk = (length + chunks - 1) / chunks;
    *chunk = (*chunk + unit - 1) / unit * unit;
    return (length + *chunk - 1) / *chunk;
}

static braid_status whole(lowering *l, const reduce_plan *r, const row_view *v, const row_layout *layout) {
    step *s;
    TRY(add_step(l, r, v, layout, 0, (uint64_t)v->length, 1, &s));
    TRY(row_read(l, s, offsetof(row_reduce, x), 0));
    TRY(row_write(l, s, offsetof(row_reduce, y), 0));
    return row_epilogue(l, s, offsetof(row_reduce, cols), offsetof(row_reduce, e));
}

static braid_status chunked(lowering *l, const reduce_plan *r, const row_view *v, const row_layout *layout,
                            uint64_t chunk, uint64_t chunks) {
    bool wide = strcmp(r->kernel, "reduce_float") != 0;
    uint64_t bytes = (uint64_t)v->rows * chunks * (wide ? REDUCE_PARTIAL_WIDE : REDUCE_PARTIAL_FLOAT);
    int64_t rows = v->rows;
    step *s;
    row_layout second;
    row_view partials = {.n_keep = rows > 1, .n_reduce = 1, .rows = rows, .length = (int64_t)chunks,
                         .keep = {{.size = rows, .stride = 1}}, .reduce = {{.size = (int64_t)chunks, .stride = rows}}};
    int32_t scratch = lower_scratch(l, bytes);
    TRY(add_step(l, r, v, layout, 1, chunk, chunks, &s));
    TRY(row_read(l, s, offsetof(row_reduce, x), 0));
    TRY(lower_operand(l, s, offsetof(row_reduce, y), scratch, 0, bytes, ACCESS_WRITE));
    row_layout_make(l->device, &partials, false, 0, &second);
    TRY(add_step(l, r, &partials, &second, 2, chunks, 1, &s));
    TRY(lower_operand(l, s, offsetof(row_reduce, x), scratch, 0, bytes, ACCESS_READ));
    TRY(row_write(l, s, offsetof(row_reduce, y), 0));
    return row_epilogue(l, s, offsetof(row_reduce, cols), offsetof(row_reduce, e));
}

static braid_status lower_view(lowering *l, reduce_plan *r, const row_view *v) {
    row_layout layout;
    uint64_t chunk;
    rows_view packed;
    r->type_x = lower_in(l, 0)->type;
    r->type_y = lower_out(l, 0)->type;
    r->total = v->length;
    r->kernel = kernel_for(r->type_x, r->kind, l->device);
    if (l->node->epilogue && !row_is_float(r->type_x)) return BRAID_UNSUPPORTED;
    if (!r->kernel || !row_pack(v, &packed)) return BRAID_UNSUPPORTED;
    if (v->rows == 0) return BRAID_OK;
    if (type_is_unsigned(r->type_x) || r->type_x == BRAID_BOOL) r->flags |= REDUCE_FLAG_UNSIGNED;
    row_layout_make(l->device, v, row_is_float(r->type_x) && row_vector(v), 0, &layout);
    uint64_t chunks = count_chunks(l->device, v, &layout, &chunk);
    return chunks > 1 ? chunked(l, r, v, &layout, chunk, chunks) : whole(l, r, v, &layout);
}

/* Over one element each, these kinds change nothing. */
static bool is_identity(reduce_kind kind, const row_view *v) { return v->length == 1 && kind <= REDUCE_PROD; }

braid_status reduce_lower(lowering *l) {
    const tensor_type *x = lower_in(l, 0);
    uint32_t mask;
    row_view view;
    reduce_plan r = {.kind = reduce_kind_of(l->node), .p = (double)node_int(l->node, "p", 2)};
    const tensor *axes = NULL;
    if (row_in(l, 1)) TRY(lower_constant_in(l, 1, &axes));
    if (!axes && row_in(l, 1)) return BRAID_UNSUPPORTED;
    TRY(reduce_axes_mask(l->node, x->rank, axes, &mask, l->err));
    row_view_make(x->rank, x->dims, mask, &view);
    if (is_identity(r.kind, &view) && !l->node->epilogue) return lower_alias(l, 0, 0);
    return lower_view(l, &r, &view);
}

braid_status arg_lower(lowering *l) {
    const tensor_type *x = lower_in(l, 0);
    row_view view;
    int axis;
    reduce_plan r = {.kind = reduce_kind_of(l->node)};
    if (node_int(l->node, "select_last_index", 0)) r.flags = REDUCE_FLAG_LAST;
    TRY(axis_normalise(node_int(l->node, "axis", 0), x->rank, &axis, l->err));
    row_view_make(x->rank, x->dims, 1u << axis, &view);
    return lower_view(l, &r, &view);
}
