/*
 * loss_lower.c: steps of the losses.
 */
#include "ops/loss.h"

braid_status loss_lower(lowering *l) {
    (void)l;
    return BRAID_UNSUPPORTED;
}
