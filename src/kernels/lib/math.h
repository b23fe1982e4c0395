/*
 * math.h: accurate elementary functions in the common subset of C and GLSL; included by both.
 *
 * GLSL's own exp, log, sin, pow are too inaccurate on some devices (sin: 2^-11 absolute) and drop NaN; these have a few
 * ulp everywhere, do their own range reduction and keep NaN, infinities and signed zeros. NaN is tested by bits, since a
 * device may assume that there is none. Results below 2^-126 may be flushed to zero on a device.
 *
 * Integer functions work on int64 and are total: division by zero gives 0, shifts beyond the width give 0.
 */
#ifndef BRAID_MATH_H
#define BRAID_MATH_H

#ifdef GL_core_profile
#define B_FN
#define B_PRECISE precise
#define TO_FLOAT(x) float(x)
#define TO_INT(x) int(x)
#define TO_UINT(x) uint(x)
#define TO_I64(x) int64_t(x)
#define TO_U64(x) uint64_t(x)
#define FLOAT_BITS(x) floatBitsToUint(x)
#define BITS_FLOAT(x) uintBitsToFloat(x)
#define F_ABS(x) abs(x)
#define F_FLOOR(x) floor(x)
#define F_CEIL(x) ceil(x)
#define F_TRUNC(x) trunc(x)
#define F_SQRT(x) sqrt(x)
#define F_ROUND_EVEN(x) roundEven(x)
#else
#include <math.h>
#include <stdint.h>
#define B_FN static inline
#define B_PRECISE
#define TO_FLOAT(x) ((float)(x))
#define TO_INT(x) ((int)(x))
#define TO_UINT(x) ((uint32_t)(x))
#define TO_I64(x) ((int64_t)(x))
#define TO_U64(x) ((uint64_t)(x))
#define FLOAT_BITS(x) b_float_bits(x)
#define BITS_FLOAT(x) b_bits_float(x)
#define F_ABS(x) fabsf(x)
#define F_FLOOR(x) floorf(x)
#define F_CEIL(x) ceilf(x)
#define F_TRUNC(x) truncf(x)
#define F_SQRT(x) sqrtf(x)
#define F_ROUND_EVEN(x) rintf(x)
typedef uint32_t uint;
typedef union b_float_word {
    float f;
    uint32_t u;
} b_float_word;
static inline uint32_t b_float_bits(float x) { return ((b_float_word){.f = x}).u; }
static inline float b_bits_float(uint32_t u) { return ((b_float_word){.u = u}).f; }
#endif

#define B_NAN BITS_FLOAT(0x7fc00000u)
#define B_INFINITY BITS_FLOAT(0x7f800000u)
#define B_I64_MAX TO_I64(TO_U64(0xffffffffu) | (TO_U64(0x7fffffffu) << 32))
#define B_I64_MIN TO_I64(TO_U64(0x80000000u) << 32)

/* ------------------------------------------------------------------------------------------------ basics */
B_FN bool b_is_nan(float x) { return (FLOAT_BITS(x) & 0x7fffffffu) > 0x7f800000u; }
B_FN bool b_is_inf(float x) { return (FLOAT_BITS(x) & 0x7fffffffu) == 0x7f800000u; }
B_FN float b_copysign(float x, float sign) {
    return BITS_FLOAT((FLOAT_BITS(x) & 0x7fffffffu) | (FLOAT_BITS(sign) & 0x80000000u));
}
B_FN float b_min(float x, float y) { return b_is_nan(x) ? x : b_is_nan(y) ? y : x < y ? x : y; }
B_FN float b_max(float x, float y) { return b_is_nan(x) ? x : b_is_nan(y) ? y : x > y ? x : y; }
B_FN bool b_is_nonzero(float x) { return (FLOAT_BITS(x) & 0x7fffffffu) != 0u; } /* denormal numbers included */
/* By bits: a comparison may take a denormal number for zero, and x itself is then no sign. */
B_FN float b_sign(float x) { return b_is_nonzero(x) && !b_is_nan(x) ? b_copysign(1.0f, x) : x; }
B_FN float b_round_even(float x) { return F_ROUND_EVEN(x); }

