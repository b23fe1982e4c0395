#version 460
//! variant real
//! variant fused -DEPILOGUE
//! variant int -DINTEGER
//! variant f64 -DFLOAT64
// mmsum.comp: second step of a split product: adds the chunks' sums of mm in ascending order and finishes.
// tile = batch entry * tiles_m + block of group * 4 elements of its m x n.
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "lib/mm.glsl"

void main() {
    place p;
    if (!place_find(p)) return;
    row_ref row = row_ref(p.row);
    uint entry = p.tile / row.r.tiles_m, block = p.tile % row.r.tiles_m, group = gl_WorkGroupSize.x;
    uint count = row.r.m * row.r.n, splits = row.r.splits;
    uint64_t pitch = uint64_t(row.r.batch[0] * row.r.batch[1] * row.r.batch[2]) * count * PARTIAL_BYTES;
    uint64_t from = operand_address(row.r.partial, p) + uint64_t(entry) * count * PARTIAL_BYTES;
    finish_state s = finish_begin(row, p, entry);
    elem sums[4];
    uint first = block * group * 4u + gl_LocalInvocationIndex;
    [[unroll]] for (uint i = 0u; i < 4u; i++) sums[i] = elem(0);
    for (uint j = 0u; j < splits; j++) {
        partial_ref chunk = partial_ref(from + uint64_t(j) * pitch);
        [[unroll]] for (uint i = 0u; i < 4u; i++)
            if (first + i * group < count) sums[i] += chunk.v[first + i * group];
    }
    [[unroll]] for (uint i = 0u; i < 4u; i++) {
        uint at = first + i * group;
        if (at < count) finish(s, sums[i], at / row.r.n, at % row.r.n);
    }
}
