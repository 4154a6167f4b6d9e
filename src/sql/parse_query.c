/* Queries: WITH, SELECT, VALUES, UNION ALL, ORDER BY, LIMIT. What Flink has beyond that (joins, windows, grouping sets, set operators that remove duplicates) is
 * recognised and refused by name. */
#include "sql/parse_int.h"

static fz_status parse_body(parser *p, sql_query **out) FZ_MUST_USE;

bool at_query(const parser *p, uint32_t k) {
    const sql_token *t = peek(p, k);
    while (tk_op(t, "(")) t = peek(p, ++k);
    if (tk_word(t, "VALUES")) return true;
    return tk_word(t, "SELECT") || tk_word(t, "WITH");
}

static sql_query *new_query(parser *p, const sql_token *first) {
    sql_query *q = FZ_ANEW(p->a, sql_query);
    q->pos = first->pos;
    q->from.pos = first->pos;
    return q;
}

/* SELECT * */
static void select_all(parser *p, sql_query *q, const sql_token *at) {
    sql_item *item = FZ_ANEW(p->a, sql_item);
    item->expr = make_leaf(p, SQL_X_STAR, at);
    item->expr->text = NULL;
    item->expr->text_len = 0;
    q->items = item;
    q->n_items = 1;
}

/* A query whose own ORDER BY, LIMIT or branches must not mix with those around it becomes SELECT * FROM (query). */
static sql_query *wrap(parser *p, sql_query *inner, const sql_token *at) {
    sql_query *q = new_query(p, at);
    select_all(p, q, at);
    q->from.kind = SQL_FROM_QUERY;
    q->from.query = inner;
    return q;
}

/* VALUES (a, b), (c, d), e */
static fz_status parse_values(parser *p, sql_from *from) {
    from->kind = SQL_FROM_VALUES;
    from->pos = p->t->pos;
    ptr_list cells = {0};
    FZ_TRY(need_word(p, "VALUES"));
    do {
        sql_pos pos = p->t->pos;
        uint32_t before = cells.n;
        sql_expr *e;
        if (take_word(p, "ROW") || tk_op(p->t, "(")) {
            FZ_TRY(need_op(p, "("));
            do {
                FZ_TRY(parse_expr(p, &e));
                ptr_push(p->a, &cells, e);
            } while (take_op(p, ","));
            FZ_TRY(need_op(p, ")"));
        } else {
            FZ_TRY(parse_expr(p, &e));
            ptr_push(p->a, &cells, e);
        }
        uint32_t width = cells.n - before;
        if (from->n_rows && width != from->n_cols)
            return fail_at(p, pos, "rows of VALUES differ in length: this one has %u values, the first has %u", width, from->n_cols);
        from->n_cols = width;
        from->n_rows++;
    } while (take_op(p, ","));
    from->values = (sql_expr **)cells.v;
    return FZ_OK;
}

static fz_status parse_alias(parser *p, sql_from *from) {
    bool as = take_word(p, "AS");
    if (!as && p->t->kind != TK_QUOTED && (p->t->kind != TK_WORD || p->t->reserved)) return FZ_OK;
    FZ_TRY(need_ident(p, "an alias (a name)", &from->alias));
    return tk_op(p->t, "(") ? parse_ident_list(p, "a column's name", &from->n_alias_cols, &from->alias_cols) : FZ_OK;
}

static fz_status refuse_from(parser *p) {
    static const char *const words[][2] = {{"JOIN", "JOIN"}, {"INNER", "JOIN"}, {"LEFT", "JOIN"}, {"RIGHT", "JOIN"}, {"FULL", "JOIN"}, {"CROSS", "JOIN"},
                                           {"NATURAL", "JOIN"}, {"ASOF", "JOIN"}, {"TABLESAMPLE", "TABLESAMPLE"}, {"MATCH_RECOGNIZE", "MATCH_RECOGNIZE"},
                                           {"PIVOT", "PIVOT"}, {"UNPIVOT", "UNPIVOT"}, {"FOR", "FOR SYSTEM_TIME AS OF"}, {NULL, NULL}};
    for (int i = 0; words[i][0]; i++)
        if (tk_word(p->t, words[i][0])) return fail_unsupported(p, p->t->pos, words[i][1]);
    if (tk_op(p->t, ",")) return fail_unsupported(p, p->t->pos, "a join (a second table in FROM)");
    return FZ_OK;
}

