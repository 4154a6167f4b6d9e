/* Listening connectors, the taking side: spool and loop, acknowledgements, back-pressure, options. See spooled.h; spooled_read.c has the reading side.
 *
 * The spool's thread says that something has moved (spool_watch); that becomes one call to the loop, however often it says so, and there the acknowledgements that are due are given and
 * held connections go on.
 */
#include "source/spooled.h"
#include "source/spooled_int.h"
#include <inttypes.h>

enum { CLOSE_WAIT_MS = 5000, LEAST_SPOOL_MEMORY = 2 << 20, MOST_SPOOL_MEMORY = 32 << 20, MOST_NAME = 180 };

/* ---- options ---- */
int64_t src_option_size(const fz_pair *o, size_t n, const char *name, int64_t dflt) {
    const char *v = fz_pair_get(o, n, name);
    int64_t x;
    return v && fz_parse_size(v, &x, NULL) == FZ_OK ? x : dflt;
}
int64_t src_option_ms(const fz_pair *o, size_t n, const char *name, int64_t dflt) {
    const char *v = fz_pair_get(o, n, name);
    int64_t x;
    return v && fz_parse_duration_ms(v, &x, NULL) == FZ_OK ? x : dflt;
}
int64_t src_option_int(const fz_pair *o, size_t n, const char *name, int64_t dflt) {
    const char *v = fz_pair_get(o, n, name);
    int64_t x;
    return v && fz_parse_i64(fz_sv_trim(fz_sv_of(v)), &x) ? x : dflt;
}
bool src_option_bool(const fz_pair *o, size_t n, const char *name, bool dflt) {
    const char *v = fz_pair_get(o, n, name);
    int x;
    return v && fz_parse_bool(v, &x, NULL) == FZ_OK ? x : dflt;
}

static fz_status out_of_range(const char *name, const char *range, fz_error *err) { return fz_fail(err, FZ_USER, "option.invalid", "option '%s' must be %s", name, range); }

fz_status src_listen_options(src_spooled *s, const fz_pair *o, size_t n, const char *listen, bool authenticated, net_listen_options *out, fz_error *err) {
    *out = (net_listen_options){.address = fz_pair_get(o, n, listen), .tls_cert = fz_pair_get(o, n, "tls.cert"), .tls_key = fz_pair_get(o, n, "tls.key"), .tls_ca = fz_pair_get(o, n, "tls.ca")};
    if (!out->address) return fz_fail(err, FZ_USER, "option.missing", "option '%s' is missing", listen);
    if (!out->tls_cert != !out->tls_key) return fz_fail(err, FZ_USER, "option.conflict", "options 'tls.cert' and 'tls.key' go together");
    if (out->tls_ca && !out->tls_cert) return fz_fail(err, FZ_USER, "option.conflict", "option 'tls.ca' needs 'tls.cert' and 'tls.key'");
    FZ_TRY(net_listen_check(out->address, authenticated || out->tls_ca, src_option_bool(o, n, "allow-unauthenticated", false), err));
    int64_t conns = src_option_int(o, n, "max-connections", 1024), message = src_option_size(o, n, "max-message-size", 16 << 20);
    if (conns < 1 || conns > 1000000) return out_of_range("max-connections", "from 1 to 1000000", err);
    if (message < 1024 || message > 1 << 30) return out_of_range("max-message-size", "from 1 kb to 1 gb", err);
    out->max_connections = (uint32_t)conns;
    out->max_message = (size_t)message;
    out->message_timeout_ms = src_option_ms(o, n, "message-timeout", 30000);
    out->idle_timeout_ms = src_option_ms(o, n, "idle-timeout", 300000);
    if (out->message_timeout_ms < 1) return out_of_range("message-timeout", "more than 0", err);
    if (out->idle_timeout_ms < 1) return out_of_range("idle-timeout", "more than 0", err);
    if (s) s->authenticated = authenticated || out->tls_ca;
    if (s && s->base.cx.memory / 2 > out->max_message) out->max_buffered = (size_t)(s->base.cx.memory / 2);
    else if (s && s->base.cx.memory) out->max_buffered = out->max_message;
    return FZ_OK;
}

