/*
 * ops_reduce_gpu.c: the row kernels on the device against the CPU reference: random shapes, attributes and types,
 * special values, rows that are cut into chunks.
 *
 * labels: slow
 */
#include "ops_gpu.h"

static int64_t pick(int64_t low, int64_t high) { /* both included */
    return low + (int64_t)(ops_uniform() * (double)(high - low + 1));
}

static double tolerance(braid_type type) {
    return type == BRAID_FLOAT16 ? 2e-3 : type == BRAID_BFLOAT16 ? 1.6e-2 : 1e-5;
}

/* "float32[2,3]" */
static const char *type_of(char *buffer, size_t size, braid_type type, int rank, const int64_t *dims) {
    int n = snprintf(buffer, size, "%s[", braid_type_name(type));
    for (int d = 0; d < rank; d++) n += snprintf(buffer + n, size - (size_t)n, "%s%d", d ? "," : "", (int)dims[d]);
    snprintf(buffer + n, size - (size_t)n, "]");
    return buffer;
}

static const char *ints_text(char *buffer, size_t size, int n, const int64_t *v) {
    int at = snprintf(buffer, size, "int64[%d] = constant {", n);
    for (int i = 0; i < n; i++) at += snprintf(buffer + at, size - (size_t)at, "%s%d", i ? ", " : "", (int)v[i]);
    snprintf(buffer + at, size - (size_t)at, "}");
    return buffer;
}

static int random_dims(int least, int64_t *dims, int64_t most) {
    int rank = (int)pick(least, 5);
    for (int d = 0; d < rank; d++) dims[d] = pick(0, 15) ? pick(1, most) : d >= least ? 0 : 1;
    return rank;
}

/* The inputs must cost no host step. */
static void on_device(const char *source, size_t n_in, braid_tensor *in, double rtol, double atol) {
    uint64_t host_steps = ops_compare(source, n_in, in, rtol, atol);
    if (host_steps) fail_msg("%d host steps in\n%s", (int)host_steps, source);
}

/* ------------------------------------------------------------------------------------------------- reduce */

static const char *const float_kinds[] = {"Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSumExp",
                                          "LogSum"};

static void reduce_case(const char *kind, braid_type type, int rank, const int64_t *dims, uint32_t mask, bool special) {
    char x[64], axes[64], source[512];
    int64_t list[BRAID_MAX_RANK];
    int n = 0;
    for (int d = 0; d < rank; d++)
        if (mask >> d & 1u) list[n++] = d;
    snprintf(source, sizeof source,
             "graph t(x: %s) {\na: %s\ny = Reduce%s(x, a) {keepdims = %d, noop_with_empty_axes = 1}\n} -> y",
             type_of(x, sizeof x, type, rank, dims), ints_text(axes, sizeof axes, n, list), kind, (int)pick(0, 1));
    bool positive = strcmp(kind, "LogSum") == 0 || type_is_unsigned(type);
    braid_tensor in[] = {ops_random_full("x", type, rank, dims, positive ? 0 : -3, 4, special)};
    on_device(source, 1, in, tolerance(type), special ? 1e-4 : 1e-5);
}

static void test_reduce_float(void **state) {
    (void)state;
    static const braid_type types[] = {BRAID_FLOAT32, BRAID_FLOAT16, BRAID_BFLOAT16};
    for (int i = 0; i < 40; i++) {
        int64_t dims[5];
        int rank = random_dims(0, dims, 6);
        reduce_case(float_kinds[i % 10], types[i % 3], rank, dims, (uint32_t)pick(0, (1 << rank) - 1), false);
    }
}

static void test_reduce_integer(void **state) {
    (void)state;
    static const char *const kinds[] = {"Sum", "Mean", "Max", "Min", "Prod", "L1", "SumSquare"};
    static const braid_type types[] = {BRAID_INT32, BRAID_INT64, BRAID_UINT32, BRAID_UINT64};
    static const braid_type small[] = {BRAID_INT8, BRAID_UINT8, BRAID_BOOL};
    for (int i = 0; i < 28; i++) {
        int64_t dims[5];
        int rank = random_dims(0, dims, 5);
        uint32_t mask = (uint32_t)pick(0, (1 << rank) - 1);
        reduce_case(kinds[i % 7], types[i % 4], rank, dims, mask, false);
        if (i < 6) reduce_case(kinds[2 + i % 2], small[i % 3], rank, dims, mask, false);
    }
}

