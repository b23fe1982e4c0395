/* Hostile wire format: lengths, varints, tags, depth, duplicates. */
#include "pb_build.h"

static void test_good(void **state) {
    (void)state;
    pb_expect(pb_model_of(pb_small_graph()), BRAID_OK, "");
}

static void test_empty(void **state) {
    (void)state;
    pb m = {0};
    pb_expect(m, BRAID_FORMAT, "empty");
    pb_int(&m, 1, 8);
    pb_expect(m, BRAID_MODEL, "no graph");
    m = (pb){0};
    pb_text(&m, 2, "producer");
    pb_expect(m, BRAID_MODEL, "not an ONNX model");
    m = (pb){0};
    pb_raw(&m, "\x89PNG\r\n\x1a\n", 8);
    pb_expect(m, BRAID_FORMAT, "byte");
}

static void test_every_prefix(void **state) {
    (void)state;
    pb m = pb_model_of(pb_small_graph());
    for (size_t n = 0; n < m.n; n++) {
        pb part = {0};
        pb_raw(&part, m.data, n);
        reading r = pb_read(&part, NULL);
        assert_int_not_equal(r.status, BRAID_OK);
        assert_true(r.status == BRAID_FORMAT || r.status == BRAID_MODEL);
        assert_true(r.err.message[0] != 0);
        pb_close(&r);
        pb_free(&part);
    }
    pb_free(&m);
}

/* A varint of n bytes in the place of ir_version. */
static pb with_varint(int n, uint8_t last) {
    pb m = {0};
    pb_tag(&m, 5, 0);
    for (int i = 0; i + 1 < n; i++) pb_raw(&m, "\x80", 1);
    pb_raw(&m, &last, 1);
    pb rest = pb_model_of(pb_small_graph());
    pb_raw(&m, rest.data, rest.n);
    pb_free(&rest);
    return m;
}

static void test_varints(void **state) {
    (void)state;
    for (int n = 1; n <= 9; n++) pb_expect(with_varint(n, 1), BRAID_OK, "");
    pb_expect(with_varint(10, 1), BRAID_OK, "");
    pb_expect(with_varint(10, 2), BRAID_FORMAT, "more than 64 bits");
    pb_expect(with_varint(11, 1), BRAID_FORMAT, "varint");
    pb m = {0};
    pb_raw(&m, "\x08\x80", 2);
    pb_expect(m, BRAID_FORMAT, "cut short");
}

static pb with_bytes(const void *bytes, size_t n) {
    pb m = pb_model_of(pb_small_graph());
    pb_raw(&m, bytes, n);
    return m;
}

static void test_tags(void **state) {
    (void)state;
    pb_expect(with_bytes("\x00\x01", 2), BRAID_FORMAT, "field number 0");
    pb_expect(with_bytes("\xa3\x06\xa4\x06", 4), BRAID_FORMAT, "wire types");
    pb_expect(with_bytes("\xa4\x06", 2), BRAID_FORMAT, "wire types");
    pb_expect(with_bytes("\xa6\x06\x01", 3), BRAID_FORMAT, "wire types");
    pb_expect(with_bytes("\xa7\x06\x01", 3), BRAID_FORMAT, "wire types");
    pb_expect(with_bytes("\xf8\xff\xff\xff\x0f\x01", 6), BRAID_OK, ""); /* the largest field number */
    pb_expect(with_bytes("\xf8\xff\xff\xff\x1f\x01", 6), BRAID_FORMAT, "32 bits");
    pb_expect(with_bytes("\xf8\xff\xff\xff\xff\x00\x01", 7), BRAID_FORMAT, "32 bits");
    pb_expect(with_bytes("\xa5\x06\x01\x02\x03", 5), BRAID_FORMAT, "cut short");
    pb_expect(with_bytes("\xa1\x06\x01\x02\x03\x04\x05\x06\x07", 9), BRAID_FORMAT, "cut short");
    pb_expect(with_bytes("\xa1\x06\x01\x02\x03\x04\x05\x06\x07\x08", 10), BRAID_OK, "");
}

