/* Inside the forward connector.
 *
 *   forward_message.c    one message's bytes -> its parts, and its events gathered in a batch; bytes only
 *   forward_auth.c       HELO, PING, PONG; bytes only
 *   forward_conn.c       a connection: messages cut out of a stream, appended, acknowledged
 *   forward.c            options, opening, closing, UDP heartbeats
 *
 * Invariants
 *  1. No allocation an event: a batch's buffers are the source's, and are used for all its connections (one loop).
 *  2. Every event of a message that is taken becomes one record of the spool, also a broken one: that is kept with all its bytes, which are no map, so that the decoder gives it up as a rejected row.
 *  3. A batch is bounded by FWD_PIECE and one event; a message may be appended in several pieces (the connection counts what was).
 */
#ifndef SRC_FORWARD_INT_H
#define SRC_FORWARD_INT_H
#include "base/mp.h"
#include "source/spooled.h"

#ifndef FWD_PIECE
#define FWD_PIECE (512u << 10)    /* bytes of events that are appended at once */
#endif
#define FWD_MAX_CHUNK_ID 1024u    /* bytes of the option `chunk`; clients send 24 */
#define FWD_MAX_WAITING 65536u    /* bytes of answers of one connection that wait for the disk; above it the connection is paused */
#define FWD_DIGEST 128u           /* hexadecimal digits of SHA-512 */

/* ---- messages ---- */
typedef enum { FWD_KEEP_ALIVE, FWD_MESSAGE, FWD_FORWARD, FWD_PACKED, FWD_CONTROL /* begins with a text and is none of the modes: PING */ } fwd_mode;
typedef enum { FWD_PLAIN, FWD_GZIP, FWD_ZSTD } fwd_coding;
typedef struct fwd_message {
    fwd_mode mode;
    fz_sv tag;
    const uint8_t *events, *end;  /* MESSAGE: time and record; FORWARD: entries behind the array's header; PACKED: payload as sent */
    uint32_t n;                   /* FORWARD: entries; CONTROL: items of the array */
    fwd_coding coding;
    int64_t signal;               /* 0 logs, 1 metrics, 2 traces */
    bool has_chunk, chunk_is_bin;
    fz_sv chunk;
} fwd_message;
/* p, n: one whole value (mp_scan_more). DATA "forward.message": it is no message of the protocol; "forward.coding". */
fz_status fwd_parse(const uint8_t *p, size_t n, fwd_message *out, fz_error *err) FZ_MUST_USE;

/* Nanoseconds of a time at *p, which moves past it: integer, float, EventTime, [time, metadata]; nil: 0. false: it is none, or out of range; *p is past it all the same unless it is cut off. */
bool fwd_time(const uint8_t **p, const uint8_t *end, int64_t *ns);

/* Events gathered for one append, in runs of one tag. Records are where they came: they are copied once, into the spool. */
typedef struct fwd_run { size_t tag; uint32_t tag_len, first, n; } fwd_run;
typedef struct fwd_batch {
    fz_buf tags, answers;         /* answers: of the messages that end in it */
    const uint8_t **at;
    uint32_t *len;
    int64_t *time_ns;
    uint32_t n, cap;
    size_t bytes;                 /* of all records */
    mp_shape shape;
    fwd_run *runs;
    uint32_t n_runs, cap_runs;
    spool_frame *frames;          /* what fwd_frames made */
    uint32_t cap_frames;
    uint32_t broken;              /* events among them that are no events */
    uint32_t messages, acks;      /* messages that end in it, and those of them that are answered */
} fwd_batch;
void fwd_batch_reset(fwd_batch *b);
void fwd_batch_free(fwd_batch *b);
/* The batch as frames, valid until it changes. */
spool_frame *fwd_frames(fwd_batch *b, int64_t arrival_ms);

/* Walks the events of a message whose bytes are at hand (PACKED: unpacked already). */
typedef struct fwd_walk { const uint8_t *p, *end; uint32_t left; fwd_mode mode; } fwd_walk;
fwd_walk fwd_walk_of(const fwd_message *m, const uint8_t *payload, size_t n);
/* Gathers events until the batch holds FWD_PIECE bytes or the message ends; the first *skip are passed over (and counted down). false: the message has ended. The payload must stay until the batch
 * is appended or reset. */
bool fwd_gather(fwd_walk *w, fwd_batch *b, fz_sv tag, uint32_t *skip);
/* {"ack": chunk} */
void fwd_put_ack(fz_buf *b, const fwd_message *m);

/* ---- the handshake ---- */
typedef struct fwd_secrets { const char *self_hostname, *shared_key, *username, *password; } fwd_secrets; /* shared_key NULL: no handshake; username NULL: no users */
typedef struct fwd_hello { uint8_t nonce[16], auth[16]; } fwd_hello;
fz_status fwd_put_helo(const fwd_secrets *s, fwd_hello *h, fz_buf *out, fz_error *err) FZ_MUST_USE;
/* Reads a PING and writes the PONG. *ok: the client may go on. DATA "forward.ping": it is no PING at all. */
fz_status fwd_ping(const fwd_secrets *s, const fwd_hello *h, const uint8_t *p, size_t n, fz_buf *pong, bool *ok, const char **why, fz_error *err) FZ_MUST_USE;

/* ---- the source ---- */
typedef struct fwd_stats { _Atomic uint64_t messages, events, broken, acked, refused, signals, logins_failed, heartbeats; } fwd_stats;
typedef struct forward_source {
    src_spooled s;
    fwd_secrets secrets;          /* copies */
    size_t max_message;
    fwd_stats stats;
    /* loop */
    fwd_batch batch;
    fz_buf unpacked;
    fz_log_limit log_limit;
} forward_source;
extern const net_proto fwd_proto; /* cx: forward_source */
#endif
