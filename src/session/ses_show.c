/* SHOW, DESCRIBE, EXPLAIN, SET without arguments: answers about the session itself. Column names and cells are those of Flink's SQL client. */
#include "session/session_int.h"
#include <stdlib.h>

void ses_listing_add(ses_listing *l, const char *const *cells) {
    if (l->n_rows == l->cap) {
        uint32_t cap = l->cap ? l->cap * 2 : 16;
        l->cells = fz_arena_realloc(l->arena, l->cells, (size_t)l->cap * l->n_cols * sizeof *l->cells, (size_t)cap * l->n_cols * sizeof *l->cells);
        l->cap = cap;
    }
    memcpy(&l->cells[(size_t)l->n_rows * l->n_cols], cells, l->n_cols * sizeof *cells);
    l->n_rows++;
}

fz_status ses_listing_send(ses_session *s, ses_listing *l, fz_error *err) {
    col_field *f = FZ_ANEWN(s->arena, col_field, l->n_cols);
    for (uint32_t c = 0; c < l->n_cols; c++) f[c] = (col_field){l->names[c], col_string(true), NULL};
    col_schema *schema = FZ_ANEW(s->arena, col_schema);
    *schema = (col_schema){l->n_cols, f};
    FZ_TRY(s->out.begin(s->out.cx, schema, false, true, err));
    if (l->n_rows) {
        col_batch *b = col_batch_new(schema, l->n_rows);
        for (uint32_t c = 0; c < l->n_cols; c++) {
            col_builder *cells = col_builder_new(b->arena, f[c].type);
            for (uint32_t r = 0; r < l->n_rows; r++) {
                const char *text = l->cells[(size_t)r * l->n_cols + c];
                if (text) col_add_bytes(cells, text, strlen(text));
                else col_add_null(cells);
            }
            b->cols[c] = col_builder_finish(cells);
        }
        fz_status rc = s->out.rows(s->out.cx, b, ses_time_zone(s), err);
        col_batch_release(b);
        FZ_TRY(rc);
    }
    return s->out.end(s->out.cx, err);
}

/* SQL LIKE with % and _; no escape. */
static bool like(const char *p, const char *v, bool any_case) {
    for (; *p; p++) {
        if (*p == '%') {
            while (*p == '%') p++;
            if (!*p) return true;
            for (; *v; v++)
                if (like(p, v, any_case)) return true;
            return false;
        }
        char a = *p, b = *v;
        if (any_case) {
            if (a >= 'A' && a <= 'Z') a = (char)(a + 32);
            if (b >= 'A' && b <= 'Z') b = (char)(b + 32);
        }
        if (!b || (*p != '_' && a != b)) return false;
        v++;
    }
    return !*v;
}

