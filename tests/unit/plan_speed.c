/*
 * plan_speed.c: planning time stays about linear in the size of the graph, whatever its shape, and so does verifying.
 * Times are of this process, not of the wall; `plan_speed NODES` prints them for other sizes,
 * `plan_speed NODES lean` with as little memory as can be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "plan/plan.h"
#include "timing.h"
#include "plan_made_up.h"

static const device_traits device = PLAN_GPU;

typedef struct build {
    graph *g;
    uint64_t state;
} build;

static uint32_t draw(build *b, uint32_t below) {
    b->state = b->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((b->state >> 33) % below);
}

static int32_t add(build *b, const char *type, int n_in, const int32_t *in) {
    node *n = graph_node(b->g, type, "", "", n_in, in, 1);
    assert_non_null(n);
    if (strcmp(type, "Concat") == 0) node_add_int(b->g, n, "axis", 0);
    return n->out[0];
}
#define IN(...)                                                                                                        \
    (int)(sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t)), (int32_t[]) {                                           \
        __VA_ARGS__                                                                                                    \
    }

/* ------------------------------------------------------------------------------------------------- graphs */

/* Each returns the graph's only output. */
static int32_t chain(build *b, int32_t x, int n) {
    for (int i = 0; i < n; i++) x = add(b, i % 3 ? "Relu" : "Neg", IN(x));
    return x;
}

/* Every second node is a view. */
static int32_t views(build *b, int32_t x, int n) {
    for (int i = 0; i < n; i++) x = add(b, i < n / 2 ? "Identity" : i % 2 ? "Relu" : "Identity", IN(x));
    return x;
}

static int32_t gather_all(build *b, const int32_t *parts, int n) {
    return add(b, "Concat", n, parts);
}

/* One storage that all read, one that all write. */
static int32_t wide(build *b, int32_t x, int n) {
    int32_t *parts = calloc((size_t)n, sizeof *parts), first = add(b, "Relu", IN(x));
    for (int i = 0; i < n; i++) parts[i] = add(b, "Relu", IN(first));
    int32_t out = gather_all(b, parts, n);
    free(parts);
    return out;
}

/* Many parts that many read as one. */
static int32_t crossed(build *b, int32_t x, int n) {
    int32_t *parts = calloc((size_t)n, sizeof *parts), half = n / 2;
    for (int i = 0; i < half; i++) parts[i] = add(b, i % 2 ? "Relu" : "Neg", IN(x));
    int32_t all = gather_all(b, parts, half), out = -1;
    for (int i = 0; i < half; i++) parts[i] = add(b, "ReduceSum", IN(all));
    out = gather_all(b, parts, half);
    free(parts);
    return out;
}

/* A U: the first half is read again by the second, the last made first. */
static int32_t nested(build *b, int32_t x, int n) {
    int32_t *down = calloc((size_t)n, sizeof *down), half = n / 2;
    for (int i = 0; i < half; i++) x = down[i] = add(b, "Relu", IN(x));
    for (int i = half - 1; i >= 0; i--) x = add(b, "Add", IN(x, down[i]));
    free(down);
    return x;
}

/* Each Concat holds the one before: all become parts of the last. */
static int32_t grown(build *b, int32_t x, int n) {
    int32_t all = add(b, "Relu", IN(x));
    for (int i = 0; i < n / 8; i++) all = add(b, "Concat", IN(all, add(b, i % 2 ? "Relu" : "Neg", IN(x))));
    return add(b, "Relu", IN(all));
}

/* Blocks of unlike branches, three or four abreast. */
static int32_t narrow(build *b, int32_t x, int n) {
    static const char *const kinds[] = {"Softmax", "LogSoftmax", "LpNormalization"};
    for (int i = 0; i < n;) {
        int32_t all = x;
        for (uint32_t branches = 3 + draw(b, 2); branches; branches--, i++) {
            int32_t y = x;
            for (uint32_t length = 1 + draw(b, 4); length; length--, i++) y = add(b, kinds[draw(b, 3)], IN(y));
            all = add(b, "Add", IN(all, y));
        }
        x = all;
    }
    return x;
}

static int32_t chains(build *b, int32_t x, int n) {
    int32_t ends[64];
    for (int c = 0; c < 64; c++) {
        ends[c] = x;
        for (int i = 0; i < n / 64; i++) ends[c] = add(b, draw(b, 2) ? "Sigmoid" : "Softmax", IN(ends[c]));
    }
    return gather_all(b, ends, 64);
}

