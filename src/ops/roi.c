/*
 * roi.c: RoiAlign and MaxRoiPool.
 */
#include "ops/roi.h"
#include "ops/follow.h"
#include <math.h>

/* ------------------------------------------------------------------------------------------------- infer */
static braid_status check_float(infer *c, int i) {
    braid_type t = c->in[i]->type, first = c->in[0]->type;
    if (t == BRAID_TYPE_NONE) return BRAID_OK;
    if (!type_is_float(t)) return error_set(c->err, BRAID_TYPE, "input %d: type %s, expected a float", i, braid_type_name(t));
    if (first != BRAID_TYPE_NONE && t != first)
        return error_set(c->err, BRAID_TYPE, "input %d: type %s, input 0 has %s", i, braid_type_name(t),
                         braid_type_name(first));
    return BRAID_OK;
}

static braid_status check_width(infer *c, int64_t columns) {
    if (c->in[1]->rank == 2 && dim_known(c->in[1]->dims[1]) && c->in[1]->dims[1] != columns)
        return error_set(c->err, BRAID_SHAPE, "input 1: %lld numbers to a region, expected %lld",
                         (long long)c->in[1]->dims[1], (long long)columns);
    return BRAID_OK;
}

static braid_status infer_output(infer *c, int64_t height, int64_t width) {
    const tensor_type *x = c->in[0], *rois = c->in[1];
    c->out[0] = (tensor_type){.type = x->type, .rank = 4};
    c->out[0].dims[0] = rois->rank == 2 ? rois->dims[0] : infer_fresh(c);
    c->out[0].dims[1] = x->rank == 4 ? x->dims[1] : infer_fresh(c);
    c->out[0].dims[2] = height;
    c->out[0].dims[3] = width;
    return infer_limit(c, 0);
}

braid_status roi_read(const node *n, roi_attributes *a, braid_error *err) {
    const char *mode = node_string(n, "mode", "avg");
    const char *coordinates = node_string(n, "coordinate_transformation_mode", "half_pixel");
    *a = (roi_attributes){.max = strcmp(mode, "max") == 0,
                          .half_pixel = strcmp(coordinates, "half_pixel") == 0,
                          .height = node_int(n, "output_height", 1),
                          .width = node_int(n, "output_width", 1),
                          .sampling = node_int(n, "sampling_ratio", 0),
                          .scale = node_float(n, "spatial_scale", 1)};
    if (!a->max && strcmp(mode, "avg") != 0) return error_set(err, BRAID_MODEL, "mode '%s' is unknown", mode);
    if (!a->half_pixel && strcmp(coordinates, "output_half_pixel") != 0)
        return error_set(err, BRAID_MODEL, "coordinate_transformation_mode '%s' is unknown", coordinates);
    if (a->height < 1 || a->width < 1 || a->height > INT32_MAX || a->width > INT32_MAX)
        return error_set(err, BRAID_MODEL, "output of %lld x %lld", (long long)a->height, (long long)a->width);
    if (a->sampling < 0 || a->sampling > ROI_SAMPLES)
        return error_set(err, BRAID_MODEL, "sampling_ratio is %lld, expected 0 to %d", (long long)a->sampling,
                         ROI_SAMPLES);
    if (!(a->scale > 0) || isinf(a->scale))
        return error_set(err, BRAID_MODEL, "spatial_scale is %g", (double)a->scale);
    return BRAID_OK;
}

static braid_status roi_align_infer(infer *c) {
    roi_attributes a;
    TRY(roi_read(c->node, &a, c->err));
    TRY(infer_rank(c, 0, 4, 4));
    TRY(infer_rank(c, 1, 2, 2));
    TRY(infer_rank(c, 2, 1, 1));
    TRY(check_float(c, 0));
    TRY(check_float(c, 1));
    TRY(check_width(c, 4));
    const tensor_type *rois = c->in[1], *batch = c->in[2];
    if (batch->type != BRAID_TYPE_NONE && batch->type != BRAID_INT64)
        return error_set(c->err, BRAID_TYPE, "input 2: type %s, expected int64", braid_type_name(batch->type));
    if (rois->rank == 2 && batch->rank == 1 && dim_known(rois->dims[0]) && dim_known(batch->dims[0]) &&
        rois->dims[0] != batch->dims[0])
        return error_set(c->err, BRAID_SHAPE, "%lld regions, %lld batch indices", (long long)rois->dims[0],
                         (long long)batch->dims[0]);
    return infer_output(c, a.height, a.width);
}

static braid_status pooled_shape(const node *n, int64_t out[2], braid_error *err) {
    const int64_t *list;
    if (node_ints(n, "pooled_shape", &list) != 2) return error_set(err, BRAID_MODEL, "pooled_shape is no pair");
    for (int i = 0; i < 2; i++) {
        out[i] = list[i];
        if (list[i] < 1 || list[i] > INT32_MAX)
            return error_set(err, BRAID_MODEL, "pooled_shape[%d] is %lld", i, (long long)list[i]);
    }
    return BRAID_OK;
}