static int by_name(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

static void add_name(ses_session *s, ses_listing *l, const sql_stmt *st, const char *name) {
    if (st->like_pattern && like(st->like_pattern, name, st->like_any_case) == st->like_negated) return;
    const char *copy = fz_arena_strdup(s->arena, name);
    ses_listing_add(l, &copy);
}

static void add_names(ses_session *s, ses_listing *l, const sql_stmt *st, const cat_names *names) {
    for (uint32_t i = 0; i < names->n; i++) add_name(s, l, st, names->v[i]);
}

static fz_status list_databases(ses_session *s, const sql_stmt *st, ses_listing *l, fz_error *err) {
    ses_catalog *c;
    if (st->name.n > 1) {
        fz_fail(err, FZ_USER, "sql.name", "the name of a catalog has one part");
        return ses_fail_at(err, st->name.pos);
    }
    FZ_TRY(ses_need_catalog(s, st->name.n ? st->name.part[0] : s->catalog, st->name.pos, &c, err));
    for (uint32_t i = 0; i < c->n_databases; i++) add_name(s, l, st, c->databases[i]);
    if (!c->iceberg) return FZ_OK;
    cat_namespace parent = cat_ident_of(c->iceberg, s->arena, "", NULL).ns;
    parent.n--;
    cat_names names;
    FZ_TRY(cat_list_namespaces(c->iceberg, parent, s->arena, &names, err));
    add_names(s, l, st, &names);
    return FZ_OK;
}

static fz_status list_tables(ses_session *s, const sql_stmt *st, ses_listing *l, fz_error *err) {
    ses_path p = {0};
    bool views = st->kind == SQL_S_SHOW_VIEWS;
    FZ_TRY(ses_database_of(s, &st->name, &p, err));
    FZ_TRY(ses_need_database(s, &p, st->name.pos, err));
    for (uint32_t i = 0; i < s->n_tables; i++) {
        const ses_table *t = s->tables[i];
        if (strcmp(t->catalog, p.catalog) != 0 || strcmp(t->database, p.database) != 0 || (views && t->table.kind != SQL_T_VIEW)) continue;
        ses_path same = {t->catalog, t->database, t->name};
        if (t->temporary || !ses_find_table(s, &same, true)) add_name(s, l, st, t->name);
    }
    ses_catalog *c = ses_find_catalog(s, p.catalog);
    if (views || !c->iceberg) return FZ_OK;
    cat_names names;
    FZ_TRY(cat_list_tables(c->iceberg, cat_ident_of(c->iceberg, s->arena, p.database, NULL).ns, s->arena, &names, err));
    for (uint32_t i = 0; i < names.n; i++) {
        ses_path same = {p.catalog, p.database, names.v[i]};
        if (!ses_find_table(s, &same, true)) add_name(s, l, st, names.v[i]);
    }
    return FZ_OK;
}

static void list_functions(ses_session *s, const sql_stmt *st, ses_listing *l) {
    const sql_fn_info *f;
    uint32_t n = sql_functions(&f);
    for (uint32_t i = 0; i < n; i++)
        if (f[i].available) add_name(s, l, st, f[i].name);
}

fz_status ses_show(ses_session *s, const sql_stmt *st, fz_error *err) {
    static const struct { sql_stmt_kind kind; const char *column; } columns[] = {
        {SQL_S_SHOW_CATALOGS, "catalog name"}, {SQL_S_SHOW_DATABASES, "database name"}, {SQL_S_SHOW_TABLES, "table name"}, {SQL_S_SHOW_VIEWS, "view name"},
        {SQL_S_SHOW_FUNCTIONS, "function name"}, {SQL_S_SHOW_CURRENT_CATALOG, "current catalog name"}, {SQL_S_SHOW_CURRENT_DATABASE, "current database name"}};
    ses_listing l = {.arena = s->arena, .n_cols = 1};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        if (columns[i].kind == st->kind) l.names = &columns[i].column;
    switch (st->kind) {
    case SQL_S_SHOW_CATALOGS:
        for (uint32_t i = 0; i < s->n_catalogs; i++) add_name(s, &l, st, s->catalogs[i]->name);
        break;
    case SQL_S_SHOW_DATABASES: FZ_TRY(list_databases(s, st, &l, err)); break;
    case SQL_S_SHOW_TABLES:
    case SQL_S_SHOW_VIEWS: FZ_TRY(list_tables(s, st, &l, err)); break;
    case SQL_S_SHOW_FUNCTIONS: list_functions(s, st, &l); break;
    default: add_name(s, &l, st, st->kind == SQL_S_SHOW_CURRENT_CATALOG ? s->catalog : s->database);
    }
    if (l.n_rows) qsort(l.cells, l.n_rows, sizeof *l.cells, by_name);
    return ses_listing_send(s, &l, err);
}

static bool each_setting(void *cx, const char *key, const char *value) {
    ses_listing *l = cx;
    fz_buf shown = {0};
    fz_option_show(&shown, key, value);
    const char *cells[2] = {fz_arena_strdup(l->arena, key), fz_arena_strdup(l->arena, fz_buf_cstr(&shown))};
    fz_buf_free(&shown);
    ses_listing_add(l, cells);
    return true;
}

fz_status ses_list_settings(ses_session *s, fz_error *err) {
    static const char *const names[] = {"key", "value"};
    ses_listing l = {.arena = s->arena, .n_cols = 2, .names = names};
    conf_each(s->settings, each_setting, &l);
    return ses_listing_send(s, &l, err);
}

fz_status ses_show_create(ses_session *s, const sql_stmt *st, fz_error *err) {
    sql_stmt *def;
    ses_path p = {0};
    bool temporary, want_view = st->kind == SQL_S_SHOW_CREATE_VIEW;
    FZ_TRY(ses_definition(s, &st->name, &def, &p, &temporary, err));
    bool view = def->kind == SQL_S_CREATE_VIEW;
    if (view != want_view) {
        fz_fail(err, FZ_USER, "sql.table-kind", "'%s' is a %s", p.name, view ? "view" : "table");
        fz_hint(err, "write SHOW CREATE %s", view ? "VIEW" : "TABLE");
        return ses_fail_at(err, st->name.pos);
    }
    fz_buf b = {0};
    const char *head = view ? (temporary ? "CREATE TEMPORARY VIEW" : "CREATE VIEW") : temporary ? "CREATE TEMPORARY TABLE" : "CREATE TABLE";
    ses_definition_text(&b, head, &p, def, true);
    fz_status rc = s->out.text(s->out.cx, fz_buf_cstr(&b), err);
    fz_buf_free(&b);
    return rc;
}

fz_status ses_show_create_catalog(ses_session *s, const sql_stmt *st, fz_error *err) {
    ses_catalog *c;
    static const fz_pair memory = {.key = "type", .value = "generic_in_memory"};
    if (st->name.n > 1) {
        fz_fail(err, FZ_USER, "sql.name", "the name of a catalog has one part");
        return ses_fail_at(err, st->name.pos);
    }
    FZ_TRY(ses_need_catalog(s, st->name.part[0], st->name.pos, &c, err));
    size_t n = 1;
    const fz_pair *o = c->iceberg ? cat_given_options(c->iceberg, &n) : &memory;
    fz_buf b = {0};
    fz_buf_puts(&b, "CREATE CATALOG ");
    sql_quote_ident(&b, c->name);
    fz_buf_putc(&b, ' ');
    ses_options_text(&b, o, n, true);
    fz_status rc = s->out.text(s->out.cx, fz_buf_cstr(&b), err);
    fz_buf_free(&b);
    return rc;
}

/* ---- DESCRIBE ---- */

static const char *type_text(fz_arena *a, const col_type *t) {
    fz_buf b = {0};
    col_type_text(&b, col_with_null(a, t, true));
    const char *text = fz_arena_strdup(a, fz_buf_cstr(&b));
    fz_buf_free(&b);
    return text;
}

static const char *key_text(fz_arena *a, const sql_stmt *def, const char *column) {
    fz_buf b = {0};
    bool in = false;
    for (uint32_t i = 0; i < def->n_pk; i++) {
        fz_buf_printf(&b, "%s%s", i ? ", " : "PRI(", def->pk[i]);
        in |= strcmp(def->pk[i], column) == 0;
    }
    const char *text = in ? fz_arena_printf(a, "%s)", fz_buf_cstr(&b)) : NULL;
    fz_buf_free(&b);
    return text;
}

static const char *extras_text(fz_arena *a, const sql_column *c) {
    if (c->kind == SQL_COL_COMPUTED) return fz_arena_printf(a, "AS %s", c->expr_text);
    if (c->kind != SQL_COL_METADATA) return NULL;
    const char *tail = c->is_virtual ? " VIRTUAL" : "";
    if (strcmp(c->metadata_key, c->name) == 0) return fz_arena_printf(a, "METADATA%s", tail);
    return fz_arena_printf(a, "METADATA FROM '%s'%s", c->metadata_key, tail);
}

/* Columns of a view are those of its query. */
static fz_status view_columns(ses_session *s, sql_stmt *def, fz_error *err) {
    sql_plan *plan;
    sql_resolver r = ses_resolver(s);
    sql_settings settings = ses_sql_settings(s);
    FZ_TRY(sql_bind_query(s->arena, def->query, &r, &settings, NULL, &plan, err));
    def->n_columns = plan->schema->n;
    def->columns = FZ_ANEWN(s->arena, sql_column, def->n_columns);
    for (uint32_t i = 0; i < def->n_columns; i++)
        def->columns[i] = (sql_column){.name = i < def->n_view_cols ? def->view_cols[i] : plan->schema->fields[i].name, .kind = SQL_COL_PHYSICAL, .type = plan->schema->fields[i].type};
    return FZ_OK;
}

fz_status ses_describe(ses_session *s, const sql_stmt *st, fz_error *err) {
    static const char *const names[] = {"name", "type", "null", "key", "extras", "watermark", "comment"};
    sql_stmt *def;
    ses_path p = {0};
    bool temporary, comments = false;
    FZ_TRY(ses_definition(s, &st->name, &def, &p, &temporary, err));
    if (def->kind == SQL_S_CREATE_VIEW) FZ_TRY(view_columns(s, def, err));
    for (uint32_t i = 0; i < def->n_columns; i++) comments |= def->columns[i].comment != NULL;
    ses_listing l = {.arena = s->arena, .n_cols = comments ? 7 : 6, .names = names};
    for (uint32_t i = 0; i < def->n_columns; i++) {
        const sql_column *c = &def->columns[i];
        if (st->like_pattern && like(st->like_pattern, c->name, st->like_any_case) == st->like_negated) continue; /* SHOW COLUMNS */
        fz_buf quoted = {0};
        sql_name_text(&quoted, &(sql_name){.n = 1, .part = {c->name}});
        bool marked = def->watermark_column && strcmp(def->watermark_column, fz_buf_cstr(&quoted)) == 0;
        fz_buf_free(&quoted);
        const char *cells[7] = {c->name, type_text(s->arena, c->type), c->type->nullable ? "TRUE" : "FALSE", key_text(s->arena, def, c->name), extras_text(s->arena, c),
                                marked ? def->watermark_text : NULL, c->comment};
        ses_listing_add(&l, cells);
    }
    return ses_listing_send(s, &l, err);
}

/* ---- EXPLAIN ---- */

static fz_status explain_insert(ses_session *s, const sql_stmt *insert, fz_buf *b, fz_error *err) {
    sql_plan *plan;
    const sql_table *target;
    FZ_TRY(ses_bind_insert(s, insert, &plan, &target, err));
    FZ_TRY(ses_check_sources(plan, true, err));
    fz_buf_printf(b, "%sInsert into %s\n", b->len ? "\n" : "", target->path);
    sql_plan_text(b, plan);
    return FZ_OK;
}

static fz_status explain_into(ses_session *s, const sql_stmt *st, fz_buf *b, fz_error *err) {
    const sql_stmt *inner = st->stmts[0];
    if (inner->kind == SQL_S_INSERT) return explain_insert(s, inner, b, err);
    for (uint32_t i = 0; inner->kind == SQL_S_STATEMENT_SET && i < inner->n_stmts; i++) FZ_TRY(explain_insert(s, inner->stmts[i], b, err));
    if (inner->kind == SQL_S_STATEMENT_SET) return FZ_OK;
    sql_plan *plan;
    sql_resolver r = ses_resolver(s);
    sql_settings settings = ses_sql_settings(s);
    FZ_TRY(sql_bind_query(s->arena, inner->query, &r, &settings, NULL, &plan, err));
    FZ_TRY(ses_check_sources(plan, true, err));
    sql_plan_text(b, plan);
    return FZ_OK;
}

fz_status ses_explain(ses_session *s, const sql_stmt *st, fz_error *err) {
    fz_buf b = {0};
    fz_status rc = explain_into(s, st, &b, err);
    while (b.len && b.data[b.len - 1] == '\n') b.len--;
    if (rc == FZ_OK) rc = s->out.text(s->out.cx, fz_buf_cstr(&b), err);
    fz_buf_free(&b);
    return rc;
}
