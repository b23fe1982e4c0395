/*
 * api_lanes.c: L lanes in one run are L single runs, bit for bit: mixed shared and per-lane inputs, odd strides, host
 * steps, shapes that depend on data.
 */
#include "ops_gpu.h"

#include "api/session.h"

enum { LANES_MAX = 70, INPUTS_MAX = 3, OUTPUTS_MAX = 2 };

static const char *const graphs[] = {
    "graph t(a: float32[3,5], b: float32[5]) { y = Add(a, b) z = Relu(y) } -> z",
    "graph t(a: float32[4,6], b: float32[6,9], c: float32[9]) { m = MatMul(a, b) y = Add(m, c) z = Sigmoid(y) } -> z",
    "graph t(a: float32[1,33], b: float32[33,17]) { y = MatMul(a, b) } -> y",
    "graph t(a: float32[1,3,9,7], b: float32[5,3,3,3], c: float32[5]) { m = Conv(a, b, c) {pads = [1, 1, 1, 1], "
    "strides = [2, 1]} y = Relu(m) } -> y",
    "graph t(a: float32[1,6,8,8], b: float32[6,1,3,3]) { y = Conv(a, b) {group = 6} } -> y",
    "graph t(a: float32[1,2,5,5], b: float32[2,3,3,3]) { y = ConvTranspose(a, b) {strides = [2, 2]} } -> y",
    "graph t(a: float32[1,2,9,9]) { y, z = MaxPool(a) {kernel_shape = [3, 3], strides = [2, 2]} } -> y, z",
    "graph t(a: float32[7,40]) { y = Softmax(a) {axis = -1} } -> y",
    "graph t(a: float32[5,48], b: float32[48], c: float32[48]) { y = LayerNormalization(a, b, c) {axis = -1} } -> y",
    "graph t(a: float32[3,4,5]) { axes: int64[1] = constant {1} y = ReduceMean(a, axes) {keepdims = 0} z = "
    "Transpose(a) {perm = [2, 0, 1]} } -> y, z",
    "graph t(a: int64[6,3], b: int64[3]) { y = Div(a, b) z = Cast(y) {to = 1} } -> z",
    "graph t(a: float32[2,3], b: float32[1,3]) { y = Concat(a, b) {axis = 0} n: int64[2] = constant {1, 2} p, q = "
    "Split(y, n) {axis = 0} } -> p, q",
    "graph t(a: float32[9,4], b: int64[3]) { zero: int64[] = constant {0} c = Abs(b) y = Gather(a, c) {axis = 0} } -> "
    "y",
    "graph t(a: float32[2,30]) { k: int64[1] = constant {4} y, z = TopK(a, k) {axis = -1} } -> y, z",
    "graph t(a: float16[3,8], b: float16[8]) { y = Mul(a, b) z = Tanh(y) } -> z",
    "graph t(a: float32[3,3]) { y = Det(a) z = Neg(y) } -> z",
    "graph t(a: float32[4,4], b: float32[4,4]) { s: int64[1] = constant {16} y = Reshape(a, s) z = Identity(b) } -> y, "
    "z",
};

typedef struct problem {
    braid_model *model;
    braid_session *session;
    braid_tensor in[INPUTS_MAX];
    size_t n_in, n_out;
    bool shared[INPUTS_MAX];
} problem;

static void problem_new(problem *p, const char *source, uint32_t lanes, unsigned shared) {
    braid_error err = {0};
    *p = (problem){.model = ops_model(source, &err)};
    if (!p->model) fail_msg("%s", err.message);
    graph *g = p->model->m->g;
    p->n_in = (size_t)g->n_inputs;
    p->n_out = (size_t)g->n_outputs;
    for (size_t i = 0; i < p->n_in; i++) {
        const value *v = g->values[g->inputs[i]];
        p->shared[i] = shared >> i & 1;
        int64_t dims[BRAID_MAX_RANK] = {p->shared[i] ? 1 : lanes + 1}; /* one lane more than is used */
        memcpy(dims + 1, v->type.dims, (size_t)v->type.rank * sizeof *dims);
        p->in[i] = ops_random_full(v->name, v->type.type, v->type.rank + 1, dims, -3, 3, false);
        p->in[i].rank = v->type.rank;
        memcpy(p->in[i].dims, v->type.dims, sizeof p->in[i].dims);
        if (p->shared[i]) p->in[i].flags = BRAID_TENSOR_SHARED;
    }
    braid_session_options o = {.size = sizeof o, .lanes_max = LANES_MAX, .verify = true};
    braid_device *device = ops_device(false);
    if (braid_session_create(&device, 1, p->model, &o, &p->session, &err) != BRAID_OK)
        fail_msg("%s\n%s", err.message, source);
}

