/* Stores: where objects live: local files, S3, and memory (for tests).
 *
 * Invariants
 *  1. A location is a URI or an absolute path: "file:///a/b", "file:/a/b", "/a/b", "mem://x/y", "s3://bucket/a/b" (s3a, s3n and s3p mean the same). It is
 *     kept as given in all that is written into tables; only this room maps it to a path or key, byte for byte, never folding "//" or "..". A key of S3 is
 *     its location without scheme, bucket and one slash; "%", "+" and ".." in it are characters like any other.
 *  2. An object is visible only when it is whole and durable. Local writes go to a hidden temporary name beside the target,
 *     fsync, rename (or link for if-absent), fsync of the directory; what is large goes past the page cache where the file system lets it. On S3 an object appears whole, with its PUT or the end of its multipart upload.
 *  3. No call leaves a temporary behind on failure when it can help it; left-overs of a killed process begin with ".frazil-".
 *     On S3 that can be parts of an upload: a bucket that frazil writes to should have a lifecycle rule AbortIncompleteMultipartUpload (a few days).
 *  4. Nothing here deletes unless told to. Buckets of S3 Tables know no deletes: there fio_delete is FZ_OK and leaves the object to S3 Tables' own removal.
 *  5. FZ_OK of a call that writes means durable: the bytes, the name, and the names of all directories above it.
 * Errors: RETRY for I/O that may pass (EIO, ENOSPC, EROFS, EMFILE, EDQUOT, time-outs), FATAL for what will not; CONFLICT
 *         ("file.exists") for put-if-absent on an existing object; USER "file.not-found" for what is not there, "file.permission",
 *         "file.name-too-long", "file.scheme" (a location of a store that this build does not have); of S3: USER "file.no-bucket", "file.bucket", "file.access-point",
 *         "file.kms", "file.unsupported", "file.request", "file.no-conditional-writes", RETRY "aws.unavailable", "aws.throttled", and those of aws.h.
 * Tests: the fault points file.write, file.direct (a file system that refuses O_DIRECT) and file.fsync, and FRAZIL_STORE_SEED=SEED[:PERMILLE], which lets that share of all writes,
 *         fsyncs and renames of the local store fail with EIO or ENOSPC, and of all requests to S3 before they are sent (the n-th call of a process always in
 *         the same way).
 * Threads: any; a fio_writer and a fio_batch belong to one thread at a time.
 */
#ifndef FIO_FILEIO_H
#define FIO_FILEIO_H
#include "aws/aws.h"
#include "base/base.h"

/* What stores need to know: options by Iceberg's names (s3.*, client.*) and whose credentials count. Everywhere below, io may be NULL: then only local files and
 * memory can be reached. Reference counted; what was opened with it (writers, batches) holds no reference and must end before it. Threads: any. */
typedef struct fio fio;
/* Options are copied; those that are not of a store are left to their owners. Nothing is connected yet. USER "option.invalid". */
fz_status fio_new(const fz_pair *o, size_t n, fio **out, fz_error *err) FZ_MUST_USE;
fio *fio_ref(fio *io);   /* NULL gives NULL */
void fio_unref(fio *io); /* NULL is allowed */
const fz_option *fio_options(void); /* s3.*, ends with a NULL name */
/* The session of this handle (region, credentials, endpoints), made at the first call. Borrowed. */
fz_status fio_aws(fio *io, aws_session **out, fz_error *err) FZ_MUST_USE;
/* Credentials that a catalog vends, in place of the options' and the session's. Takes a reference. Before first use of S3 through io. */
void fio_set_provider(fio *io, aws_provider *p);

/* Whole small objects. */
fz_status fio_read(fio *io, const char *location, size_t max, fz_buf *out, fz_error *err) FZ_MUST_USE;
/* Exactly n bytes; "file.short" (FATAL) when the object ends before. */
fz_status fio_read_range(fio *io, const char *location, uint64_t from, size_t n, void *out, fz_error *err) FZ_MUST_USE;
fz_status fio_size(fio *io, const char *location, uint64_t *size, fz_error *err) FZ_MUST_USE;
fz_status fio_exists(fio *io, const char *location, bool *out, fz_error *err) FZ_MUST_USE;
/* Replaces. A large object goes past the page cache only from memory that begins on a page (fz_aligned). */
fz_status fio_put(fio *io, const char *location, const void *p, size_t n, fz_error *err) FZ_MUST_USE;
/* CONFLICT if there. UNKNOWN ("file.unknown"): whether it was created (S3), or whether it would survive a crash (local files), could not be learned. */
fz_status fio_put_if_absent(fio *io, const char *location, const void *p, size_t n, fz_error *err) FZ_MUST_USE;
fz_status fio_delete(fio *io, const char *location, fz_error *err) FZ_MUST_USE;                                 /* not there: FZ_OK */
/* All are tried, in batches where the store has them; not there: FZ_OK. err is that of the first that failed, with the count of the others in its detail. */
fz_status fio_delete_many(fio *io, const char *const *locations, size_t n, fz_error *err) FZ_MUST_USE;
/* Calls fn for each object under the prefix (a directory), recursively, in no order; fn returns false to stop. Temporaries are
 * not listed, nor are empty objects of S3 whose key ends with a slash. A prefix that is not there: FZ_OK and no call. */
