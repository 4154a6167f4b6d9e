/* The format 'otlp': columns of the log data model, attributes by name, values of every type into columns of every type, context kept from record to record, broken and hostile bytes. */
#include "test_decode.h"
#include "base/otlp.h"
#include "base/protobuf.h"

/* ---- making records ---- */
static void any_string(fz_buf *b, uint32_t field, const char *s) {
    size_t at = pb_begin(b, field);
    pb_put_bytes(b, OTLP_ANY_STRING, s, strlen(s));
    pb_end(b, at);
}
static void any_int(fz_buf *b, uint32_t field, int64_t v) {
    size_t at = pb_begin(b, field);
    pb_put_uint(b, OTLP_ANY_INT, (uint64_t)v);
    pb_end(b, at);
}
static void any_double(fz_buf *b, uint32_t field, double v) {
    uint64_t bits;
    memcpy(&bits, &v, 8);
    size_t at = pb_begin(b, field);
    pb_put_fixed64(b, OTLP_ANY_DOUBLE, bits);
    pb_end(b, at);
}
static void any_bool(fz_buf *b, uint32_t field, bool v) {
    size_t at = pb_begin(b, field);
    pb_put_uint(b, OTLP_ANY_BOOL, v);
    pb_end(b, at);
}
static void any_bytes(fz_buf *b, uint32_t field, const void *p, size_t n) {
    size_t at = pb_begin(b, field);
    pb_put_bytes(b, OTLP_ANY_BYTES, p, n);
    pb_end(b, at);
}
/* ["x", 2] */
static void any_array(fz_buf *b, uint32_t field) {
    size_t at = pb_begin(b, field), list = pb_begin(b, OTLP_ANY_ARRAY);
    any_string(b, OTLP_LIST_VALUES, "x");
    any_int(b, OTLP_LIST_VALUES, 2);
    pb_end(b, list);
    pb_end(b, at);
}
/* {"a": "1", "b": 2} */
static void any_pairs(fz_buf *b, uint32_t field) {
    size_t at = pb_begin(b, field), list = pb_begin(b, OTLP_ANY_KVLIST), kv = pb_begin(b, OTLP_LIST_VALUES);
    pb_put_bytes(b, OTLP_KEY, "a", 1);
    any_string(b, OTLP_VALUE, "1");
    pb_end(b, kv);
    kv = pb_begin(b, OTLP_LIST_VALUES);
    pb_put_bytes(b, OTLP_KEY, "b", 1);
    any_int(b, OTLP_VALUE, 2);
    pb_end(b, kv);
    pb_end(b, list);
    pb_end(b, at);
}
static size_t pair_begin(fz_buf *b, uint32_t field, const char *key) {
    size_t at = pb_begin(b, field);
    pb_put_bytes(b, OTLP_KEY, key, strlen(key));
    return at;
}
#define PAIR(b, field, key, call) do { size_t at_ = pair_begin(b, field, key); call; pb_end(b, at_); } while (0)

static const uint8_t trace[16] = {0x5b, 0x8e, 0xff, 0xf7, 0x98, 0x03, 0x81, 0x03, 0xd2, 0x69, 0xb6, 0x33, 0x81, 0x3f, 0xc6, 0x0c};
static const uint8_t span[8] = {0xee, 0xe1, 0x9b, 0x7e, 0xc3, 0xc1, 0xb1, 0x74};

