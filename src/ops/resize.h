/*
 * resize.h: Resize as independent axes. Every mode comes down to one table per axis:
 *
 *     output o  =  sum over t of weight[o][t] * input[clamp(first[o] + t, 0, size - 1)]
 *
 * and the output of several axes to the product of their weights. A position that lies outside the region of interest
 * has first = RESIZE_OUTSIDE and makes the output extrapolation_value, whatever the other axes say.
 */
#ifndef BRAID_RESIZE_H
#define BRAID_RESIZE_H

#include "ops/op.h"

#define RESIZE_OUTSIDE INT32_MIN

typedef enum resize_mode { RESIZE_NEAREST, RESIZE_LINEAR, RESIZE_CUBIC } resize_mode;
typedef enum resize_coordinates {
    RESIZE_HALF_PIXEL, RESIZE_HALF_PIXEL_SYMMETRIC, RESIZE_PYTORCH_HALF_PIXEL, RESIZE_ALIGN_CORNERS, RESIZE_ASYMMETRIC,
    RESIZE_TF_CROP, RESIZE_TF_HALF_PIXEL
} resize_coordinates;
/* SIMPLE is that of opset 10: down for growing axes, up for shrinking ones. */
typedef enum resize_rounding {
    RESIZE_PREFER_FLOOR, RESIZE_PREFER_CEIL, RESIZE_FLOOR, RESIZE_CEIL, RESIZE_SIMPLE
} resize_rounding;
typedef enum resize_policy { RESIZE_STRETCH, RESIZE_NOT_LARGER, RESIZE_NOT_SMALLER } resize_policy;

typedef struct resize_attributes {
    resize_mode mode;
    resize_coordinates coordinates;
    resize_rounding rounding;
    resize_policy policy;
    bool antialias, exclude_outside;
    double cubic_a, extrapolation;
    int n_axes;
    int axes[BRAID_MAX_RANK]; /* that scales, sizes and roi speak of */
} resize_attributes;

typedef struct resize_axis {
    int64_t in, out;
    double scale;   /* output per input */
    double width;   /* of the output; a fraction where it comes from a scale */
    double roi[2];
    bool same;      /* the axis is copied */
} resize_axis;

/* What the inputs say; NULL: absent. Lists have n_axes elements, roi twice as many. */
typedef struct resize_inputs {
    const float *scales;
    const int64_t *sizes;
    const double *roi;
} resize_inputs;

typedef struct resize_table {
    int64_t out;
    int taps;
    int32_t *first; /* [out] */
    double *weight; /* [out][taps] */
} resize_table;

braid_status resize_read(const node *, int rank, resize_attributes *, braid_error *err);
/* Extents and scales of all axes of an input with known dims. */
braid_status resize_fit(const resize_attributes *, int rank, const int64_t *dims, const resize_inputs *,
                        resize_axis out[BRAID_MAX_RANK], braid_error *err);
braid_status resize_table_new(arena *, const resize_attributes *, const resize_axis *, resize_table *, braid_error *err);
/* Takes the content of inputs 1..3 (NULL: absent; an empty tensor counts as absent) and checks their types and sizes. */
braid_status resize_take(const resize_attributes *, arena *, const tensor *roi, const tensor *scales,
                         const tensor *sizes, resize_inputs *, braid_error *err);

braid_status resize_eval(eval *);
braid_status resize_lower(lowering *);

#endif
