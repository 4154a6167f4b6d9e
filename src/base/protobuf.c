/* See protobuf.h. */
#include "base/protobuf.h"

static bool varint(const uint8_t **p, const uint8_t *end, uint64_t *out) {
    uint64_t v = 0;
    const uint8_t *q = *p;
    for (unsigned shift = 0; shift < 70 && q < end; shift += 7) {
        uint8_t c = *q++;
        if (shift < 64) v |= (uint64_t)(c & 0x7f) << shift;
        if (c < 0x80) {
            *p = q;
            *out = v;
            return true;
        }
    }
    return false;
}

static uint32_t u32(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, 4);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap32(v);
#endif
    return v;
}

enum { END_GROUP = 4 };

/* A field whose tag was read. */
static bool payload(const uint8_t **p, const uint8_t *end, pb_field *out) {
    uint64_t n;
    switch (out->wire) {
    case PB_VARINT: return varint(p, end, &out->v);
    case PB_FIXED64:
        if (end - *p < 8) return false;
        out->v = pb_u64(*p);
        *p += 8;
        return true;
    case PB_FIXED32:
        if (end - *p < 4) return false;
        out->v = u32(*p);
        *p += 4;
        return true;
    case PB_BYTES:
        if (!varint(p, end, &n) || n > (uint64_t)(end - *p)) return false;
        out->n = (size_t)n;
        out->p = *p;
        *p += n;
        return true;
    default: return false;
    }
}

static bool tag(const uint8_t **p, const uint8_t *end, uint32_t *number, unsigned *wire) {
    uint64_t t;
    if (!varint(p, end, &t) || t > UINT32_MAX || t < 8) return false;
    *number = (uint32_t)t >> 3;
    *wire = (unsigned)t & 7;
    return *wire <= PB_FIXED32;
}

/* To the end of the group whose begin was read. */
static bool skip_group(const uint8_t **p, const uint8_t *end, uint32_t number) {
    uint32_t open[PB_MAX_GROUPS], n = 0;
    open[n++] = number;
    while (n) {
        pb_field f;
        unsigned wire;
        if (!tag(p, end, &f.number, &wire)) return false;
        if (wire == END_GROUP) {
            if (open[--n] != f.number) return false;
        } else if (wire == PB_GROUP) {
            if (n == PB_MAX_GROUPS) return false;
            open[n++] = f.number;
        } else {
            f.wire = (pb_wire)wire;
            if (!payload(p, end, &f)) return false;
        }
    }
    return true;
}

pb_result pb_next_slow(const uint8_t **p, const uint8_t *end, pb_field *out) {
    unsigned wire;
    if (*p == end) return PB_END;
    if (!tag(p, end, &out->number, &wire) || wire == END_GROUP) return PB_BAD;
    out->wire = (pb_wire)wire;
    out->n = 0;
    if (wire == PB_GROUP) {
        out->v = 0;
        return skip_group(p, end, out->number) ? PB_FIELD : PB_BAD;
    }
    return payload(p, end, out) ? PB_FIELD : PB_BAD;
}

/* ---- writing ---- */

static size_t put(uint8_t *out, uint64_t v) {
    size_t n = 0;
    for (; v >= 0x80; v >>= 7) out[n++] = (uint8_t)(v | 0x80);
    out[n++] = (uint8_t)v;
    return n;
}

enum { MOST = 10 }; /* bytes of a varint */

static void tagged(fz_buf *b, uint32_t number, pb_wire wire) { b->len += put(b->data + b->len, (uint64_t)number << 3 | (uint64_t)wire); }

void pb_put_varint(fz_buf *b, uint64_t v) {
    fz_buf_reserve(b, MOST);
    b->len += put(b->data + b->len, v);
}
void pb_put_uint(fz_buf *b, uint32_t number, uint64_t v) {
    fz_buf_reserve(b, 2 * MOST);
    tagged(b, number, PB_VARINT);
    b->len += put(b->data + b->len, v);
}
void pb_put_fixed64(fz_buf *b, uint32_t number, uint64_t v) {
    fz_buf_reserve(b, MOST + 8);
    tagged(b, number, PB_FIXED64);
    for (unsigned i = 0; i < 8; i++) b->data[b->len++] = (uint8_t)(v >> (8 * i));
}
void pb_put_fixed32(fz_buf *b, uint32_t number, uint32_t v) {
    fz_buf_reserve(b, MOST + 4);
    tagged(b, number, PB_FIXED32);
    for (unsigned i = 0; i < 4; i++) b->data[b->len++] = (uint8_t)(v >> (8 * i));
}
void pb_put_bytes(fz_buf *b, uint32_t number, const void *p, size_t n) {
    fz_buf_reserve(b, 2 * MOST + n);
    tagged(b, number, PB_BYTES);
    b->len += put(b->data + b->len, n);
    if (n) memcpy(b->data + b->len, p, n);
    b->len += n;
}

size_t pb_begin(fz_buf *b, uint32_t number) {
    fz_buf_reserve(b, MOST + 1);
    tagged(b, number, PB_BYTES);
    b->data[b->len++] = 0; /* room for the length of a small message; larger ones are moved */
    return b->len;
}
void pb_end(fz_buf *b, size_t begun) {
    uint8_t t[10];
    size_t n = b->len - begun, m = put(t, n);
    if (m > 1) {
        fz_buf_reserve(b, m - 1);
        memmove(b->data + begun + m - 1, b->data + begun, n);
        b->len += m - 1;
    }
    memcpy(b->data + begun - 1, t, m);
}
