/* See tally.h. */
#include "job/tally.h"

void job_tally_init(job_tally *t) { pthread_mutex_init(&t->lock, NULL); }
void job_tally_free(job_tally *t) { pthread_mutex_destroy(&t->lock); }

job_tally job_tally_get(job_tally *t) {
    pthread_mutex_lock(&t->lock);
    job_tally copy = {.in = t->in, .delivered = t->delivered, .filtered = t->filtered, .rejected = t->rejected, .unparseable = t->unparseable, .buffered = t->buffered, .diverted = t->diverted,
                      .by_other = t->by_other, .rows_in = t->rows_in, .bytes_in = t->bytes_in, .bytes = t->bytes, .objects = t->objects, .commits = t->commits, .attempts = t->attempts,
                      .partitions = t->partitions, .sql_ns = t->sql_ns, .batches = t->batches, .open_objects = t->open_objects, .last_commit_ms = t->last_commit_ms, .oldest_ms = t->oldest_ms, .sent_ms = t->sent_ms,
                      .kept_ms = t->kept_ms, .stuck_ms = t->stuck_ms};
    pthread_mutex_unlock(&t->lock);
    return copy;
}

static int64_t older(int64_t a, int64_t b) { return !a || (b && b < a) ? b : a; }

/* ---- records that are read again ---- */
void job_again_add(job_again *a, uint64_t n, int64_t to) {
    a->left += n;
    if (to > a->to) a->to = to;
}

static void settle_elsewhere(job_tally *t, uint64_t n) { /* the lock is held */
    t->by_other += n;
    t->buffered -= n;
}

void job_again_skip(job_again *a, job_tally *t, uint32_t paths, int64_t next) {
    if (!a->left || next < a->to) return;
    pthread_mutex_lock(&t->lock);
    settle_elsewhere(t, a->left * paths);
    pthread_mutex_unlock(&t->lock);
    a->left = 0;
}

static uint64_t count_again(job_again *a, const fz_record *rec, uint32_t n) {
    uint64_t k = 0;
    if (!a || !a->left) return 0;
    while (k < n && k < a->left && rec[k].offset < a->to) k++;
    a->left -= k;
    return k;
}

/* ---- the way of a record ---- */
void job_tally_take(job_tally *t, const job_taken *x, job_again *again, const fz_record *rec, uint32_t n, int64_t next) {
    uint64_t old = count_again(again, rec, n), fresh = n - old, rows = x->n.added + x->n.rejected;
    pthread_mutex_lock(&t->lock);
    t->in += fresh * x->paths;
    t->buffered += fresh * x->paths;
    t->rows_in += old ? rows * fresh / n : rows;
    t->bytes_in += (old ? x->bytes * fresh / n : x->bytes) * x->paths;
    t->sql_ns += x->sql_ns;
    t->batches += n != 0;
    if (x->n.added) t->oldest_ms = older(t->oldest_ms, x->arrival_ms);
    pthread_mutex_unlock(&t->lock);
    if (again) job_again_skip(again, t, x->paths, next);
}

void job_tally_send(job_tally *t) {
    pthread_mutex_lock(&t->lock);
    t->sent_ms = older(t->sent_ms, t->oldest_ms);
    t->oldest_ms = 0;
    pthread_mutex_unlock(&t->lock);
}

void job_tally_attempt(job_tally *t) {
    pthread_mutex_lock(&t->lock);
    t->attempts++;
    pthread_mutex_unlock(&t->lock);
}

void job_tally_settle(job_tally *t, const job_settled *x) {
    pthread_mutex_lock(&t->lock);
    if (x->by_other) settle_elsewhere(t, x->n.read);
    else {
        t->delivered += x->n.added - x->given_up;
        *(x->diverted ? &t->diverted : &t->rejected) += x->given_up;
        t->filtered += x->n.filtered;
        t->rejected += x->n.rejected;
        t->unparseable += x->n.unparseable;
        t->buffered -= x->n.read;
        t->bytes += x->bytes;
        t->objects += x->object;
    }
    if (!x->by_other && !x->moved_only && !x->diverted) {
        t->commits++;
        if (x->partitions) t->partitions = x->partitions;
        t->last_commit_ms = fz_now_ms();
    }
    t->sent_ms = t->kept_ms = 0; /* what was dropped is read again in order: it came before anything else */
    pthread_mutex_unlock(&t->lock);
}

void job_tally_dropped(job_tally *t) {
    pthread_mutex_lock(&t->lock);
    t->kept_ms = older(t->kept_ms, t->oldest_ms);
    t->oldest_ms = 0;
    pthread_mutex_unlock(&t->lock);
}
void job_tally_failed(job_tally *t) {
    pthread_mutex_lock(&t->lock);
    t->kept_ms = older(t->kept_ms, t->sent_ms);
    t->sent_ms = 0;
    pthread_mutex_unlock(&t->lock);
}

void job_tally_open(job_tally *t, uint64_t objects) {
    pthread_mutex_lock(&t->lock);
    t->open_objects = objects;
    pthread_mutex_unlock(&t->lock);
}

/* ---- age ---- */
void job_tally_stuck(job_tally *t, bool stuck, int64_t arrival_ms) {
    pthread_mutex_lock(&t->lock);
    if (!stuck) t->stuck_ms = 0;
    else if (!t->stuck_ms) t->stuck_ms = fz_now_ms();
    t->kept_ms = older(t->kept_ms, arrival_ms);
    pthread_mutex_unlock(&t->lock);
}

uint64_t job_tally_age_s(const job_tally *t, int64_t unread_ms, int64_t now_ms) {
    int64_t since = older(older(older(t->oldest_ms, t->sent_ms), older(t->kept_ms, t->stuck_ms)), t->stuck_ms ? 0 : unread_ms);
    return since > 0 && now_ms > since ? (uint64_t)(now_ms - since) / 1000 : 0;
}
