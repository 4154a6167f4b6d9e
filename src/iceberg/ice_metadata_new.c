/* Table metadata, making and writing: CREATE TABLE, encoding, and whether a table may be written. See iceberg.h. */
#include "iceberg/iceberg_int.h"
#include <libdeflate.h>

/* ---- CREATE TABLE ---- */

/* Properties that Java keeps for itself (TableProperties.RESERVED_PROPERTIES): never stored. */
static bool is_reserved(const char *key) {
    static const char *const names[] = {"format-version", "uuid", "snapshot-count", "current-snapshot-summary", "current-snapshot-id",
                                        "current-snapshot-timestamp-ms", "current-schema", "default-partition-spec", "default-sort-order"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(key, names[i]) == 0) return true;
    return false;
}

static json_t *new_properties(const fz_pair *props, uint32_t n) {
    json_t *o = json_object();
    ice_json_set(o, "write.parquet.compression-codec", json_string("zstd"));
    for (uint32_t i = 0; i < n; i++)
        if (!is_reserved(props[i].key)) ice_json_set(o, props[i].key, ice_json_string(props[i].value));
    return o;
}

static fz_status new_version(const fz_pair *props, uint32_t n, fz_error *err) {
    const char *v = fz_pair_get(props, n, "format-version");
    if (!v || strcmp(v, "2") == 0) return FZ_OK;
    fz_fail(err, FZ_USER, "iceberg.format-version", "tables of format version %s cannot be created", v);
    return fz_hint(err, "Leave 'format-version' out or set it to '2'.");
}

static json_t *in_array(json_t *v) {
    json_t *arr = json_array();
    ice_json_add(arr, v);
    return arr;
}

fz_status ice_metadata_new(const char *location, const ice_schema *s, const ice_spec *spec, const ice_sort_order *order, const fz_pair *props, uint32_t n_props,
                           const char *uuid, int64_t now_ms, ice_metadata **out, fz_error *err) {
    static const ice_spec unpartitioned = {0};
    *out = NULL;
    FZ_TRY(new_version(props, n_props, err));
    if (!spec) spec = &unpartitioned;
    fz_arena *a = fz_arena_new();
    json_t *o = json_object();
    ice_json_set(o, "format-version", json_integer(2));
    ice_json_set(o, "table-uuid", ice_json_string(uuid));
    ice_json_set(o, "location", ice_json_string(ice_location_trim(a, location)));
    ice_json_set(o, "last-sequence-number", json_integer(0));
    ice_json_set(o, "last-updated-ms", json_integer(now_ms));
    ice_json_set(o, "last-column-id", json_integer(ice_schema_highest_id(s)));
    ice_json_set(o, "current-schema-id", json_integer(s->schema_id));
    ice_json_set(o, "schemas", in_array(ice_schema_json(s)));
    ice_json_set(o, "default-spec-id", json_integer(spec->spec_id));
    ice_json_set(o, "partition-specs", in_array(ice_spec_json(spec)));
    ice_json_set(o, "last-partition-id", json_integer(ice_spec_highest_field_id(spec)));
    ice_json_set(o, "default-sort-order-id", json_integer(order ? order->order_id : 0));
    ice_json_set(o, "sort-orders", in_array(ice_sort_order_json(order)));
    ice_json_set(o, "properties", new_properties(props, n_props));
    ice_json_set(o, "current-snapshot-id", json_integer(ICE_NONE));
    ice_json_set(o, "refs", json_object());
    static const char *const lists[] = {"snapshots", "statistics", "partition-statistics", "snapshot-log", "metadata-log"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) ice_json_set(o, lists[i], json_array());
    fz_arena_free(a);
    return ice_metadata_from_json(o, out, err);
}

/* ---- bytes ---- */

static int append(const char *p, size_t n, void *cx) {
    fz_buf_append(cx, p, n);
    return 0;
}

