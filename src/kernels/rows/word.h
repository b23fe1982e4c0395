/* rows/word.h: to[i] = multiply * from[i] + add on 32-bit words, from absent: 0. Fills and copies: memory tests, poison. */
#ifndef BRAID_ROW_WORD_H
#define BRAID_ROW_WORD_H
#include "../abi.h"

ROW_BEGIN(word)
    row_header header;
    operand to;
    operand from;
    uint n;        /* words of a lane */
    uint per_tile; /* words of a tile, at least 1 */
    uint multiply;
    uint add;
ROW_END(word)

#endif
