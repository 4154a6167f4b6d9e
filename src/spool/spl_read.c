/* Readers: from memory what is new, from the segments what is older, and over what is lost. See spool_int.h. */
#include "spool/spool_int.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct spool_reader {
    spool *s;
    uint64_t want;      /* number to be read next */
    uint64_t last;      /* number to which the last view went */
    spl_blob *cur;      /* frames at hand, from pos on not yet handed out */
    size_t pos;
    bool shared;        /* cur is of the ring: more may become durable in it */
    bool open;
    uint64_t seg_first; /* of the segment that w walks over */
    spl_walk w;
};

spool_reader *spool_reader_new(spool *s, uint64_t from) {
    spool_reader *r = FZ_NEW(spool_reader);
    r->s = s;
    r->want = r->last = from;
    uint64_t low = spool_low(s);
    if (from < low) r->want = r->last = low;
    return r;
}
static void leave_segment(spool_reader *r) {
    if (r->open) close(r->w.fd);
    if (r->open && r->w.direct) close(r->w.direct_fd);
    r->open = false;
}
void spool_reader_free(spool_reader *r) {
    if (!r) return;
    leave_segment(r);
    spl_blob_unref(r->cur);
    fz_free(r);
}

/* ---- where a number stands (lock held) ---- */
static spl_blob *in_memory(const spool *s, uint64_t want) {
    if (!s->ring_n || spl_ring(s, 0)->first > want) return NULL;
    size_t lo = 0, hi = s->ring_n - 1; /* the last one that begins at or below want */
    while (lo < hi) {
        size_t mid = (lo + hi + 1) / 2;
        if (spl_ring(s, mid)->first <= want) lo = mid;
        else hi = mid - 1;
    }
    return spl_ring(s, lo);
}
/* The last segment that begins at or below want. want is not below the first one. */
static size_t seg_of(const spool *s, uint64_t want) {
    size_t i = s->n_segs - 1;
    while (i > 0 && s->segs[i].first > want) i--;
    return i;
}
/* Numbers of [a, b) that no record ever had. */
static uint64_t never_given(const spool *s, uint64_t a, uint64_t b) {
    uint64_t n = 0;
    for (size_t i = 0; i < s->n_segs; i++) {
        uint64_t from = s->segs[i].after > a ? s->segs[i].after : a, to = s->segs[i].first < b ? s->segs[i].first : b;
        if (to > from) n += to - from;
    }
    return n;
}
/* Each is counted and named once. */
static void count_lost(spool *s, uint64_t a, uint64_t b) {
    uint64_t n = 0;
    pthread_mutex_lock(&s->lock);
    if (a < s->lost_to) a = s->lost_to;
    if (a < b) {
        n = b - a - never_given(s, a, b);
        s->stats.lost_records += n;
        s->lost_to = b;
    }
    pthread_mutex_unlock(&s->lock);
    if (n) fz_log(FZ_LOG_ERROR, "spool.lost", FZ_KV("dir", "%s", s->dir), FZ_KV("from", "%" PRIu64, a), FZ_KV("to", "%" PRIu64, b), FZ_KV("records", "%" PRIu64, n),
                  FZ_KV("reason", "%s", "no segment holds them any more, or what held them is damaged; what stands behind them is delivered"), NULL);
}

/* ---- frames at hand ---- */
static void view_of(const spl_blob *b, const spl_frame *f, spool_view *v) {
    const uint8_t *p = (const uint8_t *)(f + 1);
    *v = (spool_view){.first = f->first, .n = f->n, .context_len = f->context_len, .arrival_ms = f->arrival_ms, .hold = (void *)(uintptr_t)b};
    if (f->flags & SPL_FLAG_TIMES) {
        v->time_ns = (const int64_t *)(const void *)p;
        p += (size_t)f->n * 8;
    }
    v->len = (const uint32_t *)(const void *)p;
    v->context = p + (size_t)f->n * 4;
    v->bytes = v->context + f->context_len;
}
static void skip_to(spool_view *v, uint64_t want) {
    uint32_t k = (uint32_t)(want - v->first);
    for (uint32_t i = 0; i < k; i++) v->bytes += v->len[i];
    v->len += k;
    if (v->time_ns) v->time_ns += k;
    v->n -= k;
    v->first = want;
}

