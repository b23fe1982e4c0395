// Pad: each output index is mapped to an input index, axis by axis. See rows/pad.h.
//! variant b1 -DELEM_BYTES=1
//! variant b2 -DELEM_BYTES=2
//! variant b4 -DELEM_BYTES=4
//! variant b8 -DELEM_BYTES=8
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "rows/pad.h"
#include "lib/divide.h"
#include "lib/element.glsl"

layout(constant_id = PAD_SPEC_RANK) const uint RANK = 1u;
layout(constant_id = PAD_SPEC_UNIT) const uint UNIT = 1u;
layout(constant_id = PAD_SPEC_ITEMS) const uint ITEMS = 1u;
layout(constant_id = PAD_SPEC_MODE) const uint MODE = PAD_CONSTANT;

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_pad r; };

// Where index i of a padded axis comes from; n is not 0.
int source_index(int i, int n) {
    if (MODE == PAD_EDGE) return clamp(i, 0, n - 1);
    if (MODE == PAD_REFLECT && n == 1) return 0;
    int period = MODE == PAD_WRAP ? n : 2 * (n - 1);
    int m = i < 0 ? period - 1 - (-1 - i) % period : i % period; // % is defined for positive numbers only
    return m < n ? m : period - m;
}

void main() {
    place p;
    if (!place_find(p)) return;
    row_ref row = row_ref(p.row);
    uint64_t source = operand_address(row.r.source, p), target = operand_address(row.r.target, p);
    uint64_t fill = operand_address(row.r.fill, p);
    ELEM value = fill == 0ul ? ELEM(0) : element_ref(fill).v[0];
    bool wide = element_aligned(source, target);
    uint first = p.tile * gl_WorkGroupSize.x * ITEMS + gl_LocalInvocationID.x;
    for (uint item = 0u; item < ITEMS; item++) {
        uint i = first + item * gl_WorkGroupSize.x, rest = i, from = row.r.in_at;
        if (i >= row.r.count) return;
        bool inside = true;
        for (uint k = 1u; k <= RANK; k++) {
            uint d = PAD_RANK - k, q = divide(rest, row.r.magic[d], row.r.shift[d]);
            int at = int(rest - q * row.r.dims[d]) - row.r.begin[d], n = int(row.r.in_dims[d]);
            if (MODE == PAD_CONSTANT) inside = inside && at >= 0 && at < n;
            else at = source_index(at, n);
            from += uint(at) * row.r.in_stride[d] * (k == 1u ? UNIT : 1u);
            rest = q;
        }
        if (inside) {
            ELEMENT_COPY(UNIT, wide, source, from, target, i * UNIT)
        } else {
            for (uint k = 0u; k < UNIT; k++) element_ref(target).v[i * UNIT + k] = value;
        }
    }
}
