/* Giving up what a table could not take within retry.duration: its records go to an error object, a record of the ranges to the state directory (diverts.h), and the table gets both with its next commit.
 *
 *     WAITING, the window over, one more attempt failed -> pass: workers hand the sink's chunks to it (DIVERTING) -> the object and the record, by a thread of its own -> WAITING, from behind the ranges
 *
 * What a pass takes: what the sink has tried already, and what came in longer than retry.duration ago. A record that came in later has its own window, and a source that keeps records for us (a spool) holds
 * those of 5/4 of the window at most. Of these records only those that give rows lie in the object; what is filtered, rejected or unparseable has its fate at once, as in a commit.
 *
 * Invariants
 *  1. Object before record, record before the source may forget and before the sink reads on. Whatever ends in between, the ranges are read again from the table's position.
 *  2. The object's name follows from its ranges alone.
 *  3. A pass that fails leaves the sink where it was.
 * Threads: job_divert_take: workers; the put: its own; the rest: the control thread.
 */
#include "job/error_line.h"
#include "job/job_int.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ERROR_TYPE "iceberg-failed"
#define LONGEST_PASS_NS 60000000000ll
#define LOOK_NS 50000000ll
#define IN_MEMORY ((size_t)1 << 20)

#define USED(name, type, dflt, doc) {name, FZ_OPT_##type, FZ_OPT_USED, dflt, NULL, doc, NULL}
static const fz_option options[] = {
    USED("error.path", STRING, NULL,
         "Where rows go that are given up: s3://bucket/prefix/, file:///dir/ or /dir/, with expressions as for firehose-s3. What the table could not take within 'retry.duration' goes there with the error type iceberg-failed, for "
         "`frazil replay`; rows that can never fit, with iceberg-rejected, in place of dead letters. Unless set (here or by frazil.error.path), nothing is given up: the sink waits, and its records with it."),
    USED("retry.duration", DURATION, NULL, "How long the table is tried before what it could not take is given up. The default is frazil.retry.duration."),
    {NULL, FZ_OPT_STRING, FZ_OPT_USED, NULL, NULL, NULL, NULL},
};
const fz_option *job_sink_options(void) { return options; }

fz_status job_sink_options_check(const fz_pair *o, size_t n, const char *table, fz_error *err) {
    for (size_t i = 0; i < n; i++) {
        const fz_option *k = fz_option_find(options, o[i].key);
        if (!k) k = fz_option_find(fio_options(), o[i].key);
        if (!k) k = fz_option_find(aws_options(), o[i].key);
        if (!k) {
            fz_fail(err, FZ_USER, "option.unknown", "an INSERT into %s has no option '%s'", table, o[i].key);
            const char *near = fz_option_nearest(options, o[i].key);
            if (near) (void)!fz_hint(err, "did you mean '%s'?", near);
            return fz_at(err, o[i].line, o[i].column);
        }
        if (fz_option_check(k, o[i].value, err) != FZ_OK) return fz_at(err, o[i].line, o[i].column);
        if (strcmp(o[i].key, "error.path") != 0) continue;
        dlv_errors *place;
        if (dlv_errors_new(o[i].value, "p", table, &place, err) != FZ_OK) return fz_at(err, o[i].line, o[i].column);
        dlv_errors_free(place);
    }
    return FZ_OK;
}

struct job_divert {
    dlv_errors *place;
    fio *io;
    int64_t retry_ms;
    /* of the pass */
    atomic_int_fast64_t cut_ms;      /* records that came in later are not taken, unless they were tried before */
    atomic_int_fast64_t next_old_ms; /* when the oldest record came in that was left; INT64_MAX: none was */
    atomic_bool full;
    int64_t began_ns, looked_ns;
    int64_t next_ns, gathered_ns; /* no pass before; nor before the latter, unless a source has no room for what gathers */
    fz_error why;
    uint32_t attempts;
    pthread_mutex_t lock;            /* the body */
    fz_buf mem;
    int fd;                          /* what memory does not hold: an unnamed file, or -1 */
    uint64_t bytes, records, rows, hash;
    int64_t oldest_ms;
    /* of the put */
    pthread_t thread;
    bool putting;
    atomic_bool put_done;
    job_given *given;                /* the thread's while it runs */
    job_diverts *list;
    fz_status rc;
    fz_error err;
    fz_log_limit full_limit, many_limit;
};

