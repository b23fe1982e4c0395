#version 460
// MaxUnpool in three passes: clear the marks, mark every place with the last element that goes there, take the elements.
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "lib/flat.glsl"
#include "lib/type.glsl"
#include "rows/unpool.h"

layout(constant_id = 9) const uint PASS = 0;
layout(constant_id = 10) const uint BYTES = 4;

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_unpool r; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer mark_ref { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer index_ref { int64_t v[]; };

// Place of output o among the marks; false where the output only pads.
bool place_of(row_ref row, uint o, out uint at) {
    uint stride = 1u;
    at = 0u;
    for (int d = UNPOOL_RANK - 1; d >= 0; d--) {
        uint i = o % row.r.outer[d];
        if (i >= row.r.inner[d]) return false;
        at += i * stride;
        stride *= row.r.inner[d];
        o /= row.r.outer[d];
    }
    return true;
}

void main() {
    place p;
    if (!place_find(p)) return;
    row_ref row = row_ref(p.row);
    uint64_t x = operand_address(row.r.x, p), y = operand_address(row.r.y, p);
    index_ref index = index_ref(operand_address(row.r.index, p));
    mark_ref marks = mark_ref(operand_address(row.r.marks, p));
    FLAT_FOR(o, row.r.outputs, p) {
        if (PASS == UNPOOL_CLEAR) {
            marks.v[o] = 0u;
        } else if (PASS == UNPOOL_MARK) {
            int64_t at = index.v[o];
            if (at < 0l || at >= int64_t(row.r.room)) place_fail(p);
            else atomicMax(marks.v[uint(at)], o + 1u);
        } else {
            uint at, from = 0u;
            if (place_of(row, o, at)) from = marks.v[at];
            uint64_t v = 0ul;
            if (from > 0u) v = load_bits(x, from - 1u, BYTES);
            store_bits(y, o, BYTES, v);
        }
    }
}
