/* The base of listening connectors, through a connector made here: its messages are lines over TCP, and each read of the socket is one frame that is answered by its number of lines. */
#include "unit.h"
#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "source/spooled.h"

static char dir[64];
static int setup(void **state) {
    (void)state;
    fz_log_set_level(FZ_LOG_OFF);
    snprintf(dir, sizeof dir, "/tmp/frazil-spooled-XXXXXX");
    return mkdtemp(dir) ? 0 : 1;
}
static int teardown(void **state) {
    (void)state;
    (void)!fz_fault_arm(NULL, NULL);
    char *cmd = fz_asprintf("rm -rf '%s'", dir);
    int rc = system(cmd);
    fz_free(cmd);
    return rc;
}
#define OK(call) do { fz_error e_ = {0}; fz_error *err_ = &e_; if ((call) != FZ_OK) fail_msg("%s: %s %s", #call, e_.code, e_.message); } while (0)

/* ---- the connector 'lines' ---- */
typedef struct lines_source { src_spooled s; src_frame frame; } lines_source;
typedef struct lines_ack { struct lines_conn *c; uint32_t n; } lines_ack;
typedef struct lines_conn { lines_source *l; net_conn *c; } lines_conn;
static _Atomic int not_durable, given, refused;

static void *lines_open(void *cx, net_conn *c) {
    lines_conn *x = FZ_NEW(lines_conn);
    *x = (lines_conn){cx, c};
    return x;
}
static void answer(void *cx, bool durable) {
    lines_ack *a = cx;
    atomic_fetch_add(durable ? &given : &not_durable, 1);
    char text[32];
    int n = snprintf(text, sizeof text, "%u\n", a->n);
    if (durable) net_conn_write(a->c->c, text, (size_t)n);
    fz_free(a);
}
static size_t lines_data(void *state, const uint8_t *p, size_t n) {
    lines_conn *x = state;
    src_frame *f = &x->l->frame;
    size_t at = 0;
    src_frame_reset(f);
    fz_buf_puts(&f->context, net_conn_peer(x->c));
    for (const uint8_t *q; (q = memchr(p + at, '\n', n - at)); at = (size_t)(q - p) + 1) src_frame_add(f, p + at, (uint32_t)(q - p - (ptrdiff_t)at), p[at] == 't' ? 123456789 : INT64_MIN);
    if (!f->n) return 0;
    spool_frame sf = src_frame_of(f, 1700000000000);
    lines_ack *a = FZ_NEW(lines_ack);
    *a = (lines_ack){x, f->n};
    fz_error err;
    fz_status rc = src_spooled_append(&x->l->s, &sf, 1, answer, a, &err);
    if (rc == FZ_OK) return at;
    fz_free(a);
    if (rc != FZ_RETRY) return SIZE_MAX;
    atomic_fetch_add(&refused, 1);
    src_spooled_hold(&x->l->s, x->c);
    return 0;
}
static void lines_eof(void *state, const uint8_t *p, size_t n) { (void)state; (void)p; (void)n; }
static void lines_close(void *state) {
    lines_conn *x = state;
    src_spooled_let_go(&x->l->s, x->c);
    for (size_t i = 0; i < x->l->s.ack_n; i++) { /* as a real connector would keep a list of its own */
        src_ack *a = &x->l->s.acks[(x->l->s.ack_at + i) % x->l->s.ack_cap];
        if (!a->fn || ((lines_ack *)a->cx)->c != x) continue;
        lines_ack *mine = a->cx;
        src_spooled_forget(&x->l->s, mine);
        fz_free(mine);
    }
    fz_free(x);
}
static const net_proto proto = {.open = lines_open, .data = lines_data, .eof = lines_eof, .close = lines_close};
static void lines_ended(src_spooled *s) { src_frame_free(&((lines_source *)s)->frame); }

