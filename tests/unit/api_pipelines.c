/*
 * api_pipelines.c: what making a session's pipelines took.
 * labels: quick
 */
#include "ops_gpu.h"

static braid_session *session_of(const braid_model *model) {
    braid_error err = {0};
    braid_session *session = NULL;
    braid_device *device = ops_device(false);
    if (braid_session_create(&device, 1, model, NULL, &session, &err) != BRAID_OK) fail_msg("%s", err.message);
    return session;
}

static braid_model *model_of(const char *source) {
    braid_error err = {0};
    braid_model *model = ops_model(source, &err);
    if (!model) fail_msg("%s", err.message);
    return model;
}

/* The first session on a device makes what it needs, once; the next one finds it. */
static void made_once(void **state) {
    (void)state;
    braid_model *model = model_of("graph t(a: float32[40,40], b: float32[40,40]) { p = MatMul(a, b) \"first\" "
                                  "q = MatMul(p, b) \"second\" r = Transpose(q) {perm = [1, 0]} } -> r");
    const braid_pipeline_time *list = NULL;
    braid_plan_stats stats;
    braid_session *s = session_of(model), *later = session_of(model);
    size_t n = braid_session_pipelines(s, &list), products = 0;
    uint64_t longest = 0;
    for (size_t i = 0; i < n; i++) {
        const braid_pipeline_time *t = &list[i];
        assert_true(t->create_ns > 0 && t->module_bytes > 0 && *t->kernel);
        if (t->create_ns > longest) longest = t->create_ns;
        if (strcmp(t->op, "MatMul") != 0) continue;
        products++;
        assert_string_equal(t->node, "first");
        assert_non_null(strstr(t->variant, "float32"));
    }
    assert_int_equal(products, 1);
    assert_int_equal(n, 2);
    braid_session_stats(s, &stats);
    assert_int_equal(stats.pipelines_made, n);
    assert_true(stats.pipelines_ns >= longest && stats.pipelines >= n);
    assert_int_equal(braid_session_pipelines(later, &list), 0);
    braid_session_stats(later, &stats);
    assert_int_equal(stats.pipelines_made, 0);
    braid_session_free(s);
    braid_session_free(later);
    braid_model_free(model);
}

/* Planned at the first run with these shapes; the names outlive the plan that they come from. */
static void made_when_planned(void **state) {
    (void)state;
    braid_model *model = model_of("graph t(a: float32[N,3]) { y = ReduceSum(a) {keepdims = 0} \"the sum\" } -> y");
    const braid_pipeline_time *list = NULL;
    braid_session *s = session_of(model);
    assert_int_equal(braid_session_pipelines(s, &list), 0);
    static float data[3 * 64];
    size_t first = 0, n = 0;
    for (int64_t rows = 1; rows <= 64; rows++) {
        const braid_tensor in = {.name = "a", .type = BRAID_FLOAT32, .rank = 2, .dims = {rows, 3}, .data = data,
                                 .bytes = sizeof data};
        braid_tensor out = {.name = "y"};
        braid_error err = {0};
        if (braid_session_run(s, 1, &in, 1, &out, 1, &err) != BRAID_OK) fail_msg("%s", err.message);
        braid_tensor_free(&out);
        n = braid_session_pipelines(s, &list);
        if (rows == 1) first = n;
        assert_true(n >= first && first > 0);
    }
    for (size_t i = 0; i < n; i++) assert_string_equal(list[i].node, "the sum");
    braid_session_free(s);
    braid_model_free(model);
}

static void nothing_to_tell(void **state) {
    (void)state;
    const braid_pipeline_time *list = (const braid_pipeline_time *)(const void *)"";
    assert_int_equal(braid_session_pipelines(NULL, &list), 0);
    assert_null(list);
    assert_int_equal(braid_session_pipelines(NULL, NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(made_once), cmocka_unit_test(made_when_planned),
                                       cmocka_unit_test(nothing_to_tell)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
