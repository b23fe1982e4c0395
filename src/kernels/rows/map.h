/*
 * rows/map.h: the row of kernel map. One output, up to 8 broadcast inputs, one fusion program.
 *
 * The element space is dims[0..rank) with the last dim fastest, collapsed by the host so that neighbours that every
 * operand walks alike are one. Input n is read at sum(coordinate * strides[8n + dim]). The output is contiguous.
 */
#ifndef BRAID_ROW_MAP_H
#define BRAID_ROW_MAP_H
#define MAP_DIMS 8

/* How an input is walked; specialization constant 16 + n. */
#define MAP_ABSENT 0u
#define MAP_DENSE 1u   /* element i of the output reads element i */
#define MAP_SCALAR 2u  /* one element */
#define MAP_STRIDED 3u /* by strides, element by element */
#define MAP_LINE 4u    /* with INNER: a chunk is contiguous, its offset a multiple of WIDTH */
#define MAP_UNIFORM 5u /* with INNER: a chunk reads one element */

ROW_BEGIN(map)
    row_header header;
    operand result;
    operand in_[8];
    float immediates_f[8];
    int64_t immediates_i[8];
    uint64_t immediates_d[8]; /* bits of doubles, for float64 */
    uint count;          /* elements, < 2^31 */
    uint reserved;
    uint dims[MAP_DIMS]; /* right-aligned: the last is dims[7] */
    int strides[8 * MAP_DIMS];
ROW_END(map)
#endif
