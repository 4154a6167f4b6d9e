/* Table metadata, reading and look-ups. See iceberg.h; spec: Table Metadata Fields, Snapshots, Appendix C. */
#include "iceberg/iceberg_int.h"
#include <libdeflate.h>

static fz_status bad(fz_error *err, const char *what) { return fz_fail(err, FZ_FATAL, "iceberg.metadata", "table metadata: %s", what); }

/* ---- parts of the document ---- */

static fz_status read_schemas(ice_metadata *m, fz_error *err) {
    const json_t *arr, *one = json_object_get(m->root, "schema");
    ice_src x = {"table metadata", err};
    FZ_TRY(ice_json_opt_array(x, m->root, "schemas", &arr));
    m->n_schemas = arr ? (uint32_t)json_array_size(arr) : 1;
    ice_schema **v = FZ_ANEWN(m->arena, ice_schema *, m->n_schemas);
    m->schemas = (const ice_schema *const *)v;
    for (uint32_t i = 0; i < m->n_schemas; i++) FZ_TRY(ice_schema_parse(m->arena, arr ? json_array_get(arr, i) : one, &v[i], err));
    if (arr) FZ_TRY(ice_json_i32(x, m->root, "current-schema-id", &m->current_schema_id));
    else m->current_schema_id = v[0]->schema_id;
    m->schema = ice_metadata_schema(m, m->current_schema_id);
    return m->schema ? FZ_OK : bad(err, "the current schema is not among the schemas");
}

static fz_status read_specs(ice_metadata *m, fz_error *err) {
    const json_t *arr, *one;
    ice_src x = {"table metadata", err};
    FZ_TRY(ice_json_opt_array(x, m->root, "partition-specs", &arr));
    FZ_TRY(ice_json_opt_array(x, m->root, "partition-spec", &one));
    if (!arr && !one) return bad(err, "it has no partition specs");
    m->n_specs = arr ? (uint32_t)json_array_size(arr) : 1;
    ice_spec **v = FZ_ANEWN(m->arena, ice_spec *, m->n_specs);
    m->specs = (const ice_spec *const *)v;
    int32_t highest = 999;
    for (uint32_t i = 0; i < m->n_specs; i++) {
        FZ_TRY(ice_spec_parse(m->arena, arr ? json_array_get(arr, i) : one, &v[i], err));
        if (ice_spec_highest_field_id(v[i]) > highest) highest = ice_spec_highest_field_id(v[i]);
    }
    FZ_TRY(ice_json_opt_i32(x, m->root, "default-spec-id", 0, &m->default_spec_id));
    FZ_TRY(ice_json_opt_i32(x, m->root, "last-partition-id", highest, &m->last_partition_id));
    m->spec = ice_metadata_spec(m, m->default_spec_id);
    return m->spec ? FZ_OK : bad(err, "the default partition spec is not among the specs");
}

static fz_status read_sort_orders(ice_metadata *m, fz_error *err) {
    const json_t *arr;
    ice_src x = {"table metadata", err};
    FZ_TRY(ice_json_opt_array(x, m->root, "sort-orders", &arr));
    m->n_sort_orders = arr ? (uint32_t)json_array_size(arr) : 0;
    if (!m->n_sort_orders) m->n_sort_orders = 1; /* v1: unsorted */
    ice_sort_order **v = FZ_ANEWN(m->arena, ice_sort_order *, m->n_sort_orders);
    m->sort_orders = (const ice_sort_order *const *)v;
    v[0] = FZ_ANEW(m->arena, ice_sort_order);
    for (uint32_t i = 0; arr && i < json_array_size(arr); i++) FZ_TRY(ice_sort_order_parse(m->arena, json_array_get(arr, i), &v[i], err));
    FZ_TRY(ice_json_opt_i32(x, m->root, "default-sort-order-id", 0, &m->default_sort_order_id));
    for (uint32_t i = 0; i < m->n_sort_orders; i++)
        if (v[i]->order_id == m->default_sort_order_id) m->sort_order = v[i];
    return m->sort_order ? FZ_OK : bad(err, "the default sort order is not among the sort orders");
}

