/*
 * mm_tiles.c: every tile of kernel mm, every way to fetch operands, and split against unsplit sums, on the device
 * against double; the chunks of k fix the bits whatever the tile, and kernel mv has the same.
 * labels: device
 */
#include <math.h>
#include <stddef.h>

#include "gpu_fixture.h"
#include "ops/mm_code.h"

typedef struct sample {
    mm_problem p;
    conv image;
    float *a, *b, *bias;
    gpu_buffer buffers[4]; /* a, b, bias, c */
    int64_t count;         /* elements of c */
    uint32_t lanes, idle;  /* room for lanes, and how many of them a run leaves out; 0: one lane */
} sample;

static uint64_t seed;

static gpu_buffer random_buffer(gpu *g, braid_type type, int64_t count, float **host) {
    size_t bytes = (size_t)count * braid_type_bytes(type);
    void *data = calloc(1, bytes + 16);
    *host = malloc((size_t)count * sizeof(float) + 16);
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        element_set_f64(type, data, i, (double)(int64_t)(seed >> 55) / 128 - 2);
        (*host)[i] = (float)element_f64(type, data, i);
    }
    gpu_buffer b = buffer_with(g, GPU_DEVICE, data, bytes);
    free(data);
    return b;
}

static void sample_fill(gpu *g, sample *s, int64_t a, int64_t b) {
    braid_error err;
    uint64_t size = braid_type_bytes(s->p.type);
    int64_t entries = mm_batches(&s->p.s);
    s->count = s->p.s.m * s->p.s.n * entries;
    s->p.a.bytes = (uint64_t)a * size;
    s->p.b.bytes = (uint64_t)b * size;
    s->p.c.bytes = (uint64_t)s->count * size;
    s->p.alpha = 0.5f;
    s->p.beta = 2;
    s->p.bias_m = 1;
    s->p.groups = 1;
    s->buffers[0] = random_buffer(g, s->p.type, a, &s->a);
    s->buffers[1] = random_buffer(g, s->p.type, b, &s->b);
    s->buffers[2] = random_buffer(g, s->p.type, s->p.s.m, &s->bias);
    must(gpu_buffer_new(g, GPU_DEVICE, s->p.c.bytes, &s->buffers[3], &err), &err);
}

static sample matrices(gpu *g, braid_type type, int64_t batch, int64_t m, int64_t n, int64_t k, bool at, bool bt) {
    sample s = {.p.type = type};
    s.p.s = (mm_shape){.m = m,
                       .n = n,
                       .k = k,
                       .a_m = at ? 1 : k,
                       .a_k = at ? m : 1,
                       .b_k = bt ? 1 : n,
                       .b_n = bt ? k : 1,
                       .n_batch = 1,
                       .batch = {batch},
                       .a_batch = {m * k},
                       .b_batch = {k * n}};
    mm_dense(&s.p.s);
    sample_fill(g, &s, batch * m * k, batch * k * n);
    return s;
}

static sample image(gpu *g, braid_type type, int64_t channels, int64_t size, int64_t m, int64_t kernel,
                    int64_t stride) {
    sample s = {.p.type = type};
    int64_t out = (size + 2 - kernel) / stride + 1, taps = kernel * kernel, plane = size * size;
    s.image = (conv){.axes = 2,
                     .groups = 1,
                     .batch = 1,
                     .channels = channels,
                     .outputs = m,
                     .in = {size, size},
                     .out = {out, out},
                     .kernel = {kernel, kernel},
                     .stride = {stride, stride},
                     .dilation = {1, 1},
                     .begin = {1, 1},
                     .end = {1, 1}};
    s.p.s = (mm_shape){
        .m = m, .n = out * out, .k = channels * taps, .a_m = channels * taps, .a_k = 1, .b_k = plane, .b_n = 1};
    mm_dense(&s.p.s);
    sample_fill(g, &s, m * channels * taps, channels * plane);
    return s;
}

