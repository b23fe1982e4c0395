/*
 * polish.c: improves a schedule by moves of single steps.
 *
 * One pass walks backwards and moves steps to later waves, the next one forwards and to earlier ones; so what limits a
 * step, the waves of those behind it or before it, is final when it is looked at. A step goes where the cost model says
 * that time is saved. Tensors' lives have a price in time as well: twice the bytes times waves of the first schedule
 * are worth a twentieth of its time.
 */
#include "plan/waves.h"

enum {
    PASSES = 4,
    CANDIDATES = 64,   /* waves looked at for one step */
    TOUCHES_MANY = 24, /* storages touched by more steps do not count: one step hardly changes their lives */
};

static const double LEAST_GAIN = 0.5; /* ns */

/* One wave: what its time is made of. top: the two longest steps' times, which differ; n_top: how many have them. */
typedef struct tally {
    double work, top[2];
    int32_t n_top[2], dispatches, steps, head;
} tally;

typedef struct pair {
    int64_t key; /* wave and pipeline, + 1; 0: free */
    int32_t steps;
} pair;

typedef struct polisher {
    const scheduler *s;
    schedule *now;
    bool lean;    /* tensors must not live longer */
    double price; /* of a byte that lives one wave more */
    tally *waves;
    int32_t *next, *previous; /* steps of a wave */
    pair *pairs;
    uint32_t n_pairs, cap_pairs;
    int32_t *bound;            /* of each node in this pass */
    int32_t *first, *touching; /* by storage: steps that touch it */
    arena *memory;
    bool failed;
} polisher;

/* ---------------------------------------------------------------------------------------------------- pairs */

static pair *pair_find(const polisher *q, int64_t key) {
    uint32_t at = (uint32_t)((uint64_t)key * 0x9e3779b97f4a7c15u >> 40) & (q->cap_pairs - 1);
    while (q->pairs[at].key && q->pairs[at].key != key) at = (at + 1) & (q->cap_pairs - 1);
    return &q->pairs[at];
}

static int64_t pair_key(const polisher *q, int32_t wave, int32_t id) {
    return (int64_t)wave * q->s->p->n_pipelines + q->s->p->pipeline[id] + 1;
}

static int32_t sharing(const polisher *q, int32_t wave, int32_t id) {
    return pair_find(q, pair_key(q, wave, id))->steps;
}

/* Makes room; pairs without steps are forgotten. */
static bool pairs_grow(polisher *q) {
    if (q->n_pairs * 2 < q->cap_pairs) return true;
    pair *old = q->pairs;
    uint32_t n = q->cap_pairs;
    uint32_t capacity = 256;
    while (capacity < (uint32_t)q->s->p->n_steps * 4) capacity *= 2;
    if (!(q->pairs = arena_array(q->memory, capacity, sizeof *q->pairs))) {
        q->pairs = old;
        return !(q->failed = true);
    }
    q->cap_pairs = capacity;
    q->n_pairs = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!old[i].steps) continue;
        *pair_find(q, old[i].key) = old[i];
        q->n_pairs++;
    }
    return true;
}

/* ---------------------------------------------------------------------------------------------------- waves */

static void count_top(tally *t, double alone) {
    for (int i = 0; i < 2; i++) {
        if (alone < t->top[i]) continue;
        if (alone > t->top[i]) {
            if (i == 0) {
                t->top[1] = t->top[0];
                t->n_top[1] = t->n_top[0];
            }
            t->top[i] = alone;
            t->n_top[i] = 0;
        }
        t->n_top[i]++;
        return;
    }
}

static void enter(polisher *q, int32_t wave, int32_t id) {
    const costs *c = q->s->costs;
    tally *t = &q->waves[wave];
    if (!pairs_grow(q)) return;
    pair *r = pair_find(q, pair_key(q, wave, id));
    if (!r->key) {
        r->key = pair_key(q, wave, id);
        q->n_pairs++;
    }
    t->dispatches += r->steps++ == 0;
    t->steps++;
    t->work += c->work[id];
    count_top(t, c->alone[id]);
    q->next[id] = t->head;
    q->previous[id] = -1;
    if (t->head >= 0) q->previous[t->head] = id;
    t->head = id;
    q->now->wave[id] = wave;
}

