/* run: one run of a model; outputs as files, as a summary or as JSON. */
#include "cli.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

/* How many first values a summary shows. */
enum { SHOWN = 6, SHOWN_JSON = 16, PATH_MAX_ = 4096 };

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

/* DIR/NAME.npy, with '/' of the name as '_'. */
static braid_status output_path(const cli_options *o, const char *name, char *out, size_t capacity, braid_error *err) {
    int n = snprintf(out, capacity, "%s/%s.npy", o->output_dir, name);
    if (n < 0 || (size_t)n >= capacity) return cli_error(err, BRAID_IO, "output '%.100s': its name is too long", name);
    for (char *c = out + strlen(o->output_dir) + 1; *c; c++)
        if (*c == '/') *c = '_';
    return BRAID_OK;
}

static braid_status make_folder(const char *path, braid_error *err) {
    char part[PATH_MAX_];
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

static braid_status check_paths(const cli_options *o, const braid_tensor *outputs, size_t count, braid_error *err) {
    char a[PATH_MAX_], b[PATH_MAX_];
    for (size_t i = 0; i < count; i++) {
        TRY(output_path(o, outputs[i].name, a, sizeof a, err));
        for (size_t k = 0; k < i; k++) {
            TRY(output_path(o, outputs[k].name, b, sizeof b, err));
            if (!strcmp(a, b))
                return cli_error(err, BRAID_IO, "outputs '%s' and '%s' would be the same file %s", outputs[k].name,
                                 outputs[i].name, a);
        }
    }
    return BRAID_OK;
}

static braid_status save_outputs(const cli_options *o, const braid_tensor *outputs, size_t count, braid_error *err) {
    char path[PATH_MAX_];
    TRY(make_folder(o->output_dir, err));
    for (size_t i = 0; i < count; i++) {
        TRY(output_path(o, outputs[i].name, path, sizeof path, err));
        TRY(npy_save(path, &outputs[i], err));
    }
    return BRAID_OK;
}

/* ---- printing */

static void print_outputs(const cli_options *o, const labels *l, const braid_tensor *outputs, size_t count) {
    for (size_t i = 0; i < count; i++) {
        char dims[128], path[PATH_MAX_];
        dims_text(outputs[i].rank, outputs[i].dims, dims, sizeof dims);
        printf("%s: %s %s", outputs[i].name, braid_type_name(outputs[i].type), dims);
        if (o->output_dir && output_path(o, outputs[i].name, path, sizeof path, NULL) == BRAID_OK)
            printf(" -> %s", path);
        else if (!o->top)
            tensor_summary(&outputs[i], SHOWN, stdout);
        putchar('\n');
        if (o->top) print_top(o, l, &outputs[i]);
    }
}

static json_t *json_values(const braid_tensor *t, int64_t count) {
    json_t *list = json_array();
    for (int64_t i = 0; i < count && i < SHOWN_JSON; i++) {
        json_t *value;
        if (t->type == BRAID_STRING)
            value = json_string(((const char *const *)t->data)[i]);
        else if (t->type == BRAID_BOOL)
            value = json_boolean(value_get_int(t, i) != 0);
        else if (!type_is_float(t->type))
            value = json_integer(value_get_int(t, i));
        else
            value = isfinite(value_get(t, i)) ? json_real(value_get(t, i)) : NULL;
        json_array_append_new(list, value ? value : json_null());
    }
    return list;
}

static json_t *json_output(const cli_options *o, const labels *l, const braid_tensor *t) {
    int64_t count = 0;
    json_t *dims = json_array();
    for (int i = 0; i < t->rank; i++) json_array_append_new(dims, json_integer(t->dims[i]));
    json_t *out = json_pack("{ss ss so}", "name", t->name, "type", braid_type_name(t->type), "dims", dims);
    if (tensor_count(t->rank, t->dims, &count)) json_object_set_new(out, "first_values", json_values(t, count));
    char path[PATH_MAX_];
    if (o->output_dir && output_path(o, t->name, path, sizeof path, NULL) == BRAID_OK)
        json_object_set_new(out, "file", json_string(path));
    if (o->top) json_object_set_new(out, "top", json_top(o, l, t));
    return out;
}

static braid_status print_json(const cli_options *o, const labels *l, const engine *e, const braid_tensor *outputs,
                               size_t count, double wall_ms, braid_error *err) {
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) json_array_append_new(list, json_output(o, l, &outputs[i]));
    json_t *root =
        json_pack("{ss ss sf so}", "model", o->model, "device", e->info.name, "wall_ms", wall_ms, "outputs", list);
    char *text = root ? json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;
    if (text) puts(text);
    free(text);
    json_decref(root);
    return text ? BRAID_OK : cli_error(err, BRAID_INTERNAL, "cannot write JSON (a name that is not UTF-8?)");
}

