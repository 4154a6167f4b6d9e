/* OTLP on bytes alone: requests split into records with their contexts, and the JSON form turned into protobuf: ids, 64-bit numbers, enums, names, what is refused and where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "source/otlp_int.h"

enum { MAX_RECORD = 4096, MAX_CONTEXT = 1 << 20 };

static void *exact(const void *p, size_t n) {
    void *c = malloc(n + !n);
    if (n) memcpy(c, p, n);
    return c;
}
/* The batch points into a copy, which is there until the next split. */
static void *split_copy;
static fz_status split(const void *p, size_t n, otlp_batch *b, fz_error *err) {
    free(split_copy);
    split_copy = exact(p, n);
    return otlp_split(split_copy, n, MAX_RECORD, MAX_CONTEXT, b, err);
}
static fz_status convert(const char *json, fz_buf *out, fz_error *err) {
    void *c = exact(json, strlen(json));
    out->len = 0;
    fz_status rc = otlp_json_request(c, strlen(json), out, err);
    free(c);
    return rc;
}

/* ---- JSON ---- */

#define RECORD(members) "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{" members "}]}]}]}"

/* The one record of a JSON request, as bytes. */
static void record_of(const char *json, fz_buf *out) {
    fz_buf pb = {0};
    fz_error err;
    otlp_batch b = {0};
    if (convert(json, &pb, &err) != FZ_OK) fail_msg("%s: %s", json, err.message);
    if (split(pb.data, pb.len, &b, &err) != FZ_OK) fail_msg("%s: %s", json, err.message);
    assert_int_equal(b.n, 1);
    out->len = 0;
    fz_buf_append(out, b.at[0], b.len[0]);
    otlp_batch_free(&b);
    fz_buf_free(&pb);
}
static void expect_record(const char *json, const void *want, size_t n) {
    fz_buf got = {0};
    record_of(json, &got);
    if (got.len != n || (n && memcmp(got.data, want, n) != 0)) {
        for (size_t i = 0; i < got.len; i++) printf("%02x ", got.data[i]);
        fail_msg("%s", json);
    }
    fz_buf_free(&got);
}
#define EXPECT(members, lit) expect_record(RECORD(members), lit, sizeof(lit) - 1)
#define REFUSED(members, message) refused(RECORD(members), message)

static void refused(const char *json, const char *message) {
    fz_buf pb = {0};
    fz_error err = {0};
    if (convert(json, &pb, &err) != FZ_DATA) fail_msg("taken: %s", json);
    if (!strstr(err.message, message)) fail_msg("%s: '%s', not '%s'", json, err.message, message);
    fz_buf_free(&pb);
}

static void put_time(uint8_t out[9], uint64_t v) {
    out[0] = 0x09;
    for (int i = 0; i < 8; i++) out[1 + i] = (uint8_t)(v >> (8 * i));
}
static void expect_time(const char *json, uint64_t v) {
    uint8_t want[9];
    put_time(want, v);
    expect_record(json, want, 9);
}

static void test_times(void **state) {
    (void)state;
    expect_time(RECORD("\"timeUnixNano\":\"1735787045123456789\""), 1735787045123456789ull);
    expect_time(RECORD("\"timeUnixNano\":1735787045123456789"), 1735787045123456789ull); /* a double would give ...784 */
    expect_time(RECORD("\"time_unix_nano\":1735787045123456789"), 1735787045123456789ull);
    expect_time(RECORD("\"timeUnixNano\":18446744073709551615"), UINT64_MAX);
    expect_time(RECORD("\"timeUnixNano\":1.735787045123456789e18"), 1735787045123456789ull);
    expect_time(RECORD("\"timeUnixNano\":\"17E3\""), 17000);
    expect_time(RECORD("\"timeUnixNano\":12.00"), 12);
    expect_time(RECORD("\"timeUnixNano\":0.0e-5"), 0);
    expect_time(RECORD("\"timeUnixNano\":1200e-2"), 12);
    REFUSED("\"timeUnixNano\":{\"low\":1,\"high\":2}", "resourceLogs[0].scopeLogs[0].logRecords[0].timeUnixNano: a number, or a text of digits, is wanted");
    REFUSED("\"timeUnixNano\":[1]", "timeUnixNano: a number");
    REFUSED("\"timeUnixNano\":true", "timeUnixNano: a number");
    REFUSED("\"timeUnixNano\":\"\"", "timeUnixNano: it is no whole number");
    REFUSED("\"timeUnixNano\":\"12 \"", "timeUnixNano: it is no whole number");
    REFUSED("\"timeUnixNano\":1.5", "timeUnixNano: it is no whole number");
    REFUSED("\"timeUnixNano\":-1", "timeUnixNano: it is out of range");
    REFUSED("\"timeUnixNano\":18446744073709551616", "timeUnixNano: it is no whole number of 64 bits");
    REFUSED("\"timeUnixNano\":1e99999999999", "timeUnixNano: it is no whole number");
    REFUSED("\"timeUnixNano\":012", "no JSON");
}

