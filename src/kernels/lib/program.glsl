// program.glsl: runs the fusion program that specialization constants SPEC_PROGRAM + n hold. After specialization only
// the instructions that are there remain. Inputs' element types are constants SPEC_TYPES + register, 0 for absent ones.
//
// A kernel with an epilogue has `epilogue e;` in its row (lib/epilogue.h), `#include "lib/program.glsl"` and does:
//
//     epilogue_state s = epilogue_begin(row.r.e, p, batch);              // once per workgroup or invocation
//     store_float(out_base, at, RESULT_TYPE, epilogue_run(s, value, row, col)); // per element
//
// Without a program (word 0 is 0) epilogue_run is `value`. A kernel whose results are integers has no epilogue.
#ifndef PROGRAM_GLSL
#define PROGRAM_GLSL
#include "lib/type.glsl"
#include "lib/map_ops.h"
#include "lib/epilogue.h"

#define SPEC_WORD(n) layout(constant_id = SPEC_PROGRAM + n) const uint PROGRAM_##n = 0u;
#define SPEC_TYPE(n) layout(constant_id = SPEC_TYPES + n) const uint PROGRAM_TYPE_##n = 0u;
SPEC_WORD(0) SPEC_WORD(1) SPEC_WORD(2) SPEC_WORD(3) SPEC_WORD(4) SPEC_WORD(5) SPEC_WORD(6) SPEC_WORD(7)
SPEC_WORD(8) SPEC_WORD(9) SPEC_WORD(10) SPEC_WORD(11) SPEC_WORD(12) SPEC_WORD(13) SPEC_WORD(14) SPEC_WORD(15)
SPEC_TYPE(0) SPEC_TYPE(1) SPEC_TYPE(2) SPEC_TYPE(3) SPEC_TYPE(4) SPEC_TYPE(5) SPEC_TYPE(6) SPEC_TYPE(7)

#define R(c) real(c)
#define TO_REAL(i) real(i)
#define M_ABS(x) abs(x)
#define M_CEIL(x) ceil(x)
#define M_FLOOR(x) floor(x)
#define M_ROUND_EVEN(x) roundEven(x)
#define M_SQRT(x) sqrt(x)
#define M_ROUND_FLOAT16(x) real(b_half_to_float(b_float_to_half(float(x))))
#define M_ROUND_BFLOAT16(x) real(b_bfloat_to_float(b_float_to_bfloat(float(x))))
#define M_ROUND_FLOAT32(x) real(float(x))
#ifdef FLOAT64
uint high_word(double x) { return unpackDouble2x32(x).y & 0x7fffffffu; }
bool b_is_nan64(double x) {
    uvec2 w = unpackDouble2x32(x);
    return (w.y & 0x7fffffffu) > 0x7ff00000u || ((w.y & 0x7fffffffu) == 0x7ff00000u && w.x != 0u);
}
bool b_is_inf64(double x) {
    uvec2 w = unpackDouble2x32(x);
    return (w.y & 0x7fffffffu) == 0x7ff00000u && w.x == 0u;
}
double b_min64(double x, double y) { return b_is_nan64(x) ? x : b_is_nan64(y) ? y : x < y ? x : y; }
double b_max64(double x, double y) { return b_is_nan64(x) ? x : b_is_nan64(y) ? y : x > y ? x : y; }
int64_t b_to_i64_64(double x) {
    if (b_is_nan64(x)) return int64_t(0);
    if (x >= 9223372036854775808.0lf) return B_I64_MAX;
    if (x <= -9223372036854775808.0lf) return B_I64_MIN;
    return int64_t(x);
}
int64_t b_to_u64_64(double x) {
    if (b_is_nan64(x) || x <= 0.0lf) return int64_t(0);
    if (x >= 18446744073709551616.0lf) return int64_t(-1);
    return int64_t(uint64_t(x));
}
#define M_NAN(x) b_is_nan64(x)
#define M_DIV(x, y) ((x) / (y))
#define M_NONZERO(x) ((x) != double(0))
#define M_SIGN(x) ((x) > double(0) ? double(1) : (x) < double(0) ? double(-1) : (x))
#define M_INF(x) b_is_inf64(x)
#define M_MIN(x, y) b_min64(x, y)
#define M_MAX(x, y) b_max64(x, y)
#define M_MOD(x, y) double(0)   /* refused by map_lower_program */
#define M_PYMOD(x, y) double(0)
#define M_TO_I64(x) b_to_i64_64(x)
#define M_TO_U64(x) b_to_u64_64(x)
#define M_TO_BITS(x) int64_t(packUint2x32(unpackDouble2x32(x)))
#define M_FROM_BITS(i) packDouble2x32(unpackUint2x32(uint64_t(i)))
#else
#define M_NAN(x) b_is_nan(x)
#define M_DIV(x, y) b_div(x, y)
#define M_NONZERO(x) b_is_nonzero(x)
#define M_SIGN(x) b_sign(x)
#define M_INF(x) b_is_inf(x)
#define M_MIN(x, y) b_min(x, y)
#define M_MAX(x, y) b_max(x, y)
#define M_MOD(x, y) b_mod(x, y)
#define M_PYMOD(x, y) b_pymod(x, y)
#define M_TO_I64(x) b_to_i64(x)
#define M_TO_U64(x) b_to_u64(x)
#define M_TO_BITS(x) int64_t(floatBitsToInt(x))
#define M_FROM_BITS(i) uintBitsToFloat(uint(i))
#define M_EXP(x) b_exp(x)
#define M_EXPM1(x) b_expm1(x)
#define M_LOG(x) b_log(x)
#define M_LOG1P(x) b_log1p(x)
#define M_SIN(x) b_sin(x)
#define M_COS(x) b_cos(x)
#define M_TAN(x) b_tan(x)
#define M_ASIN(x) b_asin(x)
#define M_ACOS(x) b_acos(x)
#define M_ATAN(x) b_atan(x)
#define M_SINH(x) b_sinh(x)
#define M_COSH(x) b_cosh(x)
#define M_TANH(x) b_tanh(x)
#define M_ASINH(x) b_asinh(x)
#define M_ACOSH(x) b_acosh(x)
#define M_ATANH(x) b_atanh(x)
#define M_ERF(x) b_erf(x)
#define M_POW(x, y) b_pow(x, y)
#define M_SIGMOID(x) b_sigmoid(x)
#define M_SOFTPLUS(x) b_softplus(x)
#endif

