/* Inside the spool: how a segment looks on disk, and who owns what.
 *
 * A segment file is a head of SPL_HEAD bytes and frames, each a multiple of 8 bytes. Numbers are in the machine's byte order (little-endian; a spool is not carried between machines).
 *   head  : magic, version, size of the head, seed, incarnation, first number, `after`, checksum of all before
 *   frame : checksum, mark, size, first number, n, context_len, arrival_ms, n_bytes, flags | time_ns[n] if FLAG_TIMES | len[n] | context | bytes | zeros (to 8; a large run to SPL_PAGE, see spl_write.c)
 * A segment's seed is a random number that never leaves the file: it seeds the checksums of its frames, and its low half is their mark. So the bytes of a record cannot pass for a frame when
 * a damaged segment is searched for the next intact one.
 *
 * Invariants
 *  1. A head is durable before its file has its name: a file without a right head was damaged, it is no rest of a crash.
 *  2. Nothing is appended to a file that another process has written, or whose write or fsync failed: the next segment begins instead. Frames whose number the next segment covers are void.
 *  3. `after` <= first: [after, first) were never given to a record that anybody was told of. After a torn tail numbers leap by SPL_LEAP, because a tail that was cut may have been
 *     acknowledged and read if it was not a crash that tore it; so they do behind a last segment of which nothing can be used. The segment behind the leap is there before the torn tail is cut or the
 *     other one set aside: a start that is killed, or finds no room, leaves the reason in place for the next one.
 *  4. The last segment is given back (a new one, then its removal) when all of it is trimmed. Where the disk has no room for the new one's head, it is first shortened to a torn frame: a start that
 *     finds it so leaps, so that no number is given twice.
 *  5. segs, ring and all marks are under `lock`; the file that is written to belongs to the spool's thread.
 *  6. A blob's bytes below `done` are durable and never change again: readers look at them without the lock. Those from `done` to `bytes` belong to their appender until it has copied them, then to the
 *     spool's thread, which seals and writes them where they are.
 */
#ifndef SPL_SPOOL_INT_H
#define SPL_SPOOL_INT_H
#include "spool/spool.h"
#include <pthread.h>
#include <stdatomic.h>

#define SPL_HEAD 88u
#define SPL_VERSION 1u
#define SPL_LEAP (1ull << 32)
#define SPL_MAX_FRAME (1u << 30)
enum { SPL_PAGE = 4096, SPL_LARGE_RUN = 32 << 10, SPL_FLAG_TIMES = 1, SPL_MAX_WATCHERS = 8, SPL_BLOCK = 1 << 20 };

typedef struct spl_head {
    char magic[8];
    uint32_t version, size;
    uint64_t seed;
    char incarnation[36];
    uint32_t unused;
    uint64_t first, after, sum;
} spl_head;
_Static_assert(sizeof(spl_head) == SPL_HEAD, "the head of a segment on disk");

typedef struct spl_frame {
    uint64_t sum;       /* XXH3, seeded, of the frame behind it */
    uint32_t mark, size;
    uint64_t first;
    uint32_t n, context_len;
    int64_t arrival_ms;
    uint64_t n_bytes;
    uint32_t flags, unused;
} spl_frame;
_Static_assert(sizeof(spl_frame) == 56, "a frame's head has 56 bytes on disk");

/* Whole frames in memory, one after the other: appends as they go to the disk and stay for readers, or a block read back. */
typedef struct spl_blob {
    _Atomic uint32_t refs;
    uint32_t copying;       /* appends that have their place here, but not yet their bytes */
    bool open;              /* the next append may go here */
    uint64_t first, end;
    size_t bytes, ready, cap; /* of frames in data; of those that are copied, with all before them; room for frames, behind it SPL_PAGE for filling up */
    _Atomic size_t done;    /* bytes that are durable */
    struct spl_pool *pool;
    struct spl_blob *next;  /* in the pool */
    uint8_t *data;          /* in room, at a multiple of SPL_PAGE unless it was read back */
    _Alignas(SPL_PAGE) uint8_t room[];
} spl_blob;

