/*
 * arg.c: ArgMax and ArgMin. A NaN counts as the extreme value of both; of equal elements the first wins, or the last
 * with select_last_index.
 */
#include "ops/reduce.h"

#include <math.h>

static braid_status arg_infer(infer *c) {
    const tensor_type *in = c->in[0];
    int axis;
    TRY(row_types(c, 0, ROW_FLOATS | ROW_INTEGERS));
    c->out[0].type = BRAID_INT64;
    if (in->rank < 0) return BRAID_OK;
    TRY(axis_normalise(node_int(c->node, "axis", 0), in->rank, &axis, c->err));
    if (in->dims[axis] == 0) return error_set(c->err, BRAID_SHAPE, "axis %d has no elements", axis);
    bool keep = node_int(c->node, "keepdims", 1) != 0;
    c->out[0].rank = 0;
    for (int d = 0; d < in->rank; d++)
        if (d != axis || keep) c->out[0].dims[c->out[0].rank++] = d == axis ? 1 : in->dims[d];
    return BRAID_OK;
}

/* Running extremes of up to ROW_RUN rows. */
typedef struct extremes {
    bool smallest, last, integers, is_unsigned;
    double f[ROW_RUN];
    int64_t i[ROW_RUN], at[ROW_RUN];
} extremes;

static bool beats_f64(const extremes *s, double x, double best) {
    if (isnan(x) || isnan(best)) return isnan(x) && (!isnan(best) || s->last);
    return s->smallest ? x < best || (s->last && x == best) : x > best || (s->last && x == best);
}

static bool beats_i64(const extremes *s, int64_t x, int64_t best) {
    if (x == best) return s->last;
    bool less = s->is_unsigned ? (uint64_t)x < (uint64_t)best : x < best;
    return less == s->smallest;
}

/* Shows element `at` of rows 0..n-1. */
static void extremes_show(extremes *s, const tensor *x, int64_t base, int64_t n, int64_t at) {
    union {
        double f[ROW_RUN];
        int64_t i[ROW_RUN];
    } run;
    if (s->integers) {
        row_load_i64(x, base, n, run.i);
        for (int64_t k = 0; k < n; k++)
            if (at == 0 || beats_i64(s, run.i[k], s->i[k])) s->i[k] = run.i[k], s->at[k] = at;
    } else {
        row_load_f64(x, base, n, run.f);
        for (int64_t k = 0; k < n; k++)
            if (at == 0 || beats_f64(s, run.f[k], s->f[k])) s->f[k] = run.f[k], s->at[k] = at;
    }
}

static braid_status arg_eval(eval *e) {
    const tensor *x = eval_in(e, 0);
    tensor *y;
    int axis;
    TRY(axis_normalise(node_int(e->node, "axis", 0), x->type.rank, &axis, e->err));
    TRY(eval_output(e, 0, &y));
    int64_t inner = 1, outer = 1, length = x->type.dims[axis];
    for (int d = 0; d < axis; d++) outer *= x->type.dims[d];
    for (int d = axis + 1; d < x->type.rank; d++) inner *= x->type.dims[d];
    extremes *s = arena_alloc(e->memory, sizeof *s);
    if (!s) return error_memory(e->err);
    s->smallest = reduce_kind_of(e->node) == REDUCE_ARG_MIN;
    s->last = node_int(e->node, "select_last_index", 0) != 0;
    s->integers = !type_is_float(x->type.type);
    s->is_unsigned = type_is_unsigned(x->type.type);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i += ROW_RUN) {
            int64_t n = inner - i < ROW_RUN ? inner - i : ROW_RUN;
            for (int64_t k = 0; k < length; k++) extremes_show(s, x, (o * length + k) * inner + i, n, k);
            row_store_i64(y, o * inner + i, n, s->at);
        }
    return BRAID_OK;
}

static const attribute_spec arg_attributes[] = {{"axis", ATTRIBUTE_INT, "0"},
                                                {"keepdims", ATTRIBUTE_INT, "1"},
                                                {"select_last_index", ATTRIBUTE_INT, "0"},
                                                {0}};

#define ARG(title)                                                                                                 \
    {.name = title, .since = 1, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1, .attributes = arg_attributes, \
     .infer = arg_infer, .eval = arg_eval, .lower = arg_lower}

const op arg_ops[] = {ARG("ArgMax"), ARG("ArgMin"), {0}};
