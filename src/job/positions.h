/* Positions and ranges in a table's own metadata: what a commit of ours writes into the snapshot summary and, as a mirror, into the
 * table's properties; and back. Pure text work: no I/O.
 *
 * Summary keys of a snapshot of ours
 *   frazil.pipeline     pipeline.name
 *   frazil.commit-id    UUID of the commit (one-shot sources: "<run id>/<checkpoint>", by which a lost answer is recognised)
 *   frazil.checkpoint   number of the checkpoint in its run, for people
 *   frazil.positions    {"v":1,"s":{SOURCE:{TOPIC:[[PARTITION,NEXT,LAST_OFFSET,LAST_TIMESTAMP,"LAST_HASH"],...]}}}
 *                       the next offset of *every* split of the sink, touched or not; offset, timestamp (ms) and hash of the last record
 *                       before it (absent when there is none). [PARTITION,NEXT,null,SINCE]: a log that is gone since then (ms); it
 *                       may come back (retire.c)
 *   frazil.ranges       {"v":1,"s":{SOURCE:{TOPIC:[[PARTITION,FROM,TO,READ,ADDED,FILTERED,REJECTED,UNPARSEABLE,PATHS,DIVERTED],...]}}}
 *                       [FROM,TO) is what this commit carries of the split. PATHS is the number of INSERTs that read the split into this
 *                       table; READ * PATHS = ADDED + FILTERED + REJECTED + UNPARSEABLE + DIVERTED. DIVERTED is left out where it is 0: rows that
 *                       the table could not take in time and that lie in error objects
 *   frazil.diverted     {"v":1,"o":[[OBJECT,RECORDS,ROWS,"HASH",{"v":1,"s":{SOURCE:{TOPIC:[[PARTITION,FROM,TO],...]}}}],...]}, left out when there are none
 *                       the error objects whose rows the table still lacks after this commit: RECORDS and HASH (of its lines) are the object's, ROWS those of
 *                       the ranges [FROM,TO) of it that count
 *   frazil.replayed     {"v":1,"o":[[OBJECT,ADDED,FILTERED,REJECTED,UNPARSEABLE],...]}: error objects whose records this commit has brought
 *   frazil.adopted      {"v":1,"p":[[PIPELINE,SEQUENCE],...]}, left out when there are none: pipelines whose positions this one has taken over (frazil.positions = adopt), each as
 *                       it stood at that sequence number of the table: what it commits later is its own again
 *   frazil.chain        "new" when the ranges begin a new chain on purpose (frazil.positions = adopt or ignore, frazil.lost-offsets = earliest)
 * Table property: frazil.mirror.PIPELINE = {"v":1,"snapshot":ID,"sequence":N,"positions":{...as above},"diverted":{...as above, if any},"adopted":{...as above, if any}}
 * A delivery's state is such a text too, without snapshot and sequence; there SEQUENCE is job_state_hash of the state that was taken over.
 *
 * Invariants
 *  1. Encoding is canonical (sorted by source, topic, partition), so that equal positions are equal texts.
 *  2. What cannot be read is an error, never "no positions".
 */
#ifndef JOB_POSITIONS_H
#define JOB_POSITIONS_H
#include "base/base.h"

#define JOB_KEY_PIPELINE "frazil.pipeline"
#define JOB_KEY_COMMIT_ID "frazil.commit-id"
#define JOB_KEY_CHECKPOINT "frazil.checkpoint"
#define JOB_KEY_POSITIONS "frazil.positions"
#define JOB_KEY_RANGES "frazil.ranges"
#define JOB_KEY_CHAIN "frazil.chain"
#define JOB_KEY_DIVERTED "frazil.diverted"
#define JOB_KEY_REPLAYED "frazil.replayed"
#define JOB_KEY_ADOPTED "frazil.adopted"
enum { JOB_MAX_KEYS = 9 }; /* summary keys of one snapshot */
#define JOB_MIRROR_PREFIX "frazil.mirror."

/* A split is filed under source identity, topic (a file's path for file sources) and partition. */
typedef struct job_split_key { const char *source, *topic; int32_t partition; } job_split_key;
typedef struct job_position {
    job_split_key key;
    int64_t next;
    bool has_last;
    int64_t last_offset, last_timestamp;
    uint64_t last_hash;
    int64_t gone_ms;         /* since when there is nothing of the log any more; 0: it is there */
} job_position;
typedef struct job_range {
    job_split_key key;
    int64_t from, to;
    uint64_t read, added, filtered, rejected, unparseable;
    uint32_t paths;
    uint64_t diverted;
} job_range;
typedef struct job_part { job_split_key key; int64_t from, to; } job_part;
/* An error object and what of it counts. */
typedef struct job_diverted { const char *object; uint64_t records, rows, hash; uint32_t n_parts; job_part *parts; } job_diverted;
typedef struct job_replayed { const char *object; uint64_t added, filtered, rejected, unparseable; } job_replayed;
typedef struct job_adopted { const char *pipeline; int64_t as_of; } job_adopted;
typedef struct job_marks {
    const char *pipeline, *commit_id;
    uint64_t checkpoint;
    bool new_chain;
    uint32_t n_positions;
    job_position *positions;
    uint32_t n_ranges;
    job_range *ranges;
    uint32_t n_diverted, n_replayed;
    job_diverted *diverted;
    job_replayed *replayed;
    uint32_t n_adopted;
    job_adopted *adopted;
    int64_t as_of;           /* not in the text: the sequence number of the snapshot, or of the state that it came from, job_state_hash */
} job_marks;
typedef struct job_mirror {
    int64_t snapshot_id, sequence_number;
    uint32_t n, n_diverted;
    job_position *positions;
    job_diverted *diverted;
    uint32_t n_adopted;
    job_adopted *adopted;
} job_mirror;

int job_split_key_cmp(const job_split_key *a, const job_split_key *b);
/* NULL: not there. */
job_position *job_position_find(const job_position *v, uint32_t n, const job_split_key *key);
const job_diverted *job_diverted_find(const job_diverted *v, uint32_t n, const char *object); /* the same */

/* *found false: the summary is not one of frazil's. FATAL "positions.unreadable" when its text cannot be read. Strings live in a. */
fz_status job_marks_decode(fz_arena *a, const fz_pair *summary, size_t n, job_marks *out, bool *found, fz_error *err) FZ_MUST_USE;
/* Appends the summary keys of m to out (room for JOB_MAX_KEYS). Returns how many. */
size_t job_marks_encode(fz_arena *a, const job_marks *m, fz_pair *out);
fz_status job_mirror_decode(fz_arena *a, const char *text, job_mirror *out, fz_error *err) FZ_MUST_USE;
const char *job_mirror_encode(fz_arena *a, const job_mirror *m);
/* Of the positions of logs that are gone no more than JOB_GONE_KEPT are kept; those that are gone for longest go first, but none that went less than JOB_GONE_MS ago. */
#define JOB_GONE_KEPT 100
#define JOB_GONE_MS 86400000
uint32_t job_positions_retire(job_position *v, uint32_t n, int64_t now_ms);
/* Puts `more` behind v (room for n + n_more), in place of what stands there of the same pipelines; of very many the first ones go. Returns how many there are then. */
#define JOB_ADOPTED_KEPT 100
uint32_t job_adopted_merge(job_adopted *v, uint32_t n, const job_adopted *more, uint32_t n_more);
const job_adopted *job_adopted_find(const job_adopted *v, uint32_t n, const char *pipeline); /* NULL: not there */
int64_t job_state_hash(const char *state);
/* "syslog/3" for messages. */
const char *job_split_text(fz_arena *a, const job_split_key *key);
#endif
