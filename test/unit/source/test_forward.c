/* The forward connector over real sockets and a real spool: every form of message that clients send, each cut at every byte into two writes; answers, refusals, the handshake, pieces of large messages
 * under back-pressure, hostile bytes. And the parts that work on bytes alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <libdeflate.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zstd.h>
#include "source/forward_int.h"

static uint32_t hex(const char *s, uint8_t *out) {
    uint32_t n = 0;
    for (; *s; s++) {
        if (*s == ' ') continue;
        unsigned v;
        assert_int_equal(sscanf(s, "%2x", &v), 1);
        out[n++] = (uint8_t)v;
        s++;
    }
    return n;
}

/* ---- a server ---- */

typedef struct server { char dir[64]; src_source *s; forward_source *f; int64_t next; uint64_t seen; } server;

static void server_open(server *v, const fz_pair *more, size_t n_more) {
    fz_pair o[12] = {{.key = "connector", .value = "forward"}, {.key = "listen", .value = "127.0.0.1:0"}};
    for (size_t i = 0; i < n_more; i++) o[2 + i] = more[i];
    src_context cx = {.table = "t", .job = "j", .readers = 1, .memory = 8 << 20, .state_dir = v->dir};
    fz_error err;
    if (!v->dir[0]) {
        snprintf(v->dir, sizeof v->dir, "/tmp/frazil-forward.XXXXXX");
        assert_non_null(mkdtemp(v->dir));
    }
    if (src_open(o, 2 + n_more, &cx, &v->s, &err) != FZ_OK) fail_msg("open: %s", err.message);
    v->f = (forward_source *)v->s;
    v->seen = 0;
    v->next = src_get_split(v->s, 0)->start;
    assert_int_equal(src_assign(v->s, 0, v->next, &err), FZ_OK);
}

static void server_close(server *v) {
    char cmd[128];
    src_close(v->s);
    snprintf(cmd, sizeof cmd, "rm -rf %s", v->dir);
    assert_int_equal(system(cmd), 0);
}

static int dial(const server *v) {
    const char *a = net_listener_address(v->f->s.listeners[0]), *colon = strrchr(a, ':');
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)strtol(colon + 1, NULL, 10)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

/* Writes and waits until the server has read it all. */
static void give(server *v, int fd, const void *p, size_t n) {
    v->seen += n;
    for (size_t at = 0; at < n;) {
        ssize_t w = send(fd, (const char *)p + at, n - at, MSG_NOSIGNAL);
        assert_true(w > 0);
        at += (size_t)w;
    }
    for (int i = 0; i < 20000 && net_listener_stats(v->f->s.listeners[0]).bytes_in < v->seen; i++) usleep(500);
    assert_int_equal(net_listener_stats(v->f->s.listeners[0]).bytes_in, v->seen);
}

/* Up to cap bytes, until `want` are there, the peer has closed (*closed) or time is over. */
static size_t take(int fd, uint8_t *out, size_t want, bool *closed) {
    size_t n = 0;
    *closed = false;
    while (n < want) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, 10000) != 1) break;
        ssize_t r = recv(fd, out + n, want - n, 0);
        if (r <= 0) {
            *closed = true;
            break;
        }
        n += (size_t)r;
    }
    return n;
}

static void expect_closed(int fd) {
    uint8_t b[64];
    bool closed;
    assert_int_equal(take(fd, b, 1, &closed), 0);
    assert_true(closed);
    close(fd);
}

typedef struct got { uint8_t value[256]; int32_t len; int64_t time_ns; char tag[32]; } got;

