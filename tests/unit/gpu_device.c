/*
 * gpu: the list of devices, the choice of one, errors of both, and results of Vulkan as statuses.
 * labels: quick
 */
#include "gpu_fixture.h"

static void list_and_describe(void **state) {
    (void)state;
    braid_device_info list[16], one;
    size_t n = 0, m = 0;
    braid_error err;
    must(gpu_list(list, 16, &n, &err), &err);
    assert_true(n >= 1 && n <= 16);
    must(gpu_list(list, 0, &m, &err), &err);
    assert_int_equal(n, m);
    bool software = false;
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(list[i].index, i);
        if (software) assert_int_equal(list[i].kind, BRAID_DEVICE_SOFTWARE);
        software = list[i].kind == BRAID_DEVICE_SOFTWARE;
        assert_true(strlen(list[i].name) > 0);
        assert_int_equal(strlen(list[i].reason) == 0, list[i].usable);
    }
    gpu *g;
    braid_device_options options = {.size = sizeof options, .select = "0", .no_cache = true};
    must(gpu_open(&options, &g, &err), &err);
    gpu_describe(g, &one);
    assert_memory_equal(&one, &list[0], sizeof one);
    const device_traits *t = gpu_traits(g);
    assert_true(t->subgroup >= 4 && t->max_invocations >= 128 && t->shared_bytes >= 16384 && t->cores >= 1);
    assert_true(t->max_groups >= 65535 && t->max_buffer >= 1u << 27);
    assert_int_equal(t->software, one.kind == BRAID_DEVICE_SOFTWARE);
    gpu_close(g);
    gpu_close(NULL);
}

static gpu_candidate fake(const char *name, VkPhysicalDeviceType type, const char *reason, uint8_t last) {
    gpu_candidate c = {.type = type};
    c.info.kind = type == VK_PHYSICAL_DEVICE_TYPE_CPU ? BRAID_DEVICE_SOFTWARE : BRAID_DEVICE_GPU;
    c.info.usable = !reason;
    c.info.uuid[0] = 0xab;
    c.info.uuid[15] = last;
    snprintf(c.info.name, sizeof c.info.name, "%s", name);
    snprintf(c.info.reason, sizeof c.info.reason, "%s", reason ? reason : "");
    return c;
}

typedef struct choice {
    const char *select;
    braid_status status;
    size_t index;
    const char *message;
} choice;

static void check_choices(const gpu_candidate *list, size_t n, const choice *c, size_t count) {
    for (size_t i = 0; i < count; i++) {
        size_t at = 99;
        braid_error err = {0};
        braid_status status = gpu_choose(list, n, c[i].select, NULL, &at, &err);
        if (status != c[i].status) print_error("select '%s': %s\n", c[i].select ? c[i].select : "NULL", err.message);
        assert_int_equal(status, c[i].status);
        if (status)
            assert_non_null(strstr(err.message, c[i].message));
        else
            assert_int_equal(at, c[i].index);
    }
}

static void choices(void **state) {
    (void)state;
    gpu_candidate list[] = {
        fake("Old GeForce 210", VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, "Vulkan 1.0, 1.3 is required", 1),
        fake("Radeon 7900", VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, NULL, 2),
        fake("Radeon 4090", VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU, NULL, 3),
        fake("llvmpipe", VK_PHYSICAL_DEVICE_TYPE_CPU, NULL, 4)};
    const choice all[] = {
        {NULL, BRAID_OK, 1, NULL},
        {"", BRAID_OK, 1, NULL},
        {"0", BRAID_UNSUPPORTED, 0, "Vulkan 1.0"},
        {"3", BRAID_OK, 3, NULL},
        {"4", BRAID_OK, 2, NULL}, /* no such number, but part of a name */
        {"5", BRAID_NO_DEVICE, 0, "'5'"},
        {"4090", BRAID_OK, 2, NULL},
        {"99999999999999999999", BRAID_NO_DEVICE, 0, "no device matches"},
        {"radeon", BRAID_OK, 1, NULL},
        {"LLVM", BRAID_OK, 3, NULL},
        {"geforce", BRAID_UNSUPPORTED, 0, "Old GeForce 210"},
        {"ab000000000000000000000000000003", BRAID_OK, 2, NULL},
        {"AB000000-0000-0000-0000-000000000004", BRAID_OK, 3, NULL},
        {"ab000000000000000000000000000009", BRAID_NO_DEVICE, 0, "no device matches"},
        {"nothing", BRAID_NO_DEVICE, 0, "4 present"},
    };
    check_choices(list, 4, all, COUNT_OF(all));
    const choice only_software[] = {{NULL, BRAID_OK, 0, NULL}};
    check_choices(list + 3, 1, only_software, 1);
    const choice unusable[] = {{NULL, BRAID_NO_DEVICE, 0, "none of 1 devices"}};
    check_choices(list, 1, unusable, 1);
}

