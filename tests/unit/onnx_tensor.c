/* TensorProto: every encoding, exact lengths, external files, sparse tensors. */
#include "pb_build.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* The tensor as an initializer of a model. */
static pb model_with(pb tensor_message) {
    pb g = {0};
    pb_add(&g, GRAPH_INITIALIZER, tensor_message);
    pb_add(&g, GRAPH_OUTPUT, pb_value("w", 0, -1, NULL));
    return pb_model_of(g);
}

static void expect_content(pb tensor_message, const void *want, size_t bytes) {
    pb m = model_with(tensor_message);
    reading r = pb_read(&m, NULL);
    if (r.status != BRAID_OK) fail_msg("%s", r.err.message);
    tensor *t = r.m->g->values[r.m->g->outputs[0]]->constant;
    assert_int_equal(tensor_load(t, r.memory, NULL), BRAID_OK);
    assert_int_equal(t->bytes, bytes);
    assert_memory_equal(t->data, want, bytes);
    pb_close(&r);
    pb_free(&m);
}

static pb head(int type, int64_t n) {
    return pb_tensor("w", type, 1, &n, NULL, 0);
}

static pb with_ints(int type, int64_t n, uint32_t field, int count, const int64_t *v) {
    pb m = head(type, n);
    pb_ints(&m, field, count, v);
    return m;
}

static void test_typed(void **state) {
    (void)state;
    pb m = head(1, 3);
    pb_bytes(&m, 4, (float[]){1.5f, -2}, 8); /* packed, then a single one */
    pb_float(&m, 4, 3);
    expect_content(m, (float[]){1.5f, -2, 3}, 12);
    m = head(11, 1);
    pb_bytes(&m, 10, (double[]){0.1}, 8);
    expect_content(m, (double[]){0.1}, 8);
    m = head(14, 1);
    pb_bytes(&m, 4, (float[]){1, 2}, 8);
    expect_content(m, (float[]){1, 2}, 8);
    m = head(15, 1);
    pb_bytes(&m, 10, (double[]){1, 2}, 16);
    expect_content(m, (double[]){1, 2}, 16);
    expect_content(with_ints(6, 2, 5, 2, (int64_t[]){-1, INT32_MAX}), (int32_t[]){-1, INT32_MAX}, 8);
    expect_content(with_ints(5, 2, 5, 2, (int64_t[]){-32768, 32767}), (int16_t[]){-32768, 32767}, 4);
    expect_content(with_ints(4, 2, 5, 2, (int64_t[]){0, 65535}), (uint16_t[]){0, 65535}, 4);
    expect_content(with_ints(3, 2, 5, 2, (int64_t[]){-128, 127}), (int8_t[]){-128, 127}, 2);
    expect_content(with_ints(2, 2, 5, 2, (int64_t[]){0, 255}), (uint8_t[]){0, 255}, 2);
    expect_content(with_ints(9, 3, 5, 3, (int64_t[]){0, 1, 2}), (uint8_t[]){0, 1, 1}, 3);
    expect_content(with_ints(10, 2, 5, 2, (int64_t[]){0x3c00, 0xfc00}), (uint16_t[]){0x3c00, 0xfc00}, 4);
    expect_content(with_ints(16, 1, 5, 1, (int64_t[]){0x3f80}), (uint16_t[]){0x3f80}, 2);
    expect_content(with_ints(17, 2, 5, 2, (int64_t[]){0x7e, 0x80}), (uint8_t[]){0x7e, 0x80}, 2);
    expect_content(with_ints(7, 2, 7, 2, (int64_t[]){INT64_MIN, INT64_MAX}), (int64_t[]){INT64_MIN, INT64_MAX}, 16);
    expect_content(with_ints(12, 2, 11, 2, (int64_t[]){0, UINT32_MAX}), (uint32_t[]){0, UINT32_MAX}, 8);
    expect_content(with_ints(13, 1, 11, 1, (int64_t[]){-1}), (uint64_t[]){UINT64_MAX}, 8);
    expect_content(with_ints(22, 3, 5, 2, (int64_t[]){0x21, 0x03}), (uint8_t[]){0x21, 0x03}, 2);
    expect_content(with_ints(26, 5, 5, 2, (int64_t[]){0xe4, 1}), (uint8_t[]){0xe4, 1}, 2);
}

