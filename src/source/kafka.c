/* The Kafka connector: opening and closing, discovery, lag, and the report of offsets to the consumer group.
 *
 * See kafka_int.h for how it is divided.
 *
 * Invariants
 *  1. All chunks have been released before the source is closed: they hold messages of the client.
 *  2. A failed report is an error for the caller's log and nothing else: positions live in the table.
 */
#include "source/kafka_int.h"

enum { REPORT_MS = 5000 };

/* --- open and close --- */

static void wipe(char *s) {
    if (s) explicit_bzero(s, strlen(s));
    fz_free(s);
}

static void copy_options(kafka_source *k, const fz_pair *options, size_t n) {
    k->options = fz_calloc(n ? n : 1, sizeof *k->options);
    k->n_options = n;
    for (size_t i = 0; i < n; i++)
        k->options[i] = (fz_pair){fz_strdup(options[i].key), fz_strdup(options[i].value), options[i].line, options[i].column};
}

static void kafka_close(src_source *s) {
    kafka_source *k = kafka_of(s);
    fz_error ignored;
    if (k->data && k->readers) (void)!kafka_unassign_all(s, &ignored);
    for (uint32_t i = 0; i < s->n_splits; i++) {
        if (k->splits[i]->topic) rd_kafka_topic_destroy(k->splits[i]->topic);
        fz_free(k->splits[i]);
    }
    fz_free(k->splits);
    if (k->pool.out)
        fz_log(FZ_LOG_ERROR, "kafka.chunks-left", FZ_KV("table", "%s", s->cx.table), FZ_KV("chunks", "%u", k->pool.out), NULL);
    kafka_client_free(&k->probe_client, k->probe);
    kafka_client_free(&k->data_client, k->data);
    if (k->commits) rd_kafka_queue_destroy(k->commits);
    kafka_client_free(&k->control_client, k->control);
    kafka_readers_free(k);
    kafka_config_free(&k->config);
    for (size_t i = 0; i < k->n_options; i++) {
        fz_free((void *)(uintptr_t)k->options[i].key);
        wipe((char *)(uintptr_t)k->options[i].value);
    }
    fz_free(k->options);
    wipe(k->user);
    wipe(k->password);
    src_base_free(s);
    fz_free(k);
}

/* The login, for wake_fetcher; NULL without SASL. */
static fz_status keep_login(kafka_source *k, fz_error *err) {
    const char *protocol = fz_pair_get(k->options, k->n_options, "properties.security.protocol");
    const char *text = fz_pair_get(k->options, k->n_options, "properties.sasl.jaas.config");
    if (!text || !protocol || !(fz_ieq(protocol, "SASL_SSL") || fz_ieq(protocol, "SASL_PLAINTEXT"))) return FZ_OK;
    kafka_jaas j;
    FZ_TRY(kafka_jaas_parse(text, &j, err));
    k->user = j.username ? fz_strdup(j.username) : NULL;
    k->password = j.password ? fz_strdup(j.password) : NULL;
    kafka_jaas_free(&j);
    return FZ_OK;
}

static fz_status open_parts(kafka_source *k, const fz_pair *options, size_t n, fz_error *err) {
    uint32_t added;
    kafka_limits limits = {4u << 20, 1};
    FZ_TRY(kafka_config_init(&k->config, options, n, err));
    kafka_readers_init(k);
    FZ_TRY(kafka_client_new(options, n, KAFKA_CLIENT_CONTROL, &limits, &k->control_client, &k->control, err));
    FZ_TRY(keep_login(k, err));
    if (k->config.report) k->commits = rd_kafka_queue_new(k->control);
    FZ_TRY(kafka_connect(k, err));
    FZ_TRY(kafka_find_splits(k, false, &added, err));
    k->next_discovery_ns = fz_mono_ns() + k->config.discovery_ms * 1000000;
    return FZ_OK;
}

static fz_status kafka_open(const fz_pair *options, size_t n, const src_context *cx, src_source **out, fz_error *err) {
    kafka_source *k = FZ_NEW(kafka_source);
    src_base_init(&k->base, &src_kafka_ops, cx);
    k->splits = fz_calloc(SRC_MAX_SPLITS, sizeof *k->splits); /* address space, as base.splits */
    k->control_client.table = k->data_client.table = k->probe_client.table = k->base.cx.table;
    copy_options(k, options, n);
    fz_status rc = open_parts(k, options, n, err);
    if (rc == FZ_OK) *out = &k->base;
    else kafka_close(&k->base);
    return rc;
}

static fz_status kafka_check(const fz_pair *options, size_t n, fz_error *err) {
    kafka_config config = {0};
    kafka_limits limits = {4u << 20, 1};
    rd_kafka_conf_t *conf = NULL;
    fz_status rc = kafka_config_init(&config, options, n, err);
    if (rc == FZ_OK) rc = kafka_conf_make(options, n, KAFKA_CLIENT_CONTROL, &limits, &conf, err);
    if (conf) rd_kafka_conf_destroy(conf);
    kafka_config_free(&config);
    return rc;
}

