/* What all parts of the parser share: looking at tokens, taking them, the words of errors, and making nodes. */
#include "sql/parse_int.h"
#include <stdio.h>

fz_status sql_parser_open(parser *p, fz_arena *a, const char *text, size_t n, sql_pos start, fz_error *err) {
    memset(p, 0, sizeof *p);
    sql_lexed lexed;
    FZ_TRY(sql_lex(a, text, n, start, &lexed, err));
    p->a = a;
    p->text = fz_arena_strndup(a, text, n);
    p->len = n;
    p->tok = p->t = lexed.tok;
    p->end = lexed.tok + lexed.n;
    p->err = err;
    return FZ_OK;
}

bool tk_word(const sql_token *t, const char *word) { return t->kind == TK_WORD && strcmp(t->text, word) == 0; }
bool tk_op(const sql_token *t, const char *op) { return t->kind == TK_OP && strcmp(t->text, op) == 0; }

const sql_token *peek(const parser *p, uint32_t k) { return (size_t)(p->end - p->t) <= k ? p->end : p->t + k; }

bool take_word(parser *p, const char *word) {
    if (!tk_word(p->t, word)) return false;
    p->t++;
    return true;
}

bool take_words(parser *p, const char *w1, const char *w2) {
    if (!tk_word(p->t, w1) || !tk_word(peek(p, 1), w2)) return false;
    p->t += 2;
    return true;
}

bool take_op(parser *p, const char *op) {
    if (!tk_op(p->t, op)) return false;
    p->t++;
    return true;
}

/* A token as a message shows it. */
static void describe(const parser *p, const sql_token *t, char *out, size_t cap) {
    int n = (int)(t->to - t->from);
    if (n > 40) {
        n = 40;
        while (n > 0 && ((unsigned char)p->text[t->from + (uint32_t)n] & 0xC0) == 0x80) n--; /* whole characters only */
    }
    const char *dots = (uint32_t)n < t->to - t->from ? "..." : "";
    if (t->kind == TK_END) snprintf(out, cap, "the end of the statement");
    else if (t->kind == TK_STRING) snprintf(out, cap, "the string %.*s%s", n, p->text + t->from, dots);
    else snprintf(out, cap, "\"%.*s%s\"", n, p->text + t->from, dots);
    for (char *c = out; *c; c++)
        if (*c == '\n' || *c == '\r') *c = ' ';
}

fz_status fail_expected(parser *p, const char *expected) {
    char found[96];
    describe(p, p->t, found, sizeof found);
    fz_fail(p->err, FZ_USER, "sql.syntax", "unexpected %s, expected %s", found, expected);
    if (p->t->kind == TK_WORD && p->t->reserved && strstr(expected, "name"))
        fz_hint(p->err, "%.60s is a reserved word: as a name it is written with back-quotes, `%.60s`", p->t->text, fz_arena_strndup(p->a, p->text + p->t->from, p->t->len));
    return fz_at(p->err, p->t->pos.line, p->t->pos.column), FZ_USER;
}

fz_status fail_at(parser *p, sql_pos pos, const char *fmt, ...) {
    va_list ap;
    char message[512];
    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    fz_fail(p->err, FZ_USER, "sql.syntax", "%s", message);
    return fz_at(p->err, pos.line, pos.column), FZ_USER;
}

fz_status fail_unsupported(parser *p, sql_pos pos, const char *feature) {
    fz_fail(p->err, FZ_USER, "sql.unsupported", "%s is not supported", feature);
    return fz_at(p->err, pos.line, pos.column), FZ_USER;
}

fz_status need_word(parser *p, const char *word) { return take_word(p, word) ? FZ_OK : fail_expected(p, word); }

fz_status need_op(parser *p, const char *op) {
    if (take_op(p, op)) return FZ_OK;
    char expected[16];
    snprintf(expected, sizeof expected, "\"%s\"", op);
    return fail_expected(p, expected);
}

fz_status need_end(parser *p) { return p->t == p->end ? FZ_OK : fail_expected(p, "the end of the statement"); }

/* The name that a WORD stands for is as written, not in upper case. */
static const char *ident_text(const parser *p, const sql_token *t) {
    return t->kind == TK_QUOTED ? t->text : fz_arena_strndup(p->a, p->text + t->from, t->to - t->from);
}

static bool is_ident(const sql_token *t) { return t->kind == TK_QUOTED || (t->kind == TK_WORD && !t->reserved); }

fz_status need_ident(parser *p, const char *what, const char **out) {
    if (!is_ident(p->t)) return fail_expected(p, what);
    *out = ident_text(p, p->t++);
    return FZ_OK;
}

fz_status need_string(parser *p, const char *what, const char **out) {
    if (p->t->kind != TK_STRING) return fail_expected(p, what);
    if (memchr(p->t->text, 0, p->t->len)) return fail_at(p, p->t->pos, "this text may not hold a NUL character");
    *out = (p->t++)->text;
    return FZ_OK;
}

fz_status need_name(parser *p, const char *what, sql_name *out) {
    memset(out, 0, sizeof *out);
    out->pos = p->t->pos;
    do {
        if (out->n == 4) return fail_at(p, p->t->pos, "a name has at most four parts");
        out->quoted[out->n] = p->t->kind == TK_QUOTED;
        FZ_TRY(need_ident(p, what, &out->part[out->n]));
        out->n++;
    } while (take_op(p, "."));
    return FZ_OK;
}

