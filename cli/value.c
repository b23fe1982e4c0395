/* value: one element of a host tensor as a number or text, for every element type. */
#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* A small float: `exponent` and `mantissa` bits below the sign. */
static double small_float(unsigned bits, int exponent, int mantissa, int bias) {
    unsigned e = (bits >> mantissa) & ((1u << exponent) - 1), m = bits & ((1u << mantissa) - 1);
    double v = e ? ldexp(1.0 + ldexp((double)m, -mantissa), (int)e - bias) : ldexp((double)m, 1 - bias - mantissa);
    return (bits >> (exponent + mantissa)) & 1 ? -v : v;
}

/* IEEE style: the highest exponent holds infinities and NaN. */
static double ieee_float(unsigned bits, int exponent, int mantissa) {
    unsigned top = (1u << exponent) - 1, e = (bits >> mantissa) & top, m = bits & ((1u << mantissa) - 1);
    if (e != top) return small_float(bits, exponent, mantissa, (int)(top >> 1));
    if (m) return NAN;
    return (bits >> (exponent + mantissa)) & 1 ? -INFINITY : INFINITY;
}

double half_to_double(uint16_t h) {
    return ieee_float(h, 5, 10);
}

static double float8_to_double(braid_type type, uint8_t b) {
    switch (type) {
    case BRAID_FLOAT8E4M3FN:
        return (b & 0x7f) == 0x7f ? (double)NAN : small_float(b, 4, 3, 7);
    case BRAID_FLOAT8E4M3FNUZ:
        return b == 0x80 ? (double)NAN : small_float(b, 4, 3, 8);
    case BRAID_FLOAT8E5M2FNUZ:
        return b == 0x80 ? (double)NAN : small_float(b, 5, 2, 16);
    case BRAID_FLOAT8E8M0:
        return b == 0xff ? (double)NAN : ldexp(1.0, (int)b - 127);
    default:
        return ieee_float(b, 5, 2);
    }
}

#define LOAD(ctype) load_##ctype(t->data, i)
#define LOADER(ctype)                                                                                                  \
    static ctype load_##ctype(const void *data, int64_t i) {                                                           \
        ctype v;                                                                                                       \
        memcpy(&v, (const char *)data + i * (int64_t)sizeof v, sizeof v);                                              \
        return v;                                                                                                      \
    }
LOADER(float)
LOADER(double)
LOADER(int8_t)
LOADER(uint8_t)
LOADER(int16_t)
LOADER(uint16_t)
LOADER(int32_t)
LOADER(uint32_t)
LOADER(int64_t)
LOADER(uint64_t)

/* Element i of a packed type of 4 or 2 bits, the first element in the low bits. */
static unsigned packed(const braid_tensor *t, int64_t i, int bits) {
    int per = 8 / bits;
    unsigned byte = ((const uint8_t *)t->data)[i / per];
    return byte >> ((int)(i % per) * bits) & ((1u << bits) - 1);
}

