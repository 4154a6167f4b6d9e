/* SELECT and INSERT: binding, and handing over to exec (queries) and to the job (INSERTs). */
#include "session/session_int.h"
#include "delivery/delivery.h"
#include "job/job.h"
#include "job/replay.h"
#include "job/scan.h"
#include "source/source.h"

static fz_status connector_target(const sql_stmt *insert, const sql_table *t, fz_error *err) {
    const char *connector = fz_pair_get(t->options, t->n_options, "connector");
    if (t->kind == SQL_T_VIEW) fz_fail(err, FZ_USER, "sql.unsupported", "INSERT INTO a view ('%s')", t->path);
    else fz_fail(err, FZ_USER, "sql.unsupported", "INSERT INTO '%s': writing with connector '%s' is not supported", t->path, connector ? connector : "(none)");
    fz_hint(err, "the target of an INSERT is a table of an Iceberg catalog");
    return ses_fail_at(err, insert->name.pos);
}

static const sql_plan *endless_scan(const sql_plan *p) {
    if (p->kind == SQL_P_SCAN) return p->table->kind == SQL_T_CONNECTOR && src_endless(p->table->options, p->table->n_options) ? p : NULL;
    const sql_plan *found = NULL;
    for (uint32_t i = 0; i < p->n_inputs && !found; i++) found = endless_scan(p->inputs[i]);
    return found;
}
/* What keeps a plan from streaming; NULL: nothing. */
static const char *obstacle(const sql_plan *p) {
    switch (p->kind) {
    case SQL_P_AGGREGATE: return p->n_aggs ? "an aggregate" : "GROUP BY or DISTINCT";
    case SQL_P_SORT: return "ORDER BY";
    case SQL_P_LIMIT: return "LIMIT";
    case SQL_P_VALUES: return "UNION ALL with VALUES";
    case SQL_P_SCAN: return p->table->kind == SQL_T_CONNECTOR ? NULL : "UNION ALL with a table of a catalog";
    default: break;
    }
    const char *what = NULL;
    for (uint32_t i = 0; i < p->n_inputs && !what; i++) what = obstacle(p->inputs[i]);
    return what;
}
/* What is run once, to its end, would never commit over a source that has none. */
fz_status ses_check_ends(const sql_plan *p, fz_error *err) {
    const sql_plan *scan = job_streams(p) ? NULL : endless_scan(p);
    if (!scan) return FZ_OK;
    const char *what = obstacle(p);
    fz_fail(err, FZ_USER, "sql.unsupported-streaming", "INSERT: %s over a source that never ends (%s) is not supported", what ? what : "this query", scan->table->path);
    if (what && fz_starts(what, "UNION")) return fz_hint(err, "insert what is there once by a statement of its own");
    return fz_hint(err, "write the rows as they come, and aggregate, sort or limit them when the table is read; or bound the source (Kafka: 'scan.bounded.mode'; made-up records: 'number-of-rows')");
}

fz_status ses_bind_insert(ses_session *s, const sql_stmt *insert, sql_plan **plan, const sql_table **target, fz_error *err) {
    const sql_table *t;
    FZ_TRY(ses_resolve_target(s, &insert->name, &t, err));
    bool delivery = t->kind == SQL_T_CONNECTOR && dlv_is_connector(fz_pair_get(t->options, t->n_options, "connector"));
    if (t->kind != SQL_T_ICEBERG && !delivery) return connector_target(insert, t, err);
    if (insert->overwrite) {
        fz_fail(err, FZ_USER, "sql.unsupported", "INSERT OVERWRITE is not supported");
        return ses_fail_at(err, insert->pos);
    }
    if (insert->hint.n && delivery) {
        fz_fail(err, FZ_USER, "sql.unsupported", "OPTIONS of an INSERT's target is not supported for tables of a connector");
        fz_hint(err, "set the option of the table when it is made");
        return ses_fail_at(err, insert->name.pos);
    }
    FZ_TRY(job_sink_options_check(insert->hint.options, insert->hint.n, t->path, err));
    sql_resolver r = ses_resolver(s);
    sql_settings settings = ses_sql_settings(s);
    *target = t;
    fz_status rc = sql_bind_insert(s->arena, insert, t, &r, &settings, plan, err);
    if (rc == FZ_OK && delivery) rc = dlv_check(t->options, t->n_options, t->path, (*plan)->schema, err);
    if (rc == FZ_OK) rc = ses_check_sources(*plan, false, err);
    if (rc == FZ_OK) rc = ses_check_ends(*plan, err);
    return rc == FZ_OK ? rc : ses_fail_at(err, insert->pos);
}

