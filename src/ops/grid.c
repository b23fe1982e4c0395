/*
 * grid.c: GridSample and AffineGrid: types and CPU meaning.
 */
#include "ops/follow.h"
#include "ops/grid.h"
#include <math.h>

braid_status grid_read(const node *n, grid_attributes *a, braid_error *err) {
    /* The second name of a mode is that of opset 16. */
    static const char *const modes[][2] = {{"linear", "bilinear"}, {"nearest", "nearest"}, {"cubic", "bicubic"}};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    const char *mode = node_string(n, "mode", "linear"), *padding = node_string(n, "padding_mode", "zeros");
    int m = -1, p = -1;
    for (int i = 0; i < 3; i++) {
        if (strcmp(mode, modes[i][0]) == 0 || strcmp(mode, modes[i][1]) == 0) m = i;
        if (strcmp(padding, paddings[i]) == 0) p = i;
    }
    if (m < 0) return error_set(err, BRAID_MODEL, "mode '%s' is unknown", mode);
    if (p < 0) return error_set(err, BRAID_MODEL, "padding_mode '%s' is unknown", padding);
    *a = (grid_attributes){(grid_mode)m, (grid_padding)p, node_int(n, "align_corners", 0) != 0};
    return BRAID_OK;
}

/* ------------------------------------------------------------------------------------------------- infer */
static braid_status join_dim(infer *c, int i, int axis, int64_t a, int64_t b, int64_t *out) {
    if (dim_known(a) && dim_known(b) && a != b)
        return error_set(c->err, BRAID_SHAPE, "input %d: dim %d is %lld, expected %lld", i, axis, (long long)b,
                         (long long)a);
    *out = dim_known(a) ? a : b;
    return BRAID_OK;
}

static braid_status sample_types(infer *c) {
    braid_type x = c->in[0]->type, grid = c->in[1]->type;
    if (x != BRAID_TYPE_NONE && !type_is_float(x) && !type_is_integer(x) && x != BRAID_BOOL)
        return error_set(c->err, BRAID_TYPE, "input 0: type %s cannot be sampled", braid_type_name(x));
    if (grid != BRAID_TYPE_NONE && !type_is_float(grid))
        return error_set(c->err, BRAID_TYPE, "input 1: type %s, expected a float", braid_type_name(grid));
    return BRAID_OK;
}

static braid_status grid_sample_infer(infer *c) {
    grid_attributes a;
    const tensor_type *x = c->in[0], *grid = c->in[1];
    int64_t same;
    TRY(grid_read(c->node, &a, c->err));
    TRY(sample_types(c));
    c->out[0].type = x->type;
    TRY(infer_rank(c, 0, 3, 2 + GRID_AXES));
    if (x->rank < 0 || grid->rank < 0) return BRAID_OK;
    TRY(infer_rank(c, 1, x->rank, x->rank));
    TRY(join_dim(c, 1, x->rank - 1, x->rank - 2, grid->dims[x->rank - 1], &same));
    c->out[0].rank = x->rank;
    TRY(join_dim(c, 1, 0, x->dims[0], grid->dims[0], &c->out[0].dims[0]));
    c->out[0].dims[1] = x->dims[1];
    for (int i = 2; i < x->rank; i++) {
        c->out[0].dims[i] = grid->dims[i - 1];
        if (x->dims[i] == 0 && grid->dims[i - 1] != 0)
            return error_set(c->err, BRAID_SHAPE, "input 0: axis %d is empty and cannot be sampled", i);
    }
    return infer_limit(c, 0);
}

static braid_status affine_theta(infer *c, int rank) {
    const tensor_type *theta = c->in[0];
    int64_t same;
    if (theta->rank < 0) return BRAID_OK;
    TRY(infer_rank(c, 0, 3, 3));
    TRY(join_dim(c, 0, 1, rank, theta->dims[1], &same));
    return join_dim(c, 0, 2, rank + 1, theta->dims[2], &same);
}

static braid_status affine_grid_infer(infer *c) {
    int count;
    const int64_t *size;
    c->out[0].type = c->in[0]->type;
    if (c->in[0]->type != BRAID_TYPE_NONE && !type_is_float(c->in[0]->type))
        return error_set(c->err, BRAID_TYPE, "input 0: type %s, expected a float", braid_type_name(c->in[0]->type));
    TRY(infer_index_type(c, 1));
    TRY(infer_rank(c, 1, 1, 1));
    if (!infer_ints(c, 1, &count, &size)) return BRAID_OK;
    if (count != 4 && count != 5)
        return error_set(c->err, BRAID_SHAPE, "input 1: %d elements, expected 4 or 5", count);
    TRY(affine_theta(c, count - 2));
    for (int i = 0; i < count; i++)
        if (dim_known(size[i]) && size[i] < 0)
            return error_set(c->err, BRAID_SHAPE, "input 1: size %lld", (long long)size[i]);
    c->out[0].rank = count;
    c->out[0].dims[0] = size[0];
    if (c->in[0]->rank == 3) TRY(join_dim(c, 0, 0, size[0], c->in[0]->dims[0], &c->out[0].dims[0]));
    for (int i = 2; i < count; i++) c->out[0].dims[i - 1] = size[i];
    c->out[0].dims[count - 1] = count - 2;
    return infer_limit(c, 0);
}

