/*
 * faults_model.c: faults of an earlier runtime in reading files and in running sessions: old opsets, files as exporters
 * write them, inputs that do not fit, runs that overlap.
 * labels: device thread
 */
#include "faults.h"
#include "pb_build.h"

#include <limits.h>
#include <pthread.h>

static braid_model *load(pb *m) {
    braid_model *out = NULL;
    braid_error err = {0};
    if (braid_model_load_memory(m->data, m->n, NULL, &out, &err) != BRAID_OK) fail_msg("%s", err.message);
    return out;
}

static braid_session *session_of(bool host, const braid_model *model) {
    braid_session_options options = {.size = sizeof options, .verify = true};
    braid_device *device = ops_device(host);
    braid_session *session = NULL;
    braid_error err = {0};
    if (braid_session_create(&device, 1, model, &options, &session, &err) != BRAID_OK) fail_msg("%s", err.message);
    return session;
}

/* Runs the file on the device and on the reference; its first output must be `want`. Frees all three. */
static void expect_model(const char *name, pb bytes, size_t n_in, braid_tensor *in, braid_tensor want, double rtol,
                         double atol) {
    braid_model *model = load(&bytes);
    for (int host = 0; host < 2; host++) {
        braid_session *session = session_of(host, model);
        braid_error err = {0};
        braid_tensor out = {0};
        if (braid_session_run(session, 1, in, n_in, &out, 1, &err) != BRAID_OK) fail_msg("%s: %s", name, err.message);
        expect_tensor(host ? "reference" : "device", name, &out, &want, rtol, atol);
        braid_tensor_free(&out);
        braid_session_free(session);
    }
    braid_model_free(model);
    pb_free(&bytes);
    for (size_t i = 0; i < n_in; i++) free(in[i].data);
    free(want.data);
}

/* Version IR 8, any opset, further messages in `more`. */
static pb model_at(int64_t opset, pb graph_message) {
    pb m = {0};
    pb_int(&m, 1, 8);
    pb_add(&m, MODEL_OPSET, pb_opset("", opset));
    pb_add(&m, MODEL_GRAPH, graph_message);
    return m;
}

/* ------------------------------------------------------------------------------------------------- opsets */

/* Softmax over runs of `n` elements that lie `apart` from each other in x[120]. */
static void softmax(const float *x, double *y, int n, int apart) {
    for (int start = 0; start < 120; start++) {
        if (start / apart % n != 0) continue;
        double most = -INFINITY, sum = 0;
        for (int i = 0; i < n; i++) most = fmax(most, (double)x[start + i * apart]);
        for (int i = 0; i < n; i++) sum += y[start + i * apart] = exp((double)x[start + i * apart] - most);
        for (int i = 0; i < n; i++) y[start + i * apart] /= sum;
    }
}

/* x: float32[2,3,4,5]. Before opset 13 everything from the axis (default 1) on is one row; then it is one axis (-1). */
static void check_softmax(int64_t opset, int axis, int n, int apart) {
    char name[64];
    snprintf(name, sizeof name, "Softmax-%d, axis %d", (int)opset, axis);
    pb g = {0}, n_softmax = pb_node("Softmax", NAMES("x"), NAMES("y")), a = pb_attribute("axis", 2);
    pb_int(&a, 3, axis);
    if (axis != INT_MAX) pb_add(&n_softmax, NODE_ATTRIBUTE, a);
    else pb_free(&a);
    pb_add(&g, GRAPH_INPUT, pb_value("x", 1, 4, (int64_t[]){2, 3, 4, 5}));
    pb_add(&g, GRAPH_NODE, n_softmax);
    pb_add(&g, GRAPH_OUTPUT, pb_value("y", 1, -1, NULL));
    braid_tensor x = floats("x", DIMS(2, 3, 4, 5)), y = wanted(DIMS(2, 3, 4, 5));
    softmax(x.data, y.data, n, apart);
    expect_model(name, model_at(opset, g), 1, &x, y, 1e-5, 1e-7);
}

static void test_softmax_of_every_opset(void **state) {
    (void)state;
    static const int64_t flat[] = {7, 11}, one_axis[] = {13, 17};
    for (int i = 0; i < 2; i++) {
        check_softmax(flat[i], INT_MAX, 60, 1);
        check_softmax(flat[i], 0, 120, 1);
        check_softmax(flat[i], 1, 60, 1);
        check_softmax(flat[i], 2, 20, 1);
        check_softmax(flat[i], 3, 5, 1);
        check_softmax(one_axis[i], INT_MAX, 5, 1);
        check_softmax(one_axis[i], 0, 2, 60);
        check_softmax(one_axis[i], 1, 3, 20);
        check_softmax(one_axis[i], 2, 4, 5);
        check_softmax(one_axis[i], -1, 5, 1);
    }
    check_softmax(11, -2, 20, 1);
}

