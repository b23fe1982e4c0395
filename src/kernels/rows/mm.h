/*
 * rows/mm.h: row of the product kernels mm, mms, mv and mmsum:
 *
 *     C[b][m][n] = epilogue(alpha * sum over k of A[b][m][k] * B[b][k][n] + beta * bias[b][m][n])
 *
 * Strides count elements; indices within one batch entry stay below 2^31, batch offsets are 64 bits wide. Up to three
 * batch dims, outermost first; unused ones are 1.
 * In convolutions B is the image: n is an output pixel, k runs over (channel, depth, row, column of the kernel).
 */
#ifndef BRAID_ROW_MM_H
#define BRAID_ROW_MM_H
ROW_BEGIN(mm)
    row_header header;
    operand a;
    operand b;
    operand c;
    operand bias;    /* Gemm's C, a convolution's bias; absent: none */
    operand partial; /* sums of chunks [split][batch][m][n] in the accumulator's type, where k is split */
    epilogue e;
    uint64_t a_batch[3];
    uint64_t b_batch[3];
    uint64_t c_batch[3];
    uint64_t bias_batch[3];
    uint batch[3];
    uint m;
    uint n;
    uint k;
    uint chunk;  /* k is summed in chunks of this length; see lib/mm.glsl */
    uint splits; /* number of chunks where every chunk has its own workgroups, else 1 */
    uint tiles_m;
    uint tiles_n;
    uint a_m;
    uint a_k;
    uint b_k;
    uint b_n;
    uint c_m;
    uint c_n;
    uint bias_m;
    uint bias_n;
    float alpha;
    float beta;
    uint in_size[3]; /* depth, height, width; 1 where the image has fewer axes */
    uint out_size[3];
    uint stride[3];
    uint dilation[3];
    int pad[3];
    uint groups;     /* batch entries that make one batch of the epilogue, their rows following each other */
    uint images;     /* FOLD: outermost batch entries that are folded too, else 1 */
    uint reserved;   /* 0, which no compiler knows (depthwise.comp) */
ROW_END(mm)
#endif
