/* Whole objects of S3: get, head, put, put if absent. See s3_int.h.
 *
 * Put if absent, when an answer was lost: an object that is there now may be ours or another's. Its bytes decide: the same bytes are as good as ours. */
#include "fileio/s3_int.h"
#include <stdio.h>

#define ERROR_MAX (64u << 10) /* bytes of an answer that says what went wrong, however small the object may be */

fz_status s3_get(s3_store *s, const char *location, size_t max, fz_buf *out, fz_error *err) {
    s3_request rq = {.op = "GetObject", .method = "GET", .location = location, .customer_key = true, .max_answer = max > ERROR_MAX ? max : ERROR_MAX};
    aws_answer a;
    fz_status rc = s3_send(s, &rq, &a, err);
    if (rc == FZ_OK && a.http.body.len > max) rc = fz_fail(err, FZ_FATAL, "file.too-large", "'%s' has more than %zu bytes", location, max);
    if (rc == FZ_OK) {
        if (out->len == 0) { /* handed over, not copied */
            fz_buf_free(out);
            *out = a.http.body;
            a.http.body = (fz_buf){0};
        } else fz_buf_append(out, a.http.body.data, a.http.body.len);
    }
    aws_answer_free(&a);
    return rc;
}

fz_status s3_get_range(s3_store *s, const char *location, uint64_t from, size_t n, void *out, fz_error *err) {
    if (n == 0) {
        uint64_t size;
        FZ_TRY(s3_head(s, location, &size, NULL, NULL, err));
        return from <= size ? FZ_OK : fz_fail(err, FZ_FATAL, "file.short", "'%s' ends at byte %llu, before byte %llu", location, (unsigned long long)size, (unsigned long long)from);
    }
    char range[64];
    snprintf(range, sizeof range, "bytes=%llu-%llu", (unsigned long long)from, (unsigned long long)(from + n - 1));
    s3_request rq = {.op = "GetObject", .method = "GET", .location = location, .customer_key = true, .max_answer = n, .into = out};
    s3_header(&rq, "Range", range);
    aws_answer a;
    fz_error own;
    fz_error *e = err ? err : &own;
    fz_status rc = s3_send(s, &rq, &a, e);
    if (rc == FZ_OK && a.http.status != 206 && from != 0) rc = fz_fail(e, FZ_FATAL, "file.unsupported", "the store ignores Range: '%s'", location);
    else if ((rc == FZ_OK && a.http.n_into < n) || (rc == FZ_FATAL && strcmp(e->code, "file.short") == 0))
        rc = fz_fail(e, FZ_FATAL, "file.short", "'%s' ends before byte %llu", location, (unsigned long long)(from + n));
    aws_answer_free(&a);
    return rc;
}

fz_status s3_head(s3_store *s, const char *location, uint64_t *size, fz_arena *arena, const char **mark, fz_error *err) {
    s3_request rq = {.op = "HeadObject", .method = "HEAD", .location = location, .customer_key = true};
    aws_answer a;
    fz_status rc = s3_send(s, &rq, &a, err);
    const char *length = rc == FZ_OK ? net_answer_header(&a.http, "content-length") : NULL;
    if (rc == FZ_OK && (!length || !fz_parse_u64(fz_sv_of(length), size))) rc = fz_fail(err, FZ_FATAL, "file.answer", "the answer to HEAD has no size: '%s'", location);
    if (rc == FZ_OK && mark) {
        const char *m = net_answer_header(&a.http, "x-amz-meta-frazil-upload");
        *mark = m ? fz_arena_strdup(arena, m) : NULL;
    }
    aws_answer_free(&a);
    return rc;
}

static fz_status put(s3_store *s, const char *location, const net_body *body, const char *sha256, bool if_absent, bool *maybe, fz_error *err) {
    s3_request rq = {.op = "PutObject", .method = "PUT", .location = location, .body = *body, .sha256 = sha256, .customer_key = true, .once = if_absent};
    fz_arena *a = fz_arena_new();
    aws_answer ans;
    if (if_absent) s3_header(&rq, "If-None-Match", "*");
    s3_write_headers(s, &rq);
    if (s->c.checksum && sha256) s3_header(&rq, "x-amz-checksum-sha256", s3_base64_of_hex(a, sha256));
    fz_status rc = s3_send(s, &rq, &ans, err);
    if (maybe) *maybe = ans.maybe_applied;
    aws_answer_free(&ans);
    fz_arena_free(a);
    return rc;
}

