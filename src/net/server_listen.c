/* Listeners: options with their defaults, accepting, who is let in, and the sweep that finds what is over its time.
 *
 * Invariants
 *  1. Above max_connections nobody is let in: TCP and TLS are closed, HTTP is answered 503 (NET_REFUSING of them at a time, the rest is closed).
 *  2. A sweep looks at each connection several times within its shortest time-out.
 */
#include "net/server_int.h"
#include <errno.h>
#include <netinet/tcp.h>
#include <unistd.h>

void net_options_fill(net_listen_options *out, const net_listen_options *in) {
    *out = *in;
    if (!out->max_connections) out->max_connections = 1024;
    if (!out->max_message) out->max_message = (size_t)16 << 20;
    if (!out->max_buffered) out->max_buffered = (size_t)32 << 20;
    if (out->handshake_timeout_ms <= 0) out->handshake_timeout_ms = 10000;
    if (out->message_timeout_ms <= 0) out->message_timeout_ms = 30000;
    if (out->idle_timeout_ms <= 0) out->idle_timeout_ms = 300000;
    out->address = out->tls_cert = out->tls_key = out->tls_ca = NULL;
}

/* No descriptors or memory for more: the backlog waits a moment, else the loop would spin. */
static void on_retry(evutil_socket_t fd, short what, void *cx) {
    (void)fd;
    (void)what;
    net_listener *l = cx;
    if (!l->stopped) event_add(l->ev, NULL);
}

static void rest(net_listener *l, int e) {
    uint64_t suppressed;
    if (fz_log_allowed(&l->log_limit, 1, 10000, &suppressed))
        fz_log(FZ_LOG_WARN, "listen.accept", FZ_KV("address", "%s", l->address), FZ_KV("reason", "%s", strerror(e)), NULL);
    event_del(l->ev);
    event_add(l->retry, &(struct timeval){0, 100000});
}

static void let_in(net_listener *l, int fd, const struct sockaddr_storage *peer) {
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    bool full = atomic_load_explicit(&l->open, memory_order_relaxed) >= l->o.max_connections;
    if (full) net_count(&l->refused, 1);
    if (full && (l->kind != NET_HTTP || l->ssl || l->n_refusing >= NET_REFUSING)) {
        close(fd);
        return;
    }
    if (!full) net_count(&l->accepted, 1);
    net_conn *c = net_conn_make(l, fd, peer);
    if (full) {
        c->refusing = true;
        l->n_refusing++;
        net_conn_refuse(c, HTTP_BUSY);
    } else {
        atomic_fetch_add_explicit(&l->open, 1, memory_order_relaxed);
        net_conn_pump(c, false);
    }
}

static void on_accept(evutil_socket_t fd, short what, void *cx) {
    (void)what;
    net_listener *l = cx;
    for (int i = 0; i < 64; i++) {
        struct sockaddr_storage peer = {0};
        socklen_t n = sizeof peer;
        int got = accept4(fd, (struct sockaddr *)&peer, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (got >= 0) {
            let_in(l, got, &peer);
            continue;
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK) return;
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            rest(l, errno);
            return;
        } /* else this one peer's trouble */
    }
}

static void on_sweep(evutil_socket_t fd, short what, void *cx) {
    (void)fd;
    (void)what;
    net_listener *l = cx;
    int64_t now = net_now_ms();
    for (net_conn *c = l->conns, *next; c; c = next) {
        next = c->next;
        net_conn_sweep(c, now);
    }
    if (l->starving) net_conn_favour(l);
}

static int64_t sweep_ms(const net_listen_options *o) {
    int64_t least = o->handshake_timeout_ms < o->message_timeout_ms ? o->handshake_timeout_ms : o->message_timeout_ms;
    if (o->idle_timeout_ms < least) least = o->idle_timeout_ms;
    least /= 8;
    return least < 10 ? 10 : least > 500 ? 500 : least;
}

