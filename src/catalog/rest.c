/* The REST catalog: namespaces, lists of tables, and its table of functions. Tables themselves: rest_table.c; requests: rest_http.c. See catalog.h and rest_int.h.
 *
 * The server owns the metadata: it writes metadata.json, chooses places, checks the requirements and moves the pointer.
 *
 * Invariants
 *  1. Only a 404 says that something does not exist; a 403 is an error (it may be there, unseen).
 *  2. Lists are followed to their end, page by page; a page token that comes again is an error and not an endless loop.
 */
#include "catalog/rest_int.h"

#define MAX_PAGES 100000

/* ---- opening ---- */

static fz_status rest_open(cat_catalog *c, fz_error *err) {
    rest *r;
    FZ_TRY(rest_new(c, &r, err));
    fz_pair *v = FZ_ANEWN(r->arena, fz_pair, r->n_options);
    fio *io;
    fz_status rc = fio_new(v, rest_store_options(r->options, r->n_options, false, v), &io, err);
    if (rc != FZ_OK) {
        rest_unref(r);
        return rc;
    }
    fio_unref(c->io);
    r->io = c->io = io;
    c->effective = r->options;
    c->n_effective = r->n_options;
    const char *warehouse = rest_option(r, "warehouse");
    if (warehouse && *warehouse) c->warehouse = ice_location_trim(c->arena, warehouse);
    c->impl = r;
    return FZ_OK;
}

static void rest_close(cat_catalog *c) {
    rest *r = c->impl;
    rest_tables_free(r); /* their stores hold references to r */
    r->io = NULL;
    rest_unref(r);
}

/* A level with the separator in it would be taken for two. */
static fz_status rest_check_ident(const cat_catalog *c, const cat_ident *id, fz_error *err) {
    const rest *r = c->impl;
    for (uint32_t i = 0; i < id->ns.n; i++)
        if (strstr(id->ns.level[i], r->separator_raw))
            return fz_fail(err, FZ_USER, "catalog.name", "the database name '%s' has the separator of catalog '%s' (%s) in it", id->ns.level[i], c->name, r->separator);
    return FZ_OK;
}

/* ---- namespaces ---- */

json_t *rest_namespace_json(cat_namespace ns) {
    json_t *v = json_array();
    for (uint32_t i = 0; i < ns.n; i++) json_array_append_new(v, json_string(ns.level[i]));
    return v;
}

fz_status rest_not_found(const rest *r, const rest_answer *a, const cat_ident *id, fz_error *err) {
    bool table = id->name && strcmp(a->type, "NoSuchNamespaceException") != 0;
    char said[300];
    snprintf(said, sizeof said, "%.280s", err->message);
    fz_arena *ar = fz_arena_new();
    const char *name = table ? cat_ident_text(ar, id) : cat_namespace_text(ar, id->ns);
    fz_fail(err, FZ_USER, table ? "catalog.table-not-found" : "catalog.namespace-not-found", "the %s '%s' does not exist in catalog '%s'", table ? "table" : "database", name, r->name);
    fz_arena_free(ar);
    return fz_detail(err, "%s", said);
}

/* One request about a namespace; its answer is not needed. */
static fz_status about_namespace(rest *r, rest_request *rq, cat_namespace ns, const char *tail, rest_answer *a, fz_error *err) {
    fz_arena *ar = fz_arena_new();
    rq->path = rest_path(r, ar, ns.n ? &ns : NULL, NULL, tail);
    fz_status rc = rest_send(r, rq, a, err);
    if (rc == FZ_USER && a->http.status == 404) rc = rest_not_found(r, a, &(cat_ident){ns, NULL}, err);
    fz_arena_free(ar);
    return rc;
}

static fz_status rest_namespace_exists(cat_catalog *c, cat_namespace ns, bool *out, fz_error *err) {
    rest *r = c->impl;
    rest_request rq = {.endpoint = rest_offers(r, REST_NAMESPACE_EXISTS) ? REST_NAMESPACE_EXISTS : REST_LOAD_NAMESPACE};
    rest_answer a;
    fz_status rc = about_namespace(r, &rq, ns, NULL, &a, err);
    *out = rc == FZ_OK;
    if (rc == FZ_USER && a.http.status == 404) rc = FZ_OK;
    rest_answer_free(&a);
    return rc;
}

