/* Pages where the options leave zstd's level open: each column gets the fastest way whose pages are larger than those of level 3 by at most 2.5 %, and keeps it for a while. */
#include "pq_test.h"
#include "parquet/parquet_int.h"

enum { N = 64 << 10 };

static void fill(uint8_t *p, bool random, uint64_t seed) {
    static const char hex[] = "0123456789abcdef", *const words[] = {"upstream", "answered", "nothing", "request", "connection", "refused", "order", "payment"};
    char line[96];
    uint64_t x = seed * 0x9e3779b97f4a7c15u + 88172645463325252u;
    for (size_t at = 0; at < N;) {
        size_t n = 32;
        for (size_t i = 0; i < n; i++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            line[i] = hex[x >> 60];
        }
        if (!random) n = (size_t)snprintf(line, sizeof line, "%s %s %s to %u; ", words[x >> 61], words[x >> 50 & 7], words[x >> 40 & 7], (unsigned)(x & 0xff));
        if (n > N - at) n = N - at;
        memcpy(p + at, line, n);
        at += n;
    }
}

/* Byte arrays of one length, as a page has them. */
static size_t fill_values(uint8_t *p, uint32_t length, size_t values, const char *alphabet, uint64_t seed) {
    uint64_t x = seed * 0x9e3779b97f4a7c15u + 88172645463325252u;
    uint8_t *to = p;
    for (size_t i = 0; i < values; i++) {
        memcpy(to, &length, 4);
        to += 4;
        for (uint32_t k = 0; k < length; k++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            *to++ = (uint8_t)alphabet[x >> 60];
        }
    }
    return (size_t)(to - p);
}

static size_t packed_at(pq_codec *c, int level, const uint8_t *p) {
    fz_sv out;
    fz_error err;
    assert_int_equal(pq_compress(c, PQ_ZSTD, level, p, N, &out, &err), FZ_OK);
    return out.n;
}

static size_t page(pq_codec *c, int level, uint64_t key, const uint8_t *p, size_t head) {
    const pq_options o = {.compression = PQ_ZSTD, .compression_level = level};
    static uint8_t back[N];
    fz_sv out;
    fz_error err;
    assert_int_equal(pq_compress_page(c, &o, key, p, N, head, &out, &err), FZ_OK);
    size_t n = out.n;
    uint8_t *copy = fz_malloc(n);
    memcpy(copy, out.p, n);
    assert_int_equal(pq_decompress(c, PQ_CODEC_ZSTD, copy, n, back, N, &err), FZ_OK);
    assert_memory_equal(back, p, N);
    fz_free(copy);
    return n;
}
static pq_way way_of(const pq_codec *c, uint64_t key) {
    for (uint32_t i = 0; i < PQ_TRIED; i++)
        if (c->tried[i].key == key && c->tried[i].pause) return (pq_way)c->tried[i].way;
    fail_msg("no trial of %u", (unsigned)key);
    return PQ_WAY_LEVEL;
}
static void a_column_gets_a_way_that_packs_it_well(void **state) {
    (void)state;
    uint8_t *ids = fz_malloc(N), *texts = fz_malloc(N);
    pq_codec *c = pq_codec_new();
    fill(ids, true, 1);
    fill(texts, false, 2);
    size_t id3 = packed_at(c, 3, ids), text3 = packed_at(c, 3, texts);
    assert_int_equal(pq_compress_way(c, PQ_WAY_ENTROPY, texts, N, &(fz_error){0}), FZ_OK);
    assert_true(c->comp.len > text3 + text3 / 40); /* or the test is of no use */
    for (int i = 0; i < 110; i++) { /* over two further trials */
        assert_in_range(page(c, 0, 1, ids, SIZE_MAX), 1, id3 + id3 / 40);
        assert_in_range(page(c, 0, 2, texts, SIZE_MAX), 1, text3 + text3 / 40);
        assert_int_equal(page(c, 3, 1, ids, SIZE_MAX), id3); /* as it was asked for */
        assert_int_equal(page(c, 3, 2, texts, SIZE_MAX), text3);
    }
    assert_int_equal(way_of(c, 1), PQ_WAY_ENTROPY);
    /* A column that changes is noticed, if late; another one in its place is not taken for it. */
    size_t last = 0;
    for (int i = 0; i < 256; i++) last = page(c, 0, 1, texts, SIZE_MAX);
    assert_in_range(last, 1, text3 + text3 / 40);
    assert_in_range(page(c, 0, 2 + PQ_TRIED, ids, SIZE_MAX), 1, id3 + id3 / 40);
    for (uint64_t k = 0; k < 40; k++) (void)page(c, 0, 3 + k * PQ_TRIED, ids, SIZE_MAX); /* more in one place than are remembered */
    assert_int_equal(way_of(c, 3 + 39 * PQ_TRIED), PQ_WAY_ENTROPY);
    pq_codec_free(c);
    fz_free(ids);
    fz_free(texts);
}

