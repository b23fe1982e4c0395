/*
 * report.c: models and the operator table as text.
 */
#include "api/api.h"

#include <stdio.h>
#include <stdlib.h>

/* Calls `visit` for every node of g and of its subgraphs. */
typedef void visit_fn(void *user, const node *);
static void visit_nodes(const graph *g, visit_fn *visit, void *user) {
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const node *n = g->nodes[i];
        visit(user, n);
        for (int k = 0; k < n->n_attributes; k++) {
            const attribute *a = &n->attributes[k];
            if (a->kind == ATTRIBUTE_GRAPH) visit_nodes(a->g, visit, user);
            if (a->kind == ATTRIBUTE_GRAPHS)
                for (size_t j = 0; j < a->count; j++) visit_nodes(a->graphs[j], visit, user);
        }
    }
}

/* ---- operators with their attributes */

typedef struct use {
    const char *op, *attributes;
} use;

typedef struct uses {
    arena *memory;
    use *list;
    size_t n, capacity;
    bool failed;
} uses;

static void note_use(void *user, const node *n) {
    uses *u = user;
    if (u->n == u->capacity) {
        size_t larger = u->capacity * 2 + 64;
        use *list = arena_array(u->memory, larger, sizeof *list);
        if (!list) {
            u->failed = true;
            return;
        }
        if (u->n) memcpy(list, u->list, u->n * sizeof *list);
        u->list = list;
        u->capacity = larger;
    }
    text t = {0};
    node_print_attributes(n, &t);
    use *at = &u->list[u->n++];
    at->op = arena_format(u->memory, "%s%s%s-%d", n->domain, *n->domain ? "." : "", n->type, n->opset);
    at->attributes = t.data ? arena_string(u->memory, t.data, t.length) : "";
    if (!at->op || !at->attributes || t.failed) {
        u->failed = true;
        u->n--;
    }
    text_free(&t);
}

static int compare_uses(const void *a, const void *b) {
    const use *x = a, *y = b;
    int by_op = strcmp(x->op, y->op);
    return by_op ? by_op : strcmp(x->attributes, y->attributes);
}

static size_t run_length(const uses *u, size_t from, bool attributes) {
    size_t to = from + 1;
    while (to < u->n && strcmp(u->list[to].op, u->list[from].op) == 0 &&
           (!attributes || strcmp(u->list[to].attributes, u->list[from].attributes) == 0))
        to++;
    return to - from;
}

static void print_uses(uses *u, text *t) {
    if (u->n) qsort(u->list, u->n, sizeof *u->list, compare_uses);
    for (size_t i = 0; i < u->n;) {
        size_t end = i + run_length(u, i, false);
        text_add_shown(t, "operator   %-24s %6zu", u->list[i].op, end - i);
        text_add(t, "\n");
        while (i < end) {
            size_t same = run_length(u, i, true);
            if (*u->list[i].attributes) text_add(t, "           %6zu  {%s}\n", same, u->list[i].attributes);
            i += same;
        }
    }
}

static void print_operators(const graph *g, text *t) {
    uses u = {.memory = arena_new()};
    if (u.memory) visit_nodes(g, note_use, &u);
    if (!u.memory || u.failed) t->failed = true;
    print_uses(&u, t);
    arena_free(u.memory);
}

/* ---- the model */

static void print_port(const char *what, const braid_port *p, text *t) {
    text_add_shown(t, "%-10s '%s': %s", what, p->name, p->type ? braid_type_name(p->type) : "?");
    if (p->rank >= 0) text_add(t, "[");
    for (int i = 0; i < p->rank; i++) {
        if (i) text_add(t, ",");
        if (p->dims[i] >= 0)
            text_add(t, "%lld", (long long)p->dims[i]);
        else
            text_add_shown(t, "%s", p->symbols[i] ? p->symbols[i] : "?");
    }
    text_add(t, p->rank >= 0 ? "]\n" : "\n");
}

static void print_info(const braid_model *m, text *t) {
    const onnx_model *x = m->m;
    text_add(t, "format     ONNX IR %lld, %llu bytes\n", (long long)x->ir_version, (unsigned long long)x->bytes);
    if (*x->producer) {
        text_add_shown(t, "producer   %s%s%s", x->producer, *x->producer_version ? " " : "", x->producer_version);
        text_add(t, "\n");
    }
    if (*x->domain || x->model_version) {
        text_add_shown(t, "model      %s version %lld", x->domain, (long long)x->model_version);
        text_add(t, "\n");
    }
    for (size_t i = 0; i < x->n_opsets; i++) {
        text_add_shown(t, "opset      %s %lld", *x->opsets[i].domain ? x->opsets[i].domain : "ai.onnx",
                       (long long)x->opsets[i].version);
        text_add(t, "\n");
    }
    if (x->n_functions) text_add(t, "functions  %zu, inlined\n", x->n_functions);
    for (size_t i = 0; i < braid_model_input_count(m); i++) print_port("input", braid_model_input(m, i), t);
    for (size_t i = 0; i < braid_model_output_count(m); i++) print_port("output", braid_model_output(m, i), t);
    text_add(t, "parameters %llu in %llu bytes\n", (unsigned long long)x->parameters,
             (unsigned long long)x->parameter_bytes);
    text_add(t, "nodes      %d\n", (int)x->g->n_nodes);
    print_operators(x->g, t);
}

static void print_unsupported(void *user, const node *n) {
    char title[256];
    if (n->op && (n->op->eval || n->op->lower)) return;
    text_add_shown(user, "%s, domain '%s': not supported", node_title(n, title), *n->domain ? n->domain : "ai.onnx");
    text_add(user, "\n");
}

/* Hands the text over, "" when nothing was written. */
static braid_status finish_text(text *t, char **out, braid_error *err) {
    text_add(t, "%s", "");
    if (t->failed || !t->data) {
        text_free(t);
        return error_memory(err);
    }
    *out = t->data;
    return BRAID_OK;
}

braid_status braid_model_describe(const braid_model *m, braid_model_report report, char **out, braid_error *err) {
    error_clear(err);
    if (!m || !out) return error_set(err, BRAID_ARGUMENT, "braid_model_describe: model or out is NULL");
    text t = {0};
    switch (report) {
    case BRAID_REPORT_INFO:
        print_info(m, &t);
        break;
    case BRAID_REPORT_GRAPH:
        graph_print(m->m->g, &t);
        break;
    case BRAID_REPORT_SUPPORT:
        visit_nodes(m->m->g, print_unsupported, &t);
        break;
    default:
        return error_set(err, BRAID_ARGUMENT, "braid_model_describe: no report %d", (int)report);
    }
    return finish_text(&t, out, err);
}

braid_status braid_ops_describe(char **out, braid_error *err) {
    error_clear(err);
    if (!out) return error_set(err, BRAID_ARGUMENT, "braid_ops_describe: out is NULL");
    text t = {0};
    const op *o;
    text_add(&t, "%-20s %-28s %5s %5s %6s %4s\n", "domain", "operator", "since", "until", "device", "host");
    for (size_t i = 0; (o = op_at(i)) != NULL; i++) {
        char until[16] = "-";
        if (o->until) snprintf(until, sizeof until, "%d", o->until);
        text_add(&t, "%-20s %-28s %5d %5s %6s %4s\n", o->domain ? o->domain : "ai.onnx", o->name, o->since, until,
                 o->lower || o->emit ? "yes" : "-", o->eval ? "yes" : "-");
    }
    return finish_text(&t, out, err);
}

void braid_text_free(char *s) {
    mem_free(s);
}
