/*
 * lanes.c: whole models with lanes: every lane bit for bit what it gives alone (../lanes.h).
 *
 *     model_lanes MODEL ...     (settings.h)
 *
 * For each number of lanes: all inputs per lane, then a random choice of shared ones; all of it again with poisoned
 * memory, storages apart and waves in reversed order. 1 and 2 lanes run in any case; a larger number that would not fit
 * into the seconds that are left is passed over and named. Exit: 0 right, 1 a wrong bit or an error, 3 the model is
 * unsupported, 77 no device.
 */
#include <math.h>

#include "../lanes.h"
#include "api/session.h"
#include "settings.h"

enum { SETS = 4 };

/* -------------------------------------------------------------------------------------------------- inputs */

static bool draw_input(const settings *s, lane_case *c, const braid_port *p, braid_tensor *t) {
    int64_t count = 1;
    *t = (braid_tensor){.name = p->name, .type = p->type, .rank = p->rank};
    for (int k = 0; k < p->rank; k++) count *= t->dims[k] = dim_of(s, p, k);
    if (!type_span(p->type, count, &t->bytes) || !(t->data = calloc(t->bytes + 16, 1)))
        return lanes_wrong(c, "input '%s' is too large", p->name);
    for (int64_t i = 0; i < count; i++) {
        double u = (double)lanes_draw(c, 1u << 24) / (1u << 24);
        if (p->type == BRAID_BOOL)
            element_set_i64(p->type, t->data, i, u < 0.5);
        else if (type_is_float(p->type))
            element_set_f64(p->type, t->data, i, s->low + (s->high - s->low) * u);
        else
            element_set_i64(p->type, t->data, i, (int64_t)((double)(s->ints + 1) * u));
    }
    return true;
}

static bool draw_inputs(const settings *s, lane_case *c, const braid_model *m) {
    c->n_in = braid_model_input_count(m);
    c->n_out = braid_model_output_count(m);
    if (c->n_in > LANES_IN || c->n_out > LANES_OUT)
        return lanes_wrong(c, "too many inputs or outputs for this program");
    for (int k = 0; k < c->n_sets; k++)
        for (size_t i = 0; i < c->n_in; i++)
            if (!draw_input(s, c, braid_model_input(m, i), &c->in[k][i])) return false;
    return true;
}

/* ----------------------------------------------------------------------------------------------------- run */

typedef struct budget {
    uint64_t start, limit_ns, alone_ns; /* alone: one run of one lane */
} budget;

static uint64_t least_of_two_runs(lane_case *c) {
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 2; i++) {
        uint64_t start = clock_ns();
        c->n_usable = 0;
        if (!lanes_alone(c, 0)) return 0;
        for (size_t k = 0; k < c->n_out; k++) braid_tensor_free(&c->alone[0][k]);
        if (clock_ns() - start < best) best = clock_ns() - start;
    }
    return best;
}

static bool affordable(const budget *b, uint32_t lanes, int runs) {
    double left = (double)b->limit_ns - (double)(clock_ns() - b->start);
    return (double)b->alone_ns * (double)(lanes + SETS) * runs < left;
}

static bool run_counts(const settings *s, lane_case *c, const budget *b, const char *word) {
    printf("%s", word);
    for (int i = 0; i < s->n_lanes; i++) {
        bool mixed = c->n_in > 1;
        bool first = c->lanes < 3; /* 1 and 2 lanes in any case */
        if (!first && !affordable(b, s->lanes[i], mixed ? 2 : 1)) {
            printf(" (not %u: too slow)", s->lanes[i]);
            continue;
        }
        if (!lanes_share(c, 0) || !c->n_usable || !lanes_run(c, s->lanes[i])) return false;
        if (mixed && (!lanes_share(c, 50) || !lanes_run(c, s->lanes[i]))) return false;
        printf(" %u", s->lanes[i]);
        fflush(stdout);
    }
    return true;
}

static bool run_all(const settings *s, lane_case *c) {
    budget b = {clock_ns(), (uint64_t)(s->seconds * 1e9), 0};
    if (!(b.alone_ns = least_of_two_runs(c))) return false;
    if (!c->n_usable) return lanes_wrong(c, "no input that was drawn is accepted");
    if (!run_counts(s, c, &b, " lanes")) return false;
    c->session->test =
        (session_test){.redzone = true, .shuffle = true, .poison = true, .poison_byte = 0xff, .staged = true};
    stage_cache_clear(c->session, &c->session->stages);
    return run_counts(s, c, &b, "; poisoned");
}

static int run_model(const settings *s, braid_device *device, const braid_model *m) {
    lane_case *c = calloc(1, sizeof *c);
    braid_error err = {0};
    braid_session_options o = {.size = sizeof o,
                               .shapes = s->shapes,
                               .n_shapes = s->n_shapes,
                               .dims = s->dims,
                               .n_dims = s->n_dims,
                               .lanes_max = LANES_MOST,
                               .verify = true};
    c->n_sets = SETS;
    c->state = 11;
    braid_status status = braid_session_create(&device, 1, m, &o, &c->session, &err);
    bool good = status == BRAID_OK && draw_inputs(s, c, m) && run_all(s, c);
    printf(" %s\n", good ? "" : status == BRAID_OK ? c->what : err.message);
    for (int k = 0; k < SETS; k++)
        for (size_t i = 0; i < c->n_in; i++) free(c->in[k][i].data);
    lanes_end(c);
    braid_session_free(c->session);
    free(c);
    return good ? 0 : status == BRAID_UNSUPPORTED ? 3 : 1;
}

/* mnist_8/model.onnx */
static const char *last_two_parts(const char *path) {
    const char *at = path + strlen(path);
    for (int parts = 0; at > path && (parts += at[-1] == '/') < 2; at--) {
    }
    return at;
}

int main(int argc, char **argv) {
    settings s;
    braid_error err = {0};
    if (!read_settings(&s, argc, argv)) {
        fprintf(stderr, "model_lanes: see the head of lanes.c\n");
        return 2;
    }
    braid_device *device = NULL;
    braid_model *m = NULL;
    braid_device_options options = {.size = sizeof options, .select = s.device};
    if (braid_device_open(&options, &device, &err) != BRAID_OK ||
        braid_model_load(s.model, NULL, &m, &err) != BRAID_OK) {
        fprintf(stderr, "model_lanes: %s\n", err.message);
        braid_device_close(device);
        return err.status == BRAID_NO_DEVICE ? 77 : 1;
    }
    printf("%s:", last_two_parts(s.model));
    fflush(stdout);
    int code = run_model(&s, device, m);
    braid_model_free(m);
    braid_device_close(device);
    return code;
}
