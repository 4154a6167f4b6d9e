/* The format 'json': options, what becomes of each kind of record, dictionaries, and the cases of RFC 8259. */
#include "decode/json_fast_int.h"
#include "test_decode.h"

static decoded decode_lines(const fz_pair *opts, size_t n_opts, const col_schema *s, const bool *wanted, const char *const *docs, uint32_t n) {
    decoded d = {0};
    fz_error err;
    if (dec_new("json", opts, n_opts, s, wanted, false, &d.dec, &err) != FZ_OK) fail_msg("open: %s", err.message);
    fz_record *rec = calloc(n, sizeof *rec);
    for (uint32_t i = 0; i < n; i++)
        rec[i] = (fz_record){.value = (const uint8_t *)docs[i], .value_len = docs[i] ? (int32_t)strlen(docs[i]) : -1, .key_len = -1};
    decode_into(&d, rec, n);
    free(rec);
    return d;
}

static void expect(const col_vec *v, uint32_t row, const char *want) {
    fz_buf b = {0};
    cast_text(&b, v, row);
    assert_string_equal(fz_buf_cstr(&b), want);
    fz_buf_free(&b);
}

static fz_status open_with(const char *format, const fz_pair *opts, size_t n, const char *schema, fz_error *err) {
    fz_arena *a = fz_arena_new();
    dec_decoder *d = NULL;
    fz_status s = dec_new(format, opts, n, parse_schema(a, schema), NULL, false, &d, err);
    if (s == FZ_OK) dec_free(d);
    fz_arena_free(a);
    return s;
}

static void test_options(void **state) {
    (void)state;
    fz_error err;
    fz_pair both[] = {{.key = "json.ignore-parse-errors", .value = "true"}, {.key = "json.fail-on-missing-field", .value = "TRUE"}};
    assert_int_equal(open_with("json", both, 2, "s STRING", &err), FZ_USER);
    assert_string_equal(err.code, "option.conflict");
    fz_pair typo[] = {{.key = "json.ignore-parse-error", .value = "true", .line = 4, .column = 3}};
    assert_int_equal(open_with("json", typo, 1, "s STRING", &err), FZ_USER);
    assert_string_equal(err.code, "option.unknown");
    assert_int_equal(err.line, 4);
    assert_non_null(strstr(err.hint, "json.ignore-parse-errors"));
    fz_pair enumerated[] = {{.key = "value.json.timestamp-format.standard", .value = "RFC"}};
    assert_int_equal(open_with("json", enumerated, 1, "s STRING", &err), FZ_USER);
    fz_pair reader[] = {{.key = "json.decode.json-parser.enabled", .value = "false"}};
    assert_int_equal(open_with("json", reader, 1, "s STRING", &err), FZ_USER);
    fz_pair known[] = {{.key = "json.encode.decimal-as-plain-number", .value = "true"}, {.key = "json.map-null-key.mode", .value = "DROP"}, {.key = "topic", .value = "t"}};
    assert_int_equal(open_with("json", known, 3, "s STRING", &err), FZ_OK);
    assert_int_equal(open_with("json", NULL, 0, "m MAP<INT,STRING>", &err), FZ_USER);
    assert_string_equal(err.code, "json.map-key");
    assert_int_equal(open_with("debezium-json", NULL, 0, "s STRING", &err), FZ_USER);
    assert_string_equal(err.code, "format.refused");
    assert_non_null(strstr(err.hint, "json"));
    assert_int_equal(open_with("jsno", NULL, 0, "s STRING", &err), FZ_USER);
    assert_string_equal(err.code, "format.unknown");
}

