/* One exchange: sets up a libcurl handle, collects the answer, says what is known when it fails. See net.h.
 *
 * What libcurl does by itself and what we make of it (7.88, Curl_retry_request): a request over a *reused* connection that ends before a byte of the
 * answer came is sent again, silently, up to five times, whatever its method. A request that must not be sent twice therefore gets a
 * connection of its own (CURLOPT_FRESH_CONNECT): over a new one libcurl never sends again. Other repeats of libcurl (417 after Expect, 401/407
 * negotiation, redirects) are off because neither Expect nor authentication nor FOLLOWLOCATION is asked for.
 */
#include "net/net_int.h"
#include <stdatomic.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define HURRIED_STALL_NS (NET_HURRIED_STALL_MS * 1000000ll)
static _Atomic(net_hurry_fn) hurry;
void net_set_hurry(net_hurry_fn fn) { atomic_store(&hurry, fn); }
static _Thread_local int64_t impatient_ns; /* from then on; 0: never */
void net_patience(int64_t ms) { impatient_ns = ms > 0 ? fz_mono_ns() + ms * 1000000 : 0; }
bool net_hurried(void) {
    net_hurry_fn fn = atomic_load(&hurry);
    return (fn && fn()) || (impatient_ns && fz_mono_ns() > impatient_ns);
}

typedef struct exchange {
    const net_request *rq;
    net_answer *out;
    uint64_t sent_bytes;   /* of the body */
    size_t header_bytes, cap_headers;
    bool sent, stalled, too_large, body_gone;
    int body_errno;
    curl_off_t last_up, last_down;
    size_t last_header_bytes;
    int64_t progress_ns, stall_ns;
} exchange;

/* ---- libcurl's questions ---- */

static int on_ready(void *cx, char *peer, char *local, int peer_port, int local_port) {
    (void)peer, (void)local, (void)peer_port, (void)local_port;
    exchange *x = cx;
    x->out->resent = x->sent;
    x->sent = true;
    x->progress_ns = fz_mono_ns();
    return CURL_PREREQFUNC_OK;
}

static size_t on_read(char *to, size_t size, size_t n, void *cx) {
    exchange *x = cx;
    const net_body *b = &x->rq->body;
    uint64_t left = b->n - x->sent_bytes;
    size_t want = size * n < left ? size * n : (size_t)left;
    if (want == 0) return 0;
    if (b->p) memcpy(to, (const char *)b->p + x->sent_bytes, want);
    else {
        ssize_t got;
        do got = pread(b->fd, to, want, (off_t)(b->from + x->sent_bytes));
        while (got < 0 && errno == EINTR);
        if (got <= 0) {
            x->body_gone = true;
            x->body_errno = got < 0 ? errno : 0;
            return CURL_READFUNC_ABORT;
        }
        want = (size_t)got;
    }
    x->sent_bytes += want;
    return want;
}

/* A repeat over another connection starts the body again. */
static int on_seek(void *cx, curl_off_t offset, int origin) {
    exchange *x = cx;
    if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > x->rq->body.n) return CURL_SEEKFUNC_FAIL;
    x->sent_bytes = (uint64_t)offset;
    return CURL_SEEKFUNC_OK;
}

static void drop_headers(exchange *x) {
    x->out->n_headers = 0;
    x->out->status = 0;
}

/* "HTTP/1.1 200 OK": a new head begins; that of a 1xx answer or of a proxy's CONNECT is forgotten. */
static void take_status(exchange *x, fz_sv line) {
    drop_headers(x);
    size_t i = 5;
    while (i < line.n && line.p[i] != ' ') i++;
    uint64_t status;
    if (i + 4 <= line.n && fz_parse_u64((fz_sv){line.p + i + 1, 3}, &status) && status >= 200) x->out->status = (int)status;
}

static void take_header(exchange *x, fz_sv line) {
    const char *colon = memchr(line.p, ':', line.n);
    if (!colon) return;
    net_answer *o = x->out;
    if (o->n_headers == x->cap_headers) {
        size_t cap = x->cap_headers ? x->cap_headers * 2 : 16;
        o->headers = fz_arena_realloc(o->arena, o->headers, x->cap_headers * sizeof *o->headers, cap * sizeof *o->headers);
        x->cap_headers = cap;
    }
    fz_sv name = fz_sv_trim((fz_sv){line.p, (size_t)(colon - line.p)});
    fz_sv value = fz_sv_trim((fz_sv){colon + 1, line.n - (size_t)(colon + 1 - line.p)});
    char *lower = fz_arena_strndup(o->arena, name.p, name.n);
    for (char *p = lower; *p; p++)
        if (*p >= 'A' && *p <= 'Z') *p = (char)(*p | 0x20);
    o->headers[o->n_headers++] = (net_header){lower, fz_arena_strndup(o->arena, value.p, value.n)};
}

