/* The filesystem catalog, as Iceberg's HadoopCatalog lays it out:
 *
 *     warehouse/db/table/metadata/v1.metadata.json v2.metadata.json ... version-hint.text
 *
 * A directory whose metadata/ holds a .metadata.json is a table, any other one a namespace. The current version is the highest
 * vN; version-hint.text says where to begin to look and may be behind.
 *
 * Invariants
 *  1. Version N + 1 is made by create-if-absent of its metadata file: one of those who try gets it. A lock file keeps writers
 *     of this program from trying at once, and guards against the two names that a version can have (plain and gzip).
 *  2. Old metadata files are only ever removed oldest first, so while vN exists and v(N+1) does not, N is current. A base whose
 *     own file is gone is stale.
 *  3. The hint is written after the fact; failing to write it is no failure.
 */
#include "catalog/catalog_int.h"

#define LOCK_FILE "metadata/.frazil-commit.lock"

static const char *ns_dir(const cat_catalog *c, cat_namespace ns, fz_arena *a) {
    const char *s = c->warehouse;
    for (uint32_t i = 0; i < ns.n; i++) s = fio_join(a, s, ns.level[i]);
    return s;
}
static const char *table_dir(const cat_catalog *c, const cat_ident *id, fz_arena *a) { return fio_join(a, ns_dir(c, id->ns, a), id->name); }

static fz_status hadoop_open(cat_catalog *c, fz_error *err) {
    if (fio_local_path(c->warehouse)) return FZ_OK;
    fz_fail(err, FZ_USER, "catalog.option", "the hadoop catalog '%s' wants its warehouse on local files, not in '%s'", c->name, c->warehouse);
    return fz_hint(err, "write 'warehouse' = 'file:///dir'");
}
static void hadoop_close(cat_catalog *c) { (void)c; }

/* ---- versions ---- */

static const char *const endings[] = {".metadata.json", ".gz.metadata.json", ".metadata.json.gz"};

/* The file of version v of the table in dir, NULL when there is none. */
static fz_status version_file(const char *dir, int64_t v, fz_arena *a, const char **out, fz_error *err) {
    *out = NULL;
    for (unsigned i = 0; i < 3; i++) {
        bool there;
        const char *file = fio_join(a, dir, fz_arena_printf(a, "metadata/v%lld%s", (long long)v, endings[i]));
        FZ_TRY(fio_exists(NULL, file, &there, err));
        if (there) {
            *out = file;
            break;
        }
    }
    return FZ_OK;
}

static int64_t hinted(const char *dir, fz_arena *a) {
    fz_buf b = {0};
    fz_error ignored; /* without a hint the directory is listed */
    int64_t v = -1;
    if (fio_read(NULL, fio_join(a, dir, "metadata/version-hint.text"), 64, &b, &ignored) != FZ_OK ||
        !fz_parse_i64(fz_sv_trim((fz_sv){(const char *)b.data, b.len}), &v)) v = -1;
    fz_buf_free(&b);
    return v;
}

static bool take_highest(void *cx, const char *location, uint64_t size, int64_t mtime_ms) {
    (void)size, (void)mtime_ms;
    int64_t *best = cx;
    const char *name = strrchr(location, '/') + 1;
    int64_t v = name[0] == 'v' ? ice_metadata_version_of(location) : -1;
    if (v > *best) *best = v;
    return true;
}

/* Current version and its file; *file NULL: no table. */
static fz_status newest(const char *dir, fz_arena *a, int64_t *version, const char **file, fz_error *err) {
    const char *next;
    int64_t v = hinted(dir, a);
    *file = NULL;
    if (v >= 0) FZ_TRY(version_file(dir, v, a, file, err));
    if (!*file) {
        v = -1;
        FZ_TRY(fio_list(NULL, fio_join(a, dir, "metadata"), take_highest, &v, err));
        if (v < 0) return FZ_OK;
        FZ_TRY(version_file(dir, v, a, file, err));
    }
    for (;; v++) {
        FZ_TRY(version_file(dir, v + 1, a, &next, err));
        if (!next) break;
        *file = next;
    }
    *version = v;
    return FZ_OK;
}

static bool take_any_table(void *cx, const char *location, uint64_t size, int64_t mtime_ms) {
    (void)size, (void)mtime_ms;
    const char *name = strrchr(location, '/') + 1;
    *(bool *)cx = fz_ends(name, ".metadata.json") || fz_ends(name, ".metadata.json.gz");
    return !*(bool *)cx;
}
static fz_status is_table(const char *dir, fz_arena *a, bool *out, fz_error *err) {
    const char *hint = fio_join(a, dir, "metadata/version-hint.text");
    FZ_TRY(fio_exists(NULL, hint, out, err)); /* spares the listing nearly always */
    return *out ? FZ_OK : fio_list(NULL, fio_join(a, dir, "metadata"), take_any_table, out, err);
}

/* ---- namespaces ---- */

