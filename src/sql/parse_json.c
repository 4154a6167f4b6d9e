/* The JSON functions of SQL: arguments first, then their clauses as symbols (see ast.h). */
#include "sql/parse_int.h"

static void push_symbol(parser *p, ptr_list *args, const char *text, const sql_token *at) { ptr_push(p->a, args, make_symbol(p, text, at)); }

/* NULL | ERROR | TRUE | FALSE | UNKNOWN | EMPTY [ARRAY | OBJECT] | DEFAULT x, then ON EMPTY | ON ERROR. *found false: none here. */
static fz_status parse_behavior(parser *p, ptr_list *args, bool *found) {
    static const char *const words[] = {"NULL", "ERROR", "TRUE", "FALSE", "UNKNOWN", NULL};
    const sql_token *first = p->t;
    const char *what = NULL;
    sql_expr *dflt = NULL;
    *found = true;
    for (int i = 0; words[i] && !what; i++)
        if (take_word(p, words[i])) what = words[i];
    if (!what && take_word(p, "EMPTY")) {
        what = take_word(p, "ARRAY") ? "EMPTY ARRAY" : take_word(p, "OBJECT") ? "EMPTY OBJECT" : NULL;
        if (!what) return fail_expected(p, "ARRAY or OBJECT");
    }
    if (!what && take_word(p, "DEFAULT")) {
        what = "DEFAULT";
        FZ_TRY(parse_expr(p, &dflt));
    }
    if (!what) {
        *found = false;
        return FZ_OK;
    }
    FZ_TRY(need_word(p, "ON"));
    const char *when = take_word(p, "EMPTY") ? "EMPTY" : take_word(p, "ERROR") ? "ERROR" : NULL;
    if (!when) return fail_expected(p, "EMPTY or ERROR");
    push_symbol(p, args, fz_arena_printf(p->a, "%s ON %s", what, when), first);
    if (dflt) ptr_push(p->a, args, dflt);
    return FZ_OK;
}

static fz_status parse_returning(parser *p, ptr_list *args) {
    const sql_token *first = p->t;
    if (!take_word(p, "RETURNING")) return FZ_OK;
    const col_type *type;
    FZ_TRY(parse_cast_type(p, &type));
    sql_expr *e = make_symbol(p, "RETURNING", first);
    e->type = type;
    ptr_push(p->a, args, e);
    return FZ_OK;
}

/* [WITHOUT [ARRAY] WRAPPER | WITH [CONDITIONAL | UNCONDITIONAL] [ARRAY] WRAPPER] */
static fz_status parse_wrapper(parser *p, ptr_list *args) {
    const sql_token *first = p->t;
    const char *how = NULL;
    if (take_word(p, "WITHOUT")) how = "WITHOUT WRAPPER";
    else if (take_word(p, "WITH")) how = take_word(p, "CONDITIONAL") ? "WITH CONDITIONAL WRAPPER" : (take_word(p, "UNCONDITIONAL"), "WITH WRAPPER");
    else return FZ_OK;
    take_word(p, "ARRAY");
    FZ_TRY(need_word(p, "WRAPPER"));
    push_symbol(p, args, how, first);
    return FZ_OK;
}

static fz_status push_value(parser *p, ptr_list *args) {
    sql_expr *e;
    FZ_TRY(parse_expr(p, &e));
    ptr_push(p->a, args, e);
    return tk_word(p->t, "FORMAT") && tk_word(peek(p, 1), "JSON") ? fail_unsupported(p, p->t->pos, "FORMAT JSON") : FZ_OK;
}

/* JSON_VALUE, JSON_QUERY, JSON_EXISTS (value, path, clauses...) */
static fz_status parse_json_path(parser *p, ptr_list *args) {
    FZ_TRY(push_value(p, args));
    FZ_TRY(need_op(p, ","));
    FZ_TRY(push_value(p, args));
    if (tk_word(p->t, "PASSING")) return fail_unsupported(p, p->t->pos, "PASSING of a JSON path");
    FZ_TRY(parse_returning(p, args));
    FZ_TRY(parse_wrapper(p, args));
    for (bool found = true; found;) FZ_TRY(parse_behavior(p, args, &found));
    return FZ_OK;
}

static fz_status parse_on_null(parser *p, ptr_list *args) {
    const sql_token *first = p->t;
    const char *what = take_word(p, "NULL") ? "NULL ON NULL" : take_word(p, "ABSENT") ? "ABSENT ON NULL" : NULL;
    if (!what) return FZ_OK;
    FZ_TRY(need_word(p, "ON"));
    FZ_TRY(need_word(p, "NULL"));
    push_symbol(p, args, what, first);
    return FZ_OK;
}

/* JSON_OBJECT([KEY] k VALUE v, ... [NULL | ABSENT ON NULL]); a colon may stand for VALUE. */
static fz_status parse_json_object(parser *p, ptr_list *args) {
    if (!tk_op(p->t, ")") && !(tk_word(peek(p, 1), "ON") && tk_word(peek(p, 2), "NULL"))) {
        do {
            if (tk_word(p->t, "KEY") && !tk_word(peek(p, 1), "VALUE") && !tk_op(peek(p, 1), ":")) p->t++;
            FZ_TRY(push_value(p, args));
            if (!take_word(p, "VALUE") && !take_op(p, ":")) return fail_expected(p, "VALUE");
            FZ_TRY(push_value(p, args));
        } while (take_op(p, ","));
    }
    return parse_on_null(p, args);
}

static fz_status parse_json_array(parser *p, ptr_list *args) {
    if (!tk_op(p->t, ")") && !(tk_word(peek(p, 1), "ON") && tk_word(peek(p, 2), "NULL"))) {
        do {
            FZ_TRY(push_value(p, args));
        } while (take_op(p, ","));
    }
    return parse_on_null(p, args);
}

fz_status parse_json_call(parser *p, sql_expr **out, bool *found) {
    const sql_token *name = p->t;
    static const struct { const char *name; fz_status (*args)(parser *p, ptr_list *args); } forms[] = {
        {"JSON_VALUE", parse_json_path}, {"JSON_QUERY", parse_json_path}, {"JSON_EXISTS", parse_json_path}, {"JSON_OBJECT", parse_json_object},
        {"JSON_OBJECTAGG", parse_json_object}, {"JSON_ARRAY", parse_json_array}, {"JSON_ARRAYAGG", parse_json_array}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (tk_word(name, forms[i].name)) {
            ptr_list args = {0};
            *found = true;
            p->t += 2;
            FZ_TRY(forms[i].args(p, &args));
            FZ_TRY(need_op(p, ")"));
            return make_call(p, name, forms[i].name, &args, out);
        }
    return FZ_OK;
}
