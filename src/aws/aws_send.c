/* One request to a service: sign, send, judge, try again. See aws.h; the judging is in aws_verdict.c.
 *
 * Invariants
 *  1. Every attempt is signed anew, with credentials asked for anew.
 *  2. After an attempt that may have had its effect a request that is not idempotent is not sent again, by this file or by the transport
 *     (net_request.repeatable is the same flag).
 *  3. Attempts that other credentials, another clock or another region put right do not count against max_attempts; each kind is bounded by itself.
 *  4. A server that refuses a large body may close before it has read it, and the refusal is lost while we still send. The next attempt asks first (Expect).
 *  5. What the service quoted of our signature (token, secret) is taken out of its message before anybody sees it.
 */
#include "aws/aws_send_int.h"
#include <stdlib.h>
#include <unistd.h>

/* ---- what a session remembers ---- */

void aws_send_state_init(aws_send_state *st) {
    *st = (aws_send_state){0};
    pthread_mutex_init(&st->lock, NULL);
}

void aws_send_state_free(aws_send_state *st) {
    for (size_t i = 0; i < st->n_learned; i++) {
        fz_free(st->learned[i].host);
        fz_free(st->learned[i].region);
    }
    pthread_mutex_destroy(&st->lock);
}

static int64_t clock_offset(aws_session *s) {
    aws_send_state *st = aws_session_send_state(s);
    pthread_mutex_lock(&st->lock);
    int64_t v = st->skew_ms;
    pthread_mutex_unlock(&st->lock);
    return v;
}

static void learn_offset(aws_session *s, int64_t offset) {
    aws_send_state *st = aws_session_send_state(s);
    pthread_mutex_lock(&st->lock);
    st->skew_ms = offset;
    pthread_mutex_unlock(&st->lock);
    fz_log(FZ_LOG_WARN, "aws.clock", FZ_KV("offset_ms", "%lld", (long long)offset), FZ_KV("reason", "%s", "the service's clock is another one; requests are signed with its time"), NULL);
}

static bool learned_region(aws_session *s, const char *host, char *out, size_t cap) {
    aws_send_state *st = aws_session_send_state(s);
    bool found = false;
    pthread_mutex_lock(&st->lock);
    for (size_t i = 0; i < st->n_learned && !found; i++)
        if (strcmp(st->learned[i].host, host) == 0) {
            snprintf(out, cap, "%s", st->learned[i].region);
            found = true;
        }
    pthread_mutex_unlock(&st->lock);
    return found;
}

static void learn_region(aws_session *s, const char *host, const char *region) {
    aws_send_state *st = aws_session_send_state(s);
    pthread_mutex_lock(&st->lock);
    size_t i = 0;
    while (i < st->n_learned && strcmp(st->learned[i].host, host)) i++;
    if (i == FZ_MAX_LEARNED_REGIONS) { /* the newest of the others makes room */
        i = --st->n_learned;
        fz_free(st->learned[i].host);
        fz_free(st->learned[i].region);
    }
    if (i == st->n_learned) {
        st->learned[i].host = fz_strdup(host);
        st->n_learned++;
    } else fz_free(st->learned[i].region);
    st->learned[i].region = fz_strdup(region);
    pthread_mutex_unlock(&st->lock);
}

/* ---- setting up ---- */

static const char *header_of(const aws_request *rq, const char *name) {
    for (size_t i = 0; i < rq->n_headers; i++)
        if (fz_ieq(rq->headers[i].name, name)) return rq->headers[i].value;
    return NULL;
}

static fz_status set_host(aws_send_run *run, fz_error *err) {
    fz_arena *a = fz_arena_new();
    net_url u;
    fz_status rc = net_url_parse(run->rq->endpoint, a, &u, err);
    if (rc == FZ_OK && (strlen(u.host) > 253 || (u.path[0] && strcmp(u.path, "/")) || u.query))
        rc = fz_fail(err, FZ_USER, "aws.endpoint", "the endpoint of %s must be scheme://host[:port] with nothing behind it", run->rq->service);
    if (rc == FZ_OK) {
        bool v6 = strchr(u.host, ':');
        bool usual = !u.port || u.port == (strcmp(u.scheme, "https") ? 80 : 443);
        char port[16] = "";
        if (!usual) snprintf(port, sizeof port, ":%d", u.port);
        snprintf(run->host, sizeof run->host, "%s%s%s%s", v6 ? "[" : "", u.host, v6 ? "]" : "", port);
        snprintf(run->scheme, sizeof run->scheme, "%s", u.scheme);
    }
    fz_arena_free(a);
    return rc;
}

