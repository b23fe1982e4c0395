/*
 * follow.c: arithmetic on followed values.
 */
#include "ops/follow.h"

bool follow_wanted(const infer *c, int i) {
    const tensor_type *t = &c->out[i];
    bool integer = t->type == BRAID_TYPE_NONE || t->type == BRAID_BOOL || type_is_integer(t->type);
    return integer && t->rank <= 1;
}

bool follow_in(infer *c, int i, followed *out) {
    if (!infer_has(c, i) || c->in[i]->rank > 1) return false;
    return infer_ints(c, i, &out->n, &out->v) && out->n <= FOLLOW_MAX;
}

/* Numbers that stand for themselves: infer_ints cuts very negative ones off at DIM_SYMBOL_BASE, and an unsigned one with
   the top bit set looks negative. */
static bool follow_exact(infer *c, int i, followed *out) {
    if (!follow_in(c, i, out)) return false;
    for (int k = 0; k < out->n; k++)
        if (out->v[k] == DIM_SYMBOL_BASE || (c->in[i]->type == BRAID_UINT64 && dim_known(out->v[k]) && out->v[k] < 0))
            return false;
    return true;
}

int64_t *follow_put(infer *c, int i, int n) {
    if (n > FOLLOW_MAX) return NULL;
    int64_t *v = arena_array(c->g->memory, (size_t)n + 1, sizeof *v);
    if (v) c->out_known[i] = (followed){.n = n, .v = v};
    return v;
}

/* Does a number survive in this type. Symbols always do: dims are far below 2^31 in practice and infer runs again with
   numbers before anything is computed. */
static bool fits(braid_type type, int64_t v) {
    if (dim_is_symbol(v)) return type == BRAID_INT64 || type == BRAID_INT32 || type == BRAID_TYPE_NONE;
    int bits = type_bits(type);
    if (type == BRAID_BOOL) return v == 0 || v == 1;
    if (type_is_unsigned(type)) return v >= 0 && (bits == 64 || v < (int64_t)1 << bits);
    if (type_is_signed(type)) return bits == 64 || (v >= -((int64_t)1 << (bits - 1)) && v < (int64_t)1 << (bits - 1));
    return true;
}

static bool all_fit(braid_type type, int n, const int64_t *v) {
    for (int i = 0; i < n; i++)
        if (!fits(type, v[i])) return false;
    return true;
}

void follow_same(infer *c) {
    followed f;
    if (!follow_wanted(c, 0) || !follow_exact(c, 0, &f)) return;
    if (all_fit(c->out[0].type, f.n, f.v)) c->out_known[0] = f;
}

static bool named(const infer *c, int64_t d) { return dim_is_symbol(d) && c->g->symbols[dim_symbol(d)] != NULL; }

static bool unary_number(char what, int64_t a, int64_t *out) {
    if (what == '-') return i64_sub(0, a, out);
    if (what == 'a') return a >= 0 ? (*out = a, true) : i64_sub(0, a, out);
    if (what == '0') *out = (a > 0) - (a < 0);
    else if (what == '!') *out = !a;
    else return false;
    return true;
}

void follow_unary(infer *c, char what) {
    followed f;
    if (!follow_wanted(c, 0) || !follow_exact(c, 0, &f)) return;
    int64_t v[FOLLOW_MAX];
    for (int i = 0; i < f.n; i++) {
        if (what == 'a' && named(c, f.v[i])) v[i] = f.v[i];
        else if (dim_is_symbol(f.v[i])) v[i] = infer_fresh(c);
        else if (!unary_number(what, f.v[i], &v[i]) || dim_is_symbol(v[i])) return;
    }
    if (!all_fit(c->out[0].type, f.n, v)) return;
    int64_t *out = follow_put(c, 0, f.n);
    if (out) memcpy(out, v, (size_t)f.n * sizeof *v);
}

static bool divide(int64_t a, int64_t b, char what, int64_t *out) {
    if (b == 0 || (a == INT64_MIN && b == -1)) return false;
    *out = what == '/' ? a / b : a % b;
    if (what == '%' && *out && (*out < 0) != (b < 0)) *out += b;
    return true;
}

static bool binary_number(char what, int64_t a, int64_t b, int64_t *out) {
    switch (what) {
    case '+': return i64_add(a, b, out);
    case '-': return i64_sub(a, b, out);
    case '*': return i64_mul(a, b, out);
    case '/':
    case '%': return divide(a, b, what, out);
    case '<': *out = a < b ? a : b; return true;
    case '>': *out = a > b ? a : b; return true;
    case '=': *out = a == b; return true;
    case 'l': *out = a < b; return true;
    case 'g': *out = a > b; return true;
    case '&': *out = a && b; return true;
    case '|': *out = a || b; return true;
    case '^': *out = !a != !b; return true;
    default: return false;
    }
}

