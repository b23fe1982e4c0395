/*
 * faults.h: the checks of faults.c and faults_model.c. What a graph should give comes from plain loops in the test,
 * never from braid itself.
 */
#ifndef FAULTS_H
#define FAULTS_H

#include "ops_gpu.h"

#define DIMS(...) (int)COUNT_OF(((int64_t[]){__VA_ARGS__})), (int64_t[]){__VA_ARGS__}

/* Random float32 in [-4, 5); freed by expect. */
static inline braid_tensor floats(const char *name, int rank, const int64_t *dims) {
    return ops_random(name, BRAID_FLOAT32, rank, dims);
}

/* A float64 tensor of zeros to be filled with what should come; freed by expect. */
static inline braid_tensor wanted(int rank, const int64_t *dims) {
    braid_tensor t = {.type = BRAID_FLOAT64, .rank = rank};
    int64_t count = 1;
    for (int i = 0; i < rank; i++) count *= t.dims[i] = dims[i];
    t.bytes = (size_t)count * sizeof(double);
    t.data = calloc((size_t)count + 1, sizeof(double));
    assert_non_null(t.data);
    return t;
}

static inline int64_t count_of(const braid_tensor *t) {
    int64_t count = 1;
    for (int i = 0; i < t->rank; i++) count *= t->dims[i];
    return count;
}
static inline double *numbers_of(const braid_tensor *t) {
    return t->data;
}

/* Shape and content. */
static inline void expect_tensor(const char *where, const char *source, const braid_tensor *got,
                                 const braid_tensor *want, double rtol, double atol) {
    if (got->rank != want->rank) fail_msg("%s: rank %d, expected %d in\n%s", where, got->rank, want->rank, source);
    for (int i = 0; i < want->rank; i++)
        if (got->dims[i] != want->dims[i])
            fail_msg("%s: dim %d is %lld, expected %lld in\n%s", where, i, (long long)got->dims[i],
                     (long long)want->dims[i], source);
    for (int64_t i = 0, n = count_of(want); i < n; i++) {
        double a = element_f64(got->type, got->data, i), b = element_f64(want->type, want->data, i);
        if (!ops_close(a, b, rtol, atol))
            fail_msg("%s: element %lld is %.9g, expected %.9g in\n%s", where, (long long)i, a, b, source);
    }
}

/* Runs the graph on the device, where no step may be the host's, and on the reference; both must give `want`. Frees the
   content of `in` and `want`. */
static inline void expect(const char *source, size_t n_in, braid_tensor *in, size_t n_out, braid_tensor *want,
                          double rtol, double atol) {
    for (int host = 0; host < 2; host++) {
        braid_error err = {0};
        braid_tensor out[4] = {0};
        uint64_t host_steps = 0;
        assert_true(n_out <= COUNT_OF(out));
        if (ops_run(host, source, n_in, in, n_out, out, &host_steps, &err) != BRAID_OK)
            fail_msg("%s: %s in\n%s", host ? "reference" : "device", err.message, source);
        if (!host && host_steps) fail_msg("%d host steps in\n%s", (int)host_steps, source);
        for (size_t i = 0; i < n_out; i++) {
            expect_tensor(host ? "reference" : "device", source, &out[i], &want[i], rtol, atol);
            braid_tensor_free(&out[i]);
        }
    }
    for (size_t i = 0; i < n_in; i++) free(in[i].data);
    for (size_t i = 0; i < n_out; i++) free(want[i].data);
}

#endif