static fz_status hadoop_namespace_exists(cat_catalog *c, cat_namespace ns, bool *out, fz_error *err) {
    fz_arena *a = fz_arena_new();
    const char *dir = ns_dir(c, ns, a);
    bool table = false;
    fz_status rc = fio_dir_exists(dir, out, err);
    if (rc == FZ_OK && *out && ns.n > 0) rc = is_table(dir, a, &table, err);
    *out = *out && !table;
    fz_arena_free(a);
    return rc;
}

typedef struct children { const char *dir; fz_arena *a; cat_names *out; bool tables; fz_status rc; fz_error *err; } children;
static bool take_child(void *cx, const char *name) {
    children *k = cx;
    bool table = false;
    k->rc = is_table(fio_join(k->a, k->dir, name), k->a, &table, k->err);
    if (k->rc == FZ_OK && table == k->tables) cat_names_add(k->a, k->out, name);
    return k->rc == FZ_OK;
}
static fz_status list_children(cat_catalog *c, cat_namespace ns, bool tables, fz_arena *a, cat_names *out, fz_error *err) {
    children k = {ns_dir(c, ns, a), a, out, tables, FZ_OK, err};
    FZ_TRY(fio_list_dirs(NULL, k.dir, take_child, &k, err));
    return k.rc;
}
static fz_status hadoop_list_namespaces(cat_catalog *c, cat_namespace parent, fz_arena *a, cat_names *out, fz_error *err) {
    return list_children(c, parent, false, a, out, err);
}
static fz_status hadoop_list_tables(cat_catalog *c, cat_namespace ns, fz_arena *a, cat_names *out, fz_error *err) {
    return list_children(c, ns, true, a, out, err);
}

static fz_status no_properties(const cat_catalog *c, fz_error *err) {
    return fz_fail(err, FZ_USER, "catalog.option", "the hadoop catalog '%s' keeps no properties and no comment of a database", c->name);
}
static fz_status hadoop_create_namespace(cat_catalog *c, cat_namespace ns, const fz_pair *props, size_t n, fz_error *err) {
    (void)props;
    if (n > 0) return no_properties(c, err);
    fz_arena *a = fz_arena_new();
    bool there = false;
    const char *dir = ns_dir(c, ns, a);
    fz_status rc = fio_dir_exists(dir, &there, err);
    if (rc == FZ_OK && there)
        rc = fz_fail(err, FZ_USER, "catalog.namespace-exists", "the database '%s' (or a table of that name) exists already in catalog '%s'", cat_namespace_text(a, ns), c->name);
    if (rc == FZ_OK) rc = fio_dir_make(dir, err);
    fz_arena_free(a);
    return rc;
}
static fz_status hadoop_set_properties(cat_catalog *c, cat_namespace ns, const fz_pair *props, size_t n, fz_error *err) {
    (void)ns, (void)props;
    return n > 0 ? no_properties(c, err) : FZ_OK;
}
static fz_status hadoop_get_properties(cat_catalog *c, cat_namespace ns, fz_arena *a, fz_pair **out, size_t *n, fz_error *err) {
    (void)err;
    *out = FZ_ANEW(a, fz_pair);
    **out = (fz_pair){.key = "location", .value = ns_dir(c, ns, a)};
    *n = 1;
    return FZ_OK;
}
static fz_status hadoop_drop_namespace(cat_catalog *c, cat_namespace ns, fz_error *err) {
    fz_arena *a = fz_arena_new();
    fz_status rc = fio_dir_remove(ns_dir(c, ns, a), err);
    if (rc != FZ_OK && strcmp(err->code, "file.not-empty") == 0)
        rc = fz_fail(err, FZ_USER, "catalog.namespace-not-empty", "the database '%s' of catalog '%s' is not empty", cat_namespace_text(a, ns), c->name);
    fz_arena_free(a);
    return rc;
}

/* ---- tables ---- */

static fz_status hadoop_find(cat_catalog *c, const cat_ident *id, fz_arena *a, const char **location, fz_error *err) {
    int64_t v;
    return newest(table_dir(c, id, a), a, &v, location, err);
}

static fz_status check_movable(const cat_ident *id, const char *dir, const cat_table *base, const ice_metadata *m, fz_arena *a, fz_error *err) {
    if (strcmp(m->location, base ? base->metadata->location : ice_location_trim(a, dir)) != 0) {
        fz_fail(err, FZ_USER, "catalog.option", "the table '%s' of a hadoop catalog lies in '%s' and cannot have the location '%s'", cat_ident_text(a, id),
                base ? base->metadata->location : dir, m->location);
        return fz_hint(err, "leave the location out");
    }
    if (ice_property(m, "write.metadata.path", NULL))
        return fz_fail(err, FZ_USER, "catalog.option", "the table '%s' of a hadoop catalog cannot have 'write.metadata.path'", cat_ident_text(a, id));
    return FZ_OK;
}

