/*
 * resize_lower.c: the two resize kernels. The tables are made here: scales or sizes are known once shapes are.
 */
#include "kernels/rows/resize.h"
#include "ops/flat.h"
#include "ops/resize.h"
#include <stddef.h>

enum { RESIZE_TAPS = 4096 };

typedef struct resize_plan {
    resize_attributes a;
    int rank;
    resize_axis axis[BRAID_MAX_RANK];
    int n;         /* axes that the kernel's a, b, c stand for, the last of them c */
    int at[3];     /* tensor axis, or -1: an axis of one element */
    resize_axis merged[3];
} resize_plan;

/* The content of an input, from its constant or, for sizes, from the followed value. */
static braid_status sizes_of(lowering *l, tensor **out) {
    int32_t v = l->node->n_in > 3 ? l->node->in[3] : -1;
    *out = NULL;
    if (v < 0) return BRAID_OK;
    const value *sizes = l->g->values[v];
    if (sizes->n_known < 0) return BRAID_OK;
    int64_t dims[1] = {sizes->n_known};
    for (int i = 0; i < sizes->n_known; i++)
        if (!dim_known(sizes->known[i])) return BRAID_OK;
    TRY(tensor_new(l->memory, BRAID_INT64, 1, dims, out, l->err));
    memcpy((*out)->data, sizes->known, (size_t)sizes->n_known * sizeof(int64_t));
    return BRAID_OK;
}

/* Sizes that are known through the output's shape alone: enough unless proportions are kept. */
static braid_status sizes_from_output(lowering *l, const resize_attributes *a, tensor **out) {
    if (a->policy != RESIZE_STRETCH) return BRAID_OK;
    int64_t dims[1] = {a->n_axes};
    TRY(tensor_new(l->memory, BRAID_INT64, 1, dims, out, l->err));
    for (int i = 0; i < a->n_axes; i++) ((int64_t *)(*out)->data)[i] = lower_out(l, 0)->dims[a->axes[i]];
    return BRAID_OK;
}

static bool absent(const lowering *l, int i) {
    const tensor_type *t = lower_in(l, i);
    return !t || (t->rank == 1 && t->dims[0] == 0);
}

/* False (with status OK) where scales, sizes or roi are not known yet. */
static braid_status plan_inputs(lowering *l, resize_plan *p, bool *known) {
    const tensor *roi = NULL, *scales = NULL, *sizes = NULL;
    tensor *made = NULL;
    resize_inputs in;
    *known = false;
    if (!absent(l, 1)) TRY(lower_constant_in(l, 1, &roi));
    if (!absent(l, 2)) TRY(lower_constant_in(l, 2, &scales));
    if (!absent(l, 3)) TRY(lower_constant_in(l, 3, &sizes));
    if (!absent(l, 2) && !scales) return BRAID_OK;
    if (p->a.coordinates == RESIZE_TF_CROP && !absent(l, 1) && !roi) return BRAID_OK;
    if (!absent(l, 3) && !sizes) {
        TRY(sizes_of(l, &made));
        if (!made) TRY(sizes_from_output(l, &p->a, &made));
        if (!made) return BRAID_OK;
        sizes = made;
    }
    TRY(resize_take(&p->a, l->memory, roi, scales, sizes, &in, l->err));
    TRY(resize_fit(&p->a, p->rank, lower_in(l, 0)->dims, &in, p->axis, l->err));
    *known = true;
    return BRAID_OK;
}

/* Finds the up to three axes that change; copied axes between two of them count as one. */
static bool plan_axes(resize_plan *p) {
    int first = 0, last = p->rank - 1;
    while (first < p->rank && p->axis[first].same) first++;
    while (last > first && p->axis[last].same) last--;
    resize_axis found[BRAID_MAX_RANK];
    p->n = 0;
    for (int i = first; i <= last && i < p->rank; i++) {
        resize_axis *before = p->n > 0 ? &found[p->n - 1] : NULL;
        if (before && before->same && p->axis[i].same) {
            before->in *= p->axis[i].in;
            before->out *= p->axis[i].out;
        } else {
            found[p->n++] = p->axis[i];
        }
    }
    if (p->n > 3) return false;
    for (int k = 0; k < 3; k++) p->merged[k] = (resize_axis){1, 1, 1, 1, {0, 1}, true};
    for (int k = 0; k < p->n; k++) p->merged[3 - p->n + k] = found[k];
    return true;
}

static int64_t inner_of(const resize_plan *p) {
    int last = p->rank - 1;
    int64_t inner = 1;
    while (last >= 0 && p->axis[last].same) inner *= p->axis[last--].in;
    return last < 0 ? 1 : inner;
}

