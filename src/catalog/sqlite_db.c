/* SQLite as a database of the SQL catalog. See sql_int.h.
 *
 * Invariants
 *  1. A file that holds something else is refused before anything is written into it.
 *  2. A commit that SQLite has confirmed survives a power cut: synchronous = EXTRA also syncs the directory after the rollback
 *     journal is gone; with less, a journal that comes back would undo it.
 *  3. However COMMIT ends, no transaction of ours is left: what the table says afterwards is what has become of it.
 */
#include "catalog/sql_int.h"
#include <sqlite3.h>

enum { MAX_COLUMNS = 8 };

typedef struct sqlite_db { sql_db base; sqlite3 *db; } sqlite_db;

/* RETRY for locks and I/O, USER for what is no database, FATAL for the rest. */
static fz_status failed(sqlite_db *s, int rc, const char *what, fz_error *err) {
    const char *text = s->db ? sqlite3_errmsg(s->db) : sqlite3_errstr(rc), *file = s->base.label;
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        fz_fail(err, FZ_RETRY, "catalog.locked", "cannot %s: the catalog '%s' is locked by another process", what, file);
        return fz_hint(err, "the option 'frazil.sql.busy-timeout' says how long one call waits");
    case SQLITE_NOTADB: return fz_fail(err, FZ_USER, "catalog.not-a-catalog", "'%s' is not an SQLite database", file);
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_NOMEM:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM: return fz_fail(err, FZ_RETRY, "catalog.io", "cannot %s: catalog '%s': %s", what, file, text);
    case SQLITE_CORRUPT: return fz_fail(err, FZ_FATAL, "catalog.damaged", "cannot %s: catalog '%s': %s", what, file, text);
    case SQLITE_CONSTRAINT: return fz_fail(err, FZ_CONFLICT, "catalog.conflict", "cannot %s: catalog '%s': %s", what, file, text);
    default: return fz_fail(err, FZ_FATAL, "catalog.sql", "cannot %s: catalog '%s': %s", what, file, text);
    }
}

/* $N is to SQLite a name like any other; its place among the parameters is where it stood first. */
static void bind(sqlite3_stmt *st, const char *const *args, unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "$%u", i + 1);
        int at = sqlite3_bind_parameter_index(st, name);
        if (at && args[i]) sqlite3_bind_text(st, at, args[i], -1, SQLITE_STATIC);
    }
}

static bool hand_row(sqlite3_stmt *st, sql_row row, void *cx) {
    const char *column[MAX_COLUMNS] = {0};
    int n = sqlite3_column_count(st);
    for (int i = 0; i < n && i < MAX_COLUMNS; i++) column[i] = (const char *)sqlite3_column_text(st, i);
    return row(cx, column);
}

static fz_status run(sql_db *d, const char *sql, const char *const *args, unsigned n, sql_row row, void *cx, int *changes, fz_error *err) {
    sqlite_db *s = (sqlite_db *)d;
    sqlite3_stmt *st;
    int rc = sqlite3_prepare_v2(s->db, sql, -1, &st, NULL);
    if (rc != SQLITE_OK) return failed(s, rc, "read or write the catalog", err);
    bind(st, args, n);
    while ((rc = sqlite3_step(st)) == SQLITE_ROW)
        if (row && !hand_row(st, row, cx)) {
            rc = SQLITE_DONE;
            break;
        }
    fz_status out = rc == SQLITE_DONE ? FZ_OK : failed(s, rc, "read or write the catalog", err);
    if (changes) *changes = sqlite3_changes(s->db);
    sqlite3_finalize(st);
    return out;
}

/* Takes the write lock of the file at once. How long it waits was said when the file was opened. */
static fz_status begin(sql_db *d, int64_t wait_ms, fz_error *err) {
    (void)wait_ms;
    return run(d, "BEGIN IMMEDIATE", NULL, 0, NULL, NULL, NULL, err);
}

static void rollback(sql_db *d) {
    sqlite_db *s = (sqlite_db *)d;
    if (!sqlite3_get_autocommit(s->db)) sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
}

