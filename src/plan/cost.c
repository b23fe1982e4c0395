/*
 * cost.c: how long steps and waves take, by the device's figures. It chooses schedules, never what is computed.
 *
 *   work(step)   = max(bytes / bandwidth, operations / rate), of all its problems with the whole device busy
 *   alone(step)  = work, stretched when its workgroups do not fill the device, and what such a kernel takes at least
 *   time(wave)   = max(longest alone, sum of work, longest row of each dispatch / dispatches at once)
 *                  + barrier + dispatches * dispatch
 *
 * The limit on dispatches at once counts in what is chosen from (here); moves of steps (polish.c, narrow.c) do not see
 * it: it takes waves of more unlike steps than a device keeps resident, 128 on an H200.
 */
#include "plan/waves.h"

/* A wave of a product is worth several of others. */
static double latency_of(const plan *p, const step *s) {
    return s->latency && !p->device->software ? s->latency : 1;
}

braid_status costs_make(const plan *p, arena *memory, costs *out, braid_error *err) {
    const device_traits *d = p->device;
    device_figures f = device_figures_of(d);
    double cores = d->cores ? d->cores : 1;
    *out = (costs){.barrier = f.barrier,
                   .dispatch = f.dispatch,
                   .resident = f.resident,
                   .alone = arena_array(memory, (size_t)p->n_steps + 1, sizeof *out->alone),
                   .work = arena_array(memory, (size_t)p->n_steps + 1, sizeof *out->work)};
    if (!out->alone || !out->work) return error_memory(err);
    for (int32_t i = 0; i < p->n_steps; i++) {
        const step *s = p->steps[i];
        double problems = (double)s->copies * (s->once ? 1 : p->lanes), one = (double)s->bytes / f.bandwidth;
        if ((double)s->flops / f.rate > one) one = (double)s->flops / f.rate;
        double groups = (double)s->tiles * (s->folded ? 1 : problems);
        out->work[i] = one * problems;
        out->alone[i] = f.least * latency_of(p, s) + (groups < cores ? out->work[i] * cores / groups : out->work[i]);
    }
    return BRAID_OK;
}

/* Steps by wave: those of wave w are by_wave[first[w]] ... */
static void sort_by_wave(const schedule *s, int32_t n_steps, int32_t *first, int32_t *by_wave) {
    memset(first, 0, ((size_t)s->n_waves + 2) * sizeof *first);
    for (int32_t i = 0; i < n_steps; i++) first[s->wave[i] + 2]++;
    for (int32_t w = 2; w <= s->n_waves; w++) first[w] += first[w - 1];
    for (int32_t i = 0; i < n_steps; i++) by_wave[first[s->wave[i] + 1]++] = i;
}

typedef struct kind {
    int32_t wave; /* in which it was seen last, + 1 */
    double longest;
} kind;

/* kinds: by pipeline. */
static double wave_time(const plan *p, const costs *c, const int32_t *steps, int32_t n, kind *kinds, int32_t mark) {
    double work = 0, longest = 0, rows = 0;
    int32_t dispatches = 0;
    for (int32_t i = 0; i < n; i++) {
        kind *k = &kinds[p->pipeline[steps[i]]];
        double alone = c->alone[steps[i]];
        work += c->work[steps[i]];
        if (alone > longest) longest = alone;
        if (k->wave != mark) {
            *k = (kind){mark, 0};
            dispatches++;
        }
        if (alone <= k->longest) continue;
        rows += alone - k->longest;
        k->longest = alone;
    }
    if (rows / c->resident > longest) longest = rows / c->resident;
    return n ? (work > longest ? work : longest) + c->barrier + dispatches * c->dispatch : 0;
}

/* The most bytes of the arena alive in one wave. */
static braid_status schedule_bytes(const plan *p, schedule *s, arena *memory, braid_error *err) {
    int32_t *first = arena_array(memory, (size_t)p->n_storages + 1, sizeof *first);
    int32_t *last = arena_array(memory, (size_t)p->n_storages + 1, sizeof *last);
    uint64_t *change = arena_array(memory, (size_t)s->n_waves + 2, sizeof *change), alive = 0;
    if (!first || !last || !change) return error_memory(err);
    for (int32_t i = 0; i < p->n_storages; i++) first[i] = INT32_MAX;
    for (int32_t i = 0; i < p->n_steps; i++)
        for (int k = 0; k < p->steps[i]->n_operands; k++) {
            int32_t root = plan_root(p, p->steps[i]->operands[k].storage);
            if (s->wave[i] < first[root]) first[root] = s->wave[i];
            if (s->wave[i] > last[root]) last[root] = s->wave[i];
        }
    for (int32_t i = 0; i < p->n_storages; i++) {
        if (p->storages[i].kind != STORAGE_ARENA || p->storages[i].alias != i || first[i] == INT32_MAX) continue;
        change[first[i]] += p->storages[i].stride;
        change[last[i] + 1] -= p->storages[i].stride; /* unsigned wrap-around is undone by the running sum */
    }
    s->bytes = 0;
    for (int32_t w = 0; w < s->n_waves; w++) {
        alive += change[w];
        if (alive > s->bytes) s->bytes = alive;
    }
    return BRAID_OK;
}

braid_status schedule_rate(const plan *p, const costs *c, schedule *s, braid_error *err) {
    arena *memory = arena_new();
    if (!memory) return error_memory(err);
    int32_t *first = arena_array(memory, (size_t)s->n_waves + 3, sizeof *first);
    int32_t *by_wave = arena_array(memory, (size_t)p->n_steps + 1, sizeof *by_wave);
    kind *kinds = arena_array(memory, (size_t)p->n_pipelines + 1, sizeof *kinds);
    braid_status status = first && by_wave && kinds ? schedule_bytes(p, s, memory, err) : error_memory(err);
    s->time = 0;
    if (status == BRAID_OK) {
        sort_by_wave(s, p->n_steps, first, by_wave);
        for (int32_t w = 0; w < s->n_waves; w++)
            s->time += wave_time(p, c, by_wave + first[w], first[w + 1] - first[w], kinds, w + 1);
    }
    arena_free(memory);
    return status;
}
