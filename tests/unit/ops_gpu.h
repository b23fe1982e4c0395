/*
 * ops_gpu.h: runs a graph given as text on the GPU and on the CPU reference and compares. For tests of operators.
 *
 *     static const char *g = "graph t(x: float32[2,3]) { y = Relu(x) } -> y";
 *     ops_compare(g, 1, (braid_tensor[]){ops_random("x", BRAID_FLOAT32, 2, (int64_t[]){2, 3}, 1)}, 1e-5, 1e-6);
 *
 * The graph's input types come from the text; shapes must be numbers. Links braid_inside.
 */
#ifndef OPS_GPU_H
#define OPS_GPU_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/api.h"

/* With BRAID_TEST_VALIDATION in the environment devices are opened under the validation layer, and the program fails at
   its end when the layer said anything. */
static int ops_complaints;
static inline void ops_verdict(void) {
    if (!ops_complaints) return;
    fprintf(stderr, "%d messages of the validation layer\n", ops_complaints);
    fflush(NULL);
    _exit(1);
}
static inline void ops_listen(void *user, braid_log_level level, const char *line) {
    (void)user;
    if (level > BRAID_LOG_WARN || !strstr(line, "validation")) return; /* also that it is not there */
    fprintf(stderr, "%s\n", line);
    if (!__atomic_fetch_add(&ops_complaints, 1, __ATOMIC_SEQ_CST)) atexit(ops_verdict);
}

static inline braid_device *ops_device(bool host) {
    static braid_device *devices[2];
    if (!devices[host]) {
        braid_error err = {0};
        braid_device_options options = {.size = sizeof options, .select = host ? "host" : NULL};
        options.validation = !host && getenv("BRAID_TEST_VALIDATION");
        if (options.validation) options.log = ops_listen;
        if (braid_device_open(&options, &devices[host], &err) != BRAID_OK) fail_msg("%s", err.message);
    }
    return devices[host];
}

/* A model around a parsed graph; NULL with err filled when the text or its inference fails. */
static inline braid_model *ops_model(const char *source, braid_error *err) {
    braid_model *model = mem_alloc(sizeof *model);
    memset(model, 0, sizeof *model);
    model->memory = arena_new();
    model->references = 1;
    model->m = arena_alloc(model->memory, sizeof *model->m);
    if (graph_parse(model->memory, source, &model->m->g, err) != BRAID_OK) {
        braid_model_free(model);
        return NULL;
    }
    graph_find_ops(model->m->g);
    if (graph_infer(model->m->g, err) != BRAID_OK) {
        braid_model_free(model);
        return NULL;
    }
    return model;
}

static uint64_t ops_seed = 1;
static inline double ops_uniform(void) { /* [0, 1) */
    ops_seed = ops_seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(ops_seed >> 11) / 9007199254740992.0;
}
static inline int64_t ops_below(int64_t n) {
    return (int64_t)(ops_uniform() * (double)n);
}
#define OPS_ONE_OF(...) \
    (((const int64_t[]){__VA_ARGS__})[ops_below((int64_t)COUNT_OF(((const int64_t[]){__VA_ARGS__})))])

#include "ops_lanes.h"

#include "ops_copies.h"

static inline bool ops_keeps_denormals(void) {
    braid_device_info info;
    braid_device_describe(ops_device(false), &info);
    return info.kind == BRAID_DEVICE_SOFTWARE;
}

/* Random content: floats in [-4, 4) with special values mixed in when `special`, integers small, bool 0/1. */
static inline braid_tensor ops_random_full(const char *name, braid_type type, int rank, const int64_t *dims, double lo,
                                    double hi, bool special) {
    braid_tensor t = {.name = name, .type = type, .rank = rank};
    int64_t count = 1;
    for (int i = 0; i < rank; i++) count *= t.dims[i] = dims[i];
    type_span(type, count, &t.bytes);
    t.data = calloc(t.bytes + 16, 1);
    /* Vulkan lets a device take denormal numbers for zero, and GPUs do: infinity times one is then NaN. The software
       device keeps them. */
    double tiny = ops_keeps_denormals() ? 1e-40 : 0.0;
    const double specials[] = {NAN, INFINITY, -INFINITY, -0.0, tiny, -tiny, 1e30, -1e30};
    for (int64_t i = 0; i < count; i++) {
        double v = lo + (hi - lo) * ops_uniform();
        if (type == BRAID_BOOL) element_set_i64(type, t.data, i, ops_uniform() < 0.5);
        else if (type_is_float(type))
            element_set_f64(type, t.data, i, special && ops_uniform() < 0.2 ? specials[(int)(ops_uniform() * 8)] : v);
        else element_set_i64(type, t.data, i, (int64_t)floor(v));
    }
    ops_note_drawn(&t, lo, hi, special);
    return t;
}

