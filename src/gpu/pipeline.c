/*
 * pipeline.c: pipelines by key. A key is a module and its specialization constants in ascending order of id; two keys
 * are one pipeline when both are equal, whatever their hash says. A handle is an index into the table and lives as
 * long as the gpu.
 */
#include "gpu/inside.h"
#include "gpu/specialize.h"
#include <stdio.h>
#include <stdlib.h>

enum { SLOW_NS = 250000000 };
enum { SAVE_AT = 8 }; /* so many new pipelines are worth a file at once; fewer wait for the end */

const gpu_shader *gpu_shader_find(const char *name) {
    size_t low = 0, high = gpu_shader_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(gpu_shaders[middle].name, name);
        if (order == 0) return &gpu_shaders[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

bool gpu_shader_exists(const char *name) {
    return gpu_shader_find(name) != NULL;
}

size_t gpu_strip_float_controls(const uint32_t *code, size_t words, uint32_t *out) {
    enum { HEADER = 5, OP_EXECUTION_MODE = 16, OP_CAPABILITY = 17, MODE = 4461, CAPABILITY = 4466 };
    size_t n = 0;
    for (size_t i = 0; i < words;) {
        size_t length = i < HEADER ? 1 : code[i] >> 16;
        uint32_t op = i < HEADER ? 0 : code[i] & 0xffff;
        if (length == 0 || length > words - i) length = words - i;
        bool drop = (op == OP_EXECUTION_MODE && length >= 4 && code[i + 2] == MODE) ||
                    (op == OP_CAPABILITY && length >= 2 && code[i + 1] == CAPABILITY);
        if (!drop) memcpy(out + n, code + i, length * sizeof *code);
        n += drop ? 0 : length;
        i += length;
    }
    return n;
}

/* --------------------------------------------------------------------------------------------------- table */

static void pipeline_free(gpu *g, gpu_pipeline *p) {
    if (!p) return;
    if (p->handle) g->vk->DestroyPipeline(g->handle, p->handle, NULL);
    mem_free(p);
}

static uint32_t spec_value(const gpu_pipeline *p, uint32_t id, uint32_t otherwise) {
    for (uint32_t i = 0; i < p->n_spec; i++)
        if (p->spec[i] == id) return p->spec[p->n_spec + i];
    return otherwise;
}

/* Inserts id and value in order; a later value of the same id replaces the earlier one. */
static void spec_insert(gpu_pipeline *p, uint32_t capacity, uint32_t id, uint32_t value) {
    uint32_t *ids = p->spec, *values = p->spec + capacity, at = p->n_spec;
    while (at > 0 && ids[at - 1] >= id) at--;
    if (at == p->n_spec || ids[at] != id) {
        memmove(ids + at + 1, ids + at, (p->n_spec - at) * sizeof *ids);
        memmove(values + at + 1, values + at, (p->n_spec - at) * sizeof *values);
        p->n_spec++;
    }
    ids[at] = id;
    values[at] = value;
}

/* The entry that a key stands for, without its VkPipeline. */
static braid_status pipeline_from_key(const gpu *g, const gpu_pipeline_key *key, gpu_pipeline **out, braid_error *err) {
    const gpu_shader *shader = gpu_shader_find(key->kernel);
    if (!shader) return error_set(err, BRAID_INTERNAL, "kernel '%s' does not exist", key->kernel);
    size_t bytes;
    if (!size_mul(key->n_spec, 2 * sizeof(uint32_t), &bytes) || !size_add(bytes, sizeof(gpu_pipeline), &bytes))
        return error_memory(err);
    gpu_pipeline *p = mem_alloc(bytes);
    if (!p) return error_memory(err);
    *p = (gpu_pipeline){.shader = shader, .spec = (uint32_t *)(p + 1)};
    for (uint32_t i = 0; i < key->n_spec; i++) spec_insert(p, key->n_spec, key->spec_ids[i], key->spec[i]);
    memmove(p->spec + p->n_spec, p->spec + key->n_spec, p->n_spec * sizeof *p->spec);
    uint64_t start = (uint64_t)(shader - gpu_shaders) << 32 | p->n_spec;
    p->hash = hash_bytes(start, p->spec, 2 * p->n_spec * sizeof *p->spec);
    uint32_t group = spec_value(p, SPEC_GROUP, 1);
    if (group >= 1 && group <= g->device.traits.max_invocations) {
        *out = p;
        return BRAID_OK;
    }
    mem_free(p);
    return error_set(err, BRAID_LIMIT, "kernel '%s' with workgroups of %u: device '%.100s' allows 1 to %u", key->kernel,
                     group, g->device.info.name, g->device.traits.max_invocations);
}

static bool same_key(const gpu_pipeline *a, const gpu_pipeline *b) {
    return a->hash == b->hash && a->shader == b->shader && a->n_spec == b->n_spec &&
           memcmp(a->spec, b->spec, 2 * a->n_spec * sizeof *a->spec) == 0;
}

static braid_status table_reserve(gpu *g, braid_error *err) {
    if (g->n_pipelines < g->cap_pipelines) return BRAID_OK;
    uint32_t capacity = g->cap_pipelines ? g->cap_pipelines * 2 : 64;
    gpu_pipeline **table = mem_realloc(g->pipelines, capacity * sizeof *table);
    if (!table) return error_memory(err);
    g->pipelines = table;
    g->cap_pipelines = capacity;
    return BRAID_OK;
}

/* Finds the key's entry among the first n: *missing is NULL; else it is what the table lacks, the caller's. */
static braid_status table_find(const gpu *g, const gpu_pipeline_key *key, uint32_t n, uint32_t *out,
                               gpu_pipeline **missing, braid_error *err) {
    gpu_pipeline *p = NULL;
    *missing = NULL;
    TRY(pipeline_from_key(g, key, &p, err));
    for (uint32_t i = 0; i < n; i++)
        if (same_key(g->pipelines[i], p)) {
            mem_free(p);
            *out = i;
            return BRAID_OK;
        }
    *missing = p;
    return BRAID_OK;
}

/* *all: is every one there and ready. */
static braid_status find_ready(gpu *g, size_t n, const gpu_pipeline_key *keys, uint32_t *out, bool *all,
                               braid_error *err) {
    braid_status status = BRAID_OK;
    *all = true;
    pthread_mutex_lock(&g->pipeline_lock);
    for (size_t i = 0; i < n && *all && !status; i++) {
        gpu_pipeline *missing = NULL;
        status = table_find(g, &keys[i], g->n_ready, &out[i], &missing, err);
        *all = !missing;
        mem_free(missing);
    }
    pthread_mutex_unlock(&g->pipeline_lock);
    return status;
}

/* Finds the key's entry or appends one that is still to be created. */
static braid_status table_add(gpu *g, const gpu_pipeline_key *key, uint32_t *out, braid_error *err) {
    gpu_pipeline *missing = NULL;
    TRY(table_reserve(g, err));
    TRY(table_find(g, key, g->n_pipelines, out, &missing, err));
    if (!missing) return BRAID_OK;
    *out = g->n_pipelines;
    g->pipelines[g->n_pipelines++] = missing;
    return BRAID_OK;
}

/* ------------------------------------------------------------------------------------------------ creation */

/* The module with the pipeline's constants filled in and dead code gone (gpu/specialize.h); as it is where that fails.
 */
static VkResult module_create(gpu *g, gpu_pipeline *p, VkShaderModule *out) {
    const uint32_t *code = p->shader->code;
    size_t n = p->shader->bytes / 4;
    uint32_t *special = NULL, *stripped = NULL;
    if (spirv_specialize(code, n, p->n_spec, p->spec, p->spec + p->n_spec, &special, &n))
        code = special;
    else
        n = p->shader->bytes / 4;
    if (g->strip_float_controls) {
        if (!(stripped = mem_alloc(n * 4))) {
            mem_free(special);
            return VK_ERROR_OUT_OF_HOST_MEMORY;
        }
        n = gpu_strip_float_controls(code, n, stripped);
        code = stripped;
    }
    VkShaderModuleCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = n * 4, .pCode = code};
    p->module_bytes = info.codeSize;
    VkResult r = g->vk->CreateShaderModule(g->handle, &info, NULL, out);
    mem_free(stripped);
    mem_free(special);
    return r;
}

static VkResult pipeline_create(gpu *g, gpu_pipeline *p) {
    VkShaderModule module = VK_NULL_HANDLE;
    VkSpecializationMapEntry *entries = mem_alloc((p->n_spec ? p->n_spec : 1) * sizeof *entries);
    if (!entries) return VK_ERROR_OUT_OF_HOST_MEMORY;
    for (uint32_t i = 0; i < p->n_spec; i++)
        entries[i] = (VkSpecializationMapEntry){p->spec[i], i * (uint32_t)sizeof(uint32_t), sizeof(uint32_t)};
    VkSpecializationInfo constants = {p->n_spec, entries, p->n_spec * sizeof(uint32_t), p->spec + p->n_spec};
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfo pinned = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
        .requiredSubgroupSize = g->device.traits.subgroup};
    bool full = g->device.full_subgroups && spec_value(p, SPEC_GROUP, 1) % g->device.traits.subgroup == 0;
    VkPipelineCreationFeedback whole = {0}, stage = {0};
    VkPipelineCreationFeedbackCreateInfo feedback = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CREATION_FEEDBACK_CREATE_INFO,
                                                     .pPipelineCreationFeedback = &whole,
                                                     .pipelineStageCreationFeedbackCount = 1,
                                                     .pPipelineStageCreationFeedbacks = &stage};
    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .pNext = &feedback,
        .flags = g->figures ? VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR : 0,
        .layout = g->layout,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .pNext = g->device.pin_subgroup ? &pinned : NULL,
                  .flags = full ? VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT : 0,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .pName = "main",
                  .pSpecializationInfo = &constants}};
    VkResult r = module_create(g, p, &module);
    info.stage.module = module;
    if (r >= 0) r = g->vk->CreateComputePipelines(g->handle, g->cache, 1, &info, NULL, &p->handle);
    if (r != VK_SUCCESS) p->handle = VK_NULL_HANDLE;
    const VkPipelineCreationFeedbackFlags hit =
        VK_PIPELINE_CREATION_FEEDBACK_VALID_BIT | VK_PIPELINE_CREATION_FEEDBACK_APPLICATION_PIPELINE_CACHE_HIT_BIT;
    p->cached = (whole.flags & hit) == hit;
    if (module) g->vk->DestroyShaderModule(g->handle, module, NULL);
    mem_free(entries);
    return r;
}

