/*
 * pass.c: the list of passes. Each is pass -> infer -> verify.
 */
#include "pass/pass.h"

static const struct {
    const char *name;
    pass_fn *run;
} passes[] = {
    {"prune", pass_prune},
    {"fold", pass_fold},
    {"simplify", pass_simplify},
    {"reroll", pass_reroll},
    {"reroll_any", pass_reroll_any},
    {"fuse", pass_fuse},
};

braid_status pass_run(const char *name, const graph *g, arena *memory, const pass_options *options, graph **out,
                      braid_error *err) {
    for (size_t i = 0; i < COUNT_OF(passes); i++) {
        if (strcmp(passes[i].name, name) != 0) continue;
        TRY(passes[i].run(g, memory, options, out, err));
        TRY(graph_infer(*out, err));
        return graph_verify(*out, err);
    }
    return error_set(err, BRAID_ARGUMENT, "no pass '%s'", name);
}
