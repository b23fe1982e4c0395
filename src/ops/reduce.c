/*
 * reduce.c: ReduceSum and kin, and the global pools (reductions over the spatial axes).
 *
 * Canonical: `axes` is an input. An empty or absent list means all axes, or none with noop_with_empty_axes. Over no
 * elements: sum 0, product 1, maximum -inf or the type's least, minimum the opposite, logs -inf, mean NaN (integers 0).
 * NaN wins in Max and Min.
 */
#include "ops/reduce.h"

static const struct {
    const char *name;
    reduce_kind kind;
} kinds[] = {
    {"ReduceSum", REDUCE_SUM},       {"ReduceMean", REDUCE_MEAN},          {"ReduceMax", REDUCE_MAX},
    {"ReduceMin", REDUCE_MIN},       {"ReduceProd", REDUCE_PROD},          {"ReduceL1", REDUCE_L1},
    {"ReduceL2", REDUCE_L2},         {"ReduceLogSum", REDUCE_LOG_SUM},     {"ReduceLogSumExp", REDUCE_LOG_SUM_EXP},
    {"GlobalMaxPool", REDUCE_MAX},   {"ReduceSumSquare", REDUCE_SUM_SQUARE}, {"GlobalAveragePool", REDUCE_MEAN},
    {"GlobalLpPool", REDUCE_LP},     {"ArgMax", REDUCE_ARG_MAX},           {"ArgMin", REDUCE_ARG_MIN},
};

reduce_kind reduce_kind_of(const node *n) {
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        if (strcmp(kinds[i].name, n->type) == 0) return kinds[i].kind;
    return REDUCE_SUM;
}

static bool is_global_pool(const node *n) { return n->type[0] == 'G'; }

static uint32_t all_axes(int rank) { return (1u << rank) - 1; }

static braid_status axes_mask(const node *n, int rank, int count, const int64_t *axes, uint32_t *mask,
                              braid_error *err) {
    if (is_global_pool(n)) {
        *mask = all_axes(rank) & ~3u;
        return BRAID_OK;
    }
    if (count > 0) return row_mask(count, axes, rank, mask, err);
    *mask = node_int(n, "noop_with_empty_axes", 0) ? 0 : all_axes(rank);
    return BRAID_OK;
}

braid_status reduce_axes_mask(const node *n, int rank, const tensor *axes, uint32_t *mask, braid_error *err) {
    int64_t list[BRAID_MAX_RANK], count = axes ? row_count(axes) : 0;
    if (count > rank) return error_set(err, BRAID_MODEL, "%lld axes for rank %d", (long long)count, rank);
    if (count > 0) row_load_i64(axes, 0, count, list);
    return axes_mask(n, rank, (int)count, list, mask, err);
}

/* -------------------------------------------------------------------------------------------------- infer */

static void reduced_type(const tensor_type *in, uint32_t mask, bool keep, tensor_type *out) {
    out->rank = 0;
    for (int d = 0; d < in->rank; d++) {
        bool reduced = mask >> d & 1u;
        if (!reduced || keep) out->dims[out->rank++] = reduced ? 1 : in->dims[d];
    }
}

/* The axes are not known: every dim may be gone or 1. */
static void reduced_unknown(infer *c, bool keep) {
    const tensor_type *in = c->in[0], *axes = c->in[1];
    int rank = keep ? in->rank : -1;
    if (!keep && axes->rank == 1 && dim_known(axes->dims[0]) && axes->dims[0] > 0 && axes->dims[0] <= in->rank)
        rank = in->rank - (int)axes->dims[0];
    c->out[0].rank = rank;
    for (int d = 0; d < rank; d++) c->out[0].dims[d] = infer_fresh(c);
}

