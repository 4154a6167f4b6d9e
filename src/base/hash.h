/* 64-bit hashing (XXH3) of bytes: for tables in memory and for the record hash of a position. Values never stand in a
 * format that another program reads. Threads: any. */
#ifndef FZ_HASH_H
#define FZ_HASH_H
#include <stddef.h>
#include <stdint.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
static inline uint64_t fz_hash(const void *p, size_t n) { return XXH3_64bits(p, n); }
#endif