static void test_reduce_double(void **state) {
    (void)state;
    for (int i = 0; i < 10; i++) reduce_case(float_kinds[i], BRAID_FLOAT64, 3, (int64_t[]){3, 37, 5}, 2, false);
    for (int i = 0; i < 10; i++) reduce_case(float_kinds[i], BRAID_FLOAT64, 2, (int64_t[]){3, 700}, 2, false);
}

/* No sums of both signs: 1e30 - 1e30 + 1 has no one right answer. */
static void test_reduce_special(void **state) {
    (void)state;
    static const char *const kinds[] = {"Max", "Min", "LogSumExp", "L1"};
    for (uint32_t mask = 1; mask <= 2; mask++)
        for (size_t k = 0; k < COUNT_OF(kinds); k++)
            reduce_case(kinds[k], BRAID_FLOAT32, 2, (int64_t[]){9, 17}, mask, true);
}

/* Rows of every length class, along and across memory; long ones are cut into chunks. */
static void test_reduce_long(void **state) {
    (void)state;
    static const int64_t lengths[] = {1, 3, 8, 31, 64, 255, 1000, 4100};
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        reduce_case(float_kinds[i % 4], BRAID_FLOAT32, 2, (int64_t[]){5, lengths[i]}, 2, false);
        reduce_case(float_kinds[5 + i % 4], BRAID_FLOAT32, 2, (int64_t[]){lengths[i], 70}, 1, false);
    }
    reduce_case("Sum", BRAID_FLOAT32, 1, (int64_t[]){300001}, 1, false);
    reduce_case("LogSumExp", BRAID_FLOAT32, 1, (int64_t[]){100000}, 1, false);
    reduce_case("Mean", BRAID_FLOAT16, 2, (int64_t[]){2, 65536}, 2, false);
    reduce_case("Max", BRAID_INT32, 2, (int64_t[]){50000, 2}, 1, false);
}

static void arg_case(const char *kind, braid_type type, int rank, const int64_t *dims, bool special) {
    char x[64], source[512];
    snprintf(source, sizeof source,
             "graph t(x: %s) {\ny = Arg%s(x) {axis = %d, keepdims = %d, select_last_index = %d}\n} -> y",
             type_of(x, sizeof x, type, rank, dims), kind, (int)pick(-rank, rank - 1), (int)pick(0, 1),
             (int)pick(0, 1));
    braid_tensor in[] = {ops_random_full("x", type, rank, dims, type_is_unsigned(type) ? 0 : -4, 5, special)};
    on_device(source, 1, in, 0, 0);
}

static void test_arg(void **state) {
    (void)state;
    static const braid_type types[] = {BRAID_FLOAT32, BRAID_INT8, BRAID_FLOAT16, BRAID_INT64, BRAID_UINT64, BRAID_INT32,
                                       BRAID_UINT16};
    for (int i = 0; i < 28; i++) {
        int64_t dims[5];
        int rank = (int)pick(1, 4);
        for (int d = 0; d < rank; d++) dims[d] = pick(1, 9);
        arg_case(i & 1 ? "Max" : "Min", types[i % 7], rank, dims, i % 7 == 0 && i > 7);
    }
    arg_case("Max", BRAID_FLOAT32, 1, (int64_t[]){100000}, false);
    arg_case("Min", BRAID_INT64, 2, (int64_t[]){3, 1000}, false);
}

static void test_global_pools(void **state) {
    (void)state;
    static const char *const names[] = {"GlobalAveragePool(x)", "GlobalMaxPool(x)", "GlobalLpPool(x) {p = 2}",
                                        "GlobalLpPool(x) {p = 3}"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char source[256];
        snprintf(source, sizeof source, "graph t(x: float32[2,5,7,7]) { y = %s } -> y", names[i]);
        braid_tensor in[] = {ops_random("x", BRAID_FLOAT32, 4, (int64_t[]){2, 5, 7, 7})};
        on_device(source, 1, in, 1e-5, 1e-6);
    }
}

/* ------------------------------------------------------------------------------------------ softmax, norms */

static void softmax_case(const char *name, braid_type type, int rank, const int64_t *dims, int axis, int flat,
                         bool special) {
    char x[64], source[512];
    snprintf(source, sizeof source, "graph t(x: %s) {\ny = %s(x) {axis = %d, flat = %d}\n} -> y",
             type_of(x, sizeof x, type, rank, dims), name, axis, flat);
    braid_tensor in[] = {ops_random_full("x", type, rank, dims, -4, 5, special)};
    on_device(source, 1, in, tolerance(type), 1e-6);
}

