/* Avro containers, writing. See avro_int.h. */
#include "iceberg/avro_int.h"
#include <libdeflate.h>
#include <snappy-c.h>
#include <zstd.h>

#define DEFLATE_LEVEL 6
#define ZSTD_LEVEL 3

void av_put_long(fz_buf *b, int64_t v) {
    uint64_t u = (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
    uint8_t out[10];
    size_t n = 0;
    for (; u >= 0x80; u >>= 7) out[n++] = (uint8_t)(u | 0x80);
    out[n++] = (uint8_t)u;
    fz_buf_append(b, out, n);
}

void av_put_bytes(fz_buf *b, const void *p, size_t n) {
    av_put_long(b, (int64_t)n);
    if (n) fz_buf_append(b, p, n);
}

void av_open(av_out *o, const fz_pair *meta, size_t n, ice_avro_codec codec, uint64_t seed) {
    static const char *const names[] = {"null", "deflate", "snappy", "zstandard"};
    *o = (av_out){.codec = codec};
    for (size_t i = 0; i < n; i++) seed = seed * 31 + fz_hash(meta[i].value, strlen(meta[i].value));
    for (int i = 0; i < 2; i++) {
        uint64_t h = fz_hash(&seed, sizeof seed);
        memcpy(o->sync + 8 * i, &h, 8);
        seed ^= h;
    }
    fz_buf_append(&o->file, "Obj\1", 4);
    av_put_long(&o->file, (int64_t)n + 1);
    for (size_t i = 0; i < n; i++) {
        av_put_str(&o->file, meta[i].key);
        av_put_str(&o->file, meta[i].value);
    }
    av_put_str(&o->file, "avro.codec");
    av_put_str(&o->file, names[codec]);
    av_put_long(&o->file, 0);
    fz_buf_append(&o->file, o->sync, 16);
}

static size_t pack_deflate(av_out *o, uint8_t *out, size_t cap) {
    struct libdeflate_compressor *c = o->packer;
    if (!c) o->packer = c = libdeflate_alloc_compressor(DEFLATE_LEVEL);
    return c ? libdeflate_deflate_compress(c, o->block.data, o->block.len, out, cap) : 0;
}

/* Avro's snappy blocks end with the big-endian CRC-32 of the unpacked bytes. */
static size_t pack_snappy(av_out *o, uint8_t *out, size_t cap) {
    size_t n = cap - 4;
    if (snappy_compress((const char *)o->block.data, o->block.len, (char *)out, &n) != SNAPPY_OK) return 0;
    uint32_t crc = libdeflate_crc32(0, o->block.data, o->block.len);
    for (int i = 0; i < 4; i++) out[n + (size_t)i] = (uint8_t)(crc >> (24 - 8 * i));
    return n + 4;
}

static size_t pack_zstd(av_out *o, uint8_t *out, size_t cap) {
    size_t n = ZSTD_compress(out, cap, o->block.data, o->block.len, ZSTD_LEVEL);
    return ZSTD_isError(n) ? 0 : n;
}

static fz_status flush(av_out *o, fz_error *err) {
    if (!o->rows) return FZ_OK;
    const uint8_t *data = o->block.data;
    size_t n = o->block.len;
    fz_buf packed = {0};
    if (o->codec != ICE_AVRO_NULL) {
        /* larger than libdeflate's, snappy's and zstd's worst case */
        fz_buf_reserve(&packed, n + n / 6 + 1024);
        n = o->codec == ICE_AVRO_DEFLATE  ? pack_deflate(o, packed.data, packed.cap)
            : o->codec == ICE_AVRO_SNAPPY ? pack_snappy(o, packed.data, packed.cap)
                                          : pack_zstd(o, packed.data, packed.cap);
        data = packed.data;
        if (!n) {
            fz_buf_free(&packed);
            return fz_fail(err, FZ_FATAL, "iceberg.avro", "a block of %zu bytes could not be compressed", o->block.len);
        }
    }
    av_put_long(&o->file, o->rows);
    av_put_bytes(&o->file, data, n);
    fz_buf_append(&o->file, o->sync, 16);
    fz_buf_free(&packed);
    o->raw += o->block.len;
    o->packed += n;
    o->block.len = 0;
    o->rows = 0;
    return FZ_OK;
}

fz_status av_row(av_out *o, fz_error *err) {
    o->rows++;
    return o->block.len >= AV_BLOCK_TARGET ? flush(o, err) : FZ_OK;
}

fz_status av_finish(av_out *o, fz_error *err) { return flush(o, err); }

void av_close(av_out *o) {
    if (o->packer) libdeflate_free_compressor(o->packer);
    fz_buf_free(&o->file);
    fz_buf_free(&o->block);
    *o = (av_out){0};
}
