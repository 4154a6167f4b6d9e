/* Schemas: from and to JSON, from and to columns, look-ups. See iceberg.h; spec: Schemas, Appendix C. */
#include "iceberg/iceberg_int.h"

/* ---- JSON ---- */

static fz_status type_parse(fz_arena *a, const json_t *j, int depth, const ice_type **out, fz_error *err);

static fz_status bad_type(const char *text, fz_error *err) {
    return fz_fail(err, FZ_FATAL, "iceberg.metadata", "schema: \"%s\" is not a valid type", text);
}

/* "decimal(10, 2)", "fixed[4]": the numbers between the given brackets; false when the text has another form. */
static bool type_args(const char *s, const char *name, char close, int32_t *args, int n) {
    size_t len = strlen(name);
    if (strncmp(s, name, len) != 0) return false;
    fz_sv rest = {s + len, strlen(s) - len};
    rest = fz_sv_trim(rest);
    if (!rest.n || rest.p[rest.n - 1] != close) return false;
    rest.n--;
    for (int i = 0; i < n; i++) {
        const char *comma = i + 1 < n ? memchr(rest.p, ',', rest.n) : rest.p + rest.n;
        int64_t v;
        if (!comma || !fz_parse_i64(fz_sv_trim((fz_sv){rest.p, (size_t)(comma - rest.p)}), &v) || v < 0 || v > INT32_MAX) return false;
        args[i] = (int32_t)v;
        if (i + 1 < n) rest = (fz_sv){comma + 1, (size_t)(rest.p + rest.n - comma - 1)};
    }
    return true;
}

static fz_status primitive_parse(fz_arena *a, const json_t *j, const ice_type **out, fz_error *err) {
    const char *s = json_string_value(j);
    static const struct { const char *name; ice_kind kind; } names[] = {
        {"boolean", ICE_BOOLEAN}, {"int", ICE_INT}, {"long", ICE_LONG}, {"float", ICE_FLOAT}, {"double", ICE_DOUBLE}, {"date", ICE_DATE},
        {"time", ICE_TIME}, {"timestamp", ICE_TIMESTAMP}, {"timestamptz", ICE_TIMESTAMPTZ}, {"string", ICE_STRING}, {"uuid", ICE_UUID},
        {"binary", ICE_BINARY}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(s, names[i].name) == 0) {
            *out = ice_type_simple(names[i].kind);
            return FZ_OK;
        }
    int32_t arg[2];
    if (fz_starts(s, "decimal")) {
        if (!type_args(s, "decimal(", ')', arg, 2) || arg[0] < 1 || arg[0] > 38 || arg[1] > arg[0]) return bad_type(s, err);
        *out = ice_type_sized(a, ICE_DECIMAL, arg[0], arg[1]);
        return FZ_OK;
    }
    if (fz_starts(s, "fixed")) {
        if (!type_args(s, "fixed[", ']', arg, 1)) return bad_type(s, err);
        *out = ice_type_sized(a, ICE_FIXED, arg[0], 0);
        return FZ_OK;
    }
    ice_type *t = FZ_ANEW(a, ice_type);
    t->kind = ICE_OTHER;
    t->text = ice_json_text(a, j);
    *out = t;
    return FZ_OK;
}

static fz_status field_parse(fz_arena *a, const json_t *j, int depth, ice_field *f, fz_error *err) {
    ice_src x = {"schema field", err};
    FZ_TRY(ice_json_i32(x, j, "id", &f->id));
    FZ_TRY(ice_json_str(x, a, j, "name", &f->name));
    FZ_TRY(ice_json_bool(x, j, "required", false, &f->required));
    FZ_TRY(ice_json_opt_str(x, a, j, "doc", &f->doc));
    const json_t *d = json_object_get(j, "initial-default");
    if (d) f->initial_default = ice_json_text(a, d);
    d = json_object_get(j, "write-default");
    if (d) f->write_default = ice_json_text(a, d);
    return type_parse(a, json_object_get(j, "type"), depth + 1, &f->type, err);
}

