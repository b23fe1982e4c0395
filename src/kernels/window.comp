#version 460
//! variant f32 -DCELL_F32
//! variant f16 -DCELL_F16
//! variant bf16 -DCELL_BF16
//! variant i8 -DCELL_I8
//! variant u8 -DCELL_U8
// MaxPool, AveragePool, LpPool over up to three spatial axes. One output per step of the flat loop.
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "lib/cell.glsl"
#include "lib/flat.glsl"
#include "rows/window.h"

layout(constant_id = 9) const uint KIND = 0;
layout(constant_id = 10) const uint FLAGS = 0;
layout(constant_id = 11) const int KERNEL_D = 1;
layout(constant_id = 12) const int KERNEL_H = 1;
layout(constant_id = 13) const int KERNEL_W = 1;
layout(constant_id = 14) const int STRIDE_D = 1;
layout(constant_id = 15) const int STRIDE_H = 1;
layout(constant_id = 16) const int STRIDE_W = 1;
layout(constant_id = 17) const int DILATION_D = 1;
layout(constant_id = 18) const int DILATION_H = 1;
layout(constant_id = 19) const int DILATION_W = 1;

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_window r; };
layout(buffer_reference, std430, buffer_reference_align = 8) writeonly buffer index_ref { int64_t v[]; };

struct window_result {
    float value;
    uint found; // elements seen
    int at;     // of the maximum, within the plane
};

float power_of(float v, float exponent) {
    v = abs(v);
    return exponent == 1.0 ? v : exponent == 2.0 ? v * v : b_pow(v, exponent);
}

float root_of(float v, float exponent) {
    return exponent == 1.0 ? v : exponent == 2.0 ? sqrt(v) : b_pow(v, 1.0 / exponent);
}

// Takes one element into the result; a NaN beats any number.
void window_take(inout window_result s, float v, int at, float exponent) {
    if (KIND == WINDOW_MAX) {
        bool better = s.at < 0 || (!cell_is_nan(s.value) && (cell_is_nan(v) || v > s.value));
        if (better) {
            s.value = v;
            s.at = at;
        }
    } else {
        s.value += KIND == WINDOW_LP ? power_of(v, exponent) : v;
        s.found++;
    }
}

// Taps that lie below `limit`, those in the leading padding included.
int taps_below(int start, int count, int dilation, int limit) {
    return start >= limit ? 0 : min(count, (limit - 1 - start) / dilation + 1);
}

float window_finish(window_result s, row_ref row, ivec3 start) {
    if (KIND == WINDOW_MAX) return s.value;
    if (KIND == WINDOW_LP) return root_of(s.value, row.r.exponent);
    uint n = s.found;
    if ((FLAGS & WINDOW_COUNT_PAD) != 0u)
        n = uint(taps_below(start.x, KERNEL_D, DILATION_D, int(row.r.size[0]) + row.r.end[0]) *
                 taps_below(start.y, KERNEL_H, DILATION_H, int(row.r.size[1]) + row.r.end[1]) *
                 taps_below(start.z, KERNEL_W, DILATION_W, int(row.r.size[2]) + row.r.end[2]));
    return n == 0u ? 0.0 : s.value / float(n);
}

int64_t stored_index(row_ref row, uint plane, int at) {
    if (at < 0) return -1l;
    uint d = row.r.size[0], h = row.r.size[1], w = row.r.size[2], i = uint(at);
    if ((FLAGS & WINDOW_COLUMN_MAJOR) != 0u) i = i / w / h + d * (i / w % h + h * (i % w));
    return int64_t(plane) * int64_t(d * h * w) + int64_t(i);
}

window_result window_at(row_ref row, uint64_t x, uint base, ivec3 start) {
    window_result s = window_result(KIND == WINDOW_MAX ? CELL_LOWEST : 0.0, 0u, -1);
    ivec3 size = ivec3(row.r.size[0], row.r.size[1], row.r.size[2]);
    float exponent = row.r.exponent;
    for (int d = 0; d < KERNEL_D; d++) {
        int z = start.x + d * DILATION_D;
        if (z < 0 || z >= size.x) continue;
        for (int h = 0; h < KERNEL_H; h++) {
            int y = start.y + h * DILATION_H;
            if (y < 0 || y >= size.y) continue;
            int line = (z * size.y + y) * size.z;
            for (int w = 0; w < KERNEL_W; w++) {
                int i = start.z + w * DILATION_W;
                if (i < 0 || i >= size.z) continue;
                window_take(s, cell_get(x, base + uint(line + i)), line + i, exponent);
            }
        }
    }
    return s;
}

void main() {
    place p;
    if (!place_find(p)) return;
    row_ref row = row_ref(p.row);
    uint64_t x = operand_address(row.r.x, p), y = operand_address(row.r.y, p);
    uint64_t indices = operand_address(row.r.indices, p);
    uint depth = row.r.extent[0], height = row.r.extent[1], width = row.r.extent[2];
    uint volume = row.r.size[0] * row.r.size[1] * row.r.size[2];
    FLAT_FOR(o, row.r.outputs, p) {
        uint w = o % width, rest = o / width;
        uint h = rest % height;
        rest /= height;
        uint d = rest % depth, plane = rest / depth;
        ivec3 start = ivec3(int(d) * STRIDE_D - row.r.begin[0], int(h) * STRIDE_H - row.r.begin[1],
                            int(w) * STRIDE_W - row.r.begin[2]);
        window_result s = window_at(row, x, plane * volume, start);
        if (y != 0ul) cell_put(y, o, window_finish(s, row, start));
        if ((FLAGS & WINDOW_INDICES) != 0u && indices != 0ul)
            index_ref(indices).v[o] = stored_index(row, plane, s.at);
    }
}
