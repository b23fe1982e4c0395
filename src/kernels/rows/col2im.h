#ifndef BRAID_ROW_COL2IM_H
#define BRAID_ROW_COL2IM_H
#include "../abi.h"

/* Three spatial axes, depth first; steps: blocks along each. */
ROW_BEGIN(col2im)
    row_header header;
    operand x, y;
    uint outputs, reserved;
    uint image[3];
    int block[3], steps[3], stride[3], dilation[3], pad[3];
ROW_END(col2im)
#endif
