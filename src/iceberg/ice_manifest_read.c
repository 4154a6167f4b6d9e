/* Manifests, reading. See iceberg.h; spec: Manifests, Sequence Number Inheritance, First Row ID Inheritance is not for this version.
 *
 * Each field of the writer's schema is known by its Iceberg id, or by its name where the writer left ids out; what is not known is skipped.
 */
#include "iceberg/avro_int.h"

struct ice_manifest_reader {
    fz_arena *arena;          /* schema, header */
    av_file f;
    bool inherit;
    ice_manifest_file file;
    int32_t spec_id;
    uint32_t n_partition;     /* fields of the tuple that is returned */
    const ice_type **types;   /* of it, NULL: as the file says */
    const av_type *partition; /* the writer's record */
    int32_t *slot;            /* writer's field -> field of the tuple, -1: skipped */
    bool prefixed;            /* fixed values of the tuple stand behind their length: see probe_fixed */
};

enum { F_STATUS = 0, F_SNAPSHOT = 1, F_DATA_FILE = 2, F_SEQUENCE = 3, F_FILE_SEQUENCE = 4, F_CONTENT = 134, F_PATH = 100, F_FORMAT = 101, F_PARTITION = 102,
       F_RECORDS = 103, F_SIZE = 104, F_COLUMN_SIZES = 108, F_VALUES = 109, F_NULLS = 110, F_NANS = 137, F_LOWER = 125, F_UPPER = 128, F_KEY = 131,
       F_SPLITS = 132, F_EQUALITY = 135, F_SORT = 140, F_REFERENCED = 143 };

static const struct { const char *name; int32_t id; } entry_names[] = {
    {"status", F_STATUS}, {"snapshot_id", F_SNAPSHOT}, {"sequence_number", F_SEQUENCE}, {"file_sequence_number", F_FILE_SEQUENCE}, {"data_file", F_DATA_FILE},
    {"content", F_CONTENT}, {"file_path", F_PATH}, {"file_format", F_FORMAT}, {"partition", F_PARTITION}, {"record_count", F_RECORDS},
    {"file_size_in_bytes", F_SIZE}, {"column_sizes", F_COLUMN_SIZES}, {"value_counts", F_VALUES}, {"null_value_counts", F_NULLS},
    {"nan_value_counts", F_NANS}, {"lower_bounds", F_LOWER}, {"upper_bounds", F_UPPER}, {"key_metadata", F_KEY}, {"split_offsets", F_SPLITS},
    {"equality_ids", F_EQUALITY}, {"sort_order_id", F_SORT}, {"referenced_data_file", F_REFERENCED}};

static int32_t field_id(const av_field *f) {
    if (f->id >= 0) return f->id;
    for (size_t i = 0; i < sizeof entry_names / sizeof *entry_names; i++)
        if (strcmp(f->name, entry_names[i].name) == 0) return entry_names[i].id;
    return -1;
}

/* ---- opening ---- */

static const av_type *not_null(const av_type *t) {
    if (t->kind != AV_UNION) return t;
    for (uint32_t i = 0; i < t->n; i++)
        if (t->fields[i].type->kind != AV_NULL) return t->fields[i].type;
    return t;
}

static const av_type *member(const av_type *t, int32_t id) {
    for (uint32_t i = 0; t && t->kind == AV_RECORD && i < t->n; i++)
        if (field_id(&t->fields[i]) == id) return not_null(t->fields[i].type);
    return NULL;
}

static int32_t slot_of(const av_field *f, const ice_spec *spec, uint32_t at) {
    for (uint32_t i = 0; i < spec->n_fields; i++)
        if (f->id >= 0 ? f->id == spec->fields[i].field_id : strcmp(f->name, spec->fields[i].name) == 0) return (int32_t)i;
    return f->id < 0 && at < spec->n_fields ? (int32_t)at : -1;
}

