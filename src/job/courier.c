/* Couriers: the two threads of a sink that is no table. See job_int.h and delivery/delivery.h.
 *
 *     workers -> queue -> writer thread (dlv_write) -> cut at a checkpoint -> committer thread (dlv_commit, again and again within retry.duration) -> control thread
 *
 * Invariants
 *  1. Messages are worked off in order, so a cut holds all that was pushed before it, and nothing pushed after.
 *  2. One lot is on its way at a time; while it is, what comes in gathers for the next one. A delivery that cannot keep up fails its sink with RETRY "delivery.behind": what it holds beyond that lot is dropped
 *     and read again later, so that the other sinks of the source go on.
 *  3. After a failure of dlv_write nothing more is written until the abort.
 */
#include "job/job_int.h"
#include <inttypes.h>
#include <stdatomic.h>

#define QUEUE_LENGTH 3
#define PATIENCE_NS 2000000000ll /* how long a delivery may be full before its sink counts as behind */

typedef enum { MSG_WRITE, MSG_CUT, MSG_ABORT, MSG_QUIT } msg_kind;
typedef struct msg {
    msg_kind kind;
    col_batch *batch;           /* WRITE: retained; this message lives in its arena */
    dlv_rows rows;
    dlv_lot *lot;               /* CUT: the answer */
    bool answered;
} msg;

struct job_courier {
    job *j;
    job_sink *s;
    fz_queue *queue;
    pthread_t writer, committer;
    pthread_mutex_t lock;       /* all below */
    pthread_cond_t cond;
    atomic_int_fast64_t full_ns; /* since when it is full, whatever was pushed meanwhile; 0: it is not */
    /* writer thread only */
    bool spoiled;               /* dlv_write has failed */
    fz_arena *scratch;          /* of one dlv_write: the batch's arena is the worker's, which goes on to the other sinks */
    /* the lot on its way */
    job_prepared *sent, *back;
    fz_status rc;
    fz_error err;
    bool quit;
};

static void do_write(job_courier *c, msg *m) {
    fz_error err;
    m->rows.scratch = c->scratch;
    if (!c->spoiled && !atomic_load(&c->s->failing) && dlv_write(c->s->delivery, &m->rows, &err) != FZ_OK) {
        c->spoiled = true;
        job_sink_fail(c->s, &err);
    }
    fz_arena_reset(c->scratch);
    col_batch_release(m->batch); /* m is gone with it */
}

static void answer(job_courier *c, msg *m) {
    pthread_mutex_lock(&c->lock);
    m->answered = true;
    pthread_cond_broadcast(&c->cond);
    pthread_mutex_unlock(&c->lock);
}

static void *writer_main(void *arg) {
    job_courier *c = arg;
    for (;;) {
        msg *m = fz_queue_pop(c->queue, -1);
        if (!m || m->kind == MSG_QUIT) return NULL;
        if (m->kind == MSG_WRITE) {
            do_write(c, m);
            continue;
        }
        if (m->kind == MSG_CUT && !c->spoiled) m->lot = dlv_cut(c->s->delivery);
        if (m->kind == MSG_ABORT) {
            dlv_drop(c->s->delivery);
            c->spoiled = false;
        }
        answer(c, m);
    }
}

/* ---- the committer ---- */

/* Waits unless the end is near; false: no more tries. */
static bool pause_committer(job_courier *c, int64_t ms) {
    for (int64_t done = 0; done < ms; done += 50) {
        pthread_mutex_lock(&c->lock);
        bool quit = c->quit;
        pthread_mutex_unlock(&c->lock);
        if (quit || job_stop_over()) return false;
        fz_sleep_ms(50);
    }
    return true;
}

static fz_status commit_lot(job_courier *c, job_prepared *p, fz_error *err) {
    int64_t until = fz_mono_ns() + dlv_retry_ms(c->s->delivery) * 1000000, wait = 100;
    fz_error why;
    bool divert = false;
    for (;;) {
        if (p->lot && !divert) job_tally_attempt(&c->s->tally);
        fz_status rc = divert ? dlv_divert(c->s->delivery, p->lot, p->ranges_text, p->state_text, &why, err) : dlv_commit(c->s->delivery, p->lot, p->ranges_text, p->state_text, err);
        p->diverted = divert && rc == FZ_OK;
        if (rc == FZ_OK) return rc;
        if (strcmp(err->code, "delivery.moved") == 0) return rc; /* another copy has these records: nothing to try, and nothing to give up */
        bool passing = job_passing(rc, err) == FZ_RETRY || rc == FZ_UNKNOWN || rc == FZ_CONFLICT;
        if (divert && strcmp(err->code, "delivery.no-error-path") == 0) {
            *err = why;
            return why.cls;
        }
        fz_log_error(FZ_LOG_WARN, "delivery.retry", err);
        if (!divert && (!passing || fz_mono_ns() > until)) {
            divert = true;
            why = *err;
            wait = 100;
            continue;
        }
        if (!passing) return rc;
        if (!pause_committer(c, wait)) return rc;
        wait = wait < 15000 ? wait * 2 : wait;
    }
}

