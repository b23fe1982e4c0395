/*
 * program.c: a command list, recorded once and replayed.
 *
 *   segment 0        [stamp][barrier] copies in [barrier] wave 0: piece piece ... [barrier] wave 1: ...
 *   segment 1        ... wave 7: piece ... [barrier] copies out [barrier to the host][stamp]
 *
 * Where copies depend on the lanes of a run, what comes before wave 0 and after the last wave are two command buffers of
 * their own, recorded again when the number of lanes changes.
 *
 * A dispatch becomes pieces: what fits the device's grid and one submission. Pieces differ in their grid, which lies in
 * a buffer of its own, and in the tile and problem that the grid starts at, which push constants carry. The grids' z is
 * written anew when the number of lanes changes: a run starts no group for a problem that it does not have, and a piece
 * behind its last problem starts none. A segment is one command buffer and one submission, cut where its estimated time
 * is used up: watchdogs count submissions.
 */
#include "gpu/inside.h"

enum { STAMP_BEGIN, STAMP_END, STAMP_UPLOADED, STAMP_COMPUTED, STAMP_COUNT };

typedef struct piece {
    uint32_t dispatch;
    uint32_t grid[3]; /* with all lanes that there is room for */
    uint32_t tile_base, tile_end, problem_base;
    uint32_t per_lane; /* problems of a lane, along z; 0: z is not of problems that depend on lanes */
    uint64_t cost_ns;
} piece;

typedef struct piece_list {
    piece *at;
    size_t n, capacity;
} piece_list;

struct gpu_program {
    VkCommandPool pool;
    uint32_t n_segments;
    VkCommandBuffer *segments;
    VkCommandPool copy_pool;
    VkCommandBuffer around[2]; /* null: their content is in the segments */
    gpu_copy *copies;          /* of those two, in and out */
    size_t n_in, n_out;
    uint32_t lanes, lanes_most; /* that those and the grids are for; */
    bool broken;                /* but a change of lanes failed half way */
    piece_list pieces;
    gpu_buffer grids; /* VkDispatchIndirectCommand of each piece */
    VkQueryPool queries; /* null without timestamps; STAMP_*, then two of each dispatch */
    uint32_t n_queries;
    uint64_t *stamps;   /* of the last run, in ticks; valid when `timed` */
    bool timed, each;   /* each: dispatches have stamps */
    uint64_t submitted; /* timeline value of the last run, */
    uint64_t started;   /* and when that was */
    uint64_t last_ns;   /* duration of the last run as the host saw it */
};

/* -------------------------------------------------------------------------------------------------- pieces */