static fz_status plan_partition(ice_manifest_reader *r, const ice_spec *spec, const ice_type *const *types, fz_error *err) {
    const av_type *t = member(member(r->f.schema, F_DATA_FILE), F_PARTITION);
    r->n_partition = spec ? spec->n_fields : t ? t->n : 0;
    r->types = FZ_ANEWN(r->arena, const ice_type *, r->n_partition);
    for (uint32_t i = 0; spec && types && i < r->n_partition; i++) r->types[i] = types[i];
    if (!t) return FZ_OK; /* unpartitioned tables of some writers have none */
    if (t->kind != AV_RECORD) return av_mismatch(t, "partition", "record", err);
    r->partition = t;
    r->slot = FZ_ANEWN(r->arena, int32_t, t->n);
    for (uint32_t i = 0; i < t->n; i++) r->slot[i] = spec ? slot_of(&t->fields[i], spec, i) : (int32_t)i;
    return FZ_OK;
}

static bool is_plain_fixed(const av_type *t) {
    t = not_null(t);
    return t->kind == AV_FIXED && !t->logical[0];
}

/* The Java implementation (1.10, 1.11) writes fixed partition values with a length before them, against its own Avro schema, and reads them so.
 * A manifest with such a field that cannot be read as Avro says is taken to be one of those. */
static void probe_fixed(ice_manifest_reader *r) {
    bool any = false, more = true;
    for (uint32_t i = 0; r->partition && i < r->partition->n; i++) any |= is_plain_fixed(r->partition->fields[i].type);
    if (!any) return;
    fz_arena *a = fz_arena_new();
    fz_error err;
    ice_entry e;
    fz_status s = FZ_OK;
    while (s == FZ_OK && more) {
        fz_arena_reset(a);
        s = ice_manifest_reader_next(r, a, &e, &more, &err);
    }
    fz_arena_free(a);
    r->prefixed = s != FZ_OK;
    av_file_rewind(&r->f);
}

fz_status ice_manifest_reader_open(const void *bytes, size_t n, const ice_manifest_file *file, const ice_spec *spec, const ice_type *const *types,
                                   ice_manifest_reader **out, fz_error *err) {
    ice_manifest_reader *r = FZ_NEW(ice_manifest_reader);
    r->arena = fz_arena_new();
    *out = NULL;
    fz_status s = av_file_open(&r->f, r->arena, bytes, n, err);
    if (s == FZ_OK && r->f.schema->kind != AV_RECORD) s = av_mismatch(r->f.schema, "manifest", "record", err);
    if (s == FZ_OK) s = plan_partition(r, spec, types, err);
    if (s != FZ_OK) {
        ice_manifest_reader_close(r);
        return s;
    }
    int64_t id = 0;
    const char *header = fz_pair_get(r->f.meta, r->f.n_meta, "partition-spec-id");
    if (header && fz_parse_i64(fz_sv_of(header), &id) && id >= 0 && id <= INT32_MAX) r->spec_id = (int32_t)id;
    if (spec) r->spec_id = spec->spec_id;
    if (file) {
        r->inherit = true;
        r->file = *file;
        if (!spec) r->spec_id = file->spec_id;
    }
    probe_fixed(r);
    *out = r;
    return FZ_OK;
}

const char *ice_manifest_reader_header(const ice_manifest_reader *r, const char *key) { return fz_pair_get(r->f.meta, r->f.n_meta, key); }

void ice_manifest_reader_close(ice_manifest_reader *r) {
    if (!r) return;
    av_file_close(&r->f);
    fz_arena_free(r->arena);
    fz_free(r);
}

/* ---- members ---- */

static fz_status damaged(fz_error *err, const char *what) { return fz_fail(err, FZ_FATAL, "iceberg.manifest", "manifest: %s", what); }

static fz_status get_long(av_in *in, const av_type *t, int64_t *out, fz_error *err) {
    bool null;
    *out = ICE_NONE;
    return av_get_i64(in, t, out, &null, "a number of a manifest entry", err);
}

