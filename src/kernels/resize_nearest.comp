#version 460
//! variant b8 -DCELL_BITS=8
//! variant b16 -DCELL_BITS=16
//! variant b32 -DCELL_BITS=32
//! variant b64 -DCELL_BITS=64
// Resize by nearest neighbour: a gather by one index table per axis.
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "lib/cell.glsl"
#include "lib/flat.glsl"
#include "rows/resize.h"

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_resize r; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer table_ref { int v[]; };

void main() {
    place p;
    if (!place_find(p)) return;
    row_ref row = row_ref(p.row);
    uint64_t x = operand_address(row.r.x, p), y = operand_address(row.r.y, p);
    table_ref ta = table_ref(operand_address(row.r.table[0], p));
    table_ref tb = table_ref(operand_address(row.r.table[1], p));
    table_ref tc = table_ref(operand_address(row.r.table[2], p));
    divider inner = row.r.inner;
    uvec3 size = uvec3(row.r.size[0], row.r.size[1], row.r.size[2]);
    CELL off = CELL(packUint2x32(uvec2(row.r.extrapolation[0], row.r.extrapolation[1])));
    FLAT_FOR(o, row.r.outputs, p) {
        uint i = o, c = divide_step(i, inner), b = divide_step(c, row.r.extent[2]);
        uint a = divide_step(b, row.r.extent[1]), outer = divide_step(a, row.r.extent[0]);
        ivec3 at = ivec3(ta.v[a], tb.v[b], tc.v[c]);
        CELL v = off;
        if (all(notEqual(at, ivec3(RESIZE_OFF)))) {
            uint line = (outer * size.x + uint(at.x)) * size.y + uint(at.y);
            v = cell_in(x).v[(line * size.z + uint(at.z)) * inner.by + i];
        }
        cell_out(y).v[o] = v;
    }
}
