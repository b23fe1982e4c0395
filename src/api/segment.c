/*
 * segment.c: a device segment is a plan with its memory and its recorded program; a host segment is a list of nodes.
 *
 * io holds the inputs that come from the host and all outputs. What the host cannot write or read there has a mirror in
 * `upload` and `download`, and the program copies it. A small output that no kernel reads is written to `download` at
 * once: the bus takes a few kilobytes in less time than a barrier and a copy take.
 */
#include "api/session.h"

enum { IO_ALIGN = 256, ERROR_WORDS = 64, WRITTEN_MOST = 256 << 10, POSTED_MOST = 64 << 10 };

/* ------------------------------------------------------------------------------------------------- memory */

static braid_status add_region(uint64_t *total, uint64_t bytes, uint64_t *offset, braid_error *err) {
    size_t end, aligned;
    *offset = *total;
    if (!size_add(*total, bytes, &end) || !size_align(end, IO_ALIGN, &aligned))
        return error_set(err, BRAID_LIMIT, "inputs and outputs are too large");
    *total = aligned;
    return BRAID_OK;
}

/* Distance of lanes in io; of one lane alone it is the size. */
static uint64_t lane_bytes(const segment *seg, const storage *t) { return seg->bucket > 1 ? t->stride : t->bytes; }

static const storage *input_storage(const segment *seg, int32_t i) { return &seg->p->storages[seg->g->inputs[i]]; }

static const storage *output_storage(const segment *seg, int32_t i) { return &seg->p->storages[seg->p->outputs[i]]; }

/* What all lanes share is there once. */
static uint64_t all_lanes(const segment *seg, const storage *t) { return t->once ? t->bytes : lane_bytes(seg, t) * seg->bucket; }

static uint64_t input_bytes(const segment *seg, int32_t i) { return all_lanes(seg, input_storage(seg, i)); }

/* An input that lies within a join is a view of that. */
static bool in_join(const segment *seg, int32_t i) { return input_storage(seg, i)->alias != seg->g->inputs[i]; }

static const storage *join_storage(const segment *seg, int32_t i) { return &seg->p->storages[seg->p->joins[i].storage]; }

/* Distance of an input's lanes in io. */
static uint64_t input_stride(const segment *seg, int32_t i) {
    return lane_bytes(seg, &seg->p->storages[plan_root(seg->p, seg->g->inputs[i])]);
}

static uint64_t output_bytes(const segment *seg, int32_t i) { return all_lanes(seg, output_storage(seg, i)); }

/* Bytes between lanes of an output. */
static uint64_t output_stride(const segment *seg, int32_t i) {
    const storage *t = output_storage(seg, i);
    return seg->bucket > 1 && !t->once ? t->stride : 0;
}

static const gpu_buffer *output_room(const segment *seg, int32_t i) {
    return seg->posted[i] ? &seg->download : &seg->io;
}

/* By plan output number: the host wants it. */
static void find_wanted(const segment *seg, bool *wanted) {
    for (int32_t i = 0; i < seg->g->n_outputs; i++) {
        const storage *root = &seg->p->storages[plan_root(seg->p, seg->g->outputs[i])];
        if (seg->output_wanted[i] && root->kind == STORAGE_OUTPUT) wanted[root->index] = true;
    }
}

