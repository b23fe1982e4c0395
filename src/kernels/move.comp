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

layout(constant_id = MOVE_SPEC_RANK) const uint RANK = 1u;
layout(constant_id = MOVE_SPEC_UNIT) const uint UNIT = 1u;
layout(constant_id = MOVE_SPEC_ITEMS) const uint ITEMS = 1u;

#include "lib/batch.glsl"
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_move r; };

row_move r; // the row in registers: through the reference it would be read again after every store

// Addresses of unit i on both sides.
void find(uint i, uint64_t source, uint64_t target, out uint64_t from, out uint64_t to) {
    uint rest = i;
    int in_at = int(r.in_at), out_at = int(r.out_at);
    [[unroll]] for (uint k = 1u; k < RANK; k++) {
        uint d = MOVE_RANK - k, q = divide(rest, r.magic[d], r.shift[d]);
        int at = int(rest - q * r.dims[d]) * (k == 1u ? int(UNIT) : 1);
        in_at += at * r.in_stride[d];
        out_at += at * r.out_stride[d];
        rest = q;
    }
    const uint d = MOVE_RANK - RANK;
    int at = int(rest) * (RANK == 1u ? int(UNIT) : 1);
    from = element_at(source, uint(in_at + at * r.in_stride[d]));
    to = element_at(target, uint(out_at + at * r.out_stride[d]));
}

void main() {
    place p;
    if (!place_find(p)) return;
    r = row_ref(p.row).r;
    uint64_t source = operand_address(r.source, p), target = operand_address(r.target, p);
    bool wide = element_aligned(source, target);
    for (uint item = 0u; item < ITEMS; item += BATCH) {
        uint64_t from[BATCH], to[BATCH];
        [[unroll]] for (uint k = 0u; k < BATCH; k++) {
            uint i = batch_index(p.tile, item + k);
            to[k] = 0ul;
            if (k < BATCH_USED && i < r.count) find(i, source, target, from[k], to[k]);
        }
        batch_copy(wide, from, to);
    }
}
