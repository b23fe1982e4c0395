#version 460
//! variant narrow
//! variant wide -DWIDE
// sort: the first elements of rows in order (rows/sort.h), by a bitonic network in shared memory. An item is the element
// as an unsigned number whose order is the wanted one, then its index: no two are equal, so the result is stable.
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "lib/team.glsl"
#include "lib/type.glsl"
#include "rows/sort.h"

layout(constant_id = SPEC_TYPE_X) const uint TYPE_X = 1u;
layout(constant_id = SPEC_STAGE) const uint STAGE = 0u;
layout(constant_id = SPEC_FLAGS) const uint FLAGS = 0u;
layout(constant_id = SPEC_SORT_SIZE) const uint SIZE = 64u;
layout(constant_id = SPEC_SORT_ROWS) const uint ROWS = 1u;

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_sort r; };
layout(buffer_reference, std430, buffer_reference_align = 8) buffer item_ref {
    uint64_t key;
    uint at, reserved;
};

const uint NONE = 0xffffffffu;
#ifdef WIDE
shared uint64_t keys[SIZE * ROWS];
shared uint places[SIZE * ROWS];
#else
shared uint64_t items[SIZE * ROWS]; // key << 32 | index
#endif

// Unsigned order = order of the elements; NaN greatest, -0 equals 0.
uint64_t key_of(uint64_t bits) {
    uint64_t key;
#ifdef WIDE
    uint64_t sign = 1ul << 63;
    if ((FLAGS & SORT_FLAG_INTEGER) != 0u) {
        key = (FLAGS & SORT_FLAG_UNSIGNED) != 0u ? bits : uint64_t(int_from_bits(bits, TYPE_X)) ^ sign;
    } else {
        uint64_t size = bits & ~sign;
        if (size == 0ul) bits = 0ul;
        key = (bits & sign) != 0ul ? ~bits : bits | sign;
        if (size > 0x7ff0000000000000ul) key = ~0ul;
    }
    return (FLAGS & SORT_FLAG_LARGEST) != 0u ? ~key : key;
#else
    uint word;
    if ((FLAGS & SORT_FLAG_INTEGER) != 0u) {
        word = uint(int_from_bits(bits, TYPE_X));
        if ((FLAGS & SORT_FLAG_UNSIGNED) == 0u) word ^= 0x80000000u;
    } else {
        word = floatBitsToUint(real_from_bits(bits, TYPE_X));
        uint size = word & 0x7fffffffu;
        if (size == 0u) word = 0u;
        word = (word & 0x80000000u) != 0u ? ~word : word | 0x80000000u;
        if (size > 0x7f800000u) word = NONE;
    }
    return uint64_t((FLAGS & SORT_FLAG_LARGEST) != 0u ? ~word : word);
#endif
}

void put(uint slot, uint64_t key, uint at) {
#ifdef WIDE
    keys[slot] = key;
    places[slot] = at;
#else
    items[slot] = key << 32 | uint64_t(at);
#endif
}
void order(uint a, uint b) {
#ifdef WIDE
    if (keys[a] < keys[b] || (keys[a] == keys[b] && places[a] < places[b])) return;
    uint64_t key = keys[a];
    uint at = places[a];
    put(a, keys[b], places[b]);
    put(b, key, at);
#else
    uint64_t x = items[a], y = items[b];
    if (x < y) return;
    items[a] = y;
    items[b] = x;
#endif
}
uint place_at(uint slot) {
#ifdef WIDE
    return places[slot];
#else
    return uint(items[slot]);
#endif
}
uint64_t key_at(uint slot) {
#ifdef WIDE
    return keys[slot];
#else
    return items[slot] >> 32;
#endif
}

// Pair i of a step is solved by the same invocation in every step, and up to stride SUBGROUP the pairs of a subgroup
// touch the same items: only longer strides need the whole workgroup to wait.
void network() {
    bool wide = true;
    for (uint size = 2u; size <= SIZE; size <<= 1u) {
        for (uint stride = size / 2u; stride > 0u; stride >>= 1u) {
            bool wider = stride > SUBGROUP;
            if (wide || wider) {
                barrier();
            } else {
                subgroupMemoryBarrierShared();
                subgroupBarrier();
            }
            wide = wider;
            for (uint i = team_id(); i < SIZE * ROWS / 2u; i += GROUP) {
                uint low = (i / stride * 2u) * stride + i % stride, high = low + stride;
                bool rising = size == SIZE || (low & size) == 0u;
                if (rising) order(low, high);
                else order(high, low);
            }
        }
    }
    barrier();
}

void main() {
    place p;
    if (!place_find(p)) return;
    row_ref row = row_ref(p.row);
    uint rows = row.r.view.rows, blocks = (rows + ROWS - 1u) / ROWS;
    uint chunk = p.tile / blocks, first_row = (p.tile - chunk * blocks) * ROWS;
    uint first = chunk * row.r.chunk, count = min(row.r.chunk, row.r.items - first);
    uint64_t x = operand_address(row.r.x, p), from = operand_address(row.r.from, p);
    for (uint i = gl_LocalInvocationIndex; i < SIZE * ROWS; i += GROUP) {
        uint at = first_row + i / SIZE, k = i % SIZE;
        uint64_t key = ~0ul;
        uint place_ = NONE;
        if (at < rows && k < count) {
            if ((STAGE & SORT_STAGE_FROM) != 0u) {
                item_ref item = item_ref(from + (uint64_t(at) * row.r.items + first + k) * SORT_ITEM);
                key = item.key;
                place_ = item.at;
            } else {
                uint64_t base = x + rows_keep(row.r.view, at) * type_bytes(TYPE_X);
                key = key_of(load_bits(base, rows_reduce(row.r.view, first + k), type_bytes(TYPE_X)));
                place_ = first + k;
            }
        }
        put(i, key, place_);
    }
    network();
    uint64_t values = operand_address(row.r.values, p), indices = operand_address(row.r.indices, p);
    uint64_t to = operand_address(row.r.to, p);
    for (uint i = gl_LocalInvocationIndex; i < SIZE * ROWS; i += GROUP) {
        uint at = first_row + i / SIZE, k = i % SIZE, place_ = place_at(i);
        if (at >= rows || k >= row.r.keep) continue;
        if ((STAGE & SORT_STAGE_TO) != 0u) {
            item_ref item = item_ref(to + ((uint64_t(at) * row.r.chunks + chunk) * row.r.keep + k) * SORT_ITEM);
            item.key = key_at(i);
            item.at = place_;
            item.reserved = 0u;
            continue;
        }
        uint bytes = type_bytes(TYPE_X), rest = at;
        uint64_t out_ = uint64_t(k) * row.r.out_reduce;
        [[unroll]] for (int d = ROWS_AXES - 1; d >= 0; d--) {
            if (uint(d) < KEEP) {
                uint next = rest / row.r.view.keep_size[d];
                out_ += uint64_t(rest - next * row.r.view.keep_size[d]) * row.r.out_keep[d];
                rest = next;
            }
        }
        uint64_t base = x + rows_keep(row.r.view, at) * bytes;
        if (values != 0ul)
            store_bits(values + out_ * bytes, 0u, bytes, load_bits(base, rows_reduce(row.r.view, place_), bytes));
        if (indices != 0ul) store_int(indices + out_ * 8u, 0u, TYPE_INT64, int64_t(place_));
    }
}
