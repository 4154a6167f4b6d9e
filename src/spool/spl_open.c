/* What a start finds in the directory: incarnation, segments, a tail that a crash tore, damage. See spool_int.h.
 *
 * Heads of all segments are looked at, frames only of the last one, since that says which number is the next; the frames of the others are checked when they are read.
 * Nothing found here fails the start but a directory that cannot be used and the format of a newer version.
 */
#include "spool/spool_int.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct found { uint64_t first; spl_head head; uint64_t size; const char *why; } found; /* why: what is wrong with it as a whole; NULL: nothing */

/* ---- damage ---- */
static spl_seg *seg_named(spool *s, uint64_t first) {
    for (size_t i = 0; i < s->n_segs; i++)
        if (s->segs[i].first == first) return &s->segs[i];
    return NULL;
}

/* A copy for people to look at; without room for it the log line has to do. */
static void keep_copy(const spool *s, const char *path, int fd, uint64_t at, uint64_t n, bool begin) {
    int out = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (begin ? O_TRUNC : O_APPEND), 0640);
    if (out < 0) return;
    uint8_t *p = fz_malloc(SPL_BLOCK);
    for (size_t got = 1; n && got;) {
        spl_read_at(fd, at, p, n < SPL_BLOCK ? (size_t)n : SPL_BLOCK, &got);
        if (write(out, p, got) != (ssize_t)got) break;
        at += got;
        n -= got;
    }
    fz_free(p);
    close(out);
    (void)s;
}

void spl_damage(spool *s, uint64_t seg_first, int fd, uint64_t at, uint64_t n) {
    pthread_mutex_lock(&s->lock);
    spl_seg *g = seg_named(s, seg_first);
    bool fresh = g && at >= g->damage_to, begin = g && g->damage_to == 0;
    if (fresh) {
        g->damage_to = at + n;
        s->stats.damaged_bytes += n;
        s->stats.damaged_segments += begin;
    }
    pthread_mutex_unlock(&s->lock);
    if (!fresh) return;
    char *path = spl_path(s, seg_first, ".seg.damaged");
    keep_copy(s, path, fd, at, n, begin);
    fz_log(FZ_LOG_ERROR, "spool.damaged", FZ_KV("file", "%.*s", (int)(strlen(path) - strlen(".damaged")), path), FZ_KV("at", "%" PRIu64, at), FZ_KV("bytes", "%" PRIu64, n),
           FZ_KV("kept_in", "%s", path), FZ_KV("reason", "%s", "the checksum is wrong; intact frames behind it are delivered"), NULL);
    fz_free(path);
}

/* A name for what is set aside. *there: it is one of this very file already, of a start that was killed. The caller frees. */
static char *name_aside(const spool *s, uint64_t first, const char *path, bool *there) {
    char *to = spl_path(s, first, ".seg.damaged");
    struct stat mine, other;
    *there = false;
    for (int i = 1; lstat(to, &other) == 0 && i < 1000; i++) {
        if (lstat(path, &mine) == 0 && mine.st_ino == other.st_ino && mine.st_dev == other.st_dev) return *there = true, to;
        fz_free(to);
        to = fz_asprintf("%s.damaged.%d", path, i);
    }
    return to;
}

/* Puts a segment in its place among those that are known. */
static void insert_segment(spool *s, spl_seg g) {
    FZ_GROW(s->segs, s->n_segs, s->cap_segs);
    size_t i = s->n_segs++;
    for (; i > 0 && s->segs[i - 1].first > g.first; i--) s->segs[i] = s->segs[i - 1];
    g.end = i + 1 < s->n_segs ? s->segs[i + 1].after : g.first;
    s->segs[i] = g;
    if (i > 0 && s->segs[i - 1].end > g.after) s->segs[i - 1].end = g.after;
    s->seg_bytes += g.size;
}

/* A segment of which nothing can be used gets out of the way, so that no start meets it again. An empty one takes its place: its numbers are lost, and the log still begins where it began. It does so in one
 * step where the file system knows second names: whenever a start is killed, one of the two is there. */
static void set_aside(spool *s, const found *f, bool stays) {
    char *path = spl_path(s, f->first, ".seg");
    bool there, can_replace = f->first <= INT64_MAX / 2;
    char *to = name_aside(s, f->first, path, &there);
    bool kept = !stays && (there || link(path, to) == 0);
    (void)fz_fault("spool.kept");
    if (kept && !can_replace) unlink(path);
    if (!kept && !stays) kept = rename(path, to) == 0;
    s->stats.damaged_segments++;
    s->stats.damaged_bytes += f->size;
    fz_log(FZ_LOG_ERROR, "spool.damaged", FZ_KV("file", "%s", path), FZ_KV("bytes", "%" PRIu64, f->size), FZ_KV("kept_in", "%s", kept ? to : path), FZ_KV("reason", "%s", f->why), NULL);
    fz_free(path);
    fz_free(to);
    spl_seg g;
    fz_error err;
    if (!kept || !can_replace) return;
    if (spl_seg_create(s, f->first, f->first, &g, NULL, &err) == FZ_OK) insert_segment(s, g);
    else fz_log_error(FZ_LOG_WARN, "spool.segment", &err);
}

