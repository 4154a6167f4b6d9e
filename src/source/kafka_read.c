/* Reading: each split has a queue of its own, and each reader takes from its splits' queues in turn.
 *
 *   waiting --start--> started --end of log--> at its end
 *      ^                  |  ^                     |
 *      '---turn is over---'  '----new records------'        stop reached: done
 *
 * Memory. librdkafka bounds each queue (kafka_conf.c), not their sum, so at most `active_per_reader` splits of a reader are
 * started and behind; others wait until one of those reaches its end or has had its turn. Then it is stopped, which drops
 * what was fetched ahead (about one answer in TURN_BYTES).
 *
 * The one-second sleep. When no partition may fetch, because all queues are full, the broker thread of librdkafka 2.0.2
 * sleeps until something wakes it or a second has passed (rd_kafka_broker_consumer_serve); taking messages out of a
 * queue does not wake it. Pausing and resuming partitions is no way out: either drops the queue. wake_fetcher is.
 *
 * Positions. An end-of-log event stands in the queue behind the last record before it, and carries the next offset to fetch:
 * past control records, aborted ones and compacted gaps. Together with the records it gives every position that matters;
 * the client's own notion (rd_kafka_position) is not needed.
 *
 * Invariants
 *  1. A chunk's `from` is the split's position, and its `to` becomes it: ranges abut.
 *  2. Nothing at or beyond `stop` is handed out.
 */
#include "source/kafka_int.h"
#include <errno.h>
#include <time.h>

enum { TURN_BYTES = 64 << 20, SPARE_CHUNKS = 4, GONE_TRIES = 3, REQUEST_MS = 5000 };

/* --- readers --- */

void kafka_readers_init(kafka_source *k) {
    uint32_t n = k->base.cx.readers;
    k->readers = fz_calloc(n, sizeof *k->readers);
    k->active_per_reader = n < KAFKA_ACTIVE ? KAFKA_ACTIVE / n : 1;
    for (uint32_t i = 0; i < n; i++) {
        kafka_reader *r = &k->readers[i];
        pthread_condattr_t attr;
        r->source = k;
        r->messages = fz_malloc(FZ_BATCH_ROWS * sizeof *r->messages);
        pthread_mutex_init(&r->lock, NULL);
        pthread_condattr_init(&attr);
        pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        pthread_cond_init(&r->cond, &attr);
        pthread_condattr_destroy(&attr);
    }
    kafka_pool_init(&k->pool, SPARE_CHUNKS + n);
}

void kafka_readers_free(kafka_source *k) {
    if (!k->readers) return;
    for (uint32_t i = 0; i < k->base.cx.readers; i++) {
        kafka_reader *r = &k->readers[i];
        fz_free(r->mine);
        fz_free(r->messages);
        pthread_mutex_destroy(&r->lock);
        pthread_cond_destroy(&r->cond);
    }
    fz_free(k->readers);
    kafka_pool_free(&k->pool);
}

/* librdkafka's thread, with the queue's lock held: a queue is no longer empty. */
static void on_ready(rd_kafka_t *rk, void *opaque) {
    kafka_reader *r = opaque;
    (void)rk;
    pthread_mutex_lock(&r->lock);
    if (!r->ready) {
        r->ready = true;
        pthread_cond_signal(&r->cond);
    }
    pthread_mutex_unlock(&r->lock);
}

static bool take_ready(kafka_reader *r) {
    pthread_mutex_lock(&r->lock);
    bool was = r->ready;
    r->ready = false;
    pthread_mutex_unlock(&r->lock);
    return was;
}

static void wait_ready(kafka_reader *r, int64_t until_ns) {
    struct timespec t = {until_ns / 1000000000, until_ns % 1000000000};
    pthread_mutex_lock(&r->lock);
    while (!r->ready && pthread_cond_timedwait(&r->cond, &r->lock, &t) != ETIMEDOUT) {}
    pthread_mutex_unlock(&r->lock);
}

/* Giving the client the login that it has already is the one public call of librdkafka 2.0.2 that only wakes its broker
 * threads: nothing is sent, nothing is dropped. Without a login it stores two empty strings that nothing reads. */
