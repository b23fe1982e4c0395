/* run: one run of a model, of one or several lanes; outputs as files, as a summary or as JSON. */
#include "cli.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

/* How many first values a summary shows. */
enum { SHOWN = 6, SHOWN_JSON = 16, PATH_ROOM = 4096 };

/* One run of the model: what went in and what came out. */
typedef struct one_run {
    lane_inputs given;
    braid_tensor *out;
    size_t n_out;
    double wall_ms;
} one_run;

typedef struct labels {
    char *text, **lines;
    size_t count;
} labels;

static braid_status labels_load(const char *path, labels *out, braid_error *err) {
    size_t size, lines = 1;
    TRY(file_load(path, (void **)&out->text, &size, err));
    for (size_t i = 0; i < size; i++) lines += out->text[i] == '\n';
    out->lines = calloc(lines, sizeof *out->lines);
    if (!out->lines) return cli_error(err, BRAID_HOST_MEMORY, "out of memory");
    for (char *at = out->text; *at;) {
        out->lines[out->count++] = at;
        at += strcspn(at, "\r\n");
        if (*at == '\r') *at++ = 0;
        if (*at == '\n') *at++ = 0;
    }
    return BRAID_OK;
}

static void labels_free(labels *l) {
    free(l->text);
    free(l->lines);
}

/* ---- the largest values */

typedef struct ranked {
    int64_t index;
    double value;
} ranked;

static int by_value(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->value != y->value) return isnan(x->value) || x->value < y->value ? 1 : -1;
    return (x->index > y->index) - (x->index < y->index);
}

static void softmax(ranked *r, int64_t count) {
    double largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < count; i++) largest = fmax(largest, r[i].value);
    for (int64_t i = 0; i < count; i++) sum += r[i].value = exp(r[i].value - largest);
    for (int64_t i = 0; i < count; i++) r[i].value /= sum;
}

/* The values of t, largest first; NULL when there are none or no memory. */
static ranked *rank_values(const cli_options *o, const braid_tensor *t, int64_t *count) {
    if (t->type == BRAID_STRING || !tensor_count(t->rank, t->dims, count) || *count == 0) return NULL;
    ranked *all = malloc((size_t)*count * sizeof *all);
    for (int64_t i = 0; all && i < *count; i++) all[i] = (ranked){i, value_get(t, i)};
    if (!all) return NULL;
    if (o->probabilities) softmax(all, *count);
    qsort(all, (size_t)*count, sizeof *all, by_value);
    return all;
}

static const char *label_of(const labels *l, int64_t index) {
    return (uint64_t)index < l->count ? l->lines[index] : NULL;
}

static void print_top(const cli_options *o, const labels *l, const braid_tensor *t) {
    int64_t count = 0;
    ranked *all = rank_values(o, t, &count);
    for (int64_t i = 0; all && i < count && i < o->top; i++) {
        const char *label = label_of(l, all[i].index);
        printf("  %6lld  %-24s %.6g\n", (long long)all[i].index, label ? label : "", all[i].value);
    }
    free(all);
}

static json_t *json_top(const cli_options *o, const labels *l, const braid_tensor *t) {
    int64_t count = 0;
    ranked *all = rank_values(o, t, &count);
    json_t *list = json_array();
    for (int64_t i = 0; all && i < count && i < o->top; i++) {
        const char *label = label_of(l, all[i].index);
        json_t *entry = json_pack("{sI}", "index", (json_int_t)all[i].index);
        if (label) json_object_set_new(entry, "label", json_string(label));
        json_object_set_new(entry, "value", isfinite(all[i].value) ? json_real(all[i].value) : json_null());
        json_array_append_new(list, entry);
    }
    free(all);
    return list;
}

/* ---- files */

/* The control character at s, of UTF-8 also those above 0x7f: its bytes, else 0. */
static int control_at(const char *s) {
    unsigned char c = (unsigned char)s[0], next = (unsigned char)s[1];
    return c < 0x20 || c == 0x7f ? 1 : c == 0xc2 && next >= 0x80 && next < 0xa0 ? 2 : 0;
}

