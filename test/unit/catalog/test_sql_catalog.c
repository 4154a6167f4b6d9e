/* The SQL catalog alone: the schema it shares, foreign files, locks, a COMMIT that fails, properties of namespaces. */
#include "cat_test.h"
#include <errno.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>

static void sql_exec(const char *file, const char *sql) {
    sqlite3 *db;
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    char *msg = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &msg) != SQLITE_OK) fail_msg("%s: %s", sql, msg);
    sqlite3_close(db);
}
static const char *sql_ask(const char *file, const char *sql) {
    sqlite3 *db;
    sqlite3_stmt *st;
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
    const char *out = "";
    while (sqlite3_step(st) == SQLITE_ROW)
        for (int i = 0; i < sqlite3_column_count(st); i++) {
            const char *v = (const char *)sqlite3_column_text(st, i);
            out = fz_arena_printf(arena, "%s%s|", out, v ? v : "NULL");
        }
    sqlite3_finalize(st);
    sqlite3_close(db);
    return out;
}
#define V0_TABLES "CREATE TABLE iceberg_tables(catalog_name VARCHAR(255) NOT NULL,table_namespace VARCHAR(255) NOT NULL,table_name VARCHAR(255) NOT NULL," \
    "metadata_location VARCHAR(1000),previous_metadata_location VARCHAR(1000),PRIMARY KEY (catalog_name, table_namespace, table_name));"

static void test_rows(void **state) {
    (void)state;
    cat_catalog *c = open_catalog("sql");
    cat_ident id = {ns2("a", "b"), "t"};
    OK(cat_create_namespace(c, ns2("a", "b"), NULL, 0, &err));
    cat_table *t = make_table(c, &id, NULL, 0), *t2;
    const char *db = in_root("cat.db");
    assert_string_equal(sql_ask(db, "SELECT catalog_name, table_namespace, table_name, metadata_location, previous_metadata_location, iceberg_type FROM iceberg_tables"),
                        fz_arena_printf(arena, "lake|a.b|t|%s|NULL|TABLE|", t->metadata_location));
    assert_string_equal(sql_ask(db, "SELECT * FROM iceberg_namespace_properties"), "lake|a.b|exists|true|");
    OK(set_property(c, t, "k", "v", &t2));
    assert_string_equal(sql_ask(db, "SELECT metadata_location, previous_metadata_location FROM iceberg_tables"),
                        fz_arena_printf(arena, "%s|%s|", t2->metadata_location, t->metadata_location));
    assert_non_null(strstr(t2->metadata_location, "/wh/a/b/t/metadata/00001-"));
    cat_table_free(t);
    cat_table_free(t2);
    cat_close(c);
    /* Another catalog_name sees nothing of it; the option gives it back. */
    cat_names v;
    OK(try_open("sql", "other", NULL, 0, &c));
    OK(cat_list_namespaces(c, (cat_namespace){0}, arena, &v, &err));
    assert_int_equal(v.n, 0);
    cat_close(c);
    const fz_pair name = {.key = "catalog-name", .value = "lake"};
    OK(try_open("sql", "other", &name, 1, &c));
    OK(cat_list_tables(c, ns2("a", "b"), arena, &v, &err));
    assert_string_equal(joined(&v), "t ");
    cat_close(c);
}

static void test_v0(void **state) {
    (void)state;
    const char *db = in_root("cat.db");
    sql_exec(db, V0_TABLES);
    cat_catalog *c = open_catalog("sql");
    cat_ident id = ident("db", "t");
    OK(cat_create_namespace(c, ns1("db"), NULL, 0, &err));
    cat_table_free(make_table(c, &id, NULL, 0));
    set_now(c, &id, "k", "v");
    cat_names v;
    OK(cat_list_tables(c, ns1("db"), arena, &v, &err));
    assert_string_equal(joined(&v), "t ");
    cat_close(c);
    assert_string_equal(sql_ask(db, "SELECT count(*) FROM pragma_table_info('iceberg_tables')"), "5|"); /* left as it was */
    const fz_pair v1 = {.key = "jdbc.schema-version", .value = "V1"};
    OK(try_open("sql", "lake", &v1, 1, &c));
    assert_string_equal(sql_ask(db, "SELECT name FROM pragma_table_info('iceberg_tables') WHERE name = 'iceberg_type'"), "iceberg_type|");
    set_now(c, &id, "k", "w"); /* its iceberg_type is NULL now */
    OK(cat_drop_table(c, &id, false, &err));
    cat_close(c);
}

