/* The connector 'syslog': RFC 5424 and RFC 3164 messages over UDP, TCP and TLS. A record is one message as it came, without the trailer that ends it; the format 'syslog' reads it.
 *
 * The protocol has no acknowledgement. Over TCP and TLS a sender is made to wait when there is no room; over UDP the kernel's buffer fills, and then datagrams are lost, which Linux counts (`refused` of the
 * listener). What was read is durable within a few milliseconds; a process that is killed before that loses it, and nobody is told.
 *
 * Datagrams are gathered by peer until the loop has handed out all that have come, so that a burst is one append.
 * Threads: everything but open and close runs in the source's loop.
 */
#include "source/syslog_int.h"

#define IDLE_MS 86400000 /* a sender whose idle connection was closed loses the message with which it finds out */
enum { MOST_DATAGRAM_FRAME = 64 << 10 };

static const fz_option syslog_options[] = {
    SRC_LISTEN_ADDRESS,
    {.name = "protocol", .type = FZ_OPT_ENUM, .dflt = "tcp", .allowed = "tcp|udp|tls", .doc = "Transport: TCP (RFC 6587: a length before each message, or LF or NUL behind it, told apart message by message), UDP (RFC 5426), or TLS (RFC 5425), which needs 'tls.cert' and 'tls.key'."},
    SRC_CONNECTION_OPTIONS,
    {.name = "idle-timeout", .type = FZ_OPT_DURATION, .dflt = "1 d", .doc = "Time without a message after which a connection is closed. A sender loses the message with which it finds out."},
    SRC_SPOOL_OPTIONS,
    {.name = "format", .type = FZ_OPT_STRING, .dflt = "syslog", .doc = "Format of a record, which is the text of one message."},
    {.name = "value.format", .type = FZ_OPT_STRING, .doc = "The same as format."},
    {0}};

static const src_metadata_column syslog_metadata[] = {{"peer", "STRING NOT NULL"}, {"arrival_time", "TIMESTAMP_LTZ(3) NOT NULL"}, {"record", "STRING NOT NULL"}, {NULL, NULL}};

static bool protocol_is(const fz_pair *o, size_t n, const char *name) {
    const char *v = fz_pair_get(o, n, "protocol");
    return fz_ieq(v ? v : "tcp", name);
}

static fz_status listen_options(src_spooled *s, const fz_pair *o, size_t n, net_listen_options *lo, fz_error *err) {
    FZ_TRY(src_listen_options(s, o, n, "listen", false, lo, err));
    if (protocol_is(o, n, "tls") && !lo->tls_cert) return fz_fail(err, FZ_USER, "option.missing", "option 'protocol' = 'tls' needs 'tls.cert' and 'tls.key'");
    if (!protocol_is(o, n, "tls") && lo->tls_cert) return fz_fail(err, FZ_USER, "option.conflict", "option 'tls.cert' needs 'protocol' = 'tls'");
    if (!fz_pair_get(o, n, "idle-timeout")) lo->idle_timeout_ms = IDLE_MS;
    return FZ_OK;
}

static fz_status syslog_check(const fz_pair *o, size_t n, fz_error *err) {
    net_listen_options unused;
    return listen_options(NULL, o, n, &unused, err);
}

/* ---- datagrams ---- */

/* As many of those that wait as there is room for; the rest stays. */
static void flush(syslog_source *f) {
    uint32_t at = 0;
    for (; at < f->n_waiting; at++) {
        fz_error err;
        uint64_t suppressed;
        spool_frame v = src_frame_of(&f->waiting[at], fz_now_ms());
        fz_status rc = src_spooled_append(&f->s, &v, 1, NULL, NULL, &err);
        if (rc == FZ_OK) sys_count(&f->stats.datagrams, v.n);
        else if (rc == FZ_DATA) {
            sys_count(&f->stats.lost, v.n);
            if (fz_log_allowed(&f->log_limit, 5, 60000, &suppressed)) fz_log_error(FZ_LOG_WARN, "syslog.lost", &err);
        } else {
            src_spooled_hold_datagrams(&f->s);
            break;
        }
        src_frame_reset(&f->waiting[at]);
    }
    for (uint32_t i = at; at && i < f->n_waiting; i++) { /* the memory of those that are empty moves behind */
        src_frame t = f->waiting[i - at];
        f->waiting[i - at] = f->waiting[i];
        f->waiting[i] = t;
    }
    f->n_waiting -= at;
}

static void flush_later(void *cx) {
    syslog_source *f = cx;
    f->flush_posted = false;
    flush(f);
}

