/*
 * print.c: a graph as text; parse.c is the inverse. The grammar stands in graph.h.
 *
 * A value goes by its name where that is not empty and unique in its graph, otherwise by `name%N`, where N counts
 * values in the order they are printed. Fresh symbols are `?N` in the order they are printed. Hence printing what was
 * parsed gives the same text.
 */
#include "ir/graph.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { LARGE = 64 /* elements of a constant that is not printed in full */ };

typedef struct scope {
    const graph *g;
    const struct scope *parent;
    int32_t *number; /* of each value in print order; -1: its name alone will do */
} scope;

typedef struct printer {
    text *t;
    const graph *root;
    int32_t *symbols; /* print number of each fresh symbol, -1 not yet */
    int32_t n_fresh;
} printer;

static void print_graph(printer *, const graph *, const scope *parent, int indent);

static bool is_plain(const char *s) {
    static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_/";
    static const char rest[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_/.0123456789";
    return *s && strchr(first, *s) && s[strspn(s, rest)] == 0;
}

static void print_string(text *t, const char *s, size_t n) {
    text_add(t, "\"");
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '"' || c == '\\')
            text_add(t, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            text_add(t, "\\x%02x", c);
        else
            text_add(t, "%c", c);
    }
    text_add(t, "\"");
}

static void print_name(text *t, const char *s) {
    if (is_plain(s))
        text_add(t, "%s", s);
    else
        print_string(t, s, strlen(s));
}

static void print_reference(text *t, const scope *in, int32_t v) {
    if (v < 0) {
        text_add(t, "-");
        return;
    }
    const char *name = in->g->values[v]->name;
    if (*name || in->number[v] < 0) print_name(t, name);
    if (in->number[v] >= 0) text_add(t, "%%%d", (int)in->number[v]);
}

static void print_dim(printer *p, int64_t d) {
    if (dim_known(d)) {
        text_add(p->t, "%lld", (long long)d);
        return;
    }
    uint32_t id = dim_symbol(d);
    if (id >= (uint32_t)p->root->n_symbols) {
        text_add(p->t, "!");
    } else if (p->root->symbols[id]) {
        print_name(p->t, p->root->symbols[id]);
    } else {
        if (p->symbols[id] < 0) p->symbols[id] = p->n_fresh++;
        text_add(p->t, "?%d", (int)p->symbols[id]);
    }
}

static void print_type(printer *p, const tensor_type *type) {
    text_add(p->t, "%s", type->type ? braid_type_name(type->type) : "?");
    if (type->rank < 0) return;
    text_add(p->t, "[");
    for (int i = 0; i < type->rank; i++) {
        if (i) text_add(p->t, ",");
        print_dim(p, type->dims[i]);
    }
    text_add(p->t, "]");
}

static void print_declaration(printer *p, const scope *in, int32_t v) {
    print_reference(p->t, in, v);
    if (v < 0) return;
    const tensor_type *type = &in->g->values[v]->type;
    int32_t copies = value_copies(in->g->values[v]);
    if (!type->type && type->rank < 0 && copies == 1) return;
    text_add(p->t, ": ");
    if (copies > 1) text_add(p->t, "%d x ", (int)copies);
    print_type(p, type);
}

/* `marked`: so that it cannot be taken for an integer. */
static void print_float(text *t, double v, int digits, bool marked) {
    char buffer[40];
    if (isnan(v)) {
        text_add(t, "nan");
    } else if (isinf(v)) {
        text_add(t, v < 0 ? "-inf" : "inf");
    } else {
        snprintf(buffer, sizeof buffer, "%.*g", digits, v);
        text_add(t, "%s%s", buffer, marked && !strpbrk(buffer, ".e") ? ".0" : "");
    }
}

static void print_element(text *t, braid_type type, const void *data, int64_t i) {
    if (type == BRAID_STRING) {
        const char *s = ((const char *const *)data)[i];
        print_string(t, s, strlen(s));
    } else if (type_is_float(type)) {
        print_float(t, element_f64(type, data, i), type == BRAID_FLOAT64 ? 17 : 9, false);
    } else if (type == BRAID_UINT64) {
        text_add(t, "%llu", (unsigned long long)element_i64(type, data, i));
    } else {
        text_add(t, "%lld", (long long)element_i64(type, data, i));
    }
}