static void test_ids(void **state) {
    (void)state;
    EXPECT("\"traceId\":\"5B8EFFF798038103D269B633813FC60C\"", "\x4a\x10\x5b\x8e\xff\xf7\x98\x03\x81\x03\xd2\x69\xb6\x33\x81\x3f\xc6\x0c");
    EXPECT("\"spanId\":\"eee19b7ec3c1b174\"", "\x52\x08\xee\xe1\x9b\x7e\xc3\xc1\xb1\x74");
    EXPECT("\"traceId\":\"\",\"spanId\":\"\"", "");
    EXPECT("\"traceId\":null", "");
    REFUSED("\"traceId\":\"5B8EFFF798038103D269B633813FC60\"", "logRecords[0].traceId: it does not have 32 hexadecimal digits");
    REFUSED("\"traceId\":\"W47/95gDgQPSabYzgT/GDA==\"", "traceId: it does not have 32"); /* Base64 */
    REFUSED("\"traceId\":\"5B8EFFF798038103D269B633813FC60G\"", "traceId: it has characters");
    REFUSED("\"spanId\":\"5B8EFFF798038103D269B633813FC60C\"", "spanId: it does not have 16");
    REFUSED("\"spanId\":12", "spanId: a text");
}

static void test_severities(void **state) {
    (void)state;
    EXPECT("\"severityNumber\":9", "\x10\x09");
    EXPECT("\"severityNumber\":\"SEVERITY_NUMBER_INFO\"", "\x10\x09");
    EXPECT("\"severityNumber\":\"SEVERITY_NUMBER_TRACE\"", "\x10\x01");
    EXPECT("\"severityNumber\":\"SEVERITY_NUMBER_FATAL4\"", "\x10\x18");
    EXPECT("\"severityNumber\":\"SEVERITY_NUMBER_ERROR2\"", "\x10\x12");
    EXPECT("\"severityNumber\":\"SEVERITY_NUMBER_UNSPECIFIED\"", "\x10\x00");
    EXPECT("\"severityNumber\":\"SEVERITY_NUMBER_LOUD\"", "\x10\x00");
    EXPECT("\"severityNumber\":\"17\"", "\x10\x11");
    REFUSED("\"severityNumber\":4294967296", "severityNumber: it is out of range");
    REFUSED("\"severityNumber\":{}", "severityNumber: a number");
}

