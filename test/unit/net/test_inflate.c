/* net_inflate: members, damage, ceilings, bombs. */
#include "unit.h"
#include "net/server.h"
#include <libdeflate.h>
#include <zstd.h>

static fz_error err;

/* A member: bits 31 gzip, 15 zlib, -15 bare. `full`: the header of gzip has all its optional fields. */
static void deflate_to(fz_buf *out, int bits, int level, const void *p, size_t n, bool full) {
    static const char optional[] = "\x05\0extraa name\0words\0"; /* and then the checksum of the header */
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(level);
    size_t room = n + n / 10 + 1000, at = out->len;
    fz_buf_reserve(out, room);
    if (bits == 31) out->len += libdeflate_gzip_compress(c, p, n, out->data + at, room);
    else if (bits == 15) out->len += libdeflate_zlib_compress(c, p, n, out->data + at, room);
    else out->len += libdeflate_deflate_compress(c, p, n, out->data + at, room);
    assert_true(out->len > at);
    libdeflate_free_compressor(c);
    if (!full) return;
    size_t more = sizeof optional - 1 + 2;
    fz_buf_reserve(out, more);
    memmove(out->data + at + 10 + more, out->data + at + 10, out->len - at - 10);
    out->len += more;
    out->data[at + 3] = 1 | 2 | 4 | 8 | 16;
    memcpy(out->data + at + 10, optional, sizeof optional - 1);
    uint32_t crc = libdeflate_crc32(0, out->data + at, 10 + sizeof optional - 1);
    out->data[at + 10 + more - 2] = (uint8_t)crc;
    out->data[at + 10 + more - 1] = (uint8_t)(crc >> 8);
}

/* What comes out is `want`, at exactly its size as the ceiling too; one byte less is too large. */
static void check(const char *coding, const fz_buf *in, const void *want, size_t n) {
    size_t ceilings[] = {n, n + 1, 1 << 26};
    for (int i = 0; i < 3; i++) {
        fz_buf out = {0};
        fz_buf_puts(&out, "before");
        if (net_inflate(coding, in->data, in->len, ceilings[i], &out, &err) != FZ_OK) {
            print_error("%s, %zu bytes, ceiling %zu: %s\n", coding, n, ceilings[i], err.message);
            fail();
        }
        assert_int_equal(out.len, n + 6);
        assert_memory_equal(out.data, "before", 6);
        if (n) assert_memory_equal(out.data + 6, want, n);
        fz_buf_free(&out);
    }
    fz_buf out = {0};
    if (n) {
        assert_int_equal(net_inflate(coding, in->data, in->len, n - 1, &out, &err), FZ_DATA);
        assert_string_equal(err.code, "body.too-large");
    }
    fz_buf_free(&out);
}
static void check_broken(const char *coding, const void *p, size_t n) {
    fz_buf out = {0};
    assert_int_equal(net_inflate(coding, p, n, 1 << 26, &out, &err), FZ_DATA);
    assert_string_equal(err.code, "body.encoding");
    fz_buf_free(&out);
}

static void texts(fz_buf *b, size_t n, unsigned seed) {
    b->len = 0;
    while (b->len < n) {
        seed = seed * 1103515245 + 12345;
        if (seed >> 30) fz_buf_printf(b, "{\"n\":%u,\"host\":\"h%u\"}\n", seed >> 8, seed >> 28);
        else fz_buf_append(b, &seed, 4);
    }
    b->len = n;
}

static void test_sizes(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 2, 100, 4095, 4096, 4097, 16384, 65536, 100000, 3000001};
    fz_buf text = {0}, in = {0};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        texts(&text, sizes[i], (unsigned)i + 1);
        for (int level = 0; level <= 9; level += 3) {
            static const struct { const char *coding; int bits; } kinds[] = {{"gzip", 31}, {"X-GZIP", 31}, {"deflate", 15}, {"deflate", -15}};
            for (int k = 0; k < 4; k++) {
                if (kinds[k].bits == -15 && sizes[i] == 0) continue;
                in.len = 0;
                deflate_to(&in, kinds[k].bits, level, text.data, text.len, false);
                check(kinds[k].coding, &in, text.data, text.len);
            }
        }
        in.len = 0;
        fz_buf_reserve(&in, ZSTD_compressBound(text.len));
        in.len = ZSTD_compress(in.data, in.cap, text.data, text.len, 3);
        check("zstd", &in, text.data, text.len);
        in.len = 0;
        fz_buf_append(&in, text.data, text.len);
        check("identity", &in, text.data, text.len);
    }
    fz_buf_free(&text);
    fz_buf_free(&in);
}

