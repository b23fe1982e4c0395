/* profile: the time of every step of a run, as a table and as a Chrome trace. */
#include "cli.h"

#include <jansson.h>
#include <stdlib.h>

static void print_table(const braid_step_time *steps, size_t count, uint32_t lanes, const braid_run_times *run) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) sum += steps[i].time_ns;
    printf("%5s %10s %6s  %-22s %-18s %9s %8s  %s\n", "wave", "us", "%", "kernel", "operator", "GFLOP/s", "GB/s",
           "node");
    for (size_t i = 0; i < count; i++) {
        const braid_step_time *s = &steps[i];
        double ns = s->time_ns ? (double)s->time_ns : 1;
        printf("%5u %10.2f %6.1f  %-22s %-18s %9.1f %8.1f  %s\n", s->wave, (double)s->time_ns / 1e3,
               sum ? 100.0 * (double)s->time_ns / (double)sum : 0, s->kernel, s->op, (double)s->flops / ns,
               (double)s->bytes / ns, s->node);
    }
    printf("%zu step%s, %u lane%s, %.3f ms in steps, %.3f ms on the device: upload %.3f ms, download %.3f ms\n", count,
           text_s(count), lanes, text_s(lanes), (double)sum / 1e6, (double)run->device_ns / 1e6,
           (double)run->upload_ns / 1e6, (double)run->download_ns / 1e6);
}

/* One row per kernel, the slowest first. */
typedef struct share {
    const char *kernel;
    uint64_t time_ns, flops, bytes;
    size_t steps;
} share;

static int by_time(const void *a, const void *b) {
    const share *x = a, *y = b;
    return (x->time_ns < y->time_ns) - (x->time_ns > y->time_ns);
}

static void print_shares(const braid_step_time *steps, size_t count) {
    share *list = calloc(count + 1, sizeof *list);
    size_t n = 0;
    uint64_t sum = 0;
    for (size_t i = 0; list && i < count; i++) {
        size_t k = 0;
        while (k < n && strcmp(list[k].kernel, steps[i].kernel)) k++;
        if (k == n) list[n++].kernel = steps[i].kernel;
        list[k].time_ns += steps[i].time_ns;
        list[k].flops += steps[i].flops;
        list[k].bytes += steps[i].bytes;
        list[k].steps++;
        sum += steps[i].time_ns;
    }
    if (list) qsort(list, n, sizeof *list, by_time);
    for (size_t k = 0; k < n; k++) {
        double ns = list[k].time_ns ? (double)list[k].time_ns : 1;
        printf("%6.1f %%  %-22s %5zu step%-1s %9.1f GFLOP/s %8.1f GB/s\n",
               sum ? 100.0 * (double)list[k].time_ns / (double)sum : 0, list[k].kernel, list[k].steps,
               text_s(list[k].steps), (double)list[k].flops / ns, (double)list[k].bytes / ns);
    }
    free(list);
}

static json_t *step_json(const braid_step_time *s) {
    return json_pack("{ss ss ss sI sI sI sI si si si}", "node", s->node, "op", s->op, "kernel", s->kernel, "start_ns",
                     (json_int_t)s->start_ns, "time_ns", (json_int_t)s->time_ns, "flops", (json_int_t)s->flops, "bytes",
                     (json_int_t)s->bytes, "wave", (int)s->wave, "rows", (int)s->rows, "copies", (int)s->copies);
}

static void print_json(const braid_step_time *steps, size_t count) {
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) json_array_append_new(list, step_json(&steps[i]));
    json_dumpf(list, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(list);
}

/* ---- Chrome's trace event format, which Perfetto opens: complete events in microseconds on three named tracks. */

enum { TRACK_WAVES = 1, TRACK_DISPATCHES, TRACK_HOST };

static bool on_host(const braid_step_time *s) {
    return !strcmp(s->kernel, "host");
}

static void name_track(json_t *events, const char *what, int track, const char *name) {
    json_array_append_new(events, json_pack("{ss ss si si s{ss}}", "name", what, "ph", "M", "pid", 1, "tid", track,
                                            "args", "name", name));
}

static void add_event(json_t *events, const char *name, const char *category, int track, double us, double for_us,
                      json_t *args) {
    json_array_append_new(events, json_pack("{ss ss ss sf sf si si so}", "name", name, "cat", category, "ph", "X", "ts",
                                            us, "dur", for_us, "pid", 1, "tid", track, "args", args));
}

static void add_step(json_t *events, const braid_step_time *s, double us) {
    json_t *args =
        json_pack("{ss ss si si si sI sI}", "node", s->node, "kernel", s->kernel, "wave", (int)s->wave, "rows",
                  (int)s->rows, "copies", (int)s->copies, "flops", (json_int_t)s->flops, "bytes", (json_int_t)s->bytes);
    add_event(events, s->op, s->kernel, on_host(s) ? TRACK_HOST : TRACK_DISPATCHES, us, (double)s->time_ns / 1e3, args);
}

