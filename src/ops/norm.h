/*
 * norm: what norm.c (meaning, eval) and norm_lower.c (steps) share.
 */
#ifndef BRAID_NORM_H
#define BRAID_NORM_H

#include "ops/row.h"

/* Numbers are the kernel's, kernels/norm.comp. */
typedef enum norm_kind {
    NORM_STANDARD, /* (x - mean) / sqrt(variance + epsilon) */
    NORM_RMS,      /* x / sqrt(mean square + epsilon) */
    NORM_MVN,      /* (x - mean) / (sqrt(variance) + epsilon) */
    NORM_L1,       /* x / sum |x|, 0 where that is 0 */
    NORM_L2        /* x / sqrt(sum x^2), 0 where that is 0 */
} norm_kind;

/* A norm with everything static; extra operand 0 of the view is the scale, 1 the bias. */
typedef struct norm_job {
    norm_kind kind;
    double epsilon;
    row_view view;
} norm_job;

/* scale, bias: types of inputs 1 and 2, NULL when absent. */
braid_status norm_job_make(const node *, const tensor_type *x, const tensor_type *scale, const tensor_type *bias,
                           norm_job *out, braid_error *err);
braid_status norm_lower(lowering *);
braid_status lrn_lower(lowering *);

#endif
