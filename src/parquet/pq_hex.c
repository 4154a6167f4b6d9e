/* A zstd frame for pages of identifiers: byte arrays of one length, all of them lower-case hexadecimal digits (trace and span ids, digests).
 *
 * Nothing comes twice in such a page but the lengths before the values, and a digit is worth four bits. So nothing needs to be looked for: each
 * value is one sequence (its digits as literals, then the next length as a match of four bytes, as far back as the last one), and the Huffman code
 * of the literals is known, four bits for each of the sixteen digits. libzstd takes five times as long to find a little less.
 *
 * Blocks: a raw one up to and with the first length; one with the first values, whose sequences name the offset; then those in which every sequence
 * repeats it. The literals of those are in four streams, so each but the first has a multiple of four values.
 * Source: RFC 8878, sections 3.1.1.2 (blocks), 3.1.1.3 (literals, sequences) and 4.2.1 (Huffman trees). */
#include "parquet/parquet_int.h"

enum { BLOCK = 128 << 10, MOST_HEAD = 16 << 10 /* levels of a page with NULLs here and there */, LEAST_VALUES = 64, RAW = 0, COMPRESSED = 2, WEIGHTS = 'f', TREE = 1 + (WEIGHTS + 1) / 2 };

typedef uint8_t digits __attribute__((vector_size(16)));
typedef uint16_t pairs __attribute__((vector_size(16)));
typedef uint8_t packed __attribute__((vector_size(8)));

/* Sixteen digits as a number; bad collects what is none. */
static inline uint64_t pack(const uint8_t *p, digits *bad) {
    digits x;
    memcpy(&x, p, 16);
    digits letter = (digits)(x > '9'), n = (x & 15) + (letter & 9);
    *bad |= (x ^ (n + '0' + (letter & 39))) | (n & 0xF0) | (letter & (digits)(n < 10));
    pairs w = (pairs)n;
    packed eight = __builtin_convertvector((w << 4 | w >> 8) & 0xFF, packed);
    uint64_t r;
    memcpy(&r, &eight, 8);
    return __builtin_bswap64(r);
}

