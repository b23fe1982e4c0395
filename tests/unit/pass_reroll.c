/*
 * pass_reroll.c: clone graphs in every disguise are recognised, and unrolled again they are what they were; graphs that
 * are built against the pass take bounded time. labels: quick
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "clones.h"
#include "pass/pass.h"
#include "pass/same.h"
#include "timing.h"

/* ------------------------------------------------------------------------------------------- what a graph computes */

static uint64_t mix(uint64_t h, uint64_t x) {
    return hash_bytes(h, &x, sizeof x);
}

static int by_number(const void *x, const void *y) {
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return a < b ? -1 : a > b;
}

typedef struct meaning {
    uint64_t outputs; /* of the graph, in order */
    uint64_t *nodes;  /* hashes of what each node computes, sorted, each once */
    int32_t n_nodes;
} meaning;

/* Values by how they are computed, whatever the order and the names. */
static meaning meaning_of(const graph *g, arena *memory) {
    uint64_t *h = arena_array(memory, (size_t)g->n_values + 1, sizeof *h);
    meaning m = {.nodes = arena_array(memory, (size_t)g->n_nodes + 1, sizeof *m.nodes)};
    for (int32_t i = 0; i < g->n_inputs; i++) h[g->inputs[i]] = mix(1, (uint64_t)i);
    for (int32_t v = 0; v < g->n_values; v++)
        if (g->values[v]->constant) h[v] = hash_bytes(2, g->values[v]->constant->data, g->values[v]->constant->bytes);
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const node *n = g->nodes[i];
        uint64_t x = node_hash(n);
        assert_int_equal(node_copies(n), 1);
        for (int k = 0; k < n->n_in; k++) x = mix(x, n->in[k] < 0 ? 0 : h[n->in[k]]);
        for (int k = 0; k < n->n_out; k++)
            if (n->out[k] >= 0) h[n->out[k]] = mix(x, (uint64_t)k);
        m.nodes[m.n_nodes++] = x;
    }
    for (int32_t i = 0; i < g->n_outputs; i++) m.outputs = mix(m.outputs, h[g->outputs[i]]);
    qsort(m.nodes, (size_t)m.n_nodes, sizeof *m.nodes, by_number);
    int32_t n = 0;
    for (int32_t i = 0; i < m.n_nodes; i++)
        if (i == 0 || m.nodes[i] != m.nodes[i - 1]) m.nodes[n++] = m.nodes[i];
    m.n_nodes = n;
    return m;
}

typedef struct result {
    graph *g;
    reroll_report report;
    int32_t copied; /* nodes that became part of a body */
    int32_t most;   /* copies of the largest bundle */
} result;

/* Reports show borders by name: every one has one. */
static void check_borders(const graph *g, const char *what) {
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const node *n = g->nodes[i];
        bool border = node_is_stack(n) || node_is_unstack(n);
        if (border && !strstr(n->name, node_is_stack(n) ? " for " : " of ")) fail_msg("%s: border '%s'", what, n->name);
    }
}

/* Unrolls every second node: borders within a pack. */
static void check_half(const graph *g, arena *memory, const char *what) {
    bool *flags = arena_array(memory, (size_t)g->n_nodes + 1, sizeof *flags);
    braid_error err = {0};
    graph *half;
    for (int32_t i = 0; i < g->n_nodes; i++) flags[i] = i % 2;
    if (pass_unroll(g, memory, flags, &half, &err) != BRAID_OK) fail_msg("%s: half unrolled: %s", what, err.message);
    if (graph_verify(half, &err) != BRAID_OK) fail_msg("%s: half unrolled: %s", what, err.message);
    check_borders(half, what);
}

