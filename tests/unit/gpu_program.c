/*
 * gpu: recorded programs against plain arithmetic: waves, rows, lanes, tiles, copies, cuts, times, reuse, threads.
 * labels: quick
 */
#include "gpu_fixture.h"

static row_word make_row(uint32_t n, uint32_t per_tile, uint32_t multiply, uint32_t add) {
    return (row_word){.header = {.tiles = (n + per_tile - 1) / per_tile},
                      .n = n,
                      .per_tile = per_tile,
                      .multiply = multiply,
                      .add = add};
}

static gpu_dispatch make_dispatch(const fixture *f, const gpu_buffer *rows, size_t row, uint32_t n_rows,
                                  const row_word *r) {
    uint64_t tiles = 0;
    for (uint32_t i = 0; i < n_rows; i++) tiles += r[i].header.tiles;
    return (gpu_dispatch){.pipeline = f->word,
                          .rows = rows->address + row * sizeof(row_word),
                          .row_bytes = sizeof(row_word),
                          .n_rows = n_rows,
                          .tiles = tiles};
}

static void run_once(fixture *f, const gpu_program_info *info, gpu_times *spent) {
    gpu_program *p;
    braid_error err;
    must(gpu_program_new(f->g, info, &p, &err), &err);
    must(gpu_program_run(f->g, p, spent, &err), &err);
    gpu_program_free(f->g, p);
}

/* A chain of waves, each reading what the one before wrote: x -> 3x + k. */
enum { CHAIN = 24, CHAIN_WORDS = 70000 };
typedef struct chain {
    gpu_buffer data, rows;
    gpu_dispatch dispatches[CHAIN];
} chain;

static void chain_make(fixture *f, chain *c) {
    braid_error err;
    row_word rows[CHAIN];
    must(gpu_buffer_new(f->g, GPU_DEVICE, 2 * CHAIN_WORDS * 4, &c->data, &err), &err);
    for (uint32_t i = 0; i < CHAIN; i++) {
        rows[i] = make_row(CHAIN_WORDS, 256, 3, i + 1);
        if (i) rows[i].from = direct(c->data.address + (i & 1 ? 0 : CHAIN_WORDS * 4), 0);
        rows[i].to = direct(c->data.address + (i & 1 ? CHAIN_WORDS * 4 : 0), 0);
    }
    c->rows = buffer_with(f->g, GPU_DEVICE, rows, sizeof rows);
    for (uint32_t i = 0; i < CHAIN; i++) {
        c->dispatches[i] = make_dispatch(f, &c->rows, i, 1, &rows[i]);
        c->dispatches[i].wave = i;
    }
}

static void chain_check(fixture *f, chain *c) {
    braid_error err;
    uint32_t *out = malloc(CHAIN_WORDS * 4), expected = 0, wrong = 0;
    for (uint32_t i = 0; i < CHAIN; i++) expected = (i ? 3 * expected : 0) + i + 1;
    must(gpu_download(f->g, &c->data, CHAIN_WORDS * 4, CHAIN_WORDS * 4, out, &err), &err);
    for (uint32_t i = 0; i < CHAIN_WORDS; i++) wrong += out[i] != expected;
    assert_int_equal(wrong, 0);
    free(out);
    must(gpu_buffer_fill(f->g, &c->data, 0, c->data.bytes, 0, &err), &err);
}

static void chain_free(fixture *f, chain *c) {
    gpu_buffer_free(f->g, &c->data);
    gpu_buffer_free(f->g, &c->rows);
}

static void waves(void **state) {
    fixture *f = *state;
    chain c;
    braid_error err;
    chain_make(f, &c);
    gpu_program_info info = {
        .dispatches = c.dispatches, .n_dispatches = CHAIN, .run_block = f->run.address, .lanes = 1};
    gpu_program *p;
    gpu_times spent = {0};
    must(gpu_program_new(f->g, &info, &p, &err), &err);
    assert_non_null(p);
    for (int i = 0; i < 50; i++) {
        must(gpu_program_run(f->g, p, &spent, &err), &err);
        if (f->g->device.timestamp_bits) assert_true(spent.device_ns > 0);
        chain_check(f, &c);
    }
    gpu_program_free(f->g, p);
    gpu_program_free(f->g, NULL);
    chain_free(f, &c);
}

