/* The syslog connector: where messages end in a stream (cut at every byte), and the connector over real sockets and a real spool: TCP, UDP, back-pressure, hostile bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "source/syslog_int.h"

/* ---- framing, bytes alone ---- */

enum { MAX = 4096, MOST = 32 };
typedef struct cut { char text[256]; size_t n; bool counted, cut_off; } cut;
typedef struct cuts { cut v[MOST]; uint32_t n; bool refused; } cuts;

/* The stream in steps of `step` bytes, as a connection sees it. */
static void run(const char *p, size_t n, size_t step, bool end, cuts *out) {
    sys_stream s = {0};
    size_t at = 0, have = 0;
    memset(out, 0, sizeof *out);
    for (bool last = false; !last;) {
        have = have + step < n ? have + step : n;
        last = have == n;
        for (;;) {
            sys_message m;
            uint8_t *exact = malloc(have - at + 1);
            memcpy(exact, p + at, have - at);
            sys_result r = sys_next(&s, exact, have - at, last && end, MAX, &m);
            assert_true(m.used <= have - at && (r != SYS_MESSAGE || m.at + m.n <= m.used));
            if (r == SYS_MESSAGE && m.n) {
                cut *c = &out->v[out->n++];
                assert_true(out->n < MOST && m.n < sizeof c->text);
                memcpy(c->text, exact + m.at, m.n);
                c->n = m.n;
                c->counted = m.counted;
                c->cut_off = m.cut_off;
            }
            free(exact);
            at += m.used;
            if (r == SYS_REFUSED) out->refused = true;
            if (r != SYS_MESSAGE) break;
        }
        if (out->refused) return;
    }
}

/* want: the messages, divided by '|'. The same however the stream is divided. */
static void expect(const char *p, size_t n, bool end, const char *want, bool refused) {
    for (size_t step = 1; step <= n + 1; step = step < 8 ? step + 1 : step * 2 - 1) {
        cuts c;
        char got[1024] = "";
        size_t len = 0;
        run(p, n, step, end, &c);
        for (uint32_t i = 0; i < c.n; i++) len += (size_t)snprintf(got + len, sizeof got - len, "%s%.*s", i ? "|" : "", (int)c.v[i].n, c.v[i].text);
        if (strcmp(got, want) != 0 || c.refused != refused) fail_msg("step %zu of \"%s\": \"%s\", not \"%s\"%s", step, p, got, want, c.refused ? ", refused" : "");
    }
}
#define EXPECT(text, end, want) expect(text, sizeof(text) - 1, end, want, false)
#define REFUSED(text, want) expect(text, sizeof(text) - 1, true, want, true)

static void test_octet_counting(void **state) {
    (void)state;
    static const char two[] = "51 <34>1 2025-01-02T03:04:05Z h1 app - - - line1\nline245 <34>1 2025-01-02T03:04:05Z h1 app - - - caf\xc3\xa9";
    cuts c;
    EXPECT("51 <34>1 2025-01-02T03:04:05Z h1 app - - - line1\nline245 <34>1 2025-01-02T03:04:05Z h1 app - - - caf\xc3\xa9", false,
           "<34>1 2025-01-02T03:04:05Z h1 app - - - line1\nline2|<34>1 2025-01-02T03:04:05Z h1 app - - - caf\xc3\xa9");
    run(two, sizeof two - 1, 7, false, &c);
    assert_true(c.n == 2 && c.v[0].counted && c.v[1].counted && c.v[0].n == 51 && c.v[1].n == 45);
    EXPECT("6 <34>ab6 <34>cd", false, "<34>ab|<34>cd");
    EXPECT("6 <34>ab\n6 <34>cd\n", false, "<34>ab|<34>cd"); /* a line end behind a counted message */
    EXPECT("7 <34>ab\n6 <34>cd", false, "<34>ab|<34>cd");   /* one that was counted */
    EXPECT("7 <34>ab\x00" "6 <34>cd", false, "<34>ab|<34>cd");
    EXPECT("4 <34>6 no pri", false, "<34>|no pri"); /* in a stream that counts, a message needs no PRI */
    EXPECT("9 <34>cut", true, "<34>cut");           /* cut off by the peer: what there is */
    EXPECT("9 <34>cut", false, "");
    run("9 <34>cut", 9, 2, true, &c);
    assert_true(c.n == 1 && c.v[0].cut_off);
    EXPECT("6 <34>ab<35>line\n6 <36>cd", false, "<34>ab|<35>line|<36>cd"); /* message by message */
}

