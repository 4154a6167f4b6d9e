/* A loaded table against what the script wants of it: format version, spec and codec, columns; and where the job would begin. */
#include "ops/doctor_int.h"
#include "job/job.h"
#include "ops/time_text.h"
#include "sink/sink.h"
#include <inttypes.h>

/* ---- can it be written ---- */

void doc_table_format(doctor *d, doc_table *t) {
    doc_step *format = doc_begin(d, "doctor.table.format-version", t->need->text);
    t->format = format;
    if (!t->loaded) {
        if (!doc_blocked(d, format, t->step)) doc_ok(d, format, "2, as new tables have it");
        return;
    }
    const ice_metadata *m = t->loaded->metadata;
    fz_error e = {0};
    doc_asked(d, format, "format-version in %s", t->loaded->metadata_location);
    fz_status rc = ice_metadata_writable(m, &e);
    bool version = rc != FZ_OK && strcmp(e.code, "iceberg.format-version") == 0;
    if (version) {
        doc_fail_error(d, format, &e);
        if (m->format_version == 1)
            doc_advise(d, format, "with Spark, Flink or Trino: ALTER TABLE %s SET TBLPROPERTIES ('format-version' = '2'); nothing is rewritten, and readers of version 1 must be newer than it", t->need->text);
    } else doc_ok(d, format, "%d", m->format_version);
    doc_step *writing = doc_begin(d, "doctor.table.writing", t->need->text);
    doc_asked(d, writing, "partition spec %d and the properties write.format.default and write.parquet.compression-codec", m->spec ? m->spec->spec_id : 0);
    if (doc_blocked(d, writing, format)) {
        t->format = writing;
        return;
    }
    sink_table *s = NULL;
    if (rc == FZ_OK) rc = sink_table_new(t->loaded->io, m, "00000000-0000-4000-8000-000000000000", 0, &s, &e);
    sink_table_free(s);
    if (rc != FZ_OK) doc_fail_error(d, writing, &e);
    else doc_ok(d, writing, "parquet, %s; %u partition field%s", ice_property(m, "write.parquet.compression-codec", "zstd"), m->spec->n_fields, m->spec->n_fields == 1 ? "" : "s");
    t->format = writing;
}

/* ---- columns ---- */

static const char *type_text(doctor *d, const col_type *t) {
    fz_buf b = {0};
    col_type_text(&b, t);
    const char *s = fz_arena_strdup(d->a, fz_buf_cstr(&b));
    fz_buf_free(&b);
    return s;
}

/* Which column of the table each column of the query goes into; -1: none of that name. */
static int32_t *places(doctor *d, const ops_need_insert *in, const col_schema *table, uint32_t *n) {
    *n = in->n_columns ? in->n_columns : table->n;
    int32_t *at = FZ_ANEWN(d->a, int32_t, *n + 1);
    for (uint32_t i = 0; i < *n; i++) at[i] = in->n_columns ? col_schema_find(table, in->columns[i]) : (int32_t)i;
    return at;
}

/* A name that the query gives on purpose (no EXPR$n) and that another column of the table has: the order may be wrong. */
static bool misplaced(const col_schema *table, const char *given, int32_t at) {
    int other = col_schema_find(table, given);
    return other >= 0 && other != at;
}

static void compare_column(doctor *d, doc_step *s, const col_schema *table, const col_field *from, uint32_t i, int32_t at, bool by_place) {
    const col_field *to = &table->fields[at];
    if (!sql_can_store(from->type, to->type)) {
        doc_fail(d, s, "column %u '%s': the table has %s, the query gives %s ('%s')", i + 1, to->name, type_text(d, to->type), type_text(d, from->type), from->name);
        doc_advise(d, s, "CAST(... AS %s) AS %s", type_text(d, col_with_null(d->a, to->type, true)), to->name);
        return;
    }
    if (!to->type->nullable && from->type->nullable) {
        doc_warn(d, s, "column %u '%s': the table has %s, the query gives %s: a row with a NULL there is refused", i + 1, to->name, type_text(d, to->type), type_text(d, from->type));
        doc_advise(d, s, "such rows go where frazil.on-row-error says (dead letters); COALESCE(%s, ...) or WHERE %s IS NOT NULL keeps them out", from->name, from->name);
    }
    if (by_place && misplaced(table, from->name, at)) {
        doc_warn(d, s, "column %u of the query is called '%s' and goes into '%s' (%s), though the table has a column '%s'", i + 1, from->name, to->name, type_text(d, to->type), from->name);
        doc_advise(d, s, "columns go by place: check the order, or name them: INSERT INTO t (%s, ...)", from->name);
    }
}

