/* The connector 'filesystem' as a source: the lines of local files, read once, and those of standard input.
 *
 * Each file is a split, in the order of their names; a position is a byte offset, a record is a line without its line end (LF or CRLF).
 * A directory is read with all below it; what begins with '.' or '_' is skipped, as in Flink. The size at opening is where a file ends:
 * what is appended later is not read. Files packed by gzip or zstd, by their names or their first bytes, are unpacked while they are read,
 * and so is standard input; positions of those count bytes of text.
 *
 * What it does not do: watch for new files and follow them (tail.c does, for tables with 'source.monitor-interval'), read other stores than local disks.
 *
 * Invariants
 *  1. A chunk ends behind a line end, or at the end of the file.
 *  2. A line larger than max_record_size is a record without bytes (oversized); no more of it is held than one block (a stream: than one
 *     record may have, and a block).
 *  3. Standard input is read by one source of the process, and once.
 * Threads: reader r touches only the splits whose index is r modulo the readers; each has its own state.
 */
#include "source/file_int.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK (1u << 20)

typedef struct file_state { /* of a split */
    bool assigned;
    int64_t pos;
    int fd;              /* -1: not open */
    bool streamed;       /* packed or standard input: read through `text` */
    file_packing packing;
    file_text text;
    bool ended;          /* all of it has been handed out */
} file_state;
typedef struct file_source {
    src_source base;
    file_state *state; /* one for each split */
    bool has_stdin;    /* and holds stdin_taken */
    atomic_bool draining;
} file_source;
static atomic_bool stdin_taken;
typedef struct paths { char **v; uint32_t n, cap; } paths;

#define WRITES .state = FZ_OPT_NO_MEANING, .doc = "Concerns writing.", .why = "the table is read, not written"
#define PARTITIONS .state = FZ_OPT_REFUSED, .doc = "Concerns partitioned tables.", .why = "partitioned directories are not read; give each partition's directory as a table of its own"
const fz_option file_options[] = {
    {.name = "path", .type = FZ_OPT_STRING, .doc = "File or directory: an absolute path or a file: URI. A directory is read with all below it, in the order of names; files and directories that begin with '.' or '_' are skipped. Files packed by gzip or zstd (by their names or their first bytes) are unpacked. '-' (or file:///dev/stdin) is standard input, to its end. Required."},
    {.name = "format", .type = FZ_OPT_STRING, .doc = "Format of a line. Required."},
    {.name = "source.monitor-interval", .type = FZ_OPT_DURATION, .doc = "Makes the table one without end: files are looked for at this interval, and followed while they grow, through rotation by renaming and by copying and truncating; positions are kept in the tables that are written. 'path' may hold *, ? and [] then. Let it cover the names that rotation gives, those of packed files too: a file is known by its name without digits and without .gz or .zst, and by its first line (256 bytes of it at most), and files of which both are the same are not told apart. Rotated files that were packed by gzip or zstd (logrotate's compress, with or without delaycompress, copytruncate, dateext or olddir below 'path') are the logs that they were: what was not read before they were packed is read from them. Each is unpacked once at each start. Of logs whose files are gone the positions of the last 100, and of all that went within a day, are kept: a file that comes back later than that is read as a new one. Default: files are read once, as they are when the job starts."},
    {.name = "source.path.regex-pattern", .type = FZ_OPT_STRING, .state = FZ_OPT_REFUSED, .doc = "Pattern of paths to read.", .why = "name a directory that holds only the files to read"},
    {.name = "source.report-statistics", .type = FZ_OPT_STRING, .state = FZ_OPT_NO_MEANING, .doc = "Statistics for Flink's planner.", .why = "there is no cost-based planner"},
    {.name = "scan.parallelism", .type = FZ_OPT_INT, .state = FZ_OPT_NO_MEANING, .doc = "Number of readers.", .why = "files are dealt to all workers"},
    {.name = "partition.*", .type = FZ_OPT_STRING, PARTITIONS},
    {.name = "sink.*", .type = FZ_OPT_STRING, WRITES},
    {.name = "auto-compaction", .type = FZ_OPT_STRING, WRITES},
    {.name = "compaction.*", .type = FZ_OPT_STRING, WRITES},
    {.name = NULL}};

