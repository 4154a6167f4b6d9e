/* Threads that upload, for the whole process: started when there is work, first in first out, bounded.
 *
 * Invariants
 *  1. What waits and runs stays below FZ_MAX_UPLOADS jobs, FZ_MAX_UPLOAD_MEMORY bytes in memory and FZ_MAX_UPLOAD_DISK bytes on disk, except that one job is
 *     always taken: s3_pool_push waits until there is room. So a writer that is faster than the store waits for it.
 *  2. A job never waits for one that was pushed after it, so that first-in-first-out cannot lock up.
 * Threads: any. The pool's own take no signals; they end with the process. */
#include "fileio/s3_int.h"
#include <signal.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, room = PTHREAD_COND_INITIALIZER;
static s3_job *head, **tail = &head;
static unsigned n_jobs, n_threads, n_idle; /* n_jobs: waiting and running */
static uint64_t memory, disk;

static void leave(const s3_job *j) { /* the lock is held */
    n_jobs--;
    memory -= j->memory;
    disk -= j->disk;
    pthread_cond_broadcast(&room);
}

static void *run(void *arg) {
    (void)arg;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!head) {
            n_idle++;
            pthread_cond_wait(&work, &lock);
            n_idle--;
        }
        s3_job *j = head;
        head = j->next;
        if (!head) tail = &head;
        pthread_mutex_unlock(&lock);
        j->run(j->cx);
        pthread_mutex_lock(&lock);
        leave(j);
        fz_free(j);
    }
    return NULL;
}

static void start_thread(void) { /* the lock is held */
    pthread_t t;
    pthread_attr_t attr;
    sigset_t all, before;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, 1u << 20);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&t, &attr, run, NULL) == 0) n_threads++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
}

static bool full(const s3_job *j) {
    return n_jobs > 0 && (n_jobs >= FZ_MAX_UPLOADS || memory + j->memory > FZ_MAX_UPLOAD_MEMORY || disk + j->disk > FZ_MAX_UPLOAD_DISK);
}

void s3_pool_push(const s3_job *j, unsigned threads) {
    s3_job *mine = FZ_NEW(s3_job);
    *mine = *j;
    mine->next = NULL;
    pthread_mutex_lock(&lock);
    while (full(mine)) pthread_cond_wait(&room, &lock);
    *tail = mine;
    tail = &mine->next;
    n_jobs++;
    memory += mine->memory;
    disk += mine->disk;
    if (n_idle == 0 && n_threads < threads) start_thread();
    bool nobody = n_threads == 0;
    if (!nobody) pthread_cond_signal(&work);
    pthread_mutex_unlock(&lock);
    if (nobody && s3_pool_withdraw(j->cx) > 0) j->run(j->cx); /* a system that gives no thread: then here */
}

unsigned s3_pool_withdraw(const void *cx) {
    unsigned n = 0;
    pthread_mutex_lock(&lock);
    for (s3_job **p = &head; *p;) {
        s3_job *j = *p;
        if (j->cx != cx) {
            p = &j->next;
            continue;
        }
        *p = j->next;
        leave(j);
        fz_free(j);
        n++;
    }
    tail = &head;
    while (*tail) tail = &(*tail)->next;
    pthread_mutex_unlock(&lock);
    return n;
}