/* Regions follow each other at once, so that one copy takes many. What the host wants lies together. */
static braid_status layout_io(segment *seg, uint64_t *total, braid_error *err) {
    arena *memory = seg->p->memory;
    seg->wanted = arena_array(memory, (size_t)seg->p->n_outputs + 1, sizeof *seg->wanted);
    seg->input_offset = arena_array(memory, (size_t)seg->g->n_inputs + 1, sizeof *seg->input_offset);
    seg->output_offset = arena_array(memory, (size_t)seg->p->n_outputs + 1, sizeof *seg->output_offset);
    seg->join_offset = arena_array(memory, (size_t)seg->p->n_joins + 1, sizeof *seg->join_offset);
    if (!seg->input_offset || !seg->output_offset || !seg->join_offset || !seg->wanted) return error_memory(err);
    find_wanted(seg, seg->wanted);
    *total = 0;
    for (int32_t k = 0; k < seg->p->n_joins; k++) {
        const plan_join *j = &seg->p->joins[k];
        TRY(add_region(total, all_lanes(seg, join_storage(seg, k)), &seg->join_offset[k], err));
        for (int32_t c = 0; c < join_storage(seg, k)->copies; c++)
            seg->input_offset[j->inputs[c]] = seg->join_offset[k] + plan_offset(seg->p, seg->g->inputs[j->inputs[c]]);
    }
    for (int32_t i = 0; i < seg->g->n_inputs; i++)
        if (seg->input_uploaded[i] && !in_join(seg, i)) TRY(add_region(total, input_bytes(seg, i), &seg->input_offset[i], err));
    for (int wanted = 1; wanted >= 0; wanted--)
        for (int32_t i = 0; i < seg->p->n_outputs; i++)
            if (seg->wanted[i] == wanted) TRY(add_region(total, output_bytes(seg, i), &seg->output_offset[i], err));
    return BRAID_OK;
}

/* What each lane adds to a segment's memory. */
static uint64_t bytes_of_a_lane(const segment *seg) {
    uint64_t bytes = seg->p->arena_bytes;
    for (int32_t i = 0; i < seg->g->n_inputs; i++)
        if (seg->input_uploaded[i] && !in_join(seg, i) && !input_storage(seg, i)->once) bytes += input_storage(seg, i)->stride;
    for (int32_t i = 0; i < seg->p->n_joins; i++)
        if (!join_storage(seg, i)->once) bytes += join_storage(seg, i)->stride;
    for (int32_t i = 0; i < seg->p->n_outputs; i++)
        if (!output_storage(seg, i)->once) bytes += output_storage(seg, i)->stride;
    return bytes;
}

/* The run block, its bindings and a word for each lane; all small. */
static uint64_t run_bytes(const segment *seg) {
    return sizeof(run_block) + plan_bindings(seg->p) * sizeof(binding) + (seg->bucket + 1) * sizeof(uint32_t) + IO_ALIGN;
}

/* How many lanes may fit instead; at least one less, and at least one. Overlapping rounds have inputs and outputs twice. */
static uint32_t lanes_that_fit(const segment *seg, uint64_t needed, uint64_t budget) {
    uint64_t each = bytes_of_a_lane(seg), fixed = needed - (each * seg->bucket < needed ? each * seg->bucket : needed);
    if (seg->alone) {
        uint64_t io = each - seg->p->arena_bytes, regions = plan_bindings(seg->p);
        fixed += seg->io_bytes - io * seg->bucket + run_bytes(seg) + 2 * regions * IO_ALIGN;
        each += io;
    }
    uint64_t fit = fixed < budget && each ? (budget - fixed) / each : 0;
    if (fit >= seg->bucket) fit = seg->bucket - 1;
    return fit ? (uint32_t)fit : 1;
}

/* Everything of this segment, and the weights of the session. */
static uint64_t needed_bytes(const segment *seg) {
    return seg->p->arena_bytes * seg->bucket + seg->p->const_bytes + seg->p->rows_bytes + seg->io_bytes;
}

static braid_status check_budget(braid_session *s, const segment *seg, braid_error *err) {
    const plan *p = seg->p;
    uint64_t needed = needed_bytes(seg);
    if (s->test.memory && needed > s->test.memory && seg->bucket > 1)
        return error_set(err, BRAID_DEVICE_MEMORY, "out of device memory (test)");
    if (needed <= s->memory_budget) return BRAID_OK;
    if (seg->bucket > 1) s->fit = lanes_that_fit(seg, needed, s->memory_budget);
    s->limit = LIMIT_BUDGET;
    bool large = needed >> 24; /* small plans are told in KiB; what is needed is rounded up */
    unsigned long long unit = large ? 1 << 20 : 1 << 10, up = unit - 1;
    return error_set(err, BRAID_DEVICE_MEMORY,
                     "the plan needs %llu %s (arena %llu, constants %llu, tables of steps %llu, inputs and outputs %llu), "
                     "the budget is %llu %s",
                     (needed + up) / unit, large ? "MiB" : "KiB", (p->arena_bytes * seg->bucket + up) / unit,
                     (p->const_bytes + up) / unit, (p->rows_bytes + up) / unit, (seg->io_bytes + up) / unit,
                     s->memory_budget / unit, large ? "MiB" : "KiB");
}

