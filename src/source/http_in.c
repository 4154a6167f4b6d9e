/* The connector 'http': JSON documents by POST, as NDJSON, as a JSON array, or one alone. Each document is one record.
 *
 * A request is taken whole or not at all: what is wrong in one document refuses them all, and the answer names the line. 200 is answered when all of them are durable in the spool.
 *
 *     200 {"accepted":3}                    durable
 *     400 {"error":"...","line":2}          not JSON, or its compression is broken
 *     401                                   no token, or another one       403  sent by a web page to a server that authenticates nobody
 *     404 405                               another path, another method   415  another Content-Type or Content-Encoding
 *     408 413 431                           too slow, too large
 *     503 with Retry-After                  no room now; nothing was taken
 *
 * What it does not do: it remembers no requests: one that is sent again because its answer was lost is taken again.
 * Threads: everything but open and close runs in the source's loop.
 */
#include "source/json_split.h"
#include "source/spooled.h"
#include <openssl/crypto.h>
#include <openssl/sha.h>

#define HEALTH_PATH "/healthz"
enum {
    KEEP_BYTES = 256 << 10, /* buffers that are larger are not kept for the next request */
    BUSY_STEP_MS = 10,      /* while the disk is slower than the senders their requests wait, and are tried again so often, */
    BUSY_WAIT_MS = 2000     /* so long; then 503 is answered */
};

static const fz_option http_options[] = {
    SRC_LISTEN_OPTIONS,
    SRC_SPOOL_OPTIONS,
    {.name = "format", .type = FZ_OPT_STRING, .dflt = "json", .doc = "Format of a record, which is one JSON document. With 'json' every document has to be an object."},
    {.name = "value.format", .type = FZ_OPT_STRING, .doc = "The same as format."},
    {.name = "path", .type = FZ_OPT_STRING, .dflt = "/", .doc = "Path to which documents are posted. GET " HEALTH_PATH " answers 200 while records are taken, and 503 while there is no room."},
    {.name = "auth", .type = FZ_OPT_ENUM, .dflt = "none", .allowed = "none|token", .doc = "Who may send: anybody who reaches the address, or who sends 'Authorization: Bearer TOKEN'."},
    {.name = "token", .type = FZ_OPT_STRING, .doc = "The token of 'auth' = 'token'."},
    {0}};

static const src_metadata_column http_metadata[] = {{"arrival_time", "TIMESTAMP_LTZ(3) NOT NULL"}, {"record", "STRING NOT NULL"}, {NULL, NULL}};

typedef struct http_stats { _Atomic uint64_t requests, records, refused_bad, refused_auth, refused_room; } http_stats;
typedef struct http_queued { struct http_queued *next; net_http_request *r; int64_t until_ns; } http_queued;
typedef struct http_source {
    src_spooled s;
    char *path;
    bool token, open_to_all, objects;
    uint8_t token_hash[SHA256_DIGEST_LENGTH];
    size_t max_message;
    fz_buf unpacked;   /* of one request at a time */
    src_frame frame;
    http_stats stats;
    http_queued *queue, **queue_end; /* requests that wait for the disk, in the order in which they came */
} http_source;
typedef struct http_waiting { http_source *h; net_http_request *r; uint32_t n; } http_waiting;

static void count(_Atomic uint64_t *c, uint64_t n) { atomic_fetch_add_explicit(c, n, memory_order_relaxed); }

/* ---- answers ---- */
static void answer(net_http_request *r, int status, const net_http_field *more, const char *body) {
    net_http_field f[2] = {{"Content-Type", "application/json"}};
    if (more) f[1] = *more;
    net_http_answer(r, status, f, more ? 2 : 1, body, strlen(body));
}
static void answer_error(net_http_request *r, int status, const net_http_field *more, const char *text, size_t line) {
    fz_buf b = {0};
    fz_buf_puts(&b, "{\"error\":");
    fz_buf_json(&b, text, strlen(text));
    if (line) fz_buf_printf(&b, ",\"line\":%zu", line);
    fz_buf_puts(&b, "}\n");
    answer(r, status, more, fz_buf_cstr(&b));
    fz_buf_free(&b);
}
static void answer_accepted(net_http_request *r, uint32_t n) {
    char body[40];
    snprintf(body, sizeof body, "{\"accepted\":%u}\n", n);
    answer(r, 200, NULL, body);
}
static void answer_no_room(http_source *h, net_http_request *r, const char *why) {
    count(&h->stats.refused_room, 1);
    answer_error(r, 503, &(net_http_field){"Retry-After", "1"}, why, 0);
}
static bool refuse(http_source *h, net_http_request *r, int status, const char *why, size_t line) {
    count(&h->stats.refused_bad, 1);
    answer_error(r, status, NULL, why, line);
    return false;
}