static size_t on_header(char *p, size_t size, size_t n, void *cx) {
    exchange *x = cx;
    fz_sv line = fz_sv_trim((fz_sv){p, size * n});
    x->header_bytes += size * n;
    if (x->header_bytes > FZ_MAX_HTTP_HEADERS) {
        x->too_large = true;
        return 0;
    }
    if (line.n > 5 && memcmp(line.p, "HTTP/", 5) == 0) take_status(x, line);
    else if (line.n) take_header(x, line);
    return size * n;
}

static size_t on_write(char *p, size_t size, size_t n, void *cx) {
    exchange *x = cx;
    net_answer *o = x->out;
    size_t max = x->rq->max_answer ? x->rq->max_answer : FZ_MAX_HTTP_ANSWER, bytes = size * n;
    bool into = x->rq->into && o->status / 100 == 2;
    if (bytes > max - (into ? o->n_into : o->body.len)) {
        /* An error's text that would not fit where a small range was expected is worth having all the same. */
        if (into || !x->rq->into || o->body.len + bytes > FZ_MAX_HTTP_ANSWER) {
            x->too_large = true;
            return 0;
        }
    }
    if (into) {
        memcpy((char *)x->rq->into + o->n_into, p, bytes);
        o->n_into += bytes;
    } else fz_buf_append(&o->body, p, bytes);
    return bytes;
}

/* Called at least once a second: ends an exchange in which nothing moves. */
static int on_progress(void *cx, curl_off_t down_total, curl_off_t down, curl_off_t up_total, curl_off_t up) {
    (void)down_total, (void)up_total;
    exchange *x = cx;
    if (!x->sent) return 0; /* the connect time-out watches */
    int64_t now = fz_mono_ns();
    if (down != x->last_down || up != x->last_up || x->header_bytes != x->last_header_bytes) {
        x->last_down = down;
        x->last_up = up;
        x->last_header_bytes = x->header_bytes;
        x->progress_ns = now;
    }
    if (x->stall_ns > HURRIED_STALL_NS && net_hurried()) x->stall_ns = HURRIED_STALL_NS;
    x->stalled = now - x->progress_ns > x->stall_ns;
    return x->stalled;
}

/* ---- setting up ---- */

static bool clean_header(const net_header *h) {
    if (!h->name[0] || strpbrk(h->name, " \t\r\n:")) return false;
    return !strpbrk(h->value, "\r\n");
}

static struct curl_slist *add(struct curl_slist *l, const char *text) {
    struct curl_slist *more = curl_slist_append(l, text);
    if (!more) abort();
    return more;
}

static fz_status make_headers(const net_request *rq, fz_arena *a, struct curl_slist **out, fz_error *err) {
    struct curl_slist *l = NULL;
    bool accept = false, agent = false, type = false;
    for (size_t i = 0; i < rq->n_headers; i++) {
        const net_header *h = &rq->headers[i];
        if (!clean_header(h) || fz_ieq(h->name, "transfer-encoding")) {
            curl_slist_free_all(l);
            return fz_fail(err, FZ_USER, "net.header", "the request header '%.40s' cannot be sent", h->name);
        }
        if (fz_ieq(h->name, "content-length")) continue; /* made from the body */
        accept |= fz_ieq(h->name, "accept");
        agent |= fz_ieq(h->name, "user-agent");
        type |= fz_ieq(h->name, "content-type");
        l = add(l, h->value[0] ? fz_arena_printf(a, "%s: %s", h->name, h->value) : fz_arena_printf(a, "%s;", h->name));
    }
    if (!accept) l = add(l, "Accept:");
    if (!type) l = add(l, "Content-Type:");
    if (!agent) l = add(l, "User-Agent: frazil/" FRAZIL_VERSION);
    *out = add(l, rq->expect_continue ? "Expect: 100-continue" : "Expect:");
    return FZ_OK;
}

