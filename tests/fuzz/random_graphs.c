/*
 * random_graphs.c: random graphs on the device against the CPU reference.
 *
 *     random_graphs [--seed S] [--count N] [--nodes N] [--device NAME] [--seconds N] [--lanes RUNS [--as-gpu PERCENT]
 *                   [--most-lanes N]]
 *
 * Each graph runs on the device as planned (twice: the same bits), with memory poisoned, storages apart and waves
 * reversed (the same bits, nothing written outside a tensor), without fusion, and, with named dims, under two sets of
 * shapes. Results are compared with the operators' CPU meaning, computed node by node. How far they may be apart is
 * measured: the reference runs again with every rounding disturbed. A graph that fails is reduced and printed.
 *
 * With --lanes each graph runs RUNS times with random lanes instead, against runs of each lane alone (random_lanes.c).
 */
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <unistd.h>

#include "random.h"

enum { NOISE_RUNS = 3, OUT_MAX = DRAFT_VALUES };

typedef struct run_result {
    braid_status status;
    char message[512];
    braid_tensor out[OUT_MAX];
} run_result;

static struct {
    const char *name;
    unsigned count;
} operators[256];

static struct {
    unsigned graphs, nodes, failed, loose, symbolic, second_ok, second_refused, host_steps, steps;
} total;

static braid_device *device;
static bool quiet;
static int lane_runs; /* for each graph; 0: no lanes, the device against the reference */
static lanes_total with_lanes = {.as_gpu = 20, .most_lanes = 70};

/* -------------------------------------------------------------------------------------------------- running */

static void free_result(run_result *r) {
    for (int i = 0; i < OUT_MAX; i++) braid_tensor_free(&r->out[i]);
    memset(r, 0, sizeof *r);
}

static size_t fill_inputs(const draft *d, tensor *const *replace, braid_tensor *in) {
    size_t n = 0;
    static char names[DRAFT_LINES][16];
    for (int i = 0; i < d->n_lines; i++) {
        if (d->lines[i].kind != LINE_INPUT) continue;
        const tensor *t = replace ? replace[n] : d->values[d->lines[i].out[0]].t;
        snprintf(names[n], sizeof names[n], "v%d", d->lines[i].out[0]);
        in[n] = (braid_tensor){
            .name = names[n], .type = t->type.type, .rank = t->type.rank, .data = t->data, .bytes = t->bytes};
        memcpy(in[n].dims, t->type.dims, sizeof in[n].dims);
        n++;
    }
    return n;
}

static void run_session(const draft *d, braid_session *s, tensor *const *inputs, run_result *r) {
    braid_tensor in[DRAFT_LINES];
    braid_error err = {0};
    size_t n = fill_inputs(d, inputs, in);
    free_result(r);
    r->status = braid_session_run(s, 1, in, n, r->out, (size_t)d->n_outputs, &err);
    snprintf(r->message, sizeof r->message, "%s", err.message);
}

static braid_session *open_session(const braid_model *m, bool no_fuse, run_result *r) {
    braid_session_options options = {.size = sizeof options, .verify = true, .no_fuse = no_fuse};
    braid_session *s = NULL;
    braid_error err = {0};
    r->status = braid_session_create(&device, 1, m, &options, &s, &err);
    snprintf(r->message, sizeof r->message, "%s", err.message);
    return s;
}

/* ------------------------------------------------------------------------------------------------ comparing */

bool finding_set(finding *f, int output, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(f->text, sizeof f->text, format, list);
    va_end(list);
    f->output = output;
    return true;
}
#define found finding_set

static bool same_bits(const draft *d, const run_result *a, const run_result *b, const char *what, finding *f) {
    if (a->status != b->status) return found(f, -1, "%s: %s", what, b->message);
    for (int i = 0; a->status == BRAID_OK && i < d->n_outputs; i++) {
        const uint8_t *x = a->out[i].data, *y = b->out[i].data;
        if (a->out[i].bytes != b->out[i].bytes)
            return found(f, i, "%s: output v%d has another size", what, d->outputs[i]);
        for (size_t k = 0; k < a->out[i].bytes; k++)
            if (x[k] != y[k]) return found(f, i, "%s: output v%d differs at byte %zu", what, d->outputs[i], k);
    }
    return false;
}

