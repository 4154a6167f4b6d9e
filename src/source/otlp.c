/* The connector 'otlp': a server of the OpenTelemetry protocol for logs, over HTTP (protobuf and JSON) and over gRPC.
 *
 * A request is acknowledged when its records are durable in the spool. One that is sent again because its answer was lost is taken again: the protocol has no ids to know it by.
 *
 * What it does not take: traces and metrics (404; UNIMPLEMENTED).
 * Not as the specification would like it: the default ceiling of a message is 16 MiB, not 64, since a message is held in memory more than once while it is taken in.
 */
#include "source/otlp_int.h"
#include <openssl/crypto.h>
#include <openssl/sha.h>

enum {
    KEEP_BYTES = 256 << 10, /* buffers that are larger are not kept for the next request */
    BUSY_WAIT_MS = 2000,    /* so long requests wait for a disk that is slower than the senders; then they are told to come again */
    RETRY_S = 1
};

static const fz_option otlp_options[] = {
    {.name = "listen", .type = FZ_OPT_STRING, .doc = "Address and port of OTLP over HTTP (POST /v1/logs): '127.0.0.1:4318', '[::1]:4318', '0.0.0.0:4318'. It or 'grpc.listen' is required."},
    {.name = "grpc.listen", .type = FZ_OPT_STRING, .doc = "Address and port of OTLP over gRPC: '127.0.0.1:4317'."},
    SRC_LISTEN_LIMITS,
    SRC_SPOOL_OPTIONS,
    {.name = "format", .type = FZ_OPT_STRING, .dflt = "otlp", .doc = "Format of a record, which is one LogRecord as protobuf."},
    {.name = "value.format", .type = FZ_OPT_STRING, .doc = "The same as format."},
    {.name = "auth", .type = FZ_OPT_ENUM, .dflt = "none", .allowed = "none|token", .doc = "Who may send: anybody who reaches the address, or who sends 'Authorization: Bearer TOKEN' (gRPC: the metadata 'authorization')."},
    {.name = "token", .type = FZ_OPT_STRING, .doc = "The token of 'auth' = 'token'."},
    {0}};

static const src_metadata_column otlp_metadata[] = {{"arrival_time", "TIMESTAMP_LTZ(3) NOT NULL"}, {"time", "TIMESTAMP_LTZ(6) NOT NULL"}, {"record", "STRING NOT NULL"}, {NULL, NULL}};

/* ---- taking in ---- */

bool otlp_authorized(otlp_source *o, const char *v) {
    uint8_t hash[SHA256_DIGEST_LENGTH];
    if (!o->token) return true;
    bool fits = false;
    if (v && strncasecmp(v, "bearer ", 7) == 0) {
        v += 7 + strspn(v + 7, " ");
        SHA256((const uint8_t *)v, strlen(v), hash); /* the hashes are compared: of equal length, and telling nothing about the token */
        fits = CRYPTO_memcmp(hash, o->token_hash, sizeof hash) == 0;
    }
    if (!fits) otlp_count(&o->stats.refused_auth, 1);
    return fits;
}

grpc_code otlp_code_of(const fz_error *err) {
    if (err->cls == FZ_USER) return GRPC_UNIMPLEMENTED; /* an encoding that is not known */
    if (err->cls != FZ_DATA) return GRPC_UNAVAILABLE;
    return fz_ends(err->code, ".too-large") || fz_ends(err->code, ".too-many") ? GRPC_RESOURCE_EXHAUSTED : GRPC_INVALID_ARGUMENT;
}

static void keep_small(fz_buf *b) {
    if (b->cap > KEEP_BYTES) fz_buf_free(b);
    b->len = 0;
}