static void test_fates(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    const col_schema *s = parse_schema(a, "s STRING, n INT");
    const char *docs[] = {"{\"s\":\"a\",\"n\":1}", NULL, "", "{\"s\":\"b\",\"n\":\"x\"}", "{\"s\":", "{\"n\":2,\"s\":\"c\"}"};
    fz_pair ignore[] = {{.key = "json.ignore-parse-errors", .value = "true"}};
    decoded d = decode_lines(ignore, 1, s, NULL, docs, 6);
    assert_int_equal(d.out.n_rows, 3);
    assert_int_equal(d.out.n_unparseable, 3);
    assert_int_equal(d.out.n_tombstones, 1);
    assert_int_equal(d.out.sample_rec, 4);
    assert_non_null(strstr(d.out.sample, "end-of-input"));
    assert_int_equal(d.out.row_rec[2], 5);
    expect(d.out.cols[1], 1, "NULL");
    expect(d.out.cols[0], 2, "c");
    decoded_free(&d);
    d = decode_lines(NULL, 0, s, NULL, docs, 6);
    assert_int_equal(d.out.n_rows, 2);
    assert_int_equal(d.rejects.n, 2);
    assert_int_equal(d.rejects.v[0].rec, 3);
    assert_string_equal(d.rejects.v[0].code, "json.parse");
    assert_string_equal(d.rejects.v[0].message, "Fail to deserialize at field: n. (For input string: \"x\", at byte 16)");
    decoded_free(&d);
    fz_pair missing[] = {{.key = "json.fail-on-missing-field", .value = "true"}};
    const char *two[] = {"{\"s\":\"a\"}", "{\"n\":1,\"s\":null}"};
    d = decode_lines(missing, 1, s, NULL, two, 2);
    assert_int_equal(d.out.n_rows, 1);
    assert_non_null(strstr(d.rejects.v[0].message, "Some field is missing"));
    decoded_free(&d);
    fz_arena_free(a);
}

/* Columns that the query does not want are not given, but count and are checked as in Flink. */
static void test_unwanted(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    const col_schema *s = parse_schema(a, "s STRING, n INT, o STRING");
    const bool wanted[] = {true, false, false};
    const char *docs[] = {"{\"s\":\"a\",\"n\":1,\"o\":\"\\u3042\"}", "{\"s\":\"b\",\"n\":\"x\"}", "{\"o\":[1],\"s\":\"c\"}", "{\"o\":\"\\q\",\"s\":\"d\"}"};
    decoded d = decode_lines(NULL, 0, s, wanted, docs, 4);
    assert_int_equal(d.out.n_rows, 2);
    assert_null(d.out.cols[1]);
    assert_null(d.out.cols[2]);
    expect(d.out.cols[0], 1, "c");
    assert_int_equal(d.rejects.v[0].rec, 1);
    assert_int_equal(d.rejects.v[1].rec, 3);
    decoded_free(&d);
    fz_arena_free(a);
}

static void test_oversized_and_key(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    fz_error err;
    decoded d = {0};
    fz_pair opts[] = {{.key = "key.json.ignore-parse-errors", .value = "true"}};
    assert_int_equal(dec_new("json", opts, 1, parse_schema(a, "k STRING"), NULL, true, &d.dec, &err), FZ_OK);
    fz_record r[] = {{.key = (const uint8_t *)"{\"k\":7}", .key_len = 7, .value_len = -1}, {.key_len = -1, .value_len = 1, .value = (const uint8_t *)"x"},
                     {.oversized = true, .key_len = -1, .value_len = -1}, {.key = (const uint8_t *)"{", .key_len = 1, .value_len = -1}};
    decode_into(&d, r, 4);
    assert_int_equal(d.out.n_rows, 1);
    expect(d.out.cols[0], 0, "7");
    assert_int_equal(d.out.n_tombstones, 1);
    assert_int_equal(d.out.n_unparseable, 2);
    assert_string_equal(d.rejects.v[0].code, "record.too-large");
    decoded_free(&d);
    fz_arena_free(a);
}

/* Few values: a dictionary. Too many: flat, also in the batches after. NULLs and escapes in both. */
static void test_dictionary(void **state) {
    (void)state;
    enum { N = 3000 };
    fz_arena *a = fz_arena_new();
    const col_schema *s = parse_schema(a, "few STRING, many STRING, none STRING");
    static char text[N][96];
    const char *docs[N];
    for (int i = 0; i < N; i++) {
        if (i % 7 == 3) snprintf(text[i], sizeof text[i], "{\"many\":\"m\\n%d\"}", i);
        else snprintf(text[i], sizeof text[i], "{\"few\":\"host\\u002d%d\",\"many\":\"m\\n%d\"}", i % 5, i);
        docs[i] = text[i];
    }
    decoded d = decode_lines(NULL, 0, s, NULL, docs, N);
    assert_int_equal(d.out.n_rows, N);
    assert_non_null(d.out.cols[0]->idx);
    assert_int_equal(d.out.cols[0]->dict->len, 5);
    assert_null(d.out.cols[1]->idx);
    for (uint32_t i = 0; i < N; i++) {
        char want[32];
        snprintf(want, sizeof want, "host-%u", i % 5);
        expect(d.out.cols[0], i, i % 7 == 3 ? "NULL" : want);
        snprintf(want, sizeof want, "m\n%u", i);
        expect(d.out.cols[1], i, want);
        expect(d.out.cols[2], i, "NULL");
    }
    decoded_free(&d);
    fz_arena_free(a);
}

