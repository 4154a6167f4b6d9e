/* An S3 inside a test: objects and multipart uploads in memory, path style, no signatures (servers that verify them are met in test/interop). A test can put a
 * fault before or after what a request does. What it imitates: the S3 API Reference (2006-03-01), the operations that frazil uses. */
#ifndef S3_FAKE_H
#define S3_FAKE_H
#include "fileio/fileio_int.h"
#include "fileio/s3_int.h"
#include "http_fake.h"

typedef struct s3_fake_object { char *key, *mark, *tags, *head; uint8_t *p; size_t n; } s3_fake_object;
typedef struct s3_fake_part { char *id; int number; uint8_t *p; size_t n; } s3_fake_part;
typedef struct s3_fake_upload { char *id, *key, *mark; } s3_fake_upload;
typedef struct s3_fake s3_fake;
struct s3_fake {
    http_fake *http;
    s3_fake_object *v; size_t n, cap;
    s3_fake_part *part; size_t n_part, cap_part;
    s3_fake_upload *up; size_t n_up, cap_up;
    unsigned ids, requests;
    size_t page;                 /* keys of a page */
    /* Before a request acts: true and *out: this answer instead. After: may change the answer (close_before: it is lost). op: "PUT object", ... */
    bool (*before)(s3_fake *f, const char *op, const http_seen *rq, http_reply *out);
    void (*after)(s3_fake *f, const char *op, const http_seen *rq, http_reply *out);
    fz_buf head, body;           /* of the answer */
    char *keep[512];             /* those of the last answers: they are sent after the handler has returned */
    unsigned kept;
};
/* Sets what happens before and after the next requests; the statement runs under the server's lock, as handlers do. */
#define S3_FAKE_LOCKED(f, statement) do { pthread_mutex_lock(&(f)->http->lock); statement; pthread_mutex_unlock(&(f)->http->lock); } while (0)

static inline s3_fake_object *s3_fake_find(s3_fake *f, const char *key) {
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->v[i].key, key) == 0) return &f->v[i];
    return NULL;
}
static inline void s3_fake_drop(s3_fake *f, const char *key) {
    s3_fake_object *o = s3_fake_find(f, key);
    if (!o) return;
    fz_free(o->key), fz_free(o->p), fz_free(o->mark), fz_free(o->tags), fz_free(o->head);
    size_t i = (size_t)(o - f->v);
    memmove(o, o + 1, (f->n - i - 1) * sizeof *o);
    f->n--;
}
static inline s3_fake_object *s3_fake_put(s3_fake *f, const char *key, const void *p, size_t n) {
    s3_fake_drop(f, key);
    FZ_GROW(f->v, f->n, f->cap);
    size_t i = 0; /* sorted */
    while (i < f->n && strcmp(f->v[i].key, key) < 0) i++;
    memmove(&f->v[i + 1], &f->v[i], (f->n - i) * sizeof *f->v);
    f->n++;
    f->v[i] = (s3_fake_object){.key = fz_strdup(key), .p = fz_malloc(n + 1), .n = n};
    if (n) memcpy(f->v[i].p, p, n);
    return &f->v[i];
}

static inline bool s3_fake_query(const char *target, const char *name, char *out, size_t cap) {
    const char *q = strchr(target, '?');
    size_t n = strlen(name);
    for (q = q ? q + 1 : NULL; q && *q; q = strchr(q, '&') ? strchr(q, '&') + 1 : NULL)
        if (strncmp(q, name, n) == 0 && (q[n] == '=' || q[n] == '&' || !q[n])) {
            fz_buf b = {0};
            const char *v = q[n] == '=' ? q + n + 1 : "";
            net_decode(&b, v, strcspn(v, "&"));
            snprintf(out, cap, "%s", fz_buf_cstr(&b));
            fz_buf_free(&b);
            return true;
        }
    return false;
}

