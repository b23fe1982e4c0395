/*
 * fold: computes what can be known now. A node whose inputs are all constant is evaluated; an output whose followed
 * elements are all numbers becomes a constant even when its inputs are not (Shape of a tensor with known dims).
 *
 * Requires: sorted. Ensures: types inferred. Results above the budget stay nodes: a file of 200 bytes must not become
 * gigabytes because ConstantOfShape was asked for them; the estimate comes before the work.
 */
#include "pass/copy.h"

static bool all_constant(const copier *c, const node *n) {
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0 && !c->to->values[c->map[n->in[i]]]->constant) return false;
    return true;
}

/* Several copies stay: a constant is one. */
static bool is_single(const node *n) { return node_copies(n) == 1 && !node_is_stack(n) && !node_is_unstack(n); }

static bool foldable(const copier *c, const node *n) {
    if (!is_single(n) || !n->op || !n->op->eval || (n->op->flags & OP_RANDOM)) return false;
    for (int i = 0; i < n->n_attributes; i++)
        if (n->attributes[i].kind == ATTRIBUTE_GRAPH || n->attributes[i].kind == ATTRIBUTE_GRAPHS) return false;
    return all_constant(c, n);
}

/* Bytes of the outputs as inferred; UINT64_MAX when some is too large to say, 0 counted where data decides. */
static uint64_t estimate(const graph *g, const node *n) {
    uint64_t total = 0;
    for (int i = 0; i < n->n_out; i++) {
        size_t bytes;
        if (n->out[i] < 0 || !tensor_type_static(&g->values[n->out[i]]->type)) continue;
        if (!tensor_type_bytes(&g->values[n->out[i]]->type, &bytes)) return UINT64_MAX;
        total += bytes;
    }
    return total;
}

static braid_status add_constant(copier *c, int32_t old, tensor *t) {
    int32_t now = graph_constant(c->to, c->from->values[old]->name, t);
    if (now < 0) return error_memory(c->err);
    copier_replace(c, old, now);
    return BRAID_OK;
}

static braid_status evaluate(copier *c, const node *n, uint64_t *budget) {
    arena *memory = c->to->memory;
    const tensor **in = arena_array(memory, (size_t)n->n_in + 1, sizeof *in);
    tensor **out = arena_array(memory, (size_t)n->n_out + 1, sizeof *out);
    if (!in || !out) return error_memory(c->err);
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i] < 0) continue;
        tensor *t = c->to->values[c->map[n->in[i]]]->constant;
        TRY(tensor_load(t, memory, c->err));
        in[i] = t;
    }
    TRY(op_eval(c->to, n, memory, in, out, c->err));
    for (int i = 0; i < n->n_out; i++) {
        if (n->out[i] < 0 || !out[i]) continue;
        *budget -= out[i]->bytes < *budget ? out[i]->bytes : *budget;
        TRY(add_constant(c, n->out[i], out[i]));
    }
    return BRAID_OK;
}

static bool followed_whole(const value *v) {
    if (v->n_known < 0 || v->type.type == BRAID_TYPE_NONE || !tensor_type_static(&v->type)) return false;
    int64_t count;
    if (!tensor_type_count(&v->type, &count) || count != v->n_known || !type_is_integer(v->type.type)) return false;
    for (int i = 0; i < v->n_known; i++)
        if (!dim_known(v->known[i]) || v->known[i] == DIM_SYMBOL_BASE) return false;
    return true;
}

static braid_status from_followed(copier *c, int32_t old) {
    const value *v = c->from->values[old];
    tensor *t;
    TRY(tensor_new(c->to->memory, v->type.type, v->type.rank, v->type.dims, &t, c->err));
    for (int i = 0; i < v->n_known; i++) element_set_i64(v->type.type, t->data, i, v->known[i]);
    return add_constant(c, old, t);
}

static bool all_followed(const copier *c, const node *n) {
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i] >= 0 && !followed_whole(c->from->values[n->out[i]])) return false;
    return true;
}

static braid_status fold_node(copier *c, const node *n, uint64_t *budget) {
    char title[256];
    if (is_single(n) && all_followed(c, n)) {
        for (int i = 0; i < n->n_out; i++)
            if (n->out[i] >= 0) TRY(from_followed(c, n->out[i]));
        return BRAID_OK;
    }
    if (!foldable(c, n) || estimate(c->from, n) > *budget) return copier_node(c, n, NULL);
    braid_status status = evaluate(c, n, budget);
    return status == BRAID_OK ? status : error_within(c->err, status, "%s", node_title(n, title));
}

enum { FOLD_BUDGET = 64 << 20 };

braid_status pass_fold(const graph *g, arena *memory, const pass_options *o, graph **out, braid_error *err) {
    copier c;
    uint64_t budget = o && o->fold_budget ? o->fold_budget : FOLD_BUDGET;
    TRY(copier_new(&c, g, memory, err));
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const node *n = g->nodes[i];
        for (int k = 0; k < n->n_in; k++) {
            int32_t ignored;
            TRY(copier_value(&c, n->in[k], &ignored));
        }
        TRY(fold_node(&c, n, &budget));
    }
    TRY(copier_outputs(&c));
    *out = c.to;
    return BRAID_OK;
}