/* -------------------------------------------------------------------------------------------------- eval */
/* Where a coordinate reads along one axis; index -1 reads zero. */
typedef struct grid_taps {
    int n;
    int64_t index[4];
    double weight[4];
} grid_taps;

typedef struct grid_range {
    int64_t size;
    double low, high; /* borders that reflect */
} grid_range;

/* Folds v into [low, high]. */
static double reflect(double v, double low, double high) {
    double range = high - low;
    if (range <= 0) return low;
    bool below = v < low;
    double d = below ? low - v : v - high;
    if (d <= 0) return v;
    double folds = trunc(d / range), rest = d - folds * range;
    bool even = fmod(folds, 2) == 0;
    return below == even ? low + rest : high - rest;
}

static int64_t clamp_index(double v, int64_t size) { return v < 0 ? 0 : v > (double)(size - 1) ? size - 1 : (int64_t)v; }

static int64_t pad_index(const grid_attributes *a, const grid_range *r, double v) {
    if (v >= 0 && v <= (double)(r->size - 1)) return (int64_t)v;
    if (a->padding == GRID_ZEROS) return -1;
    return clamp_index(a->padding == GRID_BORDER ? v : trunc(reflect(v, r->low, r->high)), r->size);
}

/* The padded coordinate: cubic pads its neighbours instead, each on its own. */
static double pad_point(const grid_attributes *a, const grid_range *r, double v) {
    if (a->mode == GRID_CUBIC || a->padding == GRID_ZEROS || (v >= r->low && v <= r->high)) return v;
    if (a->padding == GRID_REFLECTION) return reflect(v, r->low, r->high);
    return v < 0 ? 0 : (double)(r->size - 1);
}

