/*
 * base/file.c: reading, and the table of hostile locations below a root, through openat2 and through the walk.
 * labels: quick
 */
#include "base/base.h"
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char top[64], root[128];

static void put(const char *name, const char *content) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", top, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(content, f);
    fclose(f);
}

static const char *at(const char *name) {
    static char path[2][512];
    static int turn;
    turn ^= 1;
    snprintf(path[turn], sizeof path[turn], "%s/%s", top, name);
    return path[turn];
}

static int make(void **state) {
    (void)state;
    snprintf(top, sizeof top, "./file_test_XXXXXX");
    if (!mkdtemp(top)) return -1;
    snprintf(root, sizeof root, "%s/root", top);
    mkdir(root, 0700);
    mkdir(at("root/sub"), 0700);
    mkdir(at("root/..hidden"), 0700);
    mkdir(at("outside"), 0700);
    put("root/w.bin", "weights");
    put("root/sub/w.bin", "below");
    put("root/..hidden/w.bin", "dots");
    put("root/gone", "x");
    put("outside/secret", "secret");
    int bad = symlink("../outside/secret", at("root/link")) | symlink("../outside", at("root/folder_link")) |
              symlink("w.bin", at("root/inner_link")) | symlink("loop", at("root/loop")) |
              symlink("nowhere", at("root/dangling")) | symlink("/proc/self", at("root/magic")) |
              link(at("outside/secret"), at("root/hard")) | mkfifo(at("root/fifo"), 0600) |
              symlink("root", at("root_link"));
    return bad;
}

static int unmake(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", top);
    return system(command);
}

typedef braid_status open_fn(const char *, const char *, file **, braid_error *);

static void expect(open_fn *open_below, const char *location, braid_status wanted, const char *content) {
    file *f = NULL;
    braid_error err = {0};
    braid_status got = open_below(root, location, &f, &err);
    if (got != wanted) print_error("'%s': %s (%s)\n", location, braid_status_name(got), err.message);
    assert_int_equal(got, wanted);
    if (wanted) {
        assert_null(f);
        assert_true(strlen(err.message) > 0);
        return;
    }
    char bytes[32] = "";
    assert_int_equal(file_read(f, 0, bytes, (size_t)file_size(f), &err), BRAID_OK);
    assert_string_equal(bytes, content);
    file_unref(f);
}

static void table(open_fn *open_below) {
    static char longest[5000], component[400];
    memset(longest, 'a', sizeof longest - 1);
    memset(component, 'a', sizeof component - 1);
    expect(open_below, "w.bin", BRAID_OK, "weights");
    expect(open_below, "./w.bin", BRAID_OK, "weights");
    expect(open_below, "sub/w.bin", BRAID_OK, "below");
    expect(open_below, "sub//w.bin", BRAID_OK, "below");
    expect(open_below, "./sub/./w.bin", BRAID_OK, "below");
    expect(open_below, "..hidden/w.bin", BRAID_OK, "dots");
    static const char *const refused[] = {"",
                                          "/",
                                          "/etc/passwd",
                                          "//etc/passwd",
                                          "..",
                                          "../outside/secret",
                                          "sub/../w.bin",
                                          "sub/../../outside/secret",
                                          "./../outside/secret",
                                          "sub/..",
                                          "sub/",
                                          "w.bin/",
                                          "C:\\w.bin",
                                          "..\\outside\\secret",
                                          "sub\\w.bin",
                                          "link",
                                          "inner_link",
                                          "folder_link/secret",
                                          "loop",
                                          "dangling",
                                          "hard"};
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        file *f = NULL;
        braid_error err = {0};
        braid_status got = open_below(root, refused[i], &f, &err);
        if (got != BRAID_MODEL && !(got == BRAID_IO && strstr(refused[i], "folder_link"))) {
            print_error("'%s': %s (%s)\n", refused[i], braid_status_name(got), err.message);
            fail();
        }
        assert_null(f);
    }
    expect(open_below, longest, BRAID_MODEL, NULL);
    expect(open_below, component, BRAID_IO, NULL);
    expect(open_below, "absent", BRAID_IO, NULL);
    expect(open_below, "absent/w.bin", BRAID_IO, NULL);
    expect(open_below, "w.bin/x", BRAID_IO, NULL);
    expect(open_below, "sub", BRAID_IO, NULL);
    expect(open_below, ".", BRAID_IO, NULL);
    expect(open_below, "fifo", BRAID_IO, NULL);
    expect(open_below, "magic/cwd/x", open_below == file_open_walk ? BRAID_IO : BRAID_MODEL, NULL);
}