static void compare_count(doctor *d, doc_step *s, const col_schema *table, const col_schema *query, uint32_t n) {
    fz_buf b = {0};
    for (uint32_t i = query->n; i < n; i++) fz_buf_printf(&b, "%s'%s' %s", i > query->n ? ", " : "", table->fields[i].name, type_text(d, table->fields[i].type));
    if (b.len) doc_fail(d, s, "the query gives %u columns, the table has %u: nothing for %s", query->n, n, fz_buf_cstr(&b));
    for (uint32_t i = n; i < query->n; i++) fz_buf_printf(&b, "%s'%s' %s", i > n ? ", " : "", query->fields[i].name, type_text(d, query->fields[i].type));
    if (query->n > n) doc_fail(d, s, "the query gives %u columns, the table takes %u: no place for %s", query->n, n, fz_buf_cstr(&b));
    fz_buf_free(&b);
    doc_advise(d, s, "change the SELECT, name the columns in INSERT INTO t (...), or ALTER the table with another engine");
}

static void compare_query(doctor *d, doc_step *s, const ops_need_insert *in, const col_schema *table) {
    uint32_t n;
    const int32_t *at = places(d, in, table, &n);
    if (in->query->n != n) compare_count(d, s, table, in->query, n);
    for (uint32_t i = 0; i < n && i < in->query->n; i++) {
        if (at[i] >= 0) compare_column(d, s, table, &in->query->fields[i], i, at[i], in->n_columns == 0);
        else doc_fail(d, s, "the table has no column '%s', which the INSERT names", in->columns[i]);
    }
}

/* What CREATE TABLE IF NOT EXISTS says of a table that is there already has no effect: said, since somebody expects it. */
static void compare_declared(doctor *d, doc_step *s, const col_schema *declared, const col_schema *table) {
    for (uint32_t i = 0; i < declared->n; i++) {
        const col_field *want = &declared->fields[i];
        int at = col_schema_find(table, want->name);
        if (at < 0) doc_warn(d, s, "CREATE TABLE has column '%s' %s, the table that is there has none", want->name, type_text(d, want->type));
        else if (strcmp(type_text(d, want->type), type_text(d, table->fields[at].type)) != 0)
            doc_warn(d, s, "column '%s': CREATE TABLE says %s, the table that is there has %s", want->name, type_text(d, want->type), type_text(d, table->fields[at].type));
    }
    for (uint32_t i = 0; i < table->n; i++)
        if (col_schema_find(declared, table->fields[i].name) < 0) doc_warn(d, s, "the table that is there has column '%s' %s, CREATE TABLE has none", table->fields[i].name, type_text(d, table->fields[i].type));
}

/* The binder has the last word. */
static void bind(doctor *d, doc_step *s, const ops_need_insert *in, const cat_table *target) {
    sql_plan *plan;
    sql_settings settings;
    fz_error e = {0};
    if (d->plan->bind(d->plan->cx, in, target, d->a, &plan, &settings, &e) == FZ_OK || s->status == OPS_STEP_FAIL) return;
    if (e.line) doc_fail(d, s, "line %d, column %d: %s", e.line, e.column, doc_error_text(d, &e));
    else doc_fail(d, s, "%s", doc_error_text(d, &e));
    if (e.hint[0]) doc_advise(d, s, "%s", e.hint);
}

static const doc_step *unread(doctor *d) {
    for (uint32_t i = 0; i < d->plan->n_tables; i++)
        if (d->plan->tables[i].read && !doc_good(d->tables[i].step)) return d->tables[i].step;
    return NULL;
}

