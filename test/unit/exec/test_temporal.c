/* Temporal functions and casts over all temporal types, against Flink 2.0.1 with the session in New York: test/data/exec/flink_temporal.tsv has one expression a
 * line, then the type without NOT NULL and the texts of two rows (ERROR: the job fails). */
#include "exec/exec.h"
#include "col/datetime.h"
#include "col/tz.h"
#include "sql/sql_fn.h"
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#define ZONE "America/New_York"
#define N_COLS 8

static int64_t us(const char *s) {
    int64_t v = 0;
    assert_true(dt_parse_timestamp(fz_sv_of(s), 6, &v));
    return v;
}
static int32_t day(const char *s) {
    int32_t v = 0;
    assert_int_equal(dt_parse_date(fz_sv_of(s), &v), DT_OK);
    return v;
}

static col_field fields[N_COLS];
static const col_schema schema = {N_COLS, fields};

static void add(col_vec **cols, fz_arena *a, uint32_t k, const char *name, const col_type *t, int64_t x, int64_t y) {
    fields[k] = (col_field){name, t, NULL};
    col_builder *b = col_builder_new(a, t);
    col_add_i64(b, x);
    col_add_i64(b, y);
    cols[k] = col_builder_finish(b);
}

static void make_columns(fz_arena *a, col_vec **cols) {
    int64_t t0 = us("2026-09-16 12:34:56.123456"), t1 = us("2026-11-01 01:30:00.000001");
    const tz_zone *ny = tz_find(FZ_SV(ZONE));
    add(cols, a, 0, "t", col_sized(a, COL_TIMESTAMP, 6, 0, false), t0, t1);
    add(cols, a, 1, "dt", col_simple(COL_DATE, false), day("2026-09-16"), day("2024-02-29"));
    add(cols, a, 2, "tm", col_sized(a, COL_TIME, 0, 0, false), 45296000, 86399000);
    add(cols, a, 3, "i", col_simple(COL_BIGINT, false), 1789529696123, -1);
    add(cols, a, 4, "t2", col_sized(a, COL_TIMESTAMP, 6, 0, false), us("1969-12-30 22:33:44.555666"), us("1960-05-05 10:20:30.999999"));
    add(cols, a, 5, "z", col_sized(a, COL_TIMESTAMP_LTZ, 3, 0, false), dt_cut(tz_to_utc(ny, t0), 3), dt_cut(tz_to_utc(ny, t1), 3));
    fields[6] = (col_field){"s", col_string(false), NULL};
    fields[7] = (col_field){"d", col_simple(COL_DOUBLE, false), NULL};
    col_builder *s = col_builder_new(a, fields[6].type), *d = col_builder_new(a, fields[7].type);
    col_add_bytes(s, "20260916", 8);
    col_add_bytes(s, "2147483648", 10);
    col_add_f64(d, 1789529696.789);
    col_add_f64(d, -1.5);
    cols[6] = col_builder_finish(s);
    cols[7] = col_builder_finish(d);
}

/* "type\tvalue\tvalue", or "ERROR". */
static void evaluate(fz_arena *a, const char *expr, col_vec **cols, fz_buf *out) {
    fz_error err = {0};
    const sql_settings settings = {.time_zone = ZONE, .now_us = 1789529696123456};
    sql_expr *e;
    sql_bound *b;
    if (sql_parse_expr(a, expr, strlen(expr), &e, &err) != FZ_OK || sql_bind_expr(a, e, &schema, &settings, &b, &err) != FZ_OK) {
        fz_buf_puts(out, "ERROR");
        return;
    }
    bool wanted[N_COLS];
    memset(wanted, 1, sizeof wanted);
    sql_plan scan = {.kind = SQL_P_SCAN, .schema = &schema, .wanted = wanted, .n_scan_physical = N_COLS};
    const col_field of = {"x", b->type, NULL};
    const col_schema os = {1, &of};
    sql_plan *in = &scan, project = {.kind = SQL_P_PROJECT, .schema = &os, .n_inputs = 1, .inputs = &in, .n_exprs = 1, .exprs = &b};
    ex_program *p;
    assert_int_equal(ex_compile(&project, &settings, &p, &err), FZ_OK);
    ex_state *st = ex_state_new(p);
    ex_result r = {0};
    fz_rejects bad = {0};
    assert_int_equal(ex_run(p, st, cols, 2, a, &r, &bad, &err), FZ_OK);
    if (r.n_rows < 2) {
        fz_buf_puts(out, "ERROR");
    } else {
        col_type_text(out, col_with_null(a, b->type, true));
        for (uint32_t i = 0; i < 2; i++) {
            fz_buf_putc(out, '\t');
            if (col_is_null(r.cols[0], i)) fz_buf_puts(out, "NULL");
            else ex_value_text(out, r.cols[0], i, ZONE);
        }
    }
    fz_free(bad.v);
    ex_state_free(st);
    ex_program_free(p);
}

static void test_answers(void **state) {
    (void)state;
    FILE *f = fopen("test/data/exec/flink_temporal.tsv", "r");
    assert_non_null(f);
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    unsigned rows = 0, bad = 0;
    while ((n = getline(&line, &cap, f)) > 0) {
        if (line[n - 1] == '\n') line[n - 1] = 0;
        char *want = strchr(line, '\t');
        assert_non_null(want);
        *want++ = 0;
        fz_arena *a = fz_arena_new();
        col_vec *cols[N_COLS];
        make_columns(a, cols);
        fz_buf out = {0};
        evaluate(a, line, cols, &out);
        rows++;
        if (strcmp(fz_buf_cstr(&out), want) != 0) {
            print_error("%s\n   got  %s\n   want %s\n", line, fz_buf_cstr(&out), want);
            bad++;
        }
        fz_buf_free(&out);
        fz_arena_free(a);
    }
    free(line);
    fclose(f);
    if (bad) fail_msg("%u of %u answers differ", bad, rows);
    assert_true(rows > 100);
}

/* A pattern that differs by rows is compiled anew where it changes; a wrong one fails its rows only, or makes them NULL in TO_TIMESTAMP. */
static void test_patterns_by_row(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    col_vec *cols[N_COLS];
    make_columns(a, cols);
    fz_buf out = {0};
    evaluate(a, "DATE_FORMAT(t, CASE WHEN i > 0 THEN 'yyyy' ELSE 'd/M' END)", cols, &out);
    assert_string_equal(fz_buf_cstr(&out), "STRING\t2026\t1/11");
    out.len = 0;
    evaluate(a, "TO_TIMESTAMP('2026', CASE WHEN i > 0 THEN 'yyyy' ELSE 'I' END)", cols, &out);
    assert_string_equal(fz_buf_cstr(&out), "TIMESTAMP(3)\t2026-01-01 00:00:00.000\tNULL");
    out.len = 0;
    evaluate(a, "DATE_FORMAT(t, CASE WHEN i > 0 THEN 'yyyy' ELSE 'I' END)", cols, &out);
    assert_string_equal(fz_buf_cstr(&out), "ERROR");
    out.len = 0;
    evaluate(a, "CAST(CURRENT_TIMESTAMP AS STRING) || '/' || CAST(CURRENT_DATE AS STRING) || '/' || CAST(LOCALTIME AS STRING) || '/' || CAST(LOCALTIMESTAMP AS STRING)", cols, &out);
    assert_non_null(strstr(fz_buf_cstr(&out), "\t2026-09-15 23:34:56.123/2026-09-15/23:34:56/2026-09-15 23:34:56.123\t"));
    fz_buf_free(&out);
    fz_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_answers), cmocka_unit_test(test_patterns_by_row)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