static void full_record(fz_buf *b) {
    const uint8_t unknown[] = {0xf8, 0x07, 0x05}; /* field 127, a varint */
    pb_put_fixed64(b, OTLP_RECORD_TIME, 1735787045123456789ull);
    pb_put_uint(b, OTLP_RECORD_SEVERITY_NUMBER, 9);
    pb_put_bytes(b, OTLP_RECORD_SEVERITY_TEXT, "INFO", 4);
    fz_buf_append(b, unknown, 3);
    any_string(b, OTLP_RECORD_BODY, "hello \xc3\xa9");
    PAIR(b, OTLP_RECORD_ATTRIBUTES, "n", any_int(b, OTLP_VALUE, 9007199254740993));
    PAIR(b, OTLP_RECORD_ATTRIBUTES, "s", any_string(b, OTLP_VALUE, "v"));
    PAIR(b, OTLP_RECORD_ATTRIBUTES, "d", any_double(b, OTLP_VALUE, 1.5));
    PAIR(b, OTLP_RECORD_ATTRIBUTES, "t", any_bool(b, OTLP_VALUE, true));
    PAIR(b, OTLP_RECORD_ATTRIBUTES, "b", any_bytes(b, OTLP_VALUE, "hi", 2));
    PAIR(b, OTLP_RECORD_ATTRIBUTES, "l", any_array(b, OTLP_VALUE));
    PAIR(b, OTLP_RECORD_ATTRIBUTES, "m", any_pairs(b, OTLP_VALUE));
    PAIR(b, OTLP_RECORD_ATTRIBUTES, "e", pb_put_bytes(b, OTLP_VALUE, "", 0));
    pb_put_uint(b, OTLP_RECORD_DROPPED, 3);
    pb_put_fixed32(b, OTLP_RECORD_FLAGS, 1);
    pb_put_bytes(b, OTLP_RECORD_TRACE_ID, trace, 16);
    pb_put_bytes(b, OTLP_RECORD_SPAN_ID, span, 8);
    pb_put_fixed64(b, OTLP_RECORD_OBSERVED_TIME, 1735787046000000001ull);
    pb_put_bytes(b, OTLP_RECORD_EVENT_NAME, "ev", 2);
}

static void context(fz_buf *b, const char *service) {
    size_t at = pb_begin(b, OTLP_CONTEXT_RESOURCE);
    PAIR(b, OTLP_RESOURCE_ATTRIBUTES, "service.name", any_string(b, OTLP_VALUE, service));
    PAIR(b, OTLP_RESOURCE_ATTRIBUTES, "s", any_string(b, OTLP_VALUE, "of the resource"));
    pb_put_uint(b, OTLP_RESOURCE_DROPPED, 4);
    pb_end(b, at);
    pb_put_bytes(b, OTLP_CONTEXT_RESOURCE_SCHEMA_URL, "r.url", 5);
    at = pb_begin(b, OTLP_CONTEXT_SCOPE);
    pb_put_bytes(b, OTLP_SCOPE_NAME, "lib", 3);
    pb_put_bytes(b, OTLP_SCOPE_VERSION, "1.2", 3);
    PAIR(b, OTLP_SCOPE_ATTRIBUTES, "sa", any_int(b, OTLP_VALUE, 7));
    pb_put_uint(b, OTLP_SCOPE_DROPPED, 5);
    pb_end(b, at);
    pb_put_bytes(b, OTLP_CONTEXT_SCOPE_SCHEMA_URL, "s.url", 5);
}

/* ---- decoding ---- */
typedef struct rows { fz_arena *types; decoded d; uint8_t *copy[16]; } rows;

static uint8_t *exact(const void *p, size_t n) {
    uint8_t *c = malloc(n + !n);
    if (n) memcpy(c, p, n);
    return c;
}