static void sample_free(gpu *g, sample *s) {
    for (int i = 0; i < 4; i++) gpu_buffer_free(g, &s->buffers[i]);
    free(s->a);
    free(s->b);
    free(s->bias);
}

static double wanted(const sample *s, int64_t at) {
    const mm_shape *p = &s->p.s;
    int64_t entry = at / (p->m * p->n), m = at / p->n % p->m, n = at % p->n;
    double sum = 0;
    for (int64_t k = 0; k < p->k; k++) {
        const conv *c = &s->image;
        int64_t b = entry * p->b_batch[0] + k * p->b_k + n * p->b_n;
        if (c->axes) {
            int64_t tap = k % (c->kernel[0] * c->kernel[1]), channel = k / (c->kernel[0] * c->kernel[1]);
            int64_t h = n / c->out[1] * c->stride[0] - 1 + tap / c->kernel[1];
            int64_t w = n % c->out[1] * c->stride[1] - 1 + tap % c->kernel[1];
            if (h < 0 || w < 0 || h >= c->in[0] || w >= c->in[1]) continue;
            b = channel * p->b_k + h * c->in[1] + w;
        }
        sum += (double)s->a[entry * p->a_batch[0] + m * p->a_m + k * p->a_k] * (double)s->b[b];
    }
    return 0.5 * sum + 2 * (double)s->bias[m];
}

static uint32_t pipeline_of(gpu *g, const mm_code *c) {
    uint32_t ids[MM_SPECS + 2] = {SPEC_GROUP, SPEC_SUBGROUP},
                            content[MM_SPECS + 2] = {c->group, gpu_traits(g)->subgroup};
    memcpy(ids + 2, c->spec_ids, sizeof c->spec_ids);
    memcpy(content + 2, c->spec, sizeof c->spec);
    gpu_pipeline_key key = {.kernel = c->kernel, .n_spec = c->n_spec + 2, .spec_ids = ids, .spec = content};
    braid_error err;
    uint32_t out;
    must(gpu_pipelines(g, 1, &key, &out, NULL, &err), &err);
    return out;
}

static uint32_t lanes_of(const sample *s) {
    return s->lanes ? s->lanes : 1;
}

/* Runs one cut; the elements of C, to be freed. */
static void *run_cut(fixture *f, sample *s, mm_cut cut) {
    braid_error err;
    s->p.image = s->image.axes ? &s->image : NULL;
    bool split = cut.splits > 1;
    mm_code code[2] = {mm_encode(gpu_traits(f->g), &s->p, cut, lanes_of(s))};
    if (split) code[1] = mm_encode_sum(gpu_traits(f->g), &s->p, cut, lanes_of(s));
    uint64_t bytes;
    assert_true(mm_partial_bytes(&s->p, cut, &bytes));
    gpu_buffer partial;
    must(gpu_buffer_new(f->g, GPU_DEVICE, bytes * lanes_of(s), &partial, &err), &err);
    must(gpu_buffer_fill(f->g, &partial, 0, bytes * lanes_of(s) / 4 * 4, 0x7fc00000, &err), &err);
    must(gpu_buffer_fill(f->g, &s->buffers[3], 0, s->p.c.bytes * lanes_of(s) / 4 * 4, 0x7fc07fc0, &err), &err);
    row_mm rows[2];
    for (int i = 0; i < 1 + split; i++) {
        rows[i] = code[i].row;
        rows[i].header.tiles = (uint32_t)code[i].tiles;
        operand a = direct(s->buffers[0].address, s->p.a_shared ? 0 : s->p.a.bytes);
        operand b = direct(s->buffers[1].address, s->p.b_shared ? 0 : s->p.b.bytes);
        rows[i].a = code[i].swapped ? b : a;
        rows[i].b = code[i].swapped ? a : b;
        rows[i].bias = direct(s->buffers[2].address, 0);
        rows[i].c = direct(s->buffers[3].address, s->p.c.bytes);
        rows[i].partial = direct(partial.address, bytes);
    }
    gpu_buffer table = buffer_with(f->g, GPU_DEVICE, rows, sizeof rows);
    gpu_dispatch dispatches[2];
    for (uint32_t i = 0; i < 1u + split; i++)
        dispatches[i] = (gpu_dispatch){.pipeline = pipeline_of(f->g, &code[i]),
                                       .wave = i,
                                       .row_bytes = sizeof *rows,
                                       .rows = table.address + i * sizeof *rows,
                                       .n_rows = 1,
                                       .tiles = code[i].tiles,
                                       .folded = code[i].folded};
    gpu_program_info info = {
        .dispatches = dispatches, .n_dispatches = 1u + split, .run_block = f->run.address, .lanes = lanes_of(s)};
    ((run_block *)f->run.mapped)->lanes = lanes_of(s) - s->idle;
    gpu_program *recorded;
    must(gpu_program_new(f->g, &info, &recorded, &err), &err);
    must(gpu_program_run(f->g, recorded, NULL, &err), &err);
    gpu_program_free(f->g, recorded);
    void *c = malloc(s->p.c.bytes * lanes_of(s) + 16);
    must(gpu_download(f->g, &s->buffers[3], 0, s->p.c.bytes * lanes_of(s), c, &err), &err);
    gpu_buffer_free(f->g, &table);
    gpu_buffer_free(f->g, &partial);
    return c;
}

