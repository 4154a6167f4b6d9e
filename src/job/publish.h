/* Firehose's metrics to CloudWatch: see publish.c. */
#ifndef JOB_PUBLISH_H
#define JOB_PUBLISH_H
#include "conf/conf.h"

struct job;
typedef struct job_publisher job_publisher;
/* *out NULL: the settings do not ask for it. USER, or what AWS's credentials and region say. */
fz_status job_publisher_open(const conf *c, job_publisher **out, fz_error *err) FZ_MUST_USE;
void job_publisher_take(job_publisher *p, const struct job *j); /* the present values; one thread at a time, as job_metrics_each; p NULL: nothing */
void job_publisher_close(job_publisher *p);                     /* sends the last period; NULL is allowed */
#endif