/* Costs cut the chain into submissions, single dispatches included; the result stays. */
static void long_work_is_cut(void **state) {
    fixture *f = *state;
    chain c;
    chain_make(f, &c);
    static const uint64_t costs[] = {1, 40000000, 100000000, 150000000, 200000000, 1000000000, 6000000000};
    for (size_t k = 0; k < COUNT_OF(costs); k++) {
        for (int i = 0; i < CHAIN; i++) c.dispatches[i].cost_ns = costs[k];
        gpu_program_info info = {.dispatches = c.dispatches,
                                 .n_dispatches = CHAIN,
                                 .run_block = f->run.address,
                                 .lanes = 1,
                                 .timestamps = k % 2 == 1};
        run_once(f, &info, NULL);
        chain_check(f, &c);
    }
    chain_free(f, &c);
}

static void small_grids(void **state) {
    fixture *f = *state;
    chain c;
    uint32_t saved[3];
    memcpy(saved, f->g->device.max_groups, sizeof saved);
    static const uint32_t limits[][3] = {{1, 1, 1}, {7, 3, 1}, {100, 65535, 1}, {273, 1, 1}, {274, 1, 1}, {5, 100, 2}};
    chain_make(f, &c);
    for (size_t k = 0; k < COUNT_OF(limits); k++) {
        memcpy(f->g->device.max_groups, limits[k], sizeof saved);
        gpu_program_info info = {
            .dispatches = c.dispatches, .n_dispatches = CHAIN, .run_block = f->run.address, .lanes = 1};
        run_once(f, &info, NULL);
        chain_check(f, &c);
    }
    memcpy(f->g->device.max_groups, saved, sizeof saved);
    chain_free(f, &c);
}

/* Rows of one dispatch, with the same number of tiles or not, every lane with its own data, inputs by binding and by
 * address table. */
