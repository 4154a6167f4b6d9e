/* Requirements and updates in the REST spec's shape: makers, and the check of requirements. See iceberg.h; spec: REST catalog OpenAPI. */
#include "iceberg/iceberg_int.h"

ice_changes ice_changes_new(void) { return (ice_changes){json_array(), json_array()}; }

void ice_changes_free(ice_changes *c) {
    json_decref(c->requirements);
    json_decref(c->updates);
    *c = (ice_changes){0};
}

static json_t *requirement(ice_changes *c, const char *type) {
    json_t *o = json_object();
    ice_json_set(o, "type", json_string(type));
    ice_json_add(c->requirements, o);
    return o;
}

static json_t *update(ice_changes *c, const char *action) {
    json_t *o = json_object();
    ice_json_set(o, "action", json_string(action));
    ice_json_add(c->updates, o);
    return o;
}

void ice_assert_create(ice_changes *c) { (void)requirement(c, "assert-create"); }
void ice_assert_uuid(ice_changes *c, const char *uuid) { ice_json_set(requirement(c, "assert-table-uuid"), "uuid", ice_json_string(uuid)); }

void ice_assert_ref(ice_changes *c, const char *ref, int64_t snapshot_id) {
    json_t *o = requirement(c, "assert-ref-snapshot-id");
    ice_json_set(o, "ref", ice_json_string(ref));
    ice_json_set(o, "snapshot-id", snapshot_id == ICE_NONE ? json_null() : json_integer(snapshot_id));
}

/* The requirement "current-schema-id" is spelled assert-current-schema-id, its member current-schema-id; so for all of them. */
void ice_assert_id(ice_changes *c, const char *which, int32_t id) {
    char type[64];
    snprintf(type, sizeof type, "assert-%s", which);
    ice_json_set(requirement(c, type), which, json_integer(id));
}

void ice_update_uuid(ice_changes *c, const char *uuid) { ice_json_set(update(c, "assign-uuid"), "uuid", ice_json_string(uuid)); }
void ice_update_format_version(ice_changes *c, int32_t v) { ice_json_set(update(c, "upgrade-format-version"), "format-version", json_integer(v)); }

void ice_update_add_schema(ice_changes *c, const ice_schema *s) {
    json_t *o = update(c, "add-schema");
    ice_json_set(o, "schema", ice_schema_json(s));
    ice_json_set(o, "last-column-id", json_integer(ice_schema_highest_id(s)));
}

void ice_update_current_schema(ice_changes *c, int32_t id) { ice_json_set(update(c, "set-current-schema"), "schema-id", json_integer(id)); }
void ice_update_add_spec(ice_changes *c, const ice_spec *s) { ice_json_set(update(c, "add-spec"), "spec", ice_spec_json(s)); }
void ice_update_default_spec(ice_changes *c, int32_t id) { ice_json_set(update(c, "set-default-spec"), "spec-id", json_integer(id)); }
void ice_update_add_sort_order(ice_changes *c, const ice_sort_order *o) { ice_json_set(update(c, "add-sort-order"), "sort-order", ice_sort_order_json(o)); }
void ice_update_default_sort_order(ice_changes *c, int32_t id) { ice_json_set(update(c, "set-default-sort-order"), "sort-order-id", json_integer(id)); }
void ice_update_add_snapshot(ice_changes *c, const ice_snapshot *s) { ice_json_set(update(c, "add-snapshot"), "snapshot", ice_snapshot_json(s)); }

void ice_update_ref(ice_changes *c, const char *ref, int64_t snapshot_id) {
    json_t *o = update(c, "set-snapshot-ref");
    ice_json_set(o, "ref-name", ice_json_string(ref));
    ice_json_set(o, "type", json_string("branch"));
    ice_json_set(o, "snapshot-id", json_integer(snapshot_id));
}

void ice_update_remove_ref(ice_changes *c, const char *ref) { ice_json_set(update(c, "remove-snapshot-ref"), "ref-name", ice_json_string(ref)); }

void ice_update_remove_snapshots(ice_changes *c, const int64_t *ids, uint32_t n) {
    json_t *arr = json_array();
    for (uint32_t i = 0; i < n; i++) ice_json_add(arr, json_integer(ids[i]));
    ice_json_set(update(c, "remove-snapshots"), "snapshot-ids", arr);
}

void ice_update_set_properties(ice_changes *c, const fz_pair *props, uint32_t n) {
    json_t *o = json_object();
    for (uint32_t i = 0; i < n; i++) ice_json_set(o, props[i].key, ice_json_string(props[i].value));
    ice_json_set(update(c, "set-properties"), "updates", o);
}

