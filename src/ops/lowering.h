/*
 * lowering.h: what the kernels that move elements share when they are lowered.
 */
#ifndef BRAID_LOWERING_H
#define BRAID_LOWERING_H

#include "ops/region.h"

/* In-row indices of the kernels are 32-bit and signed. */
#define MOVE_MAX (((int64_t)1 << 31) - 1)

/* Size of the elements that kernels see: 1, 2, 4 or 8. *parts: kernel elements per element (2 for 16 bytes). False:
   strings and types smaller than a byte have no kernel. */
bool move_element(braid_type, uint32_t *bytes, int64_t *parts);
/* Name of a kernel's build for elements of so many bytes: MOVE_KERNEL("gather", 4) is gather_b4. */
#define MOVE_KERNEL(name, bytes) \
    ((bytes) == 1 ? name "_b1" : (bytes) == 2 ? name "_b2" : (bytes) == 4 ? name "_b4" : name "_b8")

/* How `units` of work are spread: invocations of a workgroup, units of an invocation, workgroups. */
typedef struct move_grid {
    uint32_t group, items;
    uint64_t tiles;
} move_grid;
move_grid move_grid_for(const device_traits *, int64_t units);

#endif
