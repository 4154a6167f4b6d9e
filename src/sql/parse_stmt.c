/* Statements: which one it is by its first words, and all but CREATE TABLE and queries. */
#include "sql/parse_int.h"

static fz_status parse_inner(parser *p, sql_stmt **out) FZ_MUST_USE;

static fz_status if_not_exists(parser *p, sql_stmt *s) {
    if (!take_word(p, "IF")) return FZ_OK;
    s->if_not_exists = true;
    FZ_TRY(need_word(p, "NOT"));
    return need_word(p, "EXISTS");
}

static fz_status if_exists(parser *p, sql_stmt *s) {
    if (!take_word(p, "IF")) return FZ_OK;
    s->if_exists = true;
    return need_word(p, "EXISTS");
}

static fz_status comment(parser *p, sql_stmt *s) { return take_word(p, "COMMENT") ? need_string(p, "a comment in single quotes", &s->comment) : FZ_OK; }

/* A key or value of SET: a string, or (as older clients took it) the raw text up to `stop` or the end. */
static fz_status set_part(parser *p, const char *stop, const char *what, const char **out) {
    const sql_token *first = p->t;
    if (first->kind == TK_STRING) return need_string(p, what, out);
    while (p->t != p->end && !(stop && tk_op(p->t, stop))) p->t++;
    if (p->t == first) return fail_expected(p, what);
    *out = source_since(p, first);
    return FZ_OK;
}

static fz_status parse_set(parser *p, sql_stmt *s) {
    s->kind = SQL_S_SET;
    if (p->t == p->end) return FZ_OK;
    FZ_TRY(set_part(p, "=", "a key in single quotes", &s->key));
    FZ_TRY(need_op(p, "="));
    return set_part(p, NULL, "a value in single quotes", &s->value);
}

static fz_status parse_reset(parser *p, sql_stmt *s) {
    s->kind = SQL_S_RESET;
    return p->t == p->end ? FZ_OK : set_part(p, NULL, "a key in single quotes", &s->key);
}

static fz_status parse_create_catalog(parser *p, sql_stmt *s) {
    s->kind = SQL_S_CREATE_CATALOG;
    FZ_TRY(if_not_exists(p, s));
    FZ_TRY(need_name(p, "the catalog's name", &s->name));
    FZ_TRY(comment(p, s));
    return take_word(p, "WITH") ? parse_options(p, &s->n_options, &s->options) : FZ_OK;
}

static fz_status parse_create_database(parser *p, sql_stmt *s) {
    s->kind = SQL_S_CREATE_DATABASE;
    FZ_TRY(if_not_exists(p, s));
    FZ_TRY(need_name(p, "the database's name", &s->name));
    FZ_TRY(comment(p, s));
    return take_word(p, "WITH") ? parse_options(p, &s->n_options, &s->options) : FZ_OK;
}

static fz_status parse_create_view(parser *p, sql_stmt *s) {
    s->kind = SQL_S_CREATE_VIEW;
    FZ_TRY(if_not_exists(p, s));
    FZ_TRY(need_name(p, "the view's name", &s->name));
    if (tk_op(p->t, "(")) FZ_TRY(parse_ident_list(p, "a column's name", &s->n_view_cols, &s->view_cols));
    FZ_TRY(comment(p, s));
    FZ_TRY(need_word(p, "AS"));
    const sql_token *first = p->t;
    FZ_TRY(parse_query(p, &s->query));
    s->query_text = source_since(p, first);
    return FZ_OK;
}

static fz_status parse_create(parser *p, sql_stmt *s) {
    if (tk_word(p->t, "OR")) return fail_unsupported(p, p->t->pos, "CREATE OR REPLACE");
    s->temporary = take_word(p, "TEMPORARY");
    if (s->temporary && tk_word(p->t, "SYSTEM")) return fail_unsupported(p, p->t->pos, "CREATE TEMPORARY SYSTEM FUNCTION");
    if (take_word(p, "TABLE")) return parse_create_table(p, s);
    if (take_word(p, "VIEW")) return parse_create_view(p, s);
    if (!s->temporary && take_word(p, "CATALOG")) return parse_create_catalog(p, s);
    if (!s->temporary && take_word(p, "DATABASE")) return parse_create_database(p, s);
    static const char *const refused[] = {"FUNCTION", "MODEL", "MATERIALIZED", "CONNECTION", NULL};
    for (int i = 0; refused[i]; i++)
        if (tk_word(p->t, refused[i])) return fail_unsupported(p, p->t->pos, fz_arena_printf(p->a, "CREATE %s", refused[i]));
    return fail_expected(p, s->temporary ? "TABLE or VIEW" : "TABLE, VIEW, CATALOG, DATABASE or TEMPORARY");
}