/* ---- options ---- */

/* Of several INSERTs into one table those that name options must name the same. */
static fz_status options_of(const job *j, const job_sink *s, const fz_pair **o, size_t *n, fz_error *err) {
    *o = NULL;
    *n = 0;
    for (uint32_t i = 0; i < j->n_paths; i++) {
        const job_insert *in = j->paths[i].insert;
        if (j->paths[i].sink != s || !in->n_options) continue;
        bool same = *n == 0 || *n == in->n_options;
        for (size_t k = 0; same && *n && k < *n; k++) {
            const char *v = fz_pair_get(in->options, in->n_options, (*o)[k].key);
            same = v && strcmp(v, (*o)[k].value) == 0;
        }
        if (!same) {
            fz_fail(err, FZ_USER, "option.conflict", "two INSERTs into %s name different OPTIONS", s->text);
            (void)!fz_hint(err, "several INSERTs into one table are one sink: give the hint to one of them, or the same to all");
            return fz_at(err, in->pos.line, in->pos.column);
        }
        *o = in->options;
        *n = in->n_options;
    }
    return FZ_OK;
}

static fz_status open_store(const job *j, const fz_pair *o, size_t n, fio **out, fz_error *err) {
    bool own = false;
    for (size_t i = 0; i < n; i++) own |= !fz_option_find(options, o[i].key);
    if (!own) return job_settings_store(j->spec->settings, out, err);
    fz_pair *v = fz_calloc(n + 1, sizeof *v);
    memcpy(v, o, n * sizeof *v);
    if (!fz_pair_get(o, n, "s3.retry.num-retries")) v[n++] = (fz_pair){.key = "s3.retry.num-retries", .value = "1"}; /* a store in trouble must not hold up the others' commits; what fails is tried again */
    fz_status rc = fio_new(v, n, out, err);
    fz_free(v);
    return rc;
}

fz_status job_divert_open(job *j, job_sink *s, fz_error *err) {
    const fz_pair *o;
    size_t n;
    const conf *c = j->spec->settings;
    FZ_TRY(job_diverts_open(conf_get(c, "frazil.state.dir"), j->spec->name, s->text, s->table->metadata->uuid, &s->diverts, err));
    FZ_TRY(options_of(j, s, &o, &n, err));
    const char *path = fz_pair_get(o, n, "error.path"), *retry = fz_pair_get(o, n, "retry.duration");
    if (!path) path = conf_get(c, "frazil.error.path");
    if (!path || !*path) return FZ_OK;
    job_divert *d = s->divert = FZ_NEW(job_divert);
    pthread_mutex_init(&d->lock, NULL);
    d->fd = -1;
    d->list = s->diverts;
    d->retry_ms = conf_get_i64(c, "frazil.retry.duration");
    if (retry) FZ_TRY(fz_parse_duration_ms(retry, &d->retry_ms, err));
    if (dlv_errors_new(path, j->spec->name, s->text, &d->place, err) != FZ_OK) return fz_context(err, fz_pair_get(o, n, "error.path") ? "the INSERT into %s" : "frazil.error.path, for table %s", s->text);
    FZ_TRY(open_store(j, o, n, &d->io, err));
    s->letters = dead_letters_new_at(d->place, d->io);
    return FZ_OK;
}

static void drop_body(job_divert *d) {
    if (d->fd >= 0) close(d->fd);
    d->fd = -1;
    fz_buf_free(&d->mem);
    d->mem = (fz_buf){0};
    d->bytes = d->records = d->rows = d->hash = 0;
    d->oldest_ms = 0;
    atomic_store(&d->full, false);
}

void job_divert_close(job_sink *s) {
    job_divert *d = s->divert;
    if (d && d->putting) {
        pthread_join(d->thread, NULL);
        if (d->rc != FZ_OK) fz_log_error(FZ_LOG_WARN, "divert.failed", &d->err);
    }
    dead_letters_free(s->letters);
    if (d) {
        drop_body(d);
        dlv_errors_free(d->place);
        fio_unref(d->io);
        pthread_mutex_destroy(&d->lock);
        fz_free(d);
    }
    job_diverts_free(s->diverts);
    fz_arena_free(s->pending_arena);
}

