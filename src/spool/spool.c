/* The spool's outside: opening, appending, waiting. See spool.h and spool_int.h. */
#include "spool/spool_int.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_MAX (1ll << 30)
#define MOST_SEGMENT (64ll << 20)
#define LEAST_SEGMENT (64ll << 10)
#define DEFAULT_MEMORY (8u << 20)

/* ---- opening ---- */
static fz_status make_dirs(const char *dir, fz_error *err) {
    char *p = fz_strdup(dir);
    fz_status rc = FZ_OK;
    for (char *q = p + 1; rc == FZ_OK; q++) {
        if (*q != '/' && *q) continue;
        char c = *q;
        *q = 0;
        if (mkdir(p, 0750) != 0 && errno != EEXIST) rc = spl_fail(err, errno, "make the directory", p);
        *q = c;
        if (!c) break;
    }
    fz_free(p);
    return rc;
}

static fz_status take_lock(spool *s, fz_error *err) {
    s->dir_fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->dir_fd < 0) return spl_fail(err, errno, "open", s->dir);
    char *path = fz_asprintf("%s/lock", s->dir);
    s->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    fz_status rc = s->lock_fd < 0 ? spl_fail(err, errno, "open", path) : FZ_OK;
    if (rc == FZ_OK && flock(s->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK) {
            fz_fail(err, FZ_USER, "spool.in-use", "the spool '%s' is in use", s->dir);
            rc = fz_hint(err, "another process, or another table of this one, reads and writes it; give each its own 'frazil.state.dir'");
        } else rc = spl_fail(err, errno, "lock", path);
    }
    fz_free(path);
    return rc;
}

static void spool_drop(spool *s) {
    for (size_t i = 0; i < s->ring_n; i++) spl_blob_unref(spl_ring(s, i));
    spl_pool_free(s->pool);
    if (s->fd >= 0) close(s->fd);
    if (s->direct_fd >= 0) close(s->direct_fd);
    if (s->lock_fd >= 0) close(s->lock_fd);
    if (s->dir_fd >= 0) close(s->dir_fd);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->watch_lock);
    pthread_cond_destroy(&s->work);
    pthread_cond_destroy(&s->moved);
    fz_free(s->ring);
    fz_free(s->segs);
    fz_free(s->marks.v);
    fz_free(s->dir);
    fz_free(s);
}

static spool *spool_make(const char *dir, const spool_options *o) {
    spool *s = FZ_NEW(spool);
    s->dir = fz_strdup(dir);
    s->max_bytes = o && o->max_bytes > 0 ? o->max_bytes : DEFAULT_MAX;
    s->segment_bytes = o && o->segment_bytes > 0 ? o->segment_bytes : s->max_bytes / 16;
    if (!(o && o->segment_bytes > 0)) {
        if (s->segment_bytes > MOST_SEGMENT) s->segment_bytes = MOST_SEGMENT;
        if (s->segment_bytes < LEAST_SEGMENT) s->segment_bytes = LEAST_SEGMENT;
    }
    s->memory = o && o->memory ? o->memory : DEFAULT_MEMORY;
    s->fd = s->direct_fd = s->lock_fd = s->dir_fd = -1;
    s->pool = spl_pool_new(s->memory);
    s->leapt_from = UINT64_MAX;
    pthread_condattr_t mono;
    pthread_condattr_init(&mono);
    pthread_condattr_setclock(&mono, CLOCK_MONOTONIC);
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->watch_lock, NULL);
    pthread_cond_init(&s->work, &mono);
    pthread_cond_init(&s->moved, &mono);
    pthread_condattr_destroy(&mono);
    return s;
}

fz_status spool_open(const char *dir, const spool_options *o, spool **out, fz_error *err) {
    *out = NULL;
    FZ_TRY(make_dirs(dir, err));
    spool *s = spool_make(dir, o);
    fz_status rc = take_lock(s, err);
    if (rc == FZ_OK) rc = spl_recover(s, err);
    if (rc == FZ_OK) {
        atomic_store(&s->durable, s->next);
        spl_look_room(s);
        if (pthread_create(&s->thread, NULL, spl_thread, s) != 0) rc = fz_fail(err, FZ_RETRY, "spool.io", "cannot start a thread: %s", strerror(errno));
    }
    if (rc != FZ_OK) {
        spool_drop(s);
        return rc;
    }
    *out = s;
    return FZ_OK;
}

