/* Deletes of S3: one by one, in batches (DeleteObjects), or as a tag for a lifecycle rule. What is not there counts as deleted. See s3_int.h. */
#include "fileio/s3_int.h"
#include <openssl/evp.h>
#include <stdlib.h>

/* ---- tags ---- */

typedef struct tags { fz_arena *a; fz_pair *v; size_t n, cap; } tags;

static void set_tag(tags *t, const char *key, const char *value) {
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->v[i].key, key) == 0) {
            t->v[i].value = value;
            return;
        }
    if (t->n == t->cap) {
        size_t cap = t->cap ? t->cap * 2 : 16;
        t->v = fz_arena_realloc(t->a, t->v, t->cap * sizeof *t->v, cap * sizeof *t->v);
        t->cap = cap;
    }
    t->v[t->n++] = (fz_pair){.key = key, .value = value};
}

/* <Tagging><TagSet><Tag><Key>..</Key>: one level deeper than records; the wrapper is taken off before. */
static bool take_tag(void *cx, const s3_record *r) {
    const char *k = s3_field(r, "Key"), *v = s3_field(r, "Value");
    if (strcmp(r->name, "Tag") == 0 && k) set_tag(cx, k, v ? v : "");
    return true;
}

static fz_status present_tags(s3_store *s, const char *location, tags *t, fz_error *err) {
    s3_request rq = {.op = "GetObjectTagging", .method = "GET", .location = location, .query = "tagging="};
    aws_answer a;
    fz_status rc = s3_send(s, &rq, &a, err);
    const char *xml = rc == FZ_OK && a.http.body.len ? fz_buf_cstr(&a.http.body) : "", *from = strstr(xml, "<TagSet>"), *to = strstr(xml, "</TagSet>");
    if (rc == FZ_OK && from && to && !s3_xml_records(t->a, from, (size_t)(to - from) + 9, take_tag, t))
        rc = fz_fail(err, FZ_RETRY, "file.answer", "the tags of '%s' cannot be read", location);
    aws_answer_free(&a);
    return rc;
}

static fz_status tag(s3_store *s, const char *location, fz_error *err) {
    fz_arena *a = fz_arena_new();
    tags t = {.a = a};
    fz_status rc = present_tags(s, location, &t, err);
    fz_buf b = {0};
    char hex[65];
    for (size_t i = 0; i < s->c.n_delete_tags; i++) set_tag(&t, s->c.delete_tags[i].key, s->c.delete_tags[i].value);
    fz_buf_puts(&b, "<Tagging xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><TagSet>");
    for (size_t i = 0; i < t.n && rc == FZ_OK; i++) {
        fz_buf_puts(&b, "<Tag><Key>");
        bool ok = s3_xml_escape(&b, t.v[i].key);
        fz_buf_puts(&b, "</Key><Value>");
        ok = ok && s3_xml_escape(&b, t.v[i].value);
        fz_buf_puts(&b, "</Value></Tag>");
        if (!ok) rc = fz_fail(err, FZ_USER, "option.invalid", "a tag in s3.delete.tags has a character that XML cannot carry");
    }
    fz_buf_puts(&b, "</TagSet></Tagging>");
    if (rc == FZ_OK) {
        s3_request rq = {.op = "PutObjectTagging", .method = "PUT", .location = location, .query = "tagging="};
        aws_answer ans;
        s3_body_bytes(&rq, b.data, b.len, hex);
        s3_header(&rq, "x-amz-checksum-sha256", s3_base64_of_hex(a, hex));
        rc = s3_send(s, &rq, &ans, err);
        aws_answer_free(&ans);
    }
    fz_buf_free(&b);
    fz_arena_free(a);
    return rc;
}

