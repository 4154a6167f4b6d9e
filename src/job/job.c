/* The coordinator: loop, checkpoints, failures, end. See job.h and job_int.h.
 *
 * A checkpoint
 *   park workers -> dead letters durable -> close the files of every sink -> unpark -> commit each sink -> report offsets
 * Workers go on while commits run; a sink whose commit cannot land drops what it has read since and begins again from the table's positions.
 */
#include "job/job_int.h"
#include "net/net.h"
#include <inttypes.h>
#include <malloc.h>
#include <unistd.h>

static atomic_int stop_requests;
static atomic_int_fast64_t stop_asked_ns;
void job_request_stop(void) {
    int_fast64_t never = 0; /* the time stands before the request is seen */
    atomic_compare_exchange_strong(&stop_asked_ns, &never, fz_mono_ns());
    atomic_fetch_add(&stop_requests, 1);
}
int job_stop_requested(void) { return atomic_load(&stop_requests); }
void job_reset_stop(void) {
    atomic_store(&stop_requests, 0);
    atomic_store(&stop_asked_ns, 0);
}
static atomic_int_fast64_t stop_timeout_ns = INT64_MAX;
bool job_stop_over(void) {
    int n = job_stop_requested();
    return n > 1 || (n == 1 && fz_mono_ns() - atomic_load(&stop_asked_ns) > atomic_load(&stop_timeout_ns));
}

/* ---- store callbacks of the Iceberg room, with the fault points of a commit ---- */
static fz_status io_read(void *cx, const char *location, fz_buf *out, fz_error *err) {
    return cat_io.read(cx, location, out, err);
}
static fz_status io_write(void *cx, const char *location, const void *p, size_t n, fz_error *err) {
    FZ_TRY(cat_io.write(cx, location, p, n, err));
    const char *name = strrchr(location, '/');
    return fz_fault_status(name && fz_starts(name + 1, "snap-") ? "commit.manifest-list" : "commit.manifest", err);
}

/* ---- preparing ---- */
static bool moved(const job *j, const job_sink *s, bool *claim) {
    bool any = false;
    *claim = false;
    for (uint32_t k = 0; k < j->n_sources; k++)
        for (uint32_t i = 0; s->splits[k] && j->sources[k]->replayable && i < s->n_splits[k]; i++) {
            any |= s->splits[k][i].next != s->splits[k][i].from;
            *claim |= s->splits[k][i].claim;
        }
    return any;
}

static void add_counts(job_counts *sum, job_split_state *st, uint32_t paths) {
    sum->read += st->read * paths;
    sum->added += st->added;
    sum->filtered += st->filtered;
    sum->rejected += st->rejected;
    sum->unparseable += st->unparseable;
    st->read = st->added = st->filtered = st->rejected = st->unparseable = 0;
}
/* Of what has no positions. */
static void take_loose(const job *j, job_sink *s, job_counts *sum) {
    sum->read += s->oneshot.read;
    sum->added += s->oneshot.added;
    sum->rejected += s->oneshot.rejected;
    s->oneshot = (job_counts){0};
    for (uint32_t k = 0; k < j->n_sources; k++)
        for (uint32_t i = 0; s->splits[k] && !j->sources[k]->replayable && i < s->n_splits[k]; i++) add_counts(sum, &s->splits[k][i], s->paths_of[k]);
}
/* Nothing came of it that could be committed. */
static void settle_loose(const job *j, job_sink *s) {
    job_settled x = {.moved_only = true};
    take_loose(j, s, &x.n);
    if (x.n.read) job_tally_settle(&s->tally, &x);
}

static void take_ranges(job *j, job_prepared *p) {
    job_sink *s = p->sink;
    take_loose(j, s, &p->counts);
    job_tally_send(&s->tally);
    uint32_t cap = 0;
    for (uint32_t k = 0; k < j->n_sources; k++) cap += s->splits[k] ? s->n_splits[k] : 0;
    p->ranges = FZ_ANEWN(p->arena, job_range, cap + 1);
    p->after = FZ_ANEWN(p->arena, job_position, cap + 1);
    p->known = FZ_ANEWN(p->arena, bool, cap + 1);
    p->remembered = FZ_ANEWN(p->arena, int64_t, cap + 1);
    for (uint32_t k = 0; k < j->n_sources; k++)
        for (uint32_t i = 0; s->splits[k] && j->sources[k]->replayable && i < s->n_splits[k]; i++) {
            job_split_state *st = &s->splits[k][i];
            if (st->next == st->from && !st->claim) continue;
            uint32_t n = p->n_ranges++;
            p->ranges[n] = (job_range){.key = st->key, .from = st->from, .to = st->next, .read = st->read, .added = st->added, .filtered = st->filtered, .rejected = st->rejected, .unparseable = st->unparseable,
                                         .paths = s->paths_of[k]};
            p->after[n] = (job_position){st->key, st->next, st->has_last, st->last_offset, st->last_timestamp, st->last_hash, 0};
            p->known[n] = st->known;
            p->remembered[n] = st->remembered;
            st->from = st->next;
            st->claim = false;
            add_counts(&p->counts, st, s->paths_of[k]);
        }
}

void job_prepared_free(job_prepared *p) {
    if (!p) return;
    dlv_lot_free(p->lot);
    for (uint32_t i = 0; i < p->n_shards; i++) sink_files_free(&p->files[i]);
    fz_arena_free(p->arena);
    fz_free(p);
}

