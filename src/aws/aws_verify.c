/* Signature Version 4 from the server's side: see aws_verify in aws.h.
 *
 * Invariants
 *  1. Nothing but the signature is trusted: its scope, its date and the hash of the body are checked against the request and the clock.
 *  2. No error tells a secret, a signature that would be right, or how far a wrong one was right.
 * Source: AWS "Create a signed AWS API request".
 */
#include "aws/aws_int.h"
#include <openssl/crypto.h>

#define ALGORITHM "AWS4-HMAC-SHA256"
#define MOST_SKEW_MS 300000
enum { MOST_SIGNED = 64, MOST_AUTHORIZATION = 8192 };

typedef struct claim { /* what the Authorization header says */
    const char *access_key, *date, *region, *service, *signature;
    const char *names[MOST_SIGNED]; /* of signed headers, lower case, sorted */
    size_t n_names;
    const char *signed_headers;
} claim;

static fz_status incomplete(const char *what, fz_error *err) { return fz_fail(err, FZ_USER, "IncompleteSignatureException", "%s", what); }
static fz_status invalid(const char *what, fz_error *err) { return fz_fail(err, FZ_USER, "InvalidSignatureException", "%s", what); }

/* ---- headers ---- */

static const char *header(const aws_verify_input *in, const char *name) {
    for (size_t i = 0; i < in->n_headers; i++)
        if (fz_ieq(in->headers[i].name, name)) return in->headers[i].value;
    return NULL;
}

static bool is_signed(const claim *c, const char *name) {
    for (size_t i = 0; i < c->n_names; i++)
        if (fz_ieq(c->names[i], name)) return true;
    return false;
}

/* "name:value,value\n" */
static bool put_header(fz_buf *b, const aws_verify_input *in, const char *name, fz_arena *a) {
    bool found = false;
    fz_buf_printf(b, "%s:", name);
    for (size_t i = 0; i < in->n_headers; i++) {
        if (!fz_ieq(in->headers[i].name, name)) continue;
        fz_buf_printf(b, "%s%s", found ? "," : "", aws_folded(in->headers[i].value, a));
        found = true;
    }
    fz_buf_putc(b, '\n');
    return found;
}

/* ---- the Authorization header ---- */

/* The value of "Name=" up to a comma or the end, in a. */
static const char *part(const char *text, const char *name, fz_arena *a) {
    size_t n = strlen(name);
    for (const char *p = text; *p;) {
        p += strspn(p, " \t,");
        size_t m = strcspn(p, ",");
        if (m > n && strncmp(p, name, n) == 0 && p[n] == '=') {
            fz_sv v = fz_sv_trim((fz_sv){p + n + 1, m - n - 1});
            return v.n ? fz_arena_strndup(a, v.p, v.n) : NULL;
        }
        p += m;
    }
    return NULL;
}

/* AKID/20150830/us-east-1/service/aws4_request. Slashes in the key itself do not occur. */
static bool parse_scope(char *text, claim *c) {
    char *p[5];
    for (int i = 0; i < 5; i++) {
        p[i] = text;
        char *slash = text ? strchr(text, '/') : NULL;
        if (!text || !*text || (i < 4 && !slash)) return false;
        if (i == 4 && slash) return false;
        if (slash) *slash = 0;
        text = slash ? slash + 1 : NULL;
    }
    c->access_key = p[0];
    c->date = p[1];
    c->region = p[2];
    c->service = p[3];
    return strlen(p[1]) == 8 && strcmp(p[4], "aws4_request") == 0;
}

static bool parse_names(char *text, claim *c) {
    while (text) {
        char *semi = strchr(text, ';');
        if (semi) *semi = 0;
        if (!*text || c->n_names == MOST_SIGNED || (c->n_names && strcmp(c->names[c->n_names - 1], text) >= 0)) return false;
        for (const char *p = text; *p; p++)
            if (*p <= ' ' || *p > '~' || (*p >= 'A' && *p <= 'Z')) return false;
        c->names[c->n_names++] = text;
        text = semi ? semi + 1 : NULL;
    }
    return c->n_names > 0;
}

static fz_status parse(const char *text, fz_arena *a, claim *c, fz_error *err) {
    *c = (claim){0};
    if (strlen(text) > MOST_AUTHORIZATION) return incomplete("Authorization header is too long.", err);
    if (!fz_starts(text, ALGORITHM " ")) return incomplete("Unsupported AWS 'algorithm' in the Authorization header: '" ALGORITHM "' is wanted.", err);
    text += strlen(ALGORITHM " ");
    const char *scope = part(text, "Credential", a), *names = part(text, "SignedHeaders", a);
    c->signature = part(text, "Signature", a);
    c->signed_headers = names;
    if (!scope) return incomplete("Authorization header requires 'Credential' parameter.", err);
    if (!c->signature) return incomplete("Authorization header requires 'Signature' parameter.", err);
    if (!names) return incomplete("Authorization header requires 'SignedHeaders' parameter.", err);
    if (!parse_scope(fz_arena_strdup(a, scope), c)) return incomplete("Credential must have 5 slash-delimited elements: KEYID/DATE/REGION/SERVICE/aws4_request.", err);
    if (!parse_names(fz_arena_strdup(a, names), c)) return incomplete("'SignedHeaders' must be lower-case names in order, divided by ';'.", err);
    return FZ_OK;
}

