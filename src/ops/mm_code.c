/*
 * mm_code.c: rows, constants and grids of the product kernels.
 */
#include "ops/mm_code.h"

/* Specialization constants of lib/mm.glsl, mm.comp, mms.comp, mv.comp and depthwise.comp. */
enum {
    SPEC_TYPE = 8,
    SPEC_BM,
    SPEC_BN,
    SPEC_BK,
    SPEC_TM,
    SPEC_TN,
    SPEC_LOAD_A,
    SPEC_LOAD_B,
    SPEC_MODE,
    SPEC_KERNEL,
    SPEC_STAGES = 20,
    SPEC_STORE,
    SPEC_SWAP,
    SPEC_FOLD,
    SPEC_STRIDE,
    SPEC_DILATION
};
enum { MODE_WHOLE, MODE_CHUNKED, MODE_SPLIT };
/* As measured on an H200: products walk along k, cut chunks meet. */
enum { LATENCY_MM = 10, LATENCY_MMS = 6, LATENCY_DEPTHWISE = 5, LATENCY_MV = 8, LATENCY_SUM = 5 };
enum { SUM_GROUP = 256, SUM_ITEMS = 4, SUM_BUSY = 512 /* elements that keep a core busy, one an invocation */ };

void mm_dense(mm_shape *s) {
    s->c_m = s->n;
    s->c_n = 1;
    int64_t entry = s->m * s->n;
    for (int i = s->n_batch - 1; i >= 0; i--) {
        s->c_batch[i] = entry;
        entry *= s->batch[i];
    }
}

bool mm_merge_batch(mm_shape *s) {
    int n = 0;
    for (int i = 0; i < s->n_batch; i++) {
        int64_t d = s->batch[i];
        if (d == 1) continue;
        if (n > 0 && s->a_batch[n - 1] == s->a_batch[i] * d && s->b_batch[n - 1] == s->b_batch[i] * d &&
            s->c_batch[n - 1] == s->c_batch[i] * d && s->bias_batch[n - 1] == s->bias_batch[i] * d)
            d *= s->batch[--n];
        s->a_batch[n] = s->a_batch[i];
        s->b_batch[n] = s->b_batch[i];
        s->c_batch[n] = s->c_batch[i];
        s->bias_batch[n] = s->bias_batch[i];
        s->batch[n++] = d;
    }
    s->n_batch = n;
    return n <= 3;
}

int64_t mm_batches(const mm_shape *s) {
    int64_t n = 1;
    for (int i = 0; i < s->n_batch; i++) n *= s->batch[i];
    return n;
}

static void spec(mm_code *c, uint32_t id, uint32_t content) {
    c->spec_ids[c->n_spec] = id;
    c->spec[c->n_spec++] = content;
}

/* Do a tensor's lanes and batch entries all start at multiples of four elements. */
static bool fours(braid_type type, const mm_operand *o, const int64_t *batch, int n_batch) {
    for (int i = 0; i < n_batch; i++)
        if (batch[i] % 4 != 0) return false;
    return o->bytes % (4 * braid_type_bytes(type)) == 0;
}

uint32_t mm_load_kind(const mm_problem *p, const mm_operand *o, const int64_t *batch, int64_t rows, int64_t row,
                      int64_t k_stride) {
    bool vectors = fours(p->type, o, batch, p->s.n_batch);
    if (vectors && k_stride == 1 && p->s.k % 4 == 0 && (row % 4 == 0 || rows == 1)) return LOAD_K4;
    if (vectors && row == 1 && rows % 4 == 0 && (k_stride % 4 == 0 || p->s.k == 1)) return LOAD_ROW4;
    return k_stride <= row ? LOAD_K : LOAD_ROW;
}

