/* The firehose connector: bodies of calls, and the server over real sockets and a real spool: answers as AWS gives them, limits, partial failures, signatures, hostile bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "aws/aws.h"
#include "source/firehose_int.h"

/* ---- bodies ---- */

static void body_is(const char *body, bool batch, const char *code, const char *records) {
    json_t *o;
    fz_error e;
    src_frame f = {0};
    fz_status rc = fh_parse(body, strlen(body), &o, &e);
    if (rc == FZ_OK) rc = (batch ? fh_records : fh_record)(o, &f, &e);
    if (code) {
        assert_int_equal(rc, FZ_USER);
        if (strcmp(e.code, code) != 0) fail_msg("%s: %s %s", body, e.code, e.message);
    } else {
        if (rc != FZ_OK) fail_msg("%s: %s", body, e.message);
        fz_buf got = {0};
        for (uint32_t i = 0, at = 0; i < f.n; at += f.len[i++]) {
            fz_buf_append(&got, f.bytes.data + at, f.len[i]);
            fz_buf_putc(&got, '|');
        }
        assert_string_equal(fz_buf_cstr(&got), records);
        fz_buf_free(&got);
    }
    json_decref(o);
    src_frame_free(&f);
}

static void test_bodies(void **state) {
    (void)state;
    body_is("{\"Record\":{\"Data\":\"YQ==\"}}", false, NULL, "a|");
    body_is("{\"Record\":{\"Data\":\"YQo=\"}}", false, NULL, "a|");         /* a\n */
    body_is("{\"Record\":{\"Data\":\"YQ0K\"}}", false, NULL, "a|");         /* a\r\n */
    body_is("{\"Record\":{\"Data\":\"YQoK\"}}", false, NULL, "a\n|");       /* one of two */
    body_is("{\"Record\":{\"Data\":\"YQpiCg==\"}}", false, NULL, "a\nb|");  /* two lines are one record */
    body_is("{\"Record\":{\"Data\":\"\"}}", false, NULL, "|");
    body_is("{\"Records\":[{\"Data\":\"YQ==\"},{\"Data\":\"Yg==\",\"Other\":1},{\"Data\":\"\\u0059w==\"}],\"More\":null}", true, NULL, "a|b|c|");
    body_is("", true, "InvalidArgumentException", NULL);
    body_is("{}", true, "InvalidArgumentException", NULL);
    body_is("{\"Records\":null}", true, "InvalidArgumentException", NULL);
    body_is("{\"Records\":[]}", true, "InvalidArgumentException", NULL);
    body_is("{\"Records\":[{}]}", true, "InvalidArgumentException", NULL);
    body_is("{\"Record\":{\"Data\":null}}", false, "InvalidArgumentException", NULL);
    static const char *const broken[] = {"{", "[]", "17", "nul", "{\"Records\":{}}", "{\"Records\":[1]}", "{\"Records\":[{\"Data\":1}]}", "{\"Records\":[{\"Data\":\"YQ\"}]}", "{\"Records\":[{\"Data\":\"YQ==\"},{\"Data\":\"*\"}]}",
                                         "{\"Records\":[{\"Data\":\"\\u0000\"}]}", "{\"Records\":[{\"Data\":\"YQ==\"}]} x", "\xff"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) body_is(broken[i], true, "SerializationException", NULL);
    fz_buf deep = {0}; /* nested a million times */
    for (int i = 0; i < 1000000; i++) fz_buf_puts(&deep, "[");
    body_is(fz_buf_cstr(&deep), true, "SerializationException", NULL);
    fz_buf_free(&deep);
}

/* n records of `size` bytes. */
static char *batch_of(const char *stream, size_t n, size_t size) {
    fz_buf b = {0};
    char *raw = malloc(size + 1);
    memset(raw, 'x', size);
    fz_buf_printf(&b, "{\"DeliveryStreamName\":\"%s\",\"Records\":[", stream);
    for (size_t i = 0; i < n; i++) {
        fz_buf_puts(&b, i ? ",{\"Data\":\"" : "{\"Data\":\"");
        fz_buf_base64(&b, raw, size);
        fz_buf_puts(&b, "\"}");
    }
    fz_buf_puts(&b, "]}");
    free(raw);
    return fz_buf_steal(&b);
}

