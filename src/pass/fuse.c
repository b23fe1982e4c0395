/*
 * fuse: elementwise nodes become one Map node, or the epilogue of the matmul, convolution or reduction before them.
 *
 * A group is a set of nodes with one visible output: at most one root (an operator that runs epilogues) and elementwise
 * members of the same output shape. Going through the nodes in order, each elementwise node starts a group and absorbs
 * the groups that feed it, as long as nobody outside sees what they made. Looking at the uses of the *merged* group, not
 * of one producer, is what lets x * sigmoid(x) and GELU join the convolution or matmul that made x, which both read.
 *
 * Nodes of a group have the same copies; what they read from outside may have one.
 *
 * A group runs where its last node stood: all its readers come later, so no cycle can arise.
 *
 * Registers hold float32. A float16 or bfloat16 value inside a group is rounded as if it had been stored: what fuses,
 * which re-rolling and the wanted outputs change, never shows in a result. Nothing is rounded later than it was made,
 * not even behind Relu: a tiny negative number becomes -0, which Relu leaves.
 *
 * Requires: sorted, inferred, static shapes. Ensures: values kept are those that cross groups.
 */
#include "pass/copy.h"

enum { GROUP_MAX = PROGRAM_STEPS + 1, EXTRA_MAX = 4 /* inputs of an epilogue besides the root's result */ };

typedef struct group {
    int32_t nodes[GROUP_MAX]; /* ascending; the last makes the output */
    int n;
    int32_t root; /* node number or -1 */
    bool absorbed;
} group;

typedef struct fuser {
    const graph *g;
    arena *memory;
    int32_t *uses;
    int32_t *group_of; /* node -> group, -1: cannot be fused */
    group *groups;
    int32_t n_groups;
    braid_error *err;
} fuser;

/* -------------------------------------------------------------------------------------------- programs */

enum { ROOT_RESULT = -2 }; /* in a register: the root's result before it is rounded */

typedef struct build {
    const fuser *f;
    program p;
    int32_t values[32]; /* value held by each register, -1 free */
    int n_inputs;       /* input registers taken */
} build;

static int register_of(const build *b, int32_t v) {
    for (int r = 0; r < 32; r++)
        if (b->values[r] == v) return r;
    return -1;
}

static bool scalar_constant(const fuser *f, int32_t v, double *as_float, int64_t *as_int) {
    tensor *t = f->g->values[v]->constant;
    int64_t count;
    if (!t || !tensor_type_count(&t->type, &count) || count != 1 || tensor_load(t, f->memory, NULL) != BRAID_OK)
        return false;
    *as_float = element_f64(t->type.type, t->data, 0);
    *as_int = element_i64(t->type.type, t->data, 0);
    return true;
}

/* An outside value takes an immediate when it is a constant scalar, else an input register. */
static int register_for_outside(build *b, int32_t v) {
    double f;
    int64_t i;
    if (b->p.n_immediates < PROGRAM_IMMEDIATES && scalar_constant(b->f, v, &f, &i)) {
        int k = b->p.n_immediates++;
        b->p.immediates_f[k] = f;
        b->p.immediates_i[k] = i;
        b->values[PROGRAM_INPUTS + k] = v;
        return PROGRAM_INPUTS + k;
    }
    if (b->n_inputs == PROGRAM_INPUTS) return -1;
    b->values[b->n_inputs] = v;
    return b->n_inputs++;
}

/* The register of a value that other nodes of the group read, made in `reg`; -1: no room. */
static int register_inside(build *b, int32_t v, int reg) {
    const graph *g = b->f->g;
    braid_type t = g->values[v]->type.type;
    uint32_t held = 0;
    if (t != BRAID_FLOAT16 && t != BRAID_BFLOAT16) return reg;
    for (int r = 0; r < PROGRAM_INPUTS; r++)
        if (b->values[r] >= 0 && g->values[b->values[r]]->type.type == t) held |= 1u << r;
    return program_rounded(&b->p, t, reg, held);
}

static bool add_node(build *b, const node *n, bool last) {
    int registers[PROGRAM_INPUTS + 8];
    braid_type types[PROGRAM_INPUTS + 8];
    if (n->n_in > (int)COUNT_OF(registers)) return false;
    for (int i = 0; i < n->n_in; i++) {
        registers[i] = -1;
        types[i] = BRAID_TYPE_NONE;
        if (n->in[i] < 0) continue;
        types[i] = b->f->g->values[n->in[i]]->type.type;
        registers[i] = register_of(b, n->in[i]);
        if (registers[i] < 0 && (registers[i] = register_for_outside(b, n->in[i])) < 0) return false;
    }
    int result;
    if (!n->op->emit(n, types, b->f->g->values[n->out[0]]->type.type, &b->p, registers, &result)) return false;
    if (!last && (result = register_inside(b, n->out[0], result)) < 0) return false;
    if (b->values[result] >= 0) return false; /* the node passes an input through: nothing to name */
    b->values[result] = n->out[0];
    return true;
}

