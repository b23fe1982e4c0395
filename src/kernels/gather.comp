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

row_gather r; // the row in registers: through the reference it would be read again after every store

// The unit of data that unit i of the output is.
uint find(uint64_t index, uint i, inout bool bad) {
    uint line = divide(i, r.slice_magic, r.slice_shift), slice = r.slice;
    uint batch = divide(line, r.rows_magic, r.rows_shift), tuple = line - batch * r.rows;
    uint from = batch * r.data_batch + (i - line * slice);
    uint at = batch * r.index_batch + tuple * DEPTH;
    [[unroll]] for (uint k = 0u; k < DEPTH; k++)
        from += index_read(index, at + k, WIDE != 0u, r.dims[k], bad) * r.strides[k];
    return from;
}

void main() {
    place p;
    if (!place_find(p)) return;
    r = row_ref(p.row).r;
    uint64_t data = operand_address(r.data, p), target = operand_address(r.target, p);
    uint64_t index = operand_address(r.index, p);
    bool wide = element_aligned(data, target);
    bool bad = false;
    for (uint item = 0u; item < ITEMS; item += BATCH) {
        uint64_t from[BATCH], to[BATCH];
        [[unroll]] for (uint k = 0u; k < BATCH; k++) {
            uint i = batch_index(p.tile, item + k);
            to[k] = 0ul;
            if (k >= BATCH_USED || i >= r.count) continue;
            from[k] = element_at(data, find(index, i, bad) * UNIT);
            to[k] = element_at(target, i * UNIT);
        }
        batch_copy(wide, from, to);
    }
    if (bad) place_fail(p);
}