static float bfloat_to_float(uint16_t b) {
    uint32_t bits = (uint32_t)b << 16;
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

int64_t value_get_int(const braid_tensor *t, int64_t i) {
    switch (t->type) {
    case BRAID_BOOL:
    case BRAID_UINT8:
        return LOAD(uint8_t);
    case BRAID_INT8:
        return LOAD(int8_t);
    case BRAID_UINT16:
        return LOAD(uint16_t);
    case BRAID_INT16:
        return LOAD(int16_t);
    case BRAID_UINT32:
        return LOAD(uint32_t);
    case BRAID_INT32:
        return LOAD(int32_t);
    case BRAID_UINT64:
        return (int64_t)LOAD(uint64_t);
    case BRAID_INT64:
        return LOAD(int64_t);
    case BRAID_UINT4:
        return packed(t, i, 4);
    case BRAID_INT4:
        return (int64_t)(packed(t, i, 4) ^ 8u) - 8;
    case BRAID_UINT2:
        return packed(t, i, 2);
    case BRAID_INT2:
        return (int64_t)(packed(t, i, 2) ^ 2u) - 2;
    default:
        return 0;
    }
}

double value_get(const braid_tensor *t, int64_t i) {
    switch (t->type) {
    case BRAID_FLOAT32:
        return (double)LOAD(float);
    case BRAID_FLOAT64:
        return LOAD(double);
    case BRAID_FLOAT16:
        return half_to_double(LOAD(uint16_t));
    case BRAID_BFLOAT16:
        return (double)bfloat_to_float(LOAD(uint16_t));
    case BRAID_COMPLEX64:
        return (double)load_float(t->data, 2 * i);
    case BRAID_COMPLEX128:
        return load_double(t->data, 2 * i);
    case BRAID_FLOAT4E2M1:
        return small_float(packed(t, i, 4), 2, 1, 1);
    case BRAID_FLOAT8E4M3FN:
    case BRAID_FLOAT8E4M3FNUZ:
    case BRAID_FLOAT8E5M2:
    case BRAID_FLOAT8E5M2FNUZ:
    case BRAID_FLOAT8E8M0:
        return float8_to_double(t->type, LOAD(uint8_t));
    case BRAID_UINT64:
        return (double)LOAD(uint64_t);
    default:
        return (double)value_get_int(t, i);
    }
}

static uint16_t double_to_half(double v) {
    uint16_t sign = signbit(v) ? 0x8000 : 0;
    if (isnan(v)) return (uint16_t)(sign | 0x7e00);
    v = fabs(v);
    if (v >= 65520) return (uint16_t)(sign | 0x7c00);
    int exponent;
    frexp(v, &exponent);
    int unit = exponent < -13 ? -24 : exponent - 11; /* exponent of the last mantissa bit */
    double steps = rint(ldexp(v, -unit));            /* exact scaling, rounds once, ties to even */
    if (exponent < -13) return (uint16_t)(sign | (uint16_t)steps);
    return (uint16_t)(sign | (uint16_t)((exponent + 14) * 1024 + (int)steps - 1024));
}

static uint16_t float_to_bfloat(float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    if (isnan(v)) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#define STORE(ctype, v)                                                                                                \
    do {                                                                                                               \
        ctype store_ = (ctype)(v);                                                                                     \
        memcpy((char *)t->data + i * (int64_t)sizeof store_, &store_, sizeof store_);                                  \
    } while (0)

bool value_set_int(braid_tensor *t, int64_t i, int64_t v) {
    int bits = value_bits(t->type);
    switch (t->type) {
    case BRAID_BOOL:
        if (v < 0 || v > 1) return false;
        STORE(uint8_t, v);
        return true;
    case BRAID_INT8:
    case BRAID_INT16:
    case BRAID_INT32:
        if (v < -((int64_t)1 << (bits - 1)) || v >= (int64_t)1 << (bits - 1)) return false;
        break;
    case BRAID_UINT8:
    case BRAID_UINT16:
    case BRAID_UINT32:
        if (v < 0 || v >= (int64_t)1 << bits) return false;
        break;
    case BRAID_UINT64:
        if (v < 0) return false;
        break;
    case BRAID_INT64:
        break;
    default:
        return value_set(t, i, (double)v);
    }
    memcpy((char *)t->data + i * (bits / 8), &v, (size_t)bits / 8); /* little endian */
    return true;
}

bool value_set(braid_tensor *t, int64_t i, double v) {
    switch (t->type) {
    case BRAID_FLOAT32:
        STORE(float, v);
        return true;
    case BRAID_FLOAT64:
        STORE(double, v);
        return true;
    case BRAID_FLOAT16:
        STORE(uint16_t, double_to_half(v));
        return true;
    case BRAID_BFLOAT16:
        STORE(uint16_t, float_to_bfloat((float)v));
        return true;
    case BRAID_BOOL:
    case BRAID_INT8:
    case BRAID_INT16:
    case BRAID_INT32:
    case BRAID_INT64:
    case BRAID_UINT8:
    case BRAID_UINT16:
    case BRAID_UINT32:
    case BRAID_UINT64:
        if (!(v >= -9.2e18 && v <= 9.2e18) || v != trunc(v)) return false;
        return value_set_int(t, i, (int64_t)v);
    default:
        return false;
    }
}

bool value_parse(braid_tensor *t, int64_t i, const char *text, size_t length) {
    char copy[64], *end;
    while (length && *text == ' ') text++, length--;
    while (length && text[length - 1] == ' ') length--;
    if (length == 0 || length >= sizeof copy) return false;
    memcpy(copy, text, length);
    copy[length] = 0;
    if (t->type == BRAID_BOOL && (!strcmp(copy, "true") || !strcmp(copy, "false")))
        return value_set_int(t, i, copy[0] == 't');
    errno = 0;
    if (t->type == BRAID_UINT64 && copy[0] != '-') {
        unsigned long long v = strtoull(copy, &end, 0);
        if (!*end && !errno) STORE(uint64_t, v);
        return !*end && !errno;
    }
    long long whole = strtoll(copy, &end, 0);
    if (!*end && !errno) return value_set_int(t, i, whole);
    double v = strtod(copy, &end);
    return !*end && value_set(t, i, v);
}

void value_text(const braid_tensor *t, int64_t i, char *out, size_t capacity) {
    switch (t->type) {
    case BRAID_STRING: {
        const char *s = ((const char *const *)t->data)[i];
        snprintf(out, capacity, "\"%s\"", s ? s : "");
        break;
    }
    case BRAID_COMPLEX64:
        snprintf(out, capacity, "%.6g%+.6gi", value_get(t, i), (double)load_float(t->data, 2 * i + 1));
        break;
    case BRAID_COMPLEX128:
        snprintf(out, capacity, "%.6g%+.6gi", value_get(t, i), load_double(t->data, 2 * i + 1));
        break;
    case BRAID_BOOL:
        snprintf(out, capacity, "%s", value_get_int(t, i) ? "true" : "false");
        break;
    case BRAID_UINT64:
        snprintf(out, capacity, "%llu", (unsigned long long)LOAD(uint64_t));
        break;
    default:
        if (value_is_float(t->type))
            snprintf(out, capacity, "%.6g", value_get(t, i));
        else
            snprintf(out, capacity, "%lld", (long long)value_get_int(t, i));
    }
}
