/*
 * Row of kernel `sort`: the first k elements of rows (or of chunks of rows) in order.
 * SPEC_STAGE 1 (bit): reads candidates instead of x. 2 (bit): writes candidates instead of values and indices.
 * Candidates are [row][chunk][k] items of SORT_ITEM bytes.
 */
#ifndef BRAID_ROW_SORT_H
#define BRAID_ROW_SORT_H
#include "../abi.h"
#include "../lib/rows.h"

#define SPEC_SORT_SIZE 24 /* items sorted at once, a power of two */
#define SPEC_SORT_ROWS 25 /* rows of a workgroup, a power of two */
#define SORT_ITEM 16u

#define SORT_FLAG_LARGEST 1u
#define SORT_FLAG_INTEGER 2u
#define SORT_FLAG_UNSIGNED 4u
#define SORT_STAGE_FROM 1u
#define SORT_STAGE_TO 2u

ROW_BEGIN(sort)
    row_header header;
    operand x, values, indices, from, to;
    rows_view view;                 /* of x */
    uint out_keep[ROWS_AXES];       /* strides of values and indices on the kept axes */
    uint out_reduce;                /* and along the sorted one */
    uint items, chunk, chunks, keep; /* items of a row, of a chunk; chunks; results of a chunk */
    uint reserved;
ROW_END(sort)
#endif