/* Several members, headers with all optional fields, empty members between. */
static void test_members(void **state) {
    (void)state;
    fz_buf all = {0}, in = {0}, part = {0};
    for (unsigned i = 0; i < 300; i++) {
        texts(&part, i % 7 == 3 ? 0 : i * 17 % 5000, i);
        deflate_to(&in, 31, (int)(i % 10), part.data, part.len, i % 3 == 0);
        fz_buf_append(&all, part.data, part.len);
    }
    check("gzip", &in, all.data, all.len);
    for (size_t stray = 1; stray < 12; stray++) { /* bytes behind the last member */
        fz_buf_append(&in, "\0", 1);
        check_broken("gzip", in.data, in.len);
    }
    in.len = all.len = 0;
    for (unsigned i = 0; i < 20; i++) { /* frames of zstd with and without their size, and skippable ones */
        texts(&part, i * 3001, i);
        fz_buf_reserve(&in, ZSTD_compressBound(part.len) + 100);
        ZSTD_CCtx *c = ZSTD_createCCtx();
        ZSTD_CCtx_setParameter(c, ZSTD_c_contentSizeFlag, i % 2);
        ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1);
        in.len += ZSTD_compress2(c, in.data + in.len, in.cap - in.len, part.data, part.len);
        ZSTD_freeCCtx(c);
        fz_buf_append(&in, "\x50\x2a\x4d\x18\x03\x00\x00\x00xyz", 11);
        fz_buf_append(&all, part.data, part.len);
    }
    check("zstd", &in, all.data, all.len);
    fz_buf_append(&in, "stray", 5);
    check_broken("zstd", in.data, in.len);
    fz_buf_free(&all);
    fz_buf_free(&in);
    fz_buf_free(&part);
}

static const uint8_t HEADER_INSIDE[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1, 0x1c, 0, 0xe3, 0xff, 0x92, 0xd7, 0, 0x67, 0x76, 2, 0x25, 7, 0x5b, 0xcd, 0x15, 0x81, 0xa3, 0x6c, 0x6f, 0x67, 0xc4, 0x0a,
                                        0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x5d, 0x61, 0xa7, 0x92, 0x1c, 0, 0, 0};
static const uint8_t MEMBER[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 3, 0x9b, 0x74, 0x9d, 0x21, 0xbd, 0x8c, 0x49, 0x95, 0x3d, 0xfa, 0xac, 0x68, 0xe3, 0xe2, 0x9c, 0xfc, 0xf4, 0x45, 0x19, 0x99, 0, 0x93, 0x87, 0x75, 0x7f, 0x13, 0, 0, 0};
static void test_known(void **state) {
    (void)state;
    fz_buf out = {0}, two = {0};
    assert_int_equal(net_inflate("gzip", HEADER_INSIDE, sizeof HEADER_INSIDE, 100, &out, &err), FZ_OK);
    assert_int_equal(out.len, 28);
    assert_memory_equal(out.data + 16, "\xc4\x0a\x1f\x8b", 4);
    fz_buf_free(&out);
    fz_buf_append(&two, MEMBER, sizeof MEMBER);
    fz_buf_append(&two, MEMBER, sizeof MEMBER);
    assert_int_equal(net_inflate("gzip", two.data, two.len, 100, &out, &err), FZ_OK);
    assert_int_equal(out.len, 38);
    fz_buf_free(&out);
    two.data[sizeof MEMBER + 3] = 0x20; /* a flag that nobody has defined */
    check_broken("gzip", two.data, two.len);
    fz_buf_free(&two);
}