static const src_ops lines_ops;
static fz_status lines_start(const fz_pair *o, size_t n, const src_context *cx, src_source **out, fz_error *err) {
    lines_source *l = FZ_NEW(lines_source);
    l->s.ended = lines_ended;
    net_listen_options lo;
    fz_status rc = src_spooled_open(&l->s, &lines_ops, o, n, cx, err);
    if (rc == FZ_OK) rc = src_listen_options(&l->s, o, n, "listen", false, &lo, err);
    if (rc == FZ_OK) rc = src_spooled_stream(&l->s, &lo, NULL, &proto, l, err);
    if (rc == FZ_OK) *out = &l->s.base;
    else src_spooled_close(&l->s.base);
    return rc;
}
static const fz_option options[] = {SRC_LISTEN_OPTIONS, SRC_SPOOL_OPTIONS, {.name = NULL}};
static const src_ops lines_ops = {.name = "lines", .doc = "", .options = options, .open = lines_start, SRC_SPOOLED_OPS};

static src_context context(void) { return (src_context){.table = "db.my table", .job = "j", .readers = 2, .memory = 4 << 20, .state_dir = dir}; }
static fz_status try_open(const fz_pair *more, size_t n_more, const src_context *cx, src_source **out, fz_error *err) {
    fz_pair o[8] = {{.key = "connector", .value = "lines"}};
    size_t n = 1;
    bool listens = false;
    for (size_t i = 0; i < n_more; i++) {
        o[n++] = more[i];
        listens |= strcmp(more[i].key, "listen") == 0;
    }
    if (!listens) o[n++] = (fz_pair){.key = "listen", .value = "127.0.0.1:0"};
    src_register_for_test("lines", &lines_ops);
    return src_open(o, n, cx, out, err);
}
static src_source *open_lines(const char *max_size) {
    fz_pair o = {.key = "spool.max-size", .value = max_size};
    src_context cx = context();
    src_source *s = NULL;
    atomic_store(&given, 0);
    atomic_store(&not_durable, 0);
    atomic_store(&refused, 0);
    OK(try_open(&o, 1, &cx, &s, err_));
    return s;
}

/* ---- a client ---- */
static int dial(src_source *s) {
    const char *address = net_listener_address(((src_spooled *)s)->listeners[0]);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1))};
    inet_pton(AF_INET, "127.0.0.1", &a.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}
static void say(int fd, const char *text) { assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text)); }
/* Sums the answers until `want` lines are acknowledged, or nothing comes for wait_ms. */
static uint64_t hear(int fd, uint64_t want, int wait_ms) {
    static char line[32];
    static size_t len;
    uint64_t sum = 0;
    struct pollfd p = {fd, POLLIN, 0};
    len = 0;
    while (sum < want && poll(&p, 1, wait_ms) == 1) {
        char c;
        if (read(fd, &c, 1) != 1) break;
        if (c != '\n' && len < sizeof line - 1) line[len++] = c;
        else {
            line[len] = 0;
            sum += strtoull(line, NULL, 10);
            len = 0;
        }
    }
    return sum;
}

static fz_chunk *poll_chunk(src_source *s) {
    fz_chunk *c = NULL;
    bool done = false;
    OK(src_poll(s, 0, 5000, &c, &done, err_));
    assert_false(done);
    return c;
}

