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

layout(constant_id = PAD_SPEC_RANK) const uint RANK = 1u;
layout(constant_id = PAD_SPEC_UNIT) const uint UNIT = 1u;
layout(constant_id = PAD_SPEC_ITEMS) const uint ITEMS = 1u;
layout(constant_id = PAD_SPEC_MODE) const uint MODE = PAD_CONSTANT;

#include "lib/batch.glsl"
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_pad r; };

row_pad r; // the row in registers: through the reference it would be read again after every store

// Where index i of a padded axis comes from; n is not 0. % is defined for positive numbers only.
int source_index(int i, int n) {
    if (i >= 0 && i < n) return i;
    if (MODE == PAD_EDGE) return clamp(i, 0, n - 1);
    if (MODE == PAD_REFLECT) {
        int m = i < 0 ? -i : 2 * (n - 1) - i;
        if (m >= 0 && m < n) return m;
        if (n == 1) return 0;
    }
    int period = MODE == PAD_WRAP ? n : 2 * (n - 1);
    int m = i < 0 ? period - 1 - (-1 - i) % period : i % period;
    return m < n ? m : period - m;
}

// The element that unit i begins with; false in the constant part.
bool find(uint i, out uint from) {
    uint rest = i;
    from = r.in_at;
    bool inside = true;
    [[unroll]] for (uint k = 1u; k <= RANK; k++) {
        uint d = PAD_RANK - k, q = divide(rest, r.magic[d], r.shift[d]);
        int at = int(rest - q * r.dims[d]) - r.begin[d], n = int(r.in_dims[d]);
        if (MODE == PAD_CONSTANT) inside = inside && at >= 0 && at < n;
        else at = source_index(at, n);
        from += uint(at) * r.in_stride[d] * (k == 1u ? UNIT : 1u);
        rest = q;
    }
    return inside;
}

void main() {
    place p;
    if (!place_find(p)) return;
    r = row_ref(p.row).r;
    uint64_t source = operand_address(r.source, p), target = operand_address(r.target, p);
    uint64_t fill = operand_address(r.fill, p);
    ELEM constant = fill == 0ul ? ELEM(0) : element_ref(fill).v[0];
    bool wide = element_aligned(source, target);
    for (uint item = 0u; item < ITEMS; item += BATCH) {
        uint64_t from[BATCH], to[BATCH];
        [[unroll]] for (uint k = 0u; k < BATCH; k++) {
            uint i = batch_index(p.tile, item + k), at;
            to[k] = 0ul;
            if (k >= BATCH_USED || i >= r.count) continue;
            if (find(i, at)) {
                from[k] = element_at(source, at);
                to[k] = element_at(target, i * UNIT);
            } else {
                for (uint e = 0u; e < UNIT; e++) element_ref(target).v[i * UNIT + e] = constant;
            }
        }
        batch_copy(wide, from, to);
    }
}
