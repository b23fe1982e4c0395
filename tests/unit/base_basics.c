/*
 * base: errors, sizes, arenas under allocation failure, text, threads, hashing.
 * labels: quick
 */
#include "base/base.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include <cmocka.h>

static void errors_gain_context(void **state) {
    (void)state;
    braid_error err = {0};
    assert_int_equal(error_set(&err, BRAID_SHAPE, "input %d: rank %d, expected 4", 1, 3), BRAID_SHAPE);
    assert_int_equal(error_within(&err, BRAID_SHAPE, "node '%s'", "a\nb"), BRAID_SHAPE);
    assert_string_equal(err.message, "node 'a?b': input 1: rank 3, expected 4");
    assert_int_equal(error_set(NULL, BRAID_IO, "x"), BRAID_IO);
    error_within(&err, BRAID_SHAPE, "%s", err.message); /* aliases the message */
    assert_string_equal(err.message,
                        "node 'a?b': input 1: rank 3, expected 4: node 'a?b': input 1: rank 3, expected 4");
    for (int i = 0; i < 20; i++) error_within(&err, BRAID_SHAPE, "%0100d", i);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    for (int i = 0; i < 3; i++) error_within(&err, BRAID_SHAPE, "%0600d", i);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    error_clear(&err);
    assert_int_equal(err.status, BRAID_OK);
    assert_string_equal(braid_status_text(BRAID_SHAPE), "shape mismatch");
    assert_string_equal(braid_status_name(BRAID_INTERNAL), "INTERNAL");
    assert_string_equal(braid_status_name((braid_status)-1), "UNKNOWN");
    assert_string_equal(braid_version(), BRAID_VERSION);
}

static void sizes_are_checked(void **state) {
    (void)state;
    size_t s = 7;
    int64_t n = 7;
    assert_false(size_add(SIZE_MAX, 1, &s));
    assert_false(size_mul(SIZE_MAX / 2, 3, &s));
    assert_false(size_align(SIZE_MAX - 3, 16, &s));
    assert_int_equal(s == 7, 1);
    assert_true(size_align(17, 16, &s) && s == 32);
    assert_true(dims_count(0, NULL, &n) && n == 1);
    assert_true(dims_count(3, (int64_t[]){2, 0, 5}, &n) && n == 0);
    n = 7;
    assert_false(dims_count(2, (int64_t[]){2, -1}, &n));
    assert_false(dims_count(3, (int64_t[]){0, -1, 3}, &n));
    assert_false(dims_count(3, (int64_t[]){0, (int64_t)1 << 62, (int64_t)1 << 62}, &n));
    assert_false(dims_count(3, (int64_t[]){(int64_t)1 << 62, (int64_t)1 << 62, 0}, &n));
    assert_false(dims_count(2, (int64_t[]){(int64_t)1 << 32, (int64_t)1 << 32}, &n));
    assert_false(dims_count(1, (int64_t[]){ELEMENTS_MAX + 1}, &n));
    assert_true(n == 7);
    assert_true(dims_count(1, (int64_t[]){ELEMENTS_MAX}, &n) && n == ELEMENTS_MAX);
}

static bool is_clear(const unsigned char *p, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (p[i]) return false;
    return true;
}

static void arenas_align_and_clear(void **state) {
    (void)state;
    arena *a = arena_new();
    for (size_t i = 0; i < 3000; i++) {
        size_t n = i * 7919 % 5000 + (i % 500 == 0 ? 3u << 20 : 0);
        unsigned char *p = arena_alloc(a, n);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 16, 0);
        assert_true(is_clear(p, n));
        if (n) memset(p, 0xff, n);
    }
    assert_null(arena_alloc(a, SIZE_MAX));
    assert_null(arena_alloc(a, SIZE_MAX - 40));
    assert_null(arena_array(a, SIZE_MAX / 2, 3));
    assert_null(arena_string(a, "", SIZE_MAX));
    assert_string_equal(arena_string(a, "hello", 4), "hell");
    assert_string_equal(arena_format(a, "%d-%s", 5, "x"), "5-x");
    assert_memory_equal(arena_copy(a, "abc", 4), "abc", 4);
    assert_true(arena_bytes(a) > 0);
    arena_free(a);
    arena_free(NULL);
}