/* Rolls g, checks that unrolling it gives g, and counts. */
static result roll(const graph *g, arena *memory, bool any, const char *what) {
    result r = {.report = {.memory = memory}};
    braid_error err = {0};
    graph *back;
    pass_options options = {.report = &r.report, .reroll_any = any};
    if (pass_run("reroll", g, memory, &options, &r.g, &err) != BRAID_OK) fail_msg("%s: %s", what, err.message);
    if (pass_unroll(r.g, memory, NULL, &back, &err) != BRAID_OK) fail_msg("%s: unroll: %s", what, err.message);
    if (graph_verify(back, &err) != BRAID_OK) fail_msg("%s: unrolled: %s", what, err.message);
    check_borders(r.g, what);
    check_half(r.g, memory, what);
    meaning before = meaning_of(g, memory), after = meaning_of(back, memory);
    if (before.outputs != after.outputs) fail_msg("%s: the unrolled graph computes something else", what);
    if (before.n_nodes != after.n_nodes || memcmp(before.nodes, after.nodes, (size_t)before.n_nodes * 8) != 0)
        fail_msg("%s: the unrolled graph has other nodes", what);
    for (int32_t i = 0; i < r.report.n_notes && getenv("REROLL_NOTES"); i++)
        print_message("%s: %s\n", what, r.report.notes[i]);
    for (int32_t i = 0; i < r.report.n_bundles; i++) {
        if (getenv("REROLL_NOTES"))
            print_message("%s: bundle %d x %d\n", what, r.report.bundles[i].copies, r.report.bundles[i].nodes);
        r.copied += r.report.bundles[i].copies * r.report.bundles[i].nodes;
        if (r.report.bundles[i].copies > r.most) r.most = r.report.bundles[i].copies;
    }
    return r;
}

static result roll_spec(const clone_spec *s, arena *memory, bool any, const char *what) {
    braid_error err = {0};
    graph *g = clone_graph(memory, s, &err);
    if (!g) fail_msg("%s: %s", what, err.message);
    return roll(g, memory, any, what);
}

/* --------------------------------------------------------------------------------------------------- disguises */

static void every_disguise(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(clone_disguises); i++) {
        const clone_disguise *d = &clone_disguises[i];
        arena *memory = arena_new();
        braid_error err = {0};
        graph *g = clone_graph(memory, &d->s, &err);
        if (!g) fail_msg("%s: %s", d->name, err.message);
        result r = roll(g, memory, false, d->name);
        if (r.report.n_bundles != d->bundles || r.most != d->most || g->n_nodes - r.copied != d->nodes)
            fail_msg("%s: %d bundles of up to %d copies, %d nodes left; expected %d of %d, %d", d->name,
                     r.report.n_bundles, r.most, g->n_nodes - r.copied, d->bundles, d->most, d->nodes);
        const reroll_bundle *b = &r.report.bundles[0];
        assert_int_equal(b->stacked, d->s.weights == WEIGHTS_ONE_ELEMENT ? 1
                                     : d->s.weights == WEIGHTS_OWN       ? b->stacked
                                                                         : 0);
        if (d->s.weights == WEIGHTS_OWN) assert_true(b->stacked > 0);
        arena_free(memory);
    }
}

static int32_t bundles_on(const clone_spec *s, const device_traits *device) {
    arena *memory = arena_new();
    braid_error err = {0};
    reroll_report report = {.memory = memory};
    graph *g = clone_graph(memory, s, &err), *rolled;
    pass_options options = {.report = &report, .device = device};
    if (!g || pass_run("reroll", g, memory, &options, &rolled, &err) != BRAID_OK) fail_msg("%s", err.message);
    int32_t n = report.n_bundles;
    if (n == 0 && report.n_notes == 0) fail_msg("left apart without a word");
    arena_free(memory);
    return n;
}

/* What pays is a matter of the device's figures. A CPU counts as any GPU. */
static void devices(void **state) {
    (void)state;
    clone_spec few = {.copies = 3, .weights = WEIGHTS_OWN, .inputs = INPUTS_SLICE, .outputs = OUTPUTS_SUFFIX};
    assert_int_equal(bundles_on(&few, NULL), 1);
    assert_int_equal(bundles_on(&few, &(device_traits){0}), 1);
    assert_int_equal(bundles_on(&few, &(device_traits){.barrier_ns = 20000}), 0);
    assert_int_equal(bundles_on(&few, &(device_traits){.barrier_ns = 20000, .dispatch_ns = 20000}), 1);
    assert_int_equal(bundles_on(&few, &(device_traits){.software = true, .barrier_ns = 20000}), 1);
}

/* Nothing that stands in each copy is lost where copies differ in depth. */
static void uneven_copies(void **state) {
    (void)state;
    arena *memory = arena_new();
    clone_spec s = {.copies = 16, .uneven = true, .shuffle = true};
    result r = roll_spec(&s, memory, false, "uneven");
    assert_true(r.copied >= 16 * 9);
    arena_free(memory);
}

