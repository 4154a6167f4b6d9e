/* Directories: made when missing, and made durable.
 *
 * A file survives a crash only if the directory that names it has been fsynced, and the directory that names that one, up to
 * one that is known to be on disk. Who made a directory does not matter: it may have been another thread or process that has
 * not synced it yet. So the first file in a directory syncs the whole chain once, and the chain is remembered.
 *
 * Invariants
 *  1. `durable` holds hashes of directory paths whose own names are durable up to the root. A directory that we make anew
 *     is taken out before it is used.
 *  2. The set is bounded; when full it is emptied, which costs fsyncs and nothing else.
 */
#include "fileio/fileio_int.h"
#include "fileio/s3_int.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define SLOTS_FIRST 1024u
#define SLOTS_MOST 131072u /* powers of two; half of the slots are used at most: 1 MiB when tens of thousands of directories are known */
static uint64_t *durable;
static size_t n_durable, n_slots;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t path_hash(const char *dir, size_t n) { return fz_hash(dir, n) | 1; } /* never 0, the empty slot */

static size_t slot_of(uint64_t h) { /* where h is, or the empty slot where it belongs; the lock is held */
    size_t i = h >> 1;
    while (durable[i % n_slots] && durable[i % n_slots] != h) i++;
    return i % n_slots;
}

static bool known(uint64_t h) {
    pthread_mutex_lock(&lock);
    bool found = n_slots > 0 && durable[slot_of(h)] == h;
    pthread_mutex_unlock(&lock);
    return found;
}

static void grow(void) {
    uint64_t *old = durable;
    size_t n = n_slots;
    n_slots = n == 0 ? SLOTS_FIRST : n < SLOTS_MOST ? n * 2 : n;
    durable = fz_calloc(n_slots, sizeof *durable);
    if (n_slots == n) n_durable = 0; /* at the bound: begin anew */
    else
        for (size_t i = 0; i < n; i++)
            if (old[i]) durable[slot_of(old[i])] = old[i];
    fz_free(old);
}

static void remember(uint64_t h) {
    pthread_mutex_lock(&lock);
    if (n_durable >= n_slots / 2) grow();
    size_t i = slot_of(h);
    n_durable += durable[i] == 0;
    durable[i] = h;
    pthread_mutex_unlock(&lock);
}

/* Open addressing cannot take one out without breaking chains; directories are seldom made twice, so all are forgotten. */
static void forget(uint64_t h) {
    pthread_mutex_lock(&lock);
    if (n_slots > 0 && durable[slot_of(h)] == h) {
        memset(durable, 0, n_slots * sizeof *durable);
        n_durable = 0;
    }
    pthread_mutex_unlock(&lock);
}

static size_t parent_len(const char *path, size_t n) { /* "/a/b" -> 2; "/a" -> 1 (the root); "/" -> 0 */
    if (n <= 1) return 0;
    while (n > 1 && path[n - 1] == '/') n--;
    while (n > 0 && path[n - 1] != '/') n--;
    while (n > 1 && path[n - 1] == '/') n--;
    return n;
}

int fio_dirs_make(const char *file_path) {
    size_t n = parent_len(file_path, strlen(file_path));
    char *dir = fz_strndup(file_path, n);
    int e = mkdir(dir, 0755) == 0 ? 0 : errno;
    if (e == 0) forget(path_hash(dir, n));
    else if (e == EEXIST) e = 0;
    else if (e == ENOENT && n > 1) {
        e = fio_dirs_make(dir);
        if (e == 0) e = mkdir(dir, 0755) == 0 || errno == EEXIST ? 0 : errno;
        forget(path_hash(dir, n));
    }
    fz_free(dir);
    return e;
}

typedef struct dir { const char *p; size_t n; bool content; } dir; /* content: an entry of it has just changed */

static int by_path(const void *x, const void *y) {
    const dir *a = x, *b = y;
    int c = fz_sv_cmp((fz_sv){a->p, a->n}, (fz_sv){b->p, b->n});
    return c ? c : (int)b->content - (int)a->content;
}

static int sync_dir(const char *path) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return errno;
    int e = fio_io_fsync(fd);
    close(fd);
    return e;
}

fz_status fio_dirs_sync(const char *const *file_paths, size_t n, fz_error *err) {
    dir *v = NULL;
    size_t count = 0, cap = 0;
    for (size_t i = 0; i < n; i++) {
        size_t len = parent_len(file_paths[i], strlen(file_paths[i]));
        bool content = true;
        while (len > 0) {
            FZ_GROW(v, count, cap);
            v[count++] = (dir){file_paths[i], len, content};
            if (known(path_hash(file_paths[i], len))) break;
            content = false;
            len = parent_len(file_paths[i], len);
        }
    }
    qsort(v, count, sizeof *v, by_path);
    fz_status rc = FZ_OK;
    for (size_t i = 0; i < count && rc == FZ_OK; i++) {
        if (i > 0 && v[i].n == v[i - 1].n && memcmp(v[i].p, v[i - 1].p, v[i].n) == 0) continue;
        char *path = fz_strndup(v[i].p, v[i].n);
        int e = sync_dir(path);
        /* A directory above that we may pass through but not read cannot be one that we have made. */
        if (e && !(e == EACCES && !v[i].content)) rc = fio_errno(err, e, "fsync the directory", path);
        fz_free(path);
    }
    for (size_t i = 0; i < count && rc == FZ_OK; i++) remember(path_hash(v[i].p, v[i].n));
    fz_free(v);
    return rc;
}

static fz_status local_only(const char *location, const char **path, fz_error *err) {
    const fio_store *st = NULL;
    if (!s3_root_len(location)) FZ_TRY(fio_resolve(NULL, location, &st, path, err));
    if (st == &fio_local) return FZ_OK;
    return fz_fail(err, FZ_USER, "file.scheme", "'%s': only local files have directories", location);
}

fz_status fio_dir_make(const char *location, fz_error *err) {
    const char *path;
    FZ_TRY(local_only(location, &path, err));
    char *inside = fz_asprintf("%s/x", path); /* both helpers take the path of a file */
    const char *one = inside;
    int e = fio_dirs_make(inside);
    fz_status rc = e ? fio_errno(err, e, "make the directory", path) : fio_dirs_sync(&one, 1, err);
    fz_free(inside);
    return rc;
}

fz_status fio_dir_exists(const char *location, bool *out, fz_error *err) {
    const char *path;
    FZ_TRY(local_only(location, &path, err));
    struct stat st;
    *out = false;
    if (stat(path, &st) == 0) *out = S_ISDIR(st.st_mode);
    else if (errno != ENOENT && errno != ENOTDIR) return fio_errno(err, errno, "look at", path);
    return FZ_OK;
}

fz_status fio_dir_remove(const char *location, fz_error *err) {
    const char *path;
    FZ_TRY(local_only(location, &path, err));
    if (rmdir(path) == 0 || errno == ENOENT) return FZ_OK;
    if (errno == ENOTEMPTY || errno == EEXIST) return fz_fail(err, FZ_USER, "file.not-empty", "the directory '%s' is not empty", path);
    return fio_errno(err, errno, "remove the directory", path);
}