static bool scenario(void) {
    arena *a = arena_new();
    if (!a) return false;
    bool ok = true;
    for (size_t i = 0; ok && i < 40; i++) ok = arena_alloc(a, i * i * 100) != NULL;
    ok = ok && arena_format(a, "%01000d", 1) != NULL;
    text t = {0};
    for (int i = 0; i < 300; i++) text_add(&t, "line %d\n", i);
    ok = ok && !t.failed;
    if (!t.failed) assert_int_equal(strlen(t.data), t.length);
    text_free(&t);
    arena_free(a);
    return ok;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    uint64_t before = mem_count();
    assert_true(scenario());
    uint64_t count = mem_count() - before;
    assert_true(count > 5);
    for (uint64_t n = 1; n <= count; n++)
        for (int forever = 0; forever < 2; forever++) {
            mem_fail_after(n, forever != 0);
            bool ok = scenario();
            mem_fail_after(0, false);
            assert_false(ok);
            assert_true(scenario());
        }
}

static void text_stops_at_failure(void **state) {
    (void)state;
    text t = {0};
    text_add(&t, "%s", "abc");
    mem_fail_after(1, true);
    text_add(&t, "%01000d", 1);
    mem_fail_after(0, false);
    assert_true(t.failed);
    text_add(&t, "more");
    assert_string_equal(t.data, "abc");
    text_free(&t);
    text_free(&t);
}

static void mark(void *user, size_t i) {
    atomic_fetch_add(&((atomic_int *)user)[i], 1);
}

static void loops_visit_each_index_once(void **state) {
    (void)state;
    static atomic_int seen[1000];
    parallel_for(1000, 8, mark, seen);
    parallel_for(1000, 0, mark, seen);
    parallel_for(1000, 1000, mark, seen);
    parallel_for(0, 4, mark, seen);
    for (int i = 0; i < 1000; i++) assert_int_equal(atomic_load(&seen[i]), 3);
    assert_true(processor_count() >= 1);
    uint64_t t = clock_ns();
    assert_true(clock_ns() >= t && t > 0);
}

static void hashes_see_every_bit(void **state) {
    (void)state;
    uint8_t bytes[37] = {1, 2, 3};
    uint64_t h = hash_bytes(1, bytes, sizeof bytes);
    assert_true(h != hash_bytes(2, bytes, sizeof bytes));
    assert_true(hash_bytes(0, bytes, 8) != hash_bytes(0, bytes, 9));
    for (size_t i = 0; i < sizeof bytes * 8; i++) {
        bytes[i / 8] ^= (uint8_t)(1u << i % 8);
        assert_true(h != hash_bytes(1, bytes, sizeof bytes));
        bytes[i / 8] ^= (uint8_t)(1u << i % 8);
    }
    for (size_t n = 0; n < sizeof bytes; n++) assert_true(h != hash_bytes(1, bytes, n));
}

static void keep(void *user, braid_log_level level, const char *line) {
    (void)level;
    snprintf(user, 64, "%s", line);
}

static void logs_go_to_the_owner(void **state) {
    (void)state;
    char line[64] = "";
    log_line(&(logger){keep, line}, BRAID_LOG_INFO, "a\n%d", 5);
    assert_string_equal(line, "a?5");
    log_line(&(logger){0}, BRAID_LOG_INFO, "x");
    log_line(NULL, BRAID_LOG_INFO, "x");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_gain_context),    cmocka_unit_test(sizes_are_checked),
        cmocka_unit_test(arenas_align_and_clear), cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(text_stops_at_failure),  cmocka_unit_test(loops_visit_each_index_once),
        cmocka_unit_test(hashes_see_every_bit),   cmocka_unit_test(logs_go_to_the_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
