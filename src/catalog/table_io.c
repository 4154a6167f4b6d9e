/* Tables' files: reading and writing metadata.json, and deleting what a dropped table reaches. */
#include "catalog/catalog_int.h"
#include <stdlib.h>

static fz_status io_read(void *cx, const char *location, fz_buf *out, fz_error *err) {
    return fio_read(cx, location, FZ_MAX_METADATA_JSON, out, err);
}
static fz_status io_write(void *cx, const char *location, const void *p, size_t n, fz_error *err) {
    return fio_put(cx, location, p, n, err);
}
const ice_io cat_io = {NULL, io_read, io_write};
ice_io cat_io_of(fio *io) { return (ice_io){io, io_read, io_write}; }

fz_status cat_metadata_read(fio *io, const char *location, ice_metadata **out, fz_error *err) {
    fz_buf b = {0};
    fz_status rc = fio_read(io, location, FZ_MAX_METADATA_JSON, &b, err);
    if (rc == FZ_OK && (rc = ice_metadata_parse(b.data, b.len, out, err)) != FZ_OK) fz_context(err, "'%s'", location);
    fz_buf_free(&b);
    return rc;
}

fz_status cat_metadata_write(fio *io, const char *location, const ice_metadata *m, fz_error *err) {
    fz_buf b = {0};
    fz_status rc = ice_metadata_encode(m, &b, err);
    if (rc == FZ_OK) rc = fio_put_if_absent(io, location, b.data, b.len, err);
    fz_buf_free(&b);
    return rc;
}

cat_table *cat_table_make(fio *io, const cat_ident *id, const char *location, ice_metadata *m) {
    cat_table *t = FZ_ANEW(m->arena, cat_table);
    t->io = fio_ref(io);
    t->ident = (cat_ident){cat_namespace_clone(m->arena, id->ns), fz_arena_strdup(m->arena, id->name)};
    t->metadata_location = fz_arena_strdup(m->arena, location);
    t->metadata = m;
    t->version = ice_metadata_version_of(location);
    return t;
}

void cat_table_free(cat_table *t) {
    if (!t) return;
    fio_unref(t->io);
    ice_metadata_free(t->metadata); /* t lies in its arena */
}

void cat_delete_quietly(fio *io, const char *location) {
    fz_error err;
    if (fio_delete(io, location, &err) != FZ_OK) fz_log_error(FZ_LOG_WARN, "catalog.delete-failed", &err);
}

/* ---- purge ---- */

/* One file is reached by many snapshots and is deleted once. */
static bool first_time(fz_hashset *done, const char *location) { return fz_hashset_add(done, fz_hash(location, strlen(location))); }

static fz_status purge_manifest(fio *io, const ice_manifest_file *f, bool data, fz_hashset *done, fz_error *err) {
    fz_buf b = {0};
    ice_manifest_reader *r = NULL;
    fz_arena *a = fz_arena_new();
    ice_entry e;
    bool more = data;
    fz_status rc = FZ_OK;
    if (data && (rc = io_read(io, f->path, &b, err)) == FZ_OK) rc = ice_manifest_reader_open(b.data, b.len, f, NULL, NULL, &r, err);
    while (rc == FZ_OK && more) {
        fz_arena_reset(a);
        rc = ice_manifest_reader_next(r, a, &e, &more, err);
        if (rc == FZ_OK && more && e.status != ICE_DELETED && first_time(done, e.file.path)) cat_delete_quietly(io, e.file.path);
    }
    ice_manifest_reader_close(r);
    fz_arena_free(a);
    fz_buf_free(&b);
    if (rc == FZ_OK) cat_delete_quietly(io, f->path);
    return rc;
}

void cat_purge(const cat_table *t) {
    const ice_metadata *m = t->metadata;
    const ice_io io = cat_io_of(t->io);
    fz_arena *a = fz_arena_new();
    fz_hashset done = {0};
    fz_error err;
    bool data = ice_property_bool(m, "gc.enabled", true); /* false: the data belongs to others too (Java's CatalogUtil.dropTableData) */
    for (uint32_t i = 0; i < m->n_snapshots; i++) {
        const ice_snapshot *s = &m->snapshots[i];
        ice_manifest_list l;
        if (ice_snapshot_manifests(a, s, &io, &l, &err) != FZ_OK) {
            fz_log_error(FZ_LOG_WARN, "catalog.purge", &err);
            continue;
        }
        for (uint32_t k = 0; k < l.n; k++)
            if (first_time(&done, l.v[k].path) && purge_manifest(t->io, &l.v[k], data, &done, &err) != FZ_OK) fz_log_error(FZ_LOG_WARN, "catalog.purge", &err);
    }
    for (uint32_t i = 0; i < m->n_snapshots; i++)
        if (m->snapshots[i].manifest_list) cat_delete_quietly(t->io, m->snapshots[i].manifest_list);
    for (uint32_t i = 0; i < m->n_metadata_log; i++) cat_delete_quietly(t->io, m->metadata_log[i].location);
    cat_delete_quietly(t->io, t->metadata_location);
    fz_hashset_free(&done);
    fz_arena_free(a);
}
