/*
 * mm.c: times the product kernels on the products of real networks, every tile and split beside the one that the model
 * of mm_choose picks, and checks sampled elements against double. Through gpu.h alone, no graph.
 *
 *     bench_mm [-d DEVICE] [-n NETWORK] [-s SECONDS] [-t TYPE] [-l LANES] [-o FILE]
 *              [-r REPEATS] [-w MS] [-m MS] [-a] [-f]
 *
 * -s bounds the sweep: products share what is left of it, and what there was no time for is counted. Each variant runs
 * for -w ms of device time first (150), so that clocks are up, then for -m ms at least (100), and its time is the median
 * of programs of -r executions. The chosen one is measured before the others and after them: `drift` is how far its two
 * times are apart. -o writes all of it as JSON. -a prints every variant; -f tries the tiled kernel, and mv for few rows or
 * columns, on software devices too.
 *
 * -l solves every product for so many lanes at once, the weights (A of a convolution, B of a matrix product) shared,
 * folded or not; the chunk stays that of one lane.
 *
 * A line: network times problem: chosen variant, us, GFLOP/s; best variant, its time over the chosen's. A time includes
 * the barrier behind each step. Then for each network the sum over its products, and for each tile the most GFLOP/s that
 * any product reached with it, and with which: the rates of ops/mm_choose.c.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu/gpu.h"
#include "ops/mm_code.h"

#include "products.h"

enum { VARIANTS = 512, TILES = 32 };
#define NAME_SIZE 48

typedef struct product_case {
    const char *network;
    int times;
    int64_t channels, size, outputs, kernel, stride, pad, groups; /* size 0: a matrix product */
    int64_t batch, m, k, n;
    bool transposed;
} product_case;

static const product_case cases[] = {
#define CONV(network, times, c, hw, m, ks, s, p, g) {#network, times, c, hw, m, ks, s, p, g, 0, 0, 0, 0, false},
#define MATMUL(network, times, b, m, k, n, t) {#network, times, 0, 0, 0, 0, 0, 0, 0, b, m, k, n, t},
    PRODUCTS(CONV, MATMUL)};

typedef struct variant {
    mm_cut cut;
    char name[NAME_SIZE];
    double us, create_ms, error;
    char figures[400]; /* what the driver tells of the pipeline */
} variant;

/* The most that a tile reached. */
typedef struct tile_best {
    mm_cut cut;
    double gflops;
    const product_case *of;
} tile_best;

typedef struct bench {
    gpu *g;
    braid_type type;
    uint32_t repeats, lanes;
    double seconds, warm_ms, measure_ms;
    uint64_t deadline; /* of the case at hand, on clock_ns */
    bool all, force;
    FILE *json;
    int cases; /* written to json so far */
    gpu_buffer a, b, c, partial, rows, run;
    float *host_a, *host_b;
    variant list[VARIANTS]; /* of the case at hand; the first is the chosen one */
    size_t n, left_out;
    tile_best tiles[2][TILES]; /* one chunk, several */
} bench;

static void must(braid_status status, const braid_error *err) {
    if (status == BRAID_OK) return;
    fprintf(stderr, "bench_mm: %s\n", err->message);
    exit(4);
}

static braid_status fill_bytes(void *user, uint64_t at, void *to, size_t n, braid_error *err) {
    (void)err;
    memcpy(to, (const char *)user + at, n);
    return BRAID_OK;
}

static void put(bench *t, gpu_buffer *to, const void *from, uint64_t bytes) {
    braid_error err;
    must(gpu_upload(t->g, to, 0, bytes, fill_bytes, (void *)(uintptr_t)from, &err), &err);
}

static gpu_buffer buffer(bench *t, uint64_t bytes) {
    braid_error err;
    gpu_buffer b;
    must(gpu_buffer_new(t->g, GPU_DEVICE, bytes, &b, &err), &err);
    return b;
}

