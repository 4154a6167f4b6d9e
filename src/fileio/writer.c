/* Streaming writes: one buffer a writer. See fileio.h.
 *
 * What it does: gathers bytes, and hands them to the store when the buffer is full or the object ends.
 * What it does not do: it knows no files; what "outside of memory" and "visible" mean is the store's.
 *
 * Invariants
 *  1. An object's bytes are [0, written) in the store and then buf[0, len). A failed spill changes neither, so that it can be
 *     made again: the store writes at w->written, over what a failed try may have left. A store that wants whole blocks (local files) is given full buffers; where a later
 *     one of a call fails, the earlier ones stay out, and [0, written) ends where the call began.
 */
#include "fileio/fileio_int.h"

fz_status fio_writer_open(fio *io, const char *location, fio_writer **out, fz_error *err) {
    const fio_store *st;
    const char *key;
    FZ_TRY(fio_resolve(io, location, &st, &key, err));
    fio_writer *w = FZ_NEW(fio_writer);
    w->io = io;
    w->store = st;
    w->key = fz_strdup(key);
    w->tag = fio_tag();
    w->fd = -1;
    *out = w;
    return FZ_OK;
}

/* ---- the buffer ---- */
/* Small ones grow on the heap; a full one comes from here, where a few wait: its pages are touched, and in place for O_DIRECT. */
enum { MOST_SPARE = 2 };
static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t *spare[MOST_SPARE];
static unsigned n_spare;

static uint8_t *take_spare(void) {
    pthread_mutex_lock(&spare_lock);
    uint8_t *p = n_spare ? spare[--n_spare] : NULL;
    pthread_mutex_unlock(&spare_lock);
    return p ? p : fz_aligned(FIO_BLOCK, FIO_BUFFER);
}

static void free_buffer(fio_writer *w) {
    uint8_t *p = w->buf;
    if (w->pooled) {
        pthread_mutex_lock(&spare_lock);
        if (n_spare < MOST_SPARE) {
            spare[n_spare++] = p;
            p = NULL;
        }
        pthread_mutex_unlock(&spare_lock);
    }
    fz_free(p);
    w->buf = NULL;
    w->pooled = false;
    w->len = w->cap = 0;
}

static void room_for(fio_writer *w, size_t n) {
    if (w->len + n <= w->cap) return;
    size_t cap = w->cap ? w->cap * 2 : 1024;
    while (cap < w->len + n) cap *= 2;
    if (cap < FIO_BUFFER || !w->store->blocks) {
        w->buf = fz_realloc(w->buf, cap);
        w->cap = cap;
        return;
    }
    size_t len = w->len;
    uint8_t *p = take_spare();
    if (len) memcpy(p, w->buf, len);
    free_buffer(w);
    w->buf = p;
    w->pooled = true;
    w->len = len;
    w->cap = FIO_BUFFER;
}

static void release(fio_writer *w) {
    free_buffer(w);
    fz_free(w->key);
    fz_free(w);
}

/* ---- bytes ---- */

static fz_status spill(fio_writer *w, const void *p, size_t n, fz_error *err) {
    FZ_TRY(w->store->spill(w, p, n, err));
    w->written += n;
    return FZ_OK;
}

fz_status fio_writer_flush(fio_writer *w, fz_error *err) {
    if (!w->store->spill || w->len == 0) return FZ_OK;
    FZ_TRY(spill(w, w->buf, w->len, err));
    free_buffer(w);
    return FZ_OK;
}

/* Fills the buffer and spills it while p lasts. See invariant 1. */
static fz_status append_blocks(fio_writer *w, const uint8_t *p, size_t n, fz_error *err) {
    const uint64_t end = w->written + w->len;
    room_for(w, FIO_BUFFER - w->len);
    for (size_t k; w->len + n > FIO_BUFFER; p += k, n -= k) {
        const size_t len = w->len;
        k = FIO_BUFFER - len;
        memcpy(w->buf + len, p, k);
        fz_status rc = spill(w, w->buf, FIO_BUFFER, err);
        if (rc != FZ_OK && w->written + len != end) {
            w->written = end;
            w->cached = w->ragged = true;
        }
        if (rc != FZ_OK) return rc;
        w->len = 0;
    }
    memcpy(w->buf, p, n);
    w->len = n;
    return FZ_OK;
}

fz_status fio_writer_append(fio_writer *w, const void *p, size_t n, fz_error *err) {
    if (w->store->spill && w->len + n > FIO_BUFFER) {
        if (w->store->blocks) return append_blocks(w, p, n, err);
        if (w->len > 0) FZ_TRY(spill(w, w->buf, w->len, err));
        w->len = 0;
        if (n >= FIO_BUFFER / 2) return spill(w, p, n, err); /* a copy would gain nothing */
    }
    room_for(w, n);
    if (n > 0) memcpy(w->buf + w->len, p, n);
    w->len += n;
    return FZ_OK;
}

fz_status fio_writer_finish_in(fio_writer *w, fio_batch *b, uint64_t *size, fz_error *err) {
    if (size) *size = w->written + w->len;
    fz_status rc = w->store->finish(w, b, err);
    release(w);
    return rc;
}
fz_status fio_writer_finish(fio_writer *w, uint64_t *size, fz_error *err) { return fio_writer_finish_in(w, NULL, size, err); }

void fio_writer_abort(fio_writer *w) {
    if (!w) return;
    w->store->abort(w);
    release(w);
}

size_t fio_writer_memory(const fio_writer *w) { return sizeof *w + w->cap + strlen(w->key) + 1 + (w->store->memory ? w->store->memory(w) : 0); }
