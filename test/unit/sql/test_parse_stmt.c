/* Statements: the scripts of the tutorial as they stand, each kind of statement, refused features by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include "sql/sql.h"

static fz_arena *arena;
static int setup(void **state) { (void)state; arena = fz_arena_new(); return 0; }
static int teardown(void **state) { (void)state; fz_arena_free(arena); return 0; }

static sql_stmt *parse(const char *text) {
    fz_error err;
    sql_stmt *s;
    sql_piece piece = {text, strlen(text), {1, 1}};
    if (sql_parse(arena, &piece, &s, &err) != FZ_OK) fail_msg("%s: %s at %d:%d", text, err.message, err.line, err.column);
    return s;
}

static void fails(const char *text, const char *code, int line, int column, const char *part) {
    fz_error err;
    sql_stmt *s;
    sql_piece piece = {text, strlen(text), {1, 1}};
    assert_int_equal(sql_parse(arena, &piece, &s, &err), FZ_USER);
    assert_string_equal(err.code, code);
    if (!strstr(err.message, part)) fail_msg("%s: \"%s\" lacks \"%s\"", text, err.message, part);
    assert_int_equal(err.line, line);
    assert_int_equal(err.column, column);
}

static uint32_t parse_file(const char *path, sql_stmt **last) {
    fz_error err;
    char *script = fz_arena_alloc(arena, 1 << 16);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t n = fread(script, 1, 1 << 16, f);
    fclose(f);
    sql_piece *p;
    uint32_t n_pieces;
    assert_int_equal(sql_split(arena, script, n, &p, &n_pieces, &err), FZ_OK);
    for (uint32_t i = 0; i < n_pieces; i++)
        if (sql_parse(arena, &p[i], last, &err) != FZ_OK) fail_msg("%s:%d:%d: %s", path, err.line, err.column, err.message);
    return n_pieces;
}

static void test_tutorial_scripts(void **state) {
    (void)state;
    sql_stmt *s;
    assert_int_equal(parse_file("test/data/sql/check_aws_glue.sql", &s), 2);
    assert_int_equal(s->kind, SQL_S_SHOW_DATABASES);
    assert_string_equal(s->name.part[0], "glue_prod");
    assert_int_equal(parse_file("test/data/sql/create_aws_iceberg_tables.sql", &s), 4);
    assert_int_equal(s->kind, SQL_S_CREATE_TABLE);
    assert_true(s->if_not_exists);
    assert_int_equal(s->n_columns, 7);
    assert_int_equal(s->n_partition, 2);
    assert_string_equal(s->partition[1]->col.part[0], "host");
    assert_int_equal(s->n_options, 4);
    assert_int_equal(parse_file("test/data/sql/kafka_to_aws_iceberg.sql", &s), 6);
    assert_int_equal(s->kind, SQL_S_STATEMENT_SET);
    assert_int_equal(s->n_stmts, 2);
    assert_string_equal(s->stmts[1]->name.part[2], "authlog_events");
    assert_int_equal(s->stmts[1]->query->n_items, 7);
    assert_string_equal(s->stmts[0]->query->items[0].alias, "ts_raw");
    assert_int_equal(s->stmts[0]->pos.line, 44);
    assert_int_equal(s->stmts[0]->pos.column, 1);
    assert_int_equal(parse_file("test/data/sql/athena_checks.sql", &s), 2);
    assert_int_equal(s->query->n_group, 2);
    assert_true(s->query->order[0].desc);
}

static void test_set(void **state) {
    (void)state;
    sql_stmt *s = parse("SET 'a.b' = 'it''s'");
    assert_string_equal(s->key, "a.b");
    assert_string_equal(s->value, "it's");
    s = parse("SET table.local-time-zone = Asia/Tokyo;");
    assert_string_equal(s->key, "table.local-time-zone");
    assert_string_equal(s->value, "Asia/Tokyo");
    assert_null(parse("SET")->key);
    assert_string_equal(parse("RESET 'k'")->key, "k");
    assert_null(parse("RESET;")->key);
    fails("SET 'a'", "sql.syntax", 1, 8, "\"=\"");
}

static void test_create_table(void **state) {
    (void)state;
    sql_stmt *s = parse("CREATE TEMPORARY TABLE `my db`.t (\n id BIGINT NOT NULL COMMENT 'the id', off BIGINT METADATA FROM 'offset' VIRTUAL, topic STRING METADATA,\n"
                        " twice AS id * 2 COMMENT 'c', ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND,\n"
                        " CONSTRAINT pk PRIMARY KEY (id) NOT ENFORCED) COMMENT 'tab' PARTITIONED BY (id, bucket(16, id), year(ts), truncate(10, `my c`)) WITH ('connector' = 'kafka')");
    assert_true(s->temporary);
    assert_string_equal(s->name.part[0], "my db");
    assert_int_equal(s->n_columns, 5);
    assert_false(s->columns[0].type->nullable);
    assert_string_equal(s->columns[0].comment, "the id");
    assert_int_equal(s->columns[1].kind, SQL_COL_METADATA);
    assert_string_equal(s->columns[1].metadata_key, "offset");
    assert_true(s->columns[1].is_virtual);
    assert_string_equal(s->columns[2].metadata_key, "topic");
    assert_int_equal(s->columns[3].kind, SQL_COL_COMPUTED);
    assert_string_equal(s->columns[3].expr_text, "id * 2");
    assert_string_equal(s->watermark_text, "ts - INTERVAL '5' SECOND");
    assert_int_equal(s->n_pk, 1);
    assert_true(s->pk_not_enforced);
    assert_string_equal(s->comment, "tab");
    assert_int_equal(s->n_partition, 4);
    assert_string_equal(s->partition[2]->fn, "YEAR");
    s = parse("CREATE TABLE IF NOT EXISTS b LIKE c.d (INCLUDING ALL EXCLUDING OPTIONS)");
    assert_int_equal(s->like->n_options, 2);
    assert_string_equal(s->like->options[1], "EXCLUDING OPTIONS");
    s = parse("CREATE TABLE t (a INT PRIMARY KEY NOT ENFORCED, b INT) WITH ('x'='y') LIKE z");
    assert_string_equal(s->pk[0], "a");
    fails("CREATE TABLE t (a INT, value STRING)", "sql.syntax", 1, 24, "\"value\"");
    fails("CREATE TABLE t (a INT, a STRING)", "sql.syntax", 1, 24, "twice");
    fails("CREATE TABLE t (a INT, PRIMARY KEY (b) NOT ENFORCED)", "sql.syntax", 1, 1, "\"b\"");
    s = parse("CREATE TABLE t (a INT) WITH ('k'='1', 'l'='3', 'k'='2')"); /* the last one counts */
    assert_int_equal(s->n_options, 2);
    assert_string_equal(fz_pair_get(s->options, s->n_options, "k"), "2");
    assert_int_equal(parse("CREATE TABLE t (a INT) WITH ()")->n_options, 0);
    fails("CREATE TABLE t (a INT, PRIMARY KEY (a))", "sql.unsupported", 1, 24, "enforced");
    fails("CREATE TABLE t (a INT, WATERMARK FOR b AS b)", "sql.syntax", 1, 24, "WATERMARK");
    fails("CREATE TABLE t (a ROW<x INT COMMENT 'c'>)", "sql.syntax", 1, 29, "COMMENT");
    fails("CREATE TABLE t AS SELECT 1", "sql.unsupported", 1, 16, "AS SELECT");
    fails("CREATE TABLE t (a INT) DISTRIBUTED BY (a) INTO 4 BUCKETS", "sql.unsupported", 1, 24, "DISTRIBUTED");
    fails("CREATE TABLE t (a INT", "sql.syntax", 1, 22, "the end of the statement");
}