static void random_clones(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        uint64_t x = seed;
        for (int i = 0; i < 4; i++) clone_next(&x);
        clone_spec s = {.copies = 2 + (int)(clone_next(&x) % 11),
                        .weights = (clone_weights)(clone_next(&x) % 4),
                        .inputs = (clone_inputs)(clone_next(&x) % 5),
                        .outputs = (clone_outputs)(clone_next(&x) % 3),
                        .shuffle = clone_next(&x) % 2,
                        .alter = clone_next(&x) % 2,
                        .uneven = clone_next(&x) % 4 == 0,
                        .tail = clone_next(&x) % 4 == 0,
                        .body = 3 + (int)(clone_next(&x) % 60),
                        .seed = seed};
        char what[64];
        snprintf(what, sizeof what, "random clones, seed %d", (int)seed);
        arena *memory = arena_new();
        roll_spec(&s, memory, seed % 2, what);
        arena_free(memory);
    }
}

/* ------------------------------------------------------------------------------------- built against the pass */

/* ------------------------------------------------------------------------------------------------ seeded faults */

static bool same_meaning(const graph *a, const graph *b, arena *memory) {
    uint64_t *x, *y;
    braid_error err = {0};
    if (pass_meaning(a, memory, &x, &err) != BRAID_OK || pass_meaning(b, memory, &y, &err) != BRAID_OK)
        fail_msg("%s", err.message);
    return memcmp(x, y, (size_t)a->n_outputs * sizeof *x) == 0;
}

static void swap(int32_t *a, int32_t *b) {
    int32_t t = *a;
    *a = *b;
    *b = t;
}

/* Changes one border of a pack; false when the node has none or the change is none. */
static bool mutate(const graph *g, node *n, uint64_t *x) {
    if (node_is_stack(n)) {
        int i = (int)(clone_next(x) % (uint64_t)n->n_in), k = (int)(clone_next(x) % (uint64_t)n->n_in);
        bool other = n->in[i] != n->in[k] && !g->values[n->in[i]]->constant;
        swap(&n->in[i], &n->in[k]);
        return other;
    }
    if (node_is_unstack(n)) {
        swap(&n->out[0], &n->out[n->n_out - 1]);
        return true;
    }
    return false;
}

/* A pack whose columns are exchanged at one border computes something else, and that is noticed. */
static void faults_are_noticed(void **state) {
    (void)state;
    int tried = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        arena *memory = arena_new();
        clone_spec s = {.copies = 6,
                        .weights = WEIGHTS_OWN,
                        .inputs = (clone_inputs)(seed % 2 ? INPUTS_OWN : INPUTS_SPLIT),
                        .alter = seed % 3 == 0,
                        .body = 5 + (int)seed % 20,
                        .seed = seed};
        braid_error err = {0};
        graph *g = clone_graph(memory, &s, &err), *rolled;
        assert_int_equal(pass_run("reroll_any", g, memory, NULL, &rolled, &err), BRAID_OK);
        assert_true(same_meaning(g, rolled, memory));
        uint64_t x = seed;
        for (int32_t i = 0; i < rolled->n_nodes; i++) {
            node saved = *rolled->nodes[i];
            saved.in = arena_copy(memory, saved.in, (size_t)saved.n_in * sizeof *saved.in);
            saved.out = arena_copy(memory, saved.out, (size_t)saved.n_out * sizeof *saved.out);
            if (mutate(rolled, rolled->nodes[i], &x)) {
                tried++;
                if (same_meaning(g, rolled, memory))
                    fail_msg("seed %d: %s changed, nothing noticed", (int)seed, saved.type);
            }
            *rolled->nodes[i] = saved;
        }
        assert_true(same_meaning(g, rolled, memory));
        arena_free(memory);
    }
    assert_true(tried > 40);
}

typedef struct builder {
    graph *g;
    arena *memory;
} builder;

static builder build_new(int n_inputs) {
    arena *memory = arena_new();
    builder b = {graph_new(memory, "t"), memory};
    b.g->opset = 18;
    b.g->inputs = arena_array(memory, (size_t)n_inputs + 1, sizeof *b.g->inputs);
    for (int i = 0; i < n_inputs; i++) {
        int32_t v = b.g->inputs[b.g->n_inputs++] = graph_value(b.g, arena_format(memory, "x%d", i), VALUE_INPUT);
        b.g->values[v]->type = (tensor_type){BRAID_FLOAT32, 2, {1, 8}};
    }
    return b;
}

