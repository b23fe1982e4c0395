/*
 * mm: the product problem that MatMul, Gemm, Conv and Einsum hand to the mm and mv kernels.
 */
#ifndef BRAID_MM_H
#define BRAID_MM_H

#include "ops/op.h"

/* C[batch][m][n] = sum over k of A[batch][m][k] * B[batch][k][n]; strides in elements, 0 in a broadcast batch dim. */
typedef struct mm_shape {
    int64_t m, n, k;
    int64_t a_m, a_k, b_k, b_n;
    int n_batch;
    int64_t batch[BRAID_MAX_RANK], a_batch[BRAID_MAX_RANK], b_batch[BRAID_MAX_RANK];
} mm_shape;

#endif