/* All that the host writes before a run. */
static uint64_t uploaded_bytes(const segment *seg) {
    uint64_t bytes = 0;
    for (int32_t i = 0; i < seg->p->n_joins; i++) bytes += all_lanes(seg, join_storage(seg, i));
    for (int32_t i = 0; i < seg->g->n_inputs; i++)
        if (seg->input_uploaded[i] && !in_join(seg, i)) bytes += input_bytes(seg, i);
    return bytes;
}

/* What the host wants and steps only write, if that is little. */
static void choose_posted(const segment *seg, bool *posted) {
    const plan *p = seg->p;
    uint64_t bytes = 0;
    memcpy(posted, seg->wanted, (size_t)p->n_outputs * sizeof *posted);
    for (int32_t i = 0; i < p->n_steps; i++)
        for (int k = 0; k < p->steps[i]->n_operands; k++) {
            const storage *root = &p->storages[plan_root(p, p->steps[i]->operands[k].storage)];
            bool read = p->steps[i]->operands[k].access != ACCESS_WRITE;
            if (root->kind == STORAGE_OUTPUT && read) posted[root->index] = false;
        }
    for (int32_t i = 0; i < p->n_outputs; i++) bytes += posted[i] ? output_bytes(seg, i) : 0;
    if (bytes > POSTED_MOST) memset(posted, 0, (size_t)p->n_outputs * sizeof *posted);
}

/* io and what mirrors it. */
static braid_status allocate_io(braid_session *s, segment *seg, braid_error *err) {
    gpu *vk = s->device->gpu;
    uint64_t bytes = seg->io_bytes;
    seg->posted = arena_array(seg->p->memory, (size_t)seg->p->n_outputs + 1, sizeof *seg->posted);
    seg->inward = arena_array(seg->p->memory, (size_t)seg->g->n_inputs + 1, sizeof *seg->inward);
    if (!seg->posted || !seg->inward) return error_memory(err);
    if (!bytes) return BRAID_OK;
    TRY(gpu_buffer_new(vk, uploaded_bytes(seg) <= WRITTEN_MOST ? GPU_WRITTEN : GPU_DEVICE, bytes, &seg->io, err));
    if (s->test.staged) seg->io.mapped = NULL, seg->io.cached = false;
    seg->write_io = seg->io.mapped != NULL;
    seg->read_io = seg->write_io && seg->io.cached && !s->test.staged_out;
    if (!seg->write_io) TRY(gpu_buffer_new(vk, GPU_UPLOAD, bytes, &seg->upload, err));
    if (seg->read_io) return BRAID_OK;
    choose_posted(seg, seg->posted);
    return gpu_buffer_new(vk, GPU_DOWNLOAD, bytes, &seg->download, err);
}

static braid_status allocate_all(braid_session *s, segment *seg, braid_error *err) {
    gpu *vk = s->device->gpu;
    const plan *p = seg->p;
    TRY(layout_io(seg, &seg->io_bytes, err));
    TRY(check_budget(s, seg, err));
    if (!(seg->blocks = arena_array(p->memory, (size_t)p->n_blocks + 1, sizeof *seg->blocks))) return error_memory(err);
    for (int32_t i = 0; i < p->n_blocks; i++)
        TRY(gpu_buffer_new(vk, GPU_DEVICE, p->block_bytes[i] * seg->bucket, &seg->blocks[i], err));
    TRY(gpu_buffer_new(vk, GPU_DEVICE, p->rows_bytes + IO_ALIGN, &seg->rows, err));
    TRY(gpu_buffer_new(vk, GPU_SHARED, run_bytes(seg), &seg->run, err));
    return allocate_io(s, seg, err);
}