static void print_content(text *t, const tensor *x, int64_t count, const void *data) {
    braid_type type = x->type.type;
    if (type_is_float(type) || type_is_integer(type) || type == BRAID_BOOL || type == BRAID_STRING) {
        text_add(t, "{");
        for (int64_t i = 0; i < count; i++) {
            if (i) text_add(t, ", ");
            print_element(t, type, data, i);
        }
        text_add(t, "}");
        return;
    }
    text_add(t, "hex \"");
    for (size_t i = 0; i < x->bytes; i++) text_add(t, "%02x", ((const uint8_t *)data)[i]);
    text_add(t, "\"");
}

static void print_tensor(text *t, const tensor *x) {
    uint64_t buffer[LARGE * 2]; /* the widest element has 16 bytes */
    int64_t count = 0;
    const void *data = x->data;
    bool small = tensor_type_count(&x->type, &count) && count <= LARGE;
    if (small && !data && x->bytes <= sizeof buffer) {
        data = buffer;
        if (x->bytes && file_read(x->source, x->offset, buffer, x->bytes, NULL) != BRAID_OK) data = NULL;
    }
    if (small && data)
        print_content(t, x, count, data);
    else
        text_add(t, "<%zu bytes>", x->bytes);
}

static void print_tensor_attribute(printer *p, const tensor *x) {
    text_add(p->t, "tensor ");
    print_type(p, &x->type);
    text_add(p->t, " ");
    print_tensor(p->t, x);
}

static void print_item(printer *p, const attribute *a, size_t i, const scope *in, int indent) {
    switch (a->kind) {
    case ATTRIBUTE_FLOATS:
        print_float(p->t, (double)a->floats[i], 9, true);
        break;
    case ATTRIBUTE_INTS:
        text_add(p->t, "%lld", (long long)a->ints[i]);
        break;
    case ATTRIBUTE_STRINGS:
        print_string(p->t, a->strings[i], strlen(a->strings[i]));
        break;
    case ATTRIBUTE_TENSORS:
        print_tensor_attribute(p, a->tensors[i]);
        break;
    case ATTRIBUTE_GRAPHS:
        print_graph(p, a->graphs[i], in, indent);
        break;
    default:
        break;
    }
}

static void print_list(printer *p, const attribute *a, const scope *in, int indent) {
    static const char *const empty[] = {[ATTRIBUTE_FLOATS] = "floats ",
                                        [ATTRIBUTE_INTS] = "",
                                        [ATTRIBUTE_STRINGS] = "strings ",
                                        [ATTRIBUTE_TENSORS] = "tensors ",
                                        [ATTRIBUTE_GRAPHS] = "graphs "};
    if (a->count == 0) text_add(p->t, "%s", empty[a->kind]);
    text_add(p->t, "[");
    for (size_t i = 0; i < a->count; i++) {
        if (i) text_add(p->t, ", ");
        print_item(p, a, i, in, indent);
    }
    text_add(p->t, "]");
}

static void print_attribute(printer *p, const attribute *a, const scope *in, int indent) {
    print_name(p->t, a->name);
    text_add(p->t, " = ");
    switch (a->kind) {
    case ATTRIBUTE_FLOAT:
        print_float(p->t, (double)a->f, 9, true);
        break;
    case ATTRIBUTE_INT:
        text_add(p->t, "%lld", (long long)a->i);
        break;
    case ATTRIBUTE_STRING:
        print_string(p->t, a->s, a->count);
        break;
    case ATTRIBUTE_TENSOR:
        print_tensor_attribute(p, a->t);
        break;
    case ATTRIBUTE_GRAPH:
        print_graph(p, a->g, in, indent);
        break;
    case ATTRIBUTE_OTHER:
        text_add(p->t, "other");
        break;
    default:
        print_list(p, a, in, indent);
    }
}

