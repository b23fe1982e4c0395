/*
 * select.c: NonZero, Compress, Unique: shapes that depend on data, so there are no kernels.
 */
#include "ops/bytes.h"
#include "ops/follow.h"
#include <stdlib.h>

/* ------------------------------------------------------------------------------------------------ NonZero */
static braid_status non_zero_infer(infer *c) {
    c->out[0].type = BRAID_INT64;
    if (c->in[0]->rank < 0) return BRAID_OK;
    c->out[0].rank = 2;
    c->out[0].dims[0] = c->in[0]->rank;
    c->out[0].dims[1] = infer_fresh(c);
    return BRAID_OK;
}

/* An element counts unless it is zero; a string unless it is empty. */
static bool is_set(const tensor *t, int64_t i) {
    braid_type type = t->type.type;
    if (type == BRAID_STRING) return ((const char *const *)t->data)[i][0] != 0;
    if (type == BRAID_COMPLEX64) return ((const float *)t->data)[2 * i] != 0 || ((const float *)t->data)[2 * i + 1] != 0;
    if (type == BRAID_COMPLEX128)
        return ((const double *)t->data)[2 * i] != 0 || ((const double *)t->data)[2 * i + 1] != 0;
    return type_is_float(type) ? element_f64(type, t->data, i) != 0 : element_i64(type, t->data, i) != 0;
}

static braid_status non_zero_eval(eval *e) {
    const tensor *x = eval_in(e, 0);
    int64_t count, n = 0, dims[2] = {x->type.rank, 0};
    tensor *y;
    if (!tensor_type_count(&x->type, &count)) return error_set(e->err, BRAID_LIMIT, "input 0 is too large");
    for (int64_t i = 0; i < count; i++) dims[1] += is_set(x, i);
    TRY(eval_output_shaped(e, 0, BRAID_INT64, 2, dims, &y));
    for (int64_t i = 0; i < count; i++) {
        if (!is_set(x, i)) continue;
        int64_t rest = i;
        for (int d = x->type.rank - 1; d >= 0; d--) {
            ((int64_t *)y->data)[d * dims[1] + n] = rest % x->type.dims[d];
            rest /= x->type.dims[d];
        }
        n++;
    }
    return BRAID_OK;
}

/* ------------------------------------------------------------------------------------------------ Compress */
/* The input seen as [outer][extent][inner] around an axis; without one, flat. */
typedef struct slices {
    int axis; /* -1: flat */
    int64_t outer, extent, inner;
} slices;

static braid_status slices_of(const node *n, const tensor_type *t, slices *s, braid_error *err) {
    *s = (slices){-1, 1, 1, 1};
    bool flat = !node_attribute(n, "axis");
    if (!flat) TRY(axis_normalise(node_int(n, "axis", 0), t->rank, &s->axis, err));
    for (int i = 0; i < t->rank; i++) {
        int64_t *to = flat || i == s->axis ? &s->extent : i < s->axis ? &s->outer : &s->inner;
        *to *= t->dims[i];
    }
    return BRAID_OK;
}

static braid_status compress_infer(infer *c) {
    const tensor_type *x = c->in[0];
    int axis = 0, count;
    const int64_t *condition;
    braid_type t = c->in[1]->type;
    if (t != BRAID_TYPE_NONE && t != BRAID_BOOL)
        return error_set(c->err, BRAID_TYPE, "input 1: type %s, expected bool", braid_type_name(t));
    TRY(infer_rank(c, 0, 1, BRAID_MAX_RANK));
    TRY(infer_rank(c, 1, 1, 1));
    bool flat = !node_attribute(c->node, "axis");
    c->out[0].type = x->type;
    if (!flat && x->rank < 0) return BRAID_OK;
    if (!flat) {
        TRY(axis_normalise(node_int(c->node, "axis", 0), x->rank, &axis, c->err));
        c->out[0] = *x;
    }
    if (flat) c->out[0].rank = 1;
    c->out[0].dims[axis] = infer_fresh(c);
    if (infer_ints(c, 1, &count, &condition)) {
        int64_t n = 0;
        for (int i = 0; i < count; i++) {
            if (dim_is_symbol(condition[i])) return BRAID_OK;
            n += condition[i] != 0;
        }
        c->out[0].dims[axis] = n;
    }
    return BRAID_OK;
}

