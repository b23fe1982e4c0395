// GatherElements: one index for each output element. See rows/gather.h.
//! variant b1 -DELEM_BYTES=1
//! variant b2 -DELEM_BYTES=2
//! variant b4 -DELEM_BYTES=4
//! variant b8 -DELEM_BYTES=8
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "rows/gather.h"
#include "lib/divide.h"
#include "lib/element.glsl"

layout(constant_id = GATHER_EACH_SPEC_RANK) const uint RANK = 1u;
layout(constant_id = GATHER_SPEC_ITEMS) const uint ITEMS = 1u;
layout(constant_id = GATHER_SPEC_WIDE) const uint WIDE = 1u;

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_gather_each r; };

void main() {
    place p;
    if (!place_find(p)) return;
    row_ref row = row_ref(p.row);
    element_ref data = element_ref(operand_address(row.r.data, p));
    element_ref target = element_ref(operand_address(row.r.target, p));
    uint64_t index = operand_address(row.r.index, p);
    uint first = p.tile * gl_WorkGroupSize.x * ITEMS + gl_LocalInvocationID.x;
    bool bad = false;
    for (uint item = 0u; item < ITEMS; item++) {
        uint i = first + item * gl_WorkGroupSize.x;
        if (i >= row.r.count) break;
        uint from = index_read(index, i, WIDE != 0u, row.r.axis_dim, bad) * row.r.axis_stride, rest = i;
        for (uint k = 1u; k <= RANK; k++) {
            uint d = GATHER_RANK - k, q = divide(rest, row.r.magic[d], row.r.shift[d]);
            from += (rest - q * row.r.dims[d]) * row.r.strides[d];
            rest = q;
        }
        target.v[i] = data.v[from];
    }
    if (bad) place_fail(p);
}
