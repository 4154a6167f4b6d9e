/* The otlp connector over real sockets and a real spool. HTTP: every encoding, status and body; gRPC (a client of nghttp2's): calls, codes, limits, several at a time, the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <libdeflate.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zstd.h>
#include "source/otlp_h2.h"

/* ---- a server ---- */

typedef struct server { char dir[64]; src_source *s; otlp_source *o; int64_t next; } server;

static fz_status try_open(server *v, const fz_pair *more, size_t n_more, fz_error *err) {
    fz_pair o[12] = {{.key = "connector", .value = "otlp"}};
    bool listens = false;
    size_t n = 1;
    for (size_t i = 0; i < n_more; i++) {
        o[n++] = more[i];
        listens |= fz_ends(more[i].key, "listen");
    }
    if (!listens) {
        o[n++] = (fz_pair){.key = "listen", .value = "127.0.0.1:0"};
        o[n++] = (fz_pair){.key = "grpc.listen", .value = "127.0.0.1:0"};
    }
    src_context cx = {.table = "t", .job = "j", .readers = 1, .memory = 8 << 20, .state_dir = v->dir};
    if (!v->dir[0]) {
        snprintf(v->dir, sizeof v->dir, "/tmp/frazil-otlp.XXXXXX");
        assert_non_null(mkdtemp(v->dir));
    }
    return src_open(o, n, &cx, &v->s, err);
}
static void server_open(server *v, const fz_pair *more, size_t n_more) {
    fz_error err;
    fz_log_set_level(FZ_LOG_OFF);
    if (try_open(v, more, n_more, &err) != FZ_OK) fail_msg("open: %s", err.message);
    v->o = (otlp_source *)v->s;
    v->next = src_get_split(v->s, 0)->start;
    assert_int_equal(src_assign(v->s, 0, v->next, &err), FZ_OK);
}
static void server_remove(server *v) {
    char cmd[128];
    snprintf(cmd, sizeof cmd, "rm -rf %s", v->dir);
    assert_int_equal(system(cmd), 0);
}
static void server_close(server *v) {
    src_close(v->s);
    server_remove(v);
}
static int dial(const server *v, int listener) {
    const char *a = net_listener_address(v->o->s.listeners[listener]);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)strtol(strrchr(a, ':') + 1, NULL, 10)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

/* Reads records until n are there; their values one after the other in out, "|" behind each. */
static uint32_t records(server *v, uint32_t n, fz_buf *out) {
    uint32_t k = 0;
    fz_error err;
    for (int i = 0; i < 200 && k < n; i++) {
        fz_chunk *c;
        bool done;
        assert_int_equal(src_poll(v->s, 0, 100, &c, &done, &err), FZ_OK);
        if (!c) continue;
        assert_int_equal(c->from, v->next);
        for (uint32_t r = 0; r < c->n; r++, k++) {
            fz_buf_append(out, c->rec[r].value, (size_t)c->rec[r].value_len);
            fz_buf_putc(out, '|');
        }
        v->next = c->to;
        fz_chunk_release(c);
    }
    return k;
}
/* Nothing more is there. */
static void expect_none(server *v) {
    fz_chunk *c;
    bool done;
    fz_error err;
    assert_int_equal(src_poll(v->s, 0, 50, &c, &done, &err), FZ_OK);
    assert_null(c);
}

/* ---- requests ---- */

#define JSON1 "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{\"severityText\":\"ONE\"}]}]}]}"
static const char pb1[] = "\x0a\x09\x12\x07\x12\x05\x1a\x03ONE"; /* the same */
#define PB1 pb1, sizeof pb1 - 1
static const char pb_mixed[] = "\x0a\x10\x12\x0e\x12\x05\x1a\x03ONE\x12\x05\x4a\x03" "abc"; /* with a record whose trace id has three bytes */

/* ---- HTTP ---- */

typedef struct answer { int status; char head[1024]; char body[4096]; size_t n; } answer;