static fz_status set_region(aws_send_run *run, fz_error *err) {
    const char *region = run->rq->region;
    if (run->rq->anonymous && !region) return FZ_OK;
    /* The global endpoints belong to one region, whatever the session's is. */
    if (strcmp(run->host, "sts.amazonaws.com") == 0 || strcmp(run->host, "iam.amazonaws.com") == 0) region = "us-east-1";
    if (!region) FZ_TRY(aws_session_region(run->session, &region, NULL, err));
    snprintf(run->region, sizeof run->region, "%s", region);
    return FZ_OK;
}

/* Once a bucket's region is known, an endpoint that names another region is asked by its new name. */
static void use_region(aws_send_run *run, const char *region) {
    char from[80];
    snprintf(from, sizeof from, ".%s.", run->region);
    char *at = strstr(run->host, from);
    if (at && strstr(run->host, ".amazonaws.com")) {
        char moved[sizeof run->host];
        snprintf(moved, sizeof moved, "%.*s.%s.%s", (int)(at - run->host), run->host, region, at + strlen(from));
        memcpy(run->host, moved, sizeof moved);
    }
    snprintf(run->region, sizeof run->region, "%s", region);
}

static void name_operation(aws_send_run *run) {
    const aws_request *rq = run->rq;
    const char *target = header_of(rq, "x-amz-target"), *dot = target ? strchr(target, '.') : NULL;
    if (dot) snprintf(run->operation, sizeof run->operation, "%s %s", rq->service, dot + 1);
    else if (strcmp(rq->path, "/") == 0 && rq->body.p && rq->body.n > 7 && memcmp(rq->body.p, "Action=", 7) == 0)
        snprintf(run->operation, sizeof run->operation, "%s %.*s", rq->service, (int)strcspn((const char *)rq->body.p + 7, "&"), (const char *)rq->body.p + 7);
    else snprintf(run->operation, sizeof run->operation, "%s %s %.120s", rq->service, rq->method, rq->path);
}

/* Hex hash of the body; a file is read once more for it. */
static fz_status hash_body(const aws_request *rq, char out[65], fz_error *err) {
    if (rq->body.p || rq->body.n == 0) {
        aws_sha256_hex(rq->body.p, rq->body.n, out);
        return FZ_OK;
    }
    aws_sha256 *h = aws_sha256_new();
    size_t cap = 256u << 10;
    char *piece = fz_malloc(cap);
    fz_status rc = FZ_OK;
    for (size_t at = 0; at < rq->body.n && rc == FZ_OK;) {
        size_t want = rq->body.n - at < cap ? rq->body.n - at : cap;
        ssize_t got = pread(rq->body.fd, piece, want, (off_t)(rq->body.from + at));
        if (got <= 0) rc = fz_fail(err, FZ_FATAL, "net.body", "%s %s: the file to send cannot be read", rq->service, rq->path);
        else aws_sha256_add(h, piece, (size_t)got), at += (size_t)got;
    }
    aws_sha256_hex_end(h, out);
    aws_sha256_free(h);
    fz_free(piece);
    return rc;
}

/* ---- one attempt ---- */

static bool double_encoded(const char *service) {
    return strcmp(service, "s3") && strcmp(service, "s3-outposts");
}

static size_t sign(aws_send_run *run, const char *payload, net_header *out) {
    const aws_request *rq = run->rq;
    aws_sign_input in = {.service = rq->service, .region = run->region, .method = rq->method, .host = run->host, .path = rq->path, .query = rq->query,
                         .headers = rq->headers, .n_headers = rq->n_headers, .payload_sha256 = payload, .now_ms = fz_now_ms() + run->offset_ms,
                         .encode_path_twice = double_encoded(rq->service), .content_sha256_header = !header_of(rq, "x-amz-target")};
    size_t n = 0;
    aws_sign(&run->creds, &in, run->arena, out, &n);
    return n;
}

static fz_status attempt(aws_send_run *run, const char *payload, aws_answer *out, fz_error *err) {
    const aws_request *rq = run->rq;
    net_header *h = FZ_ANEWN(run->arena, net_header, rq->n_headers + 4);
    size_t n = rq->n_headers;
    if (n) memcpy(h, rq->headers, n * sizeof *h);
    if (!rq->anonymous) n += sign(run, payload, h + n);
    const char *url = rq->query && rq->query[0] ? fz_arena_printf(run->arena, "%s://%s%s?%s", run->scheme, run->host, rq->path, rq->query)
                                                : fz_arena_printf(run->arena, "%s://%s%s", run->scheme, run->host, rq->path);
    int64_t stall = aws_session_stall_timeout_ms(run->session);
    if (rq->stall_timeout_ms > stall) stall = rq->stall_timeout_ms;
    net_request nr = {.method = rq->method, .url = url, .headers = h, .n_headers = n, .body = rq->body, .tls = *aws_session_tls(run->session),
                      .proxy = aws_session_proxy(run->session), .connect_timeout_ms = aws_session_connect_timeout_ms(run->session),
                      .stall_timeout_ms = stall, .timeout_ms = rq->timeout_ms, .max_answer = rq->max_answer, .into = rq->into,
                      .repeatable = rq->idempotent, .expect_continue = run->ask_first && rq->body.n > 0};
    out->attempts++;
    return net_exchange(&nr, &out->http, err);
}

