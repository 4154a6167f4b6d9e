/* Bounded queries from SQL text to rows: operators, groups, order, failures. */
#include "exec/exec.h"
#include "sql/sql_fn.h"
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

static fz_arena *a;
static fz_error err;
static sql_table logs, limited, view, computed, numbers, priced;
enum { BATCHES = 3, ROWS = 4 };

/* dt, hr, host, program, n, v DOUBLE, price DECIMAL(6,2): three batches of four rows, the second one as dictionaries. */
static const char *const data[BATCHES * ROWS][7] = {
    {"2026-09-16", "1", "web1", "sshd", "1", "0.5", "150"},  {"2026-09-16", "1", "web2", "cron", "2", "1.5", "250"},
    {"2026-09-16", "2", "web1", "sshd", "3", NULL, "350"},   {"2026-09-17", "1", NULL, "sshd", "4", "2.5", NULL},
    {"2026-09-17", "1", "web1", "cron", "5", "3.5", "50"},   {"2026-09-17", "1", "web1", "sshd", NULL, "-1", "75"},
    {"2026-09-17", "2", "web3", "kernel", "7", "9", "1"},    {"2026-09-17", "2", "web3", "kernel", "7", "9", "1"},
    {"2026-09-18", "0", "web2", "sshd", "0", "0", "100"},    {"2026-09-18", "0", "", "sshd", "10", "4", "200"},
    {"2026-09-18", "0", "web2", NULL, "11", "5", "300"},     {"2026-09-18", "3", "web1", "sshd", "12", "6", "400"},
};
static const col_field *fields;
static struct { const sql_plan *scan; uint32_t next; } scans[4]; /* each scan of a query reads the data from its start */

static uint32_t *position_of(const sql_plan *scan) {
    int k = 0;
    while (scans[k].scan && scans[k].scan != scan) k++;
    scans[k].scan = scan;
    return &scans[k].next;
}

static void add_text(col_builder *b, const char *s, const col_type *t) {
    int64_t n = 0;
    double d = 0;
    if (!s) col_add_null(b);
    else if (t->kind == COL_VARCHAR) col_add_bytes(b, s, strlen(s));
    else if (t->kind == COL_DOUBLE) {
        assert_true(fz_parse_f64(fz_sv_of(s), &d));
        col_add_f64(b, d);
    } else if (t->kind == COL_DATE) col_add_i64(b, 20712 + (s[9] - '6')); /* 2026-09-16 */
    else {
        assert_true(fz_parse_i64(fz_sv_of(s), &n));
        if (t->kind == COL_DECIMAL) col_add_dec(b, n);
        else col_add_i64(b, n);
    }
}
/* Ten full batches with the numbers 0..81919 in some order. */
static fz_status next_numbers(fz_arena *ba, uint32_t *at, col_vec ***cols, uint32_t *n) {
    if (*at == 10) return FZ_OK;
    *cols = FZ_ANEWN(ba, col_vec *, 1);
    (*cols)[0] = col_vec_new(ba, col_simple(COL_BIGINT, false), FZ_BATCH_ROWS);
    for (uint32_t i = 0; i < FZ_BATCH_ROWS; i++) (*cols)[0]->i64[i] = (int64_t)(*at * FZ_BATCH_ROWS + i) * 7919 % 81920;
    *n = FZ_BATCH_ROWS;
    ++*at;
    return FZ_OK;
}
static fz_status feed_next(void *cx, const sql_plan *scan, fz_arena *ba, col_vec ***cols, uint32_t *n, fz_error *e) {
    (void)cx;
    (void)e;
    uint32_t *at_batch = position_of(scan), next_batch = *at_batch;
    *n = 0;
    if (scan->table == &numbers) return next_numbers(ba, at_batch, cols, n);
    if (next_batch == BATCHES) return FZ_OK;
    *cols = FZ_ANEWN(ba, col_vec *, scan->schema->n);
    for (uint32_t c = 0; c < scan->schema->n; c++) {
        if (!scan->wanted[c]) continue;
        int at = -1;
        for (int k = 0; k < 7; k++)
            if (!strcmp(fields[k].name, scan->schema->fields[c].name)) at = k;
        assert_true(at >= 0);
        col_builder *b = col_builder_new(ba, fields[at].type);
        for (uint32_t i = 0; i < ROWS; i++) add_text(b, data[next_batch * ROWS + i][at], fields[at].type);
        (*cols)[c] = col_builder_finish(b);
        if (next_batch != 1) continue;
        col_vec *d = col_vec_dict(ba, (*cols)[c], ROWS);
        for (uint32_t i = 0; i < ROWS; i++) d->idx[i] = i;
        (*cols)[c] = d;
    }
    *n = ROWS;
    ++*at_batch;
    return FZ_OK;
}
static fz_status find(void *cx, const sql_name *n, const sql_hint *h, const sql_table **out, fz_error *e) {
    (void)cx;
    (void)h;
    const char *name = n->part[n->n - 1];
    *out = !strcmp(name, "logs") ? &logs : !strcmp(name, "recent") ? &view : !strcmp(name, "extra") ? &computed : !strcmp(name, "target") ? &limited : !strcmp(name, "numbers") ? &numbers : NULL;
    if (!*out) return fz_fail(e, FZ_USER, "sql.table-not-found", "table '%s' is not there", name);
    return FZ_OK;
}
static const sql_resolver resolver = {NULL, find};
static const sql_settings settings = {.time_zone = "UTC", .now_us = 1789689600000000}; /* 2026-09-18 */