/* The next records, up to n. */
static uint32_t records(server *v, got *out, uint32_t n, int64_t wait_ms) {
    uint32_t k = 0;
    fz_error err;
    while (k < n) {
        fz_chunk *c;
        bool done;
        assert_int_equal(src_poll(v->s, 0, wait_ms, &c, &done, &err), FZ_OK);
        if (!c) break;
        assert_int_equal(c->from, v->next);
        for (uint32_t i = 0; i < c->n; i++, k++) {
            assert_true(k < n && c->rec[i].value_len <= (int32_t)sizeof out->value);
            assert_int_equal(c->rec[i].offset, v->next + i);
            memcpy(out[k].value, c->rec[i].value, (size_t)c->rec[i].value_len);
            out[k].len = c->rec[i].value_len;
            out[k].time_ns = c->rec[i].time_ns;
            snprintf(out[k].tag, sizeof out[k].tag, "%.*s", c->rec[i].key_len, (const char *)c->rec[i].key);
        }
        v->next = c->to;
        fz_chunk_release(c);
    }
    return k;
}

/* ---- every form, cut at every byte ---- */

#define EVENT "92 d7 00 67 76 02 25 07 5b cd 15 81 a3 6c 6f 67 a2 68 69"
#define HI "81 a3 6c 6f 67 a2 68 69"
#define S 1735787045ll
#define NS_(x) (S * 1000000000ll + (x))
#define GZ "1f8b08000000000002039b749d21bd8c49953dfaac68e3e29cfcf4451999009387757f13000000"
#define GZ_OPTION "81 aa 63 6f 6d 70 72 65 73 73 65 64 a4 67 7a 69 70"

typedef struct form { const char *name, *bytes; uint32_t n; const char *record; int64_t time_ns; } form;
static const form forms[] = {
    {"nil option", "94 a1 74 ce 67 76 02 25 " HI " c0", 1, HI, NS_(0)},
    {"uint64 time", "93 a1 74 cf 00 00 00 00 67 76 02 25 " HI, 1, HI, NS_(0)},
    {"float time", "93 a1 74 cb 41 d9 dd 80 89 40 00 00 " HI, 1, HI, NS_(0)},
    {"float with a fraction", "93 a1 74 cb 41 d9 dd 80 89 60 00 00 " HI, 1, HI, NS_(500000000)},
    {"float32 time", "93 a1 74 ca 3f c0 00 00 " HI, 1, HI, 1500000000},
    {"negative time", "93 a1 74 ff " HI, 1, HI, -1000000000},
    {"fixext8", "92 a1 74 91 " EVENT, 1, HI, NS_(123456789)},
    {"ext8", "92 a1 74 91 92 c7 08 00 67 76 02 25 07 5b cd 15 " HI, 1, HI, NS_(123456789)},
    {"EventTime in Message mode", "93 a1 74 d7 00 67 76 02 25 07 5b cd 15 " HI, 1, HI, NS_(123456789)},
    {"entries as str", "92 a1 74 d9 13 " EVENT, 1, HI, NS_(123456789)},
    {"entries as bin, two", "92 a1 74 c4 26 " EVENT EVENT, 2, HI, NS_(123456789)},
    {"compressed text", "93 a1 74 c4 13 " EVENT "81 aa 63 6f 6d 70 72 65 73 73 65 64 a4 74 65 78 74", 1, HI, NS_(123456789)},
    {"bin key in a map", "93 a1 74 01 81 a1 6d 81 c4 01 6b a1 76", 1, "81 a1 6d 81 c4 01 6b a1 76", 1000000000},
    {"keep-alive", "c0", 0, NULL, 0},
    {"keep-alive before a message", "c0 93 a1 74 01 " HI, 1, HI, 1000000000},
    {"time and metadata", "92 a1 74 91 92 92 d7 00 67 76 02 25 07 5b cd 15 81 a1 6b 01 " HI, 1, HI, NS_(123456789)},
    {"time and metadata, packed", "92 a1 74 c4 15 92 92 d7 00 67 76 02 25 07 5b cd 15 80 " HI, 1, HI, NS_(123456789)},
    {"no entries", "92 a1 74 90", 0, NULL, 0},
    {"no entries, packed", "92 a1 74 c4 00", 0, NULL, 0},
    {"nil in the option", "93 a1 74 91 " EVENT "82 a5 63 68 75 6e 6b c0 aa 63 6f 6d 70 72 65 73 73 65 64 c0", 1, HI, NS_(123456789)},
    {"entry as array16", "92 a1 74 dc 00 01 dc 00 02 01 de 00 01 a3 6c 6f 67 a2 68 69", 1, "de 00 01 a3 6c 6f 67 a2 68 69", 1000000000},
    {"tag as bin, empty map", "93 c4 01 74 01 80", 1, "80", 1000000000},
    {"gzip, two members", "93 a1 74 c4 4e " GZ GZ GZ_OPTION, 2, HI, NS_(123456789)},
    {"gzip, a header inside", "93 a1 74 c4 33 1f8b0800000000000003 011c00e3ff 92d70067760225075bcd15 81a36c6f67c40a 1f8b0800000000000003 5d61a792 1c000000" GZ_OPTION, 1,
     "81 a3 6c 6f 67 c4 0a 1f 8b 08 00 00 00 00 00 00 03", NS_(123456789)},
    {"a record that is no map", "93 a1 74 01 a2 68 69", 1, "01 a2 68 69", 0},
    {"nil as the time", "93 a1 74 c0 " HI, 1, HI, 0},
    {"0 as the time", "92 a1 74 91 92 d7 00 00 00 00 00 00 00 00 00 " HI, 1, HI, 0},
    {"a time that is none", "93 a1 74 c3 " HI, 1, "c3 " HI, 0},
    {"a time out of range", "92 a1 74 91 92 cf ff ff ff ff ff ff ff ff " HI, 1, "92 cf ff ff ff ff ff ff ff ff " HI, 0},
    {"an entry that is no pair", "92 a1 74 91 93 01 " HI "c0", 1, "93 01 " HI "c0", 0},
    {"a text instead of an entry", "92 a1 74 91 a1 78", 1, "a1 78", 0},
    {"times nested in times", "92 a1 74 91 92 92 92 01 80 80 " HI, 1, "92 92 92 01 80 80 " HI, 0},
    {"packed, cut off", "92 a1 74 c4 05 92 01 81 a1 6c", 1, "92 01 81 a1 6c", 0},
    {"packed, 0xc1", "92 a1 74 c4 01 c1", 1, "c1", 0},
};

