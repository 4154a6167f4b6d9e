/* Sources: splits and chunks. A connector is a const table of functions (src_connector); this header is what the job sees.
 *
 * Invariants
 *  1. A source knows nothing of formats: it hands out raw records.
 *  2. Replayable sources (Kafka) can read any position again; one-shot sources (bounded files, datagen) have no positions.
 *  3. A split's index never changes while the source is open; discovery only appends.
 *  4. src_assign decides where reading begins; nothing else does (no group offsets behind the job's back).
 * Threads: control thread for everything but src_poll; src_poll(reader r) is called by worker r only. Assign and unassign
 *          are called while no worker polls.
 */
#ifndef SRC_SOURCE_H
#define SRC_SOURCE_H
#include "base/base.h"

typedef struct src_source src_source;

typedef struct src_split {
    const char *name;       /* unique in the source: "syslog/0", a file's path */
    const char *topic;      /* Kafka; NULL elsewhere */
    int32_t partition;
    int64_t start;          /* resolved number from the scan.startup options: where a split that nobody has read begins; -1: there is
                             * none to be had (no committed offset), and src_assign with it gives the USER error that says so */
    bool start_is_earliest; /* start is the earliest record (rule 6 of the commit protocol) */
    bool found_later;       /* discovered after the source was opened */
    int64_t stop;           /* exclusive end of a bounded read (resolved number); INT64_MAX: unbounded */
    int64_t low, high;      /* log start and end when last asked (src_bounds) */
} src_split;

typedef struct src_field { const char *name, *type; } src_field; /* type: Flink's text, "DECIMAL(10, 2) NOT NULL" */

typedef struct src_context {
    const char *table;      /* name of the SQL table, for messages */
    const char *job;        /* pipeline.name */
    uint32_t readers;       /* number of workers that will poll */
    uint64_t memory;        /* bytes that the source may hold in queues */
    uint32_t max_record_size;
    const char *state_dir;  /* frazil.state.dir, for connectors that keep records there until they are committed; NULL: such a connector is refused */
    bool look;              /* only look: nothing outside is changed, nothing is listened on, nothing will be polled (doctor, EXPLAIN) */
    bool need_key, need_headers; /* metadata columns that the query uses */
    bool bounded_job;       /* execution.runtime-mode = batch: a source that cannot end is refused */
    const char *time_zone;  /* the session's, for decoders; NULL: UTC */
    const src_field *fields; /* the table's physical columns, for connectors that make rows (datagen); valid during src_open only */
    uint32_t n_fields;
} src_context;

typedef enum { SRC_PROBE_OK, SRC_PROBE_GONE /* retention took it */, SRC_PROBE_BEYOND /* past the end */, SRC_PROBE_SAME /* not looked at: the source knows otherwise that it is the same log */ } src_probe_result;
typedef struct src_probe { src_probe_result result; int64_t offset, timestamp_ms; uint64_t hash; } src_probe;
/* Checks the options of a connector as src_open does, and reaches for nothing outside the process. USER. */
fz_status src_check(const fz_pair *options, size_t n, const char *table, fz_error *err) FZ_MUST_USE;
bool src_endless(const fz_pair *options, size_t n); /* a table with these options may never end; what src_check refuses may give either answer */
/* Does the connector log in with credentials of AWS (Amazon MSK with IAM)? Then *out are the options of the session that gives them ("client.*"), in a. */
fz_status src_aws_login(const fz_pair *options, size_t n, fz_arena *a, fz_pair **out, size_t *n_out, bool *wanted, fz_error *err) FZ_MUST_USE;
/* Opens the connector that options' 'connector' names, checks every option (unknown: USER, names it), finds the splits and
 * resolves their starts. Does not read. USER for a wrong option or unknown topic, RETRY when the peer cannot be reached. */
fz_status src_open(const fz_pair *options, size_t n, const src_context *cx, src_source **out, fz_error *err) FZ_MUST_USE;
/* All chunks must have been released before. NULL is allowed. */
void src_close(src_source *s);

bool src_replayable(const src_source *s);
bool src_bounded(const src_source *s);     /* every split has a stop */
const char *src_identity(const src_source *s); /* Kafka: "kafka:<cluster id>"; the split's name holds the topic */
uint32_t src_n_splits(const src_source *s);
const src_split *src_get_split(const src_source *s, uint32_t i);
/* Looks for new splits and topics (partition discovery), when the interval of the options is over; call it as often as you like,
 * also while workers poll. *added tells how many were appended. RETRY: nothing was, the next interval tries again. */
