/*
 * lanes.c: the lanes of a run: which of them failed, and rounds of fewer lanes at a time.
 *
 * What a lane's own data bring about (an index out of range, a shape that no operator takes) fails that lane alone: the
 * others go on, and the session tells each lane's status. Where every lane has failed the run ends.
 *
 * A round is a run of as many of the lanes as there is memory for. Its results are taken to host memory; the caller's
 * buffers are written when all rounds are over, as they may hold inputs too.
 */
#include "api/session.h"

/* ------------------------------------------------------------------------------------------------ failures */

braid_status lanes_begin(braid_session *s, braid_error *err) {
    lane_log *l = &s->log_lanes;
    size_t bytes;
    l->lanes = 0;
    if (!size_mul(s->lanes, sizeof *l->status, &bytes)) return error_memory(err);
    braid_status *status = mem_realloc(l->status, bytes);
    if (!status) return error_memory(err);
    *l = (lane_log){.lanes = s->lanes, .status = status};
    for (uint32_t i = 0; i < s->lanes; i++) status[i] = BRAID_OK;
    s->run_status = BRAID_OK;
    return BRAID_OK;
}

bool lane_good(const braid_session *s, uint32_t lane) {
    return s->log_lanes.status[s->lane_base + lane] == BRAID_OK;
}

static bool of_the_data(braid_status status) {
    switch (status) {
    case BRAID_INDEX:
    case BRAID_SHAPE:
    case BRAID_TYPE:
    case BRAID_ARGUMENT:
    case BRAID_MODEL:
    case BRAID_UNSUPPORTED:
    case BRAID_LIMIT:
        return true;
    default:
        return false;
    }
}

braid_status lane_fail(braid_session *s, uint32_t lane, const braid_error *why, braid_error *err) {
    lane_log *l = &s->log_lanes;
    uint32_t number = s->lane_base + lane;
    if (!of_the_data(why->status)) return error_set(err, why->status, "%s", why->message);
    if (l->status[number] != BRAID_OK) return BRAID_OK;
    l->status[number] = why->status;
    if (!l->failed || number < l->first) {
        l->first = number;
        l->error = *why;
    }
    l->failed++;
    return ++l->failed_now == s->lanes ? error_set(err, why->status, "%s", why->message) : BRAID_OK;
}

braid_status lane_failed(braid_session *s, braid_status status, const braid_error *why, braid_error *err) {
    if (s->lanes == 1 && lane_good(s, 0) && of_the_data(status)) (void)lane_fail(s, 0, why, NULL);
    return s->log_lanes.failed_now == s->lanes ? BRAID_OK : error_set(err, status, "%s", why->message);
}

braid_status lanes_verdict(const braid_session *s, braid_error *err) {
    const lane_log *l = &s->log_lanes;
    if (!l->failed) return BRAID_OK;
    if (l->lanes == 1) return error_set(err, l->error.status, "%s", l->error.message);
    if (l->failed == 1) return error_set(err, l->error.status, "lane %u: %s", l->first, l->error.message);
    return error_set(err, l->error.status, "lane %u: %s (%u of %u lanes failed)", l->first, l->error.message, l->failed,
                     l->lanes);
}

/* ------------------------------------------------------------------------------------------------- results */

braid_status place_keep_lane(uint32_t lanes, uint32_t lane, const tensor *result, place *to, arena *memory,
                             braid_error *err) {
    if (!to->host) {
        tensor *t = arena_copy(memory, result, sizeof *result);
        size_t whole;
        if (!t || !size_mul(result->bytes, lanes, &whole) || !(t->data = arena_alloc(memory, whole + 1)))
            return error_memory(err);
        *to = (place){.host = t, .stride = result->bytes};
    }
    if (!tensor_type_equal(&to->host->type, &result->type)) {
        char shape[160], before[160];
        session_shape_text(&result->type, shape, sizeof shape);
        session_shape_text(&to->host->type, before, sizeof before);
        return error_set(err, BRAID_UNSUPPORTED,
                         "lane %u gives another shape than the lanes before it: [%s] after [%s]", lane, shape, before);
    }
    if (result->bytes) memcpy((uint8_t *)to->host->data + lane * result->bytes, result->data, result->bytes);
    return BRAID_OK;
}

