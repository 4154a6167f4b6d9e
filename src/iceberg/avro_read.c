/* Avro values and containers, reading. See avro_int.h. */
#include "iceberg/avro_int.h"
#include <libdeflate.h>
#include <snappy-c.h>
#include <zstd.h>

static fz_status damaged(fz_error *err, const char *what) { return fz_fail(err, FZ_FATAL, "iceberg.avro", "Avro file is damaged: %s", what); }

/* ---- values ---- */

fz_status av_long(av_in *in, int64_t *out, fz_error *err) {
    uint64_t u = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        if (in->p == in->end) return damaged(err, "it ends within a number");
        uint8_t b = *in->p++;
        u |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80)) {
            *out = (int64_t)(u >> 1) ^ -(int64_t)(u & 1);
            return FZ_OK;
        }
    }
    return damaged(err, "a number has more than ten bytes");
}

fz_status av_raw(av_in *in, size_t n, const uint8_t **out, fz_error *err) {
    if (n > (size_t)(in->end - in->p)) return damaged(err, "it ends within a value");
    *out = in->p;
    in->p += n;
    return FZ_OK;
}

fz_status av_bytes(av_in *in, fz_sv *out, fz_error *err) {
    int64_t n;
    const uint8_t *p = NULL;
    FZ_TRY(av_long(in, &n, err));
    if (n < 0) return damaged(err, "a length is negative");
    FZ_TRY(av_raw(in, (size_t)n, &p, err));
    *out = (fz_sv){(const char *)p, (size_t)n};
    return FZ_OK;
}

fz_status av_branch(av_in *in, const av_type *t, const av_type **out, fz_error *err) {
    *out = t;
    if (t->kind != AV_UNION) return FZ_OK;
    int64_t i;
    FZ_TRY(av_long(in, &i, err));
    if (i < 0 || i >= (int64_t)t->n) return damaged(err, "a union has no such branch");
    *out = t->fields[i].type;
    return FZ_OK;
}

fz_status av_items(av_in *in, int64_t *count, fz_error *err) {
    FZ_TRY(av_long(in, count, err));
    if (*count >= 0) return FZ_OK;
    if (*count == INT64_MIN) return damaged(err, "an array is too long");
    *count = -*count;
    int64_t bytes;
    return av_long(in, &bytes, err);
}

static fz_status skip_items(av_in *in, const av_type *t, int depth, fz_error *err) {
    int64_t n;
    do {
        FZ_TRY(av_items(in, &n, err));
        for (int64_t i = 0; i < n; i++) {
            if (--in->budget < 0) return damaged(err, "it holds more values than bytes");
            fz_sv key;
            if (t->kind == AV_MAP) FZ_TRY(av_bytes(in, &key, err));
            FZ_TRY(av_skip(in, t->fields[0].type, depth + 1, err));
        }
    } while (n);
    return FZ_OK;
}

fz_status av_skip(av_in *in, const av_type *t, int depth, fz_error *err) {
    int64_t l;
    fz_sv sv;
    const uint8_t *p = NULL;
    if (depth > AV_MAX_DEPTH || --in->budget < 0) return damaged(err, "values are nested too deeply");
    switch (t->kind) {
    case AV_NULL: return FZ_OK;
    case AV_BOOLEAN: return av_raw(in, 1, &p, err);
    case AV_INT:
    case AV_LONG:
    case AV_ENUM: return av_long(in, &l, err);
    case AV_FLOAT: return av_raw(in, 4, &p, err);
    case AV_DOUBLE: return av_raw(in, 8, &p, err);
    case AV_BYTES:
    case AV_STRING: return av_bytes(in, &sv, err);
    case AV_FIXED: return av_raw(in, (size_t)t->size, &p, err);
    case AV_RECORD:
        for (uint32_t i = 0; i < t->n; i++) FZ_TRY(av_skip(in, t->fields[i].type, depth + 1, err));
        return FZ_OK;
    case AV_ARRAY:
    case AV_MAP: return skip_items(in, t, depth, err);
    case AV_UNION: break;
    }
    const av_type *b;
    FZ_TRY(av_branch(in, t, &b, err));
    return av_skip(in, b, depth + 1, err);
}

fz_status av_mismatch(const av_type *t, const char *what, const char *want, fz_error *err) {
    static const char *const names[] = {"null", "boolean", "int", "long", "float", "double", "bytes", "string", "fixed", "enum", "record", "array", "map", "union"};
    return fz_fail(err, FZ_FATAL, "iceberg.avro", "%s is of Avro type %s, %s is wanted", what, names[t->kind], want);
}