/* A device that has not the room for these lanes may have it for half of them. */
static braid_status allocate(braid_session *s, segment *seg, braid_error *err) {
    braid_status status = allocate_all(s, seg, err);
    bool no_room = status == BRAID_DEVICE_MEMORY || status == BRAID_LIMIT;
    if (!no_room || seg->bucket == 1 || s->fit) return status;
    s->fit = seg->bucket / 2;
    s->limit = LIMIT_MEMORY;
    return status;
}

static braid_status fill_rows(void *user, uint64_t at, void *to, size_t n, braid_error *err) {
    const plan *p = user;
    (void)err;
    memcpy(to, p->rows + at, n);
    return BRAID_OK;
}

/* ---------------------------------------------------------------------------------------------- recording */

/* A copy of the lanes of a run, or of what they share. What begins where the copy before ends, but for the alignment
   of regions, becomes a part of that: each takes 2 us on an H200. In the gap lies nothing, on either side. */
static void add_copy(const segment *seg, const gpu_buffer *from, const gpu_buffer *to, uint64_t offset, const storage *t,
                     gpu_copy *list, size_t *n) {
    uint64_t stride = t->once || seg->bucket == 1 ? 0 : t->stride;
    gpu_copy *last = *n ? &list[*n - 1] : NULL;
    size_t end;
    if (!t->bytes) return;
    if (last && !stride && !last->lane_stride && size_align(last->from_offset + last->bytes, IO_ALIGN, &end) && end == offset)
        last->bytes = offset + t->bytes - last->from_offset;
    else
        list[(*n)++] = (gpu_copy){.from = from, .to = to, .from_offset = offset, .to_offset = offset, .bytes = t->bytes,
                                  .lane_stride = stride};
}

/* What travels: inputs that come from the host, and outputs that it wants. */
static void list_copies(segment *seg, gpu_program_info *info, gpu_copy *in, gpu_copy *out) {
    const plan *p = seg->p;
    info->copies_in = in;
    info->copies_out = out;
    for (int32_t i = 0; !seg->write_io && i < p->n_joins; i++)
        add_copy(seg, &seg->upload, &seg->io, seg->join_offset[i], join_storage(seg, i), in, &info->n_in);
    for (int32_t i = 0; !seg->write_io && i < seg->g->n_inputs; i++)
        if (seg->input_uploaded[i] && !in_join(seg, i))
            add_copy(seg, &seg->upload, &seg->io, seg->input_offset[i], input_storage(seg, i), in, &info->n_in);
    for (int32_t i = 0; !seg->read_io && i < p->n_outputs; i++)
        if (seg->wanted[i] && !seg->posted[i])
            add_copy(seg, &seg->io, &seg->download, seg->output_offset[i], output_storage(seg, i), out, &info->n_out);
    seg->copies_in = info->n_in;
    seg->copies_out = info->n_out;
}

static braid_status record(braid_session *s, segment *seg, braid_error *err) {
    const plan *p = seg->p;
    arena *memory = p->memory;
    uint32_t *pipelines = arena_array(memory, (size_t)p->n_dispatches + 1, sizeof *pipelines);
    gpu_dispatch *dispatches = arena_array(memory, (size_t)p->n_dispatches + 1, sizeof *dispatches);
    gpu_copy *in = arena_array(memory, (size_t)(seg->g->n_inputs + p->n_joins) + 1, sizeof *in);
    gpu_copy *out = arena_array(memory, (size_t)p->n_outputs + 1, sizeof *out);
    if (!pipelines || !dispatches || !in || !out) return error_memory(err);
    TRY(session_pipelines(s, seg->g, p, pipelines, err));
    for (int32_t i = 0; i < p->n_dispatches; i++) {
        const plan_dispatch *d = &p->dispatches[i];
        dispatches[i] = (gpu_dispatch){.pipeline = pipelines[i], .wave = (uint32_t)d->wave,
                                       .rows = seg->rows.address + d->rows_offset, .row_bytes = d->row_bytes,
                                       .n_rows = (uint32_t)d->n_steps, .row_tiles = d->row_tiles, .tiles = d->tiles,
                                       .cost_ns = d->cost_ns, .copies = d->copies, .once = d->once,
                                       .folded = d->folded};
    }
    gpu_program_info info = {.dispatches = dispatches, .n_dispatches = (size_t)p->n_dispatches,
                             .run_block = seg->run.address, .lanes = seg->bucket, .timestamps = s->profile};
    list_copies(seg, &info, in, out);
    return gpu_program_new(s->device->gpu, &info, &seg->program, err);
}

