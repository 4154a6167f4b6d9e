/* See replay.h. */
#include "job/replay.h"
#include "job/job_int.h"
#include <inttypes.h>

#define RECORDS_A_BATCH 4096u
#define BYTES_A_BATCH ((uint64_t)2 << 20)
#define OBJECTS_A_COMMIT 32u
#define ROWS_A_COMMIT 1000000u
#define MAX_ROUNDS 6

typedef struct target { char *text; cat_catalog *catalog; } target; /* catalog NULL: a delivery */

struct job_replay {
    char *prefix;
    job_replay_fn fn;
    void *cx;
    fz_hashset told;        /* objects */
    fio *io;                /* for the listing */
    target *targets;        /* of the script so far */
    uint32_t n_targets, cap_targets;
    int exit_code;          /* of all statements: what is left open by one holds up no other */
};

job_replay *job_replay_new(const char *prefix, job_replay_fn fn, void *cx) {
    job_replay *r = FZ_NEW(job_replay);
    r->prefix = fz_strdup(prefix);
    r->fn = fn;
    r->cx = cx;
    return r;
}
void job_replay_free(job_replay *r) {
    if (!r) return;
    fz_hashset_free(&r->told);
    for (uint32_t i = 0; i < r->n_targets; i++) fz_free(r->targets[i].text);
    fz_free(r->targets);
    fio_unref(r->io);
    fz_free(r->prefix);
    fz_free(r);
}

static void note_object(job_replay *r, const char *object) {
    fz_buf b = {0};
    dlv_location_key(object, &b);
    fz_hashset_add(&r->told, fz_hash(b.data, b.len));
    fz_buf_free(&b);
}
static void tell(job_replay *r, const job_replay_object *o) {
    note_object(r, o->object);
    r->fn(r->cx, o);
}

/* ---- one table ---- */

typedef struct table_run {
    job_replay *r;
    job *j;
    job_sink *s;
    fio *io;
    fz_arena *records;             /* of those gathered */
    job_scan_reader **readers;     /* by source */
    ex_state **states;             /* by path */
    /* gathered records of one split */
    fz_record *rec;
    uint32_t n, cap;
    uint64_t bytes;
    job_source *src;
    uint32_t split;
    const char *identity;
    /* of the object under way */
    const job_diverted *object;
    job_replayed *fates;
    uint32_t commits;
} table_run;

static job_source *source_of(const table_run *t, const char *name) {
    for (uint32_t i = 0; i < t->j->n_paths; i++) {
        const job_path *p = &t->j->paths[i];
        if (p->sink == t->s && p->source && strcmp(p->source->scan_plan->table->path, name) == 0) return p->source;
    }
    return NULL;
}

static fz_status settle(const table_run *t, const fz_chunk *c, const fz_rejects *rejects, uint32_t from, fz_error *err) {
    const src_split *split = src_get_split(t->src->source, t->split);
    for (uint32_t i = from; i < rejects->n; i++) {
        const fz_reject *x = &rejects->v[i];
        int policy = strcmp(x->code, "not-null") == 0 ? (int)t->j->on_null : (int)t->j->on_row_error;
        if (policy == ROW_FAIL) {
            fz_fail(err, FZ_DATA, x->code, "%s", x->message);
            return fz_detail(err, "record %s offset %" PRId64, split->name, c->rec[x->rec].offset);
        }
        if (policy != ROW_DEAD_LETTER) continue;
        const dead_letter l = {.sink = t->s->text, .source = t->src->scan_plan->table->path, .topic = split->topic, .identity = t->identity, .partition = split->partition, .code = x->code, .message = x->message,
                               .expression = x->expr, .record = &c->rec[x->rec]};
        FZ_TRY(dead_letters_add(t->s->letters ? t->s->letters : t->j->letters, &l, err));
    }
    return FZ_OK;
}

