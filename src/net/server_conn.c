/* One connection: bytes in to its protocol, bytes out, pauses, its end.
 *
 *     HANDSHAKE ──> OPEN ──net_conn_end──> ENDING ──all written──> LINGER ──> DEAD
 *         └──────────┴── error, the peer has closed, time over ──────────────────┘
 *
 * LINGER: our side is shut, what still comes is thrown away until the peer closes: a close with unread bytes would make the kernel send a reset, and the peer might never read the last
 * answer.
 *
 * Invariants
 *  1. Bytes are read into the loop's scratch; only what the protocol leaves is kept (`in`), so a connection between two messages holds no buffer.
 *  2. The read event is left armed when reading is not wanted, until it fires: a short pause costs no system call.
 *  3. Time stands still (stopped_ms) while the connection is paused or starved.
 */
#include "net/server_int.h"
#include <errno.h>
#include <openssl/err.h>
#include <unistd.h>

static size_t in_left(const net_conn *c) { return c->in.len - c->in_at; }
static size_t out_left(const net_conn *c) { return c->out.len - c->out_at; }
static bool over(const net_listener *l) { return atomic_load_explicit(&l->buffered, memory_order_relaxed) > l->o.max_buffered; }

/* ---- time ---- */

static void time_stops(net_conn *c) {
    if (!c->stopped_ms) c->stopped_ms = net_now_ms();
}
static void time_runs(net_conn *c) {
    if (!c->stopped_ms || c->paused || c->starved) return;
    c->since_ms += net_now_ms() - c->stopped_ms;
    c->stopped_ms = 0;
}

/* ---- memory of all connections ---- */

static void feed_starved(net_listener *l) {
    l->starving = false;
    l->favoured = NULL;
    for (net_conn *c = l->conns; c; c = c->next) {
        if (!c->starved) continue;
        c->starved = false;
        time_runs(c);
        net_loop_again(l->loop, c);
    }
}

static void account(net_conn *c) {
    size_t n = c->in.cap + out_left(c) + c->held;
    net_listener *l = c->l;
    if (n > c->counted) atomic_fetch_add_explicit(&l->buffered, n - c->counted, memory_order_relaxed);
    else if (n < c->counted) atomic_fetch_sub_explicit(&l->buffered, c->counted - n, memory_order_relaxed);
    c->counted = n;
    if (l->starving && !over(l)) feed_starved(l);
}

void net_conn_favour(net_listener *l) {
    if (!over(l)) {
        feed_starved(l);
        return;
    }
    if (l->favoured) return;
    net_conn *best = NULL;
    for (net_conn *c = l->conns; c; c = c->next)
        if (c->phase == CONN_OPEN && c->partial && !c->paused && (!best || c->since_ms < best->since_ms)) best = c;
    if (!best) return;
    l->favoured = best;
    l->favoured_ms = net_now_ms();
    l->favoured_got = 0;
    best->starved = false;
    time_runs(best);
    net_loop_again(l->loop, best);
}

/* How many bytes may be read of it; 0: none, and the books say so when memory is the reason. */
static size_t may_read(net_conn *c) {
    if (c->phase != CONN_OPEN || c->paused || c->eof || out_left(c) > NET_OUT_HIGH) return 0;
    net_listener *l = c->l;
    if (!over(l) || l->favoured == c) return NET_SCRATCH;
    size_t has = in_left(c) + c->held;
    if (has < NET_SIP) return NET_SIP - has;
    l->starving = true;
    if (c->partial && !l->favoured) net_conn_favour(l);
    if (l->favoured == c) return NET_SCRATCH;
    c->starved = true;
    time_stops(c);
    return 0;
}

/* ---- sockets ---- */

static void on_read(evutil_socket_t fd, short what, void *cx) {
    (void)fd;
    (void)what;
    net_conn *c = cx;
    if (c->phase == CONN_ENDING || (c->phase == CONN_OPEN && !may_read(c))) {
        event_del(&c->ev_read);
        c->read_armed = false;
        return;
    }
    net_conn_pump(c, true);
}
static void on_write(evutil_socket_t fd, short what, void *cx) {
    (void)fd;
    (void)what;
    net_conn *c = cx;
    c->write_armed = false;
    net_conn_pump(c, c->read_wants_write);
}

