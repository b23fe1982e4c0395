// team.glsl: teams of invocations that solve one row each (lib/rows.h), and sums over a team in a fixed order.
#ifndef TEAM_GLSL
#define TEAM_GLSL
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "lib/rows.h"

layout(constant_id = SPEC_GROUP) const uint GROUP = 64u;
layout(constant_id = SPEC_SUBGROUP) const uint SUBGROUP = 32u;
layout(constant_id = SPEC_TEAM) const uint TEAM = 32u;
layout(constant_id = SPEC_LAYOUT) const uint ADJACENT = 1u;
layout(constant_id = SPEC_KEEP) const uint KEEP = 1u;
layout(constant_id = SPEC_REDUCE) const uint REDUCE = 1u;
layout(constant_id = SPEC_VALUES) const uint VALUES = 4u;
layout(constant_id = SPEC_VECTOR) const uint VECTOR = 0u;
const uint COLS = GROUP / TEAM;
const uint TEAM_SUBGROUPS = TEAM > SUBGROUP ? TEAM / SUBGROUP : 1u; // per team, adjacent layout
const uint SPAN = TEAM < SUBGROUP ? TEAM : SUBGROUP;                // invocations that shuffle

// The workgroup's invocation number, in subgroup order.
uint team_id() { return gl_SubgroupID * SUBGROUP + gl_SubgroupInvocationID; }
uint team_column() { return ADJACENT == 1u ? team_id() / TEAM : team_id() % COLS; }
uint team_member() { return ADJACENT == 1u ? team_id() % TEAM : team_id() / COLS; }

// Defines T name(T v): combines the values of the team's members; every member gets the result. `pool` is a shared array
// of GROUP values. combine(a, b) must not depend on the order of a and b in any bit. All invocations must come here.
#define TEAM_FUNCTION(name, T, pool, shuffle, combine)                                                        \
    T name(T v) {                                                                                             \
        uint id = team_id();                                                                                  \
        if (ADJACENT == 1u) {                                                                                 \
            for (uint m = 1u; m < SPAN; m <<= 1u) v = combine(v, shuffle(v, m));                              \
            if (TEAM_SUBGROUPS > 1u) {                                                                        \
                barrier();                                                                                    \
                if (gl_SubgroupInvocationID == 0u) pool[gl_SubgroupID] = v;                                   \
                barrier();                                                                                    \
                uint first = id / TEAM * TEAM_SUBGROUPS;                                                      \
                v = pool[first];                                                                              \
                for (uint i = 1u; i < TEAM_SUBGROUPS; i++) v = combine(v, pool[first + i]);                   \
            }                                                                                                 \
        } else if (TEAM > 1u) {                                                                               \
            barrier();                                                                                        \
            pool[id] = v;                                                                                     \
            for (uint half_team = TEAM / 2u; half_team > 0u; half_team /= 2u) {                               \
                barrier();                                                                                    \
                if (id / COLS < half_team) pool[id] = combine(pool[id], pool[id + half_team * COLS]);         \
            }                                                                                                 \
            barrier();                                                                                        \
            v = pool[id % COLS];                                                                              \
        }                                                                                                     \
        return v;                                                                                             \
    }

// Offset in elements of row `row`, and of element `k` within a row.
uint64_t rows_keep(rows_view v, uint row) {
    uint64_t at = 0ul;
    [[unroll]] for (int d = ROWS_AXES - 1; d > 0; d--) {
        if (uint(d) < KEEP) {
            uint next = row / v.keep_size[d];
            at += uint64_t(row - next * v.keep_size[d]) * v.keep_stride[d];
            row = next;
        }
    }
    return KEEP > 0u ? at + uint64_t(row) * v.keep_stride[0] : at;
}
uint rows_reduce(rows_view v, uint k) {
    if (VECTOR == 1u) return k;
    uint at = 0u;
    [[unroll]] for (int d = ROWS_AXES - 1; d > 0; d--) {
        if (uint(d) < REDUCE) {
            uint next = k / v.reduce_size[d];
            at += (k - next * v.reduce_size[d]) * v.reduce_stride[d];
            k = next;
        }
    }
    return REDUCE > 0u ? at + k * v.reduce_stride[0] : at;
}
#endif
