/* Manifests, writing. See iceberg.h; spec: Manifests, Appendix A (Avro).
 *
 * The Avro schema is that of the Java implementation, field for field: every field has its id, arrays their element id, maps are arrays of
 * key/value records. Partition fields whose names are no Avro names are renamed as Java does (host-name -> host_x2Dname), with non-ASCII letters
 * renamed too, since Avro readers other than Java's refuse them.
 */
#include "iceberg/avro_int.h"

typedef struct stats {      /* of one partition field */
    bool has_null, has_nan, has_bounds;
    ice_value low, high;    /* views into the buffers below */
    fz_buf low_bytes, high_bytes;
} stats;

struct ice_manifest_writer {
    const ice_spec *spec;
    const ice_type *const *types;
    av_out out;
    stats *stats;
    ice_manifest_file file; /* counts so far */
    uint32_t entries;
    bool missing_type;
};

/* ---- the Avro schema ---- */

/* Character of UTF-16 as Java sees it: _2 for digits, _x and hexadecimal for the rest. */
static void put_escaped(fz_buf *b, uint32_t cp) {
    if (cp >= '0' && cp <= '9') fz_buf_printf(b, "_%c", (char)cp);
    else if (cp > 0xffff) fz_buf_printf(b, "_x%X_x%X", 0xd800 + ((cp - 0x10000) >> 10), 0xdc00 + ((cp - 0x10000) & 0x3ff));
    else fz_buf_printf(b, "_x%X", cp);
}

static bool is_letter(uint32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

static void put_avro_name(fz_buf *b, const char *name) {
    size_t n = strlen(name), i = 0;
    if (!n) fz_buf_putc(b, '_');
    while (i < n) {
        bool first = i == 0;
        uint32_t cp = fz_utf8_next(name, n, &i);
        if (is_letter(cp) || (!first && cp >= '0' && cp <= '9')) fz_buf_putc(b, (char)cp);
        else put_escaped(b, cp);
    }
}

/* A fixed type is spelled out once; later uses name it. */
static void put_fixed(fz_buf *b, size_t from, const char *name, int size, const char *more) {
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"name\":\"%s\"", name);
    if (memmem(b->data + from, b->len - from, quoted, strlen(quoted))) fz_buf_printf(b, "\"%s\"", name);
    else fz_buf_printf(b, "{\"type\":\"fixed\",%s,\"size\":%d%s}", quoted, size, more);
}

static void put_partition_type(fz_buf *b, size_t from, const ice_type *t) {
    char name[40], more[96];
    switch (t->kind) {
    case ICE_DATE: fz_buf_puts(b, "{\"type\":\"int\",\"logicalType\":\"date\"}"); return;
    case ICE_TIME: fz_buf_puts(b, "{\"type\":\"long\",\"logicalType\":\"time-micros\"}"); return;
    case ICE_TIMESTAMP:
    case ICE_TIMESTAMPTZ:
        fz_buf_printf(b, "{\"type\":\"long\",\"logicalType\":\"timestamp-micros\",\"adjust-to-utc\":%s}", t->kind == ICE_TIMESTAMP ? "false" : "true");
        return;
    case ICE_BINARY: fz_buf_puts(b, "\"bytes\""); return;
    case ICE_UUID: put_fixed(b, from, "uuid_fixed", 16, ",\"logicalType\":\"uuid\""); return;
    case ICE_FIXED:
        snprintf(name, sizeof name, "fixed_%d", t->precision);
        put_fixed(b, from, name, t->precision, "");
        return;
    case ICE_DECIMAL:
        snprintf(name, sizeof name, "decimal_%d_%d", t->precision, t->scale);
        snprintf(more, sizeof more, ",\"logicalType\":\"decimal\",\"precision\":%d,\"scale\":%d", t->precision, t->scale);
        put_fixed(b, from, name, ice_decimal_bytes(t->precision), more);
        return;
    default:
        fz_buf_putc(b, '"');
        ice_type_text(b, t);
        fz_buf_putc(b, '"');
    }
}

