/* Trees back to text: for EXPLAIN, messages and SHOW CREATE. */
#include "sql/parse_int.h"
#include <ctype.h>

void sql_quote_ident(fz_buf *b, const char *name) {
    fz_buf_putc(b, '`');
    for (; *name; name++) {
        if (*name == '`') fz_buf_putc(b, '`');
        fz_buf_putc(b, *name);
    }
    fz_buf_putc(b, '`');
}

static void quote_bytes(fz_buf *b, const char *s, size_t n) {
    fz_buf_putc(b, '\'');
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\'') fz_buf_putc(b, '\'');
        fz_buf_putc(b, s[i]);
    }
    fz_buf_putc(b, '\'');
}

void sql_quote_string(fz_buf *b, const char *text) { quote_bytes(b, text, strlen(text)); }

static bool plain_ident(const char *s) {
    char upper[128];
    size_t n = strlen(s);
    if (n == 0 || n >= sizeof upper || isdigit((unsigned char)s[0])) return false;
    for (size_t i = 0; i <= n; i++) {
        if (i < n && !isalnum((unsigned char)s[i]) && s[i] != '_') return false;
        upper[i] = (char)toupper((unsigned char)s[i]);
    }
    return !sql_is_reserved(upper);
}

static void put_ident(fz_buf *b, const char *s) {
    if (plain_ident(s)) fz_buf_puts(b, s);
    else sql_quote_ident(b, s);
}

void sql_name_text(fz_buf *b, const sql_name *n) {
    for (uint32_t i = 0; i < n->n; i++) {
        if (i) fz_buf_putc(b, '.');
        put_ident(b, n->part[i]);
    }
}

static void put_list(fz_buf *b, const sql_expr *e, uint32_t from) {
    for (uint32_t i = from; i < e->n_args; i++) {
        if (i > from) fz_buf_puts(b, ", ");
        sql_expr_text(b, e->args[i]);
    }
}

static void put_case(fz_buf *b, const sql_expr *e) {
    fz_buf_puts(b, "CASE");
    if (e->args[0]->kind != SQL_X_NONE) fz_buf_putc(b, ' '), sql_expr_text(b, e->args[0]);
    for (uint32_t i = 1; i + 2 < e->n_args; i += 2) {
        fz_buf_puts(b, " WHEN ");
        sql_expr_text(b, e->args[i]);
        fz_buf_puts(b, " THEN ");
        sql_expr_text(b, e->args[i + 1]);
    }
    if (e->args[e->n_args - 1]->kind != SQL_X_NONE) fz_buf_puts(b, " ELSE "), sql_expr_text(b, e->args[e->n_args - 1]);
    fz_buf_puts(b, " END");
}

/* Operators and special forms; false: an ordinary call. */
static bool put_operator(fz_buf *b, const sql_expr *e) {
    const char *fn = e->fn;
    bool in = strcmp(fn, "IN") == 0 || strcmp(fn, "NOT IN") == 0, between = strcmp(fn, "BETWEEN") == 0 || strcmp(fn, "NOT BETWEEN") == 0;
    bool like = fz_ends(fn, "LIKE") || fz_ends(fn, "SIMILAR TO");
    if (strcmp(fn, "CASE") == 0) return put_case(b, e), true;
    if (e->n_args == 2 && (!isalpha((unsigned char)fn[0]) || strcmp(fn, "AND") == 0 || strcmp(fn, "OR") == 0 || fz_ends(fn, "DISTINCT FROM") || like)) {
        fz_buf_putc(b, '(');
        sql_expr_text(b, e->args[0]);
        fz_buf_printf(b, " %s ", fn);
        sql_expr_text(b, e->args[1]);
        fz_buf_putc(b, ')');
    } else if (fz_starts(fn, "IS ")) {
        fz_buf_putc(b, '(');
        sql_expr_text(b, e->args[0]);
        fz_buf_printf(b, " %s%s%s)", fn, e->n_args > 1 ? " " : "", e->n_args > 1 ? e->args[1]->text : "");
    } else if (strcmp(fn, "NOT") == 0 || strcmp(fn, "-1") == 0 || strcmp(fn, "+1") == 0) {
        fz_buf_puts(b, fn[0] == 'N' ? "(NOT " : fn[0] == '-' ? "(-" : "(+");
        sql_expr_text(b, e->args[0]);
        fz_buf_putc(b, ')');
    } else if (in || between || like) {
        fz_buf_putc(b, '(');
        sql_expr_text(b, e->args[0]);
        fz_buf_printf(b, in ? " %s (" : " %s ", fn);
        if (in) put_list(b, e, 1);
        else sql_expr_text(b, e->args[1]), fz_buf_puts(b, between ? " AND " : " ESCAPE "), sql_expr_text(b, e->args[2]);
        fz_buf_puts(b, in ? "))" : ")");
    } else if (strcmp(fn, "ITEM") == 0) {
        sql_expr_text(b, e->args[0]);
        fz_buf_putc(b, '[');
        sql_expr_text(b, e->args[1]);
        fz_buf_putc(b, ']');
    } else if (strcmp(fn, "DOT") == 0) {
        sql_expr_text(b, e->args[0]);
        fz_buf_putc(b, '.');
        put_ident(b, e->text);
    } else if (strcmp(fn, "ARRAY") == 0 || strcmp(fn, "MAP") == 0) {
        fz_buf_printf(b, "%s[", fn);
        put_list(b, e, 0);
        fz_buf_putc(b, ']');
    } else {
        return false;
    }
    return true;
}

