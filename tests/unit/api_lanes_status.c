/*
 * api_lanes_status.c: a lane whose data the model cannot take fails alone: its neighbours' outputs are those of runs
 * alone, its own are zeros, and the session tells which is which.
 */
#include "ops_gpu.h"

enum { LANES = 5, ROWS = 9, PICKS = 3, COLUMNS = 4 };

/* The second host steps (Det) stand between the device's; the third's shapes depend on data: lane by lane. */
static const char *const graphs[] = {
    "graph t(a: float32[9,4], b: int64[3]) { c = Gather(a, b) {axis = 0} y = Neg(c) } -> y",
    "graph t(a: float32[9,4], b: int64[3]) {\n"
    "  c = Gather(a, b) {axis = 0}\n"
    "  s: int64[2] = constant {3, 3}\n"
    "  z: int64[2] = constant {0, 0}\n"
    "  d = Slice(c, z, s)\n"
    "  e = Det(d)\n"
    "  y = Mul(c, e)\n"
    "} -> y",
    "graph t(a: float32[9,4], b: int64[3]) {\n"
    "  n = NonZero(b)\n"
    "  p: int64[2] = constant {1, 0}\n"
    "  m = Transpose(n) {perm = [1, 0]}\n"
    "  i = GatherND(b, m)\n"
    "  y = Gather(a, i) {axis = 0}\n"
    "} -> y",
};

typedef struct problem {
    braid_model *model;
    braid_session *session;
    float a[ROWS * COLUMNS];
    int64_t b[LANES * PICKS];
    braid_tensor in[2];
} problem;

static void problem_new(problem *p, const char *source, bool host) {
    braid_error err = {0};
    p->model = ops_model(source, &err);
    if (!p->model) fail_msg("%s", err.message);
    for (int i = 0; i < ROWS * COLUMNS; i++) p->a[i] = (float)(i * i % 23 + 1);
    for (int i = 0; i < LANES * PICKS; i++) p->b[i] = i % (ROWS - 1) + 1;
    p->in[0] = (braid_tensor){.name = "a", .type = BRAID_FLOAT32, .rank = 2, .dims = {ROWS, COLUMNS}, .data = p->a,
                              .bytes = sizeof p->a, .flags = BRAID_TENSOR_SHARED};
    p->in[1] = (braid_tensor){
        .name = "b", .type = BRAID_INT64, .rank = 1, .dims = {PICKS}, .data = p->b, .bytes = sizeof p->b};
    braid_session_options o = {.size = sizeof o, .lanes_max = LANES, .verify = true};
    braid_device *device = ops_device(host);
    if (braid_session_create(&device, 1, p->model, &o, &p->session, &err) != BRAID_OK)
        fail_msg("%s\n%s", err.message, source);
}

static void problem_free(problem *p) {
    braid_session_free(p->session);
    braid_model_free(p->model);
}

/* Outputs of each lane alone. */
static void alone(problem *p, float *expected) {
    for (int lane = 0; lane < LANES; lane++) {
        braid_error err = {0};
        braid_tensor in[2] = {p->in[0], p->in[1]}, out = {0};
        in[1].data = p->b + lane * PICKS;
        if (braid_session_run(p->session, 1, in, 2, &out, 1, &err) != BRAID_OK) fail_msg("%s", err.message);
        assert_int_equal(out.bytes, PICKS * COLUMNS * sizeof(float));
        memcpy(expected + lane * PICKS * COLUMNS, out.data, out.bytes);
        braid_tensor_free(&out);
    }
}

static void check_lanes(const problem *p, const float *expected, const braid_tensor *out, unsigned bad, size_t stride) {
    const float zeros[PICKS * COLUMNS] = {0};
    for (unsigned lane = 0; lane < LANES; lane++) {
        bool failed = bad >> lane & 1;
        assert_int_equal(braid_session_lane_status(p->session, lane), failed ? BRAID_INDEX : BRAID_OK);
        assert_memory_equal((uint8_t *)out->data + lane * stride, failed ? zeros : expected + lane * PICKS * COLUMNS,
                            sizeof zeros);
    }
    assert_int_equal(braid_session_lane_status(p->session, LANES), BRAID_ARGUMENT);
}

static void set_bad(problem *p, unsigned bad, int64_t index) {
    for (unsigned lane = 0; lane < LANES; lane++)
        if (bad >> lane & 1) p->b[lane * PICKS + 1] = index;
}

