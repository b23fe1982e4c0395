// batch.glsl: units of UNIT elements copied four at a time, all loads before the stores, so that they overlap. Needs the
// constants UNIT and ITEMS; an invocation does ITEMS units, BATCH at a time.
#ifndef BATCH_GLSL
#define BATCH_GLSL
#include "lib/element.glsl"

#define BATCH 4u
#define BATCH_USED (ITEMS < BATCH ? ITEMS : BATCH)

// Index of unit `item` of this invocation, counted over all workgroups of a row.
uint batch_index(uint tile, uint item) {
    return (tile * ITEMS + item) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
}

// Copies the unit at address from[k] to address to[k] for every k with to[k] != 0. wide: all addresses are multiples of
// 16 where UNIT > 1.
void batch_copy(bool wide, uint64_t from[BATCH], uint64_t to[BATCH]) {
    if (UNIT > 1u && wide) {
        uvec4 v[BATCH];
        [[unroll]] for (uint k = 0u; k < BATCH; k++)
            if (to[k] != 0ul) v[k] = vector_ref(from[k]).v[0];
        [[unroll]] for (uint k = 0u; k < BATCH; k++)
            if (to[k] != 0ul) vector_ref(to[k]).v[0] = v[k];
    } else if (UNIT == 1u) {
        ELEM v[BATCH];
        [[unroll]] for (uint k = 0u; k < BATCH; k++)
            if (to[k] != 0ul) v[k] = element_ref(from[k]).v[0];
        [[unroll]] for (uint k = 0u; k < BATCH; k++)
            if (to[k] != 0ul) element_ref(to[k]).v[0] = v[k];
    } else {
        [[unroll]] for (uint k = 0u; k < BATCH; k++)
            for (uint e = 0u; e < UNIT && to[k] != 0ul; e++) element_ref(to[k]).v[e] = element_ref(from[k]).v[e];
    }
}

// Address of element i.
uint64_t element_at(uint64_t base, uint i) { return base + uint64_t(i) * uint64_t(ELEM_BYTES); }
#endif
