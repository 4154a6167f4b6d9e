/* The catalog in AWS Glue, as Iceberg's GlueCatalog (1.10) keeps it: a namespace is a database of the Data Catalog (one level), a table an entry whose parameter
 * metadata_location is the pointer. Shared with Java, PyIceberg, Athena, Spark, Firehose.
 *
 * What it does not do: it takes no locks in DynamoDB (VersionId is the lock), renames nothing, and asks Lake Formation for no credentials
 * (its grants count all the same: Glue enforces them).
 *
 * Invariants
 *  1. Only an answer EntityNotFoundException means "does not exist"; a refusal never does.
 *  2. Databases and entries keep what others have put there.
 * Threads: any.
 */
#include "catalog/glue_int.h"

/* ---- options ---- */

static fz_status flag(const cat_catalog *c, const char *key, bool *out, fz_error *err) {
    int v = 0;
    FZ_TRY(fz_parse_bool(cat_option(c, key), &v, err));
    *out = v;
    return FZ_OK;
}

static fz_status glue_open(cat_catalog *c, fz_error *err) {
    bool lake_formation;
    glue *g = FZ_ANEW(c->arena, glue);
    FZ_TRY(flag(c, "glue.skip-archive", &g->skip_archive, err));
    FZ_TRY(flag(c, "glue.skip-name-validation", &g->skip_names, err));
    FZ_TRY(flag(c, "glue.lakeformation-enabled", &lake_formation, err));
    if (lake_formation) {
        fz_fail(err, FZ_USER, "catalog.option", "the catalog '%s': credentials that Lake Formation vends ('glue.lakeformation-enabled') are not supported", c->name);
        return fz_hint(err, "leave the option out: grants in Lake Formation count for calls to Glue, and the role's own rights on S3 for the data");
    }
    g->catalog_id = cat_option(c, "glue.id");
    FZ_TRY(fio_aws(c->io, &g->session, err));
    FZ_TRY(aws_endpoint(g->session, "glue", cat_option(c, "glue.endpoint"), c->arena, &g->endpoint, NULL, err));
    c->impl = g;
    return FZ_OK;
}

static void glue_close(cat_catalog *c) { (void)c; }

/* ---- names ---- */

static fz_status glue_check_ident(const cat_catalog *c, const cat_ident *id, fz_error *err) {
    const glue *g = c->impl;
    if (id->ns.n != 1) {
        fz_fail(err, FZ_USER, "catalog.name", "Glue's databases have one level; the catalog '%s' was asked for %u", c->name, id->ns.n);
        return fz_hint(err, "leave 'base-namespace' out");
    }
    const char *bad = pointer_name_ok(id->ns.level[0], 252) ? NULL : id->ns.level[0];
    if (!bad && id->name && !pointer_name_ok(id->name, 255)) bad = id->name;
    if (!bad || g->skip_names) return FZ_OK;
    fz_fail(err, FZ_USER, "catalog.name", "'%.255s' cannot be a name in Glue: it takes lower-case letters, digits and underscores, %d at most", bad,
            bad == id->ns.level[0] ? 252 : 255);
    return fz_hint(err, "'glue.skip-name-validation' = 'true' takes names as they are; Athena may not read such tables");
}

/* ---- databases ---- */

static json_t *named(const char *database) { return json_pack("{s:s}", "Name", database); }

/* The Database object (new reference), *out NULL: there is none. */
static fz_status get_database(cat_catalog *c, const char *name, json_t **out, fz_error *err) {
    json_t *answer = NULL;
    glue_result r;
    *out = NULL;
    fz_status rc = glue_call(c, "GetDatabase", named(name), true, name, &answer, &r, err);
    if (rc != FZ_OK) return r.why == GLUE_NOT_FOUND ? FZ_OK : rc;
    json_t *d = json_object_get(answer, "Database");
    if (json_is_object(d)) *out = json_incref(d);
    else rc = fz_fail(err, FZ_RETRY, "catalog.answer", "Glue's answer to GetDatabase of '%s' has no database in it", name);
    json_decref(answer);
    return rc;
}

