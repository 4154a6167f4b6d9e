/* The catalog's outward calls: checks that all kinds share, then the kind's own table of functions. See catalog.h. */
#include "catalog/catalog_int.h"

/* Inside of the room err is never NULL. */
#define OWN_ERR(err)                                                                                                   \
    fz_error own_err_;                                                                                                 \
    if (!(err)) (err) = &own_err_

/* A catalog of these options, which may yet turn out to be wrong. */
static cat_catalog *named(const char *name, const fz_pair *o, size_t n) {
    fz_arena *a = fz_arena_new();
    cat_catalog *c = FZ_ANEW(a, cat_catalog);
    c->arena = a;
    c->name = fz_arena_strdup(a, name);
    fz_pair *copy = FZ_ANEWN(a, fz_pair, n);
    for (size_t i = 0; i < n; i++)
        copy[i] = (fz_pair){fz_arena_strdup(a, o[i].key), fz_arena_strdup(a, o[i].value), o[i].line, o[i].column};
    c->options = c->effective = copy;
    c->n_options = c->n_effective = n;
    return c;
}

fz_status cat_check(const char *name, const fz_pair *o, size_t n, const char **type, fz_error *err) {
    OWN_ERR(err);
    cat_catalog *c = named(name, o, n);
    fz_status rc = cat_options_check(c, NULL, err);
    if (rc == FZ_OK) rc = fio_new(c->options, n, &c->io, err);
    if (rc == FZ_OK && type) *type = c->ops->type;
    fio_unref(c->io);
    fz_arena_free(c->arena);
    return rc;
}

fz_status cat_open_later(const char *name, const fz_pair *o, size_t n, const cat_defaults *d, cat_catalog **out, fz_error *err) {
    OWN_ERR(err);
    cat_catalog *c = named(name, o, n);
    pthread_mutex_init(&c->open_lock, NULL);
    fz_status rc = cat_options_check(c, d, err);
    if (rc == FZ_OK) rc = fio_new(c->options, n, &c->io, err);
    if (rc == FZ_OK) return *out = c, FZ_OK;
    cat_close(c);
    return rc;
}

fz_status cat_reach(cat_catalog *c, fz_error *err) {
    OWN_ERR(err);
    fz_status rc = FZ_OK;
    if (atomic_load(&c->opened)) return FZ_OK;
    pthread_mutex_lock(&c->open_lock);
    if (!atomic_load(&c->opened)) {
        uint32_t n_ignored = c->ignored.n;
        rc = c->ops->open(c, err);
        if (rc == FZ_OK) atomic_store(&c->opened, true);
        else c->ignored.n = n_ignored; /* they are noted anew */
    }
    pthread_mutex_unlock(&c->open_lock);
    return rc;
}

fz_status cat_open(const char *name, const fz_pair *o, size_t n, const cat_defaults *d, cat_catalog **out, fz_error *err) {
    cat_catalog *c;
    FZ_TRY(cat_open_later(name, o, n, d, &c, err));
    fz_status rc = cat_reach(c, err);
    if (rc == FZ_OK) *out = c;
    else cat_close(c);
    return rc;
}

void cat_close(cat_catalog *c) {
    if (!c) return;
    if (atomic_load(&c->opened)) c->ops->close(c);
    pthread_mutex_destroy(&c->open_lock);
    fio_unref(c->io);
    fz_arena_free(c->arena);
}

const char *cat_name(const cat_catalog *c) { return c->name; }
const char *cat_type(const cat_catalog *c) { return c->ops->type; }
const char *cat_warehouse(const cat_catalog *c) { return c->warehouse; }
const char *cat_default_database(const cat_catalog *c) { return c->default_database; }
const fz_pair *cat_given_options(const cat_catalog *c, size_t *n) { return *n = c->n_options, c->options; }
const cat_names *cat_ignored_options(const cat_catalog *c) { return &c->ignored; }

/* ---- namespaces ---- */

static fz_status check_namespace(const cat_catalog *c, cat_namespace ns, fz_error *err) {
    FZ_TRY(cat_namespace_check(ns, err));
    return c->ops->check_ident && ns.n > 0 ? c->ops->check_ident(c, &(cat_ident){ns, NULL}, err) : FZ_OK;
}
static fz_status check_ident(const cat_catalog *c, const cat_ident *id, fz_error *err) {
    FZ_TRY(cat_ident_check(id, err));
    return c->ops->check_ident ? c->ops->check_ident(c, id, err) : FZ_OK;
}

