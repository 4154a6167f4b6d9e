/* The S3 store as fileio sees it: whole objects, listings, streaming writes, batches. See fileio.h.
 *
 * Invariants
 *  1. An object below FIO_BUFFER never touches the disk: it is one PUT from memory. Above, s3_upload.c takes over.
 *  2. A batch's objects are uploaded by the pool as they are finished; fio_batch_sync waits for them. The first failure stops the batch: what has not begun is
 *     dropped, what was stored is deleted again. Of several failures the one of the object finished first is told.
 * Threads: a batch belongs to one thread; the pool's threads change its entries under its lock.
 */
#include "fileio/fileio_int.h"
#include "fileio/s3_int.h"

/* ---- one object on its way ---- */

typedef struct object { s3_store *s; char *location; uint8_t *buf; size_t len; s3_upload *upload; uint64_t total; } object;

static void release(object *o) {
    s3_upload_free(o->upload);
    fz_free(o->buf);
    fz_free(o->location);
}

static fz_status store_object(object *o, fz_error *err) {
    if (o->upload) return s3_upload_finish(o->upload, o->total, err);
    fz_status rc = s3_put(o->s, o->location, &(net_body){.p = o->len ? o->buf : NULL, .n = o->len, .fd = -1}, NULL, err);
    fz_error e;
    if (rc == FZ_RETRY && s3_delete(o->s, o->location, 1, &e) != FZ_OK) fz_log_error(FZ_LOG_WARN, "s3.orphan", &e); /* it may be there all the same */
    return rc;
}

/* ---- batches ---- */

typedef struct entry { s3_store *s; char *location; fz_error *error; bool stored; } entry;
struct s3_batch {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    entry *v;              /* in the order in which they were finished */
    size_t n, cap, open;   /* open: with the pool */
    bool failed;
};
typedef struct batch_job { s3_batch *b; size_t i; object o; } batch_job;

static void run_job(void *cx) {
    batch_job *j = cx;
    s3_batch *b = j->b;
    pthread_mutex_lock(&b->lock);
    bool go = !b->failed;
    pthread_mutex_unlock(&b->lock);
    fz_error e;
    fz_status rc = go ? store_object(&j->o, &e) : FZ_OK;
    release(&j->o);
    pthread_mutex_lock(&b->lock);
    entry *en = &b->v[j->i];
    en->stored = go && rc == FZ_OK;
    if (go && rc != FZ_OK) {
        en->error = FZ_NEW(fz_error);
        *en->error = e;
        b->failed = true;
    }
    b->open--;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
    fz_free(j);
}

static fz_status first_error(const s3_batch *b, fz_error *err) {
    for (size_t i = 0; b->failed && i < b->n; i++)
        if (b->v[i].error) {
            if (err) *err = *b->v[i].error;
            return b->v[i].error->cls;
        }
    return FZ_OK;
}

static fz_status batch_add(s3_batch **at, object *o, uint64_t memory, uint64_t disk, fz_error *err) {
    if (!*at) {
        *at = FZ_NEW(s3_batch);
        pthread_mutex_init(&(*at)->lock, NULL);
        pthread_cond_init(&(*at)->changed, NULL);
    }
    s3_batch *b = *at;
    pthread_mutex_lock(&b->lock);
    fz_status rc = first_error(b, err);
    size_t i = b->n;
    if (rc == FZ_OK) {
        FZ_GROW(b->v, b->n, b->cap);
        b->v[b->n++] = (entry){.s = o->s, .location = fz_strdup(o->location)};
        b->open++;
    }
    pthread_mutex_unlock(&b->lock);
    if (rc != FZ_OK) {
        release(o);
        return rc;
    }
    batch_job *j = FZ_NEW(batch_job);
    *j = (batch_job){.b = b, .i = i, .o = *o};
    s3_pool_push(&(s3_job){.run = run_job, .cx = j, .memory = memory, .disk = disk}, o->s->c.threads);
    return FZ_OK;
}

static void forget(s3_batch *b) {
    for (size_t i = 0; i < b->n; i++) {
        fz_free(b->v[i].location);
        fz_free(b->v[i].error);
    }
    b->n = 0;
    b->failed = false;
}

