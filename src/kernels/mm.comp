#version 460
//! variant real
//! variant fused -DEPILOGUE
//! variant int -DINTEGER
//! variant f64 -DFLOAT64
// mm.comp: tiled product for GPUs: batched matrix product and implicit-GEMM convolution.
//
// A workgroup computes a BM x BN tile of one batch entry. Per step of BK it stages A and B through shared memory,
// both stored k-major so that an invocation reads its TM rows and TN columns as 16-byte vectors; the next step's
// elements travel to registers meanwhile. 32 invocations cover 4*TM x 8*TN of the tile.
// tile = ((split * entries + entry) * tiles_m + tile_m) * tiles_n + tile_n, entries being those of the batch that are
// not folded. A folded operand is not fetched as 2; an invocation of loads 1, 3 and 4 has the same rows in every step.
// BM is a multiple of 4*TM, BN of 8*TN, TM of 2, TN of 4, BK and chunk of 4, chunk of BK unless there is one chunk.
#extension GL_GOOGLE_include_directive : require
#include "lib/abi.glsl"
#include "lib/mm.glsl"

layout(constant_id = 9) const uint BM = 64u;
layout(constant_id = 10) const uint BN = 64u;
layout(constant_id = 11) const uint BK = 16u;
layout(constant_id = 12) const uint TM = 4u;
layout(constant_id = 13) const uint TN = 4u;
// How four elements are fetched at once (row: m of A, n of B):
//   0: one vector of four k          needs k contiguous, k % 4 == 0, aligned
//   1: one vector of four rows       needs rows contiguous, rows % 4 == 0, aligned
//   2: four rows of one k, neighbours walk k       any strides, fast where k is contiguous
//   3: four k of one row, neighbours walk rows     any strides, fast where rows are contiguous
//   4: as 3, B being a convolution's image; a multiple of BN invocations
layout(constant_id = 14) const uint LOAD_A = 2u;
layout(constant_id = 15) const uint LOAD_B = 3u;
layout(constant_id = 20) const uint STAGES = 2u; // copies of the shared tiles

// How sums are written:
//   0: one by one
//   1: four columns at once      needs out contiguous along n, n % 4 == 0, aligned to four elements
//   2: through shared memory     THREADS a multiple of BN and of 32; folded products always
layout(constant_id = 21) const uint STORE = 0u;

// The fetching code stands once, in a loop of several exits, or twice, before and in the loop: 4 % faster on an H200.
// Its driver (580) takes half a minute for twice that code where an invocation stages 64 sums, and a second for once;
// where it stages 32 that are not all of a result, 5 seconds and a half.
const bool FETCH_ONCE = STORE == 2u && TM * TN >= (MODE == MODE_SPLIT ? 32u : 64u);

const uint THREADS = (BM / TM) * (BN / TN);
const uint UNITS_A = BM * BK / 4u, UNITS_B = BN * BK / 4u; // fetches of a tile
const uint FETCH_A = (UNITS_A + THREADS - 1u) / THREADS, FETCH_B = (UNITS_B + THREADS - 1u) / THREADS;
const uint PITCH_A = BM / 4u + 1u, PITCH_B = BN / 4u + 1u; // of a k in shared memory
const uint TILES_B = STAGES * BK * PITCH_A; // where B's begin
shared elem4 tiles[TILES_B + STAGES * BK * PITCH_B];

struct source {
    uint64_t base;
    uint rows, row_stride, k_stride;
};
// The output pixel an invocation fetches for.
struct pixel {
    int d, h, w; // first input position it sees
    int in_d, in_h, in_w;
    int dilation_d, dilation_h, dilation_w;
    int at; // of that position in a channel; outside it may be negative
};

// Of every k of this step and of the next, where B is an image: how far its element is from an invocation's first
// (offset, and positions along d, h and w). A few invocations work out what all would have to.
shared ivec4 taps[LOAD_B == 4u ? 2u * BK : 1u];
uint taps_of(uint k0) { return k0 / BK % 2u * BK; }

