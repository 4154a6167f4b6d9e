/* See mp.h. */
#include "base/mp.h"

static inline uint64_t be(const uint8_t *p, unsigned n) {
    uint64_t v = 0;
    for (unsigned i = 0; i < n; i++) v = v << 8 | p[i];
    return v;
}
static inline uint32_t be16(const uint8_t *p) { return (uint32_t)p[0] << 8 | p[1]; }
static inline uint32_t be32(const uint8_t *p) { return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]; }

/* What follows a first byte from 0xc0 to 0xdf: bytes of a length or count, and bytes after it that are always there. */
enum { PLAIN, BYTES, ITEMS, PAIRS, NEVER };
typedef struct form { uint8_t kind, len, fixed; } form;
static const form forms[32] = {
    {PLAIN, 0, 0}, {NEVER, 0, 0}, {PLAIN, 0, 0}, {PLAIN, 0, 0},                   /* nil, never, false, true */
    {BYTES, 1, 0}, {BYTES, 2, 0}, {BYTES, 4, 0},                                  /* bin */
    {BYTES, 1, 1}, {BYTES, 2, 1}, {BYTES, 4, 1},                                  /* ext */
    {PLAIN, 0, 4}, {PLAIN, 0, 8},                                                 /* float */
    {PLAIN, 0, 1}, {PLAIN, 0, 2}, {PLAIN, 0, 4}, {PLAIN, 0, 8},                   /* uint */
    {PLAIN, 0, 1}, {PLAIN, 0, 2}, {PLAIN, 0, 4}, {PLAIN, 0, 8},                   /* int */
    {PLAIN, 0, 2}, {PLAIN, 0, 3}, {PLAIN, 0, 5}, {PLAIN, 0, 9}, {PLAIN, 0, 17},   /* fixext */
    {BYTES, 1, 0}, {BYTES, 2, 0}, {BYTES, 4, 0},                                  /* str */
    {ITEMS, 2, 0}, {ITEMS, 4, 0}, {PAIRS, 2, 0}, {PAIRS, 4, 0},
};

/* Length of the header and payload of the item at p in *size, and how many values it holds in *inner. MP_MORE: *size is how many bytes are needed to say more, or all of them. */
static inline mp_result measure(const uint8_t *p, size_t n, uint64_t *size, uint64_t *inner) {
    uint8_t c = p[0];
    *inner = 0;
    if (c < 0x80 || c >= 0xe0) *size = 1;
    else if (c >= 0xa0 && c < 0xc0) *size = 1u + (c & 0x1fu);
    else if (c < 0xa0) {
        *size = 1;
        *inner = c < 0x90 ? 2u * (c & 0x0fu) : c & 0x0fu;
    } else {
        const form *f = &forms[c - 0xc0];
        if (f->kind == NEVER) return MP_BAD;
        *size = 1u + f->len + f->fixed;
        if (f->len) {
            if (n < 1u + f->len) return MP_MORE;
            uint64_t v = f->len == 1 ? p[1] : f->len == 2 ? be16(p + 1) : be32(p + 1);
            if (f->kind == BYTES) *size += v;
            else *inner = f->kind == PAIRS ? 2 * v : v;
        }
    }
    return *size <= n ? MP_OK : MP_MORE;
}

mp_result mp_skip(const uint8_t **at, const uint8_t *end) {
    const uint8_t *p = *at;
    uint64_t open = 1;
    do {
        uint64_t size, inner;
        if (p >= end) return MP_MORE;
        mp_result r = measure(p, (size_t)(end - p), &size, &inner);
        if (r != MP_OK) return r;
        p += size;
        open += inner - 1;
    } while (open);
    *at = p;
    return MP_OK;
}

