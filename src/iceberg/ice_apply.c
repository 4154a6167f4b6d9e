/* Updates applied to table metadata. See iceberg.h; source: TableMetadata.Builder of the Java implementation.
 *
 * Works on the JSON tree, so that members nobody here knows live on. The base's tree is shared, not changed: an array or object is copied
 * (one level) before it is touched.
 */
#include "iceberg/iceberg_int.h"

typedef struct build {
    const ice_metadata *base;
    json_t *root;
    int64_t now_ms;
    int64_t updated_ms;      /* of a snapshot that was added; 0: none */
    int32_t added_schema, added_spec, added_order; /* last added ids, -1: none */
    bool removed_snapshots;
    fz_arena *a;
    fz_error *err;
} build;

static ice_src src(build *b, const char *what) { return (ice_src){what, b->err}; }
static fz_status bad_update(build *b, const char *what) { return fz_fail(b->err, FZ_FATAL, "iceberg.update", "update: %s", what); }

/* The member as a copy of its own, made when absent. */
static json_t *own(build *b, const char *key, bool object) {
    json_t *v = json_object_get(b->root, key);
    json_t *mine = object ? (json_is_object(v) ? json_copy(v) : json_object()) : (json_is_array(v) ? json_copy(v) : json_array());
    ice_json_set(b->root, key, mine);
    return mine;
}

static int64_t get_int(const build *b, const char *key, int64_t dflt) {
    const json_t *v = json_object_get(b->root, key);
    return json_is_integer(v) ? json_integer_value(v) : dflt;
}

static void set_int(build *b, const char *key, int64_t v) { ice_json_set(b->root, key, json_integer(v)); }

static const json_t *find_by(const json_t *arr, const char *key, int64_t id) {
    for (size_t i = 0; i < json_array_size(arr); i++) {
        const json_t *o = json_array_get(arr, i);
        const json_t *v = json_object_get(o, key);
        if (json_is_integer(v) && json_integer_value(v) == id) return o;
    }
    return NULL;
}

static int32_t next_id(const json_t *arr, const char *key) {
    json_int_t most = -1;
    for (size_t i = 0; i < json_array_size(arr); i++) {
        json_int_t v = json_integer_value(json_object_get(json_array_get(arr, i), key));
        if (v > most) most = v;
    }
    return (int32_t)(most + 1);
}

/* ---- schemas, specs, sort orders ---- */

/* Appends j (copied) with a fresh id unless one that differs only in its id is there already; *id is the one to use. */
static void add_with_id(build *b, const char *list, const char *key, const json_t *j, int32_t first, int32_t *id) {
    json_t *arr = own(b, list, false);
    for (size_t i = 0; i < json_array_size(arr); i++) {
        const json_t *have = json_array_get(arr, i);
        json_t *same = json_copy((json_t *)(uintptr_t)j);
        ice_json_set(same, key, json_incref(json_object_get(have, key)));
        bool eq = json_equal(same, (json_t *)(uintptr_t)have);
        json_decref(same);
        if (!eq) continue;
        *id = (int32_t)json_integer_value(json_object_get(have, key));
        return;
    }
    json_t *mine = json_copy((json_t *)(uintptr_t)j);
    int32_t fresh = next_id(arr, key);
    *id = fresh < first ? first : fresh;
    ice_json_set(mine, key, json_integer(*id));
    ice_json_add(arr, mine);
}

static fz_status add_schema(build *b, const json_t *u) {
    ice_schema *s;
    const json_t *j = json_object_get(u, "schema");
    FZ_TRY(ice_schema_parse(b->a, j, &s, b->err));
    int64_t last = get_int(b, "last-column-id", 0), said = 0;
    FZ_TRY(ice_json_opt_i64(src(b, "add-schema"), u, "last-column-id", 0, &said));
    if (said > last) last = said;
    if (ice_schema_highest_id(s) > last) last = ice_schema_highest_id(s);
    set_int(b, "last-column-id", last);
    add_with_id(b, "schemas", "schema-id", j, 0, &b->added_schema);
    return FZ_OK;
}

