/* The connector 'filesystem' with 'source.monitor-interval': files that are followed while they grow.
 *
 * Each log is a split; a position is the offset of the next line in its text. What a log is called in the tables that are written (the split's topic) is its stem and its fingerprint: the stem is
 * the base name without groups of digits, what stands before them, and the ending of a packed file (app.log, app.log.1, app.log-20261129.gz and app-2026-11-29.log all have the stem "app.log"), the
 * fingerprint is a hash of its first line, of 256 bytes of it at most. Both survive renaming, copying and packing, which device and inode numbers do not, and neither changes while a log grows: it is
 * known from its first whole line on. So a log that was renamed is the log that it was, and so are the copy that "copytruncate" makes and what "compress" makes of either; what is written after that
 * has another first line and is another log.
 *
 * A packed file is read when nothing plain is there of its log: the log was rotated and packed while nobody looked, or its file was truncated. A log whose plain file is open is read to its end
 * from that, whatever became of its name.
 *
 * What it does not do: tell logs with one stem apart that begin with the same line: the second one is not read, and an error says so.
 *
 * Invariants
 *  1. Only whole lines are handed out. A last line without LF is, when its log is finished: its file was removed or renamed, and has not been written to for QUIET_MS; or it is packed, and whole.
 *  2. What was read is given out only if the file began with the log's first line after it was read: bytes that came after a truncation are never taken for the log's.
 *  3. A log whose file was truncated goes on in a copy of it, plain or packed, at the same position, if there is one; else what was not read is lost, and a line says so.
 *  4. The file of a log stays open until it is finished and all of it has been committed, or it was truncated.
 *  5. A reader has one packed file in work at a time: what unpacking needs is not needed for each of them.
 * Threads: the control thread looks for files, workers read; each log has a lock.
 */
#include "source/tail_int.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

enum { BLOCK = 1 << 20, QUIET_MS = 5000, MOST_DEPTH = 64, SPARE_FILES = 256 };
#define NO_LOG UINT32_MAX

typedef struct seen_file { tail_id id; uint32_t log; bool judged, tried, again; } seen_file; /* a packed one; log: NO_LOG: of none. judged: its beginning was compared. tried: it was taken once. again: seen by this look */

typedef struct tail_source {
    src_source base;
    char *path;
    int64_t interval_ns, next_look;
    tail_log **logs;     /* one for each split; SRC_MAX_SPLITS places */
    uint32_t *turn;      /* of each reader: the split to begin with */
    fz_log_limit complaints;
    uint32_t *unpacking; /* of each reader: the split whose packed file is in work, NO_LOG: none */
    int most_fd;         /* no file with a higher one is kept open */
    uint64_t looks;
    bool whole;          /* the last look saw all that is there */
    char **packed;       /* that this look met: looked at when all that is plain is known */
    uint32_t n_packed, cap_packed, n_foreign;
    seen_file *seen;
    uint32_t n_seen, cap_seen;
    atomic_bool draining;
} tail_source;

/* ---- what a log is called ---- */

/* Length of what the fingerprint is made of; 0: not known yet. */
static uint32_t head_length(const uint8_t *p, size_t n, bool whole) {
    const uint8_t *q = n ? memchr(p, '\n', n) : NULL;
    return q ? (uint32_t)(q - p + 1) : n == TAIL_HEAD || whole ? (uint32_t)n : 0;
}

static bool begins_as_ever(const tail_log *l) {
    uint8_t head[TAIL_HEAD];
    return tail_read_at(l->fd, head, l->n_head, 0) == (ssize_t)l->n_head && memcmp(head, l->head, l->n_head) == 0;
}

static void note_before(tail_log *l, int64_t pos) {
    int64_t n = pos < TAIL_BEFORE ? pos : TAIL_BEFORE;
    ssize_t r = l->fd >= 0 && !l->truncated && !l->packed ? tail_read_at(l->fd, l->before, (size_t)n, pos - n) : 0;
    l->n_before = r == (ssize_t)n ? (uint32_t)n : 0;
}
static bool same_before(const tail_log *l, int fd) {
    uint8_t b[TAIL_BEFORE];
    return tail_read_at(fd, b, l->n_before, l->pos - l->n_before) == (ssize_t)l->n_before && memcmp(b, l->before, l->n_before) == 0;
}

/* ---- looking for files ---- */

static bool quiet(const struct stat *st) { return fz_now_ms() - (int64_t)st->st_mtim.tv_sec * 1000 > QUIET_MS; }

