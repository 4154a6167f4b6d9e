/* Signature Version 4 (AWS "Create a signed AWS API request", S3 "Authenticating Requests"), in headers and in the query.
 *
 * Invariants
 *  1. What is signed is what goes onto the wire: for S3 the path byte for byte; for the others the path as servers see it, without "." and "..", and each
 *     segment encoded once more.
 *  2. Secret keys are not kept: the table of derived keys holds a hash of the secret.
 * Threads: any.
 */
#include "aws/aws_int.h"
#include <stdlib.h>

#define ALGORITHM "AWS4-HMAC-SHA256"

/* ---- derived keys: the same for a day, a region and a service ---- */

#define N_KEYS 32
typedef struct derived { uint8_t secret[32]; char scope[96]; uint8_t key[32]; uint64_t used; } derived;
static derived keys[N_KEYS];
static uint64_t key_clock;
static pthread_mutex_t key_lock = PTHREAD_MUTEX_INITIALIZER;

static void derive(const char *secret, const char *date, const char *region, const char *service, uint8_t out[32]) {
    size_t n = strlen(secret);
    char *start = fz_malloc(n + 5);
    memcpy(start, "AWS4", 4);
    memcpy(start + 4, secret, n + 1);
    aws_hmac_sha256(start, n + 4, date, 8, out);
    explicit_bzero(start, n + 5);
    fz_free(start);
    aws_hmac_sha256(out, 32, region, strlen(region), out);
    aws_hmac_sha256(out, 32, service, strlen(service), out);
    aws_hmac_sha256(out, 32, "aws4_request", 12, out);
}

static void signing_key(const char *secret, const char *date, const char *region, const char *service, uint8_t out[32]) {
    derived want = {0};
    aws_sha256_raw(secret, strlen(secret), want.secret);
    int n = snprintf(want.scope, sizeof want.scope, "%.8s/%s/%s", date, region, service);
    if (n < 0 || (size_t)n >= sizeof want.scope) { /* a scope that would not be told apart */
        derive(secret, date, region, service, out);
        return;
    }
    pthread_mutex_lock(&key_lock);
    derived *oldest = &keys[0], *found = NULL;
    for (size_t i = 0; i < N_KEYS && !found; i++) {
        if (keys[i].used && memcmp(keys[i].secret, want.secret, 32) == 0 && strcmp(keys[i].scope, want.scope) == 0) found = &keys[i];
        else if (keys[i].used < oldest->used) oldest = &keys[i];
    }
    if (!found) {
        derive(secret, date, region, service, want.key);
        *oldest = want;
        found = oldest;
    }
    found->used = ++key_clock;
    memcpy(out, found->key, 32);
    pthread_mutex_unlock(&key_lock);
}

/* ---- the canonical request ---- */

/* "." and ".." and empty segments go (RFC 3986 5.2.4, as AWS normalises). */
static const char *normal_path(const char *path, fz_arena *a) {
    size_t n = strlen(path), out = 0;
    char *to = fz_arena_alloc(a, n + 2);
    bool dir = true; /* ends with a slash */
    to[out++] = '/';
    for (const char *p = path; *p;) {
        while (*p == '/') p++;
        size_t m = strcspn(p, "/");
        if (m == 0) break;
        dir = p[m] == '/';
        if (m == 2 && p[0] == '.' && p[1] == '.') {
            if (out > 1) out--;
            while (out > 1 && to[out - 1] != '/') out--;
            dir = true;
        } else if (m == 1 && p[0] == '.') dir = true;
        else {
            memcpy(to + out, p, m);
            out += m;
            to[out++] = '/';
        }
        p += m;
    }
    if (out > 1 && !dir) out--;
    to[out] = 0;
    return to;
}

void aws_put_path(fz_buf *b, const char *path, bool encode_twice, fz_arena *a) {
    if (!path || !path[0]) path = "/";
    if (!encode_twice) fz_buf_puts(b, path);
    else {
        path = normal_path(path, a);
        net_encode(b, path, strlen(path), true);
    }
}

typedef struct param { const char *name, *value; } param;
static int cmp_param(const void *x, const void *y) {
    const param *p = x, *q = y;
    int c = strcmp(p->name, q->name);
    return c ? c : strcmp(p->value, q->value);
}