static void test_lengths(void **state) {
    (void)state;
    const uint64_t bad[] = {
        5,         6, 0x7fffffff, 0x80000000u, 0xffffffffu, (uint64_t)1 << 32, (uint64_t)INT64_MAX, (uint64_t)1 << 63,
        UINT64_MAX};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        pb m = pb_model_of(pb_small_graph());
        pb_tag(&m, 100, 2);
        pb_varint(&m, bad[i]);
        pb_raw(&m, "abcd", 4);
        pb_expect(m, BRAID_FORMAT, "beyond the end");
    }
    pb m = pb_model_of(pb_small_graph());
    pb_bytes(&m, 100, "abcd", 4);
    pb_expect(m, BRAID_OK, "");
    /* an inner length that reaches beyond its message but not beyond the file */
    pb g = {0};
    pb_tag(&g, GRAPH_NODE, 2);
    pb_varint(&g, 3);
    pb_raw(&g, "\x0a", 1);
    m = pb_model_of(g);
    pb_text(&m, 2, "more bytes follow");
    pb_expect(m, BRAID_FORMAT, "beyond the end");
}

static void test_wrong_wire_type(void **state) {
    (void)state;
    pb m = {0};
    pb_text(&m, 1, "eight");
    pb_expect(m, BRAID_FORMAT, "field 1 has wire type 2, expected 0");
    m = (pb){0};
    pb_int(&m, 1, 8);
    pb_int(&m, MODEL_GRAPH, 3);
    pb_expect(m, BRAID_FORMAT, "field 7 has wire type 0, expected 2");
}

static void test_duplicates(void **state) {
    (void)state;
    /* the last one counts */
    pb m = {0};
    pb_int(&m, 1, 99);
    pb_int(&m, 1, 8);
    pb_add(&m, MODEL_GRAPH, (pb){0});
    pb_add(&m, MODEL_OPSET, pb_opset("", 17));
    pb_add(&m, MODEL_OPSET, pb_opset("", 13));
    pb_add(&m, MODEL_GRAPH, pb_small_graph());
    reading r = pb_read(&m, NULL);
    assert_int_equal(r.status, BRAID_OK);
    assert_int_equal(r.m->g->n_nodes, 1);
    assert_int_equal(r.m->g->nodes[0]->opset, 13);
    pb_close(&r);
    pb_free(&m);
    /* a dim that is a name, then a number, then a name */
    pb dim = {0}, shape = {0}, dense = {0}, typed = {0}, info = {0};
    pb_text(&dim, 2, "A");
    pb_int(&dim, 1, 4);
    pb_text(&dim, 2, "B");
    pb_add(&shape, 1, dim);
    pb_int(&dense, 1, 1);
    pb_add(&dense, 2, shape);
    pb_add(&typed, 4, (pb){0}); /* a sequence first, then the tensor */
    pb_add(&typed, 1, dense);
    pb_text(&info, 1, "q");
    pb_text(&info, 1, "x");
    pb_add(&info, 2, typed);
    pb g = {0};
    pb_add(&g, GRAPH_INPUT, info);
    pb_add(&g, GRAPH_OUTPUT, pb_value("x", 1, -1, NULL));
    m = pb_model_of(g);
    r = pb_read(&m, NULL);
    assert_int_equal(r.status, BRAID_OK);
    int64_t d = r.m->g->values[r.m->g->inputs[0]]->type.dims[0];
    assert_true(dim_is_symbol(d));
    assert_string_equal(r.m->g->symbols[dim_symbol(d)], "B");
    pb_close(&r);
    pb_free(&m);
}

/* `depth` Ifs around each other: three messages each. */
static pb nested_ifs(int depth) {
    pb g = {0};
    pb_add(&g, GRAPH_OUTPUT, pb_value("c", 9, 0, NULL));
    for (int i = 0; i < depth; i++) {
        pb attribute_message = pb_attribute("then_branch", 5), node_message = pb_node("If", NAMES("c"), NO_NAMES);
        pb_add(&attribute_message, 6, g);
        pb_add(&node_message, NODE_ATTRIBUTE, attribute_message);
        g = (pb){0};
        pb_add(&g, GRAPH_NODE, node_message);
        pb_add(&g, GRAPH_OUTPUT, pb_value("c", 9, 0, NULL));
    }
    pb_add(&g, GRAPH_INPUT, pb_value("c", 9, 0, NULL));
    return pb_model_of(g);
}

