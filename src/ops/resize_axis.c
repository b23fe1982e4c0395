/*
 * resize_axis.c: from attributes and inputs to extents, and from these to the table of an axis.
 */
#include "ops/resize.h"
#include <math.h>

/* ---------------------------------------------------------------------------------------------- attributes */
static int choice(const char *word, const char *const *names) {
    for (int i = 0; names[i]; i++)
        if (strcmp(word, names[i]) == 0) return i;
    return -1;
}

/* Number of the string attribute `name` within names; `fallback` where it is absent. */
static braid_status read_choice(const node *n, const char *name, const char *fallback, const char *const *names,
                                int *out, braid_error *err) {
    const char *word = node_string(n, name, fallback);
    *out = choice(word, names);
    if (*out < 0) return error_set(err, BRAID_MODEL, "%s '%s' is unknown", name, word);
    return BRAID_OK;
}

static braid_status read_axes(const node *n, int rank, resize_attributes *a, braid_error *err) {
    const int64_t *list;
    int count = node_ints(n, "axes", &list);
    unsigned seen = 0;
    if (count > rank) return error_set(err, BRAID_MODEL, "axes names %d axes of rank %d", count, rank);
    a->n_axes = count > 0 ? count : rank;
    for (int i = 0; i < a->n_axes; i++) {
        a->axes[i] = i;
        if (count > 0) TRY(axis_normalise(list[i], rank, &a->axes[i], err));
        if (seen & 1u << a->axes[i]) return error_set(err, BRAID_MODEL, "axes names axis %d twice", a->axes[i]);
        seen |= 1u << a->axes[i];
    }
    return BRAID_OK;
}

braid_status resize_read(const node *n, int rank, resize_attributes *a, braid_error *err) {
    static const char *const modes[] = {"nearest", "linear", "cubic", NULL};
    static const char *const coordinates[] = {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                                              "align_corners", "asymmetric", "tf_crop_and_resize",
                                              "tf_half_pixel_for_nn", NULL};
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple", NULL};
    static const char *const policies[] = {"stretch", "not_larger", "not_smaller", NULL};
    int mode, coordinate, rounding, policy;
    TRY(read_choice(n, "mode", "nearest", modes, &mode, err));
    TRY(read_choice(n, "coordinate_transformation_mode", "half_pixel", coordinates, &coordinate, err));
    TRY(read_choice(n, "nearest_mode", "round_prefer_floor", roundings, &rounding, err));
    TRY(read_choice(n, "keep_aspect_ratio_policy", "stretch", policies, &policy, err));
    *a = (resize_attributes){.mode = (resize_mode)mode,
                             .coordinates = (resize_coordinates)coordinate,
                             .rounding = (resize_rounding)rounding,
                             .policy = (resize_policy)policy,
                             .antialias = node_int(n, "antialias", 0) != 0,
                             .exclude_outside = node_int(n, "exclude_outside", 0) != 0,
                             .cubic_a = (double)node_float(n, "cubic_coeff_a", -0.75f),
                             .extrapolation = (double)node_float(n, "extrapolation_value", 0)};
    return read_axes(n, rank, a, err);
}

/* -------------------------------------------------------------------------------------------------- inputs */
static bool given(const tensor *t) {
    int64_t n = 0;
    return t && (!tensor_type_count(&t->type, &n) || n > 0);
}

static braid_status check_list(const tensor *t, int input, int64_t count, braid_error *err) {
    int64_t n = 0;
    if (!tensor_type_count(&t->type, &n) || n != count)
        return error_set(err, BRAID_SHAPE, "input %d: %lld elements, expected %lld", input, (long long)n,
                         (long long)count);
    return BRAID_OK;
}

