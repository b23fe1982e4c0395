/*
 * product.c: blocked host product. A tile of C (M_TILE x N_TILE) is the unit of work; for every K_TILE of k its parts
 * of A and B are packed into strips of 4 rows and 4 columns, which a 4 x 4 register block walks.
 */
#include "ops/product.h"

enum { M_TILE = 256, N_TILE = 128, K_TILE = 256, STRIP = 4 };

typedef double pair __attribute__((vector_size(16)));

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}
static int64_t strips(int64_t n) {
    return (n + STRIP - 1) / STRIP;
}

#define LOAD(type, field, convert)                                                                                     \
    do {                                                                                                               \
        const type *from = (const type *)data + at;                                                                    \
        for (int64_t i = 0; i < count; i++) to[i].field = convert(from[i * stride]);                                   \
    } while (0)

void cells_load(cell *to, bool integer, braid_type type, const void *data, int64_t at, int64_t stride, int64_t count) {
    if (integer) {
        for (int64_t i = 0; i < count; i++) to[i].u = (uint64_t)element_i64(type, data, at + i * stride);
    } else if (type == BRAID_FLOAT32) {
        LOAD(float, f, (double));
    } else if (type == BRAID_FLOAT64) {
        LOAD(double, f, );
    } else if (type == BRAID_FLOAT16) {
        LOAD(uint16_t, f, (double)half_to_float);
    } else if (type == BRAID_BFLOAT16) {
        LOAD(uint16_t, f, (double)bfloat_to_float);
    } else {
        for (int64_t i = 0; i < count; i++) to[i].f = element_f64(type, data, at + i * stride);
    }
}

void cells_store(const cell *from, bool integer, braid_type type, void *data, int64_t at, int64_t count) {
    if (integer) {
        for (int64_t i = 0; i < count; i++) element_set_i64(type, data, at + i, (int64_t)from[i].u);
    } else if (type == BRAID_FLOAT32) {
        float *to = (float *)data + at;
        for (int64_t i = 0; i < count; i++) to[i] = (float)from[i].f;
    } else {
        for (int64_t i = 0; i < count; i++) element_set_f64(type, data, at + i, from[i].f);
    }
}

/* Scratch of one worker: packed A, packed B, B as loaded, the tile of C. */
typedef struct workspace {
    cell *a, *b, *rows, *c;
} workspace;

static size_t workspace_cells(const product *p) {
    int64_t m = strips(least(p->m, M_TILE)) * STRIP, n = strips(least(p->n, N_TILE)) * STRIP, k = least(p->k, K_TILE);
    return (size_t)(m * k + 2 * n * k + k + m * n + 4 * STRIP);
}

static workspace workspace_at(const product *p, size_t worker) {
    int64_t m = strips(least(p->m, M_TILE)) * STRIP, n = strips(least(p->n, N_TILE)) * STRIP, k = least(p->k, K_TILE);
    workspace w = {.a = p->scratch + worker * p->cells};
    w.b = w.a + m * k;
    w.rows = w.b + n * k;
    w.c = w.rows + n * k + k;
    return w;
}

braid_status product_prepare(product *p, arena *memory, braid_error *err) {
    double work = (double)p->m * (double)p->n * (double)(p->k + 1);
    int64_t tiles = ((p->m + M_TILE - 1) / M_TILE) * ((p->n + N_TILE - 1) / N_TILE);
    p->workers = (size_t)(work < 1e6 ? 1 : least(tiles < 1 ? 1 : tiles, 16));
    p->cells = workspace_cells(p);
    p->scratch = arena_array(memory, p->cells * p->workers, sizeof(cell));
    return p->scratch ? BRAID_OK : error_memory(err);
}

/* A[m0 .. m0 + mn)[k0 .. k0 + kn) as strips [k][4], missing rows as zeros. `line` holds kn cells. */
static void pack_a(const product *p, int64_t m0, int64_t mn, int64_t k0, int64_t kn, cell *to, cell *line) {
    for (int64_t i = 0; i < strips(mn) * STRIP; i++) {
        cell *strip = to + i / STRIP * STRIP * kn + i % STRIP;
        if (i < mn)
            cells_load(line, p->integer, p->a_type, p->a, p->a_at + (m0 + i) * p->a_row + k0 * p->a_column, p->a_column,
                       kn);
        for (int64_t k = 0; k < kn; k++) strip[k * STRIP] = i < mn ? line[k] : (cell){.u = 0};
    }
}