/* A delivery is cut when its buffer asks for it, at the end, and when the start of a split has to become a number. */
static job_prepared *prepare_delivery(job *j, job_sink *s, bool final) {
    bool claim, has_moved = moved(j, s, &claim), due = s->replaying ? job_delivery_replayed(j, s) : final || claim || dlv_wants(s->delivery);
    if (job_courier_busy(s->courier) || !due) return NULL;
    job_prepared *p = FZ_NEW(job_prepared);
    p->sink = s;
    p->arena = fz_arena_new();
    p->lot = job_courier_cut(s->courier);
    p->rows = dlv_lot_rows(p->lot);
    if (atomic_load(&s->failing) || (!p->lot && !has_moved && !claim)) {
        if (!atomic_load(&s->failing)) settle_loose(j, s);
        job_prepared_free(p);
        return NULL;
    }
    snprintf(p->commit_id, sizeof p->commit_id, "%s/%" PRIu64 "/%u", j->run_id, j->checkpoint, s->index);
    take_ranges(j, p);
    job_delivery_describe(j, p);
    return p;
}

/* NULL: nothing to commit this time. Workers are parked. */
static job_prepared *prepare(job *j, job_sink *s, bool final) {
    if (s->delivery) return prepare_delivery(j, s, final);
    fz_error err;
    bool claim, has_moved = moved(j, s, &claim);
    job_prepared *p = FZ_NEW(job_prepared);
    p->sink = s;
    p->arena = fz_arena_new();
    p->n_shards = j->n_writers;
    p->files = FZ_ANEWN(p->arena, sink_files, j->n_writers);
    if (job_writers_close(j, s, p->files, &err) != FZ_OK) job_sink_fail(s, &err);
    for (uint32_t i = 0; i < p->n_shards; i++) {
        p->n_files += p->files[i].n;
        p->rows += p->files[i].rows;
    }
    /* Checkpoints without rows only move positions: the first commit of a claimed split, the last one of a run, and every tenth. */
    bool worth = p->n_files || claim || (has_moved && (final || ++s->empty_checkpoints >= 10));
    if (atomic_load(&s->failing) || !worth) {
        for (uint32_t i = 0; i < p->n_shards; i++) sink_discard_files(s->table->io, p->files[i].v, p->files[i].n); /* only when failing: none is live */
        if (!atomic_load(&s->failing)) settle_loose(j, s);
        job_prepared_free(p);
        return NULL;
    }
    s->empty_checkpoints = 0;
    snprintf(p->commit_id, sizeof p->commit_id, "%s/%" PRIu64 "/%u", j->run_id, j->checkpoint, s->index);
    p->new_chain = s->new_chain;
    take_ranges(j, p);
    return p;
}

/* ---- failures of sinks ---- */
static void abort_sink(job *j, job_sink *s) { /* workers are parked */
    job_tally_dropped(&s->tally);
    for (uint32_t k = 0; k < j->n_sources; k++)
        for (uint32_t i = 0; s->splits[k] && j->sources[k]->replayable && i < s->n_splits[k]; i++) {
            job_split_state *st = &s->splits[k][i];
            job_again_add(&st->again, st->read, st->next);
            st->read = st->added = st->filtered = st->rejected = st->unparseable = 0;
        }
    if (s->delivery) job_courier_abort(s->courier);
    else job_writers_abort(j, s);
    atomic_store(&s->failing, false);
}
static job_split_state *split_of(const job *j, const job_sink *s, const job_split_key *key) {
    for (uint32_t k = 0; k < j->n_sources; k++)
        for (uint32_t i = 0; s->splits[k] && i < s->n_splits[k]; i++)
            if (job_split_key_cmp(&s->splits[k][i].key, key) == 0) return &s->splits[k][i];
    return NULL;
}
/* A lot that was not committed, or of which that is not known: its records are read again. Workers are parked. */
static void give_back(const job *j, const job_prepared *p) {
    job_sink *s = p->sink;
    job_tally_failed(&s->tally);
    s->open = p->counts;
    for (uint32_t r = 0; r < p->n_ranges; r++) {
        job_split_state *st = split_of(j, s, &p->ranges[r].key);
        if (!st) continue;
        job_again_add(&st->again, p->ranges[r].read, p->ranges[r].to);
        st->again.open = s->unknown;
        st->again.open_to = p->ranges[r].to;
        st->again.open_read = p->ranges[r].read;
    }
}
/* The positions were read again: what the other side has by now is not read again. Workers are parked. */
static void take_positions(const job *j, job_sink *s) {
    bool open = false, landed = true;
    for (int settle = 0; settle < 2; settle++)
        for (uint32_t k = 0; k < j->n_sources; k++)
            for (uint32_t i = 0; s->splits[k] && j->sources[k]->replayable && i < s->n_splits[k]; i++) {
                job_split_state *st = &s->splits[k][i];
                if (!settle) {
                    open |= st->again.open;
                    landed &= !st->again.open || (st->known && st->remembered == st->again.open_to);
                } else {
                    if (open && landed && st->again.open) st->again.left -= st->again.open_read < st->again.left ? st->again.open_read : st->again.left;
                    st->again.open = false;
                    job_again_skip(&st->again, &s->tally, s->paths_of[k], st->next);
                }
            }
    if (open && landed) job_tally_settle(&s->tally, &(job_settled){.n = s->open});
}

static int64_t oldest_waiting(const job *j, const job_sink *s) {
    int64_t oldest = 0;
    for (uint32_t k = 0; k < j->n_sources; k++)
        for (uint32_t i = 0; s->splits[k] && j->sources[k]->replayable && i < s->n_splits[k]; i++) {
            const job_split_state *st = &s->splits[k][i];
            int64_t at = st->base_diverted ? st->base : st->known ? st->remembered : st->from, ms = at >= 0 ? src_arrival(j->sources[k]->source, i, at) : 0;
            if (ms && (!oldest || ms < oldest)) oldest = ms;
        }
    return oldest;
}
void job_set_status(const job *j, job_sink *s, job_sink_status status) {
    if (s->status != status) s->status = status; /* workers read it, and are parked when it changes */
    job_tally_stuck(&s->tally, status != SINK_RUNNING, status != SINK_RUNNING ? oldest_waiting(j, s) : 0);
}

