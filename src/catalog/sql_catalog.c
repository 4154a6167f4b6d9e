/* The SQL catalog: rows of iceberg_tables are the pointers. Shared with Java's JdbcCatalog and PyIceberg's SqlCatalog.
 *
 * A swap, in order:
 *     write metadata.json (durable) -> BEGIN IMMEDIATE -> UPDATE ... WHERE metadata_location = base -> COMMIT
 *     0 rows changed: CONFLICT.  COMMIT fails: what the table says afterwards decides; if it cannot be asked, UNKNOWN.
 *
 * Invariants
 *  1. A namespace exists if a row of either table names it or one below it (Java and PyIceberg agree on that).
 *  2. Rows of views (iceberg_type 'VIEW') are never read as tables and never touched.
 *  3. Levels of a namespace are joined by dots, as the other two do; so "a.b" and the levels a, b are the same.
 */
#include "catalog/sqlite_int.h"

#define WHERE_TABLE " WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?"
#define IS_TABLE " AND (iceberg_type = 'TABLE' OR iceberg_type IS NULL)"

typedef struct text_out { fz_arena *a; const char *s; } text_out;
static bool take_text(void *cx, sqlite3_stmt *row) {
    text_out *t = cx;
    const char *s = (const char *)sqlite3_column_text(row, 0);
    t->s = fz_arena_strdup(t->a, s ? s : "");
    return false;
}
static bool take_any(void *cx, sqlite3_stmt *row) {
    (void)row;
    *(bool *)cx = true;
    return false;
}
typedef struct names_out { fz_arena *a; cat_names *v; } names_out;
static bool take_name(void *cx, sqlite3_stmt *row) {
    names_out *o = cx;
    const char *s = (const char *)sqlite3_column_text(row, 0);
    if (s) cat_names_add(o->a, o->v, s);
    return true;
}

static fz_status sql_cat_open(cat_catalog *c, fz_error *err) {
    sql_db *d;
    FZ_TRY(sql_open(c, &d, err));
    c->impl = d;
    return FZ_OK;
}
static void sql_cat_close(cat_catalog *c) { sql_close(c->impl); }

/* ---- namespaces ---- */

static fz_status exists(cat_catalog *c, const char *ns, bool *out, fz_error *err) { /* lock held */
    *out = false;
    return sql_run(c->impl,
                   "SELECT 1 FROM iceberg_tables WHERE catalog_name = ?1 AND (table_namespace = ?2 OR substr(table_namespace, 1, length(?2) + 1) = ?2 || '.')"
                   " UNION ALL "
                   "SELECT 1 FROM iceberg_namespace_properties WHERE catalog_name = ?1 AND (namespace = ?2 OR substr(namespace, 1, length(?2) + 1) = ?2 || '.') LIMIT 1",
                   SQL_ARGS(c->catalog_name, ns), take_any, out, NULL, err);
}

static fz_status sql_namespace_exists(cat_catalog *c, cat_namespace ns, bool *out, fz_error *err) {
    sql_db *d = c->impl;
    fz_arena *a = fz_arena_new();
    pthread_mutex_lock(&d->lock);
    fz_status rc = exists(c, cat_namespace_text(a, ns), out, err);
    pthread_mutex_unlock(&d->lock);
    fz_arena_free(a);
    return rc;
}

static fz_status sql_list_namespaces(cat_catalog *c, cat_namespace parent, fz_arena *a, cat_names *out, fz_error *err) {
    sql_db *d = c->impl;
    cat_names all = {0};
    names_out o = {a, &all};
    pthread_mutex_lock(&d->lock);
    fz_status rc = sql_run(d, "SELECT table_namespace FROM iceberg_tables WHERE catalog_name = ?1 UNION SELECT namespace FROM iceberg_namespace_properties WHERE catalog_name = ?1",
                           SQL_ARGS(c->catalog_name), take_name, &o, NULL, err);
    pthread_mutex_unlock(&d->lock);
    FZ_TRY(rc);
    const char *prefix = parent.n ? fz_arena_printf(a, "%s.", cat_namespace_text(a, parent)) : "";
    for (uint32_t i = 0; i < all.n; i++) {
        if (!fz_starts(all.v[i], prefix)) continue;
        const char *rest = all.v[i] + strlen(prefix);
        cat_names_add(a, out, fz_arena_strndup(a, rest, strcspn(rest, ".")));
    }
    return FZ_OK;
}

