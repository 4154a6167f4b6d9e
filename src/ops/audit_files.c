/* The audit's part about files: what is live, what each snapshot added and took away, counts and bounds. */
#include "ops/ops_int.h"

/* Sums of one manifest, to hold against its entry in the manifest list. */
typedef struct counted { int64_t files[3], rows[3]; } counted;

static void check_counts(audit *x, const ice_manifest_file *f, const counted *c) {
    static const char *const what[] = {"existing", "added", "deleted"};
    const int64_t files[] = {f->existing_files, f->added_files, f->deleted_files}, rows[] = {f->existing_rows, f->added_rows, f->deleted_rows};
    for (unsigned i = 0; i < 3; i++) {
        if (files[i] != ICE_NONE && files[i] != c->files[i])
            audit_fail(x, "audit.manifest", "manifest '%s' has %lld %s entries; the manifest list says %lld", f->path, (long long)c->files[i], what[i], (long long)files[i]);
        if (rows[i] != ICE_NONE && rows[i] != c->rows[i])
            audit_fail(x, "audit.manifest", "manifest '%s' has %lld rows in %s entries; the manifest list says %lld", f->path, (long long)c->rows[i], what[i], (long long)rows[i]);
    }
}

static const ice_field *field_of(const ice_metadata *m, int32_t id) {
    const ice_field *f = ice_schema_field(m->schema, id);
    for (uint32_t i = m->n_schemas; !f && i-- > 0;) f = ice_schema_field(m->schemas[i], id);
    return f;
}

static int64_t count_of(const ice_counts *c, int32_t id) {
    for (uint32_t i = 0; i < c->n; i++)
        if (c->v[i].id == id) return c->v[i].n;
    return 0;
}

/* Nobody promises an order, but nearly everybody has the same one in both lists. */
static const ice_bound *upper_of(const ice_data_file *f, uint32_t i) {
    int32_t id = f->lower.v[i].id;
    if (i < f->upper.n && f->upper.v[i].id == id) return &f->upper.v[i];
    for (uint32_t k = 0; k < f->upper.n; k++)
        if (f->upper.v[k].id == id) return &f->upper.v[k];
    return NULL;
}

static void check_bounds(audit *x, const ice_data_file *f) {
    for (uint32_t i = 0; i < f->lower.n; i++) {
        const ice_bound *upper = upper_of(f, i);
        const ice_field *field = upper ? field_of(x->m, upper->id) : NULL;
        int c;
        fz_error err;
        if (!field || field->type->kind >= ICE_STRUCT) continue; /* bounds of nested and of later types are not ordered here */
        if (ice_bound_cmp(field->type, f->lower.v[i].v, upper->v, &c, &err) != FZ_OK) audit_fail(x, "audit.bounds", "'%s', column '%s': %s", f->path, field->name, err.message);
        else if (c > 0) audit_fail(x, "audit.bounds", "'%s', column '%s': the lower bound is above the upper bound", f->path, field->name);
    }
    for (uint32_t i = 0; i < f->null_counts.n; i++)
        if (f->value_counts.n && f->null_counts.v[i].n > count_of(&f->value_counts, f->null_counts.v[i].id))
            audit_fail(x, "audit.bounds", "'%s': field %d has more NULLs than values", f->path, f->null_counts.v[i].id);
}

static void check_object(audit *x, const ice_data_file *f) {
    uint64_t size;
    fz_error err;
    if (fio_size(x->t->io, f->path, &size, &err) != FZ_OK) audit_fail(x, "audit.file", "live data file: %s", err.message);
    else if (size != (uint64_t)f->file_size) audit_fail(x, "audit.file", "'%s' has %llu bytes; its manifest entry says %lld", f->path, (unsigned long long)size, (long long)f->file_size);
}

