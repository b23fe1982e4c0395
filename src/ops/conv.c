/*
 * conv.c: Conv and ConvTranspose on the host: any number of spatial axes, groups, dilations and pads.
 */
#include "ops/conv.h"
#include "ops/product.h"

static int64_t volume(int n, const int64_t *dims) {
    int64_t count = 1;
    for (int i = 0; i < n; i++) count *= dims[i];
    return count;
}

/* Coordinates of a flat index, last axis fastest. */
static void unflatten(int n, const int64_t *dims, int64_t flat, int64_t *at) {
    for (int i = n - 1; i >= 0; i--) {
        at[i] = flat % dims[i];
        flat /= dims[i];
    }
}

/* Sets [*low, *high) to the o in [0, out) with 0 <= o * stride + shift < in. */
static void valid_range(int64_t out, int64_t stride, int64_t shift, int64_t in, int64_t *low, int64_t *high) {
    *low = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
    *high = in > shift ? (in - shift + stride - 1) / stride : 0;
    if (*high > out) *high = out;
    if (*low > *high) *low = *high;
}

/* ------------------------------------------------------------------------------------------------- Conv */

typedef struct conv_eval_state {
    conv c;
    const tensor *x, *w, *bias;
    tensor *out;
    int64_t x_at, out_at, output;  /* of this image and group; output: its first channel */
    int64_t window, pixels, plane; /* kernel taps, output pixels, input pixels */
} conv_eval_state;

/* Start of the input row that output row `o` reads with tap `tap`, within its plane; false: it lies in the pads. */
static bool row_at(const conv *c, const int64_t *o, const int64_t *tap, int64_t *at) {
    *at = 0;
    for (int i = 0; i < c->axes - 1; i++) {
        int64_t p = o[i] * c->stride[i] - c->begin[i] + tap[i] * c->dilation[i];
        if (p < 0 || p >= c->in[i]) return false;
        *at = *at * c->in[i] + p;
    }
    *at *= c->in[c->axes - 1];
    return true;
}

/* Output pixels [n0, n0 + nn) as one tap of one channel sees them. */
static void load_taps(const conv_eval_state *s, int64_t channel, const int64_t *tap, int64_t n0, int64_t nn, cell *to) {
    const conv *c = &s->c;
    int last = c->axes - 1;
    int64_t o[CONV_AXES], at, low, high, shift = tap[last] * c->dilation[last] - c->begin[last];
    valid_range(c->out[last], c->stride[last], shift, c->in[last], &low, &high);
    unflatten(c->axes, c->out, n0, o);
    while (nn > 0) {
        int64_t first = o[last], end = first + nn < c->out[last] ? first + nn : c->out[last];
        bool inside = row_at(c, o, tap, &at);
        int64_t from = !inside ? end : low < first ? first : low > end ? end : low;
        int64_t until = high < from ? from : high > end ? end : high;
        for (int64_t i = first; i < from; i++) to[i - first].f = 0;
        if (until > from)
            cells_load(to + (from - first), false, s->x->type.type, s->x->data,
                       s->x_at + channel * s->plane + at + from * c->stride[last] + shift, c->stride[last],
                       until - from);
        for (int64_t i = until; i < end; i++) to[i - first].f = 0;
        to += end - first;
        nn -= end - first;
        o[last] = 0;
        for (int i = last - 1; i >= 0 && ++o[i] == c->out[i]; i--) o[i] = 0;
    }
}

static void load_columns(const void *user, int64_t k0, int64_t kn, int64_t n0, int64_t nn, cell *to, int64_t stride) {
    const conv_eval_state *s = user;
    for (int64_t k = 0; k < kn; k++) {
        int64_t tap[CONV_AXES];
        unflatten(s->c.axes, s->c.kernel, (k0 + k) % s->window, tap);
        load_taps(s, (k0 + k) / s->window, tap, n0, nn, to + k * stride);
    }
}

