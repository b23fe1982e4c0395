/* Every allocation of a load fails once, and then for good; every field of a model is left out once. */
#include "pb_build.h"

static pb rich_model(void) {
    pb g = {0}, body = {0};
    pb_add(&g, GRAPH_INPUT, pb_value("x", 1, 1, (int64_t[]){-1}));
    pb_add(&g, GRAPH_INITIALIZER, pb_tensor("w", 1, 1, (int64_t[]){1}, "abcd", 4));
    pb strings = pb_tensor("s", 8, 1, (int64_t[]){1}, NULL, 0);
    pb_text(&strings, 6, "text");
    pb_add(&g, GRAPH_INITIALIZER, strings);
    pb sparse = {0};
    pb_add(&sparse, 1, pb_tensor("d", 2, 1, (int64_t[]){1}, "z", 1));
    pb_add(&sparse, 2, pb_tensor("", 7, 1, (int64_t[]){1}, (int64_t[]){1}, 8));
    pb_ints(&sparse, 3, 1, (int64_t[]){3});
    pb_add(&g, GRAPH_SPARSE, sparse);
    pb_add(&g, GRAPH_HINT, pb_value("t", 1, 1, (int64_t[]){-1}));
    pb a = pb_attribute("value_ints", 7), n = pb_node("Constant", NO_NAMES, NAMES("c"));
    pb_ints(&a, 8, 2, (int64_t[]){1, 2});
    pb_add(&n, NODE_ATTRIBUTE, a);
    pb_add(&g, GRAPH_NODE, n);
    /* out of order, so that it is sorted */
    pb_add(&g, GRAPH_NODE, pb_node("Add", NAMES("t", "w"), NAMES("u")));
    n = pb_node("F", NAMES("x"), NAMES("t"));
    pb_text(&n, 7, "local");
    pb_add(&g, GRAPH_NODE, n);
    pb_add(&body, GRAPH_NODE, pb_node("Relu", NAMES("u"), NAMES("inner")));
    pb_add(&body, GRAPH_OUTPUT, pb_value("inner", 1, -1, NULL));
    n = pb_node("Unheard", NAMES("c"), NAMES("y"));
    a = pb_attribute("body", 5);
    pb_add(&a, 6, body);
    pb_add(&n, NODE_ATTRIBUTE, a);
    pb_add(&g, GRAPH_NODE, n);
    pb_add(&g, GRAPH_OUTPUT, pb_value("y", 1, -1, NULL));
    pb m = pb_model_of(g), f = {0};
    pb_text(&f, 1, "F");
    pb_text(&f, 10, "local");
    pb_text(&f, 4, "p");
    pb_text(&f, 5, "q");
    pb_add(&f, 7, pb_node("Relu", NAMES("p"), NAMES("q")));
    pb_add(&f, 9, pb_opset("", 13));
    pb_add(&m, MODEL_FUNCTION, f);
    return m;
}

static braid_status load_once(const pb *m) {
    arena *memory = arena_new();
    file *source = NULL, **files = NULL;
    size_t n_files = 0;
    onnx_model *model;
    braid_error err = {0};
    braid_status s = memory ? file_from_memory(m->data, m->n, &source, &err) : BRAID_HOST_MEMORY;
    if (s == BRAID_OK) s = onnx_read(source, &(onnx_options){0}, memory, &model, &files, &n_files, &err);
    file_unref(source);
    arena_free(memory);
    return s;
}

static void test_allocations(void **state) {
    (void)state;
    pb m = rich_model();
    uint64_t before = mem_count();
    assert_int_equal(load_once(&m), BRAID_OK);
    uint64_t total = mem_count() - before;
    assert_true(total > 5);
    for (int forever = 0; forever <= 1; forever++)
        for (uint64_t n = 1; n <= total; n++) {
            mem_fail_after(n, forever);
            braid_status s = load_once(&m);
            mem_fail_after(0, false);
            if (s != BRAID_HOST_MEMORY) fail_msg("allocation %d of %d: %s", (int)n, (int)total, braid_status_name(s));
            assert_int_equal(load_once(&m), BRAID_OK);
        }
    pb_free(&m);
}

/* Leaves out the i-th field at every depth: whatever comes of it, it is a status and not a crash. */
static void ablate(const pb *whole, size_t from, size_t to, int depth, int *tried);

static void try_without(const pb *whole, size_t from, size_t to, int *tried) {
    pb m = {0};
    /* lengths of the messages around it would be wrong: the field is made unknown instead */
    pb_raw(&m, whole->data, whole->n);
    m.data[from] = (uint8_t)((m.data[from] & 7) | 15 << 3 | (m.data[from] & 0x80));
    (void)to;
    braid_status s = load_once(&m);
    assert_true(s != BRAID_INTERNAL);
    ++*tried;
    pb_free(&m);
}

static void ablate(const pb *whole, size_t from, size_t to, int depth, int *tried) {
    size_t at = from;
    while (at + 1 < to) {
        size_t start = at;
        int type = whole->data[at] & 7;
        while (at < to && whole->data[at++] & 0x80) {
        }
        uint64_t length = 0;
        if (type == 0 || type == 2)
            for (int shift = 0; at < to; shift += 7) {
                uint8_t byte = whole->data[at++];
                length |= (uint64_t)(byte & 0x7f) << (shift & 63);
                if (!(byte & 0x80)) break;
            }
        if (type == 0) length = 0;
        if (type == 1) length = 8;
        if (type == 5) length = 4;
        if ((type != 0 && type != 1 && type != 2 && type != 5) || length > to - at) return; /* not a message */
        try_without(whole, start, at, tried);
        if (type == 2 && depth < 12) ablate(whole, at, at + (size_t)length, depth + 1, tried);
        at += (size_t)length;
    }
}

static void test_ablation(void **state) {
    (void)state;
    pb m = rich_model();
    int tried = 0;
    ablate(&m, 0, m.n, 0, &tried);
    assert_true(tried > 80);
    pb_free(&m);
}

/* Every byte takes a few other values. */
static void test_flips(void **state) {
    (void)state;
    pb m = rich_model();
    const uint8_t masks[] = {0x01, 0x08, 0x80, 0xff};
    for (size_t i = 0; i < m.n; i++)
        for (size_t k = 0; k < COUNT_OF(masks); k++) {
            m.data[i] ^= masks[k];
            assert_true(load_once(&m) != BRAID_INTERNAL);
            m.data[i] ^= masks[k];
        }
    pb_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allocations),
        cmocka_unit_test(test_ablation),
        cmocka_unit_test(test_flips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