static void test_lines(void **state) {
    (void)state;
    EXPECT("<34>a\n<34>b\n", false, "<34>a|<34>b");
    EXPECT("<34>a\r\n<34>b\r\n", false, "<34>a|<34>b");
    EXPECT("<34>a\0<34>b\0", false, "<34>a|<34>b");
    EXPECT("<34>a\0\n<34>b\0\n", false, "<34>a|<34>b");
    EXPECT("<34>a\n<34>last", true, "<34>a|<34>last");
    EXPECT("<34>a\n<34>last", false, "<34>a");
    EXPECT("\n\r\n\0\n<34>a\n\n\n<34>b\n", false, "<34>a|<34>b");
    EXPECT("2025-01-02 a line\n12 <b>bold</b>\n34\n56 \n7 x\n99999999999999999999 y\n", false, "2025-01-02 a line|12 <b>bold</b>|34|56 |7 x|99999999999999999999 y");
    EXPECT("12", true, "12");
    EXPECT("12 ", true, "12 ");
    EXPECT("12 <", true, "12 <");
    EXPECT("0 <34>zero\n", false, "0 <34>zero");
    EXPECT("007 <34>x\n", false, "007 <34>x");
    EXPECT("<34>a\rb\n", false, "<34>a\rb");
    EXPECT("", true, "");
    EXPECT("<34>a\n8 no pri\n", false, "<34>a|8 no pri");
}

static void test_absurd(void **state) {
    (void)state;
    REFUSED("999999999 <34>", "");
    REFUSED("6 <34>ab999999999 <34>", "<34>ab");
    REFUSED("4094 <34>", "");
    REFUSED("18446744073709551617 <34>x", "");
    REFUSED("99999999999999999999999999999 <34>x", "");
    char *line = malloc(MAX + 10);
    memset(line, 'x', MAX + 10);
    cuts c;
    run(line, MAX + 10, 1000, false, &c);
    assert_true(c.refused && c.n == 0);
    memset(line, '7', MAX + 10);
    run(line, MAX + 10, 1, false, &c);
    assert_true(c.refused && c.n == 0);
    free(line);
    assert_int_equal(sys_trimmed((const uint8_t *)"a\r\n", 3), 1);
    assert_int_equal(sys_trimmed((const uint8_t *)"a\n\n", 3), 2);
    assert_int_equal(sys_trimmed((const uint8_t *)"a\0", 2), 1);
    assert_int_equal(sys_trimmed((const uint8_t *)"\n", 1), 0);
    assert_int_equal(sys_trimmed((const uint8_t *)"", 0), 0);
}

/* Whatever comes: nothing is read past the end, and what is consumed grows. */
static void test_random(void **state) {
    (void)state;
    static const char alphabet[] = "<>0123456789 \n\r\0ab[";
    srand(11);
    for (int i = 0; i < 4000; i++) {
        char text[40];
        size_t n = (size_t)rand() % sizeof text;
        for (size_t k = 0; k < n; k++) text[k] = alphabet[(size_t)rand() % (sizeof alphabet - 1)];
        cuts a, b;
        run(text, n, n + 1, true, &a);
        run(text, n, 1 + (size_t)rand() % 7, true, &b);
        assert_int_equal(a.n, b.n);
        assert_memory_equal(&a, &b, sizeof a);
    }
}

/* ---- the connector ---- */

typedef struct server { char dir[64]; src_source *s; syslog_source *f; int64_t next; } server;