static void test_values(void **state) {
    (void)state;
    EXPECT("\"body\":{\"stringValue\":\"a\\u00e9\\ud83d\\ude00\\n\"}", "\x2a\x0a\x0a\x08" "a\xc3\xa9\xf0\x9f\x98\x80\n");
    EXPECT("\"body\":{\"stringValue\":\"\\ud83d.\"}", "\x2a\x06\x0a\x04\xef\xbf\xbd."); /* half a pair */
    EXPECT("\"body\":{\"stringValue\":\"\"}", "\x2a\x02\x0a\x00");
    EXPECT("\"body\":{\"intValue\":\"9007199254740993\"}", "\x2a\x09\x18\x81\x80\x80\x80\x80\x80\x80\x10");
    EXPECT("\"body\":{\"intValue\":-1}", "\x2a\x0b\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    EXPECT("\"body\":{\"intValue\":\"-9223372036854775808\"}", "\x2a\x0b\x18\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01");
    EXPECT("\"body\":{\"boolValue\":true}", "\x2a\x02\x10\x01");
    EXPECT("\"body\":{\"boolValue\":false}", "\x2a\x02\x10\x00");
    EXPECT("\"body\":{\"doubleValue\":0.5}", "\x2a\x09\x21\0\0\0\0\0\0\xe0\x3f");
    EXPECT("\"body\":{\"doubleValue\":\"Infinity\"}", "\x2a\x09\x21\0\0\0\0\0\0\xf0\x7f");
    EXPECT("\"body\":{\"doubleValue\":\"-5e-1\"}", "\x2a\x09\x21\0\0\0\0\0\0\xe0\xbf");
    EXPECT("\"body\":{\"bytesValue\":\"aGk=\"}", "\x2a\x04\x3a\x02hi");
    EXPECT("\"body\":{\"bytesValue\":\"_-8\"}", "\x2a\x04\x3a\x02\xff\xef");
    EXPECT("\"body\":{\"bytesValue\":\"\"}", "\x2a\x02\x3a\x00");
    EXPECT("\"body\":{}", "\x2a\x00");
    EXPECT("\"body\":null", "");
    EXPECT("\"body\":{\"arrayValue\":{\"values\":[{\"intValue\":1},null,{\"stringValue\":\"x\"}]}}", "\x2a\x0d\x2a\x0b\x0a\x02\x18\x01\x0a\x00\x0a\x03\x0a\x01x");
    EXPECT("\"body\":{\"kvlistValue\":{\"values\":[{\"key\":\"a\",\"value\":{\"intValue\":1}}]}}", "\x2a\x0b\x32\x09\x0a\x07\x0a\x01" "a\x12\x02\x18\x01");
    EXPECT("\"attributes\":[{\"key\":\"n\",\"value\":{\"intValue\":\"7\"}}]", "\x32\x07\x0a\x01n\x12\x02\x18\x07");
    EXPECT("\"attributes\":[{\"value\":{\"stringValue\":\"v\"},\"key\":\"\\\"\"}]", "\x32\x08\x12\x03\x0a\x01v\x0a\x01\"");
    EXPECT("\"flags\":257,\"droppedAttributesCount\":\"3\",\"eventName\":\"e\",\"severityText\":\"I\"", "\x45\x01\x01\0\0\x38\x03\x62\x01" "e\x1a\x01I");
    EXPECT("\"observedTimeUnixNano\":\"1\"", "\x59\x01\0\0\0\0\0\0\0");
    REFUSED("\"body\":{\"intValue\":\"9223372036854775808\"}", "body.intValue: it is out of range");
    REFUSED("\"body\":{\"intValue\":1.5}", "body.intValue: it is no whole number");
    REFUSED("\"body\":{\"doubleValue\":\"x\"}", "body.doubleValue: the text is no number");
    REFUSED("\"body\":{\"doubleValue\":1e999}", "body.doubleValue: it is out of range");
    REFUSED("\"body\":{\"boolValue\":\"true\"}", "body.boolValue: true or false");
    REFUSED("\"body\":{\"bytesValue\":\"a\"}", "body.bytesValue: it is no Base64");
    REFUSED("\"body\":{\"bytesValue\":\"a*bc\"}", "body.bytesValue: it is no Base64");
    REFUSED("\"body\":\"text\"", "body: an object is wanted");
    REFUSED("\"attributes\":{}", "attributes: an array is wanted");
    refused("{\"resourceLogs\":[{\"scopeLogs\":[", "resourceLogs[0].scopeLogs[0]: the body ends in the middle of it");
    refused("{\"resourceLogs\":[{\"scopeLogs\":", "scopeLogs");
    refused("", "ends in the middle");
    REFUSED("\"attributes\":[{\"key\":1}]", "attributes[0].key: a text is wanted");
    REFUSED("\"flags\":4294967296", "flags: it is out of range");
}

