/*
 * lanes.h: a run of many lanes against runs of each lane alone, bit for bit. For tests; needs the public header only.
 *
 * An input has a few data sets. A run draws which data set each lane has, how far apart lanes lie, and whose buffers
 * the outputs are; which inputs all lanes share is drawn before, and the runs alone are made once for it.
 *
 *     lane_case c = {.session = s, .n_in = .., .n_out = .., .n_sets = .., .state = seed};   then c.in[set][input]
 *     bool good = lanes_share(&c, 50) && lanes_run(&c, 7) && lanes_run(&c, 64);
 *     if (!good) puts(c.what);
 *     lanes_end(&c);
 *
 * A data set that a run alone refuses with INDEX is sometimes the data of a lane: that lane fails alone, with zeros for
 * outputs. Where data sets give outputs of unlike shapes a run of both must be refused.
 */
#ifndef LANES_H
#define LANES_H

#include <braid/braid.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANES_SETS = 8, LANES_IN = 100, LANES_OUT = 200, LANES_MOST = 256, LANES_GAP = 5 };

typedef struct lane_case {
    braid_session *session;
    size_t n_in, n_out;
    int n_sets;
    braid_tensor in[LANES_SETS][LANES_IN]; /* of one lane; the caller's */
    uint64_t state;                        /* of what is drawn */
    bool dense;                            /* no gaps between lanes, no buffers of ours */
    bool nan_alike; /* every NaN is as good as another: where kernels of a GPU run on a CPU, whose
                       NaN keep the sign and payload of the operand that comes first */
    unsigned long long runs, lanes, unlike, failing; /* counted; unlike: refused, as the lanes' outputs have unlike
                                                        shapes; failing: runs in which some lanes failed */
    char what[900];                                  /* what is wrong */
    /* filled by lanes_share */
    bool shared[LANES_IN];
    int shared_set[LANES_IN], usable[LANES_SETS], n_usable, bad[LANES_SETS], n_bad; /* bad: INDEX */
    braid_tensor alone[LANES_SETS][LANES_OUT];
} lane_case;

typedef struct lane_run {
    uint32_t lanes;
    int set[LANES_MOST];
    bool fails[LANES_MOST];    /* the lane's set is a bad one */
    uint32_t first;            /* lane whose outputs tell the forms */
    uint8_t *packed[LANES_IN]; /* per-lane inputs as given */
    uint8_t *own[LANES_OUT];   /* our buffers */
    size_t own_stride[LANES_OUT];
    void *lists[LANES_IN + LANES_OUT][LANES_MOST]; /* BRAID_TENSOR_LANES */
    braid_tensor in[LANES_IN], out[LANES_OUT];
} lane_run;

