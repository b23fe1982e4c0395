/*
 * norm.c: LayerNormalization, RMSNormalization, InstanceNormalization, GroupNormalization, LpNormalization and
 * MeanVarianceNormalization. All are rows with a mean and a spread, then scale and bias; they differ in what a row is
 * and in which scale belongs to an element.
 *
 * The spread is taken around the mean in a second pass: E(x^2) - E(x)^2 loses every digit when the mean is large.
 */
#include "ops/norm.h"

#include <math.h>

static bool is(const node *n, const char *type) { return strcmp(n->type, type) == 0; }

/* -------------------------------------------------------------------------------------------------- infer */

static bool float_number(int64_t t) {
    return t == BRAID_FLOAT32 || t == BRAID_FLOAT16 || t == BRAID_FLOAT64 || t == BRAID_BFLOAT16;
}

static braid_status stash_type(const node *n, braid_type *out, braid_error *err) {
    int64_t t = node_int(n, "stash_type", BRAID_FLOAT32);
    if (!float_number(t)) return error_set(err, BRAID_MODEL, "stash_type %lld is no float type", (long long)t);
    *out = (braid_type)t;
    return BRAID_OK;
}

/* Scale or bias against X, where dims are numbers. */
static braid_status check_broadcast(infer *c, int i) {
    const tensor_type *x = c->in[0], *s = infer_has(c, i) ? c->in[i] : NULL;
    if (!s || s->rank < 0 || x->rank < 0) return BRAID_OK;
    if (s->rank > x->rank)
        return error_set(c->err, BRAID_SHAPE, "input %d: rank %d, at most %d fits", i, s->rank, x->rank);
    for (int d = 0; d < s->rank; d++) {
        int64_t want = x->dims[x->rank - s->rank + d], got = s->dims[d];
        if (dim_known(want) && dim_known(got) && got != 1 && got != want)
            return error_set(c->err, BRAID_SHAPE, "input %d: dim %d is %lld, expected 1 or %lld", i, d, (long long)got,
                             (long long)want);
    }
    return BRAID_OK;
}

static braid_status same_float_types(infer *c, int first, int last) {
    for (int i = first; i < last; i++) TRY(row_types(c, i, ROW_FLOATS));
    return BRAID_OK;
}

static braid_status layer_infer(infer *c) {
    braid_type stash = BRAID_FLOAT32;
    int axis;
    TRY(same_float_types(c, 0, 3));
    TRY(stash_type(c->node, &stash, c->err));
    TRY(infer_same(c));
    TRY(check_broadcast(c, 1));
    TRY(check_broadcast(c, 2));
    if (is(c->node, "RMSNormalization") && infer_has(c, 1)) c->out[0].type = c->in[1]->type;
    for (int i = 1; i < c->n_out; i++) c->out[i].type = stash;
    const tensor_type *x = c->in[0];
    if (x->rank < 0) return BRAID_OK;
    TRY(axis_normalise(node_int(c->node, "axis", -1), x->rank, &axis, c->err));
    for (int i = 1; i < c->n_out; i++) {
        c->out[i].rank = x->rank;
        for (int d = 0; d < x->rank; d++) c->out[i].dims[d] = d < axis ? x->dims[d] : 1;
    }
    return BRAID_OK;
}

/* Inputs 1 and 2 are vectors of `count` elements (when that is a number). */
static braid_status check_vectors(infer *c, int64_t count) {
    for (int i = 1; i <= 2; i++) {
        TRY(infer_rank(c, i, 1, 1));
        if (!infer_has(c, i) || c->in[i]->rank < 0) continue;
        int64_t got = c->in[i]->dims[0];
        if (dim_known(got) && dim_known(count) && got != count)
            return error_set(c->err, BRAID_SHAPE, "input %d: %lld elements, expected %lld", i, (long long)got,
                             (long long)count);
    }
    return BRAID_OK;
}