/* The i-th item begins with w and is as long as that says: the next one is expected to be so too, unless it mostly was not. */
static void learn(mp_shape *s, uint32_t i, uint32_t w, uint64_t size, uint64_t inner) {
    uint8_t c = (uint8_t)w, len = c >= 0xc0 && c < 0xe0 ? forms[c - 0xc0].len : 0;
    s->item[i].head = 0;
    if (len > 1 || s->misses[i] > 3) return;
    s->misses[i]++;
    s->item[i].mask = len ? 0xffff : c < 0x80 ? 0x80 : 0xff;
    s->item[i].head = (w & s->item[i].mask) + 1;
    s->item[i].size = (uint32_t)size;
    s->item[i].inner = (uint32_t)inner;
}

mp_result mp_skip_like(const uint8_t **at, const uint8_t *end, mp_shape *s) {
    const uint8_t *p = *at;
    uint64_t open = 1;
    uint32_t i = 0;
    do {
        uint64_t size, inner;
        size_t left = (size_t)(end - p);
        if (i < MP_SHAPE && left >= 2) {
            uint32_t w = (uint32_t)p[1] << 8 | p[0], k = i++;
            if ((w & s->item[k].mask) + 1 == s->item[k].head && s->item[k].size <= left) {
                p += s->item[k].size;
                open = open + s->item[k].inner - 1;
                continue;
            }
            mp_result r = measure(p, left, &size, &inner);
            if (r != MP_OK) return r;
            learn(s, k, w, size, inner);
        } else {
            if (!left) return MP_MORE;
            mp_result r = measure(p, left, &size, &inner);
            if (r != MP_OK) return r;
        }
        p += size;
        open += inner - 1;
    } while (open);
    *at = p;
    return MP_OK;
}

mp_result mp_scan_more(mp_scan *s, const uint8_t *p, size_t n, size_t max) {
    if (!s->begun) *s = (mp_scan){.open = 1, .begun = true};
    while (s->open) {
        uint64_t size, inner;
        if (s->at + s->open > max) return MP_BAD;
        if (s->at >= n) return MP_MORE;
        mp_result r = measure(p + s->at, n - s->at, &size, &inner);
        if (r == MP_BAD) return r;
        if (r == MP_MORE) {
            if (s->at + size + s->open - 1 <= max) return MP_MORE;
            s->open += size; /* too long: as the header says */
            return MP_BAD;
        }
        s->at += (size_t)size;
        s->open += inner - 1;
    }
    return MP_OK;
}

static mp_result read_number(uint8_t c, const uint8_t *p, mp_item *o) {
    uint64_t v = be(p, c == 0xca ? 4 : c == 0xcb ? 8 : 1u << (c & 3));
    if (c == 0xca) {
        float f;
        uint32_t w = (uint32_t)v;
        memcpy(&f, &w, sizeof f);
        o->type = MP_FLOAT;
        o->d = (double)f;
    } else if (c == 0xcb) {
        o->type = MP_DOUBLE;
        memcpy(&o->d, &v, sizeof v);
    } else if (c <= 0xcf) {
        o->type = v > INT64_MAX ? MP_UINT : MP_INT;
        o->u = v;
    } else {
        unsigned unused = 64 - (8u << (c & 3));
        o->type = MP_INT;
        o->i = (int64_t)(v << unused) >> unused;
    }
    return MP_OK;
}

static void set_bytes(mp_item *o, mp_type t, const uint8_t *p, uint32_t n) {
    o->type = t;
    o->p = p;
    o->n = n;
}