static void test_softmax(void **state) {
    (void)state;
    static const char *const names[] = {"Softmax", "LogSoftmax", "Hardmax"};
    static const braid_type types[] = {BRAID_FLOAT32, BRAID_FLOAT16, BRAID_BFLOAT16};
    for (int i = 0; i < 24; i++) {
        int64_t dims[5];
        int rank = random_dims(1, dims, 6);
        softmax_case(names[i % 3], types[i / 3 % 3], rank, dims, (int)pick(0, rank - 1), pick(0, 3) == 0, false);
    }
    static const int64_t lengths[] = {1, 5, 64, 127, 128, 768, 3000};
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        softmax_case(names[i % 3], BRAID_FLOAT32, 2, (int64_t[]){7, lengths[i]}, 1, 0, false);
        softmax_case(names[(i + 1) % 3], BRAID_FLOAT32, 3, (int64_t[]){2, lengths[i], 11}, 1, 0, false);
    }
    for (int i = 0; i < 3; i++) softmax_case(names[i], BRAID_FLOAT32, 2, (int64_t[]){40, 3}, 1, 0, true);
}

static void norm_case(const char *call, braid_type type, int rank, const int64_t *dims, const int64_t *scale, int n) {
    char x[64], s[64], source[512];
    type_of(s, sizeof s, type, n, scale);
    snprintf(source, sizeof source, "graph t(x: %s, s: %s, b: %s) {\n%s\n} -> y",
             type_of(x, sizeof x, type, rank, dims), s, s, call);
    braid_tensor in[] = {ops_random("x", type, rank, dims), ops_random("s", type, n, scale),
                         ops_random("b", type, n, scale)};
    on_device(source, 3, in, tolerance(type), type == BRAID_FLOAT32 ? 2e-5 : type == BRAID_FLOAT16 ? 4e-3 : 4e-2);
}

static void test_layer_norm(void **state) {
    (void)state;
    static const int64_t lengths[] = {1, 3, 32, 100, 768, 1030, 5000};
    static const braid_type types[] = {BRAID_FLOAT32, BRAID_FLOAT16, BRAID_BFLOAT16};
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        int64_t dims[] = {3, 2, lengths[i]};
        norm_case("y = LayerNormalization(x, s, b)", types[i % 3], 3, dims, dims + 2, 1);
        norm_case("y = RMSNormalization(x, s)\nz = Identity(b)", BRAID_FLOAT32, 3, dims, dims + 2, 1);
        norm_case("y = LayerNormalization(x, s, b) {axis = 1}", BRAID_FLOAT32, 3, dims, dims + 2, 1);
        norm_case("y = LayerNormalization(x, s, b) {axis = 1}", BRAID_FLOAT32, 3, dims, dims + 1, 2);
    }
    int64_t dims[] = {3, 2, 5, 4};
    norm_case("y = LayerNormalization(x, s, b) {axis = 2}", BRAID_FLOAT32, 4, dims, (int64_t[]){2, 1, 4}, 3);
    norm_case("z, y = LayerNormalization(x, s, b) {axis = 2}", BRAID_FLOAT32, 4, dims, dims + 3, 1);
    norm_case("z, w, y = LayerNormalization(x, s, b) {axis = 2}", BRAID_FLOAT32, 4, dims, dims + 3, 1);
    norm_case("y = LayerNormalization(x, s, b)", BRAID_FLOAT64, 4, dims, dims + 3, 1);
}

static void test_channel_norm(void **state) {
    (void)state;
    static const int64_t shapes[][4] = {{2, 6, 5, 3}, {1, 4, 16, 16}, {2, 8, 1, 1}, {1, 6, 70, 70}};
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        const int64_t *d = shapes[i];
        norm_case("y = InstanceNormalization(x, s, b)", i & 1 ? BRAID_FLOAT16 : BRAID_FLOAT32, 4, d, d + 1, 1);
        norm_case("y = GroupNormalization(x, s, b) {num_groups = 2}", BRAID_FLOAT32, 4, d, d + 1, 1);
        norm_case("y = GroupNormalization(x, s, b) {num_groups = 2, scale_per_group = 1}", BRAID_FLOAT32, 4, d,
                  (int64_t[]){2}, 1);
        norm_case("y = MeanVarianceNormalization(x)", BRAID_FLOAT32, 4, d, d + 1, 1);
        norm_case("y = MeanVarianceNormalization(x) {axes = [1]}", BRAID_FLOAT32, 4, d, d + 1, 1);
        norm_case("y = LpNormalization(x) {p = 1, axis = 1}", BRAID_FLOAT32, 4, d, d + 1, 1);
        norm_case("y = LpNormalization(x) {p = 2}", BRAID_FLOAT32, 4, d, d + 1, 1);
        norm_case("y = LRN(x) {size = 3, alpha = 0.5, beta = 0.75, bias = 2.0}", BRAID_FLOAT32, 4, d, d + 1, 1);
        norm_case("y = LRN(x) {size = 4, alpha = 0.5}", BRAID_FLOAT16, 4, d, d + 1, 1);
    }
}

