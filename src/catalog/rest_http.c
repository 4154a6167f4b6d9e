/* One request to the catalog: headers, login, attempts, and what its outcome means. See rest_int.h.
 *
 * Invariants
 *  1. A request with an effect (REST_ONCE) goes onto the wire a second time only after an answer that says that it was not acted upon: 401, 419, or AWS's
 *     refusal of credentials. Never after silence, 5xx or 429.
 *  2. Each header name stands once in a request (S3 Tables answers 400 to a repeated Host), and there is no Keep-Alive.
 *  3. Idempotency-Key is sent when /v1/config says that the server understands it, one key an operation. It is a help for proxies and servers that repeat
 *     requests by themselves; we do not repeat on the strength of it, since the position check decides anyway.
 */
#include "catalog/rest_int.h"

#define PATIENCE_MS 5000       /* no attempt begins later than so long after the first one */
#define MAX_RETRY_AFTER_MS 5000

void (*rest_sleep)(int64_t ms) = fz_sleep_ms;

/* ---- headers ---- */

fz_status rest_header_put(rest_headers *h, const char *name, const char *value, fz_error *err) {
    size_t i = 0;
    while (i < h->n && !fz_ieq(h->v[i].name, name)) i++;
    if (!value) {
        if (i < h->n) memmove(&h->v[i], &h->v[i + 1], (--h->n - i) * sizeof *h->v);
        return FZ_OK;
    }
    if (i == sizeof h->v / sizeof *h->v) return fz_fail(err, FZ_USER, "catalog.option", "there are too many options 'header.*'");
    if (i == h->n) h->n++;
    h->v[i] = (net_header){name, value};
    return FZ_OK;
}

const char *rest_header_get(const rest_headers *h, const char *name) {
    for (size_t i = 0; i < h->n; i++)
        if (fz_ieq(h->v[i].name, name)) return h->v[i].value;
    return NULL;
}

/* A UUID of version 7 (RFC 9562), as the API wants keys to be. */
static const char *operation_key(fz_arena *a) {
    uint8_t b[16];
    uint64_t ms = (uint64_t)fz_now_ms();
    fz_random(b, sizeof b);
    for (int i = 0; i < 6; i++) b[i] = (uint8_t)(ms >> (40 - 8 * i));
    b[6] = (uint8_t)((b[6] & 0x0f) | 0x70);
    b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
    return fz_arena_printf(a, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10],
                           b[11], b[12], b[13], b[14], b[15]);
}

/* Credentials of the store are asked for unless the script has its own, and not of AWS's endpoints, where the same credentials open both doors. */
static bool wants_delegation(const rest *r) { return !rest_option(r, "s3.access-key-id") && !rest_auth_signing_name(r->auth); }

static fz_status make_headers(rest *r, const rest_request *rq, const char *key, rest_headers *h, fz_error *err) {
    h->n = 0;
    FZ_TRY(rest_header_put(h, "Accept", "application/json", err));
    if (rq->body) FZ_TRY(rest_header_put(h, "Content-Type", "application/json", err));
    if (rq->delegation && wants_delegation(r)) FZ_TRY(rest_header_put(h, "X-Iceberg-Access-Delegation", "vended-credentials", err));
    if (key) FZ_TRY(rest_header_put(h, "Idempotency-Key", key, err));
    for (size_t i = 0; i < r->n_headers; i++) FZ_TRY(rest_header_put(h, r->headers[i].name, r->headers[i].value[0] ? r->headers[i].value : NULL, err));
    return FZ_OK;
}

/* ---- one attempt ---- */

typedef struct attempt { rest *r; const rest_request *rq; const char *url, *key, *table_token; fz_buf body; uint64_t mark; } attempt;

