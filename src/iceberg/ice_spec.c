/* Partition specs and sort orders: building, JSON. See iceberg.h; spec: Partitioning, Sorting, Appendix C. */
#include "iceberg/iceberg_int.h"

/* ---- transforms by name ---- */

static const struct { const char *name; ice_transform_kind kind; } transform_names[] = {
    {"identity", ICE_IDENTITY}, {"year", ICE_YEAR}, {"month", ICE_MONTH}, {"day", ICE_DAY}, {"hour", ICE_HOUR}, {"void", ICE_VOID}};

ice_transform ice_transform_parse(fz_arena *a, const char *text) {
    ice_transform t = {.kind = ICE_UNKNOWN_TRANSFORM, .text = fz_arena_strdup(a, text)};
    for (size_t i = 0; i < sizeof transform_names / sizeof *transform_names; i++)
        if (fz_ieq(text, transform_names[i].name)) t.kind = transform_names[i].kind;
    bool bucket = fz_starts(text, "bucket["), truncate = fz_starts(text, "truncate[");
    size_t n = strlen(text);
    int64_t v;
    if ((bucket || truncate) && text[n - 1] == ']') {
        const char *from = strchr(text, '[') + 1;
        if (fz_parse_i64((fz_sv){from, n - 1 - (size_t)(from - text)}, &v) && v > 0 && v <= INT32_MAX) {
            t.kind = bucket ? ICE_BUCKET : ICE_TRUNCATE;
            t.n = (int32_t)v;
        }
    }
    return t;
}

static bool can_bucket(ice_kind k) { return !ice_is_nested(k) && k != ICE_OTHER && k != ICE_BOOLEAN && k != ICE_FLOAT && k != ICE_DOUBLE; }
static bool can_truncate(ice_kind k) { return k == ICE_INT || k == ICE_LONG || k == ICE_DECIMAL || k == ICE_STRING || k == ICE_BINARY; }
static bool is_timestamp(ice_kind k) { return k == ICE_TIMESTAMP || k == ICE_TIMESTAMPTZ; }

const ice_type *ice_transform_result(const ice_transform *t, const ice_type *source) {
    ice_kind k = source->kind;
    switch (t->kind) {
    case ICE_IDENTITY: return ice_is_nested(k) || k == ICE_OTHER ? NULL : source;
    case ICE_VOID: return source;
    case ICE_BUCKET: return can_bucket(k) ? ice_type_simple(ICE_INT) : NULL;
    case ICE_TRUNCATE: return can_truncate(k) ? source : NULL;
    case ICE_YEAR:
    case ICE_MONTH: return k == ICE_DATE || is_timestamp(k) ? ice_type_simple(ICE_INT) : NULL;
    case ICE_DAY: return k == ICE_DATE || is_timestamp(k) ? ice_type_simple(ICE_DATE) : NULL;
    case ICE_HOUR: return is_timestamp(k) ? ice_type_simple(ICE_INT) : NULL;
    case ICE_UNKNOWN_TRANSFORM: break;
    }
    return ice_type_simple(ICE_STRING);
}

/* ---- building ---- */

static fz_status term_transform(fz_arena *a, const ice_term *t, ice_transform *out, fz_error *err) {
    static const struct { const char *name, *text, *suffix; } forms[] = {
        {"identity", "identity", ""}, {"years", "year", "_year"}, {"year", "year", "_year"}, {"months", "month", "_month"}, {"month", "month", "_month"},
        {"days", "day", "_day"}, {"day", "day", "_day"}, {"date", "day", "_day"}, {"hours", "hour", "_hour"}, {"hour", "hour", "_hour"},
        {"date_hour", "hour", "_hour"}, {"void", "void", "_null"}};
    const char *name = t->transform ? t->transform : "identity";
    if (fz_ieq(name, "bucket") || fz_ieq(name, "truncate")) {
        if (t->n <= 0) return fz_fail(err, FZ_USER, "iceberg.partition", "%s(%s): the number must be positive, it is %d", name, t->column, t->n);
        *out = ice_transform_parse(a, fz_arena_printf(a, "%s[%d]", fz_ieq(name, "bucket") ? "bucket" : "truncate", t->n));
        return FZ_OK;
    }
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (fz_ieq(name, forms[i].name)) {
            *out = ice_transform_parse(a, forms[i].text);
            return FZ_OK;
        }
    fz_fail(err, FZ_USER, "iceberg.partition", "unknown partition transform %s", name);
    return fz_hint(err, "The transforms are identity, bucket(n, c), truncate(w, c), years, months, days, hours and void.");
}

static const char *default_name(fz_arena *a, const ice_transform *t, const char *column) {
    static const char *const suffix[] = {"", "_bucket", "_trunc", "_year", "_month", "_day", "_hour", "_null", ""};
    return fz_arena_printf(a, "%s%s", column, suffix[t->kind]);
}

static bool is_time(ice_transform_kind k) { return k >= ICE_YEAR && k <= ICE_HOUR; }