static braid_status channel_infer(infer *c) {
    TRY(same_float_types(c, 0, 3));
    TRY(infer_rank(c, 0, 2, BRAID_MAX_RANK));
    TRY(infer_same(c));
    int64_t channels = c->in[0]->rank < 0 ? infer_fresh(c) : c->in[0]->dims[1], count = channels;
    if (is(c->node, "GroupNormalization")) {
        braid_type stash = BRAID_FLOAT32;
        int64_t groups = node_int(c->node, "num_groups", 0);
        TRY(stash_type(c->node, &stash, c->err));
        if (groups < 1) return error_set(c->err, BRAID_MODEL, "num_groups is %lld", (long long)groups);
        if (dim_known(channels) && channels % groups != 0)
            return error_set(c->err, BRAID_SHAPE, "%lld channels do not divide into %lld groups", (long long)channels,
                             (long long)groups);
        if (node_int(c->node, "scale_per_group", 0)) count = groups;
    }
    return check_vectors(c, count);
}

static braid_status lp_infer(infer *c) {
    int axis;
    int64_t p = node_int(c->node, "p", 2);
    TRY(same_float_types(c, 0, 1));
    if (p != 1 && p != 2) return error_set(c->err, BRAID_MODEL, "p is %lld, expected 1 or 2", (long long)p);
    TRY(infer_same(c));
    if (c->in[0]->rank < 0) return BRAID_OK;
    return axis_normalise(node_int(c->node, "axis", -1), c->in[0]->rank, &axis, c->err);
}

static braid_status mvn_mask(const node *n, int rank, uint32_t *mask, braid_error *err) {
    static const int64_t standard[] = {0, 2, 3};
    const int64_t *axes = standard;
    int count = 3;
    if (node_attribute(n, "axes")) count = node_ints(n, "axes", &axes);
    if (count > rank) return error_set(err, BRAID_MODEL, "%d axes for rank %d", count, rank);
    return row_mask(count, axes, rank, mask, err);
}

static braid_status mvn_infer(infer *c) {
    uint32_t mask;
    TRY(same_float_types(c, 0, 1));
    TRY(infer_same(c));
    return c->in[0]->rank < 0 ? BRAID_OK : mvn_mask(c->node, c->in[0]->rank, &mask, c->err);
}

/* ------------------------------------------------------------------------------------------------ the job */

static braid_status layer_job(const node *n, const tensor_type *x, const tensor_type *scale, const tensor_type *bias,
                              norm_job *job, braid_error *err) {
    int64_t strides[ROW_EXTRA][BRAID_MAX_RANK], *extra[ROW_EXTRA] = {0};
    int axis;
    TRY(axis_normalise(node_int(n, "axis", -1), x->rank, &axis, err));
    if (scale) TRY(row_broadcast(scale, x->rank, x->dims, extra[0] = strides[0], "scale", err));
    if (bias) TRY(row_broadcast(bias, x->rank, x->dims, extra[1] = strides[1], "bias", err));
    uint32_t all = (1u << x->rank) - 1;
    job->kind = is(n, "RMSNormalization") ? NORM_RMS : NORM_STANDARD;
    row_view_extra(x->rank, x->dims, all & ~((1u << axis) - 1), extra, &job->view);
    return BRAID_OK;
}

/* X as [N, groups, channels of a group, spatial]. */
static braid_status channel_job(const node *n, const tensor_type *x, norm_job *job, braid_error *err) {
    int64_t channels = x->dims[1], groups = node_int(n, "num_groups", channels), spatial = 1;
    for (int d = 2; d < x->rank; d++) spatial *= x->dims[d];
    if (groups > 0 && channels % groups != 0)
        return error_set(err, BRAID_SHAPE, "%lld channels do not divide into %lld groups", (long long)channels,
                         (long long)groups);
    int64_t each = groups > 0 ? channels / groups : 1, dims[4] = {x->dims[0], groups, each, spatial};
    bool per_group = node_int(n, "scale_per_group", 0) != 0;
    int64_t strides[4] = {0, per_group ? 1 : each, per_group ? 0 : 1, 0};
    int64_t *const extra[ROW_EXTRA] = {strides, strides};
    job->kind = NORM_STANDARD;
    row_view_extra(4, dims, 12, extra, &job->view);
    return BRAID_OK;
}

