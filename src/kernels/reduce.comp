#version 460
//! variant float
//! variant int -DINTEGER
//! variant double -DFLOAT64
// reduce: sums, extremes and arguments of extremes over rows (rows/reduce.h). Floats are summed in float with the error
// of every addition carried along (Knuth's two-sum), so a long row loses nothing; integers in int64.
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "lib/team.glsl"
#if !defined(INTEGER) && !defined(FLOAT64)
#define EPILOGUE
#include "lib/program.glsl"
#endif
#include "lib/vector.glsl"
#ifdef FLOAT64
#include "lib/math64.glsl"
#define EXP b_exp64
#define LOG b_log64
#else
#define EXP b_exp
#define LOG b_log
#endif
#include "rows/reduce.h"

layout(constant_id = SPEC_KIND) const uint KIND = 0u;
layout(constant_id = SPEC_TYPE_X) const uint TYPE_X = 1u;
layout(constant_id = SPEC_TYPE_Y) const uint TYPE_Y = 1u;
layout(constant_id = SPEC_STAGE) const uint STAGE = 0u;
layout(constant_id = SPEC_FLAGS) const uint FLAGS = 0u;

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_reduce r; };

#if defined(INTEGER) || defined(FLOAT64)
#define PARTIAL_BYTES REDUCE_PARTIAL_WIDE
#else
#define PARTIAL_BYTES REDUCE_PARTIAL_FLOAT
#endif
#ifdef INTEGER
#define number int64_t
#define LOAD(base, at) load_int(base, at, TYPE_X)
#define SHUFFLE1(x, m) int64_t(packUint2x32(subgroupShuffleXor(unpackUint2x32(uint64_t(x)), m)))
#else
#define number real
#define LOAD(base, at) load_real(base, at, TYPE_X)
#ifdef FLOAT64
#define SHUFFLE1(x, m) packDouble2x32(subgroupShuffleXor(unpackDouble2x32(x), m))
#else
#define SHUFFLE1(x, m) subgroupShuffleXor(x, m)
#endif
#endif

// Running result: sums are a + b (b the lost low part), log-sum-exp is a + log(b), arguments are a at index `at`.
struct partial {
    number a, b;
    uint at;
};
layout(buffer_reference, std430, buffer_reference_align = 8) buffer partial_ref {
    number a, b;
    uint at, reserved;
};
shared partial pool[GROUP];

const bool IS_ARG = KIND == REDUCE_KIND_ARG_MAX || KIND == REDUCE_KIND_ARG_MIN;
const bool IS_UNSIGNED = (FLAGS & REDUCE_FLAG_UNSIGNED) != 0u;
const bool IS_LAST = (FLAGS & REDUCE_FLAG_LAST) != 0u;

#ifdef INTEGER
bool less(int64_t a, int64_t b) { return IS_UNSIGNED ? uint64_t(a) < uint64_t(b) : a < b; }
bool unordered(int64_t a) { return false; }
number extreme(number a, number b) { return (KIND == REDUCE_KIND_MAX) == less(a, b) ? b : a; }
#else
#ifdef FLOAT64
bool unordered(double x) {
    uvec2 w = unpackDouble2x32(x);
    return (w.y & 0x7fffffffu) > 0x7ff00000u || ((w.y & 0x7fffffffu) == 0x7ff00000u && w.x != 0u);
}
bool finite(double x) { return (unpackDouble2x32(x).y & 0x7ff00000u) != 0x7ff00000u; }
#else
bool unordered(float x) { return b_is_nan(x); }
bool finite(float x) { return (floatBitsToUint(x) & 0x7f800000u) != 0x7f800000u; }
#endif
bool less(number a, number b) { return a < b; }
number extreme(number a, number b) {
    if (unordered(a) || unordered(b)) return unordered(a) ? a : b;
    return KIND == REDUCE_KIND_MAX ? max(a, b) : min(a, b);
}
#endif