static void row_image(row_mm *row, const conv *c) {
    for (int i = 0; i < 3; i++) {
        int from = i - (3 - c->axes);
        bool is = from >= 0;
        row->in_size[i] = is ? (uint32_t)c->in[from] : 1;
        row->out_size[i] = is ? (uint32_t)c->out[from] : 1;
        row->stride[i] = is ? (uint32_t)c->stride[from] : 1;
        row->dilation[i] = is ? (uint32_t)c->dilation[from] : 1;
        row->pad[i] = is ? (int32_t)c->begin[from] : 0;
    }
}

static row_mm row_fill(const mm_problem *p, const mm_cut *cut) {
    const mm_shape *s = &p->s;
    row_mm row = {.m = (uint32_t)s->m,
                  .n = (uint32_t)s->n,
                  .k = (uint32_t)s->k,
                  .chunk = cut->chunk,
                  .splits = cut->splits,
                  .a_m = (uint32_t)s->a_m,
                  .a_k = (uint32_t)s->a_k,
                  .b_k = (uint32_t)s->b_k,
                  .b_n = (uint32_t)s->b_n,
                  .c_m = (uint32_t)s->c_m,
                  .c_n = (uint32_t)s->c_n,
                  .bias_m = (uint32_t)p->bias_m,
                  .bias_n = (uint32_t)p->bias_n,
                  .alpha = p->alpha,
                  .beta = p->beta,
                  .groups = p->groups ? (uint32_t)p->groups : 1,
                  .images = cut->fold == FOLD_N ? (uint32_t)mm_images(p) : 1,
                  .batch = {1, 1, 1}};
    for (int i = 0; i < s->n_batch; i++) {
        int to = 3 - s->n_batch + i;
        row.batch[to] = (uint32_t)s->batch[i];
        row.a_batch[to] = (uint64_t)s->a_batch[i];
        row.b_batch[to] = (uint64_t)s->b_batch[i];
        row.c_batch[to] = (uint64_t)s->c_batch[i];
        row.bias_batch[to] = (uint64_t)s->bias_batch[i];
    }
    if (p->image) row_image(&row, p->image);
    return row;
}

static void exchange(uint32_t *a, uint32_t *b) {
    uint32_t t = *a;
    *a = *b;
    *b = t;
}

/* C^T = B^T A^T: exchanges m and n. */
static void row_swap(row_mm *r) {
    exchange(&r->m, &r->n);
    exchange(&r->a_m, &r->b_n);
    exchange(&r->a_k, &r->b_k);
    exchange(&r->c_m, &r->c_n);
    exchange(&r->bias_m, &r->bias_n);
    for (int i = 0; i < 3; i++) {
        uint64_t t = r->a_batch[i];
        r->a_batch[i] = r->b_batch[i];
        r->b_batch[i] = t;
    }
}

int64_t mm_images(const mm_problem *p) {
    return p->images > 1 && p->s.n_batch > 0 && p->s.batch[0] == p->images && p->s.a_batch[0] == 0 ? p->images : 1;
}

bool mm_extent(const mm_problem *p, mm_fold fold, uint32_t problems, mm_dims *out) {
    *out = (mm_dims){p->s.m, p->s.n, mm_batches(&p->s)};
    if (fold == FOLD_NONE) return i64_mul(out->entries, problems, &out->entries);
    int64_t units = problems, *folded = fold == FOLD_N ? &out->n : &out->m;
    if (fold == FOLD_N) {
        out->entries /= mm_images(p);
        if (!i64_mul(units, mm_images(p), &units)) return false;
    }
    return i64_mul(*folded, units, folded) && *folded < INT32_MAX;
}

static void grid(mm_code *c, const mm_problem *p, const mm_cut *cut, uint32_t problems) {
    row_mm *r = &c->row;
    mm_dims d = {r->m, r->n, mm_batches(&p->s)};
    if (cut->fold != FOLD_NONE && !mm_extent(p, cut->fold, problems, &d)) {
        c->tiles = UINT64_MAX;
        return;
    }
    c->folded = cut->fold != FOLD_NONE;
    r->tiles_m = (uint32_t)((d.m - 1) / cut->bm + 1);
    r->tiles_n = (uint32_t)((d.n - 1) / cut->bn + 1);
    uint64_t tiles = (uint64_t)r->tiles_m * r->tiles_n;
    if (__builtin_mul_overflow(tiles, (uint64_t)d.entries * cut->splits, &c->tiles)) c->tiles = UINT64_MAX;
}