static fz_status put_property(cat_catalog *c, const char *ns, const char *key, const char *value, fz_error *err) {
    return sql_run(c->impl,
                   "INSERT INTO iceberg_namespace_properties (catalog_name, namespace, property_key, property_value) VALUES (?, ?, ?, ?) "
                   "ON CONFLICT (catalog_name, namespace, property_key) DO UPDATE SET property_value = excluded.property_value",
                   SQL_ARGS(c->catalog_name, ns, key, value), NULL, NULL, NULL, err);
}

/* A short transaction that may be made again: an unknown end becomes RETRY, since doing it twice does no harm. */
static fz_status end_repeatable(sql_db *d, fz_status rc, fz_error *err) {
    if (rc != FZ_OK) {
        sql_rollback(d);
        return rc;
    }
    rc = sql_commit(d, err);
    if (rc == FZ_UNKNOWN) err->cls = FZ_RETRY;
    return rc == FZ_UNKNOWN ? FZ_RETRY : rc;
}

static fz_status sql_create_namespace(cat_catalog *c, cat_namespace ns, const fz_pair *props, size_t n, fz_error *err) {
    sql_db *d = c->impl;
    fz_arena *a = fz_arena_new();
    const char *name = cat_namespace_text(a, ns);
    bool there;
    pthread_mutex_lock(&d->lock);
    fz_status rc = sql_begin(d, err);
    if (rc == FZ_OK) {
        rc = exists(c, name, &there, err);
        if (rc == FZ_OK && there) rc = fz_fail(err, FZ_USER, "catalog.namespace-exists", "the database '%s' exists already in catalog '%s'", name, c->name);
        if (rc == FZ_OK) rc = put_property(c, name, "exists", "true", err); /* as Java and PyIceberg mark an empty namespace */
        for (size_t i = 0; i < n && rc == FZ_OK; i++) rc = put_property(c, name, props[i].key, props[i].value, err);
        rc = end_repeatable(d, rc, err);
    }
    pthread_mutex_unlock(&d->lock);
    fz_arena_free(a);
    return rc;
}

static fz_status sql_set_properties(cat_catalog *c, cat_namespace ns, const fz_pair *props, size_t n, fz_error *err) {
    sql_db *d = c->impl;
    fz_arena *a = fz_arena_new();
    const char *name = cat_namespace_text(a, ns);
    pthread_mutex_lock(&d->lock);
    fz_status rc = sql_begin(d, err);
    if (rc == FZ_OK) {
        for (size_t i = 0; i < n && rc == FZ_OK; i++) rc = put_property(c, name, props[i].key, props[i].value, err);
        rc = end_repeatable(d, rc, err);
    }
    pthread_mutex_unlock(&d->lock);
    fz_arena_free(a);
    return rc;
}

typedef struct pairs_out { fz_arena *a; fz_pair *v; size_t n; } pairs_out;
static bool take_pair(void *cx, sqlite3_stmt *row) {
    pairs_out *o = cx;
    const char *k = (const char *)sqlite3_column_text(row, 0), *v = (const char *)sqlite3_column_text(row, 1);
    if (!k || strcmp(k, "exists") == 0) return true;
    o->v = fz_arena_realloc(o->a, o->v, o->n * sizeof *o->v, (o->n + 1) * sizeof *o->v);
    o->v[o->n++] = (fz_pair){.key = fz_arena_strdup(o->a, k), .value = fz_arena_strdup(o->a, v ? v : "")};
    return true;
}