static void test_strings(void **state) {
    (void)state;
    pb m = head(8, 2);
    pb_text(&m, 6, "one");
    pb_text(&m, 6, "");
    pb model = model_with(m);
    reading r = pb_read(&model, NULL);
    assert_int_equal(r.status, BRAID_OK);
    const char **s = r.m->g->values[r.m->g->outputs[0]]->constant->data;
    assert_string_equal(s[0], "one");
    assert_string_equal(s[1], "");
    pb_close(&r);
    pb_free(&model);
    m = head(8, 2);
    pb_text(&m, 6, "one");
    pb_expect(model_with(m), BRAID_MODEL, "string_data does not have the 2 elements");
    m = head(8, 1);
    pb_bytes(&m, 6, "a\0b", 3);
    pb_expect(model_with(m), BRAID_UNSUPPORTED, "string 0 holds a NUL");
    m = pb_tensor("w", 8, 1, (int64_t[]){1}, "abc", 3);
    pb_expect(model_with(m), BRAID_MODEL, "strings cannot be raw_data");
}

static void test_raw(void **state) {
    (void)state;
    float big[600] = {1, 2};
    expect_content(pb_tensor("w", 1, 2, (int64_t[]){300, 2}, big, sizeof big), big, sizeof big);
    expect_content(pb_tensor("w", 1, 0, NULL, big, 4), big, 4);
    expect_content(pb_tensor("w", 1, 1, (int64_t[]){0}, "", 0), big, 0);
    expect_content(pb_tensor("w", 1, 2, (int64_t[]){0, 7}, NULL, 0), big, 0);
    expect_content(pb_tensor("w", 21, 1, (int64_t[]){3}, "\x21\x03", 2), "\x21\x03", 2);
    const size_t bad[] = {0, 1, 7, 9, 12, 2400};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        pb_expect(model_with(pb_tensor("w", 1, 1, (int64_t[]){2}, big, bad[i])), BRAID_MODEL, "asks for 8");
    pb_expect(model_with(pb_tensor("w", 21, 1, (int64_t[]){3}, "\x21", 1)), BRAID_MODEL, "asks for 2");
    pb_expect(model_with(pb_tensor("w", 1, 0, NULL, big, 0)), BRAID_MODEL, "asks for 4");
}

static void test_mismatches(void **state) {
    (void)state;
    int64_t v[3] = {1, 2, 3};
    pb_expect(model_with(with_ints(6, 2, 5, 3, v)), BRAID_MODEL, "does not have the 2 elements");
    pb_expect(model_with(with_ints(6, 3, 5, 2, v)), BRAID_MODEL, "does not have the 3 elements");
    pb_expect(model_with(with_ints(6, (int64_t)1 << 39, 5, 2, v)), BRAID_MODEL, "does not have");
    pb_expect(model_with(with_ints(6, 3, 7, 3, v)), BRAID_MODEL, "int64_data cannot hold int32");
    pb_expect(model_with(with_ints(1, 3, 5, 3, v)), BRAID_MODEL, "int32_data cannot hold float32");
    pb_expect(model_with(with_ints(3, 1, 5, 1, (int64_t[]){300})), BRAID_MODEL, "element 0 is 300");
    pb_expect(model_with(with_ints(3, 1, 5, 1, (int64_t[]){-129})), BRAID_MODEL, "element 0 is -129");
    pb m = with_ints(6, 1, 5, 1, v);
    pb_bytes(&m, 9, "abcd", 4);
    pb_expect(model_with(m), BRAID_MODEL, "raw_data and int32_data are both set");
    m = with_ints(6, 1, 5, 1, v);
    pb_ints(&m, 7, 1, v);
    pb_expect(model_with(m), BRAID_MODEL, "int32_data and int64_data are both set");
    pb_expect(model_with(head(1, 2)), BRAID_MODEL, "no data for 2 elements");
    pb_expect(model_with(head(0, 2)), BRAID_MODEL, "element type 0 is unknown");
    pb_expect(model_with(head(99, 2)), BRAID_MODEL, "element type 99 is unknown");
    m = head(1, 0);
    pb_add(&m, 3, (pb){0});
    pb_expect(model_with(m), BRAID_UNSUPPORTED, "segmented");
    m = head(1, 1);
    pb_bytes(&m, 4, "abc", 3);
    pb_expect(model_with(m), BRAID_MODEL, "does not have the 1 elements");
    m = head(1, 1);
    pb_bytes(&m, 4, "abcdefg", 7);
    pb_expect(model_with(m), BRAID_FORMAT, "cut short");
}

