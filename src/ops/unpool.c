/*
 * unpool.c: MaxUnpool. An index counts within the tensor that the attributes give; a larger output_shape then only adds
 * zeros behind it. Of several elements for one place the last stays.
 */
#include "kernels/rows/unpool.h"
#include "ops/flat.h"
#include "ops/follow.h"
#include "ops/pool.h"
#include <stddef.h>

/* Dims of the tensor that indices speak of. */
static braid_status inner_dims(const node *n, const tensor_type *x, int64_t out[BRAID_MAX_RANK], braid_error *err) {
    pool_window w;
    TRY(pool_read(n, x->rank, &w, err));
    out[0] = x->dims[0];
    out[1] = x->dims[1];
    for (int i = 2; i < x->rank; i++) {
        const pool_axis *a = &w.axis[POOL_AXES - w.rank + i - 2];
        if (dim_is_symbol(x->dims[i])) {
            out[i] = x->dims[i];
            continue;
        }
        int64_t size = x->dims[i];
        if (size > ELEMENTS_MAX / a->stride) return error_set(err, BRAID_LIMIT, "axis %d grows too large", i);
        out[i] = size == 0 ? 0 : (size - 1) * a->stride + a->kernel - a->begin - a->end;
        if (out[i] < 0) return error_set(err, BRAID_SHAPE, "axis %d: pads leave %lld elements", i, (long long)out[i]);
    }
    return BRAID_OK;
}

/* ------------------------------------------------------------------------------------------------- infer */
static braid_status check_indices(infer *c) {
    const tensor_type *x = c->in[0], *at = c->in[1];
    TRY(pool_float(c, 0, BRAID_INT8, BRAID_UINT8));
    if (at->type != BRAID_TYPE_NONE && at->type != BRAID_INT64)
        return error_set(c->err, BRAID_TYPE, "input 1: type %s, expected int64", braid_type_name(at->type));
    if (x->rank < 0 || at->rank < 0) return BRAID_OK;
    TRY(infer_rank(c, 1, x->rank, x->rank));
    for (int i = 0; i < x->rank; i++)
        if (dim_known(x->dims[i]) && dim_known(at->dims[i]) && x->dims[i] != at->dims[i])
            return error_set(c->err, BRAID_SHAPE, "input 1: dim %d is %lld, input 0 has %lld", i,
                             (long long)at->dims[i], (long long)x->dims[i]);
    return BRAID_OK;
}

static braid_status unpool_infer(infer *c) {
    const tensor_type *x = c->in[0];
    int64_t inner[BRAID_MAX_RANK];
    int count;
    const int64_t *shape;
    TRY(check_indices(c));
    c->out[0].type = x->type;
    if (x->rank < 0) return BRAID_OK;
    TRY(inner_dims(c->node, x, inner, c->err));
    c->out[0].rank = x->rank;
    bool given = infer_ints(c, 2, &count, &shape);
    if (given && count != x->rank)
        return error_set(c->err, BRAID_SHAPE, "input 2: %d elements, expected %d", count, x->rank);
    for (int i = 0; i < x->rank; i++) {
        bool known = dim_known(inner[i]) || i < 2;
        c->out[0].dims[i] = given ? shape[i] : known && !infer_has(c, 2) ? inner[i] : infer_fresh(c);
        if (given && dim_known(shape[i]) && (shape[i] < 0 || (dim_known(inner[i]) && shape[i] < inner[i])))
            return error_set(c->err, BRAID_SHAPE, "input 2: dim %d is %lld, expected at least %lld", i,
                             (long long)shape[i], (long long)inner[i]);
    }
    return infer_limit(c, 0);
}

/* -------------------------------------------------------------------------------------------------- eval */
/* Where element `at` of a tensor of dims `inner` lies in one of dims `outer`. */
static int64_t widen(int rank, const int64_t *inner, const int64_t *outer, int64_t at) {
    int64_t to = 0, stride = 1;
    for (int d = rank - 1; d >= 0; d--) {
        to += at % inner[d] * stride;
        at /= inner[d];
        stride *= outer[d];
    }
    return to;
}

