/* Loops, streams, TLS and datagrams against scripted clients. */
#include "unit.h"
#include "server_client.h"
#include "certificates.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>

static fz_error err;
static char dir[64];
static made_cert authority, server_cert, client_cert, stranger;

/* ---- a protocol of lines: "echo X", "pause", "end", "big N"; each line is consumed whole ---- */

typedef struct fixture fixture;
typedef struct line_conn { fixture *f; net_conn *c; } line_conn;
struct fixture {
    net_loop *loop;
    net_listener *l;
    net_conn *paused[128];
    _Atomic int n_open, n_closed, n_paused, n_lines, n_eof, n_expired, n_calls;
    _Atomic int last_expiry;
    char last_eof[64], tls_name[64];
    _Atomic bool keep_at_eof, refuse;
};

static void *line_open(void *cx, net_conn *c) {
    fixture *f = cx;
    f->n_open++;
    if (f->refuse) return NULL;
    line_conn *k = FZ_NEW(line_conn);
    *k = (line_conn){f, c};
    snprintf(f->tls_name, sizeof f->tls_name, "%s", net_conn_tls_name(c) ? net_conn_tls_name(c) : "-");
    return k;
}
static bool line_run(line_conn *k, const char *p, size_t n) {
    k->f->n_lines++;
    if (n >= 5 && memcmp(p, "pause", 5) == 0) {
        net_conn_pause(k->c);
        k->f->paused[k->f->n_paused] = k->c;
        k->f->n_paused++;
    } else if (n >= 3 && memcmp(p, "end", 3) == 0) {
        net_conn_write(k->c, "bye\n", 4);
        net_conn_end(k->c);
    } else if (n >= 5 && memcmp(p, "close", 5) == 0) return false;
    else if (n >= 3 && memcmp(p, "big", 3) == 0) {
        static char big[1 << 20];
        memset(big, 'b', sizeof big);
        for (int i = 0; i < 8; i++) net_conn_write(k->c, big, sizeof big);
        net_conn_write(k->c, "!\n", 2);
    } else net_conn_write(k->c, p, n);
    return true;
}
static size_t line_data(void *state, const uint8_t *p, size_t n) {
    line_conn *k = state;
    size_t at = 0;
    k->f->n_calls++;
    for (const uint8_t *lf; at < n && (lf = memchr(p + at, '\n', n - at));) {
        int before = k->f->n_paused;
        size_t len = (size_t)(lf + 1 - p) - at;
        if (!line_run(k, (const char *)p + at, len)) return SIZE_MAX;
        at += len;
        if (k->f->n_paused != before) break;
    }
    return at;
}
static void line_eof(void *state, const uint8_t *p, size_t n) {
    line_conn *k = state;
    snprintf(k->f->last_eof, sizeof k->f->last_eof, "%.*s", (int)n, n ? (const char *)p : "");
    if (k->f->keep_at_eof) {
        net_conn_pause(k->c);
        k->f->paused[k->f->n_paused] = k->c;
        k->f->n_paused++;
    }
    k->f->n_eof++;
}
static void line_close(void *state) {
    line_conn *k = state;
    k->f->n_closed++;
    fz_free(k);
}
static void line_expired(void *state, net_expiry why) {
    line_conn *k = state;
    k->f->last_expiry = (int)why;
    k->f->n_expired++;
    net_conn_write(k->c, "slow\n", 5);
}
static const net_proto lines = {.open = line_open, .data = line_data, .eof = line_eof, .close = line_close, .expired = line_expired};