/* A buffer of seeded elements in [-1, 1); the host keeps them as floats. */
static gpu_buffer random_buffer(bench *t, int64_t count, float **host) {
    size_t bytes = (size_t)count * braid_type_bytes(t->type);
    void *data = calloc(1, bytes + 16);
    *host = malloc((size_t)count * sizeof(float));
    uint32_t seed = (uint32_t)count;
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        element_set_f64(t->type, data, i, (double)(seed >> 16) / 32768 - 1);
        (*host)[i] = (float)element_f64(t->type, data, i);
    }
    gpu_buffer b = buffer(t, bytes);
    put(t, &b, data, bytes);
    free(data);
    return b;
}

/* Bytes from lane to lane of an operand that is not shared. */
static uint64_t lane_stride(uint64_t bytes) {
    return (bytes + 255) / 256 * 256;
}

static mm_problem problem_of(const product_case *x, braid_type type, conv *image) {
    mm_problem p = {.type = type, .bias = {.storage = -1}, .alpha = 1, .beta = 1, .groups = 1};
    if (x->size == 0) {
        p.s = (mm_shape){.m = x->m,
                         .n = x->n,
                         .k = x->k,
                         .a_m = x->k,
                         .a_k = 1,
                         .b_k = x->transposed ? 1 : x->n,
                         .b_n = x->transposed ? x->k : 1,
                         .n_batch = 1,
                         .batch = {x->batch},
                         .a_batch = {x->m * x->k},
                         .b_batch = {x->k * x->n}};
        p.b_shared = true;
        p.a.bytes = (uint64_t)(x->batch * x->m * x->k);
        p.b.bytes = (uint64_t)(x->batch * x->k * x->n);
        p.c.bytes = (uint64_t)(x->batch * x->m * x->n);
    } else {
        int64_t out = (x->size + 2 * x->pad - x->kernel) / x->stride + 1, m = x->outputs / x->groups;
        int64_t channels = x->channels / x->groups, k = channels * x->kernel * x->kernel, plane = x->size * x->size;
        *image = (conv){.axes = 2,
                        .groups = x->groups,
                        .batch = 1,
                        .channels = x->channels,
                        .outputs = x->outputs,
                        .in = {x->size, x->size},
                        .out = {out, out},
                        .kernel = {x->kernel, x->kernel},
                        .stride = {x->stride, x->stride},
                        .dilation = {1, 1},
                        .begin = {x->pad, x->pad},
                        .end = {x->pad, x->pad}};
        p.s = (mm_shape){.m = m,
                         .n = out * out,
                         .k = k,
                         .a_m = k,
                         .a_k = 1,
                         .b_k = plane,
                         .b_n = 1,
                         .n_batch = 1,
                         .batch = {x->groups},
                         .a_batch = {m * k},
                         .b_batch = {channels * plane}};
        if (x->kernel != 1 || x->stride != 1) p.image = image;
        p.groups = x->groups;
        p.a_shared = true;
        p.a.bytes = (uint64_t)(x->outputs * k);
        p.b.bytes = (uint64_t)(x->channels * plane);
        p.c.bytes = (uint64_t)(x->outputs * out * out);
    }
    p.a.bytes *= braid_type_bytes(type);
    p.b.bytes *= braid_type_bytes(type);
    p.c.bytes *= braid_type_bytes(type);
    mm_dense(&p.s);
    mm_merge_batch(&p.s);
    return p;
}

