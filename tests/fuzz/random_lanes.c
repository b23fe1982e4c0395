/*
 * random_lanes.c: a random graph run with many lanes: every lane's outputs are those of a run alone, bit for bit.
 *
 * An input has a few data sets. A run draws which inputs all lanes share, how many lanes there are, which data set each
 * lane has, how far apart lanes lie, and whose buffers the outputs are. The runs alone are made once for each choice of
 * shared inputs. A data set that a run alone refuses (an index out of range) is left out; where data sets give outputs of
 * unlike shapes a run of both must be refused.
 */
#include "random.h"

enum { SETS = 5, LANES_MAX = 70, CHOICES = 3, GAP_MAX = 40, OUT_MAX = DRAFT_VALUES };

typedef struct lane_input {
    const tensor *set[SETS];
    char name[16];
    bool shared;
    int shared_set;
} lane_input;

typedef struct lane_trial {
    draft *d;
    braid_session *session;
    lane_input in[DRAFT_LINES];
    size_t n_in, n_out;
    braid_tensor alone[SETS][OUT_MAX];
    int usable[SETS], n_usable;
    finding *f;
} lane_trial;

/* Another content for an input: elements drawn from those it has, so that most indices stay indices; real numbers
   shrunk; few integers (a size, an axis, a shape) sometimes others. */
static tensor *another_set(draft *d, const tensor *t) {
    tensor *copy = NULL;
    int64_t count = 0;
    braid_type type = t->type.type;
    if (tensor_new(d->memory, type, t->type.rank, t->type.dims, &copy, NULL) != BRAID_OK) return NULL;
    tensor_type_count(&t->type, &count);
    for (int64_t i = 0; i < count; i++) {
        int64_t from = (int64_t)draw(d, (uint32_t)count);
        int64_t other = count <= 4 && type != BRAID_BOOL && chance(d, 20) ? (int64_t)draw(d, 3) - 1 : 0;
        if (!type_is_float(type)) element_set_i64(type, copy->data, i, element_i64(type, t->data, from) + other);
        else element_set_f64(type, copy->data, i, element_f64(type, t->data, from) * (chance(d, 50) ? 1 : 0.25 + 0.75 * uniform(d)));
    }
    return copy;
}

static void find_inputs(lane_trial *t) {
    for (int i = 0; i < t->d->n_lines; i++) {
        if (t->d->lines[i].kind != LINE_INPUT) continue;
        lane_input *in = &t->in[t->n_in++];
        int v = t->d->lines[i].out[0];
        snprintf(in->name, sizeof in->name, "v%d", v);
        in->set[0] = t->d->values[v].t;
        for (int k = 1; k < SETS; k++) in->set[k] = another_set(t->d, in->set[0]);
    }
}

static void drop_alone(lane_trial *t) {
    for (int k = 0; k < SETS; k++)
        for (size_t i = 0; i < t->n_out; i++) braid_tensor_free(&t->alone[k][i]);
    memset(t->alone, 0, sizeof t->alone);
}

static braid_tensor as_input(const lane_input *in, const tensor *data) {
    braid_tensor b = {.name = in->name, .type = data->type.type, .rank = data->type.rank, .data = data->data, .bytes = data->bytes};
    memcpy(b.dims, data->type.dims, sizeof b.dims);
    return b;
}

/* Draws which inputs are shared and runs every data set alone. */
static bool choose_shared(lane_trial *t) {
    draft *d = t->d;
    int percent = (int)draw(d, 101);
    for (size_t i = 0; i < t->n_in; i++) {
        t->in[i].shared = chance(d, percent);
        t->in[i].shared_set = chance(d, 60) ? 0 : (int)draw(d, SETS);
    }
    drop_alone(t);
    t->n_usable = 0;
    for (int k = 0; k < SETS; k++) {
        braid_tensor in[DRAFT_LINES];
        braid_error err = {0};
        for (size_t i = 0; i < t->n_in; i++)
            in[i] = as_input(&t->in[i], t->in[i].set[t->in[i].shared ? t->in[i].shared_set : k]);
        braid_status status = braid_session_run(t->session, 1, in, t->n_in, t->alone[k], t->n_out, &err);
        if (status == BRAID_OK) t->usable[t->n_usable++] = k;
        else if (status == BRAID_INTERNAL || status == BRAID_DEVICE_LOST || status == BRAID_TIMEOUT)
            return finding_set(t->f, -1, "a run alone: %s", err.message);
    }
    return false;
}

