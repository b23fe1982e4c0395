/*
 * vary.c: which values differ between the lanes of a run.
 *
 * A value differs when a graph input that differs reaches it, or a random operator. What does not is computed once for
 * all lanes: its steps have `once`, its storages one copy that every lane reads.
 */
#include "plan/plan.h"

static bool node_varies(const node *n, const bool *varies) {
    if (n->op && (n->op->flags & OP_RANDOM)) return true;
    for (int k = 0; k < n->n_in; k++)
        if (n->in[k] >= 0 && varies[n->in[k]]) return true;
    return false;
}

braid_status plan_varies(const graph *g, const bool *inputs, arena *memory, bool **out, braid_error *err) {
    bool *varies = arena_array(memory, (size_t)g->n_values + 1, sizeof *varies);
    if (!varies) return error_memory(err);
    for (int32_t i = 0; i < g->n_inputs; i++)
        varies[g->inputs[i]] = (!inputs || inputs[i]) && !g->values[g->inputs[i]]->constant;
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const node *n = g->nodes[i];
        if (!node_varies(n, varies)) continue;
        for (int k = 0; k < n->n_out; k++)
            if (n->out[k] >= 0) varies[n->out[k]] = !g->values[n->out[k]]->constant;
    }
    *out = varies;
    return BRAID_OK;
}
