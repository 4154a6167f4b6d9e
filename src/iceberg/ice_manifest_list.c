/* Manifest lists. See iceberg.h; spec: Manifest Lists. Read whoever wrote them: fields by id, then by name. */
#include "iceberg/avro_int.h"

#define REQUIRED(name, type, doc, id) "{\"name\":\"" name "\",\"type\":\"" type "\",\"doc\":\"" doc "\",\"field-id\":" #id "},"
#define NULLABLE(name, type, doc, id) "{\"name\":\"" name "\",\"type\":[\"null\",\"" type "\"],\"doc\":\"" doc "\",\"default\":null,\"field-id\":" #id "}"

static const char list_schema[] =
    "{\"type\":\"record\",\"name\":\"manifest_file\",\"fields\":["
    REQUIRED("manifest_path", "string", "Location URI with FS scheme", 500)
    REQUIRED("manifest_length", "long", "Total file size in bytes", 501)
    REQUIRED("partition_spec_id", "int", "Spec ID used to write", 502)
    REQUIRED("content", "int", "Contents of the manifest: 0=data, 1=deletes", 517)
    REQUIRED("sequence_number", "long", "Sequence number when the manifest was added", 515)
    REQUIRED("min_sequence_number", "long", "Lowest sequence number in the manifest", 516)
    REQUIRED("added_snapshot_id", "long", "Snapshot ID that added the manifest", 503)
    REQUIRED("added_files_count", "int", "Added entry count", 504)
    REQUIRED("existing_files_count", "int", "Existing entry count", 505)
    REQUIRED("deleted_files_count", "int", "Deleted entry count", 506)
    REQUIRED("added_rows_count", "long", "Added rows count", 512)
    REQUIRED("existing_rows_count", "long", "Existing rows count", 513)
    REQUIRED("deleted_rows_count", "long", "Deleted rows count", 514)
    "{\"name\":\"partitions\",\"type\":[\"null\",{\"type\":\"array\",\"items\":{\"type\":\"record\",\"name\":\"r508\",\"fields\":["
    "{\"name\":\"contains_null\",\"type\":\"boolean\",\"doc\":\"True if any file has a null partition value\",\"field-id\":509},"
    NULLABLE("contains_nan", "boolean", "True if any file has a nan partition value", 518) ","
    NULLABLE("lower_bound", "bytes", "Partition lower bound for all files", 510) ","
    NULLABLE("upper_bound", "bytes", "Partition upper bound for all files", 511)
    "]},\"element-id\":508}],\"doc\":\"Summary for each partition\",\"default\":null,\"field-id\":507},"
    NULLABLE("key_metadata", "bytes", "Encryption key metadata blob", 519)
    "]}";

static void put_optional(fz_buf *b, fz_sv s) {
    av_put_long(b, s.p ? 1 : 0);
    if (s.p) av_put_bytes(b, s.p, s.n);
}

static void put_summaries(fz_buf *b, const ice_manifest_file *m) {
    av_put_long(b, m->partitions ? 1 : 0);
    if (!m->partitions) return;
    if (m->n_partitions) av_put_long(b, m->n_partitions);
    for (uint32_t i = 0; i < m->n_partitions; i++) {
        const ice_summary *s = &m->partitions[i];
        fz_buf_putc(b, s->contains_null ? 1 : 0);
        av_put_long(b, s->contains_nan == ICE_NONE ? 0 : 1);
        if (s->contains_nan != ICE_NONE) fz_buf_putc(b, s->contains_nan ? 1 : 0);
        put_optional(b, s->lower);
        put_optional(b, s->upper);
    }
    av_put_long(b, 0);
}

static fz_status put_manifest(av_out *o, const ice_manifest_file *m, int64_t sequence, fz_error *err) {
    fz_buf *b = &o->block;
    const int64_t counts[] = {m->added_files, m->existing_files, m->deleted_files, m->added_rows, m->existing_rows, m->deleted_rows};
    for (int i = 0; i < 6; i++)
        if (counts[i] < 0) return fz_fail(err, FZ_FATAL, "iceberg.manifest", "the counts of manifest %s are not known", m->path);
    av_put_str(b, m->path);
    av_put_long(b, m->length);
    av_put_long(b, m->spec_id);
    av_put_long(b, m->content);
    av_put_long(b, m->sequence == ICE_NONE ? sequence : m->sequence);
    av_put_long(b, m->min_sequence == ICE_NONE ? sequence : m->min_sequence);
    av_put_long(b, m->added_snapshot_id);
    for (int i = 0; i < 6; i++) av_put_long(b, counts[i]);
    put_summaries(b, m);
    put_optional(b, m->key_metadata);
    return av_row(o, err);
}