static fz_status try_once(attempt *t, rest_answer *out, fz_error *err) {
    rest *r = t->r;
    rest_headers h;
    fz_arena *a = fz_arena_new();
    const char *method = rest_endpoint_method(t->rq->endpoint);
    rest_outgoing o = {method, t->url, t->body.data, t->body.len, t->table_token};
    fz_status rc = make_headers(r, t->rq, t->key, &h, err);
    if (rc == FZ_OK) rc = rest_auth_add(r, &o, a, &h, &t->mark, err);
    if (rc == FZ_OK) {
        net_request n = {.method = method, .url = t->url, .headers = h.v, .n_headers = h.n, .body = {.p = t->body.data, .n = t->body.len, .fd = -1}, .tls = r->tls, .proxy = r->proxy,
                         .connect_timeout_ms = r->connect_timeout_ms, .stall_timeout_ms = r->stall_timeout_ms, .max_answer = t->rq->max_answer, .repeatable = t->rq->effect == REST_READ};
        rc = net_exchange(&n, &out->http, err);
    }
    fz_arena_free(a);
    return rc;
}

/* ---- what an outcome means ---- */

static const char *path_of(const char *url) {
    const char *p = strstr(url, "://");
    p = p ? strchr(p + 3, '/') : NULL;
    return p ? p : url;
}

/* No whole answer. */
static fz_status judge_silence(const attempt *t, fz_status rc, fz_error *err) {
    fz_error why = *err;
    bool sent = rc == FZ_UNKNOWN || (rc == FZ_FATAL && fz_starts(err->code, "net."));
    const char *method = rest_endpoint_method(t->rq->endpoint), *path = path_of(t->url);
    int n = (int)strcspn(path, "?");
    if (!sent) return fz_context(err, "catalog '%s'", t->r->name);
    if (t->rq->effect == REST_ONCE)
        fz_fail(err, FZ_UNKNOWN, "catalog.commit-unknown", "catalog '%s' did not answer %s %.*s: whether it has acted is not known", t->r->name, method, n, path);
    else if (rc == FZ_FATAL) return fz_context(err, "catalog '%s'", t->r->name);
    else fz_fail(err, FZ_RETRY, "catalog.rest-unavailable", "catalog '%s' did not answer %s %.*s", t->r->name, method, n, path);
    return fz_detail(err, "%s", why.message);
}

typedef struct verdict { fz_status cls; const char *code, *what; } verdict;

static verdict verdict_of(const rest_request *rq, const rest_answer *a) {
    int s = a->http.status;
    bool once = rq->effect == REST_ONCE;
    switch (s) {
    case 401: case 419: return (verdict){FZ_USER, "catalog.rest-unauthorized", "refuses the login"};
    case 403: return (verdict){FZ_USER, "catalog.rest-forbidden", "forbids"};
    case 404: return (verdict){FZ_USER, "catalog.rest-not-found", "does not find"};
    case 409: return (verdict){FZ_CONFLICT, "catalog.conflict", "refuses because of a conflict"};
    case 429: return (verdict){FZ_RETRY, "catalog.rest-throttled", "has too much to do for"};
    default: break;
    }
    bool definite = (s >= 300 && s < 500 && s != 408) || (s == 501 && a->type[0]);
    if (definite) return (verdict){FZ_USER, "catalog.rest-request", "does not take"};
    if (once) return (verdict){FZ_UNKNOWN, "catalog.commit-unknown", "leaves open whether it has acted on"};
    return (verdict){FZ_RETRY, "catalog.rest-unavailable", "cannot answer"};
}

