/* bench: the figures as text, as a table and as JSON. */
#include "bench.h"

#include <math.h>

/* Device time where there is one, else wall time. */
static double time_of(const bench_figures *f, bool device) {
    return device ? f->device : f->p50;
}

/* time of `a` over time of `b`, by the device where both have it; 0: one is missing. */
static double over(const bench_figures *a, const bench_figures *b) {
    if (!a->runs || !b->runs) return 0;
    bool device = a->device > 0 && b->device > 0;
    return time_of(a, device) / time_of(b, device);
}

/* time(N)/time(1); 0: N = 1 was not measured. */
static double over_one(const bench_report *r, const bench_row *row) {
    for (size_t i = 0; i < r->count; i++)
        if (r->rows[i].lanes == 1) return over(&row->one, &r->rows[i].one);
    return 0;
}

static void print_times(const char *title, const bench_figures *f) {
    printf("%-7s p50 %.3f ms  p90 %.3f ms  p99 %.3f ms  min %.3f ms\n", title, f->p50, f->p90, f->p99, f->least);
    if (f->device > 0)
        printf("device  p50 %.3f ms: upload %.3f ms, compute %.3f ms, download %.3f ms\n", f->device, f->upload,
               f->compute, f->download);
}

/* Pipelines, where some were made. */
static void print_made(const bench_row *row) {
    const bench_made *m = &row->made;
    if (m->count)
        printf("%zu pipelines made in %.1f ms, %zu from the cache, the slowest %.1f ms: %s\n", m->count, m->ms,
               m->cached, m->slowest_ms, m->slowest);
}

static void print_one(const bench_report *r) {
    const bench_row *row = r->rows;
    printf("%s on %s: %zu runs, %u lane%s\n", r->model, r->device, row->one.runs, row->lanes,
           row->lanes > 1 ? "s" : "");
    print_times("wall", &row->one);
    printf("load %.1f ms, plan %.1f ms, %.1f items/s\n", r->load_ms, r->plan_ms, row->one.rate);
    print_made(row);
    if (!row->batch.runs) return;
    printf("%s: the same as one batch of %u, %zu runs\n", r->against, row->lanes, row->batch.runs);
    print_times("wall", &row->batch);
    printf("%.1f items/s; lanes reach %.1f %% of the batch's throughput\n", row->batch.rate,
           100 * over(&row->batch, &row->one));
}

static void print_number(int width, int digits, double v) {
    if (v > 0)
        printf(" %*.*f", width, digits, v);
    else
        printf(" %*s", width, "-");
}

static void print_row(const bench_report *r, const bench_row *row) {
    double times = over_one(r, row);
    printf("%6u", row->lanes);
    if (row->error[0]) {
        printf("  %s\n", row->error);
        return;
    }
    print_number(10, 3, row->one.p50);
    print_number(10, 3, row->one.device);
    print_number(10, 3, row->one.device > 0 ? row->one.compute : 0);
    print_number(11, 1, row->one.rate);
    print_number(15, 2, times);
    print_number(7, 2, times > 0 ? row->lanes / times : 0);
    if (r->against) {
        print_number(13, 3, row->batch.p50);
        print_number(15, 3, row->batch.device);
        print_number(11, 2, over(&row->batch, &row->one));
    }
    putchar('\n');
}

/* The row that waited longest for pipelines, where that was long. */
static const bench_row *slowest_row(const bench_report *r) {
    enum { SLOW_MS = 1000 };
    const bench_row *slow = NULL;
    for (size_t i = 0; i < r->count; i++)
        if (r->rows[i].made.ms > (slow ? slow->made.ms : SLOW_MS)) slow = &r->rows[i];
    return slow;
}

static void print_table(const bench_report *r) {
    printf("%s on %s\n%6s %10s %10s %10s %11s %15s %7s", r->model, r->device, "lanes", "wall ms", "device ms",
           "compute ms", "items/s", "time(N)/time(1)", "gain");
    if (r->against) printf(" %13s %15s %11s", "batch wall ms", "batch device ms", "batch/lanes");
    putchar('\n');
    for (size_t i = 0; i < r->count; i++) print_row(r, &r->rows[i]);
    const bench_row *slow = slowest_row(r);
    if (slow)
        printf("making pipelines was slow: for %u lanes %.1f ms, the slowest %.1f ms: %s\n", slow->lanes, slow->made.ms,
               slow->made.slowest_ms, slow->made.slowest);
    puts("times are medians; compute: device without copies; gain: how many times the items/s of one by one");
    if (r->against) printf("batch: %s; batch/lanes: the part of its throughput that lanes reach\n", r->against);
}

