/*
 * waves.h: what depend.c, cost.c and waves.c share.
 *
 * links: the order that steps must keep, as a graph. Its nodes are the steps, then joins: a join stands for a set of
 * steps that several later ones wait for, so that n writers and m readers take n + m edges, not n * m. A join takes no
 * wave of its own: what waits for it may run one wave after the last step of its set.
 */
#ifndef BRAID_WAVES_H
#define BRAID_WAVES_H

#include "plan/plan.h"

typedef struct links {
    int32_t n;        /* steps and joins */
    int32_t *order;   /* all nodes, each behind those it waits for; steps among each other in their own order */
    int32_t *first;   /* n + 1 entries: node i waits for before[first[i]] ... before[first[i + 1] - 1] */
    int32_t *before;
} links;

/* Times are in ns. */
typedef struct costs {
    double *alone, *work; /* of each step */
    double barrier, dispatch;
    double resident; /* dispatches that run at once */
} costs;

typedef struct schedule {
    int32_t *wave; /* of each step */
    int32_t n_waves;
    double time, score; /* estimate; with a price on bytes */
    uint64_t bytes; /* of the arena alive at once, one lane */
} schedule;

typedef struct scheduler {
    const plan *p;
    const links *l;
    links after;    /* the same edges the other way round: `before` lists those that wait for the node */
    int32_t *depth; /* of each node: steps in the longest chain behind it */
    const costs *costs;
    uint64_t soon_bytes; /* of the schedule as soon as possible */
} scheduler;

/* depend.c. Everything lives in `memory`. */
braid_status links_make(const plan *, arena *memory, links *out, braid_error *err);
/* cost.c */
braid_status costs_make(const plan *, arena *memory, costs *out, braid_error *err);
/* Fills in time and bytes. */
braid_status schedule_rate(const plan *, const costs *, schedule *, braid_error *err);
/* schedule.c: the best schedule with at most `budget` bytes of the arena alive at once, or the one with the fewest. */
braid_status schedule_make(const plan *, const links *, const costs *, uint64_t budget, arena *memory, schedule *out,
                           braid_error *err);
/* What waits for this step alone, and for joins that wait for it alone, is ready: returns how many steps, written to out.
   waiting: of each node, for how many it still does; stack: room for all nodes. */
int32_t schedule_release(const scheduler *, int32_t id, int32_t *waiting, int32_t *stack, int32_t *out);
/* progress.c. *made: false where the graph is too wide and long for it. */
braid_status schedule_progress(const scheduler *, double patience, schedule *, bool *made, braid_error *err);
/* polish.c. lean: no tensor may live longer for it. */
braid_status schedule_polish(const scheduler *, schedule *, bool lean, braid_error *err);
/* narrow.c; now->time is known. Leaves no gap between waves where there was none. */
braid_status schedule_narrow(const scheduler *, schedule *now, braid_error *err);
/* lean.c: at most `limit` bytes of the arena alive where that can be. */
braid_status schedule_lean(const scheduler *, uint64_t limit, schedule *, braid_error *err);

#endif
