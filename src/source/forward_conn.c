/* One connection of the forward protocol.
 *
 *     HELLO ──right PING──> OPEN ──refused, peer has closed──> ENDING ──all answered──> closed
 *       (only with a shared key)
 *
 * Messages are cut out of the stream, their events gathered in the source's batch, and the batch appended: at the end of what has come, and whenever it holds FWD_PIECE bytes. What a failed append
 * held is forgotten; its messages stay unconsumed and are read anew when there is room, without the events that earlier pieces have taken (skip).
 *
 * Invariants
 *  1. An answer {"ack": chunk} is written when all events of its message are durable, never before, in the order of the messages.
 *  2. A connection that is refused is not read from any more; what it sent before is kept and answered first. The refused message is not answered.
 *  3. Only whole messages are consumed, so that what one holds in memory is the listener's to bound.
 * Thread: the loop.
 */
#include "source/forward_int.h"

typedef enum { CONN_HELLO, CONN_OPEN, CONN_ENDING } conn_state;
typedef struct conn {
    forward_source *f;
    net_conn *net;
    conn_state state;
    bool begun;           /* its first byte was looked at */
    fwd_hello hello;
    mp_scan scan;         /* of the first unconsumed message */
    size_t resume;        /* within the bytes at hand: where the first message begins that is not wholly appended */
    uint32_t skip;        /* its events that were appended already */
    fz_buf answers;       /* of appends that are not durable yet, one after the other */
    size_t answers_at;
    uint32_t *sizes;      /* of those that belong to each append, a ring */
    uint32_t at, n, cap;
} conn;

static void *conn_open(void *cx, net_conn *net) {
    forward_source *f = cx;
    conn *c = FZ_NEW(conn);
    *c = (conn){.f = f, .net = net, .state = CONN_OPEN};
    if (!f->secrets.shared_key) return c;
    fz_buf b = {0};
    fz_error err;
    c->state = CONN_HELLO;
    fz_status rc = fwd_put_helo(&f->secrets, &c->hello, &b, &err);
    if (rc == FZ_OK) net_conn_write(net, b.data, b.len);
    else {
        fz_log_error(FZ_LOG_ERROR, "forward.handshake", &err);
        fz_free(c);
        c = NULL;
    }
    fz_buf_free(&b);
    return c;
}

/* ---- answers ---- */

static void answered(conn *c) {
    if (c->answers_at == c->answers.len) {
        c->answers.len = c->answers_at = 0;
        if (c->answers.cap > 65536) fz_buf_free(&c->answers);
    }
    if (c->state == CONN_ENDING && !c->n) net_conn_end(c->net);
}

static void on_durable(void *cx, bool durable) {
    conn *c = cx;
    uint32_t size = c->sizes[c->at++ % c->cap];
    c->n--;
    if (durable) net_conn_write(c->net, c->answers.data + c->answers_at, size);
    c->answers_at += size;
    bool was_high = c->answers.len - c->answers_at + size > FWD_MAX_WAITING, high = c->answers.len - c->answers_at > FWD_MAX_WAITING;
    if (was_high && !high && c->state != CONN_ENDING) net_conn_resume(c->net);
    answered(c);
}

/* The ring of sizes: c->at counts up and is taken modulo cap, a power of two. */
static void wait_for(conn *c, const fz_buf *answers) {
    if (c->n == c->cap) {
        uint32_t cap = c->cap ? c->cap * 2 : 8, *v = fz_malloc(cap * sizeof *v);
        for (uint32_t i = 0; i < c->n; i++) v[i] = c->sizes[(c->at + i) % c->cap];
        fz_free(c->sizes);
        c->sizes = v;
        c->cap = cap;
        c->at = 0;
    }
    c->sizes[(c->at + c->n++) % c->cap] = (uint32_t)answers->len;
    if (c->answers_at > c->answers.len / 2) {
        memmove(c->answers.data, c->answers.data + c->answers_at, c->answers.len - c->answers_at);
        c->answers.len -= c->answers_at;
        c->answers_at = 0;
    }
    fz_buf_append(&c->answers, answers->data, answers->len);
}

static void count(_Atomic uint64_t *c, uint64_t n) { atomic_fetch_add_explicit(c, n, memory_order_relaxed); }

/* ---- the end ---- */

