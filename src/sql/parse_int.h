/* Private to the lexer and the parser. A text is cut into tokens at once; the parser walks over them by index and never goes back further
 * than a statement's head. */
#ifndef SQL_PARSE_INT_H
#define SQL_PARSE_INT_H
#include "sql/ast.h"

typedef enum { TK_END, TK_WORD, TK_QUOTED, TK_STRING, TK_BINARY, TK_NUMBER, TK_OP, TK_HINT } tk_kind;

typedef struct sql_token {
    tk_kind kind;
    uint32_t from, to;   /* byte range in the text */
    sql_pos pos;
    const char *text;    /* WORD: upper case; QUOTED, STRING, BINARY: the value; NUMBER: as written; OP: its sign */
    uint32_t len;        /* of text, which may hold NUL */
    bool reserved;       /* WORD */
} sql_token;

typedef struct sql_lexed {
    sql_token *tok;
    uint32_t n;          /* without the END token at tok[n] */
    bool open;           /* it failed because a literal, name or comment is not closed: more text may mend it */
} sql_lexed;

/* Cuts text into tokens. Positions begin at `start`. USER "sql.syntax" for what is left open and for text that is not UTF-8. */
fz_status sql_lex(fz_arena *a, const char *text, size_t n, sql_pos start, sql_lexed *out, fz_error *err) FZ_MUST_USE;
bool sql_is_reserved(const char *upper);

typedef struct parser {
    fz_arena *a;
    const char *text;    /* NUL-terminated copy of the statement */
    size_t len;
    sql_token *tok, *end;
    sql_token *t;        /* the next token; *end is END */
    uint32_t depth;
    fz_error *err;
} parser;

fz_status sql_parser_open(parser *p, fz_arena *a, const char *text, size_t n, sql_pos start, fz_error *err) FZ_MUST_USE;

/* Looking and taking. Words are compared in upper case; quoted identifiers are never words. */
bool tk_word(const sql_token *t, const char *word);
bool tk_op(const sql_token *t, const char *op);
const sql_token *peek(const parser *p, uint32_t k); /* k tokens ahead; END past the end */
bool take_word(parser *p, const char *word);
bool take_words(parser *p, const char *w1, const char *w2); /* both or none */
bool take_op(parser *p, const char *op);
/* "unexpected X, expected Y" at the next token. */
fz_status fail_expected(parser *p, const char *expected);
fz_status fail_at(parser *p, sql_pos pos, const char *fmt, ...) FZ_PRINTF(3, 4);
/* "sql.unsupported": "X is not supported". */
fz_status fail_unsupported(parser *p, sql_pos pos, const char *feature);
fz_status need_word(parser *p, const char *word) FZ_MUST_USE;
fz_status need_op(parser *p, const char *op) FZ_MUST_USE;
fz_status need_end(parser *p) FZ_MUST_USE;
fz_status need_ident(parser *p, const char *what, const char **out) FZ_MUST_USE;
fz_status need_string(parser *p, const char *what, const char **out) FZ_MUST_USE; /* without NUL inside */
fz_status need_name(parser *p, const char *what, sql_name *out) FZ_MUST_USE;
fz_status enter(parser *p) FZ_MUST_USE; /* one level deeper, within FZ_MAX_SQL_DEPTH; leave with p->depth-- */
/* Source text from a token's start to the end of the token before p->t. */
const char *source_since(const parser *p, const sql_token *first);

/* A list of pointers that grows in the arena. */
typedef struct ptr_list { void **v; uint32_t n, cap; } ptr_list;
void ptr_push(fz_arena *a, ptr_list *l, void *p);

fz_status parse_expr(parser *p, sql_expr **out) FZ_MUST_USE;
fz_status parse_binary(parser *p, int min, sql_expr **out) FZ_MUST_USE;  /* operators of precedence >= min */
fz_status parse_primary(parser *p, sql_expr **out) FZ_MUST_USE;
fz_status parse_call(parser *p, sql_expr **out) FZ_MUST_USE;             /* at NAME ( */
fz_status parse_json_call(parser *p, sql_expr **out, bool *found) FZ_MUST_USE; /* the same, if it is a JSON function */
fz_status parse_type(parser *p, const col_type **out) FZ_MUST_USE;       /* with [NOT] NULL */
fz_status parse_cast_type(parser *p, const col_type **out) FZ_MUST_USE;  /* without it: CAST, RETURNING */
fz_status parse_query(parser *p, sql_query **out) FZ_MUST_USE;
bool at_query(const parser *p, uint32_t k);                              /* the k-th token ahead begins a query */
fz_status parse_options(parser *p, uint32_t *n, fz_pair **out) FZ_MUST_USE; /* ('k' = 'v', ...) */
fz_status parse_hint(parser *p, sql_hint *out) FZ_MUST_USE;              /* at a TK_HINT or not */
fz_status parse_ident_list(parser *p, const char *what, uint32_t *n, const char ***out) FZ_MUST_USE; /* (a, b) */
fz_status parse_statement(parser *p, sql_stmt **out) FZ_MUST_USE;
fz_status parse_create_table(parser *p, sql_stmt *s) FZ_MUST_USE;        /* after CREATE [TEMPORARY] TABLE */

/* Nodes. Each sets position and source range from `first` to the token before p->t; the height is checked. */
fz_status make_call(parser *p, const sql_token *first, const char *fn, ptr_list *args, sql_expr **out) FZ_MUST_USE;
sql_expr *make_leaf(parser *p, sql_expr_kind kind, const sql_token *tok);
sql_expr *make_symbol(parser *p, const char *text, const sql_token *tok);
fz_status make_binary(parser *p, const char *fn, sql_expr *l, sql_expr *r, sql_expr **out) FZ_MUST_USE;
#endif
