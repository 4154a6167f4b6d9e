/* Inside of fileio: the table of functions that a store is, and what the local store's files share. */
#ifndef FIO_FILEIO_INT_H
#define FIO_FILEIO_INT_H
#include "fileio/fileio.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#define FIO_TEMP_PREFIX ".frazil-"
/* A writer's buffer goes to disk when it would pass this; below it an object costs one open(2). */
#define FIO_BUFFER (256u << 10)
/* What goes past the page cache is whole blocks of this size, in the file and in memory. */
#define FIO_BLOCK 4096u

/* key: what a location is inside its store (local: the path; memory: the location itself). */
typedef struct fio_store {
    fz_status (*read)(fio *io, const char *key, size_t max, fz_buf *out, fz_error *err);
    fz_status (*read_range)(fio *io, const char *key, uint64_t from, size_t n, void *out, fz_error *err);
    fz_status (*stat)(fio *io, const char *key, uint64_t *size, fz_error *err); /* USER file.not-found */
    fz_status (*put)(fio *io, const char *key, const void *p, size_t n, bool if_absent, fz_error *err);
    fz_status (*remove)(fio *io, const char *key, fz_error *err);
    fz_status (*list)(fio *io, const char *key, const char *location, fio_list_fn fn, void *cx, fz_error *err);
    fz_status (*list_dirs)(fio *io, const char *key, fio_child_fn fn, void *cx, fz_error *err);
    fz_status (*remove_tree)(fio *io, const char *key, fz_error *err);
    /* Adds bytes at w->written to what is kept outside of memory; NULL: this store keeps all in memory until the end. */
    fz_status (*spill)(fio_writer *w, const void *p, size_t n, fz_error *err);
    /* Everything is in the buffer or spilled. batch NULL: make it durable and visible now; else leave that to the batch. */
    fz_status (*finish)(fio_writer *w, fio_batch *batch, fz_error *err);
    void (*abort)(fio_writer *w); /* removes what was spilled */
    size_t (*memory)(const fio_writer *w); /* bytes held beside the buffer; NULL: none */
    bool blocks; /* it likes to be given whole FIO_BUFFERs, aligned to FIO_BLOCK */
} fio_store;
extern const fio_store fio_local, fio_mem, fio_s3_store;

struct fio {
    atomic_uint refs;
    fz_arena *arena;          /* options */
    const fz_pair *options;
    size_t n_options;
    pthread_mutex_t lock;     /* over what is made at first use */
    aws_session *aws;
    aws_provider *provider;   /* NULL: the options' or the session's */
    struct s3_store *s3;
};

struct fio_writer {
    fio *io;
    const fio_store *store;
    char *key;
    uint8_t *buf;
    size_t len, cap;
    uint64_t written; /* bytes spilled */
    uint64_t tag;     /* makes the temporary's name */
    bool pooled;      /* buf is an aligned FIO_BUFFER from the pool */
    /* local files: the temporary, -1 while it is not open; counted among those that stay open; O_DIRECT is on; all that follows goes through the page cache; a failure may
     * have left bytes behind the end */
    int fd;
    bool held, direct, cached, ragged;
    struct s3_upload *upload; /* S3: what was spilled */
};

typedef struct fio_pending { char *path; uint64_t tag; bool durable; } fio_pending; /* durable: the temporary is fsynced */
struct fio_batch { fio_pending *v; size_t n, cap; struct s3_batch *s3; }; /* v: local files; s3: NULL until an object of S3 is added */

fz_status fio_resolve(fio *io, const char *location, const fio_store **store, const char **key, fz_error *err) FZ_MUST_USE;
/* The S3 store of a handle, made at the first call. USER "file.scheme" for NULL. */
fz_status fio_s3(fio *io, struct s3_store **out, fz_error *err) FZ_MUST_USE;
/* Class and code of an errno; the message names what was done and the path. */
fz_status fio_errno(fz_error *err, int e, const char *what, const char *path);

/* dirs.c: directories that exist and whose names are durable. Paths are absolute. */
int fio_dirs_make(const char *file_path);                         /* the directories above a file; 0 or errno */
fz_status fio_dirs_sync(const char *const *file_paths, size_t n, fz_error *err) FZ_MUST_USE; /* n >= 1 */

/* The errno that a call of a store shall pretend, or 0: a fault point that is armed (NULL: none), or a draw from FRAZIL_STORE_SEED. */
int fio_io_injected(const char *point);
/* local_io.c: system calls with faults in between and EINTR out of the way; 0 or errno. */
int fio_io_write(int fd, const void *p, size_t n, uint64_t at);
int fio_io_fsync(int fd);
int fio_io_rename(const char *from, const char *to);
char *fio_temp_path(const char *path, uint64_t tag); /* heap */
int fio_temp_create(const char *temp, const char *path); /* fd, or -errno; makes missing directories */
uint64_t fio_tag(void);
/* local_temp.c: the temporary of a writer, made at the first call. */
fz_status fio_temp_add(fio_writer *w, const void *p, size_t n, fz_error *err) FZ_MUST_USE; /* at w->written; what is there already stays on failure */
/* The last bytes, n may be 0. durable: fsynced; else write-back has begun. Closed whatever happens, and removed on failure. */
fz_status fio_temp_end(fio_writer *w, const void *p, size_t n, bool durable, fz_error *err) FZ_MUST_USE;
void fio_temp_drop(fio_writer *w);
/* local_batch.c: temporaries -> durable -> visible -> durable by name. On failure none is left. */
fz_status fio_local_publish(const fio_pending *v, size_t n, fz_error *err) FZ_MUST_USE;
/* The same for one object that may replace an older one: a failure leaves the old one or the new one. */
fz_status fio_local_replace(const fio_pending *p, fz_error *err) FZ_MUST_USE;
#endif
