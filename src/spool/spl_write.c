/* The spool's thread: takes what was appended, writes it in one go, syncs once, moves the mark. See spool_int.h.
 *
 * One step is one run: the frames of the oldest blob that are not yet durable, as far as they fit into the segment at hand. While they are written, from where they are, and synced, appends gather
 * behind them. A failed write or sync changes nothing; the run is tried again with growing pauses, in a new segment unless all that was missing was room.
 */
#include "spool/spool_int.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_PAUSE_MS = 50, LAST_PAUSE_MS = 2000, ROOM_PAUSE_MS = 250, MOST_COPY_MS = 1, LEAST_RESERVE = 1 << 20, MOST_RESERVE = 16 << 20 };

typedef struct run { spl_blob *b; size_t at, bytes, pad; uint64_t end; bool last; } run; /* [at, +bytes) of b; last: nothing comes behind it in b */

/* ---- segments (lock held) ---- */
static spl_seg *last_seg(spool *s) { return s->n_segs ? &s->segs[s->n_segs - 1] : NULL; }

fz_status spl_remove_below(spool *s, uint64_t upto, fz_error *err) {
    size_t n = 0;
    fz_status rc = FZ_OK;
    while (rc == FZ_OK && n + 1 < s->n_segs && s->segs[n + 1].after <= upto) {
        char *path = spl_path(s, s->segs[n].first, ".seg");
        switch (fz_fault("spool.trim")) {
        case FZ_FAULT_EIO: rc = spl_fail(err, EIO, "remove", path); break;
        default: break;
        }
        if (rc == FZ_OK && unlink(path) != 0 && errno != ENOENT) {
            int e = errno;
            rc = fz_fail(err, FZ_RETRY, "spool.io", "cannot remove '%s': %s", path, strerror(e));
        }
        fz_free(path);
        if (rc == FZ_OK) s->seg_bytes -= s->segs[n++].size;
    }
    if (n) {
        memmove(s->segs, s->segs + n, (s->n_segs - n) * sizeof *s->segs);
        s->n_segs -= n;
        spl_check_full(s);
    }
    return rc;
}

void spl_check_full(spool *s) {
    bool was = atomic_load(&s->full);
    if (s->refused_need && s->seg_bytes + s->queued + s->refused_need <= (uint64_t)s->max_bytes) s->refused_need = 0;
    bool full = s->refused_need || s->disk_need || s->failing;
    atomic_store(&s->full, full);
    if (was && !full) {
        s->notify = true;
        pthread_cond_signal(&s->work);
    }
}

/* ---- the disk's room (lock held) ---- */

/* Intents, positions and what else a delivery must write before records can be trimmed lie beside the spool: a spool that took the last of the room would wait for itself. */
static void look_disk(const spool *s, uint64_t *free_bytes, uint64_t *reserve) {
    struct statvfs v;
    *free_bytes = UINT64_MAX;
    *reserve = 0;
    if (fz_fault("spool.room") != FZ_FAULT_NONE) *free_bytes = 0;
    else if (fstatvfs(s->dir_fd, &v) != 0 || !v.f_blocks || !v.f_frsize) return; /* a file system that does not tell */
    else {
        uint64_t want = (uint64_t)s->max_bytes / 50, quarter = (uint64_t)v.f_blocks * v.f_frsize / 4;
        if (want < LEAST_RESERVE) want = LEAST_RESERVE;
        if (want > MOST_RESERVE) want = MOST_RESERVE;
        *reserve = want < quarter ? want : quarter;
        *free_bytes = (uint64_t)v.f_bavail * v.f_frsize;
    }
}
void spl_look_room(spool *s) {
    uint64_t free_bytes;
    look_disk(s, &free_bytes, &s->reserve);
    s->room = free_bytes > s->reserve ? free_bytes - s->reserve : 0;
    if (s->disk_need && s->room >= s->disk_need + s->queued) s->disk_need = 0;
    spl_check_full(s);
}
bool spl_starved(const spool *s) { return s->failing == ENOSPC || s->disk_need; }
bool spl_can_give(const spool *s) {
    if (!s->n_segs) return false;
    const spl_seg *last = &s->segs[s->n_segs - 1];
    return (s->n_segs > 1 && s->segs[1].after <= s->trim_to) || (last->size > SPL_HEAD && last->end <= s->trim_to);
}

