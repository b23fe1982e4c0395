/*
 * mm_choose.c: how products are cut for many problems: the order of sums is that of one problem, unless it is free.
 * labels: quick
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ops/mm_code.h"

static const device_traits gpu_like = {
    .subgroup = 32, .max_invocations = 1024, .shared_bytes = 49152, .cores = 132};

static mm_problem weights_times_image(int64_t m, int64_t n, int64_t k, int64_t images) {
    mm_problem p = {.s = {.m = m, .n = n, .k = k, .a_m = k, .a_k = 1, .b_k = n, .b_n = 1, .n_batch = images > 1,
                          .batch = {images}, .b_batch = {k * n}},
                    .type = BRAID_FLOAT32,
                    .a = {0, (uint64_t)(m * k) * 4},
                    .b = {1, (uint64_t)(k * n * images) * 4},
                    .c = {2, (uint64_t)(m * n * images) * 4},
                    .bias = {.storage = -1},
                    .alpha = 1,
                    .images = images,
                    .a_shared = true};
    mm_dense(&p.s);
    return p;
}

static const struct {
    int64_t m, n, k;
} sizes[] = {{64, 3025, 64}, {1000, 169, 512}, {256, 169, 576}, {16, 784, 25},
             {10, 1, 256},   {1, 4096, 4096},  {48, 48, 9000}};

static void same_chunk(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        for (int shared = 0; shared < 2; shared++) {
            mm_problem p = weights_times_image(sizes[i].m, sizes[i].n, sizes[i].k, 1);
            p.a_shared = shared;
            uint32_t chunk = mm_choose(&gpu_like, &p, 1).chunk;
            for (uint32_t problems = 2; problems <= 4096; problems *= 2) {
                mm_cut c = mm_choose(&gpu_like, &p, problems);
                assert_int_equal(c.chunk, chunk);
                if (!shared) assert_int_equal(c.fold, FOLD_NONE);
                assert_true(c.fold != FOLD_M); /* B is never shared here */
            }
        }
}

static void in_words(void **state) {
    (void)state;
    text t = {0};
    mm_problem p = weights_times_image(256, 9, 512, 1);
    const mm_cut cut = {
        .bm = 64, .bn = 128, .bk = 16, .tm = 8, .tn = 8, .chunk = 256, .splits = 1, .group = 128, .fold = FOLD_N};
    p.fused = true;
    mm_code c = mm_encode(&gpu_like, &p, cut, 64);
    mm_describe(c.kernel, c.n_spec, c.spec_ids, c.spec, &t);
    assert_string_equal(t.data, "64x128x16/8x8 fold n, float32, a k4, b row, chunked, stores rows");
    text_free(&t);
    const uint32_t ids[] = {15, 18, 19, 200}, odd[] = {4, 3, 5, 1};
    mm_describe("mms_int", 4, ids, odd, &t);
    assert_string_equal(t.data, "4x4, float32, b image 1x3x5");
    text_free(&t);
    mm_describe("depthwise_fused", 4, (const uint32_t[]){12, 8, 18, 19}, (const uint32_t[]){7, 1, 3, 5}, &t);
    assert_string_equal(t.data, "7 rows, float32, 3x5");
    text_free(&t);
    mm_describe("mmsum_real", 0, NULL, NULL, &t);
    mm_describe("map_f32", 4, ids, odd, &t);
    assert_null(t.data);
}

/* Tiles that are mostly empty alone are filled by many problems. */
static void folds(void **state) {
    (void)state;
    mm_problem p = weights_times_image(256, 9, 512, 1);
    assert_int_equal(mm_choose(&gpu_like, &p, 1).fold, FOLD_NONE);
    assert_int_equal(mm_choose(&gpu_like, &p, 64).fold, FOLD_N);
    p = weights_times_image(256, 9, 512, 64); /* and the images of a batch are no different */
    mm_cut c = mm_choose(&gpu_like, &p, 1);
    assert_int_equal(c.fold, FOLD_N);
    mm_dims d;
    assert_true(mm_extent(&p, FOLD_N, 3, &d));
    assert_int_equal(d.n, 3 * 64 * 9);
    assert_int_equal(d.entries, 1);
    assert_false(mm_extent(&p, FOLD_N, UINT32_MAX, &d));
}

/* A row by a weight matrix (B), k or n contiguous, whose sums one problem alone takes in many chunks. */
static mm_problem row_times_weights(int64_t n, int64_t k, bool along_k) {
    mm_problem p = {.s = {.m = 1, .n = n, .k = k, .a_m = k, .a_k = 1, .b_k = along_k ? 1 : n, .b_n = along_k ? k : 1},
                    .type = BRAID_FLOAT32,
                    .a = {0, (uint64_t)k * 4},
                    .b = {1, (uint64_t)(k * n) * 4},
                    .c = {2, (uint64_t)n * 4},
                    .bias = {.storage = -1},
                    .alpha = 1,
                    .b_shared = true};
    mm_dense(&p.s);
    return p;
}

/* Few tiles and long sums: many problems are split as a batch is, folded or not, as long as the parts fit a cache. */
static void splits(void **state) {
    (void)state;
    mm_problem p = row_times_weights(1000, 2048, true);
    mm_cut alone = mm_choose(&gpu_like, &p, 1), c = mm_choose(&gpu_like, &p, 64);
    assert_true(alone.vector);
    assert_int_equal(c.fold, FOLD_M);
    assert_int_equal(c.splits, (2048 - 1) / alone.chunk + 1);
    assert_int_equal(mm_encode(&gpu_like, &p, c, 64).tiles % c.splits, 0);
    static const conv image = {.axes = 2, .kernel = {3, 3}};
    p = weights_times_image(256, 196, 2304, 1);
    p.image = &image;
    c = mm_choose(&gpu_like, &p, 64);
    assert_int_equal(c.fold, FOLD_N);
    assert_int_equal(c.splits, (2304 - 1) / c.chunk + 1);
    p = weights_times_image(1024, 4096, 4608, 1);
    assert_int_equal(mm_choose(&gpu_like, &p, 64).splits, 1);
}

/* A row by a small matrix stays with kernel mv, in wider groups: there are enough of them, its chunk is the same. */
static void wide_vectors(void **state) {
    (void)state;
    mm_problem p = row_times_weights(512, 256, false);
    mm_cut alone = mm_choose(&gpu_like, &p, 1), c = mm_choose(&gpu_like, &p, 64);
    assert_true(alone.vector && c.vector);
    assert_int_equal(c.chunk, alone.chunk);
    assert_true(c.bn > alone.bn);
}

static void free_order(void **state) {
    (void)state;
    mm_problem p = weights_times_image(256, 169, 576, 1);
    uint32_t chunk = mm_choose(&gpu_like, &p, 1).chunk;
    assert_true(chunk < 576); /* one problem alone splits its sums */
    p.free_order = true;
    assert_int_equal(mm_choose(&gpu_like, &p, 1).chunk, chunk);
    assert_true(mm_choose(&gpu_like, &p, 64).chunk >= 576);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_chunk), cmocka_unit_test(in_words),
                                       cmocka_unit_test(folds), cmocka_unit_test(splits),
                                       cmocka_unit_test(wide_vectors), cmocka_unit_test(free_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