/* The graph input that a value is a view of. */
static int32_t input_seen(const segment *seg, int32_t v) {
    const storage *root = &seg->p->storages[plan_root(seg->p, v)];
    if (root->index < (uint32_t)seg->g->n_inputs) return (int32_t)root->index;
    const plan_join *j = &seg->p->joins[root->index - (uint32_t)seg->g->n_inputs];
    return j->inputs[root->copy_stride ? plan_offset(seg->p, v) / root->copy_stride : 0];
}

/* Where each output of the segment's graph is to be found. */
static braid_status find_exports(segment *seg, braid_error *err) {
    const plan *p = seg->p;
    if (!(seg->export_of = arena_array(p->memory, (size_t)seg->g->n_outputs + 1, sizeof *seg->export_of)))
        return error_memory(err);
    for (int32_t i = 0; i < seg->g->n_outputs; i++) {
        const storage *root = &p->storages[plan_root(p, seg->g->outputs[i])];
        seg->export_of[i] = root->kind == STORAGE_OUTPUT  ? (int32_t)root->index
                            : root->kind == STORAGE_INPUT ? -1 - input_seen(seg, seg->g->outputs[i])
                                                          : INT32_MIN;
    }
    return BRAID_OK;
}

plan_options segment_plan_options(const braid_session *s, const segment *seg) {
    return (plan_options){.device = s->traits, .lanes = seg->bucket, .free_order = s->free_order, .varies = seg->input_varies,
                          .joinable = seg->input_joinable, .schedule = s->schedule, .redzone = s->test.redzone,
                          .shuffle = s->test.shuffle, .memory_budget = s->test.least ? 1 : s->memory_budget};
}

braid_status segment_compile(braid_session *s, stage *st, segment *seg, braid_error *err) {
    uint64_t start = clock_ns();
    seg->bucket = st->bucket;
    plan_options options = segment_plan_options(s, seg);
    TRY(plan_new(seg->g, st->memory, &options, &seg->p, err));
    if (seg->p->n_host_nodes) return error_set(err, BRAID_INTERNAL, "a device segment holds a node without a kernel");
    uint64_t planned = clock_ns();
    TRY(weights_place(s->weights, seg->p, &seg->constants, err));
    uint64_t uploaded = clock_ns();
    TRY(plan_encode(seg->p, seg->bucket, err));
    if (s->verify) TRY(plan_verify(seg->p, seg->bucket, err));
    TRY(allocate(s, seg, err));
    if (seg->p->rows_bytes) TRY(gpu_upload(s->device->gpu, &seg->rows, 0, seg->p->rows_bytes, fill_rows, seg->p, err));
    TRY(find_exports(seg, err));
    TRY(record(s, seg, err));
    log_line(&s->log, BRAID_LOG_INFO, "segment of %d steps: planned in %.1f ms, weights %.1f ms, recorded %.1f ms",
             seg->p->n_steps, (double)(planned - start) / 1e6, (double)(uploaded - planned) / 1e6,
             (double)(clock_ns() - uploaded) / 1e6);
    return BRAID_OK;
}

void segment_free(braid_session *s, segment *seg) {
    if (seg->on_host || !s->device->gpu) return;
    gpu *vk = s->device->gpu;
    gpu_program_free(vk, seg->program);
    gpu_buffer *const buffers[] = {&seg->rows, &seg->run, &seg->io, &seg->upload, &seg->download, &seg->constants};
    for (size_t i = 0; i < COUNT_OF(buffers); i++) gpu_buffer_free(vk, buffers[i]);
    for (int32_t i = 0; seg->blocks && i < seg->p->n_blocks; i++) gpu_buffer_free(vk, &seg->blocks[i]);
}