static void http_send(int fd, const char *headers, const void *body, size_t n) {
    fz_buf b = {0};
    fz_buf_printf(&b, "POST /v1/logs HTTP/1.1\r\nHost: x\r\n%sContent-Length: %zu\r\n\r\n", headers, n);
    fz_buf_append(&b, body, n);
    for (size_t at = 0; at < b.len;) {
        ssize_t w = send(fd, b.data + at, b.len - at, MSG_NOSIGNAL);
        if (w <= 0) break; /* refused before all was sent */
        at += (size_t)w;
    }
    fz_buf_free(&b);
}
static answer http_read(int fd) {
    answer a = {0};
    char buf[8192] = "";
    size_t n = 0;
    char *end = NULL;
    while (!end || n < (size_t)(end + 4 - buf) + a.n) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, 10000) != 1) fail_msg("no answer: %s", buf);
        ssize_t r = recv(fd, buf + n, sizeof buf - 1 - n, 0);
        if (r <= 0) fail_msg("closed: %s", buf);
        n += (size_t)r;
        buf[n] = 0;
        end = strstr(buf, "\r\n\r\n");
        if (!end) continue;
        const char *length = strstr(buf, "Content-Length: ");
        if (strncmp(buf, "HTTP/1.1 100", 12) == 0) { /* go on */
            memmove(buf, end + 4, n -= (size_t)(end + 4 - buf));
            buf[n] = 0;
            end = NULL;
            continue;
        }
        assert_non_null(length);
        a.n = (size_t)strtol(length + 16, NULL, 10);
    }
    assert_int_equal(sscanf(buf, "HTTP/1.1 %d", &a.status), 1);
    snprintf(a.head, sizeof a.head, "%.*s", (int)(end - buf), buf);
    memcpy(a.body, end + 4, a.n);
    return a;
}
static answer post(server *v, const char *headers, const void *body, size_t n) {
    int fd = dial(v, 0);
    http_send(fd, headers, body, n);
    answer a = http_read(fd);
    close(fd);
    return a;
}
#define PB_TYPE "Content-Type: application/x-protobuf\r\n"
#define JSON_TYPE "Content-Type: application/json\r\n"

static void expect_answer(const answer *a, int status, const char *type, const char *body) {
    if (a->status != status) fail_msg("%d, not %d: %s", a->status, status, a->body);
    if (type && !strstr(a->head, type)) fail_msg("%s", a->head);
    if (body && (a->n != strlen(body) || memcmp(a->body, body, a->n) != 0)) fail_msg("%s", a->body);
}

static void test_http_good(void **state) {
    (void)state;
    server v = {0};
    fz_buf got = {0};
    server_open(&v, NULL, 0);
    answer a = post(&v, PB_TYPE, PB1);
    expect_answer(&a, 200, "Content-Type: application/x-protobuf", "");
    a = post(&v, JSON_TYPE, JSON1, sizeof JSON1 - 1);
    expect_answer(&a, 200, "Content-Type: application/json", "{\"partialSuccess\":{}}");
    a = post(&v, "Content-Type: Application/JSON; charset=utf-8\r\n", JSON1, sizeof JSON1 - 1);
    expect_answer(&a, 200, NULL, "{\"partialSuccess\":{}}");
    a = post(&v, PB_TYPE, "", 0); /* nothing in it */
    expect_answer(&a, 200, NULL, "");
    a = post(&v, JSON_TYPE, "{}", 2);
    expect_answer(&a, 200, NULL, "{\"partialSuccess\":{}}");
    assert_int_equal(records(&v, 3, &got), 3);
    assert_string_equal(fz_buf_cstr(&got), "\x1a\x03ONE|\x1a\x03ONE|\x1a\x03ONE|");
    /* one of two records is refused */
    a = post(&v, PB_TYPE, pb_mixed, sizeof pb_mixed - 1);
    expect_answer(&a, 200, NULL, "\x0a\x2e\x08\x01\x12\x2alog record 1: trace_id has 3 bytes, not 16");
    assert_int_equal(records(&v, 1, &got), 1);
    expect_none(&v);
    fz_buf_free(&got);
    server_close(&v);
}

static size_t gzip(const void *p, size_t n, uint8_t *out, size_t cap) {
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(6);
    size_t k = libdeflate_gzip_compress(c, p, n, out, cap);
    libdeflate_free_compressor(c);
    assert_true(k > 0);
    return k;
}