static void limit_is(size_t n, size_t size, const char *code) {
    char *b = batch_of("logs", n, size);
    json_t *o;
    fz_error e;
    src_frame f = {0};
    assert_int_equal(fh_parse(b, strlen(b), &o, &e), FZ_OK);
    fz_status rc = fh_records(o, &f, &e);
    assert_int_equal(rc, code ? FZ_USER : FZ_OK);
    if (code) assert_string_equal(e.code, code);
    else assert_int_equal(f.n, n);
    json_decref(o);
    src_frame_free(&f);
    fz_free(b);
}
static void test_limits(void **state) {
    (void)state;
    limit_is(500, 10, NULL);
    limit_is(501, 10, "InvalidArgumentException");
    limit_is(1, 1024000, NULL);
    limit_is(1, 1024001, "InvalidArgumentException");
    limit_is(4, 1024000, NULL);
    limit_is(8, 524288, NULL); /* 4 MiB */
    limit_is(8, 524289, "InvalidArgumentException");
}

/* ---- the server ---- */

typedef struct server { char dir[64]; src_source *s; int64_t next; } server;
static src_spooled *spooled(const server *v) { return (src_spooled *)v->s; }

static void server_open(server *v, const fz_pair *more, size_t n_more) {
    fz_pair o[12] = {{.key = "connector", .value = "firehose"}, {.key = "listen", .value = "127.0.0.1:0"}, {.key = "stream-name", .value = "logs"}};
    for (size_t i = 0; i < n_more; i++) o[3 + i] = more[i];
    fz_error err;
    if (!v->dir[0]) {
        snprintf(v->dir, sizeof v->dir, "/tmp/frazil-firehose.XXXXXX");
        assert_non_null(mkdtemp(v->dir));
    }
    src_context cx = {.table = "t", .job = "j", .readers = 1, .memory = 8 << 20, .state_dir = v->dir};
    if (src_open(o, 3 + n_more, &cx, &v->s, &err) != FZ_OK) fail_msg("open: %s", err.message);
    v->next = src_get_split(v->s, 0)->start;
    assert_int_equal(src_assign(v->s, 0, v->next, &err), FZ_OK);
}
static void server_close(server *v) {
    char cmd[128];
    src_close(v->s);
    snprintf(cmd, sizeof cmd, "rm -rf %s", v->dir);
    assert_int_equal(system(cmd), 0);
}

typedef struct reply { int status; char head[1024]; json_t *body; } reply;

/* One request on a connection of its own. Headers end with CR LF each. */
static reply ask(const server *v, const char *method, const char *path, const char *headers, const void *body, size_t n) {
    const char *a = net_listener_address(spooled(v)->listeners[0]), *colon = strrchr(a, ':');
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)strtol(colon + 1, NULL, 10)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    fz_buf b = {0}, in = {0};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    reply r = {0};
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    fz_buf_printf(&b, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/x-amz-json-1.1\r\nContent-Length: %zu\r\n%s\r\n", method, path, n, headers);
    fz_buf_append(&b, body, n);
    for (size_t at = 0; at < b.len;) {
        ssize_t w = send(fd, b.data + at, b.len - at, MSG_NOSIGNAL);
        if (w <= 0) break; /* answered already */
        at += (size_t)w;
    }
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        char part[4096];
        if (poll(&p, 1, 30000) != 1) fail_msg("no answer");
        ssize_t got = recv(fd, part, sizeof part, 0);
        if (got <= 0) break;
        fz_buf_append(&in, part, (size_t)got);
    }
    close(fd);
    const char *text = fz_buf_cstr(&in), *end = strstr(text, "\r\n\r\n");
    assert_non_null(end);
    assert_int_equal(sscanf(text, "HTTP/1.1 %d", &r.status), 1);
    snprintf(r.head, sizeof r.head, "%.*s", (int)(end - text), text);
    r.body = json_loads(end + 4, 0, NULL);
    fz_buf_free(&b);
    fz_buf_free(&in);
    return r;
}
static reply call(const server *v, const char *op, const char *body) {
    char h[128];
    snprintf(h, sizeof h, "X-Amz-Target: Firehose_20150804.%s\r\n", op);
    return ask(v, "POST", "/", h, body, strlen(body));
}
static const char *str(const reply *r, const char *name) {
    const char *s = json_string_value(json_object_get(r->body, name));
    return s ? s : "";
}
static void is_error(reply r, int status, const char *type) {
    char head[96];
    snprintf(head, sizeof head, "x-amzn-ErrorType: %s\r\n", type);
    if (r.status != status || strcmp(str(&r, "__type"), type) != 0) fail_msg("%d %s: %s", r.status, str(&r, "__type"), str(&r, "message"));
    strcat(r.head, "\r\n");
    assert_non_null(strcasestr(r.head, head));
    assert_non_null(strcasestr(r.head, "x-amzn-requestid: "));
    assert_true(*str(&r, "message"));
    json_decref(r.body);
}

