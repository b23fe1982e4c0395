/* check: can this model run here, and does it give what a data set expects? */
#include "cli.h"

#include <dirent.h>
#include <jansson.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { PATH_ROOM = 4096 };

/* ---- without data: the support report */

static braid_status report_support(const cli_options *o, engine *e, bool *unsupported, braid_error *err) {
    char *report = NULL;
    TRY(braid_model_describe(e->model, BRAID_REPORT_SUPPORT, &report, err));
    *unsupported = report && report[0];
    if (*unsupported) fputs(report, stdout);
    braid_text_free(report);
    if (*unsupported) return BRAID_OK;
    TRY(engine_open(e, o, err));
    TRY(engine_session(e, o, NULL, err));
    braid_plan_stats stats = {0};
    braid_session_stats(e->session, &stats);
    printf("%s: every node is supported", o->model);
    if (stats.host_steps) printf(", %llu on the CPU", (unsigned long long)stats.host_steps);
    putchar('\n');
    return BRAID_OK;
}

/* ---- with data: input_N.pb -> run -> output_N.pb */

typedef struct totals {
    size_t outputs, wrong;
    json_t *json; /* array, or NULL */
} totals;

static bool exists(const char *folder, const char *name) {
    char path[PATH_ROOM];
    struct stat st;
    int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    return n > 0 && (size_t)n < sizeof path && stat(path, &st) == 0;
}

static braid_status load_numbered(const char *folder, const char *stem, size_t index, braid_tensor *out,
                                  braid_error *err) {
    char path[PATH_ROOM];
    int n = snprintf(path, sizeof path, "%s/%s_%zu.pb", folder, stem, index);
    if (n < 0 || (size_t)n >= sizeof path) return cli_error(err, BRAID_IO, "path too long");
    return tensor_pb_load(path, out, err);
}

static size_t count_numbered(const char *folder, const char *stem, size_t most) {
    size_t n = 0;
    char name[64];
    for (; n < most; n++) {
        snprintf(name, sizeof name, "%s_%zu.pb", stem, n);
        if (!exists(folder, name)) break;
    }
    return n;
}

static void report_output(const cli_options *o, const braid_tensor *got, const comparison *c, totals *t) {
    char dims[128];
    dims_text(got->rank, got->dims, dims, sizeof dims);
    t->outputs++;
    t->wrong += !c->ok;
    char *shown = text_clean(got->name);
    const char *name = shown ? shown : "?";
    if (!o->json)
        printf("%-8s %s: %s %s, %s\n", c->ok ? "ok" : "MISMATCH", name, braid_type_name(got->type), dims, c->text);
    else
        json_array_append_new(t->json, json_pack("{ss sb ss sI sI sf}", "name", name, "ok", c->ok, "text", c->text,
                                                 "differing", (json_int_t)c->differing, "values",
                                                 (json_int_t)c->count, "max_error", c->worst_absolute));
    free(shown);
}

static braid_status compare_outputs(const cli_options *o, const char *folder, const braid_tensor *got, size_t count,
                                    totals *t, braid_error *err) {
    for (size_t i = 0; i < count; i++) {
        braid_tensor want = {0};
        comparison c;
        TRY(load_numbered(folder, "output", i, &want, err));
        tensor_compare(&got[i], &want, o->rtol, o->atol, &c);
        report_output(o, &got[i], &c, t);
        tensor_drop(&want);
    }
    return BRAID_OK;
}

static braid_status load_inputs(const engine *e, const char *folder, braid_tensor *in, size_t count, braid_error *err) {
    for (size_t i = 0; i < count; i++) {
        const braid_port *port = braid_model_input(e->model, i);
        braid_status status = load_numbered(folder, "input", i, &in[i], err);
        if (status == BRAID_FORMAT && port->type == BRAID_TYPE_NONE) /* what cannot be told from a broken tensor */
            return cli_error(err, BRAID_UNSUPPORTED, "unsupported: input '%s' is not a tensor", port->name);
        TRY(status);
        in[i].name = port->name;
    }
    return BRAID_OK;
}

