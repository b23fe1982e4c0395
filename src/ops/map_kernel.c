/*
 * map_kernel.c: the steps of kernel map: dims collapsed, inputs classed, large tensors cut into several rows.
 */
#include "ops/map.h"

#include <stddef.h>

#include "kernels/abi.h"
#include "kernels/rows/map.h"

enum { SPEC_WIDTH = SPEC_FIRST, SPEC_CHUNKS, SPEC_RESULT, SPEC_RANK, SPEC_INNER, SPEC_KINDS = 16 };

/* A box of output elements: collapsed dims, and per operand the element offset and strides. */
typedef struct box {
    int rank;
    int64_t dims[BRAID_MAX_RANK];
    int64_t out_at;             /* first output element; the box is contiguous */
    int64_t at[PROGRAM_INPUTS]; /* first element of each input */
    int64_t strides[PROGRAM_INPUTS][BRAID_MAX_RANK];
} box;

typedef struct map_job {
    lowering *l;
    const program *p;
    int n_in, out; /* out: number of the node's output */
    bool used[PROGRAM_INPUTS];
    braid_type types[PROGRAM_INPUTS], result;
} map_job;

static bool type_has_kernel(braid_type t, bool float64) {
    return t == BRAID_FLOAT32 || t == BRAID_FLOAT16 || t == BRAID_BFLOAT16 || type_is_integer(t) || t == BRAID_BOOL ||
           (float64 && t == BRAID_FLOAT64);
}

/* Which inputs the program reads, and whether there is a kernel for it. *wide: needs float64. */
static bool job_set(map_job *j, bool *wide) {
    bool real[PROGRAM_INPUTS] = {0}, result_real, math = false;
    const node *n = j->l->node;
    if (j->n_in > PROGRAM_INPUTS) return false;
    *wide = j->result == BRAID_FLOAT64;
    if (!j->p->n_steps) j->used[0] = true;
    for (int s = 0; s < j->p->n_steps; s++) {
        const uint8_t from[3] = {j->p->steps[s].a, j->p->steps[s].b, j->p->steps[s].c};
        const char *kinds = map_opcode_operands(j->p->steps[s].op);
        for (int k = 0; kinds && kinds[k]; k++)
            if (from[k] < PROGRAM_INPUTS) j->used[from[k]] = true;
        math = math || map_opcode_math(j->p->steps[s].op);
    }
    for (int i = 0; i < j->n_in; i++) {
        if (n->in[i] < 0) continue;
        j->types[i] = lower_in(j->l, i)->type;
        real[i] = type_is_float(j->types[i]);
        if (j->used[i] && !type_has_kernel(j->types[i], j->l->device->float64)) return false;
        *wide = *wide || (j->used[i] && j->types[i] == BRAID_FLOAT64);
    }
    return type_has_kernel(j->result, j->l->device->float64) && !(*wide && math) &&
           program_check(j->p, j->n_in, real, &result_real) && result_real == type_is_float(j->result);
}

/* Merges neighbours that every input walks alike and drops dims of 1. */
static void box_collapse(box *b, int n_in) {
    int rank = 0;
    for (int d = 0; d < b->rank; d++) {
        if (b->dims[d] == 1) continue;
        bool joins = rank > 0;
        for (int i = 0; i < n_in && joins; i++) joins = b->strides[i][rank - 1] == b->strides[i][d] * b->dims[d];
        if (joins)
            b->dims[rank - 1] *= b->dims[d];
        else
            b->dims[rank++] = b->dims[d];
        for (int i = 0; i < n_in; i++) b->strides[i][rank - 1] = b->strides[i][d];
    }
    if (rank == 0) {
        b->dims[rank++] = 1;
        for (int i = 0; i < n_in; i++) b->strides[i][0] = 0;
    }
    b->rank = rank;
}

static int64_t box_count(const box *b) {
    int64_t count = 1;
    for (int d = 0; d < b->rank; d++) count *= b->dims[d];
    return count;
}

/* Elements of input i that the box reaches, from at[i] on. */
static int64_t box_span(const box *b, int i) {
    int64_t span = 1;
    for (int d = 0; d < b->rank; d++) span += (b->dims[d] - 1) * b->strides[i][d];
    return span;
}

static uint32_t bytes_of(braid_type t) {
    return (uint32_t)type_bits(t) / 8;
}

static bool lines_of(const box *b, int64_t width) {
    return b->dims[b->rank - 1] % width == 0;
}

