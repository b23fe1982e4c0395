/*
 * map_ops.h: the opcodes of fusion programs, each written once. Included by C (ops/map.h: names; ops/map_eval.c:
 * interpreter in double) and by GLSL (lib/program.glsl: float, or double under FLOAT64).
 *
 * X(name, code, operands, text): `operands` names the register kinds that a, b, c are read as, f (real) or i (int64);
 * in the text they are x, y, z as reals and i, j, k as integers. `real` is the side's floating type, R(c) a constant of
 * it and M_*(x) its accurate functions. Unsigned 64-bit values are kept as wrapped int64, narrower ones as their value.
 *
 *     MAP_OPS_EXACT  reals -> real, correctly rounded or nearly; also on float64
 *     MAP_OPS_MATH   reals -> real with transcendentals; float32 only on a device
 *     MAP_OPS_TEST   reals -> 0 or 1
 *     MAP_OPS_CAST_R integers (and reals) -> real
 *     MAP_OPS_CAST_I reals -> integer
 *     MAP_OPS_INT    integers -> integer
 */
#ifndef BRAID_MAP_OPS_H
#define BRAID_MAP_OPS_H

#define MAP_OPS_EXACT(X)                                                                             \
    X(MOVE, 1, f, x)                                                                                 \
    X(ADD, 2, ff, x + y)                                                                             \
    X(SUB, 3, ff, x - y)                                                                             \
    X(MUL, 4, ff, x * y)                                                                             \
    X(DIV, 5, ff, M_DIV(x, y))                                                                       \
    X(NEG, 6, f, -x)                                                                                 \
    X(ABS, 7, f, M_ABS(x))                                                                           \
    X(SIGN, 8, f, M_SIGN(x))                                                                         \
    X(CEIL, 9, f, M_CEIL(x))                                                                         \
    X(FLOOR, 10, f, M_FLOOR(x))                                                                      \
    X(ROUND, 11, f, M_ROUND_EVEN(x))                                                                 \
    X(SQRT, 12, f, M_SQRT(x))                                                                        \
    X(RECIPROCAL, 13, f, M_DIV(R(1.0), x))                                                           \
    X(MIN, 14, ff, M_MIN(x, y))                                                                      \
    X(MAX, 15, ff, M_MAX(x, y))                                                                      \
    X(CLIP, 16, fff, M_MIN(M_MAX(x, y), z))                                                          \
    X(RELU, 17, f, x < R(0.0) ? R(0.0) : x)                                                          \
    X(LEAKY_RELU, 18, ff, x < R(0.0) ? x * y : x)                                                    \
    X(THRESHOLDED_RELU, 19, ff, x > y || M_NAN(x) ? x : R(0.0))                                      \
    X(HARD_SIGMOID, 20, fff, M_MIN(M_MAX(x * y + z, R(0.0)), R(1.0)))                                \
    X(HARD_SWISH, 21, f, x * M_MIN(M_MAX(x * (R(1.0) / R(6.0)) + R(0.5), R(0.0)), R(1.0)))           \
    X(SHRINK, 22, fff, x < -z ? x + y : x > z ? x - y : M_NAN(x) ? x : R(0.0))                       \
    X(SOFTSIGN, 23, f, M_DIV(x, R(1.0) + M_ABS(x)))                                                  \
    X(MOD, 24, ff, M_MOD(x, y))                                                                      \
    X(PYMOD, 25, ff, M_PYMOD(x, y))                                                                  \
    X(ROUND_FLOAT16, 26, f, M_ROUND_FLOAT16(x))                                                      \
    X(ROUND_BFLOAT16, 27, f, M_ROUND_BFLOAT16(x))                                                    \
    X(ROUND_FLOAT32, 28, f, M_ROUND_FLOAT32(x))                                                      \
    X(MUL_ADD, 29, fff, x * y + z)

