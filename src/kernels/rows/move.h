/* A strided copy (ops/region.h), at most 8 dims, counted in elements; the last dim is counted in units. */
#ifndef BRAID_ROW_MOVE_H
#define BRAID_ROW_MOVE_H
#include "../abi.h"

#define MOVE_RANK 8
#define MOVE_SPEC_RANK SPEC_FIRST        /* dims used, the last ones of the arrays */
#define MOVE_SPEC_UNIT (SPEC_FIRST + 1)  /* elements of a unit: 1, or 16 bytes' worth */
#define MOVE_SPEC_ITEMS (SPEC_FIRST + 2) /* units per invocation */
#define MOVE_SPEC_SIDE (SPEC_FIRST + 3)  /* of a transposed tile */

ROW_BEGIN(move)
    row_header header;
    operand source;
    operand target;
    uint count; /* units */
    uint in_at, out_at;
    uint reserved;
    uint dims[MOVE_RANK];
    uint magic[MOVE_RANK], shift[MOVE_RANK]; /* lib/divide.h, of dims */
    int in_stride[MOVE_RANK];
    int out_stride[MOVE_RANK];
ROW_END(move)

#endif
