/* Metrics: one table. Every metric exists from the start with value 0 and never vanishes.
 * Threads: counters are atomic; any thread adds. */
#ifndef FZ_METRIC_H
#define FZ_METRIC_H
#include <stddef.h>
#include <stdint.h>

/* X(id, name, kind, unit, help) */
#define FZ_METRICS(X)                                                                                                  \
    X(RECORDS_IN, "frazil_source_records_total", COUNTER, "records", "Records read from sources.")                     \
    X(BYTES_IN, "frazil_source_bytes_total", COUNTER, "bytes", "Bytes of records read from sources.")                  \
    X(ROWS_ADDED, "frazil_sink_rows_added_total", COUNTER, "rows", "Rows made visible by commits.")                    \
    X(ROWS_FILTERED, "frazil_exec_rows_filtered_total", COUNTER, "rows", "Rows that WHERE dropped.")                   \
    X(ROWS_REJECTED, "frazil_rows_rejected_total", COUNTER, "rows", "Rows given to dead letters or dropped by on-row-error.") \
    X(ROWS_UNPARSEABLE, "frazil_decode_unparseable_total", COUNTER, "records", "Records dropped by ignore-parse-errors and tombstones.") \
    X(CHECKPOINTS, "frazil_checkpoints_completed_total", COUNTER, "checkpoints", "Checkpoints whose commits all ended.") \
    X(CHECKPOINTS_FAILED, "frazil_checkpoints_failed_total", COUNTER, "checkpoints", "Checkpoints that did not end well.") \
    X(RECORDS_FAILED, "frazil_checkpoint_records_failed_total", COUNTER, "records", "Checkpoint records that could not be written or removed.") \
    X(COMMITS, "frazil_commits_total", COUNTER, "commits", "Commits that the catalog accepted.")                       \
    X(COMMIT_CONFLICTS, "frazil_commit_conflicts_total", COUNTER, "commits", "Commits tried again because the table had moved.") \
    X(COMMIT_UNKNOWN, "frazil_commit_unknown_total", COUNTER, "commits", "Commit answers that left the outcome open.") \
    X(COMMIT_FOUND_LANDED, "frazil_commit_found_landed_total", COUNTER, "commits", "Commits found already in the table after a lost answer.") \
    X(COMMIT_BY_OTHER, "frazil_commit_by_other_total", COUNTER, "commits", "Commits whose records another copy of the job had committed: their files were dropped.") \
    X(REWINDS, "frazil_rewinds_total", COUNTER, "rewinds", "Times a sink dropped its files and read again from the table's positions.") \
    X(FILES_WRITTEN, "frazil_files_written_total", COUNTER, "files", "Data files written.")                            \
    X(FILES_EARLY, "frazil_files_closed_early_total", COUNTER, "files", "Data files closed before the checkpoint for lack of memory or by target size.") \
    X(BYTES_WRITTEN, "frazil_file_bytes_total", COUNTER, "bytes", "Bytes of data files written.")                      \
    X(DEAD_LETTERS, "frazil_dead_letters_total", COUNTER, "rows", "Dead letters made durable.")                        \
    X(LAG, "frazil_source_lag", GAUGE, "records", "Records between the position and the end of all splits.")           \
    X(LAST_COMMIT, "frazil_last_commit_timestamp_ms", GAUGE, "ms", "Time of the newest commit of this process.")       \
    X(MEMORY, "frazil_memory_resident_bytes", GAUGE, "bytes", "Resident size of the process.")                         \
    X(PAUSED, "frazil_source_pauses_total", COUNTER, "pauses", "Times a source was paused for memory or back-pressure.")

typedef enum {
#define X(id, name, kind, unit, help) FZ_M_##id,
    FZ_METRICS(X)
#undef X
    FZ_M_COUNT
} fz_metric;
typedef enum { FZ_METRIC_COUNTER, FZ_METRIC_GAUGE } fz_metric_kind;
typedef struct fz_metric_info { const char *name; fz_metric_kind kind; const char *unit, *help; } fz_metric_info;

void fz_metric_add(fz_metric m, uint64_t n);
void fz_metric_set(fz_metric m, uint64_t v);
uint64_t fz_metric_get(fz_metric m);
const fz_metric_info *fz_metric_describe(fz_metric m);
#endif
