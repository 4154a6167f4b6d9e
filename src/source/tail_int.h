/* Inside the connector 'filesystem' with 'source.monitor-interval': a log that is followed. See tail.c.
 *
 *   tail.c         finding files, and what becomes of their logs; the operations of the source
 *   tail_name.c    what a log is called
 *   tail_packed.c  the text of a packed file: read from front to back, behind what was read before
 *
 * Threads: the functions that take a tail_log are called with its lock held, or while nobody else knows it.
 */
#ifndef SRC_TAIL_INT_H
#define SRC_TAIL_INT_H
#include "source/file_int.h"
#include <pthread.h>
#include <sys/stat.h>
#include <time.h>

enum { TAIL_HEAD = 256, TAIL_BEFORE = 64 };

/* A file as it is now: packing it anew, or writing on, changes that; renaming does not. */
typedef struct tail_id { dev_t dev; ino_t ino; off_t size; struct timespec mtime; } tail_id;
static inline tail_id tail_id_of(const struct stat *st) { return (tail_id){st->st_dev, st->st_ino, st->st_size, st->st_mtim}; }
static inline bool tail_id_same(const tail_id *a, const tail_id *b) {
    return a->dev == b->dev && a->ino == b->ino && a->size == b->size && a->mtime.tv_sec == b->mtime.tv_sec && a->mtime.tv_nsec == b->mtime.tv_nsec;
}

typedef struct tail_packed {
    file_packing packing;
    tail_id id;         /* as it was when it was opened last */
    file_text text;     /* text.stream NULL: not open */
    int64_t at;         /* where what text holds begins */
    int64_t size;       /* of its text; -1: not known yet */
    bool waiting;       /* it ended in the middle, or is damaged: until it changes there is no more to be had */
    bool told;          /* and that was logged */
    bool damaged;       /* nothing more comes out of text.stream, for this reason */
    fz_error damage;
} tail_packed;

typedef struct tail_log {
    pthread_mutex_t lock;
    char *path;          /* where it was first found */
    char *key;
    int fd;
    dev_t dev;
    ino_t ino;
    uint8_t head[TAIL_HEAD]; /* its first line, or 256 bytes of it */
    uint32_t n_head;
    bool truncated;      /* its file begins otherwise now, or is shorter than what was read */
    bool final;          /* nothing will be added to it */
    bool assigned;
    int64_t pos;
    uint8_t before[TAIL_BEFORE]; /* what stands before pos; n_before 0: not known */
    uint32_t n_before;
    ino_t twin;          /* about which an error was logged */
    tail_packed *packed; /* NULL: its file is plain, or closed */
    uint64_t seen;       /* number of the look that saw a file of it last */
} tail_log;

/* ---- tail_name.c ---- */
char *tail_stem(const char *path);           /* the base name without the ending of a packed file, and without groups of digits and the '.', '-' or '_' before each; the caller's */
bool tail_rotated_name(const char *path);    /* does it end as those names do that rotation gives? */
file_packing tail_packing(const char *path, const uint8_t *head, size_t n, bool *foreign); /* foreign: packed in a way that is not read */

/* ---- tail_packed.c ---- */
ssize_t tail_read_at(int fd, uint8_t *out, size_t n, int64_t at); /* less than n: the file ends there; -1: errno */
void tail_note_before(tail_log *l, const uint8_t *p, size_t n);   /* n bytes more were read, of which p is the end; at least TAIL_BEFORE of them if n is larger */
/* The first n bytes of a packed file's text, less if it has less. false: they cannot be had (now). */
bool tail_packed_head(const char *path, int fd, file_packing packing, uint8_t *out, size_t n, size_t *got);
tail_packed *tail_packed_new(file_packing packing, const struct stat *st);
void tail_packed_free(tail_packed *p); /* NULL is allowed */
/* Does the file itself say that its text ends at `pos`? */
bool tail_packed_ends_at(int fd, file_packing packing, int64_t pos);
bool tail_packed_more(tail_log *l);   /* may there be text behind l->pos? */
/* The next lines at l->pos; none: it is on the way there, or there are none (tail_packed_more says so). Errors: passing ones. */
fz_status tail_packed_lines(tail_log *l, file_chunk *f, uint32_t max, fz_error *err) FZ_MUST_USE;
/* Unpacks from the front: where the text ends, or, if it is damaged or not whole yet, its last whole line. */
fz_status tail_packed_size(tail_log *l, int64_t *size, fz_error *err) FZ_MUST_USE;
/* As src_probe_before. */
fz_status tail_packed_probe(tail_log *l, int64_t before, uint32_t max, src_probe *out, fz_error *err) FZ_MUST_USE;
#endif
