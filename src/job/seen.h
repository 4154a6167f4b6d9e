/* How far a table was read into when it was last seen, as the state directory keeps it:
 *
 *     <frazil.state.dir>/seen/<pipeline>/<table>.json
 *
 * For a start while the table's catalog is away. The table alone decides; this says where it stands at least, unless it was rolled back since.
 *
 * Invariants
 *  1. It is written after the table was seen there, and before anything is reported to a source: no record is forgotten on its word.
 *  2. It may lag behind (a process that was killed between a commit and it); a file that is damaged, of another table or of another version is as good as none.
 * Threads: one at a time.
 */
#ifndef JOB_SEEN_H
#define JOB_SEEN_H
#include "job/positions.h"

/* mirror: job_mirror_encode. What cannot be written is said in the log: nothing depends on it. */
void job_seen_write(const char *state_dir, const char *pipeline, const char *table, const char *uuid, const char *mirror);
/* false: nothing is known. Memory in a. No positions: the table had none of this pipeline. */
bool job_seen_read(fz_arena *a, const char *state_dir, const char *pipeline, const char *table, const char *uuid, job_mirror *out);
#endif