/* What is certain of an operation with a symbol; false when nothing is. */
static bool binary_symbol(const infer *c, char what, int64_t a, int64_t b, int64_t *out) {
    bool same = a == b;
    bool a_dim = named(c, a), b_dim = named(c, b);
    int64_t v;
    switch (what) {
    case '+': v = a == 0 ? b : b == 0 ? a : INT64_MAX; break;
    case '-': v = same ? 0 : b == 0 ? a : INT64_MAX; break;
    case '*': v = a == 0 || b == 0 ? 0 : a == 1 ? b : b == 1 ? a : INT64_MAX; break;
    case '/': v = b == 1 ? a : INT64_MAX; break;
    case '%': v = b == 1 ? 0 : INT64_MAX; break;
    case '<': v = same ? a : INT64_MAX; break;
    case '>': v = same || (a_dim && dim_known(b) && b <= 0) ? a : b_dim && dim_known(a) && a <= 0 ? b : INT64_MAX; break;
    case '=':
        v = same ? 1 : (a_dim && dim_known(b) && b < 0) || (b_dim && dim_known(a) && a < 0) ? 0 : INT64_MAX;
        break;
    case 'l': v = same || (a_dim && dim_known(b) && b <= 0) ? 0 : INT64_MAX; break;
    case 'g': v = same || (b_dim && dim_known(a) && a <= 0) ? 0 : INT64_MAX; break;
    default: return false;
    }
    *out = v;
    return v != INT64_MAX;
}

void follow_binary(infer *c, char what) {
    followed a, b;
    if (!follow_wanted(c, 0) || !follow_exact(c, 0, &a) || !follow_exact(c, 1, &b)) return;
    if (a.n != b.n && a.n != 1 && b.n != 1) return;
    int n = a.n == 1 ? b.n : a.n;
    int64_t v[FOLLOW_MAX];
    for (int i = 0; i < n; i++) {
        int64_t x = a.v[a.n == 1 ? 0 : i], y = b.v[b.n == 1 ? 0 : i];
        if (dim_is_symbol(x) || dim_is_symbol(y)) {
            if (!binary_symbol(c, what, x, y, &v[i])) v[i] = infer_fresh(c);
        } else if (!binary_number(what, x, y, &v[i]) || dim_is_symbol(v[i])) {
            return;
        }
    }
    braid_type type = c->out[0].type;
    for (int i = 0; i < n; i++) /* an unknown truth value may be followed, too */
        if (!(type == BRAID_BOOL && dim_is_symbol(v[i])) && !fits(type, v[i])) return;
    int64_t *out = follow_put(c, 0, n);
    if (out) memcpy(out, v, (size_t)n * sizeof *v);
}

void follow_where(infer *c) {
    followed condition, a, b;
    if (!follow_wanted(c, 0) || !follow_in(c, 0, &condition) || !follow_in(c, 1, &a) || !follow_in(c, 2, &b)) return;
    int n = condition.n;
    if (n == 1) n = a.n == 1 ? b.n : a.n;
    if ((condition.n != 1 && condition.n != n) || (a.n != 1 && a.n != n) || (b.n != 1 && b.n != n)) return;
    int64_t *out = follow_put(c, 0, n);
    for (int i = 0; out && i < n; i++) {
        int64_t t = condition.v[condition.n == 1 ? 0 : i];
        int64_t x = a.v[a.n == 1 ? 0 : i], y = b.v[b.n == 1 ? 0 : i];
        out[i] = x == y ? x : dim_is_symbol(t) ? infer_fresh(c) : t ? x : y;
    }
}

braid_status infer_index_type(infer *c, int i) {
    if (!infer_has(c, i)) return BRAID_OK;
    braid_type type = c->in[i]->type;
    if (type == BRAID_TYPE_NONE || type == BRAID_INT32 || type == BRAID_INT64) return BRAID_OK;
    return error_set(c->err, BRAID_TYPE, "input %d: %s, expected int32 or int64", i, braid_type_name(type));
}

braid_status infer_limit(infer *c, int i) {
    const tensor_type *t = &c->out[i];
    int64_t count;
    if (t->rank < 0 || !tensor_type_static(t) || dims_count(t->rank, t->dims, &count)) return BRAID_OK;
    return error_set(c->err, BRAID_LIMIT, "output %d: more than %lld elements", i, (long long)ELEMENTS_MAX);
}
