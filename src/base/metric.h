/* Metrics: one table of all that a job exports, in this order. Every series exists from the start with value 0 and never vanishes.
 *
 * Those without labels are counted here. Those with labels are asked from whom they belong to when the metrics are written (job/metrics.c): a source gives those of its connector, its listeners
 * and its spool (src_metrics), a delivery those of job/tally.c.
 * Threads: counters are atomic; any thread adds. */
#ifndef FZ_METRIC_H
#define FZ_METRIC_H
#include <stddef.h>
#include <stdint.h>

/* X(id, name, kind, unit, labels, name of Firehose or NULL, help). Labels: "" (one series), or names parted by commas; their values follow from the script alone. */
#define FZ_METRICS(X) \
    X(RECORDS_IN, "frazil_source_records_total", COUNTER, "records", "", NULL, "Records read from sources.") \
    X(BYTES_IN, "frazil_source_bytes_total", COUNTER, "bytes", "", NULL, "Bytes of records read from sources.") \
    X(ROWS_ADDED, "frazil_sink_rows_added_total", COUNTER, "rows", "", NULL, "Rows made visible by commits.") \
    X(ROWS_FILTERED, "frazil_exec_rows_filtered_total", COUNTER, "rows", "", NULL, "Rows that WHERE dropped.") \
    X(ROWS_REJECTED, "frazil_rows_rejected_total", COUNTER, "rows", "", NULL, "Rows given to dead letters or dropped by on-row-error.") \
    X(ROWS_UNPARSEABLE, "frazil_decode_unparseable_total", COUNTER, "records", "", NULL, "Records dropped by ignore-parse-errors and tombstones.") \
    X(CHECKPOINTS, "frazil_checkpoints_completed_total", COUNTER, "checkpoints", "", NULL, "Checkpoints whose commits all ended.") \
    X(CHECKPOINTS_FAILED, "frazil_checkpoints_failed_total", COUNTER, "checkpoints", "", NULL, "Checkpoints that did not end well.") \
    X(RECORDS_FAILED, "frazil_checkpoint_records_failed_total", COUNTER, "records", "", NULL, "Checkpoint records that could not be written or removed.") \
    X(COMMITS, "frazil_commits_total", COUNTER, "commits", "", NULL, "Commits that the catalog accepted.") \
    X(COMMIT_CONFLICTS, "frazil_commit_conflicts_total", COUNTER, "commits", "", NULL, "Commits tried again because the table had moved.") \
    X(COMMIT_UNKNOWN, "frazil_commit_unknown_total", COUNTER, "commits", "", NULL, "Commit answers that left the outcome open.") \
    X(COMMIT_FOUND_LANDED, "frazil_commit_found_landed_total", COUNTER, "commits", "", NULL, "Commits found already in the table after a lost answer.") \
    X(COMMIT_BY_OTHER, "frazil_commit_by_other_total", COUNTER, "commits", "", NULL, "Commits whose records another copy of the job had committed: their files were dropped.") \
    X(REWINDS, "frazil_rewinds_total", COUNTER, "rewinds", "", NULL, "Times a sink dropped its files and read again from the table's positions.") \
    X(FILES_WRITTEN, "frazil_files_written_total", COUNTER, "files", "", NULL, "Data files written.") \
    X(FILES_EARLY, "frazil_files_closed_early_total", COUNTER, "files", "", NULL, "Data files closed before the checkpoint for lack of memory or by target size.") \
    X(BYTES_WRITTEN, "frazil_file_bytes_total", COUNTER, "bytes", "", NULL, "Bytes of data files written.") \
    X(DEAD_LETTERS, "frazil_dead_letters_total", COUNTER, "rows", "", NULL, "Dead letters made durable.") \
    X(LAG, "frazil_source_lag", GAUGE, "records", "", NULL, "Positions between where reading stands and the end of all splits: records; of files that are followed, bytes.") \
    X(LAST_COMMIT, "frazil_last_commit_timestamp_ms", GAUGE, "ms", "", NULL, "Time of the newest commit of this process.") \
    X(MEMORY, "frazil_memory_resident_bytes", GAUGE, "bytes", "", NULL, "Resident size of the process.") \
    X(PAUSED, "frazil_source_pauses_total", COUNTER, "pauses", "", NULL, "Times a source was paused for memory or back-pressure.") \
    X(POSITIONS_LOST, "frazil_positions_lost_total", COUNTER, "positions", "", NULL, "Positions that were gone before a delivery had read them, and were passed over by frazil.lost-offsets = earliest.") \
    X(FILES_TRUNCATED, "frazil_file_truncated_total", COUNTER, "files", "", NULL, "Times a followed file was truncated; what had not been read of it is read from a copy, if there is one.") \
    X(FILES_ALIKE, "frazil_file_refused_total", COUNTER, "files", "", NULL, "Files that are not read because they begin like another one.") \
    X(FILES_DAMAGED, "frazil_file_damaged_total", COUNTER, "files", "", NULL, "Packed files that end in the middle or are damaged; the rest is read when they change.") \
    X(FILES_UNREADABLE, "frazil_file_unreadable_total", COUNTER, "tries", "", NULL, "Times a file or directory could not be looked at.") \
    X(STARTED, "frazil_start_timestamp_ms", GAUGE, "ms", "", NULL, "When this process began to count: counters are of the process, and begin at 0 with it.") \
    X(PUBLISH_FAILED, "frazil_cloudwatch_requests_failed_total", COUNTER, "requests", "", NULL, "Requests of PutMetricData that failed; what they carried goes with the next period.") \
    X(JOB_RECORDS, "frazil_job_records", GAUGE, "records", "state", NULL, "The records of all deliveries, summed: in = delivered + filtered + rejected + unparseable + diverted + by_other + buffered.") \
    X(INCOMING_RECORDS, "firehose_incoming_records", COUNTER, "records", "source", "IncomingRecords", "IncomingRecords: records read from the source.") \
    X(INCOMING_BYTES, "firehose_incoming_bytes", COUNTER, "bytes", "source", "IncomingBytes", "IncomingBytes: their bytes.") \
    X(SOURCE_SPLITS, "frazil_source_splits", GAUGE, "splits", "source", NULL, "Splits of the source that are known: partitions, files.") \
    X(SOURCE_LAG, "frazil_source_lag_positions", GAUGE, "positions", "source", NULL, "Positions between where reading stands and the end of the source: records; of files that are followed, bytes.") \
    X(LISTENER_CONNECTIONS, "frazil_listener_connections", GAUGE, "connections", "source", NULL, "Connections that are open.") \
    X(LISTENER_HELD, "frazil_listener_paused", GAUGE, "connections", "source", NULL, "Connections (1 for all datagrams) that wait for room in the spool: back-pressure.") \
    X(LISTENER_ACCEPTED, "frazil_listener_accepted_total", COUNTER, "connections", "source", NULL, "Connections that were let in.") \
    X(LISTENER_TURNED_AWAY, "frazil_listener_refused_total", COUNTER, "connections", "source", NULL, "Connections above 'max-connections'; datagrams that the kernel dropped.") \
    X(LISTENER_TIMED_OUT, "frazil_listener_timed_out_total", COUNTER, "connections", "source", NULL, "Connections closed because a message or the next one took too long.") \
    X(LISTENER_TOO_LARGE, "frazil_listener_too_large_total", COUNTER, "messages", "source", NULL, "Messages above 'max-message-size'.") \
    X(LISTENER_TLS_FAILED, "frazil_listener_tls_failed_total", COUNTER, "connections", "source", NULL, "TLS handshakes that failed.") \
    X(LISTENER_BYTES, "frazil_listener_bytes_total", COUNTER, "bytes", "source", NULL, "Bytes that came in, as on the wire inside TLS.") \
    X(LISTENER_UNREAD, "frazil_listener_buffered_bytes", GAUGE, "bytes", "source", NULL, "Bytes of all connections that wait to be worked off.") \
    X(SPOOL_RECORDS, "frazil_spool_records_total", COUNTER, "records", "source", NULL, "Records appended to the spool.") \
    X(SPOOL_BYTES, "frazil_spool_bytes_total", COUNTER, "bytes", "source", NULL, "Bytes of those records.") \
    X(SPOOL_SYNCS, "frazil_spool_syncs_total", COUNTER, "syncs", "source", NULL, "Times that the disk was told to keep what was written; senders are acknowledged after it.") \
    X(SPOOL_REFUSED, "frazil_spool_refused_total", COUNTER, "appends", "source", NULL, "Appends that found no room on disk or in memory, or a disk that fails: their senders wait or are told to come back.") \
    X(SPOOL_DAMAGED_BYTES, "frazil_spool_damaged_bytes_total", COUNTER, "bytes", "source", NULL, "Bytes that hold no intact frame; they were set aside in NAME.damaged.") \
    X(SPOOL_DAMAGED_SEGMENTS, "frazil_spool_damaged_segments_total", COUNTER, "segments", "source", NULL, "Segments of which nothing could be used.") \
    X(SPOOL_LOST, "frazil_spool_lost_records_total", COUNTER, "records", "source", NULL, "Records in what was damaged.") \
    X(SPOOL_WAITING, "frazil_spool_waiting_records", GAUGE, "records", "source", NULL, "Durable records that some delivery has not committed yet.") \
    X(SPOOL_OLDEST, "frazil_spool_oldest_age_seconds", GAUGE, "seconds", "source", NULL, "Age of the oldest of them; 0: there is none.") \
    X(SPOOL_UNSYNCED, "frazil_spool_unsynced_records", GAUGE, "records", "source", NULL, "Records that are appended and not durable yet: nobody was told that they are safe.") \
    X(SPOOL_UNSYNCED_AGE, "frazil_spool_unsynced_age_seconds", GAUGE, "seconds", "source", NULL, "Age of the oldest of those.") \
    X(SPOOL_DISK, "frazil_spool_disk_bytes", GAUGE, "bytes", "source", NULL, "Bytes of the spool on disk.") \
    X(SPOOL_LIMIT, "frazil_spool_limit_bytes", GAUGE, "bytes", "source", NULL, "Most bytes that it may have: 'spool.max-size'.") \
    X(SPOOL_FULL, "frazil_spool_full", GAUGE, "boolean", "source", NULL, "1: there is no room, senders have to wait.") \
    X(SPOOL_FAILING, "frazil_spool_failing", GAUGE, "boolean", "source", NULL, "1: the last write or sync failed.") \
    X(FORWARD_MESSAGES, "frazil_forward_messages_total", COUNTER, "messages", "source", NULL, "Messages taken in.") \
    X(FORWARD_EVENTS, "frazil_forward_events_total", COUNTER, "events", "source", NULL, "Events in them.") \
    X(FORWARD_BROKEN, "frazil_forward_broken_events_total", COUNTER, "events", "source", NULL, "Events that are no map, or have no time: their bytes are kept.") \
    X(FORWARD_ACKED, "frazil_forward_acknowledgements_total", COUNTER, "acknowledgements", "source", NULL, "Messages whose sender asked for an acknowledgement and was given it.") \
    X(FORWARD_REFUSED, "frazil_forward_refused_total", COUNTER, "connections", "source", NULL, "Connections closed for what they sent.") \
    X(FORWARD_SIGNALS, "frazil_forward_signals_refused_total", COUNTER, "messages", "source", NULL, "Messages of metrics or traces.") \
    X(FORWARD_LOGINS, "frazil_forward_failed_logins_total", COUNTER, "logins", "source", NULL, "Handshakes with a wrong key, user or password.") \
    X(FORWARD_HEARTBEATS, "frazil_forward_heartbeats_total", COUNTER, "datagrams", "source", NULL, "Heartbeats over UDP that were answered.") \
    X(OTLP_REQUESTS, "frazil_otlp_requests_total", COUNTER, "requests", "source,transport", NULL, "Requests to export logs, over http and grpc.") \
    X(OTLP_RECORDS, "frazil_otlp_records_total", COUNTER, "records", "source", NULL, "Log records taken in.") \
    X(OTLP_REFUSED_RECORDS, "frazil_otlp_refused_records_total", COUNTER, "records", "source", NULL, "Log records that a partial success named as refused.") \
    X(OTLP_BAD, "frazil_otlp_refused_bad_total", COUNTER, "requests", "source", NULL, "Requests that are no OTLP, or too large.") \
    X(OTLP_AUTH, "frazil_otlp_refused_auth_total", COUNTER, "requests", "source", NULL, "Requests without the right token.") \
    X(OTLP_ROOM, "frazil_otlp_refused_room_total", COUNTER, "requests", "source", NULL, "Requests told to come back: no room.") \
    X(SYSLOG_MESSAGES, "frazil_syslog_messages_total", COUNTER, "messages", "source", NULL, "Messages taken in over TCP and TLS.") \
    X(SYSLOG_COUNTED, "frazil_syslog_octet_counted_total", COUNTER, "messages", "source", NULL, "Of them: framed by octet counting.") \
    X(SYSLOG_DATAGRAMS, "frazil_syslog_datagrams_total", COUNTER, "datagrams", "source", NULL, "Messages taken in over UDP.") \
    X(SYSLOG_CUT, "frazil_syslog_cut_off_total", COUNTER, "messages", "source", NULL, "Messages cut at the largest size.") \
    X(SYSLOG_REFUSED, "frazil_syslog_refused_total", COUNTER, "connections", "source", NULL, "Connections closed for what they sent.") \
    X(SYSLOG_LOST, "frazil_syslog_lost_total", COUNTER, "messages", "source", NULL, "Messages for which there was no room or no disk, and whose sender cannot be told.") \
    X(HTTP_REQUESTS, "frazil_http_requests_total", COUNTER, "requests", "source", NULL, "Requests.") \
    X(HTTP_RECORDS, "frazil_http_records_total", COUNTER, "records", "source", NULL, "Documents taken in.") \
    X(HTTP_BAD, "frazil_http_refused_bad_total", COUNTER, "requests", "source", NULL, "Requests that are not as they should be.") \
    X(HTTP_AUTH, "frazil_http_refused_auth_total", COUNTER, "requests", "source", NULL, "Requests without the right token.") \
    X(HTTP_ROOM, "frazil_http_refused_room_total", COUNTER, "requests", "source", NULL, "Requests told to come back: no room.") \
    X(FIREHOSE_CALLS, "frazil_firehose_calls_total", COUNTER, "calls", "source", NULL, "Calls of the API.") \
    X(FIREHOSE_RECORDS, "frazil_firehose_records_total", COUNTER, "records", "source", NULL, "Records taken in.") \
    X(FIREHOSE_BAD, "frazil_firehose_refused_bad_total", COUNTER, "calls", "source", NULL, "Calls that are not as they should be.") \
    X(FIREHOSE_AUTH, "frazil_firehose_refused_auth_total", COUNTER, "calls", "source", NULL, "Calls without a right signature.") \
    X(FIREHOSE_REFUSED, "frazil_firehose_refused_records_total", COUNTER, "records", "source", NULL, "Records that a caller was told to send again.") \
    X(DELIVERY_RECORDS, "frazil_delivery_records", GAUGE, "records", "delivery,state", NULL, "Records, once for each INSERT that reads them, by what became of them: in = delivered + filtered + rejected + unparseable + diverted + by_other + buffered. Only buffered falls.") \
    X(DELIVERY_UP, "frazil_delivery_up", GAUGE, "boolean", "delivery", NULL, "1: running; 0: waiting after a failure, or stopped.") \
    X(DELIVERY_AGE, "frazil_delivery_oldest_age_seconds", GAUGE, "seconds", "delivery", NULL, "Age of the oldest record that is not delivered, read or not; it rises while anything is stuck. 0: all is delivered.") \
    X(DELIVERY_LAG, "frazil_delivery_lag_positions", GAUGE, "positions", "delivery", NULL, "Positions between what the delivery has committed or given up and the end of its sources, read or not: records; of files that are followed, bytes. Of records without a row it falls with the next commit that has one, after ten checkpoints at the latest.") \
    X(DELIVERY_BYTES, "frazil_delivery_bytes_total", COUNTER, "bytes", "delivery", NULL, "Bytes delivered: of data files; of records before compression.") \
    X(DELIVERY_COMMITS, "frazil_delivery_commits_total", COUNTER, "commits", "delivery", NULL, "Lots and commits that the other side has.") \
    X(DELIVERY_ATTEMPTS, "frazil_delivery_attempts_total", COUNTER, "attempts", "delivery", NULL, "Times that one was tried.") \
    X(DELIVERY_LAST, "frazil_delivery_last_commit_timestamp_ms", GAUGE, "ms", "delivery", NULL, "When the newest one ended; 0: none by this process.") \
    X(DELIVERY_OPEN, "frazil_delivery_open_objects", GAUGE, "objects", "delivery", NULL, "Error objects of the table that wait for frazil replay. At 1000 nothing further is given up, and the delivery waits.") \
    X(ICE_PARTITIONS, "firehose_delivery_to_iceberg_active_partitions_count", GAUGE, "partitions", "delivery", "DeliveryToIceberg.ActivePartitionsCount", "DeliveryToIceberg.ActivePartitionsCount: partitions that the newest commit added files to.") \
    X(ICE_BYTES, "firehose_delivery_to_iceberg_bytes", COUNTER, "bytes", "delivery", "DeliveryToIceberg.Bytes", "DeliveryToIceberg.Bytes: bytes of data files made visible.") \
    X(ICE_FRESHNESS, "firehose_delivery_to_iceberg_data_freshness", GAUGE, "seconds", "delivery", "DeliveryToIceberg.DataFreshness", "DeliveryToIceberg.DataFreshness: seconds since the oldest record came in that is not delivered yet; it rises while anything is stuck.") \
    X(ICE_FAILED, "firehose_delivery_to_iceberg_failed_row_count", COUNTER, "rows", "delivery", "DeliveryToIceberg.FailedRowCount", "DeliveryToIceberg.FailedRowCount: rows given up: dead letters and rows in the error location.") \
    X(ICE_INCOMING, "firehose_delivery_to_iceberg_incoming_row_count", COUNTER, "rows", "delivery", "DeliveryToIceberg.IncomingRowCount", "DeliveryToIceberg.IncomingRowCount: rows for the table, delivered, given up or on their way; each once, also when it is read again.") \
    X(ICE_SUCCESS, "firehose_delivery_to_iceberg_success", COUNTER, "commits", "delivery", "DeliveryToIceberg.Success", "DeliveryToIceberg.Success: commits that the catalog accepted.") \
    X(ICE_ROWS, "firehose_delivery_to_iceberg_successful_row_count", COUNTER, "rows", "delivery", "DeliveryToIceberg.SuccessfulRowCount", "DeliveryToIceberg.SuccessfulRowCount: rows made visible by commits.") \
    X(ICE_TABLES, "firehose_delivery_to_iceberg_table_count", GAUGE, "tables", "delivery", "DeliveryToIceberg.TableCount", "DeliveryToIceberg.TableCount: tables that this delivery writes to: one.") \
    X(ICE_WRITES, "firehose_delivery_to_iceberg_write_attempt_success", COUNTER, "attempts", "delivery", "DeliveryToIceberg.WriteAttemptSuccess", "DeliveryToIceberg.WriteAttemptSuccess: attempts at a commit that succeeded; frazil_delivery_attempts_total has all of them.") \
    X(S3_BYTES, "firehose_delivery_to_s3_bytes", COUNTER, "bytes", "delivery", "DeliveryToS3.Bytes", "DeliveryToS3.Bytes: bytes delivered, before compression.") \
    X(S3_FRESHNESS, "firehose_delivery_to_s3_data_freshness", GAUGE, "seconds", "delivery", "DeliveryToS3.DataFreshness", "DeliveryToS3.DataFreshness: seconds since the oldest record came in that is not delivered yet; it rises while anything is stuck.") \
    X(S3_OBJECTS, "firehose_delivery_to_s3_object_count", COUNTER, "objects", "delivery", "DeliveryToS3.ObjectCount", "DeliveryToS3.ObjectCount: objects delivered.") \
    X(S3_RECORDS, "firehose_delivery_to_s3_records", COUNTER, "records", "delivery", "DeliveryToS3.Records", "DeliveryToS3.Records: records delivered.") \
    X(S3_SUCCESS, "firehose_delivery_to_s3_success", COUNTER, "attempts", "delivery", "DeliveryToS3.Success", "DeliveryToS3.Success: puts of objects that succeeded; frazil_delivery_attempts_total has all of them.") \
    X(CWL_BYTES, "firehose_delivery_to_cloud_watch_logs_bytes", COUNTER, "bytes", "delivery", "DeliveryToCloudWatchLogs.Bytes", "DeliveryToCloudWatchLogs.Bytes: bytes of events delivered.") \
    X(CWL_FRESHNESS, "firehose_delivery_to_cloud_watch_logs_data_freshness", GAUGE, "seconds", "delivery", "DeliveryToCloudWatchLogs.DataFreshness", "DeliveryToCloudWatchLogs.DataFreshness: seconds since the oldest record came in that is not delivered yet; it rises while anything is stuck.") \
    X(CWL_RECORDS, "firehose_delivery_to_cloud_watch_logs_records", COUNTER, "records", "delivery", "DeliveryToCloudWatchLogs.Records", "DeliveryToCloudWatchLogs.Records: events delivered.") \
    X(CWL_SUCCESS, "firehose_delivery_to_cloud_watch_logs_success", COUNTER, "attempts", "delivery", "DeliveryToCloudWatchLogs.Success", "DeliveryToCloudWatchLogs.Success: lots of events that were delivered; frazil_delivery_attempts_total has all tries.") \
    X(JQ, "firehose_jq_processing_duration", SUMMARY, "milliseconds", "delivery", "JQProcessing.Duration", "JQProcessing.Duration: time that the expressions of the delivery (WHERE and SELECT) took, by batch of records: _sum and _count.")

typedef enum {
#define X(id, name, kind, unit, labels, origin, help) FZ_M_##id,
    FZ_METRICS(X)
#undef X
    FZ_M_COUNT
} fz_metric;
typedef enum { FZ_METRIC_COUNTER, FZ_METRIC_GAUGE, FZ_METRIC_SUMMARY } fz_metric_kind;
typedef struct fz_metric_info { const char *name; fz_metric_kind kind; const char *unit, *labels, *origin, *help; } fz_metric_info;

/* Of metrics without labels. */
void fz_metric_add(fz_metric m, uint64_t n);
void fz_metric_set(fz_metric m, uint64_t v);
uint64_t fz_metric_get(fz_metric m);
const fz_metric_info *fz_metric_describe(fz_metric m);
#endif