fio *job_divert_store(const job_sink *s) { return s->divert ? s->divert->io : NULL; }
int64_t job_divert_window_ns(const job_sink *s) { return s->divert && s->can_rewind ? s->divert->retry_ms * 1000000 : INT64_MAX; }

/* ---- the body: workers ---- */

static fz_status no_room(const char *what, fz_error *err) { return fz_fail(err, FZ_RETRY, "divert.io", "what is to be given up cannot be %s: %s", what, strerror(errno)); }

static fz_status spill(job_divert *d, fz_error *err) {
    if (d->fd < 0) {
        const char *dir = getenv("TMPDIR");
        d->fd = open(dir && *dir == '/' ? dir : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (d->fd < 0) return no_room("kept", err);
    }
    for (size_t done = 0; done < d->mem.len;) {
        ssize_t w = write(d->fd, d->mem.data + done, d->mem.len - done);
        if (w > 0) done += (size_t)w;
        else if (errno != EINTR) return no_room("kept", err);
    }
    d->mem.len = 0;
    return FZ_OK;
}

static fz_status add_lines(job_divert *d, const fz_buf *lines, const size_t *end, uint32_t n, uint64_t rows, int64_t oldest_ms, fz_error *err) {
    pthread_mutex_lock(&d->lock);
    for (uint32_t i = 0; i < n; i++) {
        size_t from = i ? end[i - 1] : 0;
        d->hash = job_lines_hash(d->hash, lines->data + from, end[i] - from);
    }
    fz_buf_append(&d->mem, lines->data, lines->len);
    d->bytes += lines->len;
    d->records += n;
    d->rows += rows;
    if (oldest_ms > 0 && (!d->oldest_ms || oldest_ms < d->oldest_ms)) d->oldest_ms = oldest_ms;
    if (d->bytes >= FZ_MAX_ERROR_OBJECT) atomic_store(&d->full, true);
    fz_status rc = d->mem.len > IN_MEMORY ? spill(d, err) : FZ_OK;
    pthread_mutex_unlock(&d->lock);
    return rc;
}

fz_status job_divert_take(job_sink *s, const job_source *src, const fz_chunk *c, const uint32_t *rows, fz_error *err) {
    job_divert *d = s->divert;
    const job_split_key *key = &s->splits[src->index][c->split].key;
    fz_buf b = {0};
    size_t *end = fz_calloc(c->n ? c->n : 1, sizeof *end);
    uint32_t n = 0;
    uint64_t sum = 0;
    int64_t oldest = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        const fz_record *r = &c->rec[i];
        if (!rows[i]) continue;
        job_error_line_put(&b, &(job_error_line){.attempts = d->attempts, .ended_ms = atomic_load(&d->cut_ms) + d->retry_ms, .code = dlv_error_code(&d->why), .message = d->why.message, .table = s->text,
                                                 .source = src->scan_plan->table->path, .identity = key->source, .topic = key->topic, .partition = key->partition, .rows = rows[i], .record = r});
        end[n++] = b.len;
        sum += rows[i];
        if (r->timestamp_ms > 0 && (!oldest || r->timestamp_ms < oldest)) oldest = r->timestamp_ms;
    }
    fz_status rc = n ? add_lines(d, &b, end, n, sum, oldest, err) : FZ_OK;
    fz_free(end);
    fz_buf_free(&b);
    return rc;
}

static void note_left(job_divert *d, int64_t ms) {
    int_fast64_t had = atomic_load(&d->next_old_ms);
    while (ms > 0 && ms < had && !atomic_compare_exchange_weak(&d->next_old_ms, &had, ms)) {}
}

void job_divert_cut(job_sink *s, const job_source *src, const fz_chunk *c) {
    job_divert *d = s->divert;
    job_split_state *st = &s->splits[src->index][c->split];
    if (c->to <= st->next || st->next >= st->limit) return;
    if (atomic_load(&d->full)) {
        st->limit = st->next;
        return;
    }
    int64_t cut = atomic_load(&d->cut_ms);
    for (uint32_t i = 0; i < c->n && c->rec[i].offset < st->limit; i++) {
        const fz_record *r = &c->rec[i];
        if (r->offset < st->next || r->offset < st->tried || (r->timestamp_ms >= 0 && r->timestamp_ms <= cut)) continue;
        st->limit = r->offset;
        note_left(d, r->timestamp_ms);
    }
}

