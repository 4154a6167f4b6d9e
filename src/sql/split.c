/* Cuts a script into statements at the semicolons that are in no literal, quoted name or comment, and not inside a statement set.
 *
 * A statement set begins with STATEMENT SET BEGIN, EXECUTE STATEMENT SET BEGIN or BEGIN STATEMENT SET, and ends with an END that closes no CASE. */
#include "sql/parse_int.h"

static bool words(const sql_token *t, const sql_token *end, const char *const *list) {
    for (; *list; list++, t++)
        if (t >= end || !tk_word(t, *list)) return false;
    return true;
}

static bool begins_set(const sql_token *t, const sql_token *end) {
    static const char *const a[] = {"STATEMENT", "SET", "BEGIN", NULL}, *const b[] = {"EXECUTE", "STATEMENT", "SET", "BEGIN", NULL}, *const c[] = {"BEGIN", "STATEMENT", "SET", NULL};
    if (t < end && tk_word(t, "EXPLAIN")) t++;
    return words(t, end, a) || words(t, end, b) || words(t, end, c);
}

/* The semicolon that ends the statement at t, or end. *open: a statement set is not closed. */
static const sql_token *statement_end(const sql_token *t, const sql_token *end, bool *open) {
    bool in_set = begins_set(t, end);
    uint32_t cases = 0;
    for (; t < end; t++) {
        if (tk_op(t, ";") && !in_set) break;
        if (tk_word(t, "CASE")) cases++;
        if (tk_word(t, "END")) {
            if (cases) cases--;
            else in_set = false;
        }
    }
    *open = in_set;
    return t;
}

static const char *skip_bom(const char *s, size_t *n) {
    if (*n < 3 || memcmp(s, "\xEF\xBB\xBF", 3) != 0) return s;
    *n -= 3;
    return s + 3;
}

fz_status sql_split(fz_arena *a, const char *script, size_t n, sql_piece **out, uint32_t *n_out, fz_error *err) {
    sql_lexed l;
    script = skip_bom(script, &n);
    *out = NULL;
    *n_out = 0;
    FZ_TRY(sql_lex(a, script, n, (sql_pos){1, 1}, &l, err));
    const sql_token *end = l.tok + l.n;
    uint32_t cap = 0;
    for (const sql_token *t = l.tok; t < end; t++) {
        if (tk_op(t, ";")) continue;
        bool open;
        const sql_token *stop = statement_end(t, end, &open);
        if (*n_out == cap) {
            uint32_t more = cap ? cap * 2 : 16;
            *out = fz_arena_realloc(a, *out, cap * sizeof **out, more * sizeof **out);
            cap = more;
        }
        (*out)[(*n_out)++] = (sql_piece){script + t->from, stop[-1].to - t->from, t->pos};
        t = stop;
    }
    return FZ_OK;
}

bool sql_complete(const char *text, size_t n) {
    fz_arena *a = fz_arena_new();
    sql_lexed l;
    fz_error ignored;
    fz_status rc = sql_lex(a, text, n, (sql_pos){1, 1}, &l, &ignored);
    bool whole = rc != FZ_OK && !l.open; /* what no further text can mend is for the parser to complain about */
    if (rc == FZ_OK) {
        const sql_token *end = l.tok + l.n;
        whole = l.n > 0;
        for (const sql_token *t = l.tok; t < end; t++) {
            bool open;
            if (tk_op(t, ";")) continue;
            t = statement_end(t, end, &open);
            if (open || t >= end) whole = false;
        }
    }
    fz_arena_free(a);
    return whole;
}
