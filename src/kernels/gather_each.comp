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

layout(constant_id = GATHER_EACH_SPEC_RANK) const uint RANK = 1u;
layout(constant_id = GATHER_SPEC_ITEMS) const uint ITEMS = 1u;
const uint UNIT = 1u;
layout(constant_id = GATHER_SPEC_WIDE) const uint WIDE = 1u;

#include "lib/batch.glsl"
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_gather_each r; };

row_gather_each r; // the row in registers: through the reference it would be read again after every store

// The element of data that element i of the output is.
uint find(uint64_t index, uint i, inout bool bad) {
    uint from = index_read(index, i, WIDE != 0u, r.axis_dim, bad) * r.axis_stride, rest = i;
    [[unroll]] for (uint k = 1u; k <= RANK; k++) {
        uint d = GATHER_RANK - k, q = divide(rest, r.magic[d], r.shift[d]);
        from += (rest - q * r.dims[d]) * r.strides[d];
        rest = q;
    }
    return from;
}

void main() {
    place p;
    if (!place_find(p)) return;
    r = row_ref(p.row).r;
    uint64_t data = operand_address(r.data, p), target = operand_address(r.target, p);
    uint64_t index = operand_address(r.index, p);
    bool bad = false;
    for (uint item = 0u; item < ITEMS; item += BATCH) {
        uint64_t from[BATCH], to[BATCH];
        [[unroll]] for (uint k = 0u; k < BATCH; k++) {
            uint i = batch_index(p.tile, item + k);
            to[k] = 0ul;
            if (k >= BATCH_USED || i >= r.count) continue;
            from[k] = element_at(data, find(index, i, bad));
            to[k] = element_at(target, i);
        }
        batch_copy(false, from, to);
    }
    if (bad) place_fail(p);
}
