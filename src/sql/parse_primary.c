/* Primaries: literals, columns, parentheses, CASE, CAST, constructors; what may follow one: [index], .field. */
#include "sql/parse_int.h"

/* Reserved words that are names of functions when a parenthesis follows. */
static const char *const function_words[] = {
    "ABS", "ARRAY_CONCAT_AGG", "ARRAY_MAX_CARDINALITY", "AVG", "CARDINALITY", "CEIL", "CEILING", "CHAR", "CHARACTER_LENGTH", "CHAR_LENGTH", "CLASSIFIER", "COALESCE", "COLLECT",
    "CONVERT", "CORR", "COUNT", "COVAR_POP", "COVAR_SAMP", "CUME_DIST", "DATE_TRUNC", "DENSE_RANK", "ELEMENT", "EVERY", "EXP", "EXTRACT", "FIRST_VALUE", "FLOOR", "FUSION", "GROUPING", "GROUP_CONCAT", "HOUR",
    "INTERSECTION", "JSON_ARRAY", "JSON_ARRAYAGG", "JSON_EXISTS", "JSON_OBJECT", "JSON_OBJECTAGG", "JSON_QUERY", "JSON_VALUE", "LAG", "LAST_VALUE", "LEAD", "LEFT", "LN",
    "LOWER", "MATCH_NUMBER", "MAX", "MIN", "MINUTE", "MOD", "MONTH", "NTH_VALUE", "NTILE", "NULLIF", "OCTET_LENGTH", "OVERLAY", "PERCENTILE_CONT", "PERCENTILE_DISC", "PERCENT_RANK",
    "POSITION", "POWER", "PREV", "RANK", "REGR_AVGX", "REGR_AVGY", "REGR_COUNT", "REGR_INTERCEPT", "REGR_R2", "REGR_SLOPE", "REGR_SXX", "REGR_SXY", "REGR_SYY", "RIGHT", "ROW_NUMBER",
    "SECOND", "SOME", "SQRT", "STDDEV_POP", "STDDEV_SAMP", "STRING_AGG", "SUBSTRING", "SUM", "TIMESTAMP_DIFF", "TIMESTAMP_TRUNC", "TIME_DIFF", "TIME_TRUNC", "TRANSLATE", "TRIM", "TRUNCATE", "UPPER", "VAR_POP", "VAR_SAMP", "WIDTH_BUCKET", "YEAR", NULL};

static const char *const niladic[] = {"CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP", "CURRENT_CATALOG", "CURRENT_SCHEMA",
                                      "CURRENT_USER", "CURRENT_ROLE", "CURRENT_PATH", "SESSION_USER", "SYSTEM_USER", "USER", NULL};

static bool in_list(const sql_token *t, const char *const *list) {
    for (; *list; list++)
        if (tk_word(t, *list)) return true;
    return false;
}

static fz_status parse_parens(parser *p, sql_expr **out) FZ_MUST_USE;
static fz_status parse_column(parser *p, sql_expr **out) FZ_MUST_USE;

/* 'a' LF 'b' is one literal, as in standard SQL. */
static sql_expr *parse_string(parser *p) {
    const sql_token *first = p->t++;
    if (p->t->kind != TK_STRING || p->t->pos.line == first->pos.line) return make_leaf(p, SQL_X_STRING, first);
    fz_buf b = {0};
    fz_buf_append(&b, first->text, first->len);
    for (; p->t->kind == TK_STRING && p->t->pos.line > p->t[-1].pos.line; p->t++) fz_buf_append(&b, p->t->text, p->t->len);
    sql_expr *e = make_leaf(p, SQL_X_STRING, first);
    e->text = fz_arena_strndup(p->a, (const char *)b.data, b.len);
    e->text_len = (uint32_t)b.len;
    fz_buf_free(&b);
    return e;
}

/* DATE '..', TIME '..', TIMESTAMP '..' */
static fz_status parse_temporal(parser *p, sql_expr_kind kind, sql_expr **out) {
    const sql_token *first = p->t++, *value = p->t;
    const char *text;
    FZ_TRY(need_string(p, "the value in single quotes", &text));
    *out = make_leaf(p, kind, first);
    (*out)->text = text;
    (*out)->text_len = value->len;
    return FZ_OK;
}