static braid_status check_folder(const cli_options *o, engine *e, const char *folder, totals *t, braid_error *err) {
    size_t n_in = braid_model_input_count(e->model), n_out = braid_model_output_count(e->model);
    size_t expected = count_numbered(folder, "output", n_out);
    if (expected == 0) return cli_error(err, BRAID_IO, "%s: no output_0.pb", folder);
    braid_tensor *in = calloc(n_in + 1, sizeof *in), *out = calloc(n_out + 1, sizeof *out);
    braid_status status = in && out ? BRAID_OK : cli_error(err, BRAID_HOST_MEMORY, "out of memory");
    for (size_t i = 0; status == BRAID_OK && i < n_out; i++) out[i].name = braid_model_output(e->model, i)->name;
    if (status == BRAID_OK) status = load_inputs(e, folder, in, n_in, err);
    if (status == BRAID_OK) status = braid_session_run(e->session, 1, in, n_in, out, n_out, err);
    if (status == BRAID_OK) status = compare_outputs(o, folder, out, expected, t, err);
    tensors_free(in, in ? n_in : 0);
    tensors_free(out, out ? n_out : 0);
    return status;
}

static int by_number(const struct dirent **a, const struct dirent **b) {
    return versionsort(a, b);
}

static int is_data_set(const struct dirent *d) {
    return !strncmp(d->d_name, "test_data_set_", 14);
}

/* A folder with output_0.pb, or one that holds such folders named test_data_set_N. */
static braid_status check_data(const cli_options *o, engine *e, totals *t, braid_error *err) {
    if (exists(o->dataset, "output_0.pb")) return check_folder(o, e, o->dataset, t, err);
    struct dirent **entries = NULL;
    int n = scandir(o->dataset, &entries, is_data_set, by_number);
    if (n < 0) return cli_error(err, BRAID_IO, "%s: cannot read this folder", o->dataset);
    braid_status status = n > 0 ? BRAID_OK : cli_error(err, BRAID_IO, "%s: no output_0.pb in it", o->dataset);
    for (int i = 0; i < n; i++) {
        char path[PATH_ROOM];
        int length = snprintf(path, sizeof path, "%s/%s", o->dataset, entries[i]->d_name);
        if (status == BRAID_OK && length > 0 && (size_t)length < sizeof path) {
            if (!o->json) printf("%s\n", entries[i]->d_name);
            status = check_folder(o, e, path, t, err);
        }
        free(entries[i]);
    }
    free(entries);
    return status;
}

static braid_status check(const cli_options *o, engine *e, bool *unsupported, totals *t, braid_error *err) {
    TRY(engine_load(e, o, err));
    if (!o->dataset) return report_support(o, e, unsupported, err);
    TRY(engine_open(e, o, err));
    TRY(engine_session(e, o, NULL, err));
    return check_data(o, e, t, err);
}

int cmd_check(const cli_options *o) {
    engine e = {0};
    braid_error err = {0};
    bool unsupported = false;
    totals t = {.json = o->json ? json_array() : NULL};
    int code = check(o, &e, &unsupported, &t, &err) == BRAID_OK ? CLI_OK : cli_fail(&err);
    engine_free(&e);
    if (code == CLI_OK && o->json) {
        json_dumpf(t.json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
        putchar('\n');
    }
    json_decref(t.json);
    if (unsupported) {
        fflush(stdout);
        fprintf(stderr, "braid: %s: unsupported nodes, listed above\n", o->model);
        return CLI_UNSUPPORTED;
    }
    if (code == CLI_OK && t.wrong) {
        fflush(stdout);
        fprintf(stderr, "braid: %s: %zu of %zu outputs differ\n", o->model, t.wrong, t.outputs);
        return CLI_MISMATCH;
    }
    return code;
}
