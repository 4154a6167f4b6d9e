/* Signatures of requests that come in: what aws_sign and botocore sign is taken, and nothing that was changed on the way. */
#include "unit.h"
#include "aws/aws_int.h"
#include <stdlib.h>

#define NOW 1735787045000ll /* 2025-01-02T03:04:05Z */
static const aws_credentials KEYS = {.access_key = "AKIDEXAMPLE", .secret_key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"};
static const char BODY[] = "{\"DeliveryStreamName\":\"logs\"}";

static const char *secret_of(void *cx, const char *id) {
    (void)cx;
    return strcmp(id, KEYS.access_key) == 0 ? KEYS.secret_key : strcmp(id, "OTHER") == 0 ? "other" : NULL;
}

typedef struct request { fz_arena *a; net_header h[16]; size_t n; aws_verify_input in; } request;

/* As a client would send it at `when`. */
static void make(request *r, const aws_credentials *keys, const char *service, const char *region, int64_t when, bool content_sha256) {
    char hash[65];
    size_t k;
    net_header out[4];
    memset(r, 0, sizeof *r);
    r->a = fz_arena_new();
    r->h[0] = (net_header){"Content-Type", "application/x-amz-json-1.1"};
    r->h[1] = (net_header){"X-Amz-Target", "Firehose_20150804.PutRecord"};
    aws_sha256_hex(BODY, strlen(BODY), hash);
    aws_sign_input in = {.service = service, .region = region, .method = "POST", .host = "127.0.0.1:4573", .path = "/", .headers = r->h, .n_headers = 2, .payload_sha256 = hash, .now_ms = when,
                         .encode_path_twice = true, .content_sha256_header = content_sha256};
    aws_sign(keys, &in, r->a, out, &k);
    r->n = 2;
    r->h[r->n++] = (net_header){"HOST", " 127.0.0.1:4573 "};
    r->h[r->n++] = (net_header){"User-Agent", "x"};
    for (size_t i = 0; i < k; i++) r->h[r->n++] = (net_header){out[i].name, fz_arena_strdup(r->a, out[i].value)};
    r->in = (aws_verify_input){.service = "firehose", .method = "POST", .path = "/", .headers = r->h, .n_headers = r->n, .body = BODY, .n_body = strlen(BODY), .now_ms = NOW, .encode_path_twice = true};
}
static void good(request *r) { make(r, &KEYS, "firehose", "us-east-1", NOW, false); }
static size_t find(const request *r, const char *name) {
    for (size_t i = 0; i < r->n; i++)
        if (fz_ieq(r->h[i].name, name)) return i;
    fail_msg("no header %s", name);
    return 0;
}

/* The signature anew, over the first n headers. */
static void resign(request *r, size_t n) {
    char hash[65];
    net_header out[4];
    size_t k;
    aws_sha256_hex(BODY, strlen(BODY), hash);
    aws_sign_input in = {.service = "firehose", .region = "us-east-1", .method = "POST", .host = "127.0.0.1:4573", .path = "/", .headers = r->h, .n_headers = n, .payload_sha256 = hash, .now_ms = NOW,
                         .encode_path_twice = true};
    aws_sign(&KEYS, &in, r->a, out, &k);
    r->h[find(r, "authorization")].value = out[k - 1].value;
}

static void expect(request *r, const char *code) {
    fz_error err = {0};
    fz_status rc = aws_verify(&r->in, secret_of, NULL, &err);
    if (!code) {
        if (rc != FZ_OK) fail_msg("%s: %s", err.code, err.message);
    } else {
        assert_int_equal(rc, FZ_USER);
        assert_string_equal(err.code, code);
        assert_null(strstr(err.message, KEYS.secret_key));
    }
    fz_arena_free(r->a);
}

static void test_taken(void **state) {
    (void)state;
    request r;
    good(&r);
    expect(&r, NULL);
    good(&r);
    r.in.region = "us-east-1";
    expect(&r, NULL);
    make(&r, &KEYS, "firehose", "eu-west-1", NOW, true); /* with x-amz-content-sha256, any region */
    expect(&r, NULL);
    aws_credentials with_token = KEYS;
    with_token.token = "session";
    make(&r, &with_token, "firehose", "us-east-1", NOW, false);
    expect(&r, NULL);
    aws_credentials other = {.access_key = "OTHER", .secret_key = "other"};
    make(&r, &other, "firehose", "us-east-1", NOW, false);
    expect(&r, NULL);
    for (int64_t off = -300000; off <= 300000; off += 300000) {
        make(&r, &KEYS, "firehose", "us-east-1", NOW + off, false);
        expect(&r, NULL);
    }
}

static void test_changed(void **state) {
    (void)state;
    request r;
    static const char wrong[] = "InvalidSignatureException";
    aws_credentials k = KEYS;
    k.secret_key = "wrong";
    make(&r, &k, "firehose", "us-east-1", NOW, false);
    expect(&r, wrong);
    k.access_key = "NOBODY";
    make(&r, &k, "firehose", "us-east-1", NOW, false);
    expect(&r, "UnrecognizedClientException");
    good(&r);
    r.in.body = "{\"DeliveryStreamName\":\"logz\"}";
    expect(&r, wrong);
    make(&r, &KEYS, "firehose", "us-east-1", NOW, true); /* the hash in the header is that of the other body */
    r.in.body = "{\"DeliveryStreamName\":\"logz\"}";
    expect(&r, wrong);
    good(&r);
    r.in.method = "PUT";
    expect(&r, wrong);
    good(&r);
    r.in.path = "/other";
    expect(&r, wrong);
    good(&r);
    r.in.query = "a=b";
    expect(&r, wrong);
    static const char *const headers[] = {"content-type", "x-amz-target", "host"};
    for (size_t i = 0; i < 3; i++) {
        good(&r);
        r.h[find(&r, headers[i])].value = "changed";
        expect(&r, wrong);
        good(&r);
        r.h[find(&r, headers[i])].name = "x-gone";
        expect(&r, wrong);
    }
    good(&r); /* a target beside a signature that does not cover it */
    resign(&r, 1);
    expect(&r, wrong);
    good(&r);
    resign(&r, 2); /* as the client did */
    expect(&r, NULL);
    good(&r); /* a second value for a header that is signed */
    r.h[r.n++] = (net_header){"x-amz-target", "Firehose_20150804.PutRecordBatch"};
    r.in.n_headers = r.n;
    expect(&r, wrong);
    good(&r);
    r.h[find(&r, "user-agent")].value = "changed";
    expect(&r, NULL);
}

static void test_scope_and_clock(void **state) {
    (void)state;
    request r;
    static const char wrong[] = "InvalidSignatureException";
    make(&r, &KEYS, "kinesis", "us-east-1", NOW, false);
    expect(&r, wrong);
    make(&r, &KEYS, "firehose", "us-east-1", NOW, false);
    r.in.region = "eu-west-1";
    expect(&r, wrong);
    make(&r, &KEYS, "firehose", "us-east-1", NOW - 301000, false);
    expect(&r, wrong);
    make(&r, &KEYS, "firehose", "us-east-1", NOW + 301000, false);
    expect(&r, wrong);
    good(&r); /* a fresh date over an old signature */
    r.h[find(&r, "x-amz-date")].value = "20250102T030406Z";
    expect(&r, wrong);
    good(&r);
    r.h[find(&r, "x-amz-date")].value = "20250103T030405Z";
    r.in.now_ms = NOW + 86400000;
    expect(&r, wrong);
    good(&r);
    r.h[find(&r, "x-amz-date")].value = "2025-01-02T03:04:05Z";
    expect(&r, "IncompleteSignatureException");
    good(&r);
    r.h[find(&r, "x-amz-date")].name = "x-gone";
    expect(&r, "IncompleteSignatureException");
}

static void test_authorization(void **state) {
    (void)state;
    request r;
    static const struct { const char *value, *code; } v[] = {
        {"", "MissingAuthenticationTokenException"}, {"Bearer x", "IncompleteSignatureException"}, {"AWS4-HMAC-SHA256", "IncompleteSignatureException"}, {"AWS4-HMAC-SHA256 ", "IncompleteSignatureException"},
        {"AWS4-HMAC-SHA256 Credential=, SignedHeaders=host, Signature=0", "IncompleteSignatureException"},
        {"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20250102/us-east-1/firehose/aws4_request, SignedHeaders=host", "IncompleteSignatureException"},
        {"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20250102/us-east-1/firehose/aws4_request, Signature=0", "IncompleteSignatureException"},
        {"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20250102/us-east-1/aws4_request, SignedHeaders=host, Signature=0", "IncompleteSignatureException"},
        {"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20250102/us-east-1/firehose/aws4_request/x, SignedHeaders=host, Signature=0", "IncompleteSignatureException"},
        {"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20250102/us-east-1/firehose/aws3_request, SignedHeaders=host, Signature=0", "IncompleteSignatureException"},
        {"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20250102/us-east-1/firehose/aws4_request, SignedHeaders=x-amz-date;host, Signature=0", "IncompleteSignatureException"},
        {"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20250102/us-east-1/firehose/aws4_request, SignedHeaders=Host, Signature=0", "IncompleteSignatureException"},
        {"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20250102/us-east-1/firehose/aws4_request, SignedHeaders=host;;x-amz-date, Signature=0", "IncompleteSignatureException"},
        {"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20250102/us-east-1/firehose/aws4_request, SignedHeaders=x-amz-date, Signature=0", "InvalidSignatureException"},
        {"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20250102/us-east-1/firehose/aws4_request, SignedHeaders=host, Signature=0", "InvalidSignatureException"}, /* date and target are not signed */
        {"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20250102/us-east-1/firehose/aws4_request, SignedHeaders=host;x-amz-date;x-amz-target, Signature=0", "InvalidSignatureException"},
    };
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        good(&r);
        r.h[find(&r, "authorization")].value = v[i].value;
        expect(&r, v[i].code);
    }
    good(&r);
    r.h[find(&r, "authorization")].name = "x-gone";
    expect(&r, "MissingAuthenticationTokenException");
    good(&r); /* each digit of the signature counts */
    char *s = strstr((char *)(uintptr_t)r.h[find(&r, "authorization")].value, "Signature=") + 10;
    for (int i = 0; i < 64; i++) {
        fz_error err;
        char was = s[i];
        s[i] = was == '0' ? '1' : '0';
        assert_int_equal(aws_verify(&r.in, secret_of, NULL, &err), FZ_USER);
        s[i] = was;
    }
    expect(&r, NULL);
}