typedef struct lane_run {
    uint32_t lanes;
    int set[LANES_MAX];
    uint8_t *packed[DRAFT_LINES]; /* per-lane inputs as given */
    size_t out_stride[OUT_MAX];
    braid_tensor in[DRAFT_LINES], out[OUT_MAX];
    void *own[OUT_MAX]; /* our buffers */
} lane_run;

static uint32_t draw_lanes(draft *d) {
    switch (draw(d, 10)) {
    case 0: return 64;
    case 1: return 65 + draw(d, LANES_MAX - 64);
    case 2: case 3: case 4: return 9 + draw(d, 56);
    case 5: return 1;
    default: return 2 + draw(d, 7);
    }
}

/* Lanes one behind the other with a gap between them. */
static braid_tensor pack_input(lane_trial *t, lane_run *r, size_t i) {
    const lane_input *in = &t->in[i];
    braid_tensor b = as_input(in, in->set[in->shared ? in->shared_set : 0]);
    if (in->shared) {
        b.flags = BRAID_TENSOR_SHARED;
        return b;
    }
    size_t element = braid_type_bytes(b.type), stride = b.bytes + (chance(t->d, 60) ? 0 : element * draw(t->d, GAP_MAX / 8));
    uint8_t *at = r->packed[i] = malloc(stride * r->lanes + 1);
    memset(at, 0x5a, stride * r->lanes + 1);
    for (uint32_t lane = 0; lane < r->lanes; lane++)
        if (b.bytes) memcpy(at + lane * stride, in->set[r->set[lane]]->data, b.bytes);
    b.data = at;
    b.bytes = stride * r->lanes;
    b.lane_stride = stride;
    return b;
}

/* A third of the outputs go to buffers of ours, with gaps that must stay as they are. */
static void pack_output(lane_trial *t, lane_run *r, size_t i) {
    const braid_tensor *alone = &t->alone[t->usable[0]][i];
    size_t element = braid_type_bytes(alone->type);
    r->out[i] = (braid_tensor){0};
    if (!chance(t->d, 33)) return;
    r->out_stride[i] = alone->bytes + element * draw(t->d, GAP_MAX / 8);
    size_t bytes = r->out_stride[i] * r->lanes;
    r->own[i] = malloc(bytes + 1);
    memset(r->own[i], 0xa5, bytes + 1);
    r->out[i] = (braid_tensor){.data = r->own[i], .bytes = bytes, .lane_stride = r->out_stride[i]};
}

static bool same_form(const braid_tensor *a, const braid_tensor *b) {
    return a->type == b->type && a->rank == b->rank && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof a->dims[0]) == 0;
}

static bool lanes_alike(const lane_trial *t, const lane_run *r) {
    for (uint32_t lane = 1; lane < r->lanes; lane++)
        for (size_t i = 0; i < t->n_out; i++)
            if (!same_form(&t->alone[r->set[0]][i], &t->alone[r->set[lane]][i])) return false;
    return true;
}

