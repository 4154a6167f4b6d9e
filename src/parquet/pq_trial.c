/* How a column's pages are packed where zstd's level is left open: by trial.
 *
 * Of a column's first page, and then of one of 32, 64, ... 256, the beginning is packed at level 3 and then in the faster ways, the fastest ones first, until one is larger by at most 2.5 %; it is kept until the next
 * trial. Most of a log's columns lose nothing, or get smaller: random identifiers are packed at 120 MB/s by level 3, at 500 MB/s by entropy coding alone and at 6 GB/s as hexadecimal digits; lines made from
 * templates at 350 to 500 MB/s by levels 3 and 1, at 650 to 800 MB/s with a table that fits into the first-level cache.
 * A level that the options give is used as it is.
 */
#include "parquet/parquet_int.h"

enum { LEAST = 4 << 10, SAMPLE = 64 << 10, FIRST_PAUSE = 32, LAST_PAUSE = 256, PROBES = 8, TOLERANCE = 40 }; /* larger by less than a TOLERANCEth is as small */

static pq_tried *tried_of(pq_codec *c, uint64_t key) {
    pq_tried *t = NULL;
    for (uint32_t i = 0; i < PROBES; i++) {
        t = &c->tried[(key + i) % PQ_TRIED];
        if (t->key == key) return t;
        if (!t->pause) break;
    }
    if (t->pause) t = &c->tried[key % PQ_TRIED]; /* crowded: the first one is forgotten */
    *t = (pq_tried){.key = key};
    return t;
}
static fz_status packed_size(pq_codec *c, pq_way way, const void *p, size_t n, size_t *size, fz_error *err) {
    c->comp.len = 0;
    FZ_TRY(pq_compress_way(c, way, p, n, err));
    *size = c->comp.len;
    return FZ_OK;
}
static size_t pack_hex(pq_codec *c, const void *p, size_t n, size_t head) {
    if (head == SIZE_MAX) return 0;
    fz_buf_reserve(&c->comp, n + 64);
    return c->comp.len = pq_hex_frame(c->comp.data, p, n, head);
}
static fz_status choose_level(pq_codec *c, const void *p, size_t n, pq_way *way, fz_error *err) {
    static const pq_way faster[4][2] = {{PQ_WAY_ENTROPY, PQ_WAY_ENTROPY}, {PQ_WAY_LONG_FAST, PQ_WAY_LINES_FAST}, {PQ_WAY_LONG, PQ_WAY_LINES}, {PQ_WAY_FAST, PQ_WAY_FAST}};
    size_t level, most, size, other;
    FZ_TRY(packed_size(c, PQ_WAY_LEVEL, p, n, &level, err));
    most = level + level / TOLERANCE;
    for (int i = level > n / 3 ? 0 : 1; i < 4; i++) {
        pq_way a = faster[i][0], b = faster[i][1];
        FZ_TRY(packed_size(c, a, p, n, &size, err));
        other = size;
        if (b != a) FZ_TRY(packed_size(c, b, p, n, &other, err));
        if (size > most && other > most) continue;
        *way = other < size ? b : a;
        return FZ_OK;
    }
    *way = PQ_WAY_LEVEL;
    return FZ_OK;
}
static fz_status choose(pq_codec *c, pq_tried *t, const void *p, size_t n, size_t head, fz_error *err) {
    size_t sample = n < SAMPLE ? n : SAMPLE, size, hex = pack_hex(c, p, n, head);
    pq_way way = PQ_WAY_LEVEL, before = (pq_way)t->way;
    if (hex) { /* is there more to find, values that come again or begin alike? */
        FZ_TRY(packed_size(c, PQ_WAY_FAST, p, sample, &size, err));
        if ((double)hex / (double)n < (double)size / (double)sample) way = PQ_WAY_HEX;
    }
    if (way != PQ_WAY_HEX) FZ_TRY(choose_level(c, p, sample, &way, err));
    bool again = t->pause && way == before;
    t->pause = !again ? FIRST_PAUSE : t->pause < LAST_PAUSE ? (uint16_t)(t->pause * 2) : LAST_PAUSE;
    t->left = t->pause;
    t->way = (uint8_t)way;
    return FZ_OK;
}

fz_status pq_compress_page(pq_codec *c, const pq_options *o, uint64_t key, const void *p, size_t n, size_t head, fz_sv *out, fz_error *err) {
    if (o->compression != PQ_ZSTD || o->compression_level || n < LEAST) return pq_compress(c, o->compression, o->compression_level, p, n, out, err);
    pq_tried *t = tried_of(c, key);
    if (!t->left) FZ_TRY(choose(c, t, p, n, head, err));
    t->left--;
    c->comp.len = 0;
    if (t->way != PQ_WAY_HEX) FZ_TRY(pq_compress_way(c, (pq_way)t->way, p, n, err));
    else if (!pack_hex(c, p, n, head)) FZ_TRY(pq_compress_way(c, PQ_WAY_FAST, p, n, err)); /* other values among them */
    *out = (fz_sv){(const char *)c->comp.data, c->comp.len};
    return FZ_OK;
}
