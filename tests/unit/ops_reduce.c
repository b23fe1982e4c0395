/*
 * ops_reduce.c: reductions, arguments, softmax, norms, scans, TopK and losses on the CPU: types that infer finds or
 * refuses, and eval against loops that follow the definition.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ops/op.h"

/* ------------------------------------------------------------------------------------------------- infer */

typedef struct infer_case {
    const char *header, *node; /* graph inputs; "y = Op(...)" with constants before it */
    const char *type;          /* of y, ? for a fresh symbol; or the status */
} infer_case;

static const infer_case infer_cases[] = {
    {"x: float32[2,N,4]", "a: int64[1] = constant {1}\n y = ReduceSum(x, a)", "float32[2,1,4]"},
    {"x: float32[2,N,4]", "a: int64[2] = constant {-1, 0}\n y = ReduceMax(x, a) {keepdims = 0}", "float32[N]"},
    {"x: float32[2,N,4]", "y = ReduceMean(x) {keepdims = 0}", "float32[]"},
    {"x: float32[2,N,4]", "y = ReduceMean(x) {noop_with_empty_axes = 1}", "float32[2,N,4]"},
    {"x: float32[2,N,4]", "a: int64[0] = constant {}\n y = ReduceL2(x, a)", "float32[1,1,1]"},
    {"x: float32[2,N,4]", "a: int64[1] = constant {3}\n y = ReduceSum(x, a)", "MODEL"},
    {"x: float32[2,N,4]", "a: int64[1] = constant {-4}\n y = ReduceSum(x, a)", "MODEL"},
    {"x: float32[2,N,4]", "a: int64[1] = constant {-9223372036854775808}\n y = ReduceSum(x, a)", "MODEL"},
    {"x: float32[2,N,4]", "a: int64[2] = constant {1, -2}\n y = ReduceSum(x, a)", "MODEL"},
    {"x: float32[2,N,4], a: int64[2]", "y = ReduceSum(x, a)", "float32[?,?,?]"},
    {"x: float32[2,N,4], a: int64[2]", "y = ReduceSum(x, a) {keepdims = 0}", "float32[?]"},
    {"x: float32[2,N,4], a: int64[K]", "y = ReduceSum(x, a) {keepdims = 0}", "float32[*]"},
    {"x: float32[2,N,4], a: float32[1]", "y = ReduceSum(x, a)", "TYPE"},
    {"x: bool[2,3]", "y = ReduceMax(x)", "bool[1,1]"},
    {"x: bool[2,3]", "y = ReduceSum(x)", "TYPE"},
    {"x: float32[]", "y = ReduceSum(x)", "float32[]"},
    {"x: float32[2,3,N]", "s = Shape(x)\n p = ReduceProd(s) {keepdims = 1}\n y = Reshape(x, p)", "float32[?]"},
    {"x: float32[2,3,4]", "s = Shape(x)\n p = ReduceProd(s)\n y = Reshape(x, p)", "float32[24]"},
    {"x: float32[2,3,N]",
     "s = Shape(x)\n a: int64[1] = constant {2}\n b: int64[1] = constant {3}\n one: float32[] = constant {1}\n"
     "n = Slice(s, a, b)\n p = ReduceProd(n)\n y = Expand(one, p)",
     "float32[N]"},
    {"x: float32[2,N,4]", "y = GlobalAveragePool(x)", "float32[2,N,1]"},
    {"x: float32[2]", "y = GlobalMaxPool(x)", "SHAPE"},
    {"x: float32[2,3,4]", "y = GlobalLpPool(x) {p = 0}", "MODEL"},
    {"x: float32[2,N,4]", "y = ArgMax(x) {axis = -2, keepdims = 0}", "int64[2,4]"},
    {"x: float32[2,N,4]", "y = ArgMin(x) {axis = 3}", "MODEL"},
    {"x: float32[2,0]", "y = ArgMin(x) {axis = 1}", "SHAPE"},
    {"x: float32[2,N]", "y = Softmax(x) {axis = 2}", "MODEL"},
    {"x: float32[2,N]", "y = Softmax(x) {axis = -2}", "float32[2,N]"},
    {"x: int32[2,N]", "y = Softmax(x)", "TYPE"},
    {"x: float32[2,N], s: float32[N]", "y = LayerNormalization(x, s)", "float32[2,N]"},
    {"x: float32[2,3], s: float32[4]", "y = LayerNormalization(x, s)", "SHAPE"},
    {"x: float32[2,3], s: float32[1,2,3]", "y = LayerNormalization(x, s)", "SHAPE"},
    {"x: float32[2,3], s: float32[3]", "y = LayerNormalization(x, s) {stash_type = 7}", "MODEL"},
    {"x: float16[2,3,5], s: float16[5]", "z, y = LayerNormalization(x, s) {axis = 1}", "float32[2,1,1]"},
    {"x: float32[2,6,N], s: float32[6], b: float32[6]", "y = GroupNormalization(x, s, b) {num_groups = 3}",
     "float32[2,6,N]"},
    {"x: float32[2,6,N], s: float32[6], b: float32[6]", "y = GroupNormalization(x, s, b) {num_groups = 4}", "SHAPE"},
    {"x: float32[2,6,N], s: float32[6], b: float32[6]", "y = GroupNormalization(x, s, b) {num_groups = 0}", "MODEL"},
    {"x: float32[2,6,N], s: float32[3], b: float32[3]", "y = GroupNormalization(x, s, b) {num_groups = 3}", "SHAPE"},
    {"x: float32[2,6,N], s: float32[6], b: float32[5]", "y = InstanceNormalization(x, s, b)", "SHAPE"},
    {"x: float32[2,6]", "y = LpNormalization(x) {p = 3}", "MODEL"},
    {"x: float32[2,6]", "y = MeanVarianceNormalization(x)", "MODEL"},
    {"x: float32[2,6,4]", "y = LRN(x) {size = 0}", "MODEL"},
    {"x: float32[N,6]", "k: int64[1] = constant {2}\n y, i = TopK(x, k)", "float32[N,2]"},
    {"x: float32[N,6]", "k: int64[1] = constant {7}\n y, i = TopK(x, k)", "SHAPE"},
    {"x: float32[N,6]", "k: int64[1] = constant {-1}\n y, i = TopK(x, k)", "SHAPE"},
    {"x: float32[N,6]", "k: int64[2] = constant {1, 2}\n y, i = TopK(x, k)", "SHAPE"},
    {"x: float32[N,6], k: int64[1]", "i, y = TopK(x, k) {axis = 0}", "int64[?,6]"},
    {"x: float32[3,4]", "a: int64[] = constant {2}\n y = CumSum(x, a)", "MODEL"},
    {"x: float32[3,4], a: int32[]", "y = CumSum(x, a)", "float32[3,4]"},
    {"x: float32[3,4], a: float32[]", "y = CumSum(x, a)", "TYPE"},
    {"x: float32[3,4,4]", "y = Det(x)", "float32[3]"},
    {"x: float32[3,4,5]", "y = Det(x)", "SHAPE"},
    {"x: float32[3,C,5], t: int64[3,5]", "y = NegativeLogLikelihoodLoss(x, t) {reduction = \"none\"}", "float32[3,5]"},
    {"x: float32[3,C,5], t: int64[3,5]", "y = SoftmaxCrossEntropyLoss(x, t)", "float32[]"},
    {"x: float32[3,C,5], t: int64[3,4]", "y = SoftmaxCrossEntropyLoss(x, t)", "SHAPE"},
    {"x: float32[3,C,5], t: int64[3]", "y = SoftmaxCrossEntropyLoss(x, t)", "SHAPE"},
    {"x: float32[3,C,5], t: int64[3,5]", "y = SoftmaxCrossEntropyLoss(x, t) {reduction = \"avg\"}", "MODEL"},
};

