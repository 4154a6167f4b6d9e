/* Questions to a table that the table alone answers: audit (is the claim of exactly once borne out?) and inspect (what is in it?).
 *
 * What it does: reads metadata, manifest lists and manifests, and writes text or JSON into a buffer.
 * What it does not do: it changes nothing, opens no data file, and takes no word of a job or a source for anything.
 * Threads: any; the table is only read.
 */
#ifndef OPS_OPS_H
#define OPS_OPS_H
#include "catalog/catalog.h"

typedef enum { OPS_TEXT, OPS_JSON } ops_format;

typedef struct ops_audit_options {
    ops_format format;     /* JSON: one object */
    const char *pipeline;  /* only the chain of this one; NULL: of all that have committed */
    bool files;            /* also ask the store whether each live data file is there and as long as its manifest entry says */
} ops_audit_options;

/* What an audit found. A failure disproves the claim; a warning is what a reader should know (a cut lineage, rows of foreign
 * writers, a chain that was begun anew on purpose). */
typedef struct ops_verdict {
    uint32_t failures, warnings;
    uint32_t snapshots, commits;       /* in the lineage; of them frazil's */
    uint64_t live_files, live_rows;
    bool complete;                     /* the lineage reaches the table's first snapshot */
} ops_verdict;

/* The proof of a table's ranges and counts. For the lineage of the current snapshot, as far back as snapshots are listed:
 *   - ranges of a split abut, begin where the positions before them ended, and end at the positions of their commit;
 *   - per range, read * paths = added + filtered + rejected + unparseable + diverted;
 *   - error objects: each is named by the commit whose ranges gave its rows up, carried by every commit until one replays it, replayed once, and that commit adds the rows that it says;
 *   - per commit, added of all its ranges = records of the entries that its manifests add = the summary's added-records;
 *   - every manifest has the entries and rows that its manifest list says;
 *   - what a commit added is live, unless a later snapshot that is no append took it away in a manifest;
 *   - the partition of every live file lies within its manifest's summary;
 *   - no data file is live twice; lower bounds are not above upper bounds; no commit id appears twice.
 * FZ_OK: the audit was made; v->failures says how it ended. Other statuses: it could not be made (the table's current manifest list
 * cannot be read, say). The report is appended to out. */
fz_status ops_audit(const cat_table *t, const ops_audit_options *o, fz_buf *out, ops_verdict *v, fz_error *err) FZ_MUST_USE;

/* What to show; may be combined. */
enum { OPS_SNAPSHOTS = 1, OPS_FILES = 2, OPS_PARTITIONS = 4, OPS_POSITIONS = 8, OPS_DIVERTED = 16, OPS_ALL = 31 };
bool ops_section_parse(const char *name, unsigned *mask); /* "snapshots", "files", "partitions", "positions", "diverted", "all" */
/* TEXT: one aligned table a section. JSON: one object a line, with the key "section". Appends to out. */
fz_status ops_inspect(const cat_table *t, unsigned sections, ops_format format, fz_buf *out, fz_error *err) FZ_MUST_USE;

/* Exit codes of the two commands: 0 done and sound, 2 the audit failed; what could not be done at all is the caller's 1. */
enum { OPS_SOUND = 0, OPS_UNSOUND = 2 };
#endif