void node_print_attributes(const node *n, text *t) {
    printer p = {.t = t};
    for (int i = 0; i < n->n_attributes; i++) {
        const attribute *a = &n->attributes[i];
        if (i) text_add(t, ", ");
        if (a->kind == ATTRIBUTE_GRAPH || a->kind == ATTRIBUTE_GRAPHS)
            text_add(t, "%s = graph", a->name);
        else
            print_attribute(&p, a, NULL, 0);
    }
}

static void print_epilogue(text *t, const node *n) {
    const program *e = n->epilogue;
    text_add(t, " epilogue {%d", n->n_root);
    for (int i = 0; i < e->n_steps; i++)
        text_add(t, "; %d %d %d %d", e->steps[i].op, e->steps[i].a, e->steps[i].b, e->steps[i].c);
    text_add(t, "} {");
    for (int i = 0; i < e->n_immediates; i++) {
        text_add(t, i ? "; " : "");
        print_float(t, e->immediates_f[i], 17, false);
        text_add(t, " %lld", (long long)e->immediates_i[i]);
    }
    text_add(t, "}");
}

static void print_node(printer *p, const node *n, const scope *in, int indent) {
    text *t = p->t;
    text_add(t, "%*s", indent + 2, "");
    for (int i = 0; i < n->n_out; i++) {
        if (i) text_add(t, ", ");
        print_declaration(p, in, n->out[i]);
    }
    text_add(t, n->n_out ? " = " : "= ");
    if (*n->domain) {
        print_name(t, n->domain);
        text_add(t, ":");
    }
    print_name(t, n->type);
    if (n->opset != (*n->domain ? 0 : in->g->opset)) text_add(t, "@%d", n->opset);
    text_add(t, "(");
    for (int i = 0; i < n->n_in; i++) {
        if (i) text_add(t, ", ");
        print_reference(t, in, n->in[i]);
    }
    text_add(t, ")");
    for (int i = 0; i < n->n_attributes; i++) {
        text_add(t, i ? ", " : " {");
        print_attribute(p, &n->attributes[i], in, indent + 4);
    }
    if (n->n_attributes) text_add(t, "}");
    if (n->epilogue) print_epilogue(t, n);
    if (*n->name) {
        text_add(t, " ");
        print_string(t, n->name, strlen(n->name));
    }
    text_add(t, "\n");
}

static void print_leaves(printer *p, const scope *in, int indent) {
    for (int32_t v = 0; v < in->g->n_values; v++) {
        const value *x = in->g->values[v];
        if (x->kind != VALUE_CONSTANT && x->kind != VALUE_OUTER) continue;
        text_add(p->t, "%*s", indent + 2, "");
        print_declaration(p, in, v);
        if (x->kind == VALUE_CONSTANT) {
            text_add(p->t, " = constant ");
            print_tensor(p->t, x->constant);
        } else {
            text_add(p->t, " = outer ");
            print_reference(p->t, in->parent, x->outer);
        }
        text_add(p->t, "\n");
    }
}

/* Gives every value of g its number in print order. */
static void number_values(const graph *g, int32_t *number) {
    int32_t next = 0;
    for (int32_t v = 0; v < g->n_values; v++) number[v] = -1;
    for (int32_t i = 0; i < g->n_inputs; i++) number[g->inputs[i]] = next++;
    for (int32_t v = 0; v < g->n_values; v++)
        if (g->values[v]->kind == VALUE_CONSTANT || g->values[v]->kind == VALUE_OUTER) number[v] = next++;
    for (int32_t i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i]->n_out; k++)
            if (g->nodes[i]->out[k] >= 0) number[g->nodes[i]->out[k]] = next++;
}

typedef struct named {
    const char *name;
    int32_t value;
} named;

static int compare_names(const void *a, const void *b) {
    return strcmp(((const named *)a)->name, ((const named *)b)->name);
}

