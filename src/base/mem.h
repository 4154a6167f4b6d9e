/* Memory: allocation that cannot fail, and arenas for memory of one lifetime.
 *
 * Invariants
 *  1. fz_malloc and its kin never return NULL: a process that cannot get memory ends (abort). That is safe at any
 *     moment, since a commit is the only thing that moves a position (see ARCHITECTURE.md, commit protocol).
 *  2. Memory from an arena lives until fz_arena_free or fz_arena_reset; it is never freed singly. In debug builds
 *     (FZ_POISON) it is poisoned when reset.
 *  3. Blocks of arenas are kept in a bounded process-wide pool, so that a batch does not fault its pages in anew.
 * Threads: an arena belongs to one thread at a time (it may be handed over); the rest may be called from any thread.
 */
#ifndef FZ_MEM_H
#define FZ_MEM_H
#include <stddef.h>
#include <stdint.h>

void *fz_malloc(size_t n) __attribute__((malloc, alloc_size(1), returns_nonnull));
void *fz_calloc(size_t n, size_t size) __attribute__((malloc, alloc_size(1, 2), returns_nonnull));
void *fz_realloc(void *p, size_t n) __attribute__((alloc_size(2), returns_nonnull));
void *fz_aligned(size_t align, size_t n) __attribute__((malloc, alloc_size(2), returns_nonnull)); /* n: a multiple of align, a power of two; fz_free frees it */
void fz_free(void *p);
char *fz_strdup(const char *s);
char *fz_strndup(const char *s, size_t n);
/* printf into a new string; the caller frees it with fz_free. */
char *fz_asprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2), returns_nonnull));

typedef struct fz_arena fz_arena;
fz_arena *fz_arena_new(void);
void fz_arena_free(fz_arena *a); /* NULL is allowed */
void fz_arena_reset(fz_arena *a);
/* 16-byte aligned, not zeroed; n may be 0. */
void *fz_arena_alloc(fz_arena *a, size_t n) __attribute__((returns_nonnull));
void *fz_arena_calloc(fz_arena *a, size_t n, size_t size) __attribute__((returns_nonnull));
/* Grows p (NULL allowed) from old_n to n bytes, in place where p was the last allocation. */
void *fz_arena_realloc(fz_arena *a, void *p, size_t old_n, size_t n) __attribute__((returns_nonnull));
char *fz_arena_strdup(fz_arena *a, const char *s);
char *fz_arena_strndup(fz_arena *a, const char *s, size_t n); /* adds a NUL */
char *fz_arena_printf(fz_arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3), returns_nonnull));
/* Bytes that the arena holds from the system. */
size_t fz_arena_bytes(const fz_arena *a);
/* Resident size of this process in bytes (from /proc/self/statm). */
size_t fz_rss(void);

#define FZ_NEW(T) ((T *)fz_calloc(1, sizeof(T)))
#define FZ_ANEW(a, T) ((T *)fz_arena_calloc((a), 1, sizeof(T)))
#define FZ_ANEWN(a, T, n) ((T *)fz_arena_calloc((a), (n), sizeof(T)))
/* Doubles a heap array so that index n fits: FZ_GROW(v, n, cap). */
#define FZ_GROW(v, n, cap)                                                     \
    do {                                                                       \
        if ((n) >= (cap)) {                                                    \
            (cap) = (cap) ? (cap) * 2 : 8;                                     \
            while ((n) >= (cap)) (cap) *= 2;                                   \
            (v) = fz_realloc((v), (size_t)(cap) * sizeof *(v));                \
        }                                                                      \
    } while (0)
#endif