static void type_text(const graph *g, const tensor_type *t, char *out, size_t size) {
    int n = snprintf(out, size, "%s[", braid_type_name(t->type));
    for (int d = 0; d < t->rank; d++) {
        const char *symbol = dim_is_symbol(t->dims[d]) ? g->symbols[dim_symbol(t->dims[d])] : NULL;
        if (dim_known(t->dims[d]))
            n += snprintf(out + n, size - (size_t)n, "%s%lld", d ? "," : "", (long long)t->dims[d]);
        else n += snprintf(out + n, size - (size_t)n, "%s%s", d ? "," : "", symbol ? symbol : "?");
    }
    snprintf(out + n, size - (size_t)n, t->rank < 0 ? "*]" : "]");
}

static bool check_infer(const infer_case *c) {
    char source[2048], found[256];
    snprintf(source, sizeof source, "graph t(%s) {\n%s\n} -> y", c->header, c->node);
    arena *memory = arena_new();
    graph *g = NULL;
    braid_error err = {0};
    braid_status status = graph_parse(memory, source, &g, &err);
    if (status != BRAID_OK) fail_msg("%s\n%s", err.message, source);
    graph_find_ops(g);
    if ((status = graph_sort(g, &err)) == BRAID_OK) status = graph_infer(g, &err);
    if (status == BRAID_OK) type_text(g, &g->values[g->outputs[0]]->type, found, sizeof found);
    else snprintf(found, sizeof found, "%s", braid_status_name(status));
    bool same = strcmp(found, c->type) == 0;
    if (!same) print_error("%s %s: expected %s, found %s (%s)\n", c->header, c->node, c->type, found, err.message);
    arena_free(memory);
    return same;
}