void put_taps(source s, pixel x, uint k0, uint k_end) {
    uint id = gl_LocalInvocationIndex, k = k0 + id;
    if (LOAD_B != 4u || id >= BK) return;
    uint kw = k % KERNEL_W, rest = k / KERNEL_W, kh = rest % KERNEL_H;
    rest /= KERNEL_H;
    uint kd = rest % KERNEL_D, c = rest / KERNEL_D;
    int d = int(kd) * x.dilation_d, h = int(kh) * x.dilation_h, w = int(kw) * x.dilation_w;
    int offset = int(c * s.k_stride) + (d * x.in_h + h) * x.in_w + w;
    taps[taps_of(k0) + id] = ivec4(offset, d, k < k_end ? h : 1 << 30, w);
}

elem image_load(source s, pixel x, ivec4 tap) {
    int d = x.d + tap.y, h = x.h + tap.z, w = x.w + tap.w;
    if (uint(d) >= uint(x.in_d) || uint(h) >= uint(x.in_h) || uint(w) >= uint(x.in_w)) return elem(0);
    return elem_load(s.base, uint(x.at + tap.x));
}

// Fetches unit number u of the tile whose corner is (row0, k0); outside of the matrix 0.
elem4 fetch(const uint load, const uint width, source s, pixel x, uint u, uint row0, uint k0, uint k_end) {
    elem4 v = elem4(0);
    if (load == 0u) {
        uint k = k0 + u % (BK / 4u) * 4u, r = row0 + u / (BK / 4u);
        if (r < s.rows && k < k_end) v = elem_load4(s.base, r * s.row_stride + k);
    } else if (load == 1u) {
        uint r = row0 + u % (width / 4u) * 4u, k = k0 + u / (width / 4u);
        if (r < s.rows && k < k_end) v = elem_load4(s.base, r * s.row_stride + k * s.k_stride);
    } else if (load == 2u) {
        uint k = k0 + u % BK, r = row0 + u / BK * 4u;
        [[unroll]] for (uint i = 0u; i < 4u; i++)
            if (r + i < s.rows && k < k_end) v[i] = elem_load(s.base, (r + i) * s.row_stride + k * s.k_stride);
    } else {
        uint r = row0 + u % width, k = k0 + u / width * 4u;
        [[unroll]] for (uint i = 0u; i < 4u; i++) {
            if (load == 4u) {
                v[i] = image_load(s, x, taps[taps_of(k0) + u / width * 4u + i]);
            } else if (r < s.rows && k + i < k_end) v[i] = elem_load(s.base, r * s.row_stride + (k + i) * s.k_stride);
        }
    }
    return v;
}

// Place of component i of unit u in shared memory, in elements; vectors of four rows have one place.
uint place_at(const uint load, const uint width, const uint pitch, uint u, uint i) {
    if (load == 0u) return (u % (BK / 4u) * 4u + i) * pitch * 4u + u / (BK / 4u);
    if (load == 1u) return u / (width / 4u) * pitch * 4u + u % (width / 4u) * 4u;
    if (load == 2u) return u % BK * pitch * 4u + u / BK * 4u;
    return (u / width * 4u + i) * pitch * 4u + u % width;
}

elem4 next_a[FETCH_A], next_b[FETCH_B];
uint64_t fold_base[FOLD == FOLD_M ? FETCH_A : FETCH_B]; // FOLD, load 0: address of each unit's row

void fetch_tiles(source a, source b, pixel x, uint m0, uint n0, uint k0, uint k_end) {
    uint id = gl_LocalInvocationIndex;
    [[unroll]] for (uint i = 0u; i < FETCH_A; i++) {
        if (FOLD == FOLD_M && LOAD_A == 0u) a.base = fold_base[i];
        if (UNITS_A % THREADS == 0u || id + i * THREADS < UNITS_A)
            next_a[i] = fetch(LOAD_A, BM, a, x, id + i * THREADS, m0, k0, k_end);
    }
    [[unroll]] for (uint i = 0u; i < FETCH_B; i++) {
        if (FOLD == FOLD_N && LOAD_B == 0u) b.base = fold_base[i];
        if (UNITS_B % THREADS == 0u || id + i * THREADS < UNITS_B)
            next_b[i] = fetch(LOAD_B, BN, b, x, id + i * THREADS, n0, k0, k_end);
    }
}