/* -------------------------------------------------------------------------------------------------- files */

static void test_raw_int64_initializer(void **state) {
    (void)state;
    static const int64_t w[4] = {(int64_t)1 << 40, -((int64_t)1 << 33) - 7, -1, INT64_MAX - 3};
    static const int64_t x[4] = {1, 2, 3, 3}, target[2] = {-1, 2};
    pb g = {0};
    pb_add(&g, GRAPH_INPUT, pb_value("x", 7, 1, (int64_t[]){4}));
    pb_add(&g, GRAPH_INITIALIZER, pb_tensor("w", 7, 1, (int64_t[]){4}, w, sizeof w));
    pb_add(&g, GRAPH_INITIALIZER, pb_tensor("s", 7, 1, (int64_t[]){2}, target, sizeof target));
    pb_add(&g, GRAPH_NODE, pb_node("Add", NAMES("x", "w"), NAMES("t")));
    pb_add(&g, GRAPH_NODE, pb_node("Reshape", NAMES("t", "s"), NAMES("y")));
    pb_add(&g, GRAPH_OUTPUT, pb_value("y", 7, 2, (int64_t[]){2, 2}));
    pb bytes = pb_model_of(g);
    braid_model *model = load(&bytes);
    for (int host = 0; host < 2; host++) {
        braid_session *session = session_of(host, model);
        braid_tensor in = {.name = "x", .type = BRAID_INT64, .rank = 1, .dims = {4}, .data = (void *)(uintptr_t)x,
                           .bytes = sizeof x};
        braid_tensor out = {0};
        braid_error err = {0};
        if (braid_session_run(session, 1, &in, 1, &out, 1, &err) != BRAID_OK) fail_msg("%s", err.message);
        assert_int_equal(out.rank, 2);
        for (int i = 0; i < 4; i++) assert_true(((int64_t *)out.data)[i] == x[i] + w[i]);
        braid_tensor_free(&out);
        braid_session_free(session);
    }
    braid_model_free(model);
    pb_free(&bytes);
}

/* Nothing says what lies between input and output, nor the output's shape: Flatten by hand as exporters write it. */
static void test_no_value_info(void **state) {
    (void)state;
    static const int64_t first = 0, rest = -1;
    pb g = {0};
    pb_add(&g, GRAPH_INPUT, pb_value("x", 1, 3, (int64_t[]){2, 3, 4}));
    pb_add(&g, GRAPH_INITIALIZER, pb_tensor("i", 7, 0, NULL, &first, 8));
    pb_add(&g, GRAPH_INITIALIZER, pb_tensor("rest", 7, 1, (int64_t[]){1}, &rest, 8));
    pb_add(&g, GRAPH_INITIALIZER, pb_tensor("zero", 7, 1, (int64_t[]){1}, &first, 8));
    pb_add(&g, GRAPH_NODE, pb_node("Relu", NAMES("x"), NAMES("r")));
    pb_add(&g, GRAPH_NODE, pb_node("Shape", NAMES("r"), NAMES("s")));
    pb_add(&g, GRAPH_NODE, pb_node("Gather", NAMES("s", "i"), NAMES("n")));
    pb_add(&g, GRAPH_NODE, pb_node("Unsqueeze", NAMES("n", "zero"), NAMES("m")));
    pb concat = pb_node("Concat", NAMES("m", "rest"), NAMES("to")), axis = pb_attribute("axis", 2);
    pb_int(&axis, 3, 0);
    pb_add(&concat, NODE_ATTRIBUTE, axis);
    pb_add(&g, GRAPH_NODE, concat);
    pb_add(&g, GRAPH_NODE, pb_node("Reshape", NAMES("r", "to"), NAMES("f")));
    pb_add(&g, GRAPH_NODE, pb_node("Neg", NAMES("f"), NAMES("y")));
    pb_add(&g, GRAPH_OUTPUT, pb_value("y", 1, -1, NULL));
    braid_tensor x = floats("x", DIMS(2, 3, 4)), y = wanted(DIMS(2, 12));
    for (int i = 0; i < 24; i++) numbers_of(&y)[i] = -fmax((double)((float *)x.data)[i], 0);
    expect_model("a file without value_info", pb_model_of(g), 1, &x, y, 0, 0);
}

static void test_unknown_domain_unused(void **state) {
    (void)state;
    pb m = {0};
    pb_int(&m, 1, 8);
    pb_add(&m, MODEL_OPSET, pb_opset("com.example.nobody", 3));
    pb_add(&m, MODEL_OPSET, pb_opset("", 17));
    pb_add(&m, MODEL_OPSET, pb_opset("ai.onnx.training", 1));
    pb_add(&m, MODEL_GRAPH, pb_small_graph());
    braid_tensor x = floats("x", DIMS(2)), y = wanted(DIMS(2));
    for (int i = 0; i < 2; i++) numbers_of(&y)[i] = fmax((double)((float *)x.data)[i], 0);
    expect_model("an unused domain", m, 1, &x, y, 0, 0);
}

