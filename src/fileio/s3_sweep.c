/* Unfinished multipart uploads: what a killed process left, or a lost answer. A bucket pays for their parts until they are aborted. See s3_int.h. */
#include "fileio/s3_int.h"

typedef struct open_upload { char *key, *id; int64_t begun_ms; } open_upload;
typedef struct found { open_upload *v; size_t n, cap; const char *key_marker, *id_marker; bool more, whole; fz_arena *a; } found;

static bool take(void *cx, const s3_record *r) {
    found *f = cx;
    const char *key = s3_field(r, "Key"), *id = s3_field(r, "UploadId"), *more = s3_field(r, "IsTruncated");
    if (strcmp(r->name, "Upload") == 0 && key && id) {
        FZ_GROW(f->v, f->n, f->cap);
        f->v[f->n++] = (open_upload){fz_strdup(s3_url_decode(f->a, key)), fz_strdup(id), s3_time_ms(s3_field(r, "Initiated"))};
    } else if (strcmp(r->name, "ListMultipartUploadsResult") == 0) {
        f->key_marker = s3_field(r, "NextKeyMarker");
        f->id_marker = s3_field(r, "NextUploadIdMarker");
        f->more = more && strcmp(more, "true") == 0;
        f->whole = true;
    }
    return true;
}

static fz_status list_page(s3_store *s, const char *location, const char *query, found *f, fz_error *err) {
    s3_request rq = {.op = "ListMultipartUploads", .method = "GET", .location = location, .of_bucket = true, .query = query, .max_answer = FZ_MAX_S3_LIST};
    aws_answer a;
    fz_status rc = s3_send(s, &rq, &a, err);
    f->whole = false;
    if (rc == FZ_OK && (!s3_xml_records(f->a, (const char *)a.http.body.data, a.http.body.len, take, f) || !f->whole || (f->more && !f->key_marker)))
        rc = fz_fail(err, FZ_RETRY, "file.answer", "the list of uploads of '%s' cannot be read", location);
    aws_answer_free(&a);
    return rc;
}

static fz_status list_all(s3_store *s, const char *location, const char *prefix, found *f, fz_error *err) {
    fz_status rc = FZ_OK;
    do {
        fz_buf q = {0};
        fz_buf_puts(&q, "encoding-type=url&");
        if (f->key_marker) {
            const char *key = s3_url_decode(f->a, f->key_marker);
            fz_buf_puts(&q, "key-marker=");
            net_encode(&q, key, strlen(key), false);
            fz_buf_putc(&q, '&');
        }
        fz_buf_puts(&q, "prefix=");
        net_encode(&q, prefix, strlen(prefix), false);
        if (f->key_marker && f->id_marker) {
            fz_buf_puts(&q, "&upload-id-marker=");
            net_encode(&q, f->id_marker, strlen(f->id_marker), false);
        }
        fz_buf_puts(&q, "&uploads=");
        rc = list_page(s, location, fz_buf_cstr(&q), f, err);
        fz_buf_free(&q);
    } while (rc == FZ_OK && f->more);
    return rc;
}

static fz_status abort_one(s3_store *s, const char *location, const open_upload *o, fz_error *err) {
    fz_arena *a = fz_arena_new();
    fz_buf q = {0};
    fz_buf_puts(&q, "uploadId=");
    net_encode(&q, o->id, strlen(o->id), false);
    const char *where = fz_arena_printf(a, "%.*s/%s", (int)s3_root_len(location), location, o->key);
    s3_request rq = {.op = "AbortMultipartUpload", .method = "DELETE", .location = where, .query = fz_buf_cstr(&q)};
    aws_answer ans;
    fz_error own;
    fz_error *e = err ? err : &own;
    fz_status rc = s3_send(s, &rq, &ans, e);
    aws_answer_free(&ans);
    fz_buf_free(&q);
    fz_arena_free(a);
    return rc != FZ_OK && strcmp(e->code, "file.no-upload") == 0 ? FZ_OK : rc;
}

fz_status s3_sweep(s3_store *s, const char *location, int64_t older_than_ms, size_t *n, fz_error *err) {
    fz_sv bucket;
    const char *key;
    if (n) *n = 0;
    if (!s3_split(location, &bucket, &key)) return fz_fail(err, FZ_USER, "file.scheme", "'%s' is no location of S3", location);
    if (s3_is_table_bucket(bucket)) return FZ_OK; /* S3 Tables list no uploads, and clean up by themselves */
    found f = {.a = fz_arena_new()};
    fz_status rc = list_all(s, location, key, &f, err);
    for (size_t i = 0; i < f.n; i++) {
        if (rc == FZ_OK && f.v[i].begun_ms < older_than_ms && (rc = abort_one(s, location, &f.v[i], err)) == FZ_OK && n) ++*n;
        fz_free(f.v[i].key);
        fz_free(f.v[i].id);
    }
    fz_free(f.v);
    fz_arena_free(f.a);
    return rc;
}