static void leave(polisher *q, int32_t id) {
    const costs *c = q->s->costs;
    int32_t wave = q->now->wave[id];
    tally *t = &q->waves[wave];
    t->dispatches -= --pair_find(q, pair_key(q, wave, id))->steps == 0;
    t->steps--;
    t->work -= c->work[id];
    if (q->previous[id] >= 0)
        q->next[q->previous[id]] = q->next[id];
    else
        t->head = q->next[id];
    if (q->next[id] >= 0) q->previous[q->next[id]] = q->previous[id];
    for (int i = 0; i < 2; i++) {
        if (c->alone[id] < t->top[i] || c->alone[id] > t->top[i] || --t->n_top[i]) continue;
        t->top[0] = t->top[1] = -1;
        t->n_top[0] = t->n_top[1] = 0;
        for (int32_t k = t->head; k >= 0; k = q->next[k]) count_top(t, c->alone[k]);
        return;
    }
}

static double time_of(const polisher *q, int32_t steps, int32_t dispatches, double work, double longest) {
    const costs *c = q->s->costs;
    return steps ? (work > longest ? work : longest) + c->barrier + dispatches * c->dispatch : 0;
}

static double time_now(const polisher *q, int32_t wave) {
    const tally *t = &q->waves[wave];
    return time_of(q, t->steps, t->dispatches, t->work, t->top[0]);
}

static double time_without(const polisher *q, int32_t wave, int32_t id) {
    const tally *t = &q->waves[wave];
    bool alone_on_top = q->s->costs->alone[id] >= t->top[0] && t->n_top[0] == 1;
    return time_of(q, t->steps - 1, t->dispatches - (sharing(q, wave, id) == 1), t->work - q->s->costs->work[id],
                   alone_on_top ? t->top[1] : t->top[0]);
}

static double time_with(const polisher *q, int32_t wave, int32_t id) {
    const tally *t = &q->waves[wave];
    double alone = q->s->costs->alone[id];
    return time_of(q, t->steps + 1, t->dispatches + (sharing(q, wave, id) == 0), t->work + q->s->costs->work[id],
                   alone > t->top[0] ? alone : t->top[0]);
}

/* --------------------------------------------------------------------------------------------------- memory */

static braid_status list_touching(polisher *q, braid_error *err) {
    const plan *p = q->s->p;
    int32_t n = 0;
    for (int32_t i = 0; i < p->n_steps; i++) n += p->steps[i]->n_operands;
    q->first = arena_array(q->memory, (size_t)p->n_storages + 3, sizeof *q->first);
    q->touching = arena_array(q->memory, (size_t)n + 1, sizeof *q->touching);
    if (!q->first || !q->touching) return error_memory(err);
    for (int32_t i = 0; i < p->n_steps; i++)
        for (int k = 0; k < p->steps[i]->n_operands; k++)
            q->first[plan_root(p, p->steps[i]->operands[k].storage) + 2]++;
    for (int32_t i = 2; i <= p->n_storages; i++) q->first[i] += q->first[i - 1];
    for (int32_t i = 0; i < p->n_steps; i++)
        for (int k = 0; k < p->steps[i]->n_operands; k++)
            q->touching[q->first[plan_root(p, p->steps[i]->operands[k].storage) + 1]++] = i;
    return BRAID_OK;
}

static double bytes_of(const polisher *q, int32_t id) {
    const step *one = q->s->p->steps[id];
    double bytes = 0;
    for (int k = 0; k < one->n_operands; k++)
        bytes += (double)q->s->p->storages[plan_root(q->s->p, one->operands[k].storage)].stride;
    return bytes;
}

/* Bytes times waves of all tensors. */
static double lives_now(const polisher *q) {
    const plan *p = q->s->p;
    double sum = 0;
    for (int32_t i = 0; i < p->n_storages; i++) {
        int32_t low = INT32_MAX, high = -1;
        if (p->storages[i].kind != STORAGE_ARENA || q->first[i] == q->first[i + 1]) continue;
        for (int32_t k = q->first[i]; k < q->first[i + 1]; k++) {
            int32_t wave = q->now->wave[q->touching[k]];
            if (wave < low) low = wave;
            if (wave > high) high = wave;
        }
        sum += (double)(high - low + 1) * (double)p->storages[i].stride;
    }
    return sum;
}

/* Bytes times waves by which the lives of a step's tensors grow when it moves. */
static double lives_grow(const polisher *q, int32_t id, int32_t to) {
    const plan *p = q->s->p;
    double grown = 0;
    for (int k = 0; k < p->steps[id]->n_operands; k++) {
        int32_t root = plan_root(p, p->steps[id]->operands[k].storage), from = q->now->wave[id];
        if (p->storages[root].kind != STORAGE_ARENA || q->first[root + 1] - q->first[root] > TOUCHES_MANY) continue;
        int32_t low = INT32_MAX, high = -1;
        for (int32_t i = q->first[root]; i < q->first[root + 1]; i++) {
            int32_t wave = q->now->wave[q->touching[i]];
            if (q->touching[i] == id) continue;
            if (wave < low) low = wave;
            if (wave > high) high = wave;
        }
        if (high < 0) continue;
        int32_t before = (from > high ? from : high) - (from < low ? from : low);
        int32_t behind = (to > high ? to : high) - (to < low ? to : low);
        grown += (double)(behind - before) * (double)p->storages[root].stride;
    }
    return grown;
}

