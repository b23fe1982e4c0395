// abi.glsl: entry of every kernel. After including it a kernel does:
//
//     void main() {
//         place p;
//         if (!place_find(p)) return;                 // uniform per workgroup
//         row_ref row = row_ref(p.row);               // buffer_reference of its row struct
//         uint64_t out_base = operand_address(row.r.out, p);
//         ... p.tile is the tile within the row
//     }
#ifndef ABI_GLSL
#define ABI_GLSL
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int32 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_spirv_intrinsics : require
#include "abi.h"

// SignedZeroInfNanPreserve: without it NaN * 0 may be 0, and x < 0 ? 0 : x may become a maximum that drops NaN.
spirv_execution_mode(capabilities = [4466], 4461, 32);

layout(local_size_x_id = 0) in;

layout(push_constant) uniform push_constants {
    uint64_t rows;
    uint64_t run;
    uint row_bytes;
    uint n_rows;
    uint tiles;
    uint problem_base;
    uint tile_base;
    uint copies;
    uint row_tiles;
} push;

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer run_ref {
    uint lanes;
    uint reserved;
    uint64_t lane_map;
    uint64_t errors;
    binding bindings[];
};
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer header_ref { row_header h; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer lane_map_ref { uint lane[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer address_ref { uint64_t address[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer error_ref { uint word[]; };

struct place {
    uint64_t row; // address of the row
    uint tile;    // tile within the row
    uint problem; // counts those of this run
    uint lane, copy;
};

// Problems of this step in this run.
uint place_problems() {
    uint copies = push.copies & ~PUSH_ONCE;
    return (push.copies & PUSH_ONCE) != 0u ? copies : copies * run_ref(push.run).lanes;
}
// Sets the problem, for kernels that walk several.
void place_set_problem(inout place p, uint problem) {
    uint copies = push.copies & ~PUSH_ONCE;
    p.problem = problem;
    p.lane = copies == 1u ? problem : problem / copies;
    p.copy = copies == 1u ? 0u : problem - p.lane * copies;
    uint64_t map = run_ref(push.run).lane_map;
    if (map != 0ul) p.lane = lane_map_ref(map).lane[p.lane];
}

// Which row, tile and problem this workgroup solves; false when it has nothing to do.
bool place_find(out place p) {
    uint tile = gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x + push.tile_base;
    uint z = gl_WorkGroupID.z + push.problem_base;
    p.row = push.rows;
    p.tile = tile;
    p.problem = p.lane = p.copy = 0u;
    if (tile >= push.tiles || z >= place_problems()) return false;
    place_set_problem(p, z);
    if (push.row_tiles != 0u) {
        uint row = tile / push.row_tiles;
        p.row = push.rows + uint64_t(row) * push.row_bytes;
        p.tile = tile - row * push.row_tiles;
    } else if (push.n_rows > 1u) {
        uint low = 0u, high = push.n_rows - 1u; // last row whose first_tile <= tile
        while (low < high) {
            uint middle = (low + high + 1u) / 2u;
            if (header_ref(push.rows + uint64_t(middle) * push.row_bytes).h.first_tile <= tile) low = middle;
            else high = middle - 1u;
        }
        p.row = push.rows + uint64_t(low) * push.row_bytes;
        p.tile = tile - header_ref(p.row).h.first_tile;
    }
    return true;
}

// Address of an operand's first byte for this problem; 0 when absent.
uint64_t operand_address(operand o, place p) {
    if (o.kind == OPERAND_NONE) return 0ul;
    uint64_t at = o.base + uint64_t(p.lane) * o.lane_stride + uint64_t(p.copy) * o.copy_stride;
    if (o.kind == OPERAND_DIRECT) return at;
    binding b = run_ref(push.run).bindings[o.index];
    if (o.kind == OPERAND_BINDING) return b.address + uint64_t(p.lane) * b.lane_stride + at;
    return address_ref(b.address).address[p.lane] + o.base + uint64_t(p.copy) * o.copy_stride;
}

// Marks this lane as failed with an index out of range in this row's node; the caller clamps and goes on. What is done
// once for all lanes has a word of its own behind theirs: lane 0 may fail by itself.
void place_fail(place p) {
    uint64_t errors = run_ref(push.run).errors;
    uint word = (push.copies & PUSH_ONCE) != 0u ? run_ref(push.run).lanes : p.lane;
    if (errors != 0ul) atomicMin(error_ref(errors).word[word], header_ref(p.row).h.node + p.copy);
}
#endif