typedef struct creation {
    gpu *g;
    uint32_t first;
    VkResult *results;
} creation;

static void create_one(void *user, size_t i) {
    creation *c = user;
    gpu_pipeline *p = c->g->pipelines[c->first + i];
    uint64_t start = clock_ns(), busy = thread_ns();
    c->results[i] = pipeline_create(c->g, p);
    p->time_ns = clock_ns() - start;
    p->busy_ns = thread_ns() - busy;
}

/* Creates the entries from `first` on. */
static braid_status create_from(gpu *g, uint32_t first, braid_error *err) {
    uint32_t n = g->n_pipelines - first;
    if (n == 0) return BRAID_OK;
    creation c = {g, first, mem_alloc(n * sizeof *c.results)};
    if (!c.results) return error_memory(err);
    parallel_for(n, 0, create_one, &c);
    braid_status status = BRAID_OK;
    for (uint32_t i = 0; i < n && !status; i++) {
        if (c.results[i] == VK_SUCCESS) continue;
        status = gpu_failure(g, c.results[i] < 0 ? c.results[i] : VK_ERROR_UNKNOWN, "vkCreateComputePipelines", err);
        error_within(err, status, "kernel '%s'", g->pipelines[first + i]->shader->name);
    }
    mem_free(c.results);
    return status;
}

