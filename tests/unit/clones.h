/*
 * clones.h: clone graphs in every disguise, as graphs. Needs <string.h> and ir; used by tests of the pass and of runs.
 */
#ifndef CLONES_H
#define CLONES_H

#include "ops/op.h"

typedef enum clone_weights { WEIGHTS_SHARED, WEIGHTS_DUPLICATED, WEIGHTS_OWN, WEIGHTS_ONE_ELEMENT } clone_weights;
typedef enum clone_inputs { INPUTS_OWN, INPUTS_SAME, INPUTS_SLICE, INPUTS_SPLIT, INPUTS_PREFIX } clone_inputs;
typedef enum clone_outputs { OUTPUTS_OWN, OUTPUTS_CONCAT, OUTPUTS_SUFFIX } clone_outputs;

typedef struct clone_spec {
    int copies;
    clone_weights weights;
    clone_inputs inputs;
    clone_outputs outputs;
    bool shuffle; /* nodes in a random order that is still topological */
    bool alter;   /* every second copy has one attribute changed */
    bool uneven;  /* every second copy has a node more in front */
    bool tail;    /* the first copy has another reader inside */
    int body;     /* 0: a small convolution net; else a random graph of so many nodes */
    uint64_t seed;
} clone_spec;

typedef struct cloner {
    graph *g;
    arena *memory;
    clone_spec s;
    uint64_t state;
    int copy; /* being made */
} cloner;

static inline uint64_t clone_next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static inline int32_t clone_node(cloner *c, const char *type, int n_in, const int32_t *in, node **out) {
    node *n =
        graph_node(c->g, type, "", arena_format(c->memory, "%s%d_%d", type, c->copy, (int)c->g->n_nodes), n_in, in, 1);
    n->op = op_find("", type);
    if (out) *out = n;
    return n->out[0];
}

/* Weight number `id`: its content depends on that alone, and on the copy where copies have their own. */
static inline int32_t clone_weight(cloner *c, int id, int rank, const int64_t *dims) {
    const char *name = arena_format(c->memory, "w%d", id);
    for (int32_t i = 0; i < c->g->n_values && c->s.weights == WEIGHTS_SHARED; i++)
        if (c->g->values[i]->kind == VALUE_CONSTANT && strcmp(c->g->values[i]->name, name) == 0) return i;
    tensor *t;
    int64_t count = 0;
    tensor_new(c->memory, BRAID_FLOAT32, rank, dims, &t, NULL);
    tensor_type_count(&t->type, &count);
    uint64_t state = (uint64_t)id * 977 + 1 + (c->s.weights == WEIGHTS_OWN ? (uint64_t)c->copy * 7919 : 0);
    for (int64_t i = 0; i < count; i++) ((float *)t->data)[i] = (float)clone_next(&state) / 4294967296.0f - 0.25f;
    if (c->s.weights == WEIGHTS_ONE_ELEMENT && id == 1 && c->copy == 1) ((float *)t->data)[0] += 1;
    return graph_constant(c->g, name, t);
}

static inline int32_t clone_net(cloner *c, int32_t x) {
    node *n;
    int64_t pads[4] = {1, 1, 1, 1}, two[2] = {2, 2};
    int32_t a = clone_node(
        c, "Conv", 3,
        (int32_t[]){x, clone_weight(c, 0, 4, (int64_t[]){4, 2, 3, 3}), clone_weight(c, 1, 1, (int64_t[]){4})}, &n);
    node_add_ints(c->g, n, "pads", 4, pads);
    a = clone_node(c, "Relu", 1, &a, NULL);
    int32_t p = clone_node(c, "Conv", 2, (int32_t[]){a, clone_weight(c, 2, 4, (int64_t[]){2, 4, 1, 1})}, NULL);
    int32_t q = clone_node(c, "Conv", 2, (int32_t[]){a, clone_weight(c, 3, 4, (int64_t[]){2, 4, 3, 3})}, &n);
    node_add_ints(c->g, n, "pads", 4, pads);
    int32_t b = clone_node(c, "Concat", 2, (int32_t[]){p, q}, &n);
    node_add_int(c->g, n, "axis", 1);
    b = clone_node(c, "Add", 2, (int32_t[]){b, a}, NULL);
    b = clone_node(c, "MaxPool", 1, &b, &n);
    node_add_ints(c->g, n, "kernel_shape", 2, two);
    node_add_ints(c->g, n, "strides", 2, two);
    b = clone_node(c, "Flatten", 1, &b, NULL);
    b = clone_node(c, "Gemm", 2, (int32_t[]){b, clone_weight(c, 4, 2, (int64_t[]){36, 5})}, &n);
    if (c->s.alter && c->copy % 2) node_add_float(c->g, n, "alpha", 0.5f);
    b = clone_node(c, "Softmax", 1, &b, &n);
    node_add_int(c->g, n, "axis", 1);
    return b;
}