typedef struct oracle {
    tensor **values[NOISE_RUNS + 1];
    const graph *g;
    bool loose; /* a small float overflowed, or a float32 is near it: rounding and the order of sums decide */
} oracle;

static bool overflows(const graph *g, tensor **values) {
    for (int32_t v = 0; v < g->n_values; v++) {
        tensor *t = values[v];
        int64_t count = 0;
        if (!t || g->values[v]->kind != VALUE_NODE || !type_is_float(t->type.type)) continue;
        bool small = t->type.type == BRAID_FLOAT16 || t->type.type == BRAID_BFLOAT16;
        tensor_type_count(&t->type, &count);
        for (int64_t i = 0; i < count; i++) {
            double x = fabs(element_f64(t->type.type, t->data, i));
            if (small ? isinf(x) : isfinite(x) && x > 1e30) return true;
        }
    }
    return false;
}

static braid_status ask_oracle(draft *d, const graph *g, tensor *const *inputs, arena *memory, oracle *o,
                               braid_error *err) {
    *o = (oracle){.g = g};
    TRY(reference_run(d, g, inputs, 0, memory, &o->values[0], err));
    for (int k = 1; k <= NOISE_RUNS; k++)
        if (reference_run(d, g, inputs, k, memory, &o->values[k], NULL) != BRAID_OK) o->loose = true;
    o->loose = o->loose || overflows(g, o->values[0]);
    return BRAID_OK;
}

static double noisy(const oracle *o, int k, int32_t v, int64_t i) {
    const tensor *t = o->values[k][v];
    return element_f64(t->type.type, t->data, i);
}

static double spread_of(const oracle *o, int32_t v, int64_t i, double want) {
    double most = 0;
    for (int k = 1; k <= NOISE_RUNS; k++) {
        double x = noisy(o, k, v, i);
        if (isfinite(x) && isfinite(want)) most = fmax(most, fabs(x - want));
        else if (!(isnan(x) && isnan(want)) && x != want) most = INFINITY;
    }
    return most;
}

static bool close_enough(const braid_tensor *got, double x, double want, double spread, double mean) {
    if ((isnan(x) && isnan(want)) || x == want) return true;
    double eps = got->type == BRAID_FLOAT16 ? 0x1p-9 : got->type == BRAID_BFLOAT16 ? 0x1p-6 : 0x1p-19;
    return fabs(x - want) <=
               24 * fmax(spread, mean) + eps * fabs(want) + (got->type == BRAID_FLOAT16 ? 0x1p-22 : 1e-36) ||
           isinf(spread);
}

static bool compare_output(const draft *d, const oracle *o, int i, const braid_tensor *got, const char *what,
                           finding *f) {
    int32_t v = o->g->outputs[i];
    const tensor *want = o->values[0][v];
    bool exact = d->values[d->outputs[i]].exact || !type_is_float(want->type.type);
    if (got->type != want->type.type || got->rank != want->type.rank ||
        memcmp(got->dims, want->type.dims, (size_t)got->rank * sizeof got->dims[0]) != 0)
        return found(f, i, "%s: output v%d has another type or shape", what, d->outputs[i]);
    for (int k = 1; k <= NOISE_RUNS; k++)
        if (!o->values[k] || !o->values[k][v] || !tensor_type_equal(&o->values[k][v]->type, &want->type)) return false;
    int64_t count = 0;
    double mean = 0;
    tensor_type_count(&want->type, &count);
    for (int64_t n = 0; !exact && n < count; n++) {
        double s = spread_of(o, v, n, element_f64(want->type.type, want->data, n));
        if (isfinite(s)) mean += s / (double)count;
    }
    for (int64_t n = 0; n < count; n++) {
        double x = element_f64(got->type, got->data, n), y = element_f64(want->type.type, want->data, n);
        bool ok = !exact ? close_enough(got, x, y, spread_of(o, v, n, y), mean)
                  : type_is_float(want->type.type)
                      ? x == y || (isnan(x) && isnan(y))
                      : element_i64(got->type, got->data, n) == element_i64(got->type, want->data, n);
        if (!ok)
            return found(f, i, "%s: output v%d, element %lld: %.9g, reference %.9g (spread %.3g, mean %.3g%s)", what,
                         d->outputs[i], (long long)n, x, y, exact ? 0 : spread_of(o, v, n, y), mean,
                         exact ? ", exact" : "");
    }
    return false;
}

