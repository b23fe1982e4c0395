// A strided copy whose last dim runs on in the output and whose last but one runs on in the input (rows/move.h), through
// tiles of shared memory: both sides are read and written in runs. A workgroup of 256 does a tile of SIDE x SIDE.
//! variant b1 -DELEM_BYTES=1
//! variant b2 -DELEM_BYTES=2
//! variant b4 -DELEM_BYTES=4
//! variant b8 -DELEM_BYTES=8
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "rows/move.h"
#include "lib/element.glsl"

layout(constant_id = MOVE_SPEC_RANK) const uint RANK = 2u;

layout(constant_id = MOVE_SPEC_SIDE) const uint SIDE = 64u; // 32 or 64

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_move r; };

row_move r; // the row in registers: through the reference it would be read again after every store

#if ELEM_BYTES == 8
#define MOST 32u // of SIDE
shared uint64_t tile[32][33];
#define PUT(v) (v)
#define GET(v) (v)
#else
#define MOST 64u
shared uint tile[64][65];
#define PUT(v) uint(v)
#define GET(v) ELEM(v)
#endif

void main() {
    place p;
    if (!place_find(p)) return;
    r = row_ref(p.row).r;
    element_ref source = element_ref(operand_address(r.source, p));
    element_ref target = element_ref(operand_address(r.target, p));
    const uint Q = MOVE_RANK - 1u, J = MOVE_RANK - 2u;
    uint nq = r.dims[Q], nj = r.dims[J], tiles_q = (nq + SIDE - 1u) / SIDE, tiles_j = (nj + SIDE - 1u) / SIDE;
    uint rest = p.tile / tiles_q, q0 = (p.tile - rest * tiles_q) * SIDE;
    uint batch = rest / tiles_j, j0 = (rest - batch * tiles_j) * SIDE;
    int from = int(r.in_at), to = int(r.out_at);
    [[unroll]] for (uint k = 3u; k <= RANK; k++) {
        uint d = MOVE_RANK - k, dim = r.dims[d], next = batch / dim;
        int at = int(batch - next * dim);
        from += at * r.in_stride[d];
        to += at * r.out_stride[d];
        batch = next;
    }
    const uint TIMES = MOST * MOST / 256u; // rows of the tile that one invocation reads, at most
    uint x = gl_LocalInvocationID.x % SIDE, y0 = gl_LocalInvocationID.x / SIDE, rows = 256u / SIDE;
    ELEM v[TIMES];
    [[unroll]] for (uint k = 0u; k < TIMES; k++) {
        uint y = y0 + k * rows;
        if (y < SIDE && j0 + x < nj && q0 + y < nq)
            v[k] = source.v[uint(from + int(j0 + x) + int(q0 + y) * r.in_stride[Q])];
    }
    [[unroll]] for (uint k = 0u; k < TIMES; k++) {
        uint y = y0 + k * rows;
        if (y < SIDE) tile[y][x] = PUT(v[k]);
    }
    barrier();
    [[unroll]] for (uint k = 0u; k < TIMES; k++) {
        uint y = y0 + k * rows;
        if (y < SIDE && q0 + x < nq && j0 + y < nj)
            target.v[uint(to + int(q0 + x) + int(j0 + y) * r.out_stride[J])] = GET(tile[x][y]);
    }
}