static void test_queries(void **state) {
    (void)state;
    sql_query *q = parse("SELECT DISTINCT a.*, b AS c, d e FROM x.y AS a /*c*/ WHERE f GROUP BY 1, g HAVING h ORDER BY i DESC NULLS LAST, j LIMIT 5 OFFSET 2")->query;
    assert_true(q->distinct);
    assert_int_equal(q->items[0].expr->kind, SQL_X_STAR);
    assert_string_equal(q->items[0].expr->col.part[0], "a");
    assert_string_equal(q->items[2].alias, "e");
    assert_string_equal(q->from.alias, "a");
    assert_int_equal(q->order[0].nulls_first, 0);
    assert_int_equal(q->order[1].nulls_first, -1);
    assert_string_equal(q->limit->text, "5");
    assert_string_equal(q->offset->text, "2");
    q = parse("VALUES (1, 'a'), ROW(2, 'b')")->query;
    assert_int_equal(q->from.kind, SQL_FROM_VALUES);
    assert_int_equal(q->from.n_rows, 2);
    q = parse("SELECT * FROM (VALUES (1, 'a')) AS t(x, y)")->query;
    assert_int_equal(q->from.n_alias_cols, 2);
    q = parse("SELECT 1 UNION ALL (SELECT 2 LIMIT 1) UNION ALL SELECT 3 ORDER BY 1 LIMIT 2")->query;
    assert_string_equal(q->limit->text, "2");
    assert_int_equal(q->union_all->from.kind, SQL_FROM_QUERY);
    assert_non_null(q->union_all->union_all);
    assert_int_equal(q->n_order, 1);
    q = parse("WITH a AS (SELECT 1), b(x) AS (SELECT 2) SELECT * FROM b")->query;
    assert_int_equal(q->n_with, 2);
    q = parse("SELECT * FROM t /*+ OPTIONS('scan.startup.mode'='latest-offset') */ AS u")->query;
    assert_string_equal(fz_pair_get(q->from.hint.options, q->from.hint.n, "scan.startup.mode"), "latest-offset");
    assert_string_equal(q->from.alias, "u");
    fails("SELECT * FROM a JOIN b ON a.x = b.x", "sql.unsupported", 1, 17, "JOIN");
    fails("SELECT * FROM a x LEFT JOIN b ON TRUE", "sql.unsupported", 1, 19, "JOIN");
    fails("SELECT * FROM a, b", "sql.unsupported", 1, 16, "join");
    fails("SELECT 1 UNION SELECT 2", "sql.unsupported", 1, 10, "UNION");
    fails("SELECT 1 INTERSECT SELECT 2", "sql.unsupported", 1, 10, "INTERSECT");
    fails("SELECT a FROM t GROUP BY GROUPING SETS (a)", "sql.unsupported", 1, 26, "GROUPING");
    fails("SELECT a FROM t MATCH_RECOGNIZE (x)", "sql.unsupported", 1, 17, "MATCH_RECOGNIZE");
    fails("SELECT a FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(x), INTERVAL '1' DAY))", "sql.unsupported", 1, 15, "TABLE");
    fails("SELECT a FROM t FOR SYSTEM_TIME AS OF x", "sql.unsupported", 1, 17, "SYSTEM_TIME");
    fails("VALUES (1), (1, 2)", "sql.syntax", 1, 13, "differ in length");
    fails("SELECT\n  a,\n  FROM t", "sql.syntax", 3, 3, "\"FROM\"");
    fails("SELEC 1", "sql.syntax", 1, 1, "SELEC");
    fails("SELECT a FROM t WHERE", "sql.syntax", 1, 22, "expected an expression");
}

