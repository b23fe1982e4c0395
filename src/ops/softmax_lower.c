/*
 * softmax_lower.c: the step of the softmax family.
 */
#include "ops/softmax.h"

#include "kernels/rows/softmax.h"
#include "ops/row_lower.h"

#include <stddef.h>

braid_status softmax_step(lowering *l, const row_view *view, uint32_t kind, braid_type to, int32_t y, uint64_t bytes) {
    const tensor_type *x = lower_in(l, 0);
    row_layout layout;
    row_softmax row = {.kind = kind};
    if (!row_is_float(x->type) || !row_pack(view, &row.view)) return BRAID_UNSUPPORTED;
    if (view->rows == 0 || view->length == 0) return BRAID_OK;
    row_layout_make(l->device, view, row_vector(view), l->device->software ? 16 : 32, &layout);
    row_layout_many(l, view, &layout);
    step *s = lower_step(l, "softmax", &row, sizeof row, layout.tiles, layout.group);
    if (!s) return BRAID_HOST_MEMORY;
    s->latency = ROW_LATENCY;
    TRY(row_layout_spec(l, s, &layout, view));
    TRY(lower_spec(l, s, SPEC_KIND, kind == SOFTMAX_KIND_HARD ? kind : SOFTMAX_KIND_EXP));
    TRY(lower_spec(l, s, SPEC_TYPE_X, x->type));
    TRY(lower_spec(l, s, SPEC_TYPE_Y, to));
    TRY(row_read(l, s, offsetof(row_softmax, x), 0));
    s->flops = 8 * (uint64_t)(view->rows * view->length);
    s->bytes += bytes;
    return lower_operand(l, s, offsetof(row_softmax, y), y, 0, bytes, ACCESS_WRITE);
}

braid_status softmax_lower(lowering *l) {
    const tensor_type *x = lower_in(l, 0);
    row_view view;
    size_t bytes;
    char kind = l->node->type[0];
    uint32_t number = kind == 'S' ? SOFTMAX_KIND_EXP : kind == 'L' ? SOFTMAX_KIND_LOG : SOFTMAX_KIND_HARD;
    TRY(softmax_view(l->node, x, &view, l->err));
    if (!tensor_type_bytes(x, &bytes)) return BRAID_UNSUPPORTED;
    return softmax_step(l, &view, number, x->type, l->node->out[0], bytes);
}
