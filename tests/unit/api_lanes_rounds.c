/*
 * api_lanes_rounds.c: more lanes than the memory budget, or the device, has room for run in rounds of fewer, bit for
 * bit the same; the description says so, and how each step goes about its lanes. Rounds of a model without host steps
 * overlap.
 */
#include "ops_gpu.h"

#include "api/session.h"

enum { LANES = 23, ROWS = 40, COLUMNS = 64, ALL = ROWS * COLUMNS };

/* Two to a side of a host step (Det); b is shared in most tests. */
static const char *const in_parts = "graph t(a: float32[40,64], b: float32[64,64], i: int64[4]) {\n"
                                    "  r = Relu(b)\n"
                                    "  m = MatMul(a, r)\n"
                                    "  g = Gather(m, i) {axis = 0}\n"
                                    "  z: int64[2] = constant {0, 0}\n"
                                    "  f: int64[2] = constant {4, 4}\n"
                                    "  c = Slice(g, z, f)\n"
                                    "  d = Det(c)\n"
                                    "  s = Softmax(m) {axis = -1}\n"
                                    "  y = Add(s, d)\n"
                                    "} -> y, g\n";
static const char *const whole = "graph t(a: float32[40,64], b: float32[64,64], i: int64[4]) {\n"
                                 "  r = Relu(b)\n"
                                 "  m = MatMul(a, r)\n"
                                 "  g = Gather(m, i) {axis = 0}\n"
                                 "  y = Softmax(m) {axis = -1}\n"
                                 "} -> y, g\n";
static const char *source; /* of the tests that run now */

typedef struct problem {
    braid_model *model;
    braid_session *session;
    float *a, b[64 * 64];
    int64_t i[LANES * 4];
    void *each[LANES];
    braid_tensor in[3], expected[2];
} problem;

static void session_new(problem *p, uint64_t budget) {
    braid_error err = {0};
    braid_session_options o = {.size = sizeof o, .lanes_max = LANES, .memory_budget = budget, .verify = true};
    braid_device *device = ops_device(false);
    braid_session_free(p->session);
    if (braid_session_create(&device, 1, p->model, &o, &p->session, &err) != BRAID_OK) fail_msg("%s", err.message);
}

static void problem_new(problem *p) {
    braid_error err = {0};
    *p = (problem){.model = ops_model(source, &err), .a = malloc(LANES * ALL * sizeof(float))};
    if (!p->model) fail_msg("%s", err.message);
    for (int k = 0; k < LANES * ALL; k++) p->a[k] = (float)(k % 13) / 8 - 0.5f;
    for (int k = 0; k < 64 * 64; k++) p->b[k] = (float)(k * k % 17) / 32;
    for (int k = 0; k < LANES * 4; k++) p->i[k] = k % ROWS;
    for (int k = 0; k < LANES; k++) p->each[k] = p->a + k * ALL;
    p->in[0] = (braid_tensor){.name = "a", .type = BRAID_FLOAT32, .rank = 2, .dims = {ROWS, COLUMNS},
                             .data = p->a, .bytes = LANES * ALL * sizeof(float)};
    p->in[1] = (braid_tensor){.name = "b", .type = BRAID_FLOAT32, .rank = 2, .dims = {64, 64},
                             .data = p->b, .bytes = sizeof p->b, .flags = BRAID_TENSOR_SHARED};
    p->in[2] = (braid_tensor){.name = "i", .type = BRAID_INT64, .rank = 1, .dims = {4},
                             .data = p->i, .bytes = sizeof p->i};
    session_new(p, 0);
    if (braid_session_run(p->session, LANES, p->in, 3, p->expected, 2, &err) != BRAID_OK) fail_msg("%s", err.message);
}

static void problem_free(problem *p) {
    for (int k = 0; k < 2; k++) braid_tensor_free(&p->expected[k]);
    braid_session_free(p->session);
    braid_model_free(p->model);
    free(p->a);
}

/* Bytes of the larger segment with room for so many lanes. */
static uint64_t bytes_for(const problem *p) {
    uint64_t most = 0;
    const stage *st = session_stage(p->session);
    for (int32_t i = 0; i < st->n_segments; i++) {
        const segment *seg = &st->segments[i];
        if (seg->on_host) continue;
        uint64_t now = seg->p->arena_bytes * seg->bucket + seg->p->const_bytes + seg->p->rows_bytes + seg->io.bytes;
        if (now > most) most = now;
    }
    return most;
}