static void identifiers_are_packed_as_digits(void **state) {
    (void)state;
    enum { STEP = 36, VALUES = N / STEP, HEAD = N % STEP };
    pq_codec *c = pq_codec_new();
    uint8_t *p = fz_calloc(1, N);
    fill_values(p + HEAD, 32, VALUES, "0123456789abcdef", 3);
    size_t n = page(c, 0, 1, p, HEAD);
    assert_int_equal(way_of(c, 1), PQ_WAY_HEX);
    assert_in_range(n, VALUES * 16, VALUES * 17);
    /* A page with another value is packed all the same. */
    p[HEAD + 4 * STEP + 20] = 'x';
    assert_in_range(page(c, 0, 1, p, HEAD), VALUES * 16, VALUES * 20);
    assert_int_equal(way_of(c, 1), PQ_WAY_HEX);
    /* Identifiers of which each comes again and again have more in them. */
    fill_values(p + HEAD, 32, VALUES, "0123456789abcdef", 3);
    for (size_t i = 0; i < VALUES; i++) memcpy(p + HEAD + i * STEP, p + HEAD + i / 4 * STEP, STEP);
    assert_in_range(page(c, 0, 2, p, HEAD), 1, VALUES * 10);
    assert_int_not_equal(way_of(c, 2), PQ_WAY_HEX);
    /* Bytes that only look like it: values of another kind have no head. */
    fill_values(p + HEAD, 32, VALUES, "0123456789abcdef", 3);
    (void)page(c, 0, 3, p, SIZE_MAX);
    assert_int_not_equal(way_of(c, 3), PQ_WAY_HEX);
    pq_codec_free(c);
    fz_free(p);
}

static void frames_of_digits_are_what_a_decoder_expects(void **state) {
    (void)state;
    enum { MOST = 9000 * 68 + (17 << 10) };
    static const size_t heads[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 100, 257, 2500, 16 << 10};
    static const size_t values[] = {64, 65, 66, 67, 68, 255, 256, 257, 1000, 1821, 3641, 6553, 7283, 8999};
    uint8_t *p = fz_malloc(MOST), *out = fz_malloc(MOST + 64), *back = fz_malloc(MOST);
    pq_codec *c = pq_codec_new();
    fz_error err;
    for (uint32_t length = 16; length <= 64; length += 16)
        for (size_t v = 0; v < sizeof values / sizeof *values; v++)
            for (size_t h = 0; h < sizeof heads / sizeof *heads; h++) {
                size_t head = heads[h];
                for (size_t i = 0; i < head; i++) p[i] = (uint8_t)(i * 7 + v);
                size_t n = head + fill_values(p + head, length, values[v], "0123456789abcdef", length + v), m = pq_hex_frame(out, p, n, head);
                assert_in_range(m, values[v] * length / 2, head + values[v] * (length / 2 + 1) + 300);
                memset(back, 0, n);
                assert_int_equal(pq_decompress(c, PQ_CODEC_ZSTD, out, m, back, n, &err), FZ_OK);
                assert_memory_equal(back, p, n);
            }
    pq_codec_free(c);
    fz_free(p);
    fz_free(out);
    fz_free(back);
}