static fz_status parse_table_ref(parser *p, sql_from *from) {
    static const char *const refused[] = {"LATERAL", "UNNEST", "TABLE", NULL};
    from->pos = p->t->pos;
    for (int i = 0; refused[i]; i++)
        if (tk_word(p->t, refused[i])) return fail_unsupported(p, p->t->pos, fz_arena_printf(p->a, "%s in FROM", refused[i]));
    if (tk_op(p->t, "(") && tk_word(peek(p, 1), "VALUES")) {
        p->t++;
        const sql_token *start = p->t;
        FZ_TRY(parse_values(p, from));
        if (!tk_op(p->t, ")")) { /* VALUES with ORDER BY, UNION ...: a whole query */
            p->t -= p->t - start;
            *from = (sql_from){.kind = SQL_FROM_QUERY, .pos = from->pos};
            FZ_TRY(parse_query(p, &from->query));
        }
        FZ_TRY(need_op(p, ")"));
    } else if (tk_op(p->t, "(")) {
        p->t++;
        if (!at_query(p, 0)) {
            if (tk_op(p->t, "(") || p->t->kind == TK_QUOTED || p->t->kind == TK_WORD) return fail_expected(p, "SELECT, VALUES or WITH");
            return fail_expected(p, "a query");
        }
        from->kind = SQL_FROM_QUERY;
        FZ_TRY(parse_query(p, &from->query));
        FZ_TRY(need_op(p, ")"));
    } else {
        from->kind = SQL_FROM_TABLE;
        FZ_TRY(need_name(p, "a table's name", &from->table));
        if (tk_op(p->t, "(")) return fail_unsupported(p, p->t->pos, "a table function");
        FZ_TRY(parse_hint(p, &from->hint));
    }
    FZ_TRY(refuse_from(p));
    FZ_TRY(parse_alias(p, from));
    return refuse_from(p);
}

/* *, t.*, a.b.*, expr [[AS] alias] */
static fz_status parse_item(parser *p, sql_item *item) {
    uint32_t k = 0;
    while (k < 8 && (peek(p, k)->kind == TK_WORD || peek(p, k)->kind == TK_QUOTED) && tk_op(peek(p, k + 1), ".")) k += 2;
    if (tk_op(peek(p, k), "*")) {
        const sql_token *first = p->t;
        sql_name qualifier = {.pos = first->pos};
        for (; !tk_op(p->t, "*"); p->t++) { /* the dot */
            if (qualifier.n == 4) return fail_at(p, p->t->pos, "a name has at most four parts");
            qualifier.quoted[qualifier.n] = p->t->kind == TK_QUOTED;
            FZ_TRY(need_ident(p, "a table's name", &qualifier.part[qualifier.n++]));
        }
        p->t++;
        item->expr = make_leaf(p, SQL_X_STAR, first);
        item->expr->text = NULL;
        item->expr->text_len = 0;
        item->expr->col = qualifier;
        return FZ_OK;
    }
    FZ_TRY(parse_expr(p, &item->expr));
    bool as = take_word(p, "AS");
    if (as || p->t->kind == TK_QUOTED || (p->t->kind == TK_WORD && !p->t->reserved)) FZ_TRY(need_ident(p, "an alias (a name)", &item->alias));
    return FZ_OK;
}

static fz_status parse_items(parser *p, sql_query *q) {
    uint32_t cap = 0;
    do {
        if (q->n_items == FZ_MAX_COLUMNS) return fail_at(p, p->t->pos, "SELECT has at most %d items", FZ_MAX_COLUMNS);
        if (q->n_items == cap) {
            uint32_t more = cap ? cap * 2 : 8;
            q->items = fz_arena_realloc(p->a, q->items, cap * sizeof *q->items, more * sizeof *q->items);
            cap = more;
        }
        sql_item *item = &q->items[q->n_items];
        *item = (sql_item){0};
        FZ_TRY(parse_item(p, item));
        q->n_items++;
    } while (take_op(p, ","));
    return FZ_OK;
}