static void check_form(server *v, const form *f, size_t cut) {
    uint8_t want[64];
    got g[4];
    uint32_t n = records(v, g, f->n, 10000);
    if (n != f->n) fail_msg("%s, cut at %zu: %u records, not %u", f->name, cut, n, f->n);
    for (uint32_t i = 0; i < n; i++) {
        int32_t len = (int32_t)hex(f->record, want);
        if (g[i].len != len || memcmp(g[i].value, want, (size_t)len) != 0) fail_msg("%s, cut at %zu: another record", f->name, cut);
        if (g[i].time_ns != f->time_ns) fail_msg("%s, cut at %zu: time %lld", f->name, cut, (long long)g[i].time_ns);
        assert_string_equal(g[i].tag, "t");
    }
}

static void every_form_cut_at_every_byte(void **state) {
    (void)state;
    server v = {0};
    server_open(&v, NULL, 0);
    int fd = dial(&v);
    uint64_t broken = 0;
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
        uint8_t b[256];
        size_t n = hex(forms[k].bytes, b);
        for (size_t cut = 0; cut < n; cut++) {
            if (cut) give(&v, fd, b, cut);
            give(&v, fd, b + cut, n - cut);
            check_form(&v, &forms[k], cut);
            broken += forms[k].record && !forms[k].time_ns && strcmp(forms[k].record, HI) != 0;
        }
    }
    got none;
    assert_int_equal(records(&v, &none, 1, 50), 0);
    assert_int_equal(v.f->stats.broken, broken);
    assert_int_equal(v.f->stats.refused, 0);
    close(fd);
    server_close(&v);
}

static void all_at_once(void **state) {
    (void)state;
    server v = {0};
    fz_buf all = {0};
    server_open(&v, NULL, 0);
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
        uint8_t b[256];
        fz_buf_append(&all, b, hex(forms[k].bytes, b));
    }
    int fd = dial(&v);
    give(&v, fd, all.data, all.len);
    got g[64];
    uint32_t n = 0;
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) n += forms[k].n;
    assert_int_equal(records(&v, g, n, 10000), n);
    fz_buf_free(&all);
    close(fd);
    server_close(&v);
}

