/* Inside the job room: the running job, shared by its files.
 *
 *   job.c      coordinator: set-up, loop, checkpoints, end
 *   start.c    sources and sinks at their start; positions of splits (rules 2, 6, 7)
 *   away.c     a table that cannot be reached at the start, and what is kept for that
 *   worker.c   workers: poll, decode, execute, route
 *   writers.c  writer shards: queues and threads around sink_shard
 *   commit.c   the position-checked commit (rules 2 to 4)
 *   retire.c   positions of logs that are gone
 *   records.c  checkpoint records
 *   drain.c    the end of a job that takes in nothing more
 *   deliver.c  deliveries as sinks: opening, positions, intents
 *   courier.c  their threads
 *   divert.c   what a table could not take in time, to error objects; diverts.c: what the state directory knows of that
 *   replay.c   error objects that tables name, brought in after all
 *   oneshot.c  INSERTs whose plan is no chain over a connector table
 *   tally.c    what became of the records of each delivery
 *   status.c   a thread that writes the metrics once a second, and the live line
 *   publish.c  the same metrics to CloudWatch
 *   metrics.c  the text for Prometheus, and where it is served
 *
 * Who touches what
 *   job_split_state: the worker that reads the split; the control thread only while workers are parked (job_park).
 *   job_sink.error: any thread, under its lock. job_sink.status: control thread (workers read it while running; it changes only while they are parked).
 *   everything else: control thread.
 */
#ifndef JOB_INT_H
#define JOB_INT_H
#include "job/dead_letter.h"
#include "job/diverts.h"
#include "job/error_object.h"
#include "job/job.h"
#include "job/lineage.h"
#include "job/metrics.h"
#include "job/publish.h"
#include "delivery/delivery.h"
#include "job/records.h"
#include "job/scan.h"
#include "job/tally.h"
#include "sink/sink.h"
#include <pthread.h>
#include <stdatomic.h>

typedef struct job job;
typedef struct job_sink job_sink;
typedef struct job_source job_source;

/* One split as one sink sees it. */
typedef struct job_split_state {
    job_split_key key;
    bool known;              /* the table has a position of it: remembered */
    bool tail_told;          /* positions.spool-tail */
    bool claim;              /* must enter a commit even without rows, so that its start is a number from then on */
    int64_t remembered;
    int64_t from, next;      /* rows in [from, next) have been handed to the sink and are not committed */
    int64_t limit;           /* nothing is handed over from here on (the end of an intent, of what is given up); INT64_MAX: none */
    int64_t base;            /* where reading begins anew: the table's position, or the end of what was given up behind it; */
    bool base_diverted;      /* the latter */
    int64_t tried;           /* what lies below was handed over before, and could not be committed */
    uint64_t read, added, filtered, rejected, unparseable;
    job_again again;
    bool has_last;           /* the last record below next */
    int64_t last_offset, last_timestamp;
    uint64_t last_hash;
    int64_t gone_ms;         /* as in job_position; deliveries */
} job_split_state;

typedef struct job_path {    /* one INSERT */
    const job_insert *insert;
    job_sink *sink;
    job_source *source;      /* NULL: one-shot query */
    ex_program *program;     /* NULL: one-shot query */
    uint32_t number;         /* in source->paths */
    uint32_t like;           /* the first of source->paths with the same program: it is run once for both */
} job_path;

struct job_source {
    uint32_t index;
    const sql_plan *scan_plan;
    job_scan *scan;
    src_source *source;
    bool replayable, bounded;
    bool *wanted;            /* union of what its INSERTs want */
    sql_plan merged;         /* scan_plan with that union */
    uint32_t n_paths;
    job_path **paths;        /* grouped by sink */
    uint32_t n_sinks;
    job_sink **sinks;
    atomic_uint_fast64_t records_in, bytes_in;
    atomic_uint positioned;  /* splits that have a position; those after them were just found */
    atomic_uint readers_done;
    fz_log_limit retry_limit;
};