fz_status ice_manifest_list_encode(const ice_manifest_list *l, int64_t snapshot_id, int64_t parent_id, int64_t sequence, ice_avro_codec codec, fz_buf *out,
                                   fz_error *err) {
    char id[24], parent[24] = "null", seq[24];
    snprintf(id, sizeof id, "%lld", (long long)snapshot_id);
    snprintf(seq, sizeof seq, "%lld", (long long)sequence);
    if (parent_id != ICE_NONE) snprintf(parent, sizeof parent, "%lld", (long long)parent_id);
    const fz_pair meta[] = {{.key = "avro.schema", .value = list_schema}, {.key = "snapshot-id", .value = id}, {.key = "format-version", .value = "2"},
                            {.key = "sequence-number", .value = seq}, {.key = "parent-snapshot-id", .value = parent}};
    av_out o;
    av_open(&o, meta, sizeof meta / sizeof *meta, codec, (uint64_t)snapshot_id);
    fz_status s = FZ_OK;
    for (uint32_t i = 0; i < l->n && s == FZ_OK; i++) s = put_manifest(&o, &l->v[i], sequence, err);
    if (s == FZ_OK) s = av_finish(&o, err);
    if (s == FZ_OK) fz_buf_append(out, o.file.data, o.file.len);
    av_close(&o);
    return s;
}

/* ---- reading ---- */

static const struct { const char *name; int32_t id; } list_names[] = {
    {"manifest_path", 500}, {"manifest_length", 501}, {"partition_spec_id", 502}, {"content", 517}, {"sequence_number", 515}, {"min_sequence_number", 516},
    {"added_snapshot_id", 503}, {"added_files_count", 504}, {"added_data_files_count", 504}, {"existing_files_count", 505}, {"existing_data_files_count", 505},
    {"deleted_files_count", 506}, {"deleted_data_files_count", 506}, {"added_rows_count", 512}, {"existing_rows_count", 513}, {"deleted_rows_count", 514},
    {"partitions", 507}, {"key_metadata", 519}, {"contains_null", 509}, {"contains_nan", 518}, {"lower_bound", 510}, {"upper_bound", 511}};

static int32_t field_id(const av_field *f) {
    if (f->id >= 0) return f->id;
    for (size_t i = 0; i < sizeof list_names / sizeof *list_names; i++)
        if (strcmp(f->name, list_names[i].name) == 0) return list_names[i].id;
    return -1;
}

static fz_status read_optional(av_in *in, fz_arena *a, const av_type *t, fz_sv *out, fz_error *err) {
    bool null;
    fz_sv s;
    FZ_TRY(av_get_sv(in, t, &s, &null, "a member of a manifest list", err));
    *out = null ? (fz_sv){NULL, 0} : (fz_sv){fz_arena_strndup(a, s.n ? s.p : "", s.n), s.n};
    return FZ_OK;
}

static fz_status read_summary(av_in *in, fz_arena *a, const av_type *t, ice_summary *s, fz_error *err) {
    bool null, b = false;
    FZ_TRY(av_branch(in, t, &t, err));
    if (t->kind != AV_RECORD) return av_mismatch(t, "partition summary", "record", err);
    *s = (ice_summary){.contains_nan = ICE_NONE};
    for (uint32_t i = 0; i < t->n; i++) {
        const av_type *ft = t->fields[i].type;
        switch (field_id(&t->fields[i])) {
        case 509:
            FZ_TRY(av_get_bool(in, ft, &b, &null, "contains_null", err));
            s->contains_null = !null && b;
            break;
        case 518:
            FZ_TRY(av_get_bool(in, ft, &b, &null, "contains_nan", err));
            s->contains_nan = null ? ICE_NONE : b;
            break;
        case 510: FZ_TRY(read_optional(in, a, ft, &s->lower, err)); break;
        case 511: FZ_TRY(read_optional(in, a, ft, &s->upper, err)); break;
        default: FZ_TRY(av_skip(in, ft, 0, err));
        }
    }
    return FZ_OK;
}

