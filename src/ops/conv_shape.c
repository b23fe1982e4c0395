/*
 * conv_shape.c: attributes and shape inference of Conv and ConvTranspose.
 */
#include "ops/conv.h"

/* Attributes may not take a shape computation past this, whatever the tensor says. */
#define EXTENT_MAX ((int64_t)1 << 40)

static braid_status read_list(const node *conv_node, const char *name, int count, int64_t low, int64_t *out,
                              braid_error *err) {
    const int64_t *v;
    if (!node_attribute(conv_node, name)) return BRAID_OK;
    int n = node_ints(conv_node, name, &v);
    if (n != count) return error_set(err, BRAID_MODEL, "%s: %d values, expected %d", name, n, count);
    for (int i = 0; i < n; i++) {
        if (v[i] < low || v[i] > EXTENT_MAX)
            return error_set(err, BRAID_MODEL, "%s[%d] is %lld, expected at least %lld", name, i, (long long)v[i],
                             (long long)low);
        out[i] = v[i];
    }
    return BRAID_OK;
}

static braid_status read_mode(const node *conv_node, conv *c, braid_error *err) {
    static const char *const names[] = {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"};
    const char *mode = node_string(conv_node, "auto_pad", "NOTSET");
    if (*mode == 0) mode = "NOTSET";
    for (int i = 0; i < 4; i++)
        if (strcmp(mode, names[i]) == 0) {
            c->mode = (conv_auto)i;
            return BRAID_OK;
        }
    return error_set(err, BRAID_MODEL, "auto_pad: unknown mode '%.40s'", mode);
}

static braid_status read_kernel(const node *conv_node, const tensor_type *w, conv *c, braid_error *err) {
    for (int i = 0; i < c->axes; i++) c->kernel[i] = dim_from_symbol(0);
    TRY(read_list(conv_node, "kernel_shape", c->axes, 1, c->kernel, err));
    if (!w || w->rank < 0) return BRAID_OK;
    for (int i = 0; i < c->axes; i++) {
        int64_t d = w->dims[i + 2];
        if (!dim_known(d)) continue;
        if (dim_known(c->kernel[i]) && c->kernel[i] != d)
            return error_set(err, BRAID_SHAPE, "kernel_shape[%d] is %lld, the weights have %lld", i,
                             (long long)c->kernel[i], (long long)d);
        if (d < 1) return error_set(err, BRAID_SHAPE, "weights: kernel dim %d is %lld", i, (long long)d);
        c->kernel[i] = d;
    }
    return BRAID_OK;
}

braid_status conv_read(const node *conv_node, int axes, const tensor_type *w, conv *c, braid_error *err) {
    *c = (conv){.axes = axes, .groups = node_int(conv_node, "group", 1)};
    if (axes < 1 || axes > CONV_AXES)
        return error_set(err, BRAID_SHAPE, "input 0: rank %d, expected 3 to %d", axes + 2, BRAID_MAX_RANK);
    if (c->groups < 1 || c->groups > EXTENT_MAX)
        return error_set(err, BRAID_MODEL, "group is %lld, expected at least 1", (long long)c->groups);
    if (w && w->rank >= 0 && w->rank != axes + 2)
        return error_set(err, BRAID_SHAPE, "input 1: rank %d, expected %d as input 0", w->rank, axes + 2);
    for (int i = 0; i < axes; i++) c->stride[i] = c->dilation[i] = 1;
    TRY(read_list(conv_node, "strides", axes, 1, c->stride, err));
    TRY(read_list(conv_node, "dilations", axes, 1, c->dilation, err));
    TRY(read_list(conv_node, "output_padding", axes, 0, c->extra, err));
    int64_t pads[2 * CONV_AXES] = {0};
    TRY(read_list(conv_node, "pads", 2 * axes, 0, pads, err));
    TRY(read_mode(conv_node, c, err));
    for (int i = 0; i < axes && c->mode == CONV_NOTSET; i++) {
        c->begin[i] = pads[i];
        c->end[i] = pads[axes + i];
    }
    return read_kernel(conv_node, w, c, err);
}

/* (kernel - 1) * dilation + 1 */
static braid_status extent(const conv *c, int axis, int64_t *out, braid_error *err) {
    if (!i64_mul(c->kernel[axis] - 1, c->dilation[axis], out) || *out >= EXTENT_MAX)
        return error_set(err, BRAID_LIMIT, "kernel extent of axis %d overflows", axis);
    *out += 1;
    return BRAID_OK;
}

braid_status conv_axis(conv *c, int axis, int64_t in, braid_error *err) {
    int64_t reach = 0, stride = c->stride[axis];
    TRY(extent(c, axis, &reach, err));
    c->in[axis] = in;
    if (c->mode == CONV_SAME_UPPER || c->mode == CONV_SAME_LOWER) {
        int64_t out = in / stride + (in % stride != 0), total = (out - 1) * stride + reach - in;
        if (total < 0 || out == 0) total = 0;
        c->begin[axis] = c->mode == CONV_SAME_UPPER ? total / 2 : total - total / 2;
        c->end[axis] = total - c->begin[axis];
        c->out[axis] = out;
        return BRAID_OK;
    }
    int64_t padded = in + c->begin[axis] + c->end[axis];
    if (padded < reach)
        return error_set(err, BRAID_SHAPE, "axis %d: kernel spans %lld, the padded input %lld", axis + 2,
                         (long long)reach, (long long)padded);
    c->out[axis] = (padded - reach) / stride + 1;
    return BRAID_OK;
}

/* Channel rules; symbolic dims pass. per_group: the weights' input channels of one group. */
static braid_status check_channels(const conv *c, int64_t channels, int64_t per_group, int64_t outputs,
                                   braid_error *err) {
    if (dim_known(channels) && channels % c->groups != 0)
        return error_set(err, BRAID_SHAPE, "%lld channels do not divide into %lld groups", (long long)channels,
                         (long long)c->groups);
    if (dim_known(outputs) && outputs % c->groups != 0)
        return error_set(err, BRAID_SHAPE, "%lld output channels do not divide into %lld groups", (long long)outputs,
                         (long long)c->groups);
    if (dim_known(channels) && dim_known(per_group) && channels / c->groups != per_group)
        return error_set(err, BRAID_SHAPE, "input 1: %lld channels in a group, expected %lld", (long long)per_group,
                         (long long)(channels / c->groups));
    return BRAID_OK;
}

static braid_status check_bias(const infer *c, int64_t outputs) {
    if (!infer_has(c, 2)) return BRAID_OK;
    TRY(infer_rank((infer *)c, 2, 1, 1));
    if (c->in[2]->rank == 1 && dim_known(outputs) && dim_known(c->in[2]->dims[0]) && c->in[2]->dims[0] != outputs)
        return error_set(c->err, BRAID_SHAPE, "input 2: %lld values, expected %lld", (long long)c->in[2]->dims[0],
                         (long long)outputs);
    return BRAID_OK;
}

static braid_status conv_types(infer *c) {
    braid_type type = BRAID_TYPE_NONE;
    for (int i = 0; i < c->n_in && i < 3; i++) {
        braid_type t = c->in[i] ? c->in[i]->type : BRAID_TYPE_NONE;
        if (t == BRAID_TYPE_NONE) continue;
        if (!type_is_float(t))
            return error_set(c->err, BRAID_TYPE, "input %d: %s, expected a floating-point type", i, braid_type_name(t));
        if (type != BRAID_TYPE_NONE && t != type)
            return error_set(c->err, BRAID_TYPE, "input %d: %s, expected %s", i, braid_type_name(t),
                             braid_type_name(type));
        type = t;
    }
    c->out[0].type = type;
    return BRAID_OK;
}

/* Spatial axes as far as any input tells; 0 when none does. */
static braid_status conv_axes(const infer *c, int *axes) {
    *axes = 0;
    for (int i = 0; i < 2; i++) {
        int rank = c->in[i] ? c->in[i]->rank : -1;
        if (rank >= 0 && rank < 3)
            return error_set(c->err, BRAID_SHAPE, "input %d: rank %d, expected at least 3", i, rank);
        if (rank >= 0 && *axes == 0) *axes = rank - 2;
    }
    return BRAID_OK;
}

static int64_t dim_or_fresh(infer *c, const tensor_type *t, int i) {
    return t && t->rank >= 0 ? t->dims[i] : infer_fresh(c);
}

/* Does a stride-1 axis keep its extent, whatever it is. */
static bool keeps_extent(const conv *v, int axis) {
    if (v->stride[axis] != 1) return false;
    if (v->mode == CONV_SAME_UPPER || v->mode == CONV_SAME_LOWER) return true;
    return dim_known(v->kernel[axis]) && v->begin[axis] + v->end[axis] == (v->kernel[axis] - 1) * v->dilation[axis];
}

braid_status conv_infer(infer *c) {
    conv v;
    int axes;
    TRY(conv_types(c));
    TRY(conv_axes(c, &axes));
    if (axes == 0) return BRAID_OK;
    const tensor_type *x = c->in[0], *w = c->in[1];
    TRY(conv_read(c->node, axes, w, &v, c->err));
    int64_t outputs = dim_or_fresh(c, w, 0);
    TRY(check_channels(&v, dim_or_fresh(c, x, 1), dim_or_fresh(c, w, 1), outputs, c->err));
    TRY(check_bias(c, outputs));
    tensor_type *out = &c->out[0];
    out->dims[0] = dim_or_fresh(c, x, 0);
    out->dims[1] = outputs;
    for (int i = 0; i < axes; i++) {
        int64_t in = dim_or_fresh(c, x, i + 2);
        if (dim_known(in) && dim_known(v.kernel[i])) {
            TRY(conv_axis(&v, i, in, c->err));
            out->dims[i + 2] = v.out[i];
        } else {
            out->dims[i + 2] = keeps_extent(&v, i) ? in : infer_fresh(c);
        }
    }
    out->rank = axes + 2;
    return BRAID_OK;
}

braid_status conv_shape(const node *conv_node, const tensor_type *x, const tensor_type *w, conv *c, braid_error *err) {
    TRY(conv_read(conv_node, x->rank - 2, w, c, err));
    c->batch = x->dims[0];
    c->channels = x->dims[1];
    c->outputs = w->dims[0];
    TRY(check_channels(c, c->channels, w->dims[1], c->outputs, err));
    for (int i = 0; i < c->axes; i++) TRY(conv_axis(c, i, x->dims[i + 2], err));
    return BRAID_OK;
}

/* ----------------------------------------------------------------------------------------- ConvTranspose */

/* Output extent and pads of one axis. wanted: from output_shape, -1 when absent. */
static braid_status transpose_axis(conv *c, int axis, int64_t in, int64_t wanted, braid_error *err) {
    int64_t reach = 0, full;
    TRY(extent(c, axis, &reach, err));
    if (c->extra[axis] >= c->stride[axis] && c->extra[axis] >= c->dilation[axis])
        return error_set(err, BRAID_MODEL, "output_padding[%d] is %lld, expected less than the stride or dilation",
                         axis, (long long)c->extra[axis]);
    if (!i64_mul(c->stride[axis], in - (in > 0), &full) || full > EXTENT_MAX)
        return error_set(err, BRAID_LIMIT, "output extent of axis %d overflows", axis + 2);
    full = in == 0 ? 0 : full + reach + c->extra[axis];
    c->in[axis] = in;
    bool same = c->mode == CONV_SAME_UPPER || c->mode == CONV_SAME_LOWER;
    if (wanted < 0 && same && !i64_mul(in, c->stride[axis], &wanted))
        return error_set(err, BRAID_LIMIT, "output extent of axis %d overflows", axis + 2);
    if (wanted >= 0) {
        int64_t total = full > wanted ? full - wanted : 0;
        c->begin[axis] = c->mode == CONV_SAME_UPPER ? total / 2 : total - total / 2;
        c->end[axis] = total - c->begin[axis];
        c->out[axis] = wanted;
        return BRAID_OK;
    }
    c->out[axis] = full - c->begin[axis] - c->end[axis];
    if (c->out[axis] < 0)
        return error_set(err, BRAID_SHAPE, "axis %d: pads remove more than the output's %lld", axis + 2,
                         (long long)full);
    return BRAID_OK;
}

/* The output_shape attribute: spatial dims, or all of them as older exporters write it. -1 where absent. */
static braid_status transpose_wanted(const node *conv_node, int axes, int64_t *wanted, braid_error *err) {
    const int64_t *v = NULL;
    int n = node_ints(conv_node, "output_shape", &v);
    for (int i = 0; i < axes; i++) wanted[i] = -1;
    if (n == 0) return BRAID_OK;
    if (n != axes && n != axes + 2) return error_set(err, BRAID_MODEL, "output_shape: %d values, expected %d", n, axes);
    for (int i = 0; i < axes; i++) {
        wanted[i] = v[n - axes + i];
        if (wanted[i] < 0 || wanted[i] > EXTENT_MAX)
            return error_set(err, BRAID_MODEL, "output_shape: %lld is not an extent", (long long)wanted[i]);
    }
    return BRAID_OK;
}

braid_status conv_transpose_infer(infer *c) {
    conv v;
    int axes;
    int64_t wanted[CONV_AXES];
    TRY(conv_types(c));
    TRY(conv_axes(c, &axes));
    if (axes == 0) return BRAID_OK;
    const tensor_type *x = c->in[0], *w = c->in[1];
    TRY(conv_read(c->node, axes, w, &v, c->err));
    TRY(transpose_wanted(c->node, axes, wanted, c->err));
    int64_t channels = dim_or_fresh(c, x, 1), weights = dim_or_fresh(c, w, 0), outputs = infer_fresh(c);
    if (w && w->rank >= 0) TRY(infer_mul(c, w->dims[1], v.groups, &outputs));
    if (dim_known(channels) && dim_known(weights) && channels != weights)
        return error_set(c->err, BRAID_SHAPE, "input 1: %lld channels, expected %lld", (long long)weights,
                         (long long)channels);
    TRY(check_channels(&v, channels, infer_fresh(c), outputs, c->err));
    TRY(check_bias(c, outputs));
    tensor_type *out = &c->out[0];
    out->dims[0] = dim_or_fresh(c, x, 0);
    out->dims[1] = outputs;
    for (int i = 0; i < axes; i++) {
        int64_t in = dim_or_fresh(c, x, i + 2);
        bool same = v.mode == CONV_SAME_UPPER || v.mode == CONV_SAME_LOWER;
        out->dims[i + 2] = wanted[i] >= 0 ? wanted[i] : same && v.stride[i] == 1 ? in : infer_fresh(c);
        if (!dim_known(in) || !dim_known(v.kernel[i])) continue;
        TRY(transpose_axis(&v, i, in, wanted[i], c->err));
        out->dims[i + 2] = v.out[i];
    }
    out->rank = axes + 2;
    return BRAID_OK;
}

braid_status conv_transpose_shape(const node *conv_node, const tensor_type *x, const tensor_type *w, conv *c,
                                  braid_error *err) {
    int64_t wanted[CONV_AXES];
    TRY(conv_read(conv_node, x->rank - 2, w, c, err));
    TRY(transpose_wanted(conv_node, c->axes, wanted, err));
    c->batch = x->dims[0];
    c->channels = x->dims[1];
    if (!i64_mul(w->dims[1], c->groups, &c->outputs)) return error_set(err, BRAID_LIMIT, "output channels overflow");
    TRY(check_channels(c, c->channels, c->channels / c->groups, c->outputs, err));
    for (int i = 0; i < c->axes; i++) TRY(transpose_axis(c, i, x->dims[i + 2], wanted[i], err));
    return BRAID_OK;
}