void spool_close(spool *s) {
    if (!s) return;
    pthread_mutex_lock(&s->lock);
    s->closing = true;
    pthread_cond_broadcast(&s->work);
    pthread_cond_broadcast(&s->moved);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    spl_note_trimmed(s);
    if (spl_unwritten(s))
        fz_log(FZ_LOG_ERROR, "spool.closed-unwritten", FZ_KV("dir", "%s", s->dir), FZ_KV("records", "%llu", (unsigned long long)(s->next - atomic_load(&s->durable))),
               FZ_KV("reason", "%s", "the disk failed; their senders were told nothing and send them again"), NULL);
    spool_drop(s);
}

/* ---- appending ---- */
/* *n_bytes: of its records. SIZE_MAX: too large. */
static size_t frame_size(const spool_frame *f, uint64_t *n_bytes) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < f->n; i++) sum += f->len[i];
    *n_bytes = sum;
    uint64_t size = spl_frame_size(f->n, f->time_ns, f->context_len, sum);
    return size > SPL_MAX_FRAME ? SIZE_MAX : (size_t)size;
}
static size_t size_of_all(const spool_frame *f, uint32_t n) {
    uint64_t total = 0, n_bytes;
    for (uint32_t i = 0; i < n; i++) {
        size_t size = f[i].n ? frame_size(&f[i], &n_bytes) : 0;
        if (size == SIZE_MAX) return SIZE_MAX;
        total += size;
    }
    return total > SPL_MAX_FRAME ? SIZE_MAX : (size_t)total;
}

/* What stands behind the frame's head. */
static void put_rest(spl_frame *h, const spool_frame *f) {
    uint8_t *q = (uint8_t *)(h + 1), *end = (uint8_t *)h + spl_frame_own_size(h);
    if (f->time_ns) {
        memcpy(q, f->time_ns, (size_t)f->n * 8);
        q += (size_t)f->n * 8;
    }
    memcpy(q, f->len, (size_t)f->n * 4);
    q += (size_t)f->n * 4;
    if (f->context_len) memcpy(q, f->context, f->context_len);
    q += f->context_len;
    if (f->at)
        for (uint32_t i = 0; i < f->n; q += f->len[i++]) memcpy(q, f->at[i], f->len[i]);
    else if (h->n_bytes) {
        memcpy(q, f->bytes, h->n_bytes);
        q += h->n_bytes;
    }
    memset(q, 0, (size_t)(end - q));
}

/* lock held */
static fz_status refuse(spool *s, size_t need, fz_error *err) {
    s->stats.refused++;
    if (s->failing) return fz_fail(err, FZ_RETRY, s->failing == ENOSPC ? "spool.no-space" : "spool.io", "the spool '%s' cannot be written: %s", s->dir, strerror(s->failing));
    if (need > s->refused_need) s->refused_need = need;
    spl_check_full(s);
    fz_fail(err, FZ_RETRY, "spool.full", "the spool '%s' is full", s->dir);
    return fz_detail(err, "%llu of %lld bytes", (unsigned long long)(s->seg_bytes + s->queued), (long long)s->max_bytes);
}

static void wait_until(struct timespec *t, int64_t ms) {
    clock_gettime(CLOCK_MONOTONIC, t);
    t->tv_sec += ms / 1000;
    t->tv_nsec += ms % 1000 * 1000000;
    if (t->tv_nsec >= 1000000000) {
        t->tv_sec++;
        t->tv_nsec -= 1000000000;
    }
}

/* lock held. What is on disk when all of the queue and `need` more are: with heads of new segments, and pages that are filled up. */
static uint64_t size_with(const spool *s, size_t need) {
    uint64_t coming = s->queued + need;
    return s->seg_bytes + coming + coming / (SPL_LARGE_RUN / SPL_PAGE) + SPL_PAGE + (coming / (uint64_t)s->segment_bytes + 1) * SPL_HEAD;
}
/* lock held. Does the disk have the room, beyond the reserve? A large message is not to keep small ones out for ever: what is waited for is a little room. */
static bool disk_has(spool *s, size_t need) {
    enum { LITTLE = 64 << 10 };
    uint64_t want = size_with(s, need) - s->seg_bytes;
    if (want <= s->room) return true;
    spl_look_room(s);
    if (want <= s->room) return true;
    s->disk_need = need < LITTLE ? need + 2 * SPL_PAGE : LITTLE;
    if (spl_can_give(s)) s->roll = true;
    pthread_cond_signal(&s->work);
    return false;
}
static fz_status refuse_disk(spool *s, fz_error *err) {
    s->stats.refused++;
    spl_check_full(s);
    fz_fail(err, FZ_RETRY, "spool.no-space", "the spool '%s' takes no more: %s", s->dir, strerror(ENOSPC));
    return fz_detail(err, "%llu bytes are left beyond the %llu that are kept for what deliveries must write", (unsigned long long)s->room, (unsigned long long)s->reserve);
}
/* lock held. Room in memory and on disk, or the reason why not. Half of the memory is for what is on its way, so that the newest frames stay for readers. */
static fz_status wait_room(spool *s, size_t need, int64_t wait_ms, fz_error *err) {
    struct timespec until;
    wait_until(&until, wait_ms);
    for (;;) {
        if (s->failing || size_with(s, need) > (uint64_t)s->max_bytes) return refuse(s, (size_t)(size_with(s, need) - s->seg_bytes - s->queued), err);
        if (!disk_has(s, need)) return refuse_disk(s, err);
        if (!s->queued || s->queued + need <= s->memory / 2) return FZ_OK;
        if (wait_ms <= 0 || pthread_cond_timedwait(&s->moved, &s->lock, &until) == ETIMEDOUT) {
            s->stats.refused++;
            return fz_fail(err, FZ_RETRY, "spool.busy", "the spool '%s' has %zu bytes in memory that are not yet on disk", s->dir, s->queued);
        }
    }
}

