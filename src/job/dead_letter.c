/* See dead_letter.h. Local files are appended to (a store's objects cannot be), so this uses the file system itself. */
#include "job/dead_letter.h"
#include "job/error_line.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BUFFER_SOFT ((size_t)256 * 1024)
#define BUFFER_HARD ((size_t)8 << 20)   /* with the disk refusing: then adding fails, and its caller waits */
#define FILE_MAX (64u << 20)

struct dead_letters {
    pthread_mutex_t lock;
    char *dir, *pipeline;
    fz_buf buf;
    uint64_t buffered;  /* lines in buf */
    int fd;
    uint64_t file_bytes;
    bool objects;             /* no file system: an object each time */
    fio *io;
    const dlv_errors *place;  /* NULL: dir */
};

dead_letters *dead_letters_new_at(const dlv_errors *place, fio *io) {
    dead_letters *d = FZ_NEW(dead_letters);
    pthread_mutex_init(&d->lock, NULL);
    d->place = place;
    d->io = io;
    d->objects = true;
    d->fd = -1;
    return d;
}

dead_letters *dead_letters_new(const char *dir, const char *pipeline, fio *io) {
    dead_letters *d = FZ_NEW(dead_letters);
    const char *local = fio_local_path(dir);
    pthread_mutex_init(&d->lock, NULL);
    d->io = io;
    d->objects = !local && strstr(dir, "://");
    d->dir = fz_strdup(local ? local : dir);
    d->pipeline = fz_strdup(pipeline);
    for (char *p = d->pipeline; *p; p++)
        if (*p == '/' || (unsigned char)*p < ' ') *p = '_';
    d->fd = -1;
    return d;
}
const char *dead_letters_dir(const dead_letters *d) { return d->dir; }

static fz_status io_error(const char *what, const char *path, fz_error *err) {
    fz_fail(err, FZ_RETRY, "dead-letter.io", "dead letters: %s %s: %s", what, path, strerror(errno));
    return fz_hint(err, "the job does not pass a bad row before its dead letter is durable; frazil.dead-letter.path names another directory");
}

static fz_status make_dirs(const char *path, fz_error *err) {
    char *p = fz_strdup(path);
    fz_status rc = FZ_OK;
    for (char *s = p + 1; rc == FZ_OK; s++) {
        char c = *s;
        if (c && c != '/') continue;
        *s = 0;
        if (mkdir(p, 0755) != 0 && errno != EEXIST) rc = io_error("cannot create", p, err);
        *s = c;
        if (!c) break;
    }
    fz_free(p);
    return rc;
}

static fz_status open_file(dead_letters *d, fz_error *err) {
    FZ_TRY(make_dirs(d->dir, err));
    time_t now = (time_t)(fz_now_ms() / 1000);
    struct tm tm;
    gmtime_r(&now, &tm);
    char stamp[32], id[37];
    strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &tm);
    fz_uuid4(id);
    char *path = fz_asprintf("%s/%s-%s-%.8s.jsonl", d->dir, d->pipeline, stamp, id);
    d->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
    fz_status rc = d->fd >= 0 ? FZ_OK : io_error("cannot create", path, err);
    d->file_bytes = 0;
    int dir = rc == FZ_OK ? open(d->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (dir >= 0) {
        if (fsync(dir) != 0) rc = io_error("cannot fsync", d->dir, err);
        close(dir);
    }
    if (rc == FZ_OK) fz_log(FZ_LOG_WARN, "dead-letter.file", FZ_KV("path", "%s", path), NULL);
    fz_free(path);
    return rc;
}

static void written(dead_letters *d) {
    fz_metric_add(FZ_M_DEAD_LETTERS, d->buffered);
    d->buffered = 0;
}

static fz_status put_object(dead_letters *d, fz_error *err) {
    char id[37];
    fz_uuid4(id);
    char *location = d->place ? dlv_errors_location(d->place, fz_now_ms(), "iceberg-rejected", id)
                              : fz_asprintf("%s%s%s-%lld-%.8s.jsonl", d->dir, fz_ends(d->dir, "/") ? "" : "/", d->pipeline, (long long)fz_now_ms(), id);
    fz_status rc = fio_put(d->io, location, d->buf.data, d->buf.len, err);
    if (rc == FZ_OK) {
        fz_log(FZ_LOG_WARN, "dead-letter.object", FZ_KV("object", "%s", location), FZ_KV("rows", "%llu", (unsigned long long)d->buffered), NULL);
        d->buf.len = 0;
        written(d);
    } else {
        (void)!fz_context(err, "dead letters");
        if (rc == FZ_USER || rc == FZ_UNKNOWN) err->cls = rc = FZ_RETRY; /* a permission may come; the line twice is better than not at all */
    }
    fz_free(location);
    return rc;
}

