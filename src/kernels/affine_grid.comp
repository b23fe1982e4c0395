#version 460
//! variant f32 -DCELL_F32
//! variant f16 -DCELL_F16
//! variant bf16 -DCELL_BF16
// AffineGrid: y[n][point][i] = theta[n][i] . (position, 1), positions evenly spaced in [-1, 1].
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "lib/cell.glsl"
#include "lib/flat.glsl"
#include "rows/grid.h"

layout(constant_id = 9) const bool ALIGN = false;
layout(constant_id = 10) const uint RANK = 2;

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_affine_grid r; };

float position(uint i, uint size) {
    if (ALIGN) return size > 1u ? float(2u * i) / float(size - 1u) - 1.0 : 0.0;
    return float(2u * i + 1u) / float(size) - 1.0;
}

void main() {
    place p;
    if (!place_find(p)) return;
    row_ref row = row_ref(p.row);
    uint64_t theta = operand_address(row.r.theta, p), y = operand_address(row.r.y, p);
    uvec3 size = uvec3(row.r.size[0], row.r.size[1], row.r.size[2]);
    FLAT_FOR(o, row.r.outputs, p) {
        uint i = o % RANK, all = o / RANK, point = all % row.r.points, n = all / row.r.points;
        float at[3];
        at[0] = position(point % size.z, size.z);
        at[1] = position(point / size.z % size.y, size.y);
        at[2] = position(point / size.z / size.y, size.x);
        uint line = (n * RANK + i) * (RANK + 1u);
        float sum = cell_get(theta, line + RANK);
        for (uint k = 0u; k < RANK; k++) sum += at[k] * cell_get(theta, line + k);
        cell_put(y, o, sum);
    }
}
