/* Rows made up at a given rate: what datagen and otel-demo share. One split, one reader. See paced.h. */
#include "source/paced.h"
#include <stdio.h>

typedef struct paced_chunk { fz_chunk chunk; fz_buf text; } paced_chunk;

void src_paced_init(src_paced *s, const src_ops *ops, const src_context *cx, const char *split, int64_t rate, int64_t rows) {
    src_base_init(&s->base, ops, cx);
    s->rate = rate;
    src_split *x = src_add_split(&s->base, split, NULL, 0);
    x->start_is_earliest = true;
    x->stop = rows;
    x->high = rows == INT64_MAX ? 0 : rows;
}

fz_status src_positive_option(const fz_pair *o, size_t n, const char *name, int64_t dflt, int64_t *out, fz_error *err) {
    const char *v = fz_pair_get(o, n, name);
    *out = dflt;
    if (v && (!fz_parse_i64(fz_sv_of(v), out) || *out <= 0)) return fz_fail(err, FZ_USER, "option.invalid", "option '%s': '%s' is no positive number", name, v);
    return FZ_OK;
}

fz_status src_paced_assign(src_source *base, uint32_t split, int64_t from, fz_error *err) {
    src_paced *s = (src_paced *)base;
    if (from < 0 || from > base->splits[split]->stop) return fz_fail(err, FZ_FATAL, "source.position", "there is no row %lld", (long long)from);
    s->pos = s->first = from;
    s->assigned = true;
    s->started_ns = fz_mono_ns();
    return FZ_OK;
}

fz_status src_paced_unassign_all(src_source *base, fz_error *err) {
    (void)err;
    ((src_paced *)base)->assigned = false;
    return FZ_OK;
}

static void chunk_release(fz_chunk *c) {
    paced_chunk *g = (paced_chunk *)c;
    fz_buf_free(&g->text);
    fz_free(c->rec);
    fz_free(g);
}

static fz_chunk *make_rows(src_paced *s, uint32_t n) {
    paced_chunk *g = FZ_NEW(paced_chunk);
    g->chunk = (fz_chunk){.n = n, .from = s->pos, .to = s->pos + n, .rec = fz_calloc(n, sizeof *g->chunk.rec), .release = chunk_release};
    int64_t now = s->dated ? fz_now_ms() : -1;
    for (uint32_t i = 0; i < n; i++) {
        size_t from = g->text.len;
        s->row(s, s->pos + i, &g->text);
        g->chunk.rec[i] = (fz_record){.value_len = (int32_t)(g->text.len - from), .key_len = -1, .offset = s->pos + i, .timestamp_ms = now};
    }
    const uint8_t *p = g->text.data; /* it has stopped moving */
    for (uint32_t i = 0; i < n; i++) {
        g->chunk.rec[i].value = p;
        p += g->chunk.rec[i].value_len;
    }
    g->chunk.bytes = g->text.len;
    s->pos += n;
    return &g->chunk;
}

/* Rows that the rate allows by now. */
static int64_t allowed(const src_paced *s) {
    double seconds = (double)(fz_mono_ns() - s->started_ns) / 1e9;
    double rows = seconds * (double)s->rate;
    return rows > 9e18 ? INT64_MAX : (int64_t)rows - (s->pos - s->first);
}

fz_status src_paced_poll(src_source *base, uint32_t reader, int64_t timeout_ms, fz_chunk **out, bool *done, fz_error *err) {
    src_paced *s = (src_paced *)base;
    (void)err;
    if (reader != src_reader_of(base, 0) || s->pos >= base->splits[0]->stop || !s->assigned) {
        *done = true;
        return FZ_OK;
    }
    int64_t left = base->splits[0]->stop - s->pos, n = allowed(s), want = s->rate / 20 + 1; /* about 20 chunks a second */
    if (want > FZ_BATCH_ROWS) want = FZ_BATCH_ROWS;
    if (want > left) want = left;
    if (n < want) {
        int64_t wait = (want - n) * 1000 / s->rate + 1;
        fz_sleep_ms(wait < timeout_ms ? wait : timeout_ms);
        n = allowed(s);
    }
    if (n > left) n = left;
    if (n > FZ_BATCH_ROWS) n = FZ_BATCH_ROWS;
    if (n > 0) *out = make_rows(s, (uint32_t)n);
    return FZ_OK;
}

/* Rows not made yet are none. */
void src_paced_drain(src_source *base) {
    src_paced *s = (src_paced *)base;
    if (s->pos < base->splits[0]->stop) base->splits[0]->stop = s->pos;
}
