/* The memory store: "mem://..." names bytes of this process. For tests and for the shell's tables that nobody keeps.
 *
 * Invariants
 *  1. objects[] is sorted by location; a listing of a prefix is one range of it. "Directories" are what stands before a slash.
 *  2. The lock is never held while a caller's function runs.
 */
#include "fileio/fileio_int.h"
#include <errno.h>
#include <pthread.h>

typedef struct object { char *location; uint8_t *data; size_t n; int64_t mtime_ms; } object;
static object *objects;
static size_t n_objects, cap_objects;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Index of the first object that is not below `location`. */
static size_t lower(const char *location) {
    size_t lo = 0, hi = n_objects;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (strcmp(objects[mid].location, location) < 0) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

static object *find(const char *location) {
    size_t i = lower(location);
    return i < n_objects && strcmp(objects[i].location, location) == 0 ? &objects[i] : NULL;
}

static fz_status mem_read(fio *io, const char *key, size_t max, fz_buf *out, fz_error *err) {
    (void)io;
    pthread_mutex_lock(&lock);
    object *o = find(key);
    fz_status rc = FZ_OK;
    if (!o) rc = fio_errno(err, ENOENT, "open", key);
    else if (o->n > max) rc = fz_fail(err, FZ_FATAL, "file.too-large", "'%s' has more than %zu bytes", key, max);
    else fz_buf_append(out, o->data, o->n);
    pthread_mutex_unlock(&lock);
    return rc;
}

static fz_status mem_read_range(fio *io, const char *key, uint64_t from, size_t n, void *out, fz_error *err) {
    (void)io;
    pthread_mutex_lock(&lock);
    object *o = find(key);
    fz_status rc = FZ_OK;
    if (!o) rc = fio_errno(err, ENOENT, "open", key);
    else if (from > o->n || n > o->n - from)
        rc = fz_fail(err, FZ_FATAL, "file.short", "'%s' ends at byte %zu, before byte %llu", key, o->n, (unsigned long long)(from + n));
    else memcpy(out, o->data + from, n);
    pthread_mutex_unlock(&lock);
    return rc;
}

static fz_status mem_stat(fio *io, const char *key, uint64_t *size, fz_error *err) {
    (void)io;
    pthread_mutex_lock(&lock);
    object *o = find(key);
    if (o) *size = o->n;
    pthread_mutex_unlock(&lock);
    return o ? FZ_OK : fio_errno(err, ENOENT, "look at", key);
}

static fz_status mem_put(fio *io, const char *key, const void *p, size_t n, bool if_absent, fz_error *err) {
    (void)io;
    pthread_mutex_lock(&lock);
    object *o = find(key);
    if (o && if_absent) {
        pthread_mutex_unlock(&lock);
        return fio_errno(err, EEXIST, "create", key);
    }
    if (!o) {
        FZ_GROW(objects, n_objects, cap_objects);
        size_t i = lower(key);
        memmove(&objects[i + 1], &objects[i], (n_objects - i) * sizeof *objects);
        n_objects++;
        o = &objects[i];
        *o = (object){.location = fz_strdup(key)};
    }
    fz_free(o->data);
    o->data = fz_malloc(n ? n : 1);
    if (n > 0) memcpy(o->data, p, n);
    o->n = n;
    o->mtime_ms = fz_now_ms();
    pthread_mutex_unlock(&lock);
    return FZ_OK;
}

static fz_status mem_remove(fio *io, const char *key, fz_error *err) {
    (void)io;
    (void)err;
    pthread_mutex_lock(&lock);
    object *o = find(key);
    if (o) {
        fz_free(o->location);
        fz_free(o->data);
        size_t i = (size_t)(o - objects);
        memmove(o, o + 1, (n_objects - i - 1) * sizeof *o);
        n_objects--;
    }
    pthread_mutex_unlock(&lock);
    return FZ_OK;
}

/* "prefix/" without doubling a slash that is there. */
static char *as_dir(const char *key) {
    size_t n = strlen(key);
    while (n > 0 && key[n - 1] == '/') n--;
    return fz_asprintf("%.*s/", (int)n, key);
}

/* A copy of what is below dir (data left out), so that the callbacks run without the lock. */
static object *below(const char *dir, size_t *n) {
    object *v = NULL;
    size_t cap = 0;
    *n = 0;
    pthread_mutex_lock(&lock);
    for (size_t i = lower(dir); i < n_objects && fz_starts(objects[i].location, dir); i++) {
        FZ_GROW(v, *n, cap);
        v[(*n)++] = (object){.location = fz_strdup(objects[i].location), .n = objects[i].n, .mtime_ms = objects[i].mtime_ms};
    }
    pthread_mutex_unlock(&lock);
    return v;
}

static void free_copy(object *v, size_t n) {
    for (size_t i = 0; i < n; i++) fz_free(v[i].location);
    fz_free(v);
}

static fz_status mem_list(fio *io, const char *key, const char *location, fio_list_fn fn, void *cx, fz_error *err) {
    (void)io;
    (void)location, (void)err;
    char *dir = as_dir(key);
    size_t n;
    object *v = below(dir, &n);
    for (size_t i = 0; i < n; i++)
        if (!fn(cx, v[i].location, v[i].n, v[i].mtime_ms)) break;
    free_copy(v, n);
    fz_free(dir);
    return FZ_OK;
}

static fz_status mem_list_dirs(fio *io, const char *key, fio_child_fn fn, void *cx, fz_error *err) {
    (void)io;
    (void)err;
    char *dir = as_dir(key), *last = NULL;
    size_t n, skip = strlen(dir);
    object *v = below(dir, &n);
    for (size_t i = 0; i < n; i++) {
        const char *rest = v[i].location + skip, *slash = strchr(rest, '/');
        if (!slash) continue;
        char *name = fz_strndup(rest, (size_t)(slash - rest));
        bool again = last && strcmp(last, name) == 0;
        fz_free(last);
        last = name;
        if (!again && !fn(cx, name)) break;
    }
    fz_free(last);
    free_copy(v, n);
    fz_free(dir);
    return FZ_OK;
}

static fz_status mem_remove_tree(fio *io, const char *key, fz_error *err) {
    char *dir = as_dir(key);
    size_t n;
    object *v = below(dir, &n);
    fz_status rc = FZ_OK;
    for (size_t i = 0; i < n && rc == FZ_OK; i++) rc = mem_remove(io, v[i].location, err);
    free_copy(v, n);
    fz_free(dir);
    return rc;
}

static fz_status mem_finish(fio_writer *w, fio_batch *batch, fz_error *err) {
    (void)batch; /* nothing of this store is durable, so nothing is gained by waiting */
    return mem_put(w->io, w->key, w->buf, w->len, false, err);
}
static void mem_abort(fio_writer *w) { (void)w; }

const fio_store fio_mem = {
    .read = mem_read, .read_range = mem_read_range, .stat = mem_stat, .put = mem_put, .remove = mem_remove, .list = mem_list,
    .list_dirs = mem_list_dirs, .remove_tree = mem_remove_tree, .spill = NULL, .finish = mem_finish, .abort = mem_abort,
};
