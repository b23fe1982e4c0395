// Gather and GatherND: slices picked by index tuples. See rows/gather.h.
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

layout(constant_id = GATHER_SPEC_DEPTH) const uint DEPTH = 1u;
layout(constant_id = GATHER_SPEC_UNIT) const uint UNIT = 1u;
layout(constant_id = GATHER_SPEC_ITEMS) const uint ITEMS = 1u;
layout(constant_id = GATHER_SPEC_WIDE) const uint WIDE = 1u;

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_gather r; };

void main() {
    place p;
    if (!place_find(p)) return;
    row_ref row = row_ref(p.row);
    uint64_t data = operand_address(row.r.data, p), target = operand_address(row.r.target, p);
    uint64_t index = operand_address(row.r.index, p);
    bool wide = element_aligned(data, target);
    uint first = p.tile * gl_WorkGroupSize.x * ITEMS + gl_LocalInvocationID.x;
    uint count = row.r.count, slice = row.r.slice, rows = row.r.rows;
    bool bad = false;
    for (uint item = 0u; item < ITEMS; item++) {
        uint i = first + item * gl_WorkGroupSize.x;
        if (i >= count) break;
        uint line = divide(i, row.r.slice_magic, row.r.slice_shift);
        uint batch = divide(line, row.r.rows_magic, row.r.rows_shift), tuple = line - batch * rows;
        uint from = batch * row.r.data_batch + (i - line * slice);
        uint at = batch * row.r.index_batch + tuple * DEPTH;
        for (uint k = 0u; k < DEPTH; k++)
            from += index_read(index, at + k, WIDE != 0u, row.r.dims[k], bad) * row.r.strides[k];
        ELEMENT_COPY(UNIT, wide, data, from * UNIT, target, i * UNIT)
    }
    if (bad) place_fail(p);
}
