/* Graph structure: names, scopes, order, attributes, subgraphs, constants, functions, versions. */
#include "pb_build.h"
#include <stdio.h>

static pb scalar(const char *name) {
    return pb_value(name, 1, 0, NULL);
}

static pb io_graph(void) {
    pb g = {0};
    pb_add(&g, GRAPH_INPUT, scalar("x"));
    pb_add(&g, GRAPH_OUTPUT, scalar("y"));
    return g;
}

static void with_node(pb *g, const char *type, const char *const *in, const char *const *out) {
    pb_add(g, GRAPH_NODE, pb_node(type, in, out));
}

static reading read_good(pb *m) {
    reading r = pb_read(m, NULL);
    if (r.status != BRAID_OK) fail_msg("%s", r.err.message);
    return r;
}

static void finish(reading *r, pb *m) {
    pb_close(r);
    pb_free(m);
}

/* ---- versions */

static pb model_ir(int64_t ir, const char *domain, int64_t opset) {
    pb m = {0};
    pb_int(&m, 1, ir);
    if (domain) pb_add(&m, MODEL_OPSET, pb_opset(domain, opset));
    pb_add(&m, MODEL_GRAPH, pb_small_graph());
    return m;
}

static void test_versions(void **state) {
    (void)state;
    for (int ir = 1; ir <= 14; ir++) pb_expect(model_ir(ir, "", 17), BRAID_OK, "");
    pb_expect(model_ir(0, "", 17), BRAID_MODEL, "version");
    pb_expect(model_ir(-1, "", 17), BRAID_MODEL, "version");
    pb_expect(model_ir(15, "", 17), BRAID_UNSUPPORTED, "IR version 15");
    pb_expect(model_ir(INT64_MAX, "", 17), BRAID_UNSUPPORTED, "IR version");
    pb_expect(model_ir(8, "", 1), BRAID_OK, "");
    pb_expect(model_ir(8, "ai.onnx", 28), BRAID_OK, "");
    pb_expect(model_ir(8, "", 29), BRAID_UNSUPPORTED, "opset 29");
    pb_expect(model_ir(8, "", 0), BRAID_MODEL, "opset 0");
    pb_expect(model_ir(8, NULL, 0), BRAID_MODEL, "does not import ai.onnx");
    pb_expect(model_ir(2, NULL, 0), BRAID_OK, "");
    pb m = model_ir(8, "", 13);
    pb_add(&m, MODEL_OPSET, pb_opset("no.such.domain", 9999)); /* unknown and unused */
    pb_expect(m, BRAID_OK, "");
}

/* ---- names and order */

static void test_names(void **state) {
    (void)state;
    pb g = io_graph();
    with_node(&g, "Relu", NAMES("x"), NAMES("y"));
    with_node(&g, "Relu", NAMES("x"), NAMES("y"));
    pb_expect(pb_model_of(g), BRAID_MODEL, "'y' is defined twice");
    g = io_graph();
    with_node(&g, "Split", NAMES("x"), NAMES("y", "y"));
    pb_expect(pb_model_of(g), BRAID_MODEL, "'y' is defined twice");
    g = io_graph();
    with_node(&g, "Relu", NAMES("x"), NAMES("x"));
    pb_expect(pb_model_of(g), BRAID_MODEL, "'x' is defined twice");
    g = io_graph();
    pb_add(&g, GRAPH_INPUT, scalar("x"));
    pb_expect(pb_model_of(g), BRAID_MODEL, "'x' is defined twice");
    g = io_graph();
    for (int i = 0; i < 2; i++) pb_add(&g, GRAPH_INITIALIZER, pb_tensor("w", 1, 0, NULL, "abcd", 4));
    pb_expect(pb_model_of(g), BRAID_MODEL, "'w' is defined twice");
    g = io_graph();
    pb_add(&g, GRAPH_INITIALIZER, pb_tensor("y", 1, 0, NULL, "abcd", 4));
    with_node(&g, "Relu", NAMES("x"), NAMES("y"));
    pb_expect(pb_model_of(g), BRAID_MODEL, "'y' is defined twice");
    g = io_graph();
    with_node(&g, "Relu", NAMES("z"), NAMES("y"));
    pb_expect(pb_model_of(g), BRAID_MODEL, "node 'y' (Relu-17): input 0: 'z' is not defined");
    g = io_graph();
    pb_expect(pb_model_of(g), BRAID_MODEL, "graph output 0: 'y' is not defined");
    g = io_graph();
    pb_add(&g, GRAPH_INITIALIZER, pb_tensor("", 1, 0, NULL, "abcd", 4));
    pb_expect(pb_model_of(g), BRAID_MODEL, "an initializer has no name");
    g = io_graph();
    pb_add(&g, GRAPH_INPUT, scalar(""));
    pb_expect(pb_model_of(g), BRAID_MODEL, "a graph input has no name");
    g = (pb){0};
    pb_add(&g, GRAPH_OUTPUT, scalar(""));
    pb_expect(pb_model_of(g), BRAID_MODEL, "a graph output has no name");
    g = io_graph();
    with_node(&g, "", NAMES("x"), NAMES("y"));
    pb_expect(pb_model_of(g), BRAID_MODEL, "no operator");
}