/* Records with their contexts, in blocks of their exact size. */
static rows decode(const char *schema, const fz_pair *opts, size_t n_opts, const bool *wanted, const fz_buf *values, const fz_buf *contexts, uint32_t n) {
    rows r = {.types = fz_arena_new()};
    fz_record rec[8];
    fz_error err;
    if (dec_new("otlp", opts, n_opts, parse_schema(r.types, schema), wanted, false, &r.d.dec, &err) != FZ_OK) fail_msg("open: %s", err.message);
    for (uint32_t i = 0; i < n; i++) {
        r.copy[2 * i] = exact(values[i].data, values[i].len);
        r.copy[2 * i + 1] = contexts ? exact(contexts[i].data, contexts[i].len) : NULL;
        rec[i] = (fz_record){.value = r.copy[2 * i], .value_len = (int32_t)values[i].len, .key = r.copy[2 * i + 1], .key_len = contexts ? (int32_t)contexts[i].len : -1};
    }
    decode_into(&r.d, rec, n);
    return r;
}
static void rows_free(rows *r) {
    decoded_free(&r->d);
    fz_arena_free(r->types);
    for (int i = 0; i < 16; i++) free(r->copy[i]);
}
static void expect(const rows *r, uint32_t column, uint32_t row, const char *want) {
    fz_buf b = {0};
    assert_non_null(r->d.out.cols[column]);
    assert_int_equal(r->d.out.cols[column]->len, r->d.out.n_rows);
    cast_text(&b, r->d.out.cols[column], row);
    if (strcmp(fz_buf_cstr(&b), want) != 0) fail_msg("column %u, row %u: %s, not %s", column, row, fz_buf_cstr(&b), want);
    fz_buf_free(&b);
}
/* One full record with its context, its columns as text. */
static void expect_row(const char *schema, const char *const *want, uint32_t n) {
    fz_buf v = {0}, c = {0};
    full_record(&v);
    context(&c, "web");
    rows r = decode(schema, NULL, 0, NULL, &v, &c, 1);
    if (r.d.rejects.n) fail_msg("%s", r.d.rejects.v[0].message);
    for (uint32_t i = 0; i < n; i++) expect(&r, i, 0, want[i]);
    rows_free(&r);
    fz_buf_free(&v);
    fz_buf_free(&c);
}

static void test_all_columns(void **state) {
    (void)state;
    static const char *const want[] = {"1735787045123456789", "2025-01-02 03:04:06.000000", "9", "INFO", "hello \xc3\xa9", "5b8efff798038103d269b633813fc60c", "eee19b7ec3c1b174", "1", "ev", "3",
                                       "{n=9007199254740993, s=v, d=1.5, t=true, b=aGk=, l=[\"x\",2], m={\"a\":\"1\",\"b\":2}, e=NULL}", "{service.name=web, s=of the resource}", "4", "r.url", "lib", "1.2", "{sa=7}", "5", "s.url"};
    expect_row("time_unix_nano BIGINT, observed_time_unix_nano TIMESTAMP(6), severity_number INT, severity_text STRING, body STRING, trace_id STRING, span_id STRING, flags BIGINT, event_name STRING, "
               "dropped_attributes_count INT, attributes MAP<STRING,STRING>, resource_attributes MAP<STRING,STRING>, resource_dropped_attributes_count INT, resource_schema_url STRING, scope_name STRING, "
               "scope_version STRING, scope_attributes MAP<STRING,STRING>, scope_dropped_attributes_count BIGINT, scope_schema_url STRING", want, 19);
}

static void test_other_types(void **state) {
    (void)state;
    static const char *const want[] = {"2025-01-02 03:04:05.123", "1735787046000000001", "9", "9.0", "{\"n\":9007199254740993,\"s\":\"v\",\"d\":1.5,\"t\":true,\"b\":\"aGk=\",\"l\":[\"x\",2],\"m\":{\"a\":\"1\",\"b\":2},\"e\":null}",
                                       "(web, NULL)", "{sa=7}"};
    expect_row("time_unix_nano TIMESTAMP_LTZ(3), observed_time_unix_nano STRING, severity_number STRING, flags STRING, attributes STRING, resource_attributes ROW<service.name STRING, x INT>, scope_attributes MAP<STRING,INT>",
               (const char *const[]){want[0], want[1], want[2], "1", want[4], want[5], want[6]}, 7);
}

static void test_attributes_by_name(void **state) {
    (void)state;
    static const char *const want[] = {"9007199254740993", "v", "1.5", "TRUE", "hi", "[x, 2]", "(1, 2)", "NULL", "web", "NULL", "{a=1, b=2}", "[\"x\",2]"};
    expect_row("n BIGINT, s STRING, d DOUBLE, t BOOLEAN, b BYTES, l ARRAY<STRING>, m ROW<a INT, b INT>, e STRING, service.name STRING, nobody STRING", want, 10);
    expect_row("m MAP<STRING,BIGINT>", &want[10], 1);
    expect_row("l STRING", &want[11], 1);
    expect_row("d STRING, t STRING, b STRING", (const char *const[]){"1.5", "true", "aGk="}, 3);
}

