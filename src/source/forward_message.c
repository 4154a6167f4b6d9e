/* Messages of the forward protocol: their parts, and their events. See forward_int.h.
 *
 *   [tag, time, record, option?]               Message
 *   [tag, [[time, record], ...], option?]      Forward
 *   [tag, bin or str of entries, option?]      PackedForward; compressed: "gzip" or "zstd" in the option
 *   nil                                        keep-alive
 * An entry's time is an integer, a float, an EventTime, or [time, metadata] (Fluent Bit 2 and later); nil and 0 mean that the event has none, as in fluentd, which then takes the time of arrival.
 *
 * Source: Forward Protocol Specification v1; the behaviour of fluentd's in_forward and Fluent Bit's in_forward where the specification is silent.
 */
#include "source/forward_int.h"
#include <math.h>

#define NS 1000000000ll

static fz_status odd(fz_error *err, const char *what) { return fz_fail(err, FZ_DATA, "forward.message", "%s", what); }

static bool is_text(const mp_item *v) { return v->type == MP_STR || v->type == MP_BIN; }
static fz_sv text_of(const mp_item *v) { return (fz_sv){(const char *)v->p, v->n}; }

static fz_status take_coding(const mp_item *v, fwd_message *m, fz_error *err) {
    fz_sv s = is_text(v) ? text_of(v) : FZ_SV("");
    if (v->type == MP_NIL || fz_sv_ieq(s, FZ_SV("text"))) m->coding = FWD_PLAIN;
    else if (fz_sv_ieq(s, FZ_SV("gzip"))) m->coding = FWD_GZIP;
    else if (fz_sv_ieq(s, FZ_SV("zstd"))) m->coding = FWD_ZSTD;
    else return fz_fail(err, FZ_DATA, "forward.coding", "the option 'compressed' is '%.*s': gzip, zstd and text are known", (int)(s.n > 40 ? 40 : s.n), s.p);
    return FZ_OK;
}

static fz_status take_option(const uint8_t *p, const uint8_t *end, fwd_message *m, fz_error *err) {
    mp_item map, k, v;
    if (mp_read(&p, end, &map) != MP_OK || map.type == MP_NIL) return FZ_OK;
    if (map.type != MP_MAP) return odd(err, "the option is not a map");
    for (uint32_t i = 0; i < map.n; i++) {
        const uint8_t *value;
        if (mp_read(&p, end, &k) != MP_OK) return odd(err, "the option is broken");
        if (k.type == MP_ARRAY || k.type == MP_MAP) return odd(err, "a key of the option is not a text");
        value = p;
        if (mp_skip(&p, end) != MP_OK || mp_read(&value, end, &v) != MP_OK) return odd(err, "the option is broken");
        fz_sv name = is_text(&k) ? text_of(&k) : FZ_SV("");
        if (fz_sv_eq(name, FZ_SV("compressed"))) FZ_TRY(take_coding(&v, m, err));
        else if (fz_sv_eq(name, FZ_SV("fluent_signal")) && v.type == MP_INT) m->signal = v.i;
        else if (fz_sv_eq(name, FZ_SV("chunk")) && v.type != MP_NIL) {
            if (!is_text(&v) || v.n > FWD_MAX_CHUNK_ID) return odd(err, "the option 'chunk' is not a text, or too long");
            m->has_chunk = true;
            m->chunk_is_bin = v.type == MP_BIN;
            m->chunk = text_of(&v);
        }
    }
    return FZ_OK;
}

