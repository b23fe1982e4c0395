#version 460
//! variant float
//! variant double -DFLOAT64
// norm: layer, RMS, instance, group and Lp normalisation over rows (rows/norm.h). The mean is corrected by the mean of
// what is left after it was taken away, so a mean far larger than the spread costs no digits. A row is kept in the
// registers of its team where it fits (VALUES > 0), otherwise it is read three times.
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "lib/team.glsl"
#include "lib/program.glsl"
#include "lib/vector.glsl"
#include "rows/norm.h"

layout(constant_id = SPEC_KIND) const uint KIND = 0u;
layout(constant_id = SPEC_TYPE_X) const uint TYPE_X = 1u;
layout(constant_id = SPEC_TYPE_Y) const uint TYPE_Y = 1u;
layout(constant_id = SPEC_TYPE_SCALE) const uint TYPE_SCALE = 1u;
layout(constant_id = SPEC_TYPE_BIAS) const uint TYPE_BIAS = 1u;
layout(constant_id = SPEC_TYPE_SIDE) const uint TYPE_SIDE = 1u;
layout(constant_id = SPEC_STAGE) const uint STAGE = 0u;
layout(constant_id = SPEC_FLAGS) const uint FLAGS = 0u;

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_norm r; };

#ifdef FLOAT64
#define real4 dvec4
#define NORM_PARTIAL 32u
#define real2 dvec2
#define SHUFFLE1(x, m) packDouble2x32(subgroupShuffleXor(unpackDouble2x32(x), m))
#define SHUFFLE2(v, m) dvec2(SHUFFLE1(v.x, m), SHUFFLE1(v.y, m))
#else
#define real4 vec4
#define NORM_PARTIAL 16u
#define real2 vec2
#define SHUFFLE2(v, m) subgroupShuffleXor(v, m)
#endif

layout(buffer_reference, std430, buffer_reference_align = 8) buffer partial_ref { real4 v; };

const uint WIDTH = VECTOR == 1u ? 4u : 1u; // neighbouring elements of an invocation
const uint KEPT = VALUES > 0u ? VALUES : 4u;
const bool CENTRED = KIND == NORM_KIND_STANDARD || KIND == NORM_KIND_MVN;

shared real2 pool[GROUP];
real2 join_sum(real2 a, real2 b) { return a + b; }
TEAM_FUNCTION(team_sum, real2, pool, SHUFFLE2, join_sum)

uint64_t x, y, scale, bias;
uint begin, end;  // elements of the row that this team solves
uint row_at;      // the row's first element in x and y
row_ref row;
#ifndef FLOAT64
epilogue_state after;
#endif

real4 read4(uint k) {
#ifndef FLOAT64
    if (VECTOR == 1u) return load_float4(x, k, TYPE_X);
#endif
    return real4(load_real(x, rows_reduce(row.r.view, k), TYPE_X), real(0), real(0), real(0));
}
void write4(uint k, real4 v) {
#ifndef FLOAT64
    if (VECTOR == 1u) {
        store_float4(y, k, TYPE_Y, v);
        return;
    }
#endif
    store_real(y, rows_reduce(row.r.view, k), TYPE_Y, v.x);
}

