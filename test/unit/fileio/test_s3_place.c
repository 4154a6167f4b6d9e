/* Where an object of S3 is, what options say, and what answers are read: nothing is sent in here. */
#include "fileio/fileio_int.h"
#include "fileio/s3_int.h"
#include "unit.h"
#include <stdlib.h>

static fz_error err;
static fz_arena *arena;

static int setup(void **state) {
    (void)state;
    static const char *const names[] = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3",
                                        "AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT", "TMPDIR"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
    setenv("AWS_CONFIG_FILE", "/dev/null", 1);
    setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null", 1);
    setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
    arena = fz_arena_new();
    return 0;
}
static int teardown(void **state) {
    (void)state;
    fz_arena_free(arena);
    return 0;
}

static void splits(const char *location, const char *bucket, const char *key) {
    fz_sv b;
    const char *k;
    assert_true(s3_split(location, &b, &k));
    assert_int_equal(b.n, strlen(bucket));
    assert_memory_equal(b.p, bucket, b.n);
    assert_string_equal(k, key);
}

static void test_split(void **state) {
    (void)state;
    splits("s3://b/k", "b", "k");
    splits("s3a://b/k", "b", "k");
    splits("s3n://b/k", "b", "k");
    splits("s3p://b/k", "b", "k");
    splits("s3://b", "b", "");
    splits("s3://b/", "b", "");
    splits("s3://b//metadata/x", "b", "/metadata/x");
    splits("s3://b/a//b/../c%2Fd?x#y", "b", "a//b/../c%2Fd?x#y");
    splits("s3://arn:aws:s3:eu-west-1:123456789012:accesspoint/my-ap/a/b", "arn:aws:s3:eu-west-1:123456789012:accesspoint/my-ap", "a/b");
    splits("s3://arn:aws:s3:eu-west-1:123456789012:accesspoint:my-ap/a/b", "arn:aws:s3:eu-west-1:123456789012:accesspoint:my-ap", "a/b");
    fz_sv b;
    const char *k;
    assert_false(s3_split("s3:/b/k", &b, &k));
    assert_false(s3_split("s3x://b/k", &b, &k));
    assert_false(s3_split("gs://b/k", &b, &k));
    fz_arena *a = arena;
    splits(fio_join(a, "s3://b", "metadata/x"), "b", "metadata/x"); /* a location that is a bare bucket */
    splits(fio_join(a, "s3://b/", "/metadata/x"), "b", "metadata/x");
}

/* options: pairs, ends with NULL. Fills *t, or gives the error's code. */
static const char *locate(const char *const *options, const char *location, s3_target *t) {
    fz_pair o[16];
    size_t n = 0;
    for (; *options; options += 2) o[n++] = (fz_pair){.key = options[0], .value = options[1]};
    fio *io;
    s3_store *s;
    fz_status rc = fio_new(o, n, &io, &err);
    if (rc != FZ_OK) return err.code;
    rc = fio_s3(io, &s, &err);
    fz_sv bucket;
    const char *key;
    if (rc == FZ_OK) {
        assert_true(s3_split(location, &bucket, &key));
        rc = s3_locate(s, bucket, key, arena, t, &err);
        if (rc == FZ_OK) t->region = fz_arena_strdup(arena, t->region);
    }
    fio_unref(io);
    return rc == FZ_OK ? "" : err.code;
}
#define O(...) ((const char *const[]){__VA_ARGS__ __VA_OPT__(,) NULL})
#define R "s3.region", "eu-west-1"
static void at(const char *const *options, const char *location, const char *endpoint, const char *path) {
    s3_target t;
    const char *code = locate(options, location, &t);
    if (*code) fail_msg("%s: %s %s", location, code, err.message);
    assert_string_equal(t.endpoint, endpoint);
    assert_string_equal(t.path, path);
}
static void refused(const char *const *options, const char *location, const char *code) {
    s3_target t;
    assert_string_equal(locate(options, location, &t), code);
}

