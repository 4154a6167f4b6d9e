/* Tables of a REST catalog: load, create, commit, drop. See catalog.h for what the statuses promise, and rest_int.h.
 *
 * A commit is one POST of requirements and updates. What its outcome means:
 *
 *     200 with the table's metadata, our snapshot in it      OK
 *     409                                                    the table is loaded: our snapshot is in it: OK (a proxy has sent the request twice, and the second one met our
 *                                                            own success); another one has our sequence number, or none: CONFLICT; the list does not tell, or cannot be loaded:
 *                                                            UNKNOWN
 *     400, 401, 403, 404, 422 ...                            definitely nothing: USER
 *     429                                                    definitely nothing: RETRY
 *     5xx, silence, a 200 that says something else           UNKNOWN; 503 too, whatever Retry-After says: proxies say it for servers that have acted
 *
 * Creation sends name, location, schema, spec, order and properties in one plain POST: that is all that a first metadata of ours holds, so there is no need of a staged
 * creation (which S3 Tables refuses). The server chooses uuid and, without a location, the place. When the outcome is not known the name is looked up: an
 * empty table with this very definition is ours, or as good as ours; another one means that the name is taken; none leaves it UNKNOWN.
 *
 * Invariants
 *  1. The server's metadata goes through ice_metadata_parse; nothing else reads it.
 *  2. Nothing is deleted here: files are the caller's and the server's.
 */
#include "catalog/rest_int.h"

/* ---- answers ---- */

typedef struct scan { const char *p, *end; } scan;

static void blanks(scan *s) {
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r')) s->p++;
}

/* Past a string whose quote is at p; false: it does not end. */
static bool skip_string(scan *s) {
    for (s->p++; s->p < s->end; s->p++) {
        if (*s->p == '\\') s->p++;
        else if (*s->p == '"') return s->p++, true;
    }
    return false;
}

/* Past any value. Whether it is well formed is for those to say who parse it. */
static bool skip_value(scan *s) {
    int depth = 0;
    while (s->p < s->end) {
        char ch = *s->p;
        if (ch == '"') {
            if (!skip_string(s)) return false;
        } else if (ch == '{' || ch == '[') depth++, s->p++;
        else if (ch == '}' || ch == ']') {
            if (depth == 0) return true;
            depth--, s->p++;
        } else if (ch == ',' && depth == 0) return true;
        else s->p++;
        if (depth == 0 && (ch == '"' || ch == '}' || ch == ']')) return true;
    }
    return depth == 0;
}

/* The bytes of the member `name` of the object that is the text. */
static bool member(const char *text, size_t n, const char *name, const char **from, const char **to) {
    scan s = {text, text + n};
    blanks(&s);
    if (s.p == s.end || *s.p++ != '{') return false;
    for (;;) {
        blanks(&s);
        if (s.p == s.end || *s.p != '"') return false;
        const char *key = s.p + 1;
        if (!skip_string(&s)) return false;
        bool found = (size_t)(s.p - 1 - key) == strlen(name) && memcmp(key, name, strlen(name)) == 0;
        blanks(&s);
        if (s.p == s.end || *s.p++ != ':') return false;
        blanks(&s);
        *from = s.p;
        if (!skip_value(&s)) return false;
        *to = s.p;
        if (found) return true;
        blanks(&s);
        if (s.p == s.end || *s.p++ != ',') return false;
    }
}

fz_status rest_result_parse(const rest *r, const rest_answer *a, rest_result *out, fz_error *err) {
    const char *text = (const char *)a->http.body.data, *from, *to;
    size_t n = a->http.body.len;
    *out = (rest_result){0};
    if (!member(text, n, "metadata", &from, &to) || from == to || *from != '{') {
        char begin[160];
        rest_text_shorten(text, n, begin, sizeof begin);
        rest_auth_redact(r->auth, begin);
        fz_fail(err, FZ_RETRY, "catalog.rest-answer", "catalog '%s' answered with status %d, but without a table's metadata", r->name, a->http.status);
        return fz_detail(err, "it begins: %s", begin);
    }
    fz_buf b = {0};
    fz_buf_append(&b, text, (size_t)(from - text));
    fz_buf_puts(&b, "null");
    fz_buf_append(&b, to, (size_t)(text + n - to));
    json_error_t why;
    out->rest = json_loadb((const char *)b.data, b.len, 0, &why);
    fz_buf_free(&b);
    if (!json_is_object(out->rest)) {
        json_decref(out->rest);
        out->rest = NULL;
        return fz_fail(err, FZ_RETRY, "catalog.rest-answer", "catalog '%s' answered with broken JSON: %s", r->name, why.text);
    }
    out->metadata = from;
    out->n_metadata = (size_t)(to - from);
    return FZ_OK;
}

