/* Where reading begins and ends: scan.startup.* and scan.bounded.*, parsed, and resolved to numbers before the first read.
 *
 * A start that is a word ("latest", a timestamp) would mean something else after a restart; as a number it stays what it was.
 *
 * Invariants
 *  1. After kafka_resolve each split has numbers: start >= 0, or -1 when there is none to be had (group-offsets, no offset
 *     committed, auto.offset.reset none). -1 is an error only for who wants to start there: the table may know better.
 *
 * Source: KafkaConnectorOptionsUtil, OffsetsInitializer and SpecifiedOffsetsInitializer of Flink's Kafka connector 4.0.1.
 */
#include "source/kafka_int.h"
#include <stdio.h>
#include <stdlib.h>

enum { COORDINATOR_TRIES = 10, COORDINATOR_WAIT_MS = 300 };

static fz_status bad_specific(const char *option, const char *text, fz_error *err) {
    fz_fail(err, FZ_USER, "option.invalid", "option '%s': '%s' is not a list of partitions and offsets", option, text);
    return fz_hint(err, "write partition:0,offset:42;partition:1,offset:300");
}

static bool number_after(fz_sv s, const char *name, int64_t *out) {
    size_t n = strlen(name);
    return s.n > n && memcmp(s.p, name, n) == 0 && fz_parse_i64((fz_sv){s.p + n, s.n - n}, out) && *out >= 0;
}

fz_status kafka_parse_specific(const char *option, const char *text, kafka_specific **out, size_t *n, fz_error *err) {
    size_t cap = 0;
    *out = NULL;
    *n = 0;
    for (const char *p = text; p;) {
        const char *semi = strchr(p, ';');
        fz_sv one = fz_sv_trim((fz_sv){p, semi ? (size_t)(semi - p) : strlen(p)});
        p = semi ? semi + 1 : NULL;
        if (!one.n && !p && *n) break; /* a semicolon at the end, as Flink's own examples have */
        const char *comma = memchr(one.p, ',', one.n);
        int64_t partition, offset;
        bool ok = comma && number_after(fz_sv_trim((fz_sv){one.p, (size_t)(comma - one.p)}), "partition:", &partition) &&
                  number_after(fz_sv_trim((fz_sv){comma + 1, one.n - (size_t)(comma + 1 - one.p)}), "offset:", &offset) && partition <= INT32_MAX;
        if (!ok) {
            fz_free(*out);
            *out = NULL;
            return bad_specific(option, text, err);
        }
        FZ_GROW(*out, *n, cap);
        (*out)[(*n)++] = (kafka_specific){(int32_t)partition, offset};
    }
    return FZ_OK;
}

/* --- options --- */

static fz_status missing(const char *option, const char *because, fz_error *err) {
    return fz_fail(err, FZ_USER, "option.missing", "option '%s' is missing: %s needs it", option, because);
}