static void test_dims(void **state) {
    (void)state;
    const int64_t bad[] = {-1, INT64_MIN};
    for (size_t i = 0; i < COUNT_OF(bad); i++) pb_expect(model_with(head(1, bad[i])), BRAID_MODEL, "dim 0 is -");
    int64_t huge[][3] = {{(int64_t)1 << 32, (int64_t)1 << 32, 1},
                         {INT64_MAX, 2, 1},
                         {0, (int64_t)1 << 62, (int64_t)1 << 62},
                         {(int64_t)1 << 40, 2, 1}};
    for (size_t i = 0; i < COUNT_OF(huge); i++)
        pb_expect(model_with(pb_tensor("w", 1, 3, huge[i], "", 0)), BRAID_LIMIT, "too many elements");
    int64_t ones[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    expect_content(pb_tensor("w", 2, 8, ones, "a", 1), "a", 1);
    pb_expect(model_with(pb_tensor("w", 2, 9, ones, "a", 1)), BRAID_LIMIT, "more than 8 dims");
}

/* ---- external data */

static char folder[64];

static pb external(const char *location, const char *offset, const char *length) {
    pb m = head(2, 4);
    const char *pairs[3][2] = {{"location", location}, {"offset", offset}, {"length", length}};
    for (int i = 0; i < 3; i++) {
        if (!pairs[i][1]) continue;
        pb entry = {0};
        pb_text(&entry, 1, pairs[i][0]);
        pb_text(&entry, 2, pairs[i][1]);
        pb_add(&m, 13, entry);
    }
    pb_int(&m, 14, 1);
    return m;
}

static void expect_external_at(pb tensor_message, braid_status want, const char *part, int line) {
    pb m = model_with(tensor_message);
    char root[128];
    snprintf(root, sizeof root, "%s/model", folder);
    reading r = pb_read(&m, root);
    if (r.status != want) fail_msg("line %d: %s '%s'", line, braid_status_name(r.status), r.err.message);
    if (want != BRAID_OK && !strstr(r.err.message, part))
        fail_msg("line %d: '%s' lacks '%s'", line, r.err.message, part);
    if (want == BRAID_OK) {
        tensor *t = r.m->g->values[r.m->g->outputs[0]]->constant;
        assert_int_equal(tensor_load(t, r.memory, NULL), BRAID_OK);
        assert_memory_equal(t->data, part, 4);
    }
    pb_close(&r);
    pb_free(&m);
}
#define expect_external(t, want, part) expect_external_at(t, want, part, __LINE__)

static void write_file(const char *name, const char *content) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(content, f);
    fclose(f);
}

static void test_external_values(void **state) {
    (void)state;
    expect_external(external("w.bin", "0", "4"), BRAID_OK, "0123");
    expect_external(external("w.bin", NULL, NULL), BRAID_OK, "0123");
    expect_external(external("w.bin", "6", NULL), BRAID_OK, "6789");
    expect_external(external("sub/../w.bin", "0", "4"), BRAID_MODEL, "..");
    expect_external(external("sub/v.bin", "0", "4"), BRAID_OK, "abcd");
    expect_external(external("w.bin", "7", NULL), BRAID_MODEL, "beyond its end");
    expect_external(external("w.bin", "10", NULL), BRAID_MODEL, "beyond its end");
    expect_external(external("w.bin", "11", "4"), BRAID_MODEL, "beyond its end");
    expect_external(external("w.bin", "9223372036854775807", "4"), BRAID_MODEL, "beyond its end");
    expect_external(external("w.bin", "9223372036854775808", "4"), BRAID_MODEL, "is not a number");
    expect_external(external("w.bin", "18446744073709551616", "4"), BRAID_MODEL, "is not a number");
    const char *strange[] = {"-1", "+1", " 1", "1 ", "1e9", "0x1", "", "one"};
    for (size_t i = 0; i < COUNT_OF(strange); i++) {
        expect_external(external("w.bin", strange[i], NULL), BRAID_MODEL, "is not a number");
        expect_external(external("w.bin", "0", strange[i]), BRAID_MODEL, "is not a number");
    }
    const char *lengths[] = {"0", "3", "5", "9223372036854775807"};
    for (size_t i = 0; i < COUNT_OF(lengths); i++)
        expect_external(external("w.bin", "0", lengths[i]), BRAID_MODEL, "asks for 4 bytes");
    expect_external(external(NULL, "0", "4"), BRAID_MODEL, "no location");
    pb m = external("w.bin", "0", "4"), entry = {0};
    pb_text(&entry, 1, "address");
    pb_text(&entry, 2, "140737488355328");
    pb_add(&m, 13, entry);
    expect_external(m, BRAID_MODEL, "unknown key 'address'");
    m = external("w.bin", "0", "4");
    pb_bytes(&m, 9, "abcd", 4);
    expect_external(m, BRAID_MODEL, "both set");
    pb_expect(model_with(external("w.bin", "0", "4")), BRAID_ARGUMENT, "needs a folder");
    m = head(2, 4);
    pb_int(&m, 14, 7);
    expect_external(m, BRAID_MODEL, "data_location 7");
}