fz_status fwd_parse(const uint8_t *p, size_t n, fwd_message *m, fz_error *err) {
    const uint8_t *end = p + n, *at;
    mp_item a, v;
    *m = (fwd_message){0};
    if (mp_read(&p, end, &a) != MP_OK) return odd(err, "a message is cut off");
    if (a.type == MP_NIL) return m->mode = FWD_KEEP_ALIVE, FZ_OK;
    if (a.type != MP_ARRAY) return odd(err, "a message is neither an array nor nil");
    if (a.n < 2) return odd(err, "a message has fewer than two items");
    if (mp_read(&p, end, &v) != MP_OK || !is_text(&v)) return odd(err, "the tag of a message is not a text");
    m->tag = text_of(&v);
    at = p;
    if (mp_read(&p, end, &v) != MP_OK) return odd(err, "a message is cut off");
    uint32_t used = 2;
    m->n = a.n;
    if (v.type == MP_ARRAY) {
        m->mode = FWD_FORWARD;
        m->events = p;
        m->n = v.n;
        p = at;
        if (mp_skip(&p, end) != MP_OK) return odd(err, "a message is cut off");
        m->end = p;
    } else if (is_text(&v) && a.n <= 3) {
        m->mode = FWD_PACKED;
        m->events = v.p;
        m->end = v.p + v.n;
    } else if (is_text(&v)) return m->mode = FWD_CONTROL, FZ_OK;
    else {
        if (a.n < 3) return odd(err, "a message has a time and no record");
        m->mode = FWD_MESSAGE;
        m->events = p = at;
        if (mp_skip(&p, end) != MP_OK || mp_skip(&p, end) != MP_OK) return odd(err, "a message is cut off");
        m->end = p;
        used = 3;
    }
    return a.n > used ? take_option(p, end, m, err) : FZ_OK;
}

/* ---- times ---- */

static bool from_seconds(int64_t s, int64_t ns, int64_t *out) {
    if (s > INT64_MAX / NS - 1 || s < INT64_MIN / NS + 1) return false;
    *out = s * NS + ns;
    return true;
}

static bool from_float(double s, int64_t *out) {
    double whole = floor(s);
    return whole >= -9e9 && whole <= 9e9 && from_seconds((int64_t)whole, (int64_t)llround((s - whole) * 1e9), out);
}

static uint32_t be32(const uint8_t *p) { return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]; }

bool fwd_time(const uint8_t **p, const uint8_t *end, int64_t *ns) {
    mp_item v;
    const uint8_t *from = *p;
    if (end - from >= 10 && from[0] == 0xd7 && from[1] == 0) { /* nearly always */
        *p = from + 10;
        return be32(from + 6) < NS && from_seconds(be32(from + 2), be32(from + 6), ns);
    }
    if (mp_read(p, end, &v) != MP_OK) return false;
    if (v.type == MP_ARRAY) { /* [time, metadata] */
        const uint8_t *inner = *p, *look = inner;
        bool pair = v.n == 2 && mp_read(&look, end, &v) == MP_OK && v.type != MP_ARRAY;
        *p = from;
        return mp_skip(p, end) == MP_OK && pair && fwd_time(&inner, *p, ns);
    }
    *ns = 0;
    switch (v.type) {
    case MP_NIL: return true;
    case MP_INT: return from_seconds(v.i, 0, ns);
    case MP_FLOAT: case MP_DOUBLE: return from_float(v.d, ns);
    case MP_EXT: return v.ext == 0 && v.n == 8 && be32(v.p + 4) < NS && from_seconds(be32(v.p), be32(v.p + 4), ns);
    case MP_MAP:
        *p = from;
        (void)mp_skip(p, end);
        return false;
    default: return false;
    }
}

/* ---- events ---- */

void fwd_batch_reset(fwd_batch *b) {
    b->bytes = b->tags.len = b->answers.len = 0;
    b->n = b->n_runs = b->broken = b->messages = b->acks = 0;
    b->shape = (mp_shape){0};
}
void fwd_batch_free(fwd_batch *b) {
    fz_buf_free(&b->tags);
    fz_buf_free(&b->answers);
    fz_free(b->at);
    fz_free(b->len);
    fz_free(b->time_ns);
    fz_free(b->runs);
    fz_free(b->frames);
    *b = (fwd_batch){0};
}

spool_frame *fwd_frames(fwd_batch *b, int64_t arrival_ms) {
    if (b->n_runs) FZ_GROW(b->frames, b->n_runs - 1, b->cap_frames);
    for (uint32_t i = 0; i < b->n_runs; i++) {
        const fwd_run *r = &b->runs[i];
        b->frames[i] = (spool_frame){.context = b->tags.data + r->tag, .context_len = r->tag_len, .n = r->n, .arrival_ms = arrival_ms, .len = b->len + r->first, .time_ns = b->time_ns + r->first, .at = b->at + r->first};
    }
    return b->frames;
}

