// TensorScatter: a cache with new positions written from each sample's index on. See rows/scatter.h.
//! variant b1 -DELEM_BYTES=1
//! variant b2 -DELEM_BYTES=2
//! variant b4 -DELEM_BYTES=4
//! variant b8 -DELEM_BYTES=8
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "rows/scatter.h"
#include "lib/divide.h"

layout(constant_id = SCATTER_SPEC_ITEMS) const uint ITEMS = 1u;
layout(constant_id = SCATTER_SPEC_WIDE) const uint WIDE = 1u;
layout(constant_id = SCATTER_SPEC_UNIT) const uint UNIT = 1u;
layout(constant_id = SCATTER_SPEC_CIRCULAR) const uint CIRCULAR = 0u;

#include "lib/batch.glsl"
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_tensor_scatter r; };

row_tensor_scatter r; // the row in registers: through the reference it would be read again after every store

// First position written in a sample, in [0, cache).
uint write_start(uint64_t index, uint which, uint cache, uint fresh, inout bool bad) {
    if (index == 0ul) return 0u;
    int64_t at = WIDE != 0u ? index64_ref(index).v[which] : int64_t(index32_ref(index).v[which]);
    if (CIRCULAR != 0u) {
        int64_t n = int64_t(cache); // % is defined for positive numbers only
        return uint(at < 0l ? n - 1l - (-1l - at) % n : at % n);
    }
    if (at < 0l || at + int64_t(fresh) > int64_t(cache)) {
        bad = true;
        return 0u;
    }
    return uint(at);
}

void main() {
    place p;
    if (!place_find(p)) return;
    r = row_ref(p.row).r;
    uint64_t past = operand_address(r.past, p), update = operand_address(r.update, p);
    uint64_t target = operand_address(r.target, p), index = operand_address(r.index, p);
    bool wide = element_aligned(past | update, target), bad = false;
    uint inner = r.inner, cache = r.cache, fresh = r.fresh;
    for (uint item = 0u; item < ITEMS; item += BATCH) {
        uint64_t from[BATCH], to[BATCH];
        [[unroll]] for (uint k = 0u; k < BATCH; k++) {
            uint i = batch_index(p.tile, item + k);
            to[k] = 0ul;
            if (k >= BATCH_USED || i >= r.count) continue;
            uint line = divide(i, r.inner_magic, r.inner_shift);
            uint run = divide(line, r.cache_magic, r.cache_shift), position = line - run * cache;
            uint start = write_start(index, run / r.rows, cache, fresh, bad);
            uint back = position >= start ? position - start : position + (CIRCULAR != 0u ? cache - start : cache);
            uint updated = (run * fresh + back) * inner + (i - line * inner);
            from[k] = back < fresh ? element_at(update, updated * UNIT) : element_at(past, i * UNIT);
            to[k] = element_at(target, i * UNIT);
        }
        batch_copy(wide, from, to);
    }
    if (bad) place_fail(p);
}
