/* A set of 64-bit hashes (of paths, say), for "have I met this before" over millions of things at 16 bytes each. Two things of
 * one hash count as one: with ten million entries the odds are one in 300,000, so it decides nothing that could lose data.
 * Threads: one at a time. */
#ifndef FZ_HASHSET_H
#define FZ_HASHSET_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
typedef struct fz_hashset { uint64_t *v; size_t n, cap; } fz_hashset; /* zeroed: empty */
bool fz_hashset_add(fz_hashset *s, uint64_t h); /* true: it was not there */
bool fz_hashset_has(const fz_hashset *s, uint64_t h);
void fz_hashset_free(fz_hashset *s);            /* leaves an empty set */
#endif