static bool kafka_endless(const fz_pair *o, size_t n) {
    const char *mode = fz_pair_get(o, n, "scan.bounded.mode");
    return !mode || fz_ieq(mode, "unbounded");
}
static bool kafka_bounded(const src_source *s) { return ((const kafka_source *)s)->config.stop.at != KAFKA_UNBOUNDED; }

/* A bounded source has all its splits from the start: one found later would have no end that was decided at the beginning. */
static fz_status kafka_discover(src_source *s, uint32_t *added, fz_error *err) {
    kafka_source *k = kafka_of(s);
    int64_t now = fz_mono_ns();
    if (kafka_bounded(s) || k->config.discovery_ms <= 0 || now < k->next_discovery_ns) return FZ_OK;
    k->next_discovery_ns = now + k->config.discovery_ms * 1000000;
    return kafka_find_splits(k, true, added, err);
}

/* --- lag and report --- */

/* The end as of the last answer to a fetch, or as it was asked for last: asks nobody. */
static uint64_t kafka_behind(src_source *s, uint32_t split, int64_t at) {
    kafka_source *k = kafka_of(s);
    const src_split *x = s->splits[split];
    rd_kafka_t *data = __atomic_load_n(&k->data, __ATOMIC_ACQUIRE);
    int64_t end = atomic_load(&k->splits[split]->end), stop = src_stop(x), low, high;
    if (at < 0 && (at = atomic_load(&k->splits[split]->position)) < 0) return 0;
    if (data && rd_kafka_get_watermark_offsets(data, x->topic, x->partition, &low, &high) == RD_KAFKA_RESP_ERR_NO_ERROR && high > end) end = high;
    if (end > stop) end = stop;
    return end > at ? (uint64_t)(end - at) : 0;
}

static fz_status report_error(kafka_source *k, rd_kafka_resp_err_t e, fz_error *err) {
    return fz_fail(err, FZ_RETRY, "kafka.report", "table %s: offsets could not be reported to group '%s': %s", k->base.cx.table, k->config.group, rd_kafka_err2str(e));
}

static fz_status kafka_report(src_source *s, const uint32_t *splits, const int64_t *offsets, uint32_t n, fz_error *err) {
    kafka_source *k = kafka_of(s);
    if (!k->config.report || n == 0) return FZ_OK;
    rd_kafka_event_t *late;
    while ((late = rd_kafka_queue_poll(k->commits, 0))) rd_kafka_event_destroy(late); /* answers that came after the wait was over */
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)n);
    for (uint32_t i = 0; i < n; i++)
        if (splits[i] < s->n_splits && offsets[i] >= 0)
            rd_kafka_topic_partition_list_add(list, s->splits[splits[i]]->topic, s->splits[splits[i]]->partition)->offset = offsets[i];
    rd_kafka_resp_err_t e = rd_kafka_commit_queue(k->control, list, k->commits, NULL, NULL);
    rd_kafka_topic_partition_list_destroy(list);
    if (e) return report_error(k, e, err);
    rd_kafka_event_t *ev = rd_kafka_queue_poll(k->commits, REPORT_MS);
    if (!ev) return report_error(k, RD_KAFKA_RESP_ERR__TIMED_OUT, err);
    e = rd_kafka_event_error(ev);
    if (!e && rd_kafka_event_type(ev) == RD_KAFKA_EVENT_OFFSET_COMMIT) {
        rd_kafka_topic_partition_list_t *each = rd_kafka_event_topic_partition_list(ev);
        for (int i = 0; each && i < each->cnt && !e; i++) e = each->elems[i].err;
    }
    rd_kafka_event_destroy(ev);
    return e ? report_error(k, e, err) : FZ_OK;
}

static const src_metadata_column metadata[] = {
    {"topic", "STRING NOT NULL"},
    {"partition", "INT NOT NULL"},
    {"headers", "MAP<STRING, BYTES> NOT NULL"},
    {"leader-epoch", "INT"}, /* always NULL: librdkafka 2.0.2 does not tell it */
    {"offset", "BIGINT NOT NULL"},
    {"timestamp", "TIMESTAMP_LTZ(3) NOT NULL"},
    {"timestamp-type", "STRING NOT NULL"},
    {NULL, NULL},
};

const src_ops src_kafka_ops = {
    .name = "kafka",
    .doc = "Topics of Apache Kafka. Positions live in the target table; the consumer group is only told.",
    .options = kafka_options,
    .metadata = metadata,
    .replayable = true,
    .open = kafka_open,
    .close = kafka_close,
    .check = kafka_check,
    .bounded = kafka_bounded,
    .endless = kafka_endless,
    .discover = kafka_discover,
    .bounds = kafka_bounds,
    .probe_before = kafka_probe_before,
    .assign = kafka_assign,
    .unassign_all = kafka_unassign_all,
    .poll = kafka_poll,
    .report = kafka_report,
    .report_check = kafka_report_check,
    .aws_login = kafka_aws_login,
    .behind = kafka_behind,
};
