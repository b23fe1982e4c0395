/*
 * plan_verify.c: the plan verifier accepts the planner's plans, in both orders and with red zones, for several lane
 * counts, and catches seeded faults: missing barriers of every kind and wrong places.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "plan/plan.h"
#include "plan_made_up.h"

static const device_traits device = PLAN_SMALL;

/* Chains of transposes that share their start: storage is reused, waves hold several steps; d and f are written
   straight into their Concat g, where a read shifted by a part is still inside the same storage. */
static const char *const source = "graph t(x: float32[64,48]) {\n"
                                  "  a = Transpose(x) {perm = [1, 0]}\n"
                                  "  b = Transpose(a) {perm = [1, 0]}\n"
                                  "  c = Transpose(b) {perm = [1, 0]}\n"
                                  "  d = Transpose(c) {perm = [1, 0]}\n"
                                  "  e = Transpose(a) {perm = [1, 0]}\n"
                                  "  f = Transpose(e) {perm = [1, 0]}\n"
                                  "  h = Transpose(f) {perm = [1, 0]}\n"
                                  "  g = Concat(d, h) {axis = 0}\n"
                                  "  p = Transpose(g) {perm = [1, 0]}\n"
                                  "  q = Transpose(h) {perm = [1, 0]}\n"
                                  "} -> p, q\n";

typedef struct fixture {
    arena *memory;
    plan *p;
} fixture;

static void make_plan(fixture *f, const plan_options *options, uint32_t lanes) {
    braid_error err = {0};
    graph *g;
    f->memory = arena_new();
    if (graph_parse(f->memory, source, &g, &err) != BRAID_OK) fail_msg("%s", err.message);
    graph_find_ops(g);
    if (graph_infer(g, &err) != BRAID_OK || plan_new(g, f->memory, options, &f->p, &err) != BRAID_OK)
        fail_msg("%s", err.message);
    assert_int_equal(f->p->n_host_nodes, 0);
    plan_place_constants(f->p);
    assert_int_equal(plan_encode(f->p, lanes, &err), BRAID_OK);
}

static int setup(void **state) {
    static fixture f;
    plan_options options = {.device = &device};
    make_plan(&f, &options, 3);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    arena_free(((fixture *)*state)->memory);
    return 0;
}

static void accepts(void **state) {
    (void)state;
    for (int shuffle = 0; shuffle < 2; shuffle++)
        for (int redzone = 0; redzone < 2; redzone++)
            for (uint32_t lanes = 1; lanes < 6; lanes += 2) {
                fixture f;
                braid_error err = {0};
                plan_options options = {.device = &device, .redzone = redzone, .shuffle = shuffle};
                make_plan(&f, &options, lanes);
                if (plan_verify(f.p, lanes, &err) != BRAID_OK) fail_msg("%s", err.message);
                arena_free(f.memory);
            }
}

static void expect_fault(const fixture *f, const char *what) {
    braid_error err = {0};
    assert_int_equal(plan_verify(f->p, 3, &err), BRAID_INTERNAL);
    if (!strstr(err.message, what)) fail_msg("expected '%s', got: %s", what, err.message);
}

static void move_dispatch(plan *p, int32_t d, int32_t wave) {
    p->dispatches[d].wave = wave;
    for (int32_t k = 0; k < p->dispatches[d].n_steps; k++) p->wave[p->order[p->dispatches[d].first_step + k]] = wave;
}

/* Every barrier in turn is taken away: the wave behind it joins the one before. */
static void missing_barrier(void **state) {
    fixture *f = *state;
    plan *p = f->p;
    assert_true(p->n_waves >= 3);
    for (int32_t wave = 1; wave < p->n_waves; wave++) {
        int32_t moved[16], n = 0;
        for (int32_t d = 0; d < p->n_dispatches; d++)
            if (p->dispatches[d].wave == wave && n < 16) moved[n++] = d;
        for (int32_t i = 0; i < n; i++) move_dispatch(p, moved[i], wave - 1);
        expect_fault(f, "two steps of one wave meet");
        for (int32_t i = 0; i < n; i++) move_dispatch(p, moved[i], wave);
    }
}

static step_operand *arena_operand(const plan *p, int32_t step_id, int access, uint8_t **at) {
    for (int32_t d = 0; d < p->n_dispatches; d++)
        for (int32_t k = 0; k < p->dispatches[d].n_steps; k++) {
            if (p->order[p->dispatches[d].first_step + k] != step_id) continue;
            const step *s = p->steps[step_id];
            for (int i = 0; i < s->n_operands; i++) {
                if (!(s->operands[i].access & access)) continue;
                if (p->storages[plan_root(p, s->operands[i].storage)].kind != STORAGE_ARENA) continue;
                *at =
                    p->rows + p->dispatches[d].rows_offset + (size_t)k * p->dispatches[d].row_bytes + s->operands[i].at;
                return &s->operands[i];
            }
        }
    return NULL;
}

/* Every operand of every step is moved to every 256-byte place of the arena: each move is noticed. */
static void wrong_offset(void **state, int access) {
    fixture *f = *state;
    plan *p = f->p;
    int tried = 0;
    for (int32_t i = 0; i < p->n_steps; i++) {
        uint8_t *at;
        if (!arena_operand(p, i, access, &at)) continue;
        operand saved, wrong;
        memcpy(&saved, at, sizeof saved);
        for (uint64_t base = 0; base < p->block_bytes[saved.index] * 3; base += 12288 / 4) {
            if (base == saved.base) continue;
            wrong = saved;
            wrong.base = base;
            memcpy(at, &wrong, sizeof wrong);
            braid_error err = {0};
            assert_int_equal(plan_verify(p, 3, &err), BRAID_INTERNAL);
            tried++;
        }
        memcpy(at, &saved, sizeof saved);
    }
    assert_true(tried > 10);
    braid_error err = {0};
    assert_int_equal(plan_verify(p, 3, &err), BRAID_OK);
}

static void wrong_read(void **state) { wrong_offset(state, ACCESS_READ); }
static void wrong_write(void **state) { wrong_offset(state, ACCESS_WRITE); }

static void outside(void **state) {
    fixture *f = *state;
    uint8_t *at;
    assert_non_null(arena_operand(f->p, 0, ACCESS_WRITE, &at));
    operand o;
    memcpy(&o, at, sizeof o);
    o.base += f->p->block_bytes[o.index] * 3;
    memcpy(at, &o, sizeof o);
    expect_fault(f, "outside its buffer");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts),
        cmocka_unit_test_setup_teardown(missing_barrier, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_read, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_write, setup, teardown),
        cmocka_unit_test_setup_teardown(outside, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