/* Memory of blobs that are gone, for the next ones: to touch new pages costs as much as to copy into them. Blobs that readers hold keep it alive. */
typedef struct spl_pool spl_pool;

typedef struct spl_seg {
    uint64_t first, after, end, size, seed; /* size: of what is durable; end: number behind its last record, of an older one that of the next one's `after` */
    uint64_t damage_to;                     /* damage was counted up to this byte */
} spl_seg;

typedef struct spl_mark { uint64_t first; int64_t arrival_ms; } spl_mark;
typedef struct spl_marks { spl_mark *v; uint32_t n, cap; int64_t step_ms; } spl_marks;

typedef struct spl_watcher { void (*fn)(void *cx); void *cx; } spl_watcher;

struct spool {
    char *dir;
    int lock_fd, dir_fd;
    char incarnation[37];
    int64_t max_bytes, segment_bytes;
    size_t memory;
    pthread_mutex_t lock;
    pthread_cond_t work, moved;          /* for the thread; for those who wait for durability, memory or records */
    pthread_t thread;
    bool started, closing, roll, notify;
    /* the newest frames, by number: ring_done blobs are durable and closed, behind them are those on their way */
    spl_pool *pool;
    spl_blob **ring;
    size_t ring_at, ring_n, ring_cap, ring_done;
    size_t held, queued;                 /* bytes of memory in the ring; bytes of frames that are not yet durable */
    uint64_t next;                       /* number of the next record */
    _Atomic uint64_t durable;
    /* files */
    spl_seg *segs;
    size_t n_segs, cap_segs;
    int fd, direct_fd;                   /* of the last segment; -1: the next write begins a new one; past the page cache, -1: not possible */
    bool no_direct;                      /* the file system does not do it */
    uint64_t seg_bytes, trim_to, lost_to;
    spl_marks marks;                     /* when records came in */
    uint64_t leapt_from;                 /* numbers from this one to the next segment's first were never given, and no segment says so yet; UINT64_MAX: none */
    /* trouble */
    int failing;                         /* errno of the last try; 0: none */
    uint64_t refused_need;               /* bytes that an append wanted and did not get; 0: none */
    uint64_t disk_need;                  /* the same, of the disk's room; 0: none */
    uint64_t room, reserve;              /* the disk's beyond the reserve as it was last looked at; the reserve */
    bool cut;                            /* the last segment was shortened to a torn frame: nothing of it is wanted, and it is not written to */
    _Atomic bool full;
    spool_stats stats;
    pthread_mutex_t watch_lock;
    spl_watcher watchers[SPL_MAX_WATCHERS];
};

/* ---- spl_file.c: bytes and files ---- */
char *spl_path(const spool *s, uint64_t first, const char *suffix); /* <dir>/<20 digits><suffix>; the caller frees */
fz_status spl_fail(fz_error *err, int e, const char *what, const char *path); /* errno as USER spool.directory, RETRY spool.no-space or spool.io */
void spl_frame_seal(spl_frame *f, uint64_t seed);
/* What its parts take, to a multiple of 8. */
static inline uint64_t spl_frame_size(uint64_t n, bool timed, uint64_t context_len, uint64_t n_bytes) { return (sizeof(spl_frame) + n * (timed ? 12 : 4) + context_len + n_bytes + 7) & ~7ull; }
static inline uint64_t spl_frame_own_size(const spl_frame *f) { return spl_frame_size(f->n, f->flags & SPL_FLAG_TIMES, f->context_len, f->n_bytes); }
/* Does a frame begin at p? n bytes are there, `most` may follow. Checks the head's sense only. */
bool spl_frame_plausible(const uint8_t *p, size_t n, uint64_t most, uint64_t seed);
bool spl_frame_right(const uint8_t *p, uint64_t seed); /* whole in memory, plausible */
/* Begins a segment under its name, durable; *fd to write to. */
fz_status spl_seg_create(spool *s, uint64_t first, uint64_t after, spl_seg *out, int *fd, fz_error *err) FZ_MUST_USE;
fz_status spl_sync_dir(const spool *s, fz_error *err) FZ_MUST_USE;
/* Writes a small file durably under its name. */
fz_status spl_file_put(const spool *s, const char *name, const void *p, size_t n, fz_error *err) FZ_MUST_USE;
/* n bytes at `at`, or less at the file's end: *got. Pages that cannot be read are zeros. */
void spl_read_at(int fd, uint64_t at, uint8_t *out, size_t n, size_t *got);