static void put_partition(fz_buf *b, const ice_spec *spec, const ice_type *const *types) {
    size_t from = b->len;
    fz_buf name = {0};
    fz_buf_puts(b, "{\"type\":\"record\",\"name\":\"r102\",\"fields\":[");
    for (uint32_t i = 0; i < spec->n_fields; i++) {
        const ice_spec_field *f = &spec->fields[i];
        char quoted[32];
        name.len = 0;
        fz_buf_puts(&name, "{\"name\":\"");
        put_avro_name(&name, f->name);
        fz_buf_putc(&name, '"');
        if (memmem(b->data + from, b->len - from, name.data, name.len)) { /* two names became one */
            name.len--;
            snprintf(quoted, sizeof quoted, "_%d\"", f->field_id);
            fz_buf_puts(&name, quoted);
        }
        if (i) fz_buf_putc(b, ',');
        fz_buf_append(b, name.data, name.len);
        fz_buf_puts(b, ",\"type\":[\"null\",");
        put_partition_type(b, from, types[i]);
        fz_buf_printf(b, "],\"default\":null,\"field-id\":%d", f->field_id);
        const char *plain = fz_buf_cstr(&name) + strlen("{\"name\":\"");
        if (strncmp(plain, f->name, strlen(f->name)) != 0 || plain[strlen(f->name)] != '"') {
            fz_buf_puts(b, ",\"iceberg-field-name\":");
            fz_buf_json(b, f->name, strlen(f->name));
        }
        fz_buf_putc(b, '}');
    }
    fz_buf_puts(b, "]}");
    fz_buf_free(&name);
}

#define COUNTS(name, doc, id, k, v, type)                                                                                                       \
    "{\"name\":\"" name "\",\"type\":[\"null\",{\"type\":\"array\",\"items\":{\"type\":\"record\",\"name\":\"k" #k "_v" #v "\",\"fields\":["      \
    "{\"name\":\"key\",\"type\":\"int\",\"field-id\":" #k "},{\"name\":\"value\",\"type\":\"" type "\",\"field-id\":" #v "}]},"                   \
    "\"logicalType\":\"map\"}],\"doc\":\"" doc "\",\"default\":null,\"field-id\":" #id "},"
#define OPTIONAL(name, type, doc, id) "{\"name\":\"" name "\",\"type\":[\"null\"," type "],\"doc\":\"" doc "\",\"default\":null,\"field-id\":" #id "}"

static const char schema_head[] =
    "{\"type\":\"record\",\"name\":\"manifest_entry\",\"fields\":[{\"name\":\"status\",\"type\":\"int\",\"field-id\":0},"
    "{\"name\":\"snapshot_id\",\"type\":[\"null\",\"long\"],\"default\":null,\"field-id\":1},"
    "{\"name\":\"sequence_number\",\"type\":[\"null\",\"long\"],\"default\":null,\"field-id\":3},"
    "{\"name\":\"file_sequence_number\",\"type\":[\"null\",\"long\"],\"default\":null,\"field-id\":4},"
    "{\"name\":\"data_file\",\"type\":{\"type\":\"record\",\"name\":\"r2\",\"fields\":["
    "{\"name\":\"content\",\"type\":\"int\",\"doc\":\"Contents of the file: 0=data, 1=position deletes, 2=equality deletes\",\"field-id\":134},"
    "{\"name\":\"file_path\",\"type\":\"string\",\"doc\":\"Location URI with FS scheme\",\"field-id\":100},"
    "{\"name\":\"file_format\",\"type\":\"string\",\"doc\":\"File format name: avro, orc, or parquet\",\"field-id\":101},"
    "{\"name\":\"partition\",\"type\":";
static const char schema_tail[] =
    ",\"doc\":\"Partition data tuple, schema based on the partition spec\",\"field-id\":102},"
    "{\"name\":\"record_count\",\"type\":\"long\",\"doc\":\"Number of records in the file\",\"field-id\":103},"
    "{\"name\":\"file_size_in_bytes\",\"type\":\"long\",\"doc\":\"Total file size in bytes\",\"field-id\":104},"
    COUNTS("column_sizes", "Map of column id to total size on disk", 108, 117, 118, "long")
    COUNTS("value_counts", "Map of column id to total count, including null and NaN", 109, 119, 120, "long")
    COUNTS("null_value_counts", "Map of column id to null value count", 110, 121, 122, "long")
    COUNTS("nan_value_counts", "Map of column id to number of NaN values in the column", 137, 138, 139, "long")
    COUNTS("lower_bounds", "Map of column id to lower bound", 125, 126, 127, "bytes")
    COUNTS("upper_bounds", "Map of column id to upper bound", 128, 129, 130, "bytes")
    OPTIONAL("key_metadata", "\"bytes\"", "Encryption key metadata blob", 131) ","
    OPTIONAL("split_offsets", "{\"type\":\"array\",\"items\":\"long\",\"element-id\":133}", "Splittable offsets", 132) ","
    OPTIONAL("equality_ids", "{\"type\":\"array\",\"items\":\"int\",\"element-id\":136}", "Equality comparison field IDs", 135) ","
    OPTIONAL("sort_order_id", "\"int\"", "Sort order ID", 140) ","
    OPTIONAL("referenced_data_file", "\"string\"", "Fully qualified location (URI with FS scheme) of a data file that all deletes reference", 143)
    "]},\"field-id\":2}]}";