static const char *interval_unit(const sql_token *t) {
    static const char *const units[][2] = {{"YEAR", "YEARS"}, {"QUARTER", "QUARTERS"}, {"MONTH", "MONTHS"}, {"WEEK", "WEEKS"}, {"DAY", "DAYS"}, {"HOUR", "HOURS"},
                                           {"MINUTE", "MINUTES"}, {"SECOND", "SECONDS"}, {NULL, NULL}};
    for (int i = 0; units[i][0]; i++)
        if (tk_word(t, units[i][0]) || tk_word(t, units[i][1])) return units[i][0];
    return NULL;
}

static fz_status unit_precision(parser *p) {
    if (!take_op(p, "(")) return FZ_OK;
    do {
        if (p->t->kind != TK_NUMBER) return fail_expected(p, "a precision");
        p->t++;
    } while (take_op(p, ","));
    return need_op(p, ")");
}

/* The qualifier: unit [TO unit], with precisions. */
static fz_status parse_qualifier(parser *p, const char **out) {
    const char *from = interval_unit(p->t), *to = NULL;
    if (!from) return fail_expected(p, "a unit: YEAR, MONTH, DAY, HOUR, MINUTE or SECOND");
    p->t++;
    FZ_TRY(unit_precision(p));
    if (take_word(p, "TO")) {
        if (!(to = interval_unit(p->t))) return fail_expected(p, "a unit: MONTH, HOUR, MINUTE or SECOND");
        p->t++;
        FZ_TRY(unit_precision(p));
    }
    *out = to ? fz_arena_printf(p->a, "%s TO %s", from, to) : from;
    return FZ_OK;
}

static fz_status finish_interval(parser *p, const sql_token *first, const char *text, sql_expr **out) {
    const char *unit = NULL;
    FZ_TRY(parse_qualifier(p, &unit));
    *out = make_leaf(p, SQL_X_INTERVAL, first);
    (*out)->text = text;
    (*out)->text_len = (uint32_t)strlen(text);
    (*out)->fn = unit;
    return FZ_OK;
}

/* INTERVAL (expr) unit, INTERVAL column unit: a number of times the unit. */
static fz_status parse_interval_times(parser *p, const sql_token *first, bool minus, sql_expr **out) {
    sql_expr *times, *one;
    if (tk_op(p->t, "(")) FZ_TRY(parse_parens(p, &times));
    else FZ_TRY(parse_column(p, &times));
    FZ_TRY(finish_interval(p, first, minus ? "-1" : "1", &one));
    return make_binary(p, "*", times, one, out);
}

/* INTERVAL [sign] 'text' unit [TO unit], where a number may stand for the text: the sign goes into the text. */
static fz_status parse_interval(parser *p, sql_expr **out) {
    const sql_token *first = p->t++;
    const char *text;
    bool minus = take_op(p, "-");
    if (!minus) take_op(p, "+");
    if (tk_op(p->t, "(") || p->t->kind == TK_QUOTED || (p->t->kind == TK_WORD && !p->t->reserved)) return parse_interval_times(p, first, minus, out);
    if (p->t->kind == TK_NUMBER) text = (p->t++)->text;
    else FZ_TRY(need_string(p, "the interval's value in single quotes", &text));
    if (minus) text = text[0] == '-' ? text + 1 : fz_arena_printf(p->a, "-%s", text);
    return finish_interval(p, first, text, out);
}

static fz_status parse_cast(parser *p, bool try, sql_expr **out) {
    const sql_token *first = p->t++;
    ptr_list args = {0};
    sql_expr *e;
    const col_type *type;
    FZ_TRY(need_op(p, "("));
    FZ_TRY(parse_expr(p, &e));
    FZ_TRY(need_word(p, "AS"));
    FZ_TRY(parse_cast_type(p, &type));
    FZ_TRY(need_op(p, ")"));
    ptr_push(p->a, &args, e);
    FZ_TRY(make_call(p, first, NULL, &args, out));
    (*out)->kind = try ? SQL_X_TRY_CAST : SQL_X_CAST;
    (*out)->type = type;
    return FZ_OK;
}

