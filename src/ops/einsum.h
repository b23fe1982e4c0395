/*
 * einsum: an equation applied to shapes: every label with its extent, and its stride in each operand.
 */
#ifndef BRAID_EINSUM_H
#define BRAID_EINSUM_H

#include "ops/op.h"

/* Labels: the 52 letters in ASCII order, then the dims of "...", right-aligned. */
enum { EINSUM_ELLIPSIS = 52, EINSUM_LABELS = EINSUM_ELLIPSIS + BRAID_MAX_RANK, EINSUM_INPUTS = 64 };

typedef struct einsum_term {
    int rank;     /* dims; of an equation alone: letters, "..." not counted */
    int ellipsis; /* letters before "...", -1: none */
    uint8_t label[BRAID_MAX_RANK];
} einsum_term;

typedef struct einsum {
    int n_terms;
    einsum_term terms[EINSUM_INPUTS], out;
} einsum;

/* Parses the node's equation; explicit: has "->". MODEL where it is malformed. */
braid_status einsum_parse(const node *, int n_in, einsum *, bool *explicit_out, braid_error *err);
/* Replaces "..." by labels, given the ranks (all known), and fills an implicit output. SHAPE where ranks do not fit. */
braid_status einsum_expand(einsum *, const int *ranks, bool explicit_out, braid_error *err);

/* One label of a contraction over static shapes. */
typedef struct einsum_label {
    int64_t extent, out; /* out: stride in the output, 0 when summed */
    int64_t in[EINSUM_INPUTS];
    bool summed;
} einsum_label;

/* Labels in output order, then the summed ones; returns their number. Strides of repeated labels add up (diagonals),
   broadcast dims have stride 0. */
int einsum_labels(const einsum *, const tensor_type *const *in, einsum_label out[EINSUM_LABELS]);
/* Joins neighbours that all operands and the output walk alike and drops extents of 1; returns the new number. */
int einsum_merge(einsum_label *labels, int n, int n_in);

braid_status einsum_lower(lowering *);

#endif
