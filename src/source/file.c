/* The connector 'filesystem' as a source: the lines of local files, read once.
 *
 * Each file is a split, in the order of their names; a position is a byte offset, a record is a line without its line end (LF or CRLF).
 * A directory is read with all below it; what begins with '.' or '_' is skipped, as in Flink. The size at opening is where a file ends:
 * what is appended later is not read.
 *
 * What it does not do: watch for new files, tail, decompress, read other stores than local disks.
 *
 * Invariants
 *  1. A chunk ends behind a line end, or at the end of the file.
 *  2. A line larger than max_record_size is a record without bytes (oversized); no more of it is held than one block.
 * Threads: reader r touches only the splits whose index is r modulo the readers; each has its own state.
 */
#include "source/source_int.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK (1u << 20)

typedef struct file_state { bool assigned; int64_t pos; int fd; } file_state; /* of a split; fd -1: not open */
typedef struct file_source {
    src_source base;
    file_state *state; /* one for each split */
} file_source;
typedef struct file_chunk { fz_chunk chunk; uint8_t *bytes; } file_chunk;
typedef struct paths { char **v; uint32_t n, cap; } paths;

#define WRITES .state = FZ_OPT_NO_MEANING, .doc = "Concerns writing.", .why = "the table is read, not written"
#define PARTITIONS .state = FZ_OPT_REFUSED, .doc = "Concerns partitioned tables.", .why = "partitioned directories are not read; give each partition's directory as a table of its own"
static const fz_option options[] = {
    {.name = "path", .type = FZ_OPT_STRING, .doc = "File or directory: an absolute path or a file: URI. A directory is read with all below it, in the order of names; files and directories that begin with '.' or '_' are skipped. Required."},
    {.name = "format", .type = FZ_OPT_STRING, .doc = "Format of a line. Required."},
    {.name = "source.monitor-interval", .type = FZ_OPT_DURATION, .state = FZ_OPT_REFUSED, .doc = "How often Flink looks for new files.", .why = "files are read once, as they are when the job starts; leave the option out"},
    {.name = "source.path.regex-pattern", .type = FZ_OPT_STRING, .state = FZ_OPT_REFUSED, .doc = "Pattern of paths to read.", .why = "name a directory that holds only the files to read"},
    {.name = "source.report-statistics", .type = FZ_OPT_STRING, .state = FZ_OPT_NO_MEANING, .doc = "Statistics for Flink's planner.", .why = "there is no cost-based planner"},
    {.name = "scan.parallelism", .type = FZ_OPT_INT, .state = FZ_OPT_NO_MEANING, .doc = "Number of readers.", .why = "files are dealt to all workers"},
    {.name = "partition.*", .type = FZ_OPT_STRING, PARTITIONS},
    {.name = "sink.*", .type = FZ_OPT_STRING, WRITES},
    {.name = "auto-compaction", .type = FZ_OPT_STRING, WRITES},
    {.name = "compaction.*", .type = FZ_OPT_STRING, WRITES},
    {.name = NULL}};

static fz_status io_error(fz_error *err, const char *what, const char *path) {
    int e = errno;
    fz_status cls = e == ENOENT || e == EACCES || e == ENOTDIR || e == ENAMETOOLONG ? FZ_USER : FZ_RETRY;
    return fz_fail(err, cls, e == ENOENT ? "file.not-found" : e == EACCES ? "file.permission" : "file.io", "cannot %s '%s': %s", what, path, strerror(e));
}

/* ---- finding files ---- */

static bool hidden(const char *name) { return name[0] == '.' || name[0] == '_'; }

static const char *local_path(const char *uri, fz_error *err) {
    if (fz_starts(uri, "file://")) {
        uri += 7;
        if (*uri == '/') return uri;
    } else if (fz_starts(uri, "file:/")) return uri + 5;
    else if (!strstr(uri, "://")) return uri;
    fz_fail(err, FZ_USER, "file.scheme", "option 'path': '%s' is no local path", uri);
    fz_hint(err, "the connector 'filesystem' reads local files only: a path or file:///path");
    return NULL;
}

