/* The SQL catalog's database: opening it, its two tables, statements and transactions. See sqlite_int.h.
 *
 * Invariants
 *  1. The tables are those that Java's JdbcCatalog and PyIceberg's SqlCatalog make and read. A database of the older schema (V0:
 *     no column iceberg_type) stays as it is unless the options ask for V1.
 *  2. A database that holds something else is refused before anything is written into it.
 *  3. A commit that SQLite has confirmed survives a power cut: synchronous = EXTRA also syncs the directory after the rollback
 *     journal is gone; with less, a journal that comes back would undo it.
 */
#include "catalog/sqlite_int.h"

#define CREATE_TABLES                                                                                                  \
    "CREATE TABLE IF NOT EXISTS iceberg_tables ("                                                                      \
    "catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL, "    \
    "metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), iceberg_type VARCHAR(5), "             \
    "PRIMARY KEY (catalog_name, table_namespace, table_name))"
#define CREATE_PROPERTIES                                                                                              \
    "CREATE TABLE IF NOT EXISTS iceberg_namespace_properties ("                                                        \
    "catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL, property_key VARCHAR(255) NOT NULL, "        \
    "property_value VARCHAR(1000), PRIMARY KEY (catalog_name, namespace, property_key))"

fz_status sql_fail(sql_db *d, int rc, const char *what, fz_error *err) {
    const char *text = d->db ? sqlite3_errmsg(d->db) : sqlite3_errstr(rc);
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        fz_fail(err, FZ_RETRY, "catalog.locked", "cannot %s: the catalog '%s' is locked by another process", what, d->file);
        return fz_hint(err, "the option 'frazil.sql.busy-timeout' says how long one call waits");
    case SQLITE_NOTADB: return fz_fail(err, FZ_USER, "catalog.not-a-catalog", "'%s' is not an SQLite database", d->file);
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_NOMEM:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM: return fz_fail(err, FZ_RETRY, "catalog.io", "cannot %s: catalog '%s': %s", what, d->file, text);
    case SQLITE_CORRUPT: return fz_fail(err, FZ_FATAL, "catalog.damaged", "cannot %s: catalog '%s': %s", what, d->file, text);
    case SQLITE_CONSTRAINT: return fz_fail(err, FZ_CONFLICT, "catalog.conflict", "cannot %s: catalog '%s': %s", what, d->file, text);
    default: return fz_fail(err, FZ_FATAL, "catalog.sql", "cannot %s: catalog '%s': %s", what, d->file, text);
    }
}

fz_status sql_run(sql_db *d, const char *sql, const char *const *args, unsigned n, sql_row row, void *cx, int *changes, fz_error *err) {
    sqlite3_stmt *st;
    int rc = sqlite3_prepare_v2(d->db, sql, -1, &st, NULL);
    if (rc != SQLITE_OK) return sql_fail(d, rc, "read or write the catalog", err);
    for (unsigned i = 0; i < n; i++)
        if (args[i]) sqlite3_bind_text(st, (int)i + 1, args[i], -1, SQLITE_STATIC);
    while ((rc = sqlite3_step(st)) == SQLITE_ROW)
        if (row && !row(cx, st)) {
            rc = SQLITE_DONE;
            break;
        }
    fz_status out = rc == SQLITE_DONE ? FZ_OK : sql_fail(d, rc, "read or write the catalog", err);
    if (changes) *changes = sqlite3_changes(d->db);
    sqlite3_finalize(st);
    return out;
}

fz_status sql_begin(sql_db *d, fz_error *err) { return sql_run(d, "BEGIN IMMEDIATE", NULL, 0, NULL, NULL, NULL, err); }

void sql_rollback(sql_db *d) {
    if (!sqlite3_get_autocommit(d->db)) sqlite3_exec(d->db, "ROLLBACK", NULL, NULL, NULL);
}

fz_status sql_commit(sql_db *d, fz_error *err) {
    int rc = sqlite3_exec(d->db, "COMMIT", NULL, NULL, NULL);
    if (rc == SQLITE_OK) return FZ_OK;
    fz_status out = sql_fail(d, rc, "commit", err);
    bool open_still = !sqlite3_get_autocommit(d->db);
    sql_rollback(d);
    /* Busy with the transaction still open: SQLite has not begun to write, and the rollback cannot fail. */
    if ((rc & 0xff) == SQLITE_BUSY && open_still) return out;
    err->cls = FZ_UNKNOWN;
    return FZ_UNKNOWN;
}

/* ---- opening ---- */

typedef struct found { bool tables, properties; unsigned others; char first[64]; } found;

static bool see_table(void *cx, sqlite3_stmt *row) {
    found *f = cx;
    const char *name = (const char *)sqlite3_column_text(row, 0);
    if (!name || fz_starts(name, "sqlite_")) return true;
    if (strcmp(name, "iceberg_tables") == 0) f->tables = true;
    else if (strcmp(name, "iceberg_namespace_properties") == 0) f->properties = true;
    else if (f->others++ == 0) snprintf(f->first, sizeof f->first, "%s", name);
    return true;
}

static bool see_column(void *cx, sqlite3_stmt *row) {
    static const char *const want[] = {"catalog_name", "table_namespace", "table_name", "metadata_location", "previous_metadata_location", "iceberg_type"};
    const char *name = (const char *)sqlite3_column_text(row, 1);
    for (unsigned i = 0; name && i < 6; i++)
        if (strcmp(name, want[i]) == 0) *(unsigned *)cx |= 1u << i;
    return true;
}

