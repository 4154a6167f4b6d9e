/* Options of CREATE CATALOG: one table, from which checks, hints and the reference page come. */
#include "catalog/catalog_int.h"

static const fz_option options[] = {
    {"type", FZ_OPT_STRING, FZ_OPT_USED, NULL, NULL, "Kind of catalog for Flink; must be 'iceberg'.", NULL},
    {"catalog-type", FZ_OPT_STRING, FZ_OPT_USED, NULL, NULL, "sql (or jdbc: the same), hadoop, glue, s3tables or rest. This or 'catalog-impl' must be given.", NULL},
    {"catalog-impl", FZ_OPT_STRING, FZ_OPT_USED, NULL, NULL, "The class name of Iceberg's Java catalog, as another way to say 'catalog-type'.", NULL},
    {"catalog-name", FZ_OPT_STRING, FZ_OPT_USED, NULL, NULL, "catalog_name of the SQL catalog's rows, when it is not the name in CREATE CATALOG.", NULL},
    {"uri", FZ_OPT_STRING, FZ_OPT_USED, NULL, NULL, "SQL catalog: sqlite:////dir/file.db or postgresql://user:password@host:5432/db (as PyIceberg), jdbc:sqlite:/dir/file.db or jdbc:postgresql://host:5432/db?user=... (as Java). REST catalog: its address, without /v1.", NULL},
    {"warehouse", FZ_OPT_STRING, FZ_OPT_USED, NULL, NULL, "Location under which new tables get their directories; S3 Tables: ARN of the table bucket; REST: what the server calls it. Glue needs none when its databases have locations.", NULL},
    {"default-database", FZ_OPT_STRING, FZ_OPT_USED, "default", NULL, "Database after USE CATALOG.", NULL},
    {"base-namespace", FZ_OPT_STRING, FZ_OPT_USED, NULL, NULL, "Namespace (levels joined by dots) under which the databases lie.", NULL},
    {"table-default.*", FZ_OPT_STRING, FZ_OPT_USED, NULL, NULL, "Properties that new tables get unless CREATE TABLE says otherwise.", NULL},
    {"table-override.*", FZ_OPT_STRING, FZ_OPT_USED, NULL, NULL, "Properties that new tables get whatever CREATE TABLE says.", NULL},
    {"frazil.sql.busy-timeout", FZ_OPT_DURATION, FZ_OPT_USED, "10 s", NULL, "How long a call waits for a catalog that another process has locked, before it counts as failed and may be tried again.", NULL},
    {"jdbc.schema-version", FZ_OPT_ENUM, FZ_OPT_USED, "V0", "V0|V1", "V1: an SQL catalog of the older schema gets the column iceberg_type. New catalogs always have it.", NULL},
    {"schema_version", FZ_OPT_ENUM, FZ_OPT_USED, "v0", "v0|v1", "The same under PyIceberg's name.", NULL},
    {"jdbc.init-catalog-tables", FZ_OPT_BOOL, FZ_OPT_USED, "true", NULL, "Whether a missing SQL catalog is made.", NULL},
    {"init_catalog_tables", FZ_OPT_BOOL, FZ_OPT_USED, "true", NULL, "The same under PyIceberg's name.", NULL},
    {"jdbc.strict-mode", FZ_OPT_BOOL, FZ_OPT_NO_MEANING, NULL, NULL, NULL, "a namespace must always exist before its tables"},
    {"jdbc.*", FZ_OPT_STRING, FZ_OPT_USED, NULL, NULL, "SQL catalog on PostgreSQL: the properties of its JDBC driver, see below. SQLite has none of them.", NULL},
    {"property-version", FZ_OPT_STRING, FZ_OPT_NO_MEANING, NULL, NULL, NULL, "there is one version of the options"},
    {"clients", FZ_OPT_INT, FZ_OPT_NO_MEANING, NULL, NULL, NULL, "there is no pool of clients"},
    {"client.pool.cache.*", FZ_OPT_STRING, FZ_OPT_NO_MEANING, NULL, NULL, NULL, "there is no pool of clients"},
    {"cache-enabled", FZ_OPT_BOOL, FZ_OPT_NO_MEANING, NULL, NULL, NULL, "tables are always loaded anew"},
    {"cache.*", FZ_OPT_STRING, FZ_OPT_NO_MEANING, NULL, NULL, NULL, "tables are always loaded anew"},
    {"io-impl", FZ_OPT_STRING, FZ_OPT_NO_MEANING, NULL, NULL, NULL, "the store follows from the scheme of a location"},
    {"io.*", FZ_OPT_STRING, FZ_OPT_NO_MEANING, NULL, NULL, NULL, "it tunes Java's file I/O"},
    {"hadoop-conf-dir", FZ_OPT_STRING, FZ_OPT_NO_MEANING, NULL, NULL, NULL, "there is no Hadoop in here"},
    {"hive-conf-dir", FZ_OPT_STRING, FZ_OPT_NO_MEANING, NULL, NULL, NULL, "there is no Hive in here"},
    {"lock-impl", FZ_OPT_STRING, FZ_OPT_NO_MEANING, NULL, NULL, NULL, "a commit is one atomic step and needs no lock manager"},
    {"lock.*", FZ_OPT_STRING, FZ_OPT_NO_MEANING, NULL, NULL, NULL, "a commit is one atomic step and needs no lock manager"},
    {"suppress-permission-error", FZ_OPT_BOOL, FZ_OPT_NO_MEANING, NULL, NULL, NULL, "what cannot be read is always an error"},
    {"metrics-reporter-impl", FZ_OPT_STRING, FZ_OPT_NO_MEANING, NULL, NULL, NULL, "metrics are reported by frazil itself"},
    {"fs.*", FZ_OPT_STRING, FZ_OPT_NO_MEANING, NULL, NULL, NULL, "it is a setting of Hadoop's file systems"},
    {"echo", FZ_OPT_STRING, FZ_OPT_NO_MEANING, NULL, NULL, NULL, "it is a setting of SQLAlchemy"},
    {"pool_pre_ping", FZ_OPT_STRING, FZ_OPT_NO_MEANING, NULL, NULL, NULL, "it is a setting of SQLAlchemy"},
    {"py-io-impl", FZ_OPT_STRING, FZ_OPT_NO_MEANING, NULL, NULL, NULL, "the store follows from the scheme of a location"},
    {"glue.id", FZ_OPT_STRING, FZ_OPT_USED, NULL, NULL, "Glue: id of the Data Catalog, when it is not the account's own.", NULL},
    {"glue.endpoint", FZ_OPT_STRING, FZ_OPT_USED, NULL, NULL, "Glue: URL of another endpoint than AWS's.", NULL},
    {"glue.skip-archive", FZ_OPT_BOOL, FZ_OPT_USED, "true", NULL, "Glue: keeps no old version of the table's entry at each commit.", NULL},
    {"glue.skip-name-validation", FZ_OPT_BOOL, FZ_OPT_USED, "false", NULL, "Glue: takes names with other characters than lower-case letters, digits and underscores.", NULL},
    {"glue.lakeformation-enabled", FZ_OPT_BOOL, FZ_OPT_USED, "false", NULL, "Glue: 'true' (credentials vended by Lake Formation) is refused; grants count without it.", NULL},
    {"s3tables.endpoint", FZ_OPT_STRING, FZ_OPT_USED, NULL, NULL, "S3 Tables: URL of another endpoint than AWS's.", NULL},
    {"s3tables.client-factory-impl", FZ_OPT_STRING, FZ_OPT_NO_MEANING, NULL, NULL, NULL, "it names a class of Java"},
    {"glue.account-id", FZ_OPT_STRING, FZ_OPT_NO_MEANING, NULL, NULL, NULL, "it serves credentials that Lake Formation vends"},
    {NULL, FZ_OPT_STRING, FZ_OPT_USED, NULL, NULL, NULL, NULL},
};
const fz_option *cat_options(void) { return options; }

