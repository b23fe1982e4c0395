/*
 * scan_lower.c: steps of CumSum and CumProd. Few long rows are cut into chunks:
 *
 *     x ─ totals of chunks ─► [chunks, rows] ─ exclusive scan over chunks ─► offsets ─ scan of each chunk ─► y
 */
#include "ops/scan.h"

#include "kernels/rows/scan.h"
#include "kernels/rows/scan_any.h"
#include "ops/row_lower.h"

#include <stddef.h>

enum { SCAN_CHUNK = 8192 };

/* One step of the kernel: element types, what it scans, and its stage. */
typedef struct scan_step {
    scan_job job;
    const row_view *view;
    row_layout layout;
    braid_type x, y, wide; /* wide: element type of totals and offsets */
    uint32_t stage;
    uint64_t chunk, chunks;
} scan_step;

static const char *kernel_for(braid_type wide) {
    return wide == BRAID_FLOAT32 ? "scan_float" : wide == BRAID_INT64 ? "scan_int" : "scan_double";
}

static braid_status add_step(lowering *l, const scan_step *a, step **out) {
    row_scan row = {.chunk = (uint)a->chunk};
    uint64_t tiles = a->layout.tiles * a->chunks;
    uint32_t flags = (a->job.exclusive ? SCAN_FLAG_EXCLUSIVE : 0) | (a->job.reverse ? SCAN_FLAG_REVERSE : 0);
    if (!row_pack(a->view, &row.view) || tiles > INT32_MAX) return BRAID_UNSUPPORTED;
    step *s = lower_step(l, kernel_for(a->wide), &row, sizeof row, tiles, a->layout.group);
    if (!s) return BRAID_HOST_MEMORY;
    TRY(row_layout_spec(l, s, &a->layout, a->view));
    TRY(lower_spec(l, s, SPEC_VALUES, a->layout.adjacent ? 8 : 4));
    TRY(lower_spec(l, s, SPEC_KIND, a->job.product));
    TRY(lower_spec(l, s, SPEC_TYPE_X, a->x));
    TRY(lower_spec(l, s, SPEC_TYPE_Y, a->y));
    TRY(lower_spec(l, s, SPEC_TYPE_SIDE, a->wide));
    TRY(lower_spec(l, s, SPEC_STAGE, a->stage));
    TRY(lower_spec(l, s, SPEC_FLAGS, flags));
    *out = s;
    return BRAID_OK;
}

static braid_status whole(lowering *l, const scan_step *a) {
    step *s;
    TRY(add_step(l, a, &s));
    TRY(row_read(l, s, offsetof(row_scan, x), 0));
    return row_write(l, s, offsetof(row_scan, y), 0);
}

static braid_status chunked(lowering *l, const scan_step *a) {
    scan_step totals = *a, offsets = *a, rest = *a;
    int64_t rows = a->view->rows, chunks = (int64_t)a->chunks;
    row_view view = {.n_keep = rows > 1, .n_reduce = 1, .rows = rows, .length = chunks,
                     .keep = {{.size = rows, .stride = 1}}, .reduce = {{.size = chunks, .stride = rows}}};
    uint64_t bytes = (uint64_t)rows * a->chunks * (a->wide == BRAID_FLOAT32 ? 4 : 8);
    int32_t t = lower_scratch(l, bytes), o = lower_scratch(l, bytes);
    step *s;
    totals.stage = 1;
    totals.y = offsets.x = offsets.y = a->wide;
    TRY(add_step(l, &totals, &s));
    TRY(row_read(l, s, offsetof(row_scan, x), 0));
    TRY(lower_operand(l, s, offsetof(row_scan, y), t, 0, bytes, ACCESS_WRITE));
    offsets.view = &view;
    offsets.job = (scan_job){.product = a->job.product, .exclusive = true};
    offsets.chunk = a->chunks;
    offsets.chunks = 1;
    row_layout_sequential(l->device, &view, &offsets.layout);
    TRY(add_step(l, &offsets, &s));
    TRY(lower_operand(l, s, offsetof(row_scan, x), t, 0, bytes, ACCESS_READ));
    TRY(lower_operand(l, s, offsetof(row_scan, y), o, 0, bytes, ACCESS_WRITE));
    rest.stage = 2;
    TRY(add_step(l, &rest, &s));
    TRY(row_read(l, s, offsetof(row_scan, x), 0));
    TRY(lower_operand(l, s, offsetof(row_scan, offsets), o, 0, bytes, ACCESS_READ));
    return row_write(l, s, offsetof(row_scan, y), 0);
}

