/*
 * make.c: ConstantOfShape, EyeLike, Range.
 */
#include "ops/make.h"
#include "ops/bytes.h"
#include "ops/follow.h"
#include <math.h>

int64_t make_index(const tensor *t, int64_t i) {
    if (!type_is_float(t->type.type)) return element_i64(t->type.type, t->data, i);
    double v = element_f64(t->type.type, t->data, i);
    if (v != v) return 0;
    return v >= 0x1p63 ? INT64_MAX : v <= -0x1p63 ? INT64_MIN : (int64_t)v;
}

/* ---------------------------------------------------------------------------------------- ConstantOfShape */
static braid_status read_fill(const node *n, tensor **out, braid_error *err) {
    const attribute *a = node_attribute(n, "value");
    int64_t count;
    *out = NULL;
    if (!a) return BRAID_OK;
    if (!tensor_type_count(&a->t->type, &count) || count != 1)
        return error_set(err, BRAID_MODEL, "value is no tensor of one element");
    if (a->t->type.type == BRAID_STRING) return error_set(err, BRAID_TYPE, "value is a string");
    *out = a->t;
    return BRAID_OK;
}

/* Follows the elements of a short integer output. */
static braid_status follow_fill(infer *c, tensor *fill) {
    if (!fill || !follow_wanted(c, 0)) return BRAID_OK;
    int64_t n = c->out[0].rank == 0 ? 1 : c->out[0].dims[0];
    if (!dim_known(n) || n > FOLLOW_MAX) return BRAID_OK;
    braid_type t = fill->type.type;
    if (!type_is_integer(t) && t != BRAID_BOOL) return BRAID_OK;
    TRY(tensor_load(fill, c->g->memory, c->err));
    int64_t v = element_i64(t, fill->data, 0), *out = dim_known(v) ? follow_put(c, 0, (int)n) : NULL;
    for (int64_t i = 0; out && i < n; i++) out[i] = v;
    return BRAID_OK;
}

static braid_status constant_of_shape_infer(infer *c) {
    tensor *fill;
    int count;
    const int64_t *dims;
    TRY(read_fill(c->node, &fill, c->err));
    TRY(infer_index_type(c, 0));
    TRY(infer_rank(c, 0, 1, 1));
    c->out[0].type = fill ? fill->type.type : BRAID_FLOAT32;
    bool known = infer_ints(c, 0, &count, &dims);
    int64_t length = known ? count : c->in[0]->rank == 1 ? c->in[0]->dims[0] : dim_from_symbol(0);
    if (!dim_known(length)) return BRAID_OK;
    if (length > BRAID_MAX_RANK) return error_set(c->err, BRAID_LIMIT, "rank %lld", (long long)length);
    for (int i = 0; i < length; i++) {
        if (known && dim_known(dims[i]) && dims[i] < 0)
            return error_set(c->err, BRAID_SHAPE, "dim %d is %lld", i, (long long)dims[i]);
        c->out[0].dims[i] = known ? dims[i] : infer_fresh(c);
    }
    c->out[0].rank = (int)length;
    TRY(infer_limit(c, 0));
    return follow_fill(c, fill);
}

static braid_status constant_of_shape_eval(eval *e) {
    tensor *fill, *y;
    size_t size;
    TRY(read_fill(e->node, &fill, e->err));
    TRY(eval_output(e, 0, &y));
    if (!fill) return BRAID_OK;
    TRY(tensor_load(fill, e->memory, e->err));
    const uint8_t *value_bytes = bytes_in(e->memory, fill, &size);
    uint8_t *to = bytes_out(e->memory, y, &size);
    int64_t count;
    if (!value_bytes || !to) return error_memory(e->err);
    for (int64_t i = 0; tensor_type_count(&y->type, &count) && i < count; i++)
        memcpy(to + (size_t)i * size, value_bytes, size);
    bytes_done(y, to);
    return BRAID_OK;
}