const char *cat_option(const cat_catalog *c, const char *key) {
    const char *v = fz_pair_get(c->options, c->n_options, key);
    return v ? v : fz_option_find(options, key)->dflt;
}

#define HERE "this build has 'sql' (SQLite, PostgreSQL), 'hadoop' (local files), 'glue', 's3tables' and 'rest'"

/* What names a kind of catalog, by short name and by Java class. ops NULL: known, but not in this build. */
static const struct kind { const char *name, *impl; const cat_ops *ops; } kinds[] = {
    {"sql", NULL, &cat_sql_ops},
    {"jdbc", "org.apache.iceberg.jdbc.JdbcCatalog", &cat_sql_ops},
    {"hadoop", "org.apache.iceberg.hadoop.HadoopCatalog", &cat_hadoop_ops},
    {"glue", "org.apache.iceberg.aws.glue.GlueCatalog", &cat_glue_ops},
    {"rest", "org.apache.iceberg.rest.RESTCatalog", &cat_rest_ops},
    {"s3tables", "software.amazon.s3tables.iceberg.S3TablesCatalog", &cat_s3tables_ops},
    {"hive", "org.apache.iceberg.hive.HiveCatalog", NULL},
    {"nessie", "org.apache.iceberg.nessie.NessieCatalog", NULL},
    {"dynamodb", "org.apache.iceberg.aws.dynamodb.DynamoDbCatalog", NULL},
    {"bigquery", "org.apache.iceberg.gcp.bigquery.BigQueryMetastoreCatalog", NULL},
};

