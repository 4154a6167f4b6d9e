/* See queue.h. */
#include "base/queue.h"
#include "base/clock.h"
#include "base/mem.h"
#include <errno.h>
#include <pthread.h>
#include <time.h>

struct fz_queue {
    pthread_mutex_t lock;
    pthread_cond_t can_push, can_pop;
    void **items;
    size_t cap, len, head;
    bool closed;
};

fz_queue *fz_queue_new(size_t capacity) {
    fz_queue *q = FZ_NEW(fz_queue);
    q->cap = capacity ? capacity : 1;
    q->items = fz_calloc(q->cap, sizeof *q->items);
    pthread_condattr_t a;
    pthread_condattr_init(&a);
    pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->can_push, &a);
    pthread_cond_init(&q->can_pop, &a);
    pthread_condattr_destroy(&a);
    return q;
}
void fz_queue_free(fz_queue *q) {
    if (!q) return;
    pthread_cond_destroy(&q->can_push);
    pthread_cond_destroy(&q->can_pop);
    pthread_mutex_destroy(&q->lock);
    fz_free(q->items);
    fz_free(q);
}
bool fz_queue_push(fz_queue *q, void *item) {
    pthread_mutex_lock(&q->lock);
    while (q->len == q->cap && !q->closed) pthread_cond_wait(&q->can_push, &q->lock);
    bool ok = !q->closed;
    if (ok) {
        q->items[(q->head + q->len++) % q->cap] = item;
        pthread_cond_signal(&q->can_pop);
    }
    pthread_mutex_unlock(&q->lock);
    return ok;
}
void *fz_queue_pop(fz_queue *q, int64_t timeout_ms) {
    struct timespec until;
    if (timeout_ms >= 0) {
        int64_t t = fz_mono_ns() + timeout_ms * 1000000;
        until = (struct timespec){t / 1000000000, t % 1000000000};
    }
    pthread_mutex_lock(&q->lock);
    while (q->len == 0 && !q->closed) {
        if (timeout_ms < 0) pthread_cond_wait(&q->can_pop, &q->lock);
        else if (pthread_cond_timedwait(&q->can_pop, &q->lock, &until) == ETIMEDOUT) break;
    }
    void *item = NULL;
    if (q->len) {
        item = q->items[q->head];
        q->head = (q->head + 1) % q->cap;
        q->len--;
        pthread_cond_signal(&q->can_push);
    }
    pthread_mutex_unlock(&q->lock);
    return item;
}
void fz_queue_close(fz_queue *q) {
    pthread_mutex_lock(&q->lock);
    q->closed = true;
    pthread_cond_broadcast(&q->can_push);
    pthread_cond_broadcast(&q->can_pop);
    pthread_mutex_unlock(&q->lock);
}
