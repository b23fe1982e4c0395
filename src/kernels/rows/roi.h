#ifndef BRAID_ROW_ROI_H
#define BRAID_ROW_ROI_H
#include "../abi.h"

ROW_BEGIN(roi)
    row_header header;
    operand x, rois, batch, y;
    uint outputs, batches, channels, sampling; /* sampling 0: adaptive */
    uint size[2], bins[2];                     /* height, width */
    float scale, offset;                       /* offset: half a pixel or 0 */
ROW_END(roi)
#endif