static void test_nothing_set(void **state) {
    (void)state;
    fz_buf v = {0};
    rows r = decode("time_unix_nano BIGINT, severity_number INT, severity_text STRING, body STRING, trace_id STRING, attributes MAP<STRING,STRING>, resource_attributes STRING, scope_name STRING, flags INT, x STRING",
                    NULL, 0, NULL, &v, NULL, 1);
    static const char *const want[] = {"NULL", "0", "NULL", "NULL", "NULL", "{}", "{}", "NULL", "0", "NULL"};
    assert_int_equal(r.d.out.n_rows, 1);
    for (uint32_t i = 0; i < 10; i++) expect(&r, i, 0, want[i]);
    rows_free(&r);
}

static void test_body_and_ids(void **state) {
    (void)state;
    fz_buf v[5] = {0};
    any_string(&v[0], OTLP_RECORD_BODY, "");
    any_pairs(&v[1], OTLP_RECORD_BODY);
    pb_put_bytes(&v[2], OTLP_RECORD_TRACE_ID, "5B8EFFF798038103D269B633813FC60C", 32); /* the text where the bytes belong */
    any_double(&v[2], OTLP_RECORD_BODY, (double)(0.0 / 0.0));
    pb_put_bytes(&v[3], OTLP_RECORD_TRACE_ID, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
    any_string(&v[3], OTLP_RECORD_BODY, "bad \xff utf8");
    pb_put_bytes(&v[4], OTLP_RECORD_TRACE_ID, trace, 15);
    rows r = decode("trace_id STRING, body STRING", NULL, 0, NULL, v, NULL, 5);
    assert_int_equal(r.d.out.n_rows, 4);
    assert_int_equal(r.d.rejects.n, 1);
    assert_int_equal(r.d.rejects.v[0].rec, 4);
    assert_string_equal(r.d.rejects.v[0].code, "otlp.parse");
    assert_non_null(strstr(r.d.rejects.v[0].message, "trace_id"));
    expect(&r, 1, 0, "");
    expect(&r, 1, 1, "{\"a\":\"1\",\"b\":2}");
    expect(&r, 0, 2, "5b8efff798038103d269b633813fc60c");
    expect(&r, 1, 2, "NaN");
    expect(&r, 0, 3, "NULL");
    expect(&r, 1, 3, "bad \xef\xbf\xbd utf8");
    rows_free(&r);
    r = decode("trace_id BYTES", NULL, 0, NULL, &v[2], NULL, 1);
    assert_int_equal(col_sv(r.d.out.cols[0], 0).n, 16);
    assert_memory_equal(col_sv(r.d.out.cols[0], 0).p, trace, 16);
    rows_free(&r);
    for (int i = 0; i < 5; i++) fz_buf_free(&v[i]);
}

/* The context is kept from record to record and must not outlive its change, nor a record that failed under it. */
static void test_contexts(void **state) {
    (void)state;
    fz_buf v[6] = {0}, c[6] = {0};
    static const char *const services[] = {"a", "a", "b", "b", "a", "a"};
    for (int i = 0; i < 6; i++) {
        any_int(&v[i], OTLP_RECORD_BODY, i);
        context(&c[i], services[i]);
    }
    fz_buf_free(&v[2]);
    any_string(&v[2], OTLP_RECORD_BODY, "no number"); /* the first under its context fails */
    rows r = decode("body INT, service.name STRING, resource_attributes MAP<STRING,STRING>, scope_attributes MAP<STRING,INT>, scope_name STRING", NULL, 0, NULL, v, c, 6);
    assert_int_equal(r.d.out.n_rows, 5);
    assert_int_equal(r.d.rejects.n, 1);
    static const char *const body[] = {"0", "1", "3", "4", "5"}, *const name[] = {"a", "a", "b", "a", "a"};
    for (uint32_t i = 0; i < 5; i++) {
        char want[64];
        snprintf(want, sizeof want, "{service.name=%s, s=of the resource}", name[i]);
        expect(&r, 0, i, body[i]);
        expect(&r, 1, i, name[i]);
        expect(&r, 2, i, want);
        expect(&r, 3, i, "{sa=7}");
        expect(&r, 4, i, "lib");
    }
    rows_free(&r);
    r = decode("resource_attributes STRING, scope_attributes ROW<sa INT>", NULL, 0, NULL, v, c, 6);
    for (uint32_t i = 0; i < 6; i++) {
        char want[64];
        snprintf(want, sizeof want, "{\"service.name\":\"%s\",\"s\":\"of the resource\"}", services[i]);
        expect(&r, 0, i, want);
        expect(&r, 1, i, "(7)");
    }
    rows_free(&r);
    for (int i = 0; i < 6; i++) fz_buf_free(&v[i]), fz_buf_free(&c[i]);
}

static void test_equal_keys(void **state) {
    (void)state;
    fz_buf v = {0};
    PAIR(&v, OTLP_RECORD_ATTRIBUTES, "k", any_int(&v, OTLP_VALUE, 1));
    PAIR(&v, OTLP_RECORD_ATTRIBUTES, "x", any_int(&v, OTLP_VALUE, 2));
    PAIR(&v, OTLP_RECORD_ATTRIBUTES, "k", any_int(&v, OTLP_VALUE, 3));
    static const char *const schemas[] = {"attributes MAP<STRING,STRING>, k INT", "attributes STRING, k INT", "attributes ROW<k INT, x INT>, k INT"};
    static const char *const want[] = {NULL, "{\"k\":3,\"x\":2}", "(3, 2)"};
    for (int i = 0; i < 3; i++) {
        rows r = decode(schemas[i], NULL, 0, NULL, &v, NULL, 1);
        if (want[i]) expect(&r, 0, 0, want[i]);
        else assert_int_equal(r.d.out.cols[0]->off[1], 2);
        expect(&r, 1, 0, "3");
        rows_free(&r);
    }
    fz_buf_free(&v);
    for (int i = 0; i < 40; i++) { /* many: not compared with one another */
        char key[8];
        snprintf(key, sizeof key, "k%d", i % 20);
        PAIR(&v, OTLP_RECORD_ATTRIBUTES, key, any_int(&v, OTLP_VALUE, i));
    }
    rows r = decode("attributes MAP<STRING,STRING>, k7 INT", NULL, 0, NULL, &v, NULL, 1);
    assert_int_equal(r.d.out.cols[0]->off[1], 20);
    expect(&r, 1, 0, "27");
    rows_free(&r);
    fz_buf_free(&v);
}

/* Every cut of a full record: a row when the cut is between fields, else a reject; never a read past the end. */
static void test_cut_records(void **state) {
    (void)state;
    fz_buf v = {0}, c = {0};
    full_record(&v);
    context(&c, "web");
    for (size_t n = 0; n < v.len; n++) {
        fz_buf cut = {v.data, n, n};
        rows r = decode("body STRING, attributes MAP<STRING,STRING>, trace_id STRING, n BIGINT", NULL, 0, NULL, &cut, &c, 1);
        assert_int_equal(r.d.out.n_rows + r.d.rejects.n, 1);
        rows_free(&r);
    }
    for (size_t n = 0; n < c.len; n++) { /* and of its context */
        fz_buf cut = {c.data, n, n};
        rows r = decode("service.name STRING, resource_attributes MAP<STRING,STRING>, scope_attributes STRING", NULL, 0, NULL, &v, &cut, 1);
        assert_int_equal(r.d.out.n_rows + r.d.rejects.n, 1);
        rows_free(&r);
    }
    for (size_t i = 0; i < v.len; i++) /* and every byte another one */
        for (int x = 0; x < 3; x++) {
            uint8_t old = v.data[i];
            v.data[i] = (uint8_t[]){0xff, 0x00, (uint8_t)(old ^ 0x80)}[x];
            rows r = decode("body STRING, attributes MAP<STRING,STRING>, m ROW<a STRING, b STRING>, l ARRAY<INT>", NULL, 0, NULL, &v, &c, 1);
            assert_int_equal(r.d.out.n_rows + r.d.rejects.n, 1);
            rows_free(&r);
            v.data[i] = old;
        }
    fz_buf_free(&v);
    fz_buf_free(&c);
}

static void nest(fz_buf *b, uint32_t field, unsigned depth) {
    size_t at = pb_begin(b, field);
    if (depth) {
        size_t list = pb_begin(b, OTLP_ANY_ARRAY);
        nest(b, OTLP_LIST_VALUES, depth - 1);
        pb_end(b, list);
    }
    pb_end(b, at);
}

static void test_deep(void **state) {
    (void)state;
    fz_buf v[2] = {0};
    nest(&v[0], OTLP_RECORD_BODY, OTLP_MAX_DEPTH - 1);
    nest(&v[1], OTLP_RECORD_BODY, 20000);
    rows r = decode("body STRING", NULL, 0, NULL, v, NULL, 2);
    assert_int_equal(r.d.out.n_rows, 1);
    assert_int_equal(r.d.rejects.n, 1);
    assert_non_null(strstr(r.d.rejects.v[0].message, "deeper"));
    rows_free(&r);
    fz_buf_free(&v[0]);
    fz_buf_free(&v[1]);
}

static void test_ignoring_errors(void **state) {
    (void)state;
    fz_buf v[3] = {0};
    fz_pair o = {.key = "otlp.ignore-parse-errors", .value = "true"};
    any_string(&v[0], OTLP_RECORD_BODY, "text");
    pb_put_bytes(&v[0], OTLP_RECORD_SEVERITY_TEXT, "X", 1);
    fz_buf_append(&v[1], "\x2a\x05zz", 4); /* cut off */
    pb_put_bytes(&v[2], OTLP_RECORD_SPAN_ID, "short", 5);
    rows r = decode("body INT, severity_text STRING, span_id STRING", &o, 1, NULL, v, NULL, 3);
    assert_int_equal(r.d.out.n_rows, 2);
    assert_int_equal(r.d.out.n_unparseable, 1);
    assert_non_null(r.d.out.sample);
    expect(&r, 0, 0, "NULL");
    expect(&r, 1, 0, "X");
    expect(&r, 2, 1, "NULL");
    rows_free(&r);
    for (int i = 0; i < 3; i++) fz_buf_free(&v[i]);
}

static void test_unwanted_columns(void **state) {
    (void)state;
    fz_buf v = {0};
    bool wanted[] = {true, false, false, false};
    full_record(&v);
    rows r = decode("severity_text STRING, attributes MAP<STRING,STRING>, body INT, s STRING", NULL, 0, wanted, &v, NULL, 1);
    assert_int_equal(r.d.rejects.n, 1); /* body is no number, whoever asks */
    rows_free(&r);
    r = decode("severity_text STRING, attributes MAP<STRING,STRING>, body STRING, s STRING", NULL, 0, wanted, &v, NULL, 1);
    assert_int_equal(r.d.out.n_rows, 1);
    expect(&r, 0, 0, "INFO");
    assert_null(r.d.out.cols[1]);
    rows_free(&r);
    fz_buf_free(&v);
}

static void test_dictionaries(void **state) {
    (void)state;
    fz_arena *types = fz_arena_new();
    enum { N = 2000 };
    static fz_record rec[N];
    fz_buf v[2] = {0}, c = {0};
    decoded d = {0};
    fz_error err;
    full_record(&v[0]);
    pb_put_bytes(&v[1], OTLP_RECORD_SEVERITY_TEXT, "ERROR", 5);
    context(&c, "web");
    for (int i = 0; i < N; i++) rec[i] = (fz_record){.value = v[i % 3 == 0].data, .value_len = (int32_t)v[i % 3 == 0].len, .key = c.data, .key_len = (int32_t)c.len};
    assert_int_equal(dec_new("otlp", NULL, 0, parse_schema(types, "severity_text STRING, scope_name STRING, service.name STRING, event_name STRING"), NULL, false, &d.dec, &err), FZ_OK);
    decode_into(&d, rec, N);
    for (int k = 0; k < 4; k++) {
        assert_non_null(d.out.cols[k]->idx);
        assert_true(d.out.cols[k]->dict->len <= 2);
    }
    for (uint32_t i = 0; i < N; i++) {
        fz_sv s = col_sv(d.out.cols[0], i);
        assert_true(fz_sv_eq(s, i % 3 == 0 ? FZ_SV("ERROR") : FZ_SV("INFO")));
        assert_int_equal(col_is_null(d.out.cols[3], i), i % 3 == 0);
    }
    decoded_free(&d);
    fz_arena_free(types);
    fz_buf_free(&v[0]), fz_buf_free(&v[1]), fz_buf_free(&c);
}

static void test_wrong_schemas(void **state) {
    (void)state;
    static const struct { const char *schema, *code; } bad[] = {{"attributes INT", "otlp.column-type"}, {"time_unix_nano DATE", "otlp.column-type"}, {"trace_id BIGINT", "otlp.column-type"},
                                                                {"severity_text INT", "otlp.column-type"}, {"severity_number BYTES", "otlp.column-type"}, {"attributes MAP<INT,STRING>", "otlp.map-key"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fz_arena *a = fz_arena_new();
        dec_decoder *d = NULL;
        fz_error err = {0};
        assert_int_equal(dec_new("otlp", NULL, 0, parse_schema(a, bad[i].schema), NULL, false, &d, &err), FZ_USER);
        assert_string_equal(err.code, bad[i].code);
        fz_arena_free(a);
    }
}

static void test_record_text(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    dec_decoder *d;
    fz_error err;
    fz_buf v = {0}, out = {0};
    full_record(&v);
    assert_int_equal(dec_new("otlp", NULL, 0, parse_schema(a, "body STRING"), NULL, false, &d, &err), FZ_OK);
    fz_record r = {.value = v.data, .value_len = (int32_t)v.len, .key_len = -1};
    assert_true(dec_record_text(d, &r, &out));
    assert_string_equal(fz_buf_cstr(&out),
        "{\"timeUnixNano\":\"1735787045123456789\",\"severityNumber\":9,\"severityText\":\"INFO\",\"body\":{\"stringValue\":\"hello \xc3\xa9\"},\"attributes\":["
        "{\"key\":\"n\",\"value\":{\"intValue\":\"9007199254740993\"}},{\"key\":\"s\",\"value\":{\"stringValue\":\"v\"}},{\"key\":\"d\",\"value\":{\"doubleValue\":1.5}},"
        "{\"key\":\"t\",\"value\":{\"boolValue\":true}},{\"key\":\"b\",\"value\":{\"bytesValue\":\"aGk=\"}},{\"key\":\"l\",\"value\":{\"arrayValue\":{\"values\":[{\"stringValue\":\"x\"},{\"intValue\":\"2\"}]}}},"
        "{\"key\":\"m\",\"value\":{\"kvlistValue\":{\"values\":[{\"key\":\"a\",\"value\":{\"stringValue\":\"1\"}},{\"key\":\"b\",\"value\":{\"intValue\":\"2\"}}]}}},{\"key\":\"e\",\"value\":{}}],"
        "\"droppedAttributesCount\":3,\"flags\":1,\"traceId\":\"5b8efff798038103d269b633813fc60c\",\"spanId\":\"eee19b7ec3c1b174\",\"observedTimeUnixNano\":\"1735787046000000001\",\"eventName\":\"ev\"}");
    r.value_len = 3; /* cut off */
    out.len = 0;
    assert_false(dec_record_text(d, &r, &out));
    assert_int_equal(out.len, 0);
    dec_free(d);
    fz_arena_free(a);
    fz_buf_free(&v), fz_buf_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_columns), cmocka_unit_test(test_other_types), cmocka_unit_test(test_attributes_by_name), cmocka_unit_test(test_nothing_set), cmocka_unit_test(test_body_and_ids),
        cmocka_unit_test(test_contexts), cmocka_unit_test(test_equal_keys), cmocka_unit_test(test_cut_records), cmocka_unit_test(test_deep), cmocka_unit_test(test_ignoring_errors),
        cmocka_unit_test(test_unwanted_columns), cmocka_unit_test(test_dictionaries), cmocka_unit_test(test_wrong_schemas), cmocka_unit_test(test_record_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