braid_status norm_job_make(const node *n, const tensor_type *x, const tensor_type *scale, const tensor_type *bias,
                           norm_job *out, braid_error *err) {
    uint32_t mask;
    int axis;
    *out = (norm_job){.epsilon = (double)node_float(n, "epsilon", 1e-5f)};
    if (is(n, "InstanceNormalization") || is(n, "GroupNormalization")) return channel_job(n, x, out, err);
    if (is(n, "MeanVarianceNormalization")) {
        TRY(mvn_mask(n, x->rank, &mask, err));
        out->kind = NORM_MVN;
        out->epsilon = 1e-9;
    } else if (is(n, "LpNormalization")) {
        TRY(axis_normalise(node_int(n, "axis", -1), x->rank, &axis, err));
        out->kind = node_int(n, "p", 2) == 1 ? NORM_L1 : NORM_L2;
        mask = 1u << axis;
    } else {
        return layer_job(n, x, scale, bias, out, err);
    }
    row_view_make(x->rank, x->dims, mask, &out->view);
    return BRAID_OK;
}

/* --------------------------------------------------------------------------------------------------- eval */

/* Normalises v in place; *mean and *inverse are what LayerNormalization returns beside it. */
static void norm_row(const norm_job *job, double *v, double *mean, double *inverse) {
    int64_t n = job->view.length;
    double sum = 0, spread = 0, count = (double)n;
    bool centred = job->kind == NORM_STANDARD || job->kind == NORM_MVN;
    for (int64_t i = 0; centred && i < n; i++) sum += v[i];
    *mean = centred ? sum / count : 0;
    for (int64_t i = 0; i < n; i++) {
        v[i] -= *mean;
        spread += job->kind == NORM_L1 ? fabs(v[i]) : v[i] * v[i];
    }
    switch (job->kind) {
    case NORM_STANDARD:
    case NORM_RMS:
        *inverse = 1 / sqrt(spread / count + job->epsilon);
        break;
    case NORM_MVN:
        *inverse = 1 / (sqrt(spread / count) + job->epsilon);
        break;
    default:
        if (job->kind == NORM_L2) spread = sqrt(spread);
        *inverse = spread == 0 ? 0 : 1 / spread;
    }
    for (int64_t i = 0; i < n; i++) v[i] *= *inverse;
}

static void scale_row(const norm_job *job, int64_t row, const double *scale, const double *bias, double *v) {
    const row_view *w = &job->view;
    const row_axis *last = w->n_reduce ? &w->reduce[w->n_reduce - 1] : NULL;
    int64_t inner = last ? last->size : 1;
    int64_t at_scale = row_offset_extra(w->keep, w->n_keep, row, 0), at_bias = row_offset_extra(w->keep, w->n_keep, row, 1);
    for (int64_t r = 0; r < w->length; r += inner) {
        const double *s = scale ? scale + at_scale + row_offset_extra(w->reduce, w->n_reduce, r, 0) : NULL;
        const double *b = bias ? bias + at_bias + row_offset_extra(w->reduce, w->n_reduce, r, 1) : NULL;
        for (int64_t i = 0; i < inner; i++) {
            if (s) v[r + i] *= s[last ? i * last->extra[0] : 0];
            if (b) v[r + i] += b[last ? i * last->extra[1] : 0];
        }
    }
}

