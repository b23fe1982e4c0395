#version 460
//! variant f32 -DCELL_F32
//! variant f16 -DCELL_F16
//! variant bf16 -DCELL_BF16
// RoiAlign: every output averages (or takes the maximum of) bilinear samples within one bin of one region.
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "lib/cell.glsl"
#include "lib/flat.glsl"
#include "rows/roi.h"

layout(constant_id = 9) const bool MAX = false;

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_roi r; };
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer batch_ref { int64_t v[]; };

const int SAMPLES = 4096; // ROI_SAMPLES

struct axis_place {
    float start, bin;
    int samples, size;
};

struct sample_place {
    bool inside;
    int low, high;
    float weight; // of high
};

axis_place place_axis(row_ref row, float low, float high, int i, inout bool bad) {
    axis_place x;
    x.size = int(row.r.size[i]);
    x.start = low * row.r.scale - row.r.offset;
    float extent = high * row.r.scale - row.r.offset - x.start, bins = float(row.r.bins[i]);
    if (row.r.offset == 0.0) extent = max(extent, 1.0);
    x.bin = extent / bins;
    float samples = row.r.sampling > 0u ? float(row.r.sampling) : ceil(extent / bins);
    if (!(samples <= float(SAMPLES)) || !(abs(x.start) < 1e30)) {
        bad = true;
        samples = 0.0;
    }
    x.samples = int(max(samples, 0.0));
    return x;
}

sample_place place_sample(axis_place x, uint bin, int i) {
    float v = x.start + float(bin) * x.bin + (float(i) + 0.5) * x.bin / float(x.samples);
    sample_place s = sample_place(v >= -1.0 && v <= float(x.size), 0, 0, 0.0);
    if (!s.inside) return s;
    v = max(v, 0.0);
    s.low = min(int(v), x.size - 1);
    s.high = min(s.low + 1, x.size - 1);
    s.weight = s.low == x.size - 1 ? 0.0 : v - float(s.low);
    return s;
}

float sample_value(uint64_t x, uint base, int width, sample_place y, sample_place w) {
    float a = (1.0 - y.weight) * (1.0 - w.weight) * cell_get(x, base + uint(y.low * width + w.low));
    float b = (1.0 - y.weight) * w.weight * cell_get(x, base + uint(y.low * width + w.high));
    float c = y.weight * (1.0 - w.weight) * cell_get(x, base + uint(y.high * width + w.low));
    float d = y.weight * w.weight * cell_get(x, base + uint(y.high * width + w.high));
    return MAX ? max(max(a, b), max(c, d)) : a + b + c + d;
}

float bin_value(uint64_t x, uint base, axis_place y, axis_place w, uint by, uint bx) {
    float result = 0.0;
    for (int i = 0; i < y.samples; i++) {
        sample_place sy = place_sample(y, by, i);
        for (int k = 0; k < w.samples; k++) {
            sample_place sx = place_sample(w, bx, k);
            float v = sy.inside && sx.inside ? sample_value(x, base, w.size, sy, sx) : 0.0;
            if (MAX) result = i == 0 && k == 0 ? v : max(result, v);
            else result += v;
        }
    }
    int count = y.samples * w.samples;
    return MAX || count == 0 ? result : result / float(count);
}

void main() {
    place p;
    if (!place_find(p)) return;
    row_ref row = row_ref(p.row);
    uint64_t x = operand_address(row.r.x, p), rois = operand_address(row.r.rois, p), y = operand_address(row.r.y, p);
    batch_ref batch = batch_ref(operand_address(row.r.batch, p));
    uint plane = row.r.size[0] * row.r.size[1], bins = row.r.bins[0] * row.r.bins[1];
    FLAT_FOR(o, row.r.outputs, p) {
        uint bin = o % bins, c = o / bins % row.r.channels, roi = o / bins / row.r.channels;
        int64_t n = batch.v[roi];
        bool bad = n < 0l || n >= int64_t(row.r.batches);
        axis_place ay = place_axis(row, cell_get(rois, 4u * roi + 1u), cell_get(rois, 4u * roi + 3u), 0, bad);
        axis_place ax = place_axis(row, cell_get(rois, 4u * roi), cell_get(rois, 4u * roi + 2u), 1, bad);
        float v = 0.0;
        if (bad) place_fail(p);
        else v = bin_value(x, (uint(n) * row.r.channels + c) * plane, ay, ax, bin / row.r.bins[1], bin % row.r.bins[1]);
        cell_put(y, o, v);
    }
}
