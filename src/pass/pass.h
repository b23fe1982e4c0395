/*
 * pass: graph -> graph. A pass rebuilds: it copies what it keeps into a new graph (dead code is what was not copied).
 * The list of passes is a table of names in pass.c; who runs them when is api/session.c and api/stage.c.
 */
#ifndef BRAID_PASS_H
#define BRAID_PASS_H

#include "ops/op.h"

/* What re-rolling found. */
typedef struct reroll_bundle {
    int32_t copies, nodes;                      /* of one copy */
    int32_t shared, stacked, gathered;          /* operands: the same for all copies; constants side by side; others */
    const char *first;                          /* a node of the first copy, with its operator */
} reroll_bundle;
typedef struct reroll_report {
    arena *memory;
    reroll_bundle *bundles;
    const char **notes; /* near misses: why something was left as it was */
    int32_t n_bundles, cap_bundles, n_notes, cap_notes;
} reroll_report;

typedef struct pass_options {
    const char *const *outputs; /* prune: wanted outputs, NULL: all */
    size_t n_outputs;
    uint64_t fold_budget;  /* bytes of folded constants, default max(64 MiB, model size) */
    bool no_fuse;
    const device_traits *device; /* reroll: whose costs are weighed; NULL: any GPU's */
    bool reroll_any;       /* reroll: also what does not pay (tests) */
    reroll_report *report; /* reroll: filled in; NULL: not wanted */
} pass_options;

typedef braid_status pass_fn(const graph *, arena *, const pass_options *, graph **out, braid_error *err);
pass_fn pass_prune, pass_fold, pass_simplify, pass_reroll, pass_reroll_any, pass_fuse;

/* Runs a named pass ("fold") on an inferred graph and infers and verifies the result. */
braid_status pass_run(const char *name, const graph *, arena *, const pass_options *, graph **out, braid_error *err);

/* Undoes fusion where flags[node]: an operator with an epilogue becomes the operator and a Map node (for kernels that
   turn an epilogue down). */
braid_status pass_unfuse(const graph *, arena *, const bool *flags, graph **out, braid_error *err);

/* A hash for each graph output of all that it is computed from; reads constants (meaning.c). */
braid_status pass_meaning(const graph *, arena *, uint64_t **out, braid_error *err);

/* Undoes re-rolling where flags[node], or everywhere (NULL): the node becomes as many as it has copies, between an Unstack
   and a Stack where its neighbours stay as they are. */
braid_status pass_unroll(const graph *, arena *, const bool *flags, graph **out, braid_error *err);

#endif
