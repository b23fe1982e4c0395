/*
 * map: elementwise operators, fusion programs and epilogues.
 *
 *   program   a list of at most 16 instructions over registers (ir/graph.h); opcodes in kernels/lib/map_ops.h
 *       built by    program_step, program_real, program_int    (emit functions, the fuse pass)
 *       run by      program_eval on the host, kernel map or a kernel's epilogue on the device
 *
 * Inputs of real types load as reals, integers and bool as int64 (uint64 wrapped); an instruction reads each operand as
 * the kind that its opcode names, so a program converts explicitly (MAP_FROM_I64, MAP_TO_I64 ...). Integers narrower
 * than 64 bits are kept as their value: arithmetic is followed by a MAP_WRAP_*.
 */
#ifndef BRAID_MAP_H
#define BRAID_MAP_H

#include "kernels/lib/map_ops.h"
#include "ops/op.h"

#define MAP_OPS_ALL(X)                                                                                                 \
    MAP_OPS_EXACT(X)                                                                                                   \
    MAP_OPS_MATH(X) MAP_OPS_TEST(X) MAP_OPS_CAST_R(X) MAP_OPS_CAST_I(X) MAP_OPS_INT(X)

typedef enum map_opcode {
    MAP_END = 0,
#define MAP_OPCODE(name, code, operands, text) MAP_##name = code,
    MAP_OPS_ALL(MAP_OPCODE)
#undef MAP_OPCODE
} map_opcode;

/* Operand kinds of an opcode, one letter each: f or i ("iff"); NULL for an unknown code. And its name. */
const char *map_opcode_operands(int code);
const char *map_opcode_name(int code);
/* Does it produce a real (else an integer). */
bool map_opcode_real(int code);
/* Is it one of the transcendental ones, which no device computes in float64. */
bool map_opcode_math(int code);

/* Appends an instruction; its register, -1 when the program is full or an operand is -1. b, c: 0 where not used. */
int program_step(program *, map_opcode, int a, int b, int c);
/* Register of an immediate, as a real or as an integer; -1 when there are too many. */
int program_real(program *, double);
int program_int(program *, int64_t);
/* Appends the instructions of `tail`, an epilogue on p's result: its register 0 is p's result, its register i > 0
   becomes input n_root + i - 1. False when it does not fit; p is then unusable. */
bool program_append(program *, const program *tail, int n_root);
/* Register that holds the result: that of the last instruction, input 0 without any. */
static inline int program_result(const program *p) {
    return p->n_steps ? PROGRAM_INPUTS + PROGRAM_IMMEDIATES + p->n_steps - 1 : 0;
}
/* Are all operands of existing registers, of the kind that their reader asks for; input_real[i]: input i is real.
 *result_real: the result's kind. */
bool program_check(const program *, int n_inputs, const bool *input_real, bool *result_real);

/* Evaluates a program on the host: register i is in[i] (NULL: not read), broadcast to out's shape; out is allocated
   and typed. Reals are
   rounded to float32 after every instruction, unless an input or the output is float64. */
braid_status program_eval(const program *, int n_in, const tensor *const *in, tensor *out, braid_error *err);

/*
 * Epilogues. A kernel that honours node->epilogue (OP_EPILOGUE) puts `epilogue e;` into its row, includes
 * lib/program.glsl, and its lower calls map_lower_epilogue, which fills the operands and the specialization constants:
 *
 *     TRY(map_lower_epilogue(l, s, offsetof(row_mm, e), rank - 2, rank - 1));
 *
 * The output's dims are cut into batch = [0, row_axis), row = [row_axis, col_axis) and col = [col_axis, rank), each
 * flattened in C order; in the kernel:
 *
 *     epilogue_state s = epilogue_begin(row.r.e, p, batch);
 *     store_float(base, at, OUT_TYPE, epilogue_run(s, value, row, col));
 *
 * A convolution [N, C, H, W] uses (1, 2): batch = image, row = channel, col = pixel. Without an epilogue the call does
 * nothing (the program is empty and epilogue_run is the value). UNSUPPORTED, without touching err: the epilogue does
 * not fit, which the fuse pass avoids by asking map_epilogue_fits first.
 */
braid_status map_lower_epilogue(lowering *, step *, size_t at, int row_axis, int col_axis);
/* extra[i]: type of node input n_root + i. The types must be static. root: element type of the operator's own result,
   a real type. */
bool map_epilogue_fits(const program *, braid_type root, const tensor_type *out, int n_extra,
                       const tensor_type *const *extra, int row_axis, int col_axis);

/* Steps of kernel map for `p` over the node's inputs (register i = input i) into output 0. */
braid_status map_lower_program(lowering *, const program *p);
/* The same with the element strides of every input given, one per dim of the output. */
braid_status map_lower_strided(lowering *, const program *p, int out, const int64_t (*strides)[BRAID_MAX_RANK]);
/* Specialization constants of the program's instructions. */
braid_status map_lower_words(lowering *, step *, const program *);
/* Element strides of `in` walked over out's dims, 0 where broadcast; false when it does not broadcast. */
bool map_strides(const tensor_type *in, const tensor_type *out, int64_t strides[static BRAID_MAX_RANK]);
/* The generic lower and eval of operators with an emit. */
braid_status map_lower(lowering *);
braid_status map_eval(eval *);

#endif
