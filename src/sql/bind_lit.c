/* Nodes of bound trees: literals, casts, calls. */
#include "sql/bind_int.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

sql_bound *bind_node(sql_bind *b, sql_bound_kind kind, const col_type *t, sql_pos pos, const char *text) {
    sql_bound *n = FZ_ANEW(b->a, sql_bound);
    n->kind = kind;
    n->type = t;
    n->pos = pos;
    n->text = text ? text : "";
    return n;
}

static sql_bound *literal(sql_bind *b, const col_type *t, col_builder *v, sql_pos pos, const char *text) {
    sql_bound *n = bind_node(b, SQL_B_LITERAL, t, pos, text);
    n->literal = col_builder_finish(v);
    return n;
}

/* Java counts a text's length in UTF-16 units, and so does the type of a literal. */
static int32_t utf16_len(const char *p, size_t n) {
    int32_t units = 0;
    for (size_t i = 0; i < n;) units += fz_utf8_next(p, n, &i) > 0xffff ? 2 : 1;
    return units;
}

sql_bound *bind_text_literal(sql_bind *b, const char *p, size_t n, sql_pos pos) {
    const col_type *t = col_sized(b->a, COL_CHAR, utf16_len(p, n), 0, false);
    col_builder *v = col_builder_new(b->a, t);
    col_add_bytes(v, p, n);
    fz_buf q = {0};
    fz_buf_putc(&q, '\'');
    for (size_t i = 0; i < n; i++) fz_buf_append(&q, p[i] == '\'' ? "''" : p + i, p[i] == '\'' ? 2 : 1);
    fz_buf_putc(&q, '\'');
    sql_bound *r = literal(b, t, v, pos, fz_arena_strndup(b->a, (const char *)q.data, q.len));
    fz_buf_free(&q);
    return r;
}
sql_bound *bind_int_literal(sql_bind *b, int64_t n, sql_pos pos) {
    const col_type *t = col_simple(n >= INT32_MIN && n <= INT32_MAX ? COL_INT : COL_BIGINT, false);
    col_builder *v = col_builder_new(b->a, t);
    col_add_i64(v, n);
    return literal(b, t, v, pos, fz_arena_printf(b->a, "%lld", (long long)n));
}
sql_bound *bind_bool_literal(sql_bind *b, bool x, sql_pos pos) {
    const col_type *t = col_simple(COL_BOOLEAN, false);
    col_builder *v = col_builder_new(b->a, t);
    col_add_bool(v, x);
    return literal(b, t, v, pos, x ? "TRUE" : "FALSE");
}
sql_bound *bind_null_literal(sql_bind *b, sql_pos pos, const char *text) {
    sql_bound *n = bind_node(b, SQL_B_LITERAL, col_simple(COL_NULL, true), pos, text ? text : "NULL");
    n->literal = col_vec_nulls(b->a, n->type, 1);
    return n;
}
bool bind_is_null_literal(const sql_bound *e) { return e->kind == SQL_B_LITERAL && col_is_null(e->literal, 0); }

bool bind_int_value(const sql_bound *e, int64_t *out) {
    while (e->kind == SQL_B_CAST && bind_is_integer(e->type->kind)) e = e->args[0];
    if (e->kind != SQL_B_LITERAL || !bind_is_integer(e->type->kind) || col_is_null(e->literal, 0)) return false;
    *out = e->type->kind == COL_BIGINT ? col_i64(e->literal, 0) : col_i32(e->literal, 0);
    return true;
}

/* Digits with an optional sign and point into an unscaled value. */
static bool parse_exact(fz_sv s, col_i128 *v, int *digits, int *scale) {
    bool neg = false, point = false;
    size_t i = 0;
    *v = 0;
    *digits = *scale = 0;
    if (i < s.n && (s.p[i] == '-' || s.p[i] == '+')) neg = s.p[i++] == '-';
    for (; i < s.n; i++) {
        if (s.p[i] == '.') { point = true; continue; }
        if (s.p[i] < '0' || s.p[i] > '9' || *digits >= 38) return false;
        *v = *v * 10 + (s.p[i] - '0');
        if (*v || point) ++*digits;
        if (point) ++*scale;
    }
    if (*digits == 0) *digits = 1;
    if (neg) *v = -*v;
    return true;
}

