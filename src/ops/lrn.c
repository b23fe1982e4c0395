/*
 * lrn.c: LRN, x / (bias + alpha / size * sum of squares over neighbouring channels) ^ beta. The region of channel c is
 * [c - (size - 1) / 2, c + size / 2], cut at the ends.
 */
#include "ops/norm.h"

#include <math.h>

static braid_status lrn_infer(infer *c) {
    TRY(row_types(c, 0, ROW_FLOATS));
    TRY(infer_rank(c, 0, 2, BRAID_MAX_RANK));
    if (node_int(c->node, "size", 0) < 1)
        return error_set(c->err, BRAID_MODEL, "size is %lld, expected 1 or more", (long long)node_int(c->node, "size", 0));
    return infer_same(c);
}

/* One image: squares of the channels of a region are added per place. */
static void lrn_image(const node *n, const double *x, double *y, int64_t channels, int64_t spatial) {
    double alpha = (double)node_float(n, "alpha", 1e-4f), beta = (double)node_float(n, "beta", 0.75f);
    double bias = (double)node_float(n, "bias", 1);
    int64_t size = node_int(n, "size", 1), low = (size - 1) / 2, high = size / 2;
    for (int64_t c = 0; c < channels; c++) {
        int64_t first = c > low ? c - low : 0, last = high < channels - 1 - c ? c + high : channels - 1;
        double *to = y + c * spatial;
        for (int64_t i = 0; i < spatial; i++) to[i] = 0;
        for (int64_t k = first; k <= last; k++)
            for (int64_t i = 0; i < spatial; i++) to[i] += x[k * spatial + i] * x[k * spatial + i];
        for (int64_t i = 0; i < spatial; i++)
            to[i] = x[c * spatial + i] / pow(bias + alpha / (double)size * to[i], beta);
    }
}

static braid_status lrn_eval(eval *e) {
    const tensor *x = eval_in(e, 0);
    tensor *y;
    TRY(eval_output(e, 0, &y));
    int64_t channels = x->type.dims[1], spatial = 1;
    for (int d = 2; d < x->type.rank; d++) spatial *= x->type.dims[d];
    size_t image = (size_t)(channels * spatial);
    double *in = arena_array(e->memory, image + 1, sizeof *in), *out = arena_array(e->memory, image + 1, sizeof *out);
    if (!in || !out) return error_memory(e->err);
    for (int64_t i = 0; i < x->type.dims[0]; i++) {
        row_load_f64(x, i * (int64_t)image, (int64_t)image, in);
        lrn_image(e->node, in, out, channels, spatial);
        row_store_f64(y, i * (int64_t)image, (int64_t)image, out);
    }
    return BRAID_OK;
}

static const attribute_spec lrn_attributes[] = {{"alpha", ATTRIBUTE_FLOAT, "1e-4"},
                                                {"beta", ATTRIBUTE_FLOAT, "0.75"},
                                                {"bias", ATTRIBUTE_FLOAT, "1"},
                                                {"size", ATTRIBUTE_INT, NULL},
                                                {0}};

const op lrn_ops[] = {
    {.name = "LRN", .since = 1, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1, .attributes = lrn_attributes,
     .infer = lrn_infer, .eval = lrn_eval, .lower = lrn_lower},
    {0},
};
