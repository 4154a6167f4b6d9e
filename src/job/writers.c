/* Writer shards: a bounded queue and a thread around each sink_shard. See job_int.h.
 *
 * Invariants
 *  1. Messages of a shard are worked off in order, so what comes after a close or an abort belongs to the next checkpoint.
 *  2. After a failure of a sink its writes are skipped in this shard until the abort: its files are only good for that.
 * Memory: each shard asks for the process's resident size now and then, and tightens its own budget when the limit is near.
 */
#include "job/job_int.h"
#include <malloc.h>

#define QUEUE_LENGTH 3 /* batches of some 2 MiB wait here, counted in the memory limit */

typedef enum { MSG_WRITE, MSG_CLOSE, MSG_ABORT, MSG_QUIT } msg_kind;
typedef struct msg {
    msg_kind kind;
    job_sink *sink;
    col_batch *batch;          /* WRITE: retained; all below lives in its arena, this message too */
    col_vec *const *cols;
    const sink_part **parts;
    uint32_t n;
    /* CLOSE, ABORT: the answer; the message lives on the asker's stack */
    sink_files files;
    fz_status rc;
    fz_error err;
    bool answered;
} msg;

struct job_writer {
    job *j;
    uint32_t number;
    fz_queue *queue;
    sink_shard *shard;
    size_t budget, full_budget;
    pthread_t thread;
    pthread_mutex_t lock;      /* answers */
    pthread_cond_t cond;
    int64_t checked_ns;
};

/* Keeps the process under memory.limit: the budget shrinks while the resident size is near the limit and grows back when it is well below. */
static fz_status govern(job_writer *w, fz_error *err) {
    int64_t now = fz_mono_ns();
    if (now - w->checked_ns < 20000000) return FZ_OK;
    w->checked_ns = now;
    size_t rss = fz_rss(), limit = w->j->memory_limit;
    fz_metric_set(FZ_M_MEMORY, rss);
    atomic_store(&w->j->throttled, rss > limit - limit / 24);
    if (rss > limit - limit / 8) {
        size_t held = sink_shard_bytes(w->shard), least = (size_t)1 << 20;
        w->budget = held > least * 2 ? held - held / 4 : least;
        FZ_TRY(sink_shard_shrink(w->shard, w->budget, err));
        malloc_trim(0);
    } else if (rss < limit - limit / 4 && w->budget < w->full_budget) w->budget += w->full_budget / 8;
    if (w->budget > w->full_budget) w->budget = w->full_budget;
    sink_shard_set_budget(w->shard, w->budget);
    return FZ_OK;
}

static void do_write(job_writer *w, msg *m) {
    if (!atomic_load(&m->sink->failing)) {
        fz_error err;
        fz_status rc = sink_shard_write(w->shard, m->sink->files, m->cols, m->parts, m->n, &err);
        if (rc != FZ_OK) job_sink_fail(m->sink, &err);
    }
    job_sink *s = m->sink;
    col_batch_release(m->batch); /* m is gone with it */
    fz_error err;
    if (govern(w, &err) != FZ_OK) job_sink_fail(s, &err);
}

static void answer(job_writer *w, msg *m) {
    pthread_mutex_lock(&w->lock);
    m->answered = true;
    pthread_cond_broadcast(&w->cond);
    pthread_mutex_unlock(&w->lock);
}

static void *writer_main(void *arg) {
    job_writer *w = arg;
    for (;;) {
        msg *m = fz_queue_pop(w->queue, -1);
        if (!m || m->kind == MSG_QUIT) return NULL;
        if (m->kind == MSG_WRITE) {
            do_write(w, m);
            continue;
        }
        if (m->kind == MSG_CLOSE && !atomic_load(&m->sink->failing)) m->rc = sink_shard_close(w->shard, m->sink->files, &m->files, &m->err);
        else if (m->kind == MSG_ABORT) sink_shard_abort(w->shard, m->sink->files);
        answer(w, m);
    }
}

job_writer *job_writer_start(job *j, uint32_t number, size_t budget) {
    job_writer *w = FZ_NEW(job_writer);
    w->j = j;
    w->number = number;
    w->budget = w->full_budget = budget;
    w->queue = fz_queue_new(QUEUE_LENGTH);
    w->shard = sink_shard_new(number, budget);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->cond, NULL);
    if (pthread_create(&w->thread, NULL, writer_main, w) != 0) abort(); /* as without memory: nothing has been committed */
    return w;
}

void job_writer_end(job_writer *w) {
    if (!w) return;
    msg quit = {.kind = MSG_QUIT};
    fz_queue_push(w->queue, &quit);
    pthread_join(w->thread, NULL);
    fz_queue_free(w->queue);
    sink_shard_free(w->shard);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->cond);
    fz_free(w);
}

void job_writer_push(job_writer *w, job_sink *s, col_batch *b, col_vec *const *cols, const sink_part **parts, uint32_t n) {
    msg *m = FZ_ANEW(b->arena, msg);
    *m = (msg){.kind = MSG_WRITE, .sink = s, .batch = col_batch_retain(b), .cols = cols, .parts = parts, .n = n};
    fz_queue_push(w->queue, m);
}

static void wait_for(job_writer *w, msg *m) {
    pthread_mutex_lock(&w->lock);
    while (!m->answered) pthread_cond_wait(&w->cond, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

/* All shards close at once. */
fz_status job_writers_close(job *j, job_sink *s, sink_files *out, fz_error *err) {
    msg *m = fz_calloc(j->n_writers, sizeof *m);
    for (uint32_t i = 0; i < j->n_writers; i++) {
        m[i] = (msg){.kind = MSG_CLOSE, .sink = s};
        fz_queue_push(j->writers[i]->queue, &m[i]);
    }
    fz_status rc = FZ_OK;
    for (uint32_t i = 0; i < j->n_writers; i++) {
        wait_for(j->writers[i], &m[i]);
        out[i] = m[i].files;
        if (m[i].rc != FZ_OK && rc == FZ_OK) {
            rc = m[i].rc;
            *err = m[i].err;
        }
    }
    fz_free(m);
    return rc;
}

void job_writers_abort(job *j, job_sink *s) {
    for (uint32_t i = 0; i < j->n_writers; i++) {
        msg m = {.kind = MSG_ABORT, .sink = s};
        fz_queue_push(j->writers[i]->queue, &m);
        wait_for(j->writers[i], &m);
    }
}