static fz_status fields_parse(fz_arena *a, const json_t *j, int depth, const ice_field **out, uint32_t *n, fz_error *err) {
    const json_t *arr;
    FZ_TRY(ice_json_array((ice_src){"struct type", err}, j, "fields", &arr));
    *n = (uint32_t)json_array_size(arr);
    if (*n > FZ_MAX_COLUMNS) return fz_fail(err, FZ_FATAL, "iceberg.metadata", "schema: %u fields in one struct (at most %d)", *n, FZ_MAX_COLUMNS);
    ice_field *f = FZ_ANEWN(a, ice_field, *n);
    for (uint32_t i = 0; i < *n; i++) FZ_TRY(field_parse(a, json_array_get(arr, i), depth, &f[i], err));
    *out = f;
    return FZ_OK;
}

static fz_status collection_parse(fz_arena *a, const json_t *j, bool is_map, int depth, const ice_type **out, fz_error *err) {
    ice_src x = {is_map ? "map type" : "list type", err};
    int32_t id, key_id = 0;
    bool required;
    const ice_type *value, *key = NULL;
    FZ_TRY(ice_json_i32(x, j, is_map ? "value-id" : "element-id", &id));
    FZ_TRY(ice_json_bool(x, j, is_map ? "value-required" : "element-required", false, &required));
    FZ_TRY(type_parse(a, json_object_get(j, is_map ? "value" : "element"), depth + 1, &value, err));
    if (is_map) {
        FZ_TRY(ice_json_i32(x, j, "key-id", &key_id));
        FZ_TRY(type_parse(a, json_object_get(j, "key"), depth + 1, &key, err));
    }
    *out = is_map ? ice_type_map(a, key_id, key, id, required, value) : ice_type_list(a, id, required, value);
    return FZ_OK;
}

static fz_status type_parse(fz_arena *a, const json_t *j, int depth, const ice_type **out, fz_error *err) {
    if (depth > ICE_MAX_TYPE_DEPTH) return fz_fail(err, FZ_FATAL, "iceberg.metadata", "schema: types are nested deeper than %d", ICE_MAX_TYPE_DEPTH);
    if (json_is_string(j)) return primitive_parse(a, j, out, err);
    if (!json_is_object(j)) return fz_fail(err, FZ_FATAL, "iceberg.metadata", "schema: a type is neither text nor an object");
    const char *kind = json_string_value(json_object_get(j, "type"));
    if (kind && strcmp(kind, "list") == 0) return collection_parse(a, j, false, depth, out, err);
    if (kind && strcmp(kind, "map") == 0) return collection_parse(a, j, true, depth, out, err);
    ice_type *t = FZ_ANEW(a, ice_type);
    *out = t;
    if (kind && strcmp(kind, "struct") == 0) {
        t->kind = ICE_STRUCT;
        return fields_parse(a, j, depth, &t->fields, &t->n_fields, err);
    }
    t->kind = ICE_OTHER;
    t->text = ice_json_text(a, j);
    return FZ_OK;
}

fz_status ice_schema_parse(fz_arena *a, const json_t *j, ice_schema **out, fz_error *err) {
    ice_schema *s = FZ_ANEW(a, ice_schema);
    ice_src x = {"schema", err};
    if (!json_is_object(j)) return fz_fail(err, FZ_FATAL, "iceberg.metadata", "schema: not an object");
    FZ_TRY(ice_json_opt_i32(x, j, "schema-id", 0, &s->schema_id));
    FZ_TRY(fields_parse(a, j, 0, &s->fields, &s->n_fields, err));
    const json_t *ids;
    FZ_TRY(ice_json_opt_array(x, j, "identifier-field-ids", &ids));
    s->n_identifier = ids ? (uint32_t)json_array_size(ids) : 0;
    int32_t *v = FZ_ANEWN(a, int32_t, s->n_identifier);
    for (uint32_t i = 0; i < s->n_identifier; i++) {
        const json_t *id = json_array_get(ids, i);
        if (!json_is_integer(id)) return fz_fail(err, FZ_FATAL, "iceberg.metadata", "schema: an identifier field id is not an integer");
        v[i] = (int32_t)json_integer_value(id);
    }
    s->identifier = v;
    *out = s;
    return FZ_OK;
}

static json_t *type_json(const ice_type *t);

