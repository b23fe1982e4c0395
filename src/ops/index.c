/*
 * index.c: Gather, GatherElements, GatherND.
 */
#include "ops/index.h"
#include "ops/bytes.h"
#include "ops/follow.h"
#include "ops/gather.h"

braid_status index_resolve(int64_t index, int64_t dim, int64_t *out, braid_error *err) {
    *out = 0;
    if (index < -dim || index >= dim)
        return dim ? error_set(err, BRAID_INDEX, "index %lld outside [%lld, %lld]", (long long)index, (long long)-dim,
                               (long long)(dim - 1))
                   : error_set(err, BRAID_INDEX, "index %lld on an axis without elements", (long long)index);
    *out = index < 0 ? index + dim : index;
    return BRAID_OK;
}

braid_status index_check_constant(infer *c, int i, int n_dims, const int64_t *dims) {
    const tensor *t;
    int64_t count, at;
    TRY(infer_constant(c, i, &t));
    if (!t || !tensor_type_count(&t->type, &count)) return BRAID_OK;
    for (int64_t k = 0; k < count; k++) {
        int64_t dim = dims[k % n_dims];
        if (dim_known(dim)) TRY(index_resolve(element_i64(t->type.type, t->data, k), dim, &at, c->err));
    }
    return BRAID_OK;
}

braid_status index_offset(const tensor *indices, int64_t row, int depth, const int64_t *dims, const int64_t *strides,
                          int64_t *out, braid_error *err) {
    *out = 0;
    for (int k = 0; k < depth; k++) {
        int64_t at;
        TRY(index_resolve(element_i64(indices->type.type, indices->data, row * depth + k), dims[k], &at, err));
        *out += at * strides[k];
    }
    return BRAID_OK;
}

static int64_t product_of(const int64_t *dims, int first, int last) {
    int64_t p = 1;
    for (int i = first; i < last; i++) p *= dims[i];
    return p;
}

/* ------------------------------------------------------------------------------------------------- Gather */

static void gather_follow(infer *c) {
    followed data, index;
    if (c->in[0]->rank != 1 || !follow_wanted(c, 0) || !follow_in(c, 0, &data) || !follow_in(c, 1, &index)) return;
    int64_t picked[FOLLOW_MAX];
    for (int i = 0; i < index.n; i++) {
        int64_t at;
        if (dim_is_symbol(index.v[i]) || index_resolve(index.v[i], data.n, &at, NULL) != BRAID_OK) return;
        picked[i] = data.v[at];
    }
    int64_t *v = follow_put(c, 0, index.n);
    if (v && index.n) memcpy(v, picked, (size_t)index.n * sizeof *v);
}

static braid_status gather_infer(infer *c) {
    const tensor_type *data = c->in[0], *index = c->in[1];
    tensor_type *out = &c->out[0];
    out->type = data->type;
    TRY(infer_index_type(c, 1));
    if (data->rank < 0) return BRAID_OK;
    TRY(infer_rank(c, 0, 1, BRAID_MAX_RANK));
    int axis;
    TRY(axis_normalise(node_int(c->node, "axis", 0), data->rank, &axis, c->err));
    TRY(index_check_constant(c, 1, 1, &data->dims[axis]));
    if (index->rank < 0) return BRAID_OK;
    int rank = data->rank - 1 + index->rank;
    if (rank > BRAID_MAX_RANK) return error_set(c->err, BRAID_LIMIT, "rank %d, at most %d", rank, BRAID_MAX_RANK);
    for (int d = 0; d < rank; d++)
        out->dims[d] = d < axis ? data->dims[d]
                       : d < axis + index->rank ? index->dims[d - axis]
                                                : data->dims[d - index->rank + 1];
    out->rank = rank;
    gather_follow(c);
    return infer_limit(c, 0);
}

static braid_status gather_eval(eval *e) {
    const tensor *data = eval_in(e, 0), *index = eval_in(e, 1);
    tensor *result;
    int axis;
    size_t size;
    int64_t rows, from;
    TRY(axis_normalise(node_int(e->node, "axis", 0), data->type.rank, &axis, e->err));
    TRY(eval_output(e, 0, &result));
    const uint8_t *in = bytes_in(e->memory, data, &size);
    uint8_t *out = bytes_out(e->memory, result, &size), *to = out;
    if (!in || !out) return error_memory(e->err);
    int64_t outer = product_of(data->type.dims, 0, axis), dim = data->type.dims[axis];
    size_t inner = (size_t)product_of(data->type.dims, axis + 1, data->type.rank) * size;
    rows = product_of(index->type.dims, 0, index->type.rank);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < rows; k++, to += inner) {
            TRY(index_resolve(element_i64(index->type.type, index->data, k), dim, &from, e->err));
            if (inner) memcpy(to, in + (size_t)(o * dim + from) * inner, inner);
        }
    bytes_done(result, out);
    return BRAID_OK;
}

