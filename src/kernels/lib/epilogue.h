/*
 * epilogue.h: the part of a row that a fused program needs: a member of the row structs of kernels that run epilogues
 * (lib/program.glsl), filled by map_lower_epilogue (ops/map.h). Included by C and GLSL.
 *
 * Input register 1 + n is operands[n], read at the element
 *     batch / inner * strides[4n] + batch % inner * strides[4n + 1] + row * strides[4n + 2] + col * strides[4n + 3].
 */
#ifndef BRAID_EPILOGUE_H
#define BRAID_EPILOGUE_H

#define EPILOGUE_INPUTS 4

struct epilogue {
    operand operands[EPILOGUE_INPUTS];
    int strides[4 * EPILOGUE_INPUTS];
    float immediates_f[8];
    int64_t immediates_i[8];
    uint inner; /* batches per outer batch, at least 1 */
    uint reserved;
};
#ifndef GL_core_profile
typedef struct epilogue epilogue;
#endif
#endif