#define MAP_OPS_MATH(X)                                                                              \
    X(EXP, 32, f, M_EXP(x))                                                                          \
    X(LOG, 33, f, M_LOG(x))                                                                          \
    X(SIN, 34, f, M_SIN(x))                                                                          \
    X(COS, 35, f, M_COS(x))                                                                          \
    X(TAN, 36, f, M_TAN(x))                                                                          \
    X(ASIN, 37, f, M_ASIN(x))                                                                        \
    X(ACOS, 38, f, M_ACOS(x))                                                                        \
    X(ATAN, 39, f, M_ATAN(x))                                                                        \
    X(SINH, 40, f, M_SINH(x))                                                                        \
    X(COSH, 41, f, M_COSH(x))                                                                        \
    X(TANH, 42, f, M_TANH(x))                                                                        \
    X(ASINH, 43, f, M_ASINH(x))                                                                      \
    X(ACOSH, 44, f, M_ACOSH(x))                                                                      \
    X(ATANH, 45, f, M_ATANH(x))                                                                      \
    X(ERF, 46, f, M_ERF(x))                                                                          \
    X(POW, 47, ff, M_POW(x, y))                                                                      \
    X(SIGMOID, 48, f, M_SIGMOID(x))                                                                  \
    X(SOFTPLUS, 49, f, M_SOFTPLUS(x))                                                                \
    X(ELU, 50, ff, x < R(0.0) ? y * M_EXPM1(x) : x)                                                  \
    X(CELU, 51, ff, x < R(0.0) ? y * M_EXPM1(M_DIV(x, y)) : x)                                       \
    X(SELU, 52, fff, z * (x > R(0.0) ? x : y * M_EXPM1(x)))                                          \
    X(GELU, 53, f, R(0.5) * x * (R(1.0) + M_ERF(x * R(0.70710678118654752))))                        \
    X(GELU_TANH, 54, f,                                                                              \
      R(0.5) * x * (R(1.0) + M_TANH(R(0.79788456080286536) * (x + R(0.044715) * x * x * x))))        \
    X(MISH, 55, f, x * M_TANH(M_SOFTPLUS(x)))                                                        \
    X(SWISH, 56, ff, x * M_SIGMOID(x * y))                                                           \
    X(EXPM1, 57, f, M_EXPM1(x))                                                                      \
    X(LOG1P, 58, f, M_LOG1P(x))

#define MAP_OPS_TEST(X)                                                                              \
    X(EQUAL, 64, ff, x == y)                                                                         \
    X(LESS, 65, ff, x < y)                                                                           \
    X(LESS_EQUAL, 66, ff, x <= y)                                                                    \
    X(GREATER, 67, ff, x > y)                                                                        \
    X(GREATER_EQUAL, 68, ff, x >= y)                                                                 \
    X(IS_NAN, 69, f, M_NAN(x))                                                                       \
    X(IS_INF, 70, f, M_INF(x))                                                                       \
    X(IS_INF_POSITIVE, 71, f, M_INF(x) && x > R(0.0))                                                \
    X(IS_INF_NEGATIVE, 72, f, M_INF(x) && x < R(0.0))                                                \
    X(TO_BOOL, 73, f, M_NONZERO(x))

#define MAP_OPS_CAST_R(X)                                                                            \
    X(FROM_I64, 80, i, TO_REAL(i))                                                                   \
    X(FROM_U64, 81, i, TO_REAL(TO_U64(i)))                                                           \
    X(SELECT, 82, iff, i != 0 ? y : z)                                                               \
    X(FROM_BITS, 83, i, M_FROM_BITS(i))

#define MAP_OPS_CAST_I(X)                                                                            \
    X(TO_I64, 88, f, M_TO_I64(x))                                                                    \
    X(TO_U64, 89, f, M_TO_U64(x))                                                                    \
    X(TO_BITS, 90, f, M_TO_BITS(x))

