/* One exchange: what goes onto the wire, what comes back, and what is known when it fails. */
#include "unit.h"
#include "http_fake.h"
#include "net/net.h"
#include <fcntl.h>

static char the_url[4096];
static fz_error err;

static fz_status ask(http_fake *f, const char *method, const char *path, net_request *rq, net_answer *out) {
    snprintf(the_url, sizeof the_url, "%s%s", http_fake_url(f), path);
    rq->method = method;
    rq->url = the_url;
    memset(&err, 0, sizeof err);
    return net_exchange(rq, out, &err);
}

/* One exchange against one scripted server, for what is over after it. */
static fz_status once(const http_reply *r, net_request *rq, net_answer *out, size_t *seen) {
    http_fake *f = http_fake_start(r, 1);
    fz_status st = ask(f, rq->method ? rq->method : "GET", "/x", rq, out);
    if (seen) *seen = http_fake_count(f);
    http_fake_stop(f);
    return st;
}

static void test_get(void **state) {
    (void)state;
    http_fake *f = http_fake_start((http_reply[]){{.body = "hello", .headers = "ETag: \"x\"\r\nX-Two:  a b \r\n"}}, 1);
    net_request rq = {.headers = (net_header[]){{"X-A", "1"}, {"X-Empty", ""}, {"Content-Length", "77"}}, .n_headers = 3};
    net_answer an;
    assert_int_equal(ask(f, "GET", "/a//b/../c%20d/%2F=+*~!'()&;@:$,[]?q=%26&b=&c=1+2//..", &rq, &an), FZ_OK);
    assert_int_equal(an.status, 200);
    assert_int_equal(an.body.len, 5);
    assert_memory_equal(an.body.data, "hello", 5);
    assert_string_equal(net_answer_header(&an, "etag"), "\"x\"");
    assert_string_equal(net_answer_header(&an, "X-TWO"), "a b");
    assert_null(net_answer_header(&an, "nothing"));
    const http_seen *s = http_fake_seen(f, 0);
    assert_string_equal(s->target, "/a//b/../c%20d/%2F=+*~!'()&;@:$,[]?q=%26&b=&c=1+2//..");
    char want[256];
    snprintf(want, sizeof want, "\r\nHost: 127.0.0.1:%d\r\nX-A: 1\r\nX-Empty:\r\nUser-Agent: frazil/" FRAZIL_VERSION "\r\n\r\n", f->port);
    assert_string_equal(strstr(s->head, "\r\n"), want);
    net_answer_free(&an);
    http_fake_stop(f);
}

