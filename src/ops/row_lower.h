/*
 * row_lower: how rows are laid out on a device; shared by the lower functions of this family (kernels/lib/rows.h).
 */
#ifndef BRAID_ROW_LOWER_H
#define BRAID_ROW_LOWER_H

#include "kernels/abi.h"
#include "kernels/lib/rows.h"
#include "ops/row.h"

enum { ROW_LATENCY = 3 }; /* of a step that goes over rows: the invocations of a row meet */

typedef struct row_layout {
    uint32_t group, team, adjacent; /* team: invocations per row */
    uint32_t values;                /* registers per invocation that hold a whole row; 0: read again */
    uint32_t vector;                /* four elements at once */
    uint64_t tiles;                 /* of one pass over all rows */
} row_layout;

/* Kernel view of a row view. False where it does not fit: too many axes, or a row spans 2^31 elements. */
bool row_pack(const row_view *, rows_view *out);
/* May rows be read four elements at a time: contiguous, their starts and length multiples of four. */
bool row_vector(const row_view *);
/* Layout for kernels that want a row in registers (keep: at most that many elements per invocation) or that read it once
   (keep 0). A function of the view and the device alone. */
void row_layout_make(const device_traits *, const row_view *, bool vector, uint32_t keep, row_layout *out);
/* No more registers than this view's rows take: less code, but a pipeline for each length. */
void row_layout_tight(const row_view *, row_layout *);
/* That, where all problems together are much work: then code counts for more than dispatches. Changes no order of sums. */
void row_layout_many(const lowering *, const row_view *, row_layout *);
/* The specialization constants of a layout. */
braid_status row_layout_spec(lowering *, step *, const row_layout *, const row_view *);
/* The same with one invocation per row where rows lie side by side. */
void row_layout_sequential(const device_traits *, const row_view *, row_layout *out);
/* Operands of a step by node input and output; the step's bytes count what they add. */
braid_status row_read(lowering *, step *, size_t at, int in);
braid_status row_write(lowering *, step *, size_t at, int out);
/* Fills `epilogue e` of the row at `at_e` and y's columns at `at_cols` from node->epilogue, if there is one. y is seen
   as the matrix whose cut the operands allow; UNSUPPORTED when none does. */
braid_status row_epilogue(lowering *, step *, size_t at_cols, size_t at_e);
/* Type of the operator's own input i; NULL when absent. */
const tensor_type *row_in(const lowering *, int i);
uint32_t row_pow2(uint64_t at_least); /* smallest power of two that is not smaller */
bool row_is_float(braid_type); /* stored in 16 or 32 bits, computed in float32 */

#endif
