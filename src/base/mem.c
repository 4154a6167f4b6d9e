/* See mem.h. */
#include "base/mem.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *checked(void *p, size_t n) {
    if (p || n == 0) return p;
    fprintf(stderr, "frazil: out of memory (%zu bytes)\n", n);
    abort();
}
void *fz_malloc(size_t n) { return checked(malloc(n ? n : 1), n ? n : 1); }
void *fz_calloc(size_t n, size_t size) { return checked(calloc(n ? n : 1, size ? size : 1), 1); }
void *fz_realloc(void *p, size_t n) { return checked(realloc(p, n ? n : 1), n ? n : 1); }
void *fz_aligned(size_t align, size_t n) { return checked(aligned_alloc(align, n), n); }
void fz_free(void *p) { free(p); }

char *fz_strndup(const char *s, size_t n) {
    char *r = fz_malloc(n + 1);
    if (n) memcpy(r, s, n);
    r[n] = 0;
    return r;
}
char *fz_strdup(const char *s) { return fz_strndup(s, strlen(s)); }

static char *vprintf_to(fz_arena *a, const char *fmt, va_list ap) {
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    size_t len = n < 0 ? 0 : (size_t)n;
    char *r = a ? fz_arena_alloc(a, len + 1) : fz_malloc(len + 1);
    vsnprintf(r, len + 1, fmt, again);
    va_end(again);
    return r;
}
char *fz_asprintf(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    char *r = vprintf_to(NULL, fmt, ap);
    va_end(ap);
    return r;
}

/* ---- arenas ---- */
/* Blocks come in classes: 256 KiB, 512 KiB ... 8 MiB. Those given back wait in a pool, since a block that malloc maps and unmaps anew for each batch
 * costs a page fault for every 4 KiB of it. */
#define BLOCK_SIZE ((size_t)256 * 1024)
#define CLASSES 6
#define POOL_MAX ((size_t)20 << 20)

typedef struct block {
    struct block *next;
    size_t size, used; /* of data[] */
    int cls;           /* -1: larger than every class */
    _Alignas(16) unsigned char data[];
} block;

struct fz_arena {
    block *head;
    size_t bytes;
    void *last; /* the newest allocation, which realloc may grow in place */
};

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static block *pool[CLASSES];
static size_t pool_bytes;

static block *block_get(size_t want) {
    size_t total = sizeof(block) + want, size = BLOCK_SIZE;
    int cls = 0;
    while (cls < CLASSES && size < total) size <<= 1, cls++;
    block *b = NULL;
    if (cls == CLASSES) {
        b = fz_malloc(total);
        *b = (block){.size = want, .cls = -1};
        return b;
    }
    pthread_mutex_lock(&pool_lock);
    if (pool[cls]) {
        b = pool[cls];
        pool[cls] = b->next;
        pool_bytes -= size;
    }
    pthread_mutex_unlock(&pool_lock);
    if (!b) b = fz_malloc(size);
    *b = (block){.size = size - sizeof(block), .cls = cls};
    return b;
}

static void block_put(block *b) {
#ifdef FZ_POISON
    memset(b->data, 0xdb, b->size);
#endif
    if (b->cls >= 0) {
        size_t size = BLOCK_SIZE << b->cls;
        pthread_mutex_lock(&pool_lock);
        if (pool_bytes + size <= POOL_MAX) {
            b->next = pool[b->cls];
            pool[b->cls] = b;
            pool_bytes += size;
            b = NULL;
        }
        pthread_mutex_unlock(&pool_lock);
    }
    free(b);
}

fz_arena *fz_arena_new(void) { return FZ_NEW(fz_arena); }

void fz_arena_reset(fz_arena *a) {
    while (a->head) {
        block *b = a->head;
        a->head = b->next;
        block_put(b);
    }
    a->bytes = 0;
    a->last = NULL;
}

void fz_arena_free(fz_arena *a) {
    if (!a) return;
    fz_arena_reset(a);
    free(a);
}

void *fz_arena_alloc(fz_arena *a, size_t n) {
    n = (n + 15) & ~(size_t)15;
    block *b = a->head;
    if (!b || b->size - b->used < n) {
        block *nb = block_get(n);
        a->bytes += nb->size + sizeof(block);
        nb->next = b;
        a->head = b = nb;
    }
    void *p = b->data + b->used;
    b->used += n;
    a->last = p;
    return p;
}

void *fz_arena_calloc(fz_arena *a, size_t n, size_t size) {
    void *p = fz_arena_alloc(a, n * size);
    memset(p, 0, n * size);
    return p;
}

void *fz_arena_realloc(fz_arena *a, void *p, size_t old_n, size_t n) {
    if (p && n <= old_n) return p;
    block *b = a->head;
    if (p && p == a->last && b) {
        size_t at = (size_t)((unsigned char *)p - b->data), want = (n + 15) & ~(size_t)15;
        if (at + want <= b->size) {
            b->used = at + want;
            return p;
        }
    }
    void *q = fz_arena_alloc(a, n);
    if (p && old_n) memcpy(q, p, old_n);
    return q;
}

char *fz_arena_strndup(fz_arena *a, const char *s, size_t n) {
    char *r = fz_arena_alloc(a, n + 1);
    if (n) memcpy(r, s, n);
    r[n] = 0;
    return r;
}
char *fz_arena_strdup(fz_arena *a, const char *s) { return fz_arena_strndup(a, s, strlen(s)); }
char *fz_arena_printf(fz_arena *a, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    char *r = vprintf_to(a, fmt, ap);
    va_end(ap);
    return r;
}
size_t fz_arena_bytes(const fz_arena *a) { return a->bytes; }

size_t fz_rss(void) {
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    char text[128];
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0) return 0;
    text[n] = 0;
    char *end;
    (void)strtoull(text, &end, 10);
    return (size_t)strtoull(end, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}
