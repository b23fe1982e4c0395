/*
 * prune: keeps what the wanted outputs need. All inputs stay, so that callers may go on passing them.
 * Requires: sorted. Ensures: every node's some output is used.
 */
#include "pass/copy.h"

/* Output number i of the new graph is wanted[i]; NULL: the graph's own. */
static braid_status wanted_values(const graph *g, const pass_options *o, graph *selected, arena *memory,
                                  braid_error *err) {
    selected->n_outputs = (int32_t)o->n_outputs;
    selected->outputs = arena_array(memory, o->n_outputs + 1, sizeof *selected->outputs);
    selected->output_names = arena_array(memory, o->n_outputs + 1, sizeof *selected->output_names);
    if (!selected->outputs || !selected->output_names) return error_memory(err);
    for (size_t i = 0; i < o->n_outputs; i++) {
        int32_t found = -1;
        for (int32_t k = 0; k < g->n_outputs; k++)
            if (strcmp(g->output_names[k], o->outputs[i]) == 0) found = g->outputs[k];
        for (int32_t k = 0; found < 0 && k < g->n_values; k++)
            if (strcmp(g->values[k]->name, o->outputs[i]) == 0) found = k;
        if (found < 0) return error_set(err, BRAID_ARGUMENT, "the model has no value '%s'", o->outputs[i]);
        selected->outputs[i] = found;
        selected->output_names[i] = g->values[found]->name;
    }
    return BRAID_OK;
}

static void mark(bool *live, const graph *g, int32_t v) {
    if (v >= 0 && g->values[v]->kind == VALUE_NODE && g->values[v]->producer >= 0) live[g->values[v]->producer] = true;
}

braid_status pass_prune(const graph *g, arena *memory, const pass_options *o, graph **out, braid_error *err) {
    graph selected = *g;
    if (o && o->outputs) TRY(wanted_values(g, o, &selected, memory, err));
    bool *live = arena_array(memory, (size_t)g->n_nodes + 1, sizeof *live);
    if (!live) return error_memory(err);
    for (int32_t i = 0; i < selected.n_outputs; i++) mark(live, g, selected.outputs[i]);
    for (int32_t i = g->n_nodes - 1; i >= 0; i--)
        for (int k = 0; live[i] && k < g->nodes[i]->n_in; k++) mark(live, g, g->nodes[i]->in[k]);
    copier c;
    TRY(copier_new(&c, &selected, memory, err));
    for (int32_t i = 0; i < g->n_nodes; i++)
        if (live[i]) TRY(copier_node(&c, g->nodes[i], NULL));
    TRY(copier_outputs(&c));
    *out = c.to;
    return BRAID_OK;
}
