/*
 * table.c: the list of families. A new operator is a row in its family's file; a new family is two lines here.
 */
#include "ops/op.h"

#define FAMILIES(X) \
    X(view_ops) \
    X(shape_ops) \
    X(move_ops) \
    X(part_ops) \
    X(index_ops) \
    X(pad_ops) \
    X(scatter_ops) \
    X(reduce_ops) \
    X(arg_ops) \
    X(softmax_ops) \
    X(scan_ops) \
    X(norm_ops) \
    X(lrn_ops) \
    X(sort_ops) \
    X(loss_ops) \
    X(det_ops) \
    X(pool_ops) \
    X(resize_ops) \
    X(grid_ops) \
    X(matmul_ops) \
    X(conv_ops) \
    X(map_unary_ops) \
    X(map_binary_ops) \
    X(map_select_ops) \
    X(map_cast_ops) \
    X(map_internal_ops) \
    X(copies_ops) \
    X(make_ops) \
    X(spread_ops) \
    X(select_ops) \
    X(box_ops) \
    X(roi_ops) \
    X(unpool_ops) \
    X(fold_ops) \
    X(crop_ops) \
    X(signal_ops) \
    X(einsum_ops)

#define DECLARE(name) extern const op name[];
FAMILIES(DECLARE)
#undef DECLARE

#define ENTRY(name) name,
static const op *const families[] = {FAMILIES(ENTRY)};
#undef ENTRY

const op *op_at(size_t i) {
    for (size_t f = 0; f < COUNT_OF(families); f++)
        for (const op *o = families[f]; o->name; o++)
            if (i-- == 0) return o;
    return NULL;
}

static bool same_domain(const char *a, const char *b) {
    if (!a || strcmp(a, "ai.onnx") == 0) a = "";
    if (!b || strcmp(b, "ai.onnx") == 0) b = "";
    return strcmp(a, b) == 0;
}

const op *op_find(const char *domain, const char *name) {
    for (size_t f = 0; f < COUNT_OF(families); f++)
        for (const op *o = families[f]; o->name; o++)
            if (strcmp(o->name, name) == 0 && same_domain(o->domain, domain)) return o;
    return NULL;
}
