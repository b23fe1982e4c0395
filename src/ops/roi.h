/*
 * roi.h: RoiAlign and MaxRoiPool.
 */
#ifndef BRAID_ROI_H
#define BRAID_ROI_H

#include "ops/op.h"

/* Most sampling points of a bin along an axis; a larger region fails with INDEX, here and in the kernel. */
#define ROI_SAMPLES 4096

typedef struct roi_attributes {
    bool max, half_pixel;
    int64_t height, width, sampling; /* sampling 0: adaptive */
    float scale;
} roi_attributes;

braid_status roi_read(const node *, roi_attributes *, braid_error *err);
braid_status roi_align_lower(lowering *);

#endif