static fz_status must_exist(cat_catalog *c, cat_namespace ns, fz_error *err) {
    bool there;
    FZ_TRY(check_namespace(c, ns, err));
    if (ns.n == 0) return FZ_OK;
    FZ_TRY(c->ops->namespace_exists(c, ns, &there, err));
    if (there) return FZ_OK;
    fz_arena *a = fz_arena_new();
    fz_fail(err, FZ_USER, "catalog.namespace-not-found", "the database '%s' does not exist in catalog '%s'", cat_namespace_text(a, ns), c->name);
    fz_arena_free(a);
    return FZ_USER;
}

fz_status cat_list_namespaces(cat_catalog *c, cat_namespace parent, fz_arena *a, cat_names *out, fz_error *err) {
    OWN_ERR(err);
    FZ_TRY(cat_reach(c, err));
    *out = (cat_names){0};
    FZ_TRY(must_exist(c, parent, err));
    FZ_TRY(c->ops->list_namespaces(c, parent, a, out, err));
    cat_names_sort(out);
    return FZ_OK;
}

fz_status cat_namespace_exists(cat_catalog *c, cat_namespace ns, bool *out, fz_error *err) {
    OWN_ERR(err);
    FZ_TRY(cat_reach(c, err));
    FZ_TRY(check_namespace(c, ns, err));
    return c->ops->namespace_exists(c, ns, out, err);
}

static fz_status check_properties(const fz_pair *props, size_t n, fz_error *err) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(props[i].key, "exists") == 0 || !*props[i].key)
            return fz_fail(err, FZ_USER, "catalog.option", "a database cannot have the property '%s': the name is reserved", props[i].key);
    return FZ_OK;
}

fz_status cat_create_namespace(cat_catalog *c, cat_namespace ns, const fz_pair *props, size_t n, fz_error *err) {
    OWN_ERR(err);
    FZ_TRY(cat_reach(c, err));
    FZ_TRY(check_namespace(c, ns, err));
    if (ns.n == 0) return fz_fail(err, FZ_USER, "catalog.name", "a database needs a name");
    FZ_TRY(check_properties(props, n, err));
    return c->ops->create_namespace(c, ns, props, n, err);
}

fz_status cat_drop_namespace(cat_catalog *c, cat_namespace ns, fz_error *err) {
    OWN_ERR(err);
    FZ_TRY(cat_reach(c, err));
    FZ_TRY(must_exist(c, ns, err));
    if (ns.n == 0) return fz_fail(err, FZ_USER, "catalog.name", "the root of a catalog cannot be dropped");
    return c->ops->drop_namespace(c, ns, err);
}

fz_status cat_namespace_properties(cat_catalog *c, cat_namespace ns, fz_arena *a, fz_pair **out, size_t *n, fz_error *err) {
    OWN_ERR(err);
    FZ_TRY(cat_reach(c, err));
    FZ_TRY(must_exist(c, ns, err));
    return c->ops->get_properties(c, ns, a, out, n, err);
}

fz_status cat_set_namespace_properties(cat_catalog *c, cat_namespace ns, const fz_pair *props, size_t n, fz_error *err) {
    OWN_ERR(err);
    FZ_TRY(cat_reach(c, err));
    FZ_TRY(must_exist(c, ns, err));
    FZ_TRY(check_properties(props, n, err));
    return c->ops->set_properties(c, ns, props, n, err);
}

/* ---- tables ---- */

fz_status cat_list_tables(cat_catalog *c, cat_namespace ns, fz_arena *a, cat_names *out, fz_error *err) {
    OWN_ERR(err);
    FZ_TRY(cat_reach(c, err));
    *out = (cat_names){0};
    FZ_TRY(must_exist(c, ns, err));
    FZ_TRY(c->ops->list_tables(c, ns, a, out, err));
    cat_names_sort(out);
    return FZ_OK;
}

fz_status cat_table_exists(cat_catalog *c, const cat_ident *id, bool *out, fz_error *err) {
    OWN_ERR(err);
    FZ_TRY(cat_reach(c, err));
    FZ_TRY(check_ident(c, id, err));
    if (c->ops->exists) return c->ops->exists(c, id, out, err);
    fz_arena *a = fz_arena_new();
    const char *location = NULL;
    fz_status rc = c->ops->find(c, id, a, &location, err);
    *out = location != NULL;
    fz_arena_free(a);
    return rc;
}

