/* Random expressions, each evaluated in four ways: over dictionaries, over flat columns, over a mixture of both, and row by row. Values and rejected rows
 * must be the same. The seed of a failing round is printed; FRAZIL_SEED repeats it. */
#include "exec/exec.h"
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

enum { ROWS = 40, COLS = 4 };
static uint64_t seed;
static uint32_t pick(uint32_t n) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(seed >> 33) % n;
}

/* a and b are of one dictionary (same idx), c of another, d is mostly distinct; a, c, d are texts, some of them numbers; b is INT. */
static const char *const texts[] = {"1", "x", "", "22", NULL, "abc", "0", " 7 ", "-5", "%a_"};
static const char *const columns[] = {"a", "b", "c", "d"};

static void boolean(fz_buf *b, int depth);
static void number(fz_buf *b, int depth);
static void text(fz_buf *b, int depth) {
    switch (depth <= 0 ? pick(4) : pick(11)) {
    case 0: fz_buf_puts(b, "a"); return;
    case 1: fz_buf_puts(b, "c"); return;
    case 2: fz_buf_puts(b, "d"); return;
    case 3: fz_buf_puts(b, pick(2) ? "'x'" : "CAST(NULL AS STRING)"); return;
    case 4: fz_buf_puts(b, "TRIM("); text(b, depth - 1); fz_buf_putc(b, ')'); return;
    case 5: fz_buf_puts(b, "("); text(b, depth - 1); fz_buf_puts(b, " || "); text(b, depth - 1); fz_buf_putc(b, ')'); return;
    case 6: fz_buf_puts(b, "CASE WHEN "); boolean(b, depth - 1); fz_buf_puts(b, " THEN "); text(b, depth - 1); fz_buf_puts(b, " WHEN "); boolean(b, depth - 1); fz_buf_puts(b, " THEN "); text(b, depth - 1); fz_buf_puts(b, " ELSE "); text(b, depth - 1); fz_buf_puts(b, " END"); return;
    case 7: fz_buf_puts(b, "COALESCE("); text(b, depth - 1); fz_buf_puts(b, ", "); text(b, depth - 1); fz_buf_puts(b, ", "); text(b, depth - 1); fz_buf_putc(b, ')'); return;
    case 8: fz_buf_puts(b, "CAST("); number(b, depth - 1); fz_buf_puts(b, " AS STRING)"); return;
    case 9: fz_buf_puts(b, "SUBSTRING("); text(b, depth - 1); fz_buf_puts(b, ", "); number(b, depth - 1); fz_buf_puts(b, ", 2)"); return;
    default: fz_buf_puts(b, "CONCAT_WS('-', "); text(b, depth - 1); fz_buf_puts(b, ", "); text(b, depth - 1); fz_buf_putc(b, ')');
    }
}
static void number(fz_buf *b, int depth) {
    switch (depth <= 0 ? pick(2) : pick(7)) {
    case 0: fz_buf_puts(b, "b"); return;
    case 1: fz_buf_printf(b, "%u", pick(4)); return;
    case 2: fz_buf_puts(b, "CAST("); text(b, depth - 1); fz_buf_puts(b, " AS INT)"); return;
    case 3: fz_buf_puts(b, "("); number(b, depth - 1); fz_buf_puts(b, " / "); number(b, depth - 1); fz_buf_putc(b, ')'); return;
    case 4: fz_buf_puts(b, "CHAR_LENGTH("); text(b, depth - 1); fz_buf_putc(b, ')'); return;
    case 5: fz_buf_puts(b, "IF("); boolean(b, depth - 1); fz_buf_puts(b, ", "); number(b, depth - 1); fz_buf_puts(b, ", "); number(b, depth - 1); fz_buf_putc(b, ')'); return;
    default: fz_buf_puts(b, "TRY_CAST("); text(b, depth - 1); fz_buf_puts(b, " AS INT)");
    }
}
static void boolean(fz_buf *b, int depth) {
    switch (depth <= 0 ? pick(2) : pick(9)) {
    case 0: fz_buf_puts(b, "a = 'x'"); return;
    case 1: fz_buf_puts(b, "c IS NULL"); return;
    case 2: fz_buf_puts(b, "("); boolean(b, depth - 1); fz_buf_puts(b, " AND "); boolean(b, depth - 1); fz_buf_puts(b, " AND "); boolean(b, depth - 1); fz_buf_putc(b, ')'); return;
    case 3: fz_buf_puts(b, "("); boolean(b, depth - 1); fz_buf_puts(b, " OR "); boolean(b, depth - 1); fz_buf_putc(b, ')'); return;
    case 4: fz_buf_puts(b, "NOT ("); boolean(b, depth - 1); fz_buf_putc(b, ')'); return;
    case 5: number(b, depth - 1); fz_buf_puts(b, pick(2) ? " > " : " = "); number(b, depth - 1); return;
    case 6: fz_buf_puts(b, "("); text(b, depth - 1); fz_buf_puts(b, ") IN ('x', '1', '22')"); return;
    case 7: text(b, depth - 1); fz_buf_puts(b, " LIKE '%1%'"); return;
    default: fz_buf_puts(b, "("); boolean(b, depth - 1); fz_buf_puts(b, ") IS TRUE");
    }
}

