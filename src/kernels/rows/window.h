#ifndef BRAID_ROW_WINDOW_H
#define BRAID_ROW_WINDOW_H
#include "divide.h"

ROW_BEGIN(window)
    row_header header;
    operand x, y, indices; /* y and indices may be absent */
    uint outputs;
    uint size[3];   /* input, depth first */
    divider extent[3]; /* output */
    int begin[3];   /* padding */
    int end[3];
    float exponent; /* of LpPool */
ROW_END(window)

/* Values of the KIND constant. */
#define WINDOW_MAX 0u
#define WINDOW_AVERAGE 1u
#define WINDOW_LP 2u
/* Bits of the FLAGS constant. */
#define WINDOW_INDICES 1u
#define WINDOW_COLUMN_MAJOR 2u
#define WINDOW_COUNT_PAD 4u
#endif