static fz_status parse_drop(parser *p, sql_stmt *s) {
    s->temporary = take_word(p, "TEMPORARY");
    const char *what;
    if (take_word(p, "TABLE")) s->kind = SQL_S_DROP_TABLE, what = "the table's name";
    else if (take_word(p, "VIEW")) s->kind = SQL_S_DROP_VIEW, what = "the view's name";
    else if (!s->temporary && take_word(p, "CATALOG")) s->kind = SQL_S_DROP_CATALOG, what = "the catalog's name";
    else if (!s->temporary && take_word(p, "DATABASE")) s->kind = SQL_S_DROP_DATABASE, what = "the database's name";
    else if (tk_word(p->t, "FUNCTION") || tk_word(p->t, "MODEL") || tk_word(p->t, "MATERIALIZED"))
        return fail_unsupported(p, p->t->pos, fz_arena_printf(p->a, "DROP %s", p->t->text));
    else return fail_expected(p, "TABLE, VIEW, CATALOG, DATABASE or TEMPORARY");
    FZ_TRY(if_exists(p, s));
    FZ_TRY(need_name(p, what, &s->name));
    if (s->kind == SQL_S_DROP_DATABASE && !take_word(p, "RESTRICT")) s->cascade = take_word(p, "CASCADE");
    return FZ_OK;
}

static fz_status parse_use(parser *p, sql_stmt *s) {
    if (tk_word(p->t, "MODULES")) return fail_unsupported(p, p->t->pos, "USE MODULES");
    if (tk_word(p->t, "CATALOG") && peek(p, 1) != p->end) {
        p->t++;
        s->kind = SQL_S_USE_CATALOG;
        return need_name(p, "the catalog's name", &s->name);
    }
    s->kind = SQL_S_USE;
    return need_name(p, "the database's name", &s->name);
}

/* [FROM | IN name] [[NOT] LIKE | ILIKE 'pattern'] */
static fz_status parse_show_tail(parser *p, sql_stmt *s, const char *of) {
    if (of && (take_word(p, "FROM") || take_word(p, "IN"))) FZ_TRY(need_name(p, of, &s->name));
    s->like_negated = take_word(p, "NOT");
    if (take_word(p, "ILIKE")) s->like_any_case = true;
    else if (!take_word(p, "LIKE")) return s->like_negated ? fail_expected(p, "LIKE") : FZ_OK;
    return need_string(p, "a pattern in single quotes", &s->like_pattern);
}

static fz_status parse_show_create(parser *p, sql_stmt *s) {
    if (take_word(p, "TABLE")) s->kind = SQL_S_SHOW_CREATE_TABLE;
    else if (take_word(p, "VIEW")) s->kind = SQL_S_SHOW_CREATE_VIEW;
    else if (take_word(p, "CATALOG")) {
        s->kind = SQL_S_SHOW_CREATE_CATALOG;
        return need_name(p, "a catalog's name", &s->name);
    } else return fail_expected(p, "TABLE, VIEW or CATALOG");
    return need_name(p, "a table's name", &s->name);
}

static fz_status parse_show(parser *p, sql_stmt *s) {
    if (take_word(p, "CREATE")) return parse_show_create(p, s);
    if (take_word(p, "CURRENT")) {
        s->kind = take_word(p, "CATALOG") ? SQL_S_SHOW_CURRENT_CATALOG : SQL_S_SHOW_CURRENT_DATABASE;
        return s->kind == SQL_S_SHOW_CURRENT_CATALOG ? FZ_OK : need_word(p, "DATABASE");
    }
    if (take_word(p, "CATALOGS")) return s->kind = SQL_S_SHOW_CATALOGS, parse_show_tail(p, s, NULL);
    if (take_word(p, "DATABASES")) return s->kind = SQL_S_SHOW_DATABASES, parse_show_tail(p, s, "a catalog's name");
    if (take_word(p, "TABLES")) return s->kind = SQL_S_SHOW_TABLES, parse_show_tail(p, s, "a database's name");
    if (take_word(p, "VIEWS")) return s->kind = SQL_S_SHOW_VIEWS, parse_show_tail(p, s, "a database's name");
    if (take_word(p, "COLUMNS")) {
        s->kind = SQL_S_DESCRIBE;
        if (!tk_word(p->t, "FROM") && !tk_word(p->t, "IN")) return fail_expected(p, "FROM and a table's name");
        return parse_show_tail(p, s, "a table's name");
    }
    take_word(p, "USER");
    if (take_word(p, "FUNCTIONS")) return s->kind = SQL_S_SHOW_FUNCTIONS, parse_show_tail(p, s, "a database's name");
    if (p->t->kind != TK_WORD) return fail_expected(p, "CATALOGS, DATABASES, TABLES, VIEWS, FUNCTIONS, CURRENT or CREATE TABLE");
    return fail_unsupported(p, p->t->pos, fz_arena_printf(p->a, "SHOW %.60s", p->t->text));
}

