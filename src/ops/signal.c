/*
 * signal.c: window functions, MelWeightMatrix, DFT, STFT. CPU only: the first two depend on scalars alone and are folded.
 */
#include "ops/follow.h"
#include "ops/upgrade.h"
#include <math.h>

#define PI 3.14159265358979323846

static bool is_scalar(const tensor_type *t) {
    return t->rank <= 0 || (t->rank == 1 && (!dim_known(t->dims[0]) || t->dims[0] == 1));
}

/* Integer scalar input i: a number, a symbol, or a fresh one. */
static braid_status scalar_int(infer *c, int i, int64_t *out) {
    int count;
    const int64_t *v;
    TRY(infer_index_type(c, i));
    if (!is_scalar(c->in[i])) return error_set(c->err, BRAID_SHAPE, "input %d: no scalar", i);
    *out = infer_ints(c, i, &count, &v) && count == 1 ? v[0] : infer_fresh(c);
    return BRAID_OK;
}

/* The same; a number must lie in [low, 2^31). */
static braid_status scalar_size(infer *c, int i, int64_t low, int64_t *out) {
    TRY(scalar_int(c, i, out));
    if (dim_known(*out) && (*out < low || *out > INT32_MAX))
        return error_set(c->err, BRAID_MODEL, "input %d is %lld, expected %lld to 2^31 - 1", i, (long long)*out,
                         (long long)low);
    return BRAID_OK;
}

static braid_status output_type(infer *c) {
    int64_t type = node_int(c->node, "output_datatype", BRAID_FLOAT32);
    braid_type t = (braid_type)type;
    if (type < 0 || type > 64 || !(type_is_float(t) || type_is_integer(t)))
        return error_set(c->err, BRAID_TYPE, "output_datatype %lld is not allowed", (long long)type);
    c->out[0].type = t;
    return BRAID_OK;
}

/* ------------------------------------------------------------------------------------------------ windows */
static braid_status window_infer(infer *c) {
    TRY(output_type(c));
    c->out[0].rank = 1;
    return scalar_size(c, 0, 0, &c->out[0].dims[0]);
}

/* a - b cos(2 pi i / n) + d cos(4 pi i / n), n the size or, of symmetric windows, one less. */
static braid_status window_fill(eval *e, double a, double b, double d) {
    tensor *y;
    TRY(eval_output(e, 0, &y));
    int64_t size = y->type.dims[0], n = node_int(e->node, "periodic", 1) ? size : size - 1;
    for (int64_t i = 0; i < size; i++) {
        double angle = n > 0 ? 2 * PI * (double)i / (double)n : 0;
        element_set_f64(y->type.type, y->data, i, a - b * cos(angle) + d * cos(2 * angle));
    }
    return BRAID_OK;
}

static braid_status hann_eval(eval *e) { return window_fill(e, 0.5, 0.5, 0); }
static braid_status hamming_eval(eval *e) { return window_fill(e, 25.0 / 46, 1 - 25.0 / 46, 0); }
static braid_status blackman_eval(eval *e) { return window_fill(e, 0.42, 0.5, 0.08); }

/* ---------------------------------------------------------------------------------------- MelWeightMatrix */
static braid_status mel_infer(infer *c) {
    int64_t bins, length, rate;
    TRY(output_type(c));
    TRY(scalar_size(c, 0, 1, &bins));
    TRY(scalar_size(c, 1, 1, &length));
    TRY(scalar_size(c, 2, 1, &rate));
    for (int i = 3; i < 5; i++) {
        if (!is_scalar(c->in[i])) return error_set(c->err, BRAID_SHAPE, "input %d: no scalar", i);
        if (c->in[i]->type != BRAID_TYPE_NONE && !type_is_float(c->in[i]->type))
            return error_set(c->err, BRAID_TYPE, "input %d: type %s, expected a float", i,
                             braid_type_name(c->in[i]->type));
    }
    c->out[0].rank = 2;
    c->out[0].dims[0] = dim_known(length) ? length / 2 + 1 : infer_fresh(c);
    c->out[0].dims[1] = bins;
    return infer_limit(c, 0);
}

static double to_mel(double hertz) { return 2595 * log10(1 + hertz / 700); }
static double from_mel(double mel) { return 700 * (pow(10, mel / 2595) - 1); }

