/*
 * mm_choose.c: tile and chunk of a product, by a small model of the device: a core works on its tiles either at the
 * tile's rate of multiply-adds or, with few of them, at the pace of one tile's memory latency.
 */
#include "ops/mm_code.h"

/* rate: multiply-adds a cycle that a core reaches with a tile when it has enough of them; finish: hundredths of a cycle
   that it takes to write a result. `chunking` is what the length of a chunk is found with, which fixes the order of sums:
   a change there changes bits. `running`, for tiles, folds and splits, is fitted to times of 1, 8 and 64 problems on an
   H200, those of six networks, each with every tile. */
#define TILE(m, n, k, rows, columns, chunking, rate, finish) \
    {{.bm = m, .bn = n, .bk = k, .tm = rows, .tn = columns, .splits = 1}, {chunking, 0}, {rate, finish}}
typedef struct speed {
    int rate, finish;
} speed;
static const struct {
    mm_cut cut;
    speed chunking, running;
} tiles[] = {TILE(128, 128, 16, 8, 8, 96, 80, 98), TILE(64, 128, 16, 8, 8, 90, 49, 115),
             TILE(128, 64, 16, 8, 8, 90, 40, 110), TILE(64, 64, 16, 8, 4, 76, 56, 92),
             TILE(64, 64, 16, 4, 4, 64, 52, 52),   TILE(32, 64, 16, 4, 4, 56, 46, 73),
             TILE(64, 32, 16, 4, 4, 56, 51, 105),  TILE(32, 32, 32, 4, 4, 48, 26, 320),
             TILE(32, 32, 32, 2, 4, 36, 30, 170),  TILE(16, 64, 32, 2, 4, 32, 26, 260),
             TILE(16, 32, 32, 2, 4, 28, 28, 320)};
enum {
    FUSED_PERCENT = 190,  /* of the time for a result, with an epilogue */
    CHUNKED_PERCENT = 92  /* of a rate, where totals stand beside the sums */
};

enum {
    CHUNK_STEP = 32,         /* every BK divides it */
    CHUNK_MAX = 4096,        /* longer sums are cut for accuracy */
    PARTIAL_MAX = 256 << 20, /* bytes of partial sums of all problems: scratch memory */
    CACHE_BYTES = 40,        /* of mv, a cycle of each core */
    GROUP_CYCLES = 600       /* of mv: what a workgroup costs its core beside them */
};

/* What the model takes for a device's pace, in cycles of a core. */
typedef struct pace {
    double step;       /* a step of BK alone on its core: once, */
    double step_k;     /* for each k; each k and */
    double step_mac;   /* for each multiply-add of an invocation */
    double result;     /* of an invocation, to be written */
    double rows;       /* looking up rows that are folded along m */
    double sum;        /* the second step of a split: a barrier and a launch */
    double sum_bytes;  /* of partial sums, a cycle */
} pace;
/* As above. */
static const pace pace_chunking = {.step = 500, .step_k = 16, .sum = 4500, .sum_bytes = 1500};
static const pace pace_running = {.step = 500, .step_k = 20, .step_mac = 3, .result = 300, .rows = 3400,
                                  .sum = 17500, .sum_bytes = 3000};

size_t mm_tile_count(void) {
    return COUNT_OF(tiles);
}
mm_cut mm_tile(size_t i) {
    mm_cut c = tiles[i].cut;
    c.group = c.bm / c.tm * (c.bn / c.tn);
    return c;
}

bool mm_fits(const device_traits *device, const mm_cut *c, braid_type type) {
    bool real = type_is_float(type) && type != BRAID_FLOAT64;
    uint32_t vectors = c->bk * (c->bm / 4 + 1 + c->bn / 4 + 2); /* of a stage, taps included */
    if (!real && c->tm > 2) return false;                       /* 64-bit sums take twice the registers */
    return c->group <= device->max_invocations && vectors * 32 <= device->shared_bytes; /* 2 stages of 16, 1 of 32 */
}

static int64_t up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static double step_cycles(const mm_cut *c, const pace *at) {
    return at->step + c->bk * (at->step_k + c->tm * c->tn * at->step_mac);
}

