/* One request to S3: where it goes, what every request carries, and what its failure means in terms of stores. Retries are aws_send's. See s3_int.h. */
#include "fileio/fileio_int.h"
#include "fileio/s3_int.h"
#include <errno.h>
#include <stdio.h>

fz_status s3_store_new(const fz_pair *o, size_t n, aws_session *aws, aws_provider *provider, s3_store **out, fz_error *err) {
    s3_store *s = FZ_NEW(s3_store);
    s->arena = fz_arena_new();
    fz_status rc = s3_config_read(o, n, s->arena, &s->c, err);
    if (rc != FZ_OK) {
        fz_arena_free(s->arena);
        fz_free(s);
        return rc;
    }
    s->aws = aws_session_ref(aws);
    if (provider) s->provider = aws_provider_ref(provider);
    else if (s->c.access_key) s->provider = aws_provider_static(s->c.access_key, s->c.secret_key, s->c.token, "option s3.access-key-id");
    pthread_mutex_init(&s->lock, NULL);
    return *out = s, FZ_OK;
}

void s3_store_free(s3_store *s) {
    if (!s) return;
    s3_stage_close(s);
    aws_provider_unref(s->provider);
    aws_session_unref(s->aws);
    pthread_mutex_destroy(&s->lock);
    fz_arena_free(s->arena);
    fz_free(s);
}

void s3_header(s3_request *rq, const char *name, const char *value) {
    if (value && rq->n_headers < S3_HEADERS_MAX) rq->header[rq->n_headers++] = (net_header){name, value};
}

void s3_write_headers(const s3_store *s, s3_request *rq) {
    fz_sv bucket;
    const char *key;
    /* S3 Tables decide these themselves and refuse requests that say otherwise. */
    if (s3_split(rq->location, &bucket, &key) && s3_is_table_bucket(bucket)) return;
    static const char *const sse[] = {[S3_SSE_NONE] = NULL, [S3_SSE_S3] = "AES256", [S3_SSE_KMS] = "aws:kms", [S3_SSE_DSSE] = "aws:kms:dsse", [S3_SSE_CUSTOM] = NULL};
    s3_header(rq, "x-amz-server-side-encryption", sse[s->c.sse]);
    if (s->c.sse == S3_SSE_KMS || s->c.sse == S3_SSE_DSSE) s3_header(rq, "x-amz-server-side-encryption-aws-kms-key-id", s->c.sse_key);
    s3_header(rq, "x-amz-acl", s->c.acl);
    s3_header(rq, "x-amz-storage-class", s->c.storage_class);
    s3_header(rq, "x-amz-tagging", s->c.tagging);
}

void s3_body_bytes(s3_request *rq, const void *p, size_t n, char hex[65]) {
    aws_sha256_hex(p, n, hex);
    rq->body = (net_body){.p = p, .n = n, .fd = -1};
    rq->sha256 = hex;
}

const char *s3_base64_of_hex(fz_arena *a, const char *hex) {
    uint8_t raw[32];
    for (unsigned i = 0; i < 32; i++) {
        int v = 0;
        for (unsigned k = 0; k < 2; k++) v = v * 16 + (hex[2 * i + k] <= '9' ? hex[2 * i + k] - '0' : hex[2 * i + k] - 'a' + 10);
        raw[i] = (uint8_t)v;
    }
    fz_buf b = {0};
    fz_buf_base64(&b, raw, sizeof raw);
    const char *out = fz_arena_strdup(a, fz_buf_cstr(&b));
    fz_buf_free(&b);
    return out;
}

void s3_back_off(unsigned tries) {
    uint64_t r;
    fz_random(&r, sizeof r);
    int64_t most = 100ll << (tries < 7 ? tries : 7);
    fz_sleep_ms((int64_t)(r % (uint64_t)most));
}

/* ---- errors ---- */

typedef struct op_facts { const char *op, *action; bool writes; } op_facts;
static const op_facts *facts_of(const char *op) {
    static const op_facts v[] = {
        {"PutObject", "s3:PutObject", true},
        {"CreateMultipartUpload", "s3:PutObject", true},
        {"UploadPart", "s3:PutObject", true},
        {"CompleteMultipartUpload", "s3:PutObject", true},
        {"AbortMultipartUpload", "s3:AbortMultipartUpload", false},
        {"ListMultipartUploads", "s3:ListBucketMultipartUploads", false},
        {"GetObject", "s3:GetObject", false},
        {"HeadObject", "s3:GetObject", false},
        {"DeleteObject", "s3:DeleteObject", false},
        {"DeleteObjects", "s3:DeleteObject", false},
        {"ListObjectsV2", "s3:ListBucket", false},
        {"GetObjectTagging", "s3:GetObjectTagging", false},
        {"PutObjectTagging", "s3:PutObjectTagging", false},
    };
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        if (strcmp(v[i].op, op) == 0) return &v[i];
    return &v[0];
}

static void reclass(fz_error *e, fz_status cls, const char *code) {
    e->cls = cls;
    snprintf(e->code, sizeof e->code, "%s", code);
}

