/*
 * random_build.c: drafts as text and as models; the reference.
 */
#include <math.h>

#include "random.h"

uint32_t draw(draft *d, uint32_t below) {
    d->state = d->state * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = d->state ^ d->state >> 29;
    x *= 0xbf58476d1ce4e5b9u;
    return below ? (uint32_t)((x >> 32) % below) : 0;
}

bool chance(draft *d, int percent) { return draw(d, 100) < (uint32_t)percent; }

double uniform(draft *d) { return (double)draw(d, 1u << 24) / (1u << 24); }

tensor *random_tensor(draft *d, braid_type type, int rank, const int64_t *dims, double lo, double hi) {
    static const double specials[] = {NAN, INFINITY, -INFINITY, -0.0, 1e10, -1e10, 6e-8, 65504};
    tensor *t = NULL;
    int64_t count = 0;
    tensor_new(d->memory, type, rank, dims, &t, NULL);
    dims_count(rank, dims, &count);
    bool whole = chance(d, 40);
    for (int64_t i = 0; i < count; i++) {
        double v = lo + (hi - lo) * uniform(d);
        if (type == BRAID_BOOL) element_set_i64(type, t->data, i, draw(d, 2));
        else if (!type_is_float(type)) element_set_i64(type, t->data, i, (int64_t)floor(v));
        else if (d->specials && chance(d, 10)) element_set_f64(type, t->data, i, specials[draw(d, COUNT_OF(specials))]);
        else element_set_f64(type, t->data, i, whole ? floor(v) : v);
    }
    return t;
}

int draft_tensor(draft *d, line_kind kind, tensor *t) {
    if (d->n_lines == DRAFT_LINES || d->n_values == DRAFT_VALUES) return -1;
    d->lines[d->n_lines++] = (line){.kind = kind, .n_out = 1, .out = {d->n_values}};
    d->values[d->n_values] = (content){.t = t, .exact = true};
    return d->n_values++;
}

/* -------------------------------------------------------------------------------------------------- text */

static void print_type(text *out, const tensor_type *t, bool symbolic, uint64_t seed) {
    text_add(out, "%s[", braid_type_name(t->type));
    for (int i = 0; i < t->rank; i++) {
        bool named = symbolic && t->dims[i] > 0 && (seed >> (t->dims[i] % 16) & 1);
        if (named) text_add(out, "%sN%lld", i ? "," : "", (long long)t->dims[i]);
        else text_add(out, "%s%lld", i ? "," : "", (long long)t->dims[i]);
    }
    text_add(out, "]");
}

static void print_node(text *out, const line *l) {
    for (int k = 0; k < l->n_out; k++) text_add(out, "%s%sv%d", k ? ", " : "  ", "", l->out[k]);
    text_add(out, " = %s(", l->type);
    for (int k = 0; k < l->n_in; k++) {
        if (l->in[k] < 0) text_add(out, "%s-", k ? ", " : "");
        else text_add(out, "%sv%d", k ? ", " : "", l->in[k]);
    }
    text_add(out, ")%s%s%s\n", l->attributes[0] ? " {" : "", l->attributes, l->attributes[0] ? "}" : "");
}

/* Constants are inputs in this text; draft_model turns them back. */
static void print_source(const draft *d, bool symbolic, text *out) {
    const char *comma = "";
    text_add(out, "graph random(");
    for (int i = 0; i < d->n_lines; i++) {
        const line *l = &d->lines[i];
        if (l->kind == LINE_NODE) continue;
        text_add(out, "%sv%d: ", comma, l->out[0]);
        print_type(out, &d->values[l->out[0]].t->type, symbolic && l->kind == LINE_INPUT, d->seed);
        comma = ", ";
    }
    text_add(out, ") opset 23 ir 10 {\n");
    for (int i = 0; i < d->n_lines; i++)
        if (d->lines[i].kind == LINE_NODE) print_node(out, &d->lines[i]);
    text_add(out, "} -> ");
    for (int i = 0; i < d->n_outputs; i++) text_add(out, "%sv%d", i ? ", " : "", d->outputs[i]);
    text_add(out, "\n");
}