/* ---- answers ---- */

#define CHUNK "81 a5 63 68 75 6e 6b a8 59 32 68 31 62 6d 73 78"
#define ACK "81 a3 61 63 6b a8 59 32 68 31 62 6d 73 78"

static void answers(void **state) {
    (void)state;
    static const struct { const char *in, *out; } cases[] = {
        {"93 a1 74 c4 13 " EVENT CHUNK, ACK},
        {"93 a1 74 91 " EVENT CHUNK, ACK},
        {"94 a1 74 01 " HI CHUNK, ACK},
        {"93 a1 74 90 " CHUNK, ACK},                                                  /* no entries */
        {"94 a1 74 01 a1 78 " CHUNK, ACK},                                            /* a broken event is kept, and answered */
        {"93 a1 74 91 " EVENT "81 a5 63 68 75 6e 6b c4 02 ff 00", "81 a3 61 63 6b c4 02 ff 00"},
        {"93 a1 74 91 " EVENT "82 a4 73 69 7a 65 01 a5 63 68 75 6e 6b a1 79", "81 a3 61 63 6b a1 79"},
    };
    server v = {0};
    server_open(&v, NULL, 0);
    int fd = dial(&v);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        uint8_t in[128], want[128], out[128];
        bool closed;
        size_t n = hex(cases[k].in, in), m = hex(cases[k].out, want);
        give(&v, fd, in, n);
        assert_int_equal(take(fd, out, m, &closed), m);
        assert_memory_equal(out, want, m);
        assert_true(spool_durable(v.f->s.spool) > 0);
    }
    assert_int_equal(v.f->stats.acked, 7);
    close(fd);
    server_close(&v);
}

/* Many in one write, then our side is shut: all answers come, in order, and then the end. */
static void answers_after_half_close(void **state) {
    (void)state;
    server v = {0};
    server_open(&v, NULL, 0);
    int fd = dial(&v);
    fz_buf in = {0}, want = {0};
    for (int i = 0; i < 500; i++) {
        char id[16];
        snprintf(id, sizeof id, "c%d", i);
        mp_put_array(&in, 4);
        mp_put_str(&in, i % 7 ? "a" : "b", 1);
        mp_put_int(&in, 1);
        mp_put_map(&in, 0);
        mp_put_map(&in, 1);
        mp_put_str(&in, "chunk", 5);
        mp_put_str(&in, id, strlen(id));
        mp_put_map(&want, 1);
        mp_put_str(&want, "ack", 3);
        mp_put_str(&want, id, strlen(id));
    }
    assert_int_equal(send(fd, in.data, in.len, 0), in.len);
    shutdown(fd, SHUT_WR);
    uint8_t *out = fz_malloc(want.len + 1);
    bool closed;
    assert_int_equal(take(fd, out, want.len + 1, &closed), want.len);
    assert_true(closed);
    assert_memory_equal(out, want.data, want.len);
    assert_int_equal(spool_durable(v.f->s.spool), 500);
    fz_free(out);
    fz_buf_free(&in);
    fz_buf_free(&want);
    close(fd);
    server_close(&v);
}

/* ---- refusals ---- */

