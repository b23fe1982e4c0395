/*
 * Row of kernel `scan_any`: running sums or products along the axis that a one-element tensor names when it runs.
 * An invocation takes a line; there are at most `lines` of them, whatever the axis.
 */
#ifndef BRAID_ROW_SCAN_ANY_H
#define BRAID_ROW_SCAN_ANY_H
#include "../abi.h"
#include "../lib/rows.h"

ROW_BEGIN(scan_any)
    row_header header;
    operand x, y, axis;
    uint dims[8];
    uint rank, elements;
ROW_END(scan_any)
#endif