/* One WHEN branch: several values before THEN are several branches with one result. */
static fz_status parse_when(parser *p, ptr_list *args) {
    ptr_list values = {0};
    sql_expr *e, *then;
    do {
        FZ_TRY(parse_expr(p, &e));
        ptr_push(p->a, &values, e);
    } while (take_op(p, ","));
    FZ_TRY(need_word(p, "THEN"));
    FZ_TRY(parse_expr(p, &then));
    for (uint32_t i = 0; i < values.n; i++) {
        ptr_push(p->a, args, values.v[i]);
        ptr_push(p->a, args, then);
    }
    return FZ_OK;
}

static fz_status parse_case(parser *p, sql_expr **out) {
    const sql_token *first = p->t++;
    ptr_list args = {0};
    sql_expr *e = make_leaf(p, SQL_X_NONE, first);
    if (!tk_word(p->t, "WHEN")) FZ_TRY(parse_expr(p, &e));
    ptr_push(p->a, &args, e);
    if (!tk_word(p->t, "WHEN")) return fail_expected(p, "WHEN");
    while (take_word(p, "WHEN")) FZ_TRY(parse_when(p, &args));
    e = make_leaf(p, SQL_X_NONE, first);
    if (take_word(p, "ELSE")) FZ_TRY(parse_expr(p, &e));
    ptr_push(p->a, &args, e);
    FZ_TRY(need_word(p, "END"));
    return make_call(p, first, "CASE", &args, out);
}

static fz_status parse_list(parser *p, const char *close, ptr_list *args) {
    if (take_op(p, close)) return FZ_OK;
    do {
        sql_expr *e;
        FZ_TRY(parse_expr(p, &e));
        ptr_push(p->a, args, e);
    } while (take_op(p, ","));
    return need_op(p, close);
}

/* ARRAY[..], MAP[..], ROW(..) */
static fz_status parse_constructor(parser *p, const char *fn, sql_expr **out) {
    const sql_token *first = p->t++;
    ptr_list args = {0};
    bool bracket = strcmp(fn, "ROW") != 0;
    if (bracket && tk_op(p->t, "(") && at_query(p, 1)) return fail_unsupported(p, p->t->pos, fz_arena_printf(p->a, "%s of a subquery", fn));
    FZ_TRY(need_op(p, bracket ? "[" : "("));
    FZ_TRY(parse_list(p, bracket ? "]" : ")", &args));
    if (strcmp(fn, "MAP") == 0 && args.n % 2) return fail_at(p, first->pos, "MAP[...] needs pairs of a key and a value");
    return make_call(p, first, fn, &args, out);
}

/* ( expr ) or a row ( expr, expr, ... ) */
static fz_status parse_parens(parser *p, sql_expr **out) {
    const sql_token *first = p->t;
    if (at_query(p, 1)) return fail_unsupported(p, peek(p, 1)->pos, "a subquery inside an expression");
    p->t++;
    ptr_list args = {0};
    do {
        sql_expr *e;
        FZ_TRY(parse_expr(p, &e));
        ptr_push(p->a, &args, e);
    } while (take_op(p, ","));
    FZ_TRY(need_op(p, ")"));
    if (args.n > 1) return make_call(p, first, "ROW", &args, out);
    *out = args.v[0];
    (*out)->src_from = first->from;
    (*out)->src_to = p->t[-1].to;
    return FZ_OK;
}

static fz_status parse_column(parser *p, sql_expr **out) {
    const sql_token *first = p->t;
    sql_name name = {.pos = first->pos};
    do {
        if (name.n == 4) {
            p->t--; /* the dot: what follows are fields */
            break;
        }
        name.quoted[name.n] = p->t->kind == TK_QUOTED;
        FZ_TRY(need_ident(p, name.n ? "a name after the dot" : "an expression or a column's name", &name.part[name.n]));
        name.n++;
    } while (take_op(p, "."));
    if (tk_op(p->t, "(")) return fail_unsupported(p, first->pos, "a function with a qualified or quoted name");
    *out = make_leaf(p, SQL_X_COLUMN, first);
    (*out)->text = NULL;
    (*out)->text_len = 0;
    (*out)->col = name;
    return FZ_OK;
}

