/*
 * norm_lower.c: steps of the norms.
 */
#include "ops/norm.h"

#include "kernels/rows/lrn.h"
#include "kernels/rows/norm.h"
#include "ops/row_lower.h"

#include <stddef.h>

static bool pack_extra(const row_axis *axes, int n, int k, uint *out) {
    for (int d = 0; d < n; d++) {
        if (axes[d].extra[k] > INT32_MAX) return false;
        out[d] = (uint)axes[d].extra[k];
    }
    return true;
}

static bool pack_row(const norm_job *job, row_norm *row) {
    const row_view *v = &job->view;
    row->epsilon = (float)job->epsilon;
    return row_pack(v, &row->view) && pack_extra(v->keep, v->n_keep, 0, row->scale_keep) &&
           pack_extra(v->keep, v->n_keep, 1, row->bias_keep) &&
           pack_extra(v->reduce, v->n_reduce, 0, row->scale_reduce) &&
           pack_extra(v->reduce, v->n_reduce, 1, row->bias_reduce);
}

/* How elements along a row find operand k: flags for the scale, the bias' are those shifted left by one. */
static uint32_t factor_flags(const row_view *v, int k, bool vector) {
    const row_axis *last = v->n_reduce ? &v->reduce[v->n_reduce - 1] : NULL;
    bool whole = true, aligned = true;
    for (int d = 0; d < v->n_reduce; d++) whole = whole && v->reduce[d].extra[k] == 0;
    for (int d = 0; d < v->n_keep; d++) aligned = aligned && v->keep[d].extra[k] % 4 == 0;
    uint32_t flags = NORM_FLAG_SCALE;
    if (whole) flags |= NORM_FLAG_SCALE_ROW;
    else if (vector && last->extra[k] == 0 && last->size % 4 == 0) flags |= NORM_FLAG_SCALE_FOUR;
    else if (vector && aligned && v->n_reduce == 1 && last->extra[k] == 1) flags |= NORM_FLAG_SCALE_UNIT;
    return flags << k;
}

static const char *kernel_for(const lowering *l) {
    const tensor_type *x = lower_in(l, 0), *scale = row_in(l, 1), *bias = row_in(l, 2);
    bool floats = row_is_float(x->type) && row_is_float(lower_out(l, 0)->type);
    floats = floats && (!scale || row_is_float(scale->type)) && (!bias || row_is_float(bias->type));
    if (floats) return "norm_float";
    return l->device->float64 ? "norm_double" : NULL;
}

static braid_status specialise(lowering *l, step *s, const norm_job *job, const row_layout *layout, uint32_t stage) {
    const tensor_type *scale = row_in(l, 1), *bias = row_in(l, 2);
    uint32_t flags = 0;
    braid_type side = (braid_type)node_int(l->node, "stash_type", BRAID_FLOAT32);
    if (scale) flags |= factor_flags(&job->view, 0, layout->vector);
    if (bias) flags |= factor_flags(&job->view, 1, layout->vector);
    TRY(row_layout_spec(l, s, layout, &job->view));
    TRY(lower_spec(l, s, SPEC_KIND, job->kind));
    TRY(lower_spec(l, s, SPEC_STAGE, stage));
    TRY(lower_spec(l, s, SPEC_FLAGS, flags));
    TRY(lower_spec(l, s, SPEC_TYPE_X, lower_in(l, 0)->type));
    TRY(lower_spec(l, s, SPEC_TYPE_Y, lower_out(l, 0)->type));
    TRY(lower_spec(l, s, SPEC_TYPE_SCALE, scale ? scale->type : BRAID_FLOAT32));
    TRY(lower_spec(l, s, SPEC_TYPE_BIAS, bias ? bias->type : BRAID_FLOAT32));
    return lower_spec(l, s, SPEC_TYPE_SIDE, side);
}

/* Everything but x. */
static braid_status bind_results(lowering *l, step *s) {
    TRY(row_write(l, s, offsetof(row_norm, y), 0));
    if (row_in(l, 1)) TRY(row_read(l, s, offsetof(row_norm, scale), 1));
    if (row_in(l, 2)) TRY(row_read(l, s, offsetof(row_norm, bias), 2));
    if (lower_out(l, 1)) TRY(row_write(l, s, offsetof(row_norm, mean), 1));
    if (lower_out(l, 2)) TRY(row_write(l, s, offsetof(row_norm, inverse), 2));
    return row_epilogue(l, s, offsetof(row_norm, cols), offsetof(row_norm, e));
}

static braid_status add_step(lowering *l, const char *kernel, row_norm *row, const norm_job *job,
                             const row_layout *layout, uint32_t stage, step **out) {
    step *s = lower_step(l, kernel, row, sizeof *row, layout->tiles * row->chunks, layout->group);
    if (!s) return BRAID_HOST_MEMORY;
    s->latency = ROW_LATENCY;
    TRY(specialise(l, s, job, layout, stage));
    s->flops = 4 * (uint64_t)(job->view.rows * job->view.length) * (stage ? 1 : 2);
    *out = s;
    return row_read(l, s, offsetof(row_norm, x), 0);
}