static void check(const char *source, bool host, unsigned bad) {
    problem p;
    braid_error err = {0};
    braid_tensor out = {0};
    float expected[LANES * PICKS * COLUMNS], room[LANES * 20];
    char first[32];
    problem_new(&p, source, host);
    alone(&p, expected);
    int64_t good[LANES * PICKS];
    memcpy(good, p.b, sizeof good);
    set_bad(&p, bad, ROWS);
    assert_int_equal(braid_session_run(p.session, LANES, p.in, 2, &out, 1, &err), BRAID_INDEX);
    snprintf(first, sizeof first, "lane %d: node '", __builtin_ctz(bad));
    if (strncmp(err.message, first, strlen(first)) != 0 || !strstr(err.message, "Gather")) fail_msg("%s", err.message);
    assert_int_equal(strstr(err.message, "2 of 5 lanes failed") != NULL, __builtin_popcount(bad) == 2);
    assert_true(out.flags & BRAID_TENSOR_OWNED);
    check_lanes(&p, expected, &out, bad, PICKS * COLUMNS * sizeof(float));

    memset(room, 0xEE, sizeof room); /* into the caller's buffer, with a stride */
    braid_tensor given = {.data = room, .bytes = sizeof room, .lane_stride = 20 * sizeof *room};
    assert_int_equal(braid_session_run(p.session, LANES, p.in, 2, &given, 1, &err), BRAID_INDEX);
    check_lanes(&p, expected, &given, bad, given.lane_stride);

    memcpy(p.b, good, sizeof good); /* and all is well in the next run */
    assert_int_equal(braid_session_run(p.session, LANES, p.in, 2, &out, 1, &err), BRAID_OK);
    check_lanes(&p, expected, &out, 0, PICKS * COLUMNS * sizeof(float));
    braid_tensor_free(&out);
    problem_free(&p);
}

static void one_lane_fails(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(graphs); i++)
        for (int host = 0; host < 2; host++) {
            check(graphs[i], host, 1u << 2);
            check(graphs[i], host, 1u << 0);
            check(graphs[i], host, 1u << 4 | 1u << 1);
        }
}

/* Where no lane is left, or the fault is in what all lanes share, nothing is delivered. */
static void all_lanes_fail(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(graphs); i++) {
        problem p;
        braid_error err = {0};
        braid_tensor out = {0};
        problem_new(&p, graphs[i], false);
        set_bad(&p, 31, -ROWS - 1);
        assert_int_equal(braid_session_run(p.session, LANES, p.in, 2, &out, 1, &err), BRAID_INDEX);
        assert_null(out.data);
        for (unsigned lane = 0; lane < LANES; lane++)
            assert_int_equal(braid_session_lane_status(p.session, lane), BRAID_INDEX);
        p.in[1].flags = BRAID_TENSOR_SHARED;
        assert_int_equal(braid_session_run(p.session, LANES, p.in, 2, &out, 1, &err), BRAID_INDEX);
        assert_null(out.data);
        assert_int_equal(braid_session_run(p.session, 1, p.in, 2, &out, 1, &err), BRAID_INDEX);
        assert_null(out.data);
        assert_int_equal(braid_session_lane_status(p.session, 0), BRAID_INDEX);
        assert_int_equal(braid_session_lane_status(p.session, 1), BRAID_ARGUMENT);
        problem_free(&p);
    }
}

/* Errors of the whole run are every lane's. */
static void whole_run(void **state) {
    (void)state;
    problem p;
    braid_error err = {0};
    float room[8];
    problem_new(&p, graphs[0], false);
    assert_int_equal(braid_session_lane_status(p.session, 0), BRAID_ARGUMENT); /* nothing has run */
    assert_int_equal(braid_session_lane_status(NULL, 0), BRAID_ARGUMENT);
    braid_tensor out = {.data = room, .bytes = sizeof room};
    assert_int_equal(braid_session_run(p.session, LANES, p.in, 2, &out, 1, &err), BRAID_SHAPE);
    for (unsigned lane = 0; lane < LANES; lane++)
        assert_int_equal(braid_session_lane_status(p.session, lane), BRAID_SHAPE);
    problem_free(&p);
}

/* Every allocation of a run with a failing lane fails once. */
static void allocations(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(graphs); i++) {
        problem p;
        float expected[LANES * PICKS * COLUMNS];
        problem_new(&p, graphs[i], false);
        alone(&p, expected);
        set_bad(&p, 1u << 3, ROWS);
        for (uint64_t n = 1;; n++) {
            braid_error err = {0};
            braid_tensor out = {0};
            mem_fail_after(n, n % 2 == 0);
            braid_status status = braid_session_run(p.session, LANES, p.in, 2, &out, 1, &err);
            mem_fail_after(0, false);
            if (status == BRAID_INDEX) {
                check_lanes(&p, expected, &out, 1u << 3, PICKS * COLUMNS * sizeof(float));
                braid_tensor_free(&out);
                break;
            }
            if (status != BRAID_HOST_MEMORY) fail_msg("%s", err.message);
            assert_null(out.data);
        }
        problem_free(&p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_lane_fails), cmocka_unit_test(all_lanes_fail),
                                       cmocka_unit_test(whole_run), cmocka_unit_test(allocations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