/* One triangle over spectrum bins: up from `left` to 1 at `middle`, down to `right`. */
static void mel_triangle(tensor *y, int64_t column, int64_t left, int64_t middle, int64_t right) {
    int64_t rows = y->type.dims[0], columns = y->type.dims[1];
    for (int64_t i = left < 0 ? 0 : left; i < rows && i <= (right > middle ? right : middle); i++) {
        double up = middle > left ? (double)(i - left) / (double)(middle - left) : 1;
        double v = i <= middle ? up : right > middle ? (double)(right - i) / (double)(right - middle) : 0;
        element_set_f64(y->type.type, y->data, i * columns + column, v);
    }
}

static braid_status mel_eval(eval *e) {
    int64_t v[3];
    double edge[2];
    tensor *y;
    for (int i = 0; i < 3; i++) v[i] = element_i64(eval_in(e, i)->type.type, eval_in(e, i)->data, 0);
    for (int i = 0; i < 2; i++) edge[i] = to_mel(element_f64(eval_in(e, i + 3)->type.type, eval_in(e, i + 3)->data, 0));
    TRY(eval_output(e, 0, &y));
    if (!isfinite(edge[0]) || !isfinite(edge[1])) return error_set(e->err, BRAID_MODEL, "the edges are no frequencies");
    int64_t at[3];
    double step_by = (edge[1] - edge[0]) / (double)(v[0] + 2), limit = (double)y->type.dims[0] + 1;
    for (int64_t i = 0; i < v[0]; i++) {
        for (int k = 0; k < 3; k++) {
            double bin = floor((double)(v[1] + 1) * from_mel(edge[0] + (double)(i + k) * step_by) / (double)v[2]);
            at[k] = bin < 0 ? 0 : bin > limit ? (int64_t)limit : (int64_t)bin;
        }
        mel_triangle(y, i, at[0], at[1], at[2]);
    }
    return BRAID_OK;
}

/* -------------------------------------------------------------------------------------------- transforms */
/* A transform of n points: work of n complex numbers, and the n-th roots of unity. */
typedef struct fourier {
    int64_t n;
    double sign; /* -1 forward, 1 inverse */
    double (*in)[2], (*out)[2], (*root)[2];
} fourier;

static braid_status fourier_new(arena *memory, int64_t n, bool inverse, fourier *f, braid_error *err) {
    *f = (fourier){.n = n, .sign = inverse ? 1 : -1};
    f->in = arena_array(memory, (size_t)n + 1, sizeof *f->in);
    f->out = arena_array(memory, (size_t)n + 1, sizeof *f->out);
    f->root = arena_array(memory, (size_t)n + 1, sizeof *f->root);
    if (!f->in || !f->out || !f->root) return error_memory(err);
    for (int64_t i = 0; i < n; i++) {
        double angle = f->sign * 2 * PI * (double)i / (double)n;
        f->root[i][0] = cos(angle);
        f->root[i][1] = sin(angle);
    }
    return BRAID_OK;
}

/* The sum that defines the transform. */
static void fourier_direct(fourier *f) {
    for (int64_t k = 0; k < f->n; k++) {
        double re = 0, im = 0;
        for (int64_t i = 0, r = 0; i < f->n; i++, r = r + k >= f->n ? r + k - f->n : r + k) {
            re += f->in[i][0] * f->root[r][0] - f->in[i][1] * f->root[r][1];
            im += f->in[i][0] * f->root[r][1] + f->in[i][1] * f->root[r][0];
        }
        f->out[k][0] = re;
        f->out[k][1] = im;
    }
}

static void fourier_reorder(fourier *f) {
    for (int64_t i = 0, j = 0; i < f->n; i++) {
        memcpy(f->out[j], f->in[i], sizeof f->in[i]);
        int64_t bit = f->n >> 1;
        for (; bit && (j & bit); bit >>= 1) j ^= bit;
        j |= bit;
    }
}

/* Powers of two: halves are joined from the bottom up. */
static void fourier_halves(fourier *f) {
    fourier_reorder(f);
    for (int64_t half = 1; half < f->n; half *= 2)
        for (int64_t start = 0; start < f->n; start += 2 * half)
            for (int64_t i = 0; i < half; i++) {
                const double *w = f->root[i * (f->n / (2 * half))];
                double *a = f->out[start + i], *b = f->out[start + i + half];
                double re = b[0] * w[0] - b[1] * w[1], im = b[0] * w[1] + b[1] * w[0];
                b[0] = a[0] - re, b[1] = a[1] - im;
                a[0] += re, a[1] += im;
            }
}

