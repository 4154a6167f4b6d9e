/* Batches for the SCAN nodes of a query: connector tables through a source and a decoder, Iceberg tables through manifests and Parquet files.
 *
 * Invariants
 *  1. A table with live delete files is refused: its rows cannot be told from the data files alone.
 *  2. A row that a decoder rejects is an error, unless frazil.on-row-error says to go on; then it is counted. */
#include "session/session_int.h"
#include "fileio/fileio.h"
#include "job/job.h"
#include "job/scan.h"
#include "parquet/parquet.h"

typedef struct live_file { fio *io; const char *path; uint64_t size; } live_file;

typedef struct feed_scan {
    const sql_plan *scan;
    /* connector */
    job_scan *source;
    job_scan_reader *reader;
    bool ended;
    int64_t back_off_ms;
    /* Iceberg */
    fz_arena *arena;
    live_file *files;
    uint32_t n_files, cap_files, file;
    pq_reader *open;
    uint32_t group;
    pq_field *fields;                /* of the wanted columns */
    uint32_t *field_col;             /* wanted column -> column of the scan */
    uint32_t n_fields;
    struct feed_scan *next;
} feed_scan;

struct ses_feed {
    ses_session *s;
    feed_scan *scans;
    bool skip_bad;
    uint64_t skipped;
};

ses_feed *ses_feed_new(ses_session *s) {
    ses_feed *f = FZ_NEW(ses_feed);
    f->s = s;
    f->skip_bad = conf_is_set(s->settings, "frazil.on-row-error") && !conf_is(s->settings, "frazil.on-row-error", "fail");
    return f;
}

static void scan_free(feed_scan *fs) {
    job_scan_reader_free(fs->reader);
    job_scan_close(fs->source);
    pq_reader_free(fs->open);
    fz_arena_free(fs->arena);
    fz_free(fs->files);
    fz_free(fs);
}

void ses_feed_free(ses_feed *f) {
    if (!f) return;
    for (feed_scan *fs = f->scans, *next; fs; fs = next) {
        next = fs->next;
        scan_free(fs);
    }
    fz_free(f);
}

uint64_t ses_feed_skipped(const ses_feed *f) { return f->skipped; }

/* ---- connectors ---- */

static fz_status open_connector(ses_feed *f, feed_scan *fs, fz_error *err) {
    const conf *c = f->s->settings;
    src_context cx = {.table = fs->scan->table->path, .job = "frazil-sql", .readers = 1, .memory = (uint64_t)conf_get_i64(c, "memory.limit") / 4,
                      .max_record_size = (uint32_t)conf_get_i64(c, "source.max-record-size"), .state_dir = conf_get(c, "frazil.state.dir"), .bounded_job = conf_is(c, "execution.runtime-mode", "batch"),
                      .time_zone = ses_time_zone(f->s)};
    FZ_TRY(job_scan_open(fs->scan, &cx, &fs->source, err));
    FZ_TRY(job_scan_reader_new(fs->source, &fs->reader, err));
    src_source *src = job_scan_source(fs->source);
    for (uint32_t i = 0; i < src_n_splits(src); i++) FZ_TRY(src_assign(src, i, src_get_split(src, i)->start, err));
    return FZ_OK;
}

/* One reject fails the query, or all are counted. */
static fz_status take_rejects(ses_feed *f, const feed_scan *fs, const fz_chunk *c, fz_rejects *rejects, fz_error *err) {
    if (!rejects->n) return FZ_OK;
    if (f->skip_bad) {
        f->skipped += rejects->n;
        return FZ_OK;
    }
    const fz_reject *r = &rejects->v[0];
    const src_split *split = src_get_split(job_scan_source(fs->source), c->split);
    fz_fail(err, FZ_DATA, r->code, "%s", r->message);
    fz_detail(err, "%s, record at %lld of %s", fs->scan->table->path, (long long)c->rec[r->rec].offset, split->name);
    fz_hint(err, "SET 'frazil.on-row-error' = 'drop' skips such rows");
    return FZ_DATA;
}

/* A chunk's rows; *n_rows may be 0 when all of it was dropped. */
static fz_status decode_chunk(ses_feed *f, feed_scan *fs, const fz_chunk *c, fz_arena *a, col_vec ***cols, uint32_t *n_rows, fz_error *err) {
    fz_rejects rejects = {0};
    job_rows rows = {0};
    fz_status rc = job_scan_decode(fs->reader, c, a, &rows, &rejects, err);
    if (rc == FZ_OK) rc = take_rejects(f, fs, c, &rejects, err);
    fz_free(rejects.v);
    *cols = rows.cols;
    *n_rows = rc == FZ_OK ? rows.n_rows : 0;
    return rc;
}