static void test_http_encodings(void **state) {
    (void)state;
    server v = {0};
    fz_buf got = {0};
    uint8_t gz[4096], two[4096], zs[256];
    fz_pair limit = {.key = "max-message-size", .value = "1 mb"};
    server_open(&v, &limit, 1);
    size_t n = gzip(JSON1, sizeof JSON1 - 1, gz, sizeof gz), m = gzip(JSON1, 20, two, sizeof two);
    m += gzip(JSON1 + 20, sizeof JSON1 - 1 - 20, two + m, sizeof two - m);
    size_t z = ZSTD_compress(zs, sizeof zs, JSON1, sizeof JSON1 - 1, 1);
    static const char *const good[] = {"gzip", "GZIP", "x-gzip"};
    for (int i = 0; i < 3; i++) {
        char h[128];
        snprintf(h, sizeof h, JSON_TYPE "Content-Encoding: %s\r\n", good[i]);
        answer a = post(&v, h, gz, n);
        expect_answer(&a, 200, NULL, "{\"partialSuccess\":{}}");
    }
    answer a = post(&v, JSON_TYPE "Content-Encoding: gzip\r\n", two, m);
    expect_answer(&a, 200, NULL, "{\"partialSuccess\":{}}");
    a = post(&v, JSON_TYPE "Content-Encoding: identity\r\n", JSON1, sizeof JSON1 - 1);
    expect_answer(&a, 200, NULL, NULL);
    a = post(&v, JSON_TYPE "Content-Encoding: zstd\r\n", zs, z);
    expect_answer(&a, 200, NULL, NULL);
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(6);
    z = libdeflate_zlib_compress(c, JSON1, sizeof JSON1 - 1, zs, sizeof zs);
    libdeflate_free_compressor(c);
    a = post(&v, JSON_TYPE "Content-Encoding: deflate\r\n", zs, z);
    expect_answer(&a, 200, NULL, NULL);
    a = post(&v, JSON_TYPE "Expect: 100-continue\r\n", JSON1, sizeof JSON1 - 1);
    expect_answer(&a, 200, NULL, NULL);
    assert_int_equal(records(&v, 8, &got), 8);
    static const char *const unknown[] = {"br", "gzip, gzip", "snappy"};
    for (int i = 0; i < 3; i++) {
        char h[128];
        snprintf(h, sizeof h, JSON_TYPE "Content-Encoding: %s\r\n", unknown[i]);
        a = post(&v, h, gz, n);
        expect_answer(&a, 415, "Accept-Encoding: gzip", NULL);
        assert_non_null(strstr(a.body, "{\"code\":3,\"message\":\"the encoding '"));
    }
    a = post(&v, JSON_TYPE "Content-Encoding: gzip\r\n", JSON1, sizeof JSON1 - 1); /* it says so, and is not */
    expect_answer(&a, 400, "application/json", NULL);
    a = post(&v, PB_TYPE "Content-Encoding: gzip\r\n", gz, n - 9); /* cut off */
    expect_answer(&a, 400, "application/x-protobuf", NULL);
    assert_memory_equal(a.body, "\x08\x03\x12", 3); /* Status: INVALID_ARGUMENT, a message */
    static uint8_t zeros[10 << 20], bomb[32 << 10];
    size_t k = gzip(zeros, sizeof zeros, bomb, sizeof bomb);
    a = post(&v, JSON_TYPE "Content-Encoding: gzip\r\n", bomb, k);
    expect_answer(&a, 413, "application/json", NULL);
    assert_non_null(strstr(a.body, "\"code\":8"));
    a = post(&v, PB_TYPE, zeros, 2 << 20); /* larger as it comes */
    expect_answer(&a, 413, "Content-Type: application/x-protobuf", "\x08\x08\x12\x15the body is too large"); /* Status: RESOURCE_EXHAUSTED, a message */
    a = post(&v, JSON_TYPE, zeros, 2 << 20);
    expect_answer(&a, 413, "Content-Type: application/json", "{\"code\":8,\"message\":\"the body is too large\"}");
    expect_none(&v);
    fz_buf_free(&got);
    server_close(&v);
}

static answer raw(server *v, const char *request) {
    int fd = dial(v, 0);
    assert_true(send(fd, request, strlen(request), MSG_NOSIGNAL) > 0);
    answer a = http_read(fd);
    close(fd);
    return a;
}

static void test_http_refused(void **state) {
    (void)state;
    server v = {0};
    server_open(&v, NULL, 0);
    answer a = post(&v, PB_TYPE, "\x0a\x05", 2);
    expect_answer(&a, 400, "application/x-protobuf", NULL);
    a = post(&v, PB_TYPE, JSON1, sizeof JSON1 - 1);
    expect_answer(&a, 400, "application/x-protobuf", NULL);
    a = post(&v, JSON_TYPE, PB1);
    expect_answer(&a, 400, "application/json", NULL);
    a = post(&v, JSON_TYPE, "", 0);
    expect_answer(&a, 400, "application/json", NULL);
    static const char bad_time[] = "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{\"timeUnixNano\":{\"low\":1,\"high\":2}}]}]}]}";
    a = post(&v, JSON_TYPE, bad_time, sizeof bad_time - 1);
    expect_answer(&a, 400, "application/json", "{\"code\":3,\"message\":\"resourceLogs[0].scopeLogs[0].logRecords[0].timeUnixNano: a number, or a text of digits, is wanted\"}");
    a = post(&v, "Content-Type: text/plain\r\n", JSON1, sizeof JSON1 - 1);
    expect_answer(&a, 415, NULL, NULL);
    a = post(&v, "", JSON1, sizeof JSON1 - 1);
    expect_answer(&a, 415, NULL, NULL);
    a = post(&v, JSON_TYPE "Origin: http://evil.example\r\n", JSON1, sizeof JSON1 - 1);
    expect_answer(&a, 403, NULL, NULL);
    a = raw(&v, "POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n");
    expect_answer(&a, 404, "application/x-protobuf", NULL);
    a = raw(&v, "PUT /v1/logs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 0\r\n\r\n");
    expect_answer(&a, 405, "Allow: POST", NULL);
    expect_none(&v);
    server_close(&v);
}

