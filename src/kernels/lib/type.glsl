// type.glsl: elements in memory. `type` is a specialization constant (an ONNX element type number), so one branch stays.
// Floats load as float (double under FLOAT64) exactly and store rounded to nearest even; integers and bool load as
// int64 (uint64 wrapped) and store wrapped. Addresses need only element alignment.
#ifndef TYPE_GLSL
#define TYPE_GLSL
#include "lib/math.h"

#ifdef FLOAT64
#define real double
#else
#define real float
#endif

const uint TYPE_FLOAT32 = 1u, TYPE_UINT8 = 2u, TYPE_INT8 = 3u, TYPE_UINT16 = 4u, TYPE_INT16 = 5u, TYPE_INT32 = 6u,
           TYPE_INT64 = 7u, TYPE_BOOL = 9u, TYPE_FLOAT16 = 10u, TYPE_FLOAT64 = 11u, TYPE_UINT32 = 12u,
           TYPE_UINT64 = 13u, TYPE_BFLOAT16 = 16u;

layout(buffer_reference, std430, buffer_reference_align = 1) buffer memory_u8 { uint8_t v; };
layout(buffer_reference, std430, buffer_reference_align = 2) buffer memory_u16 { uint16_t v; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer memory_u32 { uint v; };
layout(buffer_reference, std430, buffer_reference_align = 8) buffer memory_u64 { uint64_t v; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer memory_u128 { uvec4 v; };

bool type_is_real(uint type) {
    return type == TYPE_FLOAT32 || type == TYPE_FLOAT16 || type == TYPE_BFLOAT16 || type == TYPE_FLOAT64;
}
uint type_bytes(uint type) {
    return type == TYPE_UINT8 || type == TYPE_INT8 || type == TYPE_BOOL ? 1u
           : type == TYPE_UINT16 || type == TYPE_INT16 || type == TYPE_FLOAT16 || type == TYPE_BFLOAT16 ? 2u
           : type == TYPE_INT64 || type == TYPE_UINT64 || type == TYPE_FLOAT64 ? 8u : 4u;
}

// Bits of element `index` of an array at `base`, and back.
uint64_t load_bits(uint64_t base, uint index, uint bytes) {
    uint64_t at = base + uint64_t(index) * bytes;
    if (bytes == 1u) return uint64_t(memory_u8(at).v);
    if (bytes == 2u) return uint64_t(memory_u16(at).v);
    if (bytes == 4u) return uint64_t(memory_u32(at).v);
    return memory_u64(at).v;
}
void store_bits(uint64_t base, uint index, uint bytes, uint64_t bits) {
    uint64_t at = base + uint64_t(index) * bytes;
    if (bytes == 1u) memory_u8(at).v = uint8_t(bits);
    else if (bytes == 2u) memory_u16(at).v = uint16_t(bits);
    else if (bytes == 4u) memory_u32(at).v = uint(bits);
    else memory_u64(at).v = bits;
}

real real_from_bits(uint64_t bits, uint type) {
#ifdef FLOAT64
    if (type == TYPE_FLOAT64) return packDouble2x32(uvec2(uint(bits), uint(bits >> 32)));
#endif
    uint low = uint(bits);
    if (type == TYPE_FLOAT16) return real(b_half_to_float(low));
    if (type == TYPE_BFLOAT16) return real(b_bfloat_to_float(low));
    return real(uintBitsToFloat(low));
}
uint64_t real_to_bits(real x, uint type) {
#ifdef FLOAT64
    if (type == TYPE_FLOAT64) {
        uvec2 word = unpackDouble2x32(x);
        return uint64_t(word.x) | uint64_t(word.y) << 32;
    }
#endif
    if (type == TYPE_FLOAT16) return uint64_t(b_float_to_half(float(x)));
    if (type == TYPE_BFLOAT16) return uint64_t(b_float_to_bfloat(float(x)));
    return uint64_t(floatBitsToUint(float(x)));
}
int64_t int_from_bits(uint64_t bits, uint type) {
    if (type == TYPE_INT8) return int64_t(bits << 56) >> 56;
    if (type == TYPE_INT16) return int64_t(bits << 48) >> 48;
    if (type == TYPE_INT32) return int64_t(int(uint(bits)));
    return int64_t(bits);
}

real load_real(uint64_t base, uint index, uint type) {
    return real_from_bits(load_bits(base, index, type_bytes(type)), type);
}
void store_real(uint64_t base, uint index, uint type, real x) {
    store_bits(base, index, type_bytes(type), real_to_bits(x, type));
}
#ifndef FLOAT64
float load_float(uint64_t base, uint index, uint type) { return load_real(base, index, type); }
void store_float(uint64_t base, uint index, uint type, float x) { store_real(base, index, type, x); }
#endif
int64_t load_int(uint64_t base, uint index, uint type) {
    return int_from_bits(load_bits(base, index, type_bytes(type)), type);
}
void store_int(uint64_t base, uint index, uint type, int64_t x) {
    store_bits(base, index, type_bytes(type), uint64_t(x));
}
#endif
