/* Segments as bytes: heads, frames, the walk over a file that may be damaged. See spool_int.h. */
#include "spool/spool_int.h"
#include "spool/spl_sum.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

char *spl_path(const spool *s, uint64_t first, const char *suffix) { return fz_asprintf("%s/%020" PRIu64 "%s", s->dir, first, suffix); }

fz_status spl_fail(fz_error *err, int e, const char *what, const char *path) {
    if (e == ENOSPC || e == EDQUOT) return fz_fail(err, FZ_RETRY, "spool.no-space", "cannot %s '%s': %s", what, path, strerror(e));
    if (e == EACCES || e == EPERM || e == EROFS || e == ENOTDIR || e == ENOENT || e == ENAMETOOLONG || e == ELOOP) {
        fz_fail(err, FZ_USER, "spool.directory", "cannot %s '%s': %s", what, path, strerror(e));
        if (e == ENOTDIR) return fz_hint(err, "a file stands where 'frazil.state.dir', or a directory below it, should be: remove it, or name another directory");
        return fz_hint(err, "'frazil.state.dir' must name a directory that may be written to");
    }
    return fz_fail(err, FZ_RETRY, "spool.io", "cannot %s '%s': %s", what, path, strerror(e));
}

/* ---- frames ---- */
uint64_t spl_sum(const void *p, size_t n, uint64_t seed) {
#ifdef SPL_HAVE_AVX2
    if (n > 1024 && __builtin_cpu_supports("avx2")) return spl_sum_avx2(p, n, seed);
#endif
    return XXH3_64bits_withSeed(p, n, seed);
}
static uint64_t frame_sum(const spl_frame *f, uint64_t seed) { return spl_sum((const uint8_t *)f + sizeof f->sum, f->size - sizeof f->sum, seed); }

void spl_frame_seal(spl_frame *f, uint64_t seed) {
    f->mark = (uint32_t)seed;
    f->sum = frame_sum(f, seed);
}

bool spl_frame_plausible(const uint8_t *p, size_t n, uint64_t most, uint64_t seed) {
    spl_frame f;
    if (n < sizeof f) return false;
    memcpy(&f, p, sizeof f);
    if (f.mark != (uint32_t)seed || f.size % 8 || f.size > SPL_MAX_FRAME + SPL_PAGE || f.size > most || f.n == 0 || f.n_bytes > f.size) return false;
    uint64_t need = spl_frame_own_size(&f);
    return f.size >= need && f.size < need + SPL_PAGE;
}
bool spl_frame_right(const uint8_t *p, uint64_t seed) {
    spl_frame f;
    memcpy(&f, p, sizeof f);
    return f.sum == spl_sum(p + sizeof f.sum, f.size - sizeof f.sum, seed);
}

/* ---- files ---- */
fz_status spl_sync_dir(const spool *s, fz_error *err) { return fsync(s->dir_fd) == 0 ? FZ_OK : spl_fail(err, errno, "sync the directory", s->dir); }

static bool write_all(int fd, const void *p, size_t n) {
    for (size_t done = 0; done < n;) {
        ssize_t w = write(fd, (const uint8_t *)p + done, n - done);
        if (w < 0 && errno == EINTR) continue;
        if (w < 0) return false;
        done += (size_t)w;
    }
    return true;
}

/* Written and synced under a name that nobody reads, then renamed: what has its name is whole. *fd stays open when it is asked for. */
static fz_status put(const spool *s, const char *path, const void *p, size_t n, int *fd, fz_error *err) {
    char *tmp = fz_asprintf("%s.tmp", path);
    int f = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    fz_status rc = FZ_OK;
    switch (fz_fault("spool.write")) {
    case FZ_FAULT_EIO: rc = spl_fail(err, EIO, "write", tmp); break;
    case FZ_FAULT_ENOSPC: rc = spl_fail(err, ENOSPC, "write", tmp); break;
    default: break;
    }
    if (rc == FZ_OK && (f < 0 || !write_all(f, p, n) || fdatasync(f) != 0 || rename(tmp, path) != 0)) rc = spl_fail(err, errno, "write", f < 0 ? tmp : path);
    if (rc == FZ_OK) rc = spl_sync_dir(s, err);
    if (rc != FZ_OK && f >= 0) unlink(tmp);
    if (rc == FZ_OK && fd) *fd = f;
    else if (f >= 0) close(f);
    fz_free(tmp);
    return rc;
}

fz_status spl_file_put(const spool *s, const char *name, const void *p, size_t n, fz_error *err) {
    char *path = fz_asprintf("%s/%s", s->dir, name);
    fz_status rc = put(s, path, p, n, NULL, err);
    fz_free(path);
    return rc;
}

fz_status spl_seg_create(spool *s, uint64_t first, uint64_t after, spl_seg *out, int *fd, fz_error *err) {
    spl_head h = {.magic = "FZSPOOL", .version = SPL_VERSION, .size = SPL_HEAD, .first = first, .after = after};
    fz_random(&h.seed, sizeof h.seed);
    memcpy(h.incarnation, s->incarnation, sizeof h.incarnation);
    h.sum = XXH3_64bits(&h, offsetof(spl_head, sum));
    char *path = spl_path(s, first, ".seg");
    fz_status rc = put(s, path, &h, sizeof h, fd, err);
    if (rc == FZ_OK && fz_fault("spool.segment") != FZ_FAULT_NONE) {
        rc = spl_fail(err, EIO, "write", path);
        if (fd) close(*fd);
    }
    fz_free(path);
    if (rc == FZ_OK) *out = (spl_seg){.first = first, .after = after, .end = first, .size = SPL_HEAD, .seed = h.seed};
    return rc;
}