static void constants_of(const draft *d, graph *g) {
    int32_t n = 0, at = 0;
    for (int i = 0; i < d->n_lines; i++) {
        if (d->lines[i].kind == LINE_NODE) continue;
        value *v = g->values[g->inputs[at]];
        if (d->lines[i].kind == LINE_CONSTANT) {
            v->kind = VALUE_CONSTANT;
            v->constant = d->values[d->lines[i].out[0]].t;
        } else {
            g->inputs[n++] = g->inputs[at];
        }
        at++;
    }
    g->n_inputs = n;
}

static braid_status parse(const draft *d, arena *memory, bool symbolic, graph **g, braid_error *err) {
    text source = {0};
    print_source(d, symbolic, &source);
    braid_status status = graph_parse(memory, source.data, g, err);
    text_free(&source);
    if (status != BRAID_OK) return status;
    constants_of(d, *g);
    graph_find_ops(*g);
    for (int32_t i = 0; i < (*g)->n_nodes; i++) TRY(op_check((*g)->nodes[i], err));
    return graph_infer(*g, err);
}

braid_model *draft_model(const draft *d, bool symbolic, braid_error *err) {
    braid_model *model = mem_alloc(sizeof *model);
    memset(model, 0, sizeof *model);
    model->memory = arena_new();
    model->references = 1;
    model->m = arena_alloc(model->memory, sizeof *model->m);
    if (parse(d, model->memory, symbolic, &model->m->g, err) == BRAID_OK) return model;
    braid_model_free(model);
    return NULL;
}

void draft_print(const draft *d, text *out) {
    braid_model *model = draft_model(d, false, NULL);
    if (model) graph_print(model->m->g, out);
    else print_source(d, false, out);
    braid_model_free(model);
}

/* --------------------------------------------------------------------------------------------- reference */

static double noise_of(braid_type t, double v, double least_, uint64_t *state) {
    double size = t == BRAID_FLOAT16 ? 0x1p-10 : t == BRAID_BFLOAT16 ? 0x1p-7 : 0x1p-21;
    double least = fmax(least_, t == BRAID_FLOAT16 ? 0x1p-24 : 1e-37);
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    double r = (double)(*state >> 11) / 4503599627370496.0 - 1;
    return v + r * (size * fabs(v) + least);
}

static tensor *disturbed(const tensor *t, double least_, arena *memory, uint64_t *state) {
    tensor *copy;
    int64_t count = 0;
    if (!t || !type_is_float(t->type.type)) return (tensor *)t;
    tensor_type_count(&t->type, &count);
    if (tensor_new(memory, t->type.type, t->type.rank, t->type.dims, &copy, NULL) != BRAID_OK) return NULL;
    for (int64_t i = 0; i < count; i++)
        element_set_f64(t->type.type, copy->data, i,
                        noise_of(t->type.type, element_f64(t->type.type, t->data, i), least_, state));
    return copy;
}

static bool rounds(const draft *d, const graph *g, const node *n) {
    for (int k = 0; k < n->n_out; k++)
        if (n->out[k] >= 0 && !d->values[atoi(g->values[n->out[k]]->name + 1)].exact) return true;
    return false;
}

static bool keeps_bytes(const node *n) { return n->op && (n->op->flags & OP_VIEW); }

static braid_status reference_node(draft *d, const graph *g, const node *n, int noise, uint64_t *state, arena *memory,
                                   tensor **values, braid_error *err) {
    const tensor *in[LINE_IN + 8] = {0};
    tensor *out[LINE_OUT] = {0};
    bool shake = noise && rounds(d, g, n) && !keeps_bytes(n);
    for (int k = 0; k < n->n_in; k++) {
        if (n->in[k] < 0) continue;
        const value *v = g->values[n->in[k]];
        in[k] = v->constant ? v->constant : values[n->in[k]];
        /* shapes, scales and axes are no numbers to disturb */
        if (shake && !(v->constant && v->constant->type.rank == 1 && strcmp(n->type, "Resize") == 0))
            in[k] = disturbed(in[k], 0, memory, state);
    }
    double absolute = strcmp(n->type, "Gelu") == 0 ? 0x1p-20 : 0; /* 1 + erf cancels below -4 */
    char title[256];
    braid_status status = op_eval(g, n, memory, in, out, err);
    if (status != BRAID_OK) return error_within(err, status, "%s", node_title(n, title));
    for (int k = 0; k < n->n_out; k++)
        if (n->out[k] >= 0) values[n->out[k]] = shake ? disturbed(out[k], absolute, memory, state) : out[k];
    return BRAID_OK;
}

