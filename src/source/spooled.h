/* The base of all connectors that listen: a spool, a loop, acknowledgements when records are durable, back-pressure when there is no room, and the whole reading side.
 *
 * A connector is a heap object that begins with src_spooled:
 *
 *     static fz_status fwd_open(const fz_pair *o, size_t n, const src_context *cx, src_source **out, fz_error *err) {
 *         forward_source *f = FZ_NEW(forward_source);
 *         fz_status rc = src_spooled_open(&f->s, &src_forward_ops, o, n, cx, err);
 *         net_listen_options lo;
 *         if (rc == FZ_OK) rc = src_listen_options(&f->s, o, n, "listen", authenticated, &lo, err);
 *         if (rc == FZ_OK) rc = src_spooled_stream(&f->s, &lo, NULL, &proto, f, err);
 *         if (rc == FZ_OK) *out = &f->s.base;
 *         else src_spooled_close(&f->s.base);
 *         return rc;
 *     }
 *     const src_ops src_forward_ops = {.name = "forward", ..., .open = fwd_open, SRC_SPOOLED_OPS};
 *
 * Its protocol, in the loop, cuts messages into records, puts them into a src_frame and calls src_spooled_append. When that says RETRY nothing was taken: a stream leaves the message unconsumed
 * and calls src_spooled_hold (the connection is paused and resumed when there may be room, its data function is then called again); HTTP answers 503 with Retry-After.
 *
 * Invariants
 *  1. A sender is told that its records are safe only from a function given to src_spooled_append, called with durable = true.
 *  2. Each such function is called exactly once, in the loop, in the order of the appends, unless it is forgotten (src_spooled_forget) before.
 *  3. The one split has the connector's name as its topic, partition 0, and the identity "spool:<incarnation>". Another incarnation is another source: none of its records was ever in the old one.
 *  4. Records are trimmed only when report says that all tables have them. A reader that never reports (SELECT in the shell) takes nothing away.
 * Threads: "loop" as in net/server.h; the reading side as in source.h.
 */
#ifndef SRC_SPOOLED_H
#define SRC_SPOOLED_H
#include "net/server.h"
#include "source/source_int.h"
#include "spool/spool.h"
#include <pthread.h>
#include <stdatomic.h>

typedef void (*src_durable_fn)(void *cx, bool durable); /* durable false: the source ends, the records may or may not be kept: do not acknowledge */
typedef struct src_ack { uint64_t ticket; src_durable_fn fn; void *cx; } src_ack;
typedef struct spooled_chunk spooled_chunk;
enum { SRC_MAX_LISTENERS = 4 };

typedef struct src_spooled {
    src_source base;
    spool *spool;      /* NULL when the source is only looked at */
    net_loop *loop;    /* the same */
    void (*ended)(struct src_spooled *s); /* set by the connector, may be NULL: frees what else it holds, when loop and connections are gone */
    void (*room)(struct src_spooled *s);  /* the same; loop: called when there may be room again, before held connections go on */
    net_listener *listeners[SRC_MAX_LISTENERS];
    bool datagrams[SRC_MAX_LISTENERS];
    uint32_t n_listeners;
    pthread_mutex_t listeners_lock;    /* listeners and n_listeners, once src_ops.open has ended */
    net_stats heard;                   /* of listeners that are gone */
    _Atomic uint32_t waiting;          /* held connections, for the metrics */
    bool authenticated;                /* as src_listen_options was told last, for the next listener */
    src_doors doors;                   /* when it is only looked at: what would be listened on */
    src_listening door[SRC_MAX_LISTENERS];
    char *looked_dir;
    /* loop */
    src_ack *acks;                     /* a ring, tickets grow */
    size_t ack_at, ack_n, ack_cap;
    net_conn **held;
    size_t n_held, cap_held;
    bool held_datagrams, closing;
    uint64_t last_ticket;              /* of the newest append that somebody waits for */
    _Atomic bool posted;               /* a call to the loop is under way */
    /* reading; the worker's */
    spool_reader *reader;
    spool_view left;                   /* the rest of a frame that did not fit into the last chunk */
    _Atomic int64_t at;                /* number to be read next */
    pthread_mutex_t pool_lock;
    spooled_chunk *spare;
} src_spooled;