static void test_infer(void **state) {
    (void)state;
    bool passed = true;
    for (size_t i = 0; i < COUNT_OF(infer_cases); i++) passed = check_infer(&infer_cases[i]) && passed;
    assert_true(passed);
}

/* --------------------------------------------------------------------------------------------------- eval */

static uint64_t seed = 11;
static int64_t pick(int64_t low, int64_t high) { /* both included */
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return low + (int64_t)((seed >> 33) % (uint64_t)(high - low + 1));
}

static tensor *new_tensor(arena *memory, braid_type type, int rank, const int64_t *dims) {
    tensor *t;
    assert_int_equal(tensor_new(memory, type, rank, dims, &t, NULL), BRAID_OK);
    return t;
}

static int64_t count_of(const tensor *t) {
    int64_t n = 0;
    assert_true(tensor_type_count(&t->type, &n));
    return n;
}

static tensor *random_tensor(arena *memory, braid_type type, int rank, const int64_t *dims) {
    tensor *t = new_tensor(memory, type, rank, dims);
    for (int64_t i = 0; i < count_of(t); i++) {
        double v = (double)pick(type_is_unsigned(type) || type == BRAID_BOOL ? 0 : -8, type == BRAID_BOOL ? 1 : 8);
        if (type_is_float(type)) v = v / 4 + 0.125;
        element_set_f64(type, t->data, i, v);
    }
    return t;
}

static tensor *ints(arena *memory, int n, const int64_t *v) {
    tensor *t = new_tensor(memory, BRAID_INT64, 1, (int64_t[]){n});
    if (n) memcpy(t->data, v, (size_t)n * sizeof *v);
    return t;
}

/* Evaluates one node `y, z = <call>` whose inputs are x0, x1, ... */
static braid_status evaluate(arena *memory, const char *call, int n_in, const tensor *const *in, tensor **out,
                             braid_error *err) {
    char source[512], header[256];
    int n = 0;
    for (int i = 0; i < n_in; i++) {
        n += snprintf(header + n, sizeof header - (size_t)n, "%sx%d: %s[", i ? ", " : "", i,
                      braid_type_name(in[i]->type.type));
        for (int d = 0; d < in[i]->type.rank; d++)
            n +=
                snprintf(header + n, sizeof header - (size_t)n, "%s%lld", d ? "," : "", (long long)in[i]->type.dims[d]);
        n += snprintf(header + n, sizeof header - (size_t)n, "]");
    }
    snprintf(source, sizeof source, "graph t(%s) {\n%s\n} -> y", header, call);
    graph *g = NULL;
    if (graph_parse(memory, source, &g, err) != BRAID_OK) fail_msg("%s\n%s", err->message, source);
    graph_find_ops(g);
    return op_eval(g, g->nodes[0], memory, in, out, err);
}