/* Takes the number from every value whose name alone tells it apart. */
static void drop_numbers(const graph *g, named *sorted, int32_t *number) {
    size_t n = 0;
    for (int32_t v = 0; v < g->n_values; v++)
        if (number[v] >= 0) sorted[n++] = (named){g->values[v]->name, v};
    qsort(sorted, n, sizeof *sorted, compare_names);
    for (size_t i = 0; i < n; i++) {
        bool same = (i > 0 && strcmp(sorted[i].name, sorted[i - 1].name) == 0) ||
                    (i + 1 < n && strcmp(sorted[i].name, sorted[i + 1].name) == 0);
        if (!same && *sorted[i].name) sorted[i].value = -1 - sorted[i].value;
    }
    for (size_t i = 0; i < n; i++)
        if (sorted[i].value < 0) number[-1 - sorted[i].value] = -1;
}

/* A subgraph's outputs stand in parentheses: a comma after it belongs to the attributes. */
static void print_outputs(printer *p, const scope *in) {
    const graph *g = in->g;
    text_add(p->t, in->parent ? " (" : g->n_outputs ? " " : "");
    for (int32_t i = 0; i < g->n_outputs; i++) {
        text_add(p->t, i ? ", " : "");
        print_reference(p->t, in, g->outputs[i]);
        if (strcmp(g->output_names[i], g->values[g->outputs[i]]->name) == 0) continue;
        text_add(p->t, " as ");
        print_string(p->t, g->output_names[i], strlen(g->output_names[i]));
    }
    if (in->parent) text_add(p->t, ")");
}

static void print_body(printer *p, const scope *in, int indent) {
    const graph *g = in->g;
    text_add(p->t, "graph ");
    if (*g->name) print_name(p->t, g->name);
    text_add(p->t, "(");
    for (int32_t i = 0; i < g->n_inputs; i++) {
        if (i) text_add(p->t, ", ");
        print_declaration(p, in, g->inputs[i]);
    }
    text_add(p->t, ")");
    if (g->opset) text_add(p->t, " opset %d", g->opset);
    if (g->ir_version) text_add(p->t, " ir %d", g->ir_version);
    text_add(p->t, " {\n");
    print_leaves(p, in, indent);
    for (int32_t i = 0; i < g->n_nodes; i++) print_node(p, g->nodes[i], in, indent);
    text_add(p->t, "%*s} ->", indent, "");
    print_outputs(p, in);
}

static void print_graph(printer *p, const graph *g, const scope *parent, int indent) {
    size_t n = (size_t)g->n_values + 1;
    int32_t *number = mem_alloc(n * sizeof *number);
    named *sorted = mem_alloc(n * sizeof *sorted);
    if (number && sorted) {
        number_values(g, number);
        drop_numbers(g, sorted, number);
        print_body(p, &(scope){g, parent, number}, indent);
    } else {
        p->t->failed = true;
    }
    mem_free(sorted);
    mem_free(number);
}

/* A subgraph on its own: its outer values read `outer` and the name in the parent. */
static void print_in_parents(printer *p, const graph *g, int depth) {
    scope parent = {g->parent, NULL, NULL};
    if (g->parent) {
        parent.number = mem_alloc(((size_t)g->parent->n_values + 1) * sizeof *parent.number);
        if (!parent.number) {
            p->t->failed = true;
            return;
        }
        for (int32_t v = 0; v < g->parent->n_values; v++) parent.number[v] = -1;
    }
    print_graph(p, g, g->parent ? &parent : NULL, depth);
    mem_free(parent.number);
}

void graph_print(const graph *g, text *t) {
    printer p = {.t = t, .root = g};
    while (p.root->parent) p.root = p.root->parent;
    p.symbols = mem_alloc(((size_t)p.root->n_symbols + 1) * sizeof *p.symbols);
    if (!p.symbols) {
        t->failed = true;
        return;
    }
    for (int32_t i = 0; i < p.root->n_symbols; i++) p.symbols[i] = -1;
    print_in_parents(&p, g, 0);
    text_add(t, "\n");
    mem_free(p.symbols);
}
