/* Expressions: every one that the oracle asks parses; precedence; errors with their place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include "sql/sql.h"

static void text_is(const char *expr, const char *want) {
    fz_arena *a = fz_arena_new();
    fz_error err;
    fz_buf b = {0};
    sql_expr *e;
    if (sql_parse_expr(a, expr, strlen(expr), &e, &err) != FZ_OK) fail_msg("%s: %s", expr, err.message);
    sql_expr_text(&b, e);
    assert_string_equal(fz_buf_cstr(&b), want);
    fz_buf_free(&b);
    fz_arena_free(a);
}

static void fails(const char *expr, const char *code, int column, const char *part) {
    fz_arena *a = fz_arena_new();
    fz_error err;
    sql_expr *e;
    assert_int_equal(sql_parse_expr(a, expr, strlen(expr), &e, &err), FZ_USER);
    assert_string_equal(err.code, code);
    if (!strstr(err.message, part)) fail_msg("%s: \"%s\" lacks \"%s\"", expr, err.message, part);
    assert_int_equal(err.line, 1);
    assert_int_equal(err.column, column);
    fz_arena_free(a);
}

static void test_oracle_expressions(void **state) {
    (void)state;
    FILE *f = fopen("test/data/sql/expressions.txt", "r");
    assert_non_null(f);
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    unsigned count = 0;
    while ((n = getline(&line, &cap, f)) > 0) {
        fz_arena *a = fz_arena_new();
        fz_error err;
        fz_buf b = {0}, again = {0};
        sql_expr *e;
        line[n - 1] = 0;
        if (sql_parse_expr(a, line, (size_t)n - 1, &e, &err) != FZ_OK) fail_msg("%s: %s at %d", line, err.message, err.column);
        sql_expr_text(&b, e);
        assert_true(b.len > 0);
        fz_buf_free(&b);
        fz_buf_free(&again);
        fz_arena_free(a);
        count++;
    }
    free(line);
    fclose(f);
    assert_int_equal(count, 338);
}

static void test_precedence(void **state) {
    (void)state;
    text_is("a + b * c - d", "((a + (b * c)) - d)");
    text_is("a || b + c", "((a || b) + c)");
    text_is("-a * b", "((-a) * b)");
    text_is("- - a", "(-(-a))");
    text_is("NOT a = b AND c OR d", "(((NOT (a = b)) AND c) OR d)");
    text_is("a OR b AND c", "(a OR (b AND c))");
    text_is("a = b IS NULL", "((a = b) IS NULL)");
    text_is("NOT a IS NOT NULL", "(NOT (a IS NOT NULL))");
    text_is("a = b LIKE c || d", "(a = (b LIKE (c || d)))");
    text_is("x BETWEEN a + 1 AND b AND c", "((x BETWEEN (a + 1) AND b) AND c)");
    text_is("x NOT BETWEEN 1 AND 2 OR y NOT IN (1, 2) AND z NOT LIKE 'a' ESCAPE '!'", "((x NOT BETWEEN 1 AND 2) OR ((y NOT IN (1, 2)) AND (z NOT LIKE 'a' ESCAPE '!')))");
    text_is("a[1].b.c[2]", "a[1].b.c[2]");
    text_is("-a[1]", "(-a[1])");
    text_is("a IS DISTINCT FROM b + 1", "(a IS DISTINCT FROM (b + 1))");
    text_is("a AND b AND c AND d", "((a AND b) AND (c AND d))");
    text_is("a OR b OR c", "((a OR b) OR c)");
}

static void test_forms(void **state) {
    (void)state;
    text_is("TRIM(s)", "TRIM(BOTH, ' ', s)");
    text_is("TRIM(LEADING 'x' FROM s)", "TRIM(LEADING, 'x', s)");
    text_is("trim('x' from s)", "TRIM(BOTH, 'x', s)");
    text_is("EXTRACT(year FROM t)", "EXTRACT(YEAR, t)");
    text_is("CEILING(t TO DAY)", "CEIL(t, DAY)");
    text_is("TIMESTAMPDIFF(SQL_TSI_DAY, a, b)", "TIMESTAMPDIFF(DAY, a, b)");
    text_is("POSITION('a' IN s)", "POSITION('a', s)");
    text_is("SUBSTRING(s FROM 2 FOR 3)", "SUBSTRING(s, 2, 3)");
    text_is("OVERLAY(s PLACING 'x' FROM 2 FOR 1)", "OVERLAY(s, 'x', 2, 1)");
    text_is("COUNT(*)", "COUNT(*)");
    text_is("count(DISTINCT a) FILTER (WHERE b > 1)", "COUNT(DISTINCT a) FILTER (WHERE (b > 1))");
    text_is("CASE a WHEN 1, 2 THEN 'x' ELSE 'y' END", "CASE a WHEN 1 THEN 'x' WHEN 2 THEN 'x' ELSE 'y' END");
    text_is("INTERVAL -'1 02:03:04' DAY(3) TO SECOND(3)", "INTERVAL '-1 02:03:04' DAY TO SECOND");
    text_is("INTERVAL '-3' DAYS", "INTERVAL '-3' DAY");
    text_is("DATE '2026-01-02' + INTERVAL '1' MONTH", "(DATE '2026-01-02' + INTERVAL '1' MONTH)");
    text_is("(a, b) OVERLAPS (c, d)", "OVERLAPS(a, b, c, d)");
    text_is("CAST(x AS ROW<a INT NOT NULL, `b c` ARRAY<STRING>>)", "CAST(x AS ROW<`a` INT NOT NULL, `b c` ARRAY<STRING>>)");
    text_is("CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP()");
    text_is("X'4a4B'", "X'4A4B'");
    text_is("U&'\\65E5\\+00672C\\\\'", "'日本\\'");
    text_is("U&'x!0041!!' UESCAPE '!'", "'xA!'");
    text_is("N'x'", "'x'");
    text_is("INTERVAL 1.5 SECOND", "INTERVAL '1.5' SECOND");
    text_is("INTERVAL -1 DAY", "INTERVAL '-1' DAY");
    text_is("INTERVAL a DAY", "(a * INTERVAL '1' DAY)");
    text_is("INTERVAL -(a + 1) MONTH", "((a + 1) * INTERVAL '-1' MONTH)");
    text_is("JSON_VALUE(s, '$.a' RETURNING INT NULL ON EMPTY ERROR ON ERROR)", "JSON_VALUE(s, '$.a', RETURNING, NULL ON EMPTY, ERROR ON ERROR)");
    text_is("DATE_TRUNC(a)", "DATE_TRUNC(a)");
    text_is("'a'\n'b'", "'ab'");
    text_is("'it''s'", "'it''s'");
    text_is("`sel``ect`.\"fr\"\"om\"", "`sel``ect`.`fr\"om`");
    text_is(".5 + 1e3 + 1.", "((.5 + 1e3) + 1.)");
    text_is("JSON_VALUE(s, '$.a' RETURNING INT DEFAULT 1 ON EMPTY NULL ON ERROR)", "JSON_VALUE(s, '$.a', RETURNING, DEFAULT ON EMPTY, 1, NULL ON ERROR)");
    text_is("JSON_OBJECT(KEY 'a' VALUE s, 'b' : 2 ABSENT ON NULL)", "JSON_OBJECT('a', s, 'b', 2, ABSENT ON NULL)");
    text_is("a IS NOT JSON OBJECT", "(a IS NOT JSON OBJECT)");
    text_is("MAP['k', 1]['k']", "MAP['k', 1]['k']");
    text_is("TRY_CAST(a AS TIMESTAMP(3) WITH LOCAL TIME ZONE)", "TRY_CAST(a AS TIMESTAMP_LTZ(3))");
}

static void test_errors(void **state) {
    (void)state;
    fails("a +", "sql.syntax", 4, "the end of the statement");
    fails("value", "sql.syntax", 1, "\"value\"");
    fails("(a", "sql.syntax", 3, "\")\"");
    fails("a != b", "sql.syntax", 3, "!=");
    fails("a b", "sql.syntax", 3, "\"b\"");
    fails("x IN (SELECT 1)", "sql.unsupported", 7, "subquery");
    fails("EXISTS (SELECT 1)", "sql.unsupported", 1, "EXISTS");
    fails("(SELECT 1)", "sql.unsupported", 2, "subquery");
    fails("SUM(a) OVER (PARTITION BY b)", "sql.unsupported", 8, "OVER");
    fails("a = ANY (SELECT 1)", "sql.unsupported", 5, "ANY");
    fails("CAST(a AS TIMESTAMP(9))", "sql.unsupported", 20, "nanoseconds");
    fails("CAST(a AS DECIMAL(39, 0))", "sql.syntax", 19, "between 1 and 38");
    fails("CAST(a AS MULTISET<INT>)", "sql.unsupported", 11, "MULTISET");
    fails("CAST(a AS blob_x)", "sql.syntax", 11, "expected a type");
    fails("INTERVAL DAY", "sql.syntax", 10, "single quotes");
    fails("CAST(a AS INT NOT NULL)", "sql.syntax", 15, "NOT");
    fails("CAST(a AS REAL)", "sql.unsupported", 11, "REAL");
    fails("U&'!0041' UESCAPE 'a'", "sql.syntax", 19, "UESCAPE");
    fails("ARRAY(1)", "sql.syntax", 6, "[");
    fails("TIMESTAMPADD(DAYS, 1, d)", "sql.syntax", 14, "time unit");
    fails("X'4a4'", "sql.syntax", 1, "even number");
    fails("EXTRACT(fortnight FROM t)", "sql.syntax", 9, "time unit");
    fails("a.b.c(1)", "sql.unsupported", 1, "qualified");
    fails("日本語 +", "sql.syntax", 6, "end of the statement");
    fails("f(a => 1)", "sql.unsupported", 3, "named argument");
}

static void test_depth(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    fz_error err;
    fz_buf b = {0};
    sql_expr *e;
    const char *const open[] = {"(", "NOT ", "-", "f(", "CASE WHEN ", "ARRAY[", "CAST(", "a[", "1+"};
    for (size_t k = 0; k < sizeof open / sizeof *open; k++) {
        b.len = 0;
        for (int i = 0; i < 100000; i++) fz_buf_puts(&b, strcmp(open[k], "-") == 0 ? "- " : open[k]);
        fz_buf_puts(&b, "1");
        assert_int_equal(sql_parse_expr(a, (char *)b.data, b.len, &e, &err), FZ_USER);
        assert_string_equal(err.code, "sql.too-deep");
    }
    b.len = 0; /* a long list of conditions is not deep */
    for (int i = 0; i < 20000; i++) fz_buf_printf(&b, "%sh = 'host%d'", i ? " OR " : "", i);
    assert_int_equal(sql_parse_expr(a, (char *)b.data, b.len, &e, &err), FZ_OK);
    assert_true(e->height < 32);
    fz_buf_free(&b);
    fz_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_oracle_expressions), cmocka_unit_test(test_precedence), cmocka_unit_test(test_forms), cmocka_unit_test(test_errors),
                                       cmocka_unit_test(test_depth)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