enum { ROWS = 37, LANES = 5 };
static void check_rows_and_lanes(fixture *f, bool equal) {
    braid_error err;
    uint32_t saved[3], at[ROWS + 1] = {0};
    row_word rows[ROWS];
    for (uint32_t i = 0; i < ROWS; i++) at[i + 1] = at[i] + (equal ? 577 + i % 64 : (i * i * 31) % 900 + 1);
    uint32_t words = (at[ROWS] + 3) & ~3u;
    uint32_t *in = malloc((size_t)words * 4 * LANES), *out = malloc((size_t)words * 4 * LANES);
    for (uint32_t i = 0; i < words * LANES; i++) in[i] = i * 2654435761u;
    gpu_buffer from = buffer_with(f->g, GPU_DEVICE, in, (size_t)words * 4 * LANES), to;
    must(gpu_buffer_new(f->g, GPU_DEVICE, (uint64_t)words * 4 * LANES, &to, &err), &err);
    uint64_t addresses[LANES];
    for (uint32_t l = 0; l < LANES; l++) addresses[l] = from.address + (uint64_t)l * words * 4;
    gpu_buffer table = buffer_with(f->g, GPU_DEVICE, addresses, sizeof addresses);
    binding *bindings = (binding *)((run_block *)f->run.mapped + 1);
    bindings[0] = (binding){from.address, (uint64_t)words * 4};
    bindings[1] = (binding){table.address, 0};
    uint32_t first = 0;
    for (uint32_t i = 0; i < ROWS; i++) {
        rows[i] = make_row(at[i + 1] - at[i], 64, i, 7 * i);
        rows[i].header.first_tile = first;
        first += rows[i].header.tiles;
        rows[i].to = direct(to.address + at[i] * 4, (uint64_t)words * 4);
        rows[i].from = i % 3 == 0 ? direct(from.address + at[i] * 4, (uint64_t)words * 4)
                                  : (operand){.base = at[i] * 4,
                                              .kind = i % 3 == 1 ? OPERAND_BINDING : OPERAND_INDIRECT,
                                              .index = i % 3 == 1 ? 0 : 1};
        rows[i].to.copy_stride = rows[i].from.copy_stride = (uint64_t)words * 4;
    }
    gpu_buffer row_buffer = buffer_with(f->g, GPU_DEVICE, rows, sizeof rows);
    gpu_dispatch d = make_dispatch(f, &row_buffer, 0, ROWS, rows);
    d.row_tiles = equal ? 10 : 0;
    gpu_program_info info = {.dispatches = &d, .n_dispatches = 1, .run_block = f->run.address, .lanes = LANES};
    ((run_block *)f->run.mapped)->lanes = LANES;
    memcpy(saved, f->g->device.max_groups, sizeof saved);
    enum { CUT = 4, COPIES, ONCE }; /* one lane of many copies; lane 0 alone */
    for (uint32_t k = 0; k <= ONCE; k++) {
        f->g->device.max_groups[2] = k == 0 ? saved[2] : k;
        d.cost_ns = k == CUT ? 900000000 / LANES : 0;
        d.copies = k == COPIES ? LANES : 1;
        d.once = k == ONCE;
        info.lanes = ((run_block *)f->run.mapped)->lanes = k == COPIES ? 1 : LANES;
        must(gpu_buffer_fill(f->g, &to, 0, to.bytes, 0xdeadbeef, &err), &err);
        run_once(f, &info, NULL);
        must(gpu_download(f->g, &to, 0, (uint64_t)words * 4 * LANES, out, &err), &err);
        uint32_t wrong = 0;
        for (uint32_t l = 0; l < LANES; l++)
            for (uint32_t i = 0; i < ROWS; i++)
                for (uint32_t w = at[i]; w < at[i + 1]; w++)
                    wrong += out[l * words + w] !=
                             (k == ONCE && l ? 0xdeadbeef : i * in[l * words + w] + 7 * i);
        assert_int_equal(wrong, 0);
    }
    memcpy(f->g->device.max_groups, saved, sizeof saved);
    ((run_block *)f->run.mapped)->lanes = 1;
    free(in);
    free(out);
    gpu_buffer_free(f->g, &from);
    gpu_buffer_free(f->g, &to);
    gpu_buffer_free(f->g, &table);
    gpu_buffer_free(f->g, &row_buffer);
}

static void rows_and_lanes(void **state) {
    check_rows_and_lanes(*state, false);
    check_rows_and_lanes(*state, true);
}

