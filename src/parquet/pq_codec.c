/* Compression of pages: the five codecs of Parquet behind two calls, and the scratch memory of one thread.
 * Contexts are made when first used. Threads: one pq_codec a thread. */
#include "parquet/parquet_int.h"
#include <libdeflate.h>
#include <lz4.h>
#include <snappy-c.h>
#include <zstd.h>

pq_codec *pq_codec_new(void) { return FZ_NEW(pq_codec); }
void pq_codec_free(pq_codec *c) {
    if (!c) return;
    ZSTD_freeCCtx(c->zc);
    ZSTD_freeDCtx(c->zd);
    if (c->gz) libdeflate_free_compressor(c->gz);
    if (c->gd) libdeflate_free_decompressor(c->gd);
    fz_buf_free(&c->body);
    fz_buf_free(&c->comp);
    fz_buf_free(&c->head);
    fz_free(c->xlat);
    fz_free(c->codes);
    fz_free(c->rows);
    for (uint32_t i = 0; i < c->n_shred; i++) {
        fz_free(c->shred[i].def);
        fz_free(c->shred[i].rep);
        fz_free(c->shred[i].row);
    }
    fz_free(c->shred);
    fz_free(c);
}
size_t pq_codec_bytes(const pq_codec *c) {
    size_t n = sizeof *c + c->body.cap + c->comp.cap + c->head.cap + (size_t)c->xlat_cap * sizeof *c->xlat + ((size_t)c->codes_cap + c->rows_cap) * 4;
    if (c->zc) n += ZSTD_sizeof_CCtx(c->zc);
    if (c->zd) n += ZSTD_sizeof_DCtx(c->zd);
    for (uint32_t i = 0; i < c->n_shred; i++) n += (size_t)c->shred[i].cap * 6;
    return n;
}

static fz_status broken(fz_error *err, const char *what) { return fz_fail(err, FZ_FATAL, "parquet.compress", "%s failed to compress a page", what); }

static fz_status compress_gzip(pq_codec *c, int level, const void *p, size_t n, fz_error *err) {
    if (c->gz && c->gz_level != level) {
        libdeflate_free_compressor(c->gz);
        c->gz = NULL;
    }
    if (!c->gz) {
        c->gz = libdeflate_alloc_compressor(level);
        c->gz_level = level;
    }
    if (!c->gz) return broken(err, "gzip");
    fz_buf_reserve(&c->comp, libdeflate_gzip_compress_bound(c->gz, n));
    c->comp.len = libdeflate_gzip_compress(c->gz, p, n, c->comp.data, c->comp.cap);
    return c->comp.len ? FZ_OK : broken(err, "gzip");
}
static fz_status compress_zstd(pq_codec *c, int level, const void *p, size_t n, fz_error *err) {
    if (!c->zc) c->zc = ZSTD_createCCtx();
    if (!c->zc) return broken(err, "zstd");
    fz_buf_reserve(&c->comp, ZSTD_compressBound(n));
    size_t r = ZSTD_compressCCtx(c->zc, c->comp.data, c->comp.cap, p, n, level);
    if (ZSTD_isError(r)) return broken(err, "zstd");
    c->comp.len = r;
    return FZ_OK;
}
fz_status pq_compress_way(pq_codec *c, pq_way way, const void *p, size_t n, fz_error *err) {
    static const struct { int level, hash_log, min_match; } of[] = {[PQ_WAY_LEVEL] = {PQ_ZSTD_LEVEL, 0, 0}, [PQ_WAY_FAST] = {1, 0, 0}, [PQ_WAY_LINES] = {1, 12, 5}, [PQ_WAY_LONG] = {1, 12, 7},
                                                                         [PQ_WAY_LINES_FAST] = {-2, 12, 5}, [PQ_WAY_LONG_FAST] = {-2, 12, 7}, [PQ_WAY_ENTROPY] = {-3, 0, 0}};
    if (way == PQ_WAY_LEVEL || way == PQ_WAY_FAST) return compress_zstd(c, of[way].level, p, n, err);
    if (!c->zc) c->zc = ZSTD_createCCtx();
    if (!c->zc) return broken(err, "zstd");
    fz_buf_reserve(&c->comp, ZSTD_compressBound(n));
    size_t r = 0;
    if (c->way != way) {
        r = ZSTD_CCtx_reset(c->zc, ZSTD_reset_session_and_parameters);
        if (!ZSTD_isError(r)) r = ZSTD_CCtx_setParameter(c->zc, ZSTD_c_compressionLevel, of[way].level);
        if (!ZSTD_isError(r)) r = ZSTD_CCtx_setParameter(c->zc, ZSTD_c_hashLog, of[way].hash_log);
        if (!ZSTD_isError(r)) r = ZSTD_CCtx_setParameter(c->zc, ZSTD_c_minMatch, of[way].min_match);
        (void)ZSTD_CCtx_setParameter(c->zc, ZSTD_c_experimentalParam5, 1); /* ZSTD_c_literalCompressionMode = ZSTD_ps_enable; a library that knows it no more packs less well */
        c->way = way;
    }
    if (!ZSTD_isError(r)) r = ZSTD_compress2(c->zc, c->comp.data, c->comp.cap, p, n);
    if (ZSTD_isError(r)) return broken(err, "zstd");
    c->comp.len = r;
    return FZ_OK;
}