/* A random graph over [1,72] values; the same for all copies. */
static inline int32_t clone_random(cloner *c, int32_t x) {
    static const char *const unary[] = {"Relu", "Sigmoid", "Tanh", "Neg", "Abs"}, *const binary[] = {"Add", "Sub",
                                                                                                     "Mul", "Max"};
    uint64_t state = c->s.seed * 2 + 1;
    int32_t *made = arena_array(c->memory, (size_t)c->s.body + 2, sizeof *made), n = 0;
    node *m;
    made[n++] = clone_node(c, "Flatten", 1, &x, NULL);
    for (int i = 0; i < c->s.body; i++) {
        uint64_t kind = clone_next(&state) % 9;
        int32_t a = made[clone_next(&state) % (uint64_t)n], b = made[clone_next(&state) % (uint64_t)n], v;
        const char *one = unary[clone_next(&state) % 5], *two = binary[clone_next(&state) % 4];
        if (kind < 3)
            v = clone_node(c, one, 1, &a, NULL);
        else if (kind < 5)
            v = clone_node(c, two, 2, (int32_t[]){a, b}, NULL);
        else if (kind < 6)
            v = clone_node(c, "Mul", 2, (int32_t[]){a, clone_weight(c, i, 1, (int64_t[]){72})}, NULL);
        else if (kind < 8)
            v = clone_node(c, "MatMul", 2, (int32_t[]){a, clone_weight(c, i, 2, (int64_t[]){72, 72})}, NULL);
        else
            v = clone_node(c, "Softmax", 1, &a, &m);
        made[n++] = v;
    }
    int32_t end = made[n - 1];
    if (c->s.alter && c->copy % 2) {
        end = clone_node(c, "LeakyRelu", 1, &end, &m);
        node_add_float(c->g, m, "alpha", 0.25f);
    } else {
        end = clone_node(c, "LeakyRelu", 1, &end, &m);
    }
    return end;
}

static inline int32_t clone_slice(cloner *c, int32_t x, int i) {
    int32_t in[4] = {x, graph_constant_ints(c->g, "", 1, (int64_t[]){i}),
                     graph_constant_ints(c->g, "", 1, (int64_t[]){i + 1}),
                     graph_constant_ints(c->g, "", 1, (int64_t[]){0})};
    return clone_node(c, "Slice", 4, in, NULL);
}

static inline int32_t clone_graph_input(cloner *c, const char *name, int64_t first) {
    int32_t v = graph_value(c->g, name, VALUE_INPUT);
    c->g->values[v]->type = (tensor_type){BRAID_FLOAT32, 4, {first, 2, 6, 6}};
    return c->g->inputs[c->g->n_inputs++] = v;
}

static inline void clone_starts(cloner *c, int32_t *start) {
    int n = c->s.copies;
    for (int i = 0; i < n && c->s.inputs == INPUTS_OWN; i++)
        start[i] = clone_graph_input(c, arena_format(c->memory, "x%d", i), 1);
    if (c->s.inputs == INPUTS_OWN) return;
    int32_t x = clone_graph_input(c, "x", c->s.inputs == INPUTS_SAME ? 1 : n);
    if (c->s.inputs == INPUTS_PREFIX) x = clone_node(c, "Tanh", 1, &x, NULL);
    for (int i = 0; i < n; i++) start[i] = c->s.inputs == INPUTS_SAME ? x : 0;
    for (int i = 0; i < n && c->s.inputs == INPUTS_SLICE; i++) start[i] = clone_slice(c, x, i);
    if (c->s.inputs != INPUTS_SPLIT && c->s.inputs != INPUTS_PREFIX) return;
    node *s = graph_node(c->g, "Split", "", "split", 1, &x, n);
    s->op = op_find("", "Split");
    node_add_int(c->g, s, "num_outputs", n);
    memcpy(start, s->out, (size_t)n * sizeof *start);
}

static inline void clone_output(cloner *c, int32_t v) {
    c->g->outputs[c->g->n_outputs] = v;
    c->g->output_names[c->g->n_outputs] = arena_format(c->memory, "y%d", (int)c->g->n_outputs);
    c->g->n_outputs++;
}

