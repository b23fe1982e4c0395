#version 460
// word: to[i] = multiply * from[i] + add on 32-bit words. See rows/word.h.
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "rows/word.h"

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_word r; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer words_ref { uint word[]; };

void main() {
    place p;
    if (!place_find(p)) return;
    row_word r = row_ref(p.row).r;
    words_ref to = words_ref(operand_address(r.to, p));
    uint64_t from = operand_address(r.from, p);
    uint first = p.tile * r.per_tile, end = min(r.n, first + r.per_tile);
    for (uint i = first + gl_LocalInvocationID.x; i < end; i += gl_WorkGroupSize.x) {
        uint v = from == 0ul ? 0u : words_ref(from).word[i];
        to.word[i] = r.multiply * v + r.add;
    }
}
