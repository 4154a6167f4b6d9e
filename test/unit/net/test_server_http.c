/* The HTTP server against scripted clients: framing, limits, time-outs, answers that come later. */
#include "unit.h"
#include "server_client.h"
#include <pthread.h>

static fz_error err;

/* The handler under test: says what it was given. Path /later keeps the request until the test answers it. */
typedef struct fixture {
    net_loop *loop;
    net_listener *l;
    net_http_request *kept[64];
    _Atomic int n_kept, n_seen, n_heads;
} fixture;

static void echo(net_http_request *r) {
    fz_buf b = {0};
    fz_buf_printf(&b, "%s %s?%s [%zu:", r->method, r->path, r->query ? r->query : "", r->n_body);
    fz_buf_append(&b, r->body, r->n_body < 64 ? r->n_body : 64);
    fz_buf_printf(&b, "] x=%s;", net_http_header(r, "x-NAME") ? net_http_header(r, "x-NAME") : "");
    net_http_answer(r, 200, &(net_http_field){"X-Count", "1"}, 1, b.data, b.len);
    fz_buf_free(&b);
}
static void handle(void *cx, net_http_request *r) {
    fixture *f = cx;
    f->n_seen++;
    if (strcmp(r->path, "/later") == 0) {
        f->kept[f->n_kept] = r;
        f->n_kept++;
    } else echo(r);
}
static void answer_kept(void *cx) {
    fixture *f = cx;
    for (int i = 0; i < f->n_kept; i++) echo(f->kept[i]);
    f->n_kept = 0;
}

static fixture *up(net_listen_options o) {
    fixture *f = FZ_NEW(fixture);
    if (!o.address) o.address = "127.0.0.1:0";
    memset(&err, 0, sizeof err);
    assert_int_equal(net_loop_new("test", &f->loop, &err), FZ_OK);
    if (net_listen_http(f->loop, &o, handle, f, &f->l, &err) != FZ_OK) {
        print_error("%s\n", err.message);
        fail();
    }
    return f;
}
static void down(fixture *f) {
    net_loop_free(f->loop);
    fz_free(f);
}

