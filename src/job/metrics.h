/* Metrics of a running job: see metrics.c. */
#ifndef JOB_METRICS_H
#define JOB_METRICS_H
#include "base/base.h"

struct job;
typedef struct job_metrics job_metrics;
/* "DeliveryToIceberg.Success" -> "firehose_delivery_to_iceberg_success". */
void job_metric_name(const char *firehose, char *out, size_t cap);
/* One series. key: the source or delivery, NULL: of the process; label: value of the other label, or NULL. A summary's value is in nanoseconds; samples are its count, and of what can fail the tries. */
typedef struct job_metric_point { fz_metric metric; const char *key, *label; uint64_t value, samples; } job_metric_point;
typedef void (*job_metric_fn)(void *cx, const job_metric_point *p);
/* Calls fn for each series, in a fixed order; one thread at a time, any, between job_open and job_close. */
void job_metrics_each(const struct job *j, job_metric_fn fn, void *cx);
/* The same for what goes to CloudWatch: Firehose's metrics by delivery. */
void job_metrics_firehose(const struct job *j, job_metric_fn fn, void *cx);
/* Appends the whole text; as job_metrics_each. */
void job_metrics_make(const struct job *j, fz_buf *out);
/* Listens where the settings say; *out NULL: nowhere. USER "listen.open", "listen.in-use" and others of net/server.h. */
fz_status job_metrics_open(const struct job *j, job_metrics **out, fz_error *err) FZ_MUST_USE;
void job_metrics_set(job_metrics *m, const fz_buf *text); /* copied; m NULL: nothing */
void job_metrics_free(job_metrics *m);                    /* NULL is allowed */
#endif
