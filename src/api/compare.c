/*
 * compare.c: the GPU's results against the CPU reference, value by value.
 *
 * A second session keeps every value that crosses nodes after fusion. The reference then computes the same graph, each
 * node from the reference's own values, so that the first node in the list is where the two part.
 */
#include "api/session.h"

#include <math.h>

typedef struct comparison {
    braid_session *s;
    arena *memory;
    text report;
    double worst; /* NaN: nothing was compared */
    braid_error *err;
} comparison;

/* Largest absolute difference over the largest magnitude; infinity where NaN or infinities disagree. */
static double distance(const tensor *a, const tensor *b) {
    int64_t count = 0;
    double difference = 0, magnitude = 0;
    tensor_type_count(&a->type, &count);
    for (int64_t i = 0; i < count; i++) {
        double x = element_f64(a->type.type, a->data, i), y = element_f64(b->type.type, b->data, i);
        if ((isnan(x) && isnan(y)) || x == y) {
            if (isfinite(y)) magnitude = fmax(magnitude, fabs(y));
            continue;
        }
        if (!isfinite(x) || !isfinite(y)) return INFINITY;
        difference = fmax(difference, fabs(x - y));
        magnitude = fmax(magnitude, fabs(y));
    }
    return difference == 0 ? 0 : magnitude > 0 ? difference / magnitude : difference;
}

static void report_value(comparison *c, const graph *g, const node *n, int32_t v, const tensor *found,
                         const tensor *cpu) {
    char title[256];
    if (found->type.type == BRAID_STRING || !tensor_type_equal(&found->type, &cpu->type)) return;
    double d = distance(found, cpu);
    if (isnan(c->worst) || d > c->worst) c->worst = d;
    if (d == 0) return;
    text_add_shown(&c->report, "%.3g  %s: '%s'", d, node_title(n, title), g->values[v]->name);
    text_add(&c->report, "\n");
}

static braid_status reference(comparison *c, stage *st, const place *in, const place *out) {
    const graph *g = st->g;
    tensor **values = arena_array(c->memory, (size_t)g->n_values + 1, sizeof *values);
    tensor **device = arena_array(c->memory, (size_t)g->n_values + 1, sizeof *device);
    if (!values || !device) return error_memory(c->err);
    for (int32_t i = 0; i < g->n_inputs; i++) values[g->inputs[i]] = in[i].host;
    for (int32_t i = 0; i < g->n_outputs; i++) device[g->outputs[i]] = out[i].host;
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const node *n = g->nodes[i];
        const tensor **ins = arena_array(c->memory, (size_t)n->n_in + 1, sizeof *ins);
        tensor **outs = arena_array(c->memory, (size_t)n->n_out + 1, sizeof *outs);
        if (!ins || !outs) return error_memory(c->err);
        for (int k = 0; k < n->n_in; k++) {
            int32_t v = n->in[k];
            if (v < 0) continue;
            if (g->values[v]->constant) TRY(tensor_load(g->values[v]->constant, st->memory, c->err));
            ins[k] = g->values[v]->constant ? g->values[v]->constant : values[v];
        }
        TRY(op_eval(g, n, c->memory, ins, outs, c->err));
        for (int k = 0; k < n->n_out; k++) {
            int32_t v = n->out[k];
            if (v < 0 || !outs[k]) continue;
            values[v] = outs[k];
            if (device[v] && device[v]->data) report_value(c, g, n, v, device[v], outs[k]);
        }
    }
    return BRAID_OK;
}

static braid_status compare_run(comparison *c, const braid_tensor *in, size_t n_in) {
    braid_session *s = c->s;
    place *inputs = arena_array(c->memory, (size_t)s->base->n_inputs + 1, sizeof *inputs);
    if (!inputs) return error_memory(c->err);
    TRY(lanes_begin(s, c->err));
    TRY(session_inputs(s, in, n_in, false, inputs, c->memory, c->err));
    stage *st;
    TRY(stage_get(s, &s->stages, s->base, inputs, false, &st, c->err));
    place *outputs = arena_array(c->memory, (size_t)st->g->n_outputs + 1, sizeof *outputs);
    if (!outputs) return error_memory(c->err);
    TRY(stage_run(s, st, inputs, outputs, c->memory, c->err));
    if (st->rest) text_add(&c->report, "(%d node%s whose shapes depend on data: not compared)\n", st->rest->n_nodes,
                         st->rest->n_nodes == 1 ? "" : "s");
    return st->rest ? BRAID_OK : reference(c, st, inputs, outputs);
}

braid_status braid_session_compare(braid_session *s, const braid_tensor *in, size_t n_in, double *worst, char **report,
                                   braid_error *err) {
    error_clear(err);
    if (!s || (n_in && !in) || !worst || !report)
        return error_set(err, BRAID_ARGUMENT, "braid_session_compare: a pointer is NULL");
    comparison c = {.s = s, .memory = arena_new(), .worst = NAN, .err = err};
    if (!c.memory) return error_memory(err);
    pthread_mutex_lock(&s->lock);
    stage_cache kept = s->stages;
    s->stages = (stage_cache){0};
    s->keep_all = true;
    braid_status status = compare_run(&c, in, n_in);
    stage_cache_clear(s, &s->stages);
    s->keep_all = false;
    s->stages = kept;
    pthread_mutex_unlock(&s->lock);
    arena_free(c.memory);
    if (status == BRAID_OK && !c.report.data) text_add(&c.report, "%s", "");
    if (status == BRAID_OK && c.report.failed) status = error_memory(err);
    if (status != BRAID_OK) {
        text_free(&c.report);
        return status;
    }
    *worst = c.worst;
    *report = c.report.data;
    return BRAID_OK;
}