static fz_status run_path(table_run *t, uint32_t path, const fz_chunk *c, const job_rows *rows, col_batch *b, fz_rejects *rejects, fz_error *err) {
    ex_result x;
    uint32_t before = rejects->n, added = 0;
    FZ_TRY(ex_run(t->j->paths[path].program, t->states[path], rows->cols, rows->n_rows, b->arena, &x, rejects, err));
    for (uint32_t i = before; i < rejects->n; i++) rejects->v[i].rec = rows->row_rec[rejects->v[i].rec];
    fz_rejects nulls = {0};
    fz_status rc = x.n_rows ? job_hand_over(t->j, t->s, b, x.cols, x.n_rows, &nulls, &added, err) : FZ_OK;
    for (uint32_t i = 0; i < nulls.n; i++) {
        FZ_GROW(rejects->v, rejects->n, rejects->cap);
        rejects->v[rejects->n] = nulls.v[i];
        rejects->v[rejects->n++].rec = rows->row_rec[x.row[nulls.v[i].rec]];
    }
    fz_free(nulls.v);
    FZ_TRY(rc);
    t->fates->added += added;
    t->fates->filtered += x.n_filtered;
    t->fates->rejected += rejects->n - before;
    return settle(t, c, rejects, before, err);
}

/* What was gathered, through all INSERTs that read its source. */
static fz_status flush(table_run *t, fz_error *err) {
    if (!t->n) return FZ_OK;
    fz_chunk c = {.split = t->split, .n = t->n, .from = t->rec[0].offset, .to = t->rec[t->n - 1].offset + 1, .bytes = t->bytes, .rec = t->rec};
    col_batch *b = col_batch_new(NULL, t->n);
    fz_rejects rejects = {0};
    job_rows rows;
    uint32_t n_paths = 0;
    fz_status rc = job_scan_decode(t->readers[t->src->index], &c, b->arena, &rows, &rejects, err);
    if (rc == FZ_OK) rc = settle(t, &c, &rejects, 0, err);
    for (uint32_t i = 0; rc == FZ_OK && i < t->j->n_paths; i++) {
        if (t->j->paths[i].sink != t->s || t->j->paths[i].source != t->src) continue;
        n_paths++;
        rc = run_path(t, i, &c, &rows, b, &rejects, err);
    }
    if (rc == FZ_OK) {
        t->fates->rejected += (uint64_t)rows.n_rejected * n_paths;
        t->fates->unparseable += (uint64_t)rows.n_unparseable * n_paths;
    }
    if (rc == FZ_OK && atomic_load(&t->s->failing)) { /* a writer could not write */
        *err = t->s->error;
        rc = err->cls;
    }
    fz_free(rejects.v);
    col_batch_release(b);
    t->n = 0;
    t->bytes = 0;
    fz_arena_reset(t->records);
    return rc;
}

static bool counts(const job_diverted *o, const job_error_record *r) {
    const job_split_key key = {r->identity, r->topic, r->partition};
    for (uint32_t i = 0; i < o->n_parts; i++)
        if (job_split_key_cmp(&o->parts[i].key, &key) == 0 && r->record.offset >= o->parts[i].from && r->record.offset < o->parts[i].to) return true;
    return false;
}

/* The record's memory is t->records', which flush gives back: what is gathered is flushed before a record of another split is looked at. */
static fz_status take(void *cx, const job_error_record *r, fz_error *err) {
    table_run *t = cx;
    if (!counts(t->object, r)) return FZ_OK;
    job_source *src = source_of(t, r->source);
    uint32_t split = src_replayed_split(src->source, r->topic, r->partition);
    bool other = t->n && (src != t->src || split != t->split || r->record.offset <= t->rec[t->n - 1].offset);
    fz_arena *mine = NULL;
    if (other) { /* r outlives what was gathered before it */
        mine = t->records;
        t->records = fz_arena_new();
        FZ_TRY(flush(t, err));
        fz_arena_free(t->records);
        t->records = mine;
    }
    t->src = src;
    t->split = split;
    t->identity = r->identity;
    FZ_GROW(t->rec, t->n, t->cap);
    t->rec[t->n++] = r->record;
    t->bytes += (uint64_t)(r->record.value_len > 0 ? r->record.value_len : 0);
    return t->n >= RECORDS_A_BATCH || t->bytes >= BYTES_A_BATCH ? flush(t, err) : FZ_OK;
}

