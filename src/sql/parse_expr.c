/* Expressions: operators by Calcite's precedence, and primaries. Functions with a syntax of their own stand in parse_call.c and parse_json.c.
 *
 * Precedence (a greater number binds tighter): OR 22, AND 24, NOT 26, IS 28, comparisons and OVERLAPS 30, LIKE IN BETWEEN SIMILAR 32, + - 40, * / % || 60, signs 80,
 * [index] and .field 100.
 *
 * Chains of AND, OR and || become balanced trees, in order: a long list of conditions is no deep nesting. */
#include "sql/parse_int.h"

enum { P_OR = 22, P_AND = 24, P_NOT = 26, P_IS = 28, P_COMPARE = 30, P_LIKE = 32, P_ADD = 40, P_MUL = 60 };

typedef struct binary_op { const char *sign; int precedence; bool associative; } binary_op;
static const binary_op signs[] = {{"=", P_COMPARE, false}, {"<>", P_COMPARE, false}, {"<", P_COMPARE, false}, {"<=", P_COMPARE, false}, {">", P_COMPARE, false},
                                  {">=", P_COMPARE, false}, {"+", P_ADD, false}, {"-", P_ADD, false}, {"*", P_MUL, false}, {"/", P_MUL, false}, {"%", P_MUL, false},
                                  {"||", P_MUL, true}, {NULL, 0, false}};
static const binary_op word_and = {"AND", P_AND, true}, word_or = {"OR", P_OR, true};

static const binary_op *binary_at(const sql_token *t) {
    if (tk_word(t, "AND")) return &word_and;
    if (tk_word(t, "OR")) return &word_or;
    if (t->kind != TK_OP) return NULL;
    for (const binary_op *o = signs; o->sign; o++)
        if (strcmp(o->sign, t->text) == 0) return o;
    return NULL;
}

static fz_status balanced(parser *p, const char *fn, sql_expr **v, uint32_t n, sql_expr **out) {
    if (n == 1) return *out = v[0], FZ_OK;
    sql_expr *l, *r;
    FZ_TRY(balanced(p, fn, v, (n + 1) / 2, &l));
    FZ_TRY(balanced(p, fn, v + (n + 1) / 2, n / 2, &r));
    return make_binary(p, fn, l, r, out);
}

static fz_status parse_chain(parser *p, const binary_op *o, sql_expr **left) {
    ptr_list v = {0};
    ptr_push(p->a, &v, *left);
    while (binary_at(p->t) == o) {
        p->t++;
        sql_expr *e;
        FZ_TRY(parse_binary(p, o->precedence + 1, &e));
        ptr_push(p->a, &v, e);
    }
    return balanced(p, o->sign, (sql_expr **)v.v, v.n, left);
}

/* A postfix or mixed operator's node: source range from the left operand on. */
static fz_status finish_on(parser *p, const char *fn, ptr_list *args, sql_expr **left) {
    sql_expr *l = *left;
    FZ_TRY(make_call(p, p->t, fn, args, left));
    (*left)->pos = l->pos;
    (*left)->src_from = l->src_from;
    (*left)->src_to = p->t[-1].to;
    return FZ_OK;
}

static fz_status parse_is_json(parser *p, bool negated, sql_expr **left) {
    static const char *const kinds[] = {"VALUE", "OBJECT", "ARRAY", "SCALAR", NULL};
    const sql_token *t = p->t;
    const char *kind = "VALUE";
    for (int i = 0; kinds[i]; i++)
        if (take_word(p, kinds[i])) kind = kinds[i];
    ptr_list args = {0};
    ptr_push(p->a, &args, *left);
    ptr_push(p->a, &args, make_symbol(p, kind, t));
    return finish_on(p, negated ? "IS NOT JSON" : "IS JSON", &args, left);
}