static braid_status max_roi_pool_infer(infer *c) {
    int64_t shape[2] = {0};
    TRY(pooled_shape(c->node, shape, c->err));
    TRY(infer_rank(c, 0, 4, 4));
    TRY(infer_rank(c, 1, 2, 2));
    TRY(check_float(c, 0));
    TRY(check_float(c, 1));
    TRY(check_width(c, 5));
    return infer_output(c, shape[0], shape[1]);
}

static braid_status roi_align_upgrade(upgrade *u) {
    if (u->opset >= 16 || node_attribute(u->node, "coordinate_transformation_mode")) return BRAID_OK;
    if (!node_add_string(u->g, u->node, "coordinate_transformation_mode", "output_half_pixel"))
        return error_memory(u->err);
    return BRAID_OK;
}

/* ---------------------------------------------------------------------------------------------- RoiAlign */
/* One axis of a region: where it starts, how large a bin is, and how many samples a bin has. */
typedef struct roi_axis {
    double start, bin;
    int64_t samples, size;
} roi_axis;

static braid_status place_axis(const roi_attributes *a, double low, double high, int64_t bins, int64_t size,
                               roi_axis *x, braid_error *err) {
    double offset = a->half_pixel ? 0.5 : 0, scale = (double)a->scale;
    double start = low * scale - offset, length = high * scale - offset - start;
    if (!a->half_pixel && length < 1) length = 1;
    double samples = a->sampling > 0 ? (double)a->sampling : ceil(length / (double)bins);
    if (!(samples <= ROI_SAMPLES) || !isfinite(start))
        return error_set(err, BRAID_INDEX, "a region from %g to %g is too large", low, high);
    *x = (roi_axis){start, length / (double)bins, samples > 0 ? (int64_t)samples : 0, size};
    return BRAID_OK;
}

/* The two neighbours of a sample and the weight of the second. False: outside. */
static bool place_sample(const roi_axis *x, int64_t bin, int64_t i, int64_t at[2], double *weight) {
    double v = x->start + (double)bin * x->bin + ((double)i + 0.5) * x->bin / (double)x->samples;
    if (!(v >= -1 && v <= (double)x->size)) return false;
    if (v < 0) v = 0;
    at[0] = (int64_t)v;
    if (at[0] >= x->size - 1) {
        at[0] = at[1] = x->size - 1;
        v = (double)at[0];
    } else {
        at[1] = at[0] + 1;
    }
    *weight = v - (double)at[0];
    return true;
}

/* Bilinear value of a sample; of mode max the largest of the four weighted neighbours, as the standard has it. */
static double sample_value(const tensor *x, int64_t base, const roi_axis axis[2], const int64_t y[2], double wy,
                           const int64_t w[2], double wx, bool max) {
    double v[4], weights[4] = {(1 - wy) * (1 - wx), (1 - wy) * wx, wy * (1 - wx), wy * wx};
    for (int i = 0; i < 4; i++)
        v[i] = weights[i] * element_f64(x->type.type, x->data, base + y[i / 2] * axis[1].size + w[i % 2]);
    return max ? fmax(fmax(v[0], v[1]), fmax(v[2], v[3])) : v[0] + v[1] + v[2] + v[3];
}

static double bin_value(const roi_attributes *a, const tensor *x, int64_t base, const roi_axis axis[2], int64_t by,
                        int64_t bx) {
    double result = 0, wy, wx;
    bool any = false;
    int64_t y[2], w[2];
    for (int64_t i = 0; i < axis[0].samples; i++)
        for (int64_t k = 0; k < axis[1].samples; k++) {
            double v = 0;
            if (place_sample(&axis[0], by, i, y, &wy) && place_sample(&axis[1], bx, k, w, &wx))
                v = sample_value(x, base, axis, y, wy, w, wx, a->max);
            result = !a->max ? result + v : any ? fmax(result, v) : v;
            any = true;
        }
    int64_t count = axis[0].samples * axis[1].samples;
    return a->max || count == 0 ? result : result / (double)count;
}