/* Writes what is buffered; what could not be written stays. */
static fz_status drain(dead_letters *d, fz_error *err) {
    if (!d->buf.len) return FZ_OK;
    FZ_TRY(fz_fault_status("dead-letter.write", err));
    if (d->objects) return put_object(d, err);
    if (d->fd >= 0 && d->file_bytes > FILE_MAX) {
        if (fsync(d->fd) != 0) return io_error("cannot fsync", d->dir, err);
        close(d->fd);
        d->fd = -1;
    }
    if (d->fd < 0) FZ_TRY(open_file(d, err));
    size_t done = 0;
    fz_status rc = FZ_OK;
    while (done < d->buf.len && rc == FZ_OK) {
        ssize_t n = write(d->fd, d->buf.data + done, d->buf.len - done);
        if (n > 0) done += (size_t)n;
        else if (errno != EINTR) rc = io_error("cannot write to", d->dir, err);
    }
    d->file_bytes += done;
    memmove(d->buf.data, d->buf.data + done, d->buf.len - done); /* half a line may be out: the rest follows it */
    d->buf.len -= done;
    if (rc == FZ_OK) written(d);
    return rc;
}

static void put_text(fz_buf *b, const char *key, const char *value) {
    fz_buf_printf(b, ",\"%s\":", key);
    if (value) fz_buf_json(b, value, strlen(value));
    else fz_buf_puts(b, "null");
}
static void put_line(fz_buf *b, const dead_letter *l) {
    fz_buf_puts(b, "{\"code\":");
    fz_buf_json(b, l->code, strlen(l->code));
    put_text(b, "message", l->message);
    put_text(b, "expression", l->expression);
    put_text(b, "table", l->sink);
    put_text(b, "source", l->source);
    put_text(b, "topic", l->topic);
    const fz_record *r = l->record;
    fz_buf_printf(b, ",\"partition\":%d,\"offset\":%lld,\"timestamp\":%lld", l->partition, (long long)r->offset, (long long)r->timestamp_ms);
    if (r->value_len < 0) fz_buf_puts(b, ",\"size\":null,\"rawData\":null");
    else if (r->oversized) fz_buf_printf(b, ",\"size\":%d,\"rawData\":null", r->value_len);
    else {
        fz_buf_printf(b, ",\"size\":%d,\"rawData\":\"", r->value_len);
        fz_buf_base64(b, r->value, (size_t)r->value_len);
        fz_buf_putc(b, '"');
    }
    fz_buf_printf(b, ",\"arrivalTimestamp\":%lld}\n", (long long)fz_now_ms());
}

fz_status dead_letters_add(dead_letters *d, const dead_letter *l, fz_error *err) {
    pthread_mutex_lock(&d->lock);
    fz_status rc = FZ_OK;
    if (d->buf.len >= BUFFER_HARD) rc = drain(d, err);
    if (rc == FZ_OK) {
        if (d->place)
            job_error_line_put(&d->buf, &(job_error_line){.attempts = 1, .ended_ms = fz_now_ms(), .code = l->code, .message = l->message, .expression = l->expression, .table = l->sink, .source = l->source, .identity = l->identity,
                                                          .topic = l->topic, .partition = l->partition, .record = l->record});
        else put_line(&d->buf, l);
        d->buffered++;
        fz_error ignored; /* a soft limit: the line is kept, and a later call or the checkpoint tells of the trouble */
        if (d->buf.len >= BUFFER_SOFT && drain(d, &ignored) != FZ_OK) fz_log_error(FZ_LOG_WARN, "dead-letter.delayed", &ignored);
    }
    pthread_mutex_unlock(&d->lock);
    return rc;
}
fz_status dead_letters_sync(dead_letters *d, fz_error *err) {
    pthread_mutex_lock(&d->lock);
    fz_status rc = drain(d, err);
    if (rc == FZ_OK && d->fd >= 0 && fdatasync(d->fd) != 0) rc = io_error("cannot fsync", d->dir, err);
    pthread_mutex_unlock(&d->lock);
    return rc;
}
void dead_letters_free(dead_letters *d) {
    if (!d) return;
    if (d->fd >= 0) close(d->fd);
    pthread_mutex_destroy(&d->lock);
    fz_buf_free(&d->buf);
    fz_free(d->dir);
    fz_free(d->pipeline);
    fz_free(d);
}
