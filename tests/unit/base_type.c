/*
 * base/type.c: every half and bfloat value, and rounding at and around every midpoint, against plain double arithmetic.
 * labels: quick
 */
#include "base/base.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* What a small float's bits mean, written with ldexp only. */
static double meaning(uint32_t bits, int mantissa, int bias) {
    int width = 1;
    while ((1 << width) - 1 != 2 * bias + 1) width++;
    double sign = bits >> (mantissa + width) & 1 ? -1 : 1;
    int exponent = (int)(bits >> mantissa & ((1u << width) - 1));
    int fraction = (int)(bits & ((1u << mantissa) - 1));
    if (exponent == 2 * bias + 1) return fraction ? (double)NAN : sign * INFINITY;
    if (exponent == 0) return sign * ldexp(fraction, 1 - bias - mantissa);
    return sign * ldexp((1 << mantissa) + fraction, exponent - bias - mantissa);
}

static void same_double(double a, double b) {
    if (isnan(a))
        assert_true(isnan(b));
    else
        assert_true(a == b && signbit(a) == signbit(b));
}

typedef uint16_t narrow_fn(double);
typedef float widen_fn(uint16_t);

/* Neighbours of positive finite `h` and the midpoint above it. Infinity counts as the value after the largest. */
static void check_up(uint16_t h, int mantissa, int bias, narrow_fn *narrow) {
    double low = meaning(h, mantissa, bias), high = meaning(h + 1u, mantissa, bias);
    if (isinf(high)) high = ldexp(1, bias + 1);
    double middle = low + (high - low) / 2;
    uint16_t even = h & 1 ? (uint16_t)(h + 1) : h, sign = 0x8000;
    assert_int_equal(narrow(middle), even);
    assert_int_equal(narrow(nextafter(middle, 0)), h);
    assert_int_equal(narrow(nextafter(middle, INFINITY)), h + 1);
    assert_int_equal(narrow(nextafter(high, 0)), h + 1);
    assert_int_equal(narrow(-middle), even | sign);
    assert_int_equal(narrow(-nextafter(middle, 0)), h | sign);
    assert_int_equal(narrow(-nextafter(middle, INFINITY)), (h + 1) | sign);
}

static void exhaustive(int mantissa, int bias, narrow_fn *narrow, widen_fn *widen) {
    uint16_t infinity = (uint16_t)((2 * bias + 1) << mantissa);
    for (uint32_t i = 0; i < 65536; i++) {
        uint16_t h = (uint16_t)i;
        double v = meaning(i, mantissa, bias);
        same_double(v, (double)widen(h));
        if (!isnan(v))
            assert_int_equal(narrow(v), h);
        else
            assert_true(isnan(meaning(narrow((double)widen(h)), mantissa, bias)));
        if (h < infinity) check_up(h, mantissa, bias, narrow);
    }
    assert_int_equal(narrow(INFINITY), infinity);
    assert_int_equal(narrow(-INFINITY), infinity | 0x8000);
    assert_int_equal(narrow(1e300), infinity);
    assert_int_equal(narrow(5e-324), 0);
    assert_int_equal(narrow(-5e-324), 0x8000);
    assert_int_equal(narrow(-0.0), 0x8000);
}

static void halves(void **state) {
    (void)state;
    exhaustive(10, 15, double_to_half, half_to_float);
}

static void bfloats(void **state) {
    (void)state;
    exhaustive(7, 127, double_to_bfloat, bfloat_to_float);
}

static void floats_narrow_like_doubles(void **state) {
    (void)state;
    for (uint64_t bits = 0; bits < 1ull << 32; bits += 104729) {
        uint32_t word = (uint32_t)bits;
        float f;
        memcpy(&f, &word, sizeof f);
        if (isnan(f)) {
            assert_true(isnan(bfloat_to_float(float_to_bfloat(f))) && isnan(half_to_float(float_to_half(f))));
            continue;
        }
        assert_int_equal(float_to_half(f), double_to_half((double)f));
        assert_int_equal(float_to_bfloat(f), double_to_bfloat((double)f));
    }
}