// Registers: 0..7 inputs, 8..15 immediates, 16..31 results. A register holds a real or an integer, as its writer and
// readers agree; the other half is dead.
real program_r[32];
int64_t program_i[32];

/* precise: a compiler that sees two instructions at once must not make sqrt(x) * sqrt(x) |x|, nor contract. */
void program_step(const uint word, const uint to) {
    uint a = (word >> 8) & 31u, b = (word >> 13) & 31u, c = (word >> 18) & 31u;
    real x = program_r[a], y = program_r[b], z = program_r[c];
    int64_t i = program_i[a], j = program_i[b], k = program_i[c];
    switch (word & 255u) {
#define TO_R(name, code, operands, text) case code: { precise real exact = (text); program_r[to] = exact; break; }
#define TO_I(name, code, operands, text) case code: program_i[to] = (text); break;
#define TO_TEST(name, code, operands, text) case code: program_i[to] = int64_t((text) ? 1 : 0); break;
        MAP_OPS_EXACT(TO_R)
#ifndef FLOAT64
        MAP_OPS_MATH(TO_R)
#endif
        MAP_OPS_TEST(TO_TEST)
        MAP_OPS_CAST_R(TO_R)
        MAP_OPS_CAST_I(TO_I)
        MAP_OPS_INT(TO_I)
    }
}

// Runs all instructions; the result is in program_r or program_i at the returned register (0 without instructions).
uint program_run() {
    uint last = 0u;
#define STEP(n)                          \
    if (PROGRAM_##n != 0u) {             \
        program_step(PROGRAM_##n, 16u + n); \
        last = 16u + n;                  \
    }
    STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7)
    STEP(8) STEP(9) STEP(10) STEP(11) STEP(12) STEP(13) STEP(14) STEP(15)
    return last;
}

// Loads input register `to` of the given type from memory.
void program_load(const uint to, uint64_t base, uint index, const uint type) {
    if (type_is_real(type)) program_r[to] = load_real(base, index, type);
    else program_i[to] = load_int(base, index, type);
}

struct epilogue_state {
    uint64_t base[EPILOGUE_INPUTS];
    int stride_row[EPILOGUE_INPUTS], stride_col[EPILOGUE_INPUTS];
    real immediates_f[8];
    int64_t immediates_i[8];
};

epilogue_state epilogue_begin(epilogue e, place p, uint batch) {
    epilogue_state s;
    uint outer = 0u, inner = batch;
    if (e.inner != 0u) {
        outer = batch / e.inner;
        inner = batch - outer * e.inner;
    }
#define OPERAND(n, type)                                                                                    \
    if (type != 0u) s.base[n] = operand_address(e.operands[n], p) +                                                         \
                uint64_t(int64_t(outer) * e.strides[4 * n] + int64_t(inner) * e.strides[4 * n + 1]) * type_bytes(type); \
    s.stride_row[n] = e.strides[4 * n + 2];                                                                 \
    s.stride_col[n] = e.strides[4 * n + 3];
    OPERAND(0, PROGRAM_TYPE_1)
    OPERAND(1, PROGRAM_TYPE_2)
    OPERAND(2, PROGRAM_TYPE_3)
    OPERAND(3, PROGRAM_TYPE_4)
#undef OPERAND
    [[unroll]] for (int n = 0; n < 8; n++) {
        s.immediates_f[n] = e.immediates_f[n];
        s.immediates_i[n] = e.immediates_i[n];
    }
    return s;
}

#ifndef FLOAT64
float epilogue_run(epilogue_state s, float value, uint row, uint col) {
    if (PROGRAM_0 == 0u) return value;
    program_r[0] = value;
#define OPERAND(n, type)                                                                                    \
    if (type != 0u)                                                                                         \
        program_load(1u + n, s.base[n], uint(int(row) * s.stride_row[n] + int(col) * s.stride_col[n]), type);
    OPERAND(0, PROGRAM_TYPE_1)
    OPERAND(1, PROGRAM_TYPE_2)
    OPERAND(2, PROGRAM_TYPE_3)
    OPERAND(3, PROGRAM_TYPE_4)
#undef OPERAND
#define IMMEDIATE(n)                           \
    program_r[8 + n] = s.immediates_f[n];      \
    program_i[8 + n] = s.immediates_i[n];
    IMMEDIATE(0) IMMEDIATE(1) IMMEDIATE(2) IMMEDIATE(3) IMMEDIATE(4) IMMEDIATE(5) IMMEDIATE(6) IMMEDIATE(7)
#undef IMMEDIATE
    return program_r[program_run()];
}
#endif
#endif
