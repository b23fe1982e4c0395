#version 460
//! variant float
//! variant int -DINTEGER
//! variant double -DFLOAT64
// scan: running sums or products along rows (rows/scan.h). A team takes VALUES elements per invocation at a time, scans
// them and carries the total on; the order depends on the layout alone.
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "lib/team.glsl"
#include "lib/type.glsl"
#include "rows/scan.h"

layout(constant_id = SPEC_KIND) const uint KIND = 0u;
layout(constant_id = SPEC_TYPE_X) const uint TYPE_X = 1u;
layout(constant_id = SPEC_TYPE_Y) const uint TYPE_Y = 1u;
layout(constant_id = SPEC_TYPE_SIDE) const uint TYPE_SIDE = 1u;
layout(constant_id = SPEC_STAGE) const uint STAGE = 0u;
layout(constant_id = SPEC_FLAGS) const uint FLAGS = 0u;

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_scan r; };

#ifdef INTEGER
#define number int64_t
#define LOAD load_int
#define STORE store_int
#define SHUFFLE(x, lane) int64_t(packUint2x32(subgroupShuffle(unpackUint2x32(uint64_t(x)), lane)))
#else
#define number real
#define LOAD load_real
#define STORE store_real
#ifdef FLOAT64
#define SHUFFLE(x, lane) packDouble2x32(subgroupShuffle(unpackDouble2x32(x), lane))
#else
#define SHUFFLE(x, lane) subgroupShuffle(x, lane)
#endif
#endif

shared number pool[GROUP];
#define UNIT (KIND == 1u ? number(1) : number(0))

number join(number a, number b) { return KIND == 1u ? a * b : a + b; }

// What the members before this one hold together; *total: what all hold.
number team_before(number v, out number total) {
    uint lane = gl_SubgroupInvocationID, place_ = lane % SPAN;
    number sum = v;
    for (uint m = 1u; m < SPAN; m <<= 1u) {
        number left = SHUFFLE(sum, lane >= m ? lane - m : 0u);
        if (place_ >= m) sum = join(left, sum);
    }
    number before = SHUFFLE(sum, lane > 0u ? lane - 1u : 0u);
    if (place_ == 0u) before = UNIT;
    total = SHUFFLE(sum, lane - place_ + SPAN - 1u);
    if (TEAM_SUBGROUPS > 1u) {
        barrier();
        if (lane == SUBGROUP - 1u) pool[gl_SubgroupID] = sum;
        barrier();
        uint first = team_id() / TEAM * TEAM_SUBGROUPS, mine = gl_SubgroupID - first;
        number head = UNIT;
        total = UNIT;
        for (uint i = 0u; i < TEAM_SUBGROUPS; i++) {
            if (i == mine) head = total;
            total = join(total, pool[first + i]);
        }
        before = join(head, before);
    }
    return before;
}

void main() {
    place p;
    if (!place_find(p)) return;
    row_ref row = row_ref(p.row);
    uint rows = row.r.view.rows, count = row.r.view.count, blocks = (rows + COLS - 1u) / COLS;
    uint chunk = p.tile / blocks, at = (p.tile - chunk * blocks) * COLS + team_column();
    bool inside = at < rows;
    uint first = chunk * row.r.chunk, end = min(first + row.r.chunk, count);
    uint64_t keep = rows_keep(row.r.view, inside ? at : 0u);
    uint64_t x = operand_address(row.r.x, p) + keep * type_bytes(TYPE_X), y = operand_address(row.r.y, p);
    number carry = UNIT;
    if (STAGE == 2u && inside) carry = LOAD(operand_address(row.r.offsets, p), chunk * rows + at, TYPE_SIDE);
    if (STAGE != 1u) y += keep * type_bytes(TYPE_Y);
    for (uint base = first; base < end; base += TEAM * VALUES) {
        uint k0 = base + team_member() * VALUES;
        number v[VALUES], sum = UNIT, total;
        [[unroll]] for (uint i = 0u; i < VALUES; i++) {
            uint k = k0 + i;
            v[i] = UNIT;
            if (inside && k < end) {
                uint from = (FLAGS & SCAN_FLAG_REVERSE) != 0u ? count - 1u - k : k;
                v[i] = LOAD(x, rows_reduce(row.r.view, from), TYPE_X);
            }
            sum = join(sum, v[i]);
        }
        number acc = join(carry, team_before(sum, total));
        if (STAGE != 1u) {
            [[unroll]] for (uint i = 0u; i < VALUES; i++) {
                uint k = k0 + i;
                number next = join(acc, v[i]);
                if (inside && k < end) {
                    uint to = (FLAGS & SCAN_FLAG_REVERSE) != 0u ? count - 1u - k : k;
                    STORE(y, rows_reduce(row.r.view, to), TYPE_Y, (FLAGS & SCAN_FLAG_EXCLUSIVE) != 0u ? acc : next);
                }
                acc = next;
            }
        }
        carry = join(carry, total);
    }
    if (STAGE == 1u && inside && team_member() == 0u) STORE(y, chunk * rows + at, TYPE_Y, carry);
}
