/*
 * ops_product_gpu.c: products and convolutions on the device against the host.
 * labels: device
 */
#include "ops_gpu.h"

static int64_t between(int64_t low, int64_t high) {
    return low + ops_below(high - low + 1);
}

typedef struct slack {
    double rtol, atol;
} slack;
static slack slack_of(braid_type t) {
    if (t == BRAID_FLOAT16) return (slack){4e-3, 2e-2};
    if (t == BRAID_BFLOAT16) return (slack){1.0 / 64, 1e-1};
    return (slack){1e-4, 1e-3};
}

static const braid_type types[] = {BRAID_FLOAT32, BRAID_FLOAT16, BRAID_BFLOAT16, BRAID_FLOAT64,
                                   BRAID_INT32,   BRAID_INT64,   BRAID_UINT32,   BRAID_UINT64};

/* Text of a shape "[2,3]". */
static const char *shape(char *to, size_t size, int rank, const int64_t *dims) {
    size_t at = (size_t)snprintf(to, size, "[");
    for (int i = 0; i < rank; i++)
        at += (size_t)snprintf(to + at, size - at, "%s%lld", i ? "," : "", (long long)dims[i]);
    snprintf(to + at, size - at, "]");
    return to;
}

/* One node over random inputs; nothing may run on the host. */
static void compare(const char *call, braid_type type, int n_in, const int *ranks, const int64_t (*dims)[6]) {
    static const char *const names[] = {"a", "b", "c"};
    char source[1024], part[128];
    int at = snprintf(source, sizeof source, "graph t(");
    braid_tensor in[3];
    for (int i = 0; i < n_in; i++) {
        at += snprintf(source + at, sizeof source - (size_t)at, "%s%s: %s%s", i ? ", " : "", names[i],
                       braid_type_name(type), shape(part, sizeof part, ranks[i], dims[i]));
        in[i] = ops_random(names[i], type, ranks[i], dims[i]);
    }
    snprintf(source + at, sizeof source - (size_t)at, ") { y = %s } -> y", call);
    slack s = slack_of(type);
    if (ops_compare(source, (size_t)n_in, in, s.rtol, s.atol) != 0) fail_msg("host steps in\n%s", source);
}

static void matmul_known(void **state) {
    (void)state;
    static const int64_t cubes[][3] = {{3, 3, 3},    {5, 5, 5},    {6, 6, 6},  {10, 10, 10}, {50, 50, 50}, {6, 12, 18},
                                       {1, 6, 4},    {1, 10, 10},  {7, 0, 5},  {0, 3, 4},    {3, 4, 0},    {33, 1, 65},
                                       {1, 257, 63}, {64, 64, 64}, {65, 5, 1}, {3, 130, 2},  {1, 64, 1}};
    for (size_t i = 0; i < COUNT_OF(cubes); i++)
        for (size_t t = 0; t < COUNT_OF(types); t++) {
            if (t > 0 && (i + t) % 4 != 0) continue;
            int64_t dims[2][6] = {{cubes[i][0], cubes[i][1]}, {cubes[i][1], cubes[i][2]}};
            compare("MatMul(a, b)", types[t], 2, (int[]){2, 2}, dims);
        }
}

static void matmul_batches(void **state) {
    (void)state;
    compare("MatMul(a, b)", BRAID_FLOAT32, 2, (int[]){3, 2}, (int64_t[2][6]){{2, 4, 4}, {4, 4}});
    compare("MatMul(a, b)", BRAID_FLOAT32, 2, (int[]){2, 3}, (int64_t[2][6]){{4, 4}, {2, 4, 4}});
    compare("MatMul(a, b)", BRAID_FLOAT32, 2, (int[]){1, 1}, (int64_t[2][6]){{7}, {7}});
    compare("MatMul(a, b)", BRAID_FLOAT32, 2, (int[]){1, 3}, (int64_t[2][6]){{7}, {2, 7, 5}});
    compare("MatMul(a, b)", BRAID_FLOAT32, 2, (int[]){4, 1}, (int64_t[2][6]){{2, 3, 5, 7}, {7}});
    compare("MatMul(a, b)", BRAID_FLOAT32, 2, (int[]){5, 4}, (int64_t[2][6]){{2, 1, 3, 5, 7}, {4, 1, 7, 3}});
    compare("MatMul(a, b)", BRAID_FLOAT32, 2, (int[]){4, 4}, (int64_t[2][6]){{1, 12, 8, 16}, {1, 12, 16, 8}});
    compare("MatMul(a, b)", BRAID_INT64, 2, (int[]){3, 3}, (int64_t[2][6]){{2, 3, 5}, {2, 5, 4}});
    compare("MatMul(a, b)", BRAID_FLOAT32, 2, (int[]){3, 3}, (int64_t[2][6]){{0, 3, 5}, {0, 5, 4}});
}