/* One more followed element for Sum, Prod, Max or Min; false where the result cannot be followed. */
static bool follow(infer *c, reduce_kind kind, int64_t v, int64_t *acc) {
    if (dim_is_symbol(v) || dim_is_symbol(*acc)) {
        int64_t unit = kind == REDUCE_PROD ? 1 : 0;
        if (kind != REDUCE_PROD && kind != REDUCE_SUM) return false;
        *acc = v == unit ? *acc : *acc == unit ? v : infer_fresh(c);
        return true;
    }
    int64_t next = v;
    if (kind == REDUCE_SUM && !i64_add(*acc, v, &next)) return false;
    if (kind == REDUCE_PROD && !i64_mul(*acc, v, &next)) return false;
    if (kind == REDUCE_MAX && *acc > v) next = *acc;
    if (kind == REDUCE_MIN && *acc < v) next = *acc;
    *acc = next;
    return dim_known(next);
}

static bool fits(braid_type t, int64_t v) {
    return t == BRAID_INT64 || dim_is_symbol(v) || (t == BRAID_INT32 && v >= INT32_MIN && v <= INT32_MAX);
}

/* Followed values: exporters compute shapes with ReduceProd and kin. */
static void follow_values(infer *c, uint32_t mask) {
    int count;
    const int64_t *v;
    reduce_kind kind = reduce_kind_of(c->node);
    braid_type t = c->in[0]->type;
    bool followable = kind == REDUCE_SUM || kind == REDUCE_PROD || kind == REDUCE_MAX || kind == REDUCE_MIN;
    if (!followable || (t != BRAID_INT64 && t != BRAID_INT32) || c->in[0]->rank > 1) return;
    if (!infer_ints(c, 0, &count, &v)) return;
    if (!mask) {
        c->out_known[0] = (followed){count, v};
        return;
    }
    int64_t *acc = arena_alloc(c->g->memory, sizeof *acc);
    if (!acc || (count == 0 && kind >= REDUCE_MAX && kind <= REDUCE_MIN)) return;
    *acc = count > 0 ? v[0] : kind == REDUCE_PROD;
    for (int i = 1; i < count; i++)
        if (!follow(c, kind, v[i], acc)) return;
    if (fits(t, *acc)) c->out_known[0] = (followed){1, acc};
}

static bool all_numbers(int count, const int64_t *v) {
    for (int i = 0; i < count; i++)
        if (dim_is_symbol(v[i])) return false;
    return true;
}

static uint64_t reduce_types(const node *n) {
    reduce_kind kind = reduce_kind_of(n);
    if (is_global_pool(n)) return ROW_FLOATS;
    return ROW_FLOATS | ROW_INTEGERS | (kind == REDUCE_MAX || kind == REDUCE_MIN ? ROW_TYPE(BOOL) : 0);
}

static braid_status reduce_infer(infer *c) {
    const tensor_type *in = c->in[0];
    bool keep = node_int(c->node, "keepdims", 1) != 0, has_axes = infer_has(c, 1);
    TRY(row_types(c, 0, reduce_types(c->node)));
    TRY(row_types(c, 1, ROW_TYPE(INT64)));
    TRY(infer_rank(c, 1, 0, 1));
    c->out[0].type = in->type;
    if (in->rank < 0) return BRAID_OK;
    int count = 0;
    const int64_t *axes = NULL;
    if (has_axes && (!infer_ints(c, 1, &count, &axes) || !all_numbers(count, axes))) {
        reduced_unknown(c, keep);
        return BRAID_OK;
    }
    uint32_t mask;
    TRY(axes_mask(c->node, in->rank, count, axes, &mask, c->err));
    reduced_type(in, mask, keep, &c->out[0]);
    follow_values(c, mask);
    return BRAID_OK;
}

static braid_status global_infer(infer *c) {
    if (strcmp(c->node->type, "GlobalLpPool") == 0 && node_int(c->node, "p", 2) < 1)
        return error_set(c->err, BRAID_MODEL, "p is %lld, expected 1 or more", (long long)node_int(c->node, "p", 2));
    TRY(row_types(c, 0, ROW_FLOATS));
    TRY(infer_rank(c, 0, 2, BRAID_MAX_RANK));
    c->out[0].type = c->in[0]->type;
    if (c->in[0]->rank >= 0) reduced_type(c->in[0], all_axes(c->in[0]->rank) & ~3u, true, &c->out[0]);
    return BRAID_OK;
}

