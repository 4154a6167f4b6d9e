/* Metadata: is there a cluster, which topics and partitions does it have, where do they begin and end.
 *
 * Invariants
 *  1. Splits are appended in order of topic and partition, and only when all that is asked about them has been answered.
 *  2. A topic that the script names must exist when the source is opened; later it may be missing (it is logged).
 */
#include "source/kafka_int.h"
#include <stdio.h>
#include <stdlib.h>

enum { CONNECT_MS = 10000, DOWN_MS = 1500, SLICE_MS = 250, REQUEST_MS = 5000, UNKNOWN_TRIES = 5, UNKNOWN_WAIT_MS = 200 };

/* --- connection --- */

fz_status kafka_connect(kafka_source *k, fz_error *err) {
    int64_t begin = fz_mono_ns();
    for (;;) {
        const struct rd_kafka_metadata *md = NULL;
        rd_kafka_resp_err_t e = rd_kafka_metadata(k->control, 0, NULL, &md, SLICE_MS);
        if (md) rd_kafka_metadata_destroy(md);
        rd_kafka_poll(k->control, 0); /* serves on_error */
        if (!e) break;
        int64_t waited_ms = (fz_mono_ns() - begin) / 1000000;
        bool down = waited_ms > CONNECT_MS || (waited_ms > DOWN_MS && atomic_load(&k->control_client.all_down));
        if (atomic_load(&k->control_client.auth_failed) || down) {
            const char *servers = fz_pair_get(k->options, k->n_options, "properties.bootstrap.servers");
            char *what = fz_asprintf("no Kafka broker answers at %s", servers ? servers : "no address");
            fz_status rc = kafka_request_error(&k->control_client, e, what, err);
            fz_free(what);
            return rc;
        }
    }
    char *id = rd_kafka_clusterid(k->control, REQUEST_MS);
    if (!id) return fz_fail(err, FZ_RETRY, "kafka.unreachable", "table %s: the Kafka cluster does not tell its id", k->base.cx.table);
    k->base.identity = fz_asprintf("kafka:%s", id);
    rd_kafka_mem_free(k->control, id);
    return FZ_OK;
}

/* --- offsets --- */

fz_status kafka_list_offsets(kafka_source *k, uint32_t from, int64_t timestamp, int64_t *out, fz_error *err) {
    uint32_t n = k->base.n_splits - from;
    rd_kafka_resp_err_t e = RD_KAFKA_RESP_ERR_NO_ERROR;
    for (int i = 0; i < UNKNOWN_TRIES; i++) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)n);
        for (uint32_t j = 0; j < n; j++)
            rd_kafka_topic_partition_list_add(list, k->base.splits[from + j]->topic, k->base.splits[from + j]->partition)->offset = timestamp;
        /* One request a broker. The protocol takes -1 (end) and -2 (beginning) in place of a timestamp. */
        e = rd_kafka_offsets_for_times(k->control, list, REQUEST_MS);
        for (uint32_t j = 0; j < n && !e; j++) {
            rd_kafka_topic_partition_t *p = rd_kafka_topic_partition_list_find(list, k->base.splits[from + j]->topic, k->base.splits[from + j]->partition);
            e = p ? p->err : RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION;
            if (!e) out[j] = p->offset;
        }
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_poll(k->control, 0);
        if (!e) return FZ_OK;
        if (e == RD_KAFKA_RESP_ERR__TIMED_OUT || e == RD_KAFKA_RESP_ERR__TRANSPORT) break;
        fz_sleep_ms(UNKNOWN_WAIT_MS); /* a leader election, or a topic that has just been made */
    }
    return kafka_request_error(&k->control_client, e, "the offsets of the partitions cannot be read", err);
}

fz_status kafka_bounds(src_source *s, uint32_t split, fz_error *err) {
    kafka_source *k = kafka_of(s);
    src_split *p = s->splits[split];
    int64_t low, high;
    rd_kafka_resp_err_t e = rd_kafka_query_watermark_offsets(k->control, p->topic, p->partition, &low, &high, REQUEST_MS);
    rd_kafka_poll(k->control, 0);
    if (e) return kafka_request_error(&k->control_client, e, "the bounds of a partition cannot be read", err);
    p->low = low;
    p->high = high;
    atomic_store(&k->splits[split]->end, high);
    return FZ_OK;
}

/* --- topics --- */

typedef struct found { char *topic; int32_t partition; } found;
typedef struct found_list { found *v; size_t n, cap; } found_list;

static bool have_split(const kafka_source *k, const char *topic, int32_t partition) {
    for (uint32_t i = 0; i < k->base.n_splits; i++)
        if (k->base.splits[i]->partition == partition && strcmp(k->base.splits[i]->topic, topic) == 0) return true;
    return false;
}

