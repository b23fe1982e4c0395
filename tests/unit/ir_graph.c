/* Builders, attributes, sorting, verifying, tensors. */
#include "ir/graph.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_build(void **state) {
    (void)state;
    arena *a = arena_new();
    graph *g = graph_new(a, NULL);
    int32_t x = graph_value(g, "x", VALUE_INPUT);
    char name[] = "n";
    node *n = graph_node(g, "Relu", NULL, name, 1, &x, 2);
    name[0] = 'X';
    assert_string_equal(n->name, "n");
    assert_int_equal(n->n_root, 1);
    assert_int_equal(g->values[n->out[1]]->producer, 0);
    for (int i = 0; i < 40; i++) assert_true(node_add_int(g, n, i == 7 ? "seven" : "a", i));
    assert_true(node_add_ints(g, n, "ints", 2, (int64_t[]){4, 5}));
    assert_true(node_add_float(g, n, "f", 0.5f));
    assert_true(node_add_string(g, n, "s", "text"));
    assert_int_equal(node_int(n, "seven", -1), 7);
    assert_int_equal(node_int(n, "eight", -1), -1);
    assert_int_equal(node_int(n, "s", -1), -1);
    assert_true(node_float(n, "f", 0) == 0.5f);
    assert_string_equal(node_string(n, "s", ""), "text");
    assert_string_equal(node_string(n, "none", "fallback"), "fallback");
    const int64_t *ints;
    assert_int_equal(node_ints(n, "ints", &ints), 2);
    assert_int_equal(ints[1], 5);
    assert_int_equal(node_ints(n, "none", &ints), 0);
    int32_t k = graph_constant_ints(g, "k", -1, (int64_t[]){9});
    assert_int_equal(g->values[k]->type.rank, 0);
    assert_int_equal(*(int64_t *)g->values[k]->constant->data, 9);
    k = graph_constant_ints(g, "k", 0, NULL);
    assert_int_equal(g->values[k]->type.dims[0], 0);
    k = graph_constant_scalar(g, "h", BRAID_FLOAT16, 1.5);
    assert_int_equal(*(uint16_t *)g->values[k]->constant->data, 0x3e00);
    assert_int_equal(graph_verify(g, NULL), BRAID_OK);
    arena_free(a);
}

static void test_symbols(void **state) {
    (void)state;
    arena *a = arena_new();
    graph *g = graph_new(a, ""), *inner = graph_new(a, "");
    inner->parent = g;
    uint32_t n = graph_symbol(g, "N"), fresh = graph_symbol(g, NULL);
    assert_int_equal(graph_symbol(inner, "N"), n);
    assert_int_not_equal(graph_symbol(inner, NULL), fresh);
    assert_int_equal(inner->n_symbols, 0);
    assert_true(dim_is_symbol(dim_from_symbol(n)));
    assert_int_equal(dim_symbol(dim_from_symbol(fresh)), fresh);
    arena_free(a);
}

static void test_sort(void **state) {
    (void)state;
    arena *a = arena_new();
    graph *g = graph_new(a, "");
    int32_t x = graph_value(g, "x", VALUE_INPUT), p = graph_value(g, "p", VALUE_NODE);
    int32_t q = graph_value(g, "q", VALUE_NODE), r = graph_value(g, "r", VALUE_NODE);
    graph_node_into(g, "C", "", "c", 1, &q, 1, &r);
    graph_node_into(g, "B", "", "b", 1, &p, 1, &q);
    graph_node_into(g, "A", "", "a", 1, &x, 1, &p);
    graph_node(g, "D", "", "d", 1, &x, 1);
    assert_int_equal(graph_sort(g, NULL), BRAID_OK);
    const char *want = "ABCD";
    for (int i = 0; i < 4; i++) assert_int_equal(g->nodes[i]->type[0], want[i]);
    assert_int_equal(g->values[r]->producer, 2);
    assert_int_equal(graph_verify(g, NULL), BRAID_OK);
    arena_free(a);
}

static void expect_cycle(graph *g, const char *part) {
    braid_error err = {0};
    assert_int_equal(graph_sort(g, &err), BRAID_MODEL);
    if (!strstr(err.message, part)) fail_msg("'%s' lacks '%s'", err.message, part);
}

