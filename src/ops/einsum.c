/*
 * einsum.c: Einsum: parsing, inference and evaluation. Any number of operands, "...", diagonals, implicit output.
 */
#include "ops/einsum.h"
#include "ops/product.h"

static int letter(char c) {
    return c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? c - 'a' + 26 : -1;
}

/* One term up to a comma, an arrow or the end. */
static braid_status parse_term(const char **at, einsum_term *t, braid_error *err) {
    *t = (einsum_term){.ellipsis = -1};
    for (; **at && **at != ',' && **at != '-'; ++*at) {
        if (**at == ' ') continue;
        if (strncmp(*at, "...", 3) == 0) {
            if (t->ellipsis >= 0) return error_set(err, BRAID_MODEL, "equation: more than one '...' in a term");
            t->ellipsis = t->rank;
            *at += 2;
            continue;
        }
        int l = letter(**at);
        if (l < 0) return error_set(err, BRAID_MODEL, "equation: unexpected character '%c'", **at);
        if (t->rank == BRAID_MAX_RANK)
            return error_set(err, BRAID_LIMIT, "equation: a term of more than %d letters", BRAID_MAX_RANK);
        t->label[t->rank++] = (uint8_t)l;
    }
    return BRAID_OK;
}

braid_status einsum_parse(const node *einsum_node, int n_in, einsum *e, bool *explicit_out, braid_error *err) {
    const char *at = node_string(einsum_node, "equation", NULL);
    if (!at) return error_set(err, BRAID_MODEL, "attribute 'equation' is missing");
    if (n_in > EINSUM_INPUTS) return error_set(err, BRAID_LIMIT, "more than %d inputs", EINSUM_INPUTS);
    *e = (einsum){0};
    for (;;) {
        if (e->n_terms == n_in) return error_set(err, BRAID_MODEL, "equation: more terms than the %d inputs", n_in);
        TRY(parse_term(&at, &e->terms[e->n_terms++], err));
        if (*at != ',') break;
        at++;
    }
    if (e->n_terms != n_in) return error_set(err, BRAID_MODEL, "equation: %d terms for %d inputs", e->n_terms, n_in);
    *explicit_out = *at == '-';
    if (!*explicit_out) return BRAID_OK;
    if (at[1] != '>') return error_set(err, BRAID_MODEL, "equation: '-' without '>'");
    at += 2;
    TRY(parse_term(&at, &e->out, err));
    if (*at) return error_set(err, BRAID_MODEL, "equation: unexpected character '%c' after the output", *at);
    return BRAID_OK;
}

/* Puts `dims` ellipsis labels in place of a term's "...". */
static braid_status expand_term(einsum_term *t, int dims, braid_error *err) {
    if (t->ellipsis < 0) return BRAID_OK;
    if (t->rank + dims > BRAID_MAX_RANK)
        return error_set(err, BRAID_LIMIT, "equation: a term of more than %d dims", BRAID_MAX_RANK);
    einsum_term now = {.ellipsis = -1};
    for (int i = 0; i <= t->rank && now.rank < BRAID_MAX_RANK; i++) {
        for (int d = dims; i == t->ellipsis && d > 0 && now.rank < BRAID_MAX_RANK; d--)
            now.label[now.rank++] = (uint8_t)(EINSUM_LABELS - d);
        if (i < t->rank && now.rank < BRAID_MAX_RANK) now.label[now.rank++] = t->label[i];
    }
    *t = now;
    return BRAID_OK;
}

/* Letters that occur once, sorted, behind the ellipsis dims. */
static braid_status implicit_output(einsum *e, int ellipsis, braid_error *err) {
    int times[EINSUM_LABELS] = {0};
    for (int i = 0; i < e->n_terms; i++)
        for (int d = 0; d < e->terms[i].rank; d++) times[e->terms[i].label[d]]++;
    e->out = (einsum_term){.ellipsis = 0};
    TRY(expand_term(&e->out, ellipsis, err));
    for (int l = 0; l < EINSUM_ELLIPSIS; l++) {
        if (times[l] != 1) continue;
        if (e->out.rank == BRAID_MAX_RANK)
            return error_set(err, BRAID_LIMIT, "equation: an output of more than %d dims", BRAID_MAX_RANK);
        e->out.label[e->out.rank++] = (uint8_t)l;
    }
    return BRAID_OK;
}