static int64_t retry_window_ns(const job_sink *s) {
    if (s->delivery || job_divert_window_ns(s) < INT64_MAX) return INT64_MAX; /* its courier counts the time, lot by lot; what is stuck is given up, and the sink is not */
    return ice_property_i64(s->table->metadata, "commit.retry.total-timeout-ms", 1800000) * 1000000;
}

static void fail_sink(job *j, job_sink *s, const fz_error *err) {
    job_set_status(j, s, SINK_FAILED);
    abort_sink(j, s);
    if (err->cls == FZ_UNKNOWN || s->unknown) j->unknown_outcome = true;
    fz_error e = *err;
    s->error = e;
    fz_context(&e, "sink %s stopped", s->text);
    fz_log_error(FZ_LOG_ERROR, "sink.failed", &e);
}
static void wait_sink(job *j, job_sink *s, const fz_error *err) {
    int64_t now = fz_mono_ns();
    if (!s->failing_since_ns) s->failing_since_ns = now;
    if (now - s->failing_since_ns > retry_window_ns(s)) {
        fail_sink(j, s, err);
        return;
    }
    job_set_status(j, s, SINK_WAITING);
    job_divert_tried(j, s);
    abort_sink(j, s);
    s->error = *err;
    s->waits++;
    int64_t ms = 250ll << (s->waits < 7 ? s->waits : 7);
    s->wait_until_ns = now + job_divert_wait_ns(s, now, ms * 1000000);
    fz_log_error(FZ_LOG_WARN, "sink.waiting", err);
}

static void note_committed(job *j, const job_prepared *p, bool by_other);

/* What was given up, and the table does not know yet: its ranges and error objects, in a commit of their own. */
static fz_status commit_given(job *j, job_sink *s, fz_error *err) {
    for (int round = 0; s->pending.n_ranges; round++) {
        const job_pending *g = &s->pending;
        job_prepared *p = FZ_NEW(job_prepared);
        *p = (job_prepared){.sink = s, .arena = fz_arena_new(), .n_ranges = g->n_ranges, .ranges = g->ranges, .after = g->after, .known = g->known, .remembered = g->remembered,
                            .n_objects = g->n_objects, .objects = g->objects};
        snprintf(p->commit_id, sizeof p->commit_id, "%s/%" PRIu64 "/%u/given-%u", j->run_id, j->checkpoint, s->index, ++s->given_commits);
        job_commit_outcome out = job_commit(j, p, err);
        bool landed = out == COMMIT_DONE || out == COMMIT_BY_OTHER;
        if (landed) {
            job_diverts_told(s->diverts, g);
            note_committed(j, p, out == COMMIT_BY_OTHER);
            for (uint32_t i = 0; i < g->n_objects; i++)
                fz_log(FZ_LOG_INFO, "divert.named", FZ_KV("table", "%s", s->text), FZ_KV("object", "%s", g->objects[i].object), FZ_KV("rows", "%" PRIu64, g->objects[i].rows), NULL);
            s->pending = (job_pending){0};
            (void)fz_fault("divert.named");
        }
        job_prepared_free(p);
        if (landed) return FZ_OK;
        if (out == COMMIT_LATER || (out == COMMIT_REWIND && round == 3)) return err->cls = FZ_RETRY;
        if (out == COMMIT_FAILED) return err->cls;
        FZ_TRY(job_sink_position(j, s, err));
    }
    return FZ_OK;
}

#define RESUME_PATIENCE_MS 5000
/* Positions from the table; reading begins there. The table is asked while workers run, unless they are parked already: they leave a sink alone that is not running, and its
 * catalog may take its time. */
static void resume_sink(job *j, job_sink *s, bool parked) {
    fz_error err;
    if ((s->delivery && job_courier_busy(s->courier)) || job_divert_busy(s)) { /* the outcome of a lot decides where reading begins */
        s->wait_until_ns = fz_mono_ns() + 100000000;
        job_set_status(j, s, SINK_WAITING);
        return;
    }
    bool others = !s->delivery && (j->n_sinks > 1 || s->divert);
    if (others) net_patience(RESUME_PATIENCE_MS); /* a catalog that is silent holds up no other sink for long */
    fz_status rc = job_sink_position(j, s, &err);
    net_patience(0);
    if (rc != FZ_OK && !s->delivery) job_tally_attempt(&s->tally);
    if (rc == FZ_OK && s->pending.n_ranges) rc = commit_given(j, s, &err);
    rc = job_passing(rc, &err);
    if (!parked) job_park(j);
    if (rc == FZ_OK) {
        take_positions(j, s);
        job_set_status(j, s, SINK_RUNNING);
        s->unknown = false; /* the table has said what it holds */
    }
    for (uint32_t k = 0; rc == FZ_OK && k < j->n_sources; k++)
        if (s->splits[k]) rc = job_source_seek(j, j->sources[k], &err);
    if (rc == FZ_RETRY || rc == FZ_UNKNOWN || rc == FZ_CONFLICT) {
        err.cls = FZ_RETRY;
        wait_sink(j, s, &err);
    } else if (rc != FZ_OK) {
        fail_sink(j, s, &err);
        for (uint32_t k = 0; k < j->n_sources; k++) /* the others read on */
            if (s->splits[k] && job_source_seek(j, j->sources[k], &err) != FZ_OK) job_fail(j, &err);
    }
    if (!parked) job_unpark(j);
}

