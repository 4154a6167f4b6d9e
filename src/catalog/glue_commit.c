/* The pointer of a Glue table: the parameter metadata_location of its entry, swapped by UpdateTable under the entry's VersionId.
 *
 *     write metadata.json -> GetTable: metadata_location is the base's? -> UpdateTable(VersionId of that very answer, SkipArchive)
 *     ConcurrentModificationException, or no sure answer: GetTable and the log of what is current decide (pointer_int.h)
 *
 * Invariants
 *  1. UpdateTable and CreateTable are sent once; the transport repeats them only when nothing can have happened.
 *  2. Without a VersionId there is no compare and swap, and nothing is sent.
 */
#include "catalog/glue_int.h"

static json_t *of_table(const cat_ident *id) { return json_pack("{s:s, s:s}", "DatabaseName", id->ns.level[0], "Name", id->name); }

static fz_status not_iceberg(const cat_catalog *c, const cat_ident *id, const json_t *table, fz_arena *a, fz_error *err) {
    const char *type = pointer_text(json_object_get(table, "Parameters"), "table_type");
    fz_fail(err, FZ_USER, "catalog.not-iceberg", "'%s' in catalog '%s' is no Iceberg table", cat_ident_text(a, id), c->name);
    fz_detail(err, "table_type is %s%s, TableType is %s", type ? type : "not set", json_object_get(table, "TargetTable") ? ", the entry is a link to another table" : "",
              pointer_text(table, "TableType") ? pointer_text(table, "TableType") : "not set");
    return FZ_USER;
}

/* The Table object in *table (NULL: there is none); the caller gives it back. USER catalog.not-iceberg. */
static fz_status get_table(cat_catalog *c, const cat_ident *id, fz_arena *a, json_t **table, const char **location, fz_error *err) {
    json_t *answer = NULL;
    glue_result r;
    *table = NULL;
    *location = NULL;
    fz_status rc = glue_call(c, "GetTable", of_table(id), true, cat_ident_text(a, id), &answer, &r, err);
    if (rc != FZ_OK && r.why == GLUE_NOT_FOUND) return fz_starts(r.message, "Database") ? glue_no_database(c, id->ns.level[0], err) : FZ_OK;
    if (rc != FZ_OK) return rc;
    json_t *t = json_object_get(answer, "Table");
    const char *at = pointer_text(json_object_get(t, "Parameters"), "metadata_location");
    if (!json_is_object(t)) rc = fz_fail(err, FZ_RETRY, "catalog.answer", "Glue's answer to GetTable of '%s' has no table in it", cat_ident_text(a, id));
    else if (!glue_is_iceberg(t)) rc = not_iceberg(c, id, t, a, err);
    else if (!at || !*at) {
        rc = fz_fail(err, FZ_FATAL, "catalog.damaged", "the Glue entry of table '%s' has no metadata_location", cat_ident_text(a, id));
        fz_hint(err, "its newest metadata file can be registered anew with another tool");
    }
    if (rc == FZ_OK) {
        *table = json_incref(t);
        *location = fz_arena_strdup(a, at);
    }
    json_decref(answer);
    return rc;
}

fz_status glue_find(cat_catalog *c, const cat_ident *id, fz_arena *a, const char **location, fz_error *err) {
    json_t *table;
    fz_status rc = get_table(c, id, a, &table, location, err);
    json_decref(table);
    return rc;
}

/* err holds what UpdateTable or CreateTable answered. refused: it said that nothing was done, and no earlier attempt is without an answer. */
static fz_status settle(cat_catalog *c, const cat_ident *id, const char *from, const char *ours, bool refused, fz_arena *a, fz_error *err) {
    const char *now;
    fz_error why;
    if (glue_find(c, id, a, &now, &why) != FZ_OK) {
        fz_log_error(FZ_LOG_WARN, "catalog.read-back-failed", &why);
        return pointer_unknown(id, err);
    }
    return pointer_settle(id, pointer_look(c->io, now, from, ours), refused, now, from, err);
}

