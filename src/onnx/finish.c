/*
 * finish.c: from nodes as the file has them to canonical ones in order.
 */
#include "onnx/import.h"

static braid_status upgrade_node(importer *im, graph *g, node *n) {
    char title[256];
    n->op = op_find(n->domain, n->type);
    if (!n->op) return BRAID_OK;
    braid_status s = op_check_attributes(n, im->err);
    node_title(n, title); /* before the upgrade renames it */
    upgrade u = {.g = g, .node = n, .opset = n->opset, .err = im->err};
    if (s == BRAID_OK && n->op->upgrade) s = n->op->upgrade(&u);
    return s == BRAID_OK ? s : error_within(im->err, s, "%s", title);
}

static bool has_output(const node *n) {
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i] >= 0) return true;
    return false;
}

static braid_status check_node(importer *im, node *n) {
    char title[256];
    n->op = op_find(n->domain, n->type);
    if (!n->op) return BRAID_OK;
    braid_status s = op_check(n, im->err);
    return s == BRAID_OK ? s : error_within(im->err, s, "%s", node_title(n, title));
}

braid_status import_finish(importer *im, graph *g) {
    int32_t n = g->n_nodes, kept = 0;
    for (int32_t i = 0; i < n; i++) {
        TRY(upgrade_node(im, g, g->nodes[i]));
        TRY(import_budget(im, 0));
    }
    for (int32_t i = 0; i < g->n_nodes; i++)
        if (has_output(g->nodes[i])) g->nodes[kept++] = g->nodes[i];
    g->n_nodes = kept;
    for (int32_t i = 0; i < g->n_nodes; i++) TRY(check_node(im, g->nodes[i]));
    return graph_sort(g, im->err);
}
