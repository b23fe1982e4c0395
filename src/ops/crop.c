/*
 * crop.c: CenterCropPad. Along each axis it is a Pad by half the difference on both sides, the odd one behind.
 */
#include "ops/bytes.h"
#include "ops/follow.h"
#include "ops/pad.h"

/* The axes that `shape` names, in order. */
static braid_status crop_axes(const node *n, int rank, int count, int axes[BRAID_MAX_RANK], braid_error *err) {
    const int64_t *list;
    int given = node_ints(n, "axes", &list);
    unsigned seen = 0;
    int expected = node_attribute(n, "axes") ? given : rank;
    if (count != expected || count > rank)
        return error_set(err, BRAID_SHAPE, "input 1: %d elements, expected %d", count, expected);
    for (int i = 0; i < count; i++) {
        axes[i] = i;
        if (node_attribute(n, "axes")) TRY(axis_normalise(list[i], rank, &axes[i], err));
        if (seen & 1u << axes[i]) return error_set(err, BRAID_MODEL, "axes names axis %d twice", axes[i]);
        seen |= 1u << axes[i];
    }
    return BRAID_OK;
}

static braid_status crop_infer(infer *c) {
    const tensor_type *x = c->in[0];
    int count, axes[BRAID_MAX_RANK];
    const int64_t *shape;
    TRY(infer_index_type(c, 1));
    TRY(infer_rank(c, 1, 1, 1));
    c->out[0].type = x->type;
    if (x->rank < 0) return BRAID_OK;
    if (x->type == BRAID_STRING) return error_set(c->err, BRAID_TYPE, "input 0: strings cannot be padded");
    c->out[0] = *x;
    if (!infer_ints(c, 1, &count, &shape)) {
        for (int i = 0; i < x->rank; i++) c->out[0].dims[i] = infer_fresh(c);
        return BRAID_OK;
    }
    TRY(crop_axes(c->node, x->rank, count, axes, c->err));
    for (int i = 0; i < count; i++) {
        if (dim_known(shape[i]) && shape[i] < 0)
            return error_set(c->err, BRAID_SHAPE, "input 1: size %lld", (long long)shape[i]);
        c->out[0].dims[axes[i]] = shape[i];
    }
    return infer_limit(c, 0);
}

/* Elements to add before and behind an axis that goes from one extent to another. */
static void crop_pads(int64_t from, int64_t to, int64_t *begin, int64_t *end) {
    *begin = to >= from ? (to - from) / 2 : -((from - to) / 2);
    *end = to - from - *begin;
}

/* The part that both tensors have. */
static void crop_region(const tensor_type *in, const tensor_type *out, region *r) {
    int64_t in_strides[BRAID_MAX_RANK], out_strides[BRAID_MAX_RANK];
    region_strides(in->rank, in->dims, in_strides);
    region_strides(out->rank, out->dims, out_strides);
    *r = (region){0};
    for (int i = 0; i < in->rank; i++) {
        int64_t begin, end, low = in->dims[i] < out->dims[i] ? in->dims[i] : out->dims[i];
        crop_pads(in->dims[i], out->dims[i], &begin, &end);
        region_add(r, low, in_strides[i], out_strides[i]);
        if (begin < 0) r->in_at -= begin * in_strides[i];
        if (begin > 0) r->out_at += begin * out_strides[i];
    }
}

static braid_status crop_eval(eval *e) {
    const tensor *x = eval_in(e, 0);
    tensor *y;
    region r;
    size_t size;
    TRY(eval_output(e, 0, &y));
    const uint8_t *from = bytes_in(e->memory, x, &size);
    uint8_t *to = bytes_out(e->memory, y, &size);
    if (!from || !to) return error_memory(e->err);
    crop_region(&x->type, &y->type, &r);
    region_copy(&r, type_bits(x->type.type) < 8 ? BRAID_UINT8 : x->type.type, from, to);
    bytes_done(y, to);
    return BRAID_OK;
}

static braid_status crop_lower(lowering *l) {
    const tensor_type *x = lower_in(l, 0), *y = lower_out(l, 0);
    int64_t begin[BRAID_MAX_RANK], end[BRAID_MAX_RANK];
    for (int i = 0; i < x->rank; i++) crop_pads(x->dims[i], y->dims[i], &begin[i], &end[i]);
    return pad_lower_zeros(l, begin, end);
}

static const attribute_spec crop_specs[] = {{"axes", ATTRIBUTE_INTS, NULL}, {0}};

const op crop_ops[] = {
    {.name = "CenterCropPad", .since = 18, .min_in = 2, .max_in = 2, .min_out = 1, .max_out = 1,
     .attributes = crop_specs, .infer = crop_infer, .eval = crop_eval, .lower = crop_lower},
    {0},
};
