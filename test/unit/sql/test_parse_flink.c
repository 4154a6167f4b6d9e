/* Agreement with the parser of Flink 2.0.1, whose verdicts stand in test/data/sql: which words are reserved, which statements it takes. */
#include "unit.h"
#include <stdlib.h>
#include "sql/sql.h"

/* Where this dialect is wider on purpose: double quotes make names, SHOW ... ILIKE, STATEMENT SET without EXECUTE. */
static bool wider(const char *s) { return fz_starts(s, "STATEMENT SET") || strstr(s, "\"a\"") || strstr(s, "\"c d\"") || strstr(s, "ILIKE 'x'"); }
/* ... and narrower: halves of a statement set, which Flink's client takes one by one; character set introducers. */
static bool narrower(const char *s) { return strcmp(s, "BEGIN STATEMENT SET") == 0 || strcmp(s, "END") == 0 || strstr(s, "_UTF8'x'"); }

typedef void (*line_fn)(char *verdict, char *rest);
static void each_line(const char *path, char sep, line_fn fn) {
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    char *line = NULL;
    size_t cap = 0, lines = 0;
    ssize_t n;
    while ((n = getline(&line, &cap, f)) > 0) {
        line[n - 1] = 0;
        char *rest = strchr(line, sep);
        assert_non_null(rest);
        *rest = 0;
        fn(line, rest + 1);
        lines++;
    }
    free(line);
    fclose(f);
    assert_true(lines > 100);
}

static fz_status parse(const char *text, fz_error *err) {
    fz_arena *a = fz_arena_new();
    sql_stmt *s;
    sql_piece piece = {text, strlen(text), {1, 1}};
    fz_status rc = sql_parse(a, &piece, &s, err);
    fz_arena_free(a);
    return rc;
}

static void statement(char *verdict, char *text) {
    fz_error err = {0};
    fz_status rc = parse(text, &err);
    if (strcmp(verdict, "accepts") == 0) {
        if (rc != FZ_OK && strcmp(err.code, "sql.unsupported") != 0 && !narrower(text)) fail_msg("%s: %s", text, err.message);
    } else if (rc == FZ_OK && !wider(text)) {
        fail_msg("%s: taken, but Flink refuses it", text);
    }
}

static void word(char *verdict, char *w) {
    fz_error err = {0};
    char text[128];
    snprintf(text, sizeof text, "SELECT a AS %s FROM t", w);
    if ((parse(text, &err) == FZ_OK) != (strcmp(verdict, "free") == 0)) fail_msg("%s is %s in Flink", w, verdict);
}

static void test_statements(void **state) {
    (void)state;
    each_line("test/data/sql/flink_statements.txt", '\t', statement);
}
static void test_words(void **state) {
    (void)state;
    each_line("test/data/sql/flink_words.txt", ' ', word);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_statements), cmocka_unit_test(test_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
