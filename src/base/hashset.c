/* See hashset.h. Open addressing, linear probing, at most half full; 0 is the empty slot. */
#include "base/hashset.h"
#include "base/mem.h"

static size_t slot_of(const fz_hashset *s, uint64_t h) {
    size_t i = (h * 0x9E3779B97F4A7C15u >> 32) & (s->cap - 1); /* callers may have poor hashes */
    while (s->v[i] && s->v[i] != h) i = (i + 1) & (s->cap - 1);
    return i;
}

bool fz_hashset_has(const fz_hashset *s, uint64_t h) {
    h |= !h;
    return s->n > 0 && s->v[slot_of(s, h)] == h;
}

bool fz_hashset_add(fz_hashset *s, uint64_t h) {
    h |= !h;
    if (s->n * 2 >= s->cap) {
        fz_hashset big = {.n = s->n, .cap = s->cap ? s->cap * 2 : 64};
        big.v = fz_calloc(big.cap, sizeof *big.v);
        for (size_t i = 0; i < s->cap; i++)
            if (s->v[i]) big.v[slot_of(&big, s->v[i])] = s->v[i];
        fz_free(s->v);
        *s = big;
    }
    size_t i = slot_of(s, h);
    if (s->v[i]) return false;
    s->v[i] = h;
    s->n++;
    return true;
}

void fz_hashset_free(fz_hashset *s) {
    fz_free(s->v);
    *s = (fz_hashset){0};
}
