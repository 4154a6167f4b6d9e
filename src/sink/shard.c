/* A writer shard: open Parquet writers by partition, under one budget. See sink.h.
 *
 * Memory: an open file is an entry of about 120 bytes, its tuple and what its pq_writer and fio_writer hold. When the budget is passed, pages in progress are
 * compressed before their time, then large writers end a row group (the file stays one file); when only small ones are left, files are closed early.
 */
#include "fileio/fileio.h"
#include "sink/sink_int.h"

typedef struct open_file {
    struct open_file *next; /* of the hash chain */
    uint64_t hash;
    ice_tuple tuple;
    pq_writer *writer;
    fio_writer *out;        /* NULL until the first bytes leave */
    const char *location;   /* NULL likewise */
    size_t bytes;           /* as last accounted */
} open_file;

typedef struct table_files {
    const sink_table *table;
    fz_arena *arena;        /* tuples and locations of open files, descriptions of closed ones; until sink_shard_close */
    open_file **bucket;
    uint32_t n_buckets, n_open;
    ice_data_file *done;
    uint32_t n_done, cap_done;
} table_files;

struct sink_shard {
    uint32_t number, counter; /* counter: files named so far */
    size_t budget, bytes;
    pq_codec *codec;
    table_files *tables;      /* by sink_table.index */
    uint32_t n_tables;
};

#define ENTRY_BYTES 192 /* of an open_file with its tuple, beside the writer */

sink_shard *sink_shard_new(uint32_t number, size_t budget) {
    sink_shard *s = FZ_NEW(sink_shard);
    s->number = number;
    s->budget = budget;
    s->codec = pq_codec_new();
    return s;
}
void sink_shard_set_budget(sink_shard *s, size_t budget) { s->budget = budget; }
size_t sink_shard_bytes(const sink_shard *s) { return s->bytes; }

static table_files *files_of(sink_shard *s, const sink_table *t) {
    if (t->index >= s->n_tables) {
        s->tables = fz_realloc(s->tables, (t->index + 1) * sizeof *s->tables);
        memset(s->tables + s->n_tables, 0, (t->index + 1 - s->n_tables) * sizeof *s->tables);
        s->n_tables = t->index + 1;
    }
    table_files *f = &s->tables[t->index];
    f->table = t;
    if (!f->arena) f->arena = fz_arena_new();
    if (!f->bucket) {
        f->n_buckets = 64;
        f->bucket = fz_calloc(f->n_buckets, sizeof *f->bucket);
    }
    return f;
}

static void rehash(table_files *f) {
    uint32_t n = f->n_buckets * 4;
    open_file **bucket = fz_calloc(n, sizeof *bucket);
    for (uint32_t b = 0; b < f->n_buckets; b++)
        for (open_file *o = f->bucket[b], *next; o; o = next) {
            next = o->next;
            o->next = bucket[o->hash & (n - 1)];
            bucket[o->hash & (n - 1)] = o;
        }
    fz_free(f->bucket);
    f->bucket = bucket;
    f->n_buckets = n;
}

static fz_status file_for(sink_shard *s, table_files *f, const sink_part *p, open_file **out, fz_error *err) {
    for (open_file *o = f->bucket[p->hash & (f->n_buckets - 1)]; o; o = o->next)
        if (o->hash == p->hash && ice_tuple_eq(o->tuple, p->tuple)) return *out = o, FZ_OK;
    if (f->n_open >= f->n_buckets) rehash(f);
    open_file *o = FZ_NEW(open_file);
    fz_status rc = pq_writer_new(f->table->fields, f->table->cols->n, &f->table->options, f->table->key_values, 1, &o->writer, err);
    if (rc != FZ_OK) {
        fz_free(o);
        return rc;
    }
    o->hash = p->hash;
    o->tuple = ice_tuple_clone(f->arena, p->tuple);
    o->next = f->bucket[p->hash & (f->n_buckets - 1)];
    f->bucket[p->hash & (f->n_buckets - 1)] = o;
    f->n_open++;
    o->bytes = ENTRY_BYTES;
    s->bytes += ENTRY_BYTES;
    return *out = o, FZ_OK;
}