/* ---- a pass: control thread ---- */

typedef void (*split_fn)(void *cx, job_source *src, uint32_t split, job_split_state *st);
static void each_split(job *j, job_sink *s, split_fn fn, void *cx) {
    for (uint32_t k = 0; k < j->n_sources; k++)
        for (uint32_t i = 0; s->splits[k] && j->sources[k]->replayable && i < s->n_splits[k]; i++) fn(cx, j->sources[k], i, &s->splits[k][i]);
}

static void note_tried(void *cx, job_source *src, uint32_t split, job_split_state *st) {
    (void)cx, (void)src, (void)split;
    if (st->next > st->tried) st->tried = st->next;
}
void job_divert_tried(job *j, job_sink *s) {
    if (s->divert) each_split(j, s, note_tried, NULL);
}

int64_t job_divert_wait_ns(const job_sink *s, int64_t now_ns, int64_t wait_ns) {
    const job_divert *d = s->divert;
    if (!d || !s->can_rewind) return wait_ns;
    int64_t over = s->failing_since_ns + d->retry_ms * 1000000, next = over > d->next_ns ? over : d->next_ns;
    return next > now_ns && next - now_ns < wait_ns ? next - now_ns : wait_ns; /* the last attempt comes when the window ends, not long before */
}

typedef struct room { uint64_t used, limit, full; } room;
static void take_room(void *cx, fz_metric m, const char *label, uint64_t v) {
    (void)label;
    room *r = cx;
    if (m == FZ_M_SPOOL_DISK) r->used = v;
    if (m == FZ_M_SPOOL_LIMIT) r->limit = v;
    if (m == FZ_M_SPOOL_FULL) r->full = v;
}
/* Is a spool of its sources half full? Senders shall not wait because objects are to be large. */
static bool is_pressed(const job *j, const job_sink *s) {
    bool pressed = false;
    for (uint32_t k = 0; k < j->n_sources; k++) {
        room r = {0};
        if (s->splits[k]) src_metrics(j->sources[k]->source, take_room, &r);
        pressed |= r.full || (r.limit && r.used >= r.limit / 2);
    }
    return pressed;
}
static uint32_t open_objects(const job_sink *s) { return s->n_open + job_diverts_unnamed(s->diverts); }
void job_divert_count(job_sink *s) {
    uint64_t suppressed;
    uint32_t n = open_objects(s);
    job_tally_open(&s->tally, n);
    if (s->divert && n >= FZ_MAX_DIVERTED_OPEN / 5 * 4 && fz_log_allowed(&s->divert->many_limit, 1, 60000, &suppressed))
        fz_log(FZ_LOG_WARN, "divert.many", FZ_KV("table", "%s", s->text), FZ_KV("objects", "%u", n), FZ_KV("most", "%u", FZ_MAX_DIVERTED_OPEN), FZ_KV("reason", "%s", "error objects wait for `frazil replay`: with the most of them nothing further is given up"), NULL);
}

bool job_divert_due(const job *j, job_sink *s) {
    job_divert *d = s->divert;
    int64_t now = fz_mono_ns();
    if (!d || !s->can_rewind || (s->unseen && !s->bounded_below) || d->putting || s->status != SINK_WAITING || !s->failing_since_ns || now - s->failing_since_ns < d->retry_ms * 1000000 || now < d->next_ns) return false;
    if (now < d->gathered_ns && !is_pressed(j, s)) return false;
    if (open_objects(s) < FZ_MAX_DIVERTED_OPEN) return true;
    uint64_t suppressed;
    if (fz_log_allowed(&d->full_limit, 1, 60000, &suppressed))
        fz_log(FZ_LOG_ERROR, "divert.full", FZ_KV("table", "%s", s->text), FZ_KV("objects", "%u", FZ_MAX_DIVERTED_OPEN), FZ_KV("reason", "%s", "so many error objects wait for `frazil replay`: the sink waits with what it has"), NULL);
    return false;
}
bool job_divert_busy(const job_sink *s) { return s->divert && s->divert->putting; }

typedef struct begin_cx { fz_status rc; fz_error *err; int64_t *high; uint32_t n; } begin_cx;