static fz_status judge_answer(const attempt *t, const rest_answer *a, fz_error *err) {
    const char *path = path_of(t->url), *method = rest_endpoint_method(t->rq->endpoint), *id = net_answer_header(&a->http, "x-amzn-requestid");
    verdict v = verdict_of(t->rq, a);
    fz_fail(err, v.cls, v.code, "catalog '%s' %s %s %.*s: status %d%s%s%s%s", t->r->name, v.what, method, (int)strcspn(path, "?"), path, a->http.status, a->type[0] ? ", " : "", a->type,
            a->message[0] ? ": " : " without a word why", a->message);
    if (id) fz_detail(err, "request id %.96s", id);
    const char *signing = rest_auth_signing_name(t->r->auth), *action = rest_endpoint_action(t->rq->endpoint, signing);
    if (a->http.status == 403 && action) fz_hint(err, "the caller needs the permission %s (and in Lake Formation, where that is on, a grant)", action);
    else if (a->http.status == 403) fz_hint(err, "it is there or not, but this login may not see or change it; ask who runs the catalog for the right to '%s'", rest_endpoint_text(t->rq->endpoint));
    else if (a->http.status == 401 || a->http.status == 419) fz_hint(err, "see the options credential, token, oauth2-server-uri, scope and rest.auth.type");
    else if (a->http.status / 100 == 3) fz_hint(err, "redirects are not followed; give the address that it leads to as 'uri'");
    return v.cls;
}

/* ---- attempts ---- */

static int64_t retry_after_ms(const net_answer *a) {
    const char *v = net_answer_header(a, "retry-after");
    int64_t s;
    if (!v || !fz_parse_i64(fz_sv_trim(fz_sv_of(v)), &s) || s < 0) return 0;
    return s > MAX_RETRY_AFTER_MS / 1000 ? MAX_RETRY_AFTER_MS : s * 1000;
}

static int64_t pause_ms(int tries, const net_answer *a) {
    uint32_t random;
    fz_random(&random, sizeof random);
    int64_t full = 100ll << (tries < 6 ? tries : 6), ms = full / 2 + (int64_t)(random % (uint32_t)(full / 2 + 1)), told = retry_after_ms(a);
    return told > ms ? told : ms;
}

/* May the same request go out again? Nothing was sent, or it does no harm. */
static bool may_repeat(const rest_request *rq, fz_status rc, const rest_answer *a, fz_status net) {
    if (rc != FZ_RETRY) return false;
    return rq->effect != REST_ONCE || (net == FZ_RETRY && a->http.status == 0);
}

/* The server has not acted, because it did not take the login: is there another one to try? Each kind once. */
static bool new_login(attempt *t, const rest_answer *a, bool *renewed) {
    if (t->table_token && (a->http.status == 401 || a->http.status == 419)) {
        rest_table_token_drop(t->r, t->table_token);
        t->table_token = NULL;
        return true;
    }
    if (*renewed) return false;
    return *renewed = rest_auth_renew(t->r, a, t->mark);
}

fz_status rest_send(rest *r, const rest_request *rq, rest_answer *out, fz_error *err) {
    *out = (rest_answer){0};
    if (rq->endpoint != REST_CONFIG && !rq->url) FZ_TRY(rest_must_offer(r, rq->endpoint, err));
    fz_arena *a = fz_arena_new();
    attempt t = {.r = r, .rq = rq, .url = rq->url, .table_token = rq->table_token};
    if (!t.url) t.url = fz_arena_printf(a, "%s%s%s%s", r->base, rq->path, rq->query ? "?" : "", rq->query ? rq->query : "");
    if (r->idempotency && rq->effect != REST_READ) t.key = operation_key(a);
    char *body = rq->body ? json_dumps(rq->body, JSON_COMPACT) : NULL;
    t.body = (fz_buf){(uint8_t *)body, body ? strlen(body) : 0, 0};
    int64_t start = fz_mono_ns();
    bool renewed = false, maybe = false;
    fz_status rc;
    for (int tries = 0;; tries++) {
        fz_status net = try_once(&t, out, err);
        rc = net;
        if (net != FZ_OK) rc = judge_silence(&t, net, err);
        else if (out->http.status / 100 != 2) {
            if (t.table_token && out->http.body.len) rest_hide((char *)(uintptr_t)fz_buf_cstr(&out->http.body), t.table_token);
            rest_error_parse(r, out);
            rc = judge_answer(&t, out, err);
            if (new_login(&t, out, &renewed)) {
                rest_answer_free(out);
                *out = (rest_answer){0};
                continue;
            }
        }
        if (!may_repeat(rq, rc, out, net) || tries >= r->max_retries || net_hurried() || (fz_mono_ns() - start) / 1000000 > PATIENCE_MS) break;
        int64_t ms = pause_ms(tries, &out->http);
        maybe |= net == FZ_OK ? out->http.status != 429 : net != FZ_RETRY;
        rest_answer_free(out);
        *out = (rest_answer){0};
        rest_sleep(ms);
    }
    out->maybe_applied = maybe;
    free(body);
    fz_arena_free(a);
    return rc;
}