static fz_status commit(sql_db *d, fz_error *err) {
    sqlite_db *s = (sqlite_db *)d;
    int rc = sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL);
    if (rc == SQLITE_OK) return FZ_OK;
    fz_status out = failed(s, rc, "commit", err);
    bool open_still = !sqlite3_get_autocommit(s->db);
    rollback(d);
    /* Busy with the transaction still open: SQLite has not begun to write, and the rollback cannot fail. */
    if ((rc & 0xff) == SQLITE_BUSY && open_still) return out;
    err->cls = FZ_UNKNOWN;
    return FZ_UNKNOWN;
}

static void close_db(sql_db *d) {
    sqlite3_close(((sqlite_db *)d)->db);
    fz_free(d);
}

static const sql_driver driver = {
    .see_columns = "SELECT name FROM pragma_table_info('iceberg_tables')", .see_properties = "SELECT name FROM pragma_table_info('iceberg_namespace_properties')", .and_wait = NULL,
    .run = run, .begin = begin, .commit = commit, .rollback = rollback, .close = close_db,
};

/* ---- opening ---- */

typedef struct found { bool tables; unsigned others; char first[64]; } found;

static bool see_table(void *cx, const char *const *column) {
    found *f = cx;
    const char *name = column[0];
    if (!name || fz_starts(name, "sqlite_")) return true;
    if (strcmp(name, "iceberg_tables") == 0) f->tables = true;
    else if (strcmp(name, "iceberg_namespace_properties") != 0 && f->others++ == 0) snprintf(f->first, sizeof f->first, "%s", name);
    return true;
}

static fz_status check(sql_db *d, fz_error *err) {
    found f = {0};
    FZ_TRY(run(d, "PRAGMA synchronous = EXTRA", NULL, 0, NULL, NULL, NULL, err));
    FZ_TRY(run(d, "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name", NULL, 0, see_table, &f, NULL, err));
    if (f.tables || f.others == 0) return FZ_OK;
    fz_fail(err, FZ_USER, "catalog.not-a-catalog", "'%s' is a database of another program (it has the table '%s' and no 'iceberg_tables')", d->label, f.first);
    return fz_hint(err, "give the catalog a file of its own");
}

static fz_status cannot_open(sqlite_db *s, int rc, fz_error *err) {
    if ((rc & 0xff) != SQLITE_CANTOPEN) return failed(s, rc, "open it", err);
    fz_fail(err, FZ_USER, "catalog.cannot-open", "cannot open the catalog '%s': %s", s->base.label, sqlite3_errmsg(s->db));
    return fz_hint(err, "the directory must exist, and frazil must have the right to write there");
}

/* Settings of a server's driver: known, and SQLite has none of them. */
static void ignore_jdbc(cat_catalog *c) {
    for (size_t i = 0; i < c->n_options; i++) {
        const char *key = c->options[i].key;
        if (fz_starts(key, "jdbc.") && strcmp(key, "jdbc.schema-version") != 0 && strcmp(key, "jdbc.init-catalog-tables") != 0 && strcmp(key, "jdbc.strict-mode") != 0)
            cat_names_add(c->arena, &c->ignored, key);
    }
}

fz_status sql_sqlite_open(cat_catalog *c, bool may_init, sql_db **out, fz_error *err) {
    bool is_uri;
    const char *file;
    FZ_TRY(cat_sqlite_file(c->arena, c->uri, &file, &is_uri, err));
    ignore_jdbc(c);
    sqlite_db *s = FZ_NEW(sqlite_db);
    s->base = (sql_db){.driver = &driver, .label = file, .busy_ms = c->busy_timeout_ms};
    pthread_mutex_init(&s->base.lock, NULL);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX | (is_uri ? SQLITE_OPEN_URI : 0) | (may_init ? SQLITE_OPEN_CREATE : 0);
    int rc = sqlite3_open_v2(file, &s->db, flags, NULL);
    if (rc == SQLITE_OK) {
        sqlite3_extended_result_codes(s->db, 1);
        sqlite3_busy_timeout(s->db, c->busy_timeout_ms > INT32_MAX ? INT32_MAX : (int)c->busy_timeout_ms);
    }
    fz_status st = rc == SQLITE_OK ? check(&s->base, err) : cannot_open(s, rc, err);
    if (st != FZ_OK) {
        sql_close(&s->base);
        return st;
    }
    *out = &s->base;
    return FZ_OK;
}