static fz_status look(void *cx, const job_error_record *r, fz_error *err) {
    table_run *t = cx;
    fz_status rc = FZ_OK;
    if (counts(t->object, r) && !source_of(t, r->source)) {
        rc = fz_fail(err, FZ_DATA, "replay.source", "its records were read from table %s, and the script does not read that one into %s", r->source, t->s->text);
        (void)!fz_hint(err, "replay with the script that the job runs");
    }
    fz_arena_reset(t->records);
    return rc;
}

/* Is the object whole, as it was written, and can the script take it? */
static fz_status verify(table_run *t, const job_diverted *o, fz_error *err) {
    t->object = o;
    const job_error_read read = {.io = t->io, .object = o->object, .records = o->records, .hash = o->hash, .check = true, .arena = t->records};
    fz_status rc = job_error_object_each(&read, look, t, err);
    fz_arena_reset(t->records);
    return rc;
}

static fz_status run_object(table_run *t, const job_diverted *o, job_replayed *fates, fz_error *err) {
    t->object = o;
    t->fates = fates;
    *fates = (job_replayed){.object = o->object};
    const job_error_read read = {.io = t->io, .object = o->object, .records = o->records, .hash = o->hash, .check = true, .arena = t->records};
    FZ_TRY(job_error_object_each(&read, take, t, err));
    return flush(t, err);
}

static void tell_table(const table_run *t, const job_diverted *o, job_replay_state state, const job_replayed *f, const fz_error *err) {
    job_replay_object x = {.target = t->s->text, .object = o->object, .state = state, .rows = o->rows, .err = err};
    if (f) x.added = f->added, x.filtered = f->filtered, x.rejected = f->rejected, x.unparseable = f->unparseable;
    tell(t->r, &x);
}

/* ---- commits ---- */

typedef struct batch { const job_diverted *o[OBJECTS_A_COMMIT]; job_replayed fates[OBJECTS_A_COMMIT]; uint32_t n; uint64_t rows; } batch;

static fz_status commit(table_run *t, batch *b, job_commit_outcome *out, fz_error *err) {
    job_sink *s = t->s;
    job_prepared *p = FZ_NEW(job_prepared);
    *p = (job_prepared){.sink = s, .arena = fz_arena_new(), .n_shards = t->j->n_writers, .n_replayed = b->n, .replayed = b->fates};
    p->files = FZ_ANEWN(p->arena, sink_files, p->n_shards);
    snprintf(p->commit_id, sizeof p->commit_id, "%s/replay-%u/%u", t->j->run_id, ++t->commits, s->index);
    fz_status rc = job_writers_close(t->j, s, p->files, err);
    for (uint32_t i = 0; i < p->n_shards; i++) p->n_files += p->files[i].n;
    if (rc == FZ_OK && s->letters) rc = dead_letters_sync(s->letters, err);
    if (rc == FZ_OK) rc = dead_letters_sync(t->j->letters, err);
    if (rc == FZ_OK) rc = fz_fault_status("replay.object", err);
    if (rc == FZ_OK) {
        *out = job_commit(t->j, p, err);
        (void)fz_fault("replay.done");
        rc = *out == COMMIT_FAILED || *out == COMMIT_LATER ? err->cls : FZ_OK;
    } else
        for (uint32_t i = 0; i < p->n_shards; i++) sink_discard_files(s->table->io, p->files[i].v, p->files[i].n);
    job_prepared_free(p);
    return rc;
}

static void tell_batch(table_run *t, const batch *b, job_replay_state state, const fz_error *err) {
    for (uint32_t i = 0; i < b->n; i++) tell_table(t, b->o[i], state, state == JOB_REPLAY_DONE ? &b->fates[i] : NULL, err);
}

static fz_status open_objects(const table_run *t, fz_arena *a, job_lineage *l, fz_error *err) {
    cat_table *now = NULL;
    FZ_TRY(cat_load_table(t->s->catalog, &t->s->ident, &now, err));
    const ice_io io = job_io(t->j, now);
    fz_status rc = job_lineage_read(a, now->metadata, t->j->spec->name, NULL, &io, l, err);
    cat_table_free(now);
    if (rc == FZ_OK && l->unproven && t->j->positions != POSITIONS_ADOPT)
        rc = fz_fail(err, FZ_FATAL, "positions.unproven", "table %s: the snapshot that names what was given up (%" PRId64 ") is in no lineage that is known", t->s->text, l->snapshot_id);
    return rc;
}