/* ---- life ---- */
/* A table's name as the name of a directory: what is not plain is %XX, what is long ends in a hash. */
char *spooled_dir(const src_context *cx) {
    fz_buf b = {0};
    for (const char *p = cx->table; *p; p++) {
        bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') || *p == '-' || *p == '_' || (*p == '.' && b.len);
        if (plain) fz_buf_putc(&b, *p);
        else fz_buf_printf(&b, "%%%02X", (unsigned)(unsigned char)*p);
    }
    if (b.len > MOST_NAME) {
        b.len = MOST_NAME - 17;
        fz_buf_printf(&b, "-%016" PRIx64, fz_hash(cx->table, strlen(cx->table)));
    }
    char *dir = fz_asprintf("%s/spool/%s", cx->state_dir, fz_buf_cstr(&b));
    fz_buf_free(&b);
    return dir;
}

static void on_moved(void *cx);
static void watch(void *cx) { /* the spool's thread */
    src_spooled *s = cx;
    if (!atomic_exchange(&s->posted, true)) net_loop_call(s->loop, on_moved, s);
}

/* Only looked at: who it is, when it is there at all. */
static fz_status look(src_spooled *s, const char *dir, int64_t max, fz_error *err) {
    bool found;
    char incarnation[37];
    uint64_t low;
    FZ_TRY(spool_look(dir, &found, incarnation, &low, err));
    s->base.identity = fz_asprintf("spool:%s", found ? incarnation : "new");
    src_split *sp = s->base.splits[0];
    sp->low = sp->start = found ? (int64_t)low : 0;
    sp->high = INT64_MAX;
    s->looked_dir = fz_strdup(dir);
    s->doors = (src_doors){.v = s->door, .spool_dir = s->looked_dir, .spool_max = max};
    return FZ_OK;
}
const src_doors *src_spooled_listens(const src_source *s) { return &((const src_spooled *)s)->doors; }

static fz_status open_spool(src_spooled *s, const char *dir, int64_t max, fz_error *err) {
    uint64_t memory = s->base.cx.memory / 2;
    if (memory < LEAST_SPOOL_MEMORY) memory = LEAST_SPOOL_MEMORY;
    if (memory > MOST_SPOOL_MEMORY) memory = MOST_SPOOL_MEMORY;
    spool_options so = {.max_bytes = max, .memory = (size_t)memory};
    FZ_TRY(spool_open(dir, &so, &s->spool, err));
    s->base.identity = fz_asprintf("spool:%s", spool_incarnation(s->spool));
    src_split *sp = s->base.splits[0];
    sp->low = sp->start = (int64_t)spool_low(s->spool);
    sp->high = (int64_t)spool_durable(s->spool);
    FZ_TRY(net_loop_new(s->base.ops->name, &s->loop, err));
    spool_watch(s->spool, watch, s);
    return FZ_OK;
}

fz_status src_spooled_open(src_spooled *s, const src_ops *ops, const fz_pair *options, size_t n, const src_context *cx, fz_error *err) {
    src_base_init(&s->base, ops, cx);
    pthread_mutex_init(&s->pool_lock, NULL);
    pthread_mutex_init(&s->listeners_lock, NULL);
    char *split = fz_asprintf("%s/0", ops->name);
    src_split *sp = src_add_split(&s->base, split, ops->name, 0);
    sp->start_is_earliest = true;
    fz_free(split);
    if (!cx->state_dir || !*cx->state_dir) {
        fz_fail(err, FZ_USER, "source.no-state-dir", "table %s: connector '%s' needs a directory for records that are not yet committed", s->base.cx.table, ops->name);
        return fz_hint(err, "set 'frazil.state.dir'");
    }
    int64_t max = src_option_size(options, n, "spool.max-size", 1 << 30);
    if (max < 1 << 20) return out_of_range("spool.max-size", "at least 1 mb", err);
    char *dir = spooled_dir(&s->base.cx);
    fz_status rc = cx->look ? look(s, dir, max, err) : open_spool(s, dir, max, err);
    if (rc != FZ_OK) (void)fz_context(err, "table %s", s->base.cx.table);
    fz_free(dir);
    return rc;
}