static void add_topic(const kafka_source *k, const rd_kafka_metadata_topic_t *t, found_list *list) {
    for (int i = 0; i < t->partition_cnt; i++) {
        if (have_split(k, t->topic, t->partitions[i].id)) continue;
        FZ_GROW(list->v, list->n, list->cap);
        list->v[list->n++] = (found){fz_strdup(t->topic), t->partitions[i].id};
    }
}

static fz_status unknown_topic(kafka_source *k, const char *topic, fz_error *err) {
    fz_fail(err, FZ_USER, "kafka.unknown-topic", "table %s: topic '%s' does not exist", k->base.cx.table, topic);
    return fz_hint(err, "create it, or correct option 'topic'; a source never creates topics");
}

/* Asks for one topic. A topic that has just been made may be unknown to the broker asked, so it is asked some times. */
static fz_status find_topic(kafka_source *k, const char *topic, bool later, found_list *list, fz_error *err) {
    rd_kafka_topic_t *t = rd_kafka_topic_new(k->control, topic, NULL);
    if (!t) return fz_fail(err, FZ_USER, "kafka.unknown-topic", "table %s: '%s' cannot be the name of a topic", k->base.cx.table, topic);
    rd_kafka_resp_err_t e = RD_KAFKA_RESP_ERR_NO_ERROR;
    for (int i = 0; i < UNKNOWN_TRIES; i++) {
        if (i) fz_sleep_ms(UNKNOWN_WAIT_MS);
        const struct rd_kafka_metadata *md = NULL;
        e = rd_kafka_metadata(k->control, 0, t, &md, REQUEST_MS);
        rd_kafka_poll(k->control, 0);
        if (!e && md->topic_cnt != 1) e = RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
        if (!e) e = md->topics[0].err;
        if (!e && md->topics[0].partition_cnt == 0) e = RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE;
        if (!e) add_topic(k, &md->topics[0], list);
        if (md) rd_kafka_metadata_destroy(md);
        if (e != RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART && e != RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE) break;
    }
    rd_kafka_topic_destroy(t);
    if (e == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART && later) {
        fz_log(FZ_LOG_WARN, "kafka.topic-missing", FZ_KV("table", "%s", k->base.cx.table), FZ_KV("topic", "%s", topic), NULL);
        return FZ_OK;
    }
    if (e == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART || e == RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION) return unknown_topic(k, topic, err);
    if (e == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED)
        return fz_fail(err, FZ_USER, "kafka.authorization", "table %s: no right to describe topic '%s'", k->base.cx.table, topic);
    return e ? kafka_request_error(&k->control_client, e, "the topic's metadata cannot be read", err) : FZ_OK;
}

static bool is_internal(const char *topic) {
    return strcmp(topic, "__consumer_offsets") == 0 || strcmp(topic, "__transaction_state") == 0 || strcmp(topic, "__share_group_state") == 0;
}

static fz_status find_by_pattern(kafka_source *k, found_list *list, fz_error *err) {
    const struct rd_kafka_metadata *md = NULL;
    rd_kafka_resp_err_t e = rd_kafka_metadata(k->control, 1, NULL, &md, REQUEST_MS);
    rd_kafka_poll(k->control, 0);
    if (e) return kafka_request_error(&k->control_client, e, "the list of topics cannot be read", err);
    for (int i = 0; i < md->topic_cnt; i++) {
        const rd_kafka_metadata_topic_t *t = &md->topics[i];
        if (!t->err && !is_internal(t->topic) && regexec(&k->config.pattern_re, t->topic, 0, NULL, 0) == 0) add_topic(k, t, list);
    }
    rd_kafka_metadata_destroy(md);
    if (!k->base.n_splits && !list->n && (k->config.stop.at != KAFKA_UNBOUNDED || k->config.discovery_ms <= 0))
        return fz_fail(err, FZ_USER, "kafka.unknown-topic", "table %s: no topic matches '%s'", k->base.cx.table, k->config.pattern);
    return FZ_OK;
}

static int by_place(const void *a, const void *b) {
    const found *x = a, *y = b;
    int c = strcmp(x->topic, y->topic);
    return c ? c : (x->partition > y->partition) - (x->partition < y->partition);
}

static bool append(kafka_source *k, const found *f) {
    char *name = fz_asprintf("%s/%d", f->topic, f->partition);
    uint32_t index = k->base.n_splits;
    src_split *base = src_add_split(&k->base, name, f->topic, f->partition);
    fz_free(name);
    if (!base) return false;
    kafka_split *s = FZ_NEW(kafka_split);
    s->index = index;
    s->base = base;
    atomic_init(&s->position, -1);
    k->splits[s->index] = s;
    return true;
}