static void test_insert(void **state) {
    (void)state;
    sql_stmt *s = parse("INSERT INTO c.d.t (a, b) SELECT 1, 2");
    assert_int_equal(s->n_insert_cols, 2);
    s = parse("INSERT INTO t (SELECT 1)");
    assert_int_equal(s->n_insert_cols, 0);
    s = parse("INSERT OVERWRITE t PARTITION (dt = '2026-01-01') VALUES (1)");
    assert_true(s->overwrite);
    assert_string_equal(s->partition_values[0].value, "'2026-01-01'");
    s = parse("INSERT INTO t /*+ OPTIONS('a'='b') */ WITH q AS (SELECT 1) SELECT * FROM q");
    assert_int_equal(s->hint.n, 1);
    s = parse("EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; INSERT INTO b VALUES (2); END");
    assert_int_equal(s->n_stmts, 2);
    s = parse("BEGIN STATEMENT SET; INSERT INTO a SELECT 1; END;");
    assert_int_equal(s->n_stmts, 1);
    assert_string_equal(s->stmts[0]->text, "INSERT INTO a SELECT 1");
    fails("STATEMENT SET BEGIN END", "sql.syntax", 1, 1, "no INSERT");
    fails("STATEMENT SET BEGIN SELECT 1; END", "sql.syntax", 1, 21, "INSERT or END");
    fails("STATEMENT SET BEGIN INSERT INTO a SELECT 1;", "sql.syntax", 1, 43, "expected END");
}

