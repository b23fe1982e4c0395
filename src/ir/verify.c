/*
 * verify.c: the invariants of a graph.
 *
 *   - every value number is in range; a node output has exactly one producer, and `producer` names it
 *   - a node reads inputs, constants, outer values and outputs of earlier nodes only
 *   - constants have a tensor of the value's type, outer values a number in the parent
 *   - a node's outputs have its copies, its inputs these or one (Stack and Unstack: as many as inputs or outputs); nothing
 *     but node outputs has several copies
 *   - dims are numbers >= 0 or known symbols; an epilogue's registers exist
 */
#include "ir/graph.h"

enum { DEPTH_MAX = 64 };

static braid_status verify_type(const graph *root, const tensor_type *t, const char *name, braid_error *err) {
    if (t->rank < -1 || t->rank > BRAID_MAX_RANK)
        return error_set(err, BRAID_INTERNAL, "value '%s': rank %d", name, t->rank);
    for (int i = 0; i < t->rank; i++) {
        int64_t d = t->dims[i];
        if (dim_known(d) ? d < 0 : dim_symbol(d) >= (uint32_t)root->n_symbols)
            return error_set(err, BRAID_INTERNAL, "value '%s': dim %d is %lld", name, i, (long long)d);
    }
    return BRAID_OK;
}

static braid_status verify_value(const graph *g, const graph *root, const value *v, braid_error *err) {
    TRY(verify_type(root, &v->type, v->name, err));
    if (v->constant && v->kind == VALUE_CONSTANT && !tensor_type_equal(&v->constant->type, &v->type))
        return error_set(err, BRAID_INTERNAL, "constant '%s': its tensor has another type", v->name);
    bool ok = true;
    if (v->kind == VALUE_CONSTANT) ok = v->constant && v->producer < 0;
    if (v->kind == VALUE_INPUT) ok = v->producer < 0;
    if (v->kind == VALUE_OUTER) ok = v->producer < 0 && g->parent && v->outer >= 0 && v->outer < g->parent->n_values;
    if (v->kind == VALUE_NODE) ok = v->producer < g->n_nodes;
    if (v->kind != VALUE_NODE && value_copies(v) > 1) ok = false;
    return ok ? BRAID_OK : error_set(err, BRAID_INTERNAL, "value '%s': broken kind %d", v->name, (int)v->kind);
}

static braid_status verify_read(const graph *g, int32_t v, int32_t before, braid_error *err) {
    if (v < 0 || v >= g->n_values) return error_set(err, BRAID_INTERNAL, "value number %d out of range", (int)v);
    const value *x = g->values[v];
    if (x->kind == VALUE_NODE && (x->producer < 0 || x->producer >= before))
        return error_set(err, BRAID_INTERNAL, "value '%s' is read before it is made", x->name);
    return BRAID_OK;
}

static braid_status verify_program(const node *n, braid_error *err) {
    const program *p = n->epilogue;
    bool ok = n->n_root >= 0 && n->n_root <= n->n_in;
    if (p)
        ok = ok && p->n_steps >= 1 && p->n_steps <= PROGRAM_STEPS && p->n_immediates >= 0 &&
             p->n_immediates <= PROGRAM_IMMEDIATES;
    for (int i = 0; ok && p && i < p->n_steps; i++) {
        int limit = PROGRAM_INPUTS + PROGRAM_IMMEDIATES + i;
        ok = p->steps[i].a < limit && p->steps[i].b < limit && p->steps[i].c < limit;
    }
    return ok ? BRAID_OK : error_set(err, BRAID_INTERNAL, "broken epilogue");
}

static int32_t copies_of(const graph *g, int32_t v, int32_t absent) {
    return v < 0 ? absent : value_copies(g->values[v]);
}