void doc_table_schema(doctor *d, doc_table *t) {
    doc_step *s = doc_begin(d, "doctor.table.schema", t->need->text);
    t->schema = s;
    const col_schema *have = t->need->declared;
    col_schema *cols;
    fz_error e = {0};
    if (doc_blocked(d, s, t->step)) return;
    if (t->loaded && ice_schema_to_cols(d->a, t->loaded->metadata->schema, &cols, &e) != FZ_OK) {
        doc_fail_error(d, s, &e);
        return;
    }
    if (t->loaded) have = cols;
    doc_asked(d, s, "columns of the table%s against those of each INSERT", t->loaded ? "" : " to be made");
    for (uint32_t i = 0; have && i < d->plan->n_inserts; i++) {
        const ops_need_insert *in = &d->plan->inserts[i];
        if (&d->plan->tables[in->table] != t->need) continue;
        if (!in->query && doc_blocked(d, s, unread(d))) return;
        if (in->query) compare_query(d, s, in, have);
        if (t->loaded) bind(d, s, in, t->loaded);
    }
    if (t->loaded && t->need->declared) compare_declared(d, s, t->need->declared, have);
    if (have && s->status == OPS_STEP_OK) doc_ok(d, s, "%u columns match", have->n);
}

/* ---- what is in it ---- */

static bool see_file(void *cx, const char *location, uint64_t size, int64_t mtime) {
    (void)size, (void)mtime;
    const char **first = cx;
    if (strstr(location, "/frazil-doctor-")) return true;
    *first = location;
    return false;
}

void doc_table_snapshot(doctor *d, doc_table *t) {
    if (!t->loaded) return;
    doc_step *s = doc_begin(d, "doctor.table.snapshot", t->need->text);
    const ice_metadata *m = t->loaded->metadata;
    const ice_snapshot *now = ice_metadata_current(m);
    doc_asked(d, s, "the current snapshot, and whether files lie in %s", m->location);
    if (doc_blocked(d, s, t->step)) return;
    if (now) {
        char time[OPS_TIME_TEXT];
        ops_time_text(now->timestamp_ms, time);
        const char *rows = fz_pair_get(now->summary, now->n_summary, "total-records");
        doc_ok(d, s, "snapshot %" PRId64 " of %s%s%s", now->id, time, rows ? ", rows: " : "", rows ? rows : "");
        return;
    }
    const char *seen = NULL, *data = fio_join(d->a, m->location, "data/");
    fz_error ignored;
    const doc_step *list = doc_find(d, "doctor.s3.list", t->need->text);
    bool may_list = fio_local_path(m->location) || (list && list->status == OPS_STEP_OK);
    if (may_list && fio_list(t->loaded->io, data, see_file, &seen, &ignored) == FZ_OK && seen) {
        doc_warn(d, s, "there is no snapshot, and there are files below %s: no query engine sees them", data);
        doc_advise(d, s, "files become rows by a commit: they belong to a checkpoint that has not ended, or are left over from a job that failed. Look at the job's log (event=commit), then frazil inspect %s",
                   t->need->text);
    } else doc_ok(d, s, "none yet: Athena and others see no rows before the first checkpoint");
}

/* ---- positions ---- */

typedef struct begins { uint32_t known, fresh, none; uint64_t ahead; fz_buf b; } begins;

static void see_begin(void *cx, const job_begin *x) {
    begins *p = cx;
    p->known += x->known;
    p->fresh += !x->known;
    p->none += x->from < 0;
    if (x->from >= 0 && x->high > x->from) p->ahead += (uint64_t)(x->high - x->from);
    if (p->known + p->fresh <= 8) fz_buf_printf(&p->b, "\n%s of %s: from offset %" PRId64 " (%s), log %" PRId64 " to %" PRId64, x->split, x->target, x->from, x->known ? "the table" : "the script", x->low, x->high);
}

