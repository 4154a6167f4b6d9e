/* An object that is too large for memory, on its way to S3: a staging file, and parts that are uploaded while the object still grows.
 *
 *     bytes -> staging file -> [from `threshold` on] full parts to the pool -> uploaded: their room in the file is given back
 *     finish: below the threshold one PUT of the file; else the last part, then CompleteMultipartUpload
 *
 * Invariants
 *  1. parts[k] covers [k * part_size, (k + 1) * part_size); only the last one, made by finish, may be shorter. The hash of a part is taken as its bytes pass.
 *  2. No file descriptor is held between calls.
 *  3. Whatever ends an upload without an object, AbortMultipartUpload is sent and the staging file is removed. What a killed process leaves in the bucket
 *     a lifecycle rule (AbortIncompleteMultipartUpload) or s3_sweep takes.
 *  4. The outcome of CompleteMultipartUpload is definite unless S3 cannot be reached: the object carries the upload's mark (x-amz-meta-frazil-upload), so
 *     that after a lost answer HEAD tells whether this upload made it. No other writer uses the name: it has a UUID.
 * Threads: one owner; the pool's threads change parts, in_flight, failed and error under the lock.
 */
#include "fileio/fileio_int.h"
#include "fileio/s3_int.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define COMPLETE_BYTES_A_MS 20000       /* how slowly a store may put parts together without a byte of an answer: 20 MB/s (AWS sends blanks meanwhile) */
#define AWAIT_OBJECT_NS 300000000000ll  /* 5 minutes */

typedef enum { STAGED, QUEUED, STORED, FAILED } part_state;
typedef struct part { char sha256[65]; char *etag; uint64_t n; part_state state; } part;

struct s3_upload {
    s3_store *s;
    char *location, *file;   /* file: the staging file; NULL: none yet */
    uint64_t tag;            /* its name */
    bool made;               /* the staging file is there */
    uint64_t staged;         /* bytes in it */
    aws_sha256 *hash;        /* of the bytes after the last full part */
    char mark[37];
    bool marked, stray;      /* stray: an answer to CreateMultipartUpload was lost, so another upload may be open */
    bool done;               /* the object is there */
    char *id;                /* of the multipart upload; NULL: none begun */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    part *parts;             /* under lock from here on */
    size_t n_parts, cap, next; /* next: the first part that no job has been made for */
    unsigned in_flight;      /* jobs queued or running */
    unsigned failed;
    bool cancelled;
    fz_error *error;         /* of the first part that failed */
};

s3_upload *s3_upload_new(s3_store *s, const char *location, uint64_t tag) {
    s3_upload *u = FZ_NEW(s3_upload);
    u->s = s;
    u->location = fz_strdup(location);
    u->tag = tag;
    u->hash = aws_sha256_new();
    pthread_mutex_init(&u->lock, NULL);
    pthread_cond_init(&u->changed, NULL);
    return u;
}

size_t s3_upload_memory(const s3_upload *u) { return sizeof *u + 2 * strlen(u->location) + 512 + u->cap * (sizeof(part) + 48); }

/* ---- the staging file ---- */

static fz_status stage(s3_upload *u, uint64_t at, const void *p, size_t n, fz_error *err) {
    int flags = O_WRONLY | O_CLOEXEC | O_NOFOLLOW | (u->made ? 0 : O_CREAT | O_EXCL), fd;
    if (!u->file) {
        const char *dir;
        FZ_TRY(s3_stage_open(u->s, &dir, err));
        u->file = fz_asprintf("%s/%016llx", dir, (unsigned long long)u->tag);
    }
    do fd = open(u->file, flags, 0600);
    while (fd < 0 && errno == EINTR);
    int e = fd < 0 ? errno : 0;
    if (fd >= 0) {
        u->made = true;
        e = fio_io_write(fd, p, n, at);
        if (close(fd) != 0 && e == 0) e = errno;
    }
    if (e == 0) return FZ_OK;
    fz_status rc = fio_errno(err, e, "write the staging file", u->file);
    if (e == ENOSPC || e == EDQUOT) fz_hint(err, "make room in %s, or set s3.staging-dir to another directory", u->s->c.staging_dir);
    return rc;
}