static void put_call(fz_buf *b, const sql_expr *e) {
    if (!put_operator(b, e)) {
        fz_buf_printf(b, "%s(%s", e->fn, e->distinct ? "DISTINCT " : "");
        put_list(b, e, 0);
        fz_buf_putc(b, ')');
    }
    if (!e->filter) return;
    fz_buf_puts(b, " FILTER (WHERE ");
    sql_expr_text(b, e->filter);
    fz_buf_putc(b, ')');
}

static void put_binary(fz_buf *b, const sql_expr *e) {
    fz_buf_puts(b, "X'");
    for (uint32_t i = 0; i < e->text_len; i++) fz_buf_printf(b, "%02X", (unsigned char)e->text[i]);
    fz_buf_putc(b, '\'');
}

/* INTERVAL '1' DAY TO SECOND; DATE '...' */
static void put_prefixed(fz_buf *b, const char *word, const sql_expr *e, const char *unit) {
    fz_buf_printf(b, "%s ", word);
    quote_bytes(b, e->text, e->text_len);
    if (unit) fz_buf_printf(b, " %s", unit);
}

void sql_expr_text(fz_buf *b, const sql_expr *e) {
    switch (e->kind) {
    case SQL_X_NONE: break;
    case SQL_X_STRING: quote_bytes(b, e->text, e->text_len); break;
    case SQL_X_NUMBER:
    case SQL_X_SYMBOL: fz_buf_puts(b, e->text); break;
    case SQL_X_BINARY: put_binary(b, e); break;
    case SQL_X_TRUE: fz_buf_puts(b, "TRUE"); break;
    case SQL_X_FALSE: fz_buf_puts(b, "FALSE"); break;
    case SQL_X_NULL: fz_buf_puts(b, "NULL"); break;
    case SQL_X_DATE: put_prefixed(b, "DATE", e, NULL); break;
    case SQL_X_TIME: put_prefixed(b, "TIME", e, NULL); break;
    case SQL_X_TIMESTAMP: put_prefixed(b, "TIMESTAMP", e, NULL); break;
    case SQL_X_INTERVAL: put_prefixed(b, "INTERVAL", e, e->fn); break;
    case SQL_X_COLUMN: sql_name_text(b, &e->col); break;
    case SQL_X_STAR:
        sql_name_text(b, &e->col);
        fz_buf_puts(b, e->col.n ? ".*" : "*");
        break;
    case SQL_X_CALL: put_call(b, e); break;
    case SQL_X_CAST:
    case SQL_X_TRY_CAST:
        fz_buf_puts(b, e->kind == SQL_X_CAST ? "CAST(" : "TRY_CAST(");
        sql_expr_text(b, e->args[0]);
        fz_buf_puts(b, " AS ");
        col_type_text(b, e->type);
        fz_buf_putc(b, ')');
        break;
    }
}