static void test_names(void **state) {
    (void)state;
    static const char snake[] = "{\"resource_logs\":[{\"scope_logs\":[{\"log_records\":[{\"severity_text\":\"I\",\"body\":{\"string_value\":\"x\"}}],\"schema_url\":\"u\"}]}]}";
    expect_record(snake, "\x1a\x01I\x2a\x03\x0a\x01x", 8);
    static const char unknown[] = "{\"new\":{\"a\":[1,{\"b\":[]}]},\"resourceLogs\":[{\"new\":[],\"scopeLogs\":[{\"new\":1e5,\"logRecords\":[{\"new\":\"\\u0041\",\"severityText\":\"I\",\"SeverityText\":\"J\",\"body\":{\"newValue\":[[]],"
                                  "\"stringValue\":\"x\"}}],\"scope\":{\"x\":null}}],\"resource\":{\"entityRefs\":[{}]}}],\"more\":false}";
    expect_record(unknown, "\x1a\x01I\x2a\x03\x0a\x01x", 8);
}

static void test_no_json(void **state) {
    (void)state;
    static const char *const bad[] = {"", " ", "[]", "{", "{\"resourceLogs\"", "{\"resourceLogs\":", "{\"resourceLogs\":[", "{\"resourceLogs\":[{", "{\"resourceLogs\":[{}", "{\"resourceLogs\":[{}]", "{\"resourceLogs\":[{}]}x",
                                      "{\"resourceLogs\":[{},]}", "{\"resourceLogs\":[{}]} {}", "{\"x\":tru}", "{\"x\":1.}", "{\"x\":-}", "{\"x\":1e}", "{\"x\":\"\\q\"}", "{\"x\":\"\\u12\"}", "{\"x\":\"\x01\"}", "{\"x\":\"",
                                      "{\"x\" 1}", "{\"x\":1 \"y\":2}", "{x:1}", "{,}", "nul", "\"x\"", "{\"x\":nan}", "{\"resourceLogs\":[null]}", "{\"x\":[1 2]}"};
    fz_buf pb = {0};
    fz_error err;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (convert(bad[i], &pb, &err) != FZ_DATA) fail_msg("taken: %s", bad[i]);
    static const char *const good[] = {"{}", " {\"resourceLogs\":[]} ", "\xef\xbb\xbf{}", "{\"resourceLogs\":null}", "{\"resourceLogs\":[{}]}", "{\"x\":[[],{},\"\",-0,1E+5,null,[{\"y\":[[]]}]]}"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (convert(good[i], &pb, &err) != FZ_OK) fail_msg("%s: %s", good[i], err.message);
    fz_buf deep = {0}; /* of unknown fields, and of values */
    fz_buf_puts(&deep, "{\"x\":");
    for (int i = 0; i < 100000; i++) fz_buf_putc(&deep, '[');
    assert_int_equal(convert(fz_buf_cstr(&deep), &pb, &err), FZ_DATA);
    deep.len = 0;
    fz_buf_puts(&deep, "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{\"body\":");
    for (int i = 0; i < 5000; i++) fz_buf_puts(&deep, "{\"arrayValue\":{\"values\":[");
    assert_int_equal(convert(fz_buf_cstr(&deep), &pb, &err), FZ_DATA);
    assert_non_null(strstr(err.message, "nested too deep"));
    fz_buf_free(&deep);
    fz_buf_free(&pb);
}

/* ---- splitting ---- */

static void put_record(fz_buf *b, uint64_t time, uint64_t observed, const char *body) {
    size_t r = pb_begin(b, OTLP_SCOPE_LOGS_RECORDS);
    if (time) pb_put_fixed64(b, OTLP_RECORD_TIME, time);
    size_t any = pb_begin(b, OTLP_RECORD_BODY);
    pb_put_bytes(b, OTLP_ANY_STRING, body, strlen(body));
    pb_end(b, any);
    if (observed) pb_put_fixed64(b, OTLP_RECORD_OBSERVED_TIME, observed);
    pb_end(b, r);
}

/* Two resources; the first with two scopes, the last of which has no record; parts that records share stand behind them. */
static void test_groups(void **state) {
    (void)state;
    fz_buf b = {0};
    fz_error err;
    otlp_batch x = {0};
    size_t r = pb_begin(&b, 1), s = pb_begin(&b, 2);
    put_record(&b, 5, 6, "one");
    put_record(&b, 0, 7, "two");
    size_t scope = pb_begin(&b, 1);
    pb_put_bytes(&b, 1, "lib", 3);
    pb_end(&b, scope);
    pb_put_bytes(&b, 3, "su", 2);
    pb_end(&b, s);
    s = pb_begin(&b, 2);
    pb_end(&b, s);
    pb_put_bytes(&b, 3, "ru", 2);
    pb_put_bytes(&b, 1, "\x10\x01", 2);
    pb_put_bytes(&b, 1, "\x10\x02", 2); /* a resource in two parts */
    pb_put_uint(&b, 99, 1);
    pb_end(&b, r);
    r = pb_begin(&b, 1);
    s = pb_begin(&b, 2);
    put_record(&b, UINT64_MAX, 0, "three");
    pb_end(&b, s);
    s = pb_begin(&b, 2);
    put_record(&b, 0, 0, "four"); /* the same context: nothing */
    pb_end(&b, s);
    pb_end(&b, r);
    assert_int_equal(split(b.data, b.len, &x, &err), FZ_OK);
    assert_int_equal(x.n, 4);
    assert_int_equal(x.n_runs, 2);
    spool_frame *f = otlp_frames(&x, 123);
    assert_int_equal(f[0].n, 2);
    assert_int_equal(f[1].n, 2);
    static const char want[] = "\x12\x02ru\x0a\x02\x10\x01\x0a\x02\x10\x02\x1a\x05\x0a\x03lib\x22\x02su";
    assert_int_equal(f[0].context_len, sizeof want - 1);
    assert_memory_equal(f[0].context, want, sizeof want - 1);
    assert_int_equal(f[1].context_len, 0);
    assert_int_equal(f[0].time_ns[0], 5);
    assert_int_equal(f[0].time_ns[1], 7);
    assert_int_equal(f[1].time_ns[0], 123000000); /* beyond what 63 bits hold, and none: that of its arrival */
    assert_int_equal(f[1].time_ns[1], 123000000);
    assert_memory_equal(f[1].at[0] + f[1].len[0] - 5, "three", 5);
    assert_memory_equal(f[1].at[1] + f[1].len[1] - 4, "four", 4);
    for (size_t n = 0; n < b.len; n++) /* every cut */
        if (split(b.data, n, &x, &err) == FZ_OK) assert_true(x.n < 4);
    otlp_batch_free(&x);
    fz_buf_free(&b);
}

static void test_empty(void **state) {
    (void)state;
    static const char *const empty[] = {"", "\x0a\x00", "\x0a\x02\x12\x00", "\x98\x06\x01"};
    static const size_t n[] = {0, 2, 4, 3};
    otlp_batch x = {0};
    fz_error err;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(split(empty[i], n[i], &x, &err), FZ_OK);
        assert_int_equal(x.n, 0);
    }
    otlp_batch_free(&x);
}