static void test_external_paths(void **state) {
    (void)state;
    static const struct {
        const char *location;
        braid_status want;
    } paths[] = {
        {"../outside.bin", BRAID_MODEL},
        {"sub/../../outside.bin", BRAID_MODEL},
        {"/etc/passwd", BRAID_MODEL},
        {"", BRAID_MODEL},
        {"..", BRAID_MODEL},
        {".", BRAID_IO},
        {"sub", BRAID_IO},
        {"sub/", BRAID_MODEL},
        {"missing.bin", BRAID_IO},
        {"leaf.bin", BRAID_MODEL},
        {"parent/outside.bin", BRAID_MODEL},
        {"dangling.bin", BRAID_MODEL},
        {"loop.bin", BRAID_MODEL},
        {"hard.bin", BRAID_MODEL},
        {"..\\outside.bin", BRAID_MODEL},
        {"C:\\outside.bin", BRAID_MODEL},
        {"w.bin/", BRAID_MODEL},
        {"w.bin/x", BRAID_IO},
        {"*/_ORT_MEM_ADDR_/*", BRAID_IO},
        {"fifo", BRAID_IO},
    };
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        pb m = model_with(external(paths[i].location, NULL, NULL));
        char root[128];
        snprintf(root, sizeof root, "%s/model", folder);
        reading r = pb_read(&m, root);
        if (r.status != paths[i].want)
            fail_msg("'%s': %s '%s'", paths[i].location, braid_status_name(r.status), r.err.message);
        assert_int_equal(r.n_files, 0);
        pb_close(&r);
        pb_free(&m);
    }
    pb m = head(2, 4), entry = {0};
    pb_text(&entry, 1, "location");
    pb_bytes(&entry, 2, "w.bin\0x", 7);
    pb_add(&m, 13, entry);
    pb_int(&m, 14, 1);
    expect_external(m, BRAID_MODEL, "NUL");
}

/* The same escape wherever a tensor can stand. */
static void test_external_places(void **state) {
    (void)state;
    const char *escape = "../outside.bin", *part = "..";
    pb t = external(escape, NULL, NULL), a = pb_attribute("value", 4), n = pb_node("Constant", NO_NAMES, NAMES("y")),
       g = {0};
    pb_add(&a, 5, t);
    pb_add(&n, NODE_ATTRIBUTE, a);
    pb_add(&g, GRAPH_NODE, n);
    pb_expect(pb_model_of(g), BRAID_ARGUMENT, "needs a folder");
    pb s = {0};
    pb_add(&s, 1, external(escape, NULL, NULL));
    pb_add(&s, 2, with_ints(7, 4, 7, 4, (int64_t[]){0, 1, 2, 3}));
    pb_ints(&s, 3, 1, (int64_t[]){4});
    g = (pb){0};
    pb_add(&g, GRAPH_SPARSE, s);
    pb m = pb_model_of(g);
    char root[128];
    snprintf(root, sizeof root, "%s/model", folder);
    reading r = pb_read(&m, root);
    assert_int_equal(r.status, BRAID_MODEL);
    assert_non_null(strstr(r.err.message, part));
    pb_close(&r);
    pb_free(&m);
}

/* ---- sparse */

