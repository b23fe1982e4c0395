/*
 * api_memory.c: every allocation of creating a session and of running it fails once, then the same objects work.
 */
#include "ops_gpu.h"

static const char *const source = "graph t(x: float32[2,N], w: float32[2,3]) {\n"
                                  "  s = Shape(x)\n"
                                  "  two: int64[1] = constant {1}\n"
                                  "  shape = Concat(two, s) {axis = 0}\n"
                                  "  r = Reshape(x, shape)\n"
                                  "  p = Transpose(r) {perm = [0, 2, 1]}\n"
                                  "  m = MatMul(p, w)\n"
                                  "  y = Relu(m)\n"
                                  "  z = Softmax(y) {axis = -1}\n"
                                  "} -> z, p\n";

/* Sixteen heads that are re-rolled. */
static const char *heads(void) {
    static char graph_text[8192];
    char *at = graph_text + sprintf(graph_text, "graph t(x: float32[2,N], w: float32[2,3]) { t = Transpose(x) "
                                               "{perm = [1, 0]} a = MatMul(t, w) ");
    for (int i = 0; i < 16; i++)
        at += sprintf(at,
                      "k%d: float32[2,3] = constant {%d, 1, 2, 3, 4, %d} m%d = MatMul(t, k%d) b%d = Add(m%d, a) s%d = "
                      "Softmax(b%d) {axis = 1} ",
                      i, i, i, i, i, i, i, i, i);
    at += sprintf(at, "y = Concat(");
    for (int i = 0; i < 16; i++) at += sprintf(at, "%ss%d", i ? ", " : "", i);
    sprintf(at, ") {axis = 0} } -> y, s3");
    return graph_text;
}

static float x_data[8] = {1, 2, 3, 4, 5, 6, 7, 8}, w_data[6] = {1, 0, 2, 0, 1, 3};
static const braid_tensor inputs[2] = {
    {.name = "x", .type = BRAID_FLOAT32, .rank = 2, .dims = {2, 4}, .data = x_data, .bytes = sizeof x_data},
    {.name = "w", .type = BRAID_FLOAT32, .rank = 2, .dims = {2, 3}, .data = w_data, .bytes = sizeof w_data}};

static void free_outputs(braid_tensor out[2]) {
    for (int i = 0; i < 2; i++) braid_tensor_free(&out[i]);
}

static void expect_equal(const braid_tensor a[2], const braid_tensor b[2]) {
    for (int i = 0; i < 2; i++) {
        assert_int_equal(a[i].bytes, b[i].bytes);
        assert_memory_equal(a[i].data, b[i].data, a[i].bytes);
    }
}

static void check_failure(braid_status status, const braid_error *err) {
    assert_int_equal(err->status, status);
    if (status != BRAID_HOST_MEMORY) fail_msg("%s: %s", braid_status_name(status), err->message);
}

static void every_allocation(bool host, const char *graph_text, bool rolls) {
    braid_error err = {0};
    braid_model *model = ops_model(graph_text, &err);
    braid_device *device = ops_device(host);
    braid_session *session = NULL;
    braid_tensor wanted[2] = {0};
    assert_int_equal(braid_session_create(&device, 1, model, NULL, &session, &err), BRAID_OK);
    if (braid_session_run(session, 1, inputs, 2, wanted, 2, &err) != BRAID_OK) fail_msg("%s", err.message);
    if (rolls) assert_true(session->stages.first && session->stages.first->packs.n_bundles > 0);
    braid_session_free(session);

    for (uint64_t n = 1;; n++) {
        mem_fail_after(n, n % 2 == 0);
        braid_status status = braid_session_create(&device, 1, model, NULL, &session, &err);
        mem_fail_after(0, false);
        if (status == BRAID_OK) break;
        check_failure(status, &err);
    }
    uint64_t failures = 0;
    for (uint64_t n = 1;; n++) {
        braid_tensor out[2] = {0};
        mem_fail_after(n, n % 2 == 0);
        braid_status status = braid_session_run(session, 1, inputs, 2, out, 2, &err);
        mem_fail_after(0, false);
        if (status == BRAID_OK) {
            expect_equal(out, wanted);
            free_outputs(out);
            break;
        }
        check_failure(status, &err);
        failures++;
        assert_null(out[0].data);
        if (n % 8) continue; /* the same session still gives the right result */
        if (braid_session_run(session, 1, inputs, 2, out, 2, &err) != BRAID_OK) fail_msg("%s", err.message);
        expect_equal(out, wanted);
        free_outputs(out);
        braid_session_free(session); /* and a fresh one, so that planning is met as well */
        assert_int_equal(braid_session_create(&device, 1, model, NULL, &session, &err), BRAID_OK);
    }
    assert_true(failures > 0);
    free_outputs(wanted);
    braid_session_free(session);
    braid_model_free(model);
}

static void on_the_host(void **state) {
    (void)state;
    every_allocation(true, source, false);
}

static void on_the_device(void **state) {
    (void)state;
    every_allocation(false, source, false);
}

static void re_rolled(void **state) {
    (void)state;
    every_allocation(false, heads(), true);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(on_the_host), cmocka_unit_test(on_the_device),
                                       cmocka_unit_test(re_rolled)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
