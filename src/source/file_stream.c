/* Packed files and standard input, from front to back. See file_int.h.
 *
 * Memory is bounded whatever the file is: one block of input and the state of the inflater, for zstd with a window of 8 MiB at most.
 * What it does not do: seek; go on behind damage.
 *
 * Invariants
 *  1. What ends a member (gzip) or frame (zstd) is the inflater's word; the next one may follow, anything else is damage.
 *  2. A file that ends inside a member or frame, or has none, is damaged: half a file is never taken for a whole one.
 * Source: RFC 1952 (2.2: members), RFC 8878 (3: frames), RFC 9659 (a window of 8 MiB).
 */
#include "source/file_int.h"
#include <errno.h>
#include <isa-l/igzip_lib.h>
#include <poll.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

enum { IN = 64 << 10, MAGIC = 4, ZSTD_WINDOW_LOG = 23 };

struct file_stream {
    const char *name;
    int fd;
    file_packing packing;
    int64_t left;      /* of the input */
    int64_t offset;    /* where the next input lies; -1: what is no file is read on */
    int64_t made;      /* bytes of text */
    bool eof, inside;  /* of the input; of a member */
    uint64_t members;  /* that are over */
    size_t at, n;      /* input that is not used yet: in[at..n) */
    struct inflate_state *gz;
    ZSTD_DCtx *zstd;
    uint8_t in[IN];
};

file_packing file_packing_of(const uint8_t *p, size_t n) {
    if (n >= 2 && p[0] == 0x1f && p[1] == 0x8b) return FILE_GZIP;
    if (n < MAGIC) return FILE_PLAIN;
    uint32_t magic = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    return magic == ZSTD_MAGICNUMBER || (magic & 0xFFFFFFF0u) == ZSTD_MAGIC_SKIPPABLE_START ? FILE_ZSTD : FILE_PLAIN;
}

file_stream *file_stream_new(const char *name, int fd, file_packing packing, int64_t limit) {
    file_stream *f = FZ_NEW(file_stream);
    f->name = name;
    f->fd = fd;
    f->packing = packing;
    f->left = limit;
    f->offset = fd != STDIN_FILENO && lseek(fd, 0, SEEK_CUR) >= 0 ? 0 : -1;
    return f;
}

void file_stream_free(file_stream *f) {
    if (!f) return;
    if (f->fd != STDIN_FILENO) close(f->fd);
    fz_free(f->gz);
    ZSTD_freeDCtx(f->zstd);
    fz_free(f);
}

static fz_status damaged(const file_stream *f, const char *why, fz_error *err) {
    fz_fail(err, FZ_FATAL, "file.damaged", "'%s' is no whole %s file: %s", f->name, f->packing == FILE_GZIP ? "gzip" : "zstd", why);
    return fz_detail(err, "%lld bytes of its text came out before", (long long)f->made);
}

/* At least one byte more of input, unless there is none: then eof, or nothing has come in time. */
static fz_status fill(file_stream *f, int64_t timeout_ms, fz_error *err) {
    if (f->at) memmove(f->in, f->in + f->at, f->n - f->at);
    f->n -= f->at;
    f->at = 0;
    size_t room = IN - f->n;
    if ((int64_t)room > f->left) room = (size_t)f->left;
    if (!room) {
        f->eof = true;
        return FZ_OK;
    }
    struct pollfd p = {.fd = f->fd, .events = POLLIN};
    int ready = poll(&p, 1, timeout_ms < 0 ? 0 : timeout_ms > INT32_MAX ? INT32_MAX : (int)timeout_ms);
    ssize_t r = ready <= 0 ? ready : f->offset >= 0 ? pread(f->fd, f->in + f->n, room, f->offset) : read(f->fd, f->in + f->n, room);
    if (ready == 0 || (r < 0 && (errno == EINTR || errno == EAGAIN))) return FZ_OK;
    if (r < 0) return fz_fail(err, errno == EIO || errno == ENOMEM ? FZ_RETRY : FZ_FATAL, "file.io", "cannot read '%s': %s", f->name, strerror(errno));
    f->eof = r == 0;
    f->n += (size_t)r;
    f->left -= r;
    if (f->offset >= 0) f->offset += r;
    return FZ_OK;
}

/* `want` bytes of input in a row, or all that are left. *ready false: they have not come in time. */
static fz_status have(file_stream *f, size_t want, int64_t timeout_ms, bool *ready, fz_error *err) {
    for (*ready = true; f->n - f->at < want && !f->eof;) {
        size_t before = f->n - f->at;
        FZ_TRY(fill(f, timeout_ms, err));
        if (f->n - f->at == before && !f->eof) return *ready = false, FZ_OK;
    }
    return FZ_OK;
}

static fz_status read_plain(file_stream *f, uint8_t *out, size_t n, int64_t timeout_ms, size_t *got, bool *end, fz_error *err) {
    bool ready;
    FZ_TRY(have(f, 1, timeout_ms, &ready, err));
    *got = f->n - f->at < n ? f->n - f->at : n;
    memcpy(out, f->in + f->at, *got);
    f->at += *got;
    *end = ready && !*got;
    return FZ_OK;
}

