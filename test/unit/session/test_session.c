/* Sessions: names and hiding, LIKE, views, catalogs in memory, settings, what an init file may hold, places of errors. */
#include "unit.h"
#include "fileio/fileio.h"
#include "session/session.h"
#include <stdlib.h>

typedef struct got { fz_buf text; uint32_t results; } got;

static fz_status begin(void *cx, const col_schema *s, bool live, bool listing, fz_error *err) {
    (void)s;
    (void)live;
    (void)listing;
    (void)err;
    ((got *)cx)->results++;
    return FZ_OK;
}
/* Listings hold text only: cells with bars between them, a line a row. */
static fz_status rows(void *cx, const col_batch *b, const char *tz, fz_error *err) {
    got *g = cx;
    (void)tz;
    (void)err;
    for (uint32_t r = 0; r < b->n_rows; r++) {
        for (uint32_t c = 0; c < b->n_cols; c++) {
            if (c) fz_buf_putc(&g->text, '|');
            fz_sv v = col_is_null(b->cols[c], r) ? FZ_SV("-") : col_sv(b->cols[c], r);
            fz_buf_append(&g->text, v.p, v.n);
        }
        fz_buf_putc(&g->text, '\n');
    }
    return FZ_OK;
}
static fz_status end(void *cx, fz_error *err) {
    (void)cx;
    (void)err;
    return FZ_OK;
}
static fz_status text(void *cx, const char *t, fz_error *err) {
    (void)err;
    fz_buf_puts(&((got *)cx)->text, t);
    fz_buf_putc(&((got *)cx)->text, '\n');
    return FZ_OK;
}

static got g;
static ses_session *s;
static int setup(void **state) {
    (void)state;
    conf *c = conf_new();
    ses_output out = {&g, begin, rows, end, text, NULL};
    s = ses_new(c, &out);
    conf_free(c);
    fz_log_set_level(FZ_LOG_OFF);
    return 0;
}
static int teardown(void **state) {
    (void)state;
    ses_free(s);
    fz_buf_free(&g.text);
    return 0;
}

static void says(const char *script, const char *want) {
    fz_error err = {0};
    ses_script sc = {.text = script, .len = strlen(script)};
    g.text.len = 0;
    if (ses_run(s, &sc, NULL, &err) != FZ_OK) fail_msg("%s: %s", script, err.message);
    assert_string_equal(fz_buf_cstr(&g.text), want);
}

static void fails(const char *script, const char *code, int line, int column) {
    fz_error err = {0};
    ses_script sc = {.text = script, .len = strlen(script)};
    int exit_code = 0;
    assert_int_equal(ses_run(s, &sc, &exit_code, &err), FZ_USER);
    assert_string_equal(err.code, code);
    assert_int_equal(err.line, line);
    assert_int_equal(err.column, column);
    assert_int_equal(exit_code, 1);
}

static void test_names(void **state) {
    (void)state;
    says("CREATE TABLE t (a INT); CREATE TEMPORARY TABLE t (b STRING); DESCRIBE t;", "b|STRING|TRUE|-|-|-\n"); /* a temporary table hides */
    says("SHOW TABLES;", "t\n");
    fails("DROP TABLE u", "sql.table-not-found", 1, 12);
    fails("CREATE TABLE t (a INT)", "sql.table-exists", 1, 14);
    says("CREATE TABLE IF NOT EXISTS t (z INT); DROP TABLE t;", "");
    says("DESCRIBE default_catalog.default_database.t", "b|STRING|TRUE|-|-|-\n");
    fails("DROP TABLE t", "sql.table-kind", 1, 12);
    says("DROP TEMPORARY TABLE t; DROP TABLE IF EXISTS t", "");
    fails("DESCRIBE t", "sql.table-not-found", 1, 10);
    fails("SELECT 1;\nDESCRIBE a.b.c.d" + 10, "sql.name", 1, 10);
}

static void test_catalogs(void **state) {
    (void)state;
    says("CREATE CATALOG m WITH ('type'='generic_in_memory', 'default-database'='db'); USE CATALOG m; SHOW CURRENT DATABASE; SHOW CATALOGS", "db\ndefault_catalog\nm\n");
    says("CREATE DATABASE x; CREATE DATABASE IF NOT EXISTS m.x; USE x; CREATE TABLE t (a INT); SHOW TABLES IN m.db; SHOW TABLES", "t\n");
    says("SHOW DATABASES LIKE 'd%'; SHOW DATABASES NOT LIKE '_b'", "db\nx\n");
    fails("DROP CATALOG m", "sql.catalog-in-use", 1, 14);
    fails("DROP DATABASE x", "sql.database-in-use", 1, 15);
    says("USE db", "");
    fails("DROP DATABASE x", "sql.database-not-empty", 1, 15);
    says("DROP DATABASE x CASCADE; SHOW DATABASES", "db\n");
    fails("USE nope.db", "sql.catalog-not-found", 1, 5);
    fails("CREATE CATALOG m WITH ('type'='generic_in_memory')", "sql.catalog-exists", 1, 16);
    says("USE CATALOG default_catalog; DROP CATALOG m; SHOW CATALOGS", "default_catalog\n");
}