/* Two files of one key: is one the beginning of the other? */
static bool same_beginning(int a, int b) {
    uint8_t *p = fz_malloc(2 * (64 << 10)), *q = p + (64 << 10);
    ssize_t n = tail_read_at(a, p, 64 << 10, 0), m = tail_read_at(b, q, 64 << 10, 0);
    bool same = n >= 0 && m >= 0 && memcmp(p, q, (size_t)(n < m ? n : m)) == 0;
    fz_free(p);
    return same;
}

static void leave_file(tail_log *l) {
    tail_packed_free(l->packed);
    l->packed = NULL;
    if (l->fd >= 0) close(l->fd);
    l->fd = -1;
}

/* packed: NULL for a plain one. */
static void take_file(tail_log *l, int fd, const struct stat *st, tail_packed *packed) {
    leave_file(l);
    l->fd = fd;
    l->packed = packed;
    l->final = packed != NULL;
    l->truncated = false;
    l->dev = st->st_dev;
    l->ino = st->st_ino;
}

static void twin_error(tail_log *l, const char *path, const struct stat *st) {
    if (l->twin == st->st_ino) return;
    l->twin = st->st_ino;
    fz_metric_add(FZ_M_FILES_ALIKE, 1);
    fz_log(FZ_LOG_ERROR, "file.same-beginning", FZ_KV("file", "%s", path), FZ_KV("log", "%s", l->path), FZ_KV("reason", "%s", "both begin with the same line, so that they cannot be told apart: the file is not read"), NULL);
}

/* Is this plain file, another one than the one that is open, to be read in its place? A copy that was made before a truncation is, one that was unpacked, and of two of which one continues the other
 * the longer one. */
static bool goes_on_in(tail_log *l, const char *path, int fd, const struct stat *st) {
    struct stat held;
    if (st->st_size < l->pos) return false;
    if (!same_before(l, fd)) { /* it only begins as the log does */
        twin_error(l, path, st);
        return false;
    }
    if (l->truncated) return true;
    if (l->fd < 0) return st->st_size > l->pos;
    if (l->packed) return true;
    if (!same_beginning(l->fd, fd)) {
        twin_error(l, path, st);
        return false;
    }
    return fstat(l->fd, &held) == 0 && st->st_size > held.st_size;
}

static void log_goes_on(const tail_log *l, const char *path) {
    fz_log(FZ_LOG_INFO, "file.goes-on", FZ_KV("log", "%s", l->path), FZ_KV("file", "%s", path), FZ_KV("position", "%" PRId64, l->pos), NULL);
}

/* A plain file of a log that is known. True: fd was taken. */
static bool seen_again(tail_log *l, const char *path, int fd, const struct stat *st) {
    pthread_mutex_lock(&l->lock);
    bool same_file = l->fd >= 0 && l->dev == st->st_dev && l->ino == st->st_ino, taken = !same_file && goes_on_in(l, path, fd, st);
    if (taken) {
        log_goes_on(l, path);
        take_file(l, fd, st, NULL);
    }
    pthread_mutex_unlock(&l->lock);
    return taken;
}

static void add_log(tail_source *s, const char *path, char *key, int fd, const struct stat *st, const uint8_t *head, uint32_t n_head, tail_packed *packed, bool later) {
    if (s->base.n_splits == SRC_MAX_SPLITS) {
        close(fd);
        fz_free(key);
        tail_packed_free(packed);
        return;
    }
    tail_log *l = FZ_NEW(tail_log);
    pthread_mutex_init(&l->lock, NULL);
    l->path = fz_strdup(path);
    l->key = key;
    l->fd = -1;
    take_file(l, fd, st, packed);
    l->seen = s->looks;
    memcpy(l->head, head, n_head);
    l->n_head = n_head;
    s->logs[s->base.n_splits] = l;
    char *name = fz_asprintf("%s (%s)", path, key);
    src_split *x = src_add_split(&s->base, name, key, 0);
    fz_free(name);
    x->start_is_earliest = true;
    x->found_later = later;
    x->high = st->st_size;
}

/* Removed since it was listed: nothing to say. The next look tries again. */
static void unreadable(tail_source *s, const char *path) {
    uint64_t suppressed;
    int e = errno;
    if (e == ENOENT) return;
    s->whole = false;
    fz_metric_add(FZ_M_FILES_UNREADABLE, 1);
    if (fz_log_allowed(&s->complaints, 5, 60000, &suppressed)) fz_log(FZ_LOG_WARN, "file.unreadable", FZ_KV("path", "%s", path), FZ_KV("reason", "%s", strerror(e)), NULL);
}

