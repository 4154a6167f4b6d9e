/* XXH3 with AVX2, twice as fast as with what every x86-64 has: each byte of a spool is summed when it is written, and again when it is read back. */
#include "spool/spl_sum.h"
#ifdef SPL_HAVE_AVX2
#ifndef __AVX2__
#pragma GCC target("avx2")
#endif
#define XXH_VECTOR 2 /* XXH_AVX2 */
#define XXH_INLINE_ALL
#include <xxhash.h>
uint64_t spl_sum_avx2(const void *p, size_t n, uint64_t seed) { return XXH3_64bits_withSeed(p, n, seed); }
#else
typedef int spl_no_avx2; /* a translation unit must not be empty */
#endif