static void records_are(server *v, uint32_t n, const char *want) {
    fz_buf got = {0};
    fz_error err;
    int64_t end = fz_mono_ns() + 20000000000ll;
    while (n && fz_mono_ns() < end) {
        fz_chunk *c;
        bool done;
        assert_int_equal(src_poll(v->s, 0, 200, &c, &done, &err), FZ_OK);
        if (!c) continue;
        assert_true(c->n <= n);
        for (uint32_t i = 0; i < c->n; i++) {
            fz_buf_append(&got, c->rec[i].value, (size_t)c->rec[i].value_len);
            fz_buf_putc(&got, '|');
        }
        n -= c->n;
        fz_chunk_release(c);
    }
    assert_int_equal(n, 0);
    if (want) assert_string_equal(fz_buf_cstr(&got), want);
    fz_buf_free(&got);
}

static void test_calls(void **state) {
    (void)state;
    server v = {0};
    server_open(&v, NULL, 0);
    reply r = call(&v, "PutRecord", "{\"DeliveryStreamName\":\"logs\",\"Record\":{\"Data\":\"eyJhIjoxfQo=\"}}");
    assert_int_equal(r.status, 200);
    assert_true(strlen(str(&r, "RecordId")) > 30 && json_is_false(json_object_get(r.body, "Encrypted")));
    json_decref(r.body);
    r = call(&v, "PutRecordBatch", "{\"DeliveryStreamName\":\"logs\",\"Records\":[{\"Data\":\"YQ==\"},{\"Data\":\"Yg==\"}]}");
    const json_t *all = json_object_get(r.body, "RequestResponses");
    assert_int_equal(r.status, 200);
    assert_non_null(strcasestr(r.head, "Content-Type: application/x-amz-json-1.1"));
    assert_int_equal(json_integer_value(json_object_get(r.body, "FailedPutCount")), 0);
    assert_int_equal(json_array_size(all), 2);
    assert_string_not_equal(json_string_value(json_object_get(json_array_get(all, 0), "RecordId")), json_string_value(json_object_get(json_array_get(all, 1), "RecordId")));
    json_decref(r.body);
    r = call(&v, "PutRecordBatch", "{\"DeliveryStreamName\":\"logs\",\"Records\":[{\"Data\":\"\"},{\"Data\":\"Cg==\"}]}"); /* nothing, and a newline */
    assert_int_equal(r.status, 200);
    json_decref(r.body);
    records_are(&v, 5, "{\"a\":1}|a|b|||");
    r = call(&v, "DescribeDeliveryStream", "{\"DeliveryStreamName\":\"logs\"}");
    const json_t *d = json_object_get(r.body, "DeliveryStreamDescription");
    assert_string_equal(json_string_value(json_object_get(d, "DeliveryStreamStatus")), "ACTIVE");
    assert_string_equal(json_string_value(json_object_get(d, "DeliveryStreamARN")), "arn:aws:firehose:us-east-1:000000000000:deliverystream/logs");
    assert_true(json_real_value(json_object_get(d, "CreateTimestamp")) > 1e9);
    json_decref(r.body);
    static const struct { const char *body; size_t n; } lists[] = {{"{}", 1}, {"", 1}, {"{\"Limit\":5,\"DeliveryStreamType\":\"DirectPut\"}", 1}, {"{\"DeliveryStreamType\":\"KinesisStreamAsSource\"}", 0}, {"{\"ExclusiveStartDeliveryStreamName\":\"logs\"}", 0}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        r = call(&v, "ListDeliveryStreams", lists[i].body);
        assert_int_equal(json_array_size(json_object_get(r.body, "DeliveryStreamNames")), lists[i].n);
        assert_true(json_is_false(json_object_get(r.body, "HasMoreDeliveryStreams")));
        json_decref(r.body);
    }
    r = ask(&v, "GET", "/healthz", "", "", 0);
    assert_int_equal(r.status, 200);
    json_decref(r.body);
    server_close(&v);
}

