/* Functions and operators beyond what the oracle covers: corner values, one expression at a time. */
#include "exec/exec.h"
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

static void is(const char *text, const char *want) {
    fz_arena *a = fz_arena_new();
    fz_error err = {0};
    static const sql_settings settings = {.time_zone = "UTC", .now_us = 1789529696123456};
    char *sql = fz_asprintf("SELECT %s", text);
    sql_query *q;
    sql_plan *p;
    ex_query *x;
    col_batch *b = NULL;
    fz_status s = sql_parse_query(a, sql, strlen(sql), &q, &err);
    if (s == FZ_OK) s = sql_bind_query(a, q, NULL, &settings, NULL, &p, &err);
    if (s != FZ_OK) fail_msg("%s: %s", text, err.message);
    assert_int_equal(ex_query_open(p, &settings, NULL, false, &x, &err), FZ_OK);
    s = ex_query_next(x, &b, &err);
    fz_buf t = {0};
    if (s != FZ_OK) fz_buf_puts(&t, err.code);
    else if (col_is_null(b->cols[0], 0)) fz_buf_puts(&t, "NULL");
    else ex_value_text(&t, b->cols[0], 0, "UTC");
    if (strcmp(fz_buf_cstr(&t), want)) fail_msg("%s is %s, not %s", text, (char *)t.data, want);
    fz_buf_free(&t);
    col_batch_release(b);
    ex_query_close(x);
    fz_free(sql);
    fz_arena_free(a);
}

static void test_numbers(void **state) {
    (void)state;
    is("CAST(127 AS TINYINT) + CAST(1 AS TINYINT)", "-128");
    is("CAST(32767 AS SMALLINT) * CAST(2 AS SMALLINT)", "-2");
    is("2147483647 + 1", "-2147483648");
    is("9223372036854775807 + 1", "-9223372036854775808");
    is("-9223372036854775808 / -1", "-9223372036854775808");
    is("-9223372036854775808 % -1", "0");
    is("7 / 2", "3");
    is("-7 % 3", "-1");
    is("7.5 % 2", "1.5");
    is("1.0 / 0", "arithmetic.divide-by-zero");
    is("MOD(5, 0)", "arithmetic.divide-by-zero");
    is("1 / CAST(0 AS DOUBLE)", "Infinity");
    is("99999999999999999999999999999999999999 + 1", "NULL");
    is("CAST(1.005 AS DOUBLE) * 100", "100.49999999999999");
    is("ROUND(2.345, 2)", "2.35");
    is("ROUND(-2.345, 2)", "-2.35");
    is("ROUND(CAST(2.345 AS DOUBLE), 2)", "2.35");
    is("ROUND(CAST(1234.5 AS DOUBLE), -2)", "1200.0");
    is("ROUND(CAST(0.5 AS DOUBLE))", "1.0");
    is("ROUND(CAST(1e20 AS DOUBLE), 2)", "1.0E20");
    is("ROUND(155, -1)", "160");
    is("ROUND(99.9, -2)", "100");
    is("TRUNCATE(42.999, 2)", "42.990");
    is("TRUNCATE(-155, -1)", "-150");
    is("FLOOR(-1.5)", "-2");
    is("CEIL(-1.5)", "-1");
    is("SIGN(-2.50)", "-1.00");
    is("ABS(CAST(-128 AS TINYINT))", "-128");
    is("LOG(2, 8)", "3.0");
    is("DEGREES(PI())", "180.0");
    is("CAST(CAST(300 AS INT) AS TINYINT)", "44");
    is("CAST(CAST(1e10 AS DOUBLE) AS TINYINT)", "-1");
    is("CAST(12.99 AS INT)", "12");
    is("CAST(TRUE AS INT)", "1");
    is("CAST(5 AS BOOLEAN)", "TRUE");
    is("CAST('TrUe' AS BOOLEAN)", "TRUE");
    is("CAST('maybe' AS BOOLEAN)", "cast.failed");
    is("BIN(-1) = REPEAT('1', 64)", "TRUE");
    is("HEX('\xe6\x97\xa5')", "E697A5");
    is("UNHEX('414')", "\x04\x14");
    is("UNHEX('4G')", "NULL");
}

