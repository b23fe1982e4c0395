/*
 * Elementwise operators: the device against the reference, over operators, types, special values and shapes.
 * labels: device
 */
#include "ops_gpu.h"

#include "ops/map.h"

static int64_t shape[] = {3, 67};

static const char *const float_types[] = {"float32", "float16", "bfloat16"};
static const char *const int_types[] = {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"};

static double tolerance(braid_type t) {
    return t == BRAID_FLOAT32 ? 2e-6 : t == BRAID_FLOAT16 ? 1e-3 : 8e-3;
}

static void run_unary(const char *call, const char *in, const char *out, double lo, double hi, bool special) {
    char source[256];
    braid_type type = type_from_name(in);
    snprintf(source, sizeof source, "graph t(a: %s[3,67]) { y: %s[3,67] = %s } -> y", in, out, call);
    braid_tensor a = ops_random_full("a", type, 2, shape, lo, hi, special);
    if (ops_compare(source, 1, &a, tolerance(type_from_name(out)), 2e-7)) fail_msg("a host step in\n%s", source);
}

static void run_binary(const char *call, const char *in, const char *out, double lo, double hi, bool special) {
    char source[256];
    braid_type type = type_from_name(in);
    snprintf(source, sizeof source, "graph t(a: %s[3,67], b: %s[67]) { y: %s[3,67] = %s } -> y", in, in, out, call);
    braid_tensor t[2] = {ops_random_full("a", type, 2, shape, lo, hi, special),
                         ops_random_full("b", type, 1, shape + 1, lo, hi, special)};
    if (ops_compare(source, 2, t, tolerance(type_from_name(out)), 2e-7)) fail_msg("a host step in\n%s", source);
}

static void float_unary(void **state) {
    (void)state;
    static const char *const calls[] = {"Abs(a)",
                                        "Acos(a)",
                                        "Acosh(a)",
                                        "Asin(a)",
                                        "Asinh(a)",
                                        "Atan(a)",
                                        "Atanh(a)",
                                        "Ceil(a)",
                                        "Celu(a)",
                                        "Cos(a)",
                                        "Cosh(a)",
                                        "Elu(a) {alpha = 0.5}",
                                        "Erf(a)",
                                        "Exp(a)",
                                        "Floor(a)",
                                        "Gelu(a)",
                                        "Gelu(a) {approximate = \"tanh\"}",
                                        "HardSigmoid(a)",
                                        "HardSwish(a)",
                                        "LeakyRelu(a)",
                                        "Log(a)",
                                        "Mish(a)",
                                        "Neg(a)",
                                        "Reciprocal(a)",
                                        "Relu(a)",
                                        "Round(a)",
                                        "Selu(a)",
                                        "Shrink(a)",
                                        "Sigmoid(a)",
                                        "Sign(a)",
                                        "Sin(a)",
                                        "Sinh(a)",
                                        "Softplus(a)",
                                        "Softsign(a)",
                                        "Sqrt(a)",
                                        "Swish(a)",
                                        "Tan(a)",
                                        "Tanh(a)",
                                        "ThresholdedRelu(a)"};
    for (size_t i = 0; i < COUNT_OF(calls); i++) run_unary(calls[i], "float32", "float32", -4, 4, true);
    for (size_t i = 0; i < COUNT_OF(calls); i += 3)
        run_unary(calls[i], float_types[1 + i % 2], float_types[1 + i % 2], -4, 4, true);
    run_unary("IsNaN(a)", "float32", "bool", -4, 4, true);
    run_unary("IsInf(a)", "float16", "bool", -4, 4, true);
    run_unary("IsInf(a) {detect_negative = 0}", "float32", "bool", -4, 4, true);
}

static void float_binary(void **state) {
    (void)state;
    static const char *const calls[] = {"Add(a, b)",   "Sub(a, b)",   "Mul(a, b)",
                                        "Div(a, b)",   "Max(a, b)",   "Min(a, b)",
                                        "Pow(a, b)",   "PRelu(a, b)", "Mod(a, b) {fmod = 1}",
                                        "Mod(a, b)",   "Mean(a, b)",  "Sum(a, b, a)",
                                        "SwiGLU(a, a)"};
    static const char *const tests[] = {"Equal(a, b)", "Less(a, b)", "LessOrEqual(a, b)", "Greater(a, b)",
                                        "GreaterOrEqual(a, b)"};
    for (size_t i = 0; i < COUNT_OF(calls); i++)
        run_binary(calls[i], float_types[i % 3], float_types[i % 3], -4, 4, true);
    for (size_t i = 0; i < COUNT_OF(calls); i++) run_binary(calls[i], "float32", "float32", -4, 4, true);
    for (size_t i = 0; i < COUNT_OF(tests); i++) run_binary(tests[i], float_types[i % 3], "bool", -2, 2, true);
}

static void int_binary(void **state) {
    (void)state;
    static const char *const calls[] = {"Add(a, b)",
                                        "Sub(a, b)",
                                        "Mul(a, b)",
                                        "Div(a, b)",
                                        "Max(a, b)",
                                        "Min(a, b)",
                                        "Pow(a, b)",
                                        "Mod(a, b) {fmod = 1}",
                                        "Mod(a, b)",
                                        "BitwiseAnd(a, b)",
                                        "BitwiseOr(a, b)",
                                        "BitwiseXor(a, b)",
                                        "BitShift(a, b) {direction = \"LEFT\"}",
                                        "BitShift(a, b) {direction = \"RIGHT\"}"};
    static const char *const tests[] = {"Equal(a, b)", "Less(a, b)", "LessOrEqual(a, b)", "Greater(a, b)",
                                        "GreaterOrEqual(a, b)"};
    for (size_t i = 0; i < COUNT_OF(calls) * COUNT_OF(int_types); i += 3) {
        const char *type = int_types[i / COUNT_OF(calls)];
        bool plain = type[0] == 'u';
        run_binary(calls[i % COUNT_OF(calls)], type, type, plain ? 0 : -120, 120, false);
        run_binary(tests[i % COUNT_OF(tests)], type, "bool", plain ? 0 : -3, 3, false);
    }
    static const char *const logic[] = {"And(a, b)", "Or(a, b)", "Xor(a, b)", "Equal(a, b)"};
    for (size_t i = 0; i < COUNT_OF(logic); i++) run_binary(logic[i], "bool", "bool", 0, 2, false);
}

static void int_unary(void **state) {
    (void)state;
    static const char *const calls[] = {"Abs(a)", "Neg(a)", "Sign(a)", "BitwiseNot(a)", "Relu(a)"};
    for (size_t t = 0; t < 4; t++)
        for (size_t i = t % 2; i < COUNT_OF(calls); i += 2)
            run_unary(calls[i], int_types[t], int_types[t], -128, 128, false);
    run_unary("BitwiseNot(a)", "uint16", "uint16", 0, 65536, false);
    run_unary("Not(a)", "bool", "bool", 0, 2, false);
    run_unary("Erf(a)", "int32", "int32", -3, 3, false);
}

static void casts(void **state) {
    (void)state;
    static const char *const types[] = {"float32", "float16", "bfloat16", "int8",   "int16",  "int32",
                                        "int64",   "uint8",   "uint16",   "uint32", "uint64", "bool"};
    char call[64];
    for (size_t i = 0; i < COUNT_OF(types) * COUNT_OF(types); i += 5) {
        const char *from = types[i / COUNT_OF(types)], *to = types[i % COUNT_OF(types)];
        if (from == to) continue;
        bool plain = from[0] == 'u' || from[0] == 'b';
        snprintf(call, sizeof call, "Cast(a) {to = %d}", (int)type_from_name(to));
        run_unary(call, from, to, plain ? 0 : -300, 300, true);
    }
}

static void float64(void **state) {
    (void)state;
    run_unary("Sqrt(a)", "float64", "float64", -4, 4, true);
    run_unary("Cast(a) {to = 1}", "float64", "float32", -4, 4, true);
    run_unary("Cast(a) {to = 7}", "float64", "int64", -1e18, 1e18, true);
    run_unary("Cast(a) {to = 11}", "int64", "float64", -1e18, 1e18, false);
    run_binary("Add(a, b)", "float64", "float64", -4, 4, true);
    run_binary("Div(a, b)", "float64", "float64", -4, 4, true);
    run_binary("Max(a, b)", "float64", "float64", -4, 4, true);
    run_binary("Less(a, b)", "float64", "bool", -4, 4, true);
    char source[] = "graph t(a: float64[5]) { y: float64[5] = Exp(a) } -> y";
    int64_t five = 5;
    braid_tensor a = ops_random("a", BRAID_FLOAT64, 1, &five);
    assert_int_equal(ops_compare(source, 1, &a, 1e-14, 0), 1); /* a host step */
}

/* Shapes of two inputs that broadcast; each dim of either may be 1 (or missing in front). */
static void random_shape(int rank, int64_t *a, int64_t *b) {
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 8, 17, 0};
    for (int d = 0; d < rank; d++) {
        int64_t n = sizes[(int)(ops_uniform() * (rank > 1 ? 7.1 : 8))];
        a[d] = b[d] = n;
        if (ops_uniform() < 0.3) *(ops_uniform() < 0.5 ? &a[d] : &b[d]) = 1;
    }
}