/* ---- who may send what ---- */
static bool token_fits(const http_source *h, const net_http_request *r) {
    const char *v = net_http_header(r, "authorization");
    uint8_t hash[SHA256_DIGEST_LENGTH];
    if (!v || strncasecmp(v, "bearer ", 7) != 0) return false;
    v += 7 + strspn(v + 7, " ");
    SHA256((const uint8_t *)v, strlen(v), hash); /* the hashes are compared: of equal length, and telling nothing about the token */
    return CRYPTO_memcmp(hash, h->token_hash, sizeof hash) == 0;
}

static bool may_send(http_source *h, net_http_request *r) {
    if (h->token && !token_fits(h, r)) {
        count(&h->stats.refused_auth, 1);
        answer_error(r, 401, &(net_http_field){"WWW-Authenticate", "Bearer"}, net_http_header(r, "authorization") ? "the token is another one" : "a header 'Authorization: Bearer TOKEN' is wanted", 0);
        return false;
    }
    if (h->open_to_all && net_http_header(r, "origin")) { /* any page in a browser on this machine could write else */
        count(&h->stats.refused_auth, 1);
        answer_error(r, 403, NULL, "web pages may send only where 'auth' = 'token'", 0);
        return false;
    }
    return true;
}

static bool media_type_fits(const char *v) {
    static const char *const known[] = {"application/json", "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines", "text/json", "text/plain", "application/x-www-form-urlencoded" /* curl's own */};
    if (!v || !*v) return true;
    size_t n = strcspn(v, ";");
    fz_sv type = fz_sv_trim((fz_sv){v, n});
    for (const char *p = v[n] ? v + n + 1 : ""; *p;) { /* parameters */
        size_t m = strcspn(p, ";");
        fz_sv par = fz_sv_trim((fz_sv){p, m});
        if (par.n >= 8 && strncasecmp(par.p, "charset=", 8) == 0) {
            fz_sv set = {par.p + 8, par.n - 8};
            if (set.n >= 2 && set.p[0] == '"') set = (fz_sv){set.p + 1, set.n - 2};
            if (!fz_sv_ieq(set, FZ_SV("utf-8")) && !fz_sv_ieq(set, FZ_SV("utf8")) && !fz_sv_ieq(set, FZ_SV("us-ascii"))) return false;
        }
        p += m + (p[m] == ';');
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (fz_sv_ieq(type, fz_sv_of(known[i]))) return true;
    return false;
}

/* The body as text: in place, or in h->unpacked. */
static bool unpack(http_source *h, net_http_request *r, fz_sv *text) {
    const char *coding = net_http_header(r, "content-encoding");
    fz_error e;
    *text = (fz_sv){(const char *)r->body, r->n_body};
    if (!coding || !*coding || fz_ieq(coding, "identity")) return true;
    h->unpacked.len = 0;
    fz_status st = net_inflate(coding, r->body, r->n_body, h->max_message, &h->unpacked, &e);
    *text = (fz_sv){(const char *)h->unpacked.data, h->unpacked.len};
    if (st == FZ_OK) return true;
    if (st == FZ_USER) {
        count(&h->stats.refused_bad, 1);
        answer_error(r, 415, &(net_http_field){"Accept-Encoding", "gzip, zstd, deflate"}, e.message, 0);
        return false;
    }
    return refuse(h, r, strcmp(e.code, "body.too-large") == 0 ? 413 : 400, e.message, 0);
}

/* All documents of the text into h->frame. */
static bool split(http_source *h, net_http_request *r, fz_sv text) {
    json_split s;
    fz_sv doc;
    int rc;
    src_frame_reset(&h->frame);
    json_split_init(&s, text.p, text.n, h->objects);
    while ((rc = json_split_next(&s, &doc)) == 1) {
        if (doc.n > h->s.base.cx.max_record_size) {
            char why[96];
            snprintf(why, sizeof why, "the document is larger than %u bytes ('source.max-record-size')", h->s.base.cx.max_record_size);
            return refuse(h, r, 413, why, json_split_line(&s, (const uint8_t *)doc.p));
        }
        src_frame_add(&h->frame, doc.p, (uint32_t)doc.n, INT64_MIN);
    }
    return rc == 0 || refuse(h, r, 400, s.why, json_split_line(&s, s.where));
}

/* ---- taking in ---- */
static void on_durable(void *cx, bool durable) {
    http_waiting *w = cx;
    if (durable) {
        count(&w->h->stats.records, w->n);
        answer_accepted(w->r, w->n);
    } else answer_no_room(w->h, w->r, "the server ends; whether the records are kept is not known");
    fz_free(w);
}

/* false: the disk is slower than the senders just now, and nothing was taken or answered. */
static bool append(http_source *h, net_http_request *r, bool last_try) {
    fz_error e;
    if (!h->frame.n) {
        answer_accepted(r, 0);
        return true;
    }
    http_waiting *w = FZ_NEW(http_waiting);
    *w = (http_waiting){h, r, h->frame.n};
    spool_frame f = src_frame_of(&h->frame, fz_now_ms());
    fz_status st = src_spooled_append(&h->s, &f, 1, on_durable, w, &e);
    if (st == FZ_OK) return true;
    fz_free(w);
    if (st == FZ_RETRY && !last_try && strcmp(e.code, "spool.busy") == 0) return false;
    if (st == FZ_DATA) (void)refuse(h, r, 413, e.message, 0);
    else answer_no_room(h, r, "there is no room for more records now");
    return true;
}

/* false: to be tried again. */
static bool take(http_source *h, net_http_request *r, bool last_try) {
    fz_sv text;
    bool done = true;
    if (src_spooled_refuses(&h->s)) answer_no_room(h, r, "there is no room for more records now"); /* before any work is done */
    else if (unpack(h, r, &text) && split(h, r, text)) done = append(h, r, last_try);
    if (h->unpacked.cap > KEEP_BYTES) fz_buf_free(&h->unpacked);
    if (h->frame.bytes.cap > KEEP_BYTES || h->frame.cap > KEEP_BYTES / 16) src_frame_free(&h->frame);
    return done;
}

static void try_queue(void *cx) {
    http_source *h = cx;
    while (h->queue) {
        http_queued *q = h->queue;
        if (!take(h, q->r, fz_mono_ns() >= q->until_ns)) break;
        h->queue = q->next;
        fz_free(q);
    }
    if (!h->queue) h->queue_end = &h->queue;
    else net_loop_after(h->s.loop, BUSY_STEP_MS, try_queue, h);
}

static void on_post(http_source *h, net_http_request *r) {
    if (!h->queue && take(h, r, false)) return;
    http_queued *q = FZ_NEW(http_queued);
    *q = (http_queued){NULL, r, fz_mono_ns() + BUSY_WAIT_MS * 1000000ll};
    if (!h->queue) {
        h->queue_end = &h->queue;
        net_loop_after(h->s.loop, BUSY_STEP_MS, try_queue, h);
    }
    *h->queue_end = q;
    h->queue_end = &q->next;
}

static bool method_fits(http_source *h, net_http_request *r, bool fits, const char *allow) {
    if (fits) return true;
    count(&h->stats.refused_bad, 1);
    answer_error(r, 405, &(net_http_field){"Allow", allow}, "the method is another one", 0);
    return false;
}

/* What can be said without the body. false: it is answered. */
static bool admit(http_source *h, net_http_request *r) {
    if (strcmp(r->path, HEALTH_PATH) == 0) {
        if (!method_fits(h, r, strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0, "GET, HEAD")) return false;
        bool full = src_spooled_full(&h->s) || h->s.closing;
        answer(r, full ? 503 : 200, NULL, full ? "{\"status\":\"full\"}\n" : "{\"status\":\"ok\"}\n");
        return false;
    }
    if (strcmp(r->path, h->path) != 0) return refuse(h, r, 404, "there is nothing at this path", 0);
    if (!may_send(h, r) || !method_fits(h, r, strcmp(r->method, "POST") == 0, "POST")) return false;
    return media_type_fits(net_http_header(r, "content-type")) || refuse(h, r, 415, "application/json, application/x-ndjson or text/plain in UTF-8 is wanted", 0);
}

static void on_head(void *cx, net_http_request *r) {
    http_source *h = cx;
    if (!admit(h, r)) count(&h->stats.requests, 1);
}
static void on_request(void *cx, net_http_request *r) {
    http_source *h = cx;
    count(&h->stats.requests, 1);
    if (admit(h, r)) on_post(h, r);
}

/* ---- life ---- */
static bool wants_token(const fz_pair *o, size_t n) {
    const char *auth = fz_pair_get(o, n, "auth");
    return auth && fz_ieq(auth, "token");
}

static fz_status http_check(const fz_pair *o, size_t n, fz_error *err) {
    const char *path = fz_pair_get(o, n, "path"), *token = fz_pair_get(o, n, "token");
    net_listen_options unused;
    if (path && (*path != '/' || strpbrk(path, "?# "))) return fz_fail(err, FZ_USER, "option.invalid", "option 'path': '%s' is no path; it begins with '/' and has no query", path);
    if (path && strcmp(path, HEALTH_PATH) == 0) return fz_fail(err, FZ_USER, "option.conflict", "option 'path': " HEALTH_PATH " tells whether the server is well");
    if (wants_token(o, n) && (!token || !*token)) return fz_fail(err, FZ_USER, "option.missing", "option 'auth' = 'token' needs option 'token'");
    if (token && !wants_token(o, n)) return fz_fail(err, FZ_USER, "option.conflict", "option 'token' needs 'auth' = 'token'");
    for (const char *p = token; p && *p; p++)
        if (*p <= ' ' || *p > '~') return fz_fail(err, FZ_USER, "option.invalid", "option 'token' has characters that a header cannot carry");
    return src_listen_options(NULL, o, n, "listen", wants_token(o, n), &unused, err);
}

static unsigned long long got(const _Atomic uint64_t *c) { return (unsigned long long)atomic_load_explicit(c, memory_order_relaxed); }
static void http_ended(src_spooled *s) {
    http_source *h = (http_source *)s;
    if (s->spool)
        fz_log(FZ_LOG_INFO, "http.ended", FZ_KV("table", "%s", s->base.cx.table), FZ_KV("requests", "%llu", got(&h->stats.requests)), FZ_KV("records", "%llu", got(&h->stats.records)),
               FZ_KV("refused_bad", "%llu", got(&h->stats.refused_bad)), FZ_KV("refused_auth", "%llu", got(&h->stats.refused_auth)), FZ_KV("refused_room", "%llu", got(&h->stats.refused_room)), NULL);
    while (h->queue) { /* the loop has freed the requests */
        http_queued *q = h->queue;
        h->queue = q->next;
        fz_free(q);
    }
    OPENSSL_cleanse(h->token_hash, sizeof h->token_hash);
    fz_buf_free(&h->unpacked);
    src_frame_free(&h->frame);
    fz_free(h->path);
}

static void take_options(http_source *h, const fz_pair *o, size_t n) {
    const char *path = fz_pair_get(o, n, "path"), *token = fz_pair_get(o, n, "token"), *format = fz_pair_get(o, n, "value.format");
    if (!format) format = fz_pair_get(o, n, "format");
    h->path = fz_strdup(path ? path : "/");
    h->objects = !format || strcmp(format, "json") == 0;
    h->token = wants_token(o, n);
    h->open_to_all = !h->token && !fz_pair_get(o, n, "tls.ca");
    if (h->token) SHA256((const uint8_t *)token, strlen(token), h->token_hash);
}

static fz_status http_open(const fz_pair *o, size_t n, const src_context *cx, src_source **out, fz_error *err) {
    FZ_TRY(http_check(o, n, err));
    http_source *h = FZ_NEW(http_source);
    net_listen_options lo;
    h->s.ended = http_ended;
    take_options(h, o, n);
    fz_status rc = src_spooled_open(&h->s, &src_http_ops, o, n, cx, err);
    if (rc == FZ_OK) rc = src_listen_options(&h->s, o, n, "listen", h->token, &lo, err);
    if (rc == FZ_OK) {
        h->max_message = lo.max_message;
        lo.http_head = on_head;
        rc = src_spooled_http(&h->s, &lo, on_request, h, err);
    }
    if (rc == FZ_OK) *out = &h->s.base;
    else src_spooled_close(&h->s.base);
    return rc;
}

static void http_metrics(src_source *base, src_metric_fn fn, void *cx) {
    const http_source *x = (const http_source *)base;
    const src_counter own[] = {{FZ_M_HTTP_REQUESTS, NULL, &x->stats.requests}, {FZ_M_HTTP_RECORDS, NULL, &x->stats.records}, {FZ_M_HTTP_BAD, NULL, &x->stats.refused_bad}, {FZ_M_HTTP_AUTH, NULL, &x->stats.refused_auth}, {FZ_M_HTTP_ROOM, NULL, &x->stats.refused_room}};
    src_spooled_metrics((src_spooled *)base, own, sizeof own / sizeof *own, fn, cx);
}

const src_ops src_http_ops = {
    .name = "http",
    .doc = "A web server that takes JSON documents by POST: NDJSON, a JSON array, or one document. A request is answered 200 when all its documents are durable, and taken whole or not at all.",
    .options = http_options,
    .metadata = http_metadata,
    .format = "json",
    .open = http_open,
    .check = http_check,
    .metrics = http_metrics,
    SRC_SPOOLED_OPS};