static braid_status roi_align_eval(eval *e) {
    const tensor *x = eval_in(e, 0), *rois = eval_in(e, 1), *batch = eval_in(e, 2);
    roi_attributes a;
    tensor *y;
    TRY(roi_read(e->node, &a, e->err));
    TRY(eval_output(e, 0, &y));
    const int64_t *d = x->type.dims;
    int64_t o = 0;
    for (int64_t r = 0; r < rois->type.dims[0]; r++) {
        int64_t n = ((const int64_t *)batch->data)[r];
        double v[4];
        roi_axis axis[2] = {0};
        if (n < 0 || n >= d[0])
            return error_set(e->err, BRAID_INDEX, "batch index %lld outside [0, %lld)", (long long)n, (long long)d[0]);
        for (int i = 0; i < 4; i++) v[i] = element_f64(rois->type.type, rois->data, 4 * r + i);
        TRY(place_axis(&a, v[1], v[3], a.height, d[2], &axis[0], e->err));
        TRY(place_axis(&a, v[0], v[2], a.width, d[3], &axis[1], e->err));
        for (int64_t c = 0; c < d[1]; c++)
            for (int64_t i = 0; i < a.height * a.width; i++) {
                int64_t base = (n * d[1] + c) * d[2] * d[3];
                double value_at = d[2] > 0 && d[3] > 0 ? bin_value(&a, x, base, axis, i / a.width, i % a.width) : 0;
                element_set_f64(y->type.type, y->data, o++, value_at);
            }
    }
    return BRAID_OK;
}

/* --------------------------------------------------------------------------------------------- MaxRoiPool */
/* The cells of bin b along an axis of `size`, for a region of cells [first, last]. */
static void pool_cells(double first, double last, int64_t bins, int64_t b, int64_t size, int64_t out[2]) {
    double bin = fmax(last - first + 1, 1) / (double)bins;
    double low = floor((double)b * bin) + first, high = ceil((double)(b + 1) * bin) + first;
    out[0] = low < 0 ? 0 : low > (double)size ? size : (int64_t)low;
    out[1] = high < 0 ? 0 : high > (double)size ? size : (int64_t)high;
}

static double max_of(const tensor *x, int64_t base, const int64_t rows[2], const int64_t columns[2], int64_t width) {
    bool any = false;
    double best = 0;
    for (int64_t i = rows[0]; i < rows[1]; i++)
        for (int64_t k = columns[0]; k < columns[1]; k++) {
            double v = element_f64(x->type.type, x->data, base + i * width + k);
            if (!any || v > best || v != v) best = v;
            any = true;
        }
    return best;
}

static braid_status max_roi_pool_eval(eval *e) {
    const tensor *x = eval_in(e, 0), *rois = eval_in(e, 1);
    double scale = (double)node_float(e->node, "spatial_scale", 1);
    int64_t shape[2] = {0}, o = 0;
    tensor *y;
    TRY(pooled_shape(e->node, shape, e->err));
    TRY(eval_output(e, 0, &y));
    const int64_t *d = x->type.dims;
    for (int64_t r = 0; r < rois->type.dims[0]; r++) {
        double v[5];
        for (int i = 0; i < 5; i++) {
            v[i] = element_f64(rois->type.type, rois->data, 5 * r + i);
            if (i > 0) v[i] = round(v[i] * scale);
            if (!isfinite(v[i])) return error_set(e->err, BRAID_INDEX, "region %lld is not finite", (long long)r);
        }
        if (v[0] < 0 || v[0] >= (double)d[0])
            return error_set(e->err, BRAID_INDEX, "batch index %g outside [0, %lld)", v[0], (long long)d[0]);
        for (int64_t c = 0; c < d[1]; c++)
            for (int64_t i = 0; i < shape[0] * shape[1]; i++) {
                int64_t rows[2], columns[2], base = ((int64_t)v[0] * d[1] + c) * d[2] * d[3];
                pool_cells(v[2], v[4], shape[0], i / shape[1], d[2], rows);
                pool_cells(v[1], v[3], shape[1], i % shape[1], d[3], columns);
                element_set_f64(y->type.type, y->data, o++, max_of(x, base, rows, columns, d[3]));
            }
    }
    return BRAID_OK;
}

/* --------------------------------------------------------------------------------------------------- rows */
static const attribute_spec align_specs[] = {
    {"coordinate_transformation_mode", ATTRIBUTE_STRING, "half_pixel"},
    {"mode", ATTRIBUTE_STRING, "avg"},
    {"output_height", ATTRIBUTE_INT, "1"},
    {"output_width", ATTRIBUTE_INT, "1"},
    {"sampling_ratio", ATTRIBUTE_INT, "0"},
    {"spatial_scale", ATTRIBUTE_FLOAT, "1"},
    {0},
};
static const attribute_spec max_specs[] = {
    {"pooled_shape", ATTRIBUTE_INTS, NULL}, {"spatial_scale", ATTRIBUTE_FLOAT, "1"}, {0}};

const op roi_ops[] = {
    {.name = "RoiAlign", .since = 10, .min_in = 3, .max_in = 3, .min_out = 1, .max_out = 1, .attributes = align_specs,
     .upgrade = roi_align_upgrade, .infer = roi_align_infer, .eval = roi_align_eval, .lower = roi_align_lower},
    {.name = "MaxRoiPool", .since = 1, .min_in = 2, .max_in = 2, .min_out = 1, .max_out = 1, .attributes = max_specs,
     .infer = max_roi_pool_infer, .eval = max_roi_pool_eval},
    {0},
};
