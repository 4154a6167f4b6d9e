/* From a name to a table: temporary ones first, then what the catalog holds. Errors suggest names that are near. */
#include "session/session_int.h"

typedef struct nearest { fz_option *v; uint32_t n, cap; } nearest;

static void offer(nearest *l, const char *name) {
    FZ_GROW(l->v, l->n + 1, l->cap);
    l->v[l->n++] = (fz_option){.name = name};
    l->v[l->n] = (fz_option){0};
}

/* "did you mean": names of tables in the database that was asked. */
static void suggest(ses_session *s, const ses_path *p, fz_error *err) {
    nearest l = {0};
    for (uint32_t i = 0; i < s->n_tables; i++)
        if (strcmp(s->tables[i]->catalog, p->catalog) == 0 && strcmp(s->tables[i]->database, p->database) == 0) offer(&l, s->tables[i]->name);
    ses_catalog *c = ses_find_catalog(s, p->catalog);
    cat_names names = {0};
    fz_error ignored;
    if (c && c->iceberg && cat_list_tables(c->iceberg, cat_ident_of(c->iceberg, s->arena, p->database, NULL).ns, s->arena, &names, &ignored) == FZ_OK)
        for (uint32_t i = 0; i < names.n && i < 10000; i++) offer(&l, names.v[i]);
    const char *near = l.n ? fz_option_nearest(l.v, p->name) : NULL;
    if (near) fz_hint(err, "did you mean '%s'?", near);
    else fz_hint(err, "the current catalog and database are %s.%s; SHOW TABLES [IN catalog.database] lists what is there", s->catalog, s->database);
    fz_free(l.v);
}

static fz_status not_found(ses_session *s, const sql_name *n, const ses_path *p, fz_error *err) {
    fz_fail(err, FZ_USER, "sql.table-not-found", "there is no table '%s'", ses_path_text(s->arena, p));
    suggest(s, p, err);
    return ses_fail_at(err, n->pos);
}

static ses_table *held(ses_session *s, const ses_path *p) {
    ses_table *t = ses_find_table(s, p, true);
    return t ? t : ses_find_table(s, p, false);
}

/* *t or *ice is set. target: as in ses_iceberg_load. */
static fz_status find(ses_session *s, const sql_name *n, bool target, ses_path *p, ses_table **t, ses_iceberg **ice, fz_error *err) {
    ses_catalog *c;
    *ice = NULL;
    FZ_TRY(ses_path_of(s, n, p, err));
    if ((*t = held(s, p))) return FZ_OK;
    FZ_TRY(ses_need_catalog(s, p->catalog, n->pos, &c, err));
    if (!c->iceberg) {
        if (ses_dry_catalog(s, c)) return ses_dry_find(s, n, p, err);
        FZ_TRY(ses_need_database(s, p, n->pos, err));
        return not_found(s, n, p, err);
    }
    for (ses_iceberg *l = s->loaded; l; l = l->next) /* one statement sees one version of a table */
        if (l->catalog == c->iceberg && (target || !l->away) && strcmp(l->table.path, ses_path_text(s->arena, p)) == 0) return *ice = l, FZ_OK;
    fz_error e = {0};
    fz_status rc = ses_iceberg_load(s, c, p, target, ice, &e);
    if (rc == FZ_OK) return FZ_OK;
    if (strcmp(e.code, "catalog.namespace-not-found") == 0) return ses_need_database(s, p, n->pos, err) == FZ_OK ? not_found(s, n, p, err) : FZ_USER;
    if (strcmp(e.code, "catalog.table-not-found") == 0) {
        FZ_TRY(ses_need_database(s, p, n->pos, err));
        return not_found(s, n, p, err);
    }
    if (err) *err = e;
    ses_fail_at(err, n->pos);
    return rc;
}