/* Element (entry, m, n) of a lane in double. */
static double wanted(const bench *t, const mm_problem *p, uint32_t lane, int64_t entry, int64_t m, int64_t n) {
    const conv *c = p->image;
    const float *a = t->host_a + (p->s.n_batch ? entry * p->s.a_batch[0] : 0);
    const float *b = t->host_b + (p->s.n_batch ? entry * p->s.b_batch[0] : 0);
    if (p->a_shared) b += lane * lane_stride(p->b.bytes) / braid_type_bytes(t->type);
    else a += lane * lane_stride(p->a.bytes) / braid_type_bytes(t->type);
    double sum = 0;
    for (int64_t k = 0; k < p->s.k; k++) {
        int64_t at = k * p->s.b_k + n * p->s.b_n;
        if (c) {
            int64_t tap = k % (c->kernel[0] * c->kernel[1]), channel = k / (c->kernel[0] * c->kernel[1]);
            int64_t h = n / c->out[1] * c->stride[0] - c->begin[0] + tap / c->kernel[1];
            int64_t w = n % c->out[1] * c->stride[1] - c->begin[1] + tap % c->kernel[1];
            if (h < 0 || h >= c->in[0] || w < 0 || w >= c->in[1]) continue;
            at = channel * p->s.b_k + h * c->in[1] + w;
        }
        sum += (double)a[m * p->s.a_m + k * p->s.a_k] * (double)b[at];
    }
    return sum;
}

/* Largest error of some elements, relative to the largest wanted one. */
static double error_of(bench *t, const mm_problem *p) {
    braid_error err;
    uint32_t lane = t->lanes - 1;
    void *c = malloc(p->c.bytes);
    must(gpu_download(t->g, &t->c, lane * lane_stride(p->c.bytes), p->c.bytes, c, &err), &err);
    double worst = 0, largest = 1e-9;
    uint64_t seed = 7, count = p->c.bytes / braid_type_bytes(t->type);
    for (int i = 0; i < 100; i++) {
        seed = seed * 6364136223846793005u + 1;
        int64_t at = (int64_t)((seed >> 33) % count), entry = at / (p->s.m * p->s.n);
        double w = wanted(t, p, lane, entry, at / p->s.n % p->s.m, at % p->s.n), e = fabs(w - element_f64(t->type, c, at));
        if (!(e <= worst)) worst = e;
        if (fabs(w) > largest) largest = fabs(w);
    }
    free(c);
    return worst / largest;
}

/* v (may be NULL): gets what the creation took. */
static uint32_t pipeline_of(bench *t, const mm_code *c, variant *v) {
    uint32_t ids[MM_SPECS + 2] = {SPEC_GROUP, SPEC_SUBGROUP},
                            content[MM_SPECS + 2] = {c->group, gpu_traits(t->g)->subgroup};
    memcpy(ids + 2, c->spec_ids, sizeof c->spec_ids);
    memcpy(content + 2, c->spec, sizeof c->spec);
    gpu_pipeline_key key = {.kernel = c->kernel, .n_spec = c->n_spec + 2, .spec_ids = ids, .spec = content};
    braid_error err;
    uint32_t out;
    must(gpu_pipelines(t->g, 1, &key, &out, NULL, &err), &err);
    gpu_creation made;
    text figures = {0};
    if (!v || !gpu_pipeline_describe(t->g, out, &made)) return out;
    gpu_pipeline_figures(t->g, out, &figures);
    v->create_ms += (double)made.time_ns / 1e6;
    if (!*v->figures && figures.data) snprintf(v->figures, sizeof v->figures, "%s", figures.data);
    for (char *at = v->figures; *at; at++)
        if (*at == '"' || *at == '\\') *at = '\'';
    text_free(&figures);
    return out;
}

static operand direct(const gpu_buffer *b, uint64_t stride) {
    return (operand){.base = b->address, .lane_stride = stride, .kind = OPERAND_DIRECT};
}