static void say(conn *c, const char *event, const fz_error *err) {
    uint64_t suppressed;
    if (!fz_log_allowed(&c->f->log_limit, 5, 60000, &suppressed)) return;
    fz_log(FZ_LOG_WARN, event, FZ_KV("table", "%s", c->f->s.base.cx.table), FZ_KV("peer", "%s", net_conn_peer(c->net)), FZ_KV("code", "%s", err->code), FZ_KV("message", "%s", err->message),
           FZ_KV("suppressed", "%llu", (unsigned long long)suppressed), NULL);
}

static void end(conn *c) {
    c->state = CONN_ENDING;
    net_conn_pause(c->net);
    answered(c);
}

/* Takes no more from this peer. */
static void refuse(conn *c, const fz_error *err) {
    count(&c->f->stats.refused, 1);
    say(c, "forward.refused", err);
    end(c);
}

/* ---- messages ---- */

typedef enum { TOOK, FULL, REFUSED } taken;

/* What is in the batch goes into the spool, and its answers into the queue. */
static taken append(conn *c, fz_error *err) {
    forward_source *f = c->f;
    fwd_batch *b = &f->batch;
    if (!b->n && !b->answers.len) return TOOK;
    bool ask = b->answers.len > 0;
    fz_status rc = src_spooled_append(&f->s, fwd_frames(b, fz_now_ms()), b->n_runs, ask ? on_durable : NULL, c, err);
    if (rc == FZ_RETRY) {
        fwd_batch_reset(b);
        return FULL;
    }
    if (rc == FZ_OK) {
        if (ask) wait_for(c, &b->answers);
        count(&f->stats.events, b->n);
        count(&f->stats.messages, b->messages);
        count(&f->stats.acked, b->acks);
        if (b->broken) count(&f->stats.broken, b->broken);
    }
    fwd_batch_reset(b);
    return rc == FZ_OK ? TOOK : REFUSED;
}

/* Unpacks what is compressed. */
static fz_status payload_of(conn *c, const fwd_message *m, const uint8_t **p, size_t *n, fz_error *err) {
    *p = m->events;
    *n = (size_t)(m->end - m->events);
    if (m->mode != FWD_PACKED || m->coding == FWD_PLAIN) return FZ_OK;
    fz_buf *b = &c->f->unpacked;
    b->len = 0;
    FZ_TRY(net_inflate(m->coding == FWD_GZIP ? "gzip" : "zstd", *p, *n, c->f->max_message, b, err));
    *p = b->data;
    *n = b->len;
    return FZ_OK;
}

/* The events of the message that stands at `at`, without those that earlier pieces have. */
static taken take_events(conn *c, const fwd_message *m, size_t at, fz_error *err) {
    const uint8_t *p;
    size_t n;
    if (m->coding != FWD_PLAIN && c->f->batch.n) { /* records of the one before may stand where this one is unpacked */
        taken t = append(c, err);
        if (t != TOOK) return t;
        c->resume = at;
        c->skip = 0;
    }
    if (payload_of(c, m, &p, &n, err) != FZ_OK) return REFUSED;
    fwd_batch *b = &c->f->batch;
    fwd_walk w = fwd_walk_of(m, p, n);
    uint32_t appended = at == c->resume ? c->skip : 0, skip = appended, before = b->n;
    while (fwd_gather(&w, b, m->tag, &skip)) {
        appended += b->n - before;
        before = 0;
        taken t = append(c, err);
        if (t != TOOK) return t;
        c->resume = at;
        c->skip = appended;
    }
    if (m->has_chunk) fwd_put_ack(&b->answers, m);
    b->messages++;
    b->acks += m->has_chunk;
    return TOOK;
}

static taken greet(conn *c, const uint8_t *p, size_t n, fz_error *err) {
    fz_buf pong = {0};
    bool ok;
    const char *why = "";
    fz_status rc = fwd_ping(&c->f->secrets, &c->hello, p, n, &pong, &ok, &why, err);
    if (rc == FZ_OK) net_conn_write(c->net, pong.data, pong.len);
    fz_buf_free(&pong);
    if (rc == FZ_OK && ok) {
        c->state = CONN_OPEN;
        return TOOK;
    }
    count(&c->f->stats.logins_failed, 1);
    if (rc == FZ_OK) (void)fz_fail(err, FZ_DATA, "forward.login", "the handshake failed: %s", why);
    return REFUSED;
}