/* Components that the store cannot name are cut and end in a hash of the whole: the directory is for people, the manifest has the value. */
static const char *short_path(fz_arena *a, const char *path, size_t most) {
    if (!most || strlen(path) <= most) return path;
    fz_buf b = {0};
    for (const char *p = path; *p;) {
        size_t n = strcspn(p, "/"), keep = n;
        if (n > most) {
            keep = most - 17;
            while (keep && (p[keep - 1] == '%' || p[keep - 2] == '%')) keep--; /* no half of an escape */
            fz_buf_append(&b, p, keep);
            fz_buf_printf(&b, "-%016llx", (unsigned long long)fz_hash(p, n));
        } else fz_buf_append(&b, p, n);
        p += n;
        if (*p) fz_buf_putc(&b, *p++);
    }
    const char *r = fz_arena_strndup(a, (const char *)b.data, b.len);
    fz_buf_free(&b);
    return r;
}

typedef struct write_cx { sink_shard *s; table_files *f; open_file *o; } write_cx;

static fz_status write_bytes(void *cx, const void *p, size_t n, fz_error *err) {
    write_cx *w = cx;
    if (!w->o->out) {
        const sink_table *t = w->f->table;
        const char *name = ice_data_file_name(w->f->arena, w->s->number, 0, t->run_id, ++w->s->counter, "parquet");
        const char *path = short_path(w->f->arena, ice_tuple_path(w->f->arena, t->spec, t->spec_types, w->o->tuple), fio_name_max(t->meta->location));
        w->o->location = ice_data_file_location(w->f->arena, t->meta, path, name);
        FZ_TRY(fio_writer_open(t->io, w->o->location, &w->o->out, err));
    }
    return fio_writer_append(w->o->out, p, n, err);
}

static void account(sink_shard *s, open_file *o) {
    size_t now = ENTRY_BYTES + pq_writer_bytes(o->writer) + (o->out ? fio_writer_memory(o->out) : 0);
    s->bytes += now - o->bytes;
    o->bytes = now;
}

static ice_counts counts_of(fz_arena *a, const pq_file_info *i, size_t field) {
    ice_count *v = FZ_ANEWN(a, ice_count, i->n_columns);
    uint32_t n = 0;
    for (uint32_t c = 0; c < i->n_columns; c++) {
        int64_t x;
        memcpy(&x, (const char *)&i->columns[c] + field, sizeof x);
        if (x >= 0) v[n++] = (ice_count){i->columns[c].field_id, x};
    }
    return (ice_counts){n, v};
}

static void describe(table_files *f, open_file *o, const pq_file_info *i, uint64_t size) {
    fz_arena *a = f->arena;
    ice_bound *lower = FZ_ANEWN(a, ice_bound, i->n_columns), *upper = FZ_ANEWN(a, ice_bound, i->n_columns);
    uint32_t nl = 0, nu = 0;
    for (uint32_t c = 0; c < i->n_columns; c++) {
        const pq_column_metrics *m = &i->columns[c];
        if (m->lower) lower[nl++] = (ice_bound){m->field_id, {(const char *)m->lower, m->lower_len}};
        if (m->upper) upper[nu++] = (ice_bound){m->field_id, {(const char *)m->upper, m->upper_len}};
    }
    FZ_GROW(f->done, f->n_done, f->cap_done);
    f->done[f->n_done++] = (ice_data_file){
        .content = ICE_DATA, .path = o->location, .format = "PARQUET", .spec_id = f->table->spec->spec_id, .partition = o->tuple,
        .record_count = (int64_t)i->rows, .file_size = (int64_t)size,
        .column_sizes = counts_of(a, i, offsetof(pq_column_metrics, column_size)), .value_counts = counts_of(a, i, offsetof(pq_column_metrics, value_count)),
        .null_counts = counts_of(a, i, offsetof(pq_column_metrics, null_count)), .nan_counts = counts_of(a, i, offsetof(pq_column_metrics, nan_count)),
        .lower = {nl, lower}, .upper = {nu, upper}, .n_split_offsets = i->n_split_offsets, .split_offsets = i->split_offsets,
        .sort_order_id = f->table->meta->default_sort_order_id == 0 ? 0 : ICE_NONE};
}