/* What PartitionSpec.Builder checks: names, and two fields that say the same. */
static fz_status check_field(const ice_schema *s, const ice_spec_field *f, uint32_t i, fz_error *err) {
    const ice_spec_field *n = &f[i];
    if (!n->name[0]) return fz_fail(err, FZ_USER, "iceberg.partition", "a partition field has an empty name");
    for (uint32_t j = 0; j < i; j++) {
        if (strcmp(f[j].name, n->name) == 0) return fz_fail(err, FZ_USER, "iceberg.partition", "partition field name %s is used twice", n->name);
        bool same = strcmp(f[j].transform.text, n->transform.text) == 0 || (is_time(f[j].transform.kind) && is_time(n->transform.kind));
        if (f[j].source_id == n->source_id && same)
            return fz_fail(err, FZ_USER, "iceberg.partition", "partition fields %s and %s are redundant", f[j].name, n->name);
    }
    const ice_field *c = ice_schema_field_named(s, n->name);
    if (c && !(n->transform.kind == ICE_IDENTITY && c->id == n->source_id))
        return fz_fail(err, FZ_USER, "iceberg.partition", "partition field name %s is the name of another column", n->name);
    return FZ_OK;
}

/* Sources are primitive fields of the top level or of structs, never of lists and maps. */
static bool reachable(const ice_field *f, uint32_t n, int32_t id) {
    for (uint32_t i = 0; i < n; i++)
        if (f[i].id == id || (f[i].type->kind == ICE_STRUCT && reachable(f[i].type->fields, f[i].type->n_fields, id))) return true;
    return false;
}

/* Manifests with fixed values are written in two ways that exclude each other (see probe_fixed in ice_manifest_read.c): whichever is taken, some
 * engine cannot open the table any more. */
fz_status ice_check_fixed(const ice_spec_field *f, const ice_type *source, fz_error *err) {
    if (f->transform.kind != ICE_IDENTITY || source->kind != ICE_FIXED) return FZ_OK;
    fz_fail(err, FZ_USER, "iceberg.partition", "partition field %s: fixed-length binary values cannot be partition values that all engines read", f->name);
    return fz_hint(err, "Partition by a bucket of the column, or give it the type BYTES.");
}

fz_status ice_spec_build(fz_arena *a, const ice_schema *s, const ice_term *terms, uint32_t n, ice_spec **out, fz_error *err) {
    ice_spec *spec = FZ_ANEW(a, ice_spec);
    ice_spec_field *f = FZ_ANEWN(a, ice_spec_field, n);
    for (uint32_t i = 0; i < n; i++) {
        const ice_field *c = ice_schema_field_named(s, terms[i].column);
        if (!c) return fz_fail(err, FZ_USER, "iceberg.partition", "partition column %s is not a column of the table", terms[i].column);
        FZ_TRY(term_transform(a, &terms[i], &f[i].transform, err));
        if (!ice_transform_result(&f[i].transform, c->type) || !reachable(s->fields, s->n_fields, c->id)) {
            fz_buf b = {0};
            ice_type_text(&b, c->type);
            fz_status st = fz_fail(err, FZ_USER, "iceberg.partition", "column %s of type %s cannot be partitioned by %s", terms[i].column, fz_buf_cstr(&b),
                                   f[i].transform.text);
            fz_buf_free(&b);
            return st;
        }
        f[i].source_id = c->id;
        f[i].field_id = 1000 + (int32_t)i;
        f[i].name = terms[i].name ? fz_arena_strdup(a, terms[i].name) : default_name(a, &f[i].transform, terms[i].column);
        FZ_TRY(check_field(s, f, i, err));
        FZ_TRY(ice_check_fixed(&f[i], c->type, err));
    }
    spec->n_fields = n;
    spec->fields = f;
    *out = spec;
    return FZ_OK;
}

/* ---- JSON ---- */

/* Several sources ("source-ids", v3): the transform is not known here, whatever its name. */
static fz_status source_parse(ice_src x, fz_arena *a, const json_t *o, int32_t *source_id, ice_transform *t) {
    const char *text;
    FZ_TRY(ice_json_str(x, a, o, "transform", &text));
    *t = ice_transform_parse(a, text);
    const json_t *ids = json_object_get(o, "source-ids");
    if (json_is_array(ids) && json_array_size(ids) > 0) {
        *source_id = (int32_t)json_integer_value(json_array_get(ids, 0));
        if (json_array_size(ids) > 1) t->kind = ICE_UNKNOWN_TRANSFORM;
        return FZ_OK;
    }
    return ice_json_i32(x, o, "source-id", source_id);
}