/* A file that may be a log's. The process needs descriptors for what it writes: beyond its share a file waits until others are read, and closed. -1: not now. */
static int open_file(tail_source *s, const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) unreadable(s, path);
    if (fd <= s->most_fd) return fd;
    close(fd);
    errno = EMFILE;
    unreadable(s, path);
    return -1;
}

/* The key of the log that begins so, and its place among the logs (n_splits: it is none of them). */
static char *key_of(const tail_source *s, const char *path, const uint8_t *head, uint32_t n_head, uint32_t *place) {
    char *stem = tail_stem(path), *key = fz_asprintf("%s#%016" PRIx64, stem, fz_hash(head, n_head));
    fz_free(stem);
    for (*place = 0; *place < s->base.n_splits && strcmp(s->logs[*place]->key, key) != 0;) ++*place;
    return key;
}

/* A packed file is put aside, until all that is plain is known. */
static bool put_aside(tail_source *s, const char *path, const uint8_t *head, size_t n) {
    bool foreign, packed = tail_packing(path, head, n, &foreign) != FILE_PLAIN;
    s->n_foreign += foreign;
    if (packed) {
        FZ_GROW(s->packed, s->n_packed, s->cap_packed);
        s->packed[s->n_packed++] = fz_strdup(path);
    }
    return packed || foreign;
}

static void look_at(tail_source *s, const char *path, bool later) {
    uint8_t head[TAIL_HEAD];
    struct stat st;
    int fd = open_file(s, path);
    ssize_t n = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? tail_read_at(fd, head, TAIL_HEAD, 0) : 0;
    uint32_t n_head = n > 0 && !put_aside(s, path, head, (size_t)n) ? head_length(head, (size_t)n, tail_rotated_name(path) && quiet(&st)) : 0, i;
    if (n_head) {
        char *key = key_of(s, path, head, n_head, &i);
        if (i == s->base.n_splits) {
            add_log(s, path, key, fd, &st, head, n_head, NULL, later);
            return;
        }
        fz_free(key);
        s->logs[i]->seen = s->looks;
        if (seen_again(s->logs[i], path, fd, &st)) return;
    }
    if (fd >= 0) close(fd);
}

/* ---- packed files ---- */

/* Whether the text of a packed file, whose first bytes are `head`, and the plain file that is open begin alike, as far as those go. */
static bool begins_alike(const tail_log *l, const char *path, int fd, file_packing packing) {
    enum { MUCH = 64 << 10 };
    uint8_t *p = fz_malloc(2 * MUCH), *q = p + MUCH;
    size_t n;
    ssize_t m = tail_read_at(l->fd, q, MUCH, 0);
    bool alike = !tail_packed_head(path, fd, packing, p, MUCH, &n) || m < 0 || memcmp(p, q, n < (size_t)m ? n : (size_t)m) == 0;
    fz_free(p);
    return alike;
}

/* Is the log in want of another file? One that is read to its end from a file that is open is not. */
static bool in_want(const tail_log *l) { return l->fd < 0 || l->truncated || (l->packed && l->packed->waiting); }

/* A packed file of a log that is known: in its place? True: fd was taken. */
static bool packed_again(tail_log *l, const char *path, int fd, const struct stat *st, file_packing packing, seen_file *f) {
    bool in_work = l->fd >= 0 && l->packed && l->packed->id.dev == st->st_dev && l->packed->id.ino == st->st_ino;
    if (in_work || f->tried) return false;
    if (!in_want(l)) {
        if (!l->packed && !begins_alike(l, path, fd, packing)) twin_error(l, path, st);
        f->judged = true;
        return false;
    }
    log_goes_on(l, path);
    take_file(l, fd, st, tail_packed_new(packing, st));
    f->tried = true;
    return true;
}

/* What was found out about a packed file that is as it was then; a new entry knows nothing. */
static seen_file *seen_before(tail_source *s, const struct stat *st, bool *is_new) {
    tail_id id = tail_id_of(st);
    *is_new = false;
    for (uint32_t i = 0; i < s->n_seen; i++)
        if (tail_id_same(&s->seen[i].id, &id)) return &s->seen[i];
    *is_new = true;
    FZ_GROW(s->seen, s->n_seen, s->cap_seen);
    s->seen[s->n_seen] = (seen_file){.id = id, .log = NO_LOG};
    return &s->seen[s->n_seen++];
}

