/* Listings of S3 (ListObjectsV2), a page at a time. See s3_int.h. */
#include "fileio/s3_int.h"

typedef struct page { fz_arena *a; s3_item *v; size_t n, cap; const char *token; bool more, encoded, whole; } page;

static void add(page *p, s3_item item) {
    if (p->n == p->cap) {
        size_t cap = p->cap ? p->cap * 2 : 64;
        p->v = fz_arena_realloc(p->a, p->v, p->cap * sizeof *p->v, cap * sizeof *p->v);
        p->cap = cap;
    }
    p->v[p->n++] = item;
}

static bool take(void *cx, const s3_record *r) {
    page *p = cx;
    if (strcmp(r->name, "Contents") == 0) {
        const char *key = s3_field(r, "Key"), *size = s3_field(r, "Size");
        uint64_t n = 0;
        if (key && size && fz_parse_u64(fz_sv_of(size), &n)) add(p, (s3_item){.key = key, .size = n, .mtime_ms = s3_time_ms(s3_field(r, "LastModified"))});
    } else if (strcmp(r->name, "CommonPrefixes") == 0) {
        const char *prefix = s3_field(r, "Prefix");
        if (prefix) add(p, (s3_item){.key = prefix, .prefix = true});
    } else if (strcmp(r->name, "ListBucketResult") == 0) {
        const char *more = s3_field(r, "IsTruncated"), *encoding = s3_field(r, "EncodingType");
        p->token = s3_field(r, "NextContinuationToken");
        p->more = more && strcmp(more, "true") == 0;
        p->encoded = encoding && strcmp(encoding, "url") == 0;
        p->whole = true;
    }
    return true;
}

static const char *query_of(fz_arena *a, const char *prefix, const char *delimiter, const char *token) {
    fz_buf b = {0};
    if (token) {
        fz_buf_puts(&b, "continuation-token=");
        net_encode(&b, token, strlen(token), false);
        fz_buf_putc(&b, '&');
    }
    if (delimiter) {
        fz_buf_puts(&b, "delimiter=");
        net_encode(&b, delimiter, strlen(delimiter), false);
        fz_buf_putc(&b, '&');
    }
    fz_buf_puts(&b, "encoding-type=url&list-type=2&max-keys=1000&prefix=");
    net_encode(&b, prefix, strlen(prefix), false);
    const char *out = fz_arena_strdup(a, fz_buf_cstr(&b));
    fz_buf_free(&b);
    return out;
}

static fz_status fetch(s3_store *s, const char *location, const char *query, page *p, fz_error *err) {
    s3_request rq = {.op = "ListObjectsV2", .method = "GET", .location = location, .of_bucket = true, .query = query, .max_answer = FZ_MAX_S3_LIST};
    aws_answer a;
    fz_status rc = s3_send(s, &rq, &a, err);
    if (rc == FZ_OK && (!s3_xml_records(p->a, (const char *)a.http.body.data, a.http.body.len, take, p) || !p->whole || (p->more && !p->token)))
        rc = fz_fail(err, FZ_RETRY, "file.answer", "the listing of '%s' cannot be read: it is no whole ListBucketResult", location);
    aws_answer_free(&a);
    for (size_t i = 0; rc == FZ_OK && p->encoded && i < p->n; i++) p->v[i].key = s3_url_decode(p->a, p->v[i].key);
    return rc;
}

fz_status s3_list(s3_store *s, const char *location, const char *prefix, const char *delimiter, s3_item_fn fn, void *cx, fz_error *err) {
    char *token = NULL;
    bool more = true;
    fz_status rc = FZ_OK;
    while (more && rc == FZ_OK) {
        page p = {.a = fz_arena_new()};
        rc = fetch(s, location, query_of(p.a, prefix, delimiter, token), &p, err);
        more = rc == FZ_OK && p.more;
        for (size_t i = 0; rc == FZ_OK && i < p.n; i++)
            if (!fn(cx, &p.v[i])) {
                more = false;
                break;
            }
        if (more && token && strcmp(token, p.token) == 0) rc = fz_fail(err, FZ_FATAL, "file.answer", "the listing of '%s' goes in circles", location);
        fz_free(token);
        token = more ? fz_strdup(p.token) : NULL;
        fz_arena_free(p.a);
    }
    fz_free(token);
    return rc;
}

char *s3_dir_prefix(fz_arena *a, const char *key) {
    size_t n = strlen(key);
    return fz_arena_printf(a, "%s%s", key, n == 0 || key[n - 1] == '/' ? "" : "/");
}