/* A reader skips whole manifests by the summary of their partitions: a value outside of it is a row that nobody finds. */
static void check_partition(audit *x, const ice_manifest_file *f, const ice_type *const *types, const ice_data_file *file, fz_arena *a) {
    if (!types || f->n_partitions != file->partition.n) return;
    for (uint32_t i = 0; i < f->n_partitions; i++) {
        const ice_summary *s = &f->partitions[i];
        const ice_value *v = &file->partition.v[i];
        bool outside = v->is_null && !s->contains_null;
        int lower = 0, upper = 0;
        fz_error err;
        if (!v->is_null && types[i] && !(v->kind == ICE_FLOAT || v->kind == ICE_DOUBLE)) { /* NaN has a flag of its own */
            fz_sv bytes = ice_value_encode(a, types[i], v);
            if (s->lower.p && ice_bound_cmp(types[i], s->lower, bytes, &lower, &err) != FZ_OK) lower = 1;
            if (s->upper.p && ice_bound_cmp(types[i], bytes, s->upper, &upper, &err) != FZ_OK) upper = 1;
            outside = lower > 0 || upper > 0 || !s->lower.p;
        }
        if (outside) audit_fail(x, "audit.partition", "'%s': its partition value number %u is outside of the summary of manifest '%s'", file->path, i + 1, f->path);
    }
}

typedef struct live_walk {
    audit *x;
    counted c;
    fz_hashset listed;            /* ids of the lineage */
    const ice_type *const *types; /* of the manifest's partition tuple */
    fz_arena *scratch;
} live_walk;

static fz_status live_entry(void *cx, const ice_manifest_file *f, const ice_entry *e, fz_error *err) {
    (void)err;
    live_walk *w = cx;
    audit *x = w->x;
    w->c.files[e->status]++;
    w->c.rows[e->status] += e->file.record_count;
    if (e->status == ICE_DELETED || f->content != 0) return FZ_OK;
    if (!fz_hashset_add(&x->live, ops_path_hash(e->file.path))) audit_fail(x, "audit.live-twice", "data file '%s' is live twice", e->file.path);
    x->v->live_files++;
    x->v->live_rows += (uint64_t)e->file.record_count;
    if (!fz_hashset_has(&w->listed, (uint64_t)e->snapshot_id)) {
        x->older_files++;
        x->older_rows += (uint64_t)e->file.record_count;
    }
    check_bounds(x, &e->file);
    fz_arena_reset(w->scratch);
    check_partition(x, f, w->types, &e->file, w->scratch);
    if (x->o->files) check_object(x, &e->file);
    return FZ_OK;
}

fz_status audit_live(audit *x, fz_error *err) {
    const ice_snapshot *s = ice_metadata_current(x->m);
    const ice_io io = cat_io_of(x->t->io);
    ice_manifest_list l;
    if (!s) return FZ_OK;
    FZ_TRY(ice_snapshot_manifests(x->a, s, &io, &l, err));
    live_walk w = {.x = x, .scratch = fz_arena_new()};
    for (uint32_t i = 0; i < x->n_steps; i++) fz_hashset_add(&w.listed, (uint64_t)x->steps[i].s->id);
    for (uint32_t i = 0; i < l.n; i++) {
        fz_error own;
        const ice_spec *spec = ice_metadata_spec(x->m, l.v[i].spec_id);
        w.c = (counted){0};
        w.types = spec ? ice_metadata_spec_types(x->a, x->m, spec) : NULL;
        if (ops_each_entry(x->t, &l.v[i], live_entry, &w, &own) != FZ_OK) audit_fail(x, "audit.unreadable", "manifest '%s': %s", l.v[i].path, own.message);
        else check_counts(x, &l.v[i], &w.c);
    }
    fz_hashset_free(&w.listed);
    fz_arena_free(w.scratch);
    return FZ_OK;
}

/* ---- each snapshot's own manifests ---- */

typedef struct own_walk { audit *x; audit_step *step; bool removals; } own_walk;

/* First pass: what the snapshot took away. Second: what it added, which must be live or taken away later. */
static fz_status own_entry(void *cx, const ice_manifest_file *f, const ice_entry *e, fz_error *err) {
    (void)err;
    own_walk *w = cx;
    audit_step *p = w->step;
    if (f->content != 0 || e->snapshot_id != p->s->id) return FZ_OK;
    if (w->removals && e->status == ICE_DELETED) {
        p->removed_files++;
        p->removed_rows += e->file.record_count;
        fz_hashset_add(&w->x->removed, ops_path_hash(e->file.path));
    } else if (!w->removals && e->status == ICE_ADDED) {
        uint64_t h = ops_path_hash(e->file.path);
        p->added_files++;
        p->added_rows += e->file.record_count;
        if (!fz_hashset_has(&w->x->live, h) && !fz_hashset_has(&w->x->removed, h))
            audit_fail(w->x, "audit.lost", "data file '%s', added by snapshot %lld, is neither live nor taken away by a later snapshot", e->file.path, (long long)p->s->id);
    }
    return FZ_OK;
}

