/*
 * mm.c: times the product kernels on the products of real networks, every tile and split beside the one that the model
 * of mm_choose picks, and checks sampled elements against double. Through gpu.h alone, no graph.
 *
 *     bench_mm [-d DEVICE] [-n NETWORK] [-r REPEATS] [-t TYPE] [-l LANES] [-s MS] [-a] [-f]
 *
 * -s: how long the device is kept busy with each variant (100 ms), so that its clocks stay up. -a prints every variant; -f tries the tiled kernel, and mv for few rows or columns, on software devices too.
 *
 * -l solves every product for so many lanes at once, the weights (A of a convolution, B of a matrix product) shared,
 * folded or not; the chunk stays that of one lane.
 *
 * A line: network times problem: chosen variant, µs, GFLOP/s; best variant, µs. A time includes the barrier behind each
 * step. Last, for each network, the sum over its products as chosen and as best.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu/gpu.h"
#include "ops/mm_code.h"

#include "products.h"

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

typedef struct bench {
    gpu *g;
    braid_type type;
    uint32_t repeats, lanes;
    uint64_t busy_ns;
    bool all, force;
    gpu_buffer a, b, c, partial, rows, run;
    float *host_a, *host_b;
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

static uint32_t pipeline_of(bench *t, const mm_code *c) {
    uint32_t ids[MM_SPECS + 2] = {SPEC_GROUP, SPEC_SUBGROUP},
                            content[MM_SPECS + 2] = {c->group, gpu_traits(t->g)->subgroup};
    memcpy(ids + 2, c->spec_ids, sizeof c->spec_ids);
    memcpy(content + 2, c->spec, sizeof c->spec);
    gpu_pipeline_key key = {.kernel = c->kernel, .n_spec = c->n_spec + 2, .spec_ids = ids, .spec = content};
    braid_error err;
    uint32_t out;
    must(gpu_pipelines(t->g, 1, &key, &out, NULL, &err), &err);
    return out;
}

static operand direct(const gpu_buffer *b, uint64_t stride) {
    return (operand){.base = b->address, .lane_stride = stride, .kind = OPERAND_DIRECT};
}

/* Microseconds of one execution with this cut, and its error. */
static double measure(bench *t, const mm_problem *p, mm_cut cut, double *error) {
    mm_code code[2] = {mm_encode(gpu_traits(t->g), p, cut, t->lanes, false)};
    bool split = cut.splits > 1;
    if (split) code[1] = mm_encode_sum(p, cut, false);
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
    for (uint32_t r = 0; r < t->repeats; r++)
        for (uint32_t i = 0; i < steps; i++, n++)
            dispatches[n] = (gpu_dispatch){.pipeline = pipeline_of(t, &code[i]),
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
    uint64_t least = UINT64_MAX;
    gpu_times spent;
    must(gpu_program_new(t->g, &info, &recorded, &err), &err);
    uint64_t total = 0; /* clocks rise under load */
    for (int i = 0; i < 3 || (i < 5000 && total < t->busy_ns && !gpu_traits(t->g)->software); i++) {
        must(gpu_program_run(t->g, recorded, &spent, &err), &err);
        total += spent.device_ns;
        if (spent.device_ns < least) least = spent.device_ns;
    }
    gpu_program_free(t->g, recorded);
    *error = error_of(t, p);
    return (double)least / 1000 / t->repeats;
}

static void name_cut(const mm_cut *c, char out[static 48]) {
    if (c->vector)
        snprintf(out, 48, "mv %u of %u, %ux%u/%u", c->bm, c->chunk, c->tm, c->bn, c->group);
    else if (c->bk == 0)
        snprintf(out, 48, "direct %ux%u/%u", c->tm, c->tn, c->group);
    else
        snprintf(out, 48, "%ux%ux%u/%ux%u s%u%s", c->bm, c->bn, c->bk, c->tm, c->tn, c->splits,
                 c->fold == FOLD_N ? " fold n" : c->fold == FOLD_M ? " fold m" : "");
}

typedef struct tally {
    double chosen, best;
} tally;

/* Measures a cut; keeps it where it is the best so far. */
static void try_cut(bench *t, const mm_problem *p, const mm_cut *c, double flops, double *best, char name[static 48]) {
    double error, us = measure(t, p, *c, &error);
    char this[48];
    name_cut(c, this);
    if (t->all || error > 1e-3)
        printf("    %-24s %9.2f us %8.0f GFLOP/s%s\n", this, us, flops / us * 1e-3, error > 1e-3 ? "  WRONG" : "");
    if (us >= *best) return;
    *best = us;
    memcpy(name, this, 48);
}

/* Every chunk and width of kernel mv. */
static void vectors_of(bench *t, const mm_problem *p, double flops, double *best, char name[static 48]) {
    mm_cut c;
    if (!mm_vector_choose(gpu_traits(t->g), p, &c)) return;
    for (uint32_t chunk = 32; chunk <= 512 && (chunk == 32 || chunk < p->s.k); chunk *= 2)
        for (uint32_t across = 1; across <= 128; across *= 2)
            if (mm_vector_cut(gpu_traits(t->g), p, chunk, across, &c) && c.group >= 32 && c.group <= 512)
                try_cut(t, p, &c, flops, best, name);
}

/* Every tile, fold and split for many lanes: the chunk is given. */
static double best_of_lanes(bench *t, const mm_problem *p, uint32_t chunk, double flops, char name[static 48]) {
    double best = 1e30;
    for (size_t i = 0; i < mm_tile_count(); i++)
        for (int fold = FOLD_NONE; fold <= FOLD_M; fold++)
            for (int split = 0; split <= (fold == FOLD_NONE && p->s.k > (int64_t)chunk); split++) {
                mm_cut c = mm_tile(i);
                c.chunk = chunk;
                c.fold = (mm_fold)fold;
                c.splits = split ? ((uint32_t)p->s.k - 1) / chunk + 1 : 1;
                uint64_t bytes;
                if (!mm_fits(gpu_traits(t->g), &c, t->type) || (p->image && c.group % c.bn != 0)) continue;
                if ((fold == FOLD_N && !p->a_shared) || (fold == FOLD_M && !p->b_shared)) continue;
                if (!mm_partial_bytes(p, c, &bytes) || lane_stride(bytes) * t->lanes > t->partial.bytes) continue;
                try_cut(t, p, &c, flops, &best, name);
            }
    return best;
}

/* Every tile and split of the problem; returns the best time and its name. */
static double best_of(bench *t, const mm_problem *p, double flops, char name[static 48]) {
    static const uint32_t splits[] = {1, 2, 4, 8, 16, 32};
    double best = 1e30;
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
            try_cut(t, p, &c, flops, &best, name);
        }
    vectors_of(t, p, flops, &best, name);
    return best;
}

