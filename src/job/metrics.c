/* Metrics of a running job as Prometheus text: on http://<metrics.bind-host>:<metrics.port>/metrics and in the file of frazil.metrics.path. See job_int.h.
 *
 * What stands in it: every counter of base/metric.h; for each source what came in; for each delivery (a table too) Firehose's metrics under their own names, and where its records are.
 *
 * Names. Firehose's names have dots and capitals, Prometheus' have not: firehose_ and then each word in lower case, words parted by an underscore, as in
 *     DeliveryToIceberg.SuccessfulRowCount -> firehose_delivery_to_iceberg_successful_row_count
 * The original name begins the HELP text.
 *
 * Invariants
 *  1. The number of series follows from the script alone; none appears or goes with data, errors or hosts, and zeros are written as zeros.
 *  2. Of each delivery: in = delivered + filtered + rejected + unparseable + buffered, in every text. What is counted as delivered has been committed.
 * Threads: the control thread makes the text; the loop's thread hands out the last one.
 */
#include "job/metrics.h"
#include "job/job_int.h"
#include "net/server.h"
#include <ctype.h>
#include <inttypes.h>

struct job_metrics {
    net_loop *loop;
    net_listener *listener;
    pthread_mutex_t lock;
    fz_buf text;           /* the last one; under lock */
};

/* ---- names ---- */

void job_metric_name(const char *firehose, char *out, size_t cap) {
    size_t n = (size_t)snprintf(out, cap, "firehose_");
    for (const char *p = firehose; *p && n + 2 < cap; p++) {
        bool begins = isupper((unsigned char)*p) && p > firehose && p[-1] != '.' && (islower((unsigned char)p[-1]) || isdigit((unsigned char)p[-1]) || islower((unsigned char)p[1]));
        if (begins && out[n - 1] != '_') out[n++] = '_';
        out[n++] = *p == '.' ? '_' : (char)tolower((unsigned char)*p);
    }
    out[n] = 0;
}

static void put_label(fz_buf *b, const char *s) { /* backslash, quote and line feed are escaped (exposition format 0.0.4) */
    for (; *s; s++) {
        if (*s == '\\' || *s == '"') fz_buf_putc(b, '\\');
        if (*s == '\n') fz_buf_puts(b, "\\n");
        else fz_buf_putc(b, *s);
    }
}

static void head(fz_buf *b, const char *name, const char *kind, const char *help) { fz_buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind); }

static void sample(fz_buf *b, const char *name, const char *label, const char *value, uint64_t v) {
    fz_buf_printf(b, "%s{%s=\"", name, label);
    put_label(b, value);
    fz_buf_printf(b, "\"} %" PRIu64 "\n", v);
}

/* ---- Firehose's metrics ---- */

static int64_t age_s(const job_sink *s, int64_t now_ms) {
    int64_t oldest = atomic_load(&s->stats.oldest_ms);
    return oldest > 0 && now_ms > oldest ? (now_ms - oldest) / 1000 : 0;
}

typedef uint64_t (*value_fn)(const job_sink *s, int64_t now_ms);
static uint64_t v_bytes(const job_sink *s, int64_t now) { return (void)now, s->stats.bytes; }
static uint64_t v_incoming(const job_sink *s, int64_t now) { return (void)now, s->stats.delivered + s->stats.rejected + atomic_load(&s->stats.buffered_rows); }
static uint64_t v_success_rows(const job_sink *s, int64_t now) { return (void)now, s->stats.delivered; }
static uint64_t v_failed_rows(const job_sink *s, int64_t now) { return (void)now, s->stats.rejected; }
static uint64_t v_freshness(const job_sink *s, int64_t now) { return (uint64_t)age_s(s, now); }
static uint64_t v_commits(const job_sink *s, int64_t now) { return (void)now, s->stats.commits; }
static uint64_t v_attempts(const job_sink *s, int64_t now) { return (void)now, s->stats.attempts; }
static uint64_t v_partitions(const job_sink *s, int64_t now) { return (void)now, s->stats.partitions; }
static uint64_t v_one(const job_sink *s, int64_t now) { return (void)s, (void)now, 1; }