/* A walk over the frames of one segment file. */
typedef struct spl_walk {
    spl_pool *pool;            /* for blobs; may be NULL */
    int fd, direct_fd;         /* direct_fd: the same file, past the page cache, if `direct` */
    bool direct;
    uint64_t at, limit, seed;  /* next byte; end */
    uint64_t least, most;      /* numbers that a frame may begin with: [least, most) */
    uint64_t bad_at, bad_n;    /* set by a step that met damage: bytes [bad_at, +bad_n) hold no frame */
} spl_walk;
/* Intact frames from `at` on, as a blob of up to SPL_BLOCK bytes (more for one large frame); NULL: bytes that are damaged (bad_n), or the end (bad_n is 0). */
spl_blob *spl_walk_next(spl_walk *w);

/* ---- spl_blob.c ---- */
spl_pool *spl_pool_new(size_t memory); /* for a spool with that much memory */
void spl_pool_free(spl_pool *p);       /* once the last blob is gone; NULL is allowed */
spl_blob *spl_blob_new(spl_pool *pool, size_t bytes); /* room for at least so many bytes; pool may be NULL */
void spl_blob_unref(spl_blob *b);      /* NULL is allowed */
/* The ring: lock held. */
static inline spl_blob *spl_ring(const spool *s, size_t i) { return s->ring[(s->ring_at + i) % s->ring_cap]; }
void spl_ring_add(spool *s, spl_blob *b);
void spl_ring_settle(spool *s); /* after something was closed or became durable: counts ring_done anew, lets go of the oldest durable blobs when there is more than memory allows */
/* The oldest blob of which something is not durable; NULL: everything is. */
spl_blob *spl_unwritten(const spool *s);

/* ---- spl_marks.c; lock held, or nobody else is there yet ---- */
void spl_marks_note(spl_marks *m, uint64_t first, int64_t arrival_ms);
void spl_marks_blob(spl_marks *m, const spl_blob *b);
void spl_marks_segment(spool *s, const spl_seg *g);
int64_t spl_marks_at(const spl_marks *m, uint64_t at); /* 0: unknown */
void spl_marks_forget(spl_marks *m, uint64_t below);

/* ---- spl_read.c ---- */
uint64_t spl_records_from(const spool *s, uint64_t from); /* lock held; spool_records_from */

/* ---- spl_open.c ---- */
fz_status spl_recover(spool *s, fz_error *err) FZ_MUST_USE;
/* Files up to which number records were trimmed, for spool_count. */
void spl_note_trimmed(const spool *s);
bool spl_segment_name(const char *name, uint64_t *first);
bool spl_head_right(const spl_head *h);
bool spl_looks_like_uuid(const char *p);
/* Keeps a copy of bytes that hold no frame in NAME.damaged, counts and names them, each once. Takes the lock. */
void spl_damage(spool *s, uint64_t seg_first, int fd, uint64_t at, uint64_t n);

/* ---- spl_write.c ---- */
void *spl_thread(void *spool_);
void spl_check_full(spool *s);          /* lock held */
/* The disk's room beyond the reserve, what is queued counted as written: into s->room. Lock held. */
void spl_look_room(spool *s);
bool spl_can_give(const spool *s);      /* lock held: all records of the oldest segment are trimmed, and it holds room */
bool spl_starved(const spool *s);       /* lock held: it is the disk that has no room */
fz_status spl_remove_below(spool *s, uint64_t upto, fz_error *err) FZ_MUST_USE; /* lock held */
#endif