/* ---- files (no lock; this thread only) ---- */
static void close_segment(spool *s) {
    if (s->fd >= 0) close(s->fd);
    if (s->direct_fd >= 0) close(s->direct_fd);
    s->fd = s->direct_fd = -1;
}
static void open_direct(spool *s, uint64_t first) {
    if (s->direct_fd >= 0 || s->no_direct) return;
    char *path = spl_path(s, first, ".seg");
    s->direct_fd = open(path, O_WRONLY | O_DIRECT | O_CLOEXEC);
    s->no_direct = s->direct_fd < 0;
    fz_free(path);
}
static fz_status begin_segment(spool *s, fz_error *err) {
    uint64_t first = atomic_load(&s->durable);
    close_segment(s);
    pthread_mutex_lock(&s->lock);
    bool again = s->n_segs && last_seg(s)->first == first; /* nothing of the last one was durable: the new file takes its name */
    uint64_t after = again ? last_seg(s)->after : s->leapt_from < first ? s->leapt_from : first;
    pthread_mutex_unlock(&s->lock);
    spl_seg g;
    int fd;
    FZ_TRY(spl_seg_create(s, first, after, &g, &fd, err));
    s->fd = fd;
    pthread_mutex_lock(&s->lock);
    s->leapt_from = UINT64_MAX;
    s->cut = false;
    if (again) {
        s->seg_bytes -= last_seg(s)->size;
        *last_seg(s) = g;
    } else {
        FZ_GROW(s->segs, s->n_segs, s->cap_segs);
        s->segs[s->n_segs++] = g;
    }
    s->seg_bytes += g.size;
    pthread_mutex_unlock(&s->lock);
    return FZ_OK;
}

/* Seals the run's frames. A large run is filled up to a page, so that the next large one can go past the page cache: copying into it is a third of what a record costs here
 * (measured: 200 ns of CPU against 135, records of 240 bytes). The filling is the last frame's. Small ones are packed. */
static void seal(run *r, uint64_t at, uint64_t seed) {
    uint8_t *p = r->b->data + r->at;
    r->pad = r->last && r->bytes >= SPL_LARGE_RUN ? (SPL_PAGE - (at + r->bytes) % SPL_PAGE) % SPL_PAGE : 0;
    memset(p + r->bytes, 0, r->pad);
    for (size_t k = 0, size; k < r->bytes; k += size) {
        spl_frame *f = (spl_frame *)(void *)(p + k);
        size = spl_frame_own_size(f);
        f->size = (uint32_t)(k + size == r->bytes ? size + r->pad : size);
        spl_frame_seal(f, seed);
    }
}

static fz_status write_run(spool *s, const uint8_t *p, size_t n, uint64_t at, fz_error *err) {
    switch (fz_fault("spool.write")) {
    case FZ_FAULT_EIO: return spl_fail(err, EIO, "write to", s->dir);
    case FZ_FAULT_ENOSPC: return spl_fail(err, ENOSPC, "write to", s->dir);
    default: break;
    }
    for (size_t done = 0; done < n;) {
        bool direct = s->direct_fd >= 0 && (at + done) % SPL_PAGE == 0 && (uintptr_t)(p + done) % SPL_PAGE == 0 && (n - done) % SPL_PAGE == 0;
        ssize_t w = pwrite(direct ? s->direct_fd : s->fd, p + done, n - done, (off_t)(at + done));
        if (w < 0 && errno == EINTR) continue;
        if (w < 0 && direct && errno == EINVAL) { /* it was opened, but cannot be done */
            close(s->direct_fd);
            s->direct_fd = -1;
            s->no_direct = true;
            continue;
        }
        if (w <= 0) return spl_fail(err, w == 0 ? EIO : errno, "write to", s->dir);
        done += (size_t)w;
    }
    return FZ_OK;
}
static fz_status sync_run(const spool *s, fz_error *err) {
    switch (fz_fault("spool.fsync")) {
    case FZ_FAULT_EIO: return spl_fail(err, EIO, "sync", s->dir);
    case FZ_FAULT_ENOSPC: return spl_fail(err, ENOSPC, "sync", s->dir);
    default: return fdatasync(s->fd) == 0 ? FZ_OK : spl_fail(err, errno, "sync", s->dir);
    }
}

