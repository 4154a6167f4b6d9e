/* What a lot of the archive holds: lines in blocks, packed as they fill.
 *
 *     line -> open block of its split (128 KiB of lines) -> packed -> memory, and from there to an unnamed file when that is more than the share
 *
 * The packed log begins with the object's head, on a page: where it is whole in memory and in order, which is the rule with one split, it is the object, and can be written as it stands.
 *
 * Invariants
 *  1. A block holds whole lines of one split and is closed by the first line that fills it: where blocks end follows from the split's lines alone.
 *  2. Blocks leave (arc_body_read) ordered by source and split, then as they were made: the same rows of each split are the same object.
 *  3. The spill file has no name: it is gone with the process.
 * Threads: one at a time; reading leaves the body as it is.
 */
#include "delivery/archive_int.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define BLOCK (128u << 10)
#define MOST_FIRST ((size_t)16 << 20)
#define AROUND 32u /* what of an object is no block is less */
#define PAGE ((size_t)4096)

typedef struct piece {
    uint32_t source, split, number;
    uint32_t len, raw_len, times_len, crc; /* times stand right behind the packed lines */
    uint64_t at;
} piece;

typedef struct lane { uint32_t source, split; fz_buf lines, times; int64_t last_ms; } lane; /* of one split */

struct arc_body {
    arc_codec codec;
    size_t memory;
    bool with_times;
    const char *spill_dir;
    lane *lanes;
    uint32_t n_lanes, cap_lanes;
    piece *pieces;
    uint32_t n_pieces, cap_pieces;
    fz_buf packed;              /* the log's end; its beginning is in the file */
    uint64_t spilled;
    int fd;                     /* -1: no file yet */
    uint64_t rows, raw, size;
    int64_t oldest_ms;
    uint32_t crc;               /* of all lines; sealed, gzip only */
    bool whole;                 /* packed is the object, tail and all */
};

/* Room in packed, which stays on a page. Mostly the first room is all that it will need: pages that are not touched cost nothing. */
static void packed_room(fz_buf *b, size_t first, size_t more) {
    size_t cap = b->cap ? b->cap : (first + PAGE - 1) / PAGE * PAGE;
    while (cap - b->len < more) cap *= 2;
    if (cap == b->cap) return;
    uint8_t *p = fz_aligned(PAGE, cap);
    if (b->len) memcpy(p, b->data, b->len);
    fz_free(b->data);
    b->data = p;
    b->cap = cap;
}

/* The memory of bodies that are gone waits here for the next ones: touched pages are dear. */
enum { MOST_SPARE = 2 };
static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER;
static fz_buf spare[MOST_SPARE];
static unsigned n_spare;

static fz_buf take_spare(size_t least) {
    fz_buf b = {0};
    pthread_mutex_lock(&spare_lock);
    for (unsigned i = 0; !b.cap && i < n_spare; i++)
        if (spare[i].cap >= least) {
            b = spare[i];
            spare[i] = spare[--n_spare];
        }
    pthread_mutex_unlock(&spare_lock);
    return b;
}

static void give_spare(fz_buf b) {
    b.len = 0;
    pthread_mutex_lock(&spare_lock);
    if (n_spare < MOST_SPARE && b.cap && b.cap <= MOST_FIRST) {
        spare[n_spare++] = b;
        b = (fz_buf){0};
    }
    pthread_mutex_unlock(&spare_lock);
    fz_buf_free(&b);
}

arc_body *arc_body_new(arc_codec c, size_t memory, bool with_times, const char *spill_dir) {
    arc_body *b = FZ_NEW(arc_body);
    size_t first = (memory < MOST_FIRST / 2 ? memory : MOST_FIRST / 2) + 2 * BLOCK;
    *b = (arc_body){.codec = c, .memory = memory, .with_times = with_times, .spill_dir = spill_dir, .packed = take_spare(first), .fd = -1, .oldest_ms = -1};
    packed_room(&b->packed, first, AROUND);
    arc_head(c, &b->packed);
    b->size = b->packed.len;
    return b;
}

void arc_body_free(arc_body *b) {
    if (!b) return;
    for (uint32_t i = 0; i < b->n_lanes; i++) {
        fz_buf_free(&b->lanes[i].lines);
        fz_buf_free(&b->lanes[i].times);
    }
    fz_free(b->lanes);
    fz_free(b->pieces);
    give_spare(b->packed);
    if (b->fd >= 0) close(b->fd);
    fz_free(b);
}

static lane *lane_of(arc_body *b, uint32_t source, uint32_t split) {
    for (uint32_t i = 0; i < b->n_lanes; i++)
        if (b->lanes[i].split == split && b->lanes[i].source == source) return &b->lanes[i];
    FZ_GROW(b->lanes, b->n_lanes, b->cap_lanes);
    b->lanes[b->n_lanes] = (lane){.source = source, .split = split};
    return &b->lanes[b->n_lanes++];
}