/* Immediates are scalars: where a constant of shape [1,1] gave the result its rank, no input is left that does. */
static bool keeps_rank(const fuser *f, const group *q, const build *b) {
    int rank = 0;
    for (int i = 0; i < b->n_inputs; i++)
        if (f->g->values[b->values[i]]->type.rank > rank) rank = f->g->values[b->values[i]]->type.rank;
    return b->n_inputs > 0 && rank == f->g->values[f->g->nodes[q->nodes[q->n - 1]]->out[0]]->type.rank;
}

static bool build_program(const fuser *f, const group *q, build *b) {
    *b = (build){.f = f};
    for (int r = 0; r < 32; r++) b->values[r] = -1;
    if (q->root >= 0) {
        int32_t v = f->g->nodes[q->root]->out[0];
        b->values[b->n_inputs++] = ROOT_RESULT;
        b->values[q->n > 1 ? register_inside(b, v, 0) : 0] = v;
    }
    for (int i = 0; i < q->n; i++)
        if (q->nodes[i] != q->root && !add_node(b, f->g->nodes[q->nodes[i]], i == q->n - 1)) return false;
    return q->root < 0 ? q->n == 1 || keeps_rank(f, q, b) : b->n_inputs <= 1 + EXTRA_MAX;
}

/* ---------------------------------------------------------------------------------------------- groups */

static bool one_output(const node *n) {
    for (int i = 1; i < n->n_out; i++)
        if (n->out[i] >= 0) return false;
    return n->n_out > 0 && n->out[0] >= 0;
}

static bool type_fuses(const graph *g, int32_t v) {
    const tensor_type *t = &g->values[v]->type;
    return t->type != BRAID_TYPE_NONE && t->type != BRAID_FLOAT64 && t->type != BRAID_STRING && tensor_type_static(t) &&
           type_bits(t->type) >= 8 && t->type <= BRAID_BFLOAT16 && t->type != BRAID_COMPLEX64 &&
           t->type != BRAID_COMPLEX128;
}

static bool types_fuse(const graph *g, const node *n) {
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0 && !type_fuses(g, n->in[i])) return false;
    return type_fuses(g, n->out[0]);
}

static bool is_member(const graph *g, const node *n) {
    return n->op && n->op->emit && !n->epilogue && one_output(n) && types_fuse(g, n);
}

static bool is_root(const graph *g, const node *n) {
    return n->op && (n->op->flags & OP_EPILOGUE) && !n->epilogue && one_output(n) && types_fuse(g, n) &&
           type_is_float(g->values[n->out[0]]->type.type);
}

static int32_t output_of(const fuser *f, const group *q) { return f->g->nodes[q->nodes[q->n - 1]]->out[0]; }

static bool same_shape(const fuser *f, int32_t a, int32_t b) {
    const tensor_type *x = &f->g->values[a]->type, *y = &f->g->values[b]->type;
    return x->rank == y->rank && memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims) == 0;
}

static int uses_inside(const fuser *f, const group *q, int32_t v) {
    int count = 0;
    for (int i = 0; i < q->n; i++)
        for (int k = 0; k < f->g->nodes[q->nodes[i]]->n_in; k++) count += f->g->nodes[q->nodes[i]]->in[k] == v;
    return count;
}

static void join(group *into, const group *other) {
    int a = into->n - 1, b = other->n - 1, at = into->n + other->n - 1;
    while (b >= 0) into->nodes[at--] = a >= 0 && into->nodes[a] > other->nodes[b] ? into->nodes[a--] : other->nodes[b--];
    into->n += other->n;
    if (other->root >= 0) into->root = other->root;
}

/* The root's own inputs must not come through the epilogue's registers: it reads them itself. */
static bool can_absorb(const fuser *f, const group *q, const group *other) {
    if (other->absorbed || q->n + other->n > GROUP_MAX || (q->root >= 0 && other->root >= 0)) return false;
    int32_t v = output_of(f, other), final = output_of(f, q);
    if (value_copies(f->g->values[v]) != value_copies(f->g->values[final])) return false;
    if (!same_shape(f, v, final) || uses_inside(f, q, v) != f->uses[v]) return false;
    if (other->root >= 0) {
        if (f->g->values[final]->type.type != f->g->values[f->g->nodes[other->root]->out[0]]->type.type) return false;
    }
    return q->root < 0 || other->nodes[other->n - 1] > q->root || uses_inside(f, q, v) > 0;
}