static void copies(void **state) {
    fixture *f = *state;
    braid_error err;
    uint32_t in[1000], out[1000];
    for (int hidden = 0; hidden < 2; hidden++) {
        f->g->hide_mappings = hidden != 0;
        gpu_buffer up, down, a, b;
        for (uint32_t i = 0; i < 1000; i++) in[i] = i * 77;
        up = buffer_with(f->g, GPU_UPLOAD, in, sizeof in);
        must(gpu_buffer_new(f->g, GPU_DOWNLOAD, sizeof out, &down, &err), &err);
        must(gpu_buffer_new(f->g, GPU_DEVICE, sizeof in, &a, &err), &err);
        must(gpu_buffer_new(f->g, GPU_DEVICE, sizeof in + 64, &b, &err), &err);
        row_word row = make_row(1000, 100, 5, 1);
        row.from = direct(a.address, 0);
        row.to = direct(b.address + 64, 0);
        gpu_buffer rows = buffer_with(f->g, GPU_DEVICE, &row, sizeof row);
        gpu_dispatch d = make_dispatch(f, &rows, 0, 1, &row);
        gpu_copy copy_in = {&up, &a, 0, 0, sizeof in, 0},
                 copy_out[] = {{&b, &down, 64, 0, 2000, 0}, {&b, &down, 2064, 2000, 2000, 0}, {&b, &down, 0, 0, 0, 0}};
        gpu_program_info info = {.copies_in = &copy_in,
                                 .n_in = 1,
                                 .dispatches = &d,
                                 .n_dispatches = 1,
                                 .copies_out = copy_out,
                                 .n_out = 3,
                                 .run_block = f->run.address,
                                 .lanes = 1};
        gpu_program *p;
        must(gpu_program_new(f->g, &info, &p, &err), &err);
        for (uint32_t k = 0; k < 20; k++) { /* new data each time through the mapping */
            for (uint32_t i = 0; i < 1000; i++) ((uint32_t *)up.mapped)[i] = i * 77 + k;
            must(gpu_program_run(f->g, p, NULL, &err), &err);
            for (uint32_t i = 0; i < 1000; i++) assert_int_equal(((uint32_t *)down.mapped)[i], 5 * (i * 77 + k) + 1);
        }
        gpu_program_free(f->g, p);
        gpu_program_info only = {.copies_in = &copy_in,
                                 .n_in = 1,
                                 .copies_out = &(gpu_copy){.from = &a, .to = &down, .bytes = sizeof in},
                                 .n_out = 1};
        run_once(f, &only, NULL);
        assert_memory_equal(down.mapped, up.mapped, sizeof in);
        copy_out[1].bytes = 2004;
        assert_int_equal(gpu_program_new(f->g, &info, &p, &err), BRAID_INTERNAL);
        assert_null(p);
        gpu_buffer_free(f->g, &up);
        gpu_buffer_free(f->g, &down);
        gpu_buffer_free(f->g, &a);
        gpu_buffer_free(f->g, &b);
        gpu_buffer_free(f->g, &rows);
    }
    f->g->hide_mappings = false;
}

/* Copies of the lanes that a run has, and of what they share: nothing else is touched. */
static void copies_of_lanes(void **state) {
    fixture *f = *state;
    braid_error err;
    enum { MOST = 5, STRIDE = 40, LANE = 24, SHARED = 16, AT = MOST * STRIDE };
    uint8_t in[AT + SHARED];
    gpu_buffer up, down, data;
    for (size_t i = 0; i < sizeof in; i++) in[i] = (uint8_t)(i + 1);
    up = buffer_with(f->g, GPU_UPLOAD, in, sizeof in);
    must(gpu_buffer_new(f->g, GPU_DEVICE, sizeof in, &data, &err), &err);
    must(gpu_buffer_new(f->g, GPU_DOWNLOAD, sizeof in, &down, &err), &err);
    gpu_copy to[] = {{&up, &data, 0, 0, LANE, STRIDE}, {&up, &data, AT, AT, SHARED, 0}};
    gpu_copy back[] = {{&data, &down, 0, 0, LANE, STRIDE}, {&data, &down, AT, AT, SHARED, 0}};
    gpu_program_info info = {.copies_in = to, .n_in = 2, .copies_out = back, .n_out = 2, .run_block = f->run.address,
                             .lanes = MOST};
    gpu_program *p;
    must(gpu_program_new(f->g, &info, &p, &err), &err);
    assert_int_equal(gpu_program_lanes(f->g, p, 0, &err), BRAID_INTERNAL);
    assert_int_equal(gpu_program_lanes(f->g, p, MOST + 1, &err), BRAID_INTERNAL);
    const uint32_t lanes[] = {MOST, 1, 4, 4, 2, MOST};
    for (size_t k = 0; k < COUNT_OF(lanes); k++) {
        must(gpu_buffer_fill(f->g, &data, 0, sizeof in & ~(size_t)3, 0, &err), &err);
        memset(down.mapped, 0xEE, sizeof in);
        if (k) must(gpu_program_lanes(f->g, p, lanes[k], &err), &err);
        must(gpu_program_run(f->g, p, NULL, &err), &err);
        size_t end = (lanes[k] - 1) * STRIDE + LANE;
        assert_memory_equal(down.mapped, in, end);
        for (size_t i = end; i < AT; i++) assert_int_equal(((uint8_t *)down.mapped)[i], 0xEE);
        assert_memory_equal((uint8_t *)down.mapped + AT, in + AT, SHARED);
    }
    gpu_program_free(f->g, p);
    to[0].from_offset = AT;
    assert_int_equal(gpu_program_new(f->g, &info, &p, &err), BRAID_INTERNAL);
    gpu_buffer_free(f->g, &up);
    gpu_buffer_free(f->g, &data);
    gpu_buffer_free(f->g, &down);
}