static void *committer_main(void *arg) {
    job_courier *c = arg;
    pthread_mutex_lock(&c->lock);
    for (;;) {
        while (!c->quit && !c->sent) pthread_cond_wait(&c->cond, &c->lock);
        if (!c->sent) break;
        job_prepared *p = c->sent;
        pthread_mutex_unlock(&c->lock);
        fz_error err = {0};
        fz_status rc = commit_lot(c, p, &err);
        pthread_mutex_lock(&c->lock);
        c->sent = NULL;
        c->back = p;
        c->rc = rc;
        c->err = err;
        pthread_cond_broadcast(&c->cond);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* ---- outside ---- */

job_courier *job_courier_start(job *j, job_sink *s) {
    job_courier *c = FZ_NEW(job_courier);
    c->j = j;
    c->s = s;
    c->queue = fz_queue_new(QUEUE_LENGTH);
    c->scratch = fz_arena_new();
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->cond, NULL);
    if (pthread_create(&c->writer, NULL, writer_main, c) != 0 || pthread_create(&c->committer, NULL, committer_main, c) != 0) abort(); /* as without memory: nothing has been committed */
    return c;
}

void job_courier_end(job_courier *c) {
    if (!c) return;
    msg quit = {.kind = MSG_QUIT};
    fz_queue_push(c->queue, &quit);
    pthread_join(c->writer, NULL);
    pthread_mutex_lock(&c->lock);
    c->quit = true;
    pthread_cond_broadcast(&c->cond);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->committer, NULL);
    job_prepared_free(c->back);
    fz_queue_free(c->queue);
    fz_arena_free(c->scratch);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->cond);
    fz_free(c);
}

/* The lot of an intent is cut when its ranges are complete, however large it is. */
static bool is_behind(const job_courier *c) { return !c->s->replaying && dlv_is_full(c->s->delivery); }

/* A cut makes room; the control thread sees to that as soon as the last lot is away. false: not to be pushed. */
static bool wait_room(job_courier *c) {
    while (is_behind(c)) {
        int_fast64_t now = fz_mono_ns(), since = 0;
        if (atomic_load(&c->s->failing) || atomic_load(&c->j->quit)) return false;
        if (atomic_compare_exchange_strong(&c->full_ns, &since, now)) since = now;
        if (now - since > PATIENCE_NS && c->j->n_sinks > 1) {
            fz_error err;
            (void)!fz_fail(&err, FZ_RETRY, "delivery.behind", "delivery %s cannot keep up: what it holds is read again later", c->s->text);
            atomic_store(&c->full_ns, 0);
            job_sink_fail(c->s, &err);
            return false;
        }
        if (atomic_load(&c->j->park)) return true; /* parked workers are what a cut waits for: a little more than full for once */
        fz_sleep_ms(5);
    }
    atomic_store(&c->full_ns, 0);
    return true;
}

void job_courier_push(job_courier *c, col_batch *b, const dlv_rows *rows) {
    msg *m = FZ_ANEW(b->arena, msg);
    *m = (msg){.kind = MSG_WRITE, .batch = b, .rows = *rows};
    if (!wait_room(c)) return;
    col_batch_retain(b);
    fz_queue_push(c->queue, m);
}

static void wait_for(job_courier *c, msg *m) {
    fz_queue_push(c->queue, m);
    pthread_mutex_lock(&c->lock);
    while (!m->answered) pthread_cond_wait(&c->cond, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

dlv_lot *job_courier_cut(job_courier *c) {
    msg m = {.kind = MSG_CUT};
    wait_for(c, &m);
    return m.lot;
}

void job_courier_abort(job_courier *c) {
    msg m = {.kind = MSG_ABORT};
    wait_for(c, &m);
}

bool job_courier_busy(job_courier *c) {
    pthread_mutex_lock(&c->lock);
    bool busy = c->sent || c->back;
    pthread_mutex_unlock(&c->lock);
    return busy;
}

void job_courier_send(job_courier *c, job_prepared *p) {
    pthread_mutex_lock(&c->lock);
    c->sent = p;
    pthread_cond_broadcast(&c->cond);
    pthread_mutex_unlock(&c->lock);
}

bool job_courier_back(job_courier *c, bool wait, job_prepared **p, fz_status *rc, fz_error *err) {
    pthread_mutex_lock(&c->lock);
    while (wait && c->sent) pthread_cond_wait(&c->cond, &c->lock);
    *p = c->back;
    *rc = c->rc;
    *err = c->err;
    c->back = NULL;
    pthread_mutex_unlock(&c->lock);
    return *p != NULL;
}