static fz_status parse_describe(parser *p, sql_stmt *s) {
    static const char *const refused[] = {"CATALOG", "DATABASE", "JOB", "FUNCTION", "MODEL", NULL};
    s->kind = SQL_S_DESCRIBE;
    for (int i = 0; refused[i]; i++)
        if (tk_word(p->t, refused[i]) && peek(p, 1) != p->end && !tk_op(peek(p, 1), ".")) return fail_unsupported(p, p->t->pos, fz_arena_printf(p->a, "DESCRIBE %s", refused[i]));
    take_word(p, "TABLE");
    s->extended = take_word(p, "EXTENDED");
    return need_name(p, "a table's name", &s->name);
}

static fz_status parse_explain(parser *p, sql_stmt *s) {
    static const char *const details[] = {"ESTIMATED_COST", "CHANGELOG_MODE", "JSON_EXECUTION_PLAN", "PLAN_ADVICE", NULL};
    s->kind = SQL_S_EXPLAIN;
    for (int i = 0; details[i]; i++)
        if (tk_word(p->t, details[i])) return fail_unsupported(p, p->t->pos, fz_arena_printf(p->a, "EXPLAIN %s", details[i]));
    if (take_word(p, "PLAN")) FZ_TRY(need_word(p, "FOR"));
    s->stmts = FZ_ANEWN(p->a, sql_stmt *, 1);
    s->n_stmts = 1;
    FZ_TRY(parse_inner(p, &s->stmts[0]));
    sql_stmt_kind k = s->stmts[0]->kind;
    if (k != SQL_S_SELECT && k != SQL_S_INSERT && k != SQL_S_STATEMENT_SET) return fail_at(p, s->stmts[0]->pos, "EXPLAIN takes a query, an INSERT or a statement set");
    s->query = s->stmts[0]->query;
    return FZ_OK;
}

/* PARTITION (k = v, k) */
static fz_status parse_static_partition(parser *p, sql_stmt *s) {
    uint32_t cap = 0;
    FZ_TRY(need_op(p, "("));
    do {
        if (s->n_partition_values == cap) {
            uint32_t more = cap ? cap * 2 : 4;
            s->partition_values = fz_arena_realloc(p->a, s->partition_values, cap * sizeof *s->partition_values, more * sizeof *s->partition_values);
            cap = more;
        }
        fz_pair *v = &s->partition_values[s->n_partition_values++];
        *v = (fz_pair){.line = p->t->pos.line, .column = p->t->pos.column};
        FZ_TRY(need_ident(p, "a column's name", &v->key));
        if (!take_op(p, "=")) continue;
        const sql_token *first = p->t;
        sql_expr *e;
        FZ_TRY(parse_expr(p, &e));
        v->value = source_since(p, first);
    } while (take_op(p, ","));
    return need_op(p, ")");
}

static fz_status parse_insert(parser *p, sql_stmt *s) {
    s->kind = SQL_S_INSERT;
    if (take_word(p, "OVERWRITE")) {
        s->overwrite = true;
        take_word(p, "INTO");
    } else {
        FZ_TRY(need_word(p, "INTO"));
    }
    FZ_TRY(need_name(p, "a table's name", &s->name));
    FZ_TRY(parse_hint(p, &s->hint));
    if (take_word(p, "PARTITION")) FZ_TRY(parse_static_partition(p, s));
    if (tk_op(p->t, "(") && !at_query(p, 0)) FZ_TRY(parse_ident_list(p, "a column's name", &s->n_insert_cols, &s->insert_cols));
    if (!at_query(p, 0) && !tk_word(p->t, "TABLE")) return fail_expected(p, "SELECT, VALUES or WITH");
    return parse_query(p, &s->query);
}

/* INSERTs, each with its semicolon, up to END. */
static fz_status parse_statement_set(parser *p, sql_stmt *s) {
    ptr_list v = {0};
    s->kind = SQL_S_STATEMENT_SET;
    while (!take_word(p, "END")) {
        sql_stmt *insert;
        if (!tk_word(p->t, "INSERT")) return fail_expected(p, "INSERT or END");
        FZ_TRY(parse_inner(p, &insert));
        ptr_push(p->a, &v, insert);
        if (p->t == p->end) return fail_expected(p, "END");
        FZ_TRY(need_op(p, ";"));
    }
    if (v.n == 0) return fail_at(p, s->pos, "the statement set has no INSERT");
    s->stmts = (sql_stmt **)v.v;
    s->n_stmts = v.n;
    return FZ_OK;
}

