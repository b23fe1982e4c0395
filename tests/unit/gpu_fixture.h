/* gpu_fixture.h: an open device under the validation layer, a run block, and kernel `word` as the tests' only kernel.
 */
#ifndef GPU_FIXTURE_H
#define GPU_FIXTURE_H
#include "gpu/inside.h"
#include "kernels/rows/word.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

typedef struct fixture {
    gpu *g;
    gpu_buffer run;
    uint32_t word;  /* pipeline */
    int complaints; /* lines of the validation layer, also those of closing */
    int lines;
} fixture;

static inline void fixture_log(void *user, braid_log_level level, const char *line) {
    fixture *f = user;
    f->lines++;
    if (strncmp(line, "validation:", 11) != 0) return;
    f->complaints++;
    print_error("%d %s\n", (int)level, line);
}

static inline void must(braid_status status, const braid_error *err) {
    if (status) print_error("%s: %s\n", braid_status_name(status), err->message);
    assert_int_equal(status, BRAID_OK);
}

static inline braid_device_options fixture_options(fixture *f) {
    const char *select = getenv("BRAID_TEST_DEVICE");
    return (braid_device_options){.size = sizeof(braid_device_options),
                                  .select = select,
                                  .no_cache = true,
                                  .validation = true,
                                  .log = fixture_log,
                                  .log_user = f};
}

static inline uint32_t word_pipeline(gpu *g, uint32_t group) {
    braid_error err;
    const uint32_t ids[] = {SPEC_GROUP, SPEC_SUBGROUP}, values[] = {group, gpu_traits(g)->subgroup};
    gpu_pipeline_key key = {"word", 2, ids, values};
    uint32_t handle;
    must(gpu_pipelines(g, 1, &key, &handle, NULL, &err), &err);
    return handle;
}

static inline int fixture_open(void **state) {
    static fixture f;
    braid_error err = {0};
    f = (fixture){0};
    *state = &f;
    braid_device_options options = fixture_options(&f);
    must(gpu_open(&options, &f.g, &err), &err);
    must(gpu_buffer_new(f.g, GPU_SHARED, sizeof(run_block) + 64 * sizeof(binding), &f.run, &err), &err);
    *(run_block *)f.run.mapped = (run_block){.lanes = 1};
    f.word = word_pipeline(f.g, 64);
    return 0;
}

static inline int fixture_close(void **state) {
    fixture *f = *state;
    gpu_buffer_free(f->g, &f->run);
    assert_int_equal(gpu_validation_messages(f->g), 0);
    uint64_t staging = 0;
    for (int i = 0; i < 2; i++) {
        const gpu_staging *t = &f->g->staging;
        staging +=
            (t->up[i].private_ ? t->up[i].private_->taken : 0) + (t->down[i].private_ ? t->down[i].private_->taken : 0);
    }
    assert_int_equal(atomic_load(&f->g->allocated), staging);
    gpu_close(f->g);
    assert_int_equal(f->complaints, 0); /* leaked objects are told at the end */
    return 0;
}

static inline operand direct(uint64_t address, uint64_t lane_stride) {
    return (operand){.base = address, .lane_stride = lane_stride, .kind = OPERAND_DIRECT};
}

static inline braid_status fill_from(void *user, uint64_t at, void *to, size_t n, braid_error *err) {
    (void)err;
    memcpy(to, (const uint8_t *)user + at, n);
    return BRAID_OK;
}

/* A buffer holding these bytes. */
static inline gpu_buffer buffer_with(gpu *g, gpu_memory purpose, const void *bytes, size_t n) {
    braid_error err;
    gpu_buffer b;
    must(gpu_buffer_new(g, purpose, n, &b, &err), &err);
    must(gpu_upload(g, &b, 0, n, fill_from, (void *)bytes, &err), &err);
    return b;
}

#endif
