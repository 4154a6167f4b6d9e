/* The catalog of an S3 table bucket through its own API, as the S3 Tables Catalog for Apache Iceberg keeps it: 'warehouse' is the bucket's ARN, a database is a namespace
 * (one level), each table has a bucket of its own. (Its Iceberg REST endpoint is the REST catalog's.)
 *
 * What it does not do: it asks for nothing that table buckets do not offer: no listing and no deletion of objects, no encryption, storage classes, tags or ACLs by
 * request, no properties of namespaces, no table without its data (dropping deletes).
 * Threads: any.
 */
#include "catalog/s3tables_int.h"

/* ---- options ---- */

static fz_status bad_arn(const cat_catalog *c, fz_error *err) {
    fz_fail(err, FZ_USER, "catalog.option", "the catalog '%s' wants the ARN of a table bucket as its 'warehouse', not '%s'", c->name, c->warehouse);
    return fz_hint(err, "write 'warehouse' = 'arn:aws:s3tables:<region>:<account>:bucket/<name>'");
}

/* arn:<partition>:s3tables:<region>:<account>:bucket/<name> */
static fz_status read_arn(cat_catalog *c, s3tables *s, fz_error *err) {
    const char *part[6], *p = c->warehouse;
    for (unsigned i = 0; i < 6; i++) {
        part[i] = p;
        p = strchr(p, ':');
        if (i < 5 && !p) return bad_arn(c, err);
        if (p) p++;
    }
    if (!fz_starts(part[0], "arn:") || !fz_starts(part[2], "s3tables:") || part[3][0] == ':' || part[4][0] == ':' || !fz_starts(part[5], "bucket/") || !part[5][7]) return bad_arn(c, err);
    s->arn = c->warehouse;
    s->region = fz_arena_strndup(c->arena, part[3], strcspn(part[3], ":"));
    fz_buf b = {0};
    net_encode(&b, s->arn, strlen(s->arn), false);
    s->arn_segment = fz_arena_strndup(c->arena, (const char *)b.data, b.len);
    fz_buf_free(&b);
    return FZ_OK;
}

static fz_status not_here(const cat_catalog *c, const char *key, const char *what, fz_error *err) {
    fz_fail(err, FZ_USER, "catalog.option", "the catalog '%s' has the option '%s', but S3 Tables takes no %s from clients", c->name, key, what);
    return fz_hint(err, "leave '%s' out; such things are set on the table bucket", key);
}

static fz_status check_store_options(const cat_catalog *c, const s3tables *s, fz_error *err) {
    for (size_t i = 0; i < c->n_options; i++) {
        const char *k = c->options[i].key, *v = c->options[i].value;
        if (strcmp(k, "s3.sse.type") == 0 && !fz_ieq(v, "none") && !fz_ieq(v, "s3")) return not_here(c, k, "encryption", err);
        if (strcmp(k, "s3.acl") == 0) return not_here(c, k, "ACLs", err);
        if (strcmp(k, "s3.write.storage-class") == 0 && !fz_ieq(v, "STANDARD")) return not_here(c, k, "storage classes", err);
        if (fz_starts(k, "s3.write.tags.") || fz_starts(k, "s3.delete.tags.")) return not_here(c, k, "tags", err);
        if (strcmp(k, "s3.delete-enabled") == 0 && fz_ieq(v, "true")) return not_here(c, k, "deletion of objects", err);
        if (strcmp(k, "client.region") == 0 && strcmp(v, s->region) != 0)
            return fz_fail(err, FZ_USER, "catalog.option", "the catalog '%s' has 'client.region' = '%s', but its table bucket lies in %s", c->name, v, s->region);
    }
    return FZ_OK;
}

/* The store of a table bucket lies in the bucket's region and deletes nothing. */
static fz_status own_store(cat_catalog *c, const s3tables *s, fz_error *err) {
    fz_pair *o = FZ_ANEWN(c->arena, fz_pair, c->n_options + 2);
    memcpy(o, c->options, c->n_options * sizeof *o);
    o[c->n_options] = (fz_pair){.key = "client.region", .value = s->region};
    o[c->n_options + 1] = (fz_pair){.key = "s3.delete-enabled", .value = "false"};
    fio *io;
    FZ_TRY(fio_new(o, c->n_options + 2, &io, err));
    fio_unref(c->io);
    c->io = io;
    return FZ_OK;
}

static fz_status s3tables_open(cat_catalog *c, fz_error *err) {
    s3tables *s = FZ_ANEW(c->arena, s3tables);
    FZ_TRY(read_arn(c, s, err));
    FZ_TRY(check_store_options(c, s, err));
    FZ_TRY(own_store(c, s, err));
    FZ_TRY(fio_aws(c->io, &s->session, err));
    FZ_TRY(aws_endpoint(s->session, "s3tables", cat_option(c, "s3tables.endpoint"), c->arena, &s->endpoint, NULL, err));
    c->impl = s;
    return FZ_OK;
}

static void s3tables_close(cat_catalog *c) { (void)c; }

