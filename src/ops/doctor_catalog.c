/* Catalogs, databases and tables: are they there, may they be asked? Opens catalogs so that none is made. */
#include "ops/doctor_int.h"
#include <unistd.h>

static const char *opt(const ops_need_catalog *n, const char *key) { return fz_pair_get(n->options, n->n_options, key); }
static bool says_false(const char *v) { return v && fz_ieq(v, "false"); }

/* ---- catalogs ---- */

/* The options as given, but for those by which an SQL catalog would be made or changed at opening. */
static size_t harmless(doctor *d, const doc_catalog *c, const fz_pair **out) {
    static const char *const making[] = {"jdbc.init-catalog-tables", "init_catalog_tables", "jdbc.schema-version", "schema_version"};
    fz_pair *v = FZ_ANEWN(d->a, fz_pair, c->need->n_options + 1);
    size_t n = 0;
    for (size_t i = 0; i < c->need->n_options; i++) {
        bool skip = false;
        for (size_t k = 0; k < sizeof making / sizeof *making; k++) skip |= strcmp(c->need->options[i].key, making[k]) == 0;
        if (!skip) v[n++] = c->need->options[i];
    }
    if (strcmp(c->kind, "sql") == 0) v[n++] = (fz_pair){.key = "jdbc.init-catalog-tables", .value = "false"};
    *out = v;
    return n;
}

/* The local file of an SQLite URI; NULL for other databases. */
static const char *sqlite_path(const char *uri) {
    static const char *const heads[] = {"sqlite:////", "sqlite:///", "jdbc:sqlite:file:", "jdbc:sqlite:"};
    for (int i = 0; uri && i < 4; i++)
        if (fz_starts(uri, heads[i])) return uri + strlen(heads[i]) - (i == 0);
    return NULL;
}

static bool may_make(const ops_need_catalog *n) { return !says_false(opt(n, "jdbc.init-catalog-tables")) && !says_false(opt(n, "init_catalog_tables")); }

static void missing_sql(doctor *d, doc_catalog *c, doc_step *s, const fz_error *e) {
    const char *file = sqlite_path(opt(c->need, "uri"));
    bool no_file = file && access(file, F_OK) != 0, no_tables = strstr(e->message, "has no Iceberg catalog in it") != NULL;
    if (!may_make(c->need) || (!no_file && !no_tables)) {
        doc_fail_error(d, s, e);
        if (file) doc_advise(d, s, "check option 'uri' and the rights of uid %d to %s", (int)geteuid(), file);
        return;
    }
    c->absent = true;
    if (!no_file) {
        doc_ok(d, s, "there are no tables of a catalog yet: they would be made");
        return;
    }
    const char *slash = strrchr(file, '/'), *dir = slash == file ? "/" : slash ? fz_arena_strndup(d->a, file, (size_t)(slash - file)) : ".";
    if (access(dir, W_OK | X_OK) == 0) doc_ok(d, s, "%s is not there yet: it would be made", file);
    else {
        doc_fail(d, s, "%s is not there, and it cannot be made in %s", file, dir);
        doc_advise(d, s, "make the directory, and let uid %d write in it", (int)geteuid());
    }
}

static void no_table_bucket(doctor *d, doc_step *s, const fz_error *e) {
    const char *name = strstr(e->message, ":bucket/");
    doc_fail_error(d, s, e);
    doc_advise(d, s, "aws s3tables list-table-buckets shows what is there; aws s3tables create-table-bucket --name %.*s makes it", name ? (int)strcspn(name + 8, "'") : 3, name ? name + 8 : "...");
}

static void hadoop_step(doctor *d, doc_catalog *c, doc_step *s) {
    const char *dir = fio_local_path(cat_warehouse(c->cat));
    cat_names names;
    fz_error e = {0};
    if (dir && access(dir, F_OK) != 0) {
        doc_ok(d, s, "%s is not there yet: it would be made", dir);
        c->absent = true;
    } else if (cat_list_namespaces(c->cat, (cat_namespace){0}, d->a, &names, &e) != FZ_OK) doc_fail_error(d, s, &e);
    else doc_ok(d, s, "%u database%s in %s", names.n, names.n == 1 ? "" : "s", cat_warehouse(c->cat));
}

