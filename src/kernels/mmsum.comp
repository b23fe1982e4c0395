#version 460
//! variant real
//! variant fused -DEPILOGUE
//! variant int -DINTEGER
//! variant f64 -DFLOAT64
// mmsum.comp: second step of a split product: adds the chunks' sums of mm in ascending order and finishes.
// tile = batch entry * tiles_m + block of group * TN elements of its m x n.
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "lib/mm.glsl"

layout(constant_id = 13) const uint TN = 4u; // elements of an invocation

const uint AHEAD = TN == 1u ? 8u : 4u; // chunks whose sums travel at once

void main() {
    place p;
    if (!place_find(p)) return;
    row_ref row = row_ref(p.row);
    uint entry = p.tile / row.r.tiles_m, block = p.tile % row.r.tiles_m, group = gl_WorkGroupSize.x;
    uint count = row.r.m * row.r.n, splits = row.r.splits;
    uint64_t pitch = uint64_t(row.r.batch[0] * row.r.batch[1] * row.r.batch[2]) * count * PARTIAL_BYTES;
    uint64_t from = operand_address(row.r.partial, p) + uint64_t(entry) * count * PARTIAL_BYTES;
    elem sums[TN];
    uint first = block * group * TN + gl_LocalInvocationIndex;
    [[unroll]] for (uint i = 0u; i < TN; i++) sums[i] = elem(0);
    for (uint j = 0u; j < splits; j += AHEAD) {
        elem parts[AHEAD * TN];
        [[unroll]] for (uint u = 0u; u < AHEAD; u++) {
            partial_ref chunk = partial_ref(from + uint64_t(min(j + u, splits - 1u)) * pitch);
            [[unroll]] for (uint i = 0u; i < TN; i++) parts[u * TN + i] = chunk.v[min(first + i * group, count - 1u)];
        }
        [[unroll]] for (uint u = 0u; u < AHEAD; u++)
            [[unroll]] for (uint i = 0u; i < TN; i++)
                if (j + u < splits) sums[i] += parts[u * TN + i];
    }
    finish_state s = finish_begin(row, p, entry);
    [[unroll]] for (uint i = 0u; i < TN; i++) { // all values before the first is stored: their loads run side by side
        uint at = min(first + i * group, count - 1u);
        sums[i] = finish_value(s, sums[i], at / row.r.n, at % row.r.n);
    }
    [[unroll]] for (uint i = 0u; i < TN; i++) {
        uint at = first + i * group;
        if (at < count) elem_store(s.out_base, at / row.r.n * s.out_m + at % row.r.n * s.out_n, sums[i]);
    }
}