static sql_bound *number_literal(sql_bind *b, const sql_expr *e, fz_sv s, fz_error *err) {
    bool exponent = false, point = false;
    for (size_t i = 0; i < s.n; i++) {
        exponent |= s.p[i] == 'e' || s.p[i] == 'E';
        point |= s.p[i] == '.';
    }
    const char *text = fz_arena_strndup(b->a, s.p, s.n);
    if (exponent) {
        double d;
        if (!fz_parse_f64(s, &d) || isinf(d)) goto range;
        col_builder *v = col_builder_new(b->a, col_simple(COL_DOUBLE, false));
        col_add_f64(v, d + 0.0); /* a literal has no negative zero */
        return literal(b, col_simple(COL_DOUBLE, false), v, e->pos, text);
    }
    int64_t n;
    if (!point && fz_parse_i64(s, &n)) {
        sql_bound *r = bind_int_literal(b, n, e->pos);
        r->text = text;
        return r;
    }
    col_i128 v128;
    int digits, scale;
    if (!parse_exact(s, &v128, &digits, &scale)) goto range;
    const col_type *t = col_sized(b->a, COL_DECIMAL, digits, scale, false);
    col_builder *v = col_builder_new(b->a, t);
    col_add_dec(v, v128);
    return literal(b, t, v, e->pos, text);
range:
    fz_fail(err, FZ_USER, "sql.number-range", "number %s has too many digits", text);
    fz_at(err, e->pos.line, e->pos.column);
    return NULL;
}

/* Typed literals keep their text: they are casts of a text literal that is checked here by shape only; the value is made once, when the plan runs. */
static sql_bound *temporal_literal(sql_bind *b, const sql_expr *e, const col_type *t) {
    sql_bound *text = bind_text_literal(b, e->text, e->text_len, e->pos);
    sql_bound *c = bind_node(b, SQL_B_CAST, t, e->pos, NULL);
    c->args = FZ_ANEWN(b->a, sql_bound *, 1);
    c->args[0] = text;
    c->n_args = 1;
    const char *word = t->kind == COL_DATE ? "DATE" : t->kind == COL_TIME ? "TIME" : "TIMESTAMP";
    c->text = fz_arena_printf(b->a, "%s %s", word, text->text);
    return c;
}
static int fraction_digits(const char *s, size_t n) {
    int d = 0;
    const char *dot = memchr(s, '.', n);
    if (dot)
        for (const char *p = dot + 1; p < s + n && *p >= '0' && *p <= '9'; p++) d++;
    return d > 6 ? 6 : d;
}

/* Shape of a date, time or timestamp literal: digits and separators of Calcite's grammar. */
static bool literal_shape(const sql_expr *e) {
    int y, mo, d, h, mi, used = 0;
    double s;
    const char *t = e->text;
    if (e->kind == SQL_X_DATE) return sscanf(t, "%4d-%2d-%2d%n", &y, &mo, &d, &used) == 3 && used == (int)e->text_len && mo >= 1 && mo <= 12 && d >= 1 && d <= 31;
    if (e->kind == SQL_X_TIME) return sscanf(t, "%2d:%2d:%lf%n", &h, &mi, &s, &used) == 3 && used == (int)e->text_len && h < 24 && mi < 60 && s < 60;
    return sscanf(t, "%4d-%2d-%2d %2d:%2d:%lf%n", &y, &mo, &d, &h, &mi, &s, &used) == 6 && used == (int)e->text_len && mo >= 1 && mo <= 12 && d >= 1 && d <= 31 && h < 24 && mi < 60 && s < 60;
}