/* Few long rows, which GPUs cut into chunks. */
static void test_long_norm(void **state) {
    (void)state;
    int64_t image[] = {1, 4, 260, 160}, row[] = {2, 33333}, third[] = {1, 3, 200, 201};
    norm_case("y = GroupNormalization(x, s, b) {num_groups = 2}", BRAID_FLOAT32, 4, image, image + 1, 1);
    norm_case("y = InstanceNormalization(x, s, b)", BRAID_FLOAT16, 4, image, image + 1, 1);
    norm_case("n = InstanceNormalization(x, s, b)\ny = Relu(n)", BRAID_FLOAT32, 4, third, third + 1, 1);
    norm_case("z, w, y = LayerNormalization(x, s, b)", BRAID_FLOAT32, 2, row, row + 1, 1);
    norm_case("y = LayerNormalization(x, s, b)", BRAID_BFLOAT16, 2, row, row + 1, 1);
    norm_case("y = RMSNormalization(x, s)\nz = Identity(b)", BRAID_FLOAT32, 2, row, row + 1, 1);
    norm_case("y = LpNormalization(x) {p = 1}", BRAID_FLOAT32, 2, row, row + 1, 1);
    norm_case("y = MeanVarianceNormalization(x) {axes = [1, 2, 3]}", BRAID_FLOAT32, 4, third, third + 1, 1);
}

/* The mean is 2^24 and the spread about 2: nothing may cancel. */
static void test_large_mean(void **state) {
    (void)state;
    int64_t dims[] = {4, 768};
    static const char source[] = "graph t(x: float32[4,768], s: float32[768]) { y = LayerNormalization(x, s) } -> y";
    braid_tensor in[] = {ops_random("x", BRAID_FLOAT32, 2, dims), ops_random("s", BRAID_FLOAT32, 1, dims + 1)};
    for (int i = 0; i < 4 * 768; i++) ((float *)in[0].data)[i] = 16777216 + 2 * (float)pick(-3, 3);
    on_device(source, 2, in, 1e-4, 1e-4);
    static const char longer[] =
        "graph t(x: float32[1,40000], s: float32[40000]) { y = LayerNormalization(x, s) } -> y";
    braid_tensor more[] = {ops_random("x", BRAID_FLOAT32, 2, (int64_t[]){1, 40000}),
                           ops_random("s", BRAID_FLOAT32, 1, (int64_t[]){40000})};
    for (int i = 0; i < 40000; i++) ((float *)more[0].data)[i] = 16777216 + 2 * (float)pick(-3, 3);
    on_device(longer, 2, more, 1e-4, 1e-4);
}