/* Makes a run durable. After a failure the file ends where it was durable, and is not written to again unless all that was missing was room for the write. */
static fz_status store(spool *s, run *r, bool fresh, fz_error *err) {
    uint64_t left, reserve;
    look_disk(s, &left, &reserve);
    if (left < r->bytes + reserve / 2) { /* somebody else took room since the append */
        fz_fail(err, FZ_RETRY, "spool.no-space", "cannot write to '%s': %s", s->dir, strerror(ENOSPC));
        return fz_detail(err, "%" PRIu64 " bytes are left on the disk; what deliveries must write about these records is to find room too", left);
    }
    if (s->fd < 0 || fresh) FZ_TRY(begin_segment(s, err));
    pthread_mutex_lock(&s->lock);
    spl_seg g = *last_seg(s);
    pthread_mutex_unlock(&s->lock);
    if (r->bytes >= SPL_LARGE_RUN) open_direct(s, g.first);
    seal(r, g.size, g.seed);
    fz_status rc = write_run(s, r->b->data + r->at, r->bytes + r->pad, g.size, err);
    bool room = rc != FZ_OK && strcmp(err->code, "spool.no-space") == 0;
    if (rc == FZ_OK) rc = sync_run(s, err);
    if (rc == FZ_OK) return fz_fault("spool.durable") == FZ_FAULT_NONE ? FZ_OK : spl_fail(err, EIO, "sync", s->dir);
    bool cut = ftruncate(s->fd, (off_t)g.size) == 0;
    if (!room || !cut) close_segment(s);
    return rc;
}

/* ---- the thread ---- */
static struct timespec after_ms(int64_t ms) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    return until;
}
/* lock held, but given up while an append copies */
static run next_run(spool *s, bool *fresh) {
    spl_blob *b = spl_unwritten(s);
    const struct timespec until = after_ms(MOST_COPY_MS);
    while (b->copying && pthread_cond_timedwait(&s->work, &s->lock, &until) != ETIMEDOUT) {}
    while (b->ready == atomic_load_explicit(&b->done, memory_order_relaxed)) pthread_cond_wait(&s->work, &s->lock);
    run r = {.b = b, .at = atomic_load_explicit(&b->done, memory_order_relaxed)};
    uint64_t size = s->n_segs && s->fd >= 0 ? last_seg(s)->size : SPL_HEAD;
    *fresh = size > SPL_HEAD && size + spl_frame_own_size((const spl_frame *)(const void *)(b->data + r.at)) > (uint64_t)s->segment_bytes;
    if (*fresh) size = SPL_HEAD;
    while (r.at + r.bytes < b->ready) {
        const spl_frame *f = (const spl_frame *)(const void *)(b->data + r.at + r.bytes);
        size_t more = spl_frame_own_size(f);
        if (r.bytes && size + r.bytes + more > (uint64_t)s->segment_bytes) break;
        r.bytes += more;
        r.end = f->first + f->n;
    }
    r.last = r.at + r.bytes == b->bytes;
    if (r.last && r.bytes >= SPL_LARGE_RUN) b->open = false; /* it is filled up, and the next run begins at a page in memory too */
    return r;
}

/* lock held */
static void publish(spool *s, const run *r) {
    spl_seg *g = last_seg(s);
    g->size += r->bytes + r->pad;
    g->end = r->end;
    s->seg_bytes += r->bytes + r->pad;
    s->queued -= r->bytes;
    r->b->bytes += r->pad;
    if (r->pad) r->b->ready = r->b->bytes;
    atomic_store_explicit(&r->b->done, r->at + r->bytes + r->pad, memory_order_release);
    if (s->failing) fz_log(FZ_LOG_INFO, "spool.writing-again", FZ_KV("dir", "%s", s->dir), NULL);
    s->failing = 0;
    s->stats.syncs++;
    atomic_store_explicit(&s->durable, r->end, memory_order_release);
    spl_ring_settle(s);
    spl_look_room(s);
    pthread_cond_broadcast(&s->moved);
}

static void tell_watchers(spool *s) {
    pthread_mutex_lock(&s->watch_lock);
    for (int i = 0; i < SPL_MAX_WATCHERS; i++)
        if (s->watchers[i].fn) s->watchers[i].fn(s->watchers[i].cx);
    pthread_mutex_unlock(&s->watch_lock);
}

