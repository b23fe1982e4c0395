/*
 * gather.h: the common form of Gather and GatherND, and how it reaches the GPU.
 *
 *     out[b][row][0..slice) = data[b * data_batch + sum over k of index[b * index_batch + row * depth + k] * strides[k]
 *                                  + 0..slice)
 */
#ifndef BRAID_GATHER_H
#define BRAID_GATHER_H

#include "ops/op.h"

typedef struct gather_shape {
    int64_t batches, rows, depth, slice;
    int64_t dims[BRAID_MAX_RANK], strides[BRAID_MAX_RANK]; /* of the indexed axes, in elements */
    int64_t data_batch, index_batch; /* elements between batches; index_batch 0: all share the indices */
} gather_shape;

braid_status gather_lower_rows(lowering *, const gather_shape *);
braid_status gather_elements_lower(lowering *);

#endif