static void compare(const problem *p, const braid_tensor out[2], uint64_t bad) {
    for (int k = 0; k < 2; k++)
        for (size_t lane = 0; lane < LANES; lane++) {
            const uint8_t *found = (const uint8_t *)out[k].data + lane * out[k].lane_stride;
            size_t bytes = out[k].lane_stride;
            assert_int_equal(braid_session_lane_status(p->session, lane), bad >> lane & 1 ? BRAID_INDEX : BRAID_OK);
            for (size_t at = 0; bad >> lane & 1 && at < bytes; at++) assert_int_equal(found[at], 0);
            if (!(bad >> lane & 1)) assert_memory_equal(found, (uint8_t *)p->expected[k].data + lane * bytes, bytes);
        }
}

static uint32_t run(problem *p, braid_status status, uint64_t bad) {
    braid_error err = {0};
    braid_tensor out[2] = {{0}};
    if (braid_session_run(p->session, LANES, p->in, 3, out, 2, &err) != status) fail_msg("%s", err.message);
    compare(p, out, bad);
    for (int k = 0; k < 2; k++) braid_tensor_free(&out[k]);
    return session_stage(p->session)->bucket;
}

static void expect_text(const problem *p, const char *wanted) {
    char *found = NULL;
    assert_int_equal(braid_session_describe(p->session, &found, NULL), BRAID_OK);
    if (!strstr(found, wanted)) fail_msg("no '%s' in\n%s", wanted, found);
    braid_text_free(found);
}

/* The larger the budget, the more lanes at once; what fits is used. */
static void budgets(void **state) {
    (void)state;
    problem p;
    problem_new(&p);
    expect_text(&p, "23 lanes at once, room for 23\n");
    uint64_t all = bytes_for(&p);
    uint32_t before = 0, distinct = 0, overlapping = 0;
    for (uint64_t part = 3; part <= 24; part += 3) {
        session_new(&p, all * part / 24);
        uint32_t at_once = run(&p, BRAID_OK, 0);
        assert_true(at_once >= before && at_once <= LANES);
        /* overlapping rounds have inputs and outputs twice */
        assert_true(at_once == LANES || (at_once + 2) * 24 * (source == whole ? 2 : 1) > LANES * (part - 2));
        distinct += at_once != before;
        before = at_once;
        assert_int_equal(run(&p, BRAID_OK, 0), at_once); /* found again */
        char wanted[64];
        snprintf(wanted, sizeof wanted, "23 lanes in %u rounds of %u: %.1f MiB budget", (LANES + at_once - 1) / at_once,
                 at_once, (double)(all * part / 24) / (1 << 20));
        expect_text(&p, at_once == LANES ? "23 lanes at once" : wanted);
        overlapping += session_stage(p.session)->twin != NULL;
        if (at_once < LANES) expect_text(&p, session_stage(p.session)->twin ? "; rounds overlap" : "; rounds do not");
    }
    assert_int_equal(before, LANES);
    assert_true(distinct > 3);
    assert_true(source == whole ? overlapping > 4 : overlapping == 0);
    problem_free(&p);
}

/* Bytes of the plan of one lane. */
static uint64_t bytes_of_one(problem *p) {
    braid_error err = {0};
    braid_tensor out[2] = {{0}};
    assert_int_equal(braid_session_run(p->session, 1, p->in, 3, out, 2, &err), BRAID_OK);
    for (int k = 0; k < 2; k++) braid_tensor_free(&out[k]);
    return bytes_for(p);
}

static void one_at_a_time(void **state) {
    (void)state;
    problem p;
    braid_error err = {0};
    problem_new(&p);
    uint64_t one = bytes_of_one(&p);
    session_new(&p, one);
    assert_int_equal(run(&p, BRAID_OK, 0), 1);
    p.in[0].flags = BRAID_TENSOR_LANES;
    p.in[0].data = p.each;
    assert_int_equal(run(&p, BRAID_OK, 0), 1);
    braid_session_free(p.session);
    p.session = NULL;
    braid_session_options o = {.size = sizeof o, .lanes_max = LANES, .memory_budget = one - 1};
    braid_device *device = ops_device(false);
    assert_int_equal(braid_session_create(&device, 1, p.model, &o, &p.session, &err), BRAID_DEVICE_MEMORY);
    problem_free(&p);
}

/* The device has less than the budget says: halves, until it fits. */
static void no_memory(void **state) {
    (void)state;
    problem p;
    braid_error err = {0};
    braid_tensor out[2] = {{0}};
    problem_new(&p);
    uint64_t all = bytes_for(&p);
    session_new(&p, 0);
    p.session->test.memory = all / 3;
    assert_int_equal(run(&p, BRAID_OK, 0), 5); /* 23, 11, 5 */
    expect_text(&p, "23 lanes in 5 rounds of 5: the device has no more memory");
    session_new(&p, 0);
    p.session->test.memory = 1;
    assert_int_equal(braid_session_run(p.session, LANES, p.in, 3, out, 2, &err), BRAID_OK); /* the plan of creation */
    assert_int_equal(session_stage(p.session)->bucket, 1);
    for (int k = 0; k < 2; k++) braid_tensor_free(&out[k]);
    problem_free(&p);
}