/* The axis is known only when it runs. */
static braid_status any_axis(lowering *l, braid_type wide) {
    const tensor_type *x = lower_in(l, 0);
    scan_job job = scan_job_of(l->node);
    row_scan_any row = {.rank = (uint)x->rank};
    int64_t elements, least = INT32_MAX;
    if (!tensor_type_count(x, &elements) || elements > INT32_MAX || x->rank == 0) return BRAID_UNSUPPORTED;
    if (elements == 0) return BRAID_UNSUPPORTED; /* nothing would check the axis */
    for (int d = 0; d < x->rank; d++) {
        row.dims[d] = (uint)x->dims[d];
        if (x->dims[d] < least) least = x->dims[d];
    }
    row.elements = (uint)elements;
    const char *kernel = wide == BRAID_FLOAT32 ? "scan_any_float" : wide == BRAID_INT64 ? "scan_any_int" : "scan_any_double";
    uint64_t lines = (uint64_t)(elements / least);
    step *s = lower_step(l, kernel, &row, sizeof row, (lines + 63) / 64, 64);
    if (!s) return BRAID_HOST_MEMORY;
    TRY(lower_spec(l, s, SPEC_KIND, job.product));
    TRY(lower_spec(l, s, SPEC_TYPE_X, x->type));
    TRY(lower_spec(l, s, SPEC_TYPE_SIDE, lower_in(l, 1)->type));
    TRY(lower_spec(l, s, SPEC_FLAGS, (job.exclusive ? SCAN_FLAG_EXCLUSIVE : 0) | (job.reverse ? SCAN_FLAG_REVERSE : 0)));
    TRY(row_read(l, s, offsetof(row_scan_any, x), 0));
    TRY(row_read(l, s, offsetof(row_scan_any, axis), 1));
    return row_write(l, s, offsetof(row_scan_any, y), 0);
}

braid_status scan_lower(lowering *l) {
    const tensor_type *x = lower_in(l, 0);
    const tensor *axis;
    row_view view;
    rows_view packed;
    TRY(lower_constant_in(l, 1, &axis));
    braid_type wide = row_is_float(x->type) ? BRAID_FLOAT32 : x->type == BRAID_FLOAT64 ? BRAID_FLOAT64 : BRAID_INT64;
    if (wide == BRAID_FLOAT64 && !l->device->float64) return BRAID_UNSUPPORTED;
    if (!axis) return any_axis(l, wide);
    TRY(scan_view(x, axis, &view, l->err));
    if (!row_pack(&view, &packed)) return BRAID_UNSUPPORTED;
    if (view.rows == 0 || view.length == 0) return BRAID_OK;
    scan_step a = {.job = scan_job_of(l->node), .view = &view, .x = x->type, .y = x->type, .wide = wide,
                   .chunk = (uint64_t)view.length, .chunks = 1};
    row_layout_sequential(l->device, &view, &a.layout);
    uint64_t chunk = a.layout.adjacent ? SCAN_CHUNK : SCAN_CHUNK / 64;
    if (a.layout.tiles < l->device->cores && (uint64_t)view.length >= 4 * chunk) {
        a.chunk = chunk;
        a.chunks = ((uint64_t)view.length + chunk - 1) / chunk;
        return chunked(l, &a);
    }
    return whole(l, &a);
}