static void arm(net_conn *c) {
    if (!c->read_armed && (c->phase == CONN_HANDSHAKE || c->phase == CONN_LINGER || may_read(c))) {
        event_add(&c->ev_read, NULL);
        c->read_armed = true;
    }
    bool want = c->read_wants_write || out_left(c) > 0;
    if (want && !c->write_armed) event_add(&c->ev_write, NULL);
    else if (!want && c->write_armed) event_del(&c->ev_write);
    c->write_armed = want;
}

enum { IO_AGAIN = -1, IO_ERROR = -2 };

static ssize_t tls_result(net_conn *c, int n, bool reading) {
    if (n > 0) return n;
    int e = SSL_get_error(c->ssl, n);
    ERR_clear_error();
    if (e == SSL_ERROR_WANT_READ) return IO_AGAIN;
    if (e == SSL_ERROR_WANT_WRITE) {
        if (reading) c->read_wants_write = true;
        return IO_AGAIN;
    }
    return e == SSL_ERROR_ZERO_RETURN && reading ? 0 : IO_ERROR;
}

/* 0: the peer has closed. */
static ssize_t receive(net_conn *c, void *p, size_t n) {
    if (c->ssl) {
        c->read_wants_write = false;
        ERR_clear_error();
        return tls_result(c, SSL_read(c->ssl, p, (int)n), true);
    }
    ssize_t got;
    do got = recv(c->fd, p, n, 0);
    while (got < 0 && errno == EINTR);
    if (got >= 0) return got;
    return errno == EAGAIN || errno == EWOULDBLOCK ? IO_AGAIN : IO_ERROR;
}

static ssize_t transmit(net_conn *c, const void *p, size_t n) {
    if (c->ssl) {
        ERR_clear_error();
        return tls_result(c, SSL_write(c->ssl, p, (int)(n > (1u << 20) ? 1u << 20 : n)), false);
    }
    ssize_t sent;
    do sent = send(c->fd, p, n, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent >= 0) return sent;
    return errno == EAGAIN || errno == EWOULDBLOCK ? IO_AGAIN : IO_ERROR;
}

/* false: the connection is gone. */
static bool flush(net_conn *c) {
    if (!out_left(c)) return true;
    ssize_t n = 0;
    while (out_left(c) && (n = transmit(c, c->out.data + c->out_at, out_left(c))) > 0) {
        c->out_at += (size_t)n;
        c->out_ms = net_now_ms();
    }
    if (!out_left(c)) {
        if (c->out.cap > 4096) fz_buf_free(&c->out);
        c->out.len = c->out_at = 0;
    }
    account(c);
    return n != IO_ERROR;
}

/* ---- the protocol's turn ---- */

/* What is unconsumed has moved from `before` bytes by `used`: is a message under way, and since when? */
static void note_message(net_conn *c, size_t left, bool moved) {
    bool partial = c->begun || left > 0;
    if (partial != c->partial || (moved && !c->begun)) {
        c->since_ms = net_now_ms();
        if (c->stopped_ms) c->stopped_ms = c->since_ms;
    }
    c->partial = partial;
    if (!partial && c->l->favoured == c) {
        c->l->favoured = NULL;
        net_conn_favour(c->l);
    }
}

/* Large messages come in pieces, one connection after another: a buffer that has grown for one is good for the next. */
static void let_in_go(net_conn *c) {
    net_loop *l = c->l->loop;
    if (c->in.cap >= NET_LEAST_SPARE && c->in.cap <= NET_MOST_SPARE && l->n_spare < NET_SPARE) {
        l->spare[l->n_spare++] = c->in;
        c->in = (fz_buf){0};
    } else fz_buf_free(&c->in);
    c->in_at = 0;
}
static void keep(net_conn *c, const uint8_t *p, size_t n) {
    net_loop *l = c->l->loop;
    if (!c->in.cap && n >= NET_LEAST_SPARE && l->n_spare) {
        c->in = l->spare[--l->n_spare];
        c->in.len = 0;
    }
    fz_buf_append(&c->in, p, n);
}

