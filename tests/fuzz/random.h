/*
 * random.h: random valid graphs for random_graphs.c.
 *
 * A draft is a list of lines: inputs, constants, nodes. Every value carries its content as the CPU reference computes
 * it, so that generators choose from shapes and contents that exist. `exact` values must be equal on every device; the
 * others depend on rounding, and nothing that jumps (comparisons, casts to integers, sorting) is built on them.
 */
#ifndef RANDOM_H
#define RANDOM_H

#include <stdio.h>
#include <stdlib.h>

#include "api/session.h"

enum { DRAFT_VALUES = 200, DRAFT_LINES = 100, LINE_IN = 8, LINE_OUT = 4 };

typedef enum line_kind { LINE_INPUT, LINE_CONSTANT, LINE_NODE } line_kind;

typedef struct line {
    line_kind kind;
    char type[32];
    char attributes[256];
    int n_in, n_out;
    int in[LINE_IN], out[LINE_OUT]; /* value numbers; in: -1 absent */
    bool exact; /* the operator keeps exact values exact */
} line;

typedef struct content {
    tensor *t;
    bool exact;
    int uses;
} content;

typedef struct draft {
    uint64_t seed, state;
    arena *memory;
    line lines[DRAFT_LINES];
    int n_lines, n_nodes;
    content values[DRAFT_VALUES];
    int n_values;
    bool specials; /* inputs hold NaN, infinities, denormals */
    bool symbolic; /* input dims go by names */
    int outputs[DRAFT_VALUES], n_outputs;
} draft;

uint32_t draw(draft *, uint32_t below); /* 0 when below is 0 */
bool chance(draft *, int percent);
double uniform(draft *); /* [0, 1) */

/* make.c: a draft of up to `nodes` nodes. */
void draft_make(draft *, uint64_t seed, int nodes);
/* Operators that were accepted, by name. */
void draft_count_operators(const draft *);

/* build.c: the draft as a model. keep[line] false: leave a node out and make its outputs inputs. */
void draft_print(const draft *, text *);
braid_model *draft_model(const draft *, bool symbolic, braid_error *err);
/* Appends a line and computes it; false (and nothing changes) when it is refused or too large. */
bool draft_add(draft *, const line *);
int draft_tensor(draft *, line_kind, tensor *);
tensor *random_tensor(draft *, braid_type, int rank, const int64_t *dims, double lo, double hi);
/* Marks unused values as outputs. */
void draft_finish(draft *);

/* Evaluates the graph of a model: content by value number. noise > 0: every rounding is disturbed (seeded by it). */
braid_status reference_run(draft *, const graph *, tensor *const *inputs, int noise, arena *, tensor ***out,
                           braid_error *err);

/* ---- what is wrong with a draft */
typedef struct finding {
    char text[800];
    int output; /* -1: all of them */
} finding;
/* Returns true. */
bool finding_set(finding *, int output, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* random_lanes.c: `runs` runs of one session with random lanes. True: one of them is not what its lanes alone give. */
typedef struct lanes_total {
    unsigned long long runs, lanes, unlike, failing; /* as in ../lanes.h */
    unsigned rolled; /* graphs with copies that were re-rolled */
    /* given */
    int as_gpu;           /* percent of the graphs that are planned as for a GPU */
    int most_lanes;       /* of a run */
    uint64_t deadline_ns; /* by clock_ns(), no run begins after it; 0: none */
} lanes_total;
bool lanes_try(draft *, braid_device *, int runs, lanes_total *, finding *);

#endif
