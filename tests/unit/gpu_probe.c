/*
 * gpu_probe.c: the device's figures: sane, without complaints, kept for this device and driver only.
 */
#include "gpu_fixture.h"

#include <math.h>
#include <unistd.h>

static gpu *open_in(fixture *f, const char *folder) {
    braid_error err = {0};
    gpu *g = NULL;
    braid_device_options options = fixture_options(f);
    options.no_cache = false;
    options.cache_dir = folder;
    must(gpu_open(&options, &g, &err), &err);
    return g;
}

static bool probe_measures(gpu *g, bool again, braid_device_rates *out) {
    braid_error err = {0};
    bool measured = false;
    must(gpu_probe(g, again, out, &measured, &err), &err);
    return measured;
}

static void check_sane(const braid_device_rates *r) {
    const double figures[] = {r->barrier_ns, r->dispatch_ns,  r->submit_ns, r->memory_gbs,
                              r->upload_gbs, r->download_gbs, r->gflops};
    for (size_t i = 0; i < COUNT_OF(figures); i++) assert_true(isfinite(figures[i]) && figures[i] > 0);
    assert_true(r->submit_ns >= r->dispatch_ns);
    assert_true(r->dispatch_ns < 10e6 && r->barrier_ns < 10e6);
    assert_true(r->memory_gbs < 1e5 && r->gflops < 1e7);
}

static void measures_without_cache(void **state) {
    fixture *f = *state;
    braid_device_rates r;
    assert_true(probe_measures(f->g, false, &r));
    check_sane(&r);
    assert_int_equal(gpu_traits(f->g)->flop_rate, 0); /* only devices opened later plan by it */
}

static void path_of(const gpu *g, char *out, size_t capacity) {
    snprintf(out, capacity, "%s.rates", g->cache_path);
}

static size_t load_bytes(const char *path, uint8_t *out, size_t capacity) {
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(out, 1, capacity, f);
    fclose(f);
    return n;
}

static void store_bytes(const char *path, const uint8_t *bytes, size_t n) {
    FILE *f = fopen(path, "wb");
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

/* A file that is not as it was counts for nothing. */
static void check_damage(fixture *f, const char *folder, const char *path) {
    uint8_t bytes[512];
    size_t n = load_bytes(path, bytes, sizeof bytes);
    for (size_t at = 0; at <= n; at++) {
        if (at < n) bytes[at] ^= 1;
        store_bytes(path, bytes, at < n ? n : n - 1); /* a bit, or one byte short */
        if (at < n) bytes[at] ^= 1;
        if (at % 24 && at != n) continue;
        gpu *g = open_in(f, folder);
        assert_int_equal(gpu_traits(g)->flop_rate, 0);
        gpu_close(g);
    }
    store_bytes(path, bytes, n);
}

static void kept_for_this_device(void **state) {
    fixture *f = *state;
    char folder[] = "/tmp/braid-probe-XXXXXX", path[4200], pipelines[4200];
    braid_device_rates first, second;
    assert_non_null(mkdtemp(folder));
    gpu *g = open_in(f, folder);
    assert_int_equal(gpu_traits(g)->flop_rate, 0);
    assert_true(probe_measures(g, false, &first));
    check_sane(&first);
    assert_false(probe_measures(g, false, &second));
    assert_memory_equal(&first, &second, sizeof first);
    path_of(g, path, sizeof path);
    snprintf(pipelines, sizeof pipelines, "%s", g->cache_path);
    gpu_close(g);

    g = open_in(f, folder);
    assert_true(gpu_traits(g)->flop_rate > 0 && gpu_traits(g)->bandwidth > 0 && gpu_traits(g)->barrier_ns > 0 &&
                gpu_traits(g)->dispatch_ns > 0);
    assert_false(probe_measures(g, false, &second));
    assert_memory_equal(&first, &second, sizeof first);
    g->identity.driver_version++; /* another driver */
    assert_true(probe_measures(g, false, &second));
    g->identity.driver_version--;
    assert_true(probe_measures(g, false, &second)); /* the other's figures lie there now */
    gpu_close(g);
    check_damage(f, folder, path);
    g = open_in(f, folder);
    assert_true(gpu_traits(g)->flop_rate > 0);
    assert_true(probe_measures(g, true, &second));
    gpu_close(g);
    unlink(path);
    unlink(pipelines);
    assert_int_equal(rmdir(folder), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(measures_without_cache),
                                       cmocka_unit_test(kept_for_this_device)};
    return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