static void server_open(server *v, const char *protocol, const fz_pair *more, size_t n_more) {
    fz_pair o[12] = {{.key = "connector", .value = "syslog"}, {.key = "listen", .value = "127.0.0.1:0"}, {.key = "protocol", .value = protocol}};
    for (size_t i = 0; i < n_more; i++) o[3 + i] = more[i];
    fz_error err;
    if (!v->dir[0]) {
        snprintf(v->dir, sizeof v->dir, "/tmp/frazil-syslog.XXXXXX");
        assert_non_null(mkdtemp(v->dir));
    }
    src_context cx = {.table = "t", .job = "j", .readers = 1, .memory = 8 << 20, .state_dir = v->dir};
    if (src_open(o, 3 + n_more, &cx, &v->s, &err) != FZ_OK) fail_msg("open: %s", err.message);
    v->f = (syslog_source *)v->s;
    v->next = src_get_split(v->s, 0)->start;
    assert_int_equal(src_assign(v->s, 0, v->next, &err), FZ_OK);
}
static void server_close(server *v) {
    char cmd[128];
    src_close(v->s);
    snprintf(cmd, sizeof cmd, "rm -rf %s", v->dir);
    assert_int_equal(system(cmd), 0);
}
static int dial(const server *v, int type) {
    const char *a = net_listener_address(v->f->s.listeners[0]), *colon = strrchr(a, ':');
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)strtol(colon + 1, NULL, 10)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, type, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    return fd;
}
static void give(int fd, const char *p, size_t n) {
    for (size_t at = 0; at < n;) {
        ssize_t w = send(fd, p + at, n - at, MSG_NOSIGNAL);
        assert_true(w > 0);
        at += (size_t)w;
    }
}
static void expect_closed(int fd) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char b[16];
    assert_int_equal(poll(&p, 1, 10000), 1);
    assert_true(recv(fd, b, sizeof b, 0) <= 0);
    close(fd);
}

/* The next n records as text, each ended by '|'. peers (may be NULL): their contexts, the same. */
static void records(server *v, uint32_t n, fz_buf *out, fz_buf *peers) {
    fz_error err;
    int64_t end = fz_mono_ns() + 20000000000ll;
    while (n && fz_mono_ns() < end) {
        fz_chunk *c;
        bool done;
        assert_int_equal(src_poll(v->s, 0, 200, &c, &done, &err), FZ_OK);
        if (!c) continue;
        assert_int_equal(c->from, v->next);
        assert_true(c->n <= n);
        for (uint32_t i = 0; i < c->n; i++) {
            fz_buf_append(out, c->rec[i].value, (size_t)c->rec[i].value_len);
            fz_buf_putc(out, '|');
            if (peers) fz_buf_append(peers, c->rec[i].key, (size_t)c->rec[i].key_len);
            if (peers) fz_buf_putc(peers, '|');
            assert_true(c->rec[i].timestamp_ms > 0);
        }
        n -= c->n;
        v->next = c->to;
        fz_chunk_release(c);
    }
    assert_int_equal(n, 0);
}

static void test_tcp(void **state) {
    (void)state;
    server v = {0};
    fz_buf got = {0}, peers = {0};
    server_open(&v, "tcp", NULL, 0);
    int fd = dial(&v, SOCK_STREAM);
    struct sockaddr_in me;
    socklen_t len = sizeof me;
    getsockname(fd, (struct sockaddr *)&me, &len);
    static const char stream[] = "6 <34>ab6 <34>cd<34>e\n<34>f\r\n<34>g\0<34>never ended";
    give(fd, stream, sizeof stream - 1);
    close(fd);
    records(&v, 6, &got, &peers);
    assert_string_equal(fz_buf_cstr(&got), "<34>ab|<34>cd|<34>e|<34>f|<34>g|<34>never ended|");
    char peer[64];
    snprintf(peer, sizeof peer, "127.0.0.1:%u|", ntohs(me.sin_port));
    assert_true(fz_starts(fz_buf_cstr(&peers), peer));
    fd = dial(&v, SOCK_STREAM); /* what comes before an absurd length is kept */
    give(fd, "6 <34>ij999999999 <34>", 22);
    expect_closed(fd);
    got.len = 0;
    records(&v, 1, &got, NULL);
    assert_string_equal(fz_buf_cstr(&got), "<34>ij|");
    assert_int_equal(atomic_load(&v.f->stats.refused), 1);
    assert_true(net_listener_stats(v.f->s.listeners[0]).buffered < 100000);
    fz_buf_free(&got);
    fz_buf_free(&peers);
    server_close(&v);
}