static tensor *must(arena *memory, const char *call, int n_in, const tensor *const *in, tensor **more) {
    tensor *out[8] = {0};
    braid_error err = {0};
    if (evaluate(memory, call, n_in, in, out, &err) != BRAID_OK) fail_msg("%s: %s", call, err.message);
    if (more) *more = out[1];
    return out[0];
}

static double at(const tensor *t, int64_t i) { return element_f64(t->type.type, t->data, i); }

static void close_to(const char *what, int64_t i, double got, double want, double rtol) {
    if (isnan(want) ? isnan(got) : got == want || fabs(got - want) <= 1e-6 + rtol * fabs(want)) return;
    fail_msg("%s: element %lld is %.9g, expected %.9g", what, (long long)i, got, want);
}

static const char *const reduce_names[] = {"Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp",
                                           "SumSquare"};

/* The definition, over the values of one row. */
static double reduce_values(int kind, const double *v, int64_t n) {
    double sum = 0, abs_sum = 0, square = 0, prod = 1, top = -INFINITY, low = INFINITY, exps = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += v[i];
        abs_sum += fabs(v[i]);
        square += v[i] * v[i];
        prod *= v[i];
        top = fmax(top, v[i]);
        low = fmin(low, v[i]);
        exps += exp(v[i]);
    }
    double all[] = {sum, sum / (double)n, top, low, prod, abs_sum, sqrt(square), log(sum), log(exps), square};
    return all[kind];
}

/* Gathers, for output element `o`, the input elements that fall on it. */
static int64_t gather_row(const tensor *x, uint32_t mask, int64_t o, double *v) {
    int64_t n = 0, coordinates[BRAID_MAX_RANK];
    for (int64_t i = 0; i < count_of(x); i++) {
        int64_t rest = i, to = 0;
        for (int d = x->type.rank - 1; d >= 0; d--) {
            coordinates[d] = rest % x->type.dims[d];
            rest /= x->type.dims[d];
        }
        for (int d = 0; d < x->type.rank; d++)
            if (!(mask >> d & 1u)) to = to * x->type.dims[d] + coordinates[d];
        if (to == o) v[n++] = at(x, i);
    }
    return n;
}

static void check_reduce(int kind, braid_type type, int rank, const int64_t *dims, uint32_t mask) {
    arena *memory = arena_new();
    tensor *x = random_tensor(memory, type, rank, dims);
    int64_t list[BRAID_MAX_RANK];
    double v[4096];
    char call[128];
    int n = 0;
    for (int d = 0; d < rank; d++)
        if (mask >> d & 1u) list[n++] = pick(0, 1) ? d : d - rank;
    const tensor *in[] = {x, ints(memory, n, list)};
    snprintf(call, sizeof call, "y = Reduce%s(x0, x1) {keepdims = %d, noop_with_empty_axes = 1}", reduce_names[kind],
             (int)pick(0, 1));
    tensor *y = must(memory, call, 2, in, NULL);
    for (int64_t o = 0; o < count_of(y); o++) {
        int64_t length = gather_row(x, mask, o, v);
        double want = reduce_values(kind, v, length);
        if (!type_is_float(type) && !isfinite(want)) continue; /* undefined */
        if (!type_is_float(type)) want = trunc(want);
        close_to(call, o, at(y, o), want, type == BRAID_FLOAT16 ? 2e-3 : 1e-6);
    }
    arena_free(memory);
}

static void test_reduce(void **state) {
    (void)state;
    static const braid_type types[] = {BRAID_FLOAT32, BRAID_FLOAT64, BRAID_FLOAT16,
                                       BRAID_INT32,   BRAID_INT64,   BRAID_UINT32};
    for (int i = 0; i < 400; i++) {
        int64_t dims[6];
        int rank = (int)pick(0, 5);
        for (int d = 0; d < rank; d++) dims[d] = pick(0, 12) ? pick(1, 4) : 0;
        check_reduce((int)pick(0, 9), types[pick(0, 5)], rank, dims, (uint32_t)pick(0, (1 << rank) - 1));
    }
    check_reduce(0, BRAID_FLOAT32, 3, (int64_t[]){2, 700, 1}, 2);
    check_reduce(2, BRAID_INT32, 2, (int64_t[]){3, 600}, 1);
    check_reduce(8, BRAID_FLOAT32, 2, (int64_t[]){600, 3}, 1);
}