static sql_expr *expr(const char *text) {
    sql_expr *e;
    if (sql_parse_expr(a, text, strlen(text), &e, &err) != FZ_OK) fail_msg("%s: %s", text, err.message);
    return e;
}
static int setup(void **state) {
    (void)state;
    a = fz_arena_new();
    col_field *f = FZ_ANEWN(a, col_field, 7);
    static const char *const names[] = {"dt", "hr", "host", "program", "n", "v", "price"};
    const col_type *types[] = {col_simple(COL_DATE, true), col_simple(COL_INT, true), col_string(true), col_string(true), col_simple(COL_BIGINT, true), col_simple(COL_DOUBLE, true), col_sized(a, COL_DECIMAL, 6, 2, true)};
    sql_column *c = FZ_ANEWN(a, sql_column, 9);
    for (int k = 0; k < 7; k++) {
        f[k] = (col_field){names[k], types[k], NULL};
        c[k] = (sql_column){.name = names[k], .kind = SQL_COL_PHYSICAL, .type = types[k]};
    }
    fields = f;
    logs = (sql_table){.kind = SQL_T_CONNECTOR, .path = "c.db.logs", .n_columns = 7, .columns = c};
    c[7] = (sql_column){.name = "twice", .kind = SQL_COL_COMPUTED, .expr = expr("n * 2")};
    computed = (sql_table){.kind = SQL_T_CONNECTOR, .path = "c.db.extra", .n_columns = 8, .columns = c};
    sql_query *q;
    const char *text = "SELECT host, n FROM logs WHERE n > 4";
    assert_int_equal(sql_parse_query(a, text, strlen(text), &q, &err), FZ_OK);
    static const char *const view_names[] = {"h", "num"};
    view = (sql_table){.kind = SQL_T_VIEW, .path = "c.db.recent", .view = q, .n_view_cols = 2, .view_cols = view_names};
    sql_column *one = FZ_ANEW(a, sql_column);
    *one = (sql_column){.name = "n", .kind = SQL_COL_PHYSICAL, .type = col_simple(COL_BIGINT, false)};
    numbers = (sql_table){.kind = SQL_T_CONNECTOR, .path = "c.db.numbers", .n_columns = 1, .columns = one};
    sql_column *t = FZ_ANEWN(a, sql_column, 4);
    t[0] = (sql_column){.name = "id", .kind = SQL_COL_PHYSICAL, .type = col_simple(COL_BIGINT, false)};
    t[1] = (sql_column){.name = "name", .kind = SQL_COL_PHYSICAL, .type = col_sized(a, COL_VARCHAR, 4, 0, true)};
    t[2] = (sql_column){.name = "at", .kind = SQL_COL_PHYSICAL, .type = col_simple(COL_TIMESTAMP, true)};
    static sql_column price = {.name = "price", .kind = SQL_COL_PHYSICAL};
    price.type = col_sized(a, COL_DECIMAL, 5, 2, false);
    priced = (sql_table){.kind = SQL_T_ICEBERG, .path = "c.db.priced", .n_columns = 1, .columns = &price};
    limited = (sql_table){.kind = SQL_T_ICEBERG, .path = "c.db.target", .n_columns = 3, .columns = t};
    return 0;
}
static int teardown(void **state) {
    (void)state;
    fz_arena_free(a);
    return 0;
}