static braid_status compress_eval(eval *e) {
    const tensor *x = eval_in(e, 0), *condition = eval_in(e, 1);
    const uint8_t *keep = condition->data;
    slices s;
    size_t size;
    tensor *y;
    TRY(slices_of(e->node, &x->type, &s, e->err));
    tensor_type out = x->type;
    int64_t n = 0, length = condition->type.dims[0];
    for (int64_t i = 0; i < length; i++) {
        if (keep[i] && i >= s.extent)
            return error_set(e->err, BRAID_INDEX, "condition %lld is true, the extent is %lld", (long long)i,
                             (long long)s.extent);
        n += keep[i] != 0;
    }
    if (s.axis < 0) out.rank = 1;
    out.dims[s.axis < 0 ? 0 : s.axis] = n;
    TRY(eval_output_shaped(e, 0, x->type.type, out.rank, out.dims, &y));
    const uint8_t *from = bytes_in(e->memory, x, &size);
    uint8_t *to = bytes_out(e->memory, y, &size), *at = to;
    if (!from || !to) return error_memory(e->err);
    size_t line = (size_t)s.inner * size;
    for (int64_t o = 0; o < s.outer; o++)
        for (int64_t i = 0; i < length && i < s.extent; i++) {
            if (!keep[i]) continue;
            memcpy(at, from + (size_t)(o * s.extent + i) * line, line);
            at += line;
        }
    bytes_done(y, to);
    return BRAID_OK;
}

/* ------------------------------------------------------------------------------------------------- Unique */
static braid_status unique_infer(infer *c) {
    const tensor_type *x = c->in[0];
    int axis;
    int64_t found = infer_fresh(c), sorted = node_int(c->node, "sorted", 1);
    bool flat = !node_attribute(c->node, "axis");
    if (sorted != 0 && sorted != 1)
        return error_set(c->err, BRAID_MODEL, "sorted is %lld, expected 0 or 1", (long long)sorted);
    if (x->type == BRAID_COMPLEX64 || x->type == BRAID_COMPLEX128)
        return error_set(c->err, BRAID_TYPE, "input 0: type %s has no order", braid_type_name(x->type));
    c->out[0].type = x->type;
    for (int i = 1; i < c->n_out; i++) {
        c->out[i].type = BRAID_INT64;
        c->out[i].rank = 1;
        c->out[i].dims[0] = i == 2 ? infer_fresh(c) : found;
    }
    if (flat) {
        c->out[0].rank = 1;
        c->out[0].dims[0] = found;
        return BRAID_OK;
    }
    if (x->rank < 0) return BRAID_OK;
    TRY(axis_normalise(node_int(c->node, "axis", 0), x->rank, &axis, c->err));
    c->out[0] = *x;
    c->out[0].dims[axis] = found;
    if (c->n_out > 2) c->out[2].dims[0] = x->dims[axis];
    return BRAID_OK;
}

/* One slice to be compared; ties go by position, so that qsort is stable. */
typedef struct unique_slice {
    const tensor *x;
    const slices *s;
    int64_t index;
} unique_slice;

static int compare_element(const tensor *x, int64_t a, int64_t b) {
    braid_type t = x->type.type;
    if (t == BRAID_STRING) return strcmp(((const char *const *)x->data)[a], ((const char *const *)x->data)[b]);
    if (type_is_float(t)) {
        double u = element_f64(t, x->data, a), v = element_f64(t, x->data, b);
        bool nan_u = u != u, nan_v = v != v;
        return nan_u || nan_v ? nan_u - nan_v : (u > v) - (u < v);
    }
    int64_t u = element_i64(t, x->data, a), v = element_i64(t, x->data, b);
    if (t == BRAID_UINT64) return ((uint64_t)u > (uint64_t)v) - ((uint64_t)u < (uint64_t)v);
    return (u > v) - (u < v);
}

static int compare_content(const unique_slice *a, const unique_slice *b) {
    const slices *s = a->s;
    for (int64_t o = 0; o < s->outer; o++)
        for (int64_t i = 0; i < s->inner; i++) {
            int64_t line = o * s->extent;
            int order = compare_element(a->x, (line + a->index) * s->inner + i, (line + b->index) * s->inner + i);
            if (order) return order;
        }
    return 0;
}

static int compare_slice(const void *a, const void *b) {
    const unique_slice *u = a, *v = b;
    int order = compare_content(u, v);
    return order ? order : (u->index > v->index) - (u->index < v->index);
}

