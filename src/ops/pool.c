/*
 * pool.c: MaxPool, AveragePool, LpPool.
 */
#include "ops/follow.h"
#include "ops/pool.h"
#include <math.h>

/* ------------------------------------------------------------------------------------------------- infer */
/* The output extent of a symbolic axis: the symbol itself where the window keeps every size, else a fresh one. */
static int64_t symbolic_extent(infer *c, const pool_window *w, int a, int64_t size) {
    const pool_axis *x = &w->axis[a];
    bool same = w->padding == POOL_SAME_UPPER || w->padding == POOL_SAME_LOWER;
    bool keeps = x->stride == 1 && (same || x->begin + x->end == x->dilation * (x->kernel - 1));
    return keeps ? size : infer_fresh(c);
}

static braid_status infer_window(infer *c, tensor_type *out) {
    const tensor_type *in = c->in[0];
    pool_window w;
    out->type = in->type;
    if (in->rank < 0) return BRAID_OK;
    TRY(pool_read(c->node, in->rank, &w, c->err));
    out->rank = in->rank;
    memcpy(out->dims, in->dims, sizeof out->dims);
    for (int a = POOL_AXES - w.rank; a < POOL_AXES; a++) {
        int64_t *dim = &out->dims[a - (POOL_AXES - w.rank) + 2];
        if (dim_known(*dim))
            TRY(pool_fit(&w, a, *dim, dim, c->err));
        else
            *dim = symbolic_extent(c, &w, a, *dim);
    }
    return infer_limit(c, 0);
}

static braid_status maxpool_infer(infer *c) {
    TRY(pool_float(c, 0, BRAID_INT8, BRAID_UINT8));
    int64_t order = node_int(c->node, "storage_order", 0);
    if (order != 0 && order != 1)
        return error_set(c->err, BRAID_MODEL, "storage_order is %lld, expected 0 or 1", (long long)order);
    TRY(infer_window(c, &c->out[0]));
    if (c->n_out > 1) {
        c->out[1] = c->out[0];
        c->out[1].type = BRAID_INT64;
    }
    return BRAID_OK;
}

static braid_status averagepool_infer(infer *c) {
    TRY(pool_float(c, 0, BRAID_TYPE_NONE, BRAID_TYPE_NONE));
    return infer_window(c, &c->out[0]);
}

static braid_status lppool_infer(infer *c) {
    TRY(pool_float(c, 0, BRAID_TYPE_NONE, BRAID_TYPE_NONE));
    double p = pool_exponent(c->node);
    if (!(p > 0) || isinf(p)) return error_set(c->err, BRAID_MODEL, "p is %g, expected above 0", p);
    return infer_window(c, &c->out[0]);
}

/* -------------------------------------------------------------------------------------------------- eval */
typedef struct pool_job {
    pool_window w;
    int64_t planes, size[POOL_AXES], out[POOL_AXES], in_plane, out_plane;
    pool_taps *taps[POOL_AXES]; /* by output position */
    const tensor *x;
    double *plane; /* one plane of x */
} pool_job;

static braid_status job_axis(eval *e, pool_job *j, int a) {
    TRY(pool_fit(&j->w, a, j->size[a], &j->out[a], e->err));
    j->taps[a] = arena_array(e->memory, (size_t)j->out[a] + 1, sizeof(pool_taps));
    if (!j->taps[a]) return error_memory(e->err);
    for (int64_t o = 0; o < j->out[a]; o++) j->taps[a][o] = pool_place(&j->w.axis[a], o, j->size[a]);
    return BRAID_OK;
}

