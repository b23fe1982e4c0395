/*
 * sort_lower.c: steps of TopK.
 */
#include "ops/sort.h"

braid_status top_lower(lowering *l) {
    (void)l;
    return BRAID_UNSUPPORTED;
}