static fz_status sql_get_properties(cat_catalog *c, cat_namespace ns, fz_arena *a, fz_pair **out, size_t *n, fz_error *err) {
    sql_db *d = c->impl;
    pairs_out o = {.a = a};
    pthread_mutex_lock(&d->lock);
    fz_status rc = sql_run(d, "SELECT property_key, property_value FROM iceberg_namespace_properties WHERE catalog_name = ? AND namespace = ? ORDER BY property_key",
                           SQL_ARGS(c->catalog_name, cat_namespace_text(a, ns)), take_pair, &o, NULL, err);
    pthread_mutex_unlock(&d->lock);
    *out = o.v;
    *n = o.n;
    return rc;
}

static fz_status sql_drop_namespace(cat_catalog *c, cat_namespace ns, fz_error *err) {
    sql_db *d = c->impl;
    fz_arena *a = fz_arena_new();
    const char *name = cat_namespace_text(a, ns);
    bool full = false;
    pthread_mutex_lock(&d->lock);
    fz_status rc = sql_begin(d, err);
    if (rc == FZ_OK) {
        rc = sql_run(d,
                     "SELECT 1 FROM iceberg_tables WHERE catalog_name = ?1 AND (table_namespace = ?2 OR substr(table_namespace, 1, length(?2) + 1) = ?2 || '.')"
                     " UNION ALL "
                     "SELECT 1 FROM iceberg_namespace_properties WHERE catalog_name = ?1 AND substr(namespace, 1, length(?2) + 1) = ?2 || '.' LIMIT 1",
                     SQL_ARGS(c->catalog_name, name), take_any, &full, NULL, err);
        if (rc == FZ_OK && full) rc = fz_fail(err, FZ_USER, "catalog.namespace-not-empty", "the database '%s' of catalog '%s' is not empty", name, c->name);
        if (rc == FZ_OK)
            rc = sql_run(d, "DELETE FROM iceberg_namespace_properties WHERE catalog_name = ? AND namespace = ?", SQL_ARGS(c->catalog_name, name), NULL, NULL, NULL, err);
        rc = end_repeatable(d, rc, err);
    }
    pthread_mutex_unlock(&d->lock);
    fz_arena_free(a);
    return rc;
}

/* ---- tables ---- */

static fz_status sql_list_tables(cat_catalog *c, cat_namespace ns, fz_arena *a, cat_names *out, fz_error *err) {
    sql_db *d = c->impl;
    names_out o = {a, out};
    pthread_mutex_lock(&d->lock);
    fz_status rc = sql_run(d, d->has_type ? "SELECT table_name FROM iceberg_tables WHERE catalog_name = ? AND table_namespace = ?" IS_TABLE
                                          : "SELECT table_name FROM iceberg_tables WHERE catalog_name = ? AND table_namespace = ?",
                           SQL_ARGS(c->catalog_name, cat_namespace_text(a, ns)), take_name, &o, NULL, err);
    pthread_mutex_unlock(&d->lock);
    return rc;
}

static fz_status find(cat_catalog *c, const cat_ident *id, fz_arena *a, const char **location, fz_error *err) { /* lock held */
    sql_db *d = c->impl;
    text_out t = {.a = a};
    FZ_TRY(sql_run(d, d->has_type ? "SELECT metadata_location FROM iceberg_tables" WHERE_TABLE IS_TABLE : "SELECT metadata_location FROM iceberg_tables" WHERE_TABLE,
                   SQL_ARGS(c->catalog_name, cat_namespace_text(a, id->ns), id->name), take_text, &t, NULL, err));
    if (t.s && !*t.s)
        return fz_fail(err, FZ_FATAL, "catalog.damaged", "the row of table '%s' in catalog '%s' has no metadata_location", cat_ident_text(a, id), c->name);
    *location = t.s;
    return FZ_OK;
}