static void test_token(void **state) {
    (void)state;
    server v = {0};
    fz_buf got = {0};
    fz_pair o[] = {{.key = "auth", .value = "token"}, {.key = "token", .value = "s3cret"}};
    server_open(&v, o, 2);
    answer a = post(&v, PB_TYPE, PB1);
    expect_answer(&a, 401, "WWW-Authenticate: Bearer", NULL);
    a = post(&v, PB_TYPE "Authorization: Bearer s3cre\r\n", PB1);
    expect_answer(&a, 401, NULL, NULL);
    a = post(&v, PB_TYPE "Authorization: Basic s3cret\r\n", PB1);
    expect_answer(&a, 401, NULL, NULL);
    a = post(&v, PB_TYPE "authorization: bearer s3cret\r\nOrigin: http://page\r\n", PB1);
    expect_answer(&a, 200, NULL, NULL);
    assert_int_equal(records(&v, 1, &got), 1);
    expect_none(&v);
    fz_buf_free(&got);
    server_close(&v);
}

static void test_full_spool(void **state) {
    (void)state;
    server v = {0};
    fz_pair o[] = {{.key = "spool.max-size", .value = "1 mb"}};
    server_open(&v, o, 1);
    fz_buf big = {0};
    size_t r = pb_begin(&big, 1), s = pb_begin(&big, 2), l = pb_begin(&big, 2);
    static char text[300 << 10];
    for (size_t i = 0; i < sizeof text; i++) text[i] = (char)('a' + i * 7919 % 26);
    pb_put_bytes(&big, 3, text, sizeof text);
    pb_end(&big, l), pb_end(&big, s), pb_end(&big, r);
    int taken = 0;
    answer a;
    for (; taken < 10; taken++) {
        a = post(&v, PB_TYPE, big.data, big.len);
        if (a.status != 200) break;
    }
    assert_in_range(taken, 1, 4);
    expect_answer(&a, 503, "Retry-After: ", NULL);
    assert_memory_equal(a.body, "\x08\x0e\x12", 3); /* UNAVAILABLE */
    a = post(&v, PB_TYPE, "", 0); /* an empty one too: is there room? */
    expect_answer(&a, 503, NULL, NULL);
    assert_int_equal(v.o->stats.records, taken);
    fz_buf_free(&big);
    server_close(&v);
}

/* ---- gRPC ---- */

typedef struct rpc { int32_t stream; int http, status; char message[256], details[256]; uint8_t body[512]; size_t n; bool closed, hang; uint32_t reset; const uint8_t *send; size_t n_send; } rpc;
typedef struct peer { int fd; nghttp2_session *s; rpc *calls; size_t n_calls; bool goaway, closed; } peer;

