#version 460
//! variant f32 -DCELL_F32
//! variant f16 -DCELL_F16
//! variant bf16 -DCELL_BF16
// GridSample: every output reads 1, 2 or 4 neighbours along each of up to three axes around its grid point.
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "lib/cell.glsl"
#include "lib/flat.glsl"
#include "rows/grid.h"

layout(constant_id = 9) const uint MODE = 0;
layout(constant_id = 10) const uint PADDING = 0;
layout(constant_id = 11) const bool ALIGN = false;
layout(constant_id = 12) const int RANK = 2;

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_grid_sample r; };

#define FAR 1e9

struct taps {
    int index[4]; // -1 reads zero
    float weight[4];
};

int tap_count(int axis) { return axis < 3 - RANK ? 1 : MODE == GRID_MODE_NEAREST ? 1 : MODE == GRID_MODE_LINEAR ? 2 : 4; }

float reflect_into(float v, float low, float high) {
    float range = high - low;
    if (range <= 0.0) return low;
    bool below = v < low;
    float d = below ? low - v : v - high;
    if (d <= 0.0) return v;
    float folds = trunc(d / range), rest = d - folds * range;
    bool even = fract(folds * 0.5) == 0.0;
    return below == even ? low + rest : high - rest;
}

int pad_index(float v, int size, float low, float high) {
    if (v >= 0.0 && v <= float(size - 1)) return int(v);
    if (PADDING == GRID_PAD_ZEROS) return -1;
    if (PADDING == GRID_PAD_REFLECTION) v = trunc(reflect_into(v, low, high));
    return int(clamp(v, 0.0, float(size - 1)));
}

float pad_point(float v, int size, float low, float high) {
    if (MODE == GRID_MODE_CUBIC || PADDING == GRID_PAD_ZEROS || (v >= low && v <= high)) return v;
    if (PADDING == GRID_PAD_REFLECTION) return reflect_into(v, low, high);
    return v < 0.0 ? 0.0 : float(size - 1);
}

void cubic_weights(float t, inout taps s) {
    const float a = -0.75;
    float far = t + 1.0, back = 1.0 - t, last = 2.0 - t;
    s.weight[0] = ((a * far - 5.0 * a) * far + 8.0 * a) * far - 4.0 * a;
    s.weight[1] = ((a + 2.0) * t - (a + 3.0)) * t * t + 1.0;
    s.weight[2] = ((a + 2.0) * back - (a + 3.0)) * back * back + 1.0;
    s.weight[3] = ((a * last - 5.0 * a) * last + 8.0 * a) * last - 4.0 * a;
}

// The taps of normalised coordinate v along an axis.
taps place_point(float v, int size) {
    taps s;
    float low = ALIGN ? 0.0 : -0.5, high = float(size) - (ALIGN ? 1.0 : 0.5);
    precise float at = ALIGN ? (v + 1.0) * 0.5 * (float(size) - 1.0) : ((v + 1.0) * float(size) - 1.0) * 0.5;
    if (cell_is_nan(at)) at = -FAR;
    at = clamp(at, -FAR, FAR);
    if (MODE == GRID_MODE_NEAREST) at = roundEven(at);
    at = pad_point(at, size, low, high);
    float base = MODE == GRID_MODE_NEAREST ? trunc(at) : floor(at), rest = at - base;
    if (MODE == GRID_MODE_CUBIC) {
        cubic_weights(rest, s);
        base -= 1.0;
    } else {
        s.weight[0] = MODE == GRID_MODE_LINEAR ? 1.0 - rest : 1.0;
        s.weight[1] = rest;
        s.weight[2] = s.weight[3] = 0.0;
    }
    for (int k = 0; k < 4; k++) s.index[k] = pad_index(base + float(k), size, low, high);
    return s;
}

taps no_taps() {
    taps s;
    s.index = int[4](0, -1, -1, -1);
    s.weight = float[4](1.0, 0.0, 0.0, 0.0);
    return s;
}

void main() {
    place p;
    if (!place_find(p)) return;
    row_ref row = row_ref(p.row);
    uint64_t x = operand_address(row.r.x, p), grid = operand_address(row.r.grid, p), y = operand_address(row.r.y, p);
    ivec3 size = ivec3(row.r.size[0], row.r.size[1], row.r.size[2]);
    uint volume = uint(size.x * size.y * size.z);
    FLAT_FOR(o, row.r.outputs, p) {
        uint point = o, plane = divide_step(point, row.r.points), n = divide(plane, row.r.channels);
        uint at = (n * row.r.points.by + point) * uint(RANK);
        taps tx = place_point(cell_get(grid, at), size.z);
        taps ty = no_taps(), tz = no_taps();
        if (RANK > 1) ty = place_point(cell_get(grid, at + 1u), size.y);
        if (RANK > 2) tz = place_point(cell_get(grid, at + 2u), size.x);
        float sum = 0.0;
        for (int i = 0; i < tap_count(0); i++)
            for (int j = 0; j < tap_count(1); j++)
                for (int k = 0; k < tap_count(2); k++) {
                    if (tz.index[i] < 0 || ty.index[j] < 0 || tx.index[k] < 0) continue;
                    int line = (tz.index[i] * size.y + ty.index[j]) * size.z + tx.index[k];
                    sum += tz.weight[i] * ty.weight[j] * tx.weight[k] * cell_get(x, plane * volume + uint(line));
                }
        cell_put(y, o, sum);
    }
}