static void test_other_statements(void **state) {
    (void)state;
    static const struct { const char *text; sql_stmt_kind kind; } t[] = {
        {"CREATE CATALOG c WITH ('type'='iceberg')", SQL_S_CREATE_CATALOG}, {"USE CATALOG c", SQL_S_USE_CATALOG}, {"DROP CATALOG IF EXISTS c", SQL_S_DROP_CATALOG},
        {"CREATE DATABASE IF NOT EXISTS c.d COMMENT 'x' WITH ('a'='b')", SQL_S_CREATE_DATABASE}, {"USE c.d", SQL_S_USE}, {"DROP DATABASE d CASCADE", SQL_S_DROP_DATABASE},
        {"DROP TEMPORARY TABLE IF EXISTS t", SQL_S_DROP_TABLE}, {"CREATE TEMPORARY VIEW v (a) COMMENT 'c' AS SELECT 1", SQL_S_CREATE_VIEW},
        {"DROP VIEW v", SQL_S_DROP_VIEW}, {"SHOW CATALOGS", SQL_S_SHOW_CATALOGS}, {"SHOW TABLES IN c.d LIKE 'a%'", SQL_S_SHOW_TABLES},
        {"SHOW DATABASES FROM c NOT LIKE 'x'", SQL_S_SHOW_DATABASES}, {"SHOW VIEWS", SQL_S_SHOW_VIEWS}, {"SHOW CREATE TABLE t", SQL_S_SHOW_CREATE_TABLE},
        {"SHOW CREATE VIEW t", SQL_S_SHOW_CREATE_VIEW}, {"SHOW CURRENT CATALOG", SQL_S_SHOW_CURRENT_CATALOG}, {"SHOW CURRENT DATABASE", SQL_S_SHOW_CURRENT_DATABASE},
        {"SHOW FUNCTIONS", SQL_S_SHOW_FUNCTIONS}, {"DESC EXTENDED t", SQL_S_DESCRIBE}, {"DESCRIBE a.b.c", SQL_S_DESCRIBE}, {"EXPLAIN PLAN FOR SELECT 1", SQL_S_EXPLAIN},
        {"EXPLAIN INSERT INTO t SELECT 1", SQL_S_EXPLAIN}, {"SHOW COLUMNS FROM t LIKE 'a%'", SQL_S_DESCRIBE}, {"quit;", SQL_S_QUIT}, {"EXIT", SQL_S_QUIT}, {"HELP", SQL_S_HELP}, {"CLEAR", SQL_S_CLEAR}, {"(SELECT 1)", SQL_S_SELECT}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) assert_int_equal(parse(t[i].text)->kind, t[i].kind);
    fails("ALTER TABLE t RENAME TO u", "sql.unsupported", 1, 1, "ALTER TABLE");
    fails("CREATE FUNCTION f AS 'x'", "sql.unsupported", 1, 8, "FUNCTION");
    fails("CREATE OR REPLACE TABLE t (a INT)", "sql.unsupported", 1, 8, "OR REPLACE");
    fails("DROP CATALOG", "sql.syntax", 1, 13, "the catalog's name");
    fails("USE CATALOG a extra", "sql.syntax", 1, 15, "the end of the statement");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_tutorial_scripts, setup, teardown), cmocka_unit_test_setup_teardown(test_set, setup, teardown),
        cmocka_unit_test_setup_teardown(test_create_table, setup, teardown), cmocka_unit_test_setup_teardown(test_queries, setup, teardown),
        cmocka_unit_test_setup_teardown(test_insert, setup, teardown), cmocka_unit_test_setup_teardown(test_other_statements, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