static fz_status check_connector(const sql_table *t, fz_error *err) {
    const char *name = fz_pair_get(t->options, t->n_options, "connector");
    fz_buf known = {0};
    bool found = false;
    for (const src_connector_info *c = src_connectors(); c->name; c++) {
        fz_buf_printf(&known, "%s%s", known.len ? ", " : "", c->name);
        found |= name && strcmp(c->name, name) == 0;
    }
    if (!name) fz_fail(err, FZ_USER, "option.missing", "table %s: required option 'connector' is missing", t->path);
    else if (!found) fz_fail(err, FZ_USER, "source.unknown-connector", "table %s: there is no connector '%s'", t->path, name);
    if (!found) fz_hint(err, "known are: %s", fz_buf_cstr(&known));
    fz_buf_free(&known);
    return found ? FZ_OK : FZ_USER;
}

fz_status ses_check_sources(const sql_plan *p, bool with_formats, fz_error *err) {
    if (p->kind == SQL_P_SCAN && p->table->kind == SQL_T_CONNECTOR) {
        FZ_TRY(check_connector(p->table, err));
        if (with_formats) FZ_TRY(job_scan_check(p->table, err));
    }
    for (uint32_t i = 0; i < p->n_inputs; i++) FZ_TRY(ses_check_sources(p->inputs[i], with_formats, err));
    return FZ_OK;
}

/* The default of pipeline.name: the script's file name without its directories. */
const char *ses_pipeline_name(const ses_session *s) {
    const char *set = conf_get(s->settings, "pipeline.name");
    if (set && *set) return set;
    if (!s->script_name) return "frazil-sql";
    const char *slash = strrchr(s->script_name, '/');
    return slash ? slash + 1 : s->script_name;
}

static bool reads_kafka(const sql_plan *p) {
    const char *connector = p->kind == SQL_P_SCAN ? fz_pair_get(p->table->options, p->table->n_options, "connector") : NULL;
    bool found = connector && strcmp(connector, "kafka") == 0;
    for (uint32_t i = 0; i < p->n_inputs && !found; i++) found = reads_kafka(p->inputs[i]);
    return found;
}
/* What is aggregated or read from tables has no positions and adds its rows each time. */
static bool has_positions(const sql_plan *p) { return job_streams(p) && reads_kafka(p); }

/* Positions are filed under pipeline and table: another query under the same pair would find the records taken already, and read nothing. The same
 * statement once more is no such thing: it goes on. */
static fz_status check_written(const ses_session *s, const job_insert *v, const sql_stmt *st, const char *pipeline, fz_error *err) {
    bool other = false;
    if (!has_positions(v->plan)) return FZ_OK;
    for (uint32_t i = 0; i < s->n_written; i++) {
        const struct ses_written *w = &s->written[i];
        if (strcmp(w->pipeline, pipeline) != 0 || strcmp(w->target, v->target_text) != 0) continue;
        if (strcmp(w->text, st->text) == 0) return FZ_OK;
        other = true;
    }
    if (!other) return FZ_OK;
    fz_fail(err, FZ_USER, "sql.second-insert", "pipeline '%s' has another INSERT into %s in this session; what that one has read, this one would not read again", pipeline, v->target_text);
    fz_hint(err, "put both into one statement set, or SET 'pipeline.name' in between");
    return ses_fail_at(err, st->pos);
}

static void remember_written(ses_session *s, const job_insert *v, const sql_stmt *st, const char *pipeline) {
    if (!has_positions(v->plan)) return;
    FZ_GROW(s->written, s->n_written, s->cap_written);
    s->written[s->n_written++] = (struct ses_written){fz_strdup(pipeline), fz_strdup(v->target_text), fz_strdup(st->text)};
}

fz_status ses_insert(ses_session *s, sql_stmt *const *inserts, uint32_t n, fz_error *err) {
    job_insert *v = FZ_ANEWN(s->arena, job_insert, n);
    for (uint32_t i = 0; i < n; i++) {
        sql_plan *plan;
        const sql_table *target;
        FZ_TRY(ses_bind_insert(s, inserts[i], &plan, &target, err));
        v[i] = (job_insert){.plan = plan, .target_text = target->path, .pos = inserts[i]->pos};
        if (target->kind == SQL_T_ICEBERG) {
            const ses_iceberg *ice = target->handle;
            v[i].catalog = ice->catalog;
            v[i].target = ice->ident;
            v[i].schema_id = ice->loaded->metadata->current_schema_id;
            v[i].spec_id = ice->loaded->metadata->default_spec_id;
            v[i].away = ice->away;
            v[i].options = inserts[i]->hint.options;
            v[i].n_options = inserts[i]->hint.n;
        } else {
            v[i].connector = target;
            v[i].schema = plan->schema;
        }
    }
    const char *pipeline = ses_pipeline_name(s);
    if (s->replay) {
        sql_settings sql = ses_sql_settings(s);
        return job_replay_run(s->replay, &(job_spec){.name = pipeline, .settings = s->settings, .sql = &sql, .n_inserts = n, .inserts = v}, &s->exit_code, err);
    }
    for (uint32_t i = 0; i < n; i++) FZ_TRY(check_written(s, &v[i], inserts[i], pipeline, err));
    for (uint32_t i = 0; i < n; i++) remember_written(s, &v[i], inserts[i], pipeline);
    conf_warn_no_meaning(s->settings);
    sql_settings settings = ses_sql_settings(s);
    ses_feed *feed = ses_feed_new(s);
    ex_feed calls = ses_feed_calls(feed);
    job_spec spec = {.name = pipeline, .settings = s->settings, .sql = &settings, .n_inserts = n, .inserts = v, .feed = &calls};
    job_report report = {0};
    fz_status rc = job_run(&spec, &report, err);
    ses_feed_free(feed);
    s->exit_code = report.exit_code;
    return rc;
}

