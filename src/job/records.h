/* Checkpoint records in execution.checkpointing.dir, for people and for tools that look there: see records.c. */
#ifndef JOB_RECORDS_H
#define JOB_RECORDS_H
#include "conf/conf.h"
#include "fileio/fileio.h"

/* The store that the settings (s3.endpoint, s3.access-key, s3.region ... as Flink's S3 plug-ins have them) describe: for directories named in settings.
 * Catalogs have stores of their own, by their own options. The caller unrefs it. */
fz_status job_settings_store(const conf *c, fio **out, fz_error *err) FZ_MUST_USE;

typedef struct job_records job_records;
struct job;
/* *out is NULL when the settings name no directory. Tries to write there: USER and RETRY errors as of fileio. c must outlive it. */
fz_status job_records_open(const conf *c, const char *run_id, job_records **out, fz_error *err) FZ_MUST_USE;
/* r may be NULL in all of these. Failures are counted and logged, not returned. */
void job_records_completed(job_records *r, const struct job *j);
/* stopped: by request; complete: the last checkpoint has been committed whole. */
void job_records_end(job_records *r, const struct job *j, bool stopped, bool complete);
void job_records_free(job_records *r);
#endif
