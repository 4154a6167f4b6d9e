/* The position-checked commit: rules 2 to 4 of the commit protocol in ARCHITECTURE.md.
 *
 * Invariants
 *  1. Before anything is written the table's positions of every split of the commit are compared with what was remembered.
 *  2. The commit requires the base that it was built on; positions, totals and the mirror are computed anew for each attempt.
 *  3. Once an outcome was unknown, nothing that the commit wrote is deleted, whatever comes after.
 */
#include "job/job_int.h"
#include <inttypes.h>

#define PATIENCE_NS 5000000000

typedef struct try_state {
    job *j;
    const job_prepared *p;
    job_sink *s;
    fz_arena *arena;
    ice_append append;
    ice_manifest_list reuse;
    bool ever_unknown;
    bool by_other;             /* the table stands where this commit leads, but not by this commit */
    const char *mirror;        /* of the last attempt that got that far */
    uint32_t conflicts;
    int64_t wait_ms, min_wait_ms, max_wait_ms, deadline_ns, patience_ns;
    int64_t num_retries;
} try_state;

typedef enum { TABLE_AS_REMEMBERED, TABLE_HAS_IT, TABLE_ELSEWHERE } comparison;

/* What is replayed must be open in the table. */
static comparison compare_replayed(const job_prepared *p, const job_lineage *l, fz_error *why) {
    uint32_t open = 0;
    for (uint32_t i = 0; i < p->n_replayed; i++) open += l->found && job_diverted_find(l->marks.diverted, l->marks.n_diverted, p->replayed[i].object) != NULL;
    if (open == p->n_replayed) return TABLE_AS_REMEMBERED;
    fz_fail(why, FZ_CONFLICT, "commit.moved", "table %s: of %u error objects only %u are still open", p->sink->text, p->n_replayed, open);
    fz_hint(why, "another process replays them, or the table was rolled back");
    return open ? TABLE_ELSEWHERE : TABLE_HAS_IT;
}

static comparison compare(const job_prepared *p, const job_lineage *l, fz_error *why) {
#ifdef FRAZIL_TEST_BLIND /* a build for the commit matrix, which has to find out that nothing is compared */
    return TABLE_AS_REMEMBERED;
#endif
    if (l->commit_seen) return TABLE_HAS_IT;
    if (p->n_replayed) return compare_replayed(p, l, why);
    bool same = true, landed = p->n_ranges > 0;
    for (uint32_t i = 0; i < p->n_ranges; i++) {
        const job_range *r = &p->ranges[i];
        const job_position *t = l->found ? job_position_find(l->marks.positions, l->marks.n_positions, &r->key) : NULL;
        bool as_remembered = p->known[i] ? t && t->next == p->remembered[i] : t == NULL;
        if (!t || t->next != r->to) landed = false;
        if (as_remembered) continue;
        if (same) {
            fz_fail(why, FZ_CONFLICT, "commit.moved", "table %s: position of %s/%d is not where this job left it", p->sink->text, r->key.topic, r->key.partition);
            fz_detail(why, "the table says %s%" PRId64 ", remembered was %s%" PRId64 ", this commit goes to %" PRId64, t ? "" : "nothing, not ", t ? t->next : 0,
                      p->known[i] ? "" : "nothing, start was ", p->known[i] ? p->remembered[i] : r->from, r->to);
            fz_hint(why, "another copy of the job writes to the table, or it was rolled back");
        }
        same = false;
    }
    return same ? TABLE_AS_REMEMBERED : landed ? TABLE_HAS_IT : TABLE_ELSEWHERE;
}

/* The positions that the commit leaves: all that the table has for this pipeline, with those of the commit's own splits moved. */
static uint32_t merge_positions(try_state *t, const job_lineage *l, job_position **out) {
    const job_prepared *p = t->p;
    job_position *v = FZ_ANEWN(t->arena, job_position, l->marks.n_positions + p->n_ranges + 1);
    uint32_t n = 0;
    int64_t now = fz_now_ms();
    if (l->found || l->unproven)
        for (uint32_t i = 0; i < l->marks.n_positions; i++) {
            v[n] = l->marks.positions[i];
            if (!p->n_replayed) job_mark_gone(t->j, t->s, &v[n], now); /* a replay looks at no log */
            n++;
        }
    for (uint32_t i = 0; i < p->n_ranges; i++) {
        job_position *old = job_position_find(v, n, &p->after[i].key);
        if (old) *old = p->after[i];
        else v[n++] = p->after[i];
    }
    *out = v;
    return job_positions_retire(v, n, now);
}

static bool is_adopted(const job_sink *s, const char *pipeline) { return job_adopted_find(s->adopted, s->n_adopted, pipeline) != NULL; }

