/*
 * gpu: pipelines by key, the module filter, and the cache file: every byte flipped, every length, every field.
 * labels: quick
 */
#include "gpu_fixture.h"
#include <dirent.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void deduplicated(void **state) {
    fixture *f = *state;
    braid_error err;
    uint32_t before = gpu_pipeline_count(f->g), out[6];
    const uint32_t ids[] = {SPEC_GROUP, SPEC_SUBGROUP, 9}, swapped[] = {9, SPEC_SUBGROUP, SPEC_GROUP};
    const uint32_t a[] = {32, 8, 5}, a_swapped[] = {5, 8, 32}, b[] = {32, 8, 6};
    const gpu_pipeline_key keys[] = {{"word", 3, ids, a}, {"word", 3, ids, b}, {"word", 3, swapped, a_swapped},
                                     {"word", 2, ids, a}, {"word", 3, ids, b}, {"word", 0, NULL, NULL}};
    must(gpu_pipelines(f->g, 6, keys, out, NULL, &err), &err);
    assert_int_equal(out[0], out[2]);
    assert_int_equal(out[1], out[4]);
    assert_true(out[0] != out[1] && out[0] != out[3] && out[3] != out[5]);
    assert_int_equal(gpu_pipeline_count(f->g), before + 4);
    uint32_t again[6];
    must(gpu_pipelines(f->g, 6, keys, again, NULL, &err), &err);
    assert_memory_equal(out, again, sizeof out);
    assert_int_equal(gpu_pipeline_count(f->g), before + 4);
    must(gpu_pipelines(f->g, 0, NULL, NULL, NULL, &err), &err);
}

/* What a call made, and how; what it found is not told again. */
static void creation_is_told(void **state) {
    fixture *f = *state;
    braid_error err;
    uint32_t out[3];
    gpu_made made;
    gpu_creation c;
    const uint32_t ids[] = {9, SPEC_GROUP}, a[] = {101, 8}, b[] = {102, 8};
    const gpu_pipeline_key keys[] = {{"word", 2, ids, a}, {"word", 2, ids, b}, {"word", 2, ids, a}};
    must(gpu_pipelines(f->g, 3, keys, out, &made, &err), &err);
    assert_int_equal(made.count, 2);
    assert_int_equal(made.first, out[0]);
    assert_true(gpu_pipeline_describe(f->g, out[1], &c));
    assert_string_equal(c.kernel, "word");
    assert_int_equal(c.n_spec, 2);
    assert_true(c.spec_ids[0] == SPEC_GROUP && c.spec[0] == 8 && c.spec_ids[1] == 9 && c.spec[1] == 102);
    assert_true(c.module_bytes > 20 && c.module_bytes % 4 == 0);
    assert_true(c.time_ns > 0 && made.time_ns >= c.time_ns && c.busy_ns > 0);
    must(gpu_pipelines(f->g, 3, keys, out, &made, &err), &err);
    assert_int_equal(made.count, 0);
    assert_false(gpu_pipeline_describe(f->g, gpu_pipeline_count(f->g), &c));
}

/* ---- a creation that takes as long as the test wants it to */
static PFN_vkCreateComputePipelines create_at_once;
static sem_t entered, released;
static atomic_bool abandoned;
static gpu *slow_device;

static VKAPI_ATTR VkResult VKAPI_CALL create_slowly(VkDevice device, VkPipelineCache cache, uint32_t n,
                                                    const VkComputePipelineCreateInfo *info,
                                                    const VkAllocationCallbacks *memory, VkPipeline *out) {
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 20;
    sem_post(&entered);
    if (sem_timedwait(&released, &end) != 0) abandoned = true;
    return create_at_once(device, cache, n, info, memory, out);
}

static void *make_a_slow_one(void *user) {
    const uint32_t ids[] = {SPEC_GROUP, 9}, values[] = {8, 4711};
    const gpu_pipeline_key key = {"word", 2, ids, values};
    uint32_t *handle = user;
    braid_error err;
    if (gpu_pipelines(slow_device, 1, &key, handle, NULL, &err) != BRAID_OK) *handle = UINT32_MAX;
    return NULL;
}

