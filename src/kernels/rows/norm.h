/*
 * Row of kernel `norm`: y = (x - mean) * inverse * scale + bias over rows of x; y has x's shape.
 * Scale and bias have strides of their own on the view's axes.
 * SPEC_STAGE 0: whole rows. 1: (mean, what is missing in it, sum of squares around both) of
 * chunks into partials [row][chunk]. 2: chunks of y.
 */
#ifndef BRAID_ROW_NORM_H
#define BRAID_ROW_NORM_H
#include "../abi.h"
#include "../lib/epilogue.h"
#include "../lib/rows.h"

/* SPEC_KIND: norm_kind of ops/norm.h. */
#define NORM_KIND_STANDARD 0u
#define NORM_KIND_RMS 1u
#define NORM_KIND_MVN 2u
#define NORM_KIND_L1 3u
#define NORM_KIND_L2 4u

/* SPEC_FLAGS: how elements along a row find their scale and bias. */
#define NORM_FLAG_SCALE 1u      /* present */
#define NORM_FLAG_BIAS 2u
#define NORM_FLAG_SCALE_ROW 4u  /* one for the whole row */
#define NORM_FLAG_BIAS_ROW 8u
#define NORM_FLAG_SCALE_UNIT 16u /* with SPEC_VECTOR: stride 1, aligned */
#define NORM_FLAG_BIAS_UNIT 32u
#define NORM_FLAG_SCALE_FOUR 64u /* with SPEC_VECTOR: four neighbours share it */
#define NORM_FLAG_BIAS_FOUR 128u

ROW_BEGIN(norm)
    row_header header;
    operand x, y, scale, bias, mean, inverse, partials;
    rows_view view;
    uint scale_keep[ROWS_AXES], scale_reduce[ROWS_AXES];
    uint bias_keep[ROWS_AXES], bias_reduce[ROWS_AXES];
    float epsilon;
    uint cols; /* of y as a matrix, for the epilogue */
    uint chunk, chunks; /* elements of a chunk, chunks of a row */
    epilogue e;
ROW_END(norm)
#endif
