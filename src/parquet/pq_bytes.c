/* The room's small growable buffer: 16 bytes when empty, since tens of thousands of writers may be open. */
#include "parquet/parquet_int.h"

void pq_bytes_grow(pq_bytes *b, size_t more) {
    size_t want = (size_t)b->n + more, cap = b->cap < 32768 ? (size_t)b->cap * 2 : (size_t)b->cap + b->cap / 2;
    if (cap < want) cap = want;
    cap = (cap + 15) & ~(size_t)15;
    if (cap > UINT32_MAX) cap = UINT32_MAX; /* values are below PQ_MAX_VALUE and pages below twice that */
    b->p = fz_realloc(b->p, cap);
    b->cap = (uint32_t)cap;
}
void pq_bytes_set(pq_bytes *b, const void *p, uint32_t n) {
    b->n = 0;
    pq_bytes_put(b, p, n);
}
void pq_bytes_free(pq_bytes *b) {
    fz_free(b->p);
    *b = (pq_bytes){0};
}