#define MAP_OPS_INT(X)                                                                               \
    X(I_MOVE, 96, i, i)                                                                              \
    X(I_ADD, 97, ii, TO_I64(TO_U64(i) + TO_U64(j)))                                                  \
    X(I_SUB, 98, ii, TO_I64(TO_U64(i) - TO_U64(j)))                                                  \
    X(I_MUL, 99, ii, TO_I64(TO_U64(i) * TO_U64(j)))                                                  \
    X(I_DIV, 100, ii, b_i_div(i, j))                                                                 \
    X(U_DIV, 101, ii, b_u_div(i, j))                                                                 \
    X(I_REM, 102, ii, b_i_rem(i, j))                                                                 \
    X(U_REM, 103, ii, b_u_rem(i, j))                                                                 \
    X(I_PYMOD, 104, ii, b_i_pymod(i, j))                                                             \
    X(I_POW, 105, ii, b_i_pow(i, j))                                                                 \
    X(I_NEG, 106, i, TO_I64(TO_U64(0) - TO_U64(i)))                                                  \
    X(I_ABS, 107, i, i < 0 ? TO_I64(TO_U64(0) - TO_U64(i)) : i)                                      \
    X(I_SIGN, 108, i, TO_I64(i > 0 ? 1 : i < 0 ? -1 : 0))                                            \
    X(U_SIGN, 109, i, TO_I64(i != 0 ? 1 : 0))                                                        \
    X(I_MIN, 110, ii, i < j ? i : j)                                                                 \
    X(I_MAX, 111, ii, i > j ? i : j)                                                                 \
    X(U_MIN, 112, ii, TO_U64(i) < TO_U64(j) ? i : j)                                                 \
    X(U_MAX, 113, ii, TO_U64(i) > TO_U64(j) ? i : j)                                                 \
    X(I_AND, 114, ii, i & j)                                                                         \
    X(I_OR, 115, ii, i | j)                                                                          \
    X(I_XOR, 116, ii, i ^ j)                                                                         \
    X(I_NOT, 117, i, ~i)                                                                             \
    X(SHL, 118, ii, b_shl(i, j))                                                                     \
    X(SHR, 119, ii, b_shr(i, j))                                                                     \
    X(I_EQUAL, 120, ii, TO_I64(i == j ? 1 : 0))                                                      \
    X(I_LESS, 121, ii, TO_I64(i < j ? 1 : 0))                                                        \
    X(I_LESS_EQUAL, 122, ii, TO_I64(i <= j ? 1 : 0))                                                 \
    X(I_GREATER, 123, ii, TO_I64(i > j ? 1 : 0))                                                     \
    X(I_GREATER_EQUAL, 124, ii, TO_I64(i >= j ? 1 : 0))                                              \
    X(U_LESS, 125, ii, TO_I64(TO_U64(i) < TO_U64(j) ? 1 : 0))                                        \
    X(U_LESS_EQUAL, 126, ii, TO_I64(TO_U64(i) <= TO_U64(j) ? 1 : 0))                                 \
    X(U_GREATER, 127, ii, TO_I64(TO_U64(i) > TO_U64(j) ? 1 : 0))                                     \
    X(U_GREATER_EQUAL, 128, ii, TO_I64(TO_U64(i) >= TO_U64(j) ? 1 : 0))                              \
    X(NOT, 129, i, TO_I64(i == 0 ? 1 : 0))                                                           \
    X(I_TO_BOOL, 130, i, TO_I64(i != 0 ? 1 : 0))                                                     \
    X(I_SELECT, 131, iii, i != 0 ? j : k)                                                            \
    X(WRAP_I8, 132, i, M_SIGN_EXTEND(i, 56))                                                         \
    X(WRAP_I16, 133, i, M_SIGN_EXTEND(i, 48))                                                        \
    X(WRAP_I32, 134, i, M_SIGN_EXTEND(i, 32))                                                        \
    X(WRAP_U8, 135, i, TO_I64(TO_U64(i) & TO_U64(0xffu)))                                            \
    X(WRAP_U16, 136, i, TO_I64(TO_U64(i) & TO_U64(0xffffu)))                                         \
    X(WRAP_U32, 137, i, TO_I64(TO_U64(i) & TO_U64(0xffffffffu)))                                     \
    X(I_CLIP, 138, iii, b_i_clip(i, j, k))                                                           \
    X(U_CLIP, 139, iii, b_u_clip(i, j, k))                                                           \
    X(I_RELU, 140, i, i < 0 ? i - i : i)                                                             \
    X(I_LEAKY_RELU, 141, ii, i < 0 ? TO_I64(TO_U64(i) * TO_U64(j)) : i)                              \
    X(SAR, 142, ii, b_sar(i, j))

#define M_SIGN_EXTEND(i, bits) (TO_I64(TO_U64(i) << (bits)) >> (bits))
#endif
