/* Pad: each output index is mapped to an input index, axis by axis. */
#ifndef BRAID_ROW_PAD_H
#define BRAID_ROW_PAD_H
#include "../abi.h"

#define PAD_RANK 8
#define PAD_SPEC_RANK SPEC_FIRST        /* dims used, the last ones of the arrays */
#define PAD_SPEC_UNIT (SPEC_FIRST + 1)  /* elements of a unit; units are wholly inside or outside */
#define PAD_SPEC_ITEMS (SPEC_FIRST + 2) /* units per invocation */
#define PAD_SPEC_MODE (SPEC_FIRST + 3)

#define PAD_CONSTANT 0u
#define PAD_REFLECT 1u
#define PAD_EDGE 2u
#define PAD_WRAP 3u

ROW_BEGIN(pad)
    row_header header;
    operand source;
    operand target;
    operand fill; /* absent: zero bits */
    uint count;   /* units */
    uint in_at;   /* elements */
    uint dims[PAD_RANK];      /* of the output, the last in units */
    uint magic[PAD_RANK], shift[PAD_RANK]; /* lib/divide.h, of dims */
    uint in_dims[PAD_RANK];   /* of the cropped input, the last in units */
    uint in_stride[PAD_RANK]; /* elements */
    int begin[PAD_RANK];      /* the last in units */
ROW_END(pad)

#endif