fz_status av_get_i64(av_in *in, const av_type *t, int64_t *out, bool *null, const char *what, fz_error *err) {
    FZ_TRY(av_branch(in, t, &t, err));
    *null = t->kind == AV_NULL;
    if (*null) return FZ_OK;
    if (t->kind != AV_INT && t->kind != AV_LONG) return av_mismatch(t, what, "int or long", err);
    return av_long(in, out, err);
}

fz_status av_get_sv(av_in *in, const av_type *t, fz_sv *out, bool *null, const char *what, fz_error *err) {
    const uint8_t *p = NULL;
    FZ_TRY(av_branch(in, t, &t, err));
    *null = t->kind == AV_NULL;
    if (*null) return FZ_OK;
    if (t->kind == AV_STRING || t->kind == AV_BYTES) return av_bytes(in, out, err);
    if (t->kind != AV_FIXED) return av_mismatch(t, what, "string, bytes or fixed", err);
    FZ_TRY(av_raw(in, (size_t)t->size, &p, err));
    *out = (fz_sv){(const char *)p, (size_t)t->size};
    return FZ_OK;
}

fz_status av_get_bool(av_in *in, const av_type *t, bool *out, bool *null, const char *what, fz_error *err) {
    const uint8_t *p = NULL;
    FZ_TRY(av_branch(in, t, &t, err));
    *null = t->kind == AV_NULL;
    if (*null) return FZ_OK;
    if (t->kind != AV_BOOLEAN) return av_mismatch(t, what, "boolean", err);
    FZ_TRY(av_raw(in, 1, &p, err));
    *out = *p != 0;
    return FZ_OK;
}

/* ---- containers ---- */

static fz_status read_meta(av_file *f, fz_arena *a, av_in *in, fz_error *err) {
    int64_t n;
    fz_pair *meta = NULL;
    size_t cap = 0;
    do {
        FZ_TRY(av_items(in, &n, err));
        for (int64_t i = 0; i < n; i++) {
            fz_sv k, v;
            FZ_TRY(av_bytes(in, &k, err));
            FZ_TRY(av_bytes(in, &v, err));
            if (f->n_meta == cap) {
                size_t more = cap ? cap * 2 : 16;
                meta = fz_arena_realloc(a, meta, cap * sizeof *meta, more * sizeof *meta);
                cap = more;
            }
            meta[f->n_meta++] = (fz_pair){.key = fz_arena_strndup(a, k.p, k.n), .value = fz_arena_strndup(a, v.p, v.n)};
        }
    } while (n);
    f->meta = meta;
    return FZ_OK;
}

static fz_status codec_of(const char *name, ice_avro_codec *out, fz_error *err) {
    static const char *const names[] = {"null", "deflate", "snappy", "zstandard"};
    for (int i = 0; i < 4; i++)
        if (!name || strcmp(name, names[i]) == 0) {
            *out = (ice_avro_codec)i;
            return FZ_OK;
        }
    return fz_fail(err, FZ_FATAL, "iceberg.avro", "Avro codec %s is not supported", name);
}

fz_status av_file_open(av_file *f, fz_arena *a, const void *bytes, size_t n, fz_error *err) {
    *f = (av_file){.p = bytes, .end = (const uint8_t *)bytes + n};
    if (n < 4 || memcmp(bytes, "Obj\1", 4) != 0) return fz_fail(err, FZ_FATAL, "iceberg.avro", "not an Avro container file");
    av_in in = {.p = f->p + 4, .end = f->end, .budget = (int64_t)n};
    const uint8_t *sync = NULL;
    FZ_TRY(read_meta(f, a, &in, err));
    FZ_TRY(av_raw(&in, 16, &sync, err));
    memcpy(f->sync, sync, 16);
    f->p = f->first = in.p;
    FZ_TRY(codec_of(fz_pair_get(f->meta, f->n_meta, "avro.codec"), &f->codec, err));
    const char *schema = fz_pair_get(f->meta, f->n_meta, "avro.schema");
    if (!schema) return damaged(err, "it has no schema");
    return av_schema_parse(a, schema, strlen(schema), &f->schema, err);
}

static fz_status unpack_deflate(av_file *f, fz_sv in, size_t most, fz_error *err) {
    struct libdeflate_decompressor *d = f->unpacker;
    if (!d) f->unpacker = d = libdeflate_alloc_decompressor();
    if (!d) return damaged(err, "no memory to unpack it");
    size_t want = in.n * 4 + 1024;
    for (;;) {
        if (want > most) want = most;
        fz_buf_reserve(&f->unpacked, want);
        size_t n;
        enum libdeflate_result r = libdeflate_deflate_decompress(d, in.p, in.n, f->unpacked.data, want, &n);
        if (r == LIBDEFLATE_SUCCESS) {
            f->unpacked.len = n;
            return FZ_OK;
        }
        if (r != LIBDEFLATE_INSUFFICIENT_SPACE || want == most) return damaged(err, "a deflate block cannot be unpacked");
        want *= 2;
    }
}