static tensor *floats(arena *memory, int n, const float *v) {
    tensor *t = new_tensor(memory, BRAID_FLOAT32, 1, (int64_t[]){n});
    memcpy(t->data, v, (size_t)n * sizeof *v);
    return t;
}

static double reduce_floats(const char *call, int n, const float *v) {
    arena *memory = arena_new();
    const tensor *in[] = {floats(memory, n, v)};
    double y = at(must(memory, call, 1, in, NULL), 0);
    arena_free(memory);
    return y;
}

static void test_special_values(void **state) {
    (void)state;
    assert_true(isnan(reduce_floats("y = ReduceMax(x0)", 3, (float[]){1, NAN, 2})));
    assert_true(isnan(reduce_floats("y = ReduceMin(x0)", 3, (float[]){NAN, 1, 2})));
    assert_true(reduce_floats("y = ReduceLogSumExp(x0)", 2, (float[]){-INFINITY, -INFINITY}) == -INFINITY);
    assert_true(reduce_floats("y = ReduceLogSumExp(x0)", 2, (float[]){INFINITY, 1}) == INFINITY);
    assert_true(fabs(reduce_floats("y = ReduceLogSumExp(x0)", 2, (float[]){1000, 1000}) - 1000.6931) < 1e-3);
    assert_true(reduce_floats("y = ArgMax(x0)", 4, (float[]){1, NAN, 2, NAN}) == 1);
    assert_true(reduce_floats("y = ArgMin(x0) {select_last_index = 1}", 4, (float[]){1, NAN, 2, NAN}) == 3);
    assert_true(reduce_floats("y = ArgMax(x0) {select_last_index = 1}", 4, (float[]){3, 1, 3, 2}) == 2);
    assert_true(reduce_floats("y = ArgMin(x0)", 4, (float[]){1, 0, -0.0f, 2}) == 1);
}

/* Softmax kinds against the definition; flat rows span every axis from `axis` on. */
static void check_softmax(int kind, int rank, const int64_t *dims, int axis, bool flat) {
    static const char *const names[] = {"Softmax", "LogSoftmax", "Hardmax"};
    arena *memory = arena_new();
    char call[128];
    const tensor *x = random_tensor(memory, BRAID_FLOAT32, rank, dims);
    snprintf(call, sizeof call, "y = %s(x0) {axis = %d, flat = %d}", names[kind], axis, flat);
    tensor *y = must(memory, call, 1, &x, NULL);
    int64_t inner = 1, length = dims[axis];
    for (int d = axis + 1; d < rank; d++) *(flat ? &length : &inner) *= dims[d];
    for (int64_t i = 0; i < count_of(x); i++) {
        int64_t place = i / inner % length, base = i - place * inner, best = 0;
        double sum = 0;
        for (int64_t k = 0; k < length; k++) {
            sum += exp(at(x, base + k * inner));
            if (at(x, base + k * inner) > at(x, base + best * inner)) best = k;
        }
        double want[] = {exp(at(x, i)) / sum, at(x, i) - log(sum), place == best};
        close_to(call, i, at(y, i), want[kind], 1e-5);
    }
    arena_free(memory);
}

static void test_softmax(void **state) {
    (void)state;
    for (int i = 0; i < 60; i++) {
        int64_t dims[5];
        int rank = (int)pick(1, 4);
        for (int d = 0; d < rank; d++) dims[d] = pick(1, 5);
        check_softmax(i % 3, rank, dims, (int)pick(0, rank - 1), pick(0, 3) == 0);
    }
}

