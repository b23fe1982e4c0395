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

layout(constant_id = SCATTER_SPEC_ITEMS) const uint ITEMS = 1u;
layout(constant_id = SCATTER_SPEC_UNIT) const uint UNIT = 1u;

#include "lib/batch.glsl"
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_scatter_select r; };

row_scatter_select r; // the row in registers: through the reference it would be read again after every store
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer winner_ref { uint v[]; };

void main() {
    place p;
    if (!place_find(p)) return;
    r = row_ref(p.row).r;
    uint64_t data = operand_address(r.data, p), updates = operand_address(r.updates, p);
    uint64_t target = operand_address(r.target, p);
    winner_ref winners = winner_ref(operand_address(r.winners, p));
    bool wide = element_aligned(data | updates, target);
    for (uint item = 0u; item < ITEMS; item += BATCH) {
        uint64_t from[BATCH], to[BATCH];
        [[unroll]] for (uint k = 0u; k < BATCH; k++) {
            uint i = batch_index(p.tile, item + k);
            to[k] = 0ul;
            if (k >= BATCH_USED || i >= r.count) continue;
            uint slot = divide(i, r.slice_magic, r.slice_shift), winner = winners.v[slot];
            uint updated = (winner - 1u) * r.slice + (i - slot * r.slice);
            from[k] = winner == 0u ? element_at(data, i * UNIT) : element_at(updates, updated * UNIT);
            to[k] = element_at(target, i * UNIT);
        }
        batch_copy(wide, from, to);
    }
}