static fz_status refuse_compressed(const char *path, fz_error *err) {
    static const char *const ends[] = {".gz", ".gzip", ".bz2", ".xz", ".zst", ".deflate"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (fz_ends(path, ends[i])) {
            fz_fail(err, FZ_USER, "file.compressed", "'%s' is compressed", path);
            return fz_hint(err, "compressed files are not read; unpack it, or move it out of the directory");
        }
    return FZ_OK;
}

static fz_status collect(const char *path, unsigned depth, paths *out, fz_error *err) {
    struct stat st;
    if (stat(path, &st) != 0) return io_error(err, "read", path);
    if (!S_ISDIR(st.st_mode)) {
        if (!S_ISREG(st.st_mode)) return fz_fail(err, FZ_USER, "file.kind", "'%s' is neither a file nor a directory", path);
        FZ_TRY(refuse_compressed(path, err));
        FZ_GROW(out->v, out->n, out->cap);
        out->v[out->n++] = fz_strdup(path);
        return FZ_OK;
    }
    if (depth > 64) return fz_fail(err, FZ_USER, "file.depth", "'%s' is more than 64 directories deep (a link to itself?)", path);
    DIR *d = opendir(path);
    if (!d) return io_error(err, "list", path);
    fz_status s = FZ_OK;
    for (struct dirent *e; s == FZ_OK && (e = readdir(d));) {
        if (hidden(e->d_name)) continue;
        char *child = fz_asprintf("%s%s%s", path, fz_ends(path, "/") ? "" : "/", e->d_name);
        s = collect(child, depth + 1, out, err);
        fz_free(child);
    }
    closedir(d);
    return s;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static fz_status add_splits(file_source *s, const paths *p, fz_error *err) {
    s->state = fz_calloc(p->n, sizeof *s->state);
    for (uint32_t i = 0; i < p->n; i++) {
        struct stat st;
        if (stat(p->v[i], &st) != 0) return io_error(err, "read", p->v[i]);
        src_split *x = src_add_split(&s->base, p->v[i], NULL, 0);
        x->start_is_earliest = true;
        x->stop = x->high = st.st_size;
        s->state[i].fd = -1;
    }
    return FZ_OK;
}

static void file_close(src_source *base) {
    file_source *s = (file_source *)base;
    for (uint32_t i = 0; s->state && i < base->n_splits; i++)
        if (s->state[i].fd >= 0) close(s->state[i].fd);
    fz_free(s->state);
    src_base_free(base);
    fz_free(s);
}

static fz_status file_open(const fz_pair *opts, size_t n, const src_context *cx, src_source **out, fz_error *err) {
    static const char *const required[] = {"path", "format"};
    for (int i = 0; i < 2; i++)
        if (!fz_pair_get(opts, n, required[i])) return fz_fail(err, FZ_USER, "option.missing", "table %s: connector 'filesystem' needs option '%s'", cx->table, required[i]);
    const char *path = local_path(fz_pair_get(opts, n, "path"), err);
    if (!path) return FZ_USER;
    paths p = {0};
    fz_status rc = collect(path, 0, &p, err);
    if (p.n) qsort(p.v, p.n, sizeof *p.v, by_name);
    if (rc == FZ_OK) {
        file_source *s = FZ_NEW(file_source);
        src_base_init(&s->base, &src_filesystem_ops, cx);
        rc = add_splits(s, &p, err);
        if (rc == FZ_OK) *out = &s->base;
        else file_close(&s->base);
    }
    for (uint32_t i = 0; i < p.n; i++) fz_free(p.v[i]);
    fz_free(p.v);
    return rc;
}

/* ---- reading ---- */

static fz_status file_assign(src_source *base, uint32_t split, int64_t from, fz_error *err) {
    file_source *s = (file_source *)base;
    const src_split *x = base->splits[split];
    if (from < 0 || from > x->stop)
        return fz_fail(err, FZ_FATAL, "file.position", "'%s' has %lld bytes, but reading shall begin at %lld", x->name, (long long)x->stop, (long long)from);
    s->state[split].assigned = true;
    s->state[split].pos = from;
    return FZ_OK;
}

static fz_status file_unassign_all(src_source *base, fz_error *err) {
    file_source *s = (file_source *)base;
    (void)err;
    for (uint32_t i = 0; i < base->n_splits; i++) s->state[i].assigned = false;
    return FZ_OK;
}

static void chunk_release(fz_chunk *c) {
    file_chunk *f = (file_chunk *)c;
    fz_free(f->bytes);
    fz_free(c->rec);
    fz_free(f);
}

/* n bytes at `at`, all of them. */
static fz_status read_at(const src_split *x, file_state *st, int64_t at, uint8_t *out, size_t n, fz_error *err) {
    if (st->fd < 0) st->fd = open(x->name, O_RDONLY | O_CLOEXEC);
    if (st->fd < 0) return io_error(err, "open", x->name);
    for (size_t done = 0; done < n;) {
        ssize_t r = pread(st->fd, out + done, n - done, at + (int64_t)done);
        if (r < 0 && errno == EINTR) continue;
        if (r < 0) return io_error(err, "read", x->name);
        if (r == 0) return fz_fail(err, FZ_FATAL, "file.short", "'%s' has become shorter while it was read", x->name);
        done += (size_t)r;
    }
    return FZ_OK;
}

static fz_record *add_record(fz_chunk *c, uint32_t *cap, int64_t offset) {
    FZ_GROW(c->rec, c->n, *cap);
    fz_record *r = &c->rec[c->n++];
    *r = (fz_record){.value_len = -1, .key_len = -1, .offset = offset, .timestamp_ms = -1};
    return r;
}

/* Lines of the block p[0..n) that lies at c->to; the rest of an unfinished line stays unread unless the file ends there. */
static void split_lines(fz_chunk *c, const uint8_t *p, size_t n, bool at_end, uint32_t max) {
    uint32_t cap = 0;
    for (size_t i = 0; i < n && c->n < FZ_BATCH_ROWS;) {
        const uint8_t *q = memchr(p + i, '\n', n - i);
        if (!q && !at_end) break;
        size_t len = (q ? (size_t)(q - p) : n) - i, step = len + (q != NULL);
        fz_record *r = add_record(c, &cap, c->to);
        if (len && p[i + len - 1] == '\r') len--;
        r->oversized = len > max;
        if (!r->oversized) {
            r->value = p + i;
            r->value_len = (int32_t)len;
            c->bytes += len;
        }
        i += step;
        c->to += (int64_t)step;
    }
}

/* The line at c->to is larger than a record may be: one oversized record, and on behind its line end. */
static fz_status skip_line(const src_split *x, file_state *st, fz_chunk *c, uint8_t *block, fz_error *err) {
    uint32_t cap = 0;
    int64_t at = c->to;
    for (;;) {
        size_t n = (size_t)(x->stop - at < (int64_t)BLOCK ? x->stop - at : (int64_t)BLOCK);
        FZ_TRY(read_at(x, st, at, block, n, err));
        const uint8_t *q = n ? memchr(block, '\n', n) : NULL;
        at += q ? q - block + 1 : (int64_t)n;
        if (q || at >= x->stop) break;
    }
    add_record(c, &cap, c->to)->oversized = true;
    c->to = at;
    return FZ_OK;
}

static fz_status read_chunk(file_source *s, uint32_t split, file_chunk *f, fz_error *err) {
    const src_split *x = s->base.splits[split];
    file_state *st = &s->state[split];
    uint32_t max = s->base.cx.max_record_size;
    f->chunk = (fz_chunk){.split = split, .from = st->pos, .to = st->pos, .release = chunk_release};
    for (size_t want = BLOCK;; want *= 2) {
        bool at_end = (int64_t)want >= x->stop - st->pos;
        size_t n = at_end ? (size_t)(x->stop - st->pos) : want;
        f->bytes = fz_realloc(f->bytes, n);
        FZ_TRY(read_at(x, st, st->pos, f->bytes, n, err));
        split_lines(&f->chunk, f->bytes, n, at_end, max);
        if (f->chunk.n) return FZ_OK;
        if (n > (size_t)max + 2) {
            f->bytes = fz_realloc(f->bytes, BLOCK);
            return skip_line(x, st, &f->chunk, f->bytes, err);
        }
    }
}

static fz_status file_poll(src_source *base, uint32_t reader, int64_t timeout_ms, fz_chunk **out, bool *done, fz_error *err) {
    file_source *s = (file_source *)base;
    (void)timeout_ms;
    for (uint32_t i = reader; i < base->n_splits; i += base->cx.readers) {
        file_state *st = &s->state[i];
        if (!st->assigned || st->pos >= base->splits[i]->stop) continue;
        file_chunk *f = FZ_NEW(file_chunk);
        fz_status rc = read_chunk(s, i, f, err);
        if (rc != FZ_OK) {
            chunk_release(&f->chunk);
            return rc;
        }
        st->pos = f->chunk.to;
        if (st->pos >= base->splits[i]->stop) {
            close(st->fd);
            st->fd = -1;
        }
        *out = &f->chunk;
        return FZ_OK;
    }
    *done = true;
    return FZ_OK;
}

const src_ops src_filesystem_ops = {
    .name = "filesystem",
    .doc = "The lines of local files, read once in the order of their names. As a one-shot source it has no positions: a second run reads all of it again.",
    .options = options,
    .open = file_open,
    .close = file_close,
    .assign = file_assign,
    .unassign_all = file_unassign_all,
    .poll = file_poll,
};