static void test_errors(void **state) {
    (void)state;
    server v = {0};
    server_open(&v, NULL, 0);
    is_error(call(&v, "PutRecordBatch", "{\"DeliveryStreamName\":\"other\",\"Records\":[{\"Data\":\"YQ==\"}]}"), 400, "ResourceNotFoundException");
    is_error(call(&v, "PutRecord", "{\"DeliveryStreamName\":\"lo\\\"gs\",\"Record\":{\"Data\":\"YQ==\"}}"), 400, "ResourceNotFoundException");
    is_error(call(&v, "DescribeDeliveryStream", "{\"DeliveryStreamName\":\"other\"}"), 400, "ResourceNotFoundException");
    is_error(call(&v, "PutRecord", "{\"Record\":{\"Data\":\"YQ==\"}}"), 400, "InvalidArgumentException");
    is_error(call(&v, "PutRecord", "{\"DeliveryStreamName\":7,\"Record\":{\"Data\":\"YQ==\"}}"), 400, "SerializationException");
    is_error(call(&v, "PutRecord", "{\"DeliveryStreamName\":\"logs\",\"Record\":{\"Data\":\"Y\"}}"), 400, "SerializationException");
    is_error(call(&v, "PutRecord", "not json"), 400, "SerializationException");
    is_error(call(&v, "CreateDeliveryStream", "{}"), 400, "UnknownOperationException");
    is_error(ask(&v, "POST", "/", "X-Amz-Target: Kinesis_20131202.PutRecords\r\n", "{}", 2), 400, "UnknownOperationException");
    is_error(ask(&v, "POST", "/", "", "{}", 2), 400, "UnknownOperationException");
    is_error(ask(&v, "POST", "/x", "X-Amz-Target: Firehose_20150804.PutRecord\r\n", "{}", 2), 400, "UnknownOperationException");
    is_error(ask(&v, "GET", "/", "", "", 0), 404, "UnknownOperationException");
    is_error(ask(&v, "POST", "/", "X-Amz-Target: Firehose_20150804.PutRecord\r\nOrigin: http://x\r\n", "{}", 2), 403, "AccessDeniedException");
    /* None of a batch with a bad record is taken. */
    is_error(call(&v, "PutRecordBatch", "{\"DeliveryStreamName\":\"logs\",\"Records\":[{\"Data\":\"YQ==\"},{\"Data\":\"*\"}]}"), 400, "SerializationException");
    json_decref(call(&v, "PutRecord", "{\"DeliveryStreamName\":\"logs\",\"Record\":{\"Data\":\"bGFzdA==\"}}").body);
    records_are(&v, 1, "last|");
    server_close(&v);
}

/* Three records, and room for two. */
static void test_partial(void **state) {
    (void)state;
    server v = {0};
    fz_pair o = {.key = "spool.max-size", .value = "1 mb"};
    server_open(&v, &o, 1);
    char *three = batch_of("logs", 3, 400000);
    reply r = call(&v, "PutRecordBatch", three);
    const json_t *all = json_object_get(r.body, "RequestResponses");
    assert_int_equal(r.status, 200);
    assert_int_equal(json_integer_value(json_object_get(r.body, "FailedPutCount")), 1);
    assert_int_equal(json_array_size(all), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *e = json_array_get(all, i);
        assert_int_equal(json_is_string(json_object_get(e, "RecordId")), i < 2);
        const char *code = json_string_value(json_object_get(e, "ErrorCode"));
        assert_int_equal(code != NULL, i == 2);
        if (code) assert_string_equal(code, "ServiceUnavailableException");
        if (code) assert_true(json_is_string(json_object_get(e, "ErrorMessage")));
    }
    json_decref(r.body);
    assert_int_equal(spool_durable(spooled(&v)->spool) - (uint64_t)v.next, 2);
    is_error(call(&v, "PutRecordBatch", three), 503, "ServiceUnavailableException"); /* room for none */
    records_are(&v, 2, NULL);
    fz_free(three);
    server_close(&v);
}

static const char *signed_headers(fz_arena *a, const char *id, const char *secret, const char *body) {
    char hash[65];
    net_header target = {"x-amz-target", "Firehose_20150804.PutRecord"}, out[4];
    size_t n;
    aws_credentials c = {.access_key = id, .secret_key = secret};
    aws_sha256_hex(body, strlen(body), hash);
    aws_sign_input in = {.service = "firehose", .region = "eu-west-1", .method = "POST", .host = "127.0.0.1", .path = "/", .headers = &target, .n_headers = 1, .payload_sha256 = hash, .now_ms = fz_now_ms(), .encode_path_twice = true};
    fz_buf b = {0};
    aws_sign(&c, &in, a, out, &n);
    fz_buf_printf(&b, "%s: %s\r\n", target.name, target.value);
    for (size_t i = 0; i < n; i++) fz_buf_printf(&b, "%s: %s\r\n", out[i].name, out[i].value);
    const char *r = fz_arena_strdup(a, fz_buf_cstr(&b));
    fz_buf_free(&b);
    return r;
}

