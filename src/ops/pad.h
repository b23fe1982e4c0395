/*
 * pad.h: what other operators use of Pad.
 */
#ifndef BRAID_PAD_H
#define BRAID_PAD_H

#include "ops/op.h"

/* Steps that extend input 0 by begin[d] and end[d] zero elements along every axis d into output 0; negative ones crop. */
braid_status pad_lower_zeros(lowering *, const int64_t *begin, const int64_t *end);

#endif