/* Under the lock: base is still current, or there is no table yet. */
static fz_status check_current(const cat_ident *id, const char *dir, const cat_table *base, fz_arena *a, fz_error *err) {
    const char *mine = NULL, *next;
    int64_t v = 0;
    if (!base) {
        FZ_TRY(newest(dir, a, &v, &next, err));
        if (!next) return FZ_OK;
        return fz_fail(err, FZ_USER, "catalog.table-exists", "the table '%s' exists already: '%s'", cat_ident_text(a, id), next);
    }
    FZ_TRY(version_file(dir, base->version, a, &mine, err));
    FZ_TRY(version_file(dir, base->version + 1, a, &next, err));
    if (mine && !next) return FZ_OK;
    fz_fail(err, FZ_CONFLICT, "catalog.conflict", "the table '%s' has moved on since it was loaded", cat_ident_text(a, id));
    return fz_detail(err, "built on version %lld, %s", (long long)base->version, next ? "the next one exists" : "which is gone");
}

static fz_status make_version(const cat_ident *id, const char *dir, const cat_table *base, const ice_metadata *m, const char *file, fz_arena *a, fz_error *err) {
    FZ_TRY(check_current(id, dir, base, a, err));
    if (base) FZ_TRY(fz_fault_status("commit.metadata", err));
    if (base) FZ_TRY(fz_fault_status("commit.swap", err));
    fz_status rc = cat_metadata_write(NULL, file, m, err);
    if (rc == FZ_CONFLICT && base) return fz_fail(err, FZ_CONFLICT, "catalog.conflict", "another writer has made '%s'", file);
    if (rc == FZ_CONFLICT) return fz_fail(err, FZ_USER, "catalog.table-exists", "the table '%s' exists already: '%s'", cat_ident_text(a, id), file);
    if (rc == FZ_UNKNOWN) return fz_context(err, "the commit is visible, but may not last"), FZ_UNKNOWN;
    return rc;
}

static void write_hint(const char *dir, int64_t version, fz_arena *a) {
    fz_error err;
    const char *text = fz_arena_printf(a, "%lld", (long long)version);
    /* Hadoop's local file system keeps a checksum of what it has written itself; left behind, it would make our hint unreadable to it. */
    cat_delete_quietly(NULL, fio_join(a, dir, "metadata/.version-hint.text.crc"));
    if (fio_put(NULL, fio_join(a, dir, "metadata/version-hint.text"), text, strlen(text), &err) != FZ_OK) fz_log_error(FZ_LOG_WARN, "catalog.version-hint", &err);
}

/* A table that could not be made must not stay behind as a namespace. Who waits for the lock file that goes here is safe without
 * it, by invariant 1. */
static void remove_empty(const char *dir, fz_arena *a) {
    fz_error ignored; /* what is not empty belongs to somebody */
    if (fio_delete(NULL, fio_join(a, dir, LOCK_FILE), &ignored) == FZ_OK && fio_dir_remove(fio_join(a, dir, "metadata"), &ignored) == FZ_OK &&
        fio_dir_remove(dir, &ignored) != FZ_OK) fz_log_error(FZ_LOG_DEBUG, "catalog.remove-empty", &ignored);
}

static fz_status hadoop_swap(cat_catalog *c, const cat_ident *id, const cat_table *base, const ice_metadata *m, fz_arena *a, const char **location, fz_error *err) {
    const char *dir = table_dir(c, id, a);
    FZ_TRY(check_movable(id, dir, base, m, a, err));
    int64_t version = base ? base->version + 1 : 1;
    bool gzip = fz_ieq(ice_property(m, "write.metadata.compression-codec", "none"), "gzip");
    *location = fio_join(a, dir, fz_arena_printf(a, "metadata/v%lld%s.metadata.json", (long long)version, gzip ? ".gz" : ""));
    fio_lock *lock;
    fz_status rc = fio_lock_take(fio_local_path(fio_join(a, dir, LOCK_FILE)), c->busy_timeout_ms, &lock, err);
    if (rc != FZ_OK) return strcmp(err->code, "file.locked") == 0 ? fz_fail(err, FZ_RETRY, "catalog.locked", "the table '%s' is locked by another writer", cat_ident_text(a, id)) : rc;
    rc = make_version(id, dir, base, m, *location, a, err);
    if (rc == FZ_OK) write_hint(dir, version, a);
    else if (!base && rc != FZ_UNKNOWN && strcmp(err->code, "catalog.table-exists") != 0) remove_empty(dir, a);
    fio_lock_release(lock);
    return rc;
}

static fz_status hadoop_drop_table(cat_catalog *c, const cat_ident *id, bool purge, fz_error *err) {
    (void)purge;
    fz_arena *a = fz_arena_new();
    fz_status rc = fio_delete_tree(NULL, table_dir(c, id, a), err);
    fz_arena_free(a);
    return rc;
}

const cat_ops cat_hadoop_ops = {
    .type = "hadoop", .open = hadoop_open, .close = hadoop_close, .list_namespaces = hadoop_list_namespaces, .namespace_exists = hadoop_namespace_exists,
    .create_namespace = hadoop_create_namespace, .drop_namespace = hadoop_drop_namespace, .get_properties = hadoop_get_properties, .set_properties = hadoop_set_properties,
    .list_tables = hadoop_list_tables, .find = hadoop_find, .swap = hadoop_swap, .drop_table = hadoop_drop_table,
};
