/*
 * loss.c: NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss. A label outside [0, classes) that is not ignore_index
 * is an INDEX error. The mean is weighted: sum of losses over sum of weights, ignored labels weighing nothing.
 */
#include "ops/loss.h"

#include <math.h>

static bool is_softmax(const node *n) { return n->type[0] == 'S'; }

static braid_status loss_reduction_of(const node *n, loss_reduction *out, braid_error *err) {
    const char *s = node_string(n, "reduction", "mean");
    *out = strcmp(s, "none") == 0 ? LOSS_NONE : strcmp(s, "sum") == 0 ? LOSS_SUM : LOSS_MEAN;
    if (*out == LOSS_MEAN && strcmp(s, "mean") != 0)
        return error_set(err, BRAID_MODEL, "reduction is '%.40s', expected none, sum or mean", s);
    return BRAID_OK;
}

static braid_status check_dims(infer *c, int i, int d, int64_t got, int64_t want) {
    if (!dim_known(got) || !dim_known(want) || got == want) return BRAID_OK;
    return error_set(c->err, BRAID_SHAPE, "input %d: dim %d is %lld, expected %lld", i, d, (long long)got,
                     (long long)want);
}

static braid_status loss_infer(infer *c) {
    const tensor_type *x = c->in[0], *t = c->in[1], *w = infer_has(c, 2) ? c->in[2] : NULL;
    loss_reduction reduction;
    TRY(row_types(c, 0, ROW_FLOATS));
    TRY(row_types(c, 1, ROW_TYPE(INT32) | ROW_TYPE(INT64)));
    TRY(row_types(c, 2, ROW_FLOATS));
    TRY(infer_rank(c, 0, 2, BRAID_MAX_RANK));
    TRY(infer_rank(c, 2, 1, 1));
    TRY(loss_reduction_of(c->node, &reduction, c->err));
    if (x->rank >= 0) TRY(infer_rank(c, 1, x->rank - 1, x->rank - 1));
    for (int d = 0; x->rank >= 0 && d < t->rank; d++) TRY(check_dims(c, 1, d, t->dims[d], x->dims[d ? d + 1 : 0]));
    if (w && w->rank == 1 && x->rank >= 0) TRY(check_dims(c, 2, 0, w->dims[0], x->dims[1]));
    c->out[0] = (tensor_type){.type = x->type, .rank = 0};
    if (reduction == LOSS_NONE) {
        c->out[0] = *t;
        c->out[0].type = x->type;
    }
    if (c->n_out > 1) c->out[1] = *x;
    return BRAID_OK;
}

braid_status loss_job_make(const node *n, const tensor_type *x, loss_job *out, braid_error *err) {
    *out = (loss_job){.log_softmax = is_softmax(n), .ignores = node_attribute(n, "ignore_index") != NULL,
                      .ignore = node_int(n, "ignore_index", 0), .images = x->dims[0], .classes = x->dims[1], .places = 1};
    for (int d = 2; d < x->rank; d++) out->places *= x->dims[d];
    return loss_reduction_of(n, &out->reduction, err);
}

/* Logarithm of softmax over the classes, in place. */
static void log_softmax(const loss_job *job, double *v) {
    for (int64_t i = 0; i < job->images * job->places; i++) {
        double *at = v + i / job->places * job->classes * job->places + i % job->places, top = -INFINITY, sum = 0;
        for (int64_t k = 0; k < job->classes; k++)
            if (!(at[k * job->places] <= top)) top = isnan(top) ? top : at[k * job->places];
        for (int64_t k = 0; k < job->classes; k++) sum += exp(at[k * job->places] - top);
        double shift = log(sum);
        for (int64_t k = 0; k < job->classes; k++) at[k * job->places] = at[k * job->places] - top - shift;
    }
}

typedef struct loss_sums {
    double loss, weight;
} loss_sums;

static braid_status loss_of(const loss_job *job, int64_t i, int64_t label, const double *v, const double *weights,
                            loss_sums *out, braid_error *err) {
    *out = (loss_sums){0, 0};
    if (job->ignores && label == job->ignore) return BRAID_OK;
    if (label < 0 || label >= job->classes)
        return error_set(err, BRAID_INDEX, "label %lld outside [0, %lld)", (long long)label, (long long)job->classes);
    out->weight = weights ? weights[label] : 1;
    out->loss = -out->weight * v[(i / job->places * job->classes + label) * job->places + i % job->places];
    return BRAID_OK;
}

static braid_status loss_eval(eval *e) {
    const tensor *x = eval_in(e, 0), *labels = eval_in(e, 1), *w = eval_in(e, 2);
    tensor *y, *log_prob;
    loss_job job;
    loss_sums total = {0, 0}, one;
    TRY(loss_job_make(e->node, &x->type, &job, e->err));
    TRY(eval_output(e, 0, &y));
    double *v = row_doubles(e->memory, x), *weights = w ? row_doubles(e->memory, w) : NULL;
    if (!v || (w && !weights)) return error_memory(e->err);
    if (job.log_softmax) log_softmax(&job, v);
    if (eval_wants(e, 1)) {
        TRY(eval_output(e, 1, &log_prob));
        row_store_f64(log_prob, 0, row_count(x), v);
    }
    for (int64_t i = 0; i < job.images * job.places; i++) {
        TRY(loss_of(&job, i, element_i64(labels->type.type, labels->data, i), v, weights, &one, e->err));
        total.loss += one.loss;
        total.weight += one.weight;
        if (job.reduction == LOSS_NONE) element_set_f64(y->type.type, y->data, i, one.loss);
    }
    if (job.reduction == LOSS_SUM) element_set_f64(y->type.type, y->data, 0, total.loss);
    if (job.reduction == LOSS_MEAN) element_set_f64(y->type.type, y->data, 0, total.loss / total.weight);
    return BRAID_OK;
}

static const attribute_spec loss_attributes[] = {
    {"ignore_index", ATTRIBUTE_INT, NULL}, {"reduction", ATTRIBUTE_STRING, "mean"}, {0}};

#define LOSS(title, outs)                                                                                         \
    {.name = title, .since = 12, .min_in = 2, .max_in = 3, .min_out = 1, .max_out = outs, .attributes = loss_attributes, \
     .infer = loss_infer, .eval = loss_eval, .lower = loss_lower}

const op loss_ops[] = {LOSS("NegativeLogLikelihoodLoss", 1), LOSS("SoftmaxCrossEntropyLoss", 2), {0}};