static void drop_cur(spool_reader *r) {
    spl_blob_unref(r->cur);
    r->cur = NULL;
}
/* The next frame of cur that has something wanted. */
static bool take_frame(spool_reader *r, spool_view *out) {
    while (r->cur && r->pos < atomic_load_explicit(&r->cur->done, memory_order_acquire)) {
        const spl_frame *f = (const spl_frame *)(const void *)(r->cur->data + r->pos);
        r->pos += f->size;
        if (f->first + f->n <= r->want) continue;
        view_of(r->cur, f, out);
        if (out->first < r->want) skip_to(out, r->want);
        atomic_fetch_add_explicit(&r->cur->refs, 1, memory_order_relaxed);
        out->from = r->last;
        if (out->first > out->from) count_lost(r->s, out->from, out->first);
        r->want = r->last = out->first + out->n;
        return true;
    }
    if (!r->shared) drop_cur(r); /* else `locate` knows whether more is to come in it */
    return false;
}

/* ---- segments ---- */
typedef struct place { spl_seg seg; uint64_t behind, next_first; } place; /* behind: numbers from this one on are not of this segment */

/* Opens the segment if it is another than the one at hand. False: it cannot be read. */
static bool enter_segment(spool_reader *r, const place *p) {
    if (r->open && r->seg_first == p->seg.first && r->w.seed == p->seg.seed) {
        if (p->seg.size > r->w.limit) r->w.limit = p->seg.size;
        if (r->w.least <= r->want) return true;
    }
    leave_segment(r);
    char *path = spl_path(r->s, p->seg.first, ".seg");
    int fd = open(path, O_RDONLY | O_CLOEXEC), direct = fd < 0 ? -1 : open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
    fz_free(path);
    if (fd < 0) return false;
    r->open = true;
    r->seg_first = p->seg.first;
    r->w = (spl_walk){.pool = r->s->pool, .fd = fd, .direct_fd = direct, .direct = direct >= 0, .at = SPL_HEAD, .limit = p->seg.size, .seed = p->seg.seed, .least = p->seg.first, .most = UINT64_MAX};
    return true;
}

/* One block of a segment: cur is set, or the walk went on, or the segment is over and want stands behind it. */
static void read_segment(spool_reader *r, const place *p) {
    spool *s = r->s;
    if (!enter_segment(r, p)) {
        pthread_mutex_lock(&s->lock);
        bool there = s->n_segs && s->segs[seg_of(s, r->want)].first == p->seg.first && r->want >= s->segs[0].first; /* else it was trimmed meanwhile */
        if (there) {
            s->stats.damaged_segments++;
            s->stats.damaged_bytes += p->seg.size;
        }
        pthread_mutex_unlock(&s->lock);
        if (!there) return;
        fz_log(FZ_LOG_ERROR, "spool.damaged", FZ_KV("dir", "%s", s->dir), FZ_KV("first", "%llu", (unsigned long long)p->seg.first), FZ_KV("reason", "%s", "the segment cannot be opened"), NULL);
        r->want = p->next_first;
        return;
    }
    r->w.most = p->behind;
    r->cur = spl_walk_next(&r->w);
    r->pos = 0;
    r->shared = false;
    if (r->cur) return;
    if (r->w.bad_n) spl_damage(s, p->seg.first, r->w.fd, r->w.bad_at, r->w.bad_n);
    else if (r->want < p->next_first) r->want = p->next_first;
}

static void wait_moved(spool *s, const struct timespec *until, bool *over) { *over = pthread_cond_timedwait(&s->moved, &s->lock, until) == ETIMEDOUT; }

