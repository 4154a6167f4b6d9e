/* JSON members with errors that name them. See iceberg_int.h. */
#include "iceberg/iceberg_int.h"

static fz_status missing(ice_src x, const char *key) {
    return fz_fail(x.err, FZ_FATAL, "iceberg.metadata", "%s: member \"%s\" is missing", x.what, key);
}

static fz_status wrong(ice_src x, const char *key, const char *want) {
    return fz_fail(x.err, FZ_FATAL, "iceberg.metadata", "%s: member \"%s\" is not %s", x.what, key, want);
}

/* NULL where the member is absent or null: writers do both. */
static const json_t *member(const json_t *o, const char *key) {
    const json_t *v = json_object_get(o, key);
    return v && !json_is_null(v) ? v : NULL;
}

fz_status ice_json_i64(ice_src x, const json_t *o, const char *key, int64_t *out) {
    const json_t *v = member(o, key);
    if (!v) return missing(x, key);
    if (!json_is_integer(v)) return wrong(x, key, "an integer");
    *out = json_integer_value(v);
    return FZ_OK;
}

fz_status ice_json_opt_i64(ice_src x, const json_t *o, const char *key, int64_t dflt, int64_t *out) {
    *out = dflt;
    return member(o, key) ? ice_json_i64(x, o, key, out) : FZ_OK;
}

fz_status ice_json_i32(ice_src x, const json_t *o, const char *key, int32_t *out) {
    int64_t v = 0;
    FZ_TRY(ice_json_i64(x, o, key, &v));
    if (v < INT32_MIN || v > INT32_MAX) return wrong(x, key, "a 32-bit integer");
    *out = (int32_t)v;
    return FZ_OK;
}

fz_status ice_json_opt_i32(ice_src x, const json_t *o, const char *key, int32_t dflt, int32_t *out) {
    *out = dflt;
    return member(o, key) ? ice_json_i32(x, o, key, out) : FZ_OK;
}

fz_status ice_json_str(ice_src x, fz_arena *a, const json_t *o, const char *key, const char **out) {
    if (!member(o, key)) return missing(x, key);
    return ice_json_opt_str(x, a, o, key, out);
}

fz_status ice_json_opt_str(ice_src x, fz_arena *a, const json_t *o, const char *key, const char **out) {
    const json_t *v = member(o, key);
    *out = NULL;
    if (!v) return FZ_OK;
    if (!json_is_string(v)) return wrong(x, key, "a string");
    *out = fz_arena_strdup(a, json_string_value(v));
    return FZ_OK;
}

fz_status ice_json_bool(ice_src x, const json_t *o, const char *key, bool dflt, bool *out) {
    const json_t *v = member(o, key);
    *out = dflt;
    if (!v) return FZ_OK;
    if (!json_is_boolean(v)) return wrong(x, key, "a boolean");
    *out = json_is_true(v);
    return FZ_OK;
}

fz_status ice_json_array(ice_src x, const json_t *o, const char *key, const json_t **out) {
    if (!member(o, key)) return missing(x, key);
    return ice_json_opt_array(x, o, key, out);
}

fz_status ice_json_opt_array(ice_src x, const json_t *o, const char *key, const json_t **out) {
    const json_t *v = member(o, key);
    *out = v;
    return v && !json_is_array(v) ? wrong(x, key, "an array") : FZ_OK;
}

char *ice_json_text(fz_arena *a, const json_t *j) {
    size_t n = json_dumpb(j, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY);
    char *s = fz_arena_alloc(a, n + 1);
    s[json_dumpb(j, s, n, JSON_COMPACT | JSON_ENCODE_ANY)] = 0;
    return s;
}

void ice_json_pairs(fz_arena *a, const json_t *o, const fz_pair **out, uint32_t *n) {
    fz_pair *p = FZ_ANEWN(a, fz_pair, json_object_size(o));
    uint32_t k = 0;
    const char *key;
    json_t *v;
    /* jansson's iterators take a mutable object although they change nothing */
    json_object_foreach((json_t *)(uintptr_t)o, key, v) {
        if (json_is_null(v)) continue;
        p[k].key = fz_arena_strdup(a, key);
        p[k].value = json_is_string(v) ? fz_arena_strdup(a, json_string_value(v)) : ice_json_text(a, v);
        k++;
    }
    *out = p;
    *n = k;
}

json_t *ice_json_string(const char *s) {
    json_t *j = json_string(s);
    if (j) return j;
    fz_buf b = {0};
    size_t n = strlen(s);
    for (size_t i = 0; i < n;) {
        char out[4];
        fz_buf_append(&b, out, fz_utf8_put(out, fz_utf8_next(s, n, &i)));
    }
    j = json_stringn((const char *)b.data, b.len);
    fz_buf_free(&b);
    return j ? j : json_string("");
}

void ice_json_set(json_t *o, const char *key, json_t *v) {
    if (json_object_set_new(o, key, v) == 0) return;
    json_t *name = ice_json_string(key); /* the key was no UTF-8; v was given back by the failed call, so only the key is kept */
    (void)json_object_set_new(o, json_string_value(name), json_null());
    json_decref(name);
}

void ice_json_add(json_t *array, json_t *v) { (void)json_array_append_new(array, v); }

fz_status ice_json_load(const void *p, size_t n, json_t **out, fz_error *err) {
    json_error_t je;
    *out = json_loadb(p, n, JSON_ALLOW_NUL, &je);
    if (*out) return FZ_OK;
    return fz_fail(err, FZ_FATAL, "iceberg.metadata", "not a JSON document: %s (line %d, column %d)", je.text, je.line, je.column);
}
