/* The local store: objects are files. See fileio.h, invariants 2 and 3. */
#include "fileio/fileio_int.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static fz_status open_read(const char *path, int *fd, struct stat *st, fz_error *err) {
    do *fd = open(path, O_RDONLY | O_CLOEXEC);
    while (*fd < 0 && errno == EINTR);
    if (*fd < 0) return fio_errno(err, errno, "open", path);
    if (fstat(*fd, st) == 0 && !S_ISDIR(st->st_mode)) return FZ_OK;
    int e = errno;
    fz_status rc = fio_errno(err, S_ISDIR(st->st_mode) ? EISDIR : e, "read", path);
    close(*fd);
    return rc;
}

static fz_status local_read(fio *io, const char *path, size_t max, fz_buf *out, fz_error *err) {
    (void)io;
    int fd;
    struct stat st = {0};
    FZ_TRY(open_read(path, &fd, &st, err));
    size_t start = out->len;
    fz_status rc = FZ_OK;
    fz_buf_reserve(out, (st.st_size > 0 && (uint64_t)st.st_size < max ? (size_t)st.st_size : 0) + 1);
    for (;;) {
        if (out->len == out->cap) fz_buf_reserve(out, out->cap);
        ssize_t r = read(fd, out->data + out->len, out->cap - out->len);
        if (r < 0 && errno == EINTR) continue;
        if (r < 0) rc = fio_errno(err, errno, "read", path);
        if (r <= 0) break;
        out->len += (size_t)r;
        if (out->len - start > max) {
            rc = fz_fail(err, FZ_FATAL, "file.too-large", "'%s' has more than %zu bytes", path, max);
            break;
        }
    }
    close(fd);
    if (rc != FZ_OK) out->len = start;
    return rc;
}

static fz_status local_read_range(fio *io, const char *path, uint64_t from, size_t n, void *out, fz_error *err) {
    (void)io;
    int fd;
    struct stat st = {0};
    FZ_TRY(open_read(path, &fd, &st, err));
    fz_status rc = FZ_OK;
    for (size_t done = 0; done < n && rc == FZ_OK;) {
        ssize_t r = pread(fd, (char *)out + done, n - done, (off_t)(from + done));
        if (r < 0 && errno == EINTR) continue;
        if (r < 0) rc = fio_errno(err, errno, "read", path);
        if (r == 0) rc = fz_fail(err, FZ_FATAL, "file.short", "'%s' ends at byte %llu, before byte %llu", path,
                                 (unsigned long long)(from + done), (unsigned long long)(from + n));
        if (r > 0) done += (size_t)r;
    }
    close(fd);
    return rc;
}

static fz_status local_stat(fio *io, const char *path, uint64_t *size, fz_error *err) {
    (void)io;
    struct stat st;
    if (stat(path, &st) != 0) return fio_errno(err, errno, "look at", path);
    if (S_ISDIR(st.st_mode)) return fz_fail(err, FZ_USER, "file.not-found", "'%s' is a directory, not an object", path);
    *size = (uint64_t)st.st_size;
    return FZ_OK;
}

static void local_abort(fio_writer *w) {
    if (w->written > 0 || w->ragged) fio_temp_drop(w);
}

static fz_status local_finish(fio_writer *w, fio_batch *batch, fz_error *err) {
    FZ_TRY(fio_temp_end(w, w->buf, w->len, !batch, err));
    fio_pending one = {.path = w->key, .tag = w->tag, .durable = !batch};
    if (!batch) return fio_local_publish(&one, 1, err);
    FZ_GROW(batch->v, batch->n, batch->cap);
    w->key = NULL;
    batch->v[batch->n++] = one;
    return FZ_OK;
}

/* link(2) fails if the name is taken, in one step; where a file system has no links, rename without replacing does the same. */
static int claim(const char *temp, const char *path) {
    if (link(temp, path) == 0) {
        unlink(temp);
        return 0;
    }
    int e = errno;
    struct stat st;
    /* On network file systems the answer to a link that was made can be lost; the count of links tells. */
    if (e == EEXIST && stat(temp, &st) == 0 && st.st_nlink == 2) {
        unlink(temp);
        return 0;
    }
    if ((e == EPERM || e == ENOTSUP || e == EMLINK || e == ENOSYS) && renameat2(AT_FDCWD, temp, AT_FDCWD, path, RENAME_NOREPLACE) == 0) return 0;
    return e == EPERM || e == ENOTSUP || e == ENOSYS ? errno : e;
}

static fz_status put_new(const char *path, uint64_t tag, fz_error *err) {
    char *temp = fio_temp_path(path, tag);
    int e = claim(temp, path);
    if (e) unlink(temp);
    fz_free(temp);
    if (e) return fio_errno(err, e, "create", path);
    fz_status rc = FZ_OK;
    for (int tries = 0; tries < 3; tries++) /* the object is there for all to see: worth more than one try */
        if ((rc = fio_dirs_sync(&path, 1, err)) == FZ_OK) return FZ_OK;
    fz_error why = err ? *err : (fz_error){0};
    fz_fail(err, FZ_UNKNOWN, "file.unknown", "'%s' was created, but may not survive a crash", path);
    return fz_detail(err, "%s", why.message), FZ_UNKNOWN;
}

