/* bench: how long a run takes, by percentiles. */
#include "cli.h"

#include <jansson.h>
#include <stdlib.h>

/* With --seconds alone, at most this many runs; at most this many numbers of lanes. */
enum { RUNS_MAX = 100000, NUMBERS_MAX = 32 };

typedef struct samples {
    double *wall, *device; /* ms */
    size_t count, capacity;
} samples;

static braid_status samples_add(samples *s, double wall, double device, braid_error *err) {
    if (s->count == s->capacity) {
        size_t capacity = s->capacity ? 2 * s->capacity : 256;
        double *w = realloc(s->wall, capacity * sizeof *w);
        if (w) s->wall = w;
        double *d = realloc(s->device, capacity * sizeof *d);
        if (d) s->device = d;
        if (!w || !d) return cli_error(err, BRAID_HOST_MEMORY, "out of memory");
        s->capacity = capacity;
    }
    s->wall[s->count] = wall;
    s->device[s->count++] = device;
    return BRAID_OK;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The smallest sample that at least `part` of the samples do not exceed; the array is sorted. */
static double percentile(const double *sorted, size_t count, double part) {
    size_t rank = (size_t)(part * (double)count + 0.999999);
    return sorted[rank ? (rank > count ? count : rank) - 1 : 0];
}

/* What is measured: `lanes` inferences at once on these inputs. */
typedef struct work {
    engine *e;
    const braid_tensor *in, *form;
    braid_tensor *out;
    size_t n_in, n_out;
    uint32_t lanes;
} work;

typedef struct figures {
    uint32_t lanes;
    size_t runs;
    double p50, p90, p99, least, device, rate; /* ms; items per s */
} figures;

static braid_status run_timed(const work *w, samples *s, braid_error *err) {
    memcpy(w->out, w->form, w->n_out * sizeof *w->out);
    uint64_t start = cli_clock_ns();
    braid_status status = braid_session_run(w->e->session, w->lanes, w->in, w->n_in, w->out, w->n_out, err);
    double wall = (double)(cli_clock_ns() - start) / 1e6;
    for (size_t i = 0; i < w->n_out; i++) tensor_drop(&w->out[i]);
    TRY(status);
    return s ? samples_add(s, wall, (double)braid_session_device_ns(w->e->session) / 1e6, err) : BRAID_OK;
}

static figures figures_of(const samples *s, uint32_t lanes) {
    double total = 0;
    for (size_t i = 0; i < s->count; i++) total += s->wall[i];
    qsort(s->wall, s->count, sizeof *s->wall, by_size);
    qsort(s->device, s->count, sizeof *s->device, by_size);
    return (figures){.lanes = lanes,
                     .runs = s->count,
                     .p50 = percentile(s->wall, s->count, 0.5),
                     .p90 = percentile(s->wall, s->count, 0.9),
                     .p99 = percentile(s->wall, s->count, 0.99),
                     .least = s->wall[0],
                     .device = percentile(s->device, s->count, 0.5),
                     .rate = total > 0 ? 1000.0 * (double)s->count * lanes / total : 0};
}

static braid_status measure(const cli_options *o, const work *w, figures *out, braid_error *err) {
    samples s = {0};
    braid_status status = BRAID_OK;
    for (int64_t i = 0; i < o->warmup && status == BRAID_OK; i++) status = run_timed(w, NULL, err);
    uint64_t end = cli_clock_ns() + (uint64_t)(o->seconds * 1e9);
    int64_t most = o->runs ? o->runs : RUNS_MAX;
    for (int64_t i = 0; i < most && status == BRAID_OK; i++) {
        if (!o->runs && i > 0 && cli_clock_ns() >= end) break;
        status = run_timed(w, &s, err);
    }
    if (status == BRAID_OK) *out = figures_of(&s, w->lanes);
    free(s.wall);
    free(s.device);
    return status;
}

/* ---- printing */

static void print_one(const cli_options *o, const engine *e, const figures *f) {
    printf("%s on %s: %zu runs, %u lane%s\n", o->model, e->info.name, f->runs, f->lanes, f->lanes > 1 ? "s" : "");
    printf("wall    p50 %.3f ms  p90 %.3f ms  p99 %.3f ms  min %.3f ms\n", f->p50, f->p90, f->p99, f->least);
    if (f->device > 0) printf("device  p50 %.3f ms\n", f->device);
    printf("load %.1f ms, plan %.1f ms, %.1f items/s\n", (double)e->load_ns / 1e6, (double)e->plan_ns / 1e6, f->rate);
}

/* time(N)/time(1) by device time where there is one, else by wall time; 0: N = 1 was not measured. */
static double ratio(const figures *list, size_t count, const figures *f) {
    for (size_t i = 0; i < count; i++)
        if (list[i].lanes == 1)
            return list[i].device > 0 && f->device > 0 ? f->device / list[i].device : f->p50 / list[i].p50;
    return 0;
}

static void print_table(const cli_options *o, const engine *e, const figures *list, size_t count) {
    printf("%s on %s\n%7s %13s %13s %13s %16s\n", o->model, e->info.name, "lanes", "wall p50 ms", "device p50 ms",
           "items/s", "time(N)/time(1)");
    for (size_t i = 0; i < count; i++) {
        double times = ratio(list, count, &list[i]);
        printf("%7u %13.3f ", list[i].lanes, list[i].p50);
        if (list[i].device > 0) printf("%13.3f", list[i].device);
        else printf("%13s", "-");
        printf(" %13.1f", list[i].rate);
        if (times > 0) printf(" %16.2f\n", times);
        else printf(" %16s\n", "-");
    }
}

static json_t *json_figures(const cli_options *o, const engine *e, const figures *f) {
    braid_plan_stats stats = {0};
    braid_session_stats(e->session, &stats);
    return json_pack(
        "{ss ss sI sI sf sf sf sf so sf sf sf sI sI sI}", "model", o->model, "device", e->info.name, "lanes",
        (json_int_t)f->lanes, "runs", (json_int_t)f->runs, "wall_p50_ms", f->p50, "wall_p90_ms", f->p90, "wall_p99_ms",
        f->p99, "wall_min_ms", f->least, "device_p50_ms", f->device > 0 ? json_real(f->device) : json_null(),
        "items_per_s", f->rate, "load_ms", (double)e->load_ns / 1e6, "plan_ms", (double)e->plan_ns / 1e6, "host_steps",
        (json_int_t)stats.host_steps, "waves", (json_int_t)stats.waves, "dispatches", (json_int_t)stats.dispatches);
}

/* One N: an object; several: an array of them. */
static void print_json(const cli_options *o, const engine *e, const figures *list, size_t count) {
    json_t *root = count == 1 ? json_figures(o, e, list) : json_array();
    for (size_t i = 0; count > 1 && i < count; i++) {
        json_t *object = json_figures(o, e, &list[i]);
        double times = ratio(list, count, &list[i]);
        json_object_set_new(object, "time_over_one_lane", times > 0 ? json_real(times) : json_null());
        json_array_append_new(root, object);
    }
    json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(root);
}

/* ---- the command */

static braid_status measure_all(const cli_options *o, work *w, const uint32_t *lanes, size_t count, braid_error *err) {
    figures list[NUMBERS_MAX] = {{0}};
    for (size_t i = 0; i < count; i++) {
        if (count > 1) cli_progress(o, "%u lanes", lanes[i]);
        w->lanes = lanes[i];
        TRY(measure(o, w, &list[i], err));
    }
    cli_progress_end();
    if (o->json) print_json(o, w->e, list, count);
    else if (count == 1) print_one(o, w->e, list);
    else print_table(o, w->e, list, count);
    return BRAID_OK;
}

static braid_status bench_inputs(const cli_options *o, engine *e, braid_tensor *in, size_t n_in, const uint32_t *lanes,
                                 size_t count, braid_error *err) {
    engine_plan plan = {.inputs = in, .n_inputs = n_in, .lanes_max = 1};
    work w = {.e = e, .in = in, .n_in = n_in};
    braid_tensor *form = NULL;
    for (size_t i = 0; i < count; i++)
        if (lanes[i] > plan.lanes_max) plan.lanes_max = lanes[i];
    TRY(engine_open(e, o, err));
    TRY(lanes_spread(in, n_in, plan.lanes_max, err));
    TRY(engine_session(e, o, &plan, err));
    TRY(engine_outputs(e, o, &form, &w.n_out, err));
    w.form = form;
    w.out = calloc(w.n_out + 1, sizeof *w.out);
    braid_status status = w.out ? measure_all(o, &w, lanes, count, err) : cli_error(err, BRAID_HOST_MEMORY, "out of memory");
    free(form);
    free(w.out);
    return status;
}

static braid_status bench(const cli_options *o, engine *e, braid_error *err) {
    braid_tensor *in = NULL;
    size_t n_in = 0, count = 1;
    uint32_t lanes[NUMBERS_MAX] = {1};
    if (o->lanes) TRY(args_lanes(o->lanes, lanes, NUMBERS_MAX, &count, err));
    TRY(engine_load(e, o, err));
    TRY(inputs_load(e->model, o, 0, true, &in, &n_in, err));
    braid_status status = bench_inputs(o, e, in, n_in, lanes, count, err);
    tensors_free(in, n_in);
    return status;
}

int cmd_bench(const cli_options *o) {
    engine e = {0};
    braid_error err = {0};
    int code = bench(o, &e, &err) == BRAID_OK ? CLI_OK : cli_fail(&err);
    engine_free(&e);
    return code;
}