fz_status file_io_error(fz_error *err, const char *what, const char *path) {
    int e = errno;
    fz_status cls = e == ENOENT || e == EACCES || e == ENOTDIR || e == ENAMETOOLONG ? FZ_USER : FZ_RETRY;
    return fz_fail(err, cls, e == ENOENT ? "file.not-found" : e == EACCES ? "file.permission" : "file.io", "cannot %s '%s': %s", what, path, strerror(e));
}

/* ---- finding files ---- */

bool file_hidden(const char *name) { return name[0] == '.' || name[0] == '_'; }

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

static bool is_stdin(const char *path) { return strcmp(path, "-") == 0 || strcmp(path, "/dev/stdin") == 0; }

static fz_status refuse_compressed(const char *path, fz_error *err) {
    static const char *const ends[] = {".bz2", ".xz", ".lz4", ".snappy", ".deflate", ".zip", ".Z"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (fz_ends(path, ends[i])) {
            fz_fail(err, FZ_USER, "file.compressed", "'%s' is compressed in a way that is not read", path);
            return fz_hint(err, "gzip and zstd are read; unpack it, or move it out of the directory");
        }
    return FZ_OK;
}

/* Its name, or its first bytes. */
static fz_status packing_of(const char *path, file_packing *out, fz_error *err) {
    uint8_t head[4];
    *out = fz_ends(path, ".gz") || fz_ends(path, ".gzip") ? FILE_GZIP : fz_ends(path, ".zst") || fz_ends(path, ".zstd") ? FILE_ZSTD : FILE_PLAIN;
    if (*out != FILE_PLAIN) return FZ_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return file_io_error(err, "open", path);
    ssize_t n = pread(fd, head, sizeof head, 0);
    fz_status rc = n < 0 ? file_io_error(err, "read", path) : FZ_OK;
    close(fd);
    if (n > 0) *out = file_packing_of(head, (size_t)n);
    return rc;
}

static fz_status collect(const char *path, unsigned depth, paths *out, fz_error *err) {
    struct stat st;
    if (stat(path, &st) != 0) return file_io_error(err, "read", path);
    if (!S_ISDIR(st.st_mode)) {
        if (!S_ISREG(st.st_mode)) return fz_fail(err, FZ_USER, "file.kind", "'%s' is neither a file nor a directory", path);
        FZ_TRY(refuse_compressed(path, err));
        FZ_GROW(out->v, out->n, out->cap);
        out->v[out->n++] = fz_strdup(path);
        return FZ_OK;
    }
    if (depth > 64) return fz_fail(err, FZ_USER, "file.depth", "'%s' is more than 64 directories deep (a link to itself?)", path);
    DIR *d = opendir(path);
    if (!d) return file_io_error(err, "list", path);
    fz_status s = FZ_OK;
    for (struct dirent *e; s == FZ_OK && (e = readdir(d));) {
        if (file_hidden(e->d_name)) continue;
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
        file_state *f = &s->state[i];
        if (stat(p->v[i], &st) != 0) return file_io_error(err, "read", p->v[i]);
        src_split *x = src_add_split(&s->base, p->v[i], NULL, 0);
        x->start_is_earliest = true;
        x->stop = x->high = st.st_size;
        f->fd = -1;
        FZ_TRY(packing_of(p->v[i], &f->packing, err));
        f->streamed = f->packing != FILE_PLAIN;
    }
    return FZ_OK;
}

static fz_status add_stdin(file_source *s, fz_error *err) {
    s->state = FZ_NEW(file_state);
    *s->state = (file_state){.fd = -1, .streamed = true, .packing = FILE_BY_MAGIC};
    src_split *x = src_add_split(&s->base, "standard input", NULL, 0);
    x->start_is_earliest = true;
    x->stop = INT64_MAX;
    if (s->base.cx.look) return FZ_OK;
    if (atomic_exchange(&stdin_taken, true)) return fz_fail(err, FZ_USER, "file.stdin", "table %s: standard input is read by another table already", s->base.cx.table);
    s->has_stdin = true;
    return FZ_OK;
}

static void file_close(src_source *base) {
    file_source *s = (file_source *)base;
    for (uint32_t i = 0; s->state && i < base->n_splits; i++) {
        if (s->state[i].fd >= 0) close(s->state[i].fd);
        file_text_close(&s->state[i].text);
    }
    fz_free(s->state);
    if (s->has_stdin) atomic_store(&stdin_taken, false);
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
    bool from_stdin = is_stdin(path);
    if (fz_pair_get(opts, n, "source.monitor-interval")) {
        if (from_stdin) return fz_fail(err, FZ_USER, "file.stdin", "table %s: standard input cannot be followed; leave out 'source.monitor-interval'", cx->table);
        return src_tail_open(path, fz_pair_get(opts, n, "source.monitor-interval"), cx, out, err);
    }
    fz_status rc = from_stdin ? FZ_OK : collect(path, 0, &p, err);
    if (p.n) qsort(p.v, p.n, sizeof *p.v, by_name);
    if (rc == FZ_OK) {
        file_source *s = FZ_NEW(file_source);
        src_base_init(&s->base, &src_filesystem_ops, cx);
        rc = from_stdin ? add_stdin(s, err) : add_splits(s, &p, err);
        if (rc == FZ_OK) *out = &s->base;
        else file_close(&s->base);
    }
    for (uint32_t i = 0; i < p.n; i++) fz_free(p.v[i]);
    fz_free(p.v);
    return rc;
}

/* ---- reading ---- */

/* A stream begins at its beginning, or goes on where it is. */
static fz_status assign_stream(const src_split *x, file_state *st, int64_t from, fz_error *err) {
    if (from != st->pos) {
        if (from != 0 || st->packing == FILE_BY_MAGIC) return fz_fail(err, FZ_FATAL, "file.position", "'%s' cannot be read from byte %lld of its text on", x->name, (long long)from);
        file_text_close(&st->text);
        st->pos = 0;
        st->ended = false;
    }
    st->assigned = true;
    return FZ_OK;
}

static fz_status file_assign(src_source *base, uint32_t split, int64_t from, fz_error *err) {
    file_source *s = (file_source *)base;
    const src_split *x = base->splits[split];
    if (s->state[split].streamed) return assign_stream(x, &s->state[split], from, err);
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

void file_chunk_release(fz_chunk *c) {
    file_chunk *f = (file_chunk *)c;
    fz_free(f->bytes);
    fz_free(c->rec);
    fz_free(f);
}

/* n bytes at `at`, all of them. */
static fz_status read_at(const src_split *x, file_state *st, int64_t at, uint8_t *out, size_t n, fz_error *err) {
    if (st->fd < 0) st->fd = open(x->name, O_RDONLY | O_CLOEXEC);
    if (st->fd < 0) return file_io_error(err, "open", x->name);
    for (size_t done = 0; done < n;) {
        ssize_t r = pread(st->fd, out + done, n - done, at + (int64_t)done);
        if (r < 0 && errno == EINTR) continue;
        if (r < 0) return file_io_error(err, "read", x->name);
        if (r == 0) return fz_fail(err, FZ_FATAL, "file.short", "'%s' has become shorter while it was read", x->name);
        done += (size_t)r;
    }
    return FZ_OK;
}

fz_record *file_add_record(fz_chunk *c, uint32_t *cap, int64_t offset) {
    FZ_GROW(c->rec, c->n, *cap);
    fz_record *r = &c->rec[c->n++];
    *r = (fz_record){.value_len = -1, .key_len = -1, .offset = offset, .timestamp_ms = -1};
    return r;
}

/* Lines of the block p[0..n) that lies at c->to; the rest of an unfinished line stays unread unless the file ends there. */
void file_split_lines(fz_chunk *c, const uint8_t *p, size_t n, bool at_end, uint32_t max) {
    uint32_t cap = 0;
    for (size_t i = 0; i < n && c->n < FZ_BATCH_ROWS;) {
        const uint8_t *q = memchr(p + i, '\n', n - i);
        if (!q && !at_end) break;
        size_t len = (q ? (size_t)(q - p) : n) - i, step = len + (q != NULL);
        fz_record *r = file_add_record(c, &cap, c->to);
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
    file_add_record(c, &cap, c->to)->oversized = true;
    c->to = at;
    return FZ_OK;
}

static fz_status read_chunk(file_source *s, uint32_t split, file_chunk *f, fz_error *err) {
    const src_split *x = s->base.splits[split];
    file_state *st = &s->state[split];
    uint32_t max = s->base.cx.max_record_size;
    f->chunk = (fz_chunk){.split = split, .from = st->pos, .to = st->pos, .release = file_chunk_release};
    for (size_t want = BLOCK;; want *= 2) {
        bool at_end = (int64_t)want >= x->stop - st->pos;
        size_t n = at_end ? (size_t)(x->stop - st->pos) : want;
        f->bytes = fz_realloc(f->bytes, n);
        FZ_TRY(read_at(x, st, st->pos, f->bytes, n, err));
        file_split_lines(&f->chunk, f->bytes, n, at_end, max);
        if (f->chunk.n) return FZ_OK;
        if (n > (size_t)max + 2) {
            f->bytes = fz_realloc(f->bytes, BLOCK);
            return skip_line(x, st, &f->chunk, f->bytes, err);
        }
    }
}

/* ---- reading streams ---- */

static fz_status open_stream(const src_split *x, file_state *st, fz_error *err) {
    bool input = st->packing == FILE_BY_MAGIC;
    int fd = input ? STDIN_FILENO : open(x->name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return file_io_error(err, "open", x->name);
    st->text.stream = file_stream_new(x->name, fd, st->packing, input ? INT64_MAX : x->stop);
    return FZ_OK;
}

/* A chunk without records: nothing has come in time, or the stream is over (st->ended). */
static fz_status read_stream(file_source *s, uint32_t split, int64_t timeout_ms, file_chunk *f, fz_error *err) {
    file_state *st = &s->state[split];
    f->chunk = (fz_chunk){.split = split, .from = st->pos, .to = st->pos, .release = file_chunk_release};
    if (!st->text.stream) FZ_TRY(open_stream(s->base.splits[split], st, err));
    bool over = st->packing == FILE_BY_MAGIC && atomic_load(&s->draining); /* what has been read so far is all */
    return file_text_lines(&st->text, f, over ? FILE_TEXT_REST : FILE_TEXT_READ, timeout_ms, s->base.cx.max_record_size, &st->ended, err);
}

static void file_drain(src_source *base) { atomic_store(&((file_source *)base)->draining, true); }
static bool file_bounded(const src_source *base) {
    (void)base;
    return true; /* standard input ends too */
}

/* Does the split have more to read? */
static bool has_more(const src_split *x, const file_state *st) { return st->assigned && (st->streamed ? !st->ended : st->pos < x->stop); }

static fz_status file_poll(src_source *base, uint32_t reader, int64_t timeout_ms, fz_chunk **out, bool *done, fz_error *err) {
    file_source *s = (file_source *)base;
    for (uint32_t i = reader; i < base->n_splits; i += base->cx.readers) {
        file_state *st = &s->state[i];
        if (!has_more(base->splits[i], st)) continue;
        file_chunk *f = FZ_NEW(file_chunk);
        fz_status rc = st->streamed ? read_stream(s, i, timeout_ms, f, err) : read_chunk(s, i, f, err);
        if (rc != FZ_OK || !f->chunk.n) {
            bool over = rc == FZ_OK && st->ended;
            file_chunk_release(&f->chunk);
            if (over) file_text_close(&st->text);
            if (over) continue;
            return rc;
        }
        st->pos = f->chunk.to;
        if (st->streamed && st->ended) file_text_close(&st->text);
        if (!st->streamed && st->pos >= base->splits[i]->stop) {
            close(st->fd);
            st->fd = -1;
        }
        *out = &f->chunk;
        return FZ_OK;
    }
    *done = true;
    return FZ_OK;
}

static bool file_endless(const fz_pair *o, size_t n) { return fz_pair_get(o, n, "source.monitor-interval") != NULL; }

const src_ops src_filesystem_ops = {
    .name = "filesystem",
    .doc = "The lines of local files, read once in the order of their names, also of files packed by gzip or zstd, and those of standard input. As a one-shot source it has no positions: a second run reads all of it again. With 'source.monitor-interval' files are followed while they grow, and have positions.",
    .options = file_options,
    .open = file_open,
    .close = file_close,
    .bounded = file_bounded,
    .endless = file_endless,
    .assign = file_assign,
    .unassign_all = file_unassign_all,
    .poll = file_poll,
    .drain = file_drain,
};
