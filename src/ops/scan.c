/*
 * scan.c: CumSum and CumProd along an axis. Integers wrap in their type.
 */
#include "ops/scan.h"

static braid_status scan_infer(infer *c) {
    int count, axis;
    int64_t elements;
    const int64_t *v;
    TRY(row_types(c, 0, ROW_FLOATS | ROW_INTEGERS));
    TRY(row_types(c, 1, ROW_TYPE(INT32) | ROW_TYPE(INT64)));
    TRY(infer_rank(c, 1, 0, 1));
    if (tensor_type_static(c->in[1]) && tensor_type_count(c->in[1], &elements) && elements != 1)
        return error_set(c->err, BRAID_SHAPE, "input 1: %lld elements, expected 1", (long long)elements);
    TRY(infer_same(c));
    if (c->in[0]->rank < 0 || !infer_ints(c, 1, &count, &v)) return BRAID_OK;
    if (count != 1) return error_set(c->err, BRAID_SHAPE, "input 1: %d elements, expected 1", count);
    return dim_is_symbol(v[0]) ? BRAID_OK : axis_normalise(v[0], c->in[0]->rank, &axis, c->err);
}

braid_status scan_view(const tensor_type *x, const tensor *axis, row_view *out, braid_error *err) {
    int at;
    if (row_count(axis) != 1)
        return error_set(err, BRAID_SHAPE, "input 1: %lld elements, expected 1", (long long)row_count(axis));
    TRY(axis_normalise(element_i64(axis->type.type, axis->data, 0), x->rank, &at, err));
    row_view_make(x->rank, x->dims, 1u << at, out);
    return BRAID_OK;
}

scan_job scan_job_of(const node *n) {
    return (scan_job){strcmp(n->type, "CumProd") == 0, node_int(n, "exclusive", 0) != 0, node_int(n, "reverse", 0) != 0};
}

static void scan_f64(const scan_job *s, double *v, int64_t n) {
    double acc = s->product ? 1 : 0;
    for (int64_t i = 0; i < n; i++) {
        double *at = &v[s->reverse ? n - 1 - i : i], x = *at;
        double next = s->product ? acc * x : acc + x;
        *at = s->exclusive ? acc : next;
        acc = next;
    }
}

static void scan_i64(const scan_job *s, int64_t *v, int64_t n) {
    uint64_t acc = s->product ? 1 : 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t *at = &v[s->reverse ? n - 1 - i : i];
        uint64_t x = (uint64_t)*at, next = s->product ? acc * x : acc + x;
        *at = (int64_t)(s->exclusive ? acc : next);
        acc = next;
    }
}

static braid_status scan_eval(eval *e) {
    const tensor *x = eval_in(e, 0);
    tensor *y;
    row_view view;
    TRY(scan_view(&x->type, eval_in(e, 1), &view, e->err));
    TRY(eval_output(e, 0, &y));
    scan_job job = scan_job_of(e->node);
    void *row = arena_array(e->memory, (size_t)view.length + 1, 8);
    if (!row) return error_memory(e->err);
    bool floats = type_is_float(x->type.type);
    for (int64_t r = 0; r < view.rows; r++) {
        int64_t base = row_offset(view.keep, view.n_keep, r);
        if (floats) {
            row_gather(x, base, &view, row);
            scan_f64(&job, row, view.length);
            row_scatter(y, base, &view, row);
        } else {
            row_gather_i64(x, base, &view, row);
            scan_i64(&job, row, view.length);
            row_scatter_i64(y, base, &view, row);
        }
    }
    return BRAID_OK;
}

static const attribute_spec scan_attributes[] = {{"exclusive", ATTRIBUTE_INT, "0"}, {"reverse", ATTRIBUTE_INT, "0"}, {0}};

#define SCAN(title, opset)                                                                                           \
    {.name = title, .since = opset, .min_in = 2, .max_in = 2, .min_out = 1, .max_out = 1, .attributes = scan_attributes, \
     .infer = scan_infer, .eval = scan_eval, .lower = scan_lower}

const op scan_ops[] = {SCAN("CumSum", 11), SCAN("CumProd", 26), {0}};
