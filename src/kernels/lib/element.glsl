// element.glsl: elements of ELEM_BYTES bytes by address.
#ifndef ELEMENT_GLSL
#define ELEMENT_GLSL

#if ELEM_BYTES == 1
#define ELEM uint8_t
#elif ELEM_BYTES == 2
#define ELEM uint16_t
#elif ELEM_BYTES == 4
#define ELEM uint
#else
#define ELEM uint64_t
#endif

layout(buffer_reference, std430, buffer_reference_align = ELEM_BYTES) buffer element_ref { ELEM v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer vector_ref { uvec4 v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer index32_ref { int v[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer index64_ref { int64_t v[]; };

// May 16 bytes be moved at once: both tensors begin on 16 bytes. (Offsets of units are multiples of 16 bytes already.)
bool element_aligned(uint64_t a, uint64_t b) { return ((uint(a) | uint(b)) & 15u) == 0u; }

// Index i of an index tensor as a position in [0, dim); outside: clamped, and `bad` is set. dim is not 0.
uint index_read(uint64_t base, uint i, bool int64, uint dim, inout bool bad) {
    int64_t at = int64 ? index64_ref(base).v[i] : int64_t(index32_ref(base).v[i]);
    if (at < 0l) at += int64_t(dim);
    if (at < 0l || at >= int64_t(dim)) {
        bad = true;
        at = at < 0l ? 0l : int64_t(dim) - 1l;
    }
    return uint(at);
}
#endif
