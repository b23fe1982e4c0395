#version 460
//! variant float
//! variant int -DINTEGER
//! variant double -DFLOAT64
// scan_any: running sums or products along an axis that is known only now (rows/scan_any.h). Constants as in scan.
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "lib/type.glsl"
#include "rows/scan_any.h"
#include "rows/scan.h"

layout(constant_id = SPEC_GROUP) const uint GROUP = 64u;
layout(constant_id = SPEC_KIND) const uint KIND = 0u;
layout(constant_id = SPEC_TYPE_X) const uint TYPE_X = 1u;
layout(constant_id = SPEC_TYPE_SIDE) const uint TYPE_AXIS = 7u;
layout(constant_id = SPEC_FLAGS) const uint FLAGS = 0u;

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_scan_any r; };

#ifdef INTEGER
#define number int64_t
#define LOAD load_int
#define STORE store_int
#else
#define number real
#define LOAD load_real
#define STORE store_real
#endif

void main() {
    place p;
    if (!place_find(p)) return;
    row_ref row = row_ref(p.row);
    int rank = int(row.r.rank);
    int64_t named = load_int(operand_address(row.r.axis, p), 0u, TYPE_AXIS);
    if (named < -int64_t(rank) || named >= int64_t(rank)) {
        place_fail(p);
        return;
    }
    int axis = int(named) + (named < 0l ? rank : 0);
    uint inner = 1u, length = row.r.dims[axis];
    for (int d = axis + 1; d < rank; d++) inner *= row.r.dims[d];
    uint line = p.tile * GROUP + gl_LocalInvocationIndex;
    if (line >= row.r.elements / length) return;
    uint64_t x = operand_address(row.r.x, p), y = operand_address(row.r.y, p);
    uint base = line / inner * length * inner + line % inner;
    bool reverse = (FLAGS & SCAN_FLAG_REVERSE) != 0u, exclusive = (FLAGS & SCAN_FLAG_EXCLUSIVE) != 0u;
    number acc = KIND == 1u ? number(1) : number(0);
    for (uint k = 0u; k < length; k++) {
        uint at = base + (reverse ? length - 1u - k : k) * inner;
        number v = LOAD(x, at, TYPE_X), next = KIND == 1u ? acc * v : acc + v;
        STORE(y, at, TYPE_X, exclusive ? acc : next);
        acc = next;
    }
}