static void cubic_weights(double t, double weight[4]) {
    const double a = -0.75;
    double far = t + 1, back = 1 - t, last = 2 - t;
    weight[0] = ((a * far - 5 * a) * far + 8 * a) * far - 4 * a;
    weight[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
    weight[2] = ((a + 2) * back - (a + 3)) * back * back + 1;
    weight[3] = ((a * last - 5 * a) * last + 8 * a) * last - 4 * a;
}

static void place_point(const grid_attributes *a, const grid_range *r, double v, grid_taps *t) {
    const double far = 1e9; /* beyond any index; keeps conversions defined */
    if (!(v > -far)) v = -far;
    if (v > far) v = far;
    if (a->mode == GRID_NEAREST) v = nearbyint(v);
    v = pad_point(a, r, v);
    double base = a->mode == GRID_NEAREST ? trunc(v) : floor(v), rest = v - base;
    t->n = a->mode == GRID_NEAREST ? 1 : a->mode == GRID_LINEAR ? 2 : 4;
    if (a->mode == GRID_CUBIC) cubic_weights(rest, t->weight);
    if (a->mode == GRID_NEAREST) t->weight[0] = 1;
    if (a->mode == GRID_LINEAR) t->weight[0] = 1 - rest, t->weight[1] = rest;
    for (int k = 0; k < t->n; k++) t->index[k] = pad_index(a, r, base + k - (a->mode == GRID_CUBIC));
}

/* From [-1, 1] to indices; in float unless the grid is double, so that halves fall as in the kernel. */
static double point_of(double v, int64_t size, bool align, bool exact) {
    if (exact) return align ? (v + 1) * 0.5 * (double)(size - 1) : ((v + 1) * (double)size - 1) * 0.5;
    float f = (float)v, n = (float)size;
    return (double)(align ? (f + 1) * 0.5f * (n - 1) : ((f + 1) * n - 1) * 0.5f);
}

static double sample(const tensor *x, int64_t base, const grid_range *r, const grid_taps *t) {
    double sum = 0;
    for (int i = 0; i < t[0].n; i++)
        for (int j = 0; j < t[1].n; j++)
            for (int k = 0; k < t[2].n; k++) {
                if (t[0].index[i] < 0 || t[1].index[j] < 0 || t[2].index[k] < 0) continue;
                int64_t at = (t[0].index[i] * r[1].size + t[1].index[j]) * r[2].size + t[2].index[k];
                sum += t[0].weight[i] * t[1].weight[j] * t[2].weight[k] *
                       element_f64(x->type.type, x->data, base + at);
            }
    return sum;
}

typedef struct grid_job {
    grid_attributes a;
    const tensor *x, *grid;
    tensor *y;
    int rank;
    int64_t channels, points, volume;
    grid_range range[GRID_AXES];
} grid_job;

static void job_shape(grid_job *j) {
    const tensor_type *x = &j->x->type, *grid = &j->grid->type;
    j->rank = x->rank - 2;
    j->channels = x->dims[1];
    j->points = j->volume = 1;
    for (int i = 0; i < GRID_AXES; i++) {
        int axis = i - (GRID_AXES - j->rank);
        int64_t size = axis < 0 ? 1 : x->dims[axis + 2];
        j->range[i] = (grid_range){size, j->a.align_corners ? 0 : -0.5,
                                   (double)size - (j->a.align_corners ? 1 : 0.5)};
        j->volume *= size;
        if (axis >= 0) j->points *= grid->dims[axis + 1];
    }
}

static void sample_point(const grid_job *j, int64_t n, int64_t point) {
    grid_taps taps[GRID_AXES];
    bool exact = j->grid->type.type == BRAID_FLOAT64;
    for (int i = 0; i < GRID_AXES; i++) {
        int axis = i - (GRID_AXES - j->rank);
        taps[i] = (grid_taps){1, {0}, {1}};
        if (axis < 0) continue;
        int64_t at = (n * j->points + point) * j->rank + j->rank - 1 - axis;
        double v = element_f64(j->grid->type.type, j->grid->data, at);
        place_point(&j->a, &j->range[i], point_of(v, j->range[i].size, j->a.align_corners, exact), &taps[i]);
    }
    for (int64_t c = 0; c < j->channels; c++) {
        int64_t plane = n * j->channels + c;
        double v = sample(j->x, plane * j->volume, j->range, taps);
        element_set_f64(j->y->type.type, j->y->data, plane * j->points + point, v);
    }
}

static braid_status grid_sample_eval(eval *e) {
    grid_job j = {.x = eval_in(e, 0), .grid = eval_in(e, 1)};
    TRY(grid_read(e->node, &j.a, e->err));
    TRY(eval_output(e, 0, &j.y));
    job_shape(&j);
    for (int64_t n = 0; n < j.x->type.dims[0]; n++)
        for (int64_t point = 0; point < j.points; point++) sample_point(&j, n, point);
    return BRAID_OK;
}

static double affine_position(int64_t i, int64_t size, bool align) {
    if (align) return size > 1 ? -1 + 2 * (double)i / (double)(size - 1) : 0;
    return (double)(2 * i + 1) / (double)size - 1;
}

static braid_status affine_grid_eval(eval *e) {
    const tensor *theta = eval_in(e, 0);
    tensor *y;
    TRY(eval_output(e, 0, &y));
    bool align = node_int(e->node, "align_corners", 0) != 0;
    int rank = y->type.rank - 2;
    int64_t points = 1;
    for (int i = 0; i < rank; i++) points *= y->type.dims[i + 1];
    for (int64_t o = 0; o < y->type.dims[0] * points; o++) {
        double at[GRID_AXES]; /* innermost axis first, as theta has it */
        int64_t rest = o % points;
        for (int i = 0; i < rank; i++) {
            int64_t size = y->type.dims[rank - i];
            at[i] = affine_position(rest % size, size, align);
            rest /= size;
        }
        for (int i = 0; i < rank; i++) {
            int64_t line = (o / points * rank + i) * (rank + 1);
            double sum = element_f64(theta->type.type, theta->data, line + rank);
            for (int k = 0; k < rank; k++) sum += at[k] * element_f64(theta->type.type, theta->data, line + k);
            element_set_f64(y->type.type, y->data, o * rank + i, sum);
        }
    }
    return BRAID_OK;
}

/* --------------------------------------------------------------------------------------------------- rows */
static const attribute_spec sample_specs[] = {{"align_corners", ATTRIBUTE_INT, "0"},
                                              {"mode", ATTRIBUTE_STRING, "linear"},
                                              {"padding_mode", ATTRIBUTE_STRING, "zeros"},
                                              {0}};
static const attribute_spec affine_specs[] = {{"align_corners", ATTRIBUTE_INT, "0"}, {0}};

const op grid_ops[] = {
    {.name = "GridSample", .since = 16, .min_in = 2, .max_in = 2, .min_out = 1, .max_out = 1,
     .attributes = sample_specs, .infer = grid_sample_infer, .eval = grid_sample_eval, .lower = grid_sample_lower},
    {.name = "AffineGrid", .since = 20, .min_in = 2, .max_in = 2, .min_out = 1, .max_out = 1,
     .attributes = affine_specs, .infer = affine_grid_infer, .eval = affine_grid_eval, .lower = affine_grid_lower},
    {0},
};
