/* Table properties: one table of those that are honoured, have no meaning here, or are refused. Others are kept as they are. See iceberg.h;
 * source: TableProperties of the Java implementation. */
#include "iceberg/iceberg_int.h"

#define USED(name, type, dflt, allowed, doc) {name, type, FZ_OPT_USED, dflt, allowed, doc, NULL}
#define IDLE(name, type, dflt, doc, why) {name, type, FZ_OPT_NO_MEANING, dflt, NULL, doc, why}
#define REFUSED(name, type, doc, why) {name, type, FZ_OPT_REFUSED, NULL, NULL, doc, why}

static const char reads[] = "It concerns reading by other engines.";
static const char rewrites[] = "It concerns deletes, updates and merges, which this program does not make.";
static const char parquet_only[] = "Data files are Parquet files.";

const fz_option ice_table_properties[] = {
    /* format */
    USED("format-version", FZ_OPT_ENUM, "2", "2", "Format version of a new table; never stored as a property."),
    USED("write.format.default", FZ_OPT_ENUM, "parquet", "parquet", "File format of data files."),
    /* Parquet */
    USED("write.parquet.compression-codec", FZ_OPT_ENUM, "zstd", "zstd|snappy|gzip|lz4|lz4_raw|uncompressed", "Compression of Parquet pages. New tables store zstd."),
    USED("write.parquet.compression-level", FZ_OPT_INT, NULL, NULL, "Compression level; unset: for zstd 3, or for each column a faster way that packs it about as well (found by trial: level 1, small tables of matches, entropy coding alone, hexadecimal identifiers as digits), for gzip 6."),
    USED("write.parquet.row-group-size-bytes", FZ_OPT_INT, "134217728", NULL, "Target size of a row group."),
    USED("write.parquet.page-size-bytes", FZ_OPT_INT, "262144", NULL, "Target size of a data page before compression. Java's default is 1 MiB; the smaller one holds memory down."),
    USED("write.parquet.page-row-limit", FZ_OPT_INT, "20000", NULL, "Most rows of a data page."),
    USED("write.parquet.dict-size-bytes", FZ_OPT_INT, "2097152", NULL, "Most bytes of a dictionary page; beyond it a column falls back to plain pages."),
    IDLE("write.parquet.row-group-check-min-record-count", FZ_OPT_INT, "100", "Records between two checks of the row group's size.", "Sizes are known at each batch."),
    IDLE("write.parquet.row-group-check-max-record-count", FZ_OPT_INT, "10000", "Records between two checks of the row group's size.", "Sizes are known at each batch."),
    IDLE("write.parquet.bloom-filter-max-bytes", FZ_OPT_INT, "1048576", "Most bytes of a bloom filter.", "Bloom filters are not written; files are correct without them."),
    IDLE("write.parquet.bloom-filter-enabled.column.*", FZ_OPT_BOOL, "false", "Bloom filter of a column.", "Bloom filters are not written; files are correct without them."),
    IDLE("write.parquet.bloom-filter-fpp.column.*", FZ_OPT_DOUBLE, "0.01", "False positives of a bloom filter.", "Bloom filters are not written; files are correct without them."),
    IDLE("write.parquet.stats-enabled.column.*", FZ_OPT_BOOL, "true", "Statistics of a column.", "Statistics are always written."),
    IDLE("write.avro.compression-level", FZ_OPT_INT, NULL, "Compression level of Avro files.", "Manifests are compressed at a fixed level."),
    USED("write.avro.compression-codec", FZ_OPT_ENUM, "gzip", "gzip|zstd|snappy|uncompressed", "Compression of manifests and manifest lists."),
    IDLE("write.orc.*", FZ_OPT_STRING, NULL, "Options of ORC files.", parquet_only),
    IDLE("write.delete.*", FZ_OPT_STRING, NULL, "Options of delete files and of DELETE.", rewrites),
    /* files and layout */
    USED("write.target-file-size-bytes", FZ_OPT_INT, "536870912", NULL, "Target size of a data file; a larger one is ended and a new one begun."),
    USED("write.distribution-mode", FZ_OPT_ENUM, "hash", "none|hash|range", "hash: the rows of a partition go to one writer. none and range are taken as hash."),
    USED("write.data.path", FZ_OPT_STRING, NULL, NULL, "Location of data files; unset: <table location>/data."),
    USED("write.folder-storage.path", FZ_OPT_STRING, NULL, NULL, "Older name of write.data.path."),
    USED("write.metadata.path", FZ_OPT_STRING, NULL, NULL, "Location of metadata files; unset: <table location>/metadata."),
    USED("write.object-storage.enabled", FZ_OPT_BOOL, "false", NULL, "Puts hash directories before the partition path of data files, so that an object store spreads the load."),
    USED("write.object-storage.path", FZ_OPT_STRING, NULL, NULL, "Older name of write.data.path with object-storage layout."),
    USED("write.object-storage.partitioned-paths", FZ_OPT_BOOL, "true", NULL, "Keeps partition paths in the object-storage layout."),
    REFUSED("write.location-provider.impl", FZ_OPT_STRING, "A Java class that names data files.", "Remove the property: a Java class cannot be run, and files elsewhere may break what relies on it."),
    IDLE("write.spark.*", FZ_OPT_STRING, NULL, "Options of Spark.", "They are Spark's."),
    IDLE("write.wap.enabled", FZ_OPT_BOOL, "false", "Write-audit-publish.", "Writes go to the branch that the job names."),
    REFUSED("encryption.*", FZ_OPT_STRING, "Table encryption.", "Encrypted tables cannot be written: rows would lie in the store unencrypted."),
    /* metrics */
    USED("write.metadata.metrics.default", FZ_OPT_STRING, "truncate(16)", NULL, "Metrics of columns without a mode of their own: none, counts, truncate(N) or full."),
    USED("write.metadata.metrics.column.*", FZ_OPT_STRING, NULL, NULL, "Metrics of one column, by its full dotted name."),
    USED("write.metadata.metrics.max-inferred-column-defaults", FZ_OPT_INT, "100", NULL, "Columns that get metrics when the table does not say a default."),
    /* metadata and commits */
    USED("write.metadata.compression-codec", FZ_OPT_ENUM, "none", "none|gzip", "Compression of metadata.json."),
    USED("write.metadata.previous-versions-max", FZ_OPT_INT, "100", NULL, "Metadata files kept in the metadata log."),
    USED("write.metadata.delete-after-commit.enabled", FZ_OPT_BOOL, "false", NULL, "Deletes metadata files that leave the metadata log."),
    IDLE("write.summary.partition-limit", FZ_OPT_INT, "0", "Partitions with a summary of their own in a snapshot.", "Snapshots carry totals only."),
    USED("commit.manifest-merge.enabled", FZ_OPT_BOOL, "true", NULL, "Merges small manifests when files are appended."),
    USED("commit.manifest.min-count-to-merge", FZ_OPT_INT, "100", NULL, "Manifests that must have gathered before the newest ones are merged."),
    USED("commit.manifest.target-size-bytes", FZ_OPT_INT, "8388608", NULL, "Target size of a manifest."),
    USED("commit.retry.num-retries", FZ_OPT_INT, "4", NULL, "Attempts after a conflict; an unknown outcome is always looked into."),
    USED("commit.retry.min-wait-ms", FZ_OPT_INT, "100", NULL, "First wait before another attempt."),
    USED("commit.retry.max-wait-ms", FZ_OPT_INT, "60000", NULL, "Longest wait before another attempt."),
    USED("commit.retry.total-timeout-ms", FZ_OPT_INT, "1800000", NULL, "Time after which a commit is given up."),
    USED("commit.status-check.num-retries", FZ_OPT_INT, "3", NULL, "Attempts to find out whether a commit has landed."),
    USED("commit.status-check.min-wait-ms", FZ_OPT_INT, "1000", NULL, "First wait between these attempts."),
    USED("commit.status-check.max-wait-ms", FZ_OPT_INT, "60000", NULL, "Longest wait between these attempts."),
    USED("commit.status-check.total-timeout-ms", FZ_OPT_INT, "1800000", NULL, "Time after which the outcome stays unknown."),
    /* maintenance by others */
    IDLE("history.expire.*", FZ_OPT_STRING, NULL, "Retention of snapshots.", "Snapshots are expired by maintenance, not by appends."),
    IDLE("gc.enabled", FZ_OPT_BOOL, "true", "Whether maintenance may delete files.", "It is looked at by maintenance, not by appends."),
    IDLE("write.update.*", FZ_OPT_STRING, NULL, "Options of UPDATE.", rewrites),
    IDLE("write.merge.*", FZ_OPT_STRING, NULL, "Options of MERGE.", rewrites),
    REFUSED("write.upsert.enabled", FZ_OPT_BOOL, "Rows replace those with the same key.", "Set it to false or remove it: rows are appended, never replaced."),
    IDLE("write.fanout.enabled", FZ_OPT_BOOL, "true", "Open files of many partitions at once.", "It is always so, within the memory limit."),
    IDLE("read.*", FZ_OPT_STRING, NULL, "Options of reading.", reads),
    IDLE("schema.name-mapping.default", FZ_OPT_STRING, NULL, "Field ids of files without them.", reads),
    IDLE("comment", FZ_OPT_STRING, NULL, "Comment of the table.", "It is kept and shown."),
    IDLE("owner", FZ_OPT_STRING, NULL, "Owner of the table.", "It is kept."),
    IDLE("engine.hive.enabled", FZ_OPT_BOOL, "false", "Hive's access.", "It is Hive's."),
    {0}};