static void problem_free(problem *p) {
    for (size_t i = 0; i < p->n_in; i++) free(p->in[i].data);
    braid_session_free(p->session);
    braid_model_free(p->model);
}

static size_t one_lane(const braid_tensor *t) {
    int64_t count = 1;
    size_t bytes = 0;
    for (int i = 0; i < t->rank; i++) count *= t->dims[i];
    type_span(t->type, count, &bytes);
    return bytes;
}

static void check_lane(problem *p, const char *source, const braid_tensor *out, uint32_t lane) {
    braid_error err = {0};
    braid_tensor in[INPUTS_MAX], alone[OUTPUTS_MAX] = {{0}};
    memcpy(in, p->in, sizeof in);
    for (size_t i = 0; i < p->n_in; i++)
        if (!p->shared[i]) in[i].data = (uint8_t *)in[i].data + lane * one_lane(&in[i]);
    if (braid_session_run(p->session, 1, in, p->n_in, alone, p->n_out, &err) != BRAID_OK) fail_msg("%s", err.message);
    for (size_t i = 0; i < p->n_out; i++) {
        size_t bytes = one_lane(&alone[i]);
        assert_int_equal(alone[i].rank, out[i].rank);
        if (memcmp((uint8_t *)out[i].data + lane * out[i].lane_stride, alone[i].data, bytes) != 0)
            fail_msg("output %zu of lane %u differs from a run alone in\n%s", i, lane, source);
        braid_tensor_free(&alone[i]);
    }
}

static void check(const char *source, uint32_t lanes, unsigned shared) {
    problem p;
    braid_error err = {0};
    braid_tensor out[OUTPUTS_MAX] = {{0}};
    problem_new(&p, source, lanes, shared);
    if (braid_session_run(p.session, lanes, p.in, p.n_in, out, p.n_out, &err) != BRAID_OK)
        fail_msg("%s\n%s", err.message, source);
    for (uint32_t lane = 0; lane < lanes; lane++) check_lane(&p, source, out, lane);
    for (size_t i = 0; i < p.n_out; i++) braid_tensor_free(&out[i]);
    problem_free(&p);
}

static void families(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(graphs); i++)
        for (unsigned shared = 0; shared < 4; shared++) {
            check(graphs[i], 2, shared);
            check(graphs[i], 7, shared);
        }
    check(graphs[1], 64, 2);
    check(graphs[3], 70, 6);
}

/* Work groups of the run made last: those its programs start, and those its lanes need. */
static void check_groups(const problem *p, uint32_t lanes) {
    const stage *st = session_stage(p->session);
    for (int32_t i = 0; i < st->n_segments; i++) {
        const segment *seg = &st->segments[i];
        uint64_t needed = 0;
        for (int32_t k = 0; !seg->on_host && k < seg->p->n_dispatches; k++) {
            const plan_dispatch *d = &seg->p->dispatches[k];
            needed += d->tiles * (d->folded ? 1 : d->once ? d->copies : d->copies * lanes);
        }
        if (!seg->on_host) assert_int_equal(gpu_program_groups(seg->program), needed);
    }
}

/* A run starts the groups of its own lanes, not of those that there is room for. */
static void grids(void **state) {
    (void)state;
    static const uint32_t lanes[] = {9, 64, 33, 10, 63};
    braid_error err = {0};
    for (size_t i = 0; i < COUNT_OF(graphs); i++) {
        problem p;
        problem_new(&p, graphs[i], 64, 2);
        for (size_t k = 0; k < COUNT_OF(lanes); k++) {
            braid_tensor out[OUTPUTS_MAX] = {{0}};
            if (braid_session_run(p.session, lanes[k], p.in, p.n_in, out, p.n_out, &err) != BRAID_OK)
                fail_msg("%s", err.message);
            assert_int_equal(session_stage(p.session)->bucket, 64);
            check_groups(&p, lanes[k]);
            for (size_t n = 0; n < p.n_out; n++) braid_tensor_free(&out[n]);
        }
        problem_free(&p);
    }
}

