/* A table that cannot be reached when the job starts, and was known before: the job goes on with what the state directory remembers of it, and the sink stands as one whose commits fail (SINK_WAITING): tried again
 * with back-off, its records kept by their source, given up after retry.duration if there is an error location. See ARCHITECTURE.md, "A start without a table".
 *
 * Invariants
 *  1. What is remembered shapes rows and decides nothing: no file is written and nothing is committed before the table was seen and found to be the same (uuid, schema, spec), and its positions are what counts.
 *  2. Records are given up only from where the table was last seen (job_seen), for logs that it knew then: the table cannot stand below that unless it was rolled back, and what it has of them beyond makes that part void.
 *     Anything else waits.
 *  3. Nothing is reported to a source beyond what the table was seen to have, or what was given up from there.
 */
#include "job/job_int.h"
#include "job/seen.h"
#include "job/state_file.h"

fz_status job_passing(fz_status rc, const fz_error *e) {
    static const char *const codes[] = {"file.permission", "file.not-found", "catalog.metadata-missing", "file.kms", "catalog.denied", "catalog.rest-forbidden", "catalog.rest-unauthorized", "aws.denied", "aws.credentials",
                                        "aws.no-credentials"};
    for (size_t i = 0; (rc == FZ_USER || rc == FZ_FATAL) && i < sizeof codes / sizeof *codes; i++)
        if (strcmp(e->code, codes[i]) == 0) return FZ_RETRY;
    return rc;
}

char *job_tables_dir(const conf *settings) { return job_state_dir(conf_get(settings, "frazil.state.dir"), "tables"); }

/* The table as it was, if that is what the plan was bound against. */
static cat_table *recall(const job_sink *s, const char *dir) {
    cat_table *t = NULL;
    fz_error err;
    if (cat_recall(dir, s->catalog, &s->ident, &t, &err) != FZ_OK) fz_log_error(FZ_LOG_WARN, "catalog.memory", &err);
    if (!t || (t->metadata->current_schema_id == s->insert->schema_id && t->metadata->default_spec_id == s->insert->spec_id)) return t;
    cat_table_free(t);
    return NULL;
}

fz_status job_away_open(job *j, job_sink *s, fz_status rc, fz_error *err) {
    fz_status passing = job_passing(rc, err);
    if (j->look || !s->can_rewind || (passing != FZ_RETRY && passing != FZ_UNKNOWN && passing != FZ_CONFLICT)) return rc;
    char *dir = job_tables_dir(j->spec->settings);
    if (!s->table) s->unseen = (s->table = recall(s, dir)) != NULL;
    else s->unseen = cat_remembers(dir, s->catalog, &s->ident); /* loaded, and then it was away */
    fz_free(dir);
    if (!s->unseen) return rc;
    s->status = SINK_WAITING;
    s->error = *err;
    s->error.cls = FZ_RETRY; /* a load changes nothing */
    return FZ_OK;
}

fz_status job_table_same(const job_sink *s, const ice_metadata *m, fz_error *err) {
    const ice_metadata *was = s->table->metadata;
    if ((was->uuid == NULL) != (m->uuid == NULL) || (m->uuid && strcmp(was->uuid, m->uuid) != 0)) {
        fz_fail(err, FZ_FATAL, "commit.other-table", "table %s was replaced by another of the same name", s->text);
        return fz_detail(err, "its uuid was %s and is %s", was->uuid ? was->uuid : "none", m->uuid ? m->uuid : "none");
    }
    if (was->current_schema_id != m->current_schema_id || was->default_spec_id != m->default_spec_id) {
        fz_fail(err, FZ_FATAL, "commit.schema-changed", "schema or partition spec of table %s has changed since the job began", s->text);
        fz_detail(err, "schema id was %d and is %d, spec id was %d and is %d", was->current_schema_id, m->current_schema_id, was->default_spec_id, m->default_spec_id);
        return fz_hint(err, "start the job again: it goes on from the table's positions with the new schema");
    }
    return FZ_OK;
}

fz_status job_away_end(job *j, job_sink *s, cat_table *now, fz_error *err) {
    sink_table *files;
    FZ_TRY(job_table_same(s, now->metadata, err));
    FZ_TRY(sink_table_new(now->io, now->metadata, j->run_id, s->index, &files, err));
    sink_table_free(s->files); /* no file was ever written with it */
    cat_table_free(s->table);
    s->files = files;
    s->table = now;
    return FZ_OK;
}

void job_away_remember(const job *j, job_sink *s, const job_lineage *l) {
    const conf *c = j->spec->settings;
    fz_error err;
    if (j->look || !s->can_rewind) return;
    if (!s->remembered) {
        char *dir = job_tables_dir(c);
        s->remembered = true;
        if (cat_remember(dir, s->catalog, s->table, &err) != FZ_OK) {
            (void)!fz_context(&err, "table %s is not remembered: should its catalog be away at the next start, that start is refused", s->text);
            fz_log_error(FZ_LOG_WARN, "catalog.memory", &err);
        }
        fz_free(dir);
    }
    fz_arena *a = fz_arena_new();
    const job_mirror m = {.snapshot_id = l->snapshot_id, .n = l->found ? l->marks.n_positions : 0, .positions = l->marks.positions, .n_diverted = l->found ? l->marks.n_diverted : 0, .diverted = l->marks.diverted};
    job_away_seen(j, s, job_mirror_encode(a, &m));
    fz_arena_free(a);
}

void job_away_seen(const job *j, const job_sink *s, const char *mirror) {
    job_seen_write(conf_get(j->spec->settings, "frazil.state.dir"), j->spec->name, s->text, s->table->metadata->uuid, mirror);
}
