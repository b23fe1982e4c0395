/*
 * staging.c: bytes from and to buffers that the host cannot see, in chunks through two halves of host memory: while
 * the device copies one half, the host fills or empties the other.
 */
#include "gpu/inside.h"

enum { CHUNK = 16 << 20 };

braid_status gpu_staging_open(gpu *g, braid_error *err) {
    VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                    .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT |
                                             VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
                                    .queueFamilyIndex = g->device.queue_family};
    VK_TRY(g, err, CreateCommandPool, g->handle, &pool, NULL, &g->staging.pool);
    VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                        .commandPool = g->staging.pool,
                                        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                        .commandBufferCount = 2};
    VK_TRY(g, err, AllocateCommandBuffers, g->handle, &info, g->staging.commands);
    return BRAID_OK;
}

void gpu_staging_close(gpu *g) {
    gpu_staging *s = &g->staging;
    for (int i = 0; i < 2; i++) {
        gpu_buffer_free(g, &s->up[i]);
        gpu_buffer_free(g, &s->down[i]);
    }
    if (s->pool) g->vk->DestroyCommandPool(g->handle, s->pool, NULL);
    s->pool = VK_NULL_HANDLE;
}

static bool inside(const gpu_buffer *b, uint64_t offset, uint64_t bytes) {
    return offset <= b->bytes && bytes <= b->bytes - offset;
}

static braid_status outside(const gpu_buffer *b, uint64_t offset, uint64_t bytes, braid_error *err) {
    return error_set(err, BRAID_INTERNAL, "[%llu, +%llu) is outside a buffer of %llu bytes", (unsigned long long)offset,
                     (unsigned long long)bytes, (unsigned long long)b->bytes);
}

static braid_status half_ready(gpu *g, gpu_buffer *half, gpu_memory purpose, int i, braid_error *err) {
    TRY(gpu_wait(g, g->staging.busy[i], false, err));
    g->staging.busy[i] = 0;
    return half->private_ ? BRAID_OK : gpu_buffer_new(g, purpose, CHUNK, half, err);
}

static void settle_halves(gpu *g) {
    for (int i = 0; i < 2; i++) {
        gpu_settle(g, g->staging.busy[i]);
        g->staging.busy[i] = 0;
    }
}

/* Copies by half i's command buffer, ordered after and before everything else on the queue. from NULL: fills with
   `word`. */
static braid_status copy_submit(gpu *g, int i, const gpu_buffer *from, uint64_t from_offset, const gpu_buffer *to,
                                uint64_t to_offset, uint64_t bytes, uint32_t word, braid_error *err) {
    VkCommandBuffer c = g->staging.commands[i];
    VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                      .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
    VK_TRY(g, err, BeginCommandBuffer, c, &begin);
    gpu_barrier(g, c, VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT, VK_ACCESS_2_MEMORY_WRITE_BIT,
                VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT, VK_ACCESS_2_TRANSFER_READ_BIT | VK_ACCESS_2_TRANSFER_WRITE_BIT);
    if (from) {
        VkBufferCopy region = {from->private_->shift + from_offset, to->private_->shift + to_offset, bytes};
        g->vk->CmdCopyBuffer(c, from->private_->buffer, to->private_->buffer, 1, &region);
    } else {
        g->vk->CmdFillBuffer(c, to->private_->buffer, to->private_->shift + to_offset, bytes, word);
    }
    gpu_barrier(g, c, VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT, VK_ACCESS_2_TRANSFER_WRITE_BIT,
                VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_2_HOST_BIT,
                VK_ACCESS_2_MEMORY_READ_BIT | VK_ACCESS_2_MEMORY_WRITE_BIT | VK_ACCESS_2_HOST_READ_BIT);
    VK_TRY(g, err, EndCommandBuffer, c);
    return gpu_submit(g, 1, &c, &g->staging.busy[i], err);
}

static uint64_t chunk_at(uint64_t at, uint64_t bytes) {
    return bytes - at < CHUNK ? bytes - at : CHUNK;
}

