/* Programs of streaming INSERTs: what stays in dictionary form, what is shared, which rows are rejected. */
#include "exec/exec.h"
#include "exec/exec_int.h"
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

static fz_arena *a;
static fz_error err;
static sql_table table;
static const sql_settings settings = {.time_zone = "UTC", .now_us = 1789529696000000};

static fz_status find(void *cx, const sql_name *n, const sql_hint *h, const sql_table **out, fz_error *e) {
    (void)cx; (void)n; (void)h; (void)e;
    *out = &table;
    return FZ_OK;
}
static int setup(void **state) {
    (void)state;
    a = fz_arena_new();
    static const char *const names[] = {"ts", "host", "program", "message"};
    sql_column *c = FZ_ANEWN(a, sql_column, 4);
    for (int k = 0; k < 4; k++) c[k] = (sql_column){.name = names[k], .kind = SQL_COL_PHYSICAL, .type = col_string(true)};
    table = (sql_table){.kind = SQL_T_CONNECTOR, .path = "t", .n_columns = 4, .columns = c};
    return 0;
}
static int teardown(void **state) {
    (void)state;
    fz_arena_free(a);
    return 0;
}
static ex_program *compile(const char *text, fz_status want) {
    static const sql_resolver r = {NULL, find};
    sql_query *q;
    sql_plan *p;
    ex_program *x = NULL;
    fz_status s = sql_parse_query(a, text, strlen(text), &q, &err);
    if (s == FZ_OK) s = sql_bind_query(a, q, &r, &settings, NULL, &p, &err);
    if (s != FZ_OK) fail_msg("%s: %s", text, err.message);
    assert_int_equal(ex_compile(p, &settings, &x, &err), want);
    return x;
}

/* Texts with NULL as an entry; rows point into them. */
static col_vec *dict(const char *const *entry, uint32_t n, const uint32_t *rows, uint32_t n_rows) {
    col_builder *b = col_builder_new(a, col_string(true));
    for (uint32_t i = 0; i < n; i++) {
        if (entry[i]) col_add_bytes(b, entry[i], strlen(entry[i]));
        else col_add_null(b);
    }
    col_vec *v = col_vec_dict(a, col_builder_finish(b), n_rows);
    memcpy(v->idx, rows, n_rows * sizeof *rows);
    return v;
}
static col_vec *flat(const char *const *entry, uint32_t n) {
    col_builder *b = col_builder_new(a, col_string(true));
    for (uint32_t i = 0; i < n; i++) {
        if (entry[i]) col_add_bytes(b, entry[i], strlen(entry[i]));
        else col_add_null(b);
    }
    return col_builder_finish(b);
}
static void rows_are(const col_vec *v, const char *want) {
    fz_buf b = {0};
    for (uint32_t i = 0; i < v->len; i++) {
        if (i) fz_buf_putc(&b, ',');
        if (col_is_null(v, i)) fz_buf_puts(&b, "NULL");
        else ex_value_text(&b, v, i, "UTC");
    }
    assert_string_equal(fz_buf_cstr(&b), want);
    fz_buf_free(&b);
}
typedef struct run { ex_state *st; ex_program *p; ex_result r; fz_rejects bad; } run;
static run start(const char *text, col_vec **in, uint32_t n) {
    run x = {.p = compile(text, FZ_OK)};
    x.st = ex_state_new(x.p);
    assert_int_equal(ex_run(x.p, x.st, in, n, a, &x.r, &x.bad, &err), FZ_OK);
    assert_int_equal(x.r.n_rows + x.r.n_filtered + x.r.n_rejected, n);
    return x;
}
static void stop(run *x) {
    fz_free(x->bad.v);
    ex_state_free(x->st);
    ex_program_free(x->p);
}

static const char hot[] = "SELECT ts, CAST(TO_TIMESTAMP(SUBSTRING(ts,1,19),'yyyy-MM-dd''T''HH:mm:ss') AS TIMESTAMP(6)), TRIM(host), program, message, CAST(SUBSTRING(ts,1,10) AS DATE), "
                          "CAST(SUBSTRING(ts,12,2) AS INT) FROM t WHERE host IS NOT NULL AND TRIM(host) <> '' AND ts IS NOT NULL";
static const char *const times[] = {"2026-09-16T12:34:56.1+09:00", "2026-09-17T01:00:00Z", "garbage", NULL};
static const char *const hosts[] = {" web1 ", "web2", "  ", NULL};
static const char *const programs[] = {"sshd"};
static const char *const messages[] = {"m0", "m1", "m2", "m3", "m4", "m5"};