/* Elementwise tails: some run inside the row kernel, others are taken apart again; the result is the same. */
static void test_epilogue(void **state) {
    (void)state;
    static const char *const graphs[] = {
        "s: float32[6], b: float32[6]) {\nn = InstanceNormalization(x, s, b)\ny = Relu(n)",
        "s: float32[6], b: float32[6]) {\nn = GroupNormalization(x, s, b) {num_groups = 3}\ng = Sigmoid(n)\ny = Mul(n, "
        "g)",
        "s: float32[5], b: float32[2,6,4,5]) {\nn = LayerNormalization(x, s)\ny = Add(n, b)",
        "s: float32[5], b: float32[6,1,1]) {\nn = LayerNormalization(x, s)\ny = Add(n, b)",
        "s: float32[4,5], b: float32[5]) {\nn = LayerNormalization(x, s) {axis = 2}\ny = Mul(n, b)",
        "s: float32[4,1], b: float32[]) {\na: int64[1] = constant {3}\nm = ReduceMean(x, a)\nt = Mul(m, s)\ny = Add(t, "
        "b)",
        "s: float32[6,1,1], b: float32[]) {\na: int64[2] = constant {2, 3}\nm = ReduceL2(x, a)\nt = Mul(m, s)\ny = "
        "Add(t, b)",
        "s: float32[1], b: float32[2]) {\nm = ReduceMax(x) {keepdims = 0}\ny = Neg(m)\nz = Identity(s)",
        "s: float32[1], b: float32[6,1,1]) {\nm = MeanVarianceNormalization(x)\ny = Add(m, b)\nz = Identity(s)",
    };
    int64_t dims[] = {2, 6, 4, 5};
    for (size_t i = 0; i < COUNT_OF(graphs); i++) {
        char source[512];
        braid_error err = {0};
        snprintf(source, sizeof source, "graph t(x: float32[2,6,4,5], %s\n} -> y", graphs[i]);
        braid_model *model = ops_model(source, &err);
        if (!model) fail_msg("%s", err.message);
        const tensor_type *s = &model->m->g->values[model->m->g->inputs[1]]->type;
        const tensor_type *b = &model->m->g->values[model->m->g->inputs[2]]->type;
        braid_tensor in[] = {ops_random("x", BRAID_FLOAT32, 4, dims), ops_random("s", BRAID_FLOAT32, s->rank, s->dims),
                             ops_random("b", BRAID_FLOAT32, b->rank, b->dims)};
        braid_model_free(model);
        on_device(source, 3, in, 1e-5, 2e-5);
    }
}

/* ---------------------------------------------------------------------------------------- scan, sort, loss */

static void scan_case(const char *name, braid_type type, int rank, const int64_t *dims, int axis) {
    char x[64], source[512];
    snprintf(source, sizeof source,
             "graph t(x: %s) {\na: int64[] = constant {%d}\ny = %s(x, a) {exclusive = %d, reverse = %d}\n} -> y",
             type_of(x, sizeof x, type, rank, dims), axis, name, (int)pick(0, 1), (int)pick(0, 1));
    bool product = strcmp(name, "CumProd") == 0;
    braid_tensor in[] = {ops_random_full(
        "x", type, rank, dims, product ? 0.5 : type_is_unsigned(type) ? 0 : -4, product ? 1.9 : 5, false)};
    on_device(source, 1, in, type == BRAID_FLOAT32 ? 1e-4 : tolerance(type), type == BRAID_FLOAT64 ? 1e-9 : 1e-3);
}

static void test_scan(void **state) {
    (void)state;
    static const braid_type types[] = {BRAID_FLOAT32, BRAID_INT32,   BRAID_INT64,
                                       BRAID_UINT32,  BRAID_FLOAT64, BRAID_FLOAT16};
    for (int i = 0; i < 36; i++) {
        int64_t dims[5];
        int rank = random_dims(1, dims, 20);
        if (rank > 3) rank = 3;
        scan_case(i % 4 == 3 ? "CumProd" : "CumSum", types[i % 6], rank, dims, (int)pick(-rank, rank - 1));
    }
    for (int i = 0; i < 4; i++) {
        scan_case("CumSum", BRAID_INT64, 2, (int64_t[]){2, 40000}, 1);
        scan_case("CumSum", BRAID_INT32, 2, (int64_t[]){2000, 3}, 0);
    }
    scan_case("CumSum", BRAID_FLOAT32, 1, (int64_t[]){100000}, 0);
}

/* The axis arrives when it runs. */
static void test_scan_any(void **state) {
    (void)state;
    static const braid_type types[] = {BRAID_FLOAT32, BRAID_INT32, BRAID_FLOAT64, BRAID_UINT64, BRAID_BFLOAT16};
    for (int i = 0; i < 20; i++) {
        char x[64], source[512];
        int64_t dims[] = {pick(1, 9), pick(1, 70), pick(1, 5)};
        snprintf(source, sizeof source,
                 "graph t(x: %s, a: int64[]) {\ny = Cum%s(x, a) {exclusive = %d, reverse = %d}\n} -> y",
                 type_of(x, sizeof x, types[i % 5], 3, dims), i % 4 ? "Sum" : "Prod", (int)pick(0, 1), (int)pick(0, 1));
        braid_tensor in[] = {ops_random_full("x", types[i % 5], 3, dims, 1, 3, false),
                             ops_random("a", BRAID_INT64, 0, NULL)};
        *(int64_t *)in[1].data = pick(-3, 2);
        on_device(source, 2, in, 2e-2, 1e-4);
    }
}

