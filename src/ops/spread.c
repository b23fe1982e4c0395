/*
 * spread.c: Trilu, OneHot, ReverseSequence: copies that depend on positions.
 */
#include "ops/bytes.h"
#include "ops/follow.h"
#include "ops/make.h"

static int64_t product(const tensor_type *t, int first, int last) {
    int64_t n = 1;
    for (int i = first; i < last; i++) n *= t->dims[i];
    return n;
}

/* -------------------------------------------------------------------------------------------------- Trilu */
static braid_status check_scalar(infer *c, int i) {
    if (!infer_has(c, i)) return BRAID_OK;
    TRY(infer_rank(c, i, 0, 1));
    if (c->in[i]->rank == 1 && dim_known(c->in[i]->dims[0]) && c->in[i]->dims[0] != 1)
        return error_set(c->err, BRAID_SHAPE, "input %d: %lld elements, expected 1", i, (long long)c->in[i]->dims[0]);
    return BRAID_OK;
}

static braid_status trilu_infer(infer *c) {
    TRY(infer_rank(c, 0, 2, BRAID_MAX_RANK));
    TRY(check_scalar(c, 1));
    if (infer_has(c, 1) && c->in[1]->type != BRAID_TYPE_NONE && c->in[1]->type != BRAID_INT64)
        return error_set(c->err, BRAID_TYPE, "input 1: type %s, expected int64", braid_type_name(c->in[1]->type));
    return infer_same(c);
}

static void clear_element(braid_type t, uint8_t *to, size_t size) {
    static const char *const nothing = "";
    if (t == BRAID_STRING)
        memcpy(to, &nothing, sizeof nothing);
    else
        memset(to, 0, size);
}

static braid_status trilu_eval(eval *e) {
    const tensor *x = eval_in(e, 0), *shift = eval_in(e, 1);
    tensor *y;
    size_t size;
    TRY(eval_output(e, 0, &y));
    const uint8_t *from = bytes_in(e->memory, x, &size);
    uint8_t *to = bytes_out(e->memory, y, &size);
    if (!from || !to) return error_memory(e->err);
    int64_t k = shift ? element_i64(BRAID_INT64, shift->data, 0) : 0, count;
    bool upper = node_int(e->node, "upper", 1) != 0;
    int64_t rows = x->type.dims[x->type.rank - 2], columns = x->type.dims[x->type.rank - 1];
    for (int64_t i = 0; tensor_type_count(&x->type, &count) && i < count; i++) {
        int64_t ahead = i % columns - i / columns % rows;
        if (upper ? ahead >= k : ahead <= k)
            memcpy(to + (size_t)i * size, from + (size_t)i * size, size);
        else
            clear_element(x->type.type, to + (size_t)i * size, size);
    }
    bytes_done(y, to);
    return BRAID_OK;
}

/* ------------------------------------------------------------------------------------------------- OneHot */
static braid_status one_hot_types(infer *c) {
    for (int i = 0; i < 2; i++) {
        braid_type t = c->in[i]->type;
        if (t != BRAID_TYPE_NONE && !type_is_float(t) && !type_is_integer(t))
            return error_set(c->err, BRAID_TYPE, "input %d: type %s is not allowed", i, braid_type_name(t));
    }
    TRY(infer_rank(c, 2, 1, 1));
    if (c->in[2]->rank == 1 && dim_known(c->in[2]->dims[0]) && c->in[2]->dims[0] != 2)
        return error_set(c->err, BRAID_SHAPE, "input 2: %lld elements, expected 2", (long long)c->in[2]->dims[0]);
    return check_scalar(c, 1);
}

static braid_status one_hot_depth(infer *c, int64_t *out) {
    const tensor *depth;
    int count;
    const int64_t *list;
    TRY(infer_constant(c, 1, &depth));
    if (depth) {
        *out = make_index(depth, 0);
        if (*out < 0) return error_set(c->err, BRAID_MODEL, "depth is %lld", (long long)*out);
    } else if (infer_ints(c, 1, &count, &list) && count == 1) {
        *out = list[0];
    } else {
        *out = infer_fresh(c);
    }
    if (dim_known(*out) && *out < 0) return error_set(c->err, BRAID_MODEL, "depth is %lld", (long long)*out);
    if (dim_known(*out) && *out > ELEMENTS_MAX) return error_set(c->err, BRAID_LIMIT, "depth is %lld", (long long)*out);
    return BRAID_OK;
}

static braid_status one_hot_infer(infer *c) {
    const tensor_type *x = c->in[0];
    tensor_type *y = &c->out[0];
    int axis;
    int64_t depth;
    TRY(one_hot_types(c));
    y->type = c->in[2]->type;
    TRY(one_hot_depth(c, &depth));
    if (x->rank < 0) return BRAID_OK;
    if (x->rank >= BRAID_MAX_RANK) return error_set(c->err, BRAID_LIMIT, "rank %d", x->rank + 1);
    TRY(axis_normalise(node_int(c->node, "axis", -1), x->rank + 1, &axis, c->err));
    y->rank = x->rank + 1;
    for (int i = 0; i < y->rank; i++) y->dims[i] = i < axis ? x->dims[i] : i == axis ? depth : x->dims[i - 1];
    return infer_limit(c, 0);
}

