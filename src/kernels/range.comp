#version 460
// Range: start + i * delta.
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "lib/flat.glsl"
#include "lib/type.glsl"
#include "rows/make.h"

layout(constant_id = 9) const uint TYPE = 1;

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_range r; };

void main() {
    place p;
    if (!place_find(p)) return;
    row_ref row = row_ref(p.row);
    uint64_t start = operand_address(row.r.start, p), delta = operand_address(row.r.delta, p);
    uint64_t y = operand_address(row.r.y, p);
    FLAT_FOR(o, row.r.outputs, p) {
        if (type_is_real(TYPE)) {
            float first = load_float(start, 0u, TYPE), by = load_float(delta, 0u, TYPE);
            store_float(y, o, TYPE, fma(float(o), by, first));
        } else {
            store_int(y, o, TYPE, load_int(start, 0u, TYPE) + int64_t(o) * load_int(delta, 0u, TYPE));
        }
    }
}