static rpc *find(peer *p, int32_t stream) {
    for (size_t i = 0; i < p->n_calls; i++)
        if (p->calls[i].stream == stream) return &p->calls[i];
    return NULL;
}
static int c_header(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *k, size_t nk, const uint8_t *v, size_t nv, uint8_t flags, void *cx) {
    (void)s; (void)flags;
    rpc *r = find(cx, f->hd.stream_id);
    if (!r) return 0;
    if (nk == 7 && memcmp(k, ":status", 7) == 0) r->http = (int)strtol((const char *)v, NULL, 10);
    if (nk == 11 && memcmp(k, "grpc-status", 11) == 0) r->status = (int)strtol((const char *)v, NULL, 10);
    if (nk == 12 && memcmp(k, "grpc-message", 12) == 0) snprintf(r->message, sizeof r->message, "%.*s", (int)nv, (const char *)v);
    if (nk == 23 && memcmp(k, "grpc-status-details-bin", 23) == 0) snprintf(r->details, sizeof r->details, "%.*s", (int)nv, (const char *)v);
    return 0;
}
static int c_data(nghttp2_session *s, uint8_t flags, int32_t stream, const uint8_t *p, size_t n, void *cx) {
    (void)s; (void)flags;
    rpc *r = find(cx, stream);
    assert_true(r->n + n <= sizeof r->body);
    memcpy(r->body + r->n, p, n);
    r->n += n;
    return 0;
}
static int c_close(nghttp2_session *s, int32_t stream, uint32_t code, void *cx) {
    (void)s;
    rpc *r = find(cx, stream);
    if (r) r->closed = true, r->reset = code;
    return 0;
}
static int c_frame(nghttp2_session *s, const nghttp2_frame *f, void *cx) {
    (void)s;
    if (f->hd.type == NGHTTP2_GOAWAY) ((peer *)cx)->goaway = true;
    return 0;
}
static ssize_t c_read(nghttp2_session *s, int32_t stream, uint8_t *buf, size_t length, uint32_t *flags, nghttp2_data_source *src, void *cx) {
    (void)s; (void)stream; (void)cx;
    rpc *r = src->ptr;
    size_t n = r->n_send < length ? r->n_send : length;
    if (!n && r->hang) return NGHTTP2_ERR_DEFERRED;
    if (n) memcpy(buf, r->send, n);
    r->send += n;
    r->n_send -= n;
    if (!r->n_send && !r->hang) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

static void peer_open(peer *p, const server *v, rpc *calls) {
    nghttp2_session_callbacks *cb;
    *p = (peer){.fd = dial(v, 1), .calls = calls};
    nghttp2_session_callbacks_new(&cb);
    nghttp2_session_callbacks_set_on_header_callback(cb, c_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, c_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, c_close);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, c_frame);
    nghttp2_session_client_new(&p->s, cb, p);
    nghttp2_session_callbacks_del(cb);
    nghttp2_submit_settings(p->s, 0, NULL, 0);
}
static void peer_close(peer *p) {
    nghttp2_session_del(p->s);
    close(p->fd);
}
#define H(n, x) {(uint8_t *)(uintptr_t)(n), (uint8_t *)(uintptr_t)(x), sizeof(n) - 1, strlen(x), 0}
#define EXPORT "/opentelemetry.proto.collector.logs.v1.LogsService/Export"

/* body: the whole of what is sent, with the five bytes before a message. */
static rpc *start(peer *p, const char *path, const char *type, const char *coding, const char *authorization, const void *body, size_t n) {
    rpc *r = &p->calls[p->n_calls++];
    *r = (rpc){.status = -1, .send = body, .n_send = n};
    nghttp2_nv h[] = {H(":method", "POST"), H(":scheme", "http"), H(":path", path), H(":authority", "x"), H("content-type", type), H("te", "trailers"), H("grpc-encoding", coding), H("authorization", authorization)};
    nghttp2_data_provider d = {.source = {.ptr = r}, .read_callback = c_read};
    r->stream = nghttp2_submit_request(p->s, NULL, h, authorization[0] ? 8 : 7, &d, NULL);
    assert_true(r->stream > 0);
    return r;
}
static void pump(peer *p) {
    const uint8_t *out;
    ssize_t n;
    while ((n = nghttp2_session_mem_send(p->s, &out)) > 0)
        for (ssize_t at = 0; at < n;) {
            ssize_t w = send(p->fd, out + at, (size_t)(n - at), MSG_NOSIGNAL);
            if (w <= 0) return;
            at += w;
        }
    struct pollfd pf = {.fd = p->fd, .events = POLLIN};
    uint8_t buf[65536];
    if (poll(&pf, 1, 10000) != 1) fail_msg("the server says nothing");
    ssize_t k = recv(p->fd, buf, sizeof buf, 0);
    if (k <= 0) p->closed = true;
    else assert_int_equal(nghttp2_session_mem_recv(p->s, buf, (size_t)k), k);
}
static void finish(peer *p, rpc *r) {
    while (!r->closed && !p->closed) pump(p);
}
static size_t framed(uint8_t *out, const void *p, size_t n, bool packed) {
    out[0] = packed;
    for (int i = 0; i < 4; i++) out[1 + i] = (uint8_t)(n >> (24 - 8 * i));
    memcpy(out + 5, p, n);
    return n + 5;
}
static rpc once(server *v, const char *path, const char *type, const char *coding, const char *auth, const void *body, size_t n) {
    peer p;
    rpc calls[1];
    peer_open(&p, v, calls);
    finish(&p, start(&p, path, type, coding, auth, body, n));
    assert_true(calls[0].closed);
    peer_close(&p);
    return calls[0];
}