static bool compare(const draft *d, const oracle *o, const run_result *r, const char *what, finding *f) {
    if (r->status != BRAID_OK) return found(f, -1, "%s: %s", what, r->message);
    for (int i = 0; i < d->n_outputs; i++)
        if ((!o->loose || d->values[d->outputs[i]].exact) && compare_output(d, o, i, &r->out[i], what, f)) return true;
    return false;
}

/* --------------------------------------------------------------------------------------------------- trying */

static void twist(braid_session *s, bool poison, uint8_t byte) {
    s->test = (session_test){.redzone = poison, .shuffle = poison, .poison = poison, .poison_byte = byte};
    stage_cache_clear(s, &s->stages);
}

static bool try_variants(const draft *d, braid_session *s, const oracle *o, finding *f) {
    static run_result first, again;
    run_session(d, s, NULL, &first);
    bool bad = compare(d, o, &first, "device", f);
    if (bad) return true;
    run_session(d, s, NULL, &again);
    if (same_bits(d, &first, &again, "second run", f)) return true;
    twist(s, true, 0xff);
    run_session(d, s, NULL, &again);
    if (same_bits(d, &first, &again, "poisoned with ff, apart, reversed", f)) return true;
    s->test.poison_byte = 0x3c;
    run_session(d, s, NULL, &again);
    return same_bits(d, &first, &again, "poisoned with 3c, apart, reversed", f);
}

/* The second set of shapes: every dim of one size becomes another size. */
static bool is_named(const draft *d, int64_t dim) { return dim > 0 && (d->seed >> (dim % 16) & 1); }

static int64_t some_named_dim(draft *d) {
    int64_t dim = 0;
    for (int i = 0; i < d->n_lines; i++) {
        const tensor_type *t = &d->values[d->lines[i].out[0]].t->type;
        for (int k = 0; k < t->rank && d->lines[i].kind == LINE_INPUT; k++)
            if (is_named(d, t->dims[k]) && (!dim || chance(d, 40))) dim = t->dims[k];
    }
    return dim;
}

static void second_inputs(draft *d, tensor **inputs) {
    int64_t from = some_named_dim(d), to = 1 + draw(d, 9);
    size_t n = 0;
    for (int i = 0; i < d->n_lines; i++) {
        if (d->lines[i].kind != LINE_INPUT) continue;
        tensor_type t = d->values[d->lines[i].out[0]].t->type;
        for (int k = 0; k < t.rank; k++)
            if (from && t.dims[k] == from) t.dims[k] = to;
        bool index = !type_is_float(t.type);
        inputs[n++] = random_tensor(d, t.type, t.rank, t.dims, index ? 0 : -4, index ? 2 : 5);
    }
}

/* A gather without elements never looks at its indices on the device. */
static bool all_empty(const draft *d, const run_result *r) {
    for (int i = 0; i < d->n_outputs; i++)
        if (r->out[i].bytes) return false;
    return true;
}

