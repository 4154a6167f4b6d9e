/* One connection over which syslog comes.
 *
 *     OPEN ──peer has closed, no room──> ENDING ──room──> closed
 *
 * Messages are cut out of the stream, gathered in the source's frame and appended: at the end of what has come, and whenever SYS_PIECE bytes are there. Where there is no room they stay unconsumed and the
 * connection is not read from until there is: the peer's writes wait. The protocol has no acknowledgement, so that is all that can be done for a sender.
 *
 * Invariants
 *  1. Only whole messages are consumed. Of a message that is under way a copy is kept (tail), so that it is not lost when the peer closes or is too slow: it is then taken as it is.
 *  2. A length, or a line, above max_message closes the connection; what came before it is kept.
 * Thread: the loop.
 */
#include "source/syslog_int.h"

struct sys_conn {
    syslog_source *f;
    net_conn *net;
    sys_stream stream;
    fz_buf tail;           /* the unconsumed bytes; in ENDING those for which there was no room */
    bool ending, lone;     /* lone: messages are appended one by one, since together they are too large */
    sys_conn *prev, *next; /* of f->ending */
};

static void *conn_open(void *cx, net_conn *net) {
    sys_conn *c = FZ_NEW(sys_conn);
    *c = (sys_conn){.f = cx, .net = net};
    return c;
}

static void say(sys_conn *c, const char *event, const char *what, size_t bytes) {
    uint64_t suppressed;
    if (!fz_log_allowed(&c->f->log_limit, 5, 60000, &suppressed)) return;
    fz_log(FZ_LOG_WARN, event, FZ_KV("table", "%s", c->f->s.base.cx.table), FZ_KV("peer", "%s", net_conn_peer(c->net)), FZ_KV("message", "%s", what), FZ_KV("bytes", "%zu", bytes),
           FZ_KV("suppressed", "%llu", (unsigned long long)suppressed), NULL);
}

/* ---- taking in ---- */

typedef struct gathered { size_t used; uint32_t counted, cut_off; sys_result why; } gathered;

/* Messages into the frame, up to a piece. */
static gathered gather(sys_conn *c, const uint8_t *p, size_t n, bool end) {
    src_frame *fr = &c->f->frame;
    gathered g = {.why = SYS_MESSAGE};
    src_frame_reset(fr);
    while (fr->bytes.len < SYS_PIECE && !(c->lone && fr->n)) {
        sys_message m;
        g.why = sys_next(&c->stream, p + g.used, n - g.used, end, c->f->max_message, &m);
        g.used += m.used;
        if (g.why != SYS_MESSAGE) break;
        if (m.n) src_frame_add(fr, p + g.used - m.used + m.at, (uint32_t)m.n, INT64_MIN);
        g.counted += m.n && m.counted;
        g.cut_off += m.n && m.cut_off;
    }
    return g;
}

static fz_status append(sys_conn *c, const gathered *g, fz_error *err) {
    syslog_source *f = c->f;
    if (!f->frame.n) return FZ_OK;
    const char *peer = net_conn_peer(c->net);
    fz_buf_append(&f->frame.context, peer, strlen(peer));
    spool_frame v = src_frame_of(&f->frame, fz_now_ms());
    FZ_TRY(src_spooled_append(&f->s, &v, 1, NULL, NULL, err));
    sys_count(&f->stats.messages, f->frame.n);
    sys_count(&f->stats.counted, g->counted);
    if (g->cut_off) sys_count(&f->stats.cut_off, g->cut_off);
    return FZ_OK;
}

typedef enum { TOOK, FULL, REFUSED } taken;

