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

/* depend.c. Everything lives in `memory`. */
braid_status links_make(const plan *, arena *memory, links *out, braid_error *err);

#endif