static void test_order(void **state) {
    (void)state;
    pb g = io_graph();
    with_node(&g, "Relu", NAMES("t"), NAMES("y"));
    with_node(&g, "Sigmoid", NAMES("x"), NAMES("t"));
    pb m = pb_model_of(g);
    reading r = read_good(&m);
    assert_string_equal(r.m->g->nodes[0]->type, "Sigmoid");
    finish(&r, &m);
    g = io_graph();
    with_node(&g, "Add", NAMES("x", "b"), NAMES("a"));
    with_node(&g, "Relu", NAMES("a"), NAMES("b"));
    with_node(&g, "Relu", NAMES("b"), NAMES("y"));
    pb_expect(pb_model_of(g), BRAID_MODEL, "cycle through node 'a' (Add), 'b' (Relu)");
    g = io_graph();
    with_node(&g, "Add", NAMES("x", "y"), NAMES("y"));
    pb_expect(pb_model_of(g), BRAID_MODEL, "cycle through node 'y' (Add)");
}

static void test_absent(void **state) {
    (void)state;
    pb g = io_graph();
    with_node(&g, "Unheard", NAMES("x", "", "x"), NAMES("", "y"));
    with_node(&g, "Unheard", NAMES("", "y"), NAMES("z", ""));
    pb m = pb_model_of(g);
    reading r = read_good(&m);
    node *n = r.m->g->nodes[0], *next = r.m->g->nodes[1];
    assert_null(n->op);
    assert_int_equal(n->in[1], -1);
    assert_int_equal(n->out[0], -1);
    assert_int_equal(next->in[0], -1);
    assert_int_equal(next->out[1], -1);
    finish(&r, &m);
}

static void test_inputs(void **state) {
    (void)state;
    /* an input with an initializer is a constant */
    pb g = io_graph();
    pb_add(&g, GRAPH_INPUT, scalar("w"));
    pb_add(&g, GRAPH_INITIALIZER, pb_tensor("w", 1, 0, NULL, "abcd", 4));
    with_node(&g, "Unheard", NAMES("x", "w"), NAMES("y"));
    pb m = pb_model_of(g);
    reading r = read_good(&m);
    assert_int_equal(r.m->g->n_inputs, 1);
    assert_int_equal(r.m->parameters, 1);
    assert_int_equal(r.m->parameter_bytes, 4);
    finish(&r, &m);
    /* symbols are shared by name; nodes keep hints */
    g = (pb){0};
    pb_add(&g, GRAPH_INPUT, pb_value("x", 1, 1, (int64_t[]){-1}));
    pb_expect(pb_model_of(g), BRAID_OK, "");
    g = (pb){0};
    pb_add(&g, GRAPH_INPUT, pb_value("x", 1, 1, (int64_t[]){-2}));
    pb_expect(pb_model_of(g), BRAID_MODEL, "'x': dim 0 is -2");
    g = (pb){0};
    pb_add(&g, GRAPH_INPUT, pb_value("x", 77, 0, NULL));
    pb_expect(pb_model_of(g), BRAID_MODEL, "'x': element type 77");
    g = (pb){0};
    pb_add(&g, GRAPH_INPUT, pb_value("x", 1, 9, (int64_t[]){1, 1, 1, 1, 1, 1, 1, 1, 1}));
    pb_expect(pb_model_of(g), BRAID_LIMIT, "'x': more than 8 dims");
    /* an impossible hint is no error */
    g = pb_small_graph();
    pb_add(&g, GRAPH_HINT, pb_value("y", 77, 9, (int64_t[]){1, 1, 1, 1, 1, 1, 1, 1, -9}));
    pb_expect(pb_model_of(g), BRAID_OK, "");
}