static void settle_failure(job *j, job_sink *s, const fz_error *err) {
    fz_status cls = job_passing(err->cls, err);
    bool passing = cls == FZ_RETRY || cls == FZ_CONFLICT;
    if (passing && s->can_rewind) wait_sink(j, s, err);
    else fail_sink(j, s, err);
}

#define MAX_REWINDS 6 /* without a commit in between */
static void rewind_sink(job *j, job_sink *s, const fz_error *why) {
    fz_metric_add(FZ_M_REWINDS, 1);
    fz_log_error(FZ_LOG_WARN, "sink.rewind", why);
    if (++s->rewinds > MAX_REWINDS || !s->can_rewind) {
        fz_error e = *why;
        e.cls = FZ_FATAL;
        fail_sink(j, s, &e);
        return;
    }
    abort_sink(j, s);
    resume_sink(j, s, true);
}

/* What became of a delivery's lot. */
static void settle_lot(job *j, job_sink *s, bool wait, bool parked) {
    job_prepared *p;
    fz_status rc;
    fz_error err;
    if (!s->delivery || !job_courier_back(s->courier, wait, &p, &rc, &err)) return;
    if (rc == FZ_OK) note_committed(j, p, false);
    else {
        fz_metric_add(FZ_M_CHECKPOINTS_FAILED, 1);
        s->unknown = rc == FZ_UNKNOWN;
    }
    bool replayed = rc == FZ_OK && s->replaying;
    if (rc == FZ_OK && !replayed) {
        job_prepared_free(p);
        return;
    }
    if (!parked) job_park(j);
    if (rc != FZ_OK) give_back(j, p);
    job_prepared_free(p);
    if (rc != FZ_OK) settle_failure(j, s, &err);
    else if (s->status == SINK_RUNNING) { /* the intent is made good: on without limits, from where it ends */
        abort_sink(j, s);
        resume_sink(j, s, true);
    }
    if (!parked) job_unpark(j);
}

/* A delivery whose buffer is due does not wait for the others' checkpoint. */
static void cut_delivery(job *j, job_sink *s) {
    if (!s->delivery || s->status != SINK_RUNNING || atomic_load(&s->failing) || job_courier_busy(s->courier)) return;
    if (s->replaying ? !job_delivery_replayed(j, s) : !dlv_is_full(s->delivery)) return;
    fz_error err;
    job_park(j);
    job_prepared *p = dead_letters_sync(j->letters, &err) == FZ_OK ? prepare(j, s, false) : NULL;
    job_unpark(j);
    if (p) job_courier_send(s->courier, p);
}

static void tend_sinks(job *j) {
    for (uint32_t i = 0; i < j->n_sinks; i++) {
        job_sink *s = j->sinks[i];
        settle_lot(j, s, false, false);
        cut_delivery(j, s);
        job_divert_tend(j, s);
        bool failing = s->status == SINK_RUNNING && atomic_load(&s->failing);
        bool due = s->status == SINK_WAITING && fz_mono_ns() >= s->wait_until_ns;
        if (due) resume_sink(j, s, false);
        if (failing) {
            job_park(j);
            fz_error err = s->error;
            settle_failure(j, s, &err);
            job_unpark(j);
        }
        if (s->divert && s->status == SINK_WAITING && s->waits != s->given_waits) { /* an attempt has failed since the last look */
            s->given_waits = s->waits;
            if (job_divert_due(j, s)) job_divert_begin(j, s);
        }
    }
}

/* ---- commit and report ---- */
static uint32_t count_partitions(const job_prepared *p) {
    fz_hashset seen = {0};
    uint32_t n = 0;
    for (uint32_t k = 0; k < p->n_shards; k++)
        for (uint32_t i = 0; i < p->files[k].n; i++) {
            const char *path = p->files[k].v[i].path, *slash = strrchr(path, '/');
            n += fz_hashset_add(&seen, fz_hash(path, slash ? (size_t)(slash - path) : strlen(path)));
        }
    fz_hashset_free(&seen);
    return n;
}

static void count_committed(job_sink *s, const job_prepared *p, bool by_other) {
    job_settled x = {.n = p->counts, .given_up = dlv_lot_rejected(p->lot), .bytes = dlv_lot_bytes(p->lot), .diverted = p->diverted, .by_other = by_other, .partitions = count_partitions(p)};
    x.object = p->lot && !p->diverted && x.n.added > x.given_up;
    x.moved_only = s->delivery && !p->lot;
    for (uint32_t k = 0; k < p->n_shards; k++) x.bytes += p->files[k].bytes;
    job_tally_settle(&s->tally, &x);
}
static void note_committed(job *j, const job_prepared *p, bool by_other) {
    job_sink *s = p->sink;
    for (uint32_t r = 0; r < p->n_ranges; r++) {
        job_split_state *st = split_of(j, s, &p->ranges[r].key);
        if (!st) continue;
        st->known = true;
        st->remembered = st->base = p->ranges[r].to;
        st->base_diverted = false;
    }
    job_note_stands(j, s);
    if (s->diverts) job_divert_count(s);
    s->rewinds = s->waits = s->given_waits = 0;
    s->committed = true;
    count_committed(s, p, by_other);
    s->failing_since_ns = 0;
    s->new_chain = false;
    if (by_other) {
        fz_metric_add(FZ_M_COMMIT_BY_OTHER, 1);
        fz_log(FZ_LOG_WARN, "commit.by-other", FZ_KV("table", "%s", s->text), FZ_KV("rows", "%" PRIu64, p->rows),
               FZ_KV("reason", "%s", "another copy of this job has committed the same records: the files of this one are dropped"), NULL);
        return;
    }
    uint64_t given_up = dlv_lot_rejected(p->lot);
    s->rows_committed += p->rows - given_up;
    fz_metric_add(FZ_M_COMMITS, 1);
    fz_metric_add(FZ_M_ROWS_ADDED, p->rows - given_up);
    fz_metric_add(FZ_M_ROWS_REJECTED, given_up);
    fz_metric_set(FZ_M_LAST_COMMIT, (uint64_t)fz_now_ms());
    fz_log(FZ_LOG_INFO, "commit", FZ_KV("table", "%s", s->text), FZ_KV("checkpoint", "%" PRIu64, j->checkpoint), FZ_KV("rows", "%" PRIu64, p->rows - given_up),
           FZ_KV("files", "%u", p->n_files), FZ_KV("splits", "%u", p->n_ranges), NULL);
}