/* Hands n bytes at p to the protocol, which stand in scratch or in `in`. false: close. */
static bool deliver(net_conn *c, const uint8_t *p, size_t n, bool in_scratch) {
    c->resumed = false;
    size_t used = c->l->proto.data(c->state, p, n);
    if (used == SIZE_MAX) return false;
    if (used > n) used = n;
    size_t left = c->phase == CONN_OPEN ? n - used : 0; /* ended: the rest is of no use */
    if (in_scratch && left) keep(c, p + used, left);
    if (!in_scratch) c->in_at += used;
    if (!left) let_in_go(c);
    note_message(c, left, used > 0);
    account(c);
    if (left < c->l->o.max_message || c->paused) return true;
    net_count(&c->l->too_large, 1);
    return false;
}

static void at_eof(net_conn *c) {
    c->eof = true;
    if (c->l->proto.eof) c->l->proto.eof(c->state, c->in.data + c->in_at, in_left(c));
    fz_buf_free(&c->in);
    c->in_at = 0;
    account(c);
    if (!c->paused) net_conn_end(c);
}

/* One read. Returns IO_AGAIN when there is no more now, IO_ERROR to close, else 1. */
static int read_once(net_conn *c, size_t most) {
    uint8_t *scratch = c->l->loop->scratch;
    ssize_t n = receive(c, scratch, most);
    if (n < 0) return (int)n;
    if (n == 0) {
        at_eof(c);
        return IO_AGAIN;
    }
    net_count(&c->l->bytes_in, (uint64_t)n);
    if (c->l->favoured == c) c->l->favoured_got += (size_t)n;
    bool ok;
    if (in_left(c)) {
        if (c->in_at) {
            memmove(c->in.data, c->in.data + c->in_at, in_left(c));
            c->in.len = in_left(c);
            c->in_at = 0;
        }
        fz_buf_append(&c->in, scratch, (size_t)n);
        ok = deliver(c, c->in.data, c->in.len, false);
    } else ok = deliver(c, scratch, (size_t)n, true);
    if (!ok) return IO_ERROR;
    return (size_t)n < most && !c->ssl ? IO_AGAIN : 1;
}

static bool read_some(net_conn *c) {
    int rc = 1;
    for (int i = 0; i < NET_READS_PER_TURN && rc == 1; i++) {
        size_t most = may_read(c);
        if (!most) return true; /* what OpenSSL holds is looked for when it goes on */
        rc = read_once(c, most);
    }
    if (rc == 1 && c->ssl) net_loop_again(c->l->loop, c); /* no event comes for what OpenSSL has read already */
    return rc != IO_ERROR;
}

/* ---- begin and end ---- */

static bool open_proto(net_conn *c) {
    c->phase = CONN_OPEN;
    c->since_ms = net_now_ms();
    c->state = c->l->proto.open(c->l->cx, c);
    return c->state != NULL;
}

static void tell_tls_failure(net_conn *c) {
    uint64_t suppressed;
    unsigned long e = ERR_peek_error();
    net_count(&c->l->tls_failed, 1);
    if (fz_log_allowed(&c->l->log_limit, 3, 60000, &suppressed))
        fz_log(FZ_LOG_WARN, "listen.tls-failed", FZ_KV("address", "%s", c->l->address), FZ_KV("peer", "%s", c->peer),
               FZ_KV("reason", "%s", e && ERR_reason_error_string(e) ? ERR_reason_error_string(e) : "the peer has closed"), FZ_KV("suppressed", "%llu", (unsigned long long)suppressed), NULL);
    ERR_clear_error();
}

/* false: to be closed. The phase stays HANDSHAKE while it is not done. */
static bool handshake(net_conn *c) {
    if (!c->l->ssl) return open_proto(c);
    if (!c->ssl) {
        net_tls_renew(c->l);
        c->ssl = SSL_new(c->l->ssl);
        if (!c->ssl || SSL_set_fd(c->ssl, c->fd) != 1) return false;
    }
    c->read_wants_write = false;
    ERR_clear_error();
    int n = SSL_accept(c->ssl), e = SSL_get_error(c->ssl, n);
    if (n == 1) {
        c->tls_name = net_tls_peer_name(c->ssl);
        return open_proto(c);
    }
    if (e == SSL_ERROR_WANT_WRITE) c->read_wants_write = true;
    if (e == SSL_ERROR_WANT_READ || e == SSL_ERROR_WANT_WRITE) return true;
    tell_tls_failure(c);
    return false;
}

