/*
 * col2im.c: Col2Im: [N, C * block, L] columns are added up into an image [N, C, spatial...].
 */
#include "kernels/rows/col2im.h"
#include "ops/flat.h"
#include "ops/follow.h"
#include "ops/pool.h"
#include "ops/region.h"
#include <stddef.h>

#define FOLD_AXES (BRAID_MAX_RANK - 2)

typedef struct fold {
    int rank; /* spatial axes */
    int64_t image[FOLD_AXES], block[FOLD_AXES], steps[FOLD_AXES]; /* steps: blocks along the axis */
    int64_t stride[FOLD_AXES], dilation[FOLD_AXES], pad[FOLD_AXES];
    int64_t blocks, taps; /* products of steps and of block */
} fold;

static braid_status fold_axis(fold *f, int i, int64_t end, braid_error *err) {
    int64_t image = f->image[i], block = f->block[i], extent, room;
    if (image < 0 || image > INT32_MAX)
        return error_set(err, BRAID_SHAPE, "image_shape[%d] is %lld", i, (long long)image);
    if (block < 1 || block > INT32_MAX)
        return error_set(err, BRAID_SHAPE, "block_shape[%d] is %lld", i, (long long)block);
    extent = f->dilation[i] * (block - 1) + 1;
    room = image + f->pad[i] + end - extent;
    if (room < 0)
        return error_set(err, BRAID_SHAPE, "axis %d: a block of %lld does not fit %lld", i, (long long)extent,
                         (long long)(image + f->pad[i] + end));
    f->steps[i] = room / f->stride[i] + 1;
    if (!i64_mul(f->blocks, f->steps[i], &f->blocks) || !i64_mul(f->taps, block, &f->taps) ||
        f->blocks > ELEMENTS_MAX || f->taps > ELEMENTS_MAX)
        return error_set(err, BRAID_LIMIT, "too many blocks");
    return BRAID_OK;
}

static braid_status fold_read(const node *n, int rank, const int64_t *image, const int64_t *block, fold *f,
                              braid_error *err) {
    int64_t pads[2 * FOLD_AXES];
    *f = (fold){.rank = rank, .blocks = 1, .taps = 1};
    if (rank < 1 || rank > FOLD_AXES) return error_set(err, BRAID_LIMIT, "%d spatial axes", rank);
    TRY(pool_list(n, "strides", rank, 1, 1, f->stride, err));
    TRY(pool_list(n, "dilations", rank, 1, 1, f->dilation, err));
    TRY(pool_list(n, "pads", 2 * rank, 0, 0, pads, err));
    for (int i = 0; i < rank; i++) {
        f->image[i] = image[i];
        f->block[i] = block[i];
        f->pad[i] = pads[i];
        TRY(fold_axis(f, i, pads[rank + i], err));
    }
    return BRAID_OK;
}

static braid_status fold_check(const fold *f, const tensor_type *x, braid_error *err) {
    if (x->rank != 3) return error_set(err, BRAID_SHAPE, "input 0: rank %d, expected 3", x->rank);
    if (dim_known(x->dims[1]) && x->dims[1] % f->taps != 0)
        return error_set(err, BRAID_SHAPE, "input 0: %lld rows are no multiple of the block's %lld",
                         (long long)x->dims[1], (long long)f->taps);
    if (dim_known(x->dims[2]) && x->dims[2] != f->blocks)
        return error_set(err, BRAID_SHAPE, "input 0: %lld columns, expected %lld", (long long)x->dims[2],
                         (long long)f->blocks);
    return BRAID_OK;
}

/* ------------------------------------------------------------------------------------------------- infer */
static braid_status check_type(infer *c) {
    braid_type t = c->in[0]->type;
    if (t == BRAID_TYPE_NONE || type_is_float(t) || type_is_integer(t)) return BRAID_OK;
    return error_set(c->err, BRAID_TYPE, "input 0: type %s cannot be added", braid_type_name(t));
}

static bool all_known(int n, const int64_t *v) {
    for (int i = 0; i < n; i++)
        if (!dim_known(v[i])) return false;
    return true;
}

static braid_status col2im_infer(infer *c) {
    const tensor_type *x = c->in[0];
    int n_image, n_block;
    const int64_t *image, *block;
    fold f;
    TRY(check_type(c));
    TRY(infer_rank(c, 0, 3, 3));
    c->out[0].type = x->type;
    if (!infer_ints(c, 1, &n_image, &image)) return BRAID_OK;
    if (n_image < 1 || n_image > FOLD_AXES) return error_set(c->err, BRAID_LIMIT, "%d spatial axes", n_image);
    c->out[0].rank = n_image + 2;
    c->out[0].dims[0] = x->rank == 3 ? x->dims[0] : infer_fresh(c);
    c->out[0].dims[1] = infer_fresh(c);
    for (int i = 0; i < n_image; i++) c->out[0].dims[i + 2] = image[i];
    if (!infer_ints(c, 2, &n_block, &block)) return BRAID_OK;
    if (n_block != n_image)
        return error_set(c->err, BRAID_SHAPE, "block_shape has %d elements, image_shape %d", n_block, n_image);
    if (!all_known(n_image, image) || !all_known(n_block, block)) return BRAID_OK;
    TRY(fold_read(c->node, n_image, image, block, &f, c->err));
    if (x->rank != 3) return BRAID_OK;
    TRY(fold_check(&f, x, c->err));
    if (dim_known(x->dims[1])) c->out[0].dims[1] = x->dims[1] / f.taps;
    return infer_limit(c, 0);
}

/* -------------------------------------------------------------------------------------------------- eval */
static void split(int rank, const int64_t *dims, int64_t at, int64_t out[FOLD_AXES]) {
    for (int d = rank - 1; d >= 0; d--) {
        out[d] = at % dims[d];
        at /= dims[d];
    }
}