/* ---- the command */

static braid_status compare_with_host(const cli_options *o, engine *e, const braid_tensor *inputs, size_t n_inputs,
                                      bool *mismatch, braid_error *err) {
    double worst = 0;
    char *report = NULL;
    TRY(braid_session_compare(e->session, inputs, n_inputs, &worst, &report, err));
    *mismatch = !(worst <= o->rtol);
    FILE *out = o->json ? stderr : stdout;
    if (report) fputs(report, out);
    fprintf(out, "compare: largest difference %.3g of a tensor's largest magnitude, %s %.3g\n", worst,
            *mismatch ? "above" : "within", o->rtol);
    braid_text_free(report);
    return BRAID_OK;
}

static braid_status run_once(const cli_options *o, engine *e, const labels *l, const braid_tensor *inputs,
                             size_t n_inputs, bool *mismatch, braid_error *err) {
    braid_tensor *outputs = NULL;
    size_t count = 0;
    braid_status status = engine_outputs(e, o, &outputs, &count, err);
    if (status == BRAID_OK && o->output_dir) status = check_paths(o, outputs, count, err);
    uint64_t start = cli_clock_ns();
    if (status == BRAID_OK) status = braid_session_run(e->session, 1, inputs, n_inputs, outputs, count, err);
    double wall_ms = (double)(cli_clock_ns() - start) / 1e6;
    if (status == BRAID_OK && o->output_dir) status = save_outputs(o, outputs, count, err);
    if (status == BRAID_OK) {
        if (o->json)
            status = print_json(o, l, e, outputs, count, wall_ms, err);
        else
            print_outputs(o, l, outputs, count);
        if (o->verbose)
            fprintf(stderr, "braid: load %.1f ms, plan %.1f ms, run %.1f ms on %s\n", (double)e->load_ns / 1e6,
                    (double)e->plan_ns / 1e6, wall_ms, e->info.name);
    }
    if (status == BRAID_OK && o->compare) status = compare_with_host(o, e, inputs, n_inputs, mismatch, err);
    tensors_free(outputs, count);
    return status;
}

static braid_status run(const cli_options *o, engine *e, labels *l, bool *mismatch, braid_error *err) {
    braid_tensor *inputs = NULL;
    size_t n_inputs = 0;
    if (o->labels) TRY(labels_load(o->labels, l, err));
    TRY(engine_load(e, o, err));
    TRY(inputs_load(e->model, o, false, &inputs, &n_inputs, err));
    engine_plan plan = {.inputs = inputs, .n_inputs = n_inputs};
    braid_status status = engine_open(e, o, err);
    if (status == BRAID_OK) status = engine_session(e, o, &plan, err);
    if (status == BRAID_OK) status = run_once(o, e, l, inputs, n_inputs, mismatch, err);
    tensors_free(inputs, n_inputs);
    return status;
}

int cmd_run(const cli_options *o) {
    engine e = {0};
    labels l = {0};
    braid_error err = {0};
    bool mismatch = false;
    int code = run(o, &e, &l, &mismatch, &err) == BRAID_OK ? CLI_OK : cli_fail(&err);
    if (code == CLI_OK && mismatch) {
        fputs("braid: the device and the CPU reference differ\n", stderr);
        code = CLI_MISMATCH;
    }
    labels_free(&l);
    engine_free(&e);
    return code;
}
