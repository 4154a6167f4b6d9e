/* The job: runs INSERTs from sources into tables, checkpoint by checkpoint, by the commit protocol of ARCHITECTURE.md.
 *
 * Invariants
 *  1. A position moves only by a commit to its table; what a crash interrupts is found out from the table at the next start.
 *  2. Nothing is deleted while a commit's outcome is unknown.
 *  3. A row that fails is a dead letter (durable before the commit that passes it), dropped and counted, or ends the job: as the settings say.
 * Threads: job_run blocks its caller, which becomes the control thread. job_request_stop may be called from a signal handler.
 */
#ifndef JOB_JOB_H
#define JOB_JOB_H
#include "catalog/catalog.h"
#include "conf/conf.h"
#include "exec/exec.h"
#include "sql/sql.h"

typedef struct job_insert {
    const sql_plan *plan;        /* bound against the target's columns, in the table's order */
    cat_catalog *catalog;
    cat_ident target;
    const char *target_text;     /* catalog.database.table, for messages and logs */
    sql_pos pos;
} job_insert;

typedef struct job_spec {
    const char *name;            /* pipeline.name or its default */
    const conf *settings;
    const sql_settings *sql;
    uint32_t n_inserts;
    const job_insert *inserts;
    const ex_feed *feed;         /* for plans that are no chain over a connector table: VALUES, aggregates, reads of Iceberg tables */
} job_spec;

/* Exit codes of the program. */
enum { JOB_DONE = 0, JOB_USAGE = 1, JOB_FAILED = 2, JOB_UNKNOWN = 3 };

typedef struct job_report {
    int exit_code;               /* one of the above */
    uint64_t rows_added, rows_filtered, rows_rejected, unparseable, checkpoints;
    bool stopped;                /* by request */
} job_report;

/* Runs until bounded sources are read, a stop is requested, or a sink or source fails. On any status but FZ_OK err says why and report->exit_code which code fits:
 * USER errors found before anything ran are JOB_USAGE. */
fz_status job_run(const job_spec *spec, job_report *report, fz_error *err) FZ_MUST_USE;
/* First call: last checkpoint, commit, end. Second call: end as soon as no commit is under way. Async-signal-safe. */
void job_request_stop(void);
int job_stop_requested(void);    /* how many times */
void job_reset_stop(void);       /* a shell, before its next statement; never while a job runs */
#endif