static json_t *object_of(const fz_pair *props, size_t n) {
    json_t *o = json_object();
    for (size_t i = 0; i < n; i++) json_object_set_new(o, props[i].key, json_string(props[i].value));
    return o;
}

static fz_status rest_create_namespace(cat_catalog *c, cat_namespace ns, const fz_pair *props, size_t n, fz_error *err) {
    rest *r = c->impl;
    json_t *body = json_pack("{s:o, s:o}", "namespace", rest_namespace_json(ns), "properties", object_of(props, n));
    rest_request rq = {.endpoint = REST_CREATE_NAMESPACE, .effect = REST_ONCE, .body = body};
    rest_answer a;
    fz_arena *ar = fz_arena_new();
    rq.path = rest_path(r, ar, NULL, NULL, NULL);
    fz_status rc = rest_send(r, &rq, &a, err);
    if (rc == FZ_CONFLICT) rc = fz_fail(err, FZ_USER, "catalog.namespace-exists", "the database '%s' exists already in catalog '%s'", cat_namespace_text(ar, ns), c->name);
    rest_answer_free(&a);
    json_decref(body);
    fz_arena_free(ar);
    return rc;
}

static fz_status rest_drop_namespace(cat_catalog *c, cat_namespace ns, fz_error *err) {
    rest_request rq = {.endpoint = REST_DROP_NAMESPACE, .effect = REST_AGAIN};
    rest_answer a;
    fz_status rc = about_namespace(c->impl, &rq, ns, NULL, &a, err);
    if (rc == FZ_USER && a.http.status == 404 && a.maybe_applied) rc = FZ_OK; /* an earlier attempt's doing */
    if (rc == FZ_CONFLICT || (rc == FZ_USER && strcmp(a.type, "NamespaceNotEmptyException") == 0)) {
        char said[300];
        snprintf(said, sizeof said, "%.280s", err->message);
        fz_arena *ar = fz_arena_new();
        fz_fail(err, FZ_USER, "catalog.namespace-not-empty", "the database '%s' of catalog '%s' is not empty", cat_namespace_text(ar, ns), c->name);
        fz_arena_free(ar);
        rc = fz_detail(err, "%s", said);
    }
    rest_answer_free(&a);
    return rc;
}

static fz_status rest_get_properties(cat_catalog *c, cat_namespace ns, fz_arena *ar, fz_pair **out, size_t *n, fz_error *err) {
    rest_request rq = {.endpoint = REST_LOAD_NAMESPACE};
    rest_answer a;
    json_t *o = NULL;
    fz_status rc = about_namespace(c->impl, &rq, ns, NULL, &a, err);
    if (rc == FZ_OK) rc = rest_answer_json(c->impl, &a, &o, err);
    if (rc == FZ_OK) *out = rest_pairs(ar, json_object_get(o, "properties"), n);
    json_decref(o);
    rest_answer_free(&a);
    return rc;
}

static fz_status rest_set_properties(cat_catalog *c, cat_namespace ns, const fz_pair *props, size_t n, fz_error *err) {
    json_t *body = json_pack("{s:[], s:o}", "removals", "updates", object_of(props, n));
    rest_request rq = {.endpoint = REST_UPDATE_NAMESPACE, .effect = REST_AGAIN, .body = body};
    rest_answer a;
    fz_status rc = about_namespace(c->impl, &rq, ns, "/properties", &a, err);
    rest_answer_free(&a);
    json_decref(body);
    return rc;
}

/* ---- lists ---- */

typedef void (*take_page)(void *cx, const json_t *answer);

