/*
 * plan: from a graph with static shapes to a command list. Pure data; knows no Vulkan.
 *
 *   graph ─ lower ─► steps + storages ─ waves ─► step.wave ─ place ─► storage offsets ─ encode ─► row bytes
 *
 * Storage: where bytes live. Storages 0 .. n_values-1 are the graph's values, later ones are operators' scratch and
 * constants. Every lane has its own copy of a storage, `stride` bytes apart, except CONST and what is `once`: the same
 * for all lanes. A value of several copies (ir/graph.h) has them `copy_stride` bytes apart within a lane's:
 *
 *     lane 0: | copy 0 | copy 1 | ... |     lane 1: | copy 0 | ...
 *
 *   ARENA    block `index` at offset, for the waves in which it is alive; reused by others outside that interval
 *   CONST    weights and operators' tables; `offset` is the device address, set by the caller before plan_encode
 *   INPUT    graph input number `index`; from n_inputs on: a join, several graph inputs that are uploaded side by side,
 *            lane by lane, so that a Stack of them is there without a copy. They are views of it
 *   OUTPUT   output number `index` of plan.outputs
 * Bindings of the run block: arena blocks, then graph inputs, joins, plan outputs.
 *
 * A graph output that is a view of a graph input or of a constant has no OUTPUT of its own: export_root tells.
 */
#ifndef BRAID_PLAN_H
#define BRAID_PLAN_H

#include "kernels/abi.h"
#include "ops/op.h"

typedef enum storage_kind { STORAGE_NONE, STORAGE_ARENA, STORAGE_CONST, STORAGE_INPUT, STORAGE_OUTPUT } storage_kind;

typedef struct storage {
    storage_kind kind;
    int32_t alias;       /* storage that holds the bytes; itself when it owns them */
    uint64_t alias_offset; /* where in it */
    uint64_t bytes;      /* of one lane, from the first copy to the end of the last */
    uint64_t one;        /* of one copy */
    int32_t copies;      /* at least 1 */
    bool strided;        /* a view with a copy_stride of its own; other views have their root's */
    bool fixed;          /* views rest on where its copies lie: it cannot become a part of another storage any more */
    uint64_t copy_stride;
    uint64_t stride;     /* bytes, aligned: distance between lanes; once: as much as leaves room for it in all lanes */
    bool once;           /* one for all lanes */
    int32_t first, last; /* waves alive, ARENA; first > last: never touched */
    uint32_t index;
    uint64_t offset;
    tensor *constant;    /* CONST from the graph */
    tensor **parts;      /* CONST of several copies: each one's content */
    const void *content; /* CONST made by an operator */
} storage;

typedef struct plan_dispatch {
    int32_t wave, first_step, n_steps; /* rows are steps order[first_step ...] */
    uint64_t tiles;
    uint64_t rows_offset; /* into plan.rows */
    uint32_t row_bytes;
    uint32_t row_tiles; /* of each row, where there are several with the same number; else 0 */
    uint64_t cost_ns; /* of one problem */
    uint32_t copies;
    bool once, folded;
} plan_dispatch;

typedef struct plan_join {
    int32_t storage;
    int32_t *inputs; /* graph input number of each copy */
} plan_join;

typedef struct plan {
    arena *memory;
    const graph *g;
    const device_traits *device;
    uint32_t lanes; /* that there is room for */
    bool free_order;
    bool *varies;   /* by value: differs between lanes */
    int32_t n_storages, cap_storages, n_steps, cap_steps, n_waves, n_dispatches, n_blocks, n_outputs;
    storage *storages;
    step **steps;
    int32_t *wave;  /* of each step */
    double *alone_ns; /* of each step: estimate of its time with the device to itself */
    int32_t *pipeline, n_pipelines; /* of each step: steps with the same kernel and constants share a number */
    int32_t *order; /* steps by dispatch */
    plan_dispatch *dispatches;
    uint64_t *block_bytes; /* of one lane */
    int32_t *outputs;      /* storages of kind OUTPUT */
    const bool *joinable;  /* by graph input, NULL: none */
    plan_join *joins;
    int32_t n_joins, cap_joins;
    uint64_t arena_bytes, arena_bound, const_bytes;
    int32_t peak_wave; /* with the most bytes alive: arena_bound */
    uint64_t fixed_bytes; /* what a run of all lanes takes besides the arena: constants, inputs, outputs, rows */
    int32_t in_place;     /* results that took their operand's bytes to save memory */
    double time_ns; /* estimate of a run, all lanes */
    uint8_t *rows;
    uint64_t rows_bytes;
    int32_t *constants, n_constants, cap_constants; /* while lowering: operators' tables by content */
    uint32_t *first_copy; /* by node: copies of all nodes before it; how error words count */
    int32_t *host_nodes; /* nodes without a kernel; when there are any, the plan stops after lowering */
    int32_t n_host_nodes;
} plan;