static fixture *up_alpn(net_listen_options o, const char *alpn) {
    fixture *f = FZ_NEW(fixture);
    if (!o.address) o.address = "127.0.0.1:0";
    assert_int_equal(net_loop_new("test", &f->loop, &err), FZ_OK);
    if (net_listen_stream(f->loop, &o, alpn, &lines, f, &f->l, &err) != FZ_OK) {
        print_error("%s\n", err.message);
        fail();
    }
    return f;
}
static fixture *up(net_listen_options o) { return up_alpn(o, NULL); }
static void down(fixture *f) {
    net_loop_free(f->loop);
    assert_int_equal(f->n_open - (f->refuse ? f->n_open : 0), f->n_closed); /* each that was opened is closed, once */
    fz_free(f);
}
static void resume_all(void *cx) {
    fixture *f = cx;
    for (int i = 0; i < f->n_paused; i++) net_conn_resume(f->paused[i]);
    f->n_paused = 0;
}
static void end_all(void *cx) {
    fixture *f = cx;
    for (int i = 0; i < f->n_paused; i++) {
        net_conn_write(f->paused[i], "acked\n", 6);
        net_conn_end(f->paused[i]);
    }
    f->n_paused = 0;
}

static void test_lines(void **state) {
    (void)state;
    fixture *f = up((net_listen_options){0});
    client c = client_open(f->l);
    client_send(&c, "one\ntw");
    client_expect(&c, "one\n");
    client_send(&c, "o\nthree\nend\nlost\n");
    client_expect_closed(&c);
    assert_string_equal(c.got, "one\ntwo\nthree\nbye\nlost\n"); /* end lets the protocol finish what it was given at once */
    client_close(&c);
    c = client_open(f->l);
    client_send(&c, "a\nclose\n");
    client_expect_closed(&c);
    client_close(&c);
    WAIT_FOR(f->n_closed == 2);
    WAIT_FOR(net_listener_stats(f->l).open == 0);
    net_stats s = net_listener_stats(f->l);
    assert_int_equal(s.accepted, 2);
    assert_int_equal(s.buffered, 0);
    assert_int_equal(s.bytes_in, 23 + 8);
    down(f);
}

/* An unterminated last message is handed over at the end; acks may still be written to a peer that has closed its side. */
static void test_eof(void **state) {
    (void)state;
    fixture *f = up((net_listen_options){0});
    client c = client_open(f->l);
    client_send(&c, "a\nrest");
    client_expect(&c, "a\n");
    shutdown(c.fd, SHUT_WR);
    client_expect_closed(&c);
    assert_int_equal(f->n_eof, 1);
    assert_string_equal(f->last_eof, "rest");
    client_close(&c);
    f->keep_at_eof = true;
    c = client_open(f->l);
    client_send(&c, "b\n");
    shutdown(c.fd, SHUT_WR);
    WAIT_FOR(f->n_paused == 1);
    net_loop_call(f->loop, end_all, f);
    client_expect_closed(&c);
    assert_string_equal(c.got, "b\nacked\n");
    client_close(&c);
    f->keep_at_eof = false;
    f->refuse = true;
    c = client_open(f->l);
    client_expect_closed(&c);
    client_close(&c);
    f->refuse = false;
    net_loop_free(f->loop);
    fz_free(f);
}

/* A paused connection is not read from: what is sent stays with the kernel; its time stands still. */
static void test_pause(void **state) {
    (void)state;
    fixture *f = up((net_listen_options){.message_timeout_ms = 1000, .idle_timeout_ms = 1000});
    client c = client_open(f->l), other = client_open(f->l);
    client_send(&c, "pause\nhalf");
    WAIT_FOR(f->n_paused == 1);
    static char flood[4 << 20];
    memset(flood, 'x', sizeof flood);
    while (send(c.fd, flood, sizeof flood, MSG_NOSIGNAL | MSG_DONTWAIT) > 0) {}
    for (int i = 0; i < 30; i++) {
        client_send(&other, "o\n");
        client_expect(&other, "o\n");
        client_forget(&other);
        usleep(50000);
    }
    assert_true(net_listener_stats(f->l).bytes_in < 1 << 18);
    assert_int_equal(net_listener_stats(f->l).timed_out, 0);
    assert_int_equal(f->n_lines, 31);
    net_loop_call(f->loop, resume_all, f);
    client_expect(&c, "slow\n"); /* its line has no end, and now the clock runs */
    assert_int_equal(f->last_expiry, NET_EXPIRED_MESSAGE);
    client_close(&c);
    client_close(&other);
    /* Lines behind the pause are worked off after it, without anything new coming. */
    c = client_open(f->l);
    client_send(&c, "pause\nafter\n");
    WAIT_FOR(f->n_paused == 1);
    net_loop_call(f->loop, resume_all, f);
    client_expect(&c, "after\n");
    client_close(&c);
    down(f);
}

