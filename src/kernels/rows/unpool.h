#ifndef BRAID_ROW_UNPOOL_H
#define BRAID_ROW_UNPOOL_H
#include "../abi.h"

#define UNPOOL_RANK 5

ROW_BEGIN(unpool)
    row_header header;
    operand x, index, marks, y;
    uint outputs, room;      /* room: elements of dims `inner`, what an index may name */
    uint inner[UNPOOL_RANK]; /* the tensor that indices speak of */
    uint outer[UNPOOL_RANK]; /* y */
ROW_END(unpool)

/* Values of the PASS constant. */
#define UNPOOL_CLEAR 0u
#define UNPOOL_MARK 1u
#define UNPOOL_TAKE 2u
#endif