static void refusals(void **state) {
    (void)state;
    static const char *const cases[] = {
        "5b 22 74 22 2c 31 5d", "7b 22 61 22 3a 31 7d",                   /* JSON */
        "01", "a1 78", "80", "90", "91 a1 74", "92 01 91 " EVENT,         /* no messages */
        "92 a1 74 01", "c1", "93 a1 74 c4 13 " EVENT "a1 78",
        "93 a1 74 c4 13 " EVENT "81 aa 63 6f 6d 70 72 65 73 73 65 64 a2 62 72", /* compressed: br */
        "93 a1 74 c4 13 " EVENT GZ_OPTION,                                /* no gzip */
        "93 a1 74 c4 51 " GZ GZ "78 79 7a" GZ_OPTION,                     /* stray bytes behind the members */
        "93 a1 74 c4 13 " EVENT "81 ad 66 6c 75 65 6e 74 5f 73 69 67 6e 61 6c 01", "93 a1 74 c4 13 " EVENT "81 ad 66 6c 75 65 6e 74 5f 73 69 67 6e 61 6c 02",
        "dd ff ff ff ff", "92 a1 74 c6 ff ff ff ff", "92 a1 74 dd 7f ff ff ff 92", "df ff ff ff ff", /* announced too large */
        "95 a1 74 a1 78 01 02 03",
    };
    server v = {0};
    server_open(&v, NULL, 0);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        uint8_t b[256], out[64];
        int fd = dial(&v);
        bool closed;
        size_t n = hex(cases[k], b);
        give(&v, fd, b, n);
        size_t m = take(fd, out, 1, &closed);
        if (m || !closed) fail_msg("case %zu is not closed", k);
        close(fd);
    }
    assert_int_equal(v.f->stats.refused, sizeof cases / sizeof *cases);
    assert_int_equal(v.f->stats.signals, 2);
    got g;
    assert_int_equal(records(&v, &g, 1, 50), 0);
    /* What came before the refused message is kept and answered; the refused one is not. */
    uint8_t b[256], want[64], out[128];
    size_t n = hex("93 a1 74 c4 13 " EVENT CHUNK "93 a1 74 c4 03 01 02 03 " "82 aa 63 6f 6d 70 72 65 73 73 65 64 a4 67 7a 69 70 a5 63 68 75 6e 6b a1 79", b), m = hex(ACK, want);
    int fd = dial(&v);
    bool closed;
    give(&v, fd, b, n);
    assert_int_equal(take(fd, out, sizeof out, &closed), m);
    assert_true(closed);
    assert_memory_equal(out, want, m);
    assert_int_equal(records(&v, &g, 1, 10000), 1);
    close(fd);
    server_close(&v);
}

static void packed(fz_buf *b, const void *payload, size_t n, const char *coding) {
    mp_put_array(b, 3);
    mp_put_str(b, "t", 1);
    mp_put_bin(b, payload, n);
    mp_put_map(b, 2);
    mp_put_str(b, "compressed", 10);
    mp_put_str(b, coding, strlen(coding));
    mp_put_str(b, "chunk", 5);
    mp_put_str(b, "z", 1);
}

static void zstd_payload(void **state) {
    (void)state;
    server v = {0};
    uint8_t ev[64], z[256], out[16];
    size_t n = hex(EVENT, ev), m = ZSTD_compress(z, sizeof z, ev, n, 1);
    fz_buf b = {0};
    bool closed;
    got g;
    packed(&b, z, m, "zstd");
    server_open(&v, NULL, 0);
    int fd = dial(&v);
    give(&v, fd, b.data, b.len);
    assert_int_equal(take(fd, out, 7, &closed), 7);
    assert_int_equal(records(&v, &g, 1, 10000), 1);
    assert_int_equal(g.time_ns, NS_(123456789));
    fz_buf_free(&b);
    close(fd);
    server_close(&v);
}

/* 64 MB of zeros in some 60 kB: found while it is unpacked; no answer, closed, others unharmed. */
static void compression_bomb(void **state) {
    (void)state;
    server v = {0};
    size_t big = 64 << 20;
    uint8_t *zeros = fz_calloc(1, big), *z = fz_malloc(1 << 20);
    struct libdeflate_compressor *gz = libdeflate_alloc_compressor(6);
    size_t m = libdeflate_gzip_compress(gz, zeros, big, z, 1 << 20);
    assert_true(m > 0);
    fz_buf b = {0};
    packed(&b, z, m, "gzip");
    libdeflate_free_compressor(gz);
    fz_free(zeros);
    server_open(&v, NULL, 0);
    int other = dial(&v), fd = dial(&v);
    give(&v, fd, b.data, b.len);
    expect_closed(fd);
    assert_int_equal(v.f->stats.refused, 1);
    uint8_t in[64], out[64];
    bool closed;
    size_t n = hex("93 a1 74 c4 13 " EVENT CHUNK, in);
    give(&v, other, in, n);
    assert_int_equal(take(other, out, 14, &closed), 14);
    close(other);
    fz_buf_free(&b);
    fz_free(z);
    server_close(&v);
}