/* -------------------------------------------------------------------------------------------------- twins */

static braid_status fill_twin(braid_session *s, segment *t, braid_error *err) {
    TRY(gpu_buffer_new(s->device->gpu, GPU_SHARED, run_bytes(t), &t->run, err));
    TRY(allocate_io(s, t, err));
    return record(s, t, err);
}

braid_status segment_twin(braid_session *s, stage *st, const segment *seg, segment **twin, braid_error *err) {
    uint64_t needed = needed_bytes(seg) + seg->io_bytes + run_bytes(seg);
    *twin = NULL;
    if (needed > s->memory_budget || (s->test.memory && needed > s->test.memory)) return BRAID_OK;
    segment *t = arena_copy(st->memory, seg, sizeof *t);
    if (!t) return error_memory(err);
    t->program = NULL;
    t->run = t->io = t->upload = t->download = (gpu_buffer){0};
    braid_status status = fill_twin(s, t, err);
    if (status == BRAID_OK) {
        *twin = t;
        return BRAID_OK;
    }
    segment_twin_free(s, t);
    if (status != BRAID_DEVICE_MEMORY && status != BRAID_LIMIT) return status;
    error_clear(err);
    return BRAID_OK;
}

void segment_twin_free(braid_session *s, segment *t) {
    gpu *vk = s->device->gpu;
    gpu_program_free(vk, t->program);
    gpu_buffer *const buffers[] = {&t->run, &t->io, &t->upload, &t->download};
    for (size_t i = 0; i < COUNT_OF(buffers); i++) gpu_buffer_free(vk, buffers[i]);
}

/* ------------------------------------------------------------------------------------------ running: device */

/* One word for each lane of a run, then one for what is done once for all. */
static uint32_t *error_words(const segment *seg) {
    return (uint32_t *)(void *)((uint8_t *)seg->run.mapped + sizeof(run_block) + plan_bindings(seg->p) * sizeof(binding));
}

static binding input_binding(const segment *seg, int32_t i, const place *from) {
    if (from->buffer) return (binding){from->buffer->address + from->offset, from->stride};
    if (!seg->input_uploaded[i]) return (binding){0, 0};
    uint64_t stride = from->stride ? input_stride(seg, i) : 0;
    return (binding){seg->io.address + seg->input_offset[i], stride};
}

static void write_run_block(const segment *seg, const place *places, uint32_t lanes) {
    const plan *p = seg->p;
    run_block *run = seg->run.mapped;
    binding *b = (binding *)(void *)(run + 1);
    *run = (run_block){.lanes = lanes,
                       .errors = seg->run.address + sizeof(run_block) + plan_bindings(p) * sizeof(binding)};
    for (uint32_t lane = 0; lane <= lanes; lane++) error_words(seg)[lane] = UINT32_MAX;
    for (int32_t i = 0; i < p->n_blocks; i++) b[i] = (binding){seg->blocks[i].address, 0};
    for (int32_t i = 0; i < seg->g->n_inputs; i++)
        b[plan_binding_input(p, (uint32_t)i)] = input_binding(seg, i, &places[seg->input_of[i]]);
    for (int32_t i = 0; i < p->n_joins; i++)
        b[plan_binding_input(p, (uint32_t)(seg->g->n_inputs + i))] =
            (binding){seg->io.address + seg->join_offset[i], join_storage(seg, i)->once ? 0 : join_storage(seg, i)->stride};
    for (int32_t i = 0; i < p->n_outputs; i++)
        b[plan_binding_output(p, (uint32_t)i)] =
            (binding){output_room(seg, i)->address + seg->output_offset[i], output_stride(seg, i)};
}