/* A line that is not ended in time is taken as it is. */
static void test_slow(void **state) {
    (void)state;
    server v = {0};
    fz_buf got = {0};
    fz_pair o = {.key = "message-timeout", .value = "300 ms"};
    server_open(&v, "tcp", &o, 1);
    int fd = dial(&v, SOCK_STREAM);
    give(fd, "<34>whole\n<34>part", 18);
    records(&v, 2, &got, NULL);
    assert_string_equal(fz_buf_cstr(&got), "<34>whole|<34>part|");
    expect_closed(fd);
    fz_buf_free(&got);
    server_close(&v);
}

static void test_udp(void **state) {
    (void)state;
    server v = {0};
    fz_buf got = {0};
    server_open(&v, "udp", NULL, 0);
    int fd = dial(&v, SOCK_DGRAM), other = dial(&v, SOCK_DGRAM);
    give(fd, "<34>one\n", 8);
    records(&v, 1, &got, NULL);
    give(fd, "<34>two\nlines", 13);
    records(&v, 1, &got, NULL);
    give(other, "<34>nul\0", 8);
    records(&v, 1, &got, NULL);
    give(other, "\n", 1);
    give(other, "9 <34>text", 10);
    records(&v, 1, &got, NULL);
    assert_string_equal(fz_buf_cstr(&got), "<34>one|<34>two\nlines|<34>nul|9 <34>text|");
    for (int i = 0; i < 500; i++) give(fd, "<34>burst", 9);
    got.len = 0;
    records(&v, 500, &got, NULL);
    close(fd);
    close(other);
    fz_buf_free(&got);
    server_close(&v);
}

/* A spool of a megabyte, and five of messages: the senders wait, and then all is there in order, the end too that a peer left while there was no room. */
static void test_back_pressure(void **state) {
    (void)state;
    enum { N = 5000, EACH = 1000 };
    server v = {0};
    fz_pair o[] = {{.key = "spool.max-size", .value = "1 mb"}, {.key = "max-message-size", .value = "64 kb"}}; /* one that is not held would be closed */
    server_open(&v, "tcp", o, 2);
    int fd = dial(&v, SOCK_STREAM);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char line[EACH + 1];
        for (int i = 0; i < N; i++) {
            memset(line, 'x', sizeof line);
            line[snprintf(line, sizeof line, "<34>%06d", i)] = ' ';
            line[EACH - 1] = '\n';
            size_t n = i == N - 1 ? EACH - 1 : EACH; /* the last one is not ended */
            for (size_t at = 0; at < n;) {
                ssize_t w = send(fd, line + at, n - at, MSG_NOSIGNAL);
                if (w <= 0) _exit(1);
                at += (size_t)w;
            }
        }
        _exit(0);
    }
    close(fd);
    for (int i = 0; i < 2000 && !src_spooled_full(&v.f->s); i++) usleep(5000);
    assert_true(src_spooled_full(&v.f->s));
    uint32_t seen = 0;
    fz_error err;
    int64_t end = fz_mono_ns() + 60000000000ll;
    while (seen < N && fz_mono_ns() < end) {
        fz_chunk *c;
        bool done;
        assert_int_equal(src_poll(v.s, 0, 100, &c, &done, &err), FZ_OK);
        if (!c) continue;
        for (uint32_t i = 0; i < c->n; i++, seen++) {
            char want[16];
            snprintf(want, sizeof want, "<34>%06u ", seen);
            assert_int_equal(c->rec[i].value_len, EACH - 1);
            assert_memory_equal(c->rec[i].value, want, 11);
        }
        uint32_t split = 0;
        int64_t to = c->to;
        fz_chunk_release(c);
        assert_int_equal(src_report(v.s, &split, &to, 1, &err), FZ_OK);
    }
    assert_int_equal(seen, N);
    server_close(&v);
}