static sql_plan *plan_of(const char *text) {
    sql_query *q;
    sql_plan *p;
    memset(&err, 0, sizeof err);
    fz_status s = sql_parse_query(a, text, strlen(text), &q, &err);
    if (s == FZ_OK) s = sql_bind_query(a, q, &resolver, &settings, NULL, &p, &err);
    return s == FZ_OK ? p : NULL;
}
/* Rows as "a|b;c|d". */
static char *run_plan(const sql_plan *p, bool skip, uint64_t *skipped) {
    const ex_feed feed = {NULL, feed_next};
    ex_query *q;
    fz_buf b = {0};
    memset(scans, 0, sizeof scans);
    assert_int_equal(ex_query_open(p, &settings, &feed, skip, &q, &err), FZ_OK);
    for (;;) {
        col_batch *batch;
        fz_status s = ex_query_next(q, &batch, &err);
        if (s != FZ_OK) {
            b.len = 0;
            fz_buf_printf(&b, "error %s", err.code);
            assert_int_equal(s, FZ_DATA);
            break;
        }
        if (!batch) break;
        for (uint32_t i = 0; i < batch->n_rows; i++) {
            if (b.len) fz_buf_putc(&b, ';');
            for (uint32_t c = 0; c < batch->n_cols; c++) {
                if (c) fz_buf_putc(&b, '|');
                if (col_is_null(batch->cols[c], i)) fz_buf_puts(&b, "NULL");
                else ex_value_text(&b, batch->cols[c], i, "UTC");
            }
        }
        col_batch_release(batch);
    }
    if (skipped) *skipped = ex_query_skipped(q);
    ex_query_close(q);
    (void)fz_buf_cstr(&b);
    return fz_buf_steal(&b);
}
static void gives(const char *text, const char *rows) {
    sql_plan *p = plan_of(text);
    if (!p) fail_msg("%s: %s", text, err.message);
    char *got = run_plan(p, false, NULL);
    if (strcmp(got, rows)) fail_msg("%s\n  gives %s\n  not   %s", text, got, rows);
    fz_free(got);
}
static void is_wrong(const char *text, const char *code) {
    if (plan_of(text)) fail_msg("%s was taken", text);
    if (strcmp(err.code, code)) fail_msg("%s: %s (%s), not %s", text, err.code, err.message, code);
    assert_true(err.line >= 1 && err.column >= 1);
}
static void names_are(const char *text, const char *names) {
    sql_plan *p = plan_of(text);
    assert_non_null(p);
    fz_buf b = {0};
    for (uint32_t k = 0; k < p->schema->n; k++) fz_buf_printf(&b, "%s%s", k ? "," : "", p->schema->fields[k].name);
    assert_string_equal(fz_buf_cstr(&b), names);
    fz_buf_free(&b);
}

