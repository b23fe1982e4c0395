/*
 * Row of kernel `loss`: scores are logarithms [images, classes, places], labels [images, places].
 * SPEC_STAGE 0: a loss per label into y. 1: (loss, weight) sums of chunks of labels into partials. 2: y from partials.
 */
#ifndef BRAID_ROW_LOSS_H
#define BRAID_ROW_LOSS_H
#include "../abi.h"
#include "../lib/rows.h"

/* SPEC_KIND 0: sum, 1: mean. */
#define LOSS_FLAG_IGNORE 1u
#define LOSS_FLAG_WEIGHTS 2u
#define SPEC_TYPE_LABEL SPEC_TYPE_SIDE

ROW_BEGIN(loss)
    row_header header;
    operand scores, labels, weights, partials, y;
    int64_t ignore;
    uint labels_count, classes, places, chunk; /* chunk: labels of a tile; stage 2: number of partials */
ROW_END(loss)
#endif
