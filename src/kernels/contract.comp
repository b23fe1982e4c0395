#version 460
//! variant real
//! variant int -DINTEGER
//! variant f64 -DFLOAT64
// contract.comp: general contraction of up to four operands (Einsum that is no batched product): transposes, diagonals,
// sums, products of several operands. An invocation computes one element; the sum runs in sequence, last label fastest.
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "lib/type.glsl"
#include "rows/contract.h"
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_contract r; };
layout(constant_id = 8) const uint TYPE = 1u;
layout(constant_id = 9) const uint INPUTS = 1u;

#if defined(INTEGER)
#define elem int64_t
elem fetch(uint64_t base, uint index) { return load_int(base, index, TYPE); }
elem mac(elem a, elem b, elem c) { return a * b + c; }
#else
#define elem real
elem fetch(uint64_t base, uint index) { return load_real(base, index, TYPE); }
elem mac(elem a, elem b, elem c) { return fma(a, b, c); }
#endif

void main() {
    place p;
    if (!place_find(p)) return;
    row_ref row = row_ref(p.row);
    uint i = p.tile * gl_WorkGroupSize.x + gl_LocalInvocationIndex;
    if (i >= row.r.count) return;
    uint64_t base[INPUTS];
    uint at[INPUTS];
    [[unroll]] for (uint n = 0u; n < INPUTS; n++) {
        base[n] = operand_address(row.r.in_[n], p);
        at[n] = 0u;
    }
    uint rest = i, terms = 1u;
    for (int l = CONTRACT_LABELS - 1; l >= 0; l--) {
        uint extent = row.r.out_extent[l], index = rest % extent;
        rest /= extent;
        [[unroll]] for (uint n = 0u; n < INPUTS; n++) at[n] += index * row.r.out_stride[CONTRACT_LABELS * n + l];
        terms *= row.r.sum_extent[l];
    }
    elem sum = elem(0);
    for (uint k = 0u; k < terms; k++) {
        uint where[INPUTS];
        [[unroll]] for (uint n = 0u; n < INPUTS; n++) where[n] = at[n];
        uint left = k;
        for (int l = CONTRACT_LABELS - 1; l >= 0 && left != 0u; l--) {
            uint extent = row.r.sum_extent[l], index = left % extent;
            left /= extent;
            [[unroll]] for (uint n = 0u; n < INPUTS; n++) where[n] += index * row.r.sum_stride[CONTRACT_LABELS * n + l];
        }
        elem v = fetch(base[0], where[0]);
        [[unroll]] for (uint n = 1u; n + 1u < INPUTS; n++) v *= fetch(base[n], where[n]);
        if (INPUTS > 1u) sum = mac(v, fetch(base[INPUTS - 1u], where[INPUTS - 1u]), sum);
        else sum += v;
    }
    uint64_t to = operand_address(row.r.result, p);
#if defined(INTEGER)
    store_int(to, i, TYPE, sum);
#else
    store_real(to, i, TYPE, sum);
#endif
}
