/* Reading error objects back. Threads: any. */
#ifndef JOB_ERROR_OBJECT_H
#define JOB_ERROR_OBJECT_H
#include "fileio/fileio.h"
#include "job/error_line.h"
#include "job/positions.h"

/* Calls fn for each record; r and what it points to live in a, which is not reset here. DATA "replay.damaged": a line is none; the hash or the number of records is another than expected. */
typedef fz_status (*job_error_fn)(void *cx, const job_error_record *r, fz_error *err);
typedef struct job_error_read { fio *io; const char *object; uint64_t records, hash; bool check; fz_arena *arena; } job_error_read;
fz_status job_error_object_each(const job_error_read *o, job_error_fn fn, void *cx, fz_error *err) FZ_MUST_USE;
/* Records and rows of [from, to) of one split. */
fz_status job_error_object_count(fio *io, const char *object, const job_split_key *key, int64_t from, int64_t to, uint64_t *records, uint64_t *rows, fz_error *err) FZ_MUST_USE;
#endif