static void test_select(void **state) {
    (void)state;
    gives("SELECT 1 + 1, 'x'", "2|x");
    gives("SELECT n, host FROM logs WHERE n >= 10", "10|;11|web2;12|web1");
    gives("SELECT n FROM logs WHERE host IS NULL OR n = 7", "4;7;7");
    gives("SELECT l.n FROM logs AS l WHERE l.n < 2", "1;0");
    gives("SELECT logs.n FROM c.db.logs WHERE c.db.logs.n < 2", "1;0");
    gives("SELECT * FROM (SELECT n * 2 AS m, host h FROM logs) WHERE m > 21 AND h LIKE 'web%'", "22|web2;24|web1");
    gives("SELECT * FROM (VALUES (1, 'a'), (2, NULL), (NULL, 'ccc')) AS t(x, y)", "1|a;2|NULL;NULL|ccc");
    gives("VALUES (1), (2.5)", "1.0;2.5");
    gives("SELECT num, h FROM recent WHERE num < 10", "5|web1;7|web3;7|web3");
    gives("SELECT twice FROM extra WHERE twice > 20", "22;24");
    gives("WITH w AS (SELECT n FROM logs WHERE n > 10), x AS (SELECT n + 1 AS n FROM w) SELECT n FROM x", "12;13");
    gives("SELECT n FROM logs WHERE n > 11 UNION ALL SELECT 1.5", "12.0;1.5");
    gives("SELECT CURRENT_DATE, current_timestamp", "2026-09-18|2026-09-18 00:00:00.000");
    names_are("SELECT n, n + 1, host h, SUM(n) OVER_ALL FROM logs GROUP BY n, host", "n,EXPR$1,h,OVER_ALL");
    names_are("SELECT * FROM logs", "dt,hr,host,program,n,v,price");
}

static void test_groups(void **state) {
    (void)state;
    gives("SELECT COUNT(*), COUNT(n), COUNT(DISTINCT n), SUM(n), MIN(n), MAX(n), AVG(n) FROM logs", "12|11|10|62|0|12|5");
    gives("SELECT COUNT(*), SUM(n), MIN(host), AVG(v) FROM logs WHERE n > 100", "0|NULL|NULL|NULL");
    gives("SELECT SUM(price), AVG(price), MIN(price), MAX(price) FROM logs", "18.77|1.706364|0.01|4.00");
    gives("SELECT MIN(host), MAX(host), MIN(v), MAX(v) FROM logs", "|web3|-1.0|9.0");
    gives("SELECT host, COUNT(*) c FROM logs GROUP BY host ORDER BY c DESC, host", "web1|5;web2|3;web3|2;NULL|1;|1");
    gives("SELECT program, SUM(n) FROM logs GROUP BY program HAVING SUM(n) > 10 ORDER BY 2 DESC", "sshd|30;kernel|14;NULL|11");
    gives("SELECT COUNT_IF(n > 5), count_if(host = 'web1'), COUNT(*) FILTER (WHERE hr = 1) FROM logs", "5|5|5");
    gives("SELECT hr + 1 AS h, COUNT(*) FROM logs GROUP BY hr + 1 ORDER BY h", "1|3;2|5;3|3;4|1");
    gives("SELECT hr + 1 AS h, COUNT(*) FROM logs GROUP BY h ORDER BY h", "1|3;2|5;3|3;4|1");
    gives("SELECT hr, COUNT(*) FROM logs GROUP BY 1 ORDER BY 1 DESC LIMIT 2", "3|1;2|3");
    gives("SELECT COUNT(*) + 1, SUM(n) / COUNT(n) FROM logs", "13|5");
    gives("SELECT DISTINCT dt FROM logs ORDER BY dt DESC", "2026-09-18;2026-09-17;2026-09-16");
    gives("SELECT DISTINCT UPPER(program) FROM logs WHERE program IS NOT NULL", "SSHD;CRON;KERNEL");
    gives("SELECT COUNT(*) FROM (SELECT host, program FROM logs GROUP BY host, program)", "8");
    gives("SELECT SUM(DISTINCT n), COUNT(DISTINCT program) FROM logs", "55|3");
    gives("SELECT MAX(n) FROM logs HAVING COUNT(*) > 100", "");
}