static braid_status job_new(eval *e, pool_job *j) {
    j->x = eval_in(e, 0);
    const tensor_type *t = &j->x->type;
    TRY(pool_read(e->node, t->rank, &j->w, e->err));
    j->planes = t->dims[0] * t->dims[1];
    j->in_plane = j->out_plane = 1;
    for (int a = 0; a < POOL_AXES; a++) {
        int axis = a - (POOL_AXES - j->w.rank);
        j->size[a] = axis < 0 ? 1 : t->dims[axis + 2];
        TRY(job_axis(e, j, a));
        j->in_plane *= j->size[a];
        j->out_plane *= j->out[a];
    }
    j->plane = arena_array(e->memory, (size_t)j->in_plane + 1, sizeof(double));
    return j->plane ? BRAID_OK : error_memory(e->err);
}

static void job_plane(pool_job *j, int64_t plane) {
    int64_t at = plane * j->in_plane;
    if (j->x->type.type == BRAID_FLOAT32) {
        const float *x = (const float *)j->x->data + at;
        for (int64_t i = 0; i < j->in_plane; i++) j->plane[i] = x[i];
        return;
    }
    for (int64_t i = 0; i < j->in_plane; i++) j->plane[i] = element_f64(j->x->type.type, j->x->data, at + i);
}

/* The three runs of taps that make one window. */
typedef struct pool_place3 {
    pool_taps d, h, w;
} pool_place3;

/* The first largest element; a NaN is larger than any number. *at stays -1 in a window without elements. */
static double window_max(const pool_job *j, pool_place3 p, double lowest, int64_t *at) {
    double best = lowest;
    *at = -1;
    for (int64_t d = 0; d < p.d.n; d++)
        for (int64_t h = 0; h < p.h.n; h++) {
            int64_t row = ((p.d.first + d * j->w.axis[0].dilation) * j->size[1] + p.h.first +
                           h * j->w.axis[1].dilation) * j->size[2];
            for (int64_t w = 0; w < p.w.n; w++) {
                int64_t i = row + p.w.first + w * j->w.axis[2].dilation;
                double v = j->plane[i];
                if (*at >= 0 && !(v > best) && (v == v || best != best)) continue;
                best = v;
                *at = i;
            }
        }
    return best;
}

static double power(double v, double p) {
    v = fabs(v);
    return p == 1 ? v : p == 2 ? v * v : pow(v, p);
}

/* Sum of the elements, or of their p-th powers where p > 0. */
static double window_sum(const pool_job *j, pool_place3 p, double exponent) {
    double sum = 0;
    for (int64_t d = 0; d < p.d.n; d++)
        for (int64_t h = 0; h < p.h.n; h++) {
            int64_t row = ((p.d.first + d * j->w.axis[0].dilation) * j->size[1] + p.h.first +
                           h * j->w.axis[1].dilation) * j->size[2];
            for (int64_t w = 0; w < p.w.n; w++) {
                double v = j->plane[row + p.w.first + w * j->w.axis[2].dilation];
                sum += exponent > 0 ? power(v, exponent) : v;
            }
        }
    return sum;
}

static pool_place3 place_at(const pool_job *j, int64_t o) {
    int64_t w = o % j->out[2], h = o / j->out[2] % j->out[1], d = o / j->out[2] / j->out[1];
    return (pool_place3){j->taps[0][d], j->taps[1][h], j->taps[2][w]};
}

/* Index over the whole tensor of element `at` of a plane, in row- or column-major order of the spatial axes. */
static int64_t stored_index(const pool_job *j, int64_t plane, int64_t at, bool column_major) {
    if (at < 0) return -1;
    if (column_major) {
        int64_t w = at % j->size[2], h = at / j->size[2] % j->size[1], d = at / j->size[2] / j->size[1];
        at = d + j->size[0] * (h + j->size[1] * w);
    }
    return plane * j->in_plane + at;
}

static double lowest_of(braid_type t) { return t == BRAID_INT8 ? -128 : t == BRAID_UINT8 ? 0 : -INFINITY; }

