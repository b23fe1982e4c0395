/*
 * map_rules.h: what the elementwise operators' files share.
 */
#ifndef BRAID_MAP_RULES_H
#define BRAID_MAP_RULES_H

#include "ops/follow.h"
#include "ops/map.h"
#include "ops/upgrade.h"

enum { REAL = 1, SIGNED = 2, UNSIGNED = 4, BOOLEAN = 8, STRING = 16, INTEGER = 6, NUMERIC = 7, ANY = 31 };

/* TYPE when input i has a known type outside the allowed classes. */
braid_status map_infer_type(infer *, int i, unsigned allowed);
/* TYPE when inputs i and j have different known types. */
braid_status map_infer_equal_types(infer *, int i, int j);
/* Output 0: the broadcast shape of inputs [first, n_in) and a type. */
braid_status map_infer_broadcast(infer *, int first, braid_type);

/* ---- pieces of programs; all pass -1 on */
/* Wraps an integer register to the type's width; reals and 64-bit integers stay. */
int map_wrap(program *, braid_type, int reg);
/* Register as a real, given its type. */
int map_to_real(program *, braid_type, int reg);
/* A real register as the type: truncated and saturated for integers, rounded for float16 and bfloat16. */
int map_from_real(program *, braid_type, int reg);
/* Any to any. */
int map_cast(program *, braid_type from, braid_type to, int reg);

static inline bool map_unsigned(braid_type t) {
    return type_is_unsigned(t) || t == BRAID_BOOL;
}

/* An emit_fn from a function that returns the result's register or -1. */
typedef int map_emit_fn(const node *, const braid_type *in, braid_type out, program *p, const int *reg);
bool map_emit(map_emit_fn *, const node *, const braid_type *in, braid_type out, program *p, const int *reg,
              int *reg_out);
#define MAP_EMIT(function)                                                                                             \
    static bool emit_##function(const node *n, const braid_type *in, braid_type out, program *p, const int *reg,       \
                                int *reg_out) {                                                                        \
        return map_emit(function, n, in, out, p, reg, reg_out);                                                        \
    }

/* Operators before opset 7: attribute `axis` with `broadcast` says where input 1's dims lie; it becomes an explicit
   view with ones behind (braid.Align). Also drops consumed_inputs. */
braid_status map_upgrade(upgrade *);

#define MAP_ROW(name_, since_, until_, n, attributes_, infer_, emit_)                                                  \
    {                                                                                                                  \
        .name = name_, .since = since_, .until = until_, .min_in = n, .max_in = n, .min_out = 1, .max_out = 1,         \
        .attributes = attributes_, .upgrade = map_upgrade, .infer = infer_, .eval = map_eval, .emit = emit_,           \
        .lower = map_lower                                                                                             \
    }

#endif