static fz_status add_spec(build *b, const json_t *u) {
    ice_spec *s;
    const json_t *j = json_object_get(u, "spec");
    json_t *with_id = json_is_object(j) ? json_copy((json_t *)(uintptr_t)j) : json_object();
    if (!json_object_get(with_id, "spec-id")) ice_json_set(with_id, "spec-id", json_integer(0));
    fz_status st = ice_spec_parse(b->a, with_id, &s, b->err);
    if (st == FZ_OK) {
        int64_t last = get_int(b, "last-partition-id", 999);
        if (ice_spec_highest_field_id(s) > last) last = ice_spec_highest_field_id(s);
        set_int(b, "last-partition-id", last);
        add_with_id(b, "partition-specs", "spec-id", with_id, 0, &b->added_spec);
    }
    json_decref(with_id);
    return st;
}

static fz_status add_sort_order(build *b, const json_t *u) {
    ice_sort_order *s;
    const json_t *j = json_object_get(u, "sort-order");
    FZ_TRY(ice_sort_order_parse(b->a, j, &s, b->err));
    add_with_id(b, "sort-orders", "order-id", j, s->n_fields ? 1 : 0, &b->added_order); /* order 0 is the unsorted one */
    return FZ_OK;
}

/* set-current-schema and its kin: -1 means the one just added. */
static fz_status set_default(build *b, const json_t *u, const char *member, const char *list, const char *list_key, int32_t added, const char *root_key) {
    int32_t id;
    FZ_TRY(ice_json_i32(src(b, root_key), u, member, &id));
    if (id == -1) id = added;
    if (!find_by(json_object_get(b->root, list), list_key, id))
        return fz_fail(b->err, FZ_CONFLICT, "iceberg.update", "update: %s %d is not in the table", root_key, id);
    set_int(b, root_key, id);
    return FZ_OK;
}

/* ---- snapshots and references ---- */

static fz_status add_snapshot(build *b, const json_t *u) {
    json_t *j = json_object_get(u, "snapshot");
    int64_t id, seq, parent, ts;
    FZ_TRY(ice_json_i64(src(b, "add-snapshot"), j, "snapshot-id", &id));
    FZ_TRY(ice_json_i64(src(b, "add-snapshot"), j, "timestamp-ms", &ts));
    FZ_TRY(ice_json_opt_i64(src(b, "add-snapshot"), j, "sequence-number", 0, &seq));
    FZ_TRY(ice_json_opt_i64(src(b, "add-snapshot"), j, "parent-snapshot-id", ICE_NONE, &parent));
    if (find_by(json_object_get(b->root, "snapshots"), "snapshot-id", id))
        return fz_fail(b->err, FZ_CONFLICT, "iceberg.update", "snapshot %lld is already in the table", (long long)id);
    int64_t last = get_int(b, "last-sequence-number", 0);
    if (get_int(b, "format-version", 2) > 1) {
        if (seq <= last && parent != ICE_NONE)
            return fz_fail(b->err, FZ_CONFLICT, "iceberg.update", "snapshot %lld has sequence number %lld, the table is at %lld", (long long)id, (long long)seq,
                           (long long)last);
        set_int(b, "last-sequence-number", seq > last ? seq : last);
    }
    ice_json_add(own(b, "snapshots", false), json_incref(j));
    if (ts > b->updated_ms) b->updated_ms = ts;
    return FZ_OK;
}

static int64_t floor_ms(const build *b) {
    int64_t last = b->base ? b->base->last_updated_ms : INT64_MIN;
    return b->now_ms > last ? b->now_ms : last + 1;
}

static fz_status set_ref(build *b, const json_t *u) {
    const char *name;
    int64_t id;
    FZ_TRY(ice_json_str(src(b, "set-snapshot-ref"), b->a, u, "ref-name", &name));
    FZ_TRY(ice_json_i64(src(b, "set-snapshot-ref"), u, "snapshot-id", &id));
    const json_t *s = find_by(json_object_get(b->root, "snapshots"), "snapshot-id", id);
    if (!s) return fz_fail(b->err, FZ_CONFLICT, "iceberg.update", "reference %s: snapshot %lld is not in the table", name, (long long)id);
    json_t *ref = json_copy((json_t *)(uintptr_t)u);
    (void)json_object_del(ref, "action");
    (void)json_object_del(ref, "ref-name");
    ice_json_set(own(b, "refs", true), name, ref);
    if (strcmp(name, "main") != 0 || get_int(b, "current-snapshot-id", ICE_NONE) == id) return FZ_OK;
    set_int(b, "current-snapshot-id", id);
    bool added = !b->base || !ice_metadata_snapshot(b->base, id);
    json_t *entry = json_object();
    int64_t ts = added ? json_integer_value(json_object_get(s, "timestamp-ms")) : floor_ms(b);
    if (ts > b->updated_ms) b->updated_ms = ts;
    ice_json_set(entry, "timestamp-ms", json_integer(ts));
    ice_json_set(entry, "snapshot-id", json_integer(id));
    ice_json_add(own(b, "snapshot-log", false), entry);
    return FZ_OK;
}