static void test_too_large(void **state) {
    (void)state;
    fixture *f = up((net_listen_options){.max_message = 100000});
    client c = client_open(f->l);
    static char text[200000];
    memset(text, 'x', sizeof text);
    text[99998] = '\n';
    client_send_n(&c, text, 99999);
    client_expect(&c, "\n");
    text[99998] = 'x';
    client_send_n(&c, text, sizeof text);
    client_expect_closed(&c);
    WAIT_FOR(net_listener_stats(f->l).open == 0);
    assert_int_equal(net_listener_stats(f->l).too_large, 1);
    assert_int_equal(net_listener_stats(f->l).buffered, 0);
    client_close(&c);
    down(f);
}

static void test_times(void **state) {
    (void)state;
    fixture *f = up((net_listen_options){.message_timeout_ms = 1500, .idle_timeout_ms = 3500});
    client half = client_open(f->l), idle = client_open(f->l), busy = client_open(f->l);
    client_send(&half, "ha");
    for (int i = 0; i < 200; i++) {
        client_send(&busy, "b\npart"); /* always in the middle of a line, but of a new one each time */
        usleep(10000);
        client_send(&busy, "\n");
    }
    client_expect_closed(&half);
    assert_string_equal(half.got, "slow\n");
    assert_int_equal(f->last_expiry, NET_EXPIRED_MESSAGE);
    assert_int_equal(f->n_expired, 1);
    assert_int_equal(client_read(&busy, 0), 1);
    client_expect_closed(&idle);
    assert_int_equal(f->last_expiry, NET_EXPIRED_IDLE);
    client_close(&half);
    client_close(&idle);
    client_close(&busy);
    down(f);
}

/* A peer that does not read what it asked for is not read from, and closed in the end; one that reads gets all. */
static void test_unread(void **state) {
    (void)state;
    fixture *f = up((net_listen_options){.message_timeout_ms = 1500});
    client c = client_open(f->l), d = client_open(f->l);
    client_send(&c, "big\n");
    client_send(&d, "big\n");
    client_expect(&c, "!\n");
    assert_int_equal(c.n, (8 << 20) + 2);
    WAIT_FOR(net_listener_stats(f->l).open == 1);
    assert_int_equal(net_listener_stats(f->l).timed_out, 1);
    assert_int_equal(net_listener_stats(f->l).buffered, 0);
    client_close(&c);
    client_close(&d);
    down(f);
}

static void test_many(void **state) {
    (void)state;
    enum { MANY = 900 };
    struct rlimit rl = {4096, 4096};
    getrlimit(RLIMIT_NOFILE, &rl);
    rl.rlim_cur = rl.rlim_max < 4096 ? rl.rlim_max : 4096;
    setrlimit(RLIMIT_NOFILE, &rl);
    fixture *f = up((net_listen_options){.max_connections = MANY});
    client *c = fz_calloc(MANY, sizeof *c);
    for (int i = 0; i < MANY; i++) c[i] = client_open(f->l);
    WAIT_FOR(net_listener_stats(f->l).open == MANY);
    for (int i = 0; i < 50; i++) {
        client x = client_open(f->l);
        client_expect_closed(&x);
        client_close(&x);
    }
    assert_int_equal(net_listener_stats(f->l).refused, 50);
    size_t before = fz_rss();
    for (int i = 0; i < MANY; i++) client_send(&c[i], "part of a line");
    WAIT_FOR(net_listener_stats(f->l).bytes_in == MANY * 14);
    assert_true(fz_rss() < before + (16 << 20));
    for (int i = 0; i < MANY; i++) client_send(&c[i], "\n");
    for (int i = 0; i < MANY; i++) client_expect(&c[i], "part of a line\n");
    assert_int_equal(net_listener_stats(f->l).buffered, 0);
    for (int i = 0; i < MANY; i++) client_close(&c[i]);
    fz_free(c);
    down(f);
}