/* Many signed headers, and bytes at random. */
static void test_hostile(void **state) {
    (void)state;
    request r;
    fz_error err;
    fz_buf b = {0};
    fz_buf_puts(&b, "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20250102/us-east-1/firehose/aws4_request, Signature=0, SignedHeaders=host");
    for (int i = 0; i < 200; i++) fz_buf_printf(&b, ";i%04d", i);
    good(&r);
    r.h[find(&r, "authorization")].value = fz_buf_cstr(&b);
    expect(&r, "IncompleteSignatureException");
    srand(7);
    good(&r);
    char *s = (char *)(uintptr_t)r.h[find(&r, "authorization")].value;
    size_t n = strlen(s);
    for (int i = 0; i < 3000; i++) {
        size_t at = (size_t)rand() % n;
        char was = s[at], now = (char)(1 + rand() % 127);
        s[at] = now;
        fz_status rc = aws_verify(&r.in, secret_of, NULL, &err);
        if (rc == FZ_OK && now != was && !(now == ' ' || was == ' ' || now == '\t' || now == ',' || was == ',')) fail_msg("taken with '%c' for '%c' at %zu", now, was, at);
        s[at] = was;
    }
    expect(&r, NULL);
    fz_buf_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_taken), cmocka_unit_test(test_changed), cmocka_unit_test(test_scope_and_clock), cmocka_unit_test(test_authorization), cmocka_unit_test(test_hostile)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