static bool check_output(lane_trial *t, lane_run *r, size_t i) {
    const braid_tensor *out = &r->out[i];
    size_t stride = r->lanes > 1 ? out->lane_stride : 0;
    for (uint32_t lane = 0; lane < r->lanes; lane++) {
        const braid_tensor *want = &t->alone[r->set[lane]][i];
        const uint8_t *got = (const uint8_t *)out->data + lane * stride;
        if (!same_form(out, want)) return finding_set(t->f, (int)i, "output %zu has another form with %u lanes", i, r->lanes);
        for (size_t k = 0; k < want->bytes; k++)
            if (got[k] != ((const uint8_t *)want->data)[k])
                return finding_set(t->f, (int)i, "%u lanes: output v%d of lane %u differs at byte %zu", r->lanes,
                                   t->d->outputs[i], lane, k);
        for (size_t k = want->bytes; r->own[i] && lane + 1 < r->lanes && k < stride; k++)
            if (got[k] != 0xa5)
                return finding_set(t->f, (int)i, "%u lanes: wrote into the gap behind lane %u of output v%d", r->lanes,
                                   lane, t->d->outputs[i]);
    }
    return false;
}

static bool run_lanes(lane_trial *t, lanes_total *total) {
    static lane_run r;
    braid_error err = {0};
    memset(&r, 0, sizeof r);
    r.lanes = draw_lanes(t->d);
    for (uint32_t lane = 0; lane < r.lanes; lane++) r.set[lane] = t->usable[draw(t->d, (uint32_t)t->n_usable)];
    for (size_t i = 0; i < t->n_in; i++) r.in[i] = pack_input(t, &r, i);
    bool alike = lanes_alike(t, &r), bad = false;
    for (size_t i = 0; alike && i < t->n_out; i++) pack_output(t, &r, i);
    braid_status status = braid_session_run(t->session, r.lanes, r.in, t->n_in, r.out, t->n_out, &err);
    total->runs++;
    total->lanes += r.lanes;
    if (!alike) {
        total->unlike++;
        if (status != BRAID_SHAPE && status != BRAID_UNSUPPORTED) bad = finding_set(t->f, -1, "%u lanes of unlike shapes: %s", r.lanes, status == BRAID_OK ? "accepted" : err.message);
    } else if (status != BRAID_OK) {
        bad = finding_set(t->f, -1, "%u lanes: %s", r.lanes, err.message);
    }
    for (size_t i = 0; status == BRAID_OK && !bad && i < t->n_out; i++) bad = check_output(t, &r, i);
    for (size_t i = 0; i < t->n_in; i++) free(r.packed[i]);
    for (size_t i = 0; i < t->n_out; i++) {
        if (r.own[i]) free(r.own[i]);
        else braid_tensor_free(&r.out[i]);
    }
    return bad;
}

static bool open_trial(lane_trial *t, braid_device *device, const braid_model *m) {
    braid_error err = {0};
    braid_session_options options = {.size = sizeof options, .verify = true, .lanes_max = LANES_MAX, .no_fuse = chance(t->d, 15)};
    if (braid_session_create(&device, 1, m, &options, &t->session, &err) != BRAID_OK)
        return finding_set(t->f, -1, "session: %s", err.message);
    if (chance(t->d, 25)) {
        t->session->test = (session_test){.redzone = chance(t->d, 50), .shuffle = chance(t->d, 50), .poison = true,
                                          .poison_byte = chance(t->d, 50) ? 0xff : 0x3c};
        stage_cache_clear(t->session, &t->session->stages);
    }
    return false;
}

bool lanes_try(draft *d, braid_device *device, int runs, lanes_total *total, finding *f) {
    static lane_trial t;
    braid_error err = {0};
    if (!d->n_outputs) return false;
    braid_model *m = draft_model(d, d->symbolic, &err);
    if (!m) return finding_set(f, -1, "whole graph: %s", err.message);
    memset(&t, 0, sizeof t);
    t.d = d;
    t.f = f;
    t.n_out = (size_t)d->n_outputs;
    d->state = d->seed + 4711;
    find_inputs(&t);
    bool bad = open_trial(&t, device, m);
    for (int k = 0; !bad && k < CHOICES; k++) {
        bad = choose_shared(&t);
        for (int i = 0; !bad && t.n_usable && i < runs / CHOICES; i++) bad = run_lanes(&t, total);
    }
    drop_alone(&t);
    braid_session_free(t.session);
    braid_model_free(m);
    return bad;
}