static fz_status open_staged(s3_upload *u, int *fd, fz_error *err) {
    *fd = open(u->file, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    return *fd < 0 ? fio_errno(err, errno, "read the staging file", u->file) : FZ_OK;
}

static void remove_staged(s3_upload *u) {
    if (u->made) unlink(u->file);
    u->made = false;
}

/* ---- parts ---- */

static void add_part(s3_upload *u, uint64_t n) {
    pthread_mutex_lock(&u->lock);
    FZ_GROW(u->parts, u->n_parts, u->cap);
    u->parts[u->n_parts] = (part){.n = n, .state = STAGED};
    aws_sha256_hex_end(u->hash, u->parts[u->n_parts++].sha256);
    pthread_mutex_unlock(&u->lock);
}

static void hash_bytes(s3_upload *u, const void *p, size_t n) {
    const uint8_t *b = p;
    while (n > 0) {
        uint64_t left = u->s->c.part_size - u->staged % u->s->c.part_size;
        size_t now = n < left ? n : (size_t)left;
        aws_sha256_add(u->hash, b, now);
        u->staged += now;
        b += now;
        n -= now;
        if (now == left) add_part(u, u->s->c.part_size);
    }
}

static void release_room(int fd, uint64_t from, uint64_t n) {
    if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from, (off_t)n) != 0)
        return; /* a file system without holes: the room comes back when the object is stored */
}

static fz_status put_part(s3_upload *u, size_t k, const char *sha256, uint64_t n, char **etag, fz_error *err) {
    int fd;
    uint64_t from = (uint64_t)k * u->s->c.part_size;
    FZ_TRY(open_staged(u, &fd, err));
    fz_arena *a = fz_arena_new();
    fz_buf q = {0};
    fz_buf_printf(&q, "partNumber=%zu&uploadId=", k + 1);
    net_encode(&q, u->id, strlen(u->id), false);
    s3_request rq = {.op = "UploadPart", .method = "PUT", .location = u->location, .query = fz_buf_cstr(&q), .sha256 = sha256, .customer_key = true,
                     .body = {.n = (size_t)n, .fd = fd, .from = from}};
    if (u->s->c.checksum) s3_header(&rq, "x-amz-checksum-sha256", s3_base64_of_hex(a, sha256));
    aws_answer ans;
    fz_status rc = s3_send(u->s, &rq, &ans, err);
    const char *tag = rc == FZ_OK ? net_answer_header(&ans.http, "etag") : NULL;
    if (rc == FZ_OK && !tag) rc = fz_fail(err, FZ_RETRY, "file.answer", "UploadPart '%s': the answer has no ETag", u->location);
    if (rc == FZ_OK) {
        *etag = fz_strdup(tag);
        release_room(fd, from, n);
    }
    aws_answer_free(&ans);
    fz_buf_free(&q);
    fz_arena_free(a);
    close(fd);
    return rc;
}

/* A job of the pool takes the first part that is queued: which one does not matter. */
static void part_job(void *cx) {
    s3_upload *u = cx;
    pthread_mutex_lock(&u->lock);
    size_t k = 0;
    while (k < u->n_parts && u->parts[k].state != QUEUED) k++;
    bool go = k < u->n_parts && !u->cancelled && u->failed == 0;
    char sha256[65], *etag = NULL;
    uint64_t n = 0;
    if (go) {
        memcpy(sha256, u->parts[k].sha256, sizeof sha256);
        n = u->parts[k].n;
        u->parts[k].state = FAILED; /* unless it gets better; nobody else takes it */
    }
    pthread_mutex_unlock(&u->lock);
    fz_error e;
    fz_status rc = go ? put_part(u, k, sha256, n, &etag, &e) : FZ_OK;
    pthread_mutex_lock(&u->lock);
    if (go && rc == FZ_OK) {
        u->parts[k].state = STORED;
        u->parts[k].etag = etag;
    } else if (go && u->failed++ == 0) {
        if (!u->error) u->error = FZ_NEW(fz_error);
        *u->error = e;
    }
    u->in_flight--;
    pthread_cond_broadcast(&u->changed);
    pthread_mutex_unlock(&u->lock);
}

