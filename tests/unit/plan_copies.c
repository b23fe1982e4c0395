/*
 * plan_copies.c: plans of re-rolled clone graphs are accepted by the verifier; faults in where copies lie are caught:
 * strides, places, barriers, numbers of copies.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>

#include "clones.h"
#include "pass/pass.h"
#include "plan/plan.h"
#include "plan_graphs.h"
#include "plan_made_up.h"

enum { LANES = 3, SEEDS = 24 };

static const device_traits device = PLAN_SMALL;

typedef struct fixture {
    arena *memory;
    plan *p;
} fixture;

static void encode(plan *p) {
    braid_error err = {0};
    plan_place_constants(p);
    if (plan_encode(p, LANES, &err) != BRAID_OK) fail_msg("%s", err.message);
}

static fixture make(uint64_t seed) {
    fixture f = {.memory = arena_new()};
    clone_spec s = {.copies = 3 + (int)(seed % 6),
                    .weights = (clone_weights)(seed % 4),
                    .inputs = (clone_inputs)(seed % 5),
                    .outputs = (clone_outputs)(seed % 3),
                    .shuffle = seed % 2,
                    .alter = seed % 5 == 4,
                    .body = seed % 4 ? 4 + (int)seed : 0,
                    .seed = seed};
    braid_error err = {0};
    graph *g = clone_graph(f.memory, &s, &err);
    pass_options passes = {0};
    bool *joinable = arena_array(f.memory, (size_t)s.copies + 1, sizeof *joinable);
    for (int i = 0; i < s.copies; i++) joinable[i] = seed % 3 != 0;
    plan_options options = {
        .device = &device, .lanes = LANES, .joinable = joinable, .redzone = seed % 7 == 0, .shuffle = seed % 2};
    if (!g || pass_run("prune", g, f.memory, NULL, &g, &err) != BRAID_OK ||
        pass_run("reroll_any", g, f.memory, &passes, &g, &err) != BRAID_OK ||
        pass_run("fuse", g, f.memory, &passes, &g, &err) != BRAID_OK ||
        plan_new(g, f.memory, &options, &f.p, &err) != BRAID_OK)
        fail_msg("%s", err.message);
    assert_int_equal(f.p->n_host_nodes, 0);
    encode(f.p);
    return f;
}

static bool accepted(const plan *p) {
    braid_error err = {0};
    braid_status status = plan_verify(p, LANES, &err);
    if (status != BRAID_OK) assert_int_equal(status, BRAID_INTERNAL);
    return status == BRAID_OK;
}

static void accepts(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        fixture f = make(seed);
        braid_error err = {0};
        if (plan_verify(f.p, LANES, &err) != BRAID_OK) fail_msg("seed %d: %s", (int)seed, err.message);
        arena_free(f.memory);
    }
}

static uint8_t *row_of(const plan *p, int32_t d, int32_t k) {
    return p->rows + p->dispatches[d].rows_offset + (size_t)k * p->dispatches[d].row_bytes;
}

/* Every operand of every step of several copies: another stride between copies, another place. */
static void wrong_operands(void **state) {
    (void)state;
    int tried = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        fixture f = make(seed);
        for (int32_t d = 0; d < f.p->n_dispatches; d++)
            for (int32_t k = 0; k < f.p->dispatches[d].n_steps; k++) {
                const step *s = f.p->steps[f.p->order[f.p->dispatches[d].first_step + k]];
                for (int i = 0; s->copies > 1 && i < s->n_operands; i++) {
                    uint8_t *at = row_of(f.p, d, k) + s->operands[i].at;
                    operand saved, wrong;
                    memcpy(&saved, at, sizeof saved);
                    for (int how = 0; how < 4; how++) {
                        wrong = saved;
                        if (how == 0) wrong.copy_stride += 16;
                        if (how == 1) wrong.copy_stride = saved.copy_stride ? 0 : 16;
                        if (how == 2) wrong.base += saved.copy_stride ? saved.copy_stride : 16;
                        if (how == 3) wrong.lane_stride += 16;
                        memcpy(at, &wrong, sizeof wrong);
                        if (accepted(f.p))
                            fail_msg("seed %d, kernel %s, operand %d: fault %d is not noticed", (int)seed, s->kernel, i,
                                     how);
                        tried++;
                    }
                    memcpy(at, &saved, sizeof saved);
                }
            }
        assert_true(accepted(f.p));
        arena_free(f.memory);
    }
    assert_true(tried > 500);
}

