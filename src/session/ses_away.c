/* Catalogs that cannot be reached when a script is run again: what the state directory remembers of the tables that a job writes to (cat_recall) stands for them, so that statements that only make sure of something
 * (CREATE DATABASE IF NOT EXISTS, CREATE TABLE IF NOT EXISTS, USE) pass and INSERTs can be bound; the job deals with the rest (job/away.c). What was never there is refused as ever.
 *
 * Invariants
 *  1. A definite answer counts: only a catalog that could not be reached or has denied is stood for, and only for tables and databases that are remembered.
 *  2. Reading a table never goes by what is remembered. */
#include "session/session_int.h"
#include "job/job.h"
#include "net/net.h"

#define PATIENCE_MS 5000 /* while the script waits, its listeners do not listen */
#define SLOW_NS 1000000000ll

/* In s->arena; NULL: this session remembers nothing. */
static const char *memory_dir(const ses_session *s) {
    if (s->dry || s->replay) return NULL;
    char *dir = job_tables_dir(s->settings);
    const char *out = fz_arena_strdup(s->arena, dir);
    fz_free(dir);
    return out;
}

bool ses_remembers(const ses_session *s, const cat_catalog *c, const cat_ident *id) {
    const char *dir = memory_dir(s);
    return dir && cat_remembers(dir, c, id);
}

void ses_ask(ses_session *s, const cat_catalog *c, const cat_ident *id) {
    s->asked_ns = fz_mono_ns();
    if (ses_remembers(s, c, id)) net_patience(PATIENCE_MS);
}

bool ses_stand_in(ses_session *s, ses_catalog *c, const cat_ident *id, fz_status rc, const fz_error *err) {
    net_patience(0);
    if (rc == FZ_OK || !err) {
        if (rc == FZ_OK) c->away = c->away_told = false;
        return false;
    }
    fz_status passing = job_passing(rc, err);
    if ((passing != FZ_RETRY && passing != FZ_UNKNOWN && passing != FZ_CONFLICT) || !ses_remembers(s, c->iceberg, id)) return false;
    c->away |= fz_mono_ns() - s->asked_ns > SLOW_NS;
    if (!c->away_told) {
        fz_error line = *err;
        c->away_told = true;
        (void)!fz_context(&line, "catalog '%s' is away, and what is remembered of it stands for it", c->name);
        fz_log_error(FZ_LOG_WARN, "catalog.away", &line);
    }
    c->why = *err;
    return true;
}

fz_status ses_recall(ses_session *s, const ses_catalog *c, const cat_ident *id, cat_table **out, fz_error *err) {
    const char *dir = memory_dir(s);
    *out = NULL;
    return dir ? cat_recall(dir, c->iceberg, id, out, err) : FZ_OK;
}
