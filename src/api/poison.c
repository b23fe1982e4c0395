/*
 * poison.c: test mode of a run. Memory that nobody wrote holds a known byte, so that reading it changes results and
 * writing outside every tensor is seen.
 */
#include "api/session.h"

static braid_status fill(braid_session *s, gpu_buffer *b, uint64_t bytes, braid_error *err) {
    if (b->mapped && bytes) memset(b->mapped, s->test.poison_byte, (size_t)bytes);
    if (b->mapped || !bytes) return BRAID_OK;
    return gpu_buffer_fill(s->device->gpu, b, 0, bytes, s->test.poison_byte * 0x01010101u, err);
}

static uint64_t io_bytes(const segment *seg) {
    return seg->io.bytes & ~(uint64_t)3;
}

/* All lanes that there is room for. */
static uint64_t block_bytes(const segment *seg, int32_t i) {
    return seg->p->block_bytes[i] * seg->bucket;
}

braid_status segment_poison(braid_session *s, segment *seg, braid_error *err) {
    for (int32_t i = 0; i < seg->p->n_blocks; i++) TRY(fill(s, &seg->blocks[i], block_bytes(seg, i), err));
    if (seg->upload.mapped) TRY(fill(s, &seg->upload, seg->upload.bytes, err)); /* copies take the gaps between inputs */
    if (seg->download.mapped) TRY(fill(s, &seg->download, seg->download.bytes, err));
    return fill(s, &seg->io, io_bytes(seg), err);
}

/* Content of a buffer, and which of its bytes belong to some tensor. */
typedef struct picture {
    uint8_t *content, *owned;
    uint64_t bytes;
} picture;

static void own(picture *c, uint64_t begin, uint64_t bytes) {
    if (begin >= c->bytes) return;
    memset(c->owned + begin, 1, (size_t)(bytes < c->bytes - begin ? bytes : c->bytes - begin));
}

/* The lanes of this run: nothing may be written behind them. */
static void own_lanes(picture *c, uint64_t begin, const storage *x, uint32_t lanes) {
    for (uint32_t lane = 0; lane < (x->once ? 1 : lanes); lane++) own(c, begin + lane * x->stride, x->bytes);
}

/* Copies fill the gaps between the lanes of a run too. */
static void own_copied(picture *c, uint64_t begin, const storage *x, uint32_t lanes) {
    own(c, begin, x->once ? x->bytes : x->stride * (lanes - 1) + x->bytes);
}

static braid_status picture_new(braid_session *s, const gpu_buffer *b, uint64_t bytes, arena *memory, picture *out,
                                braid_error *err) {
    *out = (picture){arena_alloc(memory, bytes + 1), arena_alloc(memory, bytes + 1), bytes};
    if (!out->content || !out->owned) return error_memory(err);
    return bytes ? gpu_download(s->device->gpu, b, 0, bytes, out->content, err) : BRAID_OK;
}

static braid_status check(const braid_session *s, const picture *c, const char *what, braid_error *err) {
    const uint8_t *free = c->owned, *end = c->owned + c->bytes;
    while ((free = memchr(free, 0, (size_t)(end - free))) != NULL) {
        const uint8_t *next = memchr(free, 1, (size_t)(end - free));
        for (next = next ? next : end; free < next; free++)
            if (c->content[free - c->owned] != s->test.poison_byte)
                return error_set(err, BRAID_INTERNAL, "a kernel wrote outside every tensor: %s, byte %llu", what,
                                 (unsigned long long)(free - c->owned));
    }
    return BRAID_OK;
}

static braid_status check_all(braid_session *s, segment *seg, arena *memory, braid_error *err) {
    const plan *p = seg->p;
    picture c;
    for (int32_t b = 0; b < p->n_blocks; b++) {
        TRY(picture_new(s, &seg->blocks[b], block_bytes(seg, b), memory, &c, err));
        for (int32_t i = 0; i < p->n_storages; i++) {
            const storage *x = &p->storages[i];
            bool here = x->kind == STORAGE_ARENA && x->alias == i && x->first <= x->last && x->index == (uint32_t)b;
            if (here) own_lanes(&c, x->offset * seg->bucket, x, s->lanes);
        }
        TRY(check(s, &c, "an arena block", err));
    }
    TRY(picture_new(s, &seg->io, io_bytes(seg), memory, &c, err));
    for (int32_t i = 0; i < seg->g->n_inputs; i++)
        if (seg->input_uploaded[i] && p->storages[seg->g->inputs[i]].alias == seg->g->inputs[i])
            own_copied(&c, seg->input_offset[i], &p->storages[seg->g->inputs[i]], s->lanes);
    for (int32_t i = 0; i < p->n_joins; i++)
        own_copied(&c, seg->join_offset[i], &p->storages[p->joins[i].storage], s->lanes);
    for (int32_t i = 0; i < p->n_outputs; i++)
        own_lanes(&c, seg->output_offset[i], &p->storages[p->outputs[i]], s->lanes);
    TRY(check(s, &c, "inputs and outputs", err));
    if (!seg->download.mapped) return BRAID_OK;
    TRY(picture_new(s, &seg->download, seg->download.bytes, memory, &c, err));
    for (int32_t i = 0; i < p->n_outputs; i++)
        (seg->posted[i] ? own_lanes : own_copied)(&c, seg->output_offset[i], &p->storages[p->outputs[i]], s->lanes);
    return check(s, &c, "results", err);
}

braid_status segment_check_poison(braid_session *s, segment *seg, braid_error *err) {
    arena *memory = arena_new();
    if (!memory) return error_memory(err);
    braid_status status = check_all(s, seg, memory, err);
    arena_free(memory);
    return status;
}
