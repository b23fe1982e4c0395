/*
 * Row of kernel `reduce`: one problem per row of the view and chunk of its elements.
 * SPEC_STAGE 0: x -> y. 1: x -> partials (one per chunk, [chunk][row]). 2: partials -> y, the view is of partials.
 */
#ifndef BRAID_ROW_REDUCE_H
#define BRAID_ROW_REDUCE_H
#include "../abi.h"
#include "../lib/epilogue.h"
#include "../lib/rows.h"

/* SPEC_KIND: reduce_kind of ops/reduce.h. */
#define REDUCE_KIND_SUM 0u
#define REDUCE_KIND_MEAN 1u
#define REDUCE_KIND_MAX 2u
#define REDUCE_KIND_MIN 3u
#define REDUCE_KIND_PROD 4u
#define REDUCE_KIND_L1 5u
#define REDUCE_KIND_L2 6u
#define REDUCE_KIND_LOG_SUM 7u
#define REDUCE_KIND_LOG_SUM_EXP 8u
#define REDUCE_KIND_SUM_SQUARE 9u
#define REDUCE_KIND_LP 10u
#define REDUCE_KIND_ARG_MAX 11u
#define REDUCE_KIND_ARG_MIN 12u

/* Bytes of a partial result: two values and an index, padded. */
#define REDUCE_PARTIAL_FLOAT 16u
#define REDUCE_PARTIAL_WIDE 24u

#define REDUCE_FLAG_LAST 1u     /* arg: the last of equals */
#define REDUCE_FLAG_UNSIGNED 2u /* integers compare unsigned */

ROW_BEGIN(reduce)
    row_header header;
    operand x, y;
    rows_view view;
    uint chunk, chunks;  /* elements of a chunk, chunks of a row */
    uint total;          /* elements that a whole row has, for the mean */
    float p;
    uint cols, reserved; /* of y as a matrix, for the epilogue */
    epilogue e;
ROW_END(reduce)
#endif
