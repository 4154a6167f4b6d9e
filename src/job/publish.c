/* Publishing Firehose's metrics to CloudWatch, when the settings ask for it: one PutMetricData an interval, from a thread of its own. See job_int.h.
 *
 * Invariants
 *  1. Every metric is sent in every period, zeros too: a missing point is a fault of the way, never of the value. Counters go as what was added in the period.
 *  2. Names and units are Firehose's, the dimension is DeliveryStreamName with the name of the delivery.
 *  3. A period that cannot be sent is added to the next one; nothing waits for CloudWatch.
 * Source: CloudWatch API, PutMetricData (2010-08-01): at most 1,000 metrics a request; namespaces that begin with "AWS/" are AWS's own.
 */
#include "job/publish.h"
#include "job/job_int.h"
#include <inttypes.h>

typedef struct point { job_metric_point now; char *delivery; uint64_t sent, sent_samples; /* what was told of value and samples */ } point;
struct job_publisher {
    pthread_t thread;
    pthread_mutex_t lock;      /* points, quit */
    pthread_cond_t wake;
    bool started, quit;
    point *v;
    uint32_t n, cap, at;
    int64_t interval_ms;
    char *namespace_, *endpoint;
    aws_session *aws;
};
enum { POINTS_A_REQUEST = 150 };

static void take_point(void *cx, const job_metric_point *now) {
    job_publisher *p = cx;
    if (p->at == p->n) {
        FZ_GROW(p->v, p->n, p->cap);
        p->v[p->n++] = (point){.delivery = fz_strdup(now->key)};
    }
    p->v[p->at++].now = *now;
}

void job_publisher_take(job_publisher *p, const job *j) {
    if (!p) return;
    pthread_mutex_lock(&p->lock);
    p->at = 0;
    job_metrics_firehose(j, take_point, p);
    pthread_mutex_unlock(&p->lock);
}

static void put_pair(fz_buf *b, const char *key, uint32_t i, const char *sub, const char *value) {
    fz_buf_printf(b, "&%s.%" PRIu32 ".%s=", key, i, sub);
    net_encode(b, value, strlen(value), false);
}

static const char *unit_of(const fz_metric_info *m) {
    return strcmp(m->unit, "bytes") == 0 ? "Bytes" : strcmp(m->unit, "seconds") == 0 ? "Seconds" : strcmp(m->unit, "milliseconds") == 0 ? "Milliseconds" : "Count";
}

static void put_number(fz_buf *b, uint32_t i, const char *what, double v) {
    char text[40];
    snprintf(text, sizeof text, "%.15g", v);
    put_pair(b, "MetricData.member", i, what, text);
}

/* Gauges as they are; counters as what was added in the period; what succeeds or fails with the number of tries, so that its average is the rate of success; of a summary the mean. */
static void put_value(fz_buf *b, uint32_t i, const fz_metric_info *m, const point *p) {
    uint64_t added = p->now.value - p->sent, samples = p->now.samples - p->sent_samples;
    if (m->kind == FZ_METRIC_GAUGE) put_number(b, i, "Value", (double)p->now.value);
    else if (m->kind == FZ_METRIC_SUMMARY) put_number(b, i, "Value", samples ? (double)added / 1e6 / (double)samples : 0);
    else if (!samples) put_number(b, i, "Value", (double)added);
    else { /* each try is a sample of 1 or 0; one that began in an earlier period may end in this one */
        put_number(b, i, "StatisticValues.SampleCount", (double)(samples > added ? samples : added));
        put_number(b, i, "StatisticValues.Sum", (double)added);
        put_number(b, i, "StatisticValues.Minimum", samples > added ? 0 : 1);
        put_number(b, i, "StatisticValues.Maximum", added ? 1 : 0);
    }
}

static void request(const job_publisher *p, const point *v, uint32_t n, fz_buf *b) {
    fz_buf_puts(b, "Action=PutMetricData&Version=2010-08-01&Namespace=");
    net_encode(b, p->namespace_, strlen(p->namespace_), false);
    for (uint32_t i = 0; i < n; i++) {
        const fz_metric_info *m = fz_metric_describe(v[i].now.metric);
        put_pair(b, "MetricData.member", i + 1, "MetricName", m->origin);
        put_value(b, i + 1, m, &v[i]);
        put_pair(b, "MetricData.member", i + 1, "Unit", unit_of(m));
        put_pair(b, "MetricData.member", i + 1, "Dimensions.member.1.Name", "DeliveryStreamName");
        put_pair(b, "MetricData.member", i + 1, "Dimensions.member.1.Value", v[i].delivery);
    }
}