static void test_cycles(void **state) {
    (void)state;
    arena *a = arena_new();
    graph *g = graph_new(a, "");
    int32_t p = graph_value(g, "p", VALUE_NODE), q = graph_value(g, "q", VALUE_NODE);
    graph_node(g, "Z", "", "behind", 1, &q, 1);
    graph_node_into(g, "A", "", "a", 1, &q, 1, &p);
    graph_node_into(g, "B", "", "b", 1, &p, 1, &q);
    expect_cycle(g, "cycle through node 'b' (B), 'a' (A)");
    g = graph_new(a, "");
    p = graph_value(g, "p", VALUE_NODE);
    graph_node_into(g, "A", "", "self", 1, &p, 1, &p);
    expect_cycle(g, "cycle through node 'self' (A)");
    /* a loop body that reads what its own node makes */
    g = graph_new(a, "");
    graph *inner = graph_new(a, "");
    inner->parent = g;
    p = graph_value(g, "p", VALUE_NODE);
    node *n = graph_node_into(g, "Loop", "", "loop", 0, NULL, 1, &p);
    int32_t o = graph_value(inner, "o", VALUE_OUTER);
    inner->values[o]->outer = p;
    node_add_attribute(g, n, (attribute){.name = "body", .kind = ATTRIBUTE_GRAPH, .count = 1, .g = inner});
    expect_cycle(g, "cycle through node 'loop' (Loop)");
    arena_free(a);
}

static void test_long_chain(void **state) {
    (void)state;
    enum { N = 100000 };
    arena *a = arena_new();
    graph *g = graph_new(a, "");
    int32_t first = graph_value(g, "", VALUE_INPUT);
    for (int i = 0; i < N; i++) graph_value(g, "", VALUE_NODE);
    for (int i = N - 1; i >= 0; i--) {
        int32_t in = first + i, out = in + 1;
        graph_node_into(g, "A", "", "", 1, &in, 1, &out);
    }
    assert_int_equal(graph_sort(g, NULL), BRAID_OK);
    assert_int_equal(g->nodes[N - 1]->out[0], first + N);
    g->nodes[0]->in[0] = first + N;
    assert_int_equal(graph_sort(g, NULL), BRAID_MODEL);
    arena_free(a);
}

static void test_verify(void **state) {
    (void)state;
    arena *a = arena_new();
    graph *g = graph_new(a, "");
    int32_t x = graph_value(g, "x", VALUE_INPUT);
    node *n = graph_node(g, "A", "", "a", 1, &x, 1);
    assert_int_equal(graph_verify(g, NULL), BRAID_OK);
    n->in[0] = 99;
    assert_int_equal(graph_verify(g, NULL), BRAID_INTERNAL);
    n->in[0] = n->out[0];
    assert_int_equal(graph_verify(g, NULL), BRAID_INTERNAL);
    n->in[0] = -1;
    assert_int_equal(graph_verify(g, NULL), BRAID_OK);
    g->values[x]->type.rank = 9;
    assert_int_equal(graph_verify(g, NULL), BRAID_INTERNAL);
    g->values[x]->type = (tensor_type){.type = BRAID_INT8, .rank = 1, .dims = {-1}};
    assert_int_equal(graph_verify(g, NULL), BRAID_INTERNAL);
    g->values[x]->type.dims[0] = dim_from_symbol(0);
    assert_int_equal(graph_verify(g, NULL), BRAID_INTERNAL);
    graph_symbol(g, "N");
    assert_int_equal(graph_verify(g, NULL), BRAID_OK);
    arena_free(a);
}

static void test_tensor(void **state) {
    (void)state;
    arena *a = arena_new();
    tensor *t;
    assert_int_equal(tensor_new(a, BRAID_INT4, 1, (int64_t[]){3}, &t, NULL), BRAID_OK);
    assert_int_equal(t->bytes, 2);
    assert_int_equal(tensor_new(a, BRAID_STRING, 1, (int64_t[]){3}, &t, NULL), BRAID_OK);
    assert_int_equal(t->bytes, 3 * sizeof(char *));
    assert_int_equal(tensor_new(a, BRAID_INT8, 2, (int64_t[]){1 << 30, 1 << 30}, &t, NULL), BRAID_LIMIT);
    assert_int_equal(tensor_new(a, BRAID_INT8, 1, (int64_t[]){-1}, &t, NULL), BRAID_LIMIT);
    assert_int_equal(tensor_new(a, BRAID_TYPE_NONE, 0, NULL, &t, NULL), BRAID_LIMIT);
    file *f;
    assert_int_equal(file_from_memory("0123456789", 10, &f, NULL), BRAID_OK);
    tensor late = {.type = {BRAID_INT8, 1, {4}}, .bytes = 4, .source = f, .offset = 3};
    assert_int_equal(tensor_load(&late, a, NULL), BRAID_OK);
    assert_memory_equal(late.data, "3456", 4);
    late = (tensor){.type = {BRAID_INT8, 1, {4}}, .bytes = 4, .source = f, .offset = 7};
    assert_int_equal(tensor_load(&late, a, NULL), BRAID_IO);
    file_unref(f);
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_build),  cmocka_unit_test(test_symbols),    cmocka_unit_test(test_sort),
        cmocka_unit_test(test_cycles), cmocka_unit_test(test_long_chain), cmocka_unit_test(test_verify),
        cmocka_unit_test(test_tensor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