static bool commit_one(job *j, job_prepared *p, bool parked, bool wait) {
    fz_error err;
    job_sink *s = p->sink;
    if (s->delivery) {
        job_courier_send(s->courier, p);
        if (wait) settle_lot(j, s, true, parked);
        return s->status == SINK_RUNNING;
    }
    job_commit_outcome out = job_commit(j, p, &err);
    if (out == COMMIT_DONE || out == COMMIT_BY_OTHER) {
        note_committed(j, p, out == COMMIT_BY_OTHER);
        return true;
    }
    fz_metric_add(FZ_M_CHECKPOINTS_FAILED, 1);
    if (!parked) job_park(j);
    give_back(j, p);
    if (out == COMMIT_REWIND) rewind_sink(j, p->sink, &err);
    else {
        if (out == COMMIT_LATER) err.cls = FZ_RETRY;
        settle_failure(j, p->sink, &err);
    }
    if (!parked) job_unpark(j);
    return false;
}

/* Only what all sinks of a source have committed is reported. */
static void report(job *j) {
    (void)fz_fault("report.before");
    for (uint32_t k = 0; k < j->n_sources; k++) {
        job_source *src = j->sources[k];
        if (!src->replayable) continue;
        uint32_t n = src_n_splits(src->source), used = 0;
        uint32_t *splits = fz_calloc(n, sizeof *splits);
        int64_t *offsets = fz_calloc(n, sizeof *offsets);
        for (uint32_t i = 0; i < n; i++) {
            int64_t least = INT64_MAX;
            for (uint32_t s = 0; s < src->n_sinks; s++) {
                const job_split_state *st = i < src->sinks[s]->n_splits[k] ? &src->sinks[s]->splits[k][i] : NULL;
                int64_t at = st && st->base_diverted ? st->base : st && st->known ? st->remembered : -1;
                if (at < least) least = at;
            }
            if (least < 0 || least == INT64_MAX) continue;
            splits[used] = i;
            offsets[used++] = least;
        }
        fz_error err;
        if (used && src_report(src->source, splits, offsets, used, &err) != FZ_OK) fz_log_error(FZ_LOG_WARN, "source.report", &err);
        fz_free(splits);
        fz_free(offsets);
    }
}

/* ---- checkpoints ---- */
/* stay: workers remain parked afterwards. final: positions without rows are committed too. Returns false when some sink did not commit. */
static bool checkpoint(job *j, bool final, bool stay) {
    int64_t began = fz_mono_ns();
    fz_error err;
    j->checkpoint++;
    (void)fz_fault("checkpoint.begin");
    job_park(j);
    bool ok = true, stopping = job_stop_requested() > 0; /* then what is stuck must not keep the others from their last commit */
    if (dead_letters_sync(j->letters, &err) != FZ_OK) { /* no position may pass a dead letter that is not kept */
        fz_log_error(FZ_LOG_WARN, "checkpoint.dead-letters", &err);
        fz_metric_add(FZ_M_CHECKPOINTS_FAILED, 1);
        if (!stay) job_unpark(j);
        return false;
    }
    job_prepared **p = fz_calloc(j->n_sinks, sizeof *p);
    for (uint32_t i = 0; i < j->n_sinks; i++) {
        job_sink *s = j->sinks[i];
        if (s->status != SINK_RUNNING || atomic_load(&s->failing)) continue;
        if (s->only_bounded_oneshot && !(final && job_all_done(j))) continue;
        if (final) settle_lot(j, s, !stopping, true);
        if (s->status != SINK_RUNNING) continue;
        if (final && s->delivery && job_courier_busy(s->courier)) { /* its last lot can only be cut when the one on its way is settled */
            ok = false;
            continue;
        }
        if (s->letters && dead_letters_sync(s->letters, &err) != FZ_OK) { /* the same, of its own error location: the others go on */
            job_sink_fail(s, &err);
            ok = false;
            continue;
        }
        p[i] = prepare(j, s, final);
        ok &= !atomic_load(&s->failing);
    }
    (void)fz_fault("checkpoint.closed");
    int64_t closed_ms = (fz_mono_ns() - began) / 1000000;
    if (closed_ms > conf_get_i64(j->spec->settings, "execution.checkpointing.timeout")) {
        fz_fail(&err, FZ_FATAL, "checkpoint.timeout", "checkpoint %" PRIu64 " took %" PRId64 " ms to close its files", j->checkpoint, closed_ms);
        fz_hint(&err, "raise execution.checkpointing.timeout, or shorten execution.checkpointing.interval");
        job_fail(j, &err);
    }
    if (!stay) job_unpark(j);
    for (uint32_t i = 0; i < j->n_sinks; i++) {
        if (!p[i]) continue;
        bool courier = p[i]->sink->delivery != NULL; /* who keeps it until it is settled */
        ok &= commit_one(j, p[i], stay, final && !stopping) && !(courier && final && stopping);
        if (!courier) job_prepared_free(p[i]);
    }
    fz_free(p);
    report(j);
    if (ok) {
        fz_metric_add(FZ_M_CHECKPOINTS, 1);
        job_records_completed(j->records, j);
    }
    (void)fz_fault("checkpoint.done");
    return ok;
}