/* Names in another order, repeated, unknown, and a second object behind the first. */
static void test_names(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    const col_schema *s = parse_schema(a, "s STRING, n INT, 名前 STRING");
    const char *docs[] = {"{\"s\":\"a\",\"n\":1,\"名前\":\"山\"}", "{\"n\":2,\"s\":\"b\"}",     "{\"s\":\"a\",\"n\":1,\"名前\":\"川\"}",
                          "{ \"x\":[{},{\"s\":9}], \"s\":\"c\" }",  "{\"s\":\"d\",\"s\":\"e\"}", "{\"\\u0073\":\"f\"} {\"s\":\"g\"}",
                          "{}"};
    const char *want[][3] = {{"a", "1", "山"}, {"b", "2", "NULL"}, {"a", "1", "川"}, {"c", "NULL", "NULL"}, {"e", "NULL", "NULL"}, {"f", "NULL", "NULL"}, {"NULL", "NULL", "NULL"}};
    decoded d = decode_lines(NULL, 0, s, NULL, docs, 7);
    assert_int_equal(d.out.n_rows, 7);
    for (uint32_t i = 0; i < 7; i++)
        for (int k = 0; k < 3; k++) expect(d.out.cols[k], i, want[i][k]);
    decoded_free(&d);
    fz_arena_free(a);
}

/* \xHH and \\ in a line of the case file. */
static size_t unescape(char *s) {
    char *o = s, *from = s;
    for (; *s; s++) {
        unsigned v;
        if (s[0] == '\\' && s[1] == '\\') s++, *o++ = '\\';
        else if (s[0] == '\\' && s[1] == 'x' && sscanf(s + 2, "%2x", &v) == 1) s += 3, *o++ = (char)v;
        else *o++ = *s;
    }
    return (size_t)(o - from);
}

static void test_rfc8259(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    const col_schema *s = parse_schema(a, "v STRING");
    FILE *f = fopen("test/data/decode/rfc8259.txt", "r");
    assert_non_null(f);
    char *line = NULL;
    size_t cap = 0;
    int cases = 0;
    while (getline(&line, &cap, f) > 0) {
        if (*line == '#' || *line == '\n') continue;
        char *save, *kind = strtok_r(line, "\t\n", &save), *name = strtok_r(NULL, "\t\n", &save), *doc = strtok_r(NULL, "\t\n", &save);
        assert_non_null(name);
        size_t n = doc ? unescape(doc) : 0;
        decoded d = decode_one("json", NULL, 0, s, doc ? doc : "", (int32_t)n);
        /* An empty record is no row and no error in Flink. */
        bool accepted = d.out.n_rows == 1, want = *kind == 'y' || *kind == 'l';
        if (accepted != want) fail_msg("%s %s: %s", kind, name, accepted ? "accepted" : d.rejects.n ? d.rejects.v[0].message : "no row");
        decoded_free(&d);
        cases++;
    }
    free(line);
    fclose(f);
    fz_arena_free(a);
    assert_true(cases > 150);
}

/* Ceilings of Jackson: depth, digits, length of names. */
static void test_ceilings(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    const col_schema *s = parse_schema(a, "s STRING, d DOUBLE");
    fz_buf b = {0};
    for (int depth = 999; depth <= 1000; depth++) {
        b.len = 0;
        fz_buf_puts(&b, "{\"x\":");
        for (int i = 0; i < depth; i++) fz_buf_putc(&b, '[');
        for (int i = 0; i < depth; i++) fz_buf_putc(&b, ']');
        fz_buf_puts(&b, "}");
        decoded d = decode_one("json", NULL, 0, s, b.data, (int32_t)b.len);
        assert_int_equal(d.out.n_rows, depth == 999);
        if (depth == 1000) assert_non_null(strstr(d.rejects.v[0].message, "Depth (1001) exceeds the maximum allowed nesting depth (1000)"));
        decoded_free(&d);
    }
    for (int digits = 1000; digits <= 1001; digits++) {
        b.len = 0;
        fz_buf_puts(&b, "{\"d\":");
        for (int i = 0; i < digits; i++) fz_buf_putc(&b, '7');
        fz_buf_puts(&b, "}");
        decoded d = decode_one("json", NULL, 0, s, b.data, (int32_t)b.len);
        assert_int_equal(d.out.n_rows, digits == 1000);
        decoded_free(&d);
    }
    for (int len = 50000; len <= 50001; len++) {
        b.len = 0;
        fz_buf_puts(&b, "{\"");
        for (int i = 0; i < len; i++) fz_buf_putc(&b, 'k');
        fz_buf_puts(&b, "\":1}");
        decoded d = decode_one("json", NULL, 0, s, b.data, (int32_t)b.len);
        assert_int_equal(d.out.n_rows, len == 50000);
        decoded_free(&d);
    }
    fz_buf_free(&b);
    fz_arena_free(a);
}