/* Method, headers and body of each kind of request, as they stand on the wire. */
static void test_methods(void **state) {
    (void)state;
    http_fake *f = http_fake_start(NULL, 0);
    static const struct { const char *method, *body, *length; } cases[] = {
        {"PUT", "", "0"}, {"PUT", "abc", "3"}, {"POST", "", "0"}, {"POST", "a=b", "3"}, {"PATCH", "{}", "2"}, {"DELETE", "", NULL}, {"DELETE", "zz", "2"}, {"GET", "", NULL}, {"HEAD", "", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        net_request rq = {.body = {.p = cases[i].body, .n = strlen(cases[i].body)}, .repeatable = i % 2};
        net_answer an;
        char v[64];
        assert_int_equal(ask(f, cases[i].method, "/m", &rq, &an), FZ_OK);
        const http_seen *s = http_fake_seen(f, i);
        assert_string_equal(s->method, cases[i].method);
        assert_string_equal(s->body, cases[i].body);
        assert_int_equal(http_fake_header(s, "content-length", v, sizeof v), cases[i].length != NULL);
        if (cases[i].length) assert_string_equal(v, cases[i].length);
        static const char *const absent[] = {"accept", "expect", "content-type", "transfer-encoding", "keep-alive", "connection"};
        for (size_t k = 0; k < sizeof absent / sizeof *absent; k++) assert_false(http_fake_header(s, absent[k], v, sizeof v));
        net_answer_free(&an);
    }
    http_fake_stop(f);
}

static void test_own_host_and_agent(void **state) {
    (void)state;
    http_fake *f = http_fake_start(NULL, 0);
    net_request rq = {.headers = (net_header[]){{"Host", "bucket.s3"}, {"User-Agent", "other"}, {"Accept", "x/y"}}, .n_headers = 3};
    net_answer an;
    assert_int_equal(ask(f, "GET", "?q", &rq, &an), FZ_OK);
    const http_seen *s = http_fake_seen(f, 0);
    assert_string_equal(s->target, "/?q");
    assert_string_equal(strstr(s->head, "\r\n"), "\r\nHost: bucket.s3\r\nUser-Agent: other\r\nAccept: x/y\r\n\r\n");
    net_answer_free(&an);
    http_fake_stop(f);
}

static void test_body_of_file(void **state) {
    (void)state;
    char path[] = "/tmp/net-body-XXXXXX";
    int fd = mkstemp(path);
    unlink(path);
    size_t n = 700000;
    char *data = fz_malloc(n);
    for (size_t i = 0; i < n; i++) data[i] = (char)(i * 31 >> 3);
    assert_int_equal(write(fd, data, n), (ssize_t)n);
    http_fake *f = http_fake_start(NULL, 0);
    net_request rq = {.body = {.n = 600001, .fd = fd, .from = 1234}};
    net_answer an;
    assert_int_equal(ask(f, "PUT", "/f", &rq, &an), FZ_OK);
    assert_int_equal(http_fake_seen(f, 0)->n_body, 600001);
    assert_memory_equal(http_fake_seen(f, 0)->body, data + 1234, 600001);
    net_answer_free(&an);
    rq.body.n = n; /* reaches behind the end */
    assert_int_equal(ask(f, "PUT", "/f", &rq, &an), FZ_FATAL);
    assert_string_equal(err.code, "net.body");
    net_answer_free(&an);
    http_fake_stop(f);
    fz_free(data);
    close(fd);
}

static void test_connections(void **state) {
    (void)state;
    http_fake *f = http_fake_start(NULL, 0);
    for (int i = 0; i < 6; i++) {
        net_request rq = {.repeatable = i < 3};
        net_answer an;
        assert_int_equal(ask(f, "GET", "/c", &rq, &an), FZ_OK);
        assert_false(an.resent);
        net_answer_free(&an);
    }
    /* Repeatable ones share a connection; each of the others has one of its own. */
    static const int want[] = {0, 0, 0, 1, 2, 3};
    for (size_t i = 0; i < 6; i++) assert_int_equal(http_fake_seen(f, i)->connection, want[i]);
    http_fake_stop(f);
}

/* The server takes the request, acts, and closes: over a connection that served before, and over a new one. */
static void test_never_twice(void **state) {
    (void)state;
    for (int reset = 0; reset < 2; reset++) {
        http_fake *f = http_fake_start((http_reply[]){{.body = "warm"}, {.close_before = !reset, .reset = reset}, {.body = "second time"}}, 3);
        net_request warm = {.repeatable = true}, commit = {.body = {.p = "commit", .n = 6}};
        net_answer an;
        assert_int_equal(ask(f, "GET", "/", &warm, &an), FZ_OK);
        net_answer_free(&an);
        assert_int_equal(ask(f, "POST", "/commit", &commit, &an), FZ_UNKNOWN);
        assert_string_equal(err.code, "net.no-answer");
        assert_int_equal(an.status, 0);
        assert_int_equal(http_fake_count(f), 2);
        net_answer_free(&an);
        http_fake_stop(f);
    }
}

/* The same for a repeatable request: sent again with its whole body, and the answer says so. */
static void test_repeatable_again(void **state) {
    (void)state;
    size_t n = 300000;
    char *data = fz_malloc(n);
    for (size_t i = 0; i < n; i++) data[i] = (char)('a' + i % 23);
    http_fake *f = http_fake_start((http_reply[]){{.body = "warm"}, {.close_before = true}, {.body = "again"}}, 3);
    net_request warm = {.repeatable = true}, put = {.body = {.p = data, .n = n}, .repeatable = true};
    net_answer an;
    assert_int_equal(ask(f, "GET", "/", &warm, &an), FZ_OK);
    net_answer_free(&an);
    assert_int_equal(ask(f, "PUT", "/p", &put, &an), FZ_OK);
    assert_true(an.resent);
    assert_memory_equal(an.body.data, "again", 5);
    assert_int_equal(http_fake_count(f), 3);
    assert_int_equal(http_fake_seen(f, 2)->n_body, n);
    assert_memory_equal(http_fake_seen(f, 2)->body, data, n);
    assert_int_not_equal(http_fake_seen(f, 2)->connection, http_fake_seen(f, 1)->connection);
    net_answer_free(&an);
    http_fake_stop(f);
    /* Over a new connection not even a repeatable one is sent twice by the transport. */
    size_t seen;
    assert_int_equal(once(&(http_reply){.close_before = true}, &warm, &an, &seen), FZ_UNKNOWN);
    assert_int_equal(seen, 1);
    net_answer_free(&an);
    fz_free(data);
}

static void test_short_answers(void **state) {
    (void)state;
    static const http_reply cases[] = {
        {.body = "0123456789", .cut = true, .cut_at = 4},
        {.body = "0123456789", .cut = true, .cut_at = 0, .status = 409},
        {.raw = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", .close_after = true},
        {.raw = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", .close_after = true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        net_request rq = {0};
        net_answer an;
        assert_int_equal(once(&cases[i], &rq, &an, NULL), FZ_UNKNOWN);
        assert_string_equal(err.code, "net.short-answer");
        assert_int_equal(an.status, i == 1 ? 409 : 200);
        net_answer_free(&an);
    }
    /* Broken heads and things that are not HTTP. */
    static const http_reply strange[] = {{.raw = "HTTP/1.1 200", .close_after = true}, {.raw = "SSH-2.0-OpenSSH\r\n", .close_after = true}, {.raw = "\x15\x03\x01", .close_after = true}};
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
        net_request rq = {0};
        net_answer an;
        assert_int_equal(once(&strange[i], &rq, &an, NULL), FZ_UNKNOWN);
        net_answer_free(&an);
    }
}

static void test_whole_answers(void **state) {
    (void)state;
    static const struct { http_reply r; int status; const char *body; } cases[] = {
        {{.raw = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"}, 200, "hello"},
        {{.raw = "HTTP/1.1 200 OK\r\n\r\nuntil the end", .close_after = true}, 200, "until the end"},
        {{.raw = "HTTP/1.0 200 OK\r\n\r\nold", .close_after = true}, 200, "old"},
        {{.raw = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\nX-Early: 1\r\n\r\nHTTP/1.1 201 Made\r\nContent-Length: 2\r\n\r\nok"}, 201, "ok"},
        {{.status = 204}, 204, ""},
        {{.raw = "HTTP/1.1 304 Same\r\nContent-Length: 10\r\n\r\n"}, 304, ""},
        {{.status = 503, .body = "slow"}, 503, "slow"},
        {{.raw = "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"}, 302, ""},
        {{.raw = "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=x\r\nContent-Length: 1\r\n\r\nx"}, 401, "x"},
        {{.raw = "HTTP/1.1 417 No\r\nContent-Length: 1\r\n\r\nx"}, 417, "x"},
        {{.body = "z", .headers = "Content-Encoding: gzip\r\n"}, 200, "z"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        net_request rq = {.method = "POST", .body = {.p = "body", .n = 4}, .repeatable = i % 2};
        net_answer an;
        size_t seen;
        assert_int_equal(once(&cases[i].r, &rq, &an, &seen), FZ_OK);
        assert_int_equal(seen, 1);
        assert_int_equal(an.status, cases[i].status);
        assert_int_equal(an.body.len, strlen(cases[i].body));
        if (an.body.len) assert_memory_equal(an.body.data, cases[i].body, an.body.len);
        assert_null(net_answer_header(&an, "x-early"));
        net_answer_free(&an);
    }
}

/* HEAD: the length is told, and no body is waited for. */
static void test_head(void **state) {
    (void)state;
    net_request rq = {.method = "HEAD"};
    net_answer an;
    assert_int_equal(once(&(http_reply){.body = "0123456789"}, &rq, &an, NULL), FZ_OK);
    assert_string_equal(net_answer_header(&an, "content-length"), "10");
    assert_int_equal(an.body.len, 0);
    net_answer_free(&an);
}

/* A refusal that comes before the body has been read. */
static void test_early_answer(void **state) {
    (void)state;
    size_t n = 12u << 20;
    char *data = fz_calloc(n, 1);
    net_request rq = {.method = "PUT", .body = {.p = data, .n = n}, .repeatable = true};
    net_answer an;
    /* The server closes with the body unread, so the kernel resets: the answer comes through, or it is said that it may be lost. */
    fz_status st = once(&(http_reply){.status = 403, .headers = "Connection: close\r\n", .body = "<Error/>", .early = true}, &rq, &an, NULL);
    if (st == FZ_OK) assert_int_equal(an.status, 403);
    else {
        assert_int_equal(st, FZ_UNKNOWN);
        assert_true(an.body_cut || an.status == 403);
    }
    net_answer_free(&an);
    /* A reset in the middle of the sending is an unknown outcome, and no SIGPIPE. */
    assert_int_equal(once(&(http_reply){.early = true, .reset = true}, &rq, &an, NULL), FZ_UNKNOWN);
    assert_string_equal(err.code, "net.no-answer");
    assert_true(an.body_cut);
    net_answer_free(&an);
    /* Asked first, the refusal is read before any of the body is sent; and an agreement lets all of it through. */
    rq.expect_continue = true;
    http_fake *f = http_fake_start((http_reply[]){{.status = 403, .body = "no", .early = true}, {.status = 200}}, 2);
    assert_int_equal(ask(f, "PUT", "/x", &rq, &an), FZ_OK);
    assert_int_equal(an.status, 403);
    net_answer_free(&an);
    assert_int_equal(ask(f, "PUT", "/x", &rq, &an), FZ_OK);
    assert_int_equal(an.status, 200);
    assert_int_equal(http_fake_seen(f, 1)->n_body, n);
    char v[32];
    assert_true(http_fake_header(http_fake_seen(f, 1), "expect", v, sizeof v));
    net_answer_free(&an);
    http_fake_stop(f);
    fz_free(data);
}

static void test_into(void **state) {
    (void)state;
    char to[8] = "--------";
    net_request rq = {.into = to, .max_answer = 5};
    net_answer an;
    assert_int_equal(once(&(http_reply){.status = 206, .body = "12345"}, &rq, &an, NULL), FZ_OK);
    assert_int_equal(an.n_into, 5);
    assert_int_equal(an.body.len, 0);
    assert_memory_equal(to, "12345---", 8);
    net_answer_free(&an);
    assert_int_equal(once(&(http_reply){.status = 404, .body = "a longer text of an error"}, &rq, &an, NULL), FZ_OK);
    assert_int_equal(an.n_into, 0);
    assert_int_equal(an.body.len, 25);
    assert_memory_equal(to, "12345---", 8);
    net_answer_free(&an);
    assert_int_equal(once(&(http_reply){.body = "123456"}, &rq, &an, NULL), FZ_FATAL);
    assert_string_equal(err.code, "net.too-large");
    assert_memory_equal(to + 5, "---", 3);
    net_answer_free(&an);
}

static void test_ceilings(void **state) {
    (void)state;
    net_request rq = {.max_answer = 10};
    net_answer an;
    assert_int_equal(once(&(http_reply){.body = "0123456789"}, &rq, &an, NULL), FZ_OK);
    net_answer_free(&an);
    assert_int_equal(once(&(http_reply){.body = "0123456789x"}, &rq, &an, NULL), FZ_FATAL);
    assert_string_equal(err.code, "net.too-large");
    net_answer_free(&an);
    fz_buf b = {0};
    for (int i = 0; i < 6000; i++) fz_buf_printf(&b, "X-Header-%04d: %040d\r\n", i, i);
    assert_int_equal(once(&(http_reply){.headers = fz_buf_cstr(&b)}, &rq, &an, NULL), FZ_FATAL);
    assert_string_equal(err.code, "net.too-large");
    net_answer_free(&an);
    fz_buf_free(&b);
}

static void test_time(void **state) {
    (void)state;
    net_request rq = {.timeout_ms = 100};
    net_answer an;
    assert_int_equal(once(&(http_reply){.delay_ms = 400}, &rq, &an, NULL), FZ_UNKNOWN);
    assert_string_equal(err.code, "net.timeout");
    net_answer_free(&an);
    net_request stall = {.stall_timeout_ms = 100};
    assert_int_equal(once(&(http_reply){.delay_ms = 2500}, &stall, &an, NULL), FZ_UNKNOWN);
    assert_string_equal(err.code, "net.timeout");
    assert_non_null(strstr(err.message, "no byte"));
    net_answer_free(&an);
}

/* Nothing was sent: RETRY, each with its own code. */
static void test_nothing_sent(void **state) {
    (void)state;
    int s = socket(AF_INET, SOCK_STREAM, 0); /* bound, not listening: refuses */
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    assert_int_equal(bind(s, (struct sockaddr *)&a, sizeof a) | getsockname(s, (struct sockaddr *)&a, &len), 0);
    snprintf(the_url, sizeof the_url, "http://127.0.0.1:%d/p?X-Secret=hidden", ntohs(a.sin_port));
    net_request rq = {.method = "POST", .url = the_url, .proxy = ""};
    net_answer an;
    assert_int_equal(net_exchange(&rq, &an, &err), FZ_RETRY);
    assert_string_equal(err.code, "net.connect");
    assert_non_null(strstr(err.message, "Connection refused"));
    assert_null(strstr(err.message, "hidden"));
    net_answer_free(&an);
    rq.url = "http://name.invalid/p";
    assert_int_equal(net_exchange(&rq, &an, &err), FZ_RETRY);
    assert_string_equal(err.code, "net.resolve");
    net_answer_free(&an);
    char proxy[64];
    snprintf(proxy, sizeof proxy, "http://user:hidden@127.0.0.1:%d", ntohs(a.sin_port));
    rq.proxy = proxy;
    assert_int_equal(net_exchange(&rq, &an, &err), FZ_RETRY);
    assert_null(strstr(err.message, "hidden"));
    net_answer_free(&an);
    rq.proxy = "http://user:hidden@name.invalid:1";
    assert_int_equal(net_exchange(&rq, &an, &err), FZ_RETRY);
    assert_string_equal(err.code, "net.proxy");
    assert_null(strstr(err.message, "hidden"));
    net_answer_free(&an);
    rq.proxy = "strange://user:hidden@x:1";
    assert_int_equal(net_exchange(&rq, &an, &err), FZ_RETRY);
    assert_null(strstr(err.message, "hidden"));
    net_answer_free(&an);
    close(s);
    http_fake *f = http_fake_start(NULL, 0); /* https where http is spoken */
    snprintf(the_url, sizeof the_url, "https://127.0.0.1:%d/", f->port);
    rq = (net_request){.method = "GET", .url = the_url, .proxy = "", .timeout_ms = 3000};
    assert_int_equal(net_exchange(&rq, &an, &err), FZ_RETRY);
    assert_string_equal(err.code, "net.tls");
    net_answer_free(&an);
    http_fake_stop(f);
}

static void test_proxy(void **state) {
    (void)state;
    http_fake *f = http_fake_start((http_reply[]){{.body = "via"}, {.status = 407, .body = "who are you"}}, 2);
    net_request rq = {.method = "GET", .url = "http://10.1.2.3/a//b?c", .proxy = http_fake_url(f)};
    net_answer an;
    assert_int_equal(net_exchange(&rq, &an, &err), FZ_OK);
    assert_memory_equal(an.body.data, "via", 3);
    assert_string_equal(http_fake_seen(f, 0)->target, "http://10.1.2.3/a//b?c");
    net_answer_free(&an);
    rq.url = "https://10.1.2.3/";
    assert_int_equal(net_exchange(&rq, &an, &err), FZ_RETRY);
    assert_string_equal(err.code, "net.proxy");
    assert_string_equal(http_fake_seen(f, 1)->method, "CONNECT");
    assert_int_equal(an.status, 0);
    net_answer_free(&an);
    http_fake_stop(f);
}

static void test_refused_requests(void **state) {
    (void)state;
    static const char *const urls[] = {"", "ftp://h/", "h/p", "http://", "http:///p", "http://h:0/", "http://h:65536/", "http://h:x/", "http://u:hidden@h/", "http://h/a b", "http://h/\xc3\xa9",
                                       "http://h/#f", "http://[::1/", "http://[x]/", "http://h\r\nX: y/", "http://a^b/", "http://h:+1/", "file:///etc/passwd"};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        net_request rq = {.method = "GET", .url = urls[i]};
        net_answer an;
        assert_int_equal(net_exchange(&rq, &an, &err), FZ_USER);
        assert_string_equal(err.code, "net.url");
        assert_null(strstr(err.message, "hidden"));
        net_answer_free(&an);
    }
    static const net_header headers[] = {{"A", "x\r\nB: y"}, {"A b", "x"}, {"", "x"}, {"A:", "x"}, {"Transfer-Encoding", "chunked"}};
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        net_request rq = {.method = "GET", .url = "http://127.0.0.1:1/", .headers = &headers[i], .n_headers = 1};
        net_answer an;
        assert_int_equal(net_exchange(&rq, &an, &err), FZ_USER);
        assert_string_equal(err.code, "net.header");
        net_answer_free(&an);
    }
}

static void test_reach(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    http_fake *f = http_fake_start(NULL, 0);
    const char *address = "";
    assert_int_equal(net_reach(http_fake_url(f), NULL, 2000, a, &address, &err), FZ_OK);
    assert_string_equal(address, "127.0.0.1");
    assert_int_equal(http_fake_count(f), 0);
    snprintf(the_url, sizeof the_url, "%s", http_fake_url(f));
    http_fake_stop(f);
    assert_int_equal(net_reach(the_url, NULL, 2000, a, &address, &err), FZ_RETRY);
    assert_string_equal(err.code, "net.connect");
    fz_arena_free(a);
}

static void test_url_text(void **state) {
    (void)state;
    fz_buf b = {0};
    net_encode(&b, "a-._~/b =+%\xc3\xa9*'()!", 18, true);
    assert_string_equal(fz_buf_cstr(&b), "a-._~/b%20%3D%2B%25%C3%A9%2A%27%28%29%21");
    b.len = 0;
    net_encode(&b, "/", 1, false);
    assert_string_equal(fz_buf_cstr(&b), "%2F");
    b.len = 0;
    assert_true(net_decode(&b, "a%2fb+%C3%A9", 12));
    assert_string_equal(fz_buf_cstr(&b), "a/b+\xc3\xa9");
    static const char *const broken[] = {"%", "%2", "%zz", "a%2x"};
    for (size_t i = 0; i < 4; i++) assert_false(net_decode(&b, broken[i], strlen(broken[i])));
    fz_buf_free(&b);
    fz_arena *a = fz_arena_new();
    net_url u;
    assert_int_equal(net_url_parse("HTTPS://[fe80::1%25eth0]:8443/p//q?x=%3F?", a, &u, NULL), FZ_OK);
    assert_string_equal(u.scheme, "https");
    assert_string_equal(u.host, "fe80::1%25eth0");
    assert_int_equal(u.port, 8443);
    assert_string_equal(u.path, "/p//q");
    assert_string_equal(u.query, "x=%3F?");
    assert_int_equal(net_url_parse("http://my_bucket.s3:", a, &u, NULL), FZ_OK);
    assert_string_equal(u.host, "my_bucket.s3");
    assert_int_equal(u.port, 0);
    assert_string_equal(u.path, "");
    assert_null(u.query);
    fz_arena_free(a);
}

/* Many threads, two servers, connections that end now and then: each gets its own answer. */
typedef struct worker { http_fake *f[2]; int id, failed; } worker;
static void *work(void *cx) {
    worker *w = cx;
    for (int i = 0; i < 40; i++) {
        char url[128], body[32];
        snprintf(url, sizeof url, "%s/%d/%d", http_fake_url(w->f[i % 2]), w->id, i);
        int n = snprintf(body, sizeof body, "b%d-%d", w->id, i);
        net_request rq = {.method = "PUT", .url = url, .body = {.p = body, .n = (size_t)n}, .repeatable = i % 3};
        net_answer an;
        fz_error e;
        fz_status st = net_exchange(&rq, &an, &e);
        if (st != FZ_OK || an.body.len != strlen(url) - strlen(http_fake_url(w->f[i % 2])) || memcmp(an.body.data, strstr(url + 8, "/"), an.body.len)) w->failed++;
        net_answer_free(&an);
    }
    return NULL;
}
static void echo(void *cx, const http_seen *rq, size_t i, http_reply *out) {
    (void)cx;
    out->body = rq->target;
    out->close_after = i % 17 == 0;
}
static void test_threads(void **state) {
    (void)state;
    http_fake *f[2] = {http_fake_start(NULL, 0), http_fake_start(NULL, 0)};
    http_fake_handle(f[0], echo, NULL);
    http_fake_handle(f[1], echo, NULL);
    worker w[8];
    pthread_t t[8];
    for (int i = 0; i < 8; i++) {
        w[i] = (worker){{f[0], f[1]}, i, 0};
        pthread_create(&t[i], NULL, work, &w[i]);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(t[i], NULL);
        assert_int_equal(w[i].failed, 0);
    }
    assert_in_range(http_fake_count(f[0]) + http_fake_count(f[1]), 320, 400);
    http_fake_stop(f[0]);
    http_fake_stop(f[1]);
}

/* More at a time than there are handles: the rest waits for its turn. */
static void *wait_and_ask(void *cx) {
    http_fake *f = cx;
    net_request rq = {.method = "GET", .url = http_fake_url(f)};
    net_answer an;
    fz_error e;
    fz_status st = net_exchange(&rq, &an, &e);
    net_answer_free(&an);
    return st == FZ_OK ? NULL : cx;
}
static void test_more_than_handles(void **state) {
    (void)state;
    http_fake *f = http_fake_start(&(http_reply){.delay_ms = 30}, 1);
    pthread_t t[80];
    for (int i = 0; i < 80; i++) pthread_create(&t[i], NULL, wait_and_ask, f);
    for (int i = 0; i < 80; i++) {
        void *failed;
        pthread_join(t[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(http_fake_count(f), 80);
    http_fake_stop(f);
}

int main(void) {
    static const char *const env[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"};
    for (size_t i = 0; i < sizeof env / sizeof *env; i++) unsetenv(env[i]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_get), cmocka_unit_test(test_methods), cmocka_unit_test(test_own_host_and_agent), cmocka_unit_test(test_body_of_file),
        cmocka_unit_test(test_connections), cmocka_unit_test(test_never_twice), cmocka_unit_test(test_repeatable_again), cmocka_unit_test(test_short_answers),
        cmocka_unit_test(test_whole_answers), cmocka_unit_test(test_head), cmocka_unit_test(test_early_answer), cmocka_unit_test(test_into), cmocka_unit_test(test_ceilings),
        cmocka_unit_test(test_time), cmocka_unit_test(test_nothing_sent), cmocka_unit_test(test_proxy), cmocka_unit_test(test_refused_requests), cmocka_unit_test(test_reach),
        cmocka_unit_test(test_url_text), cmocka_unit_test(test_threads), cmocka_unit_test(test_more_than_handles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