/* io NULL: by what the answer says. */
static fz_status table_of(rest *r, const cat_ident *id, const rest_answer *a, fio *io, cat_table **out, fz_error *err) {
    rest_result result;
    ice_metadata *m = NULL;
    fio *store = NULL;
    FZ_TRY(rest_result_parse(r, a, &result, err));
    fz_status rc = ice_metadata_parse(result.metadata, result.n_metadata, &m, err);
    if (rc != FZ_OK) fz_context(err, "catalog '%s'", r->name);
    if (rc == FZ_OK) rc = io ? (store = fio_ref(io), FZ_OK) : rest_table_store(r, id, result.rest, m->location, &store, err);
    if (rc == FZ_OK) {
        const char *location = json_string_value(json_object_get(result.rest, "metadata-location"));
        *out = cat_table_make(store, id, location ? location : "", m);
    } else ice_metadata_free(m);
    fio_unref(store);
    json_decref(result.rest);
    return rc;
}

/* ---- load ---- */

fz_status rest_table_load(cat_catalog *c, const cat_ident *id, cat_table **out, fz_error *err) {
    rest *r = c->impl;
    fz_arena *ar = fz_arena_new();
    /* All snapshots: positions are looked for in the lineage. */
    rest_request rq = {.endpoint = REST_LOAD_TABLE, .path = rest_path(r, ar, &id->ns, id->name, NULL), .query = "snapshots=all", .delegation = true, .max_answer = FZ_MAX_METADATA_JSON};
    rest_answer a;
    fz_status rc = rest_send(r, &rq, &a, err);
    if (rc == FZ_OK) rc = table_of(r, id, &a, NULL, out, err);
    else if (rc == FZ_USER && a.http.status == 404) rc = rest_not_found(r, &a, id, err);
    rest_answer_free(&a);
    fz_arena_free(ar);
    return rc;
}

fz_status rest_table_exists(cat_catalog *c, const cat_ident *id, bool *out, fz_error *err) {
    rest *r = c->impl;
    fz_arena *ar = fz_arena_new();
    bool head = rest_offers(r, REST_TABLE_EXISTS);
    rest_request rq = {.endpoint = head ? REST_TABLE_EXISTS : REST_LOAD_TABLE, .path = rest_path(r, ar, &id->ns, id->name, NULL), .query = head ? NULL : "snapshots=refs", .max_answer = FZ_MAX_METADATA_JSON};
    rest_answer a;
    fz_status rc = rest_send(r, &rq, &a, err);
    *out = rc == FZ_OK;
    if (rc == FZ_USER && a.http.status == 404) rc = FZ_OK;
    rest_answer_free(&a);
    fz_arena_free(ar);
    return rc;
}

/* ---- create ---- */

static json_t *order_json(const ice_metadata *m) {
    const json_t *orders = json_object_get(m->root, "sort-orders");
    size_t i;
    json_t *o;
    json_array_foreach((json_t *)(uintptr_t)orders, i, o)
        if (json_integer_value(json_object_get(o, "order-id")) == m->default_sort_order_id) return json_deep_copy(o);
    return NULL;
}

static json_t *create_body(const cat_ident *id, const ice_metadata *m) {
    json_t *o = json_object(), *props = json_object(), *order = m->default_sort_order_id ? order_json(m) : NULL;
    json_object_set_new(o, "name", json_string(id->name));
    if (m->location && *m->location) json_object_set_new(o, "location", json_string(m->location));
    json_object_set_new(o, "schema", ice_schema_json(m->schema));
    json_object_set_new(o, "partition-spec", ice_spec_json(m->spec));
    if (order) json_object_set_new(o, "write-order", order);
    json_object_set_new(o, "stage-create", json_false());
    for (uint32_t i = 0; i < m->n_properties; i++) json_object_set_new(props, m->properties[i].key, json_string(m->properties[i].value));
    json_object_set_new(props, "format-version", json_string("2")); /* whatever the server's default is */
    json_object_set_new(o, "properties", props);
    return o;
}

/* Names, types and nullability; ids are the server's. */
static bool same_columns(const ice_schema *a, const ice_schema *b) {
    bool same = a->n_fields == b->n_fields && a->n_identifier == b->n_identifier;
    for (uint32_t i = 0; same && i < a->n_fields; i++) {
        fz_buf x = {0}, y = {0};
        ice_type_text(&x, a->fields[i].type);
        ice_type_text(&y, b->fields[i].type);
        same = strcmp(a->fields[i].name, b->fields[i].name) == 0 && a->fields[i].required == b->fields[i].required && strcmp(fz_buf_cstr(&x), fz_buf_cstr(&y)) == 0;
        fz_buf_free(&x);
        fz_buf_free(&y);
    }
    return same;
}

