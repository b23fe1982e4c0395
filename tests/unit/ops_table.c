/*
 * ops_table.c: what holds for every row of the operator table. Rows are found through op_at: a new one needs no line
 * here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "ops/op.h"

#define ROW_FAIL(o, ...)                                                          \
    do {                                                                          \
        print_error("%s.%s: ", (o)->domain ? (o)->domain : "ai.onnx", (o)->name); \
        fail_msg(__VA_ARGS__);                                                    \
    } while (0)

static void check_attributes(const op *o) {
    for (const attribute_spec *a = o->attributes; a && a->name; a++)
        for (const attribute_spec *b = o->attributes; b < a; b++)
            if (a->kind == b->kind && strcmp(a->name, b->name) == 0) ROW_FAIL(o, "attribute '%s' twice", a->name);
}

static void rows_are_complete(void **state) {
    (void)state;
    const op *o;
    for (size_t i = 0; (o = op_at(i)) != NULL; i++) {
        if (op_find(o->domain, o->name) != o) ROW_FAIL(o, "two rows of this name");
        if (o->since < 1 || (o->until && o->until < o->since)) ROW_FAIL(o, "opsets %d to %d", o->since, o->until);
        if (o->min_in < 0 || (o->max_in < o->min_in && !(o->flags & OP_VARIADIC_IN))) ROW_FAIL(o, "input counts");
        if (o->min_out < 1 || (o->max_out < o->min_out && !(o->flags & OP_VARIADIC_OUT))) ROW_FAIL(o, "output counts");
        if (!o->upgrade && (!o->infer || !o->eval)) ROW_FAIL(o, "no infer or no eval");
        if (o->emit && !o->lower) ROW_FAIL(o, "emit without lower");
        check_attributes(o);
    }
}

/* A graph of one node of the row, as the newest opset has it; every input has this type. */
static node *make_node(arena *memory, const op *o, int n_in, const tensor_type *type, graph **g) {
    int32_t in[16];
    assert_true(n_in <= 16);
    *g = graph_new(memory, "row");
    (*g)->inputs = arena_array(memory, 16, sizeof *(*g)->inputs);
    for (int i = 0; i < n_in; i++) {
        in[i] = graph_value(*g, "x", VALUE_INPUT);
        (*g)->values[in[i]]->type = *type;
        (*g)->inputs[(*g)->n_inputs++] = in[i];
    }
    node *n = graph_node(*g, o->name, o->domain ? o->domain : "", "", n_in, in, o->min_out);
    assert_non_null(n);
    n->opset = (*g)->opset = o->until ? o->until : o->since > 24 ? o->since : 24;
    n->op = o;
    return n;
}

/* What the importer does with a new node. */
static braid_status import_node(graph *g, node *n, braid_error *err) {
    TRY(op_check(n, err));
    if (!n->op->upgrade) return BRAID_OK;
    upgrade u = {.g = g, .node = n, .opset = n->opset, .err = err};
    TRY(n->op->upgrade(&u));
    graph_find_ops(g);
    return graph_sort(g, err);
}

/* The row on inputs of one type: infer says what comes, eval agrees, an error says what is wrong. */
static void check_row(const op *o, int n_in, const tensor_type *type) {
    arena *memory = arena_new();
    braid_error err = {0};
    graph *g;
    node *n = make_node(memory, o, n_in, type, &g);
    braid_status status = import_node(g, n, &err);
    if (status == BRAID_OK) status = graph_infer(g, &err);
    if (status != BRAID_OK && !err.message[0]) ROW_FAIL(o, "%s without a message", braid_status_name(status));
    if (status == BRAID_INTERNAL) ROW_FAIL(o, "%s", err.message);
    if (status == BRAID_OK && type->type != BRAID_TYPE_NONE && g->n_nodes == 1 && n->op->eval) {
        const tensor *in[16];
        tensor *x, *out[16] = {0};
        assert_int_equal(tensor_new(memory, type->type, type->rank, type->dims, &x, &err), BRAID_OK);
        int64_t count;
        assert_true(tensor_type_count(type, &count));
        for (int64_t i = 0; i < count; i++)
            if (type_is_float(type->type)) element_set_f64(type->type, x->data, i, (double)(i % 3));
            else element_set_i64(type->type, x->data, i, type->type == BRAID_BOOL ? i % 2 : i % 3);
        for (int i = 0; i < n->n_in; i++) in[i] = n->in[i] < 0 ? NULL : x;
        status = op_eval(g, n, memory, in, out, &err);
        if (status != BRAID_OK && !err.message[0]) ROW_FAIL(o, "%s without a message", braid_status_name(status));
        if (status == BRAID_INTERNAL) ROW_FAIL(o, "%s", err.message);
        const tensor_type *said = &g->values[n->out[0]]->type;
        if (status == BRAID_OK && said->type != BRAID_TYPE_NONE && said->type != out[0]->type.type)
            ROW_FAIL(o, "infer says %s, eval makes %s", braid_type_name(said->type),
                     braid_type_name(out[0]->type.type));
    }
    arena_free(memory);
}

static void every_row(const tensor_type *type) {
    const op *o;
    for (size_t i = 0; (o = op_at(i)) != NULL; i++) {
        if (!o->infer) continue;
        int last = o->flags & OP_VARIADIC_IN ? o->min_in + 2 : o->max_in;
        for (int n_in = o->min_in; n_in <= last && n_in <= 16; n_in++) check_row(o, n_in, type);
    }
}

static void types_and_ranks(void **state) {
    (void)state;
    static const braid_type types[] = {BRAID_FLOAT32, BRAID_FLOAT16, BRAID_FLOAT64, BRAID_INT64, BRAID_UINT8,
                                       BRAID_BOOL};
    for (size_t t = 0; t < COUNT_OF(types); t++)
        for (int rank = 0; rank <= 5; rank++)
            for (int64_t dim = 0; dim <= 3; dim += 3) {
                tensor_type type = {.type = types[t], .rank = rank, .dims = {dim, 3, 3, 3, 3}};
                if (rank || dim) every_row(&type);
            }
}

static void unknown_inputs(void **state) {
    (void)state;
    const op *o;
    tensor_type unknown = {.type = BRAID_TYPE_NONE, .rank = -1};
    every_row(&unknown);
    for (size_t i = 0; (o = op_at(i)) != NULL; i++) {
        bool required = false; /* an attribute that this test cannot make up */
        for (const attribute_spec *a = o->attributes; a && a->name; a++) required = required || !a->value;
        if (required || !o->infer) continue;
        arena *memory = arena_new();
        braid_error err = {0};
        graph *g;
        node *n = make_node(memory, o, o->min_in, &unknown, &g);
        if (import_node(g, n, &err) == BRAID_OK && graph_infer(g, &err) != BRAID_OK)
            ROW_FAIL(o, "inputs of unknown type and rank: %s", err.message);
        arena_free(memory);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_complete), cmocka_unit_test(types_and_ranks),
                                       cmocka_unit_test(unknown_inputs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
