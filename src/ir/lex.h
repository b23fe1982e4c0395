/*
 * lex: the words of the text form: names, strings, numbers, punctuation. `#` starts a comment that ends the line.
 */
#ifndef BRAID_LEX_H
#define BRAID_LEX_H

#include "ir/graph.h"

typedef struct lexer {
    const char *at, *start;
    arena *memory;
    braid_error *err;
} lexer;

typedef struct number {
    bool is_float;
    double f;
    int64_t i;
    uint64_t u; /* for values above INT64_MAX */
} number;

/* FORMAT with the line number. */
braid_status lex_error(lexer *, const char *expected);
/* The next character that is not space or comment; 0 at the end. */
char lex_peek(lexer *);
/* Takes `word` (punctuation, or a whole name) when it is next. */
bool lex_accept(lexer *, const char *word);
braid_status lex_expect(lexer *, const char *word);
/* A plain name or a string in quotes; length may be NULL. */
braid_status lex_name(lexer *, const char **out, size_t *length);
braid_status lex_string(lexer *, const char **out, size_t *length);
braid_status lex_number(lexer *, number *out);
braid_status lex_int(lexer *, int64_t low, int64_t high, int64_t *out);

#endif