/* The checks of the articles. */
static void test_article_checks(void **state) {
    (void)state;
    gives("SELECT dt, hr, COUNT(*) AS cnt, MIN(n) AS min_ts, MAX(n) AS max_ts FROM logs.logs GROUP BY dt, hr ORDER BY dt DESC, hr DESC LIMIT 24",
          "2026-09-18|3|1|12|12;2026-09-18|0|3|0|11;2026-09-17|2|2|7|7;2026-09-17|1|3|4|5;2026-09-16|2|1|3|3;2026-09-16|1|2|1|2");
    gives("SELECT host, program, COUNT(*) AS cnt FROM logs WHERE dt = current_date GROUP BY host, program ORDER BY cnt DESC", "web2|sshd|1;|sshd|1;web2|NULL|1;web1|sshd|1");
    gives("SELECT count(*) AS total, count_if(program IN ('sshd','cron')) AS a, count_if(program NOT IN ('sshd','cron')) AS b FROM \"logs\"", "12|9|2");
}

static void test_order(void **state) {
    (void)state;
    gives("SELECT n FROM logs ORDER BY n", "NULL;0;1;2;3;4;5;7;7;10;11;12");
    gives("SELECT n FROM logs ORDER BY n DESC LIMIT 3", "12;11;10");
    gives("SELECT n FROM logs ORDER BY n DESC NULLS FIRST LIMIT 2", "NULL;12");
    gives("SELECT n FROM logs ORDER BY n NULLS LAST LIMIT 2 OFFSET 10", "12;NULL");
    gives("SELECT host FROM logs ORDER BY hr DESC, n DESC LIMIT 3", "web1;web3;web3");
    gives("SELECT n AS k FROM logs ORDER BY -n LIMIT 2", "NULL;12");
    gives("SELECT n FROM logs LIMIT 5 OFFSET 6", "7;7;0;10;11");
    gives("SELECT n FROM logs LIMIT 0", "");
    gives("SELECT n FROM logs WHERE n > 10 UNION ALL SELECT n FROM logs WHERE n < 2 ORDER BY n LIMIT 3", "0;1;11");
    gives("SELECT program FROM logs GROUP BY program ORDER BY COUNT(*) DESC, program", "sshd;cron;kernel;NULL");
}

static void test_many_rows(void **state) {
    (void)state;
    gives("SELECT n FROM numbers ORDER BY n DESC LIMIT 3", "81919;81918;81917");
    gives("SELECT n FROM numbers ORDER BY n % 10, n LIMIT 2 OFFSET 1", "10;20");
    gives("SELECT n FROM numbers ORDER BY n LIMIT 1 OFFSET 50000", "50000");
    gives("SELECT COUNT(*), COUNT(DISTINCT n), SUM(n), MIN(n), MAX(n) FROM numbers", "81920|81920|3355402240|0|81919");
    gives("SELECT n / 20000 AS k, COUNT(*) FROM numbers GROUP BY n / 20000 ORDER BY k", "0|20000;1|20000;2|20000;3|20000;4|1920");
    gives("SELECT COUNT(*) FROM (SELECT DISTINCT n FROM numbers)", "81920");
    gives("SELECT COUNT(*) FROM (SELECT n FROM numbers WHERE n % 2 = 1 LIMIT 30000)", "30000");
}

static void test_failing_rows(void **state) {
    (void)state;
    gives("SELECT 10 / n FROM logs WHERE n > 4", "2;1;1;1;0;0");
    gives("SELECT CASE WHEN n = 0 THEN -1 ELSE 10 / n END FROM logs WHERE hr = 0", "-1;1;0");
    gives("SELECT n FROM logs WHERE n <> 0 AND 10 / n > 4", "1;2");
    gives("SELECT n FROM logs WHERE n = 0 OR 10 / n > 4", "1;2;0");
    gives("SELECT COALESCE(n, 10 / 0) FROM logs WHERE n = 1", "1");
    gives("SELECT 10 / n FROM logs", "error arithmetic.divide-by-zero");
    sql_plan *p = plan_of("SELECT 10 / n FROM logs");
    uint64_t skipped = 0;
    char *rows = run_plan(p, true, &skipped);
    assert_string_equal(rows, "10;5;3;2;2;NULL;1;1;1;0;0");
    assert_int_equal(skipped, 1);
    fz_free(rows);
    p = plan_of("SELECT * FROM (VALUES (1), (CAST('x' AS INT)), (3)) AS t(a)");
    rows = run_plan(p, true, &skipped);
    assert_string_equal(rows, "1;3");
    assert_int_equal(skipped, 1);
    fz_free(rows);
}