static taken take_message(conn *c, const uint8_t *p, size_t n, size_t at, fz_error *err) {
    fwd_message m;
    if (c->state == CONN_HELLO && p[0] != 0xc0) return greet(c, p, n, err);
    if (fwd_parse(p, n, &m, err) != FZ_OK) return REFUSED;
    if (m.mode == FWD_KEEP_ALIVE) return TOOK;
    if (m.mode == FWD_CONTROL) {
        (void)fz_fail(err, FZ_DATA, "forward.message", "a message of %u items after the tag '%.*s' is none of the protocol's", m.n, (int)(m.tag.n > 40 ? 40 : m.tag.n), m.tag.p);
        return REFUSED;
    }
    if (m.signal) {
        count(&c->f->stats.signals, 1);
        (void)fz_fail(err, FZ_DATA, "forward.signal", "%s are not taken, only logs (fluent_signal = %lld)", m.signal == 1 ? "metrics" : m.signal == 2 ? "traces" : "signals of this kind", (long long)m.signal);
        return REFUSED;
    }
    return take_events(c, &m, at, err);
}

enum { MOST_PING = 4096 };
static size_t most(const conn *c) { return c->state == CONN_HELLO ? MOST_PING : c->f->max_message; }

/* The next whole message at p. *more: it is not there yet. */
static taken next_message(conn *c, const uint8_t *p, size_t n, bool *more, fz_error *err) {
    *more = false;
    if (!c->begun && (p[0] == '{' || p[0] == '[')) {
        (void)fz_fail(err, FZ_DATA, "forward.json", "the connection begins as JSON; only MessagePack is spoken here");
        return REFUSED;
    }
    c->begun = true;
    switch (mp_scan_more(&c->scan, p, n, most(c))) {
    case MP_MORE: *more = true; return TOOK;
    case MP_OK: return TOOK;
    default: break;
    }
    if (c->scan.at + c->scan.open <= most(c)) (void)fz_fail(err, FZ_DATA, "forward.message", "what came is not MessagePack");
    else if (c->state == CONN_HELLO) (void)fz_fail(err, FZ_DATA, "forward.ping", "the client has not begun with a PING");
    else (void)fz_fail(err, FZ_DATA, "forward.too-large", "a message is larger than 'max-message-size' (%zu bytes)", most(c));
    return REFUSED;
}

/* Takes all whole messages. c->resume: bytes that need not be seen again. */
static taken take_all(conn *c, const uint8_t *p, size_t n, fz_error *err) {
    size_t at = 0;
    while (at < n) {
        bool more;
        taken t = next_message(c, p + at, n - at, &more, err);
        if (t != TOOK) return t;
        if (more) break;
        t = take_message(c, p + at, c->scan.at, at, err);
        if (t != TOOK) return t;
        at += c->scan.at;
        c->scan = (mp_scan){0};
    }
    taken t = append(c, err);
    if (t != TOOK) return t;
    if (at > c->resume) c->skip = 0;
    c->resume = at;
    return TOOK;
}

static size_t conn_data(void *state, const uint8_t *p, size_t n) {
    conn *c = state;
    fz_error err, ignored;
    if (c->state == CONN_ENDING) return n;
    c->resume = 0;
    fwd_batch_reset(&c->f->batch);
    taken t = take_all(c, p, n, &err);
    if (t == REFUSED && append(c, &ignored) == FULL) t = FULL; /* what stood before it in the batch is good */
    if (c->f->unpacked.cap > 4u << 20) fz_buf_free(&c->f->unpacked);
    if (t == REFUSED) {
        refuse(c, &err);
        return n;
    }
    if (t == FULL) {
        c->scan = (mp_scan){0};
        src_spooled_hold(&c->f->s, c->net);
    } else if (c->answers.len - c->answers_at > FWD_MAX_WAITING) net_conn_pause(c->net);
    return c->resume;
}

/* The peer has closed its side; it may still read. A message that is not whole is the peer's to send again. */
static void conn_eof(void *state, const uint8_t *p, size_t n) {
    (void)p;
    conn *c = state;
    if (n && c->state != CONN_ENDING) {
        fz_error err;
        (void)fz_fail(&err, FZ_DATA, "forward.cut-off", "the peer closed in the middle of a message, after %zu bytes of it", n);
        say(c, "forward.cut-off", &err);
    }
    if (c->n) end(c);
}

static void conn_close(void *state) {
    conn *c = state;
    src_spooled_forget(&c->f->s, c);
    src_spooled_let_go(&c->f->s, c->net);
    fz_buf_free(&c->answers);
    fz_free(c->sizes);
    fz_free(c);
}

const net_proto fwd_proto = {.open = conn_open, .data = conn_data, .eof = conn_eof, .close = conn_close};