/* Error objects that the table lacks after the commit, those of a pipeline whose positions were taken over among them. */
static fz_status merge_diverted(try_state *t, const cat_table *base, const job_lineage *l, job_diverted **out, uint32_t *n_out, fz_error *err) {
    const job_prepared *p = t->p;
    job_marks *others = NULL;
    uint32_t n_others = 0, n_theirs = 0;
    if (t->s->n_adopted) FZ_TRY(job_lineage_others(t->arena, base->metadata, t->j->spec->name, &others, &n_others, err));
    for (uint32_t i = 0; i < n_others; i++) n_theirs += others[i].n_diverted;
    job_diverted *v = FZ_ANEWN(t->arena, job_diverted, l->marks.n_diverted + p->n_objects + n_theirs + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; (l->found || l->unproven) && i < l->marks.n_diverted; i++) {
        bool done = false;
        for (uint32_t k = 0; k < p->n_replayed; k++) done |= strcmp(p->replayed[k].object, l->marks.diverted[i].object) == 0;
        if (!done) v[n++] = l->marks.diverted[i];
    }
    for (uint32_t i = 0; i < p->n_objects; i++)
        if (!job_diverted_find(v, n, p->objects[i].object)) v[n++] = p->objects[i];
    for (uint32_t i = 0; i < n_others; i++)
        for (uint32_t k = 0; is_adopted(t->s, others[i].pipeline) && k < others[i].n_diverted; k++)
            if (!job_diverted_find(v, n, others[i].diverted[k].object)) v[n++] = others[i].diverted[k];
    *out = v;
    *n_out = n;
    return FZ_OK;
}

static uint32_t merge_adopted(const try_state *t, const job_lineage *l, job_adopted **out) {
    uint32_t n = l->found || l->unproven ? l->marks.n_adopted : 0;
    job_adopted *v = *out = FZ_ANEWN(t->arena, job_adopted, n + t->s->n_adopted + 1);
    if (n) memcpy(v, l->marks.adopted, n * sizeof *v);
    return job_adopted_merge(v, n, t->s->adopted, t->s->n_adopted);
}

static void remove_written(const try_state *t, const ice_append_result *r) {
    if (t->ever_unknown) return;
    for (uint32_t i = 0; i < r->n_written; i++) {
        bool reused = false;
        for (uint32_t k = 0; k < r->new_manifests.n; k++) reused |= strcmp(r->new_manifests.v[k].path, r->written[i]) == 0;
        if (!reused) sink_discard(t->s->table->io, r->written[i]);
    }
}

/* Manifests of this commit that a merge made superfluous: no snapshot names them. */
static void remove_unused(const try_state *t, const ice_append_result *r) {
    for (uint32_t i = 0; i < r->n_unused && !t->ever_unknown; i++) sink_discard(t->s->table->io, r->unused[i]);
}

static fz_status write_commit(try_state *t, const cat_table *base, const job_lineage *l, fz_error *err) {
    job_position *positions;
    job_diverted *diverted;
    job_adopted *adopted;
    uint32_t n = merge_positions(t, l, &positions), n_diverted, n_adopted = merge_adopted(t, l, &adopted);
    FZ_TRY(merge_diverted(t, base, l, &diverted, &n_diverted, err));
    const char *pipeline = t->j->spec->name;
    job_marks marks = {.pipeline = pipeline, .commit_id = t->p->commit_id, .checkpoint = t->j->checkpoint, .new_chain = t->p->new_chain,
                       .n_positions = n, .positions = positions, .n_ranges = t->p->n_ranges, .ranges = t->p->ranges, .n_diverted = n_diverted, .diverted = diverted,
                       .n_replayed = t->p->n_replayed, .replayed = (job_replayed *)(uintptr_t)t->p->replayed, .n_adopted = n_adopted, .adopted = adopted};
    fz_pair summary[2 + JOB_MAX_KEYS] = {{.key = "engine-name", .value = "frazil"}, {.key = "engine-version", .value = "0.1.0"}};
    t->append.n_summary = (uint32_t)(2 + job_marks_encode(t->arena, &marks, summary + 2));
    t->append.summary = summary;
    job_mirror mirror = {t->append.snapshot_id, base->metadata->last_sequence_number + 1, n, n_diverted, positions, diverted, n_adopted, adopted};
    t->mirror = job_mirror_encode(t->arena, &mirror);
    fz_pair property = {.key = fz_arena_printf(t->arena, JOB_MIRROR_PREFIX "%s", pipeline), .value = t->mirror};
    t->append.properties = &property;
    t->append.n_properties = 1;
    t->append.attempt++;
    job_tally_attempt(&t->s->tally);
    t->append.now_ms = fz_now_ms();
    t->append.reuse = t->reuse.n ? &t->reuse : NULL;
    ice_append_result r = {0};
    const ice_io io = job_io(t->j, base);
    fz_status rc = ice_append_build(t->arena, base->metadata, &t->append, &io, &r, err);
    if (rc == FZ_OK) {
        if (r.clock_behind_ms > ICE_CLOCK_TOLERANCE_MS)
            fz_log(FZ_LOG_WARN, "commit.clock-behind", FZ_KV("table", "%s", t->s->text), FZ_KV("behind_ms", "%" PRId64, r.clock_behind_ms), NULL);
        cat_table *next = NULL;
        rc = cat_commit(t->s->catalog, base, &r.changes, &next, err);
        cat_table_free(next);
    }
    ice_changes_free(&r.changes);
    if (rc == FZ_OK) t->s->n_open = n_diverted;
    if (rc == FZ_OK) remove_unused(t, &r);
    if (rc == FZ_UNKNOWN) t->ever_unknown = true;
    else if (rc != FZ_OK) remove_written(t, &r);
    t->reuse = r.new_manifests;
    t->append.next_manifest = r.next_manifest;
    return rc;
}