static json_t *json_number(double v) {
    return v > 0 && isfinite(v) ? json_real(v) : json_null();
}

json_t *bench_steady_json(bench_steady steady) {
    return steady == BENCH_UNKNOWN ? json_null() : json_boolean(steady == BENCH_STEADY);
}

static void json_times(json_t *to, const bench_figures *f) {
    json_object_set_new(to, "runs", json_integer((json_int_t)f->runs));
    json_object_set_new(to, "wall_p50_ms", json_real(f->p50));
    json_object_set_new(to, "wall_p90_ms", json_real(f->p90));
    json_object_set_new(to, "wall_p99_ms", json_real(f->p99));
    json_object_set_new(to, "wall_min_ms", json_real(f->least));
    json_object_set_new(to, "device_p50_ms", json_number(f->device));
    json_object_set_new(to, "upload_p50_ms", f->device > 0 ? json_real(f->upload) : json_null());
    json_object_set_new(to, "compute_p50_ms", f->device > 0 ? json_real(f->compute) : json_null());
    json_object_set_new(to, "download_p50_ms", f->device > 0 ? json_real(f->download) : json_null());
    json_object_set_new(to, "items_per_s", json_real(f->rate));
    json_object_set_new(to, "warmup_ms", json_real(f->warmup_ms));
    json_object_set_new(to, "steady", bench_steady_json(f->steady));
}

static json_t *json_made(const bench_made *m) {
    return json_pack("{sI sI sf ss sf}", "made", (json_int_t)m->count, "cached", (json_int_t)m->cached, "ms", m->ms,
                     "slowest", m->slowest, "slowest_ms", m->slowest_ms);
}

/* null where the file's batch is another. */
static json_t *json_batch(const bench_report *r, const bench_row *row) {
    if (!row->batch.runs) return json_null();
    json_t *batch = json_pack("{ss}", "model", r->against);
    json_times(batch, &row->batch);
    json_object_set_new(batch, "batch_over_lanes", json_number(over(&row->batch, &row->one)));
    json_object_set_new(batch, "difference",
                        row->differs >= 0 && isfinite(row->differs) ? json_real(row->differs) : json_null());
    return batch;
}

static json_t *json_row(const bench_report *r, const bench_row *row) {
    const braid_plan_stats *s = &row->stats;
    json_t *root = json_pack("{ss ss sI}", "model", r->model, "device", r->device, "lanes", (json_int_t)row->lanes);
    if (row->error[0]) {
        json_object_set_new(root, "error", json_string(row->error));
        return root;
    }
    json_times(root, &row->one);
    json_object_set_new(root, "load_ms", json_real(r->load_ms));
    json_object_set_new(root, "plan_ms", json_real(r->plan_ms));
    json_object_set_new(root, "first_run_ms", json_real(row->first_ms));
    json_object_set_new(root, "pipelines", json_made(&row->made));
    json_object_set_new(root, "host_steps", json_integer((json_int_t)s->host_steps));
    json_object_set_new(root, "waves", json_integer((json_int_t)s->waves));
    json_object_set_new(root, "dispatches", json_integer((json_int_t)s->dispatches));
    if (r->count > 1) json_object_set_new(root, "time_over_one_lane", json_number(over_one(r, row)));
    if (r->against) json_object_set_new(root, "against", json_batch(r, row));
    return root;
}

/* One N: an object; several: an array of them. */
static void print_json(const bench_report *r) {
    json_t *root = r->count == 1 ? json_row(r, r->rows) : json_array();
    for (size_t i = 0; r->count > 1 && i < r->count; i++) json_array_append_new(root, json_row(r, &r->rows[i]));
    json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(root);
}

void bench_print(const cli_options *o, const bench_report *r) {
    if (o->json)
        print_json(r);
    else if (r->count == 1)
        print_one(r);
    else
        print_table(r);
}
