/* The SQL catalog's two tables: choosing the database, looking what is there, making and upgrading; and the transaction that is made
 * again when the database asks for it.
 *
 * Invariants
 *  1. The tables are those that Java's JdbcCatalog and PyIceberg's SqlCatalog make and read. A database of the older schema (V0:
 *     no column iceberg_type) stays as it is unless the options ask for V1.
 *  2. Several processes may make or upgrade the same tables at once. On PostgreSQL even CREATE TABLE IF NOT EXISTS can fail then (two
 *     rows of pg_class or pg_type want the same key): after CONFLICT what is there is looked at again.
 */
#include "catalog/pg_int.h"
#include "catalog/sql_int.h"

#define CREATE_TABLES                                                                                                  \
    "CREATE TABLE IF NOT EXISTS iceberg_tables ("                                                                      \
    "catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL, "    \
    "metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), iceberg_type VARCHAR(5), "             \
    "PRIMARY KEY (catalog_name, table_namespace, table_name))"
#define CREATE_PROPERTIES                                                                                              \
    "CREATE TABLE IF NOT EXISTS iceberg_namespace_properties ("                                                        \
    "catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL, property_key VARCHAR(255) NOT NULL, "        \
    "property_value VARCHAR(1000), PRIMARY KEY (catalog_name, namespace, property_key))"

enum { TYPE_COLUMN = 32, OTHER_COLUMNS = 31, ROUNDS = 5 };

/* What there is: a bit for each known column. */
typedef struct found { unsigned tables, properties; bool has_tables, has_properties; } found;

static bool see_table_column(void *cx, const char *const *column) {
    static const char *const want[] = {"catalog_name", "table_namespace", "table_name", "metadata_location", "previous_metadata_location", "iceberg_type"};
    found *f = cx;
    f->has_tables = true;
    for (unsigned i = 0; column[0] && i < 6; i++)
        if (strcmp(column[0], want[i]) == 0) f->tables |= 1u << i;
    return true;
}

static bool see_property_column(void *cx, const char *const *column) {
    static const char *const want[] = {"catalog_name", "namespace", "property_key", "property_value"};
    found *f = cx;
    f->has_properties = true;
    for (unsigned i = 0; column[0] && i < 4; i++)
        if (strcmp(column[0], want[i]) == 0) f->properties |= 1u << i;
    return true;
}

static fz_status look(sql_db *d, found *f, fz_error *err) {
    *f = (found){0};
    FZ_TRY(sql_run(d, d->driver->see_columns, NULL, 0, see_table_column, f, NULL, err));
    FZ_TRY(sql_run(d, d->driver->see_properties, NULL, 0, see_property_column, f, NULL, err));
    const char *wrong = f->has_tables && (f->tables & OTHER_COLUMNS) != OTHER_COLUMNS ? "iceberg_tables" : f->has_properties && f->properties != 15 ? "iceberg_namespace_properties" : NULL;
    if (wrong) return fz_fail(err, FZ_USER, "catalog.not-a-catalog", "the table '%s' of '%s' lacks columns of an Iceberg catalog", wrong, d->label);
    return FZ_OK;
}

fz_status sql_transact(cat_catalog *c, sql_body body, void *cx, fz_error *err) {
    sql_db *d = c->impl;
    int64_t end = fz_mono_ns() + d->busy_ms * 1000000;
    for (;;) {
        fz_status rc = sql_begin(d, d->busy_ms, err);
        if (rc == FZ_OK) {
            rc = body(c, cx, err);
            if (rc == FZ_OK) rc = sql_commit(d, err);
            else sql_rollback(d);
        }
        if (rc != FZ_RETRY || strcmp(err->code, "catalog.serialization") != 0 || fz_mono_ns() >= end) return rc;
        uint8_t jitter;
        fz_random(&jitter, 1);
        fz_sleep_ms(5 + jitter % 32); /* two that ran into each other shall not do it again */
    }
}

static fz_status make_tables(cat_catalog *c, void *cx, fz_error *err) {
    (void)cx;
    FZ_TRY(sql_run(c->impl, CREATE_TABLES, NULL, 0, NULL, NULL, NULL, err));
    return sql_run(c->impl, CREATE_PROPERTIES, NULL, 0, NULL, NULL, NULL, err);
}

/* Another process may do the same at this moment; inside the transaction the column is either there or ours to add. */
static fz_status upgrade(cat_catalog *c, void *cx, fz_error *err) {
    sql_db *d = c->impl;
    found f;
    (void)cx;
    FZ_TRY(look(d, &f, err));
    return f.tables & TYPE_COLUMN ? FZ_OK : sql_run(d, "ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5)", NULL, 0, NULL, NULL, NULL, err);
}

static fz_status prepare(cat_catalog *c, sql_db *d, fz_error *err) {
    bool v1 = fz_ieq(cat_option(c, "jdbc.schema-version"), "V1") || fz_ieq(cat_option(c, "schema_version"), "V1");
    for (int round = 0;; round++) {
        found f;
        FZ_TRY(look(d, &f, err));
        bool made = f.has_tables && f.has_properties, right = !v1 || f.tables & TYPE_COLUMN;
        d->has_type = f.tables & TYPE_COLUMN;
        if (made && right) return FZ_OK;
        if (!made && !d->may_init) return fz_fail(err, FZ_USER, "catalog.not-a-catalog", "'%s' has no Iceberg catalog in it, and the options forbid to make one", d->label);
        fz_status rc = sql_transact(c, made ? upgrade : make_tables, NULL, err);
        /* Each of the two may be done twice: what is there decides. CONFLICT: somebody else is making them at this moment. */
        if (rc != FZ_OK && ((rc != FZ_UNKNOWN && rc != FZ_CONFLICT) || round == ROUNDS)) {
            if (rc == FZ_UNKNOWN || rc == FZ_CONFLICT) err->cls = rc = FZ_RETRY;
            return rc;
        }
    }
}

fz_status sql_open(cat_catalog *c, sql_db **out, fz_error *err) {
    int may_init = 1, may_init_py = 1;
    if (!c->uri) return fz_fail(err, FZ_USER, "catalog.option", "the catalog '%s' has no option 'uri'", c->name);
    FZ_TRY(fz_parse_bool(cat_option(c, "jdbc.init-catalog-tables"), &may_init, err));
    FZ_TRY(fz_parse_bool(cat_option(c, "init_catalog_tables"), &may_init_py, err));
    bool init = may_init && may_init_py;
    sql_db *d;
    FZ_TRY(pg_is_uri(c->uri) ? sql_postgres_open(c, &d, err) : sql_sqlite_open(c, init, &d, err));
    d->may_init = init;
    c->impl = d;
    fz_status rc = prepare(c, d, err);
    if (rc != FZ_OK) {
        sql_close(d);
        c->impl = NULL;
        return rc;
    }
    *out = d;
    return FZ_OK;
}

void sql_close(sql_db *d) {
    pthread_mutex_destroy(&d->lock);
    d->driver->close(d);
}