static void test_texts(void **state) {
    (void)state;
    is("SUBSTRING('abc', 2, -1)", "NULL");
    is("SUBSTRING('h\xc3\xa9llo', 2, 2)", "\xc3\xa9l");
    is("LEFT('abc', -1)", "");
    is("RIGHT('h\xc3\xa9llo', 4)", "\xc3\xa9llo");
    is("UPPER('stra\xc3\x9f" "e')", "STRASSE");
    is("LOWER('\xce\x9f\xce\x94\xce\x9f\xce\xa3')", "\xce\xbf\xce\xb4\xce\xbf\xcf\x82");
    is("UPPER('h\xc3\xa9\xd1\x8f')", "H\xc3\x89\xd0\xaf");
    is("INITCAP('hELLO wORLD-x 1a')", "Hello World-X 1a");
    is("TRIM(LEADING 'xy' FROM 'xyxabcx')", "abcx");
    is("TRIM(TRAILING '\xe6\x97\xa5' FROM 'a\xe6\x97\xa5\xe6\x97\xa5')", "a");
    is("LPAD('abc', 2, '*')", "ab");
    is("LPAD('abc', 7, 'xy')", "xyxyabc");
    is("RPAD('abc', -1, 'x')", "NULL");
    is("RPAD('abc', 5, '')", "NULL");
    is("LPAD('\xf0\x9f\x98\x80', 1, 'x')", "?");
    is("LPAD('x', 2000000000, 'y')", "text.too-large");
    is("REPEAT('ab', 3)", "ababab");
    is("REPEAT('ab', -3)", "");
    is("REPEAT('ab', 2000000000)", "text.too-large");
    is("REPLACE('aaa', 'aa', 'b')", "ba");
    is("REPLACE('ab', '', '-')", "-a-b-");
    is("REVERSE('h\xc3\xa9')", "\xc3\xa9h");
    is("OVERLAY('abcdef' PLACING 'XX' FROM 3)", "abXXef");
    is("OVERLAY('abc' PLACING 'XX' FROM 9)", "abc");
    is("LOCATE('b', 'abcb', 3)", "4");
    is("POSITION('' IN 'abc')", "1");
    is("SPLIT_INDEX('a b\tc', '', 2)", "c");
    is("SPLIT_INDEX('a--b', '--', 1)", "b");
    is("SPLIT_INDEX('a', ',', -1)", "NULL");
    is("TRANSLATE('hello', 'el', 'ip')", "hippo");
    is("CONCAT_WS(NULL, 'a')", "NULL");
    is("CONCAT_WS(',')", "");
    is("CONCAT('a', NULL)", "NULL");
    is("'a' || 1 || TRUE", "a1TRUE");
    is("ELT(3, 'a', 'b')", "NULL");
    is("CHR(-1)", "");
    is("ASCII('')", "0");
    is("IS_DIGIT('\xef\xbc\x91')", "TRUE");
    is("CAST('abc' AS CHAR(5)) || '|'", "abc  |");
    is("CAST(12345 AS VARCHAR(3))", "123");
    is("CAST('\xf0\x9f\x98\x80\xf0\x9f\x98\x80' AS VARCHAR(1))", "\xf0\x9f\x98\x80");
    is("CAST(X'ff41' AS STRING)", "\xef\xbf\xbd" "A");
    is("CAST(CAST('ab' AS BINARY(4)) = X'61620000' AS STRING)", "TRUE");
}

static void test_like(void **state) {
    (void)state;
    is("'abc' LIKE 'a%c'", "TRUE");
    is("'abc' LIKE '%'", "TRUE");
    is("'' LIKE '%'", "TRUE");
    is("'' LIKE ''", "TRUE");
    is("'a' LIKE ''", "FALSE");
    is("'abcabd' LIKE '%ab_'", "TRUE");
    is("'abcabd' LIKE '%abc'", "FALSE");
    is("'aXbXc' LIKE 'a%X_'", "TRUE");
    is("'\xe6\x97\xa5\xe6\x9c\xac' LIKE '__'", "TRUE");
    is("'a%b' LIKE 'a!%b' ESCAPE '!'", "TRUE");
    is("'a!b' LIKE 'a!!b' ESCAPE '!'", "TRUE");
    is("'ab' LIKE 'a!b' ESCAPE '!'", "like.pattern");
    is("'ab' LIKE 'ab!' ESCAPE '!'", "like.pattern");
    is("'a_b' LIKE 'a\\_b'", "TRUE");
    is("'axb' LIKE 'a\\_b'", "FALSE");
    is("'mississippi' LIKE '%iss%ip%'", "TRUE");
    is("'mississippi' LIKE '%iss%is%ss%'", "FALSE");
    is("NULL LIKE 'a'", "NULL");
}

