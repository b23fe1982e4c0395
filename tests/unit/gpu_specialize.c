/*
 * Every embedded module can be specialized; doing it again changes nothing; a program of one step keeps one step.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "gpu/gpu.h"
#include "gpu/specialize.h"

static void every_module(void **state) {
    (void)state;
    for (size_t i = 0; i < gpu_shader_count; i++) {
        const gpu_shader *s = &gpu_shaders[i];
        uint32_t *once, *twice;
        size_t n_once, n_twice;
        if (!spirv_specialize(s->code, s->bytes / 4, 0, NULL, NULL, &once, &n_once)) fail_msg("%s", s->name);
        if (!spirv_specialize(once, n_once, 0, NULL, NULL, &twice, &n_twice)) fail_msg("%s again", s->name);
        assert_true(n_once <= s->bytes / 4 * 4);
        assert_true(n_twice <= n_once);
        mem_free(once);
        mem_free(twice);
    }
}

static void one_step(void **state) {
    (void)state;
    for (size_t i = 0; i < gpu_shader_count; i++) {
        const gpu_shader *s = &gpu_shaders[i];
        if (strcmp(s->name, "map_f32") != 0) continue;
        const uint32_t ids[] = {SPEC_GROUP, SPEC_PROGRAM}, values[] = {64, 2 | 1 << 13};
        uint32_t *out;
        size_t n;
        assert_true(spirv_specialize(s->code, s->bytes / 4, 2, ids, values, &out, &n));
        assert_true(n < s->bytes / 4 / 2);
        mem_free(out);
    }
}

/* Hostile or cut modules are refused, not walked off the end of. */
static void damaged(void **state) {
    (void)state;
    const gpu_shader *s = &gpu_shaders[0];
    size_t words = s->bytes / 4;
    uint32_t *code = mem_alloc(s->bytes);
    assert_non_null(code);
    for (size_t cut = 0; cut < words; cut += words / 50 + 1) {
        uint32_t *out;
        size_t n;
        memcpy(code, s->code, s->bytes);
        if (spirv_specialize(code, cut, 0, NULL, NULL, &out, &n)) mem_free(out);
    }
    mem_free(code);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_module), cmocka_unit_test(one_step),
                                       cmocka_unit_test(damaged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