/* A place behind all that was appended before, *at in a blob. lock held. */
static spl_blob *reserve(spool *s, size_t total, size_t *at) {
    spl_blob *b = s->ring_n ? spl_ring(s, s->ring_n - 1) : NULL;
    if (!b || !b->open || b->bytes + total > b->cap) {
        if (b) b->open = false;
        b = spl_blob_new(s->pool, total);
        b->first = s->next;
        b->open = true;
        spl_ring_add(s, b);
        spl_ring_settle(s);
    }
    *at = b->bytes;
    b->bytes += total;
    b->copying++;
    s->queued += total;
    return b;
}
/* Heads of frames with their numbers. lock held. */
static void number(spool *s, spl_blob *b, size_t at, const spool_frame *f, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        if (!f[i].n) continue;
        uint64_t n_bytes;
        size_t size = frame_size(&f[i], &n_bytes);
        *(spl_frame *)(void *)(b->data + at) = (spl_frame){.size = (uint32_t)size, .first = s->next, .n = f[i].n, .context_len = f[i].context_len, .arrival_ms = f[i].arrival_ms, .n_bytes = n_bytes,
                                                          .flags = f[i].time_ns ? SPL_FLAG_TIMES : 0};
        spl_marks_note(&s->marks, s->next, f[i].arrival_ms);
        s->next += f[i].n;
        s->stats.records_in += f[i].n;
        s->stats.bytes_in += n_bytes;
        at += size;
    }
    b->end = s->next;
}

fz_status spool_append(spool *s, const spool_frame *f, uint32_t n, int64_t wait_ms, uint64_t *ticket, fz_error *err) {
    *ticket = 0;
    size_t total = size_of_all(f, n), at;
    if (total == SIZE_MAX || total + total / (SPL_LARGE_RUN / SPL_PAGE) + 2 * (SPL_HEAD + SPL_PAGE) > (uint64_t)s->max_bytes)
        return fz_fail(err, FZ_DATA, "spool.too-large", "a message is larger than the spool '%s' may be", s->dir);
    if (!total) return FZ_OK;
    pthread_mutex_lock(&s->lock);
    fz_status rc = wait_room(s, total, wait_ms, err);
    spl_blob *b = NULL;
    if (rc == FZ_OK) {
        b = reserve(s, total, &at);
        number(s, b, at, f, n);
        *ticket = s->next;
    }
    pthread_mutex_unlock(&s->lock);
    if (rc != FZ_OK) return rc;
    for (uint32_t i = 0; i < n; i++) { /* nobody else touches this place, nor lets go of the blob, before it is said to be filled */
        if (!f[i].n) continue;
        spl_frame *h = (spl_frame *)(void *)(b->data + at);
        put_rest(h, &f[i]);
        at += h->size;
    }
    pthread_mutex_lock(&s->lock);
    if (--b->copying == 0) {
        b->ready = b->bytes;
        pthread_cond_signal(&s->work);
    }
    pthread_mutex_unlock(&s->lock);
    return FZ_OK;
}

/* ---- marks ---- */
const char *spool_incarnation(const spool *s) { return s->incarnation; }
uint64_t spool_durable(const spool *s) { return atomic_load_explicit(&s->durable, memory_order_acquire); }
bool spool_full(const spool *s) { return atomic_load(&s->full); }
bool spool_refuses(spool *s) {
    if (!atomic_load(&s->full)) return false;
    pthread_mutex_lock(&s->lock);
    bool full = atomic_load(&s->full);
    s->stats.refused += full;
    pthread_mutex_unlock(&s->lock);
    return full;
}