braid_status place_take(const place *all, int32_t n, uint32_t lane, place *one, arena *memory, braid_error *err) {
    for (int32_t i = 0; i < n; i++) {
        one[i] = all[i];
        if (!all[i].stride) continue;
        if (!(one[i].host = arena_copy(memory, all[i].host, sizeof *one[i].host))) return error_memory(err);
        if (all[i].host->data) one[i].host->data = (void *)(uintptr_t)place_lane(&all[i], lane);
        if (all[i].each) one[i].each += lane;
        one[i].offset += lane * all[i].stride;
    }
    return BRAID_OK;
}

/* ------------------------------------------------------------------------------------------------- rounds */

typedef struct rounds {
    braid_session *s;
    stage *st;
    uint32_t lanes; /* of all rounds */
    const place *inputs;
    place *outputs;
    arena *memory; /* of the whole run */
} rounds;

static braid_status run_lanes(const rounds *r, place *out, arena *memory, braid_error *err) {
    braid_session *s = r->s;
    place *in = arena_array(memory, (size_t)s->base->n_inputs + 1, sizeof *in);
    if (!in) return error_memory(err);
    TRY(place_take(r->inputs, s->base->n_inputs, s->lane_base, in, memory, err));
    for (int32_t i = 0; s->lanes == 1 && i < s->base->n_inputs; i++) in[i].stride = 0;
    TRY(stage_run(s, r->st, in, out, memory, err));
    for (int32_t i = 0; i < s->base->n_outputs; i++) TRY(place_to_host(s, &out[i].host->type, &out[i], memory, err));
    return BRAID_OK;
}

static braid_status keep_lanes(const rounds *r, const place *out, braid_error *err) {
    const braid_session *s = r->s;
    for (int32_t i = 0; i < s->base->n_outputs; i++)
        for (uint32_t lane = 0; lane < s->lanes; lane++) {
            tensor one = *out[i].host;
            if (!lane_good(s, lane)) continue;
            if (one.bytes) one.data = (void *)(uintptr_t)place_lane(&out[i], lane);
            braid_status status = place_keep_lane(r->lanes, s->lane_base + lane, &one, &r->outputs[i], r->memory, err);
            if (status != BRAID_OK) return error_within(err, status, "output '%s'", s->base->output_names[i]);
        }
    return BRAID_OK;
}

static braid_status run_round(const rounds *r, arena *memory, braid_error *err) {
    braid_error why = {0};
    place *out = arena_array(memory, (size_t)r->s->base->n_outputs + 1, sizeof *out);
    if (!out) return error_memory(err);
    r->s->log_lanes.failed_now = 0;
    braid_status status = run_lanes(r, out, memory, &why);
    return status == BRAID_OK ? keep_lanes(r, out, err) : lane_failed(r->s, status, &why, err);
}

static braid_status run_rounds(const rounds *r, uint32_t most, braid_error *err) {
    braid_session *s = r->s;
    braid_status status = BRAID_OK;
    for (uint32_t n; status == BRAID_OK && s->lane_base < r->lanes; s->lane_base += n) {
        n = r->lanes - s->lane_base < most ? r->lanes - s->lane_base : most;
        s->lanes = n;
        arena *memory = arena_new();
        status = memory ? run_round(r, memory, err) : error_memory(err);
        arena_free(memory);
    }
    s->lanes = r->lanes;
    s->lane_base = 0;
    return status == BRAID_OK && s->log_lanes.failed == r->lanes ? lanes_verdict(s, err) : status;
}

/* In one go a run whose lanes have all failed ends with the last one's message: the verdict names the first. */
static braid_status run_at_once(braid_session *s, stage *st, const place *inputs, place *outputs, arena *memory,
                                braid_error *err) {
    braid_status status = stage_run(s, st, inputs, outputs, memory, err);
    bool all_failed = status != BRAID_OK && s->log_lanes.failed == s->lanes;
    return all_failed ? lanes_verdict(s, err) : status;
}

braid_status session_run_lanes(braid_session *s, const place *inputs, place *outputs, arena *memory, braid_error *err) {
    rounds r = {.s = s, .lanes = s->lanes, .inputs = inputs, .outputs = outputs, .memory = memory};
    TRY(stage_get(s, &s->stages, s->base, inputs, false, &r.st, err));
    if (s->lanes <= r.st->bucket) return run_at_once(s, r.st, inputs, outputs, memory, err);
    return run_rounds(&r, r.st->bucket, err);
}