partial start() {
    partial r;
    r.a = number(0);
    r.b = number(0);
    r.at = 0xffffffffu; // arg: none yet
    if (KIND == REDUCE_KIND_PROD) r.a = number(1);
#ifdef INTEGER
    bool top = KIND == REDUCE_KIND_MIN;
    uint bytes = type_bytes(TYPE_X), bits = TYPE_X == TYPE_BOOL ? 1u : bytes * 8u;
    if (KIND == REDUCE_KIND_MAX || KIND == REDUCE_KIND_MIN) {
        if (IS_UNSIGNED) r.a = top ? int64_t(uint64_t(-1l) >> (64u - bits)) : 0l;
        else r.a = top ? int64_t(uint64_t(-1l) >> (65u - bits)) : -1l - int64_t(uint64_t(-1l) >> (65u - bits));
    }
#else
    float infinity = uintBitsToFloat(0x7f800000u);
    if (KIND == REDUCE_KIND_MAX || KIND == REDUCE_KIND_LOG_SUM_EXP) r.a = number(-infinity);
    if (KIND == REDUCE_KIND_MIN) r.a = number(infinity);
    // -0 changes nothing that is added to it: a sum of one element is that element, as where the plan makes a view of it
    if (KIND == REDUCE_KIND_SUM || KIND == REDUCE_KIND_MEAN) r.a = number(uintBitsToFloat(0x80000000u));
#endif
    return r;
}

// Does element (x, at) replace (y, to)?
bool beats(number x, uint at, number y, uint to) {
    if (to == 0xffffffffu || at == 0xffffffffu) return at != 0xffffffffu;
    bool earlier = IS_LAST ? at > to : at < to;
    if (unordered(x) || unordered(y)) return unordered(x) && (!unordered(y) || earlier);
    if (x == y) return earlier;
    return less(x, y) == (KIND == REDUCE_KIND_ARG_MIN);
}

#ifdef INTEGER
number weigh(number x, float p) {
    if (KIND == REDUCE_KIND_L1) return x < 0l && !IS_UNSIGNED ? -x : x;
    return KIND == REDUCE_KIND_SUM_SQUARE ? x * x : x;
}
partial add(partial u, partial v) {
    u.a += v.a;
    return u;
}
#else
number weigh(number x, float p) {
    if (KIND == REDUCE_KIND_L1) return abs(x);
    if (KIND == REDUCE_KIND_L2 || KIND == REDUCE_KIND_SUM_SQUARE) return x * x;
#ifndef FLOAT64
    if (KIND == REDUCE_KIND_LP) return b_pow(abs(x), p);
#endif
    return x;
}
partial add(partial u, partial v) {
    precise number sum = u.a + v.a;
    precise number back = sum - u.a;
    precise number lost = (u.a - (sum - back)) + (v.a - back);
    precise number low = u.b + v.b;
    u.b = low + lost;
    u.a = sum;
    return u;
}
// u.a + log(u.b) and v.a + log(v.b), joined; an infinite or NaN maximum is the answer by itself.
partial add_exponential(partial u, partial v) {
    number top = unordered(u.a) ? u.a : unordered(v.a) ? v.a : max(u.a, v.a), low = u.a == top ? v.a : u.a;
    number scale = finite(top) ? EXP(low - top) : number(0);
    u.b = u.a == top ? u.b + v.b * scale : v.b + u.b * scale;
    u.a = top;
    return u;
}
#endif

partial join(partial u, partial v) {
    if (IS_ARG) {
        if (beats(v.a, v.at, u.a, u.at)) u = v;
        return u;
    }
    if (KIND == REDUCE_KIND_MAX || KIND == REDUCE_KIND_MIN) {
        u.a = extreme(u.a, v.a);
        return u;
    }
    if (KIND == REDUCE_KIND_PROD) {
        u.a = u.a * v.a;
        return u;
    }
#ifndef INTEGER
    if (KIND == REDUCE_KIND_LOG_SUM_EXP) return add_exponential(u, v);
#endif
    return add(u, v);
}

partial element(number x, uint at, float p) {
    partial r;
    r.a = weigh(x, p);
    r.b = number(KIND == REDUCE_KIND_LOG_SUM_EXP ? 1 : 0);
    r.at = at;
    return r;
}

partial shuffle(partial v, uint m) {
    partial r = v;
    r.a = SHUFFLE1(v.a, m);
#ifndef INTEGER
    if (!IS_ARG) r.b = SHUFFLE1(v.b, m);
#endif
    if (IS_ARG) r.at = subgroupShuffleXor(v.at, m);
    return r;
}
TEAM_FUNCTION(team_join, partial, pool, shuffle, join)

