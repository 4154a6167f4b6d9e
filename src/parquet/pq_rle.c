/* The RLE / bit-packing hybrid of levels and dictionary indices (Encodings.md, "RLE / Bit-Packing Hybrid").
 * A run of at least eight equal values becomes an RLE run; everything else is bit-packed in groups of eight. A bit-packed run
 * has at most 63 groups, so that its header is one byte, as parquet-java writes it. */
#include "parquet/parquet_int.h"

static inline uint32_t value_at(const void *v, unsigned size, size_t i) {
    return size == 1 ? ((const uint8_t *)v)[i] : size == 2 ? ((const uint16_t *)v)[i] : ((const uint32_t *)v)[i];
}
/* The upper half of each lane of 2 * half bits moves down beside the lower one, whose values have bits bits. */
static inline uint64_t join(uint64_t x, uint64_t lower, unsigned half, unsigned bits) { return (x & lower) | (x & ~lower) >> (half - bits); }
/* Eight values of one or two bytes side by side: neighbours are joined to pairs, pairs to fours, fours to eight. */
static inline void pack_eight(uint8_t *to, const void *v, unsigned size, unsigned width) { /* 16 bytes of room */
    uint64_t x[2] = {0, 0};
    memcpy(x, v, 8 * size);
    unsigned __int128 all;
    if (size == 1) all = join(join(join(x[0], 0x00FF00FF00FF00FF, 8, width), 0x0000FFFF0000FFFF, 16, 2 * width), 0xFFFFFFFF, 32, 4 * width);
    else {
        for (int i = 0; i < 2; i++) x[i] = join(join(x[i], 0x0000FFFF0000FFFF, 16, width), 0xFFFFFFFF, 32, 2 * width);
        all = x[0] | (unsigned __int128)x[1] << 4 * width;
    }
    memcpy(to, &all, 16);
}
static inline void pack_groups(uint8_t *to, const void *v, unsigned size, size_t from, size_t end, size_t groups, unsigned width) { /* 16 bytes of room more */
    size_t whole = size == 4 ? 0 : (end - from) / 8 < groups ? (end - from) / 8 : groups;
    for (size_t g = 0; g < whole; g++, from += 8, to += width) pack_eight(to, (const uint8_t *)v + from * size, size, width);
    uint64_t acc = 0;
    unsigned bits = 0;
    for (size_t i = from; i < from + (groups - whole) * 8; i++) {
        if (i < end) acc |= (uint64_t)value_at(v, size, i) << bits;
        bits += width;
        if (bits >= 32) {
            uint32_t w = (uint32_t)acc;
            memcpy(to, &w, 4);
            to += 4;
            acc >>= 32;
            bits -= 32;
        }
    }
    for (; bits; bits -= 8, acc >>= 8) *to++ = (uint8_t)acc; /* groups of eight end on whole bytes */
}
static inline void put_literals(fz_buf *out, const void *v, unsigned size, size_t from, size_t to, unsigned width) {
    while (from < to) {
        size_t groups = (to - from + 7) / 8;
        if (groups > 63) groups = 63;
        fz_buf_putc(out, (char)(groups << 1 | 1));
        fz_buf_reserve(out, groups * width + 16);
        pack_groups(out->data + out->len, v, size, from, to, groups, width);
        out->len += groups * width;
        from += groups * 8;
    }
}
void pq_rle_run(fz_buf *out, uint32_t value, size_t n, unsigned width) {
    tc_varint(out, (uint64_t)n << 1);
    for (unsigned b = 0; b < width; b += 8) fz_buf_putc(out, (char)(value >> b));
}
/* The next value, from i on, with which a run of eight may begin; at least n - 8 values before the end are looked at one by one. */
static inline size_t skip_changing(const void *v, unsigned size, size_t i, size_t n) {
    const uint8_t *p = v;
    unsigned lanes = 8 / size;
    while (i + lanes < n) {
        uint64_t a, b;
        memcpy(&a, p + i * size, 8);
        memcpy(&b, p + (i + 1) * size, 8);
        uint64_t differ = a ^ b; /* lane k: values i + k and i + k + 1 */
        if (!differ || (unsigned)__builtin_ctzll(differ) / (8 * size) >= 7) return i;
        i += (63u - (unsigned)__builtin_clzll(differ)) / (8 * size) + 1;
    }
    return i;
}
static inline __attribute__((always_inline)) void encode(fz_buf *out, const void *v, unsigned size, size_t n, unsigned width) {
    size_t lit = 0, i = 0;
    while (i < n) {
        if (size < 4) i = skip_changing(v, size, i, n);
        uint32_t x = value_at(v, size, i);
        size_t j = i + 1;
        while (j < n && value_at(v, size, j) == x) j++;
        size_t fill = (8 - (i - lit) % 8) % 8; /* a bit-packed run before it must be made whole first */
        if (j - i >= fill + 8) {
            i += fill;
            put_literals(out, v, size, lit, i, width);
            pq_rle_run(out, x, j - i, width);
            lit = j;
        }
        i = j;
    }
    put_literals(out, v, size, lit, n, width);
}
void pq_rle_encode(fz_buf *out, const void *v, unsigned size, size_t n, unsigned width) {
    if (!n) return;
    if (size == 0 || width == 0) { pq_rle_run(out, 0, n, width); return; }
    if (size == 1) encode(out, v, 1, n, width);
    else if (size == 2) encode(out, v, 2, n, width);
    else encode(out, v, 4, n, width);
}

