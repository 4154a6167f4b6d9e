/* Workers: poll, decode, execute, route. See job_int.h.
 *
 * Invariants
 *  1. A split belongs to one worker, which alone moves its `next`; it moves only when all of a sink's INSERTs have taken the whole chunk.
 *  2. When a sink cannot take part of a chunk, the sink fails as a whole: its files of this checkpoint are dropped, never committed.
 *  3. A record has one fate per INSERT: added, filtered, rejected or unparseable.
 */
#include "job/job_int.h"
#include <inttypes.h>

struct job_worker {
    job *j;
    uint32_t number;
    pthread_t thread;
    job_scan_reader **readers; /* by source */
    ex_state ***states;        /* by source, by path */
    bool *done;                /* by source */
    fz_log_limit reject_limit;
};

void job_sink_fail(job_sink *s, const fz_error *err) {
    pthread_mutex_lock(&s->lock);
    if (!atomic_load(&s->failing)) {
        s->error = *err;
        atomic_store(&s->failing, true);
    }
    pthread_mutex_unlock(&s->lock);
}
void job_fail(job *j, const fz_error *err) {
    pthread_mutex_lock(&j->error_lock);
    if (!atomic_load(&j->failed)) {
        j->error = *err;
        atomic_store(&j->failed, true);
    }
    pthread_mutex_unlock(&j->error_lock);
}

/* ---- one batch on its way to the writers ---- */
fz_status job_hand_over(job *j, job_sink *s, col_batch *b, col_vec *const *cols, uint32_t n_rows, fz_rejects *rejects, uint32_t *added, fz_error *err) {
    const uint32_t *keep;
    uint32_t n_keep, n_cols = sink_table_schema(s->files)->n;
    *added = 0;
    sink_check_required(s->files, cols, n_rows, b->arena, &keep, &n_keep, rejects);
    if (keep) {
        col_vec **fewer = FZ_ANEWN(b->arena, col_vec *, n_cols);
        for (uint32_t c = 0; c < n_cols; c++) fewer[c] = col_select(b->arena, cols[c], keep, n_keep);
        cols = fewer;
    }
    if (!n_keep) return FZ_OK;
    sink_route_result r;
    FZ_TRY(sink_route(s->files, cols, n_keep, b->arena, &r, err));
    for (uint32_t w = 0; w < j->n_writers; w++) {
        const sink_part **mine = FZ_ANEWN(b->arena, const sink_part *, r.n);
        uint32_t n = 0;
        for (uint32_t p = 0; p < r.n; p++)
            if (r.parts[p].hash % j->n_writers == w) mine[n++] = &r.parts[p];
        if (n) job_writer_push(j->writers[w], s, b, cols, mine, n);
    }
    *added = n_keep;
    return FZ_OK;
}

void job_hand_to_courier(job_sink *s, col_batch *b, col_vec *const *cols, uint32_t n_rows, const int64_t *time_ms, uint32_t source, uint32_t split) {
    const dlv_rows rows = {.cols = cols, .n = n_rows, .time_ms = time_ms, .source = source, .split = split};
    job_courier_push(s->courier, b, &rows);
}

/* ---- rejects ---- */
typedef struct path_run { bool ran; ex_result r; fz_reject *rejects; uint32_t n_rejects; } path_run;
typedef struct chunk_cx {
    job *j;
    fz_log_limit *limit;      /* the worker's own: rejected rows are sampled in the log */
    job_source *src;
    const fz_chunk *chunk;
    const src_split *split;
    uint64_t bytes;           /* of the values */
    path_run *runs;           /* of the source's programs over this chunk */
} chunk_cx;

static dead_letter letter_of(const chunk_cx *cx, const job_sink *s, const fz_reject *r) {
    return (dead_letter){.sink = s ? s->text : NULL, .source = cx->src->scan_plan->table->path, .topic = cx->split->topic ? cx->split->topic : cx->split->name,
                         .identity = src_identity(cx->src->source), .partition = cx->split->partition, .code = r->code, .message = r->message, .expression = r->expr, .record = &cx->chunk->rec[r->rec]};
}