/* Copies closer to each other than they are large, in the plan itself. */
static void narrow_storage(void **state) {
    (void)state;
    int tried = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        fixture f = make(seed);
        for (int32_t i = 0; i < f.p->n_storages; i++) {
            storage *s = &f.p->storages[i];
            bool written = (s->kind == STORAGE_ARENA && s->first <= s->last) || s->kind == STORAGE_OUTPUT;
            if (s->alias != i || s->copies == 1 || !written) continue;
            s->copy_stride -= 16;
            encode(f.p);
            if (accepted(f.p)) fail_msg("seed %d: copies of storage %d overlap, nothing noticed", (int)seed, (int)i);
            s->copy_stride += 16;
            tried++;
        }
        encode(f.p);
        assert_true(accepted(f.p));
        arena_free(f.memory);
    }
    assert_true(tried > 30);
}

/* Every barrier in turn is taken away, every dispatch says another number of copies. */
static void wrong_dispatches(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        fixture f = make(seed);
        plan *p = f.p;
        for (int32_t d = 0; d < p->n_dispatches; d++) {
            p->dispatches[d].copies++;
            assert_false(accepted(p));
            p->dispatches[d].copies--;
        }
        for (int32_t wave = 1; wave < p->n_waves; wave++) {
            for (int32_t d = 0; d < p->n_dispatches; d++) p->dispatches[d].wave -= p->dispatches[d].wave >= wave;
            for (int32_t i = 0; i < p->n_steps; i++) p->wave[i] -= p->wave[i] >= wave;
            if (accepted(p)) fail_msg("seed %d: no barrier before wave %d, nothing noticed", (int)seed, (int)wave);
            arena_free(f.memory);
            f = make(seed);
            p = f.p;
        }
        arena_free(f.memory);
    }
}

static uint64_t outputs_of(const graph *g, arena *memory) {
    uint64_t *each;
    braid_error err = {0};
    if (pass_meaning(g, memory, &each, &err) != BRAID_OK) fail_msg("%s", err.message);
    return hash_bytes(0, each, (size_t)g->n_outputs * sizeof *each);
}

/* Random graphs have repeated parts by chance: whatever is rolled, also where it does not pay, unrolls to what it was
   and is planned right. */
static void random_graphs(void **state) {
    (void)state;
    int rolled = 0;
    for (uint64_t seed = 1; seed <= 120; seed++) {
        arena *memory = arena_new();
        braid_error err = {0};
        pass_options passes = {0};
        plan_options options = {.device = &device, .lanes = LANES, .shuffle = seed % 2, .redzone = seed % 3 == 0};
        graph *g = plan_graph_make(memory, seed, 50 + (int)(seed * 37 % 451)), *many, *back;
        plan *p = NULL;
        if (pass_run("reroll_any", g, memory, &passes, &many, &err) != BRAID_OK ||
            pass_unroll(many, memory, NULL, &back, &err) != BRAID_OK || graph_verify(back, &err) != BRAID_OK)
            fail_msg("seed %d: %s", (int)seed, err.message);
        uint64_t before = outputs_of(g, memory);
        assert_true(before == outputs_of(many, memory) && before == outputs_of(back, memory));
        for (int32_t i = 0; i < many->n_nodes; i++) rolled += node_copies(many->nodes[i]) > 1;
        if (pass_run("fuse", many, memory, &passes, &many, &err) != BRAID_OK ||
            plan_new(many, memory, &options, &p, &err) != BRAID_OK)
            fail_msg("seed %d: %s", (int)seed, err.message);
        if (!p->n_host_nodes) {
            encode(p);
            if (plan_verify(p, LANES, &err) != BRAID_OK) fail_msg("seed %d: %s", (int)seed, err.message);
        }
        arena_free(memory);
    }
    assert_true(rolled > 500);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(accepts), cmocka_unit_test(wrong_operands),
                                       cmocka_unit_test(narrow_storage), cmocka_unit_test(wrong_dispatches),
                                       cmocka_unit_test(random_graphs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
