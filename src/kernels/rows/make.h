#ifndef BRAID_ROW_MAKE_H
#define BRAID_ROW_MAKE_H
#include "divide.h"

/* ConstantOfShape, EyeLike, Trilu. `on` and `off` are the bits of an element. */
ROW_BEGIN(generate)
    row_header header;
    operand x, shift, y; /* x: Trilu's input; shift: its k, absent where `k` is it */
    int64_t k;
    uint64_t on, off;
    uint outputs;
    divider rows, columns;
    uint reserved;
ROW_END(generate)

#define GENERATE_FILL 0u
#define GENERATE_EYE 1u
#define GENERATE_UPPER 2u
#define GENERATE_LOWER 3u

ROW_BEGIN(range)
    row_header header;
    operand start, delta, y;
    uint outputs, reserved;
ROW_END(range)

/* y is [outer][depth][inner], indices [outer][inner]. */
ROW_BEGIN(one_hot)
    row_header header;
    operand indices, values, y;
    uint outputs;
    divider depth, inner;
    uint reserved;
ROW_END(one_hot)

/* x and y are [dims[0]][dims[1]][inner]. */
ROW_BEGIN(reverse)
    row_header header;
    operand x, lengths, y;
    uint outputs, inner;
    uint dims[2];
ROW_END(reverse)
#endif
