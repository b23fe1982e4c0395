/*
 * plan_chains.c: 64 chains of unlike steps, as bench/branches makes them, on a made-up GPU: steps of one kernel share few
 * pipelines, so that a wave has few dispatches; and waves that a product makes long are fewer than waves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "plan_graphs.h"

static const device_traits device = {.subgroup = 32, .shared_bytes = 49152, .max_invocations = 1024, .max_groups = 65535,
                                     .cores = 132, .max_buffer = (uint64_t)1 << 40};

enum { CHAINS = 64, WIDTHS = 4 };
static const int64_t widths[WIDTHS] = {64, 128, 256, 512}, heights[4] = {1, 4, 16, 64};

typedef struct maker {
    graph *g;
    plan_draw r;
    int32_t weights[WIDTHS][WIDTHS];
} maker;

static int32_t input(maker *b, const char *name, int64_t rows, int64_t columns) {
    int32_t v = graph_value(b->g, name, VALUE_INPUT);
    b->g->values[v]->type = (tensor_type){BRAID_FLOAT32, 2, {rows, columns}};
    return b->g->inputs[b->g->n_inputs++] = v;
}

static int32_t step_of(maker *b, int32_t x, uint32_t *width) {
    static const char *const rows[] = {"Softmax", "LogSoftmax", "LpNormalization"};
    uint32_t which = plan_random(&b->r, 6), from = *width;
    if (which < 3) return graph_node(b->g, rows[which], "", "", 1, &x, 1)->out[0];
    *width = plan_random(&b->r, WIDTHS);
    return graph_node(b->g, "MatMul", "", "", 2, (int32_t[]){x, b->weights[from][*width]}, 1)->out[0];
}

static graph *make(arena *memory, uint64_t seed, uint32_t *longest) {
    maker b = {.g = graph_new(memory, "chains"), .r = {seed * 0x9e3779b97f4a7c15u + 1}};
    braid_error err = {0};
    b.g->inputs = arena_array(memory, CHAINS + WIDTHS * WIDTHS, sizeof *b.g->inputs);
    b.g->outputs = arena_array(memory, CHAINS, sizeof *b.g->outputs);
    b.g->output_names = arena_array(memory, CHAINS, sizeof *b.g->output_names);
    for (int i = 0; i < WIDTHS * WIDTHS; i++)
        b.weights[i / WIDTHS][i % WIDTHS] = input(&b, arena_format(memory, "w%d", i), widths[i / WIDTHS], widths[i % WIDTHS]);
    *longest = 0;
    for (int i = 0; i < CHAINS; i++) {
        uint32_t width = plan_random(&b.r, WIDTHS), length = 4 + plan_random(&b.r, 37);
        int32_t x = input(&b, arena_format(memory, "x%d", i), heights[plan_random(&b.r, 4)], widths[width]);
        for (uint32_t k = 0; k < length; k++) x = step_of(&b, x, &width);
        if (length > *longest) *longest = length;
        b.g->output_names[b.g->n_outputs] = arena_format(memory, "y%d", i);
        b.g->outputs[b.g->n_outputs++] = x;
    }
    graph_find_ops(b.g);
    if (graph_sort(b.g, &err) != BRAID_OK || graph_infer(b.g, &err) != BRAID_OK) fail_msg("%s", err.message);
    return b.g;
}

/* A product takes several times as long as a row operator, which the schedule knows. */
static int32_t waves_of_products(const plan *p) {
    int32_t found = 0;
    for (int32_t i = 0, last = -1; i < p->n_dispatches; i++) {
        const char *kernel = p->steps[p->order[p->dispatches[i].first_step]]->kernel;
        if (p->dispatches[i].wave == last || (strncmp(kernel, "mm_", 3) != 0 && strncmp(kernel, "mv_", 3) != 0)) continue;
        last = p->dispatches[i].wave;
        found++;
    }
    return found;
}

static void few_dispatches(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++) {
        arena *memory = arena_new();
        braid_error err = {0};
        uint32_t longest;
        plan *p;
        graph *g = make(memory, seed, &longest);
        if (plan_new(g, memory, &(plan_options){.device = &device}, &p, &err) != BRAID_OK) fail_msg("%s", err.message);
        printf("%d steps, %d pipelines, %d dispatches, %d waves of at least %u, %d with products\n", p->n_steps,
               p->n_pipelines, p->n_dispatches, p->n_waves, longest, waves_of_products(p));
        assert_true(p->n_pipelines <= 8);
        assert_true(p->n_dispatches * 5 < p->n_steps);
        assert_true(waves_of_products(p) * 8 < p->n_waves * 7);
        arena_free(memory);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(few_dispatches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
