/* The session's life and the walk over a script's statements. See session.h. */
#include "session/session_int.h"
#include "col/tz.h"
#include "job/job.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

ses_session *ses_new(const conf *base, const ses_output *out) {
    ses_session *s = FZ_NEW(ses_session);
    s->settings = conf_clone(base);
    conf_mark_base(s->settings);
    s->out = *out;
    s->catalog = fz_strdup("default_catalog");
    s->database = fz_strdup("default_database");
    ses_catalog *c = ses_add_catalog(s, "default_catalog", NULL, "default_database");
    FZ_GROW(c->databases, c->n_databases, c->cap_databases);
    c->databases[c->n_databases++] = fz_strdup("default_database");
    return s;
}

void ses_free(ses_session *s) {
    if (!s) return;
    while (s->n_tables) ses_remove_table(s, s->tables[s->n_tables - 1]);
    for (uint32_t i = 0; i < s->n_catalogs; i++) ses_catalog_free(s->catalogs[i]);
    for (uint32_t i = 0; i < s->n_written; i++) {
        fz_free(s->written[i].pipeline);
        fz_free(s->written[i].target);
        fz_free(s->written[i].text);
    }
    fz_free(s->written);
    fz_free(s->catalogs);
    fz_free(s->tables);
    fz_free(s->catalog);
    fz_free(s->database);
    conf_free(s->settings);
    fz_free(s);
}

bool ses_wants_quit(const ses_session *s) { return s->quit; }
bool ses_wants_clear(ses_session *s) {
    bool clear = s->clear;
    s->clear = false;
    return clear;
}
void ses_set_replay(ses_session *s, struct job_replay *r) { s->replay = r; }
const conf *ses_settings(const ses_session *s) { return s->settings; }

/* The machine's zone: TZ, else where /etc/localtime points to. */
static void local_zone(char *out, size_t cap) {
    char link[256];
    const char *tz = getenv("TZ"), *zone = NULL;
    if (tz && *tz) {
        zone = tz[0] == ':' ? tz + 1 : tz;
    } else {
        ssize_t n = readlink("/etc/localtime", link, sizeof link - 1);
        if (n > 0) {
            link[n] = 0;
            zone = strstr(link, "zoneinfo/");
            if (zone) zone += strlen("zoneinfo/");
        }
    }
    snprintf(out, cap, "%s", zone && tz_find(fz_sv_of(zone)) && strlen(zone) < cap ? zone : "UTC");
}

const char *ses_time_zone(ses_session *s) {
    const char *set = conf_get(s->settings, "table.local-time-zone");
    if (!set || strcmp(set, "default") == 0) local_zone(s->time_zone, sizeof s->time_zone);
    else snprintf(s->time_zone, sizeof s->time_zone, "%s", set);
    return s->time_zone;
}

sql_settings ses_sql_settings(ses_session *s) {
    return (sql_settings){.time_zone = ses_time_zone(s), .now_us = 0, .streaming = !conf_is(s->settings, "execution.runtime-mode", "batch"), .legacy_cast = false};
}

fz_status ses_fail_at(fz_error *err, sql_pos pos) {
    if (err && !err->line) fz_at(err, pos.line, pos.column);
    return err ? err->cls : FZ_FATAL;
}

static fz_status check_zone(const char *zone, fz_error *err) {
    if (!zone || strcmp(zone, "default") == 0 || tz_find(fz_sv_of(zone))) return FZ_OK;
    fz_fail(err, FZ_USER, "option.invalid", "'table.local-time-zone': there is no time zone '%s'", zone);
    return fz_hint(err, "write an IANA name such as Asia/Tokyo, or an offset such as +09:00");
}

fz_status ses_check_settings(const conf *c, fz_error *err) { return check_zone(conf_get(c, "table.local-time-zone"), err); }

fz_status ses_set(ses_session *s, const sql_stmt *st, fz_error *err) {
    if (st->kind == SQL_S_RESET) return conf_reset(s->settings, st->key, err);
    if (!st->key) return ses_list_settings(s, err);
    if (strcmp(st->key, "table.local-time-zone") == 0) FZ_TRY(check_zone(st->value, err));
    FZ_TRY(conf_set(s->settings, st->key, st->value, err));
    fz_log_level level;
    if (strcmp(st->key, "frazil.log.level") == 0 && fz_log_parse_level(st->value, &level)) fz_log_set_level(level);
    return FZ_OK;
}

static const char help_text[] = "Statements end with a semicolon. A few to begin with:\n"
                                "  SHOW CATALOGS | DATABASES | TABLES | VIEWS | FUNCTIONS;   DESCRIBE t;   SHOW CREATE TABLE t;\n"
                                "  CREATE CATALOG c WITH (...);   USE CATALOG c;   USE db;\n"
                                "  SELECT ...;   EXPLAIN SELECT ...;   INSERT INTO t SELECT ...;\n"
                                "  SET 'key' = 'value';   SET;   RESET 'key';\n"
                                "  QUIT;   EXIT;   CLEAR;\n"
                                "`frazil options` prints every setting and option.";