/* The next objects that are open, under the prefix and not told of. */
static fz_status next_batch(table_run *t, const job_lineage *l, batch *b, fz_error *err) {
    *b = (batch){0};
    for (uint32_t i = 0; i < l->marks.n_diverted && b->n < OBJECTS_A_COMMIT && b->rows < ROWS_A_COMMIT; i++) {
        const job_diverted *o = &l->marks.diverted[i];
        fz_buf key = {0};
        dlv_location_key(o->object, &key);
        bool told = fz_hashset_has(&t->r->told, fz_hash(key.data, key.len));
        fz_buf_free(&key);
        if (told || !dlv_location_under(o->object, t->r->prefix)) continue;
        fz_error own;
        fz_status rc = verify(t, o, &own);
        if (rc != FZ_OK) { /* it alone stays open */
            t->r->exit_code = JOB_FAILED;
            tell_table(t, o, JOB_REPLAY_FAILED, NULL, &own);
            continue;
        }
        if ((rc = run_object(t, o, &b->fates[b->n], err)) != FZ_OK) {
            t->n = 0;
            job_writers_abort(t->j, t->s);
            atomic_store(&t->s->failing, false);
            tell_table(t, o, JOB_REPLAY_FAILED, NULL, err);
            tell_batch(t, b, JOB_REPLAY_FAILED, err);
            return rc;
        }
        b->rows += b->fates[b->n].added;
        b->o[b->n++] = o;
    }
    return FZ_OK;
}

static fz_status run_table(table_run *t, fz_error *err) {
    for (uint32_t rewinds = 0;;) {
        fz_arena *a = fz_arena_new();
        job_lineage l;
        batch b;
        job_commit_outcome out = COMMIT_DONE;
        fz_status rc = open_objects(t, a, &l, err);
        if (rc == FZ_OK) rc = next_batch(t, &l, &b, err);
        bool over = rc != FZ_OK || !b.n;
        if (!over && (rc = commit(t, &b, &out, err)) != FZ_OK) tell_batch(t, &b, JOB_REPLAY_FAILED, err);
        else if (!over && out != COMMIT_REWIND) tell_batch(t, &b, out == COMMIT_DONE ? JOB_REPLAY_DONE : JOB_REPLAY_BEFORE, NULL);
        fz_arena_free(a);
        if (rc != FZ_OK || over) return rc;
        if (out == COMMIT_REWIND && ++rewinds > MAX_ROUNDS) return err->cls = FZ_FATAL;
    }
}

/* What is open for pipelines of other names: theirs to replay, until one takes their positions over. */
static fz_status tell_others(table_run *t, const cat_table *now, fz_arena *a, fz_error *err) {
    job_marks *others;
    uint32_t n;
    FZ_TRY(job_lineage_others(a, now->metadata, t->j->spec->name, &others, &n, err));
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < others[i].n_diverted; k++) {
            fz_error own;
            const job_diverted *o = &others[i].diverted[k];
            if (!dlv_location_under(o->object, t->r->prefix)) continue;
            fz_fail(&own, FZ_USER, "replay.other-pipeline", "pipeline '%s' has given it up, and the script's is '%s'", others[i].pipeline, t->j->spec->name);
            (void)!fz_hint(&own, "replay with pipeline.name = '%s'; a job that starts with frazil.positions = adopt takes it over", others[i].pipeline);
            t->r->exit_code = JOB_FAILED;
            tell(t->r, &(job_replay_object){.target = t->s->text, .object = o->object, .state = JOB_REPLAY_OTHER, .rows = o->rows, .err = &own});
        }
    return FZ_OK;
}