static fz_status look(sql_db *d, found *f, unsigned *columns, fz_error *err) {
    *f = (found){0};
    *columns = 0;
    FZ_TRY(sql_run(d, "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name", NULL, 0, see_table, f, NULL, err));
    return sql_run(d, "PRAGMA table_info(iceberg_tables)", NULL, 0, see_column, columns, NULL, err);
}

static fz_status make_tables(sql_db *d, fz_error *err) {
    FZ_TRY(sql_begin(d, err));
    fz_status rc = sql_run(d, CREATE_TABLES, NULL, 0, NULL, NULL, NULL, err);
    if (rc == FZ_OK) rc = sql_run(d, CREATE_PROPERTIES, NULL, 0, NULL, NULL, NULL, err);
    if (rc == FZ_OK) return sql_commit(d, err);
    sql_rollback(d);
    return rc;
}

/* Another process may do the same at this moment; inside the transaction the column is either there or ours to add. */
static fz_status upgrade(sql_db *d, fz_error *err) {
    unsigned columns = 0;
    FZ_TRY(sql_begin(d, err));
    fz_status rc = sql_run(d, "PRAGMA table_info(iceberg_tables)", NULL, 0, see_column, &columns, NULL, err);
    if (rc == FZ_OK && !(columns & 32)) rc = sql_run(d, "ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5)", NULL, 0, NULL, NULL, NULL, err);
    if (rc == FZ_OK) return sql_commit(d, err);
    sql_rollback(d);
    return rc;
}

static fz_status prepare(const cat_catalog *c, sql_db *d, bool may_init, fz_error *err) {
    found f;
    unsigned columns;
    FZ_TRY(sql_run(d, "PRAGMA synchronous = EXTRA", NULL, 0, NULL, NULL, NULL, err));
    FZ_TRY(look(d, &f, &columns, err));
    if (!f.tables && f.others > 0) {
        fz_fail(err, FZ_USER, "catalog.not-a-catalog", "'%s' is a database of another program (it has the table '%s' and no 'iceberg_tables')", d->file, f.first);
        return fz_hint(err, "give the catalog a file of its own");
    }
    if (f.tables && (columns & 31) != 31)
        return fz_fail(err, FZ_USER, "catalog.not-a-catalog", "the table 'iceberg_tables' of '%s' lacks columns of an Iceberg catalog", d->file);
    if ((!f.tables || !f.properties) && !may_init)
        return fz_fail(err, FZ_USER, "catalog.not-a-catalog", "'%s' has no Iceberg catalog in it, and the options forbid to make one", d->file);
    if (!f.tables || !f.properties) {
        FZ_TRY(make_tables(d, err));
        FZ_TRY(look(d, &f, &columns, err));
    }
    if (!(columns & 32) && (fz_ieq(cat_option(c, "jdbc.schema-version"), "V1") || fz_ieq(cat_option(c, "schema_version"), "V1"))) {
        FZ_TRY(upgrade(d, err));
        columns |= 32;
    }
    d->has_type = columns & 32;
    return FZ_OK;
}

static fz_status cannot_open(sql_db *d, int rc, fz_error *err) {
    if ((rc & 0xff) != SQLITE_CANTOPEN) return sql_fail(d, rc, "open it", err);
    fz_fail(err, FZ_USER, "catalog.cannot-open", "cannot open the catalog '%s': %s", d->file, sqlite3_errmsg(d->db));
    return fz_hint(err, "the directory must exist, and frazil must have the right to write there");
}

fz_status sql_open(const cat_catalog *c, sql_db **out, fz_error *err) {
    bool is_uri;
    const char *file;
    if (!c->uri) return fz_fail(err, FZ_USER, "catalog.option", "the catalog '%s' has no option 'uri'", c->name);
    FZ_TRY(cat_sqlite_file(c->arena, c->uri, &file, &is_uri, err));
    int may_init = 1, may_init_py = 1;
    FZ_TRY(fz_parse_bool(cat_option(c, "jdbc.init-catalog-tables"), &may_init, err));
    FZ_TRY(fz_parse_bool(cat_option(c, "init_catalog_tables"), &may_init_py, err));
    sql_db *d = FZ_NEW(sql_db);
    d->file = file;
    pthread_mutex_init(&d->lock, NULL);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX | (is_uri ? SQLITE_OPEN_URI : 0) | (may_init && may_init_py ? SQLITE_OPEN_CREATE : 0);
    int rc = sqlite3_open_v2(file, &d->db, flags, NULL);
    if (rc == SQLITE_OK) {
        sqlite3_extended_result_codes(d->db, 1);
        sqlite3_busy_timeout(d->db, c->busy_timeout_ms > INT32_MAX ? INT32_MAX : (int)c->busy_timeout_ms);
    }
    fz_status st = rc == SQLITE_OK ? prepare(c, d, may_init && may_init_py, err) : cannot_open(d, rc, err);
    if (st != FZ_OK) {
        sql_close(d);
        return st;
    }
    *out = d;
    return FZ_OK;
}

void sql_close(sql_db *d) {
    sqlite3_close(d->db);
    pthread_mutex_destroy(&d->lock);
    fz_free(d);
}