static void begin_run(fwd_batch *b, fz_sv tag) {
    if (b->n_runs) {
        const fwd_run *r = &b->runs[b->n_runs - 1];
        if (r->tag_len == tag.n && memcmp(b->tags.data + r->tag, tag.p, tag.n) == 0) return;
    }
    FZ_GROW(b->runs, b->n_runs, b->cap_runs);
    b->runs[b->n_runs++] = (fwd_run){.tag = b->tags.len, .tag_len = (uint32_t)tag.n, .first = b->n};
    fz_buf_append(&b->tags, tag.p, tag.n);
    if (!b->tags.data) fz_buf_reserve(&b->tags, 1);
}

static inline void add(fwd_batch *b, const uint8_t *p, size_t n, int64_t ns) {
    if (b->n == b->cap) {
        b->cap = b->cap ? b->cap * 2 : 1024;
        b->at = fz_realloc(b->at, b->cap * sizeof *b->at);
        b->len = fz_realloc(b->len, b->cap * sizeof *b->len);
        b->time_ns = fz_realloc(b->time_ns, b->cap * sizeof *b->time_ns);
    }
    b->at[b->n] = p;
    b->len[b->n] = (uint32_t)n;
    b->time_ns[b->n++] = ns;
    b->bytes += n;
    b->runs[b->n_runs - 1].n++;
}

/* An event that cannot be one: its bytes as they are, or what is left of them. An empty record would say nothing: it is kept as nil. */
static void add_broken(fwd_batch *b, const uint8_t *p, size_t n) {
    static const uint8_t nil = 0xc0;
    add(b, n ? p : &nil, n ? n : 1, INT64_MIN);
    b->broken++;
}

fwd_walk fwd_walk_of(const fwd_message *m, const uint8_t *payload, size_t n) {
    if (m->mode == FWD_PACKED) return (fwd_walk){.p = payload, .end = payload + n, .mode = m->mode};
    return (fwd_walk){.p = m->events, .end = m->end, .left = m->mode == FWD_FORWARD ? m->n : 1, .mode = m->mode};
}

static inline bool is_map(uint8_t c) { return (c & 0xf0) == 0x80 || c == 0xde || c == 0xdf; }

/* One event into the batch, or passed over. Afterwards w->p is behind it; at the end where the bytes cannot be divided. */
static inline void one(fwd_walk *w, fwd_batch *b, bool skip) {
    const uint8_t *from = w->p, *p = from, *record;
    int64_t ns;
    bool good = true;
    if (w->mode != FWD_MESSAGE) {
        if (*p != 0x92) { /* not [time, record] in its usual form */
            mp_item a;
            good = mp_read(&p, w->end, &a) == MP_OK && a.type == MP_ARRAY && a.n == 2;
        } else p++;
    }
    if (good) {
        good = fwd_time(&p, w->end, &ns) && p < w->end && is_map(*p);
        record = p;
        if (good && mp_skip_like(&p, w->end, &b->shape) == MP_OK) {
            if (!skip) add(b, record, (size_t)(p - record), ns ? ns : INT64_MIN);
            w->p = p;
            return;
        }
    }
    p = from;
    mp_result r = mp_skip(&p, w->end);
    if (r == MP_OK && w->mode == FWD_MESSAGE) r = mp_skip(&p, w->end);
    w->p = r == MP_OK ? p : w->end; /* no way to tell where the next one begins: the rest is one record */
    if (!skip) add_broken(b, from, (size_t)(w->p - from));
}

bool fwd_gather(fwd_walk *w, fwd_batch *b, fz_sv tag, uint32_t *skip) {
    bool counted = w->mode != FWD_PACKED;
    bool more = false;
    begin_run(b, tag);
    while (w->p < w->end && (!counted || w->left)) {
        more = b->bytes >= FWD_PIECE;
        if (more) break;
        bool pass = *skip > 0;
        one(w, b, pass);
        *skip -= pass;
        w->left--;
    }
    if (!b->runs[b->n_runs - 1].n) b->n_runs--; /* nothing came */
    return more;
}

void fwd_put_ack(fz_buf *b, const fwd_message *m) {
    mp_put_map(b, 1);
    mp_put_str(b, "ack", 3);
    if (m->chunk_is_bin) mp_put_bin(b, m->chunk.p, m->chunk.n);
    else mp_put_str(b, m->chunk.p, m->chunk.n);
}
