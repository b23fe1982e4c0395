/*
 * plan_once.c: what no lane-varying input reaches is planned once for all lanes, takes the memory of one, and the
 * verifier sees where a plan mixes that up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "plan/plan.h"
#include "plan_made_up.h"

enum { LANES = 7 };

static const device_traits device = PLAN_SMALL;

/* c, d depend on b alone. Concat writes e straight into g, whose other part d would be each lane's own there. */
static const char *const source = "graph t(a: float32[32,48], b: float32[32,48]) {\n"
                                  "  c = Transpose(b) {perm = [1, 0]}\n"
                                  "  d = Transpose(c) {perm = [1, 0]}\n"
                                  "  e = Transpose(a) {perm = [1, 0]}\n"
                                  "  f = Transpose(e) {perm = [1, 0]}\n"
                                  "  g = Concat(f, d) {axis = 0}\n"
                                  "  h = Transpose(g) {perm = [1, 0]}\n"
                                  "} -> h, c\n";

typedef struct fixture {
    arena *memory;
    plan *p;
} fixture;

static void make_plan(fixture *f, bool a, bool b, uint32_t lanes, bool redzone) {
    braid_error err = {0};
    graph *g;
    const bool varies[] = {a, b};
    plan_options options = {.device = &device, .lanes = lanes, .varies = varies, .redzone = redzone};
    f->memory = arena_new();
    if (graph_parse(f->memory, source, &g, &err) != BRAID_OK) fail_msg("%s", err.message);
    graph_find_ops(g);
    if (graph_infer(g, &err) != BRAID_OK || plan_new(g, f->memory, &options, &f->p, &err) != BRAID_OK)
        fail_msg("%s", err.message);
    plan_place_constants(f->p);
    assert_int_equal(plan_encode(f->p, lanes, &err), BRAID_OK);
}

static int setup(void **state) {
    static fixture f;
    make_plan(&f, true, false, LANES, false);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    arena_free(((fixture *)*state)->memory);
    return 0;
}

static int steps_once(const plan *p) {
    int n = 0;
    for (int32_t i = 0; i < p->n_steps; i++) n += p->steps[i]->once;
    return n;
}

static int32_t value_of(const plan *p, const char *name) {
    for (int32_t i = 0; i < p->g->n_values; i++)
        if (strcmp(p->g->values[i]->name, name) == 0) return i;
    fail();
    return -1;
}

static void accepts(void **state) {
    (void)state;
    for (unsigned i = 0; i < 16; i++) {
        fixture f;
        braid_error err = {0};
        uint32_t lanes = i & 8 ? LANES : 1;
        make_plan(&f, i & 1, i & 2, lanes, i & 4);
        if (plan_verify(f.p, lanes, &err) != BRAID_OK) fail_msg("%s", err.message);
        if (lanes == 1) assert_int_equal(steps_once(f.p), 0);
        else if (!(i & 3)) assert_int_equal(steps_once(f.p), f.p->n_steps);
        else assert_int_equal(steps_once(f.p) > 0, (i & 3) != 3);
        arena_free(f.memory);
    }
}

static void one_copy(void **state) {
    const plan *p = ((fixture *)*state)->p;
    assert_int_equal(steps_once(p), 2);
    assert_true(p->storages[value_of(p, "d")].once && p->storages[value_of(p, "c")].once);
    assert_false(p->storages[value_of(p, "f")].once);
    assert_int_equal(plan_root(p, value_of(p, "f")), value_of(p, "g")); /* no copy of the part that lanes have */
    assert_int_equal(plan_root(p, value_of(p, "d")), value_of(p, "d"));
    assert_int_equal(p->storages[value_of(p, "d")].stride, 1024); /* 6144 / 7, aligned */
}

static step *step_of(plan *p, const char *output) {
    for (int32_t i = 0; i < p->n_steps; i++)
        if (p->g->nodes[p->steps[i]->node]->out[0] == value_of(p, output)) return p->steps[i];
    fail();
    return NULL;
}

/* The step's dispatch too. */
static void set_once(plan *p, step *s, bool once) {
    s->once = once;
    for (int32_t d = 0; d < p->n_dispatches; d++)
        for (int32_t k = 0; k < p->dispatches[d].n_steps; k++)
            if (p->steps[p->order[p->dispatches[d].first_step + k]] == s) p->dispatches[d].once = once;
}

static void expect_fault(plan *p, const char *what) {
    braid_error err = {0};
    assert_int_equal(plan_verify(p, LANES, &err), BRAID_INTERNAL);
    if (!strstr(err.message, what)) fail_msg("%s", err.message);
}

static void step_done_once_by_mistake(void **state) {
    plan *p = ((fixture *)*state)->p;
    set_once(p, step_of(p, "e"), true);
    expect_fault(p, "a step done once meets one lane's tensor");
}

static void step_of_every_lane_by_mistake(void **state) {
    plan *p = ((fixture *)*state)->p;
    set_once(p, step_of(p, "d"), false);
    expect_fault(p, "a lane writes what all share");
}

/* Concat's copy of d: as if every lane had its own. */
static void stride_where_there_is_none(void **state) {
    plan *p = ((fixture *)*state)->p;
    int32_t d = value_of(p, "d");
    p->storages[d].once = false;
    braid_error err = {0};
    assert_int_equal(plan_encode(p, LANES, &err), BRAID_OK);
    p->storages[d].once = true;
    assert_int_equal(plan_verify(p, LANES, &err), BRAID_INTERNAL);
}

int main(void) {
#define FAULT(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {cmocka_unit_test(accepts), FAULT(one_copy), FAULT(step_done_once_by_mistake),
                                       FAULT(step_of_every_lane_by_mistake), FAULT(stride_where_there_is_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
