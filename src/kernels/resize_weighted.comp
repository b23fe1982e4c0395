#version 460
//! variant f32 -DCELL_F32
//! variant f16 -DCELL_F16
//! variant bf16 -DCELL_BF16
//! variant i8 -DCELL_I8
//! variant u8 -DCELL_U8
// Resize by weights: the product of one (first index, weights) table per axis. Taps beyond the border read the border.
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "lib/cell.glsl"
#include "lib/flat.glsl"
#include "rows/resize.h"

layout(constant_id = 9) const int TAPS_A = 1;
layout(constant_id = 10) const int TAPS_B = 1;
layout(constant_id = 11) const int TAPS_C = 1;

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_resize r; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer first_ref { int v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer weight_ref { float v[]; };

struct axis_place {
    int first;
    uint weights; // index of the first weight
};

struct line_place {
    uint64_t x;
    weight_ref table;
    axis_place at;
    int last;
    uint inner;
};

float weigh_line(line_place l, uint base) {
    float sum = 0.0;
    for (int t = 0; t < TAPS_C; t++) {
        float w = l.table.v[l.at.weights + uint(t)];
        uint i = uint(clamp(l.at.first + t, 0, l.last));
        if (w != 0.0) sum += w * cell_get(l.x, base + i * l.inner);
    }
    return sum;
}

// Integers round to nearest even and saturate.
float finish(float v) {
#if defined(CELL_I8)
    return clamp(roundEven(v), -128.0, 127.0);
#elif defined(CELL_U8)
    return clamp(roundEven(v), 0.0, 255.0);
#else
    return v;
#endif
}

void main() {
    place p;
    if (!place_find(p)) return;
    row_ref row = row_ref(p.row);
    uint64_t x = operand_address(row.r.x, p), y = operand_address(row.r.y, p);
    uint64_t ta = operand_address(row.r.table[0], p), tb = operand_address(row.r.table[1], p);
    uint64_t tc = operand_address(row.r.table[2], p);
    divider inner = row.r.inner;
    ivec3 last = ivec3(row.r.size[0], row.r.size[1], row.r.size[2]) - 1;
    uvec3 extent = uvec3(row.r.extent[0].by, row.r.extent[1].by, row.r.extent[2].by);
    FLAT_FOR(o, row.r.outputs, p) {
        uint i = o, c = divide_step(i, inner), b = divide_step(c, row.r.extent[2]);
        uint a = divide_step(b, row.r.extent[1]), outer = divide_step(a, row.r.extent[0]);
        axis_place at_a = axis_place(first_ref(ta).v[a], extent.x + a * uint(TAPS_A));
        axis_place at_b = axis_place(first_ref(tb).v[b], extent.y + b * uint(TAPS_B));
        axis_place at_c = axis_place(first_ref(tc).v[c], extent.z + c * uint(TAPS_C));
        if (at_a.first == RESIZE_OFF || at_b.first == RESIZE_OFF || at_c.first == RESIZE_OFF) {
            cell_put(y, o, finish(uintBitsToFloat(row.r.extrapolation[0])));
            continue;
        }
        line_place l = line_place(x, weight_ref(tc), at_c, last.z, inner.by);
        float sum = 0.0;
        for (int s = 0; s < TAPS_A; s++) {
            float wa = weight_ref(ta).v[at_a.weights + uint(s)];
            if (wa == 0.0) continue;
            uint plane = outer * uint(last.x + 1) + uint(clamp(at_a.first + s, 0, last.x));
            float part = 0.0;
            for (int t = 0; t < TAPS_B; t++) {
                float wb = weight_ref(tb).v[at_b.weights + uint(t)];
                uint line = plane * uint(last.y + 1) + uint(clamp(at_b.first + t, 0, last.y));
                if (wb != 0.0) part += wb * weigh_line(l, line * uint(last.z + 1) * inner.by + i);
            }
            sum += wa * part;
        }
        cell_put(y, o, finish(sum));
    }
}