static fz_status read_snapshot(ice_metadata *m, const json_t *j, ice_snapshot *s, fz_error *err) {
    ice_src x = {"snapshot", err};
    if (!json_is_object(j)) return bad(err, "a snapshot is not an object");
    FZ_TRY(ice_json_i64(x, j, "snapshot-id", &s->id));
    FZ_TRY(ice_json_opt_i64(x, j, "parent-snapshot-id", ICE_NONE, &s->parent_id));
    FZ_TRY(ice_json_opt_i64(x, j, "sequence-number", 0, &s->sequence));
    FZ_TRY(ice_json_i64(x, j, "timestamp-ms", &s->timestamp_ms));
    FZ_TRY(ice_json_opt_i32(x, j, "schema-id", ICE_NONE, &s->schema_id));
    FZ_TRY(ice_json_opt_str(x, m->arena, j, "manifest-list", &s->manifest_list));
    const json_t *list;
    FZ_TRY(ice_json_opt_array(x, j, "manifests", &list));
    s->n_manifests = list ? (uint32_t)json_array_size(list) : 0;
    const char **v = FZ_ANEWN(m->arena, const char *, s->n_manifests);
    s->manifests = v;
    for (uint32_t i = 0; i < s->n_manifests; i++) {
        const char *path = json_string_value(json_array_get(list, i));
        if (!path) return bad(err, "a snapshot's manifest is not a string");
        v[i] = fz_arena_strdup(m->arena, path);
    }
    ice_json_pairs(m->arena, json_object_get(j, "summary"), &s->summary, &s->n_summary);
    s->operation = fz_pair_get(s->summary, s->n_summary, "operation");
    return FZ_OK;
}

static int by_snapshot_id(const void *a, const void *b, void *cx) {
    const ice_snapshot *s = cx;
    int64_t x = s[*(const uint32_t *)a].id, y = s[*(const uint32_t *)b].id;
    return x < y ? -1 : x > y;
}

/* A lineage that runs in a circle would never end, and snapshots that share an id cannot be told apart. */
static fz_status check_lineages(const ice_metadata *m, fz_error *err) {
    uint32_t *seen = FZ_ANEWN(m->arena, uint32_t, m->n_snapshots); /* number of the walk that came by first, from 1 */
    for (uint32_t i = 1; i < m->n_snapshots; i++)
        if (m->snapshots[m->by_id[i]].id == m->snapshots[m->by_id[i - 1]].id) return bad(err, "two snapshots have the same id");
    for (uint32_t i = 0; i < m->n_snapshots; i++) {
        bool cut;
        for (const ice_snapshot *s = &m->snapshots[i]; s && !seen[s - m->snapshots]; s = ice_snapshot_parent(m, s, &cut)) {
            seen[s - m->snapshots] = i + 1;
            const ice_snapshot *p = ice_snapshot_parent(m, s, &cut);
            if (p && seen[p - m->snapshots] == i + 1) return bad(err, "the lineage of its snapshots runs in a circle");
        }
    }
    return FZ_OK;
}

static fz_status read_snapshots(ice_metadata *m, fz_error *err) {
    const json_t *arr;
    FZ_TRY(ice_json_opt_array((ice_src){"table metadata", err}, m->root, "snapshots", &arr));
    m->n_snapshots = arr ? (uint32_t)json_array_size(arr) : 0;
    ice_snapshot *v = FZ_ANEWN(m->arena, ice_snapshot, m->n_snapshots);
    uint32_t *ids = FZ_ANEWN(m->arena, uint32_t, m->n_snapshots);
    for (uint32_t i = 0; i < m->n_snapshots; i++) {
        FZ_TRY(read_snapshot(m, json_array_get(arr, i), &v[i], err));
        ids[i] = i;
    }
    if (m->n_snapshots > 1) qsort_r(ids, m->n_snapshots, sizeof *ids, by_snapshot_id, v);
    m->snapshots = v;
    m->by_id = ids;
    FZ_TRY(check_lineages(m, err));
    FZ_TRY(ice_json_opt_i64((ice_src){"table metadata", err}, m->root, "current-snapshot-id", ICE_NONE, &m->current_snapshot_id));
    if (m->current_snapshot_id != ICE_NONE && !ice_metadata_current(m)) return bad(err, "the current snapshot is not among the snapshots");
    return FZ_OK;
}

static fz_status read_refs(ice_metadata *m, fz_error *err) {
    const json_t *o = json_object_get(m->root, "refs");
    ice_ref *v = FZ_ANEWN(m->arena, ice_ref, json_object_size(o) + 1);
    bool main_seen = false;
    const char *key;
    json_t *j;
    m->refs = v;
    json_object_foreach((json_t *)(uintptr_t)o, key, j) {
        ice_ref *r = &v[m->n_refs++];
        const char *type = json_string_value(json_object_get(j, "type"));
        r->name = fz_arena_strdup(m->arena, key);
        r->is_tag = type && fz_ieq(type, "tag");
        FZ_TRY(ice_json_i64((ice_src){"snapshot reference", err}, j, "snapshot-id", &r->snapshot_id));
        if (strcmp(key, "main") != 0) continue;
        main_seen = true;
        if (r->snapshot_id != m->current_snapshot_id) return bad(err, "the current snapshot is not that of the branch main");
    }
    if (!main_seen && m->current_snapshot_id != ICE_NONE) v[m->n_refs++] = (ice_ref){.name = "main", .snapshot_id = m->current_snapshot_id};
    return FZ_OK;
}