static void deep_nesting_takes_no_stack(void **state) {
    (void)state;
    server v = {0};
    fz_buf b = {0};
    server_open(&v, NULL, 0);
    mp_put_array(&b, 3);
    mp_put_str(&b, "t", 1);
    mp_put_int(&b, 1);
    mp_put_map(&b, 1);
    mp_put_str(&b, "x", 1);
    for (int i = 0; i < 3000000; i++) fz_buf_putc(&b, (char)0x91);
    mp_put_nil(&b);
    int fd = dial(&v);
    give(&v, fd, b.data, b.len);
    for (int i = 0; i < 2000 && v.f->stats.events == 0; i++) usleep(5000);
    assert_int_equal(v.f->stats.events, 1);
    close(fd);
    fz_buf_free(&b);
    server_close(&v);
}

/* ---- large messages in pieces, a spool that is full ---- */

static void add_event(fz_buf *b, uint32_t i) {
    char pad[100];
    memset(pad, 'x', sizeof pad);
    mp_put_array(b, 2);
    mp_put_int(b, (int64_t)i + 1);
    mp_put_map(b, 2);
    mp_put_str(b, "i", 1);
    mp_put_int(b, i);
    mp_put_str(b, "pad", 3);
    mp_put_str(b, pad, sizeof pad);
}

typedef struct sender { int fd; fz_buf *b; } sender;
static void *send_all(void *cx) {
    sender *s = cx;
    for (size_t at = 0; at < s->b->len;) {
        ssize_t n = send(s->fd, s->b->data + at, s->b->len - at, MSG_NOSIGNAL);
        if (n <= 0) return NULL;
        at += (size_t)n;
    }
    return NULL;
}

/* Messages of 2 MB through a spool of 1 MB, which is trimmed as they are read: each event once, in order; the answers come when the last piece is durable. */
static void pieces_under_back_pressure(void **state) {
    (void)state;
    enum { EVENTS = 16000, MESSAGES = 3 };
    server v = {0};
    fz_pair o = {.key = "spool.max-size", .value = "1 mb"};
    fz_buf b = {0};
    server_open(&v, &o, 1);
    for (uint32_t m = 0; m < MESSAGES; m++) {
        fz_buf payload = {0};
        mp_put_array(&b, 3);
        mp_put_str(&b, "t", 1);
        if (m != 1) {
            for (uint32_t i = 0; i < EVENTS; i++) add_event(&payload, m * EVENTS + i);
            mp_put_bin(&b, payload.data, payload.len);
        } else {
            mp_put_array(&b, EVENTS);
            for (uint32_t i = 0; i < EVENTS; i++) add_event(&b, m * EVENTS + i);
        }
        fz_buf_free(&payload);
        mp_put_map(&b, 1);
        mp_put_str(&b, "chunk", 5);
        mp_put_str(&b, "z", 1);
    }
    int fd = dial(&v);
    sender s = {fd, &b};
    pthread_t t;
    pthread_create(&t, NULL, send_all, &s);
    uint32_t seen = 0;
    fz_error err;
    int64_t give_up = fz_now_ms() + 60000;
    while (seen < MESSAGES * EVENTS && fz_now_ms() < give_up) {
        fz_chunk *c;
        bool done;
        assert_int_equal(src_poll(v.s, 0, 100, &c, &done, &err), FZ_OK);
        if (!c) continue;
        for (uint32_t i = 0; i < c->n; i++, seen++) assert_int_equal(c->rec[i].time_ns, ((int64_t)seen + 1) * 1000000000);
        int64_t to = c->to;
        uint32_t split = 0;
        fz_chunk_release(c);
        assert_int_equal(src_report(v.s, &split, &to, 1, &err), FZ_OK);
    }
    assert_int_equal(seen, MESSAGES * EVENTS);
    uint8_t out[64];
    bool closed;
    assert_int_equal(take(fd, out, 7 * MESSAGES, &closed), 7 * MESSAGES);
    pthread_join(t, NULL);
    assert_int_equal(v.f->stats.events, MESSAGES * EVENTS);
    assert_int_equal(v.f->stats.messages, MESSAGES);
    close(fd);
    fz_buf_free(&b);
    server_close(&v);
}