static fz_status local_put(fio *io, const char *path, const void *p, size_t n, bool if_absent, fz_error *err) {
    (void)io;
    struct stat st;
    if (if_absent && lstat(path, &st) == 0) return fio_errno(err, EEXIST, "create", path); /* spares the write; link decides */
    char *key = fz_strdup(path);
    fio_writer w = {.store = &fio_local, .key = key, .tag = fio_tag(), .fd = -1};
    fz_status rc = fio_temp_end(&w, p, n, true, err);
    fio_pending one = {.path = key, .tag = w.tag, .durable = true};
    /* Replacing must not go through fio_local_publish: when it fails, the old object or the new one stays, never none. */
    if (rc == FZ_OK && if_absent) rc = put_new(key, w.tag, err);
    else if (rc == FZ_OK) rc = fio_local_replace(&one, err);
    fz_free(key);
    return rc;
}

static fz_status local_remove(fio *io, const char *path, fz_error *err) {
    (void)io;
    if (unlink(path) == 0 || errno == ENOENT || errno == ENOTDIR) return FZ_OK;
    return fio_errno(err, errno, "delete", path);
}

/* ---- walking ---- */

typedef struct walk { fio_list_fn fn; void *cx; bool stop; } walk;

static bool dot(const char *name) { return strcmp(name, ".") == 0 || strcmp(name, "..") == 0; }

/* Path and location grow together, so that a location is told in the form in which the prefix was given. */
static fz_status walk_dir(const char *path, const char *location, walk *w, fz_error *err) {
    DIR *d = opendir(path);
    if (!d) return errno == ENOENT || errno == ENOTDIR ? FZ_OK : fio_errno(err, errno, "list", path);
    fz_status rc = FZ_OK;
    fz_arena *a = fz_arena_new();
    struct dirent *e;
    while (rc == FZ_OK && !w->stop && (errno = 0, e = readdir(d))) {
        if (dot(e->d_name) || fz_starts(e->d_name, FIO_TEMP_PREFIX)) continue;
        struct stat st;
        if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) continue; /* gone since */
        /* Links to files are followed, links to directories are not: they may lead in circles. */
        if (S_ISLNK(st.st_mode) && (fstatat(dirfd(d), e->d_name, &st, 0) != 0 || S_ISDIR(st.st_mode))) continue;
        fz_arena_reset(a);
        char *p = fio_join(a, path, e->d_name), *l = fio_join(a, location, e->d_name);
        if (S_ISDIR(st.st_mode)) rc = walk_dir(p, l, w, err);
        else if (S_ISREG(st.st_mode))
            w->stop = !w->fn(w->cx, l, (uint64_t)st.st_size, (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000);
    }
    if (rc == FZ_OK && !w->stop && errno) rc = fio_errno(err, errno, "list", path);
    fz_arena_free(a);
    closedir(d);
    return rc;
}

static fz_status local_list(fio *io, const char *path, const char *location, fio_list_fn fn, void *cx, fz_error *err) {
    (void)io;
    walk w = {.fn = fn, .cx = cx};
    return walk_dir(path, location, &w, err);
}

static fz_status local_list_dirs(fio *io, const char *path, fio_child_fn fn, void *cx, fz_error *err) {
    (void)io;
    DIR *d = opendir(path);
    if (!d) return errno == ENOENT || errno == ENOTDIR ? FZ_OK : fio_errno(err, errno, "list", path);
    struct dirent *e;
    bool stop = false;
    while (!stop && (errno = 0, e = readdir(d))) {
        struct stat st;
        if (dot(e->d_name) || fz_starts(e->d_name, FIO_TEMP_PREFIX)) continue;
        if (fstatat(dirfd(d), e->d_name, &st, 0) == 0 && S_ISDIR(st.st_mode)) stop = !fn(cx, e->d_name);
    }
    fz_status rc = !stop && errno ? fio_errno(err, errno, "list", path) : FZ_OK;
    closedir(d);
    return rc;
}

static fz_status local_remove_tree(fio *io, const char *path, fz_error *err) {
    DIR *d = opendir(path);
    if (!d && (errno == ENOENT || errno == ENOTDIR)) return FZ_OK;
    if (!d) return fio_errno(err, errno, "delete", path);
    fz_status rc = FZ_OK;
    fz_arena *a = fz_arena_new();
    struct dirent *e;
    while (rc == FZ_OK && (e = readdir(d))) {
        if (dot(e->d_name)) continue;
        struct stat st;
        if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
        char *p = fio_join(a, path, e->d_name);
        if (S_ISDIR(st.st_mode)) rc = local_remove_tree(io, p, err);
        else rc = local_remove(io, p, err);
    }
    fz_arena_free(a);
    closedir(d);
    if (rc == FZ_OK && rmdir(path) != 0 && errno != ENOENT) rc = fio_errno(err, errno, "delete", path);
    return rc;
}

const fio_store fio_local = {
    .read = local_read, .read_range = local_read_range, .stat = local_stat, .put = local_put, .remove = local_remove, .list = local_list,
    .list_dirs = local_list_dirs, .remove_tree = local_remove_tree, .spill = fio_temp_add, .finish = local_finish, .abort = local_abort, .blocks = true,
};