static void take_back(kafka_source *k, uint32_t from) {
    while (k->base.n_splits > from) {
        uint32_t i = k->base.n_splits - 1;
        src_split *s = k->base.splits[i];
        k->base.n_splits = i;
        fz_free((void *)(uintptr_t)s->name);
        fz_free((void *)(uintptr_t)s->topic);
        fz_free(s);
        fz_free(k->splits[i]);
    }
}

fz_status kafka_find_splits(kafka_source *k, bool later, uint32_t *added, fz_error *err) {
    found_list list = {0};
    fz_status rc = FZ_OK;
    *added = 0;
    for (size_t i = 0; i < k->config.n_topics && rc == FZ_OK; i++) rc = find_topic(k, k->config.topics[i], later, &list, err);
    if (k->config.pattern) rc = find_by_pattern(k, &list, err);
    uint32_t from = k->base.n_splits;
    if (rc == FZ_OK && list.n) {
        qsort(list.v, list.n, sizeof *list.v, by_place);
        size_t i = 0;
        while (i < list.n && append(k, &list.v[i])) i++;
        if (i < list.n) rc = fz_fail(err, FZ_USER, "source.too-many-splits", "table %s has more than %u partitions", k->base.cx.table, SRC_MAX_SPLITS);
        if (rc == FZ_OK) rc = kafka_resolve(k, from, later, err);
        if (rc == FZ_OK) *added = k->base.n_splits - from;
        else take_back(k, from);
    }
    for (size_t i = 0; i < list.n; i++) fz_free(list.v[i].topic);
    fz_free(list.v);
    return rc;
}

/* --- patterns --- */

/* Classes of Java that POSIX writes in another way. */
static const char *class_of(char c) {
    switch (c) {
    case 'd': return "[0-9]";
    case 'D': return "[^0-9]";
    case 'w': return "[A-Za-z0-9_]";
    case 'W': return "[^A-Za-z0-9_]";
    case 's': return "[[:space:]]";
    case 'S': return "[^[:space:]]";
    default: return NULL;
    }
}

static fz_status bad_pattern(const char *java, const char *why, fz_error *err) {
    return fz_fail(err, FZ_USER, "option.invalid", "option 'topic-pattern': '%s': %s", java, why);
}

static fz_status translate(const char *java, fz_buf *b, fz_error *err) {
    bool in_class = false;
    fz_buf_puts(b, "^(");
    for (const char *p = java; *p; p++) {
        if (*p == '\\') {
            p++;
            if (!*p) return bad_pattern(java, "a backslash ends it", err);
            const char *class = class_of(*p);
            bool alnum = (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z');
            if (class && in_class && (*p == 'd' || *p == 'w')) fz_buf_puts(b, *p == 'd' ? "0-9" : "A-Za-z0-9_");
            else if (class && !in_class) fz_buf_puts(b, class);
            else if (alnum) return bad_pattern(java, "this escape is not supported", err);
            else if (in_class) fz_buf_printf(b, "[.%c.]", *p);
            else fz_buf_printf(b, "[%s%c]", *p == '^' ? "\\" : "", *p);
            continue;
        }
        if (!in_class && *p == '(' && p[1] == '?') {
            if (p[2] != ':') return bad_pattern(java, "look-around, flags and named groups are not supported", err);
            fz_buf_putc(b, '(');
            p += 2;
            continue;
        }
        if (!in_class && (*p == '*' || *p == '+' || *p == '?' || *p == '}') && (p[1] == '?' || p[1] == '+')) {
            fz_buf_putc(b, *p++); /* lazy and possessive forms: for a match of the whole name lazy ones mean the same */
            if (*p == '+') return bad_pattern(java, "possessive quantifiers are not supported", err);
            continue;
        }
        if (in_class && *p == '&' && p[1] == '&') return bad_pattern(java, "intersections of classes are not supported", err);
        if (*p == '[') in_class = true;
        else if (*p == ']') in_class = false;
        fz_buf_putc(b, *p);
    }
    fz_buf_puts(b, ")$");
    return FZ_OK;
}

fz_status kafka_pattern_compile(const char *java, regex_t *out, fz_error *err) {
    fz_buf b = {0};
    fz_status rc = translate(java, &b, err);
    if (rc == FZ_OK) {
        int e = regcomp(out, fz_buf_cstr(&b), REG_EXTENDED | REG_NOSUB);
        char text[128];
        if (e) {
            regerror(e, out, text, sizeof text);
            rc = bad_pattern(java, text, err);
        }
    }
    fz_buf_free(&b);
    return rc;
}
