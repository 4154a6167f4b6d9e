/* What of one table's records was given up to error objects, as the state directory keeps it beside the spool:
 *
 *     <frazil.state.dir>/diverted/<pipeline>/<table>.json       a line of JSON, and a line with its SHA-256
 *
 * and what of that the table does not know yet.
 *
 * Invariants
 *  1. A range is in the file, durably, before the source may forget its records and before the sink reads on behind it; its error object was durable before that.
 *  2. The table's position decides what a range counts for: below the position, nothing (the table has the rows, or has named the object); beginning at it, the range goes into the next commit; beyond it, nothing
 *     yet (the table was rolled back, and the records before it come first). A position in the middle of a range leaves the part behind it, whose records are counted in the object.
 *  3. Ranges that the table has taken over are kept for a while: a rollback finds them again when the source has lost their records.
 *  4. A damaged file is an error that names it: what it says is nowhere else.
 * Threads: one at a time.
 */
#ifndef JOB_DIVERTS_H
#define JOB_DIVERTS_H
#include "fileio/fileio.h"
#include "job/lineage.h"

typedef struct job_given_split { job_range range; job_position after; bool known; /* the table had a position of it */ } job_given_split;
typedef struct job_given {   /* one pass: an error object and the ranges that it stands for */
    fz_arena *arena;         /* of all that it points to; its own */
    const char *object;      /* "": no row in the ranges */
    uint64_t records, rows, hash;
    bool named;              /* the table has been seen beyond it */
    bool counted;            /* this process has counted its rows as diverted; not in the file */
    uint32_t n;
    job_given_split *v;
} job_given;

typedef struct job_diverts job_diverts;
/* uuid: the table's; what was given up for another table of the same name is left out, said in the log. FATAL "divert.state", RETRY. */
fz_status job_diverts_open(const char *state_dir, const char *pipeline, const char *table, const char *uuid, job_diverts **out, fz_error *err) FZ_MUST_USE;
void job_diverts_free(job_diverts *d); /* NULL is allowed */
/* Takes g over, whatever comes: after FZ_OK it is durable, after a failure it is as if it had not been. */
fz_status job_diverts_add(job_diverts *d, job_given *g, fz_error *err) FZ_MUST_USE;
uint32_t job_diverts_unnamed(const job_diverts *d); /* error objects that the table has not been told of, as far as is known */
/* How long records gather, beyond the window that each has, before a pass gives them up: a quarter of the window, longer when so many error objects are open. */
int64_t job_diverts_gather_ms(int64_t retry_ms, uint32_t open);
/* Objects with rows that the table (l) does not know: the one at *at or after it, NULL: none. *at begins with 0. */
const char *job_diverts_next_unnamed(const job_diverts *d, const job_lineage *l, uint32_t *at);
void job_given_free(job_given *g); /* NULL is allowed */

/* What the next commit has to carry: in the shape of a commit. Memory in the arena of job_diverts_resolve. */
typedef struct job_pending {
    uint32_t n_ranges, n_objects;
    job_range *ranges;       /* one a split */
    job_position *after;
    bool *known;
    int64_t *remembered;
    job_diverted *objects;
} job_pending;
typedef struct job_resolve {
    void *cx;
    /* Are the records from `at` on still to be had from the source? */
    bool (*readable)(void *cx, const job_split_key *key, int64_t at);
    /* Counts the records and rows of [from, to) in an error object. */
    fz_status (*count)(void *cx, const job_given *g, const job_split_key *key, int64_t from, int64_t to, uint64_t *records, uint64_t *rows, fz_error *err);
    void (*landed)(void *cx, const job_given *g); /* the table has its rows by a commit whose answer was lost; counted is true */
} job_resolve;
void job_diverts_told(job_diverts *d, const job_pending *p); /* a commit has carried p */
fz_status job_diverts_resolve(job_diverts *d, const job_lineage *l, const job_resolve *with, fz_arena *a, job_pending *out, fz_error *err) FZ_MUST_USE;
#endif