static bool try_symbolic(draft *d, const oracle *o, finding *f) {
    static run_result r;
    braid_error err = {0};
    braid_model *m = draft_model(d, true, &err);
    if (!m) return found(f, -1, "with named dims: %s", err.message);
    braid_session *s = open_session(m, false, &r);
    bool bad = !s && found(f, -1, "with named dims: %s", r.message);
    tensor *inputs[DRAFT_LINES];
    uint64_t state = d->state;
    d->state = d->seed + 99;
    second_inputs(d, inputs);
    d->state = state;
    for (int round = 0; s && round < 3 && !bad; round++) {
        if (round != 1) {
            run_session(d, s, NULL, &r);
            bad = compare(d, o, &r, "with named dims", f);
            continue;
        }
        arena *memory = arena_new();
        oracle second;
        tensor *by_number[DRAFT_LINES];
        for (int32_t i = 0; i < m->m->g->n_inputs; i++) by_number[i] = inputs[i];
        braid_status wanted = ask_oracle(d, m->m->g, by_number, memory, &second, &err);
        run_session(d, s, inputs, &r);
        if (wanted == BRAID_OK) bad = compare(d, &second, &r, "second shapes", f), total.second_ok++;
        else if (r.status == BRAID_OK && !(wanted == BRAID_INDEX && all_empty(d, &r)))
            bad = found(f, -1, "second shapes: the reference says %s", err.message);
        else if (r.status == BRAID_INTERNAL) bad = found(f, -1, "second shapes: %s", r.message);
        else total.second_refused++;
        arena_free(memory);
    }
    braid_session_free(s);
    braid_model_free(m);
    return bad;
}

/* The device against the reference. */
static bool try_reference(draft *d, finding *f) {
    static run_result r;
    braid_error err = {0};
    if (!d->n_outputs) return false;
    braid_model *m = draft_model(d, false, &err);
    if (!m) return found(f, -1, "whole graph: %s", err.message);
    arena *memory = arena_new();
    tensor *inputs[DRAFT_LINES];
    int n = 0;
    for (int i = 0; i < d->n_lines; i++)
        if (d->lines[i].kind == LINE_INPUT) inputs[n++] = d->values[d->lines[i].out[0]].t;
    oracle o;
    bool bad = false;
    if (ask_oracle(d, m->m->g, inputs, memory, &o, &err) != BRAID_OK) {
        arena_free(memory);
        braid_model_free(m);
        return found(f, -1, "reference: %s", err.message);
    }
    total.loose += o.loose;
    for (int no_fuse = 0; no_fuse < 2 && !bad; no_fuse++) {
        braid_session *s = open_session(m, no_fuse, &r);
        if (!s) bad = found(f, -1, "session%s: %s", no_fuse ? " without fusion" : "", r.message);
        else if (!no_fuse) bad = try_variants(d, s, &o, f);
        else {
            run_session(d, s, NULL, &r);
            bad = compare(d, &o, &r, "without fusion", f);
        }
        braid_plan_stats stats;
        braid_session_stats(s, &stats);
        total.host_steps += (unsigned)stats.host_steps;
        total.steps += (unsigned)stats.steps;
        braid_session_free(s);
    }
    if (!bad && d->symbolic) bad = try_symbolic(d, &o, f), total.symbolic++;
    arena_free(memory);
    braid_model_free(m);
    return bad;
}

/* True: something is wrong with this draft. */
static bool try_draft(draft *d, finding *f) {
    return lane_runs ? lanes_try(d, device, lane_runs, &with_lanes, f) : try_reference(d, f);
}

/* ------------------------------------------------------------------------------------------------- reducing */

