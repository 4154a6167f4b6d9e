/* Inside of ops: the state of an audit, and walking live files. */
#ifndef OPS_OPS_INT_H
#define OPS_OPS_INT_H
#include "fileio/fileio.h"
#include "job/positions.h"
#include "ops/ops.h"

typedef struct audit_finding { bool failure; const char *code, *text; } audit_finding;

/* One snapshot of the lineage, and what its own manifests say. */
typedef struct audit_step {
    const ice_snapshot *s;
    bool ours;
    job_marks marks;               /* when ours */
    bool manifests_read;
    int64_t added_files, added_rows, removed_files, removed_rows;
} audit_step;

/* A split's way through the chain of one pipeline. */
typedef struct audit_split {
    job_split_key key;
    int64_t begin, next;           /* [begin, next) is what the chain covers */
    uint64_t read, added, filtered, rejected, unparseable, diverted;
    uint32_t commits;
    bool gone;                     /* its log was gone when it was named last: it may be left out from there on */
    bool retired;                  /* it is left out */
} audit_split;
typedef struct audit_chain {
    const char *pipeline;
    uint32_t n_splits, cap_splits;
    audit_split *splits;           /* heap */
    uint32_t commits, unpositioned;
    uint64_t unpositioned_rows;    /* added by commits without ranges: one-shot sources */
    uint32_t replayed;             /* error objects */
    uint64_t replayed_rows;        /* added by their replay */
    int64_t first_snapshot;
    const audit_step *last;
    uint32_t n_open;               /* error objects that nobody has replayed or taken over */
} audit_chain;

typedef struct audit {
    fz_arena *a;
    const cat_table *t;
    const ice_metadata *m;
    const ops_audit_options *o;
    ops_verdict *v;
    uint32_t n_steps;
    audit_step *steps;             /* oldest first */
    bool cut;
    uint32_t n_chains, cap_chains;
    audit_chain *chains;           /* heap */
    uint32_t n_findings, cap_findings;
    audit_finding *findings;       /* heap */
    fz_hashset live, removed;      /* data file paths */
    uint64_t older_files, older_rows;  /* live, added by snapshots that are no longer listed */
} audit;

void audit_fail(audit *x, const char *code, const char *fmt, ...) FZ_PRINTF(3, 4);
void audit_warn(audit *x, const char *code, const char *fmt, ...) FZ_PRINTF(3, 4);

fz_status audit_live(audit *x, fz_error *err) FZ_MUST_USE; /* fills live; twice-live files, bounds, sizes */
void audit_steps(audit *x);       /* each snapshot's own manifests against its summary and ranges; additions still live */
void audit_chains(audit *x);      /* ranges and positions, oldest to newest */
void audit_mirrors(audit *x);
void audit_render(audit *x, fz_buf *out);

static inline uint64_t ops_path_hash(const char *path) { return fz_hash(path, strlen(path)); }

/* Calls fn for each entry of a manifest; memory of e is gone after the call. fn fills err when it fails. */
typedef fz_status (*ops_entry_fn)(void *cx, const ice_manifest_file *f, const ice_entry *e, fz_error *err);
fz_status ops_each_entry(const cat_table *t, const ice_manifest_file *f, ops_entry_fn fn, void *cx, fz_error *err) FZ_MUST_USE;
#endif