static const char base[] = "CREATE TABLE base (id BIGINT NOT NULL, off BIGINT METADATA FROM 'offset' VIRTUAL, twice AS id * 2, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND,"
                           " PRIMARY KEY (id) NOT ENFORCED) COMMENT 'it''s' WITH ('connector'='kafka','topic'='a');";

static void test_like(void **state) {
    (void)state;
    says(base, "");
    says("CREATE TABLE l (x STRING) WITH ('topic'='b') LIKE base; SHOW CREATE TABLE l",
         "CREATE TABLE `default_catalog`.`default_database`.`l` (\n  `id` BIGINT NOT NULL,\n  `off` BIGINT METADATA FROM 'offset' VIRTUAL,\n  `twice` AS id * 2,\n  `ts` TIMESTAMP(3),\n"
         "  `x` STRING,\n  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND,\n  CONSTRAINT `PK_id` PRIMARY KEY (`id`) NOT ENFORCED\n)\nCOMMENT 'it''s'\nWITH (\n"
         "  'connector' = 'kafka',\n  'topic' = 'b'\n)\n");
    says("CREATE TABLE k (x STRING) WITH ('connector'='kafka', 'properties.sasl.jaas.config'='geheim'); SHOW CREATE TABLE k",
         "CREATE TABLE `default_catalog`.`default_database`.`k` (\n  `x` STRING\n)\nWITH (\n  'connector' = 'kafka',\n  'properties.sasl.jaas.config' = '******'\n)\n");
    says("CREATE CATALOG `c-1` WITH ('type'='generic_in_memory'); SHOW CREATE CATALOG `c-1`", "CREATE CATALOG `c-1` WITH (\n  'type' = 'generic_in_memory'\n)\n");
    says("CREATE TABLE m LIKE base (EXCLUDING ALL); SHOW CREATE TABLE m", "CREATE TABLE `default_catalog`.`default_database`.`m` (\n  `id` BIGINT NOT NULL,\n  `ts` TIMESTAMP(3)\n)\nCOMMENT 'it''s'\n");
    says("DROP TABLE base; DESCRIBE l", "id|BIGINT|FALSE|PRI(id)|-|-\noff|BIGINT|TRUE|-|METADATA FROM 'offset' VIRTUAL|-\ntwice|BIGINT|FALSE|-|AS id * 2|-\n"
                                        "ts|TIMESTAMP(3)|TRUE|-|-|ts - INTERVAL '5' SECOND\nx|STRING|TRUE|-|-|-\n");
    fails("CREATE TABLE n (id INT) LIKE l", "sql.like", 1, 30);
    fails("CREATE TABLE n WITH ('topic'='c') LIKE l (INCLUDING OPTIONS)", "sql.like", 1, 40);
    fails("CREATE TABLE n LIKE nope", "sql.table-not-found", 1, 21);
}

static void test_views(void **state) {
    (void)state;
    says("CREATE TABLE t (a INT, b STRING) WITH ('connector'='kafka'); CREATE TEMPORARY VIEW v (x) AS SELECT b FROM t; DESCRIBE v", "x|STRING|TRUE|-|-|-\n");
    says("CREATE DATABASE o; USE o; DESCRIBE default_database.v; SHOW CREATE VIEW default_database.v", /* the view keeps the names of its time */
         "x|STRING|TRUE|-|-|-\nCREATE TEMPORARY VIEW `default_catalog`.`default_database`.`v` (\n  `x`\n)\nAS SELECT b FROM t\n");
    fails("CREATE VIEW w (x, y) AS SELECT 1", "sql.column-count", 1, 13);
    fails("CREATE VIEW w AS SELECT nope FROM default_database.t", "sql.unknown-column", 1, 25);
    fails("SHOW CREATE TABLE default_database.v", "sql.table-kind", 1, 19);
    fails("INSERT INTO default_database.v SELECT 'x'", "sql.unsupported", 1, 13);
}

static void test_settings(void **state) {
    (void)state;
    says("SET 'pipeline.name' = 'p'; SET;", "pipeline.name|p\n");
    says("RESET 'pipeline.name'; SET", "");
    says("SET 'table.local-time-zone' = 'Asia/Tokyo'", "");
    assert_string_equal(ses_time_zone(s), "Asia/Tokyo");
    fails("SET 'table.local-time-zone' = 'Asia/Tokio'", "option.invalid", 1, 1);
    assert_string_equal(ses_time_zone(s), "Asia/Tokyo");
}

