/* The doctor's plan of a script: what it needs, and that nothing is made on the way. */
#include "unit.h"
#include "ops/doctor.h"
#include "session/session.h"
#include <stdlib.h>
#include <unistd.h>

#define CATALOG "CREATE CATALOG c WITH ('type'='iceberg','catalog-type'='sql','uri'='sqlite:////tmp/frazil-plan/none.db','warehouse'='file:///tmp/frazil-plan/wh');\n"
#define SOURCE "CREATE TEMPORARY TABLE src (id BIGINT, host STRING) WITH ('connector'='datagen','number-of-rows'='3');\n"

static ops_plan *p;
static fz_error e;

static fz_status plan(const char *text) {
    conf *c = conf_new();
    ses_script script = {.name = "/x/job.sql", .text = text, .len = strlen(text)};
    e = (fz_error){0};
    p = NULL;
    fz_log_set_level(FZ_LOG_OFF);
    fz_status rc = ses_plan_script(c, &script, &p, &e);
    conf_free(c);
    return rc;
}
static void done(void) {
    ses_plan_free(p);
    p = NULL;
    assert_int_not_equal(access("/tmp/frazil-plan", F_OK), 0); /* nothing outside the process is touched */
}
static void good(const char *text) {
    if (plan(text) != FZ_OK) fail_msg("%s (%s) at %d:%d", e.message, e.code, e.line, e.column);
}
static void bad(const char *text, const char *code, int line) {
    assert_int_equal(plan(text), FZ_USER);
    assert_string_equal(e.code, code);
    assert_int_equal(e.line, line);
}

static void whole_job(void **state) {
    (void)state;
    good("SET 'parallelism.default' = '2';\n" CATALOG "CREATE DATABASE IF NOT EXISTS c.db;\n"
         "CREATE TABLE IF NOT EXISTS c.db.t (id BIGINT, host STRING, d DATE) PARTITIONED BY (d, bucket(4, id)) WITH ('location'='file:///tmp/frazil-plan/t');\n" SOURCE
         "STATEMENT SET BEGIN INSERT INTO c.db.t SELECT id, host, CURRENT_DATE FROM src; INSERT INTO c.db.u (host) SELECT host FROM src; END;\n"
         "SET 'pipeline.name' = 'other';\nINSERT INTO c.db.t SELECT id, host, CAST(NULL AS DATE) FROM src;\n");
    assert_int_equal(p->n_catalogs, 1);
    assert_string_equal(p->catalogs[0].name, "c");
    assert_string_equal(fz_pair_get(p->catalogs[0].options, p->catalogs[0].n_options, "warehouse"), "file:///tmp/frazil-plan/wh");
    assert_int_equal(p->n_databases, 1);
    assert_true(p->databases[0].made);
    assert_int_equal(p->n_tables, 2);
    assert_string_equal(p->tables[0].text, "c.db.t");
    assert_true(p->tables[0].written && !p->tables[0].read);
    assert_int_equal(p->tables[0].declared->n, 3);
    assert_string_equal(p->tables[0].location, "file:///tmp/frazil-plan/t");
    assert_null(p->tables[1].declared);
    assert_int_equal(p->n_sources, 1); /* one table, read by three INSERTs */
    assert_int_equal(p->n_inserts, 3);
    assert_int_equal(p->inserts[0].statement, p->inserts[1].statement);
    assert_int_not_equal(p->inserts[1].statement, p->inserts[2].statement);
    assert_string_equal(p->inserts[0].pipeline, "job.sql");
    assert_string_equal(p->inserts[2].pipeline, "other");
    assert_false(conf_is_set(p->inserts[0].settings, "pipeline.name"));
    assert_int_equal(p->inserts[0].query->n, 3);
    assert_int_equal(p->inserts[1].n_columns, 1);
    assert_string_equal(p->inserts[1].columns[0], "host");
    done();
}

static void names_follow_use(void **state) {
    (void)state;
    good(CATALOG "USE CATALOG c;\nUSE db;\nCREATE TEMPORARY TABLE src (id BIGINT) WITH ('connector'='datagen','number-of-rows'='3');\nINSERT INTO t SELECT id FROM src;\nINSERT INTO `default`.u SELECT id FROM c.db.src;\n");
    assert_string_equal(p->tables[0].text, "c.db.t");
    assert_string_equal(p->tables[1].text, "c.default.u");
    assert_false(p->databases[p->tables[0].database].made);
    done();
}

static void tables_that_are_read(void **state) {
    (void)state;
    good(CATALOG "CREATE TEMPORARY VIEW v AS SELECT id FROM c.db.a;\nINSERT INTO c.db.b SELECT id FROM v;\n");
    assert_int_equal(p->n_tables, 2);
    assert_true(p->tables[0].read && !p->tables[0].written);
    assert_null(p->inserts[0].query); /* not known before c.db.a has been looked at */
    done();
    good(CATALOG "CREATE TABLE c.db.a (id BIGINT);\nINSERT INTO c.db.b SELECT id FROM c.db.a;\n");
    assert_int_equal(p->inserts[0].query->n, 1); /* the script says what it looks like */
    assert_true(p->tables[0].read);
    done();
}

