#version 460
//! variant real
//! variant fused -DEPILOGUE
// mv.comp: product with few rows (m <= 8) for GPUs: every element of B is read once, and reading it is the cost.
//
// A workgroup computes all TM rows of BN columns. Its invocations cover CHUNKS chunks of k times BN columns, TN each, and
// every invocation walks its chunk; the chunks' sums meet in shared memory and are added in ascending order. More than
// CHUNKS chunks take several passes.
//   LOAD_B 0, 2 (k contiguous): a step brings BK elements of every chunk and column through shared memory, neighbours
//     fetching along k; the next step's elements travel to registers meanwhile.
//   LOAD_B 1, 3 (n contiguous): neighbours take neighbouring columns straight from memory, BK elements in flight.
// tile = batch * tiles_n + tile_n. The workgroup has CHUNKS * BN / TN invocations.
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "lib/mm.glsl"

layout(constant_id = 9) const uint CHUNKS = 32u;
layout(constant_id = 10) const uint BN = 4u;
layout(constant_id = 11) const uint BK = 32u; // a multiple of 4
layout(constant_id = 12) const uint TM = 1u;  // m
layout(constant_id = 13) const uint TN = 1u;  // 4 where LOAD_B is 1
// How elements are fetched, as in mm.comp; of A 0 (one vector of four k) or 2 (any strides).
layout(constant_id = 14) const uint LOAD_A = 2u;
layout(constant_id = 15) const uint LOAD_B = 2u;

const uint THREADS = CHUNKS * (BN / TN);
const bool STAGED = LOAD_B == 0u || LOAD_B == 2u;
const uint PITCH = BK / 4u + 1u; // vectors of a chunk's step in shared memory: odd, so chunks lie in different banks
const uint UNITS_A = STAGED ? CHUNKS * TM * (BK / 4u) : 1u, UNITS_B = STAGED ? CHUNKS * BN * (BK / 4u) : 1u;
const uint FETCH_A = (UNITS_A + THREADS - 1u) / THREADS, FETCH_B = (UNITS_B + THREADS - 1u) / THREADS;
const uint FINISHED = (TM * BN + THREADS - 1u) / THREADS; // elements that an invocation finishes
shared elem4 steps_a[STAGED ? CHUNKS * TM * PITCH : 1u]; // [row][chunk]
shared elem4 steps_b[STAGED ? CHUNKS * BN * PITCH : 1u]; // [column][chunk]
shared elem parts[CHUNKS * TM * BN];                     // [chunk][row][column]

struct source {
    uint64_t base;
    uint rows, row_stride, k_stride;
};

// Four k of a row; 0 from k_end on.
elem4 fetch(const uint load, source s, uint r, uint k, uint k_end) {
    elem4 v = elem4(0);
    if (load == 0u) {
        if (k < k_end) v = elem_load4(s.base, r * s.row_stride + k);
    } else {
        [[unroll]] for (uint i = 0u; i < 4u; i++)
            if (k + i < k_end) v[i] = elem_load(s.base, r * s.row_stride + (k + i) * s.k_stride);
    }
    return v;
}

elem sums[TM * TN];
elem4 next_a[FETCH_A], next_b[FETCH_B];

// Vector u of a step that begins `at` elements into its chunk, chunk `first` being the pass' first.
elem4 fetch_unit(const uint load, source s, uint u, uint row0, uint first, uint at, uint chunk, uint k_count) {
    uint v = u % (BK / 4u), run = u / (BK / 4u), r = row0 + run / CHUNKS, begin = (first + run % CHUNKS) * chunk;
    uint k_end = r < s.rows ? min(begin + chunk, k_count) : 0u;
    return fetch(load, s, r, begin + at + v * 4u, k_end);
}

void fetch_step(source a, source b, uint n0, uint first, uint at, uint chunk, uint k_count) {
    uint id = gl_LocalInvocationIndex;
    [[unroll]] for (uint i = 0u; i < FETCH_B; i++)
        next_b[i] = fetch_unit(LOAD_B, b, id + i * THREADS, n0, first, at, chunk, k_count);
    [[unroll]] for (uint i = 0u; i < FETCH_A; i++)
        next_a[i] = fetch_unit(LOAD_A, a, id + i * THREADS, 0u, first, at, chunk, k_count);
}

void put_step() {
    uint id = gl_LocalInvocationIndex;
    [[unroll]] for (uint i = 0u; i < FETCH_B; i++) {
        uint u = id + i * THREADS;
        if (u < UNITS_B) steps_b[u / (BK / 4u) * PITCH + u % (BK / 4u)] = next_b[i];
    }
    [[unroll]] for (uint i = 0u; i < FETCH_A; i++) {
        uint u = id + i * THREADS;
        if (u < UNITS_A) steps_a[u / (BK / 4u) * PITCH + u % (BK / 4u)] = next_a[i];
    }
}