/* Whether the table bucket is there: the same answer (404) comes for each namespace of one that is not. Who may not list may still find his namespace. */
static void table_bucket_step(doctor *d, doc_catalog *c, doc_step *s) {
    cat_names names;
    fz_error e = {0};
    doc_asked(d, s, "s3tables ListNamespaces of %s", cat_warehouse(c->cat));
    if (cat_list_namespaces(c->cat, (cat_namespace){0}, d->a, &names, &e) == FZ_OK) doc_ok(d, s, "%u database%s in %s", names.n, names.n == 1 ? "" : "s", cat_warehouse(c->cat));
    else if (strcmp(e.code, "catalog.no-table-bucket") == 0) no_table_bucket(d, s, &e);
    else if (!doc_blame_credentials(d, s, &e)) doc_ok(d, s, "type '%s', warehouse %s; its databases cannot be listed, which the job does not need: %s", c->kind, cat_warehouse(c->cat), doc_error_text(d, &e));
}

/* A table bucket by the name that the account gives it: its ARN follows from identity and region, as in a session. */
static bool name_bucket(doctor *d, doc_catalog *c, doc_step *s) {
    if (!c->account || !c->region) {
        doc_fail(d, s, "the ARN of table bucket '%s' needs the account, and STS has not said which it is", c->need->bucket);
        doc_advise(d, s, "let this machine reach STS, or CREATE CATALOG with 'catalog-type' = 's3tables' and the bucket's ARN as 'warehouse'");
        return false;
    }
    fz_pair *o = FZ_ANEWN(d->a, fz_pair, 3);
    o[0] = (fz_pair){.key = "type", .value = "iceberg"};
    o[1] = (fz_pair){.key = "catalog-type", .value = "s3tables"};
    o[2] = (fz_pair){.key = "warehouse", .value = fz_arena_printf(d->a, "arn:%s:s3tables:%s:%s:bucket/%s", aws_partition(c->region), c->region, c->account, c->need->bucket)};
    ops_need_catalog *full = FZ_ANEW(d->a, ops_need_catalog);
    *full = *c->need;
    full->options = o;
    full->n_options = 3;
    c->need = full;
    return true;
}

static void open_catalog(doctor *d, doc_catalog *c) {
    doc_step *s = doc_begin(d, "doctor.catalog", c->need->name);
    const doc_step *below = c->ground;
    c->ground = s;
    if (doc_blocked(d, s, below) || (c->need->bucket && !name_bucket(d, c, s))) return;
    const fz_pair *options;
    size_t n = harmless(d, c, &options);
    fz_error e = {0};
    const char *uri = opt(c->need, "uri"), *at = uri && !strchr(uri, '@') && !strstr(uri, "password") ? uri : opt(c->need, "warehouse");
    doc_asked(d, s, "open the catalog of type '%s'%s%s", c->kind, at ? " at " : "", at ? at : "");
    if (cat_open(c->need->name, options, n, NULL, &c->cat, &e) != FZ_OK) {
        if (strcmp(c->kind, "sql") == 0) missing_sql(d, c, s, &e);
        else doc_refused(d, c, s, NULL, NULL, &e);
        return;
    }
    if (strcmp(c->kind, "hadoop") == 0) hadoop_step(d, c, s);
    else if (strcmp(c->kind, "s3tables") == 0) table_bucket_step(d, c, s);
    else doc_ok(d, s, "type '%s'%s%s", c->kind, cat_warehouse(c->cat) ? ", warehouse " : "", cat_warehouse(c->cat) ? cat_warehouse(c->cat) : "");
}