/* A model's name on a terminal: one line, no escape sequences. */
static void print_name(const char *name) {
    char *shown = text_clean(name);
    fputs(shown ? shown : "?", stdout);
    free(shown);
}

/* FOLDER/NAME.npy, with '/' and control characters of the name as '_'. */
static braid_status output_path(const char *folder, const char *name, char *out, size_t capacity, braid_error *err) {
    int n = snprintf(out, capacity, "%s/%s.npy", folder, name);
    if (n < 0 || (size_t)n >= capacity) return cli_error(err, BRAID_IO, "output '%.100s': its name is too long", name);
    for (char *c = out + strlen(folder) + 1; *c; c++) {
        int control = control_at(c);
        if (control > 1) *c++ = '_';
        if (*c == '/' || control) *c = '_';
    }
    return BRAID_OK;
}

static braid_status make_folder(const char *path, braid_error *err) {
    char part[PATH_ROOM];
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof part) return cli_error(err, BRAID_ARGUMENT, "--output-dir: bad path");
    memcpy(part, path, length + 1);
    for (size_t i = 1; i <= length; i++) {
        if (part[i] != '/' && part[i] != 0) continue;
        char kept = part[i];
        part[i] = 0;
        if (mkdir(part, 0777) != 0 && errno != EEXIST) return cli_error(err, BRAID_IO, "%s: %s", part, strerror(errno));
        part[i] = kept;
    }
    return BRAID_OK;
}

typedef struct target {
    char *path;
    const char *name;
} target;

static int by_path(const void *x, const void *y) {
    return strcmp(((const target *)x)->path, ((const target *)y)->path);
}

static braid_status find_clash(target *list, const char *folder, const braid_tensor *outputs, size_t count,
                               braid_error *err) {
    char path[PATH_ROOM];
    for (size_t i = 0; i < count; i++) {
        TRY(output_path(folder, outputs[i].name, path, sizeof path, err));
        list[i] = (target){strdup(path), outputs[i].name};
        if (!list[i].path) return cli_error(err, BRAID_HOST_MEMORY, "out of memory");
    }
    qsort(list, count, sizeof *list, by_path);
    for (size_t i = 1; i < count; i++)
        if (!strcmp(list[i - 1].path, list[i].path))
            return cli_error(err, BRAID_IO, "outputs '%s' and '%s' would be the same file %s", list[i - 1].name,
                             list[i].name, list[i].path);
    return BRAID_OK;
}

static braid_status check_paths(const char *folder, const braid_tensor *outputs, size_t count, braid_error *err) {
    target *list = calloc(count + 1, sizeof *list);
    if (!list) return cli_error(err, BRAID_HOST_MEMORY, "out of memory");
    braid_status status = find_clash(list, folder, outputs, count, err);
    for (size_t i = 0; i < count; i++) free(list[i].path);
    free(list);
    return status;
}

static braid_status save_split(const char *folder, const one_run *r, braid_error *err) {
    char path[PATH_ROOM], lane_folder[PATH_ROOM];
    for (size_t lane = 0; lane < r->given.lanes; lane++) {
        if (r->given.failed[lane]) continue;
        int n = snprintf(lane_folder, sizeof lane_folder, "%s/%zu", folder, lane);
        if (n < 0 || (size_t)n >= sizeof lane_folder) return cli_error(err, BRAID_ARGUMENT, "--output-dir: bad path");
        TRY(make_folder(lane_folder, err));
        for (size_t i = 0; i < r->n_out; i++) {
            braid_tensor one = lanes_view(&r->out[i], lane);
            TRY(output_path(lane_folder, one.name, path, sizeof path, err));
            TRY(npy_save(path, &one, err));
        }
    }
    return BRAID_OK;
}

