/* Listening connectors, the reading side: frames of the spool become chunks. See spooled.h.
 *
 * Nothing is copied: records point into frames, which their chunk keeps alive. A chunk takes frames until it has FZ_BATCH_ROWS records or CHUNK_BYTES; what is left of the last frame begins
 * the next chunk. Numbers that are lost or were never given are covered by a chunk's range.
 */
#include "source/spooled_int.h"
#include <inttypes.h>

enum { CHUNK_BYTES = 2 << 20, MOST_SPARE = 8 };

struct spooled_chunk {
    fz_chunk chunk;
    src_spooled *s;
    spool_view *views;
    uint32_t n_views, cap_views;
    spooled_chunk *next;
};

/* ---- chunks ---- */
static void chunk_free(spooled_chunk *c) {
    fz_free(c->chunk.rec);
    fz_free(c->views);
    fz_free(c);
}

static void chunk_release(fz_chunk *base) {
    spooled_chunk *c = (spooled_chunk *)base;
    src_spooled *s = c->s;
    for (uint32_t i = 0; i < c->n_views; i++) spool_view_release(&c->views[i]);
    c->n_views = 0;
    uint32_t n = 0;
    pthread_mutex_lock(&s->pool_lock);
    for (spooled_chunk *x = s->spare; x; x = x->next) n++;
    bool keep = n < MOST_SPARE;
    if (keep) {
        c->next = s->spare;
        s->spare = c;
    }
    pthread_mutex_unlock(&s->pool_lock);
    if (!keep) chunk_free(c);
}

static spooled_chunk *chunk_take(src_spooled *s, int64_t from) {
    pthread_mutex_lock(&s->pool_lock);
    spooled_chunk *c = s->spare;
    if (c) s->spare = c->next;
    pthread_mutex_unlock(&s->pool_lock);
    if (!c) {
        c = FZ_NEW(spooled_chunk);
        c->chunk.rec = fz_malloc(FZ_BATCH_ROWS * sizeof *c->chunk.rec);
        c->s = s;
    }
    fz_record *rec = c->chunk.rec;
    c->chunk = (fz_chunk){.from = from, .to = from, .rec = rec, .release = chunk_release};
    return c;
}

static fz_record record_of(const src_spooled *s, const spool_view *v, uint32_t i, const uint8_t *bytes) {
    fz_record r = {.value = bytes, .value_len = (int32_t)v->len[i], .key = v->context_len ? v->context : NULL, .key_len = v->context_len ? (int32_t)v->context_len : -1,
                   .offset = (int64_t)(v->first + i), .timestamp_ms = v->arrival_ms, .time_ns = v->time_ns && v->time_ns[i] != INT64_MIN ? v->time_ns[i] : 0, .timestamp_type = 2};
    if (v->len[i] > s->base.cx.max_record_size) {
        r.oversized = true;
        r.value = NULL;
    }
    return r;
}

/* Moves records of s->left into the chunk. The frame's hold goes with them when it is used up, else it is shared. */
static void fill(src_spooled *s, spooled_chunk *c) {
    spool_view *v = &s->left;
    fz_chunk *k = &c->chunk;
    const uint8_t *p = v->bytes;
    uint32_t i = 0;
    for (; i < v->n && k->n < FZ_BATCH_ROWS && k->bytes < CHUNK_BYTES; i++) {
        k->rec[k->n++] = record_of(s, v, i, p);
        k->bytes += v->len[i];
        p += v->len[i];
    }
    k->bytes += v->context_len;
    k->to = (int64_t)(v->first + i);
    FZ_GROW(c->views, c->n_views, c->cap_views);
    c->views[c->n_views++] = *v;
    if (i == v->n) {
        v->hold = NULL;
        return;
    }
    spool_view_share(v);
    v->bytes = p;
    v->len += i;
    if (v->time_ns) v->time_ns += i;
    v->n -= i;
    v->first += i;
    v->from = v->first;
}