static void test_wrong_queries(void **state) {
    (void)state;
    is_wrong("SELECT x FROM logs", "sql.unknown-column");
    is_wrong("SELECT n FROM nowhere", "sql.table-not-found");
    is_wrong("SELECT q.n FROM logs", "sql.unknown-column");
    is_wrong("SELECT n FROM logs WHERE n", "sql.type-mismatch");
    is_wrong("SELECT n, COUNT(*) FROM logs", "sql.not-grouped");
    is_wrong("SELECT SUM(COUNT(n)) FROM logs", "sql.nested-aggregate");
    is_wrong("SELECT n FROM logs WHERE SUM(n) > 1", "sql.aggregate-not-allowed");
    is_wrong("SELECT n FROM logs GROUP BY SUM(n)", "sql.aggregate-not-allowed");
    is_wrong("SELECT * FROM logs GROUP BY n", "sql.not-grouped");
    is_wrong("SELECT n FROM logs ORDER BY 2", "sql.ordinal");
    is_wrong("SELECT n FROM logs GROUP BY 3", "sql.ordinal");
    is_wrong("SELECT DISTINCT n FROM logs ORDER BY host", "sql.order-by");
    is_wrong("SELECT n FROM logs UNION ALL SELECT n, n FROM logs", "sql.column-count");
    is_wrong("SELECT n FROM logs UNION ALL SELECT host FROM logs", "sql.type-mismatch");
    is_wrong("SELECT SUM(host) FROM logs", "sql.type-mismatch");
    is_wrong("SELECT LISTAGG(host) FROM logs", "sql.function-unavailable");
    is_wrong("SELECT a FROM (SELECT n AS a, hr AS a FROM logs)", "sql.ambiguous-column");
    is_wrong("SELECT * FROM (VALUES (1, 2)) AS t(x)", "sql.column-count");
}

static sql_plan *insert_plan(const char *text) {
    sql_piece piece = {text, strlen(text), {1, 1}};
    sql_stmt *s;
    sql_plan *p;
    memset(&err, 0, sizeof err);
    fz_status st = sql_parse(a, &piece, &s, &err);
    if (st == FZ_OK) st = sql_bind_insert(a, s, strcmp(s->name.part[0], "priced") ? &limited : &priced, &resolver, &settings, &p, &err);
    return st == FZ_OK ? p : NULL;
}
static void stores(const char *text, const char *rows) {
    sql_plan *p = insert_plan(text);
    if (!p) fail_msg("%s: %s", text, err.message);
    char *got = run_plan(p, false, NULL);
    if (strcmp(got, rows)) fail_msg("%s\n  gives %s\n  not   %s", text, got, rows);
    fz_free(got);
}
static void cannot_store(const char *text, const char *code) {
    if (insert_plan(text)) fail_msg("%s was taken", text);
    if (strcmp(err.code, code)) fail_msg("%s: %s (%s), not %s", text, err.code, err.message, code);
    assert_true(err.line >= 1);
}
static void test_insert(void **state) {
    (void)state;
    stores("INSERT INTO target SELECT hr, host, TIMESTAMP '2026-01-01 00:00:00' FROM logs WHERE n = 1", "1|web1|2026-01-01 00:00:00.000000");
    stores("INSERT INTO target (name, id) VALUES ('a long name', 7), (NULL, 8)", "7|a lo|NULL;8|NULL|NULL");
    stores("INSERT INTO target SELECT n, host, NULL FROM logs WHERE host = 'web1' AND hr = 1", "error not-null");
    stores("INSERT INTO priced SELECT CAST(1 AS DECIMAL(5, 2))", "1.00");
    stores("INSERT INTO priced SELECT CAST(12345 AS DECIMAL(5, 2))", "error not-null"); /* does not fit, and is NULL */
    cannot_store("INSERT INTO target SELECT host, host, NULL FROM logs", "sql.type-mismatch");
    cannot_store("INSERT INTO target SELECT n, host FROM logs", "sql.column-count");
    cannot_store("INSERT INTO target (name) VALUES ('x')", "sql.not-null");
    cannot_store("INSERT INTO target (id, nome) VALUES (1, 'x')", "sql.unknown-column");
    cannot_store("INSERT INTO target (id, id) VALUES (1, 2)", "sql.column-twice");
    cannot_store("INSERT INTO target VALUES (TRUE, 'x', NULL)", "sql.type-mismatch");
}