static fz_status glue_namespace_exists(cat_catalog *c, cat_namespace ns, bool *out, fz_error *err) {
    json_t *d;
    FZ_TRY(get_database(c, ns.level[0], &d, err));
    *out = d != NULL;
    json_decref(d);
    return FZ_OK;
}

/* Calls fn for each object of the list `member` in all pages of op's answers, until it returns false. in is taken. */
static fz_status each(cat_catalog *c, const char *op, json_t *in, const char *about, const char *member, bool (*fn)(void *cx, const json_t *item), void *cx, fz_error *err) {
    bool more = true;
    fz_status rc = FZ_OK;
    while (rc == FZ_OK && more) {
        json_t *answer = NULL, *item;
        glue_result r;
        size_t i;
        rc = glue_call(c, op, json_incref(in), true, about, &answer, &r, err);
        if (rc != FZ_OK && r.why == GLUE_NOT_FOUND) rc = glue_no_database(c, about, err);
        json_array_foreach(json_object_get(answer, member), i, item) if (more) more = fn(cx, item);
        const char *next = pointer_text(answer, "NextToken");
        if (next && *next) pointer_put(in, "NextToken", pointer_string(next));
        else more = false;
        json_decref(answer);
    }
    json_decref(in);
    return rc;
}

typedef struct names_out { fz_arena *a; cat_names *v; } names_out;

static bool take_name(void *cx, const json_t *item) {
    names_out *o = cx;
    const char *name = pointer_text(item, "Name");
    if (name) cat_names_add(o->a, o->v, name);
    return true;
}
static bool take_iceberg(void *cx, const json_t *item) { return glue_is_iceberg(item) ? take_name(cx, item) : true; }

static fz_status glue_list_namespaces(cat_catalog *c, cat_namespace parent, fz_arena *a, cat_names *out, fz_error *err) {
    names_out o = {a, out};
    if (parent.n > 0) return FZ_OK; /* databases have none below them */
    return each(c, "GetDatabases", json_object(), "all databases", "DatabaseList", take_name, &o, err);
}

static fz_status glue_list_tables(cat_catalog *c, cat_namespace ns, fz_arena *a, cat_names *out, fz_error *err) {
    names_out o = {a, out};
    return each(c, "GetTables", json_pack("{s:s}", "DatabaseName", ns.level[0]), ns.level[0], "TableList", take_iceberg, &o, err);
}

/* 'comment' and 'location' are members of their own, the rest are parameters. */
static void put_properties(json_t *input, const fz_pair *props, size_t n) {
    json_t *p = json_object_get(input, "Parameters");
    if (!p) pointer_put(input, "Parameters", p = json_object());
    for (size_t i = 0; i < n; i++) {
        if (strcmp(props[i].key, "comment") == 0) pointer_put(input, "Description", pointer_string(props[i].value));
        else if (strcmp(props[i].key, "location") == 0) pointer_put(input, "LocationUri", pointer_string(props[i].value));
        else pointer_put(p, props[i].key, pointer_string(props[i].value));
    }
}

static fz_status glue_create_namespace(cat_catalog *c, cat_namespace ns, const fz_pair *props, size_t n, fz_error *err) {
    const char *name = ns.level[0];
    glue_result r;
    json_t *input = named(name);
    put_properties(input, props, n);
    fz_status rc = glue_call(c, "CreateDatabase", json_pack("{s:o}", "DatabaseInput", input), false, name, NULL, &r, err);
    if (rc == FZ_OK) return FZ_OK;
    if (r.why == GLUE_EXISTS && !r.unsure)
        return fz_fail(err, FZ_USER, "catalog.namespace-exists", "the database '%s' exists already in catalog '%s'", name, c->name);
    if (!r.unsure) return rc;
    /* It is there, by us or by another at the same moment: that is what was asked for. */
    bool there = false;
    fz_error why;
    if (glue_namespace_exists(c, ns, &there, &why) == FZ_OK && there) return FZ_OK;
    return pointer_reclass(err, FZ_RETRY, err->code);
}