static bool take_set_head(parser *p) {
    if (tk_word(p->t, "STATEMENT") && tk_word(peek(p, 1), "SET") && tk_word(peek(p, 2), "BEGIN")) return p->t += 3, true;
    if (tk_word(p->t, "EXECUTE") && tk_word(peek(p, 1), "STATEMENT") && tk_word(peek(p, 2), "SET") && tk_word(peek(p, 3), "BEGIN")) return p->t += 4, true;
    if (tk_word(p->t, "BEGIN") && tk_word(peek(p, 1), "STATEMENT") && tk_word(peek(p, 2), "SET")) {
        p->t += 3;
        take_op(p, ";");
        return true;
    }
    return false;
}

/* Statements of Flink that are known and refused by name. */
static fz_status refuse_statement(parser *p) {
    static const char *const refused[] = {"ALTER", "DELETE", "UPDATE", "TRUNCATE", "ANALYZE", "LOAD", "UNLOAD", "ADD", "REMOVE", "CALL", "COMPILE", "STOP", "MERGE",
                                          "UPSERT", "REPLACE", NULL};
    for (int i = 0; refused[i]; i++)
        if (tk_word(p->t, refused[i])) {
            const sql_token *next = peek(p, 1);
            bool two = next->kind == TK_WORD && strcmp(refused[i], "DELETE") != 0 && strcmp(refused[i], "UPDATE") != 0 && strcmp(refused[i], "CALL") != 0;
            return fail_unsupported(p, p->t->pos, two ? fz_arena_printf(p->a, "%s %.60s", refused[i], next->text) : refused[i]);
        }
    if (tk_word(p->t, "EXECUTE")) {
        if (tk_word(peek(p, 1), "PLAN")) return fail_unsupported(p, p->t->pos, "EXECUTE PLAN");
        p->t++;
        return fail_expected(p, "STATEMENT SET BEGIN");
    }
    static const fz_option words[] = {{.name = "SELECT"}, {.name = "INSERT"}, {.name = "CREATE"}, {.name = "DROP"}, {.name = "SHOW"}, {.name = "DESCRIBE"}, {.name = "EXPLAIN"},
                                      {.name = "RESET"}, {.name = "VALUES"}, {.name = "STATEMENT"}, {.name = NULL}};
    const char *near = p->t->kind == TK_WORD ? fz_option_nearest(words, p->t->text) : NULL;
    fail_expected(p, "a statement");
    return near ? fz_hint(p->err, "did you mean %s?", near) : FZ_USER;
}

static fz_status parse_command(parser *p, sql_stmt *s) {
    if (take_word(p, "SET")) return parse_set(p, s);
    if (take_word(p, "RESET")) return parse_reset(p, s);
    if (take_word(p, "CREATE")) return parse_create(p, s);
    if (take_word(p, "DROP")) return parse_drop(p, s);
    if (take_word(p, "USE")) return parse_use(p, s);
    if (take_word(p, "SHOW")) return parse_show(p, s);
    if (take_word(p, "DESCRIBE") || take_word(p, "DESC")) return parse_describe(p, s);
    if (take_word(p, "EXPLAIN")) return parse_explain(p, s);
    if (take_word(p, "INSERT")) return parse_insert(p, s);
    if (take_word(p, "QUIT") || take_word(p, "EXIT")) return s->kind = SQL_S_QUIT, FZ_OK;
    if (take_word(p, "HELP")) return s->kind = SQL_S_HELP, FZ_OK;
    if (take_word(p, "CLEAR")) return s->kind = SQL_S_CLEAR, FZ_OK;
    return refuse_statement(p);
}

static fz_status parse_inner(parser *p, sql_stmt **out) {
    FZ_TRY(enter(p));
    sql_stmt *s = *out = FZ_ANEW(p->a, sql_stmt);
    const sql_token *first = p->t;
    s->pos = first->pos;
    s->text = "";
    if (at_query(p, 0)) {
        s->kind = SQL_S_SELECT;
        FZ_TRY(parse_query(p, &s->query));
    } else if (take_set_head(p)) {
        FZ_TRY(parse_statement_set(p, s));
    } else {
        FZ_TRY(parse_command(p, s));
    }
    s->text = source_since(p, first);
    p->depth--;
    return FZ_OK;
}

fz_status parse_statement(parser *p, sql_stmt **out) {
    for (; p->end > p->tok && tk_op(p->end - 1, ";"); p->end--) p->end[-1].kind = TK_END; /* a piece may still have its semicolon */
    FZ_TRY(parse_inner(p, out));
    return need_end(p);
}

fz_status sql_parse(fz_arena *a, const sql_piece *piece, sql_stmt **out, fz_error *err) {
    parser p;
    FZ_TRY(sql_parser_open(&p, a, piece->text, piece->len, piece->pos, err));
    return parse_statement(&p, out);
}