/* B[k0 .. k0 + kn)[n0 .. n0 + nn) as strips [k][4], missing columns as zeros. `rows` holds kn * nn cells. */
static void pack_b(const product *p, int64_t k0, int64_t kn, int64_t n0, int64_t nn, cell *to, cell *rows) {
    if (p->load_b) {
        p->load_b(p->user, k0, kn, n0, nn, rows, nn);
    } else {
        for (int64_t k = 0; k < kn; k++)
            cells_load(rows + k * nn, p->integer, p->b_type, p->b, p->b_at + (k0 + k) * p->b_row + n0 * p->b_column,
                       p->b_column, nn);
    }
    for (int64_t j = 0; j < strips(nn) * STRIP; j++) {
        cell *strip = to + j / STRIP * STRIP * kn + j % STRIP;
        for (int64_t k = 0; k < kn; k++) strip[k * STRIP] = j < nn ? rows[k * nn + j] : (cell){.u = 0};
    }
}

/* c[4][4] (rows `stride` apart) += strip a times strip b. */
static void block_float(const cell *a, const cell *b, int64_t kn, cell *c, int64_t stride) {
    pair sum[STRIP][2] = {0};
    for (int64_t k = 0; k < kn; k++, a += STRIP, b += STRIP) {
        pair b0 = {b[0].f, b[1].f}, b1 = {b[2].f, b[3].f};
        for (int i = 0; i < STRIP; i++) {
            pair ai = {a[i].f, a[i].f};
            sum[i][0] += ai * b0;
            sum[i][1] += ai * b1;
        }
    }
    for (int i = 0; i < STRIP; i++)
        for (int j = 0; j < STRIP; j++) c[i * stride + j].f += sum[i][j / 2][j % 2];
}

static void block_integer(const cell *a, const cell *b, int64_t kn, cell *c, int64_t stride) {
    for (int64_t k = 0; k < kn; k++, a += STRIP, b += STRIP)
        for (int i = 0; i < STRIP; i++)
            for (int j = 0; j < STRIP; j++) c[i * stride + j].u += a[i].u * b[j].u;
}

static void tile_run(product *p, workspace w, int64_t m0, int64_t n0) {
    int64_t mn = least(p->m - m0, M_TILE), nn = least(p->n - n0, N_TILE), stride = strips(nn) * STRIP;
    memset(w.c, 0, (size_t)(strips(mn) * STRIP * stride) * sizeof(cell));
    for (int64_t k0 = 0; k0 < p->k; k0 += K_TILE) {
        int64_t kn = least(p->k - k0, K_TILE);
        pack_b(p, k0, kn, n0, nn, w.b, w.rows);
        pack_a(p, m0, mn, k0, kn, w.a, w.rows);
        for (int64_t j = 0; j < nn; j += STRIP)
            for (int64_t i = 0; i < mn; i += STRIP)
                (p->integer ? block_integer : block_float)(w.a + i * kn, w.b + j * kn, kn, w.c + i * stride + j,
                                                           stride);
    }
    for (int64_t i = 0; i < mn; i++) p->store(p->user, m0 + i, n0, nn, w.c + i * stride);
}

static void worker_run(void *user, size_t worker) {
    product *p = user;
    int64_t across = (p->n + N_TILE - 1) / N_TILE, tiles = across * ((p->m + M_TILE - 1) / M_TILE);
    workspace w = workspace_at(p, worker);
    for (int64_t t = (int64_t)worker; t < tiles; t += (int64_t)p->workers)
        tile_run(p, w, t / across * M_TILE, t % across * N_TILE);
}

void product_run(product *p) {
    if (p->m == 0 || p->n == 0) return;
    if (p->workers == 1)
        worker_run(p, 0);
    else
        parallel_for(p->workers, 0, worker_run, p);
}