static fz_status parse_place(const kafka_config *c, const char *kind, const char *mode, const fz_pair *options, size_t n, kafka_place *out,
                             fz_error *err) {
    char option[64], because[64];
    snprintf(because, sizeof because, "scan.%s.mode '%s'", kind, mode);
    if (fz_ieq(mode, "unbounded")) out->at = KAFKA_UNBOUNDED;
    else if (fz_ieq(mode, "earliest-offset")) out->at = KAFKA_AT_EARLIEST;
    else if (fz_ieq(mode, "latest-offset")) out->at = KAFKA_AT_LATEST;
    else if (fz_ieq(mode, "group-offsets")) {
        out->at = KAFKA_AT_GROUP;
        if (!c->group) return missing("properties.group.id", because, err);
    } else if (fz_ieq(mode, "timestamp")) {
        out->at = KAFKA_AT_TIMESTAMP;
        snprintf(option, sizeof option, "scan.%s.timestamp-millis", kind);
        const char *text = fz_pair_get(options, n, option);
        if (!text) return missing(option, because, err);
        if (!fz_parse_i64(fz_sv_of(text), &out->timestamp_ms) || out->timestamp_ms < 0)
            return fz_fail(err, FZ_USER, "option.invalid", "option '%s': '%s' is not a time in milliseconds", option, text);
    } else {
        out->at = KAFKA_AT_SPECIFIC;
        snprintf(option, sizeof option, "scan.%s.specific-offsets", kind);
        const char *text = fz_pair_get(options, n, option);
        if (!text) return missing(option, because, err);
        if (c->n_topics != 1)
            return fz_fail(err, FZ_USER, "option.conflict", "%s takes a single topic, since its offsets name partitions only", because);
        FZ_TRY(kafka_parse_specific(option, text, &out->specific, &out->n_specific, err));
    }
    return FZ_OK;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void parse_topics(kafka_config *c, const char *list) {
    size_t cap = 0;
    for (const char *p = list; p;) {
        const char *semi = strchr(p, ';');
        fz_sv one = fz_sv_trim((fz_sv){p, semi ? (size_t)(semi - p) : strlen(p)});
        p = semi ? semi + 1 : NULL;
        if (!one.n) continue;
        FZ_GROW(c->topics, c->n_topics, cap);
        c->topics[c->n_topics++] = fz_strndup(one.p, one.n);
    }
    if (c->n_topics) qsort(c->topics, c->n_topics, sizeof *c->topics, by_name);
    size_t kept = 0;
    for (size_t i = 0; i < c->n_topics; i++) {
        if (kept && strcmp(c->topics[kept - 1], c->topics[i]) == 0) fz_free(c->topics[i]);
        else c->topics[kept++] = c->topics[i];
    }
    c->n_topics = kept;
}

static fz_status parse_reset(kafka_config *c, const char *text, fz_error *err) {
    if (!text || fz_ieq(text, "none")) c->reset = KAFKA_RESET_NONE;
    else if (fz_ieq(text, "earliest")) c->reset = KAFKA_RESET_EARLIEST;
    else if (fz_ieq(text, "latest")) c->reset = KAFKA_RESET_LATEST;
    else {
        fz_fail(err, FZ_USER, "option.invalid", "option 'properties.auto.offset.reset': '%s' is none of earliest, latest, none", text);
        return fz_hint(err, "to begin at a time, use 'scan.startup.mode' = 'timestamp'");
    }
    return FZ_OK;
}

static fz_status parse_config(kafka_config *c, const fz_pair *options, size_t n, fz_error *err) {
    const char *topic = fz_pair_get(options, n, "topic"), *pattern = fz_pair_get(options, n, "topic-pattern");
    const char *start = fz_pair_get(options, n, "scan.startup.mode"), *stop = fz_pair_get(options, n, "scan.bounded.mode");
    const char *interval = fz_pair_get(options, n, "scan.topic-partition-discovery.interval");
    const char *group = fz_pair_get(options, n, "properties.group.id"), *report = fz_pair_get(options, n, "properties.commit.offsets.on.checkpoint");
    if (topic && pattern) return fz_fail(err, FZ_USER, "option.conflict", "options 'topic' and 'topic-pattern' exclude each other");
    if (!topic && !pattern) return fz_fail(err, FZ_USER, "option.missing", "either option 'topic' or option 'topic-pattern' is needed");
    if (topic) parse_topics(c, topic);
    if (topic && !c->n_topics) return fz_fail(err, FZ_USER, "option.invalid", "option 'topic' is empty");
    if (pattern) {
        FZ_TRY(kafka_pattern_compile(pattern, &c->pattern_re, err));
        c->pattern = fz_strdup(pattern);
    }
    c->group = group && *group ? fz_strdup(group) : NULL;
    c->report = c->group && !(report && fz_ieq(report, "false"));
    FZ_TRY(parse_reset(c, fz_pair_get(options, n, "properties.auto.offset.reset"), err));
    FZ_TRY(parse_place(c, "startup", start ? start : "group-offsets", options, n, &c->start, err));
    FZ_TRY(parse_place(c, "bounded", stop ? stop : "unbounded", options, n, &c->stop, err));
    return fz_parse_duration_ms(interval ? interval : "5 min", &c->discovery_ms, err);
}

fz_status kafka_config_init(kafka_config *c, const fz_pair *options, size_t n, fz_error *err) {
    *c = (kafka_config){0};
    fz_status rc = parse_config(c, options, n, err);
    if (rc != FZ_OK) kafka_config_free(c);
    return rc;
}

void kafka_config_free(kafka_config *c) {
    for (size_t i = 0; i < c->n_topics; i++) fz_free(c->topics[i]);
    fz_free(c->topics);
    if (c->pattern) regfree(&c->pattern_re);
    fz_free(c->pattern);
    fz_free(c->group);
    fz_free(c->start.specific);
    fz_free(c->stop.specific);
    *c = (kafka_config){0};
}

/* --- numbers --- */

typedef struct numbers { int64_t *low, *high, *timed, *committed; } numbers;

static rd_kafka_resp_err_t ask_committed(kafka_source *k, uint32_t from, uint32_t n, int64_t *out) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)n);
    for (uint32_t i = 0; i < n; i++) rd_kafka_topic_partition_list_add(list, k->base.splits[from + i]->topic, k->base.splits[from + i]->partition);
    rd_kafka_resp_err_t e = rd_kafka_committed(k->control, list, 10000);
    for (uint32_t i = 0; i < n && !e; i++) {
        if (list->elems[i].err) e = list->elems[i].err;
        out[i] = list->elems[i].offset >= 0 ? list->elems[i].offset : -1;
    }
    rd_kafka_topic_partition_list_destroy(list);
    return e;
}

/* Why a request to the group's coordinator found no end: librdkafka asks for the coordinator again and again, whatever the answer is, and tells its reason to whoever polls. */
static rd_kafka_resp_err_t coordinator_reason(kafka_source *k) {
    rd_kafka_resp_err_t e = RD_KAFKA_RESP_ERR__TIMED_OUT;
    rd_kafka_message_t *m;
    for (int i = 0; i < 16 && (m = rd_kafka_consumer_poll(k->control, 0)); i++) {
        if (m->err == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED) e = m->err;
        rd_kafka_message_destroy(m);
    }
    return e;
}

