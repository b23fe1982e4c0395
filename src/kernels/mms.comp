#version 460
//! variant real
//! variant fused -DEPILOGUE
//! variant int -DINTEGER
//! variant f64 -DFLOAT64
// mms.comp: product and convolution without shared memory: for software devices (a CPU behind Vulkan), where barriers
// cost more than they save, for transposed convolutions and those of few outputs that depthwise.comp does not take.
// Invocations lie along n; every invocation of a workgroup reads the same TM rows of A, which compilers turn into scalar
// loads. No division in the loop, one chunk.
// tile = (batch * tiles_n + tile_n) * tiles_m + tile_m, a tile being TM rows x (group * TN) columns.
// In convolutions a_k is the step of A from one input channel to the next.
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "lib/mm.glsl"

layout(constant_id = 12) const uint TM = 8u;
layout(constant_id = 13) const uint TN = 1u;
layout(constant_id = 15) const uint LOAD_B = 0u; // 4: B is a convolution's image, 5: a transposed convolution's

elem sums[TM * TN];
uint row_at[TM]; // element offset of each row of A; rows past the end repeat the last

void add_k(uint64_t a, uint at_a, elem fb[TN]) {
    [[unroll]] for (uint i = 0u; i < TM; i++) {
        elem fa = elem_load(a, row_at[i] + at_a);
        [[unroll]] for (uint j = 0u; j < TN; j++) sums[i * TN + j] = mac(fa, fb[j], sums[i * TN + j]);
    }
}

void add_matrix(row_ref row, uint64_t a, uint64_t b, uint n0) {
    uint column[TN], step = gl_WorkGroupSize.x;
    [[unroll]] for (uint j = 0u; j < TN; j++) column[j] = min(n0 + j * step, row.r.n - 1u) * row.r.b_n;
    uint k_count = row.r.k, b_k = row.r.b_k, a_k = row.r.a_k;
    for (uint k = 0u; k < k_count; k++) {
        elem fb[TN];
        [[unroll]] for (uint j = 0u; j < TN; j++) fb[j] = elem_load(b, column[j] + k * b_k);
        add_k(a, k * a_k, fb);
    }
}

// Input coordinate that output coordinate `at` (stride and pad applied) sees with a tap at `tap`; outside: out of range.
uint coordinate(int at, int tap, uint stride) {
    if (LOAD_B == 4u) return uint(at + tap);
    int from = at - tap;
    uint i = uint(from) / stride;
    return from < 0 || i * stride != uint(from) ? 0xffffffffu : i;
}

void add_image(row_ref row, uint64_t a, uint64_t b, uint n0) {
    int at_d[TN], at_h[TN], at_w[TN];
    uint step = gl_WorkGroupSize.x, stride_d = row.r.stride[0], stride_h = row.r.stride[1], stride_w = row.r.stride[2];
    [[unroll]] for (uint j = 0u; j < TN; j++) {
        uint n = min(n0 + j * step, row.r.n - 1u);
        uint w = n % row.r.out_size[2], rest = n / row.r.out_size[2];
        int h = int(rest % row.r.out_size[1]), d = int(rest / row.r.out_size[1]);
        at_d[j] = LOAD_B == 4u ? d * int(stride_d) - row.r.pad[0] : d + row.r.pad[0];
        at_h[j] = LOAD_B == 4u ? h * int(stride_h) - row.r.pad[1] : h + row.r.pad[1];
        at_w[j] = LOAD_B == 4u ? int(w * stride_w) - row.r.pad[2] : int(w) + row.r.pad[2];
    }
    uint channels = row.r.k / (KERNEL_D * KERNEL_H * KERNEL_W), a_k = row.r.a_k;
    uint in_d = row.r.in_size[0], in_h = row.r.in_size[1], in_w = row.r.in_size[2];
    int step_d = int(row.r.dilation[0]), step_h = int(row.r.dilation[1]), step_w = int(row.r.dilation[2]);
    for (uint c = 0u; c < channels; c++) {
        uint plane = c * row.r.b_k, at_a = c * a_k;
        for (int kd = 0; kd < int(KERNEL_D); kd++)
            for (int kh = 0; kh < int(KERNEL_H); kh++)
                for (int kw = 0; kw < int(KERNEL_W); kw++) {
                    elem fb[TN];
                    [[unroll]] for (uint j = 0u; j < TN; j++) {
                        uint d = coordinate(at_d[j], kd * step_d, stride_d), h = coordinate(at_h[j], kh * step_h, stride_h),
                             w = coordinate(at_w[j], kw * step_w, stride_w);
                        bool inside = d < in_d && h < in_h && w < in_w;
                        elem v = elem_load(b, inside ? plane + (d * in_h + h) * in_w + w : plane);
                        fb[j] = inside ? v : elem(0);
                    }
                    add_k(a, at_a, fb);
                    at_a++;
                }
    }
}

void main() {
    place p;
    if (!place_find(p)) return;
    row_ref row = row_ref(p.row);
    uint tile_m = p.tile % row.r.tiles_m, rest = p.tile / row.r.tiles_m;
    uint tile_n = rest % row.r.tiles_n, entry = rest / row.r.tiles_n;
    uint m0 = tile_m * TM, n0 = tile_n * TN * gl_WorkGroupSize.x + gl_LocalInvocationIndex;
    uint64_t a = operand_address(row.r.a, p) + batch_offset(row.r.a_batch, entry, row.r.batch) * type_bytes(TYPE);
    uint64_t b = operand_address(row.r.b, p) + batch_offset(row.r.b_batch, entry, row.r.batch) * type_bytes(TYPE);
    [[unroll]] for (uint i = 0u; i < TM; i++) {
        row_at[i] = min(m0 + i, row.r.m - 1u) * row.r.a_m;
        [[unroll]] for (uint j = 0u; j < TN; j++) sums[i * TN + j] = elem(0);
    }
    if (row.r.k > 0u) {
        if (LOAD_B >= 4u) add_image(row, a, b, n0);
        else add_matrix(row, a, b, n0);
    }
    finish_state s = finish_begin(row, p, entry);
    [[unroll]] for (uint j = 0u; j < TN; j++) {
        uint n = n0 + j * gl_WorkGroupSize.x;
        if (n >= row.r.n) continue;
        [[unroll]] for (uint i = 0u; i < TM; i++)
            if (m0 + i < row.r.m) finish(s, sums[i * TN + j], m0 + i, n);
    }
}