static bool only_tells(sql_stmt_kind k) {
    return k == SQL_S_SELECT || k == SQL_S_EXPLAIN || k == SQL_S_DESCRIBE || k == SQL_S_SHOW_CREATE_CATALOG || k == SQL_S_SHOW_CREATE_TABLE || k == SQL_S_SHOW_CREATE_VIEW || k == SQL_S_SHOW_CATALOGS ||
           k == SQL_S_SHOW_DATABASES || k == SQL_S_SHOW_TABLES || k == SQL_S_SHOW_VIEWS || k == SQL_S_SHOW_CURRENT_CATALOG || k == SQL_S_SHOW_CURRENT_DATABASE || k == SQL_S_SHOW_FUNCTIONS;
}

static fz_status run_one(ses_session *s, sql_stmt *st, fz_error *err) {
    if (s->replay && only_tells(st->kind)) return FZ_OK;
    switch (st->kind) {
    case SQL_S_SET:
    case SQL_S_RESET: return ses_set(s, st, err);
    case SQL_S_CREATE_CATALOG: case SQL_S_USE_CATALOG: case SQL_S_DROP_CATALOG: case SQL_S_CREATE_DATABASE: case SQL_S_USE: case SQL_S_DROP_DATABASE:
        return ses_catalog_statement(s, st, err);
    case SQL_S_CREATE_TABLE: return ses_create_table(s, st, err);
    case SQL_S_CREATE_VIEW: return ses_create_view(s, st, err);
    case SQL_S_DROP_TABLE:
    case SQL_S_DROP_VIEW: return ses_drop(s, st, err);
    case SQL_S_SHOW_CREATE_CATALOG: return ses_show_create_catalog(s, st, err);
    case SQL_S_SHOW_CREATE_TABLE:
    case SQL_S_SHOW_CREATE_VIEW: return ses_show_create(s, st, err);
    case SQL_S_SHOW_CATALOGS: case SQL_S_SHOW_DATABASES: case SQL_S_SHOW_TABLES: case SQL_S_SHOW_VIEWS: case SQL_S_SHOW_CURRENT_CATALOG:
    case SQL_S_SHOW_CURRENT_DATABASE: case SQL_S_SHOW_FUNCTIONS:
        return ses_show(s, st, err);
    case SQL_S_DESCRIBE: return ses_describe(s, st, err);
    case SQL_S_EXPLAIN: return ses_explain(s, st, err);
    case SQL_S_SELECT: return ses_select(s, st, err);
    case SQL_S_INSERT: return ses_insert(s, &st, 1, err);
    case SQL_S_STATEMENT_SET: return ses_insert(s, st->stmts, st->n_stmts, err);
    case SQL_S_QUIT: s->quit = true; return FZ_OK;
    case SQL_S_CLEAR: s->clear = true; return FZ_OK;
    case SQL_S_HELP: return s->out.text(s->out.cx, help_text, err);
    }
    return fz_fail(err, FZ_FATAL, "sql.statement", "unknown kind of statement");
}

static bool allowed_in_init(sql_stmt_kind k) {
    return k != SQL_S_SELECT && k != SQL_S_INSERT && k != SQL_S_STATEMENT_SET && k != SQL_S_EXPLAIN;
}

/* Statements that end without rows of their own say so in a shell. */
static bool is_silent(sql_stmt_kind k) { return k <= SQL_S_DROP_VIEW; }

static fz_status run_piece(ses_session *s, const sql_piece *piece, bool init_only, fz_error *err) {
    s->arena = fz_arena_new();
    fz_arena *mine = s->arena;
    sql_stmt *st = NULL;
    s->exit_code = JOB_DONE;
    fz_status rc = sql_parse(s->arena, piece, &st, err);
    if (rc == FZ_OK && init_only && !allowed_in_init(st->kind)) {
        rc = fz_fail(err, FZ_USER, "sql.init-statement", "an initialisation file holds SET and DDL statements only");
        rc = ses_fail_at(err, st->pos);
    }
    if (rc == FZ_OK) rc = run_one(s, st, err);
    if (rc != FZ_OK) {
        ses_fail_at(err, st ? st->pos : piece->pos);
        if (!s->exit_code) s->exit_code = rc == FZ_USER ? JOB_USAGE : rc == FZ_UNKNOWN ? JOB_UNKNOWN : JOB_FAILED;
    } else if (s->out.done && is_silent(st->kind) && !(st->kind == SQL_S_SET && !st->key)) {
        s->out.done(s->out.cx, NULL);
    }
    ses_iceberg_release(s);
    if (s->arena == mine) fz_arena_free(mine); /* else a table has kept it */
    s->arena = NULL;
    return rc;
}

fz_status ses_run(ses_session *s, const ses_script *script, int *exit_code, fz_error *err) {
    fz_arena *a = fz_arena_new();
    sql_piece *pieces;
    uint32_t n;
    s->script_name = script->name;
    s->exit_code = JOB_USAGE;
    fz_status rc = sql_split(a, script->text, script->len, &pieces, &n, err);
    if (rc == FZ_OK) s->exit_code = JOB_DONE;
    for (uint32_t i = 0; i < n && rc == FZ_OK && s->exit_code == JOB_DONE && !s->quit && !job_stop_requested(); i++)
        rc = run_piece(s, &pieces[i], script->init_only, err);
    if (exit_code) *exit_code = s->exit_code;
    fz_arena_free(a);
    return rc;
}