static void drop_from(gpu *g, uint32_t first) {
    while (g->n_pipelines > first) pipeline_free(g, g->pipelines[--g->n_pipelines]);
    if (g->n_ready > first) g->n_ready = first;
}

/* ------------------------------------------------------------------------------------------------ the file */

static void cache_save(gpu *g) {
    size_t bytes = 0;
    if (!g->unsaved || !g->cache_path[0] || !g->cache || atomic_load(&g->lost)) return;
    g->unsaved = 0;
    uint64_t start = clock_ns();
    if (g->vk->GetPipelineCacheData(g->handle, g->cache, &bytes, NULL) < 0 || bytes == 0) return;
    void *data = mem_alloc(bytes);
    if (data && g->vk->GetPipelineCacheData(g->handle, g->cache, &bytes, data) == VK_SUCCESS) {
        uint64_t hash = hash_bytes(0, data, bytes);
        if (hash != g->saved_hash && gpu_cache_write(g->cache_path, &g->identity, data, bytes, g->log))
            g->saved_hash = hash;
    }
    mem_free(data);
    uint64_t ns = clock_ns() - start;
    log_line(g->log, ns >= SLOW_NS ? BRAID_LOG_INFO : BRAID_LOG_DEBUG, "pipeline cache of %zu bytes kept in %.1f ms", bytes,
             (double)ns / 1e6);
}

