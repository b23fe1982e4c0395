#version 460
// loss: negative log likelihood (rows/loss.h). A label out of range fails the lane and counts as class 0.
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "lib/team.glsl"
#include "lib/type.glsl"
#include "rows/loss.h"

layout(constant_id = SPEC_KIND) const uint KIND = 0u;
layout(constant_id = SPEC_TYPE_X) const uint TYPE_X = 1u;
layout(constant_id = SPEC_TYPE_Y) const uint TYPE_Y = 1u;
layout(constant_id = SPEC_TYPE_SCALE) const uint TYPE_WEIGHT = 1u;
layout(constant_id = SPEC_TYPE_LABEL) const uint TYPE_LABEL = 7u;
layout(constant_id = SPEC_STAGE) const uint STAGE = 0u;
layout(constant_id = SPEC_FLAGS) const uint FLAGS = 0u;

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_loss r; };
layout(buffer_reference, std430, buffer_reference_align = 8) buffer pair_ref { vec2 v; };

shared vec2 pool[GROUP];
#define SHUFFLE(x, m) subgroupShuffleXor(x, m)
vec2 join_sum(vec2 a, vec2 b) { return a + b; }
TEAM_FUNCTION(team_sum, vec2, pool, SHUFFLE, join_sum)

row_ref row;

// (loss, weight) of label i.
vec2 loss_of(place p, uint i) {
    int64_t label = load_int(operand_address(row.r.labels, p), i, TYPE_LABEL);
    if ((FLAGS & LOSS_FLAG_IGNORE) != 0u && label == row.r.ignore) return vec2(0.0f);
    if (label < 0l || label >= int64_t(row.r.classes)) {
        place_fail(p);
        label = 0l;
    }
    uint c = uint(label), image = i / row.r.places;
    float weight = 1.0f;
    if ((FLAGS & LOSS_FLAG_WEIGHTS) != 0u) weight = load_float(operand_address(row.r.weights, p), c, TYPE_WEIGHT);
    uint at = (image * row.r.classes + c) * row.r.places + (i - image * row.r.places);
    return vec2(-weight * load_float(operand_address(row.r.scores, p), at, TYPE_X), weight);
}

void main() {
    place p;
    if (!place_find(p)) return;
    row = row_ref(p.row);
    uint first = p.tile * row.r.chunk, id = team_id();
    uint64_t y = operand_address(row.r.y, p), partials = operand_address(row.r.partials, p);
    uint end = STAGE == 2u ? row.r.chunk : min(first + row.r.chunk, row.r.labels_count);
    vec2 sum = vec2(0.0f);
    for (uint i = first + id; i < end; i += GROUP) {
        if (STAGE == 2u) {
            sum += pair_ref(partials + uint64_t(i) * 8u).v;
        } else {
            vec2 one = loss_of(p, i);
            if (STAGE == 0u) store_float(y, i, TYPE_Y, one.x);
            sum += one;
        }
    }
    if (STAGE == 0u) return;
    sum = team_sum(sum);
    if (id != 0u) return;
    if (STAGE == 1u) pair_ref(partials + uint64_t(p.tile) * 8u).v = sum;
    else store_float(y, 0u, TYPE_Y, KIND == 1u ? sum.x / sum.y : sum.x);
}
