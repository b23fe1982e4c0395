/* bench --ablate: one model under four schedules, each with one thing more: what waves, merging and re-rolling save. */
#include "bench.h"

#include <stdlib.h>

typedef struct way {
    const char *name, *what;
    braid_schedule schedule;
    bool no_reroll;
} way;

static const way ways[] = {
    {"serial", "a wave for each step", BRAID_SCHEDULE_SERIAL, true},
    {"waves", "independent steps in one wave, a dispatch for each", BRAID_SCHEDULE_UNMERGED, true},
    {"merged", "steps alike in one dispatch", BRAID_SCHEDULE_DEFAULT, true},
    {"re-rolled", "copies of a subgraph as one", BRAID_SCHEDULE_DEFAULT, false},
};
enum { WAYS = sizeof ways / sizeof ways[0] };

typedef struct ablation {
    bench_figures figures[WAYS];
    braid_plan_stats stats[WAYS];
    double plan_ms[WAYS];
    uint32_t lanes;
} ablation;

/* ---- measuring */

static void keep_outputs(bench_work *w, braid_tensor **kept) {
    *kept = w->out;
    w->out = NULL;
}

/* The schedules must not change a bit. */
static braid_status check_equal(const bench_work *w, const braid_tensor *first, const char *name, braid_error *err) {
    for (size_t i = 0; i < w->n_out; i++) {
        const braid_tensor *a = &first[i], *b = &w->out[i];
        if (a->type == BRAID_STRING || (a->bytes == b->bytes && !memcmp(a->data, b->data, a->bytes))) continue;
        return cli_error(err, BRAID_INTERNAL, "output '%s' is not the same %s as %s", b->name, name, ways[0].name);
    }
    return BRAID_OK;
}

static braid_status measure_way(const cli_options *o, engine *e, bench_work *w, const engine_plan *plan, ablation *a,
                                size_t i, braid_error *err) {
    TRY(engine_session(e, o, plan, err));
    a->plan_ms[i] = (double)e->plan_ns / 1e6;
    w->session = e->session;
    TRY(engine_outputs(e, o, &w->out, &w->n_out, err));
    TRY(bench_measure(o, w, w->lanes, &a->figures[i], err));
    braid_session_stats(e->session, &a->stats[i]);
    braid_session_free(e->session);
    e->session = NULL;
    return BRAID_OK;
}

static braid_status measure_ways(const cli_options *o, engine *e, bench_work *w, engine_plan *plan, ablation *a,
                                 braid_error *err) {
    braid_tensor *first = NULL;
    size_t n_first = 0;
    braid_status status = BRAID_OK;
    for (size_t i = 0; i < WAYS && status == BRAID_OK; i++) {
        cli_progress(o, "measuring: %s", ways[i].name);
        plan->schedule = ways[i].schedule;
        plan->no_reroll = ways[i].no_reroll;
        status = measure_way(o, e, w, plan, a, i, err);
        if (status == BRAID_OK && first) status = check_equal(w, first, ways[i].name, err);
        if (status == BRAID_OK && !first) {
            n_first = w->n_out;
            keep_outputs(w, &first);
        }
        bench_work_free(w);
        w->out = NULL;
        w->n_out = 0;
    }
    tensors_free(first, n_first);
    return status;
}

/* ---- printing */

static double time_of(const ablation *a, size_t i) {
    return a->figures[0].device > 0 && a->figures[i].device > 0 ? a->figures[i].device : a->figures[i].p50;
}

static void print_table(const cli_options *o, const engine *e, const ablation *a) {
    printf("%s on %s, %u lane%s\n%-10s %10s %10s %8s %10s %8s %10s %10s\n", o->model, e->info.name, a->lanes,
           a->lanes > 1 ? "s" : "", "schedule", "wall ms", "device ms", "steps", "dispatches", "waves", "serial/it",
           "last/it");
    for (size_t i = 0; i < WAYS; i++) {
        const bench_figures *f = &a->figures[i];
        printf("%-10s %10.3f ", ways[i].name, f->p50);
        if (f->device > 0)
            printf("%10.3f", f->device);
        else
            printf("%10s", "-");
        printf(" %8llu %10llu %8llu %10.2f %10.2f\n", (unsigned long long)a->stats[i].steps,
               (unsigned long long)a->stats[i].dispatches, (unsigned long long)a->stats[i].waves,
               time_of(a, 0) / time_of(a, i), time_of(a, i ? i - 1 : 0) / time_of(a, i));
    }
    for (size_t i = 0; i < WAYS; i++) printf("%-10s %s\n", ways[i].name, ways[i].what);
    puts("times are medians; serial/it, last/it: how many times as fast as serial, as the line above\n"
         "the outputs of all four are the same, bit for bit");
}

static void print_json(const cli_options *o, const engine *e, const ablation *a) {
    json_t *root = json_array();
    for (size_t i = 0; i < WAYS; i++) {
        const bench_figures *f = &a->figures[i];
        const braid_plan_stats *s = &a->stats[i];
        json_t *device = f->device > 0 ? json_real(f->device) : json_null();
        json_t *compute = f->device > 0 ? json_real(f->compute) : json_null();
        json_array_append_new(
            root, json_pack("{ss ss ss sI sI sf sf so so sI sI sI sI sf sf sf so}", "model", o->model, "device",
                            e->info.name, "schedule", ways[i].name, "lanes", (json_int_t)a->lanes, "runs",
                            (json_int_t)f->runs, "wall_p50_ms", f->p50, "wall_min_ms", f->least, "device_p50_ms",
                            device, "compute_p50_ms", compute, "steps", (json_int_t)s->steps, "dispatches",
                            (json_int_t)s->dispatches, "waves", (json_int_t)s->waves, "host_steps",
                            (json_int_t)s->host_steps, "plan_ms", a->plan_ms[i], "serial_over_it",
                            time_of(a, 0) / time_of(a, i), "warmup_ms", f->warmup_ms, "steady",
                            bench_steady_json(f->steady)));
    }
    json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(root);
}

/* ---- the command */

braid_status bench_ablate(const cli_options *o, engine *e, braid_tensor *in, size_t n_in, uint32_t lanes,
                          braid_error *err) {
    if (o->no_reroll) return cli_error(err, BRAID_ARGUMENT, "--ablate and --no-reroll exclude each other");
    if (o->against) return cli_error(err, BRAID_ARGUMENT, "--ablate and --against exclude each other");
    engine_plan plan = {.inputs = in, .n_inputs = n_in, .lanes_max = lanes};
    bench_work w = {.in = in, .n_in = n_in, .lanes = lanes};
    ablation a = {.lanes = lanes};
    TRY(engine_open(e, o, err));
    TRY(lanes_spread(e->model, o, in, n_in, lanes, err));
    braid_status status = measure_ways(o, e, &w, &plan, &a, err);
    bench_work_free(&w);
    cli_progress_end();
    TRY(status);
    if (o->json)
        print_json(o, e, &a);
    else
        print_table(o, e, &a);
    return BRAID_OK;
}