/* ---- begin, go on ---- */

static bool take_id(void *cx, const s3_record *r) {
    const char *id = s3_field(r, "UploadId");
    if (id && strcmp(r->name, "InitiateMultipartUploadResult") == 0) *(char **)cx = fz_strdup(id);
    return true;
}

static fz_status create(s3_upload *u, fz_error *err) {
    fz_arena *a = fz_arena_new();
    s3_request rq = {.op = "CreateMultipartUpload", .method = "POST", .location = u->location, .query = "uploads=", .customer_key = true};
    fz_sv bucket;
    const char *key;
    u->marked = s3_split(u->location, &bucket, &key) && !s3_is_table_bucket(bucket); /* S3 Tables take no metadata */
    fz_uuid4(u->mark);
    if (u->marked) s3_header(&rq, "x-amz-meta-frazil-upload", u->mark);
    if (u->s->c.checksum) s3_header(&rq, "x-amz-checksum-algorithm", "SHA256");
    s3_write_headers(u->s, &rq);
    aws_answer ans;
    fz_status rc = s3_send(u->s, &rq, &ans, err);
    u->stray |= ans.maybe_applied || ans.http.status >= 500;
    if (rc == FZ_OK && (!s3_xml_records(a, (const char *)ans.http.body.data, ans.http.body.len, take_id, &u->id) || !u->id || !*u->id)) {
        u->stray = true;
        rc = fz_fail(err, FZ_RETRY, "file.answer", "CreateMultipartUpload '%s': the answer has no UploadId", u->location);
    }
    aws_answer_free(&ans);
    fz_arena_free(a);
    return rc;
}

/* Gives parts that failed another chance with the next call, and says so in this one. */
static fz_status failure(s3_upload *u, fz_error *err) { /* the lock is held */
    if (u->failed == 0) return FZ_OK;
    while (u->in_flight > 0) pthread_cond_wait(&u->changed, &u->lock);
    for (size_t k = 0; k < u->n_parts; k++)
        if (u->parts[k].state == FAILED || u->parts[k].state == QUEUED) u->parts[k].state = STAGED;
    u->next = u->failed = 0;
    if (err) *err = *u->error;
    return u->error->cls;
}

static fz_status queue_parts(s3_upload *u, fz_error *err) {
    for (;;) {
        pthread_mutex_lock(&u->lock);
        fz_status rc = failure(u, err);
        while (u->next < u->n_parts && u->parts[u->next].state != STAGED) u->next++;
        bool any = rc == FZ_OK && u->next < u->n_parts;
        uint64_t n = any ? u->parts[u->next].n : 0;
        if (any) {
            u->parts[u->next++].state = QUEUED;
            u->in_flight++;
        }
        pthread_mutex_unlock(&u->lock);
        if (!any) return rc;
        s3_pool_push(&(s3_job){.run = part_job, .cx = u, .disk = n}, u->s->c.threads);
    }
}

static fz_status advance(s3_upload *u, fz_error *err) {
    if (!u->id && u->staged < u->s->c.threshold) return FZ_OK;
    if (!u->id) FZ_TRY(create(u, err));
    return queue_parts(u, err);
}