static sql_bound *datetime_literal(sql_bind *b, const sql_expr *e, fz_error *err) {
    if (!literal_shape(e)) {
        fz_fail(err, FZ_USER, "sql.literal", "'%s' is no %s literal", e->text, e->kind == SQL_X_DATE ? "DATE" : e->kind == SQL_X_TIME ? "TIME" : "TIMESTAMP");
        fz_at(err, e->pos.line, e->pos.column);
        return NULL;
    }
    if (e->kind == SQL_X_DATE) return temporal_literal(b, e, col_simple(COL_DATE, false));
    int digits = fraction_digits(e->text, e->text_len);
    return temporal_literal(b, e, col_sized(b->a, e->kind == SQL_X_TIME ? COL_TIME : COL_TIMESTAMP, digits, 0, false));
}

typedef struct interval_unit { const char *name; int64_t ms; int32_t months; } interval_unit;
static const interval_unit units[] = {{"YEAR", 0, 12}, {"QUARTER", 0, 3}, {"MONTH", 0, 1}, {"WEEK", 604800000, 0}, {"DAY", 86400000, 0},
                                      {"HOUR", 3600000, 0}, {"MINUTE", 60000, 0}, {"SECOND", 1000, 0}};

/* "1-2" YEAR TO MONTH; "1 02:03:04.5" DAY TO SECOND: parts from the first unit down to the last. */
static bool interval_value(const char *text, const char *unit, int64_t *ms, int32_t *months) {
    char first[16] = {0};
    size_t n = strcspn(unit, " ");
    if (n >= sizeof first) return false;
    memcpy(first, unit, n);
    size_t u = 0;
    while (u < sizeof units / sizeof *units && !fz_ieq(units[u].name, first)) u++;
    if (u == sizeof units / sizeof *units) return false;
    const char *p = text;
    while (*p == ' ') p++;
    int sign = 1;
    if (*p == '-' || *p == '+') sign = *p++ == '-' ? -1 : 1;
    *ms = 0;
    *months = 0;
    for (; u < sizeof units / sizeof *units; u++) {
        if (*p < '0' || *p > '9') return false;
        char *end;
        int64_t v = strtoll(p, &end, 10);
        p = end;
        *ms += v * units[u].ms;
        *months += (int32_t)(v * units[u].months);
        if (units[u].ms == 1000 && *p == '.') {
            int64_t scale = 100;
            for (p++; *p >= '0' && *p <= '9'; p++, scale /= 10) *ms += (*p - '0') * scale;
        }
        if (!*p) break;
        if (u == 0) u++; /* YEAR TO MONTH: past QUARTER */
        p++;
    }
    while (*p == ' ') p++;
    *ms *= sign;
    *months *= sign;
    return *p == 0;
}

static sql_bound *interval_literal(sql_bind *b, const sql_expr *e, fz_error *err) {
    int64_t ms;
    int32_t months;
    if (!interval_value(e->text, e->fn ? e->fn : "", &ms, &months)) {
        fz_fail(err, FZ_USER, "sql.literal", "'%s' is no INTERVAL of unit %s", e->text, e->fn ? e->fn : "?");
        fz_at(err, e->pos.line, e->pos.column);
        return NULL;
    }
    bool by_month = !strncasecmp(e->fn, "YEAR", 4) || !strncasecmp(e->fn, "MONTH", 5) || !strncasecmp(e->fn, "QUARTER", 7);
    const col_type *t = col_simple(by_month ? COL_INTERVAL_MONTH : COL_INTERVAL_DAY, false);
    col_builder *v = col_builder_new(b->a, t);
    col_add_i64(v, by_month ? months : ms);
    return literal(b, t, v, e->pos, fz_arena_printf(b->a, "INTERVAL '%s' %s", e->text, e->fn));
}