static bool piece_add(piece_list *l, const piece *p) {
    if (l->n == l->capacity) {
        size_t capacity = l->capacity ? l->capacity * 2 : 64, bytes;
        if (!size_mul(capacity, sizeof *l->at, &bytes)) return false;
        piece *at = mem_realloc(l->at, bytes);
        if (!at) return false;
        l->at = at;
        l->capacity = capacity;
    }
    l->at[l->n++] = *p;
    return true;
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* The smallest grid of x and y that covers `tiles`. */
static void grid_for(const gpu *g, uint64_t tiles, uint32_t grid[3]) {
    uint64_t y = (tiles + g->device.max_groups[0] - 1) / g->device.max_groups[0];
    grid[1] = (uint32_t)y;
    grid[0] = (uint32_t)((tiles + y - 1) / y);
}

static uint32_t copies_of(const gpu_dispatch *d) {
    return d->copies ? d->copies : 1;
}

static uint64_t problems_of(const gpu_dispatch *d, uint32_t lanes) {
    return (uint64_t)copies_of(d) * (d->once ? 1 : lanes);
}

/* Cuts dispatch i into tiles x problems so that each piece fits the grid's limits and, where its cost is known, takes at
   most half of a submission. Tiles of one problem are split only when one problem is too long. */
static braid_status split(const gpu *g, const gpu_dispatch *d, uint32_t i, uint32_t lanes, piece_list *out,
                          braid_error *err) {
    uint64_t problems = problems_of(d, lanes), depth_all = d->folded ? 1 : problems;
    double cost = (double)d->cost_ns * (double)problems;
    if (d->tiles > INT32_MAX)
        return error_set(err, BRAID_LIMIT, "a dispatch of %llu tiles, at most 2^31 - 1", (unsigned long long)d->tiles);
    if (problems > INT32_MAX)
        return error_set(err, BRAID_LIMIT, "a dispatch of %llu problems, at most 2^31 - 1", (unsigned long long)problems);
    uint64_t groups = d->tiles * depth_all, most = groups;
    if (cost > (double)(g->submit_ns / 2)) most = (uint64_t)((double)groups * (double)(g->submit_ns / 2) / cost);
    if (most == 0) most = 1;
    uint64_t tiles = least(d->tiles, least(most, (uint64_t)g->device.max_groups[0] * g->device.max_groups[1]));
    if (tiles == 0) return BRAID_OK;
    uint64_t depth = least(depth_all, least(most / tiles, g->device.max_groups[2]));
    if (depth == 0) depth = 1;
    for (uint64_t problem = 0; problem < depth_all; problem += depth)
        for (uint64_t tile = 0; tile < d->tiles; tile += tiles) {
            piece p = {.dispatch = i, .tile_base = (uint32_t)tile, .problem_base = (uint32_t)problem,
                       .per_lane = d->folded || d->once ? 0 : copies_of(d)};
            uint64_t here = least(tiles, d->tiles - tile);
            grid_for(g, here, p.grid);
            p.grid[2] = (uint32_t)least(depth, depth_all - problem);
            p.tile_end = (uint32_t)(tile + here);
            p.cost_ns = (uint64_t)(cost * (double)(here * p.grid[2]) / (double)groups);
            if (!piece_add(out, &p)) return error_memory(err);
        }
    return BRAID_OK;
}

/* The pieces of all dispatches in the order of recording. */
static braid_status pieces_make(const gpu *g, const gpu_program_info *info, piece_list *out, braid_error *err) {
    for (size_t first = 0, end; first < info->n_dispatches; first = end) {
        for (end = first + 1; end < info->n_dispatches && info->dispatches[end].wave == info->dispatches[first].wave;)
            end++;
        if (end < info->n_dispatches && info->dispatches[end].wave < info->dispatches[first].wave)
            return error_set(err, BRAID_INTERNAL, "the waves of a program must ascend");
        for (size_t k = first; k < end; k++) {
            size_t i = info->shuffle ? first + end - 1 - k : k;
            TRY(split(g, &info->dispatches[i], (uint32_t)i, info->lanes, out, err));
        }
    }
    return BRAID_OK;
}

/* --------------------------------------------------------------------------------------------------- grids */

/* Groups along z that a piece needs for the problems of so many lanes. */
static uint32_t depth_of(const piece *p, uint32_t lanes) {
    uint64_t problems = (uint64_t)p->per_lane * lanes;
    if (p->per_lane == 0) return p->grid[2];
    return problems > p->problem_base ? (uint32_t)least(problems - p->problem_base, p->grid[2]) : 0;
}

/* What the host writes before a submission the device sees. */
static void grids_write(const gpu_program *p, uint32_t lanes) {
    VkDispatchIndirectCommand *to = p->grids.mapped;
    for (size_t k = 0; k < p->pieces.n; k++) {
        const piece *from = &p->pieces.at[k];
        to[k] = (VkDispatchIndirectCommand){from->grid[0], from->grid[1], depth_of(from, lanes)};
    }
}

static braid_status grids_make(gpu *g, gpu_program *p, uint32_t lanes, braid_error *err) {
    if (p->pieces.n == 0) return BRAID_OK;
    TRY(gpu_buffer_new(g, GPU_SHARED, p->pieces.n * sizeof(VkDispatchIndirectCommand), &p->grids, err));
    grids_write(p, lanes);
    return BRAID_OK;
}

uint64_t gpu_program_groups(const gpu_program *p) {
    const VkDispatchIndirectCommand *at = p->grids.mapped;
    uint64_t groups = 0;
    for (size_t k = 0; k < p->pieces.n; k++) groups += (uint64_t)at[k].x * at[k].y * at[k].z;
    return groups;
}

/* ----------------------------------------------------------------------------------------------- recording */

typedef struct recorder {
    gpu *g;
    gpu_program *p;
    uint32_t lanes; /* to be copied */
    const gpu_program_info *info;
    VkCommandBuffer c; /* of the segment being recorded */
    uint32_t segment;
    VkPipeline bound;
} recorder;

#define WORK_STAGES (VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT)
#define WORK_WRITES (VK_ACCESS_2_SHADER_WRITE_BIT | VK_ACCESS_2_TRANSFER_WRITE_BIT)
#define WORK_READS (VK_ACCESS_2_SHADER_READ_BIT | VK_ACCESS_2_TRANSFER_READ_BIT)

static void wave_barrier(const recorder *r) {
    gpu_barrier(r->g, r->c, VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT, VK_ACCESS_2_SHADER_WRITE_BIT,
                VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT, VK_ACCESS_2_SHADER_READ_BIT | VK_ACCESS_2_SHADER_WRITE_BIT);
}

static void work_barrier(const recorder *r) {
    gpu_barrier(r->g, r->c, WORK_STAGES, WORK_WRITES, WORK_STAGES, WORK_READS | WORK_WRITES);
}

static void stamp(const recorder *r, uint32_t query) {
    if (r->p->queries) r->g->vk->CmdWriteTimestamp2(r->c, VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT, r->p->queries, query);
}

static braid_status begin(recorder *r, VkCommandBuffer c, braid_error *err) {
    VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    r->c = c;
    r->bound = VK_NULL_HANDLE;
    VK_TRY(r->g, err, BeginCommandBuffer, r->c, &info);
    return BRAID_OK;
}

static braid_status segment_begin(recorder *r, braid_error *err) { return begin(r, r->p->segments[r->segment++], err); }

static braid_status segment_next(recorder *r, braid_error *err) {
    VK_TRY(r->g, err, EndCommandBuffer, r->c);
    return segment_begin(r, err);
}

static bool inside(const gpu_buffer *b, uint64_t offset, uint64_t bytes) {
    return b->private_ && offset <= b->bytes && bytes <= b->bytes - offset;
}

static braid_status copies_record(const recorder *r, const gpu_copy *copies, size_t n, braid_error *err) {
    for (size_t i = 0; i < n; i++) {
        const gpu_copy *c = &copies[i];
        uint64_t bytes = c->bytes + c->lane_stride * (r->lanes - 1);
        if (c->bytes == 0) continue;
        if (!inside(c->from, c->from_offset, bytes) || !inside(c->to, c->to_offset, bytes))
            return error_set(err, BRAID_INTERNAL, "copy %zu of %llu bytes leaves its buffers", i, (unsigned long long)bytes);
        VkBufferCopy region = {c->from->private_->shift + c->from_offset, c->to->private_->shift + c->to_offset, bytes};
        r->g->vk->CmdCopyBuffer(r->c, c->from->private_->buffer, c->to->private_->buffer, 1, &region);
    }
    return BRAID_OK;
}

static braid_status piece_record(recorder *r, size_t k, braid_error *err) {
    const piece *p = &r->p->pieces.at[k];
    const gpu_dispatch *d = &r->info->dispatches[p->dispatch];
    VkPipeline pipeline = gpu_pipeline_handle(r->g, d->pipeline);
    if (!pipeline) return error_set(err, BRAID_INTERNAL, "dispatch %u: no pipeline %u", p->dispatch, d->pipeline);
    push_block push = {.rows = d->rows,
                       .run = r->info->run_block,
                       .row_bytes = d->row_bytes,
                       .n_rows = d->n_rows,
                       .tiles = p->tile_end,
                       .problem_base = p->problem_base,
                       .tile_base = p->tile_base,
                       .copies = (d->copies ? d->copies : 1) | (d->once ? PUSH_ONCE : 0),
                       .row_tiles = d->row_tiles};
    if (pipeline != r->bound) r->g->vk->CmdBindPipeline(r->c, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    r->bound = pipeline;
    r->g->vk->CmdPushConstants(r->c, r->g->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push, &push);
    const struct gpu_buffer_private *grids = r->p->grids.private_;
    r->g->vk->CmdDispatchIndirect(r->c, grids->buffer, grids->shift + k * sizeof(VkDispatchIndirectCommand));
    return BRAID_OK;
}

static braid_status pieces_record(recorder *r, braid_error *err) {
    uint64_t spent = 0;
    for (size_t k = 0; k < r->p->pieces.n; k++) {
        const piece *p = &r->p->pieces.at[k], *before = k ? p - 1 : NULL;
        bool first = !before || before->dispatch != p->dispatch;
        bool last = k + 1 == r->p->pieces.n || p[1].dispatch != p->dispatch;
        if (before && spent + p->cost_ns > r->g->submit_ns) {
            TRY(segment_next(r, err));
            spent = 0;
        }
        spent += p->cost_ns;
        const gpu_dispatch *all = r->info->dispatches;
        if (before && all[before->dispatch].wave != all[p->dispatch].wave)
            wave_barrier(r);
        else if (before && first && r->p->each)
            wave_barrier(r); /* so that a stamp is one dispatch's */
        if (first && r->p->each) stamp(r, STAMP_COUNT + 2 * p->dispatch);
        TRY(piece_record(r, k, err));
        if (last && r->p->each) stamp(r, STAMP_COUNT + 1 + 2 * p->dispatch);
    }
    return BRAID_OK;
}

static uint32_t segment_count(const gpu *g, const piece_list *pieces) {
    uint64_t spent = 0;
    uint32_t n = 1;
    for (size_t k = 0; k < pieces->n; k++) {
        if (k && spent + pieces->at[k].cost_ns > g->submit_ns) {
            n++;
            spent = 0;
        }
        spent += pieces->at[k].cost_ns;
    }
    return n;
}

static braid_status head_record(recorder *r, const gpu_copy *copies, size_t n, braid_error *err) {
    if (r->p->queries) r->g->vk->CmdResetQueryPool(r->c, r->p->queries, 0, r->p->n_queries);
    stamp(r, STAMP_BEGIN);
    /* whatever came before on this queue: uploads, the run before */
    gpu_barrier(r->g, r->c, VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT, VK_ACCESS_2_MEMORY_WRITE_BIT,
                WORK_STAGES | VK_PIPELINE_STAGE_2_DRAW_INDIRECT_BIT,
                WORK_READS | WORK_WRITES | VK_ACCESS_2_INDIRECT_COMMAND_READ_BIT);
    TRY(copies_record(r, copies, n, err));
    stamp(r, STAMP_UPLOADED);
    if (n) work_barrier(r);
    return BRAID_OK;
}

static braid_status tail_record(recorder *r, const gpu_copy *copies, size_t n, braid_error *err) {
    if (n) work_barrier(r);
    stamp(r, STAMP_COMPUTED);
    TRY(copies_record(r, copies, n, err));
    gpu_barrier(r->g, r->c, WORK_STAGES, WORK_WRITES, VK_PIPELINE_STAGE_2_HOST_BIT, VK_ACCESS_2_HOST_READ_BIT);
    stamp(r, STAMP_END);
    return BRAID_OK;
}

/* The two command buffers around the segments. */
static braid_status around_record(recorder *r, braid_error *err) {
    gpu_program *p = r->p;
    TRY(begin(r, p->around[0], err));
    TRY(head_record(r, p->copies, p->n_in, err));
    VK_TRY(r->g, err, EndCommandBuffer, r->c);
    TRY(begin(r, p->around[1], err));
    TRY(tail_record(r, p->copies + p->n_in, p->n_out, err));
    VK_TRY(r->g, err, EndCommandBuffer, r->c);
    return BRAID_OK;
}

static braid_status record(recorder *r, braid_error *err) {
    const gpu_program_info *info = r->info;
    bool apart = r->p->around[0] != VK_NULL_HANDLE;
    if (apart) TRY(around_record(r, err));
    TRY(segment_begin(r, err));
    if (!apart) TRY(head_record(r, info->copies_in, info->n_in, err));
    TRY(pieces_record(r, err));
    if (!apart) TRY(tail_record(r, info->copies_out, info->n_out, err));
    VK_TRY(r->g, err, EndCommandBuffer, r->c);
    return BRAID_OK;
}

static bool lanes_matter(const gpu_program_info *info) {
    for (size_t i = 0; i < info->n_in; i++)
        if (info->copies_in[i].lane_stride && info->lanes > 1) return true;
    for (size_t i = 0; i < info->n_out; i++)
        if (info->copies_out[i].lane_stride && info->lanes > 1) return true;
    return false;
}

static braid_status around_make(gpu *g, gpu_program *p, const gpu_program_info *info, braid_error *err) {
    size_t n = info->n_in + info->n_out, bytes;
    p->lanes = p->lanes_most = info->lanes;
    if (!lanes_matter(info)) return BRAID_OK;
    if (!size_mul(n, sizeof *p->copies, &bytes) || !(p->copies = mem_alloc(bytes))) return error_memory(err);
    if (info->n_in) memcpy(p->copies, info->copies_in, info->n_in * sizeof *p->copies);
    if (info->n_out) memcpy(p->copies + info->n_in, info->copies_out, info->n_out * sizeof *p->copies);
    p->n_in = info->n_in;
    p->n_out = info->n_out;
    VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                    .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                    .queueFamilyIndex = g->device.queue_family};
    VK_TRY(g, err, CreateCommandPool, g->handle, &pool, NULL, &p->copy_pool);
    VkCommandBufferAllocateInfo buffers = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                           .commandPool = p->copy_pool,
                                           .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                           .commandBufferCount = 2};
    VK_TRY(g, err, AllocateCommandBuffers, g->handle, &buffers, p->around);
    return BRAID_OK;
}

