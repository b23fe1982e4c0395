/*
 * Row of kernel `softmax`: y has x's shape. SPEC_KIND: 2 hardmax, 0 the others, which `kind` tells apart: 0 softmax, 1 its
 * logarithm.
 */
#ifndef BRAID_ROW_SOFTMAX_H
#define BRAID_ROW_SOFTMAX_H
#include "../abi.h"
#include "../lib/rows.h"

#define SOFTMAX_KIND_EXP 0u
#define SOFTMAX_KIND_LOG 1u
#define SOFTMAX_KIND_HARD 2u

ROW_BEGIN(softmax)
    row_header header;
    operand x, y;
    rows_view view;
    uint kind, reserved;
ROW_END(softmax)
#endif
