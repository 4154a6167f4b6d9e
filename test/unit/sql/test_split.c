/* Script splitting: literals, names, comments and statement sets keep their semicolons. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "sql/sql.h"

static void check(const char *script, uint32_t n, const char *const *want) {
    fz_arena *a = fz_arena_new();
    fz_error err;
    sql_piece *p;
    uint32_t got;
    assert_int_equal(sql_split(a, script, strlen(script), &p, &got, &err), FZ_OK);
    assert_int_equal(got, n);
    for (uint32_t i = 0; i < n; i++) {
        char *text = fz_arena_strndup(a, p[i].text, p[i].len);
        assert_string_equal(text, want[i]);
    }
    fz_arena_free(a);
}
#define CHECK(script, ...)                                              \
    do {                                                                \
        const char *const want_[] = {__VA_ARGS__ __VA_OPT__(, ) NULL};  \
        check(script, sizeof want_ / sizeof *want_ - 1, want_);         \
    } while (0)

static void test_quotes_and_comments(void **state) {
    (void)state;
    CHECK("SELECT ';\n';", "SELECT ';\n'");
    CHECK("SELECT /*;\n*/1;", "SELECT /*;\n*/1");
    CHECK("SELECT --;\n1;", "SELECT --;\n1");
    CHECK("SELECT 'x -- y';", "SELECT 'x -- y'");
    CHECK("SELECT 'it''s;';", "SELECT 'it''s;'");
    CHECK("SELECT `a;b`, \"c;d\";", "SELECT `a;b`, \"c;d\"");
    CHECK("SELECT 1; SELECT 2", "SELECT 1", "SELECT 2");
    CHECK("\xEF\xBB\xBFSELECT 1;\r\n\r\n;;  -- nothing\r\nSELECT 2;\r\n", "SELECT 1", "SELECT 2");
    CHECK("-- only a comment\n/* ; */");
    CHECK("SELECT * FROM t /*+ OPTIONS('a'='b;') */;", "SELECT * FROM t /*+ OPTIONS('a'='b;') */");
}
static void test_statement_sets(void **state) {
    (void)state;
    CHECK("STATEMENT SET BEGIN\nINSERT INTO a SELECT 1;\nINSERT INTO b SELECT CASE WHEN x THEN 1 END;\nEND;\nSELECT 1;",
          "STATEMENT SET BEGIN\nINSERT INTO a SELECT 1;\nINSERT INTO b SELECT CASE WHEN x THEN 1 END;\nEND", "SELECT 1");
    CHECK("execute statement set begin insert into a select 1; end; select 2;", "execute statement set begin insert into a select 1; end", "select 2");
    CHECK("BEGIN STATEMENT SET; INSERT INTO a SELECT 1; END; SELECT 2", "BEGIN STATEMENT SET; INSERT INTO a SELECT 1; END", "SELECT 2");
    CHECK("EXPLAIN STATEMENT SET BEGIN INSERT INTO a SELECT 1; END; SELECT 2", "EXPLAIN STATEMENT SET BEGIN INSERT INTO a SELECT 1; END", "SELECT 2");
}

static void test_positions(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    fz_error err;
    sql_piece *p;
    uint32_t n;
    const char *script = "SELECT '日本';  SELECT 2;\r\n  /* x */ SELECT 3";
    assert_int_equal(sql_split(a, script, strlen(script), &p, &n, &err), FZ_OK);
    assert_int_equal(n, 3);
    assert_int_equal(p[1].pos.line, 1);
    assert_int_equal(p[1].pos.column, 15); /* code points, not bytes */
    assert_int_equal(p[2].pos.line, 2);
    assert_int_equal(p[2].pos.column, 11);
    fz_arena_free(a);
}

static void fails(const char *script, size_t len, const char *code, int line, int column) {
    fz_arena *a = fz_arena_new();
    fz_error err;
    sql_piece *p;
    uint32_t n;
    assert_int_equal(sql_split(a, script, len, &p, &n, &err), FZ_USER);
    assert_string_equal(err.code, code);
    assert_int_equal(err.line, line);
    assert_int_equal(err.column, column);
    fz_arena_free(a);
}

static void test_left_open(void **state) {
    (void)state;
    fails("SELECT 1;\n SELECT 'abc", 22, "sql.syntax", 2, 9);
    fails("SELECT `abc", 11, "sql.syntax", 1, 8);
    fails("SELECT /* abc", 13, "sql.syntax", 1, 8);
    fails("SELECT 'a\xFF'", 11, "sql.syntax", 1, 10);
}

static void test_complete(void **state) {
    (void)state;
    static const struct { const char *text; bool whole; } t[] = {
        {"SELECT 1", false}, {"SELECT 1;", true}, {"SELECT 1; SELECT", false}, {"SELECT ';", false}, {"SELECT 1; -- x", true}, {"", false}, {"  ;", true},
        {"STATEMENT SET BEGIN INSERT INTO a SELECT 1;", false}, {"STATEMENT SET BEGIN INSERT INTO a SELECT 1; END;", true}, {"SELECT 1 /* ;", false}, {"SELECT 'a\xFF';", true}, {"SELECT X'1';", true}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) assert_int_equal(sql_complete(t[i].text, strlen(t[i].text)), t[i].whole);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_quotes_and_comments), cmocka_unit_test(test_statement_sets), cmocka_unit_test(test_positions),
                                       cmocka_unit_test(test_left_open), cmocka_unit_test(test_complete)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