static json_t *fields_json(const ice_field *f, uint32_t n) {
    json_t *arr = json_array();
    for (uint32_t i = 0; i < n; i++) {
        json_t *o = json_object();
        ice_json_set(o, "id", json_integer(f[i].id));
        ice_json_set(o, "name", ice_json_string(f[i].name));
        ice_json_set(o, "required", json_boolean(f[i].required));
        ice_json_set(o, "type", type_json(f[i].type));
        if (f[i].doc) ice_json_set(o, "doc", ice_json_string(f[i].doc));
        if (f[i].initial_default) ice_json_set(o, "initial-default", json_loads(f[i].initial_default, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL));
        if (f[i].write_default) ice_json_set(o, "write-default", json_loads(f[i].write_default, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL));
        ice_json_add(arr, o);
    }
    return arr;
}

static json_t *type_json(const ice_type *t) {
    if (t->kind == ICE_OTHER) return json_loads(t->text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    if (!ice_is_nested(t->kind)) {
        fz_buf b = {0};
        ice_type_text(&b, t);
        json_t *s = ice_json_string(fz_buf_cstr(&b));
        fz_buf_free(&b);
        return s;
    }
    json_t *o = json_object();
    ice_json_set(o, "type", json_string(t->kind == ICE_STRUCT ? "struct" : t->kind == ICE_LIST ? "list" : "map"));
    if (t->kind == ICE_STRUCT) {
        ice_json_set(o, "fields", fields_json(t->fields, t->n_fields));
        return o;
    }
    const ice_field *v = &t->fields[t->n_fields - 1];
    if (t->kind == ICE_MAP) {
        ice_json_set(o, "key-id", json_integer(t->fields[0].id));
        ice_json_set(o, "key", type_json(t->fields[0].type));
    }
    ice_json_set(o, t->kind == ICE_MAP ? "value-id" : "element-id", json_integer(v->id));
    ice_json_set(o, t->kind == ICE_MAP ? "value" : "element", type_json(v->type));
    ice_json_set(o, t->kind == ICE_MAP ? "value-required" : "element-required", json_boolean(v->required));
    return o;
}

json_t *ice_schema_json(const ice_schema *s) {
    json_t *o = json_object();
    ice_json_set(o, "type", json_string("struct"));
    ice_json_set(o, "schema-id", json_integer(s->schema_id));
    if (s->n_identifier) {
        json_t *ids = json_array();
        for (uint32_t i = 0; i < s->n_identifier; i++) ice_json_add(ids, json_integer(s->identifier[i]));
        ice_json_set(o, "identifier-field-ids", ids);
    }
    ice_json_set(o, "fields", fields_json(s->fields, s->n_fields));
    return o;
}

/* ---- columns ---- */

static fz_status identifier_field(ice_field *fields, uint32_t n, const char *name, int32_t *id, fz_error *err) {
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(fields[i].name, name) != 0) continue;
        ice_kind k = fields[i].type->kind;
        if (ice_is_nested(k) || k == ICE_FLOAT || k == ICE_DOUBLE) {
            fz_buf b = {0};
            ice_type_text(&b, fields[i].type);
            fz_status s = fz_fail(err, FZ_USER, "iceberg.type", "column %s of type %s cannot be part of a primary key", name, fz_buf_cstr(&b));
            fz_buf_free(&b);
            return s;
        }
        fields[i].required = true;
        *id = fields[i].id;
        return FZ_OK;
    }
    return fz_fail(err, FZ_USER, "iceberg.schema", "primary key column %s is not a column of the table", name);
}

fz_status ice_schema_from_cols(fz_arena *a, const col_schema *cols, const char *const *pk, uint32_t n_pk, ice_schema **out, fz_error *err) {
    ice_schema *s = FZ_ANEW(a, ice_schema);
    ice_field *f = FZ_ANEWN(a, ice_field, cols->n);
    int32_t next_id = (int32_t)cols->n + 1;
    for (uint32_t i = 0; i < cols->n; i++) {
        const col_field *c = &cols->fields[i];
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(f[j].name, c->name) == 0) return fz_fail(err, FZ_USER, "iceberg.schema", "column %s stands twice in the schema", c->name);
        f[i].id = (int32_t)i + 1;
        f[i].name = fz_arena_strdup(a, c->name);
        f[i].required = !c->type->nullable;
        f[i].doc = c->comment ? fz_arena_strdup(a, c->comment) : NULL;
        fz_status st = ice_type_from_col(a, c->type, &next_id, &f[i].type, err);
        if (st != FZ_OK) return fz_context(err, "column %s", c->name);
    }
    int32_t *ids = FZ_ANEWN(a, int32_t, n_pk);
    for (uint32_t i = 0; i < n_pk; i++) FZ_TRY(identifier_field(f, cols->n, pk[i], &ids[i], err));
    s->n_fields = cols->n;
    s->fields = f;
    s->n_identifier = n_pk;
    s->identifier = ids;
    *out = s;
    return FZ_OK;
}

