/*
 * scatter.c: ScatterElements (and Scatter, its old name), ScatterND, TensorScatter.
 */
#include "ops/scatter.h"
#include "ops/bytes.h"
#include "ops/follow.h"
#include "ops/index.h"

static int64_t product_of(const int64_t *dims, int first, int last) {
    int64_t p = 1;
    for (int i = first; i < last; i++) p *= dims[i];
    return p;
}

static braid_status scatter_reduction(const node *n, scatter_how *how, braid_error *err) {
    static const char *const names[] = {"none", "add", "mul", "max", "min"};
    const char *name = node_string(n, "reduction", "none");
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (strcmp(name, names[i]) != 0) continue;
        *how = (scatter_how)i;
        return BRAID_OK;
    }
    return error_set(err, BRAID_MODEL, "reduction is '%s'", name);
}

static bool is_nd(const node *n) { return strcmp(n->type, "ScatterND") == 0; }

braid_status scatter_describe(const node *n, const tensor_type *data, const tensor_type *index, scatter_shape *s,
                              braid_error *err) {
    *s = (scatter_shape){.each = !is_nd(n), .slice = 1};
    TRY(scatter_reduction(n, &s->how, err));
    if (s->each) {
        TRY(axis_normalise(node_int(n, "axis", 0), data->rank, &s->axis, err));
        s->updates = product_of(index->dims, 0, index->rank);
        s->slots = product_of(data->dims, 0, data->rank);
    } else {
        s->depth = index->dims[index->rank - 1];
        s->updates = product_of(index->dims, 0, index->rank - 1);
        s->slots = product_of(data->dims, 0, (int)s->depth);
        s->slice = product_of(data->dims, (int)s->depth, data->rank);
    }
    return BRAID_OK;
}

/* ------------------------------------------------------------------------------------------------- infer */

static braid_status scatter_types(infer *c) {
    scatter_how how = SCATTER_NONE;
    TRY(scatter_reduction(c->node, &how, c->err));
    TRY(infer_index_type(c, 1));
    braid_type data = c->in[0]->type, updates = c->in[2]->type;
    if (data != BRAID_TYPE_NONE && updates != BRAID_TYPE_NONE && data != updates)
        return error_set(c->err, BRAID_TYPE, "input 2: %s, input 0 is %s", braid_type_name(updates),
                         braid_type_name(data));
    if (how != SCATTER_NONE && data != BRAID_TYPE_NONE && !type_is_float(data) && !type_is_integer(data) &&
        data != BRAID_BOOL)
        return error_set(c->err, BRAID_TYPE, "input 0: %s cannot be reduced", braid_type_name(data));
    TRY(infer_rank(c, 0, 1, BRAID_MAX_RANK));
    return infer_same(c);
}

static braid_status same_dim(infer *c, int axis, int64_t got, int64_t expected) {
    if (dim_is_symbol(got) || dim_is_symbol(expected) || got == expected) return BRAID_OK;
    return error_set(c->err, BRAID_SHAPE, "updates: axis %d has %lld elements, expected %lld", axis, (long long)got,
                     (long long)expected);
}

static braid_status scatter_elements_infer(infer *c) {
    const tensor_type *data = c->in[0], *index = c->in[1], *updates = c->in[2];
    int axis;
    TRY(scatter_types(c));
    if (data->rank < 0) return BRAID_OK;
    TRY(axis_normalise(node_int(c->node, "axis", 0), data->rank, &axis, c->err));
    TRY(infer_rank(c, 1, data->rank, data->rank));
    TRY(infer_rank(c, 2, data->rank, data->rank));
    for (int d = 0; d < data->rank && index->rank >= 0; d++) {
        if (updates->rank >= 0) TRY(same_dim(c, d, updates->dims[d], index->dims[d]));
        if (d != axis && dim_known(data->dims[d]) && dim_known(index->dims[d]) && index->dims[d] > data->dims[d])
            return error_set(c->err, BRAID_SHAPE, "axis %d: %lld indices for %lld elements", d,
                             (long long)index->dims[d], (long long)data->dims[d]);
    }
    return index_check_constant(c, 1, 1, &data->dims[axis]);
}