static fz_status read_summaries(av_in *in, fz_arena *a, const av_type *t, ice_manifest_file *m, fz_error *err) {
    int64_t n;
    FZ_TRY(av_branch(in, t, &t, err));
    if (t->kind == AV_NULL) return FZ_OK;
    if (t->kind != AV_ARRAY) return av_mismatch(t, "partitions", "array", err);
    ice_summary *v = FZ_ANEWN(a, ice_summary, 1);
    size_t cap = 1;
    do {
        FZ_TRY(av_items(in, &n, err));
        for (int64_t i = 0; i < n; i++) {
            if (m->n_partitions >= FZ_MAX_COLUMNS) return fz_fail(err, FZ_FATAL, "iceberg.manifest", "a manifest has too many partition summaries");
            if (m->n_partitions == cap) {
                v = fz_arena_realloc(a, v, cap * sizeof *v, 2 * cap * sizeof *v);
                cap *= 2;
            }
            FZ_TRY(read_summary(in, a, t->fields[0].type, &v[m->n_partitions++], err));
        }
    } while (n);
    m->partitions = v;
    return FZ_OK;
}

static fz_status read_number(av_in *in, const av_type *t, bool narrow, int64_t *out, fz_error *err) {
    bool null;
    int64_t v = ICE_NONE;
    FZ_TRY(av_get_i64(in, t, &v, &null, "a number of a manifest list", err));
    if (narrow && (v < INT32_MIN || v > INT32_MAX)) return fz_fail(err, FZ_FATAL, "iceberg.manifest", "a number of a manifest list is out of range");
    *out = null ? ICE_NONE : v;
    return FZ_OK;
}

static fz_status read_manifest(av_in *in, fz_arena *a, const av_type *t, ice_manifest_file *m, fz_error *err) {
    enum { LENGTH, SPEC, CONTENT, SEQ, MIN_SEQ, SNAPSHOT, ADDED, EXISTING, DELETED, ADDED_ROWS, EXISTING_ROWS, DELETED_ROWS, N };
    static const int32_t ids[N] = {501, 502, 517, 515, 516, 503, 504, 505, 506, 512, 513, 514};
    static const bool narrow[N] = {[SPEC] = true, [CONTENT] = true, [ADDED] = true, [EXISTING] = true, [DELETED] = true};
    /* v1 lists have neither content nor sequence numbers: data, 0 */
    int64_t v[N] = {0, 0, 0, 0, 0, ICE_NONE, ICE_NONE, ICE_NONE, ICE_NONE, ICE_NONE, ICE_NONE, ICE_NONE};
    fz_sv path = {0};
    if (t->kind != AV_RECORD) return av_mismatch(t, "manifest list", "record", err);
    for (uint32_t i = 0; i < t->n; i++) {
        const av_type *ft = t->fields[i].type;
        int32_t id = field_id(&t->fields[i]);
        int k = 0;
        while (k < N && ids[k] != id) k++;
        if (k < N) FZ_TRY(read_number(in, ft, narrow[k], &v[k], err));
        else if (id == 500) FZ_TRY(read_optional(in, a, ft, &path, err));
        else if (id == 507) FZ_TRY(read_summaries(in, a, ft, m, err));
        else if (id == 519) FZ_TRY(read_optional(in, a, ft, &m->key_metadata, err));
        else FZ_TRY(av_skip(in, ft, 0, err));
    }
    if (!path.p) return fz_fail(err, FZ_FATAL, "iceberg.manifest", "a manifest of the list has no path");
    m->path = path.p;
    m->length = v[LENGTH];
    m->spec_id = (int32_t)v[SPEC];
    m->content = (int32_t)v[CONTENT];
    m->sequence = v[SEQ] == ICE_NONE ? 0 : v[SEQ];
    m->min_sequence = v[MIN_SEQ] == ICE_NONE ? 0 : v[MIN_SEQ];
    m->added_snapshot_id = v[SNAPSHOT];
    m->added_files = (int32_t)v[ADDED];
    m->existing_files = (int32_t)v[EXISTING];
    m->deleted_files = (int32_t)v[DELETED];
    m->added_rows = v[ADDED_ROWS];
    m->existing_rows = v[EXISTING_ROWS];
    m->deleted_rows = v[DELETED_ROWS];
    return FZ_OK;
}

fz_status ice_manifest_list_decode(fz_arena *a, const void *bytes, size_t n, ice_manifest_list *out, fz_error *err) {
    av_file f;
    ice_manifest_file *v = NULL;
    uint32_t len = 0, cap = 0;
    bool more = true;
    fz_status s = av_file_open(&f, a, bytes, n, err);
    while (s == FZ_OK && (s = av_file_next(&f, &more, err)) == FZ_OK && more) {
        if (len == cap) {
            uint32_t want = cap ? cap * 2 : 16;
            v = fz_arena_realloc(a, v, cap * sizeof *v, want * sizeof *v);
            cap = want;
        }
        v[len] = (ice_manifest_file){0};
        s = read_manifest(&f.in, a, f.schema, &v[len], err);
        len++;
    }
    av_file_close(&f);
    *out = (ice_manifest_list){len, v};
    return s;
}
