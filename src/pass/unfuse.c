/*
 * unfuse: an operator with an epilogue becomes the operator without it, and a Map node that runs the program. Registers
 * keep their numbers: input 0 of the Map node is the operator's result, the others follow.
 */
#include "pass/copy.h"

static braid_status split_node(copier *c, const node *n) {
    graph *g = c->to;
    node root = *n;
    root.epilogue = NULL;
    root.n_in = n->n_root;
    node *copy;
    TRY(copier_node(c, &root, &copy));
    int n_extra = n->n_in - n->n_root;
    int32_t in[PROGRAM_INPUTS] = {copy->out[0]}, out = copier_like(c, n->out[0]);
    if (n_extra >= PROGRAM_INPUTS) return error_set(c->err, BRAID_INTERNAL, "an epilogue has %d inputs", n_extra);
    for (int i = 0; i < n_extra; i++) TRY(copier_value(c, n->in[n->n_root + i], &in[i + 1]));
    node *map = out < 0 ? NULL : graph_node_into(g, "Map", "braid", n->name, n_extra + 1, in, 1, &out);
    if (!map || !node_add_int(g, map, "type", (int64_t)g->values[out]->type.type)) return error_memory(c->err);
    map->op = op_find("braid", "Map");
    map->opset = 1;
    map->epilogue = n->epilogue;
    map->n_root = map->n_in;
    map->copies = n->copies;
    map->names = n->names;
    copier_replace(c, n->out[0], out);
    return BRAID_OK;
}

braid_status pass_unfuse(const graph *g, arena *memory, const bool *flags, graph **out, braid_error *err) {
    copier c;
    TRY(copier_new(&c, g, memory, err));
    for (int32_t i = 0; i < g->n_nodes; i++)
        TRY(flags[i] ? split_node(&c, g->nodes[i]) : copier_node(&c, g->nodes[i], NULL));
    TRY(copier_outputs(&c));
    *out = c.to;
    return graph_infer(*out, err);
}