fz_status src_discover(src_source *s, uint32_t *added, fz_error *err) FZ_MUST_USE;
/* Refreshes low and high of one split. */
fz_status src_bounds(src_source *s, uint32_t split, int64_t *low, int64_t *high, fz_error *err) FZ_MUST_USE;
/* The newest record before `before` (rule 7): its offset, timestamp and hash. For a source whose log has gaps that is the
 * last one that a reader is given. GONE / BEYOND when it cannot be had. */
fz_status src_probe_before(src_source *s, uint32_t split, int64_t before, src_probe *out, fz_error *err) FZ_MUST_USE;
/* Begins reading the split at `from`. Splits are dealt to readers by index. */
fz_status src_assign(src_source *s, uint32_t split, int64_t from, fz_error *err) FZ_MUST_USE;
fz_status src_unassign_all(src_source *s, fz_error *err) FZ_MUST_USE;
/* Next chunk of reader r, waiting up to timeout_ms. *out NULL: nothing now. *done: all splits of this reader reached their stop.
 * RETRY: the peer is away; the caller logs, backs off and polls again. FATAL: offset out of range and the like. */
fz_status src_poll(src_source *s, uint32_t reader, int64_t timeout_ms, fz_chunk **out, bool *done, fz_error *err) FZ_MUST_USE;
/* Tells the outside what has been committed (Kafka group offsets); a report, not truth. Failure is logged by the caller only.
 * Waits five seconds at most. */
fz_status src_report(src_source *s, const uint32_t *splits, const int64_t *offsets, uint32_t n, fz_error *err) FZ_MUST_USE;
/* May src_report do what it does? Asks, and changes nothing. *group: whom it would tell, NULL: nobody. Failures as of src_report. */
fz_status src_report_check(src_source *s, const char **group, fz_error *err) FZ_MUST_USE;
/* Takes in nothing more (listeners close, what has been made up ends), and gives every split that has no stop its present end as one; no worker polls. Splits are to be assigned anew. RETRY. */
fz_status src_drain(src_source *s, fz_error *err) FZ_MUST_USE;
/* Positions of the split from `at` on (-1: from where reading stands; 0 when it is not read) to its end, or its stop: records; of files that are followed, bytes. The end as it is known without asking anybody.
 * Any thread, while the source is open; only of splits that src_discover (or the opening) has told of. */
uint64_t src_behind(src_source *s, uint32_t split, int64_t at);
uint64_t src_lag(src_source *s); /* of all splits, from where reading stands; not while src_discover is at work */
/* Calls fn for each metric of the connector, its listeners and its spool, always the same ones; label: value of the metric's second label, or NULL. Any thread, while the source is open. */
typedef void (*src_metric_fn)(void *cx, fz_metric m, const char *label, uint64_t value);
void src_metrics(src_source *s, src_metric_fn fn, void *cx);
/* When the oldest record from position `at` on (-1: from where reading stands) came in; 0: there is none, or the connector does not know. Any thread, while the source is open. */
int64_t src_arrival(src_source *s, uint32_t split, int64_t at);
/* Is there nothing (any more) that could be read of the log that was called `topic`? Only a source that knows all there is says so; logs of others may come back. */
bool src_gone(const src_source *s, const char *topic);
/* What a connector that listens would listen on, and where its records wait: of a source that is only looked at (src_context.look). NULL: it does not listen. The texts are those of its options. */
typedef struct src_listening {
    const char *address;    /* as given */
    bool datagrams;
    bool authenticated;     /* something in the options authenticates senders, certificates too */
    const char *tls_cert, *tls_key, *tls_ca; /* NULL: none */
} src_listening;
typedef struct src_doors { uint32_t n; const src_listening *v; const char *spool_dir; int64_t spool_max; } src_doors;
const src_doors *src_listens(const src_source *s);
uint64_t src_record_hash(const fz_record *r); /* hash of key and value with their lengths: what a position carries */

/* A source whose records come from elsewhere, for records that are run through a script again: it has splits, and reads nothing. */
src_source *src_replayed_new(const src_context *cx);
uint32_t src_replayed_split(src_source *s, const char *topic, int32_t partition); /* its index; made when it is not there */

/* Connector tables, for docs and completeness tests; each row is one connector's name and its fz_option table. */
typedef struct src_connector_info { const char *name; const fz_option *options; const char *doc; } src_connector_info;
const src_connector_info *src_connectors(void); /* ends with a NULL name */
/* Metadata columns of a connector (`METADATA FROM 'x'`): name and Flink type text; NULL-terminated. */
typedef struct src_metadata_column { const char *key; const char *type; } src_metadata_column;
const src_metadata_column *src_metadata_columns(const char *connector);
const char *src_default_format(const char *connector); /* of its records, when the table names none; NULL: the table has to */
/* Fault seam for tests: a connector made of records in memory ('connector'='memory' exists only when a test registers it). */
typedef struct src_ops src_ops;
void src_register_for_test(const char *name, const src_ops *ops);
#endif