static void drop_dead(draft *d) {
    for (bool again = true; again;) {
        bool used[DRAFT_VALUES] = {0};
        again = false;
        for (int i = 0; i < d->n_outputs; i++) used[d->outputs[i]] = true;
        for (int i = 0; i < d->n_lines; i++)
            for (int k = 0; k < d->lines[i].n_in; k++)
                if (d->lines[i].in[k] >= 0) used[d->lines[i].in[k]] = true;
        for (int i = 0; i < d->n_lines; i++) {
            bool live = false;
            for (int k = 0; k < d->lines[i].n_out; k++) live = live || used[d->lines[i].out[k]];
            if (live) continue;
            memmove(&d->lines[i], &d->lines[i + 1], (size_t)(d->n_lines - i - 1) * sizeof d->lines[0]);
            d->n_lines--;
            again = true;
            break;
        }
    }
}

static bool still_fails(draft *d, const draft *candidate, finding *f) {
    draft trial = *candidate;
    finding now;
    drop_dead(&trial);
    if (!trial.n_outputs || !try_draft(&trial, &now)) return false;
    *d = trial;
    *f = now;
    return true;
}

static draft trial;

/* Line i's outputs become inputs that hold what the reference computed. */
static bool cut_line(draft *d, int i, finding *f) {
    trial = *d;
    line old = trial.lines[i];
    if (d->n_lines + old.n_out - 1 > DRAFT_LINES) return false;
    memmove(&trial.lines[i + old.n_out], &trial.lines[i + 1], (size_t)(trial.n_lines - i - 1) * sizeof old);
    trial.n_lines += old.n_out - 1;
    int n_outputs = 0;
    for (int k = 0; k < old.n_out; k++)
        trial.lines[i + k] = (line){.kind = LINE_INPUT, .n_out = 1, .out = {old.out[k]}};
    for (int k = 0; k < trial.n_outputs; k++) {
        bool gone = false;
        for (int j = 0; j < old.n_out; j++) gone = gone || trial.outputs[k] == old.out[j];
        if (!gone) trial.outputs[n_outputs++] = trial.outputs[k];
    }
    trial.n_outputs = n_outputs;
    return still_fails(d, &trial, f);
}

static void reduce(draft *d, finding *f) {
    if (d->symbolic) {
        trial = *d;
        trial.symbolic = false;
        still_fails(d, &trial, f);
    }
    for (bool again = true; again;) {
        again = false;
        for (int i = d->n_outputs - 1; i >= 0 && d->n_outputs > 1; i--) {
            if (i >= d->n_outputs) continue;
            trial = *d;
            memmove(&trial.outputs[i], &trial.outputs[i + 1], (size_t)(d->n_outputs - i - 1) * sizeof(int));
            trial.n_outputs--;
            again = still_fails(d, &trial, f) || again;
        }
        for (int i = 0; i < d->n_lines; i++)
            if (d->lines[i].kind == LINE_NODE) again = cut_line(d, i, f) || again;
    }
}

static void report(draft *d, finding *f) {
    text shown = {0};
    printf("\n=== seed %llu: %s\n", (unsigned long long)d->seed, f->text);
    fflush(stdout);
    reduce(d, f);
    draft_print(d, &shown);
    printf("--- reduced: %s%s\n%s", f->text, d->symbolic ? " (with named dims)" : "", shown.data);
    text_free(&shown);
    for (int i = 0; i < d->n_lines; i++) {
        const tensor *t = d->values[d->lines[i].out[0]].t;
        int64_t count = 0;
        if (d->lines[i].kind != LINE_INPUT || !tensor_type_count(&t->type, &count)) continue;
        printf("  v%d =", d->lines[i].out[0]);
        for (int64_t k = 0; k < count && k < 24; k++) printf(" %.9g", element_f64(t->type.type, t->data, k));
        printf("\n");
    }
    fflush(stdout);
}

static volatile sig_atomic_t running; /* graphs begun */

