/*
 * device.c: what a physical device is and can, and the choice of one.
 */
#include "gpu/inside.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct properties {
    VkPhysicalDeviceProperties2 base;
    VkPhysicalDeviceVulkan11Properties v11;
    VkPhysicalDeviceVulkan12Properties v12;
    VkPhysicalDeviceVulkan13Properties v13;
    VkPhysicalDeviceShaderSMBuiltinsPropertiesNV nvidia;
    VkPhysicalDeviceShaderCorePropertiesAMD amd;
} properties;

typedef struct features {
    VkPhysicalDeviceFeatures2 base;
    VkPhysicalDeviceVulkan11Features v11;
    VkPhysicalDeviceVulkan12Features v12;
    VkPhysicalDeviceVulkan13Features v13;
    VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR figures;
} features;

static void refuse(gpu_candidate *c, const char *reason) {
    c->info.usable = false;
    if (!c->info.reason[0]) snprintf(c->info.reason, sizeof c->info.reason, "%s", reason);
}

/* ------------------------------------------------------------------------------------------- examination */

static bool extension_listed(const VkExtensionProperties *list, uint32_t n, const char *name) {
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(list[i].extensionName, name) == 0) return true;
    return false;
}

/* Reads the properties, with those of vendor extensions that tell the number of cores. */
static braid_status properties_read(const gpu_calls *vk, gpu_candidate *c, properties *p, braid_error *err) {
    uint32_t n = 0;
    if (vk->EnumerateDeviceExtensionProperties(c->handle, NULL, &n, NULL) < 0) n = 0;
    VkExtensionProperties *list = mem_alloc((n ? n : 1) * sizeof *list);
    if (!list) return error_memory(err);
    if (n && vk->EnumerateDeviceExtensionProperties(c->handle, NULL, &n, list) < 0) n = 0;
    c->portability_subset = extension_listed(list, n, "VK_KHR_portability_subset");
    c->figures = extension_listed(list, n, VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
    *p = (properties){.base.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                      .v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES,
                      .v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES,
                      .v13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES,
                      .nvidia.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV,
                      .amd.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD};
    p->base.pNext = &p->v11;
    p->v11.pNext = &p->v12;
    p->v12.pNext = &p->v13;
    if (extension_listed(list, n, VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME))
        p->v13.pNext = &p->nvidia;
    else if (extension_listed(list, n, VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME))
        p->v13.pNext = &p->amd;
    mem_free(list);
    vk->GetPhysicalDeviceProperties2(c->handle, &p->base);
    return BRAID_OK;
}

static void features_read(const gpu_calls *vk, const gpu_candidate *c, features *f) {
    *f = (features){.base.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                    .v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
                    .v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                    .v13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES,
                    .figures.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR};
    f->base.pNext = &f->v11;
    f->v11.pNext = &f->v12;
    f->v12.pNext = &f->v13;
    if (c->figures) f->v13.pNext = &f->figures;
    vk->GetPhysicalDeviceFeatures2(c->handle, &f->base);
}

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

static uint32_t core_count(const gpu_candidate *c, const properties *p) {
    if (c->traits.software) return (uint32_t)processor_count();
    if (p->nvidia.shaderSMCount) return p->nvidia.shaderSMCount;
    uint32_t amd = p->amd.shaderEngineCount * p->amd.shaderArraysPerEngineCount * p->amd.computeUnitsPerShaderArray;
    if (amd) return amd;
    return c->type == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU ? 32 : 8;
}

static void describe(gpu_candidate *c, const properties *p) {
    const VkPhysicalDeviceProperties *base = &p->base.properties;
    memcpy(c->info.uuid, p->v11.deviceUUID, sizeof c->info.uuid);
    memcpy(c->cache_uuid, base->pipelineCacheUUID, sizeof c->cache_uuid);
    c->vendor = base->vendorID;
    c->device = base->deviceID;
    c->driver_version = base->driverVersion;
    /* both names are at most 255 characters long */
    snprintf(c->info.driver, sizeof c->info.driver, "%.100s %.150s", p->v12.driverName, p->v12.driverInfo);
    const char *mesa = strstr(p->v12.driverInfo, "Mesa ");
    if (mesa) c->mesa = atoi(mesa + 5);
}

static void measure(gpu_candidate *c, const properties *p, const features *f) {
    const VkPhysicalDeviceLimits *limits = &p->base.properties.limits;
    device_traits *t = &c->traits;
    t->subgroup = c->info.subgroup_size = p->v11.subgroupSize;
    t->shared_bytes = limits->maxComputeSharedMemorySize;
    t->max_invocations = least(limits->maxComputeWorkGroupInvocations, limits->maxComputeWorkGroupSize[0]);
    memcpy(c->max_groups, limits->maxComputeWorkGroupCount, sizeof c->max_groups);
    t->max_groups = least(c->max_groups[0], least(c->max_groups[1], c->max_groups[2]));
    c->max_allocation = p->v11.maxMemoryAllocationSize;
    t->max_buffer = c->max_allocation < p->v13.maxBufferSize ? c->max_allocation : p->v13.maxBufferSize;
    t->float64 = f->base.features.shaderFloat64;
    t->float16 = f->v12.shaderFloat16;
    t->int8 = f->v12.shaderInt8;
    t->int16 = f->base.features.shaderInt16;
    t->nan_kept = p->v12.shaderSignedZeroInfNanPreserveFloat32;
    t->cores = core_count(c, p);
    c->scalar_layout = f->v12.scalarBlockLayout;
    c->subgroup_types = f->v12.shaderSubgroupExtendedTypes;
    c->full_subgroups = f->v13.computeFullSubgroups;
    c->figures = f->figures.pipelineExecutableInfo;
    c->timestamp_period = (double)limits->timestampPeriod;
    c->pin_subgroup = p->v13.minSubgroupSize != p->v13.maxSubgroupSize;
    if (c->pin_subgroup) {
        uint64_t most = (uint64_t)p->v13.maxComputeWorkgroupSubgroups * t->subgroup;
        if (most < t->max_invocations) t->max_invocations = (uint32_t)most;
        if (!(p->v13.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) || !f->v13.subgroupSizeControl)
            refuse(c, "the subgroup size varies and cannot be pinned");
    }
}

static void require(gpu_candidate *c, const properties *p, const features *f) {
    const VkSubgroupFeatureFlags operations = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_VOTE_BIT |
                                              VK_SUBGROUP_FEATURE_ARITHMETIC_BIT | VK_SUBGROUP_FEATURE_BALLOT_BIT |
                                              VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
    const struct {
        bool present;
        const char *reason;
    } required[] = {
        {f->v12.bufferDeviceAddress, "bufferDeviceAddress is missing"},
        {f->base.features.shaderInt64, "shaderInt64 is missing"},
        {f->v11.storageBuffer16BitAccess, "storageBuffer16BitAccess is missing"},
        {f->v12.storageBuffer8BitAccess, "storageBuffer8BitAccess is missing"},
        {f->v12.timelineSemaphore, "timelineSemaphore is missing"},
        {f->v13.synchronization2, "synchronization2 is missing"},
        {f->v13.maintenance4, "maintenance4 is missing"},
        {(p->v11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0, "compute shaders lack subgroups"},
        {(p->v11.subgroupSupportedOperations & operations) == operations,
         "subgroup vote, ballot, shuffle or arithmetic is missing"},
        {c->queue_family != UINT32_MAX, "no queue computes"},
    };
    for (size_t i = 0; i < COUNT_OF(required); i++)
        if (!required[i].present) refuse(c, required[i].reason);
}

static void find_queue(const gpu_calls *vk, gpu_candidate *c) {
    VkQueueFamilyProperties families[32];
    uint32_t n = COUNT_OF(families);
    vk->GetPhysicalDeviceQueueFamilyProperties(c->handle, &n, families);
    c->queue_family = UINT32_MAX;
    for (uint32_t i = n; i-- > 0;)
        if ((families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) && families[i].queueCount > 0) c->queue_family = i;
    if (c->queue_family != UINT32_MAX) c->timestamp_bits = families[c->queue_family].timestampValidBits;
}

static void find_memory(const gpu_calls *vk, gpu_candidate *c) {
    vk->GetPhysicalDeviceMemoryProperties(c->handle, &c->memory);
    for (uint32_t i = 0; i < c->memory.memoryHeapCount; i++) {
        const VkMemoryHeap *heap = &c->memory.memoryHeaps[i];
        if ((heap->flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) && heap->size > c->info.memory) c->info.memory = heap->size;
    }
}

static braid_status examine(const gpu_calls *vk, gpu_candidate *c, braid_error *err) {
    VkPhysicalDeviceProperties first;
    vk->GetPhysicalDeviceProperties(c->handle, &first);
    c->type = first.deviceType;
    c->info.kind = c->type == VK_PHYSICAL_DEVICE_TYPE_CPU ? BRAID_DEVICE_SOFTWARE : BRAID_DEVICE_GPU;
    c->traits.software = c->info.kind == BRAID_DEVICE_SOFTWARE;
    c->info.api_version = first.apiVersion;
    c->info.usable = true;
    snprintf(c->info.name, sizeof c->info.name, "%.255s", first.deviceName);
    find_queue(vk, c);
    find_memory(vk, c);
    if (first.apiVersion < VK_API_VERSION_1_3) {
        char reason[64];
        snprintf(reason, sizeof reason, "Vulkan %u.%u, 1.3 is required", VK_API_VERSION_MAJOR(first.apiVersion),
                 VK_API_VERSION_MINOR(first.apiVersion));
        refuse(c, reason);
        return BRAID_OK;
    }
    properties p;
    features f;
    TRY(properties_read(vk, c, &p, err));
    features_read(vk, c, &f);
    describe(c, &p);
    measure(c, &p, &f);
    require(c, &p, &f);
    return BRAID_OK;
}

/* ------------------------------------------------------------------------------------------- list, choice */

static int rank_of(VkPhysicalDeviceType type) {
    switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
        return 0;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
        return 1;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
        return 3;
    default:
        return 2;
    }
}

/* Stable: devices of one rank stay in the driver's order. */
static void sort_candidates(gpu_candidate *list, size_t n) {
    for (size_t i = 1; i < n; i++)
        for (size_t j = i; j > 0 && rank_of(list[j].type) < rank_of(list[j - 1].type); j--) {
            gpu_candidate swap = list[j];
            list[j] = list[j - 1];
            list[j - 1] = swap;
        }
    for (size_t i = 0; i < n; i++) list[i].info.index = (int)i;
}

static braid_status no_devices(braid_error *err) {
    return error_set(err, BRAID_NO_DEVICE,
                     "the Vulkan drivers offer no device: install the package "
                     "mesa-vulkan-drivers or a vendor's driver");
}

braid_status gpu_scan(const gpu_instance *in, gpu_candidate **out, size_t *count, braid_error *err) {
    *out = NULL;
    *count = 0;
    VkPhysicalDevice handles[64];
    uint32_t n = COUNT_OF(handles);
    VkResult r = in->vk.EnumeratePhysicalDevices(in->handle, &n, handles);
    if (r == VK_ERROR_INITIALIZATION_FAILED) return no_devices(err);
    if (r < 0) return gpu_failure(NULL, r, "vkEnumeratePhysicalDevices", err);
    if (n == 0) return no_devices(err);
    gpu_candidate *list = mem_alloc(n * sizeof *list);
    if (!list) return error_memory(err);
    memset(list, 0, n * sizeof *list);
    for (uint32_t i = 0; i < n; i++) {
        list[i].handle = handles[i];
        braid_status status = examine(&in->vk, &list[i], err);
        if (status) {
            mem_free(list);
            return status;
        }
    }
    sort_candidates(list, n);
    *out = list;
    *count = n;
    return BRAID_OK;
}

static int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* 32 hex digits, dashes anywhere between them. */
static bool parse_uuid(const char *s, uint8_t out[16]) {
    int digits = 0;
    for (; *s; s++) {
        int v = hex_value(*s);
        if (*s == '-' && digits) continue;
        if (v < 0 || digits == 32) return false;
        out[digits / 2] = (uint8_t)(digits % 2 ? out[digits / 2] | v : v << 4);
        digits++;
    }
    return digits == 32;
}

static bool contains(const char *s, const char *part) {
    size_t n = strlen(part);
    for (; *s; s++)
        if (strncasecmp(s, part, n) == 0) return true;
    return false;
}

/* Index of the named device, `count` when there is none. Of several with that name a usable one wins. */
static size_t find_named(const gpu_candidate *list, size_t count, const char *select) {
    uint8_t uuid[16];
    size_t digits = strspn(select, "0123456789");
    if (select[digits] == 0 && digits < 9 && (size_t)atoi(select) < count) return (size_t)atoi(select);
    if (parse_uuid(select, uuid)) {
        for (size_t i = 0; i < count; i++)
            if (memcmp(uuid, list[i].info.uuid, sizeof uuid) == 0) return i;
        return count;
    }
    size_t found = count;
    for (size_t i = count; i-- > 0;)
        if (contains(list[i].info.name, select) && (found == count || list[i].info.usable || !list[found].info.usable))
            found = i;
    return found;
}

/* The first usable device of the list, which holds GPUs before software. */
static size_t find_default(const gpu_candidate *list, size_t count, const logger *log) {
    size_t i = 0;
    for (; i < count && !list[i].info.usable; i++)
        log_line(log, BRAID_LOG_WARN, "device %zu '%s' cannot be used: %s", i, list[i].info.name, list[i].info.reason);
    if (i < count && list[i].info.kind == BRAID_DEVICE_SOFTWARE)
        log_line(log, i ? BRAID_LOG_WARN : BRAID_LOG_INFO, "no usable GPU; running on the CPU through '%s'",
                 list[i].info.name);
    return i;
}

braid_status gpu_choose(const gpu_candidate *list, size_t count, const char *select, const logger *log, size_t *out,
                        braid_error *err) {
    bool named = select && *select;
    size_t i = named ? find_named(list, count, select) : find_default(list, count, log);
    if (i == count && named)
        return error_set(err, BRAID_NO_DEVICE, "no device matches '%.100s' (%zu present, the first is '%.100s')",
                         select, count, list[0].info.name);
    if (i == count)
        return error_set(err, BRAID_NO_DEVICE, "none of %zu devices can be used; '%.100s': %s", count,
                         list[0].info.name, list[0].info.reason);
    if (!list[i].info.usable)
        return error_set(err, BRAID_UNSUPPORTED, "device '%s' cannot be used: %s", list[i].info.name,
                         list[i].info.reason);
    *out = i;
    return BRAID_OK;
}

braid_status gpu_list(braid_device_info *out, size_t capacity, size_t *count, braid_error *err) {
    gpu_instance in;
    gpu_candidate *list = NULL;
    size_t n = 0;
    *count = 0;
    braid_status status = gpu_instance_open(&in, false, (logger){0}, err);
    if (!status) status = gpu_scan(&in, &list, &n, err);
    for (size_t i = 0; i < n && i < capacity; i++) out[i] = list[i].info;
    if (!status) *count = n;
    mem_free(list);
    gpu_instance_close(&in);
    return status;
}