static fz_status too_deep(parser *p) {
    fz_fail(p->err, FZ_USER, "sql.too-deep", "nested more than %d levels deep", FZ_MAX_SQL_DEPTH);
    return fz_at(p->err, p->t->pos.line, p->t->pos.column), FZ_USER;
}

fz_status enter(parser *p) { return ++p->depth > FZ_MAX_SQL_DEPTH ? too_deep(p) : FZ_OK; }

const char *source_since(const parser *p, const sql_token *first) {
    uint32_t to = p->t > first ? p->t[-1].to : first->from;
    return fz_arena_strndup(p->a, p->text + first->from, to - first->from);
}

void ptr_push(fz_arena *a, ptr_list *l, void *v) {
    if (l->n == l->cap) {
        uint32_t cap = l->cap ? l->cap * 2 : 4;
        l->v = fz_arena_realloc(a, l->v, l->cap * sizeof *l->v, cap * sizeof *l->v);
        l->cap = cap;
    }
    l->v[l->n++] = v;
}

static sql_expr *node(parser *p, sql_expr_kind kind, const sql_token *first) {
    sql_expr *e = FZ_ANEW(p->a, sql_expr);
    e->kind = kind;
    e->pos = first->pos;
    e->src_from = first->from;
    e->src_to = p->t > first ? p->t[-1].to : first->to;
    e->end = p->t->pos;
    e->height = 1;
    return e;
}

static fz_status set_args(parser *p, sql_expr *e, ptr_list *args) {
    e->n_args = args->n;
    e->args = (sql_expr **)args->v;
    for (uint32_t i = 0; i < args->n; i++)
        if (e->args[i]->height >= e->height) e->height = e->args[i]->height + 1;
    return e->height > FZ_MAX_SQL_DEPTH ? too_deep(p) : FZ_OK;
}

fz_status make_call(parser *p, const sql_token *first, const char *fn, ptr_list *args, sql_expr **out) {
    sql_expr *e = node(p, SQL_X_CALL, first);
    e->fn = fn;
    *out = e;
    return set_args(p, e, args);
}

sql_expr *make_leaf(parser *p, sql_expr_kind kind, const sql_token *tok) {
    sql_expr *e = node(p, kind, tok);
    e->text = tok->text;
    e->text_len = tok->len;
    return e;
}

sql_expr *make_symbol(parser *p, const char *text, const sql_token *tok) {
    sql_expr *e = node(p, SQL_X_SYMBOL, tok);
    e->text = text;
    e->text_len = (uint32_t)strlen(text);
    return e;
}

fz_status make_binary(parser *p, const char *fn, sql_expr *l, sql_expr *r, sql_expr **out) {
    ptr_list args = {0};
    ptr_push(p->a, &args, l);
    ptr_push(p->a, &args, r);
    FZ_TRY(make_call(p, p->t, fn, &args, out));
    (*out)->pos = l->pos;
    (*out)->src_from = l->src_from;
    (*out)->src_to = r->src_to;
    (*out)->end = r->end;
    return FZ_OK;
}

fz_status parse_ident_list(parser *p, const char *what, uint32_t *n, const char ***out) {
    ptr_list l = {0};
    FZ_TRY(need_op(p, "("));
    do {
        const char *name;
        FZ_TRY(need_ident(p, what, &name));
        ptr_push(p->a, &l, (void *)(uintptr_t)name);
    } while (take_op(p, ","));
    *n = l.n;
    *out = (const char **)l.v;
    return need_op(p, ")");
}

fz_status parse_options(parser *p, uint32_t *n, fz_pair **out) {
    fz_pair *v = NULL;
    uint32_t count = 0, cap = 0;
    FZ_TRY(need_op(p, "("));
    if (tk_op(p->t, ")")) { /* none at all */
        p->t++;
        *n = 0;
        *out = NULL;
        return FZ_OK;
    }
    do {
        if (count == cap) {
            uint32_t more = cap ? cap * 2 : 8;
            v = fz_arena_realloc(p->a, v, cap * sizeof *v, more * sizeof *v);
            cap = more;
        }
        fz_pair *o = &v[count];
        *o = (fz_pair){.line = p->t->pos.line, .column = p->t->pos.column};
        FZ_TRY(need_string(p, "an option's key in single quotes", &o->key));
        FZ_TRY(need_op(p, "="));
        FZ_TRY(need_string(p, "the option's value in single quotes", &o->value));
        uint32_t at = 0; /* given twice: the last one counts, as in Flink */
        while (at < count && strcmp(v[at].key, o->key) != 0) at++;
        if (at < count) v[at] = *o;
        else count++;
    } while (take_op(p, ","));
    *n = count;
    *out = v;
    return need_op(p, ")");
}

/* A table hint; only OPTIONS is known. */
fz_status parse_hint(parser *p, sql_hint *out) {
    if (p->t->kind != TK_HINT) return FZ_OK;
    p->t++;
    if (!tk_word(p->t, "OPTIONS")) {
        if (p->t->kind != TK_WORD) return fail_expected(p, "the name of a hint");
        return fail_unsupported(p, p->t->pos, fz_arena_printf(p->a, "hint %.60s", p->t->text));
    }
    p->t++;
    uint32_t n;
    fz_pair *options;
    FZ_TRY(parse_options(p, &n, &options));
    out->options = options;
    out->n = n;
    return need_op(p, "*/");
}
