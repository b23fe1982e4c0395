/*
 * plan_waves.c: a wave's steps become dispatches: alike ones rows of one, long ones first, and no more at once than the
 * device keeps resident, which the estimated time knows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "plan/waves.h"
#include "plan_made_up.h"

static const char *const source = "graph t(x: float32[64,512], y: float32[512,512], z: float32[8,512]) {\n"
                                  "  k: int64[] = constant {1}\n"
                                  "  z1 = Softmax(z)\n"
                                  "  y1 = Softmax(y)\n"
                                  "  x1 = Softmax(x)\n"
                                  "  x2 = LogSoftmax(x)\n"
                                  "  x3 = Transpose(x) {perm = [1, 0]}\n"
                                  "  x4 = MatMul(x, y)\n"
                                  "  x5 = CumSum(x, k)\n"
                                  "} -> z1, y1, x1, x2, x3, x4, x5\n";

static plan *make(arena *memory, uint32_t resident, braid_schedule way) {
    device_traits *device = arena_alloc(memory, sizeof *device);
    braid_error err = {0};
    graph *g;
    plan *p;
    *device = (device_traits)PLAN_GPU;
    device->resident = resident;
    if (graph_parse(memory, source, &g, &err) != BRAID_OK) fail_msg("%s", err.message);
    graph_find_ops(g);
    plan_options options = {.device = device, .schedule = way};
    if (graph_infer(g, &err) != BRAID_OK || plan_new(g, memory, &options, &p, &err) != BRAID_OK)
        fail_msg("%s", err.message);
    assert_int_equal(p->n_host_nodes, 0);
    return p;
}

static double longest_of(const plan *p, const plan_dispatch *d) {
    double longest = 0;
    for (int32_t k = 0; k < d->n_steps; k++)
        if (p->alone_ns[p->order[d->first_step + k]] > longest) longest = p->alone_ns[p->order[d->first_step + k]];
    return longest;
}

static void long_ones_first(void **state) {
    (void)state;
    arena *memory = arena_new();
    plan *p = make(memory, 0, BRAID_SCHEDULE_DEFAULT);
    bool rows = false;
    for (int32_t i = 0; i < p->n_dispatches; i++) {
        const plan_dispatch *d = &p->dispatches[i];
        if (i && d->wave == d[-1].wave) assert_true(longest_of(p, d) <= longest_of(p, d - 1));
        for (int32_t k = 1; k < d->n_steps; k++)
            assert_true(p->alone_ns[p->order[d->first_step + k]] <= p->alone_ns[p->order[d->first_step + k - 1]]);
        rows = rows || d->n_steps == 4;
    }
    assert_true(rows); /* three of Softmax, one of LogSoftmax */
    assert_true(p->n_dispatches > 4);
    plan *apart = make(memory, 0, BRAID_SCHEDULE_UNMERGED);
    assert_int_equal(apart->n_dispatches, apart->n_steps);
    arena_free(memory);
}

/* With one dispatch at a time a wave takes the sum of its dispatches. */
static void resident_dispatches(void **state) {
    (void)state;
    arena *memory = arena_new();
    plan *many = make(memory, 0, BRAID_SCHEDULE_DEFAULT), *one = make(memory, 1, BRAID_SCHEDULE_DEFAULT),
         *two = make(memory, 2, BRAID_SCHEDULE_DEFAULT);
    device_figures f = device_figures_of(one->device);
    double sum = 0;
    for (int32_t i = 0; i < one->n_dispatches; i++) sum += longest_of(one, &one->dispatches[i]) + f.dispatch;
    sum += one->n_waves * f.barrier;
    assert_true(one->time_ns > sum * 0.999 && one->time_ns < sum * 1.001);
    assert_true(many->time_ns < two->time_ns && two->time_ns < one->time_ns);
    assert_true(device_figures_of(many->device).resident > 100);
    arena_free(memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(long_ones_first), cmocka_unit_test(resident_dispatches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
