/*
 * product: the matrix product on the host that the evals of MatMul, Gemm, Conv and Einsum share.
 *
 *     C[m][n] = sum over k of A[m][k] * B[k][n]
 *
 * Floating-point elements are summed in double, in ascending k. Integers are summed in uint64 (`integer`), which wraps
 * as every integer type does once the low bits are stored. Blocked for cache; tiles of C are independent, so running
 * them on several threads changes no bit.
 */
#ifndef BRAID_PRODUCT_H
#define BRAID_PRODUCT_H

#include "ops/op.h"

/* One number on its way: .f in floating-point products, .u in integer ones. */
typedef union cell {
    double f;
    uint64_t u;
} cell;

typedef struct product {
    int64_t m, n, k;
    bool integer;
    /* A and B: element (i, j) lies at `at + i * row + j * column`. */
    braid_type a_type, b_type;
    const void *a, *b;
    int64_t a_at, a_row, a_column, b_at, b_row, b_column;
    /* Where B is not such a matrix: writes B[k0 + i][n0 + j] to to[i * stride + j]. NULL: strided. */
    void (*load_b)(const void *user, int64_t k0, int64_t kn, int64_t n0, int64_t nn, cell *to, int64_t stride);
    /* Takes C[m][n0 .. n0 + nn). Called once for every element, from any thread. */
    void (*store)(void *user, int64_t m, int64_t n0, int64_t nn, const cell *sums);
    void *user;
    /* Set by product_prepare. */
    size_t workers, cells;
    cell *scratch;
} product;

/* Allocates scratch for a product of up to this m, n and k; then product_run may be called any number of times, with
   smaller sizes and other pointers too. HOST_MEMORY. */
braid_status product_prepare(product *, arena *, braid_error *err);
void product_run(product *);

/* Reads `count` elements at `at`, `at + stride`, ... of a tensor's data; writes consecutive ones. */
void cells_load(cell *to, bool integer, braid_type, const void *data, int64_t at, int64_t stride, int64_t count);
void cells_store(const cell *from, bool integer, braid_type, void *data, int64_t at, int64_t count);

#endif