static void ask_high(void *cx, job_source *src, uint32_t split, job_split_state *st) {
    begin_cx *b = cx;
    int64_t low, high = st->base;
    if (b->rc == FZ_OK) b->rc = src_bounds(src->source, split, &low, &high, b->err);
    const src_split *sp = src_get_split(src->source, split);
    b->high[b->n++] = high < sp->stop ? high : sp->stop;
}
static void set_begin(void *cx, job_source *src, uint32_t split, job_split_state *st) {
    (void)src, (void)split;
    begin_cx *b = cx;
    st->from = st->next = st->base;
    st->limit = b->high[b->n++];
    st->read = st->added = st->filtered = st->rejected = st->unparseable = 0;
    st->has_last = st->claim = false;
}
static void no_limit(void *cx, job_source *src, uint32_t split, job_split_state *st) {
    (void)cx, (void)src, (void)split;
    st->from = st->next = st->base;
    st->limit = INT64_MAX;
    st->read = st->added = st->filtered = st->rejected = st->unparseable = 0;
}
static void count_again(void *cx, job_source *src, uint32_t split, job_split_state *st) {
    job_again_add(&st->again, st->read, st->next);
    no_limit(cx, src, split, st);
}
/* What an unanswered commit had in it is given up now: should it have landed, that is not counted twice. */
static void answered(void *cx, job_source *src, uint32_t split, job_split_state *st) {
    st->again.open = false;
    no_limit(cx, src, split, st);
}

/* The next pass: when what was left is old enough, and a quarter of the window more has gathered, or a minute's when many objects are open. */
static void plan_next(const job_sink *s, bool more) {
    job_divert *d = s->divert;
    int64_t now = fz_now_ms(), left = atomic_load(&d->next_old_ms), from = left == INT64_MAX ? now : left, wait = from + d->retry_ms + d->retry_ms / 4 - now;
    d->next_ns = fz_mono_ns() + (more || wait < 0 ? 0 : wait) * 1000000;
    d->gathered_ns = d->next_ns + (more ? 0 : job_diverts_gather_ms(d->retry_ms, open_objects(s)) - d->retry_ms / 4) * 1000000;
}

static void give_up_pass(job *j, job_sink *s, const fz_error *err) {
    fz_log_error(FZ_LOG_WARN, "divert.failed", err);
    drop_body(s->divert);
    job_tally_dropped(&s->tally);
    each_split(j, s, count_again, NULL);
    s->divert->next_ns = fz_mono_ns() + 2000000000ll;
    job_set_status(j, s, SINK_WAITING);
    s->wait_until_ns = fz_mono_ns() + 1000000000ll;
}

void job_divert_begin(job *j, job_sink *s) {
    job_divert *d = s->divert;
    fz_error err = {0};
    uint32_t n = 0;
    for (uint32_t k = 0; k < j->n_sources; k++) n += s->splits[k] ? s->n_splits[k] : 0;
    begin_cx b = {.err = &err, .high = fz_calloc(n + 1, sizeof(int64_t))};
    each_split(j, s, ask_high, &b);
    job_park(j);
    drop_body(d);
    d->why = s->error;
    d->attempts = s->waits;
    d->began_ns = d->looked_ns = fz_mono_ns();
    atomic_store(&d->cut_ms, fz_now_ms() - d->retry_ms);
    atomic_store(&d->next_old_ms, INT64_MAX);
    b.n = 0;
    if (b.rc == FZ_OK) {
        each_split(j, s, set_begin, &b);
        job_set_status(j, s, SINK_DIVERTING);
        atomic_store(&s->failing, false);
    }
    for (uint32_t k = 0; b.rc == FZ_OK && k < j->n_sources; k++)
        if (s->splits[k]) b.rc = job_source_seek(j, j->sources[k], &err);
    if (b.rc != FZ_OK) {
        give_up_pass(j, s, &err);
        for (uint32_t k = 0; k < j->n_sources; k++) /* the others read on */
            if (s->splits[k] && job_source_seek(j, j->sources[k], &err) != FZ_OK) job_fail(j, &err);
    }
    job_unpark(j);
    fz_free(b.high);
}

static void look_done(void *cx, job_source *src, uint32_t split, job_split_state *st) {
    (void)src, (void)split;
    *(bool *)cx &= st->next >= st->limit;
}