typedef struct plan_options {
    const device_traits *device;
    uint32_t lanes;  /* that there shall be room for; 0: 1 */
    bool free_order; /* the number of lanes may change the order of sums */
    const bool *varies; /* by graph input: differs between lanes; NULL: all do */
    const bool *joinable; /* by graph input: comes from the host in every run, so that it may lie beside others; NULL: none */
    bool lower_only; /* stop after lowering: what matters is which nodes have kernels */
    bool redzone; /* every arena storage apart from the others, with a guard behind it */
    braid_schedule schedule;
    uint64_t memory_budget; /* bytes that a run of all lanes may take, weights included, where that can be; 0: no limit */
    int shuffle;  /* 0: as is; 1: rows and dispatches of a wave in reversed order (test) */
} plan_options;

/* Lowers, schedules and places g, whose types are all static. The plan lives in `memory`. */
braid_status plan_new(const graph *g, arena *memory, const plan_options *, plan **out, braid_error *err);
/* Follows aliases: the storage that owns the bytes, and where in it a storage begins. */
int32_t plan_root(const plan *, int32_t id);
uint64_t plan_offset(const plan *, int32_t id);
/* Bytes from one copy to the next; 0: one for all. */
uint64_t plan_copy_stride(const plan *, int32_t id);
/* The same for an operand of a step: 0 unless the step has copies and the operand's storage as well. */
uint64_t plan_operand_stride(const plan *, const step *, const step_operand *);
/* Number of bindings of the run block, and where inputs and outputs start in it. */
static inline uint32_t plan_binding_input(const plan *p, uint32_t i) { return (uint32_t)p->n_blocks + i; }
static inline uint32_t plan_binding_output(const plan *p, uint32_t i) {
    return (uint32_t)p->n_blocks + (uint32_t)p->g->n_inputs + (uint32_t)p->n_joins + i;
}
static inline uint32_t plan_bindings(const plan *p) { return plan_binding_output(p, (uint32_t)p->n_outputs); }
/* Writes plan.rows for `lanes` lanes. CONST storages carry their addresses. */
braid_status plan_encode(plan *, uint32_t lanes, braid_error *err);
/* Decodes plan.rows and proves that every read sees its producer's bytes across a barrier (verify.c). */
braid_status plan_verify(const plan *, uint32_t lanes, braid_error *err);

/* Which values differ between lanes, when these graph inputs do (NULL: all) (vary.c). */
braid_status plan_varies(const graph *g, const bool *inputs, arena *memory, bool **out, braid_error *err);
/* May two steps of one wave be rows of one dispatch: the same pipeline, copies and way of covering lanes. */
bool plan_steps_join(const step *, const step *);

/* Makes every alias point straight to its root. */
void plan_shorten(plan *);

/* Steps of planning, each a file. */
braid_status plan_lower(plan *, braid_error *err);                       /* lower.c */
/* waves.c. budget: bytes of the arena, one lane. */
braid_status plan_waves(plan *, const plan_options *, uint64_t budget, braid_error *err);
braid_status plan_place(plan *, const plan_options *, braid_error *err); /* place.c */
/* Lets elementwise results take their operands' bytes (inplace.c). *count: how many. */
braid_status plan_in_place(plan *, int32_t *count, braid_error *err);

#endif