/* Offsets that the group has committed for splits [from, n); -1: none. The group's coordinator may just be moving. */
static fz_status list_committed(kafka_source *k, uint32_t from, int64_t *out, fz_error *err) {
    rd_kafka_resp_err_t e = RD_KAFKA_RESP_ERR_NO_ERROR;
    for (int i = 0; i < COORDINATOR_TRIES; i++) {
        if (i) fz_sleep_ms(COORDINATOR_WAIT_MS);
        e = ask_committed(k, from, k->base.n_splits - from, out);
        if (e != RD_KAFKA_RESP_ERR_NOT_COORDINATOR && e != RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE && e != RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS) break;
    }
    if (e == RD_KAFKA_RESP_ERR__TIMED_OUT) e = coordinator_reason(k);
    return e ? kafka_request_error(&k->control_client, e, "the committed offsets of the group cannot be read", err) : FZ_OK;
}

fz_status kafka_report_check(src_source *s, const char **group, fz_error *err) {
    kafka_source *k = kafka_of(s);
    if (!k->config.report || !s->n_splits) return FZ_OK;
    *group = k->config.group;
    int64_t *committed = fz_calloc(s->n_splits, sizeof *committed);
    fz_status rc = list_committed(k, 0, committed, err);
    fz_free(committed);
    return rc;
}

static int64_t place_of(const kafka_source *k, const kafka_place *p, const src_split *s, uint32_t i, const numbers *x) {
    switch (p->at) {
    case KAFKA_AT_EARLIEST: return x->low[i];
    case KAFKA_AT_LATEST: return x->high[i];
    case KAFKA_AT_TIMESTAMP: return x->timed[i] >= 0 ? x->timed[i] : x->high[i];
    case KAFKA_AT_SPECIFIC:
        for (size_t j = 0; j < p->n_specific; j++)
            if (p->specific[j].partition == s->partition) return p->specific[j].offset;
        /* A partition that is not named: the group's offset when there is a group, else the earliest, as in Flink. */
        return x->committed && x->committed[i] >= 0 ? x->committed[i] : x->low[i];
    case KAFKA_AT_GROUP:
        if (x->committed[i] >= 0) return x->committed[i];
        return k->config.reset == KAFKA_RESET_EARLIEST ? x->low[i] : k->config.reset == KAFKA_RESET_LATEST ? x->high[i] : -1;
    case KAFKA_UNBOUNDED: break;
    }
    return INT64_MAX;
}

static fz_status fill(kafka_source *k, uint32_t from, const kafka_place *p, numbers *x, fz_error *err) {
    if (p->at == KAFKA_AT_TIMESTAMP) return kafka_list_offsets(k, from, p->timestamp_ms, x->timed, err);
    bool wanted = p->at == KAFKA_AT_GROUP || (p->at == KAFKA_AT_SPECIFIC && k->config.group);
    if (!wanted || x->committed) return FZ_OK;
    x->committed = fz_calloc(k->base.n_splits - from, sizeof(int64_t));
    return list_committed(k, from, x->committed, err);
}

static fz_status resolve(kafka_source *k, uint32_t from, bool later, numbers *x, fz_error *err) {
    const kafka_config *c = &k->config;
    uint32_t n = k->base.n_splits - from;
    FZ_TRY(kafka_list_offsets(k, from, RD_KAFKA_OFFSET_BEGINNING, x->low, err));
    FZ_TRY(kafka_list_offsets(k, from, RD_KAFKA_OFFSET_END, x->high, err));
    if (!later) FZ_TRY(fill(k, from, &c->start, x, err));
    for (uint32_t i = 0; i < n; i++) {
        src_split *s = k->base.splits[from + i];
        s->low = x->low[i];
        s->high = x->high[i];
        atomic_store(&k->splits[from + i]->end, s->high);
        s->found_later = later;
        s->start = later ? s->low : place_of(k, &c->start, s, i, x);
        s->start_is_earliest = s->start >= 0 && s->start <= s->low;
    }
    FZ_TRY(fill(k, from, &c->stop, x, err));
    for (uint32_t i = 0; i < n; i++) {
        src_split *s = k->base.splits[from + i];
        s->stop = place_of(k, &c->stop, s, i, x);
        if (s->stop < 0)
            return fz_fail(err, FZ_USER, "kafka.no-committed-offset", "%s has no offset committed by group '%s', so that scan.bounded.mode 'group-offsets' has no end", s->name,
                           c->group);
    }
    return FZ_OK;
}

fz_status kafka_resolve(kafka_source *k, uint32_t from, bool later, fz_error *err) {
    uint32_t n = k->base.n_splits - from;
    if (!n) return FZ_OK;
    numbers x = {fz_calloc(n, sizeof(int64_t)), fz_calloc(n, sizeof(int64_t)), fz_calloc(n, sizeof(int64_t)), NULL};
    fz_status rc = resolve(k, from, later, &x, err);
    fz_free(x.low);
    fz_free(x.high);
    fz_free(x.timed);
    fz_free(x.committed);
    return rc;
}