/* ---- attributes */

static pb node_with(pb attribute_message) {
    pb n = pb_node("Unheard", NAMES("x"), NAMES("y")), g = io_graph();
    pb_add(&n, NODE_ATTRIBUTE, attribute_message);
    pb_add(&g, GRAPH_NODE, n);
    return pb_model_of(g);
}

static void test_attributes(void **state) {
    (void)state;
    pb n = pb_node("Unheard", NAMES("x"), NAMES("y")), g = io_graph(), a = pb_attribute("f", 1);
    pb_float(&a, 2, 0.5f);
    pb_add(&n, NODE_ATTRIBUTE, a);
    a = pb_attribute("i", 0); /* no kind: taken from the content */
    pb_int(&a, 3, -7);
    pb_add(&n, NODE_ATTRIBUTE, a);
    a = pb_attribute("s", 3);
    pb_bytes(&a, 4, "a\0b", 3);
    pb_add(&n, NODE_ATTRIBUTE, a);
    a = pb_attribute("is", 7);
    pb_int(&a, 8, 1);
    pb_ints(&a, 8, 2, (int64_t[]){2, -3});
    pb_add(&n, NODE_ATTRIBUTE, a);
    a = pb_attribute("fs", 6);
    pb_float(&a, 7, 1);
    pb_bytes(&a, 7, (float[]){2, 3}, 8);
    pb_add(&n, NODE_ATTRIBUTE, a);
    a = pb_attribute("ss", 8);
    pb_text(&a, 9, "one");
    pb_text(&a, 9, "two");
    pb_add(&n, NODE_ATTRIBUTE, a);
    a = pb_attribute("none", 7);
    pb_add(&n, NODE_ATTRIBUTE, a);
    a = pb_attribute("tp", 13);
    pb_add(&a, 14, (pb){0});
    pb_add(&n, NODE_ATTRIBUTE, a);
    pb_add(&g, GRAPH_NODE, n);
    pb m = pb_model_of(g);
    reading r = read_good(&m);
    const node *x = r.m->g->nodes[0];
    const int64_t *ints;
    assert_int_equal(x->n_attributes, 8);
    assert_true(node_float(x, "f", 0) == 0.5f);
    assert_int_equal(node_int(x, "i", 0), -7);
    assert_int_equal(node_attribute(x, "s")->count, 3);
    assert_int_equal(node_ints(x, "is", &ints), 3);
    assert_int_equal(ints[2], -3);
    assert_int_equal(node_attribute(x, "fs")->count, 3);
    assert_true(node_attribute(x, "fs")->floats[2] == 3);
    assert_string_equal(node_attribute(x, "ss")->strings[1], "two");
    assert_int_equal(node_ints(x, "none", &ints), 0);
    assert_int_equal(node_attribute(x, "tp")->kind, ATTRIBUTE_OTHER);
    finish(&r, &m);
}