static void write_inputs(const segment *seg, const place *places, uint32_t lanes) {
    uint8_t *to = seg->write_io ? seg->io.mapped : seg->upload.mapped;
    size_t n = 0;
    for (int32_t i = 0; i < seg->g->n_inputs; i++) {
        const place *from = &places[seg->input_of[i]];
        const storage *t = input_storage(seg, i);
        if (!seg->input_uploaded[i] || from->buffer || !t->bytes) continue;
        bool all = from->stride || (in_join(seg, i) && !t->once); /* a join has one stride for all its inputs */
        seg->inward[n++] = (carriage){.to = {.data = to + seg->input_offset[i], .stride = input_stride(seg, i)},
                                      .from = from, .lanes = all ? lanes : 1, .bytes = (size_t)t->bytes};
    }
    carry(seg->inward, n);
}

/* A part of every lane of a place, from byte `inside` on. */
static braid_status place_part(const braid_session *s, place *p, const tensor *part, uint64_t inside, arena *memory,
                               braid_error *err) {
    tensor *t = arena_copy(memory, part, sizeof *t);
    if (!t) return error_memory(err);
    if (p->host && p->host->data) t->data = (uint8_t *)p->host->data + inside;
    p->host = t;
    p->offset += inside;
    if (!p->each) return BRAID_OK;
    const void **each = arena_array(memory, s->lanes, sizeof *each);
    if (!each) return error_memory(err);
    for (uint32_t lane = 0; lane < s->lanes; lane++) each[lane] = (const uint8_t *)p->each[lane] + inside;
    p->each = each;
    return BRAID_OK;
}

/* Places of outputs: on the device, and seen by the host where they were wanted there. */
static braid_status export_outputs(const braid_session *s, stage *st, segment *seg, place *places, arena *memory, braid_error *err) {
    uint8_t *from = seg->read_io ? seg->io.mapped : seg->download.mapped;
    for (int32_t i = 0; i < seg->g->n_outputs; i++) {
        int32_t v = seg->output_of[i], k = seg->export_of[i];
        const tensor_type *type = &st->g->values[v]->type;
        if (k == INT32_MIN) {
            tensor *constant = seg->p->storages[plan_root(seg->p, seg->g->outputs[i])].constant;
            if (!constant) return error_set(err, BRAID_INTERNAL, "output '%s' has no bytes", st->g->values[v]->name);
            TRY(tensor_load(constant, st->memory, err));
            tensor *t = arena_copy(memory, constant, sizeof *constant);
            if (!t) return error_memory(err);
            t->type = *type;
            t->data = (uint8_t *)t->data + plan_offset(seg->p, seg->g->outputs[i]);
            t->bytes = (size_t)seg->p->storages[seg->g->outputs[i]].bytes;
            places[v] = (place){.host = t};
            continue;
        }
        if (k < 0) { /* a view of an input */
            tensor part = {.type = *type, .bytes = (size_t)seg->p->storages[seg->g->outputs[i]].bytes};
            places[v] = places[seg->input_of[-1 - k]];
            uint64_t inside = plan_offset(seg->p, seg->g->outputs[i]) - plan_offset(seg->p, seg->g->inputs[-1 - k]);
            TRY(place_part(s, &places[v], &part, inside, memory, err));
            continue;
        }
        tensor *t = arena_alloc(memory, sizeof *t);
        if (!t) return error_memory(err);
        t->type = *type;
        uint64_t at = seg->output_offset[k] + plan_offset(seg->p, seg->g->outputs[i]);
        t->bytes = (size_t)seg->p->storages[seg->g->outputs[i]].bytes;
        if (seg->output_wanted[i]) t->data = from + at;
        places[v] = (place){.host = t, .buffer = output_room(seg, k), .offset = at,
                            .stride = output_stride(seg, k)};
    }
    return BRAID_OK;
}

/* "node 'x' (Gather-13): an index is out of range"; of several copies the failing one's name. */
static void name_fault(const segment *seg, uint32_t word, braid_error *err) {
    int32_t low = 0, high = seg->g->n_nodes - 1;
    while (low < high) {
        int32_t middle = low + (high - low + 1) / 2;
        if (seg->p->first_copy[middle] <= word) low = middle;
        else high = middle - 1;
    }
    node n = *seg->g->nodes[low];
    char title[256];
    if (n.names) n.name = n.names[word - seg->p->first_copy[low]];
    error_set(err, BRAID_INDEX, "%s: an index is out of range", node_title(&n, title));
}