static void take_given(void *cx, job_source *src, uint32_t split, job_split_state *st) {
    (void)split;
    void **v = cx;
    job_given *g = v[0];
    const job_sink *s = v[1];
    if (st->next <= st->from) return;
    const job_split_key key = {fz_arena_strdup(g->arena, st->key.source), fz_arena_strdup(g->arena, st->key.topic), st->key.partition};
    g->v[g->n++] = (job_given_split){.range = {.key = key, .from = st->from, .to = st->next, .read = st->read, .filtered = st->filtered, .rejected = st->rejected, .unparseable = st->unparseable,
                                               .paths = s->paths_of[src->index], .diverted = st->added},
                                     .after = {key, st->next, st->has_last, st->last_offset, st->last_timestamp, st->last_hash, 0}, .known = st->known || st->base_diverted};
}

static int by_key(const void *a, const void *b) { return job_split_key_cmp(&((const job_given_split *)a)->range.key, &((const job_given_split *)b)->range.key); }

static job_given *make_given(job *j, job_sink *s) {
    job_divert *d = s->divert;
    uint32_t n = 0;
    job_given *g = FZ_NEW(job_given);
    g->arena = fz_arena_new();
    for (uint32_t k = 0; k < j->n_sources; k++) n += s->splits[k] ? s->n_splits[k] : 0;
    g->v = FZ_ANEWN(g->arena, job_given_split, n + 1);
    each_split(j, s, take_given, (void *[]){g, s});
    if (g->n > 1) qsort(g->v, g->n, sizeof *g->v, by_key);
    g->records = d->records;
    g->rows = d->rows;
    g->hash = d->hash;
    g->counted = true;
    g->object = "";
    if (!g->rows) return g;
    fz_buf b = {0};
    for (uint32_t i = 0; i < g->n; i++)
        fz_buf_printf(&b, "%s\n%s\n%d %" PRId64 " %" PRId64 "\n", g->v[i].range.key.source, g->v[i].range.key.topic, g->v[i].range.key.partition, g->v[i].range.from, g->v[i].range.to);
    char *location = dlv_errors_location(d->place, d->oldest_ms ? d->oldest_ms : fz_now_ms(), ERROR_TYPE, fz_buf_cstr(&b));
    g->object = fz_arena_strdup(g->arena, location);
    fz_free(location);
    fz_buf_free(&b);
    return g;
}

/* ---- the put: its own thread ---- */

static fz_status put_body(job_divert *d, fz_error *err) {
    fio_writer *w;
    uint64_t size;
    char part[65536];
    off_t at = 0;
    ssize_t n = 0;
    FZ_TRY(fio_writer_open(d->io, d->given->object, &w, err));
    fz_status rc = FZ_OK;
    while (rc == FZ_OK && d->fd >= 0 && (n = pread(d->fd, part, sizeof part, at)) != 0) {
        if (n < 0 && errno == EINTR) continue;
        rc = n < 0 ? no_room("read again", err) : fio_writer_append(w, part, (size_t)n, err);
        at += n;
    }
    if (rc == FZ_OK && d->mem.len) rc = fio_writer_append(w, d->mem.data, d->mem.len, err);
    if (rc == FZ_OK) return fio_writer_finish(w, &size, err);
    fio_writer_abort(w);
    return rc;
}

static void *put_main(void *arg) {
    job_divert *d = arg;
    d->rc = *d->given->object ? put_body(d, &d->err) : FZ_OK;
    if (d->rc == FZ_OK) d->rc = fz_fault_status("divert.object", &d->err);
    if (d->rc == FZ_OK) d->rc = job_diverts_add(d->list, d->given, &d->err);
    else job_given_free(d->given);
    if (d->rc != FZ_OK) d->given = NULL;
    (void)fz_fault("divert.recorded");
    atomic_store(&d->put_done, true);
    return NULL;
}