void pq_rle_open(pq_rle_in *r, const uint8_t *p, size_t n, unsigned width) {
    *r = (pq_rle_in){.p = p, .end = p + n, .width = width};
}
static bool next_run(pq_rle_in *r) {
    uint64_t h = 0;
    unsigned shift = 0;
    for (;;) {
        if (r->p >= r->end || shift > 35) return false;
        uint8_t b = *r->p++;
        h |= (uint64_t)(b & 0x7f) << shift;
        shift += 7;
        if (!(b & 0x80)) break;
    }
    size_t avail = (size_t)(r->end - r->p);
    if (h & 1) {
        uint64_t groups = h >> 1, bytes = groups * r->width;
        if (!groups) return false;
        if (bytes > avail) { /* some writers cut the padding of the last group */
            if (r->width == 0) return false;
            groups = (avail + r->width - 1) / r->width;
            if (!groups || bytes - avail >= r->width) return false;
        }
        r->packed = groups * 8;
        if (r->width && r->packed * r->width > avail * 8) r->packed = avail * 8 / r->width;
        r->bit = 0;
        r->base = r->p;
        r->p += bytes > avail ? avail : bytes;
        return true;
    }
    unsigned nb = (r->width + 7) / 8;
    if (avail < nb || !(h >> 1)) return false;
    r->value = 0;
    for (unsigned i = 0; i < nb; i++) r->value |= (uint32_t)r->p[i] << (8 * i);
    r->p += nb;
    r->run = h >> 1;
    return true;
}
static uint32_t unpack_one(const pq_rle_in *r) {
    const uint8_t *q = r->base + (r->bit >> 3);
    unsigned sh = (unsigned)(r->bit & 7), need = (sh + r->width + 7) / 8;
    uint64_t w = 0;
    for (unsigned i = 0; i < need; i++) w |= (uint64_t)q[i] << (8 * i);
    return (uint32_t)(w >> sh & ((1ull << r->width) - 1));
}
bool pq_rle_read(pq_rle_in *r, uint32_t *out, size_t n) {
    for (size_t i = 0; i < n;) {
        if (r->run) {
            size_t m = n - i < r->run ? n - i : (size_t)r->run;
            for (size_t k = 0; k < m; k++) out[i + k] = r->value;
            r->run -= m;
            i += m;
        } else if (r->packed) {
            size_t m = n - i < r->packed ? n - i : (size_t)r->packed;
            uint64_t mask = (1ull << r->width) - 1;
            for (size_t k = 0; k < m; k++) {
                const uint8_t *q = r->base + (r->bit >> 3);
                if (r->end - q >= 8) {
                    uint64_t w;
                    memcpy(&w, q, 8);
                    out[i + k] = (uint32_t)(w >> (r->bit & 7) & mask);
                } else out[i + k] = unpack_one(r);
                r->bit += r->width;
            }
            r->packed -= m;
            i += m;
        } else if (!next_run(r)) return false;
    }
    return true;
}