static void check(const sample *s, const void *c, const mm_cut *cut) {
    double slack = s->p.type == BRAID_FLOAT16 ? 2e-3 : s->p.type == BRAID_BFLOAT16 ? 1e-2 : 1e-5;
    for (int64_t i = 0; i < s->count; i++) {
        double want = wanted(s, i), found = element_f64(s->p.type, c, i);
        if (!(fabs(want - found) <= slack * (fabs(want) + 4)))
            fail_msg("tile %ux%u splits %u: element %lld is %g, expected %g", cut->bm, cut->bn, cut->splits,
                     (long long)i, found, want);
    }
}

static void one_sample(fixture *f, sample *s, size_t first, size_t tile_step) {
    void *canonical = NULL;
    for (size_t t = first; t < mm_tile_count(); t += tile_step) {
        mm_cut cut = mm_tile(t);
        if (!mm_fits(gpu_traits(f->g), &cut, s->p.type) || (s->image.axes && cut.group % cut.bn != 0)) continue;
        cut.chunk = (uint32_t)(s->p.s.k + 31) / 32 * 32;
        void *c = run_cut(f, s, cut);
        check(s, c, &cut);
        free(c);
        for (int split = 0; split < 2 && s->p.s.k > 64; split++) {
            cut.chunk = 64;
            cut.splits = split ? (uint32_t)(s->p.s.k + 63) / 64 : 1;
            c = run_cut(f, s, cut);
            check(s, c, &cut);
            if (canonical)
                assert_memory_equal(c, canonical, s->p.c.bytes);
            else
                canonical = c;
            if (c != canonical) free(c);
        }
    }
    free(canonical);
    sample_free(f->g, s);
}

static void fetches(void **state) {
    fixture *f = *state;
    static const struct {
        braid_type type;
        int64_t batch, m, n, k;
        bool at, bt;
    } forms[] = {{BRAID_FLOAT32, 1, 36, 40, 72, false, false}, {BRAID_FLOAT32, 1, 36, 40, 72, true, true},
                 {BRAID_FLOAT32, 3, 37, 41, 75, false, false}, {BRAID_FLOAT32, 2, 37, 41, 75, true, true},
                 {BRAID_FLOAT16, 2, 36, 40, 72, false, false}, {BRAID_BFLOAT16, 1, 36, 40, 72, true, true},
                 {BRAID_FLOAT16, 1, 37, 41, 75, false, true},  {BRAID_FLOAT32, 1, 1, 130, 200, false, true},
                 {BRAID_FLOAT64, 1, 20, 35, 70, false, true}};
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        bool wide = forms[i].type == BRAID_FLOAT64;
        if (forms[i].type == BRAID_FLOAT64 && !gpu_traits(f->g)->float64) continue;
        sample s =
            matrices(f->g, forms[i].type, forms[i].batch, forms[i].m, forms[i].n, forms[i].k, forms[i].at, forms[i].bt);
        one_sample(f, &s, wide ? 8 : i % 3 + 4, wide ? 2 : 3);
    }
}

