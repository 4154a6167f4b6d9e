/* Values of a page by encoding (Encodings.md): PLAIN, RLE booleans, dictionary indices, the DELTA family, BYTE_STREAM_SPLIT.
 * p and n are what is left of the page; nothing beyond is touched. */
#include "parquet/pq_read_int.h"

static fz_status short_page(fz_error *err) { return pq_corrupt(err, "a page is shorter than its values"); }
static fz_status too_large(fz_error *err) { return fz_fail(err, FZ_FATAL, "parquet.too-large", "a column of a row group has more than %u bytes", PQ_MAX_VECTOR); }

/* ---- room ---- */
static void *grow(fz_arena *a, void *p, size_t *cap, size_t need, size_t expected) {
    if (need <= *cap) return p;
    size_t n = *cap ? *cap + *cap / 2 : expected;
    if (n < need) n = need;
    p = fz_arena_realloc(a, p, *cap, n);
    *cap = n;
    return p;
}
static uint8_t *room_fixed(pq_values *v, uint32_t nv, fz_arena *a) {
    v->fix = grow(a, v->fix, &v->cap, ((size_t)v->n + nv) * v->width, v->width <= 16 ? (size_t)v->expect * v->width : 0);
    return v->fix + (size_t)v->n * v->width;
}
static bool room_bytes(pq_values *v, uint32_t nv, size_t bytes, fz_arena *a) {
    if (v->data_n + bytes > PQ_MAX_VECTOR) return false;
    bool first = !v->off;
    v->off = grow(a, v->off, &v->off_cap, ((size_t)v->n + nv + 1) * 4, ((size_t)v->expect + 1) * 4);
    if (first) v->off[0] = 0;
    v->data = grow(a, v->data, &v->data_cap, v->data_n + bytes, v->expect_bytes);
    return true;
}
static void put_bytes(pq_values *v, const void *p, uint32_t len) {
    if (len) memcpy(v->data + v->data_n, p, len);
    v->data_n += len;
    v->off[++v->n] = (uint32_t)v->data_n;
}

/* ---- PLAIN, RLE, BYTE_STREAM_SPLIT ---- */
static fz_status plain_bytes(pq_values *v, const uint8_t *p, size_t n, uint32_t nv, fz_arena *a, fz_error *err) {
    if (n / 4 < nv) return short_page(err);
    if (!room_bytes(v, nv, n, a)) return too_large(err);
    const uint8_t *end = p + n;
    for (uint32_t i = 0; i < nv; i++) {
        uint32_t len;
        if (end - p < 4) return short_page(err);
        memcpy(&len, p, 4);
        p += 4;
        if (len > (size_t)(end - p)) return short_page(err);
        put_bytes(v, p, len);
        p += len;
    }
    return FZ_OK;
}
static fz_status plain(pq_values *v, int phys, const uint8_t *p, size_t n, uint32_t nv, fz_arena *a, fz_error *err) {
    if (phys == PQ_BYTE_ARRAY) return plain_bytes(v, p, n, nv, a, err);
    if (phys == PQ_BOOLEAN) {
        if (n < ((size_t)nv + 7) / 8) return short_page(err);
        uint8_t *to = room_fixed(v, nv, a);
        for (uint32_t i = 0; i < nv; i++) to[i] = p[i >> 3] >> (i & 7) & 1;
    } else {
        if (n / v->width < nv) return short_page(err);
        uint8_t *to = room_fixed(v, nv, a);
        if (nv) memcpy(to, p, (size_t)nv * v->width);
    }
    v->n += nv;
    return FZ_OK;
}
static fz_status rle_booleans(pq_values *v, const uint8_t *p, size_t n, uint32_t nv, fz_arena *a, fz_error *err) {
    uint32_t len, tmp[256];
    if (n < 4) return short_page(err);
    memcpy(&len, p, 4);
    if (len > n - 4) return short_page(err);
    pq_rle_in r;
    pq_rle_open(&r, p + 4, len, 1);
    uint8_t *to = room_fixed(v, nv, a);
    for (uint32_t at = 0, m; at < nv; at += m) {
        m = nv - at < 256 ? nv - at : 256;
        if (!pq_rle_read(&r, tmp, m)) return short_page(err);
        for (uint32_t i = 0; i < m; i++) to[at + i] = (uint8_t)(tmp[i] & 1);
    }
    v->n += nv;
    return FZ_OK;
}
static fz_status stream_split(pq_values *v, const uint8_t *p, size_t n, uint32_t nv, fz_arena *a, fz_error *err) {
    if (n / v->width < nv) return short_page(err);
    uint8_t *to = room_fixed(v, nv, a);
    for (uint32_t i = 0; i < nv; i++)
        for (uint32_t b = 0; b < v->width; b++) *to++ = p[(size_t)b * nv + i];
    v->n += nv;
    return FZ_OK;
}

