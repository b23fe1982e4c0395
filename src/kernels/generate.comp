#version 460
// Elements by position: one value, a diagonal, or a triangle of the input.
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "lib/flat.glsl"
#include "lib/type.glsl"
#include "rows/make.h"

layout(constant_id = 9) const uint MODE = 0;
layout(constant_id = 10) const uint BYTES = 4;

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_generate r; };

void main() {
    place p;
    if (!place_find(p)) return;
    row_ref row = row_ref(p.row);
    uint64_t x = operand_address(row.r.x, p), y = operand_address(row.r.y, p);
    uint64_t shift = operand_address(row.r.shift, p);
    int64_t k = shift != 0ul ? int64_t(memory_u64(shift).v) : row.r.k;
    FLAT_FOR(o, row.r.outputs, p) {
        uint64_t v = row.r.on;
        if (MODE != GENERATE_FILL) {
            uint column = o, line = divide_step(column, row.r.columns);
            divide_step(line, row.r.rows);
            int64_t ahead = int64_t(column) - int64_t(line);
            if (MODE == GENERATE_EYE) {
                v = ahead == k ? row.r.on : row.r.off;
            } else {
                bool keeps = MODE == GENERATE_UPPER ? ahead >= k : ahead <= k;
                v = row.r.off;
                if (keeps) v = load_bits(x, o, BYTES);
            }
        }
        store_bits(y, o, BYTES, v);
    }
}
