/* inspect: what is in a table, from its metadata and manifests. */
#include "job/lineage.h"
#include "ops/grid.h"
#include "ops/ops_int.h"
#include "ops/time_text.h"
#include <inttypes.h>
#include <stdlib.h>

bool ops_section_parse(const char *name, unsigned *mask) {
    static const struct { const char *name; unsigned bit; } known[] = {
        {"snapshots", OPS_SNAPSHOTS}, {"files", OPS_FILES}, {"partitions", OPS_PARTITIONS}, {"positions", OPS_POSITIONS}, {"diverted", OPS_DIVERTED}, {"all", OPS_ALL}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (fz_ieq(name, known[i].name)) return *mask |= known[i].bit, true;
    return false;
}

#define GRID(var, arena_, section_, ...)                                                                               \
    static const struct { const char *name; bool numeric; } var##_def[] = {__VA_ARGS__};                               \
    enum { var##_n = sizeof var##_def / sizeof *var##_def };                                                           \
    const char *var##_names[var##_n];                                                                                  \
    bool var##_numeric[var##_n];                                                                                       \
    for (unsigned i_ = 0; i_ < var##_n; i_++) {                                                                        \
        var##_names[i_] = var##_def[i_].name;                                                                          \
        var##_numeric[i_] = var##_def[i_].numeric;                                                                     \
    }                                                                                                                  \
    ops_grid var = {.section = section_, .n_columns = var##_n, .columns = var##_names, .numeric = var##_numeric, .a = arena_}

static const char *time_in(fz_arena *a, int64_t ms) {
    char t[OPS_TIME_TEXT];
    ops_time_text(ms, t);
    return fz_arena_strdup(a, t);
}

/* A summary's count; what is missing or no number is NULL. */
static const char *count_in(const ice_snapshot *s, const char *key) {
    const char *v = fz_pair_get(s->summary, s->n_summary, key);
    int64_t n;
    return v && fz_parse_i64(fz_sv_of(v), &n) ? v : NULL;
}

static void snapshots(const ice_metadata *m, fz_arena *a, ops_format format, fz_buf *out) {
    GRID(g, a, "snapshots", {"snapshot_id", true}, {"parent_id", true}, {"sequence", true}, {"committed_at", false}, {"operation", false}, {"added_files", true}, {"added_rows", true},
         {"total_rows", true}, {"pipeline", false}, {"checkpoint", true}, {"current", true});
    for (uint32_t i = 0; i < m->n_snapshots; i++) {
        const ice_snapshot *s = &m->snapshots[i];
        ops_grid_i64(&g, s->id);
        if (s->parent_id == ICE_NONE) ops_grid_text(&g, NULL);
        else ops_grid_i64(&g, s->parent_id);
        ops_grid_i64(&g, s->sequence);
        ops_grid_text(&g, time_in(a, s->timestamp_ms));
        ops_grid_text(&g, s->operation);
        ops_grid_text(&g, count_in(s, "added-data-files"));
        ops_grid_text(&g, count_in(s, "added-records"));
        ops_grid_text(&g, count_in(s, "total-records"));
        ops_grid_text(&g, fz_pair_get(s->summary, s->n_summary, JOB_KEY_PIPELINE));
        ops_grid_text(&g, count_in(s, JOB_KEY_CHECKPOINT));
        ops_grid_text(&g, s->id == m->current_snapshot_id ? "true" : "false");
    }
    ops_grid_render(&g, format, out);
}

/* ---- files and partitions: one walk for both ---- */

typedef struct partition { const char *path; int64_t files, rows, bytes; } partition;
typedef struct file_walk {
    const ice_metadata *m;
    fz_arena *a;
    ops_grid *files;            /* NULL: not asked for */
    bool want_partitions;
    partition *v;               /* heap, one a file until they are summed up */
    uint32_t n, cap;
    const char *last;           /* the path of the last partition: files of one partition often stand together */
} file_walk;

static const char *const contents[] = {"data", "position-deletes", "equality-deletes"};

static fz_status see_file(void *cx, const ice_manifest_file *f, const ice_entry *e, fz_error *err) {
    (void)err;
    file_walk *w = cx;
    if (e->status == ICE_DELETED) return FZ_OK;
    fz_arena *scratch = fz_arena_new();
    const ice_spec *spec = ice_metadata_spec(w->m, f->spec_id);
    const char *path = spec ? ice_tuple_path(scratch, spec, ice_metadata_spec_types(scratch, w->m, spec), e->file.partition) : "?";
    if (!w->last || strcmp(w->last, path) != 0) w->last = fz_arena_strdup(w->a, path);
    fz_arena_free(scratch);
    if (w->want_partitions && e->file.content == ICE_DATA) {
        FZ_GROW(w->v, w->n, w->cap);
        w->v[w->n++] = (partition){w->last, 1, e->file.record_count, e->file.file_size};
    }
    if (!w->files) return FZ_OK;
    ops_grid_text(w->files, contents[e->file.content]);
    ops_grid_text(w->files, w->last);
    ops_grid_i64(w->files, e->file.record_count);
    ops_grid_i64(w->files, e->file.file_size);
    ops_grid_i64(w->files, e->snapshot_id);
    ops_grid_i64(w->files, e->sequence);
    ops_grid_text(w->files, fz_arena_strdup(w->a, e->file.path));
    return FZ_OK;
}

static int by_path(const void *x, const void *y) { return strcmp(((const partition *)x)->path, ((const partition *)y)->path); }

static void partitions(file_walk *w, ops_format format, fz_buf *out) {
    GRID(g, w->a, "partitions", {"partition", false}, {"files", true}, {"rows", true}, {"bytes", true});
    if (w->n > 0) qsort(w->v, w->n, sizeof *w->v, by_path);
    for (uint32_t i = 0; i < w->n;) {
        partition p = w->v[i++];
        for (; i < w->n && strcmp(w->v[i].path, p.path) == 0; i++) {
            p.files++;
            p.rows += w->v[i].rows;
            p.bytes += w->v[i].bytes;
        }
        ops_grid_text(&g, p.path);
        ops_grid_i64(&g, p.files);
        ops_grid_i64(&g, p.rows);
        ops_grid_i64(&g, p.bytes);
    }
    ops_grid_render(&g, format, out);
}

static fz_status files(const cat_table *t, fz_arena *a, unsigned sections, ops_format format, fz_buf *out, fz_error *err) {
    const ice_metadata *m = t->metadata;
    const ice_io io = cat_io_of(t->io);
    GRID(g, a, "files", {"content", false}, {"partition", false}, {"rows", true}, {"bytes", true}, {"snapshot_id", true}, {"sequence", true}, {"path", false});
    file_walk w = {.m = m, .a = a, .files = sections & OPS_FILES ? &g : NULL, .want_partitions = sections & OPS_PARTITIONS};
    const ice_snapshot *s = ice_metadata_current(m);
    ice_manifest_list l = {0};
    fz_status rc = s ? ice_snapshot_manifests(a, s, &io, &l, err) : FZ_OK;
    for (uint32_t i = 0; rc == FZ_OK && i < l.n; i++) rc = ops_each_entry(t, &l.v[i], see_file, &w, err);
    if (rc == FZ_OK && w.files) ops_grid_render(&g, format, out);
    if (rc == FZ_OK && w.want_partitions) {
        if (w.files && format == OPS_TEXT) fz_buf_putc(out, '\n');
        partitions(&w, format, out);
    }
    fz_free(g.cells);
    fz_free(w.v);
    return rc;
}

/* ---- positions ---- */

static bool has(const char *const *v, uint32_t n, const char *s) {
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(v[i], s) == 0) return true;
    return false;
}

/* Pipelines that the lineage or a mirror names. */
static const char **pipelines(const ice_metadata *m, fz_arena *a, uint32_t *n) {
    const char **v = FZ_ANEWN(a, const char *, m->n_snapshots + m->n_properties);
    bool cut;
    *n = 0;
    for (const ice_snapshot *s = ice_metadata_current(m); s; s = ice_snapshot_parent(m, s, &cut)) {
        const char *p = fz_pair_get(s->summary, s->n_summary, JOB_KEY_PIPELINE);
        if (p && !has(v, *n, p)) v[(*n)++] = p;
    }
    for (uint32_t i = 0; i < m->n_properties; i++)
        if (fz_starts(m->properties[i].key, JOB_MIRROR_PREFIX) && !has(v, *n, m->properties[i].key + strlen(JOB_MIRROR_PREFIX)))
            v[(*n)++] = m->properties[i].key + strlen(JOB_MIRROR_PREFIX);
    return v;
}

static fz_status positions(const cat_table *t, fz_arena *a, ops_format format, fz_buf *out, fz_error *err) {
    const ice_metadata *m = t->metadata;
    const ice_io io = cat_io_of(t->io);
    GRID(g, a, "positions", {"pipeline", false}, {"source", false}, {"topic", false}, {"partition", true}, {"next", true}, {"last_offset", true}, {"last_timestamp", false}, {"snapshot_id", true},
         {"origin", false});
    uint32_t n;
    const char **names = pipelines(m, a, &n);
    fz_status rc = FZ_OK;
    for (uint32_t i = 0; i < n && rc == FZ_OK; i++) {
        job_lineage l;
        rc = job_lineage_read(a, m, names[i], NULL, &io, &l, err);
        for (uint32_t k = 0; rc == FZ_OK && k < l.marks.n_positions; k++) {
            const job_position *p = &l.marks.positions[k];
            ops_grid_text(&g, names[i]);
            ops_grid_text(&g, p->key.source);
            ops_grid_text(&g, p->key.topic);
            ops_grid_i64(&g, p->key.partition);
            ops_grid_i64(&g, p->next);
            if (p->has_last) ops_grid_i64(&g, p->last_offset);
            else ops_grid_text(&g, NULL);
            ops_grid_text(&g, p->has_last && p->last_timestamp >= 0 ? time_in(a, p->last_timestamp) : NULL);
            ops_grid_i64(&g, l.snapshot_id);
            ops_grid_text(&g, !l.from_mirror ? "lineage" : l.unproven ? "mirror, unproven" : "mirror");
        }
    }
    if (rc == FZ_OK) ops_grid_render(&g, format, out);
    fz_free(g.cells);
    return rc;
}

/* ---- error objects that the table lacks ---- */

static fz_status diverted(const cat_table *t, fz_arena *a, ops_format format, fz_buf *out, fz_error *err) {
    const ice_io io = cat_io_of(t->io);
    GRID(g, a, "diverted", {"pipeline", false}, {"rows", true}, {"records", true}, {"topic", false}, {"partition", true}, {"from", true}, {"to", true}, {"object", false});
    uint32_t n;
    const char **names = pipelines(t->metadata, a, &n);
    fz_status rc = FZ_OK;
    for (uint32_t i = 0; i < n && rc == FZ_OK; i++) {
        job_lineage l;
        rc = job_lineage_read(a, t->metadata, names[i], NULL, &io, &l, err);
        for (uint32_t k = 0; rc == FZ_OK && k < l.marks.n_diverted; k++)
            for (uint32_t p = 0; p < l.marks.diverted[k].n_parts; p++) { /* a row for each split; rows and records are the object's, and stand in its first */
                const job_diverted *o = &l.marks.diverted[k];
                ops_grid_text(&g, names[i]);
                if (p) ops_grid_text(&g, NULL);
                else ops_grid_i64(&g, (int64_t)o->rows);
                if (p) ops_grid_text(&g, NULL);
                else ops_grid_i64(&g, (int64_t)o->records);
                ops_grid_text(&g, o->parts[p].key.topic);
                ops_grid_i64(&g, o->parts[p].key.partition);
                ops_grid_i64(&g, o->parts[p].from);
                ops_grid_i64(&g, o->parts[p].to);
                ops_grid_text(&g, o->object);
            }
    }
    if (rc == FZ_OK) ops_grid_render(&g, format, out);
    fz_free(g.cells);
    return rc;
}

fz_status ops_inspect(const cat_table *t, unsigned sections, ops_format format, fz_buf *out, fz_error *err) {
    fz_arena *a = fz_arena_new();
    const ice_metadata *m = t->metadata;
    fz_status rc = FZ_OK;
    if (format == OPS_TEXT) {
        fz_buf_printf(out, "table %s, uuid %s, format version %d\nlocation %s\nmetadata %s\n", cat_ident_text(a, &t->ident), m->uuid ? m->uuid : "none", m->format_version, m->location,
                      t->metadata_location);
    }
    if (sections & OPS_SNAPSHOTS) {
        if (format == OPS_TEXT) fz_buf_putc(out, '\n');
        snapshots(m, a, format, out);
    }
    if (sections & (OPS_FILES | OPS_PARTITIONS)) {
        if (format == OPS_TEXT) fz_buf_putc(out, '\n');
        rc = files(t, a, sections, format, out, err);
    }
    if (rc == FZ_OK && sections & OPS_POSITIONS) {
        if (format == OPS_TEXT) fz_buf_putc(out, '\n');
        rc = positions(t, a, format, out, err);
    }
    if (rc == FZ_OK && sections & OPS_DIVERTED) {
        if (format == OPS_TEXT) fz_buf_putc(out, '\n');
        rc = diverted(t, a, format, out, err);
    }
    fz_arena_free(a);
    return rc;
}
