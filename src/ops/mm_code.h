/*
 * mm_code: what a product kernel is given besides addresses: row, specialization constants, grid. Pure functions, which
 * the lowering and the kernel benchmark share.
 */
#ifndef BRAID_MM_CODE_H
#define BRAID_MM_CODE_H

#include "kernels/abi.h"
#include "kernels/lib/epilogue.h"
#include "kernels/rows/mm.h"
#include "ops/mm.h"

enum { MM_SPECS = 24 };
/* How kernels fetch a matrix of rows (m of A, n of B) by k, see mm.comp. */
enum { LOAD_K4, LOAD_ROW4, LOAD_K, LOAD_ROW, LOAD_IMAGE, LOAD_TRANSPOSED };

typedef struct mm_code {
    const char *kernel;
    row_mm row; /* operands unset */
    uint32_t group;
    uint64_t tiles; /* above UINT32_MAX: too many */
    uint32_t n_spec, spec_ids[MM_SPECS], spec[MM_SPECS];
    uint32_t latency; /* of the step */
    bool folded;  /* the tiles cover all problems */
    bool swapped; /* A's operand takes the problem's B and the other way round */
} mm_code;

/* Drops batch dims of 1 and joins neighbours that every operand walks alike; false when more than three remain. */
bool mm_merge_batch(mm_shape *);
int64_t mm_batches(const mm_shape *);

/* Outermost batch entries that may be folded along n. */
int64_t mm_images(const mm_problem *);
/* What a dispatch of so many problems multiplies: rows, columns and batch entries, folded or not. False: too many. */
typedef struct mm_dims {
    int64_t m, n, entries;
} mm_dims;
bool mm_extent(const mm_problem *, mm_fold, uint32_t problems, mm_dims *out);

uint32_t mm_load_kind(const mm_problem *, const mm_operand *, const int64_t *batch, int64_t rows, int64_t row,
                      int64_t k_stride);
/* Of mv: are A and B exchanged, so that A has the few rows; how the other matrix is fetched. */
bool mm_vector_swapped(const mm_problem *);
uint32_t mm_vector_load(const mm_problem *);

/* The step of mm (cut->bk > 0), mms, mv (cut->vector) or depthwise (cut->depthwise). The problem's batch is merged. */
mm_code mm_encode(const device_traits *, const mm_problem *, mm_cut, uint32_t problems);
/* The step of mmsum after a split mm, and the bytes of partial sums between them. */
mm_code mm_encode_sum(const device_traits *, const mm_problem *, mm_cut, uint32_t problems);
bool mm_partial_bytes(const mm_problem *, mm_cut, uint64_t *out);

/* The constants of a product kernel in words, "64x128x16/8x8 fold n, float32, a k4, b image 1x3x3, whole, stores rows";
   nothing for other kernels. */
void mm_describe(const char *kernel, uint32_t n_spec, const uint32_t *spec_ids, const uint32_t *spec, text *out);

#endif
