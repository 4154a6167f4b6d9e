/* Target tables: from metadata to what the Parquet writer needs; the check of required columns. See sink.h. */
#include "sink/sink_int.h"
#include <jansson.h>

static fz_status compression_of(const ice_metadata *m, pq_options *o, fz_error *err) {
    static const struct { const char *name; pq_compression c; int level; } known[] = {
        {"zstd", PQ_ZSTD, 0}, {"snappy", PQ_SNAPPY, 0}, {"gzip", PQ_GZIP, 6}, {"lz4", PQ_LZ4_RAW, 0}, {"lz4_raw", PQ_LZ4_RAW, 0}, {"uncompressed", PQ_UNCOMPRESSED, 0}};
    const char *name = ice_property(m, "write.parquet.compression-codec", "zstd");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (fz_ieq(name, known[i].name)) {
            o->compression = known[i].c;
            o->compression_level = (int)ice_property_i64(m, "write.parquet.compression-level", known[i].level);
            return FZ_OK;
        }
    fz_fail(err, FZ_USER, "sink.compression", "table property 'write.parquet.compression-codec' = '%s' is not supported", name);
    return fz_hint(err, "zstd, snappy, gzip, lz4 and uncompressed are");
}

static fz_status options_of(sink_table *t, fz_error *err) {
    const ice_metadata *m = t->meta;
    const char *format = ice_property(m, "write.format.default", "parquet");
    if (!fz_ieq(format, "parquet")) {
        fz_fail(err, FZ_USER, "sink.file-format", "table property 'write.format.default' = '%s': only parquet files are written", format);
        return fz_hint(err, "ALTER the table with another engine, or write to a table of its own");
    }
    FZ_TRY(compression_of(m, &t->options, err));
    /* Java's default is 1 MiB. A page in progress is held raw, one an open file: a quarter of that holds the budget and costs no size that can be measured. */
    t->options.page_size = (size_t)ice_property_i64(m, "write.parquet.page-size-bytes", 256 << 10);
    t->options.page_rows = (uint32_t)ice_property_i64(m, "write.parquet.page-row-limit", 20000);
    t->options.dict_size = (size_t)ice_property_i64(m, "write.parquet.dict-size-bytes", 2 << 20);
    t->options.row_group_size = (size_t)ice_property_i64(m, "write.parquet.row-group-size-bytes", 128 << 20);
    t->target_file_size = ice_property_i64(m, "write.target-file-size-bytes", 512ll << 20);
    return FZ_OK;
}

static void fill_field(sink_table *t, const ice_metrics *metrics, pq_field *f, const ice_field *from, const col_type *type) {
    *f = (pq_field){.name = from->name, .field_id = from->id, .required = from->required, .type = type};
    f->is_uuid = from->type->kind == ICE_UUID;
    f->is_fixed = from->type->kind == ICE_FIXED || f->is_uuid;
    f->metrics_truncate = ice_metrics_mode(metrics, from->id);
    if (!from->type->n_fields) return;
    pq_field *children = FZ_ANEWN(t->arena, pq_field, from->type->n_fields);
    for (uint32_t k = 0; k < from->type->n_fields; k++) fill_field(t, metrics, &children[k], &from->type->fields[k], type->fields[k].type);
    f->children = children;
    f->n_children = from->type->n_fields;
}

fz_status sink_table_new(fio *io, const ice_metadata *m, const char *run_id, uint32_t index, sink_table **out, fz_error *err) {
    FZ_TRY(ice_metadata_writable(m, err));
    sink_table *t = FZ_NEW(sink_table);
    t->arena = fz_arena_new();
    t->io = io;
    t->meta = m;
    t->schema = m->schema;
    t->spec = m->spec;
    t->index = index;
    t->run_id = fz_arena_strdup(t->arena, run_id);
    t->spec_types = ice_spec_types(t->arena, t->spec, t->schema);
    col_schema *cols;
    fz_status rc = ice_schema_to_cols(t->arena, t->schema, &cols, err);
    if (rc == FZ_OK) rc = options_of(t, err);
    if (rc != FZ_OK) {
        sink_table_free(t);
        return rc;
    }
    t->cols = cols;
    ice_metrics metrics = ice_metrics_config(t->arena, m);
    t->fields = FZ_ANEWN(t->arena, pq_field, cols->n);
    for (uint32_t i = 0; i < cols->n; i++) fill_field(t, &metrics, &t->fields[i], &t->schema->fields[i], cols->fields[i].type);
    json_t *j = ice_schema_json(t->schema);
    char *text = json_dumps(j, JSON_COMPACT);
    t->key_values[0] = (fz_pair){.key = "iceberg.schema", .value = fz_arena_strdup(t->arena, text)};
    free(text); /* jansson's own allocation */
    json_decref(j);
    *out = t;
    return FZ_OK;
}
void sink_table_free(sink_table *t) {
    if (!t) return;
    fz_arena_free(t->arena);
    fz_free(t);
}
const col_schema *sink_table_schema(const sink_table *t) { return t->cols; }

/* Is anything required NULL in row i of v? A NULL optional struct hides its children. */
static bool lacks(const pq_field *f, const col_vec *v, uint32_t i) {
    if (col_is_null(v, i)) return f->required;
    if (!f->n_children) return false;
    const col_vec *flat = col_at(v, &i);
    for (uint32_t k = 0; k < f->n_children; k++) {
        if (flat->type->kind == COL_ROW) {
            if (lacks(&f->children[k], flat->child[k], i)) return true;
        } else
            for (uint32_t e = flat->off[i]; e < flat->off[i + 1]; e++)
                if (lacks(&f->children[k], flat->child[k], e)) return true;
    }
    return false;
}
static bool may_lack(const pq_field *f, const col_vec *v) {
    if (f->n_children) return true;
    return f->required && (v->valid || v->type->kind == COL_NULL || (v->idx && v->dict->valid));
}

void sink_check_required(const sink_table *t, col_vec *const *cols, uint32_t n_rows, fz_arena *a, const uint32_t **keep, uint32_t *n_keep, fz_rejects *rejects) {
    uint8_t *bad = NULL;
    uint32_t n_bad = 0;
    for (uint32_t c = 0; c < t->cols->n; c++) {
        const pq_field *f = &t->fields[c];
        if (!may_lack(f, cols[c])) continue;
        for (uint32_t i = 0; i < n_rows; i++) {
            if ((bad && bad[i]) || !lacks(f, cols[c], i)) continue;
            if (!bad) bad = fz_arena_calloc(a, n_rows, 1);
            bad[i] = 1;
            n_bad++;
            FZ_GROW(rejects->v, rejects->n, rejects->cap);
            rejects->v[rejects->n++] = (fz_reject){i, "not-null", fz_arena_printf(a, "column '%s' is NOT NULL, but the value is NULL", f->name), NULL};
        }
    }
    *keep = NULL;
    *n_keep = n_rows;
    if (!n_bad) return;
    uint32_t *sel = fz_arena_alloc(a, (size_t)n_rows * sizeof *sel), n = 0;
    for (uint32_t i = 0; i < n_rows; i++)
        if (!bad[i]) sel[n++] = i;
    *keep = sel;
    *n_keep = n;
}