static void hostile_names_in_the_kernel(void **state) {
    (void)state;
    table(file_open_beneath);
}

static void hostile_names_by_walk(void **state) {
    (void)state;
    table(file_open_walk);
}

static void the_root_may_be_a_link(void **state) {
    (void)state;
    file *f;
    assert_int_equal(file_open_beneath(at("root_link"), "w.bin", &f, NULL), BRAID_OK);
    file_unref(f);
    assert_int_equal(file_open_walk(at("root_link"), "w.bin", &f, NULL), BRAID_OK);
    file_unref(f);
    assert_int_equal(file_open_beneath(at("absent"), "w.bin", &f, NULL), BRAID_IO);
}

static void reads_are_exact(void **state) {
    (void)state;
    file *f, *m;
    char bytes[16] = "";
    assert_int_equal(file_open(at("root/w.bin"), &f, NULL), BRAID_OK);
    assert_int_equal(file_size(f), 7);
    assert_int_equal(file_read(f, 3, bytes, 4, NULL), BRAID_OK);
    assert_memory_equal(bytes, "ghts", 4);
    assert_int_equal(file_read(f, 7, bytes, 0, NULL), BRAID_OK);
    assert_int_equal(file_read(f, 7, bytes, 1, NULL), BRAID_IO);
    assert_int_equal(file_read(f, 8, bytes, 0, NULL), BRAID_IO);
    assert_int_equal(file_read(f, UINT64_MAX, bytes, 2, NULL), BRAID_IO);
    assert_int_equal(file_read(f, 1, bytes, SIZE_MAX, NULL), BRAID_IO);
    assert_int_equal(file_from_memory("hello", 5, &m, NULL), BRAID_OK);
    assert_int_equal(file_read(m, 1, bytes, 4, NULL), BRAID_OK);
    assert_memory_equal(bytes, "ello", 4);
    assert_int_equal(file_read(m, 1, bytes, 5, NULL), BRAID_IO);
    file_unref(file_ref(m));
    file_unref(m);
    file_unref(f);
    file_unref(NULL);
    assert_int_equal(file_open(top, &f, NULL), BRAID_IO);
    assert_int_equal(file_open(at("root/fifo"), &f, NULL), BRAID_IO);
    assert_int_equal(file_open("", &f, NULL), BRAID_IO);
}

static void a_shrinking_file_is_an_error(void **state) {
    (void)state;
    file *f;
    char bytes[8];
    braid_error err = {0};
    assert_int_equal(file_open(at("root/gone"), &f, NULL), BRAID_OK);
    assert_int_equal(truncate(at("root/gone"), 0), 0);
    assert_int_equal(file_read(f, 0, bytes, 1, &err), BRAID_IO);
    assert_non_null(strstr(err.message, "ended at 0"));
    file_unref(f);
}

static void allocation_failure_leaks_nothing(void **state) {
    (void)state;
    file *f;
    mem_fail_after(1, false);
    assert_int_equal(file_open(at("root/w.bin"), &f, NULL), BRAID_HOST_MEMORY);
    mem_fail_after(1, false);
    assert_int_equal(file_open_beneath(root, "w.bin", &f, NULL), BRAID_HOST_MEMORY);
    mem_fail_after(0, false);
    assert_null(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_names_in_the_kernel),  cmocka_unit_test(hostile_names_by_walk),
        cmocka_unit_test(the_root_may_be_a_link),       cmocka_unit_test(reads_are_exact),
        cmocka_unit_test(a_shrinking_file_is_an_error), cmocka_unit_test(allocation_failure_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, make, unmake);
}