static void test_all_pass(void **state) {
    (void)state;
    static const uint32_t t[] = {0, 1, 0, 1, 0, 1}, h[] = {0, 1, 0, 0, 1, 1}, p[] = {0, 0, 0, 0, 0, 0};
    col_vec *in[4] = {dict(times, 2, t, 6), dict(hosts, 2, h, 6), dict(programs, 1, p, 6), flat(messages, 6)};
    run x = start(hot, in, 6);
    assert_int_equal(x.r.n_rows, 6);
    assert_ptr_equal(x.r.cols[0], in[0]);       /* shared, not copied */
    assert_ptr_equal(x.r.cols[4], in[3]);
    assert_ptr_equal(x.r.cols[1]->idx, in[0]->idx);
    assert_ptr_equal(x.r.cols[2]->idx, in[1]->idx);
    assert_ptr_equal(x.r.cols[5]->idx, in[0]->idx);
    assert_int_equal(x.r.cols[1]->dict->len, 2);
    rows_are(x.r.cols[1], "2026-09-16 12:34:56.000000,2026-09-17 01:00:00.000000,2026-09-16 12:34:56.000000,2026-09-17 01:00:00.000000,2026-09-16 12:34:56.000000,2026-09-17 01:00:00.000000");
    rows_are(x.r.cols[2], "web1,web2,web1,web1,web2,web2");
    rows_are(x.r.cols[6], "12,1,12,1,12,1");
    for (uint32_t i = 0; i < 6; i++) assert_int_equal(x.r.row[i], i);
    stop(&x);
}

static void test_filter_and_rejects(void **state) {
    (void)state;
    static const uint32_t t[] = {0, 1, 2, 3, 1, 2}, h[] = {0, 3, 0, 1, 2, 2}, p[] = {0, 0, 0, 0, 0, 0};
    col_vec *in[4] = {dict(times, 4, t, 6), dict(hosts, 4, h, 6), dict(programs, 1, p, 6), flat(messages, 6)};
    run x = start(hot, in, 6);
    assert_int_equal(x.r.n_rows, 1);            /* row 0; 1, 3, 4, 5 filtered; 2 has a ts that is no date */
    assert_int_equal(x.r.n_filtered, 4);
    assert_int_equal(x.r.n_rejected, 1);
    assert_int_equal(x.bad.n, 1);
    assert_int_equal(x.bad.v[0].rec, 2);
    assert_string_equal(x.bad.v[0].code, "cast.failed");
    assert_non_null(strstr(x.bad.v[0].expr, "SUBSTRING"));
    assert_int_equal(x.r.row[0], 0);
    rows_are(x.r.cols[4], "m0");
    rows_are(x.r.cols[2], "web1");
    assert_non_null(x.r.cols[0]->idx);          /* still a dictionary, and one idx for all that comes from ts */
    assert_ptr_equal(x.r.cols[0]->idx, x.r.cols[1]->idx);
    stop(&x);
}

/* An entry that cannot be evaluated harms nobody who does not use it; a mask beside a dictionary counts. */
static void test_unused_entries_and_masks(void **state) {
    (void)state;
    static const uint32_t t[] = {0, 0, 1, 0, 1};
    col_vec *v = dict(times, 4, t, 5);
    v->valid = FZ_ANEWN(a, uint8_t, 5);
    v->valid[0] = v->valid[2] = 1;
    col_vec *in[4] = {v, NULL, NULL, NULL};
    run x = start("SELECT CAST(SUBSTRING(ts,1,10) AS DATE), ts IS NULL, COALESCE(ts, 'none') FROM t", in, 5);
    assert_int_equal(x.bad.n, 0);
    rows_are(x.r.cols[0], "2026-09-16,NULL,2026-09-17,NULL,NULL");
    rows_are(x.r.cols[1], "FALSE,TRUE,FALSE,TRUE,TRUE");
    rows_are(x.r.cols[2], "2026-09-16T12:34:56.1+09:00,none,2026-09-17T01:00:00Z,none,none");
    assert_non_null(x.r.cols[2]->idx);
    stop(&x);
}

/* CASE reaches a failing branch only where it is asked to, in dictionaries as in flat columns. */
static void test_lazy_branches(void **state) {
    (void)state;
    static const char *const numbers[] = {"1", "x", "3", NULL};
    static const uint32_t rows[] = {0, 1, 2, 3, 1};
    static const char *const texts[] = {"1", "x", "3", NULL, "x"};
    const char *sql = "SELECT CASE WHEN ts = 'x' THEN -1 ELSE CAST(ts AS INT) END, ts = 'x' OR CAST(ts AS INT) > 1 FROM t WHERE ts = 'x' OR CAST(ts AS INT) > 0 OR ts IS NULL";
    for (int form = 0; form < 2; form++) {
        col_vec *in[4] = {form ? flat(texts, 5) : dict(numbers, 4, rows, 5), NULL, NULL, NULL};
        run x = start(sql, in, 5);
        assert_int_equal(x.bad.n, 0);
        rows_are(x.r.cols[0], "1,-1,3,NULL,-1");
        rows_are(x.r.cols[1], "FALSE,TRUE,TRUE,NULL,TRUE");
        stop(&x);
        x = start("SELECT CAST(ts AS INT), ts FROM t WHERE ts <> '3'", in, 5);
        assert_int_equal(x.bad.n, 2);
        assert_int_equal(x.bad.v[0].rec, 1);
        assert_int_equal(x.bad.v[1].rec, 4);
        assert_int_equal(x.r.n_filtered, 2);
        rows_are(x.r.cols[0], "1");
        stop(&x);
    }
}