/* ---- the handshake ---- */

static void sha512(const char *const *parts, const size_t *n, int k, char out[129]) {
    unsigned char md[64];
    unsigned len;
    EVP_MD_CTX *cx = EVP_MD_CTX_new();
    EVP_DigestInit_ex(cx, EVP_sha512(), NULL);
    for (int i = 0; i < k; i++) EVP_DigestUpdate(cx, parts[i], n[i]);
    EVP_DigestFinal_ex(cx, md, &len);
    EVP_MD_CTX_free(cx);
    for (int i = 0; i < 64; i++) snprintf(out + 2 * i, 3, "%02x", md[i]);
}

typedef struct login { const char *key, *user, *password; bool ok; } login;

static void log_in(server *v, const login *l) {
    uint8_t in[512];
    bool closed;
    int fd = dial(v);
    /* 92 a4 HELO 83 a5 nonce c4 10 .. a4 auth c4 10 .. | a0, a9 keepalive c3 */
    size_t want = v->f->secrets.username ? 65 : 48;
    assert_int_equal(take(fd, in, want, &closed), want);
    assert_memory_equal(in, "\x92\xa4HELO\x83\xa5nonce\xc4\x10", 15);
    const char *nonce = (const char *)in + 15, *auth = (const char *)in + 38;
    char hash[129], pass[129], pong[129];
    sha512((const char *const[]){"salt", "client", nonce, l->key}, (const size_t[]){4, 6, 16, strlen(l->key)}, 4, hash);
    sha512((const char *const[]){auth, l->user, l->password}, (const size_t[]){16, strlen(l->user), strlen(l->password)}, 3, pass);
    sha512((const char *const[]){"salt", "srv", nonce, l->key}, (const size_t[]){4, 3, 16, strlen(l->key)}, 4, pong);
    fz_buf b = {0};
    mp_put_array(&b, 6);
    mp_put_str(&b, "PING", 4);
    mp_put_str(&b, "client", 6);
    mp_put_bin(&b, "salt", 4);
    mp_put_str(&b, hash, 128);
    mp_put_str(&b, l->user, strlen(l->user));
    mp_put_str(&b, pass, 128);
    give(v, fd, b.data, b.len);
    fz_buf_free(&b);
    if (l->ok) {
        size_t m = 1 + 5 + 1 + 1 + 4 + 130;
        assert_int_equal(take(fd, in, m, &closed), m);
        assert_memory_equal(in, "\x95\xa4PONG\xc3\xa0\xa3srv\xd9\x80", 14);
        assert_memory_equal(in + 14, pong, 128);
        uint8_t msg[64];
        size_t n = hex("93 a1 74 c4 13 " EVENT CHUNK, msg);
        give(v, fd, msg, n);
        assert_int_equal(take(fd, in, 14, &closed), 14);
        close(fd);
        return;
    }
    assert_int_equal(take(fd, in, 7, &closed), 7);
    assert_memory_equal(in, "\x95\xa4PONG\xc2", 7);
    take(fd, in, sizeof in, &closed);
    assert_true(closed);
    close(fd);
}

