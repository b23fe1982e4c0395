/*
 * det.c: Det, by elimination with row exchange.
 */
#include "ops/row.h"

#include <math.h>

static braid_status det_infer(infer *c) {
    const tensor_type *x = c->in[0];
    TRY(row_types(c, 0, ROW_FLOATS));
    TRY(infer_rank(c, 0, 2, BRAID_MAX_RANK));
    c->out[0].type = x->type;
    if (x->rank < 0) return BRAID_OK;
    int64_t rows = x->dims[x->rank - 2], columns = x->dims[x->rank - 1];
    if (dim_known(rows) && dim_known(columns) && rows != columns)
        return error_set(c->err, BRAID_SHAPE, "matrices of %lld x %lld are not square", (long long)rows,
                         (long long)columns);
    c->out[0].rank = x->rank - 2;
    for (int d = 0; d < x->rank - 2; d++) c->out[0].dims[d] = x->dims[d];
    return BRAID_OK;
}

static void exchange(double *a, double *b, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        double t = a[i];
        a[i] = b[i];
        b[i] = t;
    }
}

/* Destroys the matrix. */
static double determinant(double *m, int64_t n) {
    double det = 1;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabs(m[i * n + k]) > fabs(m[pivot * n + k])) pivot = i;
        if (pivot != k) {
            exchange(m + pivot * n, m + k * n, n);
            det = -det;
        }
        double top = m[k * n + k];
        det *= top;
        if (top == 0) return det;
        for (int64_t i = k + 1; i < n; i++) {
            double factor = m[i * n + k] / top;
            for (int64_t j = k + 1; j < n; j++) m[i * n + j] -= factor * m[k * n + j];
        }
    }
    return det;
}

static braid_status det_eval(eval *e) {
    const tensor *x = eval_in(e, 0);
    tensor *y;
    TRY(eval_output(e, 0, &y));
    int64_t n = x->type.dims[x->type.rank - 1], count = row_count(y);
    double *m = arena_array(e->memory, (size_t)(n * n) + 1, sizeof *m);
    if (!m) return error_memory(e->err);
    for (int64_t i = 0; i < count; i++) {
        row_load_f64(x, i * n * n, n * n, m);
        element_set_f64(y->type.type, y->data, i, determinant(m, n));
    }
    return BRAID_OK;
}

const op det_ops[] = {
    {.name = "Det", .since = 11, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1, .infer = det_infer, .eval = det_eval},
    {0},
};
