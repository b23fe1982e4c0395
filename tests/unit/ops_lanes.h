/*
 * ops_lanes.h: a graph given as text, run with many lanes against each lane alone (../lanes.h). Part of ops_gpu.h.
 *
 * With BRAID_TEST_LANES=SEED in the environment ops_compare does this instead of comparing with the reference, so that
 * every case of the operators' tests is a case of lanes. Data sets beside the given one come from the range that
 * ops_random_full drew it from; a tensor that was changed after it was drawn keeps its elements, in another order when
 * they are real.
 */
#ifndef OPS_LANES_H
#define OPS_LANES_H

#include "../lanes.h"
#include "api/session.h"

enum { OPS_DRAWN = 16, OPS_LANES_SETS = 6, OPS_LANES_LIMIT = 64 };

/* What the last tensors were drawn from. */
typedef struct ops_drawn_tensor {
    const void *data;
    double lo, hi;
    bool special;
    uint64_t sum;
} ops_drawn_tensor;
static ops_drawn_tensor ops_drawn[OPS_DRAWN];
static unsigned ops_n_drawn;

static unsigned long long ops_lane_runs; /* runs of data that a run alone takes */

static inline uint64_t ops_sum(const braid_tensor *t) {
    uint64_t sum = 1469598103934665603u;
    for (size_t i = 0; i < t->bytes; i++) sum = (sum ^ ((const uint8_t *)t->data)[i]) * 1099511628211u;
    return sum;
}

static inline void ops_note_drawn(const braid_tensor *t, double lo, double hi, bool special) {
    ops_drawn[ops_n_drawn++ % OPS_DRAWN] = (ops_drawn_tensor){t->data, lo, hi, special, ops_sum(t)};
}

static inline const ops_drawn_tensor *ops_find_drawn(const braid_tensor *t) {
    for (unsigned i = 0; i < OPS_DRAWN; i++)
        if (ops_drawn[i].data == t->data && ops_drawn[i].sum == ops_sum(t)) return &ops_drawn[i];
    return NULL;
}

static inline braid_tensor ops_random_full(const char *name, braid_type type, int rank, const int64_t *dims, double lo,
                                           double hi, bool special);

/* Another content for an input. The caller frees the data. */
static inline braid_tensor ops_lane_data(const braid_tensor *t, uint32_t by) {
    const ops_drawn_tensor *drawn = ops_find_drawn(t);
    if (drawn) return ops_random_full(t->name, t->type, t->rank, t->dims, drawn->lo, drawn->hi, drawn->special);
    braid_tensor copy = *t;
    copy.data = calloc(t->bytes + 16, 1);
    memcpy(copy.data, t->data, t->bytes);
    int64_t count = 1;
    for (int i = 0; i < t->rank; i++) count *= t->dims[i];
    for (int64_t i = 0; type_is_float(t->type) && i < count; i++)
        element_set_f64(t->type, copy.data, i, element_f64(t->type, t->data, (i + (int64_t)by) % count));
    return copy;
}

/* Which runs: every third case with poisoned memory, storages apart; every fourth unfused. */
static inline braid_session *ops_lanes_session(lane_case *c, braid_device *device, const braid_model *model,
                                               braid_error *err) {
    braid_session *s = NULL;
    braid_session_options options = {
        .size = sizeof options, .verify = true, .lanes_max = OPS_LANES_LIMIT, .no_fuse = lanes_draw(c, 4) == 0};
    if (braid_session_create(&device, 1, model, &options, &s, err) != BRAID_OK) return NULL;
    if (lanes_draw(c, 3)) return s;
    s->test = (session_test){
        .redzone = true, .shuffle = lanes_draw(c, 2), .poison = true, .poison_byte = 0xff, .staged = lanes_draw(c, 2),
        .staged_out = lanes_draw(c, 2)};
    stage_cache_clear(s, &s->stages);
    return s;
}

/* Plans are made as for a GPU of few cores, so that a software device runs a GPU's kernels too, folded where they can
   be; also BRAID_TEST_AS_GPU. */
static bool ops_lanes_as_gpu;
/* Called with every session before it is closed. */
static void (*ops_lanes_closing)(const braid_session *);

static inline void ops_lanes_pretend(lane_case *c) {
    static device_traits made_up;
    static const uint32_t cores[] = {1, 1, 2, 2, 16};
    made_up = *c->session->traits;
    made_up.software = false;
    made_up.fold_always = lanes_draw(c, 4) > 0;
    made_up.split_always = lanes_draw(c, 2) > 0;
    made_up.cores = cores[lanes_draw(c, COUNT_OF(cores))];
    c->session->traits = &made_up;
    c->nan_alike = true;
    stage_cache_clear(c->session, &c->session->stages);
}

/* L in {2, 7, 64} with what is shared drawn for each; a case that every lane alone is refused must be refused in lanes.
 */
static inline bool ops_lanes_check(lane_case *c) {
    static const uint32_t counts[] = {2, 7, 64};
    for (size_t i = 0; i < COUNT_OF(counts); i++)
        if (!lanes_share(c, i == 1 ? 0 : 50) || !lanes_run(c, counts[i])) return false;
    return true;
}

/* Runs the graph with lanes; frees nothing of in. Returns the number of host steps. */
static inline uint64_t ops_compare_lanes(braid_device *device, const char *source, const braid_model *model,
                                         size_t n_in, const braid_tensor *in, uint64_t seed) {
    lane_case *c = calloc(1, sizeof *c);
    braid_error err = {0};
    braid_plan_stats stats = {0};
    c->n_in = n_in;
    c->n_out = (size_t)model->m->g->n_outputs;
    c->n_sets = OPS_LANES_SETS;
    c->state = seed ^ ops_seed;
    if (n_in) memcpy(c->in[0], in, n_in * sizeof *in);
    for (int k = 1; k < c->n_sets; k++)
        for (size_t i = 0; i < n_in; i++) c->in[k][i] = ops_lane_data(&in[i], (uint32_t)k);
    c->session = ops_lanes_session(c, device, model, &err);
    if (c->session && (ops_lanes_as_gpu || getenv("BRAID_TEST_AS_GPU"))) ops_lanes_pretend(c);
    bool good = !c->session || ops_lanes_check(c); /* what is refused at once is for the test of single runs */
    braid_session_stats(c->session, &stats);
    if (!good) fail_msg("%s\n%s", c->what, source);
    ops_lane_runs += c->runs;
    if (c->session && ops_lanes_closing) ops_lanes_closing(c->session);
    lanes_end(c);
    braid_session_free(c->session);
    for (int k = 1; k < c->n_sets; k++)
        for (size_t i = 0; i < n_in; i++) free(c->in[k][i].data);
    free(c);
    return stats.host_steps;
}

#endif
