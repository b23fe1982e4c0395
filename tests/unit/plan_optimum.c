/*
 * plan_optimum.c: where few steps stand side by side, a schedule is near the best there is, by the cost model.
 * `plan_optimum SEEDS` prints more.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "../optimum.h"
#include "plan_graphs.h"
#include "plan_made_up.h"

static const device_traits device = PLAN_GPU;

enum { WIDTHS = 3 };
static const int64_t widths[WIDTHS] = {256, 1024, 2048};

typedef struct blocks {
    graph *g;
    plan_draw r;
    int32_t weights[WIDTHS][WIDTHS]; /* from one width to another: graph inputs */
} blocks;

static int32_t input(blocks *b, const char *name, int64_t rows, int64_t columns) {
    int32_t v = graph_value(b->g, name, VALUE_INPUT);
    b->g->values[v]->type = (tensor_type){BRAID_FLOAT32, 2, {rows, columns}};
    return b->g->inputs[b->g->n_inputs++] = v;
}

static int32_t product(blocks *b, int32_t x, uint32_t from, uint32_t to) {
    return graph_node(b->g, "MatMul", "", "", 2, (int32_t[]){x, b->weights[from][to]}, 1)->out[0];
}

/* Ends as wide as it began. */
static int32_t branch(blocks *b, int32_t x, uint32_t width) {
    static const char *const small[] = {"Softmax", "LogSoftmax"};
    uint32_t now = width;
    for (uint32_t length = 1 + plan_random(&b->r, 4); length; length--) {
        uint32_t to = plan_random(&b->r, WIDTHS), which = plan_random(&b->r, 4);
        x = which < 2 ? graph_node(b->g, small[which], "", "", 1, &x, 1)->out[0] : product(b, x, now, to);
        if (which >= 2) now = to;
    }
    return now == width ? x : product(b, x, now, width);
}

static graph *make(arena *memory, uint64_t seed) {
    blocks b = {.g = graph_new(memory, "blocks"), .r = {seed * 0x9e3779b97f4a7c15u + 1}};
    b.g->inputs = arena_array(memory, 1 + WIDTHS * WIDTHS, sizeof *b.g->inputs);
    int32_t x = input(&b, "x", 16, widths[0]);
    for (int i = 0; i < WIDTHS * WIDTHS; i++)
        b.weights[i / 3][i % 3] = input(&b, arena_format(memory, "w%d", i), widths[i / 3], widths[i % 3]);
    for (int i = 0; i < 6; i++) {
        int32_t all = -1;
        for (uint32_t branches = 2 + plan_random(&b.r, 4); branches; branches--) {
            int32_t y = branch(&b, x, 0);
            all = all < 0 ? y : graph_node(b.g, "Add", "", "", 2, (int32_t[]){all, y}, 1)->out[0];
        }
        x = graph_node(b.g, "Softmax", "", "", 1, &all, 1)->out[0];
    }
    b.g->outputs = arena_copy(memory, &x, sizeof x);
    b.g->output_names = arena_array(memory, 1, sizeof *b.g->output_names);
    b.g->output_names[0] = "y";
    b.g->n_outputs = 1;
    braid_error err = {0};
    graph_find_ops(b.g);
    if (graph_sort(b.g, &err) != BRAID_OK || graph_infer(b.g, &err) != BRAID_OK) fail_msg("%s", err.message);
    return b.g;
}

static optimum plan_and_find(graph *g, arena *memory) {
    braid_error err = {0};
    plan *p;
    if (plan_new(g, memory, &(plan_options){.device = &device}, &p, &err) != BRAID_OK) fail_msg("%s", err.message);
    return optimum_find(p);
}

/* Sums over `seeds` graphs; *worst: the largest ratio of one. */
static optimum look(int seeds, bool random, double *worst, bool print) {
    optimum sum = {0};
    *worst = 1;
    for (int seed = 1; seed <= seeds; seed++) {
        arena *memory = arena_new();
        graph *g = random ? plan_graph_make(memory, (uint64_t)seed, 18) : make(memory, (uint64_t)seed);
        optimum o = plan_and_find(g, memory);
        if (o.solved && o.narrow / o.exact > *worst) *worst = o.narrow / o.exact;
        if (print)
            printf("%3d: %2d of %2d parts, widest %2d: %.4f of the optimum, %.4f of the bound\n", seed, o.solved,
                   o.parts, o.widest, o.solved ? o.narrow / o.exact : 1, o.time / o.bound);
        sum.narrow += o.narrow;
        sum.exact += o.exact;
        sum.solved += o.solved;
        sum.parts += o.parts;
        arena_free(memory);
    }
    return sum;
}

static void narrow_graphs(void **state) {
    (void)state;
    double worst;
    optimum o = look(8, false, &worst, false);
    print_message("%d of %d parts: %.4f of the optimum, the worst %.4f\n", o.solved, o.parts, o.narrow / o.exact,
                  worst);
    assert_true(o.solved > o.parts / 2);
    assert_true(o.narrow < o.exact * 1.015 && worst < 1.05);
}

static void random_graphs(void **state) {
    (void)state;
    double worst;
    optimum o = look(40, true, &worst, false);
    print_message("%d of %d parts: %.4f of the optimum, the worst %.4f\n", o.solved, o.parts, o.narrow / o.exact,
                  worst);
    assert_true(o.narrow < o.exact * 1.015 && worst < 1.05);
}

int main(int argc, char **argv) {
    double worst;
    for (int i = 0; argc > 1 && i < 2; i++) look(atoi(argv[1]), i, &worst, true);
    if (argc > 1) return 0;
    const struct CMUnitTest tests[] = {cmocka_unit_test(narrow_graphs), cmocka_unit_test(random_graphs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
