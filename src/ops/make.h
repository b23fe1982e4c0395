/*
 * make.h: operators that make elements from positions: ConstantOfShape, EyeLike, Range, Trilu, OneHot, ReverseSequence.
 */
#ifndef BRAID_MAKE_H
#define BRAID_MAKE_H

#include "ops/op.h"

/* Element i of a numeric tensor as an int64; floats truncate and saturate. */
int64_t make_index(const tensor *, int64_t i);
/* The two axes of ReverseSequence, checked: each 0 or 1, and not the same. */
braid_status reverse_axes(const node *, int *batch, int *time, braid_error *err);

braid_status constant_of_shape_lower(lowering *);
braid_status eye_like_lower(lowering *);
braid_status range_lower(lowering *);
braid_status trilu_lower(lowering *);
braid_status one_hot_lower(lowering *);
braid_status reverse_sequence_lower(lowering *);

#endif