static void gemm_forms(void **state) {
    (void)state;
    for (int i = 0; i < 48; i++) {
        int64_t m = between(1, 40), n = i % 5 == 0 ? 2 : between(1, 40), k = between(0, 70);
        bool at = i & 1, bt = i & 2;
        int bias = i / 4 % 5;
        int64_t dims[3][6] = {
            {at ? k : m, at ? m : k}, {bt ? n : k, bt ? k : n}, {bias == 1 ? n : m, bias == 3 ? 1 : n}};
        if (bias == 4) dims[2][0] = 1;
        char call[128];
        snprintf(call, sizeof call, "Gemm(a, b%s) {alpha = 0.5, beta = 2.0, transA = %d, transB = %d}",
                 bias ? ", c" : "", at, bt);
        compare(call, types[i % 4], bias ? 3 : 2, (int[]){2, 2, bias == 1 || bias == 4 ? 1 : 2},
                (const int64_t(*)[6])dims);
    }
}

static void conv_one(int round, bool transposed) {
    int axes = round % 3 + 1;
    bool depthwise = round % 4 == 3, bias = round % 2;
    int64_t groups = depthwise ? between(2, 9) : between(1, 3), channels = depthwise ? 1 : between(1, 9);
    int64_t outputs = depthwise ? between(1, 2) : between(1, 20), dims[3][6] = {{between(1, 2), groups * channels}};
    char call[512], pads[64], kernel[128] = "", strides[64], dilations[64], extra[128] = "";
    int64_t k[3], s[3], d[3], p[6], e[3];
    for (int i = 0; i < axes; i++) {
        k[i] = between(1, 3);
        s[i] = between(1, 3);
        d[i] = between(1, 2);
        p[i] = between(0, transposed ? 1 : 2);
        p[axes + i] = between(0, transposed ? 1 : 2);
        e[i] = ops_below(s[i]);
        dims[0][i + 2] = between(transposed ? 2 : (k[i] - 1) * d[i] + 1, 13);
        dims[1][i + 2] = k[i];
    }
    dims[1][0] = transposed ? groups * channels : groups * outputs;
    dims[1][1] = transposed ? outputs : channels;
    dims[2][0] = groups * outputs;
    if (round % 5) snprintf(kernel, sizeof kernel, ", kernel_shape = %s", shape(pads, sizeof pads, axes, k));
    if (transposed) snprintf(extra, sizeof extra, ", output_padding = %s", shape(pads, sizeof pads, axes, e));
    snprintf(call, sizeof call, "%s(a, b%s) {group = %lld, strides = %s, dilations = %s, pads = %s%s%s}",
             transposed ? "ConvTranspose" : "Conv", bias ? ", c" : "", (long long)groups,
             shape(strides, sizeof strides, axes, s), shape(dilations, sizeof dilations, axes, d),
             shape(pads, sizeof pads, 2 * axes, p), kernel, extra);
    compare(call, types[round % 4], bias ? 3 : 2, (int[]){axes + 2, axes + 2, 1}, (const int64_t(*)[6])dims);
}

static void conv_random(void **state) {
    (void)state;
    for (int i = 0; i < 40; i++) conv_one(i, false);
}
static void conv_transpose_random(void **state) {
    (void)state;
    for (int i = 0; i < 24; i++) conv_one(i, true);
}