/* ---- DELTA_BINARY_PACKED ---- */
typedef struct delta_in { tc_in in; uint64_t block, mini, count, seen; int64_t last; } delta_in;
static int64_t zigzag(tc_in *in) {
    uint64_t u = tc_read_varint(in);
    return (int64_t)(u >> 1) ^ -(int64_t)(u & 1);
}
static bool delta_open(delta_in *d, const uint8_t *p, size_t n) {
    *d = (delta_in){.in = tc_in_on(p, n)};
    d->block = tc_read_varint(&d->in);
    d->mini = tc_read_varint(&d->in);
    d->count = tc_read_varint(&d->in);
    d->last = zigzag(&d->in);
    if (d->in.bad || !d->block || d->block > (1u << 20) || !d->mini || d->mini > d->block || d->block % d->mini) return false;
    return (d->block / d->mini) % 8 == 0 && d->count <= PQ_MAX_GROUP_VALUES;
}
static uint64_t unpack(const uint8_t *p, uint64_t bit, unsigned width) {
    uint64_t v = 0;
    for (unsigned got = 0; got < width;) {
        unsigned sh = (unsigned)(bit & 7), take = 8 - sh < width - got ? 8 - sh : width - got;
        v |= (uint64_t)(p[bit >> 3] >> sh & ((1u << take) - 1)) << got;
        got += take;
        bit += take;
    }
    return v;
}
/* All values to out (count of them); leaves d->in.p behind the last block. */
static bool delta_read(delta_in *d, int64_t *out) {
    uint64_t per = d->block / d->mini;
    if (d->count) out[d->seen++] = d->last;
    while (d->seen < d->count) {
        int64_t least = zigzag(&d->in);
        const uint8_t *widths = d->in.p;
        if (d->in.bad || (uint64_t)(d->in.end - d->in.p) < d->mini) return false;
        d->in.p += d->mini;
        for (uint64_t m = 0; m < d->mini && d->seen < d->count; m++) {
            unsigned width = widths[m];
            uint64_t bytes = per / 8 * width, avail = (uint64_t)(d->in.end - d->in.p), want = d->count - d->seen < per ? d->count - d->seen : per;
            if (width > 64 || avail * 8 < want * width) return false;
            for (uint64_t i = 0; i < want; i++) {
                uint64_t delta = (uint64_t)least + unpack(d->in.p, i * width, width);
                d->last = (int64_t)((uint64_t)d->last + delta);
                out[d->seen++] = d->last;
            }
            d->in.p += bytes < avail ? bytes : avail;
        }
    }
    return true;
}
static int64_t *delta_all(const uint8_t *p, size_t n, uint32_t nv, fz_arena *a, const uint8_t **rest) {
    delta_in d;
    if (!delta_open(&d, p, n) || d.count != nv) return NULL;
    int64_t *x = fz_arena_alloc(a, ((size_t)nv + 1) * sizeof *x);
    if (!delta_read(&d, x)) return NULL;
    *rest = d.in.p;
    return x;
}
static fz_status delta_ints(pq_values *v, const uint8_t *p, size_t n, uint32_t nv, fz_arena *a, fz_error *err) {
    const uint8_t *rest;
    int64_t *x = delta_all(p, n, nv, a, &rest);
    if (!x) return pq_corrupt(err, "a DELTA_BINARY_PACKED page");
    uint8_t *to = room_fixed(v, nv, a);
    for (uint32_t i = 0; i < nv; i++) {
        int32_t narrow = (int32_t)(uint32_t)(uint64_t)x[i];
        if (v->width == 4) memcpy(to + (size_t)i * 4, &narrow, 4);
        else memcpy(to + (size_t)i * 8, &x[i], 8);
    }
    v->n += nv;
    return FZ_OK;
}
static fz_status delta_lengths(pq_values *v, const uint8_t *p, size_t n, uint32_t nv, fz_arena *a, fz_error *err) {
    const uint8_t *rest, *end = p + n;
    int64_t *len = delta_all(p, n, nv, a, &rest);
    if (!len) return pq_corrupt(err, "a DELTA_LENGTH_BYTE_ARRAY page");
    if (!room_bytes(v, nv, (size_t)(end - rest), a)) return too_large(err);
    for (uint32_t i = 0; i < nv; i++) {
        if (len[i] < 0 || len[i] > end - rest) return short_page(err);
        put_bytes(v, rest, (uint32_t)len[i]);
        rest += len[i];
    }
    return FZ_OK;
}
static fz_status delta_bytes(pq_values *v, int phys, const uint8_t *p, size_t n, uint32_t nv, fz_arena *a, fz_error *err) {
    const uint8_t *rest;
    int64_t *prefix = delta_all(p, n, nv, a, &rest);
    if (!prefix) return pq_corrupt(err, "a DELTA_BYTE_ARRAY page");
    pq_values suffix = {0};
    FZ_TRY(delta_lengths(&suffix, rest, (size_t)(p + n - rest), nv, a, err));
    uint64_t total = suffix.data_n, last_len = 0;
    for (uint32_t i = 0; i < nv; i++) {
        if (prefix[i] < 0 || (uint64_t)prefix[i] > last_len) return pq_corrupt(err, "a DELTA_BYTE_ARRAY prefix is longer than the value before");
        last_len = (uint64_t)prefix[i] + suffix.off[i + 1] - suffix.off[i];
        total += (uint64_t)prefix[i];
        if (total > PQ_MAX_VECTOR) return too_large(err);
        if (phys == PQ_FLBA && last_len != v->width) return pq_corrupt(err, "a DELTA_BYTE_ARRAY value has another length than its type");
    }
    pq_values out = {0};
    if (!room_bytes(&out, nv, total, a)) return too_large(err);
    for (uint32_t i = 0; i < nv; i++) {
        uint32_t from = i ? out.off[i - 1] : 0, len = (uint32_t)prefix[i], more = suffix.off[i + 1] - suffix.off[i];
        if (len) memcpy(out.data + out.data_n, out.data + from, len);
        out.data_n += len;
        put_bytes(&out, suffix.data + suffix.off[i], more);
    }
    if (phys == PQ_FLBA) return plain(v, phys, out.data, out.data_n, nv, a, err);
    if (!room_bytes(v, nv, out.data_n, a)) return too_large(err);
    for (uint32_t i = 0; i < nv; i++) put_bytes(v, out.data + out.off[i], out.off[i + 1] - out.off[i]);
    return FZ_OK;
}

