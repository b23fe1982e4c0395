#include "pass/copy.h"

int32_t copier_like(copier *c, int32_t old) {
    const value *v = c->from->values[old];
    int32_t now = graph_value(c->to, v->name, VALUE_NODE);
    if (now < 0) return -1;
    value *w = c->to->values[now];
    w->copies = v->copies;
    w->type = v->type;
    w->n_known = v->n_known;
    w->known = v->known;
    return now;
}

static braid_status copy_input(copier *c, int32_t i) {
    int32_t old = c->from->inputs[i];
    int32_t now = copier_like(c, old);
    if (now < 0) return error_memory(c->err);
    const value *v = c->from->values[old]; /* its content may be known for one set of input values */
    value *w = c->to->values[now];
    w->kind = VALUE_INPUT;
    if (v->constant && !(w->constant = arena_copy(c->to->memory, v->constant, sizeof *v->constant)))
        return error_memory(c->err);
    c->to->inputs[c->to->n_inputs++] = now;
    c->map[old] = now;
    return BRAID_OK;
}

braid_status copier_new(copier *c, const graph *from, arena *memory, braid_error *err) {
    *c = (copier){.from = from, .to = graph_new(memory, from->name), .err = err};
    if (!c->to) return error_memory(err);
    c->map = arena_array(memory, (size_t)from->n_values + 1, sizeof *c->map);
    c->to->inputs = arena_array(memory, (size_t)from->n_inputs + 1, sizeof *c->to->inputs);
    if (!c->map || !c->to->inputs) return error_memory(err);
    for (int32_t i = 0; i < from->n_values; i++) c->map[i] = -1;
    c->to->ir_version = from->ir_version;
    c->to->opset = from->opset;
    c->to->parent = from->parent;
    if (from->n_symbols) {
        c->to->symbols = arena_copy(memory, from->symbols, (size_t)from->n_symbols * sizeof *from->symbols);
        if (!c->to->symbols) return error_memory(err);
    }
    c->to->n_symbols = c->to->cap_symbols = from->n_symbols;
    for (int32_t i = 0; i < from->n_inputs; i++) TRY(copy_input(c, i));
    return BRAID_OK;
}

braid_status copier_value(copier *c, int32_t old, int32_t *out) {
    *out = old < 0 ? -1 : c->map[old];
    if (*out >= 0 || old < 0) return BRAID_OK;
    const value *v = c->from->values[old];
    if (!v->constant && v->kind != VALUE_OUTER)
        return error_set(c->err, BRAID_INTERNAL, "value '%s' is used after its producer was dropped", v->name);
    int32_t now = copier_like(c, old);
    if (now < 0) return error_memory(c->err);
    value *w = c->to->values[now];
    w->kind = v->constant ? VALUE_CONSTANT : VALUE_OUTER;
    w->outer = v->outer;
    w->producer = -1;
    if (v->constant && !(w->constant = arena_copy(c->to->memory, v->constant, sizeof *v->constant)))
        return error_memory(c->err);
    *out = c->map[old] = now;
    return BRAID_OK;
}

void copier_attributes(node *m, const node *n) {
    m->opset = n->opset;
    m->op = n->op;
    if (n->op) { /* a node without a row is refused by name; its attributes may hold graphs that belong to c->from */
        m->n_attributes = n->n_attributes;
        m->attributes = n->attributes;
    }
    m->epilogue = n->epilogue;
    m->copies = n->copies;
    m->names = n->names;
    m->n_root = n->n_root;
}

braid_status copier_node(copier *c, const node *n, node **out) {
    int32_t *in = arena_array(c->to->memory, (size_t)n->n_in + 1, sizeof *in);
    int32_t *outs = arena_array(c->to->memory, (size_t)n->n_out + 1, sizeof *outs);
    if (!in || !outs) return error_memory(c->err);
    for (int i = 0; i < n->n_in; i++) TRY(copier_value(c, n->in[i], &in[i]));
    for (int i = 0; i < n->n_out; i++) {
        outs[i] = -1;
        if (n->out[i] < 0) continue;
        if ((outs[i] = copier_like(c, n->out[i])) < 0) return error_memory(c->err);
        c->map[n->out[i]] = outs[i];
    }
    node *m = graph_node_into(c->to, n->type, n->domain, n->name, n->n_in, in, n->n_out, outs);
    if (!m) return error_memory(c->err);
    copier_attributes(m, n);
    if (out) *out = m;
    return BRAID_OK;
}

/* Names of any length are cut, so that a line of a report stays one. */
static node *make_border(copier *c, const char *type, int32_t n, const int32_t *singles, int32_t packed,
                         const node *of) {
    bool stack = type[0] == 'S';
    const char *first = c->to->values[singles[0]]->name, *last = c->to->values[singles[n - 1]]->name;
    const char *link = stack ? "for" : "of", *where = *of->name ? of->name : of->type, *name;
    if (strcmp(first, last) == 0) name = arena_format(c->to->memory, "%d x %.70s %s %.70s", (int)n, first, link, where);
    else name = arena_format(c->to->memory, "%.70s .. %.70s %s %.70s", first, last, link, where);
    if (!name) return NULL;
    node *border = graph_node_into(c->to, type, "braid", name, stack ? n : 1, stack ? singles : &packed, stack ? 1 : n,
                                   stack ? &packed : singles);
    if (border) border->op = op_find("braid", type);
    return border;
}

node *copier_stack(copier *c, int32_t n, const int32_t *singles, int32_t packed, const node *reader) {
    return make_border(c, "Stack", n, singles, packed, reader);
}

node *copier_unstack(copier *c, int32_t n, const int32_t *singles, int32_t packed, const node *maker) {
    return make_border(c, "Unstack", n, singles, packed, maker);
}

braid_status copier_outputs(copier *c) {
    graph *g = c->to;
    g->outputs = arena_array(g->memory, (size_t)c->from->n_outputs + 1, sizeof *g->outputs);
    g->output_names = arena_array(g->memory, (size_t)c->from->n_outputs + 1, sizeof *g->output_names);
    if (!g->outputs || !g->output_names) return error_memory(c->err);
    for (int32_t i = 0; i < c->from->n_outputs; i++) {
        TRY(copier_value(c, c->from->outputs[i], &g->outputs[i]));
        g->output_names[i] = c->from->output_names[i];
    }
    g->n_outputs = c->from->n_outputs;
    return BRAID_OK;
}

int32_t *graph_uses(const graph *g, arena *memory) {
    int32_t *uses = arena_array(memory, (size_t)g->n_values + 1, sizeof *uses);
    if (!uses) return NULL;
    for (int32_t i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i]->n_in; k++)
            if (g->nodes[i]->in[k] >= 0) uses[g->nodes[i]->in[k]]++;
    for (int32_t i = 0; i < g->n_outputs; i++) uses[g->outputs[i]]++;
    return uses;
}
