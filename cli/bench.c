/* bench: how long a run takes, by percentiles. */
#include "cli.h"

#include <jansson.h>
#include <stdlib.h>

/* With --seconds alone, at most this many runs. */
enum { RUNS_MAX = 100000 };

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

static braid_status run_timed(engine *e, const braid_tensor *in, size_t n_in, const braid_tensor *form, size_t n_out,
                              braid_tensor *out, samples *s, braid_error *err) {
    memcpy(out, form, n_out * sizeof *out);
    uint64_t start = cli_clock_ns();
    TRY(braid_session_run(e->session, 1, in, n_in, out, n_out, err));
    double wall = (double)(cli_clock_ns() - start) / 1e6;
    for (size_t i = 0; i < n_out; i++) tensor_drop(&out[i]);
    return s ? samples_add(s, wall, (double)braid_session_device_ns(e->session) / 1e6, err) : BRAID_OK;
}

static braid_status measure(const cli_options *o, engine *e, const braid_tensor *in, size_t n_in, samples *s,
                            braid_error *err) {
    braid_tensor *form = NULL;
    size_t n_out = 0;
    TRY(engine_outputs(e, o, &form, &n_out, err));
    braid_tensor *out = calloc(n_out + 1, sizeof *out);
    braid_status status = out ? BRAID_OK : cli_error(err, BRAID_HOST_MEMORY, "out of memory");
    for (int64_t i = 0; i < o->warmup && status == BRAID_OK; i++)
        status = run_timed(e, in, n_in, form, n_out, out, NULL, err);
    uint64_t end = cli_clock_ns() + (uint64_t)(o->seconds * 1e9);
    int64_t most = o->runs ? o->runs : RUNS_MAX;
    for (int64_t i = 0; i < most && status == BRAID_OK; i++) {
        if (!o->runs && i > 0 && cli_clock_ns() >= end) break;
        status = run_timed(e, in, n_in, form, n_out, out, s, err);
    }
    free(form);
    free(out);
    return status;
}

static void print_result(const cli_options *o, const engine *e, samples *s) {
    double total = 0;
    for (size_t i = 0; i < s->count; i++) total += s->wall[i];
    qsort(s->wall, s->count, sizeof *s->wall, by_size);
    qsort(s->device, s->count, sizeof *s->device, by_size);
    double p50 = percentile(s->wall, s->count, 0.5), p90 = percentile(s->wall, s->count, 0.9),
           p99 = percentile(s->wall, s->count, 0.99), device = percentile(s->device, s->count, 0.5),
           rate = total > 0 ? 1000.0 * (double)s->count / total : 0;
    if (!o->json) {
        printf("%s on %s: %zu runs, 1 lane\n", o->model, e->info.name, s->count);
        printf("wall    p50 %.3f ms  p90 %.3f ms  p99 %.3f ms  min %.3f ms\n", p50, p90, p99, s->wall[0]);
        if (device > 0) printf("device  p50 %.3f ms\n", device);
        printf("load %.1f ms, plan %.1f ms, %.1f items/s\n", (double)e->load_ns / 1e6, (double)e->plan_ns / 1e6, rate);
        return;
    }
    braid_plan_stats stats = {0};
    braid_session_stats(e->session, &stats);
    json_t *root = json_pack(
        "{ss ss si sI sf sf sf sf so sf sf sf sI sI sI}", "model", o->model, "device", e->info.name, "lanes", 1, "runs",
        (json_int_t)s->count, "wall_p50_ms", p50, "wall_p90_ms", p90, "wall_p99_ms", p99, "wall_min_ms", s->wall[0],
        "device_p50_ms", device > 0 ? json_real(device) : json_null(), "items_per_s", rate, "load_ms",
        (double)e->load_ns / 1e6, "plan_ms", (double)e->plan_ns / 1e6, "host_steps", (json_int_t)stats.host_steps,
        "waves", (json_int_t)stats.waves, "dispatches", (json_int_t)stats.dispatches);
    json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(root);
}

static braid_status bench(const cli_options *o, engine *e, braid_error *err) {
    braid_tensor *in = NULL;
    size_t n_in = 0;
    samples s = {0};
    TRY(engine_load(e, o, err));
    TRY(inputs_load(e->model, o, 0, true, &in, &n_in, err));
    engine_plan plan = {.inputs = in, .n_inputs = n_in};
    braid_status status = engine_open(e, o, err);
    if (status == BRAID_OK) status = engine_session(e, o, &plan, err);
    if (status == BRAID_OK) status = measure(o, e, in, n_in, &s, err);
    if (status == BRAID_OK) print_result(o, e, &s);
    free(s.wall);
    free(s.device);
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