static void wake_fetcher(kafka_source *k) {
    rd_kafka_error_t *e = rd_kafka_sasl_set_credentials(k->data, k->user ? k->user : "", k->password ? k->password : "");
    if (e) rd_kafka_error_destroy(e);
}

/* --- starting and stopping a split --- */

static bool started(const kafka_split *s) { return s->queue != NULL; }
static int64_t position_of(kafka_split *s) { return atomic_load_explicit(&s->position, memory_order_relaxed); }

static fz_status start(kafka_reader *r, kafka_split *s, fz_error *err) {
    kafka_source *k = r->source;
    if (!s->topic) s->topic = rd_kafka_topic_new(k->data, s->base->topic, NULL);
    if (!s->topic) return fz_fail(err, FZ_FATAL, "kafka.client", "%s cannot be read: %s", s->base->name, rd_kafka_err2str(rd_kafka_last_error()));
    s->queue = rd_kafka_queue_new(k->data);
    rd_kafka_queue_cb_event_enable(s->queue, on_ready, r);
    s->at_end = false;
    s->taken = 0;
    if (rd_kafka_consume_start_queue(s->topic, s->base->partition, position_of(s), s->queue) == 0) return FZ_OK;
    rd_kafka_queue_destroy(s->queue);
    s->queue = NULL;
    return fz_fail(err, FZ_FATAL, "kafka.client", "%s cannot be read: %s", s->base->name, rd_kafka_err2str(rd_kafka_last_error()));
}

static void stop(kafka_split *s) {
    if (!started(s)) return;
    rd_kafka_consume_stop(s->topic, s->base->partition);
    rd_kafka_queue_cb_event_enable(s->queue, NULL, NULL);
    rd_kafka_queue_destroy(s->queue);
    s->queue = NULL;
}

/* Starts splits that wait, as long as there is room for one more that is behind. */
static fz_status start_waiting(kafka_reader *r, fz_error *err) {
    uint32_t behind = 0, waiting = 0;
    for (uint32_t i = 0; i < r->n_mine; i++) {
        kafka_split *s = r->mine[i];
        if (s->done) continue;
        if (!started(s)) waiting++;
        else if (!s->at_end) behind++;
    }
    for (uint32_t i = 0; i < r->n_mine && waiting && behind < r->source->active_per_reader; i++) {
        uint32_t at = r->next_start++ % r->n_mine;
        if (r->mine[at]->done || started(r->mine[at])) continue;
        FZ_TRY(start(r, r->mine[at], err));
        waiting--;
        behind++;
    }
    if (waiting == 0) return FZ_OK;
    for (uint32_t i = 0; i < r->n_mine; i++) /* whose turn is over waits; the next poll starts another */
        if (started(r->mine[i]) && !r->mine[i]->at_end && r->mine[i]->taken >= TURN_BYTES) stop(r->mine[i]);
    return FZ_OK;
}

static fz_status open_data(kafka_source *k, fz_error *err) {
    if (k->data) return FZ_OK;
    kafka_limits limits = {k->base.cx.memory, k->base.n_splits};
    k->queue_low = kafka_queue_low(&limits);
    rd_kafka_t *data = NULL;
    fz_status rc = kafka_client_new(k->options, k->n_options, KAFKA_CLIENT_DATA, &limits, &k->data_client, &data, err);
    __atomic_store_n(&k->data, data, __ATOMIC_RELEASE); /* other threads ask it how far the logs go */
    return rc;
}

fz_status kafka_assign(src_source *base, uint32_t split, int64_t from, fz_error *err) {
    kafka_source *k = kafka_of(base);
    kafka_split *s = k->splits[split];
    if (from < 0) {
        fz_fail(err, FZ_USER, "kafka.no-committed-offset", "%s has no offset committed by group '%s'", s->base->name, k->config.group ? k->config.group : "");
        return fz_hint(err, "set 'properties.auto.offset.reset' to earliest or latest, or choose another 'scan.startup.mode'");
    }
    kafka_client_free(&k->probe_client, k->probe);
    k->probe = NULL;
    FZ_TRY(open_data(k, err));
    kafka_reader *r = &k->readers[src_reader_of(base, split)];
    bool mine = false;
    for (uint32_t i = 0; i < r->n_mine; i++) mine |= r->mine[i] == s;
    if (!mine) {
        FZ_GROW(r->mine, r->n_mine, r->cap_mine);
        r->mine[r->n_mine++] = s;
    }
    stop(s);
    s->failed = RD_KAFKA_RESP_ERR_NO_ERROR;
    s->done = from >= s->base->stop;
    atomic_store(&s->position, from);
    return FZ_OK;
}