/* Failing lanes: some of a round, a whole round, all. */
static void failures(void **state) {
    (void)state;
    problem p;
    braid_error err = {0};
    braid_tensor out[2] = {{0}};
    problem_new(&p);
    uint64_t all = bytes_for(&p), one = bytes_of_one(&p);
    for (unsigned at_once = 1; at_once < 8; at_once += 3) {
        session_new(&p, one + (all - one) * (at_once - 1) / (LANES - 1));
        for (int k = 4; k < 8; k++) p.i[k * 4] = ROWS + k; /* one round of 4 */
        p.i[17 * 4 + 1] = -ROWS - 1;
        uint32_t least = source == whole ? 1 : at_once - (at_once > 1);
        assert_in_range(run(&p, BRAID_INDEX, 0xf0u | 1u << 17), least, at_once);
        for (int k = 0; k < LANES * 4; k++) p.i[k] = ROWS;
        assert_int_equal(braid_session_run(p.session, LANES, p.in, 3, out, 2, &err), BRAID_INDEX);
        assert_null(out[0].data);
        if (strncmp(err.message, "lane 0: ", 8) != 0 || !strstr(err.message, "23 of 23 lanes failed"))
            fail_msg("%s", err.message);
        for (int k = 0; k < LANES * 4; k++) p.i[k] = k % ROWS;
        (void)run(&p, BRAID_OK, 0);
    }
    problem_free(&p);
}

static void allocations(void **state) {
    (void)state;
    problem p;
    problem_new(&p);
    uint64_t all = bytes_for(&p);
    session_new(&p, all / 3);
    for (uint64_t n = 1;; n += n > 300 ? 7 : 1) {
        braid_error err = {0};
        braid_tensor out[2] = {{0}};
        mem_fail_after(n, n % 2 == 0);
        braid_status status = braid_session_run(p.session, LANES, p.in, 3, out, 2, &err);
        mem_fail_after(0, false);
        if (status == BRAID_OK) {
            compare(&p, out, 0);
            for (int k = 0; k < 2; k++) braid_tensor_free(&out[k]);
            break;
        }
        if (status != BRAID_HOST_MEMORY) fail_msg("%s", err.message);
        assert_null(out[0].data);
    }
    problem_free(&p);
}

/* Planned without running; each step says how it goes about its lanes. */
static void described(void **state) {
    (void)state;
    problem p;
    braid_error err = {0};
    problem_new(&p);
    session_new(&p, 0);
    for (int k = 0; k < 3; k++) p.in[k].data = NULL;
    assert_int_equal(braid_session_plan(p.session, LANES, p.in, 3, &err), BRAID_OK);
    expect_text(&p, "23 lanes at once");
    expect_text(&p, "Relu '': once, nothing that differs between lanes reaches it");
    expect_text(&p, "Softmax '': lane grid, its kernel does not fold\n");
    expect_text(&p, "lane by lane\n");
    p.in[0].flags = p.in[2].flags = BRAID_TENSOR_SHARED;
    assert_int_equal(braid_session_plan(p.session, LANES, p.in, 3, &err), BRAID_OK);
    expect_text(&p, "on this device: once, nothing that differs between lanes reaches it");
    assert_int_equal(braid_session_plan(p.session, LANES + 1, p.in, 3, &err), BRAID_ARGUMENT);
    assert_int_equal(braid_session_plan(p.session, LANES, p.in, 2, &err), BRAID_ARGUMENT);
    assert_int_equal(braid_session_plan(NULL, 1, p.in, 3, &err), BRAID_ARGUMENT);
    p.in[0].dims[0] = 3;
    assert_int_equal(braid_session_plan(p.session, LANES, p.in, 3, &err), BRAID_SHAPE);
    problem_free(&p);
}

static int without_host_steps(void **state) {
    (void)state;
    source = whole;
    return 0;
}

static int with_host_steps(void **state) {
    (void)state;
    source = in_parts;
    return 0;
}

int main(void) {
    const struct CMUnitTest both[] = {cmocka_unit_test(budgets), cmocka_unit_test(one_at_a_time),
                                      cmocka_unit_test(no_memory), cmocka_unit_test(failures),
                                      cmocka_unit_test(allocations)};
    const struct CMUnitTest steps[] = {cmocka_unit_test(described)};
    return cmocka_run_group_tests_name("overlapping", both, without_host_steps, NULL) +
           cmocka_run_group_tests_name("in turn", both, with_host_steps, NULL) +
           cmocka_run_group_tests_name("described", steps, with_host_steps, NULL);
}
