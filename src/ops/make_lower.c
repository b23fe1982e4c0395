/*
 * make_lower.c: kernels generate, range, one_hot and reverse.
 */
#include "kernels/rows/make.h"
#include "ops/flat.h"
#include "ops/make.h"
#include "ops/region.h"
#include <stddef.h>

/* Bytes of an element that a kernel moves: 1, 2, 4 or 8; 0 for others. */
static uint32_t moved_bytes(braid_type t) {
    int bits = flat_bits_index(t);
    return bits < 0 || t == BRAID_STRING || t == BRAID_COMPLEX64 ? 0 : 1u << bits;
}

static braid_status generate(lowering *l, row_generate *row, uint32_t mode, bool reads) {
    const tensor_type *y = lower_out(l, 0);
    uint32_t bytes = moved_bytes(y->type);
    int64_t outputs;
    if (bytes == 0 || !flat_fits(y) || !tensor_type_count(y, &outputs)) return BRAID_UNSUPPORTED;
    row->outputs = (uint32_t)outputs;
    row->rows = divider_of(y->rank >= 2 ? (uint32_t)y->dims[y->rank - 2] : 1);
    row->columns = divider_of(y->rank >= 1 ? (uint32_t)y->dims[y->rank - 1] : 1);
    step *s = flat_step(l, "generate", row, sizeof *row, outputs);
    if (!s) return error_memory(l->err);
    TRY(lower_spec(l, s, FLAT_SPEC, mode));
    TRY(lower_spec(l, s, FLAT_SPEC + 1, bytes));
    if (reads) {
        TRY(lower_operand_in(l, s, offsetof(row_generate, x), 0));
        TRY(lower_operand_in(l, s, offsetof(row_generate, shift), 1));
    }
    return lower_operand_out(l, s, offsetof(row_generate, y), 0);
}

braid_status constant_of_shape_lower(lowering *l) {
    const attribute *a = node_attribute(l->node, "value");
    row_generate row = {0};
    if (a) {
        if (a->t->bytes > sizeof row.on) return BRAID_UNSUPPORTED;
        TRY(tensor_load(a->t, l->memory, l->err));
        memcpy(&row.on, a->t->data, a->t->bytes);
    }
    return generate(l, &row, GENERATE_FILL, false);
}

braid_status eye_like_lower(lowering *l) {
    row_generate row = {.k = node_int(l->node, "k", 0)};
    braid_type t = lower_out(l, 0)->type;
    if (moved_bytes(t) == 0) return BRAID_UNSUPPORTED;
    element_set_i64(t, &row.on, 0, 1);
    return generate(l, &row, GENERATE_EYE, false);
}

braid_status trilu_lower(lowering *l) {
    row_generate row = {0};
    return generate(l, &row, node_int(l->node, "upper", 1) ? GENERATE_UPPER : GENERATE_LOWER, true);
}

braid_status range_lower(lowering *l) {
    const tensor_type *y = lower_out(l, 0);
    if (y->type == BRAID_FLOAT64 || !flat_fits(y)) return BRAID_UNSUPPORTED;
    row_range row = {.outputs = (uint32_t)y->dims[0]};
    step *s = flat_step(l, "range", &row, sizeof row, y->dims[0]);
    if (!s) return error_memory(l->err);
    TRY(lower_spec(l, s, FLAT_SPEC, y->type));
    TRY(lower_operand_in(l, s, offsetof(row_range, start), 0));
    TRY(lower_operand_in(l, s, offsetof(row_range, delta), 2));
    return lower_operand_out(l, s, offsetof(row_range, y), 0);
}

braid_status one_hot_lower(lowering *l) {
    const tensor_type *x = lower_in(l, 0), *y = lower_out(l, 0);
    uint32_t bytes = moved_bytes(y->type);
    int axis;
    int64_t outputs, inner = 1;
    if (bytes == 0 || x->type == BRAID_FLOAT64 || !flat_fits(x) || !flat_fits(y) || !tensor_type_count(y, &outputs))
        return BRAID_UNSUPPORTED;
    TRY(axis_normalise(node_int(l->node, "axis", -1), y->rank, &axis, l->err));
    for (int i = axis + 1; i < y->rank; i++) inner *= y->dims[i];
    row_one_hot row = {.outputs = (uint32_t)outputs, .depth = divider_of((uint32_t)y->dims[axis]),
                       .inner = divider_of((uint32_t)inner)};
    step *s = flat_step(l, "one_hot", &row, sizeof row, outputs);
    if (!s) return error_memory(l->err);
    TRY(lower_spec(l, s, FLAT_SPEC, x->type));
    TRY(lower_spec(l, s, FLAT_SPEC + 1, bytes));
    TRY(lower_operand_in(l, s, offsetof(row_one_hot, indices), 0));
    TRY(lower_operand_in(l, s, offsetof(row_one_hot, values), 2));
    return lower_operand_out(l, s, offsetof(row_one_hot, y), 0);
}

braid_status reverse_sequence_lower(lowering *l) {
    const tensor_type *x = lower_in(l, 0);
    uint32_t bytes = moved_bytes(x->type);
    int batch = 1, time = 0;
    int64_t outputs;
    if (bytes == 0 || !flat_fits(x) || !tensor_type_count(x, &outputs)) return BRAID_UNSUPPORTED;
    TRY(reverse_axes(l->node, &batch, &time, l->err));
    row_reverse row = {.outputs = (uint32_t)outputs, .inner = 1};
    for (int i = 2; i < x->rank; i++) row.inner *= (uint32_t)x->dims[i];
    for (int i = 0; i < 2; i++) row.dims[i] = (uint32_t)x->dims[i];
    step *s = flat_step(l, "reverse", &row, sizeof row, outputs);
    if (!s) return error_memory(l->err);
    TRY(lower_spec(l, s, FLAT_SPEC, bytes));
    TRY(lower_spec(l, s, FLAT_SPEC + 1, (uint32_t)time));
    TRY(lower_operand_in(l, s, offsetof(row_reverse, x), 0));
    TRY(lower_operand_in(l, s, offsetof(row_reverse, lengths), 1));
    return lower_operand_out(l, s, offsetof(row_reverse, y), 0);
}