fz_status s3_upload_add(s3_upload *u, uint64_t at, const void *p, size_t n, fz_error *err) {
    if ((at + n) / u->s->c.part_size >= FZ_MAX_S3_PARTS) {
        fz_fail(err, FZ_FATAL, "file.too-large", "'%s' would need more than %u parts", u->location, FZ_MAX_S3_PARTS);
        return fz_hint(err, "raise s3.multipart.part-size-bytes, or write smaller files"), FZ_FATAL;
    }
    FZ_TRY(advance(u, err));
    FZ_TRY(stage(u, at, p, n, err));
    hash_bytes(u, p, n);
    return FZ_OK;
}

/* ---- the end ---- */

static fz_status wait_parts(s3_upload *u, fz_error *err) {
    pthread_mutex_lock(&u->lock);
    while (u->in_flight > 0) pthread_cond_wait(&u->changed, &u->lock);
    fz_status rc = u->failed ? u->error->cls : FZ_OK;
    if (rc != FZ_OK && err) *err = *u->error;
    pthread_mutex_unlock(&u->lock);
    return rc;
}

typedef struct verdict { fz_arena *a; const char *root, *code, *message; } verdict;
static bool take_verdict(void *cx, const s3_record *r) {
    verdict *v = cx;
    v->root = r->name;
    v->code = s3_field(r, "Code");
    v->message = s3_field(r, "Message");
    return true;
}