/* This very commit had landed, unseen, and was rolled back. Its files are not appended again: expiry of the snapshot that nobody descends from may delete what it added. Its
 * rows are read again instead. */
static comparison rolled_back(try_state *t, fz_error *err) {
    t->ever_unknown = true; /* the table names its files */
    fz_fail(err, FZ_CONFLICT, "commit.rolled-back", "table %s: commit %s had landed and was rolled back", t->s->text, t->p->commit_id);
    fz_detail(err, "snapshot %" PRId64 " is no ancestor of the current one", t->append.snapshot_id);
    return TABLE_ELSEWHERE;
}

/* One round: load, check, compare, commit. *done: the table has it. */
static fz_status attempt(try_state *t, comparison *how, fz_error *err) {
#ifdef FRAZIL_TEST_BLIND /* nor is it seen that the table has this snapshot; manifests carry its id */
    t->reuse.n = 0;
    fz_random(&t->append.snapshot_id, sizeof t->append.snapshot_id);
    t->append.snapshot_id = (t->append.snapshot_id & INT64_MAX) | 1;
#endif
    FZ_TRY(fz_fault_status("commit.load", err));
    cat_table *base = NULL;
    fz_status rc = cat_load_table(t->s->catalog, &t->s->ident, &base, err);
    if (rc == FZ_UNKNOWN) rc = FZ_RETRY; /* a load changes nothing */
    FZ_TRY(rc);
    job_lineage l;
    const ice_io io = job_io(t->j, base);
    rc = job_table_same(t->s, base->metadata, err);
    if (rc == FZ_OK) rc = job_lineage_read(t->arena, base->metadata, t->j->spec->name, t->p->commit_id, &io, &l, err);
    if (rc == FZ_OK && l.unproven && t->j->positions == POSITIONS_CHECK)
        rc = fz_fail(err, FZ_FATAL, "positions.unproven", "table %s: the snapshot that carries this pipeline's positions is not in its lineage", t->s->text);
    if (rc == FZ_OK) {
        if (l.unproven && t->j->positions == POSITIONS_ADOPT) l.found = true;
        *how = compare(t->p, &l, err);
        if (*how == TABLE_HAS_IT) t->s->n_open = l.marks.n_diverted;
        t->by_other = *how == TABLE_HAS_IT && !l.commit_seen && l.whole;
        if (*how == TABLE_AS_REMEMBERED && ice_metadata_snapshot(base->metadata, t->append.snapshot_id)) *how = rolled_back(t, err);
        if (*how == TABLE_AS_REMEMBERED) rc = fz_fault_status("commit.checked", err);
        if (rc == FZ_OK && *how == TABLE_AS_REMEMBERED) rc = write_commit(t, base, &l, err);
    }
    cat_table_free(base);
    return rc;
}

/* The control thread commits for all sinks: where there are others, a sink whose table cannot be reached is put off. It begins again from what the table says, which also
 * tells what became of a commit without an answer. */
static bool others_wait(const try_state *t) { return !t->p->n_replayed && (t->j->n_sinks > 1 || t->s->divert) && t->s->can_rewind && fz_mono_ns() >= t->patience_ns && fz_mono_ns() < t->deadline_ns; }

/* Waits, doubling; false when the time is over. A job that is asked twice to stop does not wait on. */
static bool back_off(try_state *t) {
    int64_t now = fz_mono_ns();
    if (now >= t->deadline_ns || job_stop_over()) return false;
    int64_t ms = t->wait_ms, left = (t->deadline_ns - now) / 1000000;
    if (ms > left) ms = left;
    if (job_stop_requested() && ms > 1000) ms = 1000;
    uint32_t r;
    fz_random(&r, sizeof r);
    ms = ms / 2 + (int64_t)(r % (uint32_t)(ms / 2 + 1)); /* jitter */
    for (int64_t done = 0; done < ms && !job_stop_over(); done += 100) fz_sleep_ms(ms - done < 100 ? ms - done : 100);
    t->wait_ms = t->wait_ms * 2 > t->max_wait_ms ? t->max_wait_ms : t->wait_ms * 2;
    return true;
}

