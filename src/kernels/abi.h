/*
 * abi.h: what C and GLSL share about rows. Included by both; GLSL sees __VERSION__ >= 450.
 *
 * A dispatch covers rows x tiles (x and y of the grid, flat) and problems (z). A problem is one copy of one lane:
 * problem = lane * copies + copy; copies are the clones that a re-rolled node stands for, 1 for all others. Push
 * constants name the first row and the run block. Row structs live in kernels/rows/<kernel>.h and start with a row_header:
 *
 *     ROW_BEGIN(map)
 *         row_header header;
 *         operand out;
 *         ...
 *     ROW_END(map)          -> type row_map on both sides
 *
 * Members: uint, int, float, uint64_t, int64_t, operand, and arrays of them; 8-byte members on 8-byte offsets (pad by
 * hand) so that std430 and C agree; a row's size is a multiple of 8.
 */
#ifndef BRAID_ABI_H
#define BRAID_ABI_H

#ifdef GL_core_profile
#define ROW_BEGIN(name) struct row_##name {
#define ROW_END(name) };
#else
#include <stdint.h>
typedef uint32_t uint;
#define ROW_BEGIN(name) typedef struct row_##name {
#define ROW_END(name) } row_##name; _Static_assert(sizeof(row_##name) % 8 == 0, "row size");
#endif

#define OPERAND_NONE 0u     /* absent */
#define OPERAND_DIRECT 1u   /* base is an address */
#define OPERAND_BINDING 2u  /* base is an offset into run.bindings[index] (arena blocks, graph inputs and outputs) */
#define OPERAND_INDIRECT 3u /* run.bindings[index] is a table of one address per lane; base is an offset */

/* push.copies: copies of each lane; with PUSH_ONCE the step is done for lane 0 alone, whose result all lanes share. */
#define PUSH_ONCE 0x80000000u

/* Local size is specialization constant 0; kernels' own constants start at SPEC_FIRST; fusion programs at SPEC_PROGRAM:
   one word per instruction (op | a << 8 | b << 13 | c << 18), 0 = end. */
#define SPEC_GROUP 0
#define SPEC_SUBGROUP 1
#define SPEC_FIRST 8
#define SPEC_PROGRAM 32
#define SPEC_TYPES 48 /* element type of program input register n: SPEC_TYPES + n */

#ifdef GL_core_profile
struct operand {
    uint64_t base;
    uint64_t lane_stride; /* bytes; 0: shared by all lanes */
    uint64_t copy_stride; /* bytes; 0: shared by all copies */
    uint kind;
    uint index;
};
struct row_header {
    uint first_tile; /* of this row within its dispatch */
    uint tiles;
    uint node;       /* for the error word: the node's number, all nodes' copies being counted; + copy */
    uint reserved;
};
struct binding {
    uint64_t address;
    uint64_t lane_stride;
};
#else
typedef struct operand {
    uint64_t base;
    uint64_t lane_stride;
    uint64_t copy_stride;
    uint kind;
    uint index;
} operand;
typedef struct row_header {
    uint first_tile, tiles, node, reserved;
} row_header;
typedef struct binding {
    uint64_t address, lane_stride;
} binding;
/* The run block in device memory: this header, then bindings. */
typedef struct run_block {
    uint lanes, reserved;
    uint64_t lane_map; /* address of uint[lanes]: lane of grid z; 0: identity */
    uint64_t errors;   /* address of uint[lanes + 1]: smallest failing row_header.node + copy of each lane, then of the steps that are done
                          once for all, by atomicMin, preset ~0; 0: not wanted */
} run_block;
typedef struct push_block {
    uint64_t rows, run;
    uint row_bytes, n_rows;
    uint tiles;     /* end of the tiles of this dispatch: a group at or beyond it has nothing to do */
    uint problem_base; /* problem of grid z 0 */
    uint tile_base; /* tile of grid x 0, y 0: one problem may be several dispatches */
    uint copies;    /* | PUSH_ONCE */
    uint row_tiles; /* of every row where all have the same number; 0: look for the row by first_tile */
    uint reserved;
} push_block;
#endif

#endif