/* The body as protobuf, in place or in one of the source's buffers. */
static fz_status unfold(otlp_source *o, const otlp_body *body, fz_sv *out, fz_error *err) {
    *out = (fz_sv){body->p, body->n};
    if (body->coding && *body->coding && !fz_ieq(body->coding, "identity")) {
        FZ_TRY(net_inflate(body->coding, body->p, body->n, o->max_message, &o->unpacked, err));
        *out = (fz_sv){(const char *)o->unpacked.data, o->unpacked.len};
    }
    if (!body->json) return FZ_OK;
    FZ_TRY(otlp_json_request(out->p, out->n, &o->converted, err));
    keep_small(&o->unpacked);
    *out = (fz_sv){(const char *)o->converted.data, o->converted.len};
    return FZ_OK;
}

static void say(otlp_source *o, const char *event, const char *message) {
    uint64_t suppressed;
    if (!fz_log_allowed(&o->log_limit, 5, 60000, &suppressed)) return;
    fz_log(FZ_LOG_WARN, event, FZ_KV("table", "%s", o->s.base.cx.table), FZ_KV("message", "%s", message), FZ_KV("suppressed", "%llu", (unsigned long long)suppressed), NULL);
}

static void on_durable(void *cx, bool durable) {
    otlp_request *q = cx;
    q->durable(q, durable);
}

static fz_status append(otlp_source *o, otlp_request *q, fz_error *err) {
    otlp_batch *b = &o->batch;
    if (b->n) FZ_TRY(src_spooled_append(&o->s, otlp_frames(b, fz_now_ms()), b->n_runs, on_durable, q, err));
    q->partial.refused = b->refused;
    memcpy(q->partial.why, b->why, sizeof q->partial.why);
    if (b->refused) say(o, "otlp.records-refused", b->why);
    otlp_count(&o->stats.records, b->n);
    otlp_count(&o->stats.refused_records, b->refused);
    if (!b->n) q->durable(q, true);
    return FZ_OK;
}

static fz_status take(otlp_source *o, otlp_request *q, fz_error *err) {
    fz_sv message;
    otlp_batch *b = &o->batch;
    if (src_spooled_refuses(&o->s)) return fz_fail(err, FZ_RETRY, "spool.full", "there is no room for more records now"); /* before any work is done */
    fz_status rc = unfold(o, &q->body, &message, err);
    if (rc == FZ_OK) rc = otlp_split(message.p, message.n, o->s.base.cx.max_record_size, o->max_message, b, err);
    if (rc == FZ_OK) rc = append(o, q, err);
    keep_small(&o->unpacked);
    keep_small(&o->converted);
    if (b->contexts.cap > 2 * KEEP_BYTES || b->cap > KEEP_BYTES / 16 || b->resource.cap > KEEP_BYTES || b->context.cap > KEEP_BYTES) otlp_batch_free(b);
    return rc;
}

/* false: the disk is slower than the senders just now. */
static bool try_to_take(otlp_source *o, otlp_request *q) {
    fz_error err;
    fz_status rc = take(o, q, &err);
    if (rc == FZ_OK) return true;
    if (rc == FZ_RETRY && strcmp(err.code, "spool.busy") == 0 && fz_mono_ns() < q->until_ns) return false;
    otlp_count(rc == FZ_RETRY ? &o->stats.refused_room : &o->stats.refused_bad, 1);
    if (rc != FZ_RETRY) say(o, "otlp.refused", err.message);
    else (void)fz_fail(&err, rc, "otlp.no-room", o->s.closing ? "the server ends" : "there is no room for more records now"); /* where the spool lies is nobody's business */
    q->failed(q, &err);
    return true;
}

static void try_queue(src_spooled *s) {
    otlp_source *o = (otlp_source *)s;
    while (o->queue) {
        otlp_request *q = o->queue;
        o->queue = q->next;
        if (!try_to_take(o, q)) {
            q->next = o->queue;
            o->queue = q;
            return;
        }
    }
    o->queue_end = NULL;
}

/* Also when the spool never speaks up: nobody waits for ever. */
static void on_timer(void *cx) {
    otlp_source *o = cx;
    o->timer = false;
    try_queue(&o->s);
    if (!o->queue) return;
    o->timer = true;
    net_loop_after(o->s.loop, BUSY_WAIT_MS / 4, on_timer, o);
}