/* ---- the file ---- */

static fz_status cannot(const arc_body *b, const char *what, int e, fz_error *err) {
    return fz_fail(err, FZ_RETRY, "delivery.spill", "cannot %s the file in %s that holds what memory does not: %s", what, b->spill_dir, strerror(e));
}

static fz_status open_spill(arc_body *b, fz_error *err) {
    b->fd = open(b->spill_dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (b->fd >= 0) return FZ_OK;
    char *name = fz_asprintf("%s/.frazil-XXXXXX", b->spill_dir); /* a file system without O_TMPFILE */
    b->fd = mkostemp(name, O_CLOEXEC);
    int e = errno;
    if (b->fd >= 0) unlink(name);
    fz_free(name);
    return b->fd >= 0 ? FZ_OK : cannot(b, "make", e, err);
}

static fz_status spill(arc_body *b, fz_error *err) {
    if (b->fd < 0) FZ_TRY(open_spill(b, err));
    for (size_t at = 0; at < b->packed.len;) {
        ssize_t k = pwrite(b->fd, b->packed.data + at, b->packed.len - at, (off_t)(b->spilled + at));
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return cannot(b, "write", k ? errno : ENOSPC, err);
        at += (size_t)k;
    }
    b->spilled += b->packed.len;
    b->packed.len = 0;
    return FZ_OK;
}

/* The bytes [at, at + n) of the log: in memory, or read into own. */
static fz_status bytes_at(const arc_body *b, uint64_t at, size_t n, fz_buf *own, const uint8_t **p, fz_error *err) {
    if (at >= b->spilled) return *p = b->packed.data + (at - b->spilled), FZ_OK;
    own->len = 0;
    fz_buf_reserve(own, n);
    for (size_t got = 0; got < n;) {
        ssize_t k = pread(b->fd, own->data + got, n - got, (off_t)(at + got));
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return cannot(b, "read", k ? errno : EIO, err);
        got += (size_t)k;
    }
    return *p = own->data, FZ_OK;
}

/* ---- filling ---- */

static fz_status close_block(arc_body *b, arc_packer *p, lane *l, fz_error *err) {
    if (!l->lines.len) return FZ_OK;
    FZ_GROW(b->pieces, b->n_pieces, b->cap_pieces);
    piece *x = &b->pieces[b->n_pieces];
    *x = (piece){.source = l->source, .split = l->split, .number = b->n_pieces, .raw_len = (uint32_t)l->lines.len, .times_len = (uint32_t)l->times.len, .at = b->spilled + b->packed.len};
    size_t before = b->packed.len;
    packed_room(&b->packed, BLOCK, l->lines.len + l->lines.len / 8 + l->times.len + 2048);
    arc_pack(p, l->lines.data, l->lines.len, &b->packed, &x->crc);
    x->len = (uint32_t)(b->packed.len - before);
    fz_buf_append(&b->packed, l->times.data, l->times.len);
    b->n_pieces++;
    b->size += x->len;
    l->lines.len = l->times.len = 0;
    l->last_ms = 0;
    if (l->lines.cap > 4 * BLOCK) fz_buf_free(&l->lines); /* there was a very long line */
    return b->packed.len > b->memory ? spill(b, err) : FZ_OK;
}

/* Differences, as groups of seven bits: mostly one byte a row. */
static void add_time(lane *l, int64_t ms) {
    uint64_t d = (uint64_t)ms - (uint64_t)l->last_ms, z = d << 1 ^ (0 - (d >> 63));
    l->last_ms = ms;
    for (; z >= 0x80; z >>= 7) fz_buf_putc(&l->times, (char)(z | 0x80));
    fz_buf_putc(&l->times, (char)z);
}
static int64_t next_time(const uint8_t **p, const uint8_t *end, int64_t last) {
    uint64_t z = 0;
    for (unsigned shift = 0; *p < end; shift += 7) {
        uint8_t byte = *(*p)++;
        z |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) break;
    }
    return (int64_t)((uint64_t)last + (z >> 1 ^ (0 - (z & 1))));
}

fz_status arc_body_add(arc_body *b, arc_packer *p, uint32_t source, uint32_t split, arc_lines *lines, uint32_t n, const int64_t *time_ms, fz_error *err) {
    lane *l = lane_of(b, source, split);
    for (uint32_t i = 0; i < n; i++) {
        size_t before = l->lines.len;
        int64_t ms = time_ms ? time_ms[i] : -1;
        arc_lines_add(lines, i, &l->lines);
        b->raw += l->lines.len - before;
        b->rows++;
        if (ms >= 0 && (b->oldest_ms < 0 || ms < b->oldest_ms)) b->oldest_ms = ms;
        if (b->with_times) add_time(l, ms);
        if (l->lines.len >= BLOCK) FZ_TRY(close_block(b, p, l, err));
    }
    return FZ_OK;
}

