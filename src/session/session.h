/* A session: executes the statements of a script. Holds catalogs, databases in memory, temporary tables and views, and settings; hands queries to exec
 * and INSERTs to the job.
 *
 * Invariants
 *  1. Statements run one after another in the caller's thread; the first that fails ends the script.
 *  2. An error of a statement has a position in its script (line, column): the statement's own if nothing closer is known.
 *  3. default_catalog.default_database exists from the start, in memory, as in Flink. A temporary table hides a permanent one of the same name.
 *  4. Every name is resolved to catalog.database.object at once; a view keeps the names of the time when it was made.
 * Threads: one; job_request_stop (signal) also ends a running SELECT.
 */
#ifndef SES_SESSION_H
#define SES_SESSION_H
#include "catalog/catalog.h"
#include "conf/conf.h"
#include "sql/sql.h"

/* Where results go. Each function may fail; the statement then fails with that error. */
typedef struct ses_output {
    void *cx;
    /* A result begins. live: rows come as they are read and may never end. listing: what SHOW, DESCRIBE and SET say (a NULL is a blank there). */
    fz_status (*begin)(void *cx, const col_schema *s, bool live, bool listing, fz_error *err);
    fz_status (*rows)(void *cx, const col_batch *b, const char *time_zone, fz_error *err);
    fz_status (*end)(void *cx, fz_error *err);
    /* A result that is one text (SHOW CREATE, EXPLAIN). */
    fz_status (*text)(void *cx, const char *text, fz_error *err);
    /* A statement without a result has been executed; message may be NULL. May be NULL itself. */
    void (*done)(void *cx, const char *message);
} ses_output;

struct ops_plan;
typedef struct ses_session ses_session;
/* base: settings of the process (config.yaml); copied. out: copied, its cx outlives the session. */
ses_session *ses_new(const conf *base, const ses_output *out);
void ses_free(ses_session *s); /* NULL is allowed */

typedef struct ses_script {
    const char *name;          /* file name for the default of pipeline.name; NULL: "frazil-sql" */
    const char *text;
    size_t len;
    bool init_only;            /* SET and DDL only (-i FILE); anything else is USER "sql.init-statement" */
} ses_script;
/* Runs all statements. *exit_code (may be NULL) gets the program's exit code (see job.h). */
fz_status ses_run(ses_session *s, const ses_script *script, int *exit_code, fz_error *err) FZ_MUST_USE;
bool ses_wants_quit(const ses_session *s); /* QUIT or EXIT was executed */
bool ses_wants_clear(ses_session *s);      /* CLEAR was executed since the last call */
const conf *ses_settings(const ses_session *s);
/* What conf cannot check by itself: the time zone. For config.yaml; SET is checked by the session. USER "option.invalid". */
fz_status ses_check_settings(const conf *c, fz_error *err) FZ_MUST_USE;

/* From now on INSERTs are not run: what they gave up is replayed (job/replay.h), and statements that only tell something are passed over. r outlives the session. */
struct job_replay;
void ses_set_replay(ses_session *s, struct job_replay *r);

/* What a script needs, for the doctor: nothing of it is executed (see ops/doctor.h). base: settings of the process; script->text must outlive the plan. USER: the script is wrong; with
 * line and column. *out is freed with ses_plan_free. */
fz_status ses_plan_script(const conf *base, const ses_script *script, struct ops_plan **out, fz_error *err) FZ_MUST_USE;
void ses_plan_free(struct ops_plan *p); /* NULL is allowed */

/* An Iceberg table by the text of its name ("a.b.c", "`x`.y"), for commands that name a table. The catalog stays the session's; the caller frees the table. */
fz_status ses_open_table(ses_session *s, const char *name, cat_catalog **catalog, cat_table **out, fz_error *err) FZ_MUST_USE;
/* The session's time zone as an IANA name or offset; never "default". Lives as long as the session. */
const char *ses_time_zone(ses_session *s);
#endif