static int32_t op_node(builder *b, const char *type, int n_in, const int32_t *in) {
    node *n = graph_node(b->g, type, "", "", n_in, in, 1);
    n->op = op_find("", type);
    return n->out[0];
}

static int32_t scalar(builder *b, float x) {
    return graph_constant_scalar(b->g, "", BRAID_FLOAT32, (double)x);
}

static void outputs(builder *b, int n, const int32_t *values) {
    b->g->n_outputs = n;
    b->g->outputs = arena_copy(b->memory, values, (size_t)n * sizeof *values);
    b->g->output_names = arena_array(b->memory, (size_t)n, sizeof *b->g->output_names);
    for (int i = 0; i < n; i++) b->g->output_names[i] = "y";
}

static result roll_built(builder *b, const char *what, double limit_s) {
    braid_error err = {0};
    if (graph_sort(b->g, &err) != BRAID_OK || graph_infer(b->g, &err) != BRAID_OK)
        fail_msg("%s: %s", what, err.message);
    clock_t start = clock();
    graph *ignored;
    if (pass_run("reroll", b->g, b->memory, NULL, &ignored, &err) != BRAID_OK) fail_msg("%s: %s", what, err.message);
    double seconds = timing_seconds(start);
    print_message("%s: %d nodes in %.3f s\n", what, b->g->n_nodes, seconds);
    timing_check(what, seconds, limit_s);
    return roll(b->g, b->memory, true, what);
}

enum { MANY = 100000 };
#define LIMIT_S 10.0

static void many_equal_nodes(void **state) {
    (void)state;
    builder b = build_new(1);
    int32_t *y = malloc(MANY * sizeof *y);
    for (int i = 0; i < MANY; i++) y[i] = op_node(&b, "Mul", 2, (int32_t[]){b.g->inputs[0], scalar(&b, (float)i)});
    outputs(&b, MANY, y);
    result r = roll_built(&b, "equal nodes", LIMIT_S);
    assert_int_equal(r.most, MANY);
    arena_free(b.memory);
    free(y);
}

static void deep_chains(void **state) {
    (void)state;
    builder b = build_new(2);
    int32_t y[2] = {b.g->inputs[0], b.g->inputs[1]};
    for (int i = 0; i < MANY / 2; i++)
        for (int k = 0; k < 2; k++) y[k] = op_node(&b, "Tanh", 1, &y[k]);
    outputs(&b, 2, y);
    result r = roll_built(&b, "two deep chains", LIMIT_S);
    assert_int_equal(r.copied, MANY);
    arena_free(b.memory);
    b = build_new(1);
    y[0] = b.g->inputs[0];
    for (int i = 0; i < MANY; i++) y[0] = op_node(&b, "Tanh", 1, &y[0]);
    outputs(&b, 1, y);
    r = roll_built(&b, "one deep chain", LIMIT_S);
    assert_int_equal(r.copied, 0);
    arena_free(b.memory);
}

/* Sums of neighbours, level by level: every node looks like every other, and all of them meet. */
static void trees(void **state) {
    (void)state;
    builder b = build_new(1);
    int n = 1 << 15;
    int32_t *v = malloc((size_t)n * sizeof *v);
    for (int i = 0; i < n; i++) v[i] = op_node(&b, "Mul", 2, (int32_t[]){b.g->inputs[0], scalar(&b, (float)i)});
    for (; n > 1; n /= 2)
        for (int i = 0; i < n / 2; i++) v[i] = op_node(&b, "Add", 2, (int32_t[]){v[2 * i], v[2 * i + 1]});
    outputs(&b, 1, v);
    result r = roll_built(&b, "a tree of sums", LIMIT_S);
    assert_true(r.most >= 1 << 13);
    arena_free(b.memory);
    free(v);
}