static braid_status upload_chunks(gpu *g, gpu_buffer *b, uint64_t offset, uint64_t bytes, gpu_fill_fn *fill, void *user,
                                  braid_error *err) {
    int i = 0;
    for (uint64_t at = 0; at < bytes; at += CHUNK, i ^= 1) {
        uint64_t n = chunk_at(at, bytes);
        gpu_buffer *half = &g->staging.up[i];
        TRY(half_ready(g, half, GPU_UPLOAD, i, err));
        TRY(fill(user, at, half->mapped, (size_t)n, err));
        TRY(copy_submit(g, i, half, 0, b, offset + at, n, 0, err));
    }
    TRY(gpu_wait(g, g->staging.busy[0], false, err));
    return gpu_wait(g, g->staging.busy[1], false, err);
}

braid_status gpu_upload(gpu *g, gpu_buffer *b, uint64_t offset, uint64_t bytes, gpu_fill_fn *fill, void *user,
                        braid_error *err) {
    TRY(gpu_alive(g, err));
    if (!inside(b, offset, bytes)) return outside(b, offset, bytes, err);
    if (b->mapped) {
        for (uint64_t at = 0; at < bytes; at += CHUNK)
            TRY(fill(user, at, (uint8_t *)b->mapped + offset + at, (size_t)chunk_at(at, bytes), err));
        return BRAID_OK;
    }
    pthread_mutex_lock(&g->staging.lock);
    braid_status status = upload_chunks(g, b, offset, bytes, fill, user, err);
    settle_halves(g);
    pthread_mutex_unlock(&g->staging.lock);
    return status;
}

/* The copy of chunk k + 1 is on its way while chunk k leaves its half. */
static braid_status download_chunks(gpu *g, const gpu_buffer *b, uint64_t offset, uint64_t bytes, uint8_t *out,
                                    braid_error *err) {
    uint64_t asked = 0;
    for (uint64_t at = 0; at < bytes; at += CHUNK) {
        for (; asked < bytes && asked < at + 2 * (uint64_t)CHUNK; asked += CHUNK) {
            int i = asked / CHUNK & 1;
            TRY(half_ready(g, &g->staging.down[i], GPU_DOWNLOAD, i, err));
            TRY(copy_submit(g, i, b, offset + asked, &g->staging.down[i], 0, chunk_at(asked, bytes), 0, err));
        }
        int i = at / CHUNK & 1;
        TRY(gpu_wait(g, g->staging.busy[i], false, err));
        memcpy(out + at, g->staging.down[i].mapped, (size_t)chunk_at(at, bytes));
    }
    return BRAID_OK;
}

braid_status gpu_download(gpu *g, const gpu_buffer *b, uint64_t offset, uint64_t bytes, void *out, braid_error *err) {
    TRY(gpu_alive(g, err));
    if (!inside(b, offset, bytes)) return outside(b, offset, bytes, err);
    if (bytes == 0) return BRAID_OK;
    if (b->cached) {
        memcpy(out, (const uint8_t *)b->mapped + offset, (size_t)bytes);
        return BRAID_OK;
    }
    pthread_mutex_lock(&g->staging.lock);
    braid_status status = download_chunks(g, b, offset, bytes, out, err);
    settle_halves(g);
    pthread_mutex_unlock(&g->staging.lock);
    return status;
}

braid_status gpu_buffer_fill(gpu *g, gpu_buffer *b, uint64_t offset, uint64_t bytes, uint32_t word, braid_error *err) {
    TRY(gpu_alive(g, err));
    if (!inside(b, offset, bytes)) return outside(b, offset, bytes, err);
    if (offset % 4 || bytes % 4) return error_set(err, BRAID_INTERNAL, "a fill must cover whole words");
    if (bytes == 0) return BRAID_OK;
    pthread_mutex_lock(&g->staging.lock);
    braid_status status = copy_submit(g, 0, NULL, 0, b, offset, bytes, word, err);
    if (!status) status = gpu_wait(g, g->staging.busy[0], false, err);
    settle_halves(g);
    pthread_mutex_unlock(&g->staging.lock);
    return status;
}