/* y = normalised x * scale + bias for rows that `group` names, elements with scale `which`. */
static void check_channel_norm(bool instance, int64_t groups) {
    arena *memory = arena_new();
    int64_t dims[] = {2, 6, 2, 3}, spatial = 6, channels = 6, each = channels / groups;
    char call[128];
    const tensor *in[] = {random_tensor(memory, BRAID_FLOAT32, 4, dims),
                          random_tensor(memory, BRAID_FLOAT32, 1, &dims[1]),
                          random_tensor(memory, BRAID_FLOAT32, 1, &dims[1])};
    if (instance) snprintf(call, sizeof call, "y = InstanceNormalization(x0, x1, x2) {epsilon = 0.01}");
    else
        snprintf(call, sizeof call, "y = GroupNormalization(x0, x1, x2) {num_groups = %d, epsilon = 0.01}",
                 (int)groups);
    tensor *y = must(memory, call, 3, in, NULL);
    for (int64_t i = 0; i < count_of(y); i++) {
        int64_t c = i / spatial % channels, n = each * spatial, base = i / n * n;
        double mean = 0, square = 0;
        for (int64_t k = 0; k < n; k++) mean += at(in[0], base + k) / (double)n;
        for (int64_t k = 0; k < n; k++) square += pow(at(in[0], base + k) - mean, 2) / (double)n;
        close_to(call, i, at(y, i), (at(in[0], i) - mean) / sqrt(square + 0.01) * at(in[1], c) + at(in[2], c), 1e-5);
    }
    arena_free(memory);
}

static void check_layer_norm(bool rms, int axis, int scale_rank) {
    arena *memory = arena_new();
    int64_t dims[] = {2, 3, 4}, n = 1;
    char call[128];
    for (int d = axis; d < 3; d++) n *= dims[d];
    const tensor *in[] = {random_tensor(memory, BRAID_FLOAT32, 3, dims),
                          random_tensor(memory, BRAID_FLOAT32, scale_rank, dims + 3 - scale_rank),
                          random_tensor(memory, BRAID_FLOAT32, 1, &dims[2])};
    const char *name = rms ? "y = RMSNormalization(x0, x1)" : "y, m = LayerNormalization(x0, x1, x2)";
    snprintf(call, sizeof call, "%s {axis = %d}", name, axis);
    tensor *means = NULL, *y = must(memory, call, rms ? 2 : 3, in, rms ? NULL : &means);
    for (int64_t i = 0; i < count_of(y); i++) {
        int64_t base = i / n * n;
        double mean = 0, square = 0;
        for (int64_t k = 0; k < n && !rms; k++) mean += at(in[0], base + k) / (double)n;
        for (int64_t k = 0; k < n; k++) square += pow(at(in[0], base + k) - mean, 2) / (double)n;
        double want = (at(in[0], i) - mean) / sqrt(square + 1e-5) * at(in[1], i % count_of(in[1]));
        close_to(call, i, at(y, i), rms ? want : want + at(in[2], i % 4), 1e-5);
        if (means) close_to(call, i / n, at(means, i / n), mean, 1e-6);
    }
    arena_free(memory);
}

static void test_norms(void **state) {
    (void)state;
    check_channel_norm(true, 6);
    for (int64_t groups = 1; groups <= 6; groups++)
        if (6 % groups == 0) check_channel_norm(false, groups);
    for (int axis = 0; axis < 3; axis++)
        for (int rank = 1; rank <= 3; rank++) {
            check_layer_norm(false, axis, rank);
            check_layer_norm(true, axis, rank);
        }
}

static void test_large_mean(void **state) {
    (void)state;
    arena *memory = arena_new();
    const tensor *in[] = {floats(memory, 4, (float[]){16777208, 16777210, 16777212, 16777214}),
                          floats(memory, 4, (float[]){1, 1, 1, 1})};
    tensor *y = must(memory, "y = LayerNormalization(x0, x1)", 2, in, NULL);
    static const double want[] = {-1.341639, -0.447213, 0.447213, 1.341639};
    for (int i = 0; i < 4; i++) close_to("large mean", i, at(y, i), want[i], 1e-5);
    arena_free(memory);
}