static void tiles(void **state) {
    fixture *f = *state;
    sample s = matrices(f->g, BRAID_FLOAT32, 1, 140, 150, 70, false, false);
    one_sample(f, &s, 3, 4);
    s = image(f->g, BRAID_FLOAT32, 8, 13, 70, 3, 1);
    one_sample(f, &s, 1, 3);
}

static void images(void **state) {
    fixture *f = *state;
    sample s = image(f->g, BRAID_FLOAT16, 5, 12, 10, 3, 2);
    one_sample(f, &s, 5, 3);
    s = image(f->g, BRAID_FLOAT32, 70, 6, 34, 1, 2);
    one_sample(f, &s, 7, 2);
}

/* Gives every lane its own B, or A where B is shared. */
static void sample_lanes(gpu *g, sample *s, uint32_t lanes, uint32_t idle, bool a_shared) {
    braid_error err;
    int own = a_shared ? 1 : 0;
    float **host = own ? &s->b : &s->a;
    s->lanes = lanes;
    s->idle = idle;
    s->p.a_shared = a_shared;
    s->p.b_shared = !a_shared;
    gpu_buffer_free(g, &s->buffers[own]);
    gpu_buffer_free(g, &s->buffers[3]);
    free(*host);
    uint64_t bytes = own ? s->p.b.bytes : s->p.a.bytes;
    s->buffers[own] = random_buffer(g, s->p.type, (int64_t)(bytes * lanes / braid_type_bytes(s->p.type)), host);
    must(gpu_buffer_new(g, GPU_DEVICE, s->p.c.bytes * lanes, &s->buffers[3], &err), &err);
}

/* Split lane by lane, and tiles, folded, one of them split as well: the bits of the same product lane by lane, and nothing
   else written. */
static void one_folded(fixture *f, sample *s, size_t first, size_t stride) {
    mm_cut alone = mm_tile(mm_tile_count() - 1);
    alone.chunk = 32;
    void *same = run_cut(f, s, alone);
    check(s, same, &alone); /* lane 0 */
    if (s->p.s.k > alone.chunk) {
        alone.splits = (uint32_t)(s->p.s.k - 1) / alone.chunk + 1;
        void *c = run_cut(f, s, alone);
        assert_memory_equal(c, same, s->p.c.bytes * s->lanes);
        free(c);
    }
    for (size_t t = first; t < mm_tile_count(); t += stride) {
        mm_cut cut = mm_tile(t);
        if (!mm_fits(gpu_traits(f->g), &cut, s->p.type)) continue;
        cut.chunk = 32;
        cut.fold = s->p.a_shared ? FOLD_N : FOLD_M;
        for (int split = 0; split < (t == first && s->p.s.k > 32 ? 2 : 1); split++) {
            cut.splits = split ? (uint32_t)(s->p.s.k + 31) / 32 : 1;
            void *c = run_cut(f, s, cut);
            assert_memory_equal(c, same, s->p.c.bytes * s->lanes);
            free(c);
        }
    }
    free(same);
    sample_free(f->g, s);
}