static fz_status read_log(ice_metadata *m, const char *key, bool snapshots, const ice_log **out, uint32_t *n, fz_error *err) {
    const json_t *arr;
    ice_src x = {key, err};
    FZ_TRY(ice_json_opt_array((ice_src){"table metadata", err}, m->root, key, &arr));
    *n = arr ? (uint32_t)json_array_size(arr) : 0;
    ice_log *v = FZ_ANEWN(m->arena, ice_log, *n);
    *out = v;
    for (uint32_t i = 0; i < *n; i++) {
        const json_t *o = json_array_get(arr, i);
        v[i].snapshot_id = ICE_NONE;
        FZ_TRY(ice_json_i64(x, o, "timestamp-ms", &v[i].timestamp_ms));
        if (snapshots) FZ_TRY(ice_json_i64(x, o, "snapshot-id", &v[i].snapshot_id));
        else FZ_TRY(ice_json_str(x, m->arena, o, "metadata-file", &v[i].location));
    }
    return FZ_OK;
}

static fz_status read_head(ice_metadata *m, fz_error *err) {
    ice_src x = {"table metadata", err};
    const char *location;
    if (!json_is_object(m->root)) return bad(err, "not a JSON object");
    FZ_TRY(ice_json_i32(x, m->root, "format-version", &m->format_version));
    if (m->format_version < 1 || m->format_version > 3)
        return fz_fail(err, FZ_USER, "iceberg.format-version", "table format version %d is not supported (1, 2 and 3 are read)", m->format_version);
    FZ_TRY(ice_json_opt_str(x, m->arena, m->root, "table-uuid", &m->uuid));
    if (!m->uuid && m->format_version > 1) return bad(err, "it has no table-uuid");
    FZ_TRY(ice_json_str(x, m->arena, m->root, "location", &location));
    m->location = ice_location_trim(m->arena, location);
    if (m->format_version > 1) FZ_TRY(ice_json_i64(x, m->root, "last-sequence-number", &m->last_sequence_number));
    FZ_TRY(ice_json_i64(x, m->root, "last-updated-ms", &m->last_updated_ms));
    FZ_TRY(ice_json_i32(x, m->root, "last-column-id", &m->last_column_id));
    if (m->last_sequence_number < 0 || m->last_updated_ms < 0 || m->last_column_id < 0) return bad(err, "a number that must not be negative is");
    if (m->last_sequence_number == INT64_MAX || m->last_updated_ms == INT64_MAX) return bad(err, "a number cannot go on from where it is");
    ice_json_pairs(m->arena, json_object_get(m->root, "properties"), &m->properties, &m->n_properties);
    return FZ_OK;
}

static fz_status read_all(ice_metadata *m, fz_error *err) {
    FZ_TRY(read_head(m, err));
    FZ_TRY(read_schemas(m, err));
    FZ_TRY(read_specs(m, err));
    FZ_TRY(read_sort_orders(m, err));
    FZ_TRY(read_snapshots(m, err));
    FZ_TRY(read_refs(m, err));
    FZ_TRY(read_log(m, "snapshot-log", true, &m->snapshot_log, &m->n_snapshot_log, err));
    return read_log(m, "metadata-log", false, &m->metadata_log, &m->n_metadata_log, err);
}

fz_status ice_metadata_from_json(json_t *root, ice_metadata **out, fz_error *err) {
    fz_arena *a = fz_arena_new();
    ice_metadata *m = FZ_ANEW(a, ice_metadata);
    m->arena = a;
    m->root = root;
    *out = NULL;
    fz_status s = read_all(m, err);
    if (s != FZ_OK) {
        ice_metadata_free(m);
        return s;
    }
    *out = m;
    return FZ_OK;
}

void ice_metadata_free(ice_metadata *m) {
    if (!m) return;
    json_decref((json_t *)(uintptr_t)m->root);
    fz_arena_free(m->arena);
}

/* ---- bytes ---- */