/* While one call creates, others go on with what is there. */
static void slow_creation_blocks_nobody(void **state) {
    fixture *f = *state;
    slow_device = f->g;
    pthread_t thread;
    uint32_t before = gpu_pipeline_count(f->g), slow = UINT32_MAX, found = UINT32_MAX;
    sem_init(&entered, 0, 0);
    sem_init(&released, 0, 0);
    create_at_once = f->g->vk->CreateComputePipelines;
    f->g->vk->CreateComputePipelines = create_slowly;
    assert_int_equal(pthread_create(&thread, NULL, make_a_slow_one, &slow), 0);
    sem_wait(&entered);
    found = word_pipeline(f->g, 64);
    uint32_t meanwhile = gpu_pipeline_count(f->g);
    VkPipeline known = gpu_pipeline_handle(f->g, found), unfinished = gpu_pipeline_handle(f->g, before);
    sem_post(&released);
    pthread_join(thread, NULL);
    f->g->vk->CreateComputePipelines = create_at_once;
    assert_false(abandoned);
    assert_int_equal(meanwhile, before);
    assert_true(known != VK_NULL_HANDLE && unfinished == VK_NULL_HANDLE);
    assert_int_equal(slow, before);
    assert_int_equal(gpu_pipeline_count(f->g), before + 1);
    sem_destroy(&entered);
    sem_destroy(&released);
}