static void folds(void **state) {
    fixture *f = *state;
    static const struct {
        braid_type type;
        int64_t batch, m, n, k;
        bool at, bt, a_shared;
        uint32_t lanes, idle;
    } forms[] = {{BRAID_FLOAT32, 1, 20, 36, 40, false, false, true, 5, 0},
                 {BRAID_FLOAT32, 2, 21, 13, 50, false, false, true, 6, 1},
                 {BRAID_FLOAT32, 1, 9, 12, 72, true, true, true, 7, 5},
                 {BRAID_FLOAT32, 1, 1, 20, 40, false, true, false, 64, 3},
                 {BRAID_FLOAT32, 2, 3, 24, 33, false, false, false, 9, 0},
                 {BRAID_FLOAT16, 1, 4, 10, 64, true, false, false, 8, 2},
                 {BRAID_BFLOAT16, 1, 5, 7, 36, false, true, true, 3, 0},
                 {BRAID_FLOAT32, 1, 37, 44, 20, false, true, false, 4, 0}};
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        sample s =
            matrices(f->g, forms[i].type, forms[i].batch, forms[i].m, forms[i].n, forms[i].k, forms[i].at, forms[i].bt);
        sample_lanes(f->g, &s, forms[i].lanes, forms[i].idle, forms[i].a_shared);
        one_folded(f, &s, i % 5, 5);
    }
    sample s = image(f->g, BRAID_FLOAT32, 5, 7, 19, 3, 1);
    sample_lanes(f->g, &s, 5, 1, true);
    one_folded(f, &s, 0, 4);
    s = image(f->g, BRAID_FLOAT16, 6, 10, 12, 3, 2);
    sample_lanes(f->g, &s, 3, 0, true);
    one_folded(f, &s, 1, 5);
}

/* Runs a cut of mv; same: the elements it must give. */
static void vector_cut(fixture *f, sample *s, mm_cut cut, const void *same) {
    void *c = run_cut(f, s, cut);
    check(s, c, &cut);
    if (same) assert_memory_equal(c, same, s->p.c.bytes);
    free(c);
}

/* mv against mm with the same chunks: all of them side by side, and in passes of two; and one chunk. */
static void one_vector(fixture *f, sample *s, uint32_t chunk, uint32_t across, bool one) {
    const device_traits *device = gpu_traits(f->g);
    mm_cut tile = mm_tile(9), cut; /* 16 x 64 */
    tile.chunk = chunk;
    tile.splits = one ? 1 : (uint32_t)((s->p.s.k - 1) / chunk + 1);
    void *same = run_cut(f, s, tile);
    assert_true(mm_vector_cut(device, &s->p, chunk, across, &cut));
    vector_cut(f, s, cut, same);
    if (one && cut.bm > 2) {
        cut.bm = 2;
        cut.group = 2 * across;
        vector_cut(f, s, cut, same);
    }
    free(same);
    if (!one) return;
    assert_true(mm_vector_cut(device, &s->p, (uint32_t)s->p.s.k, across, &cut));
    vector_cut(f, s, cut, NULL);
}

static void vectors(void **state) {
    fixture *f = *state;
    static const struct {
        braid_type type;
        int64_t batch, m, n, k;
        bool at, bt;
        uint32_t chunk, across;
    } forms[] = {
        {BRAID_FLOAT32, 1, 1, 50, 200, false, true, 64, 4},  {BRAID_FLOAT32, 1, 1, 52, 200, false, false, 32, 2},
        {BRAID_FLOAT32, 2, 3, 41, 75, true, false, 32, 4},   {BRAID_FLOAT32, 2, 4, 36, 136, true, true, 64, 2},
        {BRAID_FLOAT32, 2, 52, 2, 100, true, false, 32, 2},  {BRAID_FLOAT16, 2, 8, 44, 136, false, false, 64, 2},
        {BRAID_BFLOAT16, 1, 37, 3, 75, false, true, 32, 2},  {BRAID_FLOAT32, 1, 2, 9, 2300, false, true, 32, 1}};
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        sample s =
            matrices(f->g, forms[i].type, forms[i].batch, forms[i].m, forms[i].n, forms[i].k, forms[i].at, forms[i].bt);
        one_vector(f, &s, forms[i].chunk, forms[i].across, i % 2 == 0);
        sample_free(f->g, &s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(fetches), cmocka_unit_test(tiles), cmocka_unit_test(images),
                                       cmocka_unit_test(vectors), cmocka_unit_test(folds)};
    return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