static fz_status send_update(cat_catalog *c, const cat_ident *id, const json_t *table, const char *from, const char *to, const ice_metadata *m, fz_arena *a, fz_error *err) {
    glue *g = c->impl;
    glue_result r;
    const char *version = pointer_text(table, "VersionId");
    if (!version) {
        fz_fail(err, FZ_USER, "catalog.no-version", "Glue gave no VersionId for the table '%s': it cannot be changed safely", cat_ident_text(a, id));
        return fz_hint(err, "the endpoint is not a Glue that can compare and swap");
    }
    json_t *in = json_object();
    pointer_put(in, "DatabaseName", pointer_string(id->ns.level[0]));
    pointer_put(in, "TableInput", glue_table_input(table, id->name, m, to, from));
    pointer_put(in, "SkipArchive", json_boolean(g->skip_archive));
    pointer_put(in, "VersionId", pointer_string(version));
    fz_status rc = glue_call(c, "UpdateTable", in, false, cat_ident_text(a, id), NULL, &r, err);
    if (rc == FZ_OK) return FZ_OK;
    if (r.unsure || r.why == GLUE_CONCURRENT) return settle(c, id, from, to, !r.unsure, a, err);
    if (r.why == GLUE_NOT_FOUND) return fz_fail(err, FZ_USER, "catalog.table-not-found", "the table '%s' was dropped from catalog '%s'", cat_ident_text(a, id), c->name);
    return rc;
}

static fz_status update(cat_catalog *c, const cat_ident *id, const char *from, const char *to, const ice_metadata *m, fz_arena *a, fz_error *err) {
    json_t *table;
    const char *now;
    FZ_TRY(get_table(c, id, a, &table, &now, err));
    fz_status rc;
    if (!table) rc = fz_fail(err, FZ_USER, "catalog.table-not-found", "the table '%s' was dropped from catalog '%s'", cat_ident_text(a, id), c->name);
    else if (strcmp(now, from) != 0) rc = pointer_moved(id, now, from, err);
    else rc = send_update(c, id, table, from, to, m, a, err);
    json_decref(table);
    return rc;
}

static fz_status create(cat_catalog *c, const cat_ident *id, const char *to, const ice_metadata *m, fz_arena *a, fz_error *err) {
    glue_result r;
    json_t *in = json_object();
    pointer_put(in, "DatabaseName", pointer_string(id->ns.level[0]));
    pointer_put(in, "TableInput", glue_table_input(NULL, id->name, m, to, NULL));
    fz_status rc = glue_call(c, "CreateTable", in, false, cat_ident_text(a, id), NULL, &r, err);
    if (rc == FZ_OK) return FZ_OK;
    if (r.unsure) return settle(c, id, NULL, to, false, a, err);
    if (r.why == GLUE_EXISTS) {
        const char *now = NULL;
        fz_error why; /* a table that is no Iceberg table exists, too */
        if (glue_find(c, id, a, &now, &why) == FZ_OK && pointer_look(c->io, now, NULL, to) == POINTER_OURS) return FZ_OK;
        return fz_fail(err, FZ_USER, "catalog.table-exists", "the table '%s' (or something else of that name) exists already in catalog '%s'", cat_ident_text(a, id), c->name);
    }
    if (r.why == GLUE_NOT_FOUND) return glue_no_database(c, id->ns.level[0], err);
    return rc;
}

fz_status glue_swap(cat_catalog *c, const cat_ident *id, const cat_table *base, const ice_metadata *m, fz_arena *a, const char **location, fz_error *err) {
    const char *to = *location = pointer_location(a, base, m);
    FZ_TRY(pointer_write(c->io, to, m, true, err));
    fz_status rc = base ? fz_fault_status("commit.metadata", err) : FZ_OK;
    if (rc == FZ_OK && base) rc = fz_fault_status("commit.swap", err);
    if (rc == FZ_OK) rc = base ? update(c, id, base->metadata_location, to, m, a, err) : create(c, id, to, m, a, err);
    if (rc != FZ_OK && rc != FZ_UNKNOWN) cat_delete_quietly(c->io, to);
    return rc;
}

fz_status glue_drop_table(cat_catalog *c, const cat_ident *id, bool purge, fz_error *err) {
    (void)purge;
    glue_result r;
    fz_arena *a = fz_arena_new();
    fz_status rc = glue_call(c, "DeleteTable", of_table(id), true, cat_ident_text(a, id), NULL, &r, err);
    if (rc != FZ_OK && r.why == GLUE_NOT_FOUND)
        rc = r.unsure ? FZ_OK /* an earlier attempt has done it */
                      : fz_fail(err, FZ_USER, "catalog.table-not-found", "the table '%s' does not exist in catalog '%s'", cat_ident_text(a, id), c->name);
    if (rc == FZ_UNKNOWN) rc = pointer_reclass(err, FZ_RETRY, err->code); /* dropping twice does no harm */
    fz_arena_free(a);
    return rc;
}
