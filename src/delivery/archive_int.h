/* Inside the delivery room: the parts of the connector firehose-s3; cloudwatch-logs shares prefixes, lines and error objects.
 *
 *   firehose_s3.c  the connector: options, buffering, cutting
 *   arc_commit.c   delivering a lot, and giving one up: the order of intent, object and done record
 *   arc_prefix.c   Firehose's prefix language, object names
 *   arc_rows.c     rows as JSON lines
 *   arc_body.c     what a lot holds: compressed blocks of lines, in memory or in a file
 *   arc_block.c    one block: gzip, zstd
 *   arc_log.c      intents and done records
 *   arc_replay.c   lots that were given up, delivered after all
 *   errors.c       where error objects go
 */
#ifndef DLV_ARCHIVE_INT_H
#define DLV_ARCHIVE_INT_H
#include "delivery/delivery_int.h"
#include <pthread.h>
#include <stdatomic.h>

/* ---- arc_prefix.c ---- */

/* A prefix with its expressions, compiled. Lives in the arena that it was made with; read-only. */
typedef struct arc_prefix arc_prefix;
/* text: what follows the bucket in a location. is_error: of error objects, where !{firehose:error-output-type} is allowed and, beside other expressions, demanded.
 * What is missing is appended as Firehose does it: !{timestamp:yyyy/MM/dd/HH/} where no timestamp stands, for error objects without expressions !{firehose:error-output-type}/ before it.
 * USER "delivery.prefix" with the expression that is wrong. */
fz_status arc_prefix_new(fz_arena *a, const char *text, bool is_error, const arc_prefix **out, fz_error *err) FZ_MUST_USE;
/* Appends what it gives. local_us: the moment, already in the zone; uuid: what random strings follow from; error_type: NULL for objects that are no errors. */
void arc_prefix_eval(const arc_prefix *p, int64_t local_us, const char *uuid, const char *error_type, fz_buf *out);
/* Appends "<stream>-<version>-yyyy-MM-dd-HH-mm-ss-<uuid><extension>". */
void arc_name(fz_buf *out, const char *stream, const char *version, int64_t local_us, const char *uuid, const char *extension);
/* Makes a legal stream name of any text: letters, digits, '_', '.', '-'; at most 64. */
const char *arc_stream_name(fz_arena *a, const char *text);
bool arc_stream_name_ok(const char *s);
/* UUID, version 5, of text in the namespace that is itself the UUID of `space`. */
void arc_uuid5(const char *space, const char *text, char out[37]);

/* "s3://bucket/", "file:///" or "/" into base; what follows is returned, NULL: s is no location. */
const char *arc_split_location(fz_arena *a, const char *s, const char **base);
/* base and the part of the prefix that follows it which is the same for all objects; a directory of local files ends in a slash. */
const char *arc_fixed_part(fz_arena *a, const char *base, const char *prefix);
/* One line of an error object, as Firehose's: row is what could not be delivered, without its LF. */
typedef struct arc_failure { const char *code, *message, *table; uint32_t attempts; int64_t last_attempt_ms; } arc_failure;
void arc_error_line(const arc_failure *f, fz_sv row, int64_t arrival_ms, fz_buf *out);

/* ---- arc_rows.c ---- */

typedef struct arc_encoder arc_encoder; /* names of columns and how values are written; read-only, in the arena */
arc_encoder *arc_encoder_new(fz_arena *a, const col_schema *schema, bool with_nulls, bool iso);
/* The lines of one call's rows: begin looks at the columns (dictionaries are written once), line appends one row and its LF. */
typedef struct arc_lines arc_lines;
arc_lines *arc_lines_begin(const arc_encoder *e, col_vec *const *cols, uint32_t n, fz_arena *scratch);
void arc_lines_add(arc_lines *l, uint32_t row, fz_buf *out);
void arc_lines_end(arc_lines *l);

/* ---- arc_block.c ---- */

