/* Types as Flink SQL writes them: INT NOT NULL, VARCHAR(3), DECIMAL(10, 2), TIMESTAMP(3) WITH LOCAL TIME ZONE, ARRAY<..>, MAP<..>, ROW<..>. */
#include "sql/parse_int.h"

typedef struct type_name { const char *word; col_kind kind; } type_name;
static const type_name simple_names[] = {
    {"BOOLEAN", COL_BOOLEAN}, {"TINYINT", COL_TINYINT}, {"SMALLINT", COL_SMALLINT}, {"INT", COL_INT}, {"INTEGER", COL_INT}, {"BIGINT", COL_BIGINT},
    {"FLOAT", COL_FLOAT}, {"DOUBLE", COL_DOUBLE}, {"DATE", COL_DATE}, {"NULL", COL_NULL}, {NULL, COL_NULL}};

static const char *const refused[] = {"MULTISET", "RAW", "STRUCTURED", "GEOMETRY", "VARIANT", "DESCRIPTOR", "CLOB", "BLOB", "BIT", "NCHAR", "NCLOB", "REAL", NULL};

/* "(n)", if there is one; else dflt. */
static fz_status length_arg(parser *p, int32_t dflt, int32_t min, int32_t max, const char *what, int32_t *out) {
    *out = dflt;
    if (!take_op(p, "(")) return FZ_OK;
    int64_t v;
    sql_pos pos = p->t->pos;
    if (p->t->kind != TK_NUMBER) return fail_expected(p, what);
    if (!fz_parse_i64((fz_sv){p->t->text, p->t->len}, &v) || v < min || v > max) return fail_at(p, pos, "%s must be between %d and %d", what, min, max);
    p->t++;
    *out = (int32_t)v;
    return need_op(p, ")");
}

static fz_status parse_decimal(parser *p, const col_type **out) {
    int64_t precision = 10, scale = 0;
    if (take_op(p, "(")) {
        sql_pos pos = p->t->pos;
        if (p->t->kind != TK_NUMBER) return fail_expected(p, "a precision");
        if (!fz_parse_i64((fz_sv){p->t->text, p->t->len}, &precision) || precision < 1 || precision > 38)
            return fail_at(p, pos, "the precision of a DECIMAL must be between 1 and 38");
        p->t++;
        if (take_op(p, ",")) {
            pos = p->t->pos;
            if (p->t->kind != TK_NUMBER) return fail_expected(p, "a scale");
            if (!fz_parse_i64((fz_sv){p->t->text, p->t->len}, &scale) || scale < 0 || scale > precision)
                return fail_at(p, pos, "the scale of a DECIMAL must be between 0 and its precision, %d", (int)precision);
            p->t++;
        }
        FZ_TRY(need_op(p, ")"));
    }
    *out = col_sized(p->a, COL_DECIMAL, (int32_t)precision, (int32_t)scale, true);
    return FZ_OK;
}

/* [WITHOUT TIME ZONE | WITH LOCAL TIME ZONE | WITH TIME ZONE (refused)] */
static fz_status zone_clause(parser *p, bool *local) {
    sql_pos pos = p->t->pos;
    *local = false;
    if (tk_word(p->t, "WITHOUT") && tk_word(peek(p, 1), "TIME")) {
        p->t += 2;
        return need_word(p, "ZONE");
    }
    if (tk_word(p->t, "WITH") && tk_word(peek(p, 1), "LOCAL")) {
        p->t += 2;
        *local = true;
        FZ_TRY(need_word(p, "TIME"));
        return need_word(p, "ZONE");
    }
    if (tk_word(p->t, "WITH") && tk_word(peek(p, 1), "TIME")) return fail_unsupported(p, pos, "a type WITH TIME ZONE (Flink has WITH LOCAL TIME ZONE)");
    return FZ_OK;
}