/* --------------------------------------------------------------------------------------------------- eval */

static braid_status reduce_node_eval(eval *e) {
    const tensor *x = eval_in(e, 0);
    tensor *y;
    uint32_t mask;
    reduce_job job = {.kind = reduce_kind_of(e->node), .p = (double)node_int(e->node, "p", 2)};
    TRY(reduce_axes_mask(e->node, x->type.rank, eval_in(e, 1), &mask, e->err));
    row_view_make(x->type.rank, x->type.dims, mask, &job.view);
    TRY(eval_output(e, 0, &y));
    return reduce_eval(&job, x, y, e->memory, e->err);
}

/* ------------------------------------------------------------------------------------------------- upgrade */

/* `axes` became an input at opset 13 of ReduceSum, 18 of the others. */
static braid_status reduce_upgrade(upgrade *u) {
    int since = strcmp(u->node->type, "ReduceSum") == 0 ? 13 : 18;
    if (u->opset < since) return row_ints_to_input(u, "axes", 1);
    if (node_attribute(u->node, "axes"))
        return error_set(u->err, BRAID_MODEL, "attribute 'axes' is an input since opset %d", since);
    return BRAID_OK;
}

/* p was a float in opset 1. */
static braid_status lp_upgrade(upgrade *u) {
    attribute *p = NULL;
    for (int i = 0; i < u->node->n_attributes; i++)
        if (strcmp(u->node->attributes[i].name, "p") == 0) p = &u->node->attributes[i];
    if (!p || p->kind != ATTRIBUTE_FLOAT) return BRAID_OK;
    if (!(p->f >= 1 && p->f <= 1024) || p->f != (float)(int)p->f)
        return error_set(u->err, BRAID_UNSUPPORTED, "p is %g, expected a whole number from 1", (double)p->f);
    int64_t whole = (int64_t)p->f;
    p->kind = ATTRIBUTE_INT;
    p->i = whole;
    return BRAID_OK;
}

static const attribute_spec reduce_attributes[] = {{"keepdims", ATTRIBUTE_INT, "1"},
                                                   {"noop_with_empty_axes", ATTRIBUTE_INT, "0"},
                                                   {"axes", ATTRIBUTE_INTS, NULL},
                                                   {0}};
static const attribute_spec lp_attributes[] = {{"p", ATTRIBUTE_INT, "2"}, {"p", ATTRIBUTE_FLOAT, "2"}, {0}};

#define REDUCE(title)                                                                                                 \
    {.name = title, .since = 1, .min_in = 1, .max_in = 2, .min_out = 1, .max_out = 1, .attributes = reduce_attributes, \
     .flags = OP_EPILOGUE, .upgrade = reduce_upgrade, .infer = reduce_infer, .eval = reduce_node_eval, .lower = reduce_lower}
#define GLOBAL(title, list, hook)                                                                        \
    {.name = title, .since = 1, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1, .attributes = list, \
     .flags = OP_EPILOGUE, .upgrade = hook, .infer = global_infer, .eval = reduce_node_eval, .lower = reduce_lower}

const op reduce_ops[] = {
    REDUCE("ReduceSum"),
    REDUCE("ReduceMean"),
    REDUCE("ReduceMax"),
    REDUCE("ReduceMin"),
    REDUCE("ReduceProd"),
    REDUCE("ReduceL1"),
    REDUCE("ReduceL2"),
    REDUCE("ReduceLogSum"),
    REDUCE("ReduceLogSumExp"),
    REDUCE("ReduceSumSquare"),
    GLOBAL("GlobalAveragePool", NULL, NULL),
    GLOBAL("GlobalMaxPool", NULL, NULL),
    GLOBAL("GlobalLpPool", lp_attributes, lp_upgrade),
    {0},
};