static void check_top(braid_type type, int64_t length, int64_t inner, int64_t k, bool largest) {
    arena *memory = arena_new();
    char call[128];
    const tensor *in[] = {random_tensor(memory, type, 3, (int64_t[]){2, length, inner}), ints(memory, 1, &k)};
    snprintf(call, sizeof call, "y, i = TopK(x0, x1) {axis = 1, largest = %d}", largest);
    tensor *where, *y = must(memory, call, 2, in, &where);
    for (int64_t r = 0; r < 2 * inner; r++) {
        int64_t from = r / inner * length * inner + r % inner, to = r / inner * k * inner + r % inner;
        for (int64_t i = 0; i < length; i++) {
            int64_t rank = 0; /* elements that come before i */
            double v = at(in[0], from + i * inner);
            for (int64_t j = 0; j < length; j++) {
                double w = at(in[0], from + j * inner);
                rank += w == v ? j < i : largest ? w > v : w < v;
            }
            if (rank >= k) continue;
            assert_true(at(y, to + rank * inner) == v);
            assert_int_equal((int64_t)at(where, to + rank * inner), i);
        }
    }
    arena_free(memory);
}

static void test_top(void **state) {
    (void)state;
    static const braid_type types[] = {BRAID_FLOAT32, BRAID_INT64, BRAID_UINT8, BRAID_FLOAT16, BRAID_FLOAT64};
    for (int i = 0; i < 60; i++) {
        int64_t length = pick(1, 40);
        check_top(types[i % 5], length, pick(1, 3), pick(0, length), pick(0, 1) != 0);
    }
}

static void check_scan(const char *name, braid_type type, int axis, bool exclusive, bool reverse) {
    arena *memory = arena_new();
    int64_t dims[] = {3, 5, 2}, inner = 1, where = axis - 3;
    char call[128];
    for (int d = axis + 1; d < 3; d++) inner *= dims[d];
    const tensor *in[] = {random_tensor(memory, type, 3, dims), ints(memory, 1, &where)};
    snprintf(call, sizeof call, "y = %s(x0, x1) {exclusive = %d, reverse = %d}", name, exclusive, reverse);
    tensor *y = must(memory, call, 2, in, NULL);
    bool product = strcmp(name, "CumProd") == 0;
    for (int64_t i = 0; i < count_of(y); i++) {
        int64_t place = i / inner % dims[axis];
        double acc = product;
        for (int64_t k = 0; k < dims[axis]; k++) {
            bool counts = reverse ? k > place || (k == place && !exclusive) : k < place || (k == place && !exclusive);
            double v = at(in[0], i + (k - place) * inner);
            if (counts) acc = product ? acc * v : acc + v;
        }
        close_to(call, i, at(y, i), acc, 1e-6);
    }
    arena_free(memory);
}

static void test_scan(void **state) {
    (void)state;
    for (int i = 0; i < 24; i++) {
        check_scan("CumSum", i % 2 ? BRAID_FLOAT32 : BRAID_INT64, i / 8, i & 2, i & 4);
        check_scan("CumProd", i % 2 ? BRAID_FLOAT64 : BRAID_INT32, i / 8, i & 2, i & 4);
    }
}

static void test_loss_label(void **state) {
    (void)state;
    arena *memory = arena_new();
    braid_error err = {0};
    tensor *out[2] = {0};
    const tensor *in[] = {random_tensor(memory, BRAID_FLOAT32, 2, (int64_t[]){2, 3}),
                          ints(memory, 2, (int64_t[]){1, 3})};
    const char *plain = "y = NegativeLogLikelihoodLoss(x0, x1)";
    assert_int_equal(evaluate(memory, plain, 2, in, out, &err), BRAID_INDEX);
    assert_string_equal(err.message, "label 3 outside [0, 3)");
    tensor *y = must(memory, "y = NegativeLogLikelihoodLoss(x0, x1) {ignore_index = 3}", 2, in, NULL);
    close_to("ignored", 0, at(y, 0), -at(in[0], 1), 1e-6);
    arena_free(memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_infer),      cmocka_unit_test(test_reduce), cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_softmax),    cmocka_unit_test(test_norms),  cmocka_unit_test(test_large_mean),
        cmocka_unit_test(test_top),        cmocka_unit_test(test_scan),   cmocka_unit_test(test_loss_label),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