static void test_signatures(void **state) {
    (void)state;
    static const char body[] = "{\"DeliveryStreamName\":\"logs\",\"Record\":{\"Data\":\"YQ==\"}}";
    server v = {0};
    fz_arena *a = fz_arena_new();
    fz_pair o[] = {{.key = "auth", .value = "sigv4"}, {.key = "access-key-id", .value = "AKOLD; AKNEW"}, {.key = "secret-access-key", .value = "old/secret;new+secret"}, {.key = "region", .value = "eu-west-1"}};
    server_open(&v, o, 4);
    static const char *const pairs[][2] = {{"AKOLD", "old/secret"}, {"AKNEW", "new+secret"}};
    for (int i = 0; i < 2; i++) {
        reply r = ask(&v, "POST", "/", signed_headers(a, pairs[i][0], pairs[i][1], body), body, strlen(body));
        if (r.status != 200) fail_msg("%s", str(&r, "message"));
        json_decref(r.body);
    }
    is_error(ask(&v, "POST", "/", signed_headers(a, "AKOLD", "new+secret", body), body, strlen(body)), 400, "InvalidSignatureException");
    is_error(ask(&v, "POST", "/", signed_headers(a, "AK", "old/secret", body), body, strlen(body)), 400, "UnrecognizedClientException");
    is_error(ask(&v, "POST", "/", signed_headers(a, "AKOLD", "old/secret", "{}"), body, strlen(body)), 400, "InvalidSignatureException");
    is_error(call(&v, "PutRecord", body), 400, "MissingAuthenticationTokenException");
    records_are(&v, 2, "a|a|");
    fz_arena_free(a);
    server_close(&v);
}

static void wrong(const fz_pair *more, size_t n, const char *code) {
    fz_pair o[8] = {{.key = "connector", .value = "firehose"}, {.key = "listen", .value = "127.0.0.1:0"}};
    fz_error err;
    for (size_t i = 0; i < n; i++) o[2 + i] = more[i];
    assert_int_equal(src_check(o, 2 + n, "t", &err), FZ_USER);
    if (strcmp(err.code, code) != 0) fail_msg("%s: %s", err.code, err.message);
}
static void test_options(void **state) {
    (void)state;
    wrong(NULL, 0, "option.missing");
    wrong((fz_pair[]){{.key = "stream-name", .value = "a b"}}, 1, "option.invalid");
    wrong((fz_pair[]){{.key = "stream-name", .value = "s"}, {.key = "auth", .value = "sigv4"}}, 2, "option.missing");
    wrong((fz_pair[]){{.key = "stream-name", .value = "s"}, {.key = "access-key-id", .value = "a"}}, 2, "option.conflict");
    wrong((fz_pair[]){{.key = "stream-name", .value = "s"}, {.key = "auth", .value = "sigv4"}, {.key = "access-key-id", .value = "a;b"}, {.key = "secret-access-key", .value = "a"}}, 4, "option.conflict");
    wrong((fz_pair[]){{.key = "stream-name", .value = "s"}, {.key = "auth", .value = "sigv4"}, {.key = "access-key-id", .value = "a;"}, {.key = "secret-access-key", .value = "a;b"}}, 4, "option.invalid");
    wrong((fz_pair[]){{.key = "stream-name", .value = "s"}, {.key = "region", .value = "EU West"}}, 2, "option.invalid");
    fz_pair open[] = {{.key = "connector", .value = "firehose"}, {.key = "listen", .value = "0.0.0.0:4573"}, {.key = "stream-name", .value = "s"}, {.key = "auth", .value = "sigv4"}, {.key = "access-key-id", .value = "a"}, {.key = "secret-access-key", .value = "b"}};
    fz_error err;
    assert_int_equal(src_check(open, 3, "t", &err), FZ_USER);
    assert_string_equal(err.code, "listen.open");
    assert_int_equal(src_check(open, 6, "t", &err), FZ_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bodies),  cmocka_unit_test(test_limits),     cmocka_unit_test(test_calls),
                                       cmocka_unit_test(test_errors), cmocka_unit_test(test_partial), cmocka_unit_test(test_signatures), cmocka_unit_test(test_options)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