/* ---- tests ---- */
static void test_way(void **state) {
    (void)state;
    src_source *s = open_lines("1 mb");
    char *id = fz_strdup(src_identity(s));
    assert_true(fz_starts(id, "spool:"));
    assert_int_equal(strlen(id), 42);
    assert_true(src_replayable(s) && !src_bounded(s));
    assert_int_equal(src_n_splits(s), 1);
    const src_split *sp = src_get_split(s, 0);
    assert_string_equal(sp->topic, "lines");
    assert_int_equal(sp->start, 0);
    assert_true(sp->start_is_earliest);
    int fd = dial(s);
    say(fd, "one\ntwo\n\nthree");
    assert_int_equal(hear(fd, 3, 5000), 3);
    say(fd, "t\n");
    assert_int_equal(hear(fd, 1, 5000), 1);
    assert_int_equal(src_lag(s), 4);
    OK(src_assign(s, 0, 0, err_));
    fz_chunk *c = poll_chunk(s);
    assert_int_equal(c->n, 4); /* two frames, one chunk */
    assert_int_equal(c->from, 0);
    assert_int_equal(c->to, 4);
    static const char *const want[] = {"one", "two", "", "threet"};
    for (uint32_t i = 0; i < 4; i++) {
        const fz_record *r = &c->rec[i];
        assert_int_equal(r->value_len, strlen(want[i]));
        assert_memory_equal(r->value, want[i], strlen(want[i]));
        assert_int_equal(r->offset, i);
        assert_int_equal(r->timestamp_ms, 1700000000000);
        assert_int_equal(r->time_ns, i % 2 ? 123456789 : 0); /* "two", "threet" */
        assert_true(r->key_len > 10 && memcmp(r->key, "127.0.0.1:", 10) == 0);
    }
    uint64_t hash = src_record_hash(&c->rec[2]);
    fz_chunk *none = NULL;
    bool done;
    OK(src_poll(s, 1, 0, &none, &done, err_)); /* the other reader has no split */
    assert_null(none);
    OK(src_poll(s, 0, 0, &none, &done, err_));
    assert_null(none);
    assert_int_equal(src_lag(s), 0);
    assert_true(src_behind(s, 0, -1) == 0 && src_behind(s, 0, 1) == 3 && src_behind(s, 0, 4) == 0); /* what is committed is another matter */
    fz_chunk_release(c);
    close(fd);
    src_close(s);

    s = open_lines("1 mb");
    assert_string_equal(src_identity(s), id);
    int64_t low, high;
    OK(src_bounds(s, 0, &low, &high, err_));
    assert_int_equal(low, 0);
    assert_int_equal(high, 4);
    src_probe p;
    OK(src_probe_before(s, 0, 3, &p, err_));
    assert_int_equal(p.result, SRC_PROBE_OK);
    assert_int_equal(p.offset, 2);
    assert_int_equal(p.timestamp_ms, 1700000000000);
    assert_true(p.hash == hash);
    OK(src_probe_before(s, 0, 5, &p, err_));
    assert_int_equal(p.result, SRC_PROBE_BEYOND);
    OK(src_probe_before(s, 0, 0, &p, err_));
    assert_int_equal(p.result, SRC_PROBE_GONE);
    OK(src_assign(s, 0, 3, err_));
    c = poll_chunk(s);
    assert_int_equal(c->n, 1);
    assert_int_equal(c->from, 3);
    fz_chunk_release(c);
    src_close(s);
    fz_free(id);
}

/* A frame of more records than a chunk holds is dealt to several chunks; large records are marked. */
static void test_large_frame(void **state) {
    (void)state;
    src_context cx = context();
    cx.max_record_size = 10;
    src_source *s = NULL;
    OK(try_open(NULL, 0, &cx, &s, err_));
    src_spooled *b = (src_spooled *)s;
    enum { N = 20000 };
    src_frame f = {0};
    for (uint32_t i = 0; i < N; i++) {
        char text[16];
        snprintf(text, sizeof text, "%0*u", i % 1000 == 0 ? 12 : 6, i);
        src_frame_add(&f, text, (uint32_t)strlen(text), i % 2 ? (int64_t)i : INT64_MIN);
    }
    spool_frame sf = src_frame_of(&f, 77);
    uint64_t ticket;
    OK(spool_append(b->spool, &sf, 1, 0, &ticket, err_));
    OK(spool_wait(b->spool, ticket, 5000, err_));
    src_frame_free(&f);
    OK(src_assign(s, 0, 100, err_));
    fz_chunk *all[8];
    uint32_t n = 0;
    int64_t at = 100;
    while (at < N) {
        fz_chunk *c = all[n++] = poll_chunk(s);
        assert_non_null(c);
        assert_true(c->n <= FZ_BATCH_ROWS);
        assert_int_equal(c->from, at);
        at = c->to;
    }
    assert_int_equal(n, 3);
    at = 100;
    for (uint32_t k = 0; k < n; k++) {
        for (uint32_t i = 0; i < all[k]->n; i++, at++) {
            const fz_record *r = &all[k]->rec[i];
            assert_int_equal(r->offset, at);
            assert_int_equal(r->time_ns, at % 2 ? at : 0);
            assert_int_equal(r->oversized, at % 1000 == 0);
            assert_int_equal(r->value_len, at % 1000 == 0 ? 12 : 6);
            char text[8];
            snprintf(text, sizeof text, "%06u", (unsigned)at);
            if (!r->oversized) assert_memory_equal(r->value, text, 6);
        }
        fz_chunk_release(all[k]);
    }
    assert_int_equal(at, N);
    src_close(s);
}