static void test_logic(void **state) {
    (void)state;
    is("NULL AND FALSE", "FALSE");
    is("NULL AND TRUE", "NULL");
    is("NULL OR TRUE", "TRUE");
    is("FALSE AND 1 / 0 = 1", "FALSE");
    is("NULL AND 1 / 0 = 1", "arithmetic.divide-by-zero");
    is("NOT CAST(NULL AS BOOLEAN)", "NULL");
    is("CAST(NULL AS BOOLEAN) IS UNKNOWN", "TRUE");
    is("CAST(NULL AS BOOLEAN) IS NOT FALSE", "TRUE");
    is("1 IN (2, NULL)", "NULL");
    is("1 IN (1, NULL)", "TRUE");
    is("1 NOT IN (2, NULL)", "NULL");
    is("5 IN (1,2,3,4,5,6,7,8,9,10,11,12,13,14)", "TRUE");
    is("15 NOT IN (1,2,3,4,5,6,7,8,9,10,11,12,13,14)", "TRUE");
    is("15 IN (1,2,3,4,5,6,7,8,9,10,11,12,13,NULL)", "NULL");
    is("2 BETWEEN SYMMETRIC 3 AND 1", "TRUE");
    is("2 NOT BETWEEN 3 AND 1", "TRUE");
    is("NULL IS NOT DISTINCT FROM NULL", "TRUE");
    is("CASE 2 WHEN 1 THEN 'a' WHEN 2 THEN 'b' END", "b");
    is("CASE NULL WHEN NULL THEN 'a' ELSE 'b' END", "b");
    is("COALESCE(NULL, NULL)", "NULL");
    is("COALESCE(1, 1 / 0)", "1");
    is("NULLIF(1, 1)", "NULL");
    is("GREATEST('b', 'abc', NULL)", "NULL");
    is("LEAST(3, 1.5, 2)", "1.5");
    is("CAST('NaN' AS DOUBLE) = CAST('NaN' AS DOUBLE)", "FALSE");
    is("CAST('10' AS INT) > '9'", "TRUE");
    is("DATE '2026-09-16' < TIMESTAMP '2026-09-16 00:00:01'", "TRUE");
    is("ROW(1, 'a') = ROW(1, 'a')", "TRUE");
}

static void test_nested(void **state) {
    (void)state;
    is("ARRAY['a', NULL, 'ccc']", "[a, NULL, ccc]");
    is("ARRAY[1, 2.5]", "[1.0, 2.5]");
    is("ARRAY[1, 2][0]", "array.index");
    is("ARRAY[1, 2][3]", "NULL");
    is("MAP['a', 1, 'b', NULL]", "{a=1, b=NULL}");
    is("MAP['a', 1, 'a', 2]", "{a=2}");
    is("MAP[1, 'x'][1]", "x");
    is("ROW(1, ROW('x', NULL))", "(1, (x, NULL))");
    is("CAST(ARRAY['1', '22'] AS ARRAY<INT>)", "[1, 22]");
    is("CAST(ARRAY['1', 'x'] AS ARRAY<INT>)", "cast.failed");
    is("CAST(ARRAY['1', '22'] AS STRING)", "[1, 22]");
    is("CAST(ROW(1, 'x') AS ROW<a STRING, b CHAR(2)>)", "(1, x )");
}

static void test_printf(void **state) {
    (void)state;
    is("PRINTF('%5d|%-5s|%05d', 42, 'ab', 7)", "   42|ab   |00007");
    is("PRINTF('%,d %x %X %o', 1234567, 255, 255, 8)", "1,234,567 ff FF 10");
    is("PRINTF('%2$s %1$s%n', 'a', 'b')", "b a\n");
    is("PRINTF('%.2f %e', CAST(3.14159 AS DOUBLE), CAST(12345.678 AS DOUBLE))", "3.14 1.234568e+04");
    is("PRINTF('%b %s %%', TRUE, NULL)", "true null %");
    is("PRINTF('%+d (%(d)', 5, -5)", "+5 ((5))");
    is("PRINTF('%d', 'x')", "NULL");
    is("PRINTF('%s')", "NULL");
    is("PRINTF('%q', 1)", "NULL");
}

static void test_intervals(void **state) {
    (void)state;
    is("INTERVAL '1' DAY + INTERVAL '2' HOUR", "+1 02:00:00.000");
    is("INTERVAL '90' MINUTE * 2", "+0 03:00:00.000");
    is("-INTERVAL '1' MONTH", "-0-01");
    is("INTERVAL '-1-3' YEAR TO MONTH", "-1-03");
    is("DATE '2026-01-31' + INTERVAL '1' MONTH", "2026-02-28");
    is("TIMESTAMP '2026-01-01 00:00:00.000' - INTERVAL '0.5' SECOND", "2025-12-31 23:59:59.500");
    is("(DATE '2026-01-01', INTERVAL '10' DAY) OVERLAPS (DATE '2026-01-05', DATE '2026-02-01')", "TRUE");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers), cmocka_unit_test(test_texts), cmocka_unit_test(test_like), cmocka_unit_test(test_logic), cmocka_unit_test(test_nested),
                                       cmocka_unit_test(test_printf), cmocka_unit_test(test_intervals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