static braid_status queries_make(gpu *g, gpu_program *p, const gpu_program_info *info, braid_error *err) {
    if (g->device.timestamp_bits == 0) return BRAID_OK;
    p->each = info->timestamps;
    size_t n = STAMP_COUNT + (p->each ? 2 * info->n_dispatches : 0);
    if (n > 1u << 24) return error_set(err, BRAID_LIMIT, "%zu dispatches are too many to time", info->n_dispatches);
    p->n_queries = (uint32_t)n;
    p->stamps = mem_alloc(n * sizeof *p->stamps);
    if (!p->stamps) return error_memory(err);
    VkQueryPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                  .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                  .queryCount = p->n_queries};
    VK_TRY(g, err, CreateQueryPool, g->handle, &pool, NULL, &p->queries);
    return BRAID_OK;
}

static braid_status segments_make(gpu *g, gpu_program *p, uint32_t n, braid_error *err) {
    VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                    .queueFamilyIndex = g->device.queue_family};
    VK_TRY(g, err, CreateCommandPool, g->handle, &pool, NULL, &p->pool);
    p->segments = mem_alloc(n * sizeof *p->segments);
    if (!p->segments) return error_memory(err);
    VkCommandBufferAllocateInfo buffers = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                           .commandPool = p->pool,
                                           .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                           .commandBufferCount = n};
    VK_TRY(g, err, AllocateCommandBuffers, g->handle, &buffers, p->segments);
    p->n_segments = n;
    return BRAID_OK;
}

