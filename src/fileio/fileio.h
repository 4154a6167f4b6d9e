/* Stores: where objects live. Local files now; memory and the seeded faulty store for tests; S3 later behind the same calls.
 *
 * Invariants
 *  1. A location is a URI or an absolute path: "file:///a/b", "file:/a/b", "/a/b", "mem://x/y". It is kept as given in all that
 *     is written into tables; only this room maps it to a path, byte for byte, never folding "//" or "..".
 *  2. An object is visible only when it is whole and durable: local writes go to a hidden temporary name beside the target,
 *     fsync, rename (or link for if-absent), fsync of the directory.
 *  3. No call leaves a temporary behind on failure when it can help it; left-overs of a killed process begin with ".frazil-".
 *  4. Nothing here deletes unless told to, one object a call.
 * Errors: RETRY for I/O that may pass (EIO, ENOSPC, EROFS, EMFILE, time-outs), FATAL for what will not; CONFLICT for
 *         put-if-absent on an existing object; code "file.not-found" (class USER) for what is not there.
 * Threads: any; a fio_writer belongs to one thread.
 */
#ifndef FIO_FILEIO_H
#define FIO_FILEIO_H
#include "base/base.h"

/* Whole small objects. */
fz_status fio_read(const char *location, size_t max, fz_buf *out, fz_error *err) FZ_MUST_USE;
fz_status fio_read_range(const char *location, uint64_t from, size_t n, void *out, fz_error *err) FZ_MUST_USE;
fz_status fio_size(const char *location, uint64_t *size, fz_error *err) FZ_MUST_USE;
fz_status fio_exists(const char *location, bool *out, fz_error *err) FZ_MUST_USE;
fz_status fio_put(const char *location, const void *p, size_t n, fz_error *err) FZ_MUST_USE;           /* replaces */
fz_status fio_put_if_absent(const char *location, const void *p, size_t n, fz_error *err) FZ_MUST_USE; /* CONFLICT if there */
fz_status fio_delete(const char *location, fz_error *err) FZ_MUST_USE;                                 /* not there: FZ_OK */
/* Calls fn for each object under the prefix, recursively; fn returns false to stop. */
typedef bool (*fio_list_fn)(void *cx, const char *location, uint64_t size, int64_t mtime_ms);
fz_status fio_list(const char *prefix, fio_list_fn fn, void *cx, fz_error *err) FZ_MUST_USE;
/* Names of the direct children that are directories (namespaces and tables of a filesystem catalog). */
typedef bool (*fio_child_fn)(void *cx, const char *name);
fz_status fio_list_dirs(const char *prefix, fio_child_fn fn, void *cx, fz_error *err) FZ_MUST_USE;
fz_status fio_delete_tree(const char *location, fz_error *err) FZ_MUST_USE; /* DROP of a namespace directory that is empty of tables */

/* Streaming writes of one object; holds no file descriptor between calls (30,000 may be open at once). */
typedef struct fio_writer fio_writer;
fz_status fio_writer_open(const char *location, fio_writer **out, fz_error *err) FZ_MUST_USE;
fz_status fio_writer_append(fio_writer *w, const void *p, size_t n, fz_error *err) FZ_MUST_USE;
/* Makes the object durable and visible. Frees w whatever happens (the temporary is removed on failure). */
fz_status fio_writer_finish(fio_writer *w, uint64_t *size, fz_error *err) FZ_MUST_USE;
void fio_writer_abort(fio_writer *w); /* NULL is allowed */

/* Joins a location and a relative name with exactly one slash. */
char *fio_join(fz_arena *a, const char *location, const char *name);
/* The local path of a file location; NULL for other schemes. */
const char *fio_local_path(const char *location);
/* Advisory lock on a local file (created if missing), waiting up to timeout_ms; RETRY when it is held longer. */
typedef struct fio_lock fio_lock;
fz_status fio_lock_take(const char *path, int64_t timeout_ms, fio_lock **out, fz_error *err) FZ_MUST_USE;
void fio_lock_release(fio_lock *l);
#endif