/* Of a file that was not seen before: its log, which may be a new one (then fd is taken). */
static bool meet_packed(tail_source *s, const char *path, int fd, const struct stat *st, seen_file *f, bool later) {
    uint8_t head[TAIL_HEAD];
    size_t n;
    bool foreign;
    uint32_t i;
    ssize_t raw = tail_read_at(fd, head, TAIL_HEAD, 0);
    file_packing packing = raw > 0 ? tail_packing(path, head, (size_t)raw, &foreign) : FILE_PLAIN;
    if (packing == FILE_PLAIN || !tail_packed_head(path, fd, packing, head, TAIL_HEAD, &n)) return false;
    uint32_t n_head = head_length(head, n, quiet(st));
    if (!n_head) return false;
    char *key = key_of(s, path, head, n_head, &i);
    f->log = i;
    if (i == s->base.n_splits) {
        f->tried = true;
        add_log(s, path, key, fd, st, head, n_head, tail_packed_new(packing, st), later);
        if (i == s->base.n_splits) f->log = NO_LOG;
        return true;
    }
    fz_free(key);
    return false;
}

static bool offer_packed(tail_log *l, const char *path, int fd, const struct stat *st, seen_file *f) {
    uint8_t magic[4];
    bool foreign, taken = false;
    pthread_mutex_lock(&l->lock);
    ssize_t n = !f->tried && (!f->judged || in_want(l)) ? tail_read_at(fd, magic, sizeof magic, 0) : 0;
    if (n > 0) taken = packed_again(l, path, fd, st, tail_packing(path, magic, (size_t)n, &foreign), f);
    pthread_mutex_unlock(&l->lock);
    return taken;
}

static void look_at_packed(tail_source *s, const char *path, bool later) {
    struct stat st;
    bool is_new, taken = false;
    int fd = open_file(s, path);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        seen_file *f = seen_before(s, &st, &is_new);
        f->again = true;
        if (is_new) taken = meet_packed(s, path, fd, &st, f, later);
        if (f->log != NO_LOG) {
            s->logs[f->log]->seen = s->looks;
            if (!taken) taken = offer_packed(s->logs[f->log], path, fd, &st, f);
        }
    }
    if (fd >= 0 && !taken) close(fd);
}

static void look_at_all_packed(tail_source *s, bool later) {
    for (uint32_t i = 0; i < s->n_packed; i++) {
        look_at_packed(s, s->packed[i], later);
        fz_free(s->packed[i]);
    }
    s->n_packed = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_seen; i++)
        if (s->seen[i].again && s->seen[i].log != NO_LOG) { /* what has no first line yet is looked at again */
            s->seen[n] = s->seen[i];
            s->seen[n++].again = false;
        }
    s->n_seen = n;
}

/* ---- looking around ---- */

static void look_below(tail_source *s, const char *dir, unsigned depth, bool later) {
    errno = ELOOP;
    DIR *d = depth < MOST_DEPTH ? opendir(dir) : NULL;
    if (!d) unreadable(s, dir);
    s->whole &= d != NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        if (file_hidden(e->d_name)) continue;
        char *child = fz_asprintf("%s%s%s", dir, fz_ends(dir, "/") ? "" : "/", e->d_name);
        struct stat st;
        if (stat(child, &st) == 0 && S_ISDIR(st.st_mode)) look_below(s, child, depth + 1, later);
        else look_at(s, child, later);
        fz_free(child);
    }
    if (d) closedir(d);
}

/* Truncated? Removed, or renamed and quiet? */
static void look_after(tail_log *l) {
    struct stat st, there;
    pthread_mutex_lock(&l->lock);
    if (l->fd >= 0 && !l->packed && fstat(l->fd, &st) == 0) {
        if (st.st_size < l->pos || !begins_as_ever(l)) {
            l->truncated = true;
            leave_file(l);
            fz_metric_add(FZ_M_FILES_TRUNCATED, 1);
            fz_log(FZ_LOG_INFO, "file.truncated", FZ_KV("log", "%s", l->path), FZ_KV("position", "%" PRId64, l->pos), FZ_KV("reason", "%s", "what its file holds now is another log; the rest of this one is read from a copy, if there is one"), NULL);
        } else {
            bool moved = stat(l->path, &there) != 0 || there.st_ino != l->ino || there.st_dev != l->dev || tail_rotated_name(l->path);
            l->final = moved && quiet(&st); /* a program may go on writing to a file that was renamed or removed */
        }
    }
    pthread_mutex_unlock(&l->lock);
}