void put_tiles(uint stage) {
    uint id = gl_LocalInvocationIndex;
    [[unroll]] for (uint i = 0u; i < FETCH_A; i++) {
        uint u = id + i * THREADS;
        if (UNITS_A % THREADS != 0u && u >= UNITS_A) continue;
        if (LOAD_A == 1u || LOAD_A == 2u) {
            tiles[stage * BK * PITCH_A + place_at(LOAD_A, BM, PITCH_A, u, 0u) / 4u] = next_a[i];
        } else {
            [[unroll]] for (uint j = 0u; j < 4u; j++) {
                uint at = place_at(LOAD_A, BM, PITCH_A, u, j);
                tiles[stage * BK * PITCH_A + at / 4u][at % 4u] = next_a[i][j];
            }
        }
    }
    [[unroll]] for (uint i = 0u; i < FETCH_B; i++) {
        uint u = id + i * THREADS;
        if (UNITS_B % THREADS != 0u && u >= UNITS_B) continue;
        if (LOAD_B == 1u || LOAD_B == 2u) {
            tiles[TILES_B + stage * BK * PITCH_B + place_at(LOAD_B, BN, PITCH_B, u, 0u) / 4u] = next_b[i];
        } else {
            [[unroll]] for (uint j = 0u; j < 4u; j++) {
                uint at = place_at(LOAD_B, BN, PITCH_B, u, j);
                tiles[TILES_B + stage * BK * PITCH_B + at / 4u][at % 4u] = next_b[i][j];
            }
        }
    }
}

elem sums[TM * TN];

// Adds one staged step. (m, n): this invocation's corner in the tile.
void add_tile(uint stage, uint m, uint n) {
    [[unroll]] for (uint k = 0u; k < BK; k++) {
        elem fa[TM], fb[TN];
        uint row_a = (stage * BK + k) * PITCH_A, row_b = (stage * BK + k) * PITCH_B;
        if (TM % 4u == 0u) {
            [[unroll]] for (uint i = 0u; i < TM / 4u; i++) {
                elem4 v = tiles[row_a + m / 4u + i * 4u];
                [[unroll]] for (uint j = 0u; j < 4u; j++) fa[i * 4u + j] = v[j];
            }
        } else {
            [[unroll]] for (uint i = 0u; i < TM; i++) fa[i] = tiles[row_a + (m + i) / 4u][(m + i) % 4u];
        }
        [[unroll]] for (uint i = 0u; i < TN / 4u; i++) {
            elem4 v = tiles[TILES_B + row_b + n / 4u + i * 8u];
            [[unroll]] for (uint j = 0u; j < 4u; j++) fb[i * 4u + j] = v[j];
        }
        [[unroll]] for (uint i = 0u; i < TM; i++)
            [[unroll]] for (uint j = 0u; j < TN; j++)
                sums[i * TN + j] = mac(fa[i], fb[j], sums[i * TN + j]);
    }
}

elem totals[TM * TN]; // of all chunks, CHUNKED

void add_step(inout uint stage, uint m, uint n) {
    add_tile(stage, m, n);
    if (STAGES == 2u) stage ^= 1u;
}

void add_chunk() {
    [[unroll]] for (uint i = 0u; i < TM * TN; i++) {
        totals[i] += sums[i];
        sums[i] = elem(0);
    }
}

pixel pixel_at(row_ref row, uint n, bool exists) {
    pixel x;
    uint w = n % row.r.out_size[2], rest = n / row.r.out_size[2];
    uint h = rest % row.r.out_size[1], d = rest / row.r.out_size[1];
    x.d = int(d * row.r.stride[0]) - row.r.pad[0];
    x.h = int(h * row.r.stride[1]) - row.r.pad[1];
    x.w = int(w * row.r.stride[2]) - row.r.pad[2];
    x.in_d = exists ? int(row.r.in_size[0]) : 0; // no position of a missing pixel is inside
    x.in_h = int(row.r.in_size[1]);
    x.in_w = int(row.r.in_size[2]);
    x.dilation_d = int(row.r.dilation[0]);
    x.dilation_h = int(row.r.dilation[1]);
    x.dilation_w = int(row.r.dilation[2]);
    x.at = (x.d * x.in_h + x.h) * x.in_w + x.w;
    return x;
}