/* A call to the loop that is waited for. */
typedef struct errand { pthread_mutex_t lock; pthread_cond_t done; bool ran; src_spooled *s; void (*fn)(src_spooled *s); } errand;
static void run_errand(void *cx) {
    errand *e = cx;
    e->fn(e->s);
    pthread_mutex_lock(&e->lock);
    e->ran = true;
    pthread_cond_signal(&e->done);
    pthread_mutex_unlock(&e->lock);
}
static void in_loop(src_spooled *s, void (*fn)(src_spooled *s)) {
    errand e = {.lock = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER, .s = s, .fn = fn};
    net_loop_call(s->loop, run_errand, &e);
    pthread_mutex_lock(&e.lock);
    while (!e.ran) pthread_cond_wait(&e.done, &e.lock);
    pthread_mutex_unlock(&e.lock);
    pthread_mutex_destroy(&e.lock);
    pthread_cond_destroy(&e.done);
}

static void take_no_more(src_spooled *s) { s->closing = true; }

static void pop_acks(src_spooled *s, uint64_t upto, bool durable) {
    while (s->ack_n && s->acks[s->ack_at % s->ack_cap].ticket <= upto) {
        src_ack a = s->acks[s->ack_at++ % s->ack_cap];
        s->ack_n--;
        if (!a.fn) continue;
        (void)fz_fault("source.acknowledge");
        a.fn(a.cx, durable);
    }
}
static void give_last_acks(src_spooled *s) {
    pop_acks(s, spool_durable(s->spool), true);
    pop_acks(s, UINT64_MAX, false);
}

/* ---- metrics ---- */
static net_stats heard(const src_spooled *s) { /* the lock is held */
    net_stats t = s->heard;
    for (uint32_t i = 0; i < s->n_listeners; i++) {
        net_stats n = net_listener_stats(s->listeners[i]);
        t.accepted += n.accepted;
        t.refused += n.refused;
        t.timed_out += n.timed_out;
        t.too_large += n.too_large;
        t.tls_failed += n.tls_failed;
        t.open += n.open;
        t.bytes_in += n.bytes_in;
        t.buffered += n.buffered;
    }
    return t;
}

static uint64_t seconds_since(int64_t ms, int64_t now) { return ms > 0 && now > ms ? (uint64_t)(now - ms) / 1000 : 0; }

void src_spooled_metrics(src_spooled *s, const src_counter *own, size_t n, src_metric_fn fn, void *cx) {
    for (size_t i = 0; i < n; i++) fn(cx, own[i].metric, own[i].label, atomic_load_explicit(own[i].value, memory_order_relaxed));
    pthread_mutex_lock(&s->listeners_lock);
    net_stats l = heard(s);
    pthread_mutex_unlock(&s->listeners_lock);
    spool_stats p = s->spool ? spool_get_stats(s->spool) : (spool_stats){0};
    int64_t now = fz_now_ms();
    const struct { fz_metric m; uint64_t v; } all[] = {
        {FZ_M_LISTENER_CONNECTIONS, l.open}, {FZ_M_LISTENER_HELD, atomic_load(&s->waiting)}, {FZ_M_LISTENER_ACCEPTED, l.accepted}, {FZ_M_LISTENER_TURNED_AWAY, l.refused},
        {FZ_M_LISTENER_TIMED_OUT, l.timed_out}, {FZ_M_LISTENER_TOO_LARGE, l.too_large}, {FZ_M_LISTENER_TLS_FAILED, l.tls_failed}, {FZ_M_LISTENER_BYTES, l.bytes_in}, {FZ_M_LISTENER_UNREAD, l.buffered},
        {FZ_M_SPOOL_RECORDS, p.records_in}, {FZ_M_SPOOL_BYTES, p.bytes_in}, {FZ_M_SPOOL_SYNCS, p.syncs}, {FZ_M_SPOOL_REFUSED, p.refused}, {FZ_M_SPOOL_DAMAGED_BYTES, p.damaged_bytes},
        {FZ_M_SPOOL_DAMAGED_SEGMENTS, p.damaged_segments}, {FZ_M_SPOOL_LOST, p.lost_records}, {FZ_M_SPOOL_WAITING, p.waiting}, {FZ_M_SPOOL_OLDEST, seconds_since(p.oldest_ms, now)},
        {FZ_M_SPOOL_UNSYNCED, p.unsynced}, {FZ_M_SPOOL_UNSYNCED_AGE, seconds_since(p.unsynced_ms, now)}, {FZ_M_SPOOL_DISK, p.disk_bytes}, {FZ_M_SPOOL_LIMIT, p.max_bytes}, {FZ_M_SPOOL_FULL, p.full},
        {FZ_M_SPOOL_FAILING, p.failing}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) fn(cx, all[i].m, NULL, all[i].v);
}

