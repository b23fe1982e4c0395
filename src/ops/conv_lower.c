/*
 * conv_lower.c: Conv and ConvTranspose as product problems: m is an output channel of a group, n an output pixel, k an
 * input channel of the group and a tap of the kernel; images and groups are batch dims.
 */
#include "ops/mm.h"

static int64_t volume(int n, const int64_t *dims) {
    int64_t count = 1;
    for (int i = 0; i < n; i++) count *= dims[i];
    return count;
}

/* Kernel 1, stride 1, no pads: an output pixel is an input pixel, and the image a matrix. */
static bool is_pointwise(const conv *c) {
    for (int i = 0; i < c->axes; i++)
        if (c->kernel[i] != 1 || c->stride[i] != 1 || c->begin[i] != 0 || c->end[i] != 0) return false;
    return true;
}

/* What both kinds share; taps: volume of the kernel. */
static mm_problem problem_new(const lowering *l, const conv *c, int64_t taps) {
    int64_t m = c->outputs / c->groups, channels = c->channels / c->groups, plane = volume(c->axes, c->in);
    mm_problem p = {.s = {.m = m,
                          .n = volume(c->axes, c->out),
                          .k = channels * taps,
                          .a_m = channels * taps,
                          .a_k = 1,
                          .b_k = plane,
                          .b_n = 1,
                          .n_batch = 2,
                          .batch = {c->batch, c->groups},
                          .a_batch = {0, m * channels * taps},
                          .b_batch = {c->channels * plane, channels * plane},
                          .bias_batch = {0, m}},
                    .type = lower_in(l, 0)->type,
                    .a = mm_operand_in(l, 1),
                    .b = mm_operand_in(l, 0),
                    .c = mm_operand_out(l),
                    .bias = mm_operand_in(l, 2),
                    .bias_m = 1,
                    .alpha = 1,
                    .beta = 1,
                    .epilogue = true,
                    .row_axis = 1,
                    .col_axis = 2,
                    .groups = c->groups,
                    .images = c->batch,
                    .image = c};
    mm_dense(&p.s);
    return p;
}

braid_status conv_lower(lowering *l) {
    conv c;
    TRY(conv_shape(l->node, lower_in(l, 0), lower_in(l, 1), &c, l->err));
    mm_problem p = problem_new(l, &c, volume(c.axes, c.kernel));
    if (is_pointwise(&c))
        p.image = NULL;
    else if (c.axes > 3)
        return BRAID_UNSUPPORTED;
    return mm_lower(l, &p);
}

braid_status conv_transpose_lower(lowering *l) {
    conv c;
    TRY(conv_transpose_shape(l->node, lower_in(l, 0), lower_in(l, 1), &c, l->err));
    if (c.axes > 3) return BRAID_UNSUPPORTED;
    int64_t taps = volume(c.axes, c.kernel);
    mm_problem p = problem_new(l, &c, taps);
    p.transposed = true;
    p.s.a_m = taps;
    p.s.a_k = p.s.m * taps;
    return mm_lower(l, &p);
}