static void test_aws(void **state) {
    (void)state;
    at(O(R), "s3://logs/a", "https://logs.s3.eu-west-1.amazonaws.com", "/a");
    at(O("s3.region", "cn-north-1"), "s3://logs/a", "https://logs.s3.cn-north-1.amazonaws.com.cn", "/a");
    at(O(R, "s3.path-style-access", "true"), "s3://logs/a", "https://s3.eu-west-1.amazonaws.com", "/logs/a");
    at(O(R, "s3.path.style.access", "TRUE"), "s3://logs/a", "https://s3.eu-west-1.amazonaws.com", "/logs/a");
    at(O(R), "s3://my.logs/a", "https://s3.eu-west-1.amazonaws.com", "/my.logs/a");
    at(O(R), "s3://My_Logs/a", "https://s3.eu-west-1.amazonaws.com", "/My_Logs/a");
    at(O(R, "s3.dualstack-enabled", "true"), "s3://logs/a", "https://logs.s3.dualstack.eu-west-1.amazonaws.com", "/a");
    at(O(R, "s3.acceleration-enabled", "true"), "s3://logs/a", "https://logs.s3-accelerate.amazonaws.com", "/a");
    at(O(R, "s3.acceleration-enabled", "true", "s3.dualstack-enabled", "true"), "s3://logs/a", "https://logs.s3-accelerate.dualstack.amazonaws.com", "/a");
    refused(O(R, "s3.acceleration-enabled", "true"), "s3://my.logs/a", "file.bucket");
    at(O(R), "s3://63a8e430-6e0b-46f5-k833abtwr6s8tmtsycedn8s4yc3xhuse1b--table-s3/metadata/x",
       "https://63a8e430-6e0b-46f5-k833abtwr6s8tmtsycedn8s4yc3xhuse1b--table-s3.s3.eu-west-1.amazonaws.com", "/metadata/x");
    setenv("AWS_USE_FIPS_ENDPOINT", "true", 1);
    at(O(R), "s3://logs/a", "https://logs.s3-fips.eu-west-1.amazonaws.com", "/a");
    at(O(R, "s3.dualstack-enabled", "true"), "s3://logs/a", "https://logs.s3-fips.dualstack.eu-west-1.amazonaws.com", "/a");
    unsetenv("AWS_USE_FIPS_ENDPOINT");
    refused(O("s3.endpoint", ""), "s3://logs/a", "aws.no-region");
    s3_target t;
    setenv("AWS_REGION", "us-west-2", 1);
    assert_string_equal(locate(O("s3.endpoint", ""), "s3://logs/a", &t), "");
    assert_string_equal(t.region, "us-west-2");
    assert_string_equal(locate(O("client.region", "us-east-2"), "s3://logs/a", &t), "");
    assert_string_equal(t.region, "us-east-2");
    assert_string_equal(locate(O("client.region", "us-east-2", R), "s3://logs/a", &t), "");
    assert_string_equal(t.region, "eu-west-1");
    unsetenv("AWS_REGION");
}

static void test_keys(void **state) {
    (void)state;
    at(O(R), "s3://logs/w/t/data/dt=2025-01-02/host=web+1%2F..%2F%C3%A9/0.parquet", "https://logs.s3.eu-west-1.amazonaws.com",
       "/w/t/data/dt%3D2025-01-02/host%3Dweb%2B1%252F..%252F%25C3%25A9/0.parquet");
    at(O(R), "s3://logs//a//b/../c d", "https://logs.s3.eu-west-1.amazonaws.com", "//a//b/../c%20d");
    at(O(R), "s3://logs/\xC3\xA9~*'()", "https://logs.s3.eu-west-1.amazonaws.com", "/%C3%A9~%2A%27%28%29");
    char longest[1100] = "s3://logs/";
    memset(longest + 10, 'k', 1024);
    s3_target t;
    assert_string_equal(locate(O(R), longest, &t), "");
    longest[10 + 1024] = 'k';
    refused(O(R), longest, "file.name-too-long");
    refused(O(R), "s3://logs/", "file.name");
    refused(O(R), "s3:///a", "file.bucket");
    refused(O(R), "s3://a@b/a", "file.bucket");
    refused(O(R), "s3://logs--use1-az4--x-s3/a", "file.bucket");
}