static fz_status resolve_as(ses_session *s, const sql_name *n, bool target, const sql_table **out, fz_error *err) {
    ses_path p = {0};
    ses_table *t;
    ses_iceberg *ice;
    FZ_TRY(find(s, n, target, &p, &t, &ice, err));
    *out = t ? &t->table : &ice->table;
    return FZ_OK;
}
fz_status ses_resolve(ses_session *s, const sql_name *n, const sql_table **out, fz_error *err) { return resolve_as(s, n, false, out, err); }
fz_status ses_resolve_target(ses_session *s, const sql_name *n, const sql_table **out, fz_error *err) { return resolve_as(s, n, true, out, err); }

fz_status ses_definition(ses_session *s, const sql_name *n, sql_stmt **out, ses_path *path, bool *temporary, fz_error *err) {
    ses_table *t;
    ses_iceberg *ice;
    FZ_TRY(find(s, n, false, path, &t, &ice, err));
    *temporary = t && t->temporary;
    if (!t) return ses_iceberg_definition(s, ice, out, err);
    *out = FZ_ANEW(s->arena, sql_stmt);
    **out = *t->def;
    return FZ_OK;
}

/* A copy of the table with the hint's options over its own. */
static fz_status with_hint(ses_session *s, const sql_name *n, const sql_hint *hint, const sql_table **table, fz_error *err) {
    if ((*table)->kind != SQL_T_CONNECTOR) {
        fz_fail(err, FZ_USER, "sql.unsupported", "OPTIONS of %s is not supported: the hint takes tables of a connector", (*table)->path);
        return ses_fail_at(err, n->pos);
    }
    sql_table *copy = FZ_ANEW(s->arena, sql_table);
    *copy = **table;
    fz_pair *v = FZ_ANEWN(s->arena, fz_pair, copy->n_options + hint->n);
    uint32_t k = 0;
    for (uint32_t i = 0; i < copy->n_options; i++)
        if (!fz_pair_get(hint->options, hint->n, copy->options[i].key)) v[k++] = copy->options[i];
    for (size_t i = 0; i < hint->n; i++) v[k++] = hint->options[i];
    copy->options = v;
    copy->n_options = k;
    *table = copy;
    return FZ_OK;
}

static fz_status resolve(void *cx, const sql_name *name, const sql_hint *hint, const sql_table **out, fz_error *err) {
    FZ_TRY(ses_resolve(cx, name, out, err));
    return hint && hint->n ? with_hint(cx, name, hint, out, err) : FZ_OK;
}

sql_resolver ses_resolver(ses_session *s) { return (sql_resolver){s, resolve}; }

fz_status ses_open_table(ses_session *s, const char *name, cat_catalog **catalog, cat_table **out, fz_error *err) {
    s->arena = fz_arena_new();
    sql_piece piece = {fz_arena_printf(s->arena, "DESCRIBE %s", name), 0, {1, 1}};
    piece.len = strlen(piece.text);
    sql_stmt *st = NULL;
    ses_path p = {0};
    ses_table *t = NULL;
    ses_iceberg *ice = NULL;
    fz_status rc = sql_parse(s->arena, &piece, &st, err);
    if (rc == FZ_OK) rc = find(s, &st->name, false, &p, &t, &ice, err);
    if (rc == FZ_OK && !ice) rc = fz_fail(err, FZ_USER, "sql.table-kind", "'%s' is no Iceberg table", ses_path_text(s->arena, &p));
    if (rc == FZ_OK) {
        *catalog = ice->catalog;
        fz_arena *a = fz_arena_new(); /* the table outlives the statement: load it once more, with nothing of the statement's arena in it */
        cat_ident id = cat_ident_of(ice->catalog, a, p.database, p.name);
        rc = cat_load_table(ice->catalog, &id, out, err);
        fz_arena_free(a);
    }
    if (rc != FZ_OK && err) err->line = err->column = 0; /* there is no script */
    ses_iceberg_release(s);
    fz_arena_free(s->arena);
    s->arena = NULL;
    return rc;
}