static void test_bad_attributes(void **state) {
    (void)state;
    pb_expect(node_with(pb_attribute("", 2)), BRAID_MODEL, "an attribute has no name");
    pb_expect(node_with(pb_attribute("a", 0)), BRAID_MODEL, "neither a type nor content");
    pb_expect(node_with(pb_attribute("a", 4)), BRAID_MODEL, "attribute 'a': it has no content");
    pb a = pb_attribute("a", 7);
    pb_int(&a, 3, 1);
    pb_expect(node_with(a), BRAID_MODEL, "its type is 7, but its content has type 2");
    a = pb_attribute("a", 2);
    pb_text(&a, 21, "outer");
    pb_expect(node_with(a), BRAID_MODEL, "refers to 'outer' outside of a function");
    a = pb_attribute("a", 8);
    pb_bytes(&a, 9, "x\0y", 3);
    pb_expect(node_with(a), BRAID_UNSUPPORTED, "holds a NUL");
    pb n = pb_node("Unheard", NAMES("x"), NAMES("y")), g = io_graph();
    for (int i = 0; i < 2; i++) {
        a = pb_attribute("twice", 2);
        pb_int(&a, 3, i);
        pb_add(&n, NODE_ATTRIBUTE, a);
    }
    pb_add(&g, GRAPH_NODE, n);
    pb_expect(pb_model_of(g), BRAID_MODEL, "attribute 'twice' is given twice");
    n = pb_node("Unheard", NAMES("x"), NAMES("y"));
    for (int i = 0; i < 1025; i++) pb_add(&n, NODE_ATTRIBUTE, pb_attribute("a", 2));
    g = io_graph();
    pb_add(&g, GRAPH_NODE, n);
    pb_expect(pb_model_of(g), BRAID_LIMIT, "too many");
}

/* ---- Constant */

static pb constant_node(pb attribute_message, const char *const *in, const char *const *out) {
    pb n = pb_node("Constant", in, out);
    if (attribute_message.n) pb_add(&n, NODE_ATTRIBUTE, attribute_message);
    return n;
}

static pb constant_model(pb attribute_message) {
    pb g = {0};
    pb_add(&g, GRAPH_NODE, constant_node(attribute_message, NO_NAMES, NAMES("y")));
    pb_add(&g, GRAPH_OUTPUT, scalar("y"));
    return pb_model_of(g);
}

static void expect_constant(pb attribute_message, braid_type type, int rank, const void *want, size_t bytes) {
    pb m = constant_model(attribute_message);
    reading r = read_good(&m);
    value *v = r.m->g->values[r.m->g->outputs[0]];
    assert_int_equal(r.m->g->n_nodes, 0);
    assert_int_equal(v->kind, VALUE_CONSTANT);
    assert_int_equal(v->type.type, type);
    assert_int_equal(v->type.rank, rank);
    assert_int_equal(v->constant->bytes, bytes);
    if (want) assert_memory_equal(v->constant->data, want, bytes);
    finish(&r, &m);
}

static void test_constants(void **state) {
    (void)state;
    pb a = pb_attribute("value", 4);
    pb_add(&a, 5, pb_tensor("", 1, 1, (int64_t[]){1}, "abcd", 4));
    expect_constant(a, BRAID_FLOAT32, 1, "abcd", 4);
    a = pb_attribute("value_float", 1);
    pb_float(&a, 2, 2);
    expect_constant(a, BRAID_FLOAT32, 0, (float[]){2}, 4);
    a = pb_attribute("value_floats", 6);
    pb_float(&a, 7, 2);
    expect_constant(a, BRAID_FLOAT32, 1, (float[]){2}, 4);
    a = pb_attribute("value_int", 2);
    pb_int(&a, 3, -2);
    expect_constant(a, BRAID_INT64, 0, (int64_t[]){-2}, 8);
    a = pb_attribute("value_ints", 7);
    expect_constant(a, BRAID_INT64, 1, NULL, 0);
    a = pb_attribute("value_string", 3);
    pb_text(&a, 4, "text");
    expect_constant(a, BRAID_STRING, 0, NULL, sizeof(char *));
    a = pb_attribute("value_strings", 8);
    pb_text(&a, 9, "one");
    pb_text(&a, 9, "two");
    expect_constant(a, BRAID_STRING, 1, NULL, 2 * sizeof(char *));
    pb sparse = {0};
    pb_add(&sparse, 1, pb_tensor("", 2, 1, (int64_t[]){1}, "z", 1));
    pb_add(&sparse, 2, pb_tensor("", 7, 1, (int64_t[]){1}, (int64_t[]){1}, 8));
    pb_ints(&sparse, 3, 1, (int64_t[]){3});
    a = pb_attribute("sparse_value", 11);
    pb_add(&a, 22, sparse);
    expect_constant(a, BRAID_UINT8, 1, "\0z", 3);
    pb_expect(constant_model((pb){0}), BRAID_MODEL, "has no value");
    a = pb_attribute("value", 2);
    pb_int(&a, 3, 1);
    pb_expect(constant_model(a), BRAID_MODEL, "attribute 'value' has type 2");
    pb g = io_graph();
    a = pb_attribute("value_int", 2);
    pb_int(&a, 3, 1);
    pb_add(&g, GRAPH_NODE, constant_node(a, NAMES("x"), NAMES("y")));
    pb_expect(pb_model_of(g), BRAID_MODEL, "it has inputs");
}

