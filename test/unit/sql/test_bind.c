/* Binding of expressions: types, casts, and what is said when something is wrong. */
#include "sql/sql_fn.h"
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

static fz_arena *a;
static fz_error err;
static col_schema schema;

static int setup(void **state) {
    (void)state;
    a = fz_arena_new();
    const col_field row[2] = {{"x", col_simple(COL_INT, true), NULL}, {"y", col_string(false), NULL}};
    col_field *f = FZ_ANEWN(a, col_field, 16);
    uint32_t n = 0;
    f[n++] = (col_field){"s", col_string(true), NULL};
    f[n++] = (col_field){"sn", col_string(false), NULL};
    f[n++] = (col_field){"i", col_simple(COL_BIGINT, true), NULL};
    f[n++] = (col_field){"n", col_simple(COL_INT, false), NULL};
    f[n++] = (col_field){"ti", col_simple(COL_TINYINT, true), NULL};
    f[n++] = (col_field){"d", col_simple(COL_DOUBLE, true), NULL};
    f[n++] = (col_field){"f", col_simple(COL_FLOAT, true), NULL};
    f[n++] = (col_field){"num", col_sized(a, COL_DECIMAL, 20, 6, true), NULL};
    f[n++] = (col_field){"b", col_simple(COL_BOOLEAN, true), NULL};
    f[n++] = (col_field){"t", col_simple(COL_TIMESTAMP, true), NULL};
    f[n++] = (col_field){"dt", col_simple(COL_DATE, true), NULL};
    f[n++] = (col_field){"v3", col_sized(a, COL_VARCHAR, 3, 0, true), NULL};
    f[n++] = (col_field){"r", col_row(a, row, 2, true), NULL};
    f[n++] = (col_field){"arr", col_array(a, col_string(true), true), NULL};
    f[n++] = (col_field){"m", col_map(a, col_string(true), col_simple(COL_INT, false), true), NULL};
    schema = (col_schema){n, f};
    return 0;
}
static int teardown(void **state) {
    (void)state;
    fz_arena_free(a);
    return 0;
}

static sql_bound *bind(const char *text) {
    sql_expr *e;
    sql_bound *b = NULL;
    static const sql_settings settings = {.time_zone = "UTC"};
    fz_status s = sql_parse_expr(a, text, strlen(text), &e, &err);
    if (s == FZ_OK) s = sql_bind_expr(a, e, &schema, &settings, &b, &err);
    return s == FZ_OK ? b : NULL;
}
static void has_type(const char *text, const char *type) {
    sql_bound *b = bind(text);
    if (!b) fail_msg("%s: %s", text, err.message);
    fz_buf t = {0};
    col_type_text(&t, b->type);
    if (strcmp(fz_buf_cstr(&t), type)) fail_msg("%s is %s, not %s", text, (char *)t.data, type);
    fz_buf_free(&t);
}
static void is_wrong(const char *text, const char *code, int column, const char *hint) {
    memset(&err, 0, sizeof err);
    if (bind(text)) fail_msg("%s was taken", text);
    if (strcmp(err.code, code)) fail_msg("%s: %s (%s), not %s", text, err.code, err.message, code);
    assert_int_equal(err.cls, FZ_USER);
    assert_int_equal(err.line, 1);
    if (column && err.column != column) fail_msg("%s: column %d, not %d", text, err.column, column);
    if (hint && !strstr(err.hint, hint)) fail_msg("%s: hint is '%s'", text, err.hint);
}
static void has_text(const char *text, const char *bound) {
    sql_bound *b = bind(text);
    if (!b) fail_msg("%s: %s", text, err.message);
    fz_buf t = {0};
    sql_bound_text(&t, b, &schema);
    assert_string_equal(fz_buf_cstr(&t), bound);
    fz_buf_free(&t);
}

