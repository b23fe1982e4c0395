/*
 * rows/contract.h: row of kernel contract: out[i] = sum over s of the product of up to 4 operands, each read at
 * sum(index of label l * strides[8 n + l]). Labels 0..7 are the output's, outermost first, 8..15 the summed ones;
 * unused ones have extent 1.
 */
#ifndef BRAID_ROW_CONTRACT_H
#define BRAID_ROW_CONTRACT_H
#define CONTRACT_INPUTS 4
#define CONTRACT_LABELS 8
ROW_BEGIN(contract)
    row_header header;
    operand result;
    operand in_[CONTRACT_INPUTS];
    uint count;  /* elements of the output, < 2^31 */
    uint inputs;
    uint out_extent[CONTRACT_LABELS];
    uint sum_extent[CONTRACT_LABELS];
    uint out_stride[CONTRACT_INPUTS * CONTRACT_LABELS];
    uint sum_stride[CONTRACT_INPUTS * CONTRACT_LABELS];
ROW_END(contract)
#endif
