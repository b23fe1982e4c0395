/*
 * eval.c: computes one node on the CPU. The constant folder, the oracle of the tests and host steps come in here.
 */
#include "ops/map.h"

braid_status eval_output_shaped(eval *e, int i, braid_type type, int rank, const int64_t *dims, tensor **out) {
    TRY(tensor_new(e->memory, type, rank, dims, out, e->err));
    if (i < e->n_out) e->out[i] = *out;
    return BRAID_OK;
}

braid_status eval_output(eval *e, int i, tensor **out) {
    const tensor_type *t = &e->types[i];
    if (t->type == BRAID_TYPE_NONE || !tensor_type_static(t))
        return error_set(e->err, BRAID_INTERNAL, "output %d: shape not known", i);
    return eval_output_shaped(e, i, t->type, t->rank, t->dims, out);
}

/* infer with every input's content at hand. */
static braid_status infer_from_tensors(const node *n, graph *scratch, int n_root, const tensor *const *in,
                                       tensor_type *types, braid_error *err) {
    arena *memory = scratch->memory;
    const tensor_type **in_types = arena_array(memory, (size_t)n->n_in + 1, sizeof *in_types);
    tensor **constants = arena_array(memory, (size_t)n->n_in + 1, sizeof *constants);
    followed *known = arena_array(memory, (size_t)n->n_in + 1, sizeof *known);
    followed *out_known = arena_array(memory, (size_t)n->n_out + 1, sizeof *out_known);
    if (!in_types || !constants || !known || !out_known) return error_memory(err);
    for (int i = 0; i < n->n_in; i++) {
        known[i].n = -1;
        if (!in[i]) continue;
        in_types[i] = &in[i]->type;
        if (!(constants[i] = arena_copy(memory, in[i], sizeof *in[i]))) return error_memory(err);
    }
    for (int i = 0; i < n->n_out; i++) {
        types[i] = (tensor_type){.rank = -1};
        out_known[i].n = -1;
    }
    infer c = {.node = n, .g = scratch, .n_in = n_root, .n_out = n->n_out, .in = in_types, .constant = constants,
               .known = known, .out = types, .out_known = out_known, .err = err};
    return n->op->infer(&c);
}

/* The fused program over out[0]: register 0 is the operator's own result, register i the i-th of the inputs behind it. */
static braid_status eval_epilogue(const node *n, arena *memory, const tensor *const *in, tensor **out,
                                  braid_error *err) {
    const tensor *registers[PROGRAM_INPUTS] = {out[0]};
    int n_extra = n->n_in - n->n_root;
    if (n_extra >= PROGRAM_INPUTS) return error_set(err, BRAID_INTERNAL, "an epilogue has %d inputs", n_extra);
    for (int i = 0; i < n_extra; i++) registers[i + 1] = in[n->n_root + i];
    tensor *result;
    TRY(tensor_new(memory, out[0]->type.type, out[0]->type.rank, out[0]->type.dims, &result, err));
    TRY(program_eval(n->epilogue, n_extra + 1, registers, result, err));
    out[0] = result;
    return BRAID_OK;
}

braid_status op_eval(const graph *g, const node *n, arena *memory, const tensor *const *in, tensor **out,
                     braid_error *err) {
    (void)g;
    if (!n->op || !n->op->eval) return error_set(err, BRAID_UNSUPPORTED, "no CPU reference");
    graph *scratch = graph_new(memory, "eval");
    tensor_type *types = arena_array(memory, (size_t)n->n_out + 1, sizeof *types);
    if (!scratch || !types) return error_memory(err);
    bool is_map = node_is_map(n);
    int n_root = n->epilogue && !is_map ? n->n_root : n->n_in;
    TRY(infer_from_tensors(n, scratch, n_root, in, types, err));
    eval e = {.node = n, .memory = memory, .n_in = n_root, .n_out = n->n_out, .in = in, .out = out, .types = types,
              .err = err};
    TRY(n->op->eval(&e));
    if (!n->epilogue || is_map || !out[0]) return BRAID_OK;
    return eval_epilogue(n, memory, in, out, err);
}