fz_status s3_put(s3_store *s, const char *location, const net_body *body, const char *sha256, fz_error *err) {
    char hex[65];
    if (!sha256 && body->fd < 0) {
        aws_sha256_hex(body->p, body->n, hex);
        sha256 = hex;
    }
    return put(s, location, body, sha256, false, NULL, err);
}

/* Does the object hold exactly these bytes? */
static fz_status same(s3_store *s, const char *location, const void *p, size_t n, bool *out, fz_error *err) {
    uint64_t size;
    *out = false;
    FZ_TRY(s3_head(s, location, &size, NULL, NULL, err));
    if (size != n) return FZ_OK;
    const size_t step = 1u << 20;
    uint8_t *part = fz_malloc(step);
    fz_status rc = FZ_OK;
    bool eq = true;
    for (size_t at = 0; at < n && eq && rc == FZ_OK; at += step) {
        size_t len = n - at < step ? n - at : step;
        rc = s3_get_range(s, location, at, len, part, err);
        eq = rc == FZ_OK && memcmp(part, (const uint8_t *)p + at, len) == 0;
    }
    fz_free(part);
    *out = rc == FZ_OK && eq;
    return rc;
}

/* An answer was lost, and now somebody's object is (or may be) there. */
static fz_status decide(s3_store *s, const char *location, const void *p, size_t n, fz_error *err) {
    bool eq;
    fz_error why;
    fz_status rc = same(s, location, p, n, &eq, &why);
    if (rc == FZ_OK && eq) return FZ_OK;
    if (rc == FZ_OK) return fz_fail(err, FZ_CONFLICT, "file.exists", "'%s' exists already", location);
    fz_fail(err, FZ_UNKNOWN, "file.unknown", "whether '%s' was created could not be learned", location);
    return fz_detail(err, "%s", why.message), FZ_UNKNOWN;
}

/* For stores without conditional writes. Not atomic: two writers may both find nothing. */
static fz_status look_then_put(s3_store *s, const char *location, const net_body *body, const char *sha256, fz_error *err) {
    uint64_t size;
    fz_error e;
    fz_status rc = s3_head(s, location, &size, NULL, NULL, &e);
    if (rc == FZ_OK) return fz_fail(err, FZ_CONFLICT, "file.exists", "'%s' exists already", location);
    if (strcmp(e.code, "file.not-found") != 0) {
        if (err) *err = e;
        return rc;
    }
    return put(s, location, body, sha256, false, NULL, err);
}

fz_status s3_put_if_absent(s3_store *s, const char *location, const void *p, size_t n, fz_error *err) {
    char hex[65];
    net_body body = {.p = p, .n = n, .fd = -1};
    aws_sha256_hex(p, n, hex);
    if (!s->c.conditional) return look_then_put(s, location, &body, hex, err);
    fz_error own;
    fz_error *e = err ? err : &own;
    bool unsure = false;
    unsigned most = s->c.max_attempts > 0 ? (unsigned)s->c.max_attempts : 5;
    for (unsigned tries = 0;; tries++) {
        bool maybe = false;
        fz_status rc = put(s, location, &body, hex, true, &maybe, e);
        bool again = rc == FZ_UNKNOWN || (rc == FZ_RETRY && (unsure || strcmp(e->code, "file.conflicting") == 0));
        unsure |= maybe || rc == FZ_UNKNOWN;
        if (again && tries + 1 < most) {
            s3_back_off(tries);
            continue;
        }
        if (rc == FZ_OK || !unsure) return rc;
        return decide(s, location, p, n, err); /* something is there, or the tries are at their end: UNKNOWN unless it can be read back */
    }
}