static bool same_definition(const ice_metadata *want, const ice_metadata *got) {
    if (got->n_snapshots || got->format_version != want->format_version || !same_columns(want->schema, got->schema) || want->spec->n_fields != got->spec->n_fields) return false;
    if (want->location && *want->location && strcmp(want->location, got->location) != 0) return false;
    for (uint32_t i = 0; i < want->spec->n_fields; i++) {
        const ice_spec_field *a = &want->spec->fields[i], *b = &got->spec->fields[i];
        if (strcmp(a->name, b->name) != 0 || strcmp(a->transform.text, b->transform.text) != 0) return false;
    }
    for (uint32_t i = 0; i < want->n_properties; i++) { /* a server may leave some out */
        const char *v = ice_property(got, want->properties[i].key, NULL);
        if (v && strcmp(v, want->properties[i].value) != 0) return false;
    }
    return true;
}

/* What has become of a creation without a good answer (err says why). */
static fz_status look_for_created(cat_catalog *c, const cat_ident *id, const ice_metadata *first, cat_table **out, fz_error *err) {
    fz_error why = *err;
    cat_table *t = NULL;
    fz_arena *a = fz_arena_new();
    const char *name = cat_ident_text(a, id);
    fz_status rc = rest_table_load(c, id, &t, err);
    if (rc == FZ_OK && same_definition(first, t->metadata)) *out = t;
    else if (rc == FZ_OK) {
        rc = fz_fail(err, FZ_USER, "catalog.table-exists", "the table '%s' exists already in catalog '%s', with another definition", name, c->name);
        cat_table_free(t);
    } else {
        bool none = strcmp(err->code, "catalog.table-not-found") == 0;
        fz_fail(err, FZ_UNKNOWN, "catalog.commit-unknown", "catalog '%s' did not confirm that it has made table '%s'%s", c->name, name, none ? ", and it is not there yet" : "");
        fz_detail(err, "%s", why.message);
        rc = fz_hint(err, "run the statement again, with IF NOT EXISTS");
    }
    fz_arena_free(a);
    return rc;
}

fz_status rest_table_create(cat_catalog *c, const cat_ident *id, const ice_metadata *first, cat_table **out, fz_error *err) {
    rest *r = c->impl;
    fz_arena *ar = fz_arena_new();
    json_t *body = create_body(id, first);
    rest_request rq = {.endpoint = REST_CREATE_TABLE, .effect = REST_ONCE, .path = rest_path(r, ar, &id->ns, NULL, "/tables"), .body = body, .delegation = true, .max_answer = FZ_MAX_METADATA_JSON};
    rest_answer a;
    fz_status rc = rest_send(r, &rq, &a, err);
    if (rc == FZ_OK && table_of(r, id, &a, NULL, out, err) != FZ_OK) rc = FZ_UNKNOWN;
    if (rc == FZ_UNKNOWN) rc = look_for_created(c, id, first, out, err);
    else if (rc == FZ_CONFLICT) rc = fz_fail(err, FZ_USER, "catalog.table-exists", "the table '%s' (or a view of that name) exists already in catalog '%s'", cat_ident_text(ar, id), c->name);
    else if (rc == FZ_USER && a.http.status == 404) rc = rest_not_found(r, &a, &(cat_ident){id->ns, NULL}, err);
    rest_answer_free(&a);
    json_decref(body);
    fz_arena_free(ar);
    return rc;
}

/* ---- commit ---- */

/* The snapshot that the changes add; ICE_NONE: none. */
static int64_t added_snapshot(const ice_changes *changes) {
    size_t i;
    json_t *u;
    json_array_foreach(changes->updates, i, u) {
        const char *action = json_string_value(json_object_get(u, "action"));
        if (action && strcmp(action, "add-snapshot") == 0) return json_integer_value(json_object_get(json_object_get(u, "snapshot"), "snapshot-id"));
    }
    return ICE_NONE;
}

static fz_status unknown(const rest *r, const cat_ident *id, fz_error *err) {
    char said[300];
    snprintf(said, sizeof said, "%.280s", err->message);
    fz_arena *a = fz_arena_new();
    fz_fail(err, FZ_UNKNOWN, "catalog.commit-unknown", "catalog '%s' did not confirm the commit of '%s', and what it says does not decide it", r->name, cat_ident_text(a, id));
    fz_arena_free(a);
    return fz_detail(err, "%s", said);
}

