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
    const sql_table *connector;  /* a delivery: catalog is NULL and target empty */
    const col_schema *schema;    /* of a delivery's rows */
    const char *target_text;     /* catalog.database.table, for messages and logs */
    const fz_pair *options;      /* OPTIONS of the target, a table: checked by job_sink_options_check */
    size_t n_options;
    int32_t schema_id, spec_id;  /* of the table that the plan was bound against */
    const fz_error *away;        /* set: the table was not seen, but recalled (cat_recall from job_tables_dir), since its catalog gave this error: one that job_passing lets pass */
    sql_pos pos;
} job_insert;

/* What is kept of tables that jobs write to, for a start while their catalog is away: cat_remember's directory; heap. */
char *job_tables_dir(const conf *settings);
/* A permission (or credentials) missing while a job runs may come (or come back): granted within commit.retry.total-timeout-ms it costs no row; so may a directory that is away (a mount, a file in
 * its place). The same holds at a start that is not the table's first; at the first it refuses the job. RETRY and UNKNOWN pass anyway; gives RETRY for those others that do, else rc. */
fz_status job_passing(fz_status rc, const fz_error *e);

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

/* OPTIONS of a table that an INSERT writes to; ends with a NULL name. The options of stores (fio_options, aws_options) may stand beside them, for the error location. */
const fz_option *job_sink_options(void);
/* Is the plan a chain of filters and projections over a connector's table, or several by UNION ALL? Such an INSERT has positions and runs for as long as its sources do. Another one (VALUES, aggregates,
 * LIMIT, tables of a catalog) is run once, before all others, and ends. */
bool job_streams(const sql_plan *p);
fz_status job_sink_options_check(const fz_pair *o, size_t n, const char *table, fz_error *err) FZ_MUST_USE; /* USER, with the option's place */

/* Runs until bounded sources are read, a stop is requested, or a sink or source fails. On any status but FZ_OK err says why and report->exit_code which code fits:
 * USER errors found before anything ran are JOB_USAGE. */
fz_status job_run(const job_spec *spec, job_report *report, fz_error *err) FZ_MUST_USE;
/* Where a job would begin, by the rules by which it does, without reading anything but the record before a position (rule 7) and without waiting for peers that are away:
 * for the doctor. Calls fn for each split and the table that it goes into. */
typedef struct job_begin {
    const char *target, *split;
    bool known;                  /* the table has a position of it; else the script's start counts (or the log's start, for a partition found later) */
    int64_t from;                /* first offset that would be read; -1: there is none to be had */
    int64_t low, high;           /* of the log */
} job_begin;
fz_status job_look(const job_spec *spec, void (*fn)(void *cx, const job_begin *b), void *cx, fz_error *err) FZ_MUST_USE;

/* First call: last checkpoint, commit, end. Second call: end as soon as no commit is under way. Async-signal-safe. */
void job_request_stop(void);
int job_stop_requested(void);    /* how many times */
/* Takes in nothing more, delivers what is there, ends; says in <state dir>/<pipeline>.drained what became of it. Async-signal-safe. */
void job_request_drain(void);
/* <state dir>/<pipeline><ending>; heap. ".run": while the job runs, with pid and start of the process. ".drained": the report of a drain. */
char *job_run_file(const char *state_dir, const char *pipeline, const char *ending);
uint64_t job_process_start(int64_t pid); /* 0: there is no such process */
void job_reset_stop(void);       /* a shell, before its next statement; never while a job runs */
#endif