static void run_lanes(problem *p, uint32_t lanes, uint32_t room, int stages) {
    braid_error err = {0};
    braid_tensor out[OUTPUTS_MAX] = {{0}};
    if (braid_session_run(p->session, lanes, p->in, p->n_in, out, p->n_out, &err) != BRAID_OK)
        fail_msg("%s", err.message);
    assert_int_equal(session_stage(p->session)->bucket, room);
    assert_int_equal(p->session->stages.count, stages);
    check_lane(p, graphs[1], out, lanes - 1);
    for (size_t i = 0; i < p->n_out; i++) braid_tensor_free(&out[i]);
}

/* Room for 1, 8, 64, 128, ... lanes; of those above 64 the largest alone is kept. */
static void buckets(void **state) {
    (void)state;
    static const struct { uint32_t lanes, room; int stages; } runs[] = {
        {1, 1, 1}, {2, 8, 2}, {8, 8, 2}, {9, 64, 3}, {64, 64, 3}, {65, 128, 4}, {128, 128, 4}, {129, 256, 4},
        {65, 256, 4}, {257, 300, 4}, {300, 300, 4}, {100, 300, 4}, {64, 64, 4}, {3, 8, 4}};
    problem p;
    problem_new(&p, graphs[1], 300, 2);
    p.session->lanes_max = 300;
    for (size_t i = 0; i < COUNT_OF(runs); i++) run_lanes(&p, runs[i].lanes, runs[i].room, runs[i].stages);
    problem_free(&p);
}

static void depends_on_data(void **state) {
    (void)state;
    check("graph t(a: float32[12]) { b = Abs(a) n = NonZero(b) y = Shape(n) } -> y", 5, 0);
}

static void refusals(void **state) {
    (void)state;
    problem p;
    braid_error err = {0};
    braid_tensor out[1] = {{0}};
    problem_new(&p, graphs[0], 4, 0);
    assert_int_equal(braid_session_run(p.session, 0, p.in, p.n_in, out, 1, &err), BRAID_ARGUMENT);
    assert_int_equal(braid_session_run(p.session, LANES_MAX + 1, p.in, p.n_in, out, 1, &err), BRAID_ARGUMENT);
    assert_non_null(strstr(err.message, "71 lanes, the session allows 1 to 70"));
    p.in[0].lane_stride = 59;
    assert_int_equal(braid_session_run(p.session, 4, p.in, p.n_in, out, 1, &err), BRAID_ARGUMENT);
    assert_non_null(strstr(err.message, "lane stride 59, a lane has 60 bytes"));
    p.in[0].lane_stride = 0;
    p.in[0].bytes = 239;
    assert_int_equal(braid_session_run(p.session, 4, p.in, p.n_in, out, 1, &err), BRAID_SHAPE);
    p.in[0].bytes = 300;
    float room[60];
    out[0] = (braid_tensor){.data = room, .bytes = sizeof room - 1};
    assert_int_equal(braid_session_run(p.session, 4, p.in, p.n_in, out, 1, &err), BRAID_SHAPE);
    out[0] = (braid_tensor){.data = room, .bytes = sizeof room};
    assert_int_equal(braid_session_run(p.session, 4, p.in, p.n_in, out, 1, &err), BRAID_OK);
    check_lane(&p, graphs[0], out, 3);
    problem_free(&p);
}

static void index_of_one_lane(void **state) {
    (void)state;
    problem p;
    braid_error err = {0};
    braid_tensor out[1] = {{0}};
    problem_new(&p, "graph t(a: float32[9,4], b: int64[3]) { y = Gather(a, b) {axis = 0} } -> y", 4, 1);
    for (int i = 0; i < 12; i++) ((int64_t *)p.in[1].data)[i] = i % 9;
    ((int64_t *)p.in[1].data)[7] = 9;
    assert_int_equal(braid_session_run(p.session, 4, p.in, 2, out, 1, &err), BRAID_INDEX);
    assert_non_null(strstr(err.message, "lane 2: "));
    ((int64_t *)p.in[1].data)[7] = 8;
    assert_int_equal(braid_session_run(p.session, 4, p.in, 2, out, 1, &err), BRAID_OK);
    braid_tensor_free(&out[0]);
    problem_free(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(families), cmocka_unit_test(grids),
                                       cmocka_unit_test(buckets),  cmocka_unit_test(depends_on_data),
                                       cmocka_unit_test(refusals), cmocka_unit_test(index_of_one_lane)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
