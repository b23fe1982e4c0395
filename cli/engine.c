/* engine: from options to a device, a model and a session. */
#include "cli.h"

#include <stdlib.h>
#include <sys/stat.h>

/* Model files from this size on show a progress line. */
enum { LONG_LOAD = 32 << 20 };

braid_status engine_load(engine *e, const cli_options *o, braid_error *err) {
    struct stat st;
    if (stat(o->model, &st) == 0 && st.st_size >= LONG_LOAD)
        cli_progress(o, "loading %s (%lld MiB)", o->model, (long long)(st.st_size >> 20));
    braid_model_options options = {
        .size = sizeof options, .external_root = o->external_root, .log = cli_log, .log_user = (void *)(uintptr_t)o};
    uint64_t start = cli_clock_ns();
    TRY(braid_model_load(o->model, &options, &e->model, err));
    e->load_ns = cli_clock_ns() - start;
    return BRAID_OK;
}

braid_status engine_open(engine *e, const cli_options *o, braid_error *err) {
    braid_device_options options = {.size = sizeof options,
                                    .select = o->device,
                                    .cache_dir = o->cache_dir,
                                    .no_cache = o->no_cache,
                                    .validation = o->validation,
                                    .pipeline_figures = o->pipelines,
                                    .log = cli_log,
                                    .log_user = (void *)(uintptr_t)o};
    TRY(braid_device_open(&options, &e->device, err));
    braid_device_describe(e->device, &e->info);
    return BRAID_OK;
}

/* Session options whose arrays are ours. */
typedef struct plan_options {
    braid_session_options session;
    braid_dim_value *dims;
    braid_input_shape *shapes;
    const char **outputs;
    char *text; /* names, cut at '=' and ',' */
} plan_options;

static void plan_options_free(plan_options *p) {
    free(p->dims);
    free(p->shapes);
    free((void *)p->outputs);
    free(p->text);
}

/* Copies `source` behind *at and moves *at past its NUL. */
static char *keep_text(char **at, const char *source) {
    char *copy = *at;
    size_t length = strlen(source) + 1;
    memcpy(copy, source, length);
    *at += length;
    return copy;
}

static braid_status parse_dims(plan_options *p, const cli_list *list, char **at, braid_error *err) {
    for (size_t i = 0; i < list->count; i++) {
        char *name = keep_text(at, list->items[i]), *equals = strrchr(name, '='), *end = NULL;
        long long value = equals ? strtoll(equals + 1, &end, 10) : 0;
        if (!equals || end == equals + 1 || *end || equals == name || value < 0)
            return cli_error(err, BRAID_ARGUMENT, "--dim: '%s' is not SYMBOL=NUMBER", list->items[i]);
        *equals = 0;
        p->dims[i] = (braid_dim_value){name, value};
    }
    p->session.dims = p->dims;
    p->session.n_dims = list->count;
    return BRAID_OK;
}

static braid_status parse_shapes(plan_options *p, const cli_list *list, char **at, braid_error *err) {
    for (size_t i = 0; i < list->count; i++) {
        braid_input_shape *shape = &p->shapes[i];
        char *name = keep_text(at, list->items[i]), *equals = strrchr(name, '=');
        if (!equals || equals == name || !dims_parse(equals + 1, &shape->rank, shape->dims))
            return cli_error(err, BRAID_ARGUMENT, "--shape: '%s' is not NAME=DIMS", list->items[i]);
        *equals = 0;
        shape->name = name;
    }
    p->session.shapes = p->shapes;
    p->session.n_shapes = list->count;
    return BRAID_OK;
}

static void add_input_shapes(plan_options *p, const engine_plan *plan) {
    for (size_t i = 0; plan && i < plan->n_inputs; i++) {
        const braid_tensor *t = &plan->inputs[i];
        size_t at = p->session.n_shapes;
        for (size_t k = 0; k < p->session.n_shapes; k++)
            if (!strcmp(p->shapes[k].name, t->name)) at = k;
        if (at < p->session.n_shapes) continue;
        p->shapes[at] = (braid_input_shape){.name = t->name, .rank = t->rank};
        memcpy(p->shapes[at].dims, t->dims, sizeof t->dims);
        p->session.n_shapes++;
    }
    p->session.shapes = p->shapes;
}

static void parse_outputs(plan_options *p, char *text) {
    for (char *name = strtok(text, ","); name; name = strtok(NULL, ",")) p->outputs[p->session.n_outputs++] = name;
    p->session.outputs = p->outputs;
}

