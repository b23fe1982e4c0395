#version 460
// probe: see rows/probe.h.
//! variant stream
//! variant fma -DFMA
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "rows/probe.h"

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_probe r; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer quads_ref { uvec4 quad[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer floats_ref { float value[]; };

#ifdef FMA
void main() {
    place p;
    if (!place_find(p)) return;
    row_probe r = row_ref(p.row).r;
    vec4 chains[PROBE_CHAINS / 4u];
    uint self = p.tile * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    [[unroll]] for (uint k = 0u; k < PROBE_CHAINS / 4u; k++)
        chains[k] = vec4(float(self), float(self + k), float(k), 1.0);
    for (uint i = 0u; i < r.loops; i++)
        [[unroll]] for (uint k = 0u; k < PROBE_CHAINS / 4u; k++) chains[k] = chains[k] * r.multiply + r.add;
    vec4 sum = vec4(0.0);
    [[unroll]] for (uint k = 0u; k < PROBE_CHAINS / 4u; k++) sum += chains[k];
    floats_ref(operand_address(r.to, p)).value[self] = sum.x + sum.y + sum.z + sum.w;
}
#else
void main() {
    place p;
    if (!place_find(p)) return;
    row_probe r = row_ref(p.row).r;
    quads_ref to = quads_ref(operand_address(r.to, p)), from = quads_ref(operand_address(r.from, p));
    uint first = p.tile * r.per_tile, end = min(r.n, first + r.per_tile);
    for (uint i = first + gl_LocalInvocationID.x; i < end; i += gl_WorkGroupSize.x) to.quad[i] = from.quad[i];
}
#endif