/* ---- looking ---- */
bool spl_segment_name(const char *name, uint64_t *first) {
    return strlen(name) == 24 && strcmp(name + 20, ".seg") == 0 && strspn(name, "0123456789") == 20 && fz_parse_u64((fz_sv){name, 20}, first);
}
static int by_first(const void *a, const void *b) {
    uint64_t x = ((const found *)a)->first, y = ((const found *)b)->first;
    return (x > y) - (x < y);
}

bool spl_head_right(const spl_head *h) { return memcmp(h->magic, "FZSPOOL", 8) == 0 && h->sum == XXH3_64bits(h, offsetof(spl_head, sum)); }

static fz_status look_at(const spool *s, found *f, fz_error *err) {
    char *path = spl_path(s, f->first, ".seg");
    struct stat st = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    size_t got = 0;
    bool newer = false;
    if (fd < 0) {
        f->why = errno == EACCES || errno == EPERM ? "it may not be read" : "it cannot be opened";
        if (lstat(path, &st) != 0) st.st_size = 0;
    } else if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        f->why = "it is no file";
        st.st_size = 0;
    } else spl_read_at(fd, 0, (uint8_t *)&f->head, sizeof f->head, &got);
    f->size = (uint64_t)st.st_size;
    if (fd >= 0) close(fd);
    if (!f->why) {
        if (got < sizeof f->head) f->why = "it is shorter than a head";
        else if (!spl_head_right(&f->head)) f->why = "its head is damaged";
        else if (f->head.version > SPL_VERSION) newer = true;
        else if (f->head.first != f->first || f->head.size != SPL_HEAD || f->head.after > f->first) f->why = "its head does not fit its name";
    }
    fz_status rc = FZ_OK;
    if (newer) {
        rc = fz_fail(err, FZ_FATAL, "spool.format", "'%s' has format version %u; this program knows versions up to %u", path, f->head.version, SPL_VERSION);
        rc = fz_hint(err, "a newer version of frazil wrote it: let that one deliver what is in it");
    }
    fz_free(path);
    return rc;
}

static fz_status list(const spool *s, found **out, size_t *n, fz_error *err) {
    DIR *d = opendir(s->dir);
    if (!d) return spl_fail(err, errno, "list", s->dir);
    size_t cap = 0;
    for (struct dirent *e; (e = readdir(d));) {
        found f = {0};
        if (fz_ends(e->d_name, ".tmp")) unlinkat(s->dir_fd, e->d_name, 0); /* never got its name: nothing durable is in it */
        if (!spl_segment_name(e->d_name, &f.first)) continue;
        FZ_GROW(*out, *n, cap);
        (*out)[(*n)++] = f;
    }
    closedir(d);
    if (*n) qsort(*out, *n, sizeof **out, by_first);
    for (size_t i = 0; i < *n; i++) FZ_TRY(look_at(s, &(*out)[i], err));
    return FZ_OK;
}

/* ---- incarnation ---- */
bool spl_looks_like_uuid(const char *p) {
    for (int i = 0; i < 36; i++)
        if (i == 8 || i == 13 || i == 18 || i == 23 ? p[i] != '-' : !strchr("0123456789abcdef", p[i]) || !p[i]) return false;
    return true;
}
/* *named: the incarnation has its file. A name without segments has lost them, and with them the knowledge which numbers were given: what comes is another log. */
static fz_status find_incarnation(spool *s, const found *v, size_t n, bool *named, fz_error *err) {
    char *path = fz_asprintf("%s/incarnation", s->dir), text[37] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC), e = errno;
    size_t got = 0;
    if (fd >= 0) spl_read_at(fd, 0, (uint8_t *)text, 36, &got);
    if (fd >= 0) close(fd);
    fz_status rc = fd < 0 && e != ENOENT ? spl_fail(err, e, "read", path) : FZ_OK;
    fz_free(path);
    FZ_TRY(rc);
    bool right = got == 36 && spl_looks_like_uuid(text);
    *named = right && n;
    if (right && !n) fz_log(FZ_LOG_WARN, "spool.segments-lost", FZ_KV("dir", "%s", s->dir), FZ_KV("incarnation", "%s", text), FZ_KV("reason", "%s", "all of its segments are gone: another spool begins"), NULL);
    for (size_t i = 0; i < n && !right; i++) { /* the file is lost, the segments know it too */
        if (v[i].why) continue;
        memcpy(text, v[i].head.incarnation, 36);
        right = spl_looks_like_uuid(text);
    }
    if (right && n) memcpy(s->incarnation, text, sizeof text);
    else fz_uuid4(s->incarnation);
    return FZ_OK;
}

