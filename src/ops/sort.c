/*
 * sort.c: TopK. Elements are ordered by (value, index): of equal values the lower index comes first, whether largest or
 * smallest are wanted. NaN is greater than everything, -0 equals 0. The result is always sorted.
 */
#include "ops/sort.h"
#include "ops/upgrade.h"

#include <stdlib.h>

static braid_status top_infer(infer *c) {
    int axis, count;
    const int64_t *k;
    const tensor_type *x = c->in[0];
    TRY(row_types(c, 0, ROW_FLOATS | ROW_INTEGERS));
    TRY(row_types(c, 1, ROW_TYPE(INT64)));
    TRY(infer_rank(c, 1, 0, 1));
    c->out[0] = *x;
    if (c->n_out > 1) {
        c->out[1] = *x;
        c->out[1].type = BRAID_INT64;
    }
    if (x->rank < 0) return BRAID_OK;
    TRY(axis_normalise(node_int(c->node, "axis", -1), x->rank, &axis, c->err));
    int64_t dim = x->dims[axis], wanted;
    if (infer_ints(c, 1, &count, &k)) {
        if (count != 1) return error_set(c->err, BRAID_SHAPE, "input 1: %d elements, expected 1", count);
        wanted = k[0];
        if (dim_known(wanted) && (wanted < 0 || (dim_known(dim) && wanted > dim)))
            return error_set(c->err, BRAID_SHAPE, "k is %lld, the axis has %lld elements", (long long)wanted,
                             (long long)(dim_known(dim) ? dim : -1));
    } else {
        wanted = infer_fresh(c);
    }
    for (int i = 0; i < c->n_out && i < 2; i++) c->out[i].dims[axis] = wanted;
    return BRAID_OK;
}

/* An element as a number whose unsigned order is the order of the operator. */
static uint64_t key_f64(double v) {
    uint64_t bits;
    if (v != v) return UINT64_MAX;
    v += 0.0; /* -0 becomes 0 */
    memcpy(&bits, &v, sizeof bits);
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

typedef struct item {
    uint64_t key;
    int64_t at;
} item;

static int compare_items(const void *a, const void *b) {
    const item *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* row: the elements (doubles or int64) of a row. Afterwards items[0..k) are the answer, in order. */
static void select_row(const tensor *x, const void *row, int64_t n, bool largest, item *items) {
    bool floats = type_is_float(x->type.type), is_unsigned = type_is_unsigned(x->type.type);
    for (int64_t i = 0; i < n; i++) {
        uint64_t key = floats ? key_f64(((const double *)row)[i]) : ((const uint64_t *)row)[i];
        if (!floats && !is_unsigned) key ^= (uint64_t)1 << 63;
        items[i] = (item){largest ? ~key : key, i};
    }
    qsort(items, (size_t)n, sizeof *items, compare_items);
}

static braid_status top_eval(eval *e) {
    const tensor *x = eval_in(e, 0);
    tensor *values, *indices;
    int axis;
    TRY(axis_normalise(node_int(e->node, "axis", -1), x->type.rank, &axis, e->err));
    TRY(eval_output(e, 0, &values));
    TRY(eval_output_shaped(e, 1, BRAID_INT64, values->type.rank, values->type.dims, &indices));
    row_view in, out;
    row_view_make(x->type.rank, x->type.dims, 1u << axis, &in);
    row_view_make(x->type.rank, values->type.dims, 1u << axis, &out);
    int64_t *row = arena_array(e->memory, (size_t)in.length + 1, sizeof *row);
    int64_t *best = arena_array(e->memory, (size_t)in.length + 1, sizeof *best);
    item *items = arena_array(e->memory, (size_t)in.length + 1, sizeof *items);
    if (!row || !best || !items) return error_memory(e->err);
    bool floats = type_is_float(x->type.type), largest = node_int(e->node, "largest", 1) != 0;
    for (int64_t r = 0; r < in.rows; r++) {
        int64_t from = row_offset(in.keep, in.n_keep, r), to = row_offset(out.keep, out.n_keep, r);
        if (floats) row_gather(x, from, &in, (double *)row);
        else row_gather_i64(x, from, &in, row);
        select_row(x, row, in.length, largest, items);
        for (int64_t i = 0; i < out.length; i++) best[i] = row[items[i].at];
        if (floats) row_scatter(values, to, &out, (double *)best);
        else row_scatter_i64(values, to, &out, best);
        for (int64_t i = 0; i < out.length; i++) best[i] = items[i].at;
        row_scatter_i64(indices, to, &out, best);
    }
    return BRAID_OK;
}

/* k was an attribute below opset 10. */
static braid_status top_upgrade(upgrade *u) {
    if (u->opset >= 10) {
        if (node_attribute(u->node, "k")) return error_set(u->err, BRAID_MODEL, "attribute 'k' is an input since opset 10");
        return upgrade_has(u, 1) ? BRAID_OK : error_set(u->err, BRAID_MODEL, "no k");
    }
    if (!node_attribute(u->node, "k")) return error_set(u->err, BRAID_MODEL, "attribute 'k' is missing");
    return row_ints_to_input(u, "k", 1);
}

static const attribute_spec top_attributes[] = {{"axis", ATTRIBUTE_INT, "-1"},
                                                {"largest", ATTRIBUTE_INT, "1"},
                                                {"sorted", ATTRIBUTE_INT, "1"},
                                                {"k", ATTRIBUTE_INT, NULL},
                                                {0}};

const op sort_ops[] = {
    {.name = "TopK", .since = 1, .min_in = 1, .max_in = 2, .min_out = 1, .max_out = 2, .attributes = top_attributes,
     .upgrade = top_upgrade, .infer = top_infer, .eval = top_eval, .lower = top_lower},
    {0},
};