typedef enum { ARC_PLAIN, ARC_GZIP, ARC_ZSTD } arc_codec;
typedef struct arc_packer arc_packer;
arc_packer *arc_packer_new(arc_codec c);
void arc_packer_free(arc_packer *p); /* NULL is allowed */
/* Appends the packed form of raw[0..n): for ARC_GZIP whole deflate blocks without an end, for ARC_ZSTD a frame. *crc: CRC-32 of raw (gzip only). */
void arc_pack(arc_packer *p, const uint8_t *raw, size_t n, fz_buf *out, uint32_t *crc);
/* The other way, raw_len bytes exactly. */
fz_status arc_unpack(arc_codec c, const uint8_t *p, size_t n, uint8_t *raw, size_t raw_len, fz_error *err) FZ_MUST_USE;
uint32_t arc_crc_join(uint32_t first, uint32_t second, uint64_t second_len); /* CRC-32 of both, one after the other */
/* What stands around the blocks of an object. */
void arc_head(arc_codec c, fz_buf *out);
void arc_tail(arc_codec c, uint32_t crc, uint64_t raw_len, fz_buf *out);

/* ---- arc_body.c ---- */

/* Rows of a lot by split: each split's lines in blocks of a fixed size, so that the same rows of each split give the same bytes, however they came in between one another. */
typedef struct arc_body arc_body;
arc_body *arc_body_new(arc_codec c, size_t memory, bool with_times, const char *spill_dir);
void arc_body_free(arc_body *b); /* NULL is allowed */
/* Adds the lines of n rows of one split. RETRY when the file that takes what memory does not cannot be written: the body is of no use then. */
fz_status arc_body_add(arc_body *b, arc_packer *p, uint32_t source, uint32_t split, arc_lines *l, uint32_t n, const int64_t *time_ms, fz_error *err) FZ_MUST_USE;
/* Packs what is open. Nothing may be added after it. */
void arc_body_seal(arc_body *b, arc_packer *p);
uint64_t arc_body_rows(const arc_body *b);
uint64_t arc_body_raw(const arc_body *b);      /* bytes of lines */
size_t arc_body_open(const arc_body *b);       /* of those: in blocks that are still open */
int64_t arc_body_oldest_ms(const arc_body *b); /* least time of a row; -1: no row has one */
uint64_t arc_body_size(const arc_body *b);     /* of the object; sealed */
/* The arc_body_size bytes of the object where they are one piece in memory, at the beginning of a page; else NULL. Sealed; borrowed. */
const void *arc_body_whole(const arc_body *b);
/* The object's bytes in order, to fn until it fails. */
typedef fz_status (*arc_bytes_fn)(void *cx, const void *p, size_t n, fz_error *err);
fz_status arc_body_read(const arc_body *b, arc_bytes_fn fn, void *cx, fz_error *err) FZ_MUST_USE;
/* Each line without its LF, with its time (-1: none); only of a body with times. */
typedef fz_status (*arc_line_fn)(void *cx, fz_sv line, int64_t time_ms, fz_error *err);
fz_status arc_body_lines(const arc_body *b, arc_line_fn fn, void *cx, fz_error *err) FZ_MUST_USE;

/* ---- arc_log.c ---- */

/* One lot as the state directory knows it. Texts live in the arena of the call. */
typedef struct arc_record {
    uint64_t lot;              /* 1, 2, ... */
    const char *ranges, *state;
    const char *object;        /* location; "" : none, positions only */
    uint64_t rows, bytes;
    const char *diverted;      /* location of the error object, "" : none */
} arc_record;
typedef enum { ARC_INTENT, ARC_DONE, ARC_DIVERTED, ARC_REPLAYED } arc_kind;
typedef struct arc_log {
    const char *dir, *what;    /* what: whose it is, for messages */
    fio *io;
    bool unsure;               /* the outcome of the last put is not known */
} arc_log;