static tally run_case(bench *t, const product_case *x) {
    conv image;
    mm_problem p = problem_of(x, t->type, &image);
    int64_t size = (int64_t)braid_type_bytes(t->type);
    uint64_t lanes_a = p.a_shared ? 1 : t->lanes, lanes_b = p.a_shared ? t->lanes : 1;
    t->a = random_buffer(t, (int64_t)(lane_stride(p.a.bytes) * lanes_a) / size, &t->host_a);
    t->b = random_buffer(t, (int64_t)(lane_stride(p.b.bytes) * lanes_b) / size, &t->host_b);
    t->c = buffer(t, lane_stride(p.c.bytes) * t->lanes);
    double flops = 2.0 * t->lanes * (double)p.s.m * (double)p.s.n * (double)p.s.k * (double)mm_batches(&p.s), error;
    mm_cut cut = mm_choose(gpu_traits(t->g), &p, t->lanes);
    char chosen[48], best[48] = "-";
    name_cut(&cut, chosen);
    tally sum;
    sum.chosen = measure(t, &p, cut, &error);
    sum.best = gpu_traits(t->g)->software && !t->force ? sum.chosen
               : t->lanes > 1                              ? best_of_lanes(t, &p, cut.chunk, flops, best)
                                                           : best_of(t, &p, flops, best);
    if (sum.best >= sum.chosen) {
        sum.best = sum.chosen;
        memcpy(best, chosen, sizeof best);
    }
    printf("%-10s x%-2d m %5lld n %6lld k %5lld b %3lld %s: %-22s %9.2f us %8.0f GFLOP/s; best %-22s %9.2f us%s\n",
           x->network, x->times, (long long)p.s.m, (long long)p.s.n, (long long)p.s.k, (long long)mm_batches(&p.s),
           p.image ? "image " : "matrix", chosen, sum.chosen, flops / sum.chosen * 1e-3, best, sum.best,
           error > (t->type == BRAID_FLOAT32 ? 1e-4 : 1e-2) ? "  WRONG" : "");
    fflush(stdout);
    gpu_buffer_free(t->g, &t->a);
    gpu_buffer_free(t->g, &t->b);
    gpu_buffer_free(t->g, &t->c);
    free(t->host_a);
    free(t->host_b);
    return sum;
}