static void test_grpc_good(void **state) {
    (void)state;
    server v = {0};
    fz_buf got = {0};
    uint8_t b[512], gz[256];
    peer p;
    rpc calls[300];
    server_open(&v, NULL, 0);
    peer_open(&p, &v, calls);
    size_t n = framed(b, PB1, false);
    rpc *r = start(&p, EXPORT, "application/grpc", "identity", "", b, n);
    finish(&p, r);
    assert_int_equal(r->http, 200);
    assert_int_equal(r->status, 0);
    assert_int_equal(r->n, 5);
    assert_memory_equal(r->body, "\0\0\0\0\0", 5);
    size_t k = gzip(PB1, gz, sizeof gz);
    n = framed(b, gz, k, true);
    finish(&p, r = start(&p, EXPORT, "application/grpc+proto", "gzip", "", b, n));
    assert_int_equal(r->status, 0);
    n = framed(b, "", 0, false);
    finish(&p, r = start(&p, EXPORT, "application/grpc;x", "gzip", "", b, n)); /* an encoding is named, and not used */
    assert_int_equal(r->status, 0);
    n = framed(b, pb_mixed, sizeof pb_mixed - 1, false);
    finish(&p, r = start(&p, EXPORT, "application/grpc", "identity", "", b, n));
    assert_int_equal(r->status, 0);
    assert_non_null(memmem(r->body, r->n, "log record 1: trace_id has 3 bytes, not 16", 42));
    n = framed(b, PB1, false); /* many at a time */
    size_t from = p.n_calls;
    for (int i = 0; i < 200; i++) start(&p, EXPORT, "application/grpc", "identity", "", b, n);
    for (size_t i = from; i < p.n_calls; i++) {
        finish(&p, &calls[i]);
        assert_int_equal(calls[i].status, 0);
    }
    assert_int_equal(records(&v, 203, &got), 203);
    expect_none(&v);
    peer_close(&p);
    fz_buf_free(&got);
    server_close(&v);
}

static void test_grpc_refused(void **state) {
    (void)state;
    server v = {0};
    fz_pair limit[] = {{.key = "max-message-size", .value = "1 mb"}};
    server_open(&v, limit, 1);
    uint8_t b[512];
    size_t n = framed(b, PB1, false);
    rpc r = once(&v, "/opentelemetry.proto.collector.trace.v1.TraceService/Export", "application/grpc", "identity", "", b, n);
    assert_int_equal(r.status, GRPC_UNIMPLEMENTED);
    r = once(&v, EXPORT, "application/json", "identity", "", b, n);
    assert_int_equal(r.http, 415);
    r = once(&v, EXPORT, "application/grpc", "identity", "", b, 3);
    assert_int_equal(r.status, GRPC_INTERNAL);
    r = once(&v, EXPORT, "application/grpc", "identity", "", b, n - 1);
    assert_int_equal(r.status, GRPC_INTERNAL);
    memcpy(b + n, b, n);
    r = once(&v, EXPORT, "application/grpc", "identity", "", b, 2 * n);
    assert_int_equal(r.status, GRPC_INTERNAL);
    b[0] = 1;
    r = once(&v, EXPORT, "application/grpc", "identity", "", b, n);
    assert_int_equal(r.status, GRPC_INTERNAL);
    r = once(&v, EXPORT, "application/grpc", "br", "", b, n);
    assert_int_equal(r.status, GRPC_UNIMPLEMENTED);
    assert_non_null(strstr(r.message, "the encoding 'br' is not known"));
    r = once(&v, EXPORT, "application/grpc", "gzip", "", b, n);
    assert_int_equal(r.status, GRPC_INVALID_ARGUMENT);
    b[0] = 2;
    r = once(&v, EXPORT, "application/grpc", "gzip", "", b, n);
    assert_int_equal(r.status, GRPC_INTERNAL);
    n = framed(b, "\x0a\x05", 2, false);
    r = once(&v, EXPORT, "application/grpc", "identity", "", b, n);
    assert_int_equal(r.status, GRPC_INVALID_ARGUMENT);
    static uint8_t big[3 << 20], zeros[3 << 20], gz[64 << 10];
    n = framed(big, zeros, (1 << 20) + 1, false);
    r = once(&v, EXPORT, "application/grpc", "identity", "", big, n); /* announced too large */
    assert_int_equal(r.status, GRPC_RESOURCE_EXHAUSTED);
    assert_string_equal(r.details, "");
    size_t k = gzip(zeros, sizeof zeros, gz, sizeof gz);
    n = framed(big, gz, k, true);
    r = once(&v, EXPORT, "application/grpc", "gzip", "", big, n); /* a bomb */
    assert_int_equal(r.status, GRPC_RESOURCE_EXHAUSTED);
    n = framed(big, zeros, 100, false);
    r = once(&v, EXPORT, "application/grpc", "identity", "", big, 3 << 20); /* more than announced, without end */
    assert_int_equal(r.status, GRPC_INTERNAL);
    expect_none(&v);
    server_close(&v);
}

