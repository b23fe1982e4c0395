/* graph: the model as text, or the plan as a picture. */
#include "graph.h"

#include <errno.h>
#include <stdlib.h>

/* ---- boxes */

static bool any_of(const char *s, const char *const *list) {
    for (; *list; list++)
        if (!strncmp(s, *list, strlen(*list))) return true;
    return false;
}

static graph_family family_of(const braid_plan_step *s) {
    static const char *const maps[] = {"map", "word", "generate", "range", "one_hot", NULL};
    static const char *const products[] = {"mm", "mv", "contract", NULL};
    static const char *const windows[] = {"window",    "resize",      "lrn",         "unpool",
                                          "roi_align", "grid_sample", "affine_grid", NULL};
    static const char *const rows[] = {"reduce", "softmax", "norm", "scan", "sort", "loss", NULL};
    if (!strcmp(s->kernel, "host")) return FAMILY_HOST;
    if (!strncmp(s->op, "Conv", 4)) return FAMILY_CONVOLUTION;
    if (any_of(s->kernel, products)) return FAMILY_PRODUCT;
    if (any_of(s->kernel, windows)) return FAMILY_WINDOW;
    if (any_of(s->kernel, rows)) return FAMILY_ROW;
    return any_of(s->kernel, maps) ? FAMILY_MAP : FAMILY_MOVE;
}

static bool same_box(const braid_plan_step *a, const braid_plan_step *b) {
    return a->phase == b->phase && a->dispatch == b->dispatch;
}

static braid_status make_boxes(graph_plan *p, const braid_plan_step *steps, size_t count, braid_error *err) {
    p->boxes = calloc(count + 1, sizeof *p->boxes);
    if (!p->boxes) return cli_error(err, BRAID_HOST_MEMORY, "out of memory");
    p->steps = count;
    for (size_t i = 0; i < count; i++) {
        graph_box *last = p->count ? &p->boxes[p->count - 1] : NULL;
        if (last && same_box(last->steps, &steps[i]))
            last->rows++;
        else
            p->boxes[p->count++] = (graph_box){&steps[i], 1, family_of(&steps[i]), (double)steps[i].cost_ns / 1e3};
    }
    return BRAID_OK;
}

/* The profile has an entry for each box, in order; with anything else (data-dependent shapes lane by lane, no
   timestamps) the estimates stay. */
static void take_times(graph_plan *p, const braid_step_time *times, size_t count) {
    uint64_t sum = 0;
    bool fits = count == p->count;
    for (size_t i = 0; fits && i < count; i++) {
        fits = !strcmp(times[i].kernel, p->boxes[i].steps->kernel) && !strcmp(times[i].node, p->boxes[i].steps->node);
        sum += times[i].time_ns;
    }
    if (!fits || !sum) return;
    p->measured = true;
    for (size_t i = 0; i < count; i++) p->boxes[i].us = (double)times[i].time_ns / 1e3;
}

/* ---- running: the times of the last of a few runs count */

enum { RUNS = 5 };

static braid_status run_once(engine *e, uint32_t lanes, const braid_tensor *in, size_t n_in, braid_tensor *out,
                             size_t n_out, braid_error *err) {
    braid_status status = braid_session_run(e->session, lanes, in, n_in, out, n_out, err);
    for (size_t i = 0; i < n_out; i++) {
        const char *name = out[i].name;
        tensor_drop(&out[i]);
        out[i] = (braid_tensor){.name = name};
    }
    return status;
}

static braid_status run_all(const cli_options *o, engine *e, uint32_t lanes, const braid_tensor *in, size_t n_in,
                            graph_plan *p, braid_error *err) {
    braid_tensor *out = NULL;
    size_t n_out = 0;
    const braid_plan_step *steps;
    const braid_step_time *times;
    TRY(engine_outputs(e, o, &out, &n_out, err));
    braid_status status = BRAID_OK;
    for (int i = 0; i < (o->estimate ? 0 : RUNS) && status == BRAID_OK; i++)
        status = run_once(e, lanes, in, n_in, out, n_out, err);
    tensors_free(out, n_out);
    TRY(status);
    TRY(braid_session_steps(e->session, &steps, &p->steps, err));
    TRY(make_boxes(p, steps, p->steps, err));
    size_t count = o->estimate ? 0 : braid_session_profile(e->session, &times);
    if (count) take_times(p, times, count);
    return BRAID_OK;
}

static braid_status make_plan(const cli_options *o, engine *e, graph_plan *p, braid_error *err) {
    braid_tensor *in = NULL;
    size_t n_in = 0, one;
    uint32_t lanes = 1;
    if (o->lanes) TRY(args_lanes(o->lanes, &lanes, 1, &one, err));
    TRY(engine_load(e, o, err));
    TRY(inputs_load(e->model, o, 0, true, &in, &n_in, err));
    engine_plan plan = {.profile = !o->estimate, .inputs = in, .n_inputs = n_in, .lanes_max = lanes};
    braid_status status = engine_open(e, o, err);
    if (status == BRAID_OK) status = lanes_spread(e->model, o, in, n_in, lanes, err);
    if (status == BRAID_OK) status = engine_session(e, o, &plan, err);
    if (status == BRAID_OK) status = run_all(o, e, lanes, in, n_in, p, err);
    tensors_free(in, n_in);
    *p = (graph_plan){o->model, e->info.name, lanes, p->boxes, p->count, p->steps, p->measured};
    return status;
}

/* ---- the command */

static braid_status write_text(const cli_options *o, const char *text, size_t length, braid_error *err) {
    FILE *to = o->output_dir ? fopen(o->output_dir, "wb") : stdout;
    if (!to) return cli_error(err, BRAID_IO, "%s: %s", o->output_dir, strerror(errno));
    bool wrong = fwrite(text, 1, length, to) != length;
    if (o->output_dir) wrong = fclose(to) != 0 || wrong;
    return wrong ? cli_error(err, BRAID_IO, "%s: cannot write", o->output_dir ? o->output_dir : "standard output")
                 : BRAID_OK;
}

static braid_status write_picture(const cli_options *o, const graph_plan *p, braid_error *err) {
    char *text = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&text, &length);
    if (!memory) return cli_error(err, BRAID_HOST_MEMORY, "out of memory");
    bool wrong = !graph_draw(p, memory) || ferror(memory);
    wrong = fclose(memory) != 0 || wrong;
    braid_status status = wrong ? cli_error(err, BRAID_HOST_MEMORY, "out of memory") : write_text(o, text, length, err);
    free(text);
    return status;
}

static braid_status write_graph(const cli_options *o, engine *e, braid_error *err) {
    char *text = NULL;
    TRY(engine_load(e, o, err));
    TRY(braid_model_describe(e->model, BRAID_REPORT_GRAPH, &text, err));
    braid_status status = write_text(o, text, strlen(text), err);
    braid_text_free(text);
    return status;
}

static braid_status graph(const cli_options *o, engine *e, braid_error *err) {
    if (!o->plan && (o->estimate || o->lanes))
        return cli_error(err, BRAID_ARGUMENT, "%s: it needs --plan", o->estimate ? "--estimate" : "--lanes");
    if (!o->plan) return write_graph(o, e, err);
    graph_plan p = {0};
    braid_status status = make_plan(o, e, &p, err);
    if (status == BRAID_OK) status = write_picture(o, &p, err);
    free(p.boxes);
    return status;
}

int cmd_graph(const cli_options *o) {
    engine e = {0};
    braid_error err = {0};
    int code = graph(o, &e, &err) == BRAID_OK ? CLI_OK : cli_fail(&err);
    engine_free(&e);
    return code;
}