net_conn *net_conn_make(net_listener *l, int fd, const struct sockaddr_storage *peer) {
    net_conn *c = FZ_NEW(net_conn);
    c->l = l;
    c->fd = fd;
    c->since_ms = net_now_ms();
    net_address_text(peer, c->peer);
    event_assign(&c->ev_read, l->loop->base, fd, EV_READ | EV_PERSIST, on_read, c);
    event_assign(&c->ev_write, l->loop->base, fd, EV_WRITE, on_write, c);
    c->next = l->conns;
    if (l->conns) l->conns->prev = c;
    l->conns = c;
    return c;
}

static void conn_release(net_conn *c) {
    fz_free(c->tls_name);
    fz_free(c);
}

void net_conn_drop(net_conn *c) {
    if (c->phase == CONN_DEAD) return;
    net_listener *l = c->l;
    c->phase = CONN_DEAD;
    if (c->state && l->proto.close) l->proto.close(c->state);
    c->state = NULL;
    if (c->prev) c->prev->next = c->next;
    else l->conns = c->next;
    if (c->next) c->next->prev = c->prev;
    event_del(&c->ev_read);
    event_del(&c->ev_write);
    SSL_free(c->ssl);
    close(c->fd);
    c->fd = -1;
    fz_buf_free(&c->in);
    fz_buf_free(&c->out);
    c->in_at = c->out_at = c->held = 0;
    if (l->favoured == c) l->favoured = NULL;
    account(c);
    if (l->starving) net_conn_favour(l);
    if (c->refusing) l->n_refusing--;
    else atomic_fetch_sub_explicit(&l->open, 1, memory_order_relaxed);
    if (!c->queued) conn_release(c);
}

void net_conn_refuse(net_conn *c, const char *answer) {
    net_conn_write(c, answer, strlen(answer));
    c->phase = CONN_ENDING;
    net_conn_pump(c, false);
}