sql_bound *bind_literal_of(sql_bind *b, const sql_expr *e, fz_error *err) {
    switch (e->kind) {
    case SQL_X_STRING: return bind_text_literal(b, e->text, e->text_len, e->pos);
    case SQL_X_NUMBER: return number_literal(b, e, (fz_sv){e->text, e->text_len}, err);
    case SQL_X_TRUE: return bind_bool_literal(b, true, e->pos);
    case SQL_X_FALSE: return bind_bool_literal(b, false, e->pos);
    case SQL_X_NULL: return bind_null_literal(b, e->pos, "NULL");
    case SQL_X_DATE:
    case SQL_X_TIME:
    case SQL_X_TIMESTAMP: return datetime_literal(b, e, err);
    case SQL_X_INTERVAL: return interval_literal(b, e, err);
    case SQL_X_BINARY: {
        const col_type *t = col_sized(b->a, COL_BINARY, (int32_t)e->text_len, 0, false);
        col_builder *v = col_builder_new(b->a, t);
        col_add_bytes(v, e->text, e->text_len);
        return literal(b, t, v, e->pos, "X'...'");
    }
    case SQL_X_CALL: { /* minus of a number: the smallest BIGINT is a literal, too */
        const sql_expr *n = e->args[0];
        return number_literal(b, e, fz_sv_of(fz_arena_printf(b->a, "-%.*s", (int)n->text_len, n->text)), err);
    }
    default: return NULL;
    }
}

sql_bound *bind_cast(sql_bind *b, sql_bound *e, const col_type *t) {
    if (col_type_eq(e->type, t, false)) return e;
    sql_bound *c = bind_node(b, SQL_B_CAST, col_with_null(b->a, t, e->type->nullable || e->type->kind == COL_NULL), e->pos, e->text);
    c->args = FZ_ANEWN(b->a, sql_bound *, 1);
    c->args[0] = e;
    c->n_args = 1;
    return c;
}
sql_bound *bind_call(sql_bind *b, const sql_fn *fn, const col_type *t, sql_bound **args, uint32_t n, const sql_bound *origin) {
    sql_bound *c = bind_node(b, SQL_B_CALL, t, origin->pos, origin->text);
    c->fn = fn;
    c->args = FZ_ANEWN(b->a, sql_bound *, n ? n : 1);
    for (uint32_t i = 0; i < n; i++) c->args[i] = args[i];
    c->n_args = n;
    return c;
}

fz_status bind_mismatch(sql_bind *b, const sql_bound *call, const char *why, fz_error *err) {
    fz_buf t = {0};
    for (uint32_t i = 0; i < call->n_args; i++) {
        if (i) fz_buf_puts(&t, ", ");
        col_type_text(&t, call->args[i]->type);
    }
    fz_status s = fz_fail(err, FZ_USER, "sql.type-mismatch", "cannot apply %s to (%s)%s%s", call->fn->name, fz_buf_cstr(&t), why ? ": " : "", why ? why : "");
    fz_hint(err, "%s", call->fn->signature);
    fz_at(err, call->pos.line, call->pos.column);
    fz_buf_free(&t);
    (void)b;
    return s;
}
bool bind_any_nullable(const sql_bound *call) {
    for (uint32_t i = 0; i < call->n_args; i++)
        if (call->args[i]->type->nullable || call->args[i]->type->kind == COL_NULL) return true;
    return false;
}

bool bind_same(const sql_bound *x, const sql_bound *y) {
    if (x->kind != y->kind || x->n_args != y->n_args || x->fn != y->fn || !col_type_eq(x->type, y->type, false)) return false;
    if (x->fn && (x->fn->volatile_ || x->fn->aggregate)) return x == y;
    if (x->kind == SQL_B_COLUMN && x->column != y->column) return false;
    if (x->kind == SQL_B_LITERAL) {
        bool nx = col_is_null(x->literal, 0), ny = col_is_null(y->literal, 0);
        if (nx || ny) return nx && ny;
        return col_equal(x->literal, 0, y->literal, 0);
    }
    for (uint32_t i = 0; i < x->n_args; i++)
        if (!bind_same(x->args[i], y->args[i])) return false;
    return true;
}