static fz_status s3tables_check_ident(const cat_catalog *c, const cat_ident *id, fz_error *err) {
    if (id->ns.n != 1) {
        fz_fail(err, FZ_USER, "catalog.name", "namespaces of S3 Tables have one level; the catalog '%s' was asked for %u", c->name, id->ns.n);
        return fz_hint(err, "leave 'base-namespace' out");
    }
    const char *bad = !pointer_name_ok(id->ns.level[0], 255) ? id->ns.level[0] : id->name && !pointer_name_ok(id->name, 255) ? id->name : NULL;
    if (!bad) return FZ_OK;
    return fz_fail(err, FZ_USER, "catalog.name", "'%.255s' cannot be a name in S3 Tables: it takes lower-case letters, digits and underscores", bad);
}

/* ---- namespaces and listings ---- */

static fz_status s3tables_namespace_exists(cat_catalog *c, cat_namespace ns, bool *out, fz_error *err) {
    s3tables_result r;
    fz_arena *a = fz_arena_new();
    s3tables_request rq = {.op = "GetNamespace", .method = "GET", .path = s3tables_path(c, a, "namespaces", ns.level[0], NULL, ""), .about = ns.level[0]};
    fz_status rc = s3tables_call(c, &rq, NULL, &r, err);
    *out = rc == FZ_OK;
    if (rc != FZ_OK && r.not_found && strcmp(err->code, "catalog.no-table-bucket") != 0) rc = s3tables_check_bucket(c, err);
    fz_arena_free(a);
    return rc;
}

static fz_status s3tables_create_namespace(cat_catalog *c, cat_namespace ns, const fz_pair *props, size_t n, fz_error *err) {
    s3tables_result r;
    const char *name = ns.level[0];
    if (n > 0) return fz_fail(err, FZ_USER, "catalog.option", "databases of S3 Tables have no properties: '%s' cannot be set on '%s'", props[0].key, name);
    fz_arena *a = fz_arena_new();
    s3tables_request rq = {.op = "CreateNamespace", .method = "PUT", .path = s3tables_path(c, a, "namespaces", NULL, NULL, ""), .body = json_pack("{s:[s]}", "namespace", name),
                           .writes = true, .about = name};
    fz_status rc = s3tables_call(c, &rq, NULL, &r, err);
    fz_arena_free(a);
    if (rc == FZ_OK || (!r.conflict && !r.unsure)) return rc;
    bool there = false;
    fz_error why;
    if (s3tables_namespace_exists(c, ns, &there, &why) == FZ_OK && there) {
        if (r.unsure) return FZ_OK; /* by us, or by another at the same moment: that is what was asked for */
        return fz_fail(err, FZ_USER, "catalog.namespace-exists", "the database '%s' exists already in catalog '%s'", name, c->name);
    }
    return pointer_reclass(err, FZ_RETRY, err->code);
}

/* Adds the names in the list `member` of all pages. A name is a text, or a list with one text (namespaces). */
static fz_status list(cat_catalog *c, const s3tables_request *rq, const char *member, const char *name, fz_arena *a, cat_names *out, fz_error *err) {
    const char *token = NULL;
    do {
        json_t *answer, *item;
        size_t i;
        s3tables_result r;
        s3tables_request page = *rq;
        fz_buf q = {0};
        if (rq->query) fz_buf_printf(&q, "%s", rq->query);
        if (token) {
            fz_buf_printf(&q, "%scontinuationToken=", q.len ? "&" : "");
            net_encode(&q, token, strlen(token), false);
        }
        page.query = q.len ? fz_buf_cstr(&q) : NULL;
        fz_status rc = s3tables_call(c, &page, &answer, &r, err);
        fz_buf_free(&q);
        if (rc != FZ_OK && r.not_found && strcmp(err->code, "catalog.no-table-bucket") != 0) {
            if (!rq->query) return s3tables_no_bucket(c, err); /* all namespaces of a bucket can only be missing with it */
            FZ_TRY(s3tables_check_bucket(c, err));
            return s3tables_no_namespace(c, rq->about, err);
        }
        if (rc != FZ_OK) return rc;
        json_array_foreach(json_object_get(answer, member), i, item) {
            const json_t *v = json_object_get(item, name);
            const char *s = json_string_value(json_is_array(v) ? json_array_get(v, 0) : v);
            if (s) cat_names_add(a, out, s);
        }
        const char *next = pointer_text(answer, "continuationToken");
        token = next && *next ? fz_arena_strdup(a, next) : NULL;
        json_decref(answer);
    } while (token);
    return FZ_OK;
}

static fz_status s3tables_list_namespaces(cat_catalog *c, cat_namespace parent, fz_arena *a, cat_names *out, fz_error *err) {
    if (parent.n > 0) return FZ_OK; /* there are none below */
    s3tables_request rq = {.op = "ListNamespaces", .method = "GET", .path = s3tables_path(c, a, "namespaces", NULL, NULL, ""), .about = "all namespaces"};
    return list(c, &rq, "namespaces", "namespace", a, out, err);
}

