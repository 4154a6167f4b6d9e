/* What a table's metadata says of our positions: the newest ancestor of the current snapshot that is ours, or the mirror with proof (rule 2 of the
 * commit protocol in ARCHITECTURE.md). Reads metadata and, for the proof, manifests; changes nothing.
 * Threads: any. */
#ifndef JOB_LINEAGE_H
#define JOB_LINEAGE_H
#include "iceberg/iceberg.h"
#include "job/positions.h"

typedef struct job_lineage {
    bool found;              /* marks are ours */
    job_marks marks;         /* diverted: but for what another pipeline has taken over since; positions (and, unless they came from the mirror, ranges) */
    int64_t snapshot_id;     /* the snapshot that marks came from */
    bool from_mirror;
    bool unproven;           /* there is a mirror, but its snapshot is in no lineage that is known: marks hold it, found is false */
    bool commit_seen;        /* commit_id was met in the lineage */
    bool whole;              /* the lineage was walked to the table's first snapshot: a commit that was not met is not in it */
} job_lineage;

/* commit_id: looked for on the way, or NULL. io: for the proof. Memory in a. FATAL "positions.unreadable" for damaged text. */
fz_status job_lineage_read(fz_arena *a, const ice_metadata *m, const char *pipeline, const char *commit_id, const ice_io *io, job_lineage *out, fz_error *err) FZ_MUST_USE;

/* What the table says of other pipelines: the newest marks of each in the lineage of the current snapshot, newest first; where expiry has cut the lineage, also the
 * mirrors of those that were not met. Without proof: good for a refusal, and for frazil.positions = adopt. Memory in a. */
fz_status job_lineage_others(fz_arena *a, const ice_metadata *m, const char *pipeline, job_marks **out, uint32_t *n, fz_error *err) FZ_MUST_USE;
#endif