static fz_status gunzip(const uint8_t *p, size_t n, fz_buf *out, fz_error *err) {
    if (n < 18) return bad(err, "the gzip file is too short");
    size_t size = (size_t)p[n - 4] | (size_t)p[n - 3] << 8 | (size_t)p[n - 2] << 16 | (size_t)p[n - 1] << 24;
    if (size > FZ_MAX_METADATA_JSON || size / 1100 > n) return bad(err, "the gzip file does not say its true size");
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    fz_buf_reserve(out, size + 1);
    size_t got = 0;
    bool ok = d && libdeflate_gzip_decompress(d, p, n, out->data, size, &got) == LIBDEFLATE_SUCCESS;
    libdeflate_free_decompressor(d);
    out->len = got;
    return ok ? FZ_OK : bad(err, "the gzip file is damaged");
}

fz_status ice_metadata_parse(const void *bytes, size_t n, ice_metadata **out, fz_error *err) {
    const uint8_t *p = bytes;
    fz_buf plain = {0};
    json_t *root = NULL;
    fz_status s = FZ_OK;
    *out = NULL;
    if (n > FZ_MAX_METADATA_JSON) return bad(err, "it is too large");
    bool gzip = n >= 2 && p[0] == 0x1f && p[1] == 0x8b;
    if (gzip) s = gunzip(p, n, &plain, err);
    if (s == FZ_OK) s = ice_json_load(gzip ? (const void *)plain.data : bytes, gzip ? plain.len : n, &root, err);
    fz_buf_free(&plain);
    return s == FZ_OK ? ice_metadata_from_json(root, out, err) : s;
}

/* ---- look-ups ---- */

const ice_schema *ice_metadata_schema(const ice_metadata *m, int32_t schema_id) {
    for (uint32_t i = 0; i < m->n_schemas; i++)
        if (m->schemas[i]->schema_id == schema_id) return m->schemas[i];
    return NULL;
}

const ice_spec *ice_metadata_spec(const ice_metadata *m, int32_t spec_id) {
    for (uint32_t i = 0; i < m->n_specs; i++)
        if (m->specs[i]->spec_id == spec_id) return m->specs[i];
    return NULL;
}

const ice_snapshot *ice_metadata_snapshot(const ice_metadata *m, int64_t id) {
    uint32_t lo = 0, hi = m->n_snapshots;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        const ice_snapshot *s = &m->snapshots[m->by_id[mid]];
        if (s->id == id) return s;
        if (s->id < id) lo = mid + 1;
        else hi = mid;
    }
    return NULL;
}

const ice_snapshot *ice_metadata_current(const ice_metadata *m) {
    return m->current_snapshot_id == ICE_NONE ? NULL : ice_metadata_snapshot(m, m->current_snapshot_id);
}

const ice_ref *ice_metadata_ref(const ice_metadata *m, const char *name) {
    for (uint32_t i = 0; i < m->n_refs; i++)
        if (strcmp(m->refs[i].name, name) == 0) return &m->refs[i];
    return NULL;
}

const ice_type **ice_metadata_spec_types(fz_arena *a, const ice_metadata *m, const ice_spec *spec) {
    const ice_type **t = ice_spec_types(a, spec, m->schema);
    for (uint32_t i = 0; i < spec->n_fields; i++)
        for (uint32_t k = m->n_schemas; !t[i] && k-- > 0;) {
            const ice_field *f = ice_schema_field(m->schemas[k], spec->fields[i].source_id);
            if (f) t[i] = ice_transform_result(&spec->fields[i].transform, f->type);
        }
    return t;
}

const char *ice_property(const ice_metadata *m, const char *key, const char *dflt) {
    const char *v = fz_pair_get(m->properties, m->n_properties, key);
    return v ? v : dflt;
}

int64_t ice_property_i64(const ice_metadata *m, const char *key, int64_t dflt) {
    const char *v = ice_property(m, key, NULL);
    int64_t n;
    return v && fz_parse_i64(fz_sv_trim(fz_sv_of(v)), &n) ? n : dflt;
}

bool ice_property_bool(const ice_metadata *m, const char *key, bool dflt) {
    const char *v = ice_property(m, key, NULL);
    return v ? fz_ieq(v, "true") : dflt; /* as Boolean.parseBoolean */
}

const ice_snapshot *ice_snapshot_parent(const ice_metadata *m, const ice_snapshot *s, bool *cut) {
    *cut = s->parent_id == ICE_NONE && s->sequence > 1;
    if (s->parent_id == ICE_NONE) return NULL;
    const ice_snapshot *p = ice_metadata_snapshot(m, s->parent_id);
    *cut = !p;
    return p;
}

bool ice_snapshot_is_ancestor(const ice_metadata *m, int64_t ancestor_id, int64_t of_id) {
    bool cut;
    for (const ice_snapshot *s = ice_metadata_snapshot(m, of_id); s; s = ice_snapshot_parent(m, s, &cut))
        if (s->id == ancestor_id) return true;
    return false;
}