/* No descriptors left: those that are there are served, and the listener comes back. */
static void test_no_descriptors(void **state) {
    (void)state;
    fixture *f = up((net_listen_options){0});
    client c = client_open(f->l), d;
    client_send(&c, "a\n");
    client_expect(&c, "a\n");
    int sock = socket(AF_INET, SOCK_STREAM, 0);
    struct rlimit old, low;
    getrlimit(RLIMIT_NOFILE, &old);
    low = old;
    low.rlim_cur = (rlim_t)sock + 1;
    setrlimit(RLIMIT_NOFILE, &low);
    struct sockaddr_in a = client_address(f->l);
    d = (client){.fd = sock};
    assert_int_equal(connect(sock, (struct sockaddr *)&a, sizeof a), 0); /* by the kernel */
    client_send(&d, "d\n");
    for (int i = 0; i < 5; i++) {
        client_forget(&c);
        client_send(&c, "b\n");
        client_expect(&c, "b\n");
        usleep(20000);
    }
    assert_int_equal(net_listener_stats(f->l).open, 1);
    setrlimit(RLIMIT_NOFILE, &old);
    client_expect(&d, "d\n");
    client_close(&c);
    client_close(&d);
    down(f);
}

/* ---- calls ---- */

typedef struct order { _Atomic int n; int seen[2000]; net_loop *loop; } order;
typedef struct order_call { order *o; int number; } order_call;
static void note_order(void *cx) {
    order_call *c = cx;
    c->o->seen[c->o->n] = c->number;
    c->o->n++;
    fz_free(c);
}
static void *call_many(void *cx) {
    order *o = cx;
    for (int i = 0; i < 1000; i++) {
        order_call *c = FZ_NEW(order_call);
        *c = (order_call){o, i};
        net_loop_call(o->loop, note_order, c);
    }
    return NULL;
}
static void after_start(void *cx) {
    order_call *c = FZ_NEW(order_call), *d = FZ_NEW(order_call);
    *c = (order_call){cx, 2};
    *d = (order_call){cx, 1};
    net_loop_after(c->o->loop, 40, note_order, c);
    net_loop_after(c->o->loop, 1, note_order, d);
}
static void test_calls(void **state) {
    (void)state;
    order o = {0};
    pthread_t t[2];
    assert_int_equal(net_loop_new("calls", &o.loop, &err), FZ_OK);
    for (int i = 0; i < 2; i++) pthread_create(&t[i], NULL, call_many, &o);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    net_loop_free(o.loop);
    assert_int_equal(o.n, 2000); /* also those that waited at the end; each thread's in order */
    int expected[1000] = {0}, next = 0;
    for (int i = 0; i < 2000; i++) expected[o.seen[i]]++;
    for (int i = 0; i < 1000; i++) assert_int_equal(expected[i], 2);
    for (int i = 0; i < 2000 && next < 1000; i++) next += o.seen[i] == next;
    assert_int_equal(next, 1000);
    o.n = 0;
    assert_int_equal(net_loop_new("after", &o.loop, &err), FZ_OK);
    net_loop_call(o.loop, after_start, &o);
    WAIT_FOR(o.n == 2);
    assert_int_equal(o.seen[0], 1);
    net_loop_free(o.loop);
    net_loop_free(NULL);
}

/* ---- addresses ---- */