static void set_method(CURL *c, const net_request *rq, exchange *x) {
    bool body = rq->body.n > 0 || strcmp(rq->method, "PUT") == 0 || strcmp(rq->method, "POST") == 0 || strcmp(rq->method, "PATCH") == 0;
    if (body) {
        curl_easy_setopt(c, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(c, CURLOPT_INFILESIZE_LARGE, (curl_off_t)rq->body.n);
        curl_easy_setopt(c, CURLOPT_READFUNCTION, on_read);
        curl_easy_setopt(c, CURLOPT_READDATA, x);
        curl_easy_setopt(c, CURLOPT_SEEKFUNCTION, on_seek);
        curl_easy_setopt(c, CURLOPT_SEEKDATA, x);
        curl_easy_setopt(c, CURLOPT_UPLOAD_BUFFERSIZE, rq->body.n > (64u << 10) ? 256L << 10 : 64L << 10);
    } else if (strcmp(rq->method, "HEAD") == 0) curl_easy_setopt(c, CURLOPT_NOBODY, 1L);
    else curl_easy_setopt(c, CURLOPT_HTTPGET, 1L);
    curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, rq->method);
}

static void set_up(CURL *c, const net_request *rq, exchange *x, char *text) {
    net_set_common(c, rq->proxy, rq->connect_timeout_ms);
    set_method(c, rq, x);
    curl_easy_setopt(c, CURLOPT_URL, rq->url);
    curl_easy_setopt(c, CURLOPT_ERRORBUFFER, text);
    if (rq->timeout_ms > 0) curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)rq->timeout_ms);
    curl_easy_setopt(c, CURLOPT_FRESH_CONNECT, rq->repeatable ? 0L : 1L);
    curl_easy_setopt(c, CURLOPT_BUFFERSIZE, 64L << 10);
    curl_easy_setopt(c, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(c, CURLOPT_PREREQFUNCTION, on_ready);
    curl_easy_setopt(c, CURLOPT_PREREQDATA, x);
    curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(c, CURLOPT_HEADERDATA, x);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_write);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, x);
    curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(c, CURLOPT_XFERINFODATA, x);
}

/* ---- the exchange ---- */

static fz_status judge(exchange *x, CURL *c, CURLcode rc, const char *where, const char *scheme, const char *text, fz_error *err) {
    const net_request *rq = x->rq;
    if (x->too_large && x->header_bytes > FZ_MAX_HTTP_HEADERS)
        return fz_fail(err, FZ_FATAL, "net.too-large", "%s: the answer's headers are longer than %u bytes", where, FZ_MAX_HTTP_HEADERS);
    if (x->too_large)
        return fz_fail(err, FZ_FATAL, "net.too-large", "%s: the answer (status %d) is longer than the %zu bytes that are taken", where, x->out->status,
                       rq->max_answer ? rq->max_answer : FZ_MAX_HTTP_ANSWER);
    if (x->body_gone)
        return fz_fail(err, FZ_FATAL, "net.body", "%s: the file to send cannot be read: %s", where, x->body_errno ? strerror(x->body_errno) : "it is shorter than it was");
    if (rc == CURLE_OK) return FZ_OK;
    net_failure f = {.rc = rc, .curl = c, .where = where, .scheme = scheme, .curl_text = text, .tls = &rq->tls, .sent = x->sent, .status = x->out->status,
                     .stalled = x->stalled, .stall_ms = x->stall_ns / 1000000, .timeout_ms = rq->timeout_ms,
                     .connect_ms = rq->connect_timeout_ms > 0 ? rq->connect_timeout_ms : NET_DEFAULT_CONNECT_MS};
    return net_fail_exchange(&f, err);
}

/* Scheme, host and path: what a message may say. */
static const char *where_of(const net_url *u, fz_arena *a) {
    const char *host = strchr(u->host, ':') ? fz_arena_printf(a, "[%s]", u->host) : u->host;
    return u->port ? fz_arena_printf(a, "%s://%s:%d%.300s", u->scheme, host, u->port, u->path) : fz_arena_printf(a, "%s://%s%.300s", u->scheme, host, u->path);
}

