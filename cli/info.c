/* info: what a model is and what the engine makes of it. */
#include "cli.h"

static braid_status print_report(const engine *e, braid_model_report kind, braid_error *err) {
    char *text = NULL;
    TRY(braid_model_describe(e->model, kind, &text, err));
    if (text) fputs(text, stdout);
    braid_text_free(text);
    return BRAID_OK;
}

static void share(const cli_options *o, braid_tensor *in, size_t n_in) {
    for (size_t k = 0; k < o->shared.count; k++)
        for (size_t i = 0; i < n_in; i++)
            if (!strcmp(in[i].name, o->shared.items[k])) in[i].flags |= BRAID_TENSOR_SHARED;
}

static braid_status plan_lanes(engine *e, const cli_options *o, uint32_t lanes, braid_tensor *in, size_t n_in,
                               braid_error *err) {
    if (!o->lanes) return BRAID_OK;
    share(o, in, n_in);
    return braid_session_plan(e->session, lanes, in, n_in, err);
}

/* Like bench, the plan takes free dimensions as 1 and says so. */
static braid_status plan_session(engine *e, const cli_options *o, braid_error *err) {
    braid_tensor *in = NULL;
    size_t n_in = 0, count = 0;
    uint32_t lanes = 1;
    braid_error why = {0};
    if (o->lanes) TRY(args_lanes(o->lanes, &lanes, 1, &count, err));
    if (o->shared.count && !o->lanes) return cli_error(err, BRAID_ARGUMENT, "--shared: it needs --lanes");
    TRY(lanes_check_names(e->model, &o->shared, "--shared", err));
    bool shaped = inputs_load(e->model, o, 0, true, &in, &n_in, &why) == BRAID_OK;
    engine_plan plan = {.inputs = in, .n_inputs = shaped ? n_in : 0, .lanes_max = lanes};
    braid_status status =
        !shaped && o->lanes ? cli_error(err, why.status, "--lanes: %s", why.message) : engine_session(e, o, &plan, err);
    if (status == BRAID_OK) status = plan_lanes(e, o, lanes, in, n_in, err);
    tensors_free(in, n_in);
    return status;
}

static braid_status print_plan(engine *e, const cli_options *o, braid_error *err) {
    char *text = NULL;
    TRY(engine_open(e, o, err));
    TRY(plan_session(e, o, err));
    TRY(braid_session_describe(e->session, &text, err));
    if (text) fputs(text, stdout);
    braid_text_free(text);
    return BRAID_OK;
}

static braid_status print_memory(const engine *e, braid_error *err) {
    const braid_memory_choice *choices;
    size_t count = 0;
    TRY(braid_session_memory(e->session, &choices, &count, err));
    printf("memory and estimated time of the largest piece of device work:\n%12s %12s %8s %10s %8s %12s\n", "total MiB",
           "arena MiB", "waves", "dispatches", "in place", "time ms");
    for (size_t i = 0; i < count; i++) {
        const braid_memory_choice *c = &choices[i];
        printf("%12.2f %12.2f %8llu %10llu %8llu %12.3f\n", (double)c->bytes / (1 << 20),
               (double)c->arena_bytes / (1 << 20), (unsigned long long)c->waves, (unsigned long long)c->dispatches,
               (unsigned long long)c->in_place, (double)c->time_ns / 1e6);
    }
    return BRAID_OK;
}

/* The model's report always; the plan when nothing is unsupported and a device is there. */
static braid_status info(const cli_options *o, engine *e, braid_error *err) {
    TRY(engine_load(e, o, err));
    TRY(print_report(e, o->graph ? BRAID_REPORT_GRAPH : BRAID_REPORT_INFO, err));
    if (o->graph) return BRAID_OK;
    TRY(print_plan(e, o, err));
    return o->memory ? print_memory(e, err) : BRAID_OK;
}

int cmd_info(const cli_options *o) {
    engine e = {0};
    braid_error err = {0};
    int code = info(o, &e, &err) == BRAID_OK ? CLI_OK : cli_fail(&err);
    engine_free(&e);
    return code;
}
