/*
 * probe.c: measures a device once, and keeps the figures beside the pipeline cache.
 *
 *   barrier, dispatch   TINY dispatches of one workgroup in TINY waves, and in one
 *   submit              one of them, by the host's clock
 *   memory, flops       one dispatch, doubled until it takes ENOUGH_NS, so that none takes long on a slow device
 *   upload, download    one copy
 *
 * Everything is the best of a few runs. The file is untrusted like the pipeline cache: it counts only when it was
 * written for this device and driver and every byte is as it was.
 */
#include "kernels/rows/probe.h"
#include "gpu/inside.h"
#include "kernels/rows/word.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

enum {
    TINY = 256,
    ROUNDS = 5,
    TINY_ROUNDS = 20,
    GROUP = 128,
    PER_TILE = 2048,
    ENOUGH_NS = 2000000,
    LOOPS_MOST = 32768
};
static const uint64_t STREAM_LEAST = 1 << 20, STREAM_MOST = 256 << 20, COPY_BYTES = 32 << 20;

/* ---------------------------------------------------------------------------------------------------- file */

typedef struct rates_file {
    char magic[8];
    uint32_t format, bytes;
    gpu_cache_identity identity;
    braid_device_rates rates;
    uint64_t hash; /* of everything above */
} rates_file;
_Static_assert(sizeof(braid_device_rates) == 7 * sizeof(double), "no padding");
_Static_assert(offsetof(rates_file, hash) == 16 + sizeof(gpu_cache_identity) + sizeof(braid_device_rates),
               "no padding");

static rates_file file_for(const gpu *g, const braid_device_rates *rates) {
    rates_file f = {.magic = "braidrt", .format = 1, .bytes = sizeof f, .identity = g->identity, .rates = *rates};
    f.identity.build = 0; /* other kernels are no other device */
    memset(f.identity.braid, 0, sizeof f.identity.braid);
    f.hash = hash_bytes(f.format, &f, offsetof(rates_file, hash));
    return f;
}

static bool path_for(const gpu *g, char *out, size_t capacity) {
    int n = snprintf(out, capacity, "%s.rates", g->cache_path);
    return g->cache_path[0] && n > 0 && (size_t)n < capacity;
}

static bool read_rates(const gpu *g, braid_device_rates *out) {
    char path[4200];
    file *f = NULL;
    rates_file got = {0};
    if (!path_for(g, path, sizeof path) || file_open(path, &f, NULL)) return false;
    bool whole = file_size(f) == sizeof got && !file_read(f, 0, &got, sizeof got, NULL);
    file_unref(f);
    rates_file expected = file_for(g, &got.rates);
    if (!whole || memcmp(&got, &expected, sizeof got) != 0) return false;
    *out = got.rates;
    return true;
}

static void write_rates(const gpu *g, const braid_device_rates *rates) {
    char path[4200];
    rates_file f = file_for(g, rates);
    if (path_for(g, path, sizeof path)) gpu_cache_replace(path, &f, sizeof f, NULL, 0, g->log);
}

static uint32_t whole_number(double v) {
    return v < 1 ? 1 : v > 4e9 ? 4000000000u : (uint32_t)v;
}

void gpu_rates_load(gpu *g) {
    braid_device_rates r;
    device_traits *t = &g->device.traits;
    if (!read_rates(g, &r)) return;
    t->barrier_ns = whole_number(r.barrier_ns);
    t->dispatch_ns = whole_number(r.dispatch_ns);
    t->bandwidth = whole_number(r.memory_gbs);
    t->flop_rate = whole_number(r.gflops * (t->software ? 0.15 : 0.6)); /* what the products' kernels reach of it */
}

/* ------------------------------------------------------------------------------------------------ measuring */

typedef struct probe {
    gpu *g;
    gpu_buffer run, rows, from, to;
    uint32_t tiny, stream, fma; /* pipelines */
    uint32_t group;
} probe;

static operand at(const gpu_buffer *b) {
    return (operand){.base = b->address, .kind = OPERAND_DIRECT};
}

