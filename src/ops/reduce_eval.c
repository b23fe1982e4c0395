/*
 * reduce_eval.c: reductions on the CPU. Sums are taken in double, integers in int64 with wraparound in the type.
 *
 * Either the innermost kept axis or the innermost reduced one is contiguous. The first is reduced in blocks of columns,
 * the second row by row, so memory is always read in runs.
 */
#include "ops/reduce.h"

#include <math.h>

/* A block of rows whose accumulators are advanced together. */
typedef struct block {
    const tensor *x;
    const row_view *view;
    int64_t base; /* element of the block's first row */
    int n;        /* columns: rows side by side; otherwise 1 */
    bool columns;
} block;

typedef void step_f64(double *acc, int stride, const double *v, int64_t n, const double *bias, double p);

#define STEP(name, expression)                                                                                     \
    static void name(double *acc, int stride, const double *v, int64_t n, const double *bias, double p) {            \
        (void)bias;                                                                                                \
        (void)p;                                                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                                          \
            int64_t k = i * stride;                                                                                  \
            double a = acc[k], x = v[i];                                                                           \
            acc[k] = (expression);                                                                                 \
        }                                                                                                          \
    }
STEP(step_sum, a + x)
STEP(step_max, isnan(a) || a > x ? a : x)
STEP(step_min, isnan(a) || a < x ? a : x)
STEP(step_prod, a *x)
STEP(step_abs, a + fabs(x))
STEP(step_square, a + x * x)
STEP(step_exp, a + exp(x - bias[k]))
STEP(step_power, a + pow(fabs(x), p))

/* Shows every element of the block's rows to `advance`. */
static void sweep(const block *b, step_f64 *advance, double *acc, const double *bias, double p) {
    double run[ROW_RUN];
    const row_view *v = b->view;
    if (b->columns || v->n_reduce == 0) {
        for (int64_t r = 0; r < v->length; r++) {
            row_load_f64(b->x, b->base + row_offset(v->reduce, v->n_reduce, r), b->n, run);
            advance(acc, 1, run, b->n, bias, p);
        }
        return;
    }
    int64_t inner = v->reduce[v->n_reduce - 1].size;
    for (int64_t r = 0; r < v->length; r += inner) {
        int64_t at = b->base + row_offset(v->reduce, v->n_reduce, r);
        for (int64_t done = 0; done < inner; done += ROW_RUN) {
            int64_t n = inner - done < ROW_RUN ? inner - done : ROW_RUN;
            row_load_f64(b->x, at + done, n, run);
            advance(acc, 0, run, n, bias, p);
        }
    }
}

static void fill(double *v, int n, double x) {
    for (int i = 0; i < n; i++) v[i] = x;
}

/* An infinite maximum is the answer by itself: x - inf would be NaN. */
static void log_sum_exp(const block *b, double *acc) {
    double top[ROW_RUN], bias[ROW_RUN];
    fill(top, b->n, -INFINITY);
    fill(acc, b->n, 0);
    sweep(b, step_max, top, NULL, 0);
    for (int i = 0; i < b->n; i++) bias[i] = isfinite(top[i]) ? top[i] : 0;
    sweep(b, step_exp, acc, bias, 0);
    for (int i = 0; i < b->n; i++) acc[i] = isfinite(top[i]) ? bias[i] + log(acc[i]) : top[i];
}

static void reduce_block_f64(const reduce_job *job, const block *b, double *acc) {
    static step_f64 *const steps[] = {step_sum,    step_sum, step_max, step_min,    step_prod, step_abs,
                                      step_square, step_sum, step_exp, step_square, step_power};
    if (job->kind == REDUCE_LOG_SUM_EXP) {
        log_sum_exp(b, acc);
        return;
    }
    double start = job->kind == REDUCE_MAX    ? -INFINITY
                   : job->kind == REDUCE_MIN  ? INFINITY
                   : job->kind == REDUCE_PROD ? 1
                                              : 0;
    fill(acc, b->n, start);
    sweep(b, steps[job->kind], acc, NULL, job->p);
    for (int i = 0; i < b->n; i++) {
        if (job->kind == REDUCE_MEAN) acc[i] /= (double)job->view.length;
        if (job->kind == REDUCE_L2) acc[i] = sqrt(acc[i]);
        if (job->kind == REDUCE_LOG_SUM) acc[i] = log(acc[i]);
        if (job->kind == REDUCE_LP) acc[i] = pow(acc[i], 1 / job->p);
    }
}

/* ------------------------------------------------------------------------------------------------ integers */