static inline void s3_fake_error(s3_fake *f, http_reply *r, int status, const char *code) {
    f->body.len = 0;
    fz_buf_printf(&f->body, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>%s</Code><Message>said by the fake</Message><RequestId>R1</RequestId></Error>", code);
    r->status = status;
}

static inline void s3_fake_list(s3_fake *f, const http_seen *s) {
    char prefix[2048] = "", from[2048] = "", delimiter[8] = "", last[2048] = "";
    s3_fake_query(s->target, "prefix", prefix, sizeof prefix);
    s3_fake_query(s->target, "delimiter", delimiter, sizeof delimiter);
    bool go_on = s3_fake_query(s->target, "continuation-token", from, sizeof from), more = false;
    size_t given = 0;
    fz_buf_puts(&f->body, "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>b</Name><EncodingType>url</EncodingType>");
    char dir[2048] = "";
    for (size_t i = 0; i < f->n; i++) {
        const char *k = f->v[i].key;
        if (!fz_starts(k, prefix) || (go_on && strcmp(k, from) <= 0)) continue;
        const char *slash = *delimiter ? strchr(k + strlen(prefix), '/') : NULL;
        if (slash && strlen(dir) == (size_t)(slash - k + 1) && strncmp(dir, k, strlen(dir)) == 0) continue;
        if (given == f->page) {
            more = true;
            break;
        }
        given++;
        fz_buf e = {0};
        size_t n = slash ? (size_t)(slash - k + 1) : strlen(k);
        net_encode(&e, k, n, true);
        for (size_t c = 0; c + 2 < e.len; c++) /* a blank is '+' in these */
            if (memcmp(e.data + c, "%20", 3) == 0) {
                e.data[c] = '+';
                memmove(e.data + c + 1, e.data + c + 3, e.len - c - 3);
                e.len -= 2;
            }
        if (slash) {
            snprintf(dir, sizeof dir, "%.*s", (int)n, k);
            fz_buf_printf(&f->body, "<CommonPrefixes><Prefix>%s</Prefix></CommonPrefixes>", fz_buf_cstr(&e));
        } else
            fz_buf_printf(&f->body, "<Contents><Key>%s</Key><LastModified>2009-10-12T17:50:30.123Z</LastModified><Owner><ID>x</ID></Owner><Size>%zu</Size></Contents>", fz_buf_cstr(&e), f->v[i].n);
        fz_buf_free(&e);
        snprintf(last, sizeof last, "%s%s", k, slash ? "\x7f" : "");
        if (slash) snprintf(last, sizeof last, "%.*s\x7f", (int)n, k);
    }
    fz_buf_printf(&f->body, "<IsTruncated>%s</IsTruncated>", more ? "true" : "false");
    if (more) {
        fz_buf_puts(&f->body, "<NextContinuationToken>");
        s3_xml_escape(&f->body, last);
        fz_buf_puts(&f->body, "</NextContinuationToken>");
    }
    fz_buf_puts(&f->body, "</ListBucketResult>");
}

static inline bool s3_fake_delete_key(void *cx, const s3_record *r) {
    s3_fake *f = cx;
    const char *k = s3_field(r, "Key");
    if (strcmp(r->name, "Object") == 0 && k) {
        if (strstr(k, "denied")) {
            fz_buf_puts(&f->body, "<Error><Key>");
            s3_xml_escape(&f->body, k);
            fz_buf_puts(&f->body, "</Key><Code>AccessDenied</Code><Message>no</Message></Error>");
        } else s3_fake_drop(f, k);
    }
    return true;
}

static inline void s3_fake_forget(s3_fake *f, const char *which) {
    char id[64]; /* `which` may be the one that goes */
    snprintf(id, sizeof id, "%s", which);
    for (size_t i = 0; i < f->n_up; i++)
        if (strcmp(f->up[i].id, id) == 0) {
            fz_free(f->up[i].id), fz_free(f->up[i].key), fz_free(f->up[i].mark);
            f->up[i--] = f->up[--f->n_up];
        }
    for (size_t i = 0; i < f->n_part; i++)
        if (strcmp(f->part[i].id, id) == 0) {
            fz_free(f->part[i].id), fz_free(f->part[i].p);
            f->part[i--] = f->part[--f->n_part];
        }
}

static inline void s3_fake_complete(s3_fake *f, const char *id, const char *key, http_reply *r) {
    s3_fake_upload *u = NULL;
    for (size_t i = 0; i < f->n_up; i++)
        if (strcmp(f->up[i].id, id) == 0) u = &f->up[i];
    if (!u) {
        s3_fake_error(f, r, 404, "NoSuchUpload");
        return;
    }
    fz_buf all = {0};
    for (int k = 1; k <= 10000; k++)
        for (size_t i = 0; i < f->n_part; i++)
            if (f->part[i].number == k && strcmp(f->part[i].id, id) == 0) fz_buf_append(&all, f->part[i].p, f->part[i].n);
    s3_fake_put(f, key, all.data, all.len)->mark = fz_strdup(u->mark ? u->mark : "");
    fz_buf_free(&all);
    s3_fake_forget(f, id);
    fz_buf_puts(&f->body, "<?xml version=\"1.0\"?>\n   <CompleteMultipartUploadResult><Key>k</Key><ETag>&quot;x-2&quot;</ETag></CompleteMultipartUploadResult>");
}

static inline void s3_fake_uploads(s3_fake *f) {
    fz_buf_puts(&f->body, "<ListMultipartUploadsResult>");
    for (size_t i = 0; i < f->n_up; i++)
        fz_buf_printf(&f->body, "<Upload><Key>%s</Key><UploadId>%s</UploadId><Initiated>2020-01-01T00:00:00.000Z</Initiated></Upload>", f->up[i].key, f->up[i].id);
    fz_buf_puts(&f->body, "<IsTruncated>false</IsTruncated></ListMultipartUploadsResult>");
}

static inline void s3_fake_act(s3_fake *f, const char *op, const char *key, const http_seen *s, http_reply *r) {
    char id[64] = "", number[16] = "", v[4096];
    s3_fake_query(s->target, "uploadId", id, sizeof id);
    s3_fake_query(s->target, "partNumber", number, sizeof number);
    s3_fake_object *o = s3_fake_find(f, key);
    if (strcmp(op, "PUT object") == 0) {
        if (o && http_fake_header(s, "if-none-match", v, sizeof v)) return s3_fake_error(f, r, 412, "PreconditionFailed");
        s3_fake_put(f, key, s->body, s->n_body)->head = fz_strdup(s->head);
        fz_buf_puts(&f->head, "ETag: \"e\"\r\n");
    } else if (strcmp(op, "GET object") == 0 || strcmp(op, "HEAD object") == 0) {
        unsigned long long a = 0, b;
        if (!o) return s3_fake_error(f, r, 404, "NoSuchKey");
        b = o->n - 1;
        fz_buf_puts(&f->head, "ETag: \"e\"\r\n");
        if (o->mark && *o->mark) fz_buf_printf(&f->head, "x-amz-meta-frazil-upload: %s\r\n", o->mark);
        if (http_fake_header(s, "range", v, sizeof v) && sscanf(v, "bytes=%llu-%llu", &a, &b) == 2) {
            if (a >= o->n) return s3_fake_error(f, r, 416, "InvalidRange");
            if (b >= o->n) b = o->n - 1;
            r->status = 206;
        }
        fz_buf_append(&f->body, o->p + a, o->n ? (size_t)(b - a + 1) : 0);
    } else if (strcmp(op, "DELETE object") == 0) s3_fake_drop(f, key), r->status = 204;
    else if (strcmp(op, "LIST") == 0) s3_fake_list(f, s);
    else if (strcmp(op, "DELETE many") == 0) {
        fz_arena *a = fz_arena_new();
        fz_buf_puts(&f->body, "<DeleteResult>");
        s3_xml_records(a, s->body, s->n_body, s3_fake_delete_key, f);
        fz_buf_puts(&f->body, "</DeleteResult>");
        fz_arena_free(a);
    } else if (strcmp(op, "CREATE") == 0) {
        FZ_GROW(f->up, f->n_up, f->cap_up);
        f->up[f->n_up++] = (s3_fake_upload){fz_asprintf("id/%u+", ++f->ids), fz_strdup(key), http_fake_header(s, "x-amz-meta-frazil-upload", v, sizeof v) ? fz_strdup(v) : NULL};
        fz_buf_printf(&f->body, "<InitiateMultipartUploadResult><UploadId>%s</UploadId></InitiateMultipartUploadResult>", f->up[f->n_up - 1].id);
    } else if (strcmp(op, "PART") == 0) {
        FZ_GROW(f->part, f->n_part, f->cap_part);
        f->part[f->n_part] = (s3_fake_part){fz_strdup(id), atoi(number), fz_malloc(s->n_body + 1), s->n_body};
        if (s->n_body) memcpy(f->part[f->n_part].p, s->body, s->n_body);
        f->n_part++;
        fz_buf_printf(&f->head, "ETag: \"p%s\"\r\n", number);
    } else if (strcmp(op, "COMPLETE") == 0) s3_fake_complete(f, id, key, r);
    else if (strcmp(op, "ABORT") == 0) s3_fake_forget(f, id), r->status = 204;
    else if (strcmp(op, "UPLOADS") == 0) s3_fake_uploads(f);
    else if (strcmp(op, "GET tags") == 0) fz_buf_puts(&f->body, "<Tagging><TagSet><Tag><Key>old</Key><Value>1 &amp; 2</Value></Tag></TagSet></Tagging>");
    else if (strcmp(op, "PUT tags") == 0 && o) fz_free(o->tags), o->tags = fz_strndup(s->body, s->n_body);
}

static inline void s3_fake_handle(void *cx, const http_seen *s, size_t i, http_reply *r) {
    (void)i;
    s3_fake *f = cx;
    char v[64];
    bool of_key = strlen(s->target) > 3 && s->target[2] == '/' && s->target[3] != '?'; /* the bucket is "b" */
    const char *op = "?", *m = s->method;
    if (s3_fake_query(s->target, "uploads", v, sizeof v)) op = strcmp(m, "POST") == 0 ? "CREATE" : "UPLOADS";
    else if (s3_fake_query(s->target, "uploadId", v, sizeof v)) op = strcmp(m, "PUT") == 0 ? "PART" : strcmp(m, "POST") == 0 ? "COMPLETE" : "ABORT";
    else if (s3_fake_query(s->target, "tagging", v, sizeof v)) op = strcmp(m, "PUT") == 0 ? "PUT tags" : "GET tags";
    else if (strcmp(m, "POST") == 0) op = "DELETE many";
    else if (!of_key) op = "LIST";
    else op = strcmp(m, "PUT") == 0 ? "PUT object" : strcmp(m, "GET") == 0 ? "GET object" : strcmp(m, "HEAD") == 0 ? "HEAD object" : "DELETE object";
    fz_buf key = {0};
    if (of_key) net_decode(&key, s->target + 3, strcspn(s->target + 3, "?"));
    *r = (http_reply){0};
    f->head.len = f->body.len = 0;
    f->requests++;
    if (!f->before || !f->before(f, op, s, r)) {
        s3_fake_act(f, op, fz_buf_cstr(&key), s, r);
        r->headers = fz_buf_cstr(&f->head);
        if (f->body.len) {
            r->body = fz_buf_cstr(&f->body);
            r->n_body = f->body.len;
        }
        if (f->after) f->after(f, op, s, r);
    }
    fz_buf_free(&key);
}

static inline void s3_fake_handle_own(void *cx, const http_seen *s, size_t i, http_reply *r) {
    s3_fake *f = cx;
    s3_fake_handle(cx, s, i, r);
    char **h = &f->keep[f->kept++ % 512], **b = &f->keep[f->kept++ % 512];
    fz_free(*h), fz_free(*b);
    if (r->body && !r->n_body) r->n_body = strlen(r->body);
    r->headers = *h = r->headers ? fz_strdup(r->headers) : NULL;
    r->body = *b = r->body ? fz_strndup(r->body, r->n_body) : NULL;
}

static inline s3_fake *s3_fake_start(void) {
    static const char *const names[] = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "http_proxy", "HTTPS_PROXY"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
    setenv("AWS_CONFIG_FILE", "/dev/null", 1);
    setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null", 1);
    setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
    s3_fake *f = FZ_NEW(s3_fake);
    f->page = 1000;
    f->http = http_fake_start(NULL, 0);
    http_fake_handle(f->http, s3_fake_handle_own, f);
    return f;
}
static inline void s3_fake_stop(s3_fake *f) {
    http_fake_stop(f->http);
    while (f->n) s3_fake_drop(f, f->v[0].key);
    while (f->n_up) s3_fake_forget(f, f->up[0].id);
    fz_free(f->v), fz_free(f->up), fz_free(f->part);
    fz_buf_free(&f->head), fz_buf_free(&f->body);
    for (size_t i = 0; i < 512; i++) fz_free(f->keep[i]);
    fz_free(f);
}
/* A handle to it; more: further options, in pairs, ends with NULL. */
static inline fio *s3_fake_io(s3_fake *f, const char *const *more) {
    fz_pair o[16] = {{.key = "s3.endpoint", .value = http_fake_url(f->http)}, {.key = "s3.region", .value = "us-east-1"}, {.key = "s3.access-key-id", .value = "AKIDEXAMPLE"},
                     {.key = "s3.secret-access-key", .value = "hush-hush"}};
    size_t n = 4;
    for (; more && *more; more += 2) o[n++] = (fz_pair){.key = more[0], .value = more[1]};
    fio *io = NULL;
    fz_error e;
    if (fio_new(o, n, &io, &e) != FZ_OK) {
        fprintf(stderr, "%s\n", e.message);
        abort();
    }
    return io;
}
#endif
