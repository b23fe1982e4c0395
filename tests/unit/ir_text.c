/* The text form: what is parsed prints the same. */
#include "ir/graph.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void expect_same(const char *source) {
    arena *a = arena_new();
    braid_error err = {0};
    graph *g = NULL;
    braid_status s = graph_parse(a, source, &g, &err);
    if (s == BRAID_OK) s = graph_verify(g, &err);
    if (s != BRAID_OK) fail_msg("%s", err.message);
    text t = {0};
    graph_print(g, &t);
    assert_false(t.failed);
    assert_string_equal(t.data, source);
    text_free(&t);
    arena_free(a);
}

static void expect_error(const char *source, const char *part) {
    arena *a = arena_new();
    braid_error err = {0};
    graph *g;
    assert_int_equal(graph_parse(a, source, &g, &err), BRAID_FORMAT);
    if (!strstr(err.message, part)) fail_msg("'%s' lacks '%s'", err.message, part);
    arena_free(a);
}

static void test_simple(void **state) {
    (void)state;
    expect_same("graph net(x: float32[1,3,N], y: int64[]) {\n"
                "  w: float32[2] = constant {1, 2.5}\n"
                "  t: float32[1,3,N] = Relu(x) \"node name\"\n"
                "  u: float32[1,3,?0], v = Split(t, w) {axis = 1, list = [1, -2], mode = \"linear\", alpha = 0.5}\n"
                "} -> u, v\n");
    expect_same("graph (x) opset 17 ir 8 {\n} -> x as \"result\", x\n");
    expect_same("graph () {\n} ->\n");
}

static void test_names(void **state) {
    (void)state;
    expect_same("graph \"my net\"(/a/b.c_1: float32, \"a b\": ?[\"n+1\",?0,?1], x%2) {\n"
                "  x%3, -, %4: uint8[?1] = com.acme:Thing@2(\"a b\", -, x%2) \"\\x0a\\\"q\\\\\"\n"
                "  \"constant\\x7f\" = Add(x%3, %4)\n"
                "} -> x%3, %4 as \"q\", \"constant\\x7f\"\n");
}

static void test_constants(void **state) {
    (void)state;
    expect_same("graph () {\n"
                "  a: float32[5] = constant {nan, inf, -inf, -0, 1.10000002}\n"
                "  b: float64[] = constant {0.10000000000000001}\n"
                "  c: uint64[2] = constant {18446744073709551615, 0}\n"
                "  d: int64[2] = constant {-9223372036854775808, 9223372036854775807}\n"
                "  e: string[2] = constant {\"\", \"a\\\"b\"}\n"
                "  f: bool[2] = constant {1, 0}\n"
                "  g: float16[1,2] = constant {1.5, 65504}\n"
                "  h: int4[3] = constant hex \"2103\"\n"
                "  i: complex64[1] = constant hex \"0000803f00000040\"\n"
                "  j: float32[0,3] = constant {}\n"
                "} -> a\n");
}

static void test_attributes(void **state) {
    (void)state;
    expect_same("graph (x) {\n"
                "  y = Op(x) {f = 1.0, i = -3, s = \"\", t = tensor int64[2] {1, 2}, o = other, fs = [1.0, 2.5, nan], "
                "is = [], f0 = floats [], s0 = strings [], ss = [\"a\", \"b\"], "
                "ts = [tensor int8[] {1}, tensor int8[] {2}], t0 = tensors [], g0 = graphs []}\n"
                "} -> y\n");
}

static void test_subgraph(void **state) {
    (void)state;
    expect_same("graph (c: bool[], x: float32[N]) {\n"
                "  y: float32[N] = If(c) {then_branch = graph then() {\n"
                "      o: float32[N] = outer x\n"
                "      z = Relu(o)\n"
                "      k = If(z) {then_branch = graph () {\n"
                "          z = outer z\n"
                "        } -> (z), n = 1}\n"
                "    } -> (k), else_branch = graph () {\n"
                "      o: float32[N] = outer x\n"
                "    } -> (o), many = [graph () {\n"
                "    } -> (), graph () {\n"
                "    } -> ()]} \"if\"\n"
                "} -> y\n");
}

static void test_epilogue(void **state) {
    (void)state;
    expect_same("graph (x, b) {\n"
                "  y = MatMul(x, x, b) epilogue {2; 1 0 1 0; 4 16 8 0} {0.5 0; nan -1} \"mm\"\n"
                "  z = Map(y) {k = 1} epilogue {1; 3 0 0 0} {}\n"
                "} -> z\n");
}

static void test_large(void **state) {
    (void)state;
    arena *a = arena_new();
    graph *g = graph_new(a, "g");
    tensor *t;
    assert_int_equal(tensor_new(a, BRAID_FLOAT32, 1, (int64_t[]){65}, &t, NULL), BRAID_OK);
    graph_constant(g, "w", t);
    text out = {0};
    graph_print(g, &out);
    assert_string_equal(out.data, "graph g() {\n  w: float32[65] = constant <260 bytes>\n} ->\n");
    expect_error(out.data, "line 2: expected '{'");
    text_free(&out);
    arena_free(a);
}

static void test_errors(void **state) {
    (void)state;
    expect_error("", "expected 'graph'");
    expect_error("graph (x {", "expected ')'");
    expect_error("graph (x) {\n y = Relu(z)\n} -> y", "'z' is not defined: line 2");
    expect_error("graph (x) {\n x = Relu(x)\n} -> x", "'x' is defined twice");
    expect_error("graph (x: float7) {} ->", "an element type");
    expect_error("graph (x: int8[1,1,1,1,1,1,1,1,1]) {} ->", "at most 8 dims");
    expect_error("graph (x: int8[-1]) {} ->", "a name");
    expect_error("graph () { w: int8[2] = constant {1} } ->", "expected ','");
    expect_error("graph () { w: int8[1] = constant {1.5} } ->", "an integer");
    expect_error("graph () { w: int8[N] = constant {1} } ->", "known dims");
    expect_error("graph () { w: int8[1] = constant {-99999999999999999999} } ->", "64 bits");
    expect_error("graph (x) { y = Relu(x) {a = } } ->", "expected '['");
    expect_error("graph (x) { y = Relu(x) {a = \"b } } ->", "end of the string");
    expect_error("graph (x) { y = Relu(x) } -> y junk", "expected the end");
    expect_error("graph (x) { y = A(x) epilogue {1; 1 2 3} {} } -> y", "a number");
}

static void test_deep(void **state) {
    (void)state;
    text t = {0};
    text_add(&t, "graph (x) {");
    for (int i = 0; i < 1000; i++) text_add(&t, " y = If(-) {g = graph () {");
    expect_error(t.data, "fewer nested graphs");
    text_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_simple),     cmocka_unit_test(test_names),    cmocka_unit_test(test_constants),
        cmocka_unit_test(test_attributes), cmocka_unit_test(test_subgraph), cmocka_unit_test(test_epilogue),
        cmocka_unit_test(test_large),      cmocka_unit_test(test_errors),   cmocka_unit_test(test_deep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