/* A record that no table of its source can take: to the error location of each that has one. An error location that takes nothing fails its own sink. True: a sink is left that has none. */
static bool write_letters_of_all(const chunk_cx *cx, const fz_reject *r) {
    bool others = false;
    for (uint32_t k = 0; k < cx->src->n_sinks; k++) {
        job_sink *s = cx->src->sinks[k];
        if (!s->letters) {
            others = true;
            continue;
        }
        const dead_letter l = letter_of(cx, s, r);
        fz_error err;
        if (dead_letters_add(s->letters, &l, &err) != FZ_OK) job_sink_fail(s, &err);
    }
    return others;
}

/* Dead letters wait for their disk: the row must not be passed before its letter is kept. */
static fz_status write_letter(const chunk_cx *cx, const job_sink *s, const fz_reject *r, fz_error *err) {
    const dead_letter l = letter_of(cx, s, r);
    if (s && s->letters) return dead_letters_add(s->letters, &l, err);
    if (!s && !write_letters_of_all(cx, r)) return FZ_OK;
    for (;;) {
        fz_status rc = dead_letters_add(cx->j->letters, &l, err);
        if (rc != FZ_RETRY || atomic_load(&cx->j->quit) || job_stop_requested()) return rc;
        fz_log_error(FZ_LOG_WARN, "dead-letter.waiting", err);
        fz_sleep_ms(1000);
    }
}

static fz_status refuse(const chunk_cx *cx, const fz_reject *r, fz_error *err) {
    fz_fail(err, FZ_DATA, r->code, "%s", r->message);
    return fz_detail(err, "record %s offset %" PRId64 "%s%s", cx->split->name, cx->chunk->rec[r->rec].offset, r->expr ? ", expression " : "", r->expr ? r->expr : "");
}

static void sample_reject(const chunk_cx *cx, const job_sink *s, const fz_reject *r) {
    uint64_t suppressed;
    if (!fz_log_allowed(cx->limit, 5, 60000, &suppressed)) return;
    fz_log(FZ_LOG_WARN, "row.rejected", FZ_KV("code", "%s", r->code), FZ_KV("message", "%s", r->message), FZ_KV("expression", "%s", r->expr ? r->expr : ""),
           FZ_KV("table", "%s", s ? s->text : ""), FZ_KV("split", "%s", cx->split->name), FZ_KV("offset", "%" PRId64, cx->chunk->rec[r->rec].offset),
           FZ_KV("suppressed", "%" PRIu64, suppressed), NULL);
}

/* Applies the row policy. s NULL: found before any sink. A DATA status ends the sink (or, without one, the job). */
static fz_status settle_rejects(const chunk_cx *cx, const job_sink *s, const fz_rejects *rejects, uint32_t from, fz_error *err) {
    for (uint32_t i = from; i < rejects->n; i++) {
        const fz_reject *r = &rejects->v[i];
        int policy = strcmp(r->code, "not-null") == 0 ? (int)cx->j->on_null : (int)cx->j->on_row_error;
        if (policy == ROW_FAIL) return refuse(cx, r, err);
        if (policy == ROW_DEAD_LETTER) FZ_TRY(write_letter(cx, s, r, err));
    }
    fz_metric_add(FZ_M_ROWS_REJECTED, rejects->n - from);
    if (rejects->n > from) sample_reject(cx, s, &rejects->v[from]);
    return FZ_OK;
}

/* ---- one chunk ---- */
typedef struct fates { uint64_t added, filtered, rejected, sql_ns; uint32_t *hits; /* of a sink that gives up: rows by record; else NULL */ } fates;

/* In place of handing over: notes which records have rows that fit. */
static fz_status give_up(const job_sink *s, col_batch *b, const ex_result *r, const job_rows *rows, fz_rejects *rejects, uint32_t *added, uint32_t *hits) {
    const uint32_t *keep;
    sink_check_required(s->files, r->cols, r->n_rows, b->arena, &keep, added, rejects);
    for (uint32_t i = 0; i < *added; i++) hits[rows->row_rec[r->row[keep ? keep[i] : i]]]++;
    return FZ_OK;
}