static void conv_store(void *user, int64_t m, int64_t n0, int64_t nn, const cell *sums) {
    const conv_eval_state *s = user;
    braid_type type = s->out->type.type;
    double bias = s->bias ? element_f64(type, s->bias->data, s->output + m) : 0;
    for (int64_t done = 0; done < nn;) {
        cell line[64];
        int64_t n = nn - done < 64 ? nn - done : 64;
        for (int64_t i = 0; i < n; i++) line[i].f = sums[done + i].f + bias;
        cells_store(line, false, type, s->out->data, s->out_at + m * s->pixels + n0 + done, n);
        done += n;
    }
}

static braid_status conv_eval(eval *e) {
    conv_eval_state s = {.x = e->in[0], .w = e->in[1], .bias = eval_in(e, 2)};
    const conv *c = &s.c;
    TRY(conv_shape(e->node, &s.x->type, &s.w->type, &s.c, e->err));
    TRY(eval_output(e, 0, &s.out));
    s.window = volume(c->axes, c->kernel);
    s.pixels = volume(c->axes, c->out);
    s.plane = volume(c->axes, c->in);
    int64_t m = c->outputs / c->groups, channels = c->channels / c->groups;
    product p = {.m = m,
                 .n = s.pixels,
                 .k = channels * s.window,
                 .a_type = s.w->type.type,
                 .a = s.w->data,
                 .a_row = channels * s.window,
                 .a_column = 1,
                 .load_b = load_columns,
                 .store = conv_store,
                 .user = &s};
    if (s.out->bytes == 0) return BRAID_OK;
    TRY(product_prepare(&p, e->memory, e->err));
    for (int64_t i = 0; i < c->batch * c->groups; i++) {
        s.output = i % c->groups * m;
        s.x_at = i * channels * s.plane;
        s.out_at = i * m * s.pixels;
        p.a_at = s.output * p.a_row;
        product_run(&p);
    }
    return BRAID_OK;
}

/* ---------------------------------------------------------------------------------------- ConvTranspose */

typedef struct transpose_state {
    conv c;
    const tensor *x, *w, *bias;
    tensor *out;
    double *planes; /* one output plane for each worker */
    int64_t window, pixels, plane, workers;
} transpose_state;

/* Adds input row i[] times `weight` to the output plane. */
static void scatter_row(const transpose_state *s, const int64_t *i, const int64_t *tap, int64_t x_at, double weight,
                        double *plane) {
    const conv *c = &s->c;
    int last = c->axes - 1;
    int64_t at = 0, low, high;
    for (int a = 0; a < last; a++) {
        int64_t p = i[a] * c->stride[a] - c->begin[a] + tap[a] * c->dilation[a];
        if (p < 0 || p >= c->out[a]) return;
        at = at * c->out[a] + p;
    }
    int64_t shift = tap[last] * c->dilation[last] - c->begin[last], stride = c->stride[last];
    valid_range(c->in[last], stride, shift, c->out[last], &low, &high);
    at = at * c->out[last] + shift;
    for (int64_t first = low; first < high; first += 64) {
        cell line[64];
        int64_t n = high - first < 64 ? high - first : 64;
        cells_load(line, false, s->x->type.type, s->x->data, x_at + first, 1, n);
        for (int64_t j = 0; j < n; j++) plane[at + (first + j) * stride] += weight * line[j].f;
    }
}

