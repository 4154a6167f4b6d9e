/* The Iceberg sink: batches -> partition fan-out -> Parquet files -> data files ready for a manifest. Commits are the job's.
 *
 * What it does: routes rows to partition tuples (sink_route, on the worker), keeps one open Parquet writer a partition (sink_shard, on a writer thread),
 *   holds the shard's memory under a budget, closes files and describes them.
 * What it does not do: no catalogs, no positions, no threads of its own.
 *
 * Invariants
 *  1. A partition belongs to one shard (by hash of its tuple), so a checkpoint gives one file a partition, unless the budget or the target size
 *     closes one early.
 *  2. After any failure of sink_shard_write or sink_shard_close the table's open files in that shard are only good for sink_shard_abort.
 *  3. A file is described (sink_files) only after the store made it durable. sink_shard_abort removes what is not yet described; what is described
 *     belongs to the caller, who alone knows whether a commit may have taken it.
 * Threads: sink_table is read-only and shared; a sink_shard belongs to one thread.
 */
#ifndef SINK_SINK_H
#define SINK_SINK_H
#include "col/col.h"
#include "fileio/fileio.h"
#include "iceberg/iceberg.h"

typedef struct sink_table sink_table;
/* What is needed to write files of the table: its current schema, default spec and properties. m must outlive it. io: the store of its files; it must outlive the sink. run_id: UUID in file names, new for each
 * run. USER for tables that cannot be written (format, unknown transform, refused properties). index: a small number, unique in the job, used by shards. */
fz_status sink_table_new(fio *io, const ice_metadata *m, const char *run_id, uint32_t index, sink_table **out, fz_error *err) FZ_MUST_USE;
void sink_table_free(sink_table *t); /* NULL is allowed */
const col_schema *sink_table_schema(const sink_table *t);

/* Rows whose value is NULL where the table requires one. Appends to rejects (code "not-null", rec = row) and gives the others in *keep (NULL: all) / *n_keep. */
void sink_check_required(const sink_table *t, col_vec *const *cols, uint32_t n_rows, fz_arena *a, const uint32_t **keep, uint32_t *n_keep, fz_rejects *rejects);

typedef struct sink_part {
    ice_tuple tuple;       /* in the arena that sink_route was given */
    uint64_t hash;         /* of the tuple: shard = hash % shards */
    const uint32_t *sel;   /* rows of the batch, ascending */
    uint32_t n_sel;
} sink_part;
typedef struct sink_route_result { uint32_t n; sink_part *parts; } sink_route_result;
fz_status sink_route(const sink_table *t, col_vec *const *cols, uint32_t n_rows, fz_arena *a, sink_route_result *out, fz_error *err) FZ_MUST_USE;

typedef struct sink_files { uint32_t n; ice_data_file *v; uint64_t rows, bytes; fz_arena *arena; /* of what v points to */ } sink_files;
void sink_files_free(sink_files *f);
/* Deletes an object that no snapshot names, nor may come to name; what cannot be deleted is logged as an orphan. */
void sink_discard(fio *io, const char *location);
void sink_discard_files(fio *io, const ice_data_file *v, uint32_t n); /* the same for many */

typedef struct sink_shard sink_shard;
/* number: in file names. budget: bytes that the shard's open writers may hold. */
sink_shard *sink_shard_new(uint32_t number, size_t budget);
void sink_shard_free(sink_shard *s);
void sink_shard_set_budget(sink_shard *s, size_t budget);
size_t sink_shard_bytes(const sink_shard *s);
/* cols: of one batch; parts: those of sink_route that belong to this shard. */
fz_status sink_shard_write(sink_shard *s, const sink_table *t, col_vec *const *cols, const sink_part *const *parts, uint32_t n, fz_error *err) FZ_MUST_USE;
/* Closes all files of t and describes them and those closed early since the last call. The caller frees out. */
fz_status sink_shard_close(sink_shard *s, const sink_table *t, sink_files *out, fz_error *err) FZ_MUST_USE;
/* Drops all open files of t, and deletes those that were closed early since the last sink_shard_close. */
void sink_shard_abort(sink_shard *s, const sink_table *t);
/* Gives memory back: ends row groups or files, largest first, until the shard holds at most `target` bytes. */
fz_status sink_shard_shrink(sink_shard *s, size_t target, fz_error *err) FZ_MUST_USE;
#endif
