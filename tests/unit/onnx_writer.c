/* What is written reads back as the same graph. */
#include "pb_build.h"

static void expect_written(const char *source, const char *want) {
    arena *memory = arena_new();
    braid_error err;
    graph *g;
    void *bytes;
    size_t size;
    if (graph_parse(memory, source, &g, &err) != BRAID_OK) fail_msg("%s", err.message);
    if (onnx_write(g, &bytes, &size, &err) != BRAID_OK) fail_msg("%s", err.message);
    pb m = {.data = bytes, .n = size};
    reading r = pb_read(&m, NULL);
    if (r.status != BRAID_OK) fail_msg("%s", r.err.message);
    text t = {0};
    graph_print(r.m->g, &t);
    assert_string_equal(t.data, want);
    text_free(&t);
    pb_close(&r);
    mem_free(bytes);
    arena_free(memory);
}

static void test_same(void **state) {
    (void)state;
    const char *source =
        "graph net(x: float32[N,3], y) opset 28 ir 13 {\n"
        "  w: float16[2] = constant {1, 2.5}\n"
        "  s: string[2] = constant {\"a\", \"\"}\n"
        "  i: int4[3] = constant hex \"2103\"\n"
        "  t: float32[N,?0], - = Unheard(x, -, w) {f = 0.5, n = -3, s = \"a\\x00b\", l = [1, -2], fs = [0.5, 2.0], "
        "e = strings [], ss = [\"p\", \"q\"], k = tensor int64[2] {1, 2}, ks = [tensor int8[] {1}]} \"first\"\n"
        "  u = com.acme:Thing@3(t) {g = graph sub(p: int64[]) opset 28 ir 13 {\n"
        "      t: float32[N,?0] = outer t\n"
        "      q = Unheard(t, p) \"inner\"\n"
        "    } -> (q)} \"second\"\n"
        "} -> u\n";
    expect_written(source, source);
}

static void test_renamed(void **state) {
    (void)state;
    /* a name used twice, one value as two outputs, an output under another name, an input as an output */
    expect_written("graph g(x: float32[2]) {\n"
                   "  a%1 = Unheard(x) \"n\"\n"
                   "  a%2 = Unheard(a%1) \"m\"\n"
                   "  %3 = Unheard(a%2) \"o\"\n"
                   "} -> %3 as \"r\", %3 as \"again\", x\n",
                   "graph g(x: float32[2]) opset 28 ir 13 {\n"
                   "  a = Unheard(x) \"n\"\n"
                   "  \"a%0\" = Unheard(a) \"m\"\n"
                   "  r = Unheard(\"a%0\") \"o\"\n"
                   "  again = Identity(r) \"again\"\n"
                   "} -> r, again, x\n");
}

static void test_refused(void **state) {
    (void)state;
    arena *memory = arena_new();
    graph *g;
    void *bytes;
    size_t size;
    assert_int_equal(graph_parse(memory, "graph (x) { y = A(x) epilogue {1; 1 0 0 0} {} } -> y", &g, NULL), BRAID_OK);
    assert_int_equal(onnx_write(g, &bytes, &size, NULL), BRAID_UNSUPPORTED);
    assert_int_equal(graph_parse(memory, "graph (x) { y = A(x) {k = other} } -> y", &g, NULL), BRAID_OK);
    assert_int_equal(onnx_write(g, &bytes, &size, NULL), BRAID_UNSUPPORTED);
    assert_int_equal(graph_parse(memory, "graph (x) { y = A(x) } -> y as \"z\"", &g, NULL), BRAID_OK);
    for (uint64_t n = 1; n < 12; n++) {
        mem_fail_after(n, false);
        braid_status s = onnx_write(g, &bytes, &size, NULL);
        mem_fail_after(0, false);
        if (s == BRAID_OK)
            mem_free(bytes);
        else
            assert_int_equal(s, BRAID_HOST_MEMORY);
    }
    arena_free(memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same),
        cmocka_unit_test(test_renamed),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
