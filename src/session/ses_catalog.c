/* Catalogs and databases: finding them, making, using and dropping them; names made whole. */
#include "session/session_int.h"

fz_status ses_path_of(ses_session *s, const sql_name *n, ses_path *out, fz_error *err) {
    if (n->n > 3) {
        fz_fail(err, FZ_USER, "sql.name", "a table's name has at most three parts: catalog.database.table");
        return ses_fail_at(err, n->pos);
    }
    out->name = n->part[n->n - 1];
    out->database = n->n > 1 ? n->part[n->n - 2] : s->database;
    out->catalog = n->n > 2 ? n->part[0] : s->catalog;
    return FZ_OK;
}

fz_status ses_database_of(ses_session *s, const sql_name *n, ses_path *out, fz_error *err) {
    if (n->n > 2) {
        fz_fail(err, FZ_USER, "sql.name", "a database's name has at most two parts: catalog.database");
        return ses_fail_at(err, n->pos);
    }
    out->name = NULL;
    out->database = n->n ? n->part[n->n - 1] : s->database;
    out->catalog = n->n > 1 ? n->part[0] : s->catalog;
    return FZ_OK;
}

const char *ses_path_text(fz_arena *a, const ses_path *p) {
    return p->name ? fz_arena_printf(a, "%s.%s.%s", p->catalog, p->database, p->name) : fz_arena_printf(a, "%s.%s", p->catalog, p->database);
}

ses_catalog *ses_find_catalog(ses_session *s, const char *name) {
    for (uint32_t i = 0; i < s->n_catalogs; i++)
        if (strcmp(s->catalogs[i]->name, name) == 0) return s->catalogs[i];
    return NULL;
}

fz_status ses_need_catalog(ses_session *s, const char *name, sql_pos pos, ses_catalog **out, fz_error *err) {
    *out = ses_find_catalog(s, name);
    if (*out) return FZ_OK;
    if (ses_is_federated(name)) {
        fz_status rc = ses_open_federated(s, name, out, err);
        return rc == FZ_OK ? rc : ses_fail_at(err, pos);
    }
    fz_fail(err, FZ_USER, "sql.catalog-not-found", "there is no catalog '%s'", name);
    fz_buf b = {0};
    for (uint32_t i = 0; i < s->n_catalogs && i < 8; i++) fz_buf_printf(&b, "%s%s", i ? ", " : "", s->catalogs[i]->name);
    fz_hint(err, "known are: %s", fz_buf_cstr(&b));
    fz_buf_free(&b);
    return ses_fail_at(err, pos);
}

static bool memory_database(const ses_catalog *c, const char *name) {
    for (uint32_t i = 0; i < c->n_databases; i++)
        if (strcmp(c->databases[i], name) == 0) return true;
    return false;
}

static fz_status database_exists(ses_session *s, ses_catalog *c, const char *name, bool *out, fz_error *err) {
    if (!c->iceberg) return *out = memory_database(c, name), FZ_OK;
    const cat_ident id = cat_ident_of(c->iceberg, s->arena, name, NULL);
    if (c->away && ses_remembers(s, c->iceberg, &id)) return *out = true, FZ_OK;
    ses_ask(s, c->iceberg, &id);
    fz_status rc = cat_namespace_exists(c->iceberg, id.ns, out, err);
    return ses_stand_in(s, c, &id, rc, err) ? *out = true, FZ_OK : rc;
}

fz_status ses_need_database(ses_session *s, const ses_path *p, sql_pos pos, fz_error *err) {
    ses_catalog *c;
    bool there = false;
    FZ_TRY(ses_need_catalog(s, p->catalog, pos, &c, err));
    FZ_TRY(database_exists(s, c, p->database, &there, err));
    if (there) return FZ_OK;
    fz_fail(err, FZ_USER, "sql.database-not-found", "there is no database '%s' in catalog '%s'", p->database, p->catalog);
    return ses_fail_at(err, pos);
}

ses_catalog *ses_add_catalog(ses_session *s, const char *name, cat_catalog *iceberg, const char *default_database) {
    ses_catalog *c = FZ_NEW(ses_catalog);
    c->name = fz_strdup(name);
    c->iceberg = iceberg;
    c->default_database = fz_strdup(default_database);
    FZ_GROW(s->catalogs, s->n_catalogs, s->cap_catalogs);
    s->catalogs[s->n_catalogs++] = c;
    return c;
}