static void handshake(void **state) {
    (void)state;
    fz_pair o[] = {{.key = "shared-key", .value = "sesame"}, {.key = "self-hostname", .value = "srv"}, {.key = "username", .value = "u"}, {.key = "password", .value = "p"}};
    static const login cases[] = {{"sesame", "u", "p", true}, {"sesame", "u", "q", false}, {"sesame", "v", "p", false}, {"sesam", "u", "p", false}, {"sesame", "", "", false}};
    for (int users = 0; users < 2; users++) {
        server v = {0};
        server_open(&v, o, users ? 4 : 2);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            login l = cases[i];
            if (!users) l.ok = strcmp(l.key, "sesame") == 0;
            log_in(&v, &l);
        }
        uint64_t failed = users ? 4 : 1;
        assert_int_equal(v.f->stats.logins_failed, failed);
        /* Events before a PING, and a first message too long to be one. */
        static const char *const early[] = {"93 a1 74 c4 13 " EVENT CHUNK, "92 a1 74 c5 20 00"};
        for (int i = 0; i < 2; i++) {
            uint8_t b[64], in[128];
            bool closed;
            int fd = dial(&v);
            size_t n = hex(early[i], b), helo = users ? 65 : 48;
            assert_int_equal(take(fd, in, helo, &closed), helo);
            give(&v, fd, b, n);
            expect_closed(fd);
        }
        server_close(&v);
    }
}

/* ---- options ---- */

static void options(void **state) {
    (void)state;
    static const struct { fz_pair o[4]; const char *code; } cases[] = {
        {{{.key = "listen", .value = "0.0.0.0:24224"}}, "listen.open"},
        {{{.key = "listen", .value = "0.0.0.0:24224"}, {.key = "shared-key", .value = "k"}}, NULL},
        {{{.key = "listen", .value = "0.0.0.0:24224"}, {.key = "allow-unauthenticated", .value = "true"}}, NULL},
        {{{.key = "listen", .value = "127.0.0.1:24224"}, {.key = "msgpack.json-field", .value = "log"}}, NULL},
        {{{.key = "listen", .value = "127.0.0.1:24224"}, {.key = "json.ignore-parse-errors", .value = "true"}}, "option.unknown"},
        {{{.key = "listen", .value = "127.0.0.1:24224"}, {.key = "username", .value = "u"}}, "option.conflict"},
        {{{.key = "listen", .value = "127.0.0.1:24224"}, {.key = "username", .value = "u"}, {.key = "password", .value = "u"}}, "option.conflict"},
        {{{.key = "listen", .value = "127.0.0.1:24224"}, {.key = "sharedkey", .value = "u"}}, "option.unknown"},
        {{{.key = "format", .value = "msgpack"}}, "option.missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fz_pair o[5] = {{.key = "connector", .value = "forward"}};
        size_t n = 1;
        for (; n < 5 && cases[i].o[n - 1].key; n++) o[n] = cases[i].o[n - 1];
        fz_error err = {0};
        fz_status rc = src_check(o, n, "t", &err);
        if (cases[i].code) assert_string_equal(rc == FZ_OK ? "OK" : err.code, cases[i].code);
        else if (rc != FZ_OK) fail_msg("case %zu: %s", i, err.message);
    }
    assert_true(fz_option_secret("shared-key"));
}

static void heartbeat(void **state) {
    (void)state;
    server v = {0};
    fz_pair o = {.key = "heartbeat.udp", .value = "true"};
    server_open(&v, &o, 1);
    const char *a = net_listener_address(v.f->s.listeners[0]), *colon = strrchr(a, ':');
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)strtol(colon + 1, NULL, 10)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    uint8_t b[8] = {0xff};
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(send(fd, "\0\0", 2, 0), 2); /* two bytes are no heartbeat */
    assert_int_equal(send(fd, "\0", 1, 0), 1);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 10000), 1);
    assert_int_equal(recv(fd, b, sizeof b, 0), 1);
    assert_int_equal(b[0], 0);
    assert_int_equal(v.f->stats.heartbeats, 1);
    close(fd);
    server_close(&v);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_form_cut_at_every_byte), cmocka_unit_test(all_at_once), cmocka_unit_test(answers), cmocka_unit_test(answers_after_half_close),
                                       cmocka_unit_test(refusals), cmocka_unit_test(zstd_payload), cmocka_unit_test(compression_bomb), cmocka_unit_test(deep_nesting_takes_no_stack),
                                       cmocka_unit_test(pieces_under_back_pressure), cmocka_unit_test(handshake), cmocka_unit_test(options), cmocka_unit_test(heartbeat)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