/* ---- writer ---- */

/* Takes j over; the caller frees the text. */
static char *json_line(json_t *j) {
    size_t n = json_dumpb(j, NULL, 0, JSON_COMPACT);
    char *s = fz_malloc(n + 1);
    s[json_dumpb(j, s, n, JSON_COMPACT)] = 0;
    json_decref(j);
    return s;
}

static char *spec_fields_line(const ice_spec *spec) {
    json_t *o = ice_spec_json(spec);
    char *r = json_line(json_incref(json_object_get(o, "fields")));
    json_decref(o);
    return r;
}

ice_manifest_writer *ice_manifest_writer_new(const ice_schema *schema, const ice_spec *spec, const ice_type *const *types, int32_t content,
                                             int64_t snapshot_id, ice_avro_codec codec) {
    ice_manifest_writer *w = FZ_NEW(ice_manifest_writer);
    w->spec = spec;
    w->types = types;
    w->stats = fz_calloc(spec->n_fields + 1, sizeof *w->stats);
    w->file = (ice_manifest_file){.spec_id = spec->spec_id, .content = content, .sequence = ICE_NONE, .min_sequence = ICE_NONE, .added_snapshot_id = snapshot_id};
    for (uint32_t i = 0; i < spec->n_fields; i++)
        if (!types[i] || ice_is_nested(types[i]->kind) || types[i]->kind == ICE_OTHER) w->missing_type = true;
    if (w->missing_type) return w;
    fz_buf avro = {0};
    fz_buf_puts(&avro, schema_head);
    put_partition(&avro, spec, types);
    fz_buf_puts(&avro, schema_tail);
    char *schema_text = json_line(ice_schema_json(schema)), *spec_text = spec_fields_line(spec), schema_id[16], spec_id[16];
    snprintf(schema_id, sizeof schema_id, "%d", schema->schema_id);
    snprintf(spec_id, sizeof spec_id, "%d", spec->spec_id);
    const fz_pair meta[] = {{.key = "schema", .value = schema_text}, {.key = "avro.schema", .value = fz_buf_cstr(&avro)},
                            {.key = "format-version", .value = "2"}, {.key = "schema-id", .value = schema_id},
                            {.key = "partition-spec-id", .value = spec_id}, {.key = "partition-spec", .value = spec_text},
                            {.key = "content", .value = content ? "deletes" : "data"}};
    av_open(&w->out, meta, sizeof meta / sizeof *meta, codec, (uint64_t)snapshot_id);
    fz_free(schema_text);
    fz_free(spec_text);
    fz_buf_free(&avro);
    return w;
}

static void put_optional_long(fz_buf *b, int64_t v) {
    av_put_long(b, v == ICE_NONE ? 0 : 1);
    if (v != ICE_NONE) av_put_long(b, v);
}

static void put_optional_bytes(fz_buf *b, fz_sv s) {
    av_put_long(b, s.p ? 1 : 0);
    if (s.p) av_put_bytes(b, s.p, s.n);
}

static void put_counts(fz_buf *b, ice_counts c) {
    av_put_long(b, c.v ? 1 : 0);
    if (!c.v) return;
    if (c.n) av_put_long(b, c.n);
    for (uint32_t i = 0; i < c.n; i++) {
        av_put_long(b, c.v[i].id);
        av_put_long(b, c.v[i].n);
    }
    av_put_long(b, 0);
}

static void put_bounds(fz_buf *b, ice_bounds c) {
    av_put_long(b, c.v ? 1 : 0);
    if (!c.v) return;
    if (c.n) av_put_long(b, c.n);
    for (uint32_t i = 0; i < c.n; i++) {
        av_put_long(b, c.v[i].id);
        av_put_bytes(b, c.v[i].v.p, c.v[i].v.n);
    }
    av_put_long(b, 0);
}