/* Runs it a few times; the least of each kind of time. host_ns is from submission to the end of waiting. */
static braid_status time_program(const probe *p, gpu_program_info *info, int rounds, gpu_times *best, uint64_t *host_ns,
                                 braid_error *err) {
    gpu_program *program;
    info->run_block = p->run.address;
    info->lanes = 1;
    TRY(gpu_program_new(p->g, info, &program, err));
    *best = (gpu_times){UINT64_MAX, UINT64_MAX, UINT64_MAX};
    *host_ns = UINT64_MAX;
    braid_status status = BRAID_OK;
    for (int i = 0; i < rounds && status == BRAID_OK; i++) {
        gpu_times now;
        uint64_t start = clock_ns();
        status = gpu_program_run(p->g, program, &now, err);
        uint64_t host = clock_ns() - start;
        if (host < *host_ns) *host_ns = host;
        if (now.device_ns < best->device_ns) best->device_ns = now.device_ns;
        if (now.upload_ns < best->upload_ns) best->upload_ns = now.upload_ns;
        if (now.download_ns < best->download_ns) best->download_ns = now.download_ns;
    }
    gpu_program_free(p->g, program);
    if (best->device_ns == 0) *best = (gpu_times){*host_ns, *host_ns, *host_ns}; /* no timestamps */
    return status;
}

static braid_status time_dispatches(const probe *p, const gpu_dispatch *list, size_t n, double *ns, uint64_t *host_ns,
                                    braid_error *err) {
    gpu_program_info info = {.dispatches = list, .n_dispatches = n};
    gpu_times best;
    TRY(time_program(p, &info, n == 1 && list->pipeline != p->tiny ? ROUNDS : TINY_ROUNDS, &best, host_ns, err));
    *ns = best.device_ns ? (double)best.device_ns : 1;
    return BRAID_OK;
}

static braid_status measure_tiny(probe *p, braid_device_rates *out, braid_error *err) {
    gpu_dispatch list[TINY];
    row_word row = {.header = {.tiles = 1}, .to = at(&p->to), .n = 1, .per_tile = 1};
    double apart = 0, together = 0, one = 0;
    uint64_t host_ns = 0;
    memcpy(p->rows.mapped, &row, sizeof row);
    for (uint32_t i = 0; i < TINY; i++)
        list[i] = (gpu_dispatch){
            .pipeline = p->tiny, .rows = p->rows.address, .row_bytes = sizeof row, .n_rows = 1, .tiles = 1};
    TRY(time_dispatches(p, list, 1, &one, &host_ns, err));
    out->submit_ns = (double)host_ns;
    TRY(time_dispatches(p, list, TINY, &together, &host_ns, err));
    for (uint32_t i = 0; i < TINY; i++) list[i].wave = i;
    TRY(time_dispatches(p, list, TINY, &apart, &host_ns, err));
    out->dispatch_ns = together / TINY;
    out->barrier_ns = apart > together ? (apart - together) / TINY : 1;
    return BRAID_OK;
}

static braid_status time_row(probe *p, uint32_t pipeline, const row_probe *row, double *ns, braid_error *err) {
    uint64_t host_ns;
    gpu_dispatch d = {.pipeline = pipeline,
                      .rows = p->rows.address,
                      .row_bytes = sizeof *row,
                      .n_rows = 1,
                      .tiles = row->header.tiles};
    memcpy(p->rows.mapped, row, sizeof *row);
    return time_dispatches(p, &d, 1, ns, &host_ns, err);
}

static braid_status measure_stream(probe *p, braid_device_rates *out, braid_error *err) {
    double ns = 0;
    for (uint64_t bytes = STREAM_LEAST; bytes <= p->to.bytes && ns < ENOUGH_NS; bytes *= 2) {
        row_probe row = {.to = at(&p->to), .from = at(&p->from), .n = (uint32_t)(bytes / 16), .per_tile = PER_TILE};
        row.header.tiles = (row.n + PER_TILE - 1) / PER_TILE;
        TRY(time_row(p, p->stream, &row, &ns, err));
        out->memory_gbs = 2 * (double)bytes / ns;
    }
    return BRAID_OK;
}

static braid_status measure_fma(probe *p, braid_device_rates *out, braid_error *err) {
    double ns = 0;
    uint32_t cores = p->g->device.traits.cores, tiles = (cores ? cores : 1) * 16;
    uint64_t room = p->to.bytes / (p->group * sizeof(float));
    if (tiles > room) tiles = (uint32_t)room;
    for (uint32_t loops = 16; loops <= LOOPS_MOST && ns < ENOUGH_NS; loops *= 2) {
        row_probe row = {
            .header = {.tiles = tiles}, .to = at(&p->to), .loops = loops, .multiply = 0.999f, .add = 0.001f};
        TRY(time_row(p, p->fma, &row, &ns, err));
        out->gflops = 2.0 * PROBE_CHAINS * loops * tiles * p->group / ns;
    }
    return BRAID_OK;
}

