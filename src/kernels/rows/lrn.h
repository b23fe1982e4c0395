/* Row of kernel `lrn`: an element per invocation. x and y are [images, channels, places]. */
#ifndef BRAID_ROW_LRN_H
#define BRAID_ROW_LRN_H
#include "../abi.h"
#include "../lib/rows.h"

ROW_BEGIN(lrn)
    row_header header;
    operand x, y;
    uint elements, channels, places, low, high; /* the region of channel c is [c - low, c + high] */
    float scale, bias, beta;                    /* scale: alpha / size */
ROW_END(lrn)
#endif