static fz_status get_bytes(av_in *in, fz_arena *a, const av_type *t, fz_sv *out, fz_error *err) {
    bool null;
    fz_sv s = {0};
    FZ_TRY(av_get_sv(in, t, &s, &null, "a member of a manifest entry", err));
    *out = null ? (fz_sv){NULL, 0} : (fz_sv){fz_arena_strndup(a, s.n ? s.p : "", s.n), s.n};
    return FZ_OK;
}

/* A growing array in an arena. */
typedef struct vec { void *v; size_t n, cap, width; } vec;
static void *vec_add(fz_arena *a, vec *x) {
    if (x->n == x->cap) {
        size_t want = x->cap ? x->cap * 2 : 8;
        x->v = fz_arena_realloc(a, x->v, x->cap * x->width, want * x->width);
        x->cap = want;
    }
    return (char *)x->v + x->width * x->n++;
}

/* Key and value of a map by column id: a record of two (ids, then names, then places), as the spec wants it. */
static fz_status get_pair(av_in *in, fz_arena *a, const av_type *t, bool bounds, int32_t *id, int64_t *count, fz_sv *bytes, fz_error *err) {
    FZ_TRY(av_branch(in, t, &t, err));
    if (t->kind != AV_RECORD) return av_mismatch(t, "a map of a manifest entry", "an array of records", err);
    int64_t key = -1;
    for (uint32_t i = 0; i < t->n; i++) {
        const av_type *ft = t->fields[i].type;
        if (strcmp(t->fields[i].name, "key") == 0) FZ_TRY(get_long(in, ft, &key, err));
        else if (strcmp(t->fields[i].name, "value") != 0) FZ_TRY(av_skip(in, ft, 0, err));
        else if (bounds) FZ_TRY(get_bytes(in, a, ft, bytes, err));
        else FZ_TRY(get_long(in, ft, count, err));
    }
    if (key < 0 || key > INT32_MAX) return damaged(err, "a map has a key that is no column id");
    *id = (int32_t)key;
    return FZ_OK;
}

static fz_status get_map(av_in *in, fz_arena *a, const av_type *t, bool bounds, vec *out, fz_error *err) {
    int64_t n;
    *out = (vec){.width = bounds ? sizeof(ice_bound) : sizeof(ice_count)};
    FZ_TRY(av_branch(in, t, &t, err));
    if (t->kind == AV_NULL) return FZ_OK;
    if (t->kind != AV_ARRAY) return av_mismatch(t, "a map of a manifest entry", "array", err);
    (void)vec_add(a, out); /* so that an empty map is there, too */
    out->n = 0;
    do {
        FZ_TRY(av_items(in, &n, err));
        for (int64_t i = 0; i < n; i++) {
            int32_t id = 0;
            int64_t count = 0;
            fz_sv bytes = {0};
            FZ_TRY(get_pair(in, a, t->fields[0].type, bounds, &id, &count, &bytes, err));
            if (bounds) *(ice_bound *)vec_add(a, out) = (ice_bound){id, bytes};
            else *(ice_count *)vec_add(a, out) = (ice_count){id, count};
        }
    } while (n);
    return FZ_OK;
}

static fz_status get_counts(av_in *in, fz_arena *a, const av_type *t, ice_counts *out, fz_error *err) {
    vec v = {0};
    FZ_TRY(get_map(in, a, t, false, &v, err));
    *out = (ice_counts){(uint32_t)v.n, v.v};
    return FZ_OK;
}

static fz_status get_bounds(av_in *in, fz_arena *a, const av_type *t, ice_bounds *out, fz_error *err) {
    vec v = {0};
    FZ_TRY(get_map(in, a, t, true, &v, err));
    *out = (ice_bounds){(uint32_t)v.n, v.v};
    return FZ_OK;
}

