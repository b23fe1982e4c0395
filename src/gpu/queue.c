/*
 * queue.c: the one queue, shared by all threads, and its timeline.
 *
 * Every submission signals the next value of one timeline semaphore, in the order of submission. Whoever submitted
 * waits for its own value; a resource may be reused when the value of its last submission has been reached.
 */
#include "gpu/inside.h"

/* A device that makes no progress for this long is given up. */
#define STALL_NS (600 * 1000000000ull)
/* Short work is polled for: a blocking wait costs 30 us more than it should. */
#define SPIN_NS (1000 * 1000ull)

braid_status gpu_queue_open(gpu *g, braid_error *err) {
    g->vk->GetDeviceQueue(g->handle, g->device.queue_family, 0, &g->queue);
    VkSemaphoreTypeCreateInfo timeline = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                          .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &timeline};
    VK_TRY(g, err, CreateSemaphore, g->handle, &info, NULL, &g->timeline);
    return BRAID_OK;
}

void gpu_queue_close(gpu *g) {
    if (g->timeline) g->vk->DestroySemaphore(g->handle, g->timeline, NULL);
    g->timeline = VK_NULL_HANDLE;
}

/* vkQueueSubmit, not vkQueueSubmit2: GPU-assisted validation of Debian 12 does not learn of the values that the latter
   signals, and waits 10 s for each. */
static VkResult submit_one(gpu *g, uint32_t n, const VkCommandBuffer *commands, uint64_t value) {
    VkTimelineSemaphoreSubmitInfo timeline = {.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                              .signalSemaphoreValueCount = 1,
                                              .pSignalSemaphoreValues = &value};
    VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                         .pNext = &timeline,
                         .commandBufferCount = n,
                         .pCommandBuffers = commands,
                         .signalSemaphoreCount = 1,
                         .pSignalSemaphores = &g->timeline};
    return g->vk->QueueSubmit(g->queue, 1, &info, VK_NULL_HANDLE);
}

braid_status gpu_submit_between(gpu *g, uint32_t n, const VkCommandBuffer *commands, const VkCommandBuffer around[2],
                                uint64_t *value, braid_error *err) {
    *value = 0;
    TRY(gpu_alive(g, err));
    VkResult r = VK_SUCCESS;
    pthread_mutex_lock(&g->queue_lock);
    for (uint32_t i = 0; i < n && r >= 0; i++) {
        VkCommandBuffer list[3];
        uint32_t count = 0;
        if (around && i == 0) list[count++] = around[0];
        list[count++] = commands[i];
        if (around && i == n - 1) list[count++] = around[1];
        r = submit_one(g, count, list, g->submitted + 1);
        if (r >= 0) *value = ++g->submitted;
    }
    pthread_mutex_unlock(&g->queue_lock);
    return r < 0 ? gpu_failure(g, r, "vkQueueSubmit", err) : BRAID_OK;
}

braid_status gpu_submit(gpu *g, uint32_t n, const VkCommandBuffer *commands, uint64_t *value, braid_error *err) {
    return gpu_submit_between(g, n, commands, NULL, value, err);
}

static VkResult poll_value(gpu *g, uint64_t value, bool *reached) {
    uint64_t now = 0;
    VkResult r = g->vk->GetSemaphoreCounterValue(g->handle, g->timeline, &now);
    *reached = r >= 0 && now >= value;
    return r;
}

/* Blocks until the value is reached or nothing was finished for STALL_NS. */
static VkResult block(gpu *g, uint64_t value) {
    VkSemaphoreWaitInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                .semaphoreCount = 1,
                                .pSemaphores = &g->timeline,
                                .pValues = &value};
    uint64_t before = 0, now = 0;
    VkResult r = g->vk->GetSemaphoreCounterValue(g->handle, g->timeline, &before);
    while (r >= 0) {
        r = g->vk->WaitSemaphores(g->handle, &info, STALL_NS);
        if (r != VK_TIMEOUT) break;
        r = g->vk->GetSemaphoreCounterValue(g->handle, g->timeline, &now);
        if (r >= 0 && now == before) return VK_TIMEOUT;
        before = now;
    }
    return r;
}

braid_status gpu_wait(gpu *g, uint64_t value, bool spin, braid_error *err) {
    if (value == 0) return BRAID_OK;
    VkResult r = VK_SUCCESS;
    bool reached = false;
    for (uint64_t end = clock_ns() + SPIN_NS; spin && !reached && r >= 0 && clock_ns() < end;)
        r = poll_value(g, value, &reached);
    if (!reached && r >= 0) r = block(g, value);
    if (r == VK_TIMEOUT) { /* what it holds can never be reused */
        atomic_store(&g->lost, true);
        return error_set(err, BRAID_TIMEOUT, "device '%s' made no progress for %llu s", g->device.info.name,
                         STALL_NS / 1000000000ull);
    }
    return r < 0 ? gpu_failure(g, r, "vkWaitSemaphores", err) : BRAID_OK;
}

void gpu_settle(gpu *g, uint64_t value) {
    if (!atomic_load(&g->lost)) (void)gpu_wait(g, value, false, NULL);
}

void gpu_barrier(const gpu *g, VkCommandBuffer commands, VkPipelineStageFlags2 from, VkAccessFlags2 wrote,
                 VkPipelineStageFlags2 to, VkAccessFlags2 uses) {
    VkMemoryBarrier2 barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
                                .srcStageMask = from,
                                .srcAccessMask = wrote,
                                .dstStageMask = to,
                                .dstAccessMask = uses};
    VkDependencyInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO, .memoryBarrierCount = 1, .pMemoryBarriers = &barrier};
    g->vk->CmdPipelineBarrier2(commands, &info);
}