braid_status reference_run(draft *d, const graph *g, tensor *const *inputs, int noise, arena *memory, tensor ***out,
                           braid_error *err) {
    tensor **values = arena_array(memory, (size_t)g->n_values + 1, sizeof *values);
    if (!values) return error_memory(err);
    uint64_t state = d->seed * 77 + (uint64_t)noise;
    for (int32_t i = 0; i < g->n_inputs; i++) values[g->inputs[i]] = inputs[i];
    for (int32_t i = 0; i < g->n_values; i++)
        if (g->values[i]->constant) values[i] = g->values[i]->constant;
    for (int32_t i = 0; i < g->n_nodes; i++)
        TRY(reference_node(d, g, g->nodes[i], noise, &state, memory, values, err));
    *out = values;
    return BRAID_OK;
}

/* ---------------------------------------------------------------------------------------------- appending */

/* Infers the draft with the line behind it and computes the line from what its inputs hold. */
static bool compute(draft *d, const line *l, tensor **out) {
    draft one = *d;
    arena *memory = arena_new();
    graph *g;
    bool ok = false;
    one.lines[one.n_lines++] = *l;
    const tensor *in[LINE_IN] = {0};
    for (int k = 0; k < l->n_in; k++) in[k] = l->in[k] >= 0 ? d->values[l->in[k]].t : NULL;
    if (parse(&one, memory, false, &g, NULL) == BRAID_OK) {
        const node *n = g->nodes[g->n_nodes - 1];
        ok = op_eval(g, n, d->memory, in, out, NULL) == BRAID_OK;
        for (int k = 0; ok && k < l->n_out; k++) {
            int64_t count = 0;
            ok = out[k] && tensor_type_count(&out[k]->type, &count) && count <= 20000 && out[k]->type.rank <= 6;
        }
    }
    arena_free(memory);
    return ok;
}

bool draft_add(draft *d, const line *given) {
    line l = *given;
    tensor *out[LINE_OUT] = {0};
    if (d->n_lines + 1 >= DRAFT_LINES || d->n_values + l.n_out > DRAFT_VALUES) return false;
    bool exact = l.exact;
    for (int k = 0; k < l.n_in; k++) exact = exact && (l.in[k] < 0 || d->values[l.in[k]].exact);
    for (int k = 0; k < l.n_out; k++) {
        l.out[k] = d->n_values + k;
        d->values[l.out[k]] = (content){.exact = exact};
    }
    if (!compute(d, &l, out)) return false;
    for (int k = 0; k < l.n_out; k++)
        d->values[d->n_values++] = (content){.t = out[k], .exact = exact || !type_is_float(out[k]->type.type)};
    for (int k = 0; k < l.n_in; k++)
        if (l.in[k] >= 0) d->values[l.in[k]].uses++;
    d->lines[d->n_lines++] = l;
    d->n_nodes++;
    return true;
}

void draft_finish(draft *d) {
    int uses[DRAFT_VALUES] = {0};
    d->n_outputs = 0;
    for (int i = 0; i < d->n_lines; i++)
        for (int k = 0; k < d->lines[i].n_in; k++)
            if (d->lines[i].in[k] >= 0) uses[d->lines[i].in[k]]++;
    for (int i = 0; i < d->n_lines; i++) {
        if (d->lines[i].kind != LINE_NODE) continue;
        for (int k = 0; k < d->lines[i].n_out; k++)
            if (!uses[d->lines[i].out[k]] || (d->seed + (uint64_t)i * 7) % 11 == 0)
                d->outputs[d->n_outputs++] = d->lines[i].out[k];
    }
}