static void unlink_file(table_files *f, open_file *o) {
    open_file **at = &f->bucket[o->hash & (f->n_buckets - 1)];
    while (*at != o) at = &(*at)->next;
    *at = o->next;
    f->n_open--;
}
static void drop_file(sink_shard *s, table_files *f, open_file *o) {
    unlink_file(f, o);
    s->bytes -= o->bytes;
    pq_writer_free(o->writer);
    fio_writer_abort(o->out);
    fz_free(o);
}

/* Ends the file; on success it is described, in any case the entry is gone. batch NULL: durable at once; else with the batch. */
static fz_status finish_file(sink_shard *s, table_files *f, open_file *o, fio_batch *batch, fz_error *err) {
    write_cx cx = {s, f, o};
    pq_file_info info;
    uint64_t size = 0;
    fz_status rc = pq_writer_finish(o->writer, s->codec, write_bytes, &cx, f->arena, &info, err);
    if (rc == FZ_OK) {
        fio_writer *out = o->out;
        o->out = NULL;
        rc = batch ? fio_writer_finish_in(out, batch, &size, err) : fio_writer_finish(out, &size, err);
    }
    if (rc == FZ_OK) {
        describe(f, o, &info, size);
        fz_metric_add(FZ_M_FILES_WRITTEN, 1);
        fz_metric_add(FZ_M_BYTES_WRITTEN, size);
    }
    drop_file(s, f, o);
    return rc;
}

/* Below this a writer is not worth a row group of its own: the file is closed instead. */
#define LEAST_ROW_GROUP ((size_t)128 * 1024)
/* Pages in progress of at least this size are compressed early before any row group ends: it costs next to nothing. */
#define EARLY_PAGE ((size_t)48 * 1024)

static open_file *largest(const sink_shard *s, table_files **of) {
    open_file *best = NULL;
    for (uint32_t t = 0; t < s->n_tables; t++)
        for (uint32_t b = 0; b < s->tables[t].n_buckets; b++)
            for (open_file *o = s->tables[t].bucket[b]; o; o = o->next)
                if (!best || o->bytes > best->bytes) {
                    best = o;
                    *of = &s->tables[t];
                }
    return best;
}

/* Closes every file of at least `least` bytes: one walk, since with tens of thousands of small files looking for the largest each time would be quadratic. */
static fz_status close_from(sink_shard *s, size_t least, size_t target, fz_error *err) {
    for (uint32_t t = 0; t < s->n_tables; t++)
        for (uint32_t b = 0; b < s->tables[t].n_buckets; b++)
            for (open_file *o = s->tables[t].bucket[b], *next; o && s->bytes > target; o = next) {
                next = o->next;
                if (o->bytes < least) continue;
                FZ_TRY(finish_file(s, &s->tables[t], o, NULL, err));
                fz_metric_add(FZ_M_FILES_EARLY, 1);
            }
    return FZ_OK;
}

static fz_status flush_pages(sink_shard *s, size_t target, fz_error *err) {
    for (uint32_t t = 0; t < s->n_tables; t++)
        for (uint32_t b = 0; b < s->tables[t].n_buckets; b++)
            for (open_file *o = s->tables[t].bucket[b]; o && s->bytes > target; o = o->next) {
                if (o->bytes < EARLY_PAGE) continue;
                FZ_TRY(pq_writer_flush_pages(o->writer, EARLY_PAGE, s->codec, err));
                account(s, o);
            }
    return FZ_OK;
}

fz_status sink_shard_shrink(sink_shard *s, size_t target, fz_error *err) {
    FZ_TRY(flush_pages(s, target, err));
    while (s->bytes > target) {
        table_files *f = NULL;
        open_file *o = largest(s, &f);
        if (!o) return FZ_OK;
        if (o->bytes < LEAST_ROW_GROUP) {
            FZ_TRY(close_from(s, o->bytes / 2, target, err));
            continue;
        }
        FZ_TRY(fz_fault_status("spill.write", err));
        write_cx cx = {s, f, o};
        size_t before = o->bytes;
        FZ_TRY(pq_writer_flush_row_group(o->writer, s->codec, write_bytes, &cx, err));
        if (o->out) FZ_TRY(fio_writer_flush(o->out, err));
        account(s, o);
        if (o->bytes + (before / 8) >= before) { /* nothing to gain there */
            FZ_TRY(finish_file(s, f, o, NULL, err));
            fz_metric_add(FZ_M_FILES_EARLY, 1);
        }
    }
    return FZ_OK;
}

