// Which slot each update goes to. See rows/scatter.h.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "rows/scatter.h"
#define ELEM_BYTES 4
#include "lib/element.glsl"

layout(constant_id = SCATTER_SPEC_ITEMS) const uint ITEMS = 1u;
layout(constant_id = SCATTER_SPEC_WIDE) const uint WIDE = 1u;
layout(constant_id = SCATTER_SPEC_DEPTH) const uint DEPTH = 0u;
layout(constant_id = SCATTER_SPEC_RANK) const uint RANK = 1u;
layout(constant_id = SCATTER_SPEC_CLAIM) const uint CLAIM = 0u;

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_scatter_slots r; };

row_scatter_slots r; // the row in registers: through the reference it would be read again after every store

void main() {
    place p;
    if (!place_find(p)) return;
    r = row_ref(p.row).r;
    uint64_t index = operand_address(r.index, p);
    element_ref slots = element_ref(operand_address(r.slots, p));
    uint first = p.tile * gl_WorkGroupSize.x * ITEMS + gl_LocalInvocationID.x;
    bool bad = false;
    for (uint item = 0u; item < ITEMS; item++) {
        uint t = first + item * gl_WorkGroupSize.x, slot = 0u;
        if (t >= r.updates) break;
        for (uint k = 0u; k < DEPTH; k++)
            slot += index_read(index, t * DEPTH + k, WIDE != 0u, r.dims[k], bad) * r.strides[k];
        if (DEPTH == 0u) slot = index_read(index, t, WIDE != 0u, r.axis_dim, bad) * r.axis_stride;
        uint rest = t;
        [[unroll]] for (uint k = 1u; k <= RANK; k++) {
            uint d = SCATTER_RANK - k, q = rest / r.dims[d];
            slot += (rest - q * r.dims[d]) * r.strides[d];
            rest = q;
        }
        if (CLAIM != 0u) atomicMax(slots.v[slot], t + 1u);
        else slots.v[t] = slot;
    }
    if (bad) place_fail(p);
}
