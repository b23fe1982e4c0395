/*
 * pool_lower.c: the window kernel for MaxPool, AveragePool and LpPool.
 */
#include "kernels/rows/window.h"
#include "ops/flat.h"
#include "ops/pool.h"
#include <stddef.h>

/* Longest window side that runs on the device: bounds the loop of an invocation. */
enum { WINDOW_SIDE = 4096, WINDOW_TAPS = 1 << 16 };

static bool fits_device(const pool_window *w, const int64_t size[POOL_AXES]) {
    int64_t taps = 1;
    for (int a = 0; a < POOL_AXES; a++) {
        const pool_axis *x = &w->axis[a];
        int64_t reach = size[a] + x->begin + x->end + x->stride + x->dilation * x->kernel;
        if (x->kernel > WINDOW_SIDE || reach > INT32_MAX / 2) return false;
        taps *= x->kernel;
    }
    return taps <= WINDOW_TAPS;
}

/* False: a case for the CPU, among them windows over nothing but padding. */
static bool fill_row(lowering *l, pool_window *w, row_window *row) {
    const tensor_type *x = lower_in(l, 0);
    int64_t size[POOL_AXES], out, outputs = x->dims[0] * x->dims[1];
    for (int a = 0; a < POOL_AXES; a++) {
        int axis = a - (POOL_AXES - w->rank);
        size[a] = axis < 0 ? 1 : x->dims[axis + 2];
        if (pool_fit(w, a, size[a], &out, NULL) != BRAID_OK) return false;
        outputs *= out;
        row->size[a] = (uint32_t)size[a];
        row->extent[a] = divider_of((uint32_t)out);
        row->begin[a] = (int32_t)w->axis[a].begin;
        row->end[a] = (int32_t)w->axis[a].end;
    }
    row->outputs = (uint32_t)outputs;
    return fits_device(w, size) && (outputs == 0 || size[0] * size[1] * size[2] > 0);
}

static braid_status add_spec(lowering *l, step *s, const pool_window *w, uint32_t kind, uint32_t flags) {
    uint32_t id = FLAT_SPEC;
    TRY(lower_spec(l, s, id++, kind));
    TRY(lower_spec(l, s, id++, flags));
    for (int a = 0; a < POOL_AXES; a++) TRY(lower_spec(l, s, id++, (uint32_t)w->axis[a].kernel));
    for (int a = 0; a < POOL_AXES; a++) TRY(lower_spec(l, s, id++, (uint32_t)w->axis[a].stride));
    for (int a = 0; a < POOL_AXES; a++) TRY(lower_spec(l, s, id++, (uint32_t)w->axis[a].dilation));
    return BRAID_OK;
}

braid_status pool_lower(lowering *l) {
    static const char *const kernels[5] = {"window_f32", "window_f16", "window_bf16", "window_i8", "window_u8"};
    const tensor_type *x = lower_in(l, 0), *y = lower_out(l, 0), *indices = lower_out(l, 1);
    uint32_t kind = l->node->op->name[0] == 'M' ? WINDOW_MAX : l->node->op->name[0] == 'A' ? WINDOW_AVERAGE : WINDOW_LP;
    double exponent = pool_exponent(l->node);
    const char *kernel = flat_float_kernel(x->type, kernels);
    if (!kernel || (kind != WINDOW_MAX && !type_is_float(x->type)) || !flat_fits(x) || !flat_fits(y ? y : indices))
        return BRAID_UNSUPPORTED;
    pool_window w;
    row_window row = {.exponent = (float)exponent};
    TRY(pool_read(l->node, x->rank, &w, l->err));
    if (!fill_row(l, &w, &row)) return BRAID_UNSUPPORTED;
    uint32_t flags = (indices ? WINDOW_INDICES : 0) |
                     (node_int(l->node, "storage_order", 0) ? WINDOW_COLUMN_MAJOR : 0) |
                     (node_int(l->node, "count_include_pad", 0) ? WINDOW_COUNT_PAD : 0);
    step *s = flat_step(l, kernel, &row, sizeof row, row.outputs);
    if (!s) return error_memory(l->err);
    for (int a = 0; a < POOL_AXES; a++) s->flops *= (uint64_t)w.axis[a].kernel;
    s->latency = 3; /* an H200 takes as much longer as for rows */
    TRY(add_spec(l, s, &w, kind, flags));
    TRY(lower_operand_in(l, s, offsetof(row_window, x), 0));
    if (y) TRY(lower_operand_out(l, s, offsetof(row_window, y), 0));
    if (indices) TRY(lower_operand_out(l, s, offsetof(row_window, indices), 1));
    return BRAID_OK;
}
