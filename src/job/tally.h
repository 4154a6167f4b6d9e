/* What became of the records of one delivery (a table too), counted from the start of the process.
 *
 * Invariants
 *  1. in = delivered + filtered + rejected + unparseable + diverted + by_other + buffered, whenever the lock is held by nobody. Records count once for each INSERT that reads them.
 *  2. Only buffered falls. A record whose rows were dropped with an uncommitted lot stays in buffered; read again, it is not counted again (job_again).
 *  3. delivered rises only after the other side has what it counts.
 * Threads: any, under the lock; job_again belongs to the split's worker, and to the control thread while workers are parked.
 */
#ifndef JOB_TALLY_H
#define JOB_TALLY_H
#include "base/base.h"
#include <pthread.h>

typedef struct job_counts { uint64_t read, added, filtered, rejected, unparseable; } job_counts; /* read = the sum of the others; times the INSERTs */

typedef struct job_tally {
    pthread_mutex_t lock;
    uint64_t in, delivered, filtered, rejected, unparseable, buffered;
    uint64_t diverted;                   /* given up as a whole lot: in the error location */
    uint64_t by_other;                   /* found committed by another copy of the job */
    uint64_t rows_in, bytes_in;
    uint64_t bytes, objects, commits, attempts, partitions;
    uint64_t sql_ns, batches;
    uint64_t open_objects;               /* error objects that wait for a replay; tables */
    int64_t last_commit_ms;
    /* When the oldest row came in: not in a lot yet; in one on its way; dropped and not read again yet. And since when nothing goes on. 0: none. */
    int64_t oldest_ms, sent_ms, kept_ms, stuck_ms;
} job_tally;

/* Records of a split that were counted and dropped: the next `left` ones below `to` are those. */
typedef struct job_again {
    uint64_t left;
    int64_t to;
    bool open;                           /* a lot up to open_to, with open_read records, has had no answer */
    int64_t open_to;
    uint64_t open_read;
} job_again;

/* One chunk of a split. */
typedef struct job_taken {
    job_counts n;
    uint32_t paths;                      /* INSERTs */
    uint64_t bytes, sql_ns;
    int64_t arrival_ms;                  /* of its first record */
} job_taken;

void job_tally_init(job_tally *t);
void job_tally_free(job_tally *t);
job_tally job_tally_get(job_tally *t);   /* its lock is nobody's */
/* n records were read, those of them that are in `again` a second time; reading stands at `next` then. again NULL: the source has no positions. */
void job_tally_take(job_tally *t, const job_taken *x, job_again *again, const fz_record *rec, uint32_t n, int64_t next);
/* The lot's rows are on their way. */
void job_tally_send(job_tally *t);
void job_tally_attempt(job_tally *t);
typedef struct job_settled { job_counts n; uint64_t given_up, bytes, partitions; bool diverted, by_other, object, moved_only; } job_settled;
/* given_up: of n.added. moved_only: nothing was given to the other side (no commit is counted). */
void job_tally_settle(job_tally *t, const job_settled *x);
/* What was read and not committed is dropped: n records below `to`. */
void job_again_add(job_again *a, uint64_t n, int64_t to);
/* Reading goes on at `next`: what lies below has been committed by somebody else. */
void job_again_skip(job_again *a, job_tally *t, uint32_t paths, int64_t next);
void job_tally_dropped(job_tally *t);    /* of what was not sent */
void job_tally_failed(job_tally *t);     /* what was sent has not arrived */
/* arrival_ms: of the oldest record that is not committed, 0 unknown. */
void job_tally_stuck(job_tally *t, bool stuck, int64_t arrival_ms);
void job_tally_open(job_tally *t, uint64_t objects);
/* unread_ms: when the oldest record came in that has not been read; 0: none. */
uint64_t job_tally_age_s(const job_tally *t, int64_t unread_ms, int64_t now_ms);
#endif
