/* See pointer_int.h. */
#include "catalog/pointer_int.h"

/* ---- where a pointer stands ---- */

static bool same(const char *a, const char *b) { return a && b && strcmp(a, b) == 0; }

pointer_place pointer_look(fio *io, const char *now, const char *from, const char *ours) {
    if (same(now, ours)) return POINTER_OURS;
    if (!now) return from ? POINTER_UNDECIDED : POINTER_AT_BASE;
    if (same(now, from)) return POINTER_AT_BASE;
    ice_metadata *m;
    fz_error ignored;
    if (cat_metadata_read(io, now, &m, &ignored) != FZ_OK) return POINTER_UNDECIDED;
    bool has_ours = false, has_from = false;
    for (uint32_t i = 0; i < m->n_metadata_log; i++) {
        has_ours |= strcmp(m->metadata_log[i].location, ours) == 0;
        has_from |= same(m->metadata_log[i].location, from);
    }
    ice_metadata_free(m);
    return has_ours ? POINTER_OURS : has_from ? POINTER_OTHERS : POINTER_UNDECIDED;
}

fz_status pointer_moved(const cat_ident *id, const char *now, const char *from, fz_error *err) {
    fz_arena *a = fz_arena_new();
    fz_fail(err, FZ_CONFLICT, "catalog.conflict", "the table '%s' has moved on since it was loaded", cat_ident_text(a, id));
    fz_arena_free(a);
    return fz_detail(err, "built on '%s', the catalog has '%s'", from ? from : "nothing", now ? now : "nothing");
}

fz_status pointer_unknown(const cat_ident *id, fz_error *err) {
    fz_error why = *err;
    fz_arena *a = fz_arena_new();
    fz_fail(err, FZ_UNKNOWN, "catalog.commit-unknown", "the catalog did not confirm the commit of '%s', and what it says does not decide it", cat_ident_text(a, id));
    fz_arena_free(a);
    return fz_detail(err, "%s%s%s", why.message, why.detail[0] ? "; " : "", why.detail);
}

fz_status pointer_settle(const cat_ident *id, pointer_place place, bool refused, const char *now, const char *from, fz_error *err) {
    if (place == POINTER_OURS) {
        fz_arena *a = fz_arena_new();
        fz_log(FZ_LOG_INFO, "catalog.commit-found", FZ_KV("table", "%s", cat_ident_text(a, id)), FZ_KV("answer", "%s", err->message), NULL);
        fz_arena_free(a);
        return FZ_OK;
    }
    if (place == POINTER_OTHERS) return pointer_moved(id, now, from, err);
    if (place == POINTER_AT_BASE && refused) return pointer_reclass(err, FZ_CONFLICT, "catalog.conflict");
    return pointer_unknown(id, err);
}

const char *pointer_location(fz_arena *a, const cat_table *base, const ice_metadata *m) {
    char uuid[37];
    fz_uuid4(uuid);
    return ice_metadata_location(a, m, base && base->version >= 0 ? (int32_t)base->version + 1 : 0, uuid);
}

fz_status pointer_write(fio *io, const char *location, const ice_metadata *m, bool unique, fz_error *err) {
    fz_buf b = {0};
    fz_status rc = ice_metadata_encode(m, &b, err);
    if (rc == FZ_OK) rc = unique ? fio_put_if_absent(io, location, b.data, b.len, err) : fio_put(io, location, b.data, b.len, err);
    fz_buf_free(&b);
    if (rc == FZ_CONFLICT) return FZ_OK; /* the name is random: what is there is what an earlier attempt of this very put left */
    if (rc != FZ_UNKNOWN) return rc;
    cat_delete_quietly(io, location);
    return pointer_reclass(err, FZ_RETRY, err->code); /* nothing names the file yet */
}

/* ---- small things ---- */

fz_status pointer_reclass(fz_error *err, fz_status cls, const char *code) {
    fz_error was = *err; /* code may point into err */
    fz_fail(err, cls, code == err->code ? was.code : code, "%s", was.message);
    if (was.detail[0]) fz_detail(err, "%s", was.detail);
    if (was.hint[0]) fz_hint(err, "%s", was.hint);
    return cls;
}

const char *pointer_text(const json_t *object, const char *key) { return json_string_value(json_object_get(object, key)); }

void pointer_put(json_t *object, const char *key, json_t *value) { (void)json_object_set_new(object, key, value); }

json_t *pointer_string(const char *s) {
    json_t *j = json_string(s);
    return j ? j : json_string("");
}

bool pointer_name_ok(const char *s, size_t max) {
    size_t n = strlen(s);
    return n >= 1 && n <= max && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == n;
}