static fz_status parse_group(parser *p, sql_query *q) {
    static const char *const refused[] = {"GROUPING", "ROLLUP", "CUBE", NULL};
    ptr_list keys = {0};
    if (tk_op(p->t, "(") && tk_op(peek(p, 1), ")")) return fail_unsupported(p, p->t->pos, "GROUP BY ()");
    do {
        for (int i = 0; refused[i]; i++)
            if (tk_word(p->t, refused[i])) return fail_unsupported(p, p->t->pos, fz_arena_printf(p->a, "%s in GROUP BY", refused[i]));
        sql_expr *e;
        FZ_TRY(parse_expr(p, &e));
        ptr_push(p->a, &keys, e);
    } while (take_op(p, ","));
    q->group = (sql_expr **)keys.v;
    q->n_group = keys.n;
    return FZ_OK;
}

static fz_status parse_select(parser *p, sql_query **out) {
    sql_query *q = *out = new_query(p, p->t);
    FZ_TRY(need_word(p, "SELECT"));
    if (p->t->kind == TK_HINT) return fail_unsupported(p, p->t->pos, "a query hint");
    if (take_word(p, "DISTINCT")) q->distinct = true;
    else take_word(p, "ALL");
    if (tk_word(p->t, "STREAM")) return fail_unsupported(p, p->t->pos, "SELECT STREAM");
    FZ_TRY(parse_items(p, q));
    if (take_word(p, "FROM")) FZ_TRY(parse_table_ref(p, &q->from));
    if (take_word(p, "WHERE")) FZ_TRY(parse_expr(p, &q->where));
    if (take_words(p, "GROUP", "BY")) FZ_TRY(parse_group(p, q));
    if (take_word(p, "HAVING")) FZ_TRY(parse_expr(p, &q->having));
    if (tk_word(p->t, "WINDOW")) return fail_unsupported(p, p->t->pos, "WINDOW");
    if (tk_word(p->t, "QUALIFY")) return fail_unsupported(p, p->t->pos, "QUALIFY");
    return FZ_OK;
}

/* SELECT ..., VALUES ... or ( query ) */
static fz_status parse_term(parser *p, sql_query **out, bool *parens) {
    const sql_token *first = p->t;
    *parens = false;
    if (tk_word(p->t, "SELECT")) return parse_select(p, out);
    if (tk_word(p->t, "VALUES")) {
        *out = new_query(p, first);
        select_all(p, *out, first);
        return parse_values(p, &(*out)->from);
    }
    if (tk_word(p->t, "TABLE")) return fail_unsupported(p, p->t->pos, "TABLE as a query");
    if (!tk_op(p->t, "(")) return fail_expected(p, "SELECT, VALUES or WITH");
    *parens = true;
    p->t++;
    FZ_TRY(parse_query(p, out));
    return need_op(p, ")");
}

static fz_status parse_body(parser *p, sql_query **out) {
    const sql_token *first = p->t;
    bool parens;
    FZ_TRY(parse_term(p, out, &parens));
    sql_query *last = NULL;
    for (uint32_t branches = 1;; branches++) {
        if (tk_word(p->t, "INTERSECT") || tk_word(p->t, "EXCEPT") || tk_word(p->t, "MINUS")) return fail_unsupported(p, p->t->pos, p->t->text);
        if (!tk_word(p->t, "UNION")) break;
        sql_pos pos = p->t->pos;
        p->t++;
        if (!take_word(p, "ALL")) {
            fail_unsupported(p, pos, "UNION that removes duplicates");
            return fz_hint(p->err, "write UNION ALL, or SELECT DISTINCT over it"), FZ_USER;
        }
        if (branches == FZ_MAX_COLUMNS) return fail_at(p, pos, "a query has at most %d branches of UNION ALL", FZ_MAX_COLUMNS);
        if (!last) last = *out = parens ? wrap(p, *out, first) : *out;
        sql_query *next;
        const sql_token *t = p->t;
        bool next_parens;
        FZ_TRY(parse_term(p, &next, &next_parens));
        last = last->union_all = next_parens ? wrap(p, next, t) : next;
    }
    bool clauses = tk_word(p->t, "ORDER") || tk_word(p->t, "LIMIT") || tk_word(p->t, "OFFSET") || tk_word(p->t, "FETCH");
    if (parens && !last && clauses) *out = wrap(p, *out, first);
    return FZ_OK;
}