/* The words may lie behind a bus, where each read alone takes a microsecond: they are fetched many at a time. */
static braid_status check_errors(braid_session *s, const segment *seg, braid_error *err) {
    uint32_t words[ERROR_WORDS], of_all = error_words(seg)[s->lanes];
    if (of_all != UINT32_MAX) {
        name_fault(seg, of_all, err);
        return BRAID_INDEX;
    }
    for (uint32_t lane = 0; lane < s->lanes; lane++) {
        uint32_t at = lane % ERROR_WORDS, left = s->lanes - lane;
        if (at == 0) memcpy(words, error_words(seg) + lane, (left < ERROR_WORDS ? left : ERROR_WORDS) * sizeof *words);
        if (words[at] == UINT32_MAX) continue;
        braid_error why = {0};
        name_fault(seg, words[at], &why);
        TRY(lane_fail(s, lane, &why, err));
    }
    return BRAID_OK;
}

/* Adds what all problems of a step do; constants are read once. */
static void add_work(const plan *p, const step *one, uint32_t lanes, braid_step_time *t) {
    uint64_t constants = 0, problems = (uint64_t)one->copies * (one->once ? 1 : lanes);
    for (int i = 0; i < one->n_operands; i++)
        if (p->storages[plan_root(p, one->operands[i].storage)].kind == STORAGE_CONST) constants += one->operands[i].bytes;
    if (constants > one->bytes) constants = one->bytes;
    t->flops += one->flops * problems;
    t->bytes += constants + (one->bytes - constants) * problems;
}

static braid_status profile_steps(braid_session *s, const segment *seg, braid_error *err) {
    const plan *p = seg->p;
    for (int32_t i = 0; s->profile && i < p->n_dispatches; i++) {
        const plan_dispatch *d = &p->dispatches[i];
        const step *first = p->steps[p->order[d->first_step]];
        braid_step_time t = {.node = seg->g->nodes[first->node]->name, .op = seg->g->nodes[first->node]->type,
                             .kernel = first->kernel, .wave = (uint32_t)d->wave, .rows = (uint32_t)d->n_steps,
                             .copies = first->copies};
        for (int32_t k = 0; k < d->n_steps; k++) add_work(p, p->steps[p->order[d->first_step + k]], s->lanes, &t);
        gpu_program_times(s->device->gpu, seg->program, (size_t)i, &t.start_ns, &t.time_ns);
        TRY(session_add_time(s, t, err));
    }
    return BRAID_OK;
}

braid_status segment_begin(braid_session *s, segment *seg, const place *places, braid_error *err) {
    if (s->test.poison) TRY(segment_poison(s, seg, err));
    write_inputs(seg, places, s->lanes);
    write_run_block(seg, places, s->lanes);
    TRY(gpu_program_lanes(s->device->gpu, seg->program, s->lanes, err));
    return gpu_program_submit(s->device->gpu, seg->program, err);
}

void segment_settle(braid_session *s, const segment *seg) { gpu_program_settle(s->device->gpu, seg->program); }

braid_status segment_end(braid_session *s, stage *st, segment *seg, place *places, arena *memory, braid_error *err) {
    gpu_times now;
    TRY(gpu_program_wait(s->device->gpu, seg->program, &now, err));
    if (s->test.poison) TRY(segment_check_poison(s, seg, err));
    s->spent.device_ns += now.device_ns;
    s->spent.upload_ns += now.upload_ns;
    s->spent.download_ns += now.download_ns;
    TRY(check_errors(s, seg, err));
    TRY(profile_steps(s, seg, err));
    return export_outputs(s, st, seg, places, memory, err);
}

braid_status segment_run(braid_session *s, stage *st, segment *seg, place *places, arena *memory, braid_error *err) {
    if (!seg->on_host) {
        TRY(segment_begin(s, seg, places, err));
        return segment_end(s, st, seg, places, memory, err);
    }
    for (int32_t i = 0; i < seg->n_nodes; i++) TRY(host_run(s, st, seg->nodes[i], places, memory, err));
    return BRAID_OK;
}
