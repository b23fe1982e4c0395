/*
 * check.c: a node against its row.
 */
#include "ops/op.h"

#include <stdio.h>

static const char *kind_name(attribute_kind k) {
    static const char *const names[] = {"",
                                        "a float",
                                        "an int",
                                        "a string",
                                        "a tensor",
                                        "a graph",
                                        "a list of floats",
                                        "a list of ints",
                                        "a list of strings",
                                        "a list of tensors",
                                        "a list of graphs",
                                        "of another kind"};
    return (size_t)k < COUNT_OF(names) ? names[k] : names[ATTRIBUTE_OTHER];
}

/* A row may list a name several times where older opsets gave it another kind. */
braid_status op_check_attributes(const node *n, braid_error *err) {
    for (int i = 0; i < n->n_attributes; i++) {
        const attribute *a = &n->attributes[i];
        const attribute_spec *known = NULL;
        bool fits = false;
        for (const attribute_spec *s = n->op->attributes; s && s->name; s++) {
            if (strcmp(s->name, a->name) != 0) continue;
            known = s;
            fits |= s->kind == a->kind;
        }
        if (known && !fits)
            return error_set(err, BRAID_MODEL, "attribute '%s' is %s, expected %s", a->name, kind_name(a->kind),
                             kind_name(known->kind));
    }
    return BRAID_OK;
}

braid_status op_check(const node *n, braid_error *err) {
    const op *o = n->op;
    int n_in = n->n_root;
    if (n_in < o->min_in || (n_in > o->max_in && !(o->flags & OP_VARIADIC_IN)))
        return error_set(err, BRAID_MODEL, "%d inputs, expected %d to %d", n_in, o->min_in,
                         o->flags & OP_VARIADIC_IN ? INT32_MAX : o->max_in);
    if (n->n_out < o->min_out || (n->n_out > o->max_out && !(o->flags & OP_VARIADIC_OUT)))
        return error_set(err, BRAID_MODEL, "%d outputs, expected %d to %d", n->n_out, o->min_out,
                         o->flags & OP_VARIADIC_OUT ? INT32_MAX : o->max_out);
    for (int i = 0; i < o->min_in; i++)
        if (n->in[i] < 0) return error_set(err, BRAID_MODEL, "input %d is missing", i);
    return op_check_attributes(n, err);
}

const char *node_title(const node *n, char buffer[static 256]) {
    snprintf(buffer, 256, "node '%.120s' (%.40s%s%.60s-%d)", n->name, n->domain, *n->domain ? "." : "", n->type,
             n->opset);
    return buffer;
}
