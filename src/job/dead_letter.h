/* Dead letters: rows that can never fit, one JSON line each, durable before the commit that passes them. At least once: a line carries its origin.
 * In a local directory they are appended to files; elsewhere (S3, an error location) each checkpoint that has some puts an object.
 * Threads: any (a lock inside); dead_letter_sync by the control thread while no worker adds. */
#ifndef JOB_DEAD_LETTER_H
#define JOB_DEAD_LETTER_H
#include "delivery/delivery.h"

typedef struct dead_letters dead_letters;
typedef struct dead_letter {
    const char *sink;          /* target table, or NULL when the record was given up before any sink */
    const char *source;        /* the SQL table it was read from */
    const char *topic;         /* or the file's path */
    const char *identity;      /* of the source, as in positions; may be NULL */
    int32_t partition;
    const char *code, *message, *expression;
    const fz_record *record;
} dead_letter;
/* Makes the directory when the first line comes, not before. pipeline: in file names. dir: a local directory, or a location in io (which must outlive it). */
dead_letters *dead_letters_new(const char *dir, const char *pipeline, fio *io);
/* In the error location of a table: objects of the error type "iceberg-rejected", lines as error_line.h has them. place and io must outlive it. */
dead_letters *dead_letters_new_at(const dlv_errors *place, fio *io);
/* Buffers the line; a full buffer is written out. RETRY: the disk does not take it (nothing is lost, the line stays buffered). */
fz_status dead_letters_add(dead_letters *d, const dead_letter *l, fz_error *err) FZ_MUST_USE;
/* Everything added so far is on disk when this returns FZ_OK. */
fz_status dead_letters_sync(dead_letters *d, fz_error *err) FZ_MUST_USE;
const char *dead_letters_dir(const dead_letters *d);
void dead_letters_free(dead_letters *d);
#endif
