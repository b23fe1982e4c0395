/*
 * api_lanes_once.c: what depends on shared inputs alone runs once for all lanes and gives every lane the same bits;
 * which inputs are shared may change from run to run.
 */
#include "ops_gpu.h"

#include "api/session.h"

enum { LANES = 6 };

/* Det is a host step. */
static const char *const source = "graph t(a: float32[2,9], b: float32[9,9], i: int64[3]) {\n"
                                  "  e = Exp(b)\n"
                                  "  s = Softmax(e) {axis = -1}\n"
                                  "  m = MatMul(a, s)\n"
                                  "  d = Det(s)\n"
                                  "  g = Gather(s, i) {axis = 0}\n"
                                  "  p = Mul(g, d)\n"
                                  "  y = Concat(m, p) {axis = 0}\n"
                                  "} -> y, p, d\n";

typedef struct problem {
    braid_model *model;
    braid_session *session;
    float a[LANES * 18], b[LANES * 81];
    int64_t i[LANES * 3];
    braid_tensor in[3];
} problem;

static void problem_new(problem *p) {
    braid_error err = {0};
    *p = (problem){.model = ops_model(source, &err)};
    if (!p->model) fail_msg("%s", err.message);
    for (int k = 0; k < LANES * 18; k++) p->a[k] = (float)(k % 7) - 2.5f;
    for (int k = 0; k < LANES * 81; k++) p->b[k] = (float)(k * k % 17) / 8;
    for (int k = 0; k < LANES * 3; k++) p->i[k] = k % 9;
    p->in[0] = (braid_tensor){
        .name = "a", .type = BRAID_FLOAT32, .rank = 2, .dims = {2, 9}, .data = p->a, .bytes = sizeof p->a};
    p->in[1] = (braid_tensor){
        .name = "b", .type = BRAID_FLOAT32, .rank = 2, .dims = {9, 9}, .data = p->b, .bytes = sizeof p->b};
    p->in[2] =
        (braid_tensor){.name = "i", .type = BRAID_INT64, .rank = 1, .dims = {3}, .data = p->i, .bytes = sizeof p->i};
    braid_session_options o = {.size = sizeof o, .lanes_max = LANES, .verify = true};
    braid_device *device = ops_device(false);
    if (braid_session_create(&device, 1, p->model, &o, &p->session, &err) != BRAID_OK) fail_msg("%s", err.message);
    p->session->test.poison = true;
    p->session->test.poison_byte = 0x7f;
}

static void problem_free(problem *p) {
    braid_session_free(p->session);
    braid_model_free(p->model);
}

static void share(problem *p, unsigned shared) {
    for (int k = 0; k < 3; k++) p->in[k].flags = shared >> k & 1 ? BRAID_TENSOR_SHARED : 0;
}

static void free_all(braid_tensor out[3]) {
    for (int k = 0; k < 3; k++) braid_tensor_free(&out[k]);
}

static void check_lane(problem *p, const braid_tensor *out, int lane) {
    braid_error err = {0};
    const size_t bytes[3] = {18 * sizeof(float), 81 * sizeof(float), 3 * sizeof(int64_t)};
    braid_tensor in[3], alone[3] = {{0}};
    memcpy(in, p->in, sizeof in);
    for (int k = 0; k < 3; k++)
        if (!in[k].flags) in[k].data = (uint8_t *)in[k].data + (size_t)lane * bytes[k];
    if (braid_session_run(p->session, 1, in, 3, alone, 3, &err) != BRAID_OK) fail_msg("%s", err.message);
    for (int k = 0; k < 3; k++)
        assert_memory_equal((uint8_t *)out[k].data + (size_t)lane * out[k].lane_stride, alone[k].data, alone[k].bytes);
    free_all(alone);
}

/* Device steps of the stage made or used last that run once. */
static int steps_once(const problem *p) {
    const stage *last = p->session->stages.first;
    int n = 0;
    for (const stage *st = last; st; st = st->next) last = st->used > last->used ? st : last;
    for (int32_t i = 0; i < last->n_segments; i++)
        for (int32_t k = 0; !last->segments[i].on_host && k < last->segments[i].p->n_steps; k++)
            n += last->segments[i].p->steps[k]->once;
    return n;
}

static void run(problem *p, braid_tensor out[3]) {
    braid_error err = {0};
    if (braid_session_run(p->session, LANES, p->in, 3, out, 3, &err) != BRAID_OK) fail_msg("%s", err.message);
}

static void check_shared_sets(bool staged, bool staged_out) {
    problem p;
    problem_new(&p);
    p.session->test.staged = staged;
    p.session->test.staged_out = staged_out;
    stage_cache_clear(p.session, &p.session->stages);
    for (unsigned round = 0; round < 16; round++) { /* twice: made, then found again */
        braid_tensor out[3] = {{0}};
        share(&p, round & 7);
        run(&p, out);
        assert_int_equal(steps_once(&p) > 0, (round & 2) != 0);
        for (int lane = 0; lane < LANES; lane++) check_lane(&p, out, lane);
        free_all(out);
    }
    problem_free(&p);
}

static void shared_sets(void **state) {
    (void)state;
    check_shared_sets(false, false);
    check_shared_sets(false, true);
    check_shared_sets(true, true);
}

/* An index that all lanes share fails all; one lane's own, in the same run, only that lane. */
static void index_errors(void **state) {
    (void)state;
    problem p;
    braid_error err = {0};
    problem_new(&p);
    for (unsigned shared = 2; shared < 8; shared += 4) {
        braid_tensor out[3] = {{0}};
        share(&p, shared); /* b, then b and i */
        p.i[1] = 9;
        assert_int_equal(braid_session_run(p.session, LANES, p.in, 3, out, 3, &err), BRAID_INDEX);
        for (int lane = 0; lane < LANES; lane++) {
            bool bad = shared & 4 || lane == 0;
            assert_int_equal(braid_session_lane_status(p.session, (size_t)lane), bad ? BRAID_INDEX : BRAID_OK);
        }
        assert_int_equal(out[0].data == NULL, shared & 4 ? 1 : 0);
        for (int lane = 1; out[0].data && lane < LANES; lane++) check_lane(&p, out, lane);
        free_all(out);
        p.i[1] = 1;
    }
    problem_free(&p);
}

/* A plan for another set of shared inputs is made in the run: every allocation of it fails once. */
static void allocations(void **state) {
    (void)state;
    problem p;
    problem_new(&p);
    for (uint64_t n = 1;; n++) {
        braid_error err = {0};
        braid_tensor out[3] = {{0}};
        share(&p, n % 2 ? 2 : 3);
        mem_fail_after(n, n % 2 == 0);
        braid_status status = braid_session_run(p.session, LANES, p.in, 3, out, 3, &err);
        mem_fail_after(0, false);
        if (status == BRAID_OK) {
            for (int lane = 0; lane < LANES; lane++) check_lane(&p, out, lane);
            free_all(out);
            if (n % 2) break;
            continue;
        }
        if (status != BRAID_HOST_MEMORY) fail_msg("%s", err.message);
        assert_null(out[0].data);
    }
    problem_free(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(shared_sets), cmocka_unit_test(index_errors),
                                       cmocka_unit_test(allocations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