static void put_decimal(fz_buf *b, col_i128 v, int n) {
    for (int i = n - 1; i >= 0; i--) fz_buf_putc(b, (char)((unsigned __int128)v >> (8 * i)));
}

static fz_status put_value(fz_buf *b, const ice_type *t, const ice_value *v, fz_error *err) {
    if (v->is_null) {
        av_put_long(b, 0);
        return FZ_OK;
    }
    if (v->kind != t->kind) return fz_fail(err, FZ_FATAL, "iceberg.manifest", "a partition value is of kind %d, the spec wants %d", v->kind, t->kind);
    av_put_long(b, 1);
    uint64_t u;
    switch (t->kind) {
    case ICE_BOOLEAN: fz_buf_putc(b, v->i != 0); break;
    case ICE_FLOAT: {
        float f = (float)v->d;
        fz_buf_append(b, &f, 4);
        break;
    }
    case ICE_DOUBLE:
        memcpy(&u, &v->d, 8);
        fz_buf_append(b, &u, 8);
        break;
    case ICE_DECIMAL: put_decimal(b, v->dec, ice_decimal_bytes(t->precision)); break;
    case ICE_UUID:
    case ICE_FIXED:
        if (v->s.n != (size_t)(t->kind == ICE_UUID ? 16 : t->precision))
            return fz_fail(err, FZ_FATAL, "iceberg.manifest", "a partition value of %zu bytes does not fit its fixed type", v->s.n);
        fz_buf_append(b, v->s.p, v->s.n);
        break;
    case ICE_STRING:
    case ICE_BINARY: av_put_bytes(b, v->s.p, v->s.n); break;
    default: av_put_long(b, v->i);
    }
    return FZ_OK;
}

static void keep(ice_value *to, fz_buf *bytes, const ice_value *v) {
    *to = *v;
    if (!ice_has_bytes(v->kind)) return;
    bytes->len = 0;
    fz_buf_reserve(bytes, v->s.n + 1);
    if (v->s.n) fz_buf_append(bytes, v->s.p, v->s.n);
    to->s.p = (const char *)bytes->data;
}

static void count_value(stats *s, const ice_value *v) {
    bool nan = !v->is_null && (v->kind == ICE_FLOAT || v->kind == ICE_DOUBLE) && v->d != v->d;
    s->has_null |= v->is_null;
    s->has_nan |= nan;
    if (v->is_null || nan) return;
    if (!s->has_bounds || ice_value_cmp(v, &s->low) < 0) keep(&s->low, &s->low_bytes, v);
    if (!s->has_bounds || ice_value_cmp(v, &s->high) > 0) keep(&s->high, &s->high_bytes, v);
    s->has_bounds = true;
}

static void count_entry(ice_manifest_writer *w, const ice_entry *e) {
    ice_manifest_file *f = &w->file;
    int32_t *files = e->status == ICE_ADDED ? &f->added_files : e->status == ICE_EXISTING ? &f->existing_files : &f->deleted_files;
    int64_t *rows = e->status == ICE_ADDED ? &f->added_rows : e->status == ICE_EXISTING ? &f->existing_rows : &f->deleted_rows;
    ++*files;
    *rows = (int64_t)((uint64_t)*rows + (uint64_t)e->file.record_count); /* a count that was read may be anything */
    if (e->status != ICE_DELETED && e->sequence != ICE_NONE && (f->min_sequence == ICE_NONE || e->sequence < f->min_sequence)) f->min_sequence = e->sequence;
    for (uint32_t i = 0; i < e->file.partition.n; i++) count_value(&w->stats[i], &e->file.partition.v[i]);
    w->entries++;
}

static fz_status check_entry(const ice_manifest_writer *w, const ice_entry *e, fz_error *err) {
    if (w->missing_type)
        return fz_fail(err, FZ_USER, "iceberg.partition", "partition spec %d has a field whose source column or type is not known", w->spec->spec_id);
    if (e->file.partition.n != w->spec->n_fields || e->file.spec_id != w->spec->spec_id)
        return fz_fail(err, FZ_FATAL, "iceberg.manifest", "%s belongs to partition spec %d, the manifest to %d", e->file.path, e->file.spec_id, w->spec->spec_id);
    if (e->status != ICE_ADDED && (e->sequence == ICE_NONE || e->file_sequence == ICE_NONE || e->snapshot_id == ICE_NONE))
        return fz_fail(err, FZ_FATAL, "iceberg.manifest", "%s is not new and has no sequence number or snapshot", e->file.path);
    return FZ_OK;
}