/* Position in the image of tap `tap` of block `block`; -1: in the padding. */
static int64_t fold_place(const fold *f, const int64_t tap[FOLD_AXES], int64_t block) {
    int64_t step_at[FOLD_AXES], at = 0;
    split(f->rank, f->steps, block, step_at);
    for (int i = 0; i < f->rank; i++) {
        int64_t v = step_at[i] * f->stride[i] + tap[i] * f->dilation[i] - f->pad[i];
        if (v < 0 || v >= f->image[i]) return -1;
        at = at * f->image[i] + v;
    }
    return at;
}

/* Adds one plane; integers wrap in sums of int64. */
static void fold_plane(const fold *f, const tensor *x, int64_t first, double *sum, int64_t *whole) {
    bool real = type_is_float(x->type.type);
    for (int64_t t = 0; t < f->taps; t++) {
        int64_t tap[FOLD_AXES];
        split(f->rank, f->block, t, tap);
        for (int64_t b = 0; b < f->blocks; b++) {
            int64_t at = fold_place(f, tap, b), i = first + t * f->blocks + b;
            if (at < 0) continue;
            if (real)
                sum[at] += element_f64(x->type.type, x->data, i);
            else
                whole[at] = (int64_t)((uint64_t)whole[at] + (uint64_t)element_i64(x->type.type, x->data, i));
        }
    }
}

static braid_status col2im_eval(eval *e) {
    const tensor *x = eval_in(e, 0), *image = eval_in(e, 1), *block = eval_in(e, 2);
    fold f;
    tensor *y;
    if (image->type.rank != 1 || block->type.rank != 1 || image->type.dims[0] != block->type.dims[0])
        return error_set(e->err, BRAID_SHAPE, "image_shape and block_shape differ in length");
    TRY(eval_output(e, 0, &y));
    TRY(fold_read(e->node, (int)image->type.dims[0], image->data, block->data, &f, e->err));
    TRY(fold_check(&f, &x->type, e->err));
    int64_t size = 1;
    for (int i = 0; i < f.rank; i++) size *= f.image[i];
    double *sum = arena_array(e->memory, (size_t)size + 1, sizeof *sum);
    int64_t *whole = arena_array(e->memory, (size_t)size + 1, sizeof *whole);
    if (!sum || !whole) return error_memory(e->err);
    for (int64_t plane = 0; plane < y->type.dims[0] * y->type.dims[1]; plane++) {
        memset(sum, 0, (size_t)size * sizeof *sum);
        memset(whole, 0, (size_t)size * sizeof *whole);
        fold_plane(&f, x, plane * f.taps * f.blocks, sum, whole);
        for (int64_t i = 0; i < size; i++) {
            if (type_is_float(x->type.type))
                element_set_f64(y->type.type, y->data, plane * size + i, sum[i]);
            else
                element_set_i64(y->type.type, y->data, plane * size + i, whole[i]);
        }
    }
    return BRAID_OK;
}

/* ------------------------------------------------------------------------------------------------- lower */
static bool fold_row(const fold *f, row_col2im *row) {
    if (f->rank > 3 || f->taps > 1 << 14) return false;
    for (int i = 0; i < 3; i++) {
        int a = i - (3 - f->rank);
        row->image[i] = a < 0 ? 1 : (uint32_t)f->image[a];
        row->block[i] = a < 0 ? 1 : (int32_t)f->block[a];
        row->steps[i] = a < 0 ? 1 : (int32_t)f->steps[a];
        row->stride[i] = a < 0 ? 1 : (int32_t)f->stride[a];
        row->dilation[i] = a < 0 ? 1 : (int32_t)f->dilation[a];
        row->pad[i] = a < 0 ? 0 : (int32_t)f->pad[a];
        if (a >= 0 && f->image[a] + f->pad[a] + f->dilation[a] * f->block[a] > INT32_MAX / 2) return false;
    }
    return true;
}

static braid_status col2im_lower(lowering *l) {
    const tensor_type *x = lower_in(l, 0), *y = lower_out(l, 0);
    int n_image, n_block;
    const int64_t *image, *block;
    int64_t outputs;
    fold f;
    if (x->type == BRAID_FLOAT64 || !flat_fits(x) || !flat_fits(y) || !tensor_type_count(y, &outputs))
        return BRAID_UNSUPPORTED;
    TRY(lower_ints(l, 1, &n_image, &image));
    TRY(lower_ints(l, 2, &n_block, &block));
    if (n_image < 0 || n_block != n_image) return BRAID_UNSUPPORTED;
    row_col2im row = {.outputs = (uint32_t)outputs};
    TRY(fold_read(l->node, n_image, image, block, &f, l->err));
    if (!fold_row(&f, &row)) return BRAID_UNSUPPORTED;
    step *s = flat_step(l, "col2im", &row, sizeof row, outputs);
    if (!s) return error_memory(l->err);
    TRY(lower_spec(l, s, FLAT_SPEC, x->type));
    TRY(lower_operand_in(l, s, offsetof(row_col2im, x), 0));
    return lower_operand_out(l, s, offsetof(row_col2im, y), 0);
}

static const attribute_spec fold_specs[] = {
    {"dilations", ATTRIBUTE_INTS, "1"}, {"pads", ATTRIBUTE_INTS, "0"}, {"strides", ATTRIBUTE_INTS, "1"}, {0}};

const op fold_ops[] = {
    {.name = "Col2Im", .since = 18, .min_in = 3, .max_in = 3, .min_out = 1, .max_out = 1, .attributes = fold_specs,
     .infer = col2im_infer, .eval = col2im_eval, .lower = col2im_lower},
    {0},
};