/* ---- the last segment ---- */
/* Finds its end. *torn: bytes behind the last intact frame. */
static fz_status scan_last(spool *s, spl_seg *g, uint64_t *torn, fz_error *err) {
    char *path = spl_path(s, g->first, ".seg");
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) fd = open(path, O_RDONLY | O_CLOEXEC);
    *torn = 0;
    fz_status rc = fd < 0 ? spl_fail(err, errno, "open", path) : FZ_OK;
    spl_walk w = {.pool = s->pool, .fd = fd, .at = SPL_HEAD, .limit = g->size, .seed = g->seed, .least = g->first, .most = UINT64_MAX};
    uint64_t good = SPL_HEAD;
    for (bool more = rc == FZ_OK; more;) {
        spl_blob *b = spl_walk_next(&w);
        if (b) {
            g->end = b->end;
            good = w.at;
            spl_marks_blob(&s->marks, b);
            spl_blob_unref(b);
        } else if (!w.bad_n) more = false;
        else if (w.at < g->size) spl_damage(s, g->first, fd, w.bad_at, w.bad_n);
    }
    *torn = g->size - good;
    /* Frames that the kernel holds but never wrote may be read and committed from now on. */
    if (rc == FZ_OK && fdatasync(fd) != 0) rc = spl_fail(err, errno, "sync", path);
    if (fd >= 0) close(fd);
    fz_free(path);
    return rc;
}

/* What is torn is no part of the segment any more. It stays in the file when numbers did not leap: the next start has to see why they must. */
static void cut_tail(spool *s, spl_seg *g, uint64_t torn, bool leapt) {
    char *path = spl_path(s, g->first, ".seg");
    g->size -= torn;
    s->seg_bytes -= torn;
    bool cut = leapt && truncate(path, (off_t)g->size) == 0;
    fz_log(FZ_LOG_WARN, "spool.tail-cut", FZ_KV("file", "%s", path), FZ_KV("bytes", "%" PRIu64, torn), FZ_KV("records_before", "%" PRIu64, g->end),
           FZ_KV("reason", "%s", cut ? "a write was cut off by a crash" : "a write was cut off by a crash; the file could not be shortened"), NULL);
    fz_free(path);
}

static void take_segments(spool *s, const found *v, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (v[i].why) continue;
        FZ_GROW(s->segs, s->n_segs, s->cap_segs);
        s->segs[s->n_segs++] = (spl_seg){.first = v[i].first, .after = v[i].head.after, .end = v[i].first, .size = v[i].size, .seed = v[i].head.seed};
        if (s->n_segs > 1) s->segs[s->n_segs - 2].end = v[i].head.after;
        s->seg_bytes += v[i].size;
    }
}

/* Begins a segment behind the leap, so that the next start knows of it as well: before anything is changed that made it necessary. */
static bool leap(spool *s, uint64_t reached) {
    s->next = reached + SPL_LEAP;
    spl_seg g;
    fz_error err;
    if (spl_seg_create(s, s->next, reached, &g, &s->fd, &err) != FZ_OK) {
        fz_log_error(FZ_LOG_WARN, "spool.segment", &err);
        s->fd = -1;
        s->leapt_from = reached;
        return false;
    }
    insert_segment(s, g);
    (void)fz_fault("spool.leapt");
    return true;
}

static fz_status settle(spool *s, found *v, size_t n, fz_error *err) {
    for (size_t i = 0; i < n; i++)
        if (!v[i].why && memcmp(v[i].head.incarnation, s->incarnation, 36) != 0) v[i].why = "it is of another incarnation of the spool";
    take_segments(s, v, n);
    for (size_t i = 0; i + 1 < s->n_segs; i++) spl_marks_segment(s, &s->segs[i]);
    uint64_t torn = 0;
    size_t at = s->n_segs - 1; /* the array moves when it grows */
    if (s->n_segs) FZ_TRY(scan_last(s, &s->segs[at], &torn, err));
    uint64_t reached = s->n_segs ? s->segs[at].end : 0;
    bool last_lost = v[n - 1].why, leapt = true;
    if (last_lost && v[n - 1].first > reached && v[n - 1].first < INT64_MAX / 2) reached = v[n - 1].first;
    s->next = reached;
    if (torn || last_lost) leapt = leap(s, reached);
    if (torn) cut_tail(s, &s->segs[at], torn, leapt);
    for (size_t i = 0; i < n; i++)
        if (v[i].why) set_aside(s, &v[i], i + 1 == n && !leapt);
    return FZ_OK;
}

fz_status spl_recover(spool *s, fz_error *err) {
    found *v = NULL;
    size_t n = 0;
    bool named = false;
    fz_status rc = list(s, &v, &n, err);
    if (rc == FZ_OK) rc = find_incarnation(s, v, n, &named, err);
    if (rc == FZ_OK && !named) rc = spl_file_put(s, "incarnation", s->incarnation, 36, err);
    if (rc == FZ_OK && n) rc = settle(s, v, n, err);
    spl_seg g;
    if (rc == FZ_OK && !n && (rc = spl_seg_create(s, 0, 0, &g, &s->fd, err)) == FZ_OK) insert_segment(s, g);
    fz_free(v);
    return rc;
}