static braid_status save_outputs(const char *folder, const braid_tensor *outputs, size_t count, braid_error *err) {
    char path[PATH_ROOM];
    TRY(make_folder(folder, err));
    for (size_t i = 0; i < count; i++) {
        TRY(output_path(folder, outputs[i].name, path, sizeof path, err));
        TRY(npy_save(path, &outputs[i], err));
    }
    return BRAID_OK;
}

/* ---- printing */

/* What a lane was made of, where every --input is a lane of the same input; else NULL. */
static const char *lane_title(const cli_options *o, const one_run *r, size_t lane) {
    return r->given.lanes > 1 && o->inputs.count == r->given.lanes ? o->inputs.items[lane] : NULL;
}

static void print_tops(const cli_options *o, const one_run *r, const labels *l, const braid_tensor *t) {
    for (size_t lane = 0; r->given.several && lane < r->given.lanes; lane++) {
        const char *title = lane_title(o, r, lane);
        braid_tensor one = lanes_view(t, lane);
        printf("lane %zu%s%s%s\n", lane, title ? ": " : "", title ? title : "",
               r->given.failed[lane] ? ": failed" : "");
        if (!r->given.failed[lane]) print_top(o, l, &one);
    }
    if (!r->given.several) print_top(o, l, t);
}

/* For each index of an output's axis of lanes; NULL: there is no such axis. */
static const bool *failed_by_lane(const one_run *r) {
    return r->given.several ? r->given.failed : NULL;
}

/* A file of all lanes is written only when all of them are right. */
static const char *output_folder(const cli_options *o, const one_run *r) {
    return r->given.n_failed && !o->split ? NULL : o->output_dir;
}

static void print_outputs(const cli_options *o, const one_run *r, const labels *l) {
    const char *folder = output_folder(o, r);
    for (size_t i = 0; i < r->n_out; i++) {
        const braid_tensor *t = &r->out[i];
        char dims[128], path[PATH_ROOM];
        dims_text(t->rank, t->dims, dims, sizeof dims);
        print_name(t->name);
        printf(": %s %s", braid_type_name(t->type), dims);
        if (folder && output_path(folder, t->name, path, sizeof path, NULL) == BRAID_OK)
            printf(o->split ? " -> %s/LANE%s" : " -> %s%s", o->split ? folder : path,
                   o->split ? path + strlen(folder) : "");
        else if (!o->top)
            tensor_summary(t, failed_by_lane(r), SHOWN, stdout);
        putchar('\n');
        if (o->top) print_tops(o, r, l, t);
    }
}

/* Null: not a number, infinite, or of a lane that failed. */
static json_t *json_values(const braid_tensor *t, const bool *failed, int64_t count) {
    json_t *list = json_array();
    for (int64_t i = 0; i < count && i < SHOWN_JSON; i++) {
        json_t *value;
        if (tensor_in_failed(t, failed, count, i))
            value = NULL;
        else if (t->type == BRAID_STRING)
            value = json_string(((const char *const *)t->data)[i]);
        else if (t->type == BRAID_BOOL)
            value = json_boolean(value_get_int(t, i) != 0);
        else if (!value_is_float(t->type))
            value = json_integer(value_get_int(t, i));
        else
            value = isfinite(value_get(t, i)) ? json_real(value_get(t, i)) : NULL;
        json_array_append_new(list, value ? value : json_null());
    }
    return list;
}

/* With lanes, a list for each. */
static json_t *json_tops(const cli_options *o, const one_run *r, const labels *l, const braid_tensor *t) {
    if (!r->given.several) return json_top(o, l, t);
    json_t *list = json_array();
    for (size_t lane = 0; lane < r->given.lanes; lane++) {
        braid_tensor one = lanes_view(t, lane);
        json_array_append_new(list, r->given.failed[lane] ? json_null() : json_top(o, l, &one));
    }
    return list;
}