// Offset of row `at`, or of element k of a row, in scale or bias.
uint keep_offset(uint stride[ROWS_AXES], uint at) {
    uint offset = 0u;
    [[unroll]] for (int d = ROWS_AXES - 1; d >= 0; d--) {
        if (uint(d) < KEEP) {
            uint next = at / row.r.view.keep_size[d];
            offset += (at - next * row.r.view.keep_size[d]) * stride[d];
            at = next;
        }
    }
    return offset;
}
uint reduce_offset(uint stride[ROWS_AXES], uint k) {
    if (REDUCE == 1u) return k * stride[0];
    uint offset = 0u;
    [[unroll]] for (int d = ROWS_AXES - 1; d >= 0; d--) {
        if (uint(d) < REDUCE) {
            uint next = k / row.r.view.reduce_size[d];
            offset += (k - next * row.r.view.reduce_size[d]) * stride[d];
            k = next;
        }
    }
    return offset;
}
real4 factor4(uint64_t base, uint type, uint flags, uint stride[ROWS_AXES], uint k) {
    if ((flags & NORM_FLAG_SCALE_ROW) != 0u) return real4(load_real(base, 0u, type));
    if ((flags & NORM_FLAG_SCALE_FOUR) != 0u) return real4(load_real(base, reduce_offset(stride, k), type));
#ifndef FLOAT64
    if ((flags & NORM_FLAG_SCALE_UNIT) != 0u) return load_float4(base, k, type);
#endif
    real4 v;
    [[unroll]] for (uint j = 0u; j < WIDTH; j++) v[j] = load_real(base, reduce_offset(stride, k + j), type);
    return v;
}
real4 affine(real4 v, uint k) {
    if ((FLAGS & NORM_FLAG_SCALE) != 0u) v *= factor4(scale, TYPE_SCALE, FLAGS, row.r.scale_reduce, k);
    if ((FLAGS & NORM_FLAG_BIAS) != 0u) v += factor4(bias, TYPE_BIAS, FLAGS >> 1, row.r.bias_reduce, k);
#ifndef FLOAT64
    if (PROGRAM_0 != 0u) {
        uint at = row_at + rows_reduce(row.r.view, k), cols = row.r.cols;
        [[unroll]] for (uint j = 0u; j < WIDTH; j++) {
            uint line = (at + j) / cols;
            v[j] = epilogue_run(after, v[j], line, at + j - line * cols);
        }
    }
#endif
    return v;
}

// (sum of d, sum of its size), d = x - mean.
real2 spread(real2 sums, real d) {
    return real2(sums.x + d, sums.y + (KIND == NORM_KIND_L1 ? abs(d) : d * d));
}
// Factor from the mean square (the sum for L1 and L2).
real factor_of(real square, real sum, real epsilon) {
    if (KIND == NORM_KIND_MVN) return real(1) / (sqrt(square) + epsilon);
    if (KIND == NORM_KIND_L1) return sum == real(0) ? real(0) : real(1) / sum;
    if (KIND == NORM_KIND_L2) return sum == real(0) ? real(0) : real(1) / sqrt(sum);
    return real(1) / sqrt(square + epsilon);
}
// From the sums over n elements: (what is missing in the mean, factor); in stage 1 the sum instead of the factor.
real2 conclude(real2 sums, real n, real epsilon) {
    real rest = CENTRED ? sums.x / n : real(0);
    real square = max(sums.y / n - rest * rest, real(0));
    if (sums.y != sums.y) square = sums.y;
    if (STAGE == 1u) return real2(rest, CENTRED ? square * n : sums.y);
    return real2(rest, factor_of(square, sums.y, epsilon));
}

// Both return (mean, what is missing in it, factor). Slot i of a member holds element begin + (i / WIDTH * TEAM + member) * WIDTH + i % WIDTH.
real4 solve_kept(bool inside) {
    real v[KEPT];
    uint member = team_member();
    real2 sums = real2(0);
    real mean = real(0), n = real(end - begin);
    [[unroll]] for (uint i = 0u; i < KEPT; i += WIDTH) {
        uint k = begin + (i / WIDTH * TEAM + member) * WIDTH;
        real4 e = real4(0);
        if (inside && k < end) e = read4(k);
        [[unroll]] for (uint j = 0u; j < WIDTH; j++) {
            v[i + j] = e[j];
            sums.x += e[j];
        }
    }
    if (CENTRED) mean = team_sum(sums).x / n;
    sums = real2(0);
    [[unroll]] for (uint i = 0u; i < KEPT; i++) {
        uint k = begin + (i / WIDTH * TEAM + member) * WIDTH + i % WIDTH;
        v[i] -= mean;
        if (k < end) sums = spread(sums, v[i]);
    }
    real2 result = conclude(team_sum(sums), n, real(row.r.epsilon));
    if (STAGE == 1u) return real4(mean, result, real(0));
    [[unroll]] for (uint i = 0u; i < KEPT; i += WIDTH) {
        uint k = begin + (i / WIDTH * TEAM + member) * WIDTH;
        real4 e = real4(0);
        [[unroll]] for (uint j = 0u; j < WIDTH; j++) e[j] = (v[i + j] - result.x) * result.y;
        if (inside && k < end) write4(k, affine(e, k));
    }
    return real4(mean, result, real(0));
}

// Writes (x - mean - rest) * factor.
void apply(bool inside, real mean, real rest, real factor) {
    uint stop = inside ? end : begin;
    for (uint k = begin + team_member() * WIDTH; k < stop; k += TEAM * WIDTH)
        write4(k, affine(((read4(k) - mean) - rest) * factor, k));
}

