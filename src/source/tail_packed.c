/* Packed files of logs that are followed: a rotated log that was packed before all of it was read, or while nobody looked. See tail_int.h.
 *
 * Positions count bytes of text, as those of the plain file did: what was read of that is passed over, and the rest is handed out. On the way the bytes before the position are compared
 * with those that were read last: a packed file that only begins as the log does is not taken for it.
 *
 * What it does not do: go back, but by unpacking from the front again; hold more than a few lines (file_text), or two packed files a reader open at a time (tail.c sees to that).
 *
 * Invariants
 *  1. The size of a text is known only when its last member has come to its end with the right checksum.
 *  2. A file that ends in the middle is not finished: its packer may be at work. Its whole lines are handed out, the rest when it has changed.
 *  3. One call unpacks SLICE bytes of what is passed over at most: nobody waits for the lock for long.
 */
#include "source/tail_int.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

enum { BLOCK = 64 << 10, SLICE = 4 << 20, SETTLE_MS = 2000, GIVEN_UP_MS = 60000 };

ssize_t tail_read_at(int fd, uint8_t *out, size_t n, int64_t at) {
    size_t done = 0;
    while (done < n) {
        ssize_t r = pread(fd, out + done, n - done, at + (int64_t)done);
        if (r < 0 && errno == EINTR) continue;
        if (r < 0) return -1;
        if (r == 0) break;
        done += (size_t)r;
    }
    return (ssize_t)done;
}

void tail_note_before(tail_log *l, const uint8_t *p, size_t n) {
    if (n >= TAIL_BEFORE) {
        memcpy(l->before, p + n - TAIL_BEFORE, TAIL_BEFORE);
        l->n_before = TAIL_BEFORE;
        return;
    }
    size_t keep = l->n_before < TAIL_BEFORE - n ? l->n_before : TAIL_BEFORE - n;
    memmove(l->before, l->before + l->n_before - keep, keep);
    memcpy(l->before + keep, p, n);
    l->n_before = (uint32_t)(keep + n);
}

static file_stream *open_stream(const char *name, int fd, file_packing packing) {
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    return own < 0 ? NULL : file_stream_new(name, own, packing, INT64_MAX);
}
static fz_status no_stream(const tail_log *l, fz_error *err) { return fz_fail(err, FZ_RETRY, "file.io", "cannot open '%s': %s", l->path, strerror(errno)); }

bool tail_packed_head(const char *path, int fd, file_packing packing, uint8_t *out, size_t n, size_t *got) {
    file_stream *s = open_stream(path, fd, packing);
    fz_error err;
    *got = 0;
    bool ok = s != NULL;
    for (bool end = false; ok && !end && *got < n;) {
        size_t more;
        if (file_stream_read(s, out + *got, n - *got, 0, &more, &end, &err) != FZ_OK) ok = *got > 0; /* what came out before the damage */
        if (!ok || (!more && !end)) break;
        *got += more;
    }
    file_stream_free(s);
    return ok;
}

tail_packed *tail_packed_new(file_packing packing, const struct stat *st) {
    tail_packed *p = FZ_NEW(tail_packed);
    *p = (tail_packed){.packing = packing, .id = tail_id_of(st), .size = -1};
    return p;
}
void tail_packed_free(tail_packed *p) {
    if (p) file_text_close(&p->text);
    fz_free(p);
}

