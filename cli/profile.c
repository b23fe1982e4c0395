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
    printf("%zu steps, %u lane%s, %.3f ms in steps, %.3f ms on the device: upload %.3f ms, download %.3f ms\n", count,
           lanes, lanes > 1 ? "s" : "", (double)sum / 1e6, (double)run->device_ns / 1e6, (double)run->upload_ns / 1e6,
           (double)run->download_ns / 1e6);
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
        printf("%6.1f %%  %-22s %5zu steps %9.1f GFLOP/s %8.1f GB/s\n",
               sum ? 100.0 * (double)list[k].time_ns / (double)sum : 0, list[k].kernel, list[k].steps,
               (double)list[k].flops / ns, (double)list[k].bytes / ns);
    }
    free(list);
}

static json_t *step_json(const braid_step_time *s) {
    return json_pack("{ss ss ss sI sI sI sI si}", "node", s->node, "op", s->op, "kernel", s->kernel, "start_ns",
                     (json_int_t)s->start_ns, "time_ns", (json_int_t)s->time_ns, "flops", (json_int_t)s->flops, "bytes",
                     (json_int_t)s->bytes, "wave", (int)s->wave);
}

static void print_json(const braid_step_time *steps, size_t count) {
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) json_array_append_new(list, step_json(&steps[i]));
    json_dumpf(list, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(list);
}

/* Chrome's trace event format: complete events, microseconds; one track for the device, one for the CPU. */
static braid_status write_trace(const char *path, const braid_step_time *steps, size_t count, braid_error *err) {
    json_t *events = json_array();
    for (size_t i = 0; i < count; i++) {
        const braid_step_time *s = &steps[i];
        json_t *args = json_pack("{ss ss si sI sI}", "node", s->node, "kernel", s->kernel, "wave", (int)s->wave,
                                 "flops", (json_int_t)s->flops, "bytes", (json_int_t)s->bytes);
        json_t *event = json_pack("{ss ss ss sf sf si si so}", "name", s->op, "cat", s->kernel, "ph", "X", "ts",
                                  (double)s->start_ns / 1e3, "dur", (double)s->time_ns / 1e3, "pid", 1, "tid",
                                  strcmp(s->kernel, "host") ? 1 : 2, "args", args);
        json_array_append_new(events, event);
    }
    json_t *root = json_pack("{ss so}", "displayTimeUnit", "ns", "traceEvents", events);
    int failed = json_dump_file(root, path, JSON_COMPACT);
    json_decref(root);
    return failed ? cli_error(err, BRAID_IO, "%s: cannot write the trace", path) : BRAID_OK;
}

/* The steps of a run with its copies around them, where it has some. */
static size_t with_copies(const braid_step_time *steps, size_t count, const braid_run_times *run, braid_step_time *out) {
    const braid_step_time in = {.node = "", .op = "copy", .kernel = "upload", .time_ns = run->upload_ns};
    const braid_step_time back = {.node = "", .op = "copy", .kernel = "download", .time_ns = run->download_ns,
                                  .start_ns = run->device_ns - run->download_ns,
                                  .wave = count ? steps[count - 1].wave : 0};
    size_t n = 0;
    if (in.time_ns) out[n++] = in;
    memcpy(out + n, steps, count * sizeof *steps);
    n += count;
    if (back.time_ns) out[n++] = back;
    return n;
}

static braid_status show(const cli_options *o, const engine *e, uint32_t lanes, braid_error *err) {
    const braid_step_time *steps = NULL;
    braid_run_times run;
    size_t count = braid_session_profile(e->session, &steps);
    braid_session_times(e->session, &run);
    braid_step_time *all = calloc(count + 2, sizeof *all);
    if (!all) return cli_error(err, BRAID_HOST_MEMORY, "out of memory");
    size_t n = with_copies(steps, count, &run, all);
    if (o->json) {
        print_json(all, n);
    } else {
        print_table(steps, count, lanes, &run);
        print_shares(all, n);
    }
    braid_status status = o->trace ? write_trace(o->trace, all, n, err) : BRAID_OK;
    free(all);
    return status;
}

static braid_status run_all(const cli_options *o, engine *e, uint32_t lanes, const braid_tensor *in, size_t n_in,
                            braid_error *err) {
    braid_tensor *out = NULL;
    size_t n_out = 0;
    TRY(engine_outputs(e, o, &out, &n_out, err));
    braid_status status = BRAID_OK;
    int64_t runs = o->warmup + (o->runs ? o->runs : 1);
    for (int64_t i = 0; i < runs && status == BRAID_OK; i++) {
        status = braid_session_run(e->session, lanes, in, n_in, out, n_out, err);
        for (size_t k = 0; k < n_out; k++) {
            const char *name = out[k].name;
            tensor_drop(&out[k]);
            out[k] = (braid_tensor){.name = name};
        }
    }
    tensors_free(out, n_out);
    return status;
}

static braid_status profile(const cli_options *o, engine *e, braid_error *err) {
    braid_tensor *in = NULL;
    size_t n_in = 0, count;
    uint32_t lanes = 1;
    if (o->lanes) TRY(args_lanes(o->lanes, &lanes, 1, &count, err));
    TRY(engine_load(e, o, err));
    TRY(inputs_load(e->model, o, 0, true, &in, &n_in, err));
    engine_plan plan = {.profile = true, .inputs = in, .n_inputs = n_in, .lanes_max = lanes};
    braid_status status = engine_open(e, o, err);
    if (status == BRAID_OK) status = lanes_spread(e->model, o, in, n_in, lanes, err);
    if (status == BRAID_OK) status = engine_session(e, o, &plan, err);
    if (status == BRAID_OK) status = run_all(o, e, lanes, in, n_in, err);
    if (status == BRAID_OK) status = show(o, e, lanes, err);
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
