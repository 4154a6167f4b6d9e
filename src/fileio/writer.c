/* Streaming writes: one buffer a writer, no file descriptor between calls. See fileio.h.
 *
 * What it does: gathers bytes, and hands them to the store when the buffer is full or the object ends.
 * What it does not do: it knows no files; what "outside of memory" and "visible" mean is the store's.
 *
 * Invariants
 *  1. An object's bytes are [0, written) in the store and then buf[0, len). A failed spill changes neither, so that it can be
 *     made again: the store writes at w->written, over what a failed try may have left.
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
    *out = w;
    return FZ_OK;
}

static void release(fio_writer *w) {
    fz_free(w->buf);
    fz_free(w->key);
    fz_free(w);
}

static fz_status spill(fio_writer *w, const void *p, size_t n, fz_error *err) {
    FZ_TRY(w->store->spill(w, p, n, err));
    w->written += n;
    return FZ_OK;
}

fz_status fio_writer_flush(fio_writer *w, fz_error *err) {
    if (!w->store->spill || w->len == 0) return FZ_OK;
    FZ_TRY(spill(w, w->buf, w->len, err));
    fz_free(w->buf);
    w->buf = NULL;
    w->len = w->cap = 0;
    return FZ_OK;
}

fz_status fio_writer_append(fio_writer *w, const void *p, size_t n, fz_error *err) {
    if (w->store->spill && w->len + n > FIO_BUFFER) {
        if (w->len > 0) FZ_TRY(spill(w, w->buf, w->len, err));
        w->len = 0;
        if (n >= FIO_BUFFER / 2) return spill(w, p, n, err); /* a copy would gain nothing */
    }
    if (w->len + n > w->cap) {
        size_t cap = w->cap ? w->cap * 2 : 1024;
        while (cap < w->len + n) cap *= 2;
        w->buf = fz_realloc(w->buf, cap);
        w->cap = cap;
    }
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