void doc_catalogs(doctor *d) {
    d->catalogs = FZ_ANEWN(d->a, doc_catalog, d->plan->n_catalogs + 1);
    for (uint32_t i = 0; i < d->plan->n_catalogs; i++) {
        doc_catalog *c = &d->catalogs[i];
        fz_error e = {0};
        c->need = &d->plan->catalogs[i];
        c->kind = c->need->bucket ? "s3tables" : "";
        if ((!c->need->bucket && cat_check(c->need->name, c->need->options, c->need->n_options, &c->kind, &e) != FZ_OK) || fio_new(c->need->options, c->need->n_options, &c->io, &e) != FZ_OK) {
            doc_step *s = doc_begin(d, "doctor.catalog", c->need->name);
            doc_fail_error(d, s, &e);
            c->ground = c->store = s;
            continue;
        }
        doc_aws_ground(d, c);
        c->below = c->ground;
        doc_federation(d, c);
        open_catalog(d, c);
        doc_lake(d, c);
    }
}

/* ---- databases ---- */

/* That the table bucket is missing may be learned only here: who may not list it is not told before. */
static void database_refused(doctor *d, doc_catalog *c, doc_step *s, const char *name, const fz_error *e) {
    doc_step *of_catalog = doc_find(d, "doctor.catalog", c->need->name);
    if (strcmp(e->code, "catalog.no-table-bucket") != 0 || !of_catalog) {
        doc_refused(d, c, s, name, NULL, e);
        return;
    }
    if (doc_good(of_catalog)) no_table_bucket(d, of_catalog, e);
    (void)doc_blocked(d, s, of_catalog);
}

static const doc_step *database_step(doctor *d, uint32_t index) {
    const ops_need_database *n = &d->plan->databases[index];
    doc_catalog *c = &d->catalogs[n->catalog];
    const char *text = fz_arena_printf(d->a, "%s.%s", c->need->name, n->name);
    doc_step *s = doc_find(d, "doctor.database", text);
    if (s) return s;
    s = doc_begin(d, "doctor.database", text);
    bool there = false;
    fz_error e = {0};
    doc_asked(d, s, "does the database '%s' exist in catalog '%s' (type '%s')?", n->name, c->need->name, c->kind);
    if (doc_blocked(d, s, c->ground)) return s;
    if (c->cat && cat_namespace_exists(c->cat, cat_ident_of(c->cat, d->a, n->name, NULL).ns, &there, &e) != FZ_OK) database_refused(d, c, s, n->name, &e);
    else if (there) doc_ok(d, s, "it is there");
    else if (n->made) doc_ok(d, s, "it is not there: the script makes it");
    else {
        doc_fail(d, s, "there is no database '%s' in catalog '%s'", n->name, c->need->name);
        doc_advise(d, s, "CREATE DATABASE IF NOT EXISTS `%s`.`%s`; in the script, or correct the name", c->need->name, n->name);
    }
    return s;
}

/* ---- tables ---- */

static bool is_absent(const fz_error *e) { return strcmp(e->code, "catalog.table-not-found") == 0 || strcmp(e->code, "catalog.namespace-not-found") == 0; }

static void load(doctor *d, doc_catalog *c, doc_table *t, doc_step *s) {
    const char *database = d->plan->databases[t->need->database].name;
    fz_error e = {0};
    doc_asked(d, s, "load '%s' and its current metadata file", t->need->text);
    if (c->cat) {
        cat_ident id = cat_ident_of(c->cat, d->a, database, t->need->name);
        fz_status rc = cat_load_table(c->cat, &id, &t->loaded, &e);
        if (rc == FZ_OK) {
            const ice_metadata *m = t->loaded->metadata;
            doc_ok(d, s, "it is there, at %s", m->location);
            return;
        }
        t->loaded = NULL;
        if (!is_absent(&e)) {
            doc_refused(d, c, s, database, t->need->name, &e);
            return;
        }
    }
    if (t->need->made) {
        t->absent = true;
        doc_ok(d, s, "it is not there: the script makes it%s",
               strcmp(c->kind, "glue") == 0 ? " (with glue:CreateTable, a right that is not tried)" : strcmp(c->kind, "s3tables") == 0 ? " (with s3tables:CreateTable, a right that is not tried)" : "");
        return;
    }
    doc_fail(d, s, "there is no table '%s' in database '%s' of catalog '%s'", t->need->name, database, c->need->name);
    doc_advise(d, s, "CREATE TABLE IF NOT EXISTS `%s`.`%s`.`%s` (...); in the script, or run the script that makes it first", c->need->name, database, t->need->name);
}

