/*
 * softmax.c: Softmax, LogSoftmax, Hardmax along one axis.
 *
 * Below opset 13 the operator saw its input as a matrix [dims before axis, dims from axis on]. Such nodes keep that
 * meaning in the attribute `flat`, set at import: with 1 the row is everything from `axis` on.
 */
#include "ops/softmax.h"

#include <math.h>

static braid_status softmax_infer(infer *c) {
    int axis;
    TRY(row_types(c, 0, ROW_FLOATS));
    TRY(infer_same(c));
    if (c->in[0]->rank < 0) return BRAID_OK;
    return axis_normalise(node_int(c->node, "axis", -1), c->in[0]->rank, &axis, c->err);
}

braid_status softmax_view(const node *n, const tensor_type *x, row_view *out, braid_error *err) {
    int axis;
    TRY(axis_normalise(node_int(n, "axis", -1), x->rank, &axis, err));
    uint32_t all = (1u << x->rank) - 1, mask = 1u << axis;
    if (node_int(n, "flat", 0)) mask = all & ~(mask - 1);
    row_view_make(x->rank, x->dims, mask, out);
    return BRAID_OK;
}

/* Maximum, NaN if there is one. */
static double row_top(const double *v, int64_t n) {
    double top = -INFINITY;
    for (int64_t i = 0; i < n; i++)
        if (!(v[i] <= top)) top = isnan(top) ? top : v[i];
    return top;
}

static void softmax_row(double *v, int64_t n) {
    double top = row_top(v, n), sum = 0;
    for (int64_t i = 0; i < n; i++) sum += v[i] = exp(v[i] - top);
    for (int64_t i = 0; i < n; i++) v[i] /= sum;
}

static void log_softmax_row(double *v, int64_t n) {
    double top = row_top(v, n), sum = 0;
    for (int64_t i = 0; i < n; i++) sum += exp(v[i] - top);
    double shift = log(sum);
    for (int64_t i = 0; i < n; i++) v[i] = v[i] - top - shift;
}

/* 1 at the first maximum; a NaN counts as the greatest. */
static void hardmax_row(double *v, int64_t n) {
    int64_t at = 0;
    for (int64_t i = 1; i < n; i++)
        if (!isnan(v[at]) && (isnan(v[i]) || v[i] > v[at])) at = i;
    for (int64_t i = 0; i < n; i++) v[i] = i == at;
}

static braid_status softmax_eval(eval *e) {
    const tensor *x = eval_in(e, 0);
    tensor *y;
    row_view view;
    TRY(softmax_view(e->node, &x->type, &view, e->err));
    TRY(eval_output(e, 0, &y));
    double *row = arena_array(e->memory, (size_t)view.length + 1, sizeof *row);
    if (!row) return error_memory(e->err);
    void (*work)(double *, int64_t) = e->node->type[0] == 'S'   ? softmax_row
                                      : e->node->type[0] == 'L' ? log_softmax_row
                                                                : hardmax_row;
    for (int64_t r = 0; r < view.rows; r++) {
        int64_t base = row_offset(view.keep, view.n_keep, r);
        row_gather(x, base, &view, row);
        work(row, view.length);
        row_scatter(y, base, &view, row);
    }
    return BRAID_OK;
}

/* The old default axis is 1; the last axis means the same in both forms. */
static braid_status softmax_upgrade(upgrade *u) {
    if (u->opset >= 13) {
        if (node_attribute(u->node, "flat")) return error_set(u->err, BRAID_MODEL, "unknown attribute 'flat'");
        return BRAID_OK;
    }
    if (node_int(u->node, "axis", 1) == -1) return BRAID_OK;
    bool ok = node_attribute(u->node, "axis") || node_add_int(u->g, u->node, "axis", 1);
    return ok && node_add_int(u->g, u->node, "flat", 1) ? BRAID_OK : error_memory(u->err);
}

static const attribute_spec softmax_attributes[] = {{"axis", ATTRIBUTE_INT, "-1"}, {"flat", ATTRIBUTE_INT, "0"}, {0}};

#define SOFTMAX(title)                                                                                      \
    {.name = title, .since = 1, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1,                       \
     .attributes = softmax_attributes, .upgrade = softmax_upgrade, .infer = softmax_infer, .eval = softmax_eval, \
     .lower = softmax_lower}

const op softmax_ops[] = {SOFTMAX("Softmax"), SOFTMAX("LogSoftmax"), SOFTMAX("Hardmax"), {0}};
