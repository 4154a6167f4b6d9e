/* The spool: a durable log in a local directory for senders that cannot replay. One spool is one split: its records have numbers from 0 on, which are its positions.
 *
 *     append (any thread) -> written and synced in groups (a thread of its own) -> durable mark moves -> senders are acknowledged
 *                                                                              -> read by number, as often as wanted -> trimmed when committed
 *
 * On disk: <dir>/incarnation (a UUID) and segments <first number, 20 digits>.seg of checksummed frames. A frame holds records of one context (a tag, the resource and
 * scope of an OTLP export ...) that arrived together.
 *
 * Invariants
 *  1. A record below spool_durable survives kill -9 and a power cut. Nothing above it is ever handed to a reader.
 *  2. A number is given once in an incarnation, also across restarts: a spool that lost its directory has another incarnation.
 *  3. Size on disk stays below max_bytes: a full spool refuses to append (RETRY "spool.full"), it never drops.
 *     Nor does it take the last of the disk's room (RETRY "spool.no-space"): the deliveries of its records must write there too. What is wholly trimmed is given back when room is short.
 *  4. What is damaged is set aside (NAME.damaged) and named, with its bytes counted; readers go on behind it: the numbers of lost records are covered by the range of the next
 *     view, and counted. A torn tail after a crash was never acknowledged; it is cut off with one line in the log.
 *  5. A failed write or fsync is never papered over: its frames are written again into a new segment, or their append fails.
 * Errors: RETRY spool.full, spool.no-space, spool.io, spool.busy (the disk is slower than the senders: memory is full of what is not yet written); DATA spool.too-large (a message larger than
 * the spool); USER spool.directory (no right to write, not a directory), spool.in-use (another process has it); FATAL spool.format (a newer version).
 * Threads: any; a spool_reader belongs to one thread at a time.
 */
#ifndef SPL_SPOOL_H
#define SPL_SPOOL_H
#include "base/base.h"

typedef struct spool spool;
typedef struct spool_options {
    int64_t max_bytes;     /* on disk; 0: 1 GiB */
    int64_t segment_bytes; /* 0: a sixteenth of max_bytes, at most 64 MiB */
    size_t memory;         /* for frames on their way and the newest ones kept for readers; 0: 8 MiB */
} spool_options;

fz_status spool_open(const char *dir, const spool_options *o, spool **out, fz_error *err) FZ_MUST_USE;
/* What is in the directory, without taking it into use or changing it: *found false: no spool. */
fz_status spool_look(const char *dir, bool *found, char incarnation[37], uint64_t *low, fz_error *err) FZ_MUST_USE;
bool spool_in_use(const char *dir); /* by a process, this one too; false also when that cannot be found out */
/* Records in the directory that nobody has trimmed, as far as its files tell: after a kill those are counted too that were trimmed since the last whole segment. 0: no spool. */
uint64_t spool_count(const char *dir);
/* Spools under <state_dir>/spool that hold such records and that no process has open: calls fn for each. */
void spool_unread(const char *state_dir, void (*fn)(void *cx, const char *dir, uint64_t records), void *cx);
void spool_close(spool *s); /* syncs what was appended; NULL is allowed */
const char *spool_incarnation(const spool *s);

/* n records of one context. len[i] bytes of record i stand at at[i]; or, when `at` is NULL, in `bytes`, one after the other. time_ns[i]: since the epoch, INT64_MIN: none. time_ns may be NULL. */
typedef struct spool_frame {
    const void *context;
    uint32_t context_len, n;
    int64_t arrival_ms;
    const uint32_t *len;
    const int64_t *time_ns;
    const void *bytes;
    const uint8_t *const *at;
} spool_frame;

/* Appends all n frames (copied) or none. *ticket: they are durable when spool_durable(s) >= *ticket. Does not wait for the disk, but may wait for memory up to wait_ms. */
fz_status spool_append(spool *s, const spool_frame *f, uint32_t n, int64_t wait_ms, uint64_t *ticket, fz_error *err) FZ_MUST_USE;
uint64_t spool_durable(const spool *s); /* number of the first record that is not durable */
fz_status spool_wait(spool *s, uint64_t ticket, int64_t timeout_ms, fz_error *err) FZ_MUST_USE; /* RETRY spool.io: the disk failed, or time is over */
/* fn is called from the spool's thread when the durable mark has moved, when room has been made, and when writing fails; it must not block. At most 8 of them. */
void spool_watch(spool *s, void (*fn)(void *cx), void *cx);
void spool_unwatch(spool *s, void (*fn)(void *cx), void *cx);

uint64_t spool_low(const spool *s);      /* from this number on nothing was trimmed: at or below it stands the oldest record that is there, or numbers before it were never given */
uint64_t spool_bytes(const spool *s);    /* on disk */
bool spool_full(const spool *s);
bool spool_refuses(spool *s);            /* spool_full, asked on behalf of an append that is not made when it is: counted as refused */
typedef struct spool_stats {
    uint64_t records_in, bytes_in, syncs, damaged_bytes, damaged_segments, lost_records, refused; /* since spool_open */
    uint64_t waiting;       /* durable records that spool_trim was not told of */
    int64_t oldest_ms;      /* when the oldest of them came in, or a little before (spl_marks.c); 0: there is none */
    uint64_t unsynced;      /* records that are not durable yet */
    int64_t unsynced_ms;    /* when the oldest of those came in; 0: there is none */
    uint64_t disk_bytes, max_bytes;
    bool full, failing;     /* no room; the last write or sync failed */
} spool_stats;
spool_stats spool_get_stats(const spool *s);

typedef struct spool_reader spool_reader;
spool_reader *spool_reader_new(spool *s, uint64_t from); /* from below spool_low: begins there */
void spool_reader_free(spool_reader *r);
/* One frame, whole or from `first` on; valid until spool_view_release. */
typedef struct spool_view {
    uint64_t from;             /* number to which the last view went: [from, first) are numbers that are lost */
    uint64_t first;            /* number of the first record */
    uint32_t n, context_len;
    const uint8_t *context, *bytes;
    const uint32_t *len;
    const int64_t *time_ns;    /* NULL: none */
    int64_t arrival_ms;
    void *hold;
} spool_view;
/* *got false: nothing durable within timeout_ms. A view of no records (n 0, hold NULL) says that [from, first) are lost or were never given, and that nothing has come behind them yet. */
fz_status spool_next(spool_reader *r, int64_t timeout_ms, spool_view *out, bool *got, fz_error *err) FZ_MUST_USE;
void spool_view_release(spool_view *v);
void spool_view_share(const spool_view *v); /* one more reference: each is given back by a spool_view_release of a copy of v; any thread */
/* The frame that holds the newest durable record below `before`, cut so that this one is its last. *got false: there is none. */
fz_status spool_last_before(spool *s, uint64_t before, spool_view *out, bool *got, fz_error *err) FZ_MUST_USE;
int64_t spool_arrival_ms(const spool *s, uint64_t from); /* when the oldest durable record from there on came in; 0: there is none */
uint64_t spool_records_from(const spool *s, uint64_t from); /* durable ones; numbers that no record ever had are not counted */
/* Removes segments whose records are all below `upto`. */
fz_status spool_trim(spool *s, uint64_t upto, fz_error *err) FZ_MUST_USE;
#endif