static void await_all(s3_batch *b) {
    pthread_mutex_lock(&b->lock);
    while (b->open > 0) pthread_cond_wait(&b->changed, &b->lock);
    pthread_mutex_unlock(&b->lock);
}

void s3_batch_drop(s3_batch *b) {
    if (!b) return;
    pthread_mutex_lock(&b->lock);
    b->failed = true; /* what has not begun does not begin */
    pthread_mutex_unlock(&b->lock);
    await_all(b);
    const char **v = fz_malloc((b->n + 1) * sizeof *v);
    for (size_t from = 0; from < b->n;) { /* store by store; nearly always there is one */
        s3_store *s = b->v[from].s;
        size_t n = 0, i = from;
        fz_error e;
        for (; i < b->n && b->v[i].s == s; i++)
            if (b->v[i].stored) v[n++] = b->v[i].location;
        if (n > 0 && s3_delete_many(s, v, n, &e) != FZ_OK) fz_log_error(FZ_LOG_WARN, "s3.orphan", &e);
        from = i;
    }
    fz_free(v);
    forget(b);
}

fz_status s3_batch_wait(s3_batch *b, fz_error *err) {
    if (!b) return FZ_OK;
    await_all(b);
    fz_status rc = first_error(b, err);
    if (rc != FZ_OK) s3_batch_drop(b);
    return rc;
}

void s3_batch_done(s3_batch *b) {
    if (b) forget(b);
}

void s3_batch_free(s3_batch *b) {
    if (!b) return;
    s3_batch_drop(b);
    fz_free(b->v);
    pthread_mutex_destroy(&b->lock);
    pthread_cond_destroy(&b->changed);
    fz_free(b);
}

/* ---- writers ---- */

static fz_status spill(fio_writer *w, const void *p, size_t n, fz_error *err) {
    if (!w->upload) {
        s3_store *s;
        FZ_TRY(fio_s3(w->io, &s, err));
        w->upload = s3_upload_new(s, w->key, w->tag);
    }
    return s3_upload_add(w->upload, w->written, p, n, err);
}

static fz_status finish(fio_writer *w, fio_batch *batch, fz_error *err) {
    s3_store *s;
    uint64_t total = w->written + w->len;
    fz_status rc = fio_s3(w->io, &s, err);
    if (rc == FZ_OK && w->upload && w->len > 0) rc = spill(w, w->buf, w->len, err);
    if (rc == FZ_OK && w->upload) rc = s3_upload_seal(w->upload, total, err);
    object o = {.s = s, .location = w->key, .buf = w->buf, .len = w->len, .upload = w->upload, .total = total};
    w->upload = NULL;
    if (rc != FZ_OK) {
        s3_upload_free(o.upload);
        return rc;
    }
    uint64_t memory = o.upload ? 0 : w->cap, disk = o.upload ? s3_upload_staged(o.upload) : 0;
    w->buf = NULL; /* o owns them from here on */
    w->key = NULL;
    if (o.upload) {
        fz_free(o.buf);
        o.buf = NULL;
        o.len = 0;
    }
    if (batch) return batch_add(&batch->s3, &o, memory, disk, err);
    rc = store_object(&o, err);
    release(&o);
    return rc;
}

static void abort_writer(fio_writer *w) {
    s3_upload_free(w->upload);
    w->upload = NULL;
}
static size_t memory_of(const fio_writer *w) { return w->upload ? s3_upload_memory(w->upload) : 0; }

/* ---- whole objects; key is the location ---- */

#define STORE                                                                                                          \
    s3_store *s;                                                                                                       \
    FZ_TRY(fio_s3(io, &s, err))

static fz_status read_all(fio *io, const char *key, size_t max, fz_buf *out, fz_error *err) {
    STORE;
    return s3_get(s, key, max, out, err);
}
static fz_status read_range(fio *io, const char *key, uint64_t from, size_t n, void *out, fz_error *err) {
    STORE;
    return s3_get_range(s, key, from, n, out, err);
}
static fz_status size_of(fio *io, const char *key, uint64_t *size, fz_error *err) {
    STORE;
    return s3_head(s, key, size, NULL, NULL, err);
}
static fz_status put(fio *io, const char *key, const void *p, size_t n, bool if_absent, fz_error *err) {
    STORE;
    if (if_absent) return s3_put_if_absent(s, key, p, n, err);
    return s3_put(s, key, &(net_body){.p = n ? p : NULL, .n = n, .fd = -1}, NULL, err);
}
static fz_status remove_one(fio *io, const char *key, fz_error *err) {
    STORE;
    return s3_delete(s, key, 0, err);
}

