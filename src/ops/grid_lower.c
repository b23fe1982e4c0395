/*
 * grid_lower.c: the kernels of GridSample and AffineGrid.
 */
#include "kernels/rows/grid.h"
#include "ops/flat.h"
#include "ops/grid.h"
#include <stddef.h>

braid_status grid_sample_lower(lowering *l) {
    static const char *const kernels[5] = {"grid_sample_f32", "grid_sample_f16", "grid_sample_bf16", NULL, NULL};
    const tensor_type *x = lower_in(l, 0), *grid = lower_in(l, 1), *y = lower_out(l, 0);
    const char *kernel = flat_float_kernel(x->type, kernels);
    if (!kernel || grid->type != x->type || !flat_fits(x) || !flat_fits(grid) || !flat_fits(y))
        return BRAID_UNSUPPORTED;
    grid_attributes a;
    TRY(grid_read(l->node, &a, l->err));
    int rank = x->rank - 2;
    row_grid_sample row = {.channels = divider_of((uint32_t)x->dims[1])};
    uint32_t points = 1;
    int64_t outputs = y->dims[0] * y->dims[1];
    for (int i = 0; i < GRID_AXES; i++) {
        int axis = i - (GRID_AXES - rank);
        row.size[i] = axis < 0 ? 1 : (uint32_t)x->dims[axis + 2];
        if (axis < 0) continue;
        points *= (uint32_t)y->dims[axis + 2];
        outputs *= y->dims[axis + 2];
    }
    row.outputs = (uint32_t)outputs;
    row.points = divider_of(points);
    step *s = flat_step(l, kernel, &row, sizeof row, outputs);
    if (!s) return error_memory(l->err);
    TRY(lower_spec(l, s, FLAT_SPEC, (uint32_t)a.mode));
    TRY(lower_spec(l, s, FLAT_SPEC + 1, (uint32_t)a.padding));
    TRY(lower_spec(l, s, FLAT_SPEC + 2, a.align_corners));
    TRY(lower_spec(l, s, FLAT_SPEC + 3, (uint32_t)rank));
    TRY(lower_operand_in(l, s, offsetof(row_grid_sample, x), 0));
    TRY(lower_operand_in(l, s, offsetof(row_grid_sample, grid), 1));
    return lower_operand_out(l, s, offsetof(row_grid_sample, y), 0);
}

braid_status affine_grid_lower(lowering *l) {
    static const char *const kernels[5] = {"affine_grid_f32", "affine_grid_f16", "affine_grid_bf16", NULL, NULL};
    const tensor_type *theta = lower_in(l, 0), *y = lower_out(l, 0);
    const char *kernel = flat_float_kernel(theta->type, kernels);
    int64_t outputs;
    if (!kernel || !flat_fits(theta) || !flat_fits(y) || !tensor_type_count(y, &outputs)) return BRAID_UNSUPPORTED;
    int rank = y->rank - 2;
    row_affine_grid row = {.outputs = (uint32_t)outputs, .points = 1};
    for (int i = 0; i < GRID_AXES; i++) {
        int axis = i - (GRID_AXES - rank);
        row.size[i] = axis < 0 ? 1 : (uint32_t)y->dims[axis + 1];
        if (axis >= 0) row.points *= (uint32_t)y->dims[axis + 1];
    }
    step *s = flat_step(l, kernel, &row, sizeof row, outputs);
    if (!s) return error_memory(l->err);
    TRY(lower_spec(l, s, FLAT_SPEC, node_int(l->node, "align_corners", 0) != 0));
    TRY(lower_spec(l, s, FLAT_SPEC + 1, (uint32_t)rank));
    TRY(lower_operand_in(l, s, offsetof(row_affine_grid, theta), 0));
    return lower_operand_out(l, s, offsetof(row_affine_grid, y), 0);
}
