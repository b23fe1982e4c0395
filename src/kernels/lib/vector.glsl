// vector.glsl: four float elements at once, `base` aligned to four elements.
#ifndef VECTOR_GLSL
#define VECTOR_GLSL
#include "lib/type.glsl"

layout(buffer_reference, std430, buffer_reference_align = 16) buffer memory_f32x4 { vec4 v; };
layout(buffer_reference, std430, buffer_reference_align = 8) buffer memory_u32x2 { uvec2 v; };

vec4 load_float4(uint64_t base, uint index, uint type) {
    if (type == TYPE_FLOAT32) return memory_f32x4(base + uint64_t(index) * 4u).v;
    uvec2 w = memory_u32x2(base + uint64_t(index) * 2u).v;
    if (type == TYPE_BFLOAT16) return uintBitsToFloat(uvec4(w.x << 16, w.x & 0xffff0000u, w.y << 16, w.y & 0xffff0000u));
    return vec4(unpackHalf2x16(w.x), unpackHalf2x16(w.y));
}
void store_float4(uint64_t base, uint index, uint type, vec4 v) {
    if (type == TYPE_FLOAT32) {
        memory_f32x4(base + uint64_t(index) * 4u).v = v;
        return;
    }
    uvec4 w;
    if (type == TYPE_BFLOAT16)
        w = uvec4(b_float_to_bfloat(v.x), b_float_to_bfloat(v.y), b_float_to_bfloat(v.z), b_float_to_bfloat(v.w));
    else w = uvec4(b_float_to_half(v.x), b_float_to_half(v.y), b_float_to_half(v.z), b_float_to_half(v.w));
    memory_u32x2(base + uint64_t(index) * 2u).v = uvec2(w.x | w.y << 16, w.z | w.w << 16);
}
#endif
