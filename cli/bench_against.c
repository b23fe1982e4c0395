/* bench --against: the items of a run of lanes through a model that has a batch axis. */
#include "bench.h"

#include <math.h>
#include <stdlib.h>

/* A larger difference than this between lanes and batch is worth a note. */
static const double NOTABLE = 0.02;

braid_status bench_batch_open(const cli_options *o, const engine *lanes, bench_batch *b, braid_error *err) {
    b->options = *o;
    b->options.model = o->against;
    b->options.dims = b->options.shapes = (cli_list){0}; /* the batch has shapes of its own */
    TRY(engine_load(&b->e, &b->options, err));
    b->e.device = lanes->device;
    size_t n = braid_model_input_count(b->e.model), wanted = braid_model_input_count(lanes->model);
    if (n != wanted)
        return cli_error(err, BRAID_ARGUMENT, "--against: %s has %zu input%s, the model %zu", o->against, n,
                         n == 1 ? "" : "s", wanted);
    n = braid_model_output_count(b->e.model);
    wanted = braid_model_output_count(lanes->model);
    if (n != wanted && !o->outputs)
        return cli_error(err, BRAID_ARGUMENT, "--against: %s has %zu output%s, the model %zu", o->against, n,
                         n == 1 ? "" : "s", wanted);
    return BRAID_OK;
}

void bench_batch_close(bench_batch *b) {
    b->e.device = NULL;
    engine_free(&b->e);
}

/* The dims behind the batch are those of one lane, or free. */
static bool rest_fits(const braid_port *port, int from, const int64_t *dims, int rank) {
    for (int i = 0; i < rank; i++)
        if (port->dims[from + i] >= 0 && port->dims[from + i] != dims[i]) return false;
    return true;
}

/* One lane's tensor as `lanes` of them in a batch; *fits: the batch is not fixed to another number. */
static braid_status batch_input(const braid_port *port, const braid_tensor *one, uint32_t lanes, braid_tensor *out,
                                bool *fits, braid_error *err) {
    bool axis = port->rank == one->rank + 1 && rest_fits(port, 1, one->dims, one->rank);
    bool first = one->rank > 0 && port->rank == one->rank && one->dims[0] == 1 &&
                 rest_fits(port, 1, one->dims + 1, one->rank - 1);
    *out = *one;
    out->name = port->name;
    if (port->type != one->type || !(axis || first)) {
        char wanted[128], dims[128];
        engine_port_text(port, wanted, sizeof wanted);
        dims_text(one->rank, one->dims, dims, sizeof dims);
        return cli_error(err, BRAID_SHAPE, "--against: input '%s', %s, is no batch of %s %s", port->name, wanted,
                         braid_type_name(one->type), dims);
    }
    if (axis) memmove(out->dims + 1, one->dims, (size_t)one->rank * sizeof *one->dims);
    out->rank = port->rank;
    out->dims[0] = lanes;
    *fits &= port->dims[0] < 0 || port->dims[0] == lanes;
    return BRAID_OK;
}

/* Inputs belong together by name, else by position. */
static const braid_tensor *lane_input(const bench_work *lanes, const char *name, size_t index) {
    for (size_t i = 0; i < lanes->n_in; i++)
        if (!strcmp(lanes->in[i].name, name)) return &lanes->in[i];
    return &lanes->in[index];
}

static braid_status batch_inputs(const braid_model *model, const bench_work *lanes, braid_tensor *in, bool *fits,
                                 braid_error *err) {
    *fits = true;
    for (size_t i = 0; i < lanes->n_in; i++) {
        const braid_port *port = braid_model_input(model, i);
        TRY(batch_input(port, lane_input(lanes, port->name, i), lanes->lanes, &in[i], fits, err));
    }
    return BRAID_OK;
}

/* ---- do the two agree? */

static int64_t element_count(const braid_tensor *t, size_t bytes) {
    int bits = value_bits(t->type);
    return bits ? (int64_t)(bytes * 8 / (size_t)bits) : 0;
}

/* The largest difference relative to the largest magnitude; infinite when the two are not alike, below 0: strings. */
static double difference(const braid_tensor *lane, uint32_t lanes, const braid_tensor *batch) {
    int64_t one, whole;
    double worst = 0, largest = 0;
    if (lane->type == BRAID_STRING) return -1;
    if (lane->type != batch->type || !tensor_count(lane->rank, lane->dims, &one) ||
        !tensor_count(batch->rank, batch->dims, &whole) || whole != one * lanes ||
        element_count(lane, lane->bytes) < whole)
        return INFINITY;
    for (int64_t i = 0; i < whole; i++) {
        double a = value_get(lane, i), b = value_get(batch, i);
        if (fabs(b) > largest) largest = fabs(b);
        if (a != b && !(isnan(a) && isnan(b))) worst = isnan(a - b) ? INFINITY : fmax(worst, fabs(a - b));
    }
    return largest > 0 && isfinite(largest) ? worst / largest : worst;
}

static double worst_difference(const bench_work *lanes, const bench_work *batch) {
    double worst = lanes->n_out == batch->n_out ? -1 : INFINITY;
    for (size_t i = 0; i < lanes->n_out && i < batch->n_out; i++)
        worst = fmax(worst, difference(&lanes->out[i], lanes->lanes, &batch->out[i]));
    return worst;
}

/* ---- measuring */

static braid_status measure_batch(bench_batch *b, const bench_work *lanes, bench_work *w, bench_row *row,
                                  braid_error *err) {
    engine_plan plan = {.inputs = w->in, .n_inputs = w->n_in};
    TRY(engine_session(&b->e, &b->options, &plan, err));
    w->session = b->e.session;
    TRY(engine_outputs(&b->e, &b->options, &w->out, &w->n_out, err));
    TRY(bench_measure(&b->options, w, lanes->lanes, &row->batch, err));
    row->differs = worst_difference(lanes, w);
    if (isinf(row->differs))
        cli_note(&b->options, "%u lanes: the outputs of %s are no batch of the model's", lanes->lanes,
                 b->options.model);
    else if (row->differs > NOTABLE)
        cli_note(&b->options, "%u lanes: the batch of %s gives other values (by %.3g of the largest)", lanes->lanes,
                 b->options.model, row->differs);
    return BRAID_OK;
}

braid_status bench_batch_row(bench_batch *b, const bench_work *lanes, bench_row *row, braid_error *err) {
    braid_tensor *in = calloc(lanes->n_in + 1, sizeof *in);
    if (!in) return cli_error(err, BRAID_HOST_MEMORY, "out of memory");
    bench_work w = {.in = in, .n_in = lanes->n_in, .lanes = 1};
    bool fits = false;
    braid_status status = batch_inputs(b->e.model, lanes, in, &fits, err);
    if (status == BRAID_OK && fits) {
        b->used = true;
        status = measure_batch(b, lanes, &w, row, err);
        if (status != BRAID_OK) status = cli_within(err, status, "%s", b->options.model);
    }
    bench_work_free(&w);
    braid_session_free(b->e.session);
    b->e.session = NULL;
    free(in);
    return status;
}