/* Returns false. */
static inline bool lanes_wrong(lane_case *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static inline bool lanes_wrong(lane_case *c, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(c->what, sizeof c->what, format, list);
    va_end(list);
    return false;
}

/* [0, below); 0 when below is 0 */
static inline uint32_t lanes_draw(lane_case *c, uint32_t below) {
    c->state = c->state * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = (c->state ^ c->state >> 29) * 0xbf58476d1ce4e5b9u;
    return below ? (uint32_t)((x >> 32) % below) : 0;
}

static inline void lanes_end(lane_case *c) {
    for (int k = 0; k < LANES_SETS; k++)
        for (size_t i = 0; i < c->n_out; i++) braid_tensor_free(&c->alone[k][i]);
    memset(c->alone, 0, sizeof c->alone);
}

static inline const braid_tensor *lanes_input(const lane_case *c, size_t i, int set) {
    return &c->in[c->shared[i] ? c->shared_set[i] : set][i];
}

static inline bool lanes_alone(lane_case *c, int set) {
    braid_tensor in[LANES_IN];
    braid_error err = {0};
    for (size_t i = 0; i < c->n_in; i++) in[i] = *lanes_input(c, i, set);
    braid_status status = braid_session_run(c->session, 1, in, c->n_in, c->alone[set], c->n_out, &err);
    if (status == BRAID_OK)
        c->usable[c->n_usable++] = set;
    else if (status == BRAID_INDEX)
        c->bad[c->n_bad++] = set;
    bool broken = status == BRAID_INTERNAL || status == BRAID_DEVICE_LOST || status == BRAID_TIMEOUT;
    return !broken || lanes_wrong(c, "a run alone: %s", err.message);
}

/* Runs every data set alone, with what is shared as it stands in c->shared and c->shared_set. */
static inline bool lanes_prepare(lane_case *c) {
    lanes_end(c);
    c->n_usable = c->n_bad = 0;
    for (int k = 0; k < c->n_sets; k++)
        if (!lanes_alone(c, k)) return false;
    return true;
}

/* Draws which inputs are shared, each with this probability, and prepares. */
static inline bool lanes_share(lane_case *c, uint32_t percent) {
    for (size_t i = 0; i < c->n_in; i++) {
        c->shared[i] = lanes_draw(c, 100) < percent;
        c->shared_set[i] = lanes_draw(c, 100) < 60 ? 0 : (int)lanes_draw(c, (uint32_t)c->n_sets);
    }
    return lanes_prepare(c);
}

static inline size_t lanes_gap(lane_case *c, braid_type type) {
    return c->dense || lanes_draw(c, 100) < 50 ? 0 : braid_type_bytes(type) * lanes_draw(c, LANES_GAP);
}

/* The same lanes as a list of buffers. */
static inline void lanes_as_list(braid_tensor *b, uint8_t *at, size_t one, size_t stride, uint32_t lanes, void **list) {
    for (uint32_t lane = 0; lane < lanes; lane++) list[lane] = at + lane * stride;
    b->data = list;
    b->bytes = one;
    b->lane_stride = 0;
    b->flags = BRAID_TENSOR_LANES;
}

/* Lanes one behind the other with a gap between them. */
static inline void lanes_pack_input(lane_case *c, lane_run *r, size_t i) {
    braid_tensor *b = &r->in[i];
    *b = *lanes_input(c, i, 0);
    if (c->shared[i]) {
        b->flags = BRAID_TENSOR_SHARED;
        return;
    }
    size_t one = b->bytes, stride = one + lanes_gap(c, b->type);
    uint8_t *at = r->packed[i] = malloc(stride * r->lanes + 1);
    memset(at, 0x5a, stride * r->lanes + 1);
    for (uint32_t lane = 0; lane < r->lanes; lane++)
        if (one) memcpy(at + lane * stride, lanes_input(c, i, r->set[lane])->data, one);
    b->data = at;
    b->bytes = stride * r->lanes;
    b->lane_stride = stride == one && lanes_draw(c, 2) ? 0 : stride;
    if (!c->dense && lanes_draw(c, 5) == 0) lanes_as_list(b, at, one, stride, r->lanes, r->lists[i]);
}

/* A third of the outputs go to buffers of ours, with gaps that must stay as they are. */
static inline void lanes_pack_output(lane_case *c, lane_run *r, size_t i) {
    const braid_tensor *alone = &c->alone[r->set[r->first]][i];
    if (c->dense || lanes_draw(c, 3)) return;
    size_t stride = r->own_stride[i] = alone->bytes + lanes_gap(c, alone->type);
    r->own[i] = malloc(stride * r->lanes + 1);
    memset(r->own[i], 0xa5, stride * r->lanes + 1);
    r->out[i] = (braid_tensor){.data = r->own[i], .bytes = stride * r->lanes, .lane_stride = stride};
    if (lanes_draw(c, 3) == 0)
        lanes_as_list(&r->out[i], r->own[i], alone->bytes, stride, r->lanes, r->lists[LANES_IN + i]);
}

static inline bool lanes_same_form(const braid_tensor *a, const braid_tensor *b) {
    return a->type == b->type && a->rank == b->rank &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof a->dims[0]) == 0;
}

static inline bool lanes_alike(const lane_case *c, const lane_run *r) {
    for (uint32_t lane = 0; lane < r->lanes; lane++)
        for (size_t i = 0; !r->fails[lane] && i < c->n_out; i++)
            if (!lanes_same_form(&c->alone[r->set[r->first]][i], &c->alone[r->set[lane]][i])) return false;
    return true;
}

static inline bool lanes_is_nan(braid_type type, const uint8_t *at) {
    uint64_t bits = 0;
    memcpy(&bits, at, braid_type_bytes(type));
    switch (type) {
    case BRAID_FLOAT16:
        return (bits & 0x7fff) > 0x7c00;
    case BRAID_BFLOAT16:
        return (bits & 0x7fff) > 0x7f80;
    case BRAID_FLOAT32:
        return (bits & 0x7fffffff) > 0x7f800000;
    case BRAID_FLOAT64:
        return (bits & ~((uint64_t)1 << 63)) > (uint64_t)0x7ff << 52;
    default:
        return false;
    }
}

/* Byte k of an element that both sides have as NaN. */
static inline bool lanes_same_nan(const lane_case *c, braid_type type, const uint8_t *a, const uint8_t *b, size_t k) {
    size_t element = braid_type_bytes(type);
    if (!c->nan_alike || !element) return false;
    k -= k % element;
    return lanes_is_nan(type, a + k) && lanes_is_nan(type, b + k);
}

