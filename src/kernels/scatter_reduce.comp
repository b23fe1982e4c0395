// Each output element takes its updates one after another, in the order of the updates. See rows/scatter.h.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "rows/scatter.h"
#include "lib/type.glsl"

layout(constant_id = SCATTER_SPEC_ITEMS) const uint ITEMS = 1u;
layout(constant_id = SCATTER_SPEC_RANK) const uint RANK = 0u;
layout(constant_id = SCATTER_SPEC_TYPE) const uint TYPE = 1u;
layout(constant_id = SCATTER_SPEC_HOW) const uint HOW = 1u;

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_scatter_reduce r; };

row_scatter_reduce r; // the row in registers: through the reference it would be read again after every store
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer slot_ref { uint v[]; };

bool is_nan(float x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }

float reduce_real(float a, float b) {
    if (HOW == 1u) return a + b;
    if (HOW == 2u) return a * b;
    if (is_nan(a) || is_nan(b)) return is_nan(a) ? a : b;
    if (HOW == 3u) return a > b ? a : b;
    return a < b ? a : b;
}

int64_t reduce_int(int64_t a, int64_t b) {
    bool less = TYPE == TYPE_UINT64 ? uint64_t(a) < uint64_t(b) : a < b;
    int64_t v;
    if (HOW == 1u) v = a + b;
    else if (HOW == 2u) v = a * b;
    else if (HOW == 3u) v = less ? b : a;
    else v = less ? a : b;
    if (TYPE == TYPE_BOOL) v = v != 0l ? 1l : 0l;
    return v;
}

/* Loading a narrow unsigned type gives its value, a signed one is extended; so both compare as int64. */
void main() {
    place p;
    if (!place_find(p)) return;
    r = row_ref(p.row).r;
    uint64_t data = operand_address(r.data, p), updates = operand_address(r.updates, p);
    uint64_t target = operand_address(r.target, p);
    slot_ref slots = slot_ref(operand_address(r.slots, p));
    uint first = p.tile * gl_WorkGroupSize.x * ITEMS + gl_LocalInvocationID.x, slice = r.slice;
    for (uint item = 0u; item < ITEMS; item++) {
        uint i = first + item * gl_WorkGroupSize.x;
        if (i >= r.count) return;
        uint slot = i / slice, within = i - slot * slice, base = 0u, rest = i, candidates = r.candidates;
        [[unroll]] for (uint k = 1u; k <= RANK; k++) {
            uint d = SCATTER_RANK - k, q = rest / r.dims[d], at = rest - q * r.dims[d];
            if (at >= r.limits[d]) candidates = 0u;
            base += at * r.strides[d];
            rest = q;
        }
        float real_sum = 0.0;
        int64_t int_sum = 0l;
        if (type_is_real(TYPE)) real_sum = load_float(data, i, TYPE);
        else int_sum = load_int(data, i, TYPE);
        for (uint k = 0u; k < candidates; k++) {
            uint t = base + k * r.candidate_stride;
            if (slots.v[t] != slot) continue;
            if (type_is_real(TYPE)) real_sum = reduce_real(real_sum, load_float(updates, t * slice + within, TYPE));
            else int_sum = reduce_int(int_sum, load_int(updates, t * slice + within, TYPE));
        }
        if (type_is_real(TYPE)) store_float(target, i, TYPE, real_sum);
        else store_int(target, i, TYPE, int_sum);
    }
}