static fz_status next_of_connector(ses_feed *f, feed_scan *fs, fz_arena *a, col_vec ***cols, uint32_t *n_rows, fz_error *err) {
    src_source *src = job_scan_source(fs->source);
    *n_rows = 0;
    while (!fs->ended && !job_stop_requested()) {
        fz_chunk *c = NULL;
        bool done = false;
        fz_error e = {0};
        fz_status rc = src_poll(src, 0, 200, &c, &done, &e);
        if (rc == FZ_RETRY) { /* the peer is away: said, and tried again, ever more slowly */
            fs->back_off_ms = fs->back_off_ms ? (fs->back_off_ms < 16000 ? fs->back_off_ms * 2 : 30000) : 500;
            fz_log_error(FZ_LOG_WARN, "source.waiting", &e);
            for (int64_t slept = 0; slept < fs->back_off_ms && !job_stop_requested(); slept += 100) fz_sleep_ms(100);
            continue;
        }
        if (rc != FZ_OK) {
            if (err) *err = e;
            return rc;
        }
        fs->back_off_ms = 0;
        fs->ended = done && !c;
        if (!c) continue;
        rc = decode_chunk(f, fs, c, a, cols, n_rows, err);
        fz_chunk_release(c);
        if (rc != FZ_OK || *n_rows) return rc;
    }
    return FZ_OK;
}

/* ---- Iceberg ---- */

static void fill_field(fz_arena *a, pq_field *f, const ice_field *from, const col_type *type) {
    *f = (pq_field){.name = from->name, .field_id = from->id, .required = from->required, .type = type};
    f->is_uuid = from->type->kind == ICE_UUID;
    f->is_fixed = from->type->kind == ICE_FIXED || f->is_uuid;
    if (!from->type->n_fields) return;
    pq_field *children = FZ_ANEWN(a, pq_field, from->type->n_fields);
    for (uint32_t k = 0; k < from->type->n_fields; k++) fill_field(a, &children[k], &from->type->fields[k], type->fields[k].type);
    f->children = children;
    f->n_children = from->type->n_fields;
}

static fz_status add_entry(feed_scan *fs, const ice_entry *e, fz_error *err) {
    if (e->status == ICE_DELETED) return FZ_OK;
    if (e->file.content != ICE_DATA) {
        fz_fail(err, FZ_USER, "sql.unsupported", "table '%s' has delete files (%s), which cannot be read", fs->scan->table->path, e->file.path);
        return fz_hint(err, "rewrite the table's data files with another engine");
    }
    if (!fz_ieq(e->file.format, "parquet")) return fz_fail(err, FZ_USER, "sql.unsupported", "table '%s' has a data file of format %s", fs->scan->table->path, e->file.format);
    FZ_GROW(fs->files, fs->n_files, fs->cap_files);
    fs->files[fs->n_files++] = (live_file){((const ses_iceberg *)fs->scan->table->handle)->loaded->io, fz_arena_strdup(fs->arena, e->file.path), (uint64_t)e->file.file_size};
    return FZ_OK;
}

static fz_status read_manifest(feed_scan *fs, const cat_table *t, const ice_manifest_file *mf, fz_error *err) {
    const ice_metadata *m = t->metadata;
    const ice_spec *spec = ice_metadata_spec(m, mf->spec_id);
    fz_arena *scratch = fz_arena_new();
    const ice_type **types = spec ? ice_metadata_spec_types(scratch, m, spec) : NULL;
    ice_manifest_reader *r = NULL;
    fz_buf bytes = {0};
    bool more = true;
    fz_status rc = cat_io.read(t->io, mf->path, &bytes, err);
    if (rc == FZ_OK) rc = ice_manifest_reader_open(bytes.data, bytes.len, mf, spec, types, &r, err);
    fz_arena *entry = fz_arena_new();
    while (rc == FZ_OK) {
        ice_entry e;
        fz_arena_reset(entry);
        rc = ice_manifest_reader_next(r, entry, &e, &more, err);
        if (rc != FZ_OK || !more) break;
        rc = add_entry(fs, &e, err);
    }
    ice_manifest_reader_close(r);
    fz_arena_free(entry);
    fz_arena_free(scratch);
    fz_buf_free(&bytes);
    return rc;
}

