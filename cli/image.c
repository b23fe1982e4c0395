/*
 * image: PNG and JPEG files as tensors.
 *
 *     file -> 8-bit RGB or gray pixels -> bilinear resize -> (pixel * scale - mean) / std -> tensor in NCHW or NHWC
 */
#include "cli.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>

#include <jpeglib.h>
#include <png.h>

/* An image larger than this in either direction is refused. */
enum { SIDE_MAX = 1 << 15 };

typedef struct pixels {
    int width, height, channels; /* 1 or 3 */
    float *data;                 /* height * width * channels, 0..255 */
} pixels;

static braid_status pixels_alloc(pixels *p, int width, int height, int channels, braid_error *err) {
    if (width < 1 || height < 1 || width > SIDE_MAX || height > SIDE_MAX)
        return cli_error(err, BRAID_LIMIT, "an image of %d x %d pixels: sides from 1 to %d are possible", width, height,
                         SIDE_MAX);
    *p = (pixels){width, height, channels, NULL};
    p->data = malloc((size_t)width * (size_t)height * (size_t)channels * sizeof(float));
    return p->data ? BRAID_OK : cli_error(err, BRAID_HOST_MEMORY, "no memory for the image");
}

static braid_status pixels_from_bytes(const uint8_t *bytes, int width, int height, int channels, pixels *out,
                                      braid_error *err) {
    TRY(pixels_alloc(out, width, height, channels, err));
    size_t n = (size_t)width * (size_t)height * (size_t)channels;
    for (size_t i = 0; i < n; i++) out->data[i] = (float)bytes[i];
    return BRAID_OK;
}

static braid_status png_read(const void *bytes, size_t size, int channels, pixels *out, braid_error *err) {
    png_image image = {.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_memory(&image, bytes, size))
        return cli_error(err, BRAID_FORMAT, "png: %s", image.message);
    image.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
    braid_status status;
    uint8_t *raw = image.width <= SIDE_MAX && image.height <= SIDE_MAX ? malloc(PNG_IMAGE_SIZE(image)) : NULL;
    png_color black = {0, 0, 0};
    if (!raw)
        status = cli_error(err, BRAID_LIMIT, "an image of %u x %u pixels", image.width, image.height);
    else if (!png_image_finish_read(&image, &black, raw, 0, NULL))
        status = cli_error(err, BRAID_FORMAT, "png: %s", image.message);
    else
        status = pixels_from_bytes(raw, (int)image.width, (int)image.height, channels, out, err);
    png_image_free(&image);
    free(raw);
    return status;
}

typedef struct jpeg_failure {
    struct jpeg_error_mgr manager;
    jmp_buf back;
    char message[JMSG_LENGTH_MAX];
} jpeg_failure;

static void jpeg_failed(j_common_ptr info) {
    jpeg_failure *failure = (jpeg_failure *)(void *)info->err;
    failure->manager.format_message(info, failure->message);
    longjmp(failure->back, 1);
}

static void jpeg_silent(j_common_ptr info, int level) {
    (void)info;
    (void)level;
}

/* Reads scan lines into *raw (grown here, freed by the caller); everything that longjmp may skip lives outside. */
static bool jpeg_scan(struct jpeg_decompress_struct *info, const void *bytes, size_t size, int channels,
                      uint8_t **raw) {
    jpeg_mem_src(info, bytes, (unsigned long)size);
    jpeg_read_header(info, TRUE);
    info->out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_start_decompress(info);
    if (info->output_width > SIDE_MAX || info->output_height > SIDE_MAX) return false;
    size_t row = (size_t)info->output_width * (size_t)channels;
    *raw = malloc(row * info->output_height);
    if (!*raw) return false;
    while (info->output_scanline < info->output_height) {
        uint8_t *line = *raw + row * info->output_scanline;
        jpeg_read_scanlines(info, &line, 1);
    }
    return true;
}