static int by_size(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Median ns of a program, warm: GPUs take their time to raise their clocks and drop them while nothing runs. A software
   device has none and runs thrice. */
static uint64_t time_program(bench *t, gpu_program *recorded) {
    enum { MOST = 4096 };
    static uint64_t samples[MOST];
    bool software = gpu_traits(t->g)->software;
    braid_error err;
    gpu_times spent;
    size_t n = 0;
    double total = 0;
    for (double warm = 0; !software && warm < t->warm_ms * 1e6; warm += (double)spent.device_ns)
        must(gpu_program_run(t->g, recorded, &spent, &err), &err);
    while (n < 3 || (n < MOST && !software && total < t->measure_ms * 1e6)) {
        must(gpu_program_run(t->g, recorded, &spent, &err), &err);
        samples[n++] = spent.device_ns;
        total += (double)spent.device_ns;
    }
    qsort(samples, n, sizeof *samples, by_size);
    return samples[n / 2];
}

/* Fills in the times of v->cut and its error. */
static void measure(bench *t, const mm_problem *p, variant *v) {
    mm_cut cut = v->cut;
    mm_code code[2] = {mm_encode(gpu_traits(t->g), p, cut, t->lanes)};
    bool split = cut.splits > 1;
    if (split) code[1] = mm_encode_sum(gpu_traits(t->g), p, cut, t->lanes);
    gpu_dispatch dispatches[2 * 64];
    uint32_t n = 0, steps = split ? 2 : 1;
    row_mm rows[2];
    for (uint32_t i = 0; i < steps; i++) {
        row_mm *r = &code[i].row;
        r->header = (row_header){.tiles = (uint32_t)code[i].tiles};
        operand a = direct(&t->a, p->a_shared ? 0 : lane_stride(p->a.bytes));
        operand b = direct(&t->b, p->a_shared ? lane_stride(p->b.bytes) : 0);
        uint64_t bytes = 0;
        mm_partial_bytes(p, cut, &bytes);
        r->a = code[i].swapped ? b : a;
        r->b = code[i].swapped ? a : b;
        r->c = direct(&t->c, lane_stride(p->c.bytes));
        if (split) r->partial = direct(&t->partial, lane_stride(bytes));
        rows[i] = *r;
    }
    put(t, &t->rows, rows, steps * sizeof *rows);
    uint32_t pipelines[2];
    v->create_ms = 0;
    for (uint32_t i = 0; i < steps; i++) pipelines[i] = pipeline_of(t, &code[i], v);
    for (uint32_t r = 0; r < t->repeats; r++)
        for (uint32_t i = 0; i < steps; i++, n++)
            dispatches[n] = (gpu_dispatch){.pipeline = pipelines[i],
                                           .wave = n,
                                           .row_bytes = sizeof *rows,
                                           .rows = t->rows.address + i * sizeof *rows,
                                           .n_rows = 1,
                                           .tiles = code[i].tiles,
                                           .folded = code[i].folded};
    gpu_program_info info = {
        .dispatches = dispatches, .n_dispatches = n, .run_block = t->run.address, .lanes = t->lanes, .timestamps = true};
    gpu_program *recorded;
    braid_error err;
    must(gpu_program_new(t->g, &info, &recorded, &err), &err);
    v->us = (double)time_program(t, recorded) / 1000 / t->repeats;
    gpu_program_free(t->g, recorded);
    v->error = error_of(t, p);
}

static void name_cut(const mm_cut *c, char out[static NAME_SIZE]) {
    if (c->vector)
        snprintf(out, NAME_SIZE, "mv %u of %u, %ux%u/%u", c->bm, c->chunk, c->tm, c->bn, c->group);
    else if (c->bk == 0)
        snprintf(out, NAME_SIZE, "direct %ux%u/%u", c->tm, c->tn, c->group);
    else
        snprintf(out, NAME_SIZE, "%ux%ux%u/%ux%u s%u%s", c->bm, c->bn, c->bk, c->tm, c->tn, c->splits,
                 c->fold == FOLD_N ? " fold n" : c->fold == FOLD_M ? " fold m" : "");
}

typedef struct tally {
    double chosen, best;
    size_t products, done;
} tally;

static bool same_cut(const mm_cut *a, const mm_cut *b) {
    return a->vector == b->vector && a->bm == b->bm && a->bn == b->bn && a->bk == b->bk && a->tm == b->tm &&
           a->tn == b->tn && a->chunk == b->chunk && a->splits == b->splits && a->group == b->group && a->fold == b->fold;
}

/* Measures a cut unless it is there already or time is up. */
static void try_cut(bench *t, const mm_problem *p, const mm_cut *c) {
    for (size_t i = 0; i < t->n; i++)
        if (same_cut(&t->list[i].cut, c)) return;
    if (t->n == VARIANTS || (t->n && clock_ns() >= t->deadline)) {
        t->left_out++;
        return;
    }
    variant *v = &t->list[t->n++];
    *v = (variant){.cut = *c};
    name_cut(c, v->name);
    measure(t, p, v);
}

/* Every chunk and width of kernel mv. */
static void vectors_of(bench *t, const mm_problem *p) {
    mm_cut c;
    if (!mm_vector_choose(gpu_traits(t->g), p, 1, &c)) return;
    for (uint32_t chunk = 32; chunk <= 512 && (chunk == 32 || chunk < p->s.k); chunk *= 2)
        for (uint32_t across = 1; across <= 128; across *= 2)
            if (mm_vector_cut(gpu_traits(t->g), p, chunk, across, &c) && c.group >= 32 && c.group <= 512)
                try_cut(t, p, &c);
}

/* Every tile, fold and split for many lanes: the chunk is given. */
static void tiles_of_lanes(bench *t, const mm_problem *p, uint32_t chunk) {
    for (size_t i = 0; i < mm_tile_count(); i++)
        for (int fold = FOLD_NONE; fold <= FOLD_M; fold++)
            for (int split = 0; split <= (p->s.k > (int64_t)chunk); split++) {
                mm_cut c = mm_tile(i);
                c.chunk = chunk;
                c.fold = (mm_fold)fold;
                c.splits = split ? ((uint32_t)p->s.k - 1) / chunk + 1 : 1;
                uint64_t bytes;
                if (!mm_fits(gpu_traits(t->g), &c, t->type) || (p->image && c.group % c.bn != 0)) continue;
                if ((fold == FOLD_N && !p->a_shared) || (fold == FOLD_M && !p->b_shared)) continue;
                if (!mm_partial_bytes(p, c, &bytes) || lane_stride(bytes) * t->lanes > t->partial.bytes) continue;
                try_cut(t, p, &c);
            }
}

/* Every tile and split of the problem. */
static void tiles_of(bench *t, const mm_problem *p) {
    static const uint32_t splits[] = {1, 2, 4, 8, 16, 32};
    for (size_t i = 0; i < mm_tile_count(); i++)
        for (size_t s = 0; s < COUNT_OF(splits); s++) {
            mm_cut c = mm_tile(i);
            if (!mm_fits(gpu_traits(t->g), &c, t->type)) continue;
            c.chunk = ((uint32_t)p->s.k / splits[s] + 31) / 32 * 32;
            if (c.chunk == 0) c.chunk = 32;
            if ((p->image && c.group % c.bn != 0) || (s && c.chunk < 64)) continue;
            c.splits = s ? ((uint32_t)p->s.k - 1) / c.chunk + 1 : 1;
            if (s == 0) c.chunk = ((uint32_t)p->s.k + 31) / 32 * 32;
            uint64_t bytes;
            mm_partial_bytes(p, c, &bytes);
            uint64_t groups = (uint64_t)((p->s.m - 1) / c.bm + 1) * (uint64_t)((p->s.n - 1) / c.bn + 1) * c.splits;
            if (bytes > t->partial.bytes || (s && groups > 4096)) continue;
            try_cut(t, p, &c);
        }
    vectors_of(t, p);
}

/* ---- what was measured */

static double limit_of(const bench *t) {
    return t->type == BRAID_FLOAT32 ? 1e-4 : 1e-2;
}

static void print_variant(const bench *t, const variant *v, double flops) {
    printf("    %-26s %9.2f us %8.0f GFLOP/s %6.3f of the chosen's time, created in %.0f ms%s%s%s\n", v->name, v->us,
           flops / v->us * 1e-3, v->us / t->list[0].us, v->create_ms, *v->figures ? ": " : "", v->figures,
           v->error > limit_of(t) ? "  WRONG" : "");
}

static void json_variant(const bench *t, const variant *v, double flops, bool first) {
    const mm_cut *c = &v->cut;
    fprintf(t->json,
            "%s\n   {\"name\": \"%s\", \"tile\": [%u, %u, %u, %u, %u], \"fold\": %d, \"splits\": %u, \"chunk\": %u, "
            "\"us\": %.3f, \"gflops\": %.1f, \"over_chosen\": %.4f, \"create_ms\": %.1f, \"figures\": \"%s\", "
            "\"wrong\": %s}",
            first ? "" : ",", v->name, c->bm, c->bn, c->bk, c->tm, c->tn, (int)c->fold, c->splits, c->chunk, v->us,
            flops / v->us * 1e-3, v->us / t->list[0].us, v->create_ms, v->figures,
            v->error > limit_of(t) ? "true" : "false");
}

static void json_case(bench *t, const product_case *x, const mm_problem *p, double flops, double drift) {
    if (!t->json) return;
    fprintf(t->json,
            "%s\n  {\"network\": \"%s\", \"times\": %d, \"m\": %lld, \"n\": %lld, \"k\": %lld, \"batch\": %lld, "
            "\"image\": %s, \"drift\": %.4f, \"left_out\": %zu, \"variants\": [",
            t->cases++ ? "," : "", x->network, x->times, (long long)p->s.m, (long long)p->s.n, (long long)p->s.k,
            (long long)mm_batches(&p->s), p->image ? "true" : "false", drift, t->left_out);
    for (size_t i = 0; i < t->n; i++) json_variant(t, &t->list[i], flops, i == 0);
    fprintf(t->json, "]}");
    fflush(t->json);
}

/* The tile's place in the table of mm_choose; TILES: not of kernel mm. */
static size_t tile_index(const mm_cut *c) {
    for (size_t i = 0; i < mm_tile_count() && i < TILES && !c->vector; i++) {
        mm_cut tile = mm_tile(i);
        if (tile.bm == c->bm && tile.bn == c->bn && tile.bk == c->bk && tile.tm == c->tm && tile.tn == c->tn) return i;
    }
    return TILES;
}

static void keep_tiles(bench *t, const product_case *x, const mm_problem *p, double flops) {
    for (size_t i = 0; i < t->n; i++) {
        const variant *v = &t->list[i];
        size_t at = tile_index(&v->cut);
        if (at == TILES || v->cut.splits > 1) continue;
        tile_best *b = &t->tiles[p->s.k > (int64_t)v->cut.chunk][at];
        double gflops = flops / v->us * 1e-3;
        if (gflops > b->gflops) *b = (tile_best){v->cut, gflops, x};
    }
}

static void print_tiles(const bench *t) {
    static const char *const what[] = {"one chunk", "several chunks"};
    uint32_t cores = gpu_traits(t->g)->cores;
    for (int s = 0; s < 2; s++)
        for (size_t i = 0; i < TILES; i++) {
            const tile_best *b = &t->tiles[s][i];
            if (!b->of) continue;
            char name[NAME_SIZE];
            name_cut(&b->cut, name);
            printf("tile %-26s %-14s at most %8.0f GFLOP/s, %6.1f of each of %u cores (%s)\n", name, what[s], b->gflops,
                   b->gflops / cores, cores, b->of->network);
        }
}

/* ---- cases */

static double flops_of(const bench *t, const mm_problem *p) {
    return 2.0 * t->lanes * (double)p->s.m * (double)p->s.n * (double)p->s.k * (double)mm_batches(&p->s);
}

/* Measures the chosen one, all others, and the chosen one again. Returns how much slower that was the second time. */
static double measure_all(bench *t, const mm_problem *p) {
    mm_cut cut = mm_choose(gpu_traits(t->g), p, t->lanes);
    t->n = t->left_out = 0;
    try_cut(t, p, &cut);
    if (gpu_traits(t->g)->software && !t->force) return 1;
    if (t->lanes > 1) tiles_of_lanes(t, p, cut.chunk);
    else tiles_of(t, p);
    variant again = {.cut = cut};
    measure(t, p, &again);
    double drift = again.us / t->list[0].us;
    if (drift < 1) t->list[0].us = again.us;
    return drift;
}

static int by_us(const void *a, const void *b) {
    double x = ((const variant *)a)->us, y = ((const variant *)b)->us;
    return (x > y) - (x < y);
}

static tally report_case(bench *t, const product_case *x, const mm_problem *p, double drift) {
    double flops = flops_of(t, p);
    const variant *chosen = &t->list[0], *best = chosen;
    bool wrong = false;
    for (size_t i = 0; i < t->n; i++) {
        if (t->list[i].us < best->us) best = &t->list[i];
        wrong = wrong || t->list[i].error > limit_of(t);
    }
    printf("%-10s x%-2d m %5lld n %6lld k %5lld b %3lld %s: %-26s %9.2f us %8.0f GFLOP/s; best %-26s %.3f%s", x->network,
           x->times, (long long)p->s.m, (long long)p->s.n, (long long)p->s.k, (long long)mm_batches(&p->s),
           p->image ? "image " : "matrix", chosen->name, chosen->us, flops / chosen->us * 1e-3, best->name,
           best->us / chosen->us, wrong ? "  WRONG" : "");
    if (drift > 1.05 || drift < 0.95) printf("  drift %.2f", drift);
    if (t->left_out) printf("  %zu left out", t->left_out);
    putchar('\n');
    tally sum = {.chosen = chosen->us, .best = best->us};
    json_case(t, x, p, flops, drift);
    keep_tiles(t, x, p, flops);
    if (t->all) {
        qsort(t->list + 1, t->n - 1, sizeof *t->list, by_us);
        for (size_t i = 0; i < t->n; i++) print_variant(t, &t->list[i], flops);
    }
    fflush(stdout);
    return sum;
}

static tally run_case(bench *t, const product_case *x) {
    conv image;
    mm_problem p = problem_of(x, t->type, &image);
    int64_t size = (int64_t)braid_type_bytes(t->type);
    uint64_t lanes_a = p.a_shared ? 1 : t->lanes, lanes_b = p.a_shared ? t->lanes : 1;
    t->a = random_buffer(t, (int64_t)(lane_stride(p.a.bytes) * lanes_a) / size, &t->host_a);
    t->b = random_buffer(t, (int64_t)(lane_stride(p.b.bytes) * lanes_b) / size, &t->host_b);
    t->c = buffer(t, lane_stride(p.c.bytes) * t->lanes);
    double drift = measure_all(t, &p);
    tally sum = report_case(t, x, &p, drift);
    gpu_buffer_free(t->g, &t->a);
    gpu_buffer_free(t->g, &t->b);
    gpu_buffer_free(t->g, &t->c);
    free(t->host_a);
    free(t->host_b);
    return sum;
}

static bool wanted_case(const char *network, size_t i) {
    return !network || strcmp(network, cases[i].network) == 0;
}

/* The sums of a network, over those of its products that there was time for. */
static void print_sums(const char *network, const tally *sum) {
    printf("%s: chosen %.1f us, best %.1f us, %.3f", network, sum->chosen, sum->best, sum->best / sum->chosen);
    if (sum->done < sum->products) printf(": %zu of %zu products, no time for more", sum->done, sum->products);
    putchar('\n');
}

static void run_cases(bench *t, const char *network) {
    uint64_t start = clock_ns(), end = start + (uint64_t)(t->seconds * 1e9);
    tally total = {0};
    size_t left = 0;
    for (size_t i = 0; i < COUNT_OF(cases); i++) left += wanted_case(network, i);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (!wanted_case(network, i)) continue;
        uint64_t now = clock_ns();
        t->deadline = t->seconds > 0 ? now + (end > now ? end - now : 0) / left : UINT64_MAX;
        left--;
        total.products++;
        if (t->seconds == 0 || now < end) {
            tally one = run_case(t, &cases[i]);
            total.chosen += one.chosen * cases[i].times;
            total.best += one.best * cases[i].times;
            total.done++;
        }
        bool last = i + 1 == COUNT_OF(cases) || strcmp(cases[i].network, cases[i + 1].network) != 0;
        if (!last) continue;
        print_sums(cases[i].network, &total);
        total = (tally){0};
    }
}

