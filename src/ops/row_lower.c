/*
 * row_lower.c: steps of softmax, norms and scans.
 */
#include "ops/row.h"

braid_status softmax_lower(lowering *l) {
    (void)l;
    return BRAID_UNSUPPORTED;
}

braid_status scan_lower(lowering *l) {
    (void)l;
    return BRAID_UNSUPPORTED;
}