static fz_status unpack_snappy(av_file *f, fz_sv in, size_t most, fz_error *err) {
    size_t n;
    if (in.n < 4 || snappy_uncompressed_length(in.p, in.n - 4, &n) != SNAPPY_OK || n > most) return damaged(err, "a snappy block cannot be unpacked");
    fz_buf_reserve(&f->unpacked, n + 1);
    if (snappy_uncompress(in.p, in.n - 4, (char *)f->unpacked.data, &n) != SNAPPY_OK) return damaged(err, "a snappy block cannot be unpacked");
    const uint8_t *c = (const uint8_t *)in.p + in.n - 4;
    uint32_t crc = (uint32_t)c[0] << 24 | (uint32_t)c[1] << 16 | (uint32_t)c[2] << 8 | c[3];
    if (crc != libdeflate_crc32(0, f->unpacked.data, n)) return damaged(err, "a snappy block has another checksum");
    f->unpacked.len = n;
    return FZ_OK;
}

static fz_status unpack_zstd(av_file *f, fz_sv in, size_t most, fz_error *err) {
    ZSTD_DCtx *d = ZSTD_createDCtx();
    ZSTD_inBuffer src = {in.p, in.n, 0};
    size_t r = 1;
    while (d && f->unpacked.len < most && (src.pos < src.size || r)) {
        fz_buf_reserve(&f->unpacked, 128 << 10);
        size_t room = f->unpacked.cap - f->unpacked.len;
        if (room > most - f->unpacked.len) room = most - f->unpacked.len;
        ZSTD_outBuffer dst = {f->unpacked.data + f->unpacked.len, room, 0};
        size_t before = src.pos;
        r = ZSTD_decompressStream(d, &dst, &src);
        f->unpacked.len += dst.pos;
        if (ZSTD_isError(r) || (dst.pos == 0 && src.pos == before)) break;
    }
    bool ok = d && r == 0 && src.pos == src.size;
    ZSTD_freeDCtx(d);
    return ok ? FZ_OK : damaged(err, "a zstandard block cannot be unpacked");
}

static fz_status next_block(av_file *f, fz_error *err) {
    av_in in = {.p = f->p, .end = f->end};
    fz_sv data;
    const uint8_t *sync = NULL;
    FZ_TRY(av_long(&in, &f->rows, err));
    FZ_TRY(av_bytes(&in, &data, err));
    FZ_TRY(av_raw(&in, 16, &sync, err));
    if (f->rows < 0) return damaged(err, "a block has a negative number of records");
    if (memcmp(sync, f->sync, 16) != 0) return damaged(err, "a block does not end with the sync marker");
    f->p = in.p;
    f->unpacked.len = 0;
    /* deflate packs at most 1032 to 1, the others less for what is not zero bytes; more is a bomb */
    size_t most = data.n < AV_MAX_BLOCK / 2048 ? data.n * 2048 + 1024 : AV_MAX_BLOCK;
    if (f->codec == ICE_AVRO_DEFLATE) FZ_TRY(unpack_deflate(f, data, most, err));
    else if (f->codec == ICE_AVRO_SNAPPY) FZ_TRY(unpack_snappy(f, data, most, err));
    else if (f->codec == ICE_AVRO_ZSTD) FZ_TRY(unpack_zstd(f, data, most, err));
    const uint8_t *p = f->codec == ICE_AVRO_NULL ? (const uint8_t *)data.p : f->unpacked.data;
    size_t n = f->codec == ICE_AVRO_NULL ? data.n : f->unpacked.len;
    f->in = (av_in){.p = p, .end = p + n, .budget = (int64_t)n * 8 + 100000};
    return FZ_OK;
}

fz_status av_file_next(av_file *f, bool *more, fz_error *err) {
    while (f->rows == 0) {
        if (f->in.p != f->in.end) return damaged(err, "a block is longer than its records");
        if (f->p == f->end) {
            *more = false;
            return FZ_OK;
        }
        FZ_TRY(next_block(f, err));
    }
    f->rows--;
    *more = true;
    return FZ_OK;
}

void av_file_rewind(av_file *f) {
    f->p = f->first;
    f->rows = 0;
    f->in = (av_in){0};
}

void av_file_close(av_file *f) {
    if (f->unpacker) libdeflate_free_decompressor(f->unpacker);
    fz_buf_free(&f->unpacked);
    *f = (av_file){0};
}