/* x * 2^n for n in [-252, 254], in two factors so that results near the ends of the range are right. */
B_FN float b_scale(float x, int n) {
    int half_n = n >> 1;
    B_PRECISE float y = x * BITS_FLOAT(TO_UINT(half_n + 127) << 23);
    return y * BITS_FLOAT(TO_UINT(n - half_n + 127) << 23);
}

/* x / y. Vulkan leaves the quotient open for |y| outside [2^-126, 2^126] (finite / infinity is NaN on one device), and an
   infinite x is left alone too. */
B_FN float b_div(float x, float y) {
    uint x_exponent = (FLOAT_BITS(x) >> 23) & 255u, y_exponent = (FLOAT_BITS(y) >> 23) & 255u;
    if (x_exponent < 255u && y_exponent - 1u < 252u) return x / y;
    if (b_is_nan(x) || b_is_nan(y)) return x + y;
    uint sign = (FLOAT_BITS(x) ^ FLOAT_BITS(y)) & 0x80000000u;
    if (x_exponent == 255u) return y_exponent == 255u ? B_NAN : BITS_FLOAT(sign | 0x7f800000u);
    if (y_exponent == 255u) return BITS_FLOAT(sign);
    if (y_exponent > 252u) return x / (y * BITS_FLOAT(0x1f800000u)) * BITS_FLOAT(0x1f800000u); /* 2^-64 twice */
    B_PRECISE float scaled = y * BITS_FLOAT(0x5f800000u); /* 2^64; zero where the device flushes denormal numbers */
    if (b_is_nonzero(scaled)) return x / scaled * BITS_FLOAT(0x5f800000u);
    return b_is_nonzero(x) ? BITS_FLOAT(sign | 0x7f800000u) : B_NAN;
}

/* ------------------------------------------------------------------------------------------ exponentials */
#define B_LN2_HIGH 0.693115234375f /* 12 bits: n * B_LN2_HIGH is exact */
#define B_LN2_LOW 3.194618329871446e-05f

/* e^r - 1 for |r| <= ln(2)/2. */
B_FN float b_expm1_small(float r) {
    float p = 1.0f / 5040.0f;
    p = p * r + 1.0f / 720.0f;
    p = p * r + 1.0f / 120.0f;
    p = p * r + 1.0f / 24.0f;
    p = p * r + 1.0f / 6.0f;
    p = p * r + 0.5f;
    return p * (r * r) + r;
}
B_FN float b_exp_inside(float x) { /* within [-103.98, 88.73] */
    float n = F_ROUND_EVEN(x * 1.44269504f);
    B_PRECISE float r = (x - n * B_LN2_HIGH) - n * B_LN2_LOW;
    return b_scale(1.0f + b_expm1_small(r), TO_INT(n));
}
B_FN float b_exp(float x) {
    if (b_is_nan(x)) return x;
    if (x > 88.73f) return B_INFINITY;
    if (x < -103.98f) return 0.0f;
    return b_exp_inside(x);
}
/* The same for x <= 0, infinity and NaN included, without branches: several of them overlap. */
B_FN float b_exp_below(float x) {
    bool inside = x >= -103.98f;
    float y = b_exp_inside(inside ? x : 0.0f);
    return inside ? y : b_is_nan(x) ? x : 0.0f;
}
B_FN float b_expm1(float x) {
    if (b_is_nan(x)) return x;
    if (x > 88.73f) return B_INFINITY;
    if (x < -18.0f) return -1.0f;
    float n = F_ROUND_EVEN(x * 1.44269504f);
    B_PRECISE float r = (x - n * B_LN2_HIGH) - n * B_LN2_LOW;
    float p = b_expm1_small(r);
    if (n == 0.0f) return p == 0.0f ? x : p;
    if (n > 30.0f) return b_scale(1.0f + p, TO_INT(n));
    B_PRECISE float scale = BITS_FLOAT(TO_UINT(TO_INT(n) + 127) << 23);
    B_PRECISE float whole = scale - 1.0f;
    return whole + scale * p;
}