static void drop_files(const try_state *t) {
    if (t->ever_unknown) return;
    for (uint32_t k = 0; k < t->p->n_shards; k++) sink_discard_files(t->s->table->io, t->p->files[k].v, t->p->files[k].n);
    for (uint32_t i = 0; i < t->reuse.n; i++) sink_discard(t->s->table->io, t->reuse.v[i].path);
}

static void begin(try_state *t, job *j, const job_prepared *p) {
    const ice_metadata *m = p->sink->table->metadata;
    *t = (try_state){.j = j, .p = p, .s = p->sink, .arena = fz_arena_new()};
    ice_data_file *files = FZ_ANEWN(t->arena, ice_data_file, p->n_files + 1);
    uint32_t n = 0;
    for (uint32_t k = 0; k < p->n_shards; k++)
        for (uint32_t i = 0; i < p->files[k].n; i++) files[n++] = p->files[k].v[i];
    uint64_t id;
    fz_random(&id, sizeof id);
    char *uuid = fz_arena_alloc(t->arena, 37);
    fz_uuid4(uuid);
    t->append = (ice_append){.files = files, .n_files = n, .snapshot_id = (int64_t)(id >> 1) | 1, .uuid = uuid};
    t->min_wait_ms = ice_property_i64(m, "commit.retry.min-wait-ms", 100);
    t->max_wait_ms = ice_property_i64(m, "commit.retry.max-wait-ms", 60000);
    t->num_retries = ice_property_i64(m, "commit.retry.num-retries", 4);
    t->deadline_ns = fz_mono_ns() + ice_property_i64(m, "commit.retry.total-timeout-ms", 1800000) * 1000000;
    int64_t window = job_divert_window_ns(p->sink);
    t->patience_ns = fz_mono_ns() + (window / 4 < PATIENCE_NS ? window / 4 : PATIENCE_NS);
    if (p->n_replayed && window < INT64_MAX && fz_mono_ns() + window < t->deadline_ns) t->deadline_ns = fz_mono_ns() + window; /* who waits at a terminal */
    t->wait_ms = t->min_wait_ms > 0 ? t->min_wait_ms : 1;
}

static job_commit_outcome run(try_state *t, fz_error *err) {
    for (;;) {
        comparison how = TABLE_AS_REMEMBERED;
        fz_status rc = attempt(t, &how, err);
        rc = job_passing(rc, err);
        if (rc == FZ_OK && how == TABLE_ELSEWHERE) return COMMIT_REWIND;
        if (rc == FZ_OK && t->by_other) return COMMIT_BY_OTHER;
        if (rc == FZ_OK) {
            if (how == TABLE_HAS_IT) {
                fz_metric_add(FZ_M_COMMIT_FOUND_LANDED, 1);
                fz_log(FZ_LOG_INFO, "commit.found-landed", FZ_KV("table", "%s", t->s->text), FZ_KV("commit_id", "%s", t->p->commit_id), NULL);
            }
            return COMMIT_DONE;
        }
        fz_log_error(FZ_LOG_WARN, "commit.retry", err);
        if (rc == FZ_CONFLICT) {
            fz_metric_add(FZ_M_COMMIT_CONFLICTS, 1);
            if ((int64_t)++t->conflicts > t->num_retries) return COMMIT_FAILED;
        } else if (rc == FZ_UNKNOWN) fz_metric_add(FZ_M_COMMIT_UNKNOWN, 1);
        else if (rc != FZ_RETRY) return COMMIT_FAILED;
        if (others_wait(t)) return COMMIT_LATER;
        if (!back_off(t)) return COMMIT_FAILED;
    }
}

job_commit_outcome job_commit(job *j, const job_prepared *p, fz_error *err) {
    try_state t;
    begin(&t, j, p);
    job_commit_outcome out = run(&t, err);
    p->sink->unknown = (out == COMMIT_FAILED || out == COMMIT_LATER) && t.ever_unknown;
    if (out == COMMIT_FAILED && t.ever_unknown) {
        char text[1024];
        fz_error last = *err;
        fz_fail(err, FZ_UNKNOWN, "commit.unknown", "table %s: whether commit %s has landed is not known; the next start finds out", t.s->text, p->commit_id);
        fz_detail(err, "%s", fz_error_text(&last, text, sizeof text));
    }
    if (out == COMMIT_DONE && t.mirror) job_away_seen(j, p->sink, t.mirror);
    if (out != COMMIT_DONE) drop_files(&t);
    fz_arena_free(t.arena);
    return out;
}