static fz_status parse_is(parser *p, sql_expr **left) {
    static const char *const plain[][3] = {{"NULL", "IS NULL", "IS NOT NULL"}, {"TRUE", "IS TRUE", "IS NOT TRUE"}, {"FALSE", "IS FALSE", "IS NOT FALSE"},
                                           {"UNKNOWN", "IS UNKNOWN", "IS NOT UNKNOWN"}, {NULL, NULL, NULL}};
    p->t++;
    bool negated = take_word(p, "NOT");
    ptr_list args = {0};
    for (int i = 0; plain[i][0]; i++)
        if (take_word(p, plain[i][0])) {
            ptr_push(p->a, &args, *left);
            return finish_on(p, plain[i][negated ? 2 : 1], &args, left);
        }
    if (take_words(p, "DISTINCT", "FROM")) {
        sql_expr *r;
        FZ_TRY(parse_binary(p, P_COMPARE + 1, &r));
        return make_binary(p, negated ? "IS NOT DISTINCT FROM" : "IS DISTINCT FROM", *left, r, left);
    }
    if (take_word(p, "JSON")) return parse_is_json(p, negated, left);
    if (tk_word(p->t, "A") || tk_word(p->t, "EMPTY")) return fail_unsupported(p, p->t->pos, "a test of a MULTISET");
    return fail_expected(p, "NULL, TRUE, FALSE, UNKNOWN, DISTINCT FROM or JSON");
}

static fz_status parse_in(parser *p, bool negated, sql_expr **left) {
    ptr_list args = {0};
    ptr_push(p->a, &args, *left);
    FZ_TRY(need_op(p, "("));
    if (at_query(p, 0)) return fail_unsupported(p, p->t->pos, "IN with a subquery");
    do {
        sql_expr *e;
        FZ_TRY(parse_expr(p, &e));
        ptr_push(p->a, &args, e);
    } while (take_op(p, ","));
    FZ_TRY(need_op(p, ")"));
    return finish_on(p, negated ? "NOT IN" : "IN", &args, left);
}

static fz_status parse_between(parser *p, bool negated, sql_expr **left) {
    ptr_list args = {0};
    sql_expr *low, *high;
    const sql_token *sym = p->t;
    const char *symmetric = take_word(p, "SYMMETRIC") ? "SYMMETRIC" : take_word(p, "ASYMMETRIC") ? "ASYMMETRIC" : NULL;
    ptr_push(p->a, &args, *left);
    FZ_TRY(parse_binary(p, P_LIKE + 1, &low));
    FZ_TRY(need_word(p, "AND"));
    FZ_TRY(parse_binary(p, P_LIKE + 1, &high));
    ptr_push(p->a, &args, low);
    ptr_push(p->a, &args, high);
    if (symmetric) ptr_push(p->a, &args, make_symbol(p, symmetric, sym));
    return finish_on(p, negated ? "NOT BETWEEN" : "BETWEEN", &args, left);
}

static fz_status parse_like(parser *p, const char *fn, sql_expr **left) {
    ptr_list args = {0};
    sql_expr *e;
    ptr_push(p->a, &args, *left);
    FZ_TRY(parse_binary(p, P_LIKE + 1, &e));
    ptr_push(p->a, &args, e);
    if (take_word(p, "ESCAPE")) {
        FZ_TRY(parse_binary(p, P_LIKE + 1, &e));
        ptr_push(p->a, &args, e);
    }
    return finish_on(p, fn, &args, left);
}

/* [NOT] LIKE | IN | BETWEEN | SIMILAR TO at the next token. */
static fz_status parse_like_family(parser *p, sql_expr **left) {
    bool negated = take_word(p, "NOT");
    if (take_word(p, "LIKE")) return parse_like(p, negated ? "NOT LIKE" : "LIKE", left);
    if (take_word(p, "IN")) return parse_in(p, negated, left);
    if (take_word(p, "BETWEEN")) return parse_between(p, negated, left);
    if (take_words(p, "SIMILAR", "TO")) return parse_like(p, negated ? "NOT SIMILAR TO" : "SIMILAR TO", left);
    if (tk_word(p->t, "ILIKE") || tk_word(p->t, "RLIKE")) {
        fail_unsupported(p, p->t->pos, p->t->text);
        return fz_hint(p->err, "Flink has no %s either; LOWER(x) LIKE ... or REGEXP(x, ...) say the same", p->t->text), FZ_USER;
    }
    return fail_expected(p, "LIKE, IN, BETWEEN or SIMILAR TO");
}

static bool at_like_family(const parser *p) {
    static const char *const words[] = {"LIKE", "IN", "BETWEEN", "SIMILAR", "ILIKE", "RLIKE", NULL};
    const sql_token *t = tk_word(p->t, "NOT") ? peek(p, 1) : p->t;
    for (int i = 0; words[i]; i++)
        if (tk_word(t, words[i])) return true;
    return false;
}