static void identify(gpu *g) {
    gpu_cache_identity *id = &g->identity;
    snprintf(id->braid, sizeof id->braid, "%s", BRAID_VERSION);
    for (size_t i = 0; i < gpu_shader_count; i++) {
        id->build = hash_bytes(id->build, gpu_shaders[i].name, strlen(gpu_shaders[i].name));
        id->build = hash_bytes(id->build, gpu_shaders[i].code, gpu_shaders[i].bytes);
    }
    id->vendor = g->device.vendor;
    id->device = g->device.device;
    id->driver_version = g->device.driver_version;
    memcpy(id->device_uuid, g->device.info.uuid, sizeof id->device_uuid);
    memcpy(id->cache_uuid, g->device.cache_uuid, sizeof id->cache_uuid);
}

static void find_path(gpu *g, const braid_device_options *options) {
    char folder[4000], uuid[33];
    if (options->no_cache || !gpu_cache_folder(options->cache_dir, g->log, folder, sizeof folder)) return;
    for (int i = 0; i < 16; i++) snprintf(uuid + 2 * i, 3, "%02x", g->device.info.uuid[i]);
    snprintf(g->cache_path, sizeof g->cache_path, "%s/braid-%s.bin", folder, uuid);
}

static braid_status cache_open(gpu *g, const braid_device_options *options, braid_error *err) {
    const void *data = NULL;
    size_t bytes = 0;
    identify(g);
    find_path(g, options);
    void *content = g->cache_path[0] ? gpu_cache_read(g->cache_path, &g->identity, &data, &bytes) : NULL;
    VkPipelineCacheCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO, .initialDataSize = bytes, .pInitialData = data};
    VkResult r = g->vk->CreatePipelineCache(g->handle, &info, NULL, &g->cache);
    if (r < 0 && bytes) {
        info.initialDataSize = 0;
        info.pInitialData = NULL;
        r = g->vk->CreatePipelineCache(g->handle, &info, NULL, &g->cache);
    } else if (bytes) {
        g->saved_hash = hash_bytes(0, data, bytes);
    }
    mem_free(content);
    if (r >= 0) return BRAID_OK;
    g->cache = VK_NULL_HANDLE;
    return gpu_failure(g, r, "vkCreatePipelineCache", err);
}