/* Of the lanes that there is room for only those of a run have groups, whatever the run block says; what is done once
   for all, and a folded product's tiles, do not depend on lanes. z is cut into pieces of 4. */
enum { GRID_WORDS = 100, GRID_LANES = 7, GRID_COPIES = 3, GRID_ALL = GRID_WORDS * GRID_LANES * GRID_COPIES };
typedef struct grids {
    gpu_buffer data, rows;
    gpu_program *p;
    uint32_t out[GRID_ALL];
} grids;

static void grids_new(fixture *f, grids *t) {
    braid_error err;
    row_word row = make_row(GRID_WORDS, 32, 0, 9);
    must(gpu_buffer_new(f->g, GPU_DEVICE, sizeof t->out, &t->data, &err), &err);
    row.to = direct(t->data.address, GRID_COPIES * GRID_WORDS * 4);
    row.to.copy_stride = GRID_WORDS * 4;
    t->rows = buffer_with(f->g, GPU_DEVICE, &row, sizeof row);
    gpu_dispatch d[3];
    for (int i = 0; i < 3; i++) d[i] = make_dispatch(f, &t->rows, 0, 1, &row);
    d[0].copies = d[1].copies = GRID_COPIES;
    d[1].once = true;
    d[2].folded = true;
    gpu_program_info info = {.dispatches = d, .n_dispatches = 3, .run_block = f->run.address, .lanes = GRID_LANES};
    uint32_t saved = f->g->device.max_groups[2];
    f->g->device.max_groups[2] = 4;
    must(gpu_program_new(f->g, &info, &t->p, &err), &err);
    f->g->device.max_groups[2] = saved;
    ((run_block *)f->run.mapped)->lanes = GRID_LANES;
}

static void grids_free(fixture *f, grids *t) {
    ((run_block *)f->run.mapped)->lanes = 1;
    gpu_program_free(f->g, t->p);
    gpu_buffer_free(f->g, &t->data);
    gpu_buffer_free(f->g, &t->rows);
}

static void grids_check(fixture *f, grids *t, uint32_t lanes) {
    braid_error err;
    assert_int_equal(gpu_program_groups(t->p), 4 * (GRID_COPIES * lanes + GRID_COPIES + 1));
    must(gpu_buffer_fill(f->g, &t->data, 0, sizeof t->out, 0, &err), &err);
    must(gpu_program_run(f->g, t->p, NULL, &err), &err);
    must(gpu_download(f->g, &t->data, 0, sizeof t->out, t->out, &err), &err);
    for (uint32_t i = 0; i < GRID_ALL; i++) assert_int_equal(t->out[i], i < lanes * GRID_COPIES * GRID_WORDS ? 9 : 0);
}

static void grids_of_lanes(void **state) {
    fixture *f = *state;
    braid_error err;
    grids t;
    grids_new(f, &t);
    grids_check(f, &t, GRID_LANES);
    for (uint32_t k = 1; k <= 2 * GRID_LANES; k++) {
        uint32_t lanes = k * 5 % GRID_LANES + 1;
        must(gpu_program_lanes(f->g, t.p, lanes, &err), &err);
        grids_check(f, &t, lanes);
    }
    grids_free(f, &t);
}

static int begins; /* that succeed before one fails */
static PFN_vkBeginCommandBuffer real_begin;
static VkResult VKAPI_PTR failing_begin(VkCommandBuffer c, const VkCommandBufferBeginInfo *info) {
    return begins-- == 0 ? VK_ERROR_OUT_OF_HOST_MEMORY : real_begin(c, info);
}