static fz_status open_iceberg(feed_scan *fs, fz_error *err) {
    const ses_iceberg *t = fs->scan->table->handle;
    const ice_metadata *m = t->loaded->metadata;
    const col_schema *schema = fs->scan->schema;
    fs->arena = fz_arena_new();
    fs->fields = FZ_ANEWN(fs->arena, pq_field, schema->n);
    fs->field_col = FZ_ANEWN(fs->arena, uint32_t, schema->n);
    for (uint32_t i = 0; i < schema->n; i++) {
        if (!fs->scan->wanted[i]) continue;
        const ice_field *from = NULL;
        for (uint32_t k = 0; k < m->schema->n_fields && !from; k++)
            if (strcmp(m->schema->fields[k].name, schema->fields[i].name) == 0) from = &m->schema->fields[k];
        if (!from) return fz_fail(err, FZ_FATAL, "iceberg.schema", "column '%s' is not in the schema of '%s'", schema->fields[i].name, fs->scan->table->path);
        fill_field(fs->arena, &fs->fields[fs->n_fields], from, schema->fields[i].type);
        fs->field_col[fs->n_fields++] = i;
    }
    const ice_snapshot *snap = ice_metadata_current(m);
    ice_manifest_list list = {0};
    const ice_io io = cat_io_of(t->loaded->io);
    if (snap) FZ_TRY(ice_snapshot_manifests(fs->arena, snap, &io, &list, err));
    for (uint32_t i = 0; i < list.n; i++) FZ_TRY(read_manifest(fs, t->loaded, &list.v[i], err));
    return FZ_OK;
}

static fz_status read_range(void *cx, uint64_t from, size_t n, void *out, fz_error *err) {
    const live_file *f = cx;
    return fio_read_range(f->io, f->path, from, n, out, err);
}

static fz_status next_of_iceberg(feed_scan *fs, fz_arena *a, col_vec ***cols, uint32_t *n_rows, fz_error *err) {
    *n_rows = 0;
    while (*n_rows == 0 && (fs->open || fs->file < fs->n_files)) {
        const live_file *file = &fs->files[fs->file];
        if (!fs->open) {
            fs->group = 0;
            FZ_TRY(pq_reader_open(file->size, read_range, (void *)(uintptr_t)file, &fs->open, err));
        }
        if (fs->group == pq_reader_row_groups(fs->open)) {
            pq_reader_free(fs->open);
            fs->open = NULL;
            fs->file++;
            continue;
        }
        col_vec **read = FZ_ANEWN(a, col_vec *, fs->n_fields + 1);
        FZ_TRY(pq_reader_read(fs->open, fs->group++, fs->fields, fs->n_fields, a, read, n_rows, err));
        *cols = FZ_ANEWN(a, col_vec *, fs->scan->schema->n + 1);
        for (uint32_t i = 0; i < fs->n_fields; i++) (*cols)[fs->field_col[i]] = read[i];
    }
    return FZ_OK;
}

/* ---- both ---- */

static fz_status find_scan(ses_feed *f, const sql_plan *scan, feed_scan **out, fz_error *err) {
    for (feed_scan *fs = f->scans; fs; fs = fs->next)
        if (fs->scan == scan) return *out = fs, FZ_OK;
    feed_scan *fs = FZ_NEW(feed_scan);
    fs->scan = scan;
    fs->next = f->scans;
    f->scans = fs; /* ses_feed_free frees it, opened or not */
    *out = fs;
    return scan->table->kind == SQL_T_ICEBERG ? open_iceberg(fs, err) : open_connector(f, fs, err);
}

static fz_status feed_next(void *cx, const sql_plan *scan, fz_arena *a, col_vec ***cols, uint32_t *n_rows, fz_error *err) {
    feed_scan *fs;
    FZ_TRY(find_scan(cx, scan, &fs, err));
    return fs->source ? next_of_connector(cx, fs, a, cols, n_rows, err) : next_of_iceberg(fs, a, cols, n_rows, err);
}

ex_feed ses_feed_calls(ses_feed *f) { return (ex_feed){f, feed_next}; }

fz_status ses_feed_open(ses_feed *f, const sql_plan *plan, bool *live, fz_error *err) {
    if (plan->kind == SQL_P_SCAN) {
        feed_scan *fs;
        FZ_TRY(find_scan(f, plan, &fs, err));
        *live |= fs->source && !src_bounded(job_scan_source(fs->source));
    }
    for (uint32_t i = 0; i < plan->n_inputs; i++) FZ_TRY(ses_feed_open(f, plan->inputs[i], live, err));
    return FZ_OK;
}