static braid_status scatter_nd_infer(infer *c) {
    const tensor_type *data = c->in[0], *index = c->in[1], *updates = c->in[2];
    TRY(scatter_types(c));
    TRY(infer_rank(c, 1, 1, BRAID_MAX_RANK));
    if (data->rank < 0 || index->rank < 0) return BRAID_OK;
    int64_t depth = index->dims[index->rank - 1];
    if (dim_is_symbol(depth)) return BRAID_OK;
    if (depth < 1 || depth > data->rank)
        return error_set(c->err, BRAID_SHAPE, "indices of length %lld, expected 1 to %d", (long long)depth, data->rank);
    int k = (int)depth, rank = index->rank - 1 + data->rank - k;
    if (rank > BRAID_MAX_RANK) return error_set(c->err, BRAID_LIMIT, "rank %d, at most %d", rank, BRAID_MAX_RANK);
    TRY(infer_rank(c, 2, rank, rank));
    for (int d = 0; d < rank && updates->rank >= 0; d++)
        TRY(same_dim(c, d, updates->dims[d], d < index->rank - 1 ? index->dims[d] : data->dims[k + d - index->rank + 1]));
    return index_check_constant(c, 1, k, data->dims);
}

/* -------------------------------------------------------------------------------------------------- eval */

/* The first output element of every update's slot. */
static braid_status scatter_targets(eval *e, const scatter_shape *s, int64_t **out) {
    const tensor_type *data = &eval_in(e, 0)->type;
    const tensor *index = eval_in(e, 1);
    int64_t strides[BRAID_MAX_RANK], at[BRAID_MAX_RANK] = {0};
    int64_t *targets = *out = arena_array(e->memory, (size_t)s->updates + 1, sizeof *targets);
    if (!targets) return error_memory(e->err);
    region_strides(data->rank, data->dims, strides);
    for (int64_t t = 0; t < s->updates; t++) {
        if (!s->each) {
            TRY(index_offset(index, t, (int)s->depth, data->dims, strides, &targets[t], e->err));
            continue;
        }
        TRY(index_offset(index, t, 1, data->dims + s->axis, strides + s->axis, &targets[t], e->err));
        for (int d = 0; d < data->rank; d++) targets[t] += d == s->axis ? 0 : at[d] * strides[d];
        for (int d = data->rank - 1; d >= 0 && ++at[d] == index->type.dims[d]; d--) at[d] = 0;
    }
    return BRAID_OK;
}

static braid_status scatter_assign(eval *e, const scatter_shape *s, const int64_t *targets, tensor *result) {
    size_t size;
    const uint8_t *data = bytes_in(e->memory, eval_in(e, 0), &size), *updates = bytes_in(e->memory, eval_in(e, 2), &size);
    uint8_t *out = bytes_out(e->memory, result, &size);
    if (!data || !updates || !out) return error_memory(e->err);
    size_t slice = (size_t)s->slice * size, all = (size_t)s->slots * slice;
    if (all) memcpy(out, data, all);
    for (int64_t t = 0; t < s->updates && slice; t++)
        memcpy(out + (size_t)targets[t] * size, updates + (size_t)t * slice, slice);
    bytes_done(result, out);
    return BRAID_OK;
}

static double reduce_float(scatter_how how, double a, double b) {
    switch (how) {
    case SCATTER_ADD: return a + b;
    case SCATTER_MUL: return a * b;
    case SCATTER_MAX: return a != a || b != b ? a + b : a > b ? a : b;
    case SCATTER_MIN: return a != a || b != b ? a + b : a < b ? a : b;
    case SCATTER_NONE: break;
    }
    return b;
}

static int64_t reduce_integer(scatter_how how, bool is_unsigned, int64_t a, int64_t b) {
    bool less = is_unsigned ? (uint64_t)a < (uint64_t)b : a < b;
    switch (how) {
    case SCATTER_ADD: return (int64_t)((uint64_t)a + (uint64_t)b);
    case SCATTER_MUL: return (int64_t)((uint64_t)a * (uint64_t)b);
    case SCATTER_MAX: return less ? b : a;
    case SCATTER_MIN: return less ? a : b;
    case SCATTER_NONE: break;
    }
    return b;
}