static uint32_t input_kind(const box *b, int i, int64_t width) {
    int64_t last = b->strides[i][b->rank - 1];
    bool aligned = b->at[i] % width == 0, zero = true;
    for (int d = 0; d < b->rank; d++) {
        zero = zero && b->strides[i][d] == 0;
        if (d < b->rank - 1) aligned = aligned && b->strides[i][d] % width == 0;
    }
    if (zero) return MAP_SCALAR;
    if (b->rank == 1 && last == 1) return MAP_DENSE;
    if (!lines_of(b, width)) return MAP_STRIDED;
    return last == 0 ? MAP_UNIFORM : last == 1 && aligned ? MAP_LINE : MAP_STRIDED;
}

/* Outputs per chunk: 16 bytes of the widest element, twice that on a software device; fewer where that makes chunks lie
   within lines. */
static uint32_t choose_width(const map_job *j, const box *b) {
    uint32_t widest = bytes_of(j->result);
    for (int i = 0; i < j->n_in; i++)
        if (j->used[i] && bytes_of(j->types[i]) > widest) widest = bytes_of(j->types[i]);
    uint32_t width = widest <= (j->l->device->software ? 4 : 2) ? 8 : 4;
    return width == 8 && b->rank > 1 && !lines_of(b, 8) ? 4 : width;
}

static uint64_t ceil_div(uint64_t a, uint64_t b) {
    return (a + b - 1) / b;
}

/* One chunk per invocation: a loop of chunks costs more than the workgroups that it saves, measured at 8 million. */
static void choose_grid(const device_traits *d, uint32_t *group, uint32_t *chunks) {
    *group = d->software ? 128 : 256;
    *chunks = 1;
    if (*group > d->max_invocations) *group = d->max_invocations;
}

static void fill_row(row_map *row, const map_job *j, const box *b) {
    const program *p = j->p;
    row->count = (uint32_t)box_count(b);
    for (int d = 0; d < b->rank; d++) row->dims[MAP_DIMS - b->rank + d] = (uint32_t)b->dims[d];
    for (int i = 0; i < j->n_in; i++)
        for (int d = 0; d < b->rank; d++)
            row->strides[MAP_DIMS * i + MAP_DIMS - b->rank + d] = (int32_t)b->strides[i][d];
    for (int i = 0; i < p->n_immediates; i++) {
        row->immediates_f[i] = (float)p->immediates_f[i];
        row->immediates_i[i] = p->immediates_i[i];
        memcpy(&row->immediates_d[i], &p->immediates_f[i], sizeof row->immediates_d[i]);
    }
}

static braid_status add_operands(const map_job *j, step *s, const box *b, uint32_t width) {
    const node *n = j->l->node;
    uint64_t size = bytes_of(j->result);
    TRY(lower_operand(j->l, s, offsetof(row_map, result), n->out[j->out], (uint64_t)b->out_at * size,
                      (uint64_t)box_count(b) * size, ACCESS_WRITE));
    for (int i = 0; i < j->n_in; i++) {
        if (!j->used[i]) continue;
        size = bytes_of(j->types[i]);
        TRY(lower_operand(j->l, s, offsetof(row_map, in_) + (size_t)i * sizeof(operand), n->in[i],
                          (uint64_t)b->at[i] * size, (uint64_t)box_span(b, i) * size, ACCESS_READ));
        s->operands[s->n_operands - 1].dense = input_kind(b, i, width) == MAP_DENSE && size == bytes_of(j->result);
        TRY(lower_spec(j->l, s, SPEC_TYPES + (uint32_t)i, (uint32_t)j->types[i]));
        TRY(lower_spec(j->l, s, SPEC_KINDS + (uint32_t)i, input_kind(b, i, width)));
        s->bytes += (uint64_t)box_span(b, i) * size;
    }
    s->bytes += (uint64_t)box_count(b) * bytes_of(j->result);
    return BRAID_OK;
}

static braid_status add_step(const map_job *j, const box *b, bool wide) {
    row_map row = {0};
    uint32_t width = choose_width(j, b), group, chunks;
    uint64_t units = ceil_div((uint64_t)box_count(b), width);
    choose_grid(j->l->device, &group, &chunks);
    fill_row(&row, j, b);
    step *s = lower_step(j->l, wide ? "map_f64" : "map_f32", &row, sizeof row,
                         ceil_div(units, (uint64_t)group * chunks), group);
    if (!s) return BRAID_HOST_MEMORY;
    s->flops = (uint64_t)box_count(b) * (uint64_t)j->p->n_steps;
    TRY(lower_spec(j->l, s, SPEC_WIDTH, width));
    TRY(lower_spec(j->l, s, SPEC_CHUNKS, chunks));
    TRY(lower_spec(j->l, s, SPEC_RESULT, (uint32_t)j->result));
    TRY(lower_spec(j->l, s, SPEC_RANK, (uint32_t)b->rank));
    TRY(lower_spec(j->l, s, SPEC_INNER, b->rank > 1 && lines_of(b, width)));
    TRY(add_operands(j, s, b, width));
    return map_lower_words(j->l, s, j->p);
}