/* Where a sink stands in one split, for the thread that writes metrics. */
typedef struct job_stand { job_source *source; uint32_t split; int64_t at; } job_stand;

/* A sink begins RUNNING, or WAITING (its table is unseen, or has to be told first what was given up). Legal moves: RUNNING -> WAITING (a failure that may pass; files dropped) -> RUNNING (positions loaded again); WAITING -> DIVERTING (what it could not take is given up) -> WAITING; any -> FAILED. */
typedef struct job_courier job_courier; /* courier.c */
typedef struct job_divert job_divert;   /* divert.c */

typedef enum { SINK_RUNNING, SINK_WAITING, SINK_FAILED, SINK_DIVERTING } job_sink_status;

struct job_sink {
    uint32_t index;
    const char *text;
    cat_catalog *catalog;
    cat_ident ident;
    const job_insert *insert; /* the first one into it */
    fz_arena *arena;
    cat_table *table;        /* as loaded at the start: what files are written with; while it is unseen: as recalled, for the shape of rows */
    bool unseen;             /* the table has not been seen by this process: the sink is WAITING or DIVERTING */
    bool remembered;         /* by this process, for the next one */
    bool bounded_below;      /* unseen: its splits stand where the table was last seen, which is sound to give up from */
    sink_table *files;
    dlv_delivery *delivery;  /* in place of table and files; with */
    job_courier *courier;
    fio *state_io;
    uint32_t n_carried;      /* positions that it has of splits that this run did not find */
    job_position *carried;
    fz_arena *carried_arena;
    job_diverts *diverts;    /* tables: what was given up, in this run and before it */
    job_divert *divert;      /* NULL: no error location */
    dead_letters *letters;   /* in the error location; NULL: the job's */
    job_pending pending;     /* of diverts: what the table does not know yet; in: */
    fz_arena *pending_arena;
    uint32_t n_adopted;      /* pipelines whose positions this run has taken over, and (tables) with them their open error objects */
    job_adopted *adopted;
    uint32_t n_adopted_before; /* deliveries: those of earlier runs */
    job_adopted *adopted_before; /* in carried_arena */
    bool ahead_told;         /* positions.other-ahead */
    uint32_t n_open;         /* error objects that the table lacks and names */
    uint32_t given_commits, given_waits;
    bool replaying;          /* an intent is being made good */
    uint64_t lots;           /* cut so far: several can belong to one checkpoint */
    job_sink_status status;
    job_split_state **splits; /* by source index: array of states by split index (NULL: not read by this sink) */
    uint32_t *n_splits;
    uint32_t *paths_of;      /* by source index: number of INSERTs */
    bool replayable;         /* it has a source with positions */
    bool can_rewind;         /* all its sources have: what was dropped can be read again */
    bool only_bounded_oneshot; /* commits once, at the end */
    bool new_chain;
    bool committed;          /* this run has committed to it */
    bool unknown;            /* the outcome of its last commit is not known yet */
    uint32_t empty_checkpoints, rewinds, waits; /* the last two: since the last commit */
    int64_t wait_until_ns, failing_since_ns;
    pthread_mutex_t lock;
    atomic_bool failing;     /* error is set */
    fz_error error;
    uint64_t rows_committed;
    job_tally tally;
    pthread_mutex_t stand_lock;
    uint32_t n_stands;       /* under stand_lock, with: */
    job_stand *stands;
    job_counts oneshot;      /* of queries, not in a lot yet */
    job_counts open;         /* of a lot whose outcome is not known */
};

typedef struct job_prepared { /* what one checkpoint yields for one sink */
    job_sink *sink;
    fz_arena *arena;
    sink_files *files;       /* by shard */
    uint32_t n_shards, n_files;
    uint64_t rows;
    uint32_t n_ranges;
    job_range *ranges;
    job_position *after;     /* beside ranges: the positions that the commit leaves */
    bool *known;             /* beside ranges: what the table was remembered to say */
    int64_t *remembered;
    char commit_id[96];
    bool new_chain;
    job_counts counts;       /* of all that it carries, splits without positions too */
    bool diverted;           /* its rows went to the error location */
    dlv_lot *lot;            /* deliveries: in place of files */
    const char *ranges_text, *state_text;
    uint32_t n_objects, n_replayed;
    const job_diverted *objects;  /* error objects that the table gets to know */
    const job_replayed *replayed; /* those whose rows are in the files: they must be open in the table */
} job_prepared;