/* What the lineage says was replayed, and what the state directory says the table is still to be told. */
static fz_status note_known(table_run *t, fz_error *err) {
    cat_table *now = NULL;
    FZ_TRY(cat_load_table(t->s->catalog, &t->s->ident, &now, err));
    fz_arena *a = fz_arena_new();
    bool cut, found;
    job_lineage l;
    const ice_io io = job_io(t->j, now);
    fz_status rc = job_lineage_read(a, now->metadata, t->j->spec->name, NULL, &io, &l, err);
    for (const ice_snapshot *s = ice_metadata_current(now->metadata); rc == FZ_OK && s; s = ice_snapshot_parent(now->metadata, s, &cut)) {
        job_marks m;
        if (!fz_pair_get(s->summary, s->n_summary, JOB_KEY_REPLAYED)) continue;
        rc = job_marks_decode(a, s->summary, s->n_summary, &m, &found, err);
        for (uint32_t i = 0; rc == FZ_OK && i < m.n_replayed; i++)
            if (!job_diverted_find(l.marks.diverted, l.marks.n_diverted, m.replayed[i].object)) note_object(t->r, m.replayed[i].object);
    }
    for (uint32_t i = 0; rc == FZ_OK && i < l.marks.n_diverted; i++) note_object(t->r, l.marks.diverted[i].object);
    uint32_t at = 0;
    for (const char *object; rc == FZ_OK && (object = job_diverts_next_unnamed(t->s->diverts, &l, &at));)
        if (dlv_location_under(object, t->r->prefix)) {
            tell(t->r, &(job_replay_object){.target = t->s->text, .object = object, .state = JOB_REPLAY_WAITING});
            t->r->exit_code = JOB_FAILED;
        }
    if (rc == FZ_OK) rc = tell_others(t, now, a, err);
    fz_arena_free(a);
    cat_table_free(now);
    return rc;
}

static fz_status open_table(job *j, job_sink *s, fz_error *err) {
    FZ_TRY(cat_load_table(s->catalog, &s->ident, &s->table, err));
    FZ_TRY(sink_table_new(s->table->io, s->table->metadata, j->run_id, s->index, &s->files, err));
    s->can_rewind = true;
    return job_divert_open(j, s, err);
}

static fz_status replay_table(job_replay *r, job *j, job_sink *s, job_scan_reader **readers, ex_state **states, fz_error *err) {
    FZ_TRY(open_table(j, s, err));
    fio *io = fio_ref(job_divert_store(s));
    if (!io) FZ_TRY(job_settings_store(j->spec->settings, &io, err));
    table_run t = {.r = r, .j = j, .s = s, .io = io, .records = fz_arena_new(), .readers = readers, .states = states};
    fz_status rc = run_table(&t, err);
    if (rc == FZ_OK) rc = note_known(&t, err);
    if (!r->io) r->io = fio_ref(io);
    fz_free(t.rec);
    fz_arena_free(t.records);
    fio_unref(io);
    return rc;
}

/* ---- deliveries ---- */

typedef struct delivery_cx { job_replay *r; const job *j; const job_sink *s; } delivery_cx;

static void tell_delivery(void *cx, const dlv_replay_object *o) {
    delivery_cx *d = cx;
    static const job_replay_state states[] = {[DLV_REPLAYED] = JOB_REPLAY_DONE, [DLV_UNREADABLE] = JOB_REPLAY_FAILED};
    if (o->state == DLV_OPEN || o->state == DLV_REPLAYED_BEFORE) {
        note_object(d->r, o->object);
        return;
    }
    if (o->state == DLV_UNREADABLE) d->r->exit_code = JOB_FAILED;
    tell(d->r, &(job_replay_object){.target = d->s->text, .object = o->object, .state = states[o->state], .rows = o->rows, .added = o->state == DLV_REPLAYED ? o->rows - o->refused : 0, .rejected = o->refused, .err = o->err});
}

/* Its records lie under its own name: only a script of that name delivers it. */
static void tell_other_delivery(void *cx, const dlv_other *o, const char *object, uint64_t rows) {
    delivery_cx *d = cx;
    fz_error err;
    if (job_delivery_is_ours(d->j, o) || !dlv_location_under(object, d->r->prefix)) return;
    fz_fail(&err, FZ_USER, "replay.other-pipeline", "pipeline '%s' has given it up for its table %s, and the script's is '%s'", o->pipeline, o->table, d->j->spec->name);
    (void)!fz_hint(&err, "replay with a script of these names: the lots of a delivery stay theirs, also after frazil.positions = adopt");
    d->r->exit_code = JOB_FAILED;
    tell(d->r, &(job_replay_object){.target = d->s->text, .object = object, .state = JOB_REPLAY_OTHER, .rows = rows, .err = &err});
}

/* ---- one statement ---- */