/* ---- subgraphs */

static pb branch(const char *reads, const char *makes) {
    pb g = {0};
    if (makes) with_node(&g, "Unheard", NAMES(reads), NAMES(makes));
    pb_add(&g, GRAPH_OUTPUT, scalar(makes ? makes : reads));
    return g;
}

static pb if_node(pb then_graph, pb else_graph) {
    pb n = pb_node("If", NAMES("x"), NAMES("y")), a = pb_attribute("then_branch", 5);
    pb_add(&a, 6, then_graph);
    pb_add(&n, NODE_ATTRIBUTE, a);
    a = pb_attribute("else_branch", 5);
    pb_add(&a, 6, else_graph);
    pb_add(&n, NODE_ATTRIBUTE, a);
    return n;
}

static void test_subgraphs(void **state) {
    (void)state;
    pb g = io_graph();
    pb_add(&g, GRAPH_INITIALIZER, pb_tensor("w", 1, 0, NULL, "abcd", 4));
    pb_add(&g, GRAPH_NODE, if_node(branch("late", "t"), branch("w", NULL)));
    with_node(&g, "Unheard", NAMES("x"), NAMES("late"));
    pb m = pb_model_of(g);
    reading r = read_good(&m);
    /* the node that a branch reads comes first now */
    assert_string_equal(r.m->g->nodes[0]->type, "Unheard");
    const node *n = r.m->g->nodes[1];
    const graph *then_graph = node_attribute(n, "then_branch")->g, *else_graph = node_attribute(n, "else_branch")->g;
    assert_ptr_equal(then_graph->parent, r.m->g);
    const value *late = then_graph->values[then_graph->nodes[0]->in[0]];
    assert_int_equal(late->kind, VALUE_OUTER);
    assert_string_equal(r.m->g->values[late->outer]->name, "late");
    assert_int_equal(else_graph->values[else_graph->outputs[0]]->kind, VALUE_CONSTANT);
    finish(&r, &m);
    g = io_graph();
    pb_add(&g, GRAPH_NODE, if_node(branch("x", "t"), branch("x", "t"))); /* siblings may use one name */
    pb_expect(pb_model_of(g), BRAID_OK, "");
    g = io_graph();
    with_node(&g, "Unheard", NAMES("x"), NAMES("t"));
    pb_add(&g, GRAPH_NODE, if_node(branch("x", "t"), branch("x", NULL)));
    pb_expect(pb_model_of(g), BRAID_MODEL, "'t' hides a value of the outer graph");
    g = io_graph();
    pb_add(&g, GRAPH_NODE, if_node(branch("nothing", "t"), branch("x", NULL)));
    pb_expect(pb_model_of(g), BRAID_MODEL, "'nothing' is not defined");
    g = io_graph();
    pb_add(&g, GRAPH_NODE, if_node(branch("y", "t"), branch("x", NULL)));
    pb_expect(pb_model_of(g), BRAID_MODEL, "cycle through node 'y' (If)");
    /* an initializer that is also an input of a subgraph */
    pb body = branch("i", "t");
    pb_add(&body, GRAPH_INPUT, scalar("i"));
    pb_add(&body, GRAPH_INITIALIZER, pb_tensor("i", 1, 0, NULL, "abcd", 4));
    g = io_graph();
    pb_add(&g, GRAPH_NODE, if_node(body, branch("x", NULL)));
    pb_expect(pb_model_of(g), BRAID_MODEL, "'i' is defined twice");
}

/* ---- functions */

