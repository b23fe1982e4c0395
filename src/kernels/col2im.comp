#version 460
// Col2Im as a gather: every pixel adds the columns of the blocks that cover it, in the order of the block's taps.
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "lib/flat.glsl"
#include "lib/type.glsl"
#include "rows/col2im.h"

layout(constant_id = 9) const uint TYPE = 1;

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer row_ref { row_col2im r; };

// Block along axis i whose tap k lies on pixel `at`; -1: none.
int block_at(row_ref row, int i, int at, int k) {
    int v = at + row.r.pad[i] - k * row.r.dilation[i];
    if (v < 0 || v % row.r.stride[i] != 0) return -1;
    v /= row.r.stride[i];
    return v < row.r.steps[i] ? v : -1;
}

void main() {
    place p;
    if (!place_find(p)) return;
    row_ref row = row_ref(p.row);
    uint64_t x = operand_address(row.r.x, p), y = operand_address(row.r.y, p);
    int blocks = row.r.steps[0] * row.r.steps[1] * row.r.steps[2];
    FLAT_FOR(o, row.r.outputs, p) {
        int w = int(o % row.r.image[2]), h = int(o / row.r.image[2] % row.r.image[1]);
        uint rest = o / row.r.image[2] / row.r.image[1], plane = rest / row.r.image[0];
        int d = int(rest % row.r.image[0]);
        float sum = 0.0;
        int64_t whole = 0l;
        for (int a = 0; a < row.r.block[0]; a++) {
            int sa = block_at(row, 0, d, a);
            if (sa < 0) continue;
            for (int b = 0; b < row.r.block[1]; b++) {
                int sb = block_at(row, 1, h, b);
                if (sb < 0) continue;
                for (int c = 0; c < row.r.block[2]; c++) {
                    int sc = block_at(row, 2, w, c);
                    if (sc < 0) continue;
                    uint tap = uint((a * row.r.block[1] + b) * row.r.block[2] + c);
                    uint taps = uint(row.r.block[0] * row.r.block[1] * row.r.block[2]);
                    uint column = uint((sa * row.r.steps[1] + sb) * row.r.steps[2] + sc);
                    uint at = (plane * taps + tap) * uint(blocks) + column;
                    if (type_is_real(TYPE)) sum += load_float(x, at, TYPE);
                    else whole += load_int(x, at, TYPE);
                }
            }
        }
        if (type_is_real(TYPE)) store_float(y, o, TYPE, sum);
        else store_int(y, o, TYPE, whole);
    }
}
