/* Log events and their batches: at most 1,048,576 bytes (26 for each event and its message), 10,000 events, 24 hours, in the order of time. See logs_int.h. */
#include "delivery/logs_int.h"
#include <stdlib.h>

void logs_add(logs_events *e, int64_t ms, const void *p, size_t n) {
    FZ_GROW(e->v, e->n, e->cap);
    e->v[e->n] = (logs_event){.ms = ms, .at = e->text.len, .n = (uint32_t)n, .seq = e->n};
    e->n++;
    fz_buf_append(&e->text, p, n);
}

static int by_time(const void *x, const void *y) {
    const logs_event *a = x, *b = y;
    if (a->ms != b->ms) return a->ms < b->ms ? -1 : 1;
    return a->seq < b->seq ? -1 : a->seq > b->seq;
}

void logs_prepare(logs_events *e) {
    if (e->n > 1) qsort(e->v, e->n, sizeof *e->v, by_time);
    for (uint32_t i = 0; i < e->n; i++) {
        logs_event *v = &e->v[i];
        v->refused = v->n == 0 ? "logs.empty-message" : v->n > LOGS_MESSAGE_MAX ? "logs.message-too-large" : NULL;
        v->sendable = !v->refused;
    }
}

uint32_t logs_batch_end(const logs_events *e, uint32_t from) {
    uint64_t bytes = 0;
    uint32_t i = from, events = 0;
    int64_t first = 0;
    for (; i < e->n; i++) {
        const logs_event *v = &e->v[i];
        if (!v->sendable) continue;
        if (!events) first = v->ms;
        bytes += v->n + LOGS_EVENT_EXTRA;
        if (++events > LOGS_BATCH_EVENTS || bytes > LOGS_BATCH_BYTES || v->ms - first > LOGS_BATCH_SPAN_MS) break;
    }
    return i;
}

void logs_free(logs_events *e) {
    fz_buf_free(&e->text);
    fz_free(e->v);
    *e = (logs_events){0};
}
