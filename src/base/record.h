/* Records and chunks: raw bytes as they came, with their origin. Sources make them, decoders read them, the job carries them.
 *
 * Invariants
 *  1. A chunk comes from one split. [from, to) is the range of positions that it covers: `to` is the position to read next,
 *     past control records and aborted ones too; n may be 0 while to > from.
 *  2. The bytes of a chunk are valid until fz_chunk_release. Chunks of one split come in order of their positions.
 * Threads: a chunk belongs to one thread at a time.
 */
#ifndef FZ_RECORD_H
#define FZ_RECORD_H
#include <stdbool.h>
#include <stdint.h>

typedef struct fz_header { const char *key; const uint8_t *value; int32_t value_len; /* -1: null */ } fz_header;
typedef struct fz_record {
    const uint8_t *value;
    const uint8_t *key;
    int32_t value_len;      /* -1: null (a tombstone) */
    int32_t key_len;        /* -1: null */
    int64_t offset;
    int64_t timestamp_ms;   /* -1: none */
    int64_t time_ns;        /* event time where the protocol has one in nanoseconds since the epoch (forward, OTLP, syslog); 0: none */
    uint8_t timestamp_type; /* 0 NoTimestampType, 1 CreateTime, 2 LogAppendTime */
    bool oversized;         /* larger than source.max-record-size: value was not kept; value_len is its size where the source knows it, else -1 */
    uint16_t n_headers;     /* filled only when the source was asked for headers */
    const fz_header *headers;
} fz_record;

typedef struct fz_chunk fz_chunk;
struct fz_chunk {
    uint32_t split;         /* index in its source's table of splits */
    uint32_t n;
    int64_t from, to;
    uint64_t bytes;         /* of keys and values */
    fz_record *rec;
    void (*release)(fz_chunk *c); /* frees the chunk and all that it points to */
};
static inline void fz_chunk_release(fz_chunk *c) { if (c) c->release(c); }

/* A row given up, beside its batch. Strings live in the arena of the batch that it was found with. */
typedef struct fz_reject {
    uint32_t rec;        /* index in the chunk */
    const char *code;    /* stable: "json.parse", "cast.failed", "not-null", "record.too-large" */
    const char *message;
    const char *expr;    /* text of the expression, or NULL */
} fz_reject;
typedef struct fz_rejects { fz_reject *v; uint32_t n, cap; } fz_rejects; /* v: heap, FZ_GROW; the owner frees */
#endif
