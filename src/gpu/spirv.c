/*
 * spirv.c: instruction forms and integer arithmetic of SPIR-V, as far as specialize.c needs them.
 */
#include "gpu/spirv.h"

enum {
    UNDEF = 1,
    LINE = 8,
    NO_LINE = 317,
    EXT_INST = 12,
    FUNCTION = 54,
    VARIABLE = 59,
    LOAD = 61,
    STORE = 62,
    COPY_MEMORY = 63,
    ARRAY_LENGTH = 68,
    VECTOR_SHUFFLE = 79,
    COMPOSITE_EXTRACT = 81,
    COMPOSITE_INSERT = 82,
    CONTROL_BARRIER = 224,
    MEMORY_BARRIER = 225,
    ATOMIC_STORE = 228,
    KILL = 252,
    RETURN = 253,
    RETURN_VALUE = 254,
};

static bool no_result(uint32_t op) {
    return op == STORE || op == COPY_MEMORY || op == CONTROL_BARRIER || op == MEMORY_BARRIER || op == ATOMIC_STORE ||
           (op >= SPIRV_LOOP_MERGE && op <= SPIRV_UNREACHABLE && op != SPIRV_LABEL) || op == SPIRV_FUNCTION_END ||
           op == LINE || op == NO_LINE || op == 0 || (op >= 2 && op <= 18 && op != EXT_INST && op != 7 && op != 11) ||
           spirv_is_annotation(op) || op == 331 || op == 39;
}

/* Memory operands from word `at`: a mask, an alignment, scopes. */
static void memory_operands(spirv_form *f, const uint32_t *w, uint32_t at, uint32_t *literals) {
    uint32_t length = w[0] >> 16;
    f->known = at >= length || (w[at] & ~0x3fu) == 0;
    for (uint32_t i = at; i < length && i < at + 1 + ((w[at] & 2u) != 0); i++)
        if (literals) literals[f->n_literals++] = i;
}

static void body_form(spirv_form *f, const uint32_t *w, uint32_t *literals) {
    uint32_t op = w[0] & 0xffff;
    f->known = true;
    switch (op) {
    case EXT_INST:
        if (literals) literals[f->n_literals++] = 4;
        break;
    case FUNCTION:
    case VARIABLE:
        if (literals) literals[f->n_literals++] = 3;
        break;
    case LOAD:
        memory_operands(f, w, 4, literals);
        break;
    case STORE:
        memory_operands(f, w, 3, literals);
        break;
    case ARRAY_LENGTH:
    case COMPOSITE_EXTRACT:
        f->literals_from = 4;
        break;
    case COMPOSITE_INSERT:
    case VECTOR_SHUFFLE:
        f->literals_from = 5;
        break;
    case SPIRV_SELECTION_MERGE:
        f->literals_from = 2;
        break;
    case SPIRV_LOOP_MERGE:
        f->literals_from = 3;
        break;
    case SPIRV_BRANCH_CONDITIONAL:
        f->literals_from = 4;
        break;
    case SPIRV_SWITCH: /* spirv_is_literal */
        break;
    default: /* all ids: undef, function pieces, pointers, conversions, arithmetic, atomics, phi, flow, copies */
        f->known = op == UNDEF || (op >= 54 && op <= 69 && op != COPY_MEMORY && op != 64) || (op >= 77 && op <= 84) ||
                   (op >= 109 && op <= 215) || (op >= 224 && op <= 242) || (op >= 245 && op <= 255) || op == 400 ||
                   op == LINE || op == NO_LINE;
    }
}

spirv_form spirv_form_of(const uint32_t *w, uint32_t *literals) {
    spirv_form f = {0};
    uint32_t op = w[0] & 0xffff;
    f.literals_from = UINT32_MAX;
    f.terminates = op == SPIRV_BRANCH || (op >= SPIRV_BRANCH_CONDITIONAL && op <= SPIRV_UNREACHABLE) || op == 4416;
    if (op == SPIRV_LABEL || (op >= 19 && op <= 38) || op == 7 || op == 11) {
        f.result = 1; /* labels, types, strings, import */
    } else if (!no_result(op)) {
        f.type = 1;
        f.result = 2;
    }
    body_form(&f, w, literals);
    return f;
}

bool spirv_is_literal(const uint32_t *w, const spirv_form *f, const uint32_t *literals, uint32_t i, bool wide) {
    if ((w[0] & 0xffff) == SPIRV_SWITCH) return i >= 3 && (i - 3) % (wide ? 3 : 2) != (wide ? 2 : 1);
    if (i >= f->literals_from) return true;
    for (uint32_t k = 0; k < f->n_literals; k++)
        if (literals[k] == i) return true;
    return false;
}

bool spirv_is_annotation(uint32_t op) {
    return (op >= 71 && op <= 76) || op == 332 || op == 5632 || op == 5633;
}
bool spirv_is_preamble(uint32_t op) {
    return (op >= 10 && op <= 17 && op != EXT_INST && op != 13) || op == 331;
}
bool spirv_is_constant(uint32_t op) {
    return op >= 41 && op <= 52 && op != 47;
}
bool spirv_is_debug(uint32_t op) {
    return (op >= 2 && op <= 8) || op == LINE || op == NO_LINE || op == 330 || op == 0;
}