int main(int argc, char **argv) {
    const char *network = NULL;
    braid_device_options options = {.size = sizeof options};
    setvbuf(stdout, NULL, _IOLBF, 0);
    bench t = {.type = BRAID_FLOAT32, .repeats = 20, .lanes = 1, .busy_ns = 100000000};
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "-a"))
            t.all = true;
        else if (!strcmp(argv[i], "-f"))
            t.force = true;
        else if (i + 1 < argc && !strcmp(argv[i], "-d"))
            options.select = argv[++i];
        else if (i + 1 < argc && !strcmp(argv[i], "-n"))
            network = argv[++i];
        else if (i + 1 < argc && !strcmp(argv[i], "-t"))
            t.type = type_from_name(argv[++i]);
        else if (i + 1 < argc && !strcmp(argv[i], "-r"))
            t.repeats = (uint32_t)atoi(argv[++i]);
        else if (i + 1 < argc && !strcmp(argv[i], "-l"))
            t.lanes = (uint32_t)atoi(argv[++i]);
        else if (i + 1 < argc && !strcmp(argv[i], "-s"))
            t.busy_ns = (uint64_t)atoi(argv[++i]) * 1000000;
        else {
            fprintf(stderr, "usage: bench_mm [-d DEVICE] [-n NETWORK] [-r REPEATS] [-t TYPE] [-l LANES] [-s MS] [-a] [-f]\n");
            return 2;
        }
    }
    if (t.repeats < 1 || t.repeats > 64) t.repeats = 20;
    braid_error err;
    must(gpu_open(&options, &t.g, &err), &err);
    if (t.lanes < 1 || t.lanes > 4096) t.lanes = 1;
    t.partial = buffer(&t, (uint64_t)(t.lanes > 1 ? 1024 : 64) << 20);
    t.rows = buffer(&t, 2 * sizeof(row_mm));
    t.run = buffer(&t, 4096);
    run_block run = {.lanes = t.lanes};
    put(&t, &t.run, &run, sizeof run);
    tally total = {0};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (network && strcmp(network, cases[i].network) != 0) continue;
        tally one = run_case(&t, &cases[i]);
        total.chosen += one.chosen * cases[i].times;
        total.best += one.best * cases[i].times;
        bool last = i + 1 == COUNT_OF(cases) || strcmp(cases[i].network, cases[i + 1].network) != 0;
        if (!last) continue;
        printf("%s: chosen %.1f us, best %.1f us\n", cases[i].network, total.chosen, total.best);
        total = (tally){0};
    }
    gpu_buffer_free(t.g, &t.partial);
    gpu_buffer_free(t.g, &t.rows);
    gpu_buffer_free(t.g, &t.run);
    gpu_close(t.g);
    return 0;
}