/* Random edges among nodes of two kinds: seeds everywhere, packs nowhere. */
static void random_dag(void **state) {
    (void)state;
    builder b = build_new(8);
    uint64_t x = 77;
    int32_t *v = malloc(MANY * sizeof *v);
    for (int i = 0; i < 8; i++) v[i] = b.g->inputs[i];
    for (int i = 8; i < MANY; i++) {
        int32_t in[2] = {v[clone_next(&x) % (uint64_t)i], v[clone_next(&x) % (uint64_t)i]};
        v[i] = op_node(&b, clone_next(&x) % 2 ? "Add" : "Mul", 2, in);
    }
    outputs(&b, 1, &v[MANY - 1]);
    roll_built(&b, "a random graph", LIMIT_S);
    arena_free(b.memory);
    free(v);
}

/* a1 -> b1 and b2 -> a2, in many pairs: packs of independent nodes that depend on each other. */
static void cycles(void **state) {
    (void)state;
    builder b = build_new(64);
    int32_t *v = malloc(64 * sizeof *v);
    for (int i = 0; i < 64; i++) v[i] = b.g->inputs[i];
    for (int round = 0; round < 700; round++)
        for (int i = 0; i < 64; i++) {
            bool turned = (i + round) % 2;
            v[i] = op_node(&b, turned ? "Tanh" : "Sigmoid", 1, &v[i]);
            v[i] = op_node(&b, turned ? "Sigmoid" : "Tanh", 1, &v[i]);
        }
    outputs(&b, 64, v);
    result r = roll_built(&b, "crossed chains", LIMIT_S);
    assert_true(r.copied > 0);
    arena_free(b.memory);
    free(v);
}

/* 64 copies, each with one attribute of its own in another place. */
static void private_differences(void **state) {
    (void)state;
    builder b = build_new(64);
    int32_t y[64];
    for (int i = 0; i < 64; i++) {
        y[i] = b.g->inputs[i];
        for (int k = 0; k < 200; k++) {
            y[i] = op_node(&b, k % 2 ? "Tanh" : "LeakyRelu", 1, &y[i]);
            if (k == 2 * i) node_add_float(b.g, b.g->nodes[b.g->n_nodes - 1], "alpha", 0.3f);
        }
    }
    outputs(&b, 64, y);
    result r = roll_built(&b, "private differences", LIMIT_S);
    assert_true(r.copied > 64 * 100);
    arena_free(b.memory);
}

static void random_operators(void **state) {
    (void)state;
    builder b = build_new(1);
    int32_t y[8];
    op row = *op_find("", "Erf"); /* as if it drew numbers */
    row.flags |= OP_RANDOM;
    for (int i = 0; i < 8; i++) {
        y[i] = op_node(&b, "Erf", 1, &b.g->inputs[0]);
        b.g->nodes[b.g->n_nodes - 1]->op = &row;
        for (int k = 0; k < 6; k++) y[i] = op_node(&b, k % 2 ? "Tanh" : "Softmax", 1, &y[i]);
    }
    outputs(&b, 8, y);
    result r = roll_built(&b, "random operators", LIMIT_S);
    assert_int_equal(r.most, 8);
    int kept = 0;
    for (int32_t i = 0; i < r.g->n_nodes; i++) kept += strcmp(r.g->nodes[i]->type, "Erf") == 0;
    assert_int_equal(kept, 8);
    arena_free(b.memory);
}

/* The size of 64 x SqueezeNet. */
static void speed(void **state) {
    (void)state;
    arena *memory = arena_new();
    clone_spec s = {.copies = 64, .weights = WEIGHTS_OWN, .body = 65, .shuffle = true, .seed = 2};
    braid_error err = {0};
    graph *g = clone_graph(memory, &s, &err), *out;
    assert_non_null(g);
    clock_t start = clock();
    assert_int_equal(pass_run("reroll", g, memory, NULL, &out, &err), BRAID_OK);
    double seconds = timing_seconds(start);
    print_message("%d nodes in %.3f s\n", g->n_nodes, seconds);
    timing_check("the size of 64 x SqueezeNet", seconds, 0.3);
    arena_free(memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_disguise),   cmocka_unit_test(devices),
        cmocka_unit_test(uneven_copies),    cmocka_unit_test(random_clones),
        cmocka_unit_test(many_equal_nodes), cmocka_unit_test(deep_chains),   cmocka_unit_test(trees),
        cmocka_unit_test(random_dag),       cmocka_unit_test(cycles),        cmocka_unit_test(private_differences),
        cmocka_unit_test(random_operators), cmocka_unit_test(speed),         cmocka_unit_test(faults_are_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