/* Takes every occurrence of a secret out of text. */
static void scrub(char *text, const char *secret) {
    size_t n = secret ? strlen(secret) : 0;
    if (n < 4) return;
    for (char *p = text; (p = strstr(p, secret));) {
        memmove(p + 3, p + n, strlen(p + n) + 1);
        memcpy(p, "***", 3);
        p += 3;
    }
}

/* The same for one that was cut off at the end of text. */
static void scrub_start(char *text, const char *secret) {
    if (!secret || strlen(secret) <= 24) return;
    char start[25];
    snprintf(start, sizeof start, "%s", secret);
    char *at = strstr(text, start);
    if (at) memcpy(at, "***", 4);
}

static void read_error(aws_send_run *run, aws_answer *a) {
    aws_error_parse(a);
    /* STS and Glue quote the whole canonical request, token included. */
    char *quoted = strstr(a->error_message, "The Canonical String");
    if (quoted) *quoted = 0;
    if (run->rq->anonymous) return;
    const char *secrets[] = {run->creds.token, run->creds.secret_key};
    for (size_t i = 0; i < 2; i++) {
        scrub(a->error_message, secrets[i]);
        scrub_start(a->error_message, secrets[i]);
        scrub(a->error_code, secrets[i]);
        scrub_start(a->error_code, secrets[i]);
    }
}

static bool body_is_error(const aws_answer *a) {
    const char *p = (const char *)a->http.body.data, *end = p + a->http.body.len;
    while (p < end) {
        while (p < end && strchr(" \t\r\n", *p)) p++;
        if (end - p < 7 || *p != '<') return false;
        if (p[1] != '?') return strncmp(p, "<Error>", 7) == 0 || strncmp(p, "<Error ", 7) == 0;
        p = memchr(p, '>', (size_t)(end - p));
        if (!p) return false;
        p++;
    }
    return false;
}

/* Did it work? S3 begins some answers with 200 before it knows. */
static bool succeeded(aws_send_run *run, aws_answer *a) {
    int status = a->http.status;
    run->in_200 = false;
    if (status >= 400 || (status >= 300 && status != 304)) return false;
    if (!run->rq->error_in_200 || !body_is_error(a)) return true;
    a->http.status = 500;
    run->in_200 = true;
    return false;
}

/* ---- between attempts ---- */

int64_t aws_backoff_ms(int failures, bool throttled, const char *retry_after, int64_t now_ms) {
    int64_t most = throttled ? AWS_BACKOFF_THROTTLED_MS : AWS_BACKOFF_BASE_MS;
    for (int i = 1; i < failures && most < AWS_BACKOFF_CAP_MS; i++) most *= 2;
    if (most > AWS_BACKOFF_CAP_MS) most = AWS_BACKOFF_CAP_MS;
    uint64_t r;
    fz_random(&r, sizeof r);
    int64_t wait = (int64_t)(r % (uint64_t)(most + 1)), least = 0, at;
    if (retry_after && fz_parse_i64(fz_sv_trim(fz_sv_of(retry_after)), &least)) least = least > 0 && least < 3600 ? least * 1000 : least > 0 ? AWS_BACKOFF_CAP_MS : 0;
    else if (retry_after && aws_time_parse(retry_after, &at)) least = at - now_ms;
    if (least > AWS_BACKOFF_CAP_MS) least = AWS_BACKOFF_CAP_MS;
    return wait > least ? wait : least;
}

/* Does what the verdict asks for before the next attempt; false: nothing is left to try. */
static bool prepare_next(aws_send_run *run, const aws_answer *a, const aws_verdict *v) {
    switch (v->next) {
    case AWS_AGAIN_LATER:
        if (++run->failures >= run->max_attempts || net_hurried()) return false;
        int64_t wait = aws_backoff_ms(run->failures, v->throttled, net_answer_header(&a->http, "retry-after"), fz_now_ms() + run->offset_ms);
        fz_log(FZ_LOG_DEBUG, "aws.retry", FZ_KV("operation", "%s", run->operation), FZ_KV("status", "%d", a->http.status), FZ_KV("error", "%s", a->error_code),
               FZ_KV("attempt", "%d", a->attempts), FZ_KV("wait_ms", "%lld", (long long)wait), NULL);
        aws_sleep(wait);
        return true;
    case AWS_NEW_CREDENTIALS:
        if (run->refreshed++ >= 2) return false;
        aws_provider_expired(run->provider, run->creds.generation);
        return true;
    case AWS_SERVERS_CLOCK:
        if (run->clock_taken) return false;
        run->clock_taken = true;
        run->offset_ms += v->skew_ms;
        learn_offset(run->session, run->offset_ms);
        return true;
    case AWS_OTHER_REGION:
        if (run->moved++ >= 1) return false;
        use_region(run, v->region);
        return true;
    default: return false;
    }
}