/* lock held; waits where the thread is told of the end only */
static void pause_ms(spool *s, int64_t ms) {
    struct timespec until = after_ms(ms);
    while (!s->closing && pthread_cond_timedwait(&s->work, &s->lock, &until) == 0) {}
}

/* The last segment, of which nothing is wanted, is to give room for the next one's head. What is left is a torn frame: whatever becomes of this process, a start sees that numbers must leap. lock held. */
static bool shorten(spool *s) {
    spl_seg *g = last_seg(s);
    const uint64_t size = SPL_HEAD + sizeof(spl_frame) / 2;
    if (s->cut || g->size <= size) return false;
    char *path = spl_path(s, g->first, ".seg");
    s->cut = truncate(path, (off_t)size) == 0;
    fz_free(path);
    if (!s->cut) return false;
    s->seg_bytes -= g->size - size;
    g->size = size;
    (void)fz_fault("spool.shortened");
    return true;
}

/* A new segment after the last one, all of whose records are committed, so that the last one can go. lock held. */
static void roll(spool *s) {
    s->roll = false;
    fz_error err = {0};
    fz_status rc = spl_remove_below(s, s->trim_to, &err);
    spl_seg *g = last_seg(s);
    if (rc == FZ_OK && g && g->size > SPL_HEAD && g->end <= s->trim_to) {
        pthread_mutex_unlock(&s->lock);
        rc = begin_segment(s, &err);
        pthread_mutex_lock(&s->lock);
        if (rc != FZ_OK && strcmp(err.code, "spool.no-space") == 0 && shorten(s)) {
            pthread_mutex_unlock(&s->lock);
            rc = begin_segment(s, &err);
            pthread_mutex_lock(&s->lock);
        }
        if (rc == FZ_OK) rc = spl_remove_below(s, s->trim_to, &err);
    }
    if (rc == FZ_OK) spl_look_room(s);
    else if (!s->failing && !s->disk_need) fz_log_error(FZ_LOG_WARN, "spool.trim", &err);
}

static void fail(spool *s, const fz_error *err, int64_t *wait_ms) {
    bool first = !s->failing;
    s->failing = strcmp(err->code, "spool.no-space") == 0 ? ENOSPC : EIO;
    if (first) fz_log_error(FZ_LOG_ERROR, "spool.cannot-write", err);
    spl_check_full(s);
    pthread_cond_broadcast(&s->moved);
    pthread_mutex_unlock(&s->lock);
    if (first) tell_watchers(s);
    pthread_mutex_lock(&s->lock);
    pause_ms(s, *wait_ms);
    if (*wait_ms < LAST_PAUSE_MS) *wait_ms *= 2;
}

/* Nobody says when a disk has room again. lock held. */
static void rest(spool *s) {
    while (!spl_unwritten(s) && !s->closing && !s->roll && !s->notify) {
        if (!s->disk_need) {
            pthread_cond_wait(&s->work, &s->lock);
            continue;
        }
        const struct timespec until = after_ms(ROOM_PAUSE_MS);
        pthread_cond_timedwait(&s->work, &s->lock, &until);
        spl_look_room(s);
        if (s->disk_need && spl_can_give(s)) s->roll = true;
    }
}

static void step(spool *s, int64_t *wait_ms) {
    bool fresh;
    run r = next_run(s, &fresh);
    fz_error err;
    pthread_mutex_unlock(&s->lock);
    fz_status rc = store(s, &r, fresh, &err);
    pthread_mutex_lock(&s->lock);
    if (rc != FZ_OK) {
        fail(s, &err, wait_ms);
        return;
    }
    publish(s, &r);
    *wait_ms = FIRST_PAUSE_MS;
    s->notify = true;
}

void *spl_thread(void *p) {
    spool *s = p;
    int64_t wait_ms = FIRST_PAUSE_MS;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        rest(s);
        if (s->notify) {
            s->notify = false;
            pthread_mutex_unlock(&s->lock);
            tell_watchers(s);
            pthread_mutex_lock(&s->lock);
        }
        if (s->roll || (s->failing == ENOSPC && spl_can_give(s))) roll(s);
        bool last_try = s->closing;
        if (spl_unwritten(s)) step(s, &wait_ms);
        if (last_try && (!spl_unwritten(s) || s->failing)) break;
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}
