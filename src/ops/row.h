/*
 * row: tensors seen as rows. The operators of this family (reductions, softmax, norms, arg, cumulative, sort) solve one
 * problem per *row*: the elements along the reduced axes at one place of the kept axes.
 *
 *     [2, 3, 4, 5] reduced over {1, 2}:   keep 2 x 5 (strides 60, 1)   reduce 12 (stride 5)
 *
 * Neighbouring axes of the same sort are merged and axes of size 1 dropped, so rank 8 gives at most four of each (more
 * only where a broadcast operand keeps axes apart).
 */
#ifndef BRAID_ROW_H
#define BRAID_ROW_H

#include "ops/op.h"

enum { ROW_EXTRA = 2, ROW_RUN = 256 };

typedef struct row_axis {
    int64_t size, stride;     /* stride in elements */
    int64_t extra[ROW_EXTRA]; /* strides of further operands (scale, bias) */
} row_axis;

typedef struct row_view {
    int n_keep, n_reduce;
    row_axis keep[BRAID_MAX_RANK], reduce[BRAID_MAX_RANK]; /* outermost first */
    int64_t rows, length;                      /* products of the sizes */
} row_view;

/* View of a static shape; bit i of `reduced` marks axis i. */
void row_view_make(int rank, const int64_t *dims, uint32_t reduced, row_view *out);
/* The same with strides of further operands per axis of dims; NULL: all 0. */
void row_view_extra(int rank, const int64_t *dims, uint32_t reduced, int64_t *const extra[ROW_EXTRA], row_view *out);
/* Offset in elements of the i-th place along n axes, counted in C order. */
int64_t row_offset(const row_axis *axes, int n, int64_t i);
/* The same for further operand k. */
int64_t row_offset_extra(const row_axis *axes, int n, int64_t i, int k);
/* Strides of `operand`, right-aligned and broadcast against `dims`, per axis of dims; SHAPE when it does not fit. */
braid_status row_broadcast(const tensor_type *operand, int rank, const int64_t *dims, int64_t *strides,
                           const char *what, braid_error *err);

/* Bits of a list of axes; each in [-rank, rank), none twice. */
braid_status row_mask(int count, const int64_t *axes, int rank, uint32_t *mask, braid_error *err);

/* Elements [at, at + n) as doubles or int64; any numeric type of 8 bits or more. */
void row_load_f64(const tensor *, int64_t at, int64_t n, double *out);
void row_load_i64(const tensor *, int64_t at, int64_t n, int64_t *out);
void row_store_f64(tensor *, int64_t at, int64_t n, const double *v);
void row_store_i64(tensor *, int64_t at, int64_t n, const int64_t *v);
/* The row of a view that starts at element `base`, to and from a dense array of view->length. */
void row_gather(const tensor *, int64_t base, const row_view *, double *out);
void row_scatter(tensor *, int64_t base, const row_view *, const double *v);
void row_gather_i64(const tensor *, int64_t base, const row_view *, int64_t *out);
void row_scatter_i64(tensor *, int64_t base, const row_view *, const int64_t *v);
/* The whole tensor as doubles, in the arena; NULL on failure. */
double *row_doubles(arena *, const tensor *);
/* Elements of a static tensor. */
int64_t row_count(const tensor *);

/* Is t one of the types of the set (bits 1 << type)? Unknown passes. TYPE error names the input. */
braid_status row_types(infer *, int i, uint64_t set);
#define ROW_TYPE(t) ((uint64_t)1 << BRAID_##t)
#define ROW_FLOATS (ROW_TYPE(FLOAT32) | ROW_TYPE(FLOAT16) | ROW_TYPE(FLOAT64) | ROW_TYPE(BFLOAT16))
#define ROW_INTEGERS                                                                                          \
    (ROW_TYPE(INT8) | ROW_TYPE(INT16) | ROW_TYPE(INT32) | ROW_TYPE(INT64) | ROW_TYPE(UINT8) | ROW_TYPE(UINT16) | \
     ROW_TYPE(UINT32) | ROW_TYPE(UINT64))

/* At import: moves the int or ints attribute `name` (when present) into input `at` as a constant. */
braid_status row_ints_to_input(upgrade *, const char *name, int at);

#endif
