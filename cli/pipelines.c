/* pipelines: what making a session's pipelines took. */
#include "cli.h"

#include <jansson.h>
#include <stdlib.h>

enum { SHOWN = 3 };

const braid_pipeline_time *pipelines_slowest(const braid_session *s, size_t from) {
    const braid_pipeline_time *list = NULL, *slowest = NULL;
    size_t n = braid_session_pipelines(s, &list);
    for (size_t i = from; i < n; i++)
        if (!slowest || list[i].create_ns > slowest->create_ns) slowest = &list[i];
    return slowest;
}

size_t pipelines_cached(const braid_session *s, size_t from) {
    const braid_pipeline_time *list = NULL;
    size_t n = braid_session_pipelines(s, &list), cached = 0;
    for (size_t i = from; i < n; i++) cached += list[i].cached;
    return cached;
}

static int by_time(const void *a, const void *b) {
    const braid_pipeline_time *const *x = a, *const *y = b;
    return ((*x)->create_ns < (*y)->create_ns) - ((*x)->create_ns > (*y)->create_ns);
}

static void print_one(const braid_pipeline_time *t, bool figures) {
    char *node = text_clean(t->node);
    printf("%10.2f %10.2f %8.1f %-8s %-22s %s%s%s '%s'\n", (double)t->create_ns / 1e6, (double)t->busy_ns / 1e6,
           (double)t->module_bytes / 1e3, t->cached ? "cache" : "", t->kernel, t->variant, *t->variant ? ": " : "",
           t->op, node ? node : "");
    free(node);
    if (figures && *t->figures) printf("%10s %s\n", "", t->figures);
}

static void print_table(const braid_pipeline_time *list, size_t n, bool all) {
    const braid_pipeline_time **order = calloc(n + 1, sizeof *order);
    if (!order) return;
    for (size_t i = 0; i < n; i++) order[i] = &list[i];
    qsort(order, n, sizeof *order, by_time);
    printf("%10s %10s %8s %-8s %-22s %s\n", "create ms", "busy ms", "SPIR-V k", "from", "kernel",
           "variant: first node");
    for (size_t i = 0; i < n && (all || i < SHOWN); i++) print_one(order[i], all);
    free(order);
}

void pipelines_print(const engine *e, bool all) {
    const braid_pipeline_time *list = NULL;
    size_t n = braid_session_pipelines(e->session, &list);
    braid_plan_stats stats;
    uint64_t sum = 0;
    bool figures = false;
    braid_session_stats(e->session, &stats);
    for (size_t i = 0; i < n; i++) {
        sum += list[i].create_ns;
        figures = figures || *list[i].figures;
    }
    printf(
        "load %.1f ms, plan %.1f ms; %zu pipelines made in %.1f ms (%.1f ms one after the other), %zu from the cache\n",
        (double)e->load_ns / 1e6, (double)e->plan_ns / 1e6, n, (double)stats.pipelines_ns / 1e6, (double)sum / 1e6,
        pipelines_cached(e->session, 0));
    if (n) print_table(list, n, all);
    if (n && all && !figures) puts("the driver tells nothing of their code");
}

void pipelines_print_json(const engine *e) {
    const braid_pipeline_time *list = NULL;
    size_t n = braid_session_pipelines(e->session, &list);
    json_t *root = json_array();
    for (size_t i = 0; i < n; i++) {
        const braid_pipeline_time *t = &list[i];
        char *node = text_clean(t->node);
        json_t *row = json_pack("{ss ss ss ss sI sI sI sb ss}", "kernel", t->kernel, "variant", t->variant, "node",
                                node ? node : "", "op", t->op, "create_ns", (json_int_t)t->create_ns, "busy_ns",
                                (json_int_t)t->busy_ns, "module_bytes", (json_int_t)t->module_bytes, "cached",
                                t->cached, "figures", t->figures);
        json_array_append_new(root, row);
        free(node);
    }
    json_dumpf(root, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(root);
}