typedef enum { OF_TABLES, OF_OBJECTS } family;
static const struct firehose { family of; const char *name, *kind, *help; value_fn value; } firehose[] = {
    {OF_TABLES, "DeliveryToIceberg.ActivePartitionsCount", "gauge", "Partitions that the newest commit added files to.", v_partitions},
    {OF_TABLES, "DeliveryToIceberg.Bytes", "counter", "Bytes of data files made visible.", v_bytes},
    {OF_TABLES, "DeliveryToIceberg.DataFreshness", "gauge", "Seconds since the oldest record came in that is not delivered yet; it rises while anything is stuck.", v_freshness},
    {OF_TABLES, "DeliveryToIceberg.FailedRowCount", "counter", "Rows given up: dead letters and error objects.", v_failed_rows},
    {OF_TABLES, "DeliveryToIceberg.IncomingRowCount", "gauge", "Rows taken in for the table: delivered, given up, and on their way.", v_incoming},
    {OF_TABLES, "DeliveryToIceberg.Success", "counter", "Commits that the catalog accepted.", v_commits},
    {OF_TABLES, "DeliveryToIceberg.SuccessfulRowCount", "counter", "Rows made visible by commits.", v_success_rows},
    {OF_TABLES, "DeliveryToIceberg.TableCount", "gauge", "Tables that this delivery writes to: one.", v_one},
    {OF_TABLES, "DeliveryToIceberg.WriteAttemptSuccess", "counter", "Commits that were tried.", v_attempts},
    {OF_OBJECTS, "DeliveryToS3.Bytes", "counter", "Bytes delivered, before compression.", v_bytes},
    {OF_OBJECTS, "DeliveryToS3.DataFreshness", "gauge", "Seconds since the oldest record came in that is not delivered yet; it rises while anything is stuck.", v_freshness},
    {OF_OBJECTS, "DeliveryToS3.Records", "counter", "Records delivered.", v_success_rows},
    {OF_OBJECTS, "DeliveryToS3.Success", "counter", "Deliveries that succeeded.", v_commits},
};

static bool belongs(const job_sink *s, family f) { return f == OF_OBJECTS ? s->delivery != NULL : s->table != NULL; }

static void put_firehose(const job *j, fz_buf *b, int64_t now_ms) {
    char name[128];
    for (size_t i = 0; i < sizeof firehose / sizeof *firehose; i++) {
        char help[256];
        bool any = false;
        for (uint32_t k = 0; k < j->n_sinks; k++) any |= belongs(j->sinks[k], firehose[i].of);
        if (!any) continue;
        job_metric_name(firehose[i].name, name, sizeof name);
        snprintf(help, sizeof help, "%s: %s", firehose[i].name, firehose[i].help);
        head(b, name, firehose[i].kind, help);
        for (uint32_t k = 0; k < j->n_sinks; k++)
            if (belongs(j->sinks[k], firehose[i].of)) sample(b, name, "delivery", j->sinks[k]->text, firehose[i].value(j->sinks[k], now_ms));
    }
}

void job_metrics_each(const job *j, job_metric_fn fn, void *cx) {
    int64_t now = fz_now_ms();
    for (size_t i = 0; i < sizeof firehose / sizeof *firehose; i++)
        for (uint32_t k = 0; k < j->n_sinks; k++)
            if (belongs(j->sinks[k], firehose[i].of)) fn(cx, firehose[i].name, strcmp(firehose[i].kind, "counter") == 0, j->sinks[k]->text, firehose[i].value(j->sinks[k], now));
}

/* ---- where the records of each delivery are ---- */

static void put_fates(const job *j, fz_buf *b) {
    static const char name[] = "frazil_delivery_records";
    head(b, name, "gauge", "Records times the INSERTs that read them, by what became of them: in = delivered + filtered + rejected + unparseable + buffered.");
    for (uint32_t k = 0; k < j->n_sinks; k++) {
        const job_sink *s = j->sinks[k];
        uint64_t buffered = atomic_load(&s->stats.buffered);
        const struct { const char *state; uint64_t n; } v[] = {
            {"in", s->stats.delivered + s->stats.filtered + s->stats.rejected + s->stats.unparseable + buffered}, {"delivered", s->stats.delivered}, {"filtered", s->stats.filtered},
            {"rejected", s->stats.rejected}, {"unparseable", s->stats.unparseable}, {"buffered", buffered}};
        for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
            fz_buf_printf(b, "%s{delivery=\"", name);
            put_label(b, s->text);
            fz_buf_printf(b, "\",state=\"%s\"} %" PRIu64 "\n", v[i].state, v[i].n);
        }
    }
    head(b, "frazil_delivery_up", "gauge", "1: running; 0: waiting after a failure, or stopped.");
    for (uint32_t k = 0; k < j->n_sinks; k++) sample(b, "frazil_delivery_up", "delivery", j->sinks[k]->text, j->sinks[k]->status == SINK_RUNNING);
}

