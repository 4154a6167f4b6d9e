/* Metrics of a running job: see metrics.c. */
#ifndef JOB_METRICS_H
#define JOB_METRICS_H
#include "base/base.h"

struct job;
typedef struct job_metrics job_metrics;
/* "DeliveryToIceberg.Success" -> "firehose_delivery_to_iceberg_success". */
void job_metric_name(const char *firehose, char *out, size_t cap);
/* Calls fn for each of Firehose's metrics of each delivery, in a fixed order; control thread. */
typedef void (*job_metric_fn)(void *cx, const char *name, bool counter, const char *delivery, uint64_t value);
void job_metrics_each(const struct job *j, job_metric_fn fn, void *cx);
/* Appends the whole text; control thread. */
void job_metrics_make(const struct job *j, fz_buf *out);
/* Listens where the settings say; *out NULL: nowhere. USER "listen.open", "listen.in-use" and others of net/server.h. */
fz_status job_metrics_open(const struct job *j, job_metrics **out, fz_error *err) FZ_MUST_USE;
void job_metrics_set(job_metrics *m, const fz_buf *text); /* copied; m NULL: nothing */
void job_metrics_free(job_metrics *m);                    /* NULL is allowed */
#endif