static fz_status no_table(const cat_catalog *c, const cat_ident *id, fz_arena *a, fz_error *err) {
    return fz_fail(err, FZ_USER, "catalog.table-not-found", "the table '%s' does not exist in catalog '%s'", cat_ident_text(a, id), c->name);
}

/* Between the look at the pointer and the read of the file a table may move on twice, and its old file be deleted: look again. */
static fz_status load(cat_catalog *c, const cat_ident *id, fz_arena *a, cat_table **out, fz_error *err) {
    const char *location, *before = NULL;
    if (c->ops->load) return c->ops->load(c, id, out, err);
    for (int tries = 0;; tries++) {
        location = NULL;
        FZ_TRY(c->ops->find(c, id, a, &location, err));
        if (!location) return no_table(c, id, a, err);
        ice_metadata *m;
        fz_status rc = cat_metadata_read(c->io, location, &m, err);
        if (rc == FZ_OK) return *out = cat_table_make(c->io, id, location, m), FZ_OK;
        if (strcmp(err->code, "file.not-found") != 0) return rc;
        if (tries == 10 || (before && strcmp(before, location) == 0)) break;
        before = location;
    }
    fz_fail(err, FZ_FATAL, "catalog.metadata-missing", "the current metadata file of table '%s' is missing: '%s'", cat_ident_text(a, id), location);
    return fz_hint(err, "an older version among those in its directory can be registered with another tool");
}

fz_status cat_load_table(cat_catalog *c, const cat_ident *id, cat_table **out, fz_error *err) {
    OWN_ERR(err);
    FZ_TRY(cat_reach(c, err));
    FZ_TRY(check_ident(c, id, err));
    fz_arena *a = fz_arena_new();
    fz_status rc = load(c, id, a, out, err);
    fz_arena_free(a);
    return rc;
}

fz_status cat_drop_table(cat_catalog *c, const cat_ident *id, bool purge, fz_error *err) {
    OWN_ERR(err);
    FZ_TRY(cat_reach(c, err));
    bool there = false;
    FZ_TRY(cat_table_exists(c, id, &there, err));
    fz_arena *a = fz_arena_new();
    cat_table *t = NULL;
    fz_error why;
    fz_status rc = there ? FZ_OK : no_table(c, id, a, err);
    /* A table whose metadata is damaged can still be dropped; its files then stay (as with Java's catalogs). */
    if (rc == FZ_OK && purge && !c->ops->purges && load(c, id, a, &t, &why) != FZ_OK) fz_log_error(FZ_LOG_WARN, "catalog.drop-without-purge", &why);
    if (rc == FZ_OK) rc = c->ops->drop_table(c, id, purge, err);
    if (rc == FZ_OK && t) cat_purge(t);
    cat_table_free(t);
    fz_arena_free(a);
    return rc;
}

fz_status cat_table_properties(const cat_catalog *c, fz_arena *a, const fz_pair *given, size_t n, fz_pair **out, size_t *n_out, fz_error *err) {
    (void)err;
    fz_pair *v = FZ_ANEWN(a, fz_pair, n + c->n_effective);
    size_t k = 0;
    for (size_t i = 0; i < c->n_effective; i++)
        if (fz_starts(c->effective[i].key, "table-default.") && !fz_pair_get(given, n, c->effective[i].key + 14))
            v[k++] = (fz_pair){.key = c->effective[i].key + 14, .value = c->effective[i].value};
    for (size_t i = 0; i < n; i++) v[k++] = given[i];
    for (size_t i = 0; i < c->n_effective; i++) {
        if (!fz_starts(c->effective[i].key, "table-override.")) continue;
        const char *key = c->effective[i].key + 15;
        size_t j = 0;
        while (j < k && strcmp(v[j].key, key) != 0) j++;
        if (j == k) k++;
        v[j] = (fz_pair){.key = key, .value = c->effective[i].value};
    }
    *out = v;
    *n_out = k;
    return FZ_OK;
}