uint64_t operand_base(row_ref row, place p, uint entry, bool is_a) {
    return is_a ? operand_address(row.r.a, p) + batch_offset(row.r.a_batch, entry, row.r.batch) * type_bytes(TYPE)
                : operand_address(row.r.b, p) + batch_offset(row.r.b_batch, entry, row.r.batch) * type_bytes(TYPE);
}

// Points the folded operand at this invocation's rows; s.row_stride becomes part of the addresses.
void fold_source(row_ref row, place p, uint entry, const uint load, const uint width, uint row0, inout source s,
                 inout pixel x) {
    uint total = fold_total(row), id = gl_LocalInvocationIndex;
    const uint fetches = FOLD == FOLD_M ? FETCH_A : FETCH_B;
    s.rows = total;
    [[unroll]] for (uint i = 0u; i < (load == 0u ? fetches : 1u); i++) {
        uint r = row0 + (load == 0u ? (id + i * THREADS) / (BK / 4u) : load == 1u ? id % (width / 4u) * 4u : id % width);
        folded f = fold_find(row, p, entry, min(r, total - 1u));
        s.base = operand_base(row, f.p, f.entry, FOLD == FOLD_M);
        if (load == 4u) x = pixel_at(row, f.at, r < total);
        else s.base += uint64_t(f.at) * s.row_stride * type_bytes(TYPE);
        if (load == 0u) fold_base[i] = s.base;
    }
    s.row_stride = 0u;
}

elem value_at(uint i, uint j) { return MODE == MODE_CHUNKED ? totals[i * TN + j] : sums[i * TN + j]; }

const uint TURN_ROWS = TM < 4u ? TM : 4u;     // rows of every invocation that are staged at once
const uint STAGED_ROWS = BM / TM * TURN_ROWS; // of the tile; they fit where the tiles of the last step were

// Puts rows turn * 4 ... of every invocation where its neighbours find them; TM is at most 8.
void stage_rows(uint turn, uint own, uint n) {
    [[unroll]] for (uint i = 0u; i < TURN_ROWS; i++)
        [[unroll]] for (uint j = 0u; j < TN; j += 4u) {
            elem4 v;
            [[unroll]] for (uint c = 0u; c < 4u; c++) {
                v[c] = value_at(i, j + c);
                if (TM > 4u && turn != 0u) v[c] = value_at(min(i + 4u, TM - 1u), j + c);
            }
            tiles[((own * TURN_ROWS + i) * BN + n + j * 8u) / 4u] = v;
        }
}

// Which row of the tile staged row r is.
uint turn_row(uint turn, uint r) {
    uint own = r / TURN_ROWS;
    return own / 4u * 4u * TM + own % 4u * TURN_ROWS + r % TURN_ROWS + turn * 16u;
}

// Where a problem's sums go: to C, or of a split product, as they are, to the split's partial sums.
finish_state sums_begin(row_ref row, place p, uint entry, uint split) {
    if (MODE != MODE_SPLIT) return finish_begin(row, p, entry);
    finish_state s;
    uint batches = row.r.batch[0] * row.r.batch[1] * row.r.batch[2];
    s.out_base = operand_address(row.r.partial, p) +
                 uint64_t(split * batches + entry) * row.r.m * row.r.n * PARTIAL_BYTES;
    s.out_m = row.r.n;
    return s;
}
elem sums_value(finish_state s, elem sum, uint m, uint n) {
    return MODE == MODE_SPLIT ? sum : finish_value(s, sum, m, n);
}
void sums_store(finish_state s, elem v, uint m, uint n) {
    if (MODE == MODE_SPLIT) partial_ref(s.out_base).v[m * s.out_m + n] = v;
    else elem_store(s.out_base, m * s.out_m + n * s.out_n, v);
}
elem staged_at(uint row, uint column) { return tiles[(row * BN + column) / 4u][column % 4u]; }