static void test_views(void **state) {
    (void)state;
    cat_catalog *c = open_catalog("sql");
    OK(cat_create_namespace(c, ns1("db"), NULL, 0, &err));
    const char *db = in_root("cat.db");
    sql_exec(db, "INSERT INTO iceberg_tables VALUES ('lake', 'db', 'v', '/x/v.json', NULL, 'VIEW'), ('lake', 'byview', 'v2', '/x/v.json', NULL, 'VIEW')");
    cat_ident id = ident("db", "v");
    cat_names v;
    cat_table *t;
    bool there;
    const char *location;
    OK(cat_list_tables(c, ns1("db"), arena, &v, &err));
    assert_int_equal(v.n, 0);
    OK(cat_table_exists(c, &id, &there, &err));
    assert_false(there);
    FAILS(cat_load_table(c, &id, &t, &err), FZ_USER, "catalog.table-not-found");
    FAILS(cat_drop_table(c, &id, false, &err), FZ_USER, "catalog.table-not-found");
    FAILS(cat_drop_namespace(c, ns1("db"), &err), FZ_USER, "catalog.namespace-not-empty");
    OK(cat_default_location(c, &id, arena, &location, &err));
    ice_metadata *m = small_metadata(location, NULL, 0);
    FAILS(cat_create_table(c, &id, m, &t, &err), FZ_USER, "catalog.table-exists");
    assert_int_equal(metadata_files(location), 0);
    ice_metadata_free(m);
    OK(cat_namespace_exists(c, ns1("byview"), &there, &err));
    assert_true(there);
    cat_close(c);
}

static void test_foreign_files(void **state) {
    (void)state;
    cat_catalog *c;
    const char *db = in_root("cat.db");
    OK(fio_put(NULL, db, "This is not a database, and never was: it is a text of more than one hundred bytes, as SQLite's header has.", 108, &err));
    FAILS(try_open("sql", "lake", NULL, 0, &c), FZ_USER, "catalog.not-a-catalog");
    assert_non_null(strstr(err.message, "cat.db"));
    OK(fio_delete(NULL, db, &err));
    sql_exec(db, "CREATE TABLE moz_places(id INTEGER)");
    FAILS(try_open("sql", "lake", NULL, 0, &c), FZ_USER, "catalog.not-a-catalog");
    assert_non_null(strstr(err.message, "moz_places"));
    assert_string_equal(sql_ask(db, "SELECT name FROM sqlite_master"), "moz_places|"); /* nothing was written into it */
    OK(fio_delete(NULL, db, &err));
    sql_exec(db, "CREATE TABLE iceberg_tables(catalog_name TEXT, x TEXT)");
    FAILS(try_open("sql", "lake", NULL, 0, &c), FZ_USER, "catalog.not-a-catalog");
    OK(fio_delete(NULL, db, &err));
    const fz_pair no = {.key = "init_catalog_tables", .value = "false"};
    FAILS(try_open("sql", "lake", &no, 1, &c), FZ_USER, "catalog.cannot-open");
    sql_exec(db, V0_TABLES "CREATE TABLE something_else(x)"); /* a catalog that shares its file is one */
    OK(try_open("sql", "lake", NULL, 0, &c));
    cat_close(c);
    const fz_pair nowhere = {.key = "uri", .value = "sqlite:////nonexistent/dir/cat.db"};
    FAILS(try_open("sql", "lake", &nowhere, 1, &c), FZ_USER, "catalog.cannot-open");
}