static fz_status bad(fz_error *err, const fz_pair *at, const char *fmt, const char *x) {
    char text[512];
    snprintf(text, sizeof text, fmt, x);
    fz_fail(err, FZ_USER, "catalog.option", "%s", text);
    if (at) fz_at(err, at->line, at->column);
    return FZ_USER;
}

static const fz_pair *given(const cat_catalog *c, const char *key) {
    for (size_t i = c->n_options; i-- > 0;)
        if (strcmp(c->options[i].key, key) == 0) return &c->options[i];
    return NULL;
}

static fz_status choose_kind(cat_catalog *c, fz_error *err) {
    const fz_pair *type = given(c, "type"), *ct = given(c, "catalog-type"), *ci = given(c, "catalog-impl");
    if (!type) return bad(err, NULL, "the catalog '%s' has no option 'type'; write 'type' = 'iceberg'", c->name);
    if (!fz_ieq(type->value, "iceberg")) return bad(err, type, "unknown catalog type '%s'; only 'iceberg' is known", type->value);
    if (ct && ci) return bad(err, ci, "the catalog '%s' has both 'catalog-type' and 'catalog-impl'; one of them says it", c->name);
    if (!ct && !ci) {
        bad(err, type, "the catalog '%s' has no option 'catalog-type'", c->name);
        return fz_hint(err, "Flink would take 'hive'; " HERE);
    }
    const fz_pair *p = ct ? ct : ci;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (ct ? !fz_ieq(p->value, kinds[i].name) : !kinds[i].impl || strcmp(p->value, kinds[i].impl) != 0) continue;
        c->ops = kinds[i].ops;
        if (c->ops) return FZ_OK;
        fz_fail(err, FZ_USER, "catalog.not-in-this-build", "catalogs of type '%s' are not in this build", kinds[i].name);
        fz_at(err, p->line, p->column);
        return fz_hint(err, HERE);
    }
    bad(err, p, ct ? "unknown 'catalog-type' '%s'" : "unknown 'catalog-impl' '%s'", p->value);
    return fz_hint(err, HERE);
}

static const fz_option *of_aws(const char *key) {
    const fz_option *o = fz_option_find(fio_options(), key);
    return o ? o : fz_option_find(aws_options(), key);
}

/* Options of one service are idle in the catalogs of others. */
static bool of_another(const cat_catalog *c, const char *key) {
    static const char *const services[] = {"glue.", "s3tables.", "rest."};
    if (c->ops != &cat_rest_ops && !fz_option_find(options, key) && !of_aws(key)) return true; /* REST's without that prefix */
    for (size_t i = 0; i < sizeof services / sizeof *services; i++)
        if (fz_starts(key, services[i])) return strncmp(services[i], c->ops->type, strlen(c->ops->type)) != 0 || services[i][strlen(c->ops->type)] != '.';
    return false;
}