/* ------------------------------------------------------------------------------------------------ EyeLike */
static braid_status eye_like_infer(infer *c) {
    int64_t type = node_int(c->node, "dtype", c->in[0]->type);
    TRY(infer_rank(c, 0, 2, 2));
    c->out[0] = *c->in[0];
    c->out[0].type = (braid_type)type;
    if (type == BRAID_TYPE_NONE && !node_attribute(c->node, "dtype")) return BRAID_OK;
    braid_type t = (braid_type)type;
    if (type < 0 || type > 64 || !(type_is_float(t) || type_is_integer(t) || t == BRAID_BOOL))
        return error_set(c->err, BRAID_TYPE, "element type %lld is not allowed", (long long)type);
    return BRAID_OK;
}

static braid_status eye_like_eval(eval *e) {
    tensor *y;
    TRY(eval_output(e, 0, &y));
    int64_t k = node_int(e->node, "k", 0), rows = y->type.dims[0], columns = y->type.dims[1];
    for (int64_t i = 0; i < rows; i++) {
        int64_t j;
        if (i64_add(i, k, &j) && j >= 0 && j < columns) element_set_i64(y->type.type, y->data, i * columns + j, 1);
    }
    return BRAID_OK;
}

/* -------------------------------------------------------------------------------------------------- Range */
/* Steps from start below limit, for integers without overflow. */
static int64_t integer_steps(int64_t start, int64_t limit, int64_t delta) {
    if (delta > 0 ? start >= limit : start <= limit) return 0;
    uint64_t span = delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
    uint64_t by = delta > 0 ? (uint64_t)delta : 0 - (uint64_t)delta;
    uint64_t n = (span - 1) / by + 1;
    return n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

static braid_status range_length(double v, int64_t *out, braid_error *err) {
    if (v != v) return error_set(err, BRAID_MODEL, "start, limit or delta is no number");
    if (v > (double)ELEMENTS_MAX) return error_set(err, BRAID_LIMIT, "%g elements", v);
    *out = v > 0 ? (int64_t)ceil(v) : 0;
    return BRAID_OK;
}

static braid_status range_count(braid_type t, const tensor *const in[3], int64_t *out, braid_error *err) {
    if (!type_is_float(t)) {
        int64_t v[3];
        for (int i = 0; i < 3; i++) v[i] = element_i64(t, in[i]->data, 0);
        if (v[2] == 0) return error_set(err, BRAID_MODEL, "delta is 0");
        *out = integer_steps(v[0], v[1], v[2]);
        return *out > ELEMENTS_MAX ? error_set(err, BRAID_LIMIT, "%lld elements", (long long)*out) : BRAID_OK;
    }
    double v[3];
    for (int i = 0; i < 3; i++) v[i] = element_f64(t, in[i]->data, 0);
    if (v[2] == 0) return error_set(err, BRAID_MODEL, "delta is 0");
    return range_length((v[1] - v[0]) / v[2], out, err);
}

static braid_status range_types(infer *c) {
    for (int i = 0; i < 3; i++) {
        braid_type t = c->in[i]->type;
        TRY(infer_rank(c, i, 0, 1));
        if (c->in[i]->rank == 1 && dim_known(c->in[i]->dims[0]) && c->in[i]->dims[0] != 1)
            return error_set(c->err, BRAID_SHAPE, "input %d: no scalar", i);
        if (t == BRAID_TYPE_NONE) continue;
        if (!type_is_float(t) && t != BRAID_INT16 && t != BRAID_INT32 && t != BRAID_INT64)
            return error_set(c->err, BRAID_TYPE, "input %d: type %s is not allowed", i, braid_type_name(t));
        if (c->out[0].type != BRAID_TYPE_NONE && t != c->out[0].type)
            return error_set(c->err, BRAID_TYPE, "input %d: type %s, input 0 has %s", i, braid_type_name(t),
                             braid_type_name(c->out[0].type));
        c->out[0].type = t;
    }
    return BRAID_OK;
}

static void follow_range(infer *c, int64_t start, int64_t delta, int64_t n) {
    int64_t *v = n <= FOLLOW_MAX && c->out[0].type == BRAID_INT64 ? follow_put(c, 0, (int)n) : NULL;
    for (int64_t i = 0; v && i < n; i++) v[i] = start + i * delta;
}

/* From followed integers. False: not all are known. */
static bool range_followed(infer *c, braid_status *status) {
    int64_t v[3];
    *status = BRAID_OK;
    for (int i = 0; i < 3; i++) {
        int count;
        const int64_t *list;
        if (!infer_ints(c, i, &count, &list) || count != 1) return false;
        v[i] = list[0];
    }
    if (v[2] == 0) {
        *status = error_set(c->err, BRAID_MODEL, "delta is 0");
        return true;
    }
    bool numbers = dim_known(v[0]) && dim_known(v[1]) && dim_known(v[2]);
    /* Only a named symbol is a dim and so not negative. */
    bool named = dim_is_symbol(v[1]) && c->g->symbols[dim_symbol(v[1])] && v[0] == 0 && v[2] == 1;
    if (!numbers && !named) return false;
    c->out[0].dims[0] = named ? v[1] : integer_steps(v[0], v[1], v[2]);
    if (numbers && c->out[0].dims[0] > ELEMENTS_MAX)
        *status = error_set(c->err, BRAID_LIMIT, "%lld elements", (long long)c->out[0].dims[0]);
    else if (numbers)
        follow_range(c, v[0], v[2], c->out[0].dims[0]);
    return true;
}

static braid_status range_infer(infer *c) {
    const tensor *in[3];
    braid_status status;
    int64_t stash = node_int(c->node, "stash_type", BRAID_FLOAT32);
    if (stash != BRAID_FLOAT32 && stash != BRAID_FLOAT64)
        return error_set(c->err, BRAID_MODEL, "stash_type is %lld, expected 1 or 11", (long long)stash);
    TRY(range_types(c));
    c->out[0].rank = 1;
    c->out[0].dims[0] = dim_from_symbol(0);
    if (range_followed(c, &status)) return status;
    for (int i = 0; i < 3; i++) {
        TRY(infer_constant(c, i, &in[i]));
        if (!in[i]) {
            c->out[0].dims[0] = infer_fresh(c);
            return BRAID_OK;
        }
    }
    return range_count(c->out[0].type, in, &c->out[0].dims[0], c->err);
}

static braid_status range_eval(eval *e) {
    const tensor *in[3] = {eval_in(e, 0), eval_in(e, 1), eval_in(e, 2)};
    braid_type t = in[0]->type.type;
    int64_t n;
    tensor *y;
    TRY(range_count(t, in, &n, e->err));
    TRY(eval_output_shaped(e, 0, t, 1, &n, &y));
    if (type_is_float(t)) {
        double start = element_f64(t, in[0]->data, 0), delta = element_f64(t, in[2]->data, 0);
        for (int64_t i = 0; i < n; i++) element_set_f64(t, y->data, i, start + (double)i * delta);
    } else {
        uint64_t start = (uint64_t)element_i64(t, in[0]->data, 0), delta = (uint64_t)element_i64(t, in[2]->data, 0);
        for (int64_t i = 0; i < n; i++) element_set_i64(t, y->data, i, (int64_t)(start + (uint64_t)i * delta));
    }
    return BRAID_OK;
}

/* --------------------------------------------------------------------------------------------------- rows */
static const attribute_spec fill_specs[] = {{"value", ATTRIBUTE_TENSOR, "0"}, {0}};
static const attribute_spec eye_specs[] = {{"dtype", ATTRIBUTE_INT, NULL}, {"k", ATTRIBUTE_INT, "0"}, {0}};
static const attribute_spec range_specs[] = {{"stash_type", ATTRIBUTE_INT, "1"}, {0}};

const op make_ops[] = {
    {.name = "ConstantOfShape", .since = 9, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1,
     .attributes = fill_specs, .infer = constant_of_shape_infer, .eval = constant_of_shape_eval,
     .lower = constant_of_shape_lower},
    {.name = "EyeLike", .since = 9, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1, .attributes = eye_specs,
     .infer = eye_like_infer, .eval = eye_like_eval, .lower = eye_like_lower},
    {.name = "Range", .flags = OP_READS_FLOATS, .since = 11, .min_in = 3, .max_in = 3, .min_out = 1, .max_out = 1, .attributes = range_specs,
     .infer = range_infer, .eval = range_eval, .lower = range_lower},
    {0},
};
