#ifndef BRAID_ROW_GRID_H
#define BRAID_ROW_GRID_H
#include "divide.h"

ROW_BEGIN(grid_sample)
    row_header header;
    operand x, grid, y;
    uint outputs;
    divider channels, points; /* points: positions of one batch element */
    uint size[3];             /* of x, depth first */
ROW_END(grid_sample)

ROW_BEGIN(affine_grid)
    row_header header;
    operand theta, y;
    uint outputs, points;
    uint size[4]; /* of the grid, depth first; the last is unused */
ROW_END(affine_grid)

#define GRID_MODE_LINEAR 0u
#define GRID_MODE_NEAREST 1u
#define GRID_MODE_CUBIC 2u
#define GRID_PAD_ZEROS 0u
#define GRID_PAD_BORDER 1u
#define GRID_PAD_REFLECTION 2u
#endif
