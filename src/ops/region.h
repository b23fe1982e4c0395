/*
 * region.h: a strided copy, the common form of every operator that only moves elements.
 *
 *     for each index of dims:  out[out_at + index . out_stride] = in[in_at + index . in_stride]
 *
 * Offsets and strides count elements; strides may be 0 (broadcast) or negative (reversed); out_stride never makes two
 * indices meet. The operators describe themselves as regions once, for eval and for lower.
 */
#ifndef BRAID_REGION_H
#define BRAID_REGION_H

#include "ops/op.h"

#define REGION_RANK 16
typedef struct region {
    int rank;
    int64_t dims[REGION_RANK], in_stride[REGION_RANK], out_stride[REGION_RANK];
    int64_t in_at, out_at;
} region;

/* Strides of a dense tensor. */
void region_strides(int rank, const int64_t *dims, int64_t *strides);
/* Appends a dim. */
void region_add(region *, int64_t dim, int64_t in_stride, int64_t out_stride);
/* Number of elements. */
int64_t region_count(const region *);
/* Drops dims of 1 and joins neighbours that run on in both tensors. */
void region_collapse(region *);

/* Bytes that one element occupies in a buffer: strings are pointers; 0 for types smaller than a byte. */
size_t element_bytes(braid_type);
/* Copies on the CPU, any type. */
void region_copy(const region *, braid_type, const void *in, void *out);
/* Copies on the GPU from input `in` to output `out` of the node. UNSUPPORTED: too large or no such element size. */
braid_status region_lower(lowering *, int in, int out, const region *);
/* The same with any storage; type names the elements. */
braid_status region_lower_storage(lowering *, int32_t in, int32_t out, braid_type, const region *);

/* Operators of one input and one output that are a single region, a function of the node and both types. */
typedef void region_fn(const node *, const tensor_type *in, const tensor_type *out, region *);
braid_status region_eval_one(eval *, region_fn *);
braid_status region_lower_one(lowering *, region_fn *);

/* Elements of integer input i where they are constants or followed numbers; count -1 where they are not. */
braid_status lower_ints(lowering *, int i, int *count, const int64_t **out);

#endif