/* RFC 1952, 2.3.1: the last four bytes of a member are the size of its text modulo 2^32. Of a file of one member that is the size of its text. */
bool tail_packed_ends_at(int fd, file_packing packing, int64_t pos) {
    struct stat st;
    uint8_t b[4];
    if (packing != FILE_GZIP || pos <= 0 || fstat(fd, &st) != 0 || st.st_size < 18 || tail_read_at(fd, b, 4, st.st_size - 4) != 4) return false;
    return ((uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24) == (uint32_t)pos;
}

bool tail_packed_more(tail_log *l) {
    tail_packed *p = l->packed;
    struct stat st;
    if (p->waiting && fstat(l->fd, &st) == 0) {
        tail_id now = tail_id_of(&st);
        int64_t age = fz_now_ms() - (int64_t)st.st_mtim.tv_sec * 1000;
        p->waiting = tail_id_same(&now, &p->id) || (age >= 0 && age < SETTLE_MS); /* unpacked again from the front: not after each of the packer's writes */
    }
    return !p->waiting && (p->size < 0 || l->pos < p->size);
}

/* No more comes out of it now. */
static void wait_for_more(tail_log *l) {
    tail_packed *p = l->packed;
    fz_error e = p->damage;
    bool quiet = fz_now_ms() - (int64_t)p->id.mtime.tv_sec * 1000 > GIVEN_UP_MS;
    file_text_close(&p->text);
    p->waiting = true;
    p->damaged = false;
    if (!quiet || p->told) return; /* somebody is packing it */
    p->told = true;
    fz_metric_add(FZ_M_FILES_DAMAGED, 1);
    (void)!fz_detail(&e, "the log was read to byte %" PRId64 " of its text; the rest is read when the file changes", l->pos);
    fz_log_error(FZ_LOG_ERROR, "file.damaged", &e);
}

static void refuse(tail_log *l, const char *why) {
    fz_metric_add(FZ_M_FILES_ALIKE, 1);
    fz_log(FZ_LOG_ERROR, "file.same-beginning", FZ_KV("log", "%s", l->path), FZ_KV("position", "%" PRId64, l->pos), FZ_KV("reason", "%s", why), NULL);
    file_text_close(&l->packed->text);
    l->packed->size = l->pos;
    l->truncated = true; /* another file may be the log's */
}

static fz_status open_text(tail_log *l, fz_error *err) {
    tail_packed *p = l->packed;
    struct stat st;
    file_text_close(&p->text);
    if (fstat(l->fd, &st) != 0) return file_io_error(err, "read", l->path);
    p->id = tail_id_of(&st);
    p->text.stream = open_stream(l->path, l->fd, p->packing);
    p->at = 0;
    return p->text.stream ? FZ_OK : no_stream(l, err);
}

/* On to l->pos. *there false: not yet, or it is not to be had. */
static fz_status pass_over(tail_log *l, bool *there, fz_error *err) {
    tail_packed *p = l->packed;
    uint8_t *block = fz_malloc(BLOCK);
    tail_log last = {.n_before = 0}; /* its `before` only */
    fz_status rc = FZ_OK;
    bool end = false;
    for (size_t done = 0; rc == FZ_OK && !end && p->at < l->pos && done < SLICE;) {
        size_t got, want = l->pos - p->at < BLOCK ? (size_t)(l->pos - p->at) : BLOCK;
        rc = file_stream_read(p->text.stream, block, want, 0, &got, &end, err);
        if (rc != FZ_OK) break;
        tail_note_before(&last, block, got);
        p->at += (int64_t)got;
        done += got;
    }
    fz_free(block);
    if (rc == FZ_FATAL) {
        p->damage = *err;
        wait_for_more(l);
        return FZ_OK;
    }
    FZ_TRY(rc);
    *there = p->at == l->pos;
    uint32_t n = last.n_before < l->n_before ? last.n_before : l->n_before;
    if (*there && memcmp(last.before + last.n_before - n, l->before + l->n_before - n, n) != 0) {
        *there = false;
        refuse(l, "a packed file begins with the same line, but is another log: it is not read");
    } else if (!*there && end) {
        refuse(l, "a packed file begins with the same line, but holds less than was read of the log: it is not read");
    }
    return FZ_OK;
}

fz_status tail_packed_lines(tail_log *l, file_chunk *f, uint32_t max, fz_error *err) {
    tail_packed *p = l->packed;
    bool there = true, ended = false;
    if (!p->text.stream || p->at > l->pos) FZ_TRY(open_text(l, err));
    if (p->at < l->pos) FZ_TRY(pass_over(l, &there, err));
    if (!there || p->waiting) return FZ_OK;
    fz_status rc = p->damaged ? FZ_FATAL : file_text_lines(&p->text, f, FILE_TEXT_READ, 0, max, &ended, err);
    if (rc == FZ_FATAL) { /* lines that came out before */
        if (!p->damaged) p->damage = *err;
        p->damaged = true;
        rc = file_text_lines(&p->text, f, FILE_TEXT_WHOLE, 0, max, &ended, err);
    }
    FZ_TRY(rc);
    p->at = f->chunk.to;
    if (f->chunk.n && f->bytes) tail_note_before(l, f->bytes, (size_t)(f->chunk.to - f->chunk.from));
    else if (f->chunk.n) l->n_before = 0; /* a line that is too large: not held */
    if (ended) {
        p->size = p->at;
        file_text_close(&p->text);
    } else if (p->damaged && !f->chunk.n) wait_for_more(l);
    return FZ_OK;
}

/* ---- from the front, beside what is being read ---- */

typedef struct walk { int64_t at, line; /* where the line that was begun last begins */ } walk;

/* Up to `before` or the end. tail: the bytes of the last line that begins before `before` - 1, max + 2 of them at most. */
static fz_status walk_to(const tail_log *l, int64_t before, size_t max, fz_buf *tail, walk *w, bool *whole, fz_error *err) {
    file_stream *s = open_stream(l->path, l->fd, l->packed->packing);
    if (!s) return no_stream(l, err);
    uint8_t *block = fz_malloc(BLOCK);
    fz_status rc = FZ_OK;
    *w = (walk){0, 0};
    *whole = false;
    while (w->at < before && !*whole) {
        size_t got, want = before - w->at < BLOCK ? (size_t)(before - w->at) : BLOCK;
        if ((rc = file_stream_read(s, block, want, 0, &got, whole, err)) != FZ_OK) break;
        size_t look = w->at + (int64_t)got == before && got ? got - 1 : got; /* the last line's own LF does not count */
        const uint8_t *q = look ? memrchr(block, '\n', look) : NULL, *from = q ? q + 1 : block;
        if (q) {
            w->line = w->at + (q - block) + 1;
            tail->len = 0;
        }
        if (tail->len <= max + 2) fz_buf_append(tail, from, (size_t)(block + got - from));
        w->at += (int64_t)got;
    }
    file_stream_free(s);
    fz_free(block);
    return rc;
}

fz_status tail_packed_size(tail_log *l, int64_t *size, fz_error *err) {
    walk w;
    bool whole;
    fz_buf tail = {0};
    if (l->packed->size >= 0) return *size = l->packed->size, FZ_OK;
    fz_status rc = walk_to(l, INT64_MAX, 0, &tail, &w, &whole, err);
    *size = whole ? w.at : w.line;
    fz_buf_free(&tail);
    return rc == FZ_FATAL ? FZ_OK : rc;
}

fz_status tail_packed_probe(tail_log *l, int64_t before, uint32_t max, src_probe *out, fz_error *err) {
    walk w;
    bool whole;
    fz_buf line = {0};
    out->result = SRC_PROBE_GONE;
    if (before <= 0) return FZ_OK;
    if (tail_packed_ends_at(l->fd, l->packed->packing, before)) return out->result = SRC_PROBE_SAME, FZ_OK;
    fz_status rc = walk_to(l, before, max, &line, &w, &whole, err);
    if (rc == FZ_OK && w.at < before) out->result = SRC_PROBE_BEYOND;
    if (rc == FZ_OK && w.at == before) {
        fz_chunk c = {.from = w.line, .to = w.line};
        uint32_t cap = 0;
        if (line.len > (size_t)max + 2) file_add_record(&c, &cap, w.line)->oversized = true;
        else file_split_lines(&c, line.data, line.len, true, max);
        if (c.n) *out = (src_probe){SRC_PROBE_OK, c.rec[0].offset, c.rec[0].timestamp_ms, src_record_hash(&c.rec[0])};
        fz_free(c.rec);
    }
    fz_buf_free(&line);
    return rc == FZ_FATAL ? FZ_OK : rc; /* not whole: what was read of it cannot be compared now */
}
