/*
 * Row of kernel `scan`: running sums or products along rows.
 * SPEC_STAGE 0: whole rows. 1: totals of chunks, y is [chunk][row]. 2: chunks that begin with offsets[chunk][row].
 */
#ifndef BRAID_ROW_SCAN_H
#define BRAID_ROW_SCAN_H
#include "../abi.h"
#include "../lib/rows.h"

/* SPEC_KIND 0: sum, 1: product. */
#define SCAN_FLAG_EXCLUSIVE 1u
#define SCAN_FLAG_REVERSE 2u

ROW_BEGIN(scan)
    row_header header;
    operand x, y, offsets;
    rows_view view;
    uint chunk, reserved; /* elements of a chunk */
ROW_END(scan)
#endif