static void test_custom(void **state) {
    (void)state;
    at(O(R, "s3.endpoint", "http://127.0.0.1:9000"), "s3://logs/a", "http://127.0.0.1:9000", "/logs/a");
    at(O(R, "s3.endpoint", "http://[::1]:9000"), "s3://logs/a", "http://[::1]:9000", "/logs/a");
    at(O(R, "s3.endpoint", "http://minio:9000/"), "s3://logs/a", "http://minio:9000", "/logs/a");
    at(O(R, "s3.endpoint", "http://localhost:9000"), "s3://logs/a", "http://localhost:9000", "/logs/a");
    at(O(R, "s3.endpoint", "http://minio:9000", "s3.force-virtual-addressing", "true"), "s3://logs/a", "http://logs.minio:9000", "/a");
    at(O(R, "s3.endpoint", "https://s3.example.org"), "s3://logs/a", "https://logs.s3.example.org", "/a");
    at(O(R, "s3.endpoint", "https://s3.example.org/base"), "s3://logs/a", "https://logs.s3.example.org", "/base/a");
    at(O(R, "s3.endpoint", "https://s3.example.org", "s3.path-style-access", "true"), "s3://logs/a", "https://s3.example.org", "/logs/a");
    at(O(R, "s3.endpoint", "https://s3.example.org"), "s3://my.logs/a", "https://s3.example.org", "/my.logs/a");
    at(O(R, "s3.endpoint", "http://s3.example.org"), "s3://my.logs/a", "http://my.logs.s3.example.org", "/a");
    setenv("AWS_ENDPOINT_URL", "http://10.0.0.1:1", 1);
    at(O(R), "s3://logs/a", "http://10.0.0.1:1", "/logs/a");
    setenv("AWS_ENDPOINT_URL_S3", "http://10.0.0.2:2", 1);
    at(O(R), "s3://logs/a", "http://10.0.0.2:2", "/logs/a");
    at(O(R, "s3.endpoint", "http://10.0.0.3:3"), "s3://logs/a", "http://10.0.0.3:3", "/logs/a");
    unsetenv("AWS_ENDPOINT_URL");
    unsetenv("AWS_ENDPOINT_URL_S3");
}

#define AP "arn:aws:s3:eu-west-1:123456789012:accesspoint/my-ap"
static void test_access_points(void **state) {
    (void)state;
    at(O(R), "s3://" AP "/a/b", "https://my-ap-123456789012.s3-accesspoint.eu-west-1.amazonaws.com", "/a/b");
    at(O(R), "s3://arn:aws:s3:eu-west-1:123456789012:accesspoint:my-ap/a/b", "https://my-ap-123456789012.s3-accesspoint.eu-west-1.amazonaws.com", "/a/b");
    at(O(R, "s3.access-points.logs", AP), "s3://logs/a", "https://my-ap-123456789012.s3-accesspoint.eu-west-1.amazonaws.com", "/a");
    at(O(R, "s3.access-points.logs", "my-ap-hrzrlukc5m36ft7okagglf3gmwluquse1b-s3alias"), "s3://logs/a",
       "https://my-ap-hrzrlukc5m36ft7okagglf3gmwluquse1b-s3alias.s3.eu-west-1.amazonaws.com", "/a");
    at(O(R, "s3.dualstack-enabled", "true"), "s3://" AP "/a", "https://my-ap-123456789012.s3-accesspoint.dualstack.eu-west-1.amazonaws.com", "/a");
    at(O(R, "s3.endpoint", "https://s3.example.org"), "s3://" AP "/a", "https://my-ap-123456789012.s3.example.org", "/a");
    refused(O("s3.region", "us-east-1"), "s3://" AP "/a", "file.access-point");
    s3_target t;
    assert_string_equal(locate(O("s3.region", "us-east-1", "s3.use-arn-region-enabled", "true"), "s3://" AP "/a", &t), "");
    assert_string_equal(t.region, "eu-west-1");
    refused(O(R), "s3://arn:aws:s3::123456789012:accesspoint/mfzwi23gnjvgw.mrap/a", "file.access-point");
    assert_non_null(strstr(err.message, "4A"));
    refused(O(R), "s3://arn:aws:s3-outposts:eu-west-1:123456789012:outpost/op-1/accesspoint/x/a", "file.access-point");
    refused(O(R, "s3.path-style-access", "true"), "s3://" AP "/a", "file.access-point");
    refused(O(R, "s3.endpoint", "http://127.0.0.1:1"), "s3://" AP "/a", "file.access-point");
    refused(O(R), "s3://arn:aws:s3:eu-west-1/a", "file.access-point");
}