static fz_status sql_find(cat_catalog *c, const cat_ident *id, fz_arena *a, const char **location, fz_error *err) {
    sql_db *d = c->impl;
    pthread_mutex_lock(&d->lock);
    fz_status rc = find(c, id, a, location, err);
    pthread_mutex_unlock(&d->lock);
    return rc;
}

static fz_status update_row(cat_catalog *c, const cat_ident *id, const char *from, const char *to, fz_arena *a, fz_error *err) {
    sql_db *d = c->impl;
    int changed;
    FZ_TRY(sql_run(d, d->has_type ? "UPDATE iceberg_tables SET metadata_location = ?4, previous_metadata_location = ?5"
                                    " WHERE catalog_name = ?1 AND table_namespace = ?2 AND table_name = ?3 AND metadata_location = ?5" IS_TABLE
                                  : "UPDATE iceberg_tables SET metadata_location = ?4, previous_metadata_location = ?5"
                                    " WHERE catalog_name = ?1 AND table_namespace = ?2 AND table_name = ?3 AND metadata_location = ?5",
                   SQL_ARGS(c->catalog_name, cat_namespace_text(a, id->ns), id->name, to, from), NULL, NULL, &changed, err));
    if (changed == 1) return FZ_OK;
    const char *now;
    FZ_TRY(find(c, id, a, &now, err));
    if (!now) return fz_fail(err, FZ_USER, "catalog.table-not-found", "the table '%s' was dropped from catalog '%s'", cat_ident_text(a, id), c->name);
    fz_fail(err, FZ_CONFLICT, "catalog.conflict", "the table '%s' has moved on since it was loaded", cat_ident_text(a, id));
    return fz_detail(err, "built on '%s', the catalog has '%s'", from, now);
}

static fz_status insert_row(cat_catalog *c, const cat_ident *id, const char *to, fz_arena *a, fz_error *err) {
    sql_db *d = c->impl;
    bool there = false;
    const char *ns = cat_namespace_text(a, id->ns);
    FZ_TRY(exists(c, ns, &there, err));
    if (!there) return fz_fail(err, FZ_USER, "catalog.namespace-not-found", "the database '%s' does not exist in catalog '%s'", ns, c->name);
    there = false;
    FZ_TRY(sql_run(d, "SELECT 1 FROM iceberg_tables" WHERE_TABLE, SQL_ARGS(c->catalog_name, ns, id->name), take_any, &there, NULL, err));
    if (there) return fz_fail(err, FZ_USER, "catalog.table-exists", "the table '%s' (or a view of that name) exists already in catalog '%s'", cat_ident_text(a, id), c->name);
    return sql_run(d, d->has_type ? "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, previous_metadata_location, iceberg_type) VALUES (?, ?, ?, ?, NULL, 'TABLE')"
                                  : "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, previous_metadata_location) VALUES (?, ?, ?, ?, NULL)",
                   SQL_ARGS(c->catalog_name, ns, id->name, to), NULL, NULL, NULL, err);
}

/* COMMIT has failed in a way that leaves open what is on disk. Our transaction is over, so that what the table says now is what
 * has become of it. */
static fz_status read_back(cat_catalog *c, const cat_ident *id, const char *from, const char *to, fz_arena *a, fz_error *err) {
    fz_error why = *err, own;
    const char *now = NULL;
    ice_metadata *m = NULL;
    bool ours = false, from_too = false;
    if (find(c, id, a, &now, &own) != FZ_OK) goto unknown;
    if (!now || (from && strcmp(now, from) == 0)) {
        *err = why;
        err->cls = FZ_RETRY;
        return FZ_RETRY;
    }
    if (strcmp(now, to) == 0) return FZ_OK;
    /* Somebody has committed since: on top of ours, or instead of it. The metadata log tells, as long as it reaches back. */
    if (cat_metadata_read(c->io, now, &m, &own) != FZ_OK) goto unknown;
    for (uint32_t i = 0; i < m->n_metadata_log; i++) {
        ours |= strcmp(m->metadata_log[i].location, to) == 0;
        from_too |= from && strcmp(m->metadata_log[i].location, from) == 0;
    }
    ice_metadata_free(m);
    if (ours) return FZ_OK;
    if (from_too) return fz_fail(err, FZ_CONFLICT, "catalog.conflict", "the table '%s' has moved on since it was loaded", cat_ident_text(a, id));
unknown:
    fz_fail(err, FZ_UNKNOWN, "catalog.commit-unknown", "the catalog did not confirm the commit of '%s', and what it says does not decide it", cat_ident_text(a, id));
    return fz_detail(err, "%s", why.message);
}