static fz_status s3tables_list_tables(cat_catalog *c, cat_namespace ns, fz_arena *a, cat_names *out, fz_error *err) {
    fz_buf q = {0};
    fz_buf_puts(&q, "namespace=");
    net_encode(&q, ns.level[0], strlen(ns.level[0]), false);
    s3tables_request rq = {.op = "ListTables", .method = "GET", .path = s3tables_path(c, a, "tables", NULL, NULL, ""), .query = fz_buf_cstr(&q), .about = ns.level[0]};
    fz_status rc = list(c, &rq, "tables", "name", a, out, err);
    fz_buf_free(&q);
    return rc;
}

static fz_status s3tables_get_properties(cat_catalog *c, cat_namespace ns, fz_arena *a, fz_pair **out, size_t *n, fz_error *err) {
    (void)c, (void)ns, (void)a, (void)err;
    *out = NULL;
    *n = 0;
    return FZ_OK;
}

static fz_status s3tables_set_properties(cat_catalog *c, cat_namespace ns, const fz_pair *props, size_t n, fz_error *err) {
    (void)c;
    return n == 0 ? FZ_OK : fz_fail(err, FZ_USER, "catalog.option", "databases of S3 Tables have no properties: '%s' cannot be set on '%s'", props[0].key, ns.level[0]);
}

static fz_status s3tables_drop_namespace(cat_catalog *c, cat_namespace ns, fz_error *err) {
    const char *name = ns.level[0];
    s3tables_result r;
    cat_names tables = {0};
    fz_arena *a = fz_arena_new();
    fz_status rc = s3tables_list_tables(c, ns, a, &tables, err);
    if (rc == FZ_OK && tables.n > 0) {
        rc = fz_fail(err, FZ_USER, "catalog.namespace-not-empty", "the database '%s' of catalog '%s' is not empty", name, c->name);
        fz_detail(err, "it still has the table '%s'", tables.v[0]);
    }
    if (rc == FZ_OK) {
        s3tables_request rq = {.op = "DeleteNamespace", .method = "DELETE", .path = s3tables_path(c, a, "namespaces", name, NULL, ""), .about = name};
        rc = s3tables_call(c, &rq, NULL, &r, err);
        if (rc != FZ_OK && r.not_found) rc = r.unsure ? FZ_OK : s3tables_no_namespace(c, name, err);
        if (rc == FZ_CONFLICT) rc = pointer_reclass(err, FZ_RETRY, err->code);
    }
    fz_arena_free(a);
    return rc;
}

/* ---- dropping ---- */

fz_status s3tables_delete_table(cat_catalog *c, const cat_ident *id, const char *version, fz_arena *a, s3tables_result *r, fz_error *err) {
    fz_buf q = {0};
    if (version) {
        fz_buf_puts(&q, "versionToken=");
        net_encode(&q, version, strlen(version), false);
    }
    s3tables_request rq = {.op = "DeleteTable", .method = "DELETE", .path = s3tables_path(c, a, "tables", id->ns.level[0], id->name, ""), .query = version ? fz_buf_cstr(&q) : NULL,
                           .about = cat_ident_text(a, id)};
    fz_status rc = s3tables_call(c, &rq, NULL, r, err);
    fz_buf_free(&q);
    return rc;
}

static fz_status s3tables_drop_table(cat_catalog *c, const cat_ident *id, bool purge, fz_error *err) {
    fz_arena *a = fz_arena_new();
    fz_status rc = FZ_OK;
    if (!purge) fz_log(FZ_LOG_WARN, "catalog.drop-deletes-data", FZ_KV("table", "%s", cat_ident_text(a, id)), FZ_KV("reason", "%s", "S3 Tables keeps no data of a table that is gone"), NULL);
    for (int tries = 0; tries < 5; tries++) { /* a commit in between gives the table another version */
        s3tables_pointer p;
        s3tables_result r = {0};
        rc = s3tables_get_pointer(c, id, a, &p, err);
        if (rc == FZ_OK && !p.there && tries == 0) rc = fz_fail(err, FZ_USER, "catalog.table-not-found", "the table '%s' does not exist in catalog '%s'", cat_ident_text(a, id), c->name);
        if (rc != FZ_OK || !p.there) break;
        rc = s3tables_delete_table(c, id, p.version, a, &r, err);
        if (rc != FZ_OK && r.not_found) rc = FZ_OK;
        if (rc != FZ_CONFLICT) break;
    }
    if (rc == FZ_CONFLICT) rc = pointer_reclass(err, FZ_RETRY, err->code);
    fz_arena_free(a);
    return rc;
}

const cat_ops cat_s3tables_ops = {
    .type = "s3tables", .open = s3tables_open, .close = s3tables_close, .list_namespaces = s3tables_list_namespaces, .namespace_exists = s3tables_namespace_exists,
    .create_namespace = s3tables_create_namespace, .drop_namespace = s3tables_drop_namespace, .get_properties = s3tables_get_properties,
    .set_properties = s3tables_set_properties, .list_tables = s3tables_list_tables, .find = s3tables_find, .swap = s3tables_swap, .create = s3tables_create,
    .drop_table = s3tables_drop_table, .check_ident = s3tables_check_ident, .places_tables = true, .purges = true,
};