static const char *isal_why(int rc) {
    switch (rc) {
    case ISAL_INCORRECT_CHECKSUM: return "its checksum is wrong";
    case ISAL_INVALID_WRAPPER: return "a header is wrong";
    case ISAL_UNSUPPORTED_METHOD: return "a header names another method";
    default: return "its data is damaged";
    }
}

static fz_status begin_member(file_stream *f, fz_error *err) {
    if (f->packing == FILE_ZSTD) {
        if (f->zstd) return FZ_OK; /* it begins the next frame by itself */
        if (!(f->zstd = ZSTD_createDCtx())) return fz_fail(err, FZ_RETRY, "file.memory", "no memory for zstd");
        ZSTD_DCtx_setParameter(f->zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG);
        return FZ_OK;
    }
    if (f->n - f->at >= MAGIC && f->in[f->at + 3] & 0xE0) return damaged(f, "a header is wrong", err); /* reserved flags (2.3.1.2), which ISA-L does not look at */
    if (!f->gz) {
        f->gz = fz_malloc(sizeof *f->gz);
        isal_inflate_init(f->gz);
    } else isal_inflate_reset(f->gz);
    f->gz->crc_flag = ISAL_GZIP;
    return FZ_OK;
}

static fz_status step_gzip(file_stream *f, uint8_t *out, size_t n, size_t *got, bool *over, fz_error *err) {
    f->gz->next_in = f->in + f->at;
    f->gz->avail_in = (uint32_t)(f->n - f->at);
    f->gz->next_out = out;
    f->gz->avail_out = (uint32_t)n;
    int rc = isal_inflate(f->gz);
    f->at = f->n - f->gz->avail_in;
    *got = n - f->gz->avail_out;
    *over = f->gz->block_state == ISAL_BLOCK_FINISH;
    return rc < 0 || rc == ISAL_NEED_DICT ? damaged(f, isal_why(rc), err) : FZ_OK;
}

static fz_status step_zstd(file_stream *f, uint8_t *out, size_t n, size_t *got, bool *over, fz_error *err) {
    ZSTD_inBuffer in = {f->in, f->n, f->at};
    ZSTD_outBuffer to = {out, n, 0};
    size_t rc = ZSTD_decompressStream(f->zstd, &to, &in);
    f->at = in.pos;
    *got = to.pos;
    *over = rc == 0;
    if (!ZSTD_isError(rc)) return FZ_OK;
    if (ZSTD_getErrorCode(rc) != ZSTD_error_frameParameter_windowTooLarge) return damaged(f, ZSTD_getErrorName(rc), err);
    fz_fail(err, FZ_FATAL, "file.zstd-window", "'%s' can only be unpacked with a window of more than %d MiB", f->name, 1 << (ZSTD_WINDOW_LOG - 20));
    return fz_hint(err, "it was packed with --long or --ultra; pack it without");
}

static fz_status read_packed(file_stream *f, uint8_t *out, size_t n, int64_t timeout_ms, size_t *got, bool *end, fz_error *err) {
    for (;;) {
        bool over, ready;
        if (!f->inside) {
            FZ_TRY(have(f, MAGIC, timeout_ms, &ready, err));
            if (!ready) return FZ_OK;
            if (f->at == f->n) return f->members ? (*end = true, FZ_OK) : damaged(f, "it is empty", err);
            FZ_TRY(begin_member(f, err));
            f->inside = true;
        }
        size_t before = f->n - f->at;
        FZ_TRY((f->packing == FILE_GZIP ? step_gzip : step_zstd)(f, out, n, got, &over, err));
        if (over) {
            f->inside = false;
            f->members++;
        }
        if (*got) return FZ_OK;
        if (over || f->n - f->at < before) continue;
        if (f->eof) return damaged(f, "it ends too early", err);
        before = f->n - f->at;
        FZ_TRY(have(f, before + 1, timeout_ms, &ready, err));
        if (!ready) return FZ_OK;
    }
}

fz_status file_stream_read(file_stream *f, uint8_t *out, size_t n, int64_t timeout_ms, size_t *got, bool *end, fz_error *err) {
    bool ready = true;
    *got = 0;
    *end = false;
    if (n > INT32_MAX) n = INT32_MAX;
    if (f->packing == FILE_BY_MAGIC) {
        /* A line that is shorter than the magic must not wait for more: what differs from each magic in its first byte is plain. */
        FZ_TRY(have(f, 1, timeout_ms, &ready, err));
        bool may = f->n > f->at && (f->in[f->at] == 0x1f || f->in[f->at] == 0x28 || (f->in[f->at] & 0xF0) == 0x50);
        if (ready && may) FZ_TRY(have(f, MAGIC, timeout_ms, &ready, err));
        if (!ready) return FZ_OK;
        f->packing = file_packing_of(f->in + f->at, f->n - f->at);
    }
    FZ_TRY((f->packing == FILE_PLAIN ? read_plain : read_packed)(f, out, n, timeout_ms, got, end, err));
    f->made += (int64_t)*got;
    return FZ_OK;
}