static fz_status get_longs(av_in *in, fz_arena *a, const av_type *t, vec *out, fz_error *err) {
    int64_t n;
    *out = (vec){.width = sizeof(int64_t)};
    FZ_TRY(av_branch(in, t, &t, err));
    if (t->kind == AV_NULL) return FZ_OK;
    if (t->kind != AV_ARRAY) return av_mismatch(t, "a list of a manifest entry", "array", err);
    (void)vec_add(a, out);
    out->n = 0;
    do {
        FZ_TRY(av_items(in, &n, err));
        for (int64_t i = 0; i < n; i++) {
            if (--in->budget < 0) return damaged(err, "a list has more values than bytes");
            int64_t v = 0;
            FZ_TRY(get_long(in, t->fields[0].type, &v, err));
            *(int64_t *)vec_add(a, out) = v;
        }
    } while (n);
    return FZ_OK;
}

/* ---- partition tuple ---- */

static ice_kind infer(const av_type *t) {
    bool decimal = strcmp(t->logical, "decimal") == 0;
    switch (t->kind) {
    case AV_BOOLEAN: return ICE_BOOLEAN;
    case AV_INT: return strcmp(t->logical, "date") == 0 ? ICE_DATE : ICE_INT;
    case AV_LONG:
        if (strcmp(t->logical, "time-micros") == 0) return ICE_TIME;
        if (strcmp(t->logical, "timestamp-micros") == 0) return t->adjust_to_utc ? ICE_TIMESTAMPTZ : ICE_TIMESTAMP;
        return ICE_LONG;
    case AV_FLOAT: return ICE_FLOAT;
    case AV_DOUBLE: return ICE_DOUBLE;
    case AV_BYTES: return decimal ? ICE_DECIMAL : ICE_BINARY;
    case AV_FIXED: return decimal ? ICE_DECIMAL : strcmp(t->logical, "uuid") == 0 ? ICE_UUID : ICE_FIXED;
    default: return ICE_STRING;
    }
}

static fz_status get_float(av_in *in, const av_type *t, double *out, fz_error *err) {
    const uint8_t *p = NULL;
    float f;
    if (t->kind == AV_DOUBLE) {
        FZ_TRY(av_raw(in, 8, &p, err));
        memcpy(out, p, 8);
        return FZ_OK;
    }
    if (t->kind != AV_FLOAT) return av_mismatch(t, "a partition value", "float or double", err);
    FZ_TRY(av_raw(in, 4, &p, err));
    memcpy(&f, p, 4);
    *out = (double)f;
    return FZ_OK;
}

static fz_status get_text(av_in *in, fz_arena *a, const av_type *t, bool prefixed, const ice_type *want, ice_value *v, fz_error *err) {
    static const av_type bytes = {.kind = AV_BYTES, .logical = ""};
    fz_sv s = {0};
    FZ_TRY(get_bytes(in, a, prefixed && is_plain_fixed(t) ? &bytes : t, &s, err));
    if (t->kind == AV_FIXED && s.n != (size_t)t->size) return damaged(err, "a partition value has another length than its type");
    if (v->kind == ICE_DECIMAL) {
        static const ice_type decimal = {.kind = ICE_DECIMAL};
        return ice_value_decode(&decimal, s, v, err);
    }
    bool fits = v->kind == ICE_UUID ? s.n == 16 : v->kind != ICE_FIXED || !want || s.n == (size_t)want->precision;
    if (!fits) return damaged(err, "a partition value has another length than its type");
    v->s = s;
    return FZ_OK;
}

static fz_status get_value(av_in *in, fz_arena *a, const av_type *t, bool prefixed, const ice_type *want, ice_value *v, fz_error *err) {
    bool null = false, b = false;
    FZ_TRY(av_branch(in, t, &t, err));
    *v = (ice_value){.kind = (uint8_t)(want ? want->kind : t->kind == AV_NULL ? ICE_STRING : infer(t))};
    if (t->kind == AV_NULL) {
        v->is_null = true;
        return FZ_OK;
    }
    if (v->kind == ICE_FLOAT || v->kind == ICE_DOUBLE) return get_float(in, t, &v->d, err);
    if (v->kind == ICE_DECIMAL || ice_has_bytes(v->kind)) return get_text(in, a, t, prefixed, want, v, err);
    if (v->kind == ICE_BOOLEAN) {
        FZ_TRY(av_get_bool(in, t, &b, &null, "a partition value", err));
        v->i = b;
        return FZ_OK;
    }
    FZ_TRY(av_get_i64(in, t, &v->i, &null, "a partition value", err));
    if ((v->kind == ICE_INT || v->kind == ICE_DATE) && (v->i < INT32_MIN || v->i > INT32_MAX)) return damaged(err, "a partition value is out of range");
    return FZ_OK;
}