static fz_status open_scans(job *j, job_scan_reader **readers, fz_error *err) {
    for (uint32_t i = 0; i < j->n_sources; i++) {
        job_source *src = j->sources[i];
        src_context cx = {.table = src->scan_plan->table->path, .job = j->spec->name, .readers = 1, .max_record_size = (uint32_t)conf_get_i64(j->spec->settings, "source.max-record-size"),
                          .time_zone = j->spec->sql ? j->spec->sql->time_zone : NULL};
        FZ_TRY(job_scan_open_over(&src->merged, &cx, src_replayed_new(&cx), &src->scan, err));
        src->source = job_scan_source(src->scan);
        FZ_TRY(job_scan_reader_new(src->scan, &readers[i], err));
    }
    return FZ_OK;
}

static fz_status replay_sink(job_replay *r, job *j, job_sink *s, job_scan_reader **readers, ex_state **states, fz_error *err) {
    FZ_GROW(r->targets, r->n_targets, r->cap_targets);
    r->targets[r->n_targets++] = (target){fz_strdup(s->text), s->insert->connector ? NULL : s->catalog};
    s->splits = FZ_ANEWN(j->arena, job_split_state *, j->n_sources + 1);
    s->n_splits = FZ_ANEWN(j->arena, uint32_t, j->n_sources + 1);
    s->paths_of = FZ_ANEWN(j->arena, uint32_t, j->n_sources + 1);
    if (!s->insert->connector) return replay_table(r, j, s, readers, states, err);
    FZ_TRY(job_delivery_open(j, s, s->insert, err));
    delivery_cx cx = {r, j, s};
    FZ_TRY(dlv_replay(s->delivery, r->prefix, tell_delivery, &cx, err));
    return dlv_others_open(s->delivery, job_delivery_root(j), tell_other_delivery, &cx, err);
}

static fz_status run_all(job_replay *r, job *j, job_scan_reader **readers, ex_state **states, fz_error *err) {
    FZ_TRY(open_scans(j, readers, err));
    for (uint32_t i = 0; i < j->n_paths; i++)
        if (j->paths[i].program) states[i] = ex_state_new(j->paths[i].program);
    j->writers = fz_calloc(j->n_writers, sizeof(job_writer *));
    for (uint32_t i = 0; i < j->n_writers; i++) j->writers[i] = job_writer_start(j, i, j->writer_budget / j->n_writers);
    fz_status first = FZ_OK;
    for (uint32_t i = 0; i < j->n_sinks; i++) { /* one that cannot holds up no other */
        fz_error own = {0};
        fz_status rc = replay_sink(r, j, j->sinks[i], readers, states, &own);
        if (rc == FZ_OK) continue;
        (void)!fz_context(&own, "replay into %s", j->sinks[i]->text);
        fz_log_error(FZ_LOG_ERROR, "replay.failed", &own);
        if (first == FZ_OK || rc == FZ_UNKNOWN) {
            first = rc;
            *err = own;
        }
    }
    return first;
}

fz_status job_replay_run(job_replay *r, const job_spec *spec, int *exit_code, fz_error *err) {
    job *j = job_new(spec);
    fz_status rc = job_plan(j, err);
    job_scan_reader **readers = fz_calloc(j->n_sources + 1, sizeof *readers);
    ex_state **states = fz_calloc(j->n_paths + 1, sizeof *states);
    if (rc == FZ_OK) rc = run_all(r, j, readers, states, err);
    if (rc == FZ_OK && !r->io) rc = job_settings_store(spec->settings, &r->io, err);
    for (uint32_t i = 0; i < j->n_sources; i++) job_scan_reader_free(readers[i]);
    for (uint32_t i = 0; i < j->n_paths; i++) ex_state_free(states[i]);
    fz_free(readers);
    fz_free(states);
    job_free(j);
    *exit_code = rc == FZ_OK ? JOB_DONE : rc == FZ_UNKNOWN ? JOB_UNKNOWN : rc == FZ_USER ? JOB_USAGE : JOB_FAILED;
    if (rc == FZ_USER && job_passing(rc, err) == FZ_RETRY) *exit_code = JOB_FAILED; /* a permission is missing */
    return rc;
}

/* ---- what nobody of the script names ---- */

