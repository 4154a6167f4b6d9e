/* Dispatch: which store a location belongs to, and the calls that are the same for all of them. See fileio.h. */
#include "fileio/fileio_int.h"
#include "fileio/s3_int.h"
#include <errno.h>

fz_status fio_errno(fz_error *err, int e, const char *what, const char *path) {
    static const struct { int e; fz_status cls; const char *code; } known[] = {
        {ENOENT, FZ_USER, "file.not-found"},      {ENOTDIR, FZ_USER, "file.not-found"},   {EACCES, FZ_USER, "file.permission"},
        {EPERM, FZ_USER, "file.permission"},      {EISDIR, FZ_USER, "file.is-directory"}, {ENAMETOOLONG, FZ_USER, "file.name-too-long"},
        {EEXIST, FZ_CONFLICT, "file.exists"},     {EIO, FZ_RETRY, "file.io"},             {ENOSPC, FZ_RETRY, "file.no-space"},
        {EDQUOT, FZ_RETRY, "file.no-space"},      {EROFS, FZ_RETRY, "file.read-only"},    {EMFILE, FZ_RETRY, "file.too-many-open"},
        {ENFILE, FZ_RETRY, "file.too-many-open"}, {EINTR, FZ_RETRY, "file.io"},           {EAGAIN, FZ_RETRY, "file.io"},
        {EBUSY, FZ_RETRY, "file.io"},             {ENOMEM, FZ_RETRY, "file.io"},          {ESTALE, FZ_RETRY, "file.io"},
        {ETIMEDOUT, FZ_RETRY, "file.io"},         {ENOLCK, FZ_RETRY, "file.io"},
    };
    fz_status cls = FZ_FATAL;
    const char *code = "file.io";
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].e == e) {
            cls = known[i].cls;
            code = known[i].code;
        }
    char text[128];
    fz_fail(err, cls, code, "cannot %s '%s': %s", what, path, strerror_r(e, text, sizeof text));
    if (e == EACCES || e == EPERM) fz_hint(err, "give the user that runs frazil the right to do this, or choose another path");
    if (e == ENOSPC || e == EDQUOT) fz_hint(err, "make room on the file system of that path");
    return cls;
}

/* "file:" URIs: any number of slashes that Java and Python write ("file:/a", "file:///a"), and no host but localhost. */
const char *fio_local_path(const char *location) {
    if (location[0] == '/') return location;
    if (!fz_starts(location, "file:")) return NULL;
    const char *p = location + 5;
    if (fz_starts(p, "//")) {
        p += 2;
        if (fz_starts(p, "localhost/")) p += 9;
    }
    return *p == '/' ? p : NULL;
}

fz_status fio_resolve(fio *io, const char *location, const fio_store **store, const char **key, fz_error *err) {
    fz_sv bucket;
    if ((*key = fio_local_path(location))) return *store = &fio_local, FZ_OK;
    if (fz_starts(location, "mem://")) return *key = location, *store = &fio_mem, FZ_OK;
    if (s3_split(location, &bucket, key)) {
        if (!io) return fz_fail(err, FZ_USER, "file.scheme", "'%s': S3 can only be reached where its options are known, through a catalog", location);
        return *key = location, *store = &fio_s3_store, FZ_OK;
    }
    const char *colon = strchr(location, ':');
    if (fz_starts(location, "file:")) return fz_fail(err, FZ_USER, "file.scheme", "'%s' names a file on another host or a relative path", location);
    if (!colon) {
        fz_fail(err, FZ_USER, "file.scheme", "'%s' is neither an absolute path nor a URI", location);
        return fz_hint(err, "write /dir/file or file:///dir/file");
    }
    fz_fail(err, FZ_USER, "file.scheme", "no store for the scheme '%.*s' in this build: '%s'", (int)(colon - location), location, location);
    return fz_hint(err, "local files (file:///dir/file) and S3 (s3://bucket/key) work");
}

size_t fio_name_max(const char *location) { return fio_local_path(location) ? 255 : s3_root_len(location) ? 200 : 0; }

char *fio_join(fz_arena *a, const char *location, const char *name) {
    size_t n = strlen(location);
    while (n > 0 && location[n - 1] == '/') n--;
    while (*name == '/') name++;
    return fz_arena_printf(a, "%.*s/%s", (int)n, location, name);
}

