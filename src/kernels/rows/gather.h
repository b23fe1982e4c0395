/* Rows of data picked by index tuples (ops/gather.h); slice, strides and data_batch count units. */
#ifndef BRAID_ROW_GATHER_H
#define BRAID_ROW_GATHER_H
#include "../abi.h"

#define GATHER_RANK 8
#define GATHER_SPEC_DEPTH SPEC_FIRST       /* indices of a tuple */
#define GATHER_SPEC_UNIT (SPEC_FIRST + 1)  /* elements of a unit */
#define GATHER_SPEC_ITEMS (SPEC_FIRST + 2) /* units per invocation */
#define GATHER_SPEC_WIDE (SPEC_FIRST + 3)  /* indices are int64 */

ROW_BEGIN(gather)
    row_header header;
    operand data;
    operand index;
    operand target;
    uint count; /* units of the output */
    uint rows, slice;
    uint data_batch, index_batch;
    uint reserved;
    uint rows_magic, rows_shift, slice_magic, slice_shift; /* lib/divide.h */
    uint dims[GATHER_RANK];
    uint strides[GATHER_RANK];
ROW_END(gather)

/* GatherElements: one index for each output element. */
#define GATHER_EACH_SPEC_RANK SPEC_FIRST

ROW_BEGIN(gather_each)
    row_header header;
    operand data;
    operand index;
    operand target;
    uint count;
    uint axis_dim, axis_stride;
    uint reserved;
    uint dims[GATHER_RANK]; /* of the indices; the last ones of the arrays are used */
    uint magic[GATHER_RANK], shift[GATHER_RANK]; /* of dims */
    uint strides[GATHER_RANK]; /* of the data; 0 for the axis */
ROW_END(gather_each)

#endif
