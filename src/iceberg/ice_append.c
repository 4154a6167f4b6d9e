/* What an append has to write and to commit. See iceberg.h.
 * Source: MergeAppend, MergingSnapshotProducer, SnapshotProducer and SnapshotSummary of the Java implementation. */
#include "iceberg/iceberg_int.h"

/* ---- manifests of the new files ---- */

static fz_status close_manifest(ice_commit *c, ice_manifest_writer **w, ice_manifests *out, fz_error *err) {
    ice_manifest_writer *mine = *w;
    *w = NULL;
    return mine ? ice_commit_manifest(c, mine, out, err) : FZ_OK;
}

/* Files of one spec, rolling over at the target size. */
static fz_status write_spec(ice_commit *c, const ice_spec *spec, ice_manifests *out, fz_error *err) {
    const ice_append *ap = c->ap;
    const ice_type **types = ice_metadata_spec_types(c->a, c->base, spec);
    size_t target = (size_t)ice_property_i64(c->base, "commit.manifest.target-size-bytes", ICE_TARGET_MANIFEST);
    ice_manifest_writer *w = NULL;
    fz_status s = FZ_OK;
    for (uint32_t i = 0; i < ap->n_files && s == FZ_OK; i++) {
        if (ap->files[i].spec_id != spec->spec_id) continue;
        if (!w) w = ice_manifest_writer_new(c->base->schema, spec, types, 0, ap->snapshot_id, ice_commit_codec(c->base));
        ice_entry e = {.status = ICE_ADDED, .snapshot_id = ap->snapshot_id, .sequence = ICE_NONE, .file_sequence = ICE_NONE, .file = ap->files[i]};
        s = ice_manifest_writer_add(w, &e, err);
        if (s == FZ_OK && ice_manifest_writer_bytes(w) >= target) s = close_manifest(c, &w, out, err);
    }
    if (s == FZ_OK) s = close_manifest(c, &w, out, err);
    ice_manifest_writer_free(w);
    return s;
}

static fz_status write_new(ice_commit *c, ice_manifests *out, fz_error *err) {
    const ice_append *ap = c->ap;
    for (uint32_t i = 0; ap->reuse && i < ap->reuse->n; i++) ice_manifests_add(c->a, out, &ap->reuse->v[i]);
    if (ap->reuse) return FZ_OK;
    for (uint32_t i = 0; i < ap->n_files; i++)
        if (!ice_metadata_spec(c->base, ap->files[i].spec_id))
            return fz_fail(err, FZ_CONFLICT, "iceberg.partition", "%s was written with partition spec %d, which the table does not have", ap->files[i].path,
                           ap->files[i].spec_id);
    for (uint32_t k = c->base->n_specs; k-- > 0;) FZ_TRY(write_spec(c, c->base->specs[k], out, err));
    return FZ_OK;
}

/* ---- manifests of the base ---- */

fz_status ice_snapshot_manifests(fz_arena *a, const ice_snapshot *s, const ice_io *io, ice_manifest_list *out, fz_error *err) {
    if (!s->manifest_list) {
        ice_manifest_file *v = FZ_ANEWN(a, ice_manifest_file, s->n_manifests);
        for (uint32_t i = 0; i < s->n_manifests; i++)
            v[i] = (ice_manifest_file){.path = s->manifests[i], .added_snapshot_id = s->id, .added_files = ICE_NONE, .existing_files = ICE_NONE,
                                       .deleted_files = ICE_NONE, .added_rows = ICE_NONE, .existing_rows = ICE_NONE, .deleted_rows = ICE_NONE};
        *out = (ice_manifest_list){s->n_manifests, v};
        return FZ_OK;
    }
    fz_buf b = {0};
    fz_status st = io->read(io->cx, s->manifest_list, &b, err);
    if (st == FZ_OK) {
        st = ice_manifest_list_decode(a, b.data, b.len, out, err);
        if (st != FZ_OK) (void)fz_context(err, "%s", s->manifest_list);
    }
    fz_buf_free(&b);
    return st;
}

static fz_status parent_of(const ice_metadata *m, const char *branch, const ice_snapshot **out, fz_error *err) {
    const ice_ref *r = ice_metadata_ref(m, branch);
    if (r && r->is_tag) return fz_fail(err, FZ_USER, "iceberg.branch", "%s is a tag, not a branch", branch);
    *out = r ? ice_metadata_snapshot(m, r->snapshot_id) : ice_metadata_current(m);
    return r && !*out ? fz_fail(err, FZ_FATAL, "iceberg.metadata", "branch %s names a snapshot that is not listed", branch) : FZ_OK;
}

static bool has_live(const ice_manifest_file *m) { return m->added_files != 0 || m->existing_files != 0; }