/* One output channel of one image, into `plane`. */
static void transpose_channel(const transpose_state *s, int64_t image, int64_t output, double *plane) {
    const conv *c = &s->c;
    int64_t m = c->outputs / c->groups, channels = c->channels / c->groups, group = output / m;
    int last = c->axes - 1;
    double bias = s->bias ? element_f64(s->bias->type.type, s->bias->data, output) : 0;
    for (int64_t i = 0; i < s->pixels; i++) plane[i] = 0;
    for (int64_t k = 0; k < channels * s->window; k++) {
        int64_t tap[CONV_AXES], row[CONV_AXES] = {0}, channel = group * channels + k / s->window;
        unflatten(c->axes, c->kernel, k % s->window, tap);
        double weight =
            element_f64(s->w->type.type, s->w->data, (channel * m + output % m) * s->window + k % s->window);
        int64_t x_at = (image * c->channels + channel) * s->plane;
        for (int64_t r = 0; r < s->plane; r += c->in[last]) {
            unflatten(c->axes, c->in, r, row);
            scatter_row(s, row, tap, x_at + r, weight, plane);
        }
    }
    int64_t at = (image * c->outputs + output) * s->pixels;
    for (int64_t i = 0; i < s->pixels; i++) element_set_f64(s->out->type.type, s->out->data, at + i, plane[i] + bias);
}

static void transpose_worker(void *user, size_t worker) {
    const transpose_state *s = user;
    for (int64_t i = (int64_t)worker; i < s->c.batch * s->c.outputs; i += s->workers)
        transpose_channel(s, i / s->c.outputs, i % s->c.outputs, s->planes + (int64_t)worker * s->pixels);
}

static braid_status conv_transpose_eval(eval *e) {
    transpose_state s = {.x = e->in[0], .w = e->in[1], .bias = eval_in(e, 2)};
    TRY(conv_transpose_shape(e->node, &s.x->type, &s.w->type, &s.c, e->err));
    TRY(eval_output(e, 0, &s.out));
    if (s.out->bytes == 0) return BRAID_OK;
    s.window = volume(s.c.axes, s.c.kernel);
    s.pixels = volume(s.c.axes, s.c.out);
    s.plane = volume(s.c.axes, s.c.in);
    s.workers = s.c.batch * s.c.outputs < 8 ? s.c.batch * s.c.outputs : 8;
    s.planes = arena_array(e->memory, (size_t)s.workers * (size_t)s.pixels, sizeof(double));
    if (!s.planes) return error_memory(e->err);
    parallel_for((size_t)s.workers, 0, transpose_worker, &s);
    return BRAID_OK;
}

static const attribute_spec conv_attributes[] = {{"auto_pad", ATTRIBUTE_STRING, "NOTSET"},
                                                 {"dilations", ATTRIBUTE_INTS, NULL},
                                                 {"group", ATTRIBUTE_INT, "1"},
                                                 {"kernel_shape", ATTRIBUTE_INTS, NULL},
                                                 {"pads", ATTRIBUTE_INTS, NULL},
                                                 {"strides", ATTRIBUTE_INTS, NULL},
                                                 {0}};
static const attribute_spec conv_transpose_attributes[] = {
    {"auto_pad", ATTRIBUTE_STRING, "NOTSET"}, {"dilations", ATTRIBUTE_INTS, NULL},    {"group", ATTRIBUTE_INT, "1"},
    {"kernel_shape", ATTRIBUTE_INTS, NULL},   {"pads", ATTRIBUTE_INTS, NULL},         {"strides", ATTRIBUTE_INTS, NULL},
    {"output_padding", ATTRIBUTE_INTS, NULL}, {"output_shape", ATTRIBUTE_INTS, NULL}, {0}};

const op conv_ops[] = {{.name = "Conv",
                        .since = 1,
                        .min_in = 2,
                        .max_in = 3,
                        .min_out = 1,
                        .max_out = 1,
                        .flags = OP_EPILOGUE,
                        .attributes = conv_attributes,
                        .lower = conv_lower,
                        .infer = conv_infer,
                        .eval = conv_eval},
                       {.name = "ConvTranspose",
                        .since = 1,
                        .min_in = 2,
                        .max_in = 3,
                        .min_out = 1,
                        .max_out = 1,
                        .attributes = conv_transpose_attributes,
                        .lower = conv_transpose_lower,
                        .infer = conv_transpose_infer,
                        .eval = conv_transpose_eval},
                       {0}};
