/* The SQL catalog: rows of iceberg_tables are the pointers. Shared with Java's JdbcCatalog and PyIceberg's SqlCatalog, on SQLite and
 * on PostgreSQL (sql_int.h). How a pointer moves is in sql_pointer.c.
 *
 * Invariants
 *  1. A namespace exists if a row of either table names it or one below it (Java and PyIceberg agree on that).
 *  2. Rows of views (iceberg_type 'VIEW') are never read as tables and never touched.
 *  3. Levels of a namespace are joined by dots, as the other two do; so "a.b" and the levels a, b are the same.
 */
#include "catalog/sql_int.h"

static bool take_any(void *cx, const char *const *column) {
    (void)column;
    *(bool *)cx = true;
    return false;
}
typedef struct names_out { fz_arena *a; cat_names *v; } names_out;
static bool take_name(void *cx, const char *const *column) {
    names_out *o = cx;
    if (column[0]) cat_names_add(o->a, o->v, column[0]);
    return true;
}

static fz_status sql_cat_open(cat_catalog *c, fz_error *err) {
    sql_db *d;
    return sql_open(c, &d, err);
}
static void sql_cat_close(cat_catalog *c) { sql_close(c->impl); }

/* A transaction that may be made again: an unknown end becomes RETRY, since doing it twice does no harm. Takes the lock. */
static fz_status repeatable(cat_catalog *c, sql_body body, void *cx, fz_error *err) {
    sql_db *d = c->impl;
    pthread_mutex_lock(&d->lock);
    fz_status rc = sql_transact(c, body, cx, err);
    pthread_mutex_unlock(&d->lock);
    if (rc == FZ_UNKNOWN) err->cls = FZ_RETRY;
    return rc == FZ_UNKNOWN ? FZ_RETRY : rc;
}

/* ---- namespaces ---- */

fz_status sql_has_namespace(cat_catalog *c, const char *ns, bool *out, fz_error *err) {
    *out = false;
    return sql_run(c->impl,
                   "SELECT 1 FROM iceberg_tables WHERE catalog_name = $1 AND (table_namespace = $2 OR substr(table_namespace, 1, length($2) + 1) = $2 || '.')"
                   " UNION ALL "
                   "SELECT 1 FROM iceberg_namespace_properties WHERE catalog_name = $1 AND (namespace = $2 OR substr(namespace, 1, length($2) + 1) = $2 || '.') LIMIT 1",
                   SQL_ARGS(c->catalog_name, ns), take_any, out, NULL, err);
}

static fz_status sql_namespace_exists(cat_catalog *c, cat_namespace ns, bool *out, fz_error *err) {
    sql_db *d = c->impl;
    fz_arena *a = fz_arena_new();
    pthread_mutex_lock(&d->lock);
    fz_status rc = sql_has_namespace(c, cat_namespace_text(a, ns), out, err);
    pthread_mutex_unlock(&d->lock);
    fz_arena_free(a);
    return rc;
}