static const char *kernel_of(const mm_problem *p, bool fused, const char *const names[4]) {
    if (p->type == BRAID_FLOAT64) return names[3];
    if (!type_is_float(p->type)) return names[2];
    return names[fused];
}

static bool wide(braid_type type) {
    return type == BRAID_FLOAT64 || !type_is_float(type);
}

static void shared_specs(mm_code *c, const mm_problem *p, const mm_cut *cut) {
    spec(c, SPEC_TYPE, (uint32_t)p->type);
    spec(c, SPEC_TM, cut->tm);
    spec(c, SPEC_TN, cut->tn);
    for (int i = 0; p->image && i < p->image->axes; i++)
        spec(c, (uint32_t)(SPEC_KERNEL + 3 - p->image->axes + i), (uint32_t)p->image->kernel[i]);
}

static mm_code encode_direct(const device_traits *device, const mm_problem *p, mm_cut cut, uint32_t problems) {
    static const char *const names[] = {"mms_real", "mms_fused", "mms_int", "mms_f64"};
    mm_code c = {.kernel = kernel_of(p, p->fused, names), .latency = LATENCY_MMS};
    c.swapped = !p->image && p->s.n < 8 && p->s.m > p->s.n; /* too narrow for invocations along n */
    if (c.swapped) {
        mm_problem q = *p;
        q.s.m = p->s.n;
        q.s.n = p->s.m;
        cut = mm_choose(device, &q, problems);
    }
    c.row = row_fill(p, &cut);
    c.group = cut.group;
    if (c.swapped) row_swap(&c.row);
    if (p->image && !p->transposed) { /* taps of a channel */
        c.row.a_k = 1;
        for (int i = 0; i < p->image->axes; i++) c.row.a_k *= (uint32_t)p->image->kernel[i];
    }
    grid(&c, p, &cut, problems);
    shared_specs(&c, p, &cut);
    spec(&c, SPEC_LOAD_B, p->transposed ? LOAD_TRANSPOSED : p->image ? LOAD_IMAGE : LOAD_ROW);
    spec(&c, SPEC_SWAP, c.swapped);
    return c;
}

static mm_code encode_depthwise(const mm_problem *p, mm_cut cut) {
    static const char *const names[] = {"depthwise_real", "depthwise_fused", "", ""};
    mm_code c = {.kernel = kernel_of(p, p->fused, names), .row = row_fill(p, &cut), .group = cut.group,
                 .latency = LATENCY_DEPTHWISE};
    row_mm *r = &c.row;
    r->tiles_m = (r->out_size[1] - 1) / cut.tm + 1;
    r->tiles_n = (uint32_t)mm_batches(&p->s);
    c.tiles = ((uint64_t)r->tiles_m * r->tiles_n * r->out_size[2] - 1) / cut.group + 1;
    shared_specs(&c, p, &cut);
    spec(&c, SPEC_STRIDE, r->stride[1]);
    spec(&c, SPEC_DILATION, r->dilation[1]);
    return c;
}

static mm_code encode_vector(const mm_problem *p, mm_cut cut) {
    static const char *const names[] = {"mv_real", "mv_fused", "", ""};
    const mm_shape *s = &p->s;
    mm_code c = {.kernel = kernel_of(p, p->fused, names), .row = row_fill(p, &cut), .group = cut.group,
                 .latency = LATENCY_MV};
    c.swapped = mm_vector_swapped(p);
    if (c.swapped) row_swap(&c.row);
    uint32_t load_a = c.swapped ? mm_load_kind(p, &p->b, s->b_batch, s->n, s->b_n, s->b_k)
                                : mm_load_kind(p, &p->a, s->a_batch, s->m, s->a_m, s->a_k);
    mm_cut tile = cut;
    tile.bm = cut.tm;
    grid(&c, p, &tile, 1);
    shared_specs(&c, p, &cut);
    spec(&c, SPEC_BM, cut.bm);
    spec(&c, SPEC_BN, cut.bn);
    spec(&c, SPEC_BK, cut.bk);
    spec(&c, SPEC_LOAD_A, load_a == LOAD_K4 ? LOAD_K4 : LOAD_K);
    spec(&c, SPEC_LOAD_B, mm_vector_load(p));
    spec(&c, SPEC_MODE, s->k > cut.chunk ? MODE_CHUNKED : MODE_WHOLE);
    spec(&c, SPEC_SWAP, c.swapped);
    return c;
}

