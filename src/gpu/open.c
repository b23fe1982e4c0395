/*
 * open.c: from options to a device with its queue, staging and pipelines, and back.
 */
#include "gpu/inside.h"

static braid_status device_create(gpu *g, braid_error *err) {
    const gpu_candidate *c = &g->device;
    VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR figures = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR,
        .pipelineExecutableInfo = true};
    VkPhysicalDeviceVulkan13Features v13 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES,
                                            .pNext = g->figures ? &figures : NULL,
                                            .synchronization2 = true,
                                            .maintenance4 = true,
                                            .subgroupSizeControl = c->pin_subgroup,
                                            .computeFullSubgroups = c->full_subgroups};
    VkPhysicalDeviceVulkan12Features v12 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                            .pNext = &v13,
                                            .bufferDeviceAddress = true,
                                            .timelineSemaphore = true,
                                            .storageBuffer8BitAccess = true,
                                            .shaderFloat16 = c->traits.float16,
                                            .shaderInt8 = c->traits.int8,
                                            .scalarBlockLayout = c->scalar_layout,
                                            .shaderSubgroupExtendedTypes = c->subgroup_types};
    VkPhysicalDeviceVulkan11Features v11 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
                                            .pNext = &v12,
                                            .storageBuffer16BitAccess = true};
    VkPhysicalDeviceFeatures2 features = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
        .pNext = &v11,
        .features = {.shaderInt64 = true, .shaderInt16 = c->traits.int16, .shaderFloat64 = c->traits.float64}};
    float priority = 1;
    VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                     .queueFamilyIndex = c->queue_family,
                                     .queueCount = 1,
                                     .pQueuePriorities = &priority};
    const char *extensions[2];
    uint32_t n_extensions = 0;
    if (c->portability_subset) extensions[n_extensions++] = "VK_KHR_portability_subset";
    if (g->figures) extensions[n_extensions++] = VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME;
    VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                               .pNext = &features,
                               .queueCreateInfoCount = 1,
                               .pQueueCreateInfos = &queue,
                               .enabledExtensionCount = n_extensions,
                               .ppEnabledExtensionNames = extensions};
    VkResult r = g->vk->CreateDevice(c->handle, &info, NULL, &g->handle);
    if (r < 0) {
        g->handle = NULL;
        gpu_failure(g, r, "vkCreateDevice", err);
        return error_within(err, err ? err->status : BRAID_INTERNAL, "device '%s'", c->info.name);
    }
    return gpu_load_device_calls(g->vk, g->handle, err);
}

static void announce(const gpu *g) {
    const gpu_candidate *c = &g->device;
    log_line(g->log, BRAID_LOG_INFO, "device %d '%s', %s, Vulkan %u.%u.%u, subgroup %u, %u cores", c->info.index,
             c->info.name, c->info.driver, VK_API_VERSION_MAJOR(c->info.api_version),
             VK_API_VERSION_MINOR(c->info.api_version), VK_API_VERSION_PATCH(c->info.api_version), c->traits.subgroup,
             c->traits.cores);
    if (c->traits.software && c->mesa > 0 && c->mesa < 23)
        log_line(g->log, BRAID_LOG_WARN,
                 "Mesa %d stops every shader loop after 65535 iterations, so large models give wrong results; "
                 "Mesa 23 or newer is needed",
                 c->mesa);
}

static braid_status build(gpu *g, const braid_device_options *options, braid_error *err) {
    TRY(gpu_instance_open(&g->instance, options->validation, (logger){options->log, options->log_user}, err));
    g->vk = &g->instance.vk;
    g->log = &g->instance.log;
    gpu_candidate *list = NULL;
    size_t count = 0, chosen = 0;
    TRY(gpu_scan(&g->instance, &list, &count, err));
    braid_status status = gpu_choose(list, count, options->select, g->log, &chosen, err);
    if (!status) g->device = list[chosen];
    mem_free(list);
    if (status) return status;
    g->figures = options->pipeline_figures && g->device.figures;
    TRY(device_create(g, err));
    announce(g);
    TRY(gpu_queue_open(g, err));
    TRY(gpu_staging_open(g, err));
    TRY(gpu_pipelines_open(g, options, err));
    gpu_rates_load(g);
    return BRAID_OK;
}

braid_status gpu_open(const braid_device_options *options, gpu **out, braid_error *err) {
    static const braid_device_options none = {.size = sizeof none};
    *out = NULL;
    gpu *g = mem_alloc(sizeof *g);
    if (!g) return error_memory(err);
    memset(g, 0, sizeof *g);
    atomic_init(&g->lost, false);
    atomic_init(&g->allocated, 0);
    g->submit_ns = 200 * 1000000ull;
    pthread_mutex_init(&g->queue_lock, NULL);
    pthread_mutex_init(&g->staging.lock, NULL);
    pthread_mutex_init(&g->creation_lock, NULL);
    pthread_mutex_init(&g->pipeline_lock, NULL);
    braid_status status = build(g, options ? options : &none, err);
    if (status)
        gpu_close(g);
    else
        *out = g;
    return status;
}

void gpu_close(gpu *g) {
    if (!g) return;
    if (g->handle && g->vk->DestroyDevice) {
        if (g->vk->DeviceWaitIdle) (void)g->vk->DeviceWaitIdle(g->handle); /* a lost device has nothing to wait for */
        gpu_pipelines_close(g);
        gpu_staging_close(g);
        gpu_queue_close(g);
        g->vk->DestroyDevice(g->handle, NULL);
    }
    gpu_instance_close(&g->instance);
    pthread_mutex_destroy(&g->pipeline_lock);
    pthread_mutex_destroy(&g->creation_lock);
    pthread_mutex_destroy(&g->staging.lock);
    pthread_mutex_destroy(&g->queue_lock);
    mem_free(g);
}

void gpu_describe(const gpu *g, braid_device_info *out) {
    *out = g->device.info;
}

const device_traits *gpu_traits(const gpu *g) {
    return &g->device.traits;
}

uint64_t gpu_validation_messages(const gpu *g) {
    return atomic_load(&g->instance.messages);
}
