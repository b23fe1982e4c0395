/*
 * plan_graphs.h: random graphs for tests of the planner alone: branches, chains, views, Concat parents, Split parts,
 * scatters over filled storage, operators of several steps. All tensors are small; nothing is computed.
 */
#ifndef PLAN_GRAPHS_H
#define PLAN_GRAPHS_H

#include <stdlib.h>

#include "plan/plan.h"

typedef struct plan_draw {
    uint64_t state;
} plan_draw;

static inline uint32_t plan_random(plan_draw *r, uint32_t below) {
    r->state = r->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((r->state >> 33) % below);
}

typedef struct plan_graph {
    graph *g;
    plan_draw r;
    int32_t made[2048];
    int64_t rows[2048], cols[2048]; /* of each */
    bool used[2048];
    int n;
} plan_graph;

static inline void plan_graph_keep(plan_graph *b, int32_t v, int64_t rows, int64_t cols) {
    b->made[b->n] = v;
    b->rows[b->n] = rows;
    b->cols[b->n++] = cols;
}

/* A tensor made so far, mostly a late one. */
static inline int plan_graph_pick(plan_graph *b) {
    uint32_t late = b->n > 12 && plan_random(&b->r, 4) ? 12 : (uint32_t)b->n;
    int i = b->n - 1 - (int)plan_random(&b->r, late);
    b->used[i] = true;
    return i;
}

/* One that fits a in columns, and in rows where asked for; -1: none near. */
static inline int plan_graph_partner(plan_graph *b, int a, bool same_rows) {
    for (int tries = 0; tries < 12; tries++) {
        int i = (int)plan_random(&b->r, (uint32_t)b->n);
        if (b->cols[i] != b->cols[a] || (same_rows && b->rows[i] != b->rows[a])) continue;
        b->used[i] = true;
        return i;
    }
    return -1;
}

static inline node *plan_graph_node(plan_graph *b, const char *type, int n_in, const int32_t *in, int n_out) {
    node *n = graph_node(b->g, type, "", "", n_in, in, n_out);
    if (!n) abort();
    return n;
}

/* indices: a graph input int64[4,4] of rows to scatter to. */
static inline void plan_graph_step(plan_graph *b, int32_t indices, int32_t updates) {
    static const char *const unary[] = {"Relu", "Neg", "Sigmoid", "Softmax", "Identity", "ReduceSum", "Transpose"};
    int a = plan_graph_pick(b), other;
    int32_t x = b->made[a];
    int64_t rows = b->rows[a], cols = b->cols[a];
    uint32_t which = plan_random(&b->r, 14);
    if (which >= 7 && which < 10 && (other = plan_graph_partner(b, a, true)) >= 0) {
        node *n = plan_graph_node(b, which == 7 ? "Mul" : "Add", 2, (int32_t[]){x, b->made[other]}, 1);
        plan_graph_keep(b, n->out[0], rows, cols);
    } else if (which < 12 && which >= 10 && (other = plan_graph_partner(b, a, false)) >= 0 && rows + b->rows[other] <= 64) {
        node *n = plan_graph_node(b, "Concat", 2, (int32_t[]){x, b->made[other]}, 1);
        node_add_int(b->g, n, "axis", 0);
        plan_graph_keep(b, n->out[0], rows + b->rows[other], cols);
    } else if (which == 12 && rows % 8 == 0) {
        node *n = plan_graph_node(b, "Split", 1, &x, 2);
        node_add_int(b->g, n, "axis", 0);
        node_add_int(b->g, n, "num_outputs", 2);
        plan_graph_keep(b, n->out[0], rows / 2, cols);
        plan_graph_keep(b, n->out[1], rows / 2, cols);
    } else if (which == 13 && cols == 4 && rows >= 4) {
        node *n = plan_graph_node(b, "ScatterElements", 3, (int32_t[]){x, indices, updates}, 1);
        plan_graph_keep(b, n->out[0], rows, cols);
    } else {
        const char *type = unary[which % COUNT_OF(unary)];
        bool turned = strcmp(type, "Transpose") == 0, sum = strcmp(type, "ReduceSum") == 0;
        node *n = plan_graph_node(b, type, 1, &x, 1);
        plan_graph_keep(b, n->out[0], sum ? 1 : turned ? cols : rows, sum ? 1 : turned ? rows : cols);
    }
}

static inline int32_t plan_graph_input(plan_graph *b, int i, const char *name, tensor_type type) {
    int32_t v = graph_value(b->g, name, VALUE_INPUT);
    if (v < 0) abort();
    b->g->values[v]->type = type;
    b->g->inputs[i] = v;
    return v;
}

/* A graph of n nodes (some more where one step is several); aborts when it does not infer: that is the test's fault. */
static inline graph *plan_graph_make(arena *memory, uint64_t seed, int n) {
    plan_graph *b = arena_alloc(memory, sizeof *b);
    *b = (plan_graph){.g = graph_new(memory, "random"), .r = {seed * 0x9e3779b97f4a7c15u + 1}};
    b->g->inputs = arena_array(memory, 4, sizeof *b->g->inputs);
    b->g->n_inputs = 4;
    for (int i = 0; i < 2; i++) {
        int64_t cols = i ? 4 + 28 * (int64_t)(seed % 5) : 4;
        plan_graph_keep(b, plan_graph_input(b, i, i ? "x1" : "x0", (tensor_type){BRAID_FLOAT32, 2, {8, cols}}), 8, cols);
    }
    int32_t indices = plan_graph_input(b, 2, "indices", (tensor_type){BRAID_INT64, 2, {4, 4}});
    int32_t updates = plan_graph_input(b, 3, "updates", (tensor_type){BRAID_FLOAT32, 2, {4, 4}});
    while (b->g->n_nodes < n) plan_graph_step(b, indices, updates);
    b->g->outputs = arena_array(memory, (size_t)b->n, sizeof *b->g->outputs);
    b->g->output_names = arena_array(memory, (size_t)b->n, sizeof *b->g->output_names);
    for (int i = 2; i < b->n; i++) {
        if (b->used[i]) continue;
        b->g->output_names[b->g->n_outputs] = arena_format(memory, "y%d", i);
        b->g->outputs[b->g->n_outputs++] = b->made[i];
    }
    braid_error err = {0};
    graph_find_ops(b->g);
    if (graph_sort(b->g, &err) != BRAID_OK || graph_infer(b->g, &err) != BRAID_OK) {
        fprintf(stderr, "plan_graphs.h: %s\n", err.message);
        abort();
    }
    return b->g;
}

#endif