static bool any_courier_busy(const job *j) {
    for (uint32_t i = 0; i < j->n_sinks; i++)
        if (j->sinks[i]->delivery && job_courier_busy(j->sinks[i]->courier)) return true;
    return false;
}

/* A last checkpoint that must not be lost to a passing trouble: tried for as long as commits are; of a job that was told to stop, for frazil.stop.timeout. */
static void last_checkpoint(job *j) {
    int64_t until = fz_mono_ns() + 1800000ll * 1000000;
    for (int64_t wait = 250; !checkpoint(j, true, true); wait = wait < 8000 ? wait * 2 : wait) {
        bool again = false, lots = any_courier_busy(j);
        for (uint32_t i = 0; i < j->n_sinks; i++) again |= j->sinks[i]->status == SINK_RUNNING;
        if (!again || job_stop_over() || fz_mono_ns() > until) return;
        for (int64_t ms = 0; (ms < wait || lots) && !job_stop_over() && !(lots && !any_courier_busy(j)); ms += 10) {
            fz_sleep_ms(10);
            for (uint32_t i = 0; lots && i < j->n_sinks; i++) settle_lot(j, j->sinks[i], false, true);
        }
    }
}

/* Told to stop: what became of the lots on their way, and one line for each sink that is left with something. Their couriers try no more (job_stop_over), so this waits for an attempt at most. */
static void stop_sinks(job *j) {
    job_park(j);
    for (uint32_t i = 0; i < j->n_sinks; i++) {
        job_sink *s = j->sinks[i];
        settle_lot(j, s, true, true);
        uint64_t left = job_tally_get(&s->tally).buffered;
        if (s->status == SINK_RUNNING && !left) continue;
        fz_buf where = {0};
        for (uint32_t k = 0; k < j->n_sources; k++) {
            const char *identity = s->splits[k] && j->sources[k]->replayable ? src_identity(j->sources[k]->source) : NULL;
            if (identity) fz_buf_printf(&where, "%s%s %s", where.len ? ", " : "", fz_starts(identity, "spool:") ? "the spool of" : "the source of", j->sources[k]->scan_plan->table->path);
        }
        fz_log(FZ_LOG_WARN, "stop.left", FZ_KV("sink", "%s", s->text), FZ_KV("records", "%" PRIu64, left), FZ_KV("kept_by", "%s", where.len ? fz_buf_cstr(&where) : "nobody"),
               FZ_KV("reason", "%s", s->error.code[0] ? s->error.code : "not committed"), FZ_KV("message", "%s", where.len ? "the job was told to stop before they were delivered: the next start delivers them" : "the job was told to stop before they were delivered"), NULL);
        fz_buf_free(&where);
    }
}

static bool any_sink(const job *j, job_sink_status status) {
    for (uint32_t i = 0; i < j->n_sinks; i++)
        if (j->sinks[i]->status == status) return true;
    return false;
}
/* Is there a sink whose records are not at their end? One that waits with everything given up has none. */
static bool any_unsettled(const job *j) {
    for (uint32_t i = 0; i < j->n_sinks; i++)
        if (j->sinks[i]->status == SINK_DIVERTING || (j->sinks[i]->status == SINK_WAITING && !job_divert_all(j, j->sinks[i]))) return true;
    return false;
}
static bool any_claim(const job *j) { /* workers run, but leave claims alone */
    bool any = false;
    for (uint32_t i = 0; i < j->n_sinks; i++)
        for (uint32_t k = 0; k < j->n_sources; k++)
            for (uint32_t n = 0; j->sinks[i]->splits[k] && j->sources[k]->replayable && n < j->sinks[i]->n_splits[k]; n++) any |= j->sinks[i]->splits[k][n].claim;
    return any;
}

#define DISCOVERY_NS 50000000ll
#define DISCOVERY_TROUBLE_NS 10000000000ll
/* When to look again: sources know their own intervals; a trouble is not asked about all the time. */
static int64_t discover(job *j) {
    int64_t next = DISCOVERY_NS;
    for (uint32_t i = 0; i < j->n_sources; i++) {
        job_source *src = j->sources[i];
        if (!src->replayable || src->bounded) continue;
        fz_error err;
        uint32_t added;
        fz_status rc = src_discover(src->source, &added, &err);
        if (src_n_splits(src->source) > src->positioned) { /* just found, or found before and not positioned for a passing trouble */
            job_park(j);
            rc = job_source_grow(j, src, &err);
            job_unpark(j);
            if (rc != FZ_OK && rc != FZ_RETRY && rc != FZ_UNKNOWN) job_fail(j, &err);
        }
        if (rc == FZ_OK) continue;
        next = DISCOVERY_TROUBLE_NS;
        fz_log_error(FZ_LOG_WARN, "source.discovery", &err);
    }
    return fz_mono_ns() + next;
}

/* Records vanished below the reader while it ran: with frazil.lost-offsets = earliest every sink goes on at the log's start. */
static bool recover_lost_offsets(job *j) {
    if (!j->lost_earliest || strcmp(j->error.code, "kafka.offset-gone") != 0) return false;
    checkpoint(j, false, false); /* what was read before must not be lost too */
    job_park(j);
    for (uint32_t i = 0; i < j->n_sinks; i++)
        if (j->sinks[i]->status == SINK_RUNNING) {
            abort_sink(j, j->sinks[i]);
            resume_sink(j, j->sinks[i], true);
        }
    atomic_store(&j->failed, false);
    job_unpark(j);
    return true;
}

