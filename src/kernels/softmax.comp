#version 460
// softmax: e^(x - top) / sum, its logarithm, or 1 at the first maximum, over rows (rows/softmax.h). A row is kept in the
// registers of its team where it fits (VALUES > 0), otherwise it is read three times.
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "lib/team.glsl"
#include "lib/vector.glsl"
#include "rows/softmax.h"

layout(constant_id = SPEC_KIND) const uint KIND = 0u;
layout(constant_id = SPEC_TYPE_X) const uint TYPE_X = 1u;
layout(constant_id = SPEC_TYPE_Y) const uint TYPE_Y = 1u;

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_softmax r; };

const uint WIDTH = VECTOR == 1u ? 4u : 1u; // neighbouring elements of an invocation
const uint KEPT = VALUES > 0u ? VALUES : 4u;

shared float pool[GROUP];
shared uint pool_at[GROUP];
#define SHUFFLE(x, m) subgroupShuffleXor(x, m)
float join_sum(float a, float b) { return a + b; }
TEAM_FUNCTION(team_top, float, pool, SHUFFLE, b_max)
TEAM_FUNCTION(team_sum, float, pool, SHUFFLE, join_sum)
TEAM_FUNCTION(team_first, uint, pool_at, SHUFFLE, min)

uint64_t x, y;
uint count;
bool as_log;

vec4 read4(rows_view view, uint k) {
    if (VECTOR == 1u) return load_float4(x, k, TYPE_X);
    return vec4(load_float(x, rows_reduce(view, k), TYPE_X), 0.0f, 0.0f, 0.0f);
}
void write4(rows_view view, uint k, vec4 v) {
    if (VECTOR == 1u) store_float4(y, k, TYPE_Y, v);
    else store_float(y, rows_reduce(view, k), TYPE_Y, v.x);
}
float result(float e, uint k, float top, float shift, uint at) {
    if (KIND == SOFTMAX_KIND_HARD) return k == at ? 1.0f : 0.0f;
    return as_log ? (e - top) - shift : e * shift;
}

float shift_of(float sum) {
    if (as_log) return b_log(sum);
    return 1.0f / sum;
}

// Rows in registers: slot i of a member holds element (i / WIDTH * TEAM + member) * WIDTH + i % WIDTH.
void solve_kept(rows_view view, bool inside) {
    float v[KEPT];
    uint member = team_member();
    float top = -B_INFINITY, sum = 0.0f;
    uint at = 0xffffffffu;
    [[unroll]] for (uint i = 0u; i < KEPT; i += WIDTH) { // all are under way before the first is used
        uint k = (i / WIDTH * TEAM + member) * WIDTH;
        vec4 e = vec4(-B_INFINITY);
        if (inside && k < count) e = read4(view, k);
        [[unroll]] for (uint j = 0u; j < WIDTH; j++) v[i + j] = e[j];
    }
    [[unroll]] for (uint i = 0u; i < KEPT; i++) top = b_max(top, v[i]);
    top = team_top(top);
    [[unroll]] for (uint i = 0u; i < KEPT; i += 4u) {
        if (i * TEAM >= count) continue; // of a shorter row; no invocation has an element here
        [[unroll]] for (uint j = i; j < min(i + 4u, KEPT); j++) {
            uint k = (j / WIDTH * TEAM + member) * WIDTH + j % WIDTH;
            if (KIND == SOFTMAX_KIND_HARD) {
                if (k < count && (v[j] == top || b_is_nan(v[j]))) at = min(at, k);
            } else {
                float e = b_exp_below(v[j] - top);
                v[j] = as_log ? v[j] : e;
                sum += k < count ? e : 0.0f;
            }
        }
    }
    if (KIND == SOFTMAX_KIND_HARD) at = team_first(at);
    else sum = team_sum(sum);
    float shift = shift_of(sum);
    [[unroll]] for (uint i = 0u; i < KEPT; i += WIDTH) {
        uint k = (i / WIDTH * TEAM + member) * WIDTH;
        vec4 e = vec4(0.0f);
        [[unroll]] for (uint j = 0u; j < WIDTH; j++) e[j] = result(v[i + j], k + j, top, shift, at);
        if (inside && k < count) write4(view, k, e);
    }
}

// Four reads at a time, so that they overlap. Elements past the end are -inf.
#define FOUR 4u
void fetch(rows_view view, uint k, uint end, out vec4 e[FOUR]) {
    [[unroll]] for (uint i = 0u; i < FOUR; i++) {
        e[i] = vec4(-B_INFINITY);
        if (k + i * TEAM * WIDTH < end) e[i] = read4(view, k + i * TEAM * WIDTH);
    }
}

void solve_again(rows_view view, bool inside) {
    uint first = team_member() * WIDTH, end = inside ? count : 0u, at = 0xffffffffu;
    float top = -B_INFINITY, sum = 0.0f;
    vec4 e[FOUR];
    for (uint k = first; k < end; k += FOUR * TEAM * WIDTH) {
        fetch(view, k, end, e);
        [[unroll]] for (uint i = 0u; i < FOUR; i++)
            [[unroll]] for (uint j = 0u; j < WIDTH; j++) top = b_max(top, e[i][j]);
    }
    top = team_top(top);
    for (uint k = first; k < end; k += FOUR * TEAM * WIDTH) {
        fetch(view, k, end, e);
        [[unroll]] for (uint i = 0u; i < FOUR; i++) {
            [[unroll]] for (uint j = 0u; j < WIDTH; j++) {
                uint place_ = k + i * TEAM * WIDTH + j;
                if (place_ >= end) continue;
                if (KIND == SOFTMAX_KIND_HARD) {
                    if (e[i][j] == top || b_is_nan(e[i][j])) at = min(at, place_);
                } else sum += b_exp_below(e[i][j] - top);
            }
        }
    }
    if (KIND == SOFTMAX_KIND_HARD) at = team_first(at);
    else sum = team_sum(sum);
    float shift = shift_of(sum);
    for (uint k = first; k < end; k += FOUR * TEAM * WIDTH) {
        fetch(view, k, end, e);
        [[unroll]] for (uint i = 0u; i < FOUR; i++) {
            uint from = k + i * TEAM * WIDTH;
            if (from >= end) continue;
            [[unroll]] for (uint j = 0u; j < WIDTH; j++) {
                float w = e[i][j];
                if (KIND != SOFTMAX_KIND_HARD && !as_log) w = b_exp_below(w - top);
                e[i][j] = result(w, from + j, top, shift, at);
            }
            write4(view, from, e[i]);
        }
    }
}

void main() {
    place p;
    if (!place_find(p)) return;
    row_ref row = row_ref(p.row);
    rows_view view = row.r.view;
    uint at = p.tile * COLS + team_column();
    bool inside = at < view.rows;
    uint64_t keep = rows_keep(view, inside ? at : 0u);
    x = operand_address(row.r.x, p) + keep * type_bytes(TYPE_X);
    y = operand_address(row.r.y, p) + keep * type_bytes(TYPE_Y);
    count = view.count;
    as_log = row.r.kind == SOFTMAX_KIND_LOG;
    if (VALUES > 0u) solve_kept(view, inside);
    else solve_again(view, inside);
}
