/* The record before a position, read again (rule 7 of the commit protocol): is the log still the one that was read?
 *
 * A client of its own: seeking the reading client would drop its queues. It is made for the first question and closed when reading
 * begins, since a job asks about all its partitions before it reads. The log may
 * have gaps (control records, aborted ones, compaction), so the record wanted need not be at before - 1: windows that
 * grow back to the log's start are read until one holds a record.
 */
#include "source/kafka_int.h"

enum { PROBE_MS = 15000, FIRST_WINDOW = 1, GROWTH = 32 };

typedef struct probe { rd_kafka_t *rk; rd_kafka_topic_t *topic; const src_split *split; kafka_client *client; uint32_t max_record_size; } probe;

static void keep(const probe *p, const rd_kafka_message_t *m, src_probe *out) {
    fz_record r;
    kafka_record_of(m, p->max_record_size, &r);
    *out = (src_probe){SRC_PROBE_OK, r.offset, r.timestamp_ms, src_record_hash(&r)};
}

/* Takes messages until one at or beyond `before`, or the end of the log. */
static fz_status drain(const probe *p, rd_kafka_queue_t *q, int64_t before, src_probe *out, bool *found, fz_error *err) {
    int64_t end = fz_mono_ns() + (int64_t)PROBE_MS * 1000000;
    for (bool over = false; !over;) {
        rd_kafka_message_t *m[256];
        if (fz_mono_ns() > end)
            return kafka_request_error(p->client, RD_KAFKA_RESP_ERR__TIMED_OUT, "the record before the position cannot be read", err);
        ssize_t n = rd_kafka_consume_batch_queue(q, 100, m, 256);
        rd_kafka_poll(p->rk, 0);
        rd_kafka_resp_err_t e = RD_KAFKA_RESP_ERR_NO_ERROR;
        for (ssize_t i = 0; i < n; i++) {
            if (m[i]->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) over = true;
            else if (m[i]->err) e = m[i]->err;
            else if (m[i]->offset >= before) over = true;
            else {
                keep(p, m[i], out);
                *found = true;
                over = over || m[i]->offset == before - 1;
            }
            rd_kafka_message_destroy(m[i]);
        }
        if (e == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET || e == RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE)
            return fz_fail(err, FZ_RETRY, "kafka.offset-unsettled", "%s: the log moved while it was looked at", p->split->name);
        if (e) return kafka_request_error(p->client, e, "the record before the position cannot be read", err);
    }
    return FZ_OK;
}

static fz_status read_window(const probe *p, int64_t from, int64_t before, src_probe *out, bool *found, fz_error *err) {
    rd_kafka_queue_t *q = rd_kafka_queue_new(p->rk);
    fz_status rc = FZ_OK;
    if (rd_kafka_consume_start_queue(p->topic, p->split->partition, from, q) != 0)
        rc = kafka_request_error(p->client, rd_kafka_last_error(), "the record before the position cannot be read", err);
    else {
        rc = drain(p, q, before, out, found, err);
        rd_kafka_consume_stop(p->topic, p->split->partition);
    }
    rd_kafka_queue_destroy(q);
    return rc;
}

static fz_status look(const probe *p, int64_t before, src_probe *out, fz_error *err) {
    int64_t low = p->split->low;
    bool found = false;
    for (int64_t window = FIRST_WINDOW;; window = window > INT64_MAX / GROWTH ? INT64_MAX : window * GROWTH) {
        int64_t from = before - low > window ? before - window : low;
        FZ_TRY(read_window(p, from, before, out, &found, err));
        if (found) return FZ_OK;
        if (from == low) break;
    }
    out->result = SRC_PROBE_GONE; /* only gaps are left before the position */
    return FZ_OK;
}

fz_status kafka_probe_before(src_source *s, uint32_t split, int64_t before, src_probe *out, fz_error *err) {
    kafka_source *k = kafka_of(s);
    const src_split *sp = s->splits[split];
    FZ_TRY(kafka_bounds(s, split, err));
    if (before > sp->high) return out->result = SRC_PROBE_BEYOND, FZ_OK;
    if (before <= sp->low) return out->result = SRC_PROBE_GONE, FZ_OK;
    if (!k->probe) {
        kafka_limits limits = {4u << 20, 1};
        FZ_TRY(kafka_client_new(k->options, k->n_options, KAFKA_CLIENT_PROBE, &limits, &k->probe_client, &k->probe, err));
    }
    probe p = {.rk = k->probe, .split = sp, .client = &k->probe_client, .max_record_size = s->cx.max_record_size};
    p.topic = rd_kafka_topic_new(p.rk, sp->topic, NULL);
    fz_status rc = p.topic ? look(&p, before, out, err) : fz_fail(err, FZ_FATAL, "kafka.client", "%s cannot be read", sp->name);
    if (p.topic) rd_kafka_topic_destroy(p.topic);
    return rc;
}