static fz_status sql_list_namespaces(cat_catalog *c, cat_namespace parent, fz_arena *a, cat_names *out, fz_error *err) {
    sql_db *d = c->impl;
    cat_names all = {0};
    names_out o = {a, &all};
    pthread_mutex_lock(&d->lock);
    fz_status rc = sql_run(d, "SELECT table_namespace FROM iceberg_tables WHERE catalog_name = $1 UNION SELECT namespace FROM iceberg_namespace_properties WHERE catalog_name = $1",
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

typedef struct ns_change { const char *ns; const fz_pair *props; size_t n; } ns_change;

static fz_status put_properties(cat_catalog *c, void *cx, fz_error *err) {
    const ns_change *ch = cx;
    for (size_t i = 0; i < ch->n; i++)
        FZ_TRY(sql_run(c->impl,
                       "INSERT INTO iceberg_namespace_properties (catalog_name, namespace, property_key, property_value) VALUES ($1, $2, $3, $4) "
                       "ON CONFLICT (catalog_name, namespace, property_key) DO UPDATE SET property_value = excluded.property_value",
                       SQL_ARGS(c->catalog_name, ch->ns, ch->props[i].key, ch->props[i].value), NULL, NULL, NULL, err));
    return FZ_OK;
}

static fz_status create_namespace(cat_catalog *c, void *cx, fz_error *err) {
    const ns_change *ch = cx;
    bool there;
    int made = 0;
    FZ_TRY(sql_has_namespace(c, ch->ns, &there, err));
    /* As Java and PyIceberg mark an empty namespace. Of two that make it at once the second waits here for the first. */
    if (!there)
        FZ_TRY(sql_run(c->impl,
                       "INSERT INTO iceberg_namespace_properties (catalog_name, namespace, property_key, property_value) VALUES ($1, $2, 'exists', 'true') ON CONFLICT DO NOTHING",
                       SQL_ARGS(c->catalog_name, ch->ns), NULL, NULL, &made, err));
    if (!made) return fz_fail(err, FZ_USER, "catalog.namespace-exists", "the database '%s' exists already in catalog '%s'", ch->ns, c->name);
    return put_properties(c, cx, err);
}

static fz_status change_namespace(cat_catalog *c, sql_body body, cat_namespace ns, const fz_pair *props, size_t n, fz_error *err) {
    fz_arena *a = fz_arena_new();
    ns_change ch = {cat_namespace_text(a, ns), props, n};
    fz_status rc = repeatable(c, body, &ch, err);
    fz_arena_free(a);
    return rc;
}
static fz_status sql_create_namespace(cat_catalog *c, cat_namespace ns, const fz_pair *props, size_t n, fz_error *err) { return change_namespace(c, create_namespace, ns, props, n, err); }
static fz_status sql_set_properties(cat_catalog *c, cat_namespace ns, const fz_pair *props, size_t n, fz_error *err) { return change_namespace(c, put_properties, ns, props, n, err); }

typedef struct pairs_out { fz_arena *a; fz_pair *v; size_t n; } pairs_out;
static bool take_pair(void *cx, const char *const *column) {
    pairs_out *o = cx;
    const char *k = column[0], *v = column[1];
    if (!k || strcmp(k, "exists") == 0) return true;
    o->v = fz_arena_realloc(o->a, o->v, o->n * sizeof *o->v, (o->n + 1) * sizeof *o->v);
    o->v[o->n++] = (fz_pair){.key = fz_arena_strdup(o->a, k), .value = fz_arena_strdup(o->a, v ? v : "")};
    return true;
}

static fz_status sql_get_properties(cat_catalog *c, cat_namespace ns, fz_arena *a, fz_pair **out, size_t *n, fz_error *err) {
    sql_db *d = c->impl;
    pairs_out o = {.a = a};
    pthread_mutex_lock(&d->lock);
    fz_status rc = sql_run(d, "SELECT property_key, property_value FROM iceberg_namespace_properties WHERE catalog_name = $1 AND namespace = $2 ORDER BY property_key",
                           SQL_ARGS(c->catalog_name, cat_namespace_text(a, ns)), take_pair, &o, NULL, err);
    pthread_mutex_unlock(&d->lock);
    *out = o.v;
    *n = o.n;
    return rc;
}

static fz_status drop_namespace(cat_catalog *c, void *cx, fz_error *err) {
    const ns_change *ch = cx;
    bool full = false;
    FZ_TRY(sql_run(c->impl,
                   "SELECT 1 FROM iceberg_tables WHERE catalog_name = $1 AND (table_namespace = $2 OR substr(table_namespace, 1, length($2) + 1) = $2 || '.')"
                   " UNION ALL "
                   "SELECT 1 FROM iceberg_namespace_properties WHERE catalog_name = $1 AND substr(namespace, 1, length($2) + 1) = $2 || '.' LIMIT 1",
                   SQL_ARGS(c->catalog_name, ch->ns), take_any, &full, NULL, err));
    if (full) return fz_fail(err, FZ_USER, "catalog.namespace-not-empty", "the database '%s' of catalog '%s' is not empty", ch->ns, c->name);
    return sql_run(c->impl, "DELETE FROM iceberg_namespace_properties WHERE catalog_name = $1 AND namespace = $2", SQL_ARGS(c->catalog_name, ch->ns), NULL, NULL, NULL, err);
}
static fz_status sql_drop_namespace(cat_catalog *c, cat_namespace ns, fz_error *err) { return change_namespace(c, drop_namespace, ns, NULL, 0, err); }

/* ---- tables ---- */

static fz_status sql_list_tables(cat_catalog *c, cat_namespace ns, fz_arena *a, cat_names *out, fz_error *err) {
    sql_db *d = c->impl;
    names_out o = {a, out};
    pthread_mutex_lock(&d->lock);
    fz_status rc = sql_run(d, d->has_type ? "SELECT table_name FROM iceberg_tables WHERE catalog_name = $1 AND table_namespace = $2" SQL_IS_TABLE
                                          : "SELECT table_name FROM iceberg_tables WHERE catalog_name = $1 AND table_namespace = $2",
                           SQL_ARGS(c->catalog_name, cat_namespace_text(a, ns)), take_name, &o, NULL, err);
    pthread_mutex_unlock(&d->lock);
    return rc;
}

static fz_status sql_find(cat_catalog *c, const cat_ident *id, fz_arena *a, const char **location, fz_error *err) {
    sql_db *d = c->impl;
    pthread_mutex_lock(&d->lock);
    fz_status rc = sql_find_row(c, id, false, a, location, err);
    pthread_mutex_unlock(&d->lock);
    return rc;
}

static fz_status drop_row(cat_catalog *c, void *cx, fz_error *err) {
    sql_db *d = c->impl;
    const cat_ident *id = cx;
    fz_arena *a = fz_arena_new();
    int changed = 0;
    fz_status rc = sql_run(d, d->has_type ? "DELETE FROM iceberg_tables" SQL_WHERE_TABLE SQL_IS_TABLE : "DELETE FROM iceberg_tables" SQL_WHERE_TABLE,
                           SQL_ARGS(c->catalog_name, cat_namespace_text(a, id->ns), id->name), NULL, NULL, &changed, err);
    if (rc == FZ_OK && changed == 0)
        rc = fz_fail(err, FZ_USER, "catalog.table-not-found", "the table '%s' does not exist in catalog '%s'", cat_ident_text(a, id), c->name);
    fz_arena_free(a);
    return rc;
}

static fz_status sql_drop_table(cat_catalog *c, const cat_ident *id, bool purge, fz_error *err) {
    (void)purge;
    cat_ident own = *id;
    return repeatable(c, drop_row, &own, err);
}

const cat_ops cat_sql_ops = {
    .type = "sql", .open = sql_cat_open, .close = sql_cat_close, .list_namespaces = sql_list_namespaces, .namespace_exists = sql_namespace_exists,
    .create_namespace = sql_create_namespace, .drop_namespace = sql_drop_namespace, .get_properties = sql_get_properties, .set_properties = sql_set_properties,
    .list_tables = sql_list_tables, .find = sql_find, .swap = sql_swap, .drop_table = sql_drop_table,
};