braid_status resize_take(const resize_attributes *a, arena *memory, const tensor *roi, const tensor *scales,
                         const tensor *sizes, resize_inputs *in, braid_error *err) {
    *in = (resize_inputs){0};
    if (given(scales) == given(sizes))
        return error_set(err, BRAID_MODEL, given(scales) ? "both scales and sizes are given"
                                                         : "neither scales nor sizes is given");
    if (given(scales)) {
        if (scales->type.type != BRAID_FLOAT32)
            return error_set(err, BRAID_TYPE, "input 2: type %s, expected float32", braid_type_name(scales->type.type));
        TRY(check_list(scales, 2, a->n_axes, err));
        in->scales = scales->data;
    } else {
        if (sizes->type.type != BRAID_INT64)
            return error_set(err, BRAID_TYPE, "input 3: type %s, expected int64", braid_type_name(sizes->type.type));
        TRY(check_list(sizes, 3, a->n_axes, err));
        in->sizes = sizes->data;
    }
    if (a->coordinates != RESIZE_TF_CROP) return BRAID_OK;
    if (!given(roi)) return error_set(err, BRAID_MODEL, "tf_crop_and_resize needs the input roi");
    if (!type_is_float(roi->type.type))
        return error_set(err, BRAID_TYPE, "input 1: type %s, expected a float", braid_type_name(roi->type.type));
    TRY(check_list(roi, 1, 2 * a->n_axes, err));
    double *values = arena_array(memory, (size_t)a->n_axes * 2, sizeof *values);
    if (!values) return error_memory(err);
    for (int i = 0; i < 2 * a->n_axes; i++) values[i] = element_f64(roi->type.type, roi->data, i);
    in->roi = values;
    return BRAID_OK;
}

/* ------------------------------------------------------------------------------------------------- extents */
static braid_status fit_scale(resize_axis *x, int axis, float scale, bool crop, braid_error *err) {
    if (!(scale > 0) || isinf(scale))
        return error_set(err, BRAID_MODEL, "scale of axis %d is %g, expected above 0", axis, (double)scale);
    /* The product is taken in float: 1.4f * 5 is 7 there, as its author meant, and 6.9999999 in double. */
    float width = (float)x->in * scale;
    if (crop) width *= (float)(x->roi[1] - x->roi[0]);
    if (!(width < (float)ELEMENTS_MAX))
        return error_set(err, BRAID_LIMIT, "axis %d grows to %g elements", axis, (double)width);
    x->scale = (double)scale;
    x->out = width > 0 ? (int64_t)floorf(width) : 0;
    x->width = (double)scale * (double)x->in;
    return BRAID_OK;
}

static braid_status fit_size(resize_axis *x, int axis, int64_t size, braid_error *err) {
    if (size < 0) return error_set(err, BRAID_SHAPE, "size of axis %d is %lld", axis, (long long)size);
    if (size > ELEMENTS_MAX) return error_set(err, BRAID_LIMIT, "size of axis %d is %lld", axis, (long long)size);
    x->out = size;
    x->width = (double)size;
    x->scale = x->in > 0 ? (double)size / (double)x->in : 1;
    return BRAID_OK;
}

/* One scale for all named axes, so that their proportions stay. */
static braid_status fit_policy(const resize_attributes *a, resize_axis *axes, braid_error *err) {
    double scale = axes[a->axes[0]].scale;
    for (int i = 1; i < a->n_axes; i++) {
        double s = axes[a->axes[i]].scale;
        scale = a->policy == RESIZE_NOT_LARGER ? fmin(scale, s) : fmax(scale, s);
    }
    for (int i = 0; i < a->n_axes; i++) {
        resize_axis *x = &axes[a->axes[i]];
        double width = scale * (double)x->in;
        if (!(width < (double)ELEMENTS_MAX))
            return error_set(err, BRAID_LIMIT, "axis %d grows to %g elements", a->axes[i], width);
        x->scale = scale;
        x->width = width;
        x->out = (int64_t)floor(width + 0.5);
    }
    return BRAID_OK;
}