static void deliveries_are_needs(void **state) {
    (void)state;
    good(SOURCE "CREATE TEMPORARY TABLE hole (id BIGINT) WITH ('connector'='blackhole');\nCREATE TEMPORARY TABLE arc (id BIGINT) WITH ('connector'='firehose-s3','path'='/tmp/frazil-plan/arc');\n"
         "SET 'pipeline.name' = 'p';\nSTATEMENT SET BEGIN INSERT INTO hole SELECT id FROM src; INSERT INTO arc SELECT id FROM src; END;\n");
    assert_int_equal(p->n_deliveries, 2);
    assert_int_equal(p->n_sources, 1);
    assert_string_equal(p->deliveries[0].target->path, "default_catalog.default_database.hole");
    assert_string_equal(fz_pair_get(p->deliveries[1].target->options, p->deliveries[1].target->n_options, "path"), "/tmp/frazil-plan/arc");
    assert_string_equal(conf_get(p->deliveries[1].settings, "pipeline.name"), "p");
    done();
    bad("CREATE TEMPORARY TABLE in_ (m STRING) WITH ('connector'='http','listen'='0.0.0.0:1');\nCREATE TEMPORARY TABLE hole (m STRING) WITH ('connector'='blackhole');\nINSERT INTO hole SELECT m FROM in_;\n", "listen.open", 3);
}

static void dropped_names_live_on(void **state) {
    (void)state;
    good(CATALOG SOURCE "INSERT INTO c.db.t SELECT id FROM src;\nDROP TEMPORARY TABLE src;\nDROP TABLE c.db.t;\n"
         "CREATE TEMPORARY TABLE src (id INT) WITH ('connector'='datagen','number-of-rows'='3');\nINSERT INTO c.db.u SELECT id FROM src;\n");
    assert_int_equal(p->n_inserts, 2);
    assert_int_equal(p->inserts[0].query->fields[0].type->kind, COL_BIGINT);
    assert_int_equal(p->inserts[1].query->fields[0].type->kind, COL_INT);
    assert_int_equal(p->n_notes, 1);
    assert_non_null(strstr(p->notes[0], "DROP TABLE c.db.t is not executed"));
    done();
}

static void other_statements(void **state) {
    (void)state;
    good(CATALOG "SHOW DATABASES IN c;\nSHOW TABLES;\nDESCRIBE c.db.t;\nEXPLAIN SELECT 1;\nSELECT 1;\nQUIT;\n");
    assert_int_equal(p->n_inserts, 0);
    done();
    good("INSERT INTO `s3tablescatalog/logs`.ns.t VALUES (1);"); /* a table bucket by the name of the account's catalog */
    assert_string_equal(p->catalogs[0].bucket, "logs");
    assert_string_equal(p->tables[0].text, "s3tablescatalog/logs.ns.t");
    done();
}

static void wrong_scripts(void **state) {
    (void)state;
    bad(CATALOG "INSERT INTO c.db.t SELEKT 1;", "sql.syntax", 2);
    bad(CATALOG "\nINSERT INTO c.db.t SELECT x FROM nowhere;", "sql.table-not-found", 3);
    bad(CATALOG SOURCE "INSERT INTO c.db.t SELECT idd FROM src;", "sql.unknown-column", 3);
    bad("INSERT INTO d.db.t SELECT 1;", "sql.catalog-not-found", 1);
    bad("CREATE CATALOG c WITH ('type'='iceberg','catalog-type'='sql','uri'='sqlite:////tmp/frazil-plan/x.db','warehause'='file:///x');", "catalog.option", 1);
    bad(SOURCE "INSERT INTO src SELECT 1, 'a';", "sql.unsupported", 2);
    bad(CATALOG "CREATE TABLE c.db.t (id BIGINT) PARTITIONED BY (hours(id));", "iceberg.partition", 2);
    bad(CATALOG "CREATE TEMPORARY TABLE s (id INT) WITH ('connector'='kafka','topic'='t','properties.bootstrap.servers'='b:1','scan.startup.mode'='earliest-offset','format'='json','json.no-such'='1');\nINSERT INTO c.db.t SELECT id FROM s;",
        "option.unknown", 2);
    bad("SET 'execution.checkpointing.intervall' = '1 s';", "config.unknown-key", 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(whole_job), cmocka_unit_test(names_follow_use), cmocka_unit_test(tables_that_are_read), cmocka_unit_test(deliveries_are_needs), cmocka_unit_test(dropped_names_live_on),
                                       cmocka_unit_test(other_statements), cmocka_unit_test(wrong_scripts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
