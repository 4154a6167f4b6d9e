/* The temporary that an object of the local store grows in: through the page cache, or past it (O_DIRECT).
 *
 * What is large goes past the cache, where nobody wants it again: to copy it there and to look after its pages costs more than to hand it to the disk.
 *
 * Invariants
 *  1. Only whole blocks go past the cache, from aligned memory, to where no byte of the file is in the cache; what is left at the end goes through it, and fsync makes both durable.
 *  2. Where the file system refuses, at the flag or at the write, the rest of the object goes through the cache, and nobody is told.
 *  3. A few temporaries of the process stay open between writes; the others are opened for each.
 */
#include "fileio/fileio_int.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { LEAST_DIRECT = 64 << 10, MOST_HELD = 16 }; /* below: the page cache is as cheap */
static atomic_int n_held;

static int open_temp(fio_writer *w) { /* 0 or errno */
    if (w->fd >= 0) return 0;
    char *temp = fio_temp_path(w->key, w->tag);
    int fd = w->written == 0 ? fio_temp_create(temp, w->key) : open(temp, O_WRONLY | O_CLOEXEC), e = w->written == 0 ? -fd : errno;
    fz_free(temp);
    w->direct = false;
    if (fd < 0) return e;
    w->fd = fd;
    return 0;
}

static int close_temp(fio_writer *w) { /* 0 or errno */
    if (w->fd < 0) return 0;
    int fd = w->fd;
    w->fd = -1;
    if (w->held) atomic_fetch_sub(&n_held, 1);
    w->held = false;
    return close(fd) == 0 ? 0 : errno;
}

static int rest(fio_writer *w) {
    if (!w->held && atomic_fetch_add(&n_held, 1) < MOST_HELD) w->held = true;
    else if (!w->held) atomic_fetch_sub(&n_held, 1);
    return w->held ? 0 : close_temp(w);
}

static bool set_direct(fio_writer *w, bool on) {
    if (w->direct != on && (on && fz_fault("file.direct") != FZ_FAULT_NONE)) return false;
    if (w->direct != on && fcntl(w->fd, F_SETFL, on ? O_DIRECT : 0) != 0) return false;
    w->direct = on;
    return true;
}

/* 0 or errno. */
static int write_direct(fio_writer *w, const void *p, size_t n, uint64_t at) {
    int e = !set_direct(w, true) || fz_fault("file.direct") != FZ_FAULT_NONE ? EINVAL : fio_io_write(w->fd, p, n, at);
    w->cached = e == EINVAL;
    return e;
}
static int write_cached(fio_writer *w, const void *p, size_t n, uint64_t at) { return set_direct(w, false) ? fio_io_write(w->fd, p, n, at) : EINVAL; }

static bool on_blocks(uint64_t x) { return x % FIO_BLOCK == 0; }

static int write_all(fio_writer *w, const uint8_t *p, size_t n) {
    size_t whole = w->cached || !on_blocks(w->written) || !on_blocks((uintptr_t)p) ? 0 : n - n % FIO_BLOCK, done = 0;
    if (whole >= LEAST_DIRECT) {
        int e = write_direct(w, p, whole, w->written);
        if (e && e != EINVAL) return e;
        if (e == 0) done = whole;
    }
    return done < n || n == 0 ? write_cached(w, p + done, n - done, w->written + done) : 0;
}

/* Starts write-back of what went through the cache without waiting, so that the fsync at the end finds the blocks placed and mostly written. */
static void begin_writeback(const fio_writer *w, size_t n) {
    if (!w->direct) sync_file_range(w->fd, (off_t)w->written, (off_t)n, SYNC_FILE_RANGE_WRITE);
}

fz_status fio_temp_add(fio_writer *w, const void *p, size_t n, fz_error *err) {
    int e = open_temp(w);
    if (e == 0) e = write_all(w, p, n);
    if (e == 0) begin_writeback(w, n);
    if (e == 0) e = rest(w);
    if (e == 0) return FZ_OK;
    w->ragged = true;
    if (w->written == 0) fio_temp_drop(w);
    else (void)close_temp(w);
    return fio_errno(err, e, "write", w->key);
}

fz_status fio_temp_end(fio_writer *w, const void *p, size_t n, bool durable, fz_error *err) {
    const char *what = "write";
    bool nothing = n == 0 && w->written > 0;
    int e = nothing && !durable && !w->ragged ? 0 : open_temp(w);
    if (e == 0 && !nothing) e = write_all(w, p, n);
    if (e == 0 && w->ragged && ftruncate(w->fd, (off_t)(w->written + n)) != 0) e = errno;
    if (e == 0 && durable) {
        what = "fsync";
        e = fio_io_fsync(w->fd);
    } else if (e == 0 && w->fd >= 0) begin_writeback(w, n);
    int closed = close_temp(w);
    if (e == 0) e = closed;
    if (e == 0) return FZ_OK;
    fio_temp_drop(w);
    return fio_errno(err, e, what, w->key);
}

void fio_temp_drop(fio_writer *w) {
    (void)close_temp(w);
    char *temp = fio_temp_path(w->key, w->tag);
    unlink(temp);
    fz_free(temp);
}