/* All messages at p; *used: bytes that need not be seen again. */
static taken take(sys_conn *c, const uint8_t *p, size_t n, bool end, size_t *used) {
    *used = 0;
    for (;;) {
        sys_stream before = c->stream;
        fz_error err;
        gathered g = gather(c, p + *used, n - *used, end);
        fz_status rc = append(c, &g, &err);
        if (rc == FZ_DATA && c->f->frame.n > 1) { /* together they are larger than the spool */
            c->stream = before;
            c->lone = true;
            continue;
        }
        if (rc == FZ_DATA) {
            sys_count(&c->f->stats.lost, 1);
            say(c, "syslog.lost", err.message, c->f->frame.bytes.len);
        } else if (rc != FZ_OK) {
            c->stream = before;
            return FULL;
        }
        *used += g.used;
        if (g.why == SYS_REFUSED) return REFUSED;
        if (g.why == SYS_MORE) return TOOK;
    }
}

static void keep_tail(sys_conn *c, const uint8_t *p, size_t n, bool moved) {
    if (moved || c->tail.len > n) c->tail.len = 0;
    if (!n && c->tail.cap > 4096) fz_buf_free(&c->tail);
    if (n > c->tail.len) fz_buf_append(&c->tail, p + c->tail.len, n - c->tail.len);
    net_conn_hold(c->net, c->tail.cap);
}

static size_t refuse(sys_conn *c, size_t n) {
    sys_count(&c->f->stats.refused, 1);
    say(c, "syslog.refused", "a message is larger than 'max-message-size', or says that it is: the connection is closed", n);
    return SIZE_MAX;
}

static size_t conn_data(void *state, const uint8_t *p, size_t n) {
    sys_conn *c = state;
    size_t used;
    taken t = take(c, p, n, false, &used);
    if (t == REFUSED) return refuse(c, n - used);
    if (t == FULL) src_spooled_hold(&c->f->s, c->net);
    keep_tail(c, p + used, n - used, used > 0);
    return used;
}

/* ---- the end ---- */

/* What was never ended is a message too. false: there is no room. */
static bool take_last(sys_conn *c, const uint8_t *p, size_t n, size_t *used) {
    taken t = n ? take(c, p, n, true, used) : TOOK;
    if (t == REFUSED) (void)refuse(c, n - *used);
    return t != FULL;
}

static void conn_eof(void *state, const uint8_t *p, size_t n) {
    sys_conn *c = state;
    syslog_source *f = c->f;
    size_t used = 0;
    if (take_last(c, p, n, &used)) return;
    keep_tail(c, p + used, n - used, used > 0);
    c->ending = true;
    c->next = f->ending;
    if (c->next) c->next->prev = c;
    f->ending = c;
    net_conn_pause(c->net);
}

static void leave_ending(sys_conn *c) {
    if (!c->ending) return;
    if (c->prev) c->prev->next = c->next;
    else c->f->ending = c->next;
    if (c->next) c->next->prev = c->prev;
    c->prev = c->next = NULL;
    c->ending = false;
}

void sys_conn_room(syslog_source *f) {
    while (f->ending) {
        sys_conn *c = f->ending;
        size_t used = 0;
        bool done = take_last(c, c->tail.data, c->tail.len, &used);
        memmove(c->tail.data, c->tail.data + used, c->tail.len - used);
        c->tail.len -= used;
        if (!done) return;
        c->tail.len = 0;
        leave_ending(c);
        net_conn_end(c->net);
    }
}

static void conn_expired(void *state, net_expiry why) {
    sys_conn *c = state;
    size_t used = 0;
    if (why != NET_EXPIRED_IDLE && c->tail.len) say(c, "syslog.cut-off", "a message did not come to its end in time: what was there is taken, and the connection closed", c->tail.len);
    if (take_last(c, c->tail.data, c->tail.len, &used)) c->tail.len = 0;
}

static void conn_close(void *state) {
    sys_conn *c = state;
    if (c->ending && c->tail.len) {
        sys_count(&c->f->stats.lost, 1);
        say(c, "syslog.lost", "the source ends while there is no room for what a peer sent last", c->tail.len);
    }
    leave_ending(c);
    src_spooled_let_go(&c->f->s, c->net);
    fz_buf_free(&c->tail);
    fz_free(c);
}

const net_proto sys_proto = {.open = conn_open, .data = conn_data, .eof = conn_eof, .close = conn_close, .expired = conn_expired};