static inline bool lanes_check_output(lane_case *c, const lane_run *r, size_t i) {
    const braid_tensor *out = &r->out[i], *form = &c->alone[r->set[r->first]][i];
    size_t stride = r->own[i] ? r->own_stride[i] : r->lanes > 1 ? out->lane_stride : 0;
    if (!lanes_same_form(out, form)) return lanes_wrong(c, "%u lanes: output %zu has another form", r->lanes, i);
    for (uint32_t lane = 0; lane < r->lanes; lane++) {
        const uint8_t *want = c->alone[r->set[lane]][i].data;
        const uint8_t *got = (const uint8_t *)(r->own[i] ? r->own[i] : out->data) + lane * stride;
        for (size_t k = 0; k < form->bytes; k++)
            if (got[k] != (r->fails[lane] ? 0 : want[k]) &&
                (r->fails[lane] || !lanes_same_nan(c, form->type, got, want, k)))
                return lanes_wrong(c, "%u lanes: output %zu of lane %u differs from a run alone at byte %zu", r->lanes,
                                   i, lane, k);
        for (size_t k = form->bytes; r->own[i] && lane + 1 < r->lanes && k < stride; k++)
            if (got[k] != 0xa5)
                return lanes_wrong(c, "%u lanes: wrote into the gap behind lane %u of output %zu", r->lanes, lane, i);
    }
    return true;
}

static inline bool lanes_check_failed(lane_case *c, const lane_run *r, braid_status status, const char *message) {
    char prefix[32];
    uint32_t first = 0;
    while (first < r->lanes && !r->fails[first]) first++;
    if (first == r->lanes) return status == BRAID_OK || lanes_wrong(c, "%u lanes: %s", r->lanes, message);
    c->failing++;
    snprintf(prefix, sizeof prefix, "lane %u: ", first);
    if (status != BRAID_INDEX || strncmp(message, prefix, strlen(prefix)) != 0)
        return lanes_wrong(c, "%u lanes, an index out of range in lane %u: %s", r->lanes, first,
                           status ? message : "accepted");
    for (uint32_t lane = 0; lane < r->lanes; lane++)
        if (braid_session_lane_status(c->session, lane) != (r->fails[lane] ? BRAID_INDEX : BRAID_OK))
            return lanes_wrong(c, "%u lanes: the status of lane %u is wrong", r->lanes, lane);
    return true;
}

static inline bool lanes_judge(lane_case *c, const lane_run *r, bool alike, braid_status status, const char *message) {
    bool refused = status == BRAID_SHAPE || status == BRAID_UNSUPPORTED || status == BRAID_INDEX;
    if (!alike) c->unlike++;
    if (!alike && !refused)
        return lanes_wrong(c, "%u lanes of unlike shapes: %s", r->lanes, status ? message : "accepted");
    if (!alike) return true;
    if (!lanes_check_failed(c, r, status, message)) return false;
    for (size_t i = 0; i < c->n_out; i++)
        if (!lanes_check_output(c, r, i)) return false;
    return true;
}

/* Which data set each lane has. At least one lane is good. */
static inline void lanes_draw_sets(lane_case *c, lane_run *r) {
    bool some = c->n_bad && lanes_draw(c, 4) == 0;
    r->first = lanes_draw(c, r->lanes);
    for (uint32_t lane = 0; lane < r->lanes; lane++) {
        r->fails[lane] = some && lane != r->first && lanes_draw(c, 3) == 0;
        r->set[lane] = r->fails[lane] ? c->bad[lanes_draw(c, (uint32_t)c->n_bad)]
                                      : c->usable[lanes_draw(c, (uint32_t)c->n_usable)];
    }
}

/* One run. True: as it should be, or there is no data set to run with. */
static inline bool lanes_run(lane_case *c, uint32_t lanes) {
    braid_error err = {0};
    lane_run *r = calloc(1, sizeof *r);
    if (!c->n_usable || lanes > LANES_MOST || !r) {
        free(r);
        return true;
    }
    r->lanes = lanes;
    lanes_draw_sets(c, r);
    for (size_t i = 0; i < c->n_in; i++) lanes_pack_input(c, r, i);
    bool alike = lanes_alike(c, r);
    for (size_t i = 0; alike && i < c->n_out; i++) lanes_pack_output(c, r, i);
    braid_status status = braid_session_run(c->session, lanes, r->in, c->n_in, r->out, c->n_out, &err);
    c->runs++;
    c->lanes += lanes;
    bool good = lanes_judge(c, r, alike, status, err.message);
    for (size_t i = 0; i < c->n_in; i++) free(r->packed[i]);
    for (size_t i = 0; i < c->n_out; i++) {
        if (r->own[i])
            free(r->own[i]);
        else
            braid_tensor_free(&r->out[i]);
    }
    free(r);
    return good;
}

#endif
