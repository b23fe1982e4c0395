/*
 * rounds.c: the lanes of a run, at once or in rounds.
 *
 * A round is a run of as many of the lanes as there is memory for. Its results are taken to host memory; the caller's
 * buffers are written when all rounds are over, as they may hold inputs too.
 *
 * Rounds overlap where the stage has a twin of its segment: both use the same device memory one after the other, but each
 * has what the host writes and reads for itself. By turns one is computed while the host packs inputs into the other.
 *
 *   host      pack 0  pack 1  unpack 0  pack 2  unpack 1  pack 3 ...
 *   device            |--- round 0 ---||--- round 1 ---||--- round 2 ---
 */
#include "api/session.h"

typedef struct rounds {
    braid_session *s;
    stage *st;
    uint32_t lanes; /* of all rounds */
    const place *inputs;
    place *outputs;
    arena *memory; /* of the whole run */
} rounds;

typedef struct one_round {
    segment *seg; /* overlapping: whose turn it is */
    uint32_t first, lanes;
    arena *memory; /* NULL: not under way */
    place *places;
} one_round;

/* From now on the session is at this round. */
static void enter(const rounds *r, const one_round *o) {
    r->s->lane_base = o->first;
    r->s->lanes = o->lanes;
}

static one_round next_round(const rounds *r, uint32_t first) {
    uint32_t left = r->lanes - first, most = r->st->bucket;
    return (one_round){.first = first, .lanes = left < most ? left : most};
}

static braid_status take_inputs(const rounds *r, place **out, arena *memory, braid_error *err) {
    const braid_session *s = r->s;
    place *in = arena_array(memory, (size_t)s->base->n_inputs + 1, sizeof *in);
    if (!in) return error_memory(err);
    TRY(place_take(r->inputs, s->base->n_inputs, s->lane_base, in, memory, err));
    for (int32_t i = 0; s->lanes == 1 && i < s->base->n_inputs; i++) in[i].stride = 0;
    *out = in;
    return BRAID_OK;
}

/* ------------------------------------------------------------------------------------------------- results */

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

/* What a round gave, or that it failed: then `why` says why. */
static braid_status keep_round(const rounds *r, braid_status status, place *out, arena *memory, braid_error *why,
                               braid_error *err) {
    braid_session *s = r->s;
    for (int32_t i = 0; status == BRAID_OK && i < s->base->n_outputs; i++)
        status = place_to_host(s, &out[i].host->type, &out[i], memory, why);
    return status == BRAID_OK ? keep_lanes(r, out, err) : lane_failed(s, status, why, err);
}

/* ------------------------------------------------------------------------------------- one after the other */

static braid_status run_round(const rounds *r, arena *memory, braid_error *err) {
    braid_error why = {0};
    place *in = NULL, *out = arena_array(memory, (size_t)r->s->base->n_outputs + 1, sizeof *out);
    if (!out) return error_memory(err);
    r->s->log_lanes.failed_now = 0;
    braid_status status = take_inputs(r, &in, memory, &why);
    if (status == BRAID_OK) status = stage_run(r->s, r->st, in, out, memory, &why);
    return keep_round(r, status, out, memory, &why, err);
}

static braid_status run_in_turn(const rounds *r, braid_error *err) {
    braid_status status = BRAID_OK;
    for (uint32_t first = 0; status == BRAID_OK && first < r->lanes;) {
        one_round o = next_round(r, first);
        enter(r, &o);
        o.memory = arena_new();
        status = o.memory ? run_round(r, o.memory, err) : error_memory(err);
        arena_free(o.memory);
        first += o.lanes;
    }
    return status;
}

/* --------------------------------------------------------------------------------------------- overlapping */

static braid_status begin_round(const rounds *r, one_round *o, braid_error *err) {
    place *in = NULL;
    enter(r, o);
    if (!(o->memory = arena_new())) return error_memory(err);
    TRY(take_inputs(r, &in, o->memory, err));
    return stage_begin(r->s, r->st, o->seg, in, &o->places, o->memory, err);
}

static braid_status end_round(const rounds *r, one_round *o, braid_error *err) {
    braid_error why = {0};
    enter(r, o);
    r->s->log_lanes.failed_now = 0;
    place *out = arena_array(o->memory, (size_t)r->s->base->n_outputs + 1, sizeof *out);
    if (!out) return error_memory(err);
    braid_status status = stage_end(r->s, r->st, o->seg, o->places, out, o->memory, &why);
    status = keep_round(r, status, out, o->memory, &why, err);
    arena_free(o->memory);
    o->memory = NULL;
    return status;
}

/* Whatever fails, nothing is under way afterwards. */
static braid_status run_overlapping(const rounds *r, braid_error *err) {
    segment *const turns[2] = {&r->st->segments[0], r->st->twin};
    one_round both[2] = {{0}, {0}};
    braid_status status = BRAID_OK;
    int turn = 0;
    for (uint32_t first = 0; status == BRAID_OK && first < r->lanes; turn = !turn) {
        both[turn] = next_round(r, first);
        both[turn].seg = turns[turn];
        first += both[turn].lanes;
        status = begin_round(r, &both[turn], err);
        if (status == BRAID_OK && both[!turn].memory) status = end_round(r, &both[!turn], err);
    }
    if (status == BRAID_OK) status = end_round(r, &both[!turn], err);
    for (int i = 0; i < 2; i++) {
        segment_settle(r->s, turns[i]);
        arena_free(both[i].memory);
    }
    return status;
}

/* --------------------------------------------------------------------------------------------------- all */

/* The test that looks at the device's memory before and after a run needs it for one run at a time. */
static braid_status run_rounds(const rounds *r, braid_error *err) {
    braid_session *s = r->s;
    braid_status status = r->st->twin && !s->test.poison ? run_overlapping(r, err) : run_in_turn(r, err);
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
    return s->lanes <= r.st->bucket ? run_at_once(s, r.st, inputs, outputs, memory, err) : run_rounds(&r, err);
}