static braid_status unpool_eval(eval *e) {
    const tensor *x = eval_in(e, 0), *index = eval_in(e, 1);
    int64_t inner[BRAID_MAX_RANK], room, count;
    tensor *y;
    TRY(inner_dims(e->node, &x->type, inner, e->err));
    TRY(eval_output(e, 0, &y));
    if (!dims_count(x->type.rank, inner, &room) || !tensor_type_count(&x->type, &count))
        return error_set(e->err, BRAID_LIMIT, "the output is too large");
    size_t size = braid_type_bytes(x->type.type);
    for (int64_t i = 0; i < count; i++) {
        int64_t at = ((const int64_t *)index->data)[i];
        if (at < 0 || at >= room)
            return error_set(e->err, BRAID_INDEX, "index %lld outside [0, %lld)", (long long)at, (long long)room);
        int64_t to = widen(x->type.rank, inner, y->type.dims, at);
        memcpy((char *)y->data + (size_t)to * size, (const char *)x->data + (size_t)i * size, size);
    }
    return BRAID_OK;
}

/* ------------------------------------------------------------------------------------------------- lower */
/* clear: marks = 0; mark: marks[index[i]] = max(i + 1); take: y = x[marks - 1]. Passes keep the result free of races. */
static braid_status unpool_pass(lowering *l, row_unpool *row, uint32_t pass, int64_t outputs, int32_t marks,
                                uint64_t mark_bytes) {
    static const int access[] = {ACCESS_WRITE, ACCESS_READ_WRITE, ACCESS_READ};
    row->outputs = (uint32_t)outputs;
    step *s = flat_step(l, "unpool", row, sizeof *row, outputs);
    if (!s) return error_memory(l->err);
    TRY(lower_spec(l, s, FLAT_SPEC, pass));
    TRY(lower_spec(l, s, FLAT_SPEC + 1, (uint32_t)braid_type_bytes(lower_in(l, 0)->type)));
    if (mark_bytes) TRY(lower_operand(l, s, offsetof(row_unpool, marks), marks, 0, mark_bytes, access[pass]));
    if (pass == UNPOOL_MARK) TRY(lower_operand_in(l, s, offsetof(row_unpool, index), 1));
    if (pass != UNPOOL_TAKE) return BRAID_OK;
    TRY(lower_operand_in(l, s, offsetof(row_unpool, x), 0));
    return lower_operand_out(l, s, offsetof(row_unpool, y), 0);
}

static braid_status unpool_lower(lowering *l) {
    const tensor_type *x = lower_in(l, 0), *y = lower_out(l, 0);
    int64_t inner[BRAID_MAX_RANK], room, count, outputs;
    if (!flat_fits(x) || !flat_fits(y) || !tensor_type_count(x, &count) || !tensor_type_count(y, &outputs))
        return BRAID_UNSUPPORTED;
    TRY(inner_dims(l->node, x, inner, l->err));
    if (!dims_count(x->rank, inner, &room) || room >= FLAT_MAX / 4) return BRAID_UNSUPPORTED;
    row_unpool row = {.room = (uint32_t)room};
    for (int i = 0; i < UNPOOL_RANK; i++) {
        int axis = i - (UNPOOL_RANK - x->rank);
        row.inner[i] = axis < 0 ? 1 : (uint32_t)inner[axis];
        row.outer[i] = axis < 0 ? 1 : (uint32_t)y->dims[axis];
    }
    uint64_t bytes = (uint64_t)room * 4;
    int32_t marks = lower_scratch(l, bytes);
    if (marks < 0) return error_memory(l->err);
    TRY(unpool_pass(l, &row, UNPOOL_CLEAR, room, marks, bytes));
    TRY(unpool_pass(l, &row, UNPOOL_MARK, count, marks, bytes));
    return unpool_pass(l, &row, UNPOOL_TAKE, outputs, marks, bytes);
}

static const attribute_spec unpool_specs[] = {
    {"kernel_shape", ATTRIBUTE_INTS, NULL}, {"pads", ATTRIBUTE_INTS, "0"}, {"strides", ATTRIBUTE_INTS, "1"}, {0}};

const op unpool_ops[] = {
    {.name = "MaxUnpool", .since = 9, .min_in = 2, .max_in = 3, .min_out = 1, .max_out = 1, .attributes = unpool_specs,
     .infer = unpool_infer, .eval = unpool_eval, .lower = unpool_lower},
    {0},
};