static void put_sources(const job *j, fz_buf *b) {
    char name[64];
    static const struct { const char *name, *help; } v[] = {{"IncomingRecords", "IncomingRecords: records read from the source."}, {"IncomingBytes", "IncomingBytes: their bytes."}};
    for (int what = 0; what < 2; what++) {
        job_metric_name(v[what].name, name, sizeof name);
        head(b, name, "counter", v[what].help);
        for (uint32_t k = 0; k < j->n_sources; k++) {
            const job_source *s = j->sources[k];
            sample(b, name, "source", s->scan_plan->table->path, what ? atomic_load(&s->bytes_in) : atomic_load(&s->records_in));
        }
    }
}

void job_metrics_make(const job *j, fz_buf *b) {
    for (int i = 0; i < FZ_M_COUNT; i++) {
        const fz_metric_info *m = fz_metric_describe((fz_metric)i);
        fz_buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n%s %" PRIu64 "\n", m->name, m->help, m->name, m->kind == FZ_METRIC_GAUGE ? "gauge" : "counter", m->name, fz_metric_get((fz_metric)i));
    }
    put_sources(j, b);
    put_firehose(j, b, fz_now_ms());
    put_fates(j, b);
}

/* ---- the endpoint ---- */

static void answer(void *cx, net_http_request *r) {
    job_metrics *m = cx;
    static const net_http_field text[] = {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"}}, allow[] = {{"Allow", "GET, HEAD"}};
    if (strcmp(r->method, "GET") != 0 && strcmp(r->method, "HEAD") != 0) {
        net_http_answer(r, 405, allow, 1, "", 0);
        return;
    }
    if (strcmp(r->path, "/metrics") != 0) {
        net_http_answer(r, 404, NULL, 0, "", 0);
        return;
    }
    pthread_mutex_lock(&m->lock);
    if (!m->text.len) net_http_answer(r, 503, NULL, 0, "", 0); /* the job is not up yet: half of the series would be worse */
    else net_http_answer(r, 200, text, 1, m->text.data, m->text.len);
    pthread_mutex_unlock(&m->lock);
}

fz_status job_metrics_open(const job *j, job_metrics **out, fz_error *err) {
    const conf *c = j->spec->settings;
    *out = NULL;
    if (!conf_is_set(c, "metrics.port")) return FZ_OK;
    const char *host = conf_get(c, "metrics.bind-host");
    char address[300];
    snprintf(address, sizeof address, strchr(host, ':') ? "[%s]:%lld" : "%s:%lld", host, (long long)conf_get_i64(c, "metrics.port"));
    FZ_TRY(net_listen_check(address, false, conf_get_bool(c, "metrics.allow-unauthenticated"), err));
    job_metrics *m = FZ_NEW(job_metrics);
    pthread_mutex_init(&m->lock, NULL);
    fz_status rc = net_loop_new("metrics", &m->loop, err);
    const net_listen_options o = {.address = address, .max_connections = 64, .max_message = 64u << 10};
    if (rc == FZ_OK) rc = net_listen_http(m->loop, &o, answer, m, &m->listener, err);
    if (rc != FZ_OK) {
        (void)!fz_context(err, "metrics.port");
        job_metrics_free(m);
        return rc;
    }
    fz_log(FZ_LOG_INFO, "metrics.listening", FZ_KV("address", "%s", net_listener_address(m->listener)), NULL);
    return *out = m, FZ_OK;
}

void job_metrics_set(job_metrics *m, const fz_buf *text) {
    if (!m) return;
    pthread_mutex_lock(&m->lock);
    m->text.len = 0;
    fz_buf_append(&m->text, text->data, text->len);
    pthread_mutex_unlock(&m->lock);
}

void job_metrics_free(job_metrics *m) {
    if (!m) return;
    net_loop_free(m->loop);
    pthread_mutex_destroy(&m->lock);
    fz_buf_free(&m->text);
    fz_free(m);
}