static braid_status gather_lower(lowering *l) {
    const tensor_type *data = lower_in(l, 0), *index = lower_in(l, 1);
    int axis;
    TRY(axis_normalise(node_int(l->node, "axis", 0), data->rank, &axis, l->err));
    int64_t inner = product_of(data->dims, axis + 1, data->rank);
    gather_shape g = {.batches = product_of(data->dims, 0, axis), .rows = product_of(index->dims, 0, index->rank),
                      .depth = 1, .slice = inner, .dims = {data->dims[axis]}, .strides = {inner},
                      .data_batch = data->dims[axis] * inner, .index_batch = 0};
    return gather_lower_rows(l, &g);
}

/* ----------------------------------------------------------------------------------------- GatherElements */

static braid_status gather_elements_infer(infer *c) {
    const tensor_type *data = c->in[0], *index = c->in[1];
    tensor_type *out = &c->out[0];
    out->type = data->type;
    TRY(infer_index_type(c, 1));
    if (index->rank >= 0) {
        out->rank = index->rank;
        memcpy(out->dims, index->dims, sizeof out->dims);
    }
    if (data->rank < 0) return BRAID_OK;
    TRY(infer_rank(c, 0, 1, BRAID_MAX_RANK));
    TRY(infer_rank(c, 1, data->rank, data->rank));
    int axis;
    TRY(axis_normalise(node_int(c->node, "axis", 0), data->rank, &axis, c->err));
    for (int d = 0; d < data->rank && index->rank >= 0; d++)
        if (d != axis && dim_known(data->dims[d]) && dim_known(index->dims[d]) && index->dims[d] > data->dims[d])
            return error_set(c->err, BRAID_SHAPE, "axis %d: %lld indices for %lld elements", d,
                             (long long)index->dims[d], (long long)data->dims[d]);
    return index_check_constant(c, 1, 1, &data->dims[axis]);
}

static braid_status gather_elements_eval(eval *e) {
    const tensor *data = eval_in(e, 0), *index = eval_in(e, 1);
    tensor *result;
    int axis, rank = data->type.rank;
    size_t size;
    int64_t strides[BRAID_MAX_RANK], at[BRAID_MAX_RANK] = {0}, count, from;
    TRY(axis_normalise(node_int(e->node, "axis", 0), rank, &axis, e->err));
    TRY(eval_output(e, 0, &result));
    const uint8_t *in = bytes_in(e->memory, data, &size);
    uint8_t *out = bytes_out(e->memory, result, &size);
    if (!in || !out) return error_memory(e->err);
    region_strides(rank, data->type.dims, strides);
    count = product_of(index->type.dims, 0, rank);
    for (int64_t i = 0; i < count; i++) {
        TRY(index_resolve(element_i64(index->type.type, index->data, i), data->type.dims[axis], &from, e->err));
        from *= strides[axis];
        for (int d = 0; d < rank; d++) from += d == axis ? 0 : at[d] * strides[d];
        memcpy(out + (size_t)i * size, in + (size_t)from * size, size);
        for (int d = rank - 1; d >= 0 && ++at[d] == index->type.dims[d]; d--) at[d] = 0;
    }
    bytes_done(result, out);
    return BRAID_OK;
}

/* ----------------------------------------------------------------------------------------------- GatherND */

/* Length of the last dim of the indices, checked; 0 while unknown. */
static braid_status gather_nd_depth(infer *c, int *batch, int *depth) {
    const tensor_type *data = c->in[0], *index = c->in[1];
    int64_t b = node_int(c->node, "batch_dims", 0);
    int least = data->rank < index->rank ? data->rank : index->rank;
    *depth = 0;
    if (b < 0 || b >= least)
        return error_set(c->err, BRAID_MODEL, "batch_dims %lld outside [0, %d]", (long long)b, least - 1);
    *batch = (int)b;
    int64_t k = index->dims[index->rank - 1];
    if (dim_is_symbol(k)) return BRAID_OK;
    if (k < 1 || k > data->rank - b)
        return error_set(c->err, BRAID_SHAPE, "indices of length %lld, expected 1 to %d", (long long)k,
                         data->rank - (int)b);
    *depth = (int)k;
    return BRAID_OK;
}

