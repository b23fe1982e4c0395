/*
 * pb_build.h: protobuf messages from C, valid or not, for tests of the reader. Messages nest by value: pb_add puts a
 * finished one into another and releases it.
 */
#ifndef PB_BUILD_H
#define PB_BUILD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "onnx/onnx.h"

typedef struct pb {
    uint8_t *data;
    size_t n, capacity;
} pb;

static inline void pb_raw(pb *m, const void *bytes, size_t n) {
    if (m->n + n > m->capacity) {
        m->capacity = (m->n + n) * 2 + 64;
        m->data = realloc(m->data, m->capacity);
        assert_non_null(m->data);
    }
    if (n) memcpy(m->data + m->n, bytes, n);
    m->n += n;
}

static inline void pb_varint(pb *m, uint64_t v) {
    do {
        uint8_t byte = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
        pb_raw(m, &byte, 1);
        v >>= 7;
    } while (v);
}

static inline void pb_tag(pb *m, uint32_t field, int type) {
    pb_varint(m, (uint64_t)field << 3 | (unsigned)type);
}

static inline void pb_int(pb *m, uint32_t field, int64_t v) {
    pb_tag(m, field, 0);
    pb_varint(m, (uint64_t)v);
}

static inline void pb_float(pb *m, uint32_t field, float v) {
    pb_tag(m, field, 5);
    pb_raw(m, &v, 4);
}

static inline void pb_bytes(pb *m, uint32_t field, const void *bytes, size_t n) {
    pb_tag(m, field, 2);
    pb_varint(m, n);
    pb_raw(m, bytes, n);
}

static inline void pb_text(pb *m, uint32_t field, const char *s) {
    pb_bytes(m, field, s, strlen(s));
}

static inline void pb_free(pb *m) {
    free(m->data);
    *m = (pb){0};
}

static inline void pb_add(pb *m, uint32_t field, pb inner) {
    pb_bytes(m, field, inner.data, inner.n);
    pb_free(&inner);
}

static inline void pb_ints(pb *m, uint32_t field, int n, const int64_t *v) {
    pb packed = {0};
    for (int i = 0; i < n; i++) pb_varint(&packed, (uint64_t)v[i]);
    pb_add(m, field, packed);
}

/* ---- pieces of ONNX */

enum { MODEL_GRAPH = 7, MODEL_OPSET = 8, MODEL_FUNCTION = 25 };
enum { GRAPH_NODE = 1, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12, GRAPH_HINT = 13, GRAPH_SPARSE = 15 };
enum { NODE_ATTRIBUTE = 5 };

static inline pb pb_opset(const char *domain, int64_t version) {
    pb m = {0};
    pb_text(&m, 1, domain);
    pb_int(&m, 2, version);
    return m;
}

/* A value of element type `type`; rank -1: no shape. */
static inline pb pb_value(const char *name, int type, int rank, const int64_t *dims) {
    pb info = {0}, dense = {0}, shape = {0}, typed = {0};
    pb_text(&info, 1, name);
    pb_int(&dense, 1, type);
    for (int i = 0; i < rank; i++) {
        pb dim = {0};
        pb_int(&dim, 1, dims[i]);
        pb_add(&shape, 1, dim);
    }
    if (rank >= 0) pb_add(&dense, 2, shape);
    pb_add(&typed, 1, dense);
    pb_add(&info, 2, typed);
    return info;
}

/* Lists of names end with NULL. */
static inline pb pb_node(const char *type, const char *const *in, const char *const *out) {
    pb m = {0};
    for (; *in; in++) pb_text(&m, 1, *in);
    for (; *out; out++) pb_text(&m, 2, *out);
    pb_text(&m, 4, type);
    return m;
}
#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NO_NAMES ((const char *const[]){NULL})

static inline pb pb_attribute(const char *name, int kind) {
    pb m = {0};
    pb_text(&m, 1, name);
    if (kind) pb_int(&m, 20, kind);
    return m;
}

/* A float tensor with raw data of `bytes` bytes. */
static inline pb pb_tensor(const char *name, int type, int rank, const int64_t *dims, const void *raw, size_t bytes) {
    pb m = {0};
    pb_ints(&m, 1, rank, dims);
    pb_int(&m, 2, type);
    pb_text(&m, 8, name);
    if (raw) pb_bytes(&m, 9, raw, bytes);
    return m;
}

static inline pb pb_model_of(pb graph_message) {
    pb m = {0};
    pb_int(&m, 1, 8);
    pb_add(&m, MODEL_OPSET, pb_opset("", 17));
    pb_add(&m, MODEL_GRAPH, graph_message);
    return m;
}

/* x: float32[2] -> Relu -> y */
static inline pb pb_small_graph(void) {
    pb g = {0};
    pb_add(&g, GRAPH_INPUT, pb_value("x", 1, 1, (int64_t[]){2}));
    pb_add(&g, GRAPH_NODE, pb_node("Relu", NAMES("x"), NAMES("y")));
    pb_add(&g, GRAPH_OUTPUT, pb_value("y", 1, 1, (int64_t[]){2}));
    return g;
}

/* ---- reading */

typedef struct reading {
    arena *memory;
    file *source, **files;
    size_t n_files;
    onnx_model *m;
    braid_error err;
    braid_status status;
} reading;

static inline reading pb_read(const pb *m, const char *root) {
    reading r = {.memory = arena_new()};
    assert_non_null(r.memory);
    assert_int_equal(file_from_memory(m->data ? m->data : (const uint8_t *)"", m->n, &r.source, NULL), BRAID_OK);
    onnx_options o = {.root = root};
    r.status = onnx_read(r.source, &o, r.memory, &r.m, &r.files, &r.n_files, &r.err);
    if (r.status == BRAID_OK && graph_verify(r.m->g, &r.err) != BRAID_OK) fail_msg("%s", r.err.message);
    return r;
}

static inline void pb_close(reading *r) {
    for (size_t i = 0; i < r->n_files; i++) file_unref(r->files[i]);
    file_unref(r->source);
    arena_free(r->memory);
}

/* The model has this status and its message this part; the model is released. */
static inline void pb_expect_at(pb m, braid_status want, const char *part, int line) {
    reading r = pb_read(&m, NULL);
    if (r.status != want)
        fail_msg("line %d: %s '%s', expected %s", line, braid_status_name(r.status), r.err.message,
                 braid_status_name(want));
    if (want != BRAID_OK && !strstr(r.err.message, part))
        fail_msg("line %d: '%s' lacks '%s'", line, r.err.message, part);
    pb_close(&r);
    pb_free(&m);
}
#define pb_expect(model, want, part) pb_expect_at(model, want, part, __LINE__)

#endif