static void test_options(void **state) {
    (void)state;
    static const struct { const char *key, *value, *code; } bad[] = {
        {"s3.nonsense", "1", "option.unknown"},          {"s3.path-style-access", "maybe", "option.invalid"}, {"s3.sse.type", "rot13", "option.invalid"},
        {"s3.sse.type", "custom", "option.invalid"},     {"s3.remote-signing-enabled", "true", "option.invalid"}, {"s3.access-grants.enabled", "true", "option.invalid"},
        {"s3.access-key-id", "a", "option.invalid"},     {"s3.secret-key", "a", "option.invalid"},            {"s3.session-token", "a", "option.invalid"},
        {"s3.multipart.part-size-bytes", "5242879", "option.invalid"}, {"s3.multipart.threshold", "0.9", "option.invalid"}, {"s3.delete.batch-size", "1001", "option.invalid"},
        {"s3.staging-dir", "relative", "option.invalid"}, {"s3.client-factory-impl", "x.Y", "option.refused"},  {"s3.write.table-tag-enabled", "true", "option.refused"},
        {"s3.proxy-uri", "http://x", "option.refused"},   {"s3.acl", "everybody", "option.invalid"},           {"s3.multipart.num-threads", "0", "option.invalid"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        s3_config c;
        fz_pair o = {.key = bad[i].key, .value = bad[i].value, .line = 7, .column = 3};
        assert_int_equal(s3_config_read(&o, 1, arena, &c, &err), FZ_USER);
        assert_string_equal(err.code, bad[i].code);
        assert_non_null(strstr(err.message, "s3."));
    }
    s3_config c;
    fz_pair o[] = {{.key = "s3.access-key", .value = "A"}, {.key = "s3.secret-key", .value = "S"}, {.key = "s3.remote-signing-enabled", .value = "false"},
                   {.key = "s3.write.tags.team", .value = "a b&c"}, {.key = "s3.write.tags.env", .value = "x"}, {.key = "s3.multipart.threshold", .value = "2"},
                   {.key = "s3.retry.num-retries", .value = "0"}, {.key = "s3.crt.enabled", .value = "true"}, {.key = "warehouse", .value = "s3://x"},
                   {.key = "s3.sse.type", .value = "KMS"}, {.key = "s3.multipart.num-threads", .value = "64"}, {.key = "s3.request-timeout", .value = "1.5"}};
    assert_int_equal(s3_config_read(o, sizeof o / sizeof *o, arena, &c, &err), FZ_OK);
    assert_string_equal(c.access_key, "A");
    assert_string_equal(c.tagging, "team=a%20b%26c&env=x");
    assert_int_equal(c.threshold, 64 << 20);
    assert_int_equal(c.max_attempts, 1);
    assert_int_equal(c.sse, S3_SSE_KMS);
    assert_int_equal(c.threads, FZ_MAX_UPLOAD_THREADS);
    assert_int_equal(c.timeout_ms, 1500);
    assert_string_equal(c.staging_dir, "/tmp");
    assert_true(c.delete_enabled && c.conditional && !c.checksum);
    for (const fz_option *x = fio_options(); x->name; x++) /* the reference page has a text for each */
        assert_non_null(x->state == FZ_OPT_USED ? x->doc : x->why);
}

static void test_customer_key(void **state) {
    (void)state;
    s3_config c;
    fz_pair o[] = {{.key = "s3.sse.type", .value = "custom"}, {.key = "s3.sse.key", .value = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="},
                   {.key = "s3.sse.md5", .value = "AAAAAAAAAAAAAAAAAAAAAA=="}};
    assert_int_equal(s3_config_read(o, 2, arena, &c, &err), FZ_OK);
    assert_string_equal(c.sse_md5, "KYvwGXoFFJ42a2u2GDWhwQ=="); /* openssl dgst -md5 -binary | base64 */
    assert_int_equal(s3_config_read(o, 3, arena, &c, &err), FZ_USER);
    assert_null(strstr(err.message, "MDEyMzQ1")); /* the key is no text for errors */
    s3_target t;
    assert_string_equal(locate(O(R, "s3.sse.type", "custom", "s3.sse.key", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=", "s3.endpoint", "http://127.0.0.1:1"), "s3://logs/a", &t), "option.invalid");
    assert_non_null(strstr(err.message, "https"));
    assert_string_equal(locate(O(R, "s3.sse.type", "custom", "s3.sse.key", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="), "s3://logs/a", &t), "");
}

/* ---- answers ---- */

static fz_buf seen;
static bool note(void *cx, const s3_record *r) {
    (void)cx;
    fz_buf_printf(&seen, "%s(", r->name);
    for (unsigned i = 0; i < r->n; i++) fz_buf_printf(&seen, "%s=%s;", r->f[i].name, r->f[i].text);
    fz_buf_puts(&seen, ")");
    return strcmp(r->name, "Last") != 0;
}
static void reads(const char *xml, const char *want) {
    seen.len = 0;
    bool ok = s3_xml_records(arena, xml, strlen(xml), note, NULL);
    if (!want) assert_false(ok);
    else {
        assert_true(ok);
        assert_string_equal(fz_buf_cstr(&seen), want);
    }
}

static void test_xml(void **state) {
    (void)state;
    reads("<?xml version=\"1.0\"?>\n<!-- x -->\n<L xmlns=\"http://x/\"><A>1</A><C> <K>a&amp;b&lt;&#x41;&#66;</K><O><ID>7</ID></O><E/></C><B/></L>", "C(K=a&b<AB;E=;)L(A=1;B=;)");
    reads("<s:L xmlns:s='x'><s:C><s:K><![CDATA[a<b]]>c</s:K></s:C></s:L>", "C(K=a<bc;)L()");
    reads("<Error><Code>SlowDown</Code></Error>", "Error(Code=SlowDown;)");
    reads("   \n<Error><Code></Code></Error>", "Error(Code=;)");
    reads("<L><Last><K>1</K></Last><C><K>2</K></C></L>", "Last(K=1;)");
    reads("", NULL);
    reads("<L><A>1</A>", NULL);
    reads("<L><A>1</A", NULL);
    reads("<L>&nbsp;</L>", NULL);
    reads("<L>&#0;</L>", NULL);
    reads("</L>", NULL);
    reads("no xml", NULL);
    fz_buf_free(&seen);
    assert_int_equal(s3_time_ms("2009-10-12T17:50:30.123Z"), 1255369830123ll);
    assert_int_equal(s3_time_ms("1970-01-01T00:00:00Z"), 0);
    assert_int_equal(s3_time_ms("2024-02-29T00:00:00.5Z"), 1709164800500ll);
    assert_int_equal(s3_time_ms("yesterday"), 0);
    assert_string_equal(s3_url_decode(arena, "a+b%2Bc%252F%C3%A9"), "a b+c%2F\xC3\xA9");
    fz_buf b = {0};
    assert_true(s3_xml_escape(&b, "a&<>\"\r\n"));
    assert_string_equal(fz_buf_cstr(&b), "a&amp;&lt;&gt;&quot;&#13;&#10;");
    assert_false(s3_xml_escape(&b, "\x01"));
    fz_buf_free(&b);
    assert_string_equal(s3_base64_of_hex(arena, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split),         cmocka_unit_test(test_aws),     cmocka_unit_test(test_keys),         cmocka_unit_test(test_custom),
        cmocka_unit_test(test_access_points), cmocka_unit_test(test_options), cmocka_unit_test(test_customer_key), cmocka_unit_test(test_xml),
    };
    return cmocka_run_group_tests_name("s3 places, options, answers", tests, setup, teardown);
}
