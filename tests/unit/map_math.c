/*
 * The accurate functions of kernels/lib/math.h, in C, against libm in double: every 4,099th float.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/base.h"
#include "kernels/lib/math.h"

/* Distance in units of the last place of the right result. */
static double distance(float got, double want) {
    float w = (float)want;
    if (isnan(want)) return isnan(got) ? 0 : 1e9;
    if (isinf(w) || isinf(got)) return got == w ? 0 : 1e9;
    if (w == 0 && got == 0) return signbit(w) == signbit(got) ? 0 : 1e9;
    float unit = fabsf(w) < 0x1p-126f ? 0x1p-149f : nextafterf(fabsf(w), INFINITY) - fabsf(w);
    return fabs((double)got - want) / (double)unit;
}

typedef struct function {
    const char *name;
    float (*ours)(float);
    double (*theirs)(double);
    double limit;
} function;

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}
static double softplus(double x) {
    return x > 40 ? x : log1p(exp(x));
}

static void unary(void **state) {
    (void)state;
    const function all[] = {
        {"exp", b_exp, exp, 1.5},
        {"expm1", b_expm1, expm1, 2},
        {"log", b_log, log, 1.5},
        {"log1p", b_log1p, log1p, 1.5},
        {"sin", b_sin, sin, 3},
        {"cos", b_cos, cos, 3},
        {"tan", b_tan, tan, 5},
        {"asin", b_asin, asin, 3},
        {"acos", b_acos, acos, 2},
        {"atan", b_atan, atan, 2.5},
        {"sinh", b_sinh, sinh, 3},
        {"cosh", b_cosh, cosh, 3},
        {"tanh", b_tanh, tanh, 3},
        {"asinh", b_asinh, asinh, 2.5},
        {"acosh", b_acosh, acosh, 2.5},
        {"atanh", b_atanh, atanh, 3},
        {"erf", b_erf, erf, 2},
        {"sigmoid", b_sigmoid, sigmoid, 3},
        {"softplus", b_softplus, softplus, 2.5},
    };
    for (size_t f = 0; f < COUNT_OF(all); f++)
        for (uint64_t u = 0; u < (uint64_t)1 << 32; u += 4099) {
            float x = b_bits_float((uint32_t)u), y = all[f].ours(x);
            double off = distance(y, all[f].theirs((double)x));
            if (off > all[f].limit) fail_msg("%s(%a) = %a: off by %g units", all[f].name, (double)x, (double)y, off);
        }
}

static uint64_t seed = 7;
static double uniform(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(seed >> 11) * 0x1p-53;
}

static void check_pow(float x, float y, double limit) {
    double want = pow((double)x, (double)y), off = distance(b_pow(x, y), want);
    if (off > limit) fail_msg("pow(%a, %a) = %a, not %a", (double)x, (double)y, (double)b_pow(x, y), want);
}

static void powers(void **state) {
    (void)state;
    const float s[] = {0,          -0.0f,      1,          -1,        2,     -2,        0.5f,    -0.5f,
                       3,          -3,         INFINITY,   -INFINITY, NAN,   1e-40f,    -1e-40f, 3e38f,
                       16777216.f, 16777215.f, 33554432.f, 2.5f,      -2.5f, 1.0000001f};
    for (size_t i = 0; i < COUNT_OF(s); i++)
        for (size_t k = 0; k < COUNT_OF(s); k++) check_pow(s[i], s[k], 8);
    for (int i = 0; i < 300000; i++) {
        float x = (float)exp(uniform() * 176 - 88), y = (float)((uniform() * 250 - 125) / log2((double)x));
        check_pow(x, y, 16);
        check_pow(1 + (float)(uniform() * 2 - 1) * 1e-3f, (float)(uniform() * 2e4 - 1e4), 16);
    }
}

static void remainders(void **state) {
    (void)state;
    for (int i = 0; i < 300000; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        float x = b_bits_float((uint32_t)(seed >> 32)), y = b_bits_float((uint32_t)(seed >> 16));
        float r = b_mod(x, y), want = fmodf(x, y), p = b_pymod(x, y);
        if (!(r == want || (isnan(r) && isnan(want)))) fail_msg("fmod(%a, %a) = %a", (double)x, (double)y, (double)r);
        if (!isnan(p) && p != 0) assert_int_equal(p < 0, y < 0);
    }
    assert_true(b_pymod(1, -INFINITY) == -INFINITY && b_pymod(-1, -INFINITY) == -1);
}

static void integers(void **state) {
    (void)state;
    assert_true(b_i_div(7, 0) == 0 && b_i_rem(7, 0) == 0 && b_u_div(7, 0) == 0 && b_i_pymod(7, 0) == 0);
    assert_true(b_i_div(INT64_MIN, -1) == INT64_MIN && b_i_rem(INT64_MIN, -1) == 0);
    assert_true(b_i_div(-7, 2) == -3 && b_i_rem(-7, 2) == -1 && b_i_pymod(-7, 2) == 1 && b_i_pymod(7, -2) == -1);
    assert_true(b_shl(1, 64) == 0 && b_shl(1, -1) == 0 && b_shr(-1, 63) == 1 && b_sar(-5, 99) == -1 &&
                b_sar(5, -1) == 0);
    assert_true(b_i_pow(3, 4) == 81 && b_i_pow(-1, -3) == -1 && b_i_pow(2, -1) == 0 && b_i_pow(0, 0) == 1);
    assert_true(b_to_i64(1e30f) == INT64_MAX && b_to_i64(-1e30f) == INT64_MIN && b_to_i64(NAN) == 0 &&
                b_to_u64(-1) == 0);
    assert_true(b_i_clip(5, 9, 3) == 3);
}

static void small_floats(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        float f = b_half_to_float(h), b = b_bfloat_to_float(h);
        if (isnan(f))
            assert_true(isnan(half_to_float((uint16_t)h)));
        else
            assert_true(f == half_to_float((uint16_t)h) && b_float_to_half(f) == h);
        if (!isnan(b)) assert_int_equal(b_float_to_bfloat(b), h);
    }
    for (uint64_t u = 0; u < (uint64_t)1 << 32; u += 997) {
        float x = b_bits_float((uint32_t)u);
        if (isnan(x)) continue;
        assert_int_equal(b_float_to_half(x), float_to_half(x));
        assert_int_equal(b_float_to_bfloat(x), float_to_bfloat(x));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(unary), cmocka_unit_test(powers), cmocka_unit_test(remainders),
                                       cmocka_unit_test(integers), cmocka_unit_test(small_floats)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