fz_status ice_spec_parse(fz_arena *a, const json_t *j, ice_spec **out, fz_error *err) {
    ice_spec *s = FZ_ANEW(a, ice_spec);
    ice_src x = {"partition spec", err};
    const json_t *arr = j;
    if (!json_is_array(j)) {
        if (!json_is_object(j)) return fz_fail(err, FZ_FATAL, "iceberg.metadata", "partition spec: not an object");
        FZ_TRY(ice_json_i32(x, j, "spec-id", &s->spec_id));
        FZ_TRY(ice_json_array(x, j, "fields", &arr));
    }
    s->n_fields = (uint32_t)json_array_size(arr);
    if (s->n_fields > FZ_MAX_COLUMNS) return fz_fail(err, FZ_FATAL, "iceberg.metadata", "partition spec: %u fields", s->n_fields);
    ice_spec_field *f = FZ_ANEWN(a, ice_spec_field, s->n_fields);
    for (uint32_t i = 0; i < s->n_fields; i++) {
        const json_t *o = json_array_get(arr, i);
        FZ_TRY(source_parse(x, a, o, &f[i].source_id, &f[i].transform));
        FZ_TRY(ice_json_str(x, a, o, "name", &f[i].name));
        FZ_TRY(ice_json_opt_i32(x, o, "field-id", 1000 + (int32_t)i, &f[i].field_id));
    }
    s->fields = f;
    *out = s;
    return FZ_OK;
}

json_t *ice_spec_json(const ice_spec *s) {
    json_t *o = json_object(), *arr = json_array();
    ice_json_set(o, "spec-id", json_integer(s->spec_id));
    for (uint32_t i = 0; i < s->n_fields; i++) {
        json_t *f = json_object();
        ice_json_set(f, "name", ice_json_string(s->fields[i].name));
        ice_json_set(f, "transform", ice_json_string(s->fields[i].transform.text));
        ice_json_set(f, "source-id", json_integer(s->fields[i].source_id));
        ice_json_set(f, "field-id", json_integer(s->fields[i].field_id));
        ice_json_add(arr, f);
    }
    ice_json_set(o, "fields", arr);
    return o;
}

int32_t ice_spec_highest_field_id(const ice_spec *s) {
    int32_t most = 999;
    for (uint32_t i = 0; i < s->n_fields; i++)
        if (s->fields[i].field_id > most) most = s->fields[i].field_id;
    return most;
}

const ice_type **ice_spec_types(fz_arena *a, const ice_spec *spec, const ice_schema *s) {
    const ice_type **t = FZ_ANEWN(a, const ice_type *, spec->n_fields);
    for (uint32_t i = 0; i < spec->n_fields; i++) {
        const ice_field *f = ice_schema_field(s, spec->fields[i].source_id);
        if (f) t[i] = ice_transform_result(&spec->fields[i].transform, f->type);
    }
    return t;
}

fz_status ice_sort_order_parse(fz_arena *a, const json_t *j, ice_sort_order **out, fz_error *err) {
    ice_sort_order *s = FZ_ANEW(a, ice_sort_order);
    ice_src x = {"sort order", err};
    const json_t *arr;
    if (!json_is_object(j)) return fz_fail(err, FZ_FATAL, "iceberg.metadata", "sort order: not an object");
    FZ_TRY(ice_json_i32(x, j, "order-id", &s->order_id));
    FZ_TRY(ice_json_array(x, j, "fields", &arr));
    s->n_fields = (uint32_t)json_array_size(arr);
    if (s->n_fields > FZ_MAX_COLUMNS) return fz_fail(err, FZ_FATAL, "iceberg.metadata", "sort order: %u fields", s->n_fields);
    ice_sort_field *f = FZ_ANEWN(a, ice_sort_field, s->n_fields);
    for (uint32_t i = 0; i < s->n_fields; i++) {
        const json_t *o = json_array_get(arr, i);
        const char *direction, *nulls;
        FZ_TRY(source_parse(x, a, o, &f[i].source_id, &f[i].transform));
        FZ_TRY(ice_json_str(x, a, o, "direction", &direction));
        FZ_TRY(ice_json_str(x, a, o, "null-order", &nulls));
        f[i].descending = fz_ieq(direction, "desc");
        f[i].nulls_last = fz_ieq(nulls, "nulls-last");
    }
    s->fields = f;
    *out = s;
    return FZ_OK;
}

json_t *ice_sort_order_json(const ice_sort_order *s) {
    json_t *o = json_object(), *arr = json_array();
    ice_json_set(o, "order-id", json_integer(s ? s->order_id : 0));
    for (uint32_t i = 0; s && i < s->n_fields; i++) {
        json_t *f = json_object();
        ice_json_set(f, "transform", ice_json_string(s->fields[i].transform.text));
        ice_json_set(f, "source-id", json_integer(s->fields[i].source_id));
        ice_json_set(f, "direction", json_string(s->fields[i].descending ? "desc" : "asc"));
        ice_json_set(f, "null-order", json_string(s->fields[i].nulls_last ? "nulls-last" : "nulls-first"));
        ice_json_add(arr, f);
    }
    ice_json_set(o, "fields", arr);
    return o;
}
