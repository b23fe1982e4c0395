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

layout(constant_id = GATHER_SPEC_DEPTH) const uint DEPTH = 1u;
layout(constant_id = GATHER_SPEC_UNIT) const uint UNIT = 1u;
layout(constant_id = GATHER_SPEC_ITEMS) const uint ITEMS = 1u;
layout(constant_id = GATHER_SPEC_WIDE) const uint WIDE = 1u;

#include "lib/batch.glsl"
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_gather r; };

// The unit of data that unit i of the output is.
uint find(row_ref row, uint64_t index, uint i, inout bool bad) {
    uint line = divide(i, row.r.slice_magic, row.r.slice_shift), slice = row.r.slice;
    uint batch = divide(line, row.r.rows_magic, row.r.rows_shift), tuple = line - batch * row.r.rows;
    uint from = batch * row.r.data_batch + (i - line * slice);
    uint at = batch * row.r.index_batch + tuple * DEPTH;
    for (uint k = 0u; k < DEPTH; k++)
        from += index_read(index, at + k, WIDE != 0u, row.r.dims[k], bad) * row.r.strides[k];
    return from;
}

void main() {
    place p;
    if (!place_find(p)) return;
    row_ref row = row_ref(p.row);
    uint64_t data = operand_address(row.r.data, p), target = operand_address(row.r.target, p);
    uint64_t index = operand_address(row.r.index, p);
    bool wide = element_aligned(data, target);
    bool bad = false;
    for (uint item = 0u; item < ITEMS; item += BATCH) {
        uint64_t from[BATCH], to[BATCH];
        [[unroll]] for (uint k = 0u; k < BATCH; k++) {
            uint i = batch_index(p.tile, item + k);
            to[k] = 0ul;
            if (k >= BATCH_USED || i >= row.r.count) continue;
            from[k] = element_at(data, find(row, index, i, bad) * UNIT);
            to[k] = element_at(target, i * UNIT);
        }
        batch_copy(wide, from, to);
    }
    if (bad) place_fail(p);
}