/* A 200 counts when it shows the table with our snapshot in it. */
static fz_status confirm(rest *r, const cat_table *base, const rest_answer *a, int64_t snapshot, cat_table **out, fz_error *err) {
    cat_table *t;
    if (table_of(r, &base->ident, a, base->io, &t, err) != FZ_OK) return unknown(r, &base->ident, err);
    const char *was = base->metadata->uuid, *is = t->metadata->uuid;
    bool other = was && is && !fz_ieq(was, is), missing = snapshot != ICE_NONE && !ice_metadata_snapshot(t->metadata, snapshot);
    if (!other && !missing) return *out = t, FZ_OK;
    cat_table_free(t);
    fz_fail(err, FZ_UNKNOWN, "catalog.rest-answer", "%s", other ? "the answer is about a table with another uuid" : "the answer has no snapshot of this commit");
    return unknown(r, &base->ident, err);
}

/* Can the table, which has not our snapshot in its list, have taken it? Our sequence number was the one after base's: another snapshot that has it took our place. Lists
 * may be short (Nessie's have the current snapshot only), so that what is not in them may have been. */
static bool excluded(const ice_metadata *base, const ice_metadata *now) {
    int64_t ours = base->last_sequence_number + 1;
    if (now->last_sequence_number < ours || (base->uuid && now->uuid && !fz_ieq(base->uuid, now->uuid))) return true;
    for (uint32_t i = 0; i < now->n_snapshots; i++)
        if (now->snapshots[i].sequence == ours) return true;
    return false;
}

/* Was it our own success that the conflict is with? */
static fz_status settle_conflict(cat_catalog *c, const cat_table *base, int64_t snapshot, cat_table **out, fz_error *err) {
    fz_error why = *err;
    cat_table *t = NULL;
    if (snapshot == ICE_NONE) return FZ_CONFLICT;
    fz_status rc = rest_table_load(c, &base->ident, &t, err);
    if (rc != FZ_OK && strcmp(err->code, "catalog.table-not-found") != 0) return unknown(c->impl, &base->ident, err);
    if (rc == FZ_OK && ice_metadata_snapshot(t->metadata, snapshot)) return *out = t, FZ_OK;
    bool decided = rc != FZ_OK || excluded(base->metadata, t->metadata);
    cat_table_free(t);
    *err = why;
    return decided ? FZ_CONFLICT : unknown(c->impl, &base->ident, err);
}

fz_status rest_table_commit(cat_catalog *c, const cat_table *base, const ice_changes *changes, cat_table **out, fz_error *err) {
    rest *r = c->impl;
    const cat_ident *id = &base->ident;
    FZ_TRY(rest_must_offer(r, REST_UPDATE_TABLE, err));
    FZ_TRY(fz_fault_status("commit.swap", err));
    fz_arena *ar = fz_arena_new();
    json_t *name = json_pack("{s:o, s:s}", "namespace", rest_namespace_json(id->ns), "name", id->name);
    json_t *body = json_pack("{s:o, s:O, s:O}", "identifier", name, "requirements", changes->requirements, "updates", changes->updates);
    rest_request rq = {.endpoint = REST_UPDATE_TABLE, .effect = REST_ONCE, .path = rest_path(r, ar, &id->ns, id->name, NULL), .body = body, .table_token = rest_table_token(r, id, ar),
                       .max_answer = FZ_MAX_METADATA_JSON};
    int64_t snapshot = added_snapshot(changes);
    rest_answer a;
    fz_status rc = rest_send(r, &rq, &a, err);
    if (rc == FZ_OK) rc = confirm(r, base, &a, snapshot, out, err);
    else if (rc == FZ_CONFLICT) rc = settle_conflict(c, base, snapshot, out, err);
    else if (rc == FZ_USER && a.http.status == 404) rc = rest_not_found(r, &a, id, err);
    rest_answer_free(&a);
    json_decref(body);
    fz_arena_free(ar);
    return rc;
}

/* ---- drop ---- */

fz_status rest_table_drop(cat_catalog *c, const cat_ident *id, bool purge, fz_error *err) {
    rest *r = c->impl;
    fz_arena *ar = fz_arena_new();
    rest_request rq = {.endpoint = REST_DROP_TABLE, .effect = REST_AGAIN, .path = rest_path(r, ar, &id->ns, id->name, NULL), .query = purge ? "purgeRequested=true" : NULL,
                       .table_token = rest_table_token(r, id, ar)};
    rest_answer a;
    fz_status rc = rest_send(r, &rq, &a, err);
    if (rc == FZ_USER && a.http.status == 404) rc = a.maybe_applied ? FZ_OK : rest_not_found(r, &a, id, err);
    rest_answer_free(&a);
    fz_arena_free(ar);
    return rc;
}