fz_status net_listener_make(net_loop *loop, net_kind kind, const net_listen_options *o, const char *alpn, net_listener **out, fz_error *err) {
    *out = NULL;
    if ((o->tls_key || o->tls_ca) && !o->tls_cert) return fz_fail(err, FZ_USER, "listen.tls", "TLS needs a certificate of the server ('tls.cert' and 'tls.key')");
    net_listener *l = FZ_NEW(net_listener);
    l->loop = loop;
    l->kind = kind;
    l->fd = -1;
    net_options_fill(&l->o, o);
    if (o->tls_cert) l->tls_files = net_tls_files_new(o, alpn); /* first: what is written meanwhile is a change */
    fz_status rc = o->tls_cert ? net_server_tls(o, alpn, &l->ssl, err) : FZ_OK;
    if (rc == FZ_OK) rc = net_address_bind(o->address, kind == NET_DATAGRAMS ? SOCK_DGRAM : SOCK_STREAM, &l->fd, l->address, err);
    if (rc != FZ_OK) {
        net_listener_free(l);
        return rc;
    }
    *out = l;
    return FZ_OK;
}

static void start(void *cx) {
    net_listener *l = cx;
    l->next = l->loop->listeners;
    l->loop->listeners = l;
    if (l->kind == NET_DATAGRAMS) {
        net_udp_arm(l);
        return;
    }
    int64_t ms = sweep_ms(&l->o);
    l->ev = event_new(l->loop->base, l->fd, EV_READ | EV_PERSIST, on_accept, l);
    l->sweep = event_new(l->loop->base, -1, EV_PERSIST, on_sweep, l);
    l->retry = evtimer_new(l->loop->base, on_retry, l);
    event_add(l->sweep, &(struct timeval){ms / 1000, ms % 1000 * 1000});
    event_add(l->ev, NULL);
}
void net_listener_start(net_listener *l) { net_loop_run(l->loop, start, l); }

static void stop(void *cx) {
    net_listener *l = cx;
    if (l->stopped) return;
    l->stopped = true;
    event_del(l->ev);
    if (l->retry) event_del(l->retry);
    if (l->kind != NET_DATAGRAMS) { /* who connects from now on is told at once; datagrams stay with the kernel */
        close(l->fd);
        l->fd = -1;
    }
    for (net_conn *c = l->conns; c; c = c->next) net_loop_again(l->loop, c);
}
void net_listener_stop(net_listener *l) { net_loop_run(l->loop, stop, l); }

void net_listener_free(net_listener *l) {
    net_http_forget(l);
    if (l->ev) event_free(l->ev);
    if (l->sweep) event_free(l->sweep);
    if (l->retry) event_free(l->retry);
    if (l->fd >= 0) close(l->fd);
    SSL_CTX_free(l->ssl);
    net_tls_files_free(l->tls_files);
    fz_free(l);
}

fz_status net_listen_stream(net_loop *loop, const net_listen_options *o, const char *alpn, const net_proto *p, void *cx, net_listener **out, fz_error *err) {
    net_listener *l;
    FZ_TRY(net_listener_make(loop, NET_STREAM, o, alpn, &l, err));
    l->proto = *p;
    l->cx = cx;
    *out = l; /* before traffic: the protocol may look at it */
    net_listener_start(l);
    return FZ_OK;
}

fz_status net_listen_http(net_loop *loop, const net_listen_options *o, net_http_fn fn, void *cx, net_listener **out, fz_error *err) {
    net_listener *l;
    FZ_TRY(net_listener_make(loop, NET_HTTP, o, "http/1.1", &l, err));
    l->proto = net_http_proto;
    l->cx = l;
    l->http = fn;
    l->http_cx = cx;
    *out = l;
    net_listener_start(l);
    return FZ_OK;
}

net_stats net_listener_stats(const net_listener *l) {
    return (net_stats){.accepted = l->accepted, .refused = l->refused, .timed_out = l->timed_out, .too_large = l->too_large, .tls_failed = l->tls_failed,
                       .open = l->open, .bytes_in = l->bytes_in, .buffered = l->buffered};
}
const char *net_listener_address(const net_listener *l) { return l->address; }