static pb function_of(const char *name, const char *const *in, const char *const *out, pb body_node) {
    pb f = {0};
    pb_text(&f, 1, name);
    pb_text(&f, 10, "local");
    for (; *in; in++) pb_text(&f, 4, *in);
    for (; *out; out++) pb_text(&f, 5, *out);
    if (body_node.n) pb_add(&f, 7, body_node);
    pb_add(&f, 9, pb_opset("", 13));
    pb_add(&f, 9, pb_opset("local", 1));
    return f;
}

static pb call_of(const char *name, const char *const *in, const char *const *out) {
    pb n = pb_node(name, in, out);
    pb_text(&n, 7, "local");
    return n;
}

static pb model_calling(pb call_node, pb function_message) {
    pb g = io_graph();
    pb_add(&g, GRAPH_NODE, call_node);
    pb m = pb_model_of(g);
    if (function_message.n) pb_add(&m, MODEL_FUNCTION, function_message);
    return m;
}

static void test_function(void **state) {
    (void)state;
    pb a = pb_attribute("k", 2), n = pb_node("Unheard", NAMES("p"), NAMES("t"));
    pb_text(&a, 21, "given");
    pb_add(&n, NODE_ATTRIBUTE, a);
    a = pb_attribute("d", 2);
    pb_text(&a, 21, "defaulted");
    pb_add(&n, NODE_ATTRIBUTE, a);
    a = pb_attribute("m", 2);
    pb_text(&a, 21, "missing");
    pb_add(&n, NODE_ATTRIBUTE, a);
    pb f = function_of("F", NAMES("p", "q"), NAMES("r", "p", "r"), n);
    pb_add(&f, 7, pb_node("Unheard", NAMES("t", "q"), NAMES("r")));
    a = pb_attribute("defaulted", 2);
    pb_int(&a, 3, 5);
    pb_add(&f, 11, a);
    pb c = call_of("F", NAMES("x"), NAMES("y", "through", "again"));
    a = pb_attribute("given", 2);
    pb_int(&a, 3, 4);
    pb_add(&c, NODE_ATTRIBUTE, a);
    pb m = model_calling(c, f);
    reading r = read_good(&m);
    graph *g = r.m->g;
    assert_int_equal(g->n_nodes, 4);
    const node *first = NULL, *second = NULL;
    int copies = 0;
    for (int i = 0; i < 4; i++) {
        const node *at = g->nodes[i];
        if (strcmp(at->type, "Identity") == 0)
            copies++;
        else if (at->n_in == 2)
            second = at;
        else
            first = at;
    }
    assert_int_equal(copies, 2);
    assert_int_equal(first->opset, 13);
    assert_int_equal(node_int(first, "k", 0), 4);
    assert_int_equal(node_int(first, "d", 0), 5);
    assert_null(node_attribute(first, "m"));
    assert_string_equal(g->values[first->out[0]]->name, "y/t");
    assert_int_equal(second->in[1], -1);
    assert_int_equal(second->out[0], g->outputs[0]);
    finish(&r, &m);
}