static void test_addresses(void **state) {
    (void)state;
    static const struct { const char *address; const char *code; bool auth, opt_out; } cases[] = {
        {"127.0.0.1:1", NULL, false, false}, {"127.9.9.9:1", NULL, false, false}, {"[::1]:1", NULL, false, false}, {"localhost:0", NULL, false, false}, {"[::ffff:127.0.0.1]:1", NULL, false, false},
        {"0.0.0.0:1", "listen.open", false, false}, {"[::]:1", "listen.open", false, false}, {"10.0.0.1:1", "listen.open", false, false}, {"*:1", "listen.open", false, false}, {"127.0.0.1.example:1", "listen.open", false, false},
        {"0.0.0.0:1", NULL, true, false}, {"0.0.0.0:1", NULL, false, true},
        {"127.0.0.1", "listen.address", true, true}, {"127.0.0.1:", "listen.address", true, true}, {"127.0.0.1:65536", "listen.address", true, true}, {":1", "listen.address", true, true},
        {"::1:1", "listen.address", true, true}, {"[]:1", "listen.address", true, true}, {"", "listen.address", true, true}, {"127.0.0.1:-1", "listen.address", true, true}, {"127.0.0.1:x", "listen.address", true, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fz_status st = net_listen_check(cases[i].address, cases[i].auth, cases[i].opt_out, &err);
        assert_int_equal(st, cases[i].code ? FZ_USER : FZ_OK);
        if (cases[i].code) assert_string_equal(err.code, cases[i].code);
    }
    fixture *f = up((net_listen_options){.address = "[::1]:0"});
    assert_int_equal(strncmp(net_listener_address(f->l), "[::1]:", 6), 0);
    net_listener *second;
    net_loop *loop = f->loop;
    assert_int_equal(net_listen_stream(loop, &(net_listen_options){.address = net_listener_address(f->l)}, NULL, &lines, f, &second, &err), FZ_USER);
    assert_string_equal(err.code, "listen.in-use");
    assert_int_equal(net_listen_try(&(net_listen_options){.address = net_listener_address(f->l)}, false, &err), FZ_USER);
    assert_string_equal(err.code, "listen.in-use");
    assert_int_equal(net_listen_try(&(net_listen_options){.address = net_listener_address(f->l)}, true, &err), FZ_OK); /* UDP has ports of its own */
    assert_int_equal(net_listen_stream(loop, &(net_listen_options){.address = "192.0.2.1:0"}, NULL, &lines, f, &second, &err), FZ_USER);
    assert_string_equal(err.code, "listen.address");
    assert_int_equal(net_listen_stream(loop, &(net_listen_options){.address = "no.such.host.invalid:0"}, NULL, &lines, f, &second, &err), FZ_USER);
    assert_string_equal(err.code, "listen.address");
    down(f);
}

/* ---- TLS ---- */

static net_listen_options tls(const char *ca) { return (net_listen_options){.tls_cert = server_cert.pem, .tls_key = server_cert.key_file, .tls_ca = ca}; }

/* 1: connected; 0: refused (with TLS 1.3 a client may learn it only when it reads). */
static int client_tls(client *c, const made_cert *own, const char *alpn, char *chosen) {
    SSL_CTX *cx = SSL_CTX_new(TLS_client_method());
    SSL_CTX_load_verify_file(cx, authority.pem);
    SSL_CTX_set_verify(cx, SSL_VERIFY_PEER, NULL);
    if (own) {
        SSL_CTX_use_certificate_file(cx, own->pem, SSL_FILETYPE_PEM);
        SSL_CTX_use_PrivateKey_file(cx, own->key_file, SSL_FILETYPE_PEM);
    }
    if (alpn) SSL_CTX_set_alpn_protos(cx, (const unsigned char *)alpn, (unsigned)strlen(alpn));
    c->ssl = SSL_new(cx);
    SSL_CTX_free(cx);
    SSL_set_fd(c->ssl, c->fd);
    int rc = SSL_connect(c->ssl);
    const unsigned char *p;
    unsigned n;
    SSL_get0_alpn_selected(c->ssl, &p, &n);
    if (chosen) snprintf(chosen, 16, "%.*s", (int)n, (const char *)p);
    return rc == 1;
}

static void test_tls(void **state) {
    (void)state;
    fixture *f = up(tls(NULL));
    client c = client_open(f->l);
    assert_true(client_tls(&c, NULL, NULL, NULL));
    client_send(&c, "one\nbig\n"); /* records larger than one read, and eight megabytes back */
    client_expect(&c, "!\n");
    assert_int_equal(c.n, 4 + (8 << 20) + 2);
    assert_string_equal(f->tls_name, "-");
    client_forget(&c);
    static char text[1 << 20];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\n';
    client_send_n(&c, text, sizeof text);
    client_expect(&c, "x\n");
    assert_int_equal(c.n, sizeof text);
    client_forget(&c);
    client_send(&c, "end\n");
    client_expect_closed(&c);
    assert_string_equal(c.got, "bye\n");
    assert_int_equal(SSL_get_shutdown(c.ssl) & SSL_RECEIVED_SHUTDOWN, SSL_RECEIVED_SHUTDOWN);
    client_close(&c);
    /* Lines in one TLS record behind a pause. */
    c = client_open(f->l);
    assert_true(client_tls(&c, NULL, NULL, NULL));
    client_send(&c, "pause\n");
    client_send(&c, "after\n");
    WAIT_FOR(f->n_paused == 1);
    client_send(&c, "more\n");
    net_loop_call(f->loop, resume_all, f);
    client_expect(&c, "after\nmore\n");
    client_close(&c);
    /* Who speaks no TLS. */
    c = client_open(f->l);
    client_send(&c, "GET / HTTP/1.1\r\n\r\n");
    client_expect_closed(&c);
    client_close(&c);
    WAIT_FOR(net_listener_stats(f->l).tls_failed == 1);
    WAIT_FOR(net_listener_stats(f->l).open == 0);
    down(f);
}

static void test_client_certificates(void **state) {
    (void)state;
    fixture *f = up(tls(authority.pem));
    client c = client_open(f->l);
    assert_true(client_tls(&c, &client_cert, NULL, NULL));
    client_send(&c, "hello\n");
    client_expect(&c, "hello\n");
    assert_string_equal(f->tls_name, "sender");
    client_close(&c);
    const made_cert *bad[] = {NULL, &stranger};
    for (int i = 0; i < 2; i++) {
        c = client_open(f->l);
        if (client_tls(&c, bad[i], NULL, NULL)) client_expect_closed(&c);
        client_close(&c);
        WAIT_FOR(net_listener_stats(f->l).tls_failed == (uint64_t)i + 1);
    }
    assert_int_equal(f->n_open, 1);
    down(f);
}

static void test_alpn(void **state) {
    (void)state;
    char chosen[16];
    fixture *f = up_alpn(tls(NULL), "h2");
    client c = client_open(f->l);
    assert_true(client_tls(&c, NULL, "\x08http/1.1\x02h2", chosen));
    assert_string_equal(chosen, "h2");
    client_close(&c);
    c = client_open(f->l);
    assert_false(client_tls(&c, NULL, "\x08http/1.1", chosen));
    client_close(&c);
    c = client_open(f->l);
    assert_true(client_tls(&c, NULL, NULL, chosen));
    assert_string_equal(chosen, "");
    client_close(&c);
    down(f);
}

/* Handshakes that stall do not keep others out, and end. */
static void test_stalled_handshake(void **state) {
    (void)state;
    net_listen_options o = tls(NULL);
    o.handshake_timeout_ms = 2500;
    fixture *f = up(o);
    client stalled[8], c;
    for (int i = 0; i < 8; i++) {
        stalled[i] = client_open(f->l);
        if (i % 2) client_send_n(&stalled[i], "\x16\x03\x01\x02\x00\x01\x00", 7); /* the begin of a hello */
    }
    c = client_open(f->l);
    assert_true(client_tls(&c, NULL, NULL, NULL));
    client_send(&c, "x\n");
    client_expect(&c, "x\n");
    for (int i = 0; i < 8; i++) {
        client_expect_closed(&stalled[i]);
        client_close(&stalled[i]);
    }
    WAIT_FOR(net_listener_stats(f->l).open == 1);
    assert_int_equal(net_listener_stats(f->l).timed_out, 8);
    client_close(&c);
    down(f);
}

/* A certificate that is renewed while the server runs; a half-written one changes nothing. */
static void peer_name(const client *c, char out[64]) {
    X509 *x = SSL_get1_peer_certificate(c->ssl);
    X509_NAME_get_text_by_NID(X509_get_subject_name(x), NID_commonName, out, 64);
    X509_free(x);
}
static void copy_file(const char *from, const char *to) {
    char text[4096];
    FILE *f = fopen(from, "r"), *t = fopen(to, "w");
    size_t n = fread(text, 1, sizeof text, f);
    assert_int_equal(fwrite(text, 1, n, t), n);
    fclose(f);
    fclose(t);
}
static void test_renewed(void **state) {
    (void)state;
    made_cert renewed = cert_make(dir, "renewed", &authority);
    char pem[160], key[160], name[64];
    snprintf(pem, sizeof pem, "%s/used.pem", dir);
    snprintf(key, sizeof key, "%s/used.key", dir);
    copy_file(server_cert.pem, pem);
    copy_file(server_cert.key_file, key);
    fixture *f = up((net_listen_options){.tls_cert = pem, .tls_key = key});
    client old = client_open(f->l), c;
    assert_true(client_tls(&old, NULL, NULL, NULL));
    copy_file(renewed.pem, pem); /* the key is still the old one */
    usleep(1100000);
    c = client_open(f->l);
    assert_true(client_tls(&c, NULL, NULL, NULL));
    peer_name(&c, name);
    assert_string_equal(name, "server");
    client_close(&c);
    copy_file(renewed.key_file, key);
    usleep(1100000);
    c = client_open(f->l);
    assert_true(client_tls(&c, NULL, NULL, NULL));
    peer_name(&c, name);
    assert_string_equal(name, "renewed");
    client_send(&old, "still there\n");
    client_expect(&old, "still there\n");
    client_close(&c);
    client_close(&old);
    down(f);
    remove(pem);
    remove(key);
    cert_free(&renewed);
}

static void test_tls_files(void **state) {
    (void)state;
    net_loop *loop;
    net_listener *l;
    assert_int_equal(net_loop_new("tls", &loop, &err), FZ_OK);
    const net_listen_options wrong[] = {
        {.tls_cert = "/nowhere.pem", .tls_key = server_cert.key_file}, {.tls_cert = server_cert.pem, .tls_key = "/nowhere.key"}, {.tls_cert = server_cert.pem, .tls_key = client_cert.key_file},
        {.tls_cert = server_cert.pem, .tls_key = server_cert.key_file, .tls_ca = "/nowhere.ca"}, {.tls_key = server_cert.key_file}, {.tls_ca = authority.pem}, {.tls_cert = server_cert.key_file, .tls_key = server_cert.key_file}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        net_listen_options o = wrong[i];
        o.address = "127.0.0.1:0";
        assert_int_equal(net_listen_stream(loop, &o, NULL, &lines, NULL, &l, &err), FZ_USER);
        assert_string_equal(err.code, "listen.tls");
        int64_t unused;
        if (o.tls_cert) assert_int_equal(net_listen_try_tls(&o, &unused, &err), FZ_USER);
    }
    int64_t end, now = fz_now_ms() / 1000;
    assert_int_equal(net_listen_try_tls(&(net_listen_options){.tls_cert = server_cert.pem, .tls_key = server_cert.key_file}, &end, &err), FZ_OK);
    assert_true(end > now + 3000 && end < now + 3700);
    net_loop_free(loop);
}

/* ---- datagrams ---- */

typedef struct datagrams { net_loop *loop; net_listener *l; pthread_mutex_t lock; _Atomic int n; char last[128], peer[64]; } datagrams;
static void on_datagram(void *cx, const uint8_t *p, size_t n, const char *peer) {
    datagrams *d = cx;
    pthread_mutex_lock(&d->lock);
    snprintf(d->last, sizeof d->last, "%.*s", (int)(n < 100 ? n : 100), (const char *)p);
    snprintf(d->peer, sizeof d->peer, "%s", peer);
    pthread_mutex_unlock(&d->lock);
    d->n++;
}
static bool last_is(datagrams *d, const char *text) {
    pthread_mutex_lock(&d->lock);
    bool is = strcmp(d->last, text) == 0;
    pthread_mutex_unlock(&d->lock);
    return is;
}
static void pause_datagrams(void *cx) { net_datagrams_pause(((datagrams *)cx)->l, true); }
static void resume_datagrams(void *cx) { net_datagrams_pause(((datagrams *)cx)->l, false); }

static void test_datagrams(void **state) {
    (void)state;
    datagrams d = {.lock = PTHREAD_MUTEX_INITIALIZER};
    assert_int_equal(net_loop_new("udp", &d.loop, &err), FZ_OK);
    net_listen_options o = {.address = "127.0.0.1:0", .max_message = 60000};
    assert_int_equal(net_listen_datagrams(d.loop, &o, on_datagram, &d, &d.l, &err), FZ_OK);
    struct sockaddr_in a = client_address(d.l), own;
    socklen_t len = sizeof own;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    getsockname(fd, (struct sockaddr *)&own, &len);
    char want[32];
    snprintf(want, sizeof want, "127.0.0.1:%u", ntohs(own.sin_port));
    send(fd, "one", 3, 0);
    WAIT_FOR(d.n == 1);
    assert_true(last_is(&d, "one"));
    assert_string_equal(d.peer, want);
    send(fd, "", 0, 0);
    WAIT_FOR(d.n == 2);
    static char large[65000];
    send(fd, large, 60000, 0);
    WAIT_FOR(d.n == 3);
    send(fd, large, 60001, 0);
    WAIT_FOR(net_listener_stats(d.l).too_large == 1);
    /* Paused: the kernel keeps them, then drops, and the drops are counted. */
    net_loop_call(d.loop, pause_datagrams, &d);
    usleep(50000);
    int sent = 0;
    for (; sent < 2000; sent++) send(fd, large, 20000, 0);
    usleep(20000);
    assert_true(d.n <= 3 + 16);
    net_loop_call(d.loop, resume_datagrams, &d);
    send(fd, "after", 5, 0);
    int64_t end = fz_mono_ns() + 10000000000ll;
    while (!last_is(&d, "after") && fz_mono_ns() < end) {
        send(fd, "after", 5, 0);
        sent++;
        usleep(2000);
    }
    usleep(50000);
    send(fd, "last", 4, 0);
    WAIT_FOR(last_is(&d, "last"));
    uint64_t got = (uint64_t)d.n - 3;
    assert_true(net_listener_stats(d.l).refused > 0);
    assert_true(got + net_listener_stats(d.l).refused >= (uint64_t)sent + 1);
    close(fd);
    net_loop_free(d.loop);
}

static int make_all(void **state) {
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/frazil-test-XXXXXX");
    if (!mkdtemp(dir)) return -1;
    authority = cert_make(dir, "authority", NULL);
    server_cert = cert_make(dir, "server", &authority);
    client_cert = cert_make(dir, "sender", &authority);
    stranger = cert_make(dir, "stranger", NULL);
    return 0;
}
static int drop_all(void **state) {
    (void)state;
    cert_free(&authority);
    cert_free(&server_cert);
    cert_free(&client_cert);
    cert_free(&stranger);
    return rmdir(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines), cmocka_unit_test(test_eof), cmocka_unit_test(test_pause), cmocka_unit_test(test_too_large), cmocka_unit_test(test_times), cmocka_unit_test(test_unread),
        cmocka_unit_test(test_many), cmocka_unit_test(test_no_descriptors), cmocka_unit_test(test_calls), cmocka_unit_test(test_addresses), cmocka_unit_test(test_tls),
        cmocka_unit_test(test_client_certificates), cmocka_unit_test(test_alpn), cmocka_unit_test(test_stalled_handshake), cmocka_unit_test(test_renewed), cmocka_unit_test(test_tls_files), cmocka_unit_test(test_datagrams)};
    return cmocka_run_group_tests(tests, make_all, drop_all);
}