/* ---- options that all listening connectors have ---- */
#define SRC_SPOOL_OPTIONS \
    {.name = "spool.max-size", .type = FZ_OPT_SIZE, .dflt = "1 gb", .doc = "Most bytes of received records that wait on disk, in spool/ of 'frazil.state.dir', until they are committed. When it is full senders have to wait."}
#define SRC_LISTEN_ADDRESS \
    {.name = "listen", .type = FZ_OPT_STRING, .doc = "Address and port to listen on: '127.0.0.1:PORT', '[::1]:PORT', '0.0.0.0:PORT'. Required."}
#define SRC_CONNECTION_OPTIONS \
    {.name = "allow-unauthenticated", .type = FZ_OPT_BOOL, .dflt = "false", .doc = "Whether anybody who reaches the address may send, when it is not a loopback address and nothing authenticates senders."}, \
    {.name = "tls.cert", .type = FZ_OPT_STRING, .doc = "PEM file with the server's certificate chain: connections are then TLS."}, \
    {.name = "tls.key", .type = FZ_OPT_STRING, .doc = "PEM file with the key of 'tls.cert'."}, \
    {.name = "tls.ca", .type = FZ_OPT_STRING, .doc = "PEM file with the authorities that clients' certificates must come from: clients without one are turned away."}, \
    {.name = "max-connections", .type = FZ_OPT_INT, .dflt = "1024", .doc = "Most connections at a time; further ones are closed at once, over HTTP answered 503."}, \
    {.name = "max-message-size", .type = FZ_OPT_SIZE, .dflt = "16 mb", .doc = "Largest message, compressed as it comes and unpacked. A larger one is refused."}, \
    {.name = "message-timeout", .type = FZ_OPT_DURATION, .dflt = "30 s", .doc = "Time within which a message that has begun must be there whole."}
#define SRC_LISTEN_LIMITS \
    SRC_CONNECTION_OPTIONS, {.name = "idle-timeout", .type = FZ_OPT_DURATION, .dflt = "5 min", .doc = "Time without a message after which a connection is closed."}
#define SRC_LISTEN_OPTIONS SRC_LISTEN_ADDRESS, SRC_LISTEN_LIMITS
/* Reads them. listen: name of the option with the address. authenticated: the connector's own options authenticate senders ('tls.ca' does as well). The strings are those of options.
 * USER: an option is missing, out of range, or an open address without anything that authenticates (net_listen_check). Also for ops.check, with s NULL. */
fz_status src_listen_options(src_spooled *s, const fz_pair *options, size_t n, const char *listen, bool authenticated, net_listen_options *out, fz_error *err) FZ_MUST_USE;
/* Values of options that have a default in the table or are given here; their types were checked before. */
int64_t src_option_size(const fz_pair *o, size_t n, const char *name, int64_t dflt);
int64_t src_option_ms(const fz_pair *o, size_t n, const char *name, int64_t dflt);
int64_t src_option_int(const fz_pair *o, size_t n, const char *name, int64_t dflt);
bool src_option_bool(const fz_pair *o, size_t n, const char *name, bool dflt);

/* ---- life ---- */
/* s: zeros from FZ_NEW. Opens <frazil.state.dir>/spool/<table>, makes the split and the loop. After a failure src_spooled_close is still to be called. USER spool.in-use, spool.directory; RETRY. */
fz_status src_spooled_open(src_spooled *s, const src_ops *ops, const fz_pair *options, size_t n, const src_context *cx, fz_error *err) FZ_MUST_USE;
/* Takes no more, waits a few seconds for what was appended, ends the loop, frees s too. NULL-safe for parts that were never opened. */
void src_spooled_close(src_source *s);
/* net_listen_stream, _http, _datagrams on the source's loop; nothing happens when the source is only looked at. At most SRC_MAX_LISTENERS. */
fz_status src_spooled_stream(src_spooled *s, const net_listen_options *o, const char *alpn, const net_proto *p, void *cx, fz_error *err) FZ_MUST_USE;
fz_status src_spooled_http(src_spooled *s, const net_listen_options *o, net_http_fn fn, void *cx, fz_error *err) FZ_MUST_USE;
fz_status src_spooled_datagrams(src_spooled *s, const net_listen_options *o, net_datagram_fn fn, void *cx, fz_error *err) FZ_MUST_USE;