static braid_status one_hot_eval(eval *e) {
    const tensor *x = eval_in(e, 0), *values = eval_in(e, 2);
    tensor *y;
    size_t size;
    int axis;
    TRY(eval_output(e, 0, &y));
    TRY(axis_normalise(node_int(e->node, "axis", -1), y->type.rank, &axis, e->err));
    const uint8_t *from = bytes_in(e->memory, values, &size);
    uint8_t *to = bytes_out(e->memory, y, &size);
    if (!from || !to) return error_memory(e->err);
    int64_t depth = y->type.dims[axis], outer = product(&y->type, 0, axis);
    int64_t inner = product(&y->type, axis + 1, y->type.rank);
    for (int64_t i = 0; i < outer * depth * inner; i++) memcpy(to + (size_t)i * size, from, size);
    for (int64_t i = 0; i < outer * inner; i++) {
        int64_t at = make_index(x, i);
        if (at < 0) at += depth;
        if (at < 0 || at >= depth) continue;
        int64_t o = (i / inner * depth + at) * inner + i % inner;
        memcpy(to + (size_t)o * size, from + size, size);
    }
    bytes_done(y, to);
    return BRAID_OK;
}

/* ---------------------------------------------------------------------------------------- ReverseSequence */
braid_status reverse_axes(const node *n, int *batch, int *time, braid_error *err) {
    int64_t b = node_int(n, "batch_axis", 1), t = node_int(n, "time_axis", 0);
    if ((b != 0 && b != 1) || (t != 0 && t != 1) || b == t)
        return error_set(err, BRAID_MODEL, "batch_axis %lld and time_axis %lld, expected 0 and 1 or 1 and 0",
                         (long long)b, (long long)t);
    *batch = (int)b;
    *time = (int)t;
    return BRAID_OK;
}

static braid_status reverse_sequence_infer(infer *c) {
    int batch = 1, time = 0;
    TRY(reverse_axes(c->node, &batch, &time, c->err));
    TRY(infer_rank(c, 0, 2, BRAID_MAX_RANK));
    TRY(infer_rank(c, 1, 1, 1));
    const tensor_type *x = c->in[0], *lengths = c->in[1];
    if (lengths->type != BRAID_TYPE_NONE && lengths->type != BRAID_INT64)
        return error_set(c->err, BRAID_TYPE, "input 1: type %s, expected int64", braid_type_name(lengths->type));
    if (x->rank >= 2 && lengths->rank == 1) {
        int64_t a = x->dims[batch], b = lengths->dims[0];
        if (dim_known(a) && dim_known(b) && a != b)
            return error_set(c->err, BRAID_SHAPE, "input 1: %lld lengths for a batch of %lld", (long long)b,
                             (long long)a);
    }
    return infer_same(c);
}

static braid_status reverse_sequence_eval(eval *e) {
    const tensor *x = eval_in(e, 0), *lengths = eval_in(e, 1);
    const int64_t *length = lengths->data;
    int batch = 1, time = 0;
    size_t size;
    tensor *y;
    TRY(reverse_axes(e->node, &batch, &time, e->err));
    TRY(eval_output(e, 0, &y));
    const uint8_t *from = bytes_in(e->memory, x, &size);
    uint8_t *to = bytes_out(e->memory, y, &size);
    if (!from || !to) return error_memory(e->err);
    int64_t at[2], steps = x->type.dims[time], inner = product(&x->type, 2, x->type.rank);
    for (int64_t i = 0; i < x->type.dims[batch]; i++)
        if (length[i] < 0 || length[i] > steps)
            return error_set(e->err, BRAID_INDEX, "length %lld of sequence %lld outside [0, %lld]",
                             (long long)length[i], (long long)i, (long long)steps);
    for (int64_t i = 0; i < x->type.dims[0] * x->type.dims[1]; i++) {
        at[0] = i / x->type.dims[1];
        at[1] = i % x->type.dims[1];
        int64_t n = length[at[batch]];
        if (at[time] < n) at[time] = n - 1 - at[time];
        int64_t source = at[0] * x->type.dims[1] + at[1];
        size_t line = (size_t)inner * size;
        memcpy(to + (size_t)i * line, from + (size_t)source * line, line);
    }
    bytes_done(y, to);
    return BRAID_OK;
}

/* --------------------------------------------------------------------------------------------------- rows */
static const attribute_spec trilu_specs[] = {{"upper", ATTRIBUTE_INT, "1"}, {0}};
static const attribute_spec one_hot_specs[] = {{"axis", ATTRIBUTE_INT, "-1"}, {0}};
static const attribute_spec reverse_specs[] = {
    {"batch_axis", ATTRIBUTE_INT, "1"}, {"time_axis", ATTRIBUTE_INT, "0"}, {0}};

const op spread_ops[] = {
    {.name = "Trilu", .since = 14, .min_in = 1, .max_in = 2, .min_out = 1, .max_out = 1, .attributes = trilu_specs,
     .infer = trilu_infer, .eval = trilu_eval, .lower = trilu_lower},
    {.name = "OneHot", .flags = OP_READS_FLOATS, .since = 9, .min_in = 3, .max_in = 3, .min_out = 1, .max_out = 1, .attributes = one_hot_specs,
     .infer = one_hot_infer, .eval = one_hot_eval, .lower = one_hot_lower},
    {.name = "ReverseSequence", .since = 10, .min_in = 2, .max_in = 2, .min_out = 1, .max_out = 1,
     .attributes = reverse_specs, .infer = reverse_sequence_infer, .eval = reverse_sequence_eval,
     .lower = reverse_sequence_lower},
    {0},
};