static double cycles(const mm_problem *p, const mm_dims *d, const mm_cut *c, speed of, int64_t cores, const pace *at) {
    int64_t groups = up(d->m, c->bm) * up(d->n, c->bn) * d->entries * c->splits, rounds = up(groups, cores);
    int64_t k = p->s.k < (int64_t)c->chunk || c->splits == 1 ? p->s.k : (int64_t)c->chunk;
    int64_t resident = c->group >= 256 ? 2 : c->group >= 128 ? 4 : 8;
    double fused = p->fused && c->splits == 1 ? FUSED_PERCENT / 100.0 : 1, finish = of.finish / 100.0 * fused;
    double results = (double)rounds * c->bm * c->bn, busy = results * (double)k / of.rate + results * finish;
    double group = (double)up(k, c->bk) * step_cycles(c, at) + c->tm * c->tn * at->result * fused +
                   (c->fold == FOLD_M ? at->rows : 0);
    double stalled = (double)up(rounds, resident) * group, sum = 0;
    if (c->splits > 1) sum = at->sum + (double)c->splits * (double)(d->m * d->n * d->entries) * 8 / at->sum_bytes;
    return (busy > stalled ? busy : stalled) + sum;
}

/* Kernel mms: tm rows that a workgroup shares, tn columns of each invocation. */
static mm_cut direct_cut(const device_traits *device, const mm_problem *p, int64_t batches) {
    mm_cut c = {.group = 8, .splits = 1, .chunk = p->s.k ? (uint32_t)p->s.k : 1};
    c.tm = p->s.m <= 1 ? 1 : p->s.m <= 2 ? 2 : p->s.m <= 4 ? 4 : 8;
    c.tn = device->software ? (p->s.n <= 8 ? 1 : c.tm == 8 ? 2 : 4) : 4;
    if (!device->software) {
        c.group = p->s.n <= 96 ? 64 : 128;
        int64_t rows = up(p->s.m, c.tm) * batches, wanted = 8 * (int64_t)device->cores;
        while (c.tn > 1 && rows * up(p->s.n, c.group * c.tn) < wanted) c.tn /= 2;
    }
    c.bm = c.tm;
    c.bn = c.tn * c.group;
    return c;
}

/* Convolutions of few outputs and short sums: nothing to share between rows. */
static bool is_direct(const device_traits *device, const mm_problem *p) {
    return device->software || p->transposed || (p->image && p->s.m <= 4 && p->s.k <= 256) ||
           (p->image && p->s.m <= 8 && p->s.k <= 64);
}

/* The length of a chunk, from one problem alone, with the tile and the splits for which it was found; or the cut for
   kernel mv. */
static mm_cut choose_chunk(const device_traits *device, const mm_problem *p) {
    static const int64_t splits[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48};
    int64_t cores = device->cores ? device->cores : 1;
    mm_dims d = {p->s.m, p->s.n, mm_batches(&p->s)};
    mm_cut best = {0};
    if (mm_vector_choose(device, p, 1, &best)) return best;
    best = (mm_cut){0};
    double best_cycles = 0;
    for (size_t t = 0; t < COUNT_OF(tiles); t++) {
        mm_cut c = mm_tile(t);
        if (!mm_fits(device, &c, p->type) || (p->image && c.group % c.bn != 0)) continue;
        for (size_t i = 0; i < COUNT_OF(splits); i++) {
            int64_t chunk = up(up(p->s.k, splits[i]), CHUNK_STEP) * CHUNK_STEP;
            if (i > 0 && (chunk < 2 * CHUNK_STEP || up(p->s.k, chunk) < 2)) break;
            c.splits = (uint32_t)(i == 0 ? 1 : up(p->s.k, chunk));
            c.chunk = (uint32_t)(chunk > CHUNK_MAX ? CHUNK_MAX : chunk ? chunk : CHUNK_STEP);
            if (c.splits > 1) c.splits = (uint32_t)up(p->s.k, c.chunk);
            double now = cycles(p, &d, &c, tiles[t].chunking, cores, &pace_chunking);
            if (best.bm && now >= best_cycles) continue;
            best = c;
            best_cycles = now;
        }
    }
    return best;
}