static json_t *json_output(const cli_options *o, const one_run *r, const labels *l, const braid_tensor *t) {
    int64_t count = 0;
    json_t *dims = json_array();
    for (int i = 0; i < t->rank; i++) json_array_append_new(dims, json_integer(t->dims[i]));
    json_t *out = json_pack("{ss ss so}", "name", t->name, "type", braid_type_name(t->type), "dims", dims);
    if (tensor_count(t->rank, t->dims, &count))
        json_object_set_new(out, "first_values", json_values(t, failed_by_lane(r), count));
    char path[PATH_ROOM];
    if (output_folder(o, r) && !o->split && output_path(o->output_dir, t->name, path, sizeof path, NULL) == BRAID_OK)
        json_object_set_new(out, "file", json_string(path));
    if (o->top) json_object_set_new(out, "top", json_tops(o, r, l, t));
    return out;
}

static json_t *json_run(const cli_options *o, const one_run *r, const labels *l) {
    json_t *list = json_array();
    for (size_t i = 0; i < r->n_out; i++) json_array_append_new(list, json_output(o, r, l, &r->out[i]));
    json_t *run = json_pack("{sf so}", "wall_ms", r->wall_ms, "outputs", list), *failed = json_array();
    for (size_t i = 0; i < r->given.lanes; i++)
        if (r->given.failed[i]) json_array_append_new(failed, json_integer((json_int_t)i));
    if (r->given.n_failed) json_object_set(run, "failed_lanes", failed);
    json_decref(failed);
    return run;
}

static braid_status print_json(const cli_options *o, const engine *e, size_t lanes, json_t *runs, braid_error *err) {
    json_t *root =
        json_pack("{ss ss sI sO}", "model", o->model, "device", e->info.name, "lanes", (json_int_t)lanes, "runs", runs);
    char *text = root ? json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;
    if (text) puts(text);
    free(text);
    json_decref(root);
    return text ? BRAID_OK : cli_error(err, BRAID_INTERNAL, "cannot write JSON (a name that is not UTF-8?)");
}

/* ---- the command */

typedef struct result {
    json_t *json; /* one object per run; NULL without --json */
    bool mismatch; /* by --compare: something differs, */
    bool nothing;  /* or there was nothing to compare */
} result;

static braid_status compare_with_host(const cli_options *o, engine *e, const braid_tensor *in, size_t n_in, result *out,
                                      braid_error *err) {
    double worst = 0;
    char *report = NULL;
    TRY(braid_session_compare(e->session, in, n_in, &worst, &report, err));
    bool mismatch = worst > o->rtol;
    out->mismatch |= mismatch;
    out->nothing |= isnan(worst);
    FILE *f = o->json ? stderr : stdout;
    if (report) fputs(report, f);
    if (isnan(worst))
        fputs("compare: nothing was compared\n", f);
    else
        fprintf(f, "compare: largest difference %.3g of a tensor's largest magnitude, %s %.3g\n", worst,
                mismatch ? "above" : "within", o->rtol);
    braid_text_free(report);
    return BRAID_OK;
}

static braid_status compare_lanes(const cli_options *o, engine *e, const one_run *r, result *out, braid_error *err) {
    braid_tensor *in = calloc(r->given.n_in + 1, sizeof *in);
    braid_status status = in ? BRAID_OK : cli_error(err, BRAID_HOST_MEMORY, "out of memory");
    for (size_t lane = 0; lane < r->given.lanes && status == BRAID_OK; lane++) {
        if (r->given.failed[lane]) continue;
        lanes_slice(&r->given, lane, in);
        if (r->given.several) fprintf(o->json ? stderr : stdout, "lane %zu\n", lane);
        status = compare_with_host(o, e, in, r->given.n_in, out, err);
    }
    free(in);
    return status;
}

static braid_status save(const cli_options *o, const one_run *r, braid_error *err) {
    if (!output_folder(o, r)) return BRAID_OK;
    return o->split ? save_split(o->output_dir, r, err) : save_outputs(o->output_dir, r->out, r->n_out, err);
}