/* One answer a row: "value|value", "filtered" or "rejected". */
typedef struct answers { char *row[ROWS]; } answers;

static void run(const ex_program *p, ex_state *st, col_vec *const *in, uint32_t from, uint32_t n, answers *out) {
    fz_arena *a = fz_arena_new();
    fz_error err = {0};
    ex_result r;
    fz_rejects bad = {0};
    assert_int_equal(ex_run(p, st, in, n, a, &r, &bad, &err), FZ_OK);
    assert_int_equal(r.n_rows + r.n_filtered + r.n_rejected, n);
    assert_int_equal(bad.n, r.n_rejected);
    for (uint32_t i = 0; i < n; i++) out->row[from + i] = fz_strdup("filtered");
    for (uint32_t k = 0; k < bad.n; k++) {
        fz_free(out->row[from + bad.v[k].rec]);
        out->row[from + bad.v[k].rec] = fz_strdup("rejected");
    }
    for (uint32_t i = 0; i < r.n_rows; i++) {
        fz_buf b = {0};
        for (int c = 0; c < 3; c++) {
            if (c) fz_buf_putc(&b, '|');
            if (col_is_null(r.cols[c], i)) fz_buf_puts(&b, "NULL");
            else ex_value_text(&b, r.cols[c], i, "UTC");
        }
        (void)fz_buf_cstr(&b);
        assert_string_equal(out->row[from + r.row[i]], "filtered");
        fz_free(out->row[from + r.row[i]]);
        out->row[from + r.row[i]] = fz_buf_steal(&b);
    }
    fz_free(bad.v);
    fz_arena_free(a);
}

static col_vec *make(fz_arena *a, const col_type *t, uint32_t n, const uint32_t *which) {
    col_builder *b = col_builder_new(a, t);
    for (uint32_t i = 0; i < n; i++) {
        const char *s = texts[which[i]];
        if (!s) col_add_null(b);
        else if (t->kind == COL_INT) col_add_i64(b, (int64_t)which[i] - 3);
        else col_add_bytes(b, s, strlen(s));
    }
    return col_builder_finish(b);
}