/* pageToken stands in the first request too: that is how a client says that it can follow pages. */
static fz_status list(rest *r, rest_endpoint e, cat_namespace ns, const char *tail, const char *parent, take_page take, void *cx, fz_error *err) {
    fz_buf token = {0}, q = {0};
    fz_status rc = FZ_OK;
    bool more = true;
    for (int page = 0; more && rc == FZ_OK; page++) {
        q.len = 0;
        fz_buf_printf(&q, "pageToken=");
        net_encode(&q, (const char *)token.data, token.len, false);
        if (r->page_size) fz_buf_printf(&q, "&pageSize=%s", r->page_size);
        if (parent) fz_buf_printf(&q, "&parent=%s", parent);
        rest_request rq = {.endpoint = e, .query = fz_buf_cstr(&q)};
        rest_answer a;
        json_t *o = NULL;
        rc = about_namespace(r, &rq, ns, tail, &a, err);
        if (rc == FZ_OK) rc = rest_answer_json(r, &a, &o, err);
        if (rc == FZ_OK) {
            take(cx, o);
            const json_t *next = json_object_get(o, "next-page-token");
            more = json_is_string(next) && json_string_length(next) > 0;
            bool same = more && token.len == json_string_length(next) && memcmp(token.data, json_string_value(next), token.len) == 0;
            if (same || page == MAX_PAGES) rc = fz_fail(err, FZ_FATAL, "catalog.rest-answer", "catalog '%s': the list does not end: '%s' gives the same page token again", r->name, rest_endpoint_text(e));
            token.len = 0;
            if (more) fz_buf_append(&token, json_string_value(next), json_string_length(next));
        }
        json_decref(o);
        rest_answer_free(&a);
    }
    fz_buf_free(&token);
    fz_buf_free(&q);
    return rc;
}

typedef struct name_list { fz_arena *a; cat_names *out; uint32_t depth; } name_list;

static void take_namespaces(void *cx, const json_t *answer) {
    name_list *l = cx;
    size_t i;
    json_t *ns;
    json_array_foreach(json_object_get(answer, "namespaces"), i, ns) {
        const char *s = json_string_value(json_array_get(ns, l->depth));
        if (s && json_array_size(ns) == l->depth + 1) cat_names_add(l->a, l->out, s);
    }
}

static fz_status rest_list_namespaces(cat_catalog *c, cat_namespace parent, fz_arena *ar, cat_names *out, fz_error *err) {
    rest *r = c->impl;
    name_list l = {ar, out, parent.n};
    fz_buf p = {0};
    for (uint32_t i = 0; i < parent.n; i++) {
        if (i) net_encode(&p, r->separator_raw, strlen(r->separator_raw), false);
        net_encode(&p, parent.level[i], strlen(parent.level[i]), false);
    }
    fz_status rc = list(r, REST_LIST_NAMESPACES, (cat_namespace){0}, NULL, parent.n ? fz_buf_cstr(&p) : NULL, take_namespaces, &l, err);
    fz_buf_free(&p);
    return rc;
}

static void take_tables(void *cx, const json_t *answer) {
    name_list *l = cx;
    size_t i;
    json_t *id;
    json_array_foreach(json_object_get(answer, "identifiers"), i, id) {
        const char *s = json_string_value(json_object_get(id, "name"));
        if (s) cat_names_add(l->a, l->out, s);
    }
}

static fz_status rest_list_tables(cat_catalog *c, cat_namespace ns, fz_arena *ar, cat_names *out, fz_error *err) {
    name_list l = {ar, out, 0};
    return list(c->impl, REST_LIST_TABLES, ns, "/tables", NULL, take_tables, &l, err);
}

const cat_ops cat_rest_ops = {
    .type = "rest", .open = rest_open, .close = rest_close, .list_namespaces = rest_list_namespaces, .namespace_exists = rest_namespace_exists,
    .create_namespace = rest_create_namespace, .drop_namespace = rest_drop_namespace, .get_properties = rest_get_properties, .set_properties = rest_set_properties,
    .list_tables = rest_list_tables, .drop_table = rest_table_drop, .load = rest_table_load, .exists = rest_table_exists, .create = rest_table_create, .commit = rest_table_commit,
    .places_tables = true, .purges = true, .warehouse_optional = true, .check_ident = rest_check_ident,
};