static void test_two_dictionaries(void **state) {
    (void)state;
    static const uint32_t t[] = {0, 1, 1}, h[] = {1, 0, 3};
    col_vec *in[4] = {dict(times, 2, t, 3), dict(hosts, 4, h, 3), NULL, flat(messages, 3)};
    run x = start("SELECT host || SUBSTRING(ts,1,4), CONCAT_WS('-', host, message), CASE WHEN host = 'web2' THEN 'a' ELSE 'b' END, 7 FROM t", in, 3);
    rows_are(x.r.cols[0], "web22026, web1 2026,NULL");
    rows_are(x.r.cols[1], "web2-m0, web1 -m1,m2");
    rows_are(x.r.cols[2], "a,b,b");
    rows_are(x.r.cols[3], "7,7,7");
    stop(&x);
}

static void test_views_are_inlined(void **state) {
    (void)state;
    static const uint32_t t[] = {0, 1, 0};
    col_vec *in[4] = {dict(times, 2, t, 3), NULL, NULL, NULL};
    run x = start("SELECT d, CAST(d AS STRING) || '!' FROM (SELECT CAST(SUBSTRING(ts,1,10) AS DATE) AS d FROM t WHERE ts IS NOT NULL) WHERE d > DATE '2026-09-16'", in, 3);
    assert_int_equal(x.r.n_rows, 1);
    assert_int_equal(x.r.row[0], 1);
    rows_are(x.r.cols[1], "2026-09-17!");
    stop(&x);
}

static void test_empty_batch(void **state) {
    (void)state;
    col_vec *in[4] = {flat(messages, 0), flat(messages, 0), flat(messages, 0), flat(messages, 0)};
    run x = start(hot, in, 0);
    assert_int_equal(x.r.n_rows, 0);
    stop(&x);
}

static void test_what_cannot_stream(void **state) {
    (void)state;
    compile("SELECT COUNT(*) FROM t", FZ_USER);
    assert_string_equal(err.code, "sql.unsupported-streaming");
    compile("SELECT ts FROM t ORDER BY ts", FZ_USER);
    compile("SELECT ts FROM t LIMIT 5", FZ_USER);
}

/* What the function table promises is there. */
static void test_kernels_are_there(void **state) {
    (void)state;
    for (const sql_fn *f = sql_fn_table; f->name; f++) {
        if (f->kernel == SQL_K_NONE || f->aggregate || f->kernel == SQL_K_AND || f->kernel == SQL_K_OR || f->kernel == SQL_K_CASE || f->kernel == SQL_K_COALESCE || f->kernel == SQL_K_NOT_NULL) continue;
        if (!ex_kernel_of(f->kernel)) fail_msg("%s has no kernel", f->name);
    }
}

static bool same(const char *x, const char *y) {
    ex_program *p = compile(x, FZ_OK), *q = compile(y, FZ_OK);
    bool is = ex_program_same(p, q);
    assert_int_equal(ex_program_same(q, p), is);
    ex_program_free(p);
    ex_program_free(q);
    return is;
}
static void test_same(void **state) {
    (void)state;
    const char *one = "SELECT UPPER(host), ts FROM t WHERE program IN ('a', 'b')";
    assert_true(same(one, one));
    assert_true(same(one, "SELECT UPPER(host) AS h, ts FROM t WHERE program IN ('a', 'b')"));
    assert_false(same(one, "SELECT UPPER(host), ts FROM t WHERE program IN ('a', 'c')"));
    assert_false(same(one, "SELECT UPPER(host), ts FROM t WHERE host IN ('a', 'b')"));
    assert_false(same(one, "SELECT ts, UPPER(host) FROM t WHERE program IN ('a', 'b')"));
    assert_false(same(one, "SELECT UPPER(host), ts FROM t"));
    assert_false(same(one, "SELECT LOWER(host), ts FROM t WHERE program IN ('a', 'b')"));
    assert_false(same("SELECT CAST(host AS INT) FROM t", "SELECT TRY_CAST(host AS INT) FROM t"));
    assert_false(same("SELECT CAST(host AS INT) FROM t", "SELECT CAST(host AS BIGINT) FROM t"));
    assert_false(same("SELECT host, RAND() FROM t", "SELECT host, RAND() FROM t")); /* each row of each table its own */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_pass), cmocka_unit_test(test_filter_and_rejects), cmocka_unit_test(test_unused_entries_and_masks), cmocka_unit_test(test_lazy_branches),
                                       cmocka_unit_test(test_two_dictionaries), cmocka_unit_test(test_views_are_inlined), cmocka_unit_test(test_empty_batch), cmocka_unit_test(test_what_cannot_stream),
                                       cmocka_unit_test(test_kernels_are_there), cmocka_unit_test(test_same)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