/* The uploaded table of a merged axis: int first[out], then float weight[out][taps]. */
typedef struct resize_upload {
    int taps;
    int32_t storage;
    size_t bytes;
} resize_upload;

static braid_status upload_table(lowering *l, const resize_plan *p, int k, resize_upload *u) {
    resize_table t;
    TRY(resize_table_new(l->memory, &p->a, &p->merged[k], &t, l->err));
    bool weighted = p->a.mode != RESIZE_NEAREST;
    size_t n = (size_t)t.out, words = n * (weighted ? (size_t)t.taps + 1 : 1);
    if (t.taps > RESIZE_TAPS || words > FLAT_MAX) return BRAID_UNSUPPORTED;
    int32_t *first = arena_array(l->memory, words, sizeof *first);
    if (!first) return error_memory(l->err);
    memcpy(first, t.first, n * sizeof *first);
    for (size_t i = 0; weighted && i < n * (size_t)t.taps; i++) {
        float weight = (float)t.weight[i];
        memcpy(&first[n + i], &weight, sizeof weight);
    }
    u->taps = t.taps;
    u->bytes = words * sizeof *first;
    u->storage = lower_constant(l, first, u->bytes);
    return u->storage < 0 ? error_memory(l->err) : BRAID_OK;
}

static braid_status add_tables(lowering *l, const resize_plan *p, step *s, const resize_upload u[3]) {
    for (int k = 0; k < 3; k++) {
        size_t at = offsetof(row_resize, table) + (size_t)k * sizeof(operand);
        TRY(lower_operand(l, s, at, u[k].storage, 0, u[k].bytes, ACCESS_READ));
        s->flops *= (uint64_t)u[k].taps;
        if (p->a.mode != RESIZE_NEAREST) TRY(lower_spec(l, s, (uint32_t)(FLAT_SPEC + k), (uint32_t)u[k].taps));
    }
    return BRAID_OK;
}

static void set_extrapolation(const resize_plan *p, braid_type t, row_resize *row) {
    float v = (float)p->a.extrapolation;
    if (p->a.mode != RESIZE_NEAREST)
        memcpy(row->extrapolation, &v, sizeof v);
    else if (type_is_float(t) || type_is_integer(t) || t == BRAID_BOOL)
        element_set_f64(t, row->extrapolation, 0, p->a.extrapolation);
}

static const char *kernel_of(const resize_plan *p, braid_type t) {
    static const char *const weighted[5] = {"resize_weighted_f32", "resize_weighted_f16", "resize_weighted_bf16",
                                            "resize_weighted_i8", "resize_weighted_u8"};
    static const char *const nearest[4] = {"resize_nearest_b8", "resize_nearest_b16", "resize_nearest_b32",
                                           "resize_nearest_b64"};
    if (p->a.mode != RESIZE_NEAREST) return flat_float_kernel(t, weighted);
    int bits = flat_bits_index(t);
    return bits < 0 ? NULL : nearest[bits];
}

braid_status resize_lower(lowering *l) {
    const tensor_type *x = lower_in(l, 0), *y = lower_out(l, 0);
    resize_plan p = {.rank = x->rank};
    int64_t outputs;
    bool known;
    if (!flat_fits(x) || !flat_fits(y) || !tensor_type_count(y, &outputs)) return BRAID_UNSUPPORTED;
    TRY(resize_read(l->node, p.rank, &p.a, l->err));
    const char *kernel = kernel_of(&p, x->type);
    if (!kernel) return BRAID_UNSUPPORTED;
    TRY(plan_inputs(l, &p, &known));
    if (!known || !plan_axes(&p)) return BRAID_UNSUPPORTED;
    if (p.n == 0 && p.rank > 0) return lower_alias(l, 0, 0);
    row_resize row = {.outputs = (uint32_t)outputs, .inner = divider_of((uint32_t)inner_of(&p))};
    for (int k = 0; k < 3; k++) {
        row.size[k] = (uint32_t)p.merged[k].in;
        row.extent[k] = divider_of((uint32_t)p.merged[k].out);
    }
    if (outputs == 0) return BRAID_OK;
    set_extrapolation(&p, x->type, &row);
    resize_upload tables[3] = {0};
    for (int k = 0; k < 3; k++) TRY(upload_table(l, &p, k, &tables[k]));
    step *s = flat_step(l, kernel, &row, sizeof row, outputs);
    if (!s) return error_memory(l->err);
    TRY(add_tables(l, &p, s, tables));
    TRY(lower_operand_in(l, s, offsetof(row_resize, x), 0));
    return lower_operand_out(l, s, offsetof(row_resize, y), 0);
}