/* What goes before a delete. *go: the object is to be deleted still. */
static fz_status before_delete(s3_store *s, const char *location, bool *go, fz_error *err) {
    fz_sv bucket;
    const char *key;
    *go = true;
    if (s3_split(location, &bucket, &key) && s3_is_table_bucket(bucket)) { /* S3 Tables know no deletes: they remove themselves what no snapshot names */
        fz_log(FZ_LOG_DEBUG, "s3.delete-left-to-table-bucket", FZ_KV("location", "%s", location), NULL);
        *go = false;
        return FZ_OK;
    }
    *go = s->c.delete_enabled;
    if (s->c.n_delete_tags == 0) return FZ_OK;
    fz_error e;
    fz_status rc = tag(s, location, &e);
    if (rc == FZ_OK || strcmp(e.code, "file.not-found") == 0) return FZ_OK;
    if (s->c.delete_enabled) { /* the tags are for people; the delete is what counts */
        fz_log_error(FZ_LOG_WARN, "s3.delete-tags", &e);
        return FZ_OK;
    }
    if (err) *err = e;
    return rc;
}

/* ---- one ---- */

static fz_status delete_one(s3_store *s, const char *location, int max_attempts, fz_error *err) {
    s3_request rq = {.op = "DeleteObject", .method = "DELETE", .location = location, .max_attempts = max_attempts};
    aws_answer a;
    fz_error own;
    fz_error *e = err ? err : &own;
    fz_status rc = s3_send(s, &rq, &a, e);
    aws_answer_free(&a);
    return rc != FZ_OK && strcmp(e->code, "file.not-found") == 0 ? FZ_OK : rc;
}

fz_status s3_delete(s3_store *s, const char *location, int max_attempts, fz_error *err) {
    bool go;
    FZ_TRY(before_delete(s, location, &go, err));
    return go ? delete_one(s, location, max_attempts, err) : FZ_OK;
}

/* ---- many ---- */

typedef struct outcome { fz_arena *a; fz_error first; size_t failed; bool whole, again; fz_status rc; } outcome;

static void note(outcome *o, const fz_error *e) {
    if (o->failed++ == 0) o->first = *e;
}

typedef struct batch { s3_store *s; const char *root; size_t root_len; const char **v; size_t n; outcome *o; bool *retry; } batch;

static bool take_answer(void *cx, const s3_record *r) {
    batch *b = cx;
    const char *key = s3_field(r, "Key"), *code = s3_field(r, "Code"), *message = s3_field(r, "Message");
    if (strcmp(r->name, "DeleteResult") == 0) b->o->whole = true;
    if (strcmp(r->name, "Error") != 0 || !key || !code || strcmp(code, "NoSuchKey") == 0) return true;
    if (strcmp(code, "InternalError") == 0 || strcmp(code, "SlowDown") == 0 || strcmp(code, "ServiceUnavailable") == 0) {
        for (size_t i = 0; i < b->n; i++)
            if (strcmp(b->v[i] + b->root_len + 1, key) == 0) b->retry[i] = true;
        return true;
    }
    fz_error e;
    bool denied = strcmp(code, "AccessDenied") == 0;
    fz_fail(&e, FZ_USER, denied ? "file.permission" : "file.request", "DeleteObjects '%.*s/%s': %s: %s", (int)b->root_len, b->root, key, code, message ? message : "");
    if (denied) fz_hint(&e, "the identity needs s3:DeleteObject for this");
    note(b->o, &e);
    return true;
}

static fz_status send_batch(batch *b, fz_error *err) {
    fz_buf x = {0}, md5 = {0};
    uint8_t sum[16];
    unsigned len = 0;
    char hex[65];
    fz_buf_puts(&x, "<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Quiet>true</Quiet>");
    for (size_t i = 0; i < b->n; i++) {
        fz_buf_puts(&x, "<Object><Key>");
        (void)s3_xml_escape(&x, b->v[i] + b->root_len + 1); /* keys that XML cannot carry are not in here */
        fz_buf_puts(&x, "</Key></Object>");
    }
    fz_buf_puts(&x, "</Delete>");
    s3_request rq = {.op = "DeleteObjects", .method = "POST", .location = b->v[0], .of_bucket = true, .query = "delete=", .max_answer = FZ_MAX_S3_LIST};
    s3_body_bytes(&rq, x.data, x.len, hex);
    /* The one request that S3 refuses without a checksum of its own: MD5, which every S3 takes; where OpenSSL has none (FIPS), SHA-256. */
    if (EVP_Digest(x.data, x.len, sum, &len, EVP_md5(), NULL) == 1) {
        fz_buf_base64(&md5, sum, 16);
        s3_header(&rq, "Content-MD5", fz_buf_cstr(&md5));
    } else s3_header(&rq, "x-amz-checksum-sha256", s3_base64_of_hex(b->o->a, hex));
    s3_header(&rq, "Content-Type", "application/xml");
    aws_answer a;
    fz_status rc = s3_send(b->s, &rq, &a, err);
    b->o->whole = false;
    if (rc == FZ_OK && (!s3_xml_records(b->o->a, (const char *)a.http.body.data, a.http.body.len, take_answer, b) || !b->o->whole))
        rc = fz_fail(err, FZ_RETRY, "file.answer", "DeleteObjects '%.*s': the answer is no whole DeleteResult", (int)b->root_len, b->root);
    aws_answer_free(&a);
    fz_buf_free(&x);
    fz_buf_free(&md5);
    return rc;
}