/* Data manifests, new ones first, merged; then the delete manifests as they are. */
static fz_status all_manifests(ice_commit *c, const ice_snapshot *parent, const ice_manifests *fresh, ice_manifests *out, fz_error *err) {
    ice_manifest_list current = {0};
    if (c->ap->current) current = *c->ap->current;
    else if (parent) FZ_TRY(ice_snapshot_manifests(c->a, parent, c->io, &current, err));
    ice_manifests data = {0};
    for (uint32_t i = 0; i < fresh->n; i++) ice_manifests_add(c->a, &data, &fresh->v[i]);
    for (uint32_t i = 0; i < current.n; i++)
        if (current.v[i].content == 0 && has_live(&current.v[i])) ice_manifests_add(c->a, &data, &current.v[i]);
    FZ_TRY(ice_merge_manifests(c, &data, out, err));
    for (uint32_t i = 0; i < current.n; i++)
        if (current.v[i].content != 0 && has_live(&current.v[i])) ice_manifests_add(c->a, out, &current.v[i]);
    return FZ_OK;
}

/* ---- snapshot summary ---- */

typedef struct summary { fz_pair *v; uint32_t n, cap; } summary;

static void put(fz_arena *a, summary *s, const char *key, const char *value) {
    for (uint32_t i = 0; i < s->n; i++)
        if (strcmp(s->v[i].key, key) == 0) return; /* what is computed comes first and stays */
    if (s->n == s->cap) {
        uint32_t want = s->cap ? s->cap * 2 : 16;
        s->v = fz_arena_realloc(a, s->v, s->cap * sizeof *s->v, want * sizeof *s->v);
        s->cap = want;
    }
    s->v[s->n++] = (fz_pair){.key = fz_arena_strdup(a, key), .value = fz_arena_strdup(a, value)};
}

static void put_number(fz_arena *a, summary *s, const char *key, int64_t v) {
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)v);
    put(a, s, key, text);
}

/* Distinct partition paths, as Java counts (NULL and the text "null" are one to it). */
static uint32_t changed_partitions(const ice_commit *c) {
    const ice_append *ap = c->ap;
    if (!ap->n_files) return 0;
    fz_arena *a = fz_arena_new();
    uint32_t cap = 16, n = 0;
    while (cap < ap->n_files * 2) cap *= 2;
    const char **set = FZ_ANEWN(a, const char *, cap);
    const ice_type **types = NULL;
    const ice_spec *spec = NULL;
    for (uint32_t i = 0; i < ap->n_files; i++) {
        if (!spec || spec->spec_id != ap->files[i].spec_id) {
            spec = ice_metadata_spec(c->base, ap->files[i].spec_id);
            types = spec ? ice_metadata_spec_types(a, c->base, spec) : NULL;
        }
        const char *path = spec ? ice_tuple_path(a, spec, types, ap->files[i].partition) : "";
        uint64_t at = fz_hash(path, strlen(path)) & (cap - 1);
        while (set[at] && strcmp(set[at], path) != 0) at = (at + 1) & (cap - 1);
        n += !set[at];
        set[at] = path;
    }
    fz_arena_free(a);
    return n;
}

/* A total goes on from the parent's; where the parent has none there is none. */
static void put_total(fz_arena *a, summary *s, const ice_snapshot *parent, const char *key, int64_t added) {
    const char *v = parent ? fz_pair_get(parent->summary, parent->n_summary, key) : "0";
    int64_t total;
    if (v && fz_parse_i64(fz_sv_of(v), &total) && total >= 0 && !__builtin_add_overflow(total, added, &total)) put_number(a, s, key, total);
}

static void summarise(const ice_commit *c, const ice_snapshot *parent, ice_snapshot *snapshot) {
    const ice_append *ap = c->ap;
    summary s = {0};
    int64_t records = 0, size = 0;
    for (uint32_t i = 0; i < ap->n_files; i++) {
        records += ap->files[i].record_count;
        size += ap->files[i].file_size;
    }
    put(c->a, &s, "operation", "append");
    if (ap->n_files) put_number(c->a, &s, "added-data-files", ap->n_files);
    if (records) put_number(c->a, &s, "added-records", records);
    if (size) put_number(c->a, &s, "added-files-size", size);
    put_number(c->a, &s, "changed-partition-count", changed_partitions(c));
    put_total(c->a, &s, parent, "total-records", records);
    put_total(c->a, &s, parent, "total-files-size", size);
    put_total(c->a, &s, parent, "total-data-files", ap->n_files);
    put_total(c->a, &s, parent, "total-delete-files", 0);
    put_total(c->a, &s, parent, "total-position-deletes", 0);
    put_total(c->a, &s, parent, "total-equality-deletes", 0);
    for (uint32_t i = 0; i < ap->n_summary; i++) put(c->a, &s, ap->summary[i].key, ap->summary[i].value);
    snapshot->operation = "append";
    snapshot->summary = s.v;
    snapshot->n_summary = s.n;
}