static bool one_of(const char *code, const char *const *v) {
    for (; *v; v++)
        if (strcmp(code, *v) == 0) return true;
    return false;
}

/* 403: whose fault is it? The service tells keys that are wrong from keys that may not. */
static void forbidden(const s3_store *s, const s3_request *rq, const aws_answer *a, fz_error *e) {
    static const char *const wrong_key[] = {"SignatureDoesNotMatch", "InvalidAccessKeyId", "InvalidToken", "ExpiredToken", "TokenRefreshRequired", NULL};
    const op_facts *f = facts_of(rq->op);
    reclass(e, FZ_USER, "file.permission");
    if (strcmp(a->error_code, "RequestTimeTooSkewed") == 0) fz_hint(e, "the clock of this machine is wrong");
    else if (one_of(a->error_code, wrong_key)) fz_hint(e, "the credentials are wrong or have ended, or belong to another endpoint than this one");
    else if (strcmp(rq->op, "HeadObject") == 0)
        fz_hint(e, "an answer to HEAD has no text: the identity lacks s3:GetObject, or lacks s3:ListBucket and the object is not there, or may not use the key that encrypts it");
    else if (f->writes && s->c.tagging) fz_hint(e, "the identity needs %s and s3:PutObjectTagging for this, and kms:GenerateDataKey where the bucket is encrypted with a KMS key", f->action);
    else if (f->writes && s->c.acl) fz_hint(e, "the identity needs %s and s3:PutObjectAcl for this, and kms:GenerateDataKey where the bucket is encrypted with a KMS key", f->action);
    else if (f->writes) fz_hint(e, "the identity needs %s for this, and kms:GenerateDataKey where the bucket is encrypted with a KMS key", f->action);
    else fz_hint(e, "the identity needs %s for this", f->action);
}

static bool names_kms(const aws_answer *a) {
    return fz_starts(a->error_code, "KMS.") || (strcmp(a->error_code, "AccessDenied") == 0 && (strstr(a->error_message, "kms:") || strstr(a->error_message, "KMS")));
}

static void not_there(const s3_request *rq, const aws_answer *a, fz_error *e) {
    if (strcmp(a->error_code, "NoSuchBucket") == 0) {
        reclass(e, FZ_USER, "file.no-bucket");
        fz_hint(e, "make the bucket, or correct its name or the endpoint");
    } else if (strcmp(a->error_code, "NoSuchUpload") == 0) reclass(e, FZ_RETRY, "file.no-upload");
    else if (!a->error_code[0]) { /* a text, but none of S3's: a proxy or a portal on the way */
        reclass(e, FZ_RETRY, "file.not-s3");
        fz_hint(e, "what answered does not speak like S3: look at the endpoint, and at proxies on the way");
    } else if (strcmp(a->error_code, "NoSuchKey") != 0 && strcmp(a->error_code, "NoSuchVersion") != 0 && strcmp(a->error_code, "NotFound") != 0) {
        reclass(e, FZ_USER, "file.refused");
        fz_hint(e, "it is not the object that is missing: look at what the service says, at the credentials and at the endpoint");
    } else if (facts_of(rq->op)->writes) { /* S3 has no such answer to a write */
        reclass(e, FZ_RETRY, "file.not-s3");
        fz_hint(e, "what answered does not speak like S3: look at the endpoint, and at proxies on the way");
    } else {
        fz_fail(e, FZ_USER, "file.not-found", "'%s' is not there", rq->location); /* what readers of a store expect to see, without the protocol around it */
        if (a->request_id[0]) fz_detail(e, "HTTP 404, request %s", a->request_id);
    }
}

static void unsupported(const s3_request *rq, const aws_answer *a, fz_error *e) {
    bool conditional = false;
    for (size_t i = 0; i < rq->n_headers; i++) conditional |= strcmp(rq->header[i].name, "If-None-Match") == 0;
    reclass(e, FZ_USER, conditional && a->http.status == 501 ? "file.no-conditional-writes" : "file.unsupported");
    if (conditional && a->http.status == 501)
        fz_hint(e, "this store does not know If-None-Match; s3.conditional-writes = false looks first and then writes, which is not safe where two writers use one name");
}

static const char *bucket_region(const aws_answer *a) { return a->http.status ? net_answer_header(&a->http, "x-amz-bucket-region") : NULL; }