// Writes the sums through shared memory, up to four rows of every invocation a turn, so that neighbours write
// neighbouring columns whatever n is: whole lines. Folded along n, an invocation keeps to one column and looks up its
// problem once; folded along m, 8 invocations keep to a row, a sector of memory, so that the look-ups of rows
// run side by side. Four results of an invocation are made before the first is stored: a compiler moves no load over a
// store. (m, n): the invocation's corner in the tile.
void finish_staged(row_ref row, place p, uint entry, uint split, uint m, uint n, uint m0, uint n0) {
    const uint across = 8u, down = THREADS / BN;
    uint id = gl_LocalInvocationIndex, column = id % BN, at = n0 + column, n_count = row.r.n, m_count = row.r.m;
    bool exists = at < n_count;
    if (FOLD == FOLD_N) {
        n_count = fold_total(row);
        exists = at < n_count;
        folded f = fold_find(row, p, entry, min(at, n_count - 1u));
        p = f.p;
        entry = f.entry;
        at = f.at;
    }
    if (FOLD == FOLD_M) m_count = fold_total(row);
    finish_state s = sums_begin(row, p, entry, split);
    uint own = m / (4u * TM) * 4u + m % (4u * TM) / TURN_ROWS;
    [[dont_unroll]] for (uint turn = 0u; turn < (TM + 3u) / 4u; turn++) {
        barrier();
        stage_rows(turn, own, n);
        barrier();
        if (FOLD == FOLD_M) {
            [[dont_unroll]] for (uint r = id / across; r < STAGED_ROWS; r += THREADS / across) {
                uint mi = m0 + turn_row(turn, r);
                if (mi >= m_count) continue;
                folded f = fold_find(row, p, entry, mi);
                s = sums_begin(row, f.p, f.entry, split);
                [[dont_unroll]] for (uint c = id % across; c < BN; c += 4u * across) {
                    elem v[4];
                    [[unroll]] for (uint u = 0u; u < 4u; u++)
                        v[u] = sums_value(s, staged_at(r, c + u * across), f.at, min(n0 + c + u * across, n_count - 1u));
                    [[unroll]] for (uint u = 0u; u < 4u; u++)
                        if (n0 + c + u * across < n_count) sums_store(s, v[u], f.at, n0 + c + u * across);
                }
            }
        } else if (exists) {
            [[dont_unroll]] for (uint r = id / BN; r < STAGED_ROWS; r += 4u * down) {
                elem v[4];
                uint mi[4];
                [[unroll]] for (uint u = 0u; u < 4u; u++) {
                    mi[u] = m0 + turn_row(turn, r + u * down);
                    v[u] = sums_value(s, staged_at(r + u * down, column), min(mi[u], m_count - 1u), at);
                }
                [[unroll]] for (uint u = 0u; u < 4u; u++)
                    if (mi[u] < m_count) sums_store(s, v[u], mi[u], at);
            }
        }
    }
}

