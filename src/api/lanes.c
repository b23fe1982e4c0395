/*
 * lanes.c: the lanes of a run: which of them failed, and runs of one lane after the other.
 *
 * What a lane's own data bring about (an index out of range, a shape that no operator takes) fails that lane alone: the
 * others go on, and the session tells each lane's status. Where every lane has failed the run ends.
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
    return BRAID_OK;
}

/* A run of one lane ends at its first error; within lanes_run_serial that lane may be any. */
bool lane_good(const braid_session *s, uint32_t lane) { return s->lanes == 1 || s->log_lanes.status[lane] == BRAID_OK; }

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
    if (s->lanes == 1 || !of_the_data(why->status)) return error_set(err, why->status, "%s", why->message);
    if (l->status[lane] != BRAID_OK) return BRAID_OK;
    l->status[lane] = why->status;
    if (!l->failed || lane < l->first) {
        l->first = lane;
        l->error = *why;
    }
    l->failed++;
    return l->failed == l->lanes ? lanes_verdict(s, err) : BRAID_OK;
}

braid_status lanes_verdict(const braid_session *s, braid_error *err) {
    const lane_log *l = &s->log_lanes;
    if (!l->failed) return BRAID_OK;
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
    if (!tensor_type_equal(&to->host->type, &result->type))
        return error_set(err, BRAID_UNSUPPORTED, "lane %u gives another shape than the lanes before it", lane);
    if (result->bytes) memcpy((uint8_t *)to->host->data + lane * result->bytes, result->data, result->bytes);
    return BRAID_OK;
}

/* ----------------------------------------------------------------------------------------- one by one */

static braid_status take_lane(const braid_session *s, const place *inputs, uint32_t lane, place *in, arena *memory,
                              braid_error *err) {
    for (int32_t i = 0; i < s->base->n_inputs; i++) {
        if (!(in[i].host = arena_copy(memory, inputs[i].host, sizeof *in[i].host))) return error_memory(err);
        if (inputs[i].stride) in[i].host->data = (void *)(uintptr_t)place_lane(&inputs[i], lane);
    }
    return BRAID_OK;
}

static braid_status run_one(braid_session *s, const place *in, place *out, arena *memory, braid_error *err) {
    stage *st;
    TRY(stage_get(s, &s->stages, s->base, in, false, &st, err));
    TRY(stage_run(s, st, in, out, memory, err));
    for (int32_t i = 0; i < s->base->n_outputs; i++) TRY(place_to_host(s, &out[i].host->type, &out[i], memory, err));
    return BRAID_OK;
}

braid_status lanes_run_serial(braid_session *s, const place *inputs, place *outputs, arena *memory, braid_error *err) {
    uint32_t lanes = s->lanes;
    place *in = arena_array(memory, (size_t)s->base->n_inputs + 1, sizeof *in);
    place *out = arena_array(memory, (size_t)s->base->n_outputs + 1, sizeof *out);
    if (!in || !out) return error_memory(err);
    for (uint32_t lane = 0; lane < lanes; lane++) {
        braid_error why = {0};
        TRY(take_lane(s, inputs, lane, in, memory, err));
        s->lanes = 1;
        braid_status status = run_one(s, in, out, memory, &why);
        s->lanes = lanes;
        if (status != BRAID_OK) {
            TRY(lane_fail(s, lane, &why, err));
            continue;
        }
        for (int32_t i = 0; i < s->base->n_outputs; i++)
            TRY(place_keep_lane(lanes, lane, out[i].host, &outputs[i], memory, err));
    }
    return BRAID_OK;
}
