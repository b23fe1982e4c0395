/*
 * ops_table_gpu.c: every row of the operator table, the device against the reference, with default attributes and
 * inputs of one type and shape; what a row does not accept is passed over. Elementwise rows need no host step for it.
 * Rows are found through op_at: a new one needs no line here. Attributes, mixed types and shapes are for the family's
 * own test. labels: device
 */
#include "ops_gpu.h"

#include "ops/op.h"

typedef struct form {
    braid_type type;
    int rank;
    int64_t dims[4];
    double rtol, atol;
} form;

static const form forms[] = {
    {BRAID_FLOAT32, 1, {7}, 1e-4, 1e-5},      {BRAID_FLOAT32, 4, {2, 3, 5, 5}, 1e-4, 1e-5},
    {BRAID_FLOAT32, 2, {6, 6}, 1e-4, 1e-5},   {BRAID_FLOAT16, 3, {3, 5, 5}, 5e-3, 2e-3},
    {BRAID_BFLOAT16, 2, {4, 4}, 2e-2, 1e-2},  {BRAID_INT64, 1, {3}, 0, 0},
    {BRAID_INT32, 2, {4, 4}, 0, 0},           {BRAID_UINT8, 3, {2, 4, 4}, 0, 0},
    {BRAID_BOOL, 2, {5, 7}, 0, 0},
};

/* Runs the row on n_in inputs where it accepts them; tells whether it did. */
static bool run_row(const op *o, int n_in, const form *f) {
    char source[1024] = "graph t(", dims[64] = "", *at = dims;
    braid_tensor in[4];
    braid_error err = {0};
    for (int d = 0; d < f->rank; d++) at += sprintf(at, "%s%lld", d ? "," : "", (long long)f->dims[d]);
    for (int i = 0; i < n_in; i++)
        sprintf(source + strlen(source), "%sx%d: %s[%s]", i ? ", " : "", i, braid_type_name(f->type), dims);
    sprintf(source + strlen(source), ") { y = %s%s%s(", o->domain ? o->domain : "", o->domain ? ":" : "", o->name);
    for (int i = 0; i < n_in; i++) sprintf(source + strlen(source), "%sx%d", i ? ", " : "", i);
    strcat(source, ") } -> y");
    braid_model *model = ops_model(source, &err);
    if (!model) return false;
    braid_model_free(model);
    for (int i = 0; i < n_in; i++) {
        char *name = malloc(16);
        snprintf(name, 16, "x%d", i);
        bool real = type_is_float(f->type);
        in[i] = ops_random_full(name, f->type, f->rank, f->dims, real ? 0.1 : 1, real ? 0.9 : 4, false);
    }
    uint64_t host = ops_compare(source, (size_t)n_in, in, f->rtol, f->atol);
    for (int i = 0; i < n_in; i++) free((void *)(uintptr_t)in[i].name);
    if (o->emit && host) fail_msg("a host step in\n%s", source);
    return true;
}

static void check_row(void **state) {
    const op *o = *state;
    int most = o->flags & OP_VARIADIC_IN ? o->min_in + 2 : o->max_in, ran = 0;
    int least = o->upgrade && !o->emit ? most : o->min_in; /* an input may have been an attribute once */
    for (size_t k = 0; k < COUNT_OF(forms); k++)
        for (int n_in = least; n_in <= most && n_in <= 4; n_in++) ran += run_row(o, n_in, &forms[k]);
    if (!ran) skip(); /* none of the forms */
}

/* One test for each row, so that a failure names it and the others still run. */
int main(void) {
    static struct CMUnitTest tests[512];
    const op *o;
    size_t n = 0;
    for (size_t i = 0; (o = op_at(i)) != NULL && n < COUNT_OF(tests); i++)
        if (o->infer && !(o->flags & OP_RANDOM))
            tests[n++] = (struct CMUnitTest){o->name, check_row, NULL, NULL, (void *)(uintptr_t)o};
    return _cmocka_run_group_tests("rows", tests, n, NULL, NULL);
}
