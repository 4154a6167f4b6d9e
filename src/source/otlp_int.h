/* Inside the otlp connector.
 *
 *   otlp_split.c   an ExportLogsServiceRequest's bytes -> records with their contexts, gathered in a batch; bytes only
 *   otlp_json.c    the same request in OTLP's JSON form -> protobuf; bytes only. otlp_lex.c reads JSON for it
 *   otlp_http.c    POST /v1/logs
 *   otlp_grpc.c    LogsService/Export over HTTP/2; otlp_h2.c has the answers' form
 *   otlp.c         options, opening, closing, and how a request is taken in, whichever way it came
 *
 * Invariants
 *  1. No allocation a record: a batch's buffers are the source's (one loop), and are given back when a request made them large.
 *  2. A request is taken whole or not at all, but for records that can never be taken: those are counted and told to the sender (partial success).
 *  3. What a request unfolds to is bounded: OTLP_MAX_RECORDS, OTLP_MAX_FRAMES, and contexts by the size of a message.
 */
#ifndef SRC_OTLP_INT_H
#define SRC_OTLP_INT_H
#include "base/otlp.h"
#include "base/protobuf.h"
#include "source/spooled.h"

#define OTLP_MAX_RECORDS (1u << 20) /* of one request */
#define OTLP_MAX_FRAMES (1u << 16)

/* ---- otlp_split.c ---- */
typedef struct otlp_run { size_t context; uint32_t context_len, first, n; } otlp_run;
typedef struct otlp_batch {
    const uint8_t **at;       /* records, in the message */
    fz_buf contexts;
    fz_buf resource, context; /* of the group at hand */
    uint32_t *len;
    int64_t *time_ns;
    uint32_t n, cap;
    otlp_run *runs;
    uint32_t n_runs, cap_runs;
    spool_frame *frames;   /* what otlp_frames made */
    uint32_t cap_frames;
    uint64_t seen, refused;/* records of the request, and those that are not taken */
    char why[200];         /* about the first of those */
} otlp_batch;
void otlp_batch_free(otlp_batch *b);
/* Splits a request into b (emptied first), which points into it. max_record: bytes of one record that is taken; max_context: bytes of all contexts together. DATA "otlp.protobuf" (broken), "otlp.too-many". */
fz_status otlp_split(const void *p, size_t n, size_t max_record, size_t max_context, otlp_batch *b, fz_error *err) FZ_MUST_USE;
spool_frame *otlp_frames(otlp_batch *b, int64_t arrival_ms); /* b->n_runs of them; valid until b changes. Once for a batch */

/* ---- otlp_lex.c: JSON text, value after value ---- */
typedef struct otlp_lex {
    const uint8_t *p, *end;
    fz_buf text;           /* of a string with escapes */
    const char *why;       /* of the first error */
} otlp_lex;
void otlp_blanks(otlp_lex *x);
int otlp_peek(otlp_lex *x);                       /* first byte of the next value, past blanks; -1: the text is over */
bool otlp_string(otlp_lex *x, fz_sv *out);        /* valid until the next string; ill-formed UTF-8 is left as it is, halves of surrogate pairs become U+FFFD */
bool otlp_number(otlp_lex *x, fz_sv *out);
bool otlp_word(otlp_lex *x, const char *word);    /* true, false, null */
bool otlp_skip(otlp_lex *x);                      /* any value, nested FZ_MAX_JSON_DEPTH deep at most */
/* Members and elements: call with *n = 0 first. 1: there is one (and its name in *key), 0: the end, -1: error. */
int otlp_member(otlp_lex *x, uint32_t *n, fz_sv *key);
int otlp_element(otlp_lex *x, uint32_t *n);

/* ---- otlp_json.c ---- */
/* Appends the request as protobuf. DATA "otlp.json": names the field and what is wrong. */
fz_status otlp_json_request(const void *p, size_t n, fz_buf *out, fz_error *err) FZ_MUST_USE;

/* ---- otlp.c ---- */
typedef enum {
    GRPC_OK = 0, GRPC_INVALID_ARGUMENT = 3, GRPC_NOT_FOUND = 5, GRPC_PERMISSION_DENIED = 7, GRPC_RESOURCE_EXHAUSTED = 8, GRPC_UNIMPLEMENTED = 12, GRPC_INTERNAL = 13, GRPC_UNAVAILABLE = 14, GRPC_UNAUTHENTICATED = 16
} grpc_code;

typedef struct otlp_request otlp_request;
typedef struct otlp_stats { _Atomic uint64_t requests_http, requests_grpc, records, refused_records, refused_bad, refused_auth, refused_room; } otlp_stats;
typedef struct otlp_source {
    src_spooled s;
    bool token, open_to_all;
    uint8_t token_hash[32];
    size_t max_message;
    uint32_t retry_after_s;
    otlp_stats stats;
    /* loop */
    fz_buf unpacked, converted;
    otlp_batch batch;
    bool timer;
    otlp_request *queue, **queue_end; /* requests that wait for the disk, in the order in which they came */
    fz_log_limit log_limit;
} otlp_source;

typedef struct otlp_body { const char *coding; const void *p; size_t n; bool json; } otlp_body; /* coding NULL: as it is */
typedef struct otlp_partial { uint64_t refused; char why[200]; } otlp_partial;
/* A request on its way. Belongs to whom it came from; the first member of it. */
struct otlp_request {
    otlp_request *next;
    otlp_body body;        /* valid until it is taken, failed or forgotten */
    otlp_partial partial;  /* what was refused of it, once it is taken */
    int64_t until_ns;
    void (*durable)(otlp_request *q, bool durable);             /* its records are safe; at once when there are none */
    void (*failed)(otlp_request *q, const fz_error *err);       /* nothing was taken. USER body.coding; DATA body.encoding, body.too-large, otlp.*, spool.too-large; RETRY */
};
/* Takes it in: exactly one of durable and failed is called, now or later, unless it is forgotten before. While the disk is slower than the senders it waits, for a moment. The counters are seen to. */
bool otlp_take(otlp_source *o, otlp_request *q); /* false: it waits, and its body is still needed */
/* It is going away. false: it was taken, and durable will be called; or it was answered. */
bool otlp_forget(otlp_source *o, otlp_request *q);
bool otlp_authorized(otlp_source *o, const char *authorization); /* the header's value or NULL */
grpc_code otlp_code_of(const fz_error *err);
/* Appends google.rpc.Status; retry_s > 0: with a RetryInfo. */
void otlp_put_status(fz_buf *b, grpc_code code, const char *message, uint32_t retry_s);
/* Appends ExportLogsServiceResponse: nothing when there is nothing to say. */
void otlp_put_response(fz_buf *b, const otlp_partial *partial);
static inline void otlp_count(_Atomic uint64_t *c, uint64_t n) { atomic_fetch_add_explicit(c, n, memory_order_relaxed); }

/* ---- otlp_http.c, otlp_grpc.c ---- */
void otlp_http_request(void *cx, net_http_request *r); /* cx: otlp_source */
void otlp_http_too_large(const char *content_type, const char *why, const char **type, fz_buf *body); /* as net_listen_options has it */
extern const net_proto otlp_grpc_proto;                /* the same */
#endif