fz_status src_spooled_poll(src_source *base, uint32_t reader, int64_t timeout_ms, fz_chunk **out, bool *done, fz_error *err) {
    src_spooled *s = (src_spooled *)base;
    bool mine = reader == src_reader_of(base, 0);
    *done = !mine || (atomic_load(&s->at) >= base->splits[0]->stop && base->splits[0]->stop != INT64_MAX); /* it ends only when it is drained */
    if (*done) return FZ_OK;
    if (!s->reader) {
        fz_sleep_ms(timeout_ms);
        return FZ_OK;
    }
    spooled_chunk *c = chunk_take(s, atomic_load(&s->at));
    while (c->chunk.n < FZ_BATCH_ROWS && c->chunk.bytes < CHUNK_BYTES) {
        bool got = s->left.hold != NULL;
        fz_status rc = got ? FZ_OK : spool_next(s->reader, c->chunk.n ? 0 : timeout_ms, &s->left, &got, err);
        if (rc != FZ_OK && !c->chunk.n) {
            chunk_release(&c->chunk);
            return rc;
        }
        if (rc != FZ_OK || !got) break; /* a failure comes again when this chunk has been taken */
        fill(s, c);
    }
    if (c->chunk.to > c->chunk.from) {
        atomic_store(&s->at, c->chunk.to);
        *out = &c->chunk;
    } else chunk_release(&c->chunk);
    return FZ_OK;
}

/* ---- positions ---- */
static void leave(src_spooled *s) {
    if (s->left.hold) spool_view_release(&s->left);
    s->left = (spool_view){0};
    spool_reader_free(s->reader);
    s->reader = NULL;
}
void spooled_reading_free(src_spooled *s) {
    leave(s);
    for (spooled_chunk *c = s->spare, *next; c; c = next) {
        next = c->next;
        chunk_free(c);
    }
    s->spare = NULL;
}

fz_status src_spooled_assign(src_source *base, uint32_t split, int64_t from, fz_error *err) {
    src_spooled *s = (src_spooled *)base;
    (void)split;
    if (!s->spool) return fz_fail(err, FZ_FATAL, "source.only-looked-at", "table %s was opened to look at, not to read", base->cx.table);
    leave(s);
    s->reader = spool_reader_new(s->spool, from < 0 ? 0 : (uint64_t)from);
    atomic_store(&s->at, from < 0 ? 0 : from);
    return FZ_OK;
}
fz_status src_spooled_unassign_all(src_source *base, fz_error *err) {
    (void)err;
    leave((src_spooled *)base);
    return FZ_OK;
}

fz_status src_spooled_bounds(src_source *base, uint32_t split, fz_error *err) {
    src_spooled *s = (src_spooled *)base;
    (void)err;
    if (!s->spool) return FZ_OK; /* as they were looked up */
    base->splits[split]->low = (int64_t)spool_low(s->spool);
    base->splits[split]->high = (int64_t)spool_durable(s->spool);
    return FZ_OK;
}

fz_status src_spooled_probe_before(src_source *base, uint32_t split, int64_t before, src_probe *out, fz_error *err) {
    src_spooled *s = (src_spooled *)base;
    out->result = SRC_PROBE_GONE;
    if (!s->spool) return FZ_OK;
    FZ_TRY(src_spooled_bounds(base, split, err));
    if (before > base->splits[split]->high) return out->result = SRC_PROBE_BEYOND, FZ_OK;
    if (before <= base->splits[split]->low) return FZ_OK;
    spool_view v;
    bool got;
    FZ_TRY(spool_last_before(s->spool, (uint64_t)before, &v, &got, err));
    if (!got) return FZ_OK;
    const uint8_t *p = v.bytes;
    for (uint32_t i = 0; i + 1 < v.n; i++) p += v.len[i];
    fz_record r = record_of(s, &v, v.n - 1, p);
    *out = (src_probe){SRC_PROBE_OK, r.offset, r.timestamp_ms, src_record_hash(&r)};
    spool_view_release(&v);
    return FZ_OK;
}

fz_status src_spooled_report(src_source *base, const uint32_t *splits, const int64_t *offsets, uint32_t n, fz_error *err) {
    src_spooled *s = (src_spooled *)base;
    (void)splits; /* there is one */
    return s->spool && n && offsets[0] > 0 ? spool_trim(s->spool, (uint64_t)offsets[0], err) : FZ_OK;
}
int64_t src_spooled_arrival(src_source *base, uint32_t split, int64_t at) {
    src_spooled *s = (src_spooled *)base;
    (void)split; /* there is one */
    if (at < 0) at = atomic_load(&s->at);
    return s->spool ? spool_arrival_ms(s->spool, (uint64_t)at) : 0;
}
uint64_t src_spooled_behind(src_source *base, uint32_t split, int64_t at) {
    src_spooled *s = (src_spooled *)base;
    (void)split; /* there is one */
    return s->spool ? spool_records_from(s->spool, (uint64_t)(at >= 0 ? at : atomic_load(&s->at))) : 0;
}
