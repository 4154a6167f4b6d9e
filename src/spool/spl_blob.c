/* Blobs and their memory, and the ring of the newest ones. See spool_int.h.
 *
 * A pool's blobs are all of one size, so that each is used again and again; a message that is larger has one of its own. Where a spool has memory enough they are huge pages: one fault instead
 * of five hundred, and a write or read past the page cache pins one page.
 */
#include "spool/spool_int.h"
#include <sys/mman.h>

enum { HUGE = 2 << 20, LEAST_BLOB = 4 << 10, MOST_FREE = 4 };

struct spl_pool {
    pthread_mutex_t lock;
    _Atomic uint32_t refs; /* the spool's, and one a blob */
    size_t cap;            /* of its blobs */
    spl_blob *free;
    uint32_t n_free;
};

/* ---- the pool ---- */
spl_pool *spl_pool_new(size_t memory) {
    spl_pool *p = FZ_NEW(spl_pool);
    size_t part = memory / 4;
    p->cap = memory >= 6 * (size_t)HUGE ? HUGE - sizeof(spl_blob) - SPL_PAGE : part < LEAST_BLOB ? LEAST_BLOB : part > HUGE / 2 ? HUGE / 2 : part;
    pthread_mutex_init(&p->lock, NULL);
    atomic_init(&p->refs, 1);
    return p;
}
static void pool_unref(spl_pool *p) {
    if (atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1) return;
    pthread_mutex_destroy(&p->lock);
    fz_free(p);
}
static void forget_free(spl_pool *p) {
    pthread_mutex_lock(&p->lock);
    for (spl_blob *b; (b = p->free);) {
        p->free = b->next;
        fz_free(b);
    }
    p->n_free = MOST_FREE; /* none is kept any more */
    pthread_mutex_unlock(&p->lock);
}
void spl_pool_free(spl_pool *p) {
    if (!p) return;
    forget_free(p);
    pool_unref(p);
}
static spl_blob *take_free(spl_pool *p) {
    pthread_mutex_lock(&p->lock);
    spl_blob *b = p->free;
    if (b) {
        p->free = b->next;
        p->n_free--;
    }
    pthread_mutex_unlock(&p->lock);
    return b;
}
static bool give_back(spl_pool *p, spl_blob *b) {
    pthread_mutex_lock(&p->lock);
    bool room = p->n_free < MOST_FREE;
    if (room) {
        b->next = p->free;
        p->free = b;
        p->n_free++;
    }
    pthread_mutex_unlock(&p->lock);
    return room;
}

/* ---- blobs ---- */
static spl_blob *new_memory(size_t cap) {
    size_t n = (sizeof(spl_blob) + cap + 2 * SPL_PAGE - 1) / SPL_PAGE * SPL_PAGE;
    spl_blob *b = fz_aligned(n == HUGE ? HUGE : SPL_PAGE, n);
    if (n == HUGE) (void)madvise(b, n, MADV_HUGEPAGE);
    return b;
}
spl_blob *spl_blob_new(spl_pool *pool, size_t bytes) {
    bool usual = pool && bytes <= pool->cap;
    size_t cap = usual ? pool->cap : bytes;
    spl_blob *b = usual ? take_free(pool) : NULL;
    if (!b) b = new_memory(cap);
    atomic_init(&b->refs, 1);
    atomic_init(&b->done, 0);
    b->copying = 0;
    b->open = false;
    b->first = b->end = 0;
    b->bytes = b->ready = 0;
    b->cap = cap;
    b->pool = usual ? pool : NULL;
    b->next = NULL;
    b->data = b->room;
    if (usual) atomic_fetch_add_explicit(&pool->refs, 1, memory_order_relaxed);
    return b;
}
void spl_blob_unref(spl_blob *b) {
    if (!b || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1) return;
    spl_pool *p = b->pool;
    if (!p || !give_back(p, b)) fz_free(b);
    if (p) pool_unref(p);
}

/* ---- the ring ---- */
void spl_ring_add(spool *s, spl_blob *b) {
    if (s->ring_n == s->ring_cap) {
        size_t cap = s->ring_cap ? s->ring_cap * 2 : 64;
        spl_blob **v = fz_malloc(cap * sizeof *v);
        for (size_t i = 0; i < s->ring_n; i++) v[i] = spl_ring(s, i);
        fz_free(s->ring);
        s->ring = v;
        s->ring_cap = cap;
        s->ring_at = 0;
    }
    s->ring[(s->ring_at + s->ring_n++) % s->ring_cap] = b;
    s->held += b->cap;
}
void spl_ring_settle(spool *s) {
    for (; s->ring_done < s->ring_n; s->ring_done++) {
        const spl_blob *b = spl_ring(s, s->ring_done);
        if (b->open || atomic_load_explicit(&b->done, memory_order_relaxed) < b->bytes) break;
    }
    while (s->ring_done && s->held > s->memory) {
        spl_blob *b = spl_ring(s, 0);
        s->ring_at = (s->ring_at + 1) % s->ring_cap;
        s->ring_n--;
        s->ring_done--;
        s->held -= b->cap;
        spl_blob_unref(b);
    }
}
spl_blob *spl_unwritten(const spool *s) {
    if (s->ring_done == s->ring_n) return NULL;
    spl_blob *b = spl_ring(s, s->ring_done);
    return atomic_load_explicit(&b->done, memory_order_relaxed) < b->bytes ? b : NULL;
}
