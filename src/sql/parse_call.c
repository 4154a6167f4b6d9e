/* Function calls: plain ones, aggregates, and those with words between their arguments. */
#include "sql/parse_int.h"

/* A time unit of EXTRACT, FLOOR, CEIL, TIMESTAMPADD, TIMESTAMPDIFF, in its plain form; NULL: it is none. */
static const char *time_unit(const sql_token *t) {
    static const char *const units[] = {"NANOSECOND", "MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "DOW", "DOY", "ISODOW", "ISOYEAR",
                                        "WEEK", "MONTH", "QUARTER", "YEAR", "EPOCH", "DECADE", "CENTURY", "MILLENNIUM", NULL};
    if (t->kind != TK_WORD) return NULL;
    const char *w = fz_starts(t->text, "SQL_TSI_") ? t->text + 8 : t->text;
    for (int i = 0; units[i]; i++)
        if (strcmp(units[i], w) == 0) return units[i];
    return NULL;
}

static fz_status need_unit(parser *p, ptr_list *args) {
    const char *unit = time_unit(p->t);
    if (!unit) return fail_expected(p, "a time unit such as DAY or HOUR");
    const sql_token *t = p->t++;
    ptr_push(p->a, args, make_symbol(p, unit, t));
    return FZ_OK;
}

static fz_status push_expr(parser *p, ptr_list *args) {
    sql_expr *e;
    FZ_TRY(parse_expr(p, &e));
    ptr_push(p->a, args, e);
    return FZ_OK;
}

/* EXTRACT(unit FROM x) */
static fz_status parse_extract(parser *p, ptr_list *args) {
    FZ_TRY(need_unit(p, args));
    FZ_TRY(need_word(p, "FROM"));
    return push_expr(p, args);
}

/* FLOOR(x), FLOOR(x TO unit) */
static fz_status parse_floor(parser *p, ptr_list *args) {
    FZ_TRY(push_expr(p, args));
    return take_word(p, "TO") ? need_unit(p, args) : FZ_OK;
}

/* TIMESTAMPADD(unit, ...), TIMESTAMPDIFF(unit, ...) */
static fz_status parse_timestampadd(parser *p, ptr_list *args) {
    FZ_TRY(need_unit(p, args));
    while (take_op(p, ",")) FZ_TRY(push_expr(p, args));
    return FZ_OK;
}

/* TRIM([BOTH|LEADING|TRAILING] [characters] FROM x), TRIM(x) */
static fz_status parse_trim(parser *p, ptr_list *args) {
    const sql_token *first = p->t;
    const char *side = take_word(p, "LEADING") ? "LEADING" : take_word(p, "TRAILING") ? "TRAILING" : "BOTH";
    bool explicit_side = strcmp(side, "BOTH") != 0 || take_word(p, "BOTH");
    ptr_push(p->a, args, make_symbol(p, side, first));
    sql_expr *blank = make_leaf(p, SQL_X_STRING, first), *e;
    blank->text = " ";
    blank->text_len = 1;
    if (explicit_side && take_word(p, "FROM")) {
        ptr_push(p->a, args, blank);
        return push_expr(p, args);
    }
    FZ_TRY(parse_expr(p, &e));
    if (take_word(p, "FROM")) {
        ptr_push(p->a, args, e);
        return push_expr(p, args);
    }
    if (explicit_side) return fail_expected(p, "FROM");
    ptr_push(p->a, args, blank);
    ptr_push(p->a, args, e);
    return FZ_OK;
}

/* SUBSTRING(x FROM a [FOR b]), SUBSTRING(x, a [, b]) */
static fz_status parse_substring(parser *p, ptr_list *args) {
    FZ_TRY(push_expr(p, args));
    if (take_word(p, "FROM")) {
        FZ_TRY(push_expr(p, args));
        return take_word(p, "FOR") ? push_expr(p, args) : FZ_OK;
    }
    while (take_op(p, ",")) FZ_TRY(push_expr(p, args));
    return FZ_OK;
}

/* POSITION(a IN b [FROM c]). IN is a separator here: the needle is parsed above its precedence. */
static fz_status parse_position(parser *p, ptr_list *args) {
    sql_expr *e;
    FZ_TRY(parse_binary(p, 33, &e));
    ptr_push(p->a, args, e);
    FZ_TRY(need_word(p, "IN"));
    FZ_TRY(push_expr(p, args));
    return take_word(p, "FROM") ? push_expr(p, args) : FZ_OK;
}