/* Sends v and, a few times, what the store had no time for. A batch that as a whole cannot be sent counts for all its keys. */
static void delete_batch(s3_store *s, const char **v, size_t n, outcome *o) {
    bool *retry = fz_calloc(n, sizeof *retry);
    for (unsigned tries = 0; n > 0; tries++) {
        batch b = {.s = s, .root = v[0], .root_len = s3_root_len(v[0]), .v = v, .n = n, .o = o, .retry = retry};
        fz_error e;
        memset(retry, 0, n * sizeof *retry);
        size_t before = o->failed;
        if (send_batch(&b, &e) != FZ_OK) {
            o->failed = before;
            note(o, &e);
            o->failed += n - 1;
            break;
        }
        size_t left = 0;
        for (size_t i = 0; i < n; i++)
            if (retry[i]) v[left++] = v[i];
        n = left;
        if (n > 0 && tries == 4) {
            fz_fail(&e, FZ_RETRY, "aws.throttled", "DeleteObjects '%s': the store had no time for it", v[0]);
            note(o, &e);
            o->failed += n - 1;
            break;
        }
        if (n > 0) s3_back_off(tries);
    }
    fz_free(retry);
}

static bool xml_can_carry(const char *s) {
    for (; *s; s++)
        if ((unsigned char)*s < 0x20 && *s != '\n' && *s != '\r' && *s != '\t') return false;
    return true;
}

static bool same_root(const char *x, const char *y) {
    size_t n = s3_root_len(x);
    return n == s3_root_len(y) && memcmp(x, y, n) == 0;
}

static int by_location(const void *x, const void *y) { return strcmp(*(const char *const *)x, *(const char *const *)y); }

fz_status s3_delete_many(s3_store *s, const char *const *locations, size_t n, fz_error *err) {
    outcome o = {.a = fz_arena_new()};
    const char **v = fz_malloc((n + 1) * sizeof *v);
    memcpy(v, locations, n * sizeof *v);
    qsort(v, n, sizeof *v, by_location);
    const char **pack = fz_malloc((s->c.delete_batch + 1) * sizeof *pack);
    size_t held = 0;
    for (size_t i = 0; i < n; i++) {
        fz_error e;
        bool go, single = !xml_can_carry(v[i]) || !v[i][s3_root_len(v[i])] || !v[i][s3_root_len(v[i]) + 1];
        if (before_delete(s, v[i], &go, &e) != FZ_OK || (go && single && delete_one(s, v[i], 0, &e) != FZ_OK)) note(&o, &e);
        else if (go && !single) {
            if (held > 0 && (held == s->c.delete_batch || !same_root(pack[0], v[i]))) {
                delete_batch(s, pack, held, &o);
                held = 0;
            }
            pack[held++] = v[i];
        }
    }
    if (held > 0) delete_batch(s, pack, held, &o);
    fz_free(pack);
    fz_free(v);
    fz_arena_free(o.a);
    if (o.failed == 0) return FZ_OK;
    if (err) {
        *err = o.first;
        if (o.failed > 1) fz_detail(err, "and %zu more of %zu could not be deleted", o.failed - 1, n);
    }
    return o.first.cls;
}