static void add_wave(json_t *events, const braid_step_time *steps, size_t count, double us, double for_us) {
    char name[32];
    uint64_t rows = 0;
    for (size_t i = 0; i < count; i++) rows += steps[i].rows;
    snprintf(name, sizeof name, "wave %u", steps[0].wave);
    add_event(events, name, "wave", TRACK_WAVES, us, for_us,
              json_pack("{sI sI}", "dispatches", (json_int_t)count, "steps", (json_int_t)rows));
}

static bool is_copy(const braid_step_time *s) {
    return !s->rows;
}

/* Does b go on with a's wave. */
static bool joins(const braid_step_time *a, const braid_step_time *b) {
    return !on_host(a) && !on_host(b) && !is_copy(a) && !is_copy(b) && a->wave == b->wave && a->start_ns <= b->start_ns;
}

/* Each clock (the host's, that of each submission; copies are those of all submissions together) begins where the last
   event ended: what lies between is left out. Differences are taken between integers: the host's clock counts from the
   machine's start, which leaves a double few digits. */
static void add_steps(json_t *events, const braid_step_time *steps, size_t count) {
    double end = 0, zero = 0; /* zero: of the instant `base` of the clock */
    uint64_t base = 0;
    for (size_t i = 0, next; i < count; i = next) {
        const braid_step_time *s = &steps[i], *before = i ? s - 1 : s;
        bool other =
            i == 0 || on_host(s) != on_host(before) || s->start_ns < before->start_ns || is_copy(s) || is_copy(before);
        if (other) {
            zero = end;
            base = s->start_ns;
        }
        double first = zero + (double)(s->start_ns - base) / 1e3;
        for (next = i; next < count && (next == i || joins(&steps[next - 1], &steps[next])); next++) {
            double start = zero + (double)(steps[next].start_ns - base) / 1e3;
            add_step(events, &steps[next], start);
            if (start + (double)steps[next].time_ns / 1e3 > end) end = start + (double)steps[next].time_ns / 1e3;
        }
        if (!on_host(&steps[i]) && !is_copy(&steps[i])) add_wave(events, steps + i, next - i, first, end - first);
    }
}

static braid_status write_trace(const cli_options *o, const braid_step_time *steps, size_t count, braid_error *err) {
    json_t *events = json_array();
    char *model = text_clean(o->model);
    name_track(events, "process_name", 0, model ? model : "");
    free(model);
    name_track(events, "thread_name", TRACK_WAVES, "waves");
    name_track(events, "thread_name", TRACK_DISPATCHES, "dispatches");
    name_track(events, "thread_name", TRACK_HOST, "host steps");
    add_steps(events, steps, count);
    json_t *root = json_pack("{ss so}", "displayTimeUnit", "ns", "traceEvents", events);
    int failed = json_dump_file(root, o->trace, JSON_COMPACT | JSON_REAL_PRECISION(15));
    json_decref(root);
    return failed ? cli_error(err, BRAID_IO, "%s: cannot write the trace", o->trace) : BRAID_OK;
}

/* The steps of a run with its copies around them, where it has some. */
static size_t with_copies(const braid_step_time *steps, size_t count, const braid_run_times *run,
                          braid_step_time *out) {
    const braid_step_time in = {.node = "", .op = "copy", .kernel = "upload", .time_ns = run->upload_ns};
    const braid_step_time back = {.node = "",
                                  .op = "copy",
                                  .kernel = "download",
                                  .time_ns = run->download_ns,
                                  .start_ns = run->device_ns - run->download_ns,
                                  .wave = count ? steps[count - 1].wave : 0};
    size_t n = 0;
    if (in.time_ns) out[n++] = in;
    if (count) memcpy(out + n, steps, count * sizeof *steps);
    n += count;
    if (back.time_ns) out[n++] = back;
    return n;
}

/* Gives the steps names of their own, which a terminal and JSON take; to be freed when the steps are done with. NULL: no
   memory. */
static char *clean_names(braid_step_time *steps, size_t count) {
    size_t bytes = 1;
    for (size_t i = 0; i < count; i++)
        bytes += strlen(steps[i].node) + strlen(steps[i].op) + strlen(steps[i].kernel) + 3;
    char *names = malloc(bytes), *at = names;
    for (size_t i = 0; names && i < count; i++) {
        const char **const own[] = {&steps[i].node, &steps[i].op, &steps[i].kernel};
        for (size_t k = 0; k < 3; k++) {
            char *name = at;
            at = text_line(name, *own[k]);
            *own[k] = name;
        }
    }
    return names;
}

/* What a run took. */
typedef struct recorded {
    braid_step_time *all; /* with copies, */
    size_t n_all;
    const braid_step_time *steps; /* and those of them that are none */
    size_t n_steps;
    char *names;
    braid_run_times times;
    uint64_t sum_ns;
} recorded;

static void recorded_free(recorded *r) {
    free(r->names);
    free(r->all);
    *r = (recorded){0};
}