static braid_status failed_lanes(const cli_options *o, const one_run *r, braid_error *err) {
    const char *hint = o->output_dir && !o->split ? "; nothing is written (--split-outputs writes the others)" : "";
    char all[64] = "";
    if (r->given.lanes > lanes_in_round(&r->given))
        snprintf(all, sizeof all, "; in all %zu of %zu lanes failed", r->given.n_failed, r->given.lanes);
    return cli_error(err, r->given.why.status, "%.300s%s%s", r->given.why.message, all, hint);
}

static braid_status run_loaded(const cli_options *o, engine *e, const labels *l, one_run *r, result *out,
                               braid_error *err) {
    engine_plan plan = {.inputs = r->given.in, .n_inputs = r->given.n_in, .lanes_max = lanes_in_round(&r->given)};
    TRY(engine_open(e, o, err));
    TRY(engine_session(e, o, &plan, err));
    TRY(engine_outputs(e, o, &r->out, &r->n_out, err));
    if (o->output_dir) TRY(check_paths(o->output_dir, r->out, r->n_out, err));
    uint64_t start = cli_clock_ns();
    TRY(lanes_run(e, o, &r->given, r->out, r->n_out, err));
    r->wall_ms = (double)(cli_clock_ns() - start) / 1e6;
    TRY(save(o, r, err));
    if (out->json)
        json_array_append_new(out->json, json_run(o, r, l));
    else
        print_outputs(o, r, l);
    if (o->verbose)
        fprintf(stderr, "braid: load %.1f ms, plan %.1f ms, run %.1f ms on %s\n", (double)e->load_ns / 1e6,
                (double)e->plan_ns / 1e6, r->wall_ms, e->info.name);
    bool told = cli_terminal() || r->wall_ms * 1e6 >= (double)CLI_LONG_NS;
    if (r->given.several && (o->verbose || (told && !o->quiet)))
        fprintf(stderr, "braid: %zu lanes, %.1f items/s\n", r->given.lanes, 1e3 * (double)r->given.lanes / r->wall_ms);
    if (o->compare) TRY(compare_lanes(o, e, r, out, err));
    TRY(out->json ? print_json(o, e, r->given.lanes, out->json, err) : BRAID_OK);
    return r->given.n_failed ? failed_lanes(o, r, err) : BRAID_OK;
}

static braid_status run(const cli_options *o, engine *e, labels *l, result *out, braid_error *err) {
    one_run r = {0};
    if (o->split && !o->output_dir) return cli_error(err, BRAID_ARGUMENT, "--split-outputs: it needs --output-dir");
    if (o->labels) TRY(labels_load(o->labels, l, err));
    TRY(engine_load(e, o, err));
    braid_status status = lanes_load(e->model, o, &r.given, err);
    if (status == BRAID_OK) status = run_loaded(o, e, l, &r, out, err);
    lanes_free(&r.given);
    tensors_free(r.out, r.n_out);
    return status;
}

int cmd_run(const cli_options *o) {
    engine e = {0};
    labels l = {0};
    braid_error err = {0};
    result out = {.json = o->json ? json_array() : NULL};
    cli_options mine = *o;
    mine.inputs = (cli_list){0};
    braid_status status = inputs_expand(&o->inputs, &mine.inputs, &err);
    if (status == BRAID_OK) status = run(&mine, &e, &l, &out, &err);
    int code = status == BRAID_OK ? CLI_OK : cli_fail(&err);
    if (code == CLI_OK && (out.mismatch || out.nothing)) {
        fflush(stdout);
        fputs(out.mismatch ? "braid: the device and the CPU reference differ\n"
                           : "braid: there was nothing to compare\n",
              stderr);
        code = CLI_MISMATCH;
    }
    json_decref(out.json);
    labels_free(&l);
    inputs_release(&mine.inputs);
    engine_free(&e);
    return code;
}
