/*
 * grid.h: GridSample and AffineGrid. Spatial axes are three, as in pool.h; the last `rank` are the node's.
 */
#ifndef BRAID_GRID_H
#define BRAID_GRID_H

#include "ops/op.h"

#define GRID_AXES 3

typedef enum grid_mode { GRID_LINEAR, GRID_NEAREST, GRID_CUBIC } grid_mode;
typedef enum grid_padding { GRID_ZEROS, GRID_BORDER, GRID_REFLECTION } grid_padding;

typedef struct grid_attributes {
    grid_mode mode;
    grid_padding padding;
    bool align_corners;
} grid_attributes;

braid_status grid_read(const node *, grid_attributes *, braid_error *err);
braid_status grid_sample_lower(lowering *);
braid_status affine_grid_lower(lowering *);

#endif