/* Decoded and encoded again, so that "a:b" or "%2f" sign as the server will see them. */
static const char *recode(const char *s, size_t n, fz_arena *a) {
    fz_buf raw = {0}, out = {0};
    char *spaced = fz_arena_strndup(a, s, n);
    for (size_t i = 0; i < n; i++)
        if (spaced[i] == '+') spaced[i] = ' ';
    if (net_decode(&raw, spaced, n)) net_encode(&out, (const char *)raw.data, raw.len, false);
    else fz_buf_append(&out, s, n);
    const char *r = fz_arena_strndup(a, out.len ? (const char *)out.data : "", out.len);
    fz_buf_free(&raw);
    fz_buf_free(&out);
    return r;
}

void aws_put_query(fz_buf *b, const char *query, fz_arena *a) {
    if (!query || !query[0]) return;
    size_t n = 1, k = 0;
    for (const char *p = query; *p; p++) n += *p == '&';
    param *v = FZ_ANEWN(a, param, n);
    for (const char *p = query;; p++) {
        size_t m = strcspn(p, "&");
        const char *eq = memchr(p, '=', m);
        size_t name = eq ? (size_t)(eq - p) : m;
        if (m) v[k++] = (param){recode(p, name, a), eq ? recode(eq + 1, m - name - 1, a) : ""};
        p += m;
        if (!*p) break;
    }
    qsort(v, k, sizeof *v, cmp_param);
    for (size_t i = 0; i < k; i++) fz_buf_printf(b, "%s%s=%s", i ? "&" : "", v[i].name, v[i].value);
}

typedef struct signed_header { const char *name, *value; size_t order; } signed_header;
static int cmp_header(const void *x, const void *y) {
    const signed_header *p = x, *q = y;
    int c = strcmp(p->name, q->name);
    return c ? c : (p->order > q->order) - (p->order < q->order);
}

/* Blanks off both ends, runs of blanks inside to one. */
const char *aws_folded(const char *value, fz_arena *a) {
    char *to = fz_arena_alloc(a, strlen(value) + 1);
    size_t n = 0;
    for (const char *p = value; *p; p++) {
        bool blank = *p == ' ' || *p == '\t';
        if (!blank) to[n++] = *p;
        else if (n && to[n - 1] != ' ') to[n++] = ' ';
    }
    if (n && to[n - 1] == ' ') n--;
    to[n] = 0;
    return to;
}

/* Those that proxies may change are left out. */
static bool is_signed(const char *name) {
    static const char *const out[] = {"host", "authorization", "user-agent", "connection", "expect", "transfer-encoding", "x-amzn-trace-id"};
    for (size_t i = 0; i < sizeof out / sizeof *out; i++)
        if (fz_ieq(name, out[i])) return false;
    return true;
}

static const char *lowered(const char *s, fz_arena *a) {
    char *l = fz_arena_strdup(a, s);
    for (char *p = l; *p; p++)
        if (*p >= 'A' && *p <= 'Z') *p = (char)(*p | 0x20);
    return l;
}

/* "name:value\n" lines into b, "a;b;c" as the result. Equal names are one line, values in the order given. */
static const char *put_headers(fz_buf *b, const aws_sign_input *in, const net_header *own, size_t n_own, fz_arena *a) {
    signed_header *h = FZ_ANEWN(a, signed_header, in->n_headers + n_own + 1);
    size_t n = 0;
    h[n++] = (signed_header){"host", aws_folded(in->host, a), 0};
    for (size_t i = 0; i < n_own; i++) h[n++] = (signed_header){own[i].name, aws_folded(own[i].value, a), i};
    for (size_t i = 0; i < in->n_headers; i++)
        if (is_signed(in->headers[i].name)) h[n++] = (signed_header){lowered(in->headers[i].name, a), aws_folded(in->headers[i].value, a), n_own + i};
    qsort(h, n, sizeof *h, cmp_header);
    fz_buf names = {0};
    for (size_t i = 0; i < n; i++) {
        if (i && strcmp(h[i].name, h[i - 1].name) == 0) {
            fz_buf_printf(b, ",%s", h[i].value);
            continue;
        }
        fz_buf_printf(b, "%s%s:%s", i ? "\n" : "", h[i].name, h[i].value);
        fz_buf_printf(&names, "%s%s", i ? ";" : "", h[i].name);
    }
    fz_buf_putc(b, '\n');
    const char *r = fz_arena_strdup(a, fz_buf_cstr(&names));
    fz_buf_free(&names);
    return r;
}

