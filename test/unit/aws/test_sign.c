/* Signature Version 4 against AWS's published examples and against botocore's signatures (test/data/sigv4). */
#include "unit.h"
#include "aws/aws_int.h"
#include <stdlib.h>

static const char EMPTY[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
static const aws_credentials S3_KEYS = {.access_key = "AKIAIOSFODNN7EXAMPLE", .secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"};
static const aws_credentials KEYS = {.access_key = "AKIDEXAMPLE", .secret_key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"};
#define MAY_24_2013 1369353600000ll
#define AUG_30_2015 1440938160000ll

static const char *value(const net_header *h, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(h[i].name, name) == 0) return h[i].value;
    return "";
}

static void check(const aws_credentials *c, aws_sign_input in, const char *want) {
    fz_arena *a = fz_arena_new();
    net_header out[4];
    size_t n;
    aws_sign(c, &in, a, out, &n);
    const char *got = value(out, n, "authorization");
    assert_non_null(strstr(got, "Signature="));
    assert_string_equal(strstr(got, "Signature=") + 10, want);
    fz_arena_free(a);
}

/* "Create a signed AWS API request": ListUsers. */
static void test_iam(void **state) {
    (void)state;
    aws_sign_input in = {.service = "iam", .region = "us-east-1", .method = "GET", .host = "iam.amazonaws.com", .path = "/", .query = "Action=ListUsers&Version=2010-05-08",
                         .headers = (net_header[]){{"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"}}, .n_headers = 1, .payload_sha256 = EMPTY,
                         .now_ms = AUG_30_2015, .encode_path_twice = true};
    fz_arena *a = fz_arena_new();
    net_header out[4];
    size_t n;
    aws_sign(&KEYS, &in, a, out, &n);
    assert_int_equal(n, 2);
    assert_string_equal(value(out, n, "x-amz-date"), "20150830T123600Z");
    assert_string_equal(value(out, n, "authorization"),
                        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, SignedHeaders=content-type;host;x-amz-date, "
                        "Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7");
    fz_arena_free(a);
}

/* "Signature Calculations for the Authorization Header", S3. */
static void test_s3_examples(void **state) {
    (void)state;
    aws_sign_input in = {.service = "s3", .region = "us-east-1", .method = "GET", .host = "examplebucket.s3.amazonaws.com", .path = "/test.txt", .payload_sha256 = EMPTY,
                         .now_ms = MAY_24_2013, .content_sha256_header = true};
    in.headers = (net_header[]){{"Range", "bytes=0-9"}};
    in.n_headers = 1;
    check(&S3_KEYS, in, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
    char hash[65];
    aws_sha256_hex("Welcome to Amazon S3.", 21, hash);
    assert_string_equal(hash, "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072");
    aws_sign_input put = in;
    put.method = "PUT";
    put.path = "/test%24file.text";
    put.payload_sha256 = hash;
    put.headers = (net_header[]){{"Date", "Fri, 24 May 2013 00:00:00 GMT"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}};
    put.n_headers = 2;
    check(&S3_KEYS, put, "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
    in.path = "/";
    in.n_headers = 0;
    in.query = "lifecycle";
    check(&S3_KEYS, in, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    in.query = "max-keys=2&prefix=J";
    check(&S3_KEYS, in, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
    in.query = "prefix=J&max-keys=2"; /* order does not count */
    check(&S3_KEYS, in, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

/* The general examples ("get-vanilla" and the rest), service "service". */
static void test_vanilla(void **state) {
    (void)state;
    aws_sign_input in = {.service = "service", .region = "us-east-1", .method = "GET", .host = "example.amazonaws.com", .path = "/", .payload_sha256 = EMPTY, .now_ms = AUG_30_2015,
                         .encode_path_twice = true};
    static const char vanilla[] = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31";
    check(&KEYS, in, vanilla);
    /* All of these are "/". */
    static const char *const same[] = {"", "//", "/.", "/./", "/example/..", "/example1/example2/../..", "/..", "/../"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        in.path = same[i];
        check(&KEYS, in, vanilla);
    }
    in.path = "/";
    in.query = "Param1=value1";
    check(&KEYS, in, "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb");
    in.query = "Param2=value2&Param1=value1"; /* get-vanilla-query-order-key-case */
    check(&KEYS, in, "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500");
}

static const char *text(const json_t *o, const char *k) { return json_string_value(json_object_get(o, k)); }

static void check_vector(const json_t *v, const aws_credentials *keys, int64_t now) {
    fz_arena *a = fz_arena_new();
    aws_credentials c = *keys;
    c.token = text(v, "token");
    net_header h[8], out[4];
    size_t n = 0, i;
    json_t *pair;
    json_array_foreach(json_object_get(v, "headers"), i, pair)
        h[n++] = (net_header){json_string_value(json_array_get(pair, 0)), json_string_value(json_array_get(pair, 1))};
    aws_sign_input in = {.service = text(v, "service"), .region = text(v, "region"), .method = text(v, "method"), .host = text(v, "host"), .path = text(v, "path"),
                         .query = text(v, "query"), .headers = h, .n_headers = n, .payload_sha256 = text(v, "payload"), .now_ms = now,
                         .encode_path_twice = strcmp(text(v, "service"), "s3") != 0, .content_sha256_header = json_is_true(json_object_get(v, "content_sha256"))};
    aws_sign(&c, &in, a, out, &n);
    if (strcmp(value(out, n, "authorization"), text(v, "authorization"))) print_message("%s %s?%s\n", in.method, in.path, in.query);
    assert_string_equal(value(out, n, "authorization"), text(v, "authorization"));
    assert_string_equal(value(out, n, "x-amz-security-token"), c.token ? c.token : "");
    fz_arena_free(a);
}

static void test_botocore(void **state) {
    (void)state;
    FILE *f = fopen("test/data/sigv4/vectors.ndjson", "r");
    assert_non_null(f);
    json_t *head = json_loadf(f, JSON_DISABLE_EOF_CHECK, NULL), *v;
    assert_non_null(head);
    aws_credentials keys = {.access_key = text(head, "access_key"), .secret_key = text(head, "secret_key")};
    int64_t now = json_integer_value(json_object_get(head, "now_ms"));
    size_t n = 0;
    for (; (v = json_loadf(f, JSON_DISABLE_EOF_CHECK, NULL)); n++) {
        check_vector(v, &keys, now);
        json_decref(v);
    }
    assert_in_range(n, 200, 1000);
    json_decref(head);
    fclose(f);
}

/* Query forms that a server reads as the same thing sign as the same thing. */
static void test_query_forms(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    aws_sign_input in = {.service = "s3", .region = "r", .method = "GET", .host = "h", .path = "/", .payload_sha256 = EMPTY, .now_ms = 1};
    const char *forms[] = {"a=x%20y%3A%2F&b=~", "b=%7e&a=x+y:%2f", "&a=x%20y:/&&b=~&"};
    char first[300] = "";
    for (size_t i = 0; i < 3; i++) {
        net_header out[4];
        size_t n;
        in.query = forms[i];
        aws_sign(&KEYS, &in, a, out, &n);
        if (i == 0) snprintf(first, sizeof first, "%s", value(out, n, "authorization"));
        assert_string_equal(value(out, n, "authorization"), first);
    }
    fz_arena_free(a);
}

/* Equal names make one line; what proxies change is not signed. */
static void test_headers(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    net_header out[4], h[] = {{"X-B", "2"}, {"User-Agent", "x"}, {"x-b", " 1 "}, {"X-A", "q"}, {"Connection", "close"}};
    size_t n;
    aws_sign_input in = {.service = "s3", .region = "r", .method = "GET", .host = "h", .path = "/", .payload_sha256 = EMPTY, .now_ms = 1, .headers = h, .n_headers = 5};
    aws_sign(&KEYS, &in, a, out, &n);
    const char *first = fz_arena_strdup(a, value(out, n, "authorization"));
    assert_non_null(strstr(first, "SignedHeaders=host;x-a;x-amz-date;x-b,"));
    net_header joined[] = {{"x-a", "q"}, {"x-b", "2,1"}};
    in.headers = joined;
    in.n_headers = 2;
    aws_sign(&KEYS, &in, a, out, &n);
    assert_string_equal(value(out, n, "authorization"), first);
    fz_arena_free(a);
}

static void test_presign(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    aws_credentials c = KEYS;
    c.token = "a+b/c==";
    const char *url = aws_presign(&c, "kafka-cluster", "us-west-2", "kafka.us-west-2.amazonaws.com", "Action=kafka-cluster%3AConnect", AUG_30_2015, 900, a);
    /* Made with botocore's SigV4QueryAuth for the same request. */
    assert_string_equal(url, "https://kafka.us-west-2.amazonaws.com/?Action=kafka-cluster%3AConnect&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIDEXAMPLE%2F20150830%2Fus-west-2"
                             "%2Fkafka-cluster%2Faws4_request&X-Amz-Date=20150830T123600Z&X-Amz-Expires=900&X-Amz-Security-Token=a%2Bb%2Fc%3D%3D&X-Amz-SignedHeaders=host&X-Amz-Signature="
                             "13cb0c243d1bed521103c045d6e300142d53d62b6ea2833ec9da544481394867");
    fz_arena_free(a);
}

static void test_sha256_pieces(void **state) {
    (void)state;
    char one[65], pieces[65];
    aws_sha256_hex("abcdef", 6, one);
    aws_sha256 *h = aws_sha256_new();
    aws_sha256_add(h, "abc", 3);
    aws_sha256_add(h, NULL, 0);
    aws_sha256_add(h, "def", 3);
    aws_sha256_hex_end(h, pieces);
    assert_string_equal(pieces, one);
    aws_sha256_hex_end(h, pieces);
    assert_string_equal(pieces, EMPTY);
    aws_sha256_free(h);
}

static void test_time(void **state) {
    (void)state;
    int64_t ms;
    static const struct { const char *text; int64_t ms; } good[] = {
        {"2015-08-30T12:36:00Z", AUG_30_2015}, {"2015-08-30T14:36:00+02:00", AUG_30_2015}, {"2015-08-30T12:36:00.123456Z", AUG_30_2015 + 123}, {"2015-08-30T12:36:00UTC", AUG_30_2015},
        {"2015-08-30T11:06:00-0130", AUG_30_2015}, {"Sun, 30 Aug 2015 12:36:00 GMT", AUG_30_2015}, {"Sun, 06 Nov 1994 08:49:37 GMT", 784111777000ll}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(aws_time_parse(good[i].text, &ms));
        assert_int_equal(ms, good[i].ms);
    }
    static const char *const wrong[] = {"", "2015-08-30", "2015-13-30T12:36:00Z", "2015-08-30T12:36:00Zx", "Sun, 30 Aug 2015 12:36:00 CET", "Sun, 30 Agu 2015 12:36:00 GMT", "tomorrow"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) assert_false(aws_time_parse(wrong[i], &ms));
    assert_false(aws_time_parse(NULL, &ms));
}

/* The derived keys' table: more scopes than it holds, asked twice, in mixed order. */
static void test_key_cache(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    const char *first[100];
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 100; i++) {
            aws_credentials c = {.access_key = "AK", .secret_key = i % 2 ? "one" : "two"};
            aws_sign_input in = {.service = i % 3 ? "s3" : "glue", .region = fz_arena_printf(a, "r%d", i / 4), .method = "GET", .host = "h", .path = "/", .payload_sha256 = EMPTY, .now_ms = 1};
            net_header out[4];
            size_t n;
            aws_sign(&c, &in, a, out, &n);
            if (round == 0) first[i] = value(out, n, "authorization");
            else assert_string_equal(value(out, n, "authorization"), first[i]);
            if (i) assert_string_not_equal(first[i], first[i - 1]);
        }
    fz_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_iam), cmocka_unit_test(test_s3_examples), cmocka_unit_test(test_vanilla), cmocka_unit_test(test_botocore),
                                       cmocka_unit_test(test_query_forms), cmocka_unit_test(test_headers), cmocka_unit_test(test_presign), cmocka_unit_test(test_sha256_pieces),
                                       cmocka_unit_test(test_time), cmocka_unit_test(test_key_cache)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