static void fourier_run(fourier *f) {
    if ((f->n & (f->n - 1)) == 0)
        fourier_halves(f);
    else
        fourier_direct(f);
    if (f->sign < 0) return;
    for (int64_t i = 0; i < f->n; i++) f->out[i][0] /= (double)f->n, f->out[i][1] /= (double)f->n;
}

/* ---------------------------------------------------------------------------------------------------- DFT */
static braid_status dft_upgrade(upgrade *u) {
    if (u->opset >= 20) return BRAID_OK;
    int32_t axis = graph_constant_scalar(u->g, "", BRAID_INT64, (double)node_int(u->node, "axis", 1));
    upgrade_drop_attribute(u, "axis");
    return upgrade_set_input(u, 2, axis);
}

static braid_status dft_axis(int64_t given, int rank, int *out, braid_error *err) {
    TRY(axis_normalise(given, rank, out, err));
    if (*out == rank - 1) return error_set(err, BRAID_MODEL, "axis %d holds the complex numbers", *out);
    return BRAID_OK;
}

static braid_status dft_types(infer *c) {
    const tensor_type *x = c->in[0];
    if (x->type != BRAID_TYPE_NONE && !type_is_float(x->type))
        return error_set(c->err, BRAID_TYPE, "input 0: type %s, expected a float", braid_type_name(x->type));
    TRY(infer_rank(c, 0, 2, BRAID_MAX_RANK));
    if (x->rank < 0 || !dim_known(x->dims[x->rank - 1])) return BRAID_OK;
    int64_t parts = x->dims[x->rank - 1];
    bool inverse = node_int(c->node, "inverse", 0) != 0, half = node_int(c->node, "onesided", 0) != 0;
    if (parts != 1 && parts != 2)
        return error_set(c->err, BRAID_SHAPE, "input 0: last dim is %lld, expected 1 or 2", (long long)parts);
    if (half && parts != (inverse ? 2 : 1))
        return error_set(c->err, BRAID_SHAPE, "input 0: last dim is %lld, expected %d of this one-sided transform",
                         (long long)parts, inverse ? 2 : 1);
    return BRAID_OK;
}

/* Points of the transform along an axis of `size`; a symbol where unknown. */
static braid_status dft_points(infer *c, int64_t size, bool inverse, bool half, int64_t *out) {
    if (infer_has(c, 1)) return scalar_size(c, 1, 1, out);
    *out = inverse && half ? (dim_known(size) ? 2 * (size - 1) : infer_fresh(c)) : size;
    if (dim_known(*out) && (*out < 1 || *out > INT32_MAX))
        return error_set(c->err, BRAID_SHAPE, "a transform of %lld points", (long long)*out);
    return BRAID_OK;
}

static braid_status dft_infer(infer *c) {
    const tensor_type *x = c->in[0];
    int64_t given = -2, points;
    int axis;
    TRY(dft_types(c));
    c->out[0].type = x->type;
    if (infer_has(c, 2)) TRY(scalar_int(c, 2, &given));
    if (x->rank < 0) return BRAID_OK;
    c->out[0] = *x;
    bool inverse = node_int(c->node, "inverse", 0) != 0, half = node_int(c->node, "onesided", 0) != 0;
    c->out[0].dims[x->rank - 1] = inverse && half ? 1 : 2;
    if (dim_is_symbol(given)) {
        for (int i = 0; i < x->rank - 1; i++) c->out[0].dims[i] = infer_fresh(c);
        return BRAID_OK;
    }
    TRY(dft_axis(given, x->rank, &axis, c->err));
    TRY(dft_points(c, x->dims[axis], inverse, half, &points));
    c->out[0].dims[axis] = half && !inverse ? (dim_known(points) ? points / 2 + 1 : infer_fresh(c)) : points;
    return infer_limit(c, 0);
}

/* A tensor seen as [outer][extent][inner][parts] around an axis. */
typedef struct lines {
    int64_t outer, extent, inner, parts;
} lines;

static lines lines_of(const tensor_type *t, int axis) {
    lines l = {1, t->dims[axis], 1, t->dims[t->rank - 1]};
    for (int i = 0; i < axis; i++) l.outer *= t->dims[i];
    for (int i = axis + 1; i < t->rank - 1; i++) l.inner *= t->dims[i];
    return l;
}

