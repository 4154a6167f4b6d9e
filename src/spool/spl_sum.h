/* Inside the spool: the checksum of a frame, XXH3-64 with the segment's seed. The same value by whatever instructions it is counted. */
#ifndef SPL_SUM_H
#define SPL_SUM_H
#include <stddef.h>
#include <stdint.h>
#if defined(__x86_64__) && (!defined(__clang__) || defined(__AVX2__))
#define SPL_HAVE_AVX2 1
#endif
uint64_t spl_sum(const void *p, size_t n, uint64_t seed);
uint64_t spl_sum_avx2(const void *p, size_t n, uint64_t seed); /* only where the processor has AVX2 */
#endif