static void test_literals(void **state) {
    (void)state;
    has_type("1", "INT NOT NULL");
    has_type("2147483648", "BIGINT NOT NULL");
    has_type("-9223372036854775808", "BIGINT NOT NULL");
    has_type("9223372036854775808", "DECIMAL(19, 0) NOT NULL");
    has_type("1.50", "DECIMAL(3, 2) NOT NULL");
    has_type("0.05", "DECIMAL(2, 2) NOT NULL");
    has_type("1e3", "DOUBLE NOT NULL");
    has_type("'abc'", "CHAR(3) NOT NULL");
    has_type("'\xf0\x9f\x98\x80'", "CHAR(2) NOT NULL");
    has_type("TRUE", "BOOLEAN NOT NULL");
    has_type("NULL", "NULL");
    has_type("TIMESTAMP '2026-01-01 00:00:00'", "TIMESTAMP(0) NOT NULL");
    has_type("TIMESTAMP '2026-01-01 00:00:00.123'", "TIMESTAMP(3) NOT NULL");
    is_wrong("TIMESTAMP '2026-01-01T00:00:00'", "sql.literal", 1, NULL);
    is_wrong("DATE '2026-13-01'", "sql.literal", 1, NULL);
    is_wrong("1e999", "sql.number-range", 1, NULL);
    is_wrong("123456789012345678901234567890123456789", "sql.number-range", 1, NULL);
}

static void test_arithmetic(void **state) {
    (void)state;
    has_type("n + 1", "INT NOT NULL");
    has_type("i + n", "BIGINT");
    has_type("ti + ti", "TINYINT");
    has_type("f + n", "FLOAT");
    has_type("f + num", "DOUBLE");
    has_type("i % 3", "INT");
    has_type("num + num", "DECIMAL(21, 6)");
    has_type("num * num", "DECIMAL(38, 9)");
    has_type("num / 3", "DECIMAL(31, 17)");
    has_type("num % 3", "DECIMAL(16, 6)");
    has_type("CAST(num AS DECIMAL(38,10)) * num", "DECIMAL(38, 6)");
    has_type("NULL + i", "BIGINT");
    has_type("-n", "INT NOT NULL");
    has_type("FLOOR(num)", "DECIMAL(20, 0)");
    has_type("ROUND(num, 2)", "DECIMAL(17, 2)");
    has_type("ROUND(num, 9)", "DECIMAL(20, 6)");
    has_type("ABS(f)", "FLOAT");
    is_wrong("s + 1", "sql.type-mismatch", 0, "a + b");
    is_wrong("b * 2", "sql.type-mismatch", 0, NULL);
    is_wrong("ABS(s)", "sql.type-mismatch", 1, NULL);
    is_wrong("n + t", "sql.type-mismatch", 0, NULL);
}

static void test_conditionals(void **state) {
    (void)state;
    has_type("CASE WHEN b THEN 'a' ELSE 'b' END", "CHAR(1) NOT NULL");
    has_type("CASE WHEN b THEN 'a' ELSE 'bcd' END", "VARCHAR(3) NOT NULL");
    has_type("CASE WHEN b THEN 'a' END", "CHAR(1)");
    has_type("CASE n WHEN 1 THEN 1 WHEN 2 THEN 2.5 ELSE i END", "DECIMAL(20, 1)");
    has_type("CASE WHEN b THEN 1 ELSE s END", "STRING");
    has_type("COALESCE(s, 'x')", "STRING NOT NULL");
    has_type("COALESCE(s, v3)", "STRING");
    has_type("NULLIF(sn, 'x')", "STRING");
    has_type("IF(b, 1, 2)", "INT");
    has_type("GREATEST(n, i)", "BIGINT");
    is_wrong("CASE WHEN n THEN 1 END", "sql.type-mismatch", 0, NULL);
    is_wrong("IF(b, 1)", "sql.argument-count", 1, "IF(condition");
}