static bool equal(const char *x, const char *y) {
    return x == y || (x && y && strcmp(x, y) == 0);
}

/* Credentials for the next attempt. *same: a service refused these already, and the provider has no others. */
static fz_status credentials(aws_send_run *run, bool *same, fz_error *err) {
    *same = false;
    if (run->rq->anonymous) return FZ_OK;
    aws_credentials before = run->creds; /* in the arena of the attempt before, which lives until the next */
    FZ_TRY(aws_provider_get(run->provider, run->arena, &run->creds, err));
    *same = equal(run->creds.access_key, before.access_key) && equal(run->creds.secret_key, before.secret_key) && equal(run->creds.token, before.token);
    return FZ_OK;
}

static void reset_answer(aws_answer *out) {
    int attempts = out->attempts;
    bool maybe = out->maybe_applied;
    if (out->http.arena) net_answer_free(&out->http);
    *out = (aws_answer){.attempts = attempts, .maybe_applied = maybe};
}

/* The attempts; v is the verdict on the last one. FZ_OK also when it failed: then v->cls is set. */
static fz_status try_until(aws_send_run *run, const char *payload, aws_answer *out, aws_verdict *v, fz_status *sent, fz_error *err) {
    char first_host[sizeof run->host];
    snprintf(first_host, sizeof first_host, "%s", run->host);
    fz_arena *old = NULL;
    fz_status rc = FZ_OK;
    for (bool again = true; again;) {
        bool same = false, refreshing = v->next == AWS_NEW_CREDENTIALS;
        fz_arena_free(old);
        old = run->arena; /* holds the credentials of the attempt before */
        run->arena = fz_arena_new();
        rc = credentials(run, &same, err);
        if (rc != FZ_OK || (refreshing && same)) break;
        reset_answer(out);
        *sent = attempt(run, payload, out, err);
        bool resent = out->http.resent;
        run->ask_first |= out->http.body_cut;
        if (*sent == FZ_OK && succeeded(run, out)) {
            out->maybe_applied |= resent;
            *v = (aws_verdict){.next = AWS_END, .cls = FZ_OK};
            if (run->moved) learn_region(run->session, first_host, run->region);
            break;
        }
        if (*sent == FZ_OK) read_error(run, out);
        *v = aws_judge(run, out, *sent);
        /* What libcurl repeated counts as an attempt before this one. */
        out->maybe_applied |= resent | v->maybe_applied;
        again = v->next != AWS_END && prepare_next(run, out, v);
    }
    fz_arena_free(old);
    return rc;
}

fz_status aws_send(aws_session *s, const aws_request *rq, aws_answer *out, fz_error *err) {
    *out = (aws_answer){0};
    fz_error unwanted = {0};
    if (!err) err = &unwanted;
    aws_send_run run = {.session = s, .rq = rq, .provider = rq->provider ? rq->provider : aws_session_provider(s), .offset_ms = clock_offset(s)};
    run.max_attempts = rq->max_attempts > 0 ? rq->max_attempts : aws_session_max_attempts(s);
    char payload[80];
    if (rq->payload_sha256) snprintf(payload, sizeof payload, "%s", rq->payload_sha256);
    else if (rq->anonymous) payload[0] = 0;
    else FZ_TRY(hash_body(rq, payload, err));
    FZ_TRY(set_host(&run, err));
    FZ_TRY(set_region(&run, err));
    name_operation(&run);
    char region[64];
    if (strcmp(rq->service, "s3") == 0 && learned_region(s, run.host, region, sizeof region)) use_region(&run, region);
    aws_verdict v = {.next = AWS_END, .cls = FZ_OK};
    fz_status sent = FZ_OK, rc = try_until(&run, payload, out, &v, &sent, err);
    if (rc != FZ_OK) fz_context(err, "%s", run.operation);
    else if (v.cls != FZ_OK) rc = aws_send_fail(&run, out, &v, sent, err);
    fz_arena_free(run.arena);
    return rc;
}

void aws_answer_free(aws_answer *a) {
    if (a->http.arena) net_answer_free(&a->http);
    *a = (aws_answer){0};
}