/* A bad sector makes one page of zeros, which then fails its checksum; the rest of the file can still be read. */
static size_t read_page(int fd, uint64_t at, uint8_t *out, size_t n, bool *end) {
    ssize_t r;
    do r = pread(fd, out, n, (off_t)at);
    while (r < 0 && errno == EINTR);
    *end = r == 0;
    if (r >= 0) return (size_t)r;
    memset(out, 0, n);
    return n;
}
void spl_read_at(int fd, uint64_t at, uint8_t *out, size_t n, size_t *got) {
    *got = 0;
    while (*got < n) {
        ssize_t r = pread(fd, out + *got, n - *got, (off_t)(at + *got));
        if (r < 0 && errno == EINTR) continue;
        bool end = r == 0;
        if (r < 0) {
            size_t page = SPL_PAGE - (size_t)((at + *got) % SPL_PAGE);
            r = (ssize_t)read_page(fd, at + *got, out + *got, page < n - *got ? page : n - *got, &end);
        }
        if (end) return;
        *got += (size_t)r;
    }
}

/* ---- walking ---- */
/* The block was read at w->at. Frames that are whole and right from its beginning on; *need: bytes of a frame that is longer than the block. */
static size_t good_prefix(const spl_walk *w, const uint8_t *p, size_t n, spl_blob *b, size_t *need, bool *over) {
    size_t at = 0;
    *need = 0;
    uint64_t least = w->least;
    while (at < n) {
        spl_frame f;
        if (!spl_frame_plausible(p + at, n - at, w->limit - w->at - at, w->seed)) break;
        memcpy(&f, p + at, sizeof f);
        if (f.first < least) break;
        if (f.size > n - at) {
            *need = f.size;
            break;
        }
        if (!spl_frame_right(p + at, w->seed)) break;
        if (f.first >= w->most) {
            *over = true;
            break;
        }
        if (at == 0) b->first = f.first;
        b->end = least = f.first + f.n;
        at += f.size;
    }
    return at;
}

/* A frame whole in the file at `at`? */
static bool frame_at(const spl_walk *w, uint64_t at) {
    uint8_t head[sizeof(spl_frame)];
    spl_frame f;
    size_t got;
    spl_read_at(w->fd, at, head, sizeof head, &got);
    if (got < sizeof head || !spl_frame_plausible(head, got, w->limit - at, w->seed)) return false;
    memcpy(&f, head, sizeof f);
    if (f.first < w->least || f.first >= w->most) return false;
    uint8_t *all = fz_malloc(f.size);
    spl_read_at(w->fd, at, all, f.size, &got);
    bool right = got == f.size && spl_frame_right(all, w->seed);
    fz_free(all);
    return right;
}

/* First intact frame behind `from`: looked for at every byte, since what was damaged may have lost or gained some. */
static uint64_t search(const spl_walk *w, uint64_t from) {
    uint32_t mark = (uint32_t)w->seed;
    const uint64_t off = offsetof(spl_frame, mark);
    uint8_t *p = fz_malloc(SPL_BLOCK);
    uint64_t found = w->limit;
    for (uint64_t at = from + off; at < w->limit && found == w->limit;) {
        size_t n = w->limit - at < SPL_BLOCK ? (size_t)(w->limit - at) : SPL_BLOCK, got;
        spl_read_at(w->fd, at, p, n, &got);
        if (got < sizeof mark) break;
        for (uint8_t *q = p; found == w->limit && (q = memmem(q, got - (size_t)(q - p), &mark, sizeof mark)); q++)
            if (frame_at(w, at + (uint64_t)(q - p) - off)) found = at + (uint64_t)(q - p) - off;
        at += got - (sizeof mark - 1);
    }
    fz_free(p);
    return found;
}

/* Bytes from w->at on, *got of them. What was written past the page cache is read so too: to copy it out of the cache, where nothing else wants it, takes as long as to decode it. */
static spl_blob *read_block(const spl_walk *w, size_t want, size_t *got) {
    *got = 0;
    if (!w->direct || want < SPL_LARGE_RUN) {
        spl_blob *b = spl_blob_new(w->pool, want);
        spl_read_at(w->fd, w->at, b->data, want, got);
        return b;
    }
    size_t lead = (size_t)(w->at % SPL_PAGE), n = (lead + want + SPL_PAGE - 1) / SPL_PAGE * SPL_PAGE;
    spl_blob *b = spl_blob_new(w->pool, n);
    ssize_t r;
    do r = pread(w->direct_fd, b->room, n, (off_t)(w->at - lead));
    while (r < 0 && errno == EINTR);
    b->data = b->room + lead;
    if (r > (ssize_t)lead) *got = (size_t)r - lead < want ? (size_t)r - lead : want;
    size_t rest;
    spl_read_at(w->fd, w->at + *got, b->data + *got, want - *got, &rest); /* nothing, unless it failed */
    *got += rest;
    return b;
}

spl_blob *spl_walk_next(spl_walk *w) {
    w->bad_n = 0;
    size_t want = SPL_BLOCK, need;
    for (;;) {
        uint64_t left = w->limit > w->at ? w->limit - w->at : 0;
        if (!left) return NULL;
        if (want > left) want = (size_t)left;
        size_t got;
        spl_blob *b = read_block(w, want, &got);
        bool over = false;
        size_t good = good_prefix(w, b->data, got, b, &need, &over);
        if (good) {
            b->bytes = good;
            atomic_init(&b->done, good);
            w->at += good;
            w->least = b->end;
            return b;
        }
        spl_blob_unref(b);
        if (over) return w->at = w->limit, NULL;
        if (!need || need <= want) break;
        want = need;
    }
    uint64_t next = search(w, w->at + 1);
    w->bad_at = w->at;
    w->bad_n = next - w->at;
    w->at = next;
    return NULL;
}
