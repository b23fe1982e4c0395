/*
 * gpu: buffers of every kind, mapped and through staging, limits, fills.
 * labels: quick
 */
#include "gpu_fixture.h"

static void kinds(void **state) {
    fixture *f = *state;
    braid_error err;
    static const gpu_memory all[] = {GPU_DEVICE, GPU_UPLOAD, GPU_DOWNLOAD, GPU_SHARED};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        for (uint64_t bytes = 0; bytes < 100000; bytes = bytes * 3 + 1) {
            gpu_buffer b;
            must(gpu_buffer_new(f->g, all[i], bytes, &b, &err), &err);
            assert_int_equal(b.address % 256, 0);
            assert_true(b.bytes >= bytes && b.bytes >= 16 && b.bytes % 16 == 0);
            if (all[i] != GPU_DEVICE || gpu_traits(f->g)->software) assert_non_null(b.mapped);
            if (b.mapped) memset(b.mapped, 0x5a, (size_t)b.bytes);
            gpu_buffer_free(f->g, &b);
            assert_null(b.private_);
            gpu_buffer_free(f->g, &b);
        }
}

static void limits(void **state) {
    fixture *f = *state;
    gpu_buffer b;
    braid_error err;
    assert_int_equal(gpu_buffer_new(f->g, GPU_DEVICE, UINT64_MAX, &b, &err), BRAID_LIMIT);
    assert_int_equal(gpu_buffer_new(f->g, GPU_DEVICE, gpu_traits(f->g)->max_buffer + 1, &b, &err), BRAID_LIMIT);
    assert_non_null(strstr(err.message, "allows"));
    assert_null(b.private_);
    /* a heap that is too small for the request */
    VkDeviceSize saved[VK_MAX_MEMORY_HEAPS];
    for (uint32_t i = 0; i < f->g->device.memory.memoryHeapCount; i++) {
        saved[i] = f->g->device.memory.memoryHeaps[i].size;
        f->g->device.memory.memoryHeaps[i].size = 4096;
    }
    assert_int_equal(gpu_buffer_new(f->g, GPU_DEVICE, 1 << 20, &b, &err), BRAID_DEVICE_MEMORY);
    assert_non_null(strstr(err.message, "no room for"));
    for (uint32_t i = 0; i < f->g->device.memory.memoryHeapCount; i++)
        f->g->device.memory.memoryHeaps[i].size = saved[i];
    mem_fail_after(1, false);
    assert_int_equal(gpu_buffer_new(f->g, GPU_DEVICE, 64, &b, &err), BRAID_HOST_MEMORY);
    mem_fail_after(0, false);
}

static uint8_t byte_at(uint64_t i) {
    return (uint8_t)(i * 2654435761u >> 13);
}

static braid_status pattern(void *user, uint64_t at, void *to, size_t n, braid_error *err) {
    (void)err;
    for (size_t i = 0; i < n; i++) ((uint8_t *)to)[i] = byte_at(at + i);
    *(uint64_t *)user += n;
    return BRAID_OK;
}

/* Uploads [offset, offset + bytes) between guards and reads it back. */
static void round_trip(fixture *f, uint64_t offset, uint64_t bytes) {
    braid_error err;
    gpu_buffer b;
    uint64_t seen = 0, total = offset + bytes + 64;
    must(gpu_buffer_new(f->g, GPU_DEVICE, total, &b, &err), &err);
    must(gpu_buffer_fill(f->g, &b, 0, b.bytes, 0xa5a5a5a5u, &err), &err);
    must(gpu_upload(f->g, &b, offset, bytes, pattern, &seen, &err), &err);
    assert_int_equal(seen, bytes);
    uint8_t *back = malloc((size_t)total);
    must(gpu_download(f->g, &b, 0, total, back, &err), &err);
    bool same = true;
    for (uint64_t i = 0; i < total; i++)
        same = same && back[i] == (i < offset || i >= offset + bytes ? 0xa5 : byte_at(i - offset));
    assert_true(same);
    must(gpu_download(f->g, &b, offset, 0, NULL, &err), &err);
    free(back);
    gpu_buffer_free(f->g, &b);
}

static void transfers(void **state) {
    fixture *f = *state;
    for (int hidden = 0; hidden < 2; hidden++) {
        f->g->hide_mappings = hidden != 0;
        round_trip(f, 0, 1);
        round_trip(f, 3, 1001);
        round_trip(f, 4096, 0);
        round_trip(f, 64, 16 << 20);
        round_trip(f, 7, (16 << 20) + 1);
        round_trip(f, 12, (48 << 20) + 5);
    }
    f->g->hide_mappings = false;
}

static braid_status refuse_second(void *user, uint64_t at, void *to, size_t n, braid_error *err) {
    (void)user;
    (void)to;
    (void)n;
    return at ? error_set(err, BRAID_IO, "no more") : BRAID_OK;
}

static void failures_leave_staging_usable(void **state) {
    fixture *f = *state;
    braid_error err;
    gpu_buffer b;
    for (int hidden = 0; hidden < 2; hidden++) {
        f->g->hide_mappings = hidden != 0;
        must(gpu_buffer_new(f->g, GPU_DEVICE, 40 << 20, &b, &err), &err);
        assert_int_equal(gpu_upload(f->g, &b, 0, 40 << 20, refuse_second, NULL, &err), BRAID_IO);
        assert_string_equal(err.message, "no more");
        assert_int_equal(gpu_upload(f->g, &b, b.bytes, 1, refuse_second, NULL, &err), BRAID_INTERNAL);
        assert_int_equal(gpu_upload(f->g, &b, UINT64_MAX, 2, refuse_second, NULL, &err), BRAID_INTERNAL);
        assert_int_equal(gpu_download(f->g, &b, 1, b.bytes, &err, &err), BRAID_INTERNAL);
        assert_int_equal(gpu_buffer_fill(f->g, &b, 2, 4, 0, &err), BRAID_INTERNAL);
        gpu_buffer_free(f->g, &b);
        round_trip(f, 0, 100);
    }
    f->g->hide_mappings = false;
}

typedef struct job {
    fixture *f;
    atomic_int wrong;
} job;

static void transfer_job(void *user, size_t i) {
    job *j = user;
    gpu_buffer b;
    uint8_t in[5000], out[5000];
    memset(in, (int)i + 1, sizeof in);
    if (gpu_buffer_new(j->f->g, GPU_DEVICE, sizeof in, &b, NULL) ||
        gpu_upload(j->f->g, &b, 0, sizeof in, fill_from, in, NULL) ||
        gpu_download(j->f->g, &b, 0, sizeof out, out, NULL) || memcmp(in, out, sizeof in) != 0)
        atomic_fetch_add(&j->wrong, 1);
    gpu_buffer_free(j->f->g, &b);
}

static void many_threads(void **state) {
    job j = {.f = *state};
    atomic_init(&j.wrong, 0);
    j.f->g->hide_mappings = true;
    parallel_for(64, 8, transfer_job, &j);
    j.f->g->hide_mappings = false;
    assert_int_equal(atomic_load(&j.wrong), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds),        cmocka_unit_test(limits),
        cmocka_unit_test(transfers),    cmocka_unit_test(failures_leave_staging_usable),
        cmocka_unit_test(many_threads),
    };
    return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