void ses_catalog_free(ses_catalog *c) {
    for (uint32_t i = 0; i < c->n_databases; i++) fz_free(c->databases[i]);
    fz_free(c->databases);
    cat_close(c->iceberg);
    fz_free(c->default_database);
    fz_free(c->name);
    fz_free(c);
}

static void set_current(ses_session *s, const char *catalog, const char *database) {
    char *c = fz_strdup(catalog), *d = fz_strdup(database); /* the arguments may be what is freed */
    fz_free(s->catalog);
    fz_free(s->database);
    s->catalog = c;
    s->database = d;
}

static void warn_ignored(const ses_catalog *c) {
    const cat_names *names = cat_ignored_options(c->iceberg);
    fz_buf b = {0};
    for (uint32_t i = 0; i < names->n; i++) fz_buf_printf(&b, "%s%s", i ? ", " : "", names->v[i]);
    if (names->n) fz_log(FZ_LOG_WARN, "catalog.options-without-meaning", FZ_KV("catalog", "%s", c->name), FZ_KV("options", "%s", fz_buf_cstr(&b)), NULL);
    fz_buf_free(&b);
}

static fz_status one_part(const sql_name *n, const char *what, fz_error *err) {
    if (n->n == 1) return FZ_OK;
    fz_fail(err, FZ_USER, "sql.name", "the name of a %s has one part", what);
    return ses_fail_at(err, n->pos);
}

static fz_status create_catalog(ses_session *s, const sql_stmt *st, fz_error *err) {
    const char *name = st->name.part[0], *type = fz_pair_get(st->options, st->n_options, "type");
    FZ_TRY(one_part(&st->name, "catalog", err));
    if (ses_find_catalog(s, name)) {
        if (st->if_not_exists) return FZ_OK;
        fz_fail(err, FZ_USER, "sql.catalog-exists", "a catalog '%s' exists already", name);
        return ses_fail_at(err, st->name.pos);
    }
    if (type && strcmp(type, "generic_in_memory") == 0) {
        const char *db = fz_pair_get(st->options, st->n_options, "default-database");
        ses_catalog *c = ses_add_catalog(s, name, NULL, db ? db : "default");
        FZ_GROW(c->databases, c->n_databases, c->cap_databases);
        c->databases[c->n_databases++] = fz_strdup(c->default_database);
        return FZ_OK;
    }
    cat_catalog *cat;
    FZ_TRY(cat_open_later(name, st->options, st->n_options, NULL, &cat, err));
    ses_ask(s, cat, NULL);
    fz_status rc = cat_reach(cat, err);
    ses_catalog *c = ses_add_catalog(s, name, cat, cat_default_database(cat));
    if (ses_stand_in(s, c, NULL, rc, err)) rc = FZ_OK;
    if (rc == FZ_OK) return warn_ignored(c), FZ_OK;
    s->n_catalogs--;
    ses_catalog_free(c);
    return rc;
}

static fz_status drop_catalog(ses_session *s, const sql_stmt *st, fz_error *err) {
    FZ_TRY(one_part(&st->name, "catalog", err));
    ses_catalog *c = ses_find_catalog(s, st->name.part[0]);
    if (!c && st->if_exists) return FZ_OK;
    FZ_TRY(ses_need_catalog(s, st->name.part[0], st->name.pos, &c, err));
    if (strcmp(c->name, s->catalog) == 0) {
        fz_fail(err, FZ_USER, "sql.catalog-in-use", "catalog '%s' is the current one", c->name);
        fz_hint(err, "USE CATALOG another one first");
        return ses_fail_at(err, st->name.pos);
    }
    for (uint32_t i = s->n_tables; i-- > 0;)
        if (!s->tables[i]->temporary && strcmp(s->tables[i]->catalog, c->name) == 0) ses_remove_table(s, s->tables[i]);
    uint32_t i = 0;
    while (s->catalogs[i] != c) i++;
    memmove(&s->catalogs[i], &s->catalogs[i + 1], (s->n_catalogs - i - 1) * sizeof *s->catalogs);
    s->n_catalogs--;
    ses_catalog_free(c);
    return FZ_OK;
}

