/* Nanoseconds a row of the pipeline's expressions, without source, decoder and sink: the SELECT of a syslog pipeline over dictionaries of tens of
 * entries in batches of 8192 rows. Run: build/bench/bench_exec [rounds] */
#include "exec/exec.h"
#include <stdio.h>
#include <stdlib.h>

static const char query[] =
    "SELECT ts, CAST(TO_TIMESTAMP(SUBSTRING(ts,1,19),'yyyy-MM-dd''T''HH:mm:ss') AS TIMESTAMP(6)), TRIM(src_host), program, message, "
    "CAST(SUBSTRING(ts,1,10) AS DATE), CAST(SUBSTRING(ts,12,2) AS INT) FROM t WHERE src_host IS NOT NULL AND TRIM(src_host) <> '' AND ts IS NOT NULL";
static sql_table table;
static fz_status find(void *cx, const sql_name *n, const sql_hint *h, const sql_table **out, fz_error *err) {
    (void)cx; (void)n; (void)h; (void)err;
    *out = &table;
    return FZ_OK;
}
static void die(const fz_error *err) {
    char text[2048];
    (void)fprintf(stderr, "%s\n", fz_error_text(err, text, sizeof text));
    exit(1);
}
static col_vec *dictionary(fz_arena *a, uint32_t entries, uint32_t rows, const char *fmt, bool dirty) {
    col_builder *b = col_builder_new(a, col_string(true));
    char t[64];
    for (uint32_t i = 0; i < entries; i++) {
        int n = snprintf(t, sizeof t, fmt, i % 60);
        if (dirty && i % 8 == 7) col_add_bytes(b, "  ", 2);
        else col_add_bytes(b, t, (size_t)n);
    }
    col_vec *v = col_vec_dict(a, col_builder_finish(b), rows);
    for (uint32_t i = 0; i < rows; i++) v->idx[i] = (uint32_t)((i * 2654435761u) >> 8) % entries;
    return v;
}
static col_vec *messages(fz_arena *a, uint32_t rows) {
    col_builder *b = col_builder_new(a, col_string(true));
    char t[128];
    for (uint32_t i = 0; i < rows; i++) col_add_bytes(b, t, (size_t)snprintf(t, sizeof t, "session %u opened for user u%u by (uid=0) from 10.0.%u.%u port %u", i, i % 99, i % 256, i % 77, i % 65535));
    return col_builder_finish(b);
}

static void measure(const ex_program *p, const char *name, bool dirty, bool flat, int rounds) {
    enum { ROWS = 8192 };
    fz_error err = {0};
    fz_arena *in = fz_arena_new();
    col_vec *cols[4] = {dictionary(in, 50, ROWS, "2026-09-16T12:34:%02u.123456+09:00", false), dictionary(in, 32, ROWS, "web%02u", dirty), dictionary(in, 12, ROWS, "sshd%u", false), messages(in, ROWS)};
    for (int k = 0; flat && k < 3; k++) cols[k] = col_flat(in, cols[k]);
    ex_state *st = ex_state_new(p);
    uint64_t rows = 0;
    int64_t t0 = fz_cpu_ns();
    for (int r = 0; r < rounds; r++) {
        fz_arena *a = fz_arena_new();
        ex_result out;
        fz_rejects bad = {0};
        if (ex_run(p, st, cols, ROWS, a, &out, &bad, &err) != FZ_OK) die(&err);
        rows += out.n_rows;
        fz_free(bad.v);
        fz_arena_free(a);
    }
    int64_t ns = fz_cpu_ns() - t0;
    printf("%-28s %6.2f ns/row (%llu rows out of %llu)\n", name, (double)ns / ((double)rounds * ROWS), (unsigned long long)rows, (unsigned long long)rounds * ROWS);
    ex_state_free(st);
    fz_arena_free(in);
}

/* A bounded query over the same columns: groups by two dictionary columns. */
typedef struct endless { col_vec **cols; int left; } endless;
static fz_status feed_next(void *cx, const sql_plan *scan, fz_arena *a, col_vec ***cols, uint32_t *n, fz_error *err) {
    (void)scan; (void)a; (void)err;
    endless *e = cx;
    *cols = e->cols;
    *n = e->left-- > 0 ? 8192 : 0;
    return FZ_OK;
}
static void measure_groups(fz_arena *a, const sql_resolver *r, const sql_settings *s, int rounds) {
    static const char sql[] = "SELECT src_host, program, COUNT(*), MIN(ts), MAX(ts) FROM t GROUP BY src_host, program ORDER BY 3 DESC";
    fz_error err = {0};
    sql_query *q;
    sql_plan *plan;
    ex_query *x;
    col_batch *b;
    fz_arena *in = fz_arena_new();
    col_vec *cols[4] = {dictionary(in, 50, 8192, "2026-09-16T12:34:%02u.123456+09:00", false), dictionary(in, 32, 8192, "web%02u", false), dictionary(in, 12, 8192, "sshd%u", false), NULL};
    endless e = {cols, rounds};
    const ex_feed feed = {&e, feed_next};
    if (sql_parse_query(a, sql, sizeof sql - 1, &q, &err) != FZ_OK || sql_bind_query(a, q, r, s, NULL, &plan, &err) != FZ_OK || ex_query_open(plan, s, &feed, false, &x, &err) != FZ_OK) die(&err);
    int64_t t0 = fz_cpu_ns();
    do {
        if (ex_query_next(x, &b, &err) != FZ_OK) die(&err);
        col_batch_release(b);
    } while (b);
    printf("%-28s %6.2f ns/row\n", "groups, MIN, MAX, sorted", (double)(fz_cpu_ns() - t0) / ((double)rounds * 8192));
    ex_query_close(x);
    fz_arena_free(in);
}

int main(int argc, char **argv) {
    int64_t rounds = 2000;
    if (argc > 1 && !fz_parse_i64(fz_sv_of(argv[1]), &rounds)) return 1;
    fz_arena *a = fz_arena_new();
    fz_error err = {0};
    static const char *const names[] = {"ts", "src_host", "program", "message"};
    sql_column *c = FZ_ANEWN(a, sql_column, 4);
    for (int k = 0; k < 4; k++) c[k] = (sql_column){.name = names[k], .kind = SQL_COL_PHYSICAL, .type = col_string(true)};
    table = (sql_table){.kind = SQL_T_CONNECTOR, .path = "t", .n_columns = 4, .columns = c};
    sql_resolver r = {NULL, find};
    sql_settings s = {.time_zone = "UTC"};
    sql_query *q;
    sql_plan *plan;
    ex_program *p;
    if (sql_parse_query(a, query, sizeof query - 1, &q, &err) != FZ_OK || sql_bind_query(a, q, &r, &s, NULL, &plan, &err) != FZ_OK || ex_compile(plan, &s, &p, &err) != FZ_OK) die(&err);
    measure(p, "all rows pass", false, false, (int)rounds);
    measure(p, "one host in eight is blank", true, false, (int)rounds);
    measure(p, "no dictionaries", false, true, (int)rounds / 20 + 1);
    ex_program_free(p);
    measure_groups(a, &r, &s, (int)rounds / 20 + 1);
    fz_arena_free(a);
    return 0;
}
