/* Compressed bodies: gzip and deflate by ISA-L, zstd. The ceiling is met while inflating: never more than it is made.
 *
 * What ends a member is the inflater's word, not a search for magic bytes; what follows the last member and is no member is an error.
 * Source: RFC 1950, 1951, 1952, 8878; RFC 9659 (a window of 8 MiB for zstd over HTTP).
 */
#include "net/server.h"
#include <isa-l/igzip_lib.h>
#include <zstd.h>

enum { ZSTD_WINDOW_LOG = 23, FIRST = 4 << 10 };

static fz_status broken(const char *coding, const char *why, fz_error *err) { return fz_fail(err, FZ_DATA, "body.encoding", "the body is no whole %s: %s", coding, why); }
static fz_status too_large(size_t max, fz_error *err) { return fz_fail(err, FZ_DATA, "body.too-large", "the body is larger than %zu bytes when decompressed", max); }

/* Room for what comes next, one byte more than is allowed at most. `left`: of the input. */
static size_t make_room(fz_buf *out, size_t base, size_t max, size_t left) {
    size_t done = out->len - base, most = max - done + 1;
    if (out->cap == out->len) {
        size_t want = done > left * 4 ? done : left * 4;
        if (want < FIRST) want = FIRST;
        fz_buf_reserve(out, want < most ? want : most);
    }
    return out->cap - out->len < most ? out->cap - out->len : most;
}

static const char *isal_why(int rc) {
    switch (rc) {
    case ISAL_END_INPUT: return "it ends too early";
    case ISAL_INCORRECT_CHECKSUM: return "its checksum is wrong";
    case ISAL_INVALID_WRAPPER: return "its header is wrong";
    case ISAL_UNSUPPORTED_METHOD: return "its header names another method";
    case ISAL_NEED_DICT: return "it needs a dictionary";
    default: return "its data is damaged";
    }
}

/* One member. */
static fz_status one_member(struct inflate_state *s, const char *coding, size_t base, size_t max, fz_buf *out, fz_error *err) {
    while (s->block_state != ISAL_BLOCK_FINISH) {
        size_t room = make_room(out, base, max, s->avail_in), before = s->avail_in;
        s->next_out = out->data + out->len;
        s->avail_out = (uint32_t)(room < INT32_MAX ? room : INT32_MAX);
        uint32_t given = s->avail_out;
        int rc = isal_inflate(s);
        size_t made = given - s->avail_out;
        out->len += made;
        if (out->len - base > max) return too_large(max, err);
        if (rc < 0 || rc == ISAL_NEED_DICT) return broken(coding, isal_why(rc), err);
        if (!made && s->avail_in == before && s->avail_out && s->block_state != ISAL_BLOCK_FINISH) return broken(coding, isal_why(ISAL_END_INPUT), err);
    }
    return FZ_OK;
}

static fz_status inflate_isal(const char *coding, uint32_t wrapper, const uint8_t *p, size_t n, size_t max, fz_buf *out, fz_error *err) {
    if (n > UINT32_MAX) return too_large(max, err);
    struct inflate_state *s = fz_malloc(sizeof *s);
    isal_inflate_init(s);
    s->next_in = (uint8_t *)(uintptr_t)p;
    s->avail_in = (uint32_t)n;
    size_t base = out->len;
    fz_status rc;
    for (;;) {
        s->crc_flag = wrapper;
        bool reserved = wrapper == ISAL_GZIP && s->avail_in > 3 && s->next_in[3] & 0xE0; /* RFC 1952, 2.3.1.2; ISA-L does not look at them */
        rc = reserved ? broken(coding, isal_why(ISAL_INVALID_WRAPPER), err) : one_member(s, coding, base, max, out, err);
        if (rc != FZ_OK || !s->avail_in) break;
        if (wrapper != ISAL_GZIP) {
            rc = broken(coding, "bytes follow its end", err);
            break;
        }
        isal_inflate_reset(s);
    }
    fz_free(s);
    return rc;
}

