#version 460
#extension GL_GOOGLE_include_directive : require
//! variant f32
//! variant f64 -DFLOAT64
// map: elementwise programs with broadcasting. An invocation takes CHUNKS chunks of WIDTH neighbouring outputs.
#include "lib/abi.glsl"
#include "lib/program.glsl"
#include "rows/map.h"

layout(constant_id = 8) const uint WIDTH = 4u;   // outputs per chunk: 1, 4, 8
layout(constant_id = 9) const uint CHUNKS = 1u;
layout(constant_id = 10) const uint RESULT_TYPE = 1u;
layout(constant_id = 11) const uint RANK = 1u;   // collapsed dims
layout(constant_id = 12) const uint INNER = 0u;  // 1: WIDTH divides the last dim, so a chunk lies in one line
#define SPEC_KIND(n) layout(constant_id = 16 + n) const uint KIND_##n = 0u;
SPEC_KIND(0) SPEC_KIND(1) SPEC_KIND(2) SPEC_KIND(3) SPEC_KIND(4) SPEC_KIND(5) SPEC_KIND(6) SPEC_KIND(7)

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_map r; };

uint map_words[8][16]; // bits of a chunk of each input, packed
uint out_words[16];

uint64_t word_bits(uint input_, uint e, uint bytes) {
    if (bytes == 1u) return uint64_t((map_words[input_][e >> 2] >> (8u * (e & 3u))) & 0xffu);
    if (bytes == 2u) return uint64_t((map_words[input_][e >> 1] >> (16u * (e & 1u))) & 0xffffu);
    if (bytes == 4u) return uint64_t(map_words[input_][e]);
    return uint64_t(map_words[input_][2u * e]) | uint64_t(map_words[input_][2u * e + 1u]) << 32;
}
void put_bits(uint input_, uint e, uint bytes, uint64_t bits) {
    if (bytes == 8u) {
        map_words[input_][2u * e] = uint(bits);
        map_words[input_][2u * e + 1u] = uint(bits >> 32);
    } else if (bytes == 4u) map_words[input_][e] = uint(bits);
    else {
        uint per = 4u / bytes, shift = 8u * bytes * (e % per);
        if (shift == 0u) map_words[input_][e / per] = uint(bits);
        else map_words[input_][e / per] |= uint(bits) << shift;
    }
}
void put_out(uint e, uint bytes, uint64_t bits) {
    if (bytes == 8u) {
        out_words[2u * e] = uint(bits);
        out_words[2u * e + 1u] = uint(bits >> 32);
    } else if (bytes == 4u) out_words[e] = uint(bits);
    else {
        uint per = 4u / bytes, shift = 8u * bytes * (e % per);
        uint low = uint(bits) & (bytes == 1u ? 0xffu : 0xffffu);
        if (shift == 0u) out_words[e / per] = low;
        else out_words[e / per] |= low << shift;
    }
}
uint64_t out_bits(uint e, uint bytes) {
    if (bytes == 1u) return uint64_t((out_words[e >> 2] >> (8u * (e & 3u))) & 0xffu);
    if (bytes == 2u) return uint64_t((out_words[e >> 1] >> (16u * (e & 1u))) & 0xffffu);
    if (bytes == 4u) return uint64_t(out_words[e]);
    return uint64_t(out_words[2u * e]) | uint64_t(out_words[2u * e + 1u]) << 32;
}

// WIDTH elements from `at`, which is aligned to their size together (at most 16 bytes).
void load_wide(uint input_, uint64_t at, uint bytes) {
    uint total = WIDTH * bytes;
    if (total == 4u) map_words[input_][0] = memory_u32(at).v;
    else if (total == 8u) {
        uint64_t v = memory_u64(at).v;
        map_words[input_][0] = uint(v);
        map_words[input_][1] = uint(v >> 32);
    } else {
        [[unroll]] for (uint q = 0u; q < total / 16u; q++) {
            uvec4 v = memory_u128(at + uint64_t(16u * q)).v;
            map_words[input_][4u * q] = v.x;
            map_words[input_][4u * q + 1u] = v.y;
            map_words[input_][4u * q + 2u] = v.z;
            map_words[input_][4u * q + 3u] = v.w;
        }
    }
}
void store_wide(uint64_t at, uint bytes) {
    uint total = WIDTH * bytes;
    if (total == 4u) memory_u32(at).v = out_words[0];
    else if (total == 8u) memory_u64(at).v = uint64_t(out_words[0]) | uint64_t(out_words[1]) << 32;
    else {
        [[unroll]] for (uint q = 0u; q < total / 16u; q++)
            memory_u128(at + uint64_t(16u * q)).v =
                uvec4(out_words[4u * q], out_words[4u * q + 1u], out_words[4u * q + 2u], out_words[4u * q + 3u]);
    }
}
bool wide_aligned(uint64_t base, uint bytes) {
    return (uint(base) & (min(16u, WIDTH * bytes) - 1u)) == 0u;
}

