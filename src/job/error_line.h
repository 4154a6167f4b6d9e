/* A line of an error object of a table: Firehose's fields (attemptsMade, arrivalTimestamp, errorCode, errorMessage, attemptEndingTimestamp, rawData), and what replay needs to run the record
 * again: source, identity, topic, partition, offset, timestamp, time, key, headers. Pure text work. */
#ifndef JOB_ERROR_LINE_H
#define JOB_ERROR_LINE_H
#include "base/base.h"

typedef struct job_error_line {
    uint32_t attempts;
    int64_t ended_ms;                /* of the last attempt */
    const char *code, *message;
    const char *expression;          /* or NULL */
    const char *table;               /* target; NULL: the record was given up before any */
    const char *source;              /* the SQL table that it was read from */
    const char *identity, *topic;    /* of the split, as positions have them */
    int32_t partition;
    uint32_t rows;                   /* that the record gives in the table; 0: not known */
    const fz_record *record;
} job_error_line;
void job_error_line_put(fz_buf *b, const job_error_line *l); /* with its LF */

typedef struct job_error_record {
    const char *table;               /* NULL: none */
    const char *source, *identity, *topic;
    int32_t partition;
    uint32_t rows;
    fz_record record;
} job_error_record;
/* One line without its LF; texts and bytes in a. False: it is none, or none of a table's. */
bool job_error_line_take(const char *p, size_t n, fz_arena *a, job_error_record *out);

/* Hash over all lines so far; begins with 0. */
uint64_t job_lines_hash(uint64_t so_far, const void *line, size_t n);
#endif
