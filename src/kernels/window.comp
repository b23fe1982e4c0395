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
    int at; // of the maximum, within the plane; -1: none yet. Only kept for indices
};

float power_of(float v, float exponent) {
    v = abs(v);
    return exponent == 1.0 ? v : exponent == 2.0 ? v * v : b_pow(v, exponent);
}

float root_of(float v, float exponent) {
    return exponent == 1.0 ? v : exponent == 2.0 ? sqrt(v) : b_pow(v, 1.0 / exponent);
}

// A maximum over a window without gaps needs no test of the border: what a clamped tap reads is in the window as well.
const bool WITH_INDICES = (FLAGS & WINDOW_INDICES) != 0u;
const bool BORDER_COUNTS = KIND != WINDOW_MAX || WITH_INDICES || DILATION_D * DILATION_H * DILATION_W != 1;

// Takes one element into the result; a NaN beats any number, and stays.
void window_take(inout window_result s, float v, int at, bool inside, float exponent) {
    if (KIND != WINDOW_MAX) {
        float part = KIND == WINDOW_LP ? power_of(v, exponent) : v;
        s.value += inside ? part : 0.0;
        return;
    }
    bool better = v > s.value || cell_is_nan(v);
    if (WITH_INDICES) better = s.at < 0 || (better && !cell_is_nan(s.value));
    if (BORDER_COUNTS) better = better && inside;
    s.value = better ? v : s.value;
    if (WITH_INDICES) s.at = better ? at : s.at;
}

// Taps that lie below `limit`, those in the leading padding included.
int taps_below(int start, int count, int dilation, int limit) {
    return start >= limit ? 0 : min(count, (limit - 1 - start) / dilation + 1);
}

// Taps of an axis that the mean divides by: those inside the input, or with the explicit padding.
int taps_counted(int start, int count, int dilation, int size, int end) {
    if ((FLAGS & WINDOW_COUNT_PAD) != 0u) return taps_below(start, count, dilation, size + end);
    return max(taps_below(start, count, dilation, size) - taps_below(start, count, dilation, 0), 0);
}

float window_finish(window_result s, row_ref row, ivec3 start) {
    if (KIND == WINDOW_MAX) return s.value;
    if (KIND == WINDOW_LP) return root_of(s.value, row.r.exponent);
    int n = taps_counted(start.x, KERNEL_D, DILATION_D, int(row.r.size[0]), row.r.end[0]) *
            taps_counted(start.y, KERNEL_H, DILATION_H, int(row.r.size[1]), row.r.end[1]) *
            taps_counted(start.z, KERNEL_W, DILATION_W, int(row.r.size[2]), row.r.end[2]);
    return n == 0 ? 0.0 : s.value / float(n);
}

int64_t stored_index(row_ref row, uint plane, int at) {
    if (at < 0) return -1l;
    uint d = row.r.size[0], h = row.r.size[1], w = row.r.size[2], i = uint(at);
    if ((FLAGS & WINDOW_COLUMN_MAJOR) != 0u) i = i / w / h + d * (i / w % h + h * (i % w));
    return int64_t(plane) * int64_t(d * h * w) + int64_t(i);
}

// Every tap loads, at an index clamped to the input, so that loads need not wait for tests.
window_result window_at(row_ref row, uint64_t x, uint base, ivec3 start) {
    window_result s = window_result(KIND == WINDOW_MAX ? CELL_LOWEST : 0.0, -1);
    ivec3 size = ivec3(row.r.size[0], row.r.size[1], row.r.size[2]);
    float exponent = row.r.exponent;
    for (int d = 0; d < KERNEL_D; d++) {
        int z = start.x + d * DILATION_D;
        bool in_z = uint(z) < uint(size.x);
        int plane = clamp(z, 0, size.x - 1) * size.y;
        for (int h = 0; h < KERNEL_H; h++) {
            int y = start.y + h * DILATION_H;
            bool in_y = in_z && uint(y) < uint(size.y);
            int line = (plane + clamp(y, 0, size.y - 1)) * size.z;
            for (int w = 0; w < KERNEL_W; w++) {
                int i = start.z + w * DILATION_W, at = line + clamp(i, 0, size.z - 1);
                window_take(s, cell_get(x, base + uint(at)), at, in_y && uint(i) < uint(size.z), exponent);
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
    divider depth = row.r.extent[0], height = row.r.extent[1], width = row.r.extent[2];
    uint volume = row.r.size[0] * row.r.size[1] * row.r.size[2];
    FLAT_FOR(o, row.r.outputs, p) {
        uint w = o, h = divide_step(w, width), d = divide_step(h, height), plane = divide_step(d, depth);
        ivec3 start = ivec3(int(d) * STRIDE_D - row.r.begin[0], int(h) * STRIDE_H - row.r.begin[1],
                            int(w) * STRIDE_W - row.r.begin[2]);
        window_result s = window_at(row, x, plane * volume, start);
        if (y != 0ul) cell_put(y, o, window_finish(s, row, start));
        if ((FLAGS & WINDOW_INDICES) != 0u && indices != 0ul)
            index_ref(indices).v[o] = stored_index(row, plane, s.at);
    }
}