/* Java's classes for what the scheme of a location says here: nothing to warn of. */
static bool names_our_store(const char *io_impl) {
    static const char *const same[] = {"org.apache.iceberg.aws.s3.S3FileIO", "org.apache.iceberg.io.ResolvingFileIO", "org.apache.iceberg.hadoop.HadoopFileIO"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (strcmp(io_impl, same[i]) == 0) return true;
    return false;
}

static fz_status check_names(cat_catalog *c, fz_error *err) {
    for (size_t i = 0; i < c->n_options; i++) {
        const fz_pair *p = &c->options[i];
        const fz_option *o = fz_option_find(options, p->key);
        if (!o && c->ops == &cat_rest_ops) o = fz_option_find(cat_rest_options(), p->key); /* it has two of the AWS names too */
        if (!o) o = of_aws(p->key);
        if (!o) o = fz_option_find(cat_rest_options(), p->key);
        if (!o) {
            bad(err, p, "unknown catalog option '%s'", p->key);
            const char *near = fz_option_nearest(options, p->key);
            if (!near) near = fz_option_nearest(fio_options(), p->key);
            if (!near) near = fz_option_nearest(aws_options(), p->key);
            if (!near) near = fz_option_nearest(cat_rest_options(), p->key);
            return near ? fz_hint(err, "did you mean '%s'?", near) : FZ_USER;
        }
        if (o->state == FZ_OPT_REFUSED) {
            bad(err, p, "the catalog option '%s' cannot be honoured", p->key);
            return fz_hint(err, "%s", o->why);
        }
        if (strcmp(p->key, "io-impl") == 0 && names_our_store(p->value)) continue;
        if (o->state == FZ_OPT_NO_MEANING || of_another(c, p->key)) {
            cat_names_add(c->arena, &c->ignored, p->key);
            continue;
        }
        if (fz_option_check(o, p->value, err) != FZ_OK) return fz_at(err, p->line, p->column);
    }
    return FZ_OK;
}

static cat_namespace split_dots(fz_arena *a, const char *s) {
    cat_names v = {0};
    while (s && *s) {
        const char *dot = strchr(s, '.');
        cat_names_add(a, &v, fz_arena_strndup(a, s, dot ? (size_t)(dot - s) : strlen(s)));
        s = dot ? dot + 1 : NULL;
    }
    return (cat_namespace){v.n, v.v};
}

fz_status cat_options_check(cat_catalog *c, const cat_defaults *d, fz_error *err) {
    FZ_TRY(choose_kind(c, err));
    FZ_TRY(check_names(c, err));
    const char *warehouse = cat_option(c, "warehouse"), *db = fz_pair_get(c->options, c->n_options, "default-database");
    bool named = warehouse && *warehouse;
    if (!named && !c->ops->warehouse_optional) return bad(err, NULL, "the catalog '%s' has no option 'warehouse'", c->name);
    c->warehouse = named ? ice_location_trim(c->arena, warehouse) : NULL;
    c->catalog_name = cat_option(c, "catalog-name") ? cat_option(c, "catalog-name") : c->name;
    c->default_database = db ? db : d && d->default_database ? fz_arena_strdup(c->arena, d->default_database) : cat_option(c, "default-database");
    c->base = split_dots(c->arena, cat_option(c, "base-namespace"));
    c->uri = cat_option(c, "uri");
    FZ_TRY(cat_namespace_check(c->base, err));
    const char *busy = fz_pair_get(c->options, c->n_options, "frazil.sql.busy-timeout");
    if (!busy && d && d->busy_timeout_ms > 0) return c->busy_timeout_ms = d->busy_timeout_ms, FZ_OK;
    return fz_parse_duration_ms(cat_option(c, "frazil.sql.busy-timeout"), &c->busy_timeout_ms, err);
}

static fz_status not_sqlite(const char *uri, fz_error *err) {
    fz_fail(err, FZ_USER, "catalog.option", "'%s' is not the URI of an SQLite database", uri);
    return fz_hint(err, "write sqlite:////dir/file.db (four slashes before an absolute path) or jdbc:sqlite:/dir/file.db");
}

fz_status cat_sqlite_file(fz_arena *a, const char *uri, const char **file, bool *is_uri, fz_error *err) {
    *is_uri = false;
    if (fz_starts(uri, "jdbc:sqlite:")) {
        const char *p = uri + 12;
        *is_uri = fz_starts(p, "file:");
        size_t n = *is_uri ? strlen(p) : strcspn(p, "?"); /* "?..." are settings of the JDBC driver */
        *file = n == 0 ? ":memory:" : fz_arena_strndup(a, p, n);
        return FZ_OK;
    }
    if (fz_starts(uri, "sqlite:") || fz_starts(uri, "sqlite+")) { /* sqlite+driver:///file, as SQLAlchemy has it */
        const char *p = strstr(uri, "://");
        if (p && (p[3] == '/' || p[3] == 0)) {
            p += 3 + (p[3] == '/');
            size_t n = strcspn(p, "?");
            *file = n == 0 ? ":memory:" : fz_arena_strndup(a, p, n);
            return FZ_OK;
        }
    }
    bool jdbc = fz_starts(uri, "jdbc:");
    size_t scheme = (jdbc ? 5 : 0) + strcspn(uri + (jdbc ? 5 : 0), jdbc ? ":" : ":+/");
    if (uri[scheme] == ':' || uri[scheme] == '+') { /* what follows may hold a password */
        if (fz_starts(uri, "sqlite")) return not_sqlite(uri, err);
        fz_fail(err, FZ_USER, "catalog.not-in-this-build", "SQL catalogs on databases of the kind '%.*s' are not in this build", (int)scheme, uri);
        return fz_hint(err, "SQLite and PostgreSQL work: sqlite:////dir/file.db, postgresql://user:password@host:5432/database");
    }
    return not_sqlite(uri, err);
}
