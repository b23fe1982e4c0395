/*
 * plan: from a graph with static shapes to a command list. Pure data; knows no Vulkan.
 *
 *   graph ─ lower ─► steps + storages ─ waves ─► step.wave ─ place ─► storage.block/offset ─ encode ─► row bytes
 *
 * Storage: where a value's bytes live.
 *   ARENA    [block, offset) for the waves in which it is alive; reused by others outside that interval
 *   CONST    weights and operator constants, one arena, uploaded once
 *   BINDING  graph input or output number `index`
 * Bindings of the run block: 0..n_blocks-1 arena blocks, then graph inputs, then graph outputs.
 */
#ifndef BRAID_PLAN_H
#define BRAID_PLAN_H

#include "ops/op.h"
#include "kernels/abi.h"

typedef enum storage_kind { STORAGE_NONE, STORAGE_ARENA, STORAGE_CONST, STORAGE_INPUT, STORAGE_OUTPUT } storage_kind;

typedef struct storage {
    storage_kind kind;
    int32_t alias;      /* storage that holds the bytes; itself when it owns them */
    uint64_t bytes;     /* per lane */
    int32_t first, last; /* waves alive, ARENA */
    uint32_t index;     /* arena block, or input or output number */
    uint64_t offset;    /* within block or const arena */
    const tensor *constant; /* CONST from the model; otherwise: */
    const void *content;    /* CONST made by an operator */
} storage;

typedef struct plan_step {
    step s;
    int32_t wave;
    int32_t dispatch; /* dispatch it is a row of */
} plan_step;

typedef struct plan_dispatch {
    int32_t wave, first_step, n_steps; /* rows are plan.order[first_step ...] */
    uint64_t tiles;
    uint64_t rows_offset; /* into plan.rows */
    uint32_t row_bytes;
} plan_dispatch;

typedef struct plan {
    arena *memory;
    const graph *g;
    int32_t n_storages, n_steps, n_waves, n_dispatches, n_blocks;
    storage *storages;
    plan_step *steps;
    int32_t *order; /* steps by dispatch */
    plan_dispatch *dispatches;
    uint64_t *block_bytes; /* per lane */
    uint64_t const_bytes, arena_bound, output_bytes;
    uint8_t *rows;
    uint64_t rows_bytes;
    int32_t *host_nodes; /* nodes without a kernel: only when the caller asked to collect them */
    int32_t n_host_nodes;
} plan;

typedef struct plan_options {
    const device_traits *device;
    uint64_t const_address; /* set by plan_patch */
    bool redzone;           /* every arena storage in a guarded place of its own, no reuse */
} plan_options;

/* Which nodes of g have no kernel here: host[i] set for node i. Lowers every node for that and drops the result. */
braid_status plan_probe(const graph *g, const device_traits *, bool *host, braid_error *err);
/* Lowers, schedules and places g, whose nodes all have kernels. The plan lives in `memory`. */
braid_status plan_new(const graph *g, arena *memory, const plan_options *, plan **out, braid_error *err);
/* Writes operands into plan.rows, given the address of the const arena. */
braid_status plan_encode(plan *, uint64_t const_address, braid_error *err);
/* Decodes plan.rows and proves that every read sees its producer's bytes across a barrier (verify.c). */
braid_status plan_verify(const plan *, uint64_t const_address, braid_error *err);

#endif
