/* Fuzzes the forward connector's front end: the walker, messages, events, the handshake and the connection, which is driven with a model of the listener and the spool in place of sockets.
 *
 * Whatever pieces a stream comes in, and whenever the spool has no room, the records that it takes and the answers that it gives are those of the same stream in one piece and with room:
 * each event once, in order. Small pieces (FWD_PIECE) make messages be appended in parts.
 *
 * Compiled and run by test/fuzz/replay.sh. Input: 8 bytes that steer pieces and failures, then the stream.
 */
#define FWD_PIECE 24u
#define net_conn_write model_write
#define net_conn_pause model_pause
#define net_conn_resume model_resume
#define net_conn_end model_end
#define net_conn_peer model_peer
#define src_spooled_append model_append
#define src_spooled_hold model_hold
#define src_spooled_let_go model_let_go
#define src_spooled_forget model_forget
#include "../../src/source/forward_message.c"
#include "../../src/source/forward_auth.c"
#include "../../src/source/forward_conn.c"
#include <stdio.h>
#include <stdlib.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "fuzz_forward.c:%d: %s\n", __LINE__, #x), abort()))
enum { MAX_MESSAGE = 4096, MAX_WAIT = 4096 };

static struct {
    fz_buf taken, out;       /* records with tag and time; what was written */
    bool paused, held, ended;
    uint64_t fail;           /* bit by bit: does the next append find no room? 0: never again */
    struct { src_durable_fn fn; void *cx; } wait[MAX_WAIT];
    uint32_t n_wait;
} m;

void model_write(net_conn *c, const void *p, size_t n) { (void)c, fz_buf_append(&m.out, p, n); }
void model_pause(net_conn *c) { (void)c, m.paused = true; }
void model_resume(net_conn *c) { (void)c, m.paused = false; }
void model_end(net_conn *c) { (void)c, m.ended = true; }
const char *model_peer(const net_conn *c) { return (void)c, "peer"; }
void model_hold(src_spooled *s, net_conn *c) { (void)s, (void)c, m.held = true; }
void model_let_go(src_spooled *s, const net_conn *c) { (void)s, (void)c; }
void model_forget(src_spooled *s, const void *cx) { (void)s, (void)cx, m.n_wait = 0; }

fz_status model_append(src_spooled *s, const spool_frame *f, uint32_t n, src_durable_fn fn, void *cx, fz_error *err) {
    (void)s;
    bool no_room = m.fail & 1;
    m.fail >>= 1;
    if (no_room) return fz_fail(err, FZ_RETRY, "spool.full", "no room");
    for (uint32_t i = 0; i < n; i++) {
        CHECK(f[i].n > 0);
        for (uint32_t k = 0; k < f[i].n; k++) {
            CHECK(f[i].len[k] > 0);
            fz_buf_append(&m.taken, f[i].context, f[i].context_len);
            fz_buf_append(&m.taken, &f[i].time_ns[k], 8);
            fz_buf_append(&m.taken, f[i].at[k], f[i].len[k]);
        }
    }
    if (fn) {
        CHECK(m.n_wait < MAX_WAIT);
        m.wait[m.n_wait].fn = fn;
        m.wait[m.n_wait++].cx = cx;
    }
    return FZ_OK;
}

static void become_durable(uint32_t keep) {
    while (m.n_wait > keep) {
        src_durable_fn fn = m.wait[0].fn;
        void *cx = m.wait[0].cx;
        memmove(m.wait, m.wait + 1, --m.n_wait * sizeof *m.wait);
        fn(cx, true);
    }
}

static forward_source source;

/* The stream in steps, as the listener hands it out: all that is not consumed, from a block of the exact size. */
static void drive(const uint8_t *p, size_t n, size_t step, uint64_t fail) {
    m.taken.len = m.out.len = m.n_wait = 0;
    m.paused = m.held = m.ended = false;
    m.fail = fail;
    conn *c = fwd_proto.open(&source, NULL);
    size_t at = 0, have = 0;
    for (uint32_t round = 0; !m.ended && (have < n || m.held) && round < 100000; round++) {
        if (m.paused && !m.held) {
            become_durable(0);
            continue;
        }
        m.held = m.paused = false;
        have = have + step < n ? have + step : n;
        uint8_t *exact = malloc(have - at + (have == at));
        memcpy(exact, p + at, have - at);
        if (have > at) {
            size_t used = fwd_proto.data(c, exact, have - at);
            CHECK(used <= have - at);
            at += used;
        }
        free(exact);
        if (round % 3 == 0) become_durable(1);
    }
    if (!m.ended) fwd_proto.eof(c, p + at, n - at);
    become_durable(0);
    fwd_proto.close(c);
}

/* The end of a value is the same however it comes, and where mp_skip sees it. */
static void walk(const uint8_t *p, size_t n, size_t step) {
    const uint8_t *at = p;
    mp_scan s = {0};
    mp_result whole = mp_skip(&at, p + n), r = MP_MORE;
    for (size_t have = step < n ? step : n;; have = have + step < n ? have + step : n) {
        r = mp_scan_more(&s, p, have, SIZE_MAX);
        if (r != MP_MORE || have == n) break;
    }
    CHECK(r == whole);
    if (r == MP_OK) CHECK(s.at == (size_t)(at - p));
    mp_shape shape = {0}; /* one value after another, as if they were alike */
    for (const uint8_t *x = p, *y = p; x < p + n && mp_skip(&x, p + n) == MP_OK;) CHECK(mp_skip_like(&y, p + n, &shape) == MP_OK && x == y);
    at = p;
    CHECK(mp_skip_like(&at, p + n, &shape) == whole && (whole == MP_OK || at == p));
    mp_item v;
    for (at = p; mp_read(&at, p + n, &v) == MP_OK;) CHECK(at <= p + n && (v.type < MP_STR || v.type == MP_ARRAY || v.type == MP_MAP || v.p + v.n <= p + n));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static fz_buf taken, out;
    if (size < 9) return 0;
    fz_log_set_level(FZ_LOG_ERROR);
    uint64_t steer;
    memcpy(&steer, data, 8);
    const uint8_t *p = data + 8;
    size_t n = size - 8, step = 1 + (size_t)(steer & 63);
    if (n > 65536) return 0;
    source.max_message = MAX_MESSAGE;
    walk(p, n, step);
    fwd_secrets secrets = {"srv", "key", steer & 64 ? "u" : NULL, "p"};
    fwd_hello hello = {{1}, {2}};
    fz_buf pong = {0};
    bool ok;
    const char *why;
    fz_error err;
    if (fwd_ping(&secrets, &hello, p, n, &pong, &ok, &why, &err) == FZ_OK) CHECK(pong.len > 0 && ok == !why);
    fz_buf_free(&pong);
    drive(p, n, n, 0);
    taken.len = out.len = 0;
    fz_buf_append(&taken, m.taken.data, m.taken.len);
    fz_buf_append(&out, m.out.data, m.out.len);
    bool ended = m.ended;
    drive(p, n, step, steer >> 8);
    CHECK(m.taken.len == taken.len && (!taken.len || memcmp(m.taken.data, taken.data, taken.len) == 0));
    CHECK(m.out.len == out.len && (!out.len || memcmp(m.out.data, out.data, out.len) == 0));
    CHECK(m.ended == ended);
    return 0;
}

#include "replay.h"