static void end_listening(src_spooled *s) {
    if (!s->loop) return;
    in_loop(s, take_no_more);
    (void)!spool_wait(s->spool, s->last_ticket, CLOSE_WAIT_MS, NULL); /* nothing appends any more */
    spool_unwatch(s->spool, watch, s);
    in_loop(s, give_last_acks);
    pthread_mutex_lock(&s->listeners_lock);
    s->heard = heard(s);
    s->heard.open = 0;
    s->heard.buffered = 0;
    s->n_listeners = 0;
    pthread_mutex_unlock(&s->listeners_lock);
    net_loop_free(s->loop);
    s->loop = NULL;
    atomic_store(&s->waiting, 0);
}

void src_spooled_drain(src_source *base) {
    src_spooled *s = (src_spooled *)base;
    end_listening(s);
    base->splits[0]->stop = base->splits[0]->high = (int64_t)spool_durable(s->spool);
}

void src_spooled_close(src_source *base) {
    src_spooled *s = (src_spooled *)base;
    end_listening(s);
    if (s->ended) s->ended(s);
    spooled_reading_free(s);
    spool_close(s->spool);
    fz_free(s->acks);
    fz_free(s->held);
    fz_free(s->looked_dir);
    pthread_mutex_destroy(&s->pool_lock);
    pthread_mutex_destroy(&s->listeners_lock);
    src_base_free(&s->base);
    fz_free(s);
}

/* ---- listening ---- */
static fz_status add_door(src_spooled *s, const net_listen_options *o, bool datagrams) {
    s->door[s->doors.n++] = (src_listening){.address = o->address, .datagrams = datagrams, .authenticated = s->authenticated, .tls_cert = o->tls_cert, .tls_key = o->tls_key, .tls_ca = o->tls_ca};
    return FZ_OK;
}
static fz_status add_listener(src_spooled *s, fz_status rc, net_listener *l, bool datagrams, fz_error *err) {
    if (rc != FZ_OK) return fz_context(err, "table %s", s->base.cx.table);
    s->datagrams[s->n_listeners] = datagrams;
    s->listeners[s->n_listeners++] = l;
    fz_log(FZ_LOG_INFO, "source.listening", FZ_KV("table", "%s", s->base.cx.table), FZ_KV("connector", "%s", s->base.ops->name), FZ_KV("address", "%s", net_listener_address(l)), NULL);
    return FZ_OK;
}
fz_status src_spooled_stream(src_spooled *s, const net_listen_options *o, const char *alpn, const net_proto *p, void *cx, fz_error *err) {
    net_listener *l = NULL;
    if (!s->loop) return add_door(s, o, false);
    fz_status rc = net_listen_stream(s->loop, o, alpn, p, cx, &l, err);
    return add_listener(s, rc, l, false, err);
}
fz_status src_spooled_http(src_spooled *s, const net_listen_options *o, net_http_fn fn, void *cx, fz_error *err) {
    net_listener *l = NULL;
    if (!s->loop) return add_door(s, o, false);
    fz_status rc = net_listen_http(s->loop, o, fn, cx, &l, err);
    return add_listener(s, rc, l, false, err);
}
fz_status src_spooled_datagrams(src_spooled *s, const net_listen_options *o, net_datagram_fn fn, void *cx, fz_error *err) {
    net_listener *l = NULL;
    if (!s->loop) return add_door(s, o, true);
    fz_status rc = net_listen_datagrams(s->loop, o, fn, cx, &l, err);
    return add_listener(s, rc, l, true, err);
}