static fz_status remove_ref(build *b, const json_t *u) {
    const char *name;
    FZ_TRY(ice_json_str(src(b, "remove-snapshot-ref"), b->a, u, "ref-name", &name));
    (void)json_object_del(own(b, "refs", true), name);
    if (strcmp(name, "main") == 0) set_int(b, "current-snapshot-id", ICE_NONE);
    return FZ_OK;
}

static void remove_by(json_t *arr, const char *key, int64_t id) {
    for (size_t i = json_array_size(arr); i-- > 0;) {
        const json_t *v = json_object_get(json_array_get(arr, i), key);
        if (json_is_integer(v) && json_integer_value(v) == id) (void)json_array_remove(arr, i);
    }
}

static void remove_refs_to(json_t *refs, int64_t id) {
    const char *key;
    json_t *v;
    void *tmp;
    json_object_foreach_safe(refs, tmp, key, v)
        if (json_integer_value(json_object_get(v, "snapshot-id")) == id) (void)json_object_del(refs, key);
}

static fz_status remove_snapshots(build *b, const json_t *u) {
    const json_t *ids;
    FZ_TRY(ice_json_array(src(b, "remove-snapshots"), u, "snapshot-ids", &ids));
    json_t *snapshots = own(b, "snapshots", false), *refs = own(b, "refs", true);
    for (size_t i = 0; i < json_array_size(ids); i++) {
        int64_t id = json_integer_value(json_array_get(ids, i));
        remove_by(snapshots, "snapshot-id", id);
        remove_refs_to(refs, id);
        if (json_object_get(b->root, "statistics")) remove_by(own(b, "statistics", false), "snapshot-id", id);
        if (json_object_get(b->root, "partition-statistics")) remove_by(own(b, "partition-statistics", false), "snapshot-id", id);
        if (get_int(b, "current-snapshot-id", ICE_NONE) == id) set_int(b, "current-snapshot-id", ICE_NONE);
    }
    b->removed_snapshots = true;
    return FZ_OK;
}

/* History with a hole would answer time travel wrongly: what lies before a removed snapshot goes, too. */
static void cut_snapshot_log(build *b) {
    const json_t *snapshots = json_object_get(b->root, "snapshots"), *log = json_object_get(b->root, "snapshot-log");
    json_t *kept = json_array();
    for (size_t i = 0; i < json_array_size(log); i++) {
        json_t *e = json_array_get(log, i);
        if (find_by(snapshots, "snapshot-id", json_integer_value(json_object_get(e, "snapshot-id")))) (void)json_array_append(kept, e);
        else (void)json_array_clear(kept);
    }
    ice_json_set(b->root, "snapshot-log", kept);
}

/* ---- the rest ---- */

static fz_status set_properties(build *b, const json_t *u) {
    json_t *props = own(b, "properties", true);
    const char *key;
    json_t *v;
    json_object_foreach(json_object_get(u, "updates"), key, v) ice_json_set(props, key, json_incref(v));
    return FZ_OK;
}

static fz_status remove_properties(build *b, const json_t *u) {
    json_t *props = own(b, "properties", true);
    const json_t *keys = json_object_get(u, "removals");
    for (size_t i = 0; i < json_array_size(keys); i++) {
        const char *k = json_string_value(json_array_get(keys, i));
        if (k) (void)json_object_del(props, k);
    }
    return FZ_OK;
}