/* A change of lanes that failed half way is made good by the next, also by one to the lanes that it had before. */
static void lanes_again(void **state) {
    fixture *f = *state;
    braid_error err;
    grids t;
    uint8_t bytes[GRID_LANES * 16] = {0};
    gpu_buffer from = buffer_with(f->g, GPU_UPLOAD, bytes, sizeof bytes),
               to = buffer_with(f->g, GPU_DEVICE, bytes, sizeof bytes);
    grids_new(f, &t);
    gpu_program_free(f->g, t.p);
    gpu_copy copy = {&from, &to, 0, 0, 16, 16};
    row_word row = make_row(GRID_WORDS, 32, 0, 9);
    gpu_dispatch d = make_dispatch(f, &t.rows, 0, 1, &row);
    gpu_program_info info = {.dispatches = &d, .n_dispatches = 1, .copies_in = &copy, .n_in = 1,
                             .run_block = f->run.address, .lanes = GRID_LANES};
    must(gpu_program_new(f->g, &info, &t.p, &err), &err);
    real_begin = f->g->vk->BeginCommandBuffer;
    for (int k = 0; k < 4; k++) {
        f->g->vk->BeginCommandBuffer = failing_begin;
        begins = k % 2;
        assert_int_equal(gpu_program_lanes(f->g, t.p, 3, &err), BRAID_HOST_MEMORY);
        f->g->vk->BeginCommandBuffer = real_begin;
        assert_int_equal(gpu_program_run(f->g, t.p, NULL, &err), BRAID_INTERNAL);
        must(gpu_program_lanes(f->g, t.p, k < 2 ? GRID_LANES : 3, &err), &err);
        assert_int_equal(gpu_program_groups(t.p), 4 * (k < 2 ? GRID_LANES : 3));
        must(gpu_program_run(f->g, t.p, NULL, &err), &err);
        must(gpu_program_lanes(f->g, t.p, GRID_LANES, &err), &err);
    }
    grids_free(f, &t);
    gpu_buffer_free(f->g, &from);
    gpu_buffer_free(f->g, &to);
}

/* Two writers of one word in a wave: the order of recording decides on a device that runs them one after another, and
   a shuffled program reverses it. Here only the recording is asked: times ascend in the other direction. */
static void times_and_shuffle(void **state) {
    fixture *f = *state;
    chain c;
    braid_error err;
    uint64_t start[CHAIN], time[CHAIN];
    gpu_times spent;
    chain_make(f, &c);
    for (int i = 0; i < CHAIN; i++) c.dispatches[i].wave = (uint32_t)i / 8;
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        gpu_program_info info = {.dispatches = c.dispatches,
                                 .n_dispatches = CHAIN,
                                 .run_block = f->run.address,
                                 .lanes = 1,
                                 .timestamps = true,
                                 .shuffle = shuffle != 0};
        gpu_program *p;
        must(gpu_program_new(f->g, &info, &p, &err), &err);
        assert_false(gpu_program_times(f->g, p, 0, &start[0], &time[0]));
        must(gpu_program_run(f->g, p, &spent, &err), &err);
        uint64_t sum = 0;
        for (size_t i = 0; i < CHAIN && f->g->device.timestamp_bits; i++) {
            assert_true(gpu_program_times(f->g, p, i, &start[i], &time[i]));
            if (i) assert_int_equal(start[i] >= start[i - 1], !shuffle || i % 8 == 0);
            sum += time[i];
        }
        assert_true(sum <= spent.device_ns);
        assert_false(gpu_program_times(f->g, p, CHAIN, &start[0], &time[0]));
        gpu_program_free(f->g, p);
    }
    chain_free(f, &c);
}

static void nothing_to_do(void **state) {
    fixture *f = *state;
    gpu_program_info info = {.lanes = 1};
    run_once(f, &info, NULL);
    gpu_dispatch empty = {.pipeline = f->word, .rows = 1};
    info.dispatches = &empty;
    info.n_dispatches = 1;
    info.timestamps = true;
    run_once(f, &info, NULL);
    empty.tiles = 5;
    info.lanes = 0;
    run_once(f, &info, NULL);
}

