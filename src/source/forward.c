/* The connector 'forward': a server of the Fluentd forward protocol v1, to which Fluent Bit, fluentd, FireLens, Docker's fluentd driver and the fluent-logger libraries send.
 *
 * Answers ({"ack": chunk}) are given when the events are durable in the spool. A sender whose answer was lost sends its chunk again, and its events are in the table twice: chunk ids are not remembered,
 * which the protocol allows.
 *
 * What it does not take: JSON connections (closed with a line in the log), metrics and traces of Fluent Bit (fluent_signal 1 and 2: the same).
 */
#include "source/forward_int.h"
#include <unistd.h>

static const fz_option forward_options[] = {
    SRC_LISTEN_OPTIONS,
    SRC_SPOOL_OPTIONS,
    {.name = "format", .type = FZ_OPT_STRING, .dflt = "msgpack", .doc = "Format of a record, which is the MessagePack map of one event."},
    {.name = "value.format", .type = FZ_OPT_STRING, .doc = "The same as format."},
    {.name = "shared-key", .type = FZ_OPT_STRING, .doc = "Key that clients must know too (fluentd: shared_key; Fluent Bit: Shared_Key). Connections then begin with the protocol's handshake."},
    {.name = "self-hostname", .type = FZ_OPT_STRING, .doc = "Name by which the server goes in the handshake; default: the host's name. fluentd refuses a server of its own name."},
    {.name = "username", .type = FZ_OPT_STRING, .doc = "User that clients must name in the handshake. Needs 'shared-key' and 'password'."},
    {.name = "password", .type = FZ_OPT_STRING, .doc = "Password of 'username'."},
    {.name = "heartbeat.udp", .type = FZ_OPT_BOOL, .dflt = "false", .doc = "Whether UDP heartbeats (fluentd: heartbeat_type udp) are answered, on the same address and port. TCP heartbeats always are."},
    {0}};

static const src_metadata_column forward_metadata[] = {{"tag", "STRING"}, {"time", "TIMESTAMP_LTZ(6) NOT NULL"}, {"record", "STRING"}, {"arrival_time", "TIMESTAMP_LTZ(3) NOT NULL"}, {NULL, NULL}};

static fz_status forward_check(const fz_pair *o, size_t n, fz_error *err) {
    const char *key = fz_pair_get(o, n, "shared-key"), *user = fz_pair_get(o, n, "username"), *password = fz_pair_get(o, n, "password");
    net_listen_options unused;
    if (key && !*key) return fz_fail(err, FZ_USER, "option.invalid", "option 'shared-key' is empty");
    if (!user != !password) return fz_fail(err, FZ_USER, "option.conflict", "options 'username' and 'password' go together");
    if (user && !key) return fz_fail(err, FZ_USER, "option.conflict", "option 'username' needs 'shared-key': users are asked for in the handshake");
    if (!key && fz_pair_get(o, n, "self-hostname")) return fz_fail(err, FZ_USER, "option.conflict", "option 'self-hostname' needs 'shared-key'");
    return src_listen_options(NULL, o, n, "listen", key != NULL, &unused, err);
}

/* ---- heartbeats ---- */
static void on_heartbeat(void *cx, const uint8_t *p, size_t n, const char *peer) {
    forward_source *f = cx;
    (void)peer;
    if (n != 1) return; /* one byte: never more is sent than came */
    atomic_fetch_add_explicit(&f->stats.heartbeats, 1, memory_order_relaxed);
    for (uint32_t i = 0; i < f->s.n_listeners; i++)
        if (f->s.datagrams[i]) net_datagram_answer(f->s.listeners[i], p, n);
}

/* On the address that the stream listener has got, also when the port was 0. */
static fz_status listen_heartbeats(forward_source *f, const net_listen_options *stream, fz_error *err) {
    net_listen_options lo = {.address = stream->address};
    if (f->s.n_listeners) lo.address = net_listener_address(f->s.listeners[0]);
    return src_spooled_datagrams(&f->s, &lo, on_heartbeat, f, err);
}

