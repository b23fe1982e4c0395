/*
 * rows.h: what the row kernels (reduce, softmax, norm, scan, sort) share. Included by C and GLSL.
 *
 * A workgroup holds COLS = GROUP / TEAM teams; a team solves one row. With SPEC_LAYOUT 1 a team's invocations are
 * neighbours (its row is contiguous), with 0 the same place of neighbouring teams is (rows lie side by side).
 */
#ifndef BRAID_ROWS_H
#define BRAID_ROWS_H

#define SPEC_TEAM 8
#define SPEC_LAYOUT 9
#define SPEC_KEEP 10   /* kept axes, one at least: a single row has one of size 1 */
#define SPEC_REDUCE 11 /* reduced axes, one at least */
#define SPEC_VALUES 12 /* elements an invocation keeps in registers, a multiple of 4; 0: they are read again */
#define SPEC_VECTOR 13 /* 1: rows begin at multiples of 4 elements, are that long, and have stride 1 */
#define SPEC_KIND 16
#define SPEC_TYPE_X 17
#define SPEC_TYPE_Y 18
#define SPEC_TYPE_SCALE 19
#define SPEC_TYPE_BIAS 20
#define SPEC_TYPE_SIDE 21
#define SPEC_STAGE 22
#define SPEC_FLAGS 23

#define ROWS_AXES 4

/* Strides in elements, outermost axis first. */
struct rows_view {
    uint rows, count; /* rows and elements of each */
    uint keep_size[ROWS_AXES], keep_stride[ROWS_AXES];
    uint reduce_size[ROWS_AXES], reduce_stride[ROWS_AXES];
};
#ifndef GL_core_profile
typedef struct rows_view rows_view;
#endif
#endif