static braid_status build(gpu *g, gpu_program *p, const gpu_program_info *info, braid_error *err) {
    if (info->n_dispatches > INT32_MAX || info->lanes > INT32_MAX)
        return error_set(err, BRAID_LIMIT, "%zu dispatches of %u lanes", info->n_dispatches, info->lanes);
    TRY(pieces_make(g, info, &p->pieces, err));
    TRY(grids_make(g, p, info->lanes, err));
    TRY(queries_make(g, p, info, err));
    TRY(segments_make(g, p, segment_count(g, &p->pieces), err));
    TRY(around_make(g, p, info, err));
    recorder r = {.g = g, .p = p, .lanes = info->lanes, .info = info};
    return record(&r, err);
}

braid_status gpu_program_new(gpu *g, const gpu_program_info *info, gpu_program **out, braid_error *err) {
    *out = NULL;
    TRY(gpu_alive(g, err));
    gpu_program *p = mem_alloc(sizeof *p);
    if (!p) return error_memory(err);
    memset(p, 0, sizeof *p);
    braid_status status = build(g, p, info, err);
    if (status)
        gpu_program_free(g, p);
    else
        *out = p;
    return status;
}

void gpu_program_free(gpu *g, gpu_program *p) {
    if (!p) return;
    gpu_settle(g, p->submitted);
    if (p->pool) g->vk->DestroyCommandPool(g->handle, p->pool, NULL);
    if (p->copy_pool) g->vk->DestroyCommandPool(g->handle, p->copy_pool, NULL);
    if (p->queries) g->vk->DestroyQueryPool(g->handle, p->queries, NULL);
    gpu_buffer_free(g, &p->grids);
    mem_free(p->pieces.at);
    mem_free(p->copies);
    mem_free(p->segments);
    mem_free(p->stamps);
    mem_free(p);
}

