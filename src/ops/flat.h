/*
 * flat.h: steps for kernels that compute independent outputs (kernels/lib/flat.glsl). Specialization constant
 * SPEC_FIRST is the number of outputs of an invocation; a kernel's own constants start at FLAT_SPEC.
 */
#ifndef BRAID_FLAT_H
#define BRAID_FLAT_H

#include "kernels/abi.h"
#include "ops/op.h"

#define FLAT_SPEC (SPEC_FIRST + 1)
/* Elements that a kernel with 32-bit indices may address. */
#define FLAT_MAX INT32_MAX

/* A step over `outputs` < FLAT_MAX outputs. NULL on failure. Its cost is one operation an output and the bytes of all
   inputs and outputs; the caller may know better. */
step *flat_step(lowering *, const char *kernel, const void *row, size_t row_bytes, int64_t outputs);
/* Name of the variant of a kernel for type t: NAMES has f32, f16, bf16, i8, u8, in that order; NULL where there is
   none. */
const char *flat_float_kernel(braid_type t, const char *const names[static 5]);
/* Index 0..3 of an element of 8, 16, 32 or 64 bits; -1 for others. */
int flat_bits_index(braid_type t);
/* Is the type given, static, and below FLAT_MAX elements. */
bool flat_fits(const tensor_type *);

#endif