/* A group of equal slices, by its first. */
typedef struct unique_group {
    int64_t first, count, from; /* from: its place in the sorted order */
} unique_group;

static int compare_first(const void *a, const void *b) {
    const unique_group *u = a, *v = b;
    return (u->first > v->first) - (u->first < v->first);
}

typedef struct unique_job {
    slices s;
    unique_slice *order; /* [extent], sorted */
    unique_group *groups;
    int64_t n;
} unique_job;

static braid_status find_groups(eval *e, unique_job *j) {
    const tensor *x = eval_in(e, 0);
    TRY(slices_of(e->node, &x->type, &j->s, e->err));
    j->order = arena_array(e->memory, (size_t)j->s.extent + 1, sizeof *j->order);
    j->groups = arena_array(e->memory, (size_t)j->s.extent + 1, sizeof *j->groups);
    if (!j->order || !j->groups) return error_memory(e->err);
    for (int64_t i = 0; i < j->s.extent; i++) j->order[i] = (unique_slice){x, &j->s, i};
    qsort(j->order, (size_t)j->s.extent, sizeof *j->order, compare_slice);
    for (int64_t i = 0; i < j->s.extent; i++) {
        if (i == 0 || compare_content(&j->order[i - 1], &j->order[i]) != 0)
            j->groups[j->n++] = (unique_group){j->order[i].index, 0, i};
        j->groups[j->n - 1].count++;
    }
    if (node_int(e->node, "sorted", 1) == 0) qsort(j->groups, (size_t)j->n, sizeof *j->groups, compare_first);
    return BRAID_OK;
}

static braid_status unique_values(eval *e, const unique_job *j) {
    const tensor *x = eval_in(e, 0);
    const slices *s = &j->s;
    tensor_type t = x->type;
    tensor *y;
    size_t size;
    if (s->axis < 0) t.rank = 1;
    t.dims[s->axis < 0 ? 0 : s->axis] = j->n;
    TRY(eval_output_shaped(e, 0, t.type, t.rank, t.dims, &y));
    const uint8_t *from = bytes_in(e->memory, x, &size);
    uint8_t *to = bytes_out(e->memory, y, &size);
    if (!from || !to) return error_memory(e->err);
    size_t line = (size_t)s->inner * size;
    for (int64_t o = 0; o < s->outer; o++)
        for (int64_t i = 0; i < j->n; i++)
            memcpy(to + (size_t)(o * j->n + i) * line, from + (size_t)(o * s->extent + j->groups[i].first) * line, line);
    bytes_done(y, to);
    return BRAID_OK;
}

static braid_status unique_eval(eval *e) {
    unique_job j = {0};
    tensor *out[4] = {0};
    TRY(find_groups(e, &j));
    if (eval_wants(e, 0)) TRY(unique_values(e, &j));
    for (int i = 1; i < 4; i++)
        if (eval_wants(e, i)) TRY(eval_output_shaped(e, i, BRAID_INT64, 1, i == 2 ? &j.s.extent : &j.n, &out[i]));
    for (int64_t i = 0; i < j.n; i++) {
        const unique_group *g = &j.groups[i];
        if (out[1]) ((int64_t *)out[1]->data)[i] = g->first;
        if (out[3]) ((int64_t *)out[3]->data)[i] = g->count;
        for (int64_t k = 0; out[2] && k < g->count; k++) ((int64_t *)out[2]->data)[j.order[g->from + k].index] = i;
    }
    return BRAID_OK;
}

/* --------------------------------------------------------------------------------------------------- rows */
static const attribute_spec axis_specs[] = {{"axis", ATTRIBUTE_INT, NULL}, {0}};
static const attribute_spec unique_specs[] = {{"axis", ATTRIBUTE_INT, NULL}, {"sorted", ATTRIBUTE_INT, "1"}, {0}};

const op select_ops[] = {
    {.name = "NonZero", .since = 9, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1, .infer = non_zero_infer,
     .eval = non_zero_eval},
    {.name = "Compress", .since = 9, .min_in = 2, .max_in = 2, .min_out = 1, .max_out = 1, .attributes = axis_specs,
     .infer = compress_infer, .eval = compress_eval},
    {.name = "Unique", .since = 11, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 4, .attributes = unique_specs,
     .infer = unique_infer, .eval = unique_eval},
    {0},
};