braid_status resize_fit(const resize_attributes *a, int rank, const int64_t *dims, const resize_inputs *in,
                        resize_axis out[BRAID_MAX_RANK], braid_error *err) {
    bool crop = a->coordinates == RESIZE_TF_CROP && in->roi;
    for (int i = 0; i < rank; i++)
        out[i] = (resize_axis){dims[i], dims[i], 1, (double)dims[i], {0, 1}, true};
    for (int i = 0; i < a->n_axes; i++) {
        resize_axis *x = &out[a->axes[i]];
        if (crop) x->roi[0] = in->roi[i], x->roi[1] = in->roi[a->n_axes + i];
        if (!isfinite(x->roi[0]) || !isfinite(x->roi[1]))
            return error_set(err, BRAID_MODEL, "roi of axis %d is not finite", a->axes[i]);
        if (in->scales)
            TRY(fit_scale(x, a->axes[i], in->scales[i], crop, err));
        else
            TRY(fit_size(x, a->axes[i], in->sizes[i], err));
    }
    if (in->sizes && a->policy != RESIZE_STRETCH && a->n_axes > 0) TRY(fit_policy(a, out, err));
    for (int i = 0; i < rank; i++) {
        resize_axis *x = &out[i];
        if (x->in == 0 && x->out > 0) return error_set(err, BRAID_SHAPE, "axis %d is empty and cannot grow", i);
        bool near = fabs(x->scale - 1) <= 1e-9 || (in->sizes != NULL && a->policy == RESIZE_STRETCH);
        x->same = x->in == x->out && near && (!crop || (x->roi[0] == 0 && x->roi[1] == 1));
    }
    return BRAID_OK;
}

/* -------------------------------------------------------------------------------------------------- tables */
/* Output `at` of `length`, spread from the first to the last element of the input; the last is met exactly. */
static double spread(const resize_axis *x, double at, double length) {
    return length == 1 ? 0 : at * (double)(x->in - 1) / (length - 1);
}

/* Position in the input that output o stands for. Of align_corners the standard's data take the output's length before
   it is rounded; its text means the rounded one elsewhere. */
static double source(const resize_attributes *a, const resize_axis *x, int64_t o) {
    double at = (double)o, in = (double)x->in, half = (at + 0.5) / x->scale;
    switch (a->coordinates) {
    case RESIZE_HALF_PIXEL: return half - 0.5;
    case RESIZE_HALF_PIXEL_SYMMETRIC: return in / 2 * (1 - (double)x->out / x->width) + half - 0.5;
    case RESIZE_PYTORCH_HALF_PIXEL: return x->out > 1 ? half - 0.5 : 0;
    case RESIZE_ALIGN_CORNERS: return spread(x, at, x->width);
    case RESIZE_ASYMMETRIC: return at / x->scale;
    case RESIZE_TF_HALF_PIXEL: return half;
    case RESIZE_TF_CROP: break;
    }
    if (x->out == 1) return 0.5 * (x->roi[0] + x->roi[1]) * (in - 1);
    return x->roi[0] * (in - 1) + spread(x, at, (double)x->out) * (x->roi[1] - x->roi[0]);
}

/* The same in float steps for the nearest mode: 3 / 0.6f is 5 there, and 4.9999998 in double. */
static float source_float(const resize_attributes *a, const resize_axis *x, int64_t o) {
    float at = (float)o, scale = (float)x->scale;
    switch (a->coordinates) {
    case RESIZE_HALF_PIXEL: return (at + 0.5f) / scale - 0.5f;
    case RESIZE_PYTORCH_HALF_PIXEL: return x->out > 1 ? (at + 0.5f) / scale - 0.5f : 0;
    case RESIZE_ASYMMETRIC: return at / scale;
    case RESIZE_TF_HALF_PIXEL: return (at + 0.5f) / scale;
    default: return (float)source(a, x, o);
    }
}

static float round_nearest(resize_rounding rounding, float v, bool shrinks) {
    switch (rounding) {
    case RESIZE_PREFER_FLOOR: return ceilf(v - 0.5f);
    case RESIZE_PREFER_CEIL: return floorf(v + 0.5f);
    case RESIZE_FLOOR: return floorf(v);
    case RESIZE_CEIL: return ceilf(v);
    case RESIZE_SIMPLE: break;
    }
    return shrinks ? ceilf(v) : floorf(v);
}

static double clamp(double v, double low, double high) { return v < low ? low : v > high ? high : v; }

static bool outside(const resize_attributes *a, const resize_axis *x, double at) {
    return a->coordinates == RESIZE_TF_CROP && (at < 0 || at > (double)(x->in - 1));
}