static braid_status check_output(const einsum *e, braid_error *err) {
    bool known[EINSUM_LABELS] = {0}, used[EINSUM_LABELS] = {0};
    for (int i = 0; i < e->n_terms; i++)
        for (int d = 0; d < e->terms[i].rank; d++) known[e->terms[i].label[d]] = true;
    for (int d = 0; d < e->out.rank; d++) {
        int l = e->out.label[d];
        char name = l < 26 ? (char)('A' + l) : l < 52 ? (char)('a' + l - 26) : '.';
        if (!known[l]) return error_set(err, BRAID_MODEL, "equation: output label '%c' is in no input", name);
        if (used[l]) return error_set(err, BRAID_MODEL, "equation: output label '%c' is repeated", name);
        used[l] = true;
    }
    return BRAID_OK;
}

braid_status einsum_expand(einsum *e, const int *ranks, bool explicit_out, braid_error *err) {
    int most = 0;
    for (int i = 0; i < e->n_terms; i++) {
        einsum_term *t = &e->terms[i];
        int dims = ranks[i] - t->rank;
        if (dims < 0 || (dims > 0 && t->ellipsis < 0))
            return error_set(err, BRAID_SHAPE, "input %d: rank %d, the equation has %d labels", i, ranks[i], t->rank);
        if (dims > most) most = dims;
        TRY(expand_term(t, dims, err));
    }
    if (!explicit_out)
        TRY(implicit_output(e, most, err));
    else
        TRY(expand_term(&e->out, most, err));
    return check_output(e, err);
}

/* ------------------------------------------------------------------------------------------------- infer */

static braid_status einsum_types(infer *c) {
    for (int i = 0; i < c->n_in; i++) {
        braid_type t = c->in[i] ? c->in[i]->type : BRAID_TYPE_NONE;
        if (t == BRAID_TYPE_NONE) continue;
        if (!type_is_float(t) && !type_is_integer(t))
            return error_set(c->err, BRAID_TYPE, "input %d: %s is not a numeric type", i, braid_type_name(t));
        if (c->out[0].type != BRAID_TYPE_NONE && c->out[0].type != t)
            return error_set(c->err, BRAID_TYPE, "input %d: %s, expected %s", i, braid_type_name(t),
                             braid_type_name(c->out[0].type));
        c->out[0].type = t;
    }
    return BRAID_OK;
}

static braid_status einsum_infer(infer *c) {
    einsum e;
    bool explicit_out;
    int ranks[EINSUM_INPUTS];
    TRY(einsum_types(c));
    TRY(einsum_parse(c->node, c->n_in, &e, &explicit_out, c->err));
    for (int i = 0; i < c->n_in; i++) {
        if (!c->in[i]) return error_set(c->err, BRAID_MODEL, "input %d is missing", i);
        if (c->in[i]->rank < 0) return BRAID_OK;
        ranks[i] = c->in[i]->rank;
    }
    TRY(einsum_expand(&e, ranks, explicit_out, c->err));
    int64_t extent[EINSUM_LABELS];
    bool seen[EINSUM_LABELS] = {0};
    for (int i = 0; i < e.n_terms; i++)
        for (int d = 0; d < e.terms[i].rank; d++) {
            int l = e.terms[i].label[d];
            int64_t now = c->in[i]->dims[d];
            if (seen[l] && !infer_broadcast_dim(c, extent[l], now, &now))
                return error_set(c->err, BRAID_SHAPE, "input %d: dim %d is %lld, another with its label %lld", i, d,
                                 (long long)c->in[i]->dims[d], (long long)extent[l]);
            extent[l] = now;
            seen[l] = true;
        }
    c->out[0].rank = e.out.rank;
    for (int d = 0; d < e.out.rank; d++) c->out[0].dims[d] = extent[e.out.label[d]];
    return BRAID_OK;
}

/* -------------------------------------------------------------------------------------------------- eval */

int einsum_labels(const einsum *e, const tensor_type *const *in, einsum_label out[EINSUM_LABELS]) {
    int place[EINSUM_LABELS], n = 0;
    for (int l = 0; l < EINSUM_LABELS; l++) place[l] = -1;
    for (int d = 0; d < e->out.rank; d++) {
        place[e->out.label[d]] = n;
        out[n++] = (einsum_label){.extent = 1};
    }
    for (int i = 0; i < e->n_terms; i++) {
        int64_t stride = 1;
        for (int d = e->terms[i].rank - 1; d >= 0; d--) {
            int l = e->terms[i].label[d];
            int64_t extent = in[i]->dims[d];
            if (place[l] < 0) {
                place[l] = n;
                out[n++] = (einsum_label){.extent = 1, .summed = true};
            }
            if (extent != 1) {
                out[place[l]].extent = extent;
                out[place[l]].in[i] += stride;
            }
            stride *= extent;
        }
    }
    int64_t stride = 1;
    for (int d = e->out.rank - 1; d >= 0; d--) {
        out[d].out = stride;
        stride *= out[d].extent;
    }
    return n;
}

