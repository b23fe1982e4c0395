/*
 * pass_text.c: runs every tests/pass/NAME.graph: a line "passes: a b", a graph, a line "---", the expected graph.
 * "passes: -" only infers. With BLESS=1 in the environment the expectations are written anew.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "pass/pass.h"

static char *slurp(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    char *data = calloc(1, 1 << 20);
    size_t n = fread(data, 1, (1 << 20) - 1, f);
    data[n] = 0;
    fclose(f);
    return data;
}

/* Runs the passes; the printed graph, or "error: ..." as text. */
static void run_passes(char *names, const char *source, text *out) {
    braid_error err = {0};
    arena *memory = arena_new();
    graph *g = NULL;
    braid_status status = graph_parse(memory, source, &g, &err);
    if (status == BRAID_OK) {
        graph_find_ops(g);
        status = graph_infer(g, &err);
    }
    char *save = NULL;
    for (char *name = strtok_r(names, " \n", &save); name && status == BRAID_OK; name = strtok_r(NULL, " \n", &save))
        if (strcmp(name, "-") != 0) status = pass_run(name, g, memory, NULL, &g, &err);
    if (status == BRAID_OK) graph_print(g, out);
    else text_add(out, "error: %s: %s\n", braid_status_name(status), err.message);
    arena_free(memory);
}

static bool run_file(const char *path, bool bless) {
    char *data = slurp(path), *body = data ? strchr(data, '\n') : NULL;
    char *split = body ? strstr(body, "\n---\n") : NULL;
    if (!split || strncmp(data, "passes: ", 8) != 0) {
        print_error("%s: not a pass test\n", path);
        free(data);
        return false;
    }
    *body++ = 0;
    split[1] = 0;
    char *names = strdup(data + 8);
    text found = {0};
    run_passes(names, body, &found);
    bool same = strcmp(found.data ? found.data : "", split + 5) == 0;
    if (!same && bless) {
        FILE *f = fopen(path, "wb");
        fprintf(f, "%s\n%s---\n%s", data, body, found.data);
        fclose(f);
    } else if (!same) {
        print_error("%s: expected\n%s\nfound\n%s\n", path, split + 5, found.data);
    }
    text_free(&found);
    free(names);
    free(data);
    return same || bless;
}

static void passes(void **state) {
    (void)state;
    DIR *d = opendir(TEST_SOURCE "/pass");
    assert_non_null(d);
    int count = 0, failed = 0;
    for (struct dirent *e; (e = readdir(d));) {
        size_t n = strlen(e->d_name);
        if (n < 6 || strcmp(e->d_name + n - 6, ".graph") != 0) continue;
        char path[1024];
        snprintf(path, sizeof path, "%s/pass/%s", TEST_SOURCE, e->d_name);
        failed += !run_file(path, getenv("BLESS") != NULL);
        count++;
    }
    closedir(d);
    assert_true(count > 0);
    assert_int_equal(failed, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(passes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