/* ----------------------------------------------------------------------------------------------------- moves */

/* The best wave for a step between its own and `limit`. */
static void move_best(polisher *q, int32_t id, int32_t limit) {
    int32_t from = q->now->wave[id], best = from, way = limit > from ? 1 : -1;
    double gained = LEAST_GAIN, left = time_now(q, from) - time_without(q, from, id), most = q->price * bytes_of(q, id);
    int32_t distance = (limit - from) * way, stride = 1 + distance / CANDIDATES;
    for (int32_t d = 1; d <= distance; d += d < CANDIDATES / 2 ? 1 : stride) {
        int32_t to = from + d * way;
        if (!q->waves[to].steps) continue;
        double gain = left - (time_with(q, to, id) - time_now(q, to));
        if (gain + most * d <= gained) continue;
        double lives = lives_grow(q, id, to);
        if (gain - q->price * lives <= gained || (q->lean && lives > 0)) continue;
        best = to;
        gained = gain - q->price * lives;
    }
    if (best == from) return;
    leave(q, id);
    enter(q, best, id);
}

static void pass_back(polisher *q) {
    const scheduler *s = q->s;
    for (int32_t i = s->l->n - 1; i >= 0 && !q->failed; i--) {
        int32_t id = s->l->order[i], limit = q->now->n_waves - 1;
        for (int32_t k = s->after.first[id]; k < s->after.first[id + 1]; k++) {
            int32_t next = s->after.before[k], wave = next < s->p->n_steps ? q->now->wave[next] - 1 : q->bound[next];
            if (wave < limit) limit = wave;
        }
        q->bound[id] = limit;
        if (id < s->p->n_steps && limit > q->now->wave[id]) move_best(q, id, limit);
    }
}

static void pass_forth(polisher *q) {
    const scheduler *s = q->s;
    for (int32_t i = 0; i < s->l->n && !q->failed; i++) {
        int32_t id = s->l->order[i], limit = 0;
        for (int32_t k = s->l->first[id]; k < s->l->first[id + 1]; k++) {
            int32_t last = s->l->before[k], wave = last < s->p->n_steps ? q->now->wave[last] + 1 : q->bound[last];
            if (wave > limit) limit = wave;
        }
        q->bound[id] = limit;
        if (id < s->p->n_steps && limit < q->now->wave[id]) move_best(q, id, limit);
    }
}

static braid_status polish_with(polisher *q, braid_error *err) {
    const plan *p = q->s->p;
    size_t n = (size_t)p->n_steps + 1;
    q->waves = arena_array(q->memory, (size_t)q->now->n_waves + 1, sizeof *q->waves);
    q->next = arena_array(q->memory, n, sizeof *q->next);
    q->previous = arena_array(q->memory, n, sizeof *q->previous);
    q->bound = arena_array(q->memory, (size_t)q->s->l->n + 1, sizeof *q->bound);
    if (!q->waves || !q->next || !q->previous || !q->bound) return error_memory(err);
    TRY(list_touching(q, err));
    for (int32_t w = 0; w < q->now->n_waves; w++) q->waves[w] = (tally){.top = {-1, -1}, .head = -1};
    for (int32_t i = 0; i < p->n_steps && !q->failed; i++) enter(q, q->now->wave[i], i);
    double time = 0, lives = lives_now(q);
    for (int32_t w = 0; w < q->now->n_waves && !q->failed; w++) time += time_now(q, w);
    q->price = lives > 0 ? time / 20 / lives : 0;
    for (int i = 0; i < PASSES && !q->failed; i++) {
        if (i % 2 == 0)
            pass_back(q);
        else
            pass_forth(q);
    }
    return q->failed ? error_memory(err) : BRAID_OK;
}

braid_status schedule_polish(const scheduler *s, schedule *now, bool lean, braid_error *err) {
    polisher q = {.s = s, .now = now, .lean = lean, .memory = arena_new()};
    if (!q.memory) return error_memory(err);
    braid_status status = polish_with(&q, err);
    arena_free(q.memory);
    return status;
}