/* The fast path's check of UTF-8 against the one of the base room: all that can follow a lead byte, at both alignments of its loop. */
static void test_utf8(void **state) {
    (void)state;
    for (unsigned lead = 0xc0; lead < 0x100; lead++)
        for (unsigned rest = 0; rest < 0x10000; rest += (rest & 0x3f) == 1 && (rest & 0xc0) == 0x80 ? 0x3d : 1) {
            uint8_t text[] = {(uint8_t)lead, (uint8_t)(rest >> 8), (uint8_t)rest, 0x80, 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'};
            for (size_t n = 1; n <= 5; n++)
                if (js_utf8_ok(text, n) != fz_utf8_valid((const char *)text, n)) fail_msg("%02x %04x, %zu bytes", lead, rest, n);
            memmove(text + 3, text, 3);
            memcpy(text, "\xe3\x81\x82", 3);
            if (js_utf8_ok(text, 7) != fz_utf8_valid((const char *)text, 7)) fail_msg("%02x %04x behind another", lead, rest);
        }
}

static void test_raw(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    fz_error err;
    fz_pair little[] = {{.key = "raw.endianness", .value = "little-endian"}}, latin[] = {{.key = "raw.charset", .value = "ISO-8859-1"}};
    decoded d = decode_one("raw", NULL, 0, parse_schema(a, "s STRING"), "a\xff\xe3\x81\x82", 5);
    expect(d.out.cols[0], 0, "a\xef\xbf\xbd\xe3\x81\x82");
    decoded_free(&d);
    d = decode_one("raw", latin, 1, parse_schema(a, "s STRING"), "\xe9", 1);
    expect(d.out.cols[0], 0, "\xc3\xa9");
    decoded_free(&d);
    d = decode_one("raw", NULL, 0, parse_schema(a, "s STRING"), NULL, -1);
    assert_int_equal(d.out.n_rows, 1);
    expect(d.out.cols[0], 0, "NULL");
    decoded_free(&d);
    d = decode_one("raw", NULL, 0, parse_schema(a, "n INT"), "\xff\xff\xff\xfe", 4);
    expect(d.out.cols[0], 0, "-2");
    decoded_free(&d);
    d = decode_one("raw", little, 1, parse_schema(a, "n BIGINT"), "\x01\x02\0\0\0\0\0\0", 8);
    expect(d.out.cols[0], 0, "513");
    decoded_free(&d);
    d = decode_one("raw", NULL, 0, parse_schema(a, "n SMALLINT"), "abc", 3);
    assert_string_equal(d.rejects.v[0].code, "raw.length");
    decoded_free(&d);
    assert_int_equal(open_with("raw", NULL, 0, "a STRING, b STRING", &err), FZ_USER);
    assert_int_equal(open_with("raw", NULL, 0, "a ARRAY<INT>", &err), FZ_USER);
    fz_pair utf7[] = {{.key = "raw.charset", .value = "UTF-7"}};
    assert_int_equal(open_with("raw", utf7, 1, "a STRING", &err), FZ_USER);
    fz_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_options),  cmocka_unit_test(test_fates),      cmocka_unit_test(test_unwanted), cmocka_unit_test(test_oversized_and_key),
                                       cmocka_unit_test(test_dictionary), cmocka_unit_test(test_names),      cmocka_unit_test(test_rfc8259),  cmocka_unit_test(test_ceilings),
                                       cmocka_unit_test(test_utf8),       cmocka_unit_test(test_raw)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
