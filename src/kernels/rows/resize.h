#ifndef BRAID_ROW_RESIZE_H
#define BRAID_ROW_RESIZE_H
#include "divide.h"

/* The tensor is [outer][a][b][c][inner]; a, b and c go through a table, of int first[out] and then, in the weighted
   kernel, float weight[out][taps]. */
ROW_BEGIN(resize)
    row_header header;
    operand x, y, table[3];
    uint outputs;
    divider inner, extent[3];
    uint size[3];
    uint extrapolation[2]; /* the element's bits, low word first; of the weighted kernel a float's */
ROW_END(resize)

#define RESIZE_OFF (-0x7fffffff - 1) /* first of a position outside the region of interest */
#endif
