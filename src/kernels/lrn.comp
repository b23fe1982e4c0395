#version 460
// lrn: x / (bias + scale * sum of squares over neighbouring channels) ^ beta (rows/lrn.h).
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "lib/type.glsl"
#include "rows/lrn.h"

layout(constant_id = SPEC_GROUP) const uint GROUP = 64u;
layout(constant_id = SPEC_TYPE_X) const uint TYPE_X = 1u;

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_lrn r; };

void main() {
    place p;
    if (!place_find(p)) return;
    row_ref row = row_ref(p.row);
    uint i = p.tile * GROUP + gl_LocalInvocationIndex;
    if (i >= row.r.elements) return;
    uint64_t x = operand_address(row.r.x, p);
    uint channels = row.r.channels, places = row.r.places, c = i / places % channels;
    uint first = c - min(c, row.r.low), last = c + min(channels - 1u - c, row.r.high);
    float sum = 0.0f;
    for (uint k = first; k <= last; k++) {
        float v = load_float(x, i - (c - k) * places, TYPE_X);
        sum += v * v;
    }
    float v = load_float(x, i, TYPE_X) / b_pow(row.r.bias + row.r.scale * sum, row.r.beta);
    store_float(operand_address(row.r.y, p), i, TYPE_X, v);
}
