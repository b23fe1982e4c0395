/*
 * api_lanes_overlap.c: rounds that overlap give bit for bit what one run of all lanes gives, whatever the rounds' sizes
 * and however the host reaches the device's memory; after a failure with a round under way the next run is right.
 */
#include "ops_gpu.h"

#include "api/session.h"

enum { LANES = 23, ROWS = 12, COLUMNS = 16, ALL = ROWS * COLUMNS };

/* y has a's shape and type. */
static const char *const source = "graph t(a: float32[12,16], b: float32[16,16], i: int64[4]) {\n"
                                  "  r = Relu(b)\n"
                                  "  m = MatMul(a, r)\n"
                                  "  g = Gather(m, i) {axis = 0}\n"
                                  "  y = Softmax(m) {axis = -1}\n"
                                  "} -> y, g\n";

static const char *const host_step = "graph t(a: float32[12,16], b: float32[16,16], i: int64[4]) {\n"
                                     "  m = MatMul(a, b)\n"
                                     "  g = Gather(m, i) {axis = 0}\n"
                                     "  q = MatMul(b, b)\n"
                                     "  d = Det(q)\n"
                                     "  y = Add(m, d)\n"
                                     "} -> y, g\n";

/* How the host reaches inputs and outputs. */
enum { VISIBLE, STAGED, STAGED_OUT, MODES };

/* i is the same for all lanes. */
static const char *const common = "graph t(a: float32[12,16], b: float32[16,16], i: int64[4]) {\n"
                                  "  g = Gather(b, i) {axis = 0}\n"
                                  "  m = MatMul(a, b)\n"
                                  "  y = Softmax(m) {axis = -1}\n"
                                  "} -> y, g\n";

typedef struct problem {
    braid_model *model;
    braid_session *session;
    float a[(LANES + 1) * ALL], b[16 * 16];
    int64_t i[LANES * 4];
    braid_tensor in[3], expected[2];
} problem;

static void must_run(problem *p, uint32_t lanes, braid_tensor out[2]) {
    braid_error err = {0};
    if (braid_session_run(p->session, lanes, p->in, 3, out, 2, &err) != BRAID_OK) fail_msg("%s", err.message);
}

static void session_new(problem *p, braid_session_options o, int mode) {
    braid_error err = {0};
    braid_device *device = ops_device(false);
    o.size = sizeof o;
    o.lanes_max = LANES;
    o.verify = true;
    braid_session_free(p->session);
    if (braid_session_create(&device, 1, p->model, &o, &p->session, &err) != BRAID_OK) fail_msg("%s", err.message);
    p->session->test.staged = mode == STAGED;
    p->session->test.staged_out = mode == STAGED_OUT;
}

static void problem_new(problem *p, const char *graph_text) {
    braid_error err = {0};
    *p = (problem){.model = ops_model(graph_text, &err)};
    if (!p->model) fail_msg("%s", err.message);
    for (int k = 0; k < (LANES + 1) * ALL; k++) p->a[k] = (float)(k * 7 % 31) / 8 - 0.5f;
    for (int k = 0; k < 16 * 16; k++) p->b[k] = (float)(k * k % 17) / 32;
    for (int k = 0; k < LANES * 4; k++) p->i[k] = k % ROWS;
    p->in[0] = (braid_tensor){.name = "a", .type = BRAID_FLOAT32, .rank = 2, .dims = {ROWS, COLUMNS},
                             .data = p->a, .bytes = sizeof p->a};
    p->in[1] = (braid_tensor){.name = "b", .type = BRAID_FLOAT32, .rank = 2, .dims = {16, 16},
                             .data = p->b, .bytes = sizeof p->b, .flags = BRAID_TENSOR_SHARED};
    p->in[2] = (braid_tensor){.name = "i", .type = BRAID_INT64, .rank = 1, .dims = {4}, .data = p->i,
                             .bytes = sizeof p->i, .flags = graph_text == common ? BRAID_TENSOR_SHARED : 0};
    session_new(p, (braid_session_options){0}, VISIBLE);
    must_run(p, LANES, p->expected);
}

static void problem_free(problem *p) {
    for (int k = 0; k < 2; k++) braid_tensor_free(&p->expected[k]);
    braid_session_free(p->session);
    braid_model_free(p->model);
}

/* All that the one segment takes, and its twin if it has one. */
static uint64_t taken(const problem *p) {
    const stage *st = session_stage(p->session);
    const segment *seg = &st->segments[0];
    uint64_t bytes = seg->p->arena_bytes * seg->bucket + seg->p->const_bytes + seg->p->rows_bytes + seg->io.bytes;
    return st->twin ? bytes + st->twin->io.bytes : bytes;
}

static void compare(const problem *p, const braid_tensor out[2], uint32_t lanes, uint64_t bad) {
    for (int k = 0; k < 2; k++)
        for (uint32_t lane = 0; lane < lanes; lane++) {
            size_t bytes = p->expected[k].lane_stride;
            const uint8_t *found = (const uint8_t *)out[k].data + lane * bytes;
            assert_int_equal(braid_session_lane_status(p->session, lane), bad >> lane & 1 ? BRAID_INDEX : BRAID_OK);
            for (size_t at = 0; bad >> lane & 1 && at < bytes; at++) assert_int_equal(found[at], 0);
            if (!(bad >> lane & 1)) assert_memory_equal(found, (uint8_t *)p->expected[k].data + lane * bytes, bytes);
        }
}