#ifdef INTEGER
void finish(uint64_t base, uint row, partial v, uint total) {
    number x = v.a;
    if (IS_ARG) {
        store_int(base, row, TYPE_INT64, int64_t(v.at));
        return;
    }
    if (KIND == REDUCE_KIND_MEAN && total > 0u)
        x = IS_UNSIGNED ? int64_t(uint64_t(x) / uint64_t(total)) : x / int64_t(total);
    store_int(base, row, TYPE_Y, x);
}
#else
void finish(uint64_t base, uint row, partial v, row_reduce r, place where) {
    float p = r.p;
    if (IS_ARG) {
        store_int(base, row, TYPE_INT64, int64_t(v.at));
        return;
    }
    number x = v.a;
    bool is_sum = KIND != REDUCE_KIND_MAX && KIND != REDUCE_KIND_MIN && KIND != REDUCE_KIND_PROD &&
                  KIND != REDUCE_KIND_LOG_SUM_EXP;
    if (is_sum && finite(v.b) && v.b != number(0)) x += v.b;
    if (is_sum && r.total == 0u) x = number(0);
    if (KIND == REDUCE_KIND_MEAN) x = x / number(r.total);
    if (KIND == REDUCE_KIND_L2) x = sqrt(x);
    if (KIND == REDUCE_KIND_LOG_SUM) x = LOG(x);
    if (KIND == REDUCE_KIND_LOG_SUM_EXP && finite(x)) x += LOG(v.b);
#ifndef FLOAT64
    if (KIND == REDUCE_KIND_LP) x = b_pow(x, 1.0f / p);
#endif
#ifdef EPILOGUE
    if (PROGRAM_0 != 0u) {
        epilogue_state after = epilogue_begin(r.e, where, 0u);
        x = epilogue_run(after, x, row / r.cols, row % r.cols);
    }
#endif
    store_real(base, row, TYPE_Y, x);
}
#endif

partial partial_load(uint64_t base, uint at) {
    partial_ref from = partial_ref(base + uint64_t(at) * PARTIAL_BYTES);
    partial r;
    r.a = from.a;
    r.b = from.b;
    r.at = from.at;
    return r;
}
void partial_store(uint64_t base, uint at, partial v) {
    partial_ref to = partial_ref(base + uint64_t(at) * PARTIAL_BYTES);
    to.a = v.a;
    to.b = v.b;
    to.at = v.at;
    to.reserved = 0u;
}

void main() {
    place p;
    if (!place_find(p)) return;
    row_ref row = row_ref(p.row);
    uint rows = row.r.view.rows, blocks = (rows + COLS - 1u) / COLS;
    uint chunk = p.tile / blocks, at = (p.tile - chunk * blocks) * COLS + team_column();
    bool inside = at < rows;
    uint first = chunk * row.r.chunk;
    uint end = STAGE == 1u ? min(first + row.r.chunk, row.r.view.count) : row.r.view.count;
    uint64_t x = operand_address(row.r.x, p), y = operand_address(row.r.y, p);
    partial v = start();
    if (inside) {
        uint64_t keep = rows_keep(row.r.view, at);
        float power = row.r.p;
        if (STAGE == 2u) {
            x += keep * uint64_t(PARTIAL_BYTES);
            for (uint k = first + team_member(); k < end; k += TEAM)
                v = join(v, partial_load(x, rows_reduce(row.r.view, k)));
#if !defined(INTEGER) && !defined(FLOAT64)
        } else if (VECTOR == 1u) {
            x += keep * type_bytes(TYPE_X);
            uint k = first + 4u * team_member();
            for (; k + 4u * TEAM < end; k += 8u * TEAM) { // two loads in flight
                vec4 e = load_float4(x, k, TYPE_X), f = load_float4(x, k + 4u * TEAM, TYPE_X);
                [[unroll]] for (uint i = 0u; i < 4u; i++) v = join(v, element(e[i], k + i, power));
                [[unroll]] for (uint i = 0u; i < 4u; i++) v = join(v, element(f[i], k + 4u * TEAM + i, power));
            }
            if (k < end) {
                vec4 e = load_float4(x, k, TYPE_X);
                [[unroll]] for (uint i = 0u; i < 4u; i++) v = join(v, element(e[i], k + i, power));
            }
#endif
        } else {
            x += keep * type_bytes(TYPE_X);
            uint k = first + team_member();
            for (; k + 3u * TEAM < end; k += 4u * TEAM) { // four loads in flight
                number e[4];
                [[unroll]] for (uint i = 0u; i < 4u; i++) e[i] = LOAD(x, rows_reduce(row.r.view, k + i * TEAM));
                [[unroll]] for (uint i = 0u; i < 4u; i++) v = join(v, element(e[i], k + i * TEAM, power));
            }
            for (; k < end; k += TEAM) v = join(v, element(LOAD(x, rows_reduce(row.r.view, k)), k, power));
        }
    }
    v = team_join(v);
    if (!inside || team_member() != 0u) return;
    if (STAGE == 1u) partial_store(y, chunk * rows + at, v);
#ifdef INTEGER
    else finish(y, at, v, row.r.total);
#else
    else finish(y, at, v, row.r, p);
#endif
}
