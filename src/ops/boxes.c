/*
 * boxes.c: NonMaxSuppression. How many boxes remain depends on data, so there is no kernel.
 */
#include "ops/op.h"
#include <stdlib.h>

/* ------------------------------------------------------------------------------------------------- infer */
static braid_status same_dim(infer *c, int64_t a, int64_t b, const char *what) {
    if (dim_known(a) && dim_known(b) && a != b)
        return error_set(c->err, BRAID_SHAPE, "boxes have %lld %s, scores %lld", (long long)a, what, (long long)b);
    return BRAID_OK;
}

static braid_status check_option(infer *c, int i, braid_type type) {
    if (!infer_has(c, i)) return BRAID_OK;
    TRY(infer_rank(c, i, 0, 1));
    if (c->in[i]->type != BRAID_TYPE_NONE && c->in[i]->type != type)
        return error_set(c->err, BRAID_TYPE, "input %d: type %s, expected %s", i, braid_type_name(c->in[i]->type),
                         braid_type_name(type));
    if (c->in[i]->rank == 1 && dim_known(c->in[i]->dims[0]) && c->in[i]->dims[0] > 1)
        return error_set(c->err, BRAID_SHAPE, "input %d: no scalar", i);
    return BRAID_OK;
}

static braid_status suppression_infer(infer *c) {
    const tensor_type *boxes = c->in[0], *scores = c->in[1];
    int64_t format = node_int(c->node, "center_point_box", 0);
    if (format != 0 && format != 1)
        return error_set(c->err, BRAID_MODEL, "center_point_box is %lld, expected 0 or 1", (long long)format);
    TRY(infer_rank(c, 0, 3, 3));
    TRY(infer_rank(c, 1, 3, 3));
    for (int i = 0; i < 2; i++)
        if (c->in[i]->type != BRAID_TYPE_NONE && c->in[i]->type != BRAID_FLOAT32)
            return error_set(c->err, BRAID_TYPE, "input %d: type %s, expected float32", i,
                             braid_type_name(c->in[i]->type));
    TRY(check_option(c, 2, BRAID_INT64));
    TRY(check_option(c, 3, BRAID_FLOAT32));
    TRY(check_option(c, 4, BRAID_FLOAT32));
    if (boxes->rank == 3 && dim_known(boxes->dims[2]) && boxes->dims[2] != 4)
        return error_set(c->err, BRAID_SHAPE, "input 0: %lld numbers to a box, expected 4", (long long)boxes->dims[2]);
    if (boxes->rank == 3 && scores->rank == 3) {
        TRY(same_dim(c, boxes->dims[0], scores->dims[0], "batches"));
        TRY(same_dim(c, boxes->dims[1], scores->dims[2], "boxes"));
    }
    c->out[0].type = BRAID_INT64;
    c->out[0].rank = 2;
    c->out[0].dims[0] = infer_fresh(c);
    c->out[0].dims[1] = 3;
    return BRAID_OK;
}

/* -------------------------------------------------------------------------------------------------- eval */
typedef struct box {
    float low[2], high[2];
    float score;
    int64_t index;
} box;

static void box_read(const float *v, bool centered, box *b) {
    for (int i = 0; i < 2; i++) {
        float a = centered ? v[i] - v[i + 2] / 2 : v[i], z = centered ? v[i] + v[i + 2] / 2 : v[i + 2];
        b->low[i] = a < z || centered ? a : z;
        b->high[i] = a < z || centered ? z : a;
    }
}

static float area(const box *b) { return (b->high[0] - b->low[0]) * (b->high[1] - b->low[1]); }

/* Is the overlap of two boxes above the threshold. */
static bool overlaps(const box *a, const box *b, float threshold) {
    float common = 1;
    for (int i = 0; i < 2; i++) {
        float low = a->low[i] > b->low[i] ? a->low[i] : b->low[i];
        float high = a->high[i] < b->high[i] ? a->high[i] : b->high[i];
        if (high <= low) return false;
        common *= high - low;
    }
    float all = area(a) + area(b) - common;
    return common > 0 && area(a) > 0 && area(b) > 0 && all > 0 && common / all > threshold;
}

/* Best score first; among equals the lower index. */
static int compare_boxes(const void *x, const void *y) {
    const box *a = x, *b = y;
    if (a->score != b->score) return a->score < b->score ? 1 : -1;
    return (a->index > b->index) - (a->index < b->index);
}

