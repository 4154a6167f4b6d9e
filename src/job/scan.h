/* A connector table being read: source + decoders + metadata columns. Used by the job's workers and by the shell's SELECT.
 *
 * Invariants
 *  1. Columns come in the order of the plan's SCAN schema (physical, then metadata); unwanted ones are NULL.
 *  2. Every record of a chunk is a row, an unparseable or a reject.
 * Threads: open, close and everything on the source itself: one control thread; a job_scan_reader belongs to one worker.
 */
#ifndef JOB_SCAN_H
#define JOB_SCAN_H
#include "decode/decode.h"
#include "source/source.h"
#include "sql/sql.h"

typedef struct job_scan job_scan;
typedef struct job_scan_reader job_scan_reader;

/* Splits the table's options into those of the connector and those of the formats (format, key.format, value.format, key.fields, ...), checks them all, and opens
 * the source. scan: a SQL_P_SCAN over a connector table; it must outlive the job_scan. cx: need_key and need_headers are filled in here. */
fz_status job_scan_open(const sql_plan *scan, const src_context *cx, job_scan **out, fz_error *err) FZ_MUST_USE;
/* The same over a source that is given, and becomes the scan's whatever comes. */
fz_status job_scan_open_over(const sql_plan *scan, const src_context *cx, src_source *source, job_scan **out, fz_error *err) FZ_MUST_USE;
/* Checks the options as job_scan_open does, without opening anything (EXPLAIN, CREATE TABLE). */
fz_status job_scan_check(const sql_table *table, fz_error *err) FZ_MUST_USE;
void job_scan_close(job_scan *s);
src_source *job_scan_source(job_scan *s);
const sql_plan *job_scan_plan(const job_scan *s);

fz_status job_scan_reader_new(job_scan *s, job_scan_reader **out, fz_error *err) FZ_MUST_USE;
void job_scan_reader_free(job_scan_reader *r);
typedef struct job_rows {
    uint32_t n_rows;
    col_vec **cols;          /* by the SCAN's schema */
    uint32_t *row_rec;       /* row -> record of the chunk */
    uint32_t n_unparseable, n_rejected;
} job_rows;
/* Decodes a chunk; memory in a. Unparseable records are counted in the metrics and sampled in the log here. */
fz_status job_scan_decode(job_scan_reader *r, const fz_chunk *c, fz_arena *a, job_rows *out, fz_rejects *rejects, fz_error *err) FZ_MUST_USE;
#endif
