/*
 * loss: what loss.c (meaning, eval) and loss_lower.c (steps) share.
 */
#ifndef BRAID_LOSS_H
#define BRAID_LOSS_H

#include "ops/row.h"

typedef enum loss_reduction { LOSS_NONE, LOSS_SUM, LOSS_MEAN } loss_reduction;

/* A loss with everything static: scores [images, classes, places], labels [images, places]. */
typedef struct loss_job {
    loss_reduction reduction;
    bool log_softmax; /* scores are no logarithms yet */
    bool ignores;
    int64_t ignore;
    int64_t images, classes, places;
} loss_job;

braid_status loss_job_make(const node *, const tensor_type *scores, loss_job *out, braid_error *err);
braid_status loss_lower(lowering *);

#endif