/* e holds what aws_send said; gives it our code and hint. */
static void translate(const s3_store *s, const s3_request *rq, const s3_target *t, const aws_answer *a, fz_error *e) {
    int status = a->http.status;
    const char *region = bucket_region(a);
    fz_context(e, "%s '%s'", rq->op, rq->location);
    if (strcmp(e->code, "net.too-large") == 0) fz_fail(e, FZ_FATAL, "file.too-large", "'%s' has more than %zu bytes", rq->location, rq->max_answer);
    else if ((status == 301 || status == 307 || status == 400) && region && strcmp(region, t->region) != 0) {
        reclass(e, FZ_USER, "aws.region");
        fz_hint(e, "the bucket is in %s, the client in %s: set s3.region = %s", region, t->region, region);
    } else if ((status == 400 || status == 403) && names_kms(a)) {
        reclass(e, FZ_USER, "file.kms");
        fz_hint(e, "the KMS key must exist and be enabled, and its policy and the identity's must allow kms:GenerateDataKey (to write) and kms:Decrypt (to read, and to write in parts)");
    } else if (status == 403) forbidden(s, rq, a, e);
    else if (status == 404) not_there(rq, a, e);
    else if (status == 412) {
        fz_fail(e, FZ_CONFLICT, "file.exists", "'%s' exists already", rq->location);
    } else if (status == 409) reclass(e, FZ_RETRY, "file.conflicting");
    else if (status == 416) reclass(e, FZ_FATAL, "file.short");
    else if (status == 405 || status == 501) unsupported(rq, a, e);
    else if (e->cls == FZ_USER && strcmp(e->code, "aws.request") == 0) reclass(e, FZ_USER, "file.request");
    else if (e->cls == FZ_CONFLICT) reclass(e, FZ_RETRY, "file.conflicting");
}

/* S3 gives every object that it stores or hands out an ETag. A 200 without one is somebody else's (a captive portal, a proxy): believing it would make files live that are not there. */
static bool from_another(const s3_request *rq, const aws_answer *a) {
    static const char *const with_etag[] = {"PutObject", "UploadPart", "GetObject", "HeadObject", NULL};
    return one_of(rq->op, with_etag) && !net_answer_header(&a->http, "etag");
}

static fz_status not_s3(const s3_request *rq, const aws_answer *a, fz_error *e) {
    const char *type = net_answer_header(&a->http, "content-type");
    fz_fail(e, rq->once ? FZ_UNKNOWN : FZ_RETRY, "file.not-s3", "%s '%s': HTTP %d without an ETag: this is no answer of S3", rq->op, rq->location, a->http.status);
    (void)!fz_detail(e, "content type %s", type ? type : "none");
    return fz_hint(e, "look at the endpoint, and at proxies on the way");
}

/* A failure that a test asked for: nothing is sent. */
static fz_status injected(const s3_request *rq, fz_error *err) {
    int e = fio_io_injected(facts_of(rq->op)->writes ? "file.write" : NULL);
    return e ? fz_fail(err, FZ_RETRY, "file.io", "%s '%s': a fault that was asked for (errno %d)", rq->op, rq->location, e) : FZ_OK;
}

static fz_status ask(s3_store *s, const s3_request *rq, const s3_target *t, aws_answer *out, fz_error *e) {
    aws_request r = {
        .service = "s3", .region = t->region, .provider = s->provider, .method = rq->method, .endpoint = t->endpoint, .path = t->path, .query = rq->query,
        .headers = rq->header, .n_headers = rq->n_headers, .body = rq->body, .payload_sha256 = rq->sha256, .idempotent = !rq->once, .anonymous = s->c.anonymous,
        .max_attempts = rq->max_attempts ? rq->max_attempts : s->c.max_attempts, .timeout_ms = s->c.timeout_ms, .stall_timeout_ms = rq->stall_timeout_ms, .max_answer = rq->max_answer, .into = rq->into,
    };
    return aws_send(s->aws, &r, out, e);
}

fz_status s3_send(s3_store *s, s3_request *rq, aws_answer *out, fz_error *err) {
    fz_arena *a = fz_arena_new();
    fz_error own;
    fz_error *e = err ? err : &own;
    fz_sv bucket = {0};
    const char *key = NULL;
    s3_target t = {0};
    *out = (aws_answer){0};
    if (!rq->body.p && rq->body.n == 0) rq->body.fd = -1;
    if (s->c.requester_pays) s3_header(rq, "x-amz-request-payer", "requester");
    if (rq->customer_key && s->c.sse == S3_SSE_CUSTOM) {
        s3_header(rq, "x-amz-server-side-encryption-customer-algorithm", "AES256");
        s3_header(rq, "x-amz-server-side-encryption-customer-key", s->c.sse_key);
        s3_header(rq, "x-amz-server-side-encryption-customer-key-md5", s->c.sse_md5);
    }
    fz_status rc = s3_split(rq->location, &bucket, &key) ? FZ_OK : fz_fail(e, FZ_USER, "file.scheme", "'%s' is no location of S3", rq->location);
    if (rc == FZ_OK) rc = injected(rq, e);
    if (rc == FZ_OK) rc = s3_locate(s, bucket, rq->of_bucket ? NULL : key, a, &t, e);
    if (rc == FZ_OK && (rc = ask(s, rq, &t, out, e)) != FZ_OK) {
        translate(s, rq, &t, out, e);
        rc = e->cls;
    } else if (rc == FZ_OK && from_another(rq, out)) rc = not_s3(rq, out, e);
    fz_arena_free(a);
    return rc;
}