static void look(tail_source *s, bool later) {
    for (uint32_t i = 0; i < s->base.n_splits; i++) look_after(s->logs[i]);
    s->looks++;
    s->whole = true;
    s->n_foreign = 0;
    glob_t g = {0};
    struct stat st;
    bool pattern = strpbrk(s->path, "*?[") && stat(s->path, &st) != 0;
    int rc = pattern ? glob(s->path, 0, NULL, &g) : 0;
    if (rc != 0) g.gl_pathc = 0;
    s->whole = rc == 0 || rc == GLOB_NOMATCH;
    for (size_t i = 0; i < (pattern ? g.gl_pathc : 1); i++) {
        const char *p = pattern ? g.gl_pathv[i] : s->path;
        bool there = stat(p, &st) == 0;
        s->whole &= there || pattern;
        if (there && S_ISDIR(st.st_mode)) look_below(s, p, 0, later);
        else look_at(s, p, later);
    }
    if (pattern) globfree(&g);
    look_at_all_packed(s, later);
}

static fz_status tail_discover(src_source *base, uint32_t *added, fz_error *err) {
    tail_source *s = (tail_source *)base;
    (void)err;
    if (atomic_load(&s->draining) || fz_mono_ns() < s->next_look) return FZ_OK;
    uint32_t had = base->n_splits;
    look(s, true);
    *added = base->n_splits - had;
    s->next_look = fz_mono_ns() + s->interval_ns;
    return FZ_OK;
}

/* ---- reading ---- */

static void tail_close(src_source *base) {
    tail_source *s = (tail_source *)base;
    for (uint32_t i = 0; i < base->n_splits; i++) {
        tail_log *l = s->logs[i];
        leave_file(l);
        pthread_mutex_destroy(&l->lock);
        fz_free(l->path);
        fz_free(l->key);
        fz_free(l);
    }
    fz_free(s->logs);
    fz_free(s->turn);
    fz_free(s->unpacking);
    fz_free(s->packed);
    fz_free(s->seen);
    fz_free(s->path);
    src_base_free(base);
    fz_free(s);
}

static bool tail_bounded(const src_source *base) { return atomic_load(&((const tail_source *)base)->draining); }

static fz_status tail_assign(src_source *base, uint32_t split, int64_t from, fz_error *err) {
    tail_log *l = ((tail_source *)base)->logs[split];
    if (from < 0) return fz_fail(err, FZ_FATAL, "file.position", "'%s' has no byte %lld", l->path, (long long)from);
    pthread_mutex_lock(&l->lock);
    l->assigned = true;
    if (l->pos != from) l->n_before = 0;
    l->pos = from;
    if (l->packed) l->packed->waiting = false; /* what came before the damage is wanted again */
    else note_before(l, from);
    pthread_mutex_unlock(&l->lock);
    return FZ_OK;
}

static fz_status tail_unassign_all(src_source *base, fz_error *err) {
    tail_source *s = (tail_source *)base;
    (void)err;
    for (uint32_t i = 0; i < base->n_splits; i++) {
        pthread_mutex_lock(&s->logs[i]->lock);
        s->logs[i]->assigned = false;
        pthread_mutex_unlock(&s->logs[i]->lock);
    }
    return FZ_OK;
}

static fz_status tail_bounds(src_source *base, uint32_t split, fz_error *err) {
    tail_log *l = ((tail_source *)base)->logs[split];
    struct stat st;
    fz_status rc = FZ_OK;
    pthread_mutex_lock(&l->lock);
    int64_t *high = &base->splits[split]->high;
    if (l->truncated || l->fd < 0) *high = l->pos;
    else if (l->packed && base->cx.look) rc = tail_packed_size(l, high, err);
    else if (l->packed) *high = l->packed->size >= 0 ? l->packed->size : INT64_MAX; /* what it is is found out while it is read */
    else if (fstat(l->fd, &st) != 0) rc = file_io_error(err, "read", l->path);
    else *high = st.st_size;
    pthread_mutex_unlock(&l->lock);
    return rc;
}

