#include "ir/lex.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

static const char name_first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_/";
static const char name_rest[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_/.0123456789";

braid_status lex_error(lexer *l, const char *expected) {
    int line = 1;
    for (const char *c = l->start; c < l->at; c++) line += *c == '\n';
    return error_set(l->err, BRAID_FORMAT, "line %d: expected %s at \"%.20s\"", line, expected, l->at);
}

char lex_peek(lexer *l) {
    for (;;) {
        l->at += strspn(l->at, " \t\r\n");
        if (*l->at != '#') return *l->at;
        l->at += strcspn(l->at, "\n");
    }
}

bool lex_accept(lexer *l, const char *word) {
    size_t n = strlen(word);
    if (!lex_peek(l) || strncmp(l->at, word, n) != 0) return false;
    if (strchr(name_first, *word) && l->at[n] && strchr(name_rest, l->at[n])) return false;
    l->at += n;
    return true;
}

braid_status lex_expect(lexer *l, const char *word) {
    char quoted[40] = "'";
    strncat(quoted, word, 30);
    strcat(quoted, "'");
    return lex_accept(l, word) ? BRAID_OK : lex_error(l, quoted);
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

braid_status lex_string(lexer *l, const char **out, size_t *length) {
    if (lex_peek(l) != '"') return lex_error(l, "a string");
    l->at++;
    size_t bound = 0, n = 0;
    for (const char *c = l->at; *c && *c != '"'; c++, bound++)
        if (*c == '\\' && c[1]) c++;
    char *s = arena_alloc(l->memory, bound + 1);
    if (!s) return error_memory(l->err);
    for (; *l->at && *l->at != '"'; l->at++) {
        char c = *l->at;
        if (c == '\\') {
            c = *++l->at;
            if (c == 'x') {
                int high = hex_digit(l->at[1]), low = high < 0 ? -1 : hex_digit(l->at[2]);
                if (low < 0) return lex_error(l, "two hexadecimal digits");
                c = (char)(high * 16 + low);
                l->at += 2;
            } else if (c != '"' && c != '\\') {
                return lex_error(l, "an escape");
            }
        }
        s[n++] = c;
    }
    if (*l->at != '"') return lex_error(l, "the end of the string");
    l->at++;
    *out = s;
    if (length) *length = n;
    return BRAID_OK;
}

braid_status lex_name(lexer *l, const char **out, size_t *length) {
    char c = lex_peek(l);
    if (c == '"') return lex_string(l, out, length);
    if (!c || !strchr(name_first, c)) return lex_error(l, "a name");
    size_t n = strspn(l->at, name_rest);
    *out = arena_string(l->memory, l->at, n);
    if (!*out) return error_memory(l->err);
    if (length) *length = n;
    l->at += n;
    return BRAID_OK;
}

static bool lex_special(lexer *l, number *out) {
    static const struct {
        const char *word;
        double value;
    } words[] = {{"nan", NAN}, {"inf", INFINITY}, {"-inf", -INFINITY}};
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (!lex_accept(l, words[i].word)) continue;
        *out = (number){.is_float = true, .f = words[i].value};
        return true;
    }
    return false;
}

braid_status lex_number(lexer *l, number *out) {
    char c = lex_peek(l);
    if (lex_special(l, out)) return BRAID_OK;
    if (c != '-' && (c < '0' || c > '9')) return lex_error(l, "a number");
    char *end, *end_float;
    *out = (number){0};
    errno = 0;
    out->i = strtoll(l->at, &end, 10);
    if (errno == ERANGE && c == '-') return lex_error(l, "a number within 64 bits");
    out->u = c == '-' ? (uint64_t)out->i : strtoull(l->at, &end, 10);
    out->f = strtod(l->at, &end_float);
    out->is_float = end_float > end;
    if (end_float == l->at) return lex_error(l, "a number");
    l->at = end_float;
    return BRAID_OK;
}

braid_status lex_int(lexer *l, int64_t low, int64_t high, int64_t *out) {
    number n;
    const char *at = (lex_peek(l), l->at);
    TRY(lex_number(l, &n));
    if (!n.is_float && n.i >= low && n.i <= high) {
        *out = n.i;
        return BRAID_OK;
    }
    l->at = at;
    return lex_error(l, "an integer in range");
}
