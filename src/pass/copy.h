/*
 * copy.h: the rebuilding that every pass does. A copier makes a new graph next to an old one and remembers, for each old
 * value, its new number.
 */
#ifndef BRAID_COPY_H
#define BRAID_COPY_H

#include "pass/pass.h"

typedef struct copier {
    const graph *from;
    graph *to;
    int32_t *map; /* old value -> new value, -1: not copied (yet) */
    braid_error *err;
} copier;

/* Starts a graph with the same inputs and symbols. */
braid_status copier_new(copier *, const graph *from, arena *, braid_error *err);
/* New number of an old value; constants are copied on first use. -1 stays -1. INTERNAL when its producer was dropped. */
braid_status copier_value(copier *, int32_t old, int32_t *out);
/* Copies a node with its outputs; *out (may be NULL) is the copy. */
braid_status copier_node(copier *, const node *, node **out);
/* A Stack of n single values of the new graph into one of n copies, or an Unstack of that one. Its name says of what,
   and for or of which node: "x0 .. x5 for conv", "6 x y of conv" where these have one name. NULL on failure. */
node *copier_stack(copier *, int32_t n, const int32_t *singles, int32_t packed, const node *reader);
node *copier_unstack(copier *, int32_t n, const int32_t *singles, int32_t packed, const node *maker);
/* Everything of `from` that is not its name, operator or values. */
void copier_attributes(node *to, const node *from);
/* The old value is represented by a value of the new graph from now on. */
static inline void copier_replace(copier *c, int32_t old, int32_t now) { c->map[old] = now; }
/* Sets the new graph's outputs to the old ones, under the same names. */
braid_status copier_outputs(copier *);
/* A fresh value like the old one (name, type, followed content), as a node output. -1 on failure. */
int32_t copier_like(copier *, int32_t old);

/* How many node inputs and graph outputs use each value of g. NULL on failure. */
int32_t *graph_uses(const graph *, arena *);

#endif