static void test_comparison(void **state) {
    (void)state;
    has_type("n > 0", "BOOLEAN NOT NULL");
    has_type("i > 0", "BOOLEAN");
    has_type("s IS NULL", "BOOLEAN NOT NULL");
    has_type("s IS DISTINCT FROM sn", "BOOLEAN NOT NULL");
    has_type("n IN (1, NULL)", "BOOLEAN");
    has_type("n BETWEEN 1 AND 5", "BOOLEAN NOT NULL");
    has_type("b AND n > 1", "BOOLEAN");
    has_text("n = i", "(CAST(n AS BIGINT) = i)");
    has_text("dt = '2026-09-16'", "(dt = CAST('2026-09-16' AS DATE))");
    has_text("n BETWEEN 1 AND 5", "((n >= 1) AND (n <= 5))");
    has_text("b AND b AND NOT b", "(b AND b AND NOT(b))");
    is_wrong("b > t", "sql.type-mismatch", 0, NULL);
    is_wrong("n AND b", "sql.type-mismatch", 0, NULL);
}

static void test_functions(void **state) {
    (void)state;
    has_type("TRIM(s)", "STRING");
    has_type("TRIM(v3)", "VARCHAR(3)");
    has_type("SUBSTRING(s, 1, 2)", "STRING");
    has_type("UPPER(v3)", "VARCHAR(3)");
    has_type("s || 'x'", "STRING");
    has_type("v3 || 'xy'", "VARCHAR(5)");
    has_type("CHAR_LENGTH(sn)", "INT NOT NULL");
    has_type("TO_TIMESTAMP(sn)", "TIMESTAMP(3)");
    has_type("EXTRACT(YEAR FROM t)", "BIGINT");
    has_type("FLOOR(t TO HOUR)", "TIMESTAMP(6)");
    has_type("t + INTERVAL '1' DAY", "TIMESTAMP(6)");
    has_type("INTERVAL '1' DAY + t", "TIMESTAMP(6)");
    has_type("dt - INTERVAL '1' MONTH", "DATE");
    has_type("TIMESTAMPADD(HOUR, 1, dt)", "TIMESTAMP(6)");
    has_type("TIMESTAMPADD(DAY, 1, dt)", "DATE");
    has_type("CURRENT_TIMESTAMP", "TIMESTAMP_LTZ(3) NOT NULL");
    has_type("CURRENT_DATE", "DATE NOT NULL");
    has_type("TYPEOF(n)", "STRING");
    has_type("TRY_CAST(sn AS INT)", "INT");
    has_type("CAST(sn AS INT)", "INT NOT NULL");
    has_text("YEAR(t)", "EXTRACT('YEAR', t)");
    is_wrong("SUBSTRNG(s, 1)", "sql.unknown-function", 1, "SUBSTRING");
    is_wrong("1 + MD5(s)", "sql.function-unavailable", 5, NULL);
    is_wrong("REGEXP_EXTRACT(s, 'x')", "sql.function-unavailable", 1, NULL);
    is_wrong("s SIMILAR TO 'x'", "sql.function-unavailable", 0, NULL);
    is_wrong("LPAD(s, 3)", "sql.argument-count", 1, NULL);
    is_wrong("SUBSTRING(s, 'x')", "sql.type-mismatch", 1, NULL);
    is_wrong("CAST(t AS INT)", "sql.cast", 1, NULL);
    is_wrong("COUNT(s)", "sql.aggregate-not-allowed", 1, NULL);
}

static void test_columns(void **state) {
    (void)state;
    has_type("r.x", "INT");
    has_type("r.y", "STRING");
    has_type("arr[1]", "STRING");
    has_type("m['k']", "INT");
    has_type("ROW(n, s)", "ROW<`EXPR$0` INT NOT NULL, `EXPR$1` STRING> NOT NULL");
    has_type("ARRAY[n, i]", "ARRAY<BIGINT> NOT NULL");
    has_type("MAP['k', n]", "MAP<CHAR(1) NOT NULL, INT NOT NULL> NOT NULL");
    is_wrong("1 + host", "sql.unknown-column", 5, NULL);
    is_wrong("DEC2 + 1", "sql.unknown-column", 1, NULL);
    is_wrong("S || 'x'", "sql.unknown-column", 1, "'s'");
    is_wrong("1 + numm", "sql.unknown-column", 5, "'num'");
    is_wrong("r.z", "sql.unknown-column", 1, NULL);
    is_wrong("n.z", "sql.type-mismatch", 1, NULL);
    is_wrong("s[1]", "sql.type-mismatch", 0, NULL);
}