static bool joins(const einsum_label *a, const einsum_label *b, int n_in) {
    if (a->summed != b->summed || (!a->summed && a->out != b->out * b->extent)) return false;
    for (int i = 0; i < n_in; i++)
        if (a->in[i] != b->in[i] * b->extent) return false;
    return true;
}

int einsum_merge(einsum_label *labels, int n, int n_in) {
    int kept = 0;
    for (int i = 0; i < n; i++) {
        if (labels[i].extent == 1) continue;
        einsum_label now = labels[i];
        if (kept > 0 && joins(&labels[kept - 1], &now, n_in)) now.extent *= labels[--kept].extent;
        labels[kept++] = now;
    }
    return kept;
}

typedef struct contraction {
    int n_in, n_out, n_sum; /* labels of the output, and summed ones behind them */
    einsum_label label[EINSUM_LABELS];
    braid_type type;
    const tensor *const *in;
} contraction;

/* Sum over the last `n` labels from label `at`, operands at offset[]. */
static cell sum_from(const contraction *c, int at, const int64_t *offset) {
    cell sum = {.u = 0};
    bool integer = !type_is_float(c->type);
    if (at == c->n_out + c->n_sum) {
        for (int i = 0; i < c->n_in; i++) {
            cell v;
            cells_load(&v, integer, c->type, c->in[i]->data, offset[i], 0, 1);
            if (i == 0)
                sum = v;
            else if (integer)
                sum.u *= v.u;
            else
                sum.f *= v.f;
        }
        return sum;
    }
    const einsum_label *l = &c->label[at];
    int64_t now[EINSUM_INPUTS];
    memcpy(now, offset, (size_t)c->n_in * sizeof *now);
    for (int64_t k = 0; k < l->extent; k++) {
        cell part = sum_from(c, at + 1, now);
        if (integer)
            sum.u += part.u;
        else
            sum.f += part.f;
        for (int i = 0; i < c->n_in; i++) now[i] += l->in[i];
    }
    return sum;
}

static braid_status einsum_eval(eval *v) {
    contraction c = {.n_in = v->n_in, .in = v->in};
    einsum e;
    bool explicit_out;
    int ranks[EINSUM_INPUTS];
    const tensor_type *types[EINSUM_INPUTS];
    TRY(einsum_parse(v->node, v->n_in, &e, &explicit_out, v->err));
    for (int i = 0; i < v->n_in; i++) {
        types[i] = &v->in[i]->type;
        ranks[i] = types[i]->rank;
    }
    TRY(einsum_expand(&e, ranks, explicit_out, v->err));
    tensor *out;
    TRY(eval_output(v, 0, &out));
    c.type = out->type.type;
    int n = einsum_merge(c.label, einsum_labels(&e, types, c.label), c.n_in);
    while (c.n_out < n && !c.label[c.n_out].summed) c.n_out++;
    c.n_sum = n - c.n_out;
    int64_t count;
    if (!tensor_type_count(&out->type, &count)) return error_set(v->err, BRAID_LIMIT, "output too large");
    for (int64_t i = 0; i < count; i++) {
        int64_t offset[EINSUM_INPUTS] = {0};
        for (int l = 0; l < c.n_out; l++)
            for (int j = 0; j < c.n_in; j++) offset[j] += i / c.label[l].out % c.label[l].extent * c.label[l].in[j];
        cell sum = sum_from(&c, c.n_out, offset);
        cells_store(&sum, !type_is_float(c.type), c.type, out->data, i, 1);
    }
    return BRAID_OK;
}

static const attribute_spec einsum_attributes[] = {{"equation", ATTRIBUTE_STRING, NULL}, {0}};

const op einsum_ops[] = {{.name = "Einsum",
                          .since = 12,
                          .min_in = 1,
                          .max_in = 1,
                          .min_out = 1,
                          .max_out = 1,
                          .flags = OP_VARIADIC_IN,
                          .attributes = einsum_attributes,
                          .infer = einsum_infer,
                          .eval = einsum_eval,
                          .lower = einsum_lower},
                         {0}};