// The invocation's sums over its chunk of a pass, through shared memory.
void walk_staged(source a, source b, uint n0, uint first, uint chunk, uint k_count) {
    uint run = gl_LocalInvocationIndex, length = min(chunk, k_count);
    fetch_step(a, b, n0, first, 0u, chunk, k_count);
    for (uint at = 0u; at < length; at += BK) {
        barrier();
        put_step();
        barrier();
        if (at + BK < length) fetch_step(a, b, n0, first, at + BK, chunk, k_count);
        [[unroll]] for (uint v = 0u; v < BK / 4u; v++) {
            elem4 fb = steps_b[run * PITCH + v];
            [[unroll]] for (uint m = 0u; m < TM; m++) {
                elem4 fa = steps_a[(m * CHUNKS + run % CHUNKS) * PITCH + v];
                [[unroll]] for (uint i = 0u; i < 4u; i++) sums[m] = mac(fa[i], fb[i], sums[m]);
            }
        }
    }
}

elem4 rows_b[BK]; // TN columns of BK k

void fetch_rows(source b, uint n, uint k, uint k_end) {
    [[unroll]] for (uint i = 0u; i < BK; i++) {
        rows_b[i] = elem4(0);
        if (k + i < k_end) {
            if (TN == 4u) rows_b[i] = elem_load4(b.base, n + (k + i) * b.k_stride);
            else rows_b[i].x = elem_load(b.base, n * b.row_stride + (k + i) * b.k_stride);
        }
    }
}

// The same straight from memory.
void walk_direct(source a, source b, uint n, uint begin, uint k_end) {
    if (n >= b.rows) return;
    fetch_rows(b, n, begin, k_end);
    for (uint k = begin; k < k_end; k += BK) {
        elem4 fb[BK];
        [[unroll]] for (uint i = 0u; i < BK; i++) fb[i] = rows_b[i];
        fetch_rows(b, n, k + BK, k_end);
        [[unroll]] for (uint v = 0u; v < BK / 4u; v++) {
            [[unroll]] for (uint m = 0u; m < TM; m++) {
                elem4 fa = fetch(LOAD_A, a, m, k + v * 4u, k_end);
                [[unroll]] for (uint i = 0u; i < 4u; i++)
                    [[unroll]] for (uint j = 0u; j < TN; j++)
                        sums[m * TN + j] = mac(fa[i], fb[v * 4u + i][j], sums[m * TN + j]);
            }
        }
    }
}

void main() {
    place p;
    if (!place_find(p)) return;
    row_ref row = row_ref(p.row);
    uint id = gl_LocalInvocationIndex, entry = p.tile / row.r.tiles_n, n0 = p.tile % row.r.tiles_n * BN;
    source a = source(operand_address(row.r.a, p) + batch_offset(row.r.a_batch, entry, row.r.batch) * type_bytes(TYPE),
                      TM, row.r.a_m, row.r.a_k);
    source b = source(operand_address(row.r.b, p) + batch_offset(row.r.b_batch, entry, row.r.batch) * type_bytes(TYPE),
                      row.r.n, row.r.b_n, row.r.b_k);
    uint k_count = row.r.k, chunk = row.r.chunk, chunks = (k_count - 1u) / chunk + 1u;
    uint column = STAGED ? id / CHUNKS : id % (BN / TN) * TN, walker = STAGED ? id % CHUNKS : id / (BN / TN);
    elem total[FINISHED];
    [[unroll]] for (uint i = 0u; i < FINISHED; i++) total[i] = elem(0);
    for (uint first = 0u; first < chunks; first += CHUNKS) {
        [[unroll]] for (uint i = 0u; i < TM * TN; i++) sums[i] = elem(0);
        if (STAGED) {
            walk_staged(a, b, n0, first, chunk, k_count);
        } else {
            uint begin = (first + walker) * chunk;
            walk_direct(a, b, n0 + column, begin, min(begin + chunk, k_count));
            if (first != 0u) barrier();
        }
        [[unroll]] for (uint m = 0u; m < TM; m++)
            [[unroll]] for (uint j = 0u; j < TN; j++) parts[(walker * TM + m) * BN + column + j] = sums[m * TN + j];
        barrier();
        [[unroll]] for (uint i = 0u; i < FINISHED; i++) {
            uint at = id + i * THREADS;
            if (at >= TM * BN) continue;
            if (MODE == MODE_WHOLE) total[i] = parts[at];
            else [[unroll]] for (uint c = 0u; c < CHUNKS; c++) total[i] += parts[c * TM * BN + at]; // missing ones are 0
        }
    }
    finish_state s = finish_begin(row, p, entry);
    [[unroll]] for (uint i = 0u; i < FINISHED; i++) {
        uint at = id + i * THREADS, n = n0 + at % BN;
        if (at < TM * BN && n < row.r.n) finish(s, total[i], at / BN, n);
    }
}