fz_status kafka_unassign_all(src_source *base, fz_error *err) {
    kafka_source *k = kafka_of(base);
    (void)err;
    for (uint32_t i = 0; i < k->base.cx.readers; i++) {
        kafka_reader *r = &k->readers[i];
        for (uint32_t j = 0; j < r->n_mine; j++) {
            stop(r->mine[j]);
            atomic_store(&r->mine[j]->position, -1);
        }
        r->n_mine = r->next = r->next_start = 0;
    }
    return FZ_OK;
}

/* --- errors of a split --- */

static fz_status out_of_range(kafka_source *k, kafka_split *s, fz_error *err) {
    int64_t low, high, at = position_of(s);
    rd_kafka_resp_err_t e = rd_kafka_query_watermark_offsets(k->data, s->base->topic, s->base->partition, &low, &high, REQUEST_MS);
    if (e) return kafka_request_error(&k->data_client, e, "an offset is out of range, and the bounds of the partition cannot be read", err);
    s->failed = RD_KAFKA_RESP_ERR_NO_ERROR;
    if (at < low) {
        fz_fail(err, FZ_FATAL, "kafka.offset-gone", "topic %s, partition %d: wanted offset %lld, but the log begins at %lld and ends at %lld: %lld offsets are gone unread",
                s->base->topic, s->base->partition, (long long)at, (long long)low, (long long)high, (long long)(low - at));
        s->failed = RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE;
        return fz_hint(err, "retention has deleted them, or the topic was made anew");
    }
    if (at > high) {
        fz_fail(err, FZ_FATAL, "kafka.offset-beyond-end", "topic %s, partition %d: wanted offset %lld, but the log begins at %lld and ends at %lld", s->base->topic,
                s->base->partition, (long long)at, (long long)low, (long long)high);
        s->failed = RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE;
        return fz_hint(err, "the topic was made anew, or its cluster lost records");
    }
    stop(s); /* in range by now: a replica that lagged; it is started again at the next poll */
    return fz_fail(err, FZ_RETRY, "kafka.offset-unsettled", "%s: offset %lld was out of range for a moment", s->base->name, (long long)at);
}

/* The client says that the topic does not exist. A broker that has just started may say so of any topic, so it is asked again. */
static fz_status topic_gone(kafka_source *k, kafka_split *s, fz_error *err) {
    s->failed = RD_KAFKA_RESP_ERR_NO_ERROR;
    for (int i = 0; i < GONE_TRIES; i++) {
        const struct rd_kafka_metadata *md = NULL;
        if (i) fz_sleep_ms(500);
        rd_kafka_resp_err_t e = rd_kafka_metadata(k->data, 0, s->topic, &md, REQUEST_MS);
        if (!e && md->topic_cnt == 1) e = md->topics[0].err;
        if (md) rd_kafka_metadata_destroy(md);
        if (e == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART) continue;
        stop(s);
        return fz_fail(err, FZ_RETRY, "kafka.topic-unsettled", "%s was unknown to the broker for a moment", s->base->name);
    }
    s->failed = RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    fz_fail(err, FZ_FATAL, "kafka.topic-gone", "topic %s, partition %d: the topic was deleted while it was read, at offset %lld", s->base->topic, s->base->partition,
            (long long)position_of(s));
    return fz_hint(err, "if it was made anew, the positions of the table no longer belong to it");
}