static braid_status recorded_new(recorded *r, const engine *e, braid_error *err) {
    const braid_step_time *steps = NULL;
    *r = (recorded){.n_steps = braid_session_profile(e->session, &steps)};
    braid_session_times(e->session, &r->times);
    if (!(r->all = calloc(r->n_steps + 2, sizeof *r->all))) return cli_error(err, BRAID_HOST_MEMORY, "out of memory");
    r->n_all = with_copies(steps, r->n_steps, &r->times, r->all);
    r->steps = r->all + (r->times.upload_ns > 0);
    for (size_t i = 0; i < r->n_all; i++) r->sum_ns += r->all[i].time_ns;
    if ((r->names = clean_names(r->all, r->n_all))) return BRAID_OK;
    recorded_free(r);
    return cli_error(err, BRAID_HOST_MEMORY, "out of memory");
}

static braid_status show(const cli_options *o, const engine *e, uint32_t lanes, const recorded *r, braid_error *err) {
    if (o->json && o->pipelines) {
        pipelines_print_json(e);
    } else if (o->json) {
        print_json(r->all, r->n_all);
    } else {
        if (!o->pipelines) print_table(r->steps, r->n_steps, lanes, &r->times);
        if (!o->pipelines) print_shares(r->all, r->n_all);
        pipelines_print(e, o->pipelines);
    }
    return o->trace ? write_trace(o, r->all, r->n_all, err) : BRAID_OK;
}

typedef struct work {
    engine *e;
    uint32_t lanes;
    const braid_tensor *in;
    size_t n_in;
    braid_tensor *out;
    size_t n_out;
} work;

static braid_status run_once(work *w, braid_error *err) {
    braid_status status = braid_session_run(w->e->session, w->lanes, w->in, w->n_in, w->out, w->n_out, err);
    for (size_t k = 0; k < w->n_out; k++) {
        const char *name = w->out[k].name;
        tensor_drop(&w->out[k]);
        w->out[k] = (braid_tensor){.name = name};
    }
    return status;
}

/* A device's clocks fall while nothing runs, and rise under load: without --runs, runs are made for that long. */
enum { WARM_NS = 500000000 };

static braid_status warm_up(const cli_options *o, work *w, braid_error *err) {
    uint64_t start = cli_clock_ns(), until = 0;
    for (int64_t i = 0; i < o->warmup || (o->warmup && cli_clock_ns() < until); i++) {
        TRY(run_once(w, err));
        uint64_t now = cli_clock_ns();
        if (i == 0 && !o->runs && !o->pipelines) until = now + (now - start < CLI_LONG_RUN_NS ? WARM_NS : CLI_RISE_NS);
    }
    return BRAID_OK;
}

/* The quickest of the measured runs. */
static braid_status measure(const cli_options *o, work *w, recorded *best, braid_error *err) {
    TRY(warm_up(o, w, err));
    for (int64_t i = 0; i < (o->runs ? o->runs : 1); i++) {
        recorded now;
        TRY(run_once(w, err));
        TRY(recorded_new(&now, w->e, err));
        recorded worse = now;
        if (i == 0 || now.sum_ns < best->sum_ns) worse = *best, *best = now;
        recorded_free(&worse);
    }
    return BRAID_OK;
}

static braid_status run_all(const cli_options *o, engine *e, uint32_t lanes, const braid_tensor *in, size_t n_in,
                            recorded *best, braid_error *err) {
    work w = {.e = e, .lanes = lanes, .in = in, .n_in = n_in};
    TRY(engine_outputs(e, o, &w.out, &w.n_out, err));
    braid_status status = measure(o, &w, best, err);
    tensors_free(w.out, w.n_out);
    return status;
}

static braid_status profile(const cli_options *o, engine *e, braid_error *err) {
    braid_tensor *in = NULL;
    size_t n_in = 0, count;
    uint32_t lanes = 1;
    recorded best = {0};
    if (o->lanes) TRY(args_lanes(o->lanes, &lanes, 1, &count, err));
    TRY(engine_load(e, o, err));
    TRY(inputs_load(e->model, o, 0, true, &in, &n_in, err));
    engine_plan plan = {.profile = true, .inputs = in, .n_inputs = n_in, .lanes_max = lanes};
    braid_status status = engine_open(e, o, err);
    if (status == BRAID_OK) status = lanes_spread(e->model, o, in, n_in, lanes, err);
    if (status == BRAID_OK) status = engine_session(e, o, &plan, err);
    if (status == BRAID_OK) status = run_all(o, e, lanes, in, n_in, &best, err);
    if (status == BRAID_OK) status = show(o, e, lanes, &best, err);
    recorded_free(&best);
    tensors_free(in, n_in);
    return status;
}

int cmd_profile(const cli_options *o) {
    engine e = {0};
    braid_error err = {0};
    int code = profile(o, &e, &err) == BRAID_OK ? CLI_OK : cli_fail(&err);
    engine_free(&e);
    return code;
}