static braid_status norm_eval(eval *e) {
    const tensor *x = eval_in(e, 0), *scale = eval_in(e, 1), *bias = eval_in(e, 2);
    tensor *y, *side[3] = {0};
    norm_job job;
    TRY(norm_job_make(e->node, &x->type, scale ? &scale->type : NULL, bias ? &bias->type : NULL, &job, e->err));
    TRY(eval_output(e, 0, &y));
    for (int i = 1; i <= 2; i++)
        if (eval_wants(e, i)) TRY(eval_output(e, i, &side[i]));
    double *row = arena_array(e->memory, (size_t)job.view.length + 1, sizeof *row);
    double *s = scale ? row_doubles(e->memory, scale) : NULL, *b = bias ? row_doubles(e->memory, bias) : NULL;
    if (!row || (scale && !s) || (bias && !b)) return error_memory(e->err);
    for (int64_t r = 0; r < job.view.rows; r++) {
        int64_t base = row_offset(job.view.keep, job.view.n_keep, r);
        double mean, inverse;
        row_gather(x, base, &job.view, row);
        norm_row(&job, row, &mean, &inverse);
        if (s || b) scale_row(&job, r, s, b, row);
        row_scatter(y, base, &job.view, row);
        if (side[1]) element_set_f64(side[1]->type.type, side[1]->data, r, mean);
        if (side[2]) element_set_f64(side[2]->type.type, side[2]->data, r, inverse);
    }
    return BRAID_OK;
}

/* ------------------------------------------------------------------------------------------------- upgrade */

/* Below opset 21 scale and bias of GroupNormalization are per group. */
static braid_status group_upgrade(upgrade *u) {
    if (u->opset >= 21) {
        if (!node_attribute(u->node, "scale_per_group")) return BRAID_OK;
        return error_set(u->err, BRAID_MODEL, "unknown attribute 'scale_per_group'");
    }
    return node_add_int(u->g, u->node, "scale_per_group", 1) ? BRAID_OK : error_memory(u->err);
}

static const attribute_spec layer_attributes[] = {{"axis", ATTRIBUTE_INT, "-1"},
                                                  {"epsilon", ATTRIBUTE_FLOAT, "1e-5"},
                                                  {"stash_type", ATTRIBUTE_INT, "1"},
                                                  {0}};
static const attribute_spec instance_attributes[] = {{"epsilon", ATTRIBUTE_FLOAT, "1e-5"},
                                                     {"consumed_inputs", ATTRIBUTE_INTS, NULL},
                                                     {0}};
static const attribute_spec group_attributes[] = {{"num_groups", ATTRIBUTE_INT, NULL},
                                                  {"epsilon", ATTRIBUTE_FLOAT, "1e-5"},
                                                  {"stash_type", ATTRIBUTE_INT, "1"},
                                                  {"scale_per_group", ATTRIBUTE_INT, "0"},
                                                  {0}};
static const attribute_spec lp_attributes[] = {{"axis", ATTRIBUTE_INT, "-1"}, {"p", ATTRIBUTE_INT, "2"}, {0}};
static const attribute_spec mvn_attributes[] = {{"axes", ATTRIBUTE_INTS, "0, 2, 3"}, {0}};

#define NORM(title, opset, ins_min, ins_max, outs, list, hook, check)                                                 \
    {.name = title, .since = opset, .min_in = ins_min, .max_in = ins_max, .min_out = 1, .max_out = outs,              \
     .flags = OP_EPILOGUE, .attributes = list, .upgrade = hook, .infer = check, .eval = norm_eval, .lower = norm_lower}

const op norm_ops[] = {
    NORM("LayerNormalization", 17, 2, 3, 3, layer_attributes, NULL, layer_infer),
    NORM("RMSNormalization", 23, 2, 2, 1, layer_attributes, NULL, layer_infer),
    NORM("InstanceNormalization", 1, 3, 3, 1, instance_attributes, NULL, channel_infer),
    NORM("GroupNormalization", 18, 3, 3, 1, group_attributes, group_upgrade, channel_infer),
    NORM("LpNormalization", 1, 1, 1, 1, lp_attributes, NULL, lp_infer),
    NORM("MeanVarianceNormalization", 9, 1, 1, 1, mvn_attributes, NULL, mvn_infer),
    {0},
};