/* A full spool: the sender waits, nothing is dropped, all goes on when records have been committed. */
static void test_back_pressure(void **state) {
    (void)state;
    src_source *s = open_lines("1 mb");
    int fd = dial(s);
    enum { LINES = 3000, LINE = 1000 };
    char *line = fz_malloc(LINE + 1);
    memset(line, 'x', LINE - 1);
    line[LINE - 1] = '\n';
    line[LINE] = 0;
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < LINES; i++) {
            line[0] = (char)('a' + i % 19);
            for (size_t done = 0; done < LINE;) {
                ssize_t w = write(fd, line + done, LINE - done);
                if (w <= 0) _exit(1);
                done += (size_t)w;
            }
        }
        _exit(0);
    }
    uint64_t acked = hear(fd, LINES, 1000);
    assert_true(acked > 500 && acked < 1100);
    assert_true(src_spooled_full((src_spooled *)s));
    assert_true(atomic_load(&refused) > 0);
    OK(src_assign(s, 0, 0, err_));
    int64_t at = 0;
    uint32_t none = 0;
    for (fz_chunk *c; at < LINES && none < 50;) {
        bool done;
        OK(src_poll(s, 0, 200, &c, &done, err_));
        if (!c) {
            none++;
            continue;
        }
        for (uint32_t i = 0; i < c->n; i++) {
            assert_int_equal(c->rec[i].value_len, LINE - 1);
            assert_int_equal(c->rec[i].value[0], 'a' + c->rec[i].offset % 19);
        }
        at = c->to;
        fz_chunk_release(c);
        uint32_t split = 0;
        OK(src_report(s, &split, &at, 1, err_));
    }
    assert_int_equal(at, LINES);
    assert_int_equal(acked + hear(fd, LINES - acked, 2000), LINES);
    int64_t low, high;
    OK(src_bounds(s, 0, &low, &high, err_));
    assert_true(low > LINES / 2);
    close(fd);
    fz_free(line);
    src_close(s);
}

/* A disk that fails: no acknowledgement; when the source ends, those who wait are told so. */
static void test_disk_fails(void **state) {
    (void)state;
    src_source *s = open_lines("1 mb");
    int fd = dial(s);
    OK(fz_fault_arm("spool.fsync:0:eio", err_));
    say(fd, "lost?\n");
    assert_int_equal(hear(fd, 1, 300), 0);
    assert_int_equal(src_lag(s), 0);
    OK(fz_fault_arm(NULL, err_));
    assert_int_equal(hear(fd, 1, 5000), 1);
    OK(fz_fault_arm("spool.fsync:0:eio", err_));
    say(fd, "lost!\n");
    assert_int_equal(hear(fd, 1, 300), 0);
    close(fd);
    src_close(s);
    OK(fz_fault_arm(NULL, err_));
    assert_int_equal(atomic_load(&given), 1);
    s = open_lines("1 mb");
    assert_int_equal(src_lag(s), 1);
    src_close(s);
}