/* "deflate" is zlib's format by the standard, and bare deflate from some clients. */
static fz_status inflate_deflate(const uint8_t *p, size_t n, size_t max, fz_buf *out, fz_error *err) {
    bool zlib = n >= 2 && (p[0] & 15) == 8 && p[0] >> 4 <= 7 && (p[0] * 256 + p[1]) % 31 == 0;
    return inflate_isal("deflate", zlib ? ISAL_ZLIB : ISAL_DEFLATE, p, n, max, out, err);
}

static fz_status zstd_stream(ZSTD_DCtx *d, ZSTD_inBuffer *in, size_t base, size_t max, fz_buf *out, fz_error *err) {
    for (size_t rc = 1; rc != 0;) {
        size_t room = make_room(out, base, max, in->size - in->pos), before = in->pos;
        ZSTD_outBuffer to = {out->data + out->len, room, 0};
        rc = ZSTD_decompressStream(d, &to, in);
        if (ZSTD_isError(rc)) return broken("zstd", ZSTD_getErrorName(rc), err);
        out->len += to.pos;
        if (out->len - base > max) return too_large(max, err);
        if (rc && !to.pos && in->pos == before) return broken("zstd", "it ends too early", err);
    }
    return FZ_OK;
}

/* Frames that tell their size are decompressed in one go, which needs no window of its own. */
static fz_status inflate_zstd(const uint8_t *p, size_t n, size_t max, fz_buf *out, fz_error *err) {
    if (!n) return broken("zstd", "it is empty", err);
    ZSTD_DCtx *d = ZSTD_createDCtx();
    if (!d) return fz_fail(err, FZ_RETRY, "body.encoding", "no memory for zstd");
    ZSTD_DCtx_setParameter(d, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG);
    ZSTD_inBuffer in = {p, n, 0};
    size_t base = out->len;
    fz_status rc = FZ_OK;
    while (rc == FZ_OK && in.pos < in.size) {
        unsigned long long size = ZSTD_getFrameContentSize(p + in.pos, n - in.pos);
        size_t length = ZSTD_findFrameCompressedSize(p + in.pos, n - in.pos);
        if (size == ZSTD_CONTENTSIZE_ERROR) rc = broken("zstd", "its header is wrong", err);
        else if (size == ZSTD_CONTENTSIZE_UNKNOWN) rc = zstd_stream(d, &in, base, max, out, err);
        else if (ZSTD_isError(length)) rc = broken("zstd", ZSTD_getErrorName(length), err);
        else if (size > max - (out->len - base)) rc = too_large(max, err);
        else {
            fz_buf_reserve(out, (size_t)size + 1);
            size_t made = ZSTD_decompressDCtx(d, out->data + out->len, (size_t)size, p + in.pos, length);
            if (ZSTD_isError(made)) rc = broken("zstd", ZSTD_getErrorName(made), err);
            else out->len += made;
            in.pos += length;
        }
    }
    ZSTD_freeDCtx(d);
    return rc;
}

fz_status net_inflate(const char *coding, const void *p, size_t n, size_t max, fz_buf *out, fz_error *err) {
    if (fz_ieq(coding, "gzip") || fz_ieq(coding, "x-gzip")) return inflate_isal("gzip", ISAL_GZIP, p, n, max, out, err);
    if (fz_ieq(coding, "zstd")) return inflate_zstd(p, n, max, out, err);
    if (fz_ieq(coding, "deflate")) return inflate_deflate(p, n, max, out, err);
    if (!fz_ieq(coding, "identity")) return fz_fail(err, FZ_USER, "body.coding", "the encoding '%s' is not known; gzip, zstd, deflate and identity are", coding);
    if (n > max) return too_large(max, err);
    fz_buf_append(out, p, n);
    return FZ_OK;
}