fz_status spool_wait(spool *s, uint64_t ticket, int64_t timeout_ms, fz_error *err) {
    struct timespec until;
    wait_until(&until, timeout_ms);
    pthread_mutex_lock(&s->lock);
    while (atomic_load(&s->durable) < ticket && timeout_ms > 0 && pthread_cond_timedwait(&s->moved, &s->lock, &until) != ETIMEDOUT) {}
    bool there = atomic_load(&s->durable) >= ticket;
    int failing = s->failing;
    pthread_mutex_unlock(&s->lock);
    if (there) return FZ_OK;
    return fz_fail(err, FZ_RETRY, "spool.io", "the spool '%s' is not durable yet: %s", s->dir, failing ? strerror(failing) : "time is over");
}

void spool_watch(spool *s, void (*fn)(void *cx), void *cx) {
    pthread_mutex_lock(&s->watch_lock);
    for (int i = 0; i < SPL_MAX_WATCHERS; i++)
        if (!s->watchers[i].fn) {
            s->watchers[i] = (spl_watcher){fn, cx};
            break;
        }
    pthread_mutex_unlock(&s->watch_lock);
}
void spool_unwatch(spool *s, void (*fn)(void *cx), void *cx) {
    pthread_mutex_lock(&s->watch_lock);
    for (int i = 0; i < SPL_MAX_WATCHERS; i++)
        if (s->watchers[i].fn == fn && s->watchers[i].cx == cx) s->watchers[i] = (spl_watcher){0};
    pthread_mutex_unlock(&s->watch_lock);
}

static spool *unconst(const spool *s) { return (spool *)(uintptr_t)s; }
uint64_t spool_low(const spool *s) {
    spool *m = unconst(s);
    pthread_mutex_lock(&m->lock);
    uint64_t low = s->n_segs ? s->segs[0].after : atomic_load(&m->durable);
    pthread_mutex_unlock(&m->lock);
    return low;
}
uint64_t spool_bytes(const spool *s) {
    spool *m = unconst(s);
    pthread_mutex_lock(&m->lock);
    uint64_t n = s->seg_bytes;
    pthread_mutex_unlock(&m->lock);
    return n;
}
spool_stats spool_get_stats(const spool *s) {
    spool *m = unconst(s);
    pthread_mutex_lock(&m->lock);
    spool_stats st = s->stats;
    uint64_t durable = atomic_load(&m->durable);
    spl_blob *coming = spl_unwritten(s);
    const spl_frame *queued = coming ? (const spl_frame *)(const void *)(coming->data + atomic_load(&coming->done)) : NULL;
    st.disk_bytes = s->seg_bytes;
    st.max_bytes = (uint64_t)s->max_bytes;
    st.waiting = spl_records_from(s, s->trim_to);
    st.oldest_ms = st.waiting ? spl_marks_at(&s->marks, s->trim_to) : 0;
    st.unsynced = s->next - durable;
    st.unsynced_ms = queued ? queued->arrival_ms : 0;
    st.full = atomic_load(&m->full);
    st.failing = s->failing != 0;
    pthread_mutex_unlock(&m->lock);
    return st;
}

int64_t spool_arrival_ms(const spool *s, uint64_t from) {
    spool *m = unconst(s);
    pthread_mutex_lock(&m->lock);
    int64_t ms = spl_records_from(s, from) ? spl_marks_at(&s->marks, from) : 0;
    pthread_mutex_unlock(&m->lock);
    return ms;
}

fz_status spool_trim(spool *s, uint64_t upto, fz_error *err) {
    pthread_mutex_lock(&s->lock);
    if (upto > s->trim_to) s->trim_to = upto;
    spl_marks_forget(&s->marks, s->trim_to);
    fz_status rc = spl_remove_below(s, s->trim_to, err);
    const spl_seg *last = s->n_segs ? &s->segs[s->n_segs - 1] : NULL;
    bool large = last && (last->size >= (uint64_t)s->segment_bytes / 4 || s->seg_bytes >= (uint64_t)s->max_bytes / 2 || s->refused_need);
    if ((large && last->size > SPL_HEAD && last->end <= s->trim_to && !spl_unwritten(s)) || (spl_starved(s) && spl_can_give(s))) { /* the thread begins a new one and removes it */
        s->roll = true;
        pthread_cond_signal(&s->work);
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}
