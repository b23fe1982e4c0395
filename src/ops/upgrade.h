/*
 * upgrade.h: what upgrade hooks share. They run at import on nodes of older opsets and leave canonical nodes behind.
 */
#ifndef BRAID_UPGRADE_H
#define BRAID_UPGRADE_H

#include "ops/op.h"

/* Sets input `at` of the node, with absent inputs before it where it has fewer. */
braid_status upgrade_set_input(upgrade *, int at, int32_t number);
/* Moves the ints attribute `name` into input `at` as a constant; the attribute goes. Nothing when it is absent. */
braid_status upgrade_ints_to_input(upgrade *, const char *name, int at);
/* Removes an attribute if it is there. */
void upgrade_drop_attribute(upgrade *, const char *name);
/* Is input `at` present. */
static inline bool upgrade_has(const upgrade *u, int at) { return at < u->node->n_in && u->node->in[at] >= 0; }

#endif