static braid_status jpeg_read(const void *bytes, size_t size, int channels, pixels *out, braid_error *err) {
    struct jpeg_decompress_struct info = {0};
    jpeg_failure failure = {0};
    uint8_t *volatile raw = NULL;
    braid_status status;
    info.err = jpeg_std_error(&failure.manager);
    failure.manager.error_exit = jpeg_failed;
    failure.manager.emit_message = jpeg_silent;
    if (setjmp(failure.back)) {
        status = cli_error(err, BRAID_FORMAT, "jpeg: %s", failure.message);
    } else {
        jpeg_create_decompress(&info);
        if (!jpeg_scan(&info, bytes, size, channels, (uint8_t **)(void *)&raw))
            status = cli_error(err, BRAID_LIMIT, "an image of %u x %u pixels", info.output_width, info.output_height);
        else
            status = pixels_from_bytes(raw, (int)info.output_width, (int)info.output_height, channels, out, err);
    }
    jpeg_destroy_decompress(&info);
    free(raw);
    return status;
}

static braid_status pixels_read(const char *path, int channels, pixels *out, braid_error *err) {
    void *bytes;
    size_t size;
    TRY(file_load(path, &bytes, &size, err));
    braid_status status;
    if (size >= 8 && !memcmp(bytes, "\x89PNG\r\n\x1a\n", 8))
        status = png_read(bytes, size, channels, out, err);
    else if (size >= 2 && !memcmp(bytes, "\xff\xd8", 2))
        status = jpeg_read(bytes, size, channels, out, err);
    else
        status = cli_error(err, BRAID_FORMAT, "neither PNG nor JPEG");
    free(bytes);
    return status == BRAID_OK ? status : cli_within(err, status, "%s", path);
}

/* One axis by a triangle filter whose support grows when shrinking. `in`: [outer, from, inner], out: [outer, to,
 * inner]. */
static void resize_axis(const float *in, float *out, int64_t outer, int from, int to, int64_t inner) {
    double ratio = (double)from / to, support = ratio > 1 ? ratio : 1;
    for (int i = 0; i < to; i++) {
        double center = (i + 0.5) * ratio;
        int low = (int)fmax(0, center - support + 0.5), high = (int)fmin(from, center + support + 0.5);
        double total = 0;
        for (int k = low; k < high; k++) total += fmax(0, 1 - fabs((k + 0.5 - center) / support));
        for (int64_t o = 0; o < outer; o++) {
            for (int64_t n = 0; n < inner; n++) {
                double sum = 0;
                for (int k = low; k < high; k++)
                    sum += (double)in[(o * from + k) * inner + n] * fmax(0, 1 - fabs((k + 0.5 - center) / support));
                out[(o * to + i) * inner + n] = (float)(sum / total);
            }
        }
    }
}

static braid_status pixels_resize(pixels *p, int width, int height, braid_error *err) {
    if (p->width == width && p->height == height) return BRAID_OK;
    pixels wide, whole;
    TRY(pixels_alloc(&wide, width, p->height, p->channels, err));
    braid_status status = pixels_alloc(&whole, width, height, p->channels, err);
    if (status == BRAID_OK) {
        resize_axis(p->data, wide.data, p->height, p->width, width, p->channels);
        resize_axis(wide.data, whole.data, 1, p->height, height, (int64_t)width * p->channels);
        free(p->data);
        *p = whole;
    }
    free(wide.data);
    return status;
}

/* Where the wanted tensor has its channels and its height (width follows). */
typedef struct axes {
    int channel, height;
} axes;

static bool few_channels(int64_t n) {
    return n == 1 || n == 3 || n == 4;
}

static braid_status find_axes(const cli_options *o, const braid_tensor *t, axes *out, braid_error *err) {
    if (t->rank != 3 && t->rank != 4)
        return cli_error(err, BRAID_SHAPE, "an image needs an input of rank 3 or 4, not %d", t->rank);
    int lead = t->rank - 3;
    if (lead && t->dims[0] > 1)
        return cli_error(err, BRAID_SHAPE, "one image for a batch of %lld", (long long)t->dims[0]);
    bool last = few_channels(t->dims[lead + 2]) && !few_channels(t->dims[lead]);
    if (o->layout && strcmp(o->layout, "nchw") && strcmp(o->layout, "nhwc"))
        return cli_error(err, BRAID_ARGUMENT, "--layout: '%s' is not nchw or nhwc", o->layout);
    if (o->layout) last = !strcmp(o->layout, "nhwc");
    *out = last ? (axes){lead + 2, lead} : (axes){lead, lead + 1};
    int64_t channels = t->dims[out->channel];
    if (channels != 1 && channels != 3 && channels != -1)
        return cli_error(err, BRAID_SHAPE, "an image has 1 or 3 channels, the input %lld", (long long)channels);
    return BRAID_OK;
}