/* A copy is sent, so that nobody waits; what was sent is noted afterwards. */
static void publish(job_publisher *p) {
    fz_arena *a = fz_arena_new();
    pthread_mutex_lock(&p->lock);
    uint32_t n = p->at;
    point *v = FZ_ANEWN(a, point, n + 1);
    if (n) memcpy(v, p->v, n * sizeof *v);
    pthread_mutex_unlock(&p->lock);
    for (uint32_t from = 0; from < n; from += POINTS_A_REQUEST) {
        uint32_t k = n - from < POINTS_A_REQUEST ? n - from : POINTS_A_REQUEST;
        fz_buf b = {0};
        fz_error err;
        const char *xml;
        request(p, v + from, k, &b);
        if (aws_query_call(p->aws, "monitoring", p->endpoint, fz_buf_cstr(&b), a, &xml, NULL, &err) != FZ_OK) {
            fz_metric_add(FZ_M_PUBLISH_FAILED, 1);
            fz_log_error(FZ_LOG_WARN, "metrics.cloudwatch", &err);
        } else {
            pthread_mutex_lock(&p->lock);
            for (uint32_t i = 0; i < k; i++) {
                p->v[from + i].sent = v[from + i].now.value;
                p->v[from + i].sent_samples = v[from + i].now.samples;
            }
            pthread_mutex_unlock(&p->lock);
        }
        fz_buf_free(&b);
    }
    fz_arena_free(a);
}

static void *publisher_main(void *arg) {
    job_publisher *p = arg;
    for (bool quit = false; !quit;) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += p->interval_ms / 1000;
        until.tv_nsec += p->interval_ms % 1000 * 1000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000;
        }
        pthread_mutex_lock(&p->lock);
        while (!p->quit && pthread_cond_timedwait(&p->wake, &p->lock, &until) == 0) {}
        quit = p->quit;
        pthread_mutex_unlock(&p->lock);
        publish(p); /* at the end too: the last counts are not lost */
    }
    return NULL;
}

fz_status job_publisher_open(const conf *c, job_publisher **out, fz_error *err) {
    *out = NULL;
    if (!conf_get_bool(c, "metrics.cloudwatch.enabled")) return FZ_OK;
    const char *ns = conf_get(c, "metrics.cloudwatch.namespace");
    if (fz_starts(ns, "AWS/")) {
        fz_fail(err, FZ_USER, "metrics.cloudwatch", "metrics.cloudwatch.namespace: CloudWatch takes no metrics of others into '%s'", ns);
        return fz_hint(err, "namespaces that begin with AWS/ are AWS's own; 'Firehose' keeps the names and dimensions");
    }
    job_publisher *p = FZ_NEW(job_publisher);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    p->namespace_ = fz_strdup(ns);
    p->interval_ms = conf_get_i64(c, "metrics.cloudwatch.interval");
    if (p->interval_ms < 1000) p->interval_ms = 1000;
    fz_arena *a = fz_arena_new();
    const char *url = NULL, *region;
    fz_status rc = aws_session_new(NULL, 0, &p->aws, err);
    if (rc == FZ_OK) rc = aws_session_region(p->aws, &region, NULL, err);
    if (rc == FZ_OK) rc = aws_endpoint(p->aws, "monitoring", conf_get(c, "metrics.cloudwatch.endpoint"), a, &url, NULL, err);
    if (rc == FZ_OK) p->endpoint = fz_strdup(url);
    if (rc == FZ_OK && pthread_create(&p->thread, NULL, publisher_main, p) != 0) rc = fz_fail(err, FZ_FATAL, "job.thread", "cannot start the thread of metrics.cloudwatch");
    p->started = rc == FZ_OK;
    fz_arena_free(a);
    if (rc == FZ_OK) return *out = p, FZ_OK;
    (void)!fz_context(err, "metrics.cloudwatch");
    job_publisher_close(p);
    return rc;
}

void job_publisher_close(job_publisher *p) {
    if (!p) return;
    if (p->started) {
        pthread_mutex_lock(&p->lock);
        p->quit = true;
        pthread_cond_signal(&p->wake);
        pthread_mutex_unlock(&p->lock);
        pthread_join(p->thread, NULL);
    }
    for (uint32_t i = 0; i < p->n; i++) fz_free(p->v[i].delivery);
    fz_free(p->v);
    fz_free(p->namespace_);
    fz_free(p->endpoint);
    aws_session_unref(p->aws);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->wake);
    fz_free(p);
}
