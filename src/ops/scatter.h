/*
 * scatter.h: the common form of ScatterElements and ScatterND.
 *
 * Update t goes to a slot, a run of `slice` output elements; ScatterElements has slices of one element. Where several
 * updates meet in a slot, they are taken in the order of t: the last one wins, or they are reduced one after another.
 */
#ifndef BRAID_SCATTER_H
#define BRAID_SCATTER_H

#include "ops/op.h"

typedef enum scatter_how { SCATTER_NONE, SCATTER_ADD, SCATTER_MUL, SCATTER_MAX, SCATTER_MIN } scatter_how;

typedef struct scatter_shape {
    scatter_how how;
    bool each;     /* ScatterElements */
    int axis;      /* of ScatterElements */
    int64_t depth; /* of ScatterND: indices of a tuple */
    int64_t updates, slots, slice;
} scatter_shape;

braid_status scatter_describe(const node *, const tensor_type *data, const tensor_type *index, scatter_shape *,
                              braid_error *err);
braid_status scatter_lower(lowering *);
braid_status tensor_scatter_lower(lowering *);

#endif