fz_status cat_default_location(cat_catalog *c, const cat_ident *id, fz_arena *a, const char **out, fz_error *err) {
    OWN_ERR(err);
    FZ_TRY(cat_reach(c, err));
    FZ_TRY(check_ident(c, id, err));
    FZ_TRY(must_exist(c, id->ns, err));
    fz_pair *props;
    size_t n;
    if (c->ops->places_tables) return *out = "", FZ_OK;
    FZ_TRY(c->ops->get_properties(c, id->ns, a, &props, &n, err));
    const char *dir = fz_pair_get(props, n, "location");
    if (!dir || !*dir) {
        dir = c->warehouse;
        for (uint32_t i = 0; dir && i < id->ns.n; i++)
            dir = fio_join(a, dir, c->ops->database_suffix ? fz_arena_printf(a, "%s%s", id->ns.level[i], c->ops->database_suffix) : id->ns.level[i]);
    }
    if (dir) return *out = fio_join(a, dir, id->name), FZ_OK;
    fz_fail(err, FZ_USER, "catalog.option", "there is no place for the table '%s': the catalog '%s' has no option 'warehouse', and the database has no location",
            cat_ident_text(a, id), c->name);
    return fz_hint(err, "give the catalog 'warehouse' = 's3://bucket/prefix', or the table 'location'");
}

fz_status cat_create_table(cat_catalog *c, const cat_ident *id, ice_metadata *first, cat_table **out, fz_error *err) {
    OWN_ERR(err);
    FZ_TRY(cat_reach(c, err));
    FZ_TRY(check_ident(c, id, err));
    FZ_TRY(must_exist(c, id->ns, err));
    bool there = false;
    const char *location = NULL;
    FZ_TRY(cat_table_exists(c, id, &there, err));
    fz_arena *a = fz_arena_new();
    fz_status rc = FZ_OK;
    if (there) rc = fz_fail(err, FZ_USER, "catalog.table-exists", "the table '%s' exists already in catalog '%s'", cat_ident_text(a, id), c->name);
    else if (c->ops->create) rc = c->ops->create(c, id, first, out, err);
    else rc = c->ops->swap(c, id, NULL, first, a, &location, err);
    if (rc == FZ_OK && location) *out = cat_table_make(c->io, id, location, first);
    else if (rc == FZ_OK) ice_metadata_free(first); /* the catalog has made its own */
    fz_arena_free(a);
    return rc;
}

/* ---- commit ---- */

static void warn_clock(const cat_ident *id, const ice_applied *info, fz_arena *a) {
    if (info->clock_behind_ms > ICE_CLOCK_TOLERANCE_MS)
        fz_log(FZ_LOG_WARN, "catalog.clock-behind-table", FZ_KV("table", "%s", cat_ident_text(a, id)), FZ_KV("behind_ms", "%lld", (long long)info->clock_behind_ms), NULL);
}

/* The pointer's way: we make the new metadata, and the kind swaps it in. */
static fz_status commit_by_swap(cat_catalog *c, const cat_table *base, const ice_changes *changes, ice_applied *info, cat_table **out, fz_error *err) {
    ice_metadata *m;
    const char *location;
    FZ_TRY(ice_metadata_apply(base->metadata, changes, fz_now_ms(), base->metadata_location, &m, info, err));
    fz_arena *a = fz_arena_new();
    warn_clock(&base->ident, info, a);
    fz_status rc = c->ops->swap(c, &base->ident, base, m, a, &location, err);
    if (rc == FZ_OK) *out = cat_table_make(base->io, &base->ident, location, m);
    else ice_metadata_free(m);
    fz_arena_free(a);
    return rc;
}

fz_status cat_commit(cat_catalog *c, const cat_table *base, const ice_changes *changes, cat_table **out, fz_error *err) {
    OWN_ERR(err);
    FZ_TRY(cat_reach(c, err));
    ice_applied info = {0};
    cat_table *made = NULL;
    FZ_TRY(ice_requirements_check(base->metadata, changes, err));
    fz_status rc = c->ops->commit ? c->ops->commit(c, base, changes, &made, err) : commit_by_swap(c, base, changes, &info, &made, err);
    if (rc == FZ_OK) rc = fz_fault_status("commit.accepted", err);
    if (rc == FZ_OK) rc = fz_fault_status("commit.answered", err);
    if (rc != FZ_OK) {
        cat_table_free(made);
        return rc;
    }
    *out = made;
    for (uint32_t i = 0; info.delete_dropped && i < info.n_dropped; i++) cat_delete_quietly(made->io, info.dropped[i]);
    return FZ_OK;
}