/* How mm writes: through shared memory costs barriers, which pay where there is much to write. */
static uint32_t store_kind(const mm_problem *p, const mm_cut *cut, uint32_t problems) {
    enum { ONE, FOUR, SHARED, MANY = 8 };
    const mm_shape *s = &p->s;
    bool much = problems >= MANY && cut->group % cut->bn == 0;
    if (cut->fold != FOLD_NONE) return SHARED;
    if (cut->splits > 1) return much ? SHARED : ONE;
    if (s->c_n == 1 && s->n % 4 == 0 && s->c_m % 4 == 0 && fours(p->type, &p->c, s->c_batch, s->n_batch)) return FOUR;
    return s->c_n == 1 && much ? SHARED : ONE;
}

/* A folded operand is fetched row by row. */
static uint32_t folded_load(uint32_t load, bool folded) {
    return folded && load == LOAD_K ? LOAD_ROW : load;
}

mm_code mm_encode(const device_traits *device, const mm_problem *p, mm_cut cut, uint32_t problems) {
    static const char *const names[] = {"mm_real", "mm_fused", "mm_int", "mm_f64"};
    if (cut.vector) return encode_vector(p, cut);
    if (cut.depthwise) return encode_depthwise(p, cut);
    if (cut.bk == 0) return encode_direct(device, p, cut, problems);
    const mm_shape *s = &p->s;
    bool split = cut.splits > 1;
    mm_code c = {.kernel = kernel_of(p, p->fused && !split, names), .row = row_fill(p, &cut), .group = cut.group,
                 .latency = LATENCY_MM};
    grid(&c, p, &cut, problems);
    shared_specs(&c, p, &cut);
    spec(&c, SPEC_BM, cut.bm);
    spec(&c, SPEC_BN, cut.bn);
    spec(&c, SPEC_BK, cut.bk);
    spec(&c, SPEC_LOAD_A, folded_load(mm_load_kind(p, &p->a, s->a_batch, s->m, s->a_m, s->a_k), cut.fold == FOLD_M));
    uint32_t load_b = p->image ? LOAD_IMAGE : mm_load_kind(p, &p->b, s->b_batch, s->n, s->b_n, s->b_k);
    spec(&c, SPEC_LOAD_B, folded_load(load_b, cut.fold == FOLD_N));
    if (cut.fold != FOLD_NONE) spec(&c, SPEC_FOLD, (uint32_t)cut.fold);
    spec(&c, SPEC_MODE, split ? MODE_SPLIT : s->k > cut.chunk ? MODE_CHUNKED : MODE_WHOLE);
    spec(&c, SPEC_STAGES, wide(p->type) ? 1 : 2);
    spec(&c, SPEC_STORE, store_kind(p, &cut, problems));
    return c;
}