/* No run is under way: the old recording and grids are in nobody's hands. */
braid_status gpu_program_lanes(gpu *g, gpu_program *p, uint32_t lanes, braid_error *err) {
    TRY(gpu_alive(g, err));
    if (!lanes || lanes > p->lanes_most)
        return error_set(err, BRAID_INTERNAL, "a program of %u lanes, %u wanted", p->lanes_most, lanes);
    if (lanes == p->lanes && !p->broken) return BRAID_OK;
    recorder r = {.g = g, .p = p, .lanes = lanes};
    p->broken = true;
    grids_write(p, lanes);
    if (p->copies) TRY(around_record(&r, err));
    p->lanes = lanes;
    p->broken = false;
    return BRAID_OK;
}

/* ------------------------------------------------------------------------------------------------- running */

static uint64_t ticks_to_ns(const gpu *g, uint64_t from, uint64_t to) {
    uint64_t mask = g->device.timestamp_bits >= 64 ? UINT64_MAX : ((uint64_t)1 << g->device.timestamp_bits) - 1;
    return (uint64_t)((double)((to - from) & mask) * g->device.timestamp_period);
}

/* Dispatches without tiles have no stamps: their queries stay unavailable and read as 0. */
static braid_status stamps_read(gpu *g, gpu_program *p, braid_error *err) {
    memset(p->stamps, 0, p->n_queries * sizeof *p->stamps);
    VkResult r = g->vk->GetQueryPoolResults(g->handle, p->queries, 0, p->n_queries, p->n_queries * sizeof *p->stamps,
                                            p->stamps, sizeof *p->stamps, VK_QUERY_RESULT_64_BIT);
    if (r < 0) return gpu_failure(g, r, "vkGetQueryPoolResults", err);
    p->timed = true;
    return BRAID_OK;
}