static void list_parts(const s3_upload *u, fz_arena *a, fz_buf *b) {
    fz_buf_puts(b, "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
    for (size_t k = 0; k < u->n_parts; k++) {
        fz_buf_puts(b, "<Part><ETag>");
        (void)s3_xml_escape(b, u->parts[k].etag);
        fz_buf_puts(b, "</ETag>");
        if (u->s->c.checksum) fz_buf_printf(b, "<ChecksumSHA256>%s</ChecksumSHA256>", s3_base64_of_hex(a, u->parts[k].sha256));
        fz_buf_printf(b, "<PartNumber>%zu</PartNumber></Part>", k + 1);
    }
    fz_buf_puts(b, "</CompleteMultipartUpload>");
}

/* One CompleteMultipartUpload. Its status is 200 before the outcome is known: an <Error> may follow. */
static fz_status send_complete(s3_upload *u, uint64_t total, bool *unsure, fz_error *err) {
    verdict v = {.a = fz_arena_new()};
    fz_buf q = {0}, body = {0};
    char hex[65];
    fz_buf_puts(&q, "uploadId=");
    net_encode(&q, u->id, strlen(u->id), false);
    list_parts(u, v.a, &body);
    s3_request rq = {.op = "CompleteMultipartUpload", .method = "POST", .location = u->location, .query = fz_buf_cstr(&q),
                     .stall_timeout_ms = 60000 + (int64_t)(total / COMPLETE_BYTES_A_MS)};
    s3_body_bytes(&rq, body.data, body.len, hex);
    s3_header(&rq, "Content-Type", "application/xml");
    aws_answer ans;
    fz_status rc = s3_send(u->s, &rq, &ans, err);
    *unsure |= ans.maybe_applied || rc == FZ_RETRY || rc == FZ_UNKNOWN;
    if (rc == FZ_OK) {
        bool read = s3_xml_records(v.a, (const char *)ans.http.body.data, ans.http.body.len, take_verdict, &v);
        if (!read || (strcmp(v.root, "CompleteMultipartUploadResult") != 0 && strcmp(v.root, "Error") != 0))
            rc = fz_fail(err, FZ_UNKNOWN, "file.answer", "CompleteMultipartUpload '%s': the answer cannot be read", u->location);
        else if (strcmp(v.root, "Error") == 0) {
            bool passing = v.code && (strcmp(v.code, "InternalError") == 0 || strcmp(v.code, "SlowDown") == 0 || strcmp(v.code, "ServiceUnavailable") == 0);
            rc = fz_fail(err, passing ? FZ_RETRY : FZ_USER, passing ? "aws.unavailable" : "file.request", "CompleteMultipartUpload '%s': %s: %s", u->location,
                         v.code ? v.code : "Error", v.message ? v.message : "");
        }
    }
    aws_answer_free(&ans);
    fz_buf_free(&q);
    fz_buf_free(&body);
    fz_arena_free(v.a);
    return rc;
}

/* Has this upload made the object? FZ_OK and *landed, or why it cannot be told. */
static fz_status look(s3_upload *u, uint64_t total, bool *landed, fz_error *err) {
    fz_arena *a = fz_arena_new();
    uint64_t size = 0;
    const char *mark = NULL;
    fz_error own;
    fz_error *e = err ? err : &own;
    fz_status rc = s3_head(u->s, u->location, &size, a, &mark, e);
    *landed = rc == FZ_OK && size == total && (u->marked && mark ? strcmp(mark, u->mark) == 0 : true);
    fz_arena_free(a);
    return rc != FZ_OK && strcmp(e->code, "file.not-found") == 0 ? FZ_OK : rc;
}

/* A store said that the upload is done, but after an answer was lost: some say so while an earlier try is still at work. */
static fz_status await_object(s3_upload *u, uint64_t total, fz_error *err) {
    int64_t end = fz_mono_ns() + AWAIT_OBJECT_NS;
    for (unsigned tries = 0;; tries++) {
        bool landed = false;
        fz_error e;
        if (look(u, total, &landed, &e) == FZ_USER) return FZ_OK; /* who may not look has to believe */
        if (landed) return FZ_OK;
        if (fz_mono_ns() > end) return fz_fail(err, FZ_RETRY, "aws.unavailable", "CompleteMultipartUpload '%s': the store said that it is done, but the object does not appear", u->location);
        s3_back_off(tries + 1);
    }
}

static fz_status complete(s3_upload *u, uint64_t total, fz_error *err) {
    fz_error own;
    fz_error *e = err ? err : &own;
    bool unsure = false;
    for (unsigned tries = 0;; tries++) {
        fz_status rc = send_complete(u, total, &unsure, e);
        if (rc == FZ_OK) return unsure ? await_object(u, total, err) : FZ_OK;
        bool gone = strcmp(e->code, "file.no-upload") == 0; /* done by a try whose answer was lost, or aborted by somebody */
        bool open = rc == FZ_RETRY || rc == FZ_UNKNOWN;
        if (!open) return rc;
        bool landed = false;
        fz_error why;
        fz_status seen = look(u, total, &landed, &why);
        if (seen == FZ_OK && landed) return FZ_OK;
        if (gone && seen == FZ_OK)
            return fz_fail(err, FZ_RETRY, "file.no-upload", "'%s': its parts are gone: the upload was aborted from outside, by a lifecycle rule or a person", u->location);
        if (tries < 3 && !gone) {
            s3_back_off(tries + 2);
            continue;
        }
        /* Not to be learned. Nobody knows the name yet, so that nothing but an orphan can come of it. */
        e->cls = FZ_RETRY;
        return FZ_RETRY;
    }
}

static void abort_upload(s3_upload *u) {
    fz_buf q = {0};
    fz_buf_puts(&q, "uploadId=");
    net_encode(&q, u->id, strlen(u->id), false);
    /* Where the store does not answer, this is not worth long waits: lifecycle rules take what is left. */
    s3_request rq = {.op = "AbortMultipartUpload", .method = "DELETE", .location = u->location, .query = fz_buf_cstr(&q), .max_attempts = u->failed ? 1 : 2};
    aws_answer a;
    fz_error e;
    fz_status rc = s3_send(u->s, &rq, &a, &e);
    aws_answer_free(&a);
    fz_buf_free(&q);
    if (rc != FZ_OK && strcmp(e.code, "file.no-upload") != 0) fz_log_error(FZ_LOG_WARN, "s3.upload-left", &e);
}

static fz_status hash_file(s3_upload *u, int fd, uint64_t total, char hex[65], fz_error *err) {
    const size_t step = 256u << 10;
    uint8_t *b = fz_malloc(step);
    int e = 0;
    aws_sha256 *h = aws_sha256_new();
    for (uint64_t at = 0; at < total && e == 0;) {
        ssize_t r = pread(fd, b, total - at < step ? (size_t)(total - at) : step, (off_t)at);
        if (r > 0) {
            aws_sha256_add(h, b, (size_t)r);
            at += (uint64_t)r;
        } else if (r == 0 || errno != EINTR) e = r == 0 ? EIO : errno;
    }
    aws_sha256_hex_end(h, hex);
    aws_sha256_free(h);
    fz_free(b);
    return e ? fio_errno(err, e, "read the staging file", u->file) : FZ_OK;
}

static fz_status put_staged(s3_upload *u, uint64_t total, fz_error *err) {
    int fd;
    char hex[65];
    FZ_TRY(open_staged(u, &fd, err));
    /* Up to one part the hash is there already; above, the file is read once more for it. */
    fz_status rc = FZ_OK;
    if (total < u->s->c.part_size) aws_sha256_hex_end(u->hash, hex);
    else if (total == u->s->c.part_size) memcpy(hex, u->parts[0].sha256, sizeof hex);
    else rc = hash_file(u, fd, total, hex, err);
    if (rc == FZ_OK) rc = s3_put(u->s, u->location, &(net_body){.n = (size_t)total, .fd = fd}, hex, err);
    close(fd);
    return rc;
}

fz_status s3_upload_seal(s3_upload *u, uint64_t total, fz_error *err) {
    if (!u->id && total < u->s->c.threshold) return FZ_OK;
    if (total % u->s->c.part_size > 0) add_part(u, total % u->s->c.part_size);
    return advance(u, err);
}

uint64_t s3_upload_staged(const s3_upload *u) { return u->id ? 0 : u->staged; }

fz_status s3_upload_finish(s3_upload *u, uint64_t total, fz_error *err) {
    fz_status rc = FZ_OK;
    if (!u->id) rc = put_staged(u, total, err);
    else {
        rc = wait_parts(u, err);
        if (rc == FZ_OK) rc = complete(u, total, err);
    }
    u->done = rc == FZ_OK;
    if (rc == FZ_RETRY || rc == FZ_UNKNOWN) { /* it may be there all the same */
        fz_error e;
        if (s3_delete(u->s, u->location, 1, &e) != FZ_OK) fz_log_error(FZ_LOG_WARN, "s3.orphan", &e);
    }
    return rc;
}

void s3_upload_free(s3_upload *u) {
    if (!u) return;
    pthread_mutex_lock(&u->lock);
    u->cancelled = true;
    pthread_mutex_unlock(&u->lock);
    unsigned withdrawn = s3_pool_withdraw(u);
    pthread_mutex_lock(&u->lock);
    u->in_flight -= withdrawn;
    while (u->in_flight > 0) pthread_cond_wait(&u->changed, &u->lock);
    pthread_mutex_unlock(&u->lock);
    if (u->id && !u->done) abort_upload(u);
    if (u->stray) { /* those of this name are all ours */
        fz_error e;
        if (s3_sweep(u->s, u->location, INT64_MAX, NULL, &e) != FZ_OK) fz_log_error(FZ_LOG_WARN, "s3.upload-left", &e);
    }
    remove_staged(u);
    for (size_t k = 0; k < u->n_parts; k++) fz_free(u->parts[k].etag);
    fz_free(u->parts);
    fz_free(u->error);
    fz_free(u->id);
    fz_free(u->file);
    fz_free(u->location);
    aws_sha256_free(u->hash);
    pthread_mutex_destroy(&u->lock);
    pthread_cond_destroy(&u->changed);
    fz_free(u);
}

fz_status s3_upload_try(s3_store *s, const char *location, fz_error *err) {
    s3_upload *u = s3_upload_new(s, location, 0);
    fz_status rc = create(u, err);
    s3_upload_free(u);
    return rc;
}