static void refused(void **state) {
    fixture *f = *state;
    braid_error err;
    gpu_program *p = (gpu_program *)1;
    gpu_dispatch d[2] = {{.pipeline = 12345, .tiles = 1}, {.pipeline = f->word, .tiles = 1}};
    gpu_program_info info = {.dispatches = d, .n_dispatches = 2, .lanes = 1};
    assert_int_equal(gpu_program_new(f->g, &info, &p, &err), BRAID_INTERNAL);
    assert_null(p);
    d[0] = (gpu_dispatch){.pipeline = f->word, .tiles = 1, .wave = 2};
    assert_int_equal(gpu_program_new(f->g, &info, &p, &err), BRAID_INTERNAL);
    d[0].wave = 0;
    d[0].tiles = (uint64_t)1 << 31;
    assert_int_equal(gpu_program_new(f->g, &info, &p, &err), BRAID_LIMIT);
    d[0].tiles = 100;
    uint64_t before = mem_count();
    must(gpu_program_new(f->g, &info, &p, &err), &err);
    uint64_t count = mem_count() - before;
    gpu_program_free(f->g, p);
    for (uint64_t n = 1; n <= count; n++) {
        mem_fail_after(n, false);
        assert_int_equal(gpu_program_new(f->g, &info, &p, &err), BRAID_HOST_MEMORY);
        mem_fail_after(0, false);
        assert_null(p);
    }
}

typedef struct job {
    fixture *f;
    atomic_int wrong;
} job;

/* Each thread with its own buffers and program; all share queue and pipeline. */
static void program_job(void *user, size_t id) {
    job *j = user;
    gpu *g = j->f->g;
    gpu_buffer data, rows;
    gpu_program *p = NULL;
    row_word row = make_row(5000, 256, 0, (uint32_t)id);
    uint32_t out[5000];
    bool bad = gpu_buffer_new(g, GPU_DEVICE, sizeof out, &data, NULL) ||
               gpu_buffer_new(g, GPU_DEVICE, sizeof row, &rows, NULL);
    row.to = direct(data.address, 0);
    bad = bad || gpu_upload(g, &rows, 0, sizeof row, fill_from, &row, NULL);
    gpu_dispatch d = make_dispatch(j->f, &rows, 0, 1, &row);
    gpu_program_info info = {.dispatches = &d, .n_dispatches = 1, .run_block = j->f->run.address, .lanes = 1};
    bad = bad || gpu_program_new(g, &info, &p, NULL);
    for (int k = 0; k < 20 && !bad; k++) {
        bad = gpu_buffer_fill(g, &data, 0, sizeof out, 0xffffffff, NULL) || gpu_program_run(g, p, NULL, NULL) ||
              gpu_download(g, &data, 0, sizeof out, out, NULL);
        for (uint32_t i = 0; i < 5000 && !bad; i++) bad = out[i] != (uint32_t)id;
    }
    if (bad) atomic_fetch_add(&j->wrong, 1);
    gpu_program_free(g, p);
    gpu_buffer_free(g, &data);
    gpu_buffer_free(g, &rows);
}

static void many_threads(void **state) {
    job j = {.f = *state};
    atomic_init(&j.wrong, 0);
    parallel_for(24, 8, program_job, &j);
    assert_int_equal(atomic_load(&j.wrong), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waves),          cmocka_unit_test(long_work_is_cut), cmocka_unit_test(small_grids),
        cmocka_unit_test(rows_and_lanes), cmocka_unit_test(copies),           cmocka_unit_test(times_and_shuffle),
        cmocka_unit_test(copies_of_lanes), cmocka_unit_test(grids_of_lanes),  cmocka_unit_test(lanes_again),
        cmocka_unit_test(nothing_to_do),  cmocka_unit_test(refused),          cmocka_unit_test(many_threads),
    };
    return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
