/*
 * upgrade.c: what upgrade hooks share.
 */
#include "ops/upgrade.h"

braid_status upgrade_set_input(upgrade *u, int at, int32_t number) {
    node *n = u->node;
    if (number < 0) return error_memory(u->err);
    if (at >= n->n_in) {
        int32_t *in = arena_array(u->g->memory, (size_t)at + 1, sizeof *in);
        if (!in) return error_memory(u->err);
        for (int i = 0; i <= at; i++) in[i] = i < n->n_in ? n->in[i] : -1;
        n->in = in;
        n->n_in = n->n_root = at + 1;
    }
    n->in[at] = number;
    return BRAID_OK;
}

void upgrade_drop_attribute(upgrade *u, const char *name) {
    node *n = u->node;
    int kept = 0;
    for (int i = 0; i < n->n_attributes; i++)
        if (strcmp(n->attributes[i].name, name) != 0) n->attributes[kept++] = n->attributes[i];
    n->n_attributes = kept;
}

braid_status upgrade_ints_to_input(upgrade *u, const char *name, int at) {
    const attribute *a = node_attribute(u->node, name);
    if (!a) return BRAID_OK;
    if (a->kind != ATTRIBUTE_INTS || a->count > INT32_MAX)
        return error_set(u->err, BRAID_MODEL, "attribute '%s' is no list of integers", name);
    TRY(upgrade_set_input(u, at, graph_constant_ints(u->g, "", (int)a->count, a->ints)));
    upgrade_drop_attribute(u, name);
    return BRAID_OK;
}