static void put_file_tail(fz_buf *b, const ice_data_file *f) {
    av_put_long(b, f->record_count);
    av_put_long(b, f->file_size);
    put_counts(b, f->column_sizes);
    put_counts(b, f->value_counts);
    put_counts(b, f->null_counts);
    put_counts(b, f->nan_counts);
    put_bounds(b, f->lower);
    put_bounds(b, f->upper);
    put_optional_bytes(b, f->key_metadata);
    av_put_long(b, f->split_offsets ? 1 : 0);
    if (f->split_offsets) {
        if (f->n_split_offsets) av_put_long(b, f->n_split_offsets);
        for (uint32_t i = 0; i < f->n_split_offsets; i++) av_put_long(b, f->split_offsets[i]);
        av_put_long(b, 0);
    }
    av_put_long(b, f->equality_ids ? 1 : 0);
    if (f->equality_ids) {
        if (f->n_equality_ids) av_put_long(b, f->n_equality_ids);
        for (uint32_t i = 0; i < f->n_equality_ids; i++) av_put_long(b, f->equality_ids[i]);
        av_put_long(b, 0);
    }
    put_optional_long(b, f->sort_order_id);
    put_optional_bytes(b, fz_sv_of(f->referenced_data_file));
}

fz_status ice_manifest_writer_add(ice_manifest_writer *w, const ice_entry *e, fz_error *err) {
    FZ_TRY(check_entry(w, e, err));
    fz_buf *b = &w->out.block;
    size_t mark = b->len;
    av_put_long(b, e->status);
    put_optional_long(b, e->snapshot_id);
    put_optional_long(b, e->sequence);
    put_optional_long(b, e->file_sequence);
    av_put_long(b, e->file.content);
    av_put_str(b, e->file.path);
    av_put_str(b, e->file.format);
    for (uint32_t i = 0; i < w->spec->n_fields; i++) {
        fz_status s = put_value(b, w->types[i], &e->file.partition.v[i], err);
        if (s != FZ_OK) {
            b->len = mark;
            return s;
        }
    }
    put_file_tail(b, &e->file);
    count_entry(w, e);
    return av_row(&w->out, err);
}


/* The open block counts as if it were packed as well as those before it (four to one at first). */
size_t ice_manifest_writer_bytes(const ice_manifest_writer *w) {
    const av_out *o = &w->out;
    uint64_t open = o->raw ? o->block.len * o->packed / o->raw : o->codec == ICE_AVRO_NULL ? o->block.len : o->block.len / 4;
    return o->file.len + (size_t)open;
}

uint32_t ice_manifest_writer_entries(const ice_manifest_writer *w) { return w->entries; }

fz_status ice_manifest_writer_finish(ice_manifest_writer *w, fz_arena *a, fz_buf *out, ice_manifest_file *file, fz_error *err) {
    fz_status s = w->missing_type ? fz_fail(err, FZ_USER, "iceberg.partition", "partition spec %d cannot be written", w->spec->spec_id) : av_finish(&w->out, err);
    if (s == FZ_OK) {
        fz_buf_append(out, w->out.file.data, w->out.file.len);
        *file = w->file;
        file->length = (int64_t)w->out.file.len;
        ice_summary *sum = FZ_ANEWN(a, ice_summary, w->spec->n_fields);
        for (uint32_t i = 0; i < w->spec->n_fields; i++) {
            const stats *st = &w->stats[i];
            sum[i] = (ice_summary){.contains_null = st->has_null, .contains_nan = st->has_nan};
            if (!st->has_bounds) continue;
            sum[i].lower = ice_value_encode(a, w->types[i], &st->low);
            sum[i].upper = ice_value_encode(a, w->types[i], &st->high);
        }
        file->n_partitions = w->spec->n_fields;
        file->partitions = sum;
    }
    ice_manifest_writer_free(w);
    return s;
}

void ice_manifest_writer_free(ice_manifest_writer *w) {
    if (!w) return;
    for (uint32_t i = 0; i < w->spec->n_fields; i++) {
        fz_buf_free(&w->stats[i].low_bytes);
        fz_buf_free(&w->stats[i].high_bytes);
    }
    fz_free(w->stats);
    av_close(&w->out);
    fz_free(w);
}