/* ---- listings ---- */

typedef struct walk { const char *root; size_t root_len, skip; fio_list_fn fn; fio_child_fn child; void *cx; fz_arena *a; } walk;

static bool show_object(void *cx, const s3_item *item) {
    walk *w = cx;
    size_t n = strlen(item->key);
    if (n > 0 && item->key[n - 1] == '/' && item->size == 0) return true; /* what consoles and Hadoop put for a directory */
    fz_arena_reset(w->a);
    return w->fn(w->cx, fz_arena_printf(w->a, "%.*s/%s", (int)w->root_len, w->root, item->key), item->size, item->mtime_ms);
}

static bool show_dir(void *cx, const s3_item *item) {
    walk *w = cx;
    size_t n = strlen(item->key);
    if (!item->prefix || n < w->skip + 2) return true; /* "a//b": a level without a name */
    fz_arena_reset(w->a);
    return w->child(w->cx, fz_arena_strndup(w->a, item->key + w->skip, n - w->skip - 1));
}

static fz_status walk_keys(fio *io, walk *w, const char *delimiter, s3_item_fn fn, fz_error *err) {
    STORE;
    fz_sv bucket;
    const char *key = "";
    (void)s3_split(w->root, &bucket, &key);
    fz_arena *a = fz_arena_new();
    w->a = fz_arena_new();
    w->root_len = s3_root_len(w->root);
    const char *prefix = s3_dir_prefix(a, key);
    w->skip = strlen(prefix);
    fz_status rc = s3_list(s, w->root, prefix, delimiter, fn, w, err);
    fz_arena_free(w->a);
    fz_arena_free(a);
    return rc;
}

static fz_status list(fio *io, const char *key, const char *location, fio_list_fn fn, void *cx, fz_error *err) {
    (void)key;
    return walk_keys(io, &(walk){.root = location, .fn = fn, .cx = cx}, NULL, show_object, err);
}
static fz_status list_dirs(fio *io, const char *key, fio_child_fn fn, void *cx, fz_error *err) {
    return walk_keys(io, &(walk){.root = key, .child = fn, .cx = cx}, "/", show_dir, err);
}

/* Deletes a page's worth at a time, so that memory stays bounded whatever lies below. */
typedef struct sweep { walk *w; s3_store *s; fz_arena *a; const char **v; size_t n; fz_status rc; fz_error *err; } sweep;

static void flush_sweep(sweep *d) {
    if (d->n > 0 && d->rc == FZ_OK) d->rc = s3_delete_many(d->s, d->v, d->n, d->err);
    d->n = 0;
    fz_arena_reset(d->a);
}

static bool collect(void *cx, const s3_item *item) {
    walk *w = cx;
    sweep *d = w->cx;
    d->v[d->n++] = fz_arena_printf(d->a, "%.*s/%s", (int)w->root_len, w->root, item->key);
    if (d->n == 1000) flush_sweep(d);
    return d->rc == FZ_OK;
}

static fz_status remove_tree(fio *io, const char *key, fz_error *err) {
    STORE;
    sweep d = {.s = s, .a = fz_arena_new(), .v = fz_malloc(1000 * sizeof *d.v), .err = err};
    fz_status rc = walk_keys(io, &(walk){.root = key, .cx = &d}, NULL, collect, err);
    if (rc == FZ_OK) flush_sweep(&d);
    fz_arena_free(d.a);
    fz_free(d.v);
    return rc != FZ_OK ? rc : d.rc;
}

const fio_store fio_s3_store = {
    .read = read_all, .read_range = read_range, .stat = size_of, .put = put, .remove = remove_one, .list = list, .list_dirs = list_dirs,
    .remove_tree = remove_tree, .spill = spill, .finish = finish, .abort = abort_writer, .memory = memory_of,
};
