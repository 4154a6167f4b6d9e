/* Metrics of a running job as Prometheus text: on http://<metrics.bind-host>:<metrics.port>/metrics and in the file of frazil.metrics.path. See job_int.h.
 *
 * What stands in it: the table of base/metric.h, in its order: process, sources with their listeners and spools, deliveries (a table too) with Firehose's metrics. Those of connectors and kinds of
 * delivery that the script does not have are left out.
 *
 * Names. Firehose's names have dots and capitals, Prometheus' have not: firehose_ and then each word in lower case, words parted by an underscore, as in
 *     DeliveryToIceberg.SuccessfulRowCount -> firehose_delivery_to_iceberg_successful_row_count
 * The original name begins the HELP text.
 *
 * Invariants
 *  1. The number of series follows from the script alone; none appears or goes with data, errors or hosts, and zeros are written as zeros.
 *  2. Of each delivery: in = delivered + filtered + rejected + unparseable + diverted + by_other + buffered, in every text (job/tally.h).
 * Threads: one at a time makes the text, any; the loop's thread hands out the last one.
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

/* ---- values ---- */

typedef enum { FAMILY_NONE, FAMILY_TABLE, FAMILY_OBJECTS, FAMILY_EVENTS } family;
static family family_of(const job_sink *s) {
    if (!s->delivery) return FAMILY_TABLE;
    const char *c = s->delivery ? dlv_connector(s->delivery) : "";
    return strcmp(c, "firehose-s3") == 0 ? FAMILY_OBJECTS : strcmp(c, "cloudwatch-logs") == 0 ? FAMILY_EVENTS : FAMILY_NONE;
}

/* When the oldest record came in that no delivery of s's sources has read. */
static int64_t unread_ms(const job *j, const job_sink *s) {
    int64_t oldest = 0;
    for (uint32_t k = 0; k < j->n_sources; k++) {
        int64_t ms = s->paths_of[k] ? src_arrival(j->sources[k]->source, 0, -1) : 0;
        if (ms && (!oldest || ms < oldest)) oldest = ms;
    }
    return oldest;
}

typedef struct value { fz_metric m; uint64_t value, samples; } value;
static void give(job_metric_fn fn, void *cx, const char *key, const value *v, size_t n) {
    for (size_t i = 0; i < n; i++) fn(cx, &(job_metric_point){.metric = v[i].m, .key = key, .value = v[i].value, .samples = v[i].samples});
}

static void firehose_values(const job_sink *s, const job_tally *t, uint64_t age, job_metric_fn fn, void *cx) {
    const value table[] = {{FZ_M_ICE_PARTITIONS, t->partitions, 0}, {FZ_M_ICE_BYTES, t->bytes, 0}, {FZ_M_ICE_FRESHNESS, age, 0}, {FZ_M_ICE_FAILED, t->rejected + t->diverted, 0},
                           {FZ_M_ICE_INCOMING, t->rows_in, 0}, {FZ_M_ICE_SUCCESS, t->commits, 0}, {FZ_M_ICE_ROWS, t->delivered, 0}, {FZ_M_ICE_TABLES, 1, 0},
                           {FZ_M_ICE_WRITES, t->commits, t->attempts}, {FZ_M_JQ, t->sql_ns, t->batches}};
    const value objects[] = {{FZ_M_S3_BYTES, t->bytes, 0}, {FZ_M_S3_FRESHNESS, age, 0}, {FZ_M_S3_OBJECTS, t->objects, 0}, {FZ_M_S3_RECORDS, t->delivered, 0},
                             {FZ_M_S3_SUCCESS, t->commits, t->attempts}, {FZ_M_JQ, t->sql_ns, t->batches}};
    const value events[] = {{FZ_M_CWL_BYTES, t->bytes, 0}, {FZ_M_CWL_FRESHNESS, age, 0}, {FZ_M_CWL_RECORDS, t->delivered, 0}, {FZ_M_CWL_SUCCESS, t->commits, t->attempts}, {FZ_M_JQ, t->sql_ns, t->batches}};
    switch (family_of(s)) {
    case FAMILY_TABLE: give(fn, cx, s->text, table, sizeof table / sizeof *table); break;
    case FAMILY_OBJECTS: give(fn, cx, s->text, objects, sizeof objects / sizeof *objects); break;
    case FAMILY_EVENTS: give(fn, cx, s->text, events, sizeof events / sizeof *events); break;
    case FAMILY_NONE: break;
    }
}

void job_metrics_firehose(const job *j, job_metric_fn fn, void *cx) {
    int64_t now = fz_now_ms();
    for (uint32_t k = 0; k < j->n_sinks; k++) {
        job_sink *s = j->sinks[k];
        const job_tally t = job_tally_get(&s->tally);
        if (family_of(s) == FAMILY_NONE) continue;
        const value in[] = {{FZ_M_INCOMING_RECORDS, t.in, 0}, {FZ_M_INCOMING_BYTES, t.bytes_in, 0}};
        give(fn, cx, s->text, in, sizeof in / sizeof *in);
        firehose_values(s, &t, job_tally_age_s(&t, unread_ms(j, s), now), fn, cx);
    }
}

static const char *const STATES[] = {"in", "delivered", "filtered", "rejected", "unparseable", "diverted", "by_other", "buffered"};
enum { N_STATES = (int)(sizeof STATES / sizeof *STATES) };
static void states_of(const job_tally *t, uint64_t v[N_STATES]) {
    const uint64_t all[N_STATES] = {t->in, t->delivered, t->filtered, t->rejected, t->unparseable, t->diverted, t->by_other, t->buffered};
    memcpy(v, all, sizeof all);
}