static void test_grpc_token(void **state) {
    (void)state;
    server v = {0};
    fz_buf got = {0};
    uint8_t b[512];
    size_t n = framed(b, PB1, false);
    fz_pair o[] = {{.key = "auth", .value = "token"}, {.key = "token", .value = "s3cret"}};
    server_open(&v, o, 2);
    rpc r = once(&v, EXPORT, "application/grpc", "identity", "", b, n);
    assert_int_equal(r.status, GRPC_UNAUTHENTICATED);
    r = once(&v, EXPORT, "application/grpc", "identity", "Bearer other", b, n);
    assert_int_equal(r.status, GRPC_UNAUTHENTICATED);
    r = once(&v, EXPORT, "application/grpc", "identity", "Bearer s3cret", b, n);
    assert_int_equal(r.status, 0);
    assert_int_equal(records(&v, 1, &got), 1);
    fz_buf_free(&got);
    server_close(&v);
}

/* A message larger than the windows; and several that are being sent at a time. */
static void test_grpc_large(void **state) {
    (void)state;
    server v = {0};
    fz_buf got = {0}, m = {0}, body = {0};
    peer p;
    rpc calls[8];
    server_open(&v, NULL, 0);
    static char text[3 << 20];
    memset(text, 'x', sizeof text);
    size_t r = pb_begin(&m, 1), s = pb_begin(&m, 2), l = pb_begin(&m, 2);
    pb_put_bytes(&m, 3, text, sizeof text);
    pb_end(&m, l), pb_end(&m, s), pb_end(&m, r);
    fz_buf_reserve(&body, m.len + 5);
    size_t n = framed(body.data, m.data, m.len, false);
    peer_open(&p, &v, calls);
    for (int i = 0; i < 3; i++) start(&p, EXPORT, "application/grpc", "identity", "", body.data, n);
    for (int i = 0; i < 3; i++) {
        finish(&p, &calls[i]);
        if (calls[i].status != 0) fail_msg("%d %s", calls[i].status, calls[i].message);
    }
    assert_int_equal(records(&v, 3, &got), 3);
    assert_true(got.len > 9 << 20);
    peer_close(&p);
    fz_buf_free(&got), fz_buf_free(&m), fz_buf_free(&body);
    server_close(&v);
}

static void test_grpc_full_spool(void **state) {
    (void)state;
    server v = {0};
    fz_pair o[] = {{.key = "spool.max-size", .value = "1 mb"}};
    server_open(&v, o, 1);
    fz_buf big = {0}, body = {0};
    static char text[300 << 10];
    for (size_t i = 0; i < sizeof text; i++) text[i] = (char)('a' + i * 7919 % 26);
    size_t r = pb_begin(&big, 1), s = pb_begin(&big, 2), l = pb_begin(&big, 2);
    pb_put_bytes(&big, 3, text, sizeof text);
    pb_end(&big, l), pb_end(&big, s), pb_end(&big, r);
    fz_buf_reserve(&body, big.len + 5);
    size_t n = framed(body.data, big.data, big.len, false);
    rpc c = {0};
    for (int i = 0; i < 10; i++) {
        c = once(&v, EXPORT, "application/grpc", "identity", "", body.data, n);
        if (c.status) break;
    }
    assert_int_equal(c.status, GRPC_UNAVAILABLE);
    assert_non_null(strstr(c.details, "dHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mb")); /* type.googleapis.com/google.rpc.RetryInfo, at this place */
    fz_buf_free(&big), fz_buf_free(&body);
    server_close(&v);
}

