// flat.glsl: kernels that compute independent outputs. A tile is FLAT_PER groups of outputs, each invocation's a group
// apart, so that neighbours touch neighbouring addresses.
//
//     FLAT_FOR(o, row.r.outputs, p) { ... output o ... }
#ifndef FLAT_GLSL
#define FLAT_GLSL
layout(constant_id = 8) const uint FLAT_PER = 1;
#define FLAT_FOR(o, count, p)                                                                                  \
    for (uint flat_i = 0u, o = p.tile * FLAT_PER * gl_WorkGroupSize.x + gl_LocalInvocationID.x;                \
         flat_i < FLAT_PER && o < (count); flat_i++, o += gl_WorkGroupSize.x)
#endif
