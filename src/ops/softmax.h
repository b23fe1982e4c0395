/*
 * softmax: what softmax.c (meaning, eval), softmax_lower.c (steps) and the losses share.
 */
#ifndef BRAID_SOFTMAX_H
#define BRAID_SOFTMAX_H

#include "ops/row.h"

/* View of a node's input. */
braid_status softmax_view(const node *, const tensor_type *x, row_view *out, braid_error *err);
braid_status softmax_lower(lowering *);
/* Kernel softmax over node input 0 into storage y of element type `to`; kind is the kernel's. */
braid_status softmax_step(lowering *, const row_view *, uint32_t kind, braid_type to, int32_t y, uint64_t bytes);

#endif