/* ---- the loop ---- */
#define RUN_FILE_NS 1000000000ll
static void loop(job *j, bool found) { /* found: its run file is there */
    const conf *c = j->spec->settings;
    int64_t interval = conf_get_i64(c, "execution.checkpointing.interval") * 1000000, pause = conf_get_i64(c, "execution.checkpointing.min-pause") * 1000000;
    int64_t due = any_claim(j) ? 0 : fz_mono_ns() + interval, discovery = fz_mono_ns() + DISCOVERY_NS, run_file = fz_mono_ns() + RUN_FILE_NS;
    for (;;) {
        tend_sinks(j);
        if (job_drain_requested() && !j->draining) job_drain_begin(j);
        if (atomic_load(&j->failed) && !recover_lost_offsets(j)) break;
        if (job_stop_requested()) break;
        if (any_sink(j, SINK_FAILED) && !j->continue_on_failure) break;
        if (!any_sink(j, SINK_RUNNING) && !any_sink(j, SINK_WAITING) && !any_sink(j, SINK_DIVERTING)) return;
        int64_t now = fz_mono_ns();
        if (job_all_done(j) && !any_unsettled(j)) {
            if (checkpoint(j, true, false) && job_all_done(j)) return;
            fz_sleep_ms(250); /* a passing trouble, dead letters without room say */
        } else if (now >= due) {
            int64_t began = now;
            checkpoint(j, false, false);
            due = began + interval;
            if (due < fz_mono_ns() + pause) due = fz_mono_ns() + pause;
        }
        if (now >= discovery) discovery = discover(j);
        if (!found && now >= run_file) {
            found = job_run_file_write(j, true);
            run_file = now + RUN_FILE_NS;
        }
        fz_sleep_ms(10);
    }
    if (job_stop_requested() < 2) last_checkpoint(j);
    if (job_stop_requested()) stop_sinks(j);
}

/* ---- set-up and end ---- */
#define LEAST_MEMORY ((size_t)48 << 20)
static void read_policies(job *j) {
    const conf *c = j->spec->settings;
    j->on_row_error = conf_is(c, "frazil.on-row-error", "fail") ? ROW_FAIL : conf_is(c, "frazil.on-row-error", "drop") ? ROW_DROP : ROW_DEAD_LETTER;
    j->on_null = conf_is(c, "table.exec.sink.not-null-enforcer", "error")  ? ROW_FAIL
                 : conf_is(c, "table.exec.sink.not-null-enforcer", "drop") ? ROW_DROP
                                                                           : j->on_row_error;
    j->positions = conf_is(c, "frazil.positions", "adopt") ? POSITIONS_ADOPT : conf_is(c, "frazil.positions", "ignore") ? POSITIONS_IGNORE : POSITIONS_CHECK;
    j->lost_earliest = conf_is(c, "frazil.lost-offsets", "earliest");
    j->continue_on_failure = conf_is(c, "frazil.on-sink-failure", "continue");
    atomic_store(&stop_timeout_ns, conf_get_i64(c, "frazil.stop.timeout") * 1000000);
    net_set_hurry(job_stop_over); /* nor may a server that is silent hold up the end */
    int64_t n = conf_get_i64(c, "parallelism.default");
    if (n <= 0) n = sysconf(_SC_NPROCESSORS_ONLN);
    j->n_workers = (uint32_t)(n < 1 ? 1 : n > 64 ? 64 : n);
    j->n_writers = j->n_workers;
    j->memory_limit = (size_t)conf_get_i64(c, "memory.limit");
    if (j->memory_limit < LEAST_MEMORY)
        fz_log(FZ_LOG_WARN, "job.memory-limit", FZ_KV("limit_bytes", "%zu", j->memory_limit), FZ_KV("reason", "%s", "the program and one batch alone take about 48 MiB: the limit cannot be held"), NULL);
    j->writer_budget = j->memory_limit * 2 / 5; /* the rest: sources a fifth, batches on their way, the program itself */
}

job *job_new(const job_spec *spec) {
    job *j = FZ_NEW(job);
    j->spec = spec;
    if (!fz_metric_get(FZ_M_STARTED)) fz_metric_set(FZ_M_STARTED, (uint64_t)fz_now_ms());
    j->arena = fz_arena_new();
    fz_uuid4(j->run_id);
    j->io = (ice_io){NULL, io_read, io_write};
    pthread_mutex_init(&j->park_lock, NULL);
    pthread_condattr_t mono;
    pthread_condattr_init(&mono);
    pthread_condattr_setclock(&mono, CLOCK_MONOTONIC);
    pthread_cond_init(&j->park_cond, &mono);
    pthread_condattr_destroy(&mono);
    pthread_mutex_init(&j->error_lock, NULL);
    read_policies(j);
    return j;
}

void job_free(job *j) {
    job_workers_end(j);
    for (uint32_t i = 0; j->writers && i < j->n_writers; i++) job_writer_end(j->writers[i]);
    fz_free(j->writers);
    job_close(j);
    dead_letters_free(j->letters);
    fio_unref(j->letters_io);
    job_records_free(j->records);
    job_metrics_free(j->metrics);
    job_publisher_close(j->publisher);
    pthread_mutex_destroy(&j->park_lock);
    pthread_cond_destroy(&j->park_cond);
    pthread_mutex_destroy(&j->error_lock);
    fz_arena_free(j->arena);
    fz_free(j);
}

/* As if a first attempt had failed. */
static void begin_unseen(job *j, job_sink *s) {
    const fz_error why = s->error;
    fz_log(FZ_LOG_WARN, "sink.unseen", FZ_KV("table", "%s", s->text), FZ_KV("code", "%s", why.code),
           FZ_KV("reason", "%s", "the table cannot be reached: the job goes on with what it remembers of it, the sink waits, and its records are kept"),
           FZ_KV("gives_up", "%s", !s->divert ? "nothing" : s->bounded_below ? "what is older than retry.duration" : "nothing before the table is there: where it stands is not known"), NULL);
    job_tally_attempt(&s->tally);
    wait_sink(j, s, &why);
}

