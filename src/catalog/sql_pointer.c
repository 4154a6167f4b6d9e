/* The SQL catalog: how the pointer of one table moves, and what has become of a move whose end nobody told.
 *
 * A swap, in order:
 *     write metadata.json (durable) -> BEGIN -> UPDATE ... WHERE metadata_location = base (or INSERT) -> COMMIT
 *     0 rows changed: CONFLICT.  No clear answer to COMMIT: see settle; what it cannot decide is UNKNOWN.
 *
 * Invariants
 *  1. Before COMMIT is sent nothing can be applied: each failure up to there is definite.
 *  2. After it, only what the row says once the transaction is known to have ended counts (sql_driver.and_wait). A row that is gone
 *     decides nothing: dropped after our commit, or renamed with it.
 */
#include "catalog/pointer_int.h"
#include "catalog/sql_int.h"
#include "net/net.h"

typedef struct move { const cat_ident *id; const char *ns, *from, *to; const ice_metadata *m; fz_arena *a; } move;

typedef struct text_out { fz_arena *a; const char *s; } text_out;
static bool take_text(void *cx, const char *const *column) {
    text_out *t = cx;
    t->s = fz_arena_strdup(t->a, column[0] ? column[0] : "");
    return false;
}
static bool take_any(void *cx, const char *const *column) {
    (void)column;
    *(bool *)cx = true;
    return false;
}

fz_status sql_find_row(cat_catalog *c, const cat_ident *id, bool wait, fz_arena *a, const char **location, fz_error *err) {
    sql_db *d = c->impl;
    text_out t = {.a = a};
    const char *sql = fz_arena_printf(a, "SELECT metadata_location FROM iceberg_tables" SQL_WHERE_TABLE "%s%s", d->has_type ? SQL_IS_TABLE : "", wait ? d->driver->and_wait : "");
    FZ_TRY(sql_run(d, sql, SQL_ARGS(c->catalog_name, cat_namespace_text(a, id->ns), id->name), take_text, &t, NULL, err));
    if (t.s && !*t.s)
        return fz_fail(err, FZ_FATAL, "catalog.damaged", "the row of table '%s' in catalog '%s' has no metadata_location", cat_ident_text(a, id), c->name);
    *location = t.s;
    return FZ_OK;
}

static fz_status update_row(cat_catalog *c, void *cx, fz_error *err) {
    sql_db *d = c->impl;
    const move *mv = cx;
    int changed;
    FZ_TRY(sql_run(d, d->has_type ? "UPDATE iceberg_tables SET metadata_location = $4, previous_metadata_location = $5" SQL_WHERE_TABLE " AND metadata_location = $5" SQL_IS_TABLE
                                  : "UPDATE iceberg_tables SET metadata_location = $4, previous_metadata_location = $5" SQL_WHERE_TABLE " AND metadata_location = $5",
                   SQL_ARGS(c->catalog_name, mv->ns, mv->id->name, mv->to, mv->from), NULL, NULL, &changed, err));
    if (changed == 1) return FZ_OK;
    const char *now = NULL;
    FZ_TRY(sql_find_row(c, mv->id, false, mv->a, &now, err));
    if (!now) return fz_fail(err, FZ_USER, "catalog.table-not-found", "the table '%s' was dropped from catalog '%s'", cat_ident_text(mv->a, mv->id), c->name);
    return pointer_moved(mv->id, now, mv->from, err);
}

static fz_status table_exists(const cat_catalog *c, const move *mv, fz_error *err) {
    return fz_fail(err, FZ_USER, "catalog.table-exists", "the table '%s' (or a view of that name) exists already in catalog '%s'", cat_ident_text(mv->a, mv->id), c->name);
}

#define INSERT_V1 "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, previous_metadata_location, iceberg_type) VALUES ($1, $2, $3, $4, NULL, 'TABLE')"
#define INSERT_V0 "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, previous_metadata_location) VALUES ($1, $2, $3, $4, NULL)"
#define OR_NOT " ON CONFLICT DO NOTHING"

static fz_status try_insert(cat_catalog *c, const move *mv, bool *made, fz_error *err) {
    sql_db *d = c->impl;
    int changed = 0;
    FZ_TRY(sql_run(d, d->has_type ? INSERT_V1 OR_NOT : INSERT_V0 OR_NOT, SQL_ARGS(c->catalog_name, mv->ns, mv->id->name, mv->to), NULL, NULL, &changed, err));
    *made = changed == 1;
    return FZ_OK;
}