static void failed_opens(void **state) {
    (void)state;
    gpu *g = (gpu *)1;
    braid_error err;
    braid_device_options options = {.size = sizeof options, .select = "no such device", .no_cache = true};
    assert_int_equal(gpu_open(&options, &g, &err), BRAID_NO_DEVICE);
    assert_null(g);
    options.select = NULL;
    uint64_t before = mem_count();
    must(gpu_open(&options, &g, &err), &err);
    uint64_t count = mem_count() - before;
    gpu_close(g);
    for (uint64_t n = 1; n <= count; n++) {
        mem_fail_after(n, false);
        braid_status status = gpu_open(&options, &g, &err);
        mem_fail_after(0, false);
        assert_int_equal(status, BRAID_HOST_MEMORY);
        assert_null(g);
    }
}

static void results_become_statuses(void **state) {
    (void)state;
    braid_error err;
    assert_int_equal(gpu_failure(NULL, VK_ERROR_OUT_OF_HOST_MEMORY, "vkX", &err), BRAID_HOST_MEMORY);
    assert_int_equal(gpu_failure(NULL, VK_ERROR_OUT_OF_DEVICE_MEMORY, "vkX", &err), BRAID_DEVICE_MEMORY);
    assert_int_equal(gpu_failure(NULL, VK_ERROR_DEVICE_LOST, "vkX", &err), BRAID_DEVICE_LOST);
    assert_int_equal(gpu_failure(NULL, VK_ERROR_FRAGMENTATION, "vkX", &err), BRAID_INTERNAL);
    assert_string_equal(err.message, "vkX gave VK_ERROR_FRAGMENTATION (-1000161000)");
    gpu_failure(NULL, (VkResult)-77, "vkX", &err);
    assert_non_null(strstr(err.message, "(-77)"));
}

/* A seeded misuse is counted and logged; without the layer the log says what to install. */
static void the_validation_layer_is_heard(void **state) {
    (void)state;
    fixture f = {0};
    braid_error err;
    braid_device_options options = fixture_options(&f);
    must(gpu_open(&options, &f.g, &err), &err);
    if (!f.g->instance.messenger) {
        assert_true(f.lines > 0);
        gpu_close(f.g);
        skip();
    }
    assert_int_equal(gpu_validation_messages(f.g), 0);
    options.log = NULL;
    f.g->instance.log.fn = NULL;
    VkBufferCreateInfo empty = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT};
    VkBuffer b = VK_NULL_HANDLE;
    (void)f.g->vk->CreateBuffer(f.g->handle, &empty, NULL, &b);
    assert_true(gpu_validation_messages(f.g) > 0);
    if (b) f.g->vk->DestroyBuffer(f.g->handle, b, NULL);
    gpu_close(f.g);
}

/* After a loss every call says so, and closing still works. */
static void a_lost_device_stays_lost(void **state) {
    (void)state;
    gpu *g;
    gpu_buffer b, other;
    braid_error err;
    braid_device_options options = {.size = sizeof options, .no_cache = true};
    must(gpu_open(&options, &g, &err), &err);
    must(gpu_buffer_new(g, GPU_DEVICE, 64, &b, &err), &err);
    gpu_program_info info = {.lanes = 1};
    gpu_program *p, *q;
    must(gpu_program_new(g, &info, &p, &err), &err);
    must(gpu_program_run(g, p, NULL, &err), &err);
    gpu_failure(g, VK_ERROR_DEVICE_LOST, "vkX", &err);
    uint32_t handle;
    gpu_pipeline_key key = {.kernel = "word"};
    assert_int_equal(gpu_program_run(g, p, NULL, &err), BRAID_DEVICE_LOST);
    assert_int_equal(gpu_program_new(g, &info, &q, &err), BRAID_DEVICE_LOST);
    assert_int_equal(gpu_buffer_new(g, GPU_DEVICE, 64, &other, &err), BRAID_DEVICE_LOST);
    assert_int_equal(gpu_buffer_fill(g, &b, 0, 64, 0, &err), BRAID_DEVICE_LOST);
    assert_int_equal(gpu_upload(g, &b, 0, 64, fill_from, &info, &err), BRAID_DEVICE_LOST);
    assert_int_equal(gpu_download(g, &b, 0, 64, &info, &err), BRAID_DEVICE_LOST);
    assert_int_equal(gpu_pipelines(g, 1, &key, &handle, NULL, &err), BRAID_DEVICE_LOST);
    gpu_program_free(g, p);
    gpu_buffer_free(g, &b);
    gpu_close(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(list_and_describe),
        cmocka_unit_test(choices),
        cmocka_unit_test(failed_opens),
        cmocka_unit_test(results_become_statuses),
        cmocka_unit_test(a_lost_device_stays_lost),
        cmocka_unit_test(the_validation_layer_is_heard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