fz_status ice_schema_to_cols(fz_arena *a, const ice_schema *s, col_schema **out, fz_error *err) {
    col_field *f = FZ_ANEWN(a, col_field, s->n_fields);
    for (uint32_t i = 0; i < s->n_fields; i++) {
        f[i].name = fz_arena_strdup(a, s->fields[i].name);
        f[i].comment = s->fields[i].doc ? fz_arena_strdup(a, s->fields[i].doc) : NULL;
        fz_status st = ice_type_to_col(a, s->fields[i].type, !s->fields[i].required, &f[i].type, err);
        if (st != FZ_OK) return fz_context(err, "column %s", s->fields[i].name);
    }
    col_schema *c = FZ_ANEW(a, col_schema);
    c->n = s->n_fields;
    c->fields = f;
    *out = c;
    return FZ_OK;
}

/* ---- look-ups ---- */

static int32_t highest(const ice_field *f, uint32_t n) {
    int32_t most = 0;
    for (uint32_t i = 0; i < n; i++) {
        int32_t below = highest(f[i].type->fields, f[i].type->n_fields);
        if (f[i].id > most) most = f[i].id;
        if (below > most) most = below;
    }
    return most;
}

int32_t ice_schema_highest_id(const ice_schema *s) { return highest(s->fields, s->n_fields); }

static const ice_field *by_id(const ice_field *f, uint32_t n, int32_t id) {
    for (uint32_t i = 0; i < n; i++) {
        if (f[i].id == id) return &f[i];
        const ice_field *r = by_id(f[i].type->fields, f[i].type->n_fields, id);
        if (r) return r;
    }
    return NULL;
}

const ice_field *ice_schema_field(const ice_schema *s, int32_t id) { return by_id(s->fields, s->n_fields, id); }

/* A name may itself hold dots: each field whose name is the text, or its beginning up to a dot, is a candidate. */
static const ice_field *by_name(const ice_field *f, uint32_t n, const char *name) {
    for (uint32_t i = 0; i < n; i++) {
        size_t len = strlen(f[i].name);
        if (strncmp(f[i].name, name, len) != 0) continue;
        if (!name[len]) return &f[i];
        if (name[len] != '.') continue;
        const ice_field *r = by_name(f[i].type->fields, f[i].type->n_fields, name + len + 1);
        if (r) return r;
    }
    return NULL;
}

const ice_field *ice_schema_field_named(const ice_schema *s, const char *name) { return by_name(s->fields, s->n_fields, name); }

static bool path_of(const ice_field *f, uint32_t n, int32_t id, fz_buf *b) {
    size_t mark = b->len;
    for (uint32_t i = 0; i < n; i++) {
        if (mark) fz_buf_putc(b, '.');
        fz_buf_puts(b, f[i].name);
        if (f[i].id == id || path_of(f[i].type->fields, f[i].type->n_fields, id, b)) return true;
        b->len = mark;
    }
    return false;
}

const char *ice_schema_field_name(fz_arena *a, const ice_schema *s, int32_t id) {
    fz_buf b = {0};
    const char *r = path_of(s->fields, s->n_fields, id, &b) ? fz_arena_strndup(a, (const char *)b.data, b.len) : NULL;
    fz_buf_free(&b);
    return r;
}

bool ice_schema_eq(const ice_schema *a, const ice_schema *b) {
    ice_type ta = {.kind = ICE_STRUCT, .n_fields = a->n_fields, .fields = a->fields};
    ice_type tb = {.kind = ICE_STRUCT, .n_fields = b->n_fields, .fields = b->fields};
    if (!ice_type_eq(&ta, &tb) || a->n_identifier != b->n_identifier) return false;
    for (uint32_t i = 0; i < a->n_identifier; i++) {
        bool found = false;
        for (uint32_t j = 0; j < b->n_identifier; j++) found |= a->identifier[i] == b->identifier[j];
        if (!found) return false;
    }
    return true;
}