/* Where the last line before `before` begins: behind the LF before it, or at 0. */
static fz_status line_start(const tail_log *l, int64_t before, int64_t *start, fz_error *err) {
    uint8_t *b = fz_malloc(64 << 10);
    fz_status rc = FZ_OK;
    int64_t end = before - 1; /* its own LF does not count */
    *start = 0;
    while (end > 0) {
        int64_t from = end > 64 << 10 ? end - (64 << 10) : 0;
        ssize_t n = tail_read_at(l->fd, b, (size_t)(end - from), from);
        if (n != (ssize_t)(end - from)) {
            rc = n < 0 ? file_io_error(err, "read", l->path) : fz_fail(err, FZ_RETRY, "file.short", "'%s' has become shorter while it was read", l->path);
            break;
        }
        const uint8_t *q = memrchr(b, '\n', (size_t)n);
        if (q) {
            *start = from + (q - b) + 1;
            break;
        }
        end = from;
    }
    fz_free(b);
    return rc;
}

static fz_status probe_line(const tail_source *s, const tail_log *l, int64_t before, src_probe *out, fz_error *err) {
    int64_t start;
    uint32_t max = s->base.cx.max_record_size;
    FZ_TRY(line_start(l, before, &start, err));
    fz_chunk c = {.from = start, .to = start};
    int64_t n = before - start;
    if (n > (int64_t)max + 2) {
        uint32_t cap = 0;
        file_add_record(&c, &cap, start)->oversized = true;
    }
    uint8_t *b = fz_malloc(c.n ? 1 : (size_t)n);
    fz_status rc = FZ_OK;
    if (!c.n && tail_read_at(l->fd, b, (size_t)n, start) != (ssize_t)n) rc = fz_fail(err, FZ_RETRY, "file.short", "'%s' has become shorter while it was read", l->path);
    if (rc == FZ_OK && !c.n) file_split_lines(&c, b, (size_t)n, true, max);
    if (rc == FZ_OK && c.n) *out = (src_probe){SRC_PROBE_OK, c.rec[0].offset, c.rec[0].timestamp_ms, src_record_hash(&c.rec[0])};
    fz_free(b);
    fz_free(c.rec);
    return rc;
}

static fz_status tail_probe_before(src_source *base, uint32_t split, int64_t before, src_probe *out, fz_error *err) {
    tail_source *s = (tail_source *)base;
    tail_log *l = s->logs[split];
    FZ_TRY(tail_bounds(base, split, err));
    if (before > base->splits[split]->high) return out->result = SRC_PROBE_BEYOND, FZ_OK;
    out->result = SRC_PROBE_GONE;
    if (before <= 0) return FZ_OK;
    pthread_mutex_lock(&l->lock);
    fz_status rc = l->truncated || l->fd < 0 ? FZ_OK : l->packed ? tail_packed_probe(l, before, s->base.cx.max_record_size, out, err) : probe_line(s, l, before, out, err);
    pthread_mutex_unlock(&l->lock);
    return rc;
}

/* Behind the end of the line that begins at `at` and is larger than a record may be; -1: it has none yet. */
static int64_t behind_line(const tail_log *l, int64_t at, int64_t stop, bool final, uint8_t *block) {
    for (;;) {
        ssize_t n = tail_read_at(l->fd, block, (size_t)(stop - at < BLOCK ? stop - at : BLOCK), at);
        if (n < 0) return -1;
        const uint8_t *q = n ? memchr(block, '\n', (size_t)n) : NULL;
        if (q) return at + (q - block) + 1;
        if (n < BLOCK) return final ? at + n : -1;
        at += n;
    }
}

/* Lines at l->pos, up to stop; none: c->n is 0. The lock is held. */
static fz_status read_lines(const tail_source *s, tail_log *l, int64_t stop, file_chunk *f, fz_error *err) {
    struct stat st;
    uint32_t max = s->base.cx.max_record_size, cap = 0;
    if (fstat(l->fd, &st) != 0) return file_io_error(err, "read", l->path);
    if (st.st_size < stop) stop = st.st_size;
    bool final = l->final && quiet(&st);
    for (size_t want = BLOCK; l->pos < stop && !f->chunk.n; want *= 2) {
        bool all = (int64_t)want >= stop - l->pos;
        size_t n = all ? (size_t)(stop - l->pos) : want;
        f->bytes = fz_realloc(f->bytes, n);
        ssize_t r = tail_read_at(l->fd, f->bytes, n, l->pos);
        if (r < 0) return file_io_error(err, "read", l->path);
        file_split_lines(&f->chunk, f->bytes, (size_t)r, all && final, max);
        if (f->chunk.n) break;
        if (n > (size_t)max + 2) {
            f->bytes = fz_realloc(f->bytes, BLOCK);
            int64_t to = behind_line(l, l->pos, stop, final, f->bytes);
            if (to < 0) break;
            file_add_record(&f->chunk, &cap, l->pos)->oversized = true;
            f->chunk.to = to;
        }
        if (all) break;
    }
    uint8_t was[TAIL_BEFORE];
    uint32_t n_was = l->n_before;
    memcpy(was, l->before, sizeof was);
    if (f->chunk.n) note_before(l, f->chunk.to);
    if (f->chunk.n && !begins_as_ever(l)) { /* truncated before or while it was read: the next look says so */
        memcpy(l->before, was, sizeof was);
        l->n_before = n_was;
        f->chunk.n = 0;
        f->chunk.to = f->chunk.from;
    }
    return FZ_OK;
}

