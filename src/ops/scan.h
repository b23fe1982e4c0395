/*
 * scan: what scan.c (meaning, eval) and scan_lower.c (steps) share.
 */
#ifndef BRAID_SCAN_H
#define BRAID_SCAN_H

#include "ops/row.h"

typedef struct scan_job {
    bool product, exclusive, reverse;
} scan_job;

scan_job scan_job_of(const node *);
/* View of x along the axis that the one-element tensor names. */
braid_status scan_view(const tensor_type *x, const tensor *axis, row_view *out, braid_error *err);
braid_status scan_lower(lowering *);

#endif
