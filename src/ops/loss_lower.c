/*
 * loss_lower.c: steps of the losses.
 *
 *     scores ─ [logarithm of softmax] ─► log_prob ─► a loss per label, or (loss, weight) sums of chunks ─► y
 */
#include "ops/loss.h"

#include "kernels/rows/loss.h"
#include "kernels/rows/softmax.h"
#include "ops/row_lower.h"
#include "ops/softmax.h"

#include <stddef.h>

/* Where the logarithms are: a storage and its element type. */
typedef struct log_scores {
    int32_t storage;
    uint64_t bytes;
    braid_type type;
} log_scores;

static braid_status log_softmax(lowering *l, const loss_job *job, log_scores *out) {
    const tensor_type *x = lower_in(l, 0);
    int64_t dims[3] = {job->images, job->classes, job->places};
    row_view view;
    size_t bytes;
    if (!tensor_type_bytes(x, &bytes)) return BRAID_UNSUPPORTED;
    *out = (log_scores){l->node->in[0], bytes, x->type};
    if (!job->log_softmax) return BRAID_OK;
    row_view_make(3, dims, 2, &view);
    if (lower_out(l, 1)) {
        out->storage = l->node->out[1];
    } else {
        out->type = BRAID_FLOAT32;
        out->bytes = (uint64_t)(job->images * job->classes * job->places) * 4;
        if ((out->storage = lower_scratch(l, out->bytes)) < 0) return error_memory(l->err);
    }
    return softmax_step(l, &view, SOFTMAX_KIND_LOG, out->type, out->storage, out->bytes);
}

static braid_status add_step(lowering *l, const loss_job *job, const log_scores *from, uint32_t stage, uint64_t chunk,
                             uint64_t tiles, step **out) {
    uint32_t group = l->device->software ? 64 : 256;
    if (group < l->device->subgroup) group = l->device->subgroup;
    row_layout layout = {.group = group, .team = group, .adjacent = 1};
    row_view none = {0};
    const tensor_type *weights = lower_in(l, 2);
    row_loss row = {.ignore = job->ignore, .labels_count = (uint)(job->images * job->places),
                    .classes = (uint)job->classes, .places = (uint)job->places, .chunk = (uint)chunk};
    step *s = lower_step(l, "loss", &row, sizeof row, tiles, group);
    if (!s) return BRAID_HOST_MEMORY;
    TRY(row_layout_spec(l, s, &layout, &none));
    TRY(lower_spec(l, s, SPEC_KIND, job->reduction == LOSS_MEAN));
    TRY(lower_spec(l, s, SPEC_STAGE, stage));
    TRY(lower_spec(l, s, SPEC_TYPE_X, from->type));
    TRY(lower_spec(l, s, SPEC_TYPE_Y, lower_in(l, 0)->type));
    TRY(lower_spec(l, s, SPEC_TYPE_LABEL, lower_in(l, 1)->type));
    TRY(lower_spec(l, s, SPEC_TYPE_SCALE, weights ? weights->type : BRAID_FLOAT32));
    TRY(lower_spec(l, s, SPEC_FLAGS, (job->ignores ? LOSS_FLAG_IGNORE : 0) | (weights ? LOSS_FLAG_WEIGHTS : 0)));
    *out = s;
    return BRAID_OK;
}

static braid_status bind_labels(lowering *l, step *s, const log_scores *from) {
    TRY(lower_operand(l, s, offsetof(row_loss, scores), from->storage, 0, from->bytes, ACCESS_READ));
    TRY(row_read(l, s, offsetof(row_loss, labels), 1));
    return row_read(l, s, offsetof(row_loss, weights), 2);
}

static braid_status reduced(lowering *l, const loss_job *job, const log_scores *from) {
    uint64_t labels = (uint64_t)(job->images * job->places), chunk = 4096, tiles = (labels + chunk - 1) / chunk;
    int32_t partials = lower_scratch(l, tiles * 8);
    step *s;
    if (partials < 0) return error_memory(l->err);
    TRY(add_step(l, job, from, 1, chunk, tiles, &s));
    TRY(bind_labels(l, s, from));
    TRY(lower_operand(l, s, offsetof(row_loss, partials), partials, 0, tiles * 8, ACCESS_WRITE));
    TRY(add_step(l, job, from, 2, tiles, 1, &s));
    TRY(lower_operand(l, s, offsetof(row_loss, partials), partials, 0, tiles * 8, ACCESS_READ));
    return row_write(l, s, offsetof(row_loss, y), 0);
}

braid_status loss_lower(lowering *l) {
    const tensor_type *x = lower_in(l, 0), *weights = lower_in(l, 2);
    loss_job job;
    log_scores from;
    step *s;
    TRY(loss_job_make(l->node, x, &job, l->err));
    int64_t labels = job.images * job.places;
    if (!row_is_float(x->type) || (weights && !row_is_float(weights->type)) || !lower_out(l, 0)) return BRAID_UNSUPPORTED;
    if (job.classes == 0 || labels == 0 || labels * job.classes > INT32_MAX) return BRAID_UNSUPPORTED;
    TRY(log_softmax(l, &job, &from));
    if (job.reduction != LOSS_NONE) return reduced(l, &job, &from);
    TRY(add_step(l, &job, &from, 0, 1024, ((uint64_t)labels + 1023) / 1024, &s));
    TRY(bind_labels(l, s, &from));
    return row_write(l, s, offsetof(row_loss, y), 0);
}
