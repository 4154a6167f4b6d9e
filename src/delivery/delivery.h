/* Deliveries: sinks that are no tables (objects in an archive, a log service, the terminal, nothing). A connector is a const table of functions (dlv_ops); this header is what the job sees.
 *
 *     write (rows, in the order of each split) -> cut (a lot: all rows since the last cut) -> commit (the lot is delivered and the positions after it are durable)
 *
 * Invariants
 *  1. A lot is delivered under names that follow from its ranges alone: committing it again, by this process or the next one, overwrites the same thing with the same bytes where the
 *     other side can do that (exactly once); where it cannot, rows may come twice, never not at all (the connector's doc says which).
 *  2. What dlv_commit has answered with FZ_OK is durable on the other side, and dlv_load gives its state from then on. After RETRY or UNKNOWN the same lot is committed again.
 *  3. An intent (a lot that was begun, and whose end nobody knows) is told by dlv_load; the job delivers exactly its ranges again before anything else.
 *  4. A delivery holds at most what it was given as memory, and says so (dlv_wants) before.
 * Threads: dlv_write, dlv_cut and dlv_drop: one writer thread; dlv_commit: one committer thread, at the same time as dlv_write; dlv_wants and the counters: any; the rest: the control thread while
 *   neither runs.
 */
#ifndef DLV_DELIVERY_H
#define DLV_DELIVERY_H
#include "col/col.h"
#include "fileio/fileio.h"

typedef struct dlv_delivery dlv_delivery;
typedef struct dlv_lot dlv_lot;

typedef struct dlv_context {
    const char *table;           /* as in the script, for messages: catalog.database.table */
    const char *pipeline;        /* pipeline.name */
    const col_schema *schema;    /* of the rows */
    const char *state_dir;       /* location under which this delivery keeps its intents and positions */
    fio *state_io;               /* store of state_dir; outlives the delivery */
    const char *time_zone;       /* session's */
    size_t memory;
} dlv_context;

/* Is there a connector of this name that can be written to? */
bool dlv_is_connector(const char *name);
/* Checks the options; reaches for nothing outside the process. USER, with the position of the option. */
fz_status dlv_check(const fz_pair *options, size_t n, const char *table, const col_schema *schema, fz_error *err) FZ_MUST_USE;
/* Where a delivery writes objects, as far as its options alone tell: the fixed beginning of their locations, up to the first expression. Options that dlv_check has accepted; texts in a.
 * *n_out 0: it writes none. */
enum { DLV_MAX_PLACES = 2 };
typedef struct dlv_place { const char *option, *location; } dlv_place;
fz_status dlv_places(const fz_pair *options, size_t n, fz_arena *a, dlv_place out[DLV_MAX_PLACES], uint32_t *n_out, fz_error *err) FZ_MUST_USE;
/* USER, or RETRY when the other side cannot be reached. cx is copied. */
fz_status dlv_open(const fz_pair *options, size_t n, const dlv_context *cx, dlv_delivery **out, fz_error *err) FZ_MUST_USE;
void dlv_close(dlv_delivery *d); /* what was not committed is dropped; NULL is allowed */
const char *dlv_connector(const dlv_delivery *d);

/* The state of the last commit as dlv_commit was given it, "" if there was none; and of an intent without an end its ranges and state (else ""). Texts in a. RETRY, FATAL "delivery.state". */
fz_status dlv_load(dlv_delivery *d, fz_arena *a, const char **state, const char **intent_ranges, const char **intent_state, fz_error *err) FZ_MUST_USE;

/* Deliveries of other names (another pipeline, another table) whose states lie below root, the directory that state_dir is in, and that go to the same place as d: their positions and the ranges of a lot without an
 * end, as dlv_load would tell. pipeline "": it has never said its name, table is its directory below root, and it counts as one of the same place. A connector without a lasting place has none. Texts in a. RETRY, FATAL. */
typedef struct dlv_other { const char *pipeline, *table, *state, *intent_ranges; } dlv_other;
fz_status dlv_others(const dlv_delivery *d, const char *root, fz_arena *a, dlv_other **out, uint32_t *n, fz_error *err) FZ_MUST_USE;
/* The error objects that deliveries of other names and the same place have given up and nobody has replayed. Texts live during the call. */
typedef void (*dlv_other_open_fn)(void *cx, const dlv_other *o, const char *object, uint64_t rows);
fz_status dlv_others_open(const dlv_delivery *d, const char *root, dlv_other_open_fn fn, void *cx, fz_error *err) FZ_MUST_USE;
const char *dlv_destination(const dlv_delivery *d, fz_arena *a); /* that place, for messages; NULL: none */