static const doc_step *scan_step(const doctor *d, const sql_plan *p) {
    for (uint32_t i = 0; i < p->n_inputs; i++) {
        const doc_step *s = scan_step(d, p->inputs[i]);
        if (s) return s;
    }
    if (p->kind != SQL_P_SCAN || p->table->kind != SQL_T_CONNECTOR) return NULL;
    const doc_step *s = doc_find(d, "doctor.kafka.offsets", p->table->path);
    if (!s) s = doc_find(d, "doctor.source", p->table->path);
    return s && !doc_good(s) ? s : NULL;
}

/* INSERTs of one statement whose tables are there. */
static uint32_t bound_inserts(doctor *d, doc_step *s, uint32_t statement, job_insert *v, sql_settings *sql, uint32_t *absent) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->plan->n_inserts; i++) {
        const ops_need_insert *in = &d->plan->inserts[i];
        if (in->statement != statement) continue;
        const doc_table *t = &d->tables[in->table];
        if (doc_blocked(d, s, t->format) || doc_blocked(d, s, t->schema)) return 0;
        bool before = false; /* several INSERTs into one table */
        for (uint32_t k = 0; k < i; k++) before |= d->plan->inserts[k].statement == statement && d->plan->inserts[k].table == in->table;
        *absent += t->absent && !before;
        if (!t->loaded) continue;
        sql_plan *plan = NULL;
        fz_error e = {0};
        if (d->plan->bind(d->plan->cx, in, t->loaded, d->a, &plan, sql, &e) != FZ_OK) {
            doc_fail_error(d, s, &e);
            return 0;
        }
        if (doc_blocked(d, s, scan_step(d, plan))) return 0;
        v[n++] = (job_insert){.plan = plan, .catalog = d->catalogs[t->need->catalog].cat, .target = t->loaded->ident, .target_text = t->need->text, .pos = in->pos};
    }
    return n;
}

static void statement_positions(doctor *d, uint32_t statement, const ops_need_insert *first) {
    doc_step *s = doc_begin(d, "doctor.positions", fz_arena_printf(d->a, "%s, INSERT of line %d", first->pipeline, first->pos.line));
    job_insert *v = FZ_ANEWN(d->a, job_insert, d->plan->n_inserts);
    sql_settings sql = {0};
    uint32_t absent = 0;
    if (doc_blocked(d, s, d->error_path)) return;
    doc_asked(d, s, "positions of pipeline '%s' in the tables, and the logs they belong to", first->pipeline);
    uint32_t n = bound_inserts(d, s, statement, v, &sql, &absent);
    if (s->status != OPS_STEP_OK) return;
    if (absent) doc_ok(d, s, "%u table%s to be made: the job begins where the script says", absent, absent == 1 ? "" : "s");
    if (!n) return;
    begins b = {0};
    fz_error e = {0};
    job_spec spec = {.name = first->pipeline, .settings = first->settings, .sql = &sql, .n_inserts = n, .inserts = v};
    if (job_look(&spec, see_begin, &b, &e) != FZ_OK) doc_fail_error(d, s, &e);
    else if (b.none) {
        doc_fail(d, s, "%u partitions have neither a position in the table nor an offset committed by the group", b.none);
        doc_advise(d, s, "'properties.auto.offset.reset' = 'earliest' in the source table, or another 'scan.startup.mode'");
    } else if (b.known + b.fresh == 0) doc_ok(d, s, "no source with positions: rows are added at each run");
    else if (!b.fresh) doc_ok(d, s, "goes on from the table, %" PRIu64 " records to read%s", b.ahead, fz_buf_cstr(&b.b));
    else
        doc_ok(d, s, "%u split%s on from the table, %u begin%s where the script says, %" PRIu64 " records to read%s", b.known, b.known == 1 ? " goes" : "s go", b.fresh, b.fresh == 1 ? "s" : "", b.ahead,
               fz_buf_cstr(&b.b));
    fz_buf_free(&b.b);
}

void doc_positions(doctor *d) {
    for (uint32_t i = 0; i < d->plan->n_inserts; i++)
        if (i == 0 || d->plan->inserts[i].statement != d->plan->inserts[i - 1].statement) statement_positions(d, d->plan->inserts[i].statement, &d->plan->inserts[i]);
}