static fz_status start(job *j, fz_error *err) {
    FZ_TRY(job_metrics_open(j, &j->metrics, err));
    FZ_TRY(job_publisher_open(j->spec->settings, &j->publisher, err));
    FZ_TRY(job_records_open(j->spec->settings, j->run_id, &j->records, err));
    FZ_TRY(job_open(j, err));
    j->writers = fz_calloc(j->n_writers, sizeof(job_writer *));
    for (uint32_t i = 0; i < j->n_writers; i++) j->writers[i] = job_writer_start(j, i, j->writer_budget / j->n_writers);
    for (uint32_t i = 0; i < j->n_sinks; i++)
        if (j->sinks[i]->unseen) begin_unseen(j, j->sinks[i]);
    for (uint32_t i = 0; i < j->n_paths; i++)
        if (!j->paths[i].source) FZ_TRY(job_run_oneshot(j, &j->paths[i], err));
    return job_workers_start(j, err);
}

static fz_status conclude(job *j, job_report *r, fz_error *err) {
    for (uint32_t i = 0; i < j->n_sinks; i++) r->rows_added += j->sinks[i]->rows_committed;
    r->rows_filtered = fz_metric_get(FZ_M_ROWS_FILTERED);
    r->rows_rejected = fz_metric_get(FZ_M_ROWS_REJECTED);
    r->unparseable = fz_metric_get(FZ_M_ROWS_UNPARSEABLE);
    r->checkpoints = fz_metric_get(FZ_M_CHECKPOINTS);
    r->stopped = job_stop_requested() > 0;
    const fz_error *why = atomic_load(&j->failed) ? &j->error : NULL;
    for (uint32_t i = 0; i < j->n_sinks; i++) j->unknown_outcome |= j->sinks[i]->status == SINK_WAITING && j->sinks[i]->unknown;
    for (uint32_t i = 0; i < j->n_sinks && !why; i++)
        if (j->sinks[i]->status == SINK_FAILED || (j->sinks[i]->status == SINK_WAITING && j->sinks[i]->error.cls != FZ_OK) || j->sinks[i]->status == SINK_DIVERTING) why = &j->sinks[i]->error;
    if (!why && !j->unknown_outcome) return FZ_OK;
    r->exit_code = j->unknown_outcome ? JOB_UNKNOWN : JOB_FAILED;
    *err = why ? *why : j->error;
    return err->cls != FZ_OK ? err->cls : FZ_FATAL;
}

fz_status job_run(const job_spec *spec, job_report *report, fz_error *err) {
    *report = (job_report){0};
    mallopt(M_ARENA_MAX, 2); /* an arena a thread would hold memory that the budget cannot see */
    mallopt(M_TRIM_THRESHOLD, 4 << 20);
    job *j = job_new(spec);
    fz_status rc = start(j, err);
    if (rc == FZ_OK) {
        fz_log(FZ_LOG_INFO, "job.start", FZ_KV("pipeline", "%s", spec->name), FZ_KV("run", "%s", j->run_id), FZ_KV("sources", "%u", j->n_sources), FZ_KV("sinks", "%u", j->n_sinks), NULL);
        job_status *st = job_status_new(j);
        job_tell_unread(j);
        loop(j, job_run_file_write(j, false));
        job_status_free(st);
        rc = conclude(j, report, err);
        if (j->draining) rc = job_drain_report(j, rc, err);
        if (rc != FZ_OK && !report->exit_code) report->exit_code = JOB_FAILED;
        job_run_file_remove(j);
        job_records_end(j->records, j, report->stopped, rc == FZ_OK);
        fz_log(FZ_LOG_INFO, "job.end", FZ_KV("pipeline", "%s", spec->name), FZ_KV("added", "%" PRIu64, report->rows_added), FZ_KV("filtered", "%" PRIu64, report->rows_filtered),
               FZ_KV("rejected", "%" PRIu64, report->rows_rejected), FZ_KV("unparseable", "%" PRIu64, report->unparseable), FZ_KV("checkpoints", "%" PRIu64, report->checkpoints), NULL);
    } else if (job_stop_requested() && rc == FZ_RETRY) { /* told to stop while waiting for a peer: nothing was begun */
        report->stopped = true;
        rc = FZ_OK;
    } else { /* a port or spool that somebody else has is no fault of the script */
        bool taken = strcmp(err->code, "listen.in-use") == 0 || strcmp(err->code, "spool.in-use") == 0;
        report->exit_code = rc == FZ_USER && !taken ? JOB_USAGE : JOB_FAILED;
    }
    job_free(j);
    return rc;
}

fz_status job_look(const job_spec *spec, void (*fn)(void *cx, const job_begin *b), void *cx, fz_error *err) {
    job *j = job_new(spec);
    j->look = true;
    fz_status rc = job_place(j, err);
    for (uint32_t k = 0; rc == FZ_OK && k < j->n_sources; k++)
        for (uint32_t n = 0; n < j->sources[k]->n_sinks; n++) {
            const job_sink *s = j->sources[k]->sinks[n];
            for (uint32_t i = 0; i < s->n_splits[k]; i++) {
                const src_split *sp = src_get_split(j->sources[k]->source, i);
                fn(cx, &(job_begin){.target = s->text, .split = sp->name, .known = s->splits[k][i].known, .from = s->splits[k][i].next, .low = sp->low, .high = sp->high});
            }
        }
    job_free(j);
    return rc;
}