static inline braid_tensor ops_random(const char *name, braid_type type, int rank, const int64_t *dims) {
    return ops_random_full(name, type, rank, dims, type_is_unsigned(type) ? 0 : -4, 5, false);
}

/* Runs with all outputs allocated; the caller frees them. Also tells how many host steps the plan has. */
static inline braid_status ops_run(bool host, const char *source, size_t n_in, const braid_tensor *in, size_t n_out,
                            braid_tensor *out, uint64_t *host_steps, braid_error *err) {
    braid_model *model = ops_model(source, err);
    if (!model) return err->status;
    braid_session_options options = {.size = sizeof options, .verify = true};
    braid_session *session = NULL;
    braid_device *device = ops_device(host);
    braid_status status = braid_session_create(&device, 1, model, &options, &session, err);
    if (status == BRAID_OK) status = braid_session_run(session, 1, in, n_in, out, n_out, err);
    braid_plan_stats stats;
    braid_session_stats(session, &stats);
    if (host_steps) *host_steps = stats.host_steps;
    braid_session_free(session);
    braid_model_free(model);
    return status;
}

static inline bool ops_close(double a, double b, double rtol, double atol) {
    if (isnan(b)) return isnan(a);
    if (isinf(b)) return a == b;
    return fabs(a - b) <= atol + rtol * fabs(b);
}

static inline void ops_compare_tensors(const char *source, const braid_tensor *a, const braid_tensor *b, double rtol,
                                double atol) {
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->rank, b->rank);
    int64_t count = 1;
    for (int i = 0; i < a->rank; i++) {
        assert_int_equal(a->dims[i], b->dims[i]);
        count *= a->dims[i];
    }
    for (int64_t i = 0; i < count; i++) {
        bool same = type_is_float(a->type)
                        ? ops_close(element_f64(a->type, a->data, i), element_f64(b->type, b->data, i), rtol, atol)
                        : element_i64(a->type, a->data, i) == element_i64(b->type, b->data, i);
        if (!same)
            fail_msg("element %lld: device %.9g, reference %.9g in\n%s", (long long)i, element_f64(a->type, a->data, i),
                     element_f64(b->type, b->data, i), source);
    }
}

/* Compares every output (at most 4) and frees the inputs. Returns the number of host steps of the device's plan; a
   status other than OK must be the same on both sides. With BRAID_TEST_LANES set: lanes instead (ops_lanes.h);
   BRAID_TEST_COPIES: clones (ops_copies.h). */
static inline uint64_t ops_compare(const char *source, size_t n_in, braid_tensor *in, double rtol, double atol) {
    braid_error err = {0}, host_err = {0};
    braid_tensor a[4] = {0}, b[4] = {0};
    braid_model *model = ops_model(source, &err);
    size_t n_out = model ? (size_t)model->m->g->n_outputs : 0;
    const char *lanes = getenv("BRAID_TEST_LANES"), *copies = getenv("BRAID_TEST_COPIES");
    if (copies && model) {
        uint64_t host_steps = ops_compare_copies(ops_device(false), source, model, n_in, in, strtoull(copies, NULL, 0));
        braid_model_free(model);
        for (size_t i = 0; i < n_in; i++) free(in[i].data);
        return host_steps;
    }
    if (lanes && model) {
        uint64_t host_steps = ops_compare_lanes(ops_device(false), source, model, n_in, in, strtoull(lanes, NULL, 0));
        braid_model_free(model);
        for (size_t i = 0; i < n_in; i++) free(in[i].data);
        return host_steps;
    }
    braid_model_free(model);
    assert_true(n_out <= 4);
    uint64_t host_steps = 0;
    braid_status found = ops_run(false, source, n_in, in, n_out, a, &host_steps, &err);
    braid_status wanted = ops_run(true, source, n_in, in, n_out, b, NULL, &host_err);
    if (found != wanted) fail_msg("device: %s, reference: %s in\n%s", err.message, host_err.message, source);
    for (size_t i = 0; found == BRAID_OK && i < n_out; i++) ops_compare_tensors(source, &a[i], &b[i], rtol, atol);
    for (size_t i = 0; i < n_out; i++) {
        braid_tensor_free(&a[i]);
        braid_tensor_free(&b[i]);
    }
    for (size_t i = 0; i < n_in; i++) free(in[i].data);
    return host_steps;
}

#endif