void main() {
    place p;
    if (!place_find(p)) return;
    row_ref row = row_ref(p.row);
    uint id = gl_LocalInvocationIndex, tile = p.tile;
    uint tile_n = tile % row.r.tiles_n, rest = tile / row.r.tiles_n;
    uint tile_m = rest % row.r.tiles_m, entry = rest / row.r.tiles_m;
    uint split = 0u;
    if (MODE == MODE_SPLIT) {
        uint entries = row.r.batch[0] * row.r.batch[1] * row.r.batch[2] / row.r.images;
        split = entry / entries;
        entry %= entries;
    }
    uint m0 = tile_m * BM, n0 = tile_n * BN;
    source a = source(operand_base(row, p, entry, true), row.r.m, row.r.a_m, row.r.a_k);
    source b = source(operand_base(row, p, entry, false), row.r.n, row.r.b_n, row.r.b_k);
    pixel x = pixel(0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    if (LOAD_B == 4u && FOLD != FOLD_N) x = pixel_at(row, n0 + id % BN, n0 + id % BN < row.r.n);
    if (FOLD == FOLD_N) fold_source(row, p, entry, LOAD_B, BN, n0, b, x);
    if (FOLD == FOLD_M) fold_source(row, p, entry, LOAD_A, BM, m0, a, x);
    if (FOLD == FOLD_N && n0 >= b.rows || FOLD == FOLD_M && m0 >= a.rows) return; // fewer lanes than there is room for
    uint k_begin = 0u, k_end = row.r.k, chunk = row.r.chunk;
    if (MODE == MODE_SPLIT) {
        k_begin = split * chunk;
        k_end = min(k_end, k_begin + chunk);
    }

    uint lane = id % 32u, warp = id / 32u;
    const uint across = BN / (8u * TN);
    uint m = warp / across * 4u * TM + lane / 8u * min(TM, 4u), n = warp % across * 8u * TN + lane % 8u * 4u;

    [[unroll]] for (uint i = 0u; i < TM * TN; i++) {
        sums[i] = elem(0);
        if (MODE == MODE_CHUNKED) totals[i] = elem(0);
    }
    uint stage = 0u;
    put_taps(b, x, k_begin, k_end);
    if (LOAD_B == 4u) barrier();
    if (FETCH_ONCE) {
        uint left = chunk; // of the chunk
        [[dont_unroll]] for (uint k0 = k_begin;; k0 += BK) {
            if (k0 < k_end) fetch_tiles(a, b, x, m0, n0, k0, k_end);
            if (k0 != k_begin) {
                add_step(stage, m, n);
                left -= BK;
                if (MODE == MODE_CHUNKED && (left == 0u || k0 >= k_end)) {
                    add_chunk();
                    left = chunk;
                }
            }
            if (k0 >= k_end) break;
            if (STAGES == 1u && k0 != k_begin) barrier();
            put_tiles(stage);
            put_taps(b, x, k0 + BK, k_end);
            barrier();
        }
    } else {
        if (k_begin < k_end) fetch_tiles(a, b, x, m0, n0, k_begin, k_end);
        uint k0 = k_begin;
        for (bool more = true; more; more = MODE == MODE_CHUNKED && k0 < k_end) {
            uint end = MODE == MODE_CHUNKED ? min(k0 + chunk, k_end) : k_end;
            for (; k0 < end; k0 += BK) { // no use of totals in this loop: they need no registers
                if (STAGES == 1u && k0 != k_begin) barrier();
                put_tiles(stage);
                put_taps(b, x, k0 + BK, k_end);
                barrier();
                if (k0 + BK < k_end) fetch_tiles(a, b, x, m0, n0, k0 + BK, k_end);
                add_step(stage, m, n);
            }
            if (MODE == MODE_CHUNKED) add_chunk();
        }
    }

    // Row i and column j of the invocation: vectors of four lie 4 and 8 vectors apart.
    if (STORE == 2u) {
        finish_staged(row, p, entry, split, m, n, m0, n0);
        return;
    }
    m += m0;
    n += n0;
    finish_state s = sums_begin(row, p, entry, split);
    if (MODE == MODE_SPLIT) {
        [[unroll]] for (uint i = 0u; i < TM; i++)
            [[unroll]] for (uint j = 0u; j < TN; j++) {
                uint mi = m + i % 4u + i / 4u * 16u, nj = n + j % 4u + j / 4u * 32u;
                if (mi < row.r.m && nj < row.r.n) sums_store(s, sums[i * TN + j], mi, nj);
            }
        return;
    }
    [[unroll]] for (uint i = 0u; i < TM; i++)
        [[unroll]] for (uint j = 0u; j < TN; j += 4u) {
            elem4 v;
            [[unroll]] for (uint c = 0u; c < 4u; c++) v[c] = value_at(i, j + c);
            uint mi = m + i % 4u + i / 4u * 16u, nj = n + j * 8u;
            if (mi >= row.r.m) continue;
            if (STORE == 1u) {
                if (nj < row.r.n) finish4(s, v, mi, nj);
            } else {
                [[unroll]] for (uint c = 0u; c < 4u; c++)
                    if (nj + c < row.r.n) finish(s, v[c], mi, nj + c);
            }
        }
}