static void names_and_sizes(void **state) {
    (void)state;
    assert_string_equal(braid_type_name(BRAID_FLOAT16), "float16");
    assert_string_equal(braid_type_name((braid_type)99), "unknown");
    assert_string_equal(braid_type_name(BRAID_TYPE_NONE), "none");
    assert_int_equal(braid_type_bytes(BRAID_COMPLEX128), 16);
    assert_int_equal(braid_type_bytes(BRAID_STRING), 0);
    assert_int_equal(braid_type_bytes(BRAID_INT4), 0);
    assert_int_equal(type_bits(BRAID_INT4), 4);
    assert_int_equal(type_bits((braid_type)-1), 0);
    assert_false(type_known(0) || type_known(-1) || type_known(27));
    for (int i = 1; i <= 26; i++) {
        assert_true(type_known(i));
        assert_int_equal(type_from_name(braid_type_name((braid_type)i)), i);
    }
    assert_int_equal(type_from_name("float"), BRAID_TYPE_NONE);
    size_t n = 0;
    assert_true(type_span(BRAID_INT4, 3, &n) && n == 2);
    assert_true(type_span(BRAID_UINT2, 5, &n) && n == 2);
    assert_true(type_span(BRAID_FLOAT64, 3, &n) && n == 24);
    assert_true(type_span(BRAID_FLOAT64, 0, &n) && n == 0);
    assert_false(type_span(BRAID_STRING, 1, &n) || type_span(BRAID_UINT8, -1, &n));
    assert_false(type_span(BRAID_FLOAT64, INT64_MAX, &n));
}

static void elements(void **state) {
    (void)state;
    uint8_t cell[8];
    static const braid_type all[] = {BRAID_UINT8,  BRAID_INT8,  BRAID_UINT16, BRAID_INT16,
                                     BRAID_UINT32, BRAID_INT32, BRAID_UINT64, BRAID_INT64};
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        braid_type t = all[i];
        int bits = type_bits(t);
        bool is_signed = type_is_signed(t);
        int64_t high = is_signed ? (int64_t)(UINT64_MAX >> (65 - bits)) : (int64_t)(UINT64_MAX >> (64 - bits));
        int64_t low = is_signed ? -high - 1 : 0;
        element_set_f64(t, cell, 0, 1e30);
        assert_true(element_i64(t, cell, 0) == high);
        element_set_f64(t, cell, 0, -1e30);
        assert_true(element_i64(t, cell, 0) == low);
        element_set_f64(t, cell, 0, (double)NAN);
        assert_true(element_i64(t, cell, 0) == 0);
        element_set_f64(t, cell, 0, 100.99);
        assert_true(element_i64(t, cell, 0) == 100 && element_f64(t, cell, 0) == 100.0);
        element_set_f64(t, cell, 0, -100.99);
        assert_true(element_i64(t, cell, 0) == (is_signed ? -100 : 0));
        element_set_i64(t, cell, 0, -1);
        assert_true(element_i64(t, cell, 0) == (is_signed ? -1 : high));
        if (bits < 64) element_set_i64(t, cell, 0, high + 1);
        if (bits < 64) assert_true(element_i64(t, cell, 0) == low);
    }
    element_set_i64(BRAID_UINT64, cell, 0, -1);
    assert_true(element_f64(BRAID_UINT64, cell, 0) == 0x1p64);
    element_set_f64(BRAID_FLOAT32, cell, 0, -1e30);
    assert_true(element_i64(BRAID_FLOAT32, cell, 0) == INT64_MIN);
    element_set_f64(BRAID_BOOL, cell, 0, 0.5);
    assert_true(element_i64(BRAID_BOOL, cell, 0) == 1 && element_f64(BRAID_BOOL, cell, 0) == 1);
    element_set_f64(BRAID_FLOAT16, cell, 0, 2049);
    assert_true(element_f64(BRAID_FLOAT16, cell, 0) == 2048 && element_i64(BRAID_FLOAT16, cell, 0) == 2048);
    /* 2^54 + 2^46 is a midpoint; one more must round up, which a detour over double would lose */
    element_set_i64(BRAID_BFLOAT16, cell, 0, ((int64_t)1 << 54) + ((int64_t)1 << 46) + 1);
    assert_true(element_f64(BRAID_BFLOAT16, cell, 0) == 0x1p54 + 0x1p47);
    element_set_i64(BRAID_BFLOAT16, cell, 0, INT64_MIN);
    assert_true(element_f64(BRAID_BFLOAT16, cell, 0) == -0x1p63);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves),          cmocka_unit_test(bfloats),  cmocka_unit_test(floats_narrow_like_doubles),
        cmocka_unit_test(names_and_sizes), cmocka_unit_test(elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