/* Loads a line, padded with zeros; a one-sided spectrum gets its mirror image. */
static void dft_load(fourier *f, const tensor *x, const lines *l, int64_t o, int64_t i, bool mirror) {
    for (int64_t k = 0; k < f->n; k++) {
        bool flipped = mirror && k > f->n / 2;
        int64_t from = flipped ? f->n - k : k, at = ((o * l->extent + from) * l->inner + i) * l->parts;
        bool inside = from < l->extent;
        f->in[k][0] = inside ? element_f64(x->type.type, x->data, at) : 0;
        f->in[k][1] = inside && l->parts == 2 ? element_f64(x->type.type, x->data, at + 1) : 0;
        if (flipped) f->in[k][1] = -f->in[k][1];
        /* the mean and the middle of a real signal's spectrum are real */
        if (mirror && (k == 0 || 2 * k == f->n)) f->in[k][1] = 0;
    }
}

static void dft_store(const fourier *f, tensor *y, const lines *l, int64_t o, int64_t i) {
    for (int64_t k = 0; k < l->extent; k++)
        for (int64_t p = 0; p < l->parts; p++) {
            int64_t at = ((o * l->extent + k) * l->inner + i) * l->parts + p;
            element_set_f64(y->type.type, y->data, at, f->out[k][p]);
        }
}

static braid_status dft_eval(eval *e) {
    const tensor *x = eval_in(e, 0), *length = eval_in(e, 1), *at = eval_in(e, 2);
    bool inverse = node_int(e->node, "inverse", 0) != 0, half = node_int(e->node, "onesided", 0) != 0;
    int axis;
    tensor *y;
    fourier f;
    TRY(dft_axis(at ? element_i64(at->type.type, at->data, 0) : -2, x->type.rank, &axis, e->err));
    TRY(eval_output(e, 0, &y));
    int64_t n = x->type.dims[axis];
    if (inverse && half) n = 2 * (n - 1);
    if (length) n = element_i64(length->type.type, length->data, 0);
    TRY(fourier_new(e->memory, n, inverse, &f, e->err));
    lines in = lines_of(&x->type, axis), out = lines_of(&y->type, axis);
    for (int64_t o = 0; o < in.outer; o++)
        for (int64_t i = 0; i < in.inner; i++) {
            dft_load(&f, x, &in, o, i, inverse && half);
            fourier_run(&f);
            dft_store(&f, y, &out, o, i);
        }
    return BRAID_OK;
}

/* --------------------------------------------------------------------------------------------------- STFT */
static braid_status stft_types(infer *c) {
    const tensor_type *x = c->in[0];
    if (x->type != BRAID_TYPE_NONE && !type_is_float(x->type))
        return error_set(c->err, BRAID_TYPE, "input 0: type %s, expected a float", braid_type_name(x->type));
    TRY(infer_rank(c, 0, 3, 3));
    TRY(infer_rank(c, 2, 1, 1));
    if (infer_has(c, 2) && x->type != BRAID_TYPE_NONE && c->in[2]->type != BRAID_TYPE_NONE && c->in[2]->type != x->type)
        return error_set(c->err, BRAID_TYPE, "input 2: type %s, input 0 has %s", braid_type_name(c->in[2]->type),
                         braid_type_name(x->type));
    if (x->rank < 0 || !dim_known(x->dims[2])) return BRAID_OK;
    bool half = node_int(c->node, "onesided", 1) != 0;
    if (x->dims[2] != 1 && (x->dims[2] != 2 || half))
        return error_set(c->err, BRAID_SHAPE, "input 0: last dim is %lld, expected 1%s", (long long)x->dims[2],
                         half ? " of a one-sided transform" : " or 2");
    return BRAID_OK;
}

/* Length of a frame: given, the window's, or the whole signal. */
static braid_status stft_frame(infer *c, int64_t *out) {
    int64_t window = infer_has(c, 2) && c->in[2]->rank == 1 ? c->in[2]->dims[0] : infer_fresh(c);
    if (infer_has(c, 3)) {
        TRY(scalar_size(c, 3, 1, out));
        if (infer_has(c, 2) && dim_known(window) && dim_known(*out) && window != *out)
            return error_set(c->err, BRAID_SHAPE, "a window of %lld for frames of %lld", (long long)window,
                             (long long)*out);
        return BRAID_OK;
    }
    *out = infer_has(c, 2) ? window : c->in[0]->rank == 3 ? c->in[0]->dims[1] : infer_fresh(c);
    if (dim_known(*out) && (*out < 1 || *out > INT32_MAX))
        return error_set(c->err, BRAID_SHAPE, "a frame of %lld samples", (long long)*out);
    return BRAID_OK;
}