/* The path's program over the rows, unless another INSERT of the same rows has run it (the same events into two tables): results are only read. Rejects get their record. */
static fz_status evaluate(job_worker *w, const chunk_cx *cx, const job_path *p, const job_rows *rows, col_batch *b, ex_result *out, fz_rejects *rejects, fz_error *err) {
    path_run *run = &cx->runs[p->like];
    if (!run->ran) {
        const uint32_t before = rejects->n;
        FZ_TRY(ex_run(p->program, w->states[cx->src->index][p->number], rows->cols, rows->n_rows, b->arena, &run->r, rejects, err));
        for (uint32_t i = before; i < rejects->n; i++) rejects->v[i].rec = rows->row_rec[rejects->v[i].rec];
        run->ran = true;
        run->n_rejects = rejects->n - before;
        if (run->n_rejects) {
            run->rejects = fz_arena_alloc(b->arena, run->n_rejects * sizeof *run->rejects);
            memcpy(run->rejects, rejects->v + before, run->n_rejects * sizeof *run->rejects);
        }
    } else
        for (uint32_t i = 0; i < run->n_rejects; i++) {
            FZ_GROW(rejects->v, rejects->n, rejects->cap);
            rejects->v[rejects->n++] = run->rejects[i];
        }
    *out = run->r;
    return FZ_OK;
}

static fz_status run_path(job_worker *w, const chunk_cx *cx, uint32_t path, const job_rows *rows, col_batch *b, fz_rejects *rejects, fates *f, fz_error *err) {
    job_path *p = cx->src->paths[path];
    ex_result r;
    uint32_t before = rejects->n, added;
    int64_t began = fz_mono_ns();
    FZ_TRY(evaluate(w, cx, p, rows, b, &r, rejects, err));
    f->sql_ns += (uint64_t)(fz_mono_ns() - began);
    f->filtered += r.n_filtered;
    if (r.n_rows && p->sink->delivery) {
        int64_t *at = fz_arena_alloc(b->arena, r.n_rows * sizeof *at);
        for (uint32_t i = 0; i < r.n_rows; i++) at[i] = cx->chunk->rec[rows->row_rec[r.row ? r.row[i] : i]].timestamp_ms;
        job_hand_to_courier(p->sink, b, r.cols, r.n_rows, at, cx->src->index, cx->chunk->split);
        f->added += r.n_rows;
    } else if (r.n_rows) {
        fz_rejects nulls = {0};
        fz_status rc = f->hits ? give_up(p->sink, b, &r, rows, &nulls, &added, f->hits) : job_hand_over(w->j, p->sink, b, r.cols, r.n_rows, &nulls, &added, err);
        for (uint32_t i = 0; i < nulls.n; i++) {
            FZ_GROW(rejects->v, rejects->n, rejects->cap);
            rejects->v[rejects->n] = nulls.v[i];
            rejects->v[rejects->n++].rec = rows->row_rec[r.row[nulls.v[i].rec]];
        }
        fz_free(nulls.v);
        FZ_TRY(rc);
        f->added += added;
    }
    f->rejected += rejects->n - before;
    fz_metric_add(FZ_M_ROWS_FILTERED, r.n_filtered);
    return settle_rejects(cx, p->sink, rejects, before, err);
}

