// cell.glsl: one element of the type a kernel variant is built for (-DCELL_F32, _F16, _BF16, _I8, _U8), computed as
// float; or, with -DCELL_BITS=8, 16, 32 or 64, moved without looking at it.
//
//     float v = cell_get(address, i);        CELL c = cell_in(address).v[i];
//     cell_put(address, i, v);               cell_out(address).v[i] = c;
#ifndef CELL_GLSL
#define CELL_GLSL
#include "lib/math.h"

#if defined(CELL_F32)
#define CELL float
#define CELL_SIZE 4
float cell_decode(CELL c) { return c; }
CELL cell_encode(float v) { return v; }
#define CELL_LOWEST uintBitsToFloat(0xff800000u)
#elif defined(CELL_F16)
#define CELL uint16_t
#define CELL_SIZE 2
float cell_decode(CELL c) { return b_half_to_float(uint(c)); }
CELL cell_encode(float v) { return uint16_t(b_float_to_half(v)); }
#define CELL_LOWEST uintBitsToFloat(0xff800000u)
#elif defined(CELL_BF16)
#define CELL uint16_t
#define CELL_SIZE 2
float cell_decode(CELL c) { return b_bfloat_to_float(uint(c)); }
CELL cell_encode(float v) { return uint16_t(b_float_to_bfloat(v)); }
#define CELL_LOWEST uintBitsToFloat(0xff800000u)
#elif defined(CELL_I8)
#define CELL int8_t
#define CELL_SIZE 1
float cell_decode(CELL c) { return float(int(c)); }
CELL cell_encode(float v) { return int8_t(int(v)); }
#define CELL_LOWEST (-128.0)
#elif defined(CELL_U8)
#define CELL uint8_t
#define CELL_SIZE 1
float cell_decode(CELL c) { return float(uint(c)); }
CELL cell_encode(float v) { return uint8_t(uint(v)); }
#define CELL_LOWEST 0.0
#elif CELL_BITS == 8
#define CELL uint8_t
#define CELL_SIZE 1
#elif CELL_BITS == 16
#define CELL uint16_t
#define CELL_SIZE 2
#elif CELL_BITS == 32
#define CELL uint
#define CELL_SIZE 4
#elif CELL_BITS == 64
#define CELL uint64_t
#define CELL_SIZE 8
#endif

layout(buffer_reference, std430, buffer_reference_align = CELL_SIZE) readonly buffer cell_in { CELL v[]; };
layout(buffer_reference, std430, buffer_reference_align = CELL_SIZE) writeonly buffer cell_out { CELL v[]; };

#ifndef CELL_BITS
float cell_get(uint64_t address, uint i) { return cell_decode(cell_in(address).v[i]); }
void cell_put(uint64_t address, uint i, float v) { cell_out(address).v[i] = cell_encode(v); }
bool cell_is_nan(float v) { return (floatBitsToUint(v) & 0x7fffffffu) > 0x7f800000u; }
#endif
#endif
