/* The pointer of a table in a table bucket: its metadata location, swapped by UpdateTableMetadataLocation under the table's version token.
 *
 *     write metadata.json -> GetTableMetadataLocation: the base's? -> UpdateTableMetadataLocation(version token of that very answer)
 *     ConflictException, or no sure answer: the location and the log of what is current decide (pointer_int.h)
 *
 * A new table: CreateTable without metadata gives it a bucket of its own, whose URI (no path, no slash at its end) is its location; then its
 * first metadata is swapped in. A table without metadata, which a creation that broke off has left, is taken up where that one ended.
 *
 * Invariants
 *  1. UpdateTableMetadataLocation and CreateTable are sent once; the transport repeats them only when nothing can have happened.
 *  2. Objects are never deleted: table buckets have no such thing, and clean up themselves (unreferenced file removal).
 */
#include "catalog/s3tables_int.h"

fz_status s3tables_get_pointer(cat_catalog *c, const cat_ident *id, fz_arena *a, s3tables_pointer *out, fz_error *err) {
    json_t *answer = NULL;
    s3tables_result r;
    const char *ns = id->ns.level[0];
    s3tables_request rq = {.op = "GetTableMetadataLocation", .method = "GET", .path = s3tables_path(c, a, "tables", ns, id->name, "/metadata-location"),
                           .about = cat_ident_text(a, id)};
    *out = (s3tables_pointer){0};
    fz_status rc = s3tables_call(c, &rq, &answer, &r, err);
    if (rc != FZ_OK && r.not_found && strcmp(err->code, "catalog.no-table-bucket") != 0)
        return strstr(r.message, "amespace") ? s3tables_no_namespace(c, ns, err) : FZ_OK;
    if (rc != FZ_OK) return rc;
    const char *metadata = pointer_text(answer, "metadataLocation"), *version = pointer_text(answer, "versionToken"), *warehouse = pointer_text(answer, "warehouseLocation");
    out->there = true;
    out->metadata = metadata && *metadata ? fz_arena_strdup(a, metadata) : NULL;
    out->version = version ? fz_arena_strdup(a, version) : NULL;
    out->warehouse = warehouse ? ice_location_trim(a, warehouse) : NULL;
    json_decref(answer);
    if (out->version && out->warehouse) return FZ_OK;
    return fz_fail(err, FZ_RETRY, "catalog.answer", "S3 Tables gave no version token or no location for the table '%s'", cat_ident_text(a, id));
}

fz_status s3tables_find(cat_catalog *c, const cat_ident *id, fz_arena *a, const char **location, fz_error *err) {
    s3tables_pointer p;
    FZ_TRY(s3tables_get_pointer(c, id, a, &p, err));
    *location = p.metadata;
    return FZ_OK;
}

/* err holds what UpdateTableMetadataLocation answered. refused: see pointer_settle. */
static fz_status settle(cat_catalog *c, const cat_ident *id, const char *from, const char *ours, bool refused, fz_arena *a, fz_error *err) {
    s3tables_pointer p;
    fz_error why;
    if (s3tables_get_pointer(c, id, a, &p, &why) != FZ_OK) {
        fz_log_error(FZ_LOG_WARN, "catalog.read-back-failed", &why);
        return pointer_unknown(id, err);
    }
    return pointer_settle(id, pointer_look(c->io, p.metadata, from, ours), refused, p.metadata, from, err);
}

static fz_status move(cat_catalog *c, const cat_ident *id, const s3tables_pointer *p, const char *to, fz_arena *a, fz_error *err) {
    s3tables_result r;
    s3tables_request rq = {.op = "UpdateTableMetadataLocation", .method = "PUT", .path = s3tables_path(c, a, "tables", id->ns.level[0], id->name, "/metadata-location"),
                           .body = json_pack("{s:s, s:s}", "versionToken", p->version, "metadataLocation", to), .writes = true, .about = cat_ident_text(a, id)};
    fz_status rc = s3tables_call(c, &rq, NULL, &r, err);
    if (rc == FZ_OK) return FZ_OK;
    if (r.unsure || r.conflict) return settle(c, id, p->metadata, to, !r.unsure, a, err);
    if (r.not_found) return fz_fail(err, FZ_USER, "catalog.table-not-found", "the table '%s' was dropped from catalog '%s'", cat_ident_text(a, id), c->name);
    return rc;
}

fz_status s3tables_swap(cat_catalog *c, const cat_ident *id, const cat_table *base, const ice_metadata *m, fz_arena *a, const char **location, fz_error *err) {
    s3tables_pointer p;
    const char *to = *location = pointer_location(a, base, m), *from = base->metadata_location;
    FZ_TRY(pointer_write(c->io, to, m, false, err));
    fz_status rc = fz_fault_status("commit.metadata", err);
    if (rc == FZ_OK) rc = fz_fault_status("commit.swap", err);
    if (rc == FZ_OK) rc = s3tables_get_pointer(c, id, a, &p, err);
    if (rc == FZ_OK && !p.metadata) rc = fz_fail(err, FZ_USER, "catalog.table-not-found", "the table '%s' was dropped from catalog '%s'", cat_ident_text(a, id), c->name);
    else if (rc == FZ_OK && strcmp(p.metadata, from) != 0) rc = pointer_moved(id, p.metadata, from, err);
    else if (rc == FZ_OK) rc = move(c, id, &p, to, a, err);
    if (rc != FZ_OK && rc != FZ_UNKNOWN) cat_delete_quietly(c->io, to); /* a store of a table bucket is told to delete nothing */
    return rc;
}