/* All INSERTs of one sink over a decoded chunk. */
static void run_sink(job_worker *w, const chunk_cx *cx, job_sink *s, const job_rows *rows, col_batch *b, fz_rejects *rejects) {
    job_split_state *st = &s->splits[cx->src->index][cx->chunk->split];
    fates f = {.hits = s->status == SINK_DIVERTING ? fz_arena_calloc(b->arena, cx->chunk->n + 1, sizeof *f.hits) : NULL};
    uint32_t n_paths = 0;
    fz_error err;
    for (uint32_t k = 0; k < cx->src->n_paths; k++) {
        if (cx->src->paths[k]->sink != s) continue;
        n_paths++;
        if (run_path(w, cx, k, rows, b, rejects, &f, &err) != FZ_OK) {
            job_sink_fail(s, &err);
            return;
        }
    }
    const fz_chunk *c = cx->chunk;
    if (f.hits && job_divert_take(s, cx->src, c, f.hits, &err) != FZ_OK) {
        job_sink_fail(s, &err);
        return;
    }
    st->read += c->n;
    st->added += f.added;
    st->filtered += f.filtered;
    f.rejected += (uint64_t)rows->n_rejected * n_paths;
    st->rejected += f.rejected;
    st->unparseable += (uint64_t)rows->n_unparseable * n_paths;
    __atomic_store_n(&st->next, c->to, __ATOMIC_RELEASE); /* job_delivery_replayed looks at it while workers run */
    const job_taken taken = {.n = {.added = f.added, .rejected = f.rejected}, .paths = n_paths, .bytes = cx->bytes, .sql_ns = f.sql_ns, .arrival_ms = c->n && c->rec[0].timestamp_ms > 0 ? c->rec[0].timestamp_ms : fz_now_ms()};
    job_tally_take(&s->tally, &taken, cx->src->replayable ? &st->again : NULL, c->rec, c->n, c->to);
    if (c->n) {
        const fz_record *last = &c->rec[c->n - 1];
        st->has_last = true;
        st->last_offset = last->offset;
        st->last_timestamp = last->timestamp_ms;
        st->last_hash = src_record_hash(last);
    }
}

static bool wants(const job_sink *s, const job_source *src, const fz_chunk *c) {
    const job_split_state *st = s->splits[src->index] ? &s->splits[src->index][c->split] : NULL;
    return job_sink_reads(s) && !atomic_load(&s->failing) && st && c->to > st->next && st->next < st->limit;
}

/* Records below a sink's position are not for it. Sinks of one source nearly always stand at the same place, so a chunk is decoded once; one that straddles
 * a position is decoded again from there. */
static fz_status run_from(job_worker *w, job_source *src, fz_chunk *c, int64_t from, int64_t to, fz_error *err) {
    uint32_t skip = 0;
    while (skip < c->n && c->rec[skip].offset < from) skip++;
    fz_chunk part = *c;
    part.rec += skip;
    part.n -= skip;
    if (from > part.from) part.from = from;
    while (part.n > 0 && part.rec[part.n - 1].offset >= to) part.n--;
    part.to = to;
    chunk_cx cx = {.j = w->j, .limit = &w->reject_limit, .src = src, .chunk = &part, .split = src_get_split(src->source, c->split)};
    for (uint32_t i = 0; i < part.n; i++) cx.bytes += part.rec[i].value_len > 0 ? (uint64_t)part.rec[i].value_len : 0;
    col_batch *b = col_batch_new(NULL, part.n);
    cx.runs = FZ_ANEWN(b->arena, path_run, src->n_paths);
    fz_rejects rejects = {0};
    job_rows rows;
    fz_status rc = job_scan_decode(w->readers[src->index], &part, b->arena, &rows, &rejects, err);
    if (rc == FZ_OK) rc = settle_rejects(&cx, NULL, &rejects, 0, err);
    for (uint32_t k = 0; rc == FZ_OK && k < src->n_sinks; k++) {
        job_sink *s = src->sinks[k];
        if (!wants(s, src, c)) continue;
        if (s->splits[src->index][c->split].next == from) run_sink(w, &cx, s, &rows, b, &rejects);
    }
    fz_free(rejects.v);
    col_batch_release(b);
    return rc;
}