static braid_status plan_options_make(plan_options *p, const cli_options *o, const engine_plan *plan,
                                      braid_error *err) {
    size_t text = o->outputs ? strlen(o->outputs) + 1 : 1, names = text;
    for (size_t i = 0; i < o->dims.count; i++) text += strlen(o->dims.items[i]) + 1;
    for (size_t i = 0; i < o->shapes.count; i++) text += strlen(o->shapes.items[i]) + 1;
    p->text = malloc(text);
    p->dims = calloc(o->dims.count + 1, sizeof *p->dims);
    p->shapes = calloc(o->shapes.count + (plan ? plan->n_inputs : 0) + 1, sizeof *p->shapes);
    p->outputs = calloc(names, sizeof *p->outputs);
    if (!p->text || !p->dims || !p->shapes || !p->outputs) return cli_error(err, BRAID_HOST_MEMORY, "out of memory");
    char *at = p->text;
    TRY(parse_dims(p, &o->dims, &at, err));
    TRY(parse_shapes(p, &o->shapes, &at, err));
    add_input_shapes(p, plan);
    if (o->outputs) parse_outputs(p, keep_text(&at, o->outputs));
    return BRAID_OK;
}

braid_status engine_session(engine *e, const cli_options *o, const engine_plan *plan, braid_error *err) {
    plan_options p = {.session = {.size = sizeof p.session,
                                  .no_host = o->no_host,
                                  .no_fuse = o->no_fuse,
                                  .free_order = o->free_order,
                                  .no_reroll = o->no_reroll || (plan && plan->no_reroll),
                                  .schedule = plan ? plan->schedule : BRAID_SCHEDULE_DEFAULT,
                                  .profile = plan && plan->profile,
                                  .verify = o->verify,
                                  .lanes_max = plan ? plan->lanes_max : 0,
                                  .log = cli_log,
                                  .log_user = (void *)(uintptr_t)o}};
    uint64_t start = cli_clock_ns();
    braid_status status = plan_options_make(&p, o, plan, err);
    if (status == BRAID_OK) {
        if (e->load_ns > 200000000u) cli_progress(o, "planning %s", o->model);
        status = braid_session_create(&e->device, 1, e->model, &p.session, &e->session, err);
        cli_progress_end();
    }
    plan_options_free(&p);
    e->plan_ns = cli_clock_ns() - start;
    return status;
}

void engine_free(engine *e) {
    braid_session_free(e->session);
    braid_model_free(e->model);
    braid_device_close(e->device);
    free(e->names);
}

/* --outputs may name any value of the model; the session has checked the names. */
static braid_status chosen_outputs(engine *e, const char *list, braid_tensor *out, size_t *count, braid_error *err) {
    free(e->names);
    e->names = strdup(list);
    if (!e->names) return cli_error(err, BRAID_HOST_MEMORY, "out of memory");
    for (char *name = strtok(e->names, ","); name; name = strtok(NULL, ",")) out[(*count)++].name = name;
    return *count ? BRAID_OK : cli_error(err, BRAID_ARGUMENT, "--outputs: no name given");
}

braid_status engine_outputs(engine *e, const cli_options *o, braid_tensor **out, size_t *count, braid_error *err) {
    size_t all = braid_model_output_count(e->model), room = o->outputs ? strlen(o->outputs) + 1 : all + 1;
    *count = 0;
    *out = calloc(room, sizeof **out);
    if (!*out) return cli_error(err, BRAID_HOST_MEMORY, "out of memory");
    if (o->outputs) return chosen_outputs(e, o->outputs, *out, count, err);
    for (size_t i = 0; i < all; i++) (*out)[i].name = braid_model_output(e->model, i)->name;
    *count = all;
    return BRAID_OK;
}

void engine_port_text(const braid_port *port, char *out, size_t capacity) {
    size_t n = (size_t)snprintf(out, capacity, "%s ", braid_type_name(port->type));
    if (port->rank < 0) {
        snprintf(out + n, n < capacity ? capacity - n : 0, "[...]");
        return;
    }
    for (int i = 0; i < port->rank && n < capacity; i++) {
        const char *lead = i ? "," : "[";
        if (port->dims[i] >= 0)
            n += (size_t)snprintf(out + n, capacity - n, "%s%lld", lead, (long long)port->dims[i]);
        else
            n += (size_t)snprintf(out + n, capacity - n, "%s%s", lead, port->symbols[i] ? port->symbols[i] : "?");
    }
    if (n < capacity) snprintf(out + n, capacity - n, port->rank ? "]" : "[]");
}