/* Rows of one split, in order. time_ms[i]: arrival (or event) time of row i, -1 none. scratch: an arena that no other thread uses, the caller's to empty after the call. After a failure the lot under way is only good for dlv_drop. */
typedef struct dlv_rows { col_vec *const *cols; uint32_t n; const int64_t *time_ms; uint32_t source, split; fz_arena *scratch; } dlv_rows;
fz_status dlv_write(dlv_delivery *d, const dlv_rows *r, fz_error *err) FZ_MUST_USE;
/* Should what was written be cut now: buffer.size or buffer.interval reached? */
bool dlv_wants(const dlv_delivery *d);
/* More than the delivery can hold: nothing may be written before a cut. */
bool dlv_is_full(const dlv_delivery *d);
/* NULL: nothing was written. */
dlv_lot *dlv_cut(dlv_delivery *d);
void dlv_drop(dlv_delivery *d);
/* ranges: canonical text of what the lot covers (also of filtered and rejected records); state: positions after it. lot NULL: only positions move. RETRY, UNKNOWN: again with the same
 * arguments; USER and others: it will not do. */
fz_status dlv_commit(dlv_delivery *d, const dlv_lot *lot, const char *ranges, const char *state, fz_error *err) FZ_MUST_USE;
/* Gives the rows of a lot up: writes them to the error location with the reason (Firehose's error lines), then moves the positions. USER "delivery.no-error-path" when there is none. */
fz_status dlv_divert(dlv_delivery *d, const dlv_lot *lot, const char *ranges, const char *state, const fz_error *why, fz_error *err) FZ_MUST_USE;
void dlv_lot_free(dlv_lot *lot); /* NULL is allowed */
uint64_t dlv_lot_rows(const dlv_lot *lot); /* NULL: 0, as for the next two */
/* After dlv_commit or dlv_divert has answered with FZ_OK: how many of the rows were not delivered but given up (error location, or refused by the other side), and the bytes that were delivered. */
uint64_t dlv_lot_rejected(const dlv_lot *lot);
uint64_t dlv_lot_bytes(const dlv_lot *lot);
int64_t dlv_retry_ms(const dlv_delivery *d); /* option retry.duration: how long a lot is tried */

/* ---- giving up, and what was given up ---- */

/* A lot that dlv_divert has written to the error location, as the delivery's own records tell. Texts live during the call. */
typedef enum { DLV_OPEN, DLV_REPLAYED /* now */, DLV_REPLAYED_BEFORE, DLV_UNREADABLE /* err says why; it stays open */ } dlv_replay_state;
typedef struct dlv_replay_object { const char *object; uint64_t rows, refused; /* of the rows that were replayed now: what the other side does not keep */ dlv_replay_state state; const fz_error *err; } dlv_replay_object;
typedef void (*dlv_replay_fn)(void *cx, const dlv_replay_object *o);
/* Delivers the lots of d that were given up to error objects under `prefix` ("": all), under the names that they would have had, each once however often it is called and by how many; where the other side has no
 * such names (CloudWatch Logs), a call that is cut short and two at the same time can deliver rows twice. fn is told of each. A connector that keeps no such records has none. Errors: of the state directory and of the delivery itself; what was delivered before stays so. */
fz_status dlv_replay(dlv_delivery *d, const char *prefix, dlv_replay_fn fn, void *cx, fz_error *err) FZ_MUST_USE;

/* Where error objects of a table go: an 'error.path' in Firehose's prefix language. For sinks that are no deliveries too. */
typedef struct dlv_errors dlv_errors;
/* path: s3://bucket/prefix, file:///dir or an absolute path, with or without expressions. USER "option.invalid", "delivery.prefix". */
fz_status dlv_errors_new(const char *path, const char *pipeline, const char *table, dlv_errors **out, fz_error *err) FZ_MUST_USE;
void dlv_errors_free(dlv_errors *e); /* NULL is allowed */
/* The fixed beginning of its locations, up to the first expression; path as dlv_errors_new takes it; in a. */
const char *dlv_errors_fixed(const char *path, fz_arena *a);
/* Location of an object: follows from all that it is given. ms: what its timestamp expressions speak of; error_type: "iceberg-failed" ...; what: text that no other object has. Heap. */
char *dlv_errors_location(const dlv_errors *e, int64_t ms, const char *error_type, const char *what);
/* One text for each place, however its location is spelled (file:/// or a path, s3a or s3): appended. And whether an object lies under a prefix of locations. */
void dlv_location_key(const char *location, fz_buf *out);
bool dlv_location_under(const char *location, const char *prefix);
/* Firehose's name of an error where it is documented, else the code. */
const char *dlv_error_code(const fz_error *why);

typedef struct dlv_connector_info { const char *name; const fz_option *options; const char *doc; } dlv_connector_info;
const dlv_connector_info *dlv_connectors(void); /* ends with a NULL name */
#endif
