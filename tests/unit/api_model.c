/* Models behind the public header: loading, ports, reports, life. */
#include "pb_build.h"

static const char *const part_of[] = {"format", "input", "output"};

static pb symbolic_model(void) {
    pb g = {0}, dim = {0}, shape = {0}, dense = {0}, typed = {0}, info = {0};
    pb_text(&dim, 2, "N");
    pb_add(&shape, 1, dim);
    dim = (pb){0};
    pb_int(&dim, 1, 3);
    pb_add(&shape, 1, dim);
    pb_int(&dense, 1, 1);
    pb_add(&dense, 2, shape);
    pb_add(&typed, 1, dense);
    pb_text(&info, 1, "x");
    pb_add(&info, 2, typed);
    pb_add(&g, GRAPH_INPUT, info);
    pb_add(&g, GRAPH_INITIALIZER, pb_tensor("w", 1, 1, (int64_t[]){1}, "abcd", 4));
    pb a = pb_attribute("alpha", 1), n = pb_node("LeakyRelu", NAMES("x"), NAMES("t"));
    pb_float(&a, 2, 0.5f);
    pb_add(&n, NODE_ATTRIBUTE, a);
    pb_add(&g, GRAPH_NODE, n);
    pb_add(&g, GRAPH_NODE, pb_node("Unheard", NAMES("t", "w"), NAMES("u")));
    pb_add(&g, GRAPH_NODE, pb_node("LeakyRelu", NAMES("u"), NAMES("y")));
    pb_add(&g, GRAPH_OUTPUT, pb_value("y", 1, -1, NULL));
    return pb_model_of(g);
}

static braid_model *load(const pb *m) {
    braid_model *out = NULL;
    braid_error err;
    if (braid_model_load_memory(m->data, m->n, NULL, &out, &err) != BRAID_OK) fail_msg("%s", err.message);
    return out;
}

static void test_ports(void **state) {
    (void)state;
    pb bytes = symbolic_model();
    braid_model *m = load(&bytes);
    assert_int_equal(braid_model_input_count(m), 1);
    assert_int_equal(braid_model_output_count(m), 1);
    const braid_port *x = braid_model_input(m, 0), *y = braid_model_output(m, 0);
    assert_string_equal(x->name, "x");
    assert_int_equal(x->type, BRAID_FLOAT32);
    assert_int_equal(x->rank, 2);
    assert_int_equal(x->dims[0], -1);
    assert_string_equal(x->symbols[0], "N");
    assert_int_equal(x->dims[1], 3);
    assert_null(x->symbols[1]);
    assert_string_equal(y->name, "y");
    assert_int_equal(y->rank, -1);
    assert_null(braid_model_input(m, 1));
    assert_null(braid_model_output(m, SIZE_MAX));
    assert_null(braid_model_input(NULL, 0));
    braid_model_free(m);
    braid_model_free(NULL);
    pb_free(&bytes);
}

static void expect_report(const braid_model *m, braid_model_report report, const char *part) {
    char *s = NULL;
    assert_int_equal(braid_model_describe(m, report, &s, NULL), BRAID_OK);
    if (!strstr(s, part)) fail_msg("'%s' lacks '%s'", s, part);
    braid_text_free(s);
}

static void test_reports(void **state) {
    (void)state;
    pb bytes = symbolic_model();
    braid_model *m = load(&bytes);
    for (size_t i = 0; i < COUNT_OF(part_of); i++) expect_report(m, BRAID_REPORT_INFO, part_of[i]);
    expect_report(m, BRAID_REPORT_INFO, "opset      ai.onnx 17\n");
    expect_report(m, BRAID_REPORT_INFO, "'x': float32[N,3]\n");
    expect_report(m, BRAID_REPORT_INFO, "parameters 1 in 4 bytes\n");
    expect_report(m, BRAID_REPORT_INFO, "{alpha = 0.5}");
    expect_report(m, BRAID_REPORT_GRAPH, "w: float32[1] = constant {");
    expect_report(m, BRAID_REPORT_SUPPORT, "node 'u' (Unheard-17), domain 'ai.onnx': not supported\n");
    char *s;
    braid_error err;
    assert_int_equal(braid_model_describe(m, (braid_model_report)9, &s, &err), BRAID_ARGUMENT);
    assert_int_equal(braid_model_describe(NULL, BRAID_REPORT_INFO, &s, &err), BRAID_ARGUMENT);
    braid_model_free(m);
    pb_free(&bytes);
    bytes = pb_model_of(pb_small_graph());
    m = load(&bytes);
    assert_int_equal(braid_model_describe(m, BRAID_REPORT_SUPPORT, &s, NULL), BRAID_OK);
    assert_string_equal(s, "");
    braid_text_free(s);
    braid_model_free(m);
    pb_free(&bytes);
    assert_int_equal(braid_ops_describe(&s, NULL), BRAID_OK);
    assert_non_null(strstr(s, "Relu"));
    braid_text_free(s);
}

static void test_arguments(void **state) {
    (void)state;
    braid_model *m = (braid_model *)(uintptr_t)1;
    braid_error err;
    assert_int_equal(braid_model_load("/no/such/file.onnx", NULL, &m, &err), BRAID_IO);
    assert_null(m);
    assert_int_equal(braid_model_load(NULL, NULL, &m, &err), BRAID_ARGUMENT);
    assert_int_equal(braid_model_load("x", NULL, NULL, &err), BRAID_ARGUMENT);
    assert_int_equal(braid_model_load("/", NULL, &m, &err), BRAID_IO);
    assert_int_equal(braid_model_load_memory(NULL, 4, NULL, &m, &err), BRAID_ARGUMENT);
    assert_int_equal(braid_model_load_memory("", 0, NULL, &m, &err), BRAID_FORMAT);
    pb bytes = symbolic_model();
    braid_model_options o = {.size = sizeof o, .max_bytes = bytes.n - 1};
    assert_int_equal(braid_model_load_memory(bytes.data, bytes.n, &o, &m, &err), BRAID_LIMIT);
    o.max_bytes = bytes.n;
    assert_int_equal(braid_model_load_memory(bytes.data, bytes.n, &o, &m, &err), BRAID_OK);
    braid_model_free(m);
    pb_free(&bytes);
}

static void test_allocations(void **state) {
    (void)state;
    pb bytes = symbolic_model();
    uint64_t before = mem_count();
    braid_model_free(load(&bytes));
    uint64_t total = mem_count() - before;
    for (uint64_t n = 1; n <= total; n++) {
        braid_model *m = NULL;
        mem_fail_after(n, true);
        braid_status s = braid_model_load_memory(bytes.data, bytes.n, NULL, &m, NULL);
        mem_fail_after(0, false);
        assert_int_equal(s, BRAID_HOST_MEMORY);
        assert_null(m);
    }
    braid_model *m = load(&bytes);
    for (int report = 0; report < 3; report++)
        for (uint64_t n = 1; n < 20; n++) {
            char *s = NULL;
            mem_fail_after(n, false);
            braid_status status = braid_model_describe(m, (braid_model_report)report, &s, NULL);
            mem_fail_after(0, false);
            assert_true(status == BRAID_OK || status == BRAID_HOST_MEMORY);
            braid_text_free(s);
        }
    braid_model_free(m);
    pb_free(&bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ports),
        cmocka_unit_test(test_reports),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