/* Where the table's files go; NULL: only the catalog knows, once it makes the table. */
static const char *place_of(doctor *d, doc_catalog *c, const doc_table *t) {
    if (t->loaded) return t->loaded->metadata->location;
    if (t->need->location) return t->need->location;
    const char *database = d->plan->databases[t->need->database].name, *location = NULL;
    fz_error ignored;
    if (c->cat) {
        cat_ident id = cat_ident_of(c->cat, d->a, database, t->need->name);
        if (cat_default_location(c->cat, &id, d->a, &location, &ignored) == FZ_OK) return *location ? location : NULL;
    }
    const char *warehouse = opt(c->need, "warehouse"); /* of some services a name or an ARN */
    return warehouse && (*warehouse == '/' || strstr(warehouse, "://") || fz_starts(warehouse, "file:")) ? warehouse : NULL;
}

static void table_steps(doctor *d, doc_table *t) {
    doc_catalog *c = &d->catalogs[t->need->catalog];
    const doc_step *ground = database_step(d, t->need->database);
    doc_step *s = doc_begin(d, "doctor.table", t->need->text);
    t->step = s;
    if (!doc_blocked(d, s, ground) && !doc_blocked(d, s, c->store)) load(d, c, t, s); /* its metadata lies in the store */
    if (t->loaded && t->need->read) {
        fz_error e = {0};
        if (d->plan->know(d->plan->cx, t->need, t->loaded, &e) != FZ_OK) doc_fail_error(d, s, &e);
    }
}

static bool on_s3(const char *location) { return location && fz_starts(location, "s3"); }

static void store_steps(doctor *d, doc_table *t) {
    doc_catalog *c = &d->catalogs[t->need->catalog];
    const char *place = doc_good(t->step) ? place_of(d, c, t) : t->need->location, *warehouse = opt(c->need, "warehouse");
    if (!place && on_s3(warehouse) && !doc_good(t->step) && c->store && c->io) (void)doc_bucket(d, c->io, warehouse, c->store); /* whatever is wrong with the table, this will be wrong after it */
    if (!place && !doc_good(t->step) && warehouse && fio_local_path(warehouse)) place = warehouse;
    if (!place && doc_good(t->step)) return;
    /* A table that cannot be reached says nothing of its store, unless the script names the place. */
    doc_store_probe(d, t->loaded ? t->loaded->io : c->io, place ? place : "s3://unknown/x", t->need->text, place && c->store ? c->store : place ? NULL : t->step);
    if (on_s3(place)) doc_staging(d, c->need->options, c->need->n_options);
}

/* Written by an INSERT or made by the script: its files go somewhere. */
static bool is_target(const ops_need_table *n) { return n->written || n->made; }

void doc_tables(doctor *d) {
    d->tables = FZ_ANEWN(d->a, doc_table, d->plan->n_tables + 1);
    for (uint32_t i = 0; i < d->plan->n_databases; i++) (void)database_step(d, i);
    for (uint32_t i = 0; i < d->plan->n_tables; i++) d->tables[i].need = &d->plan->tables[i];
    for (uint32_t i = 0; i < d->plan->n_tables; i++) /* those that are read come first: what they look like is needed below */
        if (d->plan->tables[i].read || !is_target(&d->plan->tables[i])) table_steps(d, &d->tables[i]);
    for (uint32_t i = 0; i < d->plan->n_tables; i++) {
        doc_table *t = &d->tables[i];
        if (!is_target(t->need)) continue;
        if (!t->step) table_steps(d, t);
        doc_table_format(d, t);
        doc_table_schema(d, t);
        store_steps(d, t);
        doc_table_snapshot(d, t);
    }
}