static pb sparse(int64_t nnz, int rank, const int64_t *dims, int index_rank, const int64_t *index) {
    pb values = pb_tensor("w", 1, 1, &nnz, (float[]){1, 2, 3}, (size_t)nnz * 4), s = {0};
    int64_t shape[2] = {nnz, rank};
    int n = (int)nnz * (index_rank == 2 ? rank : 1);
    pb indices = pb_tensor("", 7, index_rank, shape, index, (size_t)n * 8), g = {0};
    pb_add(&s, 1, values);
    pb_add(&s, 2, indices);
    pb_ints(&s, 3, rank, dims);
    pb_add(&g, GRAPH_SPARSE, s);
    pb_add(&g, GRAPH_OUTPUT, pb_value("w", 1, -1, NULL));
    return pb_model_of(g);
}

static void test_sparse(void **state) {
    (void)state;
    int64_t dims[2] = {2, 3};
    for (int form = 1; form <= 2; form++) {
        pb m = form == 1 ? sparse(2, 2, dims, 1, (int64_t[]){1, 5}) : sparse(2, 2, dims, 2, (int64_t[]){0, 1, 1, 2});
        reading r = pb_read(&m, NULL);
        if (r.status) fail_msg("%s", r.err.message);
        tensor *t = r.m->g->values[r.m->g->outputs[0]]->constant;
        assert_memory_equal(t->data, ((float[]){0, 1, 0, 0, 0, 2}), 24);
        pb_close(&r);
        pb_free(&m);
    }
    pb_expect(sparse(1, 2, dims, 1, (int64_t[]){6}), BRAID_INDEX, "outside");
    pb_expect(sparse(1, 2, dims, 1, (int64_t[]){-1}), BRAID_INDEX, "outside");
    pb_expect(sparse(1, 2, dims, 2, (int64_t[]){0, 3}), BRAID_INDEX, "outside");
    pb_expect(sparse(1, 2, dims, 2, (int64_t[]){INT64_MAX, INT64_MAX}), BRAID_INDEX, "outside");
    pb_expect(sparse(1, 2, (int64_t[]){-1, 3}, 1, (int64_t[]){0}), BRAID_MODEL, "dim 0 is -1");
    pb_expect(sparse(1, 2, (int64_t[]){1 << 20, 1 << 20}, 1, (int64_t[]){0}), BRAID_LIMIT, "");
    pb_expect(sparse(1, 2, (int64_t[]){1 << 15, 1 << 15}, 1, (int64_t[]){0}), BRAID_LIMIT, "decoding takes more");
}

static int set_up(void **state) {
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.40s/braid-XXXXXX", base ? base : "/tmp");
    char path[128], other[128];
    if (!mkdtemp(folder)) return 1;
    snprintf(path, sizeof path, "%s/model", folder);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/model/sub", folder);
    mkdir(path, 0700);
    write_file("outside.bin", "secret");
    write_file("model/w.bin", "0123456789");
    write_file("model/sub/v.bin", "abcd");
    snprintf(path, sizeof path, "%s/outside.bin", folder);
    snprintf(other, sizeof other, "%s/model/hard.bin", folder);
    if (link(path, other) != 0) return 1;
    snprintf(other, sizeof other, "%s/model/leaf.bin", folder);
    if (symlink(path, other) != 0) return 1;
    snprintf(other, sizeof other, "%s/model/parent", folder);
    if (symlink(folder, other) != 0) return 1;
    snprintf(other, sizeof other, "%s/model/dangling.bin", folder);
    if (symlink("nowhere", other) != 0) return 1;
    snprintf(other, sizeof other, "%s/model/loop.bin", folder);
    if (symlink("loop.bin", other) != 0) return 1;
    snprintf(other, sizeof other, "%s/model/fifo", folder);
    return mkfifo(other, 0600);
}

static int tear_down(void **state) {
    (void)state;
    static const char *const names[] = {"model/w.bin",  "model/sub/v.bin",    "model/hard.bin", "model/leaf.bin",
                                        "model/parent", "model/dangling.bin", "model/loop.bin", "model/fifo",
                                        "outside.bin",  "model/sub",          "model",          ""};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        remove(path);
    }
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_typed),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_raw),
        cmocka_unit_test(test_mismatches),
        cmocka_unit_test(test_dims),
        cmocka_unit_test(test_external_values),
        cmocka_unit_test(test_external_paths),
        cmocka_unit_test(test_external_places),
        cmocka_unit_test(test_sparse),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