fz_status sink_shard_write(sink_shard *s, const sink_table *t, col_vec *const *cols, const sink_part *const *parts, uint32_t n, fz_error *err) {
    table_files *f = files_of(s, t);
    for (uint32_t k = 0; k < n; k++) {
        open_file *o = NULL;
        FZ_TRY(file_for(s, f, parts[k], &o, err));
        write_cx cx = {s, f, o};
        FZ_TRY(pq_writer_append(o->writer, cols, parts[k]->sel, parts[k]->n_sel, s->codec, write_bytes, &cx, err));
        account(s, o);
        if (pq_writer_file_bytes(o->writer) >= (uint64_t)t->target_file_size) {
            FZ_TRY(finish_file(s, f, o, NULL, err));
            fz_metric_add(FZ_M_FILES_EARLY, 1);
        }
        if (s->bytes > s->budget) FZ_TRY(sink_shard_shrink(s, s->budget - s->budget / 4, err));
    }
    return FZ_OK;
}

fz_status sink_shard_close(sink_shard *s, const sink_table *t, sink_files *out, fz_error *err) {
    *out = (sink_files){0};
    table_files *f = files_of(s, t);
    fio_batch *batch = fio_batch_new(); /* one round of fsyncs for all files */
    fz_status rc = FZ_OK;
    for (uint32_t b = 0; rc == FZ_OK && b < f->n_buckets; b++)
        while (rc == FZ_OK && f->bucket[b]) rc = finish_file(s, f, f->bucket[b], batch, err);
    if (rc == FZ_OK) rc = fio_batch_sync(batch, err);
    fio_batch_free(batch);
    FZ_TRY(rc);
    for (uint32_t i = 0; i < f->n_done; i++) {
        out->rows += (uint64_t)f->done[i].record_count;
        out->bytes += (uint64_t)f->done[i].file_size;
    }
    out->v = f->done;
    out->n = f->n_done;
    out->arena = f->arena;
    f->done = NULL;
    f->n_done = f->cap_done = 0;
    f->arena = NULL;
    return FZ_OK;
}

void sink_files_free(sink_files *f) {
    fz_free(f->v);
    fz_arena_free(f->arena);
    *f = (sink_files){0};
}

void sink_discard(fio *io, const char *location) {
    fz_error e;
    if (fio_delete(io, location, &e) != FZ_OK) fz_log_error(FZ_LOG_WARN, "sink.orphan", &e);
}

void sink_discard_files(fio *io, const ice_data_file *v, uint32_t n) {
    if (n == 0) return;
    fz_error e;
    const char **paths = fz_malloc(n * sizeof *paths);
    for (uint32_t i = 0; i < n; i++) paths[i] = v[i].path;
    if (fio_delete_many(io, paths, n, &e) != FZ_OK) fz_log_error(FZ_LOG_WARN, "sink.orphan", &e);
    fz_free(paths);
}

void sink_shard_abort(sink_shard *s, const sink_table *t) {
    table_files *f = files_of(s, t);
    for (uint32_t b = 0; b < f->n_buckets; b++)
        while (f->bucket[b]) drop_file(s, f, f->bucket[b]);
    sink_discard_files(t->io, f->done, f->n_done);
    f->n_done = 0;
    fz_arena_reset(f->arena);
}

void sink_shard_free(sink_shard *s) {
    if (!s) return;
    for (uint32_t t = 0; t < s->n_tables; t++) {
        if (!s->tables[t].bucket) continue;
        sink_shard_abort(s, s->tables[t].table);
        fz_arena_free(s->tables[t].arena);
        fz_free(s->tables[t].bucket);
        fz_free(s->tables[t].done);
    }
    fz_free(s->tables);
    pq_codec_free(s->codec);
    fz_free(s);
}
