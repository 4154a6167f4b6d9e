/* C11 threads, mutexes and conditions by POSIX ones: ThreadSanitizer knows only the latter, and Debian's librdkafka uses the former. Preloaded by test/tsan.sh. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <threads.h>

typedef struct begin { thrd_start_t fn; void *arg; } begin;
static void *run(void *p) {
    begin b = *(begin *)p;
    free(p);
    return (void *)(long)b.fn(b.arg);
}
static int code(int e) { return e == 0 ? thrd_success : e == ETIMEDOUT ? thrd_timedout : e == EBUSY ? thrd_busy : thrd_error; }

int thrd_create(thrd_t *t, thrd_start_t fn, void *arg) {
    begin *b = malloc(sizeof *b);
    if (!b) return thrd_nomem;
    *b = (begin){fn, arg};
    return code(pthread_create(t, NULL, run, b));
}
int thrd_join(thrd_t t, int *result) {
    void *r;
    int e = pthread_join(t, &r);
    if (result) *result = (int)(long)r;
    return code(e);
}
int thrd_detach(thrd_t t) { return code(pthread_detach(t)); }

static pthread_mutex_t *mutex(mtx_t *m) { return (pthread_mutex_t *)(void *)m; }
static pthread_cond_t *cond(cnd_t *c) { return (pthread_cond_t *)(void *)c; }
int mtx_init(mtx_t *m, int type) {
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    if (type & mtx_recursive) pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
    int e = pthread_mutex_init(mutex(m), &a);
    pthread_mutexattr_destroy(&a);
    return code(e);
}
void mtx_destroy(mtx_t *m) { pthread_mutex_destroy(mutex(m)); }
int mtx_lock(mtx_t *m) { return code(pthread_mutex_lock(mutex(m))); }
int mtx_trylock(mtx_t *m) { return code(pthread_mutex_trylock(mutex(m))); }
int mtx_unlock(mtx_t *m) { return code(pthread_mutex_unlock(mutex(m))); }
int cnd_init(cnd_t *c) { return code(pthread_cond_init(cond(c), NULL)); }
void cnd_destroy(cnd_t *c) { pthread_cond_destroy(cond(c)); }
int cnd_signal(cnd_t *c) { return code(pthread_cond_signal(cond(c))); }
int cnd_broadcast(cnd_t *c) { return code(pthread_cond_broadcast(cond(c))); }
int cnd_wait(cnd_t *c, mtx_t *m) { return code(pthread_cond_wait(cond(c), mutex(m))); }
int cnd_timedwait(cnd_t *c, mtx_t *m, const struct timespec *t) { return code(pthread_cond_timedwait(cond(c), mutex(m), t)); }