bool otlp_take(otlp_source *o, otlp_request *q) {
    q->until_ns = fz_mono_ns() + BUSY_WAIT_MS * 1000000ll;
    if (!o->queue && try_to_take(o, q)) return true;
    q->next = NULL;
    *(o->queue ? o->queue_end : &o->queue) = q;
    o->queue_end = &q->next;
    if (!o->timer) net_loop_after(o->s.loop, BUSY_WAIT_MS / 4, on_timer, o);
    o->timer = true;
    return false;
}

bool otlp_forget(otlp_source *o, otlp_request *q) {
    for (otlp_request **at = &o->queue; *at; at = &(*at)->next)
        if (*at == q) {
            *at = q->next;
            if (o->queue_end == &q->next) o->queue_end = at;
            return true;
        }
    return false;
}

/* ---- answers ---- */

void otlp_put_status(fz_buf *b, grpc_code code, const char *message, uint32_t retry_s) {
    static const char type[] = "type.googleapis.com/google.rpc.RetryInfo";
    pb_put_uint(b, 1, code);
    pb_put_bytes(b, 2, message, strlen(message));
    if (!retry_s) return;
    size_t any = pb_begin(b, 3);
    pb_put_bytes(b, 1, type, sizeof type - 1);
    size_t info = pb_begin(b, 2), delay = pb_begin(b, 1);
    pb_put_uint(b, 1, retry_s);
    pb_end(b, delay);
    pb_end(b, info);
    pb_end(b, any);
}

void otlp_put_response(fz_buf *b, const otlp_partial *partial) {
    if (!partial->refused) return;
    size_t at = pb_begin(b, 1);
    pb_put_uint(b, 1, partial->refused);
    pb_put_bytes(b, 2, partial->why, strlen(partial->why));
    pb_end(b, at);
}

/* ---- life ---- */

static bool wants_token(const fz_pair *o, size_t n) {
    const char *auth = fz_pair_get(o, n, "auth");
    return auth && fz_ieq(auth, "token");
}

static fz_status otlp_check(const fz_pair *o, size_t n, fz_error *err) {
    static const char *const addresses[] = {"listen", "grpc.listen"};
    const char *token = fz_pair_get(o, n, "token");
    net_listen_options unused;
    bool any = false;
    if (wants_token(o, n) && (!token || !*token)) return fz_fail(err, FZ_USER, "option.missing", "option 'auth' = 'token' needs option 'token'");
    if (token && !wants_token(o, n)) return fz_fail(err, FZ_USER, "option.conflict", "option 'token' needs 'auth' = 'token'");
    for (const char *p = token; p && *p; p++)
        if (*p <= ' ' || *p > '~') return fz_fail(err, FZ_USER, "option.invalid", "option 'token' has characters that a header cannot carry");
    for (size_t i = 0; i < 2; i++) {
        if (!fz_pair_get(o, n, addresses[i])) continue;
        any = true;
        FZ_TRY(src_listen_options(NULL, o, n, addresses[i], wants_token(o, n), &unused, err));
    }
    return any ? FZ_OK : fz_fail(err, FZ_USER, "option.missing", "option 'listen' (OTLP over HTTP) or 'grpc.listen' is missing");
}

