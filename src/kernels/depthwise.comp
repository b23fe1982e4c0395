#version 460
//! variant real
//! variant fused -DEPILOGUE
// depthwise.comp: convolutions of at most two axes whose groups have one channel in and one out each. An invocation makes
// TM outputs one below the other, so that a row of the image is read once for all of them and the taps stay in
// registers. Invocations walk along a row of outputs, then from one block of TM rows to the next, then from channel to
// channel: small images leave none of a workgroup idle. Taps are added in ascending order, one chunk, as mms does.
// The row's tiles_m are blocks of rows, tiles_n channels of all batches; a tile is a workgroup of invocations.
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "lib/mm.glsl"

layout(constant_id = 12) const uint TM = 1u;
layout(constant_id = 24) const uint STRIDE_H = 1u;
layout(constant_id = 25) const uint DILATION_H = 1u;
const uint TAPS = KERNEL_H * KERNEL_W;
const uint ROWS = (TM - 1u) * STRIDE_H + (KERNEL_H - 1u) * DILATION_H + 1u; // of the image, that TM outputs see

elem sums[TM], taps[TAPS];

// Adds what row y of those the outputs see holds for tap column kw.
void add(uint y, uint kw, elem v) {
    [[unroll]] for (uint i = 0u; i < TM; i++) {
        if (y < i * STRIDE_H) continue;
        uint from = y - i * STRIDE_H, kh = from / DILATION_H;
        if (kh < KERNEL_H && kh * DILATION_H == from) sums[i] = mac(taps[kh * KERNEL_W + kw], v, sums[i]);
    }
}

void add_image(row_ref row, uint64_t image, uint h, uint w) {
    int top = int(h * STRIDE_H) - row.r.pad[1], left = int(w * row.r.stride[2]) - row.r.pad[2];
    uint in_h = row.r.in_size[1], in_w = row.r.in_size[2], dilation = row.r.dilation[2];
    uint column[KERNEL_W];
    bool inside[KERNEL_W];
    [[unroll]] for (uint kw = 0u; kw < KERNEL_W; kw++) {
        column[kw] = uint(left + int(kw * dilation));
        inside[kw] = column[kw] < in_w;
        column[kw] = inside[kw] ? column[kw] : 0u;
    }
    [[unroll]] for (uint y = 0u; y < ROWS; y++) {
        uint at = uint(top + int(y));
        bool there = at < in_h;
        at = there ? at * in_w : 0u;
        [[unroll]] for (uint kw = 0u; kw < KERNEL_W; kw++) {
            elem v = elem_load(image, at + column[kw]);
            add(y, kw, there && inside[kw] ? v : elem(0));
        }
    }
}

void main() {
    place p;
    if (!place_find(p)) return;
    row_ref row = row_ref(p.row);
    uint at = p.tile * gl_WorkGroupSize.x + gl_LocalInvocationIndex, width = row.r.out_size[2], rest = at / width;
    uint w = at - rest * width, entry = rest / row.r.tiles_m, h = (rest - entry * row.r.tiles_m) * TM;
    if (entry >= row.r.tiles_n) return;
    uint64_t a = operand_address(row.r.a, p) + batch_offset(row.r.a_batch, entry, row.r.batch) * type_bytes(TYPE);
    uint64_t b = operand_address(row.r.b, p) + batch_offset(row.r.b_batch, entry, row.r.batch) * type_bytes(TYPE);
    [[unroll]] for (uint i = 0u; i < TAPS; i++) taps[i] = elem_load(a, i);
    // 0, but not for the compiler, which takes fma(a, b, 0) for a * b: -0 may stay then where a sum is +0.
    [[unroll]] for (uint i = 0u; i < TM; i++) sums[i] = uintBitsToFloat(row.r.reserved);
    add_image(row, b, h, w);
    finish_state s = finish_begin(row, p, entry);
    [[unroll]] for (uint i = 0u; i < TM; i++)
        if (h + i < row.r.out_size[1]) finish(s, sums[i], 0u, (h + i) * width + w);
}