static void top_case(braid_type type, int64_t outer, int64_t length, int64_t inner, int64_t k, bool special) {
    char x[64], source[512];
    int64_t dims[] = {outer, length, inner};
    snprintf(source, sizeof source,
             "graph t(x: %s) {\nk: int64[1] = constant {%d}\ny, i = TopK(x, k) {axis = 1, largest = %d}\n} -> y, i",
             type_of(x, sizeof x, type, 3, dims), (int)k, (int)pick(0, 1));
    braid_tensor in[] = {ops_random_full("x", type, 3, dims, type_is_unsigned(type) ? 0 : -20, 20, special)};
    on_device(source, 1, in, 0, 0);
}

static void test_top(void **state) {
    (void)state;
    static const braid_type types[] = {BRAID_FLOAT32, BRAID_INT64,  BRAID_UINT8,   BRAID_FLOAT16, BRAID_FLOAT64,
                                       BRAID_INT32,   BRAID_UINT64, BRAID_BFLOAT16, BRAID_INT8};
    for (int i = 0; i < 36; i++) {
        int64_t length = pick(1, 70);
        top_case(types[i % 9], pick(1, 5), length, pick(1, 3), pick(0, length), i % 9 == 0);
    }
    top_case(BRAID_FLOAT32, 2, 1000, 1, 1000, false);
    top_case(BRAID_FLOAT32, 1, 30000, 1, 40, false);
    top_case(BRAID_FLOAT16, 3, 9000, 1, 300, false);
    top_case(BRAID_FLOAT32, 1, 10000, 1, 2000, false);
    top_case(BRAID_INT64, 2, 9000, 2, 5, false);
}

static void test_loss(void **state) {
    (void)state;
    static const char *const reductions[] = {"none", "sum", "mean"};
    for (int i = 0; i < 18; i++) {
        char source[512];
        bool softmax = i & 1, weighted = i / 6 == 1, type16 = i / 6 == 2;
        braid_type type = type16 ? BRAID_FLOAT16 : BRAID_FLOAT32;
        int64_t dims[] = {3, 5, i < 9 ? 7 : 900};
        snprintf(
            source, sizeof source,
            "graph t(x: %s[3,5,%d], t: int64[3,%d], w: %s[5]) {\n%s = %s(x, t%s) {reduction = \"%s\", ignore_index = "
            "%d}\n} -> y%s",
            braid_type_name(type), (int)dims[2], (int)dims[2], braid_type_name(type),
            softmax && weighted ? "y, z" : "y", softmax ? "SoftmaxCrossEntropyLoss" : "NegativeLogLikelihoodLoss",
            weighted ? ", w" : "", reductions[i / 2 % 3], i % 2 ? 2 : -7, softmax && weighted ? ", z" : "");
        braid_tensor in[] = {ops_random("x", type, 3, dims),
                             ops_random_full("t", BRAID_INT64, 2, (int64_t[]){3, dims[2]}, 0, 5, false),
                             ops_random_full("w", type, 1, dims + 1, 0.5, 2, false)};
        on_device(source, 3, in, type16 ? 4e-3 : 1e-4, type16 ? 1e-2 : 1e-4);
    }
}

static void test_loss_label(void **state) {
    (void)state;
    static const char source[] =
        "graph t(x: float32[2,3], t: int64[2]) { y = NegativeLogLikelihoodLoss(x, t) } -> y";
    braid_tensor in[] = {ops_random("x", BRAID_FLOAT32, 2, (int64_t[]){2, 3}),
                         ops_random("t", BRAID_INT64, 1, (int64_t[]){2})};
    ((int64_t *)in[1].data)[0] = 1;
    ((int64_t *)in[1].data)[1] = 3;
    braid_tensor out = {0};
    braid_error err = {0};
    assert_int_equal(ops_run(false, source, 2, in, 1, &out, NULL, &err), BRAID_INDEX);
    free(in[0].data);
    free(in[1].data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reduce_float),  cmocka_unit_test(test_reduce_integer),
        cmocka_unit_test(test_reduce_double), cmocka_unit_test(test_reduce_special),
        cmocka_unit_test(test_reduce_long),   cmocka_unit_test(test_arg),
        cmocka_unit_test(test_global_pools),  cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_layer_norm),    cmocka_unit_test(test_channel_norm),
        cmocka_unit_test(test_large_mean),    cmocka_unit_test(test_scan),
        cmocka_unit_test(test_scan_any),      cmocka_unit_test(test_top),
        cmocka_unit_test(test_loss),          cmocka_unit_test(test_loss_label),
        cmocka_unit_test(test_epilogue),      cmocka_unit_test(test_long_norm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
