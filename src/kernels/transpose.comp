// A strided copy whose last dim runs on in the output and whose last but one runs on in the input (rows/move.h), through
// tiles of shared memory: both sides are read and written in runs. A workgroup of 256 does a tile of 32 x 32.
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

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_move r; };

#if ELEM_BYTES == 8
shared uint64_t tile[32][33];
#define PUT(v) (v)
#define GET(v) (v)
#else
shared uint tile[32][33];
#define PUT(v) uint(v)
#define GET(v) ELEM(v)
#endif

void main() {
    place p;
    if (!place_find(p)) return;
    row_ref row = row_ref(p.row);
    element_ref source = element_ref(operand_address(row.r.source, p));
    element_ref target = element_ref(operand_address(row.r.target, p));
    const uint Q = MOVE_RANK - 1u, J = MOVE_RANK - 2u;
    uint nq = row.r.dims[Q], nj = row.r.dims[J], tiles_q = (nq + 31u) / 32u, tiles_j = (nj + 31u) / 32u;
    uint rest = p.tile / tiles_q, q0 = (p.tile - rest * tiles_q) * 32u;
    uint batch = rest / tiles_j, j0 = (rest - batch * tiles_j) * 32u;
    int from = int(row.r.in_at), to = int(row.r.out_at);
    for (uint k = 3u; k <= RANK; k++) {
        uint d = MOVE_RANK - k, dim = row.r.dims[d], next = batch / dim;
        int at = int(batch - next * dim);
        from += at * row.r.in_stride[d];
        to += at * row.r.out_stride[d];
        batch = next;
    }
    uint x = gl_LocalInvocationID.x % 32u, y0 = gl_LocalInvocationID.x / 32u, rows = gl_WorkGroupSize.x / 32u;
    for (uint y = y0; y < 32u; y += rows)
        if (j0 + x < nj && q0 + y < nq)
            tile[y][x] = PUT(source.v[uint(from + int(j0 + x) + int(q0 + y) * row.r.in_stride[Q])]);
    barrier();
    for (uint y = y0; y < 32u; y += rows)
        if (q0 + x < nq && j0 + y < nj)
            target.v[uint(to + int(q0 + x) + int(j0 + y) * row.r.out_stride[J])] = GET(tile[x][y]);
}