static mp_result read_long(const uint8_t *p, uint64_t size, mp_item *o) {
    uint8_t c = p[0];
    const form *f = &forms[c - 0xc0];
    uint32_t n = f->len == 1 ? p[1] : f->len == 2 ? be16(p + 1) : f->len == 4 ? be32(p + 1) : 0;
    switch (c) {
    case 0xc0: o->type = MP_NIL; return MP_OK;
    case 0xc2: case 0xc3:
        o->type = MP_BOOL;
        o->b = c == 0xc3;
        return MP_OK;
    case 0xc4: case 0xc5: case 0xc6: set_bytes(o, MP_BIN, p + 1 + f->len, n); return MP_OK;
    case 0xc7: case 0xc8: case 0xc9:
        set_bytes(o, MP_EXT, p + 2 + f->len, n);
        o->ext = (int8_t)p[1 + f->len];
        return MP_OK;
    case 0xd4: case 0xd5: case 0xd6: case 0xd7: case 0xd8:
        set_bytes(o, MP_EXT, p + 2, (uint32_t)size - 2);
        o->ext = (int8_t)p[1];
        return MP_OK;
    case 0xd9: case 0xda: case 0xdb: set_bytes(o, MP_STR, p + 1 + f->len, n); return MP_OK;
    case 0xdc: case 0xdd: case 0xde: case 0xdf:
        o->type = c <= 0xdd ? MP_ARRAY : MP_MAP;
        o->n = n;
        return MP_OK;
    default: return read_number(c, p + 1, o);
    }
}

mp_result mp_read(const uint8_t **at, const uint8_t *end, mp_item *o) {
    const uint8_t *p = *at;
    uint64_t size, inner;
    if (p >= end) return MP_MORE;
    mp_result r = measure(p, (size_t)(end - p), &size, &inner);
    if (r != MP_OK) return r;
    uint8_t c = p[0];
    *at = p + size;
    if (c < 0x80 || c >= 0xe0) {
        o->type = MP_INT;
        o->i = (int8_t)c;
    } else if (c >= 0xc0) return read_long(p, size, o);
    else if (c >= 0xa0) set_bytes(o, MP_STR, p + 1, c & 0x1f);
    else {
        o->type = c < 0x90 ? MP_MAP : MP_ARRAY;
        o->n = c & 0x0f;
    }
    return MP_OK;
}

/* ---- writing ---- */

static void put_head(fz_buf *b, uint8_t c, uint64_t v, unsigned bytes) {
    uint8_t t[9] = {c};
    for (unsigned i = 0; i < bytes; i++) t[1 + i] = (uint8_t)(v >> 8 * (bytes - 1 - i));
    fz_buf_append(b, t, 1 + bytes);
}

void mp_put_nil(fz_buf *b) { put_head(b, 0xc0, 0, 0); }
void mp_put_bool(fz_buf *b, bool v) { put_head(b, v ? 0xc3 : 0xc2, 0, 0); }

void mp_put_array(fz_buf *b, uint32_t n) {
    if (n < 16) put_head(b, (uint8_t)(0x90 | n), 0, 0);
    else if (n <= UINT16_MAX) put_head(b, 0xdc, n, 2);
    else put_head(b, 0xdd, n, 4);
}

void mp_put_map(fz_buf *b, uint32_t n) {
    if (n < 16) put_head(b, (uint8_t)(0x80 | n), 0, 0);
    else if (n <= UINT16_MAX) put_head(b, 0xde, n, 2);
    else put_head(b, 0xdf, n, 4);
}

void mp_put_str(fz_buf *b, const void *p, size_t n) {
    if (n < 32) put_head(b, (uint8_t)(0xa0 | n), 0, 0);
    else if (n <= UINT8_MAX) put_head(b, 0xd9, n, 1);
    else if (n <= UINT16_MAX) put_head(b, 0xda, n, 2);
    else put_head(b, 0xdb, n, 4);
    fz_buf_append(b, p, n);
}

void mp_put_bin(fz_buf *b, const void *p, size_t n) {
    if (n <= UINT8_MAX) put_head(b, 0xc4, n, 1);
    else if (n <= UINT16_MAX) put_head(b, 0xc5, n, 2);
    else put_head(b, 0xc6, n, 4);
    fz_buf_append(b, p, n);
}

void mp_put_int(fz_buf *b, int64_t v) {
    if (v >= -32 && v < 128) put_head(b, (uint8_t)v, 0, 0);
    else put_head(b, 0xd3, (uint64_t)v, 8);
}