static fz_status upgrade(build *b, const json_t *u) {
    int32_t v;
    int64_t have = get_int(b, "format-version", 1);
    FZ_TRY(ice_json_i32(src(b, "upgrade-format-version"), u, "format-version", &v));
    if (v > 2 || v < have) return fz_fail(b->err, FZ_USER, "iceberg.format-version", "a table of format version %lld cannot be brought to %d", (long long)have, v);
    set_int(b, "format-version", v);
    if (v == 2 && !json_object_get(b->root, "last-sequence-number")) set_int(b, "last-sequence-number", 0);
    return FZ_OK;
}

static fz_status set_text(build *b, const json_t *u, const char *member, const char *root_key) {
    const char *s;
    FZ_TRY(ice_json_str(src(b, "update"), b->a, u, member, &s));
    ice_json_set(b->root, root_key, ice_json_string(strcmp(root_key, "location") == 0 ? ice_location_trim(b->a, s) : s));
    return FZ_OK;
}

static fz_status apply_one(build *b, const json_t *u) {
    const char *action = json_string_value(json_object_get(u, "action"));
    static const struct { const char *name; fz_status (*fn)(build *, const json_t *); } actions[] = {
        {"upgrade-format-version", upgrade}, {"add-schema", add_schema}, {"add-spec", add_spec}, {"add-sort-order", add_sort_order},
        {"add-snapshot", add_snapshot}, {"set-snapshot-ref", set_ref}, {"remove-snapshot-ref", remove_ref}, {"remove-snapshots", remove_snapshots},
        {"set-properties", set_properties}, {"remove-properties", remove_properties}};
    if (!action) return bad_update(b, "it has no action");
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (strcmp(action, actions[i].name) == 0) return actions[i].fn(b, u);
    if (strcmp(action, "assign-uuid") == 0) return set_text(b, u, "uuid", "table-uuid");
    if (strcmp(action, "set-location") == 0) return set_text(b, u, "location", "location");
    if (strcmp(action, "set-current-schema") == 0) return set_default(b, u, "schema-id", "schemas", "schema-id", b->added_schema, "current-schema-id");
    if (strcmp(action, "set-default-spec") == 0) return set_default(b, u, "spec-id", "partition-specs", "spec-id", b->added_spec, "default-spec-id");
    if (strcmp(action, "set-default-sort-order") == 0)
        return set_default(b, u, "sort-order-id", "sort-orders", "order-id", b->added_order, "default-sort-order-id");
    return fz_fail(b->err, FZ_FATAL, "iceberg.update", "update: unknown action %s", action);
}

/* A table before its first update: what assign-uuid, set-location, add-schema and so on fill in. */
static json_t *empty_table(void) {
    json_t *o = json_object();
    ice_json_set(o, "format-version", json_integer(2));
    static const char *const numbers[] = {"last-sequence-number", "last-updated-ms", "last-column-id", "current-schema-id", "default-spec-id"};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) ice_json_set(o, numbers[i], json_integer(0));
    ice_json_set(o, "last-partition-id", json_integer(999));
    ice_json_set(o, "default-sort-order-id", json_integer(0));
    ice_json_set(o, "properties", json_object());
    ice_json_set(o, "current-snapshot-id", json_integer(ICE_NONE));
    ice_json_set(o, "refs", json_object());
    static const char *const lists[] = {"schemas", "partition-specs", "sort-orders", "snapshots", "statistics", "partition-statistics", "snapshot-log", "metadata-log"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) ice_json_set(o, lists[i], json_array());
    return o;
}

/* v1 documents may lack the lists that came later; with them every update works the same way. */
static void complete_v1(build *b) {
    const ice_metadata *m = b->base;
    if (!m || m->format_version > 1) return;
    const struct { const char *key; json_t *v; } lists[] = {
        {"schemas", ice_schema_json(m->schema)}, {"partition-specs", ice_spec_json(m->spec)}, {"sort-orders", ice_sort_order_json(m->sort_order)}};
    for (int i = 0; i < 3; i++) {
        if (!json_object_get(b->root, lists[i].key)) ice_json_add(own(b, lists[i].key, false), json_incref(lists[i].v));
        json_decref(lists[i].v);
    }
    set_int(b, "current-schema-id", m->current_schema_id);
    set_int(b, "default-spec-id", m->default_spec_id);
    set_int(b, "default-sort-order-id", m->default_sort_order_id);
    set_int(b, "last-partition-id", m->last_partition_id);
}