typedef struct job_writer job_writer; /* a shard with its queue and thread: writers.c */
typedef struct job_worker job_worker; /* worker.c */

struct job {
    const job_spec *spec;
    fz_arena *arena;
    char run_id[37];
    uint32_t n_sources, n_sinks, n_paths, n_workers, n_writers;
    job_source **sources;
    job_sink **sinks;
    job_path *paths;
    job_writer **writers;
    job_worker **workers;
    dead_letters *letters;
    job_publisher *publisher;    /* NULL: nothing goes to CloudWatch */
    job_metrics *metrics;        /* NULL: no port is set */
    job_records *records;        /* NULL: no directory is named */
    ice_io io;                   /* its functions; cx is each table's store: job_io */
    uint64_t checkpoint;
    /* policies */
    enum { ROW_DEAD_LETTER, ROW_FAIL, ROW_DROP } on_row_error, on_null;
    enum { POSITIONS_CHECK, POSITIONS_ADOPT, POSITIONS_IGNORE } positions;
    bool lost_earliest, continue_on_failure;
    bool look;               /* job_look: peers that are away are not waited for */
    size_t memory_limit, writer_budget;
    /* parking of workers */
    pthread_mutex_t park_lock;
    pthread_cond_t park_cond;
    atomic_bool park, quit;
    uint32_t parked, running; /* under park_lock */
    atomic_bool throttled;
    pthread_mutex_t error_lock;
    atomic_bool failed;      /* error is set: a source or worker cannot go on */
    fz_error error;
    bool unknown_outcome;
    bool draining;
    fio *letters_io;         /* NULL: dead letters are local files */
};
static inline bool job_sink_reads(const job_sink *s) { return s->status == SINK_RUNNING || s->status == SINK_DIVERTING; }
static inline ice_io job_io(const job *j, const cat_table *t) { return (ice_io){t->io, j->io.read, j->io.write}; }

/* away.c */
/* Opens the table of s, in place of loading it, when it cannot be reached now (*err says why, its class is rc) and was known before: FZ_OK, and s is unseen; else the error. */
fz_status job_away_open(job *j, job_sink *s, fz_status rc, fz_error *err) FZ_MUST_USE;
/* The table of an unseen sink was loaded; with FZ_OK now is the sink's. The sink is unseen until its positions are known too. */
fz_status job_away_end(job *j, job_sink *s, cat_table *now, fz_error *err) FZ_MUST_USE;
/* Is m what rows of s are shaped for? FATAL "commit.other-table", "commit.schema-changed". */
fz_status job_table_same(const job_sink *s, const ice_metadata *m, fz_error *err) FZ_MUST_USE;
/* Keep what such a start needs: the table and what it says of positions; the positions after a commit (job_mirror_encode). What cannot be kept is said in the log. */
void job_away_remember(const job *j, job_sink *s, const job_lineage *l);
void job_away_seen(const job *j, const job_sink *s, const char *mirror);

/* start.c */
fz_status job_place(job *j, fz_error *err) FZ_MUST_USE;     /* sources, sinks, positions */
fz_status job_plan(job *j, fz_error *err) FZ_MUST_USE;      /* paths, sinks and sources by the script alone, and where dead letters go: the first part of job_place */
fz_status job_open(job *j, fz_error *err) FZ_MUST_USE;      /* job_place, and reads are assigned */
void job_close(job *j);
/* Loads the table's positions into the split states of s and checks them (also after a rewind). */
fz_status job_sink_position(job *j, job_sink *s, fz_error *err) FZ_MUST_USE;
/* Begins reading every split of src from the lowest `next` of its running sinks. */
fz_status job_source_seek(job *j, job_source *src, fz_error *err) FZ_MUST_USE;
/* Gives positions to splits that were found since, and begins reading them. Workers are parked. May be called again after a failure. */
fz_status job_source_grow(job *j, job_source *src, fz_error *err) FZ_MUST_USE;