static bool has_plain(const tail_log *l, int64_t stop) {
    struct stat st;
    return l->assigned && l->fd >= 0 && !l->packed && l->pos < stop && fstat(l->fd, &st) == 0 && st.st_size > l->pos;
}
/* A reader has one packed file in work; *mine: whether this one is. */
static bool has_packed(tail_log *l, int64_t stop, uint32_t split, uint32_t *mine, bool *busy) {
    bool has = l->assigned && l->fd >= 0 && l->packed && l->pos < stop && tail_packed_more(l);
    if (!has && l->packed) file_text_close(&l->packed->text);
    if (!has && *mine == split) *mine = NO_LOG;
    *busy |= has;
    if (has && *mine == NO_LOG) *mine = split;
    return has && *mine == split;
}

static fz_status poll_log(tail_source *s, uint32_t reader, uint32_t split, fz_chunk **out, bool *busy, fz_error *err) {
    tail_log *l = s->logs[split];
    fz_status rc = FZ_OK;
    pthread_mutex_lock(&l->lock);
    int64_t stop = s->base.splits[split]->stop;
    bool packed = has_packed(l, stop, split, &s->unpacking[reader], busy);
    if (packed || has_plain(l, stop)) {
        file_chunk *f = FZ_NEW(file_chunk);
        f->chunk = (fz_chunk){.split = split, .from = l->pos, .to = l->pos, .release = file_chunk_release};
        rc = packed ? tail_packed_lines(l, f, s->base.cx.max_record_size, err) : read_lines(s, l, stop, f, err);
        if (rc == FZ_OK && f->chunk.n) {
            l->pos = f->chunk.to;
            *out = &f->chunk;
        } else file_chunk_release(&f->chunk);
    }
    pthread_mutex_unlock(&l->lock);
    return rc;
}

/* The reader's logs take turns: one that is written without a pause must not keep the others waiting. */
static fz_status tail_poll(src_source *base, uint32_t reader, int64_t timeout_ms, fz_chunk **out, bool *done, fz_error *err) {
    tail_source *s = (tail_source *)base;
    uint32_t step = base->cx.readers, n = atomic_load(&base->n_splits), mine = n > reader ? (n - reader - 1) / step + 1 : 0;
    bool busy = true; /* on the way to where a log goes on, or to the next packed file */
    for (int round = 0; busy && round < 4; round++) {
        busy = false;
        for (uint32_t i = 0; i < mine; i++) {
            uint32_t k = s->turn[reader]++ % mine;
            FZ_TRY(poll_log(s, reader, reader + k * step, out, &busy, err));
            if (*out) return FZ_OK;
        }
    }
    if (busy) return FZ_OK;
    if (atomic_load(&s->draining)) *done = true; /* up to the stops, nothing is left */
    else fz_sleep_ms(timeout_ms);
    return FZ_OK;
}

/* A log that is finished is closed when all of it is in the tables: before, a sink may want to read it again, also after the file was removed. */
static fz_status tail_report(src_source *base, const uint32_t *splits, const int64_t *offsets, uint32_t n, fz_error *err) {
    (void)err;
    for (uint32_t i = 0; i < n; i++) {
        tail_log *l = ((tail_source *)base)->logs[splits[i]];
        struct stat st;
        pthread_mutex_lock(&l->lock);
        if (l->packed && l->packed->size >= 0 && offsets[i] >= l->packed->size) leave_file(l);
        else if (l->fd >= 0 && !l->packed && l->final && fstat(l->fd, &st) == 0 && offsets[i] >= st.st_size) leave_file(l);
        pthread_mutex_unlock(&l->lock);
    }
    return FZ_OK;
}

