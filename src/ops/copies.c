/*
 * copies.c: braid.Stack and braid.Unstack, the borders between nodes that stand for many (node.copies) and single ones.
 * Only passes make them. Of one tensor both are the identity.
 */
#include "ops/lowering.h"

static braid_status check_copies(const infer *c, int32_t v, int expected) {
    bool listed = v >= 0 && v < c->g->n_values; /* op_eval has no graph around the node */
    int32_t copies = listed ? value_copies(c->g->values[v]) : 1;
    if (copies == expected) return BRAID_OK;
    return error_set(c->err, BRAID_MODEL, "%d tensors on one side, %d on the other", expected, (int)copies);
}

static bool same_dims(const tensor_type *a, const tensor_type *b) {
    if (a->rank < 0 || b->rank < 0) return true;
    if (a->rank != b->rank) return false;
    for (int d = 0; d < a->rank; d++)
        if (dim_known(a->dims[d]) && dim_known(b->dims[d]) && a->dims[d] != b->dims[d]) return false;
    return true;
}

static braid_status stack_infer(infer *c) {
    TRY(check_copies(c, c->node->out[0], c->n_in));
    for (int i = 0; i < c->n_in; i++) {
        if (!infer_has(c, i)) return error_set(c->err, BRAID_MODEL, "input %d is absent", i);
        bool known = c->in[0]->type != BRAID_TYPE_NONE && c->in[i]->type != BRAID_TYPE_NONE;
        if (known && c->in[i]->type != c->in[0]->type)
            return error_set(c->err, BRAID_TYPE, "input %d: %s, others are %s", i, braid_type_name(c->in[i]->type),
                             braid_type_name(c->in[0]->type));
        if (!same_dims(c->in[0], c->in[i])) return error_set(c->err, BRAID_SHAPE, "input %d: another shape", i);
    }
    return infer_same(c);
}

static braid_status unstack_infer(infer *c) {
    TRY(check_copies(c, c->node->in[0], c->n_out));
    for (int i = 0; i < c->n_out; i++) c->out[i] = *c->in[0];
    return BRAID_OK;
}

static braid_status copies_eval(eval *e) {
    if (e->n_in != 1 || e->n_out != 1)
        return error_set(e->err, BRAID_UNSUPPORTED, "several copies exist on a device only");
    tensor *out;
    TRY(eval_output(e, 0, &out));
    if (out->bytes) memcpy(out->data, eval_in(e, 0)->data, out->bytes);
    return BRAID_OK;
}

/* One run of bytes. */
static braid_status copy_member(lowering *l, int i) {
    const tensor_type *t = lower_in(l, i);
    int64_t count, at = (int64_t)(lower_copy_at(l, 0, i) / (uint64_t)(type_bits(t->type) / 8));
    region r = {.out_at = at};
    if (!tensor_type_count(t, &count)) return BRAID_UNSUPPORTED;
    region_add(&r, count, 1, 1);
    return region_lower(l, i, 0, &r);
}

static braid_status stack_lower(lowering *l) {
    bool done;
    if (type_bits(lower_in(l, 0)->type) < 8) return BRAID_UNSUPPORTED;
    TRY(lower_stack(l, &done));
    for (int i = 0; i < l->node->n_in && !done; i++)
        if (!lower_stack_place(l, i)) TRY(copy_member(l, i));
    return BRAID_OK;
}

const op copies_ops[] = {{.name = "Stack",
                          .domain = "braid",
                          .since = 1,
                          .min_in = 1,
                          .max_in = 1,
                          .min_out = 1,
                          .max_out = 1,
                          .flags = OP_VARIADIC_IN,
                          .infer = stack_infer,
                          .eval = copies_eval,
                          .lower = stack_lower},
                         {.name = "Unstack",
                          .domain = "braid",
                          .since = 1,
                          .min_in = 1,
                          .max_in = 1,
                          .min_out = 1,
                          .max_out = 1,
                          .flags = OP_VARIADIC_OUT,
                          .infer = unstack_infer,
                          .eval = copies_eval,
                          .lower = lower_unstack},
                         {0}};