/* Datagrams into a full spool: those that were taken from the kernel are there when there is room again, and those that come then. */
static void test_udp_full(void **state) {
    (void)state;
    server v = {0};
    char big[8000];
    fz_error err;
    fz_pair o = {.key = "spool.max-size", .value = "1 mb"};
    server_open(&v, "udp", &o, 1);
    int fd = dial(&v, SOCK_DGRAM);
    memset(big, 'x', sizeof big);
    memcpy(big, "<34>", 4);
    for (int i = 0; i < 4000 && !v.f->s.held_datagrams; i++) {
        (void)!send(fd, big, sizeof big, 0);
        if (i % 20 == 0) usleep(2000);
    }
    assert_true(v.f->s.held_datagrams);
    assert_true(v.f->n_waiting > 0);
    uint64_t accepted = net_listener_stats(v.f->s.listeners[0]).accepted, seen = 0;
    assert_true(accepted > 100);
    bool last = false;
    for (int64_t end = fz_mono_ns() + 30000000000ll; !last && fz_mono_ns() < end;) {
        fz_chunk *c;
        bool done;
        assert_int_equal(src_poll(v.s, 0, 100, &c, &done, &err), FZ_OK);
        if (!c) {
            (void)!send(fd, "<34>last", 8, 0);
            continue;
        }
        for (uint32_t i = 0; i < c->n; i++) {
            last |= c->rec[i].value_len == 8;
            seen += c->rec[i].value_len == sizeof big;
        }
        uint32_t split = 0;
        int64_t to = c->to;
        fz_chunk_release(c);
        assert_int_equal(src_report(v.s, &split, &to, 1, &err), FZ_OK);
    }
    assert_true(last);
    assert_true(seen >= accepted); /* none that the kernel had handed out is missing */
    close(fd);
    server_close(&v);
}

static void wrong(const fz_pair *more, size_t n, const char *code) {
    fz_pair o[8] = {{.key = "connector", .value = "syslog"}};
    fz_error err;
    for (size_t i = 0; i < n; i++) o[1 + i] = more[i];
    assert_int_equal(src_check(o, 1 + n, "t", &err), FZ_USER);
    if (strcmp(err.code, code) != 0) fail_msg("%s: %s", err.code, err.message);
}
static void test_options(void **state) {
    (void)state;
    wrong(NULL, 0, "option.missing");
    wrong((fz_pair[]){{.key = "listen", .value = "0.0.0.0:514"}}, 1, "listen.open");
    wrong((fz_pair[]){{.key = "listen", .value = "127.0.0.1:0"}, {.key = "protocol", .value = "tls"}}, 2, "option.missing");
    wrong((fz_pair[]){{.key = "listen", .value = "127.0.0.1:0"}, {.key = "protocol", .value = "udp"}, {.key = "tls.cert", .value = "a"}, {.key = "tls.key", .value = "b"}}, 4, "option.conflict");
    wrong((fz_pair[]){{.key = "listen", .value = "127.0.0.1:0"}, {.key = "protocol", .value = "relp"}}, 2, "option.invalid");
    wrong((fz_pair[]){{.key = "listen", .value = "127.0.0.1:0"}, {.key = "framing", .value = "lf"}}, 2, "option.unknown");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_octet_counting), cmocka_unit_test(test_lines), cmocka_unit_test(test_absurd), cmocka_unit_test(test_random), cmocka_unit_test(test_tcp),
                                       cmocka_unit_test(test_slow),           cmocka_unit_test(test_udp),   cmocka_unit_test(test_back_pressure), cmocka_unit_test(test_udp_full), cmocka_unit_test(test_options)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