/* ---- SELECT ---- */

/* Rows that never end cannot be sorted or counted to the end, and nothing comes behind them. */
static fz_status check_live(const sql_plan *p, sql_pos pos, fz_error *err) {
    for (uint32_t i = 0; p->kind == SQL_P_UNION && i + 1 < p->n_inputs; i++) {
        const sql_plan *scan = endless_scan(p->inputs[i]);
        if (!scan) continue;
        fz_fail(err, FZ_USER, "sql.unsupported-streaming", "SELECT: UNION ALL behind a source that never ends (%s) is not supported", scan->table->path);
        fz_hint(err, "look at one source at a time; an INSERT reads all branches of a UNION ALL side by side");
        return ses_fail_at(err, pos);
    }
    const char *what = p->kind == SQL_P_AGGREGATE ? "an aggregate" : p->kind == SQL_P_SORT ? "ORDER BY" : NULL;
    if (what) {
        fz_fail(err, FZ_USER, "sql.unsupported-streaming", "%s over a source that never ends is not supported", what);
        fz_hint(err, "bound the source, for Kafka with the option 'scan.bounded.mode' = 'latest-offset'");
        return ses_fail_at(err, pos);
    }
    for (uint32_t i = 0; i < p->n_inputs; i++) FZ_TRY(check_live(p->inputs[i], pos, err));
    return FZ_OK;
}

static fz_status pull(ses_session *s, ex_query *q, fz_error *err) {
    for (;;) {
        col_batch *b = NULL;
        FZ_TRY(ex_query_next(q, &b, err));
        if (!b) return FZ_OK;
        fz_status rc = s->out.rows(s->out.cx, b, s->time_zone, err);
        col_batch_release(b);
        FZ_TRY(rc);
        if (job_stop_requested()) return FZ_OK;
    }
}

static fz_status run_query(ses_session *s, const sql_plan *plan, const sql_settings *settings, ses_feed *feed, bool live, bool skip_bad, fz_error *err) {
    ex_query *q;
    ex_feed calls = ses_feed_calls(feed);
    FZ_TRY(ex_query_open(plan, settings, &calls, skip_bad, &q, err));
    fz_status rc = s->out.begin(s->out.cx, plan->schema, live, false, err);
    if (rc == FZ_OK) rc = pull(s, q, err);
    uint64_t skipped = ex_query_skipped(q) + ses_feed_skipped(feed);
    ex_query_close(q);
    if (rc == FZ_OK) rc = s->out.end(s->out.cx, err);
    if (skipped && skip_bad) fz_log(FZ_LOG_WARN, "query.rows-skipped", FZ_KV("rows", "%llu", (unsigned long long)skipped), FZ_KV("reason", "frazil.on-row-error"), NULL);
    return rc;
}

fz_status ses_select(ses_session *s, const sql_stmt *st, fz_error *err) {
    sql_plan *plan;
    bool live = false;
    sql_resolver r = ses_resolver(s);
    sql_settings settings = ses_sql_settings(s);
    settings.now_us = fz_now_us(); /* one time for the whole query */
    bool skip_bad = conf_is_set(s->settings, "frazil.on-row-error") && !conf_is(s->settings, "frazil.on-row-error", "fail");
    FZ_TRY(sql_bind_query(s->arena, st->query, &r, &settings, NULL, &plan, err));
    FZ_TRY(ses_check_sources(plan, false, err));
    ses_feed *feed = ses_feed_new(s);
    fz_status rc = ses_feed_open(feed, plan, &live, err);
    if (rc == FZ_OK && live) rc = check_live(plan, st->pos, err);
    if (rc == FZ_OK) rc = run_query(s, plan, &settings, feed, live, skip_bad, err);
    ses_feed_free(feed);
    return rc;
}
