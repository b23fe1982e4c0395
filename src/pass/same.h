/*
 * same.h: when two nodes or two constants are interchangeable.
 */
#ifndef BRAID_SAME_H
#define BRAID_SAME_H

#include "pass/pass.h"

/* Name, kind and content. Subgraphs never are; tensors by type and bytes, where both are in memory. */
bool attribute_same(const attribute *, const attribute *);
/* Operator, opset, attributes, epilogue, copies and which inputs and outputs are there. Not what they are connected to.
 */
bool node_same(const node *, const node *);
/* Same type and the same bytes, whatever the names. *a is loaded into `memory` when bytes must be compared. */
braid_status constant_same(tensor *a, tensor *b, arena *memory, bool *out, braid_error *err);
/* Hash of what node_same compares. */
uint64_t node_hash(const node *);

#endif