typedef bool (*fio_list_fn)(void *cx, const char *location, uint64_t size, int64_t mtime_ms);
fz_status fio_list(fio *io, const char *prefix, fio_list_fn fn, void *cx, fz_error *err) FZ_MUST_USE;
/* Names of the direct children that are directories (namespaces and tables of a filesystem catalog). */
typedef bool (*fio_child_fn)(void *cx, const char *name);
fz_status fio_list_dirs(fio *io, const char *prefix, fio_child_fn fn, void *cx, fz_error *err) FZ_MUST_USE;
fz_status fio_delete_tree(fio *io, const char *location, fz_error *err) FZ_MUST_USE; /* DROP of a namespace directory that is empty of tables */

/* Directories as things of their own (namespaces of a filesystem catalog); local files only, USER "file.scheme" elsewhere. */
fz_status fio_dir_make(const char *location, fz_error *err) FZ_MUST_USE;      /* and those above it; durable; there already: FZ_OK */
fz_status fio_dir_exists(const char *location, bool *out, fz_error *err) FZ_MUST_USE;
fz_status fio_dir_remove(const char *location, fz_error *err) FZ_MUST_USE;    /* USER "file.not-empty" */

/* Unfinished multipart uploads of S3 under a location's key (a prefix) that began before a time: aborted; *n: how many. Elsewhere FZ_OK and 0. */
fz_status fio_abort_uploads(fio *io, const char *location, int64_t begun_before_ms, size_t *n, fz_error *err) FZ_MUST_USE;
/* May an object be written here? Begins an upload in parts and gives it up: nothing is left, also where nothing can be deleted (S3 Tables). S3 only, USER "file.scheme" elsewhere. */
fz_status fio_try_upload(fio *io, const char *location, fz_error *err) FZ_MUST_USE;

/* Streaming writes of one object; all but a few hold no file descriptor between calls (30,000 may be open at once). At most 256 KiB are in memory: what is more goes to
 * a temporary beside the target, for S3 to a staging file (s3.staging-dir), from which full parts are uploaded while the object still grows. */
typedef struct fio_writer fio_writer;
fz_status fio_writer_open(fio *io, const char *location, fio_writer **out, fz_error *err) FZ_MUST_USE;
/* Takes all of p or, on failure, nothing of it: the same call may be made again. */
fz_status fio_writer_append(fio_writer *w, const void *p, size_t n, fz_error *err) FZ_MUST_USE;
/* Makes the object durable and visible. Frees w whatever happens (the temporary is removed on failure). */
fz_status fio_writer_finish(fio_writer *w, uint64_t *size, fz_error *err) FZ_MUST_USE;
void fio_writer_abort(fio_writer *w); /* NULL is allowed */
size_t fio_writer_memory(const fio_writer *w); /* bytes held, for a budget */
fz_status fio_writer_flush(fio_writer *w, fz_error *err) FZ_MUST_USE; /* gives them to the temporary file */

/* Many objects made durable together (the files of a checkpoint): far cheaper than one by one, since a file system that
 * journals commits once for all, and S3 is asked for many at a time. FZ_OK of fio_batch_sync means that everything is durable; before it no file is visible,
 * while objects of S3 appear one by one as a pool of threads uploads them. fio_writer_finish_in waits when too much is under way, and fails once an
 * object of the batch has failed. On failure of fio_batch_sync no object of the batch is left (when that can be helped), and the batch is empty again. */
typedef struct fio_batch fio_batch;
fio_batch *fio_batch_new(void);
void fio_batch_free(fio_batch *b); /* drops what was not synced; NULL is allowed */
/* As fio_writer_finish, but visible and durable only with fio_batch_sync. Frees w whatever happens. */
fz_status fio_writer_finish_in(fio_writer *w, fio_batch *b, uint64_t *size, fz_error *err) FZ_MUST_USE;
fz_status fio_batch_sync(fio_batch *b, fz_error *err) FZ_MUST_USE;

/* Joins a location and a relative name with exactly one slash. */
char *fio_join(fz_arena *a, const char *location, const char *name);
/* The longest name that one component of a location may have, in bytes (255 for local files; 200 on S3, so that a few together stay
 * below the 1024 bytes of a key); 0: no such limit. */
size_t fio_name_max(const char *location);
/* The local path of a file location (points into it); NULL for other schemes. */
const char *fio_local_path(const char *location);
/* Advisory lock on a local file (created if missing), waiting up to timeout_ms; RETRY when it is held longer. */
typedef struct fio_lock fio_lock;
fz_status fio_lock_take(const char *path, int64_t timeout_ms, fio_lock **out, fz_error *err) FZ_MUST_USE;
void fio_lock_release(fio_lock *l);
#endif
