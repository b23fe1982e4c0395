#version 460
// OneHot: values[1] where the index of a line says so, values[0] elsewhere.
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "lib/flat.glsl"
#include "lib/type.glsl"
#include "rows/make.h"

layout(constant_id = 9) const uint INDEX_TYPE = 7;
layout(constant_id = 10) const uint BYTES = 4;

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_one_hot r; };

int64_t index_at(uint64_t indices, uint i) {
    if (!type_is_real(INDEX_TYPE)) return load_int(indices, i, INDEX_TYPE);
    float v = load_float(indices, i, INDEX_TYPE);
    return v > -2147483648.0 && v < 2147483648.0 ? int64_t(int(v)) : 0x7fffffffffffffffl;
}

void main() {
    place p;
    if (!place_find(p)) return;
    row_ref row = row_ref(p.row);
    uint64_t indices = operand_address(row.r.indices, p), values = operand_address(row.r.values, p);
    uint64_t y = operand_address(row.r.y, p);
    divider inner = row.r.inner, depth = row.r.depth;
    FLAT_FOR(o, row.r.outputs, p) {
        uint i = o, at = divide_step(i, inner), outer = divide_step(at, depth);
        int64_t index = index_at(indices, outer * inner.by + i);
        if (index < 0l) index += int64_t(depth.by);
        store_bits(y, o, BYTES, load_bits(values, index == int64_t(at) ? 1u : 0u, BYTES));
    }
}