static bool reads(const node *n, int32_t v) {
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] == v) return true;
    return false;
}

static bool absorb_one(fuser *f, int32_t q) {
    group *self = &f->groups[q];
    for (int i = self->n - 1; i >= 0; i--) {
        const node *n = f->g->nodes[self->nodes[i]];
        for (int k = 0; k < n->n_in && self->nodes[i] != self->root; k++) {
            int32_t v = n->in[k];
            int32_t maker = v >= 0 && f->g->values[v]->kind == VALUE_NODE ? f->g->values[v]->producer : -1;
            int32_t other = maker >= 0 ? f->group_of[maker] : -1;
            if (other < 0 || other == q || output_of(f, &f->groups[other]) != v) continue;
            if (!can_absorb(f, self, &f->groups[other])) continue;
            if (self->root >= 0 && reads(f->g->nodes[self->root], v)) continue;
            group merged = *self;
            build b;
            join(&merged, &f->groups[other]);
            if (!build_program(f, &merged, &b)) continue;
            *self = merged;
            f->groups[other].absorbed = true;
            for (int j = 0; j < merged.n; j++) f->group_of[merged.nodes[j]] = q;
            return true;
        }
    }
    return false;
}

static braid_status fuser_new(fuser *f, const graph *g, arena *memory, braid_error *err) {
    *f = (fuser){.g = g, .memory = memory, .err = err};
    f->uses = graph_uses(g, memory);
    f->group_of = arena_array(memory, (size_t)g->n_nodes + 1, sizeof *f->group_of);
    f->groups = arena_array(memory, (size_t)g->n_nodes + 1, sizeof *f->groups);
    if (!f->uses || !f->group_of || !f->groups) return error_memory(err);
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const node *n = g->nodes[i];
        bool member = is_member(g, n), root = !member && is_root(g, n);
        f->group_of[i] = member || root ? f->n_groups : -1;
        if (!member && !root) continue;
        f->groups[f->n_groups] = (group){.nodes = {i}, .n = 1, .root = root ? i : -1};
        f->n_groups++;
        while (member && absorb_one(f, f->group_of[i])) {}
    }
    return BRAID_OK;
}

/* --------------------------------------------------------------------------------------------- rewriting */

static braid_status emit_group(copier *c, const fuser *f, const group *q) {
    const node *last = f->g->nodes[q->nodes[q->n - 1]], *root = q->root >= 0 ? f->g->nodes[q->root] : NULL;
    build b;
    if (!build_program(f, q, &b)) return error_set(c->err, BRAID_INTERNAL, "fuse: a group lost its program");
    int n_root = root ? root->n_in : 0, skip = root ? 1 : 0;
    int32_t *in = arena_array(c->to->memory, (size_t)(n_root + PROGRAM_INPUTS), sizeof *in);
    program *p = arena_copy(c->to->memory, &b.p, sizeof b.p);
    int32_t out = copier_like(c, last->out[0]);
    if (!in || !p || out < 0) return error_memory(c->err);
    for (int i = 0; i < n_root; i++) TRY(copier_value(c, root->in[i], &in[i]));
    for (int i = skip; i < b.n_inputs; i++) TRY(copier_value(c, b.values[i], &in[n_root + i - skip]));
    int n_in = n_root + b.n_inputs - skip;
    node *n = graph_node_into(c->to, root ? root->type : "Map", root ? root->domain : "braid",
                              root ? root->name : last->name, n_in, in, 1, &out);
    if (!n) return error_memory(c->err);
    n->op = root ? root->op : op_find("braid", "Map");
    n->opset = root ? root->opset : 1;
    n->epilogue = p;
    n->copies = last->copies;
    n->names = root ? root->names : last->names;
    n->n_root = root ? n_root : n_in;
    if (root) {
        n->n_attributes = root->n_attributes;
        n->attributes = root->attributes;
    } else if (!node_add_int(c->to, n, "type", (int64_t)f->g->values[last->out[0]]->type.type)) {
        return error_memory(c->err);
    }
    copier_replace(c, last->out[0], out);
    return BRAID_OK;
}

braid_status pass_fuse(const graph *g, arena *memory, const pass_options *o, graph **out, braid_error *err) {
    (void)o;
    fuser f;
    copier c;
    TRY(fuser_new(&f, g, memory, err));
    TRY(copier_new(&c, g, memory, err));
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const group *q = f.group_of[i] >= 0 ? &f.groups[f.group_of[i]] : NULL;
        if (!q || q->n == 1) TRY(copier_node(&c, g->nodes[i], NULL));
        else if (q->nodes[q->n - 1] == i) TRY(emit_group(&c, &f, q));
    }
    TRY(copier_outputs(&c));
    *out = c.to;
    return BRAID_OK;
}