static size_t print_shape(char *out, size_t size, int rank, const int64_t *dims) {
    size_t n = (size_t)snprintf(out, size, "[");
    for (int d = 0; d < rank; d++) n += (size_t)snprintf(out + n, size - n, d ? ",%lld" : "%lld", (long long)dims[d]);
    return n + (size_t)snprintf(out + n, size - n, "]");
}

static void broadcasting(void **state) {
    (void)state;
    static const char *const types[] = {"float32", "float16", "uint8", "int64"};
    for (int i = 0; i < 60; i++) {
        int rank = i % 7, drop = (int)(ops_uniform() * (rank + 1)) * (i % 2);
        int64_t a[8], b[8];
        char source[512], sa[128], sb[128];
        random_shape(rank, a, b);
        print_shape(sa, sizeof sa, rank, a);
        print_shape(sb, sizeof sb, rank - drop, b + drop);
        const char *type = types[i % 4];
        snprintf(source, sizeof source,
                 "graph t(a: %s%s, b: %s%s, c: bool%s) { s = Add(a, b)\n y = Where(c, s, b) } -> y, s", type, sa, type,
                 sb, sb);
        braid_tensor t[3] = {ops_random("a", type_from_name(type), rank, a),
                             ops_random("b", type_from_name(type), rank - drop, b + drop),
                             ops_random("c", BRAID_BOOL, rank - drop, b + drop)};
        ops_compare(source, 3, t, 1e-3, 0);
    }
}

