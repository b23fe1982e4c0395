/*
 * norm_lower.c: steps of the norms.
 */
#include "ops/norm.h"

braid_status norm_lower(lowering *l) {
    (void)l;
    return BRAID_UNSUPPORTED;
}

braid_status lrn_lower(lowering *l) {
    (void)l;
    return BRAID_UNSUPPORTED;
}
