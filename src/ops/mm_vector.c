/*
 * mm_vector.c: products with few rows or columns: how kernel mv cuts them. Reading the large matrix once is the cost, so
 * a cut is made of enough invocations to keep the memory busy: columns first, then chunks of k.
 */
#include "ops/mm_code.h"

enum {
    SKINNY_MAX = 8,
    CHUNK_STEP = 32,
    CHUNK_MAX = 4096,
    STAGED_THREADS = 512, /* invocations wanted on a core: one column each */
    DIRECT_THREADS = 256, /* four columns each */
    WALKERS_MAX = 64,     /* chunks side by side in a workgroup */
    STAGED_CHUNKS = 32,   /* staged rows of A are read again by every workgroup: rather more columns than chunks */
    GROUP = 192,          /* invocations of a workgroup, at most, except with many chunks */
    DIRECT_STEP = 8,      /* k in flight */
    LITTLE_WALKERS = 16   /* chunks that a workgroup of a small product has room for */
};

static int64_t up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

bool mm_vector_swapped(const mm_problem *p) {
    return p->s.n < p->s.m;
}

uint32_t mm_vector_load(const mm_problem *p) {
    const mm_shape *s = &p->s;
    if (mm_vector_swapped(p)) return mm_load_kind(p, &p->a, s->a_batch, s->m, s->a_m, s->a_k);
    return mm_load_kind(p, &p->b, s->b_batch, s->n, s->b_n, s->b_k);
}

static bool staged(const mm_problem *p) {
    uint32_t load = mm_vector_load(p);
    return load == LOAD_K4 || load == LOAD_K;
}

static uint32_t shared_bytes(const mm_cut *c, bool through) {
    uint32_t steps = through ? c->bm * (c->bn + c->tm) * (c->bk / 4 + 1) * 16 : 32;
    return steps + c->bm * c->tm * c->bn * 4;
}

bool mm_vector_cut(const device_traits *device, const mm_problem *p, uint32_t chunk, uint32_t across, mm_cut *out) {
    bool through = staged(p);
    mm_cut c = {.vector = true, .splits = 1, .chunk = chunk};
    int64_t chunks = up(p->s.k, chunk);
    c.tm = (uint32_t)(mm_vector_swapped(p) ? p->s.n : p->s.m);
    c.tn = mm_vector_load(p) == LOAD_ROW4 ? 4 : 1;
    c.bn = across * c.tn;
    c.bk = !through ? DIRECT_STEP : c.tm > 4 ? 16 : 32;
    c.bm = (uint32_t)(chunks < WALKERS_MAX ? chunks : WALKERS_MAX);
    while (c.bm > 1 && (c.bm * across > device->max_invocations || shared_bytes(&c, through) > device->shared_bytes))
        c.bm = (c.bm + 1) / 2;
    c.group = c.bm * across;
    *out = c;
    return c.group <= device->max_invocations && shared_bytes(&c, through) <= device->shared_bytes;
}

/* Products of little work take latency, not work: those of all lengths share a pipeline, hence a dispatch. Chunks that
   are not there add nothing. */
static void widen(const device_traits *device, mm_cut *c) {
    mm_cut wide = *c;
    wide.bm = LITTLE_WALKERS;
    wide.group = c->group / c->bm * wide.bm;
    if (wide.group <= device->max_invocations && shared_bytes(&wide, false) <= device->shared_bytes) *c = wide;
}

/* Threads along the columns of a workgroup with this many chunks: wide ones read the rows seldom, as long as there are
   some for every core. */
static uint32_t width(int64_t columns, int64_t batches, int64_t walkers, int64_t cores, int64_t least) {
    int64_t across = least;
    while (across * 2 * walkers <= GROUP && across < columns) across *= 2;
    while (across > least && across * walkers > 32 && up(columns, across) * batches * 2 <= cores) across /= 2;
    return (uint32_t)across;
}

bool mm_vector_choose(const device_traits *device, const mm_problem *p, uint32_t problems, mm_cut *out) {
    int64_t rows = p->s.m < p->s.n ? p->s.m : p->s.n, columns = p->s.m < p->s.n ? p->s.n : p->s.m;
    int64_t batches = mm_batches(&p->s), cores = device->cores ? device->cores : 1;
    bool real = type_is_float(p->type) && p->type != BRAID_FLOAT64;
    if (!real || p->image || p->transposed || rows > SKINNY_MAX || p->s.k == 0) return false;
    if (columns * batches < 32 && p->s.k > 2 * CHUNK_MAX) return false; /* too few workgroups: mm splits k over more */
    bool through = staged(p);
    if (mm_vector_load(p) == LOAD_ROW4) columns /= 4;
    int64_t chunks = up(cores * (through ? STAGED_THREADS : DIRECT_THREADS), columns * batches);
    int64_t most = through ? STAGED_CHUNKS : WALKERS_MAX;
    if (chunks > most) chunks = most;
    int64_t chunk = up(up(p->s.k, chunks), CHUNK_STEP) * CHUNK_STEP;
    if (chunk > CHUNK_MAX) chunk = CHUNK_MAX;
    int64_t walkers = up(p->s.k, chunk);
    if (walkers > WALKERS_MAX) walkers = WALKERS_MAX;
    int64_t least = !through ? 2 : rows > 4 ? 4 : 1; /* rows read again by every workgroup; a sector of columns */
    int64_t entries = batches * problems;
    bool little = !through && walkers > 1 && walkers < LITTLE_WALKERS && up(columns, least) * entries <= 2 * cores;
    uint32_t across = little ? (uint32_t)least : width(columns, entries, walkers, cores, least);
    if (!mm_vector_cut(device, p, (uint32_t)chunk, across, out)) return false;
    if (little) widen(device, out);
    return true;
}