static fz_status perform(exchange *x, CURL *c, const net_url *u, const char *text, fz_error *err) {
    net_answer *out = x->out;
    net_sigpipe sp;
    net_sigpipe_block(&sp);
    out->sent_ms = fz_now_ms();
    CURLcode rc = curl_easy_perform(c);
    out->received_ms = fz_now_ms();
    net_sigpipe_restore(&sp);
    if (out->body.len) (void)fz_buf_cstr(&out->body);
    out->body_cut = rc != CURLE_OK && x->sent && !out->status && !x->stalled && rc != CURLE_OPERATION_TIMEDOUT && (rc == CURLE_SEND_ERROR || x->sent_bytes < x->rq->body.n);
    return judge(x, c, rc, where_of(u, out->arena), u->scheme, text, err);
}

fz_status net_exchange(const net_request *rq, net_answer *out, fz_error *err) {
    *out = (net_answer){.arena = fz_arena_new()};
    net_url u;
    FZ_TRY(net_url_parse(rq->url, out->arena, &u, err));
    struct curl_slist *headers = NULL;
    FZ_TRY(make_headers(rq, out->arena, &headers, err));
    char text[CURL_ERROR_SIZE] = "";
    exchange x = {.rq = rq, .out = out, .stall_ns = (rq->stall_timeout_ms > 0 ? rq->stall_timeout_ms : NET_DEFAULT_STALL_MS) * 1000000};
    uint64_t key = net_pool_key(&u, &rq->tls);
    CURL *c = net_pool_take(key);
    set_up(c, rq, &x, text);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
    X509_STORE *trusted;
    fz_status st = net_set_tls(c, &u, &rq->tls, &trusted, err);
    if (st == FZ_OK) st = perform(&x, c, &u, text, err);
    net_pool_give(c, key);
    net_release_tls(trusted);
    curl_slist_free_all(headers);
    return st;
}

void net_answer_free(net_answer *a) {
    fz_buf_free(&a->body);
    fz_arena_free(a->arena);
    *a = (net_answer){0};
}

const char *net_answer_header(const net_answer *a, const char *name) {
    for (size_t i = 0; i < a->n_headers; i++)
        if (fz_ieq(a->headers[i].name, name)) return a->headers[i].value;
    return NULL;
}

static fz_status reach(const char *url, const net_tls *tls, const char *proxy, int64_t timeout_ms, fz_arena *a, const char **address, fz_error *err) {
    net_url u;
    FZ_TRY(net_url_parse(url, a, &u, err));
    static const net_tls plain;
    if (!tls) tls = &plain;
    char text[CURL_ERROR_SIZE] = "";
    CURL *c = net_pool_take(net_pool_key(&u, tls));
    net_set_common(c, proxy, timeout_ms);
    X509_STORE *trusted;
    fz_status st = net_set_tls(c, &u, tls, &trusted, err);
    if (st != FZ_OK) {
        net_pool_drop(c);
        return st;
    }
    curl_easy_setopt(c, CURLOPT_URL, url);
    curl_easy_setopt(c, CURLOPT_ERRORBUFFER, text);
    curl_easy_setopt(c, CURLOPT_CONNECT_ONLY, 1L);
    curl_easy_setopt(c, CURLOPT_FRESH_CONNECT, 1L);
    net_sigpipe sp;
    net_sigpipe_block(&sp);
    CURLcode rc = curl_easy_perform(c);
    if (rc == CURLE_OK) {
        char *ip = NULL;
        curl_easy_getinfo(c, CURLINFO_PRIMARY_IP, &ip);
        *address = fz_arena_strdup(a, ip ? ip : "");
    } else {
        net_failure f = {.rc = rc, .curl = c, .where = where_of(&u, a), .scheme = u.scheme, .curl_text = text, .tls = tls,
                         .connect_ms = timeout_ms > 0 ? timeout_ms : NET_DEFAULT_CONNECT_MS};
        st = net_fail_exchange(&f, err);
    }
    /* A connection that CONNECT_ONLY made cannot serve requests: the handle goes with it. */
    net_pool_drop(c);
    net_release_tls(trusted);
    net_sigpipe_restore(&sp);
    return st;
}

fz_status net_reach(const char *url, const net_tls *tls, int64_t timeout_ms, fz_arena *a, const char **address, fz_error *err) {
    return reach(url, tls, NULL, timeout_ms, a, address, err);
}

fz_status net_reach_tcp(const char *host, int port, int64_t timeout_ms, fz_arena *a, const char **address, fz_error *err) {
    const char *url = fz_arena_printf(a, strchr(host, ':') ? "http://[%s]:%d" : "http://%s:%d", host, port);
    return reach(url, NULL, "", timeout_ms, a, address, err);
}
