/* Avro schemas as they stand in files. See avro_int.h. */
#include "iceberg/avro_int.h"

typedef struct named { const char *name; const av_type *type; struct named *next; } named;
typedef struct parser { fz_arena *a; named *names; uint32_t n_types; fz_error *err; } parser;
#define MAX_TYPES 100000

static fz_status parse(parser *p, const json_t *j, int depth, const av_type **out);

static fz_status bad(parser *p, const char *why) { return fz_fail(p->err, FZ_FATAL, "iceberg.avro", "Avro schema: %s", why); }

/* The simple name: namespaces are cut off, since manifests use none and their writers differ in them. */
static const char *simple_name(const char *s) {
    const char *dot = strrchr(s, '.');
    return dot ? dot + 1 : s;
}

static int primitive(const char *s) {
    static const char *const names[] = {"null", "boolean", "int", "long", "float", "double", "bytes", "string"};
    for (int i = 0; i < 8; i++)
        if (strcmp(s, names[i]) == 0) return i;
    return -1;
}

static fz_status by_name(parser *p, const char *s, const av_type **out) {
    int k = primitive(s);
    if (k >= 0) {
        av_type *t = FZ_ANEW(p->a, av_type);
        t->kind = (av_kind)k;
        t->logical = "";
        *out = t;
        return FZ_OK;
    }
    for (named *n = p->names; n; n = n->next)
        if (strcmp(n->name, simple_name(s)) == 0) {
            *out = n->type;
            return FZ_OK;
        }
    return fz_fail(p->err, FZ_FATAL, "iceberg.avro", "Avro schema: unknown type %s", s);
}

static int32_t id_of(const json_t *o, const char *key) {
    const json_t *v = json_object_get(o, key);
    json_int_t i = json_is_integer(v) ? json_integer_value(v) : -1;
    return i >= 0 && i <= INT32_MAX ? (int32_t)i : -1;
}

static fz_status record(parser *p, const json_t *j, int depth, av_type *t) {
    const json_t *arr = json_object_get(j, "fields");
    if (!json_is_array(arr)) return bad(p, "a record has no fields");
    t->kind = AV_RECORD;
    t->n = (uint32_t)json_array_size(arr);
    if (t->n > FZ_MAX_COLUMNS) return bad(p, "a record has too many fields");
    t->fields = FZ_ANEWN(p->a, av_field, t->n);
    for (uint32_t i = 0; i < t->n; i++) {
        const json_t *o = json_array_get(arr, i);
        const char *name = json_string_value(json_object_get(o, "name"));
        if (!name) return bad(p, "a field has no name");
        t->fields[i].name = fz_arena_strdup(p->a, name);
        t->fields[i].id = id_of(o, "field-id");
        FZ_TRY(parse(p, json_object_get(o, "type"), depth + 1, &t->fields[i].type));
    }
    return FZ_OK;
}

static fz_status one_item(parser *p, const json_t *j, const char *key, int depth, av_type *t) {
    t->n = 1;
    t->fields = FZ_ANEWN(p->a, av_field, 1);
    t->fields[0].id = id_of(j, "element-id");
    t->fields[0].name = "element";
    return parse(p, json_object_get(j, key), depth + 1, &t->fields[0].type);
}

static void remember(parser *p, const json_t *j, const av_type *t) {
    const char *name = json_string_value(json_object_get(j, "name"));
    if (!name) return;
    named *n = FZ_ANEW(p->a, named);
    n->name = fz_arena_strdup(p->a, simple_name(name));
    n->type = t;
    n->next = p->names;
    p->names = n;
}

static fz_status object(parser *p, const json_t *j, int depth, const av_type **out) {
    const json_t *type = json_object_get(j, "type");
    if (!json_is_string(type)) return parse(p, type, depth + 1, out); /* {"type": {...}} */
    const char *s = json_string_value(type);
    const json_t *logical = json_object_get(j, "logicalType");
    av_type *t = FZ_ANEW(p->a, av_type);
    t->logical = json_is_string(logical) ? fz_arena_strdup(p->a, json_string_value(logical)) : "";
    t->precision = id_of(j, "precision");
    t->scale = id_of(j, "scale");
    t->adjust_to_utc = json_is_true(json_object_get(j, "adjust-to-utc"));
    *out = t;
    if (strcmp(s, "record") == 0 || strcmp(s, "error") == 0) {
        remember(p, j, t); /* before its fields: they may name it */
        return record(p, j, depth, t);
    }
    if (strcmp(s, "array") == 0 || strcmp(s, "map") == 0) {
        t->kind = *s == 'a' ? AV_ARRAY : AV_MAP;
        return one_item(p, j, *s == 'a' ? "items" : "values", depth, t);
    }
    if (strcmp(s, "fixed") == 0) {
        t->kind = AV_FIXED;
        t->size = id_of(j, "size");
        if (t->size < 0) return bad(p, "a fixed type has no size");
        remember(p, j, t);
        return FZ_OK;
    }
    if (strcmp(s, "enum") == 0) {
        t->kind = AV_ENUM;
        remember(p, j, t);
        return FZ_OK;
    }
    int k = primitive(s);
    if (k < 0) return by_name(p, s, out);
    t->kind = (av_kind)k;
    return FZ_OK;
}

static fz_status parse(parser *p, const json_t *j, int depth, const av_type **out) {
    if (depth > AV_MAX_DEPTH) return bad(p, "types are nested too deeply");
    if (++p->n_types > MAX_TYPES) return bad(p, "it has too many types");
    if (json_is_string(j)) return by_name(p, json_string_value(j), out);
    if (json_is_object(j)) return object(p, j, depth, out);
    if (!json_is_array(j)) return bad(p, "a type is missing");
    av_type *t = FZ_ANEW(p->a, av_type);
    t->kind = AV_UNION;
    t->logical = "";
    t->n = (uint32_t)json_array_size(j);
    if (t->n > 1000) return bad(p, "a union has too many branches");
    t->fields = FZ_ANEWN(p->a, av_field, t->n);
    for (uint32_t i = 0; i < t->n; i++) {
        if (json_is_array(json_array_get(j, i))) return bad(p, "a union stands directly in a union");
        t->fields[i].id = -1;
        t->fields[i].name = "";
        FZ_TRY(parse(p, json_array_get(j, i), depth + 1, &t->fields[i].type));
    }
    *out = t;
    return FZ_OK;
}

fz_status av_schema_parse(fz_arena *a, const char *json, size_t n, const av_type **out, fz_error *err) {
    json_error_t je;
    json_t *j = json_loadb(json, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &je);
    if (!j) return fz_fail(err, FZ_FATAL, "iceberg.avro", "Avro schema: not JSON: %s", je.text);
    parser p = {.a = a, .err = err};
    fz_status s = parse(&p, j, 0, out);
    json_decref(j);
    return s;
}