/* "a" or "a,b,c" into three values. */
static braid_status parse_triple(const char *name, const char *text, double missing, double *out, braid_error *err) {
    out[0] = out[1] = out[2] = missing;
    if (!text) return BRAID_OK;
    char rest;
    int n = sscanf(text, "%lf,%lf,%lf%c", &out[0], &out[1], &out[2], &rest);
    if (n != 1 && n != 3) return cli_error(err, BRAID_ARGUMENT, "--%s: '%s' is not one or three numbers", name, text);
    if (n == 1) out[1] = out[2] = out[0];
    for (int i = 0; i < 3; i++)
        if (!isfinite(out[i]) || (missing == 1 && out[i] == 0))
            return cli_error(err, BRAID_ARGUMENT, "--%s: %g", name, out[i]);
    return BRAID_OK;
}

static braid_status wanted_size(const cli_options *o, const braid_tensor *t, axes a, pixels *p, braid_error *err) {
    int64_t height = t->dims[a.height], width = t->dims[a.height + 1];
    int h, w;
    char rest;
    if (o->resize && !strcmp(o->resize, "none")) return BRAID_OK;
    if (o->resize && strcmp(o->resize, "auto")) {
        if (sscanf(o->resize, "%dx%d%c", &h, &w, &rest) != 2 || h < 1 || w < 1)
            return cli_error(err, BRAID_ARGUMENT, "--resize: '%s' is not auto, none or HxW", o->resize);
        return pixels_resize(p, w, h, err);
    }
    if (height > SIDE_MAX || width > SIDE_MAX) return cli_error(err, BRAID_LIMIT, "an image of that size");
    return pixels_resize(p, width > 0 ? (int)width : p->width, height > 0 ? (int)height : p->height, err);
}

static braid_status fill(const cli_options *o, axes a, const pixels *p, braid_tensor *out, braid_error *err) {
    double mean[3], deviation[3], scale = o->scale >= 0 ? o->scale : value_is_float(out->type) ? 1.0 / 255 : 1;
    TRY(parse_triple("mean", o->mean, 0, mean, err));
    TRY(parse_triple("std", o->std, 1, deviation, err));
    if (o->channels && strcmp(o->channels, "rgb") && strcmp(o->channels, "bgr"))
        return cli_error(err, BRAID_ARGUMENT, "--channels: '%s' is not rgb or bgr", o->channels);
    bool reverse = o->channels && o->channels[0] == 'b';
    int64_t c = p->channels, area = (int64_t)p->width * p->height;
    for (int64_t i = 0; i < area * c; i++) {
        int64_t pixel = i / c, k = i % c, channel = reverse ? c - 1 - k : k;
        double v = ((double)p->data[pixel * c + channel] * scale - mean[k]) / deviation[k];
        if (!value_is_float(out->type)) v = fmin(255, fmax(out->type == BRAID_INT8 ? -128 : 0, rint(v)));
        bool last = a.channel > a.height;
        if (!value_set(out, last ? i : k * area + pixel, v))
            return cli_error(err, BRAID_TYPE, "an image cannot be %s", braid_type_name(out->type));
    }
    return BRAID_OK;
}

braid_status image_load(const char *path, const cli_options *o, braid_tensor *t, braid_error *err) {
    axes a = {0, 0};
    pixels p = {0};
    TRY(find_axes(o, t, &a, err));
    TRY(pixels_read(path, t->dims[a.channel] == 1 ? 1 : 3, &p, err));
    braid_status status = wanted_size(o, t, a, &p, err);
    if (status == BRAID_OK) {
        int64_t dims[4] = {1, 1, 1, 1};
        dims[a.channel] = p.channels;
        dims[a.height] = p.height;
        dims[a.height + 1] = p.width;
        status = tensor_alloc(t, t->type, t->rank, dims, err);
        if (status == BRAID_OK && (status = fill(o, a, &p, t, err)) != BRAID_OK) tensor_drop(t);
    }
    free(p.data);
    return status;
}