/* Finds out where `want` stands. False: nothing durable is there. lock held. */
static bool locate(spool_reader *r, place *p) {
    spool *s = r->s;
    uint64_t durable = atomic_load(&s->durable);
    if (s->n_segs && r->want < s->segs[0].first) { /* trimmed, not lost */
        r->want = s->segs[0].first;
        if (s->lost_to < r->want) s->lost_to = r->want;
    }
    if (r->cur && r->pos < atomic_load_explicit(&r->cur->done, memory_order_relaxed)) return true;
    if (r->cur && !r->cur->open && r->pos == r->cur->bytes) drop_cur(r);
    if (r->cur || r->want >= durable || !s->n_segs) return false;
    spl_blob *b = in_memory(s, r->want);
    if (b) {
        atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
        r->cur = b;
        r->pos = 0;
        r->shared = true;
        return true;
    }
    size_t i = seg_of(s, r->want);
    bool last = i + 1 == s->n_segs;
    *p = (place){.seg = s->segs[i], .behind = last ? durable : s->segs[i + 1].after, .next_first = last ? durable : s->segs[i + 1].first};
    return true;
}

fz_status spool_next(spool_reader *r, int64_t timeout_ms, spool_view *out, bool *got, fz_error *err) {
    (void)err;
    spool *s = r->s;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += timeout_ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
    *got = false;
    for (bool over = timeout_ms <= 0;;) {
        if (take_frame(r, out)) return *got = true, FZ_OK;
        place p = {0};
        pthread_mutex_lock(&s->lock);
        bool there;
        while (!(there = locate(r, &p)) && !over && r->last == r->want) wait_moved(s, &until, &over);
        bool trimmed = r->open && s->n_segs && r->seg_first < s->segs[0].first;
        pthread_mutex_unlock(&s->lock);
        if (trimmed) leave_segment(r); /* a removed file holds its room for as long as it is open */
        if (!there && r->last < r->want) {
            *out = (spool_view){.from = r->last, .first = r->want};
            count_lost(s, r->last, r->want);
            r->last = r->want;
            return *got = true, FZ_OK;
        }
        if (!there) return FZ_OK;
        if (!r->cur) read_segment(r, &p);
    }
}

/* The newest wanted record may stand in an earlier segment, when the numbers before it are a hole. */
fz_status spool_last_before(spool *s, uint64_t before, spool_view *out, bool *got, fz_error *err) {
    *got = false;
    uint64_t durable = spool_durable(s);
    if (before > durable) before = durable;
    for (uint64_t below = before; !*got;) {
        pthread_mutex_lock(&s->lock);
        bool there = s->n_segs && below > s->segs[0].first;
        uint64_t first = there ? s->segs[seg_of(s, below - 1)].first : 0;
        pthread_mutex_unlock(&s->lock);
        if (!there) return FZ_OK;
        spool_reader *r = spool_reader_new(s, first);
        for (bool more = true; more;) {
            spool_view v;
            fz_status rc = spool_next(r, 0, &v, &more, err);
            if (rc != FZ_OK) return spool_reader_free(r), rc;
            if (!more) break;
            if (!v.n || v.first >= below) more = false;
            else {
                if (*got) spool_view_release(out);
                *out = v;
                *got = true;
                spool_view_share(&v);
                more = v.first + v.n < below;
            }
            spool_view_release(&v);
        }
        spool_reader_free(r);
        below = first;
    }
    if (out->first + out->n > before) out->n = (uint32_t)(before - out->first);
    return FZ_OK;
}

uint64_t spl_records_from(const spool *s, uint64_t from) {
    uint64_t durable = spool_durable(s);
    if (s->n_segs && from < s->segs[0].first) from = s->segs[0].first;
    return from < durable ? durable - from - never_given(s, from, durable) : 0;
}
uint64_t spool_records_from(const spool *s, uint64_t from) {
    spool *m = (spool *)(uintptr_t)s;
    pthread_mutex_lock(&m->lock);
    uint64_t n = spl_records_from(s, from);
    pthread_mutex_unlock(&m->lock);
    return n;
}

void spool_view_share(const spool_view *v) { atomic_fetch_add_explicit(&((spl_blob *)v->hold)->refs, 1, memory_order_relaxed); }
void spool_view_release(spool_view *v) {
    spl_blob_unref(v->hold);
    v->hold = NULL;
}