static fz_status glue_get_properties(cat_catalog *c, cat_namespace ns, fz_arena *a, fz_pair **out, size_t *n, fz_error *err) {
    json_t *d, *v;
    const char *key;
    *out = NULL;
    *n = 0;
    FZ_TRY(get_database(c, ns.level[0], &d, err));
    if (!d) return glue_no_database(c, ns.level[0], err);
    json_t *p = json_object_get(d, "Parameters");
    *out = FZ_ANEWN(a, fz_pair, json_object_size(p) + 2);
    json_object_foreach(p, key, v) if (json_is_string(v))
        (*out)[(*n)++] = (fz_pair){.key = fz_arena_strdup(a, key), .value = fz_arena_strdup(a, json_string_value(v))};
    const char *location = pointer_text(d, "LocationUri"), *comment = pointer_text(d, "Description");
    if (location) (*out)[(*n)++] = (fz_pair){.key = "location", .value = fz_arena_strdup(a, location)};
    if (comment) (*out)[(*n)++] = (fz_pair){.key = "comment", .value = fz_arena_strdup(a, comment)};
    json_decref(d);
    return FZ_OK;
}

static fz_status glue_set_properties(cat_catalog *c, cat_namespace ns, const fz_pair *props, size_t n, fz_error *err) {
    const char *name = ns.level[0];
    glue_result r;
    json_t *d;
    FZ_TRY(get_database(c, name, &d, err));
    if (!d) return glue_no_database(c, name, err);
    json_t *input = json_deep_copy(d);
    json_object_del(input, "CreateTime"); /* the members of Database that DatabaseInput has not */
    json_object_del(input, "CatalogId");
    put_properties(input, props, n);
    json_decref(d);
    fz_status rc = glue_call(c, "UpdateDatabase", json_pack("{s:s, s:o}", "Name", name, "DatabaseInput", input), true, name, NULL, &r, err);
    if (rc == FZ_UNKNOWN || rc == FZ_CONFLICT) rc = pointer_reclass(err, FZ_RETRY, err->code); /* setting twice does no harm */
    return rc;
}

typedef struct first_table { fz_arena *a; const char *name; bool iceberg; } first_table;
static bool take_first(void *cx, const json_t *item) {
    first_table *f = cx;
    f->name = fz_arena_strdup(f->a, pointer_text(item, "Name") ? pointer_text(item, "Name") : "");
    f->iceberg = glue_is_iceberg(item);
    return false;
}

/* Glue's DeleteDatabase takes all tables with it, so that it is only asked once there are none. */
static fz_status glue_drop_namespace(cat_catalog *c, cat_namespace ns, fz_error *err) {
    const char *name = ns.level[0];
    glue_result r;
    fz_arena *a = fz_arena_new();
    first_table f = {.a = a};
    fz_status rc = each(c, "GetTables", json_pack("{s:s}", "DatabaseName", name), name, "TableList", take_first, &f, err);
    if (rc == FZ_OK && f.name) {
        rc = fz_fail(err, FZ_USER, "catalog.namespace-not-empty", "the database '%s' of catalog '%s' is not empty", name, c->name);
        fz_detail(err, "it still has '%s', %s", f.name, f.iceberg ? "an Iceberg table" : "which is no Iceberg table");
    }
    if (rc == FZ_OK) {
        rc = glue_call(c, "DeleteDatabase", named(name), true, name, NULL, &r, err);
        if (rc != FZ_OK && r.why == GLUE_NOT_FOUND) rc = r.unsure ? FZ_OK : glue_no_database(c, name, err);
        if (rc == FZ_UNKNOWN || rc == FZ_CONFLICT) rc = pointer_reclass(err, FZ_RETRY, err->code);
    }
    fz_arena_free(a);
    return rc;
}

const cat_ops cat_glue_ops = {
    .type = "glue", .open = glue_open, .close = glue_close, .list_namespaces = glue_list_namespaces, .namespace_exists = glue_namespace_exists,
    .create_namespace = glue_create_namespace, .drop_namespace = glue_drop_namespace, .get_properties = glue_get_properties, .set_properties = glue_set_properties,
    .list_tables = glue_list_tables, .find = glue_find, .swap = glue_swap, .drop_table = glue_drop_table, .check_ident = glue_check_ident,
    .warehouse_optional = true, .database_suffix = ".db",
};