static bool is_append(const ice_snapshot *s) { return s->operation && strcmp(s->operation, "append") == 0; }

static void read_own(audit *x, audit_step *p, bool removals) {
    fz_error err;
    ice_manifest_list l;
    fz_arena *a = fz_arena_new();
    own_walk w = {x, p, removals};
    const ice_io io = cat_io_of(x->t->io);
    fz_status rc = ice_snapshot_manifests(a, p->s, &io, &l, &err);
    for (uint32_t i = 0; rc == FZ_OK && i < l.n; i++)
        if (l.v[i].content == 0 && (l.v[i].added_snapshot_id == p->s->id || l.v[i].added_snapshot_id == ICE_NONE)) rc = ops_each_entry(x->t, &l.v[i], own_entry, &w, &err);
    fz_arena_free(a);
    p->manifests_read = rc == FZ_OK;
    if (rc != FZ_OK && !removals) audit_fail(x, "audit.unreadable", "snapshot %lld: %s", (long long)p->s->id, err.message);
}

static void check_summary(audit *x, const audit_step *p, const char *key, int64_t have) {
    const char *text = fz_pair_get(p->s->summary, p->s->n_summary, key);
    int64_t said = 0;
    if (text && !fz_parse_i64(fz_sv_of(text), &said)) audit_fail(x, "audit.summary", "snapshot %lld: %s is no number: '%s'", (long long)p->s->id, key, text);
    else if (text && said != have)
        audit_fail(x, "audit.summary", "snapshot %lld: its summary says %s = %lld; its manifests have %lld", (long long)p->s->id, key, (long long)said, (long long)have);
    else if (!text && p->ours && have != 0) audit_fail(x, "audit.summary", "snapshot %lld: its summary has no %s, and its manifests have %lld", (long long)p->s->id, key, (long long)have);
}

static void check_step(audit *x, audit_step *p) {
    if (!p->manifests_read) return;
    check_summary(x, p, "added-data-files", p->added_files);
    check_summary(x, p, "added-records", p->added_rows);
    if (p->ours && p->marks.n_ranges > 0) {
        uint64_t added = 0;
        for (uint32_t i = 0; i < p->marks.n_ranges; i++) added += p->marks.ranges[i].added;
        if (added != (uint64_t)p->added_rows)
            audit_fail(x, "audit.added", "snapshot %lld: its ranges added %llu rows; its manifests have %lld", (long long)p->s->id, (unsigned long long)added, (long long)p->added_rows);
    }
    bool replace = p->s->operation && strcmp(p->s->operation, "replace") == 0;
    if (replace && p->added_rows != p->removed_rows)
        audit_warn(x, "audit.replace", "snapshot %lld (replace) took away %lld rows and added %lld; only applied deletes explain that", (long long)p->s->id, (long long)p->removed_rows,
                   (long long)p->added_rows);
    else if (!p->ours && !replace && !is_append(p->s))
        audit_warn(x, "audit.foreign", "snapshot %lld (%s) of another writer took away %lld rows and added %lld", (long long)p->s->id, p->s->operation ? p->s->operation : "no operation",
                   (long long)p->removed_rows, (long long)p->added_rows);
}

void audit_steps(audit *x) {
    uint64_t foreign = 0;
    for (uint32_t i = 0; i < x->n_steps; i++)
        if (!is_append(x->steps[i].s)) read_own(x, &x->steps[i], true);
    for (uint32_t i = 0; i < x->n_steps; i++) {
        read_own(x, &x->steps[i], false);
        check_step(x, &x->steps[i]);
        if (!x->steps[i].ours && is_append(x->steps[i].s)) foreign += (uint64_t)x->steps[i].added_rows;
    }
    if (foreign > 0) audit_warn(x, "audit.foreign", "%llu rows were appended by other writers", (unsigned long long)foreign);
    if (x->older_files > 0)
        audit_warn(x, "audit.cut", "%llu live files with %llu rows were added by snapshots that are no longer listed: for them there is no proof", (unsigned long long)x->older_files,
                   (unsigned long long)x->older_rows);
}
