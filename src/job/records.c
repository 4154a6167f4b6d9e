/* Checkpoint records: what execution.checkpointing.dir is for. After each completed checkpoint a small JSON text says what was committed:
 *
 *     <dir>/<run id>/chk-<n>/_metadata         the last execution.checkpointing.num-retained of them
 *     <savepoint dir>/savepoint-<run id>/_metadata   when a job that was told to stop has made its last checkpoint
 *
 * Invariants
 *  1. A record is a report, never truth: no start reads it, positions are in the tables. A job goes on when it cannot be written (counted and logged).
 *  2. A directory that cannot be written at all refuses the job at its start, as in Flink: who named it wants it.
 */
#include "job/records.h"
#include "job/job_int.h"
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

/* Settings of Flink's S3 plug-ins and the names that the store knows them by. */
static const struct { const char *setting, *option; } of_store[] = {
    {"s3.access-key", "s3.access-key-id"},     {"s3.access.key", "s3.access-key-id"},        {"s3.secret-key", "s3.secret-access-key"},
    {"s3.secret.key", "s3.secret-access-key"}, {"s3.session.token", "s3.session-token"},     {"s3.endpoint", "s3.endpoint"},
    {"s3.region", "client.region"},            {"s3.endpoint.region", "client.region"},      {"s3.path.style.access", "s3.path-style-access"},
    {"s3.path-style-access", "s3.path-style-access"},
};

fz_status job_settings_store(const conf *c, fio **out, fz_error *err) {
    fz_pair v[sizeof of_store / sizeof *of_store + 1];
    size_t n = 0;
    for (size_t i = 0; i < sizeof of_store / sizeof *of_store; i++)
        if (conf_is_set(c, of_store[i].setting) && !fz_pair_get(v, n, of_store[i].option)) v[n++] = (fz_pair){.key = of_store[i].option, .value = conf_get(c, of_store[i].setting)};
    /* The control thread writes records: a store in trouble must not hold up commits. */
    v[n++] = (fz_pair){.key = "s3.retry.num-retries", .value = "1"};
    return fio_new(v, n, out, err);
}

struct job_records {
    fio *io;
    const char *dir, *savepoint_dir; /* NULL: none */
    char run_id[37];
    uint32_t retained;
    bool delete_at_end;
    uint64_t *written;               /* numbers of the records that are there, oldest first */
    uint32_t n_written;
    fz_log_limit limit;
};

static const char *record_path(const job_records *r, fz_arena *a, uint64_t n) { return fio_join(a, r->dir, fz_arena_printf(a, "%s/chk-%" PRIu64 "/_metadata", r->run_id, n)); }

fz_status job_records_open(const conf *c, const char *run_id, job_records **out, fz_error *err) {
    const char *dir = conf_get(c, "execution.checkpointing.dir"), *save = conf_get(c, "execution.checkpointing.savepoint-dir");
    *out = NULL;
    if ((!dir || !*dir) && (!save || !*save)) return FZ_OK;
    job_records *r = FZ_NEW(job_records);
    r->dir = dir && *dir ? dir : NULL;
    r->savepoint_dir = save && *save ? save : NULL;
    r->retained = (uint32_t)conf_get_i64(c, "execution.checkpointing.num-retained");
    if (r->retained < 1) r->retained = 1;
    r->written = fz_calloc(r->retained + 1, sizeof *r->written);
    r->delete_at_end = !conf_is(c, "execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION");
    snprintf(r->run_id, sizeof r->run_id, "%s", run_id);
    fz_arena *a = fz_arena_new();
    fz_status rc = job_settings_store(c, &r->io, err);
    if (rc == FZ_OK && r->dir) {
        const char *probe = fio_join(a, r->dir, fz_arena_printf(a, "%s/.frazil-probe", run_id));
        rc = fio_put(r->io, probe, "", 0, err);
        if (rc == FZ_OK) rc = fio_delete(r->io, probe, err);
        if (rc != FZ_OK) {
            fz_context(err, "execution.checkpointing.dir");
            fz_hint(err, "`frazil doctor -f SCRIPT` looks at the directory, its store and the credentials; without the setting no records are kept");
        }
    }
    fz_arena_free(a);
    if (rc == FZ_OK) return *out = r, FZ_OK;
    job_records_free(r);
    return rc;
}

static json_t *sink_json(const job *j, const job_sink *s) {
    json_t *splits = json_array();
    for (uint32_t k = 0; k < j->n_sources; k++)
        for (uint32_t i = 0; s->splits[k] && j->sources[k]->replayable && i < s->n_splits[k]; i++) {
            const job_split_state *st = &s->splits[k][i];
            json_array_append_new(splits, json_pack("{s:s, s:s, s:i, s:I}", "source", st->key.source, "topic", st->key.topic, "partition", (int)st->key.partition, "position",
                                                    (json_int_t)(st->known ? st->remembered : -1)));
        }
    return json_pack("{s:s, s:I, s:o}", "table", s->text, "rows", (json_int_t)s->rows_committed, "positions", splits);
}

static char *record_text(const job *j) {
    json_t *sinks = json_array();
    for (uint32_t i = 0; i < j->n_sinks; i++) json_array_append_new(sinks, sink_json(j, j->sinks[i]));
    json_t *root = json_pack("{s:s, s:s, s:I, s:I, s:o}", "pipeline", j->spec->name, "run-id", j->run_id, "checkpoint", (json_int_t)j->checkpoint, "completed-ms", (json_int_t)fz_now_ms(), "sinks", sinks);
    char *text = json_dumps(root, JSON_INDENT(2));
    json_decref(root);
    return text;
}

static void failed(job_records *r, const fz_error *err) {
    uint64_t suppressed;
    fz_metric_add(FZ_M_RECORDS_FAILED, 1);
    if (fz_log_allowed(&r->limit, 1, 60000, &suppressed)) fz_log_error(FZ_LOG_WARN, "checkpoint.record", err);
}

static bool write_record(job_records *r, const job *j, const char *path) {
    fz_error err;
    char *text = record_text(j);
    fz_status rc = fio_put(r->io, path, text, strlen(text), &err);
    free(text); /* jansson's own allocation */
    if (rc != FZ_OK) failed(r, &err);
    return rc == FZ_OK;
}

static void drop_oldest(job_records *r, fz_arena *a) {
    fz_error err;
    if (fio_delete(r->io, record_path(r, a, r->written[0]), &err) != FZ_OK) failed(r, &err);
    memmove(r->written, r->written + 1, (r->n_written - 1) * sizeof *r->written);
    r->n_written--;
}

void job_records_completed(job_records *r, const job *j) {
    if (!r || !r->dir) return;
    fz_arena *a = fz_arena_new();
    if (write_record(r, j, record_path(r, a, j->checkpoint))) r->written[r->n_written++] = j->checkpoint;
    while (r->n_written > r->retained) drop_oldest(r, a);
    fz_arena_free(a);
}

void job_records_end(job_records *r, const job *j, bool stopped, bool complete) {
    if (!r) return;
    fz_arena *a = fz_arena_new();
    if (stopped && complete && r->savepoint_dir) write_record(r, j, fio_join(a, r->savepoint_dir, fz_arena_printf(a, "savepoint-%s/_metadata", r->run_id)));
    while (complete && r->delete_at_end && r->n_written) drop_oldest(r, a);
    fz_arena_free(a);
}

void job_records_free(job_records *r) {
    if (!r) return;
    fio_unref(r->io);
    fz_free(r->written);
    fz_free(r);
}