static fz_status insert_row(cat_catalog *c, void *cx, fz_error *err) {
    const move *mv = cx;
    bool there = false, made;
    FZ_TRY(sql_has_namespace(c, mv->ns, &there, err));
    if (!there) return fz_fail(err, FZ_USER, "catalog.namespace-not-found", "the database '%s' does not exist in catalog '%s'", mv->ns, c->name);
    FZ_TRY(try_insert(c, mv, &made, err));
    return made ? FZ_OK : table_exists(c, mv, err);
}

/* What the row says once our transaction has ended; *now NULL: there is none. */
static fz_status look(cat_catalog *c, const move *mv, int64_t wait_ms, const char **now, fz_error *err) {
    sql_db *d = c->impl;
    *now = NULL;
    if (!d->driver->and_wait) return sql_find_row(c, mv->id, false, mv->a, now, err);
    bool free_again = false;
    FZ_TRY(sql_begin(d, wait_ms, err));
    fz_status rc = mv->from ? FZ_OK : try_insert(c, mv, &free_again, err); /* a row that is not committed is not seen, but its key is waited for */
    if (rc == FZ_OK && !free_again) rc = sql_find_row(c, mv->id, true, mv->a, now, err);
    sql_rollback(d);
    return rc;
}

static fz_status unknown(const move *mv, const fz_error *why, fz_error *err) {
    *err = *why;
    return pointer_unknown(mv->id, err);
}

/* Another table has the name that we wanted to make. */
static bool is_stranger(cat_catalog *c, const move *mv, const char *now) {
    ice_metadata *m;
    fz_error own;
    if (cat_metadata_read(c->io, now, &m, &own) != FZ_OK) return false;
    bool out = strcmp(m->uuid, mv->m->uuid) != 0;
    ice_metadata_free(m);
    return out;
}

/* Whether a row of any name has our metadata, as after a rename. */
static bool named_elsewhere(cat_catalog *c, const move *mv) {
    bool there = false;
    fz_error own;
    fz_status rc = sql_run(c->impl, "SELECT 1 FROM iceberg_tables WHERE metadata_location = $1 OR previous_metadata_location = $1", SQL_ARGS(mv->to), take_any, &there, NULL, &own);
    return rc != FZ_OK || there;
}

/* COMMIT was not confirmed (err says why). A server that restarts is waited for. */
static fz_status settle(cat_catalog *c, const move *mv, fz_error *err) {
    const sql_db *d = c->impl;
    const fz_error why = *err;
    const char *now = NULL;
    int64_t end = fz_mono_ns() / 1000000 + d->busy_ms + d->orphan_ms;
    for (;;) {
        int64_t left = end - fz_mono_ns() / 1000000;
        fz_status rc = look(c, mv, left, &now, err);
        if (rc == FZ_OK) break;
        if (rc != FZ_RETRY || left < 200 || net_hurried()) return unknown(mv, &why, err);
        fz_sleep_ms(100);
    }
    switch (pointer_look(c->io, now, mv->from, mv->to)) {
    case POINTER_OURS: return FZ_OK;
    case POINTER_OTHERS: return pointer_moved(mv->id, now, mv->from, err);
    case POINTER_AT_BASE:
        if (!now && named_elsewhere(c, mv)) return unknown(mv, &why, err);
        *err = why;
        return err->cls = FZ_RETRY;
    default: return !mv->from && now && is_stranger(c, mv, now) ? table_exists(c, mv, err) : unknown(mv, &why, err);
    }
}

static fz_status move_pointer(cat_catalog *c, move *mv, fz_error *err) {
    sql_db *d = c->impl;
    pthread_mutex_lock(&d->lock);
    fz_status rc = sql_transact(c, mv->from ? update_row : insert_row, mv, err);
    if (rc == FZ_UNKNOWN) rc = settle(c, mv, err);
    pthread_mutex_unlock(&d->lock);
    return rc;
}

fz_status sql_swap(cat_catalog *c, const cat_ident *id, const cat_table *base, const ice_metadata *m, fz_arena *a, const char **location, fz_error *err) {
    *location = pointer_location(a, base, m);
    fz_status rc = pointer_write(c->io, *location, m, true, err);
    if (rc != FZ_OK) return rc;
    if (base) rc = fz_fault_status("commit.metadata", err);
    if (rc == FZ_OK && base) rc = fz_fault_status("commit.swap", err);
    move mv = {id, cat_namespace_text(a, id->ns), base ? base->metadata_location : NULL, *location, m, a};
    if (rc == FZ_OK) rc = move_pointer(c, &mv, err);
    if (rc != FZ_OK && rc != FZ_UNKNOWN) cat_delete_quietly(c->io, *location);
    return rc;
}