static void end_pass(job *j, job_sink *s) { /* workers are parked */
    job_divert *d = s->divert;
    fz_error err;
    if (dead_letters_sync(j->letters, &err) != FZ_OK || dead_letters_sync(s->letters, &err) != FZ_OK) { /* no range may pass a dead letter that is not kept */
        give_up_pass(j, s, &err);
        return;
    }
    job_set_status(j, s, SINK_WAITING);
    s->wait_until_ns = fz_mono_ns();
    job_given *g = make_given(j, s);
    plan_next(s, atomic_load(&d->full));
    if (!g->n) { /* nothing is old enough */
        job_given_free(g);
        drop_body(d);
        each_split(j, s, no_limit, NULL);
        s->wait_until_ns += 250000000;
        return;
    }
    d->given = g;
    atomic_store(&d->put_done, false);
    d->putting = pthread_create(&d->thread, NULL, put_main, d) == 0;
    if (d->putting) return;
    job_given_free(g);
    (void)!fz_fail(&err, FZ_RETRY, "job.thread", "cannot start a thread for an error object");
    give_up_pass(j, s, &err);
}

static job_split_state *state_of(job *j, job_sink *s, const job_split_key *key) {
    for (uint32_t k = 0; k < j->n_sources; k++)
        for (uint32_t i = 0; s->splits[k] && i < s->n_splits[k]; i++)
            if (job_split_key_cmp(&s->splits[k][i].key, key) == 0) return &s->splits[k][i];
    return NULL;
}

static void count_given(job_sink *s, const job_given *g) {
    job_settled x = {.diverted = true};
    for (uint32_t i = 0; i < g->n; i++) {
        const job_range *r = &g->v[i].range;
        x.n.read += r->read * r->paths;
        x.n.added += r->diverted;
        x.n.filtered += r->filtered;
        x.n.rejected += r->rejected;
        x.n.unparseable += r->unparseable;
    }
    x.given_up = x.n.added;
    job_tally_send(&s->tally);
    job_tally_settle(&s->tally, &x);
    int64_t left = atomic_load(&s->divert->next_old_ms);
    job_tally_stuck(&s->tally, true, left == INT64_MAX ? 0 : left);
}

static void settle_put(job *j, job_sink *s) {
    job_divert *d = s->divert;
    pthread_join(d->thread, NULL);
    d->putting = false;
    const job_given *g = d->given; /* the list's now */
    job_park(j);
    if (d->rc != FZ_OK) give_up_pass(j, s, &d->err);
    else {
        for (uint32_t i = 0; i < g->n; i++) {
            job_split_state *st = state_of(j, s, &g->v[i].range.key);
            st->base = g->v[i].range.to;
            st->base_diverted = true;
        }
        job_note_stands(j, s);
        job_divert_count(s);
        each_split(j, s, answered, NULL);
        count_given(s, g);
        fz_log(g->rows ? FZ_LOG_WARN : FZ_LOG_INFO, "sink.diverted", FZ_KV("table", "%s", s->text), FZ_KV("rows", "%" PRIu64, g->rows), FZ_KV("records", "%" PRIu64, g->records), FZ_KV("splits", "%u", g->n),
               FZ_KV("object", "%s", g->object), FZ_KV("code", "%s", d->why.code), NULL);
        drop_body(d);
        s->wait_until_ns = fz_mono_ns();
    }
    job_unpark(j);
}

void job_divert_tend(job *j, job_sink *s) {
    job_divert *d = s->divert;
    if (!d) return;
    if (d->putting && atomic_load(&d->put_done)) settle_put(j, s);
    if (s->status != SINK_DIVERTING || fz_mono_ns() - d->looked_ns < LOOK_NS) return;
    d->looked_ns = fz_mono_ns();
    bool done = true;
    job_park(j);
    each_split(j, s, look_done, &done);
    fz_error err = s->error;
    if (atomic_load(&s->failing)) {
        atomic_store(&s->failing, false);
        s->error = d->why;
        give_up_pass(j, s, &err);
        if (err.cls == FZ_DATA) job_set_status(j, s, SINK_FAILED), s->error = err; /* frazil.on-row-error = fail */
    } else if (done || d->looked_ns - d->began_ns > LONGEST_PASS_NS) end_pass(j, s);
    job_unpark(j);
}

bool job_divert_all(const job *j, const job_sink *s) {
    if (!s->divert || s->divert->putting || s->status != SINK_WAITING || !s->waits) return false;
    for (uint32_t k = 0; k < j->n_sources; k++)
        for (uint32_t i = 0; s->splits[k] && i < s->n_splits[k]; i++)
            if (s->splits[k][i].base < src_get_split(j->sources[k]->source, i)->stop) return false;
    return true;
}