mm_code mm_encode_sum(const device_traits *device, const mm_problem *p, mm_cut cut, uint32_t problems) {
    static const char *const names[] = {"mmsum_real", "mmsum_fused", "mmsum_int", "mmsum_f64"};
    mm_code c = {.kernel = kernel_of(p, p->fused, names), .row = row_fill(p, &cut), .group = SUM_GROUP,
                 .latency = LATENCY_SUM};
    uint64_t entry = (uint64_t)c.row.m * c.row.n, cores = device->cores ? device->cores : 1;
    double all = (double)entry * (double)mm_batches(&p->s) * problems;
    uint32_t items = all > (double)(cores * SUM_BUSY) ? SUM_ITEMS : 1;
    c.row.tiles_m = (uint32_t)((entry - 1) / (SUM_GROUP * items) + 1);
    c.row.tiles_n = 1;
    c.tiles = c.row.tiles_m * (uint64_t)mm_batches(&p->s);
    spec(&c, SPEC_TYPE, (uint32_t)p->type);
    spec(&c, SPEC_TN, items);
    return c;
}

bool mm_partial_bytes(const mm_problem *p, mm_cut cut, uint64_t *out) {
    uint64_t sums = (uint64_t)p->s.m * (uint64_t)p->s.n, entries = (uint64_t)mm_batches(&p->s) * cut.splits;
    return !__builtin_mul_overflow(sums, entries, out) &&
           !__builtin_mul_overflow(*out, wide(p->type) ? (uint64_t)8 : (uint64_t)4, out);
}

/* ---- in words */

static uint32_t spec_of(uint32_t n, const uint32_t *ids, const uint32_t *content, uint32_t id, uint32_t otherwise) {
    for (uint32_t i = 0; i < n; i++)
        if (ids[i] == id) return content[i];
    return otherwise;
}

static const char *word(const char *const *words, size_t count, uint32_t i) {
    return i < count ? words[i] : "?";
}
#define WORD(words, i) word(words, COUNT_OF(words), i)

void mm_describe(const char *kernel, uint32_t n, const uint32_t *ids, const uint32_t *content, text *out) {
    static const char *const loads[] = {"k4", "row4", "k", "row", "image", "transposed"};
    static const char *const folds[] = {"", " fold n", " fold m"}, *const modes[] = {"whole", "chunked", "split"};
    static const char *const stores[] = {"one", "four", "rows"};
#define SPEC(id, otherwise) spec_of(n, ids, content, id, otherwise)
#define IS(name) (strncmp(kernel, name "_", sizeof name) == 0)
    bool mm = IS("mm"), mms = IS("mms"), mv = IS("mv");
    if (IS("depthwise"))
        text_add(out, "%u row%s, %s, %ux%u", SPEC(SPEC_TM, 1), SPEC(SPEC_TM, 1) == 1 ? "" : "s",
                 braid_type_name((braid_type)SPEC(SPEC_TYPE, 1)), SPEC(SPEC_KERNEL + 1, 1), SPEC(SPEC_KERNEL + 2, 1));
    if (!mm && !mms && !mv) return;
    if (!mms) text_add(out, "%ux%ux%u/", SPEC(SPEC_BM, 64), SPEC(SPEC_BN, 64), SPEC(SPEC_BK, 16));
    uint32_t load_b = SPEC(SPEC_LOAD_B, LOAD_ROW), mode = SPEC(SPEC_MODE, MODE_WHOLE);
    text_add(out, "%ux%u%s, %s", SPEC(SPEC_TM, 4), SPEC(SPEC_TN, 4), WORD(folds, SPEC(SPEC_FOLD, 0)),
             braid_type_name((braid_type)SPEC(SPEC_TYPE, 1)));
    if (!mms) text_add(out, ", a %s", WORD(loads, SPEC(SPEC_LOAD_A, LOAD_K)));
    text_add(out, ", b %s", WORD(loads, load_b));
    if (load_b == LOAD_IMAGE || load_b == LOAD_TRANSPOSED)
        text_add(out, " %ux%ux%u", SPEC(SPEC_KERNEL, 1), SPEC(SPEC_KERNEL + 1, 1), SPEC(SPEC_KERNEL + 2, 1));
    if (SPEC(SPEC_SWAP, 0)) text_add(out, ", swapped");
    if (!mms) text_add(out, ", %s", WORD(modes, mode));
    if (mm) text_add(out, ", stores %s", WORD(stores, SPEC(SPEC_STORE, 0)));
#undef IS
#undef SPEC
}