static bool read_option(bench *t, braid_device_options *options, const char **network, const char **out, char letter,
                        const char *content) {
    switch (letter) {
    case 'd': options->select = content; return true;
    case 'n': *network = content; return true;
    case 'o': *out = content; return true;
    case 's': t->seconds = atof(content); return true;
    case 'w': t->warm_ms = atof(content); return true;
    case 'm': t->measure_ms = atof(content); return true;
    case 't': t->type = type_from_name(content); return true;
    case 'r': t->repeats = (uint32_t)atoi(content); return true;
    case 'l': t->lanes = (uint32_t)atoi(content); return true;
    default: return false;
    }
}

static bool read_options(bench *t, int argc, char **argv, braid_device_options *options, const char **network,
                         const char **out) {
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        if (!strcmp(a, "-a")) t->all = true;
        else if (!strcmp(a, "-f")) t->force = true;
        else if (a[0] != '-' || !a[1] || a[2] || i + 1 == argc || !read_option(t, options, network, out, a[1], argv[++i]))
            return false;
    }
    return t->repeats >= 1 && t->repeats <= 64 && t->lanes >= 1 && t->lanes <= 4096 && type_is_float(t->type);
}

static void json_begin(bench *t, const char *path) {
    braid_device_info info;
    gpu_describe(t->g, &info);
    if (!(t->json = fopen(path, "w"))) {
        fprintf(stderr, "bench_mm: cannot write '%s'\n", path);
        exit(4);
    }
    fprintf(t->json, "{\"device\": \"%s\", \"cores\": %u, \"type\": \"%s\", \"lanes\": %u, \"products\": [", info.name,
            gpu_traits(t->g)->cores, braid_type_name(t->type), t->lanes);
}