// Element offset of output element `at` in input n.
int strided_index(row_ref row, uint n, uint at) {
    int index = 0;
    [[unroll]] for (uint d = 7u; d > 8u - RANK; d--) {
        uint q = at / row.r.dims[d];
        index += int(at - q * row.r.dims[d]) * row.r.strides[8u * n + d];
        at = q;
    }
    return index + int(at) * row.r.strides[8u * n + 8u - RANK];
}

void load_input(row_ref row, const uint n, uint64_t base, const uint kind, const uint type, uint at, uint valid) {
    uint bytes = type_bytes(type);
    if (kind == MAP_DENSE) {
        if (WIDTH > 1u && valid == WIDTH && wide_aligned(base, bytes)) load_wide(n, base + uint64_t(at) * bytes, bytes);
        else [[unroll]] for (uint e = 0u; e < WIDTH; e++)
            put_bits(n, e, bytes, e < valid ? load_bits(base, at + e, bytes) : 0ul);
    } else if (kind == MAP_LINE) {
        uint index = uint(strided_index(row, n, at));
        if (wide_aligned(base, bytes)) load_wide(n, base + uint64_t(index) * bytes, bytes);
        else [[unroll]] for (uint e = 0u; e < WIDTH; e++) put_bits(n, e, bytes, load_bits(base, index + e, bytes));
    } else if (kind == MAP_UNIFORM) {
        put_bits(n, 0u, bytes, load_bits(base, uint(strided_index(row, n, at)), bytes));
    } else if (kind == MAP_STRIDED) {
        [[unroll]] for (uint e = 0u; e < WIDTH; e++)
            put_bits(n, e, bytes, e < valid ? load_bits(base, uint(strided_index(row, n, at + e)), bytes) : 0ul);
    }
}
void set_register(const uint n, const uint kind, const uint type, uint e) {
    if (kind == MAP_ABSENT) return;
    uint64_t bits = word_bits(n, kind == MAP_UNIFORM || kind == MAP_SCALAR ? 0u : e, type_bytes(type));
    if (type_is_real(type)) program_r[n] = real_from_bits(bits, type);
    else program_i[n] = int_from_bits(bits, type);
}

#ifdef FLOAT64
#define IMMEDIATE_REAL(n) real_from_bits(row.r.immediates_d[n], TYPE_FLOAT64)
#else
#define IMMEDIATE_REAL(n) row.r.immediates_f[n]
#endif
#define EACH_INPUT(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)

void main() {
    place p;
    if (!place_find(p)) return;
    row_ref row = row_ref(p.row);
    uint64_t out_base = operand_address(row.r.result, p);
    uint out_bytes = type_bytes(RESULT_TYPE), count = row.r.count;
    uint64_t base[8];
#define BEGIN_INPUT(n)                                                                                       \
    base[n] = 0ul;                                                                                           \
    if (KIND_##n != MAP_ABSENT) base[n] = operand_address(row.r.in_[n], p);                                   \
    if (KIND_##n == MAP_SCALAR)                                                                              \
        put_bits(n, 0u, type_bytes(PROGRAM_TYPE_##n), load_bits(base[n], 0u, type_bytes(PROGRAM_TYPE_##n))); \
    program_r[8 + n] = IMMEDIATE_REAL(n);                                                                    \
    program_i[8 + n] = row.r.immediates_i[n];
    EACH_INPUT(BEGIN_INPUT)

    for (uint c = 0u; c < CHUNKS; c++) {
        uint at = ((p.tile * CHUNKS + c) * gl_WorkGroupSize.x + gl_LocalInvocationIndex) * WIDTH;
        if (at >= count) return;
        uint valid = min(WIDTH, count - at);
#define LOAD_INPUT(n) load_input(row, n, base[n], KIND_##n, PROGRAM_TYPE_##n, at, valid);
        EACH_INPUT(LOAD_INPUT)
        [[unroll]] for (uint e = 0u; e < WIDTH; e++) {
#define SET_REGISTER(n) set_register(n, KIND_##n, PROGRAM_TYPE_##n, e);
            EACH_INPUT(SET_REGISTER)
            uint last = program_run();
            if (type_is_real(RESULT_TYPE)) put_out(e, out_bytes, real_to_bits(program_r[last], RESULT_TYPE));
            else put_out(e, out_bytes, uint64_t(program_i[last]));
        }
        if (WIDTH > 1u && valid == WIDTH && wide_aligned(out_base, out_bytes))
            store_wide(out_base + uint64_t(at) * out_bytes, out_bytes);
        else [[unroll]] for (uint e = 0u; e < WIDTH; e++)
            if (e < valid) store_bits(out_base, at + e, out_bytes, out_bits(e, out_bytes));
    }
}
