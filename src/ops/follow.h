/*
 * follow.h: arithmetic on followed values, the elements of small integer tensors that shape computations are made of.
 * An element is a number or a symbol (graph.h). A named symbol stands for a dim and is never negative; a fresh one may
 * be any integer, it only says "the same unknown number".
 *
 * Every function sets out_known[0] where it can and leaves it alone where it cannot; none fails. Call them after the
 * output's type is set: only integer and bool outputs of rank 0 or 1 are followed.
 */
#ifndef BRAID_FOLLOW_H
#define BRAID_FOLLOW_H

#include "ops/op.h"

/* Longest tensor that is followed. */
#define FOLLOW_MAX 256

/* May output i be followed: integer or bool (or unknown type), rank 0 or 1 (or unknown). */
bool follow_wanted(const infer *, int i);
/* Elements of input i if they are few enough. */
bool follow_in(infer *, int i, followed *out);
/* Room for the n elements of output i, which are then followed; NULL when they are too many or out of memory. */
int64_t *follow_put(infer *, int i, int n);
/* Output 0 has input 0's elements: Identity, Reshape, Squeeze, Unsqueeze, Cast between integers. Numbers that do not
   fit the output's type stop it. */
void follow_same(infer *);
/* Elementwise on input 0: '-' negative, 'a' absolute value, '!' not, '0' sign. */
void follow_unary(infer *, char what);
/* Elementwise on inputs 0 and 1, broadcast when one has a single element: + - * / (truncates) % (sign of the divisor)
   < (minimum) > (maximum) = (equal, 0 or 1) l (less) g (greater) & | ^ (logical). */
void follow_binary(infer *, char what);
/* Input i, if its type is known, must be int32 or int64. */
braid_status infer_index_type(infer *, int i);
/* LIMIT when output i, static, has more than ELEMENTS_MAX elements. */
braid_status infer_limit(infer *, int i);
/* Where(input 0, input 1, input 2). */
void follow_where(infer *);

#endif
