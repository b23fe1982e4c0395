/*
 * roi_lower.c: the kernel of RoiAlign.
 */
#include "kernels/rows/roi.h"
#include "ops/flat.h"
#include "ops/roi.h"
#include <stddef.h>

braid_status roi_align_lower(lowering *l) {
    static const char *const kernels[5] = {"roi_align_f32", "roi_align_f16", "roi_align_bf16", NULL, NULL};
    const tensor_type *x = lower_in(l, 0), *y = lower_out(l, 0);
    const char *kernel = flat_float_kernel(x->type, kernels);
    roi_attributes a;
    int64_t outputs;
    if (!kernel || !flat_fits(x) || !flat_fits(y) || !tensor_type_count(y, &outputs)) return BRAID_UNSUPPORTED;
    if (x->dims[2] == 0 || x->dims[3] == 0) return BRAID_UNSUPPORTED;
    TRY(roi_read(l->node, &a, l->err));
    row_roi row = {.outputs = (uint32_t)outputs, .batches = (uint32_t)x->dims[0], .channels = (uint32_t)x->dims[1],
                   .sampling = (uint32_t)a.sampling, .size = {(uint32_t)x->dims[2], (uint32_t)x->dims[3]},
                   .bins = {(uint32_t)a.height, (uint32_t)a.width}, .scale = a.scale,
                   .offset = a.half_pixel ? 0.5f : 0};
    step *s = flat_step(l, kernel, &row, sizeof row, outputs);
    if (!s) return error_memory(l->err);
    TRY(lower_spec(l, s, FLAT_SPEC, a.max));
    TRY(lower_operand_in(l, s, offsetof(row_roi, x), 0));
    TRY(lower_operand_in(l, s, offsetof(row_roi, rois), 1));
    TRY(lower_operand_in(l, s, offsetof(row_roi, batch), 2));
    return lower_operand_out(l, s, offsetof(row_roi, y), 0);
}
