#version 460
// ReverseSequence: the first lengths[b] steps of every sequence in reverse.
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "lib/flat.glsl"
#include "lib/type.glsl"
#include "rows/make.h"

layout(constant_id = 9) const uint BYTES = 4;
layout(constant_id = 10) const uint TIME_AXIS = 0;

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_reverse r; };

void main() {
    place p;
    if (!place_find(p)) return;
    row_ref row = row_ref(p.row);
    uint64_t x = operand_address(row.r.x, p), lengths = operand_address(row.r.lengths, p);
    uint64_t y = operand_address(row.r.y, p);
    uint inner = row.r.inner, first = row.r.dims[0], second = row.r.dims[1];
    uint steps = TIME_AXIS == 0u ? first : second;
    FLAT_FOR(o, row.r.outputs, p) {
        uint line = o / inner, a = line / second, b = line % second;
        int64_t length = int64_t(memory_u64(lengths + uint64_t(TIME_AXIS == 0u ? b : a) * 8ul).v);
        if (length < 0l || length > int64_t(steps)) {
            place_fail(p);
            length = 0l;
        }
        uint n = uint(length);
        if (TIME_AXIS == 0u && a < n) a = n - 1u - a;
        if (TIME_AXIS == 1u && b < n) b = n - 1u - b;
        store_bits(y, o, BYTES, load_bits(x, (a * second + b) * inner + o % inner, BYTES));
    }
}