static void what_is_no_digit_is_seen_wherever_it_is(void **state) {
    (void)state;
    enum { LENGTH = 32, VALUES = 70, STEP = LENGTH + 4, HEAD = 3, SIZE = HEAD + VALUES * STEP };
    uint8_t *p = fz_calloc(1, SIZE), *out = fz_malloc(SIZE + 64), *back = fz_malloc(SIZE);
    pq_codec *c = pq_codec_new();
    fz_error err;
    fill_values(p + HEAD, LENGTH, VALUES, "0123456789abcdef", 9);
    assert_true(pq_hex_frame(out, p, SIZE, HEAD) > 0);
    for (size_t at = 0; at < SIZE; at++) {
        uint8_t was = p[at];
        for (unsigned x = 0; x < 256; x++) { /* either it is refused, or it comes back */
            p[at] = (uint8_t)x;
            size_t m = pq_hex_frame(out, p, SIZE, HEAD);
            bool digit = (x >= '0' && x <= '9') || (x >= 'a' && x <= 'f'), length = at >= HEAD && (at - HEAD) % STEP < 4;
            if (length) assert_true((m > 0) == (x == was));
            else if (digit || at < HEAD) assert_true(m > 0);
            else if (at >= HEAD + 4 * STEP) assert_int_equal(m, 0); /* the first ones are not looked at, but kept as they are */
            if (!m) continue;
            assert_int_equal(pq_decompress(c, PQ_CODEC_ZSTD, out, m, back, SIZE, &err), FZ_OK);
            assert_memory_equal(back, p, SIZE);
        }
        p[at] = was;
    }
    assert_int_equal(pq_hex_frame(out, p, SIZE - 1, HEAD), 0);
    assert_int_equal(pq_hex_frame(out, p, SIZE, HEAD + 1), 0);
    assert_int_equal(pq_hex_frame(out, p, SIZE, SIZE - 3), 0);
    assert_int_equal(pq_hex_frame(out, p, HEAD + 63 * STEP, HEAD), 0); /* few values are not worth it */
    for (uint32_t length = 0; length < 200; length++) {
        size_t n = fill_values(back, length, SIZE / (length + 4), "0123456789abcdef", 1);
        assert_true((pq_hex_frame(out, back, n, 0) > 0) == (length == 16 || length == 32));
    }
    pq_codec_free(c);
    fz_free(p);
    fz_free(out);
    fz_free(back);
}

/* Levels and indices of every width, as runs and without, come back. */
static void runs_and_packed_groups(void **state) {
    (void)state;
    enum { MOST = 700 };
    uint32_t v[MOST], got[MOST];
    uint16_t two[MOST];
    uint8_t one[MOST];
    uint64_t x = 88172645463325252u;
    fz_buf out = {0};
    for (uint32_t round = 0; round < 4000; round++) {
        unsigned width = 1 + round % 24, size = width <= 8 ? 1 : width <= 16 ? 2 : 4, repeat = round / 24 % 4; /* one value of 1, 4, 16, 64 is another one */
        uint32_t n = 1 + round % MOST, value = 0;
        for (uint32_t i = 0; i < n; i++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            if ((x >> 40) % (1u << 2 * repeat) == 0) value = (uint32_t)(x >> 8) & ((1u << width) - 1);
            v[i] = value;
            two[i] = (uint16_t)value;
            one[i] = (uint8_t)value;
        }
        out.len = 0;
        pq_rle_encode(&out, size == 1 ? (const void *)one : size == 2 ? (const void *)two : v, size, n, width);
        pq_rle_in in;
        pq_rle_open(&in, out.data, out.len, width);
        assert_true(pq_rle_read(&in, got, n));
        assert_memory_equal(got, v, n * sizeof *v);
        assert_true(out.len <= (n / 8 + 1) * width + n / 504 + n / 8 + 8);
    }
    uint8_t same[1000] = {0};
    out.len = 0;
    same[999] = 1;
    pq_rle_encode(&out, same, 1, 1000, 1);
    assert_int_equal(out.len, 3 + 2); /* a run of 999, a group of one */
    fz_buf_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_column_gets_a_way_that_packs_it_well), cmocka_unit_test(identifiers_are_packed_as_digits), cmocka_unit_test(frames_of_digits_are_what_a_decoder_expects),
                                       cmocka_unit_test(what_is_no_digit_is_seen_wherever_it_is), cmocka_unit_test(runs_and_packed_groups)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