static void test_explain(void **state) {
    (void)state;
    sql_plan *p = plan_of("SELECT host, COUNT(*) FROM logs WHERE n > 1.5 GROUP BY host ORDER BY 2 DESC LIMIT 3");
    fz_buf b = {0};
    sql_plan_text(&b, p);
    assert_string_equal(fz_buf_cstr(&b), "Limit [3]\n"
                                         "  Sort [EXPR$1 DESC NULLS LAST]\n"
                                         "    Project [host, COUNT(*) AS EXPR$1]\n"
                                         "      Aggregate [host; COUNT(*)]\n"
                                         "        Filter [(CAST(n AS DECIMAL(20, 1)) > CAST(1.5 AS DECIMAL(20, 1)))]\n"
                                         "          Scan c.db.logs [host, n]\n");
    fz_buf_free(&b);
}

static void json_is(const char *text, const char *json) {
    sql_plan *p = plan_of(text);
    if (!p) fail_msg("%s: %s", text, err.message);
    ex_query *q;
    col_batch *batch;
    assert_int_equal(ex_query_open(p, &settings, NULL, false, &q, &err), FZ_OK);
    assert_int_equal(ex_query_next(q, &batch, &err), FZ_OK);
    fz_buf b = {0};
    ex_value_json(&b, batch->cols[0], 0, "UTC");
    assert_string_equal(fz_buf_cstr(&b), json);
    fz_buf_free(&b);
    col_batch_release(batch);
    ex_query_close(q);
}
static void test_json(void **state) {
    (void)state;
    json_is("SELECT 1", "1");
    json_is("SELECT 1.50", "\"1.50\"");
    json_is("SELECT CAST(1.5 AS DOUBLE)", "1.5");
    json_is("SELECT CAST('NaN' AS DOUBLE)", "\"NaN\"");
    json_is("SELECT TRUE", "true");
    json_is("SELECT 'a\"b'", "\"a\\\"b\"");
    json_is("SELECT CAST(NULL AS INT)", "null");
    json_is("SELECT TIMESTAMP '2026-01-01 00:00:00'", "\"2026-01-01 00:00:00\"");
    json_is("SELECT CAST('ab' AS BYTES)", "\"YWI=\"");
    json_is("SELECT ARRAY[1, NULL, 3]", "[1,null,3]");
    json_is("SELECT MAP['k', 1, 'l', 2]", "{\"k\":1,\"l\":2}");
    json_is("SELECT ROW(1, 'x')", "{\"EXPR$0\":1,\"EXPR$1\":\"x\"}");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_select), cmocka_unit_test(test_groups), cmocka_unit_test(test_article_checks), cmocka_unit_test(test_order), cmocka_unit_test(test_many_rows), cmocka_unit_test(test_failing_rows),
                                       cmocka_unit_test(test_wrong_queries), cmocka_unit_test(test_insert), cmocka_unit_test(test_explain), cmocka_unit_test(test_json)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