static braid_status verify_copies(const graph *g, const node *n, braid_error *err) {
    int32_t in = node_copies(n), out = in;
    bool stack = node_is_stack(n), unstack = node_is_unstack(n);
    if (stack) out = n->n_in;
    if (unstack) in = n->n_out;
    bool ok = !(stack || unstack) || node_copies(n) == 1;
    for (int i = 0; i < n->n_in && ok; i++) {
        int32_t copies = copies_of(g, n->in[i], in);
        ok = copies == in || (copies == 1 && !unstack);
    }
    for (int i = 0; i < n->n_out && ok; i++) ok = copies_of(g, n->out[i], out) == out;
    return ok ? BRAID_OK : error_set(err, BRAID_INTERNAL, "copies of inputs and outputs do not fit");
}

static braid_status verify_graph(const graph *g, const graph *root, int depth, braid_error *err);

static braid_status verify_attributes(const graph *g, const graph *root, const node *n, int depth, braid_error *err) {
    for (int i = 0; i < n->n_attributes; i++) {
        const attribute *a = &n->attributes[i];
        size_t count = a->kind == ATTRIBUTE_GRAPHS ? a->count : a->kind == ATTRIBUTE_GRAPH ? 1 : 0;
        for (size_t k = 0; k < count; k++) {
            const graph *inner = a->kind == ATTRIBUTE_GRAPH ? a->g : a->graphs[k];
            if (inner->parent != g) return error_set(err, BRAID_INTERNAL, "attribute '%s': wrong parent", a->name);
            braid_status s = verify_graph(inner, root, depth + 1, err);
            if (s != BRAID_OK) return error_within(err, s, "attribute '%s'", a->name);
        }
        if ((a->kind == ATTRIBUTE_TENSOR && !a->t) || !a->name)
            return error_set(err, BRAID_INTERNAL, "attribute %d is broken", i);
    }
    return BRAID_OK;
}

static braid_status verify_node(const graph *g, const graph *root, int32_t at, int depth, braid_error *err) {
    const node *n = g->nodes[at];
    if (!n->type || !n->domain || !n->name) return error_set(err, BRAID_INTERNAL, "a name is missing");
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] != -1) TRY(verify_read(g, n->in[i], at, err));
    for (int i = 0; i < n->n_out; i++) {
        if (n->out[i] == -1) continue;
        if (n->out[i] < 0 || n->out[i] >= g->n_values || g->values[n->out[i]]->kind != VALUE_NODE ||
            g->values[n->out[i]]->producer != at)
            return error_set(err, BRAID_INTERNAL, "output %d has another producer", i);
    }
    TRY(verify_program(n, err));
    TRY(verify_copies(g, n, err));
    return verify_attributes(g, root, n, depth, err);
}

static braid_status verify_graph(const graph *g, const graph *root, int depth, braid_error *err) {
    if (depth > DEPTH_MAX) return error_set(err, BRAID_INTERNAL, "graphs are nested deeper than %d", DEPTH_MAX);
    for (int32_t i = 0; i < g->n_values; i++) TRY(verify_value(g, root, g->values[i], err));
    for (int32_t i = 0; i < g->n_nodes; i++) {
        braid_status s = verify_node(g, root, i, depth, err);
        if (s != BRAID_OK) return error_within(err, s, "node '%s' (%s)", g->nodes[i]->name, g->nodes[i]->type);
    }
    for (int32_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i] < 0 || g->inputs[i] >= g->n_values || g->values[g->inputs[i]]->kind != VALUE_INPUT)
            return error_set(err, BRAID_INTERNAL, "graph input %d is not an input value", (int)i);
    for (int32_t i = 0; i < g->n_outputs; i++) {
        braid_status s = verify_read(g, g->outputs[i], g->n_nodes, err);
        if (s != BRAID_OK) return error_within(err, s, "graph output %d", (int)i);
        if (copies_of(g, g->outputs[i], 1) != 1)
            return error_set(err, BRAID_INTERNAL, "graph output %d has several copies", (int)i);
        if (!g->output_names[i]) return error_set(err, BRAID_INTERNAL, "graph output %d has no name", (int)i);
    }
    return BRAID_OK;
}

braid_status graph_verify(const graph *g, braid_error *err) {
    const graph *root = g;
    while (root->parent) root = root->parent;
    return verify_graph(g, root, 0, err);
}
