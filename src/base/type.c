/*
 * type.c: element types, conversions between floats of all widths, access to single elements.
 *
 * Every narrowing of a float goes through one routine that rounds a double once, to nearest even. A float converts to a
 * double exactly, so float_to_half is double_to_half.
 */
#include "base/base.h"
#include <math.h>

typedef struct type_row {
    int bits;
    const char *name;
} type_row;
static const type_row types[] = {
#define TYPE_ROW(name, number, bits, text) [number] = {bits, text},
    BRAID_TYPE_MAP(TYPE_ROW)
#undef TYPE_ROW
};

bool type_known(int number) {
    return number > 0 && (size_t)number < COUNT_OF(types) && types[number].name;
}

int type_bits(braid_type t) {
    return type_known((int)t) ? types[t].bits : 0;
}

const char *braid_type_name(braid_type t) {
    if (t == BRAID_TYPE_NONE) return "none";
    return type_known((int)t) ? types[t].name : "unknown";
}

size_t braid_type_bytes(braid_type t) {
    return (size_t)type_bits(t) / 8;
}

braid_type type_from_name(const char *name) {
    for (size_t i = 1; i < COUNT_OF(types); i++)
        if (types[i].name && strcmp(types[i].name, name) == 0) return (braid_type)i;
    return BRAID_TYPE_NONE;
}

bool type_span(braid_type t, int64_t count, size_t *bytes) {
    size_t bits = (size_t)type_bits(t), whole;
    if (bits == 0 || count < 0) return false;
    if (bits < 8) {
        size_t per_byte = 8 / bits;
        *bytes = (size_t)count / per_byte + ((size_t)count % per_byte != 0);
        return true;
    }
    if (!size_mul((size_t)count, bits / 8, &whole)) return false;
    *bytes = whole;
    return true;
}

bool dims_count(int rank, const int64_t *dims, int64_t *out) {
    int64_t count = 1;
    bool empty = false;
    for (int i = 0; i < rank; i++) { /* the product of the dims other than 0 must fit too */
        if (dims[i] < 0) return false;
        if (dims[i] == 0)
            empty = true;
        else if (!i64_mul(count, dims[i], &count) || count > ELEMENTS_MAX)
            return false;
    }
    *out = empty ? 0 : count;
    return true;
}

/* ------------------------------------------------------------------------------------------------- floats */

/* v as a float with `mantissa` stored bits and exponent bias `bias` (largest exponent bias, smallest normal 1 - bias).
   A NaN keeps its sign and upper payload and becomes quiet. */
static uint32_t narrow(double v, int mantissa, int bias) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    uint32_t infinity = (uint32_t)(2 * bias + 1) << mantissa;
    uint32_t sign = (uint32_t)(bits >> 63) * ((infinity << 1) & ~infinity & ~((1u << mantissa) - 1));
    uint64_t fraction = bits & 0xfffffffffffffu;
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    int shift = 52 - mantissa;
    if (exponent == 1024 && fraction) return sign | infinity | 1u << (mantissa - 1) | (uint32_t)(fraction >> shift);
    if (exponent > bias) return sign | infinity;
    uint64_t magnitude;
    if (exponent >= 1 - bias) {
        magnitude = (uint64_t)(exponent + bias) << 52 | fraction;
    } else {
        shift += 1 - bias - exponent;
        if (shift > 54) return sign; /* below half of the smallest subnormal */
        magnitude = 1ull << 52 | fraction;
    }
    uint64_t kept = magnitude >> shift, rest = magnitude & ((1ull << shift) - 1), half = 1ull << (shift - 1);
    kept += rest > half || (rest == half && (kept & 1)); /* a carry runs into the exponent, up to infinity */
    return sign | (uint32_t)kept;
}

uint16_t double_to_half(double v) {
    return (uint16_t)narrow(v, 10, 15);
}
uint16_t float_to_half(float v) {
    return (uint16_t)narrow((double)v, 10, 15);
}
uint16_t double_to_bfloat(double v) {
    return (uint16_t)narrow(v, 7, 127);
}