static void fill_nearest(const resize_attributes *a, const resize_axis *x, resize_table *t) {
    for (int64_t o = 0; o < x->out; o++) {
        float at = source_float(a, x, o);
        float nearest = round_nearest(a->rounding, at, x->scale < 1);
        t->first[o] = outside(a, x, (double)at) ? RESIZE_OUTSIDE
                                                : (int32_t)clamp((double)nearest, 0, (double)(x->in - 1));
        t->weight[o] = 1;
    }
}

static double filter_linear(double v) { return fabs(v) < 1 ? 1 - fabs(v) : 0; }

static double filter_cubic(double v, double a) {
    v = fabs(v);
    if (v <= 1) return ((a + 2) * v - (a + 3)) * v * v + 1;
    return v < 2 ? ((a * v - 5 * a) * v + 8 * a) * v - 4 * a : 0;
}

/* Weights of the taps first, first + 1, ... around `at`, for a filter stretched by 1 / shrink. */
static void fill_weights(const resize_attributes *a, const resize_axis *x, double at, double shrink, int64_t first,
                         int taps, double *weight) {
    double sum = 0;
    for (int t = 0; t < taps; t++) {
        double v = ((double)(first + t) - at) * shrink;
        weight[t] = a->mode == RESIZE_LINEAR ? filter_linear(v) : filter_cubic(v, a->cubic_a);
        if (a->exclude_outside && (first + t < 0 || first + t >= x->in)) weight[t] = 0;
        sum += weight[t];
    }
    if (!a->exclude_outside && shrink == 1) return;
    for (int t = 0; t < taps; t++) weight[t] = sum != 0 ? weight[t] / sum : 0;
}

static double shrink_of(const resize_attributes *a, const resize_axis *x) {
    return a->antialias && x->scale < 1 ? x->scale : 1;
}

/* First tap relative to the floor of a position. */
static int64_t lead_of(const resize_attributes *a, const resize_axis *x) {
    double radius = (a->mode == RESIZE_LINEAR ? 1 : 2) / shrink_of(a, x);
    return (int64_t)floor(-radius) + 1;
}

static void fill_filter(const resize_attributes *a, const resize_axis *x, resize_table *t) {
    double shrink = shrink_of(a, x);
    int64_t lead = lead_of(a, x);
    for (int64_t o = 0; o < x->out; o++) {
        double at = source(a, x, o), limit = (double)x->in + t->taps;
        t->first[o] = RESIZE_OUTSIDE;
        if (outside(a, x, at)) continue;
        at = clamp(at, -limit, limit); /* far outside, every tap reads the border */
        int64_t first = (int64_t)floor(at) + lead;
        t->first[o] = (int32_t)first;
        fill_weights(a, x, at, shrink, first, t->taps, t->weight + o * t->taps);
    }
}

braid_status resize_table_new(arena *memory, const resize_attributes *a, const resize_axis *x, resize_table *t,
                              braid_error *err) {
    if (x->in >= INT32_MAX / 2 || x->out >= INT32_MAX / 2)
        return error_set(err, BRAID_LIMIT, "an axis of %lld elements is resized to %lld", (long long)x->in,
                         (long long)x->out);
    int64_t taps = 1, words;
    if (a->mode != RESIZE_NEAREST && !x->same) {
        double radius = 2 / shrink_of(a, x);
        if (!(radius < INT32_MAX / 8)) return error_set(err, BRAID_LIMIT, "scale %g is too small", x->scale);
        taps = 2 - 2 * lead_of(a, x);
    }
    if (!i64_mul(x->out, taps, &words) || words > ELEMENTS_MAX)
        return error_set(err, BRAID_LIMIT, "%lld outputs of %lld taps", (long long)x->out, (long long)taps);
    *t = (resize_table){.out = x->out, .taps = (int)taps};
    t->first = arena_array(memory, (size_t)x->out + 1, sizeof *t->first);
    t->weight = arena_array(memory, (size_t)words + 1, sizeof *t->weight);
    if (!t->first || !t->weight) return error_memory(err);
    for (int64_t o = 0; x->same && o < x->out; o++) t->first[o] = (int32_t)o, t->weight[o] = 1;
    if (x->same) return BRAID_OK;
    if (a->mode == RESIZE_NEAREST)
        fill_nearest(a, x, t);
    else
        fill_filter(a, x, t);
    return BRAID_OK;
}