/* Every cut and every flipped bit of a small body: an error, or (bits without meaning: of headers, of padding) the same bytes. */
static void test_damage(void **state) {
    (void)state;
    static const struct { const char *coding; int bits; } kinds[] = {{"gzip", 31}, {"deflate", 15}, {"zstd", 0}};
    fz_buf text = {0}, in = {0};
    texts(&text, 700, 5);
    for (int k = 0; k < 3; k++) {
        in.len = 0;
        if (kinds[k].bits) deflate_to(&in, kinds[k].bits, 6, text.data, text.len, false);
        else {
            fz_buf_reserve(&in, 2000);
            ZSTD_CCtx *c = ZSTD_createCCtx();
            ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1);
            in.len = ZSTD_compress2(c, in.data, in.cap, text.data, text.len);
            ZSTD_freeCCtx(c);
        }
        for (size_t n = 0; n < in.len; n++) check_broken(kinds[k].coding, in.data, n);
        for (size_t i = 0; i < in.len * 8; i++) {
            fz_buf out = {0};
            in.data[i / 8] ^= (uint8_t)(1 << i % 8);
            fz_status st = net_inflate(kinds[k].coding, in.data, in.len, 1 << 20, &out, &err);
            in.data[i / 8] ^= (uint8_t)(1 << i % 8);
            if (st == FZ_OK) {
                assert_int_equal(out.len, text.len);
                assert_memory_equal(out.data, text.data, text.len);
            } else assert_int_equal(st, FZ_DATA);
            fz_buf_free(&out);
        }
        check_broken(kinds[k].coding, "plain text", 10);
    }
    fz_buf_free(&text);
    fz_buf_free(&in);
}

/* Small bodies that would become huge: refused, and never more memory than the ceiling. */
static void test_bombs(void **state) {
    (void)state;
    enum { HUGE_SIZE = 200 << 20, CEILING = 1 << 20 };
    void *zeros = fz_calloc(1, HUGE_SIZE);
    fz_buf in[3] = {0};
    deflate_to(&in[0], 31, 9, zeros, HUGE_SIZE, false);
    fz_buf_reserve(&in[1], ZSTD_compressBound(HUGE_SIZE));
    in[1].len = ZSTD_compress(in[1].data, in[1].cap, zeros, HUGE_SIZE, 1);
    for (int i = 0; i < 1000; i++) deflate_to(&in[2], 31, 9, zeros, 100000, false); /* many small members */
    fz_free(zeros);
    for (int i = 0; i < 3; i++) {
        fz_buf out = {0};
        assert_int_equal(net_inflate(i == 1 ? "zstd" : "gzip", in[i].data, in[i].len, CEILING, &out, &err), FZ_DATA);
        assert_string_equal(err.code, "body.too-large");
        assert_true(out.cap <= 2 * CEILING + 4096);
        fz_buf_free(&out);
        fz_buf_free(&in[i]);
    }
    /* A frame that claims a terabyte, and one that claims a megabyte and has nothing. */
    fz_buf out = {0};
    assert_int_equal(net_inflate("zstd", "\x28\xb5\x2f\xfd\xe0\0\0\0\0\0\1\0\0\1\0\0", 16, CEILING, &out, &err), FZ_DATA);
    assert_int_equal(net_inflate("zstd", "\x28\xb5\x2f\xfd\xa0\0\0\x10\0\1\0\0", 12, CEILING, &out, &err), FZ_DATA);
    fz_buf_free(&out);
}

static void test_codings(void **state) {
    (void)state;
    fz_buf out = {0};
    static const char *const unknown[] = {"br", "", "gzip, gzip", "compress", "gzip "};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        assert_int_equal(net_inflate(unknown[i], "x", 1, 100, &out, &err), FZ_USER);
        assert_string_equal(err.code, "body.coding");
    }
    assert_int_equal(out.len, 0);
    fz_buf_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes), cmocka_unit_test(test_members), cmocka_unit_test(test_known), cmocka_unit_test(test_damage), cmocka_unit_test(test_bombs), cmocka_unit_test(test_codings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
