/* ScatterElements, ScatterND (ops/scatter.h) and TensorScatter. */
#ifndef BRAID_ROW_SCATTER_H
#define BRAID_ROW_SCATTER_H
#include "../abi.h"

#define SCATTER_RANK 8
#define SCATTER_SPEC_ITEMS SPEC_FIRST       /* units per invocation */
#define SCATTER_SPEC_WIDE (SPEC_FIRST + 1)  /* indices are int64 */
#define SCATTER_SPEC_UNIT (SPEC_FIRST + 2)  /* elements of a unit */
#define SCATTER_SPEC_DEPTH (SPEC_FIRST + 3) /* indices of a tuple; 0: one index for each update, along an axis */
#define SCATTER_SPEC_RANK (SPEC_FIRST + 4)  /* dims used without tuples, the last ones of the arrays; 0 with tuples */
#define SCATTER_SPEC_CLAIM (SPEC_FIRST + 5) /* 1: winner[slot] = largest update + 1, 0: slot[update] is stored */
#define SCATTER_SPEC_TYPE (SPEC_FIRST + 6)  /* element type */
#define SCATTER_SPEC_HOW (SPEC_FIRST + 7)   /* reduction, ops/scatter.h */
#define SCATTER_SPEC_CIRCULAR (SPEC_FIRST + 8)

/* Which slot each update goes to. */
ROW_BEGIN(scatter_slots)
    row_header header;
    operand index;
    operand slots; /* uint[updates], or with CLAIM uint[slots], preset to 0 */
    uint updates;
    uint axis_dim, axis_stride; /* without tuples */
    uint reserved;
    uint dims[SCATTER_RANK];    /* of the indexed axes; without tuples of the index tensor */
    uint strides[SCATTER_RANK]; /* slots between neighbours; 0 on the axis */
ROW_END(scatter_slots)

/* Each output unit is the data's or the winning update's. */
ROW_BEGIN(scatter_select)
    row_header header;
    operand data;
    operand updates;
    operand winners;
    operand target;
    uint count, slice; /* units */
    uint slice_magic, slice_shift; /* lib/divide.h */
ROW_END(scatter_select)

/* Each output element takes its updates one after another. */
ROW_BEGIN(scatter_reduce)
    row_header header;
    operand data;
    operand updates;
    operand slots;
    operand target;
    uint count, slice;
    uint candidates, candidate_stride; /* updates that may meet an element: every one, or those of its line */
    uint dims[SCATTER_RANK];    /* of the data, without tuples */
    uint limits[SCATTER_RANK];  /* of the index tensor; on the axis no limit */
    uint strides[SCATTER_RANK]; /* of the index tensor; 0 on the axis */
ROW_END(scatter_reduce)

ROW_BEGIN(tensor_scatter)
    row_header header;
    operand past;
    operand update;
    operand index; /* absent: 0 */
    operand target;
    uint count, inner; /* units */
    uint cache, fresh; /* positions: of the cache, of the update */
    uint rows;          /* runs of positions in a sample */
    uint inner_magic, inner_shift, cache_magic, cache_shift; /* lib/divide.h */
    uint reserved;
ROW_END(tensor_scatter)

#endif
