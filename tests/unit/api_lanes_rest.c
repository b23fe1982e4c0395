/*
 * api_lanes_rest.c: where shapes depend on data, lanes share what can be planned before, and what follows too when the
 * values that settle it are the same in all lanes; else what follows runs lane by lane.
 */
#include "ops_gpu.h"

#include "api/session.h"

enum { LANES = 6, MOST = 12 };

/* m is planned at once; what follows depends on s. In the second the output's shape does not. */
static const char *const reshaped = "graph t(a: float32[3,4], s: int64[2]) {\n"
                                    "  m = Exp(a) r = Reshape(m, s) y = Softmax(r) {axis = -1}\n"
                                    "} -> y";
static const char *const summed =
    "graph t(a: float32[3,4], s: int64[2]) {\n"
    "  m = Exp(a) r = Reshape(m, s) p = Softmax(r) {axis = -1} y = ReduceMax(p) {keepdims = 0}\n"
    "} -> y";
static const char *const counted =
    "graph t(a: float32[3,4], s: int64[2]) {\n"
    "  m = Relu(a) n = NonZero(m) k = Shape(n) f = Cast(n) {to = 1} y = ReduceSum(f) {keepdims = 0}\n"
    "  i = Identity(s)\n"
    "} -> y, k, i";

typedef struct problem {
    braid_model *model;
    braid_session *session;
    float a[LANES * MOST];
    int64_t s[LANES * 2];
    braid_tensor in[2];
    size_t n_out;
} problem;

static void problem_new(problem *p, const char *source, bool host) {
    braid_error err = {0};
    *p = (problem){.model = ops_model(source, &err)};
    if (!p->model) fail_msg("%s", err.message);
    p->n_out = (size_t)p->model->m->g->n_outputs;
    for (int k = 0; k < LANES * MOST; k++) p->a[k] = (float)(k * k % 11) / 4 - 1;
    for (int k = 0; k < LANES; k++) p->s[k * 2] = 2, p->s[k * 2 + 1] = 6;
    p->in[0] = (braid_tensor){
        .name = "a", .type = BRAID_FLOAT32, .rank = 2, .dims = {3, 4}, .data = p->a, .bytes = sizeof p->a};
    p->in[1] =
        (braid_tensor){.name = "s", .type = BRAID_INT64, .rank = 1, .dims = {2}, .data = p->s, .bytes = sizeof p->s};
    braid_session_options o = {.size = sizeof o, .lanes_max = LANES, .verify = true};
    braid_device *device = ops_device(host);
    if (braid_session_create(&device, 1, p->model, &o, &p->session, &err) != BRAID_OK) fail_msg("%s", err.message);
}

static void problem_free(problem *p) {
    braid_session_free(p->session);
    braid_model_free(p->model);
}

static void free_all(braid_tensor out[3]) {
    for (int k = 0; k < 3; k++) braid_tensor_free(&out[k]);
}

/* Lanes in order are what they are alone; the others are zeros. Tells how many lanes the rest's plan has room for. */
static uint32_t check(problem *p, unsigned bad, braid_status status) {
    braid_error err = {0};
    braid_tensor out[3] = {{0}};
    if (braid_session_run(p->session, LANES, p->in, 2, out, p->n_out, &err) != status) fail_msg("%s", err.message);
    const stage *st = session_stage(p->session);
    uint32_t room = st->rest_stages.first ? st->rest_stages.first->bucket : st->bucket;
    assert_int_equal(st->bucket, LANES);
    for (unsigned lane = 0; lane < LANES; lane++)
        assert_int_equal(braid_session_lane_status(p->session, lane), bad >> lane & 1 ? status : BRAID_OK);
    for (size_t lane = 0; lane < LANES; lane++) {
        braid_tensor in[2] = {p->in[0], p->in[1]}, alone[3] = {{0}};
        in[0].data = p->a + lane * MOST;
        if (!in[1].flags) in[1].data = p->s + lane * 2;
        braid_status single = braid_session_run(p->session, 1, in, 2, alone, p->n_out, &err);
        assert_int_equal(single, bad >> lane & 1 ? status : BRAID_OK);
        for (size_t k = 0; k < p->n_out; k++) {
            const uint8_t *found = (const uint8_t *)out[k].data + lane * out[k].lane_stride;
            if (single == BRAID_OK) assert_memory_equal(found, alone[k].data, alone[k].bytes);
            for (size_t i = 0; single != BRAID_OK && i < out[k].lane_stride; i++) assert_int_equal(found[i], 0);
        }
        free_all(alone);
    }
    free_all(out);
    return room;
}