static braid_status maxpool_eval(eval *e) {
    pool_job j;
    tensor *y = NULL, *indices = NULL;
    TRY(job_new(e, &j));
    if (eval_wants(e, 0)) TRY(eval_output(e, 0, &y));
    if (eval_wants(e, 1)) TRY(eval_output(e, 1, &indices));
    double lowest = lowest_of(j.x->type.type);
    bool column_major = node_int(e->node, "storage_order", 0) != 0;
    for (int64_t plane = 0; plane < j.planes; plane++) {
        job_plane(&j, plane);
        for (int64_t o = 0; o < j.out_plane; o++) {
            int64_t at, to = plane * j.out_plane + o;
            double v = window_max(&j, place_at(&j, o), lowest, &at);
            if (y) element_set_f64(y->type.type, y->data, to, v);
            if (indices) ((int64_t *)indices->data)[to] = stored_index(&j, plane, at, column_major);
        }
    }
    return BRAID_OK;
}

static braid_status averagepool_eval(eval *e) {
    pool_job j;
    tensor *y;
    TRY(job_new(e, &j));
    TRY(eval_output(e, 0, &y));
    bool with_pad = node_int(e->node, "count_include_pad", 0) != 0;
    for (int64_t plane = 0; plane < j.planes; plane++) {
        job_plane(&j, plane);
        for (int64_t o = 0; o < j.out_plane; o++) {
            pool_place3 p = place_at(&j, o);
            int64_t n = with_pad ? p.d.counted * p.h.counted * p.w.counted : p.d.n * p.h.n * p.w.n;
            double sum = window_sum(&j, p, 0);
            element_set_f64(y->type.type, y->data, plane * j.out_plane + o, n > 0 ? sum / (double)n : 0);
        }
    }
    return BRAID_OK;
}

static braid_status lppool_eval(eval *e) {
    pool_job j;
    tensor *y;
    TRY(job_new(e, &j));
    TRY(eval_output(e, 0, &y));
    double p = pool_exponent(e->node);
    for (int64_t plane = 0; plane < j.planes; plane++) {
        job_plane(&j, plane);
        for (int64_t o = 0; o < j.out_plane; o++) {
            double sum = window_sum(&j, place_at(&j, o), p);
            double v = p == 1 ? sum : p == 2 ? sqrt(sum) : pow(sum, 1 / p);
            element_set_f64(y->type.type, y->data, plane * j.out_plane + o, v);
        }
    }
    return BRAID_OK;
}

/* --------------------------------------------------------------------------------------------------- rows */
#define WINDOW_ATTRIBUTES                                                                                  \
    {"auto_pad", ATTRIBUTE_STRING, "NOTSET"}, {"ceil_mode", ATTRIBUTE_INT, "0"},                           \
        {"dilations", ATTRIBUTE_INTS, "1"}, {"kernel_shape", ATTRIBUTE_INTS, NULL}, {"pads", ATTRIBUTE_INTS, "0"}, \
        {"strides", ATTRIBUTE_INTS, "1"}

static const attribute_spec maxpool_attributes[] = {WINDOW_ATTRIBUTES, {"storage_order", ATTRIBUTE_INT, "0"}, {0}};
static const attribute_spec averagepool_attributes[] = {
    WINDOW_ATTRIBUTES, {"count_include_pad", ATTRIBUTE_INT, "0"}, {0}};
static const attribute_spec lppool_attributes[] = {
    WINDOW_ATTRIBUTES, {"p", ATTRIBUTE_INT, "2"}, {"p", ATTRIBUTE_FLOAT, NULL}, {0}};

const op pool_ops[] = {
    {.name = "MaxPool", .since = 1, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 2,
     .attributes = maxpool_attributes, .infer = maxpool_infer, .eval = maxpool_eval, .lower = pool_lower},
    {.name = "AveragePool", .since = 1, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1,
     .attributes = averagepool_attributes, .infer = averagepool_infer, .eval = averagepool_eval, .lower = pool_lower},
    {.name = "LpPool", .since = 1, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1,
     .attributes = lppool_attributes, .infer = lppool_infer, .eval = lppool_eval, .lower = pool_lower},
    {0},
};
