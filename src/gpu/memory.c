/*
 * memory.c: buffers, each with memory of its own (they are few and big), mapped for good where the host can see it.
 *
 * A memory type is chosen by points; when the best one is full, the next is tried as long as it fits the purpose:
 *
 *   GPU_DEVICE    device-local; on a software or integrated device preferably also mapped
 *   GPU_WRITTEN   device-local, preferably mapped, on any device
 *   GPU_UPLOAD    mapped, preferably not device-local, not cached
 *   GPU_DOWNLOAD  mapped, preferably cached
 *   GPU_SHARED    mapped, preferably device-local
 */
#include "gpu/inside.h"

enum { ADDRESS_ALIGN = 256 };

/* 0: does not fit. */
static int points(const gpu *g, gpu_memory purpose, VkMemoryPropertyFlags f) {
    bool local = f & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, cached = f & VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    bool mapped = (f & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) && (f & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
    bool unified = g->device.traits.software || g->device.type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
    if (f & (VK_MEMORY_PROPERTY_PROTECTED_BIT | VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT |
             VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD))
        return 0;
    switch (purpose) {
    case GPU_DEVICE:
        return !local ? 0 : 4 + (mapped == unified ? 2 : 0) + (cached == (mapped && unified));
    case GPU_WRITTEN:
        return !local ? 0 : 4 + (mapped ? 2 : 0) + (cached == (mapped && unified));
    case GPU_UPLOAD:
        return !mapped ? 0 : 4 + (local ? 0 : 2) + (cached ? 0 : 1);
    case GPU_DOWNLOAD:
        return !mapped ? 0 : 4 + (cached ? 2 : 0) + (local ? 0 : 1);
    case GPU_SHARED:
        return !mapped ? 0 : 4 + (local ? 2 : 0) + (cached ? 0 : 1);
    default:
        return 0;
    }
}

/* The best type of `allowed`, UINT32_MAX when none fits. */
static uint32_t best_type(const gpu *g, gpu_memory purpose, uint32_t allowed) {
    uint32_t best = UINT32_MAX;
    int most = 0;
    for (uint32_t i = 0; i < g->device.memory.memoryTypeCount; i++) {
        int p = allowed & 1u << i ? points(g, purpose, g->device.memory.memoryTypes[i].propertyFlags) : 0;
        if (p <= most) continue;
        most = p;
        best = i;
    }
    return best;
}

static braid_status out_of_memory(const gpu *g, uint64_t bytes, braid_error *err) {
    return error_set(err, BRAID_DEVICE_MEMORY, "no room for %llu bytes on device '%.100s' (%llu of %llu bytes in use)",
                     (unsigned long long)bytes, g->device.info.name, (unsigned long long)atomic_load(&g->allocated),
                     (unsigned long long)g->device.info.memory);
}

/* Allocates from the best type that has room; *type receives it. */
static braid_status allocate(gpu *g, gpu_memory purpose, const VkMemoryRequirements *need, VkDeviceMemory *memory,
                             uint32_t *type, braid_error *err) {
    VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                       .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    VkMemoryAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .pNext = &flags, .allocationSize = need->size};
    uint32_t allowed = need->memoryTypeBits;
    bool any = false;
    while ((*type = best_type(g, purpose, allowed)) != UINT32_MAX) {
        allowed &= ~(1u << *type);
        any = true;
        info.memoryTypeIndex = *type;
        if (need->size > g->device.memory.memoryHeaps[g->device.memory.memoryTypes[*type].heapIndex].size) continue;
        VkResult r = g->vk->AllocateMemory(g->handle, &info, NULL, memory);
        if (r == VK_SUCCESS) return BRAID_OK;
        *memory = VK_NULL_HANDLE;
        if (r != VK_ERROR_OUT_OF_DEVICE_MEMORY) return gpu_failure(g, r, "vkAllocateMemory", err);
    }
    if (!any) return error_set(err, BRAID_INTERNAL, "no memory type suits purpose %d", (int)purpose);
    return out_of_memory(g, need->size, err);
}