static void test_plain(void **state) {
    (void)state;
    fixture *f = up((net_listen_options){0});
    client c = client_open(f->l);
    client_send(&c, "GET /a%20b?q=1&r=%2F HTTP/1.1\r\nHost: h\r\nX-Name:  v w \r\n\r\n");
    client_expect(&c, "GET /a%20b?q=1&r=%2F [0:] x=v w;");
    assert_non_null(strstr(c.got, "HTTP/1.1 200 OK\r\nDate: "));
    assert_non_null(strstr(c.got, "X-Count: 1\r\nContent-Length: 32\r\n\r\n"));
    client_forget(&c);
    client_send(&c, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello");
    client_expect(&c, "POST /? [5:hello] x=;");
    client_forget(&c);
    client_send(&c, "HEAD / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    client_expect_closed(&c);
    assert_non_null(strstr(c.got, "Content-Length: 16\r\nConnection: close\r\n\r\n"));
    assert_null(strstr(c.got, "HEAD /"));
    client_close(&c);
    net_stats s = net_listener_stats(f->l);
    assert_int_equal(s.accepted, 1);
    WAIT_FOR(net_listener_stats(f->l).open == 0);
    assert_int_equal(net_listener_stats(f->l).buffered, 0);
    down(f);
}

/* Each split of a request over two writes, and byte by byte. */
static void test_any_split(void **state) {
    (void)state;
    fixture *f = up((net_listen_options){0});
    static const char text[] = "\r\nPOST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0A\r\n0123456789\r\n0\r\nTrail: er\r\n\r\n"
                               "POST /y HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nwxyz";
    client c = client_open(f->l);
    for (size_t at = 1; at < sizeof text - 1; at++) {
        client_send_n(&c, text, at);
        struct timespec ts = {0, 200000};
        nanosleep(&ts, NULL);
        client_send_n(&c, text + at, sizeof text - 1 - at);
        client_expect(&c, "POST /y? [4:wxyz] x=;");
        assert_non_null(strstr(c.got, "POST /x? [13:abc0123456789] x=;"));
        client_forget(&c);
    }
    for (size_t at = 0; at < sizeof text - 1; at++) client_send_n(&c, text + at, 1);
    client_expect(&c, "POST /y? [4:wxyz] x=;");
    client_close(&c);
    down(f);
}

static void test_pipelining(void **state) {
    (void)state;
    fixture *f = up((net_listen_options){0});
    client c = client_open(f->l);
    fz_buf b = {0};
    for (int i = 0; i < 500; i++) fz_buf_printf(&b, "POST /%d HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc", i);
    fz_buf_puts(&b, "GET /last HTTP/1.1\r\nHost: h\r\n\r\n");
    client_send_n(&c, b.data, b.len);
    client_expect(&c, "GET /last?");
    assert_int_equal(client_times(&c, "HTTP/1.1 200"), 501);
    const char *p = c.got;
    for (int i = 0; i < 500; i++) { /* in order */
        char want[32];
        snprintf(want, sizeof want, "POST /%d?", i);
        p = strstr(p, want);
        assert_non_null(p);
    }
    fz_buf_free(&b);
    client_close(&c);
    down(f);
}

/* An answer that another thread hands in; what is pipelined behind it waits. */
static void test_later(void **state) {
    (void)state;
    fixture *f = up((net_listen_options){0});
    client c = client_open(f->l), d = client_open(f->l);
    client_send(&c, "POST /later HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nabGET /after HTTP/1.1\r\nHost: h\r\n\r\n");
    WAIT_FOR(f->n_kept == 1);
    client_send(&d, "GET /other HTTP/1.1\r\nHost: h\r\n\r\n");
    client_expect(&d, "GET /other?");
    assert_int_equal(f->n_seen, 2);
    assert_int_equal(client_read(&c, 50), -1);
    net_loop_call(f->loop, answer_kept, f);
    client_expect(&c, "GET /after?");
    assert_non_null(strstr(c.got, "POST /later? [2:ab] x=;"));
    client_close(&c);
    /* The peer goes away before the answer; and at the end one is never answered. */
    client_send(&d, "POST /later HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab");
    WAIT_FOR(f->n_kept == 1);
    client_close(&d);
    net_loop_call(f->loop, answer_kept, f);
    WAIT_FOR(net_listener_stats(f->l).open == 0);
    d = client_open(f->l);
    client_send(&d, "POST /later HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab");
    WAIT_FOR(f->n_kept == 1);
    down(f);
    client_close(&d);
}

typedef struct wrong { const char *text; int status; } wrong;
static void test_wrong(void **state) {
    (void)state;
    fixture *f = up((net_listen_options){.max_message = 1000});
    static const wrong cases[] = {
        {"GET / HTTP/1.1\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400},
        {"GET / HTTP/1.1\nHost: a\n\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\n X: y\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nX: a\x01\r\n\r\n", 400},
        {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET /\r\nHost: a\r\n\r\n", 400},
        {"GET x HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"G@T / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
        {"PRI * HTTP/2.0\r\n\r\n", 505},
        {"GET / HTTX/1.1\r\nHost: a\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5x\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n", 413},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\nExpect: 100-continue\r\n\r\n", 413},
        {"POST / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\nContent-Length: 1\r\n\r\n", 417},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n", 400},
        {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3E9\r\n", 413},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n", 413},
        {"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        client c = client_open(f->l);
        client_send(&c, cases[i].text);
        client_expect_closed(&c);
        char want[32];
        snprintf(want, sizeof want, "HTTP/1.1 %d ", cases[i].status);
        if (!c.n || strncmp(c.got, want, strlen(want)) != 0) {
            print_error("case %zu: %s\nwanted %s, got %s\n", i, cases[i].text, want, c.n ? c.got : "nothing");
            fail();
        }
        assert_int_equal(client_times(&c, "\r\nDate: "), 1);
        assert_int_equal(client_times(&c, "Connection: close"), 1);
        client_close(&c);
    }
    assert_int_equal(f->n_seen, 0);
    assert_true(net_listener_stats(f->l).too_large == 4);
    down(f);
}

/* Heads above the limit; a body that is sent although it was refused does not cost the client the answer. */
/* What a request said of itself ends with it: the head of the one before, whose text is freed when it was large, says nothing about the refusal of the next. */
static void test_wrong_after_head(void **state) {
    (void)state;
    fixture *f = up((net_listen_options){0});
    for (int large = 0; large < 2; large++) {
        client c = client_open(f->l);
        fz_buf b = {0};
        fz_buf_printf(&b, "HEAD / HTTP/1.1\r\nHost: h\r\nX-Long: ");
        for (int i = 0; i < (large ? 20000 : 1); i++) fz_buf_putc(&b, 'a');
        fz_buf_printf(&b, "\r\n\r\n");
        client_send_n(&c, b.data, b.len);
        client_expect(&c, "\r\n\r\n");
        client_forget(&c);
        client_send(&c, "GET / HTTP/1.1\nHost: h\r\n\r\n");
        client_expect(&c, "a line does not end with CR LF\n");
        client_close(&c);
        fz_buf_free(&b);
    }
    down(f);
}

static void test_oversize(void **state) {
    (void)state;
    fixture *f = up((net_listen_options){.max_message = 1000});
    fz_buf b = {0};
    fz_buf_puts(&b, "GET / HTTP/1.1\r\nHost: a\r\n");
    while (b.len < FZ_MAX_HTTP_HEAD) fz_buf_printf(&b, "X-%zu: abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789\r\n", b.len);
    client c = client_open(f->l);
    client_send_n(&c, b.data, b.len);
    client_expect_closed(&c);
    assert_int_equal(strncmp(c.got, "HTTP/1.1 431 ", 13), 0);
    client_close(&c);
    b.len = 0;
    fz_buf_puts(&b, "GET /");
    while (b.len <= FZ_MAX_HTTP_HEAD) fz_buf_puts(&b, "aaaaaaaaaaaaaaaa");
    c = client_open(f->l);
    client_send_n(&c, b.data, b.len);
    client_expect_closed(&c);
    assert_int_equal(strncmp(c.got, "HTTP/1.1 414 ", 13), 0);
    client_close(&c);
    b.len = 0;
    fz_buf_puts(&b, "GET / HTTP/1.1\r\nHost: a\r\n");
    for (int i = 0; i < FZ_MAX_HTTP_FIELDS; i++) fz_buf_puts(&b, "a:b\r\n");
    fz_buf_puts(&b, "\r\n");
    c = client_open(f->l);
    client_send_n(&c, b.data, b.len);
    client_expect_closed(&c);
    assert_int_equal(strncmp(c.got, "HTTP/1.1 431 ", 13), 0);
    client_close(&c);
    fz_buf_free(&b);

    c = client_open(f->l); /* all of an eight megabyte body is sent before the answer is read */
    char *body = fz_calloc(8, 1 << 20);
    client_send(&c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8388608\r\n\r\n");
    assert_true(client_send_n(&c, body, 8 << 20));
    client_expect(&c, "HTTP/1.1 413 ");
    fz_free(body);
    client_close(&c);
    assert_int_equal(f->n_seen, 0);
    down(f);
}

static void test_continue(void **state) {
    (void)state;
    fixture *f = up((net_listen_options){0});
    client c = client_open(f->l);
    client_send(&c, "POST /c HTTP/1.1\r\nHost: h\r\nExpect: 100-Continue\r\nContent-Length: 3\r\n\r\n");
    client_expect(&c, "HTTP/1.1 100 Continue\r\n\r\n");
    client_send(&c, "abc");
    client_expect(&c, "POST /c? [3:abc]");
    client_forget(&c);
    /* with the body right behind it there is nothing to be told */
    client_send(&c, "POST /d HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc");
    client_expect(&c, "POST /d? [3:abc]");
    assert_int_equal(client_times(&c, "100 Continue"), 0);
    client_close(&c);
    down(f);
}

/* Who may not send is told so before the body. */
static void only_ok(void *cx, net_http_request *r) {
    fixture *f = cx;
    f->n_heads++;
    assert_int_equal(r->n_body, 0);
    if (strcmp(r->path, "/ok") != 0) net_http_answer(r, 403, NULL, 0, "no\n", 3);
}
static void test_turned_away(void **state) {
    (void)state;
    fixture *f = up((net_listen_options){.http_head = only_ok});
    static const char *const heads[] = {"Content-Length: 1000000", "Content-Length: 5\r\nExpect: 100-continue", "Transfer-Encoding: chunked"};
    for (int i = 0; i < 3; i++) {
        client c = client_open(f->l);
        client_send(&c, "POST /no HTTP/1.1\r\nHost: h\r\n");
        client_send(&c, heads[i]);
        client_send(&c, "\r\n\r\n");
        client_expect_closed(&c);
        assert_int_equal(strncmp(c.got, "HTTP/1.1 403 ", 13), 0);
        assert_int_equal(client_times(&c, "HTTP/1.1"), 1);
        assert_non_null(strstr(c.got, "Connection: close"));
        client_close(&c);
    }
    assert_int_equal(f->n_seen, 0);
    client c = client_open(f->l);
    client_send(&c, "POST /ok HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabcPOST /no HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabcGET /never HTTP/1.1\r\nHost: h\r\n\r\n");
    client_expect_closed(&c);
    assert_non_null(strstr(c.got, "POST /ok? [3:abc]"));
    assert_int_equal(client_times(&c, "HTTP/1.1 403 "), 1);
    assert_int_equal(client_times(&c, "/never"), 0);
    client_close(&c);
    assert_int_equal(f->n_heads, 5);
    WAIT_FOR(net_listener_stats(f->l).open == 0);
    assert_int_equal(net_listener_stats(f->l).buffered, 0);
    down(f);
}

static void test_http10(void **state) {
    (void)state;
    fixture *f = up((net_listen_options){0});
    client c = client_open(f->l);
    client_send(&c, "GET http://host/p?q HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    client_expect(&c, "GET /p?q [0:]");
    assert_non_null(strstr(c.got, "Connection: keep-alive\r\n"));
    client_send(&c, "GET /2 HTTP/1.0\r\n\r\n");
    client_expect_closed(&c);
    assert_int_equal(client_times(&c, "Connection: close"), 1);
    client_close(&c);
    /* A client that closes its side after the request still gets its answer. */
    c = client_open(f->l);
    client_send(&c, "GET /half HTTP/1.1\r\nHost: h\r\n\r\n");
    shutdown(c.fd, SHUT_WR);
    client_expect_closed(&c);
    assert_non_null(strstr(c.got, "GET /half?"));
    client_close(&c);
    down(f);
}

/* Slow heads, slow bodies, half-open connections and silent ones, while others are served. */
static void test_slow(void **state) {
    (void)state;
    fixture *f = up((net_listen_options){.message_timeout_ms = 300, .idle_timeout_ms = 3000});
    client head = client_open(f->l), body = client_open(f->l), chunk = client_open(f->l), silent = client_open(f->l), good = client_open(f->l);
    client_send(&body, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n");
    client_send(&chunk, "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
    static const char slow[] = "GET / HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nX-B: 2\r\nX-C: 3\r\nX-D: 4\r\nX-E: 5\r\n\r\n";
    for (size_t i = 0; i < 60; i++) { /* a byte every ten milliseconds is progress, and too slow all the same */
        client_send_n(&head, slow + i, 1);
        client_send_n(&body, "x", 1);
        client_send(&chunk, "1\r\nx\r\n");
        if (i % 10 == 0) {
            client_send(&good, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
            client_expect(&good, "GET /?");
            client_forget(&good);
        }
        usleep(10000);
    }
    client *all[] = {&head, &body, &chunk};
    for (int i = 0; i < 3; i++) {
        client_expect_closed(all[i]);
        assert_non_null(all[i]->got);
        assert_int_equal(strncmp(all[i]->got, "HTTP/1.1 408 ", 13), 0);
        client_close(all[i]);
    }
    assert_int_equal(net_listener_stats(f->l).timed_out, 3);
    client_expect_closed(&silent); /* no request, no answer */
    assert_int_equal(silent.n, 0);
    client_close(&silent);
    client_expect_closed(&good);
    client_close(&good);
    assert_int_equal(net_listener_stats(f->l).timed_out, 5);
    WAIT_FOR(net_listener_stats(f->l).open == 0);
    assert_int_equal(net_listener_stats(f->l).buffered, 0);
    down(f);
}

/* A request in work does not run out of time. */
static void test_work_is_not_timed(void **state) {
    (void)state;
    fixture *f = up((net_listen_options){.message_timeout_ms = 400, .idle_timeout_ms = 400});
    client c = client_open(f->l);
    client_send(&c, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
    WAIT_FOR(f->n_kept == 1);
    assert_int_equal(client_read(&c, 1000), -1);
    net_loop_call(f->loop, answer_kept, f);
    client_expect(&c, "GET /later?");
    client_close(&c);
    down(f);
}

static void test_many(void **state) {
    (void)state;
    fixture *f = up((net_listen_options){.max_connections = 20});
    client c[20];
    for (int i = 0; i < 20; i++) c[i] = client_open(f->l);
    WAIT_FOR(net_listener_stats(f->l).open == 20);
    for (int i = 0; i < 100; i++) {
        client x = client_open(f->l);
        client_expect_closed(&x);
        assert_non_null(x.got);
        assert_int_equal(strncmp(x.got, "HTTP/1.1 503 ", 13), 0);
        assert_non_null(strstr(x.got, "Retry-After: "));
        client_close(&x);
    }
    for (int i = 0; i < 20; i++) {
        client_send(&c[i], "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        client_expect(&c[i], "GET /?");
    }
    client_close(&c[0]);
    WAIT_FOR(net_listener_stats(f->l).open == 19);
    c[0] = client_open(f->l);
    client_send(&c[0], "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    client_expect(&c[0], "GET /?");
    for (int i = 0; i < 20; i++) client_close(&c[i]);
    assert_int_equal(net_listener_stats(f->l).refused, 100);
    down(f);
}

/* Bodies that fill the memory together: what is buffered stays bounded, and all of them come through or are told to come again. */
static void *send_big(void *cx) {
    net_listener *l = cx;
    static char body[1 << 20];
    for (int tries = 0; tries < 200; tries++) {
        client c = client_open(l);
        client_send(&c, "POST /big HTTP/1.1\r\nHost: h\r\nContent-Length: 1048576\r\n\r\n");
        client_send_n(&c, body, sizeof body);
        while (client_read(&c, 10000) == 1 && !strstr(c.got, "\r\n\r\n")) {}
        bool ok = c.n && strncmp(c.got, "HTTP/1.1 200", 12) == 0;
        client_close(&c);
        if (ok) return cx;
    }
    return NULL;
}
static void test_memory(void **state) {
    (void)state;
    fixture *f = up((net_listen_options){.max_buffered = 2 << 20, .message_timeout_ms = 2000});
    client slow[8]; /* who hold half messages */
    for (int i = 0; i < 8; i++) {
        slow[i] = client_open(f->l);
        client_send(&slow[i], "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n");
        char part[300000] = {0};
        send(slow[i].fd, part, sizeof part, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    pthread_t t[8];
    for (int i = 0; i < 8; i++) pthread_create(&t[i], NULL, send_big, f->l);
    uint64_t most = 0;
    for (int i = 0; i < 200; i++) {
        uint64_t now = net_listener_stats(f->l).buffered;
        most = now > most ? now : most;
        usleep(1000);
    }
    for (int i = 0; i < 8; i++) {
        void *ok;
        pthread_join(t[i], &ok);
        assert_non_null(ok);
    }
    assert_in_range(most, 1, (2 << 20) + (2 << 20) + (1 << 20)); /* the limit, one message with its buffer's growth, one read each */
    for (int i = 0; i < 8; i++) client_close(&slow[i]);
    WAIT_FOR(net_listener_stats(f->l).buffered == 0);
    down(f);
}

/* How many small messages were served while half messages held the memory and nobody had been turned away for it. */
static int small_beside_large(void) {
    enum { LIMIT = 2 << 20, HOARDERS = 30 };
    fixture *f = up((net_listen_options){.max_buffered = LIMIT, .message_timeout_ms = 60000});
    client good = client_open(f->l), slow[HOARDERS];
    for (int i = 0; i < HOARDERS; i++) {
        slow[i] = client_open(f->l);
        client_send(&slow[i], "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n");
        char part[300000] = {0};
        send(slow[i].fd, part, sizeof part, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    WAIT_FOR(net_listener_stats(f->l).buffered > LIMIT);
    int beside = 0;
    for (int i = 0; i < 20; i++) {
        bool full = net_listener_stats(f->l).buffered > LIMIT;
        client_send(&good, "POST /big HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n");
        char body[1000] = {0};
        client_send_n(&good, body, 300);
        usleep(1000);
        client_send_n(&good, body, 700);
        client_expect(&good, "HTTP/1.1 200");
        client_expect(&good, "\r\n\r\n");
        usleep(1000);
        while (client_read(&good, 0) == 1) {}
        client_forget(&good);
        beside += full && net_listener_stats(f->l).buffered > LIMIT && net_listener_stats(f->l).refused == 0;
    }
    for (int i = 0; i < HOARDERS; i++) client_close(&slow[i]);
    client_close(&good);
    WAIT_FOR(net_listener_stats(f->l).buffered == 0);
    down(f);
    return beside;
}
/* While half messages hold the memory who sends small ones, also in pieces, is served as ever. On a machine that stands still for half a second the half messages' time is over first: then once more. */
static void test_small_beside_large(void **state) {
    (void)state;
    int beside = 0;
    for (int tries = 0; tries < 10 && !beside; tries++) beside = small_beside_large();
    assert_true(beside > 0);
}

/* A client that asks and never reads. */
static void test_unread(void **state) {
    (void)state;
    fixture *f = up((net_listen_options){.message_timeout_ms = 300});
    client c = client_open(f->l);
    int small = 4096;
    setsockopt(c.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    for (int i = 0; i < 400000; i++)
        if (send(c.fd, "GET / HTTP/1.1\r\nHost: h\r\n\r\n", 27, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) break;
    WAIT_FOR(net_listener_stats(f->l).open == 0);
    assert_int_equal(net_listener_stats(f->l).timed_out, 1);
    assert_int_equal(net_listener_stats(f->l).buffered, 0);
    client_close(&c);
    down(f);
}

static void test_stop(void **state) {
    (void)state;
    fixture *f = up((net_listen_options){0});
    client idle = client_open(f->l), work = client_open(f->l), half = client_open(f->l);
    client_send(&work, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
    client_send(&half, "POST /half HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nab");
    WAIT_FOR(f->n_kept == 1 && net_listener_stats(f->l).open == 3 && net_listener_stats(f->l).bytes_in > 80);
    net_listener_stop(f->l);
    client_expect_closed(&idle);
    net_loop_call(f->loop, answer_kept, f);
    client_expect_closed(&work);
    assert_non_null(strstr(work.got, "Connection: close"));
    assert_non_null(strstr(work.got, "GET /later?"));
    client_send(&half, "cd");
    client_expect_closed(&half);
    assert_non_null(strstr(half.got, "POST /half? [4:abcd]"));
    struct sockaddr_in a = client_address(f->l);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_not_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    close(fd);
    client_close(&idle);
    client_close(&work);
    client_close(&half);
    down(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain), cmocka_unit_test(test_any_split), cmocka_unit_test(test_pipelining), cmocka_unit_test(test_later), cmocka_unit_test(test_wrong), cmocka_unit_test(test_wrong_after_head),
        cmocka_unit_test(test_oversize), cmocka_unit_test(test_continue), cmocka_unit_test(test_turned_away), cmocka_unit_test(test_http10), cmocka_unit_test(test_slow), cmocka_unit_test(test_work_is_not_timed),
        cmocka_unit_test(test_many), cmocka_unit_test(test_memory), cmocka_unit_test(test_small_beside_large), cmocka_unit_test(test_unread), cmocka_unit_test(test_stop)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
