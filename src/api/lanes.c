/*
 * lanes.c: the lanes of a run: which of them failed, and their results one by one.
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
