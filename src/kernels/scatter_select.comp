// Each output unit is the data's or the winning update's. See rows/scatter.h.
//! variant b1 -DELEM_BYTES=1
//! variant b2 -DELEM_BYTES=2
//! variant b4 -DELEM_BYTES=4
//! variant b8 -DELEM_BYTES=8
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "rows/scatter.h"
#include "lib/divide.h"
#include "lib/element.glsl"

layout(constant_id = SCATTER_SPEC_ITEMS) const uint ITEMS = 1u;
layout(constant_id = SCATTER_SPEC_UNIT) const uint UNIT = 1u;

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_scatter_select r; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer winner_ref { uint v[]; };

void main() {
    place p;
    if (!place_find(p)) return;
    row_ref row = row_ref(p.row);
    uint64_t data = operand_address(row.r.data, p), updates = operand_address(row.r.updates, p);
    uint64_t target = operand_address(row.r.target, p);
    winner_ref winners = winner_ref(operand_address(row.r.winners, p));
    bool wide = element_aligned(data | updates, target);
    uint first = p.tile * gl_WorkGroupSize.x * ITEMS + gl_LocalInvocationID.x, slice = row.r.slice;
    for (uint item = 0u; item < ITEMS; item++) {
        uint i = first + item * gl_WorkGroupSize.x;
        if (i >= row.r.count) return;
        uint slot = divide(i, row.r.slice_magic, row.r.slice_shift), winner = winners.v[slot];
        uint64_t source = winner == 0u ? data : updates;
        uint from = winner == 0u ? i : (winner - 1u) * slice + (i - slot * slice);
        ELEMENT_COPY(UNIT, wide, source, from * UNIT, target, i * UNIT)
    }
}