static braid_status build(gpu *g, gpu_memory purpose, gpu_buffer *b, braid_error *err) {
    struct gpu_buffer_private *p = b->private_;
    VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                               .size = b->bytes,
                               .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                        VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT |
                                        VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT};
    VkDeviceBufferMemoryRequirements ask = {.sType = VK_STRUCTURE_TYPE_DEVICE_BUFFER_MEMORY_REQUIREMENTS,
                                            .pCreateInfo = &info};
    VkMemoryRequirements2 need = {.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2};
    g->vk->GetDeviceBufferMemoryRequirements(g->handle, &ask, &need);
    if (need.memoryRequirements.alignment < ADDRESS_ALIGN) { /* room to move the start */
        info.size += ADDRESS_ALIGN;
        g->vk->GetDeviceBufferMemoryRequirements(g->handle, &ask, &need);
    }
    uint32_t type = 0;
    VK_TRY(g, err, CreateBuffer, g->handle, &info, NULL, &p->buffer);
    TRY(allocate(g, purpose, &need.memoryRequirements, &p->memory, &type, err));
    p->taken = need.memoryRequirements.size;
    atomic_fetch_add(&g->allocated, p->taken);
    VK_TRY(g, err, BindBufferMemory, g->handle, p->buffer, p->memory, 0);
    VkBufferDeviceAddressInfo where = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, .buffer = p->buffer};
    uint64_t address = g->vk->GetBufferDeviceAddress(g->handle, &where);
    if (!address) return error_set(err, BRAID_INTERNAL, "a buffer has no device address");
    p->shift = (ADDRESS_ALIGN - address % ADDRESS_ALIGN) % ADDRESS_ALIGN;
    b->address = address + p->shift;
    VkMemoryPropertyFlags wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    VkMemoryPropertyFlags flags = g->device.memory.memoryTypes[type].propertyFlags;
    if ((flags & wanted) != wanted || ((purpose == GPU_DEVICE || purpose == GPU_WRITTEN) && g->hide_mappings)) return BRAID_OK;
    void *mapped = NULL;
    VK_TRY(g, err, MapMemory, g->handle, p->memory, 0, VK_WHOLE_SIZE, 0, &mapped);
    b->mapped = (uint8_t *)mapped + p->shift;
    b->cached = flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    return BRAID_OK;
}

braid_status gpu_buffer_new(gpu *g, gpu_memory purpose, uint64_t bytes, gpu_buffer *out, braid_error *err) {
    *out = (gpu_buffer){0};
    TRY(gpu_alive(g, err));
    uint64_t most = g->device.traits.max_buffer;
    if (bytes > most || most - bytes < 2 * ADDRESS_ALIGN)
        return error_set(err, BRAID_LIMIT, "a buffer of %llu bytes: device '%.100s' allows %llu",
                         (unsigned long long)bytes, g->device.info.name, (unsigned long long)most);
    gpu_buffer b = {.bytes = bytes ? (bytes + 15) & ~15ull : 16};
    b.private_ = mem_alloc(sizeof *b.private_);
    if (!b.private_) return error_memory(err);
    memset(b.private_, 0, sizeof *b.private_);
    braid_status status = build(g, purpose, &b, err);
    if (status)
        gpu_buffer_free(g, &b);
    else
        *out = b;
    return status;
}

void gpu_buffer_free(gpu *g, gpu_buffer *b) {
    struct gpu_buffer_private *p = b->private_;
    if (p) {
        if (p->buffer) g->vk->DestroyBuffer(g->handle, p->buffer, NULL);
        if (p->memory) g->vk->FreeMemory(g->handle, p->memory, NULL); /* unmaps */
        atomic_fetch_sub(&g->allocated, p->taken);
        mem_free(p);
    }
    *b = (gpu_buffer){0};
}