static fz_status run_chunk(job_worker *w, job_source *src, fz_chunk *c, fz_error *err) {
    fz_metric_add(FZ_M_RECORDS_IN, c->n);
    fz_metric_add(FZ_M_BYTES_IN, c->bytes);
    atomic_fetch_add_explicit(&src->records_in, c->n, memory_order_relaxed);
    atomic_fetch_add_explicit(&src->bytes_in, c->bytes, memory_order_relaxed);
    int64_t done = INT64_MIN; /* starting points up to here have been run */
    for (uint32_t k = 0; k < src->n_sinks; k++)
        if (src->sinks[k]->status == SINK_DIVERTING) job_divert_cut(src->sinks[k], src, c);
    for (;;) {
        int64_t from = INT64_MAX, to = c->to;
        for (uint32_t k = 0; k < src->n_sinks; k++) {
            if (!wants(src->sinks[k], src, c)) continue;
            int64_t at = src->sinks[k]->splits[src->index][c->split].next;
            if (at < c->from)
                return fz_fail(err, FZ_FATAL, "job.gap", "%s: records %" PRId64 " to %" PRId64 " were not read for table %s", src_get_split(src->source, c->split)->name, at, c->from,
                               src->sinks[k]->text);
            if (at > done && at < from) from = at;
        }
        if (from == INT64_MAX) return FZ_OK;
        for (uint32_t k = 0; k < src->n_sinks; k++) { /* nobody is given more than he may take, nor at once what he had before and what is new */
            const job_split_state *st = wants(src->sinks[k], src, c) ? &src->sinks[k]->splits[src->index][c->split] : NULL;
            if (!st || st->next != from) continue;
            if (st->limit < to) to = st->limit;
            if (st->again.left && st->again.to > from && st->again.to < to) to = st->again.to;
        }
        FZ_TRY(run_from(w, src, c, from, to, err));
        done = from;
    }
}

/* ---- the thread ---- */
static void park_if_asked(job_worker *w) {
    job *j = w->j;
    if (!atomic_load(&j->park)) return;
    pthread_mutex_lock(&j->park_lock);
    j->parked++;
    pthread_cond_broadcast(&j->park_cond);
    while (atomic_load(&j->park) && !atomic_load(&j->quit)) pthread_cond_wait(&j->park_cond, &j->park_lock);
    j->parked--;
    pthread_mutex_unlock(&j->park_lock);
}

static bool poll_source(job_worker *w, job_source *src, int64_t timeout_ms) {
    job *j = w->j;
    fz_chunk *c = NULL;
    bool done = false;
    fz_error err;
    fz_status rc = src_poll(src->source, w->number, timeout_ms, &c, &done, &err);
    if (rc == FZ_OK && c) rc = run_chunk(w, src, c, &err);
    bool got = c != NULL;
    fz_chunk_release(c);
    if (done && !w->done[src->index]) {
        w->done[src->index] = true;
        atomic_fetch_add(&src->readers_done, 1);
    }
    if (rc == FZ_RETRY) {
        uint64_t suppressed;
        if (fz_log_allowed(&src->retry_limit, 1, 10000, &suppressed)) fz_log_error(FZ_LOG_WARN, "source.waiting", &err);
        fz_sleep_ms(100);
    } else if (rc != FZ_OK) job_fail(j, &err);
    return got;
}

/* Nothing is left to read for this worker, or never was: until something changes. */
static void rest(job *j) {
    enum { REST_MS = 500 };
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += REST_MS * 1000000l;
    if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
    pthread_mutex_lock(&j->park_lock);
    if (!atomic_load(&j->park) && !atomic_load(&j->quit)) pthread_cond_timedwait(&j->park_cond, &j->park_lock, &until);
    pthread_mutex_unlock(&j->park_lock);
}

static void *worker_main(void *arg) {
    job_worker *w = arg;
    job *j = w->j;
    while (!atomic_load(&j->quit)) {
        park_if_asked(w);
        if (atomic_load(&j->failed)) {
            fz_sleep_ms(5);
            continue;
        }
        /* Near the memory limit no more is taken in until the writers have caught up. */
        if (atomic_load(&j->throttled)) {
            fz_metric_add(FZ_M_PAUSED, 1);
            fz_sleep_ms(2);
            if (fz_rss() < j->memory_limit - j->memory_limit / 24) atomic_store(&j->throttled, false);
            else fz_sleep_ms(10);
        }
        bool any = false;
        uint32_t open = 0;
        for (uint32_t i = 0; i < j->n_sources && !atomic_load(&j->park); i++) {
            if (w->done[i]) continue;
            open++;
            any |= poll_source(w, j->sources[i], 0);
        }
        if (any || atomic_load(&j->park)) continue;
        if (!open) rest(j);
        for (uint32_t i = 0; i < j->n_sources && !any && !atomic_load(&j->park); i++)
            if (!w->done[i]) any = poll_source(w, j->sources[i], 20 / open + 1);
    }
    return NULL;
}