/* Sizes around chunks, and one that needs several chunks per invocation. */
static void sizes(void **state) {
    (void)state;
    static const int64_t counts[] = {0, 1, 3, 4, 7, 255, 256, 257, 1023, 4099, 300001};
    for (size_t i = 0; i < COUNT_OF(counts); i++)
        for (int k = 0; k < 2; k++) {
            char source[256];
            const char *type = k ? "uint8" : "float32";
            snprintf(source, sizeof source, "graph t(a: %s[%lld], b: %s[]) { y = Sub(a, b) } -> y", type,
                     (long long)counts[i], type);
            braid_tensor t[2] = {ops_random("a", type_from_name(type), 1, &counts[i]),
                                 ops_random("b", type_from_name(type), 0, NULL)};
            assert_int_equal(ops_compare(source, 2, t, 0, 0), 0);
        }
}

static void others(void **state) {
    (void)state;
    int64_t image[] = {2, 5, 6, 7}, channels[] = {5};
    braid_tensor t[5] = {ops_random("x", BRAID_FLOAT32, 4, image), ops_random("s", BRAID_FLOAT32, 1, channels),
                         ops_random("b", BRAID_FLOAT32, 1, channels), ops_random("m", BRAID_FLOAT32, 1, channels),
                         ops_random_full("v", BRAID_FLOAT32, 1, channels, 0.1, 2, false)};
    const char *norm = "graph t(x: float32[2,5,6,7], s: float32[5], b: float32[5], m: float32[5], v: float32[5]) {"
                       " y = BatchNormalization(x, s, b, m, v) } -> y";
    assert_int_equal(ops_compare(norm, 5, t, 1e-5, 1e-6), 0);
    braid_tensor r[6] = {ops_random("x", BRAID_FLOAT16, 4, image),
                         ops_random("s", BRAID_FLOAT32, 1, channels),
                         ops_random("b", BRAID_FLOAT32, 1, channels),
                         ops_random("m", BRAID_FLOAT32, 1, channels),
                         ops_random_full("v", BRAID_FLOAT32, 1, channels, 0.1, 2, false),
                         ops_random("z", BRAID_FLOAT16, 1, image + 3)};
    const char *tail = "graph t(x: float16[2,5,6,7], s: float32[5], b: float32[5], m: float32[5], v: float32[5],"
                       " z: float16[7]) { n = BatchNormalization(x, s, b, m, v)\n a = Add(n, z)\n y = Relu(a) } -> y";
    assert_int_equal(ops_compare(tail, 6, r, 3e-3, 2e-3), 0);
    braid_tensor x = ops_random("x", BRAID_FLOAT32, 4, image);
    assert_int_equal(
        ops_compare("graph t(x: float32[2,5,6,7]) { y, m = Dropout(x)\n z = Relu(y) } -> z, m", 1, &x, 0, 0), 0);
    braid_tensor c[3] = {ops_random("x", BRAID_INT32, 4, image), ops_random("l", BRAID_INT32, 0, NULL),
                         ops_random("h", BRAID_INT32, 0, NULL)};
    const char *clip = "graph t(x: int32[2,5,6,7], l: int32[], h: int32[]) { y = Clip(x, l, h) } -> y";
    assert_int_equal(ops_compare(clip, 3, c, 0, 0), 0);
    braid_tensor g[2] = {ops_random("x", BRAID_FLOAT32, 4, image), ops_random("s", BRAID_FLOAT32, 1, image + 3)};
    const char *chain = "graph t(x: float32[2,5,6,7], s: float32[7]) { a = Sigmoid(x)\n b = Mul(a, x)\n c = Add(b, s)\n"
                        " d = Greater(c, x)\n y = Where(d, c, b) } -> y";
    assert_int_equal(ops_compare(chain, 2, g, 1e-5, 1e-6), 0);
}