static inline void clone_ends(cloner *c, int32_t *end) {
    node *n;
    for (int i = 0; i < c->s.copies && c->s.outputs == OUTPUTS_OWN; i++) clone_output(c, end[i]);
    if (c->s.outputs == OUTPUTS_OWN) return;
    int32_t y = clone_node(c, "Concat", c->s.copies, end, &n);
    node_add_int(c->g, n, "axis", 0);
    if (c->s.outputs == OUTPUTS_SUFFIX) y = clone_node(c, "Neg", 1, &y, NULL);
    clone_output(c, y);
}

/* The graph, inferred; NULL and err on failure. */
static inline graph *clone_graph(arena *memory, const clone_spec *spec, braid_error *err) {
    cloner c = {.g = graph_new(memory, "clones"), .memory = memory, .s = *spec, .state = spec->seed};
    int32_t n = spec->copies, *at = arena_array(memory, (size_t)n + 1, sizeof *at);
    c.g->opset = 18;
    c.g->inputs = arena_array(memory, (size_t)n + 1, sizeof *c.g->inputs);
    c.g->outputs = arena_array(memory, (size_t)n + 2, sizeof *c.g->outputs);
    c.g->output_names = arena_array(memory, (size_t)n + 2, sizeof *c.g->output_names);
    clone_starts(&c, at);
    for (c.copy = 0; c.copy < n; c.copy++) {
        int32_t x = at[c.copy];
        if (spec->uneven && c.copy % 2) x = clone_node(&c, "Sigmoid", 1, &x, NULL);
        at[c.copy] = spec->body ? clone_random(&c, x) : clone_net(&c, x);
        if (spec->tail && c.copy == 0) clone_output(&c, clone_node(&c, "Exp", 1, &at[0], NULL));
    }
    clone_ends(&c, at);
    for (int32_t i = c.g->n_nodes - 1; i > 0 && spec->shuffle; i--) {
        int32_t k = (int32_t)(clone_next(&c.state) % (uint64_t)(i + 1));
        node *t = c.g->nodes[i];
        c.g->nodes[i] = c.g->nodes[k];
        c.g->nodes[k] = t;
    }
    if (graph_sort(c.g, err) != BRAID_OK || graph_infer(c.g, err) != BRAID_OK) return NULL;
    return c.g;
}

typedef struct clone_disguise {
    const char *name;
    clone_spec s;
    int bundles, most, nodes; /* that are found; copies of the largest; nodes that are not in any */
} clone_disguise;

static const clone_disguise clone_disguises[] = {
    {"plain", {.copies = 12}, 1, 12, 0},
    {"two", {.copies = 2}, 1, 2, 0},
    {"shuffled", {.copies = 12, .shuffle = true, .seed = 3}, 1, 12, 0},
    {"duplicated weights", {.copies = 12, .weights = WEIGHTS_DUPLICATED, .shuffle = true}, 1, 12, 0},
    {"own weights", {.copies = 12, .weights = WEIGHTS_OWN, .shuffle = true}, 1, 12, 0},
    {"one weight element", {.copies = 12, .weights = WEIGHTS_ONE_ELEMENT}, 1, 12, 0},
    {"heads on one input", {.copies = 12, .weights = WEIGHTS_OWN, .inputs = INPUTS_SAME}, 1, 12, 0},
    {"slices", {.copies = 12, .inputs = INPUTS_SLICE, .shuffle = true}, 1, 12, 12},
    {"split, concat", {.copies = 12, .inputs = INPUTS_SPLIT, .outputs = OUTPUTS_CONCAT}, 1, 12, 2},
    {"prefix, suffix", {.copies = 12, .inputs = INPUTS_PREFIX, .outputs = OUTPUTS_SUFFIX, .shuffle = true}, 1, 12, 4},
    {"half altered", {.copies = 12, .alter = true}, 2, 6, 0},
    {"half altered, shuffled, own weights",
     {.copies = 12, .weights = WEIGHTS_OWN, .alter = true, .shuffle = true, .seed = 9},
     2,
     6,
     0},
    {"half altered between common ends",
     {.copies = 12,
      .weights = WEIGHTS_DUPLICATED,
      .inputs = INPUTS_PREFIX,
      .outputs = OUTPUTS_SUFFIX,
      .alter = true,
      .shuffle = true},
     2,
     6,
     4},
    {"another reader in one copy", {.copies = 12, .tail = true}, 1, 12, 1},
    {"random body", {.copies = 12, .weights = WEIGHTS_OWN, .body = 40, .shuffle = true, .seed = 5}, 1, 12, 0},
};

#endif