/* ---- dictionary ---- */
fz_status pq_values_append_indices(pq_values *v, const uint8_t *p, size_t n, uint32_t nv, fz_arena *a, fz_error *err) {
    if (!nv) return FZ_OK;
    if (!v->dict) return pq_corrupt(err, "a dictionary-encoded page without a dictionary");
    if (!n || p[0] > 32) return pq_corrupt(err, "a dictionary index has more than 32 bits");
    pq_rle_in r;
    pq_rle_open(&r, p + 1, n - 1, p[0]);
    v->idx = grow(a, v->idx, &v->cap, ((size_t)v->n + nv) * 4, (size_t)v->expect * 4);
    uint32_t *to = v->idx + v->n;
    if (!pq_rle_read(&r, to, nv)) return short_page(err);
    for (uint32_t i = 0; i < nv; i++)
        if (to[i] >= v->dict->n) return pq_corrupt(err, "a dictionary index is outside of its dictionary");
    v->n += nv;
    return FZ_OK;
}
fz_status pq_values_expand(pq_values *v, fz_arena *a, fz_error *err) {
    if (!v->idx) return FZ_OK;
    pq_values out = {.width = v->width, .dict = v->dict, .expect = v->expect, .expect_bytes = v->expect_bytes};
    const pq_values *d = v->dict;
    if (v->width) {
        if ((uint64_t)v->n * v->width > PQ_MAX_VECTOR) return too_large(err);
        uint8_t *to = room_fixed(&out, v->n, a);
        for (uint32_t i = 0; i < v->n; i++) memcpy(to + (size_t)i * v->width, d->fix + (size_t)v->idx[i] * v->width, v->width);
        out.n = v->n;
    } else {
        uint64_t total = 0;
        for (uint32_t i = 0; i < v->n; i++) total += d->off[v->idx[i] + 1] - d->off[v->idx[i]];
        if (total > PQ_MAX_VECTOR || !room_bytes(&out, v->n, total, a)) return too_large(err);
        for (uint32_t i = 0; i < v->n; i++) put_bytes(&out, d->data + d->off[v->idx[i]], d->off[v->idx[i] + 1] - d->off[v->idx[i]]);
    }
    *v = out;
    return FZ_OK;
}

fz_status pq_decode_values(pq_values *v, int phys, int encoding, const uint8_t *p, size_t n, uint32_t nv, fz_arena *a, fz_error *err) {
    if (v->width && (uint64_t)v->width * ((uint64_t)v->n + nv) > PQ_MAX_VECTOR) return too_large(err);
    switch (encoding) {
    case PQ_ENC_PLAIN: return plain(v, phys, p, n, nv, a, err);
    case PQ_ENC_RLE:
        if (phys == PQ_BOOLEAN) return rle_booleans(v, p, n, nv, a, err);
        break;
    case PQ_ENC_DELTA_BINARY_PACKED:
        if (phys == PQ_INT32 || phys == PQ_INT64) return delta_ints(v, p, n, nv, a, err);
        break;
    case PQ_ENC_DELTA_LENGTH_BYTE_ARRAY:
        if (phys == PQ_BYTE_ARRAY) return delta_lengths(v, p, n, nv, a, err);
        break;
    case PQ_ENC_DELTA_BYTE_ARRAY:
        if (phys == PQ_BYTE_ARRAY || phys == PQ_FLBA) return delta_bytes(v, phys, p, n, nv, a, err);
        break;
    case PQ_ENC_BYTE_STREAM_SPLIT:
        if (phys != PQ_BOOLEAN && phys != PQ_BYTE_ARRAY) return stream_split(v, p, n, nv, a, err);
        break;
    default: break;
    }
    return fz_fail(err, FZ_FATAL, "parquet.encoding", "a page uses encoding %d for physical type %d, which is not supported", encoding, phys);
}