static void equal_shapes(void **state) {
    (void)state;
    const char *const sources[] = {reshaped, summed};
    for (int host = 0; host < 2; host++)
        for (size_t i = 0; i < COUNT_OF(sources); i++) {
            problem p;
            problem_new(&p, sources[i], host);
            assert_int_equal(check(&p, 0, BRAID_OK), LANES);
            p.in[1].flags = BRAID_TENSOR_SHARED;
            assert_int_equal(check(&p, 0, BRAID_OK), LANES);
            for (int k = 0; k < LANES; k++) p.s[k * 2] = 4, p.s[k * 2 + 1] = 3;
            p.in[1].flags = 0;
            assert_int_equal(check(&p, 0, BRAID_OK), LANES);
            problem_free(&p);
        }
}

static void unlike_shapes(void **state) {
    (void)state;
    for (int host = 0; host < 2; host++) {
        problem p;
        braid_error err = {0};
        braid_tensor out = {0};
        problem_new(&p, summed, host);
        for (int k = 0; k < LANES; k += 2) p.s[k * 2] = 4, p.s[k * 2 + 1] = 3;
        assert_int_equal(check(&p, 0, BRAID_OK), 1);
        problem_free(&p);
        problem_new(&p, reshaped, host);
        p.s[6] = 4, p.s[7] = 3;
        assert_int_equal(braid_session_run(p.session, LANES, p.in, 2, &out, 1, &err), BRAID_UNSUPPORTED);
        assert_null(out.data);
        problem_free(&p);
        problem_new(&p, counted, host);
        for (int k = 0; k < LANES; k++)
            p.a[k * MOST] = 1; /* one more or less in each lane: k and y keep their shapes */
        assert_int_equal(check(&p, 0, BRAID_OK), 1);
        problem_free(&p);
    }
}

/* A shape that its lane's elements do not fill. */
static void bad_lanes(void **state) {
    (void)state;
    for (int host = 0; host < 2; host++) {
        problem p;
        braid_error err = {0};
        braid_tensor out = {0};
        problem_new(&p, reshaped, host);
        p.s[4] = 5;
        braid_status alone;
        braid_tensor in[2] = {p.in[0], p.in[1]};
        in[1].data = p.s + 4;
        alone = braid_session_run(p.session, 1, in, 2, &out, 1, &err);
        assert_int_not_equal(alone, BRAID_OK);
        check(&p, 1u << 2, alone);
        p.s[0] = 5;
        check(&p, 1u << 2 | 1, alone);
        for (int k = 0; k < LANES; k++) p.s[k * 2] = 5;
        assert_int_equal(braid_session_run(p.session, LANES, p.in, 2, &out, 1, &err), alone);
        assert_null(out.data);
        for (int k = 0; k < LANES; k++) p.s[k * 2] = 2;
        check(&p, 0, BRAID_OK);
        problem_free(&p);
    }
}

static void allocations(void **state) {
    (void)state;
    for (int unlike = 0; unlike < 2; unlike++) {
        problem p;
        problem_new(&p, summed, false);
        if (unlike) p.s[6] = 4, p.s[7] = 3;
        for (uint64_t n = 1;; n += n > 200 ? 5 : 1) {
            braid_error err = {0};
            braid_tensor out[3] = {{0}};
            mem_fail_after(n, n % 2 == 0);
            braid_status status = braid_session_run(p.session, LANES, p.in, 2, out, p.n_out, &err);
            mem_fail_after(0, false);
            free_all(out);
            if (status == BRAID_OK) break;
            if (status != BRAID_HOST_MEMORY) fail_msg("%s", err.message);
        }
        check(&p, 0, BRAID_OK);
        problem_free(&p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(equal_shapes), cmocka_unit_test(unlike_shapes),
                                       cmocka_unit_test(bad_lanes), cmocka_unit_test(allocations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
