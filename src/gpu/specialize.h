/*
 * specialize: SPIR-V with its specialization constants filled in and what they switch off removed.
 *
 * A kernel holds every opcode of every fusion program; drivers inline all of it before they look at the constants,
 * which takes a second on some. Here functions are first copied per set of constant arguments, branches and switches on
 * constants are decided, and what is then unreachable is dropped: a pipeline is created in milliseconds.
 *
 *     program_step(const uint word, ...) { switch (word & 255u) { ... } }   called with 16 spec constants
 *       -> a copy per word that is there, each with the one case that it takes
 *
 * Arguments are followed through parameters declared `const`, integer and bool arithmetic; not through variables.
 */
#ifndef BRAID_SPECIALIZE_H
#define BRAID_SPECIALIZE_H

#include "base/base.h"

/* *out (mem_free) is the module; constants that are not given keep their defaults and become fixed as well. False: out
   of memory or a form of code that is not handled; use the module as it is. */
bool spirv_specialize(const uint32_t *code, size_t words, size_t n, const uint32_t *ids, const uint32_t *values,
                      uint32_t **out, size_t *out_words);

#endif