static fz_status split_error(kafka_source *k, kafka_split *s, fz_error *err) {
    rd_kafka_resp_err_t e = s->failed;
    switch (e) {
    case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
    case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE: return out_of_range(k, s, err);
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART: return topic_gone(k, s, err);
    default: break;
    }
    s->failed = RD_KAFKA_RESP_ERR_NO_ERROR;
    if (e == RD_KAFKA_RESP_ERR__BAD_MSG || e == RD_KAFKA_RESP_ERR__BAD_COMPRESSION || e == RD_KAFKA_RESP_ERR_INVALID_MSG) {
        stop(s);
        return fz_fail(err, FZ_RETRY, "kafka.bad-batch", "%s: the batch at offset %lld cannot be read: %s", s->base->name, (long long)position_of(s), rd_kafka_err2str(e));
    }
    return kafka_request_error(&k->data_client, e, s->base->name, err);
}

/* --- polling --- */

/* Sorts n messages of a split into a chunk. Returns NULL when its position has not moved. */
static kafka_chunk *fill(kafka_source *k, kafka_split *s, rd_kafka_message_t **m, uint32_t n) {
    kafka_chunk *c = kafka_chunk_new(&k->pool, n);
    const src_context *cx = &k->base.cx;
    int64_t from = position_of(s), to = from, end = s->base->stop;
    for (uint32_t i = 0; i < n; i++) {
        if (!m[i]->err && m[i]->offset >= to && m[i]->offset < end) {
            to = m[i]->offset + 1;
            s->at_end = false;
            kafka_chunk_add(c, m[i], cx->max_record_size, cx->need_headers);
            continue;
        }
        if (!m[i]->err && m[i]->offset >= end) to = end;
        if (m[i]->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
            if (m[i]->offset > to) to = m[i]->offset < end ? m[i]->offset : end;
            s->at_end = true;
        } else if (m[i]->err && !s->failed) s->failed = m[i]->err;
        rd_kafka_message_destroy(m[i]);
    }
    c->chunk.split = s->index;
    c->chunk.from = from;
    c->chunk.to = to;
    s->taken += c->chunk.bytes;
    if (to > from) atomic_store_explicit(&s->position, to, memory_order_relaxed);
    if (to >= end) {
        s->done = true;
        stop(s);
    }
    if (to > from) return c;
    fz_chunk_release(&c->chunk);
    return NULL;
}

/* One round over the reader's queues, from where the last one ended. */
static fz_status round_of(kafka_reader *r, fz_chunk **out, bool *done, fz_error *err) {
    kafka_source *k = r->source;
    FZ_TRY(start_waiting(r, err));
    uint32_t left = 0, n_mine = r->n_mine, begin = r->next;
    for (uint32_t i = 0; i < n_mine; i++) {
        uint32_t at = (begin + i) % n_mine;
        kafka_split *s = r->mine[at];
        if (s->done) continue;
        left++;
        if (s->failed) FZ_TRY(split_error(k, s, err));
        if (!started(s)) continue;
        (void)kafka_take_partition_error();
        ssize_t n = rd_kafka_consume_batch_queue(s->queue, 0, r->messages, FZ_BATCH_ROWS);
        if (!s->failed) s->failed = kafka_take_partition_error();
        if (n <= 0) continue; /* an error without messages is told in the next round */
        if ((int)rd_kafka_queue_length(s->queue) < k->queue_low) wake_fetcher(k);
        kafka_chunk *c = fill(k, s, r->messages, (uint32_t)n);
        r->next = at + 1;
        if (c) return *out = &c->chunk, FZ_OK;
        if (s->failed) FZ_TRY(split_error(k, s, err));
        left -= s->done;
    }
    *done = left == 0;
    return FZ_OK;
}

fz_status kafka_poll(src_source *base, uint32_t reader, int64_t timeout_ms, fz_chunk **out, bool *done, fz_error *err) {
    kafka_source *k = kafka_of(base);
    kafka_reader *r = &k->readers[reader];
    int64_t end = fz_mono_ns() + timeout_ms * 1000000;
    if (reader == 0 && k->data) rd_kafka_poll(k->data, 0); /* serves on_error */
    for (;;) {
        take_ready(r); /* before the queues are looked at: what comes in between ends the wait */
        FZ_TRY(round_of(r, out, done, err));
        if (*out) {
            *done = false;
            return FZ_OK;
        }
        if (*done) *done = k->config.stop.at != KAFKA_UNBOUNDED; /* an unbounded source without splits waits for some to be found */
        if (*done || fz_mono_ns() >= end) return FZ_OK;
        wait_ready(r, end);
    }
}