/* Hex signature over a canonical request, which is freed. */
void aws_sign_request(const char *secret, fz_buf *canonical, const char *when, const char *region, const char *service, char out[65]) {
    char hash[65];
    uint8_t key[32];
    aws_sha256_hex(canonical->data, canonical->len, hash);
    fz_buf_free(canonical);
    fz_buf text = {0};
    fz_buf_printf(&text, ALGORITHM "\n%s\n%.8s/%s/%s/aws4_request\n%s", when, when, region, service, hash);
    signing_key(secret, when, region, service, key);
    aws_hmac_sha256(key, sizeof key, text.data, text.len, key);
    fz_buf_free(&text);
    aws_hex(key, sizeof key, out);
}

void aws_sign(const aws_credentials *c, const aws_sign_input *in, fz_arena *a, net_header *out, size_t *n) {
    char when[17];
    aws_time_basic(in->now_ms, when);
    const char *payload = in->payload_sha256;
    size_t k = 0;
    out[k++] = (net_header){"x-amz-date", fz_arena_strdup(a, when)};
    if (c->token) out[k++] = (net_header){"x-amz-security-token", fz_arena_strdup(a, c->token)};
    if (in->content_sha256_header) out[k++] = (net_header){"x-amz-content-sha256", fz_arena_strdup(a, payload)};
    fz_buf b = {0};
    fz_buf_printf(&b, "%s\n", in->method);
    aws_put_path(&b, in->path, in->encode_path_twice, a);
    fz_buf_putc(&b, '\n');
    aws_put_query(&b, in->query, a);
    fz_buf_putc(&b, '\n');
    const char *names = put_headers(&b, in, out, k, a);
    fz_buf_printf(&b, "\n%s\n%s", names, payload);
    char signature[65];
    aws_sign_request(c->secret_key, &b, when, in->region, in->service, signature);
    out[k++] = (net_header){"authorization", fz_arena_printf(a, ALGORITHM " Credential=%s/%.8s/%s/%s/aws4_request, SignedHeaders=%s, Signature=%s", c->access_key, when,
                                                             in->region, in->service, names, signature)};
    *n = k;
}

const char *aws_presign(const aws_credentials *c, const char *service, const char *region, const char *host, const char *query, int64_t now_ms, int64_t valid_s, fz_arena *a) {
    char when[17], hash[65], signature[65];
    aws_time_basic(now_ms, when);
    fz_buf q = {0};
    if (query && query[0]) fz_buf_printf(&q, "%s&", query);
    fz_buf_puts(&q, "X-Amz-Algorithm=" ALGORITHM "&X-Amz-Credential=");
    const char *scope = fz_arena_printf(a, "%s/%.8s/%s/%s/aws4_request", c->access_key, when, region, service);
    net_encode(&q, scope, strlen(scope), false);
    fz_buf_printf(&q, "&X-Amz-Date=%s&X-Amz-Expires=%lld", when, (long long)valid_s);
    if (c->token) {
        fz_buf_puts(&q, "&X-Amz-Security-Token=");
        net_encode(&q, c->token, strlen(c->token), false);
    }
    fz_buf_puts(&q, "&X-Amz-SignedHeaders=host");
    fz_buf b = {0};
    fz_buf_puts(&b, "GET\n/\n");
    aws_put_query(&b, fz_buf_cstr(&q), a);
    aws_sha256_hex("", 0, hash);
    fz_buf_printf(&b, "\nhost:%s\n\nhost\n%s", host, strcmp(service, "s3") ? hash : "UNSIGNED-PAYLOAD");
    aws_sign_request(c->secret_key, &b, when, region, service, signature);
    const char *url = fz_arena_printf(a, "https://%s/?%s&X-Amz-Signature=%s", host, fz_buf_cstr(&q), signature);
    fz_buf_free(&q);
    return url;
}