static fz_status get_partition(ice_manifest_reader *r, fz_arena *a, const av_type *t, ice_tuple *out, fz_error *err) {
    av_in *in = &r->f.in;
    FZ_TRY(av_branch(in, t, &t, err));
    ice_value *v = FZ_ANEWN(a, ice_value, r->n_partition);
    for (uint32_t i = 0; i < r->n_partition; i++) v[i] = (ice_value){.kind = (uint8_t)(r->types[i] ? r->types[i]->kind : ICE_STRING), .is_null = true};
    *out = (ice_tuple){r->n_partition, v};
    if (t->kind == AV_NULL) return FZ_OK;
    if (t != r->partition) return av_mismatch(t, "partition", "the record of its first branch", err);
    for (uint32_t i = 0; i < t->n; i++) {
        int32_t k = r->slot[i];
        if (k < 0) FZ_TRY(av_skip(in, t->fields[i].type, 0, err));
        else FZ_TRY(get_value(in, a, t->fields[i].type, r->prefixed, r->types[k], &v[k], err));
    }
    return FZ_OK;
}

/* ---- entries ---- */

static fz_status get_list(av_in *in, fz_arena *a, const av_type *t, int32_t id, ice_data_file *f, fz_error *err) {
    vec v = {0};
    FZ_TRY(get_longs(in, a, t, &v, err));
    if (!v.v) return FZ_OK;
    if (id == F_SPLITS) {
        f->n_split_offsets = (uint32_t)v.n;
        f->split_offsets = v.v;
        return FZ_OK;
    }
    int32_t *ids = FZ_ANEWN(a, int32_t, v.n + 1);
    for (size_t i = 0; i < v.n; i++) ids[i] = (int32_t)((int64_t *)v.v)[i];
    f->n_equality_ids = (uint32_t)v.n;
    f->equality_ids = ids;
    return FZ_OK;
}

static fz_status file_member(ice_manifest_reader *r, fz_arena *a, const av_field *af, ice_data_file *f, fz_error *err) {
    av_in *in = &r->f.in;
    const av_type *t = af->type;
    int32_t id = field_id(af);
    int64_t v = 0;
    fz_sv s = {0};
    switch (id) {
    case F_CONTENT:
        FZ_TRY(get_long(in, t, &v, err));
        if (v != ICE_NONE && (v < 0 || v > 2)) return damaged(err, "a file has an unknown content");
        f->content = v == ICE_NONE ? ICE_DATA : (ice_content)v;
        return FZ_OK;
    case F_PATH:
    case F_FORMAT:
    case F_REFERENCED:
        FZ_TRY(get_bytes(in, a, t, &s, err));
        *(id == F_PATH ? &f->path : id == F_FORMAT ? &f->format : &f->referenced_data_file) = s.p;
        return FZ_OK;
    case F_PARTITION: return get_partition(r, a, t, &f->partition, err);
    case F_RECORDS: return get_long(in, t, &f->record_count, err);
    case F_SIZE: return get_long(in, t, &f->file_size, err);
    case F_COLUMN_SIZES: return get_counts(in, a, t, &f->column_sizes, err);
    case F_VALUES: return get_counts(in, a, t, &f->value_counts, err);
    case F_NULLS: return get_counts(in, a, t, &f->null_counts, err);
    case F_NANS: return get_counts(in, a, t, &f->nan_counts, err);
    case F_LOWER: return get_bounds(in, a, t, &f->lower, err);
    case F_UPPER: return get_bounds(in, a, t, &f->upper, err);
    case F_KEY: return get_bytes(in, a, t, &f->key_metadata, err);
    case F_SPLITS:
    case F_EQUALITY: return get_list(in, a, t, id, f, err);
    case F_SORT:
        FZ_TRY(get_long(in, t, &v, err));
        f->sort_order_id = v < 0 || v > INT32_MAX ? ICE_NONE : (int32_t)v;
        return FZ_OK;
    default: return av_skip(in, t, 0, err);
    }
}

