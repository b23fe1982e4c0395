// mm.glsl: what the product kernels share: the row, element types, batch entries, finishing a sum.
//
// Order of sums. The host picks `chunk` from one lane's problem (m, n, k, batch), the type and the device's static
// traits. Every kernel honours it: elements of a chunk are added by fma in ascending k from zero, then the chunks' sums
// in ascending order. So lanes folded into m or n, the tile sizes and the number of workgroups change no bit.
//
// FOLD_N: problems (and images, the outermost batch dim) follow each other along n as one long product, B, C, bias and
// epilogue striding by them, A being shared. FOLD_M: the same along m, B being shared. The grid then has no z.
//
// Build variants: float32, float16 and bfloat16 in memory with float32 sums, without and with EPILOGUE (a module with a
// program takes longer to create); INTEGER: int32, int64, uint32, uint64, 64-bit wrapping sums; FLOAT64.
#ifndef MM_GLSL
#define MM_GLSL
#ifdef EPILOGUE
#include "lib/program.glsl"
#else
#include "lib/type.glsl"
#include "lib/epilogue.h"
#endif
#include "rows/mm.h"
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_mm r; };

layout(constant_id = 8) const uint TYPE = 1u;
layout(constant_id = 16) const uint MODE = 0u;     // MODE_*
layout(constant_id = 17) const uint KERNEL_D = 1u; // of a convolution
layout(constant_id = 18) const uint KERNEL_H = 1u;
layout(constant_id = 19) const uint KERNEL_W = 1u;
layout(constant_id = 22) const uint SWAP = 0u;     // m and n are exchanged: the epilogue's row is n
layout(constant_id = 23) const uint FOLD = 0u;     // FOLD_*
const uint FOLD_N = 1u;
const uint FOLD_M = 2u;
const uint MODE_WHOLE = 0u;   // one chunk
const uint MODE_CHUNKED = 1u; // the workgroup walks all chunks
const uint MODE_SPLIT = 2u;   // the workgroup sums one chunk into `partial`

#if defined(INTEGER)
#define elem int64_t
#define elem4 i64vec4
elem mac(elem a, elem b, elem c) { return a * b + c; }
elem elem_load(uint64_t base, uint index) { return load_int(base, index, TYPE); }
#elif defined(FLOAT64)
#define elem double
#define elem4 dvec4
elem mac(elem a, elem b, elem c) { return fma(a, b, c); }
elem elem_load(uint64_t base, uint index) { return load_real(base, index, TYPE); }
#else
#define elem float
#define elem4 vec4
elem mac(elem a, elem b, elem c) { return fma(a, b, c); }
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer memory_2u32 { uvec2 v; };
elem elem_load(uint64_t base, uint index) {
    if (TYPE == TYPE_FLOAT32) return uintBitsToFloat(memory_u32(base + uint64_t(index) * 4u).v);
    uint bits = uint(memory_u16(base + uint64_t(index) * 2u).v);
    return TYPE == TYPE_FLOAT16 ? unpackHalf2x16(bits).x : uintBitsToFloat(bits << 16);
}
#endif

#if defined(INTEGER) || defined(FLOAT64)
const uint PARTIAL_BYTES = 8u;
#else
const uint PARTIAL_BYTES = 4u;
#endif
layout(buffer_reference, std430, buffer_reference_align = 8) buffer partial_ref { elem v[]; };

// Four consecutive elements; base + index is aligned to four of them.
elem4 elem_load4(uint64_t base, uint index) {
#if defined(INTEGER) || defined(FLOAT64)
    return elem4(elem_load(base, index), elem_load(base, index + 1u), elem_load(base, index + 2u),
                 elem_load(base, index + 3u));
#else
    if (TYPE == TYPE_FLOAT32) return uintBitsToFloat(memory_u128(base + uint64_t(index) * 4u).v);
    uvec2 bits = memory_2u32(base + uint64_t(index) * 2u).v;
    if (TYPE == TYPE_FLOAT16) return vec4(unpackHalf2x16(bits.x), unpackHalf2x16(bits.y));
    return uintBitsToFloat(uvec4(bits.x << 16, bits.x & 0xffff0000u, bits.y << 16, bits.y & 0xffff0000u));
#endif
}