static void test_bad_functions(void **state) {
    (void)state;
    pb_expect(model_calling(call_of("F", NAMES("x"), NAMES("y")), (pb){0}), BRAID_OK, "");
    pb_expect(model_calling(call_of("F", NAMES("x"), NAMES("y")),
                            function_of("F", NAMES("p"), NAMES("r"), call_of("F", NAMES("p"), NAMES("r")))),
              BRAID_MODEL, "function 'F' calls itself");
    pb m = model_calling(call_of("A", NAMES("x"), NAMES("y")),
                         function_of("A", NAMES("p"), NAMES("r"), call_of("B", NAMES("p"), NAMES("r"))));
    pb_add(&m, MODEL_FUNCTION, function_of("B", NAMES("p"), NAMES("r"), call_of("A", NAMES("p"), NAMES("r"))));
    pb_expect(m, BRAID_MODEL, "function 'A' calls itself");
    /* through a subgraph */
    pb g = {0}, n = pb_node("If", NAMES("p"), NAMES("r")), a = pb_attribute("then_branch", 5);
    pb_add(&g, GRAPH_NODE, call_of("F", NAMES("p"), NAMES("s")));
    pb_add(&g, GRAPH_OUTPUT, scalar("s"));
    pb_add(&a, 6, g);
    pb_add(&n, NODE_ATTRIBUTE, a);
    pb_expect(model_calling(call_of("F", NAMES("x"), NAMES("y")), function_of("F", NAMES("p"), NAMES("r"), n)),
              BRAID_MODEL, "function 'F' calls itself");
    pb_expect(model_calling(call_of("F", NAMES("x", "x"), NAMES("y")),
                            function_of("F", NAMES("p"), NAMES("r"), pb_node("Unheard", NAMES("p"), NAMES("r")))),
              BRAID_MODEL, "the function has 1 inputs, the node has 2");
    pb_expect(model_calling(call_of("F", NAMES("x"), NAMES("y", "z")),
                            function_of("F", NAMES("p"), NAMES("r"), pb_node("Unheard", NAMES("p"), NAMES("r")))),
              BRAID_MODEL, "the function has 1 outputs, the node has 2");
    pb_expect(model_calling(call_of("F", NAMES("x"), NAMES("y")),
                            function_of("F", NAMES("p"), NAMES("r"), pb_node("Unheard", NAMES("x"), NAMES("r")))),
              BRAID_MODEL, "'x' is not defined"); /* the caller's names are not seen */
    pb_expect(model_calling(call_of("F", NAMES("x"), NAMES("y")), function_of("F", NAMES("p"), NAMES("r"), (pb){0})),
              BRAID_MODEL, "'r' is not defined");
    m = model_calling(call_of("F", NAMES("x"), NAMES("y")), function_of("F", NAMES("p"), NAMES("p"), (pb){0}));
    pb_add(&m, MODEL_FUNCTION, function_of("F", NAMES("p"), NAMES("p"), (pb){0}));
    pb_expect(m, BRAID_MODEL, "function 'F' is defined twice");
    pb_expect(model_calling(call_of("F", NAMES("y"), NAMES("y")), function_of("F", NAMES("p"), NAMES("p"), (pb){0})),
              BRAID_MODEL, "cycle through node 'y' (Identity)");
    m = model_calling(call_of("F", NAMES("x"), NAMES("y")), (pb){0});
    for (int i = 0; i < 10001; i++) pb_raw(&m, "\xca\x01\x00", 3);
    pb_expect(m, BRAID_LIMIT, "more than 10000 functions");
}

/* F0 calls F1 `calls` times, F1 calls F2, and so on. */
static pb call_chain(int length, int calls) {
    pb m = model_calling(call_of("F0", NAMES("x"), NAMES("y")), (pb){0});
    for (int i = 0; i < length; i++) {
        char name[16], next[16], made[16];
        snprintf(name, sizeof name, "F%d", i);
        snprintf(next, sizeof next, "F%d", i + 1);
        pb f = function_of(name, NAMES("p"), NAMES("p"), (pb){0});
        for (int k = 0; k < calls && i + 1 < length; k++) {
            snprintf(made, sizeof made, "t%d", k);
            pb_add(&f, 7, call_of(next, NAMES("p"), NAMES(made)));
        }
        pb_add(&m, MODEL_FUNCTION, f);
    }
    return m;
}

static void test_call_depth(void **state) {
    (void)state;
    pb_expect(call_chain(100, 1), BRAID_OK, "");
    pb_expect(call_chain(101, 1), BRAID_LIMIT, "calls are nested deeper than 100");
    pb_expect(call_chain(9000, 1), BRAID_LIMIT, "calls are nested deeper than 100");
    pb_expect(call_chain(60, 10), BRAID_LIMIT, ""); /* 10^60 nodes if it were let */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions),       cmocka_unit_test(test_names),         cmocka_unit_test(test_order),
        cmocka_unit_test(test_absent),         cmocka_unit_test(test_inputs),        cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_bad_attributes), cmocka_unit_test(test_constants),     cmocka_unit_test(test_subgraphs),
        cmocka_unit_test(test_function),       cmocka_unit_test(test_bad_functions), cmocka_unit_test(test_call_depth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