static fz_status gzip(fz_buf *plain, fz_buf *out, fz_error *err) {
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(6);
    size_t most = c ? libdeflate_gzip_compress_bound(c, plain->len) : 0;
    fz_buf_reserve(out, most);
    size_t n = c ? libdeflate_gzip_compress(c, plain->data, plain->len, out->data + out->len, most) : 0;
    libdeflate_free_compressor(c);
    out->len += n;
    return n ? FZ_OK : fz_fail(err, FZ_FATAL, "iceberg.metadata", "the metadata could not be compressed");
}

fz_status ice_metadata_encode(const ice_metadata *m, fz_buf *out, fz_error *err) {
    const char *codec = ice_property(m, "write.metadata.compression-codec", "none");
    if (fz_ieq(codec, "none")) {
        if (json_dump_callback(m->root, append, out, JSON_COMPACT) == 0) return FZ_OK;
        return fz_fail(err, FZ_FATAL, "iceberg.metadata", "the metadata could not be written as JSON");
    }
    if (!fz_ieq(codec, "gzip")) return fz_fail(err, FZ_USER, "iceberg.property", "write.metadata.compression-codec = %s is not supported (none, gzip)", codec);
    fz_buf plain = {0};
    fz_status s = json_dump_callback(m->root, append, &plain, JSON_COMPACT) == 0 ? gzip(&plain, out, err)
                                                                                : fz_fail(err, FZ_FATAL, "iceberg.metadata", "the metadata could not be written as JSON");
    fz_buf_free(&plain);
    return s;
}

/* ---- may it be written? ---- */

static fz_status check_type(const ice_type *t, const char *name, fz_error *err) {
    if (t->kind == ICE_OTHER) return fz_fail(err, FZ_USER, "iceberg.type", "column %s has the type %s, which is not supported", name, t->text);
    for (uint32_t i = 0; i < t->n_fields; i++) FZ_TRY(check_type(t->fields[i].type, name, err));
    return FZ_OK;
}

static fz_status check_version(const ice_metadata *m, fz_error *err) {
    if (m->format_version == 2) return FZ_OK;
    fz_fail(err, FZ_USER, "iceberg.format-version", "table at %s has format version %d; only version 2 is written", m->location, m->format_version);
    if (m->format_version == 1) return fz_hint(err, "Upgrade it first: ALTER TABLE ... SET ('format-version'='2') in the engine that made it.");
    return fz_detail(err, "Version 3 tables carry row lineage and types that this program would lose.");
}

static fz_status check_spec(const ice_metadata *m, fz_error *err) {
    for (uint32_t i = 0; i < m->spec->n_fields; i++) {
        const ice_spec_field *f = &m->spec->fields[i];
        const ice_field *c = ice_schema_field(m->schema, f->source_id);
        if (f->transform.kind == ICE_UNKNOWN_TRANSFORM)
            return fz_fail(err, FZ_USER, "iceberg.partition", "partition field %s has the transform %s, which is not supported", f->name, f->transform.text);
        if (!c) return fz_fail(err, FZ_USER, "iceberg.partition", "the source column (id %d) of partition field %s is not in the schema", f->source_id, f->name);
        FZ_TRY(ice_check_fixed(f, c->type, err));
        if (!ice_transform_result(&f->transform, c->type))
            return fz_fail(err, FZ_USER, "iceberg.partition", "partition field %s: transform %s does not fit column %s", f->name, f->transform.text, c->name);
    }
    return FZ_OK;
}

fz_status ice_metadata_writable(const ice_metadata *m, fz_error *err) {
    FZ_TRY(check_version(m, err));
    FZ_TRY(check_spec(m, err));
    for (uint32_t i = 0; i < m->schema->n_fields; i++) FZ_TRY(check_type(m->schema->fields[i].type, m->schema->fields[i].name, err));
    for (uint32_t i = 0; i < m->n_properties; i++) {
        const fz_option *o = fz_option_find(ice_table_properties, m->properties[i].key);
        if (!o || o->state != FZ_OPT_REFUSED) continue;
        if (o->type == FZ_OPT_BOOL && !fz_ieq(m->properties[i].value, "true")) continue; /* switched off */
        fz_fail(err, FZ_USER, "iceberg.property", "table property %s = %s cannot be honoured", m->properties[i].key, m->properties[i].value);
        return fz_hint(err, "%s", o->why);
    }
    return FZ_OK;
}