spirv_type spirv_type_of(const uint32_t *w) {
    switch (w[0] & 0xffff) {
    case 20:
        return (spirv_type){.bits = 1};
    case 21:
        return (spirv_type){.bits = (uint8_t)w[2], .is_signed = w[3] != 0};
    case 22:
        return (spirv_type){.bits = (uint8_t)w[2], .is_float = true};
    default:
        return (spirv_type){0};
    }
}

uint64_t spirv_fit(spirv_type t, uint64_t value) {
    if (t.bits == 1) return value != 0;
    return t.bits >= 64 || t.bits == 0 ? value : value & (((uint64_t)1 << t.bits) - 1);
}

static int64_t extended(spirv_type t, uint64_t v) {
    if (t.bits >= 64 || t.bits <= 1) return (int64_t)v;
    int shift = 64 - t.bits;
    return (int64_t)(v << shift) >> shift;
}

static bool unary(uint32_t op, uint64_t a, spirv_type type, uint64_t *out) {
    switch (op) {
    case 113: /* UConvert */
    case 124: /* Bitcast */
        *out = a;
        return true;
    case 114: /* SConvert */
        *out = (uint64_t)extended(type, a);
        return true;
    case 126: /* SNegate */
        *out = 0 - a;
        return true;
    case 168: /* LogicalNot */
        *out = !a;
        return true;
    case 200: /* Not */
        *out = ~a;
        return true;
    default:
        return false;
    }
}

static bool compare(uint32_t op, uint64_t a, uint64_t b, int64_t sa, int64_t sb, uint64_t *out) {
    switch (op) {
    case 164: /* LogicalEqual */
    case 170: /* IEqual */
        *out = a == b;
        return true;
    case 165: /* LogicalNotEqual */
    case 171: /* INotEqual */
        *out = a != b;
        return true;
    case 172: /* UGreaterThan */
        *out = a > b;
        return true;
    case 173: /* SGreaterThan */
        *out = sa > sb;
        return true;
    case 174: /* UGreaterThanEqual */
        *out = a >= b;
        return true;
    case 175: /* SGreaterThanEqual */
        *out = sa >= sb;
        return true;
    case 176: /* ULessThan */
        *out = a < b;
        return true;
    case 177: /* SLessThan */
        *out = sa < sb;
        return true;
    case 178: /* ULessThanEqual */
        *out = a <= b;
        return true;
    case 179: /* SLessThanEqual */
        *out = sa <= sb;
        return true;
    default:
        return false;
    }
}

static bool binary(uint32_t op, spirv_type result, uint64_t a, uint64_t b, int64_t sa, uint64_t *out) {
    switch (op) {
    case 128: /* IAdd */
        *out = a + b;
        return true;
    case 130: /* ISub */
        *out = a - b;
        return true;
    case 132: /* IMul */
        *out = a * b;
        return true;
    case 134: /* UDiv */
        *out = b ? a / b : 0;
        return b != 0;
    case 137: /* UMod */
        *out = b ? a % b : 0;
        return b != 0;
    case 194: /* ShiftRightLogical */
        *out = b < result.bits ? a >> b : 0;
        return b < result.bits;
    case 195: /* ShiftRightArithmetic */
        *out = b < result.bits ? (uint64_t)(sa >> b) : 0;
        return b < result.bits;
    case 196: /* ShiftLeftLogical */
        *out = b < result.bits ? a << b : 0;
        return b < result.bits;
    case 197: /* BitwiseOr */
    case 166: /* LogicalOr */
        *out = a | b;
        return true;
    case 198: /* BitwiseXor */
        *out = a ^ b;
        return true;
    case 199: /* BitwiseAnd */
    case 167: /* LogicalAnd */
        *out = a & b;
        return true;
    default:
        return false;
    }
}

bool spirv_operate(uint32_t op, spirv_type result, size_t n, const bool *known, const uint64_t *v,
                   const spirv_type *types, uint64_t *out) {
    bool integers = result.bits != 0 && !result.is_float;
    for (size_t i = 0; i < n; i++) integers = integers && types[i].bits != 0 && !types[i].is_float;
    if (op == 169 && n == 3 && known[0] && known[v[0] ? 1 : 2]) { /* Select */
        *out = v[v[0] ? 1 : 2];
        return integers;
    }
    if (!integers) return false;
    if (n == 1 && known[0]) return unary(op, v[0], types[0], out);
    if (n == 2 && op == 167 && ((known[0] && !v[0]) || (known[1] && !v[1]))) { /* false and anything */
        *out = 0;
        return true;
    }
    if (n == 2 && op == 166 && ((known[0] && v[0]) || (known[1] && v[1]))) { /* true or anything */
        *out = 1;
        return true;
    }
    if (n != 2 || !known[0] || !known[1]) return false;
    int64_t sa = extended(types[0], v[0]), sb = extended(types[1], v[1]);
    return compare(op, v[0], v[1], sa, sb, out) || binary(op, result, v[0], v[1], sa, out);
}