/* A matmul's epilogue with operands that vary along the outer batch, the row, the column and with none. */
static void epilogues(void **state) {
    (void)state;
    int64_t a[] = {2, 3, 5, 7}, b[] = {7, 4}, mask[] = {2, 1, 1, 4}, rows[] = {5, 1}, image[] = {1, 3, 6, 6},
            kernel[] = {4, 3, 3, 3}, shift[] = {4, 1, 1};
    braid_tensor t[4] = {ops_random("a", BRAID_FLOAT32, 4, a), ops_random("b", BRAID_FLOAT32, 2, b),
                         ops_random("m", BRAID_FLOAT32, 4, mask), ops_random("r", BRAID_INT32, 2, rows)};
    const char *product = "graph t(a: float32[2,3,5,7], b: float32[7,4], m: float32[2,1,1,4], r: int32[5,1]) {"
                          " p = MatMul(a, b)\n q = Add(p, m)\n f = Cast(r) {to = 1}\n s = Mul(q, f)\n"
                          " y = Tanh(s) } -> y";
    assert_int_equal(ops_compare(product, 4, t, 1e-5, 1e-5), 0);
    braid_tensor c[3] = {ops_random("x", BRAID_FLOAT32, 4, image), ops_random("w", BRAID_FLOAT32, 4, kernel),
                         ops_random("h", BRAID_FLOAT32, 3, shift)};
    const char *conv = "graph t(x: float32[1,3,6,6], w: float32[4,3,3,3], h: float32[4,1,1]) {"
                       " c = Conv(x, w)\n d = Add(c, h)\n g = Sigmoid(d)\n y = Mul(d, g) } -> y";
    assert_int_equal(ops_compare(conv, 3, c, 1e-5, 1e-5), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(float_unary),  cmocka_unit_test(float_binary),
                                       cmocka_unit_test(int_binary),   cmocka_unit_test(int_unary),
                                       cmocka_unit_test(casts),        cmocka_unit_test(float64),
                                       cmocka_unit_test(broadcasting), cmocka_unit_test(sizes),
                                       cmocka_unit_test(others),       cmocka_unit_test(epilogues)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