static void test_depth(void **state) {
    (void)state;
    pb_expect(nested_ifs(31), BRAID_OK, "");
    pb_expect(nested_ifs(32), BRAID_OK, "");
    pb_expect(nested_ifs(33), BRAID_LIMIT, "nested deeper than 32");
    pb_expect(nested_ifs(1000), BRAID_LIMIT, "nested deeper");
    /* a type of types: skipped without descending */
    pb t = {0};
    for (int i = 0; i < 2000; i++) {
        pb outer = {0};
        pb_add(&outer, 4, t);
        t = (pb){0};
        pb_add(&t, 1, outer);
    }
    pb info = {0}, g = {0};
    pb_text(&info, 1, "s");
    pb_add(&info, 2, t);
    pb_add(&g, GRAPH_INPUT, info);
    pb_expect(pb_model_of(g), BRAID_OK, "");
    /* an unknown field of a million nested messages */
    enum { DEEP = 1000000 };
    pb deep = {0};
    for (int i = 0; i < DEEP; i++) pb_raw(&deep, "\xa2\x06\x00", 3);
    pb m = pb_model_of(pb_small_graph());
    pb_add(&m, 100, deep);
    pb_expect(m, BRAID_OK, "");
}

static void test_bombs(void **state) {
    (void)state;
    enum { MANY = 500000 };
    /* empty submessages */
    pb g = {0};
    for (int i = 0; i < MANY; i++) pb_raw(&g, "\x6a\x00", 2); /* value_info */
    pb_expect(pb_model_of(g), BRAID_OK, "");
    g = (pb){0};
    for (int i = 0; i < MANY; i++) pb_raw(&g, "\x0a\x00", 2); /* node */
    pb_expect(pb_model_of(g), BRAID_MODEL, "no operator");
    g = (pb){0};
    for (int i = 0; i < MANY; i++) pb_raw(&g, "\x2a\x00", 2); /* initializer */
    pb_expect(pb_model_of(g), BRAID_MODEL, "element type");
    pb m = pb_model_of(pb_small_graph());
    for (int i = 0; i < MANY; i++) pb_raw(&m, "\x42\x02\x0a\x00", 4); /* opset_import without a version */
    pb_expect(m, BRAID_MODEL, "opset 0");
    /* a node with many absent inputs decodes to four bytes for each two; the operator is one that nothing rewrites */
    pb n = {0};
    for (int i = 0; i < MANY; i++) pb_raw(&n, "\x0a\x00", 2);
    pb_text(&n, 4, "NoSuchOperator");
    pb_text(&n, 2, "y");
    g = (pb){0};
    pb_add(&g, GRAPH_NODE, n);
    pb_expect(pb_model_of(g), BRAID_OK, "");
}

static void test_names(void **state) {
    (void)state;
    char *longest = malloc(65538);
    memset(longest, 'n', 65537);
    longest[65537] = 0;
    pb g = {0};
    pb_add(&g, GRAPH_INPUT, pb_value(longest + 1, 1, 0, NULL));
    pb_expect(pb_model_of(g), BRAID_OK, "");
    g = (pb){0};
    pb_add(&g, GRAPH_INPUT, pb_value(longest, 1, 0, NULL));
    pb_expect(pb_model_of(g), BRAID_LIMIT, "65537");
    free(longest);
    pb info = {0};
    pb_bytes(&info, 1, "a\0b", 3);
    g = (pb){0};
    pb_add(&g, GRAPH_INPUT, info);
    pb_expect(pb_model_of(g), BRAID_MODEL, "NUL");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_every_prefix),
        cmocka_unit_test(test_varints),
        cmocka_unit_test(test_tags),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_wrong_wire_type),
        cmocka_unit_test(test_duplicates),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_bombs),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