/* --------------------------------------------------------------------------------------------------- runs */

static void expect_refusal(braid_session *session, braid_tensor in, braid_status status, const char *part) {
    braid_tensor out = {0};
    braid_error err = {0};
    braid_status got = braid_session_run(session, 1, &in, 1, &out, 1, &err);
    if (got != status || !strstr(err.message, part))
        fail_msg("%s '%s', expected %s with '%s'", braid_status_name(got), err.message, braid_status_name(status),
                 part);
    assert_null(out.data);
}

static void test_input_shorter_than_its_shape(void **state) {
    (void)state;
    pb bytes = pb_model_of(pb_small_graph());
    braid_model *model = load(&bytes);
    for (int host = 0; host < 2; host++) {
        braid_session *session = session_of(host, model);
        float data[2] = {-1, 2}, y[2] = {0};
        braid_tensor good = {.name = "x", .type = BRAID_FLOAT32, .rank = 1, .dims = {2}, .data = data, .bytes = 8};
        braid_tensor bad = good;
        bad.bytes = 7;
        expect_refusal(session, bad, BRAID_SHAPE, "'x'");
        bad.bytes = 0;
        expect_refusal(session, bad, BRAID_SHAPE, "'x'");
        bad.bytes = 4, bad.dims[0] = 1;
        expect_refusal(session, bad, BRAID_SHAPE, "'x'");
        bad = good, bad.rank = 2, bad.dims[1] = 1;
        expect_refusal(session, bad, BRAID_SHAPE, "'x'");
        bad = good, bad.type = BRAID_INT32;
        expect_refusal(session, bad, BRAID_TYPE, "'x'");
        bad = good, bad.name = "z";
        expect_refusal(session, bad, BRAID_ARGUMENT, "'z'");
        braid_tensor out = {.data = y, .bytes = sizeof y}; /* the session still works */
        assert_int_equal(braid_session_run(session, 1, &good, 1, &out, 1, NULL), BRAID_OK);
        assert_true(y[0] == 0 && y[1] == 2);
        braid_session_free(session);
    }
    braid_model_free(model);
    pb_free(&bytes);
}

enum { RUNS = 50, WIDTH = 1000 };
typedef struct runner {
    braid_session *session;
    float first; /* the run's own numbers */
    int wrong;
} runner;

/* u = x + 1, v = -x, w = |x| of x = first + i, with another x in each run. */
static void *run_often(void *argument) {
    runner *r = argument;
    float x[WIDTH], y[3][WIDTH];
    for (int turn = 0; turn < RUNS; turn++) {
        float first = r->first + (float)turn;
        for (int i = 0; i < WIDTH; i++) x[i] = first + (float)i;
        braid_tensor in = {
            .name = "x", .type = BRAID_FLOAT32, .rank = 1, .dims = {WIDTH}, .data = x, .bytes = sizeof x};
        braid_tensor out[3];
        for (int i = 0; i < 3; i++) out[i] = (braid_tensor){.data = y[i], .bytes = sizeof y[i]};
        r->wrong += braid_session_run(r->session, 1, &in, 1, out, 3, NULL) != BRAID_OK;
        for (int i = 0; i < WIDTH; i++) r->wrong += y[0][i] != x[i] + 1 || y[1][i] != -x[i] || y[2][i] != fabsf(x[i]);
    }
    return NULL;
}

static void test_overlapping_runs(void **state) {
    (void)state;
    braid_error err = {0};
    braid_model *model = ops_model("graph t(x: float32[1000]) { o: float32[] = constant {1} u = Add(x, o) v = Neg(x) "
                                   "w = Abs(x) } -> u, v, w",
                                   &err);
    if (!model) fail_msg("%s", err.message);
    for (int host = 0; host < 2; host++)
        for (int shared = 0; shared < 2; shared++) {
            braid_session *one = session_of(host, model), *other = shared ? one : session_of(host, model);
            runner runners[2] = {{one, 1000, 0}, {other, -900000, 0}};
            pthread_t threads[2];
            for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, run_often, &runners[i]), 0);
            for (int i = 0; i < 2; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
            assert_int_equal(runners[0].wrong, 0);
            assert_int_equal(runners[1].wrong, 0);
            if (!shared) braid_session_free(other);
            braid_session_free(one);
        }
    braid_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_softmax_of_every_opset),
        cmocka_unit_test(test_raw_int64_initializer),
        cmocka_unit_test(test_no_value_info),
        cmocka_unit_test(test_unknown_domain_unused),
        cmocka_unit_test(test_input_shorter_than_its_shape),
        cmocka_unit_test(test_overlapping_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