void rest_answer_free(rest_answer *a) { net_answer_free(&a->http); }

fz_status rest_answer_json(const rest *r, const rest_answer *a, json_t **out, fz_error *err) {
    json_error_t why;
    *out = json_loadb(a->http.body.len ? (const char *)a->http.body.data : "", a->http.body.len, 0, &why);
    if (json_is_object(*out)) return FZ_OK;
    json_decref(*out);
    *out = NULL;
    char text[160];
    rest_text_shorten(a->http.body.data, a->http.body.len, text, sizeof text);
    fz_fail(err, FZ_RETRY, "catalog.rest-answer", "catalog '%s' answered with status %d, but not with a JSON object", r->name, a->http.status);
    rest_auth_redact(r->auth, text);
    return fz_detail(err, "it begins: %s", text);
}

/* ---- token endpoints ---- */

static fz_status login_error(rest *r, const char *url, const rest_answer *a, fz_error *err) {
    int s = a->http.status;
    bool passes = s == 408 || s == 429 || s >= 500;
    fz_fail(err, passes ? FZ_RETRY : FZ_USER, passes ? "catalog.rest-login-unavailable" : "catalog.rest-login", "catalog '%s': no token from %.*s: status %d%s%s%s%s", r->name,
            (int)strcspn(url, "?"), url, s, a->type[0] ? ", " : "", a->type, a->message[0] ? ": " : "", a->message);
    return passes ? err->cls : fz_hint(err, "see the options credential, scope and oauth2-server-uri (without it tokens are asked for at %s/v1/oauth/tokens)", r->base);
}

fz_status rest_post_form(rest *r, const char *url, const fz_buf *form, const char *authorization, json_t **out, fz_error *err) {
    *out = NULL;
    for (int tries = 0;; tries++) {
        rest_headers h = {0};
        rest_answer a = {0};
        FZ_TRY(rest_header_put(&h, "Accept", "application/json", err));
        FZ_TRY(rest_header_put(&h, "Content-Type", "application/x-www-form-urlencoded", err));
        if (authorization) FZ_TRY(rest_header_put(&h, "Authorization", authorization, err));
        net_request n = {.method = "POST", .url = url, .headers = h.v, .n_headers = h.n, .body = {.p = form->data, .n = form->len, .fd = -1}, .tls = r->tls, .proxy = r->proxy,
                         .connect_timeout_ms = r->connect_timeout_ms, .stall_timeout_ms = r->stall_timeout_ms, .max_answer = 1u << 20, .repeatable = true};
        fz_status rc = net_exchange(&n, &a.http, err);
        if (rc == FZ_UNKNOWN) err->cls = rc = FZ_RETRY; /* a token too many does no harm */
        if (rc != FZ_OK) fz_context(err, "catalog '%s': no token", r->name);
        else if (a.http.status / 100 == 2) {
            rc = rest_answer_json(r, &a, out, err);
            if (rc != FZ_OK) fz_detail(err, "at the token endpoint %.*s", (int)strcspn(url, "?"), url); /* the body may be a token */
        } else {
            rest_error_parse(r, &a);
            rc = login_error(r, url, &a, err);
        }
        int64_t ms = pause_ms(tries, &a.http);
        rest_answer_free(&a);
        if (rc != FZ_RETRY || tries >= (r->max_retries < 2 ? r->max_retries : 2)) return rc;
        rest_sleep(ms);
    }
}