typedef struct suppression {
    int64_t batches, classes, boxes, most;
    float iou, score;
    bool has_score, centered;
    const float *box_data, *score_data;
    box *candidates, *kept; /* [boxes] */
    int64_t *found;         /* triples */
    int64_t n_found, cap_found;
} suppression;

static bool found_add(suppression *s, arena *memory, int64_t batch, int64_t class, int64_t index) {
    if (s->n_found == s->cap_found) {
        int64_t cap = s->cap_found ? 2 * s->cap_found : 64;
        int64_t *grown = arena_array(memory, (size_t)cap * 3, sizeof *grown);
        if (!grown) return false;
        if (s->found) memcpy(grown, s->found, (size_t)s->n_found * 3 * sizeof *grown);
        s->found = grown;
        s->cap_found = cap;
    }
    int64_t *to = s->found + 3 * s->n_found++;
    to[0] = batch, to[1] = class, to[2] = index;
    return true;
}

static bool suppress_class(suppression *s, arena *memory, int64_t batch, int64_t class) {
    int64_t n = 0, n_kept = 0;
    for (int64_t i = 0; i < s->boxes; i++) {
        float score = s->score_data[(batch * s->classes + class) * s->boxes + i];
        if (score != score || (s->has_score && !(score > s->score))) continue;
        s->candidates[n] = (box){.score = score, .index = i};
        box_read(s->box_data + (batch * s->boxes + i) * 4, s->centered, &s->candidates[n++]);
    }
    qsort(s->candidates, (size_t)n, sizeof *s->candidates, compare_boxes);
    for (int64_t i = 0; i < n && n_kept < s->most; i++) {
        bool free_of = true;
        for (int64_t k = 0; k < n_kept && free_of; k++) free_of = !overlaps(&s->candidates[i], &s->kept[k], s->iou);
        if (!free_of) continue;
        s->kept[n_kept++] = s->candidates[i];
        if (!found_add(s, memory, batch, class, s->candidates[i].index)) return false;
    }
    return true;
}

/* Element 0 of an optional scalar. */
static bool option(const eval *e, int i, double *out) {
    const tensor *t = eval_in(e, i);
    int64_t n;
    if (!t || !tensor_type_count(&t->type, &n) || n == 0) return false;
    *out = element_f64(t->type.type, t->data, 0);
    return true;
}

static braid_status suppression_eval(eval *e) {
    const tensor *boxes = eval_in(e, 0), *scores = eval_in(e, 1);
    double most = 0, iou = 0, score = 0;
    option(e, 2, &most);
    option(e, 3, &iou);
    suppression s = {.batches = scores->type.dims[0], .classes = scores->type.dims[1], .boxes = scores->type.dims[2],
                     .has_score = option(e, 4, &score), .centered = node_int(e->node, "center_point_box", 0) != 0,
                     .box_data = boxes->data, .score_data = scores->data};
    s.most = most < 0 ? 0 : most < (double)s.boxes ? (int64_t)most : s.boxes;
    s.iou = (float)iou;
    s.score = (float)score;
    s.candidates = arena_array(e->memory, (size_t)s.boxes + 1, sizeof *s.candidates);
    s.kept = arena_array(e->memory, (size_t)s.boxes + 1, sizeof *s.kept);
    if (!s.candidates || !s.kept) return error_memory(e->err);
    if (!(s.iou >= 0 && s.iou <= 1))
        return error_set(e->err, BRAID_MODEL, "iou_threshold is %g, expected 0 to 1", iou);
    for (int64_t i = 0; i < s.batches; i++)
        for (int64_t k = 0; k < s.classes; k++)
            if (!suppress_class(&s, e->memory, i, k)) return error_memory(e->err);
    tensor *y;
    TRY(eval_output_shaped(e, 0, BRAID_INT64, 2, (int64_t[]){s.n_found, 3}, &y));
    if (s.n_found) memcpy(y->data, s.found, (size_t)s.n_found * 3 * sizeof *s.found);
    return BRAID_OK;
}

static const attribute_spec suppression_specs[] = {{"center_point_box", ATTRIBUTE_INT, "0"}, {0}};

const op box_ops[] = {
    {.name = "NonMaxSuppression", .since = 10, .min_in = 2, .max_in = 5, .min_out = 1, .max_out = 1,
     .attributes = suppression_specs, .infer = suppression_infer, .eval = suppression_eval},
    {0},
};