uint16_t float_to_bfloat(float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

float half_to_float(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = h >> 10 & 0x1fu, fraction = h & 0x3ffu;
    if (exponent == 0) { /* zero or subnormal: fraction * 2^-24, exact */
        float magnitude = (float)fraction * 0x1p-24f;
        return sign ? -magnitude : magnitude;
    }
    uint32_t bits = sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | fraction << 13;
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

float bfloat_to_float(uint16_t b) {
    uint32_t bits = (uint32_t)b << 16;
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* ----------------------------------------------------------------------------------------------- elements */

/* The numeric types with a C type behind them. */
#define NUMBER_MAP(X)                                                                                                  \
    X(FLOAT32, float)                                                                                                  \
    X(FLOAT64, double)                                                                                                 \
    X(UINT8, uint8_t)                                                                                                  \
    X(INT8, int8_t)                                                                                                    \
    X(UINT16, uint16_t)                                                                                                \
    X(INT16, int16_t)                                                                                                  \
    X(UINT32, uint32_t)                                                                                                \
    X(INT32, int32_t)                                                                                                  \
    X(UINT64, uint64_t)                                                                                                \
    X(INT64, int64_t)

static int64_t saturate_i64(double v) {
    if (isnan(v)) return 0;
    if (v >= 0x1p63) return INT64_MAX;
    return v < -0x1p63 ? INT64_MIN : (int64_t)v;
}

static uint64_t saturate_u64(double v) {
    if (!(v > 0)) return 0;
    return v >= 0x1p64 ? UINT64_MAX : (uint64_t)v;
}

/* v truncated and saturated to an integer of `bits` bits. */
static int64_t saturate_signed(double v, int bits) {
    int64_t whole = saturate_i64(v), high = (int64_t)(UINT64_MAX >> (65 - bits));
    return whole > high ? high : whole < -high - 1 ? -high - 1 : whole;
}

static uint64_t saturate_unsigned(double v, int bits) {
    uint64_t whole = saturate_u64(v), high = UINT64_MAX >> (64 - bits);
    return whole > high ? high : whole;
}

/* Rounds an int64 once, also beyond 2^53: the bits that a double cannot hold are gathered into its last one. */
static uint16_t i64_to_bfloat(int64_t v) {
    uint64_t magnitude = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    if (magnitude >> 53) magnitude = (magnitude >> 11 | ((magnitude & 0x7ff) != 0)) << 11;
    return double_to_bfloat(v < 0 ? -(double)magnitude : (double)magnitude);
}

double element_f64(braid_type t, const void *data, int64_t i) {
    switch (t) {
#define NUMBER_CASE(name, type)                                                                                        \
    case BRAID_##name:                                                                                                 \
        return (double)((const type *)data)[i];
        NUMBER_MAP(NUMBER_CASE)
#undef NUMBER_CASE
    case BRAID_FLOAT16:
        return (double)half_to_float(((const uint16_t *)data)[i]);
    case BRAID_BFLOAT16:
        return (double)bfloat_to_float(((const uint16_t *)data)[i]);
    case BRAID_BOOL:
        return ((const uint8_t *)data)[i] != 0;
    default:
        return 0;
    }
}

int64_t element_i64(braid_type t, const void *data, int64_t i) {
    switch (t) {
    case BRAID_UINT8:
        return ((const uint8_t *)data)[i];
    case BRAID_INT8:
        return ((const int8_t *)data)[i];
    case BRAID_UINT16:
        return ((const uint16_t *)data)[i];
    case BRAID_INT16:
        return ((const int16_t *)data)[i];
    case BRAID_UINT32:
        return ((const uint32_t *)data)[i];
    case BRAID_INT32:
        return ((const int32_t *)data)[i];
    case BRAID_UINT64:
        return (int64_t)((const uint64_t *)data)[i];
    case BRAID_INT64:
        return ((const int64_t *)data)[i];
    case BRAID_BOOL:
        return ((const uint8_t *)data)[i] != 0;
    default:
        return saturate_i64(element_f64(t, data, i));
    }
}

void element_set_f64(braid_type t, void *data, int64_t i, double v) {
    int bits = type_bits(t);
    switch (t) {
    case BRAID_FLOAT32:
        ((float *)data)[i] = (float)v;
        break;
    case BRAID_FLOAT64:
        ((double *)data)[i] = v;
        break;
    case BRAID_FLOAT16:
        ((uint16_t *)data)[i] = double_to_half(v);
        break;
    case BRAID_BFLOAT16:
        ((uint16_t *)data)[i] = double_to_bfloat(v);
        break;
    case BRAID_INT8:
    case BRAID_INT16:
    case BRAID_INT32:
    case BRAID_INT64:
        element_set_i64(t, data, i, saturate_signed(v, bits));
        break;
    case BRAID_UINT8:
    case BRAID_UINT16:
    case BRAID_UINT32:
    case BRAID_UINT64:
        element_set_i64(t, data, i, (int64_t)saturate_unsigned(v, bits));
        break;
    case BRAID_BOOL:
        ((uint8_t *)data)[i] = v != 0;
        break;
    default:
        break;
    }
}

void element_set_i64(braid_type t, void *data, int64_t i, int64_t v) {
    switch (t) {
#define NUMBER_CASE(name, type)                                                                                        \
    case BRAID_##name:                                                                                                 \
        ((type *)data)[i] = (type)v;                                                                                   \
        break;
        NUMBER_MAP(NUMBER_CASE)
#undef NUMBER_CASE
    case BRAID_FLOAT16:
        ((uint16_t *)data)[i] = double_to_half((double)v);
        break; /* beyond 2^53 it is infinite */
    case BRAID_BFLOAT16:
        ((uint16_t *)data)[i] = i64_to_bfloat(v);
        break;
    case BRAID_BOOL:
        ((uint8_t *)data)[i] = v != 0;
        break;
    default:
        break;
    }
}