static int by_split(const void *x, const void *y) {
    const piece *a = x, *b = y;
    if (a->source != b->source) return a->source < b->source ? -1 : 1;
    if (a->split != b->split) return a->split < b->split ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

void arc_body_seal(arc_body *b, arc_packer *p) {
    fz_error ignored;
    b->memory = SIZE_MAX; /* what is left is less than a block a split; a cut cannot fail */
    for (uint32_t i = 0; i < b->n_lanes; i++) {
        (void)!close_block(b, p, &b->lanes[i], &ignored);
        fz_buf_free(&b->lanes[i].lines);
        fz_buf_free(&b->lanes[i].times);
    }
    bool in_order = true;
    for (uint32_t i = 1; in_order && i < b->n_pieces; i++) in_order = by_split(&b->pieces[i - 1], &b->pieces[i]) < 0;
    if (!in_order) qsort(b->pieces, b->n_pieces, sizeof *b->pieces, by_split);
    for (uint32_t i = 0; b->codec == ARC_GZIP && i < b->n_pieces; i++) b->crc = arc_crc_join(b->crc, b->pieces[i].crc, b->pieces[i].raw_len);
    b->whole = in_order && !b->spilled && !b->with_times;
    uint8_t tail[AROUND];
    fz_buf end = {tail, 0, sizeof tail};
    arc_tail(b->codec, b->crc, b->raw, &end);
    b->size += end.len;
    if (!b->whole) return;
    packed_room(&b->packed, BLOCK, end.len);
    fz_buf_append(&b->packed, tail, end.len);
}

const void *arc_body_whole(const arc_body *b) { return b->whole ? b->packed.data : NULL; }

uint64_t arc_body_rows(const arc_body *b) { return b->rows; }
uint64_t arc_body_raw(const arc_body *b) { return b->raw; }
uint64_t arc_body_size(const arc_body *b) { return b->size; }
int64_t arc_body_oldest_ms(const arc_body *b) { return b->oldest_ms; }
size_t arc_body_open(const arc_body *b) {
    size_t n = 0;
    for (uint32_t i = 0; i < b->n_lanes; i++) n += b->lanes[i].lines.len;
    return n;
}

/* ---- reading ---- */

fz_status arc_body_read(const arc_body *b, arc_bytes_fn fn, void *cx, fz_error *err) {
    if (b->whole) return fn(cx, b->packed.data, b->packed.len, err);
    fz_buf around = {0}, own = {0};
    arc_head(b->codec, &around);
    fz_status rc = around.len ? fn(cx, around.data, around.len, err) : FZ_OK;
    for (uint32_t i = 0; rc == FZ_OK && i < b->n_pieces; i++) {
        const piece *x = &b->pieces[i];
        const uint8_t *p;
        rc = bytes_at(b, x->at, x->len, &own, &p, err);
        if (rc == FZ_OK) rc = fn(cx, p, x->len, err);
    }
    around.len = 0;
    arc_tail(b->codec, b->crc, b->raw, &around);
    if (rc == FZ_OK && around.len) rc = fn(cx, around.data, around.len, err);
    fz_buf_free(&around);
    fz_buf_free(&own);
    return rc;
}

static fz_status piece_lines(const arc_body *b, const piece *x, fz_buf *own, fz_buf *raw, arc_line_fn fn, void *cx, fz_error *err) {
    const uint8_t *p;
    FZ_TRY(bytes_at(b, x->at, (size_t)x->len + x->times_len, own, &p, err));
    raw->len = 0;
    fz_buf_reserve(raw, x->raw_len);
    FZ_TRY(arc_unpack(b->codec, p, x->len, raw->data, x->raw_len, err));
    const uint8_t *t = p + x->len, *t_end = t + x->times_len;
    const char *s = (const char *)raw->data, *end = s + x->raw_len;
    int64_t ms = 0;
    while (s < end) {
        const char *lf = memchr(s, '\n', (size_t)(end - s));
        if (b->with_times) ms = next_time(&t, t_end, ms);
        FZ_TRY(fn(cx, (fz_sv){s, (size_t)(lf - s)}, b->with_times ? ms : -1, err));
        s = lf + 1;
    }
    return FZ_OK;
}

fz_status arc_body_lines(const arc_body *b, arc_line_fn fn, void *cx, fz_error *err) {
    fz_buf own = {0}, raw = {0};
    fz_status rc = FZ_OK;
    for (uint32_t i = 0; rc == FZ_OK && i < b->n_pieces; i++) rc = piece_lines(b, &b->pieces[i], &own, &raw, fn, cx, err);
    fz_buf_free(&own);
    fz_buf_free(&raw);
    return rc;
}
