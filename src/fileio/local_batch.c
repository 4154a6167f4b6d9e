/* How temporaries of the local store become objects.
 *
 *     written (write-back has begun) -> all fsynced -> all renamed -> directories fsynced -> acknowledged
 *
 * The steps go over the whole batch one after the other: a journaling file system then commits its journal once for the
 * contents and once for the names, instead of twice a file.
 */
#include "fileio/fileio_int.h"
#include "fileio/s3_int.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

fio_batch *fio_batch_new(void) { return FZ_NEW(fio_batch); }

static void empty(fio_batch *b) {
    for (size_t i = 0; i < b->n; i++) fz_free(b->v[i].path);
    b->n = 0;
}

static void remove_temps(const fio_pending *v, size_t n) {
    for (size_t i = 0; i < n; i++) {
        char *temp = fio_temp_path(v[i].path, v[i].tag);
        unlink(temp);
        fz_free(temp);
    }
}

void fio_batch_free(fio_batch *b) {
    if (!b) return;
    remove_temps(b->v, b->n);
    empty(b);
    s3_batch_free(b->s3);
    fz_free(b->v);
    fz_free(b);
}

static fz_status sync_temp(const fio_pending *p, fz_error *err) {
    if (p->durable) return FZ_OK;
    char *temp = fio_temp_path(p->path, p->tag);
    /* A failure of write-back since the file was closed is still reported to the first fsync of a new descriptor. */
    int fd = open(temp, O_RDONLY | O_CLOEXEC), e = fd < 0 ? errno : fio_io_fsync(fd);
    if (fd >= 0) close(fd);
    fz_free(temp);
    return e ? fio_errno(err, e, "fsync", p->path) : FZ_OK;
}

static fz_status show(const fio_pending *p, fz_error *err) {
    char *temp = fio_temp_path(p->path, p->tag);
    int e = fio_io_rename(temp, p->path);
    fz_free(temp);
    return e ? fio_errno(err, e, "rename the finished file to", p->path) : FZ_OK;
}

static fz_status sync_names(const fio_pending *v, size_t n, fz_error *err) {
    const char **paths = fz_malloc(n * sizeof *paths);
    for (size_t i = 0; i < n; i++) paths[i] = v[i].path;
    fz_status rc = fio_dirs_sync(paths, n, err);
    fz_free(paths);
    return rc;
}

fz_status fio_local_publish(const fio_pending *v, size_t n, fz_error *err) {
    fz_status rc = FZ_OK;
    size_t shown = 0;
    if (n == 0) return rc;
    for (size_t i = 0; i < n && rc == FZ_OK; i++) rc = sync_temp(&v[i], err);
    while (shown < n && rc == FZ_OK)
        if ((rc = show(&v[shown], err)) == FZ_OK) shown++;
    if (rc == FZ_OK) rc = sync_names(v, n, err);
    if (rc == FZ_OK) return rc;
    /* The caller learns that nothing is there, so nothing may be. A crash now may bring a name back: it is of no use to anybody. */
    for (size_t i = 0; i < shown; i++) unlink(v[i].path);
    remove_temps(v + shown, n - shown);
    return rc;
}

fz_status fio_local_replace(const fio_pending *p, fz_error *err) {
    fz_status rc = sync_temp(p, err);
    if (rc == FZ_OK) rc = show(p, err);
    if (rc != FZ_OK) {
        remove_temps(p, 1);
        return rc;
    }
    return sync_names(p, 1, err);
}

fz_status fio_batch_sync(fio_batch *b, fz_error *err) {
    fz_status rc = s3_batch_wait(b->s3, err);
    if (rc != FZ_OK) remove_temps(b->v, b->n);
    else if ((rc = fio_local_publish(b->v, b->n, err)) != FZ_OK) s3_batch_drop(b->s3);
    else s3_batch_done(b->s3);
    empty(b);
    return rc;
}