static void round_of(uint64_t round) {
    seed = round * 0x9e3779b97f4a7c15ULL + 1;
    fz_arena *a = fz_arena_new();
    fz_error err = {0};
    const col_field f[COLS] = {{"a", col_string(true), NULL}, {"b", col_simple(COL_INT, true), NULL}, {"c", col_string(true), NULL}, {"d", col_string(true), NULL}};
    const col_schema schema = {COLS, f};
    bool wanted[COLS] = {true, true, true, true};
    fz_buf sql[4] = {{0}};
    text(&sql[0], 4);
    number(&sql[1], 4);
    boolean(&sql[2], 4);
    boolean(&sql[3], 3);
    static const sql_settings settings = {.time_zone = "UTC", .now_us = 1};
    sql_bound *bound[4];
    for (int k = 0; k < 4; k++) {
        sql_expr *e;
        fz_status s = sql_parse_expr(a, fz_buf_cstr(&sql[k]), sql[k].len, &e, &err);
        if (s == FZ_OK) s = sql_bind_expr(a, e, &schema, &settings, &bound[k], &err);
        if (s != FZ_OK) fail_msg("%s: %s", (char *)sql[k].data, err.message);
    }
    sql_plan scan = {.kind = SQL_P_SCAN, .schema = &schema, .wanted = wanted, .n_scan_physical = COLS}, *sp = &scan;
    sql_plan filter = {.kind = SQL_P_FILTER, .schema = &schema, .n_inputs = 1, .inputs = &sp, .predicate = bound[3]}, *fp = &filter;
    col_field of[3];
    for (int k = 0; k < 3; k++) of[k] = (col_field){columns[k], bound[k]->type, NULL};
    const col_schema os = {3, of};
    sql_plan project = {.kind = SQL_P_PROJECT, .schema = &os, .n_inputs = 1, .inputs = &fp, .n_exprs = 3, .exprs = bound};
    ex_program *p;
    assert_int_equal(ex_compile(&project, &settings, &p, &err), FZ_OK);
    ex_state *st = ex_state_new(p);

    uint32_t entry_a[8], entry_b[8], entry_c[8], idx1[ROWS], idx2[ROWS], rows[COLS][ROWS];
    for (int k = 0; k < 8; k++) {
        entry_a[k] = pick(10);
        entry_b[k] = pick(10);
        entry_c[k] = pick(10);
    }
    for (int i = 0; i < ROWS; i++) {
        idx1[i] = pick(8);
        idx2[i] = pick(8);
        rows[0][i] = entry_a[idx1[i]];
        rows[1][i] = entry_b[idx1[i]];
        rows[2][i] = entry_c[idx2[i]];
        rows[3][i] = pick(10);
    }
    col_vec *flat[COLS], *dict[COLS], *mixed[COLS];
    for (int c = 0; c < COLS; c++) flat[c] = make(a, f[c].type, ROWS, rows[c]);
    const uint32_t *entries[3] = {entry_a, entry_b, entry_c};
    uint32_t *shared = fz_arena_alloc(a, sizeof idx1);
    memcpy(shared, idx1, sizeof idx1);
    for (int c = 0; c < 3; c++) {
        dict[c] = col_vec_dict(a, make(a, f[c].type, 8, entries[c]), ROWS);
        if (c < 2) dict[c]->idx = shared;
        else memcpy(dict[c]->idx, idx2, sizeof idx2);
    }
    dict[3] = flat[3];
    for (int c = 0; c < COLS; c++) mixed[c] = c % 2 ? flat[c] : dict[c];

    answers want = {{0}}, got;
    for (uint32_t i = 0; i < ROWS; i++) {
        col_vec *one[COLS];
        for (int c = 0; c < COLS; c++) one[c] = col_gather(a, flat[c], &i, 1);
        run(p, st, one, i, 1, &want);
    }
    static const char *const names[] = {"flat", "dictionaries", "mixed"};
    col_vec *const *forms[] = {flat, dict, mixed};
    for (int form = 0; form < 3; form++) {
        run(p, st, forms[form], 0, ROWS, &got);
        for (uint32_t i = 0; i < ROWS; i++) {
            if (strcmp(want.row[i], got.row[i]))
                fail_msg("seed %llu, row %u, %s: %s, alone %s\n  SELECT %s, %s, %s WHERE %s", (unsigned long long)round, i, names[form], got.row[i], want.row[i], (char *)sql[0].data, (char *)sql[1].data, (char *)sql[2].data, (char *)sql[3].data);
            fz_free(got.row[i]);
        }
    }
    for (uint32_t i = 0; i < ROWS; i++) fz_free(want.row[i]);
    for (int k = 0; k < 4; k++) fz_buf_free(&sql[k]);
    ex_state_free(st);
    ex_program_free(p);
    fz_arena_free(a);
}

static void test_rounds(void **state) {
    (void)state;
    const char *only = getenv("FRAZIL_SEED");
    uint64_t one;
    if (only && fz_parse_u64(fz_sv_of(only), &one)) {
        round_of(one);
        return;
    }
    for (uint64_t r = 0; r < 1500; r++) round_of(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rounds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
