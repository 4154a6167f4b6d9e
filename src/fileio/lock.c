/* Advisory locks on local files: flock(2), so that the kernel lets go when the process dies, however it dies. The file stays:
 * removing it would let two holders lock two files of one name. */
#include "fileio/fileio_int.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

struct fio_lock { int fd; };

fz_status fio_lock_take(const char *path, int64_t timeout_ms, fio_lock **out, fz_error *err) {
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 && errno == ENOENT) {
        int e = fio_dirs_make(path);
        if (e) return fio_errno(err, e, "make the directory of", path);
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    }
    if (fd < 0) return fio_errno(err, errno, "open the lock file", path);
    int64_t end = fz_mono_ns() + timeout_ms * 1000000, pause = 1;
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int e = errno;
        int64_t left = (end - fz_mono_ns()) / 1000000;
        if (e == EINTR) continue;
        if (e != EWOULDBLOCK || left <= 0) {
            close(fd);
            if (e != EWOULDBLOCK) return fio_errno(err, e, "lock", path);
            return fz_fail(err, FZ_RETRY, "file.locked", "'%s' has been locked by another process for %lld ms", path, (long long)timeout_ms);
        }
        fz_sleep_ms(pause < left ? pause : left);
        if (pause < 50) pause *= 2;
    }
    fio_lock *l = FZ_NEW(fio_lock);
    l->fd = fd;
    *out = l;
    return FZ_OK;
}

void fio_lock_release(fio_lock *l) {
    if (!l) return;
    close(l->fd);
    fz_free(l);
}