static fz_status parse_niladic(parser *p, sql_expr **out) {
    const sql_token *first = p->t++;
    ptr_list args = {0};
    if (take_op(p, "(")) FZ_TRY(parse_list(p, ")", &args));
    return make_call(p, first, first->text, &args, out);
}

static fz_status check_refused_word(parser *p) {
    static const char *const refused[] = {"EXISTS", "UNIQUE", "MULTISET", "CURSOR", "PERIOD", "NEXT", "NEW", "CONVERT", "ANY", NULL};
    if (in_list(p->t, refused) && (tk_op(peek(p, 1), "(") || tk_op(peek(p, 1), "[") || tk_word(p->t, "NEXT") || tk_word(p->t, "NEW")))
        return fail_unsupported(p, p->t->pos, p->t->text);
    return FZ_OK;
}

static fz_status parse_word(parser *p, sql_expr **out) {
    const sql_token *t = p->t, *next = peek(p, 1);
    if (tk_word(t, "CASE")) return parse_case(p, out);
    if (tk_word(t, "CAST") || (tk_word(t, "TRY_CAST") && tk_op(next, "("))) return parse_cast(p, t->text[0] == 'T', out);
    if (tk_word(t, "TRUE") || tk_word(t, "FALSE") || tk_word(t, "NULL") || tk_word(t, "UNKNOWN")) {
        p->t++;
        *out = make_leaf(p, t->text[0] == 'T' ? SQL_X_TRUE : t->text[0] == 'F' ? SQL_X_FALSE : SQL_X_NULL, t);
        return FZ_OK;
    }
    if (tk_word(t, "DATE") && next->kind == TK_STRING) return parse_temporal(p, SQL_X_DATE, out);
    if (tk_word(t, "TIME") && next->kind == TK_STRING) return parse_temporal(p, SQL_X_TIME, out);
    if (tk_word(t, "TIMESTAMP") && next->kind == TK_STRING) return parse_temporal(p, SQL_X_TIMESTAMP, out);
    if (tk_word(t, "INTERVAL")) return parse_interval(p, out);
    if (tk_word(t, "ARRAY") || (tk_word(t, "MAP") && (tk_op(next, "[") || tk_op(next, "(")))) return parse_constructor(p, t->text, out);
    if (tk_word(t, "ROW")) return parse_constructor(p, "ROW", out);
    if (in_list(t, niladic)) return parse_niladic(p, out);
    FZ_TRY(check_refused_word(p));
    return tk_op(next, "(") && (!t->reserved || in_list(t, function_words)) ? parse_call(p, out) : parse_column(p, out);
}

/* [index] and .field behind a primary. */
static fz_status parse_postfix(parser *p, const sql_token *first, sql_expr **out) {
    for (;;) {
        ptr_list args = {0};
        ptr_push(p->a, &args, *out);
        if (take_op(p, "[")) {
            sql_expr *e;
            FZ_TRY(parse_expr(p, &e));
            FZ_TRY(need_op(p, "]"));
            ptr_push(p->a, &args, e);
            FZ_TRY(make_call(p, first, "ITEM", &args, out));
        } else if (tk_op(p->t, ".") && !tk_op(peek(p, 1), "*")) {
            p->t++;
            const char *field;
            FZ_TRY(need_ident(p, "the name of a field", &field));
            FZ_TRY(make_call(p, first, "DOT", &args, out));
            (*out)->text = field;
            (*out)->text_len = (uint32_t)strlen(field);
        } else {
            return FZ_OK;
        }
    }
}

fz_status parse_primary(parser *p, sql_expr **out) {
    const sql_token *t = p->t;
    FZ_TRY(enter(p));
    switch (t->kind) {
    case TK_STRING: *out = parse_string(p); break;
    case TK_NUMBER:
    case TK_BINARY:
        p->t++;
        *out = make_leaf(p, t->kind == TK_NUMBER ? SQL_X_NUMBER : SQL_X_BINARY, t);
        break;
    case TK_QUOTED: FZ_TRY(parse_column(p, out)); break;
    case TK_WORD: FZ_TRY(parse_word(p, out)); break;
    default:
        if (!tk_op(t, "(")) return fail_expected(p, "an expression");
        FZ_TRY(parse_parens(p, out));
    }
    FZ_TRY(parse_postfix(p, t, out));
    p->depth--;
    return FZ_OK;
}
