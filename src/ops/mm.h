/*
 * mm: the product problem that MatMul, Gemm, Conv, ConvTranspose and Einsum hand to the kernels mm, mms, mv and
 * depthwise.
 */
#ifndef BRAID_MM_H
#define BRAID_MM_H

#include "ops/conv.h"

/* C[batch][m][n] = sum over k of A[batch][m][k] * B[batch][k][n]; strides in elements, 0 in a broadcast batch dim.
   mm_dense fills C's for a dense C. */
typedef struct mm_shape {
    int64_t m, n, k;
    int64_t a_m, a_k, b_k, b_n, c_m, c_n;
    int n_batch;
    int64_t batch[BRAID_MAX_RANK], a_batch[BRAID_MAX_RANK], b_batch[BRAID_MAX_RANK], c_batch[BRAID_MAX_RANK],
        bias_batch[BRAID_MAX_RANK];
} mm_shape;

/* A tensor in a storage of the planner; bytes: the extent the kernel may touch. */
typedef struct mm_operand {
    int32_t storage; /* -1: absent */
    uint64_t bytes;
} mm_operand;

typedef struct mm_problem {
    mm_shape s;
    braid_type type;
    mm_operand a, b, c, bias;
    int64_t bias_m, bias_n;
    float alpha, beta;
    bool epilogue;          /* run the node's epilogue on C's elements */
    int row_axis, col_axis; /* of the epilogue, see map_lower_epilogue */
    int64_t groups;         /* batch entries that make one of the epilogue's batches, their rows following each other */
    const conv *image;      /* B is the image of this convolution (at most three axes); NULL: a matrix */
    int64_t images;         /* of `batch`, the outermost dim, that share A; 0, 1: none */
    bool fused;             /* set by mm_lower: the node has one to be run; kernels are built with it */
    bool free_order;        /* the number of problems may decide on the order of sums too */
    bool a_shared, b_shared; /* the same for all problems (kernels/abi.h): A or B */
    bool transposed;        /* of a ConvTranspose: A is [channel][m][tap], a_m the taps, a_k m * taps */
} mm_problem;

void mm_dense(mm_shape *);

/* Steps for a problem. UNSUPPORTED without touching err where the kernels do not reach: types, more than three batch
   dims that do not merge, indices of 2^31 and more. */
braid_status mm_lower(lowering *, const mm_problem *);

/* Node input i and output 0 as operands. */
mm_operand mm_operand_in(const lowering *, int i);
mm_operand mm_operand_out(const lowering *);

typedef enum mm_fold { FOLD_NONE, FOLD_N, FOLD_M } mm_fold; /* as in kernels/lib/mm.glsl */

/* How a problem is cut. chunk fixes the order of sums (kernels/lib/mm.glsl): it is a pure function of one lane's
   problem, the type and static traits of the device; the rest may depend on the number of problems too. */
typedef struct mm_cut {
    uint32_t bm, bn, bk, tm, tn; /* tile and part of an invocation */
    uint32_t chunk, splits;
    uint32_t group; /* invocations; of the direct kernel mms where bk is 0 */
    mm_fold fold;
    bool vector;    /* kernel mv: a workgroup has bm chunks side by side, bn columns, tm = all rows */
    bool depthwise; /* kernel depthwise: tm rows of the image of outputs an invocation */
} mm_cut;
/* For `problems` of this kind at once. */
mm_cut mm_choose(const device_traits *, const mm_problem *, uint32_t problems);
/* Does the device have the shared memory and invocations for a tile, with sums of this type. */
bool mm_fits(const device_traits *, const mm_cut *, braid_type);
size_t mm_tile_count(void);
mm_cut mm_tile(size_t i); /* the tiles that mm_choose picks from, group set, in one chunk */
/* The cut for kernel mv: false where it is not meant for the problem. Its chunk does not depend on `problems`. */
bool mm_vector_choose(const device_traits *, const mm_problem *, uint32_t problems, mm_cut *out);
/* A cut for it with this chunk and this many invocations along the columns; false where the device has no room. */
bool mm_vector_cut(const device_traits *, const mm_problem *, uint32_t chunk, uint32_t across, mm_cut *out);
/* The cut for kernel depthwise: false where it is not meant for the problem, however many there are. */
bool mm_depthwise_choose(const device_traits *, const mm_problem *, uint32_t problems, mm_cut *out);

#endif
