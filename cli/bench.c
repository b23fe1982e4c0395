/* bench: how long a run takes, by percentiles, for one or several numbers of lanes. */
#include "bench.h"

#include <stdlib.h>

/* With --seconds alone, at most this many runs; at most this many numbers of lanes. */
enum { RUNS_MAX = 100000, NUMBERS_MAX = 64 };

enum { WALL, DEVICE, UPLOAD, DOWNLOAD, COMPUTE, CLOCKS };

typedef struct samples {
    double *ms[CLOCKS];
    size_t count, capacity;
} samples;

static braid_status samples_grow(samples *s, braid_error *err) {
    size_t capacity = s->capacity ? 2 * s->capacity : 256;
    for (int i = 0; i < CLOCKS; i++) {
        double *grown = realloc(s->ms[i], capacity * sizeof *grown);
        if (!grown) return cli_error(err, BRAID_HOST_MEMORY, "out of memory");
        s->ms[i] = grown;
    }
    s->capacity = capacity;
    return BRAID_OK;
}

static braid_status samples_add(samples *s, double wall, const braid_run_times *t, braid_error *err) {
    uint64_t copies = t->upload_ns + t->download_ns, compute = t->device_ns > copies ? t->device_ns - copies : 0;
    const double ms[CLOCKS] = {wall, (double)t->device_ns / 1e6, (double)t->upload_ns / 1e6,
                               (double)t->download_ns / 1e6, (double)compute / 1e6};
    if (s->count == s->capacity) TRY(samples_grow(s, err));
    for (int i = 0; i < CLOCKS; i++) s->ms[i][s->count] = ms[i];
    s->count++;
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

static braid_status run_timed(bench_work *w, samples *s, braid_error *err) {
    uint64_t start = cli_clock_ns();
    TRY(braid_session_run(w->session, w->lanes, w->in, w->n_in, w->out, w->n_out, err));
    double wall = (double)(cli_clock_ns() - start) / 1e6;
    braid_run_times times;
    braid_session_times(w->session, &times);
    if (w->first_ms == 0) w->first_ms = wall;
    return s ? samples_add(s, wall, &times, err) : BRAID_OK;
}

static bench_figures figures_of(const samples *s, uint32_t items, const bench_figures *warm) {
    double total = 0;
    for (size_t i = 0; i < s->count; i++) total += s->ms[WALL][i];
    for (int i = 0; i < CLOCKS; i++) qsort(s->ms[i], s->count, sizeof *s->ms[i], by_size);
    return (bench_figures){.runs = s->count,
                           .p50 = percentile(s->ms[WALL], s->count, 0.5),
                           .p90 = percentile(s->ms[WALL], s->count, 0.9),
                           .p99 = percentile(s->ms[WALL], s->count, 0.99),
                           .least = s->ms[WALL][0],
                           .device = percentile(s->ms[DEVICE], s->count, 0.5),
                           .upload = percentile(s->ms[UPLOAD], s->count, 0.5),
                           .download = percentile(s->ms[DOWNLOAD], s->count, 0.5),
                           .compute = percentile(s->ms[COMPUTE], s->count, 0.5),
                           .rate = total > 0 ? 1000.0 * (double)s->count * items / total : 0,
                           .warmup_ms = warm->warmup_ms,
                           .steady = warm->steady};
}

/* ---- warming up

   A device's clocks fall while nothing runs, such as while pipelines are made, and rise again under load. */

/* A window of runs is this long and has this many. Times are steady when for STEADY_NS no window's median was more than
   2 % below that of the window before. After a long first run, clocks may stay low for longer than that. */
enum { WINDOW_RUNS = 3, WINDOW_NS = 50000000, STEADY_NS = 150000000 };
static const double FALL = 0.98, WARM_MOST_S = 2;

/* Device time where there is one. */
static double window_median(samples *s) {
    double *ms = s->ms[s->ms[DEVICE][0] > 0 ? DEVICE : WALL];
    qsort(ms, s->count, sizeof *ms, by_size);
    return percentile(ms, s->count, 0.5);
}

/* *whole: it was not cut at the time `last`. */
static braid_status warm_window(bench_work *w, samples *s, uint64_t last, bool *whole, braid_error *err) {
    uint64_t start = cli_clock_ns(), now;
    s->count = 0;
    do {
        TRY(run_timed(w, s, err));
        now = cli_clock_ns();
    } while (now < last && (s->count < WINDOW_RUNS || now - start < WINDOW_NS));
    *whole = s->count >= WINDOW_RUNS && now - start >= WINDOW_NS;
    return BRAID_OK;
}

/* Runs until times are steady, for half of --seconds at least (after a long first run for CLI_RISE_NS) and for
   WARM_MOST_S or --seconds at most. */
static braid_status warm_steady(const cli_options *o, bench_work *w, samples *s, bench_steady *out, braid_error *err) {
    double most = o->seconds > WARM_MOST_S ? o->seconds : WARM_MOST_S, before = 0;
    uint64_t start = cli_clock_ns(), least = start + (uint64_t)(o->seconds * 1e9 / 2),
             last = start + (uint64_t)(most * 1e9), since = start;
    bool whole = true;
    if (w->first_ms >= CLI_LONG_RUN_NS / 1e6 && least < start + CLI_RISE_NS) least = start + CLI_RISE_NS;
    for (uint64_t now = start; now < last && whole && !(*out == BENCH_STEADY && now >= least); now = cli_clock_ns()) {
        TRY(warm_window(w, s, last, &whole, err));
        if (!whole) break;
        double median = window_median(s);
        bool fell = before > 0 && median < FALL * before;
        if (fell) since = now;
        if (before > 0) *out = !fell && cli_clock_ns() - since >= STEADY_NS ? BENCH_STEADY : BENCH_FALLING;
        before = median;
    }
    return BRAID_OK;
}

static braid_status warm_up(const cli_options *o, bench_work *w, samples *s, bench_figures *f, braid_error *err) {
    uint64_t start = cli_clock_ns();
    for (int64_t i = 0; i < o->warmup; i++) {
        TRY(run_timed(w, NULL, err));
        if (i == 0) start = cli_clock_ns();
    }
    if (o->warmup && !o->runs) TRY(warm_steady(o, w, s, &f->steady, err));
    f->warmup_ms = (double)(cli_clock_ns() - start) / 1e6;
    s->count = 0;
    if (f->steady == BENCH_FALLING)
        cli_note(o, "times were not steady after %.1f s of warming up", f->warmup_ms / 1e3);
    return BRAID_OK;
}

braid_status bench_measure(const cli_options *o, bench_work *w, uint32_t items, bench_figures *out, braid_error *err) {
    samples s = {0};
    bench_figures warm = {0};
    braid_status status = warm_up(o, w, &s, &warm, err);
    uint64_t end = cli_clock_ns() + (uint64_t)(o->seconds * 1e9);
    int64_t most = o->runs ? o->runs : RUNS_MAX;
    for (int64_t i = 0; i < most && status == BRAID_OK; i++) {
        if (!o->runs && i > 0 && cli_clock_ns() >= end) break;
        status = run_timed(w, &s, err);
    }
    if (status == BRAID_OK) *out = figures_of(&s, items, &warm);
    for (int i = 0; i < CLOCKS; i++) free(s.ms[i]);
    return status;
}

/* Outputs of another number of lanes need other buffers. */
static void drop_outputs(bench_work *w) {
    for (size_t i = 0; i < w->n_out; i++) {
        const char *name = w->out[i].name;
        tensor_drop(&w->out[i]);
        w->out[i] = (braid_tensor){.name = name};
    }
}

void bench_work_free(bench_work *w) {
    tensors_free(w->out, w->n_out);
}

/* ---- the command */

/* What was made since the row before. */
static bench_made made_now(bench_work *w, const braid_plan_stats *stats) {
    const braid_pipeline_time *slowest = pipelines_slowest(w->session, w->pipelines);
    bench_made m = {.count = stats->pipelines_made - w->pipelines,
                    .cached = pipelines_cached(w->session, w->pipelines),
                    .ms = (double)(stats->pipelines_ns - w->pipelines_ns) / 1e6};
    if (slowest) {
        m.slowest_ms = (double)slowest->create_ns / 1e6;
        snprintf(m.slowest, sizeof m.slowest, "%.40s%s%.150s", slowest->kernel, *slowest->variant ? " " : "",
                 slowest->variant);
    }
    w->pipelines = stats->pipelines_made;
    w->pipelines_ns = stats->pipelines_ns;
    return m;
}

static braid_status measure_row(const cli_options *o, bench_work *w, bench_batch *batch, bench_row *row,
                                braid_error *err) {
    drop_outputs(w);
    w->lanes = row->lanes;
    row->differs = -1;
    w->first_ms = 0;
    TRY(bench_measure(o, w, row->lanes, &row->one, err));
    braid_session_stats(w->session, &row->stats);
    row->first_ms = w->first_ms;
    row->made = made_now(w, &row->stats);
    return batch ? bench_batch_row(batch, w, row, err) : BRAID_OK;
}

/* Among several numbers of lanes, one that does not fit becomes a row that says so. */
static braid_status measure_rows(const cli_options *o, bench_work *w, bench_batch *batch, bench_report *r,
                                 braid_error *err) {
    for (size_t i = 0; i < r->count; i++) {
        if (r->count > 1) cli_progress(o, "measuring %u lane%s", r->rows[i].lanes, text_s(r->rows[i].lanes));
        braid_status status = measure_row(o, w, batch, &r->rows[i], err);
        bool too_many = status == BRAID_DEVICE_MEMORY || status == BRAID_HOST_MEMORY || status == BRAID_LIMIT;
        if (r->count > 1 && too_many)
            snprintf(r->rows[i].error, sizeof r->rows[i].error, "%.255s", err->message);
        else
            TRY(status);
    }
    cli_progress_end();
    return BRAID_OK;
}

static braid_status bench_inputs(const cli_options *o, engine *e, braid_tensor *in, size_t n_in, bench_report *r,
                                 braid_error *err) {
    engine_plan plan = {.inputs = in, .n_inputs = n_in, .lanes_max = 1};
    bench_work w = {.in = in, .n_in = n_in};
    bench_batch batch = {0};
    for (size_t i = 0; i < r->count; i++)
        if (r->rows[i].lanes > plan.lanes_max) plan.lanes_max = r->rows[i].lanes;
    TRY(engine_open(e, o, err));
    TRY(lanes_spread(e->model, o, in, n_in, plan.lanes_max, err));
    TRY(engine_session(e, o, &plan, err));
    w.session = e->session;
    braid_status status = engine_outputs(e, o, &w.out, &w.n_out, err);
    if (status == BRAID_OK && o->against) status = bench_batch_open(o, e, &batch, err);
    if (status == BRAID_OK) status = measure_rows(o, &w, o->against ? &batch : NULL, r, err);
    if (status == BRAID_OK && o->against && !batch.used)
        status = cli_error(err, BRAID_SHAPE, "--against: the batch of %s is none of the numbers of lanes", o->against);
    bench_work_free(&w);
    bench_batch_close(&batch);
    return status;
}

static braid_status bench(const cli_options *o, engine *e, braid_error *err) {
    bench_row rows[NUMBERS_MAX] = {0};
    bench_report r = {.model = o->model, .against = o->against, .count = 1, .rows = rows};
    uint32_t lanes[NUMBERS_MAX] = {1};
    braid_tensor *in = NULL;
    size_t n_in = 0;
    if (o->lanes) TRY(args_lanes(o->lanes, lanes, NUMBERS_MAX, &r.count, err));
    for (size_t i = 0; i < r.count; i++) rows[i].lanes = lanes[i];
    TRY(engine_load(e, o, err));
    TRY(inputs_load(e->model, o, 0, true, &in, &n_in, err));
    bool ablate = o->ablate && r.count == 1;
    braid_status status = ablate ? bench_ablate(o, e, in, n_in, lanes[0], err)
                          : o->ablate
                              ? cli_error(err, BRAID_ARGUMENT, "--ablate: one number of lanes, not %zu", r.count)
                              : bench_inputs(o, e, in, n_in, &r, err);
    tensors_free(in, n_in);
    r.device = e->info.name;
    r.load_ms = (double)e->load_ns / 1e6;
    r.plan_ms = (double)e->plan_ns / 1e6;
    if (status == BRAID_OK && !ablate) bench_print(o, &r);
    return status;
}

int cmd_bench(const cli_options *o) {
    engine e = {0};
    braid_error err = {0};
    int code = bench(o, &e, &err) == BRAID_OK ? CLI_OK : cli_fail(&err);
    engine_free(&e);
    return code;
}