int main(int argc, char **argv) {
    const char *network = NULL, *out = NULL;
    braid_device_options options = {.size = sizeof options, .no_cache = true, .pipeline_figures = true};
    static bench t = {.type = BRAID_FLOAT32, .repeats = 20, .lanes = 1, .warm_ms = 150, .measure_ms = 100};
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!read_options(&t, argc, argv, &options, &network, &out)) {
        fprintf(stderr, "usage: bench_mm [-d DEVICE] [-n NETWORK] [-s SECONDS] [-t TYPE] [-l LANES] [-o FILE]\n"
                        "                [-r REPEATS] [-w MS] [-m MS] [-a] [-f]\n");
        return 2;
    }
    braid_error err;
    must(gpu_open(&options, &t.g, &err), &err);
    if (out) json_begin(&t, out);
    t.partial = buffer(&t, (uint64_t)(t.lanes > 1 ? 1024 : 64) << 20);
    t.rows = buffer(&t, 2 * sizeof(row_mm));
    t.run = buffer(&t, 4096);
    run_block run = {.lanes = t.lanes};
    put(&t, &t.run, &run, sizeof run);
    run_cases(&t, network);
    print_tiles(&t);
    if (t.json) {
        fprintf(t.json, "]}\n");
        fclose(t.json);
    }
    gpu_buffer_free(t.g, &t.partial);
    gpu_buffer_free(t.g, &t.rows);
    gpu_buffer_free(t.g, &t.run);
    gpu_close(t.g);
    return 0;
}