/* Floats are summed in double and rounded once. */
static braid_status scatter_reduce_float(eval *e, const scatter_shape *s, const int64_t *targets, tensor *out) {
    const tensor *updates = eval_in(e, 2);
    braid_type type = out->type.type;
    int64_t all = s->slots * s->slice;
    double *sums = arena_array(e->memory, (size_t)all + 1, sizeof *sums);
    if (!sums) return error_memory(e->err);
    for (int64_t i = 0; i < all; i++) sums[i] = element_f64(type, out->data, i);
    for (int64_t t = 0; t < s->updates; t++)
        for (int64_t u = 0; u < s->slice; u++) {
            double *at = &sums[targets[t] + u];
            *at = reduce_float(s->how, *at, element_f64(type, updates->data, t * s->slice + u));
        }
    for (int64_t t = 0; t < s->updates; t++)
        for (int64_t u = 0; u < s->slice; u++) element_set_f64(type, out->data, targets[t] + u, sums[targets[t] + u]);
    return BRAID_OK;
}

static void scatter_reduce_integer(eval *e, const scatter_shape *s, const int64_t *targets, tensor *out) {
    const tensor *updates = eval_in(e, 2);
    braid_type type = out->type.type;
    bool truth = type == BRAID_BOOL;
    for (int64_t t = 0; t < s->updates; t++)
        for (int64_t u = 0; u < s->slice; u++) {
            int64_t a = element_i64(type, out->data, targets[t] + u);
            int64_t v = reduce_integer(s->how, type_is_unsigned(type), a, element_i64(type, updates->data, t * s->slice + u));
            element_set_i64(type, out->data, targets[t] + u, truth ? v != 0 : v);
        }
}

static braid_status scatter_eval(eval *e) {
    const tensor *data = eval_in(e, 0);
    scatter_shape s;
    tensor *out;
    int64_t *targets;
    TRY(scatter_describe(e->node, &data->type, &eval_in(e, 1)->type, &s, e->err));
    TRY(eval_output(e, 0, &out));
    TRY(scatter_targets(e, &s, &targets));
    if (s.how == SCATTER_NONE) return scatter_assign(e, &s, targets, out);
    if (data->bytes) memcpy(out->data, data->data, data->bytes);
    if (type_is_float(data->type.type)) return scatter_reduce_float(e, &s, targets, out);
    scatter_reduce_integer(e, &s, targets, out);
    return BRAID_OK;
}

/* ----------------------------------------------------------------------------------------- TensorScatter */

static braid_status tensor_scatter_axis(const node *n, int rank, int *axis, bool *circular, braid_error *err) {
    const char *mode = node_string(n, "mode", "linear");
    *circular = strcmp(mode, "circular") == 0;
    if (!*circular && strcmp(mode, "linear") != 0) return error_set(err, BRAID_MODEL, "mode is '%s'", mode);
    TRY(axis_normalise(node_int(n, "axis", -2), rank, axis, err));
    return *axis ? BRAID_OK : error_set(err, BRAID_MODEL, "axis is the batch axis");
}

static braid_status tensor_scatter_infer(infer *c) {
    const tensor_type *past = c->in[0], *update = c->in[1];
    int axis;
    bool circular;
    if (past->type != BRAID_TYPE_NONE && update->type != BRAID_TYPE_NONE && past->type != update->type)
        return error_set(c->err, BRAID_TYPE, "input 1: %s, input 0 is %s", braid_type_name(update->type),
                         braid_type_name(past->type));
    TRY(infer_index_type(c, 2));
    TRY(infer_rank(c, 2, 1, 1));
    TRY(infer_same(c));
    if (past->rank < 0) return BRAID_OK;
    TRY(tensor_scatter_axis(c->node, past->rank, &axis, &circular, c->err));
    TRY(infer_rank(c, 1, past->rank, past->rank));
    for (int d = 0; d < past->rank && update->rank >= 0; d++) {
        int64_t a = past->dims[d], b = update->dims[d];
        if (dim_known(a) && dim_known(b) && (d == axis ? b > a : a != b))
            return error_set(c->err, BRAID_SHAPE, "update: axis %d has %lld elements, the cache %lld", d, (long long)b,
                             (long long)a);
    }
    int64_t n = infer_has(c, 2) && c->in[2]->rank == 1 ? c->in[2]->dims[0] : past->dims[0];
    if (dim_known(n) && dim_known(past->dims[0]) && n != past->dims[0])
        return error_set(c->err, BRAID_SHAPE, "write_indices has %lld elements, the batch %lld", (long long)n,
                         (long long)past->dims[0]);
    return BRAID_OK;
}