/* Every row of the table is whole, and its names are unique. */
static fz_status find(void *cx, const sql_name *n, const sql_hint *h, const sql_table **out, fz_error *e) {
    (void)n;
    (void)h;
    (void)e;
    *out = cx;
    return FZ_OK;
}
/* Columns come in the order in which they were declared, whatever the source gives them in. */
static void test_scan(void **state) {
    (void)state;
    sql_expr *e;
    assert_int_equal(sql_parse_expr(a, "x + 1", 5, &e, &err), FZ_OK);
    sql_column c[4] = {{.name = "offset", .kind = SQL_COL_METADATA, .type = col_simple(COL_BIGINT, false)},
                       {.name = "x", .kind = SQL_COL_PHYSICAL, .type = col_simple(COL_INT, true)},
                       {.name = "y", .kind = SQL_COL_COMPUTED, .expr = e},
                       {.name = "stamp", .kind = SQL_COL_METADATA, .type = col_simple(COL_TIMESTAMP_LTZ, true), .metadata_key = "timestamp"}};
    sql_table t = {.kind = SQL_T_CONNECTOR, .path = "c.d.t", .n_columns = 4, .columns = c};
    sql_resolver r = {&t, find};
    static const sql_settings settings = {.time_zone = "UTC"};
    static const struct { const char *sql, *plan; } cases[] = {
        {"SELECT * FROM t", "Project [offset, x, (x + 1) AS y, stamp]\n  Scan c.d.t [x, offset, stamp]\n"},
        {"SELECT y FROM t WHERE stamp IS NOT NULL", "Project [y]\n  Filter [stamp IS NOT NULL]\n    Project [offset, x, (x + 1) AS y, stamp]\n      Scan c.d.t [x, stamp]\n"},
        {"SELECT 1 FROM t", "Project [1 AS EXPR$0]\n  Project [offset, x, (x + 1) AS y, stamp]\n    Scan c.d.t []\n"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        sql_query *q;
        sql_plan *p;
        assert_int_equal(sql_parse_query(a, cases[k].sql, strlen(cases[k].sql), &q, &err), FZ_OK);
        assert_int_equal(sql_bind_query(a, q, &r, &settings, NULL, &p, &err), FZ_OK);
        fz_buf b = {0};
        sql_plan_text(&b, p);
        assert_string_equal(fz_buf_cstr(&b), cases[k].plan);
        fz_buf_free(&b);
        while (p->kind != SQL_P_SCAN) p = p->inputs[0];
        assert_int_equal(p->n_scan_physical, 1);
        assert_string_equal(p->scan_metadata[0], "offset");
        assert_string_equal(p->scan_metadata[1], "timestamp");
    }
}

static void test_function_table(void **state) {
    (void)state;
    const sql_fn_info *f;
    uint32_t n = sql_functions(&f);
    assert_true(n > 150);
    for (const sql_fn *x = sql_fn_table; x->name; x++) {
        assert_ptr_equal(sql_fn_find(x->name), x);
        assert_non_null(x->signature);
        assert_non_null(x->doc);
        assert_non_null(x->group);
        if (x->kernel != SQL_K_NONE) assert_non_null(x->rule);
        for (const char *p = x->name; *p; p++) assert_false(*p >= 'a' && *p <= 'z');
    }
    for (uint32_t k = 0; k < n; k++) assert_true(strlen(f[k].doc) > 3);
    assert_true(sql_fn_find("TRIM")->kernel != SQL_K_NONE);
    assert_true(sql_fn_find("JSON_VALUE")->kernel == SQL_K_NONE);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_literals), cmocka_unit_test(test_arithmetic), cmocka_unit_test(test_conditionals), cmocka_unit_test(test_comparison),
                                       cmocka_unit_test(test_functions), cmocka_unit_test(test_columns), cmocka_unit_test(test_scan), cmocka_unit_test(test_function_table)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