/* ---- creation ---- */

static fz_status check_new(const cat_catalog *c, const cat_ident *id, const ice_metadata *first, fz_arena *a, fz_error *err) {
    if (*first->location) {
        fz_fail(err, FZ_USER, "catalog.location", "the table '%s' cannot have a location of its own: S3 Tables gives each table one", cat_ident_text(a, id));
        return fz_hint(err, "leave 'location' out");
    }
    const char *codec = ice_property(first, "write.parquet.compression-codec", "");
    if (!fz_ieq(codec, "lz4") && !fz_ieq(codec, "lz4_raw")) return FZ_OK;
    fz_fail(err, FZ_USER, "catalog.codec", "the table '%s' of catalog '%s' cannot be compressed with %s: the maintenance of S3 Tables does not read it", cat_ident_text(a, id), c->name, codec);
    return fz_hint(err, "leave 'write.parquet.compression-codec' out (zstd), or write snappy, gzip or zstd");
}

/* The table without metadata. *made: by this call. */
static fz_status make_empty(cat_catalog *c, const cat_ident *id, fz_arena *a, s3tables_pointer *p, bool *made, fz_error *err) {
    s3tables_result r;
    const char *ns = id->ns.level[0];
    s3tables_request rq = {.op = "CreateTable", .method = "PUT", .path = s3tables_path(c, a, "tables", ns, NULL, ""),
                           .body = json_pack("{s:s, s:s}", "name", id->name, "format", "ICEBERG"), .writes = true, .about = cat_ident_text(a, id)};
    fz_status rc = s3tables_call(c, &rq, NULL, &r, err);
    *made = rc == FZ_OK;
    if (rc != FZ_OK && r.not_found && strcmp(err->code, "catalog.no-table-bucket") != 0) {
        FZ_TRY(s3tables_check_bucket(c, err));
        return s3tables_no_namespace(c, ns, err);
    }
    if (rc != FZ_OK && !r.conflict && !r.unsure) return rc;
    fz_error why = *err;
    FZ_TRY(s3tables_get_pointer(c, id, a, p, err));
    if (!p->there) {
        if (rc != FZ_OK) *err = why;
        else fz_fail(err, FZ_RETRY, "catalog.answer", "the table '%s' was made and is not there", cat_ident_text(a, id));
        return pointer_reclass(err, FZ_RETRY, err->code); /* a table without metadata that comes later harms nothing */
    }
    if (p->metadata) return fz_fail(err, FZ_USER, "catalog.table-exists", "the table '%s' exists already in catalog '%s'", cat_ident_text(a, id), c->name);
    return FZ_OK;
}

static fz_status place(const ice_metadata *first, const char *location, ice_metadata **out, fz_error *err) {
    ice_changes ch = ice_changes_new();
    ice_update_location(&ch, location);
    fz_status rc = ice_metadata_apply(first, &ch, first->last_updated_ms, NULL, out, NULL, err);
    ice_changes_free(&ch);
    return rc;
}

static fz_status create(cat_catalog *c, const cat_ident *id, const ice_metadata *first, fz_arena *a, cat_table **out, fz_error *err) {
    s3tables_pointer p;
    ice_metadata *m = NULL;
    bool made, written = false;
    FZ_TRY(check_new(c, id, first, a, err));
    FZ_TRY(make_empty(c, id, a, &p, &made, err));
    const char *to = NULL;
    fz_status rc = place(first, p.warehouse, &m, err);
    if (rc == FZ_OK) {
        to = pointer_location(a, NULL, m);
        rc = pointer_write(c->io, to, m, false, err);
        written = rc == FZ_OK;
    }
    if (rc == FZ_OK) rc = move(c, id, &p, to, a, err);
    if (rc == FZ_OK) return *out = cat_table_make(c->io, id, to, m), FZ_OK;
    ice_metadata_free(m);
    if (rc == FZ_UNKNOWN) return rc;
    if (written) cat_delete_quietly(c->io, to);
    s3tables_result r;
    fz_error why;
    /* Under its version token the empty table goes only if nobody has taken it up. */
    if (made && s3tables_delete_table(c, id, p.version, a, &r, &why) != FZ_OK && !r.conflict) fz_log_error(FZ_LOG_WARN, "catalog.empty-table-left", &why);
    if (rc == FZ_CONFLICT) return fz_fail(err, FZ_USER, "catalog.table-exists", "the table '%s' was made by another at the same moment in catalog '%s'", cat_ident_text(a, id), c->name);
    return rc;
}

fz_status s3tables_create(cat_catalog *c, const cat_ident *id, const ice_metadata *first, cat_table **out, fz_error *err) {
    fz_arena *a = fz_arena_new();
    fz_status rc = create(c, id, first, a, out, err);
    fz_arena_free(a);
    return rc;
}
