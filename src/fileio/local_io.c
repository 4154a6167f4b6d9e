/* System calls of the local store that change something: EINTR and short writes handled, faults put in between.
 *
 * A fault is either armed by name (fault.h) or drawn from a seed: FRAZIL_STORE_SEED=SEED[:PERMILLE] (20 when left out). The
 * n-th call of a process draws the same lot for the same seed, so a failed run can be run again. */
#include "fileio/fileio_int.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool seeded;
static uint64_t seed, permille = 20;
static atomic_uint_fast64_t calls;

static void read_seed(void) {
    const char *s = getenv("FRAZIL_STORE_SEED");
    if (!s || !*s) return;
    char *end;
    seed = strtoull(s, &end, 10);
    if (*end == ':') permille = strtoull(end + 1, NULL, 10);
    seeded = true;
    fz_log(FZ_LOG_WARN, "store.seeded-faults", FZ_KV("seed", "%llu", (unsigned long long)seed), FZ_KV("permille", "%llu", (unsigned long long)permille), NULL);
}

/* The errno that this call shall pretend, or 0. */
int fio_io_injected(const char *point) {
    if (point) switch (fz_fault(point)) {
        case FZ_FAULT_NONE: break;
        case FZ_FAULT_ENOSPC: return ENOSPC;
        case FZ_FAULT_EIO:
        case FZ_FAULT_UNKNOWN:
        case FZ_FAULT_RETRY:
        case FZ_FAULT_CONFLICT: return EIO;
        }
    pthread_once(&once, read_seed);
    if (!seeded) return 0;
    uint64_t draw[2] = {seed, atomic_fetch_add(&calls, 1)}, h = fz_hash(draw, sizeof draw);
    if (h % 1000 >= permille) return 0;
    return h >> 32 & 1 ? EIO : ENOSPC;
}

int fio_io_write(int fd, const void *p, size_t n, uint64_t at) {
    int e = fio_io_injected("file.write");
    /* An injected failure leaves half of the bytes behind, as a full disk does. */
    size_t want = e ? n / 2 : n;
    if (e && want >= FIO_BLOCK) want -= want % FIO_BLOCK;
    for (size_t done = 0; done < want;) {
        ssize_t w = pwrite(fd, (const char *)p + done, want - done, (off_t)(at + done));
        if (w < 0 && errno == EINTR) continue;
        if (w < 0) return errno;
        if (w == 0) return EIO;
        done += (size_t)w;
    }
    return e;
}

int fio_io_fsync(int fd) {
    int e = fio_io_injected("file.fsync");
    if (e) return e;
    while (fsync(fd) != 0)
        if (errno != EINTR) return errno == EINVAL ? 0 : errno; /* EINVAL: this file system has no fsync for such a thing */
    return 0;
}

int fio_io_rename(const char *from, const char *to) {
    int e = fio_io_injected(NULL);
    if (e) return e;
    return rename(from, to) == 0 ? 0 : errno;
}

uint64_t fio_tag(void) {
    uint64_t t;
    fz_random(&t, sizeof t);
    return t;
}

char *fio_temp_path(const char *path, uint64_t tag) {
    int dir = (int)(strrchr(path, '/') - path);
    return fz_asprintf("%.*s/" FIO_TEMP_PREFIX "%016llx", dir, path, (unsigned long long)tag);
}

int fio_temp_create(const char *temp, const char *path) {
    for (int tries = 0;; tries++) {
        int fd = open(temp, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        if (fd >= 0) return fd;
        if (errno == EINTR) continue;
        if (errno != ENOENT || tries == 3) return -errno; /* 3: somebody may remove empty directories as we make them */
        int e = fio_dirs_make(path);
        if (e) return -e;
    }
}