fz_status pq_compress(pq_codec *c, pq_compression how, int level, const void *p, size_t n, fz_sv *out, fz_error *err) {
    c->comp.len = 0;
    size_t len;
    switch (how) {
    case PQ_UNCOMPRESSED: *out = (fz_sv){p, n}; return FZ_OK;
    case PQ_ZSTD: FZ_TRY(compress_zstd(c, level ? level : PQ_ZSTD_LEVEL, p, n, err)); break;
    case PQ_GZIP: FZ_TRY(compress_gzip(c, level ? level : PQ_GZIP_LEVEL, p, n, err)); break;
    case PQ_SNAPPY:
        len = snappy_max_compressed_length(n);
        fz_buf_reserve(&c->comp, len);
        if (snappy_compress(p, n, (char *)c->comp.data, &len) != SNAPPY_OK) return broken(err, "snappy");
        c->comp.len = len;
        break;
    case PQ_LZ4_RAW: {
        if (n > LZ4_MAX_INPUT_SIZE) return broken(err, "lz4");
        int bound = LZ4_compressBound((int)n);
        fz_buf_reserve(&c->comp, (size_t)bound);
        int r = LZ4_compress_default(p, (char *)c->comp.data, (int)n, bound);
        if (r <= 0) return broken(err, "lz4");
        c->comp.len = (size_t)r;
        break;
    }
    default: return fz_fail(err, FZ_FATAL, "parquet.codec", "unknown compression %d", (int)how);
    }
    *out = (fz_sv){(const char *)c->comp.data, c->comp.len};
    return FZ_OK;
}

static bool decompress_gzip(pq_codec *c, const uint8_t *p, size_t n, uint8_t *out, size_t out_n) {
    if (!c->gd) c->gd = libdeflate_alloc_decompressor();
    if (!c->gd) return false;
    size_t at = 0;
    do { /* a gzip stream may have several members */
        size_t used, got;
        if (libdeflate_gzip_decompress_ex(c->gd, p, n, out + at, out_n - at, &used, &got) != LIBDEFLATE_SUCCESS) return false;
        at += got;
        p += used;
        n -= used;
    } while (n && at < out_n);
    return at == out_n;
}

fz_status pq_decompress(pq_codec *c, int codec, const void *p, size_t n, void *out, size_t out_n, fz_error *err) {
    bool ok = false;
    size_t len = out_n;
    switch (codec) {
    case PQ_CODEC_UNCOMPRESSED:
        ok = n == out_n;
        if (ok && n) memcpy(out, p, n);
        break;
    case PQ_CODEC_ZSTD: {
        if (!c->zd) c->zd = ZSTD_createDCtx();
        size_t r = c->zd ? ZSTD_decompressDCtx(c->zd, out, out_n, p, n) : 0;
        ok = !ZSTD_isError(r) && r == out_n;
        break;
    }
    case PQ_CODEC_SNAPPY: ok = snappy_uncompress(p, n, out, &len) == SNAPPY_OK && len == out_n; break;
    case PQ_CODEC_GZIP: ok = decompress_gzip(c, p, n, out, out_n); break;
    case PQ_CODEC_LZ4_RAW: ok = n <= INT32_MAX && out_n <= INT32_MAX && LZ4_decompress_safe(p, out, (int)n, (int)out_n) == (int)out_n; break;
    default: return fz_fail(err, FZ_FATAL, "parquet.codec", "the file uses compression codec %d, which is not supported", codec);
    }
    return ok ? FZ_OK : fz_fail(err, FZ_FATAL, "parquet.corrupt", "a page does not decompress to the size that its header says");
}