/* ---- taking in: loop ---- */
/* Records of one context, gathered before they are appended. Zeros are an empty one; reset keeps the memory. */
typedef struct src_frame { fz_buf context, bytes; uint32_t *len; int64_t *time_ns; uint32_t n, cap; bool timed; } src_frame;
void src_frame_add(src_frame *f, const void *p, uint32_t n, int64_t time_ns); /* INT64_MIN: the record has no time of its own */
void src_frame_reset(src_frame *f);
void src_frame_free(src_frame *f);
spool_frame src_frame_of(const src_frame *f, int64_t arrival_ms); /* a view; valid until f changes */

/* Appends all frames or none, without waiting. fn (may be NULL) is called when they are durable; with no record in them, soon. RETRY: no room; DATA spool.too-large: never. */
fz_status src_spooled_append(src_spooled *s, const spool_frame *f, uint32_t n, src_durable_fn fn, void *cx, fz_error *err) FZ_MUST_USE;
/* cx goes away: its functions are not called any more. */
void src_spooled_forget(src_spooled *s, const void *cx);
/* Pauses c until there may be room. A connection that closes while it is held must be let go of: call it in every proto.close. */
void src_spooled_hold(src_spooled *s, net_conn *c);
void src_spooled_let_go(src_spooled *s, const net_conn *c);
/* The same for all datagram listeners of the source. */
void src_spooled_hold_datagrams(src_spooled *s);
bool src_spooled_full(const src_spooled *s); /* any thread; an append would be refused */
bool src_spooled_refuses(src_spooled *s);    /* the same, asked by who refuses then: counted (spool_refuses) */

/* ---- metrics: any thread ---- */
typedef struct src_counter { fz_metric metric; const char *label; const _Atomic uint64_t *value; } src_counter;
/* The connector's own n counters, and those of its listeners and its spool: for src_ops.metrics. */
void src_spooled_metrics(src_spooled *s, const src_counter *own, size_t n, src_metric_fn fn, void *cx);

/* ---- reading: the functions of src_ops ---- */
fz_status src_spooled_bounds(src_source *s, uint32_t split, fz_error *err);
fz_status src_spooled_probe_before(src_source *s, uint32_t split, int64_t before, src_probe *out, fz_error *err);
fz_status src_spooled_assign(src_source *s, uint32_t split, int64_t from, fz_error *err);
fz_status src_spooled_unassign_all(src_source *s, fz_error *err);
fz_status src_spooled_poll(src_source *s, uint32_t reader, int64_t timeout_ms, fz_chunk **out, bool *done, fz_error *err);
fz_status src_spooled_report(src_source *s, const uint32_t *splits, const int64_t *offsets, uint32_t n, fz_error *err);
uint64_t src_spooled_behind(src_source *s, uint32_t split, int64_t at);
const src_doors *src_spooled_listens(const src_source *s);
int64_t src_spooled_arrival(src_source *s, uint32_t split, int64_t at);
void src_spooled_drain(src_source *s); /* closes the listeners once what was taken in is durable and acknowledged */
#define SRC_SPOOLED_OPS \
    .replayable = true, .close = src_spooled_close, .bounds = src_spooled_bounds, .probe_before = src_spooled_probe_before, .assign = src_spooled_assign, \
    .unassign_all = src_spooled_unassign_all, .poll = src_spooled_poll, .report = src_spooled_report, .behind = src_spooled_behind, .arrival = src_spooled_arrival, .listens = src_spooled_listens, .drain = src_spooled_drain
#endif