static void delivery_values(const job *j, job_sink *s, uint64_t sum[N_STATES], int64_t now, job_metric_fn fn, void *cx) {
    const job_tally t = job_tally_get(&s->tally); /* one moment: the sum is right in it */
    uint64_t state[N_STATES], age = job_tally_age_s(&t, unread_ms(j, s), now);
    states_of(&t, state);
    for (int i = 0; i < N_STATES; i++) {
        sum[i] += state[i];
        fn(cx, &(job_metric_point){.metric = FZ_M_DELIVERY_RECORDS, .key = s->text, .label = STATES[i], .value = state[i]});
    }
    const value v[] = {{FZ_M_DELIVERY_UP, !t.stuck_ms, 0}, {FZ_M_DELIVERY_AGE, age, 0}, {FZ_M_DELIVERY_LAG, job_sink_lag(s), 0}, {FZ_M_DELIVERY_BYTES, t.bytes, 0}, {FZ_M_DELIVERY_COMMITS, t.commits, 0},
                       {FZ_M_DELIVERY_ATTEMPTS, t.attempts, 0}, {FZ_M_DELIVERY_LAST, (uint64_t)t.last_commit_ms, 0}};
    give(fn, cx, s->text, v, sizeof v / sizeof *v);
    if (!s->delivery) fn(cx, &(job_metric_point){.metric = FZ_M_DELIVERY_OPEN, .key = s->text, .value = t.open_objects});
    firehose_values(s, &t, age, fn, cx);
}

typedef struct source_cx { const char *key; job_metric_fn fn; void *cx; } source_cx;
static void source_value(void *cx, fz_metric m, const char *label, uint64_t v) {
    const source_cx *x = cx;
    x->fn(x->cx, &(job_metric_point){.metric = m, .key = x->key, .label = label, .value = v});
}

void job_metrics_each(const job *j, job_metric_fn fn, void *cx) {
    for (int i = 0; i < FZ_M_COUNT; i++)
        if (!*fz_metric_describe((fz_metric)i)->labels) fn(cx, &(job_metric_point){.metric = (fz_metric)i, .value = fz_metric_get((fz_metric)i)});
    for (uint32_t k = 0; k < j->n_sources; k++) {
        const job_source *s = j->sources[k];
        source_cx x = {s->scan_plan->table->path, fn, cx};
        const value v[] = {{FZ_M_INCOMING_RECORDS, atomic_load(&s->records_in), 0}, {FZ_M_INCOMING_BYTES, atomic_load(&s->bytes_in), 0}, {FZ_M_SOURCE_LAG, job_lag(s), 0}};
        give(fn, cx, x.key, v, sizeof v / sizeof *v);
        src_metrics(s->source, source_value, &x);
    }
    int64_t now = fz_now_ms();
    uint64_t sum[N_STATES] = {0};
    for (uint32_t k = 0; k < j->n_sinks; k++) delivery_values(j, j->sinks[k], sum, now, fn, cx);
    for (int i = 0; i < N_STATES; i++) fn(cx, &(job_metric_point){.metric = FZ_M_JOB_RECORDS, .label = STATES[i], .value = sum[i]});
}

/* ---- the text ---- */

typedef struct gathered { job_metric_point *v; uint32_t n, cap; } gathered;
static void gather(void *cx, const job_metric_point *p) {
    gathered *g = cx;
    FZ_GROW(g->v, g->n, g->cap);
    g->v[g->n++] = *p;
}

static void put_labels(fz_buf *b, const fz_metric_info *m, const job_metric_point *p) {
    if (!*m->labels) return;
    const char *comma = strchr(m->labels, ',');
    int first = comma ? (int)(comma - m->labels) : (int)strlen(m->labels);
    fz_buf_printf(b, "{%.*s=\"", first, m->labels);
    put_label(b, p->key ? p->key : p->label);
    if (comma) {
        fz_buf_printf(b, "\",%s=\"", comma + 1);
        put_label(b, p->label);
    }
    fz_buf_puts(b, "\"}");
}

static void put_point(fz_buf *b, const fz_metric_info *m, const job_metric_point *p) {
    fz_buf_puts(b, m->name);
    if (m->kind == FZ_METRIC_SUMMARY) fz_buf_puts(b, "_sum");
    put_labels(b, m, p);
    if (m->kind != FZ_METRIC_SUMMARY) fz_buf_printf(b, " %" PRIu64 "\n", p->value);
    else { /* kept in nanoseconds, told in milliseconds */
        fz_buf_printf(b, " %" PRIu64 ".%03" PRIu64 "\n%s_count", p->value / 1000000, p->value / 1000 % 1000, m->name);
        put_labels(b, m, p);
        fz_buf_printf(b, " %" PRIu64 "\n", p->samples);
    }
}

void job_metrics_make(const job *j, fz_buf *b) {
    static const char *const kinds[] = {"counter", "gauge", "summary"};
    gathered g = {0};
    job_metrics_each(j, gather, &g);
    for (int i = 0; i < FZ_M_COUNT; i++) { /* all series of a metric stand together */
        const fz_metric_info *m = fz_metric_describe((fz_metric)i);
        bool any = false;
        for (uint32_t k = 0; k < g.n; k++) {
            if ((int)g.v[k].metric != i) continue;
            if (!any) fz_buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n", m->name, m->help, m->name, kinds[m->kind]);
            any = true;
            put_point(b, m, &g.v[k]);
        }
    }
    fz_free(g.v);
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