/* ---- changes ---- */

/* Moves the branch; what the table says about its retention stays. */
static void move_ref(ice_changes *c, const ice_metadata *m, const char *branch, int64_t snapshot_id) {
    ice_update_ref(c, branch, snapshot_id);
    json_t *u = json_array_get(c->updates, json_array_size(c->updates) - 1);
    json_t *have = json_object_get(json_object_get(m->root, "refs"), branch);
    const char *key;
    json_t *v;
    json_object_foreach(have, key, v)
        if (!json_object_get(u, key)) ice_json_set(u, key, json_incref(v));
}

static void fill_changes(const ice_commit *c, const ice_snapshot *s, ice_changes *out) {
    const ice_append *ap = c->ap;
    const char *branch = ap->branch ? ap->branch : "main";
    const ice_ref *r = ice_metadata_ref(c->base, branch);
    ice_assert_uuid(out, c->base->uuid);
    ice_assert_ref(out, branch, r ? r->snapshot_id : ICE_NONE);
    ice_assert_id(out, "current-schema-id", c->base->current_schema_id);
    ice_assert_id(out, "default-spec-id", c->base->default_spec_id);
    ice_update_add_snapshot(out, s);
    move_ref(out, c->base, branch, s->id);
    if (ap->n_properties) ice_update_set_properties(out, ap->properties, ap->n_properties);
}

static bool in_list(const ice_manifests *l, const char *path) {
    for (uint32_t i = 0; i < l->n; i++)
        if (l->v[i].path == path || strcmp(l->v[i].path, path) == 0) return true;
    return false;
}

/* Manifests of this commit that the list does not name. */
static void fill_unused(const ice_commit *c, const ice_manifests *fresh, const ice_manifests *all, ice_append_result *r) {
    const char **v = FZ_ANEWN(c->a, const char *, fresh->n);
    uint32_t n = 0;
    if (c->n_merged)
        for (uint32_t i = 0; i < fresh->n; i++)
            if (!in_list(all, fresh->v[i].path)) v[n++] = fresh->v[i].path;
    r->n_unused = n;
    r->unused = v;
}

static fz_status build(ice_commit *c, ice_append_result *r, fz_error *err) {
    const ice_append *ap = c->ap;
    const ice_metadata *m = c->base;
    const ice_snapshot *parent;
    ice_manifests fresh = {0}, all = {0};
    FZ_TRY(ice_metadata_writable(m, err));
    if (ap->snapshot_id < 0 || ice_metadata_snapshot(m, ap->snapshot_id))
        return fz_fail(err, FZ_CONFLICT, "iceberg.snapshot", "snapshot id %lld is negative or taken", (long long)ap->snapshot_id);
    FZ_TRY(parent_of(m, ap->branch ? ap->branch : "main", &parent, err));
    FZ_TRY(write_new(c, &fresh, err));
    r->new_manifests = (ice_manifest_list){fresh.n, fresh.v};
    FZ_TRY(all_manifests(c, parent, &fresh, &all, err));
    ice_snapshot *s = &r->snapshot;
    *s = (ice_snapshot){.id = ap->snapshot_id, .parent_id = parent ? parent->id : ICE_NONE, .sequence = m->last_sequence_number + 1,
                        .schema_id = m->current_schema_id};
    s->timestamp_ms = ap->now_ms > m->last_updated_ms ? ap->now_ms : m->last_updated_ms + 1;
    s->manifest_list = ice_manifest_list_location(c->a, m, s->id, ap->attempt ? ap->attempt : 1, ap->uuid);
    summarise(c, parent, s);
    fz_buf b = {0};
    ice_manifest_list list = {all.n, all.v};
    fz_status st = ice_manifest_list_encode(&list, s->id, s->parent_id, s->sequence, ice_commit_codec(m), &b, err);
    if (st == FZ_OK) st = ice_commit_write(c, s->manifest_list, &b, err);
    fz_buf_free(&b);
    if (st != FZ_OK) return st;
    fill_unused(c, &fresh, &all, r);
    fill_changes(c, s, &r->changes);
    return FZ_OK;
}

fz_status ice_append_build(fz_arena *a, const ice_metadata *base, const ice_append *ap, const ice_io *io, ice_append_result *r, fz_error *err) {
    ice_commit c = {.a = a, .base = base, .ap = ap, .io = io, .next_manifest = ap->next_manifest};
    *r = (ice_append_result){.changes = ice_changes_new()};
    int64_t behind = base->last_updated_ms - ap->now_ms;
    r->clock_behind_ms = behind > 0 ? behind : 0;
    fz_status s = build(&c, r, err);
    r->next_manifest = c.next_manifest;
    r->n_written = c.n_written;
    r->written = c.written;
    r->n_merged = c.n_merged;
    return s;
}