/* First position that one sample's update is written to. */
static braid_status tensor_scatter_start(eval *e, int64_t sample, int64_t length, int64_t cache, bool circular,
                                         int64_t *out) {
    const tensor *indices = eval_in(e, 2);
    *out = indices ? element_i64(indices->type.type, indices->data, sample) : 0;
    if (circular) {
        *out = cache ? *out % cache : 0;
        if (*out < 0) *out += cache;
    } else if (*out < 0 || *out > cache - length) {
        return error_set(e->err, BRAID_INDEX, "write index %lld outside [0, %lld]", (long long)*out,
                         (long long)(cache - length));
    }
    return BRAID_OK;
}

static braid_status tensor_scatter_eval(eval *e) {
    const tensor *past = eval_in(e, 0), *update = eval_in(e, 1);
    const int64_t *dims = past->type.dims;
    int rank = past->type.rank, axis;
    bool circular;
    tensor *result;
    size_t size;
    int64_t start;
    TRY(tensor_scatter_axis(e->node, rank, &axis, &circular, e->err));
    TRY(eval_output(e, 0, &result));
    const uint8_t *from = bytes_in(e->memory, past, &size), *news = bytes_in(e->memory, update, &size);
    uint8_t *out = bytes_out(e->memory, result, &size);
    if (!from || !news || !out) return error_memory(e->err);
    int64_t cache = dims[axis], length = update->type.dims[axis], samples = dims[0], rows = product_of(dims, 1, axis);
    size_t inner = (size_t)product_of(dims, axis + 1, rank) * size;
    size_t all = (size_t)(samples * rows * cache) * inner;
    if (all) memcpy(out, from, all);
    for (int64_t b = 0; b < samples; b++) {
        TRY(tensor_scatter_start(e, b, length, cache, circular, &start));
        for (int64_t r = b * rows; r < (b + 1) * rows && inner; r++)
            for (int64_t k = 0; k < length; k++)
                memcpy(out + (size_t)(r * cache + (start + k) % cache) * inner, news + (size_t)(r * length + k) * inner, inner);
    }
    bytes_done(result, out);
    return BRAID_OK;
}

static const attribute_spec elements_attributes[] = {
    {"axis", ATTRIBUTE_INT, "0"}, {"reduction", ATTRIBUTE_STRING, "none"}, {0}};
static const attribute_spec old_attributes[] = {{"axis", ATTRIBUTE_INT, "0"}, {0}};
static const attribute_spec nd_attributes[] = {{"reduction", ATTRIBUTE_STRING, "none"}, {0}};
static const attribute_spec tensor_attributes[] = {{"axis", ATTRIBUTE_INT, "-2"}, {"mode", ATTRIBUTE_STRING, "linear"}, {0}};

const op scatter_ops[] = {
    {.name = "Scatter", .since = 9, .min_in = 3, .max_in = 3, .min_out = 1, .max_out = 1,
     .attributes = old_attributes, .infer = scatter_elements_infer, .eval = scatter_eval, .lower = scatter_lower},
    {.name = "ScatterElements", .since = 11, .min_in = 3, .max_in = 3, .min_out = 1, .max_out = 1,
     .attributes = elements_attributes, .infer = scatter_elements_infer, .eval = scatter_eval, .lower = scatter_lower},
    {.name = "ScatterND", .since = 11, .min_in = 3, .max_in = 3, .min_out = 1, .max_out = 1,
     .attributes = nd_attributes, .infer = scatter_nd_infer, .eval = scatter_eval, .lower = scatter_lower},
    {.name = "TensorScatter", .since = 24, .min_in = 2, .max_in = 3, .min_out = 1, .max_out = 1,
     .attributes = tensor_attributes, .infer = tensor_scatter_infer, .eval = tensor_scatter_eval,
     .lower = tensor_scatter_lower},
    {0}};