static fz_status parse_timestamp(parser *p, bool ltz, const col_type **out) {
    sql_pos pos = p->t->pos;
    int32_t precision;
    bool local = false;
    FZ_TRY(length_arg(p, 6, 0, 9, "the precision of a TIMESTAMP", &precision));
    if (!ltz) FZ_TRY(zone_clause(p, &local));
    if (precision > 6) return fail_unsupported(p, pos, "a TIMESTAMP of nanoseconds (precision 7 to 9)");
    *out = col_sized(p->a, ltz || local ? COL_TIMESTAMP_LTZ : COL_TIMESTAMP, precision, 0, true);
    return FZ_OK;
}

static fz_status parse_time(parser *p, const col_type **out) {
    int32_t precision;
    bool local;
    FZ_TRY(length_arg(p, 0, 0, 9, "the precision of a TIME", &precision));
    FZ_TRY(zone_clause(p, &local));
    *out = col_sized(p->a, COL_TIME, precision, 0, true);
    return FZ_OK;
}

static fz_status parse_interval_type(parser *p, const col_type **out) {
    static const char *const units[] = {"YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", NULL};
    int first = -1;
    for (int k = 0; k < 2; k++) {
        int unit = 0;
        while (units[unit] && !tk_word(p->t, units[unit])) unit++;
        if (!units[unit]) return fail_expected(p, "a unit: YEAR, MONTH, DAY, HOUR, MINUTE or SECOND");
        if (first < 0) first = unit;
        p->t++;
        int32_t precision;
        FZ_TRY(length_arg(p, 2, 0, 9, "the precision of an INTERVAL", &precision));
        if (!take_word(p, "TO")) break;
    }
    *out = col_simple(first < 2 ? COL_INTERVAL_MONTH : COL_INTERVAL_DAY, true);
    return FZ_OK;
}

/* ROW<a INT, b STRING 'comment'> or ROW(a INT, ...). */
static fz_status parse_row_type(parser *p, const col_type **out) {
    if (take_op(p, "<>")) {
        *out = col_row(p->a, NULL, 0, true);
        return FZ_OK;
    }
    bool angle = take_op(p, "<");
    if (!angle) FZ_TRY(need_op(p, "("));
    col_field *fields = NULL;
    uint32_t n = 0, cap = 0;
    do {
        if (n == FZ_MAX_COLUMNS) return fail_at(p, p->t->pos, "a ROW has at most %d fields", FZ_MAX_COLUMNS);
        if (n == cap) {
            uint32_t more = cap ? cap * 2 : 8;
            fields = fz_arena_realloc(p->a, fields, cap * sizeof *fields, more * sizeof *fields);
            cap = more;
        }
        col_field *f = &fields[n++];
        *f = (col_field){0};
        FZ_TRY(need_ident(p, "the name of a field", &f->name));
        FZ_TRY(parse_type(p, &f->type));
        if (p->t->kind == TK_STRING) FZ_TRY(need_string(p, "a comment", &f->comment));
    } while (take_op(p, ","));
    *out = col_row(p->a, fields, n, true);
    return need_op(p, angle ? ">" : ")");
}

static fz_status parse_collection(parser *p, bool map, const col_type **out) {
    const col_type *first, *second;
    FZ_TRY(need_op(p, "<"));
    FZ_TRY(parse_type(p, &first));
    if (map) {
        FZ_TRY(need_op(p, ","));
        FZ_TRY(parse_type(p, &second));
    }
    FZ_TRY(need_op(p, ">"));
    *out = map ? col_map(p->a, first, second, true) : col_array(p->a, first, true);
    return FZ_OK;
}

static fz_status parse_sized(parser *p, col_kind kind, const char *what, const col_type **out) {
    int32_t length;
    if (kind == COL_CHAR && take_word(p, "VARYING")) kind = COL_VARCHAR;
    if (kind == COL_BINARY && take_word(p, "VARYING")) kind = COL_VARBINARY;
    FZ_TRY(length_arg(p, 1, 1, COL_MAX_LENGTH, what, &length));
    *out = col_sized(p->a, kind, length, 0, true);
    return FZ_OK;
}

