/*
 * weights.c: constants of a session's plans on the device.
 *
 * A model's weights are found again by where they come from (file and offset, or the bytes' address, which live as long
 * as the session's base graph), so that planning anew for other shapes uploads nothing twice. Constants that belong to
 * one plan (folded for its shapes, or operators' tables) lie in a buffer of that plan.
 */
#include "api/session.h"

#include <stdlib.h>

/* Where a tensor lies in a file. */
typedef struct origin {
    const void *from;
    uint64_t offset;
} origin;

typedef struct weight {
    origin *parts; /* one, or as many as the storage has copies */
    int32_t n;
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
    for (size_t i = 0; i < w->n; i++) mem_free(w->items[i].parts);
    mem_free(w->items);
    mem_free(w);
}

uint64_t weights_bytes(const weights *w) { return w ? w->bytes : 0; }

/* Kept for the session: what has a file behind it. Everything else may die with its plan. */
static bool is_lasting(const storage *s) {
    for (int32_t i = 0; s->parts && i < s->copies; i++)
        if (!s->parts[i]->source) return false;
    return s->parts || (s->constant && s->constant->source);
}

static int32_t part_count(const storage *s) { return s->parts ? s->copies : 1; }

static const tensor *part_at(const storage *s, int32_t i) { return s->parts ? s->parts[i] : s->constant; }

static bool is_from(const weight *w, const storage *s) {
    if (w->n != part_count(s) || w->bytes != s->bytes) return false;
    for (int32_t i = 0; i < w->n; i++)
        if (w->parts[i].from != part_at(s, i)->source || w->parts[i].offset != part_at(s, i)->offset) return false;
    return true;
}

static weight *find(const weights *w, const storage *s) {
    for (size_t i = 0; i < w->n; i++)
        if (is_from(&w->items[i], s)) return &w->items[i];
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
    int32_t n = part_count(s);
    origin *parts = mem_alloc((size_t)n * sizeof *parts);
    if (!parts) return error_memory(err);
    for (int32_t i = 0; i < n; i++) parts[i] = (origin){part_at(s, i)->source, part_at(s, i)->offset};
    w->items[w->n++] = (weight){parts, n, s->bytes, address};
    return BRAID_OK;
}

/* ------------------------------------------------------------------------------------------------ uploads */

typedef struct batch {
    const plan *p;
    int32_t *items; /* storages, in buffer order */
    int32_t n;
    uint64_t bytes;
} batch;

/* Bytes [at, at + n) of a tensor of `bytes`, zeros behind its end. */
static braid_status copy_tensor(const tensor *t, const void *data, uint64_t bytes, uint64_t at, uint8_t *to, size_t n,
                                braid_error *err) {
    size_t real = at >= bytes ? 0 : n < bytes - at ? n : (size_t)(bytes - at);
    memset(to + real, 0, n - real);
    if (!real) return BRAID_OK;
    if (!data) return file_read(t->source, t->offset + at, to, real, err);
    memcpy(to, (const uint8_t *)data + at, real);
    return BRAID_OK;
}

static braid_status copy_part(const storage *s, uint64_t at, uint8_t *to, size_t n, braid_error *err) {
    if (!s->parts || !s->copy_stride)
        return copy_tensor(part_at(s, 0), part_at(s, 0) ? part_at(s, 0)->data : s->content, s->bytes, at, to, n, err);
    while (n) {
        uint64_t copy = at / s->copy_stride, inside = at % s->copy_stride, left = s->copy_stride - inside;
        bool last = copy >= (uint64_t)s->copies - 1; /* what is left of the stride belongs to it */
        size_t part = last || n < left ? n : (size_t)left;
        if (last) inside = at - (uint64_t)(s->copies - 1) * s->copy_stride;
        const tensor *t = s->parts[last ? s->copies - 1 : (int32_t)copy];
        TRY(copy_tensor(t, t->data, s->one, inside, to, part, err));
        to += part;
        at += part;
        n -= part;
    }
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