static void on_crash(int signal_number) {
    char report_line[] = "\n=== crash in graph number 0000000000\n";
    size_t at = sizeof report_line - 3;
    for (unsigned n = (unsigned)running - 1; n; n /= 10) report_line[at--] = (char)('0' + n % 10);
    if (write(STDERR_FILENO, report_line, sizeof report_line - 1) < 0) _exit(2);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void count_operators(const draft *d) {
    for (int i = 0; i < d->n_lines; i++) {
        if (d->lines[i].kind != LINE_NODE) continue;
        const op *o = op_find("", d->lines[i].type);
        for (size_t k = 0; o && k < COUNT_OF(operators); k++) {
            if (operators[k].name && strcmp(operators[k].name, o->name) != 0) continue;
            operators[k].name = o->name;
            operators[k].count++;
            break;
        }
    }
}

/* Once a minute, for long runs. */
static void print_lanes(bool now) {
    static uint64_t last;
    if (!lane_runs || (!now && clock_ns() - last < 60000000000u)) return;
    last = clock_ns();
    printf("%u graphs (%u re-rolled), %llu runs with lanes (%llu lanes; %llu runs with failing lanes, %llu refused for "
           "unlike "
           "shapes), %u graphs failed\n",
           total.graphs, with_lanes.rolled, with_lanes.runs, with_lanes.lanes, with_lanes.failing, with_lanes.unlike,
           total.failed);
    fflush(stdout);
}

static void print_counts(void) {
    unsigned kinds = 0;
    print_lanes(true);
    while (kinds < COUNT_OF(operators) && operators[kinds].name) kinds++;
    if (!lane_runs)
        printf("\n%u graphs, %u nodes of %u operators, %u device steps, %u host steps, %u failed; %u with named dims "
               "(second shapes: "
               "%u computed, %u refused); %u overflow\n",
               total.graphs, total.nodes, kinds, total.steps, total.host_steps, total.failed, total.symbolic,
               total.second_ok, total.second_refused, total.loose);
    for (unsigned k = 0; !quiet && k < kinds; k++)
        printf("%s %u%s", operators[k].name, operators[k].count, k % 8 == 7 ? "\n" : "  ");
    printf("\n");
}

int main(int argc, char **argv) {
    unsigned long long seed = 1, count = 60, nodes = 20, seconds = 0;
    braid_device_options options = {.size = sizeof options};
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seed") == 0) seed = strtoull(argv[i + 1], NULL, 0);
        else if (strcmp(argv[i], "--count") == 0) count = strtoull(argv[i + 1], NULL, 0);
        else if (strcmp(argv[i], "--nodes") == 0) nodes = strtoull(argv[i + 1], NULL, 0);
        else if (strcmp(argv[i], "--seconds") == 0) seconds = strtoull(argv[i + 1], NULL, 0);
        else if (strcmp(argv[i], "--lanes") == 0) lane_runs = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--as-gpu") == 0) with_lanes.as_gpu = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--most-lanes") == 0) with_lanes.most_lanes = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--device") == 0) options.select = argv[i + 1];
    }
    braid_error err = {0};
    if (braid_device_open(&options, &device, &err) != BRAID_OK) {
        fprintf(stderr, "random_graphs: %s\n", err.message);
        return err.status == BRAID_NO_DEVICE ? 77 : 1;
    }
    static const int signals[] = {SIGSEGV, SIGFPE, SIGABRT, SIGBUS, SIGILL};
    for (size_t i = 0; i < COUNT_OF(signals); i++) signal(signals[i], on_crash);
    uint64_t start = clock_ns();
    if (seconds) with_lanes.deadline_ns = start + seconds * 1000000000u;
    draft *d = calloc(1, sizeof *d);
    for (unsigned long long i = 0; i < count && (!seconds || clock_ns() - start < seconds * 1000000000u); i++) {
        finding f = {.output = -1};
        running++;
        d->memory = arena_new();
        draft_make(d, seed + i, (int)nodes);
        total.graphs++;
        total.nodes += (unsigned)d->n_nodes;
        count_operators(d);
        if (try_draft(d, &f)) {
            total.failed++;
            report(d, &f);
        }
        arena_free(d->memory);
        print_lanes(false);
    }
    print_counts();
    free(d);
    braid_device_close(device);
    return total.failed != 0;
}