static fz_status parse_bare_type(parser *p, const col_type **out) {
    const sql_token *t = p->t;
    if (t->kind != TK_WORD) return fail_expected(p, "a type");
    for (int i = 0; refused[i]; i++)
        if (tk_word(t, refused[i])) return fail_unsupported(p, t->pos, fz_arena_printf(p->a, "type %s", refused[i]));
    p->t++;
    for (const type_name *n = simple_names; n->word; n++)
        if (tk_word(t, n->word)) {
            if (n->kind == COL_DOUBLE) take_word(p, "PRECISION");
            *out = col_simple(n->kind, true);
            return FZ_OK;
        }
    if (tk_word(t, "STRING")) return *out = col_string(true), FZ_OK;
    if (tk_word(t, "BYTES")) return *out = col_sized(p->a, COL_VARBINARY, COL_MAX_LENGTH, 0, true), FZ_OK;
    if (tk_word(t, "CHAR") || tk_word(t, "CHARACTER")) return parse_sized(p, COL_CHAR, "the length of a CHAR", out);
    if (tk_word(t, "VARCHAR")) return parse_sized(p, COL_VARCHAR, "the length of a VARCHAR", out);
    if (tk_word(t, "BINARY")) return parse_sized(p, COL_BINARY, "the length of a BINARY", out);
    if (tk_word(t, "VARBINARY")) return parse_sized(p, COL_VARBINARY, "the length of a VARBINARY", out);
    if (tk_word(t, "DECIMAL") || tk_word(t, "DEC") || tk_word(t, "NUMERIC")) return parse_decimal(p, out);
    if (tk_word(t, "TIME")) return parse_time(p, out);
    if (tk_word(t, "TIMESTAMP")) return parse_timestamp(p, false, out);
    if (tk_word(t, "TIMESTAMP_LTZ")) return parse_timestamp(p, true, out);
    if (tk_word(t, "INTERVAL")) return parse_interval_type(p, out);
    if (tk_word(t, "ARRAY")) return parse_collection(p, false, out);
    if (tk_word(t, "MAP")) return parse_collection(p, true, out);
    if (tk_word(t, "ROW")) return parse_row_type(p, out);
    p->t--;
    return fail_expected(p, "a type");
}

static void nullability(parser *p, const col_type **t) {
    if (take_words(p, "NOT", "NULL")) *t = col_with_null(p->a, *t, false);
    else take_word(p, "NULL");
}

/* The standard's suffix form: INT ARRAY. bare: without [NOT] NULL at the end. */
static fz_status parse_with_suffix(parser *p, bool bare, const col_type **out) {
    FZ_TRY(enter(p));
    FZ_TRY(parse_bare_type(p, out));
    if (!bare) nullability(p, out);
    for (uint32_t n = 0; take_word(p, "ARRAY"); n++) {
        if (n + p->depth > FZ_MAX_SQL_DEPTH) return fail_at(p, p->t->pos, "nested more than %d levels deep", FZ_MAX_SQL_DEPTH);
        *out = col_array(p->a, *out, true);
        if (!bare) nullability(p, out);
    }
    p->depth--;
    return FZ_OK;
}

fz_status parse_type(parser *p, const col_type **out) { return parse_with_suffix(p, false, out); }
fz_status parse_cast_type(parser *p, const col_type **out) { return parse_with_suffix(p, true, out); }

fz_status sql_parse_type(fz_arena *a, const char *text, const col_type **out, fz_error *err) {
    parser p;
    FZ_TRY(sql_parser_open(&p, a, text, strlen(text), (sql_pos){1, 1}, err));
    FZ_TRY(parse_type(&p, out));
    return need_end(&p);
}