/* worker.c */
fz_status job_workers_start(job *j, fz_error *err) FZ_MUST_USE;
void job_workers_end(job *j);
void job_park(job *j);       /* returns when every worker has stopped between two chunks */
void job_unpark(job *j);
/* Hands a batch to the writers of a sink: checks required columns, routes, queues. b->cols are of the sink's schema. *added: rows that went on. */
fz_status job_hand_over(job *j, job_sink *s, col_batch *b, col_vec *const *cols, uint32_t n_rows, fz_rejects *rejects, uint32_t *added, fz_error *err) FZ_MUST_USE;
/* The same for a delivery: all rows are taken. time_ms as in dlv_rows. */
void job_hand_to_courier(job_sink *s, col_batch *b, col_vec *const *cols, uint32_t n_rows, const int64_t *time_ms, uint32_t source, uint32_t split);
void job_sink_fail(job_sink *s, const fz_error *err);  /* first error wins */
void job_fail(job *j, const fz_error *err);
bool job_all_done(job *j);   /* every worker has reached the end of every source */
void job_reading_again(job *j, const job_source *src); /* after a seek, while workers are parked: its end has not been reached */

/* writers.c */
job_writer *job_writer_start(job *j, uint32_t number, size_t budget);
void job_writer_end(job_writer *w);
void job_writer_push(job_writer *w, job_sink *s, col_batch *b, col_vec *const *cols, const sink_part **parts, uint32_t n);
/* Waits until what was pushed before is written, then closes (or drops) the sink's files in all writers. */
fz_status job_writers_close(job *j, job_sink *s, sink_files *out, fz_error *err) FZ_MUST_USE;
void job_writers_abort(job *j, job_sink *s);

/* commit.c */
typedef enum { COMMIT_DONE, COMMIT_BY_OTHER, COMMIT_REWIND, COMMIT_LATER, COMMIT_FAILED } job_commit_outcome;
/* Commits p by the protocol. BY_OTHER: another copy of the job has committed the very same records; p's files are dropped. REWIND: the table is somewhere else, p's files are dropped. LATER: the table cannot be reached
 * now (err), and other sinks must not wait for it; p's files are dropped. FAILED: err says why (class UNKNOWN: may have landed, files stay). */
job_commit_outcome job_commit(job *j, const job_prepared *p, fz_error *err);

/* job.c */
bool job_stop_over(void);    /* told to stop twice, or once and longer than frazil.stop.timeout ago: what is stuck is left; any thread */
job *job_new(const job_spec *spec);
void job_free(job *j);
void job_set_status(const job *j, job_sink *s, job_sink_status status); /* legal moves: see there */
void job_prepared_free(job_prepared *p); /* NULL is allowed */

/* deliver.c */
fz_status job_delivery_open(job *j, job_sink *s, const job_insert *in, fz_error *err) FZ_MUST_USE;
void job_delivery_close(job_sink *s);
/* Fills the texts of p; workers are parked. */
void job_delivery_describe(job *j, job_prepared *p);
/* The positions of the last commit in the shape in which a table gives them, and the ranges of an intent ("": none). */
fz_status job_delivery_read(job *j, job_sink *s, fz_arena *a, job_lineage *l, const char **intent, fz_error *err) FZ_MUST_USE;
/* What other names say of the same place: a pipeline's name is NAME/TABLE here. */
const char *job_delivery_name(const job *j, const job_sink *s, fz_arena *a);
/* ours: what its own name says; only_heirs: of the others only those that have taken that over. */
fz_status job_delivery_others(job *j, job_sink *s, fz_arena *a, const job_marks *ours, bool only_heirs, job_marks **out, uint32_t *n, fz_error *err) FZ_MUST_USE;
const char *job_delivery_root(job *j); /* the directory of all deliveries' states */
bool job_delivery_is_ours(const job *j, const dlv_other *o); /* another sink of this very job */
fz_status job_delivery_limits(job *j, job_sink *s, const char *intent, fz_error *err) FZ_MUST_USE;
bool job_delivery_replayed(const job *j, const job_sink *s); /* every split stands at its limit */