/* ------------------------------------------------------------------------------------------- logarithms */
struct b_split { /* x = (1 + f) * 2^e, 1 + f in [sqrt(1/2), sqrt(2)) */
    float f;
    int e;
};
#ifndef GL_core_profile
typedef struct b_split b_split;
#endif
/* x positive and finite; denormals are taken apart by bits, so they work where the device flushes them. */
B_FN b_split b_log_split(float x) {
    b_split s;
    uint u = FLOAT_BITS(x);
    s.e = 0;
    if (u < 0x00800000u) {
        u = FLOAT_BITS(TO_FLOAT(u));
        s.e = -149;
    }
    u += 0x3f800000u - 0x3f3504f3u; /* carries into the exponent at sqrt(1/2) */
    s.e += TO_INT(u >> 23) - 127;
    s.f = BITS_FLOAT((u & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    return s;
}
/* log(1 + f) + e * log(2) + c, f in [sqrt(1/2) - 1, sqrt(2) - 1). */
B_FN float b_log_join(float f, int e, float c) {
    float s = f / (2.0f + f), z = s * s, n = TO_FLOAT(e);
    float p = 2.0f / 11.0f;
    p = p * z + 2.0f / 9.0f;
    p = p * z + 2.0f / 7.0f;
    p = p * z + 2.0f / 5.0f;
    p = (p * z + 2.0f / 3.0f) * z;
    float half_square = 0.5f * f * f;
    B_PRECISE float tail = s * (half_square + p) + (n * B_LN2_LOW + c);
    B_PRECISE float r = n * B_LN2_HIGH - ((half_square - tail) - f);
    return r;
}
B_FN float b_log(float x) {
    if (b_is_nan(x)) return x;
    if (FLOAT_BITS(x) == 0x7f800000u) return x;
    if ((FLOAT_BITS(x) & 0x7fffffffu) == 0u) return -B_INFINITY;
    if ((FLOAT_BITS(x) & 0x80000000u) != 0u) return B_NAN;
    b_split s = b_log_split(x);
    return b_log_join(s.f, s.e, 0.0f);
}
B_FN float b_log1p(float x) {
    if (b_is_nan(x)) return x;
    if (FLOAT_BITS(x) == 0x7f800000u) return x;
    if (x == -1.0f) return -B_INFINITY;
    if (x < -1.0f) return B_NAN;
    if (F_ABS(x) < 1e-7f) return x;
    if (x > -0.29f && x < 0.41f) return b_log_join(x, 0, 0.0f);
    B_PRECISE float u = 1.0f + x;
    B_PRECISE float lost = x >= 1.0f ? 1.0f - (u - x) : x - (u - 1.0f);
    b_split s = b_log_split(u);
    return b_log_join(s.f, s.e, b_div(lost, u));
}

/* ------------------------------------------------------------------------------------------ trigonometry */
struct b_angle { /* x = (quarter + 4k) * pi/2 + r, |r| <= pi/4 */
    float r;
    int quarter;
};
#ifndef GL_core_profile
typedef struct b_angle b_angle;
#endif
/* Bits of 2/pi from `index` words after a leading zero word. */
B_FN uint b_two_over_pi(int index) {
    return index < 4 ? (index < 2 ? (index == 0 ? 0u : 0xa2f9836eu) : (index == 2 ? 0x4e441529u : 0xfc2757d1u))
                     : (index < 6 ? (index == 4 ? 0xf534ddc0u : 0xdb629599u) : (index == 6 ? 0x3c439041u : 0xfe5163abu));
}
/* Exact for every finite x: x * 2/pi modulo 4 in fixed point, 62 bits of fraction. */
B_FN b_angle b_reduce(float x) {
    b_angle a;
    a.r = x;
    a.quarter = 0;
    uint u = FLOAT_BITS(x) & 0x7fffffffu;
    if (u <= 0x3f490fdau) return a; /* pi/4 */
    uint m = (u & 0x007fffffu) | 0x00800000u;
    uint at = (u >> 23) - 120u;
    int k = TO_INT(at >> 5);
    uint shift = at & 31u;
    uint w0 = b_two_over_pi(k), w1 = b_two_over_pi(k + 1), w2 = b_two_over_pi(k + 2), w3 = b_two_over_pi(k + 3);
    uint a0 = TO_UINT(((TO_U64(w0) << 32 | TO_U64(w1)) << shift) >> 32);
    uint a1 = TO_UINT(((TO_U64(w1) << 32 | TO_U64(w2)) << shift) >> 32);
    uint a2 = TO_UINT(((TO_U64(w2) << 32 | TO_U64(w3)) << shift) >> 32);
    uint64_t t = (TO_U64(a0 * m) << 32) + TO_U64(a1) * TO_U64(m) + ((TO_U64(a2) * TO_U64(m)) >> 32);
    uint64_t q = (t + (TO_U64(1u) << 61)) >> 62;
    int64_t fraction = TO_I64(t - (q << 62));
    float r = TO_FLOAT(fraction) * 3.4061215800304285e-19f; /* pi/2 * 2^-62 */
    bool negative = x < 0.0f;
    a.r = negative ? -r : r;
    a.quarter = (negative ? -TO_INT(q) : TO_INT(q)) & 3;
    return a;
}
B_FN float b_sin_small(float r) {
    float z = r * r;
    float p = 1.0f / 362880.0f;
    p = p * z - 1.0f / 5040.0f;
    p = p * z + 1.0f / 120.0f;
    p = p * z - 1.0f / 6.0f;
    return r == 0.0f ? r : p * z * r + r;
}
B_FN float b_cos_small(float r) {
    float z = r * r;
    float p = -1.0f / 3628800.0f;
    p = p * z + 1.0f / 40320.0f;
    p = p * z - 1.0f / 720.0f;
    p = p * z + 1.0f / 24.0f;
    return p * z * z + (1.0f - 0.5f * z);
}
B_FN float b_sin(float x) {
    if ((FLOAT_BITS(x) & 0x7fffffffu) >= 0x7f800000u) return B_NAN;
    b_angle a = b_reduce(x);
    float y = (a.quarter & 1) != 0 ? b_cos_small(a.r) : b_sin_small(a.r);
    return (a.quarter & 2) != 0 ? -y : y;
}
B_FN float b_cos(float x) {
    if ((FLOAT_BITS(x) & 0x7fffffffu) >= 0x7f800000u) return B_NAN;
    b_angle a = b_reduce(x);
    float y = (a.quarter & 1) != 0 ? b_sin_small(a.r) : b_cos_small(a.r);
    return ((a.quarter + 1) & 2) != 0 ? -y : y;
}
B_FN float b_tan(float x) {
    if ((FLOAT_BITS(x) & 0x7fffffffu) >= 0x7f800000u) return B_NAN;
    b_angle a = b_reduce(x);
    float s = b_sin_small(a.r), c = b_cos_small(a.r);
    return (a.quarter & 1) != 0 ? b_div(-c, s) : b_div(s, c);
}
/* asin(x) - x for |x| <= 0.5 */
B_FN float b_asin_tail(float x) {
    float z = x * x;
    float p = 3.757818163e-02f;
    p = p * z + 1.439378886e-02f;
    p = p * z + 3.181982332e-02f;
    p = p * z + 4.451547062e-02f;
    p = p * z + 7.500512134e-02f;
    p = p * z + 1.666665985e-01f;
    return p * z * x;
}
B_FN float b_asin(float x) {
    float y = F_ABS(x);
    if (b_is_nan(x)) return x;
    if (y > 1.0f) return B_NAN;
    if (y <= 0.5f) return y == 0.0f ? x : x + b_asin_tail(x);
    float s = F_SQRT(0.5f - 0.5f * y);
    B_PRECISE float r = 1.57079637f - (2.0f * (s + b_asin_tail(s)) + 4.37113883e-08f);
    return b_copysign(r, x);
}
B_FN float b_acos(float x) {
    float y = F_ABS(x);
    if (b_is_nan(x)) return x;
    if (y > 1.0f) return B_NAN;
    if (y <= 0.5f) {
        B_PRECISE float r = 1.57079637f - (x + (b_asin_tail(x) + 4.37113883e-08f));
        return r;
    }
    float s = F_SQRT(0.5f - 0.5f * y);
    B_PRECISE float t = 2.0f * (s + b_asin_tail(s));
    if (x > 0.0f) return t;
    B_PRECISE float r = 3.14159274f - (t + 8.74227766e-08f);
    return r;
}
B_FN float b_atan(float x) {
    float y = F_ABS(x), high = 0.0f, low = 0.0f;
    if (b_is_nan(x)) return x;
    if (y == 0.0f) return x;
    if (y > 2.41421356f) {
        high = 1.57079637f;
        low = -4.37113883e-08f;
        y = y > 1e30f ? 0.0f : -1.0f / y;
    } else if (y > 0.414213562f) {
        high = 0.785398185f;
        low = -2.18556941e-08f;
        y = (y - 1.0f) / (y + 1.0f);
    }
    float z = y * y;
    float p = 4.746678778e-02f;
    p = p * z - 8.477668028e-02f;
    p = p * z + 1.104496770e-01f;
    p = p * z - 1.428203244e-01f;
    p = p * z + 1.999990487e-01f;
    p = p * z - 3.333333251e-01f;
    B_PRECISE float r = high + (y + (p * z * y + low));
    return b_copysign(r, x);
}

/* --------------------------------------------------------------------------------------------- hyperbolic */
B_FN float b_sinh(float x) {
    float y = F_ABS(x);
    if (b_is_nan(x)) return x;
    if (y < 1e-4f) return x;
    if (y > 88.0f) {
        float h = b_exp(0.5f * y);
        return b_copysign(0.5f * h * h, x);
    }
    float t = b_expm1(y);
    return b_copysign(0.5f * (t + b_div(t, t + 1.0f)), x);
}
B_FN float b_cosh(float x) {
    float y = F_ABS(x);
    if (y > 88.0f) {
        float h = b_exp(0.5f * y);
        return 0.5f * h * h;
    }
    float t = b_exp(y);
    return 0.5f * t + b_div(0.5f, t);
}
B_FN float b_tanh(float x) {
    float y = F_ABS(x);
    if (b_is_nan(x)) return x;
    if (y < 1e-4f) return x;
    if (y > 9.1f) return b_copysign(1.0f, x);
    float t = b_expm1(2.0f * y);
    return b_copysign(y > 0.5f ? 1.0f - b_div(2.0f, t + 2.0f) : t / (t + 2.0f), x);
}
B_FN float b_asinh(float x) {
    float y = F_ABS(x);
    if (b_is_nan(x)) return x;
    if (b_is_inf(x)) return x;
    if (y < 1e-4f) return x;
    if (y > 8192.0f) return b_copysign(b_log(y) + 0.693147182f, x);
    float z = y * y;
    return b_copysign(b_log1p(y + b_div(z, 1.0f + F_SQRT(1.0f + z))), x);
}
B_FN float b_acosh(float x) {
    if (b_is_nan(x)) return x;
    if (x < 1.0f) return B_NAN;
    if (b_is_inf(x)) return x;
    if (x > 8192.0f) return b_log(x) + 0.693147182f;
    float t = x - 1.0f;
    return b_log1p(t + F_SQRT(2.0f * t + t * t));
}
B_FN float b_atanh(float x) {
    float y = F_ABS(x);
    if (b_is_nan(x)) return x;
    if (y > 1.0f) return B_NAN;
    if (y == 1.0f) return b_copysign(B_INFINITY, x);
    if (y < 1e-4f) return x;
    return b_copysign(0.5f * b_log1p(b_div(2.0f * y, 1.0f - y)), x);
}

/* ------------------------------------------------------------------------------------------------- others */
B_FN float b_erf(float x) {
    float y = F_ABS(x);
    if (b_is_nan(x)) return x;
    if (y >= 4.0f) return b_copysign(1.0f, x);
    if (y < 1.0f) {
        float z = x * x;
        float p = 7.853860962e-05f;
        p = p * z - 8.010193508e-04f;
        p = p * z + 5.188327672e-03f;
        p = p * z - 2.685381193e-02f;
        p = p * z + 1.128358515e-01f;
        p = p * z - 3.761262582e-01f;
        p = p * z + 1.283791670e-01f; /* 2/sqrt(pi) - 1 */
        return y == 0.0f ? x : x + p * x;
    }
    float p = 1.855740687e-04f;
    p = p * y - 2.939607864e-03f;
    p = p * y + 2.180532051e-02f;
    p = p * y - 1.030373732e-01f;
    p = p * y + 3.617743277e-01f;
    p = p * y - 1.127040039f;
    p = p * y - 3.537187937e-04f;
    return b_copysign(1.0f - b_exp(p - y * y), x);
}
B_FN float b_sigmoid(float x) {
    float t = b_exp(-F_ABS(x));
    return (x < 0.0f ? t : 1.0f) / (1.0f + t);
}
B_FN float b_softplus(float x) { return b_is_nan(x) ? x : b_log1p(b_exp(-F_ABS(x))) + (x > 0.0f ? x : 0.0f); }

struct b_pair { /* an unevaluated sum */
    float high, low;
};
#ifndef GL_core_profile
typedef struct b_pair b_pair;
#endif
/* The product of two floats, exact: halves of 12 bits. Neither factor above 2^115. */
B_FN b_pair b_product(float x, float y) {
    b_pair p;
    float xh = BITS_FLOAT(FLOAT_BITS(x) & 0xfffff000u), yh = BITS_FLOAT(FLOAT_BITS(y) & 0xfffff000u);
    B_PRECISE float xl = x - xh, yl = y - yh;
    B_PRECISE float high = x * y;
    B_PRECISE float low = ((xh * yh - high) + (xh * yl + xl * yh)) + xl * yl;
    p.high = high;
    p.low = low;
    return p;
}
/* log2 of a positive finite x to about 2^-31 relative. */
B_FN b_pair b_log2_pair(float x) {
    b_split part = b_log_split(x);
    float f = part.f, e = TO_FLOAT(part.e);
    B_PRECISE float d = 2.0f + f, d_low = f - (d - 2.0f);
    B_PRECISE float s = f / d;
    b_pair back = b_product(s, d);
    B_PRECISE float s_low = (((f - back.high) - back.low) - s * d_low) / d;
    float z = s * s;
    float p = 1.0f / 11.0f;
    p = p * z + 1.0f / 9.0f;
    p = p * z + 1.0f / 7.0f;
    p = p * z + 1.0f / 5.0f;
    p = (p * z + 1.0f / 3.0f) * z;
    B_PRECISE float tail = s_low + s * p; /* atanh(s) = s + tail */
    b_pair t = b_product(s, 2.88539004f); /* 2/ln(2) = 2.88539004 + 3.851926e-8 */
    B_PRECISE float low = t.low + (tail * 2.88539004f + s * 3.85192607e-08f);
    B_PRECISE float high = e + t.high;
    B_PRECISE float rest = e != 0.0f ? t.high - (high - e) : 0.0f;
    B_PRECISE float total = high + (low + rest);
    b_pair r;
    r.high = total;
    B_PRECISE float r_low = (high - total) + (low + rest);
    r.low = r_low;
    return r;
}
/* |x|^y with x > 0 finite, y finite. */
B_FN float b_pow_positive(float x, float y) {
    if (y > 4e9f) y = 4e9f; /* beyond that only overflow, underflow or 1 remain */
    if (y < -4e9f) y = -4e9f;
    b_pair l = b_log2_pair(x);
    b_pair t = b_product(y, l.high);
    B_PRECISE float low = t.low + y * l.low;
    if (t.high > 130.0f) return B_INFINITY;
    if (t.high < -152.0f) return 0.0f;
    float n = F_ROUND_EVEN(t.high);
    B_PRECISE float r = (t.high - n) + low;
    return b_scale(1.0f + b_expm1_small(r * 0.693147182f), TO_INT(n));
}
/* As C's pow. */
B_FN float b_pow(float x, float y) {
    uint ux = FLOAT_BITS(x) & 0x7fffffffu, uy = FLOAT_BITS(y) & 0x7fffffffu;
    if (uy == 0u || FLOAT_BITS(x) == 0x3f800000u) return 1.0f;
    if (ux > 0x7f800000u) return x;
    if (uy > 0x7f800000u) return y;
    bool whole = uy >= 0x4b800000u || F_FLOOR(y) == y;
    bool odd = whole && uy < 0x4b800000u && F_FLOOR(0.5f * y) * 2.0f != y;
    bool negative_x = (FLOAT_BITS(x) & 0x80000000u) != 0u, negative_y = (FLOAT_BITS(y) & 0x80000000u) != 0u;
    float r;
    if (ux == 0u) r = negative_y ? B_INFINITY : 0.0f;
    else if (ux == 0x7f800000u) r = negative_y ? 0.0f : B_INFINITY;
    else if (negative_x && !whole) return B_NAN;
    else if (ux == 0x3f800000u) r = 1.0f;
    else r = b_pow_positive(BITS_FLOAT(ux), y);
    return negative_x && odd ? -r : r;
}

/* C's fmod: exact, sign of x. At most 7 rounds of long division. */
B_FN float b_mod(float x, float y) {
    uint ux = FLOAT_BITS(x) & 0x7fffffffu, uy = FLOAT_BITS(y) & 0x7fffffffu;
    if (ux >= 0x7f800000u || uy > 0x7f800000u || uy == 0u) return B_NAN;
    if (ux < uy) return x;
    int ex = ux < 0x00800000u ? 1 : TO_INT(ux >> 23), ey = uy < 0x00800000u ? 1 : TO_INT(uy >> 23);
    uint mx = ux < 0x00800000u ? ux : (ux & 0x007fffffu) | 0x00800000u;
    uint my = uy < 0x00800000u ? uy : (uy & 0x007fffffu) | 0x00800000u;
    uint64_t rest = TO_U64(mx) % TO_U64(my);
    int n = ex - ey;
    while (n > 0) {
        int k = n < 40 ? n : 40;
        rest = (rest << k) % TO_U64(my);
        n -= k;
    }
    /* rest * 2^(ey - 150); rest < 2^24 is exact as a float */
    float r = b_scale(b_scale(TO_FLOAT(TO_UINT(rest)), (ey - 150) / 2), (ey - 150) - (ey - 150) / 2);
    return b_copysign(r, x);
}
/* Remainder with the sign of y. */
B_FN float b_pymod(float x, float y) {
    float r = b_mod(x, y);
    if (r == 0.0f) return b_copysign(r, y);
    return (r < 0.0f) != (y < 0.0f) ? r + y : r;
}

/* ----------------------------------------------------------------------------------------------- integers */
B_FN int64_t b_i_div(int64_t x, int64_t y) { return y == 0 ? y : y == -1 ? TO_I64(TO_U64(0u) - TO_U64(x)) : x / y; }
/* Sign of x, as C's %. */
B_FN int64_t b_i_rem(int64_t x, int64_t y) {
    if (y == 0 || y == -1) return y - y;
    return x - (x / y) * y;
}
/* Sign of y, as Python's %. */
B_FN int64_t b_i_pymod(int64_t x, int64_t y) {
    int64_t r = b_i_rem(x, y);
    return r != 0 && ((r < 0) != (y < 0)) ? r + y : r;
}
B_FN int64_t b_u_div(int64_t x, int64_t y) { return y == 0 ? y : TO_I64(TO_U64(x) / TO_U64(y)); }
B_FN int64_t b_u_rem(int64_t x, int64_t y) { return y == 0 ? y : TO_I64(TO_U64(x) % TO_U64(y)); }
B_FN int64_t b_shl(int64_t x, int64_t n) {
    return TO_U64(n) > TO_U64(63u) ? x - x : TO_I64(TO_U64(x) << TO_INT(n));
}
B_FN int64_t b_shr(int64_t x, int64_t n) {
    return TO_U64(n) > TO_U64(63u) ? x - x : TO_I64(TO_U64(x) >> TO_INT(n));
}
/* Arithmetic; a count outside [0, 63] leaves the sign alone. */
B_FN int64_t b_sar(int64_t x, int64_t n) { return x >> (TO_U64(n) > TO_U64(63u) ? 63 : TO_INT(n)); }
/* As numpy.clip: the upper bound wins. */
B_FN int64_t b_i_clip(int64_t x, int64_t low, int64_t high) {
    int64_t y = x < low ? low : x;
    return y > high ? high : y;
}
B_FN int64_t b_u_clip(int64_t x, int64_t low, int64_t high) {
    int64_t y = TO_U64(x) < TO_U64(low) ? low : x;
    return TO_U64(y) > TO_U64(high) ? high : y;
}
/* Wraps modulo 2^64. A negative power is the reciprocal, truncated; 0 to a negative power is 0. */
B_FN int64_t b_i_pow(int64_t x, int64_t y) {
    uint64_t r = TO_U64(1u), b = TO_U64(x), n = TO_U64(y);
    if (y < 0) {
        if (x == 1) return x;
        if (x == -1) return (n & TO_U64(1u)) != TO_U64(0u) ? x : -x;
        return y - y;
    }
    while (n != TO_U64(0u)) {
        if ((n & TO_U64(1u)) != TO_U64(0u)) r *= b;
        b *= b;
        n >>= 1;
    }
    return TO_I64(r);
}
/* Truncate and saturate; NaN gives 0. */
B_FN int64_t b_to_i64(float x) {
    if (b_is_nan(x)) return TO_I64(0);
    if (x >= 9223372036854775808.0f) return B_I64_MAX;
    if (x <= -9223372036854775808.0f) return B_I64_MIN;
    return TO_I64(x);
}
B_FN int64_t b_to_u64(float x) {
    if (b_is_nan(x) || x <= 0.0f) return TO_I64(0);
    if (x >= 18446744073709551616.0f) return TO_I64(-1);
    return TO_I64(TO_U64(x));
}

/* ---------------------------------------------------------------------------------------- 16-bit floats */
B_FN float b_half_to_float(uint h) {
    uint sign = (h & 0x8000u) << 16, e = (h >> 10) & 31u, m = h & 1023u;
    if (e == 0u) return BITS_FLOAT(FLOAT_BITS(TO_FLOAT(m) * BITS_FLOAT(0x33800000u)) | sign); /* 2^-24 */
    return BITS_FLOAT(sign | (e == 31u ? 0x7f800000u | m << 13 : (e + 112u) << 23 | m << 13));
}
/* Round to nearest even; NaN stays NaN. */
B_FN uint b_float_to_half(float x) {
    uint u = FLOAT_BITS(x), sign = (u >> 16) & 0x8000u;
    u &= 0x7fffffffu;
    if (u > 0x7f800000u) return sign | 0x7e00u;
    if (u >= 0x477ff000u) return sign | 0x7c00u; /* 65520 rounds up to infinity */
    if (u < 0x38800000u) return sign | TO_UINT(F_ROUND_EVEN(BITS_FLOAT(u) * 16777216.0f));
    return sign | ((u - 0x38000000u + 0xfffu + ((u >> 13) & 1u)) >> 13);
}
B_FN float b_bfloat_to_float(uint h) { return BITS_FLOAT(h << 16); }
B_FN uint b_float_to_bfloat(float x) {
    uint u = FLOAT_BITS(x);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (u >> 16) | 0x40u;
    return (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
}
#endif