/* The newest done record (lot 0: none) and the intent after it (lot 0: none); what both have settled is removed. FATAL "delivery.state". */
fz_status arc_log_load(const arc_log *g, fz_arena *a, arc_record *done, arc_record *intent, fz_error *err) FZ_MUST_USE;
/* Number of the newest done record. */
fz_status arc_log_newest(const arc_log *g, uint64_t *lot, fz_error *err) FZ_MUST_USE;
/* Put if absent. *there: the record that was there before (r itself when none was), in a. */
fz_status arc_log_put(arc_log *g, arc_kind kind, const arc_record *r, fz_arena *a, arc_record *there, fz_error *err) FZ_MUST_USE;
/* Numbers of the records of a kind, ascending. */
fz_status arc_log_list(const arc_log *g, arc_kind kind, fz_arena *a, uint64_t **lots, uint32_t *n, fz_error *err) FZ_MUST_USE;
fz_status arc_log_read(const arc_log *g, arc_kind kind, uint64_t lot, fz_arena *a, arc_record *out, fz_error *err) FZ_MUST_USE;
/* Keeps beside the state that a lot went to the error path: <dir>/diverted/<lot>. */
fz_status arc_log_divert(const arc_log *g, const arc_record *r, fz_error *err) FZ_MUST_USE;
/* Removes the intents up to `lot` and the done records before it; what cannot be removed is left to the next call. */
void arc_log_clean(const arc_log *g, uint64_t lot);

/* ---- the connector ---- */

typedef struct archive {
    fio *io;                    /* of the objects */
    const char *base, *error_base; /* what stands before the prefix: "s3://bucket/" */
    const arc_prefix *prefix, *error_prefix; /* error_prefix NULL: no error.path */
    const char *stream, *version, *extension, *space;
    const char *spill_dir;
    const struct tz_zone *zone;
    arc_codec codec;
    const arc_encoder *encoder;
    uint64_t buffer_size;
    int64_t interval_ns;
    /* writer thread */
    arc_packer *packer;
    arc_body *body;
    atomic_uint_fast64_t raw;   /* bytes in it */
    atomic_uint_fast64_t open;  /* of those in open blocks */
    atomic_int_fast64_t first_ns; /* when its first row came */
    atomic_int_fast64_t last_ns;  /* the last commit; 0: none yet */
    atomic_uint lots;           /* cut and not yet freed: on their way */
    /* who commits or loads; under `turn` */
    pthread_mutex_t turn;
    arc_log log;
    uint64_t lot;               /* the newest that is done */
    arc_record intent;          /* of lot + 1, left by an earlier run; lot 0: none. Its texts live in known */
    fz_arena *known;            /* changed under the lock, with: */
    const char *state;          /* after the newest lot that is done */
    pthread_mutex_t lock;
} archive;

typedef struct archive_lot {
    dlv_lot lot;
    archive *of;
    arc_body *body;
    int64_t oldest_ms;
    char *object;               /* where it goes; NULL: not decided */
    bool tried;                 /* the store of the objects has been asked to take it */
    uint32_t attempts;
    int64_t last_attempt_ms;
} archive_lot;

/* Where a lot of the moment ms goes: base, prefix, name; of an error object when error_type is not NULL. */
char *arc_location(const archive *x, int64_t ms, const char *ranges, const char *error_type);
fz_status arc_load(dlv_delivery *d, fz_arena *a, const char **state, const char **intent_ranges, const char **intent_state, fz_error *err) FZ_MUST_USE;
fz_status arc_commit(dlv_delivery *d, const dlv_lot *lot, const char *ranges, const char *state, fz_error *err) FZ_MUST_USE;
fz_status arc_divert(dlv_delivery *d, const dlv_lot *lot, const char *ranges, const char *state, const fz_error *why, fz_error *err) FZ_MUST_USE;
/* ---- arc_replay.c ---- */
/* The rows of the error object that r names, as they were, each with what its line says of the arrival. *bad after a failure: the object cannot be taken, the others can; what fn was given counts for nothing then. */
typedef void (*arc_raw_fn)(void *cx, fz_sv raw, int64_t arrival_ms);
fz_status arc_error_lines(fio *io, const arc_record *r, arc_raw_fn fn, void *cx, bool *bad, fz_error *err) FZ_MUST_USE;
/* dlv_replay for who keeps records in `log`: one delivers the rows of one record (refused: how many of them the other side does not keep; bad: as above). */
typedef fz_status (*arc_replay_one)(dlv_delivery *d, const arc_record *r, uint64_t *refused, bool *bad, fz_error *err);
fz_status arc_replay_lots(dlv_delivery *d, arc_log *log, const char *prefix, arc_replay_one one, dlv_replay_fn fn, void *cx, fz_error *err) FZ_MUST_USE;
fz_status arc_replay(dlv_delivery *d, const char *prefix, dlv_replay_fn fn, void *cx, fz_error *err) FZ_MUST_USE;
#endif
