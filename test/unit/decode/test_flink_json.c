/* Documents that Flink 2.0.1 itself was asked about (test/data/decode/flink_json.jsonl): same row, or an error where Flink fails. */
#include "test_decode.h"
#include <jansson.h>

static fz_buf hex_bytes(const char *hex) {
    fz_buf b = {0};
    for (size_t i = 0; hex[i]; i += 2) {
        unsigned v;
        assert_int_equal(sscanf(hex + i, "%2x", &v), 1);
        fz_buf_putc(&b, (char)v);
    }
    return b;
}

static void expect_row(const dec_output *out, const col_schema *s, json_t *row, int line) {
    for (uint32_t k = 0; k < s->n; k++) {
        fz_buf text = {0};
        const char *want = json_string_value(json_object_get(row, s->fields[k].name));
        bool null = col_is_null(out->cols[k], 0);
        if (!null) cast_text(&text, out->cols[k], 0);
        if (text.len > 1000) {
            size_t n = text.len;
            text.len = 0;
            fz_buf_printf(&text, "len:%zu", n);
        }
        if (null != !want || (want && strcmp(fz_buf_cstr(&text), want) != 0))
            fail_msg("line %d, column %s: got %s, Flink has %s", line, s->fields[k].name, null ? "NULL" : fz_buf_cstr(&text), want ? want : "NULL");
        fz_buf_free(&text);
    }
}

/* Flink's own text of an error must be what the message has, but for causes and positions. */
static void expect_message(const char *got, const char *want, int line) {
    const char *text = strstr(want, ": ");
    assert_non_null(text);
    text += 2;
    size_t n = strcspn(text, "(");
    if (strncmp(got, text, n) != 0 && !strstr(text, "'ALLOW_COMMENTS'")) fail_msg("line %d: message '%s', Flink has '%s'", line, got, text);
}

static void check_line(const char *s, int line) {
    json_error_t je;
    json_t *o = json_loads(s, JSON_ALLOW_NUL, &je);
    assert_non_null(o);
    const char *hex = json_string_value(json_object_get(o, "hex"));
    fz_buf doc = hex ? hex_bytes(hex) : (fz_buf){0};
    const char *ignore = json_is_true(json_object_get(o, "ignore_parse_errors")) ? "true" : "false";
    fz_pair opts[] = {{.key = "format", .value = "json"},
                      {.key = "json.ignore-parse-errors", .value = ignore},
                      {.key = "json.timestamp-format.standard", .value = json_string_value(json_object_get(o, "timestamp_format"))}};
    fz_arena *a = fz_arena_new();
    const col_schema *schema = parse_schema(a, FLINK_SCHEMA);
    decoded d = decode_one("json", opts, 3, schema, hex ? doc.data : NULL, hex ? (int32_t)doc.len : -1);
    json_t *row = json_object_get(o, "row"), *error = json_object_get(o, "error");
    if (error) {
        if (d.rejects.n != 1 || d.out.n_rows != 0) fail_msg("line %d: Flink fails: %s", line, json_string_value(error));
        expect_message(d.rejects.v[0].message, json_string_value(error), line);
    } else {
        if (d.rejects.n) fail_msg("line %d: rejected: %s", line, d.rejects.v[0].message);
        assert_int_equal(d.out.n_rows + d.out.n_unparseable, 1);
        if (d.out.n_rows != (json_is_object(row) ? 1u : 0u)) fail_msg("line %d: %u rows (%s)", line, d.out.n_rows, d.out.sample ? d.out.sample : "");
        if (d.out.n_rows) expect_row(&d.out, schema, row, line);
    }
    decoded_free(&d);
    fz_arena_free(a);
    fz_buf_free(&doc);
    json_decref(o);
}

static void test_oracle(void **state) {
    (void)state;
    FILE *f = fopen("test/data/decode/flink_json.jsonl", "r");
    assert_non_null(f);
    char *s = NULL;
    size_t cap = 0;
    int line = 0;
    while (getline(&s, &cap, f) > 0) check_line(s, ++line);
    free(s);
    fclose(f);
    assert_int_equal(line, 429);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_oracle)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