/* Bytes; of a packed file, which has to be unpacked to know: those of the file, until it was read to its end. */
static uint64_t tail_behind(src_source *base, uint32_t split, int64_t at) {
    tail_log *l = ((tail_source *)base)->logs[split];
    struct stat st;
    int64_t stop = src_stop(base->splits[split]);
    pthread_mutex_lock(&l->lock);
    int64_t end = l->pos;
    bool packed = l->fd >= 0 && l->packed, unknown = packed && l->packed->size < 0;
    if (unknown) end = l->packed->id.size;
    else if (packed) end = at < 0 ? l->pos : l->packed->size;
    else if (l->fd >= 0 && !l->truncated && fstat(l->fd, &st) == 0) end = st.st_size < stop ? st.st_size : stop;
    if (unknown) at = 0;
    else if (at < 0) at = l->pos;
    pthread_mutex_unlock(&l->lock);
    return end > at ? (uint64_t)(end - at) : 0;
}

/* No file of it was seen by the last look, and none is open. */
static bool tail_gone(const src_source *base, const char *topic) {
    const tail_source *s = (const tail_source *)base;
    for (uint32_t i = 0; i < base->n_splits; i++)
        if (strcmp(s->logs[i]->key, topic) == 0) return s->whole && s->logs[i]->seen != s->looks && s->logs[i]->fd < 0;
    return s->whole;
}

/* Each log ends behind its last whole line. */
static void tail_drain(src_source *base) {
    tail_source *s = (tail_source *)base;
    atomic_store(&s->draining, true);
    for (uint32_t i = 0; i < base->n_splits; i++) {
        tail_log *l = s->logs[i];
        fz_error err;
        struct stat st;
        int64_t stop = l->pos;
        pthread_mutex_lock(&l->lock);
        if (l->packed && !l->truncated) {
            if (tail_packed_size(l, &stop, &err) != FZ_OK || stop < l->pos) stop = l->pos;
        } else if (l->fd >= 0 && !l->truncated && fstat(l->fd, &st) == 0 && st.st_size > l->pos && (l->final || line_start(l, st.st_size + 1, &stop, &err) == FZ_OK)) {
            if (l->final) stop = st.st_size;
            if (stop < l->pos) stop = l->pos;
        }
        pthread_mutex_unlock(&l->lock);
        src_set_stop(base->splits[i], stop);
    }
}

static const src_ops tail_ops = {
    .name = "filesystem",
    .options = file_options,
    .replayable = true,
    .close = tail_close,
    .bounded = tail_bounded,
    .discover = tail_discover,
    .bounds = tail_bounds,
    .probe_before = tail_probe_before,
    .assign = tail_assign,
    .unassign_all = tail_unassign_all,
    .poll = tail_poll,
    .report = tail_report,
    .drain = tail_drain,
    .behind = tail_behind,
    .gone = tail_gone,
};

fz_status src_tail_open(const char *path, const char *interval, const src_context *cx, src_source **out, fz_error *err) {
    int64_t ms;
    FZ_TRY(fz_parse_duration_ms(interval, &ms, err));
    if (ms < 1) return fz_fail(err, FZ_USER, "option.invalid", "option 'source.monitor-interval' must be longer than nothing");
    tail_source *s = FZ_NEW(tail_source);
    src_base_init(&s->base, &tail_ops, cx);
    s->base.identity = fz_strdup("files");
    s->path = fz_strdup(path);
    s->interval_ns = ms * 1000000;
    s->logs = fz_calloc(SRC_MAX_SPLITS, sizeof *s->logs); /* address space, as base.splits */
    s->turn = fz_calloc(s->base.cx.readers, sizeof *s->turn);
    s->unpacking = fz_calloc(s->base.cx.readers, sizeof *s->unpacking);
    for (uint32_t i = 0; i < s->base.cx.readers; i++) s->unpacking[i] = NO_LOG;
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur > INT_MAX) files.rlim_cur = INT_MAX;
    s->most_fd = (int)(files.rlim_cur - (files.rlim_cur < 4 * SPARE_FILES ? files.rlim_cur / 4 : SPARE_FILES));
    look(s, false);
    if (!s->base.n_splits) fz_log(FZ_LOG_INFO, "file.none-yet", FZ_KV("table", "%s", s->base.cx.table), FZ_KV("path", "%s", s->path), NULL);
    if (s->n_foreign) fz_log(FZ_LOG_WARN, "file.packed", FZ_KV("table", "%s", s->base.cx.table), FZ_KV("files", "%u", s->n_foreign), FZ_KV("reason", "%s", "only gzip and zstd are read: files packed otherwise are passed over"), NULL);
    s->next_look = fz_mono_ns() + s->interval_ns;
    *out = &s->base;
    return FZ_OK;
}