static fz_status parse_overlaps(parser *p, sql_expr **left) {
    sql_pos pos = p->t->pos;
    sql_expr *l = *left, *r;
    p->t++;
    FZ_TRY(parse_binary(p, P_COMPARE + 1, &r));
    bool pairs = l->kind == SQL_X_CALL && r->kind == SQL_X_CALL && strcmp(l->fn, "ROW") == 0 && strcmp(r->fn, "ROW") == 0 && l->n_args == 2 && r->n_args == 2;
    if (!pairs) return fail_at(p, pos, "OVERLAPS stands between two pairs: (start, end) OVERLAPS (start, end)");
    ptr_list args = {0};
    for (int i = 0; i < 2; i++) ptr_push(p->a, &args, l->args[i]);
    for (int i = 0; i < 2; i++) ptr_push(p->a, &args, r->args[i]);
    return finish_on(p, "OVERLAPS", &args, left);
}

/* Operators that Calcite parses and nothing here can do, and signs that belong to other dialects. */
static fz_status check_foreign(parser *p) {
    static const char *const words[] = {"MEMBER", "SUBMULTISET", "CONTAINS", "EQUALS", "PRECEDES", "SUCCEEDS", "IMMEDIATELY", "MULTISET", NULL};
    for (int i = 0; words[i]; i++)
        if (tk_word(p->t, words[i])) return fail_unsupported(p, p->t->pos, fz_arena_printf(p->a, "operator %s", words[i]));
    const char *way = tk_op(p->t, "!=") ? "<>" : tk_op(p->t, "::") ? "CAST(x AS type)" : tk_op(p->t, "=") && tk_op(peek(p, 1), "=") ? "=" : NULL;
    if (!way) return FZ_OK;
    fail_at(p, p->t->pos, "operator %s is not known in Flink SQL", strcmp(way, "=") == 0 ? "==" : p->t->text);
    return fz_hint(p->err, "write %s", way), FZ_USER;
}

static fz_status parse_unary(parser *p, sql_expr **out) {
    const sql_token *first = p->t;
    bool minus = tk_op(first, "-"), not = tk_word(first, "NOT");
    if (!minus && !not && !tk_op(first, "+")) return parse_primary(p, out);
    FZ_TRY(enter(p));
    p->t++;
    sql_expr *e;
    if (not) FZ_TRY(parse_binary(p, P_NOT + 1, &e));
    else FZ_TRY(parse_unary(p, &e));
    p->depth--;
    ptr_list args = {0};
    ptr_push(p->a, &args, e);
    return make_call(p, first, not ? "NOT" : minus ? "-1" : "+1", &args, out);
}

fz_status parse_binary(parser *p, int min, sql_expr **out) {
    FZ_TRY(enter(p));
    FZ_TRY(parse_unary(p, out));
    for (;;) {
        FZ_TRY(check_foreign(p));
        const binary_op *o = binary_at(p->t);
        if (o && o->precedence < min) break;
        if (o && o->associative) {
            FZ_TRY(parse_chain(p, o, out));
        } else if (o) {
            p->t++;
            sql_expr *r;
            if (tk_word(p->t, "ANY") || tk_word(p->t, "SOME") || tk_word(p->t, "ALL")) return fail_unsupported(p, p->t->pos, "a comparison with ANY, SOME or ALL");
            FZ_TRY(parse_binary(p, o->precedence + 1, &r));
            FZ_TRY(make_binary(p, o->sign, *out, r, out));
        } else if (tk_word(p->t, "IS") && P_IS >= min) {
            FZ_TRY(parse_is(p, out));
        } else if (tk_word(p->t, "OVERLAPS") && P_COMPARE >= min) {
            FZ_TRY(parse_overlaps(p, out));
        } else if (at_like_family(p) && P_LIKE >= min) {
            FZ_TRY(parse_like_family(p, out));
        } else {
            break;
        }
    }
    p->depth--;
    return FZ_OK;
}

fz_status parse_expr(parser *p, sql_expr **out) { return parse_binary(p, 0, out); }

fz_status sql_parse_expr(fz_arena *a, const char *text, size_t n, sql_expr **out, fz_error *err) {
    parser p;
    FZ_TRY(sql_parser_open(&p, a, text, n, (sql_pos){1, 1}, err));
    FZ_TRY(parse_expr(&p, out));
    return need_end(&p);
}