static src_frame *frame_for(syslog_source *f, const char *peer, size_t more) {
    size_t n = strlen(peer);
    src_frame *last = f->n_waiting ? &f->waiting[f->n_waiting - 1] : NULL;
    if (last && last->bytes.len + more <= MOST_DATAGRAM_FRAME && last->context.len == n && memcmp(last->context.data, peer, n) == 0) return last;
    if (f->n_waiting == f->cap_waiting) {
        f->cap_waiting = f->cap_waiting ? f->cap_waiting * 2 : 8;
        f->waiting = fz_realloc(f->waiting, f->cap_waiting * sizeof *f->waiting);
        memset(f->waiting + f->n_waiting, 0, (f->cap_waiting - f->n_waiting) * sizeof *f->waiting);
    }
    last = &f->waiting[f->n_waiting++];
    src_frame_reset(last);
    fz_buf_append(&last->context, peer, n);
    return last;
}

static void on_datagram(void *cx, const uint8_t *p, size_t n, const char *peer) {
    syslog_source *f = cx;
    n = sys_trimmed(p, n);
    if (!n) return;
    src_frame_add(frame_for(f, peer, n), p, (uint32_t)n, INT64_MIN);
    if (f->flush_posted) return;
    f->flush_posted = true;
    net_loop_call(f->s.loop, flush_later, f);
}

/* ---- life ---- */

static void on_room(src_spooled *s) {
    syslog_source *f = (syslog_source *)s;
    sys_conn_room(f);
    if (f->n_waiting) flush(f);
}

static unsigned long long got(const _Atomic uint64_t *c) { return (unsigned long long)atomic_load_explicit(c, memory_order_relaxed); }

static void syslog_ended(src_spooled *s) {
    syslog_source *f = (syslog_source *)s;
    sys_stats *t = &f->stats;
    for (uint32_t i = 0; i < f->n_waiting; i++) sys_count(&t->lost, f->waiting[i].n);
    if (s->base.cx.look) return;
    fz_log(FZ_LOG_INFO, "syslog.ended", FZ_KV("table", "%s", s->base.cx.table), FZ_KV("messages", "%llu", got(&t->messages)), FZ_KV("octet_counted", "%llu", got(&t->counted)), FZ_KV("datagrams", "%llu", got(&t->datagrams)),
           FZ_KV("cut_off", "%llu", got(&t->cut_off)), FZ_KV("refused", "%llu", got(&t->refused)), FZ_KV("lost", "%llu", got(&t->lost)), NULL);
    for (uint32_t i = 0; i < f->cap_waiting; i++) src_frame_free(&f->waiting[i]);
    fz_free(f->waiting);
    src_frame_free(&f->frame);
}

static fz_status syslog_open(const fz_pair *o, size_t n, const src_context *cx, src_source **out, fz_error *err) {
    FZ_TRY(syslog_check(o, n, err));
    syslog_source *f = FZ_NEW(syslog_source);
    net_listen_options lo;
    f->s.ended = syslog_ended;
    f->s.room = on_room;
    fz_status rc = src_spooled_open(&f->s, &src_syslog_ops, o, n, cx, err);
    if (rc == FZ_OK) rc = listen_options(&f->s, o, n, &lo, err);
    if (rc == FZ_OK) {
        f->max_message = lo.max_message;
        if (protocol_is(o, n, "udp")) rc = src_spooled_datagrams(&f->s, &lo, on_datagram, f, err);
        else rc = src_spooled_stream(&f->s, &lo, NULL, &sys_proto, f, err);
    }
    if (rc == FZ_OK) *out = &f->s.base;
    else src_spooled_close(&f->s.base);
    return rc;
}

static void syslog_metrics(src_source *base, src_metric_fn fn, void *cx) {
    const syslog_source *x = (const syslog_source *)base;
    const src_counter own[] = {{FZ_M_SYSLOG_MESSAGES, NULL, &x->stats.messages}, {FZ_M_SYSLOG_COUNTED, NULL, &x->stats.counted}, {FZ_M_SYSLOG_DATAGRAMS, NULL, &x->stats.datagrams}, {FZ_M_SYSLOG_CUT, NULL, &x->stats.cut_off}, {FZ_M_SYSLOG_REFUSED, NULL, &x->stats.refused}, {FZ_M_SYSLOG_LOST, NULL, &x->stats.lost}};
    src_spooled_metrics((src_spooled *)base, own, sizeof own / sizeof *own, fn, cx);
}

const src_ops src_syslog_ops = {
    .name = "syslog",
    .doc = "A server for syslog, RFC 5424 and RFC 3164, over UDP, TCP or TLS. The protocol has no acknowledgement: when there is no room, TCP senders wait; datagrams are lost.",
    .options = syslog_options,
    .metadata = syslog_metadata,
    .format = "syslog",
    .open = syslog_open,
    .check = syslog_check,
    .metrics = syslog_metrics,
    SRC_SPOOLED_OPS};