/* In-row indices stay below 2^31: larger boxes are halved along their first dim, at a multiple of 8 where it is the
   only one. */
static braid_status add_steps(const map_job *j, const box *b, bool wide) {
    bool large = box_count(b) > INT32_MAX - 1024;
    for (int i = 0; i < j->n_in; i++) large = large || (j->used[i] && box_span(b, i) > INT32_MAX - 1024);
    if (!large) return add_step(j, b, wide);
    box half[2] = {*b, *b};
    int64_t first = b->dims[0] / 2;
    if (b->rank == 1 && first > 8) first -= first % 8;
    half[0].dims[0] = first;
    half[1].dims[0] = b->dims[0] - first;
    half[1].out_at += first * (box_count(b) / b->dims[0]);
    for (int i = 0; i < j->n_in; i++) half[1].at[i] += first * b->strides[i][0];
    for (int k = 0; k < 2; k++) {
        box_collapse(&half[k], j->n_in);
        TRY(add_steps(j, &half[k], wide));
    }
    return BRAID_OK;
}

braid_status map_lower_strided(lowering *l, const program *p, int out, const int64_t (*strides)[BRAID_MAX_RANK]) {
    const tensor_type *type = lower_out(l, out);
    if (!type) return BRAID_OK;
    map_job j = {.l = l, .p = p, .n_in = l->node->n_in, .out = out, .result = type->type};
    box b = {.rank = type->rank};
    bool wide;
    if (!job_set(&j, &wide)) return BRAID_UNSUPPORTED;
    memcpy(b.dims, type->dims, sizeof b.dims);
    for (int i = 0; i < j.n_in; i++)
        if (j.used[i]) memcpy(b.strides[i], strides[i], sizeof b.strides[i]);
    if (box_count(&b) == 0) return BRAID_OK;
    box_collapse(&b, j.n_in);
    return add_steps(&j, &b, wide);
}

braid_status map_lower_program(lowering *l, const program *p) {
    int64_t strides[PROGRAM_INPUTS][BRAID_MAX_RANK] = {0};
    const tensor_type *out = lower_out(l, 0);
    if (l->node->n_in > PROGRAM_INPUTS) return BRAID_UNSUPPORTED;
    for (int i = 0; i < l->node->n_in; i++) {
        const tensor_type *in = lower_in(l, i);
        if (in && !map_strides(in, out, strides[i])) memset(strides[i], 0, sizeof strides[i]);
    }
    return map_lower_strided(l, p, 0, strides);
}

/* ---------------------------------------------------------------------------------- operators with an emit */

static bool emit_node(const node *n, const braid_type *types, braid_type out, program *p) {
    int reg[PROGRAM_INPUTS], result;
    *p = (program){0};
    if (n->n_in > PROGRAM_INPUTS) return false;
    for (int i = 0; i < n->n_in; i++) reg[i] = n->in[i] < 0 ? -1 : i;
    return n->op->emit(n, types, out, p, reg, &result) && result == program_result(p);
}

braid_status map_lower(lowering *l) {
    braid_type types[PROGRAM_INPUTS] = {0};
    program p;
    for (int i = 0; i < l->node->n_in && i < PROGRAM_INPUTS; i++)
        if (lower_in(l, i)) types[i] = lower_in(l, i)->type;
    if (!lower_out(l, 0)) return BRAID_OK;
    if (!emit_node(l->node, types, lower_out(l, 0)->type, &p)) return BRAID_UNSUPPORTED;
    return map_lower_program(l, &p);
}

braid_status map_eval(eval *e) {
    braid_type types[PROGRAM_INPUTS] = {0};
    program p;
    tensor *out;
    for (int i = 0; i < e->n_in && i < PROGRAM_INPUTS; i++)
        if (e->in[i]) types[i] = e->in[i]->type.type;
    TRY(eval_output(e, 0, &out));
    if (!emit_node(e->node, types, out->type.type, &p))
        return error_set(e->err, BRAID_UNSUPPORTED, "no rule for type %s", braid_type_name(types[0]));
    return program_eval(&p, e->n_in, e->in, out, e->err);
}
