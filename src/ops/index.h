/*
 * index.h: what Gather and Scatter share about index tensors.
 */
#ifndef BRAID_INDEX_H
#define BRAID_INDEX_H

#include "ops/op.h"

/* Position of an index on an axis of `dim` elements; INDEX when it lies outside [-dim, dim). */
braid_status index_resolve(int64_t index, int64_t dim, int64_t *out, braid_error *err);
/* Checks a constant index tensor, input i, at load: element k against dims[k % n_dims]; unknown dims pass. */
braid_status index_check_constant(infer *, int i, int n_dims, const int64_t *dims);
/* One row of a GatherND or ScatterND index: the offset in elements that it selects. */
braid_status index_offset(const tensor *indices, int64_t row, int depth, const int64_t *dims, const int64_t *strides,
                          int64_t *out, braid_error *err);

#endif
