/* Random documents, whole and damaged, that the real Flink was asked about (test/data/decode/flink_json_values.txt): every type, both
 * ways of treating errors. (test/fuzz/fuzz_json.c compares the fast path with the exact one.) */
#include "test_decode.h"

#define SCHEMA_B                                                                                                                      \
    "ti TINYINT, si SMALLINT, fl FLOAT, tm TIME(0), lt TIMESTAMP_LTZ(3), de DECIMAL(10,2), by BYTES, an ARRAY<INT>, aa ARRAY<ARRAY<STRING>>, " \
    "mn MAP<STRING,ROW<x INT, y STRING>>, rr ROW<p ROW<q DOUBLE>, l ARRAY<ROW<k STRING>>>, s STRING"

static void show_bytes(fz_buf *b, fz_sv s) {
    for (size_t i = 0; i < s.n; i++) fz_buf_printf(b, "%02x", (uint8_t)s.p[i]);
}

static void show(fz_buf *b, const col_vec *v, uint32_t i);

static void show_nested(fz_buf *b, const col_vec *v, uint32_t i) {
    const col_vec *f = col_at(v, &i);
    bool map = v->type->kind == COL_MAP;
    fz_buf_putc(b, map ? '{' : '[');
    for (uint32_t k = f->off[i]; k < f->off[i + 1]; k++) {
        if (k > f->off[i]) fz_buf_putc(b, ',');
        show(b, f->child[0], k);
        if (!map) continue;
        fz_buf_putc(b, '=');
        show(b, f->child[1], k);
    }
    fz_buf_putc(b, map ? '}' : ']');
}

static void show_row(fz_buf *b, col_vec *const *cols, uint32_t n, uint32_t i) {
    fz_buf_putc(b, '(');
    for (uint32_t k = 0; k < n; k++) {
        if (k) fz_buf_putc(b, ',');
        show(b, cols[k], i);
    }
    fz_buf_putc(b, ')');
}

static void show(fz_buf *b, const col_vec *v, uint32_t i) {
    if (col_is_null(v, i)) {
        fz_buf_putc(b, 'N');
        return;
    }
    switch (v->type->kind) {
    case COL_VARCHAR:
        fz_buf_putc(b, '"');
        show_bytes(b, col_sv(v, i));
        fz_buf_putc(b, '"');
        break;
    case COL_VARBINARY:
        fz_buf_putc(b, 'x');
        show_bytes(b, col_sv(v, i));
        break;
    case COL_FLOAT: {
        float x = col_f32(v, i);
        uint32_t u;
        memcpy(&u, &x, 4);
        fz_buf_printf(b, "%08x", x != x ? 0x7fc00000u : u);
        break;
    }
    case COL_DOUBLE: {
        double x = col_f64(v, i);
        uint64_t u;
        memcpy(&u, &x, 8);
        fz_buf_printf(b, "%016llx", x != x ? 0x7ff8000000000000ull : (unsigned long long)u);
        break;
    }
    case COL_DECIMAL: fz_buf_printf(b, "%lld", (long long)col_dec(v, i)); break;
    case COL_BOOLEAN: fz_buf_puts(b, col_bool(v, i) ? "true" : "false"); break;
    case COL_BIGINT: case COL_TIMESTAMP: case COL_TIMESTAMP_LTZ: fz_buf_printf(b, "%lld", (long long)col_i64(v, i)); break;
    case COL_ARRAY: case COL_MAP: show_nested(b, v, i); break;
    case COL_ROW: {
        const col_vec *f = col_at(v, &i);
        show_row(b, f->child, f->n_child, i);
        break;
    }
    default: fz_buf_printf(b, "%d", col_i32(v, i));
    }
}

static void check(const col_schema *schema, const char *flags, const uint8_t *doc, int32_t n, const char *want, int line) {
    fz_pair opts[] = {{.key = "json.ignore-parse-errors", .value = strchr(flags, 'i') ? "true" : "false"},
                      {.key = "json.fail-on-missing-field", .value = strchr(flags, 'm') ? "true" : "false"},
                      {.key = "json.timestamp-format.standard", .value = strchr(flags, 'o') ? "ISO-8601" : "SQL"}};
    decoded d = decode_one("json", opts, 3, schema, doc, n);
    fz_buf got = {0};
    if (d.rejects.n) fz_buf_puts(&got, "ERR");
    else if (!d.out.n_rows) fz_buf_puts(&got, "NONE");
    else show_row(&got, d.out.cols, schema->n, 0);
    if (strcmp(fz_buf_cstr(&got), want) != 0) fail_msg("line %d: %.*s\n  got   %s\n  Flink %s", line, (int)n, (const char *)doc, fz_buf_cstr(&got), want);
    fz_buf_free(&got);
    decoded_free(&d);
}

static void test_values(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    const col_schema *schemas[] = {parse_schema(a, FLINK_SCHEMA), parse_schema(a, SCHEMA_B)};
    FILE *f = fopen("test/data/decode/flink_json_values.txt", "r");
    assert_non_null(f);
    char *s = NULL;
    size_t cap = 0;
    int line = 0, cases = 0;
    while (getline(&s, &cap, f) > 0) {
        line++;
        if (*s == '#') continue;
        char *save, *schema = strtok_r(s, " \n", &save), *flags = strtok_r(NULL, " \n", &save), *hex = strtok_r(NULL, " \n", &save);
        const char *want = strtok_r(NULL, " \n", &save);
        assert_non_null(want);
        fz_buf doc = {0};
        for (char *h = hex; *h; h += 2) {
            unsigned v;
            sscanf(h, "%2x", &v);
            fz_buf_putc(&doc, (char)v);
        }
        check(schemas[*schema - 'A'], flags, doc.data, (int32_t)doc.len, want, line);
        fz_buf_free(&doc);
        cases++;
    }
    free(s);
    fclose(f);
    fz_arena_free(a);
    assert_true(cases > 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