void ice_update_remove_properties(ice_changes *c, const char *const *keys, uint32_t n) {
    json_t *arr = json_array();
    for (uint32_t i = 0; i < n; i++) ice_json_add(arr, ice_json_string(keys[i]));
    ice_json_set(update(c, "remove-properties"), "removals", arr);
}

void ice_update_location(ice_changes *c, const char *location) { ice_json_set(update(c, "set-location"), "location", ice_json_string(location)); }

json_t *ice_snapshot_json(const ice_snapshot *s) {
    json_t *o = json_object(), *summary = json_object();
    ice_json_set(o, "sequence-number", json_integer(s->sequence));
    ice_json_set(o, "snapshot-id", json_integer(s->id));
    if (s->parent_id != ICE_NONE) ice_json_set(o, "parent-snapshot-id", json_integer(s->parent_id));
    ice_json_set(o, "timestamp-ms", json_integer(s->timestamp_ms));
    if (s->operation) ice_json_set(summary, "operation", ice_json_string(s->operation));
    for (uint32_t i = 0; i < s->n_summary; i++) ice_json_set(summary, s->summary[i].key, ice_json_string(s->summary[i].value));
    ice_json_set(o, "summary", summary);
    if (s->manifest_list) ice_json_set(o, "manifest-list", ice_json_string(s->manifest_list));
    if (s->schema_id != ICE_NONE) ice_json_set(o, "schema-id", json_integer(s->schema_id));
    return o;
}

/* ---- requirements ---- */

static fz_status conflict(const char *type, const char *what, const char *want, const char *have, fz_error *err) {
    return fz_fail(err, FZ_CONFLICT, "iceberg.requirement", "requirement %s failed: %s is %s, %s was expected", type, what, have, want);
}

static fz_status check_id(const char *type, int64_t want, int64_t have, const char *what, fz_error *err) {
    if (want == have) return FZ_OK;
    char w[24], h[24];
    snprintf(w, sizeof w, "%lld", (long long)want);
    snprintf(h, sizeof h, "%lld", (long long)have);
    return conflict(type, what, w, h, err);
}

static fz_status check_ref(const ice_metadata *m, const json_t *j, fz_error *err) {
    const char *name = json_string_value(json_object_get(j, "ref"));
    const json_t *id = json_object_get(j, "snapshot-id");
    if (!name) return fz_fail(err, FZ_FATAL, "iceberg.requirement", "assert-ref-snapshot-id names no reference");
    const ice_ref *r = ice_metadata_ref(m, name);
    char what[160];
    snprintf(what, sizeof what, "snapshot of reference %s", name);
    if (!id || json_is_null(id)) {
        if (!r) return FZ_OK;
        char have[24];
        snprintf(have, sizeof have, "%lld", (long long)r->snapshot_id);
        return conflict("assert-ref-snapshot-id", what, "none", have, err);
    }
    return check_id("assert-ref-snapshot-id", json_integer_value(id), r ? r->snapshot_id : ICE_NONE, what, err);
}

static fz_status check_one(const ice_metadata *m, const json_t *j, fz_error *err) {
    const char *type = json_string_value(json_object_get(j, "type"));
    if (!type) return fz_fail(err, FZ_FATAL, "iceberg.requirement", "a requirement has no type");
    if (strcmp(type, "assert-create") == 0) return m ? conflict(type, "the table", "absent", "there", err) : FZ_OK;
    if (!m) return conflict(type, "the table", "there", "absent", err);
    if (strcmp(type, "assert-ref-snapshot-id") == 0) return check_ref(m, j, err);
    if (strcmp(type, "assert-table-uuid") == 0) {
        const char *want = json_string_value(json_object_get(j, "uuid"));
        return want && m->uuid && fz_ieq(want, m->uuid) ? FZ_OK : conflict(type, "table uuid", want ? want : "none", m->uuid ? m->uuid : "none", err);
    }
    const struct { const char *name; int32_t have; } ids[] = {
        {"assert-current-schema-id", m->current_schema_id}, {"assert-default-spec-id", m->default_spec_id},
        {"assert-default-sort-order-id", m->default_sort_order_id}, {"assert-last-assigned-field-id", m->last_column_id},
        {"assert-last-assigned-partition-id", m->last_partition_id}};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        if (strcmp(type, ids[i].name) != 0) continue;
        const char *member = type + strlen("assert-");
        return check_id(type, json_integer_value(json_object_get(j, member)), ids[i].have, member, err);
    }
    return fz_fail(err, FZ_FATAL, "iceberg.requirement", "unknown requirement %s", type);
}

fz_status ice_requirements_check(const ice_metadata *base, const ice_changes *c, fz_error *err) {
    for (size_t i = 0; i < json_array_size(c->requirements); i++) FZ_TRY(check_one(base, json_array_get(c->requirements, i), err));
    return FZ_OK;
}