static void run(problem *p, uint32_t lanes, uint64_t bad) {
    braid_error err = {0};
    braid_tensor out[2] = {{0}};
    if (braid_session_run(p->session, lanes, p->in, 3, out, 2, &err) != (bad ? BRAID_INDEX : BRAID_OK))
        fail_msg("%s", err.message);
    compare(p, out, lanes, bad);
    for (int k = 0; k < 2; k++) braid_tensor_free(&out[k]);
}

static uint32_t lanes_of(const segment *seg) { return ((const run_block *)seg->run.mapped)->lanes; }

static void check_mode(const segment *seg, int mode) {
    assert_true(mode != STAGED || (!seg->write_io && !seg->read_io && seg->upload.bytes));
    assert_true(mode != STAGED_OUT || (!seg->read_io && seg->download.bytes));
}

/* The last two rounds were the segment's and its twin's by turns. */
static void check_turns(const problem *p, uint32_t lanes, int mode) {
    const stage *st = session_stage(p->session);
    if (st->bucket > 1) check_mode(&st->segments[0], mode); /* the plan of one lane is that of creation */
    check_mode(st->twin, mode);
    uint32_t rounds = (lanes + st->bucket - 1) / st->bucket, last = lanes - (rounds - 1) * st->bucket;
    if (rounds < 2) return;
    assert_int_equal(lanes_of(rounds % 2 ? &st->segments[0] : st->twin), last);
    assert_int_equal(lanes_of(rounds % 2 ? st->twin : &st->segments[0]), st->bucket);
}

static void expect_text(const problem *p, const char *wanted) {
    char *found = NULL;
    assert_int_equal(braid_session_describe(p->session, &found, NULL), BRAID_OK);
    if (!strstr(found, wanted)) fail_msg("no '%s' in\n%s", wanted, found);
    braid_text_free(found);
}

/* Of each budget's rounds all counts of lanes, more and fewer by turns; what is taken stays within the budget. */
static void sizes(void **state) {
    (void)state;
    problem p;
    problem_new(&p, source);
    uint64_t all = taken(&p);
    uint32_t distinct = 0, before = 0;
    for (uint64_t part = 2; part <= 10; part++) {
        int mode = (int)(part % MODES);
        session_new(&p, (braid_session_options){.memory_budget = all * part / 12}, mode);
        run(&p, LANES, 0);
        const stage *st = session_stage(p.session);
        assert_non_null(st->twin);
        assert_true(st->bucket < LANES && taken(&p) <= all * part / 12);
        check_turns(&p, LANES, mode);
        expect_text(&p, "MiB budget; rounds overlap: one is packed while one is computed\n");
        distinct += st->bucket != before;
        before = st->bucket;
        for (uint32_t k = 0, lanes; k < LANES; k++) {
            run(&p, lanes = k * 9 % LANES + 1, 0);
            if (lanes > 8 && session_stage(p.session)->twin) check_turns(&p, lanes, mode);
        }
    }
    assert_true(distinct > 4);
    problem_free(&p);
}

/* Outputs may lie where inputs do, or a lane further: nothing is written before all rounds are over. */
static void in_place(void **state) {
    (void)state;
    for (int k = 0; k < 2 * MODES; k++) {
        problem p;
        int shift = k % 2;
        problem_new(&p, source);
        session_new(&p, (braid_session_options){.memory_budget = taken(&p) / 3}, k / 2);
        braid_tensor out[2] = {{.name = "y", .data = p.a + shift * ALL, .bytes = LANES * ALL * sizeof(float)},
                               {.name = "g"}};
        must_run(&p, LANES, out);
        check_turns(&p, LANES, k / 2);
        compare(&p, out, LANES, 0);
        braid_tensor_free(&out[1]);
        problem_free(&p);
    }
}

/* Each lane alone, then a whole round and the last lane. */
static void some_lanes_fail(problem *p, uint32_t bucket) {
    for (uint32_t lane = 0; lane < LANES; lane++) {
        p->i[lane * 4 + 2] = ROWS;
        run(p, LANES, (uint64_t)1 << lane);
        p->i[lane * 4 + 2] = (lane * 4 + 2) % ROWS;
        if (lane % 5 == 0) run(p, lane + 1, 0);
    }
    uint64_t bad = (((uint64_t)1 << bucket) - 1) << bucket | (uint64_t)1 << (LANES - 1);
    for (uint32_t lane = 0; lane < LANES; lane++)
        if (bad >> lane & 1) p->i[lane * 4] = -ROWS - 1;
    run(p, LANES, bad);
}