/* ---- life ---- */
static void take_secrets(forward_source *f, const fz_pair *o, size_t n) {
    char host[256] = "localhost";
    const char *key = fz_pair_get(o, n, "shared-key"), *name = fz_pair_get(o, n, "self-hostname"), *user = fz_pair_get(o, n, "username");
    if (!key) return;
    if (gethostname(host, sizeof host - 1) != 0) memcpy(host, "localhost", sizeof "localhost");
    f->secrets.shared_key = fz_strdup(key);
    f->secrets.self_hostname = fz_strdup(name ? name : host);
    if (!user) return;
    f->secrets.username = fz_strdup(user);
    f->secrets.password = fz_strdup(fz_pair_get(o, n, "password"));
}

static void free_secret(const char *s) {
    if (s) explicit_bzero((void *)(uintptr_t)s, strlen(s));
    fz_free((void *)(uintptr_t)s);
}

static unsigned long long got(const _Atomic uint64_t *c) { return (unsigned long long)atomic_load_explicit(c, memory_order_relaxed); }

static void forward_ended(src_spooled *s) {
    forward_source *f = (forward_source *)s;
    fwd_stats *t = &f->stats;
    if (s->spool)
        fz_log(FZ_LOG_INFO, "forward.ended", FZ_KV("table", "%s", s->base.cx.table), FZ_KV("messages", "%llu", got(&t->messages)), FZ_KV("events", "%llu", got(&t->events)), FZ_KV("broken_events", "%llu", got(&t->broken)),
               FZ_KV("acknowledgements", "%llu", got(&t->acked)), FZ_KV("connections_refused", "%llu", got(&t->refused)), FZ_KV("metrics_or_traces_refused", "%llu", got(&t->signals)),
               FZ_KV("failed_logins", "%llu", got(&t->logins_failed)), NULL);
    fwd_batch_free(&f->batch);
    fz_buf_free(&f->unpacked);
    free_secret(f->secrets.shared_key);
    free_secret(f->secrets.self_hostname);
    free_secret(f->secrets.username);
    free_secret(f->secrets.password);
}

static fz_status forward_open(const fz_pair *o, size_t n, const src_context *cx, src_source **out, fz_error *err) {
    FZ_TRY(forward_check(o, n, err));
    forward_source *f = FZ_NEW(forward_source);
    net_listen_options lo;
    f->s.ended = forward_ended;
    take_secrets(f, o, n);
    fz_status rc = src_spooled_open(&f->s, &src_forward_ops, o, n, cx, err);
    if (rc == FZ_OK) rc = src_listen_options(&f->s, o, n, "listen", f->secrets.shared_key != NULL, &lo, err);
    if (rc == FZ_OK) {
        f->max_message = lo.max_message;
        rc = src_spooled_stream(&f->s, &lo, NULL, &fwd_proto, f, err);
    }
    if (rc == FZ_OK && src_option_bool(o, n, "heartbeat.udp", false)) rc = listen_heartbeats(f, &lo, err);
    if (rc == FZ_OK) *out = &f->s.base;
    else src_spooled_close(&f->s.base);
    return rc;
}

static void forward_metrics(src_source *base, src_metric_fn fn, void *cx) {
    const forward_source *x = (const forward_source *)base;
    const src_counter own[] = {{FZ_M_FORWARD_MESSAGES, NULL, &x->stats.messages}, {FZ_M_FORWARD_EVENTS, NULL, &x->stats.events}, {FZ_M_FORWARD_BROKEN, NULL, &x->stats.broken}, {FZ_M_FORWARD_ACKED, NULL, &x->stats.acked}, {FZ_M_FORWARD_REFUSED, NULL, &x->stats.refused}, {FZ_M_FORWARD_SIGNALS, NULL, &x->stats.signals}, {FZ_M_FORWARD_LOGINS, NULL, &x->stats.logins_failed}, {FZ_M_FORWARD_HEARTBEATS, NULL, &x->stats.heartbeats}};
    src_spooled_metrics((src_spooled *)base, own, sizeof own / sizeof *own, fn, cx);
}

const src_ops src_forward_ops = {
    .name = "forward",
    .doc = "A server of the Fluentd forward protocol: Fluent Bit, fluentd, FireLens and the fluent-logger libraries send to it. Events are acknowledged when they are durable; a chunk that is sent again is taken again.",
    .options = forward_options,
    .metadata = forward_metadata,
    .format = "msgpack",
    .open = forward_open,
    .check = forward_check,
    .metrics = forward_metrics,
    SRC_SPOOLED_OPS};