/* false: the connection is gone. */
static bool linger(net_conn *c, bool readable) {
    if (c->phase == CONN_ENDING) {
        if (out_left(c)) return true;
        if (c->eof) return false;
        c->phase = CONN_LINGER;
        c->since_ms = net_now_ms();
        if (c->ssl) SSL_shutdown(c->ssl);
        ERR_clear_error();
        shutdown(c->fd, SHUT_WR);
        readable = true;
    }
    if (c->phase != CONN_LINGER || !readable) return true;
    for (int i = 0; i < NET_READS_PER_TURN; i++) {
        ssize_t n = recv(c->fd, c->l->loop->scratch, NET_SCRATCH, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
        if (n <= 0) return false;
        c->lingered += (size_t)n;
        if (c->lingered > NET_LINGER_BYTES) return false;
    }
    return true;
}

static bool busy(const net_conn *c) { return c->partial || c->paused || c->held || out_left(c); }

static bool pump_open(net_conn *c, bool readable) {
    if (c->resumed && in_left(c) && !c->paused && !deliver(c, c->in.data + c->in_at, in_left(c), false)) return false;
    if ((readable || (c->ssl && SSL_has_pending(c->ssl))) && !read_some(c)) return false;
    if (c->l->stopped && c->phase == CONN_OPEN) {
        if (!c->told && c->l->proto.stopping) c->l->proto.stopping(c->state);
        c->told = true;
        if (!busy(c)) net_conn_end(c);
    }
    return true;
}

void net_conn_pump(net_conn *c, bool readable) {
    if (c->phase == CONN_DEAD) {
        conn_release(c);
        return;
    }
    bool ok = true;
    if (c->phase == CONN_HANDSHAKE) ok = handshake(c) && (c->phase == CONN_HANDSHAKE || !c->ssl || pump_open(c, true));
    else if (c->phase == CONN_OPEN) ok = flush(c) && (c->phase != CONN_OPEN || pump_open(c, readable));
    ok = ok && flush(c) && linger(c, readable);
    if (ok) arm(c);
    else net_conn_drop(c);
}

/* ---- time over ---- */

/* A connection counts once, also when its peer then does not read what it is told. */
static void count_timed_out(net_conn *c) {
    if (!c->timed_out) net_count(&c->l->timed_out, 1);
    c->timed_out = true;
}

static void expire(net_conn *c, net_expiry why) {
    if (why == NET_EXPIRED_OVERLOAD) net_count(&c->l->refused, 1);
    else count_timed_out(c);
    if (c->l->favoured == c) c->l->favoured = NULL;
    if (c->l->proto.expired) {
        c->l->proto.expired(c->state, why);
        net_conn_end(c);
        net_conn_pump(c, false);
    } else net_conn_drop(c);
}

/* Has the favoured connection, for which others wait, not got on? */
static bool dawdles(net_conn *c, int64_t now) {
    net_listener *l = c->l;
    int64_t grace = l->o.message_timeout_ms < NET_GRACE_MS ? l->o.message_timeout_ms : NET_GRACE_MS;
    if (c != l->favoured || now - l->favoured_ms <= grace) return false;
    bool got_on = l->favoured_got >= NET_GRACE_BYTES;
    l->favoured_ms = now;
    l->favoured_got = 0;
    return !got_on;
}

void net_conn_sweep(net_conn *c, int64_t now) {
    const net_listen_options *o = &c->l->o;
    if (out_left(c) && now - c->out_ms > o->message_timeout_ms) { /* the peer does not read */
        count_timed_out(c);
        net_conn_drop(c);
    } else if (c->phase == CONN_LINGER) {
        if (now - c->since_ms > NET_LINGER_MS) net_conn_drop(c);
    } else if (c->phase == CONN_HANDSHAKE) {
        if (now - c->since_ms <= o->handshake_timeout_ms) return;
        count_timed_out(c);
        net_conn_drop(c);
    } else if (c->phase == CONN_OPEN && c == c->l->favoured && c->paused) { /* its protocol waits: another may read */
        c->l->favoured = NULL;
    } else if (c->phase == CONN_OPEN && dawdles(c, now)) expire(c, NET_EXPIRED_OVERLOAD);
    else if (c->phase == CONN_OPEN && !c->stopped_ms) {
        if (now - c->since_ms > (c->partial ? o->message_timeout_ms : o->idle_timeout_ms)) expire(c, c->partial ? NET_EXPIRED_MESSAGE : NET_EXPIRED_IDLE);
    }
}

/* ---- what protocols call ---- */

void net_conn_write(net_conn *c, const void *p, size_t n) {
    if (c->phase == CONN_DEAD || !n) return;
    if (!out_left(c)) {
        c->out.len = c->out_at = 0;
        c->out_ms = net_now_ms();
    }
    fz_buf_append(&c->out, p, n);
    account(c);
    net_loop_again(c->l->loop, c);
}
void net_conn_pause(net_conn *c) {
    c->paused = true;
    time_stops(c);
}
void net_conn_resume(net_conn *c) {
    if (!c->paused) return;
    c->paused = false;
    c->resumed = true;
    time_runs(c);
    if (c->phase != CONN_DEAD) net_loop_again(c->l->loop, c);
}
void net_conn_end(net_conn *c) {
    if (c->phase != CONN_OPEN) return;
    c->phase = CONN_ENDING;
    c->out_ms = net_now_ms();
    net_loop_again(c->l->loop, c);
}
void net_conn_message(net_conn *c, bool begun) {
    c->begun = begun;
    if (begun) c->since_ms = net_now_ms();
    note_message(c, in_left(c), false);
}
void net_conn_hold(net_conn *c, size_t bytes) {
    c->held = bytes;
    if (c->phase != CONN_DEAD) account(c);
}
const char *net_conn_peer(const net_conn *c) { return c->peer; }
const char *net_conn_tls_name(const net_conn *c) { return c->tls_name; }
