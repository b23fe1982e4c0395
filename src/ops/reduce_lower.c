/*
 * reduce_lower.c: steps of reductions.
 */
#include "ops/reduce.h"

braid_status reduce_lower(lowering *l) {
    (void)l;
    return BRAID_UNSUPPORTED;
}

braid_status arg_lower(lowering *l) {
    (void)l;
    return BRAID_UNSUPPORTED;
}