static fz_status get_file(ice_manifest_reader *r, fz_arena *a, const av_type *t, ice_data_file *f, fz_error *err) {
    FZ_TRY(av_branch(&r->f.in, t, &t, err));
    if (t->kind != AV_RECORD) return av_mismatch(t, "data_file", "record", err);
    *f = (ice_data_file){.spec_id = r->spec_id, .sort_order_id = ICE_NONE, .record_count = ICE_NONE, .file_size = ICE_NONE};
    for (uint32_t i = 0; i < t->n; i++) FZ_TRY(file_member(r, a, &t->fields[i], f, err));
    if (!f->path || !f->format) return damaged(err, "a file has no path or no format");
    if (f->record_count < 0 || f->file_size < 0) return damaged(err, "a file has no record count or no size");
    if (!f->partition.v && r->n_partition) return damaged(err, "a file has no partition");
    return FZ_OK;
}

static void inherit(const ice_manifest_reader *r, ice_entry *e) {
    if (!r->inherit) return;
    int64_t seq = r->file.sequence;
    if (e->snapshot_id == ICE_NONE) e->snapshot_id = r->file.added_snapshot_id;
    if (seq != 0 && e->status != ICE_ADDED) return;
    if (e->sequence == ICE_NONE) e->sequence = seq;
    if (e->file_sequence == ICE_NONE) e->file_sequence = seq;
}

fz_status ice_manifest_reader_next(ice_manifest_reader *r, fz_arena *a, ice_entry *out, bool *more, fz_error *err) {
    FZ_TRY(av_file_next(&r->f, more, err));
    if (!*more) return FZ_OK;
    av_in *in = &r->f.in;
    const av_type *t = r->f.schema;
    ice_entry e = {.snapshot_id = ICE_NONE, .sequence = ICE_NONE, .file_sequence = ICE_NONE};
    int64_t status = ICE_NONE;
    bool has_file = false;
    for (uint32_t i = 0; i < t->n; i++) {
        const av_type *ft = t->fields[i].type;
        switch (field_id(&t->fields[i])) {
        case F_STATUS: FZ_TRY(get_long(in, ft, &status, err)); break;
        case F_SNAPSHOT: FZ_TRY(get_long(in, ft, &e.snapshot_id, err)); break;
        case F_SEQUENCE: FZ_TRY(get_long(in, ft, &e.sequence, err)); break;
        case F_FILE_SEQUENCE: FZ_TRY(get_long(in, ft, &e.file_sequence, err)); break;
        case F_DATA_FILE:
            FZ_TRY(get_file(r, a, ft, &e.file, err));
            has_file = true;
            break;
        default: FZ_TRY(av_skip(in, ft, 0, err));
        }
    }
    if (status < 0 || status > 2 || !has_file) return damaged(err, "an entry has no status or no file");
    e.status = (ice_entry_status)status;
    inherit(r, &e);
    *out = e;
    return FZ_OK;
}

fz_status ice_manifest_decode(fz_arena *a, const void *bytes, size_t n, const ice_manifest_file *file, const ice_spec *spec, const ice_type *const *types,
                              const ice_entry **out, uint32_t *n_out, fz_error *err) {
    ice_manifest_reader *r;
    FZ_TRY(ice_manifest_reader_open(bytes, n, file, spec, types, &r, err));
    vec v = {.width = sizeof(ice_entry)};
    ice_entry e;
    bool more = true;
    fz_status s;
    while ((s = ice_manifest_reader_next(r, a, &e, &more, err)) == FZ_OK && more) *(ice_entry *)vec_add(a, &v) = e;
    ice_manifest_reader_close(r);
    *out = v.v;
    *n_out = (uint32_t)v.n;
    return s;
}