/* ---- taking in ---- */
static void push_ack(src_spooled *s, src_ack a) {
    if (s->ack_n == s->ack_cap) {
        size_t cap = s->ack_cap ? s->ack_cap * 2 : 64;
        src_ack *v = fz_malloc(cap * sizeof *v);
        for (size_t i = 0; i < s->ack_n; i++) v[i] = s->acks[(s->ack_at + i) % s->ack_cap];
        fz_free(s->acks);
        s->acks = v;
        s->ack_cap = cap;
        s->ack_at = 0;
    }
    s->acks[(s->ack_at + s->ack_n++) % s->ack_cap] = a;
}

fz_status src_spooled_append(src_spooled *s, const spool_frame *f, uint32_t n, src_durable_fn fn, void *cx, fz_error *err) {
    if (s->closing) return fz_fail(err, FZ_RETRY, "source.closing", "table %s takes no more records", s->base.cx.table);
    uint64_t ticket;
    FZ_TRY(spool_append(s->spool, f, n, 0, &ticket, err));
    if (!fn) return FZ_OK;
    bool nothing = ticket == 0;
    if (nothing) ticket = s->last_ticket;
    s->last_ticket = ticket;
    push_ack(s, (src_ack){ticket, fn, cx});
    if (nothing && s->ack_n == 1) watch(s);
    return FZ_OK;
}

void src_spooled_forget(src_spooled *s, const void *cx) {
    for (size_t i = 0; i < s->ack_n; i++) {
        src_ack *a = &s->acks[(s->ack_at + i) % s->ack_cap];
        if (a->cx == cx) a->fn = NULL;
    }
}

static void note_waiting(src_spooled *s) { atomic_store(&s->waiting, (uint32_t)s->n_held + s->held_datagrams); }
void src_spooled_hold(src_spooled *s, net_conn *c) {
    net_conn_pause(c);
    for (size_t i = 0; i < s->n_held; i++)
        if (s->held[i] == c) return;
    if (!s->n_held && !s->held_datagrams) fz_metric_add(FZ_M_PAUSED, 1);
    FZ_GROW(s->held, s->n_held, s->cap_held);
    s->held[s->n_held++] = c;
    note_waiting(s);
}
void src_spooled_let_go(src_spooled *s, const net_conn *c) {
    for (size_t i = 0; i < s->n_held; i++)
        if (s->held[i] == c) {
            s->held[i] = s->held[--s->n_held];
            note_waiting(s);
            return;
        }
}
static void pause_datagrams(src_spooled *s, bool pause) {
    for (uint32_t i = 0; i < s->n_listeners; i++)
        if (s->datagrams[i]) net_datagrams_pause(s->listeners[i], pause);
    s->held_datagrams = pause;
    note_waiting(s);
}
void src_spooled_hold_datagrams(src_spooled *s) {
    if (s->held_datagrams) return;
    if (!s->n_held) fz_metric_add(FZ_M_PAUSED, 1);
    pause_datagrams(s, true);
}
bool src_spooled_full(const src_spooled *s) { return spool_full(s->spool); }
bool src_spooled_refuses(src_spooled *s) { return spool_refuses(s->spool); }

/* A connection that goes on may be held again at once. */
static void go_on(src_spooled *s) {
    net_conn **v = s->held;
    size_t n = s->n_held;
    s->held = NULL;
    s->n_held = s->cap_held = 0;
    note_waiting(s);
    for (size_t i = 0; i < n; i++) net_conn_resume(v[i]);
    fz_free(v);
    if (s->held_datagrams) pause_datagrams(s, false);
}

static void on_moved(void *cx) {
    src_spooled *s = cx;
    atomic_store(&s->posted, false); /* what moves from now on calls again */
    pop_acks(s, spool_durable(s->spool), true);
    if (s->closing || spool_full(s->spool)) return;
    if (s->room) s->room(s);
    if (s->n_held || s->held_datagrams) go_on(s);
}