#define WITH_STORE(io, location)                                                                                        \
    const fio_store *st;                                                                                               \
    const char *key;                                                                                                   \
    FZ_TRY(fio_resolve(io, location, &st, &key, err))

fz_status fio_read(fio *io, const char *location, size_t max, fz_buf *out, fz_error *err) {
    WITH_STORE(io, location);
    return st->read(io, key, max, out, err);
}
fz_status fio_read_range(fio *io, const char *location, uint64_t from, size_t n, void *out, fz_error *err) {
    WITH_STORE(io, location);
    return st->read_range(io, key, from, n, out, err);
}
fz_status fio_size(fio *io, const char *location, uint64_t *size, fz_error *err) {
    WITH_STORE(io, location);
    return st->stat(io, key, size, err);
}
fz_status fio_exists(fio *io, const char *location, bool *out, fz_error *err) {
    WITH_STORE(io, location);
    fz_error own;
    uint64_t size;
    fz_status rc = st->stat(io, key, &size, &own);
    *out = rc == FZ_OK;
    if (rc == FZ_OK || strcmp(own.code, "file.not-found") == 0) return FZ_OK;
    if (err) *err = own;
    return rc;
}
fz_status fio_put(fio *io, const char *location, const void *p, size_t n, fz_error *err) {
    WITH_STORE(io, location);
    return st->put(io, key, p, n, false, err);
}
fz_status fio_put_if_absent(fio *io, const char *location, const void *p, size_t n, fz_error *err) {
    WITH_STORE(io, location);
    return st->put(io, key, p, n, true, err);
}
fz_status fio_delete(fio *io, const char *location, fz_error *err) {
    WITH_STORE(io, location);
    return st->remove(io, key, err);
}
fz_status fio_list(fio *io, const char *prefix, fio_list_fn fn, void *cx, fz_error *err) {
    WITH_STORE(io, prefix);
    return st->list(io, key, prefix, fn, cx, err);
}
fz_status fio_list_dirs(fio *io, const char *prefix, fio_child_fn fn, void *cx, fz_error *err) {
    WITH_STORE(io, prefix);
    return st->list_dirs(io, key, fn, cx, err);
}
fz_status fio_delete_tree(fio *io, const char *location, fz_error *err) {
    WITH_STORE(io, location);
    return st->remove_tree(io, key, err);
}

/* Local files and memory, one by one; *failed: how many stayed, e: why the first did. S3's locations go to remote. */
static size_t delete_near(fio *io, const char *const *locations, size_t n, const char **remote, size_t *failed, fz_error *e) {
    size_t m = 0;
    for (size_t i = 0; i < n; i++) {
        fz_error one;
        if (s3_root_len(locations[i])) remote[m++] = locations[i];
        else if (fio_delete(io, locations[i], &one) != FZ_OK && (*failed)++ == 0) *e = one;
    }
    return m;
}

fz_status fio_delete_many(fio *io, const char *const *locations, size_t n, fz_error *err) {
    const char **remote = fz_malloc((n + 1) * sizeof *remote);
    size_t failed = 0;
    fz_error e;
    size_t m = delete_near(io, locations, n, remote, &failed, &e);
    if (failed > 1) fz_detail(&e, "and %zu more of %zu could not be deleted", failed - 1, n);
    if (m > 0) {
        const fio_store *st;
        const char *key;
        s3_store *s;
        fz_error far;
        fz_status rc = fio_resolve(io, remote[0], &st, &key, &far);
        if (rc == FZ_OK) rc = fio_s3(io, &s, &far);
        if (rc == FZ_OK) rc = s3_delete_many(s, remote, m, &far);
        if (rc != FZ_OK && failed++ == 0) e = far;
    }
    fz_free(remote);
    if (failed > 0 && err) *err = e;
    return failed > 0 ? e.cls : FZ_OK;
}

fz_status fio_abort_uploads(fio *io, const char *location, int64_t begun_before_ms, size_t *n, fz_error *err) {
    s3_store *s;
    *n = 0;
    if (!s3_root_len(location)) return FZ_OK;
    FZ_TRY(fio_s3(io, &s, err));
    return s3_sweep(s, location, begun_before_ms, n, err);
}

fz_status fio_try_upload(fio *io, const char *location, fz_error *err) {
    s3_store *s;
    if (!s3_root_len(location)) return fz_fail(err, FZ_USER, "file.scheme", "'%s' is no location of S3", location);
    FZ_TRY(fio_s3(io, &s, err));
    return s3_upload_try(s, location, err);
}