typedef struct listing { job_replay *r; uint64_t n; char **unnamed; uint32_t n_unnamed, cap; } listing;

static bool list_one(void *cx, const char *location, uint64_t size, int64_t mtime_ms) {
    (void)size, (void)mtime_ms;
    listing *l = cx;
    fz_buf key = {0};
    dlv_location_key(location, &key);
    l->n++;
    if (!fz_hashset_has(&l->r->told, fz_hash(key.data, key.len))) {
        FZ_GROW(l->unnamed, l->n_unnamed, l->cap);
        l->unnamed[l->n_unnamed++] = fz_strdup(location);
    }
    fz_buf_free(&key);
    return true;
}

typedef struct first_line { char *table; } first_line;
static fz_status take_first(void *cx, const job_error_record *rec, fz_error *err) {
    first_line *f = cx;
    if (rec->table && rec->rows) f->table = fz_strdup(rec->table); /* without rows: rejected ones, which nobody replays */
    return fz_fail(err, FZ_DATA, "replay.looked", "one line is enough");
}

/* Does the table (CATALOG.DATABASE.NAME, in a catalog of the script) name the object as open? When it cannot be asked: yes. */
static bool may_be_open(const job_replay *r, const char *table, const char *object) {
    fz_error ignored;
    const char *dot = strchr(table, '.'), *last = strrchr(table, '.');
    cat_table *t = NULL;
    bool open = true;
    fz_arena *a = fz_arena_new();
    for (uint32_t i = 0; dot && last > dot && i < r->n_targets && !t; i++) {
        const target *x = &r->targets[i];
        if (!x->catalog || strncmp(x->text, table, (size_t)(dot - table) + 1) != 0) continue;
        const char *level = fz_arena_strndup(a, dot + 1, (size_t)(last - dot - 1));
        cat_ident id = {.ns = {1, &level}, .name = last + 1};
        if (cat_load_table(x->catalog, &id, &t, &ignored) != FZ_OK) break;
    }
    job_marks *m;
    uint32_t n;
    if (t && job_lineage_others(a, t->metadata, "", &m, &n, &ignored) == FZ_OK) {
        open = false;
        for (uint32_t i = 0; i < n; i++) open |= job_diverted_find(m[i].diverted, m[i].n_diverted, object) != NULL;
    }
    cat_table_free(t);
    fz_arena_free(a);
    return open;
}

static bool is_target(const job_replay *r, const char *table) {
    for (uint32_t i = 0; i < r->n_targets; i++)
        if (strcmp(r->targets[i].text, table) == 0) return true;
    return false;
}

static void tell_unnamed(job_replay *r, const char *object, int *exit_code) {
    fz_error err;
    first_line f = {0};
    job_replay_object o = {.object = object, .state = JOB_REPLAY_UNNAMED};
    fz_arena *a = fz_arena_new();
    (void)!job_error_object_each(&(job_error_read){.io = r->io, .object = object, .arena = a}, take_first, &f, &err);
    if (f.table && !is_target(r, f.table) && may_be_open(r, f.table, object)) {
        fz_fail(&err, FZ_USER, "replay.other-table", "its rows are for table %s, which the script does not write into", f.table);
        (void)!fz_hint(&err, "replay with the script that wrote it");
        o.state = JOB_REPLAY_ELSEWHERE;
        o.target = f.table;
        o.err = &err;
        if (*exit_code == JOB_DONE) *exit_code = JOB_FAILED;
    }
    r->fn(r->cx, &o);
    fz_free(f.table);
    fz_arena_free(a);
}

fz_status job_replay_list(job_replay *r, uint64_t *n_objects, int *exit_code, fz_error *err) {
    listing l = {.r = r};
    *n_objects = 0;
    if (*exit_code == JOB_DONE) *exit_code = r->exit_code;
    fz_status rc = r->io ? fio_list(r->io, r->prefix, list_one, &l, err) : FZ_OK;
    for (uint32_t i = 0; i < l.n_unnamed; i++) {
        if (rc == FZ_OK) tell_unnamed(r, l.unnamed[i], exit_code);
        fz_free(l.unnamed[i]);
    }
    fz_free(l.unnamed);
    *n_objects = l.n;
    return rc;
}