static void conv_known(void **state) {
    (void)state;
    int ranks[] = {4, 4, 1};
#define CONV(call, ...) compare(call, BRAID_FLOAT32, 2, ranks, (int64_t[2][6]){__VA_ARGS__})
    CONV("Conv(a, b) {pads = [1, 1, 1, 1]}", {1, 4, 9, 7}, {8, 4, 3, 3});
    CONV("Conv(a, b) {auto_pad = \"VALID\"}", {1, 4, 9, 7}, {8, 4, 3, 3});
    CONV("Conv(a, b) {auto_pad = \"SAME_UPPER\", strides = [2, 2]}", {1, 4, 9, 7}, {8, 4, 4, 3});
    CONV("Conv(a, b) {auto_pad = \"SAME_LOWER\", strides = [2, 3]}", {1, 4, 9, 7}, {8, 4, 4, 3});
    CONV("Conv(a, b) {strides = [2, 2]}", {1, 4, 9, 7}, {8, 4, 1, 1});
    CONV("Conv(a, b) {group = 2, pads = [0, 2, 1, 0]}", {1, 6, 9, 7}, {10, 3, 5, 5});
    CONV("Conv(a, b) {group = 12, pads = [1, 1, 1, 1], strides = [2, 2]}", {2, 12, 9, 7}, {12, 1, 3, 3});
    CONV("Conv(a, b)", {3, 5, 6, 4}, {7, 5, 1, 1});
    CONV("Conv(a, b)", {0, 5, 6, 4}, {7, 5, 3, 3});
    CONV("Conv(a, b)", {2, 0, 6, 4}, {7, 0, 3, 3});
    CONV("ConvTranspose(a, b)", {2, 0, 6, 4}, {0, 7, 3, 3});
    CONV("ConvTranspose(a, b) {output_shape = [10, 8], strides = [3, 2]}", {1, 1, 3, 3}, {1, 2, 3, 3});
    CONV("ConvTranspose(a, b) {auto_pad = \"SAME_UPPER\", strides = [2, 2]}", {1, 1, 3, 3}, {1, 2, 3, 3});
    CONV("ConvTranspose(a, b) {auto_pad = \"SAME_LOWER\", strides = [2, 2]}", {1, 2, 3, 4}, {2, 2, 3, 3});
#undef CONV
}

static void einsum_forms(void **state) {
    (void)state;
    compare("Einsum(a, b) {equation = \"bij,bjk->bik\"}", BRAID_FLOAT32, 2, (int[]){3, 3},
            (int64_t[2][6]){{3, 5, 7}, {3, 7, 6}});
    compare("Einsum(a, b) {equation = \"bhqd,bkhd->bhqk\"}", BRAID_FLOAT32, 2, (int[]){4, 4},
            (int64_t[2][6]){{2, 3, 5, 8}, {2, 4, 3, 8}});
    compare("Einsum(a, b) {equation = \"bhqk,bkhd->bqhd\"}", BRAID_FLOAT16, 2, (int[]){4, 4},
            (int64_t[2][6]){{2, 3, 5, 4}, {2, 4, 3, 8}});
    compare("Einsum(a, b) {equation = \"ij,kj->ki\"}", BRAID_FLOAT32, 2, (int[]){2, 2},
            (int64_t[2][6]){{12, 7}, {9, 7}});
    compare("Einsum(a, b) {equation = \"i,i->\"}", BRAID_FLOAT32, 2, (int[]){1, 1}, (int64_t[2][6]){{12}, {12}});
    compare("Einsum(a, b) {equation = \"i,j\"}", BRAID_INT32, 2, (int[]){1, 1}, (int64_t[2][6]){{12}, {9}});
    compare("Einsum(a) {equation = \"...ii->...i\"}", BRAID_FLOAT64, 1, (int[]){3}, (int64_t[1][6]){{3, 5, 5}});
    compare("Einsum(a) {equation = \"ij->ji\"}", BRAID_BFLOAT16, 1, (int[]){2}, (int64_t[1][6]){{3, 5}});
    compare("Einsum(a) {equation = \"ijk->j\"}", BRAID_UINT8, 1, (int[]){3}, (int64_t[1][6]){{3, 5, 4}});
    compare("Einsum(a, b, c) {equation = \"ij,jk,kl->il\"}", BRAID_FLOAT32, 3, (int[]){2, 2, 2},
            (int64_t[3][6]){{3, 5}, {5, 4}, {4, 6}});
    compare("Einsum(a, b) {equation = \"...ij,...jk\"}", BRAID_FLOAT32, 2, (int[]){4, 3},
            (int64_t[2][6]){{2, 1, 3, 4}, {5, 4, 6}});
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(matmul_known), cmocka_unit_test(matmul_batches),
                                       cmocka_unit_test(gemm_forms),   cmocka_unit_test(conv_known),
                                       cmocka_unit_test(conv_random),  cmocka_unit_test(conv_transpose_random),
                                       cmocka_unit_test(einsum_forms)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