static braid_status measure_copies(probe *p, braid_device_rates *out, braid_error *err) {
    gpu_buffer up = {0}, down = {0};
    uint64_t bytes = p->to.bytes < COPY_BYTES ? p->to.bytes : COPY_BYTES, host_ns;
    gpu_times best = {0};
    braid_status status = gpu_buffer_new(p->g, GPU_UPLOAD, bytes, &up, err);
    if (status == BRAID_OK) status = gpu_buffer_new(p->g, GPU_DOWNLOAD, bytes, &down, err);
    gpu_copy in = {.from = &up, .to = &p->to, .bytes = bytes}, back = {.from = &p->to, .to = &down, .bytes = bytes};
    gpu_program_info info = {.copies_in = &in, .n_in = 1, .copies_out = &back, .n_out = 1};
    if (status == BRAID_OK) status = time_program(p, &info, ROUNDS, &best, &host_ns, err);
    gpu_buffer_free(p->g, &up);
    gpu_buffer_free(p->g, &down);
    out->upload_gbs = (double)bytes / (double)(best.upload_ns ? best.upload_ns : 1);
    out->download_gbs = (double)bytes / (double)(best.download_ns ? best.download_ns : 1);
    return status;
}

static braid_status make_pipelines(probe *p, braid_error *err) {
    const device_traits *t = &p->g->device.traits;
    const uint32_t ids[] = {SPEC_GROUP, SPEC_SUBGROUP}, values[] = {p->group, t->subgroup};
    const gpu_pipeline_key keys[] = {
        {"word", 2, ids, values}, {"probe_stream", 2, ids, values}, {"probe_fma", 2, ids, values}};
    uint32_t handles[3];
    TRY(gpu_pipelines(p->g, 3, keys, handles, NULL, err));
    p->tiny = handles[0];
    p->stream = handles[1];
    p->fma = handles[2];
    return BRAID_OK;
}

/* Buffers are a small part of the device's memory. */
static braid_status prepare(probe *p, braid_error *err) {
    gpu *g = p->g;
    const run_block run = {.lanes = 1};
    uint64_t bytes = STREAM_MOST;
    while (bytes > STREAM_LEAST && (bytes > g->device.info.memory / 32 || bytes > g->device.traits.max_buffer / 2))
        bytes /= 2;
    p->group = g->device.traits.max_invocations < GROUP ? g->device.traits.max_invocations : GROUP;
    TRY(gpu_buffer_new(g, GPU_SHARED, sizeof run, &p->run, err));
    TRY(gpu_buffer_new(g, GPU_SHARED, 4096, &p->rows, err));
    TRY(gpu_buffer_new(g, GPU_DEVICE, bytes, &p->from, err));
    TRY(gpu_buffer_new(g, GPU_DEVICE, bytes, &p->to, err));
    memcpy(p->run.mapped, &run, sizeof run);
    TRY(gpu_buffer_fill(g, &p->from, 0, bytes, 0x3f800000, err)); /* also makes the pages exist */
    TRY(gpu_buffer_fill(g, &p->to, 0, bytes, 0, err));
    return make_pipelines(p, err);
}

static braid_status measure(gpu *g, braid_device_rates *out, braid_error *err) {
    probe p = {.g = g};
    braid_status status = prepare(&p, err);
    if (status == BRAID_OK) status = measure_tiny(&p, out, err);
    if (status == BRAID_OK) status = measure_stream(&p, out, err);
    if (status == BRAID_OK) status = measure_fma(&p, out, err);
    if (status == BRAID_OK) status = measure_copies(&p, out, err);
    gpu_buffer *const buffers[] = {&p.run, &p.rows, &p.from, &p.to};
    for (size_t i = 0; i < COUNT_OF(buffers); i++) gpu_buffer_free(g, buffers[i]);
    return status;
}

braid_status gpu_probe(gpu *g, bool again, braid_device_rates *out, bool *measured, braid_error *err) {
    *out = (braid_device_rates){0};
    *measured = again || !read_rates(g, out);
    if (!*measured) return BRAID_OK;
    TRY(measure(g, out, err));
    write_rates(g, out);
    return BRAID_OK;
}
