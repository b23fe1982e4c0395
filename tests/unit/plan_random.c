/*
 * plan_random.c: plans of random graphs of up to 500 nodes. The dependency graph says what looking at every pair of
 * accesses says; the verifier accepts the plan; memory reuse adds no barrier; the arena is within a twentieth of its
 * lower bound; waves, merging and order cost nothing by the planner's own estimate.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "plan/waves.h"
#include "plan_graphs.h"
#include "plan_made_up.h"

enum { GRAPHS = 40, LANES = 3 };

static const device_traits devices[] = {PLAN_GPU,
                                        {.software = true,
                                         .subgroup = 8,
                                         .shared_bytes = 32768,
                                         .max_invocations = 1024,
                                         .max_groups = 65535,
                                         .cores = 2,
                                         .max_buffer = 1u << 30},
                                        {.subgroup = 32,
                                         .shared_bytes = 49152,
                                         .max_invocations = 1024,
                                         .max_groups = 65535,
                                         .cores = 64,
                                         .max_buffer = (uint64_t)1 << 32,
                                         .barrier_ns = 100,
                                         .dispatch_ns = 5000,
                                         .bandwidth = 1,
                                         .flop_rate = 1}};

typedef struct counts {
    double worst, least;
    int plans, budgets, kept, in_place;
} counts;

static plan *make_plan(const graph *g, arena *memory, const plan_options *options) {
    braid_error err = {0};
    plan *p;
    if (plan_new(g, memory, options, &p, &err) != BRAID_OK) fail_msg("%s", err.message);
    plan_place_constants(p);
    if (plan_encode(p, LANES, &err) != BRAID_OK || plan_verify(p, LANES, &err) != BRAID_OK) fail_msg("%s", err.message);
    return p;
}

static bool must_wait(const plan *p, int32_t later, int32_t earlier) {
    for (int i = 0; i < p->steps[later]->n_operands; i++)
        for (int k = 0; k < p->steps[earlier]->n_operands; k++) {
            const step_operand *a = &p->steps[later]->operands[i], *b = &p->steps[earlier]->operands[k];
            int32_t root = plan_root(p, a->storage);
            if (root != plan_root(p, b->storage) || !((a->access | b->access) & ACCESS_WRITE)) continue;
            if (p->storages[root].kind == STORAGE_CONST || p->storages[root].kind == STORAGE_INPUT) continue;
            if (a->access == ACCESS_WRITE && b->access == ACCESS_WRITE &&
                p->steps[later]->node == p->steps[earlier]->node)
                continue;
            uint64_t begin = plan_offset(p, a->storage) + a->offset, other = plan_offset(p, b->storage) + b->offset;
            if (begin < other + b->bytes && other < begin + a->bytes) return true;
        }
    return false;
}

/* Longest chains by links and by pairs. */
static void check_links(const plan *p) {
    arena *memory = arena_new();
    links l;
    assert_int_equal(links_make(p, memory, &l, NULL), BRAID_OK);
    int32_t *wave = arena_array(memory, (size_t)l.n + 1, sizeof *wave);
    int32_t *slow = arena_array(memory, (size_t)p->n_steps + 1, sizeof *slow);
    for (int32_t i = 0; i < l.n; i++) {
        int32_t id = l.order[i], last = -1;
        for (int32_t k = l.first[id]; k < l.first[id + 1]; k++)
            if (wave[l.before[k]] > last) last = wave[l.before[k]];
        wave[id] = last + (id < p->n_steps);
    }
    for (int32_t i = 0; i < p->n_steps; i++)
        for (int32_t k = 0; k < i; k++)
            if (slow[k] >= slow[i] && must_wait(p, i, k)) slow[i] = slow[k] + 1;
    for (int32_t i = 0; i < p->n_steps; i++) assert_int_equal(slow[i], wave[i]);
    arena_free(memory);
}

/* Under random budgets, down to none: kept where the least that was reached keeps them. */
static void check_budgets(const graph *g, arena *memory, const plan *free_plan, plan_draw *r, counts *n) {
    plan_options options = {.device = free_plan->device, .memory_budget = 1};
    const plan *least = make_plan(g, memory, &options);
    assert_true(least->arena_bound <= free_plan->arena_bound);
    n->least += free_plan->arena_bytes ? (double)least->arena_bytes / (double)free_plan->arena_bytes : 1;
    n->plans++;
    for (int i = 0; i < 2; i++) {
        uint64_t arena_bytes = least->arena_bytes;
        if (free_plan->arena_bytes > arena_bytes)
            arena_bytes += plan_random(r, 1000) * (free_plan->arena_bytes - arena_bytes) / 1000;
        options.memory_budget = free_plan->fixed_bytes + arena_bytes;
        const plan *p = make_plan(g, memory, &options);
        n->budgets++;
        n->kept += p->arena_bytes <= arena_bytes;
        n->in_place += p->in_place > 0;
    }
}

static void check_graph(uint64_t seed, counts *n) {
    arena *memory = arena_new();
    graph *g = plan_graph_make(memory, seed, 50 + (int)(seed * 37 % 451));
    plan_draw r = {seed};
    for (size_t d = 0; d < COUNT_OF(devices); d++) {
        const plan *p = make_plan(g, memory, &(plan_options){.device = &devices[d]});
        const plan *apart = make_plan(g, memory, &(plan_options){.device = &devices[d], .redzone = true});
        const plan *serial =
            make_plan(g, memory, &(plan_options){.device = &devices[d], .schedule = BRAID_SCHEDULE_SERIAL});
        if (d == 0) check_links(p);
        assert_int_equal(p->n_waves, apart->n_waves);
        assert_memory_equal(p->wave, apart->wave, (size_t)p->n_steps * sizeof *p->wave);
        assert_true(p->time_ns <= serial->time_ns);
        double ratio = p->arena_bound ? (double)p->arena_bytes / (double)p->arena_bound : 1;
        if (ratio > n->worst) n->worst = ratio;
        check_budgets(g, memory, p, &r, n);
    }
    arena_free(memory);
}

static void random_plans(void **state) {
    (void)state;
    counts n = {.worst = 1};
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) check_graph(seed, &n);
    printf("%d graphs, arena at most %.4f of the bound; least arena %.2f of the default on average; %d of %d budgets "
           "kept, "
           "%d with results in place\n",
           GRAPHS, n.worst, n.least / n.plans, n.kept, n.budgets, n.in_place);
    assert_true(n.worst <= 1.05);
    assert_true(n.kept * 20 >= n.budgets * 19 && n.in_place > 0 && n.least < 0.9 * n.plans);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_plans)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