enum { CHUNK_TEAM = 512, CHUNK_VALUES = 16, CHUNK = CHUNK_TEAM * CHUNK_VALUES, CHUNK_BYTES = 16 };

/* Few long rows: each chunk finds its mean and spread, then each chunk joins those of its row and is normalised. */
static braid_status chunked(lowering *l, const char *kernel, row_norm *row, const norm_job *job, row_layout layout) {
    const row_view *v = &job->view;
    step *s;
    layout.group = layout.team = CHUNK_TEAM;
    layout.values = CHUNK_VALUES;
    layout.tiles = (uint64_t)v->rows;
    row->chunk = CHUNK;
    row->chunks = (uint)((v->length + CHUNK - 1) / CHUNK);
    uint64_t bytes = layout.tiles * row->chunks * CHUNK_BYTES;
    if (layout.tiles * row->chunks > INT32_MAX) return BRAID_UNSUPPORTED;
    int32_t partials = lower_scratch(l, bytes);
    TRY(add_step(l, kernel, row, job, &layout, 1, &s));
    TRY(lower_operand(l, s, offsetof(row_norm, partials), partials, 0, bytes, ACCESS_WRITE));
    TRY(add_step(l, kernel, row, job, &layout, 2, &s));
    TRY(lower_operand(l, s, offsetof(row_norm, partials), partials, 0, bytes, ACCESS_READ));
    return bind_results(l, s);
}

static bool wants_chunks(const lowering *l, const row_view *v, const row_layout *layout) {
    const device_traits *d = l->device;
    return !d->software && d->max_invocations >= CHUNK_TEAM && layout->adjacent && v->length >= 4 * CHUNK &&
           layout->tiles * 3 < d->cores;
}

/* A node that wants mean and inverse of rows without elements has no kernel. */
braid_status norm_lower(lowering *l) {
    row_norm row = {.chunks = 1};
    row_layout layout;
    norm_job job;
    const tensor_type *x = lower_in(l, 0);
    const char *kernel = kernel_for(l);
    if (!lower_out(l, 0) || !kernel) return BRAID_UNSUPPORTED;
    TRY(norm_job_make(l->node, x, row_in(l, 1), row_in(l, 2), &job, l->err));
    const row_view *v = &job.view;
    bool floats = strcmp(kernel, "norm_float") == 0;
    if (!pack_row(&job, &row) || (l->node->epilogue && !floats)) return BRAID_UNSUPPORTED;
    if (v->rows == 0) return BRAID_OK;
    if (v->length == 0) return lower_out(l, 1) || lower_out(l, 2) ? BRAID_UNSUPPORTED : BRAID_OK;
    row.chunk = (uint)v->length;
    row_layout_make(l->device, v, floats && row_vector(v), l->device->software ? 16 : 32, &layout);
    if (l->node->epilogue) row_layout_tight(v, &layout);
    row_layout_many(l, v, &layout);
    if (floats && wants_chunks(l, v, &layout)) return chunked(l, kernel, &row, &job, layout);
    step *s;
    TRY(add_step(l, kernel, &row, &job, &layout, 0, &s));
    return bind_results(l, s);
}

braid_status lrn_lower(lowering *l) {
    const tensor_type *x = lower_in(l, 0);
    int64_t elements, size = node_int(l->node, "size", 1);
    if (!row_is_float(x->type) || !tensor_type_count(x, &elements) || elements > INT32_MAX) return BRAID_UNSUPPORTED;
    if (elements == 0) return BRAID_OK;
    if (size > x->dims[1] * 2) size = x->dims[1] * 2; /* the region covers every channel either way */
    uint32_t group = l->device->software ? 64 : 128;
    row_lrn row = {.elements = (uint)elements,
                   .channels = (uint)x->dims[1],
                   .places = (uint)(elements / x->dims[0] / x->dims[1]),
                   .low = (uint)((size - 1) / 2),
                   .high = (uint)(size / 2),
                   .scale = node_float(l->node, "alpha", 1e-4f) / (float)node_int(l->node, "size", 1),
                   .bias = node_float(l->node, "bias", 1),
                   .beta = node_float(l->node, "beta", 0.75f)};
    step *s = lower_step(l, "lrn", &row, sizeof row, ((uint64_t)elements + group - 1) / group, group);
    if (!s) return BRAID_HOST_MEMORY;
    TRY(lower_spec(l, s, SPEC_TYPE_X, x->type));
    TRY(row_read(l, s, offsetof(row_lrn, x), 0));
    s->flops = (uint64_t)elements * (uint64_t)(2 * size + 30);
    return row_write(l, s, offsetof(row_lrn, y), 0);
}