/* v1 readers look at "schema" and "partition-spec" only; later versions do not have them. */
static void finish_v1(build *b) {
    if (get_int(b, "format-version", 2) > 1) {
        (void)json_object_del(b->root, "schema");
        (void)json_object_del(b->root, "partition-spec");
        return;
    }
    const json_t *schema = find_by(json_object_get(b->root, "schemas"), "schema-id", get_int(b, "current-schema-id", 0));
    const json_t *spec = find_by(json_object_get(b->root, "partition-specs"), "spec-id", get_int(b, "default-spec-id", 0));
    if (schema) ice_json_set(b->root, "schema", json_incref((json_t *)(uintptr_t)schema));
    if (spec) ice_json_set(b->root, "partition-spec", json_incref(json_object_get(spec, "fields")));
}

/* The base's file enters the log; what is beyond the limit leaves it, and is told. */
static void log_previous(build *b, const char *previous, fz_buf *dropped, uint32_t *n_dropped) {
    if (!b->base || !previous) return;
    json_t *log = own(b, "metadata-log", false), *e = json_object();
    ice_json_set(e, "timestamp-ms", json_integer(b->base->last_updated_ms));
    ice_json_set(e, "metadata-file", ice_json_string(previous));
    ice_json_add(log, e);
    const char *v = json_string_value(json_object_get(json_object_get(b->root, "properties"), "write.metadata.previous-versions-max"));
    int64_t most = 100;
    if (v && !fz_parse_i64(fz_sv_of(v), &most)) most = 100;
    if (most < 1) most = 1;
    while ((int64_t)json_array_size(log) > most) {
        const char *file = json_string_value(json_object_get(json_array_get(log, 0), "metadata-file"));
        if (file) {
            fz_buf_append(dropped, file, strlen(file) + 1);
            ++*n_dropped;
        }
        (void)json_array_remove(log, 0);
    }
}

static void fill_info(const build *b, const ice_metadata *m, const fz_buf *dropped, uint32_t n, ice_applied *info) {
    const char **v = FZ_ANEWN(m->arena, const char *, n);
    const char *p = (const char *)dropped->data;
    for (uint32_t i = 0; i < n; i++, p += strlen(p) + 1) v[i] = fz_arena_strdup(m->arena, p);
    int64_t behind = b->base ? b->base->last_updated_ms - b->now_ms : 0;
    *info = (ice_applied){.n_dropped = n, .dropped = v, .clock_behind_ms = behind > 0 ? behind : 0,
                          .delete_dropped = ice_property_bool(m, "write.metadata.delete-after-commit.enabled", false)};
}

fz_status ice_metadata_apply(const ice_metadata *base, const ice_changes *c, int64_t now_ms, const char *previous, ice_metadata **out, ice_applied *info,
                             fz_error *err) {
    build b = {.base = base, .now_ms = now_ms, .added_schema = -1, .added_spec = -1, .added_order = -1, .err = err, .a = fz_arena_new()};
    fz_buf dropped = {0};
    uint32_t n_dropped = 0;
    fz_status s = FZ_OK;
    *out = NULL;
    b.root = base ? json_copy((json_t *)(uintptr_t)base->root) : empty_table();
    complete_v1(&b);
    for (size_t i = 0; i < json_array_size(c->updates) && s == FZ_OK; i++) s = apply_one(&b, json_array_get(c->updates, i));
    if (s == FZ_OK) {
        if (b.removed_snapshots) cut_snapshot_log(&b);
        int64_t least = base ? base->last_updated_ms : 0;
        set_int(&b, "last-updated-ms", b.updated_ms ? (b.updated_ms > least ? b.updated_ms : least) : floor_ms(&b));
        log_previous(&b, previous, &dropped, &n_dropped);
        finish_v1(&b);
        s = ice_metadata_from_json(json_incref(b.root), out, err);
        if (s == FZ_OK && info) fill_info(&b, *out, &dropped, n_dropped, info);
    }
    json_decref(b.root);
    fz_buf_free(&dropped);
    fz_arena_free(b.a);
    return s;
}
