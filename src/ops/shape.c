/*
 * shape.c: Shape and Size. Their outputs are followed values: constants as soon as the input's shape is known.
 */
#include "ops/follow.h"

/* Clamps a start or end of Shape, negative counting from the back. */
static int shape_bound(int64_t v, int rank) {
    if (v < 0) v += rank;
    return v < 0 ? 0 : v > rank ? rank : (int)v;
}

static void shape_range(const node *n, int rank, int *start, int *count) {
    *start = shape_bound(node_int(n, "start", 0), rank);
    int end = shape_bound(node_int(n, "end", INT64_MAX), rank);
    *count = end > *start ? end - *start : 0;
}

static braid_status shape_infer(infer *c) {
    c->out[0].type = BRAID_INT64;
    c->out[0].rank = 1;
    c->out[0].dims[0] = infer_fresh(c);
    if (c->in[0]->rank < 0) return BRAID_OK;
    int start, count;
    shape_range(c->node, c->in[0]->rank, &start, &count);
    c->out[0].dims[0] = count;
    int64_t *v = follow_put(c, 0, count);
    if (!v) return error_memory(c->err);
    if (count) memcpy(v, c->in[0]->dims + start, (size_t)count * sizeof *v);
    return BRAID_OK;
}

static braid_status shape_eval(eval *e) {
    tensor *out;
    const tensor_type *in = &eval_in(e, 0)->type;
    int start, count;
    shape_range(e->node, in->rank, &start, &count);
    TRY(eval_output_shaped(e, 0, BRAID_INT64, 1, (int64_t[]){count}, &out));
    if (count) memcpy(out->data, in->dims + start, (size_t)count * sizeof(int64_t));
    return BRAID_OK;
}

static braid_status size_infer(infer *c) {
    c->out[0].type = BRAID_INT64;
    c->out[0].rank = 0;
    if (c->in[0]->rank < 0) return BRAID_OK;
    int64_t count = 1;
    for (int d = 0; d < c->in[0]->rank; d++) TRY(infer_mul(c, count, c->in[0]->dims[d], &count));
    int64_t *v = follow_put(c, 0, 1);
    if (!v) return error_memory(c->err);
    v[0] = count;
    return BRAID_OK;
}

static braid_status size_eval(eval *e) {
    tensor *out;
    int64_t count;
    if (!tensor_type_count(&eval_in(e, 0)->type, &count)) return error_set(e->err, BRAID_LIMIT, "too many elements");
    TRY(eval_output_shaped(e, 0, BRAID_INT64, 0, NULL, &out));
    *(int64_t *)out->data = count;
    return BRAID_OK;
}

static const attribute_spec shape_attributes[] = {{"start", ATTRIBUTE_INT, "0"}, {"end", ATTRIBUTE_INT, NULL}, {0}};

const op shape_ops[] = {
    {.name = "Shape", .since = 1, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1, .attributes = shape_attributes,
     .infer = shape_infer, .eval = shape_eval},
    {.name = "Size", .since = 1, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1, .infer = size_infer,
     .eval = size_eval},
    {0}};