/* A driver that tells of two parts of a pipeline. */
static VKAPI_ATTR VkResult VKAPI_CALL two_parts(VkDevice device, const VkPipelineInfoKHR *info, uint32_t *n,
                                                VkPipelineExecutablePropertiesKHR *out) {
    (void)device;
    assert_true(info->pipeline != VK_NULL_HANDLE && *n >= 2);
    for (uint32_t i = 0; i < *n; i++)
        assert_int_equal(out[i].sType, VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR);
    *n = 2;
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL some_figures(VkDevice device, const VkPipelineExecutableInfoKHR *info,
                                                   uint32_t *n, VkPipelineExecutableStatisticKHR *out) {
    (void)device;
    if (info->executableIndex == 1) {
        *n = 1;
        snprintf(out[0].name, sizeof out[0].name, "Spills");
        out[0].format = VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR;
        out[0].value.i64 = -1;
        return VK_SUCCESS;
    }
    for (uint32_t i = 0; i < *n; i++) {
        snprintf(out[i].name, sizeof out[i].name, "Figure %u", i);
        out[i].format = (VkPipelineExecutableStatisticFormatKHR)(i < 5 ? i : 3);
        out[i].value.u64 = i;
    }
    out[3].value.f64 = 0.5;
    if (*n > 5) *n = 5;
    return VK_INCOMPLETE;
}

static void figures_are_told(void **state) {
    fixture *f = *state;
    text t = {0};
    gpu_pipeline_figures(f->g, f->word, &t);
    assert_null(t.data); /* not asked for */
    gpu_calls before = *f->g->vk;
    f->g->figures = true;
    f->g->vk->GetPipelineExecutablePropertiesKHR = two_parts;
    f->g->vk->GetPipelineExecutableStatisticsKHR = some_figures;
    gpu_pipeline_figures(f->g, f->word, &t);
    assert_string_equal(t.data, "Figure 0 no, Figure 1 1, Figure 2 2, Figure 3 0.5, Spills -1");
    text_free(&t);
    gpu_pipeline_figures(f->g, gpu_pipeline_count(f->g), &t);
    assert_null(t.data);
    *f->g->vk = before;
    f->g->figures = false;
}

static void refused(void **state) {
    fixture *f = *state;
    braid_error err;
    uint32_t before = gpu_pipeline_count(f->g), out[3];
    const uint32_t ids[] = {SPEC_GROUP, 9}, good[] = {16, 1}, zero[] = {0, 1}, huge[] = {1u << 20, 1};
    gpu_pipeline_key keys[] = {{"word", 2, ids, good}, {"word", 1, ids, good}, {"no_such_kernel", 0, NULL, NULL}};
    assert_int_equal(gpu_pipelines(f->g, 3, keys, out, NULL, &err), BRAID_INTERNAL);
    assert_non_null(strstr(err.message, "no_such_kernel"));
    keys[2] = (gpu_pipeline_key){"word", 1, ids, zero};
    assert_int_equal(gpu_pipelines(f->g, 3, keys, out, NULL, &err), BRAID_LIMIT);
    keys[2] = (gpu_pipeline_key){"word", 1, ids, huge};
    assert_int_equal(gpu_pipelines(f->g, 3, keys, out, NULL, &err), BRAID_LIMIT);
    assert_int_equal(gpu_pipeline_count(f->g), before);
    for (uint64_t n = 1; n <= 4; n++) {
        mem_fail_after(n, false);
        assert_int_equal(gpu_pipelines(f->g, 2, keys, out, NULL, &err), BRAID_HOST_MEMORY);
        mem_fail_after(0, false);
        assert_int_equal(gpu_pipeline_count(f->g), before);
    }
    must(gpu_pipelines(f->g, 2, keys, out, NULL, &err), &err);
    assert_true(gpu_shader_exists("word"));
    assert_false(gpu_shader_exists("") || gpu_shader_exists("wor") || gpu_shader_exists("word_") ||
                 gpu_shader_exists("~"));
    for (size_t i = 0; i < gpu_shader_count; i++) assert_true(gpu_shader_exists(gpu_shaders[i].name));
}

static void float_controls_are_stripped(void **state) {
    (void)state;
    const uint32_t module[] = {0x07230203,
                               0x10600,
                               0,
                               10,
                               0,
                               2 << 16 | 17,
                               1, /* OpCapability Shader */
                               2 << 16 | 17,
                               4466, /* OpCapability SignedZeroInfNanPreserve */
                               5 << 16 | 15,
                               5,
                               4,
                               0x6e69616d,
                               0, /* OpEntryPoint */
                               4 << 16 | 16,
                               4,
                               4461,
                               32, /* OpExecutionMode SignedZeroInfNanPreserve 32 */
                               6 << 16 | 16,
                               4,
                               17,
                               1,
                               1,
                               1}; /* OpExecutionMode LocalSize */
    uint32_t out[COUNT_OF(module)];
    assert_int_equal(gpu_strip_float_controls(module, COUNT_OF(module), out), COUNT_OF(module) - 6);
    assert_memory_equal(out, module, 7 * 4);
    assert_memory_equal(out + 7, module + 9, 5 * 4);
    assert_memory_equal(out + 12, module + 18, 6 * 4);
    for (size_t i = 0; i < gpu_shader_count; i++) { /* malformed lengths do not matter here; every module survives */
        size_t words = gpu_shaders[i].bytes / 4;
        uint32_t *copy = malloc(gpu_shaders[i].bytes);
        size_t n = gpu_strip_float_controls(gpu_shaders[i].code, words, copy);
        assert_true(n <= words && n + 64 > words);
        free(copy);
    }
    const uint32_t broken[] = {1, 2, 3, 4, 5, 0, 17};
    assert_int_equal(gpu_strip_float_controls(broken, 7, out), 7);
}

/* ------------------------------------------------------------------------------------------------ the cache */

static gpu_cache_identity identity(void) {
    gpu_cache_identity id = {.braid = "0.1.0", .build = 42, .vendor = 0x10de, .device = 0x2330, .driver_version = 7};
    memset(id.device_uuid, 3, sizeof id.device_uuid);
    memset(id.cache_uuid, 4, sizeof id.cache_uuid);
    return id;
}

enum { DATA = 500 };
static void driver_data(uint8_t data[DATA]) {
    gpu_cache_identity id = identity();
    const uint32_t head[] = {32, 1, id.vendor, id.device};
    for (int i = 0; i < DATA; i++) data[i] = (uint8_t)(i * 31);
    memcpy(data, head, sizeof head);
    memcpy(data + 16, id.cache_uuid, 16);
}

static size_t read_bytes(const char *path, uint8_t *out, size_t capacity) {
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(out, 1, capacity, f);
    fclose(f);
    return n;
}

static void write_bytes(const char *path, const uint8_t *bytes, size_t n) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static void every_flip_and_length(void **state) {
    (void)state;
    uint8_t data[DATA], bytes[4096];
    const gpu_cache_identity id = identity();
    const logger quiet = {0};
    driver_data(data);
    assert_true(gpu_cache_write("./cache_test.bin", &id, data, DATA, &quiet));
    size_t n = read_bytes("./cache_test.bin", bytes, sizeof bytes), got = 0;
    unlink("./cache_test.bin");
    assert_true(n > DATA && n < DATA + 256);
    const void *inside = gpu_cache_verify(bytes, n, &id, &got);
    assert_true(inside && got == DATA && memcmp(inside, data, DATA) == 0);
    for (size_t bit = 0; bit < n * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_null(gpu_cache_verify(bytes, n, &id, &got));
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t i = 0; i < n; i++) {
        uint8_t saved = bytes[i];
        for (int v = 0; v < 256; v += 5) {
            bytes[i] = (uint8_t)v;
            if (bytes[i] != saved) assert_null(gpu_cache_verify(bytes, n, &id, &got));
        }
        bytes[i] = saved;
    }
    for (size_t length = 0; length < n; length++) { /* behind the end lies foreign memory for the sanitizer */
        uint8_t *copy = malloc(length ? length : 1);
        memcpy(copy, bytes, length);
        assert_null(gpu_cache_verify(copy, length, &id, &got));
        free(copy);
    }
    for (size_t more = 1; more < 64; more++) assert_null(gpu_cache_verify(bytes, n + more, &id, &got));
    assert_non_null(gpu_cache_verify(bytes, n, &id, &got));
}

static void every_field(void **state) {
    (void)state;
    uint8_t data[DATA], bytes[4096];
    const logger quiet = {0};
    driver_data(data);
    gpu_cache_identity good = identity(), other[7];
    for (int i = 0; i < 7; i++) other[i] = good;
    snprintf(other[0].braid, sizeof other[0].braid, "0.1.1");
    other[1].build++;
    other[2].vendor++;
    other[3].device++;
    other[4].driver_version++;
    other[5].device_uuid[15]++;
    other[6].cache_uuid[0]++;
    for (int i = 0; i < 7; i++) { /* a whole file of another identity, its own checksums right */
        size_t got;
        assert_true(gpu_cache_write("./cache_test.bin", &other[i], data, DATA, &quiet));
        size_t n = read_bytes("./cache_test.bin", bytes, sizeof bytes);
        assert_null(gpu_cache_verify(bytes, n, &good, &got));
    }
    for (size_t at = 0; at < 32; at += 4) { /* and one whose driver data is for another device */
        size_t got;
        data[at]++;
        assert_true(gpu_cache_write("./cache_test.bin", &good, data, DATA, &quiet));
        size_t n = read_bytes("./cache_test.bin", bytes, sizeof bytes);
        const void *found = gpu_cache_verify(bytes, n, &good, &got);
        if (at) assert_null(found); /* the size of the driver's header may grow */
        data[at]--;
    }
    unlink("./cache_test.bin");
}

static int entries_of(const char *folder) {
    DIR *d = opendir(folder);
    assert_non_null(d);
    int n = 0;
    for (const struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

/* A process that is killed while it writes leaves the old file or the new one, and nothing that grows. */
static void killed_writers(void **state) {
    (void)state;
    char folder[64] = "./cache_test_XXXXXX", path[128], command[512];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/x.bin", folder);
    const gpu_cache_identity id = identity();
    enum { LARGE = 1 << 20 };
    uint8_t *data = calloc(1, LARGE);
    driver_data(data);
    int present = 0;
    for (unsigned i = 0; i < 100; i++) {
        /* on a busy machine no child may have got so far */
        if (i == 50) assert_true(gpu_cache_write(path, &id, data, DATA, NULL));
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            for (size_t n = DATA;; n = n * 5 % LARGE + DATA)
                (void)gpu_cache_write(path, &id, data, n < LARGE ? n : DATA, NULL);
        usleep(500 + i * 7919 % 4000);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        const void *inside;
        size_t got;
        void *content = gpu_cache_read(path, &id, &inside, &got);
        assert_int_equal(content != NULL, access(path, F_OK) == 0);
        present += content != NULL;
        mem_free(content);
        assert_true(entries_of(folder) <= 2);
    }
    assert_true(present >= 50);
    assert_true(gpu_cache_write(path, &id, data, DATA, NULL));
    assert_int_equal(entries_of(folder), 1);
    /* planted links are not followed */
    snprintf(command, sizeof command, "cp %s %s/other && ln -s other %s.tmp", path, folder, path);
    assert_int_equal(system(command), 0);
    assert_false(gpu_cache_write(path, &id, data, DATA, NULL));
    snprintf(command, sizeof command, "rm %s.tmp && ln %s/other %s.tmp", path, folder, path);
    assert_int_equal(system(command), 0);
    assert_false(gpu_cache_write(path, &id, data, DATA, NULL));
    snprintf(command, sizeof command, "cmp -s %s %s/other", path, folder);
    assert_int_equal(system(command), 0);
    free(data);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

static void file_of(const gpu *g, char *out) {
    snprintf(out, 4200, "%s", g->cache_path);
}

/* Opens, makes n pipelines, closes. Returns how many bytes of the file were taken over. */
static uint64_t session(fixture *f, const char *folder, uint32_t n, char path[4200]) {
    gpu *g;
    braid_error err;
    braid_device_options options = fixture_options(f);
    options.no_cache = false;
    options.cache_dir = folder;
    must(gpu_open(&options, &g, &err), &err);
    file_of(g, path);
    uint64_t taken = g->saved_hash;
    for (uint32_t i = 0; i < n; i++) word_pipeline(g, 8 * (i + 1));
    assert_int_equal(gpu_validation_messages(g), 0);
    gpu_close(g);
    return taken;
}

static void through_the_device(void **state) {
    fixture *f = *state;
    char folder[64] = "./cache_test_XXXXXX", nested[128], path[4200];
    assert_non_null(mkdtemp(folder));
    snprintf(nested, sizeof nested, "%s/a/b", folder);
    assert_int_equal(session(f, nested, 0, path), 0);
    assert_int_equal(entries_of(nested), 0); /* no new pipelines: nothing written */
    assert_int_equal(session(f, nested, 3, path), 0);
    assert_int_equal(entries_of(nested), 1);
    assert_true(session(f, nested, 3, path) != 0);
    uint8_t *bytes = malloc(1 << 20);
    size_t n = read_bytes(path, bytes, 1 << 20);
    for (size_t i = 0; i < 12; i++) { /* damage is dropped, the file rebuilt */
        size_t at = i * n / 12;
        bytes[at] ^= 0x40;
        write_bytes(path, bytes, n);
        bytes[at] ^= 0x40;
        assert_int_equal(session(f, nested, 3, path), 0);
        assert_true(session(f, nested, 3, path) != 0);
    }
    write_bytes(path, bytes, n / 2);
    assert_int_equal(session(f, nested, 3, path), 0);
    write_bytes(path, bytes, 0);
    assert_int_equal(session(f, nested, 20, path), 0);
    assert_true(session(f, nested, 0, path) != 0);
    assert_int_equal(entries_of(nested), 1); /* no temporary file stays */
    free(bytes);
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

static void unwritable_folders_are_a_log_line(void **state) {
    fixture *f = *state;
    char path[4200];
    int before = f->lines;
    session(f, "/dev/null/x", 2, path);
    assert_true(f->lines > before);
    assert_string_equal(path, "");
    session(f, "/proc/self", 9, path); /* exists, takes no files */
    assert_true(strlen(path) > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deduplicated),
        cmocka_unit_test(creation_is_told),
        cmocka_unit_test(figures_are_told),
        cmocka_unit_test(slow_creation_blocks_nobody),
        cmocka_unit_test(refused),
        cmocka_unit_test(float_controls_are_stripped),
        cmocka_unit_test(every_flip_and_length),
        cmocka_unit_test(every_field),
        cmocka_unit_test(killed_writers),
        cmocka_unit_test(through_the_device),
        cmocka_unit_test(unwritable_folders_are_a_log_line),
    };
    return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
