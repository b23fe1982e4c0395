/*
 * bytes.h: tensors as arrays of whole bytes, for operators that move elements by computed indices on the CPU. Types
 * smaller than a byte are widened to one byte an element on the way in and packed again on the way out.
 */
#ifndef BRAID_BYTES_H
#define BRAID_BYTES_H

#include "ops/region.h"

/* Elements of `t` and the size of each; a copy for sub-byte types. NULL: out of memory. */
const uint8_t *bytes_in(arena *, const tensor *t, size_t *size);
/* Where to write the elements of `t`; bytes_done packs them where the type is smaller than a byte. */
uint8_t *bytes_out(arena *, tensor *t, size_t *size);
void bytes_done(tensor *t, const uint8_t *from);

#endif