static unsigned long long got(const _Atomic uint64_t *c) { return (unsigned long long)atomic_load_explicit(c, memory_order_relaxed); }
static void otlp_ended(src_spooled *s) {
    otlp_source *o = (otlp_source *)s;
    otlp_stats *t = &o->stats;
    if (s->spool)
        fz_log(FZ_LOG_INFO, "otlp.ended", FZ_KV("table", "%s", s->base.cx.table), FZ_KV("requests", "%llu", got(&t->requests_http) + got(&t->requests_grpc)), FZ_KV("records", "%llu", got(&t->records)),
               FZ_KV("refused_records", "%llu", got(&t->refused_records)), FZ_KV("refused_bad", "%llu", got(&t->refused_bad)), FZ_KV("refused_auth", "%llu", got(&t->refused_auth)),
               FZ_KV("refused_room", "%llu", got(&t->refused_room)), NULL);
    while (o->queue) { /* of HTTP: those of gRPC went with their connections */
        otlp_request *q = o->queue;
        o->queue = q->next;
        fz_free(q);
    }
    OPENSSL_cleanse(o->token_hash, sizeof o->token_hash);
    fz_buf_free(&o->unpacked);
    fz_buf_free(&o->converted);
    otlp_batch_free(&o->batch);
}

static fz_status listen_all(otlp_source *o, const fz_pair *p, size_t n, fz_error *err) {
    net_listen_options lo;
    if (fz_pair_get(p, n, "listen")) {
        FZ_TRY(src_listen_options(&o->s, p, n, "listen", o->token, &lo, err));
        o->max_message = lo.max_message;
        lo.http_too_large = otlp_http_too_large;
        FZ_TRY(src_spooled_http(&o->s, &lo, otlp_http_request, o, err));
    }
    if (fz_pair_get(p, n, "grpc.listen")) {
        FZ_TRY(src_listen_options(&o->s, p, n, "grpc.listen", o->token, &lo, err));
        o->max_message = lo.max_message;
        FZ_TRY(src_spooled_stream(&o->s, &lo, "h2", &otlp_grpc_proto, o, err));
    }
    return FZ_OK;
}

static fz_status otlp_open(const fz_pair *p, size_t n, const src_context *cx, src_source **out, fz_error *err) {
    FZ_TRY(otlp_check(p, n, err));
    otlp_source *o = FZ_NEW(otlp_source);
    const char *token = fz_pair_get(p, n, "token");
    o->s.ended = otlp_ended;
    o->s.room = try_queue;
    o->token = wants_token(p, n);
    o->open_to_all = !o->token && !fz_pair_get(p, n, "tls.ca");
    o->retry_after_s = RETRY_S;
    if (o->token) SHA256((const uint8_t *)token, strlen(token), o->token_hash);
    o->max_message = (size_t)src_option_size(p, n, "max-message-size", 16 << 20);
    fz_status rc = src_spooled_open(&o->s, &src_otlp_ops, p, n, cx, err);
    if (rc == FZ_OK) rc = listen_all(o, p, n, err);
    if (rc == FZ_OK) *out = &o->s.base;
    else src_spooled_close(&o->s.base);
    return rc;
}

static void otlp_metrics(src_source *base, src_metric_fn fn, void *cx) {
    const otlp_source *x = (const otlp_source *)base;
    const src_counter own[] = {{FZ_M_OTLP_REQUESTS, "http", &x->stats.requests_http}, {FZ_M_OTLP_REQUESTS, "grpc", &x->stats.requests_grpc}, {FZ_M_OTLP_RECORDS, NULL, &x->stats.records}, {FZ_M_OTLP_REFUSED_RECORDS, NULL, &x->stats.refused_records}, {FZ_M_OTLP_BAD, NULL, &x->stats.refused_bad}, {FZ_M_OTLP_AUTH, NULL, &x->stats.refused_auth}, {FZ_M_OTLP_ROOM, NULL, &x->stats.refused_room}};
    src_spooled_metrics((src_spooled *)base, own, sizeof own / sizeof *own, fn, cx);
}

const src_ops src_otlp_ops = {
    .name = "otlp",
    .doc = "A server of the OpenTelemetry protocol (OTLP) for logs: over HTTP as protobuf and JSON, and over gRPC. Requests are acknowledged when their records are durable; one that is sent again is taken again.",
    .options = otlp_options,
    .metadata = otlp_metadata,
    .format = "otlp",
    .open = otlp_open,
    .check = otlp_check,
    .metrics = otlp_metrics,
    SRC_SPOOLED_OPS};