static fz_status create_database(ses_session *s, const sql_stmt *st, fz_error *err) {
    ses_path p = {0};
    ses_catalog *c;
    bool there = false;
    FZ_TRY(ses_database_of(s, &st->name, &p, err));
    FZ_TRY(ses_need_catalog(s, p.catalog, st->name.pos, &c, err));
    FZ_TRY(database_exists(s, c, p.database, &there, err));
    if (there) {
        if (st->if_not_exists) return FZ_OK;
        fz_fail(err, FZ_USER, "sql.database-exists", "a database '%s' exists already in catalog '%s'", p.database, p.catalog);
        return ses_fail_at(err, st->name.pos);
    }
    if (!c->iceberg) {
        FZ_GROW(c->databases, c->n_databases, c->cap_databases);
        c->databases[c->n_databases++] = fz_strdup(p.database);
        return FZ_OK;
    }
    fz_pair *props = FZ_ANEWN(s->arena, fz_pair, st->n_options + 1);
    uint32_t n = 0;
    for (; n < st->n_options; n++) props[n] = st->options[n];
    if (st->comment) props[n++] = (fz_pair){.key = "comment", .value = st->comment};
    fz_status rc = cat_create_namespace(c->iceberg, cat_ident_of(c->iceberg, s->arena, p.database, NULL).ns, props, n, err);
    return rc != FZ_OK && st->if_not_exists && err && strcmp(err->code, "catalog.namespace-exists") == 0 ? FZ_OK : rc;
}

static fz_status drop_database(ses_session *s, const sql_stmt *st, fz_error *err) {
    ses_path p = {0};
    ses_catalog *c;
    bool there = false, empty = true;
    FZ_TRY(ses_database_of(s, &st->name, &p, err));
    FZ_TRY(ses_need_catalog(s, p.catalog, st->name.pos, &c, err));
    FZ_TRY(database_exists(s, c, p.database, &there, err));
    if (!there) return st->if_exists ? FZ_OK : ses_need_database(s, &p, st->name.pos, err);
    if (strcmp(p.catalog, s->catalog) == 0 && strcmp(p.database, s->database) == 0) {
        fz_fail(err, FZ_USER, "sql.database-in-use", "database '%s' is the current one", p.database);
        fz_hint(err, "USE another one first");
        return ses_fail_at(err, st->name.pos);
    }
    if (c->iceberg) return cat_drop_namespace(c->iceberg, cat_ident_of(c->iceberg, s->arena, p.database, NULL).ns, err);
    for (uint32_t i = s->n_tables; i-- > 0;) {
        ses_table *t = s->tables[i];
        if (t->temporary || strcmp(t->catalog, p.catalog) != 0 || strcmp(t->database, p.database) != 0) continue;
        if (st->cascade) ses_remove_table(s, t);
        else empty = false;
    }
    if (!empty) {
        fz_fail(err, FZ_USER, "sql.database-not-empty", "database '%s' is not empty", p.database);
        fz_hint(err, "DROP DATABASE %s CASCADE drops its tables too", p.database);
        return ses_fail_at(err, st->name.pos);
    }
    for (uint32_t i = 0; i < c->n_databases; i++)
        if (strcmp(c->databases[i], p.database) == 0) {
            fz_free(c->databases[i]);
            c->databases[i] = c->databases[--c->n_databases];
            break;
        }
    return FZ_OK;
}

fz_status ses_catalog_statement(ses_session *s, const sql_stmt *st, fz_error *err) {
    ses_catalog *c;
    ses_path p = {0};
    switch (st->kind) {
    case SQL_S_CREATE_CATALOG: return create_catalog(s, st, err);
    case SQL_S_DROP_CATALOG: return drop_catalog(s, st, err);
    case SQL_S_CREATE_DATABASE: return create_database(s, st, err);
    case SQL_S_DROP_DATABASE: return drop_database(s, st, err);
    case SQL_S_USE_CATALOG:
        FZ_TRY(one_part(&st->name, "catalog", err));
        FZ_TRY(ses_need_catalog(s, st->name.part[0], st->name.pos, &c, err));
        set_current(s, c->name, c->default_database);
        return FZ_OK;
    default:
        FZ_TRY(ses_database_of(s, &st->name, &p, err));
        FZ_TRY(ses_need_database(s, &p, st->name.pos, err));
        set_current(s, p.catalog, p.database);
        return FZ_OK;
    }
}