void job_park(job *j) {
    pthread_mutex_lock(&j->park_lock);
    atomic_store(&j->park, true);
    pthread_cond_broadcast(&j->park_cond);
    while (j->parked < j->running) pthread_cond_wait(&j->park_cond, &j->park_lock);
    pthread_mutex_unlock(&j->park_lock);
}
void job_unpark(job *j) {
    pthread_mutex_lock(&j->park_lock);
    atomic_store(&j->park, false);
    pthread_cond_broadcast(&j->park_cond);
    pthread_mutex_unlock(&j->park_lock);
}
void job_reading_again(job *j, const job_source *src) {
    for (uint32_t i = 0; j->workers && i < j->n_workers; i++) j->workers[i]->done[src->index] = false;
    atomic_store(&j->sources[src->index]->readers_done, 0);
}
bool job_all_done(job *j) {
    for (uint32_t i = 0; i < j->n_sources; i++)
        if (atomic_load(&j->sources[i]->readers_done) < j->n_workers) return false;
    return true;
}

static fz_status worker_new(job *j, uint32_t number, job_worker **out, fz_error *err) {
    job_worker *w = FZ_NEW(job_worker);
    w->j = j;
    w->number = number;
    w->readers = fz_calloc(j->n_sources, sizeof *w->readers);
    w->states = fz_calloc(j->n_sources, sizeof *w->states);
    w->done = fz_calloc(j->n_sources, sizeof *w->done);
    *out = w;
    for (uint32_t i = 0; i < j->n_sources; i++) {
        job_source *src = j->sources[i];
        FZ_TRY(job_scan_reader_new(src->scan, &w->readers[i], err));
        w->states[i] = fz_calloc(src->n_paths, sizeof *w->states[i]);
        for (uint32_t k = 0; k < src->n_paths; k++) w->states[i][k] = ex_state_new(src->paths[k]->program);
    }
    return FZ_OK;
}

fz_status job_workers_start(job *j, fz_error *err) {
    j->workers = fz_calloc(j->n_workers, sizeof(job_worker *));
    for (uint32_t i = 0; i < j->n_workers; i++) FZ_TRY(worker_new(j, i, &j->workers[i], err));
    for (uint32_t i = 0; i < j->n_workers; i++) {
        if (pthread_create(&j->workers[i]->thread, NULL, worker_main, j->workers[i]) != 0)
            return fz_fail(err, FZ_FATAL, "job.thread", "cannot start a worker thread");
        j->running++;
    }
    return FZ_OK;
}

void job_workers_end(job *j) {
    if (!j->workers) return;
    pthread_mutex_lock(&j->park_lock);
    atomic_store(&j->quit, true);
    pthread_cond_broadcast(&j->park_cond);
    pthread_mutex_unlock(&j->park_lock);
    for (uint32_t i = 0; i < j->n_workers; i++) {
        job_worker *w = j->workers[i];
        if (!w) continue;
        if (i < j->running) pthread_join(w->thread, NULL);
        for (uint32_t s = 0; s < j->n_sources; s++) {
            job_scan_reader_free(w->readers[s]);
            for (uint32_t k = 0; w->states[s] && k < j->sources[s]->n_paths; k++) ex_state_free(w->states[s][k]);
            fz_free(w->states[s]);
        }
        fz_free(w->readers);
        fz_free(w->states);
        fz_free(w->done);
        fz_free(w);
    }
    fz_free(j->workers);
    j->workers = NULL;
    j->running = 0;
}
