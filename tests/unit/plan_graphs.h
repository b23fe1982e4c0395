/*
 * plan_graphs.h: random graphs for tests of the planner: branches, chains, views, Concat parents, Split parts, scatters
 * over filled storage, operators of several steps. All tensors are small.
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

/* Inputs beside the tensors that graphs grow from. */
typedef struct plan_graph_extras {
    int32_t indices, updates, kernel; /* int64[4,4] below 4, float32[4,4], float32[3,1,3,3] */
} plan_graph_extras;

static inline int32_t plan_graph_reshape(plan_graph *b, int32_t x, int rank, const int64_t *dims) {
    int32_t shape = graph_constant_ints(b->g, "", rank, dims);
    return plan_graph_node(b, "Reshape", 2, (int32_t[]){x, shape}, 1)->out[0];
}

static inline void plan_graph_conv(plan_graph *b, const plan_graph_extras *e, int32_t x, int64_t rows, int64_t cols) {
    int32_t image = plan_graph_reshape(b, x, 4, (int64_t[]){1, 1, rows, cols});
    node *n = plan_graph_node(b, "Conv", 2, (int32_t[]){image, e->kernel}, 1);
    node_add_ints(b->g, n, "pads", 4, (int64_t[]){1, 1, 1, 1});
    plan_graph_keep(b, plan_graph_reshape(b, n->out[0], 2, (int64_t[]){3 * rows, cols}), 3 * rows, cols);
}

/* Part of a tensor, or more than it. */
static inline void plan_graph_cut(plan_graph *b, int32_t x, int64_t rows, int64_t cols) {
    if (rows > 2 && plan_random(&b->r, 2)) {
        int32_t from = graph_constant_ints(b->g, "", 1, (int64_t[]){1}),
                to = graph_constant_ints(b->g, "", 1, (int64_t[]){rows});
        int32_t axis = graph_constant_ints(b->g, "", 1, (int64_t[]){0});
        plan_graph_keep(b, plan_graph_node(b, "Slice", 4, (int32_t[]){x, from, to, axis}, 1)->out[0], rows - 1, cols);
    } else if (rows < 60) {
        int32_t pads = graph_constant_ints(b->g, "", 4, (int64_t[]){1, 0, 1, 0});
        plan_graph_keep(b, plan_graph_node(b, "Pad", 2, (int32_t[]){x, pads}, 1)->out[0], rows + 2, cols);
    }
}

/* Operators of one operand that keep or turn the shape, or sum it up. */
static inline void plan_graph_unary(plan_graph *b, int32_t x, int64_t rows, int64_t cols) {
    static const char *const names[] = {"Relu",      "Neg",       "Sigmoid", "Softmax",   "Identity",
                                        "ReduceSum", "Transpose", "Tanh",    "LogSoftmax"};
    const char *type = names[plan_random(&b->r, COUNT_OF(names))];
    bool turned = strcmp(type, "Transpose") == 0, sum = strcmp(type, "ReduceSum") == 0;
    int32_t y = plan_graph_node(b, type, 1, &x, 1)->out[0];
    plan_graph_keep(b, y, sum ? 1 : turned ? cols : rows, sum ? 1 : turned ? rows : cols);
}

static inline bool plan_graph_binary(plan_graph *b, int a, uint32_t which) {
    int other = plan_graph_partner(b, a, which < 3);
    int64_t rows = b->rows[a], cols = b->cols[a];
    if (other < 0 || (which == 3 && rows + b->rows[other] > 64)) return false;
    static const char *const names[] = {"Mul", "Add", "Sub", "Concat", "MatMul"};
    int32_t y = b->made[other];
    if (which == 4) y = plan_graph_node(b, "Transpose", 1, &y, 1)->out[0];
    node *n = plan_graph_node(b, names[which], 2, (int32_t[]){b->made[a], y}, 1);
    if (which == 3) node_add_int(b->g, n, "axis", 0);
    plan_graph_keep(b, n->out[0], which == 3 ? rows + b->rows[other] : rows, which == 4 ? b->rows[other] : cols);
    return true;
}

static inline void plan_graph_step(plan_graph *b, const plan_graph_extras *e) {
    int a = plan_graph_pick(b);
    int32_t x = b->made[a];
    int64_t rows = b->rows[a], cols = b->cols[a];
    uint32_t which = plan_random(&b->r, 20);
    if (which < 7 && plan_graph_binary(b, a, which < 4 ? which % 3 : which - 2 > 4 ? 3 : which - 2)) return;
    if (which == 7 && rows % 8 == 0) {
        node *n = plan_graph_node(b, "Split", 1, &x, 2);
        node_add_int(b->g, n, "axis", 0);
        node_add_int(b->g, n, "num_outputs", 2);
        plan_graph_keep(b, n->out[0], rows / 2, cols);
        plan_graph_keep(b, n->out[1], rows / 2, cols);
    } else if (which == 8 && cols == 4 && rows >= 4) {
        node *n = plan_graph_node(b, "ScatterElements", 3, (int32_t[]){x, e->indices, e->updates}, 1);
        plan_graph_keep(b, n->out[0], rows, cols);
    } else if (which == 9 && rows <= 20) {
        plan_graph_conv(b, e, x, rows, cols);
    } else if (which == 10) {
        plan_graph_cut(b, x, rows, cols);
    } else {
        plan_graph_unary(b, x, rows, cols);
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
    b->g->inputs = arena_array(memory, 5, sizeof *b->g->inputs);
    b->g->n_inputs = 5;
    for (int i = 0; i < 2; i++) {
        int64_t cols = i ? 4 + 28 * (int64_t)(seed % 5) : 4;
        plan_graph_keep(b, plan_graph_input(b, i, i ? "x1" : "x0", (tensor_type){BRAID_FLOAT32, 2, {8, cols}}), 8,
                        cols);
    }
    plan_graph_extras e = {.indices = plan_graph_input(b, 2, "indices", (tensor_type){BRAID_INT64, 2, {4, 4}}),
                           .updates = plan_graph_input(b, 3, "updates", (tensor_type){BRAID_FLOAT32, 2, {4, 4}}),
                           .kernel = plan_graph_input(b, 4, "kernel", (tensor_type){BRAID_FLOAT32, 4, {3, 1, 3, 3}})};
    while (b->g->n_nodes < n) plan_graph_step(b, &e);
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