static int32_t random_dag(build *b, int32_t x, int n) {
    int32_t *made = calloc((size_t)n + 1, sizeof *made), *loose = calloc((size_t)n + 1, sizeof *loose);
    bool *used = calloc((size_t)n + 1, sizeof *used);
    made[0] = x;
    for (int i = 1; i <= n; i++) {
        int one = i - 1 - (int)draw(b, (uint32_t)(i < 40 ? i : 40)), two = (int)draw(b, (uint32_t)i);
        used[one] = used[two] = true;
        made[i] = draw(b, 3) ? add(b, "Add", IN(made[one], made[two])) : add(b, "Softmax", IN(made[one]));
    }
    int n_loose = 0;
    for (int i = 0; i <= n; i++)
        if (!used[i]) loose[n_loose++] = made[i];
    int32_t out = gather_all(b, loose, n_loose);
    free(made);
    free(loose);
    free(used);
    return out;
}

/* ------------------------------------------------------------------------------------------------- timing */

static graph *make_graph(arena *memory, int32_t (*make)(build *, int32_t, int), int n) {
    build b = {graph_new(memory, "speed"), 1};
    int32_t *io = arena_array(memory, 2, sizeof *io);
    io[0] = graph_value(b.g, "x", VALUE_INPUT);
    b.g->values[io[0]]->type = (tensor_type){BRAID_FLOAT32, 2, {8, 24}};
    b.g->n_inputs = b.g->n_outputs = 1;
    b.g->inputs = io;
    io[1] = make(&b, io[0], n);
    b.g->outputs = io + 1;
    b.g->output_names = arena_array(memory, 1, sizeof *b.g->output_names);
    b.g->output_names[0] = "y";
    braid_error err = {0};
    graph_find_ops(b.g);
    if (graph_sort(b.g, &err) != BRAID_OK || graph_infer(b.g, &err) != BRAID_OK) fail_msg("%s", err.message);
    return b.g;
}

static void measure(const char *name, int32_t (*make)(build *, int32_t, int), int n, uint64_t budget, double limit) {
    arena *memory = arena_new();
    graph *g = make_graph(memory, make, n);
    braid_error err = {0};
    plan_options options = {.device = &device, .memory_budget = budget};
    plan *p;
    clock_t start = clock();
    if (plan_new(g, memory, &options, &p, &err) != BRAID_OK) fail_msg("%s: %s", name, err.message);
    double planning = timing_seconds(start);
    assert_int_equal(p->n_host_nodes, 0);
    plan_place_constants(p);
    start = clock();
    if (plan_encode(p, 1, &err) != BRAID_OK || plan_verify(p, 1, &err) != BRAID_OK)
        fail_msg("%s: %s", name, err.message);
    double verifying = timing_seconds(start);
    printf("%-8s %6d nodes, %6d steps, %6d waves, %6d dispatches: planned in %.3f s, verified in %.3f s; arena / bound "
           "%.3f\n",
           name, n, p->n_steps, p->n_waves, p->n_dispatches, planning, verifying,
           p->arena_bound ? (double)p->arena_bytes / (double)p->arena_bound : 1);
    fflush(stdout);
    timing_check(name, planning, limit);
    timing_check(name, verifying, limit);
    arena_free(memory);
}

static const struct {
    const char *name;
    int32_t (*make)(build *, int32_t, int);
} shapes[] = {{"chain", chain},   {"views", views}, {"wide", wide},     {"crossed", crossed},
              {"nested", nested}, {"grown", grown}, {"chains", chains}, {"random", random_dag},
              {"narrow", narrow}};

static void ten_thousand(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(shapes); i++) measure(shapes[i].name, shapes[i].make, 10000, 0, 1);
}

static void little_memory(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(shapes); i++) measure(shapes[i].name, shapes[i].make, 4000, 1, 4);
}

static void long_chain(void **state) {
    (void)state;
    measure("chain", chain, 100000, 0, 4);
    measure("views", views, 100000, 0, 4);
}

int main(int argc, char **argv) {
    for (size_t i = 0; argc > 1 && i < COUNT_OF(shapes); i++)
        measure(shapes[i].name, shapes[i].make, atoi(argv[1]), argc > 2, 1e9);
    if (argc > 1) return 0;
    const struct CMUnitTest tests[] = {cmocka_unit_test(ten_thousand), cmocka_unit_test(little_memory),
                                       cmocka_unit_test(long_chain)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