// Element offset of batch entry b in an operand with these batch strides.
uint64_t batch_offset(uint64_t strides[3], uint b, uint batch[3]) {
    if (b < batch[2]) return uint64_t(b) * strides[2];
    uint last = b % batch[2], rest = b / batch[2];
    return uint64_t(rest / batch[1]) * strides[0] + uint64_t(rest % batch[1]) * strides[1] + uint64_t(last) * strides[2];
}

// Where row or column `index` of a folded product belongs.
struct folded {
    place p;
    uint unit;  // problem * images + image
    uint entry; // of the batch
    uint at;    // row or column there
};
uint fold_size(row_ref row) { return FOLD == FOLD_N ? row.r.n : row.r.m; }
uint fold_total(row_ref row) { return fold_size(row) * row.r.images * place_problems(); }
folded fold_find(row_ref row, place p, uint entry, uint index) {
    uint size = fold_size(row), images = row.r.images;
    folded f;
    f.unit = index / size;
    f.at = index - f.unit * size;
    uint problem = images == 1u ? f.unit : f.unit / images;
    uint entries = row.r.batch[0] * row.r.batch[1] * row.r.batch[2] / images;
    f.entry = (f.unit - problem * images) * entries + entry;
    f.p = p;
    place_set_problem(f.p, problem);
    return f;
}

void elem_store(uint64_t base, uint index, elem v) {
#if defined(INTEGER)
    store_int(base, index, TYPE, v);
#else
    store_real(base, index, TYPE, v);
#endif
}

// Writing sums of batch entry b.
struct finish_state {
    uint64_t out_base, bias;
    uint out_m, out_n, bias_m, bias_n;
    elem alpha, beta;
    uint first_row; // epilogue row of m = 0
#ifdef EPILOGUE
    epilogue_state e;
#endif
};

finish_state finish_begin(row_ref row, place p, uint b) {
    finish_state s;
    s.out_base = operand_address(row.r.c, p) + batch_offset(row.r.c_batch, b, row.r.batch) * type_bytes(TYPE);
    s.bias = operand_address(row.r.bias, p);
    if (s.bias != 0ul) s.bias += batch_offset(row.r.bias_batch, b, row.r.batch) * type_bytes(TYPE);
    s.out_m = row.r.c_m;
    s.out_n = row.r.c_n;
    s.bias_m = row.r.bias_m;
    s.bias_n = row.r.bias_n;
    s.alpha = elem(row.r.alpha);
    s.beta = elem(row.r.beta);
#ifdef EPILOGUE
    s.e = epilogue_begin(row.r.e, p, b / row.r.groups);
    s.first_row = b % row.r.groups * (SWAP != 0u ? row.r.n : row.r.m);
#endif
    return s;
}

elem finish_value(finish_state s, elem sum, uint m, uint n) {
    precise elem v = s.alpha * sum;
    if (s.bias != 0ul) v = mac(s.beta, elem_load(s.bias, m * s.bias_m + n * s.bias_n), v);
#ifdef EPILOGUE
    return SWAP != 0u ? epilogue_run(s.e, v, s.first_row + n, m) : epilogue_run(s.e, v, s.first_row + m, n);
#else
    return v;
#endif
}

// Columns n .. n + 3 at once; out_n is 1 and the place aligned to four elements.
void finish4(finish_state s, elem4 sums, uint m, uint n) {
    elem4 v;
    [[unroll]] for (uint i = 0u; i < 4u; i++) v[i] = finish_value(s, sums[i], m, n + i);
    uint64_t at = s.out_base + uint64_t(m * s.out_m + n) * type_bytes(TYPE);
#if !defined(INTEGER) && !defined(FLOAT64)
    if (TYPE == TYPE_FLOAT32) {
        memory_u128(at).v = floatBitsToUint(v);
        return;
    }
#endif
    [[unroll]] for (uint i = 0u; i < 4u; i++) elem_store(at, i, v[i]);
}

void finish(finish_state s, elem sum, uint m, uint n) {
    elem v = finish_value(s, sum, m, n);
    uint at = m * s.out_m + n * s.out_n;
    elem_store(s.out_base, at, v);
}
#endif
