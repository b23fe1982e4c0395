// A strided copy: out[i] = in[index . stride]. See rows/move.h.
//! variant b1 -DELEM_BYTES=1
//! variant b2 -DELEM_BYTES=2
//! variant b4 -DELEM_BYTES=4
//! variant b8 -DELEM_BYTES=8
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "rows/move.h"
#include "lib/divide.h"
#include "lib/element.glsl"

layout(constant_id = MOVE_SPEC_RANK) const uint RANK = 1u;
layout(constant_id = MOVE_SPEC_UNIT) const uint UNIT = 1u;
layout(constant_id = MOVE_SPEC_ITEMS) const uint ITEMS = 1u;

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_move r; };

void main() {
    place p;
    if (!place_find(p)) return;
    row_ref row = row_ref(p.row);
    uint64_t source = operand_address(row.r.source, p), target = operand_address(row.r.target, p);
    bool wide = element_aligned(source, target);
    uint first = p.tile * gl_WorkGroupSize.x * ITEMS + gl_LocalInvocationID.x;
    uint count = row.r.count, in_at = row.r.in_at, out_at = row.r.out_at;
    for (uint item = 0u; item < ITEMS; item++) {
        uint rest = first + item * gl_WorkGroupSize.x;
        if (rest >= count) return;
        int from = int(in_at), to = int(out_at);
        for (uint k = 1u; k < RANK; k++) {
            uint d = MOVE_RANK - k, q = divide(rest, row.r.magic[d], row.r.shift[d]);
            int at = int(rest - q * row.r.dims[d]);
            if (k == 1u) at *= int(UNIT);
            from += at * row.r.in_stride[d];
            to += at * row.r.out_stride[d];
            rest = q;
        }
        const uint d = MOVE_RANK - RANK;
        int at = int(rest) * (RANK == 1u ? int(UNIT) : 1);
        from += at * row.r.in_stride[d];
        to += at * row.r.out_stride[d];
        ELEMENT_COPY(UNIT, wide, source, uint(from), target, uint(to))
    }
}