static fz_status move_pointer(cat_catalog *c, const cat_ident *id, const char *from, const char *to, fz_arena *a, fz_error *err) {
    sql_db *d = c->impl;
    pthread_mutex_lock(&d->lock);
    fz_status rc = sql_begin(d, err);
    if (rc == FZ_OK) {
        rc = from ? update_row(c, id, from, to, a, err) : insert_row(c, id, to, a, err);
        if (rc != FZ_OK) sql_rollback(d);
        else if ((rc = sql_commit(d, err)) == FZ_UNKNOWN) rc = read_back(c, id, from, to, a, err);
    }
    pthread_mutex_unlock(&d->lock);
    return rc;
}

static fz_status sql_swap(cat_catalog *c, const cat_ident *id, const cat_table *base, const ice_metadata *m, fz_arena *a, const char **location, fz_error *err) {
    char uuid[37];
    fz_uuid4(uuid);
    int32_t version = base && base->version >= 0 ? (int32_t)base->version + 1 : 0;
    *location = ice_metadata_location(a, m, version, uuid);
    fz_status rc = cat_metadata_write(c->io, *location, m, err);
    if (rc == FZ_UNKNOWN) { /* only whether a file that nothing names would survive a crash */
        cat_delete_quietly(c->io, *location);
        rc = FZ_RETRY;
        err->cls = rc;
    }
    if (rc != FZ_OK) return rc;
    if (base) rc = fz_fault_status("commit.metadata", err);
    if (rc == FZ_OK && base) rc = fz_fault_status("commit.swap", err);
    if (rc == FZ_OK) rc = move_pointer(c, id, base ? base->metadata_location : NULL, *location, a, err);
    if (rc != FZ_OK && rc != FZ_UNKNOWN) cat_delete_quietly(c->io, *location);
    return rc;
}

static fz_status sql_drop_table(cat_catalog *c, const cat_ident *id, bool purge, fz_error *err) {
    (void)purge;
    sql_db *d = c->impl;
    fz_arena *a = fz_arena_new();
    int changed = 0;
    pthread_mutex_lock(&d->lock);
    fz_status rc = sql_begin(d, err);
    if (rc == FZ_OK) {
        rc = sql_run(d, d->has_type ? "DELETE FROM iceberg_tables" WHERE_TABLE IS_TABLE : "DELETE FROM iceberg_tables" WHERE_TABLE,
                     SQL_ARGS(c->catalog_name, cat_namespace_text(a, id->ns), id->name), NULL, NULL, &changed, err);
        if (rc == FZ_OK && changed == 0)
            rc = fz_fail(err, FZ_USER, "catalog.table-not-found", "the table '%s' does not exist in catalog '%s'", cat_ident_text(a, id), c->name);
        rc = end_repeatable(d, rc, err);
    }
    pthread_mutex_unlock(&d->lock);
    fz_arena_free(a);
    return rc;
}

const cat_ops cat_sql_ops = {
    .type = "sql", .open = sql_cat_open, .close = sql_cat_close, .list_namespaces = sql_list_namespaces, .namespace_exists = sql_namespace_exists,
    .create_namespace = sql_create_namespace, .drop_namespace = sql_drop_namespace, .get_properties = sql_get_properties, .set_properties = sql_set_properties,
    .list_tables = sql_list_tables, .find = sql_find, .swap = sql_swap, .drop_table = sql_drop_table,
};