/* ---- checks ---- */

static fz_status check_signed(const aws_verify_input *in, const claim *c, fz_error *err) {
    static const char *const wanted[] = {"x-amz-date", "x-amz-target", "x-amz-security-token", "x-amz-content-sha256"};
    if (!is_signed(c, "host")) return invalid("'Host' must be a 'SignedHeader' in the AWS Authorization.", err);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (header(in, wanted[i]) && !is_signed(c, wanted[i])) return fz_fail(err, FZ_USER, "InvalidSignatureException", "'%s' must be a 'SignedHeader' in the AWS Authorization.", wanted[i]);
    return FZ_OK;
}

static fz_status check_scope(const aws_verify_input *in, const claim *c, fz_error *err) {
    if (strcmp(c->service, in->service) != 0) return fz_fail(err, FZ_USER, "InvalidSignatureException", "Credential should be scoped to correct service: '%s'.", in->service);
    if (in->region && strcmp(c->region, in->region) != 0) return fz_fail(err, FZ_USER, "InvalidSignatureException", "Credential should be scoped to a valid region, '%s'.", in->region);
    return FZ_OK;
}

/* "20150830T123600Z" -> ms. */
static bool basic_time(const char *s, int64_t *ms) {
    char iso[24];
    if (strlen(s) != 16 || s[8] != 'T' || s[15] != 'Z') return false;
    snprintf(iso, sizeof iso, "%.4s-%.2s-%.2sT%.2s:%.2s:%.2sZ", s, s + 4, s + 6, s + 9, s + 11, s + 13);
    return aws_time_parse(iso, ms);
}

static fz_status check_date(const aws_verify_input *in, const claim *c, char when[17], fz_error *err) {
    const char *date = header(in, "x-amz-date");
    int64_t ms;
    char now[17], limit[17];
    bool amz = date != NULL;
    if (!date) date = header(in, "date");
    if (!date || (!amz && !is_signed(c, "date"))) return incomplete("Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header.", err);
    if (amz ? !basic_time(date, &ms) : !aws_time_parse(date, &ms)) return incomplete("Date must be in ISO-8601 'basic format', as in '20150830T123600Z'.", err);
    aws_time_basic(ms, when);
    if (strncmp(c->date, when, 8) != 0) return invalid("Date in Credential scope does not match the date of the request.", err);
    aws_time_basic(in->now_ms, now);
    bool old = ms < in->now_ms - MOST_SKEW_MS, early = ms > in->now_ms + MOST_SKEW_MS;
    aws_time_basic(in->now_ms + (old ? -MOST_SKEW_MS : MOST_SKEW_MS), limit);
    if (old) return fz_fail(err, FZ_USER, "InvalidSignatureException", "Signature expired: %s is now earlier than %s (%s - 5 min.)", when, limit, now);
    if (early) return fz_fail(err, FZ_USER, "InvalidSignatureException", "Signature not yet current: %s is still later than %s (%s + 5 min.)", when, limit, now);
    return FZ_OK;
}

static bool same(const char *a, const char *b) { return strlen(a) == 64 && CRYPTO_memcmp(a, b, 64) == 0; }

static fz_status check_signature(const aws_verify_input *in, const claim *c, const char *secret, const char *when, fz_arena *a, fz_error *err) {
    static const char wrong[] = "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details.";
    char hash[65], signature[65];
    const char *said = header(in, "x-amz-content-sha256");
    aws_sha256_hex(in->body, in->n_body, hash);
    if (said && strcmp(said, hash) != 0) return invalid("The value of the header x-amz-content-sha256 is not the hash of the body.", err);
    fz_buf b = {0};
    bool all = true;
    fz_buf_printf(&b, "%s\n", in->method);
    aws_put_path(&b, in->path, in->encode_path_twice, a);
    fz_buf_putc(&b, '\n');
    aws_put_query(&b, in->query, a);
    fz_buf_putc(&b, '\n');
    for (size_t i = 0; i < c->n_names; i++) all &= put_header(&b, in, c->names[i], a);
    fz_buf_printf(&b, "\n%s\n%s", c->signed_headers, hash);
    aws_sign_request(secret, &b, when, c->region, c->service, signature);
    bool right = same(c->signature, signature) && all;
    OPENSSL_cleanse(signature, sizeof signature);
    return right ? FZ_OK : invalid(wrong, err);
}

fz_status aws_verify(const aws_verify_input *in, aws_secret_of secret_of, void *cx, fz_error *err) {
    const char *authorization = header(in, "authorization"), *secret;
    claim c;
    char when[17];
    if (!authorization || !*authorization) return fz_fail(err, FZ_USER, "MissingAuthenticationTokenException", "Missing Authentication Token");
    fz_arena *a = fz_arena_new();
    fz_status rc = parse(authorization, a, &c, err);
    if (rc == FZ_OK) rc = check_signed(in, &c, err);
    if (rc == FZ_OK && !(secret = secret_of(cx, c.access_key))) rc = fz_fail(err, FZ_USER, "UnrecognizedClientException", "The security token included in the request is invalid.");
    if (rc == FZ_OK) rc = check_scope(in, &c, err);
    if (rc == FZ_OK) rc = check_date(in, &c, when, err);
    if (rc == FZ_OK) rc = check_signature(in, &c, secret, when, a, err);
    fz_arena_free(a);
    return rc;
}