/* OVERLAY(x PLACING y FROM a [FOR b]) */
static fz_status parse_overlay(parser *p, ptr_list *args) {
    FZ_TRY(push_expr(p, args));
    FZ_TRY(need_word(p, "PLACING"));
    FZ_TRY(push_expr(p, args));
    FZ_TRY(need_word(p, "FROM"));
    FZ_TRY(push_expr(p, args));
    return take_word(p, "FOR") ? push_expr(p, args) : FZ_OK;
}

/* (), (*), ([DISTINCT | ALL] a, b, ...); the opening parenthesis is taken already. */
static fz_status parse_plain_args(parser *p, ptr_list *args, bool *distinct) {
    *distinct = take_word(p, "DISTINCT");
    if (!*distinct) take_word(p, "ALL");
    if (tk_op(p->t, ")")) return *distinct ? fail_expected(p, "an expression") : FZ_OK;
    if (tk_op(p->t, "*")) {
        const sql_token *star = p->t++;
        ptr_push(p->a, args, make_leaf(p, SQL_X_STAR, star));
        return FZ_OK;
    }
    do {
        if (at_query(p, 0)) return fail_unsupported(p, p->t->pos, "a subquery as an argument");
        if (tk_op(peek(p, 1), "=>")) return fail_unsupported(p, p->t->pos, "a named argument");
        if (tk_word(p->t, "TABLE") || tk_word(p->t, "DESCRIPTOR")) return fail_unsupported(p, p->t->pos, "a table function's argument");
        FZ_TRY(push_expr(p, args));
    } while (take_op(p, ","));
    if (tk_word(p->t, "ORDER")) return fail_unsupported(p, p->t->pos, "ORDER BY inside an aggregate");
    return FZ_OK;
}

/* What may stand behind a call. */
static fz_status parse_call_tail(parser *p, sql_expr *call) {
    if (tk_word(p->t, "WITHIN") && (tk_word(peek(p, 1), "GROUP") || tk_word(peek(p, 1), "DISTINCT"))) return fail_unsupported(p, p->t->pos, "WITHIN GROUP");
    if ((tk_word(p->t, "IGNORE") || tk_word(p->t, "RESPECT")) && tk_word(peek(p, 1), "NULLS"))
        return fail_unsupported(p, p->t->pos, "IGNORE NULLS and RESPECT NULLS");
    if (tk_word(p->t, "FILTER") && tk_op(peek(p, 1), "(")) {
        p->t += 2;
        FZ_TRY(need_word(p, "WHERE"));
        FZ_TRY(parse_expr(p, &call->filter));
        FZ_TRY(need_op(p, ")"));
        if (call->filter->height >= call->height) call->height = call->filter->height + 1;
        call->src_to = p->t[-1].to;
    }
    if (tk_word(p->t, "OVER")) return fail_unsupported(p, p->t->pos, "a window (OVER)");
    return FZ_OK;
}

typedef struct special { const char *word, *name; fz_status (*args)(parser *p, ptr_list *args); } special;
static const special specials[] = {
    {"EXTRACT", "EXTRACT", parse_extract}, {"FLOOR", "FLOOR", parse_floor}, {"CEIL", "CEIL", parse_floor}, {"CEILING", "CEIL", parse_floor},
    {"TIMESTAMPADD", "TIMESTAMPADD", parse_timestampadd}, {"TIMESTAMPDIFF", "TIMESTAMPDIFF", parse_timestampadd}, {"TRIM", "TRIM", parse_trim},
    {"SUBSTRING", "SUBSTRING", parse_substring}, {"POSITION", "POSITION", parse_position}, {"OVERLAY", "OVERLAY", parse_overlay}, {NULL, NULL, NULL}};

/* At NAME ( : any call. */
fz_status parse_call(parser *p, sql_expr **out) {
    const sql_token *first = p->t;
    ptr_list args = {0};
    bool json = false;
    FZ_TRY(parse_json_call(p, out, &json));
    if (json) return parse_call_tail(p, *out);
    p->t += 2;
    for (const special *s = specials; s->word; s++)
        if (tk_word(first, s->word)) {
            FZ_TRY(s->args(p, &args));
            FZ_TRY(need_op(p, ")"));
            return make_call(p, first, s->name, &args, out);
        }
    bool distinct;
    FZ_TRY(parse_plain_args(p, &args, &distinct));
    FZ_TRY(need_op(p, ")"));
    FZ_TRY(make_call(p, first, first->text, &args, out));
    (*out)->distinct = distinct;
    return parse_call_tail(p, *out);
}