real4 solve_again(bool inside) {
    uint first = begin + team_member() * WIDTH, stop = inside ? end : begin;
    real2 sums = real2(0);
    real mean = real(0), n = real(end - begin);
    if (CENTRED) {
        for (uint k = first; k < stop; k += TEAM * WIDTH) {
            real4 e = read4(k);
            [[unroll]] for (uint j = 0u; j < WIDTH; j++) sums.x += e[j];
        }
        mean = team_sum(sums).x / n;
        sums = real2(0);
    }
    for (uint k = first; k < stop; k += TEAM * WIDTH) {
        real4 e = read4(k);
        [[unroll]] for (uint j = 0u; j < WIDTH; j++) sums = spread(sums, e[j] - mean);
    }
    real2 result = conclude(team_sum(sums), n, real(row.r.epsilon));
    apply(inside, mean, result.x, result.y);
    return real4(mean, result, real(0));
}

// Joins the chunks' partials in order: means as distances from the first one, which a large mean cannot swallow.
real4 solve_joined(uint at, bool inside, uint64_t partials) {
    uint count = row.r.view.count, chunks = row.r.chunks;
    real total = real(count), head = partial_ref(partials + uint64_t(at * chunks) * NORM_PARTIAL).v.x;
    real2 sums = real2(0);
    for (uint c = team_member(); c < chunks; c += TEAM) {
        real n = real(min(row.r.chunk, count - c * row.r.chunk));
        real4 v = partial_ref(partials + uint64_t(at * chunks + c) * NORM_PARTIAL).v;
        sums.x += n * ((v.x - head) + v.y);
    }
    real rest = team_sum(sums).x / total;
    sums = real2(0);
    for (uint c = team_member(); c < chunks; c += TEAM) {
        real n = real(min(row.r.chunk, count - c * row.r.chunk));
        real4 v = partial_ref(partials + uint64_t(at * chunks + c) * NORM_PARTIAL).v;
        real d = ((v.x - head) + v.y) - rest;
        sums.y += v.z + n * d * d;
    }
    real sum = team_sum(sums).y, factor = factor_of(sum / total, sum, real(row.r.epsilon));
    apply(inside, head, rest, factor);
    return real4(head, rest, factor, real(0));
}

void main() {
    place p;
    if (!place_find(p)) return;
    row = row_ref(p.row);
    uint blocks = (row.r.view.rows + COLS - 1u) / COLS, chunk = p.tile / blocks;
    uint at = (p.tile - chunk * blocks) * COLS + team_column();
    bool inside = at < row.r.view.rows;
    at = inside ? at : 0u;
    uint64_t keep = rows_keep(row.r.view, at);
    x = operand_address(row.r.x, p) + keep * type_bytes(TYPE_X);
    y = operand_address(row.r.y, p) + keep * type_bytes(TYPE_Y);
    if ((FLAGS & NORM_FLAG_SCALE) != 0u)
        scale = operand_address(row.r.scale, p) + uint64_t(keep_offset(row.r.scale_keep, at)) * type_bytes(TYPE_SCALE);
    if ((FLAGS & NORM_FLAG_BIAS) != 0u)
        bias = operand_address(row.r.bias, p) + uint64_t(keep_offset(row.r.bias_keep, at)) * type_bytes(TYPE_BIAS);
    begin = chunk * row.r.chunk;
    end = min(begin + row.r.chunk, row.r.view.count);
    row_at = uint(keep);
#ifndef FLOAT64
    if (PROGRAM_0 != 0u) after = epilogue_begin(row.r.e, p, 0u);
#endif
    uint64_t partials = operand_address(row.r.partials, p);
    real4 result;
    if (STAGE == 2u) result = solve_joined(at, inside, partials);
    else result = VALUES > 0u ? solve_kept(inside) : solve_again(inside);
    if (!inside || team_member() != 0u) return;
    if (STAGE == 1u) {
        partial_ref(partials + uint64_t(at * row.r.chunks + chunk) * NORM_PARTIAL).v = result;
        return;
    }
    uint64_t mean = operand_address(row.r.mean, p), inverse = operand_address(row.r.inverse, p);
    if (mean != 0ul && chunk == 0u) store_real(mean, at, TYPE_SIDE, result.x + result.y);
    if (inverse != 0ul && chunk == 0u) store_real(inverse, at, TYPE_SIDE, result.z);
}