/* retire.c */
void job_mark_gone(const job *j, const job_sink *s, job_position *p, int64_t now_ms); /* p is one that s has: is its log there? */
/* divert.c; control thread unless said */
fz_status job_divert_open(job *j, job_sink *s, fz_error *err) FZ_MUST_USE; /* reads the options and what the state directory knows */
void job_divert_close(job_sink *s);
fio *job_divert_store(const job_sink *s);                    /* NULL: no error location */
int64_t job_divert_window_ns(const job_sink *s);             /* INT64_MAX: nothing is given up */
void job_divert_tried(job *j, job_sink *s);                  /* before what was handed over is dropped; workers are parked */
int64_t job_divert_wait_ns(const job_sink *s, int64_t now_ns, int64_t wait_ns); /* until the next attempt */
bool job_divert_due(const job *j, job_sink *s);              /* just after an attempt has failed: shall a pass begin? */
void job_divert_count(job_sink *s);                          /* its open error objects, for metrics; a warning when they are many */
void job_divert_begin(job *j, job_sink *s);
void job_divert_tend(job *j, job_sink *s);
bool job_divert_busy(const job_sink *s);                     /* a put is under way: what was given up is about to change */
bool job_divert_all(const job *j, const job_sink *s);        /* everything up to the stops is given up, and the table does not answer */
void job_divert_cut(job_sink *s, const job_source *src, const fz_chunk *c); /* worker: sets the split's limit where the pass ends in c */
fz_status job_divert_take(job_sink *s, const job_source *src, const fz_chunk *c, const uint32_t *rows, fz_error *err) FZ_MUST_USE; /* worker; rows[i]: how many record i gives */

/* courier.c; push: workers; the rest: control thread */
job_courier *job_courier_start(job *j, job_sink *s);
void job_courier_end(job_courier *c);  /* waits for the lot on its way; NULL is allowed */
void job_courier_push(job_courier *c, col_batch *b, const dlv_rows *rows); /* retains b */
dlv_lot *job_courier_cut(job_courier *c); /* all that was pushed; NULL: nothing */
void job_courier_abort(job_courier *c);   /* drops what was not cut */
bool job_courier_busy(job_courier *c);    /* a lot is on its way, or its outcome has not been fetched */
void job_courier_send(job_courier *c, job_prepared *p); /* p becomes the courier's; it is not busy */
bool job_courier_back(job_courier *c, bool wait, job_prepared **p, fz_status *rc, fz_error *err); /* p is the caller's again */

/* drain.c */
bool job_drain_requested(void);
void job_drain_begin(job *j);
/* After the loop. rc and err: how the job ended; gives "drain.left" when something is left and nothing else was wrong. */
fz_status job_drain_report(job *j, fz_status rc, fz_error *err) FZ_MUST_USE;
bool job_run_file_write(const job *j, bool quiet); /* false: it could not be written; quiet: which was told before */
void job_tell_unread(const job *j);                /* one warning for each spool of the state directory that holds records and that nobody has open */
void job_run_file_remove(const job *j);

/* oneshot.c */
fz_status job_run_oneshot(job *j, job_path *p, fz_error *err) FZ_MUST_USE;

/* status.c */
/* What the sink has committed or given up has moved: the control thread says so to who writes the metrics. */
void job_note_stands(const job *j, job_sink *s);
uint64_t job_lag(const job_source *src);    /* positions between where reading stands and the end; any thread */
uint64_t job_sink_lag(job_sink *s);         /* the same from where the sink stands, over its sources; any thread */
typedef struct job_status job_status;
job_status *job_status_new(job *j);
void job_status_free(job_status *st);
#endif