static uint8_t *put_block(uint8_t *to, bool last, int type, size_t n) {
    uint32_t h = (uint32_t)last | (uint32_t)type << 1 | (uint32_t)n << 3;
    memcpy(to, &h, 3);
    return to + 3;
}
/* n sequences of length literals and a match of four bytes; offset: 0 to repeat the last one. Extra bits of the literals' lengths are zeros. */
static uint8_t *put_sequences(uint8_t *to, size_t n, uint32_t length, uint32_t offset) {
    static const uint8_t code[] = {16, 22, 24, 25}, bits[] = {1, 3, 4, 6}; /* of 16, 32, 48, 64 */
    uint32_t value = offset ? offset + 3 : 1, of = 31u - (uint32_t)__builtin_clz(value), each = bits[length / 16 - 1] + of;
    if (n >= 128) *to++ = (uint8_t)((n >> 8) + 128);
    *to++ = (uint8_t)n;
    *to++ = 0x54; /* each of the three codes is always the same */
    *to++ = code[length / 16 - 1];
    *to++ = (uint8_t)of;
    *to++ = 1; /* a match of four bytes */
    uint64_t few = 0;
    if (of)
        for (size_t i = 0; i < n; i++) few |= (uint64_t)(value - (1u << of)) << (each * i + bits[length / 16 - 1]);
    size_t all = n * each;
    memset(to, 0, all / 8 + 1);
    if (of) memcpy(to, &few, all / 8 + 1);
    to[all / 8] |= (uint8_t)(1u << all % 8);
    return to + all / 8 + 1;
}
/* The digits of n values, the last one first, as a Huffman stream. */
static uint8_t *put_stream(uint8_t *to, const uint8_t *first, size_t n, uint32_t length, digits *bad, uint32_t *lengths) {
    for (const uint8_t *v = first + (n - 1) * (length + 4); n; n--, v -= length + 4) {
        uint32_t l;
        memcpy(&l, v - 4, 4);
        *lengths |= l ^ length;
        for (uint32_t i = length; i; i -= 16, to += 8) {
            uint64_t x = pack(v + i - 16, bad);
            memcpy(to, &x, 8);
        }
    }
    *to++ = 1;
    return to;
}
static uint8_t *put_tree(uint8_t *to) { /* sixteen symbols of weight 1; the last one, 'f', is implied */
    *to = 127 + WEIGHTS;
    memset(to + 1, 0, TREE - 1);
    for (int c = '0'; c < WEIGHTS; c++)
        if (c <= '9' || c >= 'a') to[1 + c / 2] |= c % 2 ? 1 : 0x10;
    return to + TREE;
}
/* Block of n values, first being the digits of the first; NULL: they are no identifiers. */
static uint8_t *put_values(uint8_t *to, const uint8_t *first, size_t n, uint32_t length, bool last) {
    digits bad = {0};
    uint32_t lengths = 0;
    size_t stream = n / 4 * length / 2 + 1, literals = n * length;
    uint64_t size = TREE + 6 + 4 * stream, head = COMPRESSED | 3u << 2 | literals << 4 | size << 22;
    uint8_t *start = to;
    to += 3;
    memcpy(to, &head, 5);
    to = put_tree(to + 5);
    for (int i = 0; i < 3; i++, to += 2) {
        uint16_t s = (uint16_t)stream;
        memcpy(to, &s, 2);
    }
    for (size_t i = 0; i < 4; i++) to = put_stream(to, first + i * (n / 4) * (length + 4), n / 4, length, &bad, &lengths);
    to = put_sequences(to, last ? n - 1 : n, length, 0);
    uint64_t any[2];
    memcpy(any, &bad, 16);
    if (any[0] | any[1] | lengths) return NULL;
    put_block(start, last, COMPRESSED, (size_t)(to - start) - 3);
    return to;
}
static uint8_t *put_frame_header(uint8_t *to, size_t n) { /* single segment, no checksum */
    bool wide = n >= 65536 + 256;
    const uint8_t head[5] = {0x28, 0xB5, 0x2F, 0xFD, wide ? 0xA0 : 0x60};
    uint32_t size = (uint32_t)(wide ? n : n - 256);
    memcpy(to, head, 5);
    memcpy(to + 5, &size, wide ? 4 : 2);
    return to + 5 + (wide ? 4 : 2);
}
size_t pq_hex_frame(uint8_t *out, const uint8_t *p, size_t n, size_t head) {
    uint32_t length, l;
    if (n > INT32_MAX || head > MOST_HEAD || n < head + 4) return 0;
    memcpy(&length, p + head, 4);
    size_t step = length + 4u;
    if (!length || length > 64 || length % 16 || (n - head) % step || (n - head) / step < LEAST_VALUES) return 0;
    size_t values = (n - head) / step, few = 1 + (values - 1) % 4, most = BLOCK / step & ~(size_t)3;
    const uint8_t *at = p + head + 4, *end = p + n;
    uint8_t *to = put_frame_header(out, n);
    to = put_block(to, false, RAW, head + 4);
    memcpy(to, p, head + 4);
    to += head + 4;

    uint8_t *start = to; /* literals as they are, then their sequences */
    uint32_t literals = 1u << 2 | (uint32_t)(few * length) << 4;
    memcpy(to + 3, &literals, 2);
    to += 5;
    for (size_t i = 0; i < few; i++, at += step, to += length) {
        memcpy(to, at, length);
        memcpy(&l, at - 4, 4);
        if (l != length) return 0;
    }
    to = put_sequences(to, few, length, (uint32_t)step);
    put_block(start, false, COMPRESSED, (size_t)(to - start) - 3);

    while (at < end) {
        size_t left = (size_t)(end - at + 4) / step, m = left < most ? left : most;
        if (!(to = put_values(to, at, m, length, m == left))) return 0;
        at += m * step;
    }
    return (size_t)(to - out);
}