/* Kernel mv reads the large matrix once for each problem, from the cache after the first. */
static double vector_cycles(const mm_problem *p, const mm_cut *c, uint32_t problems, int64_t cores) {
    int64_t columns = p->s.m > p->s.n ? p->s.m : p->s.n, k = p->s.k < (int64_t)c->chunk ? p->s.k : (int64_t)c->chunk;
    double entries = (double)mm_batches(&p->s) * problems, bytes = (double)p->s.k * (double)columns * 4;
    double core = (double)up(columns, c->bn) * GROUP_CYCLES + bytes / CACHE_BYTES;
    return (double)up(k, c->bk) * step_cycles(c, &pace_chunking) + core * entries / (double)cores;
}

static bool may_fold(const mm_problem *p, const mm_cut *c, uint32_t problems, mm_fold fold) {
    if (fold == FOLD_NONE) return true;
    if (problems == 1 && mm_images(p) == 1) return false;
    if (p->transposed || (p->image && fold == FOLD_M)) return false;
    bool shared = problems == 1 || (fold == FOLD_N ? p->a_shared : p->b_shared);
    return shared && c->group % (fold == FOLD_N ? c->bn : c->bm) == 0;
}

/* May its partial sums be kept, those of all problems. */
static bool may_split(const mm_problem *p, const mm_cut *c, uint32_t problems) {
    uint64_t bytes;
    return c->splits == 1 || (mm_partial_bytes(p, *c, &bytes) && bytes <= PARTIAL_MAX / problems);
}

#define NEVER 1e12 /* times dearer */

typedef struct search {
    const device_traits *device;
    const mm_problem *p;
    uint32_t problems;
    bool many;     /* problems or images */
    mm_cut best;
    double cycles; /* of the best; 0: none yet */
} search;

/* Tries every tile and fold with this chunk. */
static void search_chunk(search *q, uint32_t chunk) {
    const mm_problem *p = q->p;
    int64_t cores = q->device->cores ? q->device->cores : 1, splits = p->s.k ? up(p->s.k, chunk) : 1;
    for (size_t t = 0; t < COUNT_OF(tiles); t++) {
        mm_cut c = mm_tile(t);
        if (!mm_fits(q->device, &c, p->type) || (p->image && c.group % c.bn != 0)) continue;
        c.chunk = chunk;
        for (int fold = FOLD_NONE; fold <= FOLD_M; fold++) {
            mm_dims d;
            c.fold = (mm_fold)fold;
            if (!may_fold(p, &c, q->problems, c.fold) || !mm_extent(p, c.fold, q->problems, &d)) continue;
            for (int split = 0; split <= (splits > 1); split++) {
                c.splits = split ? (uint32_t)splits : 1;
                if (!may_split(p, &c, q->problems)) continue;
                speed of = tiles[t].running;
                if (splits > 1 && !split) of.rate = of.rate * CHUNKED_PERCENT / 100;
                double now = cycles(p, &d, &c, of, cores, &pace_running);
                if (!fold && q->many && q->device->fold_always) now *= NEVER;
                if (!split && q->many && q->device->split_always) now *= NEVER;
                if (q->cycles > 0 && now >= q->cycles) continue;
                q->best = c;
                q->cycles = now;
            }
        }
    }
}

/* The best way to work in these chunks; where the order of sums is free, many problems may be summed in one piece. */
static mm_cut choose_cut(const device_traits *device, const mm_problem *p, uint32_t problems, mm_cut first) {
    search q = {device, p, problems, problems > 1 || mm_images(p) > 1, first, 0};
    if (first.vector && !q.many) return first;
    if (first.vector && mm_vector_choose(device, p, problems, &q.best))
        q.cycles = vector_cycles(p, &q.best, problems, device->cores ? device->cores : 1);
    if (device->fold_always || device->split_always) q.cycles *= NEVER * NEVER;
    search_chunk(&q, first.chunk);
    int64_t whole = up(p->s.k, CHUNK_STEP) * CHUNK_STEP;
    if (q.many && p->free_order && whole > first.chunk)
        search_chunk(&q, (uint32_t)(whole > CHUNK_MAX ? CHUNK_MAX : whole));
    return q.best;
}

mm_cut mm_choose(const device_traits *device, const mm_problem *p, uint32_t problems) {
    mm_cut cut;
    if (mm_depthwise_choose(device, p, problems, &cut)) return cut;
    if (is_direct(device, p)) return direct_cut(device, p, mm_batches(&p->s) * problems);
    mm_cut first = choose_chunk(device, p);
    return first.bm ? choose_cut(device, p, problems, first) : first;
}
