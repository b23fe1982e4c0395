/*
 * pool.h: the sliding window that MaxPool, AveragePool and LpPool share.
 *
 *   input axis    |begin|..........size..........|end|     explicit or automatic padding
 *   window o      starts at o * stride - begin and has `kernel` taps, `dilation` apart
 *
 * Spatial axes are always three: lower ranks get leading axes of size 1 with a window of 1.
 */
#ifndef BRAID_POOL_H
#define BRAID_POOL_H

#include "ops/op.h"

#define POOL_AXES 3

typedef struct pool_axis {
    int64_t kernel, stride, dilation, begin, end; /* pads as given; automatic ones are filled in by pool_fit */
} pool_axis;

typedef enum pool_padding { POOL_EXPLICIT, POOL_SAME_UPPER, POOL_SAME_LOWER, POOL_VALID } pool_padding;

typedef struct pool_window {
    int rank; /* spatial axes of the node, 1..3 */
    pool_padding padding;
    bool ceil;
    pool_axis axis[POOL_AXES]; /* the last `rank` are the node's */
} pool_window;

/* Taps of one output position that lie inside the input: at first, first + dilation, ...; `counted` also has those in
   the padding. */
typedef struct pool_taps {
    int64_t first, n, counted;
} pool_taps;

/* Reads and checks the attributes of a node that works on an input of this rank. */
braid_status pool_read(const node *, int rank, pool_window *, braid_error *err);
/* Output extent of axis `a` over an input of `size`; fills in automatic pads. MODEL or SHAPE where it has none. */
braid_status pool_fit(pool_window *, int a, int64_t size, int64_t *out, braid_error *err);
pool_taps pool_place(const pool_axis *, int64_t o, int64_t size);
/* The exponent of LpPool and kin, an int since opset 2 and a float before. */
double pool_exponent(const node *);

/* The list attribute `name` of exactly `count` values in [low, 2^31 - 1]; `fallback` where it is absent. */
braid_status pool_list(const node *, const char *name, int count, int64_t low, int64_t fallback, int64_t *out,
                       braid_error *err);
/* TYPE unless t is unknown, a float, or one of the two extra types (NONE: none). */
braid_status pool_float(const infer *, int i, braid_type extra, braid_type extra2);

braid_status pool_lower(lowering *);

#endif