static void test_refusals(void **state) {
    (void)state;
    src_source *s = open_lines("1 mb"), *t = NULL;
    src_context cx = context();
    fz_error err = {0};
    assert_int_equal(try_open(NULL, 0, &cx, &t, &err), FZ_USER);
    assert_string_equal(err.code, "spool.in-use");
    /* only looked at: no lock, no port, the same identity */
    cx.look = true;
    OK(try_open(NULL, 0, &cx, &t, err_));
    assert_string_equal(src_identity(t), src_identity(s));
    const src_doors *doors = src_listens(t);
    assert_int_equal(doors->n, 1);
    assert_string_equal(doors->v[0].address, "127.0.0.1:0");
    assert_false(doors->v[0].datagrams || doors->v[0].authenticated || doors->v[0].tls_cert);
    assert_non_null(strstr(doors->spool_dir, "/spool/"));
    assert_int_equal(doors->spool_max, 1 << 30);
    assert_null(src_listens(s)); /* it does listen */
    assert_int_equal(src_assign(t, 0, 0, &err), FZ_FATAL);
    src_close(t);
    src_close(s);
    cx.table = "other";
    OK(try_open(NULL, 0, &cx, &t, err_));
    assert_string_equal(src_identity(t), "spool:new");
    src_close(t);
    cx = context();
    cx.state_dir = NULL;
    assert_int_equal(try_open(NULL, 0, &cx, &t, &err), FZ_USER);
    assert_string_equal(err.code, "source.no-state-dir");
    cx = context();
    static const struct { const char *key, *value, *code; } bad[] = {{"listen", "0.0.0.0:0", "listen.open"}, {"spool.max-size", "1 kb", "option.invalid"}, {"max-connections", "0", "option.invalid"},
        {"max-message-size", "3 bytes", "option.invalid"}, {"idle-timeout", "0 s", "option.invalid"}, {"tls.cert", "/x", "option.conflict"}, {"spool.size", "1", "option.unknown"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fz_pair o = {.key = bad[i].key, .value = bad[i].value};
        assert_int_equal(try_open(&o, 1, &cx, &t, &err), FZ_USER);
        assert_string_equal(err.code, bad[i].code);
    }
    fz_pair o[] = {{.key = "listen", .value = "0.0.0.0:0"}, {.key = "allow-unauthenticated", .value = "true"}};
    OK(try_open(o, 2, &cx, &t, err_));
    src_close(t);
}

/* Numbers that leap are covered by the range of a chunk. */
static void test_hole(void **state) {
    (void)state;
    src_source *s = open_lines("1 mb");
    int fd = dial(s);
    say(fd, "one\ntwo\n");
    assert_int_equal(hear(fd, 2, 5000), 2);
    close(fd);
    src_close(s);
    char *path = fz_asprintf("%s/spool/db.my%%20table/%020d.seg", dir, 0);
    FILE *f = fopen(path, "ab");
    assert_non_null(f);
    fputs("half a frame", f);
    fclose(f);
    fz_free(path);
    s = open_lines("1 mb");
    OK(src_assign(s, 0, 2, err_)); /* nothing is behind the hole: the position goes over it all the same, or a drain would never end */
    fz_chunk *empty = poll_chunk(s);
    assert_int_equal(empty->n, 0);
    assert_int_equal(empty->from, 2);
    assert_int_equal(empty->to, src_get_split(s, 0)->high);
    fz_chunk_release(empty);
    assert_int_equal(src_lag(s), 0);
    OK(src_assign(s, 0, 0, err_));
    fd = dial(s);
    say(fd, "three\n");
    assert_int_equal(hear(fd, 1, 5000), 1);
    assert_int_equal(src_lag(s), 3);
    OK(src_assign(s, 0, 1, err_));
    fz_chunk *c = poll_chunk(s);
    assert_int_equal(c->n, 2);
    assert_int_equal(c->from, 1);
    assert_int_equal(c->rec[0].offset, 1);
    assert_memory_equal(c->rec[1].value, "three", 5);
    assert_int_equal(c->to, c->rec[1].offset + 1);
    src_probe p;
    OK(src_probe_before(s, 0, c->rec[1].offset, &p, err_)); /* over the hole */
    assert_int_equal(p.result, SRC_PROBE_OK);
    assert_int_equal(p.offset, 1);
    assert_true(p.hash == src_record_hash(&c->rec[0]));
    OK(src_probe_before(s, 0, c->rec[1].offset - 1000, &p, err_)); /* in it */
    assert_int_equal(p.offset, 1);
    fz_chunk_release(c);
    close(fd);
    src_close(s);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {T(test_way), T(test_large_frame), T(test_back_pressure), T(test_disk_fails), T(test_refusals), T(test_hole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