static void test_locked(void **state) {
    (void)state;
    cat_catalog *c;
    const fz_pair busy = {.key = "frazil.sql.busy-timeout", .value = "50 ms"};
    OK(try_open("sql", "lake", &busy, 1, &c));
    cat_ident id = ident("db", "t");
    OK(cat_create_namespace(c, ns1("db"), NULL, 0, &err));
    cat_table *t = make_table(c, &id, NULL, 0), *t2;
    sqlite3 *db;
    assert_int_equal(sqlite3_open(in_root("cat.db"), &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    FAILS(set_property(c, t, "k", "v", &t2), FZ_RETRY, "catalog.locked");
    assert_int_equal(metadata_files(t->metadata->location), 1);
    FAILS(cat_load_table(c, &id, &t2, &err), FZ_RETRY, "catalog.locked");
    assert_int_equal(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    /* A reader does not stop the update, but its end: COMMIT is busy, and that too is a definite no. */
    assert_int_equal(sqlite3_exec(db, "BEGIN; SELECT * FROM iceberg_tables", NULL, NULL, NULL), SQLITE_OK);
    FAILS(set_property(c, t, "k", "v", &t2), FZ_RETRY, "catalog.locked");
    assert_int_equal(metadata_files(t->metadata->location), 1);
    sqlite3_close(db);
    OK(set_property(c, t, "k", "v", &t2));
    cat_table_free(t2);
    cat_table_free(t);
    cat_close(c);
}

/* The disk refuses writes in the middle of COMMIT, and then also the rollback: nobody can say what is there until it is read. */
static void test_commit_fails(void **state) {
    (void)state;
    cat_catalog *c = open_catalog("sql");
    cat_ident id = ident("db", "t");
    OK(cat_create_namespace(c, ns1("db"), NULL, 0, &err));
    cat_table *t = make_table(c, &id, NULL, 0), *t2 = NULL, *l;
    uint64_t size;
    OK(fio_size(NULL, in_root("cat.db"), &size, &err));
    struct rlimit old, low;
    getrlimit(RLIMIT_FSIZE, &old);
    low = old;
    signal(SIGXFSZ, SIG_IGN);
    unsigned refused = 0;
    for (rlim_t limit = 4096; limit <= size + 8192; limit += 1024) {
        low.rlim_cur = limit;
        setrlimit(RLIMIT_FSIZE, &low);
        fz_status rc = set_property(c, t, "k", fz_arena_printf(arena, "%lu", (unsigned long)limit), &t2);
        fz_error why = err;
        setrlimit(RLIMIT_FSIZE, &old);
        OK(cat_load_table(c, &id, &l, &err)); /* SQLite rolls back what was left */
        bool applied = strcmp(l->metadata_location, t->metadata_location) != 0;
        if (rc == FZ_OK) assert_true(applied);
        else {
            refused++;
            if (rc != FZ_RETRY && rc != FZ_UNKNOWN) fail_msg("limit %lu: %s %s", (unsigned long)limit, fz_status_name(rc), why.message);
            if (rc == FZ_RETRY) assert_false(applied);
        }
        if (applied) {
            cat_table_free(t);
            t = l;
        } else cat_table_free(l);
        if (t2) cat_table_free(t2);
        t2 = NULL;
    }
    assert_true(refused > 0);
    cat_table_free(t);
    cat_close(c);
}

static void test_properties(void **state) {
    (void)state;
    cat_catalog *c = open_catalog("sql");
    const fz_pair p[] = {{.key = "comment", .value = "all logs"}, {.key = "location", .value = "file:///elsewhere/"}}, q = {.key = "comment", .value = "new"}, r = {.key = "exists", .value = "no"};
    OK(cat_create_namespace(c, ns1("db"), p, 2, &err));
    fz_pair *got;
    size_t n;
    OK(cat_set_namespace_properties(c, ns1("db"), &q, 1, &err));
    OK(cat_namespace_properties(c, ns1("db"), arena, &got, &n, &err));
    assert_int_equal(n, 2);
    assert_string_equal(fz_pair_get(got, n, "comment"), "new");
    cat_ident id = ident("db", "t");
    const char *location;
    OK(cat_default_location(c, &id, arena, &location, &err));
    assert_string_equal(location, "file:///elsewhere/t");
    FAILS(cat_set_namespace_properties(c, ns1("db"), &r, 1, &err), FZ_USER, "catalog.option");
    FAILS(cat_set_namespace_properties(c, ns1("no"), &q, 1, &err), FZ_USER, "catalog.namespace-not-found");
    cat_close(c);
}

static void test_metadata_missing(void **state) {
    (void)state;
    cat_catalog *c = open_catalog("sql");
    cat_ident id = ident("db", "t");
    OK(cat_create_namespace(c, ns1("db"), NULL, 0, &err));
    cat_table *t = make_table(c, &id, NULL, 0), *l;
    OK(fio_put(NULL, t->metadata_location, "{\"format-version\": 2", 20, &err));
    FAILS(cat_load_table(c, &id, &l, &err), FZ_FATAL, "iceberg.metadata");
    assert_non_null(strstr(err.message, t->metadata_location));
    OK(fio_delete(NULL, t->metadata_location, &err));
    FAILS(cat_load_table(c, &id, &l, &err), FZ_FATAL, "catalog.metadata-missing");
    OK(cat_drop_table(c, &id, true, &err)); /* it can still be dropped */
    cat_table_free(t);
    cat_close(c);
}

static void test_dropped_meanwhile(void **state) {
    (void)state;
    cat_catalog *c = open_catalog("sql");
    cat_ident id = ident("db", "t");
    OK(cat_create_namespace(c, ns1("db"), NULL, 0, &err));
    cat_table *t = make_table(c, &id, NULL, 0), *t2;
    OK(cat_drop_table(c, &id, false, &err));
    assert_int_equal(metadata_files(t->metadata->location), 1); /* without purge the files stay */
    FAILS(set_property(c, t, "k", "v", &t2), FZ_USER, "catalog.table-not-found");
    assert_int_equal(metadata_files(t->metadata->location), 1);
    cat_table_free(t);
    cat_close(c);
}

int main(void) {
    fz_log_set_level(FZ_LOG_OFF);
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        T(test_rows), T(test_v0), T(test_views), T(test_foreign_files), T(test_locked), T(test_commit_fails), T(test_properties), T(test_metadata_missing), T(test_dropped_meanwhile),
    };
    return cmocka_run_group_tests_name("sql catalog", tests, NULL, NULL);
}