static braid_status gather_nd_infer(infer *c) {
    const tensor_type *data = c->in[0], *index = c->in[1];
    tensor_type *out = &c->out[0];
    int batch, depth;
    out->type = data->type;
    TRY(infer_index_type(c, 1));
    TRY(infer_rank(c, 0, 1, BRAID_MAX_RANK));
    TRY(infer_rank(c, 1, 1, BRAID_MAX_RANK));
    if (data->rank < 0 || index->rank < 0) return BRAID_OK;
    TRY(gather_nd_depth(c, &batch, &depth));
    if (!depth) return BRAID_OK;
    int rank = index->rank - 1 + data->rank - batch - depth;
    if (rank > BRAID_MAX_RANK) return error_set(c->err, BRAID_LIMIT, "rank %d, at most %d", rank, BRAID_MAX_RANK);
    for (int d = 0; d < batch; d++)
        if (dim_known(data->dims[d]) && dim_known(index->dims[d]) && data->dims[d] != index->dims[d])
            return error_set(c->err, BRAID_SHAPE, "batch axis %d: %lld and %lld elements", d, (long long)data->dims[d],
                             (long long)index->dims[d]);
    for (int d = 0; d < rank; d++)
        out->dims[d] = d < index->rank - 1 ? index->dims[d] : data->dims[batch + depth + d - (index->rank - 1)];
    out->rank = rank;
    TRY(index_check_constant(c, 1, depth, data->dims + batch));
    return infer_limit(c, 0);
}

static gather_shape gather_nd_shape(const node *n, const tensor_type *data, const tensor_type *index) {
    int b = (int)node_int(n, "batch_dims", 0), k = (int)index->dims[index->rank - 1];
    gather_shape g = {.batches = product_of(data->dims, 0, b), .rows = product_of(index->dims, b, index->rank - 1),
                      .depth = k, .slice = product_of(data->dims, b + k, data->rank),
                      .data_batch = product_of(data->dims, b, data->rank)};
    int64_t strides[BRAID_MAX_RANK];
    region_strides(data->rank, data->dims, strides);
    for (int i = 0; i < k; i++) {
        g.dims[i] = data->dims[b + i];
        g.strides[i] = strides[b + i];
    }
    g.index_batch = g.rows * k;
    return g;
}

static braid_status gather_nd_eval(eval *e) {
    const tensor *data = eval_in(e, 0), *index = eval_in(e, 1);
    tensor *result;
    size_t size;
    int64_t from;
    gather_shape g = gather_nd_shape(e->node, &data->type, &index->type);
    TRY(eval_output(e, 0, &result));
    const uint8_t *in = bytes_in(e->memory, data, &size);
    uint8_t *out = bytes_out(e->memory, result, &size);
    if (!in || !out) return error_memory(e->err);
    size_t slice = (size_t)g.slice * size;
    for (int64_t b = 0; b < g.batches; b++)
        for (int64_t k = 0; k < g.rows; k++) {
            int64_t row = b * g.rows + k;
            TRY(index_offset(index, row, (int)g.depth, g.dims, g.strides, &from, e->err));
            if (slice) memcpy(out + (size_t)row * slice, in + (size_t)(b * g.data_batch + from) * size, slice);
        }
    bytes_done(result, out);
    return BRAID_OK;
}

static braid_status gather_nd_lower(lowering *l) {
    gather_shape g = gather_nd_shape(l->node, lower_in(l, 0), lower_in(l, 1));
    return gather_lower_rows(l, &g);
}

static const attribute_spec axis_attributes[] = {{"axis", ATTRIBUTE_INT, "0"}, {0}};
static const attribute_spec gather_nd_attributes[] = {{"batch_dims", ATTRIBUTE_INT, "0"}, {0}};

const op index_ops[] = {
    {.name = "Gather", .since = 1, .min_in = 2, .max_in = 2, .min_out = 1, .max_out = 1, .attributes = axis_attributes,
     .infer = gather_infer, .eval = gather_eval, .lower = gather_lower},
    {.name = "GatherElements", .since = 11, .min_in = 2, .max_in = 2, .min_out = 1, .max_out = 1,
     .attributes = axis_attributes, .infer = gather_elements_infer, .eval = gather_elements_eval,
     .lower = gather_elements_lower},
    {.name = "GatherND", .since = 11, .min_in = 2, .max_in = 2, .min_out = 1, .max_out = 1,
     .attributes = gather_nd_attributes, .infer = gather_nd_infer, .eval = gather_nd_eval, .lower = gather_nd_lower},
    {0}};