/* ------------------------------------------------------------------------------------------------- outside */

braid_status gpu_pipelines_open(gpu *g, const braid_device_options *options, braid_error *err) {
    VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(push_block)};
    VkPipelineLayoutCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                       .pushConstantRangeCount = 1,
                                       .pPushConstantRanges = &range};
    g->strip_float_controls = !g->device.traits.nan_kept;
    VK_TRY(g, err, CreatePipelineLayout, g->handle, &info, NULL, &g->layout);
    return cache_open(g, options, err);
}

void gpu_pipelines_close(gpu *g) {
    cache_save(g);
    drop_from(g, 0);
    mem_free(g->pipelines);
    if (g->cache) g->vk->DestroyPipelineCache(g->handle, g->cache, NULL);
    if (g->layout) g->vk->DestroyPipelineLayout(g->handle, g->layout, NULL);
    g->pipelines = NULL;
    g->cache = VK_NULL_HANDLE;
    g->layout = VK_NULL_HANDLE;
}

static braid_status create_missing(gpu *g, size_t n, const gpu_pipeline_key *keys, uint32_t *out, gpu_made *made,
                                   braid_error *err) {
    braid_status status = BRAID_OK;
    pthread_mutex_lock(&g->creation_lock);
    pthread_mutex_lock(&g->pipeline_lock);
    uint32_t first = g->n_pipelines;
    for (size_t i = 0; i < n && !status; i++) status = table_add(g, &keys[i], &out[i], err);
    pthread_mutex_unlock(&g->pipeline_lock);
    if (!status) status = create_from(g, first, err);
    pthread_mutex_lock(&g->pipeline_lock);
    if (status) drop_from(g, first);
    g->n_ready = g->n_pipelines;
    pthread_mutex_unlock(&g->pipeline_lock);
    *made = (gpu_made){.first = first, .count = g->n_pipelines - first};
    g->unsaved += made->count;
    if (g->unsaved >= SAVE_AT) cache_save(g);
    pthread_mutex_unlock(&g->creation_lock);
    return status;
}

braid_status gpu_pipelines(gpu *g, size_t n, const gpu_pipeline_key *keys, uint32_t *out, gpu_made *made,
                           braid_error *err) {
    TRY(gpu_alive(g, err));
    uint64_t start = clock_ns();
    bool all;
    gpu_made now = {0};
    TRY(find_ready(g, n, keys, out, &all, err));
    braid_status status = all ? BRAID_OK : create_missing(g, n, keys, out, &now, err);
    now.time_ns = clock_ns() - start;
    if (made) *made = now;
    return status;
}

uint32_t gpu_pipeline_count(const gpu *g) {
    pthread_mutex_t *lock = (pthread_mutex_t *)&g->pipeline_lock;
    pthread_mutex_lock(lock);
    uint32_t n = g->n_ready;
    pthread_mutex_unlock(lock);
    return n;
}

bool gpu_pipeline_describe(gpu *g, uint32_t handle, gpu_creation *out) {
    pthread_mutex_lock(&g->pipeline_lock);
    const gpu_pipeline *p = handle < g->n_ready ? g->pipelines[handle] : NULL;
    if (p)
        *out = (gpu_creation){p->shader->name, p->n_spec,  p->spec,    p->spec + p->n_spec,
                              p->module_bytes, p->time_ns, p->busy_ns, p->cached};
    pthread_mutex_unlock(&g->pipeline_lock);
    return p != NULL;
}

VkPipeline gpu_pipeline_handle(gpu *g, uint32_t handle) {
    pthread_mutex_lock(&g->pipeline_lock);
    VkPipeline p = handle < g->n_ready ? g->pipelines[handle]->handle : VK_NULL_HANDLE;
    pthread_mutex_unlock(&g->pipeline_lock);
    return p;
}
