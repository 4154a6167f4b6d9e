/* Inside the delivery room: the parts of the connector cloudwatch-logs.
 *
 *   cloudwatch_logs.c  the connector: options, buffering, what becomes of events that are refused
 *   logs_replay.c      lots that were given up, sent after all
 *   logs_batch.c       events: order and batches by the rules of PutLogEvents
 *   logs_call.c        PutLogEvents, CreateLogGroup, CreateLogStream
 */
#ifndef DLV_LOGS_INT_H
#define DLV_LOGS_INT_H
#include "delivery/archive_int.h"

/* Ceilings of PutLogEvents. */
#define LOGS_BATCH_BYTES 1048576u /* of messages, and for each event: */
#define LOGS_EVENT_EXTRA 26u
#define LOGS_BATCH_EVENTS 10000u
#define LOGS_BATCH_SPAN_MS 86400000ll
#define LOGS_MESSAGE_MAX (LOGS_BATCH_BYTES - LOGS_EVENT_EXTRA)

typedef struct logs_event { int64_t ms; uint64_t at; uint32_t n, seq; bool sendable; const char *refused; /* code, NULL: not refused */ } logs_event;
typedef struct logs_events { fz_buf text; logs_event *v; uint32_t n, cap; } logs_events;

void logs_add(logs_events *e, int64_t ms, const void *p, size_t n);
/* Orders by time (events of one time as they came); marks what no batch can hold: "logs.empty-message", "logs.message-too-large". */
void logs_prepare(logs_events *e);
/* The end of the batch that begins at event `from`: as many as fit; those that no batch can hold count for nothing. */
uint32_t logs_batch_end(const logs_events *e, uint32_t from);
void logs_free(logs_events *e);

typedef struct logs_place { aws_session *aws; const char *endpoint, *region, *group, *stream; } logs_place;
/* Sends the events [from, to), but those that no batch can hold, and marks those that the service did not keep ("logs.too-new", "logs.too-old", "logs.expired").
 * RETRY "logs.no-stream" when group or stream are not there; else as aws_send. */
fz_status logs_put(const logs_place *p, logs_events *e, uint32_t from, uint32_t to, fz_error *err) FZ_MUST_USE;
/* Makes group and stream; there already: FZ_OK. */
fz_status logs_create(const logs_place *p, fz_error *err) FZ_MUST_USE;

typedef struct logs {
    logs_place place;
    bool auto_create;
    int message, time;           /* columns; -1: none */
    const arc_encoder *encoder;
    uint64_t buffer_size;
    int64_t interval_ns;
    fio *io;                     /* of error.path; NULL: none */
    const char *error_base, *space;
    const arc_prefix *error_prefix;
    arc_log log;                 /* of what was given up, and of what of that was replayed; no intents */
    logs_events *events;         /* writer thread */
    atomic_uint_fast64_t bytes;
    atomic_int_fast64_t first_ns, last_ns;
} logs;

typedef struct logs_lot {
    dlv_lot lot;
    logs_events *events;
    uint32_t sent;               /* events before it are settled: kept by the service or marked */
    uint32_t attempts;
    int64_t last_attempt_ms;
    bool told;                   /* what the service does not keep is in error.path, counted and logged */
    uint64_t number;             /* of its record in diverted/; 0: none */
    bool recorded;               /* what was not sent is given up: in error.path, and (sources with positions) recorded */
} logs_lot;

/* Sends what is not settled. */
fz_status logs_send_all(logs *x, logs_lot *l, fz_error *err) FZ_MUST_USE;
/* Once: what the service does not keep goes to error.path, under a name that follows from `what`, and into the log; lot.rejected counts it. */
fz_status logs_settle_refused(dlv_delivery *d, logs_lot *l, const char *what, fz_error *err) FZ_MUST_USE;
/* logs_replay.c: dlv_replay */
fz_status logs_replay(dlv_delivery *d, const char *prefix, dlv_replay_fn fn, void *cx, fz_error *err) FZ_MUST_USE;
#endif
