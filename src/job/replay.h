/* Bringing in what was given up: error objects that a table (or an archive's own records) names as diverted and still open. The running job is not needed, nor its sources; it may run at the same time.
 *
 *     table's open objects under the prefix -> their records through the script's INSERTs -> rows and "replayed" in one commit, which requires that they are still open
 *
 * Invariants
 *  1. Nothing is taken on the word of a listing: an object that nobody names is told and left alone, and so is one that is not as it was written.
 *  2. Once: a lost answer, a second replay, a kill in between leave each object either open, without its rows, or replayed, with them.
 *  3. Nothing here moves positions, listens, or touches the state directory of the job.
 * Threads: one at a time, no job beside it in the process.
 */
#ifndef JOB_REPLAY_H
#define JOB_REPLAY_H
#include "job/job.h"

typedef enum {
    JOB_REPLAY_DONE,     /* its rows are in now */
    JOB_REPLAY_BEFORE,   /* they were in already */
    JOB_REPLAY_FAILED,   /* err says why; it stays open */
    JOB_REPLAY_WAITING,  /* given up by a job that has not told the table yet: the job's next commit does */
    JOB_REPLAY_OTHER,    /* open in the table, for another pipeline (err) */
    JOB_REPLAY_ELSEWHERE, /* of a table that the script does not write into, and open there as far as can be told (err) */
    JOB_REPLAY_UNNAMED   /* lies under the prefix; nobody names it */
} job_replay_state;
typedef struct job_replay_object {
    const char *target;  /* table or delivery; NULL: UNNAMED */
    const char *object;
    job_replay_state state;
    uint64_t rows, added, filtered, rejected, unparseable; /* rows: given up; the others: what became of them */
    const fz_error *err;
} job_replay_object;
typedef void (*job_replay_fn)(void *cx, const job_replay_object *o); /* texts live during the call */

typedef struct job_replay job_replay;
/* prefix: of locations of error objects. fn is told of each object. */
job_replay *job_replay_new(const char *prefix, job_replay_fn fn, void *cx);
/* The INSERTs of one statement. *exit_code as of job_run: an object that is left open is told by job_replay_list; JOB_UNKNOWN when a commit's outcome is not known (the next replay finds out). */
fz_status job_replay_run(job_replay *r, const job_spec *spec, int *exit_code, fz_error *err) FZ_MUST_USE;
/* After the script, while its catalogs are open: what lies under the prefix and was not told of. *n_objects: all that lies there. *exit_code becomes JOB_FAILED where something under the prefix is open. */
fz_status job_replay_list(job_replay *r, uint64_t *n_objects, int *exit_code, fz_error *err) FZ_MUST_USE;
void job_replay_free(job_replay *r);
#endif