static void wrap(fz_buf *b, const void *records, size_t n) {
    size_t r = pb_begin(b, 1), s = pb_begin(b, 2);
    fz_buf_append(b, records, n);
    pb_end(b, s);
    pb_end(b, r);
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

/* Records that can never be taken are refused alone. */
static void test_refused_records(void **state) {
    (void)state;
    fz_buf records = {0}, b = {0};
    fz_error err;
    otlp_batch x = {0};
    put_record(&records, 1, 0, "good");
    size_t r = pb_begin(&records, 2);
    pb_put_bytes(&records, OTLP_RECORD_TRACE_ID, "123456789012345", 15);
    pb_end(&records, r);
    r = pb_begin(&records, 2);
    pb_put_bytes(&records, OTLP_RECORD_SPAN_ID, "0123456789abcdeX", 16);
    pb_end(&records, r);
    r = pb_begin(&records, 2);
    nest(&records, OTLP_RECORD_BODY, OTLP_MAX_DEPTH);
    pb_end(&records, r);
    r = pb_begin(&records, 2);
    static char big[MAX_RECORD];
    pb_put_bytes(&records, OTLP_RECORD_SEVERITY_TEXT, big, sizeof big);
    pb_end(&records, r);
    r = pb_begin(&records, 2);
    pb_put_bytes(&records, OTLP_RECORD_TRACE_ID, "5B8EFFF798038103D269B633813FC60c", 32); /* the text where the bytes belong */
    pb_end(&records, r);
    wrap(&b, records.data, records.len);
    assert_int_equal(split(b.data, b.len, &x, &err), FZ_OK);
    assert_int_equal(x.n, 2);
    assert_int_equal(x.seen, 6);
    assert_int_equal(x.refused, 4);
    assert_string_equal(x.why, "log record 1: trace_id has 15 bytes, not 16");
    otlp_batch_free(&x);
    fz_buf_free(&records), fz_buf_free(&b);
}

/* A message that is broken anywhere is refused, however deep. */
static void test_broken(void **state) {
    (void)state;
    static const struct { const char *p; size_t n; } record[] = {
        {"\x2a\x05zz", 4}, {"\x32\x04\x0a\x09kk", 6} /* in an attribute */, {"\x2a\x04\x2a\x02\x0a\x05", 6} /* in an array in the body */, {"\x2a\x04\x32\x02\x0a\x05", 6}, {"\x09\x01", 2}, {"\x0c", 1}};
    otlp_batch x = {0};
    fz_error err;
    for (size_t i = 0; i < sizeof record / sizeof *record; i++) {
        fz_buf b = {0}, r = {0};
        put_record(&r, 1, 0, "good");
        pb_put_bytes(&r, 2, record[i].p, record[i].n);
        wrap(&b, r.data, r.len);
        if (split(b.data, b.len, &x, &err) != FZ_DATA) fail_msg("record %zu is taken", i);
        assert_string_equal(err.code, "otlp.protobuf");
        assert_non_null(strstr(err.message, "log record 1"));
        fz_buf_free(&b), fz_buf_free(&r);
    }
    static const char *const top[] = {"\x0a\x02\x0a\x05", "\x0a\x04\x0a\x02\x0a\x05", "\x0a\x04\x12\x02\x0a\x05", "{\"resourceLogs\":[]}"};
    static const size_t n[] = {4, 6, 6, 19};
    for (int i = 0; i < 4; i++) assert_int_equal(split(top[i], n[i], &x, &err), FZ_DATA);
    otlp_batch_free(&x);
}

/* Small messages that would unfold to much. */
static void test_bounds(void **state) {
    (void)state;
    fz_buf b = {0};
    otlp_batch x = {0};
    fz_error err;
    static char url[64 << 10];
    size_t r = pb_begin(&b, 1);
    pb_put_bytes(&b, 3, url, sizeof url);
    for (int i = 0; i < 1000; i++) pb_put_bytes(&b, 2, "\x12\x00", 2); /* 1000 scopes that share 64 KiB */
    pb_end(&b, r);
    assert_int_equal(split(b.data, b.len, &x, &err), FZ_DATA);
    assert_string_equal(err.code, "otlp.too-many");
    b.len = 0;
    r = pb_begin(&b, 1);
    size_t s = pb_begin(&b, 2);
    for (uint32_t i = 0; i <= OTLP_MAX_RECORDS; i++) fz_buf_append(&b, "\x12\x00", 2);
    pb_end(&b, s);
    pb_end(&b, r);
    assert_int_equal(split(b.data, b.len, &x, &err), FZ_DATA);
    assert_string_equal(err.code, "otlp.too-many");
    b.len = 0;
    for (uint32_t i = 0; i <= OTLP_MAX_FRAMES; i++) fz_buf_append(&b, i % 2 ? "\x0a\x04\x12\x02\x12\x00\x0a\x00" : "\x0a\x07\x12\x02\x12\x00\x1a\x01x", i % 2 ? 8 : 9);
    assert_int_equal(split(b.data, b.len, &x, &err), FZ_DATA);
    assert_string_equal(err.code, "otlp.too-many");
    otlp_batch_free(&x);
    fz_buf_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times), cmocka_unit_test(test_ids), cmocka_unit_test(test_severities), cmocka_unit_test(test_values), cmocka_unit_test(test_names), cmocka_unit_test(test_no_json),
        cmocka_unit_test(test_groups), cmocka_unit_test(test_empty), cmocka_unit_test(test_refused_records), cmocka_unit_test(test_broken), cmocka_unit_test(test_bounds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