braid_status gpu_program_submit(gpu *g, gpu_program *p, braid_error *err) {
    if (p->broken) return error_set(err, BRAID_INTERNAL, "a program whose lanes were not set");
    uint64_t value = 0;
    p->started = clock_ns();
    p->timed = false;
    braid_status status =
        gpu_submit_between(g, p->n_segments, p->segments, p->copies ? p->around : NULL, &value, err);
    if (value) p->submitted = value;
    if (status) gpu_settle(g, p->submitted);
    return status;
}

braid_status gpu_program_wait(gpu *g, gpu_program *p, gpu_times *times, braid_error *err) {
    if (times) *times = (gpu_times){0};
    /* long work and software devices need the processor more than a quick answer */
    bool spin = !g->device.traits.software && p->last_ns < 2000000;
    TRY(gpu_wait(g, p->submitted, spin, err));
    p->last_ns = clock_ns() - p->started;
    if (!p->queries) return BRAID_OK;
    TRY(stamps_read(g, p, err));
    const uint64_t *s = p->stamps;
    if (times)
        *times = (gpu_times){.device_ns = ticks_to_ns(g, s[STAMP_BEGIN], s[STAMP_END]),
                             .upload_ns = ticks_to_ns(g, s[STAMP_BEGIN], s[STAMP_UPLOADED]),
                             .download_ns = ticks_to_ns(g, s[STAMP_COMPUTED], s[STAMP_END])};
    return BRAID_OK;
}

braid_status gpu_program_run(gpu *g, gpu_program *p, gpu_times *times, braid_error *err) {
    if (times) *times = (gpu_times){0};
    TRY(gpu_program_submit(g, p, err));
    return gpu_program_wait(g, p, times, err);
}

void gpu_program_settle(gpu *g, const gpu_program *p) {
    gpu_settle(g, p->submitted);
}

bool gpu_program_times(gpu *g, const gpu_program *p, size_t i, uint64_t *start_ns, uint64_t *time_ns) {
    *start_ns = *time_ns = 0;
    if (!p->timed || !p->each || i >= (p->n_queries - STAMP_COUNT) / 2) return false;
    const uint64_t *s = &p->stamps[STAMP_COUNT + 2 * i];
    if (s[0] == 0 && s[1] == 0) return false;
    *start_ns = ticks_to_ns(g, p->stamps[0], s[0]);
    *time_ns = ticks_to_ns(g, s[0], s[1]);
    return true;
}