static fz_status parse_order(parser *p, sql_query *q) {
    uint32_t cap = 0;
    do {
        if (q->n_order == cap) {
            uint32_t more = cap ? cap * 2 : 4;
            q->order = fz_arena_realloc(p->a, q->order, cap * sizeof *q->order, more * sizeof *q->order);
            cap = more;
        }
        sql_order *o = &q->order[q->n_order++];
        *o = (sql_order){.nulls_first = -1};
        FZ_TRY(parse_expr(p, &o->expr));
        if (take_word(p, "DESC")) o->desc = true;
        else take_word(p, "ASC");
        if (take_word(p, "NULLS")) {
            if (take_word(p, "FIRST")) o->nulls_first = 1;
            else if (take_word(p, "LAST")) o->nulls_first = 0;
            else return fail_expected(p, "FIRST or LAST");
        }
    } while (take_op(p, ","));
    return FZ_OK;
}

static fz_status parse_count(parser *p, sql_expr **out) {
    if (p->t->kind != TK_NUMBER) return fail_expected(p, "a number of rows");
    const sql_token *t = p->t++;
    *out = make_leaf(p, SQL_X_NUMBER, t);
    return FZ_OK;
}

/* LIMIT n | ALL, OFFSET n [ROW|ROWS], FETCH FIRST|NEXT n ROW|ROWS ONLY, in any order as Calcite takes them. */
static fz_status parse_limits(parser *p, sql_query *q) {
    for (;;) {
        if (tk_word(p->t, "LIMIT") && !q->limit) {
            p->t++;
            if (take_word(p, "ALL")) continue;
            FZ_TRY(parse_count(p, &q->limit));
        } else if (tk_word(p->t, "OFFSET") && !q->offset) {
            p->t++;
            FZ_TRY(parse_count(p, &q->offset));
            if (!take_word(p, "ROWS")) take_word(p, "ROW");
        } else if (tk_word(p->t, "FETCH") && !q->limit) {
            p->t++;
            if (!take_word(p, "FIRST") && !take_word(p, "NEXT")) return fail_expected(p, "FIRST or NEXT");
            FZ_TRY(parse_count(p, &q->limit));
            if (!take_word(p, "ROWS")) take_word(p, "ROW");
            FZ_TRY(need_word(p, "ONLY"));
        } else {
            return FZ_OK;
        }
    }
}

/* name [(columns)] AS ( query ), ... */
static fz_status parse_with(parser *p, ptr_list *names, ptr_list *queries) {
    if (tk_word(p->t, "RECURSIVE")) return fail_unsupported(p, p->t->pos, "WITH RECURSIVE");
    do {
        const sql_token *first = p->t;
        const char *name, **cols = NULL;
        uint32_t n_cols = 0;
        sql_query *q;
        FZ_TRY(need_ident(p, "the name of a WITH query", &name));
        if (tk_op(p->t, "(")) FZ_TRY(parse_ident_list(p, "a column's name", &n_cols, &cols));
        FZ_TRY(need_word(p, "AS"));
        FZ_TRY(need_op(p, "("));
        FZ_TRY(parse_query(p, &q));
        FZ_TRY(need_op(p, ")"));
        if (n_cols) {
            q = wrap(p, q, first);
            q->from.alias = name;
            q->from.n_alias_cols = n_cols;
            q->from.alias_cols = cols;
        }
        ptr_push(p->a, names, (void *)(uintptr_t)name);
        ptr_push(p->a, queries, q);
    } while (take_op(p, ","));
    return FZ_OK;
}

fz_status parse_query(parser *p, sql_query **out) {
    FZ_TRY(enter(p));
    ptr_list names = {0}, queries = {0};
    const sql_token *first = p->t;
    if (take_word(p, "WITH")) FZ_TRY(parse_with(p, &names, &queries));
    FZ_TRY(parse_body(p, out));
    if (names.n && ((*out)->n_with || (*out)->from.kind == SQL_FROM_VALUES)) *out = wrap(p, *out, first);
    sql_query *q = *out;
    if (names.n) {
        q->n_with = names.n;
        q->with = fz_arena_calloc(p->a, names.n, sizeof *q->with);
        for (uint32_t i = 0; i < names.n; i++) {
            q->with[i].name = names.v[i];
            q->with[i].query = queries.v[i];
        }
    }
    if (take_words(p, "ORDER", "BY")) FZ_TRY(parse_order(p, q));
    FZ_TRY(parse_limits(p, q));
    p->depth--;
    return FZ_OK;
}

fz_status sql_parse_query(fz_arena *a, const char *text, size_t n, sql_query **out, fz_error *err) {
    parser p;
    FZ_TRY(sql_parser_open(&p, a, text, n, (sql_pos){1, 1}, err));
    FZ_TRY(parse_query(&p, out));
    return need_end(&p);
}
