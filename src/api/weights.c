/*
 * weights.c: constants of a session's plans on the device.
 *
 * A model's weights are found again by where they come from (file and offset, or the bytes' address, which live as long
 * as the session's base graph), so that planning anew for other shapes uploads nothing twice. Constants that belong to
 * one plan (folded for its shapes, or operators' tables) lie in a buffer of that plan.
 */
#include "api/session.h"

#include <stdlib.h>

typedef struct weight {
    const void *from; /* file or data */
    uint64_t offset;
    uint64_t bytes;
    uint64_t address;
} weight;

struct weights {
    braid_device *device;
    weight *items;
    size_t n, capacity;
    gpu_buffer *buffers;
    size_t n_buffers;
    uint64_t bytes;
};

braid_status weights_new(braid_device *device, weights **out, braid_error *err) {
    weights *w = mem_alloc(sizeof *w);
    if (!w) return error_memory(err);
    *w = (weights){.device = device};
    *out = w;
    return BRAID_OK;
}

void weights_free(weights *w) {
    if (!w) return;
    for (size_t i = 0; i < w->n_buffers; i++) gpu_buffer_free(w->device->gpu, &w->buffers[i]);
    mem_free(w->buffers);
    mem_free(w->items);
    mem_free(w);
}

uint64_t weights_bytes(const weights *w) { return w ? w->bytes : 0; }

/* Kept for the session: what has a file behind it. Everything else may die with its plan. */
static bool is_lasting(const storage *s) { return s->constant && s->constant->source; }

static weight *find(const weights *w, const storage *s) {
    for (size_t i = 0; i < w->n; i++)
        if (w->items[i].from == s->constant->source && w->items[i].offset == s->constant->offset &&
            w->items[i].bytes == s->bytes)
            return &w->items[i];
    return NULL;
}

static braid_status add(weights *w, const storage *s, uint64_t address, braid_error *err) {
    if (w->n == w->capacity) {
        size_t wanted = w->capacity ? w->capacity * 2 : 64;
        weight *grown = mem_realloc(w->items, wanted * sizeof *grown);
        if (!grown) return error_memory(err);
        w->items = grown;
        w->capacity = wanted;
    }
    w->items[w->n++] = (weight){s->constant->source, s->constant->offset, s->bytes, address};
    return BRAID_OK;
}

/* ------------------------------------------------------------------------------------------------ uploads */

typedef struct batch {
    const plan *p;
    int32_t *items; /* storages, in buffer order */
    int32_t n;
    uint64_t bytes;
} batch;

static braid_status copy_part(const storage *s, uint64_t at, uint8_t *to, size_t n, braid_error *err) {
    size_t real = at >= s->bytes ? 0 : n < s->bytes - at ? n : (size_t)(s->bytes - at);
    memset(to + real, 0, n - real);
    if (!real) return BRAID_OK;
    const void *data = s->constant ? s->constant->data : s->content;
    if (!data) return file_read(s->constant->source, s->constant->offset + at, to, real, err);
    memcpy(to, (const uint8_t *)data + at, real);
    return BRAID_OK;
}

/* Index of the item that holds byte `at` of the batch. */
static int32_t item_at(const batch *b, uint64_t at) {
    int32_t low = 0, high = b->n - 1;
    while (low < high) {
        int32_t middle = (low + high + 1) / 2;
        if (b->p->storages[b->items[middle]].offset <= at) low = middle;
        else high = middle - 1;
    }
    return low;
}

static braid_status fill(void *user, uint64_t at, void *to, size_t n, braid_error *err) {
    const batch *b = user;
    uint8_t *out = to;
    for (int32_t i = item_at(b, at); n && i < b->n; i++) {
        const storage *s = &b->p->storages[b->items[i]];
        uint64_t inside = at - s->offset, left = s->stride - inside;
        size_t part = left < n ? (size_t)left : n;
        TRY(copy_part(s, inside, out, part, err));
        out += part;
        at += part;
        n -= part;
    }
    return BRAID_OK;
}

/* Offsets within the batch first; addresses once the buffer exists. */
static braid_status upload(weights *w, plan *p, batch *b, gpu_buffer *buffer, braid_error *err) {
    if (!b->bytes) return BRAID_OK;
    TRY(gpu_buffer_new(w->device->gpu, GPU_DEVICE, b->bytes, buffer, err));
    TRY(gpu_upload(w->device->gpu, buffer, 0, b->bytes, fill, b, err));
    for (int32_t i = 0; i < b->n; i++) p->storages[b->items[i]].offset += buffer->address;
    return BRAID_OK;
}

static void batch_add(plan *p, batch *b, int32_t s) {
    p->storages[s].offset = b->bytes;
    b->bytes += p->storages[s].stride;
    b->items[b->n++] = s;
}

static braid_status keep_buffer(weights *w, gpu_buffer *buffer, braid_error *err) {
    gpu_buffer *grown = mem_realloc(w->buffers, (w->n_buffers + 1) * sizeof *grown);
    if (!grown) {
        gpu_buffer_free(w->device->gpu, buffer);
        return error_memory(err);
    }
    w->buffers = grown;
    w->buffers[w->n_buffers++] = *buffer;
    return BRAID_OK;
}

static braid_status upload_lasting(weights *w, plan *p, batch *b, braid_error *err) {
    if (!b->n) return BRAID_OK;
    gpu_buffer buffer = {0};
    braid_status status = upload(w, p, b, &buffer, err);
    if (status != BRAID_OK) {
        gpu_buffer_free(w->device->gpu, &buffer);
        return status;
    }
    TRY(keep_buffer(w, &buffer, err));
    w->bytes += b->bytes;
    for (int32_t i = 0; i < b->n; i++) TRY(add(w, &p->storages[b->items[i]], p->storages[b->items[i]].offset, err));
    b->n = 0;
    b->bytes = 0;
    return BRAID_OK;
}

static bool is_used(const plan *p, const bool *used, int32_t i) {
    return p->storages[i].kind == STORAGE_CONST && p->storages[i].alias == i && used[i];
}

braid_status weights_place(weights *w, plan *p, gpu_buffer *own, braid_error *err) {
    batch lasting = {.p = p}, local = {.p = p};
    bool *used = arena_array(p->memory, (size_t)p->n_storages + 1, sizeof *used);
    lasting.items = arena_array(p->memory, (size_t)p->n_storages + 1, sizeof *lasting.items);
    local.items = arena_array(p->memory, (size_t)p->n_storages + 1, sizeof *local.items);
    if (!used || !lasting.items || !local.items) return error_memory(err);
    for (int32_t i = 0; i < p->n_steps; i++)
        for (int k = 0; k < p->steps[i]->n_operands; k++) used[plan_root(p, p->steps[i]->operands[k].storage)] = true;
    for (int32_t i = 0; i < p->n_storages; i++) {
        storage *s = &p->storages[i];
        if (!is_used(p, used, i)) continue;
        const weight *known = is_lasting(s) ? find(w, s) : NULL;
        if (known) {
            s->offset = known->address;
            continue;
        }
        batch *b = is_lasting(s) ? &lasting : &local;
        if (b == &lasting && b->bytes + s->stride > p->device->max_buffer) TRY(upload_lasting(w, p, b, err));
        batch_add(p, b, i);
    }
    TRY(upload_lasting(w, p, &lasting, err));
    return upload(w, p, &local, own, err);
}
