/*
 * tiny.c: conversions of float8, float4 and packed integers.
 */
#include "ops/tiny.h"

#include <math.h>

/* A float of a sign, exponent and mantissa bits. */
typedef struct format {
    int mantissa, bias;
    uint32_t sign, largest; /* codes: the sign bit, the largest finite value */
    uint32_t nan;           /* code of NaN; 0: none */
    uint32_t infinity;      /* code; 0: none */
    bool unsigned_zero;     /* the code of -0 is NaN */
} format;

static const format *format_of(braid_type t) {
    static const format e4m3fn = {3, 7, 0x80, 0x7e, 0x7f, 0, false}, e4m3fnuz = {3, 8, 0x80, 0x7f, 0x80, 0, true},
                        e5m2 = {2, 15, 0x80, 0x7b, 0x7f, 0x7c, false}, e5m2fnuz = {2, 16, 0x80, 0x7f, 0x80, 0, true},
                        e2m1 = {1, 1, 0x8, 0x7, 0, 0, false};
    switch (t) {
    case BRAID_FLOAT8E4M3FN:
        return &e4m3fn;
    case BRAID_FLOAT8E4M3FNUZ:
        return &e4m3fnuz;
    case BRAID_FLOAT8E5M2:
        return &e5m2;
    case BRAID_FLOAT8E5M2FNUZ:
        return &e5m2fnuz;
    case BRAID_FLOAT4E2M1:
        return &e2m1;
    default:
        return NULL;
    }
}

static bool is_signed(braid_type t) {
    return t == BRAID_INT4 || t == BRAID_INT2;
}

bool type_is_tiny(braid_type t) {
    return format_of(t) || t == BRAID_FLOAT8E8M0 || t == BRAID_UINT4 || t == BRAID_INT4 || t == BRAID_UINT2 ||
           t == BRAID_INT2;
}

static uint32_t code_get(int bits, const void *data, int64_t i) {
    const uint8_t *bytes = data;
    int per = 8 / bits;
    return (uint32_t)(bytes[i / per] >> (bits * (int)(i % per))) & ((1u << bits) - 1);
}

static void code_set(int bits, void *data, int64_t i, uint32_t code) {
    uint8_t *bytes = data;
    int per = 8 / bits, shift = bits * (int)(i % per);
    bytes[i / per] =
        (uint8_t)((bytes[i / per] & ~(((1u << bits) - 1) << shift)) | (code & ((1u << bits) - 1)) << shift);
}

static double float_decode(const format *f, uint32_t code) {
    uint32_t magnitude = code & (f->sign - 1);
    bool negative = (code & f->sign) != 0;
    if (f->unsigned_zero ? code == f->nan : f->nan && (magnitude > f->largest && magnitude != f->infinity)) return NAN;
    if (f->infinity && magnitude == f->infinity) return negative ? -INFINITY : INFINITY;
    int exponent = (int)(magnitude >> f->mantissa);
    int fraction = (int)(magnitude & ((1u << f->mantissa) - 1));
    if (exponent) fraction |= 1 << f->mantissa;
    double v = ldexp(fraction, (exponent ? exponent : 1) - f->bias - f->mantissa);
    return negative ? -v : v;
}

static uint32_t float_encode(const format *f, double v, bool saturate) {
    uint32_t sign = signbit(v) ? f->sign : 0, code;
    if (isnan(v)) return f->unsigned_zero ? f->nan : f->nan | sign;
    double a = fabs(v);
    int lowest = 1 - f->bias, exponent = lowest;
    if (a > 0 && !isinf(a) && ilogb(a) > lowest) exponent = ilogb(a);
    double units = isinf(a) ? INFINITY : rint(ldexp(a, f->mantissa - exponent));
    if (isinf(units) || exponent > lowest + 64)
        code = f->largest + 1;
    else
        code = ((uint32_t)(exponent - lowest) << f->mantissa) + (uint32_t)units;
    if (code > f->largest) {
        if (saturate || !f->nan) return f->largest | sign;
        return f->unsigned_zero ? f->nan : (f->infinity ? f->infinity : f->nan) | sign;
    }
    return code == 0 && f->unsigned_zero ? 0 : code | sign;
}

/* Codes 0..254 are 2^-127..2^127, 255 is NaN. */
static uint32_t power_encode(double v, bool saturate, tiny_round round) {
    if (isnan(v)) return 255;
    double a = fabs(v);
    if (a < 0x1p-127) return saturate ? 0 : 255;
    if (isinf(a)) return saturate ? 254 : 255;
    int exponent = ilogb(a);
    double above = ldexp(a, -exponent) - 1;
    if (round == TINY_UP ? above > 0 : round == TINY_NEAREST && above >= 0.5) exponent++;
    if (exponent > 127) return saturate ? 254 : 255;
    return (uint32_t)(exponent + 127);
}

double tiny_get(braid_type t, const void *data, int64_t i) {
    int bits = type_bits(t);
    uint32_t code = code_get(bits, data, i);
    const format *f = format_of(t);
    if (f) return float_decode(f, code);
    if (t == BRAID_FLOAT8E8M0) return code == 255 ? NAN : ldexp(1, (int)code - 127);
    return is_signed(t) && code >> (bits - 1) ? (double)code - (double)(1u << bits) : (double)code;
}

void tiny_set(braid_type t, void *data, int64_t i, double v, bool saturate, tiny_round round) {
    const format *f = format_of(t);
    uint32_t code;
    if (f)
        code = float_encode(f, v, saturate);
    else if (t == BRAID_FLOAT8E8M0)
        code = power_encode(v, saturate, round);
    else
        code = (uint32_t)(uint64_t)(int64_t)(fabs(v) < 0x1p62 ? v : 0);
    code_set(type_bits(t), data, i, code);
}