static void test_init_only(void **state) {
    (void)state;
    fz_error err = {0};
    ses_script sc = {.text = "CREATE TABLE t (a INT);\n  SELECT 1", .len = 34, .init_only = true};
    assert_int_equal(ses_run(s, &sc, NULL, &err), FZ_USER);
    assert_string_equal(err.code, "sql.init-statement");
    assert_int_equal(err.line, 2);
    assert_int_equal(err.column, 3);
    says("SHOW TABLES", "t\n");
}

static void test_quit(void **state) {
    (void)state;
    says("QUIT; SHOW CATALOGS", "");
    assert_true(ses_wants_quit(s));
}

/* ---- a catalog that is away ---- */

static fz_status run(const char *script, fz_error *err) {
    const ses_script sc = {.text = script, .len = strlen(script)};
    *err = (fz_error){0};
    return ses_run(s, &sc, NULL, err);
}
/* What is remembered stands for it where a statement only makes sure of something; nothing is read by it, and what is not remembered is refused. */
static void test_away(void **state) {
    (void)state;
    char dir[] = "/tmp/frazil-session-XXXXXX";
    assert_non_null(mkdtemp(dir));
    fz_arena *a = fz_arena_new();
    fz_error err;
    const fz_pair here[] = {{.key = "type", .value = "iceberg"}, {.key = "catalog-type", .value = "hadoop"}, {.key = "warehouse", .value = fz_arena_printf(a, "file://%s/wh", dir)}};
    const fz_pair there[] = {{.key = "type", .value = "iceberg"}, {.key = "catalog-type", .value = "rest"}, {.key = "uri", .value = "http://127.0.0.1:1"}, {.key = "rest.client.max-retries", .value = "0"}};
    const char *create = "CREATE CATALOG c WITH ('type'='iceberg','catalog-type'='rest','uri'='http://127.0.0.1:1','rest.client.max-retries'='0');";
    says(fz_arena_printf(a, "CREATE CATALOG h WITH ('type'='iceberg','catalog-type'='hadoop','warehouse'='file://%s/wh'); CREATE DATABASE h.db; CREATE TABLE h.db.t (id BIGINT, x STRING);", dir), "");
    cat_catalog *h, *c;
    cat_table *t;
    assert_int_equal(cat_open("h", here, 3, NULL, &h, &err), FZ_OK);
    assert_int_equal(cat_open_later("c", there, 4, NULL, &c, &err), FZ_OK);
    const cat_ident id = cat_ident_of(h, a, "db", "t");
    assert_int_equal(cat_load_table(h, &id, &t, &err), FZ_OK);
    says(fz_arena_printf(a, "SET 'frazil.state.dir' = '%s/state'", dir), "");
    assert_int_equal(run(create, &err), FZ_RETRY);
    assert_string_equal(err.code, "net.connect");
    assert_int_equal(cat_remember(fz_arena_printf(a, "%s/state/tables", dir), c, t, &err), FZ_OK);
    says(create, "");
    says("CREATE DATABASE IF NOT EXISTS c.db; CREATE TABLE IF NOT EXISTS c.db.t (id BIGINT); USE CATALOG c; USE db; USE CATALOG default_catalog;", "");
    fails("CREATE TABLE c.db.t (id BIGINT)", "sql.table-exists", 1, 14);
    static const char *const asked[] = {"CREATE TABLE IF NOT EXISTS c.db.u (id BIGINT)", "CREATE DATABASE IF NOT EXISTS c.other", "SELECT * FROM c.db.t", "INSERT INTO c.db.t VALUES (1, 'a')", "DROP TABLE c.db.t",
                                        "INSERT INTO c.db.t SELECT * FROM c.db.t", "DESCRIBE c.db.t", "SHOW TABLES IN c.db"};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        if (run(asked[i], &err) != FZ_RETRY || strcmp(err.code, "net.connect") != 0) fail_msg("%s: %s %s", asked[i], err.code, err.message);
    g.text.len = 0;
    assert_int_equal(run("EXPLAIN INSERT INTO c.db.t VALUES (1, 'a')", &err), FZ_OK); /* it is bound */
    assert_non_null(strstr(fz_buf_cstr(&g.text), "AS BIGINT) AS id"));
    fails("INSERT INTO c.db.t VALUES ('a')", "sql.column-count", 1, 20);
    cat_table_free(t);
    cat_close(h);
    cat_close(c);
    fz_arena_free(a);
    assert_int_equal(fio_delete_tree(NULL, dir, &err), FZ_OK);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {T(test_names), T(test_catalogs), T(test_like), T(test_views), T(test_settings), T(test_init_only), T(test_quit), T(test_away)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