/* Least and greatest value of an integer type (or bool) in the int64 form. */
static int64_t type_limit(braid_type t, bool greatest) {
    int bits = type_bits(t);
    if (t == BRAID_BOOL) return greatest;
    if (type_is_unsigned(t)) return greatest ? (int64_t)(UINT64_MAX >> (64 - bits)) : 0;
    int64_t top = (int64_t)(UINT64_MAX >> (65 - bits));
    return greatest ? top : -top - 1;
}

static bool greater(int64_t a, int64_t b, bool is_unsigned) {
    return is_unsigned ? (uint64_t)a > (uint64_t)b : a > b;
}

static int64_t combine_i64(reduce_kind kind, int64_t acc, int64_t x, bool is_unsigned) {
    uint64_t a = (uint64_t)acc, v = (uint64_t)x;
    switch (kind) {
    case REDUCE_MAX:
        return greater(x, acc, is_unsigned) ? x : acc;
    case REDUCE_MIN:
        return greater(acc, x, is_unsigned) ? x : acc;
    case REDUCE_PROD:
        return (int64_t)(a * v);
    case REDUCE_L1:
        return (int64_t)(a + (x < 0 && !is_unsigned ? 0 - v : v));
    case REDUCE_SUM_SQUARE:
        return (int64_t)(a + v * v);
    default:
        return (int64_t)(a + v);
    }
}

static void sweep_i64(const block *b, reduce_kind kind, bool is_unsigned, int64_t *acc) {
    int64_t run[ROW_RUN];
    const row_view *v = b->view;
    bool side_by_side = b->columns || v->n_reduce == 0;
    int64_t inner = side_by_side ? 1 : v->reduce[v->n_reduce - 1].size;
    for (int64_t r = 0; r < v->length; r += inner) {
        int64_t at = b->base + row_offset(v->reduce, v->n_reduce, r), total = side_by_side ? b->n : inner;
        for (int64_t done = 0; done < total; done += ROW_RUN) {
            int64_t n = total - done < ROW_RUN ? total - done : ROW_RUN;
            row_load_i64(b->x, at + done, n, run);
            for (int64_t i = 0; i < n; i++) {
                int64_t *to = &acc[side_by_side ? i : 0];
                *to = combine_i64(kind, *to, run[i], is_unsigned);
            }
        }
    }
}

static void reduce_block_i64(const reduce_job *job, const block *b, int64_t *acc) {
    braid_type t = b->x->type.type;
    bool is_unsigned = type_is_unsigned(t);
    int64_t start = job->kind == REDUCE_MAX    ? type_limit(t, false)
                    : job->kind == REDUCE_MIN  ? type_limit(t, true)
                    : job->kind == REDUCE_PROD ? 1
                                               : 0;
    for (int i = 0; i < b->n; i++) acc[i] = start;
    sweep_i64(b, job->kind, is_unsigned, acc);
    if (job->kind != REDUCE_MEAN) return;
    int64_t length = job->view.length;
    for (int i = 0; i < b->n; i++) {
        if (length == 0) acc[i] = 0;
        else acc[i] = is_unsigned ? (int64_t)((uint64_t)acc[i] / (uint64_t)length) : acc[i] / length;
    }
}

/* Kinds whose result on integers is exact in integers. */
static bool is_integral(reduce_kind kind) {
    return kind <= REDUCE_L1 || kind == REDUCE_SUM_SQUARE;
}

braid_status reduce_eval(const reduce_job *job, const tensor *x, tensor *y, arena *memory, braid_error *err) {
    const row_view *v = &job->view;
    (void)memory;
    (void)err;
    bool integers = !type_is_float(x->type.type) && is_integral(job->kind);
    bool columns = v->n_keep > 0 && v->keep[v->n_keep - 1].stride == 1;
    int64_t width = columns ? v->keep[v->n_keep - 1].size : 1;
    for (int64_t row = 0; row < v->rows;) {
        int64_t left = width - row % width;
        block b = {x, v, row_offset(v->keep, v->n_keep, row), (int)(left < ROW_RUN ? left : ROW_RUN), columns};
        union {
            double f[ROW_RUN];
            int64_t i[ROW_RUN];
        } acc;
        if (integers) {
            reduce_block_i64(job, &b, acc.i);
            row_store_i64(y, row, b.n, acc.i);
        } else {
            reduce_block_f64(job, &b, acc.f);
            row_store_f64(y, row, b.n, acc.f);
        }
        row += b.n;
    }
    return BRAID_OK;
}