static void all_lanes_fail(problem *p) {
    braid_error err = {0};
    braid_tensor out[2] = {{0}};
    for (int k = 0; k < LANES * 4; k++) p->i[k] = ROWS;
    assert_int_equal(braid_session_run(p->session, LANES, p->in, 3, out, 2, &err), BRAID_INDEX);
    if (strncmp(err.message, "lane 0: ", 8) != 0 || !strstr(err.message, "23 of 23 lanes failed"))
        fail_msg("%s", err.message);
    for (int k = 0; k < LANES * 4; k++) p->i[k] = k % ROWS;
    run(p, LANES, 0);
}

static void failures(void **state) {
    (void)state;
    for (int mode = 0; mode < MODES; mode++) {
        problem p;
        problem_new(&p, source);
        session_new(&p, (braid_session_options){.memory_budget = taken(&p) / 3}, mode);
        run(&p, LANES, 0);
        uint32_t bucket = session_stage(p.session)->bucket;
        assert_in_range(bucket, 2, LANES / 3);
        some_lanes_fail(&p, bucket);
        all_lanes_fail(&p);
        check_turns(&p, LANES, mode);
        problem_free(&p);
    }
}

/* What is done once for all lanes ends the run in its first round, with the second under way. */
static void common_failure(void **state) {
    (void)state;
    for (int mode = 0; mode < MODES; mode++) {
        problem p;
        braid_error err = {0};
        braid_tensor out[2] = {{0}};
        problem_new(&p, common);
        session_new(&p, (braid_session_options){.memory_budget = taken(&p) / 3}, mode);
        for (int k = 0; k < 3; k++) {
            p.i[1] = ROWS + 4 + k;
            braid_status status = braid_session_run(p.session, LANES, p.in, 3, out, 2, &err);
            assert_int_equal(status, BRAID_INDEX);
            assert_non_null(session_stage(p.session)->twin);
            assert_string_equal(err.message, "node '' (Gather-0): an index is out of range");
            assert_null(out[0].data);
            for (size_t lane = 0; lane < LANES; lane++)
                assert_int_not_equal(braid_session_lane_status(p.session, lane), BRAID_OK);
            p.i[1] = 1;
            run(&p, LANES - (uint32_t)k, 0);
            check_turns(&p, LANES - (uint32_t)k, mode);
        }
        problem_free(&p);
    }
}

/* The n-th allocation of a run fails, whatever is under way then; the next run is right. */
static void allocations(void **state) {
    (void)state;
    for (int warm = 0; warm < 2; warm++) {
        problem p;
        problem_new(&p, source);
        session_new(&p, (braid_session_options){.memory_budget = taken(&p) / 4}, warm ? VISIBLE : STAGED);
        if (warm) run(&p, LANES, 0);
        for (uint64_t n = 1;; n += n > 300 ? 7 : 1) {
            braid_error err = {0};
            braid_tensor out[2] = {{0}};
            mem_fail_after(n, n % 2 == 0);
            braid_status status = braid_session_run(p.session, LANES, p.in, 3, out, 2, &err);
            mem_fail_after(0, false);
            for (int k = 0; k < 2; k++) braid_tensor_free(&out[k]);
            if (status == BRAID_OK) break;
            if (status != BRAID_HOST_MEMORY) fail_msg("%s", err.message);
            if (warm) run(&p, n % 3 ? LANES : 12, 0);
        }
        run(&p, LANES, 0);
        assert_non_null(session_stage(p.session)->twin);
        problem_free(&p);
    }
}

static void check_apart(problem *p, const char *why) {
    run(p, LANES, 0);
    assert_null(session_stage(p->session)->twin);
    expect_text(p, why);
    run(p, LANES - 2, 0);
}

/* Where they do not overlap the description says why. */
static void apart(void **state) {
    (void)state;
    problem p;
    problem_new(&p, source);
    uint64_t all = taken(&p);
    session_new(&p, (braid_session_options){.memory_budget = all / 3, .profile = true}, VISIBLE);
    check_apart(&p, "rounds do not overlap: each is timed by itself\n");
    session_new(&p, (braid_session_options){.memory_budget = all / 3}, VISIBLE);
    p.session->test.poison = true; /* has a twin, but runs in turn */
    run(&p, LANES, 0);
    for (uint64_t part = 100; part; part--) { /* room for 11 or 5 once, but not twice */
        session_new(&p, (braid_session_options){0}, VISIBLE);
        p.session->test.memory = all * part / 100;
        run(&p, LANES, 0);
        const stage *st = session_stage(p.session);
        if (st->limit == LIMIT_MEMORY && !st->twin) break;
    }
    check_apart(&p, "the device has no more memory; rounds do not overlap: no room for inputs and outputs twice\n");
    problem_free(&p);
    problem_new(&p, host_step);
    all = taken(&p);
    session_new(&p, (braid_session_options){.memory_budget = all / 3}, VISIBLE);
    check_apart(&p, "rounds do not overlap: there are host steps, or shapes that depend on data\n");
    problem_free(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sizes), cmocka_unit_test(in_place), cmocka_unit_test(failures),
                                       cmocka_unit_test(common_failure), cmocka_unit_test(allocations),
                                       cmocka_unit_test(apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