/* The listener ends: GOAWAY, and the connection with it; what speaks no HTTP/2 is closed. */
static void test_grpc_end(void **state) {
    (void)state;
    server v = {0};
    uint8_t b[512];
    peer p;
    rpc calls[2];
    server_open(&v, NULL, 0);
    peer_open(&p, &v, calls);
    size_t n = framed(b, PB1, false);
    rpc *r = start(&p, EXPORT, "application/grpc", "identity", "", b, n);
    finish(&p, r);
    nghttp2_submit_ping(p.s, 0, (const uint8_t *)"12345678");
    net_listener_stop(v.o->s.listeners[1]);
    while (!p.closed) pump(&p);
    assert_true(p.goaway);
    peer_close(&p);
    server_close(&v);
    v = (server){0}; /* and so when the source ends, which answers what it has taken first */
    server_open(&v, NULL, 0);
    peer_open(&p, &v, calls);
    finish(&p, start(&p, EXPORT, "application/grpc", "identity", "", b, n));
    src_close(v.s);
    while (!p.closed) pump(&p);
    assert_true(p.goaway);
    peer_close(&p);
    server_remove(&v);
    v = (server){0};
    server_open(&v, NULL, 0);
    int fd = dial(&v, 1);
    static const char http1[] = "POST /v1/logs HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n";
    assert_true(send(fd, http1, sizeof http1 - 1, MSG_NOSIGNAL) > 0);
    char buf[256];
    ssize_t k;
    while ((k = recv(fd, buf, sizeof buf, 0)) > 0) continue;
    assert_true(k <= 0);
    close(fd);
    /* a peer that goes away while its records are on their way to the disk */
    for (int i = 0; i < 20; i++) {
        peer_open(&p, &v, calls);
        start(&p, EXPORT, "application/grpc", "identity", "", b, n);
        const uint8_t *out;
        ssize_t m;
        while ((m = nghttp2_session_mem_send(p.s, &out)) > 0) assert_true(send(p.fd, out, (size_t)m, MSG_NOSIGNAL) == m);
        peer_close(&p);
    }
    rpc last = once(&v, EXPORT, "application/grpc", "identity", "", b, n);
    assert_int_equal(last.status, 0);
    server_close(&v);
}

/* Peers that begin and do not go on: without a preface, with half a message, between two messages. */
static void test_grpc_slow(void **state) {
    (void)state;
    server v = {0};
    uint8_t b[512];
    peer p;
    rpc calls[2];
    size_t n = framed(b, PB1, false);
    fz_pair o[] = {{.key = "message-timeout", .value = "200 ms"}, {.key = "idle-timeout", .value = "400 ms"}};
    server_open(&v, o, 2);
    int fd = dial(&v, 1);
    char buf[256];
    while (recv(fd, buf, sizeof buf, 0) > 0) continue;
    close(fd);
    peer_open(&p, &v, calls);
    start(&p, EXPORT, "application/grpc", "identity", "", b, n - 3)->hang = true;
    while (!p.closed) pump(&p);
    assert_true(p.goaway);
    peer_close(&p);
    peer_open(&p, &v, calls);
    rpc *r = start(&p, EXPORT, "application/grpc", "identity", "", b, n);
    finish(&p, r);
    assert_int_equal(r->status, 0);
    while (!p.closed) pump(&p);
    assert_true(p.goaway);
    peer_close(&p);
    assert_int_equal(net_listener_stats(v.o->s.listeners[1]).timed_out, 3);
    server_close(&v);
}

static void test_options(void **state) {
    (void)state;
    static const struct { fz_pair o[3]; size_t n; const char *code; } bad[] = {
        {{{.key = "listen", .value = "0.0.0.0:0"}}, 1, "listen.open"}, {{{.key = "listen", .value = "127.0.0.1:0"}, {.key = "grpc.listen", .value = "0.0.0.0:0"}}, 2, "listen.open"},
        {{{.key = "listen", .value = "127.0.0.1:0"}, {.key = "auth", .value = "token"}}, 2, "option.missing"}, {{{.key = "listen", .value = "127.0.0.1:0"}, {.key = "token", .value = "x"}}, 2, "option.conflict"},
        {{{.key = "listen", .value = "127.0.0.1:0"}, {.key = "tls.cert", .value = "x"}}, 2, "option.conflict"}, {{{.key = "listen", .value = "127.0.0.1:0"}, {.key = "grpc.port", .value = "x"}}, 2, "option.unknown"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        server v = {0};
        fz_error err = {0};
        if (try_open(&v, bad[i].o, bad[i].n, &err) != FZ_USER) fail_msg("%zu is taken", i);
        assert_string_equal(err.code, bad[i].code);
        server_remove(&v);
    }
    fz_pair none[] = {{.key = "connector", .value = "otlp"}};
    fz_error err;
    assert_int_equal(src_check(none, 1, "t", &err), FZ_USER);
    assert_string_equal(err.code, "option.missing");
    server v = {0};
    fz_pair grpc_only[] = {{.key = "grpc.listen", .value = "127.0.0.1:0"}};
    server_open(&v, grpc_only, 1);
    server_close(&v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_http_good), cmocka_unit_test(test_http_encodings), cmocka_unit_test(test_http_refused), cmocka_unit_test(test_token), cmocka_unit_test(test_full_spool), cmocka_unit_test(test_grpc_good),
        cmocka_unit_test(test_grpc_refused), cmocka_unit_test(test_grpc_token), cmocka_unit_test(test_grpc_large), cmocka_unit_test(test_grpc_full_spool), cmocka_unit_test(test_grpc_end), cmocka_unit_test(test_grpc_slow), cmocka_unit_test(test_options)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
