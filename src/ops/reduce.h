/*
 * reduce: what reduce.c (meaning, eval) and reduce_lower.c (steps) share.
 */
#ifndef BRAID_REDUCE_H
#define BRAID_REDUCE_H

#include "ops/row.h"

/* Numbers are the kernel's, kernels/reduce.comp. */
typedef enum reduce_kind {
    REDUCE_SUM,
    REDUCE_MEAN,
    REDUCE_MAX,
    REDUCE_MIN,
    REDUCE_PROD,
    REDUCE_L1,
    REDUCE_L2,
    REDUCE_LOG_SUM,
    REDUCE_LOG_SUM_EXP,
    REDUCE_SUM_SQUARE,
    REDUCE_LP,
    REDUCE_ARG_MAX,
    REDUCE_ARG_MIN
} reduce_kind;

/* What a node asks for, with everything static. */
typedef struct reduce_job {
    reduce_kind kind;
    double p; /* LP */
    row_view view;
} reduce_job;

/* Reduces x into y, whose elements are the rows of the view. */
braid_status reduce_eval(const reduce_job *, const tensor *x, tensor *y, arena *, braid_error *err);

/* Types are those of REDUCE_LP and before. */
reduce_kind reduce_kind_of(const node *);
/* Mask of the axes that the node reduces, from its constant axes input (content NULL: absent); any operator of this
   family. */
braid_status reduce_axes_mask(const node *, int rank, const tensor *axes, uint32_t *mask, braid_error *err);

braid_status reduce_lower(lowering *);
braid_status arg_lower(lowering *);

#endif