static braid_status stft_infer(infer *c) {
    const tensor_type *x = c->in[0];
    int64_t by, frame;
    TRY(stft_types(c));
    TRY(scalar_size(c, 1, 1, &by));
    TRY(stft_frame(c, &frame));
    bool half = node_int(c->node, "onesided", 1) != 0;
    c->out[0] = (tensor_type){.type = x->type, .rank = 4};
    c->out[0].dims[0] = x->rank == 3 ? x->dims[0] : infer_fresh(c);
    c->out[0].dims[1] = infer_fresh(c);
    c->out[0].dims[2] = !half ? frame : dim_known(frame) ? frame / 2 + 1 : infer_fresh(c);
    c->out[0].dims[3] = 2;
    if (x->rank != 3 || !dim_known(x->dims[1]) || !dim_known(frame)) return BRAID_OK;
    if (frame > x->dims[1])
        return error_set(c->err, BRAID_SHAPE, "a frame of %lld samples in a signal of %lld", (long long)frame,
                         (long long)x->dims[1]);
    if (dim_known(by)) c->out[0].dims[1] = (x->dims[1] - frame) / by + 1;
    return infer_limit(c, 0);
}

static void stft_load(fourier *f, const tensor *x, const tensor *window, int64_t batch, int64_t start) {
    int64_t parts = x->type.dims[2];
    for (int64_t k = 0; k < f->n; k++) {
        int64_t at = (batch * x->type.dims[1] + start + k) * parts;
        double w = window ? element_f64(window->type.type, window->data, k) : 1;
        f->in[k][0] = w * element_f64(x->type.type, x->data, at);
        f->in[k][1] = parts == 2 ? w * element_f64(x->type.type, x->data, at + 1) : 0;
    }
}

static braid_status stft_eval(eval *e) {
    const tensor *x = eval_in(e, 0), *by = eval_in(e, 1), *window = eval_in(e, 2), *length = eval_in(e, 3);
    tensor *y;
    fourier f;
    TRY(eval_output(e, 0, &y));
    int64_t frame = length   ? element_i64(length->type.type, length->data, 0)
                    : window ? window->type.dims[0]
                             : x->type.dims[1];
    int64_t frames = y->type.dims[1], step_by = element_i64(by->type.type, by->data, 0);
    TRY(fourier_new(e->memory, frame, false, &f, e->err));
    lines out = {y->type.dims[0] * frames, y->type.dims[2], 1, 2};
    for (int64_t o = 0; o < out.outer; o++) {
        stft_load(&f, x, window, o / frames, o % frames * step_by);
        fourier_run(&f);
        dft_store(&f, y, &out, o, 0);
    }
    return BRAID_OK;
}

/* --------------------------------------------------------------------------------------------------- rows */
static const attribute_spec window_specs[] = {
    {"output_datatype", ATTRIBUTE_INT, "1"}, {"periodic", ATTRIBUTE_INT, "1"}, {0}};
static const attribute_spec mel_specs[] = {{"output_datatype", ATTRIBUTE_INT, "1"}, {0}};
static const attribute_spec dft_specs[] = {
    {"axis", ATTRIBUTE_INT, "1"}, {"inverse", ATTRIBUTE_INT, "0"}, {"onesided", ATTRIBUTE_INT, "0"}, {0}};
static const attribute_spec stft_specs[] = {{"onesided", ATTRIBUTE_INT, "1"}, {0}};

#define WINDOW(title, function)                                                                         \
    {.name = title, .since = 17, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1, .attributes = window_specs, \
     .infer = window_infer, .eval = function}

const op signal_ops[] = {
    WINDOW("HannWindow", hann_eval),
    WINDOW("HammingWindow", hamming_eval),
    WINDOW("BlackmanWindow", blackman_eval),
    {.name = "MelWeightMatrix", .since = 17, .min_in = 5, .max_in = 5, .min_out = 1, .max_out = 1,
     .attributes = mel_specs, .infer = mel_infer, .eval = mel_eval},
    {.name = "DFT", .since = 17, .min_in = 1, .max_in = 3, .min_out = 1, .max_out = 1, .attributes = dft_specs,
     .upgrade = dft_upgrade, .infer = dft_infer, .eval = dft_eval},
    {.name = "STFT", .since = 17, .min_in = 2, .max_in = 4, .min_out = 1, .max_out = 1, .attributes = stft_specs,
     .infer = stft_infer, .eval = stft_eval},
    {0},
};
